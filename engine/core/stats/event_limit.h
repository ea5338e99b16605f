/* How many events may be told: for each kind of event a token bucket of its own, so that a storm of
 * one kind hides no other, and an exact count of those that were held back.
 *
 * In any span of t seconds a kind is told at most burst + rate * t times.  What is held back is
 * counted, never lost: one event events_suppressed tells how many of which kind, when the storm
 * eases (half the burst may be told again), every second while it lasts, and at the close.
 *
 * Times are wall clock, which may be set: one that went back gives no credit for the span, one that
 * leapt ahead gives one burst at most. */
#ifndef HELIO_STATS_EVENT_LIMIT_H
#define HELIO_STATS_EVENT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "generated/events.h"

enum { HELIO_EVENT_IDS_END = 256 }; /* ids are below */

typedef struct helio_event_kind {
    helio_bucket bucket; /* its "bytes" are events */
    uint64_t held;       /* suppressed and not reported yet */
    int64_t since_ns;    /* the first of them */
} helio_event_kind;

typedef struct helio_event_limit {
    uint32_t rate; /* events per second of a kind; 0: no limit */
    uint32_t burst;
    uint32_t kinds_held; /* how many kinds have some held back */
    helio_event_kind kinds[HELIO_EVENT_IDS_END];
} helio_event_limit;

/* Some of a kind that were held back. */
typedef struct helio_events_held {
    helio_event_id event;
    uint64_t count;
    int64_t span_ns; /* since the first of them; 0 when the clock went back */
} helio_events_held;

/* `burst`: at least 1. */
void helio_event_limit_init(helio_event_limit *limit, uint32_t rate, uint32_t burst,
                            int64_t wall_ns);
/* Whether one more of this kind may be told now; counted as held back if not. */
bool helio_event_limit_admit(helio_event_limit *limit, helio_event_id event, int64_t wall_ns);
/* The next kind to report now; it counts as reported.  `all`: also those not due. */
bool helio_event_limit_take(helio_event_limit *limit, bool all, int64_t wall_ns,
                            helio_events_held *out);

#endif
