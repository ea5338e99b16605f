/* Messages of a batch, read at once where they lie: the same by the general path (delivery.c) and the
 * fast path (fast_path.c). */
#ifndef HELIO_RECEIVE_CHUNK_H
#define HELIO_RECEIVE_CHUNK_H

#include <stddef.h>
#include <string.h>

#include <heliograph/heliograph.h>

#include "wire/tsdu.h"

enum { HELIO_CHUNK_MAX = 128 }; /* messages */

typedef struct helio_chunk {
    size_t count;
    uint64_t bytes;  /* of the messages */
    uint32_t stream; /* the number that all of them have */
    helio_message messages[HELIO_CHUNK_MAX];
} helio_chunk;

/* What the messages of a batch have in common: the last members of each, as they lie there. */
typedef struct helio_message_form {
    int64_t times __attribute__((vector_size(16))); /* submit_ns, receive_ns */
    uint32_t stream;
    uint32_t flags;
} helio_message_form;

/* Two stores for four members: this is done for each message. */
static inline void helio_message_put(helio_message *to, const uint8_t *body, size_t bytes,
                                     uint64_t number, const helio_message_form *form) {
    to->data = body;
    to->length = bytes;
    to->number = number;
    memcpy((uint8_t *)to + offsetof(helio_message, submit_ns), &form->times, sizeof form->times);
    memcpy((uint8_t *)to + offsetof(helio_message, stream),
           (const uint8_t *)form + offsetof(helio_message_form, stream), sizeof(uint64_t));
}

/* Reads `count` messages, at most HELIO_CHUNK_MAX, from `at` on; the first has `number`.  Returns where
 * the next one begins; NULL: one is damaged. */
const uint8_t *helio_chunk_read(helio_chunk *chunk, const uint8_t *at, const uint8_t *end,
                                uint64_t number, size_t count, const helio_message_form *form);

/* All messages get this number of their stream. */
void helio_chunk_set_stream(helio_chunk *chunk, uint32_t stream);

/* Bytes of the first `count` of `messages`, which are some of the chunk. */
uint64_t helio_chunk_bytes_of(const helio_chunk *chunk, const helio_message *messages,
                              size_t count);

#endif
