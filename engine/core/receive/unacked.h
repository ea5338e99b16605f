/* Messages of one topic delivered and not yet acknowledged by the application, as packets: a
 * bounded queue of (first packet of the batch, number after its last message), oldest first.
 *
 * Acknowledging is cumulative.  When the queue is full, its newest entry stands for all that
 * follows: it is acknowledged with the last of them, later than might be and never too early. */
#ifndef HELIO_RECEIVE_UNACKED_H
#define HELIO_RECEIVE_UNACKED_H

#include <stddef.h>
#include <stdint.h>

#define HELIO_UNACKED_NONE UINT64_MAX

typedef struct helio_unacked_batch {
    uint64_t sequence; /* of its first packet */
    uint64_t end;      /* number after its last message */
} helio_unacked_batch;

typedef struct helio_unacked {
    helio_unacked_batch *batches; /* ring, by index & mask */
    uint64_t mask;
    uint64_t first;
    uint64_t last;         /* after the newest */
    uint64_t acknowledged; /* messages before this number, also those still to come */
} helio_unacked;

/* capacity: a power of two.  0 or NOMEM; free with helio_unacked_fini. */
int helio_unacked_init(helio_unacked *unacked, size_t capacity);
void helio_unacked_fini(helio_unacked *unacked);

/* Messages up to `end` of the batch that begins with this packet were delivered. */
void helio_unacked_add(helio_unacked *unacked, uint64_t sequence, uint64_t end);
/* Messages before `next` are acknowledged. */
void helio_unacked_acknowledge(helio_unacked *unacked, uint64_t next);
/* Oldest packet with a message not acknowledged. */
static inline uint64_t helio_unacked_oldest(const helio_unacked *unacked) {
    return unacked->first == unacked->last
               ? HELIO_UNACKED_NONE
               : unacked->batches[unacked->first & unacked->mask].sequence;
}

#endif
