/* Bounded ring of records of any length, one producer, one consumer, no locks.
 *
 * Positions are 64 bit counts of bytes that never wrap.  Records start at multiples of 8 and never
 * cross the end: a padding record fills the rest.  A record of at most a quarter of the ring always
 * fits eventually.
 *
 * The consumer has two positions.  It has read all records up to `next`; the producer may overwrite
 * all up to `released`.
 *
 * A ring that is often empty uses the first part of its memory again, which is in the caches and
 * resident, instead of all of it in turn: once HELIO_RING_REUSED_BYTES are used, the producer lets
 * the next record after an empty moment begin the memory.  `origin` is the position of that
 * record.  It changes only while everything is released, and the consumer reads it after a `tail`
 * beyond its own position, so the consumer never has a record of an older origin. */
#ifndef HELIO_QUEUE_RING_H
#define HELIO_QUEUE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

/* Before each record: its length with this header, and whether it is padding. */
typedef struct helio_ring_head {
    uint32_t bytes;
    uint32_t padding;
} helio_ring_head;
_Static_assert(sizeof(helio_ring_head) == 8, "records lie at multiples of 8");

enum { HELIO_RING_REUSED_BYTES = 256 * 1024 };

typedef struct helio_ring {
    uint8_t *memory;
    size_t capacity; /* a power of two */

    _Alignas(64) _Atomic uint64_t tail; /* written by the producer */
    uint64_t released_seen;             /* the producer's copy of `released` */
    uint64_t reserved_end;              /* of the record being written */
    _Atomic uint64_t origin;            /* position at the start of the memory */
    uint64_t look_at;                   /* position from which it looks for an empty moment */

    _Alignas(64) _Atomic uint64_t released; /* written by the consumer */
    uint64_t next;
    uint64_t tail_seen;   /* the consumer's copy of `tail` */
    uint64_t origin_seen; /* and of `origin` */
} helio_ring;

/* Producer and consumer never write to the same cache line. */
_Static_assert(offsetof(helio_ring, tail) == 64, "a line of what never changes");
_Static_assert(offsetof(helio_ring, released) == 128, "a line of the producer's");
_Static_assert(sizeof(helio_ring) == 192, "a line of the consumer's, to its end");

/* Returns 0 or HELIO_ERR_NOMEM.  `capacity` is rounded up to a power of two. */
int helio_ring_init(helio_ring *ring, size_t capacity);
void helio_ring_fini(helio_ring *ring);

/* Largest record. */
static inline size_t helio_ring_record_max(const helio_ring *ring) {
    return ring->capacity / 4;
}

static inline helio_ring_head *helio_ring_at(helio_ring *ring, uint64_t origin, uint64_t position) {
    return (helio_ring_head *)(void *)(ring->memory + ((position - origin) & (ring->capacity - 1)));
}

/* Producer: lets the next record begin the memory if the ring is empty.  The first record of a burst
 * finds it so, and the next commit of `tail` publishes the origin. */
static inline void helio_ring_look(helio_ring *ring, uint64_t tail) {
    ring->released_seen = atomic_load_explicit(&ring->released, memory_order_acquire);
    if (ring->released_seen == tail) {
        atomic_store_explicit(&ring->origin, tail, memory_order_relaxed);
        ring->look_at = tail + HELIO_RING_REUSED_BYTES;
    }
}

/* Producer: reserves room for a record of `length` bytes; NULL when there is none now.  The
 * consumer sees the record after helio_ring_commit. */
static inline void *helio_ring_reserve(helio_ring *ring, size_t length) {
    const size_t bytes = (size_t)helio_round_up(sizeof(helio_ring_head) + length, 8);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail >= ring->look_at) {
        helio_ring_look(ring, tail);
    }
    const uint64_t origin = atomic_load_explicit(&ring->origin, memory_order_relaxed);
    const size_t to_end = ring->capacity - (size_t)((tail - origin) & (ring->capacity - 1));
    const size_t padding = bytes > to_end ? to_end : 0;
    if (tail + padding + bytes - ring->released_seen > ring->capacity) {
        ring->released_seen = atomic_load_explicit(&ring->released, memory_order_acquire);
        if (tail + padding + bytes - ring->released_seen > ring->capacity) {
            return NULL;
        }
    }
    if (padding) {
        *helio_ring_at(ring, origin, tail) = (helio_ring_head){(uint32_t)padding, 1};
        tail += padding;
    }
    helio_ring_head *head = helio_ring_at(ring, origin, tail);
    *head = (helio_ring_head){(uint32_t)bytes, 0};
    ring->reserved_end = tail + bytes;
    return head + 1;
}

static inline void helio_ring_commit(helio_ring *ring) {
    atomic_store_explicit(&ring->tail, ring->reserved_end, memory_order_release);
}

/* Consumer: the record that helio_ring_next would return, without advancing; NULL when there is
 * none. */
static inline void *helio_ring_peek(helio_ring *ring) {
    for (;;) {
        if (ring->next == ring->tail_seen) {
            ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
            if (ring->next == ring->tail_seen) {
                return NULL;
            }
            ring->origin_seen = atomic_load_explicit(&ring->origin, memory_order_relaxed);
        }
        helio_ring_head *head = helio_ring_at(ring, ring->origin_seen, ring->next);
        if (!head->padding) {
            return head + 1;
        }
        ring->next += head->bytes;
    }
}

/* Consumer: the next record, NULL when there is none.  It stays valid until release. */
static inline void *helio_ring_next(helio_ring *ring) {
    void *record = helio_ring_peek(ring);
    if (record) {
        ring->next += helio_ring_at(ring, ring->origin_seen, ring->next)->bytes;
    }
    return record;
}

/* Consumer: the record at *position, which is `next` or behind it, and moves on; NULL: no further
 * record was seen. */
static inline void *helio_ring_walk(helio_ring *ring, uint64_t *position) {
    while (*position != ring->tail_seen) {
        helio_ring_head *head = helio_ring_at(ring, ring->origin_seen, *position);
        *position += head->bytes;
        if (!head->padding) {
            return head + 1;
        }
    }
    return NULL;
}

/* Producer: the oldest record not released; NULL when there is none.  It remains intact, because
 * only the producer writes. */
void *helio_ring_oldest(helio_ring *ring);
/* Consumer: releases all records read so far. */
static inline void helio_ring_release(helio_ring *ring) {
    if (ring->next != atomic_load_explicit(&ring->released, memory_order_relaxed)) {
        atomic_store_explicit(&ring->released, ring->next, memory_order_release);
    }
}

/* Bytes in use, as any thread sees it. */
static inline size_t helio_ring_used(const helio_ring *ring) {
    const uint64_t released = atomic_load_explicit(&ring->released, memory_order_acquire);
    return (size_t)(atomic_load_explicit(&ring->tail, memory_order_acquire) - released);
}

/* Position after the last committed record, as any thread sees it. */
static inline uint64_t helio_ring_tail(const helio_ring *ring) {
    return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

#endif
