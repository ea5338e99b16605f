#include "receive/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/math.h"
#include "base/sequence.h"
#include "receive/control.h"
#include "receive/feedback.h"
#include "receive/near.h"
#include "receive/passing.h"
#include "window/size.h"

enum {
    POLL_ROUNDS = 16, /* most NAK packets sent by one poll */
};

/* A stream may have sent a message in this time while nobody heard it: packets cannot be counted
 * then, as their numbers wrap. */
#define SLACK_NS 1

/* How long a stream that was discovered by data waits for an SPM that says where the history
 * begins. */
#define BEGIN_WAIT_NS (100 * HELIO_MILLISECOND)
/* How long it waits for announcements; a source repeats them every second. */
#define LEARN_MAX_NS (2 * HELIO_SECOND)

/* ---- create, destroy ---- */

static int open_object(helio_rx_stream *stream, const helio_address *from, helio_moment moment) {
    const helio_rx_shared *shared = stream->shared;
    char labels[HELIO_STATS_LABELS_BYTES] = "", text[HELIO_ADDRESS_TEXT], tsi[HELIO_TSI_TEXT];
    helio_stats_label(labels, sizeof labels, "instance", shared->config.instance);
    helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(&stream->tsi, tsi));
    helio_stats_label(labels, sizeof labels, "endpoint", shared->config.endpoint);
    helio_stats_label(labels, sizeof labels, "source", helio_address_format(from, text));
    helio_stats_label(labels, sizeof labels, "feedback_address",
                      helio_address_format(&shared->config.feedback_address, text));
    const int error = helio_stats_open_plain_object(shared->stats, HELIO_SCOPE_RX_STREAM, labels,
                                                    moment.wall_ns, &stream->object);
    if (!error) {
        helio_stats_apply(&stream->object,
                          (helio_rx_is_acking(shared) ? HELIO_HAS_ACKS : 0u) |
                              (shared->config.repairer.family != 0 ? HELIO_HAS_REPAIRER : 0u) |
                              (shared->config.repairs.bytes > 0 ? HELIO_HAS_REPAIRS : 0u));
    }
    return error;
}

static int init_parts(helio_rx_stream *stream, uint64_t first, bool is_complete) {
    const helio_rx_endpoint_config *config = &stream->shared->config;
    const uint64_t capacity = HELIO_WINDOW_PACKETS_MIN;
    const helio_nak_config nak = {
        .reorder_packets = config->reorder_packets,
        .reorder_ns = config->reorder_ns,
        .backoff_ns = config->nak_backoff_ns,
        .repeat_ns = config->nak_repeat_ns,
        .data_ns = config->nak_data_ns,
        .retries = config->nak_retries,
        .deadline_ns = config->nak_deadline_ns,
        .group_size = config->group_size,
        .near_tries = config->repairer.family != 0 ? HELIO_RX_NEAR_TRIES : 0,
        .is_alone = !stream->shared->is_group,
        .never_asks = config->never_asks,
    };
    int error = helio_rxw_init(&stream->rxw, capacity,
                               config->max_packet_bytes - HELIO_PGM_DATA_HEADER, first);
    if (!error) {
        error = helio_nak_init(&stream->nak, capacity, &nak,
                               helio_random_next(&stream->shared->random));
    }
    if (!error) {
        stream->rxw.loan = config->loan;
        error = helio_delivery_init(&stream->delivery, &stream->shared->subscriptions, &stream->rxw,
                                    &stream->tsi, is_complete);
    }
    return error;
}

helio_rx_start helio_rx_start_again(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                    const helio_rx_absent *absent, bool from_live,
                                    helio_rx_return *back) {
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    const uint32_t lead = is_spm ? packet->lead : packet->sequence;
    helio_rx_start start = helio_rx_start_of(shared, packet, from_live);
    *back = (helio_rx_return){
        .absent = absent,
        .goes_on = helio_rx_absent_goes_on(absent, lead),
    };
    if (!back->goes_on) {
        return start;
    }
    start.first = absent->next;
    start.joined = start.first - 1;
    start.is_complete = false;
    start.is_pacing = true;
    start.is_waiting = helio_rx_is_acking(shared) && !from_live;
    if (from_live) {
        back->lost_before = helio_sequence_widen(lead, start.first) + is_spm;
    }
    return start;
}

/* The topics go on where they were. */
static void resume_topics(helio_rx_stream *stream, const helio_rx_absent *absent, int64_t now_ns) {
    const uint64_t passed =
        absent->next > absent->past.resumed_at ? absent->next : absent->past.resumed_at;
    const int64_t absent_ns = now_ns > absent->ended_ns ? now_ns - absent->ended_ns : 0;
    stream->was_proven = absent->is_proven;
    helio_delivery_resume(&stream->delivery, &absent->past, absent->marks, absent->count,
                          stream->is_back ? passed : 0, (uint64_t)absent_ns / SLACK_NS);
}

/* Begun after what awaits acknowledgement, a receiver's acknowledgements count for nothing, and a
 * source that needs them stops with a full history.  So an acknowledging one waits as long as the
 * stream would live in silence. */
static int64_t begin_wait_ns(const helio_rx_shared *shared) {
    const int64_t expiry_ns = shared->config.stream_expiry_ns;
    return helio_rx_is_acking(shared) && expiry_ns > BEGIN_WAIT_NS ? expiry_ns : BEGIN_WAIT_NS;
}

/* The source reads the same clock. */
static bool is_on_this_host(const helio_rx_shared *shared, const helio_address *from) {
    const helio_address *here = &shared->config.feedback_address;
    return shared->config.is_same_host || helio_address_is_loopback(from) ||
           (helio_address_same_ip(here, from) && !helio_address_is_unspecified(here));
}

int helio_rx_stream_create(helio_rx_shared *shared, const helio_tsi *tsi,
                           const helio_rx_start *start, const helio_rx_return *back,
                           const helio_address *from, helio_moment moment, helio_rx_stream **out) {
    helio_rx_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return HELIO_ERR_NOMEM;
    }
    const uint64_t first = start->first;
    stream->shared = shared;
    stream->is_back = back && back->goes_on;
    stream->is_complete = start->is_complete;
    stream->is_pacing = start->is_pacing;
    stream->is_waiting = start->is_waiting;
    stream->ask_from = stream->first = first;
    stream->joined = start->joined;
    stream->incarnation = (uint64_t)moment.wall_ns;
    if (shared->config.is_tagged) {
        stream->told_flags |= HELIO_PGM_RECEIVER_REPORT_TAGGED;
    }
    if (shared->config.takes_unicast && shared->is_group) {
        stream->told_flags |= HELIO_PGM_RECEIVER_REPORT_UNICAST;
    }
    stream->learn_by_ns = moment.now_ns + LEARN_MAX_NS;
    stream->begin_by_ns = moment.now_ns + begin_wait_ns(shared);
    stream->tsi = *tsi;
    helio_rx_bind(stream, from);
    helio_rx_budget_init(&stream->budget, shared->config.is_connected);
    stream->newest = first - 1;
    stream->heard_ns = stream->opened_ns = moment.now_ns;
    const uint64_t delay_ns = (uint64_t)shared->config.spmr_delay_ns;
    stream->spmr_interval_ns = HELIO_RX_SPMR_INTERVAL_NS;
    stream->spmr_due_ns =
        moment.now_ns + (int64_t)helio_random_below(&shared->random, delay_ns + 1);
    helio_polled_init(&stream->polled, shared->node);
    int error = init_parts(stream, first, start->is_complete);
    if (!error && !helio_account_take(shared->config.account, helio_rx_memory_of(stream))) {
        error = HELIO_ERR_NOMEM;
    } else if (!error && (error = open_object(stream, from, moment)) != 0) {
        helio_account_give(shared->config.account, helio_rx_memory_of(stream));
    }
    if (error) {
        helio_delivery_fini(&stream->delivery, moment);
        helio_nak_fini(&stream->nak);
        helio_rxw_fini(&stream->rxw);
        free(stream);
        return error;
    }
    helio_count(&shared->instance->rx_streams, 1);
    helio_count(&shared->instance->memory_used, helio_rx_memory_of(stream));
    char name[HELIO_TSI_TEXT], text[HELIO_ADDRESS_TEXT];
    const uint64_t args[4] = {first};
    helio_stats_event(shared->stats, moment.wall_ns, HELIO_EVENT_STREAM_OPENED, stream->object.slot,
                      args, "stream %s of %s %s packet %" PRIu64,
                      helio_tsi_format(&stream->tsi, name), helio_address_format(from, text),
                      stream->is_back ? "has returned and continues with" : "from", first);
    helio_rx_acks_init(&stream->acks, shared->config.ack_packets, shared->config.ack_interval_ns,
                       helio_random_next(&shared->random));
    helio_rx_reports_init(&stream->reports, helio_random_next(&shared->random));
    helio_stats_begin(stream->object.record);
    helio_set(&helio_rx_stats(stream)->window_first, first);
    helio_rx_show_window(stream);
    helio_stats_end(stream->object.record);
    helio_rx_clock_init(&stream->clocks, is_on_this_host(shared, from),
                        shared->config.seed ^ stream->incarnation, moment);
    helio_rx_stream_set_acking(stream, moment);
    if (back && !start->is_complete) {
        resume_topics(stream, back->absent, moment.now_ns);
    }
    if (back && back->lost_before) {
        helio_rx_give_up_before(stream, back->lost_before, HELIO_LOST_SUSPENDED, moment);
    }
    *out = stream;
    return 0;
}

void helio_rx_stream_destroy(helio_rx_stream *stream, helio_moment moment) {
    helio_rx_shared *shared = stream->shared;
    helio_rx_unproven_remove(&shared->unproven, stream);
    helio_rx_stop_acking(stream, moment);
    helio_rx_say_goodbye(stream, moment);
    helio_rx_set_blocked(stream, false);
    helio_rx_doubt_fini(stream);
    helio_delivery_fini(&stream->delivery, moment);
    helio_uncount(&shared->instance->rx_streams, 1);
    helio_uncount(&shared->instance->memory_used, helio_rx_memory_of(stream));
    helio_account_give(shared->config.account, helio_rx_memory_of(stream));
    helio_nak_fini(&stream->nak);
    helio_rxw_fini(&stream->rxw);
    if (stream->gives_way) {
        helio_stats_drop_object(shared->stats, &stream->object);
    } else {
        helio_stats_close_object(shared->stats, &stream->object, moment.wall_ns);
    }
    free(stream);
}

/* ---- data ---- */

static inline void read_data(const helio_rx_stream *stream, const helio_pgm_packet *packet,
                             int64_t receive_ns, helio_moment moment, helio_rxw_packet *out) {
    *out = (helio_rxw_packet){
        .tsdu = packet->tsdu,
        .bytes = packet->tsdu_bytes,
        .is_fragment = packet->options & HELIO_PGM_HAS_FRAGMENT,
        .lasts = stream->shared->config.loan != NULL,
        .is_repair = packet->type == HELIO_PGM_TYPE_RDATA,
        .receive_ns = receive_ns,
        .arrival_ns = moment.now_ns,
        .kernel_ns = stream->shared->kernel_ns,
    };
    if (out->is_fragment) {
        out->fragment = packet->fragment;
    }
}

/* Data far ahead: whether it is to be taken now. */
static bool is_believed(helio_rx_stream *stream, const helio_pgm_packet *packet, size_t bytes,
                        int64_t receive_ns, helio_moment moment) {
    const uint64_t sequence = helio_sequence_widen(packet->sequence, stream->rxw.known);
    helio_rx_arrival arrival = {
        .sequence = sequence,
        .trail = helio_sequence_widen(packet->trail, sequence),
        .bytes = bytes,
    };
    read_data(stream, packet, receive_ns, moment, &arrival.packet);
    const helio_rx_arrival *before;
    if (!helio_rx_believes_data(stream, &arrival, &before, moment.now_ns)) {
        return false;
    }
    if (before) {
        helio_rx_take_aside(stream, before, moment);
    }
    return true;
}

static void on_data(helio_rx_stream *stream, const helio_pgm_packet *packet, size_t bytes,
                    int64_t receive_ns, helio_moment moment) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    if (packet->sequence - packet->trail >= HELIO_RX_WINDOW_LIMIT) { /* no window is as large */
        helio_rx_account(stream, &stats->packets_refused, bytes);
        helio_pgm_count_refusal(stream->shared->instance, HELIO_PGM_BAD_SIZE);
        return;
    }
    const uint64_t sequence = helio_sequence_widen(packet->sequence, stream->rxw.known);
    if ((int64_t)(sequence - stream->newest) > HELIO_RX_LEAP &&
        !is_believed(stream, packet, bytes, receive_ns, moment)) {
        return;
    }
    helio_rx_learn_trail(stream, helio_sequence_widen(packet->trail, sequence), moment);
    const bool is_newest = sequence > stream->newest;
    if (helio_rxw_look(&stream->rxw, sequence) == HELIO_RXW_DUPLICATE) {
        helio_rx_account(
            stream, sequence < stream->first ? &stats->packets_before_join : &stats->duplicates,
            bytes);
        return;
    }
    if (!is_newest && packet->type == HELIO_PGM_TYPE_ODATA) {
        helio_count(&stats->out_of_order, 1);
    }
    helio_rxw_packet held;
    read_data(stream, packet, receive_ns, moment, &held);
    if (is_newest) {
        helio_rx_move_newest(stream, sequence);
    }
    helio_rx_take(stream, sequence, &held, bytes, moment);
    if (is_newest && stream->nak.outstanding > 0) {
        helio_nak_on_newest(&stream->nak, sequence, moment.now_ns);
    }
}

void helio_rx_stream_take_near_repair(helio_rx_stream *stream, const helio_pgm_packet *packet,
                                      size_t bytes, int64_t receive_ns, helio_moment moment) {
    helio_rxw_packet held;
    read_data(stream, packet, receive_ns, moment, &held);
    held.is_near = true;
    helio_rx_take(stream, helio_sequence_widen(packet->sequence, stream->rxw.known), &held, bytes,
                  moment);
}

/* Nothing is held, missing or asked for: what a packet changes is shown as it is accounted for. */
static bool is_in_order(const helio_rx_stream *stream) {
    const helio_rxw *rxw = &stream->rxw;
    return rxw->trail > rxw->known && stream->nak.outstanding == 0;
}

/* A source that answers by unicast knows no other receiver.  RFC 3208 delays a NAK only so that
 * somebody else's may replace it. */
static void learn_company(helio_rx_stream *stream, uint8_t type) {
    const bool is_answer = type == HELIO_PGM_TYPE_RDATA || type == HELIO_PGM_TYPE_NCF;
    if (is_answer && stream->shared->is_group) {
        helio_backoff_answered(&stream->nak.backoff, stream->shared->is_aside);
    }
}

void helio_rx_stream_on_packet(helio_rx_stream *stream, const helio_pgm_packet *packet,
                               size_t bytes, const helio_address *from, int64_t receive_ns,
                               helio_moment moment) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    const bool had_order = is_in_order(stream);
    const bool is_near = helio_rx_is_near(stream->shared, packet->type, from);
    const bool is_of_source =
        packet->type != HELIO_PGM_TYPE_NAK && packet->type != HELIO_PGM_TYPE_SPMR && !is_near;
    if (is_of_source) {
        stream->heard_ns = moment.now_ns;
    }
    if (stream->notices.expelled_until_ns && packet->type != HELIO_PGM_TYPE_SPM) {
        return; /* it only waits for what is held to be passed on */
    }
    if (is_of_source) {
        stream->budget.heard_bytes += bytes;
        learn_company(stream, packet->type);
    }
    if (is_near) {
        helio_rx_near_on_packet(stream, packet, bytes, receive_ns, moment);
    } else if (packet->type == HELIO_PGM_TYPE_ODATA || packet->type == HELIO_PGM_TYPE_RDATA) {
        on_data(stream, packet, bytes, receive_ns, moment);
    } else {
        helio_rx_on_control(stream, packet, from, moment);
    }
    if (stream->is_pacing) {
        helio_rx_believe(stream, moment.now_ns);
        helio_rx_pace(stream, moment.now_ns);
    }
    if (helio_rx_reports_follows(&stream->reports)) {
        helio_rx_follow(stream, moment.now_ns);
    }
    helio_rx_advance_acks(stream, moment);
    if (stream->delivery.has_credit_news) {
        helio_rx_grant_when_due(stream, moment.now_ns);
    }
    helio_set(&stats->last_activity, (uint64_t)moment.wall_ns);
    if (!had_order || !is_in_order(stream)) {
        helio_stats_begin(stats);
        helio_rx_show_window(stream);
        helio_stats_end(stats);
    }
}

/* ---- time ---- */

void helio_rx_advance_acks(helio_rx_stream *stream, helio_moment moment) {
    helio_rx_acks *acks = &stream->acks;
    if (!acks->is_on) {
        return;
    }
    uint64_t position = stream->rxw.trail - 1;
    const uint64_t oldest = helio_delivery_oldest_unacked(&stream->delivery);
    if (oldest <= position) {
        position = oldest - 1;
    }
    helio_rx_acks_advance(acks, position, moment.now_ns);
    helio_rx_acks_ask(acks, stream->delivery.asked, moment.now_ns);
}

/* When an SPM is to be requested: while there was none, and to begin when topics have been learnt. */
static int64_t spmr_due_ns(const helio_rx_stream *stream) {
    if (!stream->has_spm) {
        return stream->spmr_due_ns;
    }
    return stream->is_waiting ? helio_max(stream->learn_by_ns, stream->spmr_due_ns) : HELIO_NEVER;
}

int helio_rx_stream_poll(helio_rx_stream *stream, helio_moment moment) {
    int work = 0;
    if (stream->is_blocked) {
        helio_rx_drain(stream, moment);
        work += !stream->is_blocked;
        if (helio_rx_reports_follows(&stream->reports)) {
            helio_rx_follow(stream, moment.now_ns);
        }
    }
    if (moment.now_ns >= spmr_due_ns(stream)) {
        helio_rx_send_spmr(stream, moment);
        work++;
    }
    if (moment.now_ns >= helio_rx_acks_next_deadline_ns(&stream->acks) &&
        helio_rx_can_acknowledge(stream)) {
        helio_rx_send_ack(stream, 0, moment.now_ns);
        work++;
    }
    work += helio_rx_report_when_due(stream, moment.now_ns);
    work += helio_rx_grant_when_due(stream, moment.now_ns);
    if (stream->is_waiting && moment.now_ns >= stream->begin_by_ns) {
        helio_rx_begin_with(stream, NULL, moment);
        work++;
    }
    if (stream->is_pacing) {
        helio_rx_believe(stream, moment.now_ns);
        helio_rx_pace(stream, moment.now_ns);
    }
    if (moment.now_ns >= helio_rx_notices_next_deadline_ns(&stream->notices)) {
        helio_rx_notices_poll(stream, moment);
        work++;
    }
    if (stream->notices.expelled_until_ns && !helio_rxw_is_empty(&stream->rxw)) {
        helio_rx_give_up(stream, HELIO_LOST_SUSPENDED, moment);
        work++;
    }
    if (helio_polled_answer(&stream->polled, moment.now_ns)) {
        helio_rx_send_polr(stream);
        work++;
    }
    if (helio_rx_doubt_poll(stream, moment.now_ns)) {
        helio_rx_reset(stream, moment);
        work++;
    }
    helio_rx_budget_poll(stream, moment);
    helio_nak_round round;
    const bool can_ask = stream->feedback.family != 0 && !stream->is_unreachable;
    bool has_losses = false;
    for (int i = 0; i < POLL_ROUNDS && stream->nak.outstanding > 0; i++) {
        stream->nak.ask_room = helio_rx_budget_asks(stream, moment.now_ns);
        if (!helio_nak_poll(&stream->nak, can_ask, moment.now_ns, &round)) {
            break;
        }
        if (round.ask_count > 0 && round.is_near) {
            helio_rx_near_ask(stream, &round, moment);
        } else if (round.ask_count > 0) {
            helio_rx_send_nak(stream, &round, moment.now_ns);
        }
        for (size_t k = 0; k < round.loss_count; k++) {
            helio_rxw_lose(&stream->rxw, round.losses[k].sequence, round.losses[k].cause);
            helio_record(stream->object.histogram[HELIO_RX_STREAM_GIVE_UP_TIME],
                         moment.now_ns - round.losses[k].seen_ns, 1);
        }
        has_losses |= round.loss_count > 0;
        work++;
    }
    helio_rx_budget_poll(stream, moment);
    if (has_losses && !stream->is_blocked) {
        helio_rx_drain(stream, moment);
    }
    if (has_losses) {
        helio_rx_pace(stream, moment.now_ns);
    }
    if (work > 0) {
        helio_rx_advance_acks(stream, moment);
        helio_rx_stream_stats *stats = helio_rx_stats(stream);
        helio_stats_begin(stats);
        helio_rx_show_window(stream);
        helio_stats_end(stats);
    }
    if (moment.now_ns - stream->heard_ns >= stream->shared->config.stream_expiry_ns) {
        helio_rx_give_up_all(stream, HELIO_LOST_DEADLINE, moment);
    }
    return work;
}

int64_t helio_rx_stream_next_deadline_ns(const helio_rx_stream *stream) {
    int64_t deadline_ns = helio_nak_next_deadline_ns(&stream->nak);
    deadline_ns = helio_min(deadline_ns, spmr_due_ns(stream));
    if (helio_rx_can_acknowledge(stream) && stream->acks.due_ns < deadline_ns) {
        deadline_ns = stream->acks.due_ns;
    }
    if (helio_rx_can_report(stream) && stream->reports.due_ns < deadline_ns) {
        deadline_ns = stream->reports.due_ns;
    }
    const int64_t credit_ns = helio_rx_credit_deadline_ns(stream);
    if (credit_ns < deadline_ns) {
        deadline_ns = credit_ns;
    }
    if (stream->is_waiting && stream->begin_by_ns < deadline_ns) {
        deadline_ns = stream->begin_by_ns;
    }
    const int64_t notices_ns = helio_rx_notices_next_deadline_ns(&stream->notices);
    if (notices_ns < deadline_ns) {
        deadline_ns = notices_ns;
    }
    if (stream->notices.expelled_until_ns && !stream->is_blocked) {
        deadline_ns = 0;
    }
    if (stream->polled.due_ns < deadline_ns) {
        deadline_ns = stream->polled.due_ns;
    }
    if (stream->budget.release_ns < deadline_ns) {
        deadline_ns = stream->budget.release_ns;
    }
    const int64_t doubt_ns = helio_rx_doubt_deadline_ns(&stream->doubt);
    if (doubt_ns < deadline_ns) {
        deadline_ns = doubt_ns;
    }
    const int64_t expiry_ns = stream->heard_ns + stream->shared->config.stream_expiry_ns;
    /* A stream that waits for room outlives its expiry; it has no deadline then. */
    if (!stream->is_blocked && expiry_ns < deadline_ns) {
        deadline_ns = expiry_ns;
    }
    return deadline_ns;
}

helio_rx_stream_state helio_rx_stream_state_of(const helio_rx_stream *stream, helio_moment moment) {
    const helio_rxw *rxw = &stream->rxw;
    if (stream->is_blocked || !helio_rxw_is_empty(rxw)) {
        return HELIO_RX_STREAM_OPEN;
    }
    if (stream->notices.expelled_until_ns) {
        return HELIO_RX_STREAM_EXPELLED;
    }
    if (helio_rx_has_ended(stream) && rxw->trail > stream->end) {
        return HELIO_RX_STREAM_CLOSED;
    }
    return moment.now_ns - stream->heard_ns >= stream->shared->config.stream_expiry_ns
               ? HELIO_RX_STREAM_SILENT
               : HELIO_RX_STREAM_OPEN;
}
