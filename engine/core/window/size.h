/* How many packets a window holds. */
#ifndef HELIO_WINDOW_SIZE_H
#define HELIO_WINDOW_SIZE_H

#include "base/bits.h"

enum {
    HELIO_WINDOW_PACKETS_MIN = 16,
    /* Entries of a table indexed by packet that are used at first: few pages, and in the cache. */
    HELIO_WINDOW_SPREAD_MIN = 64,
};

/* Packets of a window that is to hold `wanted`: a power of two, so that a number's place is a mask
 * away. */
static inline uint64_t helio_window_packets(uint64_t wanted) {
    return helio_round_up_power_of_two(wanted < HELIO_WINDOW_PACKETS_MIN ? HELIO_WINDOW_PACKETS_MIN
                                                                         : wanted);
}

/* The index mask with which a table indexed by packet begins; `mask`: that of the whole table. */
static inline uint64_t helio_window_spread(uint64_t mask) {
    return mask < HELIO_WINDOW_SPREAD_MIN ? mask : HELIO_WINDOW_SPREAD_MIN - 1;
}

#endif
