/* The receivers that acknowledge a stream, and the position of each: the registry at its source.
 *
 * A receiver counts once, by its id, whatever its incarnation.  It is bound to an address by the
 * rules of identity.h.  It stands for the packets from its first one up to its position.  A later
 * life (a greater incarnation) replaces the earlier one and begins at its own first packet.  Only
 * progress counts: an acknowledgement that is old, or comes again, changes nothing but the time of
 * the last one.
 *
 * The packets acknowledged by N receivers are an order statistic: those up to the N-th largest
 * position, over the receivers that joined early enough.  The registry keeps receivers sorted.
 *
 * The registry is bounded, and receivers at one IP address have at most half of it.  When there is
 * no room a newcomer is refused, so forged acknowledgements cannot evict a receiver that counts.
 * Why this is not the table of receivers: docs/adr/0033-one-receiver.md.  Nothing here knows
 * packets, sockets, threads or clocks. */
#ifndef HELIO_RECEIVERS_ACKS_H
#define HELIO_RECEIVERS_ACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/map.h"
#include "base/moment.h"
#include "generated/protocol.h"
#include "receivers/identity.h"

/* Receivers that acknowledge one stream. */
enum { HELIO_ACKERS_MAX = 1024 };

typedef struct helio_acker {
    uint64_t receiver;
    uint64_t incarnation;
    /* The packet it joined at. */
    uint64_t first;
    /* The newest packet that it acknowledges, with all from `first`. */
    uint64_t position;
    /* Time of the first acknowledgement in this life. */
    int64_t began_ns;
    /* Time of the last acknowledgement. */
    int64_t heard_ns;
    helio_address address;
    /* Where a message store can be read, as it said last; port 0: it did not say. */
    helio_address service;
    /* HELIO_PGM_ACK_TRANSPORT or _APPLICATION. */
    uint8_t kind;
    /* It says that it is a message store. */
    bool is_store;
    /* Suspended by the source: its acknowledgements do not count. */
    bool is_out;
    /* Not one of the receivers that the source asks for: they do not count for the quorum. */
    bool is_outside;
    char name[HELIO_PGM_ACKNOWLEDGE_NAME_MAX + 1];
} helio_acker;

typedef struct helio_acks {
    /* `count` of them, largest position first. */
    helio_acker **order;
    uint32_t count;
    /* Of these, receivers that do not count for the quorum. */
    uint32_t out;
    /* Room in `order`; grows up to `limit`. */
    uint32_t capacity;
    uint32_t limit;
    helio_map by_receiver;
    /* A receiver silent for this long may be at another address. */
    int64_t silence_ns;
    int64_t expiry_ns;
    /* No receiver expires before; HELIO_NEVER: there is none. */
    int64_t expiry_due_ns;
} helio_acks;

/* Outcome of an acknowledgement. */
typedef enum helio_acks_result {
    /* Of a new receiver. */
    HELIO_ACKS_JOINED,
    /* Of a later life of a known one. */
    HELIO_ACKS_RESTARTED,
    HELIO_ACKS_PROGRESS,
    /* Nothing new. */
    HELIO_ACKS_REPEATED,
    /* Refused: of an earlier life. */
    HELIO_ACKS_STALE,
    /* Refused: its receiver is known at another address, so it may be forged. */
    HELIO_ACKS_ELSEWHERE,
    /* Refused: no receiver of this stream can be there. */
    HELIO_ACKS_IMPOSSIBLE,
    /* Refused: no room, or no memory, for another receiver. */
    HELIO_ACKS_FULL,
    /* Refused: a goodbye of a receiver that is not known. */
    HELIO_ACKS_GONE,
} helio_acks_result;

/* The acknowledgement counts. */
static inline bool helio_acks_is_taken(helio_acks_result result) {
    return result <= HELIO_ACKS_REPEATED;
}

/* Takes no memory before the first receiver.  Free with helio_acks_fini. */
void helio_acks_init(helio_acks *acks, uint32_t limit, int64_t expiry_ns);
void helio_acks_fini(helio_acks *acks);

/* Processes an acknowledgement; first <= position + 1.  Stores its receiver, NULL when it is
 * refused.  `is_vouched`: the receiver is certainly at this address. */
helio_acks_result helio_acks_hear(helio_acks *acks, const helio_acker *heard, bool is_vouched,
                                  helio_acker **out);
/* The receiver with this id is known at another address than `from`, and cannot have moved. */
bool helio_acks_is_elsewhere(const helio_acks *acks, uint64_t receiver, const helio_address *from,
                             int64_t now_ns);
/* The receiver with this id, or NULL. */
helio_acker *helio_acks_find(const helio_acks *acks, uint64_t receiver);
/* Removes and frees a receiver. */
void helio_acks_remove(helio_acks *acks, helio_acker *acker);
/* Sets whether a receiver counts. */
void helio_acks_set_out(helio_acks *acks, helio_acker *acker, bool is_out);
/* Its acknowledgements count for the quorum. */
static inline bool helio_acker_counts(const helio_acker *acker) {
    return !acker->is_out && !acker->is_outside;
}
/* Number of receivers that count. */
static inline uint32_t helio_acks_live(const helio_acks *acks) {
    return acks->count - acks->out;
}
/* A receiver silent for the expiry time, which the caller removes; NULL when there is none. */
helio_acker *helio_acks_expired(helio_acks *acks, int64_t now_ns);

/* The newest packet up to which each one after `after` was acknowledged by at least `receivers` (1
 * or more) that count; `after` when the next one was not. */
uint64_t helio_acks_stable(const helio_acks *acks, uint32_t receivers, uint64_t after);
/* Number of receivers that have acknowledged this packet, and of those that count. */
uint32_t helio_acks_count(const helio_acks *acks, uint64_t sequence);
uint32_t helio_acks_quorum(const helio_acks *acks, uint64_t sequence);
/* The services of at most `limit` message stores, each once, largest position first.  Returns their
 * number. */
uint32_t helio_acks_services(const helio_acks *acks, helio_address *out, uint32_t limit);
/* The i-th receiver, largest position first; i < count. */
static inline helio_acker *helio_acks_at(const helio_acks *acks, uint32_t i) {
    return acks->order[i];
}

#endif
