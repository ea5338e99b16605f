/* The lesser and the greater of two numbers, and a number held between two others.  Of deadlines
 * the lesser is the earlier: HELIO_NEVER is the greatest.  For doubles there are fmin and fmax. */
#ifndef HELIO_BASE_MATH_H
#define HELIO_BASE_MATH_H

#include <stdint.h>

static inline int64_t helio_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t helio_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* `low` where both bounds contradict each other. */
static inline int64_t helio_clamp(int64_t value, int64_t low, int64_t high) {
    return helio_max(helio_min(value, high), low);
}

static inline uint64_t helio_umin(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t helio_umax(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

#endif
