/* Streams that end without a word of their source and come back, and how many of them are
 * remembered. */
#include "receive/absent.h"

#include "pair.h"
#include "reconciliation.h"
#include "wire/checksum.h"

static void begin_with(helio_rx_endpoint_config config, uint32_t first_sequence, uint32_t history) {
    config.stream_expiry_ns = 700 * MS; /* longer than the ambient interval */
    helio_tx_stream_config origin = world_source_config(1);
    origin.first_sequence = first_sequence;
    origin.window_packets = history;
    begin_receiver(config);
    begin_source(origin);
    world_run(&w, 100 * US);
}

static void cut(void) {
    helio_sim_set_partition(receiver.node, 1);
}

static void join(void) {
    helio_sim_set_partition(receiver.node, 0);
    world_run(&w, HELIO_SECOND); /* an SPM comes, and what is asked for */
}

static void expire(void) {
    cut();
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    CHECK_EQUAL(helio_cell(&counts()->streams_absent), 1);
}

static const helio_rx_stream_stats *newest_rx_stream(void) {
    const helio_rx_stream_stats *newest = NULL;
    for (uint64_t i = 0; i < helio_cell(&w.stats->header->objects_used); i++) {
        const helio_segment_object *object = &w.stats->objects[i];
        if (object->scope == HELIO_SCOPE_RX_STREAM && object->state == HELIO_OBJECT_LIVE) {
            newest = books_record(w.stats, object);
        }
    }
    return newest;
}

/* ---- what was sent meanwhile ---- */

static void what_the_source_still_has_is_repaired(void) {
    begin_with(world_receiver_config(100), 0, 1024);
    send(5);
    expire();
    send(50);
    join();
    CHECK_EQUAL(in.messages, 55);
    CHECK_EQUAL(in.lost, 0);
    CHECK_EQUAL(in.streams, 2);
    CHECK_EQUAL(helio_cell(&in.stats->messages_before_join), 5);
    CHECK_EQUAL(helio_cell(&counts()->streams_absent), 0);
    CHECK(books_are_settled(w.stats));
    end();
}

static void what_it_has_no_more_is_lost_once_with_its_range(void) {
    begin_with(world_receiver_config(100), 0, 16);
    send(5);
    expire();
    send(50);
    join();
    CHECK_EQUAL(in.messages + in.lost, 55);
    CHECK(in.lost >= 30);
    CHECK_EQUAL(in.next, 55);
    CHECK_EQUAL(helio_cell(&in.stats->messages_lost), in.lost);
    const helio_rx_stream_stats *s = newest_rx_stream();
    CHECK_EQUAL(helio_cell(&s->packets_lost_window_advanced),
                helio_cell(&s->window_trail) - helio_cell(&s->window_first) -
                    helio_cell(&s->packets_delivered));
    CHECK(books_are_settled(w.stats));
    end();
}

static void numbers_wrap_while_it_is_away(void) {
    begin_with(world_receiver_config(100), 0xFFFFFFF0, 1024);
    send(5);
    expire();
    send(50);
    join();
    CHECK_EQUAL(in.messages, 55);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void an_outage_longer_than_the_window_is_caught_up_with(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.window_packets = 16;
    begin_with(config, 0, 1024);
    send(5);
    expire();
    send(500);
    join();
    CHECK_EQUAL(in.messages, 505);
    CHECK_EQUAL(in.lost, 0);
    end();
}

static void what_was_told_of_before_the_silence_is_lost_at_the_expiry(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.window_packets = 16;
    begin_with(config, 0, 1024);
    send(5);
    drop(receiver.node, ODATA | RDATA, 1 << 30);
    send(100); /* beyond the window, too */
    world_run(&w, 2 * MS);
    expire();
    const helio_segment_object *object = NULL;
    for (uint64_t i = 0; i < helio_cell(&w.stats->header->objects_used); i++) {
        if (w.stats->objects[i].scope == HELIO_SCOPE_RX_STREAM) {
            object = &w.stats->objects[i];
        }
    }
    const helio_rx_stream_stats *s = books_record(w.stats, object);
    CHECK((uint32_t)helio_cell(&s->window_trail) > 100);
    drop(receiver.node, 0, 0);
    send(5);
    join();
    CHECK_EQUAL(in.next, 110);
    CHECK_EQUAL(in.messages + in.lost, 110);
    end();
}

static void a_source_that_resets_leaves_nothing_out(void) {
    begin_with(world_receiver_config(100), 0, 1024);
    send(5);
    expire();
    send(20);
    helio_sim_set_partition(receiver.node, 0);
    helio_tx_stream_abort(source.stream);
    world_run(&w, 40 * MS); /* a reset is believed when nothing contradicts it */
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    CHECK_EQUAL(helio_cell(&counts()->streams_absent), 0);
    uint64_t lost = 0;
    for (uint64_t i = 0; i < helio_cell(&w.stats->header->objects_used); i++) {
        const helio_segment_object *object = &w.stats->objects[i];
        if (object->scope == HELIO_SCOPE_RX_STREAM) {
            lost += helio_cell(&((const helio_rx_stream_stats *)books_record(w.stats, object))
                                    ->packets_lost_reset);
        }
    }
    CHECK(lost >= 20);
    CHECK(books_hold(w.stats));
    end();
}

static void a_stream_that_ends_with_nothing_missing_is_not_opened_for_it(void) {
    begin_with(world_receiver_config(100), 0, 1024);
    send(5);
    world_run(&w, 1100 * MS); /* the last announcement */
    expire();
    helio_sim_set_partition(receiver.node, 0);
    helio_tx_stream_abort(source.stream);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(in.streams, 1);
    end();
}

/* ---- who comes back ---- */

static void forge_spm(uint32_t sequence, uint32_t lead, const char *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const helio_address address = world_address(from);
    const size_t length = helio_pgm_encode_spm(
        packet, &session, &(helio_pgm_spm){sequence, lead + 1, lead, .fin = false}, &address);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &address, 0, world_now(&w));
    helio_sim_wake(receiver.node);
}

static void a_source_that_seems_to_be_behind_begins_again_and_its_numbers_go_on(void) {
    begin_with(world_receiver_config(100), 0, 1024);
    send(5);
    forge_spm(1000, 0x30000000, "10.0.0.1:40001"); /* as if so many packets had been sent */
    expire();
    send(20);
    join();
    send(5);
    CHECK_EQUAL(in.next, 30);
    CHECK_EQUAL(in.messages + in.lost, 30);
    end();
}

static void a_subscription_made_meanwhile_does_not_inherit(void) {
    inbox late;
    begin_with(world_receiver_config(100), 0, 16);
    send(5);
    expire();
    send(50);
    subscribe(&receiver, &late);
    join();
    CHECK_EQUAL(in.messages + in.lost, 55);
    CHECK_EQUAL(late.lost, 0);
    CHECK(late.messages <= 16); /* those that were repaired */
    end();
}

/* ---- bounds ---- */

/* A source is heard of, and then of data after a packet that never comes: its stream is followed,
 * and proves nothing. */
static void meet(uint32_t number, const char *from) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX + 64];
    helio_pgm_session session = {.destination_port = 7500};
    memcpy(session.tsi.gsi, &number, sizeof number);
    session.tsi.port = 7;
    const helio_address address = world_address(from);
    size_t length =
        helio_pgm_encode_spm(packet, &session, &(helio_pgm_spm){0, 1, 0, .fin = false}, &address);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &address, 0, world_now(&w));
    memset(packet, 0, sizeof packet);
    length = helio_pgm_encode_data(packet, &session, 2, 1, NULL, 40,
                                   helio_checksum_part(packet + HELIO_PGM_DATA_HEADER, 40));
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &address, 0, world_now(&w));
}

/* Streams of many sources end, some at a time. */
static void flood(uint32_t first, uint32_t count, unsigned addresses) {
    for (uint32_t i = 0; i < count; i++) {
        char from[32];
        const unsigned host = i % addresses;
        snprintf(from, sizeof from, "10.7.%u.%u:7", host >> 8 & 255, host & 255);
        meet(first + i, from);
        if (i % 8 == 7) { /* no more than one address may have that are unproven */
            world_run(&w, 20 * MS);
            helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
        }
    }
}

static void begin_bounded(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.max_streams = 64;
    config.window_packets = 16;
    config.stream_expiry_ns = 10 * MS;
    begin_receiver(config);
    begin_source(world_source_config(1));
}

static void one_address_has_a_share_of_what_is_remembered(void) {
    begin_bounded();
    flood(1, 1024, 1);
    const uint64_t share = HELIO_RX_ABSENT_STREAMS / HELIO_RX_ABSENT_SHARE;
    CHECK(helio_cell(&counts()->streams_absent) <= share + 1); /* and the one of the pair */
    CHECK(helio_cell(&counts()->streams_absent) >= share / 2);
    CHECK(helio_cell(&counts()->streams_forgotten) > 0);
    end();
}

static void what_delivered_something_outlives_any_number_that_did_not(void) {
    begin_bounded();
    send(5);
    helio_sim_set_partition(receiver.node, 1);
    world_run(&w, 20 * MS);
    CHECK_EQUAL(helio_cell(&counts()->streams_absent), 1);
    flood(1, 3 * HELIO_RX_ABSENT_STREAMS, 64);
    CHECK(helio_cell(&counts()->streams_absent) <= HELIO_RX_ABSENT_STREAMS);
    CHECK(helio_cell(&counts()->streams_forgotten) >= HELIO_RX_ABSENT_STREAMS);
    CHECK(helio_cell(&counts()->memory_used) <= HELIO_RX_ABSENT_BYTES + (4 << 20));
    send(20);
    join();
    send(1);
    world_run(&w, 20 * MS);
    CHECK_EQUAL(in.messages + in.lost, 26);
    end();
}

static void nothing_is_left_when_the_receiver_closes(void) {
    begin_bounded();
    flood(1, 256, 16);
    CHECK(helio_cell(&counts()->streams_absent) > 0);
    helio_rx_endpoint_destroy(receiver.endpoint, world_now(&w));
    CHECK_EQUAL(helio_cell(&counts()->streams_absent), 0);
    CHECK_EQUAL(helio_cell(&counts()->memory_used), 0);
    receiver.endpoint = NULL;
    end();
}

int main(void) {
    RUN(what_the_source_still_has_is_repaired);
    RUN(what_it_has_no_more_is_lost_once_with_its_range);
    RUN(numbers_wrap_while_it_is_away);
    RUN(an_outage_longer_than_the_window_is_caught_up_with);
    RUN(what_was_told_of_before_the_silence_is_lost_at_the_expiry);
    RUN(a_source_that_resets_leaves_nothing_out);
    RUN(a_stream_that_ends_with_nothing_missing_is_not_opened_for_it);
    RUN(a_source_that_seems_to_be_behind_begins_again_and_its_numbers_go_on);
    RUN(a_subscription_made_meanwhile_does_not_inherit);
    RUN(one_address_has_a_share_of_what_is_remembered);
    RUN(what_delivered_something_outlives_any_number_that_did_not);
    RUN(nothing_is_left_when_the_receiver_closes);
    return check_result();
}
