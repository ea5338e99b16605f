/* Small seeded generator (splitmix64): same seed, same run.  Not for secrets. */
#ifndef HELIO_BASE_RANDOM_H
#define HELIO_BASE_RANDOM_H

#include <stdint.h>

typedef struct helio_random {
    uint64_t state;
} helio_random;

static inline void helio_random_init(helio_random *random, uint64_t seed) {
    random->state = seed;
}

static inline uint64_t helio_random_next(helio_random *random) {
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Uniform from 0 to limit - 1; 0 when limit is 0. */
static inline uint64_t helio_random_below(helio_random *random, uint64_t limit) {
    return (uint64_t)(((unsigned __int128)helio_random_next(random) * limit) >> 64);
}

/* Uniform in [0, 1). */
static inline double helio_random_unit(helio_random *random) {
    return (double)(helio_random_next(random) >> 11) * 0x1p-53;
}

#endif
