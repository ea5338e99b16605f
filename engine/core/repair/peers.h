/* The receivers a stream has heard (a request for repair, an acknowledgement), each with statistics
 * of its own (scope peer).
 *
 * A receiver is known by the address its feedback comes from.  The number is bounded: when there is
 * no room, the one heard longest ago gives way if it has been silent for a minute, else the newcomer
 * goes uncounted, so that forged addresses cannot push out real receivers. */
#ifndef HELIO_REPAIR_PEERS_H
#define HELIO_REPAIR_PEERS_H

#include <stdint.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/map.h"
#include "stats/stats.h"

#define HELIO_PEER_NONE UINT32_MAX

typedef struct helio_peer {
    helio_address address;
    helio_stats_object object;
    int64_t heard_ns;
} helio_peer;

typedef struct helio_peers {
    helio_peer *peers;
    uint32_t count;
    uint32_t capacity;
    helio_map by_address;
    helio_stats *stats;
    char *labels;          /* "instance=...\nstream=...\n" */
    int64_t full_until_ns; /* no use looking for one to replace before */
} helio_peers;

/* instance and stream: labels, copied.  0 or NOMEM; free with helio_peers_fini. */
int helio_peers_init(helio_peers *peers, uint32_t capacity, helio_stats *stats,
                     const char *instance, const char *stream);
void helio_peers_fini(helio_peers *peers, helio_clock clock);
/* The index of the peer with this address, made known when it is new; HELIO_PEER_NONE when there is
 * no room. */
uint32_t helio_peers_meet(helio_peers *peers, const helio_address *address, helio_clock clock);
/* Its statistics; NULL for HELIO_PEER_NONE. */
helio_peer_stats *helio_peers_stats(helio_peers *peers, uint32_t index);

#endif
