/* Messages on their way from the application to the engine: many producers under a lock they hold
 * for the time of one copy, one consumer that takes none.  A message too long for the ring waits in
 * memory of its own; only a reference is queued, and the room it may take is that of the ring
 * again. */
#ifndef HELIO_RUNTIME_SUBMIT_QUEUE_H
#define HELIO_RUNTIME_SUBMIT_QUEUE_H

#include <pthread.h>

#include "runtime/ring.h"
#include "runtime/signal.h"

typedef struct helio_submitted {
    const void *data;
    size_t length;
    int64_t submit_ns; /* wall clock */
} helio_submitted;

typedef struct helio_submit_queue {
    helio_ring ring;
    pthread_mutex_t producers;
    _Atomic uint64_t outside_bytes;        /* of long messages */
    _Alignas(64) _Atomic uint64_t refused; /* sends that found no room */
    _Alignas(64) _Atomic uint64_t
        handed_over;       /* position up to which all has been given to the network */
    helio_signal progress; /* room was made, or more was handed over */
} helio_submit_queue;

_Static_assert(offsetof(helio_submit_queue, producers) % 64 == 0,
               "the lock is no line of the ring");
_Static_assert(offsetof(helio_submit_queue, producers) + sizeof(pthread_mutex_t) <=
                   offsetof(helio_submit_queue, refused),
               "the producers' lines end before the counts");
_Static_assert(offsetof(helio_submit_queue, refused) % 64 == 0, "a line of the producers'");
_Static_assert(offsetof(helio_submit_queue, handed_over) % 64 == 0, "a line of the consumer's");
_Static_assert(offsetof(helio_submit_queue, handed_over) - offsetof(helio_submit_queue, refused) ==
                   64,
               "of the consumer's only");

/* Returns 0 or HELIO_ERR_NOMEM. */
int helio_submit_queue_init(helio_submit_queue *queue, size_t bytes);
void helio_submit_queue_fini(helio_submit_queue *queue);

/* Producers, between lock and unlock: copies one message in.  Returns 0, HELIO_ERR_WOULD_BLOCK or
 * HELIO_ERR_NOMEM. */
void helio_submit_queue_lock(helio_submit_queue *queue);
void helio_submit_queue_unlock(helio_submit_queue *queue);
int helio_submit_queue_push(helio_submit_queue *queue, const void *data, size_t length,
                            int64_t submit_ns);
/* Producers: whether a message of this length would fit now. */
bool helio_submit_queue_has_room(helio_submit_queue *queue, size_t length);

/* Consumer: the oldest message; drop takes it off.  The data is valid until then. */
bool helio_submit_queue_peek(helio_submit_queue *queue, helio_submitted *out);
void helio_submit_queue_drop(helio_submit_queue *queue);
/* Consumer: lets producers write where dropped messages were. */
void helio_submit_queue_release(helio_submit_queue *queue);
/* Consumer: all dropped messages have been given to the network. */
void helio_submit_queue_hand_over(helio_submit_queue *queue);

/* Bytes waiting, as any thread sees it. */
size_t helio_submit_queue_bytes(const helio_submit_queue *queue);

#endif
