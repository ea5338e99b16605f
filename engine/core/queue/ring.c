#include "queue/ring.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/error.h"

int helio_ring_init(helio_ring *ring, size_t capacity) {
    *ring = (helio_ring){.capacity = (size_t)helio_round_up_power_of_two(capacity),
                         .look_at = HELIO_RING_REUSED_BYTES};
    ring->memory = aligned_alloc(64, ring->capacity);
    return ring->memory
               ? 0
               : helio_fail(HELIO_ERR_NOMEM, "no memory for a queue of %zu bytes", ring->capacity);
}

void helio_ring_fini(helio_ring *ring) {
    free(ring->memory);
    ring->memory = NULL;
}

void *helio_ring_oldest(helio_ring *ring) {
    uint64_t position = atomic_load_explicit(&ring->released, memory_order_acquire);
    const uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    const uint64_t origin = atomic_load_explicit(&ring->origin, memory_order_relaxed);
    while (position != tail) {
        helio_ring_head *head = helio_ring_at(ring, origin, position);
        if (!head->padding) {
            return head + 1;
        }
        position += head->bytes;
    }
    return NULL;
}
