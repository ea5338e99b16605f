/* Where packets that did not come got lost, as far as the receiving side can know
 * (docs/adr/0020): a packet first seen missing is given a place by what is known at that moment,
 * and counted there when it turns out to have been lost - asked for and repaired, or given up - and
 * not only late.
 *
 *   history  it was sent before this receiver came, which catches up with it
 *   late     nowhere: it came itself after it had been asked for, and no repair
 *   queue    it came while the application's queue had no room, and the window could hold no more
 *   window   it came, and the window was full behind a packet that is missing
 *   socket   the kernel (or a ring of shared memory) dropped it before the engine could read it
 *   outside  it never came to this host's socket: the network lost it, or its source never sent it
 *
 * Evidence is a number of packets dropped at a place and not yet found missing; packets missing use
 * it up.  A drop that leaves no gap (of an SPM, a repair, a double) would stay behind as evidence
 * for what it did not cause, so what is left of it is forgotten after a while. */
#ifndef HELIO_RECEIVE_PLACES_H
#define HELIO_RECEIVE_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct helio_rx_stream;
struct helio_rx_shared;

/* The values of rx_stream.losses_located, in order. */
typedef enum helio_rx_place {
    HELIO_RX_PLACE_HISTORY,
    HELIO_RX_PLACE_LATE,
    HELIO_RX_PLACE_QUEUE,
    HELIO_RX_PLACE_WINDOW,
    HELIO_RX_PLACE_SOCKET,
    HELIO_RX_PLACE_OUTSIDE,
    HELIO_RX_PLACES
} helio_rx_place;

/* How many packets of a range died where. */
typedef struct helio_rx_shares {
    uint64_t of[HELIO_RX_PLACES];
} helio_rx_shares;

/* Datagrams dropped below the engine, of one endpoint. */
typedef struct helio_rx_drops {
    uint64_t seen;        /* all there ever were */
    uint64_t unexplained; /* of these, those no gap was found for yet */
    int64_t rose_ns;      /* when there were new ones */
    int64_t read_ns;      /* when the counter was read for a gap */
} helio_rx_drops;

/* Packets that found no room in the window of one stream and were not found missing yet. */
typedef struct helio_rx_turned_away {
    uint64_t for_queue;
    uint64_t for_window;
    uint64_t newest; /* of them */
} helio_rx_turned_away;

/* The counter stands at `total`. */
void helio_rx_drops_note(helio_rx_drops *drops, uint64_t total, int64_t now_ns);

/* An original packet found no room in the window. */
void helio_rx_places_turn_away(struct helio_rx_stream *stream, uint64_t sequence);
/* Packets from `first` on are seen missing: divides them among the places.  With `in_window` their
 * slots keep it. */
helio_rx_shares helio_rx_places_find(struct helio_rx_stream *stream, uint64_t first, uint64_t count,
                                     bool in_window, int64_t now_ns);
/* A packet given a place was only late. */
void helio_rx_places_take_back(struct helio_rx_stream *stream, helio_rx_place place);
/* Packets were lost there; between helio_stats_begin and _end. */
void helio_rx_places_count(struct helio_rx_stream *stream, const helio_rx_shares *shares);
/* Tells of those lost since it was told last, once a second at most. */
void helio_rx_places_tell(struct helio_rx_stream *stream, helio_clock clock);

#endif
