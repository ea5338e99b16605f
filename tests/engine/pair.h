/* A source and a receiver on one simulated network, and what the receiver was told. */
#ifndef HELIO_TESTS_PAIR_H
#define HELIO_TESTS_PAIR_H

#include <stdbool.h>

#include "check.h"
#include "stats/segment.h"
#include "wire/pgm.h"
#include "world.h"

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

/* What a receiver was told. */
typedef struct inbox {
    uint64_t messages;
    uint64_t lost;
    uint64_t next; /* number after the last message or loss */
    uint64_t recovered;
    uint64_t room;
    uint32_t streams, ended;
    bool is_forged; /* the numbers are a forger's: not looked at */
    helio_receiver_stats *stats;
} inbox;

static inline void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                             helio_stats_object *object) {
    inbox *in = context;
    (void)tsi;
    CHECK_EQUAL(stream, in->streams);
    in->streams++;
    in->next = 0;
    in->stats = object->record;
}

static inline void on_end(void *context, uint32_t stream) {
    (void)stream;
    ((inbox *)context)->ended++;
}

static inline size_t on_messages(void *context, const helio_message *messages, size_t count) {
    inbox *in = context;
    const size_t taken = count < in->room ? count : (size_t)in->room;
    for (size_t i = 0; i < taken; i++) {
        CHECK(in->next == 0 || in->is_forged || messages[i].number == in->next);
        in->next = messages[i].number + 1;
        in->recovered += messages[i].flags & HELIO_MESSAGE_RECOVERED;
    }
    in->messages += taken;
    in->room -= taken;
    return taken;
}

static inline void on_loss(void *context, const helio_loss *loss) {
    inbox *in = context;
    CHECK(in->next == 0 || in->is_forged || in->next == loss->first);
    in->next = loss->first + loss->count;
    in->lost += loss->count;
}

static world w;
static world_source source;
static world_receiver receiver;
static helio_tx_topic *topic;
static inbox in;

static inline void subscribe(world_receiver *to, inbox *box) {
    *box = (inbox){.room = UINT64_MAX};
    const helio_sink sink = {box, on_stream, on_end, on_messages, .on_loss = on_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(helio_rx_endpoint_subscribe(to->endpoint, "t", &sink, world_now(&w), &subscription),
                0);
}

static inline void begin_receiver(helio_rx_endpoint_config config) {
    world_init(&w, 1, 1);
    world_add_receiver(&w, &receiver, &config);
    subscribe(&receiver, &in);
}

static inline void begin_source(helio_tx_stream_config config) {
    world_add_source(&w, &source, &config);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
}

static inline void begin(void) {
    begin_receiver(world_receiver_config(100));
    begin_source(world_source_config(1));
    world_run(&w, 100 * US);
}

static inline void end(void) {
    world_end_receiver(&receiver);
    world_end_source(&source);
    world_fini(&w);
}

/* Sends `count` messages, each in a packet of its own. */
static inline void send(int count) {
    for (int i = 0; i < count; i++) {
        helio_tx_stream_append(source.stream, topic, "hello", 5, world_now(&w).wall_ns,
                               world_now(&w));
        helio_tx_stream_flush(source.stream, world_now(&w));
        helio_sim_wake(source.node);
        world_run(&w, 10 * US);
    }
}

static inline helio_instance_stats *counts(void) {
    return world_counts(&receiver.instance);
}

static inline helio_tx_stream_stats *source_counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

/* A cell, given by its offset, summed over the streams received. */
static inline uint64_t rx_streams_sum(size_t cell) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < helio_cell(&w.stats->header->objects_used); i++) {
        const helio_segment_object *object = &w.stats->objects[i];
        if (object->scope == HELIO_SCOPE_RX_STREAM && object->state == HELIO_OBJECT_LIVE) {
            sum += helio_cell((_Atomic uint64_t *)(w.stats->memory + object->record_offset + cell));
        }
    }
    return sum;
}
#define RX_STREAMS_SUM(cell) rx_streams_sum(offsetof(helio_rx_stream_stats, cell))

/* Packets of these types are dropped, the first `drop_count` of them. */
static uint32_t drop_types;
static int drop_count;

static inline bool drops(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)length, (void)now_ns;
    const uint8_t type = ((const uint8_t *)packet)[4];
    return (drop_types >> type & 1) && drop_count-- > 0;
}

static inline void drop(helio_sim_node *node, uint32_t types, int count) {
    drop_types = types;
    drop_count = count;
    helio_sim_set_link(node, &(helio_sim_link){.drops = drops});
}

enum {
    SPM = 1 << HELIO_PGM_TYPE_SPM,
    ODATA = 1 << HELIO_PGM_TYPE_ODATA,
    RDATA = 1 << HELIO_PGM_TYPE_RDATA,
    NAK = 1 << HELIO_PGM_TYPE_NAK,
    NCF = 1 << HELIO_PGM_TYPE_NCF,
};

#endif
