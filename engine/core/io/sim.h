/* A network in memory with a clock of its own: the same run for the same seed.
 *
 * Nodes have an address, may join groups, and stand behind a link that loses, delays, reorders and
 * doubles what comes in. Machines (a transmit stream, a receive endpoint) are attached as handlers
 * and send through outlets; they cannot tell it from a real network.  Virtual time jumps from event
 * to event, so an hour of loss takes a moment.
 *
 * Packets are there at once unless a pipe (io/sim_pipe.h) is in the way: what several nodes send
 * may pass one they share before it fans out to the group, and what comes into a node may pass one
 * of its own.  The way back has no pipe unless it is given one, and the delay of its own link. */
#ifndef HELIO_IO_SIM_H
#define HELIO_IO_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/moment.h"
#include "base/outlet.h"
#include "base/random.h"
#include "io/sim_pipe.h"

typedef struct helio_sim helio_sim;
typedef struct helio_sim_node helio_sim_node;

/* Faults of packets on their way into a node.  All zero: each arrives at once. */
typedef struct helio_sim_link {
    double loss;      /* share lost at random */
    double duplicate; /* share that comes twice */
    /* Bursts (Gilbert-Elliott): per packet the chance to fall into the bad state and out of it, and
     * the share lost there. */
    double burst_begin;
    double burst_end;
    double burst_loss;
    int64_t delay_ns;
    int64_t jitter_ns; /* uniform, on top of delay_ns: reorders */
    /* A packet to be lost for another reason, such as its type.  May be NULL. */
    bool (*drops)(void *context, const void *packet, size_t length, int64_t now_ns);
    void *context; /* of drops */
} helio_sim_link;

/* The machine attached to a node.  next_deadline_ns may be in the past (poll is called as soon as
 * possible) or HELIO_NEVER. */
typedef struct helio_sim_handler {
    void *context;
    void (*on_packet)(void *context, const void *packet, size_t length, const helio_address *from,
                      helio_moment moment);
    void (*poll)(void *context, helio_moment moment);
    int64_t (*next_deadline_ns)(void *context);
} helio_sim_handler;

typedef struct helio_sim_counts {
    uint64_t sent;    /* packets, each once whatever the number of receivers */
    uint64_t arrived; /* at nodes, doubles included */
    uint64_t lost;    /* on links */
    uint64_t duplicated;
    uint64_t nowhere; /* sent to an address without a node */
} helio_sim_counts;

/* NULL when there is no memory; release it with helio_sim_destroy, which does not touch what is
 * attached. */
helio_sim *helio_sim_create(uint64_t seed);
void helio_sim_destroy(helio_sim *sim);

/* NULL when there is no memory.  The node lives as long as the simulation. */
helio_sim_node *helio_sim_add_node(helio_sim *sim, const helio_address *address);
void helio_sim_attach(helio_sim_node *node, const helio_sim_handler *handler);
/* The node hears what is sent to `group`; one group per node. */
void helio_sim_join(helio_sim_node *node, const helio_address *group);
void helio_sim_set_link(helio_sim_node *node, const helio_sim_link *link);
/* Nodes hear only nodes of their own partition; all begin in 0. */
void helio_sim_set_partition(helio_sim_node *node, uint32_t partition);

/* NULL when there is no memory.  The pipe lives as long as the simulation. */
helio_sim_pipe *helio_sim_add_pipe(helio_sim *sim, const helio_sim_pipe_config *config);
/* Gives it another rate and queue from now on. */
void helio_sim_change_pipe(helio_sim *sim, helio_sim_pipe *pipe, uint64_t rate,
                           uint64_t queue_bytes);
/* All that the node sends goes through the pipe, once whatever the number of receivers; NULL:
 * through none. */
void helio_sim_set_uplink(helio_sim_node *node, helio_sim_pipe *pipe);
/* All that comes to the node goes through the pipe before its link; NULL: through none. */
void helio_sim_set_downlink(helio_sim_node *node, helio_sim_pipe *pipe);

/* An outlet that sends from the node; `destination` is where packets for NULL go. */
helio_outlet helio_sim_outlet(helio_sim_node *node, const helio_address *destination);

helio_moment helio_sim_now(const helio_sim *sim);
/* Runs until the virtual time now_ns. */
void helio_sim_run_until(helio_sim *sim, int64_t now_ns);
/* The node's deadline may have changed by something outside the simulation. */
void helio_sim_wake(helio_sim_node *node);

const helio_sim_counts *helio_sim_counts_of(const helio_sim *sim);

#endif
