#include "send/admit.h"

#include "base/math.h"
#include "send/parts.h"

#define CAUSE(waits_for, advice)                                \
    {waits_for, "the message waits for " waits_for "; " advice, \
     "the submit queue is full, and its messages wait for " waits_for "; " advice}

const helio_admission_words helio_admission_text[HELIO_ADMISSIONS] = {
    [HELIO_ADMIT_GO] = CAUSE("nothing", "try again"),
    [HELIO_ADMIT_ROOM] = CAUSE("room in the channel", "try again when receivers have read some"),
    [HELIO_ADMIT_REPAIRS] = CAUSE("repairs, which go first", "try again soon"),
    [HELIO_ADMIT_HISTORY] =
        CAUSE("acknowledgements: the history is full", "poll the instance or wait, and try again"),
    [HELIO_ADMIT_RATE] = {"the rate", "rate limited",
                          "the submit queue is full, and its messages wait for the rate; "
                          "send less, or raise option rate"},
    [HELIO_ADMIT_INSTANCE_RATE] = {"the instance's rate", "rate limited by the instance's rate",
                                   "the submit queue is full, and its messages wait for the "
                                   "instance's rate; send less, or raise it"},
    [HELIO_ADMIT_WINDOW] =
        CAUSE("receivers (the send limit)", "poll the instance or wait, and try again"),
    [HELIO_ADMIT_CREDIT] =
        CAUSE("credit of receivers (await_credit)", "poll the instance or wait, and try again"),
    [HELIO_ADMIT_ACKERS] = {"receivers that acknowledge",
                            "fewer receivers acknowledge than option acks requires",
                            "fewer receivers acknowledge than option acks requires"},
    [HELIO_ADMIT_QUEUE] = {"the engine", "messages sent before this one wait; try again",
                           "the submit queue is full; try again when the engine has sent some"},
    [HELIO_ADMIT_MEMORY] = {"memory",
                            "the instance has no memory left for the message (memory_limit)",
                            "the instance has no memory left for the message (memory_limit)"},
    [HELIO_ADMIT_UNSTABLE_MESSAGES] =
        CAUSE("a quorum: as many messages as unstable_messages allows are not stable",
              "poll the instance or wait, and try again"),
    [HELIO_ADMIT_UNSTABLE_BYTES] =
        CAUSE("a quorum: as many bytes as unstable_bytes allows are not stable",
              "poll the instance or wait, and try again"),
};

/* Something waits that goes before data and could leave.  Without a rate nothing bounds what
 * repairs take, and whoever asks on and on would stop the stream: its lane holds data back, for a
 * while. */
static bool is_behind(const helio_tx_stream *stream, int64_t now_ns) {
    return (helio_repairer_has_work(&stream->repairer) && helio_tx_pace_has_rate(&stream->pace) &&
            helio_tx_pace_repair_ready_ns(&stream->pace) <= now_ns) ||
           helio_tx_announcement_is_due(stream, now_ns);
}

helio_admission helio_tx_admit_packet(helio_tx_stream *stream, uint64_t sequence,
                                      helio_moment moment) {
    const helio_admission answer = helio_tx_pace_admit(
        &stream->pace, sequence, is_behind(stream, moment.now_ns), moment.now_ns);
    if (answer != HELIO_ADMIT_GO || stream->blame.index != HELIO_RECEIVER_NONE) {
        helio_tx_blame_look(stream, moment.now_ns);
    }
    const int64_t ready_ns = helio_tx_pace_ready_ns(&stream->pace);
    if (answer != HELIO_ADMIT_GO && ready_ns != HELIO_NEVER) {
        helio_heartbeat_hold(&stream->heartbeat, helio_max(ready_ns, moment.now_ns));
    }
    return answer;
}

/* Packets that a message takes, the one that may be open included. */
static uint64_t packets_of(const helio_tx_stream *stream, size_t length) {
    const size_t head = HELIO_TSDU_HEADER + helio_tsdu_message_header_bytes(length);
    const size_t whole = stream->batcher.tsdu_bytes;
    const size_t part = whole - (HELIO_PGM_FRAGMENT_HEADER - HELIO_PGM_DATA_HEADER);
    const uint64_t own = head + length <= whole ? 1 : (head + length + part - 1) / part;
    return own + (stream->batcher.tsdu != NULL);
}

static helio_admission admit_rate(helio_tx_stream *stream, const helio_tx_topic *topic,
                                  size_t length, helio_moment moment) {
    return helio_batcher_joins(&stream->batcher, &topic->position, length)
               ? HELIO_ADMIT_GO
               : helio_tx_admit_packet(
                     stream, stream->txw.lead + 1 + (stream->batcher.tsdu != NULL), moment);
}

static helio_tx_in_flight in_flight(const helio_tx_stream *stream) {
    const helio_batcher *batcher = &stream->batcher;
    return helio_tx_acks_in_flight(&stream->acks, batcher->tsdu ? batcher->count : 0,
                                   batcher->tsdu ? batcher->used : 0);
}

static helio_admission admit_unstable(helio_tx_stream *stream, size_t length, helio_moment moment) {
    helio_tx_stability *stability = &stream->acks.stability;
    if (!helio_tx_stability_has_limits(stability)) {
        return HELIO_ADMIT_GO;
    }
    const helio_admission answer =
        helio_tx_stability_admit(stability, in_flight(stream), length, moment);
    return stability->limits.action == HELIO_UNSTABLE_ACTION_REPORT ? HELIO_ADMIT_GO : answer;
}

helio_admission helio_tx_stream_refusal(const helio_tx_stream *stream) {
    const helio_tx_stability *stability = &stream->acks.stability;
    if (helio_tx_acks_is_refusing(&stream->acks)) {
        return HELIO_ADMIT_ACKERS;
    }
    if (!helio_tx_stability_has_limits(stability) ||
        stability->limits.action != HELIO_UNSTABLE_ACTION_REFUSE) {
        return HELIO_ADMIT_GO;
    }
    return stability->at != HELIO_ADMIT_GO
               ? stability->at
               : helio_tx_stability_judge(stability, in_flight(stream), 1);
}

helio_admission helio_tx_stream_admit(helio_tx_stream *stream, helio_tx_topic *topic, size_t length,
                                      helio_moment moment) {
    if (stream->config.awaits_credit && helio_tx_stream_credit(stream, topic) == 0) {
        helio_tx_stream_wait_for_credit(stream, topic, moment);
        return HELIO_ADMIT_CREDIT;
    }
    if (stream->pace.is_on || stream->pace.wait != HELIO_ADMIT_GO) { /* a wait may be over */
        const helio_admission answer = admit_rate(stream, topic, length, moment);
        if (answer != HELIO_ADMIT_GO) {
            return answer;
        }
    }
    if (stream->config.acks == 0) {
        return HELIO_ADMIT_GO;
    }
    return helio_tx_acks_has_room(&stream->acks, packets_of(stream, length), moment)
               ? admit_unstable(stream, length, moment)
               : HELIO_ADMIT_HISTORY;
}

size_t helio_tx_admit_run(const helio_tx_stream *stream, const helio_tx_topic *topic,
                          size_t count) {
    uint64_t may = count;
    if (stream->config.awaits_credit) {
        may = helio_umin(may, helio_tx_stream_credit(stream, topic));
    }
    const helio_tx_stability *stability = &stream->acks.stability;
    if (helio_tx_stability_has_limits(stability)) {
        may = helio_umin(may, helio_tx_stability_room(stability, in_flight(stream)));
    }
    return (size_t)may;
}

size_t helio_tx_stream_room(const helio_tx_stream *stream) {
    return stream->batcher.tsdu ? stream->batcher.tsdu_bytes - stream->batcher.used : 0;
}

bool helio_tx_stream_is_gated(const helio_tx_stream *stream) {
    return stream->config.acks > 0 || stream->config.awaits_credit || stream->pace.is_on ||
           stream->pace.wait != HELIO_ADMIT_GO;
}
