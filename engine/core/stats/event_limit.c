#include "stats/event_limit.h"

#include "base/moment.h"

#define TELL_NS HELIO_SECOND

#define X(NAME, name, id, SEVERITY, arguments, help) \
    _Static_assert(id < HELIO_EVENT_IDS_END, "every kind has a place");
HELIO_EVENTS(X)
#undef X

void helio_event_limit_init(helio_event_limit *limit, uint32_t rate, uint32_t burst,
                            int64_t wall_ns) {
    *limit = (helio_event_limit){.rate = rate, .burst = burst};
    /* A bucket lets something pass at a credit of 0, so its depth is one less than the burst. */
    for (int id = 0; id < HELIO_EVENT_IDS_END; id++) {
        helio_bucket_init(&limit->kinds[id].bucket, rate, burst - 1, wall_ns);
    }
}

/* Events on behalf of a person, and those about the limit itself, are never suppressed. */
static bool is_exempt(helio_event_id event) {
    switch (event) {
    case HELIO_EVENT_INSTANCE_STARTED:
    case HELIO_EVENT_INSTANCE_STOPPED:
    case HELIO_EVENT_COMMAND:
    case HELIO_EVENT_COMMAND_REFUSED:
    case HELIO_EVENT_EVENTS_SUPPRESSED:
    case HELIO_EVENT_LEVEL_CHANGED:
    case HELIO_EVENT_LEVEL_REVERTED:
        return true;
    default:
        return false;
    }
}

/* Events of the kind that may be told now. */
static uint64_t credit_of(helio_event_kind *kind, int64_t wall_ns) {
    if (wall_ns < kind->bucket.filled_ns) {
        kind->bucket.filled_ns = wall_ns; /* the clock was set back: credit grows from here on */
    }
    return helio_bucket_credit(&kind->bucket, wall_ns);
}

bool helio_event_limit_admit(helio_event_limit *limit, helio_event_id event, int64_t wall_ns) {
    if (!limit->rate || is_exempt(event)) {
        return true;
    }
    helio_event_kind *kind = &limit->kinds[event];
    if (credit_of(kind, wall_ns) > 0) {
        helio_bucket_charge(&kind->bucket, 1);
        return true;
    }
    if (kind->held++ == 0) {
        kind->since_ns = wall_ns;
        limit->kinds_held++;
    }
    return false;
}

static bool is_due(helio_event_limit *limit, helio_event_kind *kind, int64_t wall_ns) {
    if (wall_ns < kind->since_ns) {
        kind->since_ns = wall_ns;
    }
    return wall_ns - kind->since_ns >= TELL_NS ||
           credit_of(kind, wall_ns) > (uint64_t)limit->burst / 2;
}

bool helio_event_limit_take(helio_event_limit *limit, bool all, int64_t wall_ns,
                            helio_events_held *out) {
    for (int id = 0; limit->kinds_held > 0 && id < HELIO_EVENT_IDS_END; id++) {
        helio_event_kind *kind = &limit->kinds[id];
        if (kind->held == 0 || (!is_due(limit, kind, wall_ns) && !all)) {
            continue;
        }
        *out = (helio_events_held){
            .event = (helio_event_id)id, .count = kind->held, .span_ns = wall_ns - kind->since_ns};
        kind->held = 0;
        limit->kinds_held--;
        return true;
    }
    return false;
}
