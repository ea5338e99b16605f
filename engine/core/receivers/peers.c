#include "receivers/peers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "receivers/identity.h"
#include "receivers/peer_places.h"
#include "receivers/peer_reports.h"

#define MISSING_NS (250 * HELIO_MILLISECOND) /* who misses a packet asks again within this */
#define EVENT_INTERVAL_NS (10 * HELIO_SECOND)
#define REBIND_NS HELIO_SECOND /* until the stream says otherwise */
enum { LOOKS_PER_SECOND = 1000, LOOKS_AT_ONCE = 100 };

int helio_peers_init(helio_peers *peers, uint32_t capacity, helio_stats *stats,
                     const char *instance, const char *stream) {
    *peers = (helio_peers){
        .capacity = capacity, .stats = stats, .silence_ns = REBIND_NS, .event_after_ns = INT64_MIN};
    peers->peers = calloc(capacity, sizeof *peers->peers);
    peers->views = calloc(capacity, sizeof *peers->views);
    peers->labels = calloc(1, HELIO_STATS_LABELS_BYTES);
    if (!peers->peers || !peers->views || !peers->labels ||
        helio_map_init(&peers->by_address, capacity) ||
        helio_map_init(&peers->by_receiver, capacity) ||
        helio_hosts_init(&peers->hosts, capacity)) {
        helio_peers_fini(peers, (helio_clock){0});
        return HELIO_ERR_NOMEM;
    }
    helio_bucket_init(&peers->looks, LOOKS_PER_SECOND, LOOKS_AT_ONCE, 0);
    helio_stats_label(peers->labels, HELIO_STATS_LABELS_BYTES, "instance", instance);
    helio_stats_label(peers->labels, HELIO_STATS_LABELS_BYTES, "stream", stream);
    return 0;
}

void helio_peers_fini(helio_peers *peers, helio_clock clock) {
    for (uint32_t i = 0; i < peers->count; i++) {
        helio_stats_close_object(peers->stats, &peers->peers[i].object, clock.wall_ns);
    }
    helio_map_fini(&peers->by_address);
    helio_map_fini(&peers->by_receiver);
    helio_hosts_fini(&peers->hosts);
    free(peers->peers);
    free(peers->views);
    free(peers->labels);
    *peers = (helio_peers){0};
}

/* ---- looking ---- */

static bool is_present(const helio_peers *peers, uint32_t place) {
    return place < peers->count && (peers->views[place].flags & HELIO_VIEW_PRESENT);
}

static uint32_t place_of(const helio_peers *peers, const helio_peer *peer) {
    return (uint32_t)(peer - peers->peers);
}

uint32_t helio_peers_find(const helio_peers *peers, uint64_t receiver) {
    const helio_peer *peer = helio_map_get(&peers->by_receiver, receiver);
    return peer ? place_of(peers, peer) : HELIO_PEER_NONE;
}

uint32_t helio_peers_at(const helio_peers *peers, const helio_address *address) {
    const helio_peer *peer = helio_map_get(&peers->by_address, helio_peer_key(address));
    return peer && helio_address_equal(&peer->address, address) ? place_of(peers, peer)
                                                                : HELIO_PEER_NONE;
}

helio_peer_stats *helio_peers_stats(helio_peers *peers, uint32_t place) {
    return is_present(peers, place) ? peers->peers[place].object.record : NULL;
}

void helio_peers_apply(helio_peers *peers, uint32_t place, unsigned feature) {
    helio_stats_apply(&peers->peers[place].object, feature);
}

helio_receiver_view *helio_peers_view(helio_peers *peers, uint32_t place) {
    return is_present(peers, place) ? &peers->views[place] : NULL;
}

double helio_peers_loss(const helio_peers *peers, uint32_t place) {
    const helio_peer *peer = &peers->peers[place];
    return peer->recent_expected > 0 ? peer->recent_lost / peer->recent_expected : 0;
}

double helio_peers_mean_loss(const helio_peers *peers, uint32_t place) {
    const helio_peer_average *average = &peers->peers[place].average;
    return average->expected > 0 ? average->lost / average->expected : 0;
}

int64_t helio_peers_mean_round_trip_ns(const helio_peers *peers, uint32_t place) {
    return (int64_t)peers->peers[place].average.round_trip_ns;
}

/* ---- statistics ---- */

/* The first receiver of an address is labelled with it, another one there also with its id. */
static void label_of(const helio_peers *peers, uint32_t place, char text[96]) {
    const helio_peer *peer = &peers->peers[place];
    char address[HELIO_ADDRESS_TEXT];
    helio_address_format(&peer->address, address);
    if (helio_map_get(&peers->by_address, helio_peer_key(&peer->address)) == peer) {
        snprintf(text, 96, "%s", address);
    } else {
        snprintf(text, 96, "%s#%016" PRIx64, address, peers->views[place].receiver);
    }
}

static int open_object(helio_peers *peers, uint32_t place, helio_clock clock) {
    helio_peer *peer = &peers->peers[place];
    char labels[HELIO_STATS_LABELS_BYTES], text[96];
    memcpy(labels, peers->labels, sizeof labels);
    label_of(peers, place, text);
    helio_stats_label(labels, sizeof labels, "peer", text);
    helio_stats_label(labels, sizeof labels, "name", peer->name);
    snprintf(text, sizeof text, "%016" PRIx64, peers->views[place].receiver);
    helio_stats_label(labels, sizeof labels, "receiver", text);
    return helio_stats_open_object(peers->stats, HELIO_SCOPE_PEER, labels, clock.wall_ns,
                                   &peer->object);
}

/* Its labels have changed: an object that says so takes the old one's place, and its counts. */
static void reopen_object(helio_peers *peers, uint32_t place, helio_clock clock) {
    helio_peer *peer = &peers->peers[place];
    helio_stats_object before;
    helio_stats_move_object(peers->stats, &peer->object, &before);
    if (open_object(peers, place, clock)) { /* without memory it keeps the labels it has */
        helio_stats_move_object(peers->stats, &before, &peer->object);
        return;
    }
    const helio_peer_stats *from = before.record;
    helio_peer_stats *to = peer->object.record;
    helio_stats_begin(to);
#define X(cell, ...) helio_set(&to->cell, helio_cell(&from->cell));
    HELIO_STATS_PEER(X)
#undef X
    helio_stats_end(to);
    helio_stats_close_object(peers->stats, &before, clock.wall_ns);
}

/* One name a life: who speaks in many names would have its object opened again and again. */
static bool learn_name(helio_peer *peer, const helio_pgm_told *told, bool is_same_life) {
    char name[sizeof peer->name] = "";
    for (size_t i = 0; i < told->name_bytes; i++) { /* it goes into texts and labels */
        name[i] = told->name[i] < ' ' && told->name[i] >= 0 ? '?' : told->name[i];
    }
    if (told->name_bytes == 0 || (is_same_life && peer->name[0]) || strcmp(name, peer->name) == 0) {
        return false;
    }
    memcpy(peer->name, name, sizeof name);
    return true;
}

/* ---- coming and going ---- */

/* `told`: what it says of itself, if it does, so that its object has its name from the start. */
static uint32_t add_peer(helio_peers *peers, const helio_address *address, uint64_t receiver,
                         const helio_pgm_told *told, helio_clock clock) {
    const bool is_proven = told || peers->are_pinned;
    const uint32_t place = helio_peer_place_take(peers, address, is_proven, clock);
    if (place == HELIO_PEER_NONE) {
        return place;
    }
    helio_peer *peer = &peers->peers[place];
    *peer = (helio_peer){
        .address = *address,
        .born = ++peers->births,
        .host = helio_hosts_enter(&peers->hosts, address, is_proven),
        .is_proven = is_proven,
        .brings = is_proven,
        .began_ns = clock.now_ns,
    };
    peers->unproven += !is_proven;
    peers->views[place] = (helio_receiver_view){
        .receiver = receiver,
        .flags = HELIO_VIEW_PRESENT | (peers->are_pinned ? HELIO_VIEW_PINNED : 0),
        .place = place,
        .heard_ns = clock.now_ns,
    };
    peers->vacant--;
    if (told) {
        learn_name(peer, told, false);
    }
    const bool is_first = !helio_map_get(&peers->by_address, helio_peer_key(address));
    if ((is_first && helio_map_put(&peers->by_address, helio_peer_key(address), peer)) ||
        helio_map_put(&peers->by_receiver, receiver, peer) || open_object(peers, place, clock)) {
        helio_peer_place_empty(peers, place, clock); /* without memory it goes uncounted */
        return HELIO_PEER_NONE;
    }
    if (!is_proven && clock.now_ns < peers->refused.quiet_ns) { /* one of a storm of them */
        return place;
    }
    char text[96];
    label_of(peers, place, text);
    helio_stats_event(peers->stats, clock.wall_ns, HELIO_EVENT_PEER_SEEN, peer->object.slot, NULL,
                      "%s gives feedback", text);
    return place;
}

uint32_t helio_peers_meet(helio_peers *peers, const helio_address *address, helio_clock clock) {
    const uint64_t key = helio_peer_key(address);
    const helio_peer *peer = helio_map_get(&peers->by_address, key);
    if (!peer) { /* unless the hash is another receiver's id */
        return helio_map_get(&peers->by_receiver, key) ? HELIO_PEER_NONE
                                                       : add_peer(peers, address, key, NULL, clock);
    }
    /* Two addresses of one hash: only the first is counted. */
    if (!helio_address_equal(&peer->address, address)) {
        return HELIO_PEER_NONE;
    }
    helio_receiver_view *view = &peers->views[place_of(peers, peer)];
    view->heard_ns = clock.now_ns;
    view->flags |= HELIO_VIEW_NEWS;
    return place_of(peers, peer);
}

/* ---- who reports ---- */

static void tell(helio_peers *peers, helio_event_id event, uint32_t place, const char *what,
                 const helio_address *other, helio_clock clock) {
    const helio_peer *peer = &peers->peers[place];
    const helio_receiver_view *view = &peers->views[place];
    char text[96], at[HELIO_ADDRESS_TEXT] = "";
    label_of(peers, place, text);
    if (other) {
        helio_address_format(other, at);
    }
    helio_stats_event(peers->stats, clock.wall_ns, event, peer->object.slot,
                      (const uint64_t[4]){view->receiver, view->incarnation, view->position},
                      "receiver %s (%s) %s%s", peer->name, text, what, at);
}

/* The counts made for an address go to the receiver that now speaks from there. */
static void fold(helio_peers *peers, uint32_t from, uint32_t into, helio_clock clock) {
    const helio_receiver_view *lost = &peers->views[from];
    helio_receiver_view *kept = &peers->views[into];
    kept->naks += lost->naks;
    kept->naks_again += lost->naks_again;
    kept->naks_late += lost->naks_late;
    kept->naks_shed += lost->naks_shed;
    kept->repairs += lost->repairs;
    kept->repair_bytes += lost->repair_bytes;
    peers->peers[into].asked_for += peers->peers[from].asked_for;
    peers->peers[from].asked_for = 0;
    const helio_peer_stats *cells = peers->peers[from].object.record;
    helio_peer_stats *to = peers->peers[into].object.record;
    helio_stats_begin(to);
    helio_count(&to->nak_packets_received, helio_cell(&cells->nak_packets_received));
    helio_count(&to->naks_received, helio_cell(&cells->naks_received));
    helio_count(&to->naks_repeated, helio_cell(&cells->naks_repeated));
    helio_count(&to->naks_too_late, helio_cell(&cells->naks_too_late));
    helio_count(&to->repairs_caused, helio_cell(&cells->repairs_caused));
    helio_count(&to->repair_bytes_caused, helio_cell(&cells->repair_bytes_caused));
    helio_stats_end(to);
    helio_peer_place_empty(peers, from, clock);
}

/* The receiver has moved. */
static void rebind(helio_peers *peers, uint32_t place, const helio_address *address,
                   helio_clock clock) {
    helio_peer *peer = &peers->peers[place];
    if (helio_map_get(&peers->by_address, helio_peer_key(&peer->address)) == peer) {
        helio_map_remove(&peers->by_address, helio_peer_key(&peer->address));
    }
    peer->address = *address;
    helio_hosts_leave(&peers->hosts, peer->host, peer->is_proven);
    peer->host = helio_hosts_enter(&peers->hosts, address, peer->is_proven);
    peer->brings = true;
    const helio_peer *there = helio_map_get(&peers->by_address, helio_peer_key(address));
    if (there && !(peers->views[place_of(peers, there)].flags & HELIO_VIEW_REPORTS)) {
        fold(peers, place_of(peers, there), place, clock);
    }
    if (!helio_map_get(&peers->by_address, helio_peer_key(address))) {
        helio_map_put(&peers->by_address, helio_peer_key(address),
                      peer); /* without memory: by id only */
    }
    reopen_object(peers, place, clock);
}

/* One met by its address says who it is. */
static bool name_peer(helio_peers *peers, uint32_t place, uint64_t receiver) {
    helio_receiver_view *view = &peers->views[place];
    if (helio_map_put(&peers->by_receiver, receiver, &peers->peers[place])) {
        return false;
    }
    if (view->receiver != receiver) {
        helio_map_remove(&peers->by_receiver, view->receiver);
    }
    view->receiver = receiver;
    return true;
}

void helio_peers_tell_conflict(helio_peers *peers, uint32_t place, const helio_address *from,
                               helio_clock clock) {
    if (clock.now_ns < peers->event_after_ns) {
        return;
    }
    peers->event_after_ns = clock.now_ns + EVENT_INTERVAL_NS;
    tell(peers, HELIO_EVENT_RECEIVER_CONFLICT, place, "is also spoken for from ", from, clock);
}

void helio_peers_prove(helio_peers *peers, uint32_t place, helio_clock clock) {
    if (is_present(peers, place)) {
        helio_peer_place_prove(peers, place, clock);
    }
}

static helio_identity identity_of(const helio_peers *peers, uint32_t place) {
    const helio_receiver_view *view = &peers->views[place];
    return (helio_identity){
        .address = &peers->peers[place].address,
        .incarnation = view->incarnation,
        .began_ns = peers->peers[place].began_ns,
        .heard_ns = view->heard_ns,
        .has_left = view->flags & HELIO_VIEW_LEFT,
    };
}

helio_whereabouts helio_peers_whereabouts(const helio_peers *peers, uint64_t receiver,
                                          const helio_address *from, int64_t now_ns) {
    const uint32_t place = helio_peers_find(peers, receiver);
    if (place == HELIO_PEER_NONE || !(peers->views[place].flags & HELIO_VIEW_REPORTS)) {
        return HELIO_WHEREABOUTS_UNKNOWN;
    }
    const helio_identity known = identity_of(peers, place);
    return helio_address_equal(known.address, from) ? HELIO_WHEREABOUTS_HERE
           : helio_identity_is_elsewhere(&known, from, peers->silence_ns, now_ns)
               ? HELIO_WHEREABOUTS_ELSEWHERE
               : HELIO_WHEREABOUTS_UNKNOWN;
}

/* The receiver at this address that has not said who it is says so with a report. */
static uint32_t reporter_at(helio_peers *peers, const helio_peer *here, uint64_t receiver,
                            const helio_address *from, helio_clock clock) {
    const uint32_t place = place_of(peers, here);
    if (!helio_address_equal(&here->address, from) ||
        !helio_peer_place_prove(peers, place, clock) || !name_peer(peers, place, receiver)) {
        return HELIO_PEER_NONE;
    }
    return place;
}

/* The receiver a report is of, for the first time; HELIO_PEER_NONE: there is no room. */
static uint32_t new_reporter(helio_peers *peers, const helio_pgm_told *told,
                             const helio_address *from, helio_clock clock) {
    const helio_peer *here = helio_map_get(&peers->by_address, helio_peer_key(from));
    return !here || (peers->views[place_of(peers, here)].flags & HELIO_VIEW_REPORTS)
               ? add_peer(peers, from, told->receiver, told, clock)
               : reporter_at(peers, here, told->receiver, from, clock);
}

/* The receiver a report is of; *why: TAKEN unless it is refused. */
static uint32_t reporter(helio_peers *peers, const helio_pgm_told *told, const helio_address *from,
                         const helio_report_context *context, helio_clock clock,
                         helio_report_result *why) {
    uint32_t place = helio_peers_find(peers, told->receiver);
    const helio_receiver_view nobody = {0};
    if (place == HELIO_PEER_NONE) {
        *why = helio_peer_check_report(&nobody, told, context);
        if (*why == HELIO_REPORT_TAKEN &&
            (place = new_reporter(peers, told, from, clock)) == HELIO_PEER_NONE) {
            *why = HELIO_REPORT_NO_ROOM;
        }
        return place;
    }
    helio_receiver_view *view = &peers->views[place];
    helio_identity known = identity_of(peers, place);
    if (!(view->flags & HELIO_VIEW_REPORTS)) { /* it has told no life of it */
        known.incarnation = told->incarnation;
    }
    switch (
        helio_identity_judge(&known, from, told->incarnation, peers->silence_ns, clock.now_ns)) {
    case HELIO_IDENTITY_ELSEWHERE:
        *why = HELIO_REPORT_ELSEWHERE;
        helio_peers_tell_conflict(peers, place, from, clock);
        return HELIO_PEER_NONE;
    case HELIO_IDENTITY_STALE:
        *why = HELIO_REPORT_STALE;
        return helio_address_equal(known.address, from) ? place : HELIO_PEER_NONE;
    case HELIO_IDENTITY_IMPOSSIBLE:
        *why = HELIO_REPORT_IMPOSSIBLE;
        return place;
    case HELIO_IDENTITY_MOVED:
        *why = helio_peer_check_report(&nobody, told, context);
        if (*why != HELIO_REPORT_TAKEN) {
            return HELIO_PEER_NONE;
        }
        if (told->incarnation < view->incarnation) {
            view->incarnation = 0; /* it was forged, or its clock was set back: a new life begins */
        }
        rebind(peers, place, from, clock);
        return place;
    case HELIO_IDENTITY_SAME:
        break;
    }
    *why = helio_peer_place_prove(peers, place, clock) ? HELIO_REPORT_TAKEN : HELIO_REPORT_NO_ROOM;
    return place;
}

helio_report_result helio_peers_hear(helio_peers *peers, const helio_pgm_told *told,
                                     const helio_address *from, const helio_report_context *context,
                                     helio_clock clock, uint32_t *place) {
    helio_report_result result;
    const uint64_t births = peers->births;
    *place = reporter(peers, told, from, context, clock, &result);
    if (result != HELIO_REPORT_TAKEN) {
        return result;
    }
    helio_receiver_view *view = &peers->views[*place];
    helio_peer *peer = &peers->peers[*place];
    const bool is_new = peers->births != births;
    const bool was_known = view->flags & HELIO_VIEW_REPORTS;
    const bool was_there = was_known && !(view->flags & HELIO_VIEW_LEFT);
    const uint64_t incarnation = view->incarnation;
    result = helio_peer_take_report(peer, view, told, context);
    if (result != HELIO_REPORT_TAKEN) {
        return result;
    }
    view->heard_ns = clock.now_ns;
    if (!is_new && was_known && view->incarnation != incarnation) {
        peer->began_ns = clock.now_ns;
        peer->brings = true;
    }
    if (!is_new && (learn_name(peer, told, view->incarnation == incarnation) || !was_known)) {
        reopen_object(peers, *place, clock);
    }
    if (was_known && view->incarnation != incarnation) {
        tell(peers, HELIO_EVENT_RECEIVER_RESTARTED, *place, "has begun anew", NULL, clock);
    }
    if (was_there && (view->flags & HELIO_VIEW_LEFT)) {
        tell(peers, HELIO_EVENT_RECEIVER_LEFT, *place, "has left", NULL, clock);
    }
    helio_peer_show_report(peer, view, context, clock);
    return result;
}

/* ---- what they ask for ---- */

void helio_peers_take_peaks(helio_peers *peers, uint32_t place, uint64_t *lag, uint32_t *fill) {
    helio_peer *peer = &peers->peers[place];
    *lag = peer->peak_lag;
    *fill = peer->peak_fill;
    peer->peak_lag = peer->told.packets;
    peer->peak_fill = peers->views[place].buffer_fill;
}

void helio_peers_count_asked(helio_peers *peers, uint32_t place, uint64_t sequences) {
    peers->asked_for += sequences;
    if (is_present(peers, place)) {
        peers->peers[place].asked_for += sequences;
        helio_count(&helio_peers_stats(peers, place)->naks_received, sequences);
    } else {
        helio_peer_count_others(peers, sequences);
    }
}

double helio_peers_asked_share(const helio_peers *peers, uint32_t place) {
    return peers->asked_for ? (double)peers->peers[place].asked_for / (double)peers->asked_for : 0;
}

bool helio_peers_ask(helio_peers *peers, uint32_t place, uint64_t sequence, int64_t now_ns) {
    helio_receiver_view *view = helio_peers_view(peers, place);
    if (!view) {
        return true;
    }
    helio_peer *peer = &peers->peers[place];
    const bool is_first = helio_asked_note(&peer->asked, sequence);
    view->naks += is_first;
    view->naks_again += !is_first;
    if (sequence > view->position && (view->missing == 0 || sequence <= view->missing)) {
        view->missing = sequence;
        peer->missing_ns = now_ns;
    }
    return is_first;
}

void helio_peers_reach(helio_peers *peers, uint32_t place, uint64_t position) {
    helio_receiver_view *view = helio_peers_view(peers, place);
    if (!view || position <= view->position) {
        return;
    }
    view->position = position;
    if (view->missing <= position) {
        view->missing = helio_asked_after(&peers->peers[place].asked, position);
    }
}

uint32_t helio_peers_tend(helio_peers *peers, int64_t now_ns) {
    uint32_t reporting = 0;
    for (uint32_t i = 0; i < peers->count; i++) {
        helio_receiver_view *view = &peers->views[i];
        const bool reports = view->flags & HELIO_VIEW_REPORTS;
        reporting += reports && !(view->flags & HELIO_VIEW_LEFT) &&
                     now_ns - view->heard_ns < 4 * peers->silence_ns;
        if (view->missing && !reports && now_ns - peers->peers[i].missing_ns > MISSING_NS) {
            view->missing = 0;
        }
    }
    return reporting;
}
