#include "receive/chunk.h"

static inline uint16_t head_at(const uint8_t *at) {
    uint16_t head;
    memcpy(&head, at, sizeof head);
    return head;
}

/* Those after a message with a plain header that have the same header are as long: that they end
 * before the batch does is asked once for all of them. */
const uint8_t *helio_chunk_read(helio_chunk *chunk, const uint8_t *at, const uint8_t *end,
                                uint64_t number, size_t count, const helio_message_form *given) {
    const helio_message_form common = *given, *form = &common; /* in registers */
    const uint64_t after = number + count;
    uint64_t bytes = 0;
    helio_message *message = chunk->messages;
    while (number < after) {
        const uint8_t *from = at;
        helio_tsdu_message read;
        if (!helio_tsdu_next_message(&at, end, &read)) {
            return NULL;
        }
        bytes += read.bytes;
        helio_message_put(message++, read.body, read.bytes, number++, form);
        const size_t step = HELIO_TSDU_MESSAGE_HEADER + read.bytes, left = (size_t)(end - at);
        const uint16_t head = head_at(from);
        if (read.body != from + HELIO_TSDU_MESSAGE_HEADER || left < step || head_at(at) != head) {
            continue;
        }
        const uint64_t first = number, fitting = left / step;
        const uint64_t stop = fitting < after - number ? number + fitting : after, last = stop - 1;
        /* Two at a time: a third less to do for each. */
        for (; number < last && head_at(at) == head && head_at(at + step) == head;
             at += 2 * step, message += 2, number += 2) {
            const uint8_t *body = at + HELIO_TSDU_MESSAGE_HEADER;
            helio_message_put(message, body, read.bytes, number, form);
            helio_message_put(message + 1, body + step, read.bytes, number + 1, form);
        }
        if (number < stop && head_at(at) == head) {
            const uint8_t *body = at + HELIO_TSDU_MESSAGE_HEADER;
            helio_message_put(message++, body, read.bytes, number++, form);
            at += step;
        }
        bytes += (number - first) * read.bytes;
    }
    chunk->count = count;
    chunk->bytes = bytes;
    chunk->stream = form->stream;
    return at;
}

void helio_chunk_set_stream(helio_chunk *chunk, uint32_t stream) {
    if (chunk->stream == stream) {
        return;
    }
    for (size_t i = 0; i < chunk->count; i++) {
        chunk->messages[i].stream = stream;
    }
    chunk->stream = stream;
}

uint64_t helio_chunk_bytes_of(const helio_chunk *chunk, const helio_message *messages,
                              size_t count) {
    if (count == chunk->count) {
        return chunk->bytes;
    }
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += messages[i].length;
    }
    return bytes;
}
