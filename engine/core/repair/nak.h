/* Asking for missing packets: the receiver's machine of RFC 3208 6.3, one per missing sequence.
 *
 *   GRACE      may only be late; until `reorder_packets` newer ones came or reorder_ns passed
 *   BACK_OFF   a random time (backoff.h), in which another receiver's NAK may spare ours
 *   WAIT_NCF   asked; repeat_ns, doubling up to 50 ms, for the confirmation
 *   WAIT_DATA  confirmed; data_ns, doubling up to 100 ms, for the repair
 *
 * repeat_ns and data_ns, unless given, follow what the source takes to confirm and to repair.  A
 * receiver that never asks gives a sequence up when its GRACE is over.
 *
 * A timer that runs out in WAIT_NCF or WAIT_DATA leads back to BACK_OFF until the retries are used
 * up; a foreign NAK leads from BACK_OFF to WAIT_NCF (as in the RFC's drawing; its prose differs).
 * While it is held (the source will not repair for now) nothing is asked for; what is missing backs
 * off until then, and the deadlines go on, unless the time is excused (nobody may ask).
 *
 * The caller may limit how many sequences are asked for (ask_room).  What is beyond that is put
 * off: it waits in BACK_OFF, for its deadline or to be released, and uses up no retries.
 *
 * Besides, each sequence has a deadline, so that confirmations of other receivers' requests cannot
 * keep it waiting for ever.
 *
 * Sequences leave GRACE in order, through a ring; the other timers are in a heap.  The caller says
 * which sequences are missing and which have come; the machine says which to ask for and which are
 * lost.  All memory is taken by init and grow and bounded by the receive window.  It knows nothing
 * of packets, sockets, threads or clocks. */
#ifndef HELIO_REPAIR_NAK_H
#define HELIO_REPAIR_NAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/rtt.h"
#include "repair/backoff.h"
#include "window/rxw.h"

typedef enum helio_nak_state {
    HELIO_NAK_NONE,
    HELIO_NAK_GRACE,
    HELIO_NAK_BACK_OFF,
    HELIO_NAK_WAIT_NCF,
    HELIO_NAK_WAIT_DATA,
} helio_nak_state;

typedef struct helio_nak_config {
    uint32_t reorder_packets;
    int64_t reorder_ns;
    int64_t backoff_ns; /* NAK_BO_IVL; below 0: found by measuring */
    int64_t repeat_ns;  /* NAK_RPT_IVL; 0: found by measuring */
    int64_t data_ns;    /* NAK_RDATA_IVL; 0: found by measuring */
    uint32_t retries;
    int64_t deadline_ns;
    uint32_t group_size; /* receivers believed to be there; 0: not known */
    bool is_alone;       /* none but this one hears the source: nothing is held back */
    bool never_asks;
} helio_nak_config;

typedef struct helio_nak_entry {
    uint64_t sequence;
    int64_t seen_ns; /* when it was seen missing */
    int64_t due_ns;
    int64_t asked_ns;     /* last NAK for it; meaningful when asked */
    int64_t confirmed_ns; /* last NCF for it; 0: none yet */
    int64_t excused_ns;   /* time excused in all when it was seen missing */
    uint32_t place;       /* in the heap; not used in GRACE */
    uint16_t ncf_retries;
    uint16_t data_retries;
    uint8_t state;   /* helio_nak_state */
    bool asked;      /* a NAK was sent for it */
    bool is_put_off; /* in BACK_OFF: until it is released */
} helio_nak_entry;

/* A smoothed time and how far single ones are from it.  What was asked for again says nothing about
 * it (Karn's rule), but the wait that was long enough is kept until something does. */
typedef struct helio_nak_time {
    helio_rtt rtt;
    int64_t held_ns; /* 0: none */
} helio_nak_time;

typedef struct helio_nak {
    helio_nak_config config;
    helio_backoff backoff;
    helio_nak_time confirming; /* NAK to confirmation */
    helio_nak_time repairing;  /* confirmation to repair */
    helio_random random;
    helio_nak_entry *entries; /* by sequence & mask */
    uint32_t *heap;           /* indexes of entries, earliest due first */
    uint32_t heap_count;
    uint64_t *grace; /* ring of sequences, ascending; those found meanwhile are skipped */
    uint64_t grace_first;
    uint64_t grace_end;
    uint64_t mask;
    uint64_t outstanding;    /* sequences in any state */
    uint64_t ask_room;       /* sequences that may be asked for; the caller's, at first no limit */
    uint64_t put_off;        /* sequences put off */
    uint64_t put_off_ever;   /* how often one was */
    int64_t held_until_ns;   /* no request is made before */
    int64_t excused_ns;      /* time excused in all, but for the span that began last */
    int64_t excused_from_ns; /* that span */
    int64_t excused_until_ns;
} helio_nak;

/* What became of a sequence that has come. */
typedef struct helio_nak_found {
    bool was_missing;
    bool was_asked_for; /* it had left GRACE */
    int64_t seen_ns;
} helio_nak_found;

/* What a poll found due. */
typedef struct helio_nak_round {
    uint64_t asks[1 + HELIO_PGM_NAK_LIST_MAX]; /* one NAK packet's worth, ascending */
    size_t ask_count;
    size_t retried; /* of the asks, those asked for before */
    struct {
        uint64_t sequence;
        int64_t seen_ns; /* missing since */
        helio_rxw_cause cause;
    } losses[64]; /* in no order */
    size_t loss_count;
} helio_nak_round;

/* capacity: that of the receive window, a power of two.  0 or NOMEM; free with helio_nak_fini. */
int helio_nak_init(helio_nak *nak, size_t capacity, const helio_nak_config *config, uint64_t seed);
void helio_nak_fini(helio_nak *nak);
size_t helio_nak_memory(const helio_nak *nak);
/* Bytes for a receive window of that many packets. */
size_t helio_nak_memory_of(size_t capacity);
/* Follows a receive window that grows.  0, or NOMEM and nothing has changed. */
int helio_nak_grow(helio_nak *nak, size_t capacity);

/* From now on nothing is given up for want of an answer: the source has it, and will not let it go.
 */
void helio_nak_insist(helio_nak *nak);

/* Nothing is asked for before `until_ns`; now or earlier: it may be at once. */
void helio_nak_hold(helio_nak *nak, int64_t until_ns, int64_t now_ns);
/* The time from now until `until_ns` does not count against deadlines; now or earlier: from now on
 * it does. */
void helio_nak_excuse(helio_nak *nak, int64_t until_ns, int64_t now_ns);

/* Of the sequences put off, the `count` that end first are asked for after a back-off. */
void helio_nak_release(helio_nak *nak, uint64_t count, int64_t now_ns);

/* These sequences, newer than all missed before, are missing. */
void helio_nak_miss(helio_nak *nak, uint64_t first, uint64_t count, int64_t now_ns);
/* The newest sequence received; ends the grace of those `reorder_packets` older. */
void helio_nak_on_newest(helio_nak *nak, uint64_t newest, int64_t now_ns);
/* A sequence has come, or is of no interest any more. */
helio_nak_found helio_nak_remove(helio_nak *nak, uint64_t sequence);
/* The same, and how long its repair took is learnt. */
helio_nak_found helio_nak_on_data(helio_nak *nak, uint64_t sequence, int64_t now_ns);
/* The source confirmed a request.  True when this spared us ours. */
bool helio_nak_on_ncf(helio_nak *nak, uint64_t sequence, int64_t now_ns);
/* Another receiver's NAK was heard.  True when this spared us ours. */
bool helio_nak_on_foreign_nak(helio_nak *nak, uint64_t sequence, int64_t now_ns);

/* Takes what is due, at most one NAK packet's worth of asks and some losses; call it again until it
 * returns false. `can_ask` false: where to send NAKs is not known yet, so asks are put off. */
bool helio_nak_poll(helio_nak *nak, bool can_ask, int64_t now_ns, helio_nak_round *round);
/* HELIO_NEVER when nothing is missing. */
int64_t helio_nak_next_deadline_ns(const helio_nak *nak);

static inline helio_nak_state helio_nak_state_of(const helio_nak *nak, uint64_t sequence) {
    const helio_nak_entry *entry = &nak->entries[sequence & nak->mask];
    return entry->sequence == sequence ? (helio_nak_state)entry->state : HELIO_NAK_NONE;
}

#endif
