/* The queues between the application and the engine: order, bounds, long messages, and two threads
 * at once. */
#include "check.h"

#include <pthread.h>
#include <sched.h>

#include "base/random.h"
#include "queue/losses.h"
#include "queue/receive_queue.h"
#include "queue/submit_queue.h"

enum { SMALLEST = 65536 };

/* ---- ring ---- */

static void records_of_any_length_come_out_as_they_went_in(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 1000), 0); /* becomes 1024 */
    CHECK_EQUAL(ring.capacity, 1024);
    unsigned written = 0;
    unsigned read = 0;
    while (read < 10000) {
        const size_t length = 4 + written * 7 % 200;
        uint32_t *record = helio_ring_reserve(&ring, length);
        if (record) {
            memset(record, (int)written, length);
            *record = written++;
            helio_ring_commit(&ring);
            continue;
        }
        CHECK(written > read); /* full, so there is something to take */
        for (int i = 0; i < 3 && (record = helio_ring_next(&ring)); i++, read++) {
            CHECK_EQUAL(*record, read);
        }
        helio_ring_release(&ring);
    }
    helio_ring_fini(&ring);
}

static void what_is_reserved_and_not_committed_never_was(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 1024), 0);
    CHECK(helio_ring_reserve(&ring, 100));
    CHECK(helio_ring_next(&ring) == NULL);
    CHECK_EQUAL(helio_ring_used(&ring), 0);
    helio_ring_fini(&ring);
}

static void a_taken_record_is_not_overwritten_before_it_is_released(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 1024), 0);
    uint32_t *first = helio_ring_reserve(&ring, 200);
    *first = 42;
    helio_ring_commit(&ring);
    const uint32_t *taken = helio_ring_next(&ring);
    for (uint32_t *more; (more = helio_ring_reserve(&ring, 200));) {
        *more = 1;
        helio_ring_commit(&ring);
    }
    CHECK_EQUAL(*taken, 42);
    helio_ring_fini(&ring);
}

/* Offset of a record in the memory. */
static size_t offset_of(const helio_ring *ring, const void *record) {
    return (size_t)((const uint8_t *)record - ring->memory);
}

static void a_ring_that_is_often_empty_uses_the_first_part_of_its_memory(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 4 << 20), 0);
    size_t furthest = 0;
    for (unsigned i = 0; i < 100000; i++) { /* 20 MB */
        uint32_t *record = helio_ring_reserve(&ring, 200);
        CHECK(record);
        furthest = offset_of(&ring, record) > furthest ? offset_of(&ring, record) : furthest;
        *record = i;
        helio_ring_commit(&ring);
        CHECK_EQUAL(*(uint32_t *)helio_ring_oldest(&ring), i);
        CHECK_EQUAL(*(uint32_t *)helio_ring_next(&ring), i);
        helio_ring_release(&ring);
        CHECK_EQUAL(helio_ring_used(&ring), 0);
    }
    CHECK(furthest <= HELIO_RING_REUSED_BYTES);
    helio_ring_fini(&ring);
}

/* Within a burst the ring is not empty: the first record of one must see that it was. */
static void a_ring_with_bursts_uses_the_first_part_of_its_memory(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 4 << 20), 0);
    size_t furthest = 0;
    for (unsigned burst = 0; burst < 500; burst++) { /* 29 MB */
        for (unsigned i = 0; i < 200; i++) {
            uint32_t *record = helio_ring_reserve(&ring, 290);
            CHECK(record);
            furthest = offset_of(&ring, record) > furthest ? offset_of(&ring, record) : furthest;
            helio_ring_commit(&ring);
        }
        while (helio_ring_next(&ring)) {
        }
        helio_ring_release(&ring);
    }
    CHECK(furthest < HELIO_RING_REUSED_BYTES + 200 * 304);
    helio_ring_fini(&ring);
}

static void a_ring_that_is_never_empty_uses_all_of_its_memory(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 1 << 20), 0);
    size_t furthest = 0;
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t *record = helio_ring_reserve(&ring, 200);
        CHECK(record);
        furthest = offset_of(&ring, record) > furthest ? offset_of(&ring, record) : furthest;
        *record = i;
        helio_ring_commit(&ring);
        if (i > 0) { /* one stays */
            CHECK_EQUAL(*(uint32_t *)helio_ring_next(&ring), i - 1);
            helio_ring_release(&ring);
        }
    }
    CHECK(furthest > (1 << 20) - 512);
    helio_ring_fini(&ring);
}

/* Random runs of records in and out, with empty moments at any position. */
static void a_ring_that_begins_again_loses_and_changes_nothing(void) {
    helio_random random;
    helio_random_init(&random, 7);
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 512 * 1024), 0);
    unsigned written = 0, read = 0, beginnings = 0;
    uint64_t origin = 0;
    while (read < 200000) {
        for (uint64_t most = helio_random_below(&random, 200); most > 0; most--) {
            uint32_t *record = helio_ring_reserve(&ring, 8 + helio_random_below(&random, 3000));
            if (!record) {
                break;
            }
            *record = written++;
            helio_ring_commit(&ring);
        }
        beginnings += ring.origin != origin;
        origin = ring.origin;
        const uint32_t *record;
        for (uint64_t most = helio_random_below(&random, 300);
             most > 0 && (record = helio_ring_next(&ring)); most--) {
            CHECK_EQUAL(*record, read);
            read++;
        }
        if (helio_random_below(&random, 2)) {
            helio_ring_release(&ring);
        }
    }
    CHECK(beginnings > 100);
    helio_ring_fini(&ring);
}

enum { BURSTS = 20000, BURST = 40 };

/* NULL: the records came in order. */
static void *read_bursts(void *argument) {
    helio_ring *ring = argument;
    void *outcome = NULL;
    for (unsigned read = 0; read < BURSTS * BURST;) {
        const uint32_t *record = helio_ring_next(ring);
        if (!record) {
            helio_ring_release(ring);
            sched_yield();
        } else if (*record != read++) {
            outcome = argument;
        }
    }
    return outcome;
}

static void a_ring_begins_again_while_another_thread_reads_it(void) {
    helio_ring ring;
    CHECK_EQUAL(helio_ring_init(&ring, 1 << 20), 0);
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, read_bursts, &ring), 0);
    unsigned written = 0, beginnings = 0;
    uint64_t origin = 0;
    while (written < BURSTS * BURST) {
        uint32_t *record = helio_ring_reserve(&ring, 100);
        if (!record) {
            sched_yield();
            continue;
        }
        *record = written++;
        helio_ring_commit(&ring);
        beginnings += ring.origin != origin;
        origin = ring.origin;
        if (written % BURST == 0) {
            sched_yield();
        }
    }
    void *outcome = &ring;
    pthread_join(thread, &outcome);
    CHECK(outcome == NULL);
    CHECK(beginnings > 0);
    helio_ring_fini(&ring);
}

/* ---- submit queue ---- */

static void a_full_queue_refuses_and_counts_it(void) {
    helio_submit_queue queue;
    CHECK_EQUAL(helio_submit_queue_init(&queue, SMALLEST), 0);
    char body[1000] = "x";
    int taken = 0;
    while (helio_submit_queue_push(&queue, body, sizeof body, taken, 0) == 0) {
        taken++;
    }
    CHECK(taken > 50 && taken < 66);
    CHECK(!helio_submit_queue_has_room(&queue, sizeof body));
    CHECK_EQUAL(helio_submit_queue_push(&queue, body, sizeof body, 0, 0), HELIO_ERR_WOULD_BLOCK);
    CHECK_EQUAL(queue.refused, 2);
    helio_submitted message;
    for (int i = 0; i < taken; i++) {
        CHECK(helio_submit_queue_peek(&queue, &message));
        CHECK_EQUAL(message.submit_ns, i);
        CHECK_EQUAL(message.length, sizeof body);
        helio_submit_queue_drop(&queue);
    }
    CHECK(!helio_submit_queue_peek(&queue, &message));
    helio_submit_queue_release(&queue);
    CHECK(helio_submit_queue_has_room(&queue, sizeof body));
    CHECK_EQUAL(helio_submit_queue_bytes(&queue), 0);
    helio_submit_queue_fini(&queue);
}

static void a_message_longer_than_the_queue_passes_alone(void) {
    helio_submit_queue queue;
    CHECK_EQUAL(helio_submit_queue_init(&queue, SMALLEST), 0);
    const size_t length = 3 * SMALLEST;
    uint8_t *body = malloc(length);
    memset(body, 7, length);
    CHECK_EQUAL(helio_submit_queue_push(&queue, body, length, 1, 0), 0);
    CHECK_EQUAL(helio_submit_queue_push(&queue, body, length, 2, 0), HELIO_ERR_WOULD_BLOCK);
    CHECK_EQUAL(helio_submit_queue_push(&queue, body, 10, 3, 0),
                0); /* short ones still fit behind it */
    helio_submitted message;
    CHECK(helio_submit_queue_peek(&queue, &message));
    CHECK_EQUAL(message.length, length);
    CHECK_BYTES(message.data, body, length);
    helio_submit_queue_drop(&queue);
    helio_submit_queue_release(&queue);
    CHECK_EQUAL(helio_submit_queue_push(&queue, body, length, 4, 0), 0);
    free(body);
    helio_submit_queue_fini(&queue); /* frees what was never taken */
}

static void empty_messages_are_messages(void) {
    helio_submit_queue queue;
    CHECK_EQUAL(helio_submit_queue_init(&queue, SMALLEST), 0);
    CHECK_EQUAL(helio_submit_queue_push(&queue, NULL, 0, 5, 0), 0);
    helio_submitted message;
    CHECK(helio_submit_queue_peek(&queue, &message));
    CHECK_EQUAL(message.length, 0);
    helio_submit_queue_fini(&queue);
}

/* A message of random length: empty, short, or too long for the ring. */
static helio_buffer random_message(helio_random *random, uint8_t *body) {
    const uint64_t kind = helio_random_below(random, 40);
    const size_t length = kind == 0   ? 0
                          : kind == 1 ? SMALLEST / 4 + helio_random_below(random, 100)
                                      : helio_random_below(random, 120);
    for (size_t i = 0; i < length && i < 120; i++) {
        body[i] = (uint8_t)helio_random_next(random);
    }
    return (helio_buffer){body, length};
}

/* The next message of either queue is the same. */
static void take_from_both(helio_submit_queue *alone, helio_submit_queue *in_runs,
                           const helio_buffer *shown) {
    helio_submitted expected, message;
    CHECK(helio_submit_queue_peek(alone, &expected));
    if (shown) {
        CHECK_EQUAL(expected.length, shown->length);
        CHECK_BYTES(shown->data, expected.data, expected.length);
        CHECK_EQUAL(expected.intended_ns, 0);
    } else {
        CHECK(helio_submit_queue_peek(in_runs, &message));
        CHECK_EQUAL(message.length, expected.length);
        CHECK_EQUAL(message.submit_ns, expected.submit_ns);
        CHECK_EQUAL(message.intended_ns, expected.intended_ns);
        CHECK_BYTES(message.data, expected.data, expected.length);
        helio_submit_queue_drop(in_runs);
    }
    helio_submit_queue_drop(alone);
}

/* Takes one message, and of the run behind it a random part. */
static void take_some(helio_submit_queue *alone, helio_submit_queue *in_runs,
                      helio_random *random) {
    enum { LIMIT = 16, EACH = 2, ROOM = 700 };
    helio_submitted first;
    helio_buffer shown[LIMIT];
    if (!helio_submit_queue_peek(in_runs, &first)) {
        return;
    }
    take_from_both(alone, in_runs, NULL);
    const helio_submit_run run = {first.submit_ns, first.submit_ns + 3, ROOM, EACH, LIMIT};
    const size_t count = helio_submit_queue_peek_run(in_runs, &run, shown);
    const size_t taken = count ? helio_random_below(random, count + 1) : 0;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += shown[i].length + EACH;
    }
    CHECK(count <= LIMIT && bytes <= ROOM);
    for (size_t i = 0; i < taken; i++) {
        take_from_both(alone, in_runs, &shown[i]);
    }
    helio_submit_queue_drop_run(in_runs, taken);
}

static void lists_and_runs_are_their_messages(void) {
    static uint8_t bodies[SMALLEST];
    enum { LIST = 8, MOST_BYTES = 110, STEPS = 20000 };
    helio_submit_queue alone, in_runs;
    helio_random random;
    helio_random_init(&random, 7);
    CHECK_EQUAL(helio_submit_queue_init(&alone, SMALLEST), 0);
    CHECK_EQUAL(helio_submit_queue_init(&in_runs, SMALLEST), 0);
    unsigned ordinary = 0, refused = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        helio_buffer list[LIST];
        for (size_t i = 0; i < LIST; i++) {
            list[i] = random_message(&random, bodies + i * 128);
        }
        const size_t pushed =
            helio_submit_queue_push_ordinary(&in_runs, list, LIST, MOST_BYTES, step);
        ordinary += (unsigned)pushed;
        for (size_t i = 0; i < LIST; i++) {
            const int64_t intended_ns = i < pushed ? 0 : (int64_t)helio_random_below(&random, 2);
            const int error =
                helio_submit_queue_push(&alone, list[i].data, list[i].length, step, intended_ns);
            if (i < pushed) {
                CHECK_EQUAL(error, 0);
            } else {
                CHECK_EQUAL(helio_submit_queue_push(&in_runs, list[i].data, list[i].length, step,
                                                    intended_ns),
                            error);
                refused += error != 0;
            }
        }
        const uint64_t turns = helio_random_below(&random, step / 100 % 2 ? 12 : 4);
        for (uint64_t i = 0; i < turns; i++) {
            take_some(&alone, &in_runs, &random);
        }
        helio_submitted next; /* a look skips what is unused at the end of the ring */
        CHECK_EQUAL(helio_submit_queue_peek(&alone, &next),
                    helio_submit_queue_peek(&in_runs, &next));
        helio_submit_queue_release(&alone);
        helio_submit_queue_release(&in_runs);
        CHECK_EQUAL(helio_submit_queue_bytes(&in_runs), helio_submit_queue_bytes(&alone));
    }
    CHECK(ordinary > STEPS && refused > 0);
    helio_submit_queue_fini(&alone);
    helio_submit_queue_fini(&in_runs);
}

enum { PER_PRODUCER = 20000, PRODUCERS = 2 };

typedef struct producer {
    helio_submit_queue *queue;
    uint32_t number;
} producer;

static void *produce(void *context) {
    const producer *self = context;
    for (uint32_t i = 0; i < PER_PRODUCER;) {
        const uint32_t body[2] = {self->number, i};
        helio_submit_queue_lock(self->queue);
        const int error = helio_submit_queue_push(self->queue, body, sizeof body, 0, 0);
        helio_submit_queue_unlock(self->queue);
        if (error) {
            sched_yield();
        } else {
            i++;
        }
    }
    return NULL;
}

static void each_producers_messages_stay_in_order(void) {
    helio_submit_queue queue;
    CHECK_EQUAL(helio_submit_queue_init(&queue, SMALLEST), 0);
    producer producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (producer){&queue, i};
        CHECK_EQUAL(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    uint32_t next[PRODUCERS] = {0};
    bool in_order = true;
    for (int left = PER_PRODUCER * PRODUCERS; left > 0;) {
        helio_submitted message;
        if (!helio_submit_queue_peek(&queue, &message)) {
            helio_submit_queue_release(&queue);
            sched_yield();
            continue;
        }
        uint32_t body[2];
        memcpy(body, message.data, sizeof body);
        in_order = in_order && body[0] < PRODUCERS && body[1] == next[body[0]]++;
        helio_submit_queue_drop(&queue);
        left--;
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
    }
    helio_submit_queue_fini(&queue);
    CHECK(in_order);
}

/* ---- receive queue ---- */

static bool push(helio_receive_queue *queue, helio_passage *passage, uint64_t number,
                 const void *data, size_t length) {
    const helio_message message = {.data = data, .length = length, .number = number};
    return helio_receive_queue_push(queue, &message, passage);
}

static void a_full_receive_queue_waits_until_it_is_half_empty(void) {
    helio_receive_queue queue;
    helio_passage passage = {0};
    CHECK_EQUAL(helio_receive_queue_init(&queue, SMALLEST), 0);
    char body[1000] = "x";
    uint64_t count = 0;
    while (push(&queue, &passage, count, body, sizeof body)) {
        count++;
    }
    CHECK(helio_receive_queue_is_full(&queue));
    CHECK(!helio_receive_queue_is_low(&queue));
    helio_message messages[8];
    uint64_t next = 0;
    while (!helio_receive_queue_is_low(&queue)) {
        const size_t taken = helio_receive_queue_take(&queue, messages, 8);
        CHECK(taken > 0);
        for (size_t i = 0; i < taken; i++) {
            CHECK_EQUAL(messages[i].number, next++);
        }
    }
    CHECK(next > count / 3 && next < count);
    CHECK_EQUAL(passage.pushed_messages, count);
    CHECK_EQUAL(passage.taken_messages, next);
    helio_receive_queue_resume(&queue);
    CHECK(!helio_receive_queue_is_full(&queue));
    CHECK(push(&queue, &passage, count, body, sizeof body));
    helio_receive_queue_fini(&queue);
}

static void long_messages_are_given_back_with_the_next_take(void) {
    helio_receive_queue queue;
    helio_passage passage = {0};
    CHECK_EQUAL(helio_receive_queue_init(&queue, SMALLEST), 0);
    const size_t length = 2 * SMALLEST;
    uint8_t *body = malloc(length);
    memset(body, 9, length);
    CHECK(push(&queue, &passage, 0, body, length));
    CHECK(!push(&queue, &passage, 1, body, length));
    helio_message message;
    CHECK_EQUAL(helio_receive_queue_take(&queue, &message, 1), 1);
    CHECK_EQUAL(message.length, length);
    CHECK_BYTES(message.data, body, length);
    CHECK(helio_receive_queue_bytes(&queue) >= length); /* still the application's */
    CHECK_EQUAL(helio_receive_queue_take(&queue, &message, 1), 0);
    CHECK_EQUAL(helio_receive_queue_bytes(&queue), 0);
    CHECK(push(&queue, &passage, 1, body, length));
    free(body);
    helio_receive_queue_fini(&queue); /* frees what was never taken */
}

static void *consume(void *context) {
    helio_receive_queue *queue = context;
    helio_message messages[64];
    for (uint64_t next = 0; next < PER_PRODUCER;) {
        const size_t taken = helio_receive_queue_take(queue, messages, 64);
        for (size_t i = 0; i < taken; i++, next++) {
            if (messages[i].number != next || memcmp(messages[i].data, &next, sizeof next) != 0) {
                return queue; /* anything but NULL: out of order */
            }
        }
        if (!taken && helio_receive_queue_is_empty(queue)) {
            const uint32_t seen = helio_signal_prepare(&queue->news);
            if (helio_receive_queue_is_empty(queue)) {
                helio_signal_wait(&queue->news, seen, INT64_MAX);
            } else {
                helio_signal_cancel(&queue->news);
            }
        }
    }
    return NULL;
}

static void a_sleeping_consumer_is_woken_and_misses_nothing(void) {
    helio_receive_queue queue;
    helio_passage passage = {0};
    CHECK_EQUAL(helio_receive_queue_init(&queue, SMALLEST), 0);
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, consume, &queue), 0);
    for (uint64_t number = 0; number < PER_PRODUCER;) {
        if (push(&queue, &passage, number, &number, sizeof number)) {
            number++;
        } else {
            sched_yield();
        }
        helio_signal_notify(&queue.news);
    }
    void *outcome = &queue;
    pthread_join(thread, &outcome);
    helio_receive_queue_fini(&queue);
    CHECK(outcome == NULL);
}

/* ---- losses ---- */

static void losses_come_oldest_first_and_the_oldest_is_forgotten_at_the_limit(void) {
    helio_losses losses = {0};
    helio_loss loss;
    CHECK(!helio_losses_pop(&losses, &loss));
    for (uint64_t i = 0; i < HELIO_LOSSES_MAX + 3; i++) {
        helio_losses_push(&losses, &(helio_loss){.first = i, .count = 1});
    }
    for (uint64_t i = 3; i < HELIO_LOSSES_MAX + 3; i++) {
        CHECK(helio_losses_pop(&losses, &loss));
        CHECK_EQUAL(loss.first, i);
    }
    CHECK(!helio_losses_pop(&losses, &loss));
    helio_losses_fini(&losses);
}

int main(void) {
    RUN(records_of_any_length_come_out_as_they_went_in);
    RUN(what_is_reserved_and_not_committed_never_was);
    RUN(a_taken_record_is_not_overwritten_before_it_is_released);
    RUN(a_ring_that_is_often_empty_uses_the_first_part_of_its_memory);
    RUN(a_ring_with_bursts_uses_the_first_part_of_its_memory);
    RUN(a_ring_that_is_never_empty_uses_all_of_its_memory);
    RUN(a_ring_that_begins_again_loses_and_changes_nothing);
    RUN(a_ring_begins_again_while_another_thread_reads_it);
    RUN(a_full_queue_refuses_and_counts_it);
    RUN(a_message_longer_than_the_queue_passes_alone);
    RUN(empty_messages_are_messages);
    RUN(lists_and_runs_are_their_messages);
    RUN(each_producers_messages_stay_in_order);
    RUN(a_full_receive_queue_waits_until_it_is_half_empty);
    RUN(long_messages_are_given_back_with_the_next_take);
    RUN(a_sleeping_consumer_is_woken_and_misses_nothing);
    RUN(losses_come_oldest_first_and_the_oldest_is_forgotten_at_the_limit);
    return check_result();
}
