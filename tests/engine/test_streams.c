/* A source and a receiver together, one behaviour of RFC 3208 or of the wire's page at a time. */
#include "pair.h"

/* ---- the way things go ---- */

static void messages_arrive_and_nothing_is_asked_for(void) {
    begin();
    send(100);
    CHECK_EQUAL(in.messages, 100);
    CHECK_EQUAL(in.next, 100);
    CHECK_EQUAL(helio_cell(&in.stats->messages_before_join), 0);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 0);
    CHECK_EQUAL(helio_cell(&source_counts()->packets_sent), 101);
    end();
}

static void a_lost_packet_is_repaired(void) {
    begin();
    send(5);
    drop(receiver.node, ODATA, 1);
    send(5);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(in.messages, 10);
    CHECK_EQUAL(in.recovered, 1);
    CHECK_EQUAL(in.lost, 0);
    CHECK_EQUAL(helio_cell(&counts()->naks_sent), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_confirmations_sent), 1);
    CHECK_EQUAL(helio_cell(&in.stats->messages_recovered), 1);
    end();
}

static void the_loss_of_the_last_packet_is_found_by_a_heartbeat(void) {
    begin();
    send(5);
    drop(receiver.node, ODATA, 1);
    send(1);
    CHECK_EQUAL(in.messages, 5);
    world_run(&w, 2 * MS); /* heartbeat_min is half a millisecond */
    CHECK_EQUAL(in.messages, 6);
    end();
}

static void the_loss_of_the_first_packets_is_found_because_the_stream_opened_empty(void) {
    begin_receiver(world_receiver_config(100));
    drop(receiver.node, ODATA, 3);
    begin_source(world_source_config(1));
    send(5);
    world_run(&w, 20 * MS);
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(helio_cell(&in.stats->messages_before_join), 0);
    end();
}

static void a_stream_met_by_its_data_asks_for_an_spm_and_only_then_for_repairs(void) {
    begin_receiver(world_receiver_config(100));
    drop(receiver.node, SPM, 1000);
    begin_source(world_source_config(1));
    send(2);
    helio_sim_set_partition(receiver.node, 1);
    send(1);
    helio_sim_set_partition(receiver.node, 0);
    send(3);
    world_run(&w, 1 * MS);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 0);
    drop(receiver.node, SPM, 0);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(in.next, 6);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void an_spmr_is_answered_but_not_each_of_a_flood(void) {
    begin();
    world_run(&w, 100 * MS);
    const uint64_t before = helio_cell(&source_counts()->heartbeats_sent);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const size_t length = helio_pgm_encode_spmr(packet, &session);
    const helio_address from = world_host(100, 50000);
    for (int i = 0; i < 1000; i++) {
        helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
    }
    CHECK_EQUAL(helio_cell(&source_counts()->heartbeats_sent), before + 1);
    CHECK_EQUAL(helio_cell(&source_counts()->heartbeat_requests_received), 1000);
    end();
}

static void heartbeats_slow_down_when_the_source_is_silent(void) {
    begin();
    send(1);
    world_run(&w, 100 * MS);
    const uint64_t early = helio_cell(&source_counts()->heartbeats_sent);
    world_run(&w, 10 * HELIO_SECOND);
    const uint64_t late = helio_cell(&source_counts()->heartbeats_sent) - early;
    CHECK(early >= 8 && early <= 14);
    /* The ambient one each half second, a heartbeat each second; the one announcement starts it
     * anew. */
    CHECK(late >= 20 && late <= 45);
    end();
}

static void a_topic_is_announced_while_it_is_used_and_not_after(void) {
    begin();
    const uint64_t before = helio_cell(&source_counts()->packets_sent);
    send(1);
    world_run(&w, 5 * HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&source_counts()->packets_sent), before + 2);
    end();
}

static void the_end_of_a_stream_is_heard_and_its_object_closed(void) {
    begin();
    send(5);
    drop(receiver.node, ODATA, 1); /* the topic's end is lost at first */
    helio_tx_stream_close(source.stream, world_now(&w));
    CHECK(!helio_tx_stream_is_finished(source.stream, world_now(&w)));
    world_run(&w, 20 * MS);
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(in.ended, 1);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    world_run(&w, HELIO_SECOND); /* its last FINs do not open it again */
    CHECK_EQUAL(in.streams, 1);
    CHECK(helio_tx_stream_is_finished(source.stream, world_now(&w)));
    CHECK_EQUAL(helio_tx_stream_next_deadline_ns(source.stream), HELIO_NEVER);
    end();
}

static void messages_lost_at_the_very_end_are_reported(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.nak_deadline_ns = 20 * MS;
    begin_receiver(config);
    begin_source(world_source_config(1));
    send(5);
    drop(receiver.node, RDATA, 1000000);
    helio_sim_link nothing = {.loss = 1};
    helio_sim_set_link(receiver.node, &nothing);
    send(3);
    drop(receiver.node, RDATA, 1000000);
    helio_tx_stream_close(source.stream, world_now(&w));
    world_run(&w, 100 * MS);
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(in.lost, 3);
    CHECK_EQUAL(in.next, 8);
    CHECK_EQUAL(in.ended, 1);
    end();
}

static void a_silent_stream_is_dropped_and_can_come_back(void) {
    begin();
    send(3);
    helio_sim_set_partition(receiver.node, 1);
    world_run(&w, 11 * HELIO_SECOND);
    CHECK_EQUAL(in.ended, 1);
    CHECK(helio_cell(&counts()->memory_used) < 1024); /* what is remembered of it */
    helio_sim_set_partition(receiver.node, 0);
    send(3);
    world_run(&w, HELIO_SECOND); /* it asks for what it missed first: announcements */
    CHECK_EQUAL(in.streams, 2);
    CHECK_EQUAL(in.messages, 6);
    end();
}

static void a_topic_that_ends_and_comes_back_goes_on_with_its_numbers(void) {
    begin();
    helio_tx_topic *other;
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "other", world_now(&w), &other), 0);
    send(3);
    helio_tx_stream_remove_topic(source.stream, topic, world_now(&w));
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    send(2);
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(in.next, 5);
    end();
}

static void let_the_world_turn(void *context, int64_t not_before_ns) {
    (void)not_before_ns;
    helio_sim_wake(context);
    world_run(&w, 5 * MS);
}

static void a_message_longer_than_the_history_arrives_through_loss(void) {
    enum { LENGTH = 1 << 20, HISTORY = 256 };
    static uint8_t data[LENGTH]; /* some 740 packets */
    begin_receiver(world_receiver_config(100));
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = HISTORY;
    config.announce_interval_ns = MS; /* due again and again while the message is being cut */
    config.breathe = let_the_world_turn;
    begin_source(config);
    world_run(&w, 100 * US);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.05});
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, data, LENGTH,
                                           world_now(&w).wall_ns, world_now(&w)),
                    0);
        helio_sim_wake(source.node);
        world_run(&w, 50 * MS);
    }
    CHECK_EQUAL(in.messages, 3);
    CHECK_EQUAL(in.lost, 0);
    CHECK(helio_cell(&counts()->naks_sent) > 0);
    end();
}

static void names_of_topics_are_checked(void) {
    begin();
    helio_tx_topic *same;
    char long_name[257];
    memset(long_name, 'x', 256);
    long_name[256] = '\0';
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "", world_now(&w), &same),
                HELIO_ERR_TOPIC);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, long_name, world_now(&w), &same),
                HELIO_ERR_TOPIC);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &same), 0);
    CHECK(same == topic);
    static const uint8_t large[(1 << 20) + 1];
    CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, large, sizeof large, 0, world_now(&w)),
                HELIO_ERR_SIZE);
    helio_tx_stream_close(source.stream, world_now(&w));
    CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, "x", 1, 0, world_now(&w)),
                HELIO_ERR_CLOSED);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "u", world_now(&w), &same),
                HELIO_ERR_CLOSED);
    end();
}

/* ---- loss for good ---- */

static void what_the_source_no_longer_has_is_lost_as_one_range(void) {
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 16;
    begin_receiver(world_receiver_config(100));
    begin_source(config);
    send(5);
    helio_sim_set_partition(receiver.node, 1);
    send(5000); /* more than any window */
    helio_sim_set_partition(receiver.node, 0);
    send(20);
    world_run(&w, 20 * MS);
    CHECK_EQUAL(in.next, 5025);
    CHECK(in.lost > 4900 && in.lost <= 5000);
    CHECK_EQUAL(in.messages + in.lost, 5025);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 1);
    end();
}

static void a_packet_that_never_comes_is_given_up_at_its_deadline(void) {
    begin();
    send(5);
    drop(receiver.node, ODATA, 1);
    send(1);
    drop(receiver.node, RDATA, 1000000);
    send(5);
    world_run(&w, 900 * MS);
    CHECK_EQUAL(in.messages, 5);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(in.messages, 10);
    CHECK_EQUAL(in.lost, 1);
    end();
}

/* ---- a slow application ---- */

static void a_full_sink_holds_the_stream_and_loses_nothing_while_the_source_has_it(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.window_packets = 16;
    begin_receiver(config);
    begin_source(world_source_config(1));
    world_run(&w, MS);
    in.room = 10;
    send(200);
    CHECK_EQUAL(in.messages, 10);
    CHECK(helio_rx_endpoint_is_blocked(receiver.endpoint));
    CHECK(helio_cell(&counts()->nak_packets_sent) == 0); /* what cannot be held is not asked for */
    in.room = UINT64_MAX;
    helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
    helio_sim_wake(receiver.node);
    CHECK(!helio_rx_endpoint_is_blocked(receiver.endpoint));
    world_run(&w, 100 * MS);
    CHECK_EQUAL(in.messages, 200);
    CHECK_EQUAL(in.lost, 0);
    end();
}

/* ---- numbers at their ends ---- */

static void sequence_numbers_wrap(void) {
    static const uint32_t starts[] = {0xFFFFFF00, 0x7FFFFF00, 0xFFFFFFFF};
    for (size_t i = 0; i < 3; i++) {
        helio_tx_stream_config config = world_source_config(1);
        config.first_sequence = starts[i];
        begin_receiver(world_receiver_config(100));
        begin_source(config);
        world_run(&w, MS);
        helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.1});
        send(1000);
        world_run(&w, 100 * MS);
        CHECK_EQUAL(in.messages, 1000);
        CHECK_EQUAL(in.lost, 0);
        end();
    }
}

int main(void) {
    RUN(messages_arrive_and_nothing_is_asked_for);
    RUN(a_lost_packet_is_repaired);
    RUN(the_loss_of_the_last_packet_is_found_by_a_heartbeat);
    RUN(the_loss_of_the_first_packets_is_found_because_the_stream_opened_empty);
    RUN(a_stream_met_by_its_data_asks_for_an_spm_and_only_then_for_repairs);
    RUN(an_spmr_is_answered_but_not_each_of_a_flood);
    RUN(heartbeats_slow_down_when_the_source_is_silent);
    RUN(a_topic_is_announced_while_it_is_used_and_not_after);
    RUN(the_end_of_a_stream_is_heard_and_its_object_closed);
    RUN(messages_lost_at_the_very_end_are_reported);
    RUN(a_silent_stream_is_dropped_and_can_come_back);
    RUN(a_topic_that_ends_and_comes_back_goes_on_with_its_numbers);
    RUN(a_message_longer_than_the_history_arrives_through_loss);
    RUN(names_of_topics_are_checked);
    RUN(what_the_source_no_longer_has_is_lost_as_one_range);
    RUN(a_packet_that_never_comes_is_given_up_at_its_deadline);
    RUN(a_full_sink_holds_the_stream_and_loses_nothing_while_the_source_has_it);
    RUN(sequence_numbers_wrap);
    return check_result();
}
