#include "send/blame.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "send/parts.h"

#define LOOK_NS (100 * HELIO_MICROSECOND)
#define MILLION 1e6

int helio_tx_blame_init(helio_tx_blame *blame, uint32_t places, int64_t now_ns) {
    *blame = (helio_tx_blame){.places = places, .place = HELIO_PEER_NONE, .looked_ns = now_ns};
    blame->suspects = calloc(places, sizeof *blame->suspects);
    return blame->suspects ? 0 : HELIO_ERR_NOMEM;
}

void helio_tx_blame_fini(helio_tx_blame *blame) {
    free(blame->suspects);
    blame->suspects = NULL;
}

/* ---- who ---- */

static uint32_t holds_window(const helio_tx_stream *stream) {
    const helio_tx_follow *follow = &stream->follow;
    if (!helio_tx_follow_is_on(follow)) {
        return HELIO_PEER_NONE;
    }
    const uint64_t window = follow->limit.sequence;
    if (helio_tx_follow_send_limit(follow) < window) {
        return follow->pgmcc.acker;
    }
    return follow->limit.is_short ? HELIO_PEER_NONE : follow->limit.place;
}

static uint32_t holds_acks(const helio_tx_stream *stream) {
    const helio_acker *acker = helio_tx_acks_awaited(&stream->acks);
    return acker ? helio_peers_find(&stream->repairer.peers, acker->receiver) : HELIO_PEER_NONE;
}

static uint32_t holds_credit(const helio_tx_stream *stream) {
    const helio_tx_topic *topic = stream->topics.first;
    while (topic && !topic->credit.is_waiting) {
        topic = topic->next;
    }
    return topic && topic->credit.granted ? topic->credit.place : HELIO_PEER_NONE;
}

static uint32_t holds_rate(const helio_tx_stream *stream) {
    const helio_tx_govern *govern = &stream->govern;
    const uint64_t ceiling = helio_tx_slow_ceiling(&stream->slow);
    if (ceiling && govern->rate == ceiling) {
        return stream->slow.paced;
    }
    const bool is_lowered =
        !govern->policy->is_fixed && govern->config.mode == HELIO_RATE_MODE_ENFORCE &&
        (govern->config.rate.rate == 0 || govern->rate < govern->config.rate.rate);
    return is_lowered ? govern->decision.worst : HELIO_PEER_NONE;
}

static bool waits(const helio_tx_stream *stream) {
    return stream->pace.wait == HELIO_ADMIT_WINDOW || stream->pace.wait == HELIO_ADMIT_RATE ||
           stream->acks.blocked_ns || stream->credit_waits > 0;
}

static uint32_t held_by(const helio_tx_stream *stream) {
    if (stream->acks.blocked_ns) {
        return holds_acks(stream);
    }
    if (stream->pace.wait == HELIO_ADMIT_WINDOW) {
        return holds_window(stream);
    }
    if (stream->credit_waits > 0) {
        return holds_credit(stream);
    }
    return stream->pace.wait == HELIO_ADMIT_RATE ? holds_rate(stream) : HELIO_PEER_NONE;
}

/* ---- for how long ---- */

static helio_tx_suspect *suspect_of(helio_tx_stream *stream, uint32_t place) {
    helio_tx_suspect *suspect = &stream->blame.suspects[place];
    const uint32_t born = stream->repairer.peers.peers[place].born;
    if (suspect->born != born) {
        *suspect = (helio_tx_suspect){.born = born};
    }
    return suspect;
}

static bool is_there(const helio_tx_stream *stream, uint32_t place) {
    const helio_peers *peers = &stream->repairer.peers;
    return place < peers->count && (peers->views[place].flags & HELIO_VIEW_PRESENT);
}

static void charge(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_blame *blame = &stream->blame;
    const int64_t took_ns = now_ns - blame->since_ns;
    if (took_ns <= 0 || !is_there(stream, blame->place) ||
        stream->repairer.peers.peers[blame->place].born != blame->born) {
        return;
    }
    suspect_of(stream, blame->place)->blame_ns += (uint64_t)took_ns;
    helio_count(&helio_tx_stats(stream)->blame_time, (uint64_t)took_ns);
    helio_count(&helio_peers_stats(&stream->repairer.peers, blame->place)->blame_time,
                (uint64_t)took_ns);
}

void helio_tx_blame_look(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_blame *blame = &stream->blame;
    const bool was_held = blame->place != HELIO_PEER_NONE, is_held = waits(stream);
    if (!was_held && !is_held) {
        return;
    }
    if (was_held && is_held && now_ns - blame->since_ns < LOOK_NS) {
        return;
    }
    if (was_held) {
        charge(stream, now_ns);
    }
    const uint32_t place = is_held ? held_by(stream) : HELIO_PEER_NONE;
    blame->place = is_there(stream, place) ? place : HELIO_PEER_NONE;
    blame->born =
        blame->place == HELIO_PEER_NONE ? 0 : stream->repairer.peers.peers[blame->place].born;
    blame->since_ns = now_ns;
}

/* ---- how bad ---- */

static helio_behaviour class_of(const helio_tx_stream *stream, uint32_t place) {
    const helio_tx_slow *slow = &stream->slow;
    if (!slow->is_on || place >= slow->consumers.config.capacity) {
        return HELIO_BEHAVIOUR_UNKNOWN;
    }
    const helio_watch *watch = &slow->consumers.consumers[place].watch;
    return watch->receiver == stream->repairer.peers.views[place].receiver
               ? watch->class
               : HELIO_BEHAVIOUR_UNKNOWN;
}

/* One that does not report is at least as far behind as what it last asked for. */
static helio_badness_look look_at(helio_tx_stream *stream, uint32_t place) {
    const helio_receiver_view *view = &stream->repairer.peers.views[place];
    const uint64_t lead = stream->txw.lead;
    helio_badness_look look = {
        .view = view,
        .lead = lead,
        .history_packets = stream->txw.limit_packets,
    };
    helio_peers_take_peaks(&stream->repairer.peers, place, &look.lag_packets, &look.buffer_fill);
    if (!(view->flags & HELIO_VIEW_REPORTS) && view->missing && view->missing <= lead) {
        look.lag_packets = lead - view->missing + 1;
    }
    return look;
}

void helio_tx_blame_tend(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_blame *blame = &stream->blame;
    helio_peers *peers = &stream->repairer.peers;
    const int64_t length_ns = now_ns - blame->looked_ns;
    blame->looked_ns = now_ns;
    for (uint32_t place = 0; place < peers->count; place++) {
        if (!is_there(stream, place)) {
            continue;
        }
        helio_tx_suspect *suspect = suspect_of(stream, place);
        helio_badness_look look = look_at(stream, place);
        look.blame_ns = suspect->blame_ns;
        look.length_ns = length_ns;
        helio_badness_feed(&suspect->badness, &look);
        helio_set(&helio_peers_stats(peers, place)->badness,
                  (uint64_t)(MILLION * helio_tx_badness(stream, place)));
    }
}

uint64_t helio_tx_blame_ns(const helio_tx_stream *stream, uint32_t place) {
    const helio_tx_suspect *suspect = &stream->blame.suspects[place];
    return suspect->born == stream->repairer.peers.peers[place].born ? suspect->blame_ns : 0;
}

double helio_tx_badness(const helio_tx_stream *stream, uint32_t place) {
    const helio_tx_suspect *suspect = &stream->blame.suspects[place];
    static const helio_badness unknown;
    const bool is_known = suspect->born == stream->repairer.peers.peers[place].born;
    return helio_badness_of(is_known ? &suspect->badness : &unknown,
                            &stream->repairer.peers.views[place], class_of(stream, place));
}

helio_tx_trouble helio_tx_stream_trouble(const helio_tx_stream *stream, uint32_t place,
                                         int64_t now_ns) {
    const helio_receiver_view *view = &stream->repairer.peers.views[place];
    helio_tx_trouble trouble = {
        .blame_ns = helio_tx_blame_ns(stream, place),
        .nak_share = helio_peers_asked_share(&stream->repairer.peers, place),
        .badness = helio_tx_badness(stream, place),
    };
    if (view->position) {
        trouble.behind = helio_txw_behind_of(&stream->txw, view->position, now_ns);
    }
    if (class_of(stream, place) != HELIO_BEHAVIOUR_UNKNOWN) {
        const helio_symptoms *symptoms = &stream->slow.consumers.consumers[place].watch.symptoms;
        if (symptoms->until_ns && symptoms->forecast_ns != HELIO_NEVER) {
            trouble.forecast_ns = symptoms->forecast_ns > 0 ? symptoms->forecast_ns : 1;
        }
    }
    return trouble;
}
