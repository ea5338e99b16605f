#include "runtime/loop.h"

#include <stdlib.h>

#include "base/math.h"
#include "flight/recording.h"
#include "runtime/control.h"
#include "runtime/rx_lane.h"
#include "runtime/tx_lane.h"

#define HEARTBEAT_NS (50 * HELIO_MILLISECOND) /* the segment promises 100 ms */
#define CHORES_NS HELIO_MILLISECOND
#define CYCLE_LIMIT_NS (50 * HELIO_MILLISECOND) /* a longer cycle is reported */
#define BUSY_CHORES_NS \
    (10 * HELIO_MILLISECOND) /* asleep with messages in some queue: its gauges must not grow old */
/* Mode poll, where messages leave within send: how often feedback and timers are looked after. */
#define TRANSMIT_NS (5 * HELIO_MICROSECOND)
/* The same of a poll that has no receiver to serve: nothing waits while it looks. */
#define TRANSMIT_ONLY_NS HELIO_MICROSECOND

static void tell_step(helio_instance *instance, helio_moment moment) {
    const int64_t by_ns = helio_clock_take_step(&instance->clock);
    if (by_ns == 0) {
        return;
    }
    const uint64_t args[4] = {(uint64_t)llabs(by_ns), by_ns > 0};
    helio_count(&instance->counts->clock_steps, 1);
    helio_stats_event(instance->stats, moment.wall_ns, HELIO_EVENT_CLOCK_STEPPED,
                      instance->object.slot, args, "the wall clock was set %s by %.6f s",
                      by_ns > 0 ? "forward" : "back", (double)llabs(by_ns) / 1e9);
}

/* Things that need not happen in every cycle. */
static void do_chores(helio_instance *instance, helio_moment moment) {
    instance->chores_due_ns = moment.now_ns + CHORES_NS;
    helio_stats_heartbeat(instance->stats, moment.wall_ns);
    tell_step(instance, moment);
    helio_control_serve(instance, moment);
    instance->stats_wait = helio_stats_tend(instance->stats, moment);
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        helio_tx_lane_refresh(lane, moment);
    }
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        helio_rx_lane_refresh(lane, moment);
    }
    helio_rx_lanes_look(instance);
    helio_limit_tend(instance, moment);
    helio_flight_serve(instance->flight, moment);
    helio_flight_tend(instance->flight, moment.wall_ns);
}

static void close_finished(helio_instance *instance, helio_moment moment) {
    for (helio_tx_lane *lane = instance->tx_lanes, *next; lane; lane = next) {
        next = lane->next;
        if (helio_tx_lane_is_finished(lane, moment)) {
            helio_tx_lane_destroy(lane, moment);
        }
    }
}

static int transmit(helio_instance *instance, helio_moment moment) {
    int done = 0;
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        done += helio_tx_lane_receive(lane, moment);
        done += helio_tx_lane_work(lane, moment);
        helio_tx_lane_tell_acks(lane);
    }
    instance->transmit_due_ns = done ? 0 : moment.now_ns + TRANSMIT_NS;
    return done;
}

int helio_loop_look_after(helio_instance *instance, int done, helio_moment moment) {
    if (done) { /* messages that listeners sent leave in this cycle */
        moment = helio_clock_read(&instance->clock);
    }
    instance->polling = true;
    if (helio_loop_must_transmit(instance, moment.now_ns)) {
        done += transmit(instance, moment);
    }
    if (moment.now_ns >= instance->chores_due_ns) {
        do_chores(instance, moment);
        close_finished(instance, moment);
    }
    instance->polling = false;
    instance->now_ns = moment.now_ns;
    return done;
}

/* ---- the duty cycle ---- */

static void tell_overrun(helio_instance *instance, int64_t took_ns, helio_moment moment) {
    helio_count(&instance->counts->cycle_overruns, 1);
    helio_stats_event(
        instance->stats, moment.wall_ns, HELIO_EVENT_CYCLE_OVERRUN, instance->object.slot,
        (const uint64_t[4]){(uint64_t)took_ns},
        "a cycle of the engine's thread took %.3f ms: a slow listener, a page fault, or "
        "the core went to somebody else",
        (double)took_ns / 1e6);
}

/* A cycle begins where the one before ended, unless the thread slept in between. */
static void count_cycle(helio_instance *instance, helio_moment moment) {
    const int64_t took_ns = moment.now_ns - instance->cycle_ns;
    if (instance->cycle_ns) {
        helio_count(&instance->counts->cycles, 1);
        helio_peak(&instance->counts->cycle_time_max, (uint64_t)took_ns);
        if (took_ns > CYCLE_LIMIT_NS) {
            tell_overrun(instance, took_ns, moment);
        }
    }
    instance->cycle_ns = moment.now_ns;
}

int helio_loop_once(helio_instance *instance) {
    const bool is_polled = instance->mode == HELIO_MODE_POLL;
    instance->polling = true;
    int done = 0;
    if (helio_commands_pending(&instance->commands)) {
        done = helio_commands_run(instance, helio_clock_read(&instance->clock));
    }
    /* One reading of the clock, after the first channel was read, serves a cycle with at most one
     * packet. */
    helio_moment moment = {0};
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        done += helio_rx_lane_work(lane, &moment);
    }
    if (!moment.now_ns) {
        moment = helio_clock_read(&instance->clock);
    }
    if (!is_polled) {
        count_cycle(instance, moment);
    }
    instance->polling = false;
    return helio_loop_end(instance, done, moment);
}

bool helio_loop_is_due(const helio_instance *instance, int64_t now_ns) {
    return helio_loop_must_transmit(instance, now_ns) || now_ns >= instance->now_ns + TRANSMIT_NS;
}

void helio_loop_hasten(helio_instance *instance) {
    if (instance->rx_lanes || helio_clock_read(&instance->clock).now_ns <
                                  instance->transmit_due_ns - (TRANSMIT_NS - TRANSMIT_ONLY_NS)) {
        return;
    }
    instance->transmit_due_ns = 0;
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        lane->read_due_ns = 0;
    }
}

void helio_loop_transmit(helio_instance *instance, helio_moment moment) {
    if (moment.now_ns < instance->transmit_due_ns) {
        return;
    }
    transmit(instance, moment);
    if (moment.now_ns >= instance->chores_due_ns) {
        do_chores(instance, moment);
    }
}

/* ---- idleness ---- */

static int64_t next_deadline(const helio_instance *instance, int64_t now_ns) {
    int64_t deadline = now_ns + (instance->stats_wait ? CHORES_NS : HEARTBEAT_NS);
    deadline = helio_min(deadline, helio_flight_due_ns(instance->flight));
    for (const helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        deadline = helio_min(deadline, helio_tx_stream_next_deadline_ns(lane->stream));
        if (helio_tx_lane_waits_for_room(lane)) {
            deadline = helio_min(deadline, now_ns + HELIO_TX_LANE_LOOK_NS);
        }
        deadline = helio_min(deadline, helio_tx_lane_ready_ns(lane));
        deadline = helio_min(deadline, helio_congestion_next_deadline_ns(&lane->congestion));
        if (helio_tx_lane_is_queueing(lane)) {
            deadline = helio_min(deadline, now_ns + BUSY_CHORES_NS);
        }
    }
    for (const helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        deadline = helio_min(deadline, helio_rx_endpoint_next_deadline_ns(lane->endpoint));
        if (helio_rx_lane_is_queueing(lane)) {
            deadline = helio_min(deadline, now_ns + BUSY_CHORES_NS);
        }
    }
    return deadline;
}

/* Work that no socket would tell of. */
static bool has_work(helio_instance *instance) {
    if (helio_commands_pending(&instance->commands)) {
        return true;
    }
    for (const helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        if (helio_tx_lane_has_work(lane)) {
            return true;
        }
    }
    for (const helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        if (helio_rx_lane_can_resume(lane) || helio_rx_lane_has_acks(lane)) {
            return true;
        }
    }
    return false;
}

static bool may_sleep(helio_instance *instance) {
    bool quiet = !has_work(instance);
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        quiet &= helio_lane_before_sleep(&lane->base);
    }
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        quiet &= helio_rx_lane_before_sleep(lane);
    }
    return quiet;
}

static void wake_lanes(helio_instance *instance) {
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        helio_lane_after_sleep(&lane->base);
    }
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        helio_lane_after_sleep(&lane->base);
    }
}

void helio_loop_sleep(helio_instance *instance, int64_t deadline_ns) {
    const int64_t now_ns = helio_monotonic_ns();
    const int64_t until_ns = helio_min(deadline_ns, next_deadline(instance, now_ns));
    if (until_ns <= now_ns) {
        return;
    }
    instance->chores_due_ns =
        0; /* before it falls asleep it has told all, and it tells all when it wakes */
    do_chores(instance, helio_clock_read(&instance->clock));
    helio_idle_prepare(&instance->idle);
    if (may_sleep(instance)) {
        helio_idle_sleep(&instance->idle, now_ns, until_ns);
    } else {
        helio_idle_cancel(&instance->idle);
    }
    wake_lanes(instance);
    instance->chores_due_ns = 0;
    instance->cycle_ns = 0;
}

void helio_loop_rest(helio_instance *instance, int64_t deadline_ns) {
    if (helio_idle_should_sleep(&instance->idle, instance->now_ns)) {
        helio_loop_sleep(instance, deadline_ns);
    }
}

void helio_loop_run(helio_instance *instance) {
    while (!instance->stopping || instance->tx_lanes) {
        if (helio_loop_once(instance)) {
            helio_idle_reset(&instance->idle);
        } else {
            helio_loop_rest(instance, HELIO_NEVER);
        }
    }
}
