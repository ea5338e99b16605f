/* A received stream's packets on their way through the window: held until they are next, passed on
 * to the topics, or reported lost.  The inner half of receive/stream.h, which decides what packets mean. */
#ifndef HELIO_RECEIVE_PASSING_H
#define HELIO_RECEIVE_PASSING_H

#include "receive/stream.h"

enum {
    HELIO_RX_LOSS_SHIFT = 8, /* a packet counts 1/256 in the share of packets missed */
    HELIO_RX_LOSS_RUN_MAX = 2048,
};

/* Data newer than any before has come; those between did not. */
static inline void helio_rx_move_newest(helio_rx_stream *stream, uint64_t sequence) {
    const uint64_t missed = sequence - stream->newest - 1;
    for (uint64_t i = 0; i < missed && i < HELIO_RX_LOSS_RUN_MAX; i++) {
        stream->loss += (HELIO_RX_LOSS_ALL - stream->loss) >> HELIO_RX_LOSS_SHIFT;
    }
    stream->loss -= stream->loss >> HELIO_RX_LOSS_SHIFT;
    stream->newest = sequence;
}

/* Takes a data packet of `bytes`, not a duplicate: passes it on when it is next, else holds it, and
 * asks for what is missing. */
void helio_rx_take(helio_rx_stream *stream, uint64_t sequence, helio_rxw_packet *packet,
                   size_t bytes, helio_clock clock);
/* Takes data that was held aside (receive/doubt.h). */
void helio_rx_take_aside(helio_rx_stream *stream, const helio_rx_arrival *aside, helio_clock clock);
/* Packets up to `sequence` exist: asks for those in the window that are missing. */
void helio_rx_extend(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns);
/* Asks for more of what is missing, when it is asked for piece by piece. */
void helio_rx_pace(helio_rx_stream *stream, int64_t now_ns);
/* SPMs have told of newer packets than the window knows: it knows of them now, up to one window
 * beyond what data has shown. */
void helio_rx_believe(helio_rx_stream *stream, int64_t now_ns);
/* What the source has before `trail` no more is lost. */
void helio_rx_advance_source(helio_rx_stream *stream, uint64_t trail, helio_clock clock);
/* The source tells its trail. */
static inline void helio_rx_learn_trail(helio_rx_stream *stream, uint64_t trail,
                                        helio_clock clock) {
    if (trail > stream->told_trail) {
        stream->told_trail = trail;
    }
    helio_rx_advance_source(stream, trail, clock);
}

/* Everything missing is given up. */
void helio_rx_give_up(helio_rx_stream *stream, helio_rxw_cause cause, helio_clock clock);
/* So is what the source has told of beyond the window: nothing more comes. */
void helio_rx_give_up_all(helio_rx_stream *stream, helio_rxw_cause cause, helio_clock clock);
/* Nothing before `sequence` is wanted; the window is empty. */
void helio_rx_give_up_before(helio_rx_stream *stream, uint64_t sequence, helio_rxw_cause cause,
                             helio_clock clock);
/* Passes on all that is next in order, until a packet is missing or a sink has no room. */
void helio_rx_drain(helio_rx_stream *stream, helio_clock clock);
/* Whether the stream waits for room in a sink. */
void helio_rx_set_blocked(helio_rx_stream *stream, bool is_blocked);

/* ---- the books (docs/identities.md) ----
 *
 * A packet received and what became of it are counted in one go, with the window as it then is; so
 * are packets seen missing, and packets told to be lost. */

/* Writes the window's state into the statistics; between helio_stats_begin and _end. */
void helio_rx_show_window(helio_rx_stream *stream);
/* A data packet of `bytes` was received, and `fate` counts what became of it. */
void helio_rx_account(helio_rx_stream *stream, _Atomic uint64_t *fate, size_t bytes);
/* The stream begins at `first`, before where it was thought to. */
void helio_rx_go_back(helio_rx_stream *stream, uint64_t first);

#endif
