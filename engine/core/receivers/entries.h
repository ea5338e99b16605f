/* Entries in the table of a stream's receivers: admission and eviction.
 *
 * Unproven receivers have a quarter of the entries, and those at one IP address a sixteenth (more of
 * a small table).  Beyond that a newcomer replaces the unproven receiver heard longest ago.  A
 * proven receiver takes an entry that is free or of an unproven one.  Proven receivers at one IP
 * address have half of the entries.  A proven receiver is evicted only when it has left or has been
 * silent for a minute. */
#ifndef HELIO_RECEIVERS_ENTRIES_H
#define HELIO_RECEIVERS_ENTRIES_H

#include "base/hash.h"
#include "receivers/table.h"

static inline uint64_t helio_receivers_key(const helio_address *address) {
    const uint64_t key = helio_hash_fnv1a(address, sizeof *address);
    return key ? key : 1; /* 0 is no id */
}

/* An empty entry for a newcomer at an address.  HELIO_RECEIVER_NONE: refused, and counted. */
helio_receiver_index helio_receivers_take_entry(helio_receivers *receivers,
                                                const helio_address *address, bool is_proven,
                                                helio_moment moment);
/* A receiver is proven from now on.  False: its address has too many; counted. */
bool helio_receivers_prove_entry(helio_receivers *receivers, helio_receiver_index index,
                                 helio_moment moment);
/* Evicts a receiver. */
void helio_receivers_evict(helio_receivers *receivers, helio_receiver_index index,
                           helio_moment moment);
/* Counts sequences requested by a receiver without an entry. */
void helio_receivers_count_others(helio_receivers *receivers, uint64_t sequences);

#endif
