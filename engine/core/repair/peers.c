#include "repair/peers.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/hash.h"

#define SILENT_NS (60 * HELIO_SECOND)

int helio_peers_init(helio_peers *peers, uint32_t capacity, helio_stats *stats,
                     const char *instance, const char *stream) {
    *peers = (helio_peers){.capacity = capacity, .stats = stats};
    peers->peers = calloc(capacity, sizeof *peers->peers);
    peers->labels = calloc(1, HELIO_STATS_LABELS_BYTES);
    if (!peers->peers || !peers->labels || helio_map_init(&peers->by_address, capacity)) {
        free(peers->peers);
        free(peers->labels);
        *peers = (helio_peers){0};
        return HELIO_ERR_NOMEM;
    }
    helio_stats_label(peers->labels, HELIO_STATS_LABELS_BYTES, "instance", instance);
    helio_stats_label(peers->labels, HELIO_STATS_LABELS_BYTES, "stream", stream);
    return 0;
}

void helio_peers_fini(helio_peers *peers, helio_clock clock) {
    for (uint32_t i = 0; i < peers->count; i++)
        helio_stats_close_object(peers->stats, &peers->peers[i].object, clock.wall_ns);
    helio_map_fini(&peers->by_address);
    free(peers->peers);
    free(peers->labels);
    *peers = (helio_peers){0};
}

static uint64_t key_of(const helio_address *address) {
    return helio_hash_fnv1a(address, sizeof *address);
}

/* Frees the place of the peer heard longest ago; NULL when even that one is too lively. */
static helio_peer *replace_oldest(helio_peers *peers, helio_clock clock) {
    if (clock.now_ns < peers->full_until_ns)
        return NULL;
    helio_peer *oldest = &peers->peers[0];
    for (uint32_t i = 1; i < peers->count; i++) {
        if (peers->peers[i].heard_ns < oldest->heard_ns)
            oldest = &peers->peers[i];
    }
    if (clock.now_ns - oldest->heard_ns < SILENT_NS) {
        peers->full_until_ns = oldest->heard_ns + SILENT_NS;
        return NULL;
    }
    helio_map_remove(&peers->by_address, key_of(&oldest->address));
    helio_stats_close_object(peers->stats, &oldest->object, clock.wall_ns);
    return oldest;
}

static int open_object(helio_peers *peers, helio_peer *peer, helio_clock clock) {
    char labels[HELIO_STATS_LABELS_BYTES], text[HELIO_ADDRESS_TEXT];
    memcpy(labels, peers->labels, sizeof labels);
    helio_address_format(&peer->address, text);
    helio_stats_label(labels, sizeof labels, "peer", text);
    const int error = helio_stats_open_object(peers->stats, HELIO_SCOPE_PEER, labels, clock.wall_ns,
                                              &peer->object);
    if (!error)
        helio_stats_event(peers->stats, clock.wall_ns, HELIO_EVENT_PEER_SEEN, peer->object.slot,
                          NULL, "%s gives feedback", text);
    return error;
}

uint32_t helio_peers_meet(helio_peers *peers, const helio_address *address, helio_clock clock) {
    const uint64_t key = key_of(address);
    helio_peer *peer = helio_map_get(&peers->by_address, key);
    if (peer) {
        /* Two addresses of one hash: only the first is counted. */
        if (!helio_address_equal(&peer->address, address))
            return HELIO_PEER_NONE;
        peer->heard_ns = clock.now_ns;
        return (uint32_t)(peer - peers->peers);
    }
    const bool is_full = peers->count == peers->capacity;
    peer = is_full ? replace_oldest(peers, clock) : &peers->peers[peers->count];
    if (!peer)
        return HELIO_PEER_NONE;
    *peer = (helio_peer){.address = *address, .heard_ns = clock.now_ns};
    if (open_object(peers, peer, clock) || helio_map_put(&peers->by_address, key, peer)) {
        /* Without memory it stays uncounted; its place, when in the middle, is the next to be
         * replaced. */
        helio_stats_close_object(peers->stats, &peer->object, clock.wall_ns);
        *peer = (helio_peer){.heard_ns = INT64_MIN / 2};
        return HELIO_PEER_NONE;
    }
    peers->count += !is_full;
    return (uint32_t)(peer - peers->peers);
}

helio_peer_stats *helio_peers_stats(helio_peers *peers, uint32_t index) {
    return index == HELIO_PEER_NONE ? NULL : peers->peers[index].object.record;
}
