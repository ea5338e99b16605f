#include "runtime/receive_queue.h"

#include <stdlib.h>
#include <string.h>

typedef struct helio_long_message {
    struct helio_long_message *next;
    size_t length;
    uint8_t data[];
} helio_long_message;

typedef struct queued_message {
    helio_message message; /* `data` is filled in when it is taken */
    helio_passage *passage;
    helio_long_message *outside; /* NULL: the data follows */
} queued_message;

/* Bytes a message takes in the queue. */
static size_t footprint(size_t length) {
    return sizeof(queued_message) + length;
}

int helio_receive_queue_init(helio_receive_queue *queue, size_t bytes) {
    memset(queue, 0, sizeof *queue);
    return helio_ring_init(&queue->ring, bytes);
}

static void give_back(helio_receive_queue *queue) {
    helio_ring_release(&queue->ring);
    while (queue->given) {
        helio_long_message *message = queue->given;
        queue->given = message->next;
        atomic_fetch_sub_explicit(&queue->outside_bytes, message->length, memory_order_release);
        free(message);
    }
}

void helio_receive_queue_fini(helio_receive_queue *queue) {
    if (!queue->ring.memory) {
        return;
    }
    give_back(queue);
    for (queued_message *left; (left = helio_ring_next(&queue->ring));) {
        free(left->outside);
    }
    helio_ring_fini(&queue->ring);
}

/* ---- engine ---- */

static queued_message *reserve_long(helio_receive_queue *queue, const helio_message *message) {
    const uint64_t outside = atomic_load_explicit(&queue->outside_bytes, memory_order_acquire);
    if (outside > 0 && outside + message->length > queue->ring.capacity) {
        return NULL;
    }
    queued_message *record = helio_ring_reserve(&queue->ring, sizeof *record);
    helio_long_message *copy = record ? malloc(sizeof *copy + message->length) : NULL;
    if (!copy) {
        return NULL;
    }
    copy->length = message->length;
    memcpy(copy->data, message->data, message->length);
    atomic_fetch_add_explicit(&queue->outside_bytes, message->length, memory_order_relaxed);
    record->outside = copy;
    return record;
}

static queued_message *reserve_short(helio_receive_queue *queue, const helio_message *message) {
    queued_message *record = helio_ring_reserve(&queue->ring, sizeof *record + message->length);
    if (record) {
        record->outside = NULL;
        if (message->length) {
            memcpy(record + 1, message->data, message->length);
        }
    }
    return record;
}

bool helio_receive_queue_push(helio_receive_queue *queue, const helio_message *message,
                              helio_passage *passage) {
    const bool is_long = message->length > helio_ring_record_max(&queue->ring) - 128;
    queued_message *record = is_long ? reserve_long(queue, message) : reserve_short(queue, message);
    if (!record) {
        atomic_store_explicit(&queue->full, true, memory_order_seq_cst);
        return false;
    }
    record->message = *message;
    record->passage = passage;
    passage->pushed_messages++;
    passage->pushed_bytes += footprint(message->length);
    helio_ring_commit(&queue->ring);
    return true;
}

bool helio_receive_queue_is_half_empty(const helio_receive_queue *queue) {
    return helio_receive_queue_bytes(queue) <= queue->ring.capacity / 2;
}

void helio_receive_queue_resume(helio_receive_queue *queue) {
    atomic_store_explicit(&queue->full, false, memory_order_relaxed);
}

size_t helio_receive_queue_bytes(const helio_receive_queue *queue) {
    return helio_ring_used(&queue->ring) +
           (size_t)atomic_load_explicit(&queue->outside_bytes, memory_order_acquire);
}

/* ---- application ---- */

static void add(_Atomic uint64_t *cell, uint64_t by) {
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + by,
                          memory_order_release);
}

size_t helio_receive_queue_take(helio_receive_queue *queue, helio_message *messages, size_t limit) {
    give_back(queue);
    size_t taken = 0;
    queued_message *record;
    while (taken < limit && (record = helio_ring_next(&queue->ring))) {
        helio_message *message = &messages[taken++];
        *message = record->message;
        message->data = record->outside ? record->outside->data : (const void *)(record + 1);
        if (record->outside) {
            record->outside->next = queue->given;
            queue->given = record->outside;
        }
        add(&record->passage->taken_messages, 1);
        add(&record->passage->taken_bytes, footprint(message->length));
    }
    return taken;
}

bool helio_receive_queue_is_empty(helio_receive_queue *queue) {
    return helio_ring_peek(&queue->ring) == NULL;
}
