/* How long a receiver delays a NAK, so that few of the receivers that miss the same packet request
 * it (docs/adr/0008-back-off.md).
 *
 * The interval T depends on the measured round trip d from a NAK to its confirmation, and on the
 * size G of the group.  Up to 8 receivers: T = 2d with a uniform draw, which requests soonest.
 * Beyond: T = 6d * max(1, ln G / 4) with a draw from a truncated exponential distribution (RFC 5401
 * 3.2.2), which keeps the number of NAKs near one for every G.
 *
 * A source may advise an interval (NAK_BO_IVL) and a range (NAK_BO_RNG).  The receiver limits the
 * advice from below to the interval found here, and from above to a ceiling.  So no advice makes it
 * always request at once, and none silences it.  Advice above 2d indicates a larger group.
 *
 * The only receiver of a source does not delay: it has a unicast endpoint, or the source answers it
 * by unicast (docs/adr/0041-repairs-by-unicast.md) and no larger group was given.  Times are ns. */
#ifndef HELIO_REPAIR_BACKOFF_H
#define HELIO_REPAIR_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

typedef struct helio_backoff_config {
    int64_t fixed_ns;    /* 0 or more: exactly this interval, uniform draw, no advice */
    uint32_t group_size; /* 0: not known */
    bool is_alone;       /* no other receiver gets this source's confirmations */
} helio_backoff_config;

typedef struct helio_backoff {
    helio_backoff_config config;
    int64_t round_trip_ns;  /* a guess until the first measurement */
    int64_t advised_ns;     /* 0: none */
    int64_t least_ns;       /* advised range; 0: none */
    int64_t most_ns;        /* advised range; 0: none */
    bool is_answered_alone; /* the source knows no other receiver now */
    int64_t interval_ns;    /* T now */
    double group_size;      /* G now */
} helio_backoff;

void helio_backoff_init(helio_backoff *backoff, const helio_backoff_config *config);
/* The smoothed round trip from a NAK to its confirmation. */
void helio_backoff_set_round_trip(helio_backoff *backoff, int64_t round_trip_ns);
/* The source's advice. */
void helio_backoff_advise(helio_backoff *backoff, int64_t interval_ns);
void helio_backoff_limit(helio_backoff *backoff, int64_t least_ns, int64_t most_ns);
/* Whether the source's last answer to a NAK went to this receiver alone, not to a group. */
void helio_backoff_answered(helio_backoff *backoff, bool is_alone);
/* A random time, from 0 to interval_ns. */
int64_t helio_backoff_draw(const helio_backoff *backoff, helio_random *random);

#endif
