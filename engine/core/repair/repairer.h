/* Answers to requests for repair: the source's part.
 *
 * The source confirms a NAK at once (NCF), unless it repairs all that the NAK requests at once for
 * the only receiver.  Packets in the history are queued, each at most once.  A packet whose repair
 * was sent less than linger_ns ago is not queued: repair and request crossed.  A request repeated
 * within linger_ns is not confirmed again, so that a storm of NAKs does not become a storm of NCFs.
 *
 * Repairs of packets half a window old or older are for receivers that joined late.  They are not
 * pressing: new data need not wait for them, unless it is about to push them out of a full window.
 *
 * In fan-out, each packet goes to several hosts one by one.  A repair and a confirmation then go
 * only to those that requested them; each packet has a bit for each destination.  In a group every
 * receiver gets all packets.  The number of requests for one packet then sets the advice how long
 * receivers back off (advice.h).
 *
 * In a group with one known receiver, confirmations and repairs go to that receiver by unicast, if
 * its reports permit that: they do not wait behind the data in the receiver's group socket.  The
 * third repair of a packet goes to the group, because the first two did not arrive
 * (docs/adr/0041-repairs-by-unicast.md).
 *
 * A repair is charged to the receiver that requested it: to its allowance (allowance.h) and to its
 * host's budget (hosts.h).  Receivers are served in turn (queue.h).  A request beyond the allowance
 * is confirmed to that receiver alone, because others that get a confirmation wait for the repair.
 * A packet in a long line moves to a much shorter line when the receiver of that line requests it
 * too.
 *
 * The queue is bounded by the window.  This file uses no sockets, threads or clocks. */
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

/* Fan-out: bits of the destinations of a packet. */
typedef struct helio_repair_fan {
    uint64_t waiting;   /* its repair will be sent to these; valid while it is queued */
    uint64_t served;    /* its last repairs were sent to these; valid after a repair */
    uint64_t confirmed; /* its last confirmations were sent to these; valid after an NCF */
} helio_repair_fan;

typedef struct helio_repairer {
    helio_txw *txw;
    helio_tx_stream_stats *stats;
    helio_receivers receivers;
    helio_queue queue; /* of 2 * sequence + is_pressing; a line per receiver, one for the others */
    uint32_t *entries; /* in the queue, of each queued slot; by sequence & txw->mask */
    int64_t linger_ns;
    uint64_t pressing;      /* repairs queued that are pressing */
    int64_t behind_ns;      /* last request for a packet more than a quarter of a window old */
    uint64_t late_requests; /* for trimmed packets, or in the oldest quarter of the window */
    helio_repair_fan *fan;  /* by sequence & txw->mask; NULL: all receivers get all packets */
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
    size_t receiver_bytes; /* the owner's state of each receiver (helio_receivers_state) */
    int64_t linger_ns;
    bool fans_out;
    helio_limits limits;
    double share;         /* of the data, for a host's repair budget; 0: no budgets */
    const uint64_t *sent; /* bytes of original data since the start; outlives it; NULL: not known */
    const helio_address *destinations; /* fan-out; outlive it */
    uint32_t destinations_count;
    helio_refusal_place refusals;
} helio_repairer_config;

/* The answer to a NAK. */
typedef struct helio_repair_answer {
    size_t naks;                                    /* number of its requests */
    uint32_t confirmed[1 + HELIO_PGM_NAK_LIST_MAX]; /* to all; none when just confirmed */
    size_t confirmed_count;
    uint32_t shed[1 + HELIO_PGM_NAK_LIST_MAX]; /* to the requester alone: not repaired */
    size_t shed_count;
    /* Where confirmations go when there is only one receiver; NULL: to all. */
    const helio_address *only;
} helio_repair_answer;

/* `txw` and `stats` belong to the stream and outlive it.  Returns 0 or NOMEM; free with
 * helio_repairer_fini. */
int helio_repairer_init(helio_repairer *repairer, const helio_repairer_config *config,
                        helio_txw *txw, helio_tx_stream_stats *stats);
void helio_repairer_fini(helio_repairer *repairer, helio_moment moment);

/* Processes a valid NAK.  `asker`: index of the receiver, HELIO_RECEIVER_NONE when it is not
 * tracked.  `destinations`: bits of those it came from; used for fan-out only. */
void helio_repairer_on_nak(helio_repairer *repairer, const helio_pgm_packet *nak, uint32_t asker,
                           uint64_t destinations, helio_moment moment, helio_repair_answer *answer);
/* Takes the next packet to repair from the queue and counts it as sent; false when there is
 * none. */
bool helio_repairer_next(helio_repairer *repairer, helio_moment moment, uint64_t *sequence);

/* Fan-out: destinations of the repair just taken, as bits. */
static inline uint64_t helio_repairer_destinations(const helio_repairer *repairer,
                                                   uint64_t sequence) {
    return repairer->fan[sequence & repairer->txw->mask].waiting;
}

/* A group: where the repair just taken goes when only one receiver needs it.  NULL: to the group. */
const helio_address *helio_repairer_only_receiver(const helio_repairer *repairer,
                                                  uint64_t sequence);

static inline bool helio_repairer_has_work(const helio_repairer *repairer) {
    return repairer->queue.count > 0;
}
/* Number of repairs queued. */
static inline uint64_t helio_repairer_waiting(const helio_repairer *repairer) {
    return repairer->queue.count;
}

#endif
