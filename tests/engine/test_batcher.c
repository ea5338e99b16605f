/* Packing messages into packets. */
#include "send/batcher.h"

#include "base/random.h"
#include "check.h"

enum { TSDU = 1448, PACKETS_MAX = 300 };

static struct {
    uint8_t tsdu[TSDU];
    size_t bytes;
    bool is_fragment;
    helio_pgm_fragment fragment;
} packets[PACKETS_MAX];
static size_t packet_count;

static uint8_t *open_packet(void *context, bool is_fragment) {
    (void)context;
    CHECK(packet_count < PACKETS_MAX);
    packets[packet_count].is_fragment = is_fragment;
    return packets[packet_count].tsdu;
}

static void close_packet(void *context, size_t bytes, helio_pgm_fragment *fragment,
                         helio_moment moment) {
    (void)context;
    (void)moment;
    CHECK(bytes > 0 && bytes <= (fragment ? TSDU - 20 : TSDU));
    CHECK_EQUAL(packets[packet_count].is_fragment, fragment != NULL);
    if (fragment && fragment->offset == 0) {
        fragment->first = (uint32_t)packet_count;
    }
    if (fragment) {
        packets[packet_count].fragment = *fragment;
    }
    packets[packet_count].bytes = bytes;
    packet_count++;
}

static helio_batcher batcher;
static helio_instance_stats instance;
static helio_transmitter_stats counts[2];
static helio_topic_position topics[2];
static const helio_moment now = {1000, 5000};

static void begin(void) {
    packet_count = 0;
    memset(&instance, 0, sizeof instance);
    memset(counts, 0, sizeof counts);
    for (uint64_t i = 0; i < 2; i++) {
        topics[i] = (helio_topic_position){.id = 100 + i, .stats = &counts[i]};
    }
    helio_batcher_init(&batcher, (helio_packet_door){NULL, open_packet, close_packet}, TSDU,
                       &instance);
}

static helio_tsdu_header header_of(size_t packet) {
    helio_tsdu_header header;
    CHECK_EQUAL(helio_tsdu_decode(packets[packet].tsdu, packets[packet].bytes, &header),
                HELIO_TSDU_OURS);
    return header;
}

static void append(int topic, size_t bytes) {
    static uint8_t data[400000];
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    helio_batcher_append(&batcher, &topics[topic], data, bytes, now.wall_ns - 10, now);
}

static void messages_share_a_packet_until_it_is_flushed(void) {
    begin();
    for (int i = 0; i < 10; i++) {
        append(0, 20);
    }
    CHECK_EQUAL(packet_count, 0);
    helio_batcher_flush(&batcher, now);
    helio_batcher_flush(&batcher, now); /* nothing is open any more */
    CHECK_EQUAL(packet_count, 1);
    const helio_tsdu_header header = header_of(0);
    CHECK_EQUAL(header.count, 10);
    CHECK_EQUAL(header.topic_id, 100);
    CHECK_EQUAL(header.first_message, 0);
    CHECK_EQUAL(header.submit_ns, 4990);
    CHECK_EQUAL(header.closed_after_ns, 10);
    CHECK_EQUAL(packets[0].bytes, 40 + 10 * 22);
    CHECK_EQUAL(helio_cell(&counts[0].messages_sent), 10);
    CHECK_EQUAL(helio_cell(&counts[0].bytes_sent), 200);
    CHECK_EQUAL(helio_cell(&counts[0].next_message), 10);
    CHECK_EQUAL(helio_cell(&instance.messages_sent), 10);
}

static void a_full_packet_is_closed_and_the_next_goes_on_with_the_numbers(void) {
    begin();
    for (int i = 0; i < 15; i++) {
        append(0, 100); /* 13 fit */
    }
    CHECK_EQUAL(packet_count, 1);
    CHECK_EQUAL(header_of(0).count, 13);
    helio_batcher_flush(&batcher, now);
    CHECK_EQUAL(header_of(1).first_message, 13);
    CHECK_EQUAL(header_of(1).count, 2);
}

static void a_batch_has_one_topic(void) {
    begin();
    append(0, 5);
    append(1, 5);
    append(1, 5);
    append(0, 5);
    helio_batcher_flush(&batcher, now);
    CHECK_EQUAL(packet_count, 3);
    CHECK_EQUAL(header_of(0).topic_id, 100);
    CHECK_EQUAL(header_of(1).topic_id, 101);
    CHECK_EQUAL(header_of(1).count, 2);
    CHECK_EQUAL(header_of(2).first_message, 1);
}

static void the_largest_message_of_one_packet_fits_exactly(void) {
    begin();
    append(0, TSDU - 42);
    helio_batcher_flush(&batcher, now);
    CHECK_EQUAL(packet_count, 1);
    CHECK(!packets[0].is_fragment);
    CHECK_EQUAL(packets[0].bytes, TSDU);
    append(0, TSDU - 41);
    CHECK_EQUAL(packet_count, 3);
    CHECK(packets[1].is_fragment && packets[2].is_fragment);
}

static void a_large_message_is_cut_into_neighbouring_fragments(void) {
    static const size_t sizes[] = {1407, 32767, 32768, 100000, 400000};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        static uint8_t whole[400100];
        size_t bytes = 0;
        begin();
        append(0, 3); /* what was open goes first */
        append(0, sizes[k]);
        CHECK_EQUAL(header_of(0).count, 1);
        for (size_t i = 1; i < packet_count; i++) {
            CHECK_EQUAL(packets[i].fragment.first, 1);
            CHECK_EQUAL(packets[i].fragment.offset, bytes);
            memcpy(whole + bytes, packets[i].tsdu, packets[i].bytes);
            bytes += packets[i].bytes;
        }
        CHECK_EQUAL(packets[1].fragment.length, bytes);
        helio_tsdu_header header;
        CHECK_EQUAL(helio_tsdu_decode(whole, bytes, &header), HELIO_TSDU_OURS);
        CHECK_EQUAL(header.first_message, 1);
        CHECK_EQUAL(header.count, 1);
        const uint8_t *at = whole + header.header_bytes;
        helio_tsdu_message message;
        CHECK(helio_tsdu_next_message(&at, whole + bytes, &message));
        CHECK_EQUAL(message.bytes, sizes[k]);
        CHECK(at == whole + bytes);
        for (size_t i = 0; i < sizes[k]; i++) {
            CHECK_EQUAL(message.body[i], (uint8_t)(i * 7));
        }
        CHECK_EQUAL(helio_cell(&counts[0].fragmented_messages), 1);
        CHECK_EQUAL(helio_cell(&counts[0].packets_sent), packet_count);
        CHECK_EQUAL(helio_cell(&counts[0].next_message), 2);
    }
}

static void the_oldest_submit_time_counts(void) {
    begin();
    helio_batcher_append(&batcher, &topics[0], "a", 1, 4000, now);
    helio_batcher_append(&batcher, &topics[0], "b", 1, 3000, now);
    helio_batcher_append(&batcher, &topics[0], "c", 1, 4500, now);
    helio_batcher_flush(&batcher, now);
    CHECK_EQUAL(header_of(0).submit_ns, 3000);
    CHECK_EQUAL(header_of(0).closed_after_ns, 2000);
    helio_batcher_append(&batcher, &topics[0], "d", 1, -8 * HELIO_SECOND, now);
    helio_batcher_flush(&batcher, now);
    CHECK_EQUAL(header_of(1).closed_after_ns, UINT32_MAX);
}

static void announcements_take_as_many_packets_as_they_need(void) {
    begin();
    append(0, 5);
    helio_tsdu_topic entries[100];
    for (uint64_t i = 0; i < 100; i++) {
        entries[i] = (helio_tsdu_topic){i, 2 * i, "a name of some length", 21};
    }
    helio_batcher_announce(&batcher, entries, 100, HELIO_TSDU_FLAG_CLOSING, now);
    CHECK_EQUAL(header_of(0).kind, HELIO_TSDU_KIND_MESSAGES); /* what was open goes first */
    uint64_t seen = 0;
    for (size_t p = 1; p < packet_count; p++) {
        const helio_tsdu_header header = header_of(p);
        CHECK_EQUAL(header.kind, HELIO_TSDU_KIND_TOPICS);
        CHECK_EQUAL(header.flags, HELIO_TSDU_FLAG_CLOSING);
        const uint8_t *at = packets[p].tsdu + header.header_bytes;
        for (int i = 0; i < header.count; i++, seen++) {
            helio_tsdu_topic topic;
            CHECK(helio_tsdu_next_topic(&at, packets[p].tsdu + packets[p].bytes, &topic));
            CHECK_EQUAL(topic.topic_id, seen);
            CHECK_EQUAL(topic.next_message, 2 * seen);
        }
        CHECK(at == packets[p].tsdu + packets[p].bytes);
    }
    CHECK_EQUAL(seen, 100);
    CHECK_EQUAL(packet_count, 4); /* 36 entries fit a packet */
}

enum { LIST = 60, ROUNDS = 300, RUN_PACKETS = 150 };

/* A list of one topic, run by run or message by message; messages above `longest` are left out. */
static void append_list(const helio_buffer *list, size_t count, size_t longest, bool by_runs,
                        helio_topic_position *topic, int64_t submit_ns, int64_t intended_ns) {
    for (size_t i = 0; i < count; i++) {
        if (by_runs) {
            i += helio_batcher_append_run(&batcher, topic, list + i, count - i, longest, submit_ns,
                                          intended_ns, now);
        }
        if (i < count && list[i].length <= longest) {
            if (intended_ns) {
                helio_batcher_append_intended(&batcher, topic, list[i].data, list[i].length,
                                              submit_ns, intended_ns, now);
            } else {
                helio_batcher_append(&batcher, topic, list[i].data, list[i].length, submit_ns, now);
            }
        }
    }
}

/* The same lists twice from one seed: random lengths or mostly the same, topics, times and flushes. */
static void append_random_lists(uint64_t seed, bool by_runs) {
    static uint8_t data[4096];
    helio_random random;
    begin();
    helio_random_init(&random, seed);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)helio_random_next(&random);
    }
    while (packet_count < RUN_PACKETS) {
        helio_buffer list[LIST];
        const size_t count = helio_random_below(&random, LIST + 1);
        const uint64_t most = helio_random_below(&random, 8) ? 100 : 2000;
        const uint64_t usual = helio_random_below(&random, 140),
                       odd = helio_random_below(&random, 2);
        for (size_t i = 0; i < count; i++) {
            const bool is_usual = !odd && helio_random_below(&random, 10);
            list[i] = (helio_buffer){data + helio_random_below(&random, 1000),
                                     is_usual ? usual : helio_random_below(&random, most)};
        }
        helio_topic_position *topic = &topics[helio_random_below(&random, 2)];
        const size_t longest = helio_random_below(&random, 4) ? 3000 : 50;
        const int64_t submit_ns = now.wall_ns - (int64_t)helio_random_below(&random, 100);
        const int64_t intended_ns = helio_random_below(&random, 3)
                                        ? 0
                                        : submit_ns - (int64_t)helio_random_below(&random, 50);
        append_list(list, count, longest, by_runs, topic, submit_ns, intended_ns);
        if (helio_random_below(&random, 4) == 0) {
            helio_batcher_flush(&batcher, now);
        }
    }
    helio_batcher_flush(&batcher, now);
}

static void a_run_makes_the_packets_of_its_messages_one_by_one(void) {
    static uint8_t expected[PACKETS_MAX][TSDU];
    static size_t bytes[PACKETS_MAX];
    static helio_transmitter_stats wanted[2];
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        append_random_lists(seed, false);
        const size_t count = packet_count;
        for (size_t i = 0; i < count; i++) {
            bytes[i] = packets[i].bytes;
            memcpy(expected[i], packets[i].tsdu, bytes[i]);
        }
        memcpy(wanted, counts, sizeof counts);
        const uint64_t sent = helio_cell(&instance.bytes_sent);
        append_random_lists(seed, true);
        CHECK_EQUAL(packet_count, count);
        for (size_t i = 0; i < count; i++) {
            CHECK_EQUAL(packets[i].bytes, bytes[i]);
            CHECK_BYTES(packets[i].tsdu, expected[i], bytes[i]);
        }
        CHECK_BYTES(counts, wanted, sizeof counts);
        CHECK_EQUAL(helio_cell(&instance.bytes_sent), sent);
    }
}

static void a_run_stops_where_messages_join_no_more(void) {
    begin();
    const helio_buffer list[4] = {{"a", 1}, {"bb", 2}, {"cccc", 4}, {"d", 1}};
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[0], list, 4, 9, 5000, 0, now), 0);
    append(0, 100);
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[1], list, 4, 9, 5000, 0, now), 0);
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[0], list, 4, 9, 5000, 4000, now), 0);
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[0], list, 4, 2, 5000, 0, now), 2);
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[0], list, 1, 9, 5000, 0, now), 1);
    batcher.count = HELIO_TSDU_COUNT_MAX - 1;
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[0], list, 4, 9, 5000, 0, now), 1);
    CHECK_EQUAL(helio_batcher_append_run(&batcher, &topics[0], list, 4, 9, 5000, 0, now), 0);
    CHECK_EQUAL(packet_count, 0);
}

int main(void) {
    RUN(messages_share_a_packet_until_it_is_flushed);
    RUN(a_full_packet_is_closed_and_the_next_goes_on_with_the_numbers);
    RUN(a_batch_has_one_topic);
    RUN(the_largest_message_of_one_packet_fits_exactly);
    RUN(a_large_message_is_cut_into_neighbouring_fragments);
    RUN(the_oldest_submit_time_counts);
    RUN(a_run_makes_the_packets_of_its_messages_one_by_one);
    RUN(a_run_stops_where_messages_join_no_more);
    RUN(announcements_take_as_many_packets_as_they_need);
    return check_result();
}
