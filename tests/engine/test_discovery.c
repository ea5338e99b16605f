/* Streams that have proven nothing: what is kept of them, and who gives way to whom. */
#include <malloc.h>

#include "base/hash.h"
#include "pair.h"
#include "receive/discovery.h"
#include "receive/unproven.h"
#include "repair/nak.h"
#include "runtime/sink.h"
#include "window/rxw.h"
#include "wire/checksum.h"
#include "wire/tsdu.h"

enum { FORGED = 10000, WINDOW = 1024, TSDU = 1472 - HELIO_PGM_DATA_HEADER };

/* ---- what a forger sends ---- */

static helio_pgm_session forged(uint32_t number) {
    helio_pgm_session session = {{{0xF0, 0xF1, 0, 0, 0, 0}, 6000}, 7500};
    memcpy(session.tsi.gsi + 2, &number, sizeof number);
    return session;
}

static void give(const void *packet, size_t length, const helio_address *from) {
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, from, 0, world_now(&w));
    helio_sim_wake(receiver.node);
}

static void give_spm(uint32_t number, const helio_pgm_spm *spm, const helio_address *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = forged(number);
    give(packet, helio_pgm_encode_spm(packet, &session, spm, from), from);
}

/* An SPM of a stream that has sent packet 0 and no other. */
static void meet(uint32_t number, const helio_address *from) {
    give_spm(number, &(helio_pgm_spm){.sequence = 1, .trail = 0, .lead = 0}, from);
}

static void give_message(uint32_t number, uint32_t sequence, const char *of_topic, uint64_t message,
                         const helio_address *from) {
    uint8_t packet[HELIO_PGM_DATA_HEADER + HELIO_TSDU_HEADER + 3];
    uint8_t *tsdu = packet + HELIO_PGM_DATA_HEADER;
    const helio_pgm_session session = forged(number);
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_MESSAGES,
                                                 .count = 1,
                                                 .first_message = message,
                                                 .topic_id = helio_hash_fnv1a(of_topic, 1)});
    memcpy(tsdu + HELIO_TSDU_HEADER, "\0\1x", 3);
    const size_t length =
        helio_pgm_encode_data(packet, &session, sequence, 0, NULL, HELIO_TSDU_HEADER + 3,
                              helio_checksum_part(tsdu, HELIO_TSDU_HEADER + 3));
    give(packet, length, from);
}

/* A stream of one topic: packet and message have one number. */
static void give_data(uint32_t number, uint32_t sequence, const char *of_topic,
                      const helio_address *from) {
    give_message(number, sequence, of_topic, sequence, from);
}

static void begin_alone(void) {
    begin_receiver(world_receiver_config(100));
}

static void end_alone(void) {
    const helio_instance_stats *stats = counts(); /* readable when it is closed, too */
    world_end_receiver(&receiver);
    CHECK_EQUAL(helio_cell(&stats->memory_used), 0);
    world_fini(&w);
}

/* A stream that is followed, as data is missing, and that nobody wants. */
static void open_unproven(uint32_t number, const helio_address *from) {
    meet(number, from);
    give_data(number, 5, "u", from);
}

/* The same, when others had their time. */
static void open_later(uint32_t number, const helio_address *from) {
    world_run(&w, HELIO_RX_UNPROVEN_NS);
    open_unproven(number, from);
}

static bool is_followed(uint32_t number, const helio_address *from) {
    const uint64_t before = helio_cell(&counts()->unknown_session_packets);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = forged(number);
    const uint32_t sequence = 1;
    const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NCF, &sequence, 1,
                                               from, &(helio_address){.family = 4});
    give(packet, length, from);
    return helio_cell(&counts()->unknown_session_packets) == before;
}

static uint64_t used(void) {
    return helio_cell(&counts()->memory_used);
}

static size_t window_bytes(size_t packets) {
    return helio_rxw_memory_of(packets, TSDU) + helio_nak_memory_of(packets);
}

/* ---- what is kept ---- */

static void an_spm_alone_makes_a_record_and_no_stream(void) {
    begin_alone();
    const helio_address from = world_host(66, 1);
    for (uint32_t i = 0; i < FORGED; i++) {
        meet(i, &from);
    }
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    CHECK_EQUAL(helio_cell(&counts()->packets_sent), 0); /* nobody was asked for anything */
    CHECK(used() <= 64 << 10);
    CHECK_EQUAL(helio_cell(&counts()->state_refused_streams_of_address),
                FORGED - HELIO_RX_DISCOVERY_OF_ADDRESS);
    end_alone();
}

static void ten_thousand_forged_streams_take_little_and_lock_nobody_out(void) {
    for (unsigned addresses = 1; addresses <= 250; addresses += 249) {
        begin_receiver(world_receiver_config(100));
        const size_t heap = mallinfo2().uordblks;
        for (uint32_t i = 0; i < FORGED; i++) {
            const helio_address from = world_host(1000 + i % addresses, 1);
            meet(i, &from);
            give_data(i, 1, "u", &from);
            if (i % 3 == 0) {
                give_data(i, 9, "u", &from); /* what is missing would be asked for */
            }
        }
        CHECK(helio_cell(&counts()->rx_streams) <= 8);
        CHECK(used() <=
              HELIO_RX_DISCOVERY_SETS * sizeof(helio_rx_discovered_set) + 8 * window_bytes(16));
        CHECK(used() <= 4 << 20);
        CHECK(mallinfo2().uordblks - heap <= 6 << 20);
        CHECK(addresses == 1 || helio_cell(&counts()->state_refused_streams) > 0);
        begin_source(world_source_config(1));
        world_run(&w, 100 * US);
        send(5);
        CHECK_EQUAL(in.messages, 5);
        CHECK_EQUAL(in.next, 5);
        CHECK_EQUAL(in.lost, 0);
        end();
    }
}

static void a_stream_met_before_a_flood_is_complete_from_its_first_packet(void) {
    begin_alone();
    const helio_address from = world_host(66, 6000);
    for (uint32_t i = 2; i < FORGED; i++) {
        const helio_address other = world_host(1000 + i % 250, 1);
        if (i % 1000 == 2) { /* a heartbeat */
            give_spm(1, &(helio_pgm_spm){.sequence = i, .trail = 0, .lead = ~0u}, &from);
        }
        meet(i, &other);
        give_data(i, 9, "u", &other);
        world_run(&w, US);
    }
    give_data(1, 1, "t", &from); /* the first is missing */
    CHECK_EQUAL(in.messages, 0);
    CHECK(is_followed(1, &from));
    give_data(1, 0, "t", &from);
    CHECK_EQUAL(in.messages, 2);
    CHECK_EQUAL(in.next, 2);
    CHECK_EQUAL(in.lost, 0);
    end_alone();
}

static void data_that_nobody_wants_is_passed_by_and_what_follows_is_complete(void) {
    begin_alone();
    const helio_address from = world_host(66, 6000);
    in.is_forged = true;
    give_spm(1, &(helio_pgm_spm){.sequence = 1, .trail = 0, .lead = ~0u}, &from);
    for (uint32_t i = 0; i < 1000; i++) {
        give_data(1, i, "u", &from);
    }
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    give_message(1, 1001, "t", 1, &from);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 1);
    CHECK_EQUAL(in.messages, 0); /* the topic's numbers begin with 0, and the stream is complete */
    give_message(1, 1000, "t", 0, &from);
    CHECK_EQUAL(in.messages, 2);
    CHECK_EQUAL(in.next, 2);
    CHECK_EQUAL(in.lost, 0);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 0);
    end_alone();
}

static void a_stream_followed_late_knows_from_its_spm_where_to_ask(void) {
    begin_alone();
    const helio_address from = world_host(66, 6000);
    give_spm(1, &(helio_pgm_spm){.sequence = 1, .trail = 0, .lead = ~0u}, &from);
    give_data(1, 1, "t", &from);
    world_run(&w, 5 * MS);
    CHECK(helio_cell(&counts()->nak_packets_sent) > 0);
    CHECK_EQUAL(helio_cell(&counts()->packets_sent), helio_cell(&counts()->nak_packets_sent));
    end_alone();
}

static void the_lost_tail_of_a_stream_that_was_only_met_is_recovered(void) {
    begin();
    drop(receiver.node, ODATA, 5);
    send(5);
    CHECK_EQUAL(in.messages, 0);
    world_run(&w, 50 * MS); /* a heartbeat says what was sent */
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(in.recovered, 5);
    end();
}

/* ---- who gives way ---- */

static void an_address_has_a_share_of_streams_that_prove_nothing(void) {
    begin_alone();
    const helio_address from = world_host(66, 1);
    for (uint32_t i = 0; i < 10; i++) {
        open_later(i, &from);
    }
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), HELIO_RX_UNPROVEN_LEAST);
    CHECK_EQUAL(helio_cell(&counts()->state_refused_streams_of_address),
                10 - HELIO_RX_UNPROVEN_LEAST);
    for (uint32_t i = 0; i < 10; i++) { /* the newest are there */
        CHECK_EQUAL(is_followed(i, &from), i >= 10 - HELIO_RX_UNPROVEN_LEAST);
    }
    CHECK_EQUAL(helio_cell(&counts()->packets_no_room), 0);
    end_alone();
}

static void a_stream_has_its_time_to_prove_itself(void) {
    begin_alone();
    for (uint32_t i = 0; i < 1000; i++) {
        const helio_address from = world_host(1000 + i, 1);
        open_unproven(i, &from);
    }
    for (uint32_t i = 0; i < 8; i++) { /* the first are there */
        const helio_address from = world_host(1000 + i, 1);
        CHECK(is_followed(i, &from));
    }
    CHECK_EQUAL(helio_cell(&counts()->state_refused_streams), 992);
    const helio_address wanted = world_host(66, 1); /* who has what is wanted need not wait */
    give_data(2000, 7, "t", &wanted);
    CHECK(is_followed(2000, &wanted));
    end_alone();
}

static void the_oldest_that_proved_nothing_gives_way_to_a_new_one(void) {
    begin_alone();
    for (uint32_t i = 0; i < 8; i++) {
        const helio_address from = world_host(1000 + i, 1);
        open_unproven(i, &from);
    }
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 8);
    const helio_address wanted = world_host(66, 1);
    give_data(100, 0, "t", &wanted);
    CHECK_EQUAL(in.messages, 1);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 8);
    CHECK_EQUAL(helio_cell(&counts()->state_refused_streams), 1);
    for (uint32_t i = 0; i < 8; i++) {
        const helio_address from = world_host(1000 + i, 1);
        CHECK_EQUAL(is_followed(i, &from), i > 0);
    }
    end_alone();
}

static void many_streams_of_one_address_that_prove_themselves_have_room(void) {
    begin();
    in.is_forged = true;
    const helio_address from = world_host(66, 1);
    for (uint32_t i = 0; i < 8; i++) {
        meet(i, &from);
        give_data(i, 1, "t", &from);
    }
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 8);
    CHECK_EQUAL(in.streams, 8);
    CHECK_EQUAL(helio_cell(&counts()->state_refused_streams_of_address), 0);
    send(1); /* those that are proven do not give way */
    CHECK_EQUAL(in.streams, 8);
    CHECK(helio_cell(&counts()->packets_no_room) > 0);
    CHECK_EQUAL(helio_cell(&counts()->state_refused_streams), 0);
    end();
}

static void a_flood_puts_out_no_stream_that_is_wanted(void) {
    begin();
    send(5);
    for (uint32_t i = 0; i < FORGED; i++) {
        const helio_address from = world_host(1000 + i % 250, 1);
        open_unproven(i, &from);
        if (i % 1000 == 0) {
            send(1);
        }
    }
    CHECK_EQUAL(in.messages, 15);
    CHECK_EQUAL(in.streams, 1);
    CHECK_EQUAL(in.ended, 0);
    end();
}

static void a_stream_put_out_before_it_proved_itself_goes_on_where_it_was(void) {
    begin_alone();
    const helio_address from = world_host(66, 6000);
    give_spm(1, &(helio_pgm_spm){.sequence = 1, .trail = 0, .lead = ~0u}, &from);
    give_data(1, 0, "u", &from);
    give_message(1, 2, "t", 1, &from);
    CHECK(is_followed(1, &from));
    for (uint32_t i = 2; i < 20; i++) {
        const helio_address other = world_host(1000 + i, 1);
        open_later(i, &other);
    }
    CHECK(!is_followed(1, &from));
    for (uint32_t i = 4; i > 0; i--) {
        give_message(1, i, "t", i - 1, &from);
    }
    CHECK_EQUAL(in.messages, 4); /* from packet 1 on; packet 0 was of another topic */
    CHECK_EQUAL(in.next, 4);
    CHECK_EQUAL(in.lost, 0);
    end_alone();
}

static void refusals_are_told_once_per_burst(void) {
    begin();
    const helio_address from = world_host(66, 1);
    const uint64_t before = helio_cell(&world_counts(&source.instance)->events_emitted);
    for (uint32_t i = 0; i < 1000; i++) {
        meet(i, &from);
    }
    CHECK_EQUAL(helio_cell(&world_counts(&source.instance)->events_emitted) - before, 1);
    end();
}

/* ---- memory ---- */

static void a_stream_takes_its_window_when_it_is_proven(void) {
    begin_alone();
    const helio_address from = world_host(66, 1);
    open_unproven(1, &from);
    CHECK_EQUAL(used(), window_bytes(16));
    in.is_forged = true;
    give_data(2, 0, "t", &from);
    CHECK_EQUAL(in.messages, 1);
    CHECK_EQUAL(used(), window_bytes(16) + window_bytes(WINDOW));
    world_run(&w, 21 * HELIO_SECOND); /* both are silent */
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    end_alone();
}

static void what_comes_before_the_first_repair_is_held(void) {
    begin();
    drop(receiver.node, ODATA | RDATA, 2);
    send(200);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(in.messages, 200);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void a_memory_limit_makes_windows_smaller_and_refuses_nobody(void) {
    helio_account account = {.limit_bytes = window_bytes(WINDOW) / 2 + (100 << 10)};
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.account = &account;
    begin_receiver(config);
    for (uint32_t i = 0; i < FORGED; i++) {
        const helio_address from = world_host(1000 + i % 250, 1);
        open_unproven(i, &from);
    }
    CHECK(helio_account_used(&account) <= account.limit_bytes);
    begin_source(world_source_config(1));
    world_run(&w, 100 * US);
    for (int i = 0; i < 10; i++) {
        drop(receiver.node, ODATA, 1);
        send(20);
        world_run(&w, 20 * MS);
    }
    CHECK_EQUAL(in.messages, 200);
    CHECK_EQUAL(in.lost, 0);
    CHECK_EQUAL(helio_account_used(&account), used());
    world_end_receiver(&receiver);
    CHECK_EQUAL(helio_account_used(&account), 0);
    world_end_source(&source);
    world_fini(&w);
}

/* ---- streams met by a receiver (L3) ---- */

static helio_receiver *short_streams(uint32_t count, size_t *bytes) {
    helio_receiver *met = aligned_alloc(64, (sizeof *met + 63) / 64 * 64);
    memset(met, 0, sizeof *met);
    met->has_listener = true;
    pthread_mutex_init(&met->lock, NULL);
    const helio_sink sink = helio_receiver_sink(met);
    const size_t before = mallinfo2().uordblks;
    for (uint32_t i = 0; i < count; i++) {
        helio_stats_object object = {0};
        const helio_pgm_session session = forged(i);
        sink.on_stream(met, i, &session.tsi, &object);
        sink.on_stream_end(met, i);
    }
    *bytes = mallinfo2().uordblks - before;
    return met;
}

static void free_met(helio_receiver *met) {
    helio_met_streams_fini(&met->met);
    pthread_mutex_destroy(&met->lock);
    free(met);
}

static void a_hundred_thousand_short_streams_leave_no_more_than_a_hundred(void) {
    size_t few, many;
    free_met(short_streams(100, &few));
    helio_receiver *met = short_streams(100000, &many);
    CHECK(many <= few + 4096); /* but for what malloc keeps at hand */
    char wanted[HELIO_TSI_TEXT];
    const helio_pgm_session last = forged(99999);
    CHECK(strcmp(helio_receiver_stream(met, 99999), helio_tsi_format(&last.tsi, wanted)) == 0);
    CHECK(strcmp(helio_receiver_stream(met, 5), "") == 0);
    CHECK(helio_receiver_stream(met, 100000) == NULL);
    free_met(met);
}

static void a_stream_with_messages_in_the_queue_is_not_forgotten(void) {
    enum { STREAMS = 500 };
    helio_met_streams met = {0};
    helio_receive_queue queue;
    _Atomic uint64_t receives = 1;
    CHECK_EQUAL(helio_receive_queue_init(&queue, 1 << 20), 0);
    for (uint32_t i = 0; i < STREAMS; i++) {
        helio_stats_object object = {0};
        const helio_pgm_session session = forged(i);
        helio_met_stream *stream = helio_met_streams_add(&met, i, &session.tsi, &object);
        CHECK(helio_receive_queue_push(&queue, &(helio_message){.data = "x", .length = 1},
                                       &stream->passage));
        helio_met_streams_end(&met, stream);
        helio_met_streams_forget(&met, &queue, &receives);
    }
    CHECK_EQUAL(met.ended.count, STREAMS);
    helio_message messages[STREAMS];
    CHECK_EQUAL(helio_receive_queue_take(&queue, messages, STREAMS), STREAMS);
    helio_met_streams_forget(&met, &queue, &receives);
    CHECK_EQUAL(met.ended.count,
                STREAMS); /* the application has them, and may ask whose they are */
    receives++;
    helio_met_streams_forget(&met, &queue, &receives);
    CHECK_EQUAL(met.ended.count, HELIO_MET_ENDED_KEPT);
    helio_met_streams_fini(&met);
    helio_receive_queue_fini(&queue);
}

int main(void) {
    RUN(an_spm_alone_makes_a_record_and_no_stream);
    RUN(ten_thousand_forged_streams_take_little_and_lock_nobody_out);
    RUN(a_stream_met_before_a_flood_is_complete_from_its_first_packet);
    RUN(data_that_nobody_wants_is_passed_by_and_what_follows_is_complete);
    RUN(a_stream_followed_late_knows_from_its_spm_where_to_ask);
    RUN(the_lost_tail_of_a_stream_that_was_only_met_is_recovered);
    RUN(an_address_has_a_share_of_streams_that_prove_nothing);
    RUN(a_stream_has_its_time_to_prove_itself);
    RUN(the_oldest_that_proved_nothing_gives_way_to_a_new_one);
    RUN(many_streams_of_one_address_that_prove_themselves_have_room);
    RUN(a_flood_puts_out_no_stream_that_is_wanted);
    RUN(a_stream_put_out_before_it_proved_itself_goes_on_where_it_was);
    RUN(refusals_are_told_once_per_burst);
    RUN(a_stream_takes_its_window_when_it_is_proven);
    RUN(what_comes_before_the_first_repair_is_held);
    RUN(a_memory_limit_makes_windows_smaller_and_refuses_nobody);
    RUN(a_hundred_thousand_short_streams_leave_no_more_than_a_hundred);
    RUN(a_stream_with_messages_in_the_queue_is_not_forgotten);
    return check_result();
}
