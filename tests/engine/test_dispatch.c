/* The stages of a message's latency that are of the runtime: what it waits for the application,
 * whose own thread counts that, into histograms the engine opens and closes; and the system
 * call. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "counted.h"
#include "io/kernel_clock.h"
#include "ports.h"
#include "runtime/receiver.h"
#include "runtime/transmitter.h"

#define MS HELIO_MILLISECOND
#define WAIT_NS (20 * MS)

static helio_hdr *new_histogram(void) {
    helio_hdr *histogram = aligned_alloc(64, (sizeof *histogram + 63) / 64 * 64);
    memset(histogram, 0, sizeof *histogram);
    helio_hdr_init(histogram);
    return histogram;
}

static void the_wait_in_the_receive_queue_is_counted_when_the_application_takes(void) {
    helio_receive_queue queue;
    helio_hdr *waits = new_histogram(), *ages = new_histogram();
    static helio_passage passage;
    CHECK_EQUAL(helio_receive_queue_init(&queue, 65536), 0);
    passage = (helio_passage){0};
    helio_receive_queue_measure(&queue, &passage, waits, ages);
    const int64_t since_ns = helio_monotonic_ns() - 5 * MS;
    helio_message message = {.data = "hello",
                             .length = 5,
                             .submit_ns = helio_wall_ns() - 8 * MS,
                             .flags = HELIO_MESSAGE_RECOVERED};
    CHECK(helio_receive_queue_push(&queue, &message, &passage)); /* one that is not measured */
    for (int i = 0; i < 3; i++) {
        CHECK(helio_receive_queue_push_measured(&queue, &message, &passage, since_ns));
    }
    helio_message taken[8];
    CHECK_EQUAL(helio_receive_queue_take(&queue, taken, 8), 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(taken[i].flags, HELIO_MESSAGE_RECOVERED);
        CHECK_BYTES(taken[i].data, "hello", 5);
    }
    CHECK_EQUAL(count_of(waits), 3);
    CHECK_EQUAL(count_between(waits, 5 * MS, HELIO_HDR_HIGHEST), 3);
    CHECK_EQUAL(count_between(ages, 8 * MS, HELIO_HDR_HIGHEST), 3);
    CHECK(helio_receive_queue_push_measured(&queue, &message, &passage, since_ns));
    helio_receive_queue_measure(&queue, &passage, NULL, NULL); /* the stream has ended */
    CHECK_EQUAL(helio_receive_queue_take(&queue, taken, 8), 1);
    CHECK_EQUAL(taken[0].flags, HELIO_MESSAGE_RECOVERED);
    CHECK_EQUAL(count_of(waits), 3);
    helio_receive_queue_fini(&queue);
    free(waits);
    free(ages);
}

static void the_wait_in_a_kept_queue_is_counted_too(void) {
    helio_receive_queue queue;
    helio_hdr *waits = new_histogram();
    static helio_passage passage;
    const helio_kept_config config = {
        .policy = HELIO_KEPT_BLOCK, .bytes = 65536, .messages = 10, .priority_offset = -1};
    CHECK_EQUAL(helio_receive_queue_init_kept(&queue, &config), 0);
    passage = (helio_passage){0};
    helio_receive_queue_measure(&queue, &passage, waits, NULL);
    const int64_t since_ns = helio_monotonic_ns() - 5 * MS;
    helio_message message = {.data = "hello", .length = 5, .submit_ns = 1};
    helio_receive_queue_lock(&queue);
    CHECK(helio_receive_queue_push_kept(&queue, &message, &passage, since_ns, since_ns));
    CHECK(helio_receive_queue_push_kept(&queue, &message, &passage, 0, since_ns));
    helio_receive_queue_unlock(&queue);
    helio_message taken[8];
    CHECK_EQUAL(helio_receive_queue_take(&queue, taken, 8), 2);
    CHECK_EQUAL(taken[0].flags, 0);
    CHECK_BYTES(taken[0].data, "hello", 5);
    CHECK_EQUAL(count_between(waits, 5 * MS, HELIO_HDR_HIGHEST), 1);
    CHECK_EQUAL(count_of(waits), 1);
    helio_receive_queue_fini(&queue);
    free(waits);
}

/* The engine closes histograms while the application counts into them. */
typedef struct race {
    helio_receive_queue queue;
    helio_passage passage;
    _Atomic bool is_over;
} race;

static void *take_all(void *context) {
    race *self = context;
    helio_message taken[16];
    while (!atomic_load(&self->is_over)) {
        helio_receive_queue_take(&self->queue, taken, 16);
    }
    return NULL;
}

static void nobody_writes_to_a_histogram_that_was_closed(void) {
    static race self;
    helio_hdr *waits = new_histogram();
    helio_message message = {.data = "x", .length = 1, .submit_ns = 1};
    CHECK_EQUAL(helio_receive_queue_init(&self.queue, 65536), 0);
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, take_all, &self), 0);
    for (int i = 0; i < 2000; i++) {
        helio_receive_queue_measure(&self.queue, &self.passage, waits, NULL);
        for (int k = 0; k < 20; k++) {
            helio_receive_queue_push_measured(&self.queue, &message, &self.passage, 1 + k);
            if (helio_receive_queue_is_full(&self.queue)) {
                helio_receive_queue_resume(&self.queue);
            }
        }
        helio_receive_queue_measure(&self.queue, &self.passage, NULL, NULL);
        const uint64_t before = helio_cell(&waits->above) + helio_cell(&waits->sum);
        for (int k = 0; k < 10; k++) {
            CHECK_EQUAL(helio_cell(&waits->above) + helio_cell(&waits->sum), before);
        }
    }
    atomic_store(&self.is_over, true);
    pthread_join(thread, NULL);
    helio_receive_queue_fini(&self.queue);
    free(waits);
}

/* ---- the whole engine ---- */

static helio_driver slow_driver;
static int (*send_at_once)(helio_channel *channel, const void *packet, size_t length);

/* The packet is on its way, and the call does not come back. */
static int send_slowly(helio_channel *channel, const void *packet, size_t length) {
    const int result = send_at_once(channel, packet, length);
    const int64_t until_ns = helio_monotonic_ns() + WAIT_NS;
    while (helio_monotonic_ns() < until_ns) {
    }
    return result;
}

static uint64_t long_ones(helio_hdr *const *histograms, size_t which) {
    return count_between(histograms[which], WAIT_NS / 2, HELIO_HDR_HIGHEST);
}

/* One message with a long call behind it: whether send alone has seen that. */
static bool only_send_has_it(int port) {
    helio_instance *sending = NULL, *receiving = NULL;
    helio_transmitter *transmitter = NULL;
    helio_receiver *receiver = NULL;
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "rmm+unicast://127.0.0.1:%d", port);
    CHECK_EQUAL(helio_instance_create("mode=poll&level=3&stats=memory", &sending), 0);
    CHECK_EQUAL(helio_instance_create("idle=spin&level=3&stats=memory", &receiving), 0);
    CHECK_EQUAL(helio_receiver_create(receiving, endpoint, "t", NULL, NULL, &receiver), 0);
    CHECK_EQUAL(helio_transmitter_create(sending, endpoint, "t", "linger=0", &transmitter), 0);
    helio_message message;
    CHECK_EQUAL(helio_transmitter_send(transmitter, "x", 1), 0); /* whatever comes first is over */
    CHECK_EQUAL(helio_receiver_receive(receiver, &message, 1, HELIO_SECOND), 1);

    helio_channel *channel = transmitter->lane->base.channel;
    const helio_driver *driver = channel->driver;
    slow_driver = *driver;
    slow_driver.send_now = send_slowly;
    send_at_once = driver->send_now;
    channel->driver = &slow_driver;
    CHECK_EQUAL(helio_transmitter_send(transmitter, "x", 1), 0);
    channel->driver = driver;
    CHECK_EQUAL(helio_receiver_receive(receiver, &message, 1, HELIO_SECOND), 1);

    CHECK(helio_receiver_stream(receiver, 0) != NULL);
    helio_hdr *const *sent = helio_tx_topic_object(transmitter->topic)->histogram;
    helio_hdr *const *received = receiver->met.there.oldest->object->histogram;
    CHECK(long_ones(sent, HELIO_TRANSMITTER_SEND_LATENCY) >= 1);
    const uint64_t others = long_ones(sent, HELIO_TRANSMITTER_BATCH_LATENCY) +
                            long_ones(sent, HELIO_TRANSMITTER_PACE_LATENCY) +
                            long_ones(received, HELIO_RECEIVER_NETWORK_LATENCY) +
                            long_ones(received, HELIO_RECEIVER_SOCKET_LATENCY) +
                            long_ones(received, HELIO_RECEIVER_ORDER_LATENCY) +
                            long_ones(received, HELIO_RECEIVER_TOTAL_LATENCY);
    helio_instance_destroy(sending);
    helio_instance_destroy(receiving);
    return others == 0;
}

static void a_call_that_does_not_come_back_is_send_and_nothing_else(void) {
    bool is_clean = false;
    for (int i = 0; i < 20 && !is_clean; i++) { /* another program may take the core in between */
        is_clean = only_send_has_it(test_port((unsigned)i));
    }
    CHECK(is_clean);
}

int main(void) {
    RUN(a_call_that_does_not_come_back_is_send_and_nothing_else);
    RUN(the_wait_in_the_receive_queue_is_counted_when_the_application_takes);
    RUN(the_wait_in_a_kept_queue_is_counted_too);
    RUN(nobody_writes_to_a_histogram_that_was_closed);
    return check_result();
}
