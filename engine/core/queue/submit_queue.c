#include "queue/submit_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/error.h"

typedef struct submit_record {
    int64_t submit_ns;
    uint64_t length;
    /* 0: the message follows, as with most.  Else bit IS_INTENDED: the time it was to be sent at
     * follows, and the rest: where the message is when it is too long for the ring; 0: it follows
     * too. */
    uintptr_t outside;
} submit_record;

enum { IS_INTENDED = 1 };

/* What goes with each message of a kept queue. */
typedef struct kept_head {
    int64_t submit_ns, intended_ns;
} kept_head;

static void *outside_of(const submit_record *record) {
    return (void *)(record->outside & ~(uintptr_t)IS_INTENDED);
}

int helio_submit_queue_init(helio_submit_queue *queue, size_t bytes) {
    memset(queue, 0, sizeof *queue);
    queue->low_water = 1;
    const int error = helio_ring_init(&queue->ring, bytes);
    if (!error) {
        pthread_mutex_init(&queue->producers, NULL);
    }
    return error;
}

int helio_submit_queue_init_kept(helio_submit_queue *queue, const helio_kept_config *config) {
    helio_kept_config all = *config;
    memset(queue, 0, sizeof *queue);
    queue->low_water = 1;
    queue->most_messages = config->messages;
    queue->ring.capacity = config->bytes; /* of its memory there is none */
    all.head_bytes = sizeof(kept_head);
    const int error = helio_kept_queue_create(&all, &queue->kept);
    if (error) {
        return helio_fail(error, "no memory for a queue of %zu bytes", config->bytes);
    }
    pthread_mutex_init(&queue->producers, NULL);
    return 0;
}

void helio_submit_queue_fini(helio_submit_queue *queue) {
    if (queue->kept) {
        helio_kept_queue_destroy(queue->kept);
        queue->kept = NULL;
        pthread_mutex_destroy(&queue->producers);
    }
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

/* Longest message in the ring. */
static size_t short_max(const helio_submit_queue *queue) {
    return helio_ring_record_max(&queue->ring) - 64;
}

static bool is_long(const helio_submit_queue *queue, size_t length) {
    return length > short_max(queue);
}

/* A long message is taken when the others outside leave it room, or when it is the only one. */
static bool has_room_outside(const helio_submit_queue *queue, size_t length) {
    const uint64_t outside = atomic_load_explicit(&queue->outside_bytes, memory_order_acquire);
    return outside == 0 || outside + length <= queue->ring.capacity;
}

int helio_submit_queue_refuse(helio_submit_queue *queue) {
    atomic_fetch_add_explicit(&queue->refused, 1, memory_order_relaxed);
    return HELIO_ERR_WOULD_BLOCK;
}

static int push_long(helio_submit_queue *queue, const void *data, size_t length, int64_t submit_ns,
                     int64_t intended_ns) {
    if (!has_room_outside(queue, length)) {
        return helio_submit_queue_refuse(queue);
    }
    submit_record *record = helio_ring_reserve(&queue->ring, sizeof *record + sizeof intended_ns);
    if (!record) {
        return helio_submit_queue_refuse(queue);
    }
    if (!helio_account_take(queue->account, length)) {
        return helio_submit_queue_refuse(queue);
    }
    void *copy = malloc(length);
    if (!copy) {
        helio_account_give(queue->account, length);
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a message of %zu bytes", length);
    }
    memcpy(copy, data, length);
    *record = (submit_record){submit_ns, length, (uintptr_t)copy | (intended_ns ? IS_INTENDED : 0)};
    memcpy(record + 1, &intended_ns, sizeof intended_ns);
    atomic_fetch_add_explicit(&queue->outside_bytes, length, memory_order_relaxed);
    helio_ring_commit(&queue->ring);
    return 0;
}

int helio_submit_queue_push(helio_submit_queue *queue, const void *data, size_t length,
                            int64_t submit_ns, int64_t intended_ns) {
    if (is_long(queue, length)) {
        return push_long(queue, data, length, submit_ns, intended_ns);
    }
    const size_t before = intended_ns ? sizeof intended_ns : 0;
    submit_record *record = helio_ring_reserve(&queue->ring, sizeof *record + before + length);
    if (!record) {
        return helio_submit_queue_refuse(queue);
    }
    *record = (submit_record){submit_ns, length, intended_ns ? IS_INTENDED : 0};
    uint8_t *body = (uint8_t *)(record + 1);
    if (intended_ns) {
        memcpy(body, &intended_ns, sizeof intended_ns);
    }
    if (length) {
        memcpy(body + before, data, length);
    }
    helio_ring_commit(&queue->ring);
    return 0;
}

size_t helio_submit_queue_push_ordinary(helio_submit_queue *queue, const helio_buffer *messages,
                                        size_t count, size_t most_bytes, int64_t submit_ns) {
    const size_t most = most_bytes < short_max(queue) ? most_bytes : short_max(queue);
    size_t done = 0;
    for (; done < count; done++) {
        const size_t length = messages[done].length;
        if (length == 0 || length > most) {
            break;
        }
        submit_record *record = helio_ring_reserve(&queue->ring, sizeof *record + length);
        if (!record) {
            break;
        }
        *record = (submit_record){submit_ns, length, 0};
        helio_copy((uint8_t *)(record + 1), messages[done].data, length);
        helio_ring_commit(&queue->ring); /* each: the engine sends the first while the last come */
    }
    return done;
}

int helio_submit_queue_push_kept(helio_submit_queue *queue, const void *data, size_t length,
                                 int64_t submit_ns, int64_t intended_ns, int64_t now_ns) {
    if (!helio_submit_queue_admits(queue)) {
        return helio_submit_queue_refuse(queue);
    }
    const kept_head head = {submit_ns, intended_ns};
    const int error = helio_kept_queue_push(queue->kept, &head, data, length, now_ns);
    if (error == HELIO_ERR_NOMEM) {
        return helio_fail(error, "no memory for a message of %zu bytes", length);
    }
    if (queue->most_messages > 0 &&
        helio_kept_queue_messages(queue->kept) >= queue->most_messages) {
        helio_submit_queue_close(queue);
    }
    return error ? helio_submit_queue_refuse(queue) : 0;
}

/* ---- the bound ---- */

/* Share of the bound in use. */
static double filled(const helio_submit_queue *queue) {
    return helio_kept_queue_fill(queue->kept, helio_submit_queue_bytes(queue), queue->ring.capacity,
                                 queue->most_messages);
}

uint64_t helio_submit_queue_fill(const helio_submit_queue *queue) {
    return (uint64_t)(1e6 * filled(queue));
}

bool helio_submit_queue_admits(helio_submit_queue *queue) {
    queue->is_closed = queue->is_closed && filled(queue) > queue->low_water;
    return !queue->is_closed;
}

void helio_submit_queue_close(helio_submit_queue *queue) {
    queue->is_closed = queue->low_water < 1;
}

bool helio_submit_queue_lacks_memory(const helio_submit_queue *queue, size_t length) {
    return queue->ring.memory && is_long(queue, length) &&
           helio_account_left(queue->account) < length;
}

bool helio_submit_queue_would_fit(helio_submit_queue *queue, size_t length) {
    if (!helio_submit_queue_admits(queue)) {
        return false;
    }
    if (queue->kept) {
        return helio_kept_queue_has_room(queue->kept, length);
    }
    const bool outside = is_long(queue, length);
    return (!outside ||
            (has_room_outside(queue, length) && !helio_submit_queue_lacks_memory(queue, length))) &&
           helio_ring_reserve(&queue->ring,
                              sizeof(submit_record) + sizeof(int64_t) + (outside ? 0 : length));
    /* reserved and not committed: nothing happened */
}

bool helio_submit_queue_has_room(helio_submit_queue *queue, size_t length) {
    helio_submit_queue_lock(queue);
    const bool room = helio_submit_queue_would_fit(queue, length);
    helio_submit_queue_unlock(queue);
    return room;
}

uint64_t helio_submit_queue_position(const helio_submit_queue *queue) {
    return queue->kept ? helio_kept_queue_next_place(queue->kept) : helio_ring_tail(&queue->ring);
}

/* ---- the consumer ---- */

static void show_special(const submit_record *record, helio_submitted *out) {
    const uint8_t *body = (const uint8_t *)(record + 1);
    if (record->outside & IS_INTENDED) {
        memcpy(&out->intended_ns, body, sizeof out->intended_ns);
        out->data = body + sizeof out->intended_ns;
    }
    if (outside_of(record)) {
        out->data = outside_of(record);
    }
}

bool helio_submit_queue_peek(helio_submit_queue *queue, helio_submitted *out) {
    const submit_record *record = helio_ring_peek(&queue->ring);
    if (!record) {
        return false;
    }
    *out = (helio_submitted){record + 1, record->length, record->submit_ns, 0};
    if (record->outside) {
        show_special(record, out);
    }
    return true;
}

int64_t helio_submit_queue_oldest_ns(helio_submit_queue *queue, helio_moment moment) {
    if (!queue->kept) {
        const submit_record *record = queue->ring.memory ? helio_ring_peek(&queue->ring) : NULL;
        return record ? record->submit_ns : HELIO_NEVER;
    }
    helio_submit_queue_lock(queue);
    const int64_t oldest_ns = helio_kept_queue_oldest_ns(queue->kept, HELIO_NEVER);
    helio_submit_queue_unlock(queue);
    return oldest_ns == HELIO_NEVER ? HELIO_NEVER : moment.wall_ns - (moment.now_ns - oldest_ns);
}

void helio_submit_queue_drop(helio_submit_queue *queue) {
    const submit_record *record = helio_ring_next(&queue->ring);
    if (outside_of(record)) {
        free(outside_of(record));
        helio_account_give(queue->account, record->length);
        atomic_fetch_sub_explicit(&queue->outside_bytes, record->length, memory_order_release);
    }
}

size_t helio_submit_queue_peek_run(helio_submit_queue *queue, const helio_submit_run *run,
                                   helio_buffer *out) {
    size_t room = run->room, count = 0;
    if (!helio_ring_peek(&queue->ring)) { /* it looks for new ones when none is left */
        return 0;
    }
    uint64_t position = queue->ring.next;
    for (; count < run->limit; count++) {
        const submit_record *record = helio_ring_walk(&queue->ring, &position);
        if (!record || record->outside || record->submit_ns < run->from_ns ||
            record->submit_ns > run->to_ns || record->length + run->each > room) {
            break;
        }
        room -= record->length + run->each;
        out[count] = (helio_buffer){record + 1, record->length};
    }
    return count;
}

void helio_submit_queue_drop_run(helio_submit_queue *queue, size_t count) {
    for (; count > 0; count--) {
        helio_ring_walk(&queue->ring, &queue->ring.next);
    }
}

void helio_submit_queue_release(helio_submit_queue *queue) {
    if (!queue->kept) {
        helio_ring_release(&queue->ring);
    }
    helio_signal_notify(&queue->progress);
}

void helio_submit_queue_hand_over(helio_submit_queue *queue) {
    uint64_t position = queue->ring.next;
    if (queue->kept) {
        helio_submit_queue_lock(queue);
        position = helio_kept_queue_first_place(queue->kept);
        helio_submit_queue_unlock(queue);
    }
    atomic_store_explicit(&queue->handed_over, position, memory_order_release);
    helio_signal_notify(&queue->progress);
}

bool helio_submit_queue_take(helio_submit_queue *queue, helio_submitted *out) {
    helio_kept_message message;
    helio_kept_queue_give_back(queue->kept);
    if (!helio_kept_queue_take(queue->kept, &message)) {
        return false;
    }
    const kept_head *head = message.head;
    *out = (helio_submitted){message.data, message.length, head->submit_ns, head->intended_ns};
    return true;
}

void helio_submit_queue_expire(helio_submit_queue *queue, int64_t now_ns) {
    helio_kept_queue_expire(queue->kept, now_ns);
}

size_t helio_submit_queue_bytes(const helio_submit_queue *queue) {
    if (queue->kept) {
        return (size_t)helio_kept_queue_bytes(queue->kept);
    }
    return helio_ring_used(&queue->ring) +
           (size_t)atomic_load_explicit(&queue->outside_bytes, memory_order_relaxed);
}
