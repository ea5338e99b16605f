/* Between which bounds the difference of two monotonic clocks lies, from packets that carried a stamp.
 *
 * A packet arrives after it was sent.  So each one that goes there and tells its two stamps bounds the
 * difference (here - there) from below, `sent here - came there`, and each one that comes back bounds
 * it from above, `came here - sent there`; the bounds are as far off as the packet took.  Of all the
 * packets of a way the quickest counts: a bound is kept until a tighter one comes.  With time it widens
 * by what two clocks may drift, HELIO_CLOCK_DRIFT_PPM; since all widen alike, the tightest one stays
 * the tightest, and one is enough to keep.  That is the exchange of NTP with its filter for the
 * shortest delay (RFC 5905, 8 to 10), each way by itself, so that the quickest packets of the two
 * ways need not be of one exchange.
 *
 * Monotonic clocks are not set: a step of a wall clock disturbs nothing here (receive/clock.h).  When the
 * bounds cross all the same, a clock stood still or ran faster than assumed: what came last holds, the
 * rest is forgotten.
 *
 * All times are within 0 to HELIO_CLOCK_MONOTONIC_MAX, which the caller checks. */
#ifndef HELIO_RECEIVE_CLOCK_BOUNDS_H
#define HELIO_RECEIVE_CLOCK_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* What two clocks may drift apart: as much as two quartzes that nothing disciplines. */
#define HELIO_CLOCK_DRIFT_PPM INT64_C(100)
/* What reading the clocks and rounding may add. */
#define HELIO_CLOCK_PRECISION_NS INT64_C(1000)
#define HELIO_CLOCK_MONOTONIC_MAX (INT64_C(1) << 60) /* ns: 36 years of running */

typedef struct helio_clock_bounds {
    bool has_low;
    bool has_high;
    int64_t low_ns;  /* the difference was no less at low_at_ns */
    int64_t high_ns; /* and no more at high_at_ns */
    int64_t low_at_ns;
    int64_t high_at_ns;
} helio_clock_bounds;

typedef struct helio_clock_difference {
    int64_t ns;       /* here - there */
    int64_t bound_ns; /* it is off by no more */
} helio_clock_difference;

/* A packet was sent from here at `sent_ns` and came there at `came_ns` of the clock there. */
void helio_clock_bounds_went(helio_clock_bounds *bounds, int64_t sent_ns, int64_t came_ns);
/* A packet was sent there at `sent_ns` of the clock there and came here at `came_ns`. */
void helio_clock_bounds_came(helio_clock_bounds *bounds, int64_t sent_ns, int64_t came_ns);

/* What is known at `now_ns`.  False: there are not two bounds yet. */
bool helio_clock_bounds_read(const helio_clock_bounds *bounds, int64_t now_ns,
                             helio_clock_difference *out);
/* The bounds have crossed: something is wrong with what they were taken from. */
bool helio_clock_bounds_have_crossed(const helio_clock_bounds *bounds, int64_t now_ns);

#endif
