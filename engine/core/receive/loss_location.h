/* Loss location: where missing packets got lost, as far as the receiving side can know
 * (docs/adr/0020).  A packet first seen missing is given a location by the evidence of that
 * moment.  It is counted there when it turns out to be lost (requested and repaired, or given up)
 * and not only late.
 *
 *   history  it was sent before this receiver joined, which catches up with it
 *   late     nowhere: it came itself after it was requested, and no repair came
 *   queue    it came while the application's queue had no room, and the window was full
 *   window   it came, and the window was full behind a missing packet
 *   socket   the kernel (or a ring of shared memory) dropped it before the engine could read it
 *   outside  it never came to this host's socket: the network lost it, or its source never sent it
 *
 * Evidence is a number of packets dropped at a location and not yet found missing; missing packets
 * use it up.  A drop that leaves no gap (of an SPM, a repair, a duplicate) would remain as evidence
 * for a loss that it did not cause, so the rest is discarded after a while. */
#ifndef HELIO_RECEIVE_LOSS_LOCATION_H
#define HELIO_RECEIVE_LOSS_LOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"

struct helio_rx_stream;
struct helio_rx_shared;

/* The values of rx_stream.losses_located, in order. */
typedef enum helio_rx_location {
    HELIO_RX_LOCATION_HISTORY,
    HELIO_RX_LOCATION_LATE,
    HELIO_RX_LOCATION_QUEUE,
    HELIO_RX_LOCATION_WINDOW,
    HELIO_RX_LOCATION_SOCKET,
    HELIO_RX_LOCATION_OUTSIDE,
    HELIO_RX_LOCATIONS
} helio_rx_location;

/* The lost packets of a range, by location. */
typedef struct helio_rx_shares {
    uint64_t of[HELIO_RX_LOCATIONS];
} helio_rx_shares;

/* Datagrams dropped below the engine, of one endpoint. */
typedef struct helio_rx_drops {
    uint64_t seen;        /* all so far */
    uint64_t unexplained; /* of these, drops without a gap yet */
    int64_t rose_ns;      /* when the number last rose */
    int64_t read_ns;      /* when the counter was last read for a gap */
} helio_rx_drops;

/* Packets without room in the window of one stream, and not found missing yet. */
typedef struct helio_rx_turned_away {
    uint64_t for_queue;
    uint64_t for_window;
    uint64_t newest; /* of them */
} helio_rx_turned_away;

/* The counter of drops is at `total`. */
void helio_rx_drops_note(helio_rx_drops *drops, uint64_t total, int64_t now_ns);

/* An original packet found no room in the window. */
void helio_rx_locations_turn_away(struct helio_rx_stream *stream, uint64_t sequence);
/* Packets from `first` on are missing: divides them among the locations.  With `in_window` their
 * slots keep the result. */
helio_rx_shares helio_rx_locations_find(struct helio_rx_stream *stream, uint64_t first,
                                        uint64_t count, bool in_window, int64_t now_ns);
/* A packet with a location was only late. */
void helio_rx_locations_take_back(struct helio_rx_stream *stream, helio_rx_location place);
/* Counts lost packets by location; between helio_stats_begin and _end. */
void helio_rx_locations_count(struct helio_rx_stream *stream, const helio_rx_shares *shares);
/* Reports losses since the last report, at most once a second. */
void helio_rx_locations_tell(struct helio_rx_stream *stream, helio_moment moment);

#endif
