#include "io/sim.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/hash.h"
#include "base/map.h"

#define WALL_NS INT64_C(1700000000000000000) /* where virtual time 0 is on the wall clock */
#define STEP_NS HELIO_MICROSECOND            /* a node is not polled twice within this */

/* A packet on its way, to one node or several. */
typedef struct helio_sim_parcel {
    uint32_t users;
    uint32_t length;
    helio_address from;
    uint8_t data[];
} parcel;

/* Something that happens: to a node, as a packet comes or, without one, as its time has come; or a
 * packet leaves a pipe; or one that has left a pipe a while ago goes on. */
typedef struct event {
    int64_t time_ns;
    uint64_t order; /* events of one moment happen in the order they were made */
    helio_sim_node *node;
    parcel *parcel;
    helio_sim_pipe *pipe; /* NULL: to a node */
    helio_sim_passage *passage;
} event;

struct helio_sim_node {
    helio_sim *sim;
    helio_address address;
    helio_address group; /* family 0: none */
    helio_address destination;
    helio_sim_handler handler;
    helio_sim_link link;
    helio_sim_pipe *uplink;
    helio_sim_pipe *downlink;
    bool is_in_burst;
    uint32_t partition;
    int64_t wake_ns; /* of the event that counts; HELIO_NEVER: none is under way */
    helio_sim_node *next;
    helio_sim_node *next_in_group;
};

struct helio_sim {
    helio_random random;
    int64_t now_ns;
    helio_sim_node *nodes;
    helio_sim_pipe *pipes;
    helio_map by_address; /* of node */
    helio_map by_group;   /* first node of the group */
    event *heap;
    size_t count;
    size_t capacity;
    uint64_t order;
    helio_sim_counts counts;
};

/* ---- events ---- */

static bool is_earlier(const event *a, const event *b) {
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void push(helio_sim *sim, event made) {
    made.order = sim->order++;
    if (sim->count == sim->capacity) {
        sim->capacity = sim->capacity ? 2 * sim->capacity : 256;
        event *heap = realloc(sim->heap, sim->capacity * sizeof *heap);
        if (!heap) {
            abort(); /* a trial without memory proves nothing */
        }
        sim->heap = heap;
    }
    size_t i = sim->count++;
    for (; i > 0 && is_earlier(&made, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        sim->heap[i] = sim->heap[(i - 1) / 2];
    }
    sim->heap[i] = made;
}

static event pop(helio_sim *sim) {
    const event first = sim->heap[0];
    const event last = sim->heap[--sim->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= sim->count) {
            break;
        }
        if (child + 1 < sim->count && is_earlier(&sim->heap[child + 1], &sim->heap[child])) {
            child++;
        }
        if (!is_earlier(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    sim->heap[i] = last;
    return first;
}

static void release(parcel *parcel) {
    if (--parcel->users == 0) {
        free(parcel);
    }
}

/* It does not happen. */
static void forget(event what) {
    if (what.parcel) {
        release(what.parcel);
    }
    if (what.passage) {
        release(what.passage->parcel);
    }
    free(what.passage);
}

/* ---- create, destroy ---- */

helio_sim *helio_sim_create(uint64_t seed) {
    helio_sim *sim = calloc(1, sizeof *sim);
    if (!sim || helio_map_init(&sim->by_address, 16) || helio_map_init(&sim->by_group, 16)) {
        helio_sim_destroy(sim);
        return NULL;
    }
    helio_random_init(&sim->random, seed);
    return sim;
}

void helio_sim_destroy(helio_sim *sim) {
    if (!sim) {
        return;
    }
    while (sim->count > 0) {
        forget(pop(sim));
    }
    while (sim->pipes) {
        helio_sim_pipe *pipe = sim->pipes;
        sim->pipes = pipe->next;
        while (pipe->count > 0) {
            release(helio_sim_pipe_pop(pipe, sim->now_ns).parcel);
        }
        helio_sim_pipe_fini(pipe);
        free(pipe);
    }
    while (sim->nodes) {
        helio_sim_node *node = sim->nodes;
        sim->nodes = node->next;
        free(node);
    }
    helio_map_fini(&sim->by_address);
    helio_map_fini(&sim->by_group);
    free(sim->heap);
    free(sim);
}

static uint64_t key_of(const helio_address *address) {
    return helio_hash_fnv1a(address, sizeof *address);
}

helio_sim_node *helio_sim_add_node(helio_sim *sim, const helio_address *address) {
    helio_sim_node *node = calloc(1, sizeof *node);
    if (!node || helio_map_put(&sim->by_address, key_of(address), node)) {
        free(node);
        return NULL;
    }
    node->sim = sim;
    node->address = *address;
    node->wake_ns = HELIO_NEVER;
    node->next = sim->nodes;
    sim->nodes = node;
    return node;
}

void helio_sim_attach(helio_sim_node *node, const helio_sim_handler *handler) {
    node->handler = *handler;
    helio_sim_wake(node);
}

void helio_sim_join(helio_sim_node *node, const helio_address *group) {
    node->group = *group;
    node->next_in_group = helio_map_get(&node->sim->by_group, key_of(group));
    if (helio_map_put(&node->sim->by_group, key_of(group), node)) {
        abort();
    }
}

void helio_sim_set_link(helio_sim_node *node, const helio_sim_link *link) {
    node->link = *link;
}

void helio_sim_set_partition(helio_sim_node *node, uint32_t partition) {
    node->partition = partition;
}

/* ---- packets ---- */

static bool happens(helio_sim *sim, double chance) {
    return chance > 0 && helio_random_unit(&sim->random) < chance;
}

static bool is_lost(helio_sim_node *node, const parcel *parcel) {
    helio_sim *sim = node->sim;
    const helio_sim_link *link = &node->link;
    if (link->burst_begin > 0) {
        node->is_in_burst =
            node->is_in_burst ? !happens(sim, link->burst_end) : happens(sim, link->burst_begin);
    }
    return (node->is_in_burst && happens(sim, link->burst_loss)) || happens(sim, link->loss) ||
           (link->drops && link->drops(link->context, parcel->data, parcel->length, sim->now_ns));
}

/* The packet is at the node's own link. */
static void arrive(helio_sim_node *node, parcel *parcel) {
    helio_sim *sim = node->sim;
    if (is_lost(node, parcel)) {
        sim->counts.lost++;
        return;
    }
    const int copies = happens(sim, node->link.duplicate) ? 2 : 1;
    sim->counts.duplicated += (uint64_t)copies - 1;
    for (int i = 0; i < copies; i++) {
        const int64_t jitter_ns =
            (int64_t)helio_random_below(&sim->random, (uint64_t)node->link.jitter_ns + 1);
        parcel->users++;
        push(sim, (event){.time_ns = sim->now_ns + node->link.delay_ns + jitter_ns,
                          .node = node,
                          .parcel = parcel});
    }
}

/* ---- pipes ---- */

/* The event of the packet that leaves next; one planned before does not count any more. */
static void plan(helio_sim *sim, helio_sim_pipe *pipe) {
    if (pipe->due_ns != HELIO_NEVER) {
        push(sim, (event){.time_ns = pipe->due_ns, .pipe = pipe});
    }
}

static void enter(helio_sim *sim, helio_sim_pipe *pipe, const helio_sim_passage *passage) {
    const int64_t due_ns = pipe->due_ns;
    if (!helio_sim_pipe_push(pipe, passage, passage->parcel->length, sim->now_ns)) {
        return;
    }
    passage->parcel->users++;
    if (pipe->due_ns != due_ns) {
        plan(sim, pipe);
    }
}

static void deliver(helio_sim_node *node, parcel *parcel) {
    if (node->downlink) {
        enter(node->sim, node->downlink, &(helio_sim_passage){.parcel = parcel, .to = node});
    } else {
        arrive(node, parcel);
    }
}

static void fan_out(helio_sim_node *from, const helio_address *destination, parcel *parcel) {
    helio_sim *sim = from->sim;
    if (helio_address_is_multicast(destination)) {
        helio_sim_node *node = helio_map_get(&sim->by_group, key_of(destination));
        for (; node; node = node->next_in_group) {
            if (node != from && node->partition == from->partition) {
                deliver(node, parcel);
            }
        }
        return;
    }
    helio_sim_node *node = helio_map_get(&sim->by_address, key_of(destination));
    if (node && node->partition == from->partition) {
        deliver(node, parcel);
    } else {
        sim->counts.nowhere++;
    }
}

static void go_on(const helio_sim_passage *passage) {
    if (passage->to) {
        arrive(passage->to, passage->parcel);
    } else {
        fan_out(passage->from, &passage->destination, passage->parcel);
    }
    release(passage->parcel);
}

static void leave(helio_sim *sim, helio_sim_pipe *pipe) {
    const helio_sim_passage passage = helio_sim_pipe_pop(pipe, sim->now_ns);
    plan(sim, pipe);
    if (happens(sim, pipe->config.loss)) {
        pipe->counts.lost_packets++;
        release(passage.parcel);
        return;
    }
    if (pipe->config.delay_ns == 0) {
        go_on(&passage);
        return;
    }
    helio_sim_passage *later = malloc(sizeof *later);
    if (!later) {
        abort();
    }
    *later = passage;
    push(sim,
         (event){.time_ns = sim->now_ns + pipe->config.delay_ns, .pipe = pipe, .passage = later});
}

helio_sim_pipe *helio_sim_add_pipe(helio_sim *sim, const helio_sim_pipe_config *config) {
    helio_sim_pipe *pipe = malloc(sizeof *pipe);
    if (!pipe) {
        return NULL;
    }
    helio_sim_pipe_init(pipe, config);
    pipe->next = sim->pipes;
    sim->pipes = pipe;
    return pipe;
}

void helio_sim_change_pipe(helio_sim *sim, helio_sim_pipe *pipe, uint64_t rate,
                           uint64_t queue_bytes) {
    const int64_t due_ns = pipe->due_ns;
    helio_sim_pipe_change(pipe, rate, queue_bytes, sim->now_ns);
    if (pipe->due_ns != due_ns) {
        plan(sim, pipe);
    }
}

void helio_sim_set_uplink(helio_sim_node *node, helio_sim_pipe *pipe) {
    node->uplink = pipe;
}

void helio_sim_set_downlink(helio_sim_node *node, helio_sim_pipe *pipe) {
    node->downlink = pipe;
}

/* ---- the outlet ---- */

static int send_parcel(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable) {
    (void)stable;
    helio_sim_node *from = context;
    helio_sim *sim = from->sim;
    const helio_address *destination = to ? to : &from->destination;
    parcel *parcel = malloc(sizeof *parcel + length);
    if (!parcel) {
        return HELIO_ERR_NOMEM;
    }
    parcel->users = 1;
    parcel->length = (uint32_t)length;
    parcel->from = from->address;
    memcpy(parcel->data, packet, length);
    sim->counts.sent++;
    if (from->uplink) {
        enter(sim, from->uplink,
              &(helio_sim_passage){.parcel = parcel, .from = from, .destination = *destination});
    } else {
        fan_out(from, destination, parcel);
    }
    release(parcel);
    return 0;
}

helio_outlet helio_sim_outlet(helio_sim_node *node, const helio_address *destination) {
    node->destination = *destination;
    return (helio_outlet){node, send_parcel};
}

/* ---- time ---- */

helio_moment helio_sim_now(const helio_sim *sim) {
    return (helio_moment){sim->now_ns, WALL_NS + sim->now_ns};
}

void helio_sim_wake(helio_sim_node *node) {
    helio_sim *sim = node->sim;
    if (!node->handler.next_deadline_ns) {
        return;
    }
    const int64_t deadline_ns = node->handler.next_deadline_ns(node->handler.context);
    if (deadline_ns == HELIO_NEVER) {
        return;
    }
    const int64_t soonest_ns = sim->now_ns + STEP_NS;
    const int64_t wake_ns = deadline_ns > soonest_ns ? deadline_ns : soonest_ns;
    if (wake_ns < node->wake_ns) {
        node->wake_ns = wake_ns;
        push(sim, (event){.time_ns = wake_ns, .node = node});
    }
}

static void happen_to_pipe(helio_sim *sim, event what) {
    if (what.passage) {
        go_on(what.passage);
        free(what.passage);
    } else if (what.time_ns == what.pipe->due_ns) {
        leave(sim, what.pipe);
    }
}

static void happen_to_node(helio_sim *sim, event what) {
    helio_sim_node *node = what.node;
    const helio_moment moment = helio_sim_now(sim);
    if (what.parcel) {
        sim->counts.arrived++;
        if (node->handler.on_packet) {
            node->handler.on_packet(node->handler.context, what.parcel->data, what.parcel->length,
                                    &what.parcel->from, moment);
        }
        release(what.parcel);
    } else {
        if (what.time_ns != node->wake_ns) {
            return; /* an earlier one took its place */
        }
        node->wake_ns = HELIO_NEVER;
        node->handler.poll(node->handler.context, moment);
    }
    helio_sim_wake(node);
}

void helio_sim_run_until(helio_sim *sim, int64_t now_ns) {
    while (sim->count > 0 && sim->heap[0].time_ns <= now_ns) {
        const event what = pop(sim);
        sim->now_ns = what.time_ns;
        if (what.pipe) {
            happen_to_pipe(sim, what);
        } else {
            happen_to_node(sim, what);
        }
    }
    sim->now_ns = now_ns;
}

/* ---- looking ---- */

const helio_sim_counts *helio_sim_counts_of(const helio_sim *sim) {
    return &sim->counts;
}
