#include "receive/feedback.h"

#include <string.h>

#define SPMR_INTERVAL_MAX_NS HELIO_SECOND
/* A receiver never claims more than this, so that its numbers can be told apart. */
#define CLAIM_MAX (UINT64_C(1) << 30)

/* Bytes of the parts of an ACK (docs/wire.md 1.1, 1.2, 1.4, 1.5). */
enum {
    ACK_BYTES = HELIO_PGM_HEADER + 8 + 4, /* with the head of its options */
    ACKNOWLEDGE_BYTES = 32,
    REPORT_BYTES = 52,
    GRANTS_BYTES = 4,
    GRANT_BYTES = 16,
    CLOCK_BYTES = 24,
    SERVICE_BYTES = 24,
};

/* A store says where it can be read on its first ACKs, and on every 16th later. */
enum { SERVED_FIRST = 3, SERVED_EVERY = 16 };

#define POSTPONE_NS (20 * HELIO_MILLISECOND) /* an ACK that may not be sent yet */

static void send_feedback(helio_rx_stream *stream, const helio_address *to, const void *packet,
                          size_t length) {
    const helio_rx_shared *shared = stream->shared;
    helio_count(&shared->instance->packets_sent, 1);
    helio_count(&shared->instance->packet_bytes_sent, length);
    shared->outlet.send(shared->outlet.context, to, packet, length, false);
}

static helio_pgm_session session_of(const helio_rx_stream *stream) {
    return (helio_pgm_session){stream->tsi, stream->shared->config.group.port};
}

/* ---- reports ---- */

static uint64_t packets_in(uint64_t bytes, uint64_t bytes_per_packet) {
    const uint64_t packets = bytes / (bytes_per_packet ? bytes_per_packet : 1);
    return packets < UINT32_MAX ? packets : UINT32_MAX;
}

/* How full the buffers are, and how many packets more they take. */
static void gauge_buffers(const helio_rx_stream *stream, helio_pgm_receiver_report *told) {
    const helio_rxw *rxw = &stream->rxw;
    const uint64_t capacity = helio_rx_window_of(stream), passed = rxw->trail - stream->first;
    double fill = (double)(rxw->lead + 1 - rxw->trail) / (double)capacity;
    uint64_t room = capacity;
    helio_sink_gauge sink;
    if (helio_delivery_gauge(&stream->delivery, &sink) && sink.limit_bytes > 0) {
        const double queue_fill = (double)sink.used_bytes / (double)sink.limit_bytes;
        fill = queue_fill > fill ? queue_fill : fill;
        const uint64_t per_packet = passed > 0 && sink.given_bytes > passed
                                        ? sink.given_bytes / passed
                                        : stream->shared->config.max_packet_bytes;
        if (sink.used_bytes < sink.limit_bytes) {
            room += packets_in(sink.limit_bytes - sink.used_bytes, per_packet);
        }
    }
    const helio_loan *loan = stream->rxw.loan;
    if (stream->is_blocked && !(loan && loan->is_short)) {
        fill = 1;
    }
    told->buffer_fill = (uint16_t)(fill < 1 ? fill * UINT16_MAX : UINT16_MAX);
    told->window = (uint32_t)(room < UINT32_MAX ? room : UINT32_MAX);
}

void helio_rx_watch_buffers(helio_rx_stream *stream, int64_t now_ns) {
    helio_pgm_receiver_report told;
    gauge_buffers(stream, &told);
    helio_rx_reports_on_fill(&stream->reports, told.buffer_fill, now_ns);
}

/* What there is to tell, but for what helio_rx_reports adds. */
static helio_pgm_receiver_report condition_of(const helio_rx_stream *stream) {
    const helio_rxw *rxw = &stream->rxw;
    helio_pgm_receiver_report told = {
        .flags = stream->told_flags,
        .receiver = stream->shared->config.receiver,
        .incarnation = stream->incarnation,
        /* what was passed on and what is held; of what was passed, the lost never came */
        .received = (uint32_t)(rxw->trail - stream->first - stream->given_up + rxw->held),
        .lost = (uint32_t)stream->missed,
        .unrecoverable = (uint32_t)stream->given_up,
        .position = (uint32_t)(rxw->trail - 1),
    };
    gauge_buffers(stream, &told);
    return told;
}

/* The report for a packet about to be sent; NULL: the source wants none. */
static const helio_pgm_receiver_report *
make_report(const helio_rx_stream *stream, helio_pgm_receiver_report *told, int64_t now_ns) {
    if (!helio_rx_can_report(stream)) {
        return NULL;
    }
    *told = condition_of(stream);
    helio_rx_reports_fill_in(&stream->reports, stream->shared->config.instance, told, now_ns);
    return told;
}

static void report_sent(helio_rx_stream *stream, const helio_pgm_receiver_report *told,
                        int64_t now_ns) {
    if (!told) {
        return;
    }
    helio_rx_reports_on_sent(&stream->reports, told, now_ns);
    helio_count(&helio_rx_stats(stream)->reports_sent, 1);
}

/* The question for the time that goes with a report, if it is time for one.  Who leaves asks
 * nothing. */
static const helio_pgm_clock *ask_time(helio_rx_stream *stream,
                                       const helio_pgm_receiver_report *told, uint8_t flags,
                                       helio_pgm_clock *moment, int64_t now_ns) {
    return told && !flags && helio_rx_clock_ask(&stream->clocks, moment, now_ns) ? moment : NULL;
}

/* ---- ACK ---- */

/* To the source, other than a NAK. */
static void send_to_source(helio_rx_stream *stream, const helio_address *to, const void *packet,
                           size_t length) {
    helio_rx_budget_sent(&stream->budget, length);
    send_feedback(stream, to, packet, length);
}

/* Whether a report may go with `besides_bytes` of an ACK. */
static bool may_report(const helio_rx_stream *stream, size_t besides_bytes) {
    size_t grants = helio_rx_is_granting(stream) ? stream->delivery.granting_count : 0;
    grants = grants < HELIO_PGM_GRANTS_MAX ? grants : HELIO_PGM_GRANTS_MAX;
    const size_t bytes = besides_bytes + REPORT_BYTES + strlen(stream->shared->config.instance) +
                         (grants > 0 ? GRANTS_BYTES + GRANT_BYTES * grants : 0) + CLOCK_BYTES;
    return helio_rx_budget_covers(&stream->budget, bytes);
}

/* What is granted goes with every report that an ACK carries. */
static uint32_t take_grants(helio_rx_stream *stream, helio_pgm_grant *grants) {
    if (!helio_rx_is_granting(stream)) {
        return 0;
    }
    const uint32_t count =
        helio_delivery_grants(&stream->delivery, false, grants, HELIO_PGM_GRANTS_MAX);
    helio_count(&helio_rx_stats(stream)->grants_sent, count);
    return count;
}

/* Which of the newest 32 packets are there. */
static uint32_t bitmap_of(const helio_rx_stream *stream) {
    const helio_rxw *rxw = &stream->rxw;
    uint32_t bitmap = 0;
    for (uint32_t i = 0; i < 32; i++) {
        const uint64_t sequence = stream->newest - i;
        const bool is_held = sequence >= rxw->trail && sequence <= rxw->lead &&
                             helio_rxw_slot_of(rxw, sequence)->state == HELIO_RXW_HELD;
        if (is_held || (sequence < rxw->trail && sequence >= stream->acks.first)) {
            bitmap |= UINT32_C(1) << i;
        }
    }
    return bitmap;
}

/* Where this store can be read, now and then. */
static helio_address service_to_say(const helio_rx_stream *stream, bool is_store) {
    const uint64_t sent = stream->acks.sent;
    return is_store && (sent < SERVED_FIRST || sent % SERVED_EVERY == 0)
               ? stream->shared->config.service
               : (helio_address){0};
}

void helio_rx_send_ack(helio_rx_stream *stream, uint8_t flags, int64_t now_ns) {
    helio_rx_acks *acks = &stream->acks;
    const helio_rx_shared *shared = stream->shared;
    const bool is_store = helio_subscriptions_are_stores(&shared->subscriptions);
    const bool is_old = acks->position - acks->first >= CLAIM_MAX && acks->position >= acks->first;
    const helio_pgm_acknowledge acknowledge = {
        .kind = shared->subscriptions.acked_by_app ? HELIO_PGM_ACK_APPLICATION
                                                   : HELIO_PGM_ACK_TRANSPORT,
        .flags = is_store ? (uint8_t)(flags | HELIO_PGM_ACK_STORE) : flags,
        .receiver = shared->config.receiver,
        .incarnation = acks->incarnation,
        .first = (uint32_t)(is_old ? acks->position - CLAIM_MAX : acks->first),
        .position = (uint32_t)acks->position,
        .name = shared->config.instance,
        .name_bytes = strlen(shared->config.instance),
        .service = service_to_say(stream, is_store),
    };
    const size_t least = ACK_BYTES + ACKNOWLEDGE_BYTES + acknowledge.name_bytes +
                         (acknowledge.service.port ? SERVICE_BYTES : 0);
    if (!helio_rx_budget_covers(&stream->budget, least)) {
        acks->due_ns = now_ns + POSTPONE_NS;
        return;
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    helio_pgm_receiver_report told;
    const helio_pgm_receiver_report *report =
        may_report(stream, least) ? make_report(stream, &told, now_ns) : NULL;
    const helio_pgm_session session = session_of(stream);
    helio_pgm_grant grants[HELIO_PGM_GRANTS_MAX] = {0};
    const uint32_t grants_count = report ? take_grants(stream, grants) : 0;
    helio_pgm_clock moment;
    const size_t length = helio_pgm_encode_ack_with(
        packet, &session, (uint32_t)stream->newest, bitmap_of(stream), &acknowledge, report, grants,
        grants_count, ask_time(stream, report, flags, &moment, now_ns));
    helio_rx_acks_sent(acks);
    report_sent(stream, report, now_ns);
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_count(&stats->acks_sent, 1);
    helio_set(&stats->acked_position, acks->position);
    helio_stats_end(stats);
    send_to_source(stream, &stream->feedback, packet, length);
}

void helio_rx_stop_acking(helio_rx_stream *stream, helio_moment moment) {
    if (!stream->acks.is_on) {
        return;
    }
    helio_rx_advance_acks(stream, moment);
    if (helio_rx_can_acknowledge(stream)) {
        helio_rx_send_ack(stream, HELIO_PGM_ACK_LEAVING, moment.now_ns);
    }
    helio_rx_acks_end(&stream->acks);
}

void helio_rx_stream_set_acking(helio_rx_stream *stream, helio_moment moment) {
    if (!helio_rx_is_acking(stream->shared)) {
        helio_rx_stop_acking(stream, moment);
    } else if (!stream->acks.is_on) {
        helio_nak_insist(&stream->nak);
        helio_rx_acks_begin(&stream->acks, stream->rxw.trail, (uint64_t)moment.wall_ns);
    }
}

/* An ACK that acknowledges nothing, for its report and what is granted. */
static void send_report_with(helio_rx_stream *stream, uint8_t flags, const helio_pgm_grant *grants,
                             uint32_t grants_count, int64_t now_ns) {
    helio_pgm_receiver_report told;
    if (!make_report(stream, &told, now_ns)) {
        return;
    }
    if (!may_report(stream, ACK_BYTES)) {
        helio_rx_reports_put_off(&stream->reports, now_ns);
        return;
    }
    told.flags |= flags;
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    helio_pgm_clock moment;
    const size_t length = helio_pgm_encode_ack_with(
        packet, &session, (uint32_t)stream->newest, bitmap_of(stream), NULL, &told, grants,
        grants_count, ask_time(stream, &told, flags, &moment, now_ns));
    report_sent(stream, &told, now_ns);
    send_to_source(stream, &stream->feedback, packet, length);
}

static void send_report(helio_rx_stream *stream, uint8_t flags, int64_t now_ns) {
    helio_pgm_grant grants[HELIO_PGM_GRANTS_MAX] = {0};
    const bool is_leaving = flags & HELIO_PGM_RECEIVER_REPORT_LEAVING;
    const uint32_t count = is_leaving ? 0 : take_grants(stream, grants);
    send_report_with(stream, flags, grants, count, now_ns);
}

void helio_rx_send_grants(helio_rx_stream *stream, const helio_pgm_grant *grants, uint32_t count,
                          int64_t now_ns) {
    helio_count(&helio_rx_stats(stream)->grants_sent, count);
    send_report_with(stream, 0, grants, count, now_ns);
}

void helio_rx_follow(helio_rx_stream *stream, int64_t now_ns) {
    if (helio_rx_reports_on_progress(&stream->reports, (uint32_t)stream->newest,
                                     (uint32_t)(stream->rxw.trail - 1), now_ns)) {
        helio_rx_report_when_due(stream, now_ns);
    }
}

int helio_rx_report_when_due(helio_rx_stream *stream, int64_t now_ns) {
    if (stream->is_blocked) {
        helio_rx_watch_buffers(stream, now_ns);
    }
    if (now_ns < helio_rx_reports_next_deadline_ns(&stream->reports) ||
        !helio_rx_can_report(stream)) {
        return 0;
    }
    const helio_pgm_receiver_report now = condition_of(stream);
    if (!helio_rx_reports_poll(&stream->reports, &now, now_ns)) {
        return 0;
    }
    send_report(stream, 0, now_ns);
    return 1;
}

void helio_rx_say_goodbye(helio_rx_stream *stream, helio_moment moment) {
    const bool is_silent =
        moment.now_ns - stream->heard_ns >= stream->shared->config.stream_expiry_ns;
    if (stream->reports.count > 0 && !helio_rx_has_ended(stream) && !is_silent) {
        send_report(stream, HELIO_PGM_RECEIVER_REPORT_LEAVING, moment.now_ns);
    }
}

/* ---- NAK, SPMR, POLR ---- */

void helio_rx_count_nak(helio_rx_stream *stream, const helio_nak_round *round) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_count(&stats->nak_packets_sent, 1);
    helio_count(&stats->naks_sent, round->ask_count);
    helio_count(&stats->naks_retried, round->retried);
    helio_set(&stats->nak_backoff, (uint64_t)stream->nak.backoff.interval_ns);
    helio_count(&stream->shared->instance->nak_packets_sent, 1);
    helio_count(&stream->shared->instance->naks_sent, round->ask_count);
}

void helio_rx_send_near_nak(helio_rx_stream *stream, const helio_nak_round *round) {
    const helio_rx_endpoint_config *config = &stream->shared->config;
    uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX];
    for (size_t i = 0; i < round->ask_count; i++) {
        sequences[i] = (uint32_t)round->asks[i];
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, sequences,
                                               round->ask_count, &stream->source, &config->group);
    send_feedback(stream, &config->repairer, packet, length);
}

void helio_rx_send_nak(helio_rx_stream *stream, const helio_nak_round *round, int64_t now_ns) {
    uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX];
    for (size_t i = 0; i < round->ask_count; i++) {
        sequences[i] = (uint32_t)round->asks[i];
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const helio_rx_endpoint_config *config = &stream->shared->config;
    const helio_pgm_report report = {
        .fields = stream->report_fields,
        .reference = (uint32_t)stream->newest,
        .receiver_loss = (uint16_t)(((uint64_t)stream->loss * UINT16_MAX) / HELIO_RX_LOSS_ALL),
        .receiver = config->feedback_address,
    };
    const size_t full = HELIO_PGM_CONTROL_MAX - 4 * (1 + HELIO_PGM_NAK_LIST_MAX - round->ask_count);
    const bool has_room = helio_rx_budget_allows_report(stream, full, now_ns);
    const bool tells_loss = has_room && report.fields;
    helio_pgm_receiver_report now;
    const helio_pgm_receiver_report *told = has_room ? make_report(stream, &now, now_ns) : NULL;
    const size_t length = helio_pgm_encode_nak_with(
        packet, &session, HELIO_PGM_TYPE_NAK, sequences, round->ask_count, &stream->source,
        &config->group, 0, tells_loss ? &report : NULL, told);
    report_sent(stream, told, now_ns);
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_rx_count_nak(stream, round);
    helio_count(&stats->congestion_reports_sent, tells_loss);
    helio_set(&stats->repairer_given_up, stream->nak.near_given_up);
    helio_stats_end(stats);
    helio_rx_budget_on_nak(stream, round->ask_count, length, now_ns);
    send_feedback(stream, &stream->feedback, packet, length);
}

void helio_rx_send_spmr(helio_rx_stream *stream, helio_moment moment) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length = helio_pgm_encode_spmr(packet, &session);
    if (stream->shared->is_group) {
        send_feedback(stream, &stream->shared->config.group, packet, length);
    }
    helio_address to = stream->source;
    if (to.port != stream->tsi.port && !stream->shared->config.is_connected) {
        to.port = stream->shared->config.group.port;
    }
    const bool is_sent = helio_rx_budget_covers(&stream->budget, length);
    helio_count(&helio_rx_stats(stream)->heartbeat_requests_sent,
                (uint64_t)is_sent + stream->shared->is_group);
    if (is_sent) {
        send_to_source(stream, &to, packet, length);
    }
    stream->spmr_due_ns = moment.now_ns + stream->spmr_interval_ns;
    if (stream->spmr_interval_ns < SPMR_INTERVAL_MAX_NS) {
        stream->spmr_interval_ns *= 2;
    }
}

void helio_rx_send_polr(helio_rx_stream *stream) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length =
        helio_pgm_encode_polr(packet, &session, stream->polled.sequence, stream->polled.round);
    if (!helio_rx_budget_covers(&stream->budget, length)) {
        return;
    }
    helio_count(&helio_rx_stats(stream)->poll_responses_sent, 1);
    send_to_source(stream, &stream->poll_answer_to, packet, length);
}
