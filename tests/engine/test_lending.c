/* Mode poll: a caller is shown messages where they lie.  They stay as they are until it receives
 * again, while packets are lost, arrive in batches larger than its place, streams end, and other
 * receivers of the endpoint are served. */
#include <heliograph/heliograph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/moment.h"
#include "base/random.h"
#include "check.h"
#include "ports.h"
#include "runtime/receiver.h"

enum { LIST = 400, MOST = 512, BYTES_MAX = 700 };

static helio_instance *sending, *receiving;
static helio_transmitter *transmitter;
static helio_receiver *receiver;
static char endpoint[96];

static helio_instance *instance_of(const char *options) {
    helio_instance *instance = NULL;
    if (helio_instance_create(options, &instance) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return instance;
}

static void begin(const char *form, const char *options) {
    snprintf(endpoint, sizeof endpoint, form, test_port(0));
    sending = instance_of("name=sending&mode=poll");
    receiving = instance_of("name=receiving&mode=poll");
    if (helio_receiver_create(receiving, endpoint, "T", options, NULL, &receiver) < 0 ||
        helio_transmitter_create(sending, endpoint, "T", "linger=0&send_window=1024",
                                 &transmitter) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
}

static void end(void) {
    helio_receiver_destroy(receiver);
    helio_transmitter_destroy(transmitter);
    helio_instance_destroy(sending);
    helio_instance_destroy(receiving);
}

/* A message is its number, repeated; its length follows from it. */
static size_t length_of(uint64_t number) {
    return 8 + 8 * (size_t)(number * 37 % 29);
}

static void fill(uint64_t *data, uint64_t number) {
    for (size_t i = 0; i < length_of(number) / 8; i++) {
        data[i] = number;
    }
}

static void send_list(uint64_t first) {
    static uint64_t data[LIST][BYTES_MAX / 8];
    helio_buffer list[LIST];
    for (size_t i = 0; i < LIST; i++) {
        fill(data[i], first + i);
        list[i] = (helio_buffer){data[i], length_of(first + i)};
    }
    size_t sent = 0;
    while (sent < LIST) {
        size_t accepted = 0;
        const int error =
            helio_transmitter_send_many(transmitter, list + sent, LIST - sent, &accepted);
        CHECK(error == 0 || error == HELIO_ERR_WOULD_BLOCK);
        sent += accepted;
        if (error) { /* a connection may not stand yet */
            helio_instance_poll(sending);
            helio_instance_poll(receiving);
        }
    }
}

static void check_all(const helio_message *messages, int count) {
    uint64_t data[BYTES_MAX / 8];
    for (int i = 0; i < count; i++) {
        fill(data, messages[i].number);
        CHECK_EQUAL(messages[i].length, length_of(messages[i].number));
        CHECK_BYTES(messages[i].data, data, messages[i].length);
    }
}

/* Receives up to `limit` messages, which follow `next`; what they show is right, and still is after
 * the source has sent more. */
static uint64_t receive_some(uint64_t next, size_t limit, bool sends) {
    static helio_message messages[MOST];
    const int got = helio_receiver_receive(receiver, messages, limit, 0);
    CHECK(got >= 0);
    for (int i = 0; i < got; i++) {
        CHECK_EQUAL(messages[i].number, next + (uint64_t)i);
    }
    check_all(messages, got);
    if (sends) {
        helio_instance_poll(sending);
        check_all(messages, got);
    }
    return next + (uint64_t)got;
}

static void all_come_unchanged(const char *form, const char *options, size_t limit_max) {
    enum { MESSAGES = 100 * LIST };
    helio_random dice;
    helio_random_init(&dice, 11);
    begin(form, options);
    uint64_t sent = 0, next = 0;
    const int64_t deadline_ns = helio_monotonic_ns() + 60 * HELIO_SECOND;
    while (next < MESSAGES) {
        if (sent < MESSAGES && sent - next < 4 * LIST) {
            send_list(sent);
            sent += LIST;
        }
        helio_instance_poll(sending);
        next = receive_some(next, 1 + helio_random_next(&dice) % limit_max, true);
        if (helio_random_next(&dice) % 50 == 0) {
            helio_instance_poll(receiving); /* nobody is there to be lent anything */
        }
        CHECK(helio_monotonic_ns() < deadline_ns);
    }
    helio_loss loss;
    CHECK_EQUAL(helio_receiver_loss(receiver, &loss), 0);
    end();
}

static void lossy_lists_come_unchanged(void) {
    all_come_unchanged("rmm+unicast://127.0.0.1:%d", "inject_loss=0.05&nak_deadline=30", MOST);
    all_come_unchanged("rmm+unicast://127.0.0.1:%d", "inject_loss=0.05&nak_deadline=30", 7);
}

static void small_windows_use_the_queue(void) {
    all_come_unchanged("rmm+unicast://127.0.0.1:%d",
                       "inject_loss=0.05&nak_deadline=30&receive_window=64", 60);
}

static void arrival_order_comes_unchanged(void) {
    all_come_unchanged("shm://test_lending_%d", "order=arrival", 60);
}

static void connections_and_rings_wait(void) {
    all_come_unchanged("rum://127.0.0.1:%d", "", 60);
    all_come_unchanged("shm://test_lending_%d", "", 60);
}

/* The rest of what came in one call waits in the window, not in a copy. */
static void what_has_no_place_waits_in_the_window(void) {
    begin("rmm+unicast://127.0.0.1:%d", "");
    uint64_t next = 0;
    for (uint64_t sent = 0; sent < 10 * LIST; sent += LIST) {
        send_list(sent);
        const int64_t deadline_ns = helio_monotonic_ns() + 20 * HELIO_SECOND;
        while (next < sent + LIST) {
            next = receive_some(next, 7, false);
            CHECK(helio_monotonic_ns() < deadline_ns);
        }
    }
    CHECK_EQUAL(helio_receive_queue_given(&receiver->queue), 0);
    end();
}

static const char *const forms[] = {"rmm+unicast://127.0.0.1:%d", "rum://127.0.0.1:%d",
                                    "shm://test_lending_%d", "inproc://test_lending_%d"};

/* Sends messages of the second topic and takes them. */
static void pass_others(helio_transmitter *other, helio_receiver *second) {
    enum { OTHERS = 300 };
    const int64_t deadline_ns = helio_monotonic_ns() + 20 * HELIO_SECOND;
    uint64_t sent = 0, taken = 0;
    while (taken < OTHERS) {
        helio_message message;
        sent += sent < OTHERS && helio_transmitter_send(other, &sent, sizeof sent) == 0;
        if (helio_receiver_receive(second, &message, 1, 0) == 1) {
            CHECK_EQUAL(message.length, sizeof taken);
            CHECK_BYTES(message.data, &taken, sizeof taken);
            taken++;
        }
        helio_instance_poll(sending);
        CHECK(helio_monotonic_ns() < deadline_ns);
    }
}

/* Some messages are lent, more are read already, and the source sends on: a second receiver of the
 * endpoint gets what is its own. */
static void lend_amid(uint64_t *next) {
    helio_message lent[3];
    helio_receiver *second = NULL;
    helio_transmitter *other = NULL;
    const uint64_t sent = *next + LIST;
    const int64_t deadline_ns = helio_monotonic_ns() + 20 * HELIO_SECOND;
    send_list(*next);
    int got;
    while ((got = helio_receiver_receive(receiver, lent, 3, 0)) == 0) {
        helio_instance_poll(sending);
        CHECK(helio_monotonic_ns() < deadline_ns);
    }
    CHECK(receiver->lane->is_lent);
    CHECK_EQUAL(helio_receiver_create(receiving, endpoint, "U", "", NULL, &second), 0);
    CHECK_EQUAL(helio_transmitter_create(sending, endpoint, "U", "linger=0", &other), 0);
    pass_others(other, second);
    CHECK(receiver->lane->loan.is_left && !receiver->lane->is_lent); /* once is enough */
    send_list(sent);
    CHECK_EQUAL(helio_receiver_receive(second, NULL, 0, 0), 0);
    check_all(lent, got);
    CHECK_EQUAL(lent[0].number, *next);
    for (*next += (uint64_t)got; *next < sent + LIST;) {
        *next = receive_some(*next, 7, true);
        CHECK(helio_monotonic_ns() < deadline_ns);
    }
    CHECK(!receiver->lane->loan.is_left);
    helio_transmitter_destroy(other);
    helio_receiver_destroy(second);
}

static void another_receiver_is_served_while_messages_are_lent(void) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        uint64_t next = 0;
        begin(forms[i], "");
        for (int round = 0; round < 20; round++) {
            lend_amid(&next);
        }
        end();
    }
}

int main(void) {
    char folder[] = "/tmp/test_lending.XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    setenv("HELIOGRAPH_SEGMENT_DIR", folder, 1);
    RUN(lossy_lists_come_unchanged);
    RUN(small_windows_use_the_queue);
    RUN(arrival_order_comes_unchanged);
    RUN(connections_and_rings_wait);
    RUN(what_has_no_place_waits_in_the_window);
    RUN(another_receiver_is_served_while_messages_are_lent);
    rmdir(folder);
    return check_result();
}
