/* Bounds on the difference of two monotonic clocks, from packets that carried a stamp.
 *
 * A packet arrives after it was sent.  Each packet that goes there, with its two stamps, bounds the
 * difference (here - there) from below, `sent here - came there`; each one that comes back bounds
 * it from above, `came here - sent there`.  A bound is off by the time the packet took, so the
 * quickest packet of each direction counts: a bound is kept until a tighter one comes.  Bounds
 * widen with time by the largest drift of two clocks, HELIO_CLOCK_DRIFT_PPM; all widen alike, so
 * the tightest one stays the tightest and one is enough to keep.  This is the exchange of NTP with
 * its filter for the shortest delay (RFC 5905, 8 to 10), for each direction separately, so that the
 * quickest packets of the two directions need not belong to one exchange.
 *
 * Monotonic clocks are not set: a step of a wall clock has no effect here (clock.h).  When the
 * bounds cross, a clock stood still or ran faster than assumed: the last bound holds, the rest is
 * discarded.
 *
 * All times are within 0 to HELIO_CLOCK_MONOTONIC_MAX, which the caller checks. */
#ifndef HELIO_RECEIVE_CLOCK_BOUNDS_H
#define HELIO_RECEIVE_CLOCK_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* The largest drift between two clocks: two quartzes without discipline. */
#define HELIO_CLOCK_DRIFT_PPM INT64_C(100)
/* The error of reading the clocks and of rounding. */
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
    int64_t bound_ns; /* the largest error */
} helio_clock_difference;

/* A packet was sent from here at `sent_ns` and came there at `came_ns` of the clock there. */
void helio_clock_bounds_went(helio_clock_bounds *bounds, int64_t sent_ns, int64_t came_ns);
/* A packet was sent there at `sent_ns` of the clock there and came here at `came_ns`. */
void helio_clock_bounds_came(helio_clock_bounds *bounds, int64_t sent_ns, int64_t came_ns);

/* The difference at `now_ns`.  False: there are not two bounds yet. */
bool helio_clock_bounds_read(const helio_clock_bounds *bounds, int64_t now_ns,
                             helio_clock_difference *out);
/* The bounds have crossed: one of them came from a wrong stamp. */
bool helio_clock_bounds_have_crossed(const helio_clock_bounds *bounds, int64_t now_ns);

#endif
