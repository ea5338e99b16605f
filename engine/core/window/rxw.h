/* Receive window: packets of one stream, from the oldest not yet passed on (trail) to the newest
 * tracked (lead). A slot is EMPTY, WAITING (missing), HELD or LOST.
 *
 * Packets newer than the window has room for are known by number only (`known`); they become
 * WAITING when trail moves and makes room.  Packets below `source_trail`, which the source no
 * longer has, become LOST instead.
 *
 * A held packet's data is in a block of its own.  Blocks are taken from those used before, so the
 * window costs the memory of the most packets ever held at once, however large it may be.  What is
 * in a block may be lent to the application (loan.h): until it comes back, blocks of packets passed
 * on are kept aside.
 *
 * Invariants: trail <= lead + 1; lead - trail < capacity; lead <= known; slots outside [trail,
 * lead] are EMPTY. All memory is taken by init and grow.  It knows nothing of sockets, threads or
 * clocks; callers pass times. */
#ifndef HELIO_WINDOW_RXW_H
#define HELIO_WINDOW_RXW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loan.h"
#include "wire/pgm.h"

typedef enum helio_rxw_state {
    HELIO_RXW_EMPTY,
    HELIO_RXW_WAITING,
    HELIO_RXW_HELD,
    HELIO_RXW_LOST,
} helio_rxw_state;

/* Why a packet is lost: the values of rx_stream.packets_lost. */
typedef enum helio_rxw_cause {
    HELIO_LOST_WINDOW_ADVANCED,
    HELIO_LOST_NCF_RETRIES,
    HELIO_LOST_DATA_RETRIES,
    HELIO_LOST_DEADLINE,
    HELIO_LOST_OVERFLOW,
    HELIO_LOST_RESET,
    HELIO_LOST_NOT_REQUESTED, /* this receiver asks for nothing */
    HELIO_LOST_SUSPENDED,     /* its source would not have it ask */
} helio_rxw_cause;

typedef enum helio_rxw_result {
    HELIO_RXW_APPENDED,   /* the next after lead */
    HELIO_RXW_FILLED_GAP, /* it was WAITING */
    HELIO_RXW_OPENED_GAP, /* it left slots WAITING before it */
    HELIO_RXW_DUPLICATE,  /* held, passed on, or lost already */
    HELIO_RXW_OVERFLOW,   /* newer than there is room for; it is known now to exist, but one packet
                             never makes more than another window known */
} helio_rxw_result;

/* A packet's data and what goes with it. */
typedef struct helio_rxw_packet {
    const uint8_t *tsdu;
    uint32_t bytes;
    bool is_fragment;
    bool recovered;              /* it had been missing and was asked for */
    bool is_repair;              /* RDATA */
    bool is_near;                /* RDATA of the local repairer */
    bool lasts;                  /* tsdu stays where it is while it is lent (loan.h) */
    helio_pgm_fragment fragment; /* when is_fragment */
    int64_t receive_ns;          /* wall clock */
    int64_t arrival_ns;          /* monotonic, when it was taken up */
    int64_t kernel_ns;           /* wall clock when the kernel took it in; 0: it did not say */
} helio_rxw_packet;

typedef struct helio_rxw_slot {
    uint8_t state;           /* helio_rxw_state */
    uint8_t cause;           /* helio_rxw_cause, of LOST */
    uint8_t place;           /* of WAITING and LOST: the caller's; 0 where the stream went back */
    bool may_be_lent;        /* of HELD: it was passed on as a packet that lasts */
    uint8_t *block;          /* of HELD: where its data is */
    helio_rxw_packet packet; /* of HELD */
} helio_rxw_slot;

typedef struct helio_rxw {
    uint8_t *data;         /* capacity blocks of stride bytes; those never used cost no memory */
    uint8_t **free_blocks; /* used before, the last freed first */
    size_t free_count;
    size_t aside_count; /* blocks kept aside: the last ones of free_blocks */
    size_t fresh_first; /* block never used */
    helio_rxw_slot *slots;
    uint64_t mask;   /* capacity - 1 */
    uint64_t spread; /* a number's slot is number & spread: those of trail to lead are apart */
    size_t stride;
    uint64_t trail;
    uint64_t lead;
    uint64_t known;        /* newest number known to exist */
    uint64_t source_trail; /* oldest number the source still has, as far as it has told */
    uint64_t held;         /* slots HELD */
    helio_loan *loan;      /* set it after init; NULL: nothing is lent */
} helio_rxw;

/* capacity: a power of two.  next: number of the first packet wanted.  0 or NOMEM; free with
 * helio_rxw_fini. */
int helio_rxw_init(helio_rxw *rxw, size_t capacity, size_t tsdu_bytes, uint64_t next);
void helio_rxw_fini(helio_rxw *rxw);
size_t helio_rxw_memory(const helio_rxw *rxw);
/* Bytes of a window of `packets`. */
size_t helio_rxw_memory_of(size_t capacity, size_t tsdu_bytes);
/* Makes the window larger; what it holds stays, in blocks elsewhere.  0, or NOMEM and nothing has
 * changed. */
int helio_rxw_grow(helio_rxw *rxw, size_t capacity);

static inline bool helio_rxw_is_empty(const helio_rxw *rxw) {
    return rxw->trail > rxw->lead;
}
static inline helio_rxw_slot *helio_rxw_slot_of(const helio_rxw *rxw, uint64_t sequence) {
    return &rxw->slots[sequence & rxw->spread];
}

/* Copies a packet in.  OPENED_GAP: the caller finds the gap between the lead it knew and
 * `sequence`. */
helio_rxw_result helio_rxw_insert(helio_rxw *rxw, uint64_t sequence,
                                  const helio_rxw_packet *packet);
/* The result insert would have, without inserting. */
helio_rxw_result helio_rxw_look(const helio_rxw *rxw, uint64_t sequence);
/* There is room for all packets of two readings of a channel: those held may be lent, and may stay
 * where they are until the application has place for them.  False where nothing is lent. */
bool helio_rxw_may_lend(helio_rxw *rxw);
/* To be called before the packet at trail is passed on: sets whether it lasts.  Only the block of a
 * packet that lasts is kept aside while something is lent, by this window or another. */
void helio_rxw_offer(helio_rxw *rxw);
/* Packets up to `sequence` exist: those there is room for become WAITING or LOST, lead moves. */
void helio_rxw_extend(helio_rxw *rxw, uint64_t sequence);
/* A WAITING packet will not come. */
void helio_rxw_lose(helio_rxw *rxw, uint64_t sequence, helio_rxw_cause cause);
/* The source has nothing before `sequence` any more: WAITING packets before it become LOST. `lost`,
 * which may be NULL, is told each.  Cost: the slots between trail and the new source trail. */
void helio_rxw_advance_source(helio_rxw *rxw, uint64_t sequence,
                              void (*lost)(void *context, uint64_t sequence), void *context);
/* Trail moves by one: its packet was passed on, or its loss reported. */
void helio_rxw_pop(helio_rxw *rxw);
/* The packet at trail, not in the window, was passed on without being inserted. */
void helio_rxw_pass(helio_rxw *rxw);
/* The same, when no packet from trail on was known of. */
static inline void helio_rxw_pass_newest(helio_rxw *rxw) {
    rxw->lead = rxw->known = rxw->trail++;
}
/* The stream begins earlier than thought, at `sequence` before trail: what lies between is WAITING.
 * Packets held that there is then no room for are forgotten, and known only. */
void helio_rxw_go_back(helio_rxw *rxw, uint64_t sequence);
/* Empties a window that has no slots in use and goes on at `sequence`, which is after trail. */
void helio_rxw_skip(helio_rxw *rxw, uint64_t sequence);

#endif
