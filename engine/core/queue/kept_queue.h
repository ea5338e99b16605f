/* A bounded queue that chooses the messages it keeps when there is no room: the policies of
 * overflow.
 *
 *   block     a message without room is refused
 *   newest    a message without room is dropped
 *   oldest    the oldest messages are dropped
 *   conflate  a message replaces an older one of the same key; without one, the oldest are dropped
 *   priority  the lowest messages are dropped, the oldest of them first; a new message lower than all
 *             others is dropped itself
 *
 * The bounds are a number of bytes (each message with its overhead) and a number of messages.  A
 * message longer than the bound is accepted if the queue is empty.  Messages can also expire by
 * age.
 *
 * Key and priority are bytes of the message: the key starts at key_offset, the priority is the
 * byte at priority_offset (higher is more important).  A message too short for its key has none
 * and is never conflated; one too short for its priority has the lowest.
 *
 * Messages lie one after the other in an arena, which is compacted when its end is reached: at
 * most once while half the bound is written.  Only messages longer than a quarter of the bound
 * need an allocation.  A message that is taken is copied to memory of the taker and stays there
 * until give_back.
 *
 * It knows no threads: a shared queue needs a lock.  Only the two counts of waiting messages and
 * bytes may be read without it. */
#ifndef HELIO_QUEUE_KEPT_QUEUE_H
#define HELIO_QUEUE_KEPT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"

typedef enum helio_kept_policy {
    HELIO_KEPT_BLOCK,
    HELIO_KEPT_NEWEST,
    HELIO_KEPT_OLDEST,
    HELIO_KEPT_CONFLATE,
    HELIO_KEPT_PRIORITY,
} helio_kept_policy;

/* Why a message was dropped. */
typedef enum helio_kept_cause {
    HELIO_DROPPED_NEWEST,
    HELIO_DROPPED_OLDEST,
    HELIO_DROPPED_CONFLATED,
    HELIO_DROPPED_PRIORITY,
    HELIO_DROPPED_AGE,
    HELIO_DROPPED_MEMORY, /* the instance has none left for it */
    HELIO_DROPPED_CREDIT, /* not the queue's: it was closed, and receivers granted no more */
    HELIO_DROPPED_CAUSES
} helio_kept_cause;

typedef struct helio_kept_config {
    helio_kept_policy policy;
    size_t bytes;      /* the bound */
    uint64_t messages; /* the bound; 0: none beside the bytes */
    int64_t age_ns;    /* older messages are dropped; 0: none are */
    size_t key_offset, key_bytes;
    int64_t priority_offset; /* -1: none */
    size_t head_bytes;       /* what goes with each message; a multiple of 8 */
    helio_account *account;  /* for its memory; may be NULL */
    /* A message goes for want of room, `by_count` when there were too many; may be NULL.  Must not
     * call the queue. */
    void (*on_drop)(void *context, void *head, size_t length, helio_kept_cause cause,
                    bool by_count);
    void *context;
} helio_kept_config;

typedef struct helio_kept_queue helio_kept_queue;

/* A message taken: valid until give_back. */
typedef struct helio_kept_message {
    void *head;
    const void *data;
    size_t length;
} helio_kept_message;

/* 0 or NOMEM: the system has no memory, or the account none left. */
int helio_kept_queue_create(const helio_kept_config *config, helio_kept_queue **out);
/* Accepts NULL. */
void helio_kept_queue_destroy(helio_kept_queue *queue);

/* Copies a message in, or decides against it: 0 either way.  With block: WOULD_BLOCK, NOMEM. */
int helio_kept_queue_push(helio_kept_queue *queue, const void *head, const void *data,
                          size_t length, int64_t now_ns);
/* Whether it would go in without another going. */
bool helio_kept_queue_has_room(const helio_kept_queue *queue, size_t length);

/* Drops what is too old. */
void helio_kept_queue_expire(helio_kept_queue *queue, int64_t now_ns);
/* Length of the oldest message; false: there is none. */
bool helio_kept_queue_front(const helio_kept_queue *queue, size_t *length);
/* Takes the oldest; false: there is none, or no place for more before give_back. */
bool helio_kept_queue_take(helio_kept_queue *queue, helio_kept_message *out);
/* What was taken is not needed any more. */
void helio_kept_queue_give_back(helio_kept_queue *queue);
/* Something was taken and not given back. */
bool helio_kept_queue_has_given(const helio_kept_queue *queue);

/* Places are numbered as they are filled, from 0; a message that conflates takes over the place.
 * The one to be filled next, and the oldest that still waits (then the next as well). */
uint64_t helio_kept_queue_next_place(const helio_kept_queue *queue);
uint64_t helio_kept_queue_first_place(const helio_kept_queue *queue);

/* When the oldest message came; `otherwise` when there is none. */
int64_t helio_kept_queue_oldest_ns(const helio_kept_queue *queue, int64_t otherwise);

/* Messages and bytes that wait, as any thread sees them. */
uint64_t helio_kept_queue_messages(const helio_kept_queue *queue);
uint64_t helio_kept_queue_bytes(const helio_kept_queue *queue);
/* Share of the bounds in use, of bytes or of messages; 0 messages: no such bound, and no queue. */
double helio_kept_queue_fill(const helio_kept_queue *queue, uint64_t bytes, uint64_t most_bytes,
                             uint64_t most_messages);
/* What a message of this length counts in the bound of bytes. */
size_t helio_kept_queue_cost(const helio_kept_queue *queue, size_t length);

static inline bool helio_kept_drops(helio_kept_policy policy) {
    return policy != HELIO_KEPT_BLOCK;
}

#endif
