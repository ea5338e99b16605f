/* Which packets have their latency measured: one in `every`, drawn at random, so that traffic with
 * a period of its own is not seen always at the same point of it.  The distances between two are
 * uniform from 1 to 2 * every - 1.  One for each instance, of the engine's thread. */
#ifndef HELIO_STATS_SAMPLER_H
#define HELIO_STATS_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

typedef struct helio_sampler {
    uint32_t every; /* at least 1 */
    uint32_t left;  /* packets to come, the one that is taken among them */
    helio_random random;
} helio_sampler;

static inline void helio_sampler_draw(helio_sampler *sampler) {
    const uint64_t span = 2 * (uint64_t)sampler->every - 1;
    sampler->left = (uint32_t)(1 + helio_random_below(&sampler->random, span));
}

static inline void helio_sampler_init(helio_sampler *sampler, uint32_t every, uint64_t seed) {
    *sampler = (helio_sampler){.every = every ? every : 1};
    helio_random_init(&sampler->random, seed);
    helio_sampler_draw(sampler);
}

/* Whether the packet at hand is one of them. */
static inline bool helio_sampler_takes(helio_sampler *sampler) {
    if (sampler->every == 1) {
        return true;
    }
    if (--sampler->left > 0) {
        return false;
    }
    helio_sampler_draw(sampler);
    return true;
}

#endif
