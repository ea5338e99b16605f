/* Two marks with hysteresis: what rises to `high` is above until it is back at `low` or under it,
 * so each crossing is told once, however much the value trembles. */
#ifndef HELIO_BASE_MARK_H
#define HELIO_BASE_MARK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct helio_mark {
    uint64_t high; /* 0: off */
    uint64_t low;  /* at most high */
    bool is_above;
} helio_mark;

/* True when the value has crossed a mark; is_above says which way. */
static inline bool helio_mark_cross(helio_mark *mark, uint64_t value) {
    const bool is_above =
        mark->high > 0 && (mark->is_above ? value > mark->low : value >= mark->high);
    const bool has_crossed = is_above != mark->is_above;
    mark->is_above = is_above;
    return has_crossed;
}

#endif
