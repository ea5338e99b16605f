/* Messages on their way from the engine to the application: one producer, one consumer, no locks.
 * A message stays valid until the consumer takes again.  A message too long for the ring has its
 * own memory; only a reference is queued.
 *
 * Once full, the queue refuses messages until it has drained to its low water, so that delivery
 * resumes once and not for each message.
 *
 * Messages whose latency is measured carry their time of arrival.  The application's thread counts
 * how long they waited for it, in histograms that have no other writer.
 *
 * A queue with a bound on the number of messages, or one that trims messages, has a kept queue in
 * place of the ring, and a lock that both sides take. */
#ifndef HELIO_QUEUE_RECEIVE_QUEUE_H
#define HELIO_QUEUE_RECEIVE_QUEUE_H

#include <pthread.h>

#include <heliograph/heliograph.h>

#include "queue/kept_queue.h"
#include "queue/ring.h"
#include "queue/signal.h"
#include "stats/stats.h"

/* Why a message was trimmed: the values of receiver.messages_trimmed. */
enum {
    HELIO_TRIMMED_COUNT,
    HELIO_TRIMMED_BYTES,
    HELIO_TRIMMED_AGE,
    HELIO_TRIMMED_CONFLATED,
    HELIO_TRIMMED_PRIORITY,
    HELIO_TRIMMED_CAUSES
};

/* What of one stream passed through the queue: pushed is the engine's, taken the application's.
 * Bytes are those a message takes in the queue, so they compare with the queue's size. */
typedef struct helio_passage {
    uint64_t pushed_messages, pushed_bytes;
    uint64_t trimmed_messages, trimmed_bytes; /* under the kept queue's lock */
    _Alignas(64) _Atomic uint64_t taken_messages;
    _Atomic uint64_t taken_bytes;
    /* Where the application's thread counts how long messages waited for it, and how old they were;
     * the engine opens and closes them (helio_receive_queue_measure).  NULL: it does not. */
    _Atomic(helio_hdr *) waits;
    _Atomic(helio_hdr *) ages;
} helio_passage;

_Static_assert(offsetof(helio_passage, taken_messages) == 64, "a line for each side");
_Static_assert(sizeof(helio_passage) == 128, "and nothing else in it");

typedef struct helio_receive_queue {
    helio_ring ring;
    _Atomic uint64_t outside_bytes; /* of long messages, those given out included */
    _Atomic bool full;
    helio_signal news;
    struct helio_long_message *given; /* long messages given out and not yet given back */
    double low_water;                 /* share of the bound at which it is full no more */
    helio_account *account;           /* for long messages; may be NULL */
    helio_kept_queue *kept;           /* in place of the ring; else NULL */
    uint64_t most_messages;           /* its bound; 0: none */
    uint64_t kept_bytes;              /* all it ever took in */
    pthread_mutex_t lock;             /* of the kept queue */
    /* A message is trimmed; under the lock. */
    void (*on_trim)(helio_passage *passage, int cause);
    _Alignas(64) _Atomic bool is_recording; /* the application's */
} helio_receive_queue;

_Static_assert(offsetof(helio_receive_queue, ring) == 0 &&
                   offsetof(helio_receive_queue, outside_bytes) % 64 == 0,
               "what is written seldom lies apart from the ring");

/* Returns 0 or HELIO_ERR_NOMEM. */
int helio_receive_queue_init(helio_receive_queue *queue, size_t bytes);
/* The same with a kept queue; what is in `config` of heads and drops is filled in. */
int helio_receive_queue_init_kept(helio_receive_queue *queue, const helio_kept_config *config);
void helio_receive_queue_fini(helio_receive_queue *queue);

/* Engine: copies one message in.  False: there is no room, or no memory; the queue counts as full
 * from then on. */
bool helio_receive_queue_push(helio_receive_queue *queue, const helio_message *message,
                              helio_passage *passage);
/* The same for a message whose wait is measured, from in_order_ns (monotonic) on, not 0; only while
 * the passage's histograms are open. */
bool helio_receive_queue_push_measured(helio_receive_queue *queue, const helio_message *message,
                                       helio_passage *passage, int64_t in_order_ns);
/* Engine: from now on the application counts into these histograms, either of which may be NULL.
 * When it returns nobody writes to those it had before. */
void helio_receive_queue_measure(helio_receive_queue *queue, helio_passage *passage,
                                 helio_hdr *waits, helio_hdr *ages);
static inline bool helio_receive_queue_is_full(const helio_receive_queue *queue) {
    return atomic_load_explicit(&queue->full, memory_order_relaxed);
}
/* The same with a kept queue, between lock and unlock; false: it drops nothing and has no room. */
bool helio_receive_queue_push_kept(helio_receive_queue *queue, const helio_message *message,
                                   helio_passage *passage, int64_t in_order_ns, int64_t now_ns);
void helio_receive_queue_lock(helio_receive_queue *queue);
void helio_receive_queue_unlock(helio_receive_queue *queue);
/* It has drained to its low water. */
bool helio_receive_queue_is_low(const helio_receive_queue *queue);
/* Engine: a full queue that has drained to its low water is full no more. */
void helio_receive_queue_resume(helio_receive_queue *queue);

/* Application: gives back the messages of the call before and takes up to `limit` new ones. */
size_t helio_receive_queue_take(helio_receive_queue *queue, helio_message *messages, size_t limit);
bool helio_receive_queue_is_empty(helio_receive_queue *queue);
/* There is nothing to take and nothing to give back, as far as is known without a look at another
 * core's work. */
static inline bool helio_receive_queue_is_idle(const helio_receive_queue *queue) {
    const helio_ring *ring = &queue->ring;
    if (queue->kept) {
        return false;
    }
    return atomic_load_explicit(&ring->tail, memory_order_relaxed) == ring->next &&
           atomic_load_explicit(&ring->released, memory_order_relaxed) == ring->next &&
           !queue->given;
}

/* Bytes in use, as any thread sees it. */
size_t helio_receive_queue_bytes(const helio_receive_queue *queue);
/* Engine: bytes it ever took in. */
uint64_t helio_receive_queue_given(const helio_receive_queue *queue);
/* How full it is, of a million. */
uint64_t helio_receive_queue_fill(const helio_receive_queue *queue);
/* Engine: age of the oldest message that was not given back, 0 when there is none. */
int64_t helio_receive_queue_age_ns(helio_receive_queue *queue, int64_t now_ns, int64_t wall_ns);

#endif
