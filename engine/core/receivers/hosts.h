/* The hosts, by IP address, of a stream's receivers: the number of receivers at each, and the bytes
 * of repairs that it may cause.
 *
 * A receiver is proven when it has reported or acknowledged consistently, or has a connection.  One
 * known by its requests alone is not.
 *
 * Repairs are budgeted by host, since made-up ports and names cost nothing.  All unproven receivers
 * share one budget.  A budget grows by HELIO_HOST_REPAIR_FLOOR per second and by `share` of the data
 * sent to the host.  It holds at most the size of the history (twice that for proven receivers,
 * since repairs may be lost), and at least HELIO_HOST_HOLDS.  A receiver that begins a life adds as
 * much to its host's budget, unless too many do: HELIO_HOST_COMINGS at once, then one per
 * HELIO_HOST_COMING_NS.
 *
 * It knows no packets and no clock. */
#ifndef HELIO_RECEIVERS_HOSTS_H
#define HELIO_RECEIVERS_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/map.h"
#include "base/moment.h"

enum {
    /* Bytes per second. */
    HELIO_HOST_REPAIR_FLOOR = 1 << 20,
    /* Least capacity of a budget in bytes. */
    HELIO_HOST_HOLDS = 4 << 20,
    /* Bytes that a new host begins with. */
    HELIO_HOST_FIRST = 64 << 10,
    HELIO_HOST_COMINGS = 16,
};
#define HELIO_HOST_NONE UINT32_MAX
#define HELIO_HOST_COMING_NS (30 * HELIO_SECOND)

/* Bytes of repairs. */
typedef struct helio_budget {
    /* Below 0: debt. */
    double bytes;
    uint64_t sent;
    int64_t grown_ns;
} helio_budget;

typedef struct helio_host {
    /* With port 0. */
    helio_address ip;
    /* Receivers; the entry of a host without any is free. */
    uint32_t proven;
    uint32_t unproven;
    /* Of each packet that are sent to it. */
    uint32_t copies;
    helio_budget budget;
} helio_host;

/* The stream, now. */
typedef struct helio_budget_terms {
    /* 0: repairs are not limited. */
    double share;
    /* Bytes of original data, ever. */
    uint64_t sent;
    /* Bytes in the history. */
    uint64_t history;
    int64_t now_ns;
} helio_budget_terms;

typedef struct helio_hosts {
    helio_host *hosts;
    uint32_t capacity;
    /* In use, or used before. */
    uint32_t count;
    uint32_t unused;
    helio_map by_ip;
    /* Of all unproven receivers. */
    helio_budget unproven;
    /* Receivers that may still add a history to a budget, as of comings_ns. */
    double comings;
    int64_t comings_ns;
    /* Of a stream that is sent to each host separately. */
    const helio_address *destinations;
    uint32_t destinations_count;
} helio_hosts;

/* 0 or NOMEM; free with helio_hosts_fini. */
int helio_hosts_init(helio_hosts *hosts, uint32_t capacity);
void helio_hosts_fini(helio_hosts *hosts);

/* The host of an address; NONE: no tracked receiver is there. */
uint32_t helio_hosts_find(const helio_hosts *hosts, const helio_address *address);
/* Adds a receiver to its host.  Returns the host; NONE: no room or memory. */
uint32_t helio_hosts_enter(helio_hosts *hosts, const helio_address *address, bool is_proven);
/* Removes a receiver from its host. */
void helio_hosts_leave(helio_hosts *hosts, uint32_t host, bool is_proven);
/* A receiver there is proven from now on. */
void helio_hosts_prove(helio_hosts *hosts, uint32_t host);

/* A receiver there begins a life and may need the whole history. */
void helio_hosts_bring(helio_hosts *hosts, uint32_t host, const helio_budget_terms *terms);
/* The budget of a proven receiver at a host; otherwise, and for NONE, that of unproven receivers. */
helio_budget *helio_hosts_budget(helio_hosts *hosts, uint32_t host, bool is_proven,
                                 const helio_budget_terms *terms);

static inline bool helio_budget_grants(const helio_budget *budget) {
    return !budget || budget->bytes > 0;
}
static inline void helio_budget_charge(helio_budget *budget, uint64_t bytes) {
    if (budget) {
        budget->bytes -= (double)bytes;
    }
}

#endif
