/* A received stream's packets on their way through the window: held until they are next, passed on
 * to the topics, or reported lost.  The inner half of stream.h, which decides what packets mean. */
#ifndef HELIO_RECEIVE_PASSING_H
#define HELIO_RECEIVE_PASSING_H

#include "receive/stream.h"

enum {
    HELIO_RX_LOSS_SHIFT = 8, /* a packet counts 1/256 in the share of packets missed */
    HELIO_RX_LOSS_RUN_MAX = 2048,
};

/* Data that follows the newest has come. */
static inline void helio_rx_follow_newest(helio_rx_stream *stream, uint64_t sequence) {
    stream->loss -= stream->loss >> HELIO_RX_LOSS_SHIFT;
    stream->newest = sequence;
}
/* Data newer than all before has come; the packets in between have not. */
static inline void helio_rx_move_newest(helio_rx_stream *stream, uint64_t sequence) {
    const uint64_t missed = sequence - stream->newest - 1;
    for (uint64_t i = 0; i < missed && i < HELIO_RX_LOSS_RUN_MAX; i++) {
        stream->loss += (HELIO_RX_LOSS_ALL - stream->loss) >> HELIO_RX_LOSS_SHIFT;
    }
    helio_rx_follow_newest(stream, sequence);
}

/* Accepts a data packet of `bytes`, not a duplicate: passes it on when it is next, else holds it,
 * and requests missing packets. */
void helio_rx_take(helio_rx_stream *stream, uint64_t sequence, helio_rxw_packet *packet,
                   size_t bytes, helio_moment moment);
/* Accepts data that was held aside (doubt.h). */
void helio_rx_take_aside(helio_rx_stream *stream, const helio_rx_arrival *aside,
                         helio_moment moment);
/* Packets up to `sequence` exist: requests those of the window that are missing. */
void helio_rx_extend(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns);
/* Requests the next piece of missing history. */
void helio_rx_pace(helio_rx_stream *stream, int64_t now_ns);
/* SPMs have announced newer packets than the window knows: it knows them now, up to one window
 * beyond the data that came. */
void helio_rx_believe(helio_rx_stream *stream, int64_t now_ns);
/* The source no longer has packets before `trail`: those missing are lost. */
void helio_rx_advance_source(helio_rx_stream *stream, uint64_t trail, helio_moment moment);
/* The source announced its trail. */
static inline void helio_rx_learn_trail(helio_rx_stream *stream, uint64_t trail,
                                        helio_moment moment) {
    if (trail > stream->told_trail) {
        stream->told_trail = trail;
    }
    if (trail > stream->rxw.source_trail) { /* seldom: the call is not made for each packet */
        helio_rx_advance_source(stream, trail, moment);
    }
}

/* Gives up all missing packets. */
void helio_rx_give_up(helio_rx_stream *stream, helio_rxw_cause cause, helio_moment moment);
/* Gives up packets announced beyond the window too: nothing more comes. */
void helio_rx_give_up_all(helio_rx_stream *stream, helio_rxw_cause cause, helio_moment moment);
/* Gives up everything before `sequence`; the window is empty. */
void helio_rx_give_up_before(helio_rx_stream *stream, uint64_t sequence, helio_rxw_cause cause,
                             helio_moment moment);
/* Passes on packets in order, until one is missing or a sink has no room. */
void helio_rx_drain(helio_rx_stream *stream, helio_moment moment);
/* The sink had no room for all messages of a packet of `bytes` that is next in order: holds it. */
void helio_rx_hold_rest(helio_rx_stream *stream, uint64_t sequence, const helio_rxw_packet *packet,
                        size_t bytes, helio_moment moment);
/* Sets whether the stream waits for room in a sink. */
void helio_rx_set_blocked(helio_rx_stream *stream, bool is_blocked);

/* ---- reconciliation (docs/identities.md) ----
 *
 * A received packet, its fate and the state of the window are counted together; so are packets
 * found missing, and packets reported lost. */

/* Writes the window's state into the statistics; between helio_stats_begin and _end. */
void helio_rx_show_window(helio_rx_stream *stream);
/* Data packets, of `bytes` together, were received; between helio_stats_begin and _end.  Each data
 * packet passes here once. */
static inline void helio_rx_count_received(helio_rx_stream_stats *stats, uint64_t packets,
                                           uint64_t bytes) {
    helio_count(&stats->packets_received, packets);
    helio_count(&stats->bytes_received, bytes);
}
/* Packets, of `bytes` together, were received and passed on in order.  Nothing was held, missing or
 * asked for before them, and is so after them: only the ends of the window have moved. */
static inline void helio_rx_account_in_order(helio_rx_stream *stream, uint64_t packets,
                                             uint64_t bytes) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_rx_count_received(stats, packets, bytes);
    helio_count(&stats->packets_delivered, packets);
    helio_set(&stats->window_trail, stream->rxw.trail);
    helio_set(&stats->window_lead, stream->rxw.known);
    helio_stats_end(stats);
}
/* A packet of `bytes` was received after the newest one, and is held while an older one is missing. */
static inline void helio_rx_account_held(helio_rx_stream *stream, size_t bytes) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_rx_count_received(stats, 1, bytes);
    helio_set(&stats->held_packets, stream->rxw.held);
    helio_set(&stats->window_lead, stream->rxw.known);
    helio_stats_end(stats);
}
/* A data packet of `bytes` was received, and `fate` counts what became of it. */
void helio_rx_account(helio_rx_stream *stream, _Atomic uint64_t *fate, size_t bytes);
/* The stream begins at `first`, earlier than assumed. */
void helio_rx_go_back(helio_rx_stream *stream, uint64_t first);

#endif
