/* Who acknowledges a stream, and how far: the registry at its source.
 *
 * An acker is one receiver: the same one, by its id, counts once, whatever life it is in.  It is
 * bound to the address it was first heard at (identity.h).  It stands for the packets from where it
 * joined up to its position, and for none before.  A later life (a greater incarnation) takes the
 * place of the earlier one and begins where it joined again; what the earlier one had is no longer
 * counted.  Only progress counts: an acknowledgement that is old, or came twice, changes nothing
 * but the time it was heard.
 *
 * What is acknowledged by N receivers is an order statistic: packets up to the N-th largest
 * position, over the ackers that joined early enough.  The registry keeps them sorted.
 *
 * The number is bounded, and half of it is for one IP address; when there is no room a newcomer is
 * refused, so that forged ones cannot push out real receivers.  It knows nothing of packets,
 * sockets, threads or clocks. */
#ifndef HELIO_RECEIVERS_ACKS_H
#define HELIO_RECEIVERS_ACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/map.h"
#include "base/moment.h"
#include "generated/protocol.h"
#include "receivers/identity.h"

enum { HELIO_ACKERS_MAX = 1024 }; /* of one stream */

typedef struct helio_acker {
    uint64_t receiver;
    uint64_t incarnation;
    uint64_t first;    /* it joined here */
    uint64_t position; /* newest sequence acknowledged, with all from `first` */
    int64_t began_ns;  /* this life was first heard then */
    int64_t heard_ns;
    helio_address address;
    uint8_t kind; /* HELIO_PGM_ACK_TRANSPORT or _APPLICATION */
    bool is_out;  /* suspended by the source: what it acknowledges does not count */
    char name[HELIO_PGM_ACKNOWLEDGE_NAME_MAX + 1];
} helio_acker;

typedef struct helio_acks {
    helio_acker *ackers; /* entries, which acker keep while they are there */
    uint32_t *order;     /* entries of the `count` ackers, largest position first */
    uint32_t *free;      /* the other entries */
    uint32_t count;
    uint32_t out;      /* of these, not counted */
    uint32_t capacity; /* grows up to `limit` */
    uint32_t limit;
    helio_map by_receiver;
    int64_t silence_ns; /* an acker silent for as long may be at another address */
    int64_t expiry_ns;
    int64_t expiry_due_ns; /* nobody can have expired before; HELIO_NEVER: there is nobody */
} helio_acks;

/* What became of an acknowledgement. */
typedef enum helio_acks_result {
    HELIO_ACKS_JOINED,    /* a new acker */
    HELIO_ACKS_RESTARTED, /* a later life of one that was known */
    HELIO_ACKS_PROGRESS,
    HELIO_ACKS_REPEATED,   /* nothing new */
    HELIO_ACKS_STALE,      /* of an earlier life: not counted */
    HELIO_ACKS_ELSEWHERE,  /* its receiver is known at another address: maybe forged */
    HELIO_ACKS_IMPOSSIBLE, /* no receiver of this stream can say so */
    HELIO_ACKS_FULL,       /* no room, or no memory, for one more */
    HELIO_ACKS_GONE,       /* the goodbye of one that is not there */
} helio_acks_result;

/* An acknowledgement counts. */
static inline bool helio_acks_is_taken(helio_acks_result result) {
    return result <= HELIO_ACKS_REPEATED;
}

/* Takes no memory before the first acker.  Free with helio_acks_fini. */
void helio_acks_init(helio_acks *acks, uint32_t limit, int64_t expiry_ns);
void helio_acks_fini(helio_acks *acks);

/* Takes in what `heard` says of a receiver.  first <= position + 1.  Stores the acker, NULL when it
 * is not taken.  `is_vouched`: it is sure that the receiver is at this address. */
helio_acks_result helio_acks_hear(helio_acks *acks, const helio_acker *heard, bool is_vouched,
                                  helio_acker **out);
/* The acker with this id is known at another address than `from`, and cannot have moved. */
bool helio_acks_is_elsewhere(const helio_acks *acks, uint64_t receiver, const helio_address *from,
                             int64_t now_ns);
/* The acker with this id, or NULL. */
helio_acker *helio_acks_find(const helio_acks *acks, uint64_t receiver);
/* Takes an acker out. */
void helio_acks_remove(helio_acks *acks, helio_acker *acker);
/* Whether it counts. */
void helio_acks_set_out(helio_acks *acks, helio_acker *acker, bool is_out);
/* Ackers that count. */
static inline uint32_t helio_acks_live(const helio_acks *acks) {
    return acks->count - acks->out;
}
/* An acker not heard for the expiry time, to be taken out by the caller; NULL when there is none.
 */
helio_acker *helio_acks_expired(helio_acks *acks, int64_t now_ns);

/* The newest sequence up to which each packet after `after` was acknowledged by at least
 * `receivers` (1 or more) of those there are; `after` when the next one was not. */
uint64_t helio_acks_stable(const helio_acks *acks, uint32_t receivers, uint64_t after);
/* How many have acknowledged this sequence. */
uint32_t helio_acks_count(const helio_acks *acks, uint64_t sequence);
/* The i-th acker, largest position first; i < count. */
static inline helio_acker *helio_acks_at(const helio_acks *acks, uint32_t i) {
    return &acks->ackers[acks->order[i]];
}

#endif
