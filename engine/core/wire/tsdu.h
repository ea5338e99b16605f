/* The batch: what Heliograph puts into a PGM packet's TSDU (docs/wire.md 2). */
#ifndef HELIO_WIRE_TSDU_H
#define HELIO_WIRE_TSDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/endian.h"
#include "generated/protocol.h"

enum {
    HELIO_TSDU_PLAIN_MAX = 0x7FFF,     /* longest body with a plain header */
    HELIO_TSDU_EXTENDED_HEADER = 6,    /* of a message, without extensions */
    HELIO_TSDU_ENTRY_HEADER = 18,      /* of a TOPICS entry */
    HELIO_TSDU_COUNT_MAX = UINT16_MAX, /* messages or entries */
    HELIO_TSDU_INTENDED_BYTES = 12,    /* of the extension */
    HELIO_TSDU_WORD = 4,               /* lengths of extensions count these */
};
#define HELIO_TSDU_TIME_MAX (INT64_MAX / 2)    /* ns since 1970: in the year 2116 */
#define HELIO_TSDU_CLOSED_AFTER_MAX UINT32_MAX /* ns; stands for that or longer */

typedef enum helio_tsdu_result {
    HELIO_TSDU_OURS,
    HELIO_TSDU_FOREIGN, /* another program's, or another version's */
    HELIO_TSDU_DAMAGED,
} helio_tsdu_result;

typedef struct helio_tsdu_header {
    uint8_t kind;  /* HELIO_TSDU_KIND_* */
    uint8_t flags; /* HELIO_TSDU_FLAG_* */
    uint16_t header_bytes;
    uint16_t count;
    uint64_t topic_id;
    uint64_t first_message;
    int64_t submit_ns;        /* 0: not known; at most HELIO_TSDU_TIME_MAX */
    uint32_t closed_after_ns; /* at most HELIO_TSDU_CLOSED_AFTER_MAX */
    int64_t intended_ns;      /* 0: no extension INTENDED; at most HELIO_TSDU_TIME_MAX */
} helio_tsdu_header;

/* Reads the head of a batch.  `bytes` may be less than the whole batch (a first fragment) but not
 * less than the header. */
helio_tsdu_result helio_tsdu_decode(const uint8_t *tsdu, size_t bytes, helio_tsdu_header *out);

/* What the head of a batch of messages without flags and extensions begins with. */
#define HELIO_TSDU_PLAIN_BEGIN                                                                 \
    HELIO_TSDU_MAGIC, HELIO_TSDU_VERSION, HELIO_TSDU_KIND_MESSAGES, 0, HELIO_TSDU_HEADER >> 8, \
        HELIO_TSDU_HEADER & 0xFF

/* Members of a head, of which at least HELIO_TSDU_HEADER bytes are there. */
static inline uint64_t helio_tsdu_topic_id(const uint8_t *tsdu) {
    return helio_get64(tsdu + 8);
}
static inline uint64_t helio_tsdu_first_message(const uint8_t *tsdu) {
    return helio_get64(tsdu + 16);
}
static inline int64_t helio_tsdu_submit_ns(const uint8_t *tsdu) {
    return (int64_t)helio_get64(tsdu + 24);
}

/* Reads the head of a batch of messages without flags and extensions; false: helio_tsdu_decode tells
 * what it is.  The fast path tries it first: nearly all heads begin with the same six bytes. */
static inline bool helio_tsdu_read_plain(const uint8_t *tsdu, size_t bytes,
                                         helio_tsdu_header *out) {
    static const uint8_t begin[6] = {HELIO_TSDU_PLAIN_BEGIN};
    if (bytes < HELIO_TSDU_HEADER || memcmp(tsdu, begin, sizeof begin) != 0) {
        return false;
    }
    const int64_t submit_ns = helio_tsdu_submit_ns(tsdu);
    *out = (helio_tsdu_header){
        .kind = HELIO_TSDU_KIND_MESSAGES,
        .header_bytes = HELIO_TSDU_HEADER,
        .count = helio_get16(tsdu + 6),
        .topic_id = helio_tsdu_topic_id(tsdu),
        .first_message = helio_tsdu_first_message(tsdu),
        .submit_ns = submit_ns,
        .closed_after_ns = helio_get32(tsdu + 32),
    };
    return out->count > 0 && out->first_message <= UINT64_MAX - out->count && submit_ns >= 0 &&
           submit_ns <= HELIO_TSDU_TIME_MAX;
}

typedef struct helio_tsdu_message {
    const uint8_t *body;
    size_t bytes;
} helio_tsdu_message;

/* As helio_tsdu_next_message, for a message with the extended header. */
bool helio_tsdu_next_extended(const uint8_t **at, const uint8_t *end, helio_tsdu_message *out);

/* Reads the message at *at and moves on.  False when it would pass `end` or must be understood and
 * is not. */
static inline bool helio_tsdu_next_message(const uint8_t **at, const uint8_t *end,
                                           helio_tsdu_message *out) {
    const ptrdiff_t left = end - *at - HELIO_TSDU_MESSAGE_HEADER;
    if (left < 0) {
        return false;
    }
    const uint16_t length = helio_get16(*at);
    if (length & HELIO_TSDU_EXTENDED) {
        const uint8_t *from = *at; /* copies: the caller's variables stay in registers */
        helio_tsdu_message message;
        if (!helio_tsdu_next_extended(&from, end, &message)) {
            return false;
        }
        *at = from;
        *out = message;
        return true;
    }
    if (length > left) {
        return false;
    }
    *out = (helio_tsdu_message){*at + HELIO_TSDU_MESSAGE_HEADER, length};
    *at += HELIO_TSDU_MESSAGE_HEADER + length;
    return true;
}

/* ---- a batch of one message, without flags, extensions and extended header ----
 *
 * Whoever takes one looks at it twice, with other work in between: what it has is read where it lies
 * each time, not kept. */

static inline helio_tsdu_message helio_tsdu_lone_message(const uint8_t *tsdu) {
    return (helio_tsdu_message){tsdu + HELIO_TSDU_HEADER + HELIO_TSDU_MESSAGE_HEADER,
                                helio_get16(tsdu + HELIO_TSDU_HEADER)};
}

/* It is one, and whole; false: it is something else, or damaged. */
static inline bool helio_tsdu_is_lone(const uint8_t *tsdu, size_t bytes) {
    static const uint8_t begin[8] = {HELIO_TSDU_PLAIN_BEGIN, 0, 1}; /* and the count */
    const size_t before = HELIO_TSDU_HEADER + HELIO_TSDU_MESSAGE_HEADER;
    if (bytes < before || bytes - before >= HELIO_TSDU_EXTENDED ||
        memcmp(tsdu, begin, sizeof begin) != 0) {
        return false;
    }
    return helio_tsdu_lone_message(tsdu).bytes == bytes - before &&
           helio_tsdu_first_message(tsdu) != UINT64_MAX &&
           (uint64_t)helio_tsdu_submit_ns(tsdu) <= HELIO_TSDU_TIME_MAX;
}

typedef struct helio_tsdu_topic {
    uint64_t topic_id;
    uint64_t next_message;
    const char *name; /* not NUL-terminated */
    size_t name_bytes;
} helio_tsdu_topic;

/* Reads the TOPICS entry at *at and moves on.  False when it would pass `end` or its name is empty.
 */
bool helio_tsdu_next_topic(const uint8_t **at, const uint8_t *end, helio_tsdu_topic *out);

/* ---- encoding ---- */

/* Bytes of a batch's head. */
static inline size_t helio_tsdu_header_bytes(int64_t intended_ns) {
    return intended_ns ? HELIO_TSDU_HEADER + HELIO_TSDU_INTENDED_BYTES : HELIO_TSDU_HEADER;
}
/* Writes a batch's head; header_bytes of `header` is not looked at. */
static inline void helio_tsdu_encode(uint8_t *out, const helio_tsdu_header *header) {
    out[0] = HELIO_TSDU_MAGIC;
    out[1] = HELIO_TSDU_VERSION;
    out[2] = header->kind;
    out[3] = header->flags;
    helio_put16(out + 4, (uint16_t)helio_tsdu_header_bytes(header->intended_ns));
    helio_put16(out + 6, header->count);
    helio_put64(out + 8, header->topic_id);
    helio_put64(out + 16, header->first_message);
    helio_put64(out + 24, (uint64_t)header->submit_ns);
    helio_put32(out + 32, header->closed_after_ns);
    helio_put32(out + 36, 0);
    if (header->intended_ns) {
        uint8_t *extension = out + HELIO_TSDU_HEADER;
        extension[0] = HELIO_TSDU_EXTENSION_INTENDED;
        extension[1] = HELIO_TSDU_INTENDED_BYTES / HELIO_TSDU_WORD;
        helio_put16(extension + 2, 0);
        helio_put64(extension + HELIO_TSDU_WORD, (uint64_t)header->intended_ns);
    }
}

static inline size_t helio_tsdu_message_header_bytes(size_t body_bytes) {
    return body_bytes <= HELIO_TSDU_PLAIN_MAX ? HELIO_TSDU_MESSAGE_HEADER
                                              : HELIO_TSDU_EXTENDED_HEADER;
}
/* Writes the plain header of a message, of at most HELIO_TSDU_PLAIN_MAX bytes. */
static inline void helio_tsdu_encode_plain(uint8_t *out, size_t body_bytes) {
    helio_put16(out, (uint16_t)body_bytes);
}
/* Writes the header of a message and returns its bytes. */
static inline size_t helio_tsdu_encode_message_header(uint8_t *out, size_t body_bytes) {
    if (body_bytes <= HELIO_TSDU_PLAIN_MAX) {
        helio_tsdu_encode_plain(out, body_bytes);
        return HELIO_TSDU_MESSAGE_HEADER;
    }
    helio_put16(out, HELIO_TSDU_EXTENDED);
    helio_put32(out + 2, (uint32_t)body_bytes);
    return HELIO_TSDU_EXTENDED_HEADER;
}
/* Writes an entry and returns its bytes: HELIO_TSDU_ENTRY_HEADER and the name's. */
size_t helio_tsdu_encode_topic(uint8_t *out, const helio_tsdu_topic *topic);

#endif
