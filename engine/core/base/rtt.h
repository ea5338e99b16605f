/* The estimator of round trips of RFC 6298, section 2: a smoothed round trip, its variance and the
 * timeout that follows.  Bounds of the timeout are the caller's. */
#ifndef HELIO_BASE_RTT_H
#define HELIO_BASE_RTT_H

#include <stdint.h>

typedef struct helio_rtt {
    /* 0: nothing was measured. */
    int64_t smoothed_ns;
    int64_t variance_ns;
} helio_rtt;

/* Takes a measured round trip, of 1 ns or more. */
static inline void helio_rtt_measure(helio_rtt *rtt, int64_t measured_ns) {
    if (rtt->smoothed_ns == 0) {
        *rtt = (helio_rtt){.smoothed_ns = measured_ns, .variance_ns = measured_ns / 2};
        return;
    }
    const int64_t off_ns = measured_ns - rtt->smoothed_ns;
    rtt->variance_ns += ((off_ns < 0 ? -off_ns : off_ns) - rtt->variance_ns) / 4;
    rtt->smoothed_ns += off_ns / 8;
}

static inline int64_t helio_rtt_timeout_ns(const helio_rtt *rtt) {
    return rtt->smoothed_ns + 4 * rtt->variance_ns;
}

#endif
