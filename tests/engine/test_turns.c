/* Many threads before full queues: whoever came first goes first, and all get their share. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

#include "ports.h"
#include "queue/submit_queue.h"

enum { THREADS = 8, LENGTH = 4000, MESSAGES = 12000 };

#define SECOND INT64_C(1000000000)

/* ---- turns ---- */

static void turns_come_in_the_order_they_were_asked_for(void) {
    helio_turns turns = {0};
    helio_turn a, b, c;
    CHECK(helio_turns_may_try(&turns));
    helio_turns_join(&turns, &a);
    helio_turns_join(&turns, &b);
    helio_turns_join(&turns, &c);
    CHECK(!helio_turns_may_try(&turns));
    CHECK(turns.first == &a);
    helio_turns_leave(&turns, &b, false); /* gives up */
    helio_turns_leave(&turns, &a, true);
    CHECK(turns.first == &c && turns.last == &c);
    CHECK(helio_turns_may_try(&turns)); /* by its pass */
    CHECK(!helio_turns_may_try(&turns));
    helio_turns_leave(&turns, &c, false);
    CHECK(helio_turns_is_empty(&turns));
    CHECK(helio_turns_may_try(&turns));
}

static void a_pass_is_for_one_queue(void) {
    helio_turns first = {0}, second = {0};
    helio_turn a, b, c;
    helio_turns_join(&first, &a);
    helio_turns_join(&second, &b);
    helio_turns_join(&first, &c);
    helio_turns_leave(&first, &a, true);
    CHECK(!helio_turns_may_try(&second));
    CHECK(helio_turns_may_try(&first));
    helio_turns_leave(&first, &c, false);
    helio_turns_leave(&second, &b, false);
}

/* ---- threads ---- */

typedef struct producer {
    helio_transmitter *transmitter;
    _Atomic int *left;        /* messages of all threads together */
    pthread_barrier_t *begin; /* all send from the same moment on */
    uint64_t sent;
    int error;
} producer;

static void *produce(void *context) {
    producer *self = context;
    static const char body[LENGTH];
    pthread_barrier_wait(self->begin);
    while (atomic_fetch_sub(self->left, 1) > 0) {
        int error;
        while ((error = helio_transmitter_send(self->transmitter, body, sizeof body)) ==
               HELIO_ERR_WOULD_BLOCK) {
            error = helio_transmitter_wait(self->transmitter, sizeof body, 20 * SECOND);
            if (error) {
                break;
            }
        }
        if (error) {
            self->error = error;
            return NULL;
        }
        self->sent++;
    }
    return NULL;
}

/* (sum x)^2 / (n sum x^2): 1 when all have the same, 1/n when one has all. */
static double jain(const producer *producers) {
    double sum = 0, squares = 0;
    for (int i = 0; i < THREADS; i++) {
        sum += (double)producers[i].sent;
        squares += (double)producers[i].sent * (double)producers[i].sent;
    }
    return sum * sum / (THREADS * squares);
}

static void share(bool is_one_transmitter, const char *options) {
    char endpoint[96];
    snprintf(endpoint, sizeof endpoint, "rmm://239.192.33.9:%u?interface=127.0.0.1&ttl=0",
             test_port(0));
    helio_instance *instance = NULL;
    CHECK_EQUAL(helio_instance_create("segment_bytes=4194304", &instance), 0);
    producer producers[THREADS];
    pthread_t threads[THREADS];
    _Atomic int left = MESSAGES;
    pthread_barrier_t begin;
    CHECK_EQUAL(pthread_barrier_init(&begin, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        char topic[16];
        snprintf(topic, sizeof topic, "T%d", i);
        producers[i] = (producer){.left = &left, .begin = &begin};
        if (i > 0 && is_one_transmitter) {
            producers[i].transmitter = producers[0].transmitter;
        } else {
            CHECK_EQUAL(helio_transmitter_create(instance, endpoint, topic, options,
                                                 &producers[i].transmitter),
                        0);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    uint64_t sent = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sent += producers[i].sent;
    }
    pthread_barrier_destroy(&begin);
    const double index = jain(producers);
    helio_instance_destroy(instance);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(producers[i].error, 0);
    }
    CHECK_EQUAL(sent, MESSAGES);
    printf("      Jain's index %.4f\n", index);
    if (index <= 0.99) {
        CHECK_FAIL("Jain's index is %f", index);
    }
}

static const char *const paced = "submit_queue=65536&linger=0&rate=40000000";

static void threads_of_one_transmitter_share_fairly(void) {
    share(true, paced);
}

static void threads_share_fairly_with_a_low_water(void) {
    share(true, "submit_queue=65536&linger=0&rate=40000000&low_water=0.5");
}

static void threads_share_fairly_where_messages_are_counted(void) {
    share(true, "submit_queue=65536&linger=0&rate=40000000&queue_messages=10&low_water=0.5");
}

static void transmitters_of_one_instance_share_fairly(void) {
    share(false, paced);
}

int main(void) {
    RUN(turns_come_in_the_order_they_were_asked_for);
    RUN(a_pass_is_for_one_queue);
    RUN(threads_of_one_transmitter_share_fairly);
    RUN(threads_share_fairly_with_a_low_water);
    RUN(threads_share_fairly_where_messages_are_counted);
    RUN(transmitters_of_one_instance_share_fairly);
    return check_result();
}
