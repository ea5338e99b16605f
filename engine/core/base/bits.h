/* Powers of two. */
#ifndef HELIO_BASE_BITS_H
#define HELIO_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool helio_is_power_of_two(uint64_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

/* The smallest power of two that is at least `value`; 1 for 0.  `value` is at most 2^63. */
static inline uint64_t helio_round_up_power_of_two(uint64_t value) {
    return value < 2 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(value - 1));
}

/* `value` rounded up to a multiple of `step`, a power of two. */
static inline uint64_t helio_round_up(uint64_t value, uint64_t step) {
    return (value + step - 1) & ~(step - 1);
}

#endif
