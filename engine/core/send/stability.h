/* Messages on their way to being stable: how many were sent and are not confirmed by the quorum, how
 * long each took, and the limits of what may be in flight (docs/store.md 7).
 *
 * A message is stable when as many receivers have acknowledged its last packet as option acks
 * requires.  What leaves the history without them - the stream ends, or acks_missing=degrade - is
 * not stable; it is remembered up to which packet that was so.
 *
 * Part of a stream's acknowledgements (send/acks.h), which calls it.  It takes memory and counts
 * only with acks > 0. */
#ifndef HELIO_SEND_STABILITY_H
#define HELIO_SEND_STABILITY_H

#include "send/admit.h"
#include "stats/stats.h"
#include "window/txw.h"

typedef struct helio_tx_stability_limits {
    /* 0: no limit. */
    uint64_t messages;
    uint64_t bytes;
    /* HELIO_UNSTABLE_ACTION_* */
    int action;
} helio_tx_stability_limits;

typedef struct helio_tx_stability {
    helio_tx_stability_limits limits;
    const helio_txw *txw;
    helio_stats *stats;
    /* Of the stream. */
    const helio_stats_object *object;
    /* Of the stream, for texts; outlives it. */
    const char *label;
    /* By sequence & txw->mask: messages of the stream up to and with the packet. */
    uint64_t *ends;
    /* Messages in the packets sent, and in those that are no longer in flight. */
    uint64_t sent;
    uint64_t done;
    /* Packets up to here may have left without the quorum. */
    uint64_t unconfirmed;
    /* The limit that messages are at since `since_ns`, or GO; the length of the one that was held
     * back last. */
    helio_admission at;
    uint64_t length;
    int64_t since_ns;
    /* No event of a limit before. */
    int64_t event_after_ns;
} helio_tx_stability;

/* What is in flight beside the packets sent: the open packet. */
typedef struct helio_tx_in_flight {
    uint64_t messages;
    uint64_t bytes;
} helio_tx_in_flight;

/* Takes memory when `is_on`.  0 or NOMEM; free with helio_tx_stability_fini. */
int helio_tx_stability_init(helio_tx_stability *stability, bool is_on);
void helio_tx_stability_fini(helio_tx_stability *stability);
size_t helio_tx_stability_memory(const helio_tx_stability *stability);

/* The packet at lead was committed; it completes this many messages. */
static inline void helio_tx_stability_on_sent(helio_tx_stability *stability, uint64_t messages) {
    stability->sent += messages;
    stability->ends[stability->txw->lead & stability->txw->mask] = stability->sent;
}
/* Packets up to this one need no more acknowledgements; the last call was for the one before.
 * `is_stable`: the quorum has acknowledged it. */
void helio_tx_stability_release(helio_tx_stability *stability, uint64_t sequence, bool is_stable,
                                int64_t now_ns);

static inline bool helio_tx_stability_has_limits(const helio_tx_stability *stability) {
    return stability->limits.messages > 0 || stability->limits.bytes > 0;
}
/* The limit that a message of `length` bytes would exceed, with so much in flight, and GO without
 * one.  A message may always go when nothing is in flight. */
helio_admission helio_tx_stability_judge(const helio_tx_stability *stability,
                                         helio_tx_in_flight flight, uint64_t length);
/* How many messages may be sent, the first of which may. */
uint64_t helio_tx_stability_room(const helio_tx_stability *stability, helio_tx_in_flight flight);
/* The same, counted and reported: while it is not GO messages are at this limit. */
helio_admission helio_tx_stability_admit(helio_tx_stability *stability, helio_tx_in_flight flight,
                                         uint64_t length, helio_moment moment);

#endif
