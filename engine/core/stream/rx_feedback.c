#include "stream/rx_feedback.h"

#include <string.h>

#define SPMR_INTERVAL_MAX_NS HELIO_SECOND
/* A receiver never claims more than this, so that its numbers can be told apart. */
#define CLAIM_MAX (UINT64_C(1) << 30)

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

/* ---- ACK ---- */

/* Which of the newest 32 packets are there. */
static uint32_t bitmap_of(const helio_rx_stream *stream) {
    const helio_rxw *rxw = &stream->rxw;
    uint32_t bitmap = 0;
    for (uint32_t i = 0; i < 32; i++) {
        const uint64_t sequence = stream->newest - i;
        const bool is_held = sequence >= rxw->trail && sequence <= rxw->lead &&
                             helio_rxw_slot_of(rxw, sequence)->state == HELIO_RXW_HELD;
        if (is_held || (sequence < rxw->trail && sequence >= stream->acks.first))
            bitmap |= UINT32_C(1) << i;
    }
    return bitmap;
}

void helio_rx_send_ack(helio_rx_stream *stream, uint8_t flags) {
    helio_rx_acks *acks = &stream->acks;
    const helio_rx_shared *shared = stream->shared;
    const bool is_old = acks->position - acks->first >= CLAIM_MAX && acks->position >= acks->first;
    const helio_pgm_acknowledge acknowledge = {
        .kind = shared->subscriptions.acked_by_app ? HELIO_PGM_ACK_APPLICATION
                                                   : HELIO_PGM_ACK_TRANSPORT,
        .flags = flags,
        .receiver = shared->config.receiver,
        .incarnation = acks->incarnation,
        .first = (uint32_t)(is_old ? acks->position - CLAIM_MAX : acks->first),
        .position = (uint32_t)acks->position,
        .name = shared->config.instance,
        .name_bytes = strlen(shared->config.instance),
    };
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length = helio_pgm_encode_ack(packet, &session, (uint32_t)stream->newest,
                                               bitmap_of(stream), &acknowledge);
    helio_rx_acks_sent(acks);
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_count(&stats->acks_sent, 1);
    helio_set(&stats->acked_position, acks->position);
    helio_stats_end(stats);
    send_feedback(stream, &stream->feedback, packet, length);
}

void helio_rx_stop_acking(helio_rx_stream *stream, helio_clock clock) {
    if (!stream->acks.is_on)
        return;
    helio_rx_advance_acks(stream, clock);
    if (helio_rx_can_acknowledge(stream))
        helio_rx_send_ack(stream, HELIO_PGM_ACK_LEAVING);
    helio_rx_acks_end(&stream->acks);
}

void helio_rx_stream_set_acking(helio_rx_stream *stream, helio_clock clock) {
    if (!helio_rx_is_acking(stream->shared)) {
        helio_rx_stop_acking(stream, clock);
    } else if (!stream->acks.is_on) {
        helio_nak_insist(&stream->nak);
        helio_rx_acks_begin(&stream->acks, stream->rxw.trail, (uint64_t)clock.wall_ns);
    }
}

/* ---- NAK, SPMR, POLR ---- */

void helio_rx_send_nak(helio_rx_stream *stream, const helio_nak_round *round) {
    uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX];
    for (size_t i = 0; i < round->ask_count; i++)
        sequences[i] = (uint32_t)round->asks[i];
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const helio_rx_endpoint_config *config = &stream->shared->config;
    const helio_pgm_report report = {
        .fields = stream->report_fields,
        .reference = (uint32_t)stream->newest,
        .receiver_loss = (uint16_t)(((uint64_t)stream->loss * UINT16_MAX) / HELIO_RX_LOSS_ALL),
        .receiver = config->feedback_address,
    };
    const size_t length = helio_pgm_encode_nak_with(
        packet, &session, HELIO_PGM_TYPE_NAK, sequences, round->ask_count, &stream->source,
        &config->group, 0, report.fields ? &report : NULL);
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_count(&stats->nak_packets_sent, 1);
    helio_count(&stats->naks_sent, round->ask_count);
    helio_count(&stats->naks_retried, round->retried);
    helio_count(&stats->congestion_reports_sent, report.fields != 0);
    helio_set(&stats->nak_backoff, (uint64_t)stream->nak.backoff.interval_ns);
    helio_stats_end(stats);
    helio_count(&stream->shared->instance->nak_packets_sent, 1);
    helio_count(&stream->shared->instance->naks_sent, round->ask_count);
    send_feedback(stream, &stream->feedback, packet, length);
}

void helio_rx_send_spmr(helio_rx_stream *stream, helio_clock clock) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length = helio_pgm_encode_spmr(packet, &session);
    if (stream->shared->is_group)
        send_feedback(stream, &stream->shared->config.group, packet, length);
    helio_address to = stream->source;
    if (to.port != stream->tsi.port && !stream->shared->config.is_connected)
        to.port = stream->shared->config.group.port;
    helio_count(&helio_rx_stats(stream)->heartbeat_requests_sent, 1 + stream->shared->is_group);
    send_feedback(stream, &to, packet, length);
    stream->spmr_due_ns = clock.now_ns + stream->spmr_interval_ns;
    if (stream->spmr_interval_ns < SPMR_INTERVAL_MAX_NS)
        stream->spmr_interval_ns *= 2;
}

void helio_rx_send_polr(helio_rx_stream *stream) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = session_of(stream);
    const size_t length =
        helio_pgm_encode_polr(packet, &session, stream->polled.sequence, stream->polled.round);
    helio_count(&helio_rx_stats(stream)->poll_responses_sent, 1);
    send_feedback(stream, &stream->poll_answer_to, packet, length);
}
