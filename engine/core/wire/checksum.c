#include "wire/checksum.h"

#include <string.h>

enum { BLOCK = 32 };

uint32_t helio_checksum_part(const void *data, size_t length) {
    const unsigned char *at = data;
    /* Halves of 64-bit words in sums of their own: no carry can be lost below 2^32 words. */
    uint64_t low0 = 0, low1 = 0, high0 = 0, high1 = 0;
    for (; length >= BLOCK; at += BLOCK, length -= BLOCK) {
        uint64_t word[BLOCK / 8];
        memcpy(word, at, sizeof word);
        low0 += (uint32_t)word[0];
        high0 += word[0] >> 32;
        low1 += (uint32_t)word[1];
        high1 += word[1] >> 32;
        low0 += (uint32_t)word[2];
        high0 += word[2] >> 32;
        low1 += (uint32_t)word[3];
        high1 += word[3] >> 32;
    }
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        low0 += (uint32_t)word;
        high0 += word >> 32;
    }
    if (length >= 4) {
        uint32_t word;
        memcpy(&word, at, sizeof word);
        low0 += word;
        at += 4;
        length -= 4;
    }
    uint32_t last = 0; /* up to 3 bytes, padded with zeros */
    memcpy(&last, at, length);
    uint64_t sum = low0 + low1 + high0 + high1 + last;
    sum = (sum & UINT32_MAX) + (sum >> 32);
    return (uint32_t)sum + (uint32_t)(sum >> 32);
}
