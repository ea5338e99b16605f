/* Prints what a source and a receiver send each other, one packet a line, for the independent
 * decoder in tests/wire:
 *
 *     down HEX     from the source to the group
 *     up HEX       from the receiver to the source
 *     made down|up HEX   a packet the engine can make, whether or not it was needed in the run
 *     sent TOPIC NUMBER LENGTH     a message that the application sent
 *
 * The run has messages of all sizes, loss both ways, acknowledgements, a receiver that comes late,
 * and an orderly end. */
#include <inttypes.h>

#include "send/topics.h"
#include "wire/checksum.h"
#include "wire/pgm.h"
#include "world.h"

static void print_packet(const char *way, const void *packet, size_t length) {
    printf("%s ", way);
    for (size_t i = 0; i < length; i++) {
        printf("%02x", ((const uint8_t *)packet)[i]);
    }
    putchar('\n');
}

static int down_count;

/* A tap on the receiver's link that also loses every seventh packet, and the first SPMs. */
static bool tap_down(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    print_packet("down", packet, length);
    return down_count++ < 4 || down_count % 7 == 0 || (down_count > 60 && down_count < 70);
}

static bool tap_up(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    print_packet("up", packet, length);
    return false;
}

static size_t take_all(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    return count;
}

static void send(world_source *source, helio_tx_topic *topic, uint64_t number, size_t length,
                 int64_t late_ns) {
    static uint8_t data[100000];
    const helio_moment moment = world_now(source->world);
    for (size_t i = 0; i < length; i++) {
        data[i] = (uint8_t)(number + i);
    }
    const int64_t submit_ns = moment.wall_ns - 1000;
    if (helio_tx_stream_append_intended(source->stream, topic, data, length, submit_ns,
                                        late_ns ? submit_ns - late_ns : 0, moment) != 0) {
        abort();
    }
    printf("sent %s %" PRIu64 " %zu\n", topic->name, number, length);
}

/* Every type of packet with every set of options it is sent with, for one family of addresses. */
static void print_all_packets(const helio_address *source, const helio_address *group) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {{{0xA1, 0xB2, 0xC3, 0xD4, 0xE5, 6}, 40006}, 7500};
    uint32_t sequences[63];
    for (uint32_t i = 0; i < 63; i++) {
        sequences[i] = 0xFFFFFFE0u + i;
    }
    for (uint32_t i = 0; i < 32; i++) {
        const helio_pgm_spm spm = {.sequence = i,
                                   .trail = 2,
                                   .lead = 9,
                                   .fin = i & 1,
                                   .rst = i >> 1 & 1,
                                   .backoff_us = i >> 2 & 1 ? 400 : 0,
                                   .offers_history = i >> 3 & 1,
                                   .join = 3,
                                   .takes_reports = i >> 4 & 1,
                                   .reporting = {100000, 77, 1024, 0x5EED}};
        print_packet("made down", packet, helio_pgm_encode_spm(packet, &session, &spm, source));
    }
    const helio_pgm_notice notices[] = {
        {HELIO_ACTION_SUSPEND, HELIO_PGM_REASON_LOSS, 7, 5000, 0x5EED, 0, "loss 12 %", 9},
        {HELIO_ACTION_NOTIFY, HELIO_PGM_REASON_LAG | HELIO_PGM_REASON_BY_HAND, 8, 0, 0x5EED, 3,
         "a text of which only the first part fits the option", 51},
        {HELIO_ACTION_CUT_OFF, HELIO_PGM_REASON_STORM, 9, HELIO_PGM_NOTICE_TIME_MAX, 0, 0, "", 0}};
    for (uint32_t i = 1; i <= 3; i++) {
        const helio_pgm_spm spm = {.sequence = 16 + i,
                                   .trail = 2,
                                   .lead = 9,
                                   .fin = true,
                                   .backoff_us = 400,
                                   .offers_history = true,
                                   .join = 3,
                                   .awaits_acks = true,
                                   .awaited = 4,
                                   .notices = notices,
                                   .notices_count = i};
        print_packet("made down", packet, helio_pgm_encode_spm(packet, &session, &spm, source));
    }
    const helio_pgm_report report = {HELIO_PGM_REPORT_RECEIVER, 9, 0, 0, 656, *source};
    const helio_pgm_receiver_report told = {HELIO_PGM_RECEIVER_REPORT_TAGGED,
                                            32768,
                                            0x5EED,
                                            5,
                                            1000,
                                            20,
                                            3,
                                            9,
                                            512,
                                            77,
                                            1500,
                                            "desk 1",
                                            6};
    for (size_t i = 0; i < 8; i++) {
        const size_t count = i & 1 ? 63 : 1;
        print_packet("made up", packet,
                     helio_pgm_encode_nak_with(packet, &session, HELIO_PGM_TYPE_NAK, sequences,
                                               count, source, group, 0, i >> 1 & 1 ? &report : NULL,
                                               i >> 2 ? &told : NULL));
        print_packet("made down", packet,
                     helio_pgm_encode_nak_with(packet, &session, HELIO_PGM_TYPE_NCF, sequences,
                                               count, source, group, i >> 1 & 1 ? 800 : 0, NULL,
                                               NULL));
        print_packet("made up", packet,
                     helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NNAK, sequences, count,
                                          source, group));
    }
    print_packet("made up", packet,
                 helio_pgm_encode_ack(packet, &session, 9, 0xFFFFFFFF, NULL, &told));
    const helio_pgm_grant grants[] = {{0xFEEDFACECAFEBEEF, 42}, {7, 0}, {8, UINT64_MAX}};
    print_packet("made up", packet,
                 helio_pgm_encode_ack_with(packet, &session, 9, 1, NULL, &told, grants, 3, NULL));
    const helio_pgm_spm awaiting = {.sequence = 7,
                                    .trail = 1,
                                    .takes_reports = true,
                                    .reporting = {.flags = HELIO_PGM_REPORTING_AWAITS_CREDIT}};
    print_packet("made down", packet, helio_pgm_encode_spm(packet, &session, &awaiting, source));
    const helio_pgm_clock questions[] = {{HELIO_PGM_CLOCK_UNKNOWN, 0xC0FFEE, 0, 0},
                                         {HELIO_PGM_CLOCK_HOST, 0, 0, 0},
                                         {HELIO_PGM_CLOCK_EXCHANGE, 7, -1500000, 20000}};
    for (size_t i = 0; i < 3; i++) {
        print_packet("made up", packet,
                     helio_pgm_encode_ack_with(packet, &session, 9, 1, NULL, &told, grants,
                                               i ? 3 : 0, &questions[i]));
    }
    for (uint32_t i = 0; i <= HELIO_PGM_CLOCK_ANSWERS_MAX; i++) {
        const helio_pgm_time time = {
            5000000000,
            1800000000000000000,
            i,
            {{0x5EED, 1, 4999999000}, {0x5EEE, 2, 1}, {1, 3, 5000000000}, {UINT64_MAX, 4, 0}}};
        const helio_pgm_spm spm = {.sequence = 7, .trail = 1, .time = &time};
        print_packet("made down", packet, helio_pgm_encode_spm(packet, &session, &spm, source));
    }
    helio_address stores[HELIO_PGM_STORES_MAX];
    for (uint32_t i = 0; i < HELIO_PGM_STORES_MAX; i++) {
        stores[i] = *source;
        stores[i].port = (uint16_t)(7800 + i);
    }
    for (uint32_t i = 1; i <= HELIO_PGM_STORES_MAX; i++) {
        const helio_pgm_spm spm = {.sequence = 7, .trail = 1, .stores = stores, .stores_count = i};
        print_packet("made down", packet, helio_pgm_encode_spm(packet, &session, &spm, source));
    }
    for (int i = 0; i < 2; i++) {
        const helio_pgm_acknowledge of_store = {
            .kind = HELIO_PGM_ACK_APPLICATION,
            .flags = HELIO_PGM_ACK_STORE,
            .receiver = 0x5EED,
            .incarnation = 5,
            .first = 4,
            .position = 8,
            .name = "store-1",
            .name_bytes = 7,
            .service = i ? stores[0] : (helio_address){.port = 7800},
        };
        print_packet("made up", packet,
                     helio_pgm_encode_ack_with(packet, &session, 9, 1, &of_store, &told, grants, 3,
                                               &questions[2]));
    }
    const helio_pgm_poll poll = {1, HELIO_PGM_POLL_GENERAL, 50000, 0xDEADBEEF, 0xFF};
    print_packet("made down", packet, helio_pgm_encode_poll(packet, &session, 7, &poll, source));
    print_packet("made up", packet, helio_pgm_encode_polr(packet, &session, 7, 1));
    print_packet("made up", packet, helio_pgm_encode_spmr(packet, &session));
    const helio_pgm_fragment fragment = {3, 1000, 2000};
    for (int i = 0; i < 2; i++) {
        const size_t header = i ? HELIO_PGM_FRAGMENT_HEADER : HELIO_PGM_DATA_HEADER;
        memset(packet + header, 0x5A, 33);
        const uint32_t sum = helio_checksum_part(packet + header, 33);
        const size_t length =
            helio_pgm_encode_data(packet, &session, 5, 2, i ? &fragment : NULL, 33, sum);
        print_packet("made down", packet, length);
        helio_pgm_make_repair(packet, 3, sum);
        print_packet("made down", packet, length);
    }
}

int main(void) {
    world w;
    world_source source;
    world_receiver receiver;
    helio_tx_topic *prices, *orders;
    helio_subscription *subscription;
    helio_tx_stream_config tx = world_source_config(1);
    helio_rx_endpoint_config rx = world_receiver_config(100);
    tx.acks = 1;
    tx.report_interval_ns = 20 * HELIO_MILLISECOND;
    tx.acker_expiry_ns = 5 * HELIO_SECOND;
    rx.receiver = 0x5EED;
    rx.ack_packets = 64;
    rx.ack_interval_ns = HELIO_MILLISECOND;
    world_init(&w, 5, 0);
    world_add_receiver(&w, &receiver, &rx);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.delay_ns = 20000, .drops = tap_down});
    if (helio_rx_endpoint_subscribe(
            receiver.endpoint, "prices",
            &(helio_sink){.on_messages = take_all, .ack = HELIO_SINK_ACK_AUTO}, world_now(&w),
            &subscription) != 0) {
        return 2;
    }
    world_add_source(&w, &source, &tx);
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = 20000, .drops = tap_up});
    if (helio_tx_stream_add_topic(source.stream, "prices", world_now(&w), &prices) != 0 ||
        helio_tx_stream_add_topic(source.stream, "orders \xC3\xA4", world_now(&w), &orders) != 0) {
        return 2;
    }
    static const size_t sizes[] = {0, 1, 20, 100, 1406, 1407, 5000, 32767, 32768, 60000};
    uint64_t prices_sent = 0, orders_sent = 0;
    for (size_t i = 0; i < 40; i++) {
        for (int k = 0; k < 5; k++) {
            send(&source, prices, prices_sent++, 30, 0);
        }
        send(&source, orders, orders_sent++, sizes[i % 10], i < 20 ? 7000 : 0);
        helio_tx_stream_flush(source.stream, world_now(&w));
        helio_sim_wake(source.node);
        world_run(&w, 300 * HELIO_MICROSECOND);
    }
    world_run(&w, 1100 * HELIO_MILLISECOND);
    send(&source, prices, prices_sent++, 30, 0);
    helio_tx_stream_close(source.stream, world_now(&w));
    helio_sim_wake(source.node);
    world_run(&w, HELIO_SECOND);
    const helio_address source4 = world_address("10.0.0.1"), group4 = world_address("239.192.7.7");
    const helio_address source6 = world_address("[fe80::1]");
    const helio_address group6 = world_address("[ff3e::8000:1]");
    print_all_packets(&source4, &group4);
    print_all_packets(&source6, &group6);
    world_end_source(&source);
    world_end_receiver(&receiver);
    world_fini(&w);
    return 0;
}
