/* The engine's duty cycle: receive, let the machines do what is due, drain submit queues, hand
 * packets to the network, keep the statistics' gauges and heartbeat.  Run over and over by the
 * engine's thread, or by the caller in mode `poll`. */
#ifndef HELIO_RUNTIME_LOOP_H
#define HELIO_RUNTIME_LOOP_H

#include "runtime/instance.h"

/* One cycle; returns how much was done, 0 for nothing. */
int helio_loop_once(helio_instance *instance);

static inline bool helio_loop_must_transmit(const helio_instance *instance, int64_t now_ns) {
    return instance->mode == HELIO_MODE_THREAD ||
           (instance->tx_lanes && now_ns >= instance->transmit_due_ns);
}
/* The end of a cycle in which something is due besides receiving: its sending half, and the chores.  As
 * helio_loop_end, which calls it. */
int helio_loop_look_after(helio_instance *instance, int done, helio_moment moment);
/* The end of a cycle that has received at this moment, and done so much; returns how much was done in
 * all. */
static inline int helio_loop_end(helio_instance *instance, int done, helio_moment moment) {
    if (helio_loop_must_transmit(instance, moment.now_ns) ||
        moment.now_ns >= instance->chores_due_ns) {
        return helio_loop_look_after(instance, done, moment);
    }
    instance->now_ns = moment.now_ns;
    return done;
}

/* Mode poll: whether a caller that has no need of a cycle is to run one. */
bool helio_loop_is_due(const helio_instance *instance, int64_t now_ns);

/* Mode poll: the caller has nothing else to do.  Where there is no receiver to serve, requests of the
 * other side are answered sooner than within sends. */
void helio_loop_hasten(helio_instance *instance);

/* Mode poll: the sending half of a cycle, when it is time to; a program that only sends needs no
 * other. */
void helio_loop_transmit(helio_instance *instance, helio_moment moment);

/* Sleeps until there may be work, at most until the deadline (monotonic). */
void helio_loop_sleep(helio_instance *instance, int64_t deadline_ns);

/* After a cycle without work: spins, yields or sleeps, as the option idle says. */
void helio_loop_rest(helio_instance *instance, int64_t deadline_ns);

/* Runs until the instance is stopping and nothing lingers. */
void helio_loop_run(helio_instance *instance);

#endif
