/* A source and receivers together, one behaviour of RFC 3208 or of the wire's page at a time, and
 * the attacks they must stand. */
#include <stdbool.h>

#include "base/hash.h"
#include "check.h"
#include "wire/checksum.h"
#include "wire/pgm.h"
#include "wire/tsdu.h"
#include "world.h"

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

/* What a receiver was told. */
typedef struct inbox {
    uint64_t messages;
    uint64_t lost;
    uint64_t next; /* number after the last message or loss */
    uint64_t recovered;
    uint64_t room;
    uint32_t streams, ended;
    bool is_forged; /* the numbers are a forger's: not looked at */
    helio_receiver_stats *stats;
} inbox;

static void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object) {
    inbox *in = context;
    (void)tsi;
    CHECK_EQUAL(stream, in->streams);
    in->streams++;
    in->next = 0;
    in->stats = object->record;
}

static void on_end(void *context, uint32_t stream) {
    (void)stream;
    ((inbox *)context)->ended++;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    inbox *in = context;
    const size_t taken = count < in->room ? count : (size_t)in->room;
    for (size_t i = 0; i < taken; i++) {
        CHECK(in->next == 0 || in->is_forged || messages[i].number == in->next);
        in->next = messages[i].number + 1;
        in->recovered += messages[i].flags & HELIO_MESSAGE_RECOVERED;
    }
    in->messages += taken;
    in->room -= taken;
    return taken;
}

static void on_loss(void *context, const helio_loss *loss) {
    inbox *in = context;
    CHECK(in->is_forged || in->next == loss->first);
    in->next = loss->first + loss->count;
    in->lost += loss->count;
}

static world w;
static world_source source;
static world_receiver receiver;
static helio_tx_topic *topic;
static inbox in;

static void subscribe(world_receiver *to, inbox *box) {
    *box = (inbox){.room = UINT64_MAX};
    const helio_sink sink = {box, on_stream, on_end, on_messages, on_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(helio_rx_endpoint_subscribe(to->endpoint, "t", &sink, world_now(&w), &subscription),
                0);
}

static void begin_receiver(helio_rx_endpoint_config config) {
    world_init(&w, 1, 1);
    world_add_receiver(&w, &receiver, &config);
    subscribe(&receiver, &in);
}

static void begin_source(helio_tx_stream_config config) {
    world_add_source(&w, &source, &config);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
}

static void begin(void) {
    begin_receiver(world_receiver_config(100));
    begin_source(world_source_config(1));
    world_run(&w, 100 * US);
}

static void end(void) {
    world_end_receiver(&receiver);
    world_end_source(&source);
    world_fini(&w);
}

/* Sends `count` messages, each in a packet of its own. */
static void send(int count) {
    for (int i = 0; i < count; i++) {
        helio_tx_stream_append(source.stream, topic, "hello", 5, world_now(&w).wall_ns,
                               world_now(&w));
        helio_tx_stream_flush(source.stream, world_now(&w));
        helio_sim_wake(source.node);
        world_run(&w, 10 * US);
    }
}

static helio_instance_stats *counts(void) {
    return world_counts(&receiver.instance);
}

static helio_tx_stream_stats *source_counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

/* Packets of these types are dropped, the first `drop_count` of them. */
static uint32_t drop_types;
static int drop_count;

static bool drops(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)length, (void)now_ns;
    const uint8_t type = ((const uint8_t *)packet)[4];
    return (drop_types >> type & 1) && drop_count-- > 0;
}

static void drop(helio_sim_node *node, uint32_t types, int count) {
    drop_types = types;
    drop_count = count;
    helio_sim_set_link(node, &(helio_sim_link){.drops = drops});
}

enum {
    SPM = 1 << HELIO_PGM_TYPE_SPM,
    ODATA = 1 << HELIO_PGM_TYPE_ODATA,
    RDATA = 1 << HELIO_PGM_TYPE_RDATA,
    NAK = 1 << HELIO_PGM_TYPE_NAK,
    NCF = 1 << HELIO_PGM_TYPE_NCF,
};

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
    drop(receiver.node, SPM, 3); /* the opening ones */
    begin_source(world_source_config(1));
    send(2);
    drop(receiver.node, ODATA, 1);
    send(4);
    drop(receiver.node, SPM, 1000);
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
    for (int i = 0; i < 1000; i++)
        helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
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
    CHECK_EQUAL(helio_cell(&counts()->memory_used), 0);
    helio_sim_set_partition(receiver.node, 0);
    send(3);
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
    CHECK(helio_tx_stream_has_topics(source.stream));
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    send(2);
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(in.next, 5);
    end();
}

static void let_the_world_turn(void *context) {
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

/* ---- attacks ---- */

static const helio_tsi *tsi(void) {
    return helio_tx_stream_tsi(source.stream);
}

/* An SPM as the source, or whoever, would send it. */
static void forge_spm(uint32_t sequence, uint32_t trail, uint32_t lead, bool fin,
                      const char *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*tsi(), 7500};
    const helio_address address = world_address(from);
    const size_t length = helio_pgm_encode_spm(
        packet, &session, &(helio_pgm_spm){sequence, trail, lead, fin}, &address);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &address, 0, world_now(&w));
    helio_sim_wake(receiver.node);
}

static void packets_of_a_stream_from_another_address_are_refused(void) {
    begin();
    send(5);
    forge_spm(1000, 4000, 5000, true, "10.0.0.66:40001");
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 1);
    send(5);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(in.messages, 10);
    CHECK_EQUAL(in.ended, 0);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 0);
    end();
}

static void an_spm_with_a_huge_lead_makes_no_more_than_a_window_of_holes(void) {
    begin();
    send(5);
    const uint64_t memory = helio_cell(&counts()->memory_used);
    forge_spm(1000, 0, 0x7FFFFFF0, false, "10.0.0.1:40001");
    world_run(&w, 10 * MS);
    CHECK(helio_cell(&counts()->naks_sent) <= 10 * 1024);
    CHECK_EQUAL(helio_cell(&counts()->memory_used), memory);
    world_run(&w, 2 * HELIO_SECOND); /* given up */
    send(2000);                      /* beyond what the forgery covers, the stream lives */
    world_run(&w, 100 * MS);
    CHECK_EQUAL(in.next, 2005);
    end();
}

static void a_trail_far_ahead_is_one_loss_and_no_long_walk(void) {
    begin();
    send(5);
    for (uint32_t i = 1; i <= 200; i++) /* two thousand million packets, and none of them there */
        forge_spm(1000 + i, 10000000 * i, 10000000 * i + 5, false, "10.0.0.1:40001");
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 1);
    CHECK_EQUAL(in.messages, 5);
    end();
}

static void an_old_or_impossible_spm_changes_nothing(void) {
    begin();
    send(5);
    world_run(&w, 50 * MS);
    const uint64_t sent = helio_cell(&counts()->naks_sent);
    forge_spm(0, 0, 500, false, "10.0.0.1:40001");            /* an old number */
    forge_spm(0xF0000000, 0, 500, false, "10.0.0.1:40001");   /* older still */
    forge_spm(10000, 0, 0x80000000, false, "10.0.0.1:40001"); /* "no window" */
    forge_spm(10001, 500, 5, false, "10.0.0.1:40001");        /* a negative window */
    world_run(&w, 50 * MS);
    CHECK_EQUAL(helio_cell(&counts()->naks_sent), sent);
    end();
}

static void no_more_streams_than_allowed_are_followed(void) {
    begin_receiver(world_receiver_config(100));
    begin_source(world_source_config(1));
    for (uint32_t i = 0; i < 1000; i++) {
        uint8_t packet[HELIO_PGM_CONTROL_MAX];
        helio_pgm_session session = {*tsi(), 7500};
        memcpy(session.tsi.gsi, &i, sizeof i);
        const helio_address from = world_address("10.0.0.66:1");
        const size_t length =
            helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){0, 0, ~0u, false}, &from);
        helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    }
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 8);
    CHECK_EQUAL(helio_cell(&counts()->unknown_session_packets), 992);
    end();
}

static void naks_for_anything_at_all_do_not_amplify(void) {
    begin();
    send(500);
    const uint64_t before = helio_sim_counts_of(w.sim)->sent;
    helio_pgm_session session = {*tsi(), 7500};
    uint32_t sequences[63];
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_address address = world_host(1, 0), group = world_address(WORLD_GROUP);
    const helio_address from = world_host(66, 1);
    for (int k = 0; k < 1000; k++) {
        for (uint32_t i = 0; i < 63; i++)
            sequences[i] = (uint32_t)k * 2 + i;
        const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, sequences,
                                                   63, &address, &group);
        helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
    }
    world_run(&w, 50 * US); /* within the repair linger time */
    CHECK(helio_sim_counts_of(w.sim)->sent - before <= 1000 + 501 + 10);
    const helio_address elsewhere = world_host(2, 0);
    const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, sequences, 1,
                                               &elsewhere, &group);
    helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
    CHECK_EQUAL(helio_cell(&world_counts(&source.instance)->invalid_packets_address), 1);
    end();
}

static void foreign_data_on_the_group_is_counted_apart(void) {
    begin();
    uint8_t packet[100] = {0};
    const helio_pgm_session session = {{{9, 9, 9, 9, 9, 9}, 57307}, 7500};
    memcpy(packet + HELIO_PGM_DATA_HEADER, "\0\0\0\0hello", 9);
    const size_t length = helio_pgm_encode_data(
        packet, &session, 0, 0, NULL, 9, helio_checksum_part(packet + HELIO_PGM_DATA_HEADER, 9));
    const helio_address from = world_address("10.0.0.77:3333");
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    CHECK_EQUAL(helio_cell(&counts()->foreign_packets), 1);
    CHECK_EQUAL(in.streams, 1);
    end();
}

static void feedback_goes_to_the_stream_or_to_the_endpoint_for_peers_of_other_make(void) {
    begin_receiver(world_receiver_config(100));
    begin_source(world_source_config(1));
    send(1);
    helio_sim_node *other = helio_sim_add_node(w.sim, &(helio_address){4, 0, 7500, {10, 0, 0, 77}});
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {{{9, 9, 9, 9, 9, 9}, 57307}, 7500};
    const helio_address from = world_address("10.0.0.77:3333"); /* not the data-source port */
    const size_t length =
        helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){1, 0, ~0u, false}, &from);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){2, 0, 3, false}, &from);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    helio_sim_wake(receiver.node);
    const helio_sim_counts before = *helio_sim_counts_of(w.sim);
    (void)other;
    world_run(&w, MS);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 1);
    CHECK_EQUAL(helio_sim_counts_of(w.sim)->nowhere, before.nowhere); /* it reached port 7500 */
    end();
}

static void a_hundred_thousand_mutated_datagrams_are_counted_and_survived(void) {
    begin();
    send(20);
    in.is_forged = true;
    helio_random random;
    helio_random_init(&random, 11);
    const helio_address from = world_address("10.0.0.1:40001"), group = world_address(WORLD_GROUP);
    const uint64_t before = helio_cell(&counts()->packets_received);
    for (int i = 0; i < 100000; i++) {
        uint8_t packet[300];
        const helio_pgm_session session = {*tsi(), 7500};
        size_t length = 0;
        uint8_t *tsdu = packet + HELIO_PGM_DATA_HEADER;
        switch (helio_random_below(&random, 4)) {
        case 0:
            length = helio_pgm_encode_spm(packet, &session,
                                          &(helio_pgm_spm){(uint32_t)i, 0, 30, false}, &from);
            break;
        case 1:
            length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NCF,
                                          (uint32_t[]){1, 2, 9}, 3, &from, &group);
            break;
        case 2:
            length = helio_random_below(&random, sizeof packet);
            for (size_t k = 0; k < length; k++)
                packet[k] = (uint8_t)helio_random_next(&random);
            break;
        default:
            helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = (uint8_t)(1 + i % 2),
                                                         .count = 2,
                                                         .topic_id = helio_hash_fnv1a("t", 1)});
            memcpy(tsdu + HELIO_TSDU_HEADER, "\0\2ab\0\3xyz", 9);
            length =
                helio_pgm_encode_data(packet, &session, (uint32_t)helio_random_below(&random, 60),
                                      0, NULL, HELIO_TSDU_HEADER + 9, 0);
        }
        for (uint64_t changes = helio_random_below(&random, 4); changes > 0 && length > 0;
             changes--)
            packet[helio_random_below(&random, length)] = (uint8_t)helio_random_next(&random);
        if (length >= HELIO_PGM_HEADER && i % 8) { /* most get past the checksum */
            memset(packet + 6, 0, 2);
            const uint16_t sum = helio_checksum_finish(helio_checksum_part(packet, length));
            memcpy(packet + 6, &sum, 2);
        }
        uint8_t *exact = malloc(length + 1);
        memcpy(exact, packet, length);
        helio_rx_endpoint_on_packet(receiver.endpoint, exact, length, &from, 0, world_now(&w));
        helio_tx_stream_on_packet(source.stream, exact, length, &from, world_now(&w));
        free(exact);
        if (i % 100 == 0)
            world_run(&w, MS);
    }
    CHECK(helio_cell(&counts()->packets_received) >= before + 100000);
    CHECK(helio_cell(&counts()->invalid_packets_checksum) > 1000);
    CHECK(helio_cell(&counts()->invalid_packets_size) > 1000);
    CHECK(helio_cell(&counts()->invalid_packets_options) > 100);
    CHECK(helio_cell(&counts()->invalid_packets_version) > 100);
    CHECK(helio_cell(&counts()->invalid_packets_address) > 100);
    CHECK(helio_cell(&counts()->invalid_packets_payload) > 10);
    end();
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
    RUN(packets_of_a_stream_from_another_address_are_refused);
    RUN(an_spm_with_a_huge_lead_makes_no_more_than_a_window_of_holes);
    RUN(a_trail_far_ahead_is_one_loss_and_no_long_walk);
    RUN(an_old_or_impossible_spm_changes_nothing);
    RUN(no_more_streams_than_allowed_are_followed);
    RUN(naks_for_anything_at_all_do_not_amplify);
    RUN(foreign_data_on_the_group_is_counted_apart);
    RUN(feedback_goes_to_the_stream_or_to_the_endpoint_for_peers_of_other_make);
    RUN(a_hundred_thousand_mutated_datagrams_are_counted_and_survived);
    return check_result();
}
