/* Circular 32-bit sequence numbers of the wire, and the 64-bit ones used inside.
 *
 * On the wire a is before b iff (int32)(a - b) < 0.  Inside, every number is widened once, next to
 * a number known to be near it, and from then on compared as a plain integer. */
#ifndef HELIO_BASE_SEQUENCE_H
#define HELIO_BASE_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Inside numbers start here, so that widening a number from before the start never goes below zero.
 */
#define HELIO_SEQUENCE_BASE (UINT64_C(1) << 32)

static inline bool helio_sequence_before(uint32_t a, uint32_t b) {
    return (int32_t)(a - b) < 0;
}

/* The number nearest to `near` whose low 32 bits are `sequence`. */
static inline uint64_t helio_sequence_widen(uint32_t sequence, uint64_t near) {
    return near + (uint64_t)(int64_t)(int32_t)(sequence - (uint32_t)near);
}

/* The first inside number of a sequence that starts at `sequence`. */
static inline uint64_t helio_sequence_start(uint32_t sequence) {
    return HELIO_SEQUENCE_BASE + sequence;
}

#endif
