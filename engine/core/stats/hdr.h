/* Latency histogram in HdrHistogram's own layout (Gil Tene): the counts array of a histogram of 3
 * significant digits from 1 ns to 60 s.  It lives in memory its owner gives it (the stats segment,
 * a merge buffer); see docs/segment.md 4.
 *
 * One writer; counts only grow, so any number of readers can take differences without stopping
 * it. */
#ifndef HELIO_STATS_HDR_H
#define HELIO_STATS_HDR_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HELIO_HDR_MAGIC = 0x48445231,
    HELIO_HDR_DIGITS = 3,
    HELIO_HDR_CELLS = 27648,
    HELIO_HDR_PART_SHIFT = 9, /* a part has 512 cells, which is a page of memory */
};
#define HELIO_HDR_LOWEST INT64_C(1)
#define HELIO_HDR_HIGHEST INT64_C(60000000000)

typedef struct helio_hdr {
    uint32_t magic;
    uint32_t digits;
    int64_t lowest;
    int64_t highest;
    uint32_t cells;
    uint32_t cell_bytes;
    _Atomic uint64_t above;
    _Atomic uint64_t negative;
    _Atomic uint64_t sum;
    _Atomic uint64_t used; /* bit n: cells of part n have counted; readers skip the others */
    _Atomic uint64_t counts[HELIO_HDR_CELLS];
} helio_hdr;

/* Index of a value from 0 to HELIO_HDR_HIGHEST. */
static inline uint32_t helio_hdr_index(int64_t value) {
    const int shift = 53 - __builtin_clzll((uint64_t)value | 2047u);
    return ((uint32_t)shift << 10) + (uint32_t)((uint64_t)value >> shift);
}

static inline void helio_hdr_bump(_Atomic uint64_t *cell, uint64_t by) {
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

static inline void helio_hdr_use(helio_hdr *hdr, uint32_t index) {
    const uint64_t part = UINT64_C(1) << (index >> HELIO_HDR_PART_SHIFT);
    const uint64_t used = atomic_load_explicit(&hdr->used, memory_order_relaxed);
    if (__builtin_expect(!(used & part), 0)) {
        atomic_store_explicit(&hdr->used, used | part, memory_order_relaxed);
    }
}

/* Counts `count` values.  Values out of range are counted apart, so that nothing is lost
 * silently. */
static inline void helio_hdr_record(helio_hdr *hdr, int64_t value, uint64_t count) {
    if (value < 0) {
        helio_hdr_bump(&hdr->negative, count);
    } else if (value > HELIO_HDR_HIGHEST) {
        helio_hdr_bump(&hdr->above, count);
    } else {
        const uint32_t index = helio_hdr_index(value);
        helio_hdr_use(hdr, index);
        helio_hdr_bump(&hdr->counts[index], count);
        helio_hdr_bump(&hdr->sum, (uint64_t)value * count);
    }
}

/* Writes the parameters of an empty histogram; the memory must be zero. */
static inline void helio_hdr_init(helio_hdr *hdr) {
    hdr->magic = HELIO_HDR_MAGIC;
    hdr->digits = HELIO_HDR_DIGITS;
    hdr->lowest = HELIO_HDR_LOWEST;
    hdr->highest = HELIO_HDR_HIGHEST;
    hdr->cells = HELIO_HDR_CELLS;
    hdr->cell_bytes = sizeof hdr->counts[0];
}

#endif
