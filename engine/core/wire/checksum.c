#include "wire/checksum.h"

#include <string.h>

/* Words of 64 bits and their carries: 2^64 is 1 modulo 2^16 - 1, so a carry counts 1 (RFC 1071). */
__extension__ typedef unsigned __int128 wide;

enum { BLOCK = 32 };

static uint64_t word_at(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint64_t fold(wide sum) {
    const uint64_t low = (uint64_t)sum;
    const uint64_t folded = low + (uint64_t)(sum >> 64);
    return folded + (folded < low);
}

uint32_t helio_checksum_part(const void *data, size_t length) {
    const unsigned char *at = data;
    wide even = 0, odd = 0; /* two chains of additions that run side by side */
    for (; length >= BLOCK; at += BLOCK, length -= BLOCK) {
        even += word_at(at);
        odd += word_at(at + 8);
        even += word_at(at + 16);
        odd += word_at(at + 24);
    }
    for (; length >= 8; at += 8, length -= 8) {
        even += word_at(at);
    }
    if (length >= 4) {
        uint32_t word;
        memcpy(&word, at, sizeof word);
        odd += word;
        at += 4;
        length -= 4;
    }
    uint32_t last = 0; /* up to 3 bytes, padded with zeros */
    memcpy(&last, at, length);
    const uint64_t sum = fold(even + odd + last);
    const uint64_t half = (sum & UINT32_MAX) + (sum >> 32);
    return (uint32_t)half + (uint32_t)(half >> 32);
}
