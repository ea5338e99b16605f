/* Entries in the table of a stream's receivers: who gets one, and who gives way.
 *
 * Receivers that have proven nothing have a quarter of the entrys, and those of one IP address a
 * sixteenth (of a small table more): beyond that the one of them that was heard longest ago gives
 * way to the newcomer.  A proven one takes any entry that is free or an unproven one has; one IP
 * address has half of them.  It gives way when it has said goodbye or has been silent for a
 * minute. */
#ifndef HELIO_RECEIVERS_ENTRIES_H
#define HELIO_RECEIVERS_ENTRIES_H

#include "base/hash.h"
#include "receivers/table.h"

static inline uint64_t helio_receivers_key(const helio_address *address) {
    const uint64_t key = helio_hash_fnv1a(address, sizeof *address);
    return key ? key : 1; /* 0 is nobody's id */
}

/* An empty entry for a newcomer at an address; HELIO_RECEIVER_NONE: it is refused, which is
 * counted. */
helio_receiver_index helio_receivers_take_entry(helio_receivers *receivers,
                                                const helio_address *address, bool is_proven,
                                                helio_moment moment);
/* A receiver that was not proven is now.  False: its address has too many, which is counted. */
bool helio_receivers_prove_entry(helio_receivers *receivers, helio_receiver_index index,
                                 helio_moment moment);
/* Takes a receiver out. */
void helio_receivers_evict(helio_receivers *receivers, helio_receiver_index index,
                           helio_moment moment);
/* Sequences asked for by one that has no entry. */
void helio_receivers_count_others(helio_receivers *receivers, uint64_t sequences);

#endif
