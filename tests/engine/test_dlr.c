/* A designated local repairer: what it keeps, what it answers, and what it refuses. */
#include "check.h"
#include "repair/dlr.h"
#include "window/cache.h"
#include "wire/pgm.h"
#include "world.h"

#define MS HELIO_MILLISECOND

/* ---- the packets kept ---- */

static void add(helio_cache *cache, uint32_t sequence, size_t bytes, int64_t now_ns) {
    uint8_t packet[2000];
    memset(packet, (int)(sequence & 255), bytes);
    CHECK(helio_cache_add(cache, 7, sequence, packet, bytes, now_ns) != NULL);
}

static bool has(const helio_cache *cache, uint32_t sequence, int64_t now_ns) {
    const helio_cache_packet *found = helio_cache_find(cache, 7, sequence, now_ns);
    const uint8_t *data = found ? helio_cache_data(found) : NULL;
    for (uint32_t i = 0; found && i < found->bytes; i++) {
        CHECK_EQUAL(data[i], sequence & 255);
    }
    return found != NULL;
}

static void the_oldest_packets_give_way_to_new_ones_of_any_length(void) {
    helio_cache cache;
    helio_random random;
    helio_random_init(&random, 5);
    CHECK_EQUAL(helio_cache_init(&cache, 10000, HELIO_SECOND), 0);
    uint64_t bytes[5000];
    for (uint32_t i = 0; i < 5000; i++) {
        bytes[i] = 1 + helio_random_below(&random, 1500);
        add(&cache, i, bytes[i], 0);
        uint64_t packets = 0, sum = 0;
        while (packets <= i && has(&cache, i - (uint32_t)packets, 0)) {
            sum += bytes[i - packets++];
        }
        CHECK_EQUAL(cache.packets, packets); /* the newest, without a gap */
        CHECK_EQUAL(cache.bytes, sum);
        CHECK(sum <= 10016 && (i < 100 || sum > 10016 - 3 * 1600));
    }
    helio_cache_fini(&cache);
}

static void a_packet_is_kept_once_and_for_its_time(void) {
    helio_cache cache;
    CHECK_EQUAL(helio_cache_init(&cache, 10000, 100), 0);
    add(&cache, 1, 500, 0);
    add(&cache, 2, 500, 50);
    CHECK(!helio_cache_add(&cache, 7, 1, "again", 5, 60));
    CHECK(!helio_cache_add(&cache, 7, 3, "too long", 9000, 60));
    CHECK(!helio_cache_find(&cache, 8, 1, 60)); /* of another stream */
    CHECK(has(&cache, 1, 99) && !has(&cache, 1, 100) && has(&cache, 2, 149));
    helio_cache_expire(&cache, 149);
    CHECK_EQUAL(cache.packets, 1);
    helio_cache_expire(&cache, 150);
    CHECK_EQUAL(cache.packets, 0);
    helio_cache_fini(&cache);
}

/* ---- NAKs ---- */

static struct {
    uint64_t packets[16]; /* sent, by type */
    uint64_t bytes;
    helio_pgm_packet last;
    uint8_t memory[2000];
    helio_address to;
} sent;

static int take(void *context, const helio_address *to, const void *packet, size_t length,
                bool stable) {
    (void)context, (void)stable;
    memcpy(sent.memory, packet, length);
    CHECK_EQUAL(helio_pgm_decode(sent.memory, length, &sent.last), HELIO_PGM_ACCEPTED);
    sent.packets[sent.last.type]++;
    sent.bytes += length;
    sent.to = *to;
    return 0;
}

static helio_dlr *dlr;
static const helio_pgm_session session = {{{1, 2, 3, 4, 5, 6}, 40001}, 7500};
static const helio_dlr_hope hope = {.first = 100, .last = 200};

static void begin(uint64_t rate) {
    memset(&sent, 0, sizeof sent);
    const helio_dlr_config config = {.bytes = 1 << 20, .age_ns = HELIO_SECOND, .rate = rate};
    CHECK_EQUAL(helio_dlr_create(&config, (helio_outlet){.send = take}, &dlr), 0);
}

static uint32_t hear(uint32_t sequence, int64_t now_ns) {
    uint8_t bytes[1000] = {0};
    helio_pgm_packet packet;
    const size_t length =
        helio_pgm_encode_data(bytes, &session, sequence, 1, NULL, 900,
                              helio_checksum_part(bytes + HELIO_PGM_DATA_HEADER, 900));
    CHECK_EQUAL(helio_pgm_decode(bytes, length, &packet), HELIO_PGM_ACCEPTED);
    return helio_dlr_on_data(dlr, &packet, bytes, length, now_ns);
}

static helio_dlr_answer ask(const uint32_t *sequences, size_t count, const char *from,
                            int64_t now_ns) {
    const helio_address source = world_address("10.0.0.1"), group = world_address(WORLD_GROUP);
    const helio_address asker = world_address(from);
    uint8_t bytes[HELIO_PGM_CONTROL_MAX];
    helio_pgm_packet nak;
    const size_t length = helio_pgm_encode_nak(bytes, &session, HELIO_PGM_TYPE_NAK, sequences,
                                               count, &source, &group);
    CHECK_EQUAL(helio_pgm_decode(bytes, length, &nak), HELIO_PGM_ACCEPTED);
    return helio_dlr_on_nak(dlr, &nak, &asker, &hope, now_ns);
}

static void a_request_is_confirmed_and_answered_with_the_streams_own_packet(void) {
    begin(0);
    hear(50, 0);
    const helio_dlr_answer answer = ask((const uint32_t[]){49, 50, 150}, 3, "10.0.0.9:5000", MS);
    CHECK_EQUAL(answer.repaired, 1);
    CHECK_EQUAL(answer.declined, 1); /* 49: neither kept nor expected */
    CHECK_EQUAL(answer.awaited, 1);
    CHECK_EQUAL(sent.packets[HELIO_PGM_TYPE_NCF], 1);
    CHECK_EQUAL(sent.packets[HELIO_PGM_TYPE_RDATA], 1);
    CHECK_EQUAL(sent.last.sequence, 50);
    CHECK_EQUAL(sent.last.tsdu_bytes, 900);
    CHECK(helio_tsi_equal(&sent.last.tsi, &session.tsi));
    helio_dlr_destroy(dlr);
}

static void what_it_does_not_have_is_not_confirmed(void) {
    begin(0);
    const helio_dlr_answer answer = ask((const uint32_t[]){99, 201}, 2, "10.0.0.9:5000", 0);
    CHECK_EQUAL(answer.declined, 2);
    CHECK_EQUAL(sent.bytes, 0);
    helio_dlr_destroy(dlr);
}

static void those_who_wait_get_the_packet_once_when_it_arrives(void) {
    begin(0);
    ask((const uint32_t[]){150}, 1, "10.0.0.9:5000", 0);
    ask((const uint32_t[]){150}, 1, "10.0.0.9:5000", MS); /* again */
    ask((const uint32_t[]){150}, 1, "10.0.0.9:5001", MS);
    CHECK_EQUAL(hear(150, 2 * MS), 2);
    CHECK_EQUAL(sent.packets[HELIO_PGM_TYPE_RDATA], 2);
    CHECK_EQUAL(hear(150, 3 * MS), 0);
    ask((const uint32_t[]){151}, 1, "10.0.0.9:5000", 0);
    CHECK_EQUAL(hear(151, HELIO_SECOND), 0); /* nobody waits as long */
    helio_dlr_destroy(dlr);
}

static void a_flood_of_requests_gets_no_more_than_the_rate(void) {
    enum { RATE = 1000000 };
    begin(RATE);
    uint32_t all[1 + HELIO_PGM_NAK_LIST_MAX];
    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        all[i] = 10 + i;
        hear(all[i], 0);
    }
    uint64_t of_one = 0;
    for (int64_t now_ns = 0; now_ns < HELIO_SECOND; now_ns += MS) {
        const uint64_t before = sent.packets[HELIO_PGM_TYPE_RDATA];
        ask(all, sizeof all / sizeof all[0], "10.0.0.9:5000", now_ns / 2);
        of_one += sent.packets[HELIO_PGM_TYPE_RDATA] - before;
        char forged[HELIO_ADDRESS_TEXT];
        snprintf(forged, sizeof forged, "10.1.%u.%u:5000", (unsigned)(now_ns / MS / 250),
                 (unsigned)(now_ns / MS % 250));
        ask(all, sizeof all / sizeof all[0], forged, now_ns / 2);
    }
    /* half a second, and an eighth at once; a packet has 924 bytes */
    CHECK(sent.packets[HELIO_PGM_TYPE_RDATA] * 924 <= RATE * 5 / 8 + 2 * 924);
    CHECK(of_one * 924 <= RATE / 4 + 924); /* an eighth at once, and a quarter of the rate */
    CHECK(of_one > 0);
    helio_dlr_destroy(dlr);
}

static void more_waiting_than_there_is_room_for_push_out_the_oldest(void) {
    begin(0);
    const helio_dlr_hope wide = {.first = 0, .last = 1 << 20};
    const helio_address source = world_address("10.0.0.1"), group = world_address(WORLD_GROUP);
    const helio_address asker = world_address("10.0.0.9:5000");
    for (uint32_t sequence = 0; sequence < 5000; sequence++) {
        uint8_t bytes[HELIO_PGM_CONTROL_MAX];
        helio_pgm_packet nak;
        const size_t length = helio_pgm_encode_nak(bytes, &session, HELIO_PGM_TYPE_NAK, &sequence,
                                                   1, &source, &group);
        CHECK_EQUAL(helio_pgm_decode(bytes, length, &nak), HELIO_PGM_ACCEPTED);
        CHECK_EQUAL(helio_dlr_on_nak(dlr, &nak, &asker, &wide, 0).awaited, 1);
    }
    CHECK_EQUAL(hear(10, MS), 0);
    CHECK_EQUAL(hear(4990, MS), 1);
    helio_dlr_destroy(dlr);
}

/* ---- a receiver and an address that says it is the repairer ---- */

static world w;
static world_source source;
static world_receiver receiver;
static uint64_t delivered;

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    delivered += count;
    return count;
}

static void a_repairer_can_neither_begin_a_stream_nor_move_its_window(void) {
    world_init(&w, 1, 0);
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.repairer = world_host(50, 50000);
    world_add_receiver(&w, &receiver, &config);
    helio_subscription *subscription;
    const helio_sink sink = {.on_messages = on_messages};
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver.endpoint, "t", &sink, world_now(&w), &subscription),
        0);
    uint8_t bytes[1000] = {0};
    const helio_tx_stream_config stream = world_source_config(1);
    const helio_pgm_session of_source = {stream.tsi, 7500};
    for (int round = 0; round < 2; round++) {
        for (uint32_t sequence = 0; sequence < 300; sequence++) {
            const size_t length =
                helio_pgm_encode_data(bytes, &of_source, sequence * 7, sequence * 7, NULL, 100,
                                      helio_checksum_part(bytes + HELIO_PGM_DATA_HEADER, 100));
            helio_pgm_relay_repair(bytes, length);
            const helio_moment moment = world_now(&w);
            helio_rx_endpoint_on_packet(receiver.endpoint, bytes, length, &config.repairer,
                                        moment.wall_ns, moment);
        }
        CHECK_EQUAL(delivered, round * 10);
        if (round == 1) {
            break;
        }
        world_add_source(&w, &source, &stream);
        helio_tx_topic *topic;
        CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
        for (int i = 0; i < 10; i++) {
            const helio_moment moment = world_now(&w);
            helio_tx_stream_append(source.stream, topic, "x", 1, moment.wall_ns, moment);
            helio_tx_stream_flush(source.stream, moment);
        }
        helio_sim_wake(source.node);
        world_run(&w, 10 * MS);
    }
    world_end_receiver(&receiver);
    world_end_source(&source);
    world_fini(&w);
}

int main(void) {
    RUN(the_oldest_packets_give_way_to_new_ones_of_any_length);
    RUN(a_packet_is_kept_once_and_for_its_time);
    RUN(a_request_is_confirmed_and_answered_with_the_streams_own_packet);
    RUN(what_it_does_not_have_is_not_confirmed);
    RUN(those_who_wait_get_the_packet_once_when_it_arrives);
    RUN(a_flood_of_requests_gets_no_more_than_the_rate);
    RUN(more_waiting_than_there_is_room_for_push_out_the_oldest);
    RUN(a_repairer_can_neither_begin_a_stream_nor_move_its_window);
    return check_result();
}
