#include "runtime/submit_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef struct submit_record {
    int64_t submit_ns;
    uint64_t length;
    void *outside; /* the message when it is too long for the ring, else NULL and it follows */
} submit_record;

int helio_submit_queue_init(helio_submit_queue *queue, size_t bytes) {
    memset(queue, 0, sizeof *queue);
    const int error = helio_ring_init(&queue->ring, bytes);
    if (!error) {
        pthread_mutex_init(&queue->producers, NULL);
    }
    return error;
}

void helio_submit_queue_fini(helio_submit_queue *queue) {
    if (!queue->ring.memory) {
        return;
    }
    helio_submitted left;
    while (helio_submit_queue_peek(queue, &left)) {
        helio_submit_queue_drop(queue);
    }
    helio_ring_fini(&queue->ring);
    pthread_mutex_destroy(&queue->producers);
}

void helio_submit_queue_lock(helio_submit_queue *queue) {
    pthread_mutex_lock(&queue->producers);
}

void helio_submit_queue_unlock(helio_submit_queue *queue) {
    pthread_mutex_unlock(&queue->producers);
}

static bool is_long(const helio_submit_queue *queue, size_t length) {
    return length > helio_ring_record_max(&queue->ring) - 64;
}

/* A long message is taken when the others outside leave it room, or when it is the only one. */
static bool has_room_outside(const helio_submit_queue *queue, size_t length) {
    const uint64_t outside = atomic_load_explicit(&queue->outside_bytes, memory_order_acquire);
    return outside == 0 || outside + length <= queue->ring.capacity;
}

static int refuse(helio_submit_queue *queue) {
    atomic_fetch_add_explicit(&queue->refused, 1, memory_order_relaxed);
    return HELIO_ERR_WOULD_BLOCK;
}

static int push_long(helio_submit_queue *queue, const void *data, size_t length,
                     int64_t submit_ns) {
    if (!has_room_outside(queue, length)) {
        return refuse(queue);
    }
    submit_record *record = helio_ring_reserve(&queue->ring, sizeof *record);
    if (!record) {
        return refuse(queue);
    }
    void *copy = malloc(length);
    if (!copy) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a message of %zu bytes", length);
    }
    memcpy(copy, data, length);
    *record = (submit_record){submit_ns, length, copy};
    atomic_fetch_add_explicit(&queue->outside_bytes, length, memory_order_relaxed);
    helio_ring_commit(&queue->ring);
    return 0;
}

int helio_submit_queue_push(helio_submit_queue *queue, const void *data, size_t length,
                            int64_t submit_ns) {
    if (is_long(queue, length)) {
        return push_long(queue, data, length, submit_ns);
    }
    submit_record *record = helio_ring_reserve(&queue->ring, sizeof *record + length);
    if (!record) {
        return refuse(queue);
    }
    *record = (submit_record){submit_ns, length, NULL};
    if (length) {
        memcpy(record + 1, data, length);
    }
    helio_ring_commit(&queue->ring);
    return 0;
}

bool helio_submit_queue_has_room(helio_submit_queue *queue, size_t length) {
    helio_submit_queue_lock(queue);
    const bool outside = is_long(queue, length);
    const bool room =
        (!outside || has_room_outside(queue, length)) &&
        helio_ring_reserve(&queue->ring, sizeof(submit_record) + (outside ? 0 : length));
    helio_submit_queue_unlock(queue); /* reserved and not committed: nothing happened */
    return room;
}

bool helio_submit_queue_peek(helio_submit_queue *queue, helio_submitted *out) {
    const submit_record *record = helio_ring_peek(&queue->ring);
    if (!record) {
        return false;
    }
    *out = (helio_submitted){record->outside ? record->outside : record + 1, record->length,
                             record->submit_ns};
    return true;
}

void helio_submit_queue_drop(helio_submit_queue *queue) {
    const submit_record *record = helio_ring_next(&queue->ring);
    if (record->outside) {
        free(record->outside);
        atomic_fetch_sub_explicit(&queue->outside_bytes, record->length, memory_order_release);
    }
}

void helio_submit_queue_release(helio_submit_queue *queue) {
    helio_ring_release(&queue->ring);
    helio_signal_notify(&queue->progress);
}

void helio_submit_queue_hand_over(helio_submit_queue *queue) {
    atomic_store_explicit(&queue->handed_over, queue->ring.next, memory_order_release);
    helio_signal_notify(&queue->progress);
}

size_t helio_submit_queue_bytes(const helio_submit_queue *queue) {
    return helio_ring_used(&queue->ring) +
           (size_t)atomic_load_explicit(&queue->outside_bytes, memory_order_relaxed);
}
