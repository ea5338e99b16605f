/* The Internet checksum: every way of summing agrees with the sum of 16-bit words (RFC 1071). */
#include "wire/checksum.h"

#include "base/random.h"
#include "check.h"

enum { LENGTH_MAX = 2048, ALIGNMENTS = 64, LARGE = 200000, ROUNDS = 20000 };

static uint8_t data[LARGE + ALIGNMENTS];

static void fill(uint64_t seed) {
    helio_random random;
    helio_random_init(&random, seed);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)helio_random_next(&random);
    }
}

/* Word by word, folded. */
static uint16_t expected(const uint8_t *at, size_t length) {
    uint64_t sum = 0;
    for (size_t i = 0; i < length; i += 2) {
        uint16_t word = 0; /* a last odd byte is padded with zero */
        memcpy(&word, at + i, length - i < sizeof word ? length - i : sizeof word);
        sum += word;
    }
    while (sum >> 16) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    return (uint16_t)sum;
}

static void check(const uint8_t *at, size_t length) {
    const uint16_t sum = expected(at, length);
    const uint32_t best = helio_checksum_part(at, length);
    const uint32_t portable = helio_checksum_part_portable(at, length);
    if (helio_checksum_fold(best) != sum || helio_checksum_fold(portable) != sum) {
        CHECK_FAIL("%zu bytes: %x and %x, not %x", length, (unsigned)helio_checksum_fold(best),
                   (unsigned)helio_checksum_fold(portable), (unsigned)sum);
    }
}

static void all_ways_agree_at_every_length_and_alignment(void) {
    fill(1);
    for (size_t alignment = 0; alignment < ALIGNMENTS; alignment++) {
        for (size_t length = 0; length <= LENGTH_MAX; length++) {
            check(data + alignment, length);
        }
    }
}

static void they_agree_on_random_data(void) {
    helio_random random;
    helio_random_init(&random, 2);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t word = helio_random_next(&random);
        const size_t at = helio_random_below(&random, LENGTH_MAX);
        memcpy(data + at, &word, sizeof word);
        check(data + helio_random_below(&random, ALIGNMENTS),
              helio_random_below(&random, LENGTH_MAX));
    }
}

/* Sums that are 0, all ones, or as large as they can be. */
static void they_agree_on_extremes(void) {
    static const uint8_t bytes[] = {0x00, 0xFF, 0x80, 0x7F, 0x01};
    for (size_t i = 0; i < sizeof bytes; i++) {
        memset(data, bytes[i], sizeof data);
        for (size_t length = 0; length <= LENGTH_MAX; length++) {
            check(data, length);
        }
        for (size_t length = 65000; length <= 66000; length++) {
            check(data, length);
        }
        check(data, LARGE);
    }
}

static void parts_of_even_length_add_up(void) {
    fill(3);
    for (size_t first = 0; first <= LENGTH_MAX; first += 2) {
        const uint32_t sum =
            helio_checksum_add(helio_checksum_part(data, first),
                               helio_checksum_part(data + first, LENGTH_MAX + 1 - first));
        CHECK_EQUAL(helio_checksum_fold(sum), expected(data, LENGTH_MAX + 1));
    }
}

int main(void) {
    RUN(all_ways_agree_at_every_length_and_alignment);
    RUN(they_agree_on_random_data);
    RUN(they_agree_on_extremes);
    RUN(parts_of_even_length_add_up);
    return check_result();
}
