/* How long a receiver holds a NAK back, so that of many who miss the same packet few ask for it
 * (docs/adr/0008-back-off.md).
 *
 * The interval T comes from the round trip d between a NAK and its confirmation, as measured here,
 * and from the size G of the group.  Up to 8 receivers: T = 2d, drawn evenly, which asks soonest.
 * Beyond: T = 6d * max(1, ln G / 4), drawn from a truncated exponential distribution (RFC 5401
 * 3.2.2), which keeps the number of NAKs near one whatever G is.
 *
 * A source may advise an interval (NAK_BO_IVL) and a range (NAK_BO_RNG).  Advice is followed
 * between the interval found here, so that none makes this receiver ask at once and always, and a
 * ceiling, so that none silences it.  Advice above 2d tells of a larger group.
 *
 * Who has the source for itself (unicast) holds nothing back.  Times are ns. */
#ifndef HELIO_REPAIR_BACKOFF_H
#define HELIO_REPAIR_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

typedef struct helio_backoff_config {
    int64_t fixed_ns;    /* not below 0: exactly this interval, drawn evenly, and no advice */
    uint32_t group_size; /* 0: not known */
    bool is_alone;       /* nobody else hears this source's confirmations */
} helio_backoff_config;

typedef struct helio_backoff {
    helio_backoff_config config;
    int64_t round_trip_ns; /* a guess until it was measured */
    int64_t advised_ns;    /* 0: nothing */
    int64_t least_ns;      /* range advised; 0: none */
    int64_t most_ns;       /* range advised; 0: none */
    int64_t interval_ns;   /* T, as it is now */
    double group_size;     /* G, as it is now */
} helio_backoff;

void helio_backoff_init(helio_backoff *backoff, const helio_backoff_config *config);
/* The smoothed round trip from a NAK to its confirmation. */
void helio_backoff_set_round_trip(helio_backoff *backoff, int64_t round_trip_ns);
/* The source's advice. */
void helio_backoff_advise(helio_backoff *backoff, int64_t interval_ns);
void helio_backoff_limit(helio_backoff *backoff, int64_t least_ns, int64_t most_ns);
/* A random time, from 0 to interval_ns. */
int64_t helio_backoff_draw(const helio_backoff *backoff, helio_random *random);

#endif
