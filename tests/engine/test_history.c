/* The history: receivers that come late, limits that move, and what is gone for good. */
#include "pair.h"
#include "receive/replay.h"

enum { LATE = 200 }; /* numbers of nodes from here on */

static helio_tx_stream_config offering(uint32_t window) {
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = window;
    config.late_join = true;
    return config;
}

static helio_rx_endpoint_config wanting_history(unsigned number, uint32_t window) {
    helio_rx_endpoint_config config = world_receiver_config(number);
    config.window_packets = window;
    config.join_history = true;
    return config;
}

static void begin_offering(uint32_t window) {
    begin_receiver(world_receiver_config(100));
    begin_source(offering(window));
    world_run(&w, 100 * US);
}

typedef struct latecomer {
    world_receiver receiver;
    inbox in;
} latecomer;

static void come(latecomer *late, helio_rx_endpoint_config config) {
    world_add_receiver(&w, &late->receiver, &config);
    subscribe(&late->receiver, &late->in);
}

/* All messages from the first to the last were delivered once, and the books say so. */
static void check_got(const latecomer *late, uint64_t first, uint64_t count) {
    const helio_receiver_stats *stats = late->in.stats;
    CHECK_EQUAL(late->in.messages, count - first);
    CHECK_EQUAL(late->in.lost, 0);
    CHECK_EQUAL(late->in.next, count);
    CHECK_EQUAL(helio_cell(&stats->messages_before_join), first);
    CHECK_EQUAL(helio_cell(&stats->messages_delivered), count - first);
    CHECK_EQUAL(helio_cell(&stats->next_message), count);
}

/* ---- late join ---- */

static void who_comes_late_gets_the_history_and_goes_on_live(void) {
    begin_offering(1024);
    send(500);
    latecomer late;
    come(&late, wanting_history(LATE, 1024));
    send(200); /* catching up while data flows */
    world_run(&w, 600 * MS);
    check_got(&late, 0, 700);
    const uint64_t naks = helio_cell(&source_counts()->naks_received);
    send(200);
    world_run(&w, 10 * MS);
    check_got(&late, 0, 900);
    CHECK_EQUAL(helio_cell(&source_counts()->naks_received), naks);
    CHECK_EQUAL(in.messages, 900);
    world_end_receiver(&late.receiver);
    end();
}

static void a_history_longer_than_the_receive_window_comes_piece_by_piece(void) {
    begin_offering(4096);
    send(3000);
    latecomer late;
    come(&late, wanting_history(LATE, 64));
    world_run(&w, 2000 * MS); /* at most four SPMs: one is enough */
    check_got(&late, 0, 3000);
    world_end_receiver(&late.receiver);
    end();
}

static void who_comes_late_into_loss_gets_all_as_well(void) {
    begin_offering(4096);
    send(2000);
    latecomer late;
    come(&late, wanting_history(LATE, 1024));
    helio_sim_set_link(late.receiver.node, &(helio_sim_link){.loss = 0.1,
                                                             .duplicate = 0.02,
                                                             .delay_ns = 50 * US,
                                                             .jitter_ns = 100 * US});
    send(1000);
    world_run(&w, 3000 * MS);
    check_got(&late, 0, 3000);
    world_end_receiver(&late.receiver);
    end();
}

static void data_met_first_is_held_until_an_spm_says_where_to_begin(void) {
    begin_offering(1024);
    send(300);
    latecomer late;
    come(&late, wanting_history(LATE, 1024));
    drop(late.receiver.node, SPM, 5);
    send(100);
    CHECK_EQUAL(late.in.messages, 0);
    world_run(&w, 600 * MS);
    check_got(&late, 0, 400);
    CHECK(helio_cell(&source_counts()->repair_packets) < 320); /* 100 were held */
    world_end_receiver(&late.receiver);
    end();
}

static void without_any_spm_the_stream_begins_where_it_was_met(void) {
    begin_offering(1024);
    send(300);
    latecomer late;
    come(&late, wanting_history(LATE, 1024));
    drop(late.receiver.node, SPM, 1 << 30);
    send(100);
    world_run(&w, 95 * MS);
    CHECK_EQUAL(late.in.messages, 0);
    world_run(&w, 10 * MS);
    check_got(&late, 300, 400);
    world_end_receiver(&late.receiver);
    end();
}

static void a_source_that_offers_nothing_is_joined_live(void) {
    begin();
    send(300);
    latecomer late;
    come(&late, wanting_history(LATE, 1024));
    world_run(&w, 600 * MS);
    send(100);
    world_run(&w, 10 * MS);
    check_got(&late, 300, 400);
    CHECK_EQUAL(helio_cell(&source_counts()->naks_received), 0);
    world_end_receiver(&late.receiver);
    end();
}

static void a_repair_for_another_receiver_may_be_from_before_the_join(void) {
    begin();
    send(299);
    drop(receiver.node, ODATA, 1);
    send(1);
    latecomer late;
    come(&late, world_receiver_config(LATE));
    send(10);
    world_run(&w, 50 * MS);
    check_got(&late, 300, 310);
    CHECK_EQUAL(in.messages, 310);
    CHECK_EQUAL(RX_STREAMS_SUM(packets_before_join), 1);
    world_end_receiver(&late.receiver);
    end();
}

static void a_full_history_is_joined_where_it_will_not_move_away(void) {
    begin_offering(1024);
    send(3000);
    latecomer late;
    come(&late, wanting_history(LATE, 1024));
    send(100);
    world_run(&w, 600 * MS);
    const uint64_t first = helio_cell(&late.in.stats->messages_before_join);
    CHECK(first > 3000 - 1024 && first < 3100 - 800);
    check_got(&late, first, 3100);
    world_end_receiver(&late.receiver);
    end();
}

static void many_who_come_at_once_share_the_repairs(void) {
    enum { COUNT = 40 };
    static latecomer late[COUNT];
    begin_offering(2048);
    send(1000);
    for (unsigned i = 0; i < COUNT; i++) {
        come(&late[i], wanting_history(LATE + i, 1024));
    }
    world_run(&w, 3000 * MS);
    for (unsigned i = 0; i < COUNT; i++) {
        check_got(&late[i], 0, 1000);
    }
    CHECK(helio_cell(&source_counts()->repair_packets) < 4 * 1000);
    for (unsigned i = 0; i < COUNT; i++) {
        world_end_receiver(&late[i].receiver);
    }
    end();
}

/* ---- those who were there before ---- */

static int64_t slowest_ns; /* delivery to the early receiver */
static int64_t sent_ns;

static size_t on_timed_messages(void *context, const helio_message *messages, size_t count) {
    (void)messages;
    *(uint64_t *)context += count;
    const int64_t took_ns = world_now(&w).now_ns - sent_ns;
    slowest_ns = took_ns > slowest_ns ? took_ns : slowest_ns;
    return count;
}

/* The slowest of 1000 deliveries to a receiver that was there all the time. */
static int64_t slowest_delivery_ns(bool somebody_joins) {
    uint64_t delivered = 0;
    begin_offering(4096);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = 3 * US});
    const helio_sink sink = {.context = &delivered, .on_messages = on_timed_messages};
    helio_subscription *subscription;
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver.endpoint, "t", &sink, world_now(&w), &subscription),
        0);
    send(2000);
    latecomer late;
    if (somebody_joins) {
        come(&late, wanting_history(LATE, 1024));
    }
    delivered = 0;
    slowest_ns = 0;
    for (int i = 0; i < 1000; i++) {
        sent_ns = world_now(&w).now_ns;
        send(1);
    }
    CHECK_EQUAL(delivered, 1000);
    if (somebody_joins) {
        CHECK(late.in.messages > 0); /* it did catch up meanwhile */
        world_run(&w, 600 * MS);
        check_got(&late, 0, 3000);
        world_end_receiver(&late.receiver);
    }
    end();
    return slowest_ns;
}

static void who_was_there_does_not_feel_somebody_catching_up(void) {
    CHECK_EQUAL(slowest_delivery_ns(true), slowest_delivery_ns(false));
}

/* ---- what is gone ---- */

static void what_left_the_history_is_answered_as_too_late(void) {
    begin_offering(16);
    drop(receiver.node, ODATA | RDATA, 1);
    helio_sim_set_link(source.node, &(helio_sim_link){.loss = 1.0}); /* no NAK arrives */
    send(1);
    world_run(&w, 1 * MS);
    helio_sim_set_link(receiver.node, &(helio_sim_link){0});
    const uint64_t gone = helio_cell(&source_counts()->window_trail);
    send(40);
    CHECK(helio_cell(&source_counts()->window_trail) > gone);
    helio_sim_set_link(source.node, &(helio_sim_link){0});
    const helio_tx_stream_config config = offering(16);
    const helio_pgm_session session = {config.tsi, config.destination_port};
    const uint32_t sequence = (uint32_t)gone;
    uint8_t nak[HELIO_PGM_CONTROL_MAX];
    const size_t length = helio_pgm_encode_nak(nak, &session, HELIO_PGM_TYPE_NAK, &sequence, 1,
                                               &config.address, &config.group);
    const helio_address from = world_host(100, 50000);
    helio_tx_stream_on_packet(source.stream, nak, length, &from, world_now(&w));
    CHECK_EQUAL(helio_cell(&source_counts()->naks_answered_too_late), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_confirmations_sent), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 0);
    end();
}

static void what_the_trail_has_passed_is_lost_at_the_receiver(void) {
    begin_offering(16);
    send(10);
    drop(receiver.node, ODATA, 1);
    helio_sim_set_link(source.node, &(helio_sim_link){.loss = 1.0});
    send(40);
    world_run(&w, 10 * MS);

    CHECK_EQUAL(in.lost, 1);
    CHECK_EQUAL(in.messages, 49);
    CHECK_EQUAL(
        helio_cell(&source_counts()->window_lead) - helio_cell(&source_counts()->window_trail), 15);
    end();
}

static void packets_leave_by_age_while_nothing_is_sent(void) {
    helio_tx_stream_config config = offering(1024);
    config.history_ns = 20 * MS;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    send(100);
    CHECK(helio_cell(&source_counts()->history_packets) > 90);
    world_run(&w, 1000 * MS);
    CHECK(helio_cell(&source_counts()->history_packets) < 10);
    CHECK_EQUAL(in.lost, 0);
    end();
}

/* Sent = kept + trimmed, also while the packets of a list are not all counted. */
static void what_is_sent_and_what_is_kept_are_shown_together(void) {
    static const uint8_t half[900];
    helio_tx_stream_config config = offering(1024);
    config.history_ns = 20 * MS;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    send(100);
    for (int i = 0; i < 2; i++) { /* the second closes the packet of the first and stays open */
        helio_tx_stream_append(source.stream, topic, half, sizeof half, world_now(&w).wall_ns,
                               world_now(&w));
    }
    helio_moment later = world_now(&w);
    later.now_ns += 21 * MS; /* before anything else is due */
    helio_tx_stream_poll(source.stream, later);
    const helio_tx_stream_stats *stats = source_counts();
    CHECK(helio_cell(&stats->history_trimmed_age) > 0);
    CHECK_EQUAL(helio_cell(&stats->packets_sent),
                helio_cell(&stats->history_packets) + helio_cell(&stats->history_trimmed_age));
    end();
}

static void packets_leave_by_bytes(void) {
    helio_tx_stream_config config = offering(1024);
    config.history_bytes = 32 * 1472;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    send(2000);
    CHECK(helio_cell(&source_counts()->history_bytes) <= 32 * 1472);
    CHECK(helio_cell(&source_counts()->history_bytes) > 24 * 1472);
    CHECK_EQUAL(helio_cell(&source_counts()->history_limit_bytes), 32 * 1472);
    end();
}

/* ---- messages longer than the history ---- */

static void wait_until(void *context, int64_t not_before_ns) {
    helio_sim_wake(context);
    const int64_t left_ns = not_before_ns - world_now(&w).now_ns;
    world_run(&w, left_ns > 0 ? left_ns : 1 * US);
}

static bool is_away(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)packet, (void)length;
    return now_ns > 300 * MS && now_ns < 600 * MS;
}

static void who_is_away_for_a_moment_finds_a_long_message_in_the_history(void) {
    enum { LENGTH = 1 << 20, HISTORY = 256 };
    static uint8_t data[LENGTH]; /* some 740 packets */
    helio_tx_stream_config config = offering(HISTORY);
    config.breathe = wait_until;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    world_run(&w, 100 * US);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.drops = is_away});
    CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, data, LENGTH, world_now(&w).wall_ns,
                                       world_now(&w)),
                0);
    helio_sim_wake(source.node);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(in.messages, 1);
    CHECK_EQUAL(in.lost, 0);
    CHECK(helio_cell(&source_counts()->repair_packets) > HISTORY / 4);
    end();
}

/* ---- replay ---- */

typedef struct replayed {
    uint64_t next, messages, lost, room, unmarked;
    uint32_t streams, ended;
} replayed;

static void on_replay_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                             helio_stats_object *object) {
    (void)tsi;
    CHECK_EQUAL(stream, 0);
    CHECK(object->record);
    ((replayed *)context)->streams++;
}

static void on_replay_end(void *context, uint32_t stream) {
    (void)stream;
    ((replayed *)context)->ended++;
}

static size_t on_replayed(void *context, const helio_message *messages, size_t count) {
    replayed *got = context;
    const size_t taken = count < got->room ? count : (size_t)got->room;
    for (size_t i = 0; i < taken; i++) {
        CHECK_EQUAL(messages[i].number, got->next++);
    }
    for (size_t i = 0; i < taken; i++) {
        got->unmarked += !(messages[i].flags & HELIO_MESSAGE_RECOVERED);
    }
    got->messages += taken;
    got->room -= taken;
    return taken;
}

static void on_replay_loss(void *context, const helio_loss *loss) {
    replayed *got = context;
    CHECK_EQUAL(loss->first, got->next);
    got->next += loss->count;
    got->lost += loss->count;
}

static helio_replay *replay(replayed *got, uint64_t first, uint64_t last) {
    *got = (replayed){.next = first, .room = UINT64_MAX};
    const helio_sink sink = {.context = got,
                             .on_stream = on_replay_stream,
                             .on_stream_end = on_replay_end,
                             .on_messages = on_replayed,
                             .on_loss = on_replay_loss};
    const helio_tsi tsi = world_source_config(1).tsi;
    helio_replay *out = NULL;
    CHECK_EQUAL(helio_rx_endpoint_replay(receiver.endpoint, &tsi, "t", first, last, &sink,
                                         world_now(&w), &out),
                0);
    helio_sim_wake(receiver.node);
    return out;
}

/* `got` heard of the range once, in order, of so many messages as lost; the end was told. */
static void check_replayed(const replayed *got, uint64_t last, uint64_t messages, uint64_t lost) {
    CHECK_EQUAL(got->messages, messages);
    CHECK_EQUAL(got->lost, lost);
    CHECK_EQUAL(got->next, last + 1);
    CHECK_EQUAL(got->streams, 1);
    CHECK_EQUAL(got->ended, 1);
    CHECK_EQUAL(got->unmarked, 0); /* all of it was asked for */
}

static void a_replay_gives_exactly_its_range_and_asks_for_little_more(void) {
    begin_offering(8192);
    send(6000);
    replayed got;
    helio_replay *one = replay(&got, 3100, 3199);
    world_run(&w, 100 * MS);
    check_replayed(&got, 3199, 100, 0);
    CHECK(helio_cell(&source_counts()->repair_packets) < 500);
    helio_rx_endpoint_end_replay(receiver.endpoint, one, world_now(&w));
    CHECK_EQUAL(in.messages, 6000); /* the receiver itself noticed nothing */
    CHECK_EQUAL(helio_cell(&in.stats->messages_delivered), 6000);
    CHECK_EQUAL(helio_cell(&in.stats->next_message), 6000);
    end();
}

static void a_replay_finds_its_range_among_other_topics_and_through_loss(void) {
    begin_offering(8192);
    helio_tx_topic *other;
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "other", world_now(&w), &other), 0);
    static uint8_t large[20000];
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 3; k++) {
            helio_tx_stream_append(source.stream, other, "x", 1, 0, world_now(&w));
            helio_tx_stream_flush(source.stream, world_now(&w));
        }
        helio_tx_stream_append(source.stream, topic, large, i % 50 ? 40 : sizeof large, 0,
                               world_now(&w));
        helio_tx_stream_flush(source.stream, world_now(&w));
        world_run(&w, 20 * US);
    }
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.1, .delay_ns = 200 * US});
    replayed got[3];
    helio_replay *all[] = {replay(&got[0], 0, 0), replay(&got[1], 500, 650),
                           replay(&got[2], 999, 999)};
    world_run(&w, 3000 * MS);
    check_replayed(&got[0], 0, 1, 0);
    check_replayed(&got[1], 650, 151, 0);
    check_replayed(&got[2], 999, 1, 0);
    CHECK(helio_cell(&source_counts()->repair_packets) < 3000);
    for (int i = 0; i < 3; i++) {
        helio_rx_endpoint_end_replay(receiver.endpoint, all[i], world_now(&w));
    }
    end();
}

/* The search asks again for what is long in coming, so that repairs come twice: the second ones
 * before the replay has asked for those packets itself. */
static void a_repair_that_comes_before_it_was_asked_for_is_marked_too(void) {
    begin_offering(8192);
    send(6000);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = 11 * MS});
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = 11 * MS});
    replayed got;
    helio_replay *one = replay(&got, 3100, 3199);
    world_run(&w, 2000 * MS);
    check_replayed(&got, 3199, 100, 0);
    helio_rx_endpoint_end_replay(receiver.endpoint, one, world_now(&w));
    end();
}

static void what_the_history_has_not_is_told_as_lost(void) {
    begin_offering(1024);
    send(3000);
    replayed gone, cut, ahead;
    helio_replay *all[] = {replay(&gone, 100, 199), replay(&cut, 1900, 2099),
                           replay(&ahead, 2990, 3009)};
    world_run(&w, 3000 * MS);
    check_replayed(&gone, 199, 0, 100);
    const uint64_t oldest =
        helio_cell(&source_counts()->history_trimmed_packets) - 1; /* one announced */
    CHECK(oldest > 1900 && oldest < 2099);
    CHECK_EQUAL(cut.messages + cut.lost, 200);
    CHECK(cut.messages >= 2100 - oldest - 3 && cut.messages <= 2100 - oldest + 3);
    check_replayed(&ahead, 3009, 10, 10);
    for (int i = 0; i < 3; i++) {
        helio_rx_endpoint_end_replay(receiver.endpoint, all[i], world_now(&w));
    }
    end();
}

static void a_replay_waits_for_room_while_the_receiver_goes_on(void) {
    begin_offering(4096);
    send(2000);
    replayed got;
    helio_replay *one = replay(&got, 1000, 1999);
    got.room = 100;
    world_run(&w, 20 * MS);
    CHECK_EQUAL(got.messages, 100);
    send(500);
    CHECK_EQUAL(in.messages, 2500);
    got.room = UINT64_MAX;
    helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
    helio_sim_wake(receiver.node);
    world_run(&w, 1000 * MS);
    check_replayed(&got, 1999, 1000, 0);
    helio_rx_endpoint_end_replay(receiver.endpoint, one, world_now(&w));
    end();
}

static void a_replay_ends_with_its_stream(void) {
    begin_offering(4096);
    send(2000);
    replayed got;
    replay(&got, 1000, 1999);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 1.0});
    world_run(&w, 12 * HELIO_SECOND);
    check_replayed(&got, 1999, 0, 1000);
    const helio_tsi tsi = world_source_config(1).tsi;
    helio_replay *none;
    CHECK_EQUAL(helio_rx_endpoint_replay(receiver.endpoint, &tsi, "t", 0, 1, &(helio_sink){0},
                                         world_now(&w), &none),
                HELIO_ERR_STATE);
    end(); /* the endpoint ends what replays are left */
}

/* ---- dynamic ---- */

static void tend(void) {
    helio_tx_stream_tend(source.stream, world_now(&w));
}

static uint64_t limit_packets(void) {
    return helio_cell(&source_counts()->history_limit_packets);
}

static void a_dynamic_history_grows_in_need_and_shrinks_in_peace(void) {
    helio_history_budget budget = {0};
    helio_tx_stream_config config = offering(1024);
    config.history_dynamic = true;
    config.budget = &budget;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    CHECK_EQUAL(limit_packets(), 64);
    const uint64_t first_bytes = budget.used_bytes;
    CHECK_EQUAL(first_bytes, helio_cell(&source_counts()->history_limit_bytes));
    send(200);
    tend();
    CHECK_EQUAL(limit_packets(), 64); /* full, but nobody asked */
    helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = 5 * MS, .loss = 0.05});
    for (int i = 0; i < 200; i++) { /* requests come 500 packets late */
        send(20);
        tend();
    }
    CHECK_EQUAL(limit_packets(), 1024);
    CHECK(budget.used_bytes >= 15 * first_bytes);
    const uint64_t lost = in.lost;
    CHECK(lost > 0);
    for (int i = 0; i < 50; i++) {
        send(20);
        tend();
    }
    helio_sim_set_link(receiver.node, &(helio_sim_link){0});
    world_run(&w, 50 * MS);
    const uint64_t lost_grown = in.lost;
    for (int i = 0; i < 40; i++) {
        send(10);
        world_run(&w, HELIO_SECOND);
        tend();
    }
    CHECK_EQUAL(limit_packets(), 64);
    CHECK_EQUAL(budget.used_bytes, first_bytes);
    CHECK_EQUAL(in.lost, lost_grown);
    end();
    CHECK_EQUAL(budget.used_bytes, 0);
}

static void all_histories_of_an_instance_keep_to_its_budget(void) {
    helio_tx_stream_config config = offering(1024);
    helio_history_budget budget = {.limit_bytes = 300 * 1472};
    config.history_dynamic = true;
    config.budget = &budget;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = 2 * MS, .loss = 0.05});
    for (int i = 0; i < 200; i++) {
        send(20);
        tend();
        CHECK(budget.used_bytes <= budget.limit_bytes);
    }
    CHECK_EQUAL(budget.used_bytes, budget.limit_bytes);
    helio_tx_stream_config another = world_source_config(2);
    another.budget = &budget;
    helio_tx_stream *stream;
    CHECK_EQUAL(helio_tx_stream_create(&another, (helio_outlet){0}, w.stats, source.instance.record,
                                       world_now(&w), &stream),
                HELIO_ERR_OPTION);
    CHECK_EQUAL(budget.used_bytes, budget.limit_bytes);
    end();
}

int main(void) {
    RUN(who_comes_late_gets_the_history_and_goes_on_live);
    RUN(a_history_longer_than_the_receive_window_comes_piece_by_piece);
    RUN(who_comes_late_into_loss_gets_all_as_well);
    RUN(data_met_first_is_held_until_an_spm_says_where_to_begin);
    RUN(without_any_spm_the_stream_begins_where_it_was_met);
    RUN(a_source_that_offers_nothing_is_joined_live);
    RUN(a_repair_for_another_receiver_may_be_from_before_the_join);
    RUN(a_full_history_is_joined_where_it_will_not_move_away);
    RUN(many_who_come_at_once_share_the_repairs);
    RUN(who_was_there_does_not_feel_somebody_catching_up);
    RUN(what_left_the_history_is_answered_as_too_late);
    RUN(what_the_trail_has_passed_is_lost_at_the_receiver);
    RUN(who_is_away_for_a_moment_finds_a_long_message_in_the_history);
    RUN(a_replay_gives_exactly_its_range_and_asks_for_little_more);
    RUN(a_replay_finds_its_range_among_other_topics_and_through_loss);
    RUN(a_repair_that_comes_before_it_was_asked_for_is_marked_too);
    RUN(what_the_history_has_not_is_told_as_lost);
    RUN(a_replay_waits_for_room_while_the_receiver_goes_on);
    RUN(a_replay_ends_with_its_stream);
    RUN(packets_leave_by_age_while_nothing_is_sent);
    RUN(what_is_sent_and_what_is_kept_are_shown_together);
    RUN(packets_leave_by_bytes);
    RUN(a_dynamic_history_grows_in_need_and_shrinks_in_peace);
    RUN(all_histories_of_an_instance_keep_to_its_budget);
    return check_result();
}
