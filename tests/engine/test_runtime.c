/* The whole engine through its public API, over loopback: both modes, with and without loss, and
 * what is left behind. */
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

#include "ports.h"

enum { SECOND = 1000000000 };

static char folder[64];

static const char *group(int n) {
    static char text[96];
    snprintf(text, sizeof text, "rmm://239.192.33.2:%u?interface=127.0.0.1&ttl=0", test_port(n));
    return text;
}

/* What the process holds: descriptors, threads, segments. */
static int entries(const char *path) {
    DIR *directory = opendir(path);
    int count = 0;
    while (directory && readdir(directory)) {
        count++;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

/* The threads of the process.  A thread that was joined may stay in the list for a moment, so the
 * lowest number within a time counts, or the wanted number as soon as it is there. */
static int threads_now(int wanted, int milliseconds) {
    int lowest = entries("/proc/self/task");
    for (int i = 0; i < milliseconds && lowest > wanted; i++) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        const int now = entries("/proc/self/task");
        lowest = now < lowest ? now : lowest;
    }
    return lowest;
}

static helio_instance *instance_of(const char *mode, const char *more) {
    char options[256];
    snprintf(options, sizeof options, "mode=%s&idle=yield&segment_bytes=4194304&flight_keep=0&%s",
             mode, more);
    helio_instance *instance = NULL;
    if (helio_instance_create(options, &instance) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return instance;
}

static helio_transmitter *transmitter_of(helio_instance *instance, const char *endpoint,
                                         const char *topic) {
    helio_transmitter *transmitter = NULL;
    if (helio_transmitter_create(instance, endpoint, topic, "linger=0.05", &transmitter) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return transmitter;
}

static helio_receiver *receiver_of(helio_instance *instance, const char *endpoint,
                                   const char *topic, const char *options,
                                   const helio_listener *listener) {
    helio_receiver *receiver = NULL;
    if (helio_receiver_create(instance, endpoint, topic, options, listener, &receiver) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return receiver;
}

/* Receives and checks until `*next` reaches `until`; false when nothing came for five seconds. */
static int receive_some(helio_receiver *receiver, uint64_t *next, size_t length,
                        int64_t timeout_ns) {
    helio_message messages[64];
    const int count = helio_receiver_receive(receiver, messages, 64, timeout_ns);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++, (*next)++) {
        CHECK_EQUAL(messages[i].number, *next);
        CHECK_EQUAL(messages[i].length, length);
        CHECK(memcmp(messages[i].data, next, sizeof *next) == 0);
        CHECK(messages[i].submit_ns <= messages[i].receive_ns);
    }
    return count;
}

static void send_and_receive(const char *mode, const char *endpoint, const char *loss,
                             uint64_t total, size_t length) {
    helio_instance *instance = instance_of(mode, "");
    helio_receiver *receiver = receiver_of(instance, endpoint, "A", loss, NULL);
    helio_transmitter *transmitter = transmitter_of(instance, endpoint, "A");
    uint8_t *body = calloc(1, length);
    uint64_t sent = 0;
    uint64_t next = 0;
    while (next < total) {
        while (sent < total && sent - next < 2000) {
            memcpy(body, &sent, sizeof sent);
            if (helio_transmitter_send(transmitter, body, length) < 0) {
                break;
            }
            sent++;
        }
        if (!receive_some(receiver, &next, length, 5LL * SECOND)) {
            CHECK_FAIL("nothing came for 5 s after message %" PRIu64 " of %" PRIu64, next, sent);
        }
    }
    free(body);
    helio_loss lost;
    CHECK_EQUAL(helio_receiver_loss(receiver, &lost), 0);
    CHECK(strcmp(helio_receiver_stream(receiver, 0), helio_transmitter_stream(transmitter)) == 0);
    CHECK(helio_receiver_stream(receiver, 1) == NULL);
    helio_instance_destroy(instance); /* closes what is open */
}

static void messages_cross_a_group_in_mode_thread(void) {
    send_and_receive("thread", group(0), NULL, 20000, 100);
}

static void messages_cross_a_group_in_mode_poll(void) {
    send_and_receive("poll", group(1), NULL, 20000, 100);
}

static void lost_packets_are_recovered_in_mode_thread(void) {
    send_and_receive("thread", group(2), "inject_loss=0.1&nak_deadline=30", 20000, 100);
}

static void lost_packets_are_recovered_in_mode_poll(void) {
    send_and_receive("poll", group(3), "inject_loss=0.1&nak_deadline=30", 20000, 100);
}

/* In mode poll messages are shown where the driver put them; they must stay there. */
static void what_was_received_stays_until_the_next_receive(void) {
    enum { COUNT = 300, LENGTH = 100, LIMIT = 7 };
    helio_instance *instance = instance_of("poll", "");
    helio_receiver *receiver =
        receiver_of(instance, group(7), "A", "inject_loss=0.05&nak_deadline=30", NULL);
    helio_transmitter *transmitter = transmitter_of(instance, group(7), "A");
    static uint8_t bodies[COUNT][LENGTH];
    helio_buffer buffers[COUNT];
    uint64_t sent = 0;
    uint64_t next = 0;
    helio_message messages[LIMIT];
    while (next < 20 * COUNT) {
        for (int i = 0; sent < 20 * COUNT && sent - next < COUNT && i < COUNT; i++, sent++) {
            memcpy(bodies[i], &sent, sizeof sent);
            buffers[i] = (helio_buffer){bodies[i], LENGTH};
            CHECK_EQUAL(helio_transmitter_send_many(transmitter, &buffers[i], 1, NULL), 0);
        }
        const int count = helio_receiver_receive(receiver, messages, LIMIT, 5LL * SECOND);
        CHECK(count > 0 && count <= LIMIT);
        for (int i = 0; i < 3; i++) { /* new packets arrive meanwhile */
            CHECK(helio_instance_poll(instance) >= 0);
        }
        for (int i = 0; i < count; i++, next++) {
            CHECK_EQUAL(messages[i].number, next);
            CHECK(memcmp(messages[i].data, &next, sizeof next) == 0);
        }
    }
    helio_instance_destroy(instance);
}

static void long_messages_are_cut_and_put_together_again(void) {
    send_and_receive("thread", group(4), "inject_loss=0.02&nak_deadline=30", 200, 100000);
}

/* Its packets are many times what sockets and history hold: they are read while it is being cut. */
static void an_instance_reads_while_it_sends_a_long_message(void) {
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "%s&send_window=1024&socket_buffer=65536", group(14));
    send_and_receive("thread", endpoint, "inject_loss=0.02&nak_deadline=30", 1, 4000000);
    send_and_receive("poll", endpoint, "inject_loss=0.02&nak_deadline=30", 1, 4000000);
}

static void a_message_longer_than_both_queues_arrives(void) {
    char endpoint[96];
    snprintf(endpoint, sizeof endpoint, "%s&submit_queue=65536&receive_queue=65536", group(5));
    send_and_receive("thread", endpoint, NULL, 5, 1000000);
}

static void messages_cross_unicast(void) {
    char endpoint[96];
    snprintf(endpoint, sizeof endpoint, "rmm+unicast://127.0.0.1:%u", test_port(6));
    send_and_receive("thread", endpoint, "inject_loss=0.05&nak_deadline=30", 5000, 100);
    send_and_receive("poll", endpoint, NULL, 5000, 100);
}

static void the_engine_sleeps_and_wakes_in_idle_block(void) {
    helio_instance *instance = NULL;
    CHECK_EQUAL(helio_instance_create("idle=block&stats=memory", &instance), 0);
    CHECK(strcmp(helio_instance_segment(instance), "") == 0);
    helio_receiver *receiver = receiver_of(instance, group(7), "A", NULL, NULL);
    helio_transmitter *transmitter = transmitter_of(instance, group(7), "A");
    uint64_t next = 0;
    for (uint64_t i = 0; i < 200; i++) {
        CHECK_EQUAL(helio_transmitter_send(transmitter, &i, sizeof i), 0);
        CHECK_EQUAL(helio_transmitter_flush(transmitter, 5LL * SECOND), 0);
        while (next <= i) {
            CHECK(receive_some(receiver, &next, sizeof i, 5LL * SECOND) > 0);
        }
    }
    helio_instance_destroy(instance);
}

typedef struct heard {
    _Atomic uint64_t messages;
    _Atomic int state_error;
    helio_instance *instance;
    helio_transmitter *echo;
} heard;

static void count_messages(void *context, const helio_message *messages, size_t count) {
    heard *self = context;
    if (self->echo) {
        for (size_t i = 0; i < count; i++) {
            helio_transmitter_send(self->echo, messages[i].data, messages[i].length);
        }
    }
    helio_transmitter *refused = NULL;
    self->state_error = helio_transmitter_create(self->instance, group(8), "X", NULL, &refused);
    self->messages += count;
}

static void a_listener_may_send_and_may_not_create(const char *mode) {
    heard self = {.instance = instance_of(mode, "")};
    helio_receiver *replies = receiver_of(self.instance, group(8), "reply", NULL, NULL);
    self.echo = transmitter_of(self.instance, group(8), "reply");
    const helio_listener listener = {.on_messages = count_messages, .context = &self};
    helio_receiver *receiver = receiver_of(self.instance, group(8), "ask", NULL, &listener);
    helio_transmitter *transmitter = transmitter_of(self.instance, group(8), "ask");
    uint64_t next = 0;
    for (uint64_t i = 0; i < 500; i++) {
        CHECK_EQUAL(helio_transmitter_send(transmitter, &i, sizeof i), 0);
        while (next <= i) {
            CHECK(receive_some(replies, &next, sizeof i, 5LL * SECOND) > 0);
        }
    }
    helio_message message;
    CHECK_EQUAL(helio_receiver_receive(receiver, &message, 1, 0), HELIO_ERR_STATE);
    CHECK_EQUAL(self.state_error, HELIO_ERR_STATE);
    CHECK_EQUAL(self.messages, 500);
    CHECK(strcmp(helio_transmitter_stream(transmitter), helio_transmitter_stream(self.echo)) == 0);
    helio_instance_destroy(self.instance);
}

static void a_listener_replies_in_mode_thread(void) {
    a_listener_may_send_and_may_not_create("thread");
}

static void a_listener_replies_in_mode_poll(void) {
    a_listener_may_send_and_may_not_create("poll");
}

static void a_slow_application_stops_delivery_and_loses_nothing(void) {
    helio_instance *instance = instance_of("thread", "");
    helio_receiver *receiver = receiver_of(instance, group(9), "A", "receive_queue=65536", NULL);
    helio_transmitter *transmitter = transmitter_of(instance, group(9), "A");
    uint8_t body[1000] = {0};
    const uint64_t total = 1000; /* fifteen times what the queue holds */
    for (uint64_t sent = 0; sent < total; sent++) {
        memcpy(body, &sent, sizeof sent);
        CHECK_EQUAL(helio_transmitter_send(transmitter, body, sizeof body), 0);
    }
    CHECK_EQUAL(helio_transmitter_flush(transmitter, 5LL * SECOND), 0);
    uint64_t next = 0;
    while (next < total) {
        CHECK(receive_some(receiver, &next, sizeof body, 5LL * SECOND) > 0);
    }
    helio_instance_destroy(instance);
}

typedef struct sender {
    helio_transmitter *transmitter;
    int outcome;
} sender;

static void *send_from_thread(void *context) {
    sender *self = context;
    for (int i = 0; i < 5000 && self->outcome == 0; i++) {
        int error;
        while ((error = helio_transmitter_send(self->transmitter, "x", 1)) ==
               HELIO_ERR_WOULD_BLOCK) {
            error = helio_transmitter_wait(self->transmitter, 1, 5LL * SECOND);
        }
        self->outcome = error;
    }
    return NULL;
}

static void any_thread_may_send(void) {
    helio_instance *instance = instance_of("thread", "");
    helio_receiver *receiver = receiver_of(instance, group(10), "A", NULL, NULL);
    helio_transmitter *transmitter = NULL;
    CHECK_EQUAL(helio_transmitter_create(instance, group(10), "A", "submit_queue=65536&linger=0",
                                         &transmitter),
                0);
    sender senders[2] = {{transmitter, 0}, {transmitter, 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, send_from_thread, &senders[i]), 0);
    }
    helio_message messages[64];
    int received = 0;
    int count;
    while (received < 10000 &&
           (count = helio_receiver_receive(receiver, messages, 64, 5LL * SECOND)) > 0) {
        received += count;
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQUAL(senders[i].outcome, 0);
    }
    CHECK_EQUAL(received, 10000);
    helio_instance_destroy(instance);
}

static void equal_options_share_a_stream_and_others_do_not(void) {
    helio_instance *instance = instance_of("thread", "");
    helio_transmitter *a = transmitter_of(instance, group(11), "A");
    helio_transmitter *b = transmitter_of(instance, group(11), "B");
    helio_transmitter *c = NULL;
    CHECK_EQUAL(helio_transmitter_create(instance, group(11), "C", "linger=0&send_window=64", &c),
                0);
    CHECK(strcmp(helio_transmitter_stream(a), helio_transmitter_stream(b)) == 0);
    CHECK(strcmp(helio_transmitter_stream(a), helio_transmitter_stream(c)) != 0);
    helio_transmitter_destroy(a);
    CHECK_EQUAL(helio_transmitter_send(b, "x", 1), 0);
    helio_instance_destroy(instance);
}

static void refused(int error, int expected, const char *sentence_part) {
    CHECK_EQUAL(error, expected);
    if (!strstr(helio_error_text(), sentence_part)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", helio_error_text(), sentence_part);
    }
}

static void refusals_have_a_code_and_a_sentence(void) {
    helio_instance *instance = NULL;
    refused(helio_instance_create("mode=fast", &instance), HELIO_ERR_OPTION, "thread,poll");
    refused(helio_instance_create("cpu=4000", &instance), HELIO_ERR_OPTION,
            "core 4000 is not available");
    refused(helio_instance_create("segment_dir=/proc/nowhere", &instance), HELIO_ERR_SEGMENT,
            "/proc/nowhere");
    instance = instance_of("thread", "");
    refused(helio_instance_poll(instance), HELIO_ERR_STATE, "mode=poll");
    helio_transmitter *transmitter = NULL;
    helio_receiver *receiver = NULL;
    refused(helio_transmitter_create(instance, "rmm://x", "A", NULL, &transmitter),
            HELIO_ERR_ENDPOINT, "rmm://x");
    refused(helio_transmitter_create(instance, group(12), "", NULL, &transmitter), HELIO_ERR_TOPIC,
            "1 to 255 bytes");
    refused(helio_transmitter_create(instance, group(12), "A", "ttl=-1", &transmitter),
            HELIO_ERR_OPTION, "ttl");
    refused(helio_receiver_create(instance, group(12), "A", "interface=nosuch0", NULL, &receiver),
            HELIO_ERR_OPTION, "nosuch0");
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "rmm+unicast://127.0.0.1:%u", test_port(12));
    receiver = receiver_of(instance, endpoint, "A", NULL, NULL);
    helio_receiver *second = NULL;
    refused(helio_receiver_create(instance, endpoint, "A", "receive_window=32", NULL, &second),
            HELIO_ERR_ADDRESS, "is in use");
    transmitter = transmitter_of(instance, endpoint, "A");
    CHECK_EQUAL(
        helio_transmitter_create(instance, endpoint, "A", "max_message_bytes=10", &transmitter), 0);
    refused(helio_transmitter_send(transmitter, "01234567890", 11), HELIO_ERR_SIZE,
            "max_message_bytes=10");
    refused(helio_transmitter_wait(transmitter, 11, 0), HELIO_ERR_SIZE, "11 bytes");
    helio_instance_destroy(instance);
    CHECK(strcmp(helio_error_name(HELIO_ERR_TOPIC), "HELIO_ERR_TOPIC") == 0);
}

static void a_lossy_transfer_can_be_abandoned_at_any_moment(const char *mode) {
    for (int messages = 0; messages < 3000; messages = messages * 3 + 1) {
        helio_instance *instance = instance_of(mode, "");
        helio_receiver *receiver =
            receiver_of(instance, group(13), "A", "inject_loss=0.3&nak_deadline=30", NULL);
        helio_transmitter *transmitter = transmitter_of(instance, group(13), "A");
        for (int i = 0; i < messages; i++) {
            CHECK_EQUAL(helio_transmitter_send(transmitter, "x", 1), 0);
        }
        helio_message some[16];
        CHECK(helio_receiver_receive(receiver, some, 16, 0) >= 0);
        helio_receiver_destroy(receiver);
        helio_transmitter_destroy(transmitter);
        helio_instance_destroy(instance);
    }
}

static void abandoning_in_mode_thread_is_clean(void) {
    a_lossy_transfer_can_be_abandoned_at_any_moment("thread");
}

static void abandoning_in_mode_poll_is_clean(void) {
    a_lossy_transfer_can_be_abandoned_at_any_moment("poll");
}

static void *nothing(void *context) {
    return context;
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-test-runtime-%ld", (long)getpid());
    setenv("HELIOGRAPH_SEGMENT_DIR", folder, 1);
    pthread_t first; /* some sanitizers start a thread of their own with it */
    if (pthread_create(&first, NULL, nothing, NULL) == 0) {
        pthread_join(first, NULL);
    }
    const int descriptors = entries("/proc/self/fd");
    const int threads = threads_now(0, 100);
    RUN(messages_cross_a_group_in_mode_thread);
    RUN(messages_cross_a_group_in_mode_poll);
    RUN(lost_packets_are_recovered_in_mode_thread);
    RUN(lost_packets_are_recovered_in_mode_poll);
    RUN(what_was_received_stays_until_the_next_receive);
    RUN(long_messages_are_cut_and_put_together_again);
    RUN(an_instance_reads_while_it_sends_a_long_message);
    RUN(a_message_longer_than_both_queues_arrives);
    RUN(messages_cross_unicast);
    RUN(the_engine_sleeps_and_wakes_in_idle_block);
    RUN(a_listener_replies_in_mode_thread);
    RUN(a_listener_replies_in_mode_poll);
    RUN(a_slow_application_stops_delivery_and_loses_nothing);
    RUN(any_thread_may_send);
    RUN(equal_options_share_a_stream_and_others_do_not);
    RUN(refusals_have_a_code_and_a_sentence);
    RUN(abandoning_in_mode_thread_is_clean);
    RUN(abandoning_in_mode_poll_is_clean);
    /* No descriptor, thread or segment is left behind. */
    const int threads_left = threads_now(threads, 5000) - threads;
    if (entries("/proc/self/fd") != descriptors || threads_left != 0 || rmdir(folder) < 0) {
        fprintf(stderr, "left behind: %d descriptors, %d threads, %s\n",
                entries("/proc/self/fd") - descriptors, threads_left, folder);
        return 1;
    }
    return check_result();
}
