#include "wire/tsdu.h"

#include <string.h>

#include "base/endian.h"
#include "base/math.h"

enum { MUST_UNDERSTAND = 0x80, WORD = HELIO_TSDU_WORD };

/* Reads a chain of extensions: all can be understood or skipped, and they end where they should. */
static bool read_extensions(const uint8_t *at, const uint8_t *end, int64_t *intended_ns) {
    while (at < end) {
        const size_t bytes = (size_t)at[1] * WORD; /* whole words are left, so at[1] is there */
        if ((at[0] & MUST_UNDERSTAND) || bytes == 0 || bytes > (size_t)(end - at)) {
            return false;
        }
        if (at[0] == HELIO_TSDU_EXTENSION_INTENDED && bytes == HELIO_TSDU_INTENDED_BYTES) {
            *intended_ns = (int64_t)helio_get64(at + WORD);
        }
        at += bytes;
    }
    return true;
}

/* A time before 1970 is not known (0), and a time after the last one is the last one.  So the
 * differences of two times, and of two differences, do not overflow. */
static int64_t time_of(int64_t ns) {
    return ns < 0 ? 0 : helio_min(ns, HELIO_TSDU_TIME_MAX);
}

helio_tsdu_result helio_tsdu_decode(const uint8_t *tsdu, size_t bytes, helio_tsdu_header *out) {
    if (bytes < 2 || tsdu[0] != HELIO_TSDU_MAGIC || tsdu[1] != HELIO_TSDU_VERSION) {
        return HELIO_TSDU_FOREIGN;
    }
    if (bytes < HELIO_TSDU_HEADER) {
        return HELIO_TSDU_DAMAGED;
    }
    out->kind = tsdu[2];
    out->flags = tsdu[3];
    out->header_bytes = helio_get16(tsdu + 4);
    out->count = helio_get16(tsdu + 6);
    out->topic_id = helio_get64(tsdu + 8);
    out->first_message = helio_get64(tsdu + 16);
    out->submit_ns = (int64_t)helio_get64(tsdu + 24);
    out->closed_after_ns = helio_get32(tsdu + 32);
    out->intended_ns = 0;
    const bool good =
        (out->kind == HELIO_TSDU_KIND_MESSAGES || out->kind == HELIO_TSDU_KIND_TOPICS) &&
        out->header_bytes >= HELIO_TSDU_HEADER && out->header_bytes % WORD == 0 &&
        out->header_bytes <= bytes && out->count > 0 &&
        out->first_message <= UINT64_MAX - out->count;
    if (!good ||
        !read_extensions(tsdu + HELIO_TSDU_HEADER, tsdu + out->header_bytes, &out->intended_ns)) {
        return HELIO_TSDU_DAMAGED;
    }
    out->submit_ns = time_of(out->submit_ns);
    out->intended_ns = time_of(out->intended_ns);
    return HELIO_TSDU_OURS;
}

bool helio_tsdu_next_extended(const uint8_t **at, const uint8_t *end, helio_tsdu_message *out) {
    const size_t left = (size_t)(end - *at);
    if (left < HELIO_TSDU_EXTENDED_HEADER) {
        return false;
    }
    const size_t extensions = (size_t)(helio_get16(*at) & ~HELIO_TSDU_EXTENDED) * WORD;
    const size_t body = helio_get32(*at + 2);
    const size_t header = HELIO_TSDU_EXTENDED_HEADER + extensions;
    int64_t intended_ns; /* of one message: nobody asks for it */
    if (header > left || body > left - header ||
        !read_extensions(*at + HELIO_TSDU_EXTENDED_HEADER, *at + header, &intended_ns)) {
        return false;
    }
    *out = (helio_tsdu_message){*at + header, body};
    *at += header + body;
    return true;
}

bool helio_tsdu_next_topic(const uint8_t **at, const uint8_t *end, helio_tsdu_topic *out) {
    const size_t left = (size_t)(end - *at);
    if (left < HELIO_TSDU_ENTRY_HEADER) {
        return false;
    }
    const size_t name = helio_get16(*at + 16);
    if (name == 0 || name > HELIO_TSDU_TOPIC_NAME_MAX || name > left - HELIO_TSDU_ENTRY_HEADER) {
        return false;
    }
    *out = (helio_tsdu_topic){
        .topic_id = helio_get64(*at),
        .next_message = helio_get64(*at + 8),
        .name = (const char *)*at + HELIO_TSDU_ENTRY_HEADER,
        .name_bytes = name,
    };
    *at += HELIO_TSDU_ENTRY_HEADER + name;
    return true;
}

size_t helio_tsdu_encode_topic(uint8_t *out, const helio_tsdu_topic *topic) {
    helio_put64(out, topic->topic_id);
    helio_put64(out + 8, topic->next_message);
    helio_put16(out + 16, (uint16_t)topic->name_bytes);
    memcpy(out + HELIO_TSDU_ENTRY_HEADER, topic->name, topic->name_bytes);
    return HELIO_TSDU_ENTRY_HEADER + topic->name_bytes;
}
