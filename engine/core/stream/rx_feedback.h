/* What a receiver says to its source: NAKs, ACKs, requests for an SPM, answers to polls.  When to
 * say it is decided by rx_stream.c, which alone calls this. */
#ifndef HELIO_STREAM_RX_FEEDBACK_H
#define HELIO_STREAM_RX_FEEDBACK_H

#include "stream/rx_stream.h"

#define HELIO_RX_SPMR_INTERVAL_NS (2 * HELIO_MILLISECOND) /* between two at first; it doubles */

/* Asks for packets that are missing. */
void helio_rx_send_nak(helio_rx_stream *stream, const helio_nak_round *round);

/* Asks a source whose data came first to say where it is; the others in the group are told first,
 * so that they need not. */
void helio_rx_send_spmr(helio_rx_stream *stream, helio_clock clock);

/* Answers the poll heard last. */
void helio_rx_send_polr(helio_rx_stream *stream);

/* Only sources of our own make know what to do with it; they hear at their own port. */
static inline bool helio_rx_can_acknowledge(const helio_rx_stream *stream) {
    return stream->acks.is_on && stream->feedback.family != 0 &&
           (stream->shared->config.is_connected || stream->feedback.port == stream->tsi.port);
}

/* Tells how far this receiver has come.  `flags`: HELIO_PGM_ACK_LEAVING or 0. */
void helio_rx_send_ack(helio_rx_stream *stream, uint8_t flags);

/* The source is not to wait for this receiver any longer. */
void helio_rx_stop_acking(helio_rx_stream *stream, helio_clock clock);

#endif
