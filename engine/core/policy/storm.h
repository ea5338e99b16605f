/* NAK storms: detection of recovery that has become an overload, and a brake for it.
 *
 * Repairs end the loss of a burst, and then recovery is over.  In a storm recovery does not end
 * although the offered load is back to normal: requests and repairs themselves fill the network,
 * so repairs are lost or late and are requested again.  A storm is detected when four conditions
 * hold in every slice of 50 ms (one slice may be missing) for the storm time:
 *
 *   - the offered load is at most the usual one (an average over some seconds; bursts hardly
 *     change it),
 *   - requests and repairs are a large part of all packets,
 *   - most of the requests are repeated requests,
 *   - neither the waiting repairs nor the requests decrease: there is no progress.
 *
 * Steady loss with working repairs has few repeats, a late receiver requests everything once, and
 * recovery after a burst makes progress; none of them is a storm.
 *
 * The brake is a cut-off: no receiver may request repairs for a short time, which ends
 * automatically.  If the storm persists soon after it, the next cut-off is twice as long, up to 5
 * s.  The storm is over when it was not detected for twice the storm time.
 *
 * A pure function of the intervals and of the numbers of repeated requests. */
#ifndef HELIO_POLICY_STORM_H
#define HELIO_POLICY_STORM_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/interval.h"

enum {
    HELIO_STORM_SLICES = 64,         /* most slices of a storm time */
    HELIO_STORM_PROGRESS_SLICES = 4, /* in which progress is to be seen */
};
#define HELIO_STORM_SLICE_NS (50 * HELIO_MILLISECOND)
#define HELIO_STORM_CUT_OFF_MAX_NS (5 * HELIO_SECOND)

typedef struct helio_storm_config {
    int64_t storm_ns;   /* it is one after this long; at least 3 slices */
    int64_t cut_off_ns; /* the first cut-off */
    bool enforces;      /* cut-offs happen */
} helio_storm_config;

typedef struct helio_storm_slice {
    uint64_t waiting; /* repairs, at its end */
    uint64_t naks;
} helio_storm_slice;

typedef struct helio_storm {
    helio_storm_config config;
    /* the slice under way */
    int64_t length_ns; /* of its intervals */
    uint64_t naks, again, repairs, packets, offered;
    uint64_t slice;                                       /* its number */
    helio_storm_slice ended[HELIO_STORM_PROGRESS_SLICES]; /* the last, a ring */
    /* the usual load */
    double usual;      /* offered bytes per second */
    int64_t learnt_ns; /* duration of the learning */
    /* what is seen */
    uint64_t seen;      /* a bit for each slice, the newest the lowest: it looked like a storm */
    uint32_t slices;    /* since the last cut-off was over, or the beginning */
    bool is_active;     /* there is a storm */
    int64_t since_ns;   /* it was first seen */
    int64_t last_ns;    /* it was last seen */
    int64_t cut_off_ns; /* of the last cut-off; 0: none in this storm */
    int64_t quiet_until_ns; /* what is seen before then is the cut-off's doing */
} helio_storm;

typedef struct helio_storm_decision {
    bool began;         /* there is a storm now */
    bool ended;         /* it is over */
    int64_t cut_off_ns; /* duration of the cut-off to begin; 0: none */
    int64_t lasted_ns;  /* since it was first seen */
    /* the evidence: of the last slice */
    double repeats; /* repeated requests as a share of all requests */
    double share;   /* of requests and repairs in all packets */
    double load;    /* offered load in relation to the usual */
} helio_storm_decision;

void helio_storm_init(helio_storm *storm, const helio_storm_config *config);

/* `again`: repeated requests within the interval, of all receivers together. */
helio_storm_decision helio_storm_decide(helio_storm *storm, const helio_interval *interval,
                                        uint64_t again);

#endif
