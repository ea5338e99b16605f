/* The fast path of sending (send/fast_path.h) against the general path.
 *
 *     sim_send_fast_path [--seeds N] [--first N]
 *
 * Each seed is a program of ACTIONS: lone messages and lists on two topics, feedback of a receiver
 * that loses packets, rates and send limits set and lifted, levels of detail, time that passes.  Two
 * sources run it at the same moments.  One of them tries the fast path for each lone message.  After
 * each action both have sent the same packets and have the same statistics, histograms included, and
 * the same deadline. */
#include <stdbool.h>

#include "check.h"
#include "reconciliation.h"
#include "seeds.h"
#include "send/fast_path.h"
#include "send/parts.h"
#include "stats/levels.h"
#include "world.h"

enum {
    ACTIONS = 20000, /* of one seed */
    CARRIED_MAX = 4096,
    PACKET_MAX = 1500,
    LONGEST = 4000,
};

typedef struct carried {
    uint8_t bytes[PACKET_MAX];
    size_t length;
} carried;

typedef struct carrier {
    carried packets[CARRIED_MAX];
    size_t count;
} carrier;

typedef struct twin {
    helio_stats *stats;
    helio_stats_object instance;
    helio_tx_stream *stream;
    helio_tx_topic *topics[2];
    carrier down;
    uint64_t digest;
} twin;

static helio_random dice;
static helio_moment now;
static twin fast, general;
static twin *const twins[] = {&fast, &general};
static helio_stats *receiver_stats;
static helio_stats_object receiver_instance;
static helio_rx_endpoint *receiver;
static carrier up;
static helio_address source_address;
static uint64_t actions, lone, taken;

static bool chance(uint64_t of_thousand) {
    return helio_random_below(&dice, 1000) < of_thousand;
}

/* ---- twins ---- */

static void digest(twin *t, const void *bytes, size_t length) {
    const uint8_t *at = bytes;
    for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
        uint64_t word = length;
        memcpy(&word, at + done, helio_min(sizeof word, length - done));
        t->digest = (t->digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        t->digest ^= t->digest >> 29;
    }
}

static void keep(carrier *into, const void *packet, size_t length) {
    CHECK(length <= PACKET_MAX);
    if (into->count < CARRIED_MAX) {
        memcpy(into->packets[into->count].bytes, packet, length);
        into->packets[into->count++].length = length;
    }
}

static int carry_down(void *context, const helio_address *to, const void *packet, size_t length,
                      bool stable) {
    twin *t = context;
    (void)stable;
    digest(t, packet, length);
    if (to) {
        digest(t, to->ip, sizeof to->ip);
    }
    keep(&t->down, packet, length);
    return 0;
}

static int carry_now(void *context, const void *packet, size_t length) {
    return carry_down(context, NULL, packet, length, true);
}

static int carry_up(void *context, const helio_address *to, const void *packet, size_t length,
                    bool stable) {
    (void)context, (void)to, (void)stable;
    keep(&up, packet, length);
    return 0;
}

static helio_stats *open_stats(int level, helio_stats_object *instance) {
    helio_stats *stats;
    const helio_stats_config config = {
        .name = "twin", .bytes = 16 << 20, .level = level, .wall_ns = 1, .sample = 3};
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(
        helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=twin\n", 1, instance), 0);
    return stats;
}

static helio_address fan[2];

static helio_tx_stream_config draw_config(void) {
    static const uint32_t windows[] = {16, 64, 256}, firsts[] = {0, 0xFFFFF000, 77};
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = windows[helio_random_below(&dice, 3)];
    config.history_bytes = chance(300) ? 32768 : 0;
    config.history_ns = chance(300) ? 2 * HELIO_MILLISECOND : 0;
    config.history_dynamic = chance(300);
    config.first_sequence = firsts[helio_random_below(&dice, 3)];
    config.report_interval_ns = chance(500) ? 20 * HELIO_MILLISECOND : 0;
    config.is_raw = chance(100);
    config.acks = chance(100);
    config.acks_missing = HELIO_ACKS_MISSING_DEGRADE;
    config.acker_expiry_ns = 2 * HELIO_SECOND;
    config.awaits_credit = !config.is_raw && chance(100);
    config.has_checksums = !chance(200);
    config.is_copied = chance(300);
    config.late_join = chance(300);
    config.poll_interval_ns = chance(300) ? 50 * HELIO_MILLISECOND : 0;
    config.send_now = chance(500) ? carry_now : NULL;
    config.pace.rate = chance(100) ? 1 << 20 : 0;
    if (chance(200)) { /* fan-out */
        fan[0] = world_host(101, 7500);
        fan[1] = world_host(102, 7500);
        config.group = fan[0];
        config.destinations = fan;
        config.destinations_count = 2;
        config.pace.copies = 2;
    }
    return config;
}

static void begin_twins(int level, const helio_tx_stream_config *config) {
    source_address = config->address;
    source_address.port = config->tsi.port;
    for (int i = 0; i < 2; i++) {
        twin *t = twins[i];
        *t = (twin){.digest = 1};
        t->stats = open_stats(level, &t->instance);
        CHECK_EQUAL(helio_tx_stream_create(config, (helio_outlet){t, carry_down}, t->stats,
                                           t->instance.record, now, &t->stream),
                    0);
        for (int k = 0; k < (config->is_raw ? 1 : 2); k++) {
            CHECK_EQUAL(helio_tx_stream_add_topic(t->stream, k ? "b" : "a", now, &t->topics[k]), 0);
        }
    }
    general.topics[1] = general.topics[1] ? general.topics[1] : general.topics[0];
    fast.topics[1] = fast.topics[1] ? fast.topics[1] : fast.topics[0];
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    return count;
}

static void begin_receiver(const helio_tx_stream_config *source) {
    receiver_stats = open_stats(0, &receiver_instance);
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.receiver = 4711;
    config.window_packets = 256;
    config.nak_deadline_ns = 20 * HELIO_MILLISECOND;
    config.group = source->group;
    config.is_raw = source->is_raw;
    config.has_checksums = source->has_checksums;
    CHECK_EQUAL(helio_rx_endpoint_create(&config, (helio_outlet){NULL, carry_up}, receiver_stats,
                                         receiver_instance.record, &receiver),
                0);
    const helio_sink sink = {
        .on_messages = on_messages,
        .ack = source->acks || chance(200) ? HELIO_SINK_ACK_AUTO : HELIO_SINK_ACK_NONE,
        .credit = source->awaits_credit ? 100 : 0,
    };
    helio_subscription *subscription;
    CHECK_EQUAL(helio_rx_endpoint_subscribe(receiver, "a", &sink, now, &subscription), 0);
}

static void end(void) {
    for (int i = 0; i < 2; i++) {
        CHECK(books_hold(twins[i]->stats));
        helio_tx_stream_destroy(twins[i]->stream, now);
        helio_stats_close_object(twins[i]->stats, &twins[i]->instance, 1);
        helio_stats_destroy(twins[i]->stats);
    }
    helio_rx_endpoint_destroy(receiver, now);
    helio_stats_close_object(receiver_stats, &receiver_instance, 1);
    helio_stats_destroy(receiver_stats);
}

/* ---- comparison ---- */

static void compare_object(const helio_segment_object *a, const helio_segment_object *b) {
    CHECK_EQUAL(a->record_bytes, b->record_bytes);
    const uint64_t *left = books_record(fast.stats, a), *right = books_record(general.stats, b);
    for (size_t i = 1; i < a->record_bytes / sizeof *left; i++) { /* 0: the guard */
        if (left[i] != right[i]) {
            CHECK_FAIL("cell %zu of\n%sis %" PRIu64 " with the fast path and %" PRIu64
                       " without, after %" PRIu64 " actions",
                       i, a->labels, left[i], right[i], actions);
        }
    }
}

/* The state that decides what the stream does later. */
static void compare_state(void) {
    const helio_tx_stream *a = fast.stream, *b = general.stream;
#define SAME(field) CHECK_EQUAL(a->field, b->field)
    SAME(txw.trail);
    SAME(txw.lead);
    SAME(txw.bytes);
    SAME(txw.taken_bytes);
    SAME(txw.all_bytes);
    SAME(traffic.packets);
    SAME(traffic.bytes);
    SAME(heartbeat.heartbeat_due_ns);
    SAME(heartbeat.interval_ns);
    SAME(has_news);
    SAME(data_since_repair);
    SAME(announce_due_ns);
    SAME(acks.asked);
    SAME(acks.stable);
    SAME(acks.unacked_bytes);
    SAME(pace.charged);
    SAME(pace.wait);
    SAME(pace.is_open);
    SAME(batcher.flags);
    SAME(batcher.uncounted.messages);
    SAME(repairer.queue.count);
#undef SAME
    CHECK_EQUAL(!a->batcher.tsdu, !b->batcher.tsdu);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(fast.topics[i]->newest, general.topics[i]->newest);
        CHECK_EQUAL(fast.topics[i]->position.next_message,
                    general.topics[i]->position.next_message);
    }
    const helio_txw_slot *left = helio_txw_slot_of(&a->txw, a->txw.lead);
    const helio_txw_slot *right = helio_txw_slot_of(&b->txw, b->txw.lead);
    CHECK_EQUAL(left->sent_ns, right->sent_ns);
    CHECK_EQUAL(left->length, right->length);
    const size_t mark = a->txw.lead & a->txw.mask;
    CHECK_EQUAL(a->acks.marks[mark].previous, b->acks.marks[mark].previous);
    CHECK_EQUAL(a->acks.marks[mark].first_message, b->acks.marks[mark].first_message);
}

static void compare(void) {
    CHECK_EQUAL(fast.digest, general.digest);
    CHECK_EQUAL(helio_tx_stream_next_deadline_ns(fast.stream),
                helio_tx_stream_next_deadline_ns(general.stream));
    compare_state();
    const uint64_t used = helio_cell(&fast.stats->header->objects_used);
    CHECK_EQUAL(used, helio_cell(&general.stats->header->objects_used));
    for (uint64_t i = 0; i < used; i++) {
        compare_object(&fast.stats->objects[i], &general.stats->objects[i]);
    }
}

static void compare_histograms_of(const helio_stats_object *a, const helio_stats_object *b) {
    for (int i = 0; i < HELIO_STATS_HISTOGRAMS_MAX; i++) {
        CHECK_EQUAL(!a->histogram[i], !b->histogram[i]);
        if (a->histogram[i]) {
            CHECK_BYTES(a->histogram[i], b->histogram[i], sizeof(helio_hdr));
        }
    }
}

static void compare_histograms(void) {
    compare_histograms_of(&fast.stream->object, &general.stream->object);
    for (int i = 0; i < 2; i++) {
        compare_histograms_of(&fast.topics[i]->object, &general.topics[i]->object);
    }
}

/* ---- actions ---- */

static uint8_t body[LONGEST];

static bool append(twin *t, int topic, size_t length) {
    if (helio_tx_stream_admit(t->stream, t->topics[topic], length, now) != HELIO_ADMIT_GO) {
        return false;
    }
    const int error =
        helio_tx_stream_append(t->stream, t->topics[topic], body, length, now.wall_ns, now);
    return error == 0;
}

static void send_lone(int topic, size_t length) {
    lone++;
    const bool is_taken = helio_tx_fast_path(fast.stream, fast.topics[topic], body, length, now);
    taken += is_taken;
    const bool is_sent = append(&general, topic, length);
    helio_tx_stream_flush(general.stream, now);
    if (is_taken) {
        CHECK(is_sent);
        return;
    }
    CHECK_EQUAL(append(&fast, topic, length), is_sent);
    helio_tx_stream_flush(fast.stream, now);
}

/* A list, which may leave its last packet open. */
static void send_list(int topic, size_t length) {
    helio_buffer messages[64];
    const size_t count = 1 + helio_random_below(&dice, 64);
    const bool is_flushed = chance(800), runs = chance(700);
    for (size_t i = 0; i < count; i++) {
        messages[i] = (helio_buffer){body, length};
    }
    for (int k = 0; k < 2; k++) {
        helio_tx_stream *stream = twins[k]->stream;
        for (size_t done = 0; done < count;) {
            const size_t run =
                !runs || stream->config.is_raw
                    ? 0
                    : helio_tx_stream_append_run(stream, twins[k]->topics[topic], messages + done,
                                                 count - done, LONGEST, now.wall_ns, 0, now);
            done += run;
            if (run == 0 && (done == count || !append(twins[k], topic, length))) {
                break;
            }
            done += run == 0;
        }
        if (is_flushed) {
            helio_tx_stream_flush(stream, now);
        }
    }
}

static void send(void) {
    static const size_t sizes[] = {0,   1,    8,    64,   64,   64,   65,
                                   300, 1380, 1404, 1405, 1406, 1407, 3000};
    const size_t length = sizes[helio_random_below(&dice, sizeof sizes / sizeof *sizes)];
    const int topic = chance(150);
    body[0] = (uint8_t)actions;
    if (chance(850)) {
        send_lone(topic, length);
    } else {
        send_list(topic, length);
    }
}

/* The receiver gets what was sent, as far as it is not lost, and both sources get its feedback. */
static void exchange(bool is_rough) {
    const helio_address from = {.family = 4, .ip = {10, 0, 0, 100}, .port = 50000};
    for (size_t i = 0; i < fast.down.count; i++) {
        if (!is_rough || !chance(50)) {
            helio_rx_endpoint_on_packet(receiver, fast.down.packets[i].bytes,
                                        fast.down.packets[i].length, &source_address, now.wall_ns,
                                        now);
        }
    }
    fast.down.count = general.down.count = 0;
    helio_rx_endpoint_poll(receiver, now);
    for (size_t i = 0; i < up.count; i++) {
        for (int k = 0; k < 2; k++) {
            helio_tx_stream_on_packet(twins[k]->stream, up.packets[i].bytes, up.packets[i].length,
                                      &from, now);
        }
    }
    up.count = 0;
}

static void poll(void) {
    for (int k = 0; k < 2; k++) {
        helio_tx_stream_poll(twins[k]->stream, now);
        helio_tx_stream_tend(twins[k]->stream, now);
    }
}

static void change(void) {
    const uint64_t rate = chance(800) ? 0 : 1 << (18 + helio_random_below(&dice, 8));
    const uint64_t limit =
        chance(800) ? UINT64_MAX : fast.stream->txw.lead + helio_random_below(&dice, 30);
    const bool is_rate = chance(600), is_limit = chance(600), is_level = chance(300);
    const int level = (int)helio_random_below(&dice, 4);
    for (int k = 0; k < 2; k++) {
        if (is_rate) {
            helio_tx_stream_set_rate(twins[k]->stream, rate, now);
        }
        if (is_limit) {
            helio_tx_pace_set_send_limit(helio_tx_stream_pace(twins[k]->stream), limit);
        }
        if (is_level) {
            CHECK_EQUAL(helio_stats_set_level(twins[k]->stats, level, HELIO_NEVER, now), 0);
        }
        while (helio_stats_tend(twins[k]->stats, now)) {
        }
        helio_hold *hold = helio_tx_stream_hold(twins[k]->stream);
        helio_hold_begin(hold, now.wall_ns - 1000, now.wall_ns);
        helio_hold_end(hold, now.wall_ns);
    }
}

static void play(uint64_t seed) {
    helio_random_init(&dice, seed);
    now = (helio_moment){1000 * HELIO_SECOND, 5000 * HELIO_SECOND};
    actions = up.count = 0;
    const helio_tx_stream_config config = draw_config();
    begin_twins((int)helio_random_below(&dice, 4), &config);
    begin_receiver(&config);
    for (; actions < ACTIONS; actions++) {
        send();
        if (chance(700)) {
            const int64_t ns = (int64_t)helio_random_below(
                &dice, chance(20) ? 30 * HELIO_MILLISECOND : 20 * HELIO_MICROSECOND);
            now.now_ns += ns;
            now.wall_ns += ns;
        }
        if (chance(500)) {
            exchange(actions / 1000 % 2);
        }
        if (chance(500)) {
            poll();
        }
        if (chance(5)) {
            change();
        }
        compare();
    }
    compare_histograms();
    for (int k = 0; k < 2; k++) {
        helio_tx_stream_close(twins[k]->stream, now);
    }
    compare();
    end();
}

static bool holds(uint64_t seed) {
    if (setjmp(check_out) != 0) {
        return false;
    }
    play(seed);
    return true;
}

/* ---- which messages take the fast path ---- */

static helio_tx_stream *begin_steady(helio_tx_stream_config config) {
    helio_random_init(&dice, 1);
    now = (helio_moment){1000 * HELIO_SECOND, 5000 * HELIO_SECOND};
    begin_twins(0, &config);
    begin_receiver(&config);
    poll(); /* it opens */
    return fast.stream;
}

static bool takes(size_t length) {
    return helio_tx_fast_path(fast.stream, fast.topics[0], body, length, now);
}

static void a_lone_message_of_a_steady_stream_takes_the_fast_path(void) {
    begin_steady(world_source_config(1));
    CHECK(takes(64));
    CHECK(takes(0));
    const size_t fitting =
        1472 - HELIO_PGM_DATA_HEADER - HELIO_TSDU_HEADER - HELIO_TSDU_MESSAGE_HEADER;
    CHECK(takes(fitting));
    CHECK(!takes(fitting + 1)); /* fragments */
    end();
}

static void whatever_is_unusual_takes_the_general_path(void) {
    helio_tx_stream *stream = begin_steady(world_source_config(1));
    const uint64_t before = fast.digest;
    helio_tx_stream_set_rate(stream, 1 << 20, now);
    CHECK(!takes(64));
    helio_tx_stream_set_rate(stream, 0, now);
    helio_tx_pace_set_send_limit(helio_tx_stream_pace(stream), stream->txw.lead);
    CHECK(!takes(64));
    helio_tx_pace_set_send_limit(helio_tx_stream_pace(stream), UINT64_MAX);
    stream->repairer.queue.count++; /* a repair waits */
    CHECK(!takes(64));
    stream->repairer.queue.count--;
    stream->acks.registry.count++; /* somebody acknowledges, and may have to be asked */
    CHECK(!takes(64));
    stream->acks.registry.count--;
    CHECK_EQUAL(fast.digest, before);
    CHECK(append(&fast, 0, 8)); /* a packet is open */
    CHECK(!takes(64));
    helio_tx_stream_flush(stream, now);
    CHECK(takes(64));
    helio_tx_stream_close(stream, now);
    CHECK(!takes(64));
    end();
}

static void streams_with_other_duties_never_take_it(void) {
    for (int i = 0; i < 3; i++) {
        helio_tx_stream_config config = world_source_config(1);
        config.acks = i == 0;
        config.acker_expiry_ns = 2 * HELIO_SECOND;
        config.awaits_credit = i == 1;
        config.is_raw = i == 2;
        begin_steady(config);
        CHECK(!takes(64));
        end();
    }
}

int main(int argc, char **argv) {
    RUN(a_lone_message_of_a_steady_stream_takes_the_fast_path);
    RUN(whatever_is_unusual_takes_the_general_path);
    RUN(streams_with_other_duties_never_take_it);
    const seeds seeds = seeds_from(argc, argv, 20, 4);
    const bool hold = seeds_hold("sim_send_fast_path", seeds, holds);
    printf("%" PRIu64 " of %" PRIu64 " lone messages took the fast path\n", taken, lone);
    return check_result() || !hold || (seeds.count >= 4 && taken < lone / 10);
}
