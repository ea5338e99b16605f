/* The fast path of receiving (receive/fast_path.h) against the general path.
 *
 *     sim_fast_path [--seeds N] [--first N]
 *
 * Each seed is PACKETS packets or more.  Four receivers get the same packets of one source at the same
 * moments; one has no fast path, one is offered each packet as a lone message first, and one gets packets
 * in batches, so that its statistics are compared at their ends only.  In calm times
 * packets come as sent.  In rough times they are lost, doubled, late, damaged or forged, and sinks are
 * full.  After each packet all receivers have delivered and sent the same, have the same statistics,
 * histograms included, and the same deadline.  Of every second seed the source waits for
 * acknowledgements; of every fourth messages are delivered as they arrive; of two in four nothing is
 * measured. */
#include <stdbool.h>

#include "check.h"
#include "receive/delivery_topic.h"
#include "receive/endpoint_parts.h"
#include "receive/fast_path.h"
#include "reconciliation.h"
#include "seeds.h"
#include "wire/checksum.h"
#include "world.h"

enum {
    PACKETS = 20000,   /* of one seed */
    CARRIED_MAX = 512, /* packets the source may send at once */
    LATE_MAX = 8,      /* packets that wait out of order */
    SUBSCRIPTIONS = 3, /* 0: topic a, always; 1: topic b; 2: topic a again */
    PHASE = 400,       /* packets of calm or rough times */
};

typedef struct carried {
    uint8_t bytes[1500];
    size_t length;
} carried;

typedef struct carrier {
    carried packets[CARRIED_MAX];
    size_t count;
} carrier;

/* A receiver and a digest of all it has done. */
typedef struct twin {
    helio_stats *stats;
    helio_stats_object instance;
    helio_rx_endpoint *endpoint;
    helio_subscription *subscriptions[SUBSCRIPTIONS];
    carrier up;
    uint64_t digest;
    size_t room; /* messages its sinks take at once */
    helio_loan loan;
} twin;

static helio_random dice;
static helio_moment now;
static twin fast, general, lone, grouped;
static twin *const all[] = {&fast, &general, &lone, &grouped};
enum { TWINS = sizeof all / sizeof *all };
static carrier down;
static helio_stats *source_stats;
static helio_stats_object source_instance;
static helio_tx_stream *source;
static helio_tx_topic *topics[2];
static helio_address source_address;
static uint64_t packets_given, lone_taken, runs_counted;
static bool is_measured;      /* with all histograms */
static bool has_acks;         /* the source waits for them */
static bool in_arrival_order; /* held packets are delivered ahead of their turn */

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

static int carry(void *context, const helio_address *to, const void *packet, size_t length,
                 bool stable) {
    carrier *into = context;
    (void)to, (void)stable;
    CHECK(length <= sizeof into->packets[0].bytes);
    if (into->count < CARRIED_MAX) {
        carried *next = &into->packets[into->count++];
        memcpy(next->bytes, packet, length);
        next->length = length;
    }
    return 0;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    twin *t = context;
    const size_t taken = count < t->room ? count : t->room;
    for (size_t i = 0; i < taken; i++) {
        const helio_message *m = &messages[i];
        digest(t, m->data, m->length);
        digest(t, &m->length, sizeof *m - offsetof(helio_message, length));
    }
    return taken;
}

static void on_loss(void *context, const helio_loss *loss) {
    const uint64_t numbers[] = {loss->first, loss->count, loss->stream};
    digest(context, numbers, sizeof numbers);
}

static void subscribe(twin *t, int which) {
    const helio_sink sink = {.context = t,
                             .on_messages = on_messages,
                             .on_loss = on_loss,
                             .ack = has_acks ? HELIO_SINK_ACK_AUTO : HELIO_SINK_ACK_NONE};
    CHECK_EQUAL(helio_rx_endpoint_subscribe(t->endpoint, which == 1 ? "b" : "a", &sink, now,
                                            &t->subscriptions[which]),
                0);
}

static helio_stats *open_stats(int level, helio_stats_object *instance) {
    helio_stats *stats;
    const helio_stats_config config = {
        .name = "twin", .bytes = 16 << 20, .level = level, .wall_ns = 1};
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(
        helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=twin\n", 1, instance), 0);
    return stats;
}

static void begin_twin(twin *t, int level, bool no_fast_path) {
    *t = (twin){.room = SIZE_MAX};
    t->stats = open_stats(level, &t->instance);
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.no_fast_path = no_fast_path;
    config.receiver = 4711;
    config.in_arrival_order = in_arrival_order;
    config.window_packets = 64;
    config.nak_deadline_ns = 20 * HELIO_MILLISECOND;
    config.ack_packets = 8;
    config.ack_interval_ns = 100 * HELIO_MICROSECOND;
    config.loan = &t->loan; /* nobody lends, but a lone message could be lent */
    CHECK_EQUAL(helio_rx_endpoint_create(&config, (helio_outlet){&t->up, carry}, t->stats,
                                         t->instance.record, &t->endpoint),
                0);
    subscribe(t, 0);
}

static void end_twin(twin *t) {
    helio_rx_endpoint_destroy(t->endpoint, now);
    helio_stats_close_object(t->stats, &t->instance, 1);
    helio_stats_destroy(t->stats);
}

static void begin_source(void) {
    source_stats = open_stats(0, &source_instance);
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 64;
    config.first_sequence = 0xFFFFF000; /* soon wraps to 0 */
    config.report_interval_ns = 20 * HELIO_MILLISECOND;
    config.acks = has_acks;
    config.acks_missing = HELIO_ACKS_MISSING_DEGRADE;
    source_address = config.address;
    source_address.port = config.tsi.port;
    CHECK_EQUAL(helio_tx_stream_create(&config, (helio_outlet){&down, carry}, source_stats,
                                       source_instance.record, now, &source),
                0);
    CHECK_EQUAL(helio_tx_stream_add_topic(source, "a", now, &topics[0]), 0);
    CHECK_EQUAL(helio_tx_stream_add_topic(source, "b", now, &topics[1]), 0);
}

static void end_source(void) {
    helio_tx_stream_destroy(source, now);
    helio_stats_close_object(source_stats, &source_instance, 1);
    helio_stats_destroy(source_stats);
}

/* ---- comparison ---- */

static const char *name_of(const twin *t) {
    return t == &lone ? "for lone messages" : t == &grouped ? "in batches" : "with the fast path";
}

static void compare_object(const twin *t, const helio_segment_object *a,
                           const helio_segment_object *b) {
    CHECK_EQUAL(a->record_bytes, b->record_bytes);
    CHECK_EQUAL(a->scope, b->scope);
    const uint64_t *left = books_record(t->stats, a), *right = books_record(general.stats, b);
    for (size_t i = 1; i < a->record_bytes / sizeof *left; i++) { /* 0: the guard */
        if (left[i] != right[i]) {
            CHECK_FAIL("cell %zu of\n%sis %" PRIu64 " %s and %" PRIu64 " without, after %" PRIu64
                       " packets",
                       i, a->labels, left[i], name_of(t), right[i], packets_given);
        }
    }
}

/* The state that decides what the stream does with later packets.  When a batch was closed is asked
 * only while it is measured. */
static void compare_stream(const helio_rx_stream *a, const helio_rx_stream *b) {
#define SAME(field) CHECK_EQUAL(a->field, b->field)
    SAME(heard_ns);
    SAME(budget.heard_bytes);
    SAME(newest);
    SAME(told_trail);
    SAME(told_lead);
    SAME(loss);
    SAME(missed);
    SAME(is_blocked);
    SAME(rxw.trail);
    SAME(rxw.lead);
    SAME(rxw.known);
    SAME(rxw.source_trail);
    SAME(rxw.held);
    SAME(nak.outstanding);
    SAME(acks.is_on);
    SAME(acks.position);
    SAME(acks.told);
    SAME(acks.asked);
    SAME(acks.sent);
    SAME(acks.due_ns);
    SAME(delivery.full_sequence);
    SAME(delivery.first_sequence);
    SAME(delivery.is_complete);
    SAME(delivery.asked);
    if (is_measured) {
        SAME(delivery.closed_ns);
        SAME(delivery.intended_ns);
    }
    SAME(delivery.reassembly.is_open);
    SAME(delivery.has_credit_news);
#undef SAME
}

static void compare_twin(const twin *t) {
    CHECK_EQUAL(t->digest, general.digest);
    CHECK_EQUAL(helio_rx_endpoint_next_deadline_ns(t->endpoint),
                helio_rx_endpoint_next_deadline_ns(general.endpoint));
    const uint64_t used = helio_cell(&t->stats->header->objects_used);
    CHECK_EQUAL(used, helio_cell(&general.stats->header->objects_used));
    for (uint64_t i = 0; i < used && !t->endpoint->run.is_on; i++) {
        compare_object(t, &t->stats->objects[i], &general.stats->objects[i]);
    }
    const helio_rx_stream *a = t->endpoint->streams, *b = general.endpoint->streams;
    for (; a && b; a = a->next, b = b->next) {
        compare_stream(a, b);
    }
    CHECK(!a && !b);
}

static void compare(void) {
    compare_twin(&fast);
    compare_twin(&lone);
    compare_twin(&grouped);
}

/* Between two packets: a batch begins or ends. */
static void group(bool on) {
    helio_rx_endpoint *endpoint = grouped.endpoint;
    const helio_rx_run *run = &endpoint->run;
    if (on && !run->is_on) {
        helio_rx_endpoint_begin_batch(endpoint);
    } else if (!on && run->is_on) {
        runs_counted += run->topic && endpoint->last->rxw.trail - run->first_sequence > 1;
        helio_rx_endpoint_end_batch(endpoint);
        compare_twin(&grouped);
    }
}

static void compare_histograms(const twin *t) {
    const helio_rx_stream *a = t->endpoint->streams, *b = general.endpoint->streams;
    for (; a && b; a = a->next, b = b->next) {
        for (int i = 0; i < HELIO_STATS_HISTOGRAMS_MAX; i++) {
            CHECK_EQUAL(!a->object.histogram[i], !b->object.histogram[i]);
            if (a->object.histogram[i]) {
                CHECK_BYTES(a->object.histogram[i], b->object.histogram[i], sizeof(helio_hdr));
            }
        }
    }
}

/* ---- the way of a packet ---- */

/* As the caller of a receive, who has place for what its stream sends next. */
static bool take_lone(twin *t, const helio_datagram *datagram) {
    const helio_rx_stream *stream = t->endpoint->last;
    const helio_delivery_topic *topic = stream ? stream->delivery.recent : NULL;
    const uint32_t number = topic ? topic->stream : 0;
    helio_message message;
    if (t->room == 0 || !helio_rx_take_lone(t->endpoint, datagram, number, now, &message)) {
        return false;
    }
    on_messages(t, &message, 1);
    lone_taken++;
    return true;
}

static void give(const uint8_t *packet, size_t length, const helio_address *from) {
    uint8_t copy[TWINS][1500];
    const int64_t kernel_ns = is_measured && chance(500) ? now.wall_ns - 1000 : 0;
    for (int i = 0; i < TWINS; i++) {
        twin *t = all[i];
        memcpy(copy[i], packet, length);
        const helio_datagram datagram = {copy[i], length, *from, kernel_ns};
        if (t != &lone || !take_lone(t, &datagram)) {
            helio_rx_endpoint_stamp(t->endpoint, kernel_ns);
            helio_rx_endpoint_on_packet(t->endpoint, copy[i], length, from, now.wall_ns, now);
        }
        for (size_t k = 0; k < t->up.count; k++) {
            digest(t, t->up.packets[k].bytes, t->up.packets[k].length);
        }
    }
    packets_given++;
    compare();
    const helio_address receiver = {.family = 4, .ip = {10, 0, 0, 100}, .port = 50000};
    for (size_t i = 0; i < fast.up.count; i++) {
        const carried *up = &fast.up.packets[i];
        helio_tx_stream_on_packet(source, up->bytes, up->length, &receiver, now);
    }
    for (int i = 0; i < TWINS; i++) {
        all[i]->up.count = 0;
    }
}

static void poll_all(void) {
    helio_tx_stream_poll(source, now);
    for (int i = 0; i < TWINS; i++) {
        helio_rx_endpoint_poll(all[i]->endpoint, now);
    }
    compare();
}

static void pass_time(int64_t ns) {
    now.now_ns += ns;
    now.wall_ns += ns;
    poll_all();
}

static void set_sum(uint8_t *packet, size_t length) {
    memset(packet + 6, 0, 2);
    const uint16_t sum = helio_checksum_finish(helio_checksum_part(packet, length));
    memcpy(packet + 6, &sum, 2);
}

/* A number of the packet, the batch or a message becomes another. */
static void forge(carried *packet) {
    static const uint8_t offsets[] = {0,  4,  5,  8,  13, 14, 15, 16, 19, 20, 23, 24, 25, 26, 27,
                                      28, 29, 30, 31, 32, 40, 47, 48, 55, 56, 60, 64, 65, 66};
    const size_t at = offsets[helio_random_below(&dice, sizeof offsets)];
    if (at < packet->length) {
        packet->bytes[at] ^= (uint8_t)(1u << helio_random_below(&dice, 8));
    }
    if (chance(100)) {
        packet->length -= helio_random_below(&dice, packet->length);
    }
    if (packet->length >= HELIO_PGM_HEADER && chance(950)) {
        set_sum(packet->bytes, packet->length);
    }
}

static carried late[LATE_MAX];
static size_t late_count;

static void give_late(void) {
    const size_t which = helio_random_below(&dice, late_count);
    give(late[which].bytes, late[which].length, &source_address);
    late[which] = late[--late_count];
}

static void move(carried *packet, bool is_rough) {
    helio_address from = source_address;
    if (is_rough && chance(20)) {
        return; /* lost */
    }
    if (is_rough && chance(20) && late_count < LATE_MAX) {
        late[late_count++] = *packet;
        return;
    }
    if (is_rough && chance(20)) {
        give(packet->bytes, packet->length, &from); /* twice */
    }
    if (is_rough && chance(20)) {
        carried forged = *packet;
        forge(&forged);
        give(forged.bytes, forged.length, &from);
    }
    if (is_rough && chance(10)) {
        from.port++;
    }
    give(packet->bytes, packet->length, &from);
    if (late_count > 0 && (!is_rough || chance(200))) {
        give_late();
    }
}

static void send(void) {
    static const size_t sizes[] = {0, 8, 8, 20, 64, 64, 300, 1300, 3000};
    static uint8_t body[3000];
    const int topic = chance(150);
    const size_t bytes = sizes[helio_random_below(&dice, sizeof sizes / sizeof *sizes)];
    for (uint64_t left = 1 + helio_random_below(&dice, bytes < 64 ? 200 : 20); left > 0; left--) {
        body[0] = (uint8_t)left;
        if (helio_tx_stream_admit(source, topics[topic], bytes, now) != HELIO_ADMIT_GO) {
            break;
        }
        CHECK_EQUAL(helio_tx_stream_append(source, topics[topic], body, bytes, now.wall_ns, now),
                    0);
    }
    helio_tx_stream_flush(source, now);
}

/* Takes what the source has sent. */
static void take_sent(carrier *into) {
    memcpy(into->packets, down.packets, down.count * sizeof *down.packets);
    into->count = down.count;
    down.count = 0;
}

static void change_subscription(void) {
    const int which = 1 + (int)helio_random_below(&dice, SUBSCRIPTIONS - 1);
    for (int i = 0; i < TWINS; i++) {
        twin *t = all[i];
        if (t->subscriptions[which]) {
            helio_rx_endpoint_unsubscribe(t->endpoint, t->subscriptions[which], now);
            t->subscriptions[which] = NULL;
        } else {
            subscribe(t, which);
        }
    }
}

/* Of all sinks. */
static void set_room(bool is_full) {
    const size_t room = is_full ? helio_random_below(&dice, 10) : SIZE_MAX;
    for (int i = 0; i < TWINS; i++) {
        all[i]->room = room;
    }
}

static void begin(int level, uint64_t seed, bool with_acks) {
    has_acks = with_acks;
    is_measured = level == 3;
    in_arrival_order = seed % 4 == 3;
    helio_random_init(&dice, seed);
    now = (helio_moment){1000 * HELIO_SECOND, 5000 * HELIO_SECOND};
    packets_given = lone_taken = runs_counted = late_count = down.count = 0;
    for (int i = 0; i < TWINS; i++) {
        begin_twin(all[i], level, all[i] == &general);
    }
    begin_source();
}

static void end(void) {
    CHECK(books_hold(fast.stats));
    CHECK(books_hold(lone.stats));
    CHECK(books_hold(grouped.stats));
    for (int i = 0; i < TWINS; i++) {
        end_twin(all[i]);
    }
    end_source();
}

static void play(uint64_t seed) {
    static carrier sent;
    begin(seed / 2 % 2 ? 0 : 3, seed, seed % 2);
    while (packets_given < PACKETS) {
        const bool is_rough = packets_given / PHASE % 2;
        set_room(is_rough && chance(100));
        if (chance(5)) {
            change_subscription();
        }
        send();
        if (chance(300)) { /* perhaps of the other topic */
            send();
        }
        pass_time((int64_t)helio_random_below(&dice, chance(20) ? 30 * HELIO_MILLISECOND : 2000));
        take_sent(&sent);
        for (size_t i = 0; i < sent.count; i++) {
            group(chance(900));
            now.now_ns += 100;
            now.wall_ns += 100;
            if (chance(10)) {
                set_room(is_rough);
            }
            move(&sent.packets[i], is_rough);
        }
        group(false);
    }
    compare_histograms(&fast);
    compare_histograms(&lone);
    compare_histograms(&grouped);
    CHECK(lone_taken > 0);
    CHECK(runs_counted > 0);
    helio_tx_stream_close(source, now); /* the end, with packets still on their way */
    for (int i = 0; i < 100; i++) {
        pass_time(HELIO_MILLISECOND);
        take_sent(&sent);
        for (size_t k = 0; k < sent.count; k++) {
            move(&sent.packets[k], true);
        }
    }
    end();
}

static bool holds(uint64_t seed) {
    if (setjmp(check_out) != 0) {
        return false;
    }
    play(seed);
    return true;
}

/* ---- which packets take the fast path ---- */

/* The next packet of a source whose stream is in its steady state. */
static carried begin_steady(bool with_acks) {
    begin(0, 1, with_acks);
    for (int i = 0; i < 20; i++) {
        CHECK_EQUAL(helio_tx_stream_append(source, topics[0], "12345678", 8, now.wall_ns, now), 0);
        helio_tx_stream_flush(source, now);
        if (i == 0) {
            pass_time(0); /* the first heartbeat */
        }
        for (size_t k = 0; k < down.count && i < 19; k++) {
            give(down.packets[k].bytes, down.packets[k].length, &source_address);
        }
        down.count = i < 19 ? 0 : down.count;
    }
    CHECK_EQUAL(down.count, 1);
    return down.packets[0];
}

static bool takes(const carried *packet, const helio_address *from) {
    return helio_rx_fast_path(fast.endpoint, packet->bytes, packet->length, from, now.wall_ns, now);
}

static bool takes_lone(const carried *packet, const helio_address *from) {
    const helio_datagram datagram = {packet->bytes, packet->length, *from, 0};
    return take_lone(&lone, &datagram);
}

static uint64_t delivered_by(const twin *t) {
    const helio_instance_stats *counts = t->instance.record;
    return helio_cell(&counts->messages_received);
}

static uint64_t delivered(void) {
    return delivered_by(&fast);
}

static void the_next_packet_of_a_steady_stream_takes_the_fast_path(void) {
    for (int with_acks = 0; with_acks <= 1; with_acks++) {
        const carried packet = begin_steady(with_acks);
        const helio_rx_acks *acks = &fast.endpoint->streams->acks;
        const uint64_t before = delivered(), position = acks->position;
        CHECK_EQUAL(acks->is_on, with_acks);
        CHECK(takes(&packet, &source_address));
        CHECK_EQUAL(delivered(), before + 1);
        CHECK_EQUAL(acks->position, position + (uint64_t)with_acks);
        CHECK(!takes(&packet, &source_address)); /* a duplicate now */
        CHECK_EQUAL(delivered(), before + 1);
        end();
    }
}

/* `takes`: is it taken by `t`? */
static void leave_any_other_packet(twin *t, bool (*takes)(const carried *, const helio_address *)) {
    const carried good = begin_steady(false);
    const uint64_t digest_before = t->digest;
    helio_address other = source_address;
    other.port++;
    CHECK(!takes(&good, &other));
    for (size_t at = 0; at < good.length; at++) { /* damage of any byte */
        carried bad = good;
        bad.bytes[at] ^= 0x10;
        CHECK(!takes(&bad, &source_address));
    }
    for (size_t length = 0; length < good.length; length++) { /* cut off, with the right sum */
        carried bad = good;
        bad.length = length;
        if (length >= HELIO_PGM_HEADER) {
            set_sum(bad.bytes, length);
        }
        CHECK(!takes(&bad, &source_address));
    }
    static const uint8_t heads[] = {0,  1,  4,  5,  8,  13, 14, 15, 16, 19, 20, /* PGM */
                                    24, 25, 26, 27, 28, 29, 30, 31, 32, 40, 47, 64, 65};
    for (size_t i = 0; i < sizeof heads; i++) { /* other headers, with the right sum */
        carried bad = good;
        bad.bytes[heads[i]] ^= 0x80;
        set_sum(bad.bytes, bad.length);
        CHECK(!takes(&bad, &source_address));
    }
    CHECK_EQUAL(t->digest, digest_before);
    compare(); /* no statistic has changed either */
    CHECK(takes(&good, &source_address));
    end();
}

static void any_other_packet_is_left_to_the_general_path_untouched(void) {
    leave_any_other_packet(&fast, takes);
    leave_any_other_packet(&lone, takes_lone);
}

static void a_lone_message_is_taken_for_its_stream_and_where_it_can_be_lent(void) {
    for (int with_acks = 0; with_acks <= 1; with_acks++) {
        const carried packet = begin_steady(with_acks);
        const helio_datagram datagram = {packet.bytes, packet.length, source_address, 0};
        const uint64_t before = delivered_by(&lone);
        helio_message message;
        CHECK(!helio_rx_take_lone(lone.endpoint, &datagram, 1, now, &message)); /* another's */
        lone.endpoint->shared.config.loan = NULL;
        CHECK(!helio_rx_take_lone(lone.endpoint, &datagram, 0, now, &message));
        lone.endpoint->shared.config.loan = &lone.loan;
        CHECK_EQUAL(delivered_by(&lone), before);
        CHECK(helio_rx_take_lone(lone.endpoint, &datagram, 0, now, &message));
        CHECK_EQUAL(delivered_by(&lone), before + 1);
        CHECK_EQUAL(message.length, 8);
        CHECK_BYTES(message.data, "12345678", 8);
        CHECK_EQUAL(message.number, 19);
        CHECK_EQUAL(message.receive_ns, now.wall_ns);
        CHECK_EQUAL(message.stream, 0);
        CHECK_EQUAL(message.flags, 0);
        CHECK(!helio_rx_take_lone(lone.endpoint, &datagram, 0, now, &message)); /* a duplicate */
        end();
    }
}

static void a_packet_with_several_messages_is_not_lone(void) {
    begin_steady(false);
    down.count = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(helio_tx_stream_append(source, topics[0], "12345678", 8, now.wall_ns, now), 0);
    }
    helio_tx_stream_flush(source, now);
    CHECK_EQUAL(down.count, 1);
    const carried packet = down.packets[0];
    CHECK(!takes_lone(&packet, &source_address));
    end();
}

static carried next_packet(void) {
    down.count = 0;
    CHECK_EQUAL(helio_tx_stream_append(source, topics[0], "87654321", 8, now.wall_ns, now), 0);
    helio_tx_stream_flush(source, now);
    return down.packets[0];
}

/* The packet that opens a gap and the one that closes it take the general path. */
static void packets_behind_a_gap_are_held_by_the_fast_path(void) {
    const carried missing = begin_steady(false);
    const carried opening = next_packet(), behind = next_packet(), forged = next_packet();
    const helio_rxw *rxw = &fast.endpoint->streams->rxw;
    const uint64_t before = delivered();
    CHECK(!takes(&opening, &source_address));
    give(opening.bytes, opening.length, &source_address);
    CHECK(takes(&behind, &source_address));
    CHECK_EQUAL(rxw->held, 2);
    CHECK(!takes(&behind, &source_address)); /* a duplicate now */
    helio_address other = source_address;
    other.port++;
    CHECK(!takes(&forged, &other));
    CHECK_EQUAL(delivered(), before);
    CHECK(!takes(&missing, &source_address));
    helio_rx_endpoint_on_packet(fast.endpoint, missing.bytes, missing.length, &source_address,
                                now.wall_ns, now);
    CHECK_EQUAL(delivered(), before + 3);
    CHECK_EQUAL(rxw->held, 0);
    end();
}

int main(int argc, char **argv) {
    RUN(the_next_packet_of_a_steady_stream_takes_the_fast_path);
    RUN(any_other_packet_is_left_to_the_general_path_untouched);
    RUN(a_lone_message_is_taken_for_its_stream_and_where_it_can_be_lent);
    RUN(a_packet_with_several_messages_is_not_lone);
    RUN(packets_behind_a_gap_are_held_by_the_fast_path);
    const seeds seeds = seeds_from(argc, argv, 10, 2);
    return check_result() || !seeds_hold("sim_fast_path", seeds, holds);
}
