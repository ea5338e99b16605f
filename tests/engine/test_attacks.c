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
        packet, &session, &(helio_pgm_spm){sequence, trail, lead, fin, false, 0}, &address);
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
        const size_t length = helio_pgm_encode_spm(
            packet, &session, &(helio_pgm_spm){0, 0, ~0u, false, false, 0}, &from);
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
        helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){1, 0, ~0u, false, false, 0}, &from);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &from, 0, world_now(&w));
    helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){2, 0, 3, false, false, 0}, &from);
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
                packet, &session, &(helio_pgm_spm){(uint32_t)i, 0, 30, false, false, 0}, &from);
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
