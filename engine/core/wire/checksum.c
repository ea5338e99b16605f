#include "wire/checksum.h"

#include <stdbool.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

enum { BLOCK = 32, TWO_BLOCKS = 64 };

/* Sums are modulo 2^64 - 1: 2^64 is 1 modulo 2^16 - 1, so a carry out of the top counts 1 (RFC
 * 1071). */
static inline uint64_t add(uint64_t sum, uint64_t word) {
    const uint64_t low = sum + word;
    return low + (low < word);
}

static inline uint64_t word_at(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The last `length` bytes, 1 to 7, padded with zeros; `at` is where they begin.  The bytes before
 * them are read with them where there are enough. */
static inline uint64_t last_word(const unsigned char *at, size_t length, bool has_more_before) {
    uint64_t word = 0;
    if (!has_more_before) {
        memcpy(&word, at, length);
        return word;
    }
    const unsigned surplus = 8 * (8 - (unsigned)length);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return word_at(at + length - 8) >> surplus;
#else
    return word_at(at + length - 8) << surplus;
#endif
}

static inline uint32_t fold(uint64_t sum) {
    const uint64_t half = (sum & UINT32_MAX) + (sum >> 32);
    return (uint32_t)half + (uint32_t)(half >> 32);
}

static inline uint64_t add_block(uint64_t sum, const unsigned char *at) {
#if defined __x86_64__ && defined __GNUC__
    /* Compilers move the carry through a register after each word; this takes 5 instructions. */
    __asm__("addq 0(%1), %0\n\t"
            "adcq 8(%1), %0\n\t"
            "adcq 16(%1), %0\n\t"
            "adcq 24(%1), %0\n\t"
            "adcq $0, %0"
            : "+r"(sum)
            : "r"(at), "m"(*(const unsigned char(*)[BLOCK])at)
            : "cc");
    return sum;
#else
    sum = add(add(sum, word_at(at)), word_at(at + 8));
    return add(add(sum, word_at(at + 16)), word_at(at + 24));
#endif
}

/* A packet with one short message has some 130 bytes: two turns of a loop instead of four. */
static inline uint64_t add_two_blocks(uint64_t sum, const unsigned char *at) {
#if defined __x86_64__ && defined __GNUC__
    __asm__("addq 0(%1), %0\n\t"
            "adcq 8(%1), %0\n\t"
            "adcq 16(%1), %0\n\t"
            "adcq 24(%1), %0\n\t"
            "adcq 32(%1), %0\n\t"
            "adcq 40(%1), %0\n\t"
            "adcq 48(%1), %0\n\t"
            "adcq 56(%1), %0\n\t"
            "adcq $0, %0"
            : "+r"(sum)
            : "r"(at), "m"(*(const unsigned char(*)[TWO_BLOCKS])at)
            : "cc");
    return sum;
#else
    return add_block(add_block(sum, at), at + BLOCK);
#endif
}

/* `sum`: of what is in front of it. */
static inline uint32_t sum_words(const unsigned char *at, size_t length, uint64_t sum) {
    const bool is_short = length < 8;
    for (; length >= TWO_BLOCKS; at += TWO_BLOCKS, length -= TWO_BLOCKS) {
        sum = add_two_blocks(sum, at);
    }
    if (length >= BLOCK) {
        sum = add_block(sum, at);
        at += BLOCK;
        length -= BLOCK;
    }
    for (; length >= 8; at += 8, length -= 8) {
        sum = add(sum, word_at(at));
    }
    if (length > 0) {
        sum = add(sum, last_word(at, length, !is_short));
    }
    return fold(sum);
}

uint32_t helio_checksum_part_portable(const void *data, size_t length) {
    return sum_words(data, length, 0);
}

#ifdef __x86_64__

enum {
    STRIDE = 64,
    VECTORS_MIN = 256,     /* below, additions with carry take fewer instructions */
    VECTORS_MAX = 1 << 16, /* bytes for which no sum of 32 bits overflows */
};

/* Words less 2^15 are signed numbers; pairs of these are summed, and added to `sum`. */
__attribute__((target("avx2"))) static inline __m256i add_words(__m256i sum,
                                                                const unsigned char *at) {
    const __m256i ones = _mm256_set1_epi16(1), half = _mm256_set1_epi16(INT16_MIN);
    const __m256i words = _mm256_xor_si256(_mm256_loadu_si256((const void *)at), half);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(words, ones));
}

/* A multiple of STRIDE bytes. */
__attribute__((target("avx2"))) static uint64_t sum_vectors(const unsigned char *at,
                                                            size_t length) {
    __m256i even = _mm256_setzero_si256(), odd = _mm256_setzero_si256();
    const int64_t taken_off = (int64_t)(length / 2) << 15;
    const unsigned char *end = at + length;
    if (length % (2 * STRIDE)) {
        even = add_words(even, at);
        odd = add_words(odd, at + STRIDE / 2);
        at += STRIDE;
    }
    for (; at < end; at += 2 * STRIDE) {
        even = add_words(even, at);
        odd = add_words(odd, at + STRIDE / 2);
        even = add_words(even, at + STRIDE);
        odd = add_words(odd, at + STRIDE * 3 / 2);
    }
    const __m256i both = _mm256_add_epi32(even, odd);
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    return (uint64_t)(taken_off + _mm_cvtsi128_si32(sum));
}

/* At least VECTORS_MIN bytes. */
__attribute__((noinline)) static uint32_t sum_long(const unsigned char *at, size_t length) {
    if (length > VECTORS_MAX || !__builtin_cpu_supports("avx2")) {
        return sum_words(at, length, 0);
    }
    const size_t whole = length / STRIDE * STRIDE;
    return sum_words(at + whole, length - whole, sum_vectors(at, whole));
}

uint32_t helio_checksum_part(const void *data, size_t length) {
    return length < VECTORS_MIN ? sum_words(data, length, 0) : sum_long(data, length);
}
#else
uint32_t helio_checksum_part(const void *data, size_t length) {
    return helio_checksum_part_portable(data, length);
}
#endif
