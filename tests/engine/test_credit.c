/* Credit on a simulated network: every data packet is held against the grants that have reached the
 * source. */
#include "base/hash.h"
#include "pair.h"
#include "receive/credit.h"
#include "send/credit.h"
#include "wire/tsdu.h"

enum { CREDIT = 16, TOPICS = 2, RECEIVERS = 2 };

/* A receiver with an application that is done with messages when the test says so. */
typedef struct user {
    world_receiver at;
    bool is_there;
    uint64_t got, done, most_waiting, lost;
} user;

static user users[RECEIVERS];
static helio_tx_topic *topics[TOPICS];
static const char *const names[TOPICS] = {"t", "u"};
static uint64_t granted[TOPICS], sent[TOPICS], violations, grants_to_drop, data_packets;

static int index_of(uint64_t topic_id) {
    for (int i = 0; i < TOPICS; i++) {
        if (helio_hash_fnv1a(names[i], strlen(names[i])) == topic_id) {
            return i;
        }
    }
    return -1;
}

/* Grants on their way to the source; of one receiver the greatest counts.  (Of two, the source is
 * held against each other's in the test of the least.) */
static bool tap_up(void *context, const void *bytes, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    helio_pgm_packet packet;
    if (helio_pgm_decode(bytes, length, &packet) || !(packet.options & HELIO_PGM_HAS_GRANT)) {
        return false;
    }
    CHECK(packet.options & HELIO_PGM_HAS_REPORT);
    if (grants_to_drop > 0) {
        grants_to_drop--;
        return true;
    }
    for (uint32_t i = 0; i < packet.grants_count; i++) {
        const int which = index_of(packet.grants[i].topic);
        CHECK(which >= 0);
        if (which >= 0 && packet.grants[i].limit > granted[which] &&
            packet.grants[i].limit != HELIO_PGM_GRANT_UNBOUND) {
            granted[which] = packet.grants[i].limit;
        }
    }
    return false;
}

static bool tap_down(void *context, const void *bytes, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    helio_pgm_packet packet;
    helio_tsdu_header header;
    if (helio_pgm_decode(bytes, length, &packet) || packet.type != HELIO_PGM_TYPE_ODATA ||
        helio_tsdu_decode(packet.tsdu, packet.tsdu_bytes, &header) != HELIO_TSDU_OURS ||
        header.kind != HELIO_TSDU_KIND_MESSAGES) {
        return false;
    }
    const int which = index_of(header.topic_id);
    const uint64_t end = header.first_message + header.count;
    data_packets++;
    sent[which] = end > sent[which] ? end : sent[which];
    violations += end > granted[which];
    return false;
}

static size_t take_messages(void *context, const helio_message *messages, size_t count) {
    user *u = context;
    (void)messages;
    u->got += count;
    if (u->got - u->done > u->most_waiting) {
        u->most_waiting = u->got - u->done;
    }
    return count;
}

static void take_loss(void *context, const helio_loss *loss) {
    ((user *)context)->lost += loss->count;
}

static uint64_t read_waiting(void *context, uint32_t stream) {
    const user *u = context;
    (void)stream;
    return u->got - u->done;
}

static helio_subscription *want(user *u, const char *name, uint64_t credit) {
    const helio_sink sink = {.context = u,
                             .on_messages = take_messages,
                             .on_loss = take_loss,
                             .credit = credit,
                             .read_waiting = read_waiting};
    helio_subscription *subscription = NULL;
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(u->at.endpoint, name, &sink, world_now(&w), &subscription), 0);
    helio_sim_wake(u->at.node);
    return subscription;
}

static void come(int number) {
    user *u = &users[number];
    helio_rx_endpoint_config config = world_receiver_config(100 + (unsigned)number);
    config.receiver = 0x5EED + (uint64_t)number;
    *u = (user){.is_there = true};
    world_add_receiver(&w, &u->at, &config);
    helio_sim_set_link(u->at.node, &(helio_sim_link){.delay_ns = 20 * US, .drops = tap_down});
}

static void go(int number) {
    world_end_receiver(&users[number].at);
    users[number].is_there = false;
}

static void open_source(bool awaits) {
    helio_tx_stream_config config = world_source_config(1);
    config.awaits_credit = awaits;
    config.report_interval_ns = 100 * MS;
    world_add_source(&w, &source, &config);
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = 20 * US, .drops = tap_up});
    for (int i = 0; i < TOPICS; i++) {
        CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, names[i], world_now(&w), &topics[i]),
                    0);
    }
}

static void open_world(void) {
    world_init(&w, 3, 1);
    memset(granted, 0, sizeof granted);
    memset(sent, 0, sizeof sent);
    memset(users, 0, sizeof users);
    violations = grants_to_drop = data_packets = 0;
}

static void close_world(void) {
    for (int i = 0; i < RECEIVERS; i++) {
        if (users[i].is_there) {
            go(i);
        }
    }
    world_end_source(&source);
    world_fini(&w);
}

/* As many messages as credit allows, at most `count`; how many they were. */
static int offer(int which, int count) {
    int i = 0;
    for (; i < count && helio_tx_stream_credit(source.stream, topics[which]) > 0; i++) {
        helio_tx_stream_append(source.stream, topics[which], "hello", 5, world_now(&w).wall_ns,
                               world_now(&w));
    }
    if (i < count) {
        helio_tx_stream_wait_for_credit(source.stream, topics[which], world_now(&w));
    }
    helio_tx_stream_flush(source.stream, world_now(&w));
    helio_sim_wake(source.node);
    return i;
}

/* The application is done with some more. */
static void finish(user *u, uint64_t count) {
    u->done += count < u->got - u->done ? count : u->got - u->done;
    helio_rx_endpoint_grant(u->at.endpoint, world_now(&w));
    helio_sim_wake(u->at.node);
}

/* Until `total` messages were sent, or two minutes have passed; each application is done with one
 * in a millisecond.  Returns how many were. */
static int pump(int which, int total) {
    int done = 0;
    for (int i = 0; i < 120000 && done < total; i++) {
        done += offer(which, total - done);
        world_run(&w, MS);
        for (int k = 0; k < RECEIVERS; k++) {
            if (users[k].is_there) {
                finish(&users[k], 1);
            }
        }
    }
    return done;
}

static const helio_transmitter_stats *topic_counts(int which) {
    return helio_tx_topic_object(topics[which])->record;
}

/* ---- a receiver ---- */

static void a_slow_receiver_paces_its_source_and_nothing_is_lost(void) {
    open_world();
    come(0);
    want(&users[0], "t", CREDIT);
    open_source(true);
    CHECK_EQUAL(offer(0, 1), 0); /* nothing was granted yet */
    const int64_t begin_ns = world_now(&w).now_ns;
    CHECK_EQUAL(pump(0, 500), 500);
    CHECK(world_now(&w).now_ns - begin_ns > (500 - 2 * CREDIT) * MS);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(users[0].got, 500);
    CHECK_EQUAL(users[0].lost, 0);
    CHECK_EQUAL(users[0].most_waiting, CREDIT);
    CHECK_EQUAL(violations, 0);
    CHECK_EQUAL(sent[0], 500);
    CHECK_EQUAL(topic_counts(0)->credit_limit, granted[0]);
    CHECK(topic_counts(0)->credit_waits > 500 / CREDIT);
    CHECK(topic_counts(0)->credit_wait_time > 300 * MS);
    close_world();
}

static void a_source_that_awaits_none_sends_as_it_likes(void) {
    open_world();
    come(0);
    want(&users[0], "t", CREDIT);
    open_source(false);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(source_counts()->grants_received, 0); /* nor is it told */
    CHECK_EQUAL(topic_counts(0)->credit_waits, HELIO_STATS_ABSENT);
    close_world();
}

static void lost_grants_heal(void) {
    open_world();
    come(0);
    want(&users[0], "t", CREDIT);
    open_source(true);
    CHECK_EQUAL(pump(0, 100), 100);
    for (int i = 0; i < 10; i++) {
        grants_to_drop = 4;
        CHECK_EQUAL(pump(0, 3 * CREDIT), 3 * CREDIT);
        CHECK_EQUAL(grants_to_drop, 0);
    }
    CHECK_EQUAL(violations, 0);
    close_world();
}

static void a_receiver_that_is_started_anew_begins_anew(void) {
    open_world();
    come(0);
    want(&users[0], "t", CREDIT);
    open_source(true);
    CHECK_EQUAL(pump(0, 100), 100);
    go(0);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(helio_tx_stream_credit(source.stream, topics[0]), 0);
    come(0);
    want(&users[0], "t", 4);
    world_run(&w, 5 * MS); /* it comes late, and is told where the topic stands */
    world_run(&w, 600 * MS);
    CHECK_EQUAL(helio_tx_stream_credit(source.stream, topics[0]), 4);
    CHECK_EQUAL(pump(0, 100), 100);
    CHECK_EQUAL(users[0].most_waiting, 4);
    CHECK_EQUAL(users[0].lost, 0);
    CHECK_EQUAL(violations, 0);
    close_world();
}

static void topics_have_their_own_credit(void) {
    open_world();
    come(0);
    come(1);
    want(&users[0], "t", CREDIT);
    want(&users[1], "u", 3);
    open_source(true);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(offer(0, 100), CREDIT);
    CHECK_EQUAL(offer(1, 100), 3);
    world_run(&w, MS);
    finish(&users[1], 3);
    world_run(&w, MS);
    CHECK_EQUAL(offer(0, 100), 0);
    CHECK_EQUAL(offer(1, 100), 3);
    world_run(&w, MS);
    CHECK_EQUAL(users[0].got, CREDIT);
    CHECK_EQUAL(users[1].got, 6);
    CHECK_EQUAL(violations, 0);
    close_world();
}

/* ---- several ---- */

static void the_receiver_that_grants_least_holds_the_source_until_it_goes(void) {
    open_world();
    come(0);
    come(1);
    want(&users[0], "t", CREDIT);
    helio_subscription *slow = want(&users[1], "t", CREDIT);
    open_source(true);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(offer(0, 100), CREDIT);
    world_run(&w, MS);
    finish(&users[0], CREDIT);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(offer(0, 100), 0);
    helio_rx_endpoint_unsubscribe(users[1].at.endpoint, slow, world_now(&w));
    world_run(&w, MS);
    CHECK_EQUAL(offer(0, 100), CREDIT);
    world_run(&w, MS);
    CHECK_EQUAL(users[0].got, 2 * CREDIT);
    close_world();
}

static void a_receiver_that_falls_silent_holds_nobody_for_long(void) {
    open_world();
    come(0);
    come(1);
    want(&users[0], "t", CREDIT);
    want(&users[1], "t", CREDIT);
    open_source(true);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(offer(0, 100), CREDIT);
    world_run(&w, MS);
    helio_rx_endpoint *still = users[1].at.endpoint;
    users[1].at.endpoint = NULL; /* its machine stands still */
    users[1].is_there = false;
    for (int i = 0; i < 3500; i++) {
        finish(&users[0], 1);
        world_run(&w, MS);
    }
    CHECK_EQUAL(offer(0, 100), 0);
    for (int i = 0; i < 1500; i++) {
        finish(&users[0], 1);
        world_run(&w, MS);
    }
    CHECK_EQUAL(offer(0, 100), CREDIT);
    users[1].at.endpoint = still;
    users[1].is_there = true;
    close_world();
}

static void a_suspended_receiver_holds_nobody(void) {
    open_world();
    come(0);
    come(1);
    want(&users[0], "t", CREDIT);
    want(&users[1], "t", 1);
    open_source(true);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(offer(0, 100), 1);
    const uint32_t place = helio_tx_stream_find(source.stream, 0x5EED + 1);
    CHECK_EQUAL(helio_tx_stream_act(source.stream, place, HELIO_ACTION_SUSPEND, 0, "lag", true,
                                    world_now(&w)),
                0);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(offer(0, 100), CREDIT - 1);
    CHECK_EQUAL(
        helio_tx_stream_act(source.stream, place, HELIO_ACTION_RESUME, 0, "", true, world_now(&w)),
        0);
    world_run(&w, 200 * MS);
    finish(&users[0], CREDIT);
    world_run(&w, MS);
    CHECK_EQUAL(offer(0, 100), 0);
    close_world();
}

/* ---- hostile ---- */

static void say(const helio_address *from, uint64_t receiver, uint64_t topic_id, uint64_t limit) {
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const helio_pgm_receiver_report told = {
        .receiver = receiver, .incarnation = UINT64_MAX, .position = UINT32_MAX};
    const helio_pgm_grant grant = {topic_id, limit};
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const size_t length = helio_pgm_encode_ack_with(packet, &session, UINT32_MAX, 0, NULL,
                                                    receiver ? &told : NULL, &grant, 1, NULL);
    helio_tx_stream_on_packet(source.stream, packet, length, from, world_now(&w));
}

static void grants_that_nobody_can_give_are_refused_and_counted(void) {
    open_world();
    come(0);
    want(&users[0], "t", CREDIT);
    open_source(true);
    world_run(&w, 10 * MS);
    const helio_address other = world_host(200, 50000);
    const uint64_t id = helio_hash_fnv1a("t", 1);
    const uint64_t before = topic_counts(0)->credit_limit;
    CHECK_EQUAL(before, CREDIT);
    say(&other, 0x5EED, id, 1000); /* in another's name */
    CHECK_EQUAL(source_counts()->grants_refused_unproven, 1);
    say(&other, 0xBAD, id + 1, 1000);
    CHECK_EQUAL(source_counts()->grants_refused_topic, 1);
    say(&other, 0xBAD, id, HELIO_TX_CREDIT_MAX + 1);
    CHECK_EQUAL(source_counts()->grants_refused_impossible, 1);
    CHECK_EQUAL(topic_counts(0)->credit_limit, before);
    CHECK_EQUAL(helio_tx_stream_credit(source.stream, topics[0]), CREDIT);
    close_world();
    open_world();
    open_source(false);
    say(&other, 0xBAD, id, 10);
    CHECK_EQUAL(source_counts()->grants_refused_not_awaited, 1);
    close_world();
}

static void what_was_granted_is_not_taken_back(void) {
    open_world();
    open_source(true);
    world_run(&w, 10 * MS);
    const helio_address other = world_host(200, 50000);
    const uint64_t id = helio_hash_fnv1a("t", 1);
    for (uint64_t limit = 10; limit > 0; limit--) {
        say(&other, 0xBAD, id, limit);
        CHECK_EQUAL(helio_tx_stream_credit(source.stream, topics[0]), 10);
    }
    say(&other, 0xBAD, id, HELIO_PGM_GRANT_UNBOUND);
    CHECK_EQUAL(helio_tx_stream_credit(source.stream, topics[0]), 0);
    close_world();
}

/* ---- time ---- */

static void a_source_that_waits_for_credit_goes_on_telling_where_it_is_and_does_not_spin(void) {
    open_world();
    come(0);
    open_source(true);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(offer(0, 1), 0);
    world_run(&w, 2 * HELIO_SECOND);
    helio_tx_stream_poll(source.stream, world_now(&w));
    CHECK(helio_tx_stream_next_deadline_ns(source.stream) > world_now(&w).now_ns);
    CHECK(source_counts()->heartbeats_sent >= 4);
    CHECK_EQUAL(data_packets, 0);
    CHECK(topic_counts(0)->credit_wait_time > 1900 * MS);
    want(&users[0], "t", 1); /* and what comes late is told at once */
    world_run(&w, 5 * MS);
    CHECK_EQUAL(offer(0, 2), 1);
    close_world();
}

int main(void) {
    RUN(a_slow_receiver_paces_its_source_and_nothing_is_lost);
    RUN(a_source_that_awaits_none_sends_as_it_likes);
    RUN(lost_grants_heal);
    RUN(a_receiver_that_is_started_anew_begins_anew);
    RUN(topics_have_their_own_credit);
    RUN(the_receiver_that_grants_least_holds_the_source_until_it_goes);
    RUN(a_receiver_that_falls_silent_holds_nobody_for_long);
    RUN(a_suspended_receiver_holds_nobody);
    RUN(grants_that_nobody_can_give_are_refused_and_counted);
    RUN(what_was_granted_is_not_taken_back);
    RUN(a_source_that_waits_for_credit_goes_on_telling_where_it_is_and_does_not_spin);
    return check_result();
}
