/* Requests for missing packets: the receiver's state machine of RFC 3208 6.3, one per missing
 * sequence number.
 *
 *   GRACE      it may only be late; ends after `reorder_packets` newer packets or reorder_ns
 *   BACK_OFF   a random time (backoff.h), in which another receiver's NAK may replace ours
 *   WAIT_NCF   requested; waits repeat_ns for the confirmation, doubling up to 50 ms
 *   WAIT_DATA  confirmed; waits data_ns for the repair, doubling up to 100 ms
 *
 * repeat_ns and data_ns, unless configured, follow the measured time from NAK to confirmation and
 * from confirmation to repair.  A repair that comes before a confirmation is both.  A receiver that
 * never requests repairs gives a sequence number up when its GRACE ends.
 *
 * Sources answer requests in order.  When the repair of a later request has come and an earlier
 * request is still open, the answer to the earlier one was probably lost.  The time that the later
 * one took, and a little more for reordering, is then the limit for the earlier one too (RACK, RFC
 * 8985 section 6, applied to requests).  This happens at most three times per sequence number, and
 * uses up no retries.
 *
 * A timer that expires in WAIT_NCF or WAIT_DATA leads back to BACK_OFF until the retries are used
 * up.  Another receiver's NAK leads from BACK_OFF to WAIT_NCF, as in the drawing of the RFC; its
 * prose differs.
 *
 * While requests are held (the source makes no repairs for now), nothing is requested.  Missing
 * sequence numbers stay in BACK_OFF until the hold ends.  Their deadlines continue to run, except
 * for excused time, in which no receiver may request repairs.
 *
 * A designated local repairer, if the caller knows one, is asked first (near_tries): each sequence
 * number at most that often, then the source is asked.  These requests use up no retries.  A
 * repairer that leaves NEAR_UNANSWERED_MAX of them in a row without a confirmation or repair is
 * away: for NEAR_AWAY_NS only the source is asked.
 *
 * The caller may limit the number of sequence numbers requested of the source (ask_room).  One beyond the limit
 * is put off: it waits in BACK_OFF until its deadline or its release, and uses up no retries.
 *
 * Each sequence number also has a deadline.  Otherwise confirmations of other receivers' requests
 * could delay it without end.
 *
 * Sequence numbers leave GRACE in order, through a ring; the other timers are in a heap.  The
 * caller reports which sequence numbers are missing and which were received.  The machine returns
 * those to request and those lost.  All memory is allocated by init and grow, and is bounded by the
 * receive window.  This file uses no packets, sockets, threads or clocks. */
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
    int64_t backoff_ns; /* NAK_BO_IVL; below 0: measured */
    int64_t repeat_ns;  /* NAK_RPT_IVL; 0: measured */
    int64_t data_ns;    /* NAK_RDATA_IVL; 0: measured */
    uint32_t retries;
    int64_t deadline_ns;
    uint32_t group_size; /* estimated number of receivers; 0: not known */
    uint32_t
        near_tries; /* requests to the local repairer for one sequence number; 0: there is none */
    bool is_alone;  /* the stream's only receiver: no back-off */
    bool never_asks;
} helio_nak_config;

typedef struct helio_nak_entry {
    uint64_t sequence;
    int64_t seen_ns; /* when it was found missing */
    int64_t due_ns;
    int64_t asked_ns;     /* last NAK for it; valid when `asked` */
    int64_t confirmed_ns; /* last NCF for it; 0: none yet */
    int64_t excused_ns;   /* total excused time when it was found missing */
    uint32_t place;       /* in the heap; not used in GRACE */
    /* Neighbours among the open requests, by entry; HELIO_NAK_END: none. */
    uint32_t asked_before, asked_after;
    uint16_t ncf_retries;
    uint16_t data_retries;
    uint8_t state;     /* helio_nak_state */
    bool asked;        /* a NAK was sent for it */
    bool is_put_off;   /* in BACK_OFF: until it is released */
    bool is_open;      /* our request is not answered yet, nor did its timer expire */
    bool is_overtaken; /* a later request was answered; it is due because of that */
    bool is_near;      /* the last NAK for it went to the local repairer */
    uint8_t near_asks; /* NAKs for it to the local repairer */
    uint8_t overtaken; /* how often it was */
} helio_nak_entry;

#define HELIO_NAK_END UINT32_MAX

/* A smoothed time and its variance.  A repeated request gives no measurement (Karn's rule).
 * held_ns keeps the wait that was long enough until the next measurement. */
typedef struct helio_nak_time {
    helio_rtt rtt;
    int64_t held_ns; /* 0: none */
} helio_nak_time;

/* Who is asked: the source, or the local repairer. */
typedef struct helio_nak_path {
    helio_nak_time confirming; /* NAK to confirmation, or to a repair that came first */
    helio_nak_time repairing;  /* confirmation to repair */
} helio_nak_path;

enum { HELIO_NAK_NEAR_UNANSWERED_MAX = 16 };
#define HELIO_NAK_NEAR_AWAY_NS HELIO_SECOND

typedef struct helio_nak {
    helio_nak_config config;
    helio_backoff backoff;
    helio_nak_path source, near;
    uint32_t near_unanswered; /* requests to the local repairer since its last answer */
    int64_t near_away_until_ns;
    uint64_t near_given_up; /* sequence numbers asked of the source after the local repairer */
    helio_random random;
    helio_nak_entry *entries; /* by sequence & spread */
    uint32_t *heap;           /* indexes of entries, earliest due first */
    uint32_t heap_count;
    uint32_t asked_oldest, asked_newest; /* open requests in the order they were made, by entry */
    uint64_t *grace; /* ring of sequence numbers, ascending; those received since are skipped */
    uint64_t grace_first;
    uint64_t grace_end;
    uint64_t mask;
    uint64_t spread;         /* entries used now - 1: as few as keep those in use apart */
    uint64_t outstanding;    /* sequence numbers in any state */
    uint64_t ask_room;       /* requests permitted; set by the caller, at first no limit */
    uint64_t put_off;        /* sequence numbers put off now */
    uint64_t put_off_ever;   /* how often one was put off since the start */
    int64_t held_until_ns;   /* no request is made before this time */
    int64_t excused_ns;      /* total excused time, without the last span */
    int64_t excused_from_ns; /* begin of the last span */
    int64_t excused_until_ns;
} helio_nak;

/* The state of a sequence number that was received. */
typedef struct helio_nak_found {
    bool was_missing;
    bool was_asked_for; /* it had left GRACE */
    int64_t seen_ns;
} helio_nak_found;

/* Result of a poll: requests that are due, and losses. */
typedef struct helio_nak_round {
    uint64_t asks[1 + HELIO_PGM_NAK_LIST_MAX]; /* for one NAK packet, ascending */
    size_t ask_count;
    size_t retried; /* of `asks`, those requested before */
    bool is_near;   /* `asks` go to the local repairer */
    struct {
        uint64_t sequence;
        int64_t seen_ns; /* when it was found missing */
        helio_rxw_cause cause;
    } losses[64]; /* in no order */
    size_t loss_count;
} helio_nak_round;

/* `capacity`: of the receive window, a power of two.  Returns 0 or NOMEM; free with
 * helio_nak_fini. */
int helio_nak_init(helio_nak *nak, size_t capacity, const helio_nak_config *config, uint64_t seed);
void helio_nak_fini(helio_nak *nak);
size_t helio_nak_memory(const helio_nak *nak);
/* Bytes needed for a receive window of `capacity` packets. */
size_t helio_nak_memory_of(size_t capacity);
/* Enlarges it with the receive window.  Returns 0, or NOMEM and changes nothing. */
int helio_nak_grow(helio_nak *nak, size_t capacity);

/* From now on no sequence number is given up for lack of an answer: the source keeps its
 * packets. */
void helio_nak_insist(helio_nak *nak);

/* Holds all requests until `until_ns`; a time not after now ends the hold. */
void helio_nak_hold(helio_nak *nak, int64_t until_ns, int64_t now_ns);
/* Excuses the time from now to `until_ns`: it does not count against deadlines.  A time not after
 * now ends the excuse. */
void helio_nak_excuse(helio_nak *nak, int64_t until_ns, int64_t now_ns);

/* Releases `count` of the sequence numbers put off; they are requested after a back-off. */
void helio_nak_release(helio_nak *nak, uint64_t count, int64_t now_ns);

/* Reports `count` missing sequence numbers, newer than all reported before. */
void helio_nak_miss(helio_nak *nak, uint64_t first, uint64_t count, int64_t now_ns);
/* Reports the newest sequence number received; ends GRACE of those at least `reorder_packets`
 * older. */
void helio_nak_on_newest(helio_nak *nak, uint64_t newest, int64_t now_ns);
/* A sequence number was received, or is not needed any more. */
helio_nak_found helio_nak_remove(helio_nak *nak, uint64_t sequence);
/* The same, and measures how long its repair took. */
helio_nak_found helio_nak_on_data(helio_nak *nak, uint64_t sequence, int64_t now_ns);
/* The same of a repair: requests made before the one that it answers are overtaken.  `is_near`: it
 * is from the local repairer. */
helio_nak_found helio_nak_on_repair(helio_nak *nak, uint64_t sequence, bool is_near,
                                    int64_t now_ns);
/* The source confirmed a request.  Returns true when it replaces our request. */
bool helio_nak_on_ncf(helio_nak *nak, uint64_t sequence, int64_t now_ns);
/* The local repairer confirmed a request.  Returns true when it replaces our request. */
bool helio_nak_on_near_ncf(helio_nak *nak, uint64_t sequence, int64_t now_ns);
/* The local repairer sent something in answer to a request. */
void helio_nak_on_near_answer(helio_nak *nak);
/* Another receiver's NAK was received.  Returns true when it replaces our request. */
bool helio_nak_on_foreign_nak(helio_nak *nak, uint64_t sequence, int64_t now_ns);

/* Takes the requests that are due, at most those of one NAK packet to one destination, and some
 * losses.  Call it until it returns false.  `can_ask` false: the address for NAKs is not known yet, so requests wait. */
bool helio_nak_poll(helio_nak *nak, bool can_ask, int64_t now_ns, helio_nak_round *round);
/* HELIO_NEVER when nothing is missing. */
int64_t helio_nak_next_deadline_ns(const helio_nak *nak);

static inline helio_nak_state helio_nak_state_of(const helio_nak *nak, uint64_t sequence) {
    const helio_nak_entry *entry = &nak->entries[sequence & nak->spread];
    return entry->sequence == sequence ? (helio_nak_state)entry->state : HELIO_NAK_NONE;
}

#endif
