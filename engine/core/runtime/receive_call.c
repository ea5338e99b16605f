/* One call of receive.  Mode thread: it takes from the queue that the engine fills.  Mode poll: it
 * runs the engine, and what arrives meanwhile goes to the caller without the queue, as far as it
 * can. */
#include "base/error.h"
#include "receive/fast_path.h"
#include "runtime/loop.h"
#include "runtime/receiver.h"
#include "runtime/sink.h"

enum {
    CREDIT_PART = 4, /* as the protocol grants (receive/delivery_credit.c) */
};

/* ---- the queue ---- */

/* The application gives back what it was given: it is done with these messages.  The engine is told
 * once a quarter of the credit is used up. */
static void give_back(helio_receiver *receiver, uint64_t count) {
    receiver->done_since += count;
    if (receiver->done_since > 0 && receiver->done_since >= receiver->credit / CREDIT_PART) {
        receiver->done_since = 0;
        atomic_store_explicit(&receiver->is_done, true, memory_order_release);
        helio_idle_wake(&receiver->instance->idle);
    }
}

static size_t take_granted(helio_receiver *receiver, helio_message *messages, size_t limit) {
    const uint64_t before =
        atomic_exchange_explicit(&receiver->given_out, UINT64_MAX, memory_order_acq_rel);
    const size_t taken = helio_receive_queue_take(&receiver->queue, messages, limit);
    atomic_store_explicit(&receiver->given_out, taken, memory_order_release);
    give_back(receiver, before);
    return taken;
}

static size_t take_queued(helio_receiver *receiver, helio_message *messages, size_t limit) {
    helio_receive_queue *queue = &receiver->queue;
    const size_t taken = receiver->credit ? take_granted(receiver, messages, limit)
                                          : helio_receive_queue_take(queue, messages, limit);
    if (helio_receive_queue_is_full(queue) && helio_receive_queue_is_low(queue)) {
        helio_idle_wake(&receiver->instance->idle);
    }
    return taken;
}

static inline size_t take(helio_receiver *receiver, helio_message *messages, size_t limit) {
    return helio_receive_queue_is_idle(&receiver->queue) ? 0
                                                         : take_queued(receiver, messages, limit);
}

static bool is_over(const helio_receiver *receiver) {
    return atomic_load_explicit(&receiver->is_over, memory_order_acquire);
}

/* Sleeps until there is something in the queue; false when the deadline passed first. */
static bool sleep_for_news(helio_receiver *receiver, int64_t deadline_ns) {
    helio_receive_queue *queue = &receiver->queue;
    while (helio_receive_queue_is_empty(queue)) {
        const uint32_t seen = helio_signal_prepare(&queue->news);
        if (!helio_receive_queue_is_empty(queue) || is_over(receiver)) {
            helio_signal_cancel(&queue->news);
            return true;
        }
        if (helio_monotonic_ns() >= deadline_ns) {
            helio_signal_cancel(&queue->news);
            return false;
        }
        helio_signal_wait(&queue->news, seen, deadline_ns);
    }
    return true;
}

static size_t receive_threaded(helio_receiver *receiver, helio_message *messages, size_t limit,
                               int64_t timeout_ns) {
    const size_t taken = take(receiver, messages, limit);
    if (taken || timeout_ns <= 0 || !sleep_for_news(receiver, helio_deadline_after(timeout_ns))) {
        return taken;
    }
    return take(receiver, messages, limit);
}

/* What the caller has no place for is copied: then fewer packets are read next time, and more when
 * there was place left. */
static void adapt_lending(helio_receiver *receiver, size_t limit) {
    helio_rx_lane *lane = receiver->lane;
    const bool was_too_much = receiver->lend_limit == 0 || lane->loan.is_short;
    if (was_too_much && lane->lend_packets > 1) {
        lane->lend_packets /= 2;
    } else if (!was_too_much && lane->read_all && 2 * receiver->lent <= limit &&
               lane->lend_packets < HELIO_CHANNEL_BATCH) {
        lane->lend_packets *= 2;
    }
}

static bool is_alone(const helio_receiver *receiver) {
    return !receiver->next && receiver->lane->receivers == receiver;
}

/* What the engine does in between hands messages straight to the caller, as far as it can. */
static void begin_lending(helio_receiver *receiver, helio_message *messages, size_t limit) {
    const bool may_lend = is_alone(receiver);
    receiver->lend_to = may_lend ? messages : NULL;
    receiver->lane->is_lending = may_lend;
    receiver->lend_limit = limit;
}

static void end_lending(helio_receiver *receiver, size_t limit, bool may_adapt) {
    helio_rx_lane *lane = receiver->lane;
    receiver->lend_to = NULL;
    lane->is_lending = false;
    lane->is_lent = lane->loan.is_out && !lane->loan.is_left;
    if (receiver->lent && may_adapt) {
        adapt_lending(receiver, limit);
    }
}

/* One cycle.  Messages that had to be queued come next time, or now when there were no others. */
static size_t cycle(helio_receiver *receiver, helio_message *messages, size_t limit, int *done) {
    const bool had_rest = receiver->lane->loan.is_short;
    if (receiver->lane->is_lent) { /* to another one's caller */
        helio_rx_lane_leave_loan(receiver->lane);
    }
    begin_lending(receiver, messages, limit);
    *done = helio_loop_once(receiver->instance);
    end_lending(receiver, limit, !had_rest);
    return receiver->lent ? receiver->lent : take(receiver, messages, limit);
}

/* ---- a cycle with one packet or none ---- */

/* The engine receives with nothing else, and a cycle has nothing to look for but packets and what
 * the clock makes due. */
static bool is_only_one(const helio_receiver *receiver) {
    const helio_rx_lane *lane = receiver->lane;
    const helio_instance *instance = receiver->instance;
    return instance->rx_lanes == lane && !lane->next && is_alone(receiver) &&
           lane->quiet_until_ns > 0 && !lane->loan.is_short &&
           !helio_commands_pending(&instance->commands);
}

/* True: the packet that was read has the next message and nothing else, and the caller has it. 
 * False: the packet goes the way of all others. */
static inline bool take_lone(helio_receiver *receiver, helio_message *to, helio_moment moment) {
    helio_met_stream *met = receiver->met.last;
    if (!met || !helio_rx_take_lone(receiver->lane->endpoint, receiver->instance->datagrams,
                                    met->number, moment, to)) {
        return false;
    }
    helio_receiver_count_lent(receiver, met, to, 1);
    return true;
}

/* The lane takes what was read, and does what is due. */
__attribute__((noinline)) static int serve(helio_receiver *receiver, helio_message *messages,
                                           size_t limit, size_t count, helio_moment *moment) {
    receiver->instance->polling = true;
    begin_lending(receiver, messages, limit);
    const int done = helio_rx_lane_serve(receiver->lane, count, moment);
    end_lending(receiver, limit, count > 0);
    receiver->instance->polling = false;
    return done;
}

/* As cycle, of a receiver that is the only one.  A lone message goes from the channel to the caller
 * without the loop, the lane and the sink between them, which would ask what is known here. */
static size_t cycle_alone(helio_receiver *receiver, helio_message *messages, size_t limit,
                          int *done) {
    helio_instance *instance = receiver->instance;
    helio_rx_lane *lane = receiver->lane;
    const size_t count = helio_rx_lane_read(lane, lane->lend_packets);
    helio_moment moment = helio_clock_read(&instance->clock);
    size_t left = count;
    *done = 0;
    if (count == 1 && take_lone(receiver, messages, moment)) {
        *done = 1;
        left = 0;
        lane->quiet_until_ns = helio_rx_endpoint_next_deadline_ns(lane->endpoint);
        if (lane->read_all) {
            receiver->lend_limit = limit;
            adapt_lending(receiver, limit);
        }
    }
    if (left || lane->is_queued || moment.now_ns >= lane->quiet_until_ns) {
        *done += serve(receiver, messages, limit, left, &moment);
    }
    *done = helio_loop_end(instance, *done, moment);
    return receiver->lent || !*done ? receiver->lent : take(receiver, messages, limit);
}

static size_t run(helio_receiver *receiver, helio_message *messages, size_t limit, int *done) {
    return limit > 0 && is_only_one(receiver) ? cycle_alone(receiver, messages, limit, done)
                                              : cycle(receiver, messages, limit, done);
}

static size_t receive_polled(helio_receiver *receiver, helio_message *messages, size_t limit,
                             int64_t timeout_ns) {
    helio_instance *instance = receiver->instance;
    int done = 0;
    const size_t lent = receiver->lent;
    helio_receiver_take_back(receiver);
    if (lent && receiver->credit) {
        give_back(receiver, lent);
    }
    size_t taken = take(receiver, messages, limit);
    if (taken) {
        if (helio_loop_is_due(instance, helio_clock_read(&instance->clock).now_ns)) {
            helio_loop_once(
                instance); /* a queue that never runs empty must not keep the engine waiting */
        }
        return taken;
    }
    if (timeout_ns <= 0) {
        return run(receiver, messages, limit, &done);
    }
    helio_idle_reset(&instance->idle);
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    for (;;) {
        taken = run(receiver, messages, limit, &done);
        if (taken || is_over(receiver) || instance->now_ns >= deadline_ns) {
            return taken;
        }
        if (done) {
            helio_idle_reset(&instance->idle);
        } else {
            helio_loop_rest(instance, deadline_ns);
        }
    }
}

int helio_receiver_receive(helio_receiver *receiver, helio_message *messages, size_t limit,
                           int64_t timeout_ns) {
    helio_instance *instance = receiver->instance;
    if (receiver->has_listener) {
        return helio_fail_plain(HELIO_ERR_STATE,
                                "this receiver has a listener; its messages go there");
    }
    if (helio_instance_is_engine(instance)) {
        return helio_fail_plain(HELIO_ERR_STATE,
                                "a listener must not receive: it runs inside the engine");
    }
    if (limit > INT32_MAX) {
        limit = INT32_MAX;
    }
    atomic_store_explicit(&receiver->receives, helio_cell(&receiver->receives) + 1,
                          memory_order_release);
    const bool was_over = is_over(receiver); /* then all of it is in the queue */
    const size_t taken = instance->mode == HELIO_MODE_THREAD
                             ? receive_threaded(receiver, messages, limit, timeout_ns)
                             : receive_polled(receiver, messages, limit, timeout_ns);
    return taken == 0 && limit > 0 && was_over ? HELIO_ERR_CLOSED : (int)taken;
}
