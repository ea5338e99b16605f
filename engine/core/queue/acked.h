/* Acknowledgements of a transmitter's messages on their way to the application: notices, the
 * newest of each receiver, and threads that wait for acknowledgements.
 *
 * The engine writes notices and ends waits; the lock is held for one copy.  No notice is kept
 * before the application has requested notices. */
#ifndef HELIO_QUEUE_ACKED_H
#define HELIO_QUEUE_ACKED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <heliograph/heliograph.h>

#include "queue/signal.h"
#include "receivers/acks.h"

/* A thread that waits; lives on its stack. */
typedef struct helio_ack_wait {
    uint64_t number;    /* of the message waited for, or HELIO_ALL_MESSAGES */
    uint64_t queued;    /* index in the submit queue; then messages before it are waited for */
    uint64_t sequence;  /* newest packet of it, once it was sent */
    uint32_t receivers; /* that must acknowledge it, unless it is the quorum */
    bool is_for_quorum;
    bool is_sent;
    bool is_done;
    struct helio_ack_wait *next;
} helio_ack_wait;

typedef struct helio_ack_notice {
    helio_ack ack;
    bool is_new;
} helio_ack_notice;

typedef struct helio_acked {
    pthread_mutex_t lock;
    helio_ack_notice *notices;
    size_t count, capacity;
    size_t next; /* where the next take begins, so that all get their turn */
    _Atomic bool is_wanted;
    bool has_new; /* the engine's: since a listener was told */
    helio_ack_wait *waits;
    _Atomic uint32_t waiting;  /* in `waits` */
    _Atomic bool has_new_wait; /* the engine has not looked at it yet */
    helio_signal progress;
} helio_acked;

void helio_acked_init(helio_acked *acked);
void helio_acked_fini(helio_acked *acked);

/* Engine: a receiver has acknowledged messages up to `number`. */
void helio_acked_note(helio_acked *acked, const helio_acker *acker, uint64_t number);
/* Application: takes new notices. */
size_t helio_acked_take(helio_acked *acked, helio_ack *acks, size_t limit);

void helio_acked_begin_wait(helio_acked *acked, helio_ack_wait *wait);
void helio_acked_end_wait(helio_acked *acked, helio_ack_wait *wait);
bool helio_acked_is_done(helio_acked *acked, const helio_ack_wait *wait);
static inline bool helio_acked_is_waited_for(const helio_acked *acked) {
    return atomic_load_explicit(&acked->waiting, memory_order_acquire) > 0;
}
static inline bool helio_acked_has_new_wait(const helio_acked *acked) {
    return atomic_load_explicit(&acked->has_new_wait, memory_order_acquire);
}

#endif
