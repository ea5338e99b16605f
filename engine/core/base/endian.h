/* Big-endian integers in unaligned memory. */
#ifndef HELIO_BASE_ENDIAN_H
#define HELIO_BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__,
               "byte order must be little or big");

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HELIO_SWAP(bits, value) __builtin_bswap##bits(value)
#else
#define HELIO_SWAP(bits, value) (value)
#endif

#define HELIO_DEFINE_ENDIAN(bits)                                        \
    static inline uint##bits##_t helio_get##bits(const void *from) {     \
        uint##bits##_t value;                                            \
        memcpy(&value, from, sizeof value);                              \
        return HELIO_SWAP(bits, value);                                  \
    }                                                                    \
    static inline void helio_put##bits(void *to, uint##bits##_t value) { \
        value = HELIO_SWAP(bits, value);                                 \
        memcpy(to, &value, sizeof value);                                \
    }

HELIO_DEFINE_ENDIAN(16)
HELIO_DEFINE_ENDIAN(32)
HELIO_DEFINE_ENDIAN(64)

#undef HELIO_DEFINE_ENDIAN

#endif
