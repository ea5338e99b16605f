/* Copies of short messages without a call: the compiler keeps a loop's variables in registers.  And copies
 * that do not go through the cache. */
#ifndef HELIO_BASE_COPY_H
#define HELIO_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#define HELIO_COPIES_PAST_CACHE 1
#else
#define HELIO_COPIES_PAST_CACHE 0
#endif

/* As memcpy; memory may be NULL when there is nothing to copy.  16 to 128 bytes are copied in blocks
 * of 16, of which the last ones may overlap those before. */
static inline void helio_copy(void *to, const void *from, size_t bytes) {
    enum { BLOCK = 16 };
    uint8_t *out = to;
    const uint8_t *in = from;
    if (bytes < BLOCK || bytes > 8 * BLOCK) {
        if (bytes > 0) {
            memcpy(out, in, bytes);
        }
        return;
    }
    const size_t last = bytes - BLOCK;
    if (bytes > 2 * BLOCK) {
        if (bytes > 4 * BLOCK) {
            memcpy(out + 2 * BLOCK, in + 2 * BLOCK, BLOCK);
            memcpy(out + 3 * BLOCK, in + 3 * BLOCK, BLOCK);
            memcpy(out + last - 3 * BLOCK, in + last - 3 * BLOCK, BLOCK);
            memcpy(out + last - 2 * BLOCK, in + last - 2 * BLOCK, BLOCK);
        }
        memcpy(out + BLOCK, in + BLOCK, BLOCK);
        memcpy(out + last - BLOCK, in + last - BLOCK, BLOCK);
    }
    memcpy(out, in, BLOCK);
    memcpy(out + last, in + last, BLOCK);
}

/* As memcpy of memory that nobody reads soon: it takes no place in the cache from what somebody does, and
 * is not read before it is written.  Both sides are aligned to 16, and so is `bytes`.  Whoever reads it in
 * another thread must have taken a lock or made a full fence after the writer did: these stores pass a
 * release. */
static inline void helio_copy_past_cache(void *to, const void *from, size_t bytes) {
#if HELIO_COPIES_PAST_CACHE
    __m128i *out = to;
    const __m128i *in = from;
    for (size_t i = 0; i < bytes / sizeof *out; i++) {
        _mm_stream_si128(out + i, _mm_load_si128(in + i));
    }
#else
    memcpy(to, from, bytes);
#endif
}

#endif
