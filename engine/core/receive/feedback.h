/* Packets from a receiver to its source: NAKs, ACKs, reports, requests for an SPM, answers to
 * polls. stream.c decides when to send them. */
#ifndef HELIO_RECEIVE_FEEDBACK_H
#define HELIO_RECEIVE_FEEDBACK_H

#include "receive/stream.h"

#define HELIO_RX_SPMR_INTERVAL_NS (2 * HELIO_MILLISECOND) /* between two at first; it doubles */

/* Requests missing packets. */
void helio_rx_send_nak(helio_rx_stream *stream, const helio_nak_round *round, int64_t now_ns);
/* Requests missing packets of the local repairer.  It carries no report: that is for the source. */
void helio_rx_send_near_nak(helio_rx_stream *stream, const helio_nak_round *round);
/* Counts a NAK packet sent, to whomever. */
void helio_rx_count_nak(helio_rx_stream *stream, const helio_nak_round *round);

/* Requests an SPM from a source whose data came first.  It goes to the group first, so that other
 * receivers need not ask. */
void helio_rx_send_spmr(helio_rx_stream *stream, helio_moment moment);

/* Answers the last poll. */
void helio_rx_send_polr(helio_rx_stream *stream);

/* Only Heliograph sources understand ACKs; they receive at their own port. */
static inline bool helio_rx_is_heard(const helio_rx_stream *stream) {
    return stream->feedback.family != 0 &&
           (stream->shared->config.is_connected || stream->feedback.port == stream->tsi.port);
}

static inline bool helio_rx_can_acknowledge(const helio_rx_stream *stream) {
    return stream->acks.is_on && !stream->is_waiting && helio_rx_is_heard(stream);
}

/* Acknowledges up to the position of this receiver.  `flags`: HELIO_PGM_ACK_LEAVING or 0. */
void helio_rx_send_ack(helio_rx_stream *stream, uint8_t flags, int64_t now_ns);

/* The source is not to wait for this receiver any longer. */
void helio_rx_stop_acking(helio_rx_stream *stream, helio_moment moment);

static inline bool helio_rx_can_report(const helio_rx_stream *stream) {
    return stream->reports.is_on && stream->shared->config.receiver != 0 &&
           helio_rx_is_heard(stream);
}

/* The source wants a report of each step forward (helio_rx_reports_follows): reports one if due. */
void helio_rx_follow(helio_rx_stream *stream, int64_t now_ns);

/* Sends a report if the fill of the buffers crossed a threshold. */
void helio_rx_watch_buffers(helio_rx_stream *stream, int64_t now_ns);
/* Sends a report of its own when it is due.  Returns how many. */
int helio_rx_report_when_due(helio_rx_stream *stream, int64_t now_ns);

/* Sends grants of at most HELIO_PGM_GRANTS_MAX topics, with a report; the receiver can report. */
void helio_rx_send_grants(helio_rx_stream *stream, const helio_pgm_grant *grants, uint32_t count,
                          int64_t now_ns);

/* The receiver leaves while its source stays: notifies the source if it knows this receiver. */
void helio_rx_say_goodbye(helio_rx_stream *stream, helio_moment moment);

#endif
