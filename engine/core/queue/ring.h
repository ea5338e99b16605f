/* Bounded ring of records of any length, one producer, one consumer, no locks.
 *
 * Positions are 64 bit counts of bytes that never wrap.  Records lie at multiples of 8 and never
 * across the end: what is left there is skipped with a padding record.  A record of at most a
 * quarter of the ring always fits in the end.
 *
 * The consumer has two positions: `next`, up to where it has looked, and `released`, up to where
 * the producer may write again. */
#ifndef HELIO_QUEUE_RING_H
#define HELIO_QUEUE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct helio_ring {
    uint8_t *memory;
    size_t capacity; /* a power of two */

    _Alignas(64) _Atomic uint64_t tail; /* written by the producer */
    uint64_t released_seen;             /* the producer's copy of `released` */
    uint64_t reserved_end;              /* of the record being written */

    _Alignas(64) _Atomic uint64_t released; /* written by the consumer */
    uint64_t next;
    uint64_t tail_seen; /* the consumer's copy of `tail` */
} helio_ring;

/* What one side writes never shares a cache line with what the other writes. */
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

/* Producer: room for a record of `length` bytes, NULL when there is none now; it counts once
 * committed. */
void *helio_ring_reserve(helio_ring *ring, size_t length);
void helio_ring_commit(helio_ring *ring);

/* Consumer: the next record, NULL when there is none.  It stays valid until release. */
void *helio_ring_next(helio_ring *ring);
/* Consumer: the record that helio_ring_next would give, without moving on. */
void *helio_ring_peek(helio_ring *ring);
/* Producer: the oldest record not given back; NULL when there is none.  It stays, for nobody else
 * writes. */
void *helio_ring_oldest(helio_ring *ring);
/* Consumer: gives back all records looked at so far. */
void helio_ring_release(helio_ring *ring);

/* Bytes in use, as any thread sees it. */
static inline size_t helio_ring_used(const helio_ring *ring) {
    const uint64_t released = atomic_load_explicit(&ring->released, memory_order_acquire);
    return (size_t)(atomic_load_explicit(&ring->tail, memory_order_acquire) - released);
}

/* Position behind all that was committed, as any thread sees it. */
static inline uint64_t helio_ring_tail(const helio_ring *ring) {
    return atomic_load_explicit(&ring->tail, memory_order_acquire);
}

#endif
