#include "send/stability.h"

#include <inttypes.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "generated/options.h"

static helio_tx_stream_stats *stats_of(const helio_tx_stability *stability) {
    return stability->object->record;
}

int helio_tx_stability_init(helio_tx_stability *stability, bool is_on) {
    if (!is_on) {
        return 0;
    }
    stability->ends = calloc(helio_txw_capacity(stability->txw), sizeof *stability->ends);
    helio_tx_stream_stats *stats = stats_of(stability);
    helio_set(&stats->unstable_limit_messages, stability->limits.messages);
    helio_set(&stats->unstable_limit_bytes, stability->limits.bytes);
    return stability->ends ? 0 : HELIO_ERR_NOMEM;
}

size_t helio_tx_stability_memory(const helio_tx_stability *stability) {
    return stability->ends ? helio_txw_capacity(stability->txw) * sizeof *stability->ends : 0;
}

void helio_tx_stability_fini(helio_tx_stability *stability) {
    free(stability->ends);
    stability->ends = NULL;
}

void helio_tx_stability_release(helio_tx_stability *stability, uint64_t sequence, bool is_stable,
                                int64_t now_ns) {
    const uint64_t end = stability->ends[sequence & stability->txw->mask];
    helio_hdr *histogram = stability->object->histogram[HELIO_TX_STREAM_STABILITY_LATENCY];
    if (!is_stable) {
        stability->unconfirmed = sequence;
    } else if (histogram && end > stability->done) {
        const int64_t sent_ns = helio_txw_slot_of(stability->txw, sequence)->sent_ns;
        helio_record(histogram, now_ns - sent_ns, end - stability->done);
    }
    stability->done = end;
}

helio_admission helio_tx_stability_judge(const helio_tx_stability *stability,
                                         helio_tx_in_flight flight, uint64_t length) {
    const helio_tx_stability_limits *limits = &stability->limits;
    if (flight.messages == 0) {
        return HELIO_ADMIT_GO;
    }
    if (limits->messages > 0 && flight.messages >= limits->messages) {
        return HELIO_ADMIT_UNSTABLE_MESSAGES;
    }
    return limits->bytes > 0 && flight.bytes + length > limits->bytes ? HELIO_ADMIT_UNSTABLE_BYTES
                                                                      : HELIO_ADMIT_GO;
}

uint64_t helio_tx_stability_room(const helio_tx_stability *stability, helio_tx_in_flight flight) {
    const helio_tx_stability_limits *limits = &stability->limits;
    if (limits->action == HELIO_UNSTABLE_ACTION_REPORT) {
        return UINT64_MAX;
    }
    if (limits->bytes > 0) { /* lengths are not known here: each message is asked about */
        return 1;
    }
    return flight.messages < limits->messages ? limits->messages - flight.messages : 1;
}

static void tell(helio_tx_stability *stability, helio_tx_in_flight flight, helio_moment moment) {
    const bool is_of_messages = stability->at == HELIO_ADMIT_UNSTABLE_MESSAGES;
    const uint64_t limit = is_of_messages ? stability->limits.messages : stability->limits.bytes;
    helio_stats_event(
        stability->stats, moment.wall_ns, HELIO_EVENT_UNSTABLE_LIMIT, stability->object->slot,
        (const uint64_t[4]){flight.messages, flight.bytes, limit},
        "%s: %" PRIu64 " messages (%" PRIu64 " bytes) are not stable, at the limit %s=%" PRIu64,
        stability->label, flight.messages, flight.bytes,
        is_of_messages ? "unstable_messages" : "unstable_bytes", limit);
}

helio_admission helio_tx_stability_admit(helio_tx_stability *stability, helio_tx_in_flight flight,
                                         uint64_t length, helio_moment moment) {
    helio_tx_stream_stats *stats = stats_of(stability);
    const helio_admission at = helio_tx_stability_judge(stability, flight, length);
    if (at == HELIO_ADMIT_GO && stability->at == HELIO_ADMIT_GO) {
        return at;
    }
    if (stability->at != HELIO_ADMIT_GO) {
        helio_count(&stats->unstable_blocked_time, (uint64_t)(moment.now_ns - stability->since_ns));
    } else if (at != HELIO_ADMIT_GO) {
        helio_count(&stats->unstable_limits, 1);
    }
    stability->at = at;
    stability->length = length;
    stability->since_ns = moment.now_ns;
    helio_set(&stats->unstable_at_limit, at != HELIO_ADMIT_GO);
    if (at != HELIO_ADMIT_GO && moment.now_ns >= stability->event_after_ns) {
        stability->event_after_ns = moment.now_ns + HELIO_SECOND;
        tell(stability, flight, moment);
    }
    return at;
}
