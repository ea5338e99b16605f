/* What a histogram has counted. */
#ifndef HELIO_TESTS_COUNTED_H
#define HELIO_TESTS_COUNTED_H

#include "stats/stats.h"

/* Values from low_ns to high_ns, to the bucket. */
static inline uint64_t count_between(const helio_hdr *histogram, int64_t low_ns, int64_t high_ns) {
    uint64_t count = 0;
    for (uint32_t i = helio_hdr_index(low_ns); i <= helio_hdr_index(high_ns); i++) {
        count += helio_cell(&histogram->counts[i]);
    }
    return count;
}

static inline uint64_t count_of(const helio_hdr *histogram) {
    return count_between(histogram, 0, HELIO_HDR_HIGHEST);
}

#endif
