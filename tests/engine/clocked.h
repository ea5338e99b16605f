/* Nodes of a simulated network whose clocks are their own: set differently, running at different
 * rates, and set anew in between. */
#ifndef HELIO_TESTS_CLOCKED_H
#define HELIO_TESTS_CLOCKED_H

#include "stats/segment.h"
#include "world.h"

#define CLOCKED_WALL_NS INT64_C(1700000000000000000)

typedef struct clocked {
    world *world;
    helio_sim_handler inner;
    int64_t origin_ns; /* of the monotonic clock */
    int64_t wall_ns;   /* the wall clock is ahead of the right time by it at the beginning */
    double ppm;        /* the clocks run faster by it */
} clocked;

/* What the node's clocks say when it is `sim_ns`. */
static inline helio_moment clocked_at(const clocked *node, int64_t sim_ns) {
    const int64_t passed_ns = sim_ns + (int64_t)((double)sim_ns * node->ppm / 1e6);
    return (helio_moment){node->origin_ns + passed_ns, CLOCKED_WALL_NS + node->wall_ns + passed_ns};
}

static inline helio_moment clocked_now(const clocked *node) {
    return clocked_at(node, world_now(node->world).now_ns);
}

/* How far a's wall clock is ahead of b's. */
static inline int64_t clocked_offset(const clocked *a, const clocked *b) {
    return clocked_now(a).wall_ns - clocked_now(b).wall_ns;
}

static inline void clocked_on_packet(void *context, const void *packet, size_t length,
                                     const helio_address *from, helio_moment moment) {
    const clocked *node = context;
    node->inner.on_packet(node->inner.context, packet, length, from,
                          clocked_at(node, moment.now_ns));
}

static inline void clocked_poll(void *context, helio_moment moment) {
    const clocked *node = context;
    node->inner.poll(node->inner.context, clocked_at(node, moment.now_ns));
}

static inline int64_t clocked_deadline(void *context) {
    const clocked *node = context;
    const int64_t due_ns = node->inner.next_deadline_ns(node->inner.context);
    if (due_ns == HELIO_NEVER) {
        return HELIO_NEVER;
    }
    return due_ns <= node->origin_ns
               ? 0
               : (int64_t)((double)(due_ns - node->origin_ns) / (1 + node->ppm / 1e6)) + 1;
}

/* The node's clocks, set as they are, take the place of the simulation's. */
static inline void clocked_attach(clocked *clocks, helio_sim_node *node, helio_sim_handler inner) {
    clocks->inner = inner;
    helio_sim_attach(
        node, &(helio_sim_handler){clocks, clocked_on_packet, clocked_poll, clocked_deadline});
}

static inline void clocked_add_source(world *w, clocked *clocks, world_source *source,
                                      const helio_tx_stream_config *config) {
    helio_address address = config->address;
    address.port = config->tsi.port;
    clocks->world = w;
    *source = (world_source){.world = w, .node = helio_sim_add_node(w->sim, &address)};
    world_open_instance(w, &source->instance);
    const helio_outlet outlet = helio_sim_outlet(source->node, &config->group);
    if (helio_tx_stream_create(config, outlet, w->stats, source->instance.record,
                               clocked_now(clocks), &source->stream) != 0) {
        abort();
    }
    clocked_attach(clocks, source->node,
                   (helio_sim_handler){source, world_source_on_packet, world_source_poll,
                                       world_source_deadline});
}

static inline void clocked_add_receiver(world *w, clocked *clocks, world_receiver *receiver,
                                        const helio_rx_endpoint_config *config) {
    clocks->world = w;
    world_add_receiver(w, receiver, config);
    clocked_attach(clocks, receiver->node,
                   (helio_sim_handler){receiver, world_receiver_on_packet, world_receiver_poll,
                                       world_receiver_deadline});
}

/* How often an event was told; the text of the last one in *text. */
static inline unsigned clocked_events(const world *w, helio_event_id event, const char **text) {
    unsigned count = 0;
    for (uint64_t i = 0; i < w->stats->header->events_written; i++) {
        const helio_segment_event *told = &w->stats->events[i % w->stats->header->event_capacity];
        if (told->event == (uint32_t)event) {
            count++;
            *text = told->text;
        }
    }
    return count;
}

#endif
