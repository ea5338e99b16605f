/* What a receiver believes of a source that has proven nothing: forged packets draw little feedback
 * and change nothing, and genuine streams are repaired as quickly as ever. */
#include "base/hash.h"
#include "pair.h"
#include "receive/doubt.h"
#include "stats/segment.h"
#include "wire/checksum.h"
#include "wire/tsdu.h"

#define SOURCE "10.0.0.1:40001"
#define NEIGHBOUR "10.0.0.1:666" /* another program on the source's host */

/* ---- forging ---- */

static helio_pgm_session session(void) {
    return (helio_pgm_session){{{0xA1, 0xB2, 0xC3, 0xD4, 0xE5, 1}, 40001}, 7500};
}

static uint64_t given_bytes;

static void give(const uint8_t *packet, size_t length, const char *from) {
    const helio_address address = world_address(from);
    given_bytes += length;
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &address, 0, world_now(&w));
    helio_sim_wake(receiver.node);
}

static void forge_spm_with_path(helio_pgm_spm spm, const char *path, const char *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session forged = session();
    const helio_address nla = world_address(path);
    give(packet, helio_pgm_encode_spm(packet, &forged, &spm, &nla), from);
}

static void forge_spm(helio_pgm_spm spm, const char *from) {
    forge_spm_with_path(spm, "10.0.0.99:1", from);
}

/* A message of the topic in a packet of its own. */
static void forge_data(uint32_t sequence, uint64_t number, const char *from) {
    uint8_t packet[128];
    uint8_t *tsdu = packet + HELIO_PGM_DATA_HEADER;
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_MESSAGES,
                                                 .count = 1,
                                                 .topic_id = helio_hash_fnv1a("t", 1),
                                                 .first_message = number});
    memcpy(tsdu + HELIO_TSDU_HEADER, "\0\6forged", 8);
    const size_t bytes = HELIO_TSDU_HEADER + 8;
    const helio_pgm_session forged = session();
    const size_t length = helio_pgm_encode_data(packet, &forged, sequence, 0, NULL, bytes,
                                                helio_checksum_part(tsdu, bytes));
    give(packet, length, from);
}

static void forge_ncf(uint32_t sequence, const char *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session forged = session();
    const helio_address source_nla = world_address(SOURCE), group = world_address(WORLD_GROUP);
    give(packet,
         helio_pgm_encode_nak(packet, &forged, HELIO_PGM_TYPE_NCF, &sequence, 1, &source_nla,
                              &group),
         from);
}

static void forge_poll(uint32_t sequence, const char *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session forged = session();
    const helio_address path = world_address("10.0.0.99:1");
    give(packet, helio_pgm_encode_poll(packet, &forged, sequence, &(helio_pgm_poll){0}, &path),
         from);
}

/* The newest packet sent, as on the wire. */
static uint32_t lead(void) {
    return (uint32_t)helio_cell(&source_counts()->window_lead);
}

static uint32_t spm_lead(void) {
    return (uint32_t)helio_cell(&source_counts()->heartbeats_sent);
}

static helio_rx_stream_stats *stream_counts(void) {
    return world_record(&w, HELIO_SCOPE_RX_STREAM, "");
}

/* ---- a victim ---- */

static uint64_t victim_bytes;

static void count_bytes(void *context, const void *packet, size_t length, const helio_address *from,
                        helio_moment moment) {
    (void)context, (void)packet, (void)from, (void)moment;
    victim_bytes += length;
}

static void sit(void *context, helio_moment moment) {
    (void)context, (void)moment;
}

static int64_t never(void *context) {
    (void)context;
    return HELIO_NEVER;
}

static void add_victim(const char *address) {
    const helio_address at = world_address(address);
    helio_sim_attach(helio_sim_add_node(w.sim, &at),
                     &(helio_sim_handler){NULL, count_bytes, sit, never});
}

/* Somebody whose address is forged, at both ports that feedback may go to, and whom a path
 * names. */
static void begin_victims(helio_rx_endpoint_config config) {
    begin_receiver(config);
    given_bytes = victim_bytes = 0;
    add_victim("10.0.0.66:40001");
    add_victim("10.0.0.66:7500");
    add_victim("10.0.0.99:40001");
    add_victim("10.0.0.99:7500");
}

static void end_victims(void) {
    world_end_receiver(&receiver);
    world_fini(&w);
}

/* One forged packet, anything but an answer. */
static void forge_any(helio_random *random, uint32_t *at, uint32_t *spms, const char *from) {
    static const uint32_t steps[] = {1, 2, 50, 200, 300, 900, 1, 1, 5000, 0x7FFFFFF0};
    *at += steps[helio_random_below(random, sizeof steps / sizeof *steps)];
    switch (helio_random_below(random, 4)) {
    case 0: {
        const uint32_t window = (uint32_t)helio_random_below(random, 2000);
        forge_spm((helio_pgm_spm){.sequence = ++*spms,
                                  .trail = *at + 1 - window,
                                  .lead = *at,
                                  .offers_history = helio_random_below(random, 2),
                                  .join = *at - 100,
                                  .takes_reports = helio_random_below(random, 2),
                                  .reporting = {.interval_us = 1000,
                                                .progress = 1,
                                                .acker = 7,
                                                .flags = HELIO_PGM_REPORTING_AWAITS_CREDIT},
                                  .awaits_acks = helio_random_below(random, 2),
                                  .awaited = *at - 50},
                  from);
        break;
    }
    case 1:
        forge_poll(++*spms, from);
        break;
    default:
        forge_data(*at, *at, from);
    }
}

static void an_address_that_never_answers_gets_at_most_twice_what_came(void) {
    uint64_t answered = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        helio_random random;
        helio_random_init(&random, seed);
        helio_rx_endpoint_config config = world_receiver_config(100);
        config.receiver = 7;
        config.join_history = helio_random_below(&random, 2);
        config.network_elements = helio_random_below(&random, 4) == 0;
        config.nak_backoff_ns = helio_random_below(&random, 2) ? -1 : 100 * US;
        config.window_packets = helio_random_below(&random, 2) ? 64 : 1024;
        begin_victims(config);
        in.is_forged = true;
        const char *from = helio_random_below(&random, 3) ? "10.0.0.66:40001" : "10.0.0.66:4711";
        uint32_t at = 0, spms = 0;
        for (uint64_t i = 1 + helio_random_below(&random, 30); i > 0; i--) {
            forge_any(&random, &at, &spms, from);
            world_run(&w, (int64_t)helio_random_below(&random, 4) * 5 * MS);
            CHECK(victim_bytes <= 2 * given_bytes);
        }
        world_run(&w, 3 * HELIO_SECOND);
        CHECK(victim_bytes <= 2 * given_bytes);
        answered += victim_bytes > 0;
        end_victims();
    }
    CHECK(answered > 300); /* it was not just silent */
}

static void acknowledgements_and_reports_are_within_the_bound(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.receiver = 7;
    config.ack_packets = 1;
    begin_victims(config);
    in.is_forged = true;
    helio_subscription *subscription;
    const helio_sink sink = {&in, .on_messages = on_messages, .ack = HELIO_SINK_ACK_AUTO};
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver.endpoint, "t", &sink, world_now(&w), &subscription),
        0);
    for (uint32_t i = 1; i <= 300; i++) {
        forge_spm((helio_pgm_spm){.sequence = i,
                                  .lead = i - 1,
                                  .takes_reports = true,
                                  .reporting = {.interval_us = 1000, .acker = 7, .progress = 1},
                                  .awaits_acks = true},
                  "10.0.0.66:40001");
        if (i % 8 == 0) {
            forge_data(i, i, "10.0.0.66:40001");
        }
        world_run(&w, 10 * MS);
        CHECK(victim_bytes <= 2 * given_bytes);
    }
    CHECK(victim_bytes > given_bytes / 4);
    end_victims();
}

static void what_never_answers_is_given_up_at_its_deadline_and_not_before(void) {
    begin_victims(world_receiver_config(100));
    in.is_forged = true;
    forge_spm((helio_pgm_spm){.sequence = 1, .lead = UINT32_MAX}, "10.0.0.66:40001");
    forge_data(0, 0, "10.0.0.66:40001"); /* and has its whole window now */
    forge_data(200, 200, "10.0.0.66:40001");
    forge_data(201, 201, "10.0.0.66:40001");
    forge_spm((helio_pgm_spm){.sequence = 2, .lead = 201}, "10.0.0.66:40001");
    world_run(&w, 900 * MS);
    CHECK_EQUAL(in.messages, 1);
    CHECK(helio_cell(&counts()->state_refused_naks_unanswered) > 100);
    const uint64_t asked = victim_bytes;
    CHECK(asked > 0);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(in.messages, 3);
    world_run(&w, 5 * HELIO_SECOND);
    CHECK_EQUAL(victim_bytes, asked);
    end_victims();
}

static void one_that_answers_and_brings_nothing_is_asked_at_a_bounded_rate(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.nak_deadline_ns = 100 * HELIO_SECOND;
    config.nak_retries = 60000;
    begin_victims(config);
    in.is_forged = true;
    forge_spm((helio_pgm_spm){.sequence = 1, .lead = UINT32_MAX}, "10.0.0.66:40001");
    forge_data(200, 200, "10.0.0.66:40001");
    for (uint32_t i = 201; i <= 1000; i += 200) {
        forge_data(i, i, "10.0.0.66:40001");
    }
    const int seconds = 10;
    for (uint32_t i = 0; i < 20; i++) {
        forge_ncf(i, "10.0.0.66:40001");
        world_run(&w, seconds * HELIO_SECOND / 20);
    }
    CHECK(victim_bytes <= 16 * 1024 + (uint64_t)seconds * 16000 + 10 * given_bytes);
    end_victims();
}

static void whoever_answers_cannot_turn_requests_upon_another(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.network_elements = true;
    begin_victims(config);
    in.is_forged = true;
    forge_spm_with_path((helio_pgm_spm){.sequence = 1, .lead = UINT32_MAX}, "10.0.0.66:1",
                        "10.0.0.66:40001");
    forge_data(0, 0, "10.0.0.66:40001"); /* and has its whole window now */
    forge_data(200, 200, "10.0.0.66:40001");
    world_run(&w, 5 * MS);
    forge_ncf(1, "10.0.0.66:40001");
    world_run(&w, 3 * HELIO_SECOND);
    CHECK(victim_bytes > 2 * given_bytes); /* it answered, so all was asked for */
    given_bytes = victim_bytes = 0;
    forge_spm_with_path((helio_pgm_spm){.sequence = 2, .lead = 200}, "10.0.0.99:1",
                        "10.0.0.66:40001");
    forge_data(400, 400, "10.0.0.66:40001");
    world_run(&w, 3 * HELIO_SECOND);
    CHECK(victim_bytes > 0);
    CHECK(victim_bytes <= 2 * given_bytes);
    end_victims();
}

/* ---- genuine streams ---- */

/* Virtual time until `count` messages are there, from a loss of `lost` packets with one behind
 * it. */
static int64_t recover(uint64_t lost, int64_t delay_ns, bool has_answered) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.group = world_host(100, 7500); /* unicast: nothing is held back */
    config.nak_backoff_ns = 0;
    config.nak_repeat_ns = 200 * MS;
    begin_receiver(config);
    helio_tx_stream_config from = world_source_config(1);
    from.group = world_host(100, 50000);
    begin_source(from);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = delay_ns});
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = delay_ns});
    send(100);
    world_run(&w, 50 * MS);
    if (has_answered) {
        drop(receiver.node, ODATA, 1);
        send(3);
        helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = delay_ns});
        world_run(&w, 50 * MS);
    }
    const uint64_t before = in.messages;
    CHECK_EQUAL(before, has_answered ? 103 : 100);
    helio_sim_set_partition(receiver.node, 1);
    send((int)lost);
    helio_sim_set_partition(receiver.node, 0);
    const int64_t start_ns = world_now(&w).now_ns;
    send(3);
    while (in.messages < before + lost + 3 && world_now(&w).now_ns < start_ns + HELIO_SECOND) {
        world_run(&w, 10 * US);
    }
    CHECK_EQUAL(in.messages, before + lost + 3);
    CHECK_EQUAL(in.lost, 0);
    const int64_t took_ns = world_now(&w).now_ns - start_ns;
    end();
    return took_ns;
}

static void a_first_loss_costs_a_round_trip_more_only_where_it_is_more_than_a_nak(void) {
    const int64_t way_ns = 5 * MS;
    for (uint64_t lost = 1; lost <= 600; lost += lost < 60 ? 7 : 135) {
        const int64_t first_ns = recover(lost, way_ns, false),
                      later_ns = recover(lost, way_ns, true);
        CHECK(later_ns <= 3 * way_ns + MS);
        CHECK(first_ns <= (lost <= 63 + 100 ? 3 : 5) * way_ns + 2 * MS);
    }
}

static void a_lone_packet_behind_a_great_loss_is_borne_out_by_the_heartbeat(void) {
    begin();
    send(5);
    helio_sim_set_partition(receiver.node, 1);
    send(600);
    helio_sim_set_partition(receiver.node, 0);
    send(1);
    CHECK_EQUAL(in.messages, 5);
    world_run(&w, 5 * MS); /* heartbeat_min is half a millisecond */
    CHECK_EQUAL(in.messages, 606);
    CHECK_EQUAL(in.lost, 0);
    CHECK_EQUAL(helio_cell(&stream_counts()->packets_refused), 0);
    /* What was held aside was not asked for. */
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 600);
    end();
}

static void heartbeats_alone_bear_each_other_out(void) {
    begin();
    send(5);
    helio_sim_set_partition(receiver.node, 1);
    send(600);
    helio_sim_set_partition(receiver.node, 0);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(in.messages, 605);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void history_takes_one_round_trip_to_begin(void) {
    world_init(&w, 1, 1);
    helio_tx_stream_config from = world_source_config(1);
    from.late_join = true;
    begin_source(from);
    send(1000);
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.join_history = true;
    world_add_receiver(&w, &receiver, &config);
    subscribe(&receiver, &in);
    helio_tx_stream_greet(source.stream, world_now(&w));
    const int64_t start_ns = world_now(&w).now_ns;
    while (in.messages < 1000 && world_now(&w).now_ns < start_ns + HELIO_SECOND) {
        world_run(&w, 100 * US);
    }
    CHECK_EQUAL(in.messages, 1000);
    CHECK(world_now(&w).now_ns - start_ns < 60 * MS);
    CHECK_EQUAL(helio_cell(&counts()->state_refused_naks_unanswered), 0);
    end();
}

/* ---- claims from the right address ---- */

static void one_forged_leap_opens_no_window_of_holes(void) {
    begin();
    send(5);
    forge_data(lead() + 900, 900, SOURCE);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(helio_cell(&counts()->naks_sent), 0);
    forge_spm((helio_pgm_spm){.sequence = spm_lead() + 100, .lead = lead() + 0x7FFFFF00}, SOURCE);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(helio_cell(&counts()->naks_sent), 0);
    CHECK_EQUAL(helio_cell(&stream_counts()->packets_refused), 1);
    send(500);
    CHECK_EQUAL(in.messages, 505);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void the_same_leap_again_bears_out_nothing(void) {
    begin();
    send(5);
    for (int i = 0; i < 10; i++) {
        forge_data(lead() + 900, 900, SOURCE);
    }
    world_run(&w, 50 * MS);
    CHECK_EQUAL(helio_cell(&counts()->naks_sent), 0);
    send(5);
    CHECK_EQUAL(in.messages, 10);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(helio_cell(&stream_counts()->packets_refused), 10);
    end();
}

static void an_spm_far_ahead_does_not_break_repair(void) {
    static const uint32_t far[] = {2000, 0x7FFFFFF0, 0x80000010, 0xFFFF0000};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        begin();
        send(5);
        forge_spm((helio_pgm_spm){.sequence = spm_lead() + far[i], .lead = lead()}, SOURCE);
        drop(receiver.node, ODATA, 1);
        send(1);
        world_run(&w, 5 * MS); /* a heartbeat tells that it is missing */
        CHECK_EQUAL(in.messages, 6);
        end();
    }
}

static void after_two_forged_spms_the_genuine_ones_are_believed_again(void) {
    begin();
    send(5);
    forge_spm((helio_pgm_spm){.sequence = 0x7FFFFF00, .lead = lead()}, SOURCE);
    forge_spm((helio_pgm_spm){.sequence = 0x7FFFFF01, .lead = lead()}, SOURCE);
    drop(receiver.node, ODATA, 1);
    send(1);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(in.messages, 6);
    end();
}

static void forge_rst(uint32_t after, const char *from) {
    forge_spm((helio_pgm_spm){.sequence = spm_lead() + after, .lead = lead(), .rst = true}, from);
}

static void one_forged_reset_ends_nothing_while_data_comes(void) {
    begin();
    send(5);
    for (int i = 0; i < 50; i++) {
        forge_rst(1, SOURCE);
        send(1);
        world_run(&w, 5 * MS);
    }
    CHECK_EQUAL(in.messages, 55);
    CHECK_EQUAL(in.streams, 1);
    CHECK_EQUAL(in.ended, 0);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void a_reset_counts_when_nothing_else_is_heard(void) {
    begin();
    send(5);
    helio_sim_set_partition(receiver.node, 1);
    forge_rst(1, SOURCE);
    world_run(&w, HELIO_RX_RESET_NS - MS);
    CHECK_EQUAL(in.ended, 0);
    world_run(&w, 2 * MS);
    CHECK_EQUAL(in.ended, 1);
    end();
}

static void a_stream_that_was_ended_comes_back_with_its_next_data(void) {
    for (int is_fin = 0; is_fin <= 1; is_fin++) {
        begin();
        send(5);
        for (uint32_t i = 1; i <= 3; i++) {
            if (is_fin) {
                forge_spm((helio_pgm_spm){.sequence = spm_lead() + i, .lead = lead(), .fin = true},
                          SOURCE);
            } else {
                forge_rst(i, SOURCE);
            }
        }
        world_run(&w, MS);
        CHECK_EQUAL(in.ended, 1);
        forge_data(lead(), 4, SOURCE); /* not newer */
        CHECK_EQUAL(in.streams, 1);
        forge_data(lead() + 1, 5, "10.0.0.2:40001"); /* not the source */
        forge_data(lead() + 1, 5, NEIGHBOUR);
        CHECK_EQUAL(in.streams, 1);
        send(20);
        CHECK_EQUAL(in.streams, 2);
        CHECK_EQUAL(in.messages, 25);
        CHECK_EQUAL(in.next, 25);
        CHECK_EQUAL(in.lost, 0);
        end();
    }
}

static void an_end_that_data_contradicts_is_none(void) {
    begin();
    send(50);
    forge_spm((helio_pgm_spm){.sequence = spm_lead() + 1, .lead = lead() - 20, .fin = true},
              SOURCE);
    world_run(&w, MS);
    CHECK_EQUAL(in.ended, 0);
    forge_spm((helio_pgm_spm){.sequence = spm_lead() + 2, .lead = lead() + 5, .fin = true}, SOURCE);
    drop(receiver.node, ODATA, 5); /* the end is not reached before data beyond it comes */
    send(50);
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(in.ended, 0);
    CHECK_EQUAL(in.messages, 100);
    CHECK_EQUAL(in.lost, 0);
    end();
}

/* ---- who the source is ---- */

static void packets_from_another_port_change_nothing_but_a_count(void) {
    begin();
    send(5);
    forge_rst(1, NEIGHBOUR);
    forge_rst(2, NEIGHBOUR);
    forge_spm((helio_pgm_spm){.sequence = spm_lead() + 3, .lead = lead(), .fin = true}, NEIGHBOUR);
    forge_spm((helio_pgm_spm){.sequence = spm_lead() + 500, .lead = lead() + 200}, NEIGHBOUR);
    for (uint32_t i = 1; i <= 5; i++) {
        forge_data(lead() + i, 4 + i, NEIGHBOUR);
    }
    world_run(&w, 30 * MS);
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 9);
    CHECK_EQUAL(in.messages, 5);
    send(5);
    CHECK_EQUAL(in.messages, 10);
    CHECK_EQUAL(in.ended, 0);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 0);
    CHECK_EQUAL(helio_cell(&stream_counts()->packets_received), 11); /* with the announcement */
    end();
}

static void the_owner_of_the_port_takes_its_stream_over(void) {
    begin_receiver(world_receiver_config(100));
    in.is_forged = true;
    for (uint32_t i = 0; i < 5; i++) {
        forge_data(1000 + i, i, NEIGHBOUR);
    }
    CHECK_EQUAL(in.messages, 5);
    begin_source(world_source_config(1));
    world_run(&w, 100 * US);
    send(5);
    CHECK_EQUAL(in.messages, 10);
    CHECK_EQUAL(in.streams, 2);
    forge_data(lead() + 1, 5, NEIGHBOUR); /* too late */
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 1);
    send(5);
    CHECK_EQUAL(in.messages, 15);
    end();
}

static void bare_messages_of_another_make_are_not_taken_over(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.is_raw = true;
    begin_receiver(config);
    in.is_forged = true;
    forge_data(0, 0, "10.0.0.1:5555"); /* one socket for data, another for SPMs */
    forge_spm((helio_pgm_spm){.sequence = 1, .lead = 0}, "10.0.0.1:5556");
    forge_data(1, 1, "10.0.0.1:5555");
    CHECK_EQUAL(in.messages, 2);
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 0);
    forge_data(2, 2, SOURCE); /* anybody can open that port */
    CHECK_EQUAL(in.messages, 2);
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 1);
    forge_data(2, 2, "10.0.0.1:5555");
    CHECK_EQUAL(in.messages, 3);
    CHECK_EQUAL(in.streams, 1);
    world_end_receiver(&receiver);
    world_fini(&w);
}

static void a_stream_is_bound_to_its_connection_while_that_stands(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.is_connected = true;
    begin_receiver(config);
    in.is_forged = true;
    const char *first = "10.0.0.1:1001", *second = "10.0.0.1:1002", *third = "10.0.0.1:1003";
    forge_data(0, 0, first);
    forge_data(1, 1, second);
    CHECK_EQUAL(in.messages, 1);
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 1);
    const helio_address other = world_address("10.0.0.1:1009"), gone = world_address(first);
    helio_rx_endpoint_detach(receiver.endpoint, &other);
    forge_data(1, 1, second);
    CHECK_EQUAL(in.messages, 1);
    helio_rx_endpoint_detach(receiver.endpoint, &gone);
    forge_data(1, 1, first); /* what it sent before it broke may still be read */
    forge_data(2, 2, "10.0.0.2:1002");
    CHECK_EQUAL(in.messages, 2);
    forge_data(2, 2, second);
    CHECK_EQUAL(in.messages, 3);
    forge_data(3, 3, third);
    CHECK_EQUAL(in.messages, 3);
    world_run(&w, 3 * HELIO_SECOND); /* it broke, and this end has not noticed */
    forge_data(3, 3, third);
    CHECK_EQUAL(in.messages, 4);
    world_end_receiver(&receiver);
    world_fini(&w);
}

int main(void) {
    RUN(an_address_that_never_answers_gets_at_most_twice_what_came);
    RUN(acknowledgements_and_reports_are_within_the_bound);
    RUN(what_never_answers_is_given_up_at_its_deadline_and_not_before);
    RUN(one_that_answers_and_brings_nothing_is_asked_at_a_bounded_rate);
    RUN(whoever_answers_cannot_turn_requests_upon_another);
    RUN(a_first_loss_costs_a_round_trip_more_only_where_it_is_more_than_a_nak);
    RUN(a_lone_packet_behind_a_great_loss_is_borne_out_by_the_heartbeat);
    RUN(heartbeats_alone_bear_each_other_out);
    RUN(history_takes_one_round_trip_to_begin);
    RUN(one_forged_leap_opens_no_window_of_holes);
    RUN(the_same_leap_again_bears_out_nothing);
    RUN(an_spm_far_ahead_does_not_break_repair);
    RUN(after_two_forged_spms_the_genuine_ones_are_believed_again);
    RUN(one_forged_reset_ends_nothing_while_data_comes);
    RUN(a_reset_counts_when_nothing_else_is_heard);
    RUN(a_stream_that_was_ended_comes_back_with_its_next_data);
    RUN(an_end_that_data_contradicts_is_none);
    RUN(packets_from_another_port_change_nothing_but_a_count);
    RUN(the_owner_of_the_port_takes_its_stream_over);
    RUN(bare_messages_of_another_make_are_not_taken_over);
    RUN(a_stream_is_bound_to_its_connection_while_that_stands);
    return check_result();
}
