#include "receivers/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "receivers/entries.h"
#include "receivers/identity.h"
#include "receivers/reports.h"

#define MISSING_NS \
    (250 * HELIO_MILLISECOND) /* a receiver requests a missing packet again within this */
#define EVENT_INTERVAL_NS (10 * HELIO_SECOND)
#define REBIND_NS HELIO_SECOND /* until the stream says otherwise */
enum { LOOKS_PER_SECOND = 1000, LOOKS_AT_ONCE = 100 };

int helio_receivers_init(helio_receivers *receivers, uint32_t capacity, size_t state_bytes,
                         helio_stats *stats, const char *instance, const char *stream) {
    *receivers = (helio_receivers){.capacity = capacity,
                                   .state_bytes = state_bytes,
                                   .stats = stats,
                                   .silence_ns = REBIND_NS,
                                   .event_after_ns = INT64_MIN};
    receivers->entries = calloc(capacity, sizeof *receivers->entries);
    receivers->views = calloc(capacity, sizeof *receivers->views);
    receivers->states = calloc(capacity, state_bytes ? state_bytes : 1);
    receivers->labels = calloc(1, HELIO_STATS_LABELS_BYTES);
    if (!receivers->entries || !receivers->views || !receivers->states || !receivers->labels ||
        helio_map_init(&receivers->by_address, capacity) ||
        helio_map_init(&receivers->by_receiver, capacity) ||
        helio_hosts_init(&receivers->hosts, capacity)) {
        helio_receivers_fini(receivers, (helio_moment){0});
        return HELIO_ERR_NOMEM;
    }
    helio_bucket_init(&receivers->looks, LOOKS_PER_SECOND, LOOKS_AT_ONCE, 0);
    helio_stats_label(receivers->labels, HELIO_STATS_LABELS_BYTES, "instance", instance);
    helio_stats_label(receivers->labels, HELIO_STATS_LABELS_BYTES, "stream", stream);
    return 0;
}

void helio_receivers_fini(helio_receivers *receivers, helio_moment moment) {
    for (uint32_t i = 0; i < receivers->count; i++) {
        helio_stats_close_object(receivers->stats, &receivers->entries[i].object, moment.wall_ns);
    }
    helio_map_fini(&receivers->by_address);
    helio_map_fini(&receivers->by_receiver);
    helio_hosts_fini(&receivers->hosts);
    free(receivers->entries);
    free(receivers->views);
    free(receivers->states);
    free(receivers->labels);
    *receivers = (helio_receivers){0};
}

/* ---- finding ---- */

static bool is_present(const helio_receivers *receivers, helio_receiver_index index) {
    return index < receivers->count && (receivers->views[index].flags & HELIO_VIEW_PRESENT);
}

static helio_receiver_index index_of(const helio_receivers *receivers,
                                     const helio_receiver_entry *entry) {
    return (uint32_t)(entry - receivers->entries);
}

helio_receiver_index helio_receivers_find(const helio_receivers *receivers, uint64_t receiver) {
    const helio_receiver_entry *entry = helio_map_get(&receivers->by_receiver, receiver);
    return entry ? index_of(receivers, entry) : HELIO_RECEIVER_NONE;
}

helio_receiver_index helio_receivers_at(const helio_receivers *receivers,
                                        const helio_address *address) {
    const helio_receiver_entry *entry =
        helio_map_get(&receivers->by_address, helio_receivers_key(address));
    return entry && helio_address_equal(&entry->address, address) ? index_of(receivers, entry)
                                                                  : HELIO_RECEIVER_NONE;
}

helio_receiver_index helio_receivers_acknowledging(const helio_receivers *receivers,
                                                   uint64_t receiver, const helio_address *from) {
    const helio_receiver_index known = helio_receivers_find(receivers, receiver);
    if (known != HELIO_RECEIVER_NONE) {
        return known;
    }
    const helio_receiver_index there = helio_receivers_at(receivers, from);
    return there == HELIO_RECEIVER_NONE || (receivers->views[there].flags & HELIO_VIEW_REPORTS)
               ? HELIO_RECEIVER_NONE
               : there;
}

helio_tx_receiver_stats *helio_receivers_stats(helio_receivers *receivers,
                                               helio_receiver_index index) {
    return is_present(receivers, index) ? receivers->entries[index].object.record : NULL;
}

void helio_receivers_apply(helio_receivers *receivers, helio_receiver_index index,
                           unsigned feature) {
    helio_stats_apply(&receivers->entries[index].object, feature);
}

helio_receiver_view *helio_receivers_view(helio_receivers *receivers, helio_receiver_index index) {
    return is_present(receivers, index) ? &receivers->views[index] : NULL;
}

double helio_receivers_loss(const helio_receivers *receivers, helio_receiver_index index) {
    const helio_receiver_entry *entry = &receivers->entries[index];
    return entry->recent_expected > 0 ? entry->recent_lost / entry->recent_expected : 0;
}

double helio_receivers_mean_loss(const helio_receivers *receivers, helio_receiver_index index) {
    const helio_receiver_average *average = &receivers->entries[index].average;
    return average->expected > 0 ? average->lost / average->expected : 0;
}

int64_t helio_receivers_mean_round_trip_ns(const helio_receivers *receivers,
                                           helio_receiver_index index) {
    return (int64_t)receivers->entries[index].average.round_trip_ns;
}

/* ---- statistics ---- */

/* The first receiver of an address is labelled with it, another one there also with its id. */
static void label_of(const helio_receivers *receivers, helio_receiver_index index, char text[96]) {
    const helio_receiver_entry *entry = &receivers->entries[index];
    char address[HELIO_ADDRESS_TEXT];
    helio_address_format(&entry->address, address);
    if (helio_map_get(&receivers->by_address, helio_receivers_key(&entry->address)) == entry) {
        snprintf(text, 96, "%s", address);
    } else {
        snprintf(text, 96, "%s#%016" PRIx64, address, receivers->views[index].receiver);
    }
}

static int open_object(helio_receivers *receivers, helio_receiver_index index,
                       helio_moment moment) {
    helio_receiver_entry *entry = &receivers->entries[index];
    char labels[HELIO_STATS_LABELS_BYTES], text[96];
    memcpy(labels, receivers->labels, sizeof labels);
    label_of(receivers, index, text);
    helio_stats_label(labels, sizeof labels, "receiver", text);
    helio_stats_label(labels, sizeof labels, "name", entry->name);
    snprintf(text, sizeof text, "%016" PRIx64, receivers->views[index].receiver);
    helio_stats_label(labels, sizeof labels, "receiver_id", text);
    return helio_stats_open_object(receivers->stats, HELIO_SCOPE_TX_RECEIVER, labels,
                                   moment.wall_ns, &entry->object);
}

/* Its labels have changed: an object that says so replaces the old one and takes its counts. */
static void reopen_object(helio_receivers *receivers, helio_receiver_index index,
                          helio_moment moment) {
    helio_receiver_entry *entry = &receivers->entries[index];
    helio_stats_object before;
    helio_stats_move_object(receivers->stats, &entry->object, &before);
    if (open_object(receivers, index, moment)) { /* without memory it keeps the labels it has */
        helio_stats_move_object(receivers->stats, &before, &entry->object);
        return;
    }
    const helio_tx_receiver_stats *from = before.record;
    helio_tx_receiver_stats *to = entry->object.record;
    helio_stats_begin(to);
#define X(cell, ...) helio_set(&to->cell, helio_cell(&from->cell));
    HELIO_STATS_TX_RECEIVER(X)
#undef X
    helio_stats_end(to);
    helio_stats_close_object(receivers->stats, &before, moment.wall_ns);
}

/* One name per life, or a receiver with many names would have its object reopened each time. */
static bool learn_name(helio_receiver_entry *entry, const helio_pgm_receiver_report *told,
                       bool is_same_life) {
    char name[sizeof entry->name] = "";
    for (size_t i = 0; i < told->name_bytes; i++) { /* it goes into texts and labels */
        name[i] = told->name[i] < ' ' && told->name[i] >= 0 ? '?' : told->name[i];
    }
    if (told->name_bytes == 0 || (is_same_life && entry->name[0]) ||
        strcmp(name, entry->name) == 0) {
        return false;
    }
    memcpy(entry->name, name, sizeof name);
    return true;
}

/* ---- discovery ---- */

/* `told`: its first report, if any, so that its object has its name from the start. */
static helio_receiver_index add_entry(helio_receivers *receivers, const helio_address *address,
                                      uint64_t receiver, const helio_pgm_receiver_report *told,
                                      helio_moment moment) {
    const bool is_proven = told || receivers->are_pinned;
    const helio_receiver_index index =
        helio_receivers_take_entry(receivers, address, is_proven, moment);
    if (index == HELIO_RECEIVER_NONE) {
        return index;
    }
    helio_receiver_entry *entry = &receivers->entries[index];
    *entry = (helio_receiver_entry){
        .address = *address,
        .born = ++receivers->births,
        .host = helio_hosts_enter(&receivers->hosts, address, is_proven),
        .is_proven = is_proven,
        .brings = is_proven,
        .began_ns = moment.now_ns,
    };
    helio_allowance_begin(&receivers->allowances, &entry->allowance, moment.now_ns);
    if (receivers->state_bytes > 0) {
        memset(helio_receivers_state(receivers, index), 0, receivers->state_bytes);
    }
    receivers->unproven += !is_proven;
    receivers->views[index] = (helio_receiver_view){
        .receiver = receiver,
        .flags = HELIO_VIEW_PRESENT | (receivers->are_pinned ? HELIO_VIEW_PINNED : 0),
        .index = index,
        .heard_ns = moment.now_ns,
    };
    receivers->vacant--;
    if (told) {
        learn_name(entry, told, false);
    }
    const bool is_first = !helio_map_get(&receivers->by_address, helio_receivers_key(address));
    if ((is_first && helio_map_put(&receivers->by_address, helio_receivers_key(address), entry)) ||
        helio_map_put(&receivers->by_receiver, receiver, entry) ||
        open_object(receivers, index, moment)) {
        helio_receivers_evict(receivers, index, moment); /* without memory it is not tracked */
        return HELIO_RECEIVER_NONE;
    }
    if (!is_proven && moment.now_ns < receivers->refused.quiet_ns) { /* one of a storm of them */
        return index;
    }
    char text[96];
    label_of(receivers, index, text);
    helio_stats_event(receivers->stats, moment.wall_ns, HELIO_EVENT_RECEIVER_DISCOVERED,
                      entry->object.slot, NULL, "%s sends feedback", text);
    return index;
}

helio_receiver_index helio_receivers_discover(helio_receivers *receivers,
                                              const helio_address *address, helio_moment moment) {
    const uint64_t key = helio_receivers_key(address);
    const helio_receiver_entry *entry = helio_map_get(&receivers->by_address, key);
    if (!entry) { /* unless the hash is another receiver's id */
        return helio_map_get(&receivers->by_receiver, key)
                   ? HELIO_RECEIVER_NONE
                   : add_entry(receivers, address, key, NULL, moment);
    }
    /* Two addresses of one hash: only the first is counted. */
    if (!helio_address_equal(&entry->address, address)) {
        return HELIO_RECEIVER_NONE;
    }
    helio_receiver_view *view = &receivers->views[index_of(receivers, entry)];
    view->heard_ns = moment.now_ns;
    view->flags |= HELIO_VIEW_NEWS;
    return index_of(receivers, entry);
}

/* ---- reports ---- */

static void tell(helio_receivers *receivers, helio_event_id event, helio_receiver_index index,
                 const char *what, const helio_address *other, helio_moment moment) {
    const helio_receiver_entry *entry = &receivers->entries[index];
    const helio_receiver_view *view = &receivers->views[index];
    char text[96], at[HELIO_ADDRESS_TEXT] = "";
    label_of(receivers, index, text);
    if (other) {
        helio_address_format(other, at);
    }
    helio_stats_event(receivers->stats, moment.wall_ns, event, entry->object.slot,
                      (const uint64_t[4]){view->receiver, view->incarnation, view->position},
                      "receiver %s (%s) %s%s", entry->name, text, what, at);
}

/* Adds the counts of the receiver known by an address to the one that now reports from there. */
static void fold(helio_receivers *receivers, uint32_t from, uint32_t into, helio_moment moment) {
    const helio_receiver_view *lost = &receivers->views[from];
    helio_receiver_view *kept = &receivers->views[into];
    kept->naks += lost->naks;
    kept->naks_again += lost->naks_again;
    kept->naks_late += lost->naks_late;
    kept->naks_shed += lost->naks_shed;
    kept->repairs += lost->repairs;
    kept->repair_bytes += lost->repair_bytes;
    receivers->entries[into].asked_for += receivers->entries[from].asked_for;
    receivers->entries[from].asked_for = 0;
    const helio_tx_receiver_stats *cells = receivers->entries[from].object.record;
    helio_tx_receiver_stats *to = receivers->entries[into].object.record;
    helio_stats_begin(to);
    helio_count(&to->nak_packets_received, helio_cell(&cells->nak_packets_received));
    helio_count(&to->naks_received, helio_cell(&cells->naks_received));
    helio_count(&to->naks_repeated, helio_cell(&cells->naks_repeated));
    helio_count(&to->naks_too_late, helio_cell(&cells->naks_too_late));
    helio_count(&to->repairs_caused, helio_cell(&cells->repairs_caused));
    helio_count(&to->repair_bytes_caused, helio_cell(&cells->repair_bytes_caused));
    helio_stats_end(to);
    helio_receivers_evict(receivers, from, moment);
}

/* The receiver has moved. */
static void rebind(helio_receivers *receivers, helio_receiver_index index,
                   const helio_address *address, helio_moment moment) {
    helio_receiver_entry *entry = &receivers->entries[index];
    if (helio_map_get(&receivers->by_address, helio_receivers_key(&entry->address)) == entry) {
        helio_map_remove(&receivers->by_address, helio_receivers_key(&entry->address));
    }
    entry->address = *address;
    helio_hosts_leave(&receivers->hosts, entry->host, entry->is_proven);
    entry->host = helio_hosts_enter(&receivers->hosts, address, entry->is_proven);
    entry->brings = true;
    const helio_receiver_entry *there =
        helio_map_get(&receivers->by_address, helio_receivers_key(address));
    if (there && !(receivers->views[index_of(receivers, there)].flags & HELIO_VIEW_REPORTS)) {
        fold(receivers, index_of(receivers, there), index, moment);
    }
    if (!helio_map_get(&receivers->by_address, helio_receivers_key(address))) {
        helio_map_put(&receivers->by_address, helio_receivers_key(address),
                      entry); /* without memory: by id only */
    }
    reopen_object(receivers, index, moment);
}

/* A receiver known by its address gets the id that it reports. */
static bool name_entry(helio_receivers *receivers, helio_receiver_index index, uint64_t receiver) {
    helio_receiver_view *view = &receivers->views[index];
    if (helio_map_put(&receivers->by_receiver, receiver, &receivers->entries[index])) {
        return false;
    }
    if (view->receiver != receiver) {
        helio_map_remove(&receivers->by_receiver, view->receiver);
    }
    view->receiver = receiver;
    return true;
}

void helio_receivers_report_conflict(helio_receivers *receivers, helio_receiver_index index,
                                     const helio_address *from, helio_moment moment) {
    if (moment.now_ns < receivers->event_after_ns) {
        return;
    }
    receivers->event_after_ns = moment.now_ns + EVENT_INTERVAL_NS;
    tell(receivers, HELIO_EVENT_RECEIVER_CONFLICT, index, "also reports from ", from, moment);
}

void helio_receivers_prove(helio_receivers *receivers, helio_receiver_index index,
                           helio_moment moment) {
    if (is_present(receivers, index)) {
        helio_receivers_prove_entry(receivers, index, moment);
    }
}

static helio_identity identity_of(const helio_receivers *receivers, helio_receiver_index index) {
    const helio_receiver_view *view = &receivers->views[index];
    return (helio_identity){
        .address = &receivers->entries[index].address,
        .incarnation = view->incarnation,
        .began_ns = receivers->entries[index].began_ns,
        .heard_ns = view->heard_ns,
        .has_left = view->flags & HELIO_VIEW_LEFT,
    };
}

helio_whereabouts helio_receivers_whereabouts(const helio_receivers *receivers, uint64_t receiver,
                                              const helio_address *from, int64_t now_ns) {
    const helio_receiver_index index = helio_receivers_find(receivers, receiver);
    if (index == HELIO_RECEIVER_NONE || !(receivers->views[index].flags & HELIO_VIEW_REPORTS)) {
        return HELIO_WHEREABOUTS_UNKNOWN;
    }
    const helio_identity known = identity_of(receivers, index);
    return helio_address_equal(known.address, from) ? HELIO_WHEREABOUTS_HERE
           : helio_identity_is_elsewhere(&known, from, receivers->silence_ns, now_ns)
               ? HELIO_WHEREABOUTS_ELSEWHERE
               : HELIO_WHEREABOUTS_UNKNOWN;
}

/* The receiver known by this address sends its first report. */
static helio_receiver_index reporter_at(helio_receivers *receivers,
                                        const helio_receiver_entry *here, uint64_t receiver,
                                        const helio_address *from, helio_moment moment) {
    const helio_receiver_index index = index_of(receivers, here);
    if (!helio_address_equal(&here->address, from) ||
        !helio_receivers_prove_entry(receivers, index, moment) ||
        !name_entry(receivers, index, receiver)) {
        return HELIO_RECEIVER_NONE;
    }
    return index;
}

/* The receiver of a first report; HELIO_RECEIVER_NONE: no room. */
static helio_receiver_index new_reporter(helio_receivers *receivers,
                                         const helio_pgm_receiver_report *told,
                                         const helio_address *from, helio_moment moment) {
    const helio_receiver_entry *here =
        helio_map_get(&receivers->by_address, helio_receivers_key(from));
    return !here || (receivers->views[index_of(receivers, here)].flags & HELIO_VIEW_REPORTS)
               ? add_entry(receivers, from, told->receiver, told, moment)
               : reporter_at(receivers, here, told->receiver, from, moment);
}

/* The receiver of a report; *why: TAKEN unless the report is refused. */
static helio_receiver_index reporter(helio_receivers *receivers,
                                     const helio_pgm_receiver_report *told,
                                     const helio_address *from, const helio_report_context *context,
                                     helio_moment moment, helio_report_result *why) {
    helio_receiver_index index = helio_receivers_find(receivers, told->receiver);
    const helio_receiver_view nobody = {0};
    if (index == HELIO_RECEIVER_NONE) {
        *why = helio_receivers_check_report(&nobody, told, context);
        if (*why == HELIO_REPORT_TAKEN &&
            (index = new_reporter(receivers, told, from, moment)) == HELIO_RECEIVER_NONE) {
            *why = HELIO_REPORT_NO_ROOM;
        }
        return index;
    }
    helio_receiver_view *view = &receivers->views[index];
    helio_identity known = identity_of(receivers, index);
    if (!(view->flags & HELIO_VIEW_REPORTS)) { /* its incarnation is not known */
        known.incarnation = told->incarnation;
    }
    switch (helio_identity_judge(&known, from, told->incarnation, receivers->silence_ns,
                                 moment.now_ns)) {
    case HELIO_IDENTITY_ELSEWHERE:
        *why = HELIO_REPORT_ELSEWHERE;
        helio_receivers_report_conflict(receivers, index, from, moment);
        return HELIO_RECEIVER_NONE;
    case HELIO_IDENTITY_STALE:
        *why = HELIO_REPORT_STALE;
        return helio_address_equal(known.address, from) ? index : HELIO_RECEIVER_NONE;
    case HELIO_IDENTITY_IMPOSSIBLE:
        *why = HELIO_REPORT_IMPOSSIBLE;
        return index;
    case HELIO_IDENTITY_MOVED:
        *why = helio_receivers_check_report(&nobody, told, context);
        if (*why != HELIO_REPORT_TAKEN) {
            return HELIO_RECEIVER_NONE;
        }
        if (told->incarnation < view->incarnation) {
            view->incarnation = 0; /* it was forged, or its clock was set back: a new life begins */
        }
        rebind(receivers, index, from, moment);
        return index;
    case HELIO_IDENTITY_SAME:
        break;
    }
    *why = helio_receivers_prove_entry(receivers, index, moment) ? HELIO_REPORT_TAKEN
                                                                 : HELIO_REPORT_NO_ROOM;
    return index;
}

helio_report_result helio_receivers_on_report(helio_receivers *receivers,
                                              const helio_pgm_receiver_report *told,
                                              const helio_address *from,
                                              const helio_report_context *context,
                                              helio_moment moment, helio_receiver_index *index) {
    helio_report_result result;
    const uint64_t births = receivers->births;
    *index = reporter(receivers, told, from, context, moment, &result);
    if (result != HELIO_REPORT_TAKEN) {
        return result;
    }
    helio_receiver_view *view = &receivers->views[*index];
    helio_receiver_entry *entry = &receivers->entries[*index];
    const bool is_new = receivers->births != births;
    const bool was_known = view->flags & HELIO_VIEW_REPORTS;
    const bool was_there = was_known && !(view->flags & HELIO_VIEW_LEFT);
    const uint64_t incarnation = view->incarnation;
    result = helio_receivers_take_report(entry, view, told, context);
    if (result != HELIO_REPORT_TAKEN) {
        return result;
    }
    view->heard_ns = moment.now_ns;
    if (!is_new && was_known && view->incarnation != incarnation) {
        entry->began_ns = moment.now_ns;
        entry->brings = true;
    }
    if (!is_new && (learn_name(entry, told, view->incarnation == incarnation) || !was_known)) {
        reopen_object(receivers, *index, moment);
    }
    if (was_known && view->incarnation != incarnation) {
        tell(receivers, HELIO_EVENT_RECEIVER_RESTARTED, *index, "has restarted", NULL, moment);
    }
    if (was_there && (view->flags & HELIO_VIEW_LEFT)) {
        tell(receivers, HELIO_EVENT_RECEIVER_LEFT, *index, "has left", NULL, moment);
    }
    helio_receivers_show_report(entry, view, context, moment);
    return result;
}

/* ---- requests ---- */

void helio_receivers_take_peaks(helio_receivers *receivers, helio_receiver_index index,
                                uint64_t *lag, uint32_t *fill) {
    helio_receiver_entry *entry = &receivers->entries[index];
    *lag = entry->peak_lag;
    *fill = entry->peak_fill;
    entry->peak_lag = entry->told.packets;
    entry->peak_fill = receivers->views[index].buffer_fill;
}

void helio_receivers_count_asked(helio_receivers *receivers, helio_receiver_index index,
                                 uint64_t sequences) {
    receivers->asked_for += sequences;
    if (is_present(receivers, index)) {
        receivers->entries[index].asked_for += sequences;
        helio_count(&helio_receivers_stats(receivers, index)->naks_received, sequences);
    } else {
        helio_receivers_count_others(receivers, sequences);
    }
}

double helio_receivers_asked_share(const helio_receivers *receivers, helio_receiver_index index) {
    return receivers->asked_for
               ? (double)receivers->entries[index].asked_for / (double)receivers->asked_for
               : 0;
}

bool helio_receivers_ask(helio_receivers *receivers, helio_receiver_index index, uint64_t sequence,
                         int64_t now_ns) {
    helio_receiver_view *view = helio_receivers_view(receivers, index);
    if (!view) {
        return true;
    }
    helio_receiver_entry *entry = &receivers->entries[index];
    const bool is_first = helio_asked_note(&entry->asked, sequence);
    view->naks += is_first;
    view->naks_again += !is_first;
    if (sequence > view->position && (view->missing == 0 || sequence <= view->missing)) {
        view->missing = sequence;
        entry->missing_ns = now_ns;
    }
    return is_first;
}

void helio_receivers_reach(helio_receivers *receivers, helio_receiver_index index,
                           uint64_t position) {
    helio_receiver_view *view = helio_receivers_view(receivers, index);
    if (!view || position <= view->position) {
        return;
    }
    view->position = position;
    if (view->missing <= position) {
        view->missing = helio_asked_after(&receivers->entries[index].asked, position);
    }
}

uint32_t helio_receivers_tend(helio_receivers *receivers, int64_t now_ns) {
    uint32_t reporting = 0;
    for (uint32_t i = 0; i < receivers->count; i++) {
        helio_receiver_view *view = &receivers->views[i];
        const bool reports = view->flags & HELIO_VIEW_REPORTS;
        reporting += reports && !(view->flags & HELIO_VIEW_LEFT) &&
                     now_ns - view->heard_ns < 4 * receivers->silence_ns;
        if (view->missing && !reports && now_ns - receivers->entries[i].missing_ns > MISSING_NS) {
            view->missing = 0;
        }
    }
    return reporting;
}
