/* What a receiver does beyond asking for what is missing, one rule of RFC 3208 or option at a
 * time. */
#include "base/hash.h"
#include "pair.h"
#include "wire/checksum.h"
#include "wire/tsdu.h"

static const helio_address source_address = {.family = 4, .port = 40001, .ip = {10, 0, 0, 1}};

/* What went upstream to the source, kept by a tap on its link. */
static helio_pgm_packet heard[64];
static size_t heard_count;

static bool tap(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    if (heard_count < 64) {
        heard_count += helio_pgm_decode(packet, length, &heard[heard_count]) == HELIO_PGM_ACCEPTED;
    }
    return false;
}

static void listen(void) {
    heard_count = 0;
    helio_sim_set_link(source.node, &(helio_sim_link){.drops = tap});
}

static size_t heard_of(uint8_t type) {
    size_t count = 0;
    for (size_t i = 0; i < heard_count; i++) {
        count += heard[i].type == type;
    }
    return count;
}

static helio_pgm_session session(void) {
    return (helio_pgm_session){*helio_tx_stream_tsi(source.stream), 7500};
}

/* Gives the receiver a packet as if from the source. */
static void give(const uint8_t *packet, size_t length) {
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &source_address, 0,
                                world_now(&w));
    helio_sim_wake(receiver.node);
}

static uint32_t next_spm;

/* Gives the receiver an SPM with one option, told as its bytes. */
static void give_spm(const uint8_t *option, size_t bytes, uint8_t flags) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session s = session();
    const helio_tx_stream_stats *counts = source_counts();
    helio_pgm_encode_spm(packet, &s,
                         &(helio_pgm_spm){.sequence = 1000 + next_spm++,
                                          .trail = (uint32_t)helio_cell(&counts->window_trail),
                                          .lead = (uint32_t)helio_cell(&counts->window_lead)},
                         &source_address);
    memcpy(packet + 36, (uint8_t[]){0, 4, 0, (uint8_t)(4 + bytes)}, 4);
    memcpy(packet + 40, option, bytes);
    packet[40] |= HELIO_PGM_OPTION_END;
    packet[5] = HELIO_PGM_FLAG_OPTIONS | flags;
    memset(packet + 6, 0, 2);
    const uint16_t sum = helio_checksum_finish(helio_checksum_part(packet, 40 + bytes));
    memcpy(packet + 6, &sum, 2);
    give(packet, 40 + bytes);
}

/* ---- polls ---- */

static void give_poll(uint32_t sequence, helio_pgm_poll poll) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session s = session();
    give(packet, helio_pgm_encode_poll(packet, &s, sequence, &poll, &source_address));
}

static void a_poll_is_answered_once_after_a_random_time(void) {
    begin();
    listen();
    give_poll(7, (helio_pgm_poll){.backoff_us = 1000, .round = 3});
    world_run(&w, 2 * MS);
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_POLR), 1);
    CHECK_EQUAL(heard[0].sequence, 7);
    CHECK_EQUAL(heard[0].poll.round, 3);
    CHECK(helio_tsi_equal(&heard[0].tsi, helio_tx_stream_tsi(source.stream)));
    give_poll(8, (helio_pgm_poll){.subtype = HELIO_PGM_POLL_DLR});
    give_poll(9, (helio_pgm_poll){.mask = 0xFFFFFFFF, .random = 0x12345678});
    world_run(&w, 20 * MS);
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_POLR), 1);
    CHECK_EQUAL(RX_STREAMS_SUM(polls_received), 3);
    CHECK_EQUAL(RX_STREAMS_SUM(poll_responses_sent), 1);
    end();
}

static void the_source_counts_its_receivers(void) {
    helio_tx_stream_config config = world_source_config(1);
    config.poll_interval_ns = 100 * MS;
    config.seed = 3;
    begin_receiver(world_receiver_config(100));
    static world_receiver others[30];
    for (unsigned i = 0; i < 30; i++) {
        const helio_rx_endpoint_config other = world_receiver_config(200 + i);
        world_add_receiver(&w, &others[i], &other);
    }
    begin_source(config);
    world_run(&w, 3 * HELIO_SECOND);
    const uint64_t population = helio_cell(&source_counts()->population);
    CHECK(population >= 16 && population <= 64);
    CHECK(helio_cell(&source_counts()->poll_responses_received) > 30);
    for (unsigned i = 0; i < 30; i++) {
        world_end_receiver(&others[i]);
    }
    end();
}

/* ---- congestion reports ---- */

static void requests_carry_the_report_that_was_asked_for_and_only_then(void) {
    begin();
    send(20);
    listen();
    drop(receiver.node, ODATA, 1);
    send(10);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_NAK), 1);
    CHECK_EQUAL(heard[0].options & HELIO_PGM_HAS_CR, 0);
    give_spm((uint8_t[]){HELIO_PGM_OPTION_CRQST, 4, 0, HELIO_PGM_REPORT_RECEIVER}, 4,
             HELIO_PGM_FLAG_NETWORK);
    listen();
    drop(receiver.node, ODATA, 1);
    send(3);
    world_run(&w, 200 * US);
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_NAK), 1);
    CHECK(heard[0].options & HELIO_PGM_HAS_CR);
    const helio_pgm_report *report = &heard[0].report;
    CHECK_EQUAL(report->fields, HELIO_PGM_REPORT_RECEIVER);
    CHECK(report->receiver_loss > 100 && report->receiver_loss < 1000); /* 2 of 256 or so */
    CHECK_EQUAL(report->worst_link, 0);
    const helio_address me = world_host(100, 0);
    CHECK(helio_address_same_ip(&report->receiver, &me));
    CHECK_EQUAL(RX_STREAMS_SUM(congestion_reports_sent), 1);
    world_run(&w, 5 * MS);
    give_spm((uint8_t[]){HELIO_PGM_OPTION_INVALID, 4, 0, 0}, 4, 0); /* no longer asked for */
    listen();
    drop(receiver.node, ODATA, 1);
    send(3);
    world_run(&w, 5 * MS);
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_NAK), 1);
    CHECK_EQUAL(heard[0].options & HELIO_PGM_HAS_CR, 0);
    end();
}

/* ---- the way to the source ---- */

static void without_a_way_to_the_source_nothing_is_asked_until_there_is_one(void) {
    begin();
    send(5);
    world_run(&w, 100 * MS); /* between heartbeats, which would say that there is a way */
    helio_sim_set_link(source.node, &(helio_sim_link){.drops = tap});
    give_spm((uint8_t[]){HELIO_PGM_OPTION_NBR_UNREACH, 4, 0, 0}, 4, HELIO_PGM_FLAG_NETWORK);
    listen();
    drop(receiver.node, ODATA | SPM, 1);
    send(3);
    drop(receiver.node, SPM, 1000);
    world_run(&w, 50 * MS);
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_NAK), 0);
    CHECK_EQUAL(in.messages, 5);
    CHECK_EQUAL(RX_STREAMS_SUM(missing_packets), 1);
    drop(receiver.node, SPM, 0);
    give_spm((uint8_t[]){HELIO_PGM_OPTION_INVALID, 4, 0, 0}, 4, 0);
    world_run(&w, 20 * MS);
    CHECK(heard_of(HELIO_PGM_TYPE_NAK) > 0);
    CHECK_EQUAL(in.messages, 8);
    CHECK_EQUAL(RX_STREAMS_SUM(missing_packets), 0);
    end();
}

/* ---- parity, SYN, JOIN ---- */

static void parity_is_never_taken_for_data(void) {
    begin();
    send(5);
    give_spm((uint8_t[]){HELIO_PGM_OPTION_PARITY_PRM, 8, 0, 1, 0, 0, 0, 8}, 8,
             HELIO_PGM_FLAG_NETWORK);
    uint8_t packet[200] = {0};
    const helio_pgm_session s = session();
    uint8_t *tsdu = packet + HELIO_PGM_DATA_HEADER;
    helio_tsdu_encode(tsdu, &(helio_tsdu_header){.kind = HELIO_TSDU_KIND_MESSAGES,
                                                 .count = 1,
                                                 .first_message = 5,
                                                 .topic_id = helio_hash_fnv1a("t", 1)});
    memcpy(tsdu + HELIO_TSDU_HEADER, "\0\2xx", 4);
    const size_t bytes = HELIO_TSDU_HEADER + 4;
    const size_t length =
        helio_pgm_encode_data(packet, &s, 6, 0, NULL, bytes, helio_checksum_part(tsdu, bytes));
    packet[5] |= HELIO_PGM_FLAG_PARITY; /* it would be the next message without this */
    memset(packet + 6, 0, 2);
    const uint16_t sum = helio_checksum_finish(helio_checksum_part(packet, length));
    memcpy(packet + 6, &sum, 2);
    give(packet, length);
    CHECK_EQUAL(in.messages, 5);
    send(3);
    CHECK_EQUAL(in.messages, 8);
    CHECK_EQUAL(helio_cell(&counts()->foreign_packets), 1);
    end();
}

/* ---- asking for an SPM ---- */

static size_t group_spmrs;
static bool spmr_was_first_to_group;

static bool tap_group(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    if (length >= 16 && ((const uint8_t *)packet)[4] == HELIO_PGM_TYPE_SPMR) {
        spmr_was_first_to_group |= heard_of(HELIO_PGM_TYPE_SPMR) == 0;
        group_spmrs++;
    }
    return false;
}

static void an_spm_is_asked_for_in_the_group_first_and_then_of_the_source(void) {
    begin_receiver(world_receiver_config(100));
    static world_receiver other;
    const helio_rx_endpoint_config config = world_receiver_config(200);
    world_add_receiver(&w, &other, &config);
    helio_sim_set_link(other.node, &(helio_sim_link){.drops = tap_group});
    group_spmrs = 0;
    spmr_was_first_to_group = false;
    drop(receiver.node, SPM, 3);
    begin_source(world_source_config(1));
    listen();
    drop(receiver.node, SPM, 3);
    send(1);
    drop(receiver.node, SPM, 1000);
    world_run(&w, 3 * MS);
    CHECK(heard_of(HELIO_PGM_TYPE_SPMR) >= 1);
    CHECK(group_spmrs >= 1);
    CHECK(spmr_was_first_to_group);
    world_end_receiver(&other);
    end();
}

static void anothers_request_for_an_spm_puts_off_ours_but_not_for_ever(void) {
    begin_receiver(world_receiver_config(100));
    drop(receiver.node, SPM, 100000);
    begin_source(world_source_config(1));
    listen();
    send(1);
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session s = session();
    const size_t length = helio_pgm_encode_spmr(packet, &s);
    const helio_address another = world_host(200, 50000);
    helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &another, 0, world_now(&w));
    world_run(&w, 1900 * US); /* at the latest after 2 ms it would have asked */
    CHECK_EQUAL(heard_of(HELIO_PGM_TYPE_SPMR), 0);
    for (int i = 0; i < 300; i++) {
        helio_rx_endpoint_on_packet(receiver.endpoint, packet, length, &another, 0, world_now(&w));
        world_run(&w, 100 * US);
    }
    CHECK(heard_of(HELIO_PGM_TYPE_SPMR) > 0);
    end();
}

/* ---- a receiver that never asks ---- */

static void a_receiver_that_never_asks_counts_its_losses_at_once(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.never_asks = true;
    begin_receiver(config);
    begin_source(world_source_config(1));
    send(10);
    drop(receiver.node, ODATA, 2);
    send(10);
    world_run(&w, MS);
    CHECK_EQUAL(in.messages, 18);
    CHECK_EQUAL(in.lost, 2);
    CHECK_EQUAL(in.next, 20);
    drop(receiver.node, ODATA, 1);
    send(1); /* the last one: a heartbeat tells of the packet, an announcement of the message */
    world_run(&w, 1100 * MS);
    CHECK_EQUAL(in.lost, 3);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_packets_received), 0);
    CHECK_EQUAL(helio_cell(&counts()->nak_packets_sent), 0);
    end();
}

static void a_receiver_that_never_asks_lives_beside_one_that_does(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.never_asks = true;
    begin_receiver(config);
    static world_receiver other;
    static inbox box;
    const helio_rx_endpoint_config asking = world_receiver_config(200);
    world_add_receiver(&w, &other, &asking);
    subscribe(&other, &box);
    begin_source(world_source_config(1));
    world_run(&w, MS);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.05});
    helio_sim_set_link(other.node, &(helio_sim_link){.loss = 0.05});
    send(2000);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(box.messages, 2000);
    CHECK_EQUAL(box.lost, 0);
    CHECK_EQUAL(in.messages + in.lost, 2000);
    CHECK(in.lost > 40 && in.lost < 160);
    world_end_receiver(&other);
    end();
}

/* ---- as they come ---- */

static uint8_t times_seen[4000];
static uint64_t seen_first_after_gap;

static size_t on_any(void *context, const helio_message *messages, size_t count) {
    inbox *box = context;
    const size_t taken = count < box->room ? count : (size_t)box->room;
    for (size_t i = 0; i < taken; i++) {
        times_seen[messages[i].number]++;
        if (messages[i].number > seen_first_after_gap) {
            seen_first_after_gap = messages[i].number;
        }
    }
    box->messages += taken;
    box->room -= taken;
    return taken;
}

static void on_any_loss(void *context, const helio_loss *loss) {
    inbox *box = context;
    for (uint64_t i = 0; i < loss->count; i++) {
        times_seen[loss->first + i]++;
    }
    box->lost += loss->count;
}

static void begin_in_arrival_order(helio_rx_endpoint_config config) {
    memset(times_seen, 0, sizeof times_seen);
    seen_first_after_gap = 0;
    config.in_arrival_order = true;
    world_init(&w, 1, 1);
    world_add_receiver(&w, &receiver, &config);
    in = (inbox){.room = UINT64_MAX};
    const helio_sink sink = {.context = &in,
                             .on_stream = on_stream,
                             .on_stream_end = on_end,
                             .on_messages = on_any,
                             .on_loss = on_any_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver.endpoint, "t", &sink, world_now(&w), &subscription),
        0);
    begin_source(world_source_config(1));
    world_run(&w, MS);
}

static void in_arrival_order_a_message_does_not_wait_for_an_older_one(void) {
    begin_in_arrival_order(world_receiver_config(100));
    send(5);
    drop(receiver.node, ODATA, 1);
    send(1);
    drop(receiver.node, RDATA, 1000);
    send(4);
    CHECK_EQUAL(in.messages, 9);
    CHECK_EQUAL(seen_first_after_gap, 9);
    CHECK_EQUAL(times_seen[5], 0);
    CHECK_EQUAL(helio_cell(&in.stats->messages_ahead), 4);
    drop(receiver.node, RDATA, 0);
    world_run(&w, 20 * MS);
    CHECK_EQUAL(in.messages, 10);
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(times_seen[i], 1);
    }
    CHECK_EQUAL(helio_cell(&in.stats->next_message), 10);
    CHECK_EQUAL(helio_cell(&in.stats->messages_ahead), 0);
    CHECK_EQUAL(helio_cell(&in.stats->messages_delivered), 10);
    end();
}

static void in_arrival_order_a_loss_is_told_when_it_is_given_up(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.nak_deadline_ns = 50 * MS;
    begin_in_arrival_order(config);
    send(5);
    drop(receiver.node, ODATA, 1);
    send(1);
    drop(receiver.node, RDATA, 1000);
    send(4);
    CHECK_EQUAL(in.lost, 0);
    world_run(&w, 60 * MS);
    CHECK_EQUAL(in.lost, 1);
    for (int i = 0; i < 10; i++) {
        CHECK_EQUAL(times_seen[i], 1);
    }
    end();
}

static void in_arrival_order_everything_comes_once_whatever_the_network_does(void) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        helio_rx_endpoint_config config = world_receiver_config(100);
        config.nak_deadline_ns = 5 * MS + (int64_t)seed * MS;
        config.seed = seed;
        begin_in_arrival_order(config);
        helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = 0.2,
                                                            .duplicate = 0.1,
                                                            .delay_ns = 20 * US,
                                                            .jitter_ns = 100 * US});
        static uint8_t large[5000];
        for (int i = 0; i < 300; i++) { /* some in fragments, which are put together in order */
            const size_t bytes = i % 10 == 0 ? sizeof large : 10;
            helio_tx_stream_append(source.stream, topic, large, bytes, world_now(&w).wall_ns,
                                   world_now(&w));
            helio_tx_stream_flush(source.stream, world_now(&w));
            in.room = i % 7 == 0 ? 1 : UINT64_MAX; /* and the application is slow at times */
            helio_sim_wake(source.node);
            world_run(&w, 20 * US);
            helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
        }
        in.room = UINT64_MAX;
        for (int i = 0; i < 40; i++) {
            world_run(&w, 5 * MS);
            helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
            helio_sim_wake(receiver.node);
        }
        CHECK_EQUAL(in.messages + in.lost, 300);
        for (int i = 0; i < 300; i++) {
            CHECK_EQUAL(times_seen[i], 1);
        }
        CHECK_EQUAL(
            helio_cell(&in.stats->messages_delivered) + helio_cell(&in.stats->messages_lost), 300);
        end();
    }
}

static void the_end_of_a_stream_is_seen_at_once(void) {
    begin();
    send(3);
    helio_tx_stream_close(source.stream, world_now(&w));
    helio_sim_wake(source.node);
    world_run(&w, MS);
    CHECK_EQUAL(in.messages, 3);
    CHECK_EQUAL(in.ended, 1);
    end();
}

int main(void) {
    RUN(a_poll_is_answered_once_after_a_random_time);
    RUN(the_source_counts_its_receivers);
    RUN(requests_carry_the_report_that_was_asked_for_and_only_then);
    RUN(without_a_way_to_the_source_nothing_is_asked_until_there_is_one);
    RUN(parity_is_never_taken_for_data);
    RUN(an_spm_is_asked_for_in_the_group_first_and_then_of_the_source);
    RUN(anothers_request_for_an_spm_puts_off_ours_but_not_for_ever);
    RUN(a_receiver_that_never_asks_counts_its_losses_at_once);
    RUN(a_receiver_that_never_asks_lives_beside_one_that_does);
    RUN(in_arrival_order_a_message_does_not_wait_for_an_older_one);
    RUN(in_arrival_order_a_loss_is_told_when_it_is_given_up);
    RUN(in_arrival_order_everything_comes_once_whatever_the_network_does);
    RUN(the_end_of_a_stream_is_seen_at_once);
    return check_result();
}
