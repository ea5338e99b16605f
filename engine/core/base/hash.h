/* FNV-1a, 64 bit: the topic identifier of the wire is this hash of the topic's name. */
#ifndef HELIO_BASE_HASH_H
#define HELIO_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t helio_hash_fnv1a(const void *data, size_t length) {
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

/* Spreads a key whose bits may be alike over all 64 bits. */
static inline uint64_t helio_hash_mix(uint64_t key) {
    key = (key ^ (key >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    key = (key ^ (key >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    return key ^ (key >> 32);
}

#endif
