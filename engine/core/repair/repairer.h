/* Answering requests for repair: the source's half.
 *
 * A NAK is confirmed at once (NCF), whatever it asks for.  What the history has is queued, each
 * packet at most once, unless its repair left less than linger_ns ago: then it crosses the
 * request.  A request seen again within linger_ns is not confirmed again, so that a storm of NAKs
 * does not become a storm of NCFs.
 *
 * Repairs of packets sent long ago, half a window or more, are for receivers that come late: they
 * are not pressing, new data need not wait for them - unless it is about to push them out of a full
 * window.
 *
 * Where packets go to several hosts one by one (fan-out), a repair and a confirmation go to those
 * who asked only: a bit for each destination is kept per packet.  In a group everybody hears
 * everything, and how often several ask for one packet makes the advice how long to hold NAKs back.
 *
 * What a receiver asks for is repaired in its name: as far as it is allowed (allowance.h) and its
 * host's budget lasts (hosts.h), and in turn with the others (queue.h).  What it is not allowed is
 * confirmed to it alone, for whoever else hears a confirmation waits for the repair.  A packet that
 * waits in a long line goes over to a much shorter one when that one's receiver asks for it too.
 *
 * The queue is bounded by the window.  It knows nothing of sockets, threads or clocks. */
#ifndef HELIO_REPAIR_REPAIRER_H
#define HELIO_REPAIR_REPAIRER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/moment.h"
#include "receivers/table.h"
#include "repair/advice.h"
#include "repair/queue.h"
#include "stats/stats.h"
#include "window/txw.h"
#include "wire/pgm.h"

/* Fan-out: bits of the destinations that a packet's ... */
typedef struct helio_repair_fan {
    uint64_t waiting;   /* ... repair is to go to; meaningful while it is queued */
    uint64_t served;    /* ... last repairs went to; meaningful when it was repaired */
    uint64_t confirmed; /* ... last confirmations went to; meaningful when it was confirmed */
} helio_repair_fan;

typedef struct helio_repairer {
    helio_txw *txw;
    helio_tx_stream_stats *stats;
    helio_receivers receivers;
    helio_queue queue; /* of 2 * sequence + is_pressing; a line for each receiver, and one */
    uint32_t *entries; /* in the queue, of a slot that is queued; by sequence & txw->mask */
    int64_t linger_ns;
    uint64_t pressing; /* of those that wait, not for packets sent long ago */
    int64_t behind_ns; /* when a packet was asked for last that was a quarter of a window back */
    uint64_t late_requests; /* for packets no longer there or in the oldest quarter of the window */
    helio_repair_fan *fan;  /* by sequence & txw->mask; NULL: all hear everything */
    helio_advice advice;
    double share;
    const uint64_t *sent;
    helio_burst over_budget;
} helio_repairer;

typedef struct helio_repairer_config {
    helio_stats *stats;
    const char *instance; /* labels */
    const char *stream;
    uint32_t max_receivers;
    size_t receiver_bytes; /* that the owner keeps of each (helio_receivers_state) */
    int64_t linger_ns;
    bool fans_out;
    helio_limits limits;
    double share;         /* of the data, for a host's budget of repairs; 0: there are no budgets */
    const uint64_t *sent; /* bytes of original data, ever; outlives it; NULL: not known */
    const helio_address *destinations; /* fan-out; outlive it */
    uint32_t destinations_count;
    helio_refusal_place refusals;
} helio_repairer_config;

/* What a NAK is answered. */
typedef struct helio_repair_answer {
    size_t naks;                                    /* its requests */
    uint32_t confirmed[1 + HELIO_PGM_NAK_LIST_MAX]; /* to all; none when they were a moment ago */
    size_t confirmed_count;
    uint32_t shed[1 + HELIO_PGM_NAK_LIST_MAX]; /* to the asker alone: it is not repaired */
    size_t shed_count;
} helio_repair_answer;

/* txw and stats are the stream's and outlive it.  0 or NOMEM; free with helio_repairer_fini. */
int helio_repairer_init(helio_repairer *repairer, const helio_repairer_config *config,
                        helio_txw *txw, helio_tx_stream_stats *stats);
void helio_repairer_fini(helio_repairer *repairer, helio_moment moment);

/* Takes in a valid NAK; `asker`: index of the receiver, HELIO_RECEIVER_NONE for one not counted;
 * `destinations`: bits of those it comes from, of interest for fan-out only. */
void helio_repairer_on_nak(helio_repairer *repairer, const helio_pgm_packet *nak, uint32_t asker,
                           uint64_t destinations, helio_moment moment, helio_repair_answer *answer);
/* The next packet to repair, taken from the queue; false when there is none.  It is counted as
 * sent. */
bool helio_repairer_next(helio_repairer *repairer, helio_moment moment, uint64_t *sequence);

/* Fan-out: bits of the destinations the repair just taken is for. */
static inline uint64_t helio_repairer_destinations(const helio_repairer *repairer,
                                                   uint64_t sequence) {
    return repairer->fan[sequence & repairer->txw->mask].waiting;
}

static inline bool helio_repairer_has_work(const helio_repairer *repairer) {
    return repairer->queue.count > 0;
}
/* How many wait. */
static inline uint64_t helio_repairer_waiting(const helio_repairer *repairer) {
    return repairer->queue.count;
}

#endif
