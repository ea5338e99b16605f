/* Messages on their way from the application to the engine: many producers under a lock held for
 * one copy, one consumer that needs no lock.  A message too long for the ring waits in its own
 * memory; only a reference is queued, and such memory may total the size of the ring.
 *
 * A queue with a bound on the number of messages, or one that drops messages when it is full, has
 * a kept queue in place of the ring.  Its consumer takes the producers' lock too, and takes
 * messages with _take. */
#ifndef HELIO_QUEUE_SUBMIT_QUEUE_H
#define HELIO_QUEUE_SUBMIT_QUEUE_H

#include <pthread.h>

#include <heliograph/heliograph.h>

#include "base/account.h"
#include "base/moment.h"
#include "queue/kept_queue.h"
#include "queue/ring.h"
#include "queue/signal.h"
#include "queue/turns.h"

typedef struct helio_submitted {
    const void *data;
    size_t length;
    int64_t submit_ns;   /* wall clock */
    int64_t intended_ns; /* when it was to be sent, wall clock; 0: not given */
} helio_submitted;

typedef struct helio_submit_queue {
    helio_ring ring;
    pthread_mutex_t producers;
    _Atomic uint64_t outside_bytes;        /* of long messages */
    _Alignas(64) _Atomic uint64_t refused; /* sends that found no room */
    _Atomic uint64_t accepted;             /* messages taken in, or put into a packet at once */
    _Alignas(64) _Atomic uint64_t
        handed_over;       /* position up to which all has been given to the network */
    helio_signal progress; /* room was made, or more was handed over */

    _Alignas(64) helio_turns turns; /* of producers that wait for room */
    helio_account *account;         /* for long messages; may be NULL */
    helio_kept_queue *kept;         /* in place of the ring; else NULL */
    double low_water;               /* once full, nothing is taken above this share of the bound */
    uint64_t most_messages;         /* the kept queue's bound; 0: none */
    bool is_closed;                 /* it was full, and is still above */
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
/* The same with a kept queue; what is in `config` of heads is filled in. */
int helio_submit_queue_init_kept(helio_submit_queue *queue, const helio_kept_config *config);
void helio_submit_queue_fini(helio_submit_queue *queue);
static inline bool helio_submit_queue_is_open(const helio_submit_queue *queue) {
    return queue->ring.memory || queue->kept;
}

/* Producers, between lock and unlock: copies one message in.  Returns 0, HELIO_ERR_WOULD_BLOCK or
 * HELIO_ERR_NOMEM. */
static inline void helio_submit_queue_lock(helio_submit_queue *queue) {
    pthread_mutex_lock(&queue->producers);
}
static inline void helio_submit_queue_unlock(helio_submit_queue *queue) {
    pthread_mutex_unlock(&queue->producers);
}
int helio_submit_queue_push(helio_submit_queue *queue, const void *data, size_t length,
                            int64_t submit_ns, int64_t intended_ns);
/* The same for a list, of a ring: copies those at its beginning that are ordinary (not empty, not
 * long, of at most `most_bytes`, room is there) and returns how many.  Of the next one _push tells
 * what is the matter with it. */
size_t helio_submit_queue_push_ordinary(helio_submit_queue *queue, const helio_buffer *messages,
                                        size_t count, size_t most_bytes, int64_t submit_ns);
int helio_submit_queue_push_kept(helio_submit_queue *queue, const void *data, size_t length,
                                 int64_t submit_ns, int64_t intended_ns, int64_t now_ns);
/* The same: counts messages that were taken. */
static inline void helio_submit_queue_accept(helio_submit_queue *queue, uint64_t count) {
    const uint64_t before = atomic_load_explicit(&queue->accepted, memory_order_relaxed);
    atomic_store_explicit(&queue->accepted, before + count, memory_order_relaxed);
}
/* The same: counts a send that was refused.  Returns HELIO_ERR_WOULD_BLOCK. */
int helio_submit_queue_refuse(helio_submit_queue *queue);
/* The same: whether a queue that was full has drained to its low water. */
bool helio_submit_queue_admits(helio_submit_queue *queue);
/* The same: whether a producer may push now: no other has waited for room, or it is its turn, and
 * the queue is not above its low water. */
static inline bool helio_submit_queue_may_push(helio_submit_queue *queue) {
    return (helio_turns_is_empty(&queue->turns) && !queue->is_closed) ||
           (helio_turns_may_try(&queue->turns) && helio_submit_queue_admits(queue));
}
/* Whether a message of this length is refused as there is no memory for it. */
bool helio_submit_queue_lacks_memory(const helio_submit_queue *queue, size_t length);
/* The same: a message found no room. */
void helio_submit_queue_close(helio_submit_queue *queue);
/* The same: whether a message of this length would fit now. */
bool helio_submit_queue_would_fit(helio_submit_queue *queue, size_t length);
/* Producers: that, with the lock taken. */
bool helio_submit_queue_has_room(helio_submit_queue *queue, size_t length);
/* The same, between lock and unlock: behind all that was submitted, for what is handed over. */
uint64_t helio_submit_queue_position(const helio_submit_queue *queue);

/* Consumer: when the oldest message was submitted, or before; HELIO_NEVER: there is none. */
int64_t helio_submit_queue_oldest_ns(helio_submit_queue *queue, helio_moment moment);
/* Consumer: the oldest message; drop takes it off.  The data is valid until then. */
bool helio_submit_queue_peek(helio_submit_queue *queue, helio_submitted *out);
void helio_submit_queue_drop(helio_submit_queue *queue);

/* Bounds of a run: messages that are put into one packet together. */
typedef struct helio_submit_run {
    int64_t from_ns, to_ns; /* each was submitted then */
    size_t room;            /* for all of them, with `each` bytes of a header */
    size_t each;
    size_t limit; /* messages */
} helio_submit_run;

/* Consumer: shows the ordinary messages (not long, no intended time) at the front within the bounds;
 * returns how many.  They are valid until drop_run takes the first `count` of them off. */
size_t helio_submit_queue_peek_run(helio_submit_queue *queue, const helio_submit_run *run,
                                   helio_buffer *out);
void helio_submit_queue_drop_run(helio_submit_queue *queue, size_t count);
/* Consumer: lets producers write where dropped messages were. */
void helio_submit_queue_release(helio_submit_queue *queue);
/* Consumer: all dropped messages have been given to the network. */
void helio_submit_queue_hand_over(helio_submit_queue *queue);

/* Consumer of a kept queue, between lock and unlock: takes the message that is at the front.  It is
 * valid until the next. */
bool helio_submit_queue_take(helio_submit_queue *queue, helio_submitted *out);
/* The same: drops what is too old. */
void helio_submit_queue_expire(helio_submit_queue *queue, int64_t now_ns);

/* Bytes waiting, as any thread sees it, and whether there are messages. */
size_t helio_submit_queue_bytes(const helio_submit_queue *queue);
static inline bool helio_submit_queue_has_messages(const helio_submit_queue *queue) {
    return queue->kept ? helio_kept_queue_messages(queue->kept) > 0
                       : queue->ring.memory && helio_ring_used(&queue->ring);
}
/* How full it is, of a million. */
uint64_t helio_submit_queue_fill(const helio_submit_queue *queue);

#endif
