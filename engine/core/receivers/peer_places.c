#include "receivers/peer_places.h"

#include <stdio.h>

#define SILENT_NS (60 * HELIO_SECOND)
enum {
    UNPROVEN_PART = 4, /* of all places */
    OF_ADDRESS_PART = 16,
    PROVEN_OF_ADDRESS_PART = 2,
    SHARE_MIN = 16,
};

static uint32_t share(const helio_peers *peers, uint32_t part) {
    return peers->capacity / part > SHARE_MIN ? peers->capacity / part : SHARE_MIN;
}

static void refuse(helio_peers *peers, helio_refusal reason, const helio_address *address,
                   helio_clock clock) {
    char text[128], at[HELIO_ADDRESS_TEXT];
    snprintf(text, sizeof text,
             reason == HELIO_REFUSAL_RECEIVERS_OF_ADDRESS
                 ? "there are too many receivers at %s to know each of them"
                 : "there are too many receivers to know each of them, the last one at %s",
             helio_address_format_ip(address, at));
    helio_refuse(&peers->refusals, reason, 1, &peers->refused, text, clock);
}

/* ---- emptying ---- */

void helio_peer_count_others(helio_peers *peers, uint64_t sequences) {
    peers->asked_by_others += sequences;
    if (peers->stream) {
        helio_count(&peers->stream->naks_others, sequences);
    }
}

void helio_peer_place_empty(helio_peers *peers, uint32_t place, helio_clock clock) {
    helio_peer *peer = &peers->peers[place];
    if (peer->asked_for > 0) {
        helio_peer_count_others(peers, peer->asked_for);
    }
    if (helio_map_get(&peers->by_address, helio_peer_key(&peer->address)) == peer) {
        helio_map_remove(&peers->by_address, helio_peer_key(&peer->address));
    }
    if (helio_map_get(&peers->by_receiver, peers->views[place].receiver) == peer) {
        helio_map_remove(&peers->by_receiver, peers->views[place].receiver);
    }
    helio_stats_close_object(peers->stats, &peer->object, clock.wall_ns);
    helio_hosts_leave(&peers->hosts, peer->host, peer->is_proven);
    peers->unproven -= !peer->is_proven;
    *peer = (helio_peer){.host = HELIO_HOST_NONE};
    peers->views[place] = (helio_receiver_view){.place = place};
    peers->vacant++;
}

/* ---- who gives way ---- */

/* Who is kept from being heard stays known: coming back must not set it free. */
static bool is_kept(const helio_receiver_view *view) {
    return view->flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED);
}

static bool is_leaver(const helio_receiver_view *view) {
    return (view->flags & HELIO_VIEW_LEFT) && !is_kept(view);
}

/* Looking for who gives way takes time, so who invents addresses does not make it happen often. */
static bool may_look(helio_peers *peers, int64_t now_ns) {
    if (helio_bucket_credit(&peers->looks, now_ns) == 0) {
        return false;
    }
    helio_bucket_charge(&peers->looks, 1);
    return true;
}

/* The first to give way of those that are proven or not, at one host or (NONE) at all; those that left
 * before those that are silent.  HELIO_PEER_NONE: there is none. */
static uint32_t first_to_go(const helio_peers *peers, bool is_proven, uint32_t host) {
    uint32_t first = HELIO_PEER_NONE;
    for (uint32_t i = 0; i < peers->count; i++) {
        const helio_receiver_view *view = &peers->views[i];
        if (!(view->flags & HELIO_VIEW_PRESENT) || is_kept(view) ||
            peers->peers[i].is_proven != is_proven ||
            (host != HELIO_HOST_NONE && peers->peers[i].host != host)) {
            continue;
        }
        const helio_receiver_view *best = first == HELIO_PEER_NONE ? NULL : &peers->views[first];
        if (!best || (is_leaver(view) != is_leaver(best) ? is_leaver(view)
                                                         : view->heard_ns < best->heard_ns)) {
            first = i;
        }
    }
    return first;
}

/* One that is not proven gives way. */
static bool put_out(helio_peers *peers, uint32_t host, helio_refusal reason, helio_clock clock) {
    const uint32_t place = first_to_go(peers, false, host);
    if (place == HELIO_PEER_NONE) {
        return false;
    }
    refuse(peers, reason, &peers->peers[place].address, clock);
    helio_peer_place_empty(peers, place, clock);
    return true;
}

/* A proven one that left, or is silent, does; false when all are too lively. */
static bool part_with(helio_peers *peers, uint32_t host, helio_clock clock) {
    const uint32_t place = first_to_go(peers, true, host);
    if (place == HELIO_PEER_NONE) {
        return false;
    }
    const helio_receiver_view *view = &peers->views[place];
    if (!is_leaver(view) && clock.now_ns - view->heard_ns < SILENT_NS) {
        return false;
    }
    helio_peer_place_empty(peers, place, clock);
    return true;
}

/* ---- who gets one ---- */

static bool has_room(const helio_peers *peers) {
    return peers->vacant > 0 || peers->count < peers->capacity;
}

/* A proven newcomer at an address that has its share of places takes the place of one there. */
static bool fits_address(helio_peers *peers, uint32_t host, helio_clock clock) {
    return peers->are_pinned || host == HELIO_HOST_NONE ||
           peers->hosts.hosts[host].proven < share(peers, PROVEN_OF_ADDRESS_PART) ||
           (may_look(peers, clock.now_ns) && part_with(peers, host, clock));
}

static bool admits_proven(helio_peers *peers, const helio_address *address, helio_clock clock) {
    if (!fits_address(peers, helio_hosts_find(&peers->hosts, address), clock)) {
        refuse(peers, HELIO_REFUSAL_RECEIVERS_OF_ADDRESS, address, clock);
        return false;
    }
    if (has_room(peers) ||
        (peers->unproven > 0 && put_out(peers, HELIO_HOST_NONE, HELIO_REFUSAL_RECEIVERS, clock)) ||
        (may_look(peers, clock.now_ns) && part_with(peers, HELIO_HOST_NONE, clock))) {
        return true;
    }
    refuse(peers, HELIO_REFUSAL_RECEIVERS, address, clock);
    return false;
}

static bool admits_unproven(helio_peers *peers, const helio_address *address, helio_clock clock) {
    const uint32_t host = helio_hosts_find(&peers->hosts, address);
    const bool is_crowded = host != HELIO_HOST_NONE &&
                            peers->hosts.hosts[host].unproven >= share(peers, OF_ADDRESS_PART);
    if (!is_crowded && peers->unproven < share(peers, UNPROVEN_PART) && has_room(peers)) {
        return true;
    }
    const helio_refusal reason =
        is_crowded ? HELIO_REFUSAL_RECEIVERS_OF_ADDRESS : HELIO_REFUSAL_RECEIVERS;
    if (may_look(peers, clock.now_ns) &&
        (put_out(peers, is_crowded ? host : HELIO_HOST_NONE, reason, clock) ||
         part_with(peers, HELIO_HOST_NONE, clock))) {
        return true;
    }
    refuse(peers, reason, address, clock);
    return false;
}

uint32_t helio_peer_place_take(helio_peers *peers, const helio_address *address, bool is_proven,
                               helio_clock clock) {
    if (!(is_proven ? admits_proven(peers, address, clock)
                    : admits_unproven(peers, address, clock))) {
        return HELIO_PEER_NONE;
    }
    if (peers->vacant == 0) {
        peers->vacant++;
        return peers->count++;
    }
    uint32_t place = 0;
    while (peers->views[place].flags & HELIO_VIEW_PRESENT) {
        place++;
    }
    return place;
}

bool helio_peer_place_prove(helio_peers *peers, uint32_t place, helio_clock clock) {
    helio_peer *peer = &peers->peers[place];
    if (peer->is_proven) {
        return true;
    }
    if (!fits_address(peers, peer->host, clock)) {
        refuse(peers, HELIO_REFUSAL_RECEIVERS_OF_ADDRESS, &peer->address, clock);
        return false;
    }
    helio_hosts_prove(&peers->hosts, peer->host);
    peer->is_proven = peer->brings = true;
    peers->unproven--;
    return true;
}
