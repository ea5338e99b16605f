/* Feedback at the source: NAKs and the NCFs that answer them, ACKs, SPMRs, answers to polls.  It comes
 * from the network, so it is checked here before anything acts on it. */
#include <string.h>

#include "base/sequence.h"
#include "send/parts.h"

/* ---- the receiver and its report ---- */

#define CLOCK_MAX_NS (INT64_C(1) << 62)
#define TEND_RECEIVERS_NS (100 * HELIO_MILLISECOND)

static void count_report(helio_tx_stream *stream, helio_report_result result) {
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    helio_count(&stats->reports_received, 1);
    switch (result) {
    case HELIO_REPORT_TAKEN:
        break;
    case HELIO_REPORT_ELSEWHERE:
        helio_count(&stats->reports_refused_elsewhere, 1);
        break;
    case HELIO_REPORT_IMPOSSIBLE:
        helio_count(&stats->reports_refused_impossible, 1);
        break;
    case HELIO_REPORT_STALE:
        helio_count(&stats->reports_refused_stale, 1);
        break;
    case HELIO_REPORT_NO_ROOM:
        helio_count(&stats->reports_refused_no_room, 1);
        break;
    }
}

/* A receiver that has not reported yet acknowledges from another address. */
static bool acknowledges_elsewhere(const helio_tx_stream *stream, uint64_t receiver,
                                   const helio_address *from, int64_t now_ns) {
    return helio_receivers_whereabouts(&stream->repairer.receivers, receiver, from, now_ns) ==
               HELIO_WHEREABOUTS_UNKNOWN &&
           helio_acks_is_elsewhere(&stream->acks.registry, receiver, from, now_ns);
}

/* Who has received nothing learns the topics of a silent stream by an announcement, which is due at
 * most once an interval. */
static void greet_newcomer(helio_tx_stream *stream, const helio_pgm_receiver_report *told) {
    if (told->received == 0 && !(told->flags & HELIO_PGM_RECEIVER_REPORT_LEAVING)) {
        stream->has_news = !stream->config.is_raw;
    }
}

/* Processes the report of a packet, if any, and returns the index of its receiver.  *is_proven: the
 * report was taken.  A sender whose report is refused counts as the receiver at its address. */
static uint32_t identify(helio_tx_stream *stream, const helio_pgm_packet *packet,
                         const helio_address *from, bool *is_proven, helio_moment moment) {
    helio_receivers *receivers = &stream->repairer.receivers;
    helio_receiver_index index = HELIO_RECEIVER_NONE;
    *is_proven = false;
    helio_report_result result = HELIO_REPORT_TAKEN;
    if ((packet->options & HELIO_PGM_HAS_REPORT) && packet->receiver_report.receiver != 0) {
        const helio_report_context context = {
            .start = helio_sequence_start(stream->config.first_sequence),
            .lead = stream->txw.lead,
            .history = &stream->txw,
            .now_us = helio_tx_stamp(moment.now_ns),
        };
        result =
            acknowledges_elsewhere(stream, packet->receiver_report.receiver, from, moment.now_ns)
                ? HELIO_REPORT_ELSEWHERE
                : helio_receivers_on_report(receivers, &packet->receiver_report, from, &context,
                                            moment, &index);
        count_report(stream, result);
        *is_proven = result == HELIO_REPORT_TAKEN;
        if (*is_proven) {
            greet_newcomer(stream, &packet->receiver_report);
        }
    }
    if (index == HELIO_RECEIVER_NONE) {
        index = helio_receivers_discover(receivers, from, moment);
    }
    stream->traffic.feedback++;
    helio_receiver_view *view = helio_receivers_view(receivers, index);
    if (view && result != HELIO_REPORT_IMPOSSIBLE) {
        view->heard_ns = moment.now_ns;
        view->flags |= HELIO_VIEW_NEWS;
    }
    helio_set(&helio_tx_stats(stream)->receivers, receivers->count - receivers->vacant);
    return index;
}

/* A report came alone: when there are too many, receivers are notified at once. */
static void limit_reports(helio_tx_stream *stream, helio_receiver_index index,
                          helio_moment moment) {
    const helio_receiver_view *view = helio_receivers_view(&stream->repairer.receivers, index);
    const int64_t round_trip_ns = view ? view->round_trip_ns : 0;
    if (view && helio_tx_follow_has_asked(&stream->follow, view->receiver)) {
        return;
    }
    if (helio_tx_reports_on_report(&stream->reports, round_trip_ns, moment.now_ns)) {
        stream->repairer.receivers.silence_ns = helio_tx_reports_silence_ns(&stream->reports);
        helio_tx_send_spm(stream, moment.now_ns);
    }
}

void helio_tx_tend_reports(helio_tx_stream *stream, int64_t now_ns) {
    helio_tx_reports_poll(&stream->reports, stream->txw.lead, now_ns);
    if (now_ns < stream->tend_receivers_ns) {
        return;
    }
    stream->tend_receivers_ns = now_ns + TEND_RECEIVERS_NS;
    helio_tx_blame_tend(stream, now_ns);
    helio_tx_tend_credit(stream, now_ns);
    stream->repairer.receivers.silence_ns = helio_tx_reports_silence_ns(&stream->reports);
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    helio_set(&stats->receivers_reporting,
              helio_receivers_tend(&stream->repairer.receivers, now_ns));
    helio_set(&stats->report_interval, (uint64_t)stream->reports.interval_ns);
}

helio_receiver_view *helio_tx_stream_views(helio_tx_stream *stream, uint32_t *entries) {
    return helio_receivers_views(&stream->repairer.receivers, entries);
}

const helio_address *helio_tx_stream_receiver(helio_tx_stream *stream, helio_receiver_index index,
                                              const char **name, double *loss) {
    const helio_receiver_entry *entry = &stream->repairer.receivers.entries[index];
    *name = entry->name;
    *loss = helio_receivers_loss(&stream->repairer.receivers, index);
    return &entry->address;
}

/* ---- NAK, NNAK ---- */

/* Fan-out: bits of the destinations that a NAK comes from.  It has the destination as its receiver
 * knows it: group NLA and data-destination port.  Other implementations may send the first host, so
 * the source address counts too.  Without a match all destinations count. */
static uint64_t askers_of(const helio_tx_stream *stream, const helio_pgm_packet *nak,
                          const helio_address *from) {
    uint64_t told = 0, seen = 0;
    for (uint32_t i = 0; i < stream->destinations_count; i++) {
        const helio_address *at = &stream->destinations[i];
        if (helio_address_same_ip(at, &nak->group) && at->port == nak->destination_port) {
            told |= UINT64_C(1) << i;
        }
        if (helio_address_same_ip(at, from)) {
            seen |= UINT64_C(1) << i;
        }
    }
    return told ? told : seen ? seen : UINT64_MAX;
}

/* Confirms these sequences of a NAK to all receivers of confirmations, or to the sender `alone`. */
static void confirm(helio_tx_stream *stream, const helio_pgm_packet *nak, const uint32_t *sequences,
                    size_t count, uint64_t askers, const helio_address *alone,
                    helio_moment moment) {
    if (count == 0) {
        return;
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const size_t length = helio_pgm_encode_nak_with(packet, &stream->session, HELIO_PGM_TYPE_NCF,
                                                    sequences, count, &nak->source, &nak->group,
                                                    helio_tx_advised_us(stream), NULL, NULL);
    if (!helio_tx_pace_takes_control(&stream->pace, length, moment.now_ns)) {
        helio_count(&helio_tx_stats(stream)->nak_confirmations_withheld, 1);
        return;
    }
    helio_count(&helio_tx_stats(stream)->nak_confirmations_sent, 1);
    if (alone && stream->is_group) {
        helio_tx_send_to(stream, alone, packet, length, false);
    } else {
        helio_tx_send_to_askers(stream, askers, packet, length, false);
    }
}

static bool is_repaired_at(const helio_txw *txw, uint32_t requested, int64_t now_ns) {
    const uint64_t sequence = helio_sequence_widen(requested, txw->lead);
    if (!helio_txw_has(txw, sequence)) {
        return false;
    }
    const helio_txw_slot *slot = helio_txw_slot_of(txw, sequence);
    return slot->repairs > 0 && !slot->queued && slot->repaired_ns == now_ns;
}

/* Repairs for the only receiver of the stream leave at once.  Each confirms its request: there is no
 * other receiver whose request a confirmation would hold back. */
static void repair_at_once(helio_tx_stream *stream, helio_repair_answer *answer,
                           helio_moment moment) {
    helio_tx_send_repairs(stream, moment);
    size_t left = 0;
    for (size_t i = 0; i < answer->confirmed_count; i++) {
        if (!is_repaired_at(&stream->txw, answer->confirmed[i], moment.now_ns)) {
            answer->confirmed[left++] = answer->confirmed[i];
        }
    }
    answer->confirmed_count = left;
}

/* The NLAs of a NAK or NNAK are those of this stream. */
static bool is_addressed_to(const helio_tx_stream *stream, const helio_pgm_packet *nak) {
    return !stream->is_group || (helio_address_same_ip(&nak->source, &stream->config.address) &&
                                 helio_address_same_ip(&nak->group, &stream->config.group));
}

static void on_nak(helio_tx_stream *stream, const helio_pgm_packet *nak, const helio_address *from,
                   helio_moment moment) {
    if (!is_addressed_to(stream, nak)) {
        helio_pgm_count_refusal(stream->instance, HELIO_PGM_BAD_ADDRESS);
        return;
    }
    if (nak->flags & HELIO_PGM_FLAG_PARITY) { /* none was offered */
        helio_pgm_count_refusal(stream->instance, HELIO_PGM_BAD_OPTIONS);
        return;
    }
    const uint64_t askers = askers_of(stream, nak, from);
    bool is_proven;
    helio_tx_blame_look(stream, moment.now_ns); /* before what it says ends the wait */
    const uint32_t asker = identify(stream, nak, from, &is_proven, moment);
    helio_repair_answer answer;
    helio_repairer_on_nak(&stream->repairer, nak, asker, askers, moment, &answer);
    if (answer.only && answer.confirmed_count > 0) {
        repair_at_once(stream, &answer, moment);
    }
    confirm(stream, nak, answer.confirmed, answer.confirmed_count, askers, answer.only, moment);
    confirm(stream, nak, answer.shed, answer.shed_count, askers, from, moment);
    if (stream->is_group) {
        helio_set(&helio_tx_stats(stream)->nak_backoff_advised,
                  (uint64_t)helio_tx_advised_us(stream) * HELIO_MICROSECOND);
    }
    helio_count(&stream->instance->nak_packets_received, 1);
    helio_count(&stream->instance->naks_received, answer.naks);
    stream->traffic.naks += answer.naks;
    helio_tx_follow_on_feedback(stream, asker, nak, moment);
}

/* A repairer on the way reports a repair of its own; it is counted. */
static void on_nnak(helio_tx_stream *stream, const helio_pgm_packet *nnak) {
    if (is_addressed_to(stream, nnak)) {
        helio_count(&helio_tx_stats(stream)->nnaks_received, 1);
    } else {
        helio_pgm_count_refusal(stream->instance, HELIO_PGM_BAD_ADDRESS);
    }
}

/* ---- POLR, SPMR ---- */

static void on_polr(helio_tx_stream *stream, const helio_pgm_packet *polr) {
    if (helio_polling_on_answer(&stream->polling, polr->sequence, polr->poll.round)) {
        helio_count(&helio_tx_stats(stream)->poll_responses_received, 1);
    }
}

static void on_spmr(helio_tx_stream *stream, helio_moment moment) {
    helio_count(&helio_tx_stats(stream)->heartbeat_requests_received, 1);
    if (moment.now_ns < stream->answer_after_ns ||
        !helio_tx_pace_takes_control(&stream->pace, 0, moment.now_ns)) {
        return;
    }
    stream->answer_after_ns = moment.now_ns + stream->config.heartbeat_min_ns;
    helio_tx_open(stream, moment.now_ns);
    helio_tx_send_spm(stream, moment.now_ns);
}

/* ---- ACK ---- */

static void count_ack(helio_tx_stream *stream, helio_receiver_index index, const helio_acker *heard,
                      helio_moment moment) {
    helio_receivers_reach(&stream->repairer.receivers, index, heard->position);
    helio_tx_receiver_stats *cells = helio_receivers_stats(&stream->repairer.receivers, index);
    if (!cells) {
        return;
    }
    helio_stats_begin(cells);
    helio_receivers_apply(&stream->repairer.receivers, index, HELIO_HAS_ACKS);
    helio_count(&cells->acks_received, 1);
    helio_set(&cells->acked_position, heard->position);
    helio_set(&cells->ack_lag, stream->txw.lead - heard->position);
    helio_set(&cells->last_feedback, (uint64_t)moment.wall_ns);
    helio_stats_end(cells);
}

/* Whether an acknowledgement is within its receiver's limit.  *is_out: it does not count. */
static bool is_granted(helio_tx_stream *stream, helio_receiver_index index, helio_moment moment,
                       bool *is_out) {
    helio_receivers *receivers = &stream->repairer.receivers;
    helio_allowances *allowances = &receivers->allowances;
    *is_out = false;
    if (allowances->limits.acks == 0 && allowances->restricted == 0) {
        return true;
    }
    helio_allowance *allowance = helio_receivers_allowance(receivers, index);
    *is_out = helio_action_leaves_out((helio_action)allowance->action);
    if (helio_allowance_grants_ack(allowances, allowance, moment.now_ns)) {
        return true;
    }
    helio_count(&helio_tx_stats(stream)->acks_shed, 1);
    helio_tx_receiver_stats *cells = helio_receivers_stats(receivers, index);
    if (cells) {
        helio_count(&cells->acks_shed, 1);
    }
    return false;
}

/* Shows the clock offset that a receiver reports, and processes its request for the time. */
static void on_clock(helio_tx_stream *stream, const helio_pgm_packet *ack,
                     helio_receiver_index index, helio_moment moment) {
    const helio_pgm_clock *told = &ack->clock;
    const bool is_known =
        (told->source == HELIO_PGM_CLOCK_HOST || told->source == HELIO_PGM_CLOCK_EXCHANGE) &&
        told->offset_ns < CLOCK_MAX_NS && told->offset_ns > -CLOCK_MAX_NS &&
        told->bound_ns < (uint64_t)CLOCK_MAX_NS;
    helio_tx_receiver_stats *cells = helio_receivers_stats(&stream->repairer.receivers, index);
    if (cells) {
        helio_stats_begin(cells);
        helio_set(&cells->clock_source, is_known ? told->source : HELIO_PGM_CLOCK_UNKNOWN);
        helio_set(&cells->clock_offset, is_known ? (uint64_t)told->offset_ns : HELIO_STATS_ABSENT);
        helio_set(&cells->clock_error_bound, is_known ? told->bound_ns : HELIO_STATS_ABSENT);
        helio_stats_end(cells);
    }
    helio_tx_clock_on_question(&stream->clocks, ack->receiver_report.receiver, told->token,
                               told->source == HELIO_PGM_CLOCK_UNKNOWN, moment);
}

static void on_acknowledge(helio_tx_stream *stream, const helio_pgm_packet *ack,
                           const helio_address *from, helio_receiver_index index,
                           helio_moment moment) {
    helio_receivers *receivers = &stream->repairer.receivers;
    const uint64_t receiver = ack->acknowledge.receiver;
    const helio_whereabouts whereabouts =
        helio_receivers_whereabouts(receivers, receiver, from, moment.now_ns);
    helio_tx_acks_sender sender = {
        .from = from,
        .is_vouched = whereabouts == HELIO_WHEREABOUTS_HERE,
        .is_elsewhere = whereabouts == HELIO_WHEREABOUTS_ELSEWHERE,
    };
    if (!is_granted(stream, index, moment, &sender.is_out)) {
        return;
    }
    helio_acker heard;
    const helio_acks_result result =
        helio_tx_acks_on_ack(&stream->acks, ack, &sender, moment, &heard);
    if (result == HELIO_ACKS_ELSEWHERE && sender.is_elsewhere) {
        helio_receivers_report_conflict(receivers, helio_receivers_find(receivers, receiver), from,
                                        moment);
    }
    if (!helio_acks_is_taken(result)) {
        return;
    }
    helio_receivers_prove(receivers, index, moment);
    if (result != HELIO_ACKS_REPEATED && stream->config.on_ack) {
        stream->config.on_ack(stream->outlet.context, &heard);
    }
    count_ack(stream, index, &heard, moment);
}

/* With an acknowledgement, a report, or both. */
static void on_ack(helio_tx_stream *stream, const helio_pgm_packet *ack, const helio_address *from,
                   helio_moment moment) {
    bool is_proven;
    helio_tx_blame_look(stream, moment.now_ns); /* before what it says ends the wait */
    const helio_receiver_index index = identify(stream, ack, from, &is_proven, moment);
    helio_tx_follow_on_feedback(stream, index, ack, moment);
    if (is_proven && (ack->options & HELIO_PGM_HAS_CLOCK)) {
        on_clock(stream, ack, index, moment);
    }
    const bool goes_further = (ack->options & HELIO_PGM_HAS_GRANT) &&
                              helio_tx_on_grants(stream, ack, index, is_proven, moment);
    if (is_proven && (ack->receiver_report.flags & HELIO_PGM_RECEIVER_REPORT_LEAVING)) {
        helio_tx_tend_credit(stream, moment.now_ns);
    }
    if (!(ack->options & HELIO_PGM_HAS_ACKNOWLEDGE)) {
        /* The interval does not limit goodbyes, nor grants that let the source go on. */
        if (!(ack->receiver_report.flags & HELIO_PGM_RECEIVER_REPORT_LEAVING) && !goes_further) {
            limit_reports(stream, index, moment);
        }
        return;
    }
    on_acknowledge(stream, ack, from, index, moment);
}

uint32_t helio_tx_stream_acked_by(const helio_tx_stream *stream, uint64_t sequence) {
    return helio_acks_count(&stream->acks.registry, sequence);
}

bool helio_tx_stream_acked_message(const helio_tx_stream *stream, const helio_tx_topic *topic,
                                   const helio_acker *acker, uint64_t *number) {
    return helio_tx_acks_message(&stream->acks, topic, acker, number);
}

const helio_acker *helio_tx_stream_acker(const helio_tx_stream *stream, uint32_t i) {
    const helio_acks *registry = &stream->acks.registry;
    return i < registry->count ? helio_acks_at(registry, i) : NULL;
}

/* ---- packets of all types ---- */

void helio_tx_stream_read_at(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_clock_see(&stream->clocks, moment);
}

void helio_tx_stream_on_packet(helio_tx_stream *stream, const void *datagram, size_t length,
                               const helio_address *from, helio_moment moment) {
    helio_count(&stream->instance->packets_received, 1);
    helio_count(&stream->instance->packet_bytes_received, length);
    helio_pgm_packet packet;
    const helio_pgm_refusal refusal = helio_pgm_decode(datagram, length, &packet);
    if (refusal) {
        helio_pgm_count_refusal(stream->instance, refusal);
        return;
    }
    const bool is_mine = helio_tsi_equal(&packet.tsi, &stream->config.tsi) && !stream->has_finished;
    if (is_mine && stream->repairer.receivers.allowances.expelled > 0 &&
        helio_tx_is_expelled(stream, &packet, from)) {
        helio_count(&helio_tx_stats(stream)->feedback_expelled, 1);
    } else if (is_mine && packet.type == HELIO_PGM_TYPE_NAK) {
        on_nak(stream, &packet, from, moment);
    } else if (is_mine && packet.type == HELIO_PGM_TYPE_ACK &&
               (packet.options & (HELIO_PGM_HAS_ACKNOWLEDGE | HELIO_PGM_HAS_REPORT))) {
        on_ack(stream, &packet, from, moment);
    } else if (is_mine && packet.type == HELIO_PGM_TYPE_SPMR) {
        on_spmr(stream, moment);
    } else if (is_mine && packet.type == HELIO_PGM_TYPE_NNAK) {
        on_nnak(stream, &packet);
    } else if (is_mine && packet.type == HELIO_PGM_TYPE_POLR) {
        on_polr(stream, &packet);
    } else {
        helio_count(&stream->instance->unknown_session_packets, 1);
    }
}
