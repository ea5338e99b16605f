/* A topic being received, or a part of it replayed: the application's end of a receive lane.
 * Messages go to the listener, on the engine's thread, or to the receive queue. */
#ifndef HELIO_RUNTIME_RECEIVER_H
#define HELIO_RUNTIME_RECEIVER_H

#include <pthread.h>

#include "options/keeping.h"
#include "queue/losses.h"
#include "queue/met_streams.h"
#include "queue/notices.h"
#include "queue/receive_queue.h"
#include "runtime/rx_lane.h"

typedef struct helio_following helio_following;

struct helio_receiver {
    helio_receive_queue queue; /* without memory when there is a listener */
    helio_instance *instance;
    helio_rx_lane *lane;
    helio_subscription *subscription;
    helio_listener listener;
    bool has_listener;
    bool is_replay;
    bool is_found;        /* by a wildcard */
    int ack;              /* HELIO_ACK_* */
    uint64_t credit;      /* messages a source may send beyond what the application is done with */
    uint64_t done_since;  /* with so many since the engine was told */
    _Atomic bool is_done; /* it has been told, and has not looked yet */
    /* Messages the application was given and did not give back yet; UINT64_MAX while it changes. */
    _Atomic uint64_t given_out;
    _Atomic uint64_t receives; /* how often the application has begun to receive */
    _Atomic bool is_over;      /* a replay's range is complete, and in the queue */
    _Atomic bool has_acks;     /* the application has acknowledged something */
    helio_receiver *next;      /* of the lane */
    /* Wall clock; a queue that is full and drained in turns is told of once a second. */
    int64_t full_told_ns;
    /* Mode poll: where the messages of a receive in progress go straight, without the queue. */
    helio_message *lend_to;
    size_t lend_limit;
    size_t lent;
    helio_mark mark;
    int64_t in_order_ns; /* of the messages handed over next; HELIO_NOT_MEASURED: they are not */
    uint64_t trimmed_told;
    int64_t trimmed_told_ns; /* wall clock */
    bool full_told;          /* that it is full: then also that it has drained */

    /* Of what follows, for readers on other threads; only the engine writes `met`. */
    pthread_mutex_t lock;
    helio_losses losses;
    helio_notices notices;
    helio_following *following; /* engine: NULL: it takes no messages from stores */
    helio_replay *replay; /* engine: of a receiver that gets one; its messages are the range's */
    helio_met_streams met;
};

/* Its application says which messages are acknowledged. */
static inline bool helio_receiver_is_acked_by_app(const helio_receiver *receiver) {
    return receiver->ack == HELIO_ACK_APP || receiver->ack == HELIO_ACK_STORE;
}

/* The identity of a stream, by its number; false: it is not known any more. */
bool helio_receiver_tsi(helio_receiver *receiver, uint32_t stream, helio_tsi *out);

/* Some stream has its topic now. */
bool helio_receiver_is_matched(helio_receiver *receiver);

/* Mode poll: the caller is done with what it was lent. */
static inline void helio_receiver_take_back(helio_receiver *receiver) {
    if (receiver->lent) {
        receiver->lent = 0;
        receiver->lane->is_lent = false;
        helio_loan_end(&receiver->lane->loan);
    }
}

/* Engine: opens a receiver of a topic that was found.  Returns as helio_receiver_create. */
int helio_receiver_open_found(helio_instance *instance, const char *endpoint, const char *topic,
                              const char *options, helio_moment moment, helio_receiver **out);
/* Engine: takes the receiver out of its lane. */
void helio_receiver_detach(helio_receiver *receiver, helio_moment moment);
/* Frees a receiver that was detached. */
void helio_receiver_free(helio_receiver *receiver);

#endif
