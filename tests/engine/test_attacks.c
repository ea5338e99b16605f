/* Forged, foreign and damaged packets: what a stream must stand. */
#include "base/hash.h"
#include "pair.h"
#include "wire/checksum.h"
#include "wire/tsdu.h"

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
        packet, &session, &(helio_pgm_spm){sequence, trail, lead, .fin = fin}, &address);
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
    for (uint32_t i = 1; i <= 200; i++) { /* two thousand million packets, and none of them there */
        forge_spm(1000 + i, 10000000 * i, 10000000 * i + 5, false, "10.0.0.1:40001");
    }
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
        const size_t length = helio_pgm_encode_spm(
            packet, &session, &(helio_pgm_spm){0, 0, ~0u, .fin = false}, &from);
        helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    }
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0); /* an SPM alone has none followed */
    CHECK_EQUAL(helio_cell(&counts()->unknown_session_packets), 1000);
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
        for (uint32_t i = 0; i < 63; i++) {
            sequences[i] = (uint32_t)k * 2 + i;
        }
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

static void a_nak_asks_for_at_most_a_list_of_repairs(void) {
    begin();
    send(500);
    world_run(&w, MS);
    const helio_sim_counts before = *helio_sim_counts_of(w.sim);
    helio_pgm_session session = {*tsi(), 7500};
    uint32_t sequences[63];
    for (uint32_t i = 0; i < 63; i++) {
        sequences[i] = i;
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_address address = world_host(1, 0), group = world_address(WORLD_GROUP);
    const helio_address from = world_host(66, 1);
    const size_t length =
        helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, sequences, 63, &address, &group);
    for (int i = 0; i < 1000; i++) { /* a storm of it, all within the linger time */
        helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
    }
    helio_sim_wake(source.node);
    world_run(&w, 50 * US);
    /* one confirmation each, as it has a list, and 63 repairs for all of them together */
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 63);
    CHECK(helio_sim_counts_of(w.sim)->sent - before.sent <= 1000 + 63);
    end();
}

/* ---- forged advice, confirmations and questions ---- */

/* Hands the receiver a packet of the stream, from its source or from elsewhere. */
static void give(const uint8_t *packet, size_t length, const char *from) {
    const helio_address address = world_address(from);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &address, 0, world_now(&w));
    helio_sim_wake(receiver.node);
}

/* How long a repair takes after advice to hold NAKs back for so long. */
static int64_t repair_after_advice(uint32_t advised_us) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.nak_backoff_ns = -1;
    begin_receiver(config);
    begin_source(world_source_config(1));
    send(5);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*tsi(), 7500};
    const helio_address address = world_address("10.0.0.1:40001");
    const helio_pgm_spm spm = {.sequence = 1000, .lead = 5, .backoff_us = advised_us};
    give(packet, helio_pgm_encode_spm(packet, &session, &spm, &address), "10.0.0.1:40001");
    drop(receiver.node, ODATA, 1);
    send(3);
    const int64_t start_ns = world_now(&w).now_ns;
    while (in.messages < 8 && world_now(&w).now_ns < start_ns + HELIO_SECOND) {
        world_run(&w, 10 * US);
    }
    const int64_t taken_ns = world_now(&w).now_ns - start_ns;
    CHECK_EQUAL(in.messages, 8);
    end();
    return taken_ns;
}

static void advice_to_wait_for_an_hour_does_not_stall(void) {
    CHECK(repair_after_advice(0xFFFFFFFF) <= 51 * MS);
    CHECK(repair_after_advice(10000) <= 11 * MS);
}

static void advice_not_to_wait_does_not_make_everybody_ask_at_once(void) {
    enum { RECEIVERS = 100 };
    static world_receiver others[RECEIVERS];
    begin();
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config config = world_receiver_config(200 + i);
        config.nak_backoff_ns = -1;
        config.group_size = RECEIVERS;
        world_add_receiver(&w, &others[i], &config);
        helio_sim_set_link(others[i].node, &(helio_sim_link){.delay_ns = 25 * US, .drops = drops});
    }
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = 25 * US});
    send(5);
    world_run(&w, MS);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*tsi(), 7500};
    const helio_address address = world_address("10.0.0.1:40001");
    const helio_pgm_spm spm = {.sequence = 1000, .lead = 5, .backoff_us = 1};
    const size_t length = helio_pgm_encode_spm(packet, &session, &spm, &address);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_on_packet(others[i].endpoint, packet, length, &address, 0, world_now(&w));
    }
    drop_types = ODATA;
    drop_count = RECEIVERS;
    send(5);
    world_run(&w, 20 * MS);
    const uint64_t naks = helio_cell(&source_counts()->nak_packets_received);
    CHECK(naks >= 1 && naks <= 10);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&others[i]);
    }
    end();
}

static void forged_confirmations_delay_a_repair_but_cannot_deny_it(void) {
    begin();
    send(5);
    drop(receiver.node, ODATA, 1);
    send(3);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*tsi(), 7500};
    const helio_address address = world_host(1, 0), group = world_address(WORLD_GROUP);
    const uint32_t sequence = (uint32_t)helio_cell(&source_counts()->window_lead) - 2;
    const size_t length =
        helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NCF, &sequence, 1, &address, &group);
    drop(receiver.node, RDATA, 1); /* the request made before the flood had its answer lost */
    for (int i = 0; i < 3000 && in.messages < 8; i++) {
        give(packet, length, "10.0.0.1:40001");
        world_run(&w, 500 * US);
    }
    CHECK(in.next >= 8); /* repaired, or told lost at its deadline */
    give(packet, length, "10.0.0.66:40001");
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 1);
    end();
}

static void a_flood_of_polls_to_everybody_is_answered_now_and_then(void) {
    begin();
    send(1);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*tsi(), 7500};
    const helio_address address = world_address("10.0.0.1:40001");
    const uint64_t before = helio_cell(&counts()->packets_sent);
    for (uint32_t i = 1; i <= 10000; i++) { /* 100 ms */
        const size_t length =
            helio_pgm_encode_poll(packet, &session, i, &(helio_pgm_poll){.mask = 0}, &address);
        give(packet, length, "10.0.0.1:40001");
        world_run(&w, 10 * US);
    }
    CHECK(helio_cell(&counts()->packets_sent) - before <= 12);
    end();
}

static void an_end_or_reset_from_another_address_ends_nothing(void) {
    begin();
    send(5);
    forge_spm(2000, 0, 5, true, "10.0.0.66:40001");
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*tsi(), 7500};
    const helio_address address = world_address("10.0.0.66:40001");
    const helio_pgm_spm spm = {.sequence = 2001, .lead = 5, .rst = true};
    give(packet, helio_pgm_encode_spm(packet, &session, &spm, &address), "10.0.0.66:40001");
    world_run(&w, 10 * MS);
    send(5);
    CHECK_EQUAL(in.messages, 10);
    CHECK_EQUAL(in.ended, 0);
    CHECK_EQUAL(helio_cell(&counts()->invalid_packets_address), 2);
    end();
}

static void of_two_sources_with_one_identity_the_first_is_followed(void) {
    begin();
    send(5);
    static world_source impostor;
    helio_tx_stream_config config = world_source_config(1); /* the same identity */
    config.address = world_host(2, 0);
    world_add_source(&w, &impostor, &config);
    helio_tx_topic *other;
    CHECK_EQUAL(helio_tx_stream_add_topic(impostor.stream, "t", world_now(&w), &other), 0);
    for (int i = 0; i < 50; i++) {
        helio_tx_stream_append(impostor.stream, other, "false", 5, 0, world_now(&w));
        helio_tx_stream_flush(impostor.stream, world_now(&w));
        helio_sim_wake(impostor.node);
        send(1);
    }
    world_run(&w, 10 * MS);
    CHECK_EQUAL(in.messages, 55);
    CHECK_EQUAL(in.lost, 0);
    CHECK_EQUAL(in.streams, 1);
    CHECK(helio_cell(&counts()->invalid_packets_address) >= 50);
    world_end_source(&impostor);
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
        helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){1, 0, ~0u, .fin = false}, &from);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){2, 0, 3, .fin = false}, &from);
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
            length = helio_pgm_encode_spm(
                packet, &session, &(helio_pgm_spm){(uint32_t)i, 0, 30, .fin = false}, &from);
            break;
        case 1:
            length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NCF,
                                          (uint32_t[]){1, 2, 9}, 3, &from, &group);
            break;
        case 2:
            length = helio_random_below(&random, sizeof packet);
            for (size_t k = 0; k < length; k++) {
                packet[k] = (uint8_t)helio_random_next(&random);
            }
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
             changes--) {
            packet[helio_random_below(&random, length)] = (uint8_t)helio_random_next(&random);
        }
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
        if (i % 100 == 0) {
            world_run(&w, MS);
        }
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
    RUN(packets_of_a_stream_from_another_address_are_refused);
    RUN(an_spm_with_a_huge_lead_makes_no_more_than_a_window_of_holes);
    RUN(a_trail_far_ahead_is_one_loss_and_no_long_walk);
    RUN(an_old_or_impossible_spm_changes_nothing);
    RUN(no_more_streams_than_allowed_are_followed);
    RUN(naks_for_anything_at_all_do_not_amplify);
    RUN(a_nak_asks_for_at_most_a_list_of_repairs);
    RUN(advice_to_wait_for_an_hour_does_not_stall);
    RUN(advice_not_to_wait_does_not_make_everybody_ask_at_once);
    RUN(forged_confirmations_delay_a_repair_but_cannot_deny_it);
    RUN(a_flood_of_polls_to_everybody_is_answered_now_and_then);
    RUN(an_end_or_reset_from_another_address_ends_nothing);
    RUN(of_two_sources_with_one_identity_the_first_is_followed);
    RUN(foreign_data_on_the_group_is_counted_apart);
    RUN(feedback_goes_to_the_stream_or_to_the_endpoint_for_peers_of_other_make);
    RUN(a_hundred_thousand_mutated_datagrams_are_counted_and_survived);
    return check_result();
}
