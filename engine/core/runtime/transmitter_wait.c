/* Waiting: for room, until messages are handed over, until they are acknowledged. */
#include "base/error.h"
#include "runtime/loop.h"
#include "runtime/transmitter_parts.h"

/* ---- room, and the network ---- */

/* Behind all that was submitted. */
static uint64_t position_of(helio_submit_queue *queue) {
    if (!queue->kept) {
        return helio_submit_queue_position(queue);
    }
    helio_submit_queue_lock(queue);
    const uint64_t position = helio_submit_queue_position(queue);
    helio_submit_queue_unlock(queue);
    return position;
}

static bool is_handed_over(const helio_submit_queue *queue, uint64_t target) {
    return atomic_load_explicit(&queue->handed_over, memory_order_acquire) >= target;
}

/* Sleeps until the queue has made progress; false when the deadline has passed. */
static bool sleep_for_progress(helio_submit_queue *queue, uint32_t seen, int64_t deadline_ns) {
    if (helio_monotonic_ns() >= deadline_ns) {
        helio_signal_cancel(&queue->progress);
        return false;
    }
    helio_signal_wait(&queue->progress, seen, deadline_ns);
    return true;
}

static int fail_from_listener(void) {
    return helio_fail_plain(HELIO_ERR_STATE,
                            "a listener must not wait for the engine: it runs inside the engine");
}

int helio_transmitter_flush(helio_transmitter *transmitter, int64_t timeout_ns) {
    helio_instance *instance = transmitter->instance;
    if (instance->mode == HELIO_MODE_POLL) {
        return 0; /* send hands over at once */
    }
    if (helio_instance_is_engine(instance)) {
        return fail_from_listener();
    }
    helio_submit_queue *queue = &transmitter->queue;
    const uint64_t target = position_of(queue);
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    while (!is_handed_over(queue, target)) {
        const uint32_t seen = helio_signal_prepare(&queue->progress);
        if (is_handed_over(queue, target)) {
            helio_signal_cancel(&queue->progress);
            break;
        }
        if (!sleep_for_progress(queue, seen, deadline_ns)) {
            return helio_fail_plain(HELIO_ERR_TIMEOUT,
                                    "not all messages were sent before the timeout");
        }
    }
    return 0;
}

/* There is no queue to be full, but the lane may hold messages back. */
static int wait_for_lane(helio_transmitter *transmitter, size_t length, int64_t deadline_ns) {
    helio_instance *instance = transmitter->instance;
    helio_tx_lane *lane = transmitter->lane;
    for (;;) {
        const helio_moment moment = helio_clock_read(&instance->clock);
        helio_tx_lane_look(lane);
        const helio_admission answer = helio_transmitter_admit(transmitter, length, moment);
        if (answer == HELIO_ADMIT_GO) {
            return 0;
        }
        if (helio_transmitter_must_fail(transmitter, answer) ||
            helio_monotonic_ns() >= deadline_ns) {
            return helio_transmitter_fail(transmitter, HELIO_ERR_TIMEOUT, answer);
        }
        helio_tx_lane_note_wait(lane, answer, moment.now_ns);
        if (!helio_loop_once(instance)) {
            int64_t look_ns = helio_deadline_after(HELIO_TX_LANE_LOOK_NS);
            const int64_t ready_ns = helio_tx_stream_ready_ns(lane->stream);
            if (ready_ns > helio_monotonic_ns() && answer != HELIO_ADMIT_ROOM) {
                look_ns = ready_ns;
            }
            helio_loop_rest(instance, look_ns < deadline_ns ? look_ns : deadline_ns);
        }
    }
}

static int wait_polled(helio_transmitter *transmitter, size_t length, int64_t deadline_ns) {
    helio_tx_lane *lane = transmitter->lane;
    lane->awaited_by++;
    const int error = wait_for_lane(transmitter, length, deadline_ns);
    lane->awaited_by--;
    return error;
}

/* Watches the queue when it is first of those who wait, else its news; true when it is first and
 * there is room.  Between lock and unlock, though without the lock while it sleeps. */
static bool wait_in_turn(helio_transmitter *transmitter, helio_turn *turn, size_t length,
                         int64_t deadline_ns) {
    helio_submit_queue *queue = &transmitter->queue;
    for (;;) {
        const bool is_first = queue->turns.first == turn;
        helio_signal *signal = is_first ? &queue->progress : &turn->news;
        const uint32_t seen = helio_signal_prepare(signal);
        if (is_first && helio_submit_queue_would_fit(queue, length)) {
            helio_signal_cancel(signal);
            return true;
        }
        if (helio_monotonic_ns() >= deadline_ns) {
            helio_signal_cancel(signal);
            return false;
        }
        helio_submit_queue_unlock(queue);
        helio_signal_wait(signal, seen, deadline_ns);
        helio_submit_queue_lock(queue);
    }
}

static int wait_queued(helio_transmitter *transmitter, size_t length, int64_t deadline_ns) {
    helio_submit_queue *queue = &transmitter->queue;
    bool has_room = true;
    helio_submit_queue_lock(queue);
    if (!helio_turns_is_empty(&queue->turns) || !helio_submit_queue_would_fit(queue, length)) {
        helio_turn turn;
        helio_turns_join(&queue->turns, &turn);
        has_room = wait_in_turn(transmitter, &turn, length, deadline_ns);
        helio_turns_leave(&queue->turns, &turn, has_room);
    }
    helio_submit_queue_unlock(queue);
    return has_room ? 0
                    : helio_transmitter_fail(transmitter, HELIO_ERR_TIMEOUT,
                                             helio_transmitter_cause(transmitter, length));
}

/* With overflow=refuse no call waits for room. */
static int wait_never(helio_transmitter *transmitter, size_t length) {
    helio_submit_queue *queue = &transmitter->queue;
    helio_admission answer = HELIO_ADMIT_GO;
    if (!helio_submit_queue_is_open(queue)) {
        helio_tx_lane_look(transmitter->lane);
        answer = helio_transmitter_admit(transmitter, length,
                                         helio_clock_read(&transmitter->instance->clock));
    } else if (!helio_submit_queue_has_room(queue, length)) {
        answer = helio_transmitter_cause(transmitter, length);
    }
    const int error = answer == HELIO_ADMIT_GO
                          ? 0
                          : helio_transmitter_fail(transmitter, HELIO_ERR_WOULD_BLOCK, answer);
    return error == HELIO_ERR_WOULD_BLOCK
               ? helio_fail(error, "%s; with overflow=refuse a call never waits",
                            helio_error_sentence())
               : error;
}

int helio_transmitter_wait(helio_transmitter *transmitter, size_t length, int64_t timeout_ns) {
    if (!helio_transmitter_is_fit(transmitter, length)) {
        return helio_transmitter_fail_size(transmitter, length);
    }
    helio_instance *instance = transmitter->instance;
    if (helio_instance_is_engine(instance)) {
        return fail_from_listener();
    }
    if (transmitter->drops) { /* so there always is room */
        return 0;
    }
    if (transmitter->never_waits) {
        return wait_never(transmitter, length);
    }
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    return instance->mode == HELIO_MODE_POLL ? wait_polled(transmitter, length, deadline_ns)
                                             : wait_queued(transmitter, length, deadline_ns);
}

/* ---- acknowledgements ---- */

static int fail_unacked(const helio_ack_wait *wait) {
    return helio_fail_plain(HELIO_ERR_TIMEOUT,
                            wait->is_for_quorum
                                ? "the messages were not stable before the timeout"
                                : "too few receivers acknowledged all messages before the timeout");
}

static bool is_without_ackers(const helio_transmitter *transmitter) {
    return helio_transmitter_refusal(transmitter) == HELIO_ADMIT_ACKERS;
}

static int wait_acked_polled(helio_transmitter *transmitter, helio_ack_wait *wait,
                             int64_t deadline_ns) {
    while (!helio_tx_lane_is_acked(transmitter->lane, transmitter, wait)) {
        if (is_without_ackers(transmitter)) {
            return helio_transmitter_fail(transmitter, HELIO_ERR_ACKERS, HELIO_ADMIT_ACKERS);
        }
        if (helio_monotonic_ns() >= deadline_ns) {
            return fail_unacked(wait);
        }
        if (!helio_loop_once(transmitter->instance)) {
            helio_loop_rest(transmitter->instance, deadline_ns);
        }
    }
    return 0;
}

static int wait_for(helio_transmitter *transmitter, helio_ack_wait wait, int64_t timeout_ns) {
    helio_instance *instance = transmitter->instance;
    if (helio_instance_is_engine(instance)) {
        return fail_from_listener();
    }
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    if (instance->mode == HELIO_MODE_POLL) {
        return wait_acked_polled(transmitter, &wait, deadline_ns);
    }
    helio_acked *acked = &transmitter->acked;
    wait.queued = position_of(&transmitter->queue);
    helio_acked_begin_wait(acked, &wait);
    helio_idle_wake(&instance->idle);
    int error = 0;
    while (!error && !helio_acked_is_done(acked, &wait)) {
        const uint32_t seen = helio_signal_prepare(&acked->progress);
        if (helio_acked_is_done(acked, &wait)) {
            helio_signal_cancel(&acked->progress);
            break;
        }
        if (is_without_ackers(transmitter) || helio_monotonic_ns() >= deadline_ns) {
            helio_signal_cancel(&acked->progress);
            error = is_without_ackers(transmitter)
                        ? helio_transmitter_fail(transmitter, HELIO_ERR_ACKERS, HELIO_ADMIT_ACKERS)
                        : fail_unacked(&wait);
        } else {
            helio_signal_wait(&acked->progress, seen, deadline_ns);
        }
    }
    helio_acked_end_wait(acked, &wait);
    return error;
}

int helio_transmitter_wait_acked(helio_transmitter *transmitter, uint32_t receivers,
                                 int64_t timeout_ns) {
    return wait_for(transmitter,
                    (helio_ack_wait){.number = HELIO_ALL_MESSAGES, .receivers = receivers},
                    timeout_ns);
}

int helio_transmitter_wait_stable(helio_transmitter *transmitter, uint64_t number,
                                  int64_t timeout_ns) {
    if (transmitter->lane->base.options.transmitter.acks == 0) {
        return helio_fail_plain(HELIO_ERR_STATE,
                                "no message becomes stable without the option acks");
    }
    return wait_for(transmitter, (helio_ack_wait){.number = number, .is_for_quorum = true},
                    timeout_ns);
}

static bool note_all(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance, (void)moment;
    helio_transmitter *transmitter = command->context;
    atomic_store_explicit(&transmitter->acked.is_wanted, true, memory_order_relaxed);
    helio_tx_lane_note_all(transmitter->lane, transmitter);
    return true;
}

typedef struct ack_listener {
    helio_transmitter *transmitter;
    void (*on_ack)(void *context, const helio_ack *ack);
    void *context;
} ack_listener;

static bool set_listener(helio_instance *instance, helio_command *command, helio_moment moment) {
    const ack_listener *listener = command->context;
    helio_transmitter *transmitter = listener->transmitter;
    transmitter->on_ack = listener->on_ack;
    transmitter->on_ack_context = listener->context;
    command->context = transmitter;
    return note_all(instance, command, moment);
}

int helio_transmitter_on_ack(helio_transmitter *transmitter,
                             void (*on_ack)(void *context, const helio_ack *ack), void *context) {
    ack_listener listener = {transmitter, on_ack, context};
    helio_command command = {.run = set_listener, .context = &listener};
    return helio_command_execute(transmitter->instance, &command);
}

int helio_transmitter_acks(helio_transmitter *transmitter, helio_ack *acks, size_t limit) {
    helio_acked *acked = &transmitter->acked;
    if (!atomic_load_explicit(&acked->is_wanted, memory_order_relaxed)) {
        helio_command command = {.run = note_all, .context = transmitter};
        const bool is_engine = helio_instance_is_engine(transmitter->instance);
        const int error = is_engine ? !note_all(transmitter->instance, &command, (helio_moment){0})
                                    : helio_command_execute(transmitter->instance, &command);
        if (error) {
            return error;
        }
    }
    return (int)helio_acked_take(acked, acks, limit < INT32_MAX ? limit : INT32_MAX);
}
