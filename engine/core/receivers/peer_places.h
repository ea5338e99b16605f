/* Places in the table of a stream's receivers: who gets one, and who gives way.
 *
 * Receivers that have proven nothing have a quarter of the places, and those of one IP address a
 * sixteenth (of a small table more): beyond that the one of them that was heard longest ago gives way
 * to the newcomer.  A proven one takes any place that is free or an unproven one has; one IP address
 * has half of them.  It gives way when it has said goodbye or has been silent for a minute. */
#ifndef HELIO_RECEIVERS_PEER_PLACES_H
#define HELIO_RECEIVERS_PEER_PLACES_H

#include "base/hash.h"
#include "receivers/peers.h"

static inline uint64_t helio_peer_key(const helio_address *address) {
    const uint64_t key = helio_hash_fnv1a(address, sizeof *address);
    return key ? key : 1; /* 0 is nobody's id */
}

/* An empty place for a newcomer at an address; HELIO_PEER_NONE: it is refused, which is counted. */
uint32_t helio_peer_place_take(helio_peers *peers, const helio_address *address, bool is_proven,
                               helio_clock clock);
/* A receiver that was not proven is now.  False: its address has too many, which is counted. */
bool helio_peer_place_prove(helio_peers *peers, uint32_t place, helio_clock clock);
/* Takes a receiver out. */
void helio_peer_place_empty(helio_peers *peers, uint32_t place, helio_clock clock);
/* Sequences asked for by one that has no place. */
void helio_peer_count_others(helio_peers *peers, uint64_t sequences);

#endif
