/* Mode poll: a lone message goes from the channel to the caller of a receive without the loop, the
 * lane and the sink between them (runtime/receive_call.c).  Whatever else there is to do is done as
 * before: lists, deadlines, a second receiver, and the books. */
#include <heliograph/heliograph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/moment.h"
#include "base/random.h"
#include "check.h"
#include "counted.h"
#include "ports.h"
#include "reconciliation.h"
#include "runtime/receiver.h"
#include "runtime/transmitter.h"

enum { LIST_MAX = 40 };

static const char *const forms[] = {"rmm+unicast://127.0.0.1:%d", "rum://127.0.0.1:%d",
                                    "shm://lone-%d"};
enum { FORMS = sizeof forms / sizeof *forms };

static helio_instance *sending, *receiving;
static helio_transmitter *transmitter;
static helio_receiver *receiver;
static char endpoint[96];
static uint64_t sent, got;

static void must(int result) {
    if (result < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
}

/* `level`: of the receiving instance. */
static void begin(int form, int level, const char *receives, const char *sends) {
    char options[64];
    snprintf(options, sizeof options, "name=receiving&mode=poll&level=%d", level);
    snprintf(endpoint, sizeof endpoint, forms[form], test_port((unsigned)form));
    must(helio_instance_create("name=sending&mode=poll", &sending));
    must(helio_instance_create(options, &receiving));
    must(helio_receiver_create(receiving, endpoint, "T", receives, NULL, &receiver));
    must(helio_transmitter_create(sending, endpoint, "T", sends, &transmitter));
    sent = got = 0;
}

static void end(void) {
    CHECK(books_hold(receiving->stats));
    CHECK(books_hold(sending->stats));
    helio_receiver_destroy(receiver);
    helio_transmitter_destroy(transmitter);
    helio_instance_destroy(sending);
    helio_instance_destroy(receiving);
}

/* A message is its number. */
static void send_some(size_t count) {
    uint64_t data[LIST_MAX];
    helio_buffer list[LIST_MAX];
    for (size_t i = 0; i < count; i++) {
        data[i] = sent + i;
        list[i] = (helio_buffer){&data[i], sizeof data[i]};
    }
    for (size_t done = 0; done < count;) {
        size_t accepted = 0;
        const int error =
            helio_transmitter_send_many(transmitter, list + done, count - done, &accepted);
        CHECK(error == 0 || error == HELIO_ERR_WOULD_BLOCK);
        done += accepted;
        if (error) { /* a connection may not stand yet */
            must(helio_instance_poll(sending));
            must(helio_instance_poll(receiving));
        }
    }
    sent += count;
}

/* Receives until nothing is missing; each message is the next one. */
static void receive_all(size_t limit) {
    helio_message messages[LIST_MAX];
    const int64_t deadline_ns = helio_monotonic_ns() + 20 * HELIO_SECOND;
    while (got < sent) {
        const int count = helio_receiver_receive(receiver, messages, limit, HELIO_MILLISECOND);
        must(count);
        for (int i = 0; i < count; i++, got++) {
            CHECK_EQUAL(messages[i].number, got);
            CHECK_EQUAL(messages[i].length, sizeof got);
            CHECK_BYTES(messages[i].data, &got, sizeof got);
            CHECK(messages[i].submit_ns > 0 && messages[i].receive_ns >= messages[i].submit_ns);
        }
        if (count == 0) {
            must(helio_instance_poll(sending));
        }
        CHECK(helio_monotonic_ns() < deadline_ns);
    }
}

/* Of the receiver's only stream. */
static const helio_stats_object *object_of_receiver(void) {
    return receiver->met.there.oldest->object;
}

static uint64_t taken(void) {
    const helio_receiver_stats *stats = object_of_receiver()->record;
    return helio_cell(&stats->messages_delivered);
}

static void lone_messages_and_lists_come_in_order(void) {
    for (int form = 0; form < FORMS; form++) {
        helio_random dice;
        helio_random_init(&dice, 5);
        begin(form, 2, "", "linger=0");
        send_some(1);
        receive_all(1);
        for (int i = 0; i < 3000; i++) {
            const bool is_list = helio_random_below(&dice, 10) == 0;
            send_some(is_list ? 1 + helio_random_below(&dice, LIST_MAX) : 1);
            if (helio_random_below(&dice, 4) > 0) { /* now and then several packets wait */
                receive_all(1 + helio_random_below(&dice, LIST_MAX));
            }
        }
        receive_all(LIST_MAX);
        CHECK_EQUAL(taken(), sent);
        end();
    }
}

static void each_lone_message_is_measured(void) {
    for (int form = 0; form < FORMS; form++) {
        enum { MESSAGES = 200 };
        begin(form, 3, "", "linger=0");
        send_some(1);
        receive_all(1);
        helio_hdr *const *histograms = object_of_receiver()->histogram;
        const uint64_t before = count_of(histograms[HELIO_RECEIVER_TOTAL_LATENCY]);
        const uint64_t handed = count_of(histograms[HELIO_RECEIVER_DISPATCH_LATENCY]);
        for (int i = 0; i < MESSAGES; i++) {
            send_some(1);
            receive_all(1);
        }
        CHECK_EQUAL(count_of(histograms[HELIO_RECEIVER_TOTAL_LATENCY]), before + MESSAGES);
        CHECK_EQUAL(count_of(histograms[HELIO_RECEIVER_DISPATCH_LATENCY]), handed + MESSAGES);
        end();
    }
}

static int lose(helio_channel *channel, const void *packet, size_t length) {
    (void)channel, (void)packet, (void)length;
    return 0;
}

static helio_message receive_one(helio_receiver *from) {
    helio_message message;
    const int64_t deadline_ns = helio_monotonic_ns() + 20 * HELIO_SECOND;
    int count;
    while ((count = helio_receiver_receive(from, &message, 1, 0)) == 0) {
        must(helio_instance_poll(sending));
        CHECK(helio_monotonic_ns() < deadline_ns);
    }
    CHECK_EQUAL(count, 1);
    return message;
}

/* Each call finds a lone message of one source, while a request for a packet of another falls due:
 * it leaves. */
static void deadlines_are_kept_between_lone_messages(void) {
    helio_instance *losing = NULL;
    helio_transmitter *other = NULL;
    begin(0, 2, "", "linger=0");
    must(helio_instance_create("name=losing&mode=poll", &losing));
    must(helio_transmitter_create(losing, endpoint, "T", "linger=0", &other));
    must(helio_transmitter_send(other, "first", 5));
    receive_one(receiver);
    must(helio_instance_poll(losing)); /* an SPM, so that it can be asked */
    helio_channel *channel = other->lane->base.channel;
    const helio_driver *driver = channel->driver;
    helio_driver broken = *driver;
    broken.send_now = lose;
    channel->driver = &broken;
    must(helio_transmitter_send(other, "lost", 4));
    channel->driver = driver;
    must(helio_transmitter_send(other, "behind", 6));

    const helio_channel_counters *counters = &receiving->rx_lanes->base.channel->counters;
    const uint64_t before = counters->packets_sent;
    const int64_t until_ns = helio_monotonic_ns() + 50 * HELIO_MILLISECOND;
    while (helio_monotonic_ns() < until_ns) {
        receiving->chores_due_ns = HELIO_NEVER; /* after which a cycle looks after all there is */
        must(helio_transmitter_send(transmitter, "message", 7));
        receive_one(receiver);
    }
    CHECK(counters->packets_sent > before);
    receiving->chores_due_ns = 0;
    helio_transmitter_destroy(other);
    helio_instance_destroy(losing);
    end();
}

/* The lane's second receiver gets what is its own, and the first one nothing of it. */
static void a_second_receiver_shares_the_lane(void) {
    for (int form = 0; form < FORMS; form++) {
        helio_receiver *second = NULL;
        helio_transmitter *other = NULL;
        helio_message message;
        begin(form, 2, "", "linger=0");
        must(helio_transmitter_create(sending, endpoint, "U", "linger=0", &other));
        send_some(1);
        receive_all(1);
        for (int round = 0; round < 3; round++) {
            must(helio_receiver_create(receiving, endpoint, "U", "", NULL, &second));
            for (int i = 0; i < 20; i++) {
                send_some(1);
                must(helio_transmitter_send(other, "other", 5));
                message = receive_one(second);
                CHECK_EQUAL(message.length, 5);
                CHECK_BYTES(message.data, "other", 5);
                receive_all(1);
            }
            helio_receiver_destroy(second);
            send_some(1);
            receive_all(1);
        }
        helio_transmitter_destroy(other);
        end();
    }
}

int main(void) {
    char folder[] = "/tmp/test_lone.XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    setenv("HELIOGRAPH_SEGMENT_DIR", folder, 1);
    RUN(lone_messages_and_lists_come_in_order);
    RUN(each_lone_message_is_measured);
    RUN(deadlines_are_kept_between_lone_messages);
    RUN(a_second_receiver_shares_the_lane);
    rmdir(folder);
    return check_result();
}
