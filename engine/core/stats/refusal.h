/* State refused or evicted because it had proven nothing, and one address or all together had
 * too many: counted by reason (instance.state_refused) and told once per burst. */
#ifndef HELIO_STATS_REFUSAL_H
#define HELIO_STATS_REFUSAL_H

#include <inttypes.h>

#include "base/burst.h"
#include "stats/stats.h"

/* The values of instance.state_refused, in its order. */
typedef enum helio_refusal {
    HELIO_REFUSAL_STREAMS_OF_ADDRESS,
    HELIO_REFUSAL_STREAMS,
    HELIO_REFUSAL_STREAM_MEMORY,
    HELIO_REFUSAL_RECEIVERS_OF_ADDRESS,
    HELIO_REFUSAL_RECEIVERS,
    HELIO_REFUSAL_CONNECTIONS_OF_ADDRESS,
    HELIO_REFUSAL_CONNECTIONS,
    HELIO_REFUSAL_NAKS_UNANSWERED,
    HELIO_REFUSAL_REPAIRS,
    HELIO_REFUSALS,
} helio_refusal;

/* Where it is counted and told. */
typedef struct helio_refusal_place {
    helio_stats *stats;
    helio_instance_stats *instance; /* NULL: nothing is counted or told */
    uint32_t slot;                  /* the object that events are of */
    const char *label;              /* the endpoint or stream, for people */
} helio_refusal_place;

/* `count` more were refused.  Returns where they are counted when this begins a burst and is to be
 * told, else NULL. */
static inline const _Atomic uint64_t *helio_refusal_count(helio_instance_stats *instance,
                                                          helio_refusal reason, uint64_t count,
                                                          helio_burst *burst, int64_t now_ns) {
    _Atomic uint64_t *cell = &(&instance->state_refused_streams_of_address)[reason];
    helio_count(cell, count);
    return helio_burst_begins(burst, now_ns) ? cell : NULL;
}

/* `count` more were refused; `what` says who, for people. */
static inline void helio_refuse(const helio_refusal_place *place, helio_refusal reason,
                                uint64_t count, helio_burst *burst, const char *what,
                                helio_moment moment) {
    if (!place->instance) {
        return;
    }
    const _Atomic uint64_t *refused =
        helio_refusal_count(place->instance, reason, count, burst, moment.now_ns);
    if (refused) {
        helio_stats_event(place->stats, moment.wall_ns, HELIO_EVENT_STATE_REFUSED, place->slot,
                          (const uint64_t[4]){reason, helio_cell(refused)}, "%s: %s", place->label,
                          what);
    }
}

#endif
