#include "queue/ring.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/error.h"

/* Before each record: its length with this header, and whether it is padding. */
typedef struct record_head {
    uint32_t bytes;
    uint32_t padding;
} record_head;
_Static_assert(sizeof(record_head) == 8, "records lie at multiples of 8");

int helio_ring_init(helio_ring *ring, size_t capacity) {
    *ring = (helio_ring){.capacity = (size_t)helio_round_up_power_of_two(capacity)};
    ring->memory = aligned_alloc(64, ring->capacity);
    return ring->memory
               ? 0
               : helio_fail(HELIO_ERR_NOMEM, "no memory for a queue of %zu bytes", ring->capacity);
}

void helio_ring_fini(helio_ring *ring) {
    free(ring->memory);
    ring->memory = NULL;
}

static record_head *at(helio_ring *ring, uint64_t position) {
    return (record_head *)(void *)(ring->memory + (position & (ring->capacity - 1)));
}

void *helio_ring_reserve(helio_ring *ring, size_t length) {
    const size_t bytes = (size_t)helio_round_up(sizeof(record_head) + length, 8);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    const size_t to_end = ring->capacity - (size_t)(tail & (ring->capacity - 1));
    const size_t padding = bytes > to_end ? to_end : 0;
    if (tail + padding + bytes - ring->released_seen > ring->capacity) {
        ring->released_seen = atomic_load_explicit(&ring->released, memory_order_acquire);
        if (tail + padding + bytes - ring->released_seen > ring->capacity) {
            return NULL;
        }
    }
    if (padding) {
        *at(ring, tail) = (record_head){(uint32_t)padding, 1};
        tail += padding;
    }
    record_head *head = at(ring, tail);
    *head = (record_head){(uint32_t)bytes, 0};
    ring->reserved_end = tail + bytes;
    return head + 1;
}

void helio_ring_commit(helio_ring *ring) {
    atomic_store_explicit(&ring->tail, ring->reserved_end, memory_order_release);
}

void *helio_ring_peek(helio_ring *ring) {
    for (;;) {
        if (ring->next == ring->tail_seen) {
            ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire);
            if (ring->next == ring->tail_seen) {
                return NULL;
            }
        }
        record_head *head = at(ring, ring->next);
        if (!head->padding) {
            return head + 1;
        }
        ring->next += head->bytes;
    }
}

void *helio_ring_oldest(helio_ring *ring) {
    uint64_t position = atomic_load_explicit(&ring->released, memory_order_acquire);
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    while (position != tail) {
        record_head *head = at(ring, position);
        if (!head->padding) {
            return head + 1;
        }
        position += head->bytes;
    }
    return NULL;
}

void *helio_ring_next(helio_ring *ring) {
    void *record = helio_ring_peek(ring);
    if (record) {
        ring->next += at(ring, ring->next)->bytes;
    }
    return record;
}

void helio_ring_release(helio_ring *ring) {
    if (ring->next != atomic_load_explicit(&ring->released, memory_order_relaxed)) {
        atomic_store_explicit(&ring->released, ring->next, memory_order_release);
    }
}
