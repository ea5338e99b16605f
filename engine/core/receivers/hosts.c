#include "receivers/hosts.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/hash.h"

int helio_hosts_init(helio_hosts *hosts, uint32_t capacity) {
    *hosts = (helio_hosts){.capacity = capacity, .comings = HELIO_HOST_COMINGS};
    hosts->unproven = (helio_budget){.bytes = HELIO_HOST_HOLDS, .grown_ns = 1};
    hosts->hosts = calloc(capacity, sizeof *hosts->hosts);
    if (!hosts->hosts || helio_map_init(&hosts->by_ip, capacity)) {
        helio_hosts_fini(hosts);
        return HELIO_ERR_NOMEM;
    }
    return 0;
}

void helio_hosts_fini(helio_hosts *hosts) {
    helio_map_fini(&hosts->by_ip);
    free(hosts->hosts);
    *hosts = (helio_hosts){0};
}

/* ---- receivers at hosts ---- */

static uint64_t key_of(const helio_address *address) {
    helio_address ip = *address;
    ip.port = 0;
    return helio_hash_fnv1a(&ip, sizeof ip);
}

static bool is_used(const helio_host *host) {
    return host->proven + host->unproven > 0;
}

uint32_t helio_hosts_find(const helio_hosts *hosts, const helio_address *address) {
    const helio_host *host = helio_map_get(&hosts->by_ip, key_of(address));
    return host && helio_address_same_ip(&host->ip, address) ? (uint32_t)(host - hosts->hosts)
                                                             : HELIO_HOST_NONE;
}

static uint32_t copies_to(const helio_hosts *hosts, const helio_address *address) {
    uint32_t copies = 0;
    for (uint32_t i = 0; i < hosts->destinations_count; i++) {
        copies += helio_address_same_ip(&hosts->destinations[i], address);
    }
    return copies > 0 ? copies : 1;
}

static helio_host *add(helio_hosts *hosts, const helio_address *address) {
    const uint64_t key = key_of(address);
    if (helio_map_get(&hosts->by_ip, key)) { /* two addresses of one hash */
        return NULL;
    }
    helio_host *host = hosts->hosts;
    if (hosts->unused > 0) {
        while (is_used(host)) {
            host++;
        }
    } else if (hosts->count < hosts->capacity) {
        host = &hosts->hosts[hosts->count];
    } else {
        return NULL;
    }
    if (helio_map_put(&hosts->by_ip, key, host)) {
        return NULL;
    }
    if (hosts->unused > 0) {
        hosts->unused--;
    } else {
        hosts->count++;
    }
    *host = (helio_host){.ip = *address, .copies = copies_to(hosts, address)};
    host->ip.port = 0;
    host->budget.bytes = HELIO_HOST_FIRST;
    return host;
}

uint32_t helio_hosts_enter(helio_hosts *hosts, const helio_address *address, bool is_proven) {
    const uint32_t found = helio_hosts_find(hosts, address);
    helio_host *host = found != HELIO_HOST_NONE ? &hosts->hosts[found] : add(hosts, address);
    if (!host) {
        return HELIO_HOST_NONE;
    }
    host->proven += is_proven;
    host->unproven += !is_proven;
    return (uint32_t)(host - hosts->hosts);
}

void helio_hosts_leave(helio_hosts *hosts, uint32_t index, bool is_proven) {
    if (index == HELIO_HOST_NONE) {
        return;
    }
    helio_host *host = &hosts->hosts[index];
    host->proven -= is_proven;
    host->unproven -= !is_proven;
    if (!is_used(host)) {
        helio_map_remove(&hosts->by_ip, key_of(&host->ip));
        hosts->unused++;
    }
}

void helio_hosts_prove(helio_hosts *hosts, uint32_t index) {
    if (index == HELIO_HOST_NONE) {
        return;
    }
    hosts->hosts[index].unproven--;
    hosts->hosts[index].proven++;
}

/* ---- budgets ---- */

/* The capacity of a budget for repairing the history `times` times. */
static double most_of(uint64_t history, int times) {
    const double bytes = (double)history * times;
    return bytes > HELIO_HOST_HOLDS ? bytes : HELIO_HOST_HOLDS;
}

static void grow(helio_budget *budget, const helio_budget_terms *terms, uint32_t copies,
                 double most) {
    const int64_t took_ns = terms->now_ns - budget->grown_ns;
    const double more =
        budget->grown_ns == 0 ? 0 : /* it grows from now on */
            HELIO_HOST_REPAIR_FLOOR * ((double)(took_ns > 0 ? took_ns : 0) / (double)HELIO_SECOND) +
                terms->share * (double)(terms->sent - budget->sent) * copies;
    if (budget->bytes < most) {
        budget->bytes = budget->bytes + more < most ? budget->bytes + more : most;
    }
    budget->sent = terms->sent;
    budget->grown_ns = terms->now_ns ? terms->now_ns : 1;
}

/* At least one receiver per destination may begin at once, as the user named those. */
static bool may_come(helio_hosts *hosts, int64_t now_ns) {
    const double most = hosts->destinations_count > HELIO_HOST_COMINGS ? hosts->destinations_count
                                                                       : HELIO_HOST_COMINGS;
    if (hosts->comings_ns == 0) {
        hosts->comings = most;
    } else if (now_ns > hosts->comings_ns) {
        hosts->comings += (double)(now_ns - hosts->comings_ns) / (double)HELIO_HOST_COMING_NS;
    }
    if (hosts->comings > most) {
        hosts->comings = most;
    }
    hosts->comings_ns = now_ns ? now_ns : 1;
    if (hosts->comings < 1) {
        return false;
    }
    hosts->comings--;
    return true;
}

void helio_hosts_bring(helio_hosts *hosts, uint32_t index, const helio_budget_terms *terms) {
    if (index == HELIO_HOST_NONE || terms->share == 0) {
        return;
    }
    helio_host *host = &hosts->hosts[index];
    grow(&host->budget, terms, host->copies, most_of(terms->history, 2));
    if (may_come(hosts, terms->now_ns)) {
        host->budget.bytes += most_of(terms->history, 2);
    }
}

helio_budget *helio_hosts_budget(helio_hosts *hosts, uint32_t index, bool is_proven,
                                 const helio_budget_terms *terms) {
    if (terms->share == 0) {
        return NULL;
    }
    if (!is_proven || index == HELIO_HOST_NONE) {
        grow(&hosts->unproven, terms, 1, most_of(terms->history, 1));
        return &hosts->unproven;
    }
    helio_host *host = &hosts->hosts[index];
    grow(&host->budget, terms, host->copies, most_of(terms->history, 2));
    return &host->budget;
}
