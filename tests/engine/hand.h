/* A source and a receiver whose packets are carried by hand, so that a wait can be put wherever it
 * is to be; every clock is an argument and every value exact.  And what their histograms count. */
#ifndef HELIO_TESTS_HAND_H
#define HELIO_TESTS_HAND_H

#include "check.h"
#include "counted.h"
#include "world.h"

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

enum { PACKETS_MAX = 64, WAY_NS = 10000, WAIT_NS = 5000000 };

typedef struct carried {
    uint8_t bytes[1500];
    size_t length;
} carried;

typedef struct mail {
    carried packets[PACKETS_MAX];
    size_t count;
} mail;

static helio_stats *stats;
static helio_stats_object instance;
static mail down, up; /* from the source, and to it */
static helio_tx_stream *source;
static helio_rx_endpoint *receiver;
static helio_tx_topic *topic;
static helio_stats_object *received; /* scope receiver */
static helio_moment now;
static uint64_t messages;
static uint64_t room; /* of the application */
static int64_t measured_ns;

static inline int post(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable) {
    mail *box = context;
    (void)to, (void)stable;
    CHECK(box->count < PACKETS_MAX && length <= sizeof box->packets[0].bytes);
    memcpy(box->packets[box->count].bytes, packet, length);
    box->packets[box->count++].length = length;
    return 0;
}

static inline void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                             helio_stats_object *object) {
    (void)context, (void)stream, (void)tsi;
    received = object;
}

static inline size_t on_messages(void *context, const helio_message *got, size_t count) {
    (void)context, (void)got;
    const size_t taken = count < room ? count : (size_t)room;
    messages += taken;
    room -= taken;
    return taken;
}

static inline void pass(int64_t ns) {
    now.now_ns += ns;
    now.wall_ns += ns;
}

/* Hands one packet to the receiver, which the kernel took in `kernel_ns` ago; 0: it does not
 * say. */
static inline void arrive(const carried *packet, int64_t kernel_ns) {
    const helio_address from = world_host(1, 40001);
    helio_rx_endpoint_stamp(receiver, kernel_ns ? now.wall_ns - kernel_ns : 0);
    helio_rx_endpoint_on_packet(receiver, packet->bytes, packet->length, &from, now.wall_ns, now);
}

static inline void deliver_all(int64_t kernel_ns) {
    for (size_t i = 0; i < down.count; i++) {
        arrive(&down.packets[i], kernel_ns);
    }
    down.count = 0;
}

static inline void append(const char *text, int64_t submitted_ago_ns) {
    helio_tx_stream_append(source, topic, text, strlen(text), now.wall_ns - submitted_ago_ns, now);
}

static inline void flush(void) {
    helio_tx_stream_flush(source, now);
}

static inline void begin_sampled(uint32_t sample) {
    const helio_stats_config config = {.name = "stages",
                                       .bytes = 16 << 20,
                                       .level = 3,
                                       .wall_ns = 1,
                                       .incarnation = 5,
                                       .sample = sample};
    now = (helio_moment){1000 * HELIO_SECOND, 5000 * HELIO_SECOND};
    down.count = up.count = 0;
    messages = 0;
    room = UINT64_MAX;
    received = NULL;
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "", 1, &instance), 0);
    const helio_rx_endpoint_config rx = world_receiver_config(100);
    CHECK_EQUAL(
        helio_rx_endpoint_create(&rx, (helio_outlet){&up, post}, stats, instance.record, &receiver),
        0);
    const helio_sink sink = {
        .on_stream = on_stream, .on_messages = on_messages, .measured_ns = &measured_ns};
    helio_subscription *subscription;
    CHECK_EQUAL(helio_rx_endpoint_subscribe(receiver, "t", &sink, now, &subscription), 0);
    const helio_tx_stream_config tx = world_source_config(1);
    CHECK_EQUAL(helio_tx_stream_create(&tx, (helio_outlet){&down, post}, stats, instance.record,
                                       now, &source),
                0);
    CHECK_EQUAL(helio_tx_stream_add_topic(source, "t", now, &topic), 0);
    flush();
    deliver_all(0);
}

static inline void begin(void) {
    begin_sampled(1);
}

static inline void end(void) {
    helio_rx_endpoint_destroy(receiver, now);
    helio_tx_stream_destroy(source, now);
    helio_stats_destroy(stats);
}

/* ---- what was counted ---- */

/* The histograms of both ends. */
typedef enum stage {
    BATCH,
    PACE,
    NETWORK,
    SOCKET,
    ORDER,
    TOTAL,
    RECOVERY,
    ORDER_RECOVERED,
    TOTAL_RECOVERED,
    STAGES
} stage;

static inline const helio_hdr *histogram_of(stage which) {
    helio_hdr *const *sent = helio_tx_topic_object(topic)->histogram;
    switch (which) {
    case BATCH:
        return sent[HELIO_TRANSMITTER_BATCH_LATENCY];
    case PACE:
        return sent[HELIO_TRANSMITTER_PACE_LATENCY];
    case NETWORK:
        return received->histogram[HELIO_RECEIVER_NETWORK_LATENCY];
    case SOCKET:
        return received->histogram[HELIO_RECEIVER_SOCKET_LATENCY];
    case ORDER:
        return received->histogram[HELIO_RECEIVER_ORDER_LATENCY];
    case TOTAL:
        return received->histogram[HELIO_RECEIVER_TOTAL_LATENCY];
    case RECOVERY:
        return received->histogram[HELIO_RECEIVER_RECOVERY_LATENCY];
    case ORDER_RECOVERED:
        return received->histogram[HELIO_RECEIVER_ORDER_LATENCY_RECOVERED];
    default:
        return received->histogram[HELIO_RECEIVER_TOTAL_LATENCY_RECOVERED];
    }
}

static inline uint64_t count_at(stage which, int64_t ns) {
    return count_between(histogram_of(which), ns, ns);
}

#endif
