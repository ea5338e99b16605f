/* Sources that follow their receivers, the engine's own code from end to end on a simulated
 * network: windows pace the source to whom they say, PGMCC finds a bottleneck and fills it. */
#include "check.h"
#include "generated/options.h"
#include "send/parts.h"
#include "world.h"

#define MS HELIO_MILLISECOND

enum { RECEIVERS = 3, MESSAGE = 1400, PACKET = 1464, WINDOW = 512 };

static const uint8_t body[MESSAGE];

/* A receiver whose application takes `rate` messages a second; 0: all there are. */
typedef struct consumer {
    world_receiver receiver;
    uint64_t rate;
    int64_t from_ns;
    uint64_t taken;
    uint64_t lost;
} consumer;

static world w;
static world_source source;
static consumer consumers[RECEIVERS];
static helio_tx_topic *topic;
static helio_sim_pipe *bottleneck;

/* Packets the source's application sent in one moment of virtual time. */
static struct {
    int64_t at_ns;
    unsigned count;
    unsigned most;
} burst;

static size_t take(void *context, const helio_message *messages, size_t count) {
    (void)messages;
    consumer *c = context;
    size_t room = count;
    if (c->rate) {
        const uint64_t due =
            (uint64_t)(world_now(&w).now_ns - c->from_ns) * c->rate / (uint64_t)HELIO_SECOND;
        room = due > c->taken ? due - c->taken : 0;
        room = room < count ? room : count;
    }
    c->taken += room;
    return room;
}

static void count_loss(void *context, const helio_loss *loss) {
    ((consumer *)context)->lost += loss->count;
}

/* The application of a slow receiver has room again now and then: it is polled for it. */
static int64_t consumer_deadline_ns(void *context) {
    const helio_rx_endpoint *endpoint = ((world_receiver *)context)->endpoint;
    const int64_t deadline_ns = helio_rx_endpoint_next_deadline_ns(endpoint);
    const int64_t look_ns = world_now(&w).now_ns + MS;
    return helio_rx_endpoint_is_blocked(endpoint) && look_ns < deadline_ns ? look_ns : deadline_ns;
}

/* The source's application always has something to send. */
static void poll_source(void *context, helio_moment moment) {
    (void)context;
    while (helio_tx_stream_admit(source.stream, topic, MESSAGE, moment) == HELIO_ADMIT_GO) {
        burst.count = burst.at_ns == moment.now_ns ? burst.count + 1 : 1;
        burst.at_ns = moment.now_ns;
        burst.most = burst.count > burst.most ? burst.count : burst.most;
        helio_tx_stream_append(source.stream, topic, body, MESSAGE, moment.wall_ns, moment);
        helio_tx_stream_flush(source.stream, moment);
    }
    helio_tx_stream_poll(source.stream, moment);
}

static void add_consumer(unsigned i, uint64_t rate, bool is_tagged) {
    helio_rx_endpoint_config config = world_receiver_config(100 + i);
    config.window_packets = WINDOW;
    config.receiver = 100 + i;
    config.is_tagged = is_tagged;
    consumers[i] = (consumer){.rate = rate, .from_ns = world_now(&w).now_ns};
    world_receiver *receiver = &consumers[i].receiver;
    world_add_receiver(&w, receiver, &config);
    helio_sim_attach(receiver->node,
                     &(helio_sim_handler){receiver, world_receiver_on_packet, world_receiver_poll,
                                          consumer_deadline_ns});
    helio_sim_set_link(receiver->node, &(helio_sim_link){.delay_ns = MS / 10});
    const helio_sink sink = {&consumers[i], .on_messages = take, .on_loss = count_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver->endpoint, "t", &sink, world_now(&w), &subscription),
        0);
}

static void begin_source(int window, const char *policy, uint64_t pipe_rate) {
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 2048;
    config.report_interval_ns = 10 * MS;
    config.report_rate = 10000;
    config.pace.rate = policy ? 0 : 20000000;
    config.follow = (helio_tx_follow_config){.window = window, .silence_ns = HELIO_SECOND};
    config.govern = (helio_tx_govern_config){
        .interval_ns = 10 * MS,
        .policy = policy ? policy : "static",
        .mode = HELIO_RATE_MODE_ENFORCE,
        .rate = {.rate = policy ? 0 : 20000000, .loss_high = 0.01, .loss_low = 0.001},
    };
    world_add_source(&w, &source, &config);
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = MS / 10});
    if (pipe_rate) {
        const helio_sim_pipe_config narrow = {.rate = pipe_rate, .queue_bytes = 60 * PACKET};
        bottleneck = helio_sim_add_pipe(w.sim, &narrow);
        CHECK(bottleneck);
        helio_sim_set_uplink(source.node, bottleneck);
    }
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    helio_sim_attach(source.node, &(helio_sim_handler){&source, world_source_on_packet, poll_source,
                                                       world_eager_deadline});
    helio_sim_wake(source.node);
}

static void end(void) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&consumers[i].receiver);
    }
    world_end_source(&source);
    world_fini(&w);
}

static helio_tx_stream_stats *counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

/* Two that take all, one, tagged or not, that takes 2,000 a second of the 13,000 offered. */
static void begin(int window, bool is_tagged) {
    world_init(&w, 5, 0);
    add_consumer(0, 0, !is_tagged);
    add_consumer(1, 0, !is_tagged);
    add_consumer(2, 2000, is_tagged);
    begin_source(window, NULL, 0);
    world_run(&w, 3 * HELIO_SECOND);
}

static void min_paces_the_source_to_the_slowest_and_nobody_loses(void) {
    begin(HELIO_FLOW_WINDOW_MIN, false);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        CHECK_EQUAL(consumers[i].lost, 0);
        CHECK(consumers[i].taken > 5500 && consumers[i].taken < 6000 + 2 * WINDOW);
    }
    CHECK(counts()->rate_limited_time > 0);
    end();
}

static void without_a_window_the_slowest_loses_and_the_others_are_not_held_up(void) {
    begin(HELIO_FLOW_WINDOW_NONE, false);
    CHECK(consumers[0].taken > 35000 && consumers[0].lost == 0);
    CHECK(consumers[2].lost > 0);
    end();
}

static void max_does_not_wait_for_the_slowest(void) {
    begin(HELIO_FLOW_WINDOW_MAX, false);
    CHECK(consumers[0].taken > 35000 && consumers[0].lost == 0);
    end();
}

static void tagged_waits_for_the_slowest_only_when_it_is_tagged(void) {
    begin(HELIO_FLOW_WINDOW_TAGGED, true);
    CHECK_EQUAL(consumers[2].lost, 0);
    CHECK(consumers[0].taken < 6000 + 2 * WINDOW);
    end();
    begin(HELIO_FLOW_WINDOW_TAGGED, false);
    CHECK(consumers[0].taken > 35000);
    end();
}

static void a_receiver_that_falls_silent_is_waited_for_as_long_as_is_said(void) {
    begin(HELIO_FLOW_WINDOW_MIN, false);
    const uint64_t before = consumers[0].taken;
    helio_sim_set_partition(consumers[2].receiver.node, 1);
    world_run(&w, 900 * MS);
    CHECK(consumers[0].taken - before < 4 * WINDOW);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(consumers[0].taken - before > 20000);
    end();
}

static void the_rule_can_be_changed_while_it_runs(void) {
    begin(HELIO_FLOW_WINDOW_MIN, false);
    const uint64_t before = consumers[0].taken;
    helio_tx_stream_set_window(source.stream, HELIO_FLOW_WINDOW_NONE, world_now(&w));
    helio_sim_wake(source.node);
    world_run(&w, HELIO_SECOND);
    CHECK(consumers[0].taken - before > 10000);
    end();
}

static void however_often_it_asks_anew_the_rate_is_kept(void) {
    begin(HELIO_FLOW_WINDOW_MIN, false);
    helio_tx_stream_set_rate(source.stream, 100000, world_now(&w));
    const uint64_t before = counts()->heartbeats_sent;
    for (int i = 0; i < 1000; i++) {
        helio_tx_stream_set_window(
            source.stream, i % 2 ? HELIO_FLOW_WINDOW_MIN : HELIO_FLOW_WINDOW_NONE, world_now(&w));
    }
    CHECK(counts()->heartbeats_sent - before < 100);
    end();
}

/* 5,000 packets a second, a round trip of half a millisecond and a queue of twelve. */
static void begin_pgmcc(double loss) {
    world_init(&w, 6, 0);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        add_consumer(i, 0, false);
    }
    begin_source(HELIO_FLOW_WINDOW_NONE, "pgmcc", 5000 * PACKET);
    helio_sim_set_link(consumers[1].receiver.node,
                       &(helio_sim_link){.delay_ns = MS / 10, .loss = loss});
    world_run(&w, 2 * HELIO_SECOND);
}

static void pgmcc_fills_a_bottleneck_and_nobody_loses_for_good(void) {
    begin_pgmcc(0);
    const uint64_t before = consumers[0].taken;
    world_run(&w, 5 * HELIO_SECOND);
    const double share = (double)(consumers[0].taken - before) / (5 * 5000.0);
    printf("      it takes %.0f %% of the bottleneck; window %llu, %llu cuts\n", 100 * share,
           (unsigned long long)counts()->pgmcc_window, (unsigned long long)counts()->pgmcc_cuts);
    CHECK(share > 0.8 && share <= 1.01);
    CHECK(counts()->pgmcc_cuts > 0);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        CHECK_EQUAL(consumers[i].lost, 0);
    }
    end();
}

/* Its acknowledgements are PGMCC's clock: held back and told together, they would let bursts out
 * that fill the queue of a bottleneck, to the loss of everybody who shares it. */
static void the_acker_answers_each_packet_at_once_so_nothing_leaves_in_bursts(void) {
    begin_pgmcc(0);
    burst.most = 0;
    world_run(&w, 5 * HELIO_SECOND);
    printf("      at most %u packets leave together\n", burst.most);
    CHECK(burst.most > 0 && burst.most <= 4);
    end();
}

static void pgmcc_follows_the_receiver_that_loses_most(void) {
    begin_pgmcc(0.02);
    CHECK_EQUAL(source.stream->follow.acker, 101);
    const uint64_t before = consumers[0].taken;
    world_run(&w, 5 * HELIO_SECOND);
    const double share = (double)(consumers[0].taken - before) / (5 * 5000.0);
    printf("      it takes %.0f %% with 2 %% lost at the worst receiver\n", 100 * share);
    CHECK(share > 0.1 && share < 1.01);
    /* The worst goes: another takes its place, and the rate rises. */
    helio_sim_set_link(consumers[1].receiver.node, &(helio_sim_link){.delay_ns = MS / 10});
    world_run(&w, 5 * HELIO_SECOND);
    const uint64_t later = consumers[0].taken;
    world_run(&w, 5 * HELIO_SECOND);
    CHECK((double)(consumers[0].taken - later) / (5 * 5000.0) > 0.8);
    end();
}

static void pgmcc_survives_that_its_acker_vanishes(void) {
    begin_pgmcc(0);
    CHECK(source.stream->follow.acker >= 100);
    helio_sim_set_partition(consumers[source.stream->follow.acker - 100].receiver.node, 1);
    world_run(&w, 2 * HELIO_SECOND);
    const uint64_t before = consumers[0].taken + consumers[1].taken + consumers[2].taken;
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(consumers[0].taken + consumers[1].taken + consumers[2].taken - before > 10000);
    end();
}

/* Nobody reports: as nobody is there, or receivers of another make are. */
static void pgmcc_holds_nothing_back_for_nobody_and_begins_with_the_first_to_report(void) {
    world_init(&w, 7, 0);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        consumers[i] = (consumer){0};
    }
    begin_source(HELIO_FLOW_WINDOW_NONE, "pgmcc", 5000 * PACKET);
    helio_tx_stream_set_rate(source.stream, 4000 * PACKET, world_now(&w));
    world_run(&w, 500 * MS);
    const uint64_t first = source.stream->txw.lead;
    CHECK(first - (UINT64_C(1) << 32) < 10);
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(source.stream->follow.is_alone);
    CHECK(source.stream->txw.lead - first > 4000);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        add_consumer(i, 0, false);
    }
    world_run(&w, HELIO_SECOND);
    CHECK(!source.stream->follow.is_alone);
    CHECK(source.stream->follow.acker >= 100);
    const uint64_t before = consumers[0].taken;
    world_run(&w, 2 * HELIO_SECOND);
    CHECK(consumers[0].taken - before > 5000);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_sim_set_partition(consumers[i].receiver.node, 1);
    }
    world_run(&w, 200 * MS);
    const uint64_t last = source.stream->txw.lead;
    world_run(&w, 500 * MS);
    CHECK(source.stream->txw.lead - last < 20); /* silence may be the network's: hardly any */
    world_run(&w, 3 * HELIO_SECOND);
    CHECK(source.stream->txw.lead - last > 4000);
    end();
}

int main(void) {
    RUN(min_paces_the_source_to_the_slowest_and_nobody_loses);
    RUN(without_a_window_the_slowest_loses_and_the_others_are_not_held_up);
    RUN(max_does_not_wait_for_the_slowest);
    RUN(tagged_waits_for_the_slowest_only_when_it_is_tagged);
    RUN(a_receiver_that_falls_silent_is_waited_for_as_long_as_is_said);
    RUN(the_rule_can_be_changed_while_it_runs);
    RUN(however_often_it_asks_anew_the_rate_is_kept);
    RUN(pgmcc_fills_a_bottleneck_and_nobody_loses_for_good);
    RUN(the_acker_answers_each_packet_at_once_so_nothing_leaves_in_bursts);
    RUN(pgmcc_follows_the_receiver_that_loses_most);
    RUN(pgmcc_survives_that_its_acker_vanishes);
    RUN(pgmcc_holds_nothing_back_for_nobody_and_begins_with_the_first_to_report);
    return check_result();
}
