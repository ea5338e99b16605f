#include "receive/ahead.h"

#include <string.h>

/* The first range that ends after `number`; count when there is none. */
static uint32_t find(const helio_ahead *ahead, uint64_t number) {
    uint32_t i = 0;
    while (i < ahead->count && ahead->ranges[i].end <= number) {
        i++;
    }
    return i;
}

bool helio_ahead_fits(const helio_ahead *ahead, uint64_t first, uint64_t count) {
    const uint32_t i = find(ahead, first);
    if (i < ahead->count && ahead->ranges[i].first < first + count) {
        return false; /* some are there */
    }
    const bool touches = (i > 0 && ahead->ranges[i - 1].end == first) ||
                         (i < ahead->count && ahead->ranges[i].first == first + count);
    return touches || ahead->count < HELIO_AHEAD_RANGES;
}

static void remove_range(helio_ahead *ahead, uint32_t i) {
    ahead->count--;
    memmove(&ahead->ranges[i], &ahead->ranges[i + 1], (ahead->count - i) * sizeof ahead->ranges[0]);
}

void helio_ahead_add(helio_ahead *ahead, uint64_t first, uint64_t count) {
    const uint32_t i = find(ahead, first);
    const uint64_t end = first + count;
    const bool joins_after = i < ahead->count && ahead->ranges[i].first == end;
    if (i > 0 && ahead->ranges[i - 1].end == first) {
        ahead->ranges[i - 1].end = joins_after ? ahead->ranges[i].end : end;
        if (joins_after) {
            remove_range(ahead, i);
        }
    } else if (joins_after) {
        ahead->ranges[i].first = first;
    } else {
        memmove(&ahead->ranges[i + 1], &ahead->ranges[i],
                (ahead->count - i) * sizeof ahead->ranges[0]);
        ahead->ranges[i].first = first;
        ahead->ranges[i].end = end;
        ahead->count++;
    }
}

bool helio_ahead_has(const helio_ahead *ahead, uint64_t number) {
    const uint32_t i = find(ahead, number);
    return i < ahead->count && ahead->ranges[i].first <= number;
}

uint64_t helio_ahead_run(const helio_ahead *ahead, uint64_t number) {
    const uint32_t i = find(ahead, number);
    if (i == ahead->count) {
        return UINT64_MAX;
    }
    return ahead->ranges[i].first <= number ? ahead->ranges[i].end : ahead->ranges[i].first;
}

void helio_ahead_trim(helio_ahead *ahead, uint64_t number) {
    while (ahead->count > 0 && ahead->ranges[0].end <= number) {
        remove_range(ahead, 0);
    }
    if (ahead->count > 0 && ahead->ranges[0].first < number) {
        ahead->ranges[0].first = number;
    }
}
