#include "runtime/transmitter.h"

#include <stdlib.h>

#include "base/error.h"
#include "runtime/loop.h"
#include "runtime/memory.h"
#include "runtime/opening.h"

/* ---- life ---- */

typedef struct transmitter_opening {
    helio_opening common;
    helio_transmitter *transmitter;
} transmitter_opening;

static bool attach(helio_instance *instance, helio_command *command, helio_clock clock) {
    transmitter_opening *opening = command->context;
    helio_transmitter *transmitter = opening->transmitter;
    helio_tx_lane *lane = NULL;
    command->result = helio_tx_lane_acquire(instance, &opening->common.endpoint,
                                            &opening->common.options, clock, &lane);
    if (command->result < 0) {
        return true;
    }
    command->result =
        helio_tx_stream_add_topic(lane->stream, opening->common.topic, clock, &transmitter->topic);
    if (command->result < 0) {
        if (!lane->transmitters) {
            helio_tx_lane_destroy(lane, clock);
        }
        return true;
    }
    transmitter->lane = lane;
    const size_t longest = helio_tx_stream_longest(lane->stream);
    if (longest < transmitter->max_message_bytes) {
        transmitter->max_message_bytes = longest;
    }
    transmitter->next = lane->transmitters;
    lane->transmitters = transmitter;
    helio_tsi_format(helio_tx_stream_tsi(lane->stream), transmitter->stream);
    helio_count(&instance->counts->memory_used, transmitter->queue.ring.capacity);
    helio_tx_lane_flush(lane, clock);
    return true;
}

int helio_transmitter_create(helio_instance *instance, const char *endpoint, const char *topic,
                             const char *options, helio_transmitter **out) {
    transmitter_opening opening;
    int error = helio_opening_init(&opening.common, endpoint, topic, options, HELIO_ON_TRANSMITTER,
                                   HELIO_ON_RECEIVER);
    if (error) {
        return error;
    }
    helio_transmitter *transmitter = helio_allocate(sizeof *transmitter);
    if (!transmitter) {
        error = helio_fail(HELIO_ERR_NOMEM, "no memory for a transmitter");
    } else if (instance->mode == HELIO_MODE_THREAD) {
        error = helio_submit_queue_init(
            &transmitter->queue,
            (size_t)helio_options_integer(&opening.common.options, HELIO_OPTION_ID_SUBMIT_QUEUE));
    }
    if (!error) {
        transmitter->instance = instance;
        transmitter->is_raw = helio_options_integer(&opening.common.options,
                                                    HELIO_OPTION_ID_PAYLOAD) == HELIO_PAYLOAD_RAW;
        helio_acked_init(&transmitter->acked);
        transmitter->max_message_bytes = (size_t)helio_options_integer(
            &opening.common.options, HELIO_OPTION_ID_MAX_MESSAGE_BYTES);
        opening.transmitter = transmitter;
        helio_command command = {.run = attach, .context = &opening};
        error = helio_command_execute(instance, &command);
    }
    helio_opening_fini(&opening.common);
    if (error) {
        helio_transmitter_free(transmitter);
        return error;
    }
    *out = transmitter;
    return 0;
}

static int64_t longer(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* What is left in the queue of a transmitter that goes has found no room in the channel: whoever
 * makes it wait has stopped, and is waited for as long as for one that is silent. */
static void give_up_room(helio_transmitter *transmitter, helio_clock clock) {
    helio_tx_lane *lane = transmitter->lane;
    const helio_options *options = &lane->base.options;
    const uint64_t used = helio_ring_used(&transmitter->queue.ring);
    if (!transmitter->jammed_ns || used < transmitter->jammed_bytes) {
        transmitter->jammed_ns = clock.now_ns;
        transmitter->jammed_bytes = used;
    }
    const int64_t patience_ns =
        longer(helio_options_ns(options, HELIO_OPTION_ID_LINGER),
               longer(helio_options_ns(options, HELIO_OPTION_ID_CONNECTION_TIMEOUT),
                      helio_options_ns(options, HELIO_OPTION_ID_CONNECT_WAIT)));
    lane->is_heedless |= clock.now_ns - transmitter->jammed_ns >= patience_ns;
}

/* The same for acknowledgements, for the linger time; then it is sent without. */
static void give_up_acks(helio_transmitter *transmitter, helio_clock clock) {
    helio_tx_lane *lane = transmitter->lane;
    if (!lane->stuck) {
        return;
    }
    if (!transmitter->stuck_ns) {
        transmitter->stuck_ns = clock.now_ns;
    }
    if (clock.now_ns - transmitter->stuck_ns >=
        helio_options_ns(&lane->base.options, HELIO_OPTION_ID_LINGER)) {
        helio_tx_stream_release(lane->stream, clock);
    }
}

bool helio_transmitter_detach(helio_transmitter *transmitter, helio_clock clock) {
    helio_tx_lane *lane = transmitter->lane;
    if (transmitter->queue.ring.memory && helio_ring_used(&transmitter->queue.ring)) {
        give_up_acks(transmitter, clock);
        give_up_room(transmitter, clock);
        return false;
    }
    lane->is_heedless = false;
    helio_tx_lane_flush(lane, clock);
    helio_tx_lane_refresh(lane, clock);
    helio_count(&transmitter->instance->counts->memory_used,
                -(uint64_t)transmitter->queue.ring.capacity);
    helio_transmitter **at = &lane->transmitters;
    while (*at != transmitter) {
        at = &(*at)->next;
    }
    *at = transmitter->next;
    helio_tx_stream_remove_topic(lane->stream, transmitter->topic, clock);
    helio_tx_lane_flush(lane, clock);
    helio_tx_lane_release(lane, clock);
    return true;
}

static bool detach(helio_instance *instance, helio_command *command, helio_clock clock) {
    (void)instance;
    return helio_transmitter_detach(command->context, clock);
}

void helio_transmitter_free(helio_transmitter *transmitter) {
    if (transmitter) {
        helio_submit_queue_fini(&transmitter->queue);
        helio_acked_fini(&transmitter->acked);
        free(transmitter);
    }
}

/* Mode poll: nobody else would answer requests for repair. */
static void linger(helio_instance *instance, const helio_tx_lane *lane) {
    for (;;) {
        const helio_tx_lane *at = instance->tx_lanes;
        while (at && at != lane) {
            at = at->next;
        }
        if (!at || !at->closing) {
            return;
        }
        if (!helio_loop_once(instance)) {
            helio_loop_sleep(instance, HELIO_NEVER);
        }
    }
}

void helio_transmitter_destroy(helio_transmitter *transmitter) {
    if (!transmitter) {
        return;
    }
    helio_instance *instance = transmitter->instance;
    const helio_tx_lane *lane = transmitter->lane;
    helio_command command = {.run = detach, .context = transmitter};
    if (helio_command_execute(instance, &command) < 0) {
        return; /* from a listener: refused */
    }
    helio_transmitter_free(transmitter);
    if (instance->mode == HELIO_MODE_POLL) {
        linger(instance, lane);
    }
}

const char *helio_transmitter_stream(const helio_transmitter *transmitter) {
    return transmitter->stream;
}

/* ---- send ---- */

static bool is_fit(const helio_transmitter *transmitter, size_t length) {
    return length <= transmitter->max_message_bytes && !(transmitter->is_raw && length == 0);
}

static int fail_size(const helio_transmitter *transmitter, size_t length) {
    if (length == 0) {
        return helio_fail_plain(HELIO_ERR_SIZE,
                                "with payload=raw a message must not be empty: a packet without "
                                "data makes other PGM programs fail");
    }
    return helio_fail(HELIO_ERR_SIZE, "a message of %zu bytes is longer than max_message_bytes=%zu",
                      length, transmitter->max_message_bytes);
}

static bool is_refusing(const helio_transmitter *transmitter) {
    return atomic_load_explicit(&transmitter->lane->refusing, memory_order_acquire);
}

static int fail_ackers(void) {
    return helio_fail_plain(HELIO_ERR_ACKERS, "fewer receivers acknowledge than option acks wants");
}

static int push_all(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                    size_t *accepted) {
    helio_submit_queue *queue = &transmitter->queue;
    const int64_t submit_ns = helio_wall_ns();
    int error = 0;
    size_t done = 0;
    if (is_refusing(transmitter)) {
        *accepted = 0;
        return fail_ackers();
    }
    helio_submit_queue_lock(queue);
    for (; done < count; done++) {
        if (!is_fit(transmitter, messages[done].length)) {
            error = fail_size(transmitter, messages[done].length);
            break;
        }
        error =
            helio_submit_queue_push(queue, messages[done].data, messages[done].length, submit_ns);
        if (error) {
            break;
        }
    }
    helio_submit_queue_unlock(queue);
    if (done) {
        helio_idle_wake(&transmitter->instance->idle);
    }
    *accepted = done;
    return error;
}

/* Mode poll: what waits is handed over; true when the channel takes more now. */
static bool make_room(const helio_transmitter *transmitter, size_t length) {
    helio_tx_lane *lane = transmitter->lane;
    helio_tx_lane_flush(lane, helio_clock_read(&lane->base.instance->clock));
    return helio_tx_lane_takes(lane, transmitter->topic, length);
}

static int fail_full(const helio_transmitter *transmitter) {
    const helio_tx_lane *lane = transmitter->lane;
    helio_count(&transmitter->instance->counts->send_would_block, 1);
    const int64_t ready_ns = helio_tx_stream_ready_ns(lane->stream);
    const int64_t wait_ns = ready_ns - helio_monotonic_ns();
    if (helio_tx_stream_is_paced(lane->stream) && ready_ns != HELIO_NEVER && wait_ns > 0) {
        return helio_fail(HELIO_ERR_WOULD_BLOCK, "rate limited; in %lld us",
                          (long long)(wait_ns + HELIO_MICROSECOND - 1) / HELIO_MICROSECOND);
    }
    return helio_fail_plain(HELIO_ERR_WOULD_BLOCK,
                            "the connection takes no more now, the history waits for "
                            "acknowledgements, or others have their turn within the rate; poll "
                            "the instance and try again");
}

static int append_all(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                      size_t *accepted) {
    helio_instance *instance = transmitter->instance;
    helio_tx_lane *lane = transmitter->lane;
    const helio_clock clock = helio_clock_read(&instance->clock);
    helio_tx_lane_make_way(lane, clock);
    const bool has_pace = helio_tx_stream_is_paced(lane->stream);
    int error = 0;
    size_t done = 0;
    for (; done < count; done++) {
        if (!is_fit(transmitter, messages[done].length)) {
            error = fail_size(transmitter, messages[done].length);
            break;
        }
        if (is_refusing(transmitter)) {
            error = fail_ackers();
            break;
        }
        if ((!helio_tx_lane_has_room(lane) ||
             !helio_tx_stream_has_room(lane->stream, messages[done].length, clock) ||
             (has_pace && !helio_tx_stream_may_append(lane->stream, transmitter->topic,
                                                      messages[done].length, clock))) &&
            !make_room(transmitter, messages[done].length)) {
            error = fail_full(transmitter);
            break;
        }
        error = helio_tx_stream_append(lane->stream, transmitter->topic, messages[done].data,
                                       messages[done].length, clock.wall_ns, clock);
        if (error) {
            break;
        }
    }
    transmitter->unflushed = done > 0;
    helio_tx_lane_flush(lane, clock);
    if (!instance->polling) {
        helio_loop_transmit(instance, clock);
    }
    *accepted = done;
    return error;
}

int helio_transmitter_send_many(helio_transmitter *transmitter, const helio_buffer *messages,
                                size_t count, size_t *accepted) {
    size_t taken = 0;
    const bool queued = transmitter->instance->mode == HELIO_MODE_THREAD;
    const int error = queued ? push_all(transmitter, messages, count, &taken)
                             : append_all(transmitter, messages, count, &taken);
    if (accepted) {
        *accepted = taken;
    }
    return error;
}

int helio_transmitter_send(helio_transmitter *transmitter, const void *data, size_t length) {
    const helio_buffer message = {data, length};
    return helio_transmitter_send_many(transmitter, &message, 1, NULL);
}

/* ---- wait ---- */

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
                            "a listener must not wait for the engine: it is the engine");
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
    const uint64_t target = helio_ring_tail(&queue->ring);
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    while (!is_handed_over(queue, target)) {
        const uint32_t seen = helio_signal_prepare(&queue->progress);
        if (is_handed_over(queue, target)) {
            helio_signal_cancel(&queue->progress);
            break;
        }
        if (!sleep_for_progress(queue, seen, deadline_ns)) {
            return helio_fail_plain(HELIO_ERR_TIMEOUT,
                                    "not all messages were handed to the network in time");
        }
    }
    return 0;
}

/* There is no queue to be full, but the channel or the history may be. */
static int wait_polled(helio_transmitter *transmitter, size_t length, int64_t deadline_ns) {
    helio_tx_lane *lane = transmitter->lane;
    while (!helio_tx_lane_takes(lane, transmitter->topic, length)) {
        if (helio_monotonic_ns() >= deadline_ns) {
            return helio_fail_plain(HELIO_ERR_TIMEOUT,
                                    "the connection took no more in time, the history waits for "
                                    "acknowledgements, or the rate did not allow it");
        }
        if (!helio_loop_once(transmitter->instance)) {
            int64_t look_ns = helio_deadline_after(HELIO_TX_LANE_LOOK_NS);
            const int64_t ready_ns = helio_tx_stream_ready_ns(lane->stream);
            if (ready_ns > helio_monotonic_ns() && helio_tx_lane_has_room(lane)) {
                look_ns = ready_ns;
            }
            helio_loop_rest(transmitter->instance, look_ns < deadline_ns ? look_ns : deadline_ns);
        }
    }
    return 0;
}

int helio_transmitter_wait(helio_transmitter *transmitter, size_t length, int64_t timeout_ns) {
    if (!is_fit(transmitter, length)) {
        return fail_size(transmitter, length);
    }
    helio_instance *instance = transmitter->instance;
    if (helio_instance_is_engine(instance)) {
        return fail_from_listener();
    }
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    if (instance->mode == HELIO_MODE_POLL) {
        return wait_polled(transmitter, length, deadline_ns);
    }
    helio_submit_queue *queue = &transmitter->queue;
    while (!helio_submit_queue_has_room(queue, length)) {
        const uint32_t seen = helio_signal_prepare(&queue->progress);
        if (helio_submit_queue_has_room(queue, length)) {
            helio_signal_cancel(&queue->progress);
            break;
        }
        if (!sleep_for_progress(queue, seen, deadline_ns)) {
            return helio_fail_plain(HELIO_ERR_TIMEOUT, "the submit queue had no room in time");
        }
    }
    return 0;
}

/* ---- acknowledgements ---- */

static int fail_unacked(void) {
    return helio_fail_plain(HELIO_ERR_TIMEOUT,
                            "not everything was acknowledged by so many receivers in time");
}

static int wait_acked_polled(helio_transmitter *transmitter, uint32_t receivers,
                             int64_t deadline_ns) {
    const helio_tx_stream *stream = transmitter->lane->stream;
    const uint64_t sequence = helio_tx_stream_newest(transmitter->topic);
    while (sequence && helio_tx_stream_acked_by(stream, sequence) < receivers) {
        if (is_refusing(transmitter)) {
            return fail_ackers();
        }
        if (helio_monotonic_ns() >= deadline_ns) {
            return fail_unacked();
        }
        if (!helio_loop_once(transmitter->instance)) {
            helio_loop_rest(transmitter->instance, deadline_ns);
        }
    }
    return 0;
}

int helio_transmitter_wait_acked(helio_transmitter *transmitter, uint32_t receivers,
                                 int64_t timeout_ns) {
    helio_instance *instance = transmitter->instance;
    if (helio_instance_is_engine(instance)) {
        return fail_from_listener();
    }
    const int64_t deadline_ns = helio_deadline_after(timeout_ns);
    if (instance->mode == HELIO_MODE_POLL) {
        return wait_acked_polled(transmitter, receivers, deadline_ns);
    }
    helio_acked *acked = &transmitter->acked;
    helio_ack_wait wait = {
        .queued = helio_ring_tail(&transmitter->queue.ring),
        .receivers = receivers,
    };
    helio_acked_begin_wait(acked, &wait);
    helio_idle_wake(&instance->idle);
    int error = 0;
    while (!error && !helio_acked_is_done(acked, &wait)) {
        const uint32_t seen = helio_signal_prepare(&acked->progress);
        if (helio_acked_is_done(acked, &wait)) {
            helio_signal_cancel(&acked->progress);
            break;
        }
        if (is_refusing(transmitter) || helio_monotonic_ns() >= deadline_ns) {
            helio_signal_cancel(&acked->progress);
            error = is_refusing(transmitter) ? fail_ackers() : fail_unacked();
        } else {
            helio_signal_wait(&acked->progress, seen, deadline_ns);
        }
    }
    helio_acked_end_wait(acked, &wait);
    return error;
}

static bool note_all(helio_instance *instance, helio_command *command, helio_clock clock) {
    (void)instance, (void)clock;
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

static bool set_listener(helio_instance *instance, helio_command *command, helio_clock clock) {
    const ack_listener *listener = command->context;
    helio_transmitter *transmitter = listener->transmitter;
    transmitter->on_ack = listener->on_ack;
    transmitter->on_ack_context = listener->context;
    command->context = transmitter;
    return note_all(instance, command, clock);
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
        const int error = is_engine ? !note_all(transmitter->instance, &command, (helio_clock){0})
                                    : helio_command_execute(transmitter->instance, &command);
        if (error) {
            return error;
        }
    }
    return (int)helio_acked_take(acked, acks, limit < INT32_MAX ? limit : INT32_MAX);
}
