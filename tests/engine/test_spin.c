/* Polls that find nothing: the cached time up to which they need not look further is never later
 * than what falls due.  The clocks of both engines are the test's. */
#include <heliograph/heliograph.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/moment.h"
#include "base/random.h"
#include "check.h"
#include "flight/recording.h"
#include "ports.h"
#include "runtime/receiver.h"
#include "runtime/rx_lane.h"

#define MS HELIO_MILLISECOND

enum { STEPS = 6000 };

static helio_instance *sending, *receiving;
static helio_transmitter *transmitter;
static helio_receiver *first, *second;
static char endpoint[96];
static helio_random dice;

/* The counter never moves, so the anchor is what the engine reads. */
static void stop_clock(helio_instance *instance) {
    const helio_moment now = helio_clock_read(&instance->clock);
    instance->clock = (helio_clock_source){.anchor_ns = now.now_ns,
                                           .anchor_ticks = helio_ticks(),
                                           .life_ticks = UINT64_MAX,
                                           .wall_due_ns = HELIO_NEVER,
                                           .offset_ns = now.wall_ns - now.now_ns};
}

/* It goes on from where it is; the kernel's clock is far behind. */
static void start_clock(helio_instance *instance) {
    instance->clock.anchor_ticks = helio_ticks();
    instance->clock.ns_per_tick = UINT64_C(1) << 32;
}

static void pass_time(int64_t ns) {
    sending->clock.anchor_ns += ns;
    receiving->clock.anchor_ns += ns;
}

static int64_t now_of(const helio_instance *instance) {
    return instance->clock.anchor_ns;
}

static helio_instance *instance_of(const char *options) {
    helio_instance *instance = NULL;
    if (helio_instance_create(options, &instance) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    stop_clock(instance);
    return instance;
}

static helio_receiver *receiver_of(const char *topic, const char *options) {
    helio_receiver *receiver = NULL;
    if (helio_receiver_create(receiving, endpoint, topic, options, NULL, &receiver) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return receiver;
}

static void open_all(const char *form, const char *options) {
    snprintf(endpoint, sizeof endpoint, form, test_port(0));
    helio_random_init(&dice, 7);
    sending = instance_of("name=sending&mode=poll");
    receiving = instance_of("name=receiving&mode=poll&flight_interval=0.01");
    first = receiver_of("T", options);
    second = NULL;
    if (helio_transmitter_create(sending, endpoint, "T", "linger=0", &transmitter) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
}

static void close_all(void) {
    start_clock(sending);
    start_clock(receiving);
    helio_transmitter_destroy(transmitter);
    helio_instance_destroy(sending);
    helio_instance_destroy(receiving);
}

static void check_cache(void) {
    for (const helio_rx_lane *lane = receiving->rx_lanes; lane; lane = lane->next) {
        CHECK(lane->quiet_until_ns == 0 ||
              lane->quiet_until_ns <= helio_rx_endpoint_next_deadline_ns(lane->endpoint));
        CHECK(lane->quiet_until_ns == 0 || !helio_rx_endpoint_is_blocked(lane->endpoint));
    }
}

/* Of a poll in which nothing else happened: whatever was due is done. */
static void check_served(void) {
    const int64_t now_ns = now_of(receiving);
    CHECK(receiving->chores_due_ns > now_ns);
    CHECK(helio_flight_due_ns(receiving->flight) > now_ns - MS); /* chores are that often */
    for (const helio_rx_lane *lane = receiving->rx_lanes; lane; lane = lane->next) {
        CHECK(helio_rx_endpoint_is_blocked(lane->endpoint) ||
              helio_rx_endpoint_next_deadline_ns(lane->endpoint) > now_ns);
        CHECK(!helio_rx_lane_has_acks(lane));
    }
}

static void receive_some(helio_receiver *receiver) {
    helio_message message;
    const int got = helio_receiver_receive(receiver, &message, 1, 0);
    CHECK(got >= 0);
    if (got > 0 && receiver->ack == HELIO_ACK_APP) {
        CHECK_EQUAL(helio_receiver_ack(receiver, message.stream, message.number), 0);
    }
}

static void act(uint64_t number, const char *options) {
    static const char data[400];
    if (number < 50) {
        helio_transmitter_send(transmitter, data, sizeof data);
    } else if (number < 80) {
        receive_some(first);
    } else if (number < 90) {
        helio_instance_poll(sending);
    } else if (number < 97) {
        pass_time((int64_t)(helio_random_next(&dice) % (3 * MS)));
    } else if (number == 97 && !second) {
        second = receiver_of(helio_random_next(&dice) % 2 ? "T" : "U", options);
    } else if (number == 98 && second) {
        helio_receiver_destroy(second);
        second = NULL;
    } else if (number == 99) {
        pass_time(300 * MS);
    }
}

static void what_falls_due_is_served(const char *form, const char *options) {
    open_all(form, options);
    for (int i = 0; i < STEPS; i++) {
        act(helio_random_next(&dice) % 100, options);
        check_cache();
        if (i % 7 == 0) {
            while (helio_instance_poll(receiving) > 0) {
                check_cache();
            }
            check_served();
        }
    }
    close_all();
}

static void timers_of_repair_are_served(void) {
    what_falls_due_is_served("rmm+unicast://127.0.0.1:%d", "inject_loss=0.1");
}

static void acknowledgements_are_served(void) {
    what_falls_due_is_served("rmm+unicast://127.0.0.1:%d", "inject_loss=0.1&ack=app");
}

static void credit_is_served(void) {
    what_falls_due_is_served("rmm+unicast://127.0.0.1:%d", "credit=64");
}

static void a_full_queue_is_served(void) {
    what_falls_due_is_served("inproc://spin-%d", "receive_queue=65536");
}

static void connections_are_served(void) {
    what_falls_due_is_served("rum://127.0.0.1:%d", "");
}

static void a_lost_connection_is_looked_after_at_once(void) {
    open_all("rmm+unicast://127.0.0.1:%d", "");
    helio_transmitter_send(transmitter, "x", 1);
    receive_some(first);
    pass_time(MS / 4);
    helio_instance_poll(receiving);
    helio_instance_poll(receiving);
    helio_rx_lane *lane = receiving->rx_lanes;
    CHECK(lane->quiet_until_ns > now_of(receiving));
    const helio_address nobody = {.family = 4};
    lane->base.on_gone(&lane->base, &nobody);
    CHECK_EQUAL(lane->quiet_until_ns, 0);
    close_all();
}

static void the_recorder_ticks_by_the_callers_clock(void) {
    open_all("rmm+unicast://127.0.0.1:%d", "");
    helio_instance_poll(receiving);
    const uint64_t before = receiving->flight->ticks;
    for (int i = 0; i < 100; i++) {
        pass_time(MS);
        helio_instance_poll(receiving);
    }
    const uint64_t ticks = receiving->flight->ticks - before;
    CHECK(ticks >= 2 && ticks <= 11); /* fewer where one is dear, as under a sanitizer */
    close_all();
}

int main(void) {
    char folder[] = "/dev/shm/helio-test-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    setenv("HELIOGRAPH_SEGMENT_DIR", folder, 1);
    RUN(timers_of_repair_are_served);
    RUN(acknowledgements_are_served);
    RUN(credit_is_served);
    RUN(a_full_queue_is_served);
    RUN(connections_are_served);
    RUN(a_lost_connection_is_looked_after_at_once);
    RUN(the_recorder_ticks_by_the_callers_clock);
    rmdir(folder);
    return check_result();
}
