/* A small world for tests: sources and receivers on a simulated network, with statistics in private
 * memory. */
#ifndef HELIO_TESTS_WORLD_H
#define HELIO_TESTS_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/math.h"
#include "io/sim.h"
#include "receive/endpoint.h"
#include "send/stream.h"
#include "stats/segment.h"
#include "stats/stats.h"

#define WORLD_GROUP "239.192.7.7:7500"

typedef struct world {
    helio_sim *sim;
    helio_stats *stats;
} world;

typedef struct world_source {
    world *world;
    helio_sim_node *node;
    helio_stats_object instance;
    helio_tx_stream *stream;
} world_source;

typedef struct world_receiver {
    world *world;
    helio_sim_node *node;
    helio_stats_object instance;
    helio_rx_endpoint *endpoint;
} world_receiver;

static inline helio_address world_address(const char *text) {
    helio_address address;
    if (helio_address_parse(text, &address) != 0) {
        abort();
    }
    return address;
}

static inline helio_address world_host(unsigned number, unsigned port) {
    char text[HELIO_ADDRESS_TEXT];
    snprintf(text, sizeof text, "10.%u.%u.%u:%u", number >> 16 & 255, number >> 8 & 255,
             number & 255, port);
    return world_address(text);
}

static inline void world_init(world *w, uint64_t seed, int level) {
    w->sim = helio_sim_create(seed);
    const helio_stats_config config = {
        .name = "sim", .bytes = 4 << 20, .level = level, .wall_ns = 1};
    if (!w->sim || helio_stats_create(&config, &w->stats) != 0) {
        abort();
    }
}

static inline void world_fini(world *w) {
    helio_sim_destroy(w->sim);
    helio_stats_destroy(w->stats);
}

static inline helio_moment world_now(const world *w) {
    return helio_sim_now(w->sim);
}

/* Lets virtual time pass. */
static inline void world_run(world *w, int64_t ns) {
    helio_sim_run_until(w->sim, world_now(w).now_ns + ns);
}

/* The record of the first live object of a scope with `label` among its labels; NULL: there is
 * none. */
static inline void *world_record(const world *w, helio_scope scope, const char *label) {
    for (uint64_t slot = 0; slot < w->stats->header->objects_used; slot++) {
        const helio_segment_object *object = &w->stats->objects[slot];
        if (object->scope == (uint32_t)scope && object->state == HELIO_OBJECT_LIVE &&
            strstr(object->labels, label)) {
            return w->stats->memory + object->record_offset;
        }
    }
    return NULL;
}

static inline void world_open_instance(world *w, helio_stats_object *object) {
    if (helio_stats_open_object(w->stats, HELIO_SCOPE_INSTANCE, "instance=sim\n", 1, object) != 0) {
        abort();
    }
}

/* ---- sources ---- */

static inline helio_tx_stream_config world_source_config(unsigned number) {
    return (helio_tx_stream_config){
        .instance = "source",
        .endpoint = "rmm://" WORLD_GROUP,
        .tsi = {{0xA1, 0xB2, 0xC3, 0xD4, 0xE5, (uint8_t)number}, (uint16_t)(40000 + number)},
        .destination_port = 7500,
        .address = world_host(number, 0),
        .group = world_address(WORLD_GROUP),
        .max_packet_bytes = 1472,
        .window_packets = 1024,
        .max_message_bytes = 1 << 20,
        .has_checksums = true,
        .linger_ns = HELIO_SECOND,
        .heartbeat_min_ns = 500 * HELIO_MICROSECOND,
        .heartbeat_max_ns = HELIO_SECOND,
        .ambient_interval_ns = 500 * HELIO_MILLISECOND,
        .announce_interval_ns = HELIO_SECOND,
        .repair_linger_ns = 100 * HELIO_MICROSECOND,
        .repair_budget = 2,
    };
}

static inline void world_source_on_packet(void *context, const void *packet, size_t length,
                                          const helio_address *from, helio_moment moment) {
    world_source *source = context;
    if (source->stream) {
        helio_tx_stream_on_packet(source->stream, packet, length, from, moment);
    }
}

static inline void world_source_poll(void *context, helio_moment moment) {
    world_source *source = context;
    if (source->stream) {
        helio_tx_stream_poll(source->stream, moment);
    }
}

static inline int64_t world_source_deadline(void *context) {
    world_source *source = context;
    return source->stream ? helio_tx_stream_next_deadline_ns(source->stream) : HELIO_NEVER;
}

/* Of a source whose application has something to send whenever it may. */
static inline int64_t world_eager_deadline(void *context) {
    const helio_tx_stream *stream = ((world_source *)context)->stream;
    return helio_min(helio_tx_stream_next_deadline_ns(stream), helio_tx_stream_ready_ns(stream));
}

static inline void world_add_source(world *w, world_source *source,
                                    const helio_tx_stream_config *config) {
    helio_address address = config->address;
    address.port = config->tsi.port;
    *source = (world_source){.world = w, .node = helio_sim_add_node(w->sim, &address)};
    world_open_instance(w, &source->instance);
    const helio_outlet outlet = helio_sim_outlet(source->node, &config->group);
    if (helio_tx_stream_create(config, outlet, w->stats, source->instance.record, world_now(w),
                               &source->stream) != 0) {
        abort();
    }
    helio_sim_attach(source->node, &(helio_sim_handler){source, world_source_on_packet,
                                                        world_source_poll, world_source_deadline});
}

static inline void world_end_source(world_source *source) {
    helio_tx_stream_destroy(source->stream, world_now(source->world));
    source->stream = NULL;
    helio_stats_close_object(source->world->stats, &source->instance, 1);
}

/* ---- receivers ---- */

static inline helio_rx_endpoint_config world_receiver_config(unsigned number) {
    return (helio_rx_endpoint_config){
        .instance = "receiver",
        .endpoint = "rmm://" WORLD_GROUP,
        .group = world_address(WORLD_GROUP),
        .feedback_address = world_host(number, 50000),
        .max_packet_bytes = 1472,
        .window_packets = 1024,
        .max_message_bytes = 1 << 20,
        .max_streams = 8,
        .has_checksums = true,
        .reorder_packets = 2,
        .reorder_ns = 20 * HELIO_MICROSECOND,
        .nak_backoff_ns = 100 * HELIO_MICROSECOND,
        .nak_repeat_ns = 2 * HELIO_MILLISECOND,
        .nak_data_ns = 5 * HELIO_MILLISECOND,
        .nak_retries = 64,
        .nak_deadline_ns = HELIO_SECOND,
        .spmr_delay_ns = 2 * HELIO_MILLISECOND,
        .stream_expiry_ns = 10 * HELIO_SECOND,
        .seed = number,
    };
}

static inline void world_receiver_on_packet(void *context, const void *packet, size_t length,
                                            const helio_address *from, helio_moment moment) {
    world_receiver *receiver = context;
    if (receiver->endpoint) {
        helio_rx_endpoint_on_packet(receiver->endpoint, packet, length, from, moment.wall_ns,
                                    moment);
    }
}

static inline void world_receiver_poll(void *context, helio_moment moment) {
    world_receiver *receiver = context;
    if (receiver->endpoint) {
        helio_rx_endpoint_poll(receiver->endpoint, moment);
    }
}

static inline int64_t world_receiver_deadline(void *context) {
    world_receiver *receiver = context;
    return receiver->endpoint ? helio_rx_endpoint_next_deadline_ns(receiver->endpoint)
                              : HELIO_NEVER;
}

/* One that hears no group. */
static inline void world_add_deaf_receiver(world *w, world_receiver *receiver,
                                           const helio_rx_endpoint_config *config) {
    *receiver = (world_receiver){
        .world = w,
        .node = helio_sim_add_node(w->sim, &config->feedback_address),
    };
    world_open_instance(w, &receiver->instance);
    const helio_outlet outlet = helio_sim_outlet(receiver->node, &config->group);
    if (helio_rx_endpoint_create(config, outlet, w->stats, receiver->instance.record,
                                 &receiver->endpoint) != 0) {
        abort();
    }
    helio_sim_attach(receiver->node,
                     &(helio_sim_handler){receiver, world_receiver_on_packet, world_receiver_poll,
                                          world_receiver_deadline});
}

static inline void world_add_receiver(world *w, world_receiver *receiver,
                                      const helio_rx_endpoint_config *config) {
    world_add_deaf_receiver(w, receiver, config);
    helio_sim_join(receiver->node, &config->group);
}

static inline void world_end_receiver(world_receiver *receiver) {
    helio_rx_endpoint_destroy(receiver->endpoint, world_now(receiver->world));
    receiver->endpoint = NULL;
    helio_stats_close_object(receiver->world->stats, &receiver->instance, 1);
}

static inline helio_instance_stats *world_counts(const helio_stats_object *instance) {
    return instance->record;
}

#endif
