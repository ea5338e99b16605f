/* Something that may happen very often is told once per burst: the first time, and again when it
 * has not happened for HELIO_BURST_NS.  The count goes on meanwhile, in a statistic. */
#ifndef HELIO_BASE_BURST_H
#define HELIO_BASE_BURST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"

#define HELIO_BURST_NS (10 * HELIO_SECOND)

typedef struct helio_burst {
    int64_t quiet_ns; /* monotonic; the burst is over then.  0: there was none yet */
} helio_burst;

/* It happens now.  True: this begins a burst, so it is to be told. */
static inline bool helio_burst_begins(helio_burst *burst, int64_t now_ns) {
    const bool begins = now_ns >= burst->quiet_ns;
    burst->quiet_ns = now_ns + HELIO_BURST_NS;
    return begins;
}

#endif
