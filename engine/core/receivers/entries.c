#include "receivers/entries.h"

#include <stdio.h>

#define SILENT_NS (60 * HELIO_SECOND)
enum {
    UNPROVEN_PART = 4, /* of all entries */
    OF_ADDRESS_PART = 16,
    PROVEN_OF_ADDRESS_PART = 2,
    SHARE_MIN = 16,
};

static uint32_t share(const helio_receivers *receivers, uint32_t part) {
    return receivers->capacity / part > SHARE_MIN ? receivers->capacity / part : SHARE_MIN;
}

static void refuse(helio_receivers *receivers, helio_refusal reason, const helio_address *address,
                   helio_moment moment) {
    char text[128], at[HELIO_ADDRESS_TEXT];
    snprintf(text, sizeof text,
             reason == HELIO_REFUSAL_RECEIVERS_OF_ADDRESS
                 ? "there are too many receivers at %s to track each of them"
                 : "there are too many receivers to track each of them, the last one at %s",
             helio_address_format_ip(address, at));
    helio_refuse(&receivers->refusals, reason, 1, &receivers->refused, text, moment);
}

/* ---- eviction ---- */

void helio_receivers_count_others(helio_receivers *receivers, uint64_t sequences) {
    receivers->asked_by_others += sequences;
    if (receivers->stream) {
        helio_count(&receivers->stream->naks_untracked, sequences);
    }
}

void helio_receivers_evict(helio_receivers *receivers, helio_receiver_index index,
                           helio_moment moment) {
    helio_receiver_entry *entry = &receivers->entries[index];
    if (entry->asked_for > 0) {
        helio_receivers_count_others(receivers, entry->asked_for);
    }
    if (helio_map_get(&receivers->by_address, helio_receivers_key(&entry->address)) == entry) {
        helio_map_remove(&receivers->by_address, helio_receivers_key(&entry->address));
    }
    if (helio_map_get(&receivers->by_receiver, receivers->views[index].receiver) == entry) {
        helio_map_remove(&receivers->by_receiver, receivers->views[index].receiver);
    }
    helio_stats_close_object(receivers->stats, &entry->object, moment.wall_ns);
    helio_hosts_leave(&receivers->hosts, entry->host, entry->is_proven);
    helio_allowance_end(&receivers->allowances, &entry->allowance);
    if (receivers->stream) {
        helio_set(&receivers->stream->receivers_restricted, receivers->allowances.restricted);
    }
    receivers->unproven -= !entry->is_proven;
    *entry = (helio_receiver_entry){.host = HELIO_HOST_NONE};
    receivers->views[index] = (helio_receiver_view){.index = index};
    receivers->vacant++;
}

/* ---- the receiver to evict ---- */

/* A receiver under such an action stays tracked, or its return would end the action. */
static bool is_kept(const helio_receiver_view *view) {
    return view->flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED);
}

static bool is_leaver(const helio_receiver_view *view) {
    return (view->flags & HELIO_VIEW_LEFT) && !is_kept(view);
}

/* The search takes time, so it is limited: made-up addresses must not cause many. */
static bool may_look(helio_receivers *receivers, int64_t now_ns) {
    if (helio_bucket_credit(&receivers->looks, now_ns) == 0) {
        return false;
    }
    helio_bucket_charge(&receivers->looks, 1);
    return true;
}

/* The receiver to evict first, of the proven ones or of the others, at one host or (NONE) at any.
 * Receivers that left come first, then those silent for longest.  HELIO_RECEIVER_NONE: none. */
static helio_receiver_index first_to_evict(const helio_receivers *receivers, bool is_proven,
                                           uint32_t host) {
    helio_receiver_index first = HELIO_RECEIVER_NONE;
    for (uint32_t i = 0; i < receivers->count; i++) {
        const helio_receiver_view *view = &receivers->views[i];
        if (!(view->flags & HELIO_VIEW_PRESENT) || is_kept(view) ||
            receivers->entries[i].is_proven != is_proven ||
            (host != HELIO_HOST_NONE && receivers->entries[i].host != host)) {
            continue;
        }
        const helio_receiver_view *best =
            first == HELIO_RECEIVER_NONE ? NULL : &receivers->views[first];
        if (!best || (is_leaver(view) != is_leaver(best) ? is_leaver(view)
                                                         : view->heard_ns < best->heard_ns)) {
            first = i;
        }
    }
    return first;
}

/* Evicts an unproven receiver. */
static bool evict_unproven(helio_receivers *receivers, uint32_t host, helio_refusal reason,
                           helio_moment moment) {
    const helio_receiver_index index = first_to_evict(receivers, false, host);
    if (index == HELIO_RECEIVER_NONE) {
        return false;
    }
    refuse(receivers, reason, &receivers->entries[index].address, moment);
    helio_receivers_evict(receivers, index, moment);
    return true;
}

/* Evicts a proven receiver that left or is silent; false: there is none. */
static bool evict_proven(helio_receivers *receivers, uint32_t host, helio_moment moment) {
    const helio_receiver_index index = first_to_evict(receivers, true, host);
    if (index == HELIO_RECEIVER_NONE) {
        return false;
    }
    const helio_receiver_view *view = &receivers->views[index];
    if (!is_leaver(view) && moment.now_ns - view->heard_ns < SILENT_NS) {
        return false;
    }
    helio_receivers_evict(receivers, index, moment);
    return true;
}

/* ---- admission ---- */

static bool has_room(const helio_receivers *receivers) {
    return receivers->vacant > 0 || receivers->count < receivers->capacity;
}

/* A proven newcomer at an address with its full share of entries replaces a receiver there. */
static bool fits_address(helio_receivers *receivers, uint32_t host, helio_moment moment) {
    return receivers->are_pinned || host == HELIO_HOST_NONE ||
           receivers->hosts.hosts[host].proven < share(receivers, PROVEN_OF_ADDRESS_PART) ||
           (may_look(receivers, moment.now_ns) && evict_proven(receivers, host, moment));
}

static bool admits_proven(helio_receivers *receivers, const helio_address *address,
                          helio_moment moment) {
    if (!fits_address(receivers, helio_hosts_find(&receivers->hosts, address), moment)) {
        refuse(receivers, HELIO_REFUSAL_RECEIVERS_OF_ADDRESS, address, moment);
        return false;
    }
    if (has_room(receivers) ||
        (receivers->unproven > 0 &&
         evict_unproven(receivers, HELIO_HOST_NONE, HELIO_REFUSAL_RECEIVERS, moment)) ||
        (may_look(receivers, moment.now_ns) && evict_proven(receivers, HELIO_HOST_NONE, moment))) {
        return true;
    }
    refuse(receivers, HELIO_REFUSAL_RECEIVERS, address, moment);
    return false;
}

static bool admits_unproven(helio_receivers *receivers, const helio_address *address,
                            helio_moment moment) {
    const uint32_t host = helio_hosts_find(&receivers->hosts, address);
    const bool is_crowded = host != HELIO_HOST_NONE && receivers->hosts.hosts[host].unproven >=
                                                           share(receivers, OF_ADDRESS_PART);
    if (!is_crowded && receivers->unproven < share(receivers, UNPROVEN_PART) &&
        has_room(receivers)) {
        return true;
    }
    const helio_refusal reason =
        is_crowded ? HELIO_REFUSAL_RECEIVERS_OF_ADDRESS : HELIO_REFUSAL_RECEIVERS;
    if (may_look(receivers, moment.now_ns) &&
        (evict_unproven(receivers, is_crowded ? host : HELIO_HOST_NONE, reason, moment) ||
         evict_proven(receivers, HELIO_HOST_NONE, moment))) {
        return true;
    }
    refuse(receivers, reason, address, moment);
    return false;
}

helio_receiver_index helio_receivers_take_entry(helio_receivers *receivers,
                                                const helio_address *address, bool is_proven,
                                                helio_moment moment) {
    if (!(is_proven ? admits_proven(receivers, address, moment)
                    : admits_unproven(receivers, address, moment))) {
        return HELIO_RECEIVER_NONE;
    }
    if (receivers->vacant == 0) {
        receivers->vacant++;
        return receivers->count++;
    }
    helio_receiver_index index = 0;
    while (receivers->views[index].flags & HELIO_VIEW_PRESENT) {
        index++;
    }
    return index;
}

bool helio_receivers_prove_entry(helio_receivers *receivers, helio_receiver_index index,
                                 helio_moment moment) {
    helio_receiver_entry *entry = &receivers->entries[index];
    if (entry->is_proven) {
        return true;
    }
    if (!fits_address(receivers, entry->host, moment)) {
        refuse(receivers, HELIO_REFUSAL_RECEIVERS_OF_ADDRESS, &entry->address, moment);
        return false;
    }
    helio_hosts_prove(&receivers->hosts, entry->host);
    entry->is_proven = entry->brings = true;
    receivers->unproven--;
    return true;
}
