/* Feedback modes ACK, App-ACK, Wait-ACK and Wait-N-ACK, first the counting, then source and
 * receivers on a simulated network. */
#include "pair.h"

#include <limits.h>

#include <heliograph/errors.h>

#include "base/random.h"
#include "generated/options.h"
#include "receive/acks.h"
#include "receive/unacked.h"
#include "receivers/acks.h"
#include "send/choice.h"
#include "stats/segment.h"

/* ---- the registry ---- */

static helio_acks acks;

static helio_acker heard(uint64_t receiver, uint64_t incarnation, uint64_t first, uint64_t position,
                         int64_t now_ns) {
    return (helio_acker){
        .receiver = receiver,
        .incarnation = incarnation,
        .first = first,
        .position = position,
        .heard_ns = now_ns,
        .address = world_host((unsigned)receiver + 1, 5000),
        .kind = HELIO_PGM_ACK_TRANSPORT,
    };
}

static helio_acks_result hear(uint64_t receiver, uint64_t incarnation, uint64_t first,
                              uint64_t position) {
    const helio_acker what = heard(receiver, incarnation, first, position, 0);
    helio_acker *acker;
    return helio_acks_hear(&acks, &what, false, &acker);
}

static void wait_n_ack_counts_distinct_receivers_and_only_progress(void) {
    helio_acks_init(&acks, HELIO_ACKERS_MAX, HELIO_SECOND);
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 99), 99);
    CHECK_EQUAL(hear(1, 1, 100, 110), HELIO_ACKS_JOINED);
    CHECK_EQUAL(hear(1, 1, 100, 120), HELIO_ACKS_PROGRESS);
    CHECK_EQUAL(hear(1, 1, 100, 115), HELIO_ACKS_REPEATED);
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 99), 120);
    CHECK_EQUAL(helio_acks_stable(&acks, 2, 99), 99); /* twice by one is once */
    CHECK_EQUAL(hear(2, 1, 100, 105), HELIO_ACKS_JOINED);
    CHECK_EQUAL(helio_acks_stable(&acks, 2, 99), 105);
    CHECK_EQUAL(helio_acks_count(&acks, 105), 2);
    CHECK_EQUAL(helio_acks_count(&acks, 106), 1);
    helio_acks_fini(&acks);
}

static void a_new_life_counts_from_where_it_joined_and_an_old_one_no_more(void) {
    helio_acks_init(&acks, HELIO_ACKERS_MAX, HELIO_SECOND);
    hear(1, 5, 100, 120);
    CHECK_EQUAL(hear(1, 6, 150, 160), HELIO_ACKS_RESTARTED);
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 99), 99); /* what is before 150 it never had */
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 149), 160);
    CHECK_EQUAL(hear(1, 5, 100, 170), HELIO_ACKS_STALE);
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 149), 160);
    CHECK_EQUAL(acks.count, 1);
    helio_acks_fini(&acks);
}

static void those_that_joined_late_take_over_where_others_stop(void) {
    helio_acks_init(&acks, HELIO_ACKERS_MAX, HELIO_SECOND);
    hear(1, 1, 100, 150);
    hear(2, 1, 130, 200);
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 99), 200);
    CHECK_EQUAL(helio_acks_stable(&acks, 2, 99), 99);
    CHECK_EQUAL(helio_acks_stable(&acks, 2, 129), 150);
    helio_acks_fini(&acks);
}

static void silent_receivers_expire_and_a_full_registry_refuses(void) {
    helio_acks_init(&acks, 20, HELIO_SECOND);
    helio_acker *acker;
    for (uint64_t i = 0; i < 20; i++) {
        const helio_acker what = heard(i, 1, 1, 10 + i, (int64_t)i * MS);
        CHECK_EQUAL(helio_acks_hear(&acks, &what, false, &acker), HELIO_ACKS_JOINED);
    }
    CHECK_EQUAL(hear(99, 1, 1, 1000), HELIO_ACKS_FULL);
    const helio_acker again = heard(0, 1, 1, 10, 500 * MS);
    helio_acks_hear(&acks, &again, false, &acker);
    CHECK(helio_acks_expired(&acks, 900 * MS) == NULL);
    int expired = 0;
    while ((acker = helio_acks_expired(&acks, HELIO_SECOND + 9 * MS)) != NULL) {
        CHECK(acker->receiver >= 1 && acker->receiver <= 9);
        helio_acks_remove(&acks, acker);
        expired++;
    }
    CHECK_EQUAL(expired, 9);
    CHECK_EQUAL(acks.expiry_due_ns, HELIO_SECOND + 10 * MS);
    CHECK_EQUAL(acks.count, 11);
    CHECK(helio_acks_find(&acks, 0) && !helio_acks_find(&acks, 5));
    CHECK_EQUAL(hear(99, 1, 1, 1000), HELIO_ACKS_JOINED);
    helio_acks_fini(&acks);
}

enum { TRIAL_RECEIVERS = 40, TRIAL_STEPS = 400, TRIAL_PACKETS = 64 };

typedef struct trial {
    helio_acker all[TRIAL_RECEIVERS];
    bool is_there[TRIAL_RECEIVERS];
} trial;

/* How many of the trial's receivers have each packet, counted the slow way. */
static uint64_t slow_stable(const trial *trial, uint32_t receivers, uint64_t after) {
    const helio_acker *all = trial->all;
    for (;; after++) {
        uint32_t have = 0;
        for (int i = 0; i < TRIAL_RECEIVERS; i++) {
            have += trial->is_there[i] && all[i].first <= after + 1 && all[i].position > after;
        }
        if (have < receivers) {
            return after;
        }
    }
}

static void the_order_statistic_is_that_of_counting_each_packet(void) {
    helio_random random;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        helio_random_init(&random, seed);
        helio_acks_init(&acks, HELIO_ACKERS_MAX, HELIO_SECOND);
        trial trial = {0};
        for (int step = 0; step < TRIAL_STEPS; step++) {
            const uint64_t who = helio_random_below(&random, TRIAL_RECEIVERS);
            helio_acker *acker, *mine = &trial.all[who];
            if (trial.is_there[who] && helio_random_below(&random, 20) == 0) {
                helio_acks_remove(&acks, helio_acks_find(&acks, who));
                trial.is_there[who] = false;
                continue;
            }
            if (!trial.is_there[who] || helio_random_below(&random, 20) == 0) {
                const uint64_t first = 1 + helio_random_below(&random, TRIAL_PACKETS);
                *mine = heard(who, mine->incarnation + 1, first, first - 1, 0);
                trial.is_there[who] = true;
            }
            const uint64_t said = mine->first - 1 + helio_random_below(&random, TRIAL_PACKETS);
            if (said > mine->position) {
                mine->position = said;
            }
            helio_acker what = *mine;
            what.position = said;
            CHECK(helio_acks_hear(&acks, &what, false, &acker) <= HELIO_ACKS_REPEATED);
            const uint32_t receivers = 1 + (uint32_t)helio_random_below(&random, 6);
            const uint64_t after = helio_random_below(&random, TRIAL_PACKETS);
            if (helio_acks_stable(&acks, receivers, after) !=
                slow_stable(&trial, receivers, after)) {
                CHECK_FAIL("seed %" PRIu64 ", step %d", seed, step);
            }
        }
        helio_acks_fini(&acks);
    }
}

/* ---- when to acknowledge ---- */

static helio_rx_acks when;

static void progress_is_told_after_so_many_packets_or_so_much_time(void) {
    helio_rx_acks_init(&when, 64, MS, 1);
    helio_rx_acks_begin(&when, 100, 1);
    CHECK_EQUAL(helio_rx_acks_next_deadline_ns(&when), 0); /* that it is there */
    helio_rx_acks_sent(&when);
    CHECK_EQUAL(helio_rx_acks_next_deadline_ns(&when), HELIO_NEVER);
    helio_rx_acks_advance(&when, 100, 5 * MS);
    const int64_t due_ns = helio_rx_acks_next_deadline_ns(&when);
    CHECK(due_ns >= 5 * MS && due_ns <= 6 * MS);
    helio_rx_acks_advance(&when, 162, 5 * MS);
    CHECK_EQUAL(helio_rx_acks_next_deadline_ns(&when), due_ns);
    helio_rx_acks_advance(&when, 163, 5 * MS);
    CHECK_EQUAL(helio_rx_acks_next_deadline_ns(&when), 5 * MS);
    helio_rx_acks_sent(&when);
    helio_rx_acks_repeat(&when, 9 * MS);
    CHECK(helio_rx_acks_next_deadline_ns(&when) <= 10 * MS);
}

static void what_the_source_asks_for_is_told_at_once_but_not_before_it_can_be(void) {
    helio_rx_acks_init(&when, 64, HELIO_SECOND, 1);
    helio_rx_acks_begin(&when, 100, 1);
    helio_rx_acks_sent(&when);
    helio_rx_acks_ask(&when, 110, MS);
    helio_rx_acks_advance(&when, 109, 2 * MS);
    CHECK(helio_rx_acks_next_deadline_ns(&when) > 2 * MS);
    helio_rx_acks_advance(&when, 110, 3 * MS);
    CHECK_EQUAL(helio_rx_acks_next_deadline_ns(&when), 3 * MS);
    helio_rx_acks_sent(&when);
    helio_rx_acks_advance(&when, 111, 4 * MS);
    CHECK(helio_rx_acks_next_deadline_ns(&when) > 4 * MS);
}

static void the_application_acknowledges_whole_batches_in_order(void) {
    helio_unacked unacked;
    CHECK_EQUAL(helio_unacked_init(&unacked, 4), 0);
    CHECK_EQUAL(helio_unacked_oldest(&unacked), HELIO_UNACKED_NONE);
    helio_unacked_add(&unacked, 10, 3);
    helio_unacked_add(&unacked, 12, 6);
    helio_unacked_add(&unacked, 12, 8); /* the rest of a batch that came in two parts */
    helio_unacked_acknowledge(&unacked, 7);
    CHECK_EQUAL(helio_unacked_oldest(&unacked), 12);
    for (uint64_t i = 0; i < 10; i++) { /* more than there is room for */
        helio_unacked_add(&unacked, 20 + i, 20 + i);
    }
    helio_unacked_acknowledge(&unacked, 8);
    CHECK_EQUAL(helio_unacked_oldest(&unacked), 20);
    helio_unacked_acknowledge(&unacked, 28);
    CHECK_EQUAL(helio_unacked_oldest(&unacked), 22); /* the newest stands for all that followed */
    helio_unacked_acknowledge(&unacked, 29);
    CHECK_EQUAL(helio_unacked_oldest(&unacked), HELIO_UNACKED_NONE);
    helio_unacked_add(&unacked, 40, 29); /* handed over and acknowledged before its turn */
    CHECK_EQUAL(helio_unacked_oldest(&unacked), HELIO_UNACKED_NONE);
    helio_unacked_fini(&unacked);
}

/* ---- source and receivers ---- */

enum { RECEIVERS = 3, HISTORY = 32 };

static world_receiver listeners[RECEIVERS];
static inbox inboxes[RECEIVERS];
static helio_subscription *subscriptions[RECEIVERS];
static int noted;
static helio_acker noted_last;

static void on_ack(void *context, const helio_acker *acker) {
    (void)context;
    noted++;
    noted_last = *acker;
}

static helio_rx_endpoint_config acking_receiver(unsigned i) {
    helio_rx_endpoint_config config = world_receiver_config(100 + i);
    static const char *const names[] = {"anna", "bert", "carl"};
    config.instance = names[i];
    config.receiver = 1000 + i;
    config.ack_packets = 64;
    config.ack_interval_ns = MS;
    return config;
}

static void listen_at(unsigned i, helio_sink_ack mode, bool is_store, helio_address service) {
    helio_rx_endpoint_config config = acking_receiver(i);
    config.service = service;
    world_add_receiver(&w, &listeners[i], &config);
    inboxes[i] = (inbox){.room = UINT64_MAX};
    const helio_sink sink = {.context = &inboxes[i],
                             .on_stream = on_stream,
                             .on_stream_end = on_end,
                             .on_messages = on_messages,
                             .on_loss = on_loss,
                             .ack = mode,
                             .is_store = is_store};
    CHECK_EQUAL(helio_rx_endpoint_subscribe(listeners[i].endpoint, "t", &sink, world_now(&w),
                                            &subscriptions[i]),
                0);
}

static void listen_as(unsigned i, helio_sink_ack mode, bool is_store) {
    listen_at(i, mode, is_store, (helio_address){0});
}

static void add_listener(unsigned i, helio_sink_ack mode) {
    listen_as(i, mode, false);
}

static helio_tx_stream_config waiting_source(uint32_t receivers, int missing) {
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = HISTORY;
    config.acks = receivers;
    config.acks_missing = missing;
    config.acks_warn_ns = HELIO_SECOND;
    config.acker_expiry_ns = 5 * HELIO_SECOND;
    config.on_ack = on_ack;
    return config;
}

static void begin_acked(uint32_t receivers, int missing, unsigned count, helio_sink_ack mode) {
    noted = 0;
    world_init(&w, 7, 1);
    for (unsigned i = 0; i < count; i++) {
        add_listener(i, mode);
    }
    begin_source(waiting_source(receivers, missing));
    world_run(&w, 5 * MS);
}

static void end_acked(void) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        if (listeners[i].endpoint) {
            world_end_receiver(&listeners[i]);
        }
    }
    world_end_source(&source);
    world_fini(&w);
}

/* How many there were, and the text of the last. */
static const char *event_text;

static uint64_t events_of(helio_event_id event) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < w.stats->header->events_written; i++) {
        if (w.stats->events[i].event == event) {
            event_text = w.stats->events[i].text;
            count++;
        }
    }
    return count;
}

static bool has_room(void) {
    return helio_tx_stream_admit(source.stream, topic, 5, world_now(&w)) == HELIO_ADMIT_GO;
}

/* Sends as many as go, at most `count`; returns how many. */
static int send_while_room(int count) {
    int sent = 0;
    while (sent < count && has_room()) {
        send(1);
        sent++;
    }
    return sent;
}

static void silence(unsigned i, bool is_silent) {
    helio_sim_set_partition(listeners[i].node, is_silent ? 1 : 0);
}

static void wait_2_ack_of_3_holds_until_the_second_and_releases_before_the_third(void) {
    begin_acked(2, HELIO_ACKS_MISSING_BLOCK, 3, HELIO_SINK_ACK_AUTO);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 3);
    send(1);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    silence(1, true);
    silence(2, true);
    send(10); /* one receiver has them */
    world_run(&w, 50 * MS);
    CHECK_EQUAL(inboxes[0].messages, 11);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 10);
    silence(1, false); /* the second */
    world_run(&w, 100 * MS);
    CHECK_EQUAL(inboxes[1].messages, 11);
    CHECK_EQUAL(inboxes[2].messages, 1);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    CHECK_EQUAL(send_while_room(10 * HISTORY), 10 * HISTORY); /* the third is not waited for */
    CHECK_EQUAL(helio_cell(&source_counts()->ack_blocks), 0);
    end_acked();
}

static void wait_ack_stops_sending_when_the_history_is_full_and_drops_nothing(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    send(5);
    world_run(&w, 5 * MS);
    silence(0, true);
    const uint64_t trail = helio_cell(&source_counts()->window_lead) + 1;
    const int sent = send_while_room(10 * HISTORY);
    CHECK(sent > HISTORY / 2 && sent < HISTORY);
    CHECK(!has_room());
    CHECK_EQUAL(helio_cell(&source_counts()->ack_blocks), 1);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(!has_room());
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_MISSING), 1);
    CHECK(strstr(event_text, "behind: anna (10.0.0.100:50000) by"));
    CHECK(helio_cell(&source_counts()->window_trail) <= trail);
    CHECK(helio_cell(&source_counts()->ack_blocked_time) >= (uint64_t)HELIO_SECOND);
    silence(0, false);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(has_room());
    CHECK_EQUAL(inboxes[0].messages, 5 + sent);
    CHECK_EQUAL(inboxes[0].lost, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked_dropped), 0);
    end_acked();
}

static void nak_mode_never_stops_and_drops_the_oldest(void) {
    begin_acked(0, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_NONE);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 0);
    silence(0, true);
    CHECK_EQUAL(send_while_room(10 * HISTORY), 10 * HISTORY);
    CHECK(helio_cell(&source_counts()->history_trimmed_packets) >= 9 * HISTORY);
    silence(0, false);
    send(1);
    world_run(&w, 100 * MS);
    CHECK(inboxes[0].lost >= 9 * HISTORY - 1);
    end_acked();
}

static void ack_mode_tells_of_receivers_without_holding_anything(void) {
    begin_acked(0, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    send(100);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    CHECK_EQUAL(noted_last.receiver, 1000);
    CHECK(strcmp(noted_last.name, "anna") == 0);
    CHECK_EQUAL(noted_last.kind, HELIO_PGM_ACK_TRANSPORT);
    CHECK_EQUAL(noted_last.position, helio_tx_stream_newest(topic));
    uint64_t number;
    CHECK(helio_tx_stream_acked_message(source.stream, topic, &noted_last, &number));
    CHECK_EQUAL(number, 99);
    noted_last.position -= 30;
    CHECK(helio_tx_stream_acked_message(source.stream, topic, &noted_last, &number));
    CHECK_EQUAL(number, 69);
    CHECK_EQUAL(helio_tx_stream_acked_by(source.stream, helio_tx_stream_newest(topic)), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), HELIO_STATS_ABSENT);
    end_acked();
}

static void app_ack_follows_the_application_and_not_the_delivery(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_APP);
    send(10);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(inboxes[0].messages, 10);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 10);
    helio_rx_endpoint_acknowledge(listeners[0].endpoint, subscriptions[0], 0, 4, world_now(&w));
    helio_sim_wake(listeners[0].node);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 6);
    CHECK_EQUAL(noted_last.kind, HELIO_PGM_ACK_APPLICATION);
    const int sent = send_while_room(10 * HISTORY);
    CHECK(sent < HISTORY);
    helio_rx_endpoint_acknowledge(listeners[0].endpoint, subscriptions[0], 0, 1000, world_now(&w));
    helio_sim_wake(listeners[0].node);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    end_acked();
}

static void one_receiver_by_application_holds_what_another_has_acknowledged(void) {
    world_init(&w, 7, 1);
    add_listener(0, HELIO_SINK_ACK_AUTO);
    add_listener(1, HELIO_SINK_ACK_APP);
    begin_source(waiting_source(2, HELIO_ACKS_MISSING_BLOCK));
    world_run(&w, 5 * MS);
    send(10);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 10);
    helio_rx_endpoint_acknowledge(listeners[1].endpoint, subscriptions[1], 0, 10, world_now(&w));
    helio_sim_wake(listeners[1].node);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    end_acked();
}

static void both_ways_of_one_endpoint_follow_the_slower(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_APP);
    inbox other = {.room = UINT64_MAX};
    const helio_sink sink = {.context = &other,
                             .on_stream = on_stream,
                             .on_messages = on_messages,
                             .ack = HELIO_SINK_ACK_AUTO};
    helio_subscription *second;
    helio_rx_endpoint_subscribe(listeners[0].endpoint, "t", &sink, world_now(&w), &second);
    send(10);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(other.messages, 10);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 10);
    helio_rx_endpoint_unsubscribe(listeners[0].endpoint, subscriptions[0], world_now(&w));
    helio_sim_wake(listeners[0].node);
    send(1);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    end_acked();
}

static void a_burst_is_acknowledged_at_once_when_it_ends(void) {
    world_init(&w, 7, 1);
    helio_rx_endpoint_config config = acking_receiver(0);
    config.ack_packets = 65536;
    config.ack_interval_ns = 10 * HELIO_SECOND;
    world_add_receiver(&w, &listeners[0], &config);
    inboxes[0] = (inbox){.room = UINT64_MAX};
    const helio_sink sink = {.context = &inboxes[0],
                             .on_stream = on_stream,
                             .on_messages = on_messages,
                             .ack = HELIO_SINK_ACK_AUTO};
    helio_rx_endpoint_subscribe(listeners[0].endpoint, "t", &sink, world_now(&w),
                                &subscriptions[0]);
    begin_source(waiting_source(1, HELIO_ACKS_MISSING_BLOCK));
    world_run(&w, MS);
    for (int i = 0; i < 5; i++) {
        send(1);
        world_run(&w, 300 * US); /* before the first heartbeat */
        CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    }
    end_acked();
}

static void lost_acknowledgements_heal(void) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
        helio_sim_set_link(source.node, &(helio_sim_link){.loss = 0.5});
        helio_sim_set_link(listeners[0].node, &(helio_sim_link){.loss = 0.2});
        int sent = 0;
        for (int i = 0; i < 2000 && sent < 1000; i++) {
            sent += send_while_room(1000 - sent);
            world_run(&w, 10 * MS);
        }
        CHECK_EQUAL(sent, 1000);
        world_run(&w, 5 * HELIO_SECOND);
        CHECK_EQUAL(inboxes[0].messages, 1000);
        CHECK_EQUAL(inboxes[0].lost, 0);
        CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
        end_acked();
    }
}

static void a_receiver_that_acknowledges_does_not_give_up_what_the_source_holds(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    send(5);
    drop(listeners[0].node, ODATA, 1);
    send(1);
    drop(listeners[0].node, RDATA, 1000000);
    send(5);
    world_run(&w, 4 * HELIO_SECOND); /* its nak_deadline is one */
    CHECK_EQUAL(inboxes[0].messages, 5);
    CHECK_EQUAL(inboxes[0].lost, 0);
    drop(listeners[0].node, RDATA, 0);
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(inboxes[0].messages, 11);
    end_acked();
}

static void a_receiver_that_comes_late_gets_what_waits_for_it(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 0, HELIO_SINK_ACK_AUTO);
    const int sent = send_while_room(10 * HISTORY);
    CHECK(sent > HISTORY / 2 && sent < HISTORY);
    add_listener(0, HELIO_SINK_ACK_AUTO);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(inboxes[0].messages, sent);
    CHECK_EQUAL(inboxes[0].lost, 0);
    CHECK(has_room());
    end_acked();
}

static void a_receiver_that_comes_by_data_begins_with_what_waits_for_it_too(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 0, HELIO_SINK_ACK_AUTO);
    send(5);
    add_listener(0, HELIO_SINK_ACK_AUTO);
    drop(listeners[0].node, SPM, 1);
    send(3);
    drop(listeners[0].node, SPM, 0);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(inboxes[0].messages, 8);
    CHECK_EQUAL(inboxes[0].lost, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    end_acked();
}

/* The source is not scheduled for longer than a receiver waits in other modes. */
static void a_receiver_that_comes_by_data_waits_for_an_spm_that_is_late(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 0, HELIO_SINK_ACK_AUTO);
    send(5);
    add_listener(0, HELIO_SINK_ACK_AUTO);
    drop(listeners[0].node, SPM, INT_MAX);
    send(3);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(inboxes[0].messages, 0);
    drop(listeners[0].node, SPM, 0);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(inboxes[0].messages, 8);
    CHECK_EQUAL(inboxes[0].lost, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    CHECK_EQUAL(send_while_room(10 * HISTORY), 10 * HISTORY);
    end_acked();
}

/* Such as a source whose SPMs a router drops: it gets no acknowledgement either. */
static void without_any_spm_an_acknowledging_receiver_begins_when_the_stream_would_expire(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 0, HELIO_SINK_ACK_AUTO);
    send(5);
    add_listener(0, HELIO_SINK_ACK_AUTO);
    drop(listeners[0].node, SPM, INT_MAX);
    send(3);
    world_run(&w, 11 * HELIO_SECOND);
    CHECK_EQUAL(inboxes[0].messages, 3);
    end_acked();
}

static void a_receiver_that_goes_says_so_and_one_that_dies_expires(void) {
    begin_acked(2, HELIO_ACKS_MISSING_BLOCK, 3, HELIO_SINK_ACK_AUTO);
    world_end_receiver(&listeners[0]);
    world_run(&w, MS);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 2);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_STOPPED), 1);
    silence(1, true);
    world_run(&w, 6 * HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_STOPPED), 2);
    send(3);
    world_run(&w, 10 * MS);
    CHECK(helio_cell(&source_counts()->history_unacked) >= 3);
    silence(1, false);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 2);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    end_acked();
}

static void block_warns_once_of_receivers_that_are_not_there(void) {
    begin_acked(2, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    send(3);
    world_run(&w, 900 * MS);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_MISSING), 0);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_MISSING), 1);
    CHECK(strstr(event_text, "1 of 2 receivers acknowledge"));
    world_run(&w, 5 * HELIO_SECOND);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_MISSING), 1);
    CHECK(helio_cell(&source_counts()->history_unacked) > 0);
    end_acked();
}

static void degrade_takes_what_there_is_and_tells_each_change(void) {
    begin_acked(2, HELIO_ACKS_MISSING_DEGRADE, 2, HELIO_SINK_ACK_AUTO);
    const uint64_t before = events_of(HELIO_EVENT_ACKS_DEGRADED);
    silence(1, true);
    send_while_room(10 * HISTORY);
    CHECK(!has_room()); /* it still counts */
    world_run(&w, 6 * HELIO_SECOND);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_DEGRADED), before + 1);
    CHECK_EQUAL(send_while_room(10 * HISTORY), 10 * HISTORY);
    CHECK(helio_cell(&source_counts()->history_unacked_dropped) > 0);
    silence(0, true);
    world_run(&w, 6 * HELIO_SECOND);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_DEGRADED), before + 2);
    CHECK_EQUAL(send_while_room(10 * HISTORY), 10 * HISTORY); /* to nobody */
    silence(0, false);
    silence(1, false);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_DEGRADED), before + 4);
    end_acked();
}

static void fail_refuses_until_there_are_enough(void) {
    begin_acked(1, HELIO_ACKS_MISSING_FAIL, 0, HELIO_SINK_ACK_AUTO);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_ACKERS);
    add_listener(0, HELIO_SINK_ACK_AUTO);
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_GO);
    silence(0, true);
    world_run(&w, 6 * HELIO_SECOND);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_ACKERS);
    end_acked();
}

static void the_end_of_a_topic_is_told_even_when_nothing_is_acknowledged(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    silence(0, true);
    send_while_room(10 * HISTORY);
    for (int i = 0; i < 10; i++) { /* more announcements than are kept in reserve */
        helio_tx_topic *other;
        char name[16];
        snprintf(name, sizeof name, "u%d", i);
        CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, name, world_now(&w), &other), 0);
        helio_tx_stream_remove_topic(source.stream, other, world_now(&w));
    }
    helio_tx_stream_close(source.stream, world_now(&w));
    CHECK(helio_cell(&source_counts()->history_unacked_dropped) > 0);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_DEGRADED), 1);
    end_acked();
}

static void a_large_message_waits_for_room_for_all_of_it(void) {
    static uint8_t data[100000];
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    const size_t longest = helio_tx_stream_longest(source.stream);
    CHECK(longest > 25 * 1400 && longest < HISTORY * 1448);
    CHECK_EQUAL(helio_tx_stream_admit(source.stream, topic, longest, world_now(&w)),
                HELIO_ADMIT_GO);
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, data, longest,
                                           world_now(&w).wall_ns, world_now(&w)),
                    0);
        CHECK_EQUAL(helio_tx_stream_admit(source.stream, topic, longest, world_now(&w)),
                    HELIO_ADMIT_HISTORY);
        helio_sim_wake(source.node);
        world_run(&w, 20 * MS);
        CHECK_EQUAL(helio_tx_stream_admit(source.stream, topic, longest, world_now(&w)),
                    HELIO_ADMIT_GO);
    }
    CHECK_EQUAL(inboxes[0].messages, 20);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked_dropped), 0);
    end_acked();
}

/* ---- what nobody honest would say ---- */

static void forge(uint32_t rx_max, uint64_t incarnation, uint32_t first, uint32_t position,
                  uint8_t flags) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const helio_pgm_acknowledge said = {
        .kind = HELIO_PGM_ACK_TRANSPORT,
        .flags = flags,
        .receiver = 77,
        .incarnation = incarnation,
        .first = first,
        .position = position,
        .name = "mallory\n",
        .name_bytes = 8,
    };
    const size_t length = helio_pgm_encode_ack(packet, &session, rx_max, 0, &said, NULL);
    const helio_address from = world_host(66, 6666);
    helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
}

static void impossible_acknowledgements_release_nothing(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 0, HELIO_SINK_ACK_AUTO);
    send(10);
    const uint64_t unacked = helio_cell(&source_counts()->history_unacked);
    forge(1000, 1, 0, 1000, 0); /* never sent */
    CHECK_EQUAL(helio_cell(&source_counts()->acks_refused_impossible), 1);
    forge(8, 1, 9, 7, 0); /* begins after its end */
    forge(5, 1, 0, 7, 0); /* more than it received */
    CHECK_EQUAL(helio_cell(&world_counts(&source.instance)->invalid_packets_options), 2);
    forge(5, 1, 0, 5, HELIO_PGM_ACK_LEAVING); /* goes without having come */
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 0);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), unacked);
    end_acked();
}

/* Says so in the name of receiver 77, from an address. */
static helio_acks_result say(const char *from, uint64_t incarnation, uint64_t position,
                             int64_t now_ns, bool is_vouched) {
    helio_acker what = heard(77, incarnation, 1, position, now_ns), *acker;
    what.address = world_address(from);
    return helio_acks_hear(&acks, &what, is_vouched, &acker);
}

static void an_acker_is_bound_to_its_address_while_it_is_heard(void) {
    helio_acks_init(&acks, 16, 5 * HELIO_SECOND);
    acks.silence_ns = 2 * HELIO_SECOND;
    CHECK_EQUAL(say("10.0.0.1:5000", 7, 10, 0, false), HELIO_ACKS_JOINED);
    static const char *const others[] = {"10.0.0.2:5000", "10.0.0.1:5001"};
    for (size_t i = 0; i < 2; i++) {
        CHECK_EQUAL(say(others[i], 7, 20, HELIO_SECOND, false), HELIO_ACKS_ELSEWHERE);
        CHECK_EQUAL(say(others[i], 8, 20, HELIO_SECOND, false), HELIO_ACKS_ELSEWHERE);
        CHECK_EQUAL(say(others[i], UINT64_MAX, 20, HELIO_SECOND, false), HELIO_ACKS_ELSEWHERE);
    }
    CHECK_EQUAL(helio_acks_stable(&acks, 1, 0), 10);
    /* what was refused is no sign of life */
    CHECK_EQUAL(say(others[0], 7, 20, 2 * HELIO_SECOND, false), HELIO_ACKS_PROGRESS);
    CHECK_EQUAL(say("10.0.0.1:5000", 7, 30, 2 * HELIO_SECOND, false), HELIO_ACKS_ELSEWHERE);
    CHECK_EQUAL(say("10.0.0.3:5000", 8, 30, 2 * HELIO_SECOND, true), HELIO_ACKS_RESTARTED);
    helio_acks_fini(&acks);
}

static void no_life_begins_later_than_now(void) {
    helio_acks_init(&acks, 16, 5 * HELIO_SECOND);
    const uint64_t born = UINT64_C(1700000000000000000);
    CHECK_EQUAL(say("10.0.0.1:5000", born, 10, HELIO_SECOND, false), HELIO_ACKS_JOINED);
    CHECK_EQUAL(say("10.0.0.1:5000", UINT64_MAX, 10, HELIO_SECOND, false), HELIO_ACKS_IMPOSSIBLE);
    CHECK_EQUAL(
        say("10.0.0.1:5000", born + 60 * (uint64_t)HELIO_SECOND, 10, 2 * HELIO_SECOND, false),
        HELIO_ACKS_IMPOSSIBLE);
    CHECK_EQUAL(say("10.0.0.1:5000", born, 11, 3 * HELIO_SECOND, false), HELIO_ACKS_PROGRESS);
    CHECK_EQUAL(say("10.0.0.1:5000", born + 3 * (uint64_t)HELIO_SECOND, 5, 4 * HELIO_SECOND, false),
                HELIO_ACKS_RESTARTED);
    helio_acks_fini(&acks);
}

static void one_address_has_half_of_the_ackers(void) {
    helio_acks_init(&acks, 64, HELIO_SECOND);
    uint32_t joined = 0;
    helio_acker *acker;
    for (uint64_t i = 0; i < 100; i++) {
        helio_acker what = heard(i, 1, 1, 10, 0);
        what.address = world_address("10.0.0.1:5000");
        what.address.port = (uint16_t)(5000 + i);
        joined += helio_acks_hear(&acks, &what, false, &acker) == HELIO_ACKS_JOINED;
    }
    CHECK_EQUAL(joined, 32);
    CHECK_EQUAL(hear(200, 1, 1, 10), HELIO_ACKS_JOINED);
    helio_acks_fini(&acks);
}

/* An acknowledgement in the name of the pair's first receiver. */
static void forge_of(const helio_acker *acker, const char *address, uint64_t incarnation,
                     uint8_t flags) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const uint32_t lead = (uint32_t)helio_tx_stream_lead(source.stream);
    const helio_pgm_acknowledge said = {
        .kind = HELIO_PGM_ACK_TRANSPORT,
        .flags = flags,
        .receiver = acker->receiver,
        .incarnation = incarnation,
        .first = (uint32_t)acker->first,
        .position = lead,
        .name = "mallory",
        .name_bytes = 7,
    };
    const helio_address from = world_address(address);
    const size_t length = helio_pgm_encode_ack(packet, &session, lead, 0, &said, NULL);
    helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
}

static void nobody_acknowledges_or_leaves_for_another(void) {
    begin_acked(1, HELIO_ACKS_MISSING_BLOCK, 1, HELIO_SINK_ACK_AUTO);
    send(10);
    world_run(&w, 100 * MS);
    const helio_acker acker = *helio_tx_stream_acker(source.stream, 0);
    silence(0, true);
    send(5);
    const uint64_t unacked = helio_cell(&source_counts()->history_unacked);
    CHECK(unacked > 0);
    forge_of(&acker, "10.0.0.66:6666", acker.incarnation, 0);
    forge_of(&acker, "10.0.0.66:6666", UINT64_MAX, 0);
    forge_of(&acker, "10.0.0.66:6666", acker.incarnation, HELIO_PGM_ACK_LEAVING);
    CHECK_EQUAL(helio_cell(&source_counts()->acks_refused_elsewhere), 3);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), unacked);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    silence(0, false);
    world_run(&w, 600 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    end_acked();
}

/* Receiver 77 acknowledges without a report, so the source knows its address alone. */
static void an_action_on_a_receiver_without_reports_holds_for_its_acknowledgements(void) {
    begin_acked(1, HELIO_ACKS_MISSING_DEGRADE, 0, HELIO_SINK_ACK_AUTO);
    send(10);
    const helio_address from = world_host(66, 6666);
    forge(5, 1, 0, 5, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    const helio_receiver_index index = helio_tx_stream_receiver_called(
        source.stream, helio_address_format(&from, (char[HELIO_ADDRESS_TEXT]){0}), 0);
    const uint64_t changes = events_of(HELIO_EVENT_ACKS_DEGRADED);
    CHECK_EQUAL(helio_tx_stream_act(source.stream, index, HELIO_ACTION_SUSPEND, HELIO_SECOND,
                                    "test", false, world_now(&w)),
                0);
    CHECK_EQUAL(events_of(HELIO_EVENT_ACKS_DEGRADED), changes + 1);
    CHECK_EQUAL(helio_tx_stream_act(source.stream, index, HELIO_ACTION_EXPEL, 0, "test", false,
                                    world_now(&w)),
                0);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 0);
    forge(6, 1, 0, 6, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->feedback_expelled), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 0);
    end_acked();
}

/* ---- a quorum of stores ---- */

static helio_tx_stability_limits limits;

/* Receivers of which the first `stores` are message stores. */
static void begin_quorum(uint32_t wanted, int missing, unsigned count, unsigned stores) {
    noted = 0;
    world_init(&w, 7, 2); /* with the histogram of stability */
    for (unsigned i = 0; i < count; i++) {
        listen_as(i, HELIO_SINK_ACK_AUTO, i < stores);
    }
    helio_tx_stream_config config = waiting_source(wanted, missing);
    config.acks_of_stores = true;
    config.unstable = limits;
    begin_source(config);
    world_run(&w, 5 * MS);
}

static bool is_stable(void) {
    return helio_tx_stream_is_stable(source.stream, helio_tx_stream_lead(source.stream));
}

static void only_stores_count_for_a_quorum_of_stores(void) {
    begin_quorum(2, HELIO_ACKS_MISSING_BLOCK, 3, 1);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 3);
    CHECK_EQUAL(helio_cell(&source_counts()->quorum_present), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->quorum_required), 2);
    send(3);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(inboxes[1].messages, 3);
    CHECK(!is_stable()); /* a store and two others have them */
    CHECK_EQUAL(helio_tx_stream_acked_by(source.stream, helio_tx_stream_lead(source.stream)), 3);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_messages), 3);
    CHECK(helio_cell(&source_counts()->unstable_bytes) > 0);
    CHECK(helio_cell(&source_counts()->acks_not_counted) > 0);
    CHECK_EQUAL(events_of(HELIO_EVENT_QUORUM_REACHED), 0);
    world_end_receiver(&listeners[1]);
    listeners[1].endpoint = NULL;
    listen_as(1, HELIO_SINK_ACK_AUTO, true);
    world_run(&w, HELIO_SECOND);
    CHECK(is_stable());
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_messages), 0);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_bytes), 0);
    CHECK_EQUAL(events_of(HELIO_EVENT_QUORUM_REACHED), 1);
    CHECK(strstr(event_text, "2 of 2 stores acknowledge"));
    end_acked();
}

static void any_one_store_of_three_may_go_and_a_lost_quorum_is_reported_once(void) {
    begin_quorum(2, HELIO_ACKS_MISSING_BLOCK, 3, 3);
    CHECK_EQUAL(events_of(HELIO_EVENT_QUORUM_REACHED), 1);
    silence(0, true);
    send(5);
    world_run(&w, 50 * MS);
    CHECK(is_stable());
    world_run(&w, 6 * HELIO_SECOND); /* it has expired */
    CHECK_EQUAL(events_of(HELIO_EVENT_QUORUM_LOST), 0);
    CHECK_EQUAL(helio_cell(&source_counts()->quorum_present), 2);
    silence(1, true);
    send(5);
    world_run(&w, 12 * HELIO_SECOND);
    CHECK(!is_stable());
    CHECK_EQUAL(events_of(HELIO_EVENT_QUORUM_LOST), 1);
    CHECK(strstr(event_text, "1 of 2 stores acknowledge"));
    CHECK_EQUAL(helio_cell(&source_counts()->quorum_losses), 1);
    silence(1, false);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(is_stable());
    CHECK_EQUAL(events_of(HELIO_EVENT_QUORUM_REACHED), 2);
    end_acked();
}

/* With acks_missing=degrade packets leave the history, but nothing is called stable for that. */
static void what_leaves_without_the_quorum_is_not_stable(void) {
    begin_quorum(2, HELIO_ACKS_MISSING_DEGRADE, 2, 1);
    send(5);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->history_unacked), 0);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_messages), 0);
    CHECK(!is_stable());
    end_acked();
}

static void the_latency_of_stability_has_each_message_once(void) {
    begin_quorum(2, HELIO_ACKS_MISSING_BLOCK, 2, 2);
    const helio_stats_object *object = helio_tx_stream_object(source.stream);
    const helio_hdr *histogram = object->histogram[HELIO_TX_STREAM_STABILITY_LATENCY];
    CHECK(histogram);
    static uint8_t data[4000];
    send(10);
    CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, data, sizeof data,
                                       world_now(&w).wall_ns, world_now(&w)),
                0); /* three packets, one message */
    helio_tx_stream_flush(source.stream, world_now(&w));
    CHECK(helio_cell(&source_counts()->unstable_messages) >= 1);
    helio_sim_wake(source.node);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_messages), 0);
    uint64_t recorded = 0;
    for (size_t i = 0; i < HELIO_HDR_CELLS; i++) {
        recorded += helio_cell(&histogram->counts[i]);
    }
    CHECK_EQUAL(recorded, 11);
    CHECK(helio_cell(&histogram->sum) > 0);
    end_acked();
}

/* A confirmation of what was never sent, or from a receiver that is no store. */
static void forged_confirmations_make_nothing_stable(void) {
    begin_quorum(1, HELIO_ACKS_MISSING_BLOCK, 0, 0);
    send(10);
    forge(1000, 1, 0, 1000, HELIO_PGM_ACK_STORE);
    CHECK_EQUAL(helio_cell(&source_counts()->acks_refused_impossible), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->quorum_present), 0);
    const uint32_t lead = (uint32_t)helio_tx_stream_lead(source.stream);
    forge(lead, 1, 0, lead, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->acks_not_counted), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->receivers_acknowledging), 1);
    CHECK(!is_stable());
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_messages), 10);
    forge(lead, 1, 0, lead, 0x80); /* a flag of a later version is no store's */
    CHECK(!is_stable());
    end_acked();
}

static helio_admission ask_for(size_t length) {
    return helio_tx_stream_admit(source.stream, topic, length, world_now(&w));
}

static void as_many_messages_as_allowed_are_not_stable(void) {
    limits = (helio_tx_stability_limits){.messages = 4};
    begin_quorum(1, HELIO_ACKS_MISSING_BLOCK, 1, 1);
    silence(0, true);
    CHECK_EQUAL(send_while_room(100), 4);
    CHECK_EQUAL(ask_for(5), HELIO_ADMIT_UNSTABLE_MESSAGES);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_GO);
    CHECK_EQUAL(events_of(HELIO_EVENT_UNSTABLE_LIMIT), 1);
    CHECK(strstr(event_text, "at the limit unstable_messages=4"));
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_at_limit), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_limits), 1);
    world_run(&w, 20 * MS);
    silence(0, false);
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_at_limit), 0);
    CHECK(helio_cell(&source_counts()->unstable_blocked_time) >= 20 * MS);
    CHECK_EQUAL(ask_for(5), HELIO_ADMIT_GO);
    /* A list joins the open packet no further than the limit goes. */
    helio_buffer list[10];
    for (size_t i = 0; i < 10; i++) {
        list[i] = (helio_buffer){"hello", 5};
    }
    const helio_moment now = world_now(&w);
    helio_tx_stream_append(source.stream, topic, "hello", 5, now.wall_ns, now);
    CHECK_EQUAL(
        helio_tx_stream_append_run(source.stream, topic, list, 10, 100, now.wall_ns, 0, now), 3);
    CHECK_EQUAL(ask_for(5), HELIO_ADMIT_UNSTABLE_MESSAGES);
    end_acked();
    limits = (helio_tx_stability_limits){0};
}

static void as_many_bytes_as_allowed_are_not_stable_but_one_message_goes(void) {
    limits = (helio_tx_stability_limits){.bytes = 300};
    begin_quorum(1, HELIO_ACKS_MISSING_BLOCK, 1, 1);
    silence(0, true);
    CHECK_EQUAL(ask_for(1000), HELIO_ADMIT_GO);
    const int sent = send_while_room(100);
    CHECK(sent >= 2 && sent <= 6);
    CHECK(helio_cell(&source_counts()->unstable_bytes) <= 300 + 100);
    CHECK_EQUAL(ask_for(5), HELIO_ADMIT_UNSTABLE_BYTES);
    CHECK(strstr(helio_admission_text[ask_for(5)].refused, "unstable_bytes"));
    end_acked();
    limits = (helio_tx_stability_limits){0};
}

static void limits_may_refuse_or_only_report(void) {
    limits = (helio_tx_stability_limits){.messages = 2, .action = HELIO_UNSTABLE_ACTION_REFUSE};
    begin_quorum(1, HELIO_ACKS_MISSING_BLOCK, 1, 1);
    silence(0, true);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_GO);
    CHECK_EQUAL(send_while_room(100), 2);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_UNSTABLE_MESSAGES);
    end_acked();
    limits.action = HELIO_UNSTABLE_ACTION_REPORT;
    begin_quorum(1, HELIO_ACKS_MISSING_BLOCK, 1, 1);
    silence(0, true);
    CHECK_EQUAL(send_while_room(10), 10);
    CHECK_EQUAL(events_of(HELIO_EVENT_UNSTABLE_LIMIT), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->unstable_limits), 1);
    CHECK_EQUAL(helio_tx_stream_refusal(source.stream), HELIO_ADMIT_GO);
    end_acked();
    limits = (helio_tx_stability_limits){0};
}

static void a_message_is_found_by_its_number(void) {
    begin_quorum(1, HELIO_ACKS_MISSING_BLOCK, 1, 1);
    uint64_t sequence;
    CHECK(!helio_tx_stream_has_sent(source.stream, topic, 0, &sequence));
    const uint64_t first = helio_tx_stream_lead(source.stream) + 1;
    send(3); /* a packet each */
    CHECK(helio_tx_stream_has_sent(source.stream, topic, 0, &sequence));
    CHECK_EQUAL(sequence, first);
    CHECK(helio_tx_stream_has_sent(source.stream, topic, 2, &sequence));
    CHECK_EQUAL(sequence, helio_tx_stream_lead(source.stream));
    CHECK(!helio_tx_stream_has_sent(source.stream, topic, 3, &sequence));
    end_acked();
}

/* ---- stores that a source announces ---- */

static uint32_t stores_known_to(unsigned i, helio_address *out) {
    return helio_rx_endpoint_stores(listeners[i].endpoint, out, HELIO_PGM_STORES_MAX);
}

static void a_source_announces_the_stores_that_say_where_they_can_be_read(void) {
    const helio_address service = world_host(9, 7800), open = {.port = 7801};
    helio_address found[HELIO_PGM_STORES_MAX];
    world_init(&w, 7, 1);
    listen_at(0, HELIO_SINK_ACK_AUTO, true, service);
    listen_at(1, HELIO_SINK_ACK_AUTO, true, open);
    listen_at(2, HELIO_SINK_ACK_AUTO, false, world_host(9, 7802)); /* it is no store */
    begin_source(waiting_source(0, HELIO_ACKS_MISSING_BLOCK));
    world_run(&w, 2 * HELIO_SECOND); /* a source that is silent does so too */
    CHECK_EQUAL(helio_cell(&source_counts()->stores_announced), 2);
    CHECK_EQUAL(stores_known_to(2, found), 2);
    const helio_address from = world_host(101, 7801);
    const bool is_first = helio_address_equal(&found[0], &service);
    CHECK(helio_address_equal(&found[!is_first], &service));
    CHECK(helio_address_equal(&found[is_first], &from)); /* where its ACKs come from */
    world_end_receiver(&listeners[1]);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(stores_known_to(2, found), 1);
    CHECK(helio_address_equal(&found[0], &service));
    silence(0, true); /* it is killed */
    world_run(&w, 8 * HELIO_SECOND);
    CHECK_EQUAL(stores_known_to(2, found), 0);
    CHECK_EQUAL(helio_cell(&source_counts()->stores_announced), 0);
    end_acked();
}

static void a_store_that_comes_back_elsewhere_is_announced_there(void) {
    helio_address found[HELIO_PGM_STORES_MAX];
    world_init(&w, 7, 1);
    listen_at(0, HELIO_SINK_ACK_AUTO, true, world_host(9, 7800));
    add_listener(2, HELIO_SINK_ACK_AUTO);
    begin_source(waiting_source(0, HELIO_ACKS_MISSING_BLOCK));
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(stores_known_to(2, found), 1);
    world_end_receiver(&listeners[0]);
    const helio_address moved = world_host(9, 7805);
    listen_at(0, HELIO_SINK_ACK_AUTO, true, moved);
    send(3);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK_EQUAL(stores_known_to(2, found), 1);
    CHECK(helio_address_equal(&found[0], &moved));
    end_acked();
}

static void at_most_eight_stores_are_announced_each_once(void) {
    helio_address found[HELIO_PGM_STORES_MAX];
    helio_acks_init(&acks, HELIO_ACKERS_MAX, HELIO_SECOND);
    for (uint64_t i = 0; i < 12; i++) {
        helio_acker what = heard(1 + i, 1, 100, 110 + i, 0), *acker;
        what.is_store = true;
        what.service = world_host(9, (uint16_t)(7800 + i / 2 * 2)); /* two share a service */
        helio_acks_hear(&acks, &what, false, &acker);
    }
    CHECK_EQUAL(helio_acks_services(&acks, found, HELIO_PGM_STORES_MAX), 6);
    CHECK_EQUAL(helio_acks_services(&acks, found, 4), 4);
    CHECK_EQUAL(found[0].port, 7810); /* of the store that has most */
    helio_acks_fini(&acks);
}

int main(void) {
    RUN(only_stores_count_for_a_quorum_of_stores);
    RUN(any_one_store_of_three_may_go_and_a_lost_quorum_is_reported_once);
    RUN(what_leaves_without_the_quorum_is_not_stable);
    RUN(the_latency_of_stability_has_each_message_once);
    RUN(forged_confirmations_make_nothing_stable);
    RUN(as_many_messages_as_allowed_are_not_stable);
    RUN(as_many_bytes_as_allowed_are_not_stable_but_one_message_goes);
    RUN(limits_may_refuse_or_only_report);
    RUN(a_message_is_found_by_its_number);
    RUN(wait_n_ack_counts_distinct_receivers_and_only_progress);
    RUN(a_new_life_counts_from_where_it_joined_and_an_old_one_no_more);
    RUN(those_that_joined_late_take_over_where_others_stop);
    RUN(silent_receivers_expire_and_a_full_registry_refuses);
    RUN(the_order_statistic_is_that_of_counting_each_packet);
    RUN(progress_is_told_after_so_many_packets_or_so_much_time);
    RUN(what_the_source_asks_for_is_told_at_once_but_not_before_it_can_be);
    RUN(the_application_acknowledges_whole_batches_in_order);
    RUN(wait_2_ack_of_3_holds_until_the_second_and_releases_before_the_third);
    RUN(wait_ack_stops_sending_when_the_history_is_full_and_drops_nothing);
    RUN(nak_mode_never_stops_and_drops_the_oldest);
    RUN(ack_mode_tells_of_receivers_without_holding_anything);
    RUN(app_ack_follows_the_application_and_not_the_delivery);
    RUN(one_receiver_by_application_holds_what_another_has_acknowledged);
    RUN(both_ways_of_one_endpoint_follow_the_slower);
    RUN(a_burst_is_acknowledged_at_once_when_it_ends);
    RUN(lost_acknowledgements_heal);
    RUN(a_receiver_that_acknowledges_does_not_give_up_what_the_source_holds);
    RUN(a_receiver_that_comes_late_gets_what_waits_for_it);
    RUN(a_receiver_that_comes_by_data_begins_with_what_waits_for_it_too);
    RUN(a_receiver_that_comes_by_data_waits_for_an_spm_that_is_late);
    RUN(without_any_spm_an_acknowledging_receiver_begins_when_the_stream_would_expire);
    RUN(a_receiver_that_goes_says_so_and_one_that_dies_expires);
    RUN(block_warns_once_of_receivers_that_are_not_there);
    RUN(degrade_takes_what_there_is_and_tells_each_change);
    RUN(fail_refuses_until_there_are_enough);
    RUN(the_end_of_a_topic_is_told_even_when_nothing_is_acknowledged);
    RUN(a_large_message_waits_for_room_for_all_of_it);
    RUN(impossible_acknowledgements_release_nothing);
    RUN(an_acker_is_bound_to_its_address_while_it_is_heard);
    RUN(no_life_begins_later_than_now);
    RUN(one_address_has_half_of_the_ackers);
    RUN(nobody_acknowledges_or_leaves_for_another);
    RUN(an_action_on_a_receiver_without_reports_holds_for_its_acknowledgements);
    RUN(a_source_announces_the_stores_that_say_where_they_can_be_read);
    RUN(a_store_that_comes_back_elsewhere_is_announced_there);
    RUN(at_most_eight_stores_are_announced_each_once);
    return check_result();
}
