/* The hosts, by IP address, that a stream's receivers are at: how many receivers each has, and how
 * many bytes of repairs it may cause.
 *
 * A receiver is proven when it has reported or acknowledged consistently, or speaks over a
 * connection.  One known by its requests alone is not.
 *
 * Repairs are budgeted by host, for ports and names cost nothing to invent; all receivers that are
 * not proven share one budget.  A budget grows by HELIO_HOST_REPAIR_FLOOR a second and by `share`
 * of the data that is sent to the host meanwhile, up to what the history holds (for proven ones
 * twice that, as repairs may be lost too), HELIO_HOST_HOLDS at least.  A receiver that comes, or
 * comes again, brings as much, as long as not too many come: HELIO_HOST_COMINGS at once, one in
 * HELIO_HOST_COMING_NS from then on.
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
    HELIO_HOST_REPAIR_FLOOR = 1 << 20, /* bytes per second */
    HELIO_HOST_HOLDS = 4 << 20,        /* bytes that a budget holds at least */
    HELIO_HOST_FIRST = 64 << 10,       /* bytes of one that comes when too many do */
    HELIO_HOST_COMINGS = 16,
};
#define HELIO_HOST_NONE UINT32_MAX
#define HELIO_HOST_COMING_NS (30 * HELIO_SECOND)

/* Bytes of repairs. */
typedef struct helio_budget {
    double bytes; /* below 0: debt */
    uint64_t sent;
    int64_t grown_ns;
} helio_budget;

typedef struct helio_host {
    helio_address ip; /* port 0 */
    uint32_t proven;  /* receivers; a host without any is gone */
    uint32_t unproven;
    uint32_t copies; /* of each packet that are sent to it */
    helio_budget budget;
} helio_host;

/* The stream, now. */
typedef struct helio_budget_terms {
    double share;     /* 0: repairs are not limited */
    uint64_t sent;    /* bytes of original data, ever */
    uint64_t history; /* bytes in the history */
    int64_t now_ns;
} helio_budget_terms;

typedef struct helio_hosts {
    helio_host *hosts;
    uint32_t capacity;
    uint32_t count; /* in use, or used before */
    uint32_t unused;
    helio_map by_ip;
    helio_budget unproven;             /* of all that are not proven */
    double comings;                    /* that bring a history */
    int64_t comings_ns;                /* since then they grow */
    const helio_address *destinations; /* of a stream to several hosts, one by one */
    uint32_t destinations_count;
} helio_hosts;

/* 0 or NOMEM; free with helio_hosts_fini. */
int helio_hosts_init(helio_hosts *hosts, uint32_t capacity);
void helio_hosts_fini(helio_hosts *hosts);

/* The host of an address; NONE: no receiver known is there. */
uint32_t helio_hosts_find(const helio_hosts *hosts, const helio_address *address);
/* One more receiver is there.  Returns the host; NONE: no room or memory. */
uint32_t helio_hosts_enter(helio_hosts *hosts, const helio_address *address, bool is_proven);
/* One less is. */
void helio_hosts_leave(helio_hosts *hosts, uint32_t host, bool is_proven);
/* One that was not proven is now. */
void helio_hosts_prove(helio_hosts *hosts, uint32_t host);

/* A receiver begins a life there: it may need all the history. */
void helio_hosts_bring(helio_hosts *hosts, uint32_t host, const helio_budget_terms *terms);
/* What is left for a receiver at a host that is proven; else, and for NONE, of all that are not. */
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
