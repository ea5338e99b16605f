#include "send/blame.h"

#include "send/parts.h"

#define LOOK_NS (100 * HELIO_MICROSECOND)
#define MILLION 1e6

void helio_tx_blame_init(helio_tx_blame *blame, int64_t now_ns) {
    *blame = (helio_tx_blame){.index = HELIO_RECEIVER_NONE, .looked_ns = now_ns};
}

/* ---- the receiver waited for ---- */

static helio_receiver_index holds_window(const helio_tx_stream *stream) {
    const helio_tx_follow *follow = &stream->follow;
    if (!helio_tx_follow_is_on(follow)) {
        return HELIO_RECEIVER_NONE;
    }
    const uint64_t window = follow->limit.sequence;
    if (helio_tx_follow_send_limit(follow) < window) {
        return follow->pgmcc.acker;
    }
    return follow->limit.is_short ? HELIO_RECEIVER_NONE : follow->limit.index;
}

static helio_receiver_index holds_acks(const helio_tx_stream *stream) {
    const helio_acker *acker = helio_tx_acks_awaited(&stream->acks);
    return acker ? helio_receivers_acknowledging(&stream->repairer.receivers, acker->receiver,
                                                 &acker->address)
                 : HELIO_RECEIVER_NONE;
}

static helio_receiver_index holds_credit(const helio_tx_stream *stream) {
    const helio_tx_topic *topic = stream->topics.first;
    while (topic && !topic->credit.is_waiting) {
        topic = topic->next;
    }
    return topic && topic->credit.granted ? topic->credit.index : HELIO_RECEIVER_NONE;
}

static helio_receiver_index holds_rate(const helio_tx_stream *stream) {
    const helio_tx_govern *govern = &stream->govern;
    const uint64_t ceiling = helio_tx_slow_ceiling(&stream->slow);
    if (ceiling && govern->rate == ceiling) {
        return stream->slow.paced;
    }
    const bool is_lowered =
        !govern->policy->is_fixed && govern->config.mode == HELIO_RATE_MODE_ENFORCE &&
        (govern->config.rate.rate == 0 || govern->rate < govern->config.rate.rate);
    return is_lowered ? govern->decision.worst : HELIO_RECEIVER_NONE;
}

static bool waits(const helio_tx_stream *stream) {
    return stream->pace.wait == HELIO_ADMIT_WINDOW || stream->pace.wait == HELIO_ADMIT_RATE ||
           stream->acks.blocked_ns || stream->acks.stability.at != HELIO_ADMIT_GO ||
           stream->credit_waits > 0;
}

static helio_receiver_index held_by(const helio_tx_stream *stream) {
    if (stream->acks.blocked_ns || stream->acks.stability.at != HELIO_ADMIT_GO) {
        return holds_acks(stream);
    }
    if (stream->pace.wait == HELIO_ADMIT_WINDOW) {
        return holds_window(stream);
    }
    if (stream->credit_waits > 0) {
        return holds_credit(stream);
    }
    return stream->pace.wait == HELIO_ADMIT_RATE ? holds_rate(stream) : HELIO_RECEIVER_NONE;
}

/* ---- the time of the wait ---- */

static helio_tx_blamed *blamed(const helio_tx_stream *stream, helio_receiver_index index) {
    return helio_receivers_state(&stream->repairer.receivers, index);
}

static bool is_there(const helio_tx_stream *stream, helio_receiver_index index) {
    const helio_receivers *receivers = &stream->repairer.receivers;
    return index < receivers->count && (receivers->views[index].flags & HELIO_VIEW_PRESENT);
}

static void charge(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_blame *blame = &stream->blame;
    const int64_t took_ns = now_ns - blame->since_ns;
    if (took_ns <= 0 ||
        !helio_receivers_is(&stream->repairer.receivers, blame->index, blame->born)) {
        return;
    }
    blamed(stream, blame->index)->blame_ns += (uint64_t)took_ns;
    helio_count(&helio_tx_stats(stream)->blame_time, (uint64_t)took_ns);
    helio_count(&helio_receivers_stats(&stream->repairer.receivers, blame->index)->blame_time,
                (uint64_t)took_ns);
}

void helio_tx_blame_look(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_blame *blame = &stream->blame;
    const bool was_held = blame->index != HELIO_RECEIVER_NONE, is_held = waits(stream);
    if (!was_held && !is_held) {
        return;
    }
    if (was_held && is_held && now_ns - blame->since_ns < LOOK_NS) {
        return;
    }
    if (was_held) {
        charge(stream, now_ns);
    }
    const helio_receiver_index index = is_held ? held_by(stream) : HELIO_RECEIVER_NONE;
    blame->index = is_there(stream, index) ? index : HELIO_RECEIVER_NONE;
    blame->born = blame->index == HELIO_RECEIVER_NONE
                      ? 0
                      : stream->repairer.receivers.entries[blame->index].born;
    blame->since_ns = now_ns;
}

/* ---- badness ---- */

static helio_behaviour class_of(const helio_tx_stream *stream, helio_receiver_index index) {
    const helio_tx_slow *slow = &stream->slow;
    if (!slow->is_on || index >= slow->receivers.config.capacity) {
        return HELIO_BEHAVIOUR_UNKNOWN;
    }
    const helio_watch *watch = &slow->receivers.receivers[index].watch;
    return watch->receiver == stream->repairer.receivers.views[index].receiver
               ? watch->class
               : HELIO_BEHAVIOUR_UNKNOWN;
}

/* A receiver without reports is at least as far behind as the packet it requested last. */
static helio_badness_look look_at(helio_tx_stream *stream, helio_receiver_index index) {
    const helio_receiver_view *view = &stream->repairer.receivers.views[index];
    const uint64_t lead = stream->txw.lead;
    helio_badness_look look = {
        .view = view,
        .lead = lead,
        .history_packets = stream->txw.limit_packets,
    };
    helio_receivers_take_peaks(&stream->repairer.receivers, index, &look.lag_packets,
                               &look.buffer_fill);
    if (!(view->flags & HELIO_VIEW_REPORTS) && view->missing && view->missing <= lead) {
        look.lag_packets = lead - view->missing + 1;
    }
    return look;
}

void helio_tx_blame_tend(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_blame *blame = &stream->blame;
    helio_receivers *receivers = &stream->repairer.receivers;
    const int64_t length_ns = now_ns - blame->looked_ns;
    blame->looked_ns = now_ns;
    for (helio_receiver_index index = 0; index < receivers->count; index++) {
        if (!is_there(stream, index)) {
            continue;
        }
        helio_tx_blamed *state = blamed(stream, index);
        helio_badness_look look = look_at(stream, index);
        look.blame_ns = state->blame_ns;
        look.length_ns = length_ns;
        helio_badness_feed(&state->badness, &look);
        helio_set(&helio_receivers_stats(receivers, index)->badness,
                  (uint64_t)(MILLION * helio_tx_badness(stream, index)));
    }
}

uint64_t helio_tx_blame_ns(const helio_tx_stream *stream, helio_receiver_index index) {
    return blamed(stream, index)->blame_ns;
}

double helio_tx_badness(const helio_tx_stream *stream, helio_receiver_index index) {
    return helio_badness_of(&blamed(stream, index)->badness,
                            &stream->repairer.receivers.views[index], class_of(stream, index));
}

helio_tx_trouble helio_tx_stream_trouble(const helio_tx_stream *stream, helio_receiver_index index,
                                         int64_t now_ns) {
    const helio_receiver_view *view = &stream->repairer.receivers.views[index];
    helio_tx_trouble trouble = {
        .blame_ns = helio_tx_blame_ns(stream, index),
        .nak_share = helio_receivers_asked_share(&stream->repairer.receivers, index),
        .badness = helio_tx_badness(stream, index),
    };
    if (view->position) {
        trouble.behind = helio_txw_behind_of(&stream->txw, view->position, now_ns);
    }
    trouble.class = class_of(stream, index);
    if (trouble.class != HELIO_BEHAVIOUR_UNKNOWN) {
        const helio_watch *watch = &stream->slow.receivers.receivers[index].watch;
        trouble.outlook = watch->outlook;
        if (watch->outlook == HELIO_OUTLOOK_AHEAD) {
            trouble.forecast_ns = watch->left_ns > 0 ? watch->left_ns : 1;
        }
    }
    return trouble;
}
