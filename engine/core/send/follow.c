#include "send/follow.h"

#include "base/math.h"
#include "base/sequence.h"
#include "generated/options.h"
#include "send/govern.h"
#include "send/parts.h"

static helio_window_rule rule_of(int window) {
    return window == HELIO_FLOW_WINDOW_MAX   ? HELIO_WINDOW_MAX
           : window == HELIO_FLOW_WINDOW_MIN ? HELIO_WINDOW_MIN
                                             : HELIO_WINDOW_TAGGED;
}

static void show(helio_tx_stream *stream) {
    const helio_tx_follow *follow = &stream->follow;
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    const uint64_t limit = helio_tx_follow_send_limit(follow);
    helio_set(&stats->send_room, limit == UINT64_MAX        ? 0
                                 : limit > stream->txw.lead ? limit - stream->txw.lead
                                                            : 0);
    if (follow->runs_pgmcc || follow->pgmcc.cuts > 0) {
        helio_set(&stats->pgmcc_window, follow->runs_pgmcc ? (uint64_t)follow->pgmcc.window : 0);
        helio_set(&stats->pgmcc_cuts, follow->pgmcc.cuts);
    }
}

/* ---- what is asked for ---- */

/* A quarter of a window is told once; small changes of it are not worth an SPM. */
static bool is_other(uint32_t wanted, uint32_t asked) {
    return (wanted == 0) != (asked == 0) || wanted / 2 > asked || asked / 2 > wanted;
}

static void ask(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_follow *follow = &stream->follow;
    const helio_receiver_view *acker =
        follow->runs_pgmcc ? helio_receivers_view(&stream->repairer.receivers, follow->pgmcc.acker)
                           : NULL;
    const uint64_t receiver = acker ? acker->receiver : 0;
    if (receiver == follow->acker && !is_other(follow->limit.progress, follow->progress)) {
        return;
    }
    follow->acker = receiver;
    follow->progress = follow->limit.progress;
    /* However often it changes, as it may by forged reports, the rate's envelope holds; heartbeats
     * say it, too. */
    if (stream->has_opened && !stream->has_finished &&
        helio_tx_pace_takes_control(&stream->pace, 0, now_ns)) {
        helio_tx_send_spm(stream, now_ns);
    }
}

bool helio_tx_follow_has_asked(const helio_tx_follow *follow, uint64_t receiver) {
    return follow->progress > 0 || (follow->acker != 0 && follow->acker == receiver);
}

/* ---- windows ---- */

/* Whether anybody is there for PGMCC to follow.  Returns when that, or its timeout, is next to be
 * looked at. */
static int64_t look_for_reporters(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_follow *follow = &stream->follow;
    follow->is_alone = false;
    if (!follow->runs_pgmcc) {
        return HELIO_NEVER;
    }
    const int64_t timeout_ns = helio_pgmcc_next_deadline_ns(&follow->pgmcc);
    if (follow->pgmcc.acker != HELIO_RECEIVER_NONE) {
        return timeout_ns;
    }
    const int64_t alone_ns = follow->reported_ns + helio_tx_reports_silence_ns(&stream->reports);
    follow->is_alone = now_ns >= alone_ns;
    return follow->is_alone ? HELIO_NEVER : helio_min(timeout_ns, alone_ns);
}

static void look(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_follow *follow = &stream->follow;
    const int64_t timeout_ns = look_for_reporters(stream, moment.now_ns);
    follow->due_ns = timeout_ns;
    if (follow->config.window == HELIO_FLOW_WINDOW_NONE) {
        follow->limit =
            (helio_window_limit){.sequence = HELIO_WINDOW_NO_LIMIT, .index = HELIO_RECEIVER_NONE};
        return;
    }
    uint32_t entries;
    const helio_receiver_view *views = helio_receivers_views(&stream->repairer.receivers, &entries);
    const helio_window_config config = {rule_of(follow->config.window), follow->config.least,
                                        follow->config.silence_ns};
    follow->limit = helio_window_limit_of(&config, views, entries, stream->txw.lead, moment.now_ns);
    if (follow->limit.index < entries) {
        follow->due_ns =
            helio_min(timeout_ns, views[follow->limit.index].heard_ns + config.silence_ns);
    }
}

static void settle(helio_tx_stream *stream, helio_moment moment) {
    look(stream, moment);
    ask(stream, moment.now_ns);
    helio_tx_govern_limit(stream);
    show(stream);
}

uint64_t helio_tx_follow_send_limit(const helio_tx_follow *follow) {
    const uint64_t window = follow->limit.sequence;
    if (!follow->runs_pgmcc || !follow->obeys_pgmcc || follow->is_alone) {
        return window;
    }
    const uint64_t pgmcc = helio_pgmcc_send_limit(&follow->pgmcc);
    return pgmcc < window ? pgmcc : window;
}

/* ---- PGMCC ---- */

/* The round trip of the packet an acknowledgement is for: from when it was sent, unless a repair
 * was, too. */
static int64_t measured(const helio_tx_stream *stream, uint64_t sequence, int64_t now_ns) {
    if (!helio_txw_has(&stream->txw, sequence)) {
        return 0;
    }
    const helio_txw_slot *slot = helio_txw_slot_of(&stream->txw, sequence);
    return slot->repairs == 0 && now_ns > slot->sent_ns ? now_ns - slot->sent_ns : 0;
}

static void feed(helio_tx_stream *stream, helio_receiver_index index,
                 const helio_pgm_packet *packet, helio_moment moment) {
    helio_pgmcc *pgmcc = &stream->follow.pgmcc;
    const helio_receiver_view *view = helio_receivers_view(&stream->repairer.receivers, index);
    if (!view || !(view->flags & HELIO_VIEW_REPORTS)) {
        return;
    }
    if (view->flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED | HELIO_VIEW_LEFT)) {
        helio_pgmcc_on_gone(pgmcc, index);
        return;
    }
    stream->follow.reported_ns = moment.now_ns;
    if (stream->follow.is_alone) { /* what was sent until now is nothing to go by */
        helio_pgmcc_init(pgmcc, stream->txw.lead);
    }
    const uint64_t newest = helio_sequence_widen(packet->sequence, stream->txw.lead);
    const bool is_ack = packet->type == HELIO_PGM_TYPE_ACK && (packet->bitmap & 1);
    const helio_pgmcc_feedback feedback = {
        .index = index,
        .loss = helio_receivers_mean_loss(&stream->repairer.receivers, index),
        .round_trip_ns = helio_receivers_mean_round_trip_ns(&stream->repairer.receivers, index),
        .is_ack = is_ack,
        .newest = newest,
        .bitmap = packet->bitmap,
        .measured_ns =
            is_ack && index == pgmcc->acker ? measured(stream, newest, moment.now_ns) : 0,
    };
    helio_pgmcc_on_sent(pgmcc, stream->txw.lead, moment.now_ns);
    helio_pgmcc_on_feedback(pgmcc, &feedback, moment.now_ns);
}

/* ---- life ---- */

void helio_tx_follow_init(helio_tx_stream *stream, const helio_tx_follow_config *config,
                          helio_moment moment) {
    stream->follow = (helio_tx_follow){.config = *config, .due_ns = HELIO_NEVER};
    helio_pgmcc_init(&stream->follow.pgmcc, stream->txw.lead);
    look(stream, moment);
}

void helio_tx_stream_set_window(helio_tx_stream *stream, int window, helio_moment moment) {
    stream->follow.config.window = window;
    settle(stream, moment);
}

void helio_tx_follow_set_pgmcc(helio_tx_stream *stream, bool runs, bool obeys,
                               helio_moment moment) {
    helio_tx_follow *follow = &stream->follow;
    follow->obeys_pgmcc = obeys;
    if (runs && !follow->runs_pgmcc) {
        helio_pgmcc_init(&follow->pgmcc, stream->txw.lead);
        follow->reported_ns = moment.now_ns;
    }
    follow->runs_pgmcc = runs;
    settle(stream, moment);
}

void helio_tx_follow_on_feedback(helio_tx_stream *stream, helio_receiver_index index,
                                 const helio_pgm_packet *packet, helio_moment moment) {
    if (!helio_tx_follow_is_on(&stream->follow)) {
        return;
    }
    if (stream->follow.runs_pgmcc) {
        feed(stream, index, packet, moment);
    }
    settle(stream, moment);
}

void helio_tx_follow_poll(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_follow *follow = &stream->follow;
    if (!helio_tx_follow_is_on(follow)) {
        return;
    }
    bool has_changed = false;
    if (follow->runs_pgmcc && !follow->is_alone) {
        const int64_t due_ns = helio_pgmcc_next_deadline_ns(&follow->pgmcc);
        if (stream->txw.lead != follow->pgmcc.lead) {
            helio_pgmcc_on_sent(&follow->pgmcc, stream->txw.lead, moment.now_ns);
        }
        has_changed = helio_pgmcc_poll(&follow->pgmcc, moment.now_ns) ||
                      helio_pgmcc_next_deadline_ns(&follow->pgmcc) != due_ns;
    }
    if (has_changed || moment.now_ns >= follow->due_ns) {
        settle(stream, moment);
    }
}
