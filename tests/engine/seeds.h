/* A simulation that is run for many seeds: `--seeds N` how many, `--first N` from which on. */
#ifndef HELIO_TEST_SEEDS_H
#define HELIO_TEST_SEEDS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS_ARE_DEAR = 1 };
#else
enum { SEEDS_ARE_DEAR = 0 };
#endif

typedef struct seeds {
    uint64_t count, first;
} seeds;

static inline seeds seeds_from(int argc, char **argv, uint64_t usual, uint64_t when_dear) {
    seeds found = {.count = SEEDS_ARE_DEAR ? when_dear : usual, .first = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seeds") == 0) {
            found.count = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--first") == 0) {
            found.first = strtoull(argv[i + 1], NULL, 10);
        }
    }
    return found;
}

/* Runs every seed up to one that fails, and names that one. */
static inline bool seeds_hold(const char *program, seeds seeds, bool (*holds)(uint64_t seed)) {
    for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; seed++) {
        if (!holds(seed)) {
            fprintf(stderr, "failed with: %s --first %" PRIu64 " --seeds 1\n", program, seed);
            return false;
        }
    }
    return true;
}

#endif
