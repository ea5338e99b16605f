/* The command ring's layout (docs/segment.md 8): slots in the segment in which a program that may
 * write the segment - its owner's - leaves a command, and finds the answer.
 *
 * A slot's first word tells whose it is: a phase, the client's process id and a ticket that counts
 * up with every claim.  Clients take and give back slots by compare-and-exchange of that word; the
 * engine takes a submitted one the same way, so a command that its client withdraws at the same
 * moment is carried out or withdrawn, never both.  The bell counts what was ever submitted and is
 * the only word the engine looks at when there is nothing to do.
 *
 * Everything here is written by another process and may be anything: the engine copies a slot
 * before it looks at it and never follows what it says about places. */
#ifndef HELIO_STATS_CONTROL_RING_H
#define HELIO_STATS_CONTROL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HELIO_CONTROL_SLOTS = 8,
    HELIO_CONTROL_TEXT_BYTES = 448,
    HELIO_CONTROL_ANSWER_BYTES = 504,

    HELIO_CONTROL_PHASE_BITS = 3,
    HELIO_CONTROL_PID_BITS = 22, /* the kernel's own limit */
};

typedef enum helio_control_phase {
    HELIO_CONTROL_FREE,
    HELIO_CONTROL_CLAIMED,   /* a client writes */
    HELIO_CONTROL_SUBMITTED, /* the engine may read */
    HELIO_CONTROL_RUNNING,   /* the engine carries it out */
    HELIO_CONTROL_DONE,      /* the answer is there */
} helio_control_phase;

typedef struct helio_control_slot {
    _Atomic uint64_t state; /* ticket, process id of the client, phase */
    uint64_t started_ticks; /* of the client's process, since boot: a process id is used again */
    uint64_t submitted_ns;  /* wall clock */
    uint64_t deadline_ns;   /* wall clock; nobody waits for the answer any more */
    uint64_t check;         /* helio_control_check of text and ticket */
    uint32_t uid;           /* of the client, as it says */
    uint32_t text_bytes;
    char text[HELIO_CONTROL_TEXT_BYTES];
    int32_t code; /* 0 or HELIO_ERR_* */
    uint32_t answer_bytes;
    char answer[HELIO_CONTROL_ANSWER_BYTES];
    uint8_t reserved[16];
} helio_control_slot;

typedef struct helio_control_ring {
    _Atomic uint64_t bell;   /* commands ever submitted */
    _Atomic uint64_t served; /* of the engine: the bell it has answered */
    uint64_t reserved[6];
    helio_control_slot slots[HELIO_CONTROL_SLOTS];
} helio_control_ring;

_Static_assert(sizeof(helio_control_slot) == 1024, "docs/segment.md 8");
_Static_assert(offsetof(helio_control_ring, slots) == 64, "docs/segment.md 8");
_Static_assert(offsetof(helio_control_slot, code) == 496, "docs/segment.md 8");

/* A command, copied out of its slot. */
typedef struct helio_control_copy {
    helio_control_slot *slot;
    uint64_t ticket;
    uint32_t pid;
    uint32_t uid;
    int64_t deadline_ns;
    bool is_whole; /* its length is possible and its check is right */
    size_t text_bytes;
    char text[HELIO_CONTROL_TEXT_BYTES + 1]; /* NUL-terminated */
} helio_control_copy;

static inline helio_control_phase helio_control_phase_of(uint64_t state) {
    return (helio_control_phase)(state & ((1u << HELIO_CONTROL_PHASE_BITS) - 1));
}

static inline uint32_t helio_control_pid_of(uint64_t state) {
    return (uint32_t)(state >> HELIO_CONTROL_PHASE_BITS) & ((1u << HELIO_CONTROL_PID_BITS) - 1);
}

static inline uint64_t helio_control_ticket_of(uint64_t state) {
    return state >> (HELIO_CONTROL_PHASE_BITS + HELIO_CONTROL_PID_BITS);
}

static inline uint64_t helio_control_state(uint64_t ticket, uint32_t pid,
                                           helio_control_phase phase) {
    return ticket << (HELIO_CONTROL_PHASE_BITS + HELIO_CONTROL_PID_BITS) |
           (uint64_t)(pid & ((1u << HELIO_CONTROL_PID_BITS) - 1)) << HELIO_CONTROL_PHASE_BITS |
           (uint64_t)phase;
}

/* FNV-1a of the ticket's eight bytes (little-endian) and the text: two clients that write one slot,
 * the first having been taken for dead, do not add up to a command. */
uint64_t helio_control_check(uint64_t ticket, const char *text, size_t length);

/* Whether something was submitted since the ring was last emptied. */
static inline bool helio_control_rung(const helio_control_ring *ring) {
    return atomic_load_explicit(&ring->bell, memory_order_acquire) !=
           atomic_load_explicit(&ring->served, memory_order_relaxed);
}

/* Takes a submitted command, the oldest submission first; false: there is none (left), and the bell
 * counts as answered.  What was taken must be answered. */
bool helio_control_take(helio_control_ring *ring, helio_control_copy *out);
/* Nobody reads it when the client is gone; cut at a character's boundary. */
void helio_control_answer(const helio_control_copy *command, int code, const char *text);

#endif
