#include "queue/receive_queue.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "io/clock_source.h"

typedef struct helio_long_message {
    struct helio_long_message *next;
    size_t length;
    uint8_t data[];
} helio_long_message;

/* A flag of messages in the queue: it is measured, and in the place of `data` is since when. */
#define IS_STAMPED (UINT32_C(1) << 31)

typedef struct queued_message {
    helio_message message; /* `data` is filled in when it is taken */
    helio_passage *passage;
    helio_long_message *outside; /* NULL: the data follows */
} queued_message;

/* Bytes a message takes in the queue. */
static size_t footprint(size_t length) {
    return sizeof(queued_message) + length;
}

static void stamp(helio_message *message, int64_t in_order_ns) {
    message->flags |= IS_STAMPED;
    message->data = (const void *)(uintptr_t)in_order_ns;
}

/* What goes with a message in a kept queue. */
typedef struct kept_head {
    helio_message message;
    helio_passage *passage;
} kept_head;
_Static_assert(sizeof(kept_head) % 8 == 0, "heads are multiples of 8");

static const double LOW_WATER = 0.5; /* default */

int helio_receive_queue_init(helio_receive_queue *queue, size_t bytes) {
    memset(queue, 0, sizeof *queue);
    queue->low_water = LOW_WATER;
    return helio_ring_init(&queue->ring, bytes);
}

/* Under the lock. */
static void on_drop(void *context, void *head, size_t length, helio_kept_cause cause,
                    bool by_count) {
    static const int causes[HELIO_DROPPED_CAUSES] = {
        [HELIO_DROPPED_NEWEST] = HELIO_TRIMMED_BYTES,
        [HELIO_DROPPED_OLDEST] = HELIO_TRIMMED_BYTES,
        [HELIO_DROPPED_CONFLATED] = HELIO_TRIMMED_CONFLATED,
        [HELIO_DROPPED_PRIORITY] = HELIO_TRIMMED_PRIORITY,
        [HELIO_DROPPED_AGE] = HELIO_TRIMMED_AGE,
        [HELIO_DROPPED_MEMORY] = HELIO_TRIMMED_BYTES,
    };
    const helio_receive_queue *queue = context;
    helio_passage *passage = ((kept_head *)head)->passage;
    const int trimmed = causes[cause];
    passage->trimmed_messages++;
    passage->trimmed_bytes += footprint(length);
    if (queue->on_trim) {
        queue->on_trim(passage,
                       trimmed == HELIO_TRIMMED_BYTES && by_count ? HELIO_TRIMMED_COUNT : trimmed);
    }
}

int helio_receive_queue_init_kept(helio_receive_queue *queue, const helio_kept_config *config) {
    helio_kept_config all = *config;
    memset(queue, 0, sizeof *queue);
    queue->low_water = LOW_WATER;
    queue->most_messages = config->messages;
    queue->ring.capacity = config->bytes; /* of its memory there is none */
    all.head_bytes = sizeof(kept_head);
    all.on_drop = on_drop;
    all.context = queue;
    const int error = helio_kept_queue_create(&all, &queue->kept);
    if (!error) {
        pthread_mutex_init(&queue->lock, NULL);
    }
    return error;
}

void helio_receive_queue_lock(helio_receive_queue *queue) {
    pthread_mutex_lock(&queue->lock);
}

void helio_receive_queue_unlock(helio_receive_queue *queue) {
    pthread_mutex_unlock(&queue->lock);
}

static void give_back(helio_receive_queue *queue) {
    helio_ring_release(&queue->ring);
    while (queue->given) {
        helio_long_message *message = queue->given;
        queue->given = message->next;
        atomic_fetch_sub_explicit(&queue->outside_bytes, message->length, memory_order_release);
        helio_account_give(queue->account, message->length);
        free(message);
    }
}

void helio_receive_queue_fini(helio_receive_queue *queue) {
    if (queue->kept) {
        helio_kept_queue_destroy(queue->kept);
        queue->kept = NULL;
        pthread_mutex_destroy(&queue->lock);
    }
    if (!queue->ring.memory) {
        return;
    }
    give_back(queue);
    for (queued_message *left; (left = helio_ring_next(&queue->ring));) {
        if (left->outside) {
            helio_account_give(queue->account, left->outside->length);
            free(left->outside);
        }
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
    if (!record || !helio_account_take(queue->account, message->length)) {
        return NULL;
    }
    helio_long_message *copy = malloc(sizeof *copy + message->length);
    if (!copy) {
        helio_account_give(queue->account, message->length);
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

static inline bool push(helio_receive_queue *queue, const helio_message *message,
                        helio_passage *passage, int64_t in_order_ns) {
    const bool is_long = message->length > helio_ring_record_max(&queue->ring) - 128;
    queued_message *record = is_long ? reserve_long(queue, message) : reserve_short(queue, message);
    if (!record) {
        atomic_store_explicit(&queue->full, true, memory_order_seq_cst);
        return false;
    }
    record->message = *message;
    record->passage = passage;
    if (in_order_ns) {
        stamp(&record->message, in_order_ns);
    }
    passage->pushed_messages++;
    passage->pushed_bytes += footprint(message->length);
    helio_ring_commit(&queue->ring);
    return true;
}

bool helio_receive_queue_push(helio_receive_queue *queue, const helio_message *message,
                              helio_passage *passage) {
    return push(queue, message, passage, 0);
}

bool helio_receive_queue_push_measured(helio_receive_queue *queue, const helio_message *message,
                                       helio_passage *passage, int64_t in_order_ns) {
    return push(queue, message, passage, in_order_ns);
}

bool helio_receive_queue_push_kept(helio_receive_queue *queue, const helio_message *message,
                                   helio_passage *passage, int64_t in_order_ns, int64_t now_ns) {
    kept_head head = {*message, passage};
    if (in_order_ns) {
        stamp(&head.message, in_order_ns);
    }
    /* First, for the queue may trim it at once. */
    passage->pushed_messages++;
    passage->pushed_bytes += footprint(message->length);
    if (helio_kept_queue_push(queue->kept, &head, message->data, message->length, now_ns) == 0) {
        queue->kept_bytes += helio_kept_queue_cost(queue->kept, message->length);
        return true;
    }
    passage->pushed_messages--;
    passage->pushed_bytes -= footprint(message->length);
    atomic_store_explicit(&queue->full, true, memory_order_seq_cst);
    return false;
}

uint64_t helio_receive_queue_given(const helio_receive_queue *queue) {
    return queue->kept ? queue->kept_bytes : helio_ring_tail(&queue->ring);
}

/* Share of the bound in use. */
static double filled(const helio_receive_queue *queue) {
    return helio_kept_queue_fill(queue->kept, helio_receive_queue_bytes(queue),
                                 queue->ring.capacity, queue->most_messages);
}

uint64_t helio_receive_queue_fill(const helio_receive_queue *queue) {
    return (uint64_t)(1e6 * filled(queue));
}

bool helio_receive_queue_is_low(const helio_receive_queue *queue) {
    return filled(queue) <= queue->low_water;
}

int64_t helio_receive_queue_age_ns(helio_receive_queue *queue, int64_t now_ns, int64_t wall_ns) {
    int64_t age_ns = 0;
    if (queue->kept) {
        helio_receive_queue_lock(queue);
        age_ns = now_ns - helio_kept_queue_oldest_ns(queue->kept, now_ns);
        helio_receive_queue_unlock(queue);
    } else {
        const queued_message *oldest = helio_ring_oldest(&queue->ring);
        age_ns = oldest ? wall_ns - oldest->message.receive_ns : 0;
    }
    return age_ns > 0 ? age_ns : 0;
}

void helio_receive_queue_measure(helio_receive_queue *queue, helio_passage *passage,
                                 helio_hdr *waits, helio_hdr *ages) {
    if (waits == atomic_load_explicit(&passage->waits, memory_order_relaxed) &&
        ages == atomic_load_explicit(&passage->ages, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(&passage->waits, waits, memory_order_seq_cst);
    atomic_store_explicit(&passage->ages, ages, memory_order_seq_cst);
    while (atomic_load_explicit(&queue->is_recording, memory_order_seq_cst)) {
        sched_yield(); /* some instructions, when it comes to it */
    }
}

void helio_receive_queue_resume(helio_receive_queue *queue) {
    atomic_store_explicit(&queue->full, false, memory_order_relaxed);
}

size_t helio_receive_queue_bytes(const helio_receive_queue *queue) {
    if (queue->kept) {
        return (size_t)helio_kept_queue_bytes(queue->kept);
    }
    return helio_ring_used(&queue->ring) +
           (size_t)atomic_load_explicit(&queue->outside_bytes, memory_order_acquire);
}

/* ---- application ---- */

static void add(_Atomic uint64_t *cell, uint64_t by) {
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + by,
                          memory_order_release);
}

/* Messages taken one after the other whose waits began at the same moment. */
typedef struct measured_run {
    helio_passage *passage;
    int64_t in_order_ns, submit_ns;
    uint64_t count;
} measured_run;

/* The application's moment: both clocks, read when they are first needed. */
static void record_run(helio_receive_queue *queue, const measured_run *run, helio_moment *now) {
    if (run->count == 0) {
        return;
    }
    if (now->now_ns == 0) {
        *now = (helio_moment){helio_monotonic_ns(), helio_wall_ns()};
    }
    /* In this order, so that either the engine sees it record or it sees what the engine set. */
    atomic_store_explicit(&queue->is_recording, true, memory_order_seq_cst);
    helio_hdr *waits = atomic_load_explicit(&run->passage->waits, memory_order_seq_cst);
    helio_hdr *ages = atomic_load_explicit(&run->passage->ages, memory_order_seq_cst);
    const int64_t waited_ns = now->now_ns - run->in_order_ns;
    helio_record(waits, waited_ns > 0 ? waited_ns : 0, run->count); /* two clocks, some ns apart */
    if (run->submit_ns) {
        helio_record(ages, now->wall_ns - run->submit_ns, run->count);
    }
    atomic_store_explicit(&queue->is_recording, false, memory_order_release);
}

/* A message that has a stamp was taken, and `data` is not set yet. */
static void note_stamp(helio_receive_queue *queue, measured_run *run, helio_message *message,
                       helio_passage *passage, helio_moment *now) {
    const int64_t in_order_ns = (int64_t)(uintptr_t)message->data;
    message->flags &= ~IS_STAMPED;
    if (passage != run->passage || in_order_ns != run->in_order_ns ||
        message->submit_ns != run->submit_ns) {
        record_run(queue, run, now);
        *run = (measured_run){passage, in_order_ns, message->submit_ns, 0};
    }
    run->count++;
}

static size_t take_kept(helio_receive_queue *queue, helio_message *messages, size_t limit) {
    measured_run run = {0};
    helio_moment now = {0};
    size_t taken = 0;
    helio_kept_message kept;
    helio_receive_queue_lock(queue);
    helio_kept_queue_expire(queue->kept, helio_monotonic_ns());
    helio_kept_queue_give_back(queue->kept);
    while (taken < limit && helio_kept_queue_take(queue->kept, &kept)) {
        const kept_head *head = kept.head;
        helio_message *message = &messages[taken++];
        *message = head->message;
        if (message->flags & IS_STAMPED) {
            note_stamp(queue, &run, message, head->passage, &now);
        }
        message->data = kept.data;
        add(&head->passage->taken_messages, 1);
        add(&head->passage->taken_bytes, footprint(kept.length));
    }
    helio_receive_queue_unlock(queue);
    record_run(queue, &run, &now);
    return taken;
}

/* Messages of one stream taken one after the other, and what they took in the queue. */
typedef struct taken_run {
    helio_passage *passage;
    uint64_t messages, bytes;
} taken_run;

static void count_run(const taken_run *run) {
    if (run->passage) {
        add(&run->passage->taken_messages, run->messages);
        add(&run->passage->taken_bytes, run->bytes);
    }
}

size_t helio_receive_queue_take(helio_receive_queue *queue, helio_message *messages, size_t limit) {
    if (queue->kept) {
        return take_kept(queue, messages, limit);
    }
    give_back(queue);
    measured_run run = {0};
    taken_run counted = {0};
    helio_moment now = {0};
    size_t taken = 0;
    queued_message *record;
    while (taken < limit && (record = helio_ring_next(&queue->ring))) {
        helio_message *message = &messages[taken++];
        *message = record->message;
        if (message->flags & IS_STAMPED) {
            note_stamp(queue, &run, message, record->passage, &now);
        }
        message->data = record->outside ? record->outside->data : (const void *)(record + 1);
        if (record->outside) {
            record->outside->next = queue->given;
            queue->given = record->outside;
        }
        if (record->passage != counted.passage) {
            count_run(&counted);
            counted = (taken_run){record->passage, 0, 0};
        }
        counted.messages++;
        counted.bytes += footprint(message->length);
    }
    count_run(&counted);
    record_run(queue, &run, &now);
    return taken;
}

bool helio_receive_queue_is_empty(helio_receive_queue *queue) {
    return queue->kept ? helio_kept_queue_messages(queue->kept) == 0
                       : helio_ring_peek(&queue->ring) == NULL;
}
