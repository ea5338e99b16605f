#include "runtime/transmitter.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/math.h"
#include "base/memory.h"
#include "runtime/loop.h"
#include "runtime/opening.h"
#include "runtime/transmitter_parts.h"

/* ---- life ---- */

typedef struct transmitter_opening {
    helio_opening common;
    helio_transmitter *transmitter;
} transmitter_opening;

/* Of its ring; a kept queue keeps account of itself. */
static uint64_t memory_of(const helio_transmitter *transmitter) {
    return transmitter->queue.ring.memory ? transmitter->queue.ring.capacity : 0;
}

static bool attach(helio_instance *instance, helio_command *command, helio_clock clock) {
    transmitter_opening *opening = command->context;
    helio_transmitter *transmitter = opening->transmitter;
    helio_tx_lane *lane = NULL;
    const uint64_t memory = memory_of(transmitter);
    command->result = helio_limit_take(instance, "a submit queue", memory);
    if (command->result < 0) {
        return true;
    }
    command->result = helio_tx_lane_acquire(instance, &opening->common.endpoint,
                                            &opening->common.options, clock, &lane);
    if (command->result < 0) {
        helio_limit_give(instance, memory);
        return true;
    }
    command->result =
        helio_tx_stream_add_topic(lane->stream, opening->common.topic, clock, &transmitter->topic);
    if (command->result < 0) {
        helio_limit_give(instance, memory);
        if (!lane->transmitters) {
            helio_tx_lane_destroy(lane, clock);
        }
        return true;
    }
    transmitter->lane = lane;
    if (transmitter->queue.kept) {
        helio_stats_apply(helio_tx_topic_object(transmitter->topic), HELIO_HAS_COUNTED);
    }
    const size_t longest = helio_tx_stream_longest(lane->stream);
    if (longest < transmitter->max_message_bytes) {
        transmitter->max_message_bytes = longest;
    }
    transmitter->next = lane->transmitters;
    lane->transmitters = transmitter;
    helio_tsi_format(helio_tx_stream_tsi(lane->stream), transmitter->stream);
    helio_tx_lane_flush(lane, clock);
    return true;
}

int helio_transmitter_create(helio_instance *instance, const char *endpoint, const char *topic,
                             const char *options, helio_transmitter **out) {
    transmitter_opening opening;
    int error = helio_opening_init(&opening.common, endpoint, topic, options, HELIO_ON_TRANSMITTER);
    if (error) {
        return error;
    }
    helio_transmitter *transmitter = helio_allocate(sizeof *transmitter);
    if (!transmitter) {
        error = helio_fail(HELIO_ERR_NOMEM, "no memory for a transmitter");
    } else {
        transmitter->instance = instance;
        error = helio_transmitter_open_queue(transmitter, &opening.common.options.transmitter);
    }
    if (!error) {
        transmitter->is_raw = opening.common.options.stream.payload == HELIO_PAYLOAD_RAW;
        helio_acked_init(&transmitter->acked);
        transmitter->max_message_bytes = opening.common.options.stream.max_message_bytes;
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

/* What is left in the queue of a transmitter that goes has found no room in the channel, or no
 * credit: whoever makes it wait has stopped, and is waited for as long as for one that is silent.
 * Then it is sent all the same, room or not, but never without credit. */
static void give_up_room(helio_transmitter *transmitter, helio_clock clock) {
    helio_tx_lane *lane = transmitter->lane;
    const helio_transmitter_options *options = &lane->base.options.transmitter;
    const uint64_t used = helio_submit_queue_bytes(&transmitter->queue);
    if (!transmitter->jammed_ns || used < transmitter->jammed_bytes) {
        transmitter->jammed_ns = clock.now_ns;
        transmitter->jammed_bytes = used;
    }
    const int64_t patience_ns =
        helio_max(options->linger_ns,
                  helio_max(options->stream.connection_timeout_ns, options->connect_wait_ns));
    if (clock.now_ns - transmitter->jammed_ns < patience_ns) {
        return;
    }
    if (helio_tx_lane_credit(lane, transmitter, clock) == 0) {
        helio_transmitter_drop_rest(transmitter);
    } else {
        lane->is_heedless = true;
    }
}

/* The same for receivers - acknowledgements, the send limit - for the linger time; then it is sent
 * without.  The rate alone is no reason: what waits for it leaves in time. */
static void give_up_acks(helio_transmitter *transmitter, helio_clock clock) {
    helio_tx_lane *lane = transmitter->lane;
    helio_tx_pace *pace = helio_tx_stream_pace(lane->stream);
    if (!lane->stuck && pace->wait != HELIO_TX_WAIT_LIMIT) {
        return;
    }
    if (!transmitter->stuck_ns) {
        transmitter->stuck_ns = clock.now_ns;
    }
    if (clock.now_ns - transmitter->stuck_ns >= lane->base.options.transmitter.linger_ns) {
        helio_tx_stream_release(lane->stream, clock);
        helio_tx_pace_set_send_limit(pace, UINT64_MAX);
    }
}

bool helio_transmitter_detach(helio_transmitter *transmitter, helio_clock clock) {
    helio_tx_lane *lane = transmitter->lane;
    if (helio_submit_queue_has_messages(&transmitter->queue)) {
        give_up_acks(transmitter, clock);
        give_up_room(transmitter, clock);
        return false;
    }
    lane->is_heedless = false;
    helio_tx_lane_flush(lane, clock);
    helio_transmitter_refresh(transmitter, true, clock);
    helio_tx_lane_refresh(lane, clock);
    helio_limit_give(transmitter->instance, memory_of(transmitter));
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

uint64_t helio_transmitter_rate(const helio_transmitter *transmitter) {
    return atomic_load_explicit(&transmitter->lane->rate, memory_order_relaxed);
}

int helio_transmitter_congested(const helio_transmitter *transmitter) {
    return atomic_load_explicit(&transmitter->lane->congested, memory_order_relaxed);
}

const char *helio_transmitter_stream(const helio_transmitter *transmitter) {
    return transmitter->stream;
}

/* ---- what all ways to send have in common ---- */

bool helio_transmitter_is_fit(const helio_transmitter *transmitter, size_t length) {
    return length <= transmitter->max_message_bytes && !(transmitter->is_raw && length == 0);
}

int helio_transmitter_fail_size(const helio_transmitter *transmitter, size_t length) {
    if (length == 0) {
        return helio_fail_plain(HELIO_ERR_SIZE,
                                "with payload=raw a message must not be empty: a packet without "
                                "data makes other PGM programs fail");
    }
    return helio_fail(HELIO_ERR_SIZE, "a message of %zu bytes is longer than max_message_bytes=%zu",
                      length, transmitter->max_message_bytes);
}

bool helio_transmitter_is_refusing(const helio_transmitter *transmitter) {
    return atomic_load_explicit(&transmitter->lane->refusing, memory_order_acquire);
}

int helio_transmitter_fail_ackers(void) {
    return helio_fail_plain(HELIO_ERR_ACKERS, "fewer receivers acknowledge than option acks wants");
}

/* Mode poll: what was put into packets goes on its way. */
void helio_transmitter_finish(helio_transmitter *transmitter, bool is_new, helio_clock clock) {
    helio_instance *instance = transmitter->instance;
    transmitter->unflushed = is_new;
    helio_tx_lane_flush(transmitter->lane, clock);
    if (!instance->polling) {
        helio_loop_transmit(instance, clock);
    }
}

/* ---- send ---- */

static inline int push_all(helio_transmitter *transmitter, const helio_buffer *messages,
                           size_t count, int64_t intended_ns, bool in_turn, size_t *accepted) {
    helio_submit_queue *queue = &transmitter->queue;
    const int64_t submit_ns = helio_wall_ns();
    int error = 0;
    size_t done = 0;
    if (helio_transmitter_is_refusing(transmitter)) {
        *accepted = 0;
        return helio_transmitter_fail_ackers();
    }
    helio_submit_queue_lock(queue);
    if (in_turn && !helio_transmitter_may_push(transmitter)) {
        count = 0;
        error = helio_submit_queue_refuse(queue);
    }
    for (; done < count; done++) {
        if (!helio_transmitter_is_fit(transmitter, messages[done].length)) {
            error = helio_transmitter_fail_size(transmitter, messages[done].length);
            break;
        }
        error = helio_submit_queue_push(queue, messages[done].data, messages[done].length,
                                        submit_ns, intended_ns);
        if (error) {
            break;
        }
    }
    if (in_turn && error == HELIO_ERR_WOULD_BLOCK) {
        helio_submit_queue_close(queue);
    }
    helio_submit_queue_accept(queue, done);
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
    helio_tx_lane *lane = transmitter->lane;
    helio_tx_lane_note_refused(lane, helio_clock_read(&lane->base.instance->clock).now_ns);
    helio_count(&transmitter->instance->counts->send_would_block, 1);
    const int64_t ready_ns = helio_tx_stream_ready_ns(lane->stream);
    const int64_t wait_ns = ready_ns - helio_monotonic_ns();
    if (helio_tx_stream_is_paced(lane->stream) && ready_ns != HELIO_NEVER && wait_ns > 0) {
        return helio_fail(HELIO_ERR_WOULD_BLOCK, "rate limited; in %lld us",
                          (long long)(wait_ns + HELIO_MICROSECOND - 1) / HELIO_MICROSECOND);
    }
    if (lane->awaits_credit && helio_tx_stream_credit(lane->stream, transmitter->topic) == 0) {
        helio_tx_stream_wait_for_credit(lane->stream, transmitter->topic,
                                        helio_clock_read(&lane->base.instance->clock));
        return helio_fail_plain(HELIO_ERR_WOULD_BLOCK,
                                "receivers have granted no more credit (await_credit); poll the "
                                "instance and try again");
    }
    return helio_fail_plain(HELIO_ERR_WOULD_BLOCK,
                            "the connection takes no more now, the history waits for "
                            "acknowledgements, or others have their turn within the rate; poll "
                            "the instance and try again");
}

static int append_some(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                       int64_t intended_ns, helio_clock clock, size_t *accepted) {
    helio_tx_lane *lane = transmitter->lane;
    int error = 0;
    size_t done = 0, counted = 0;
    const size_t long_bytes = helio_lane_packet_bytes(&lane->base) / 2;
    for (; done < count; done++) {
        if (!helio_transmitter_is_fit(transmitter, messages[done].length)) {
            error = helio_transmitter_fail_size(transmitter, messages[done].length);
            break;
        }
        if (helio_transmitter_is_refusing(transmitter)) {
            error = helio_transmitter_fail_ackers();
            break;
        }
        if ((!helio_tx_lane_has_room(lane) ||
             (lane->awaits_credit &&
              helio_tx_stream_credit(lane->stream, transmitter->topic) == 0) ||
             !helio_tx_stream_has_room(lane->stream, messages[done].length, clock)) &&
            !make_room(transmitter, messages[done].length)) {
            error = fail_full(transmitter);
            break;
        }
        if (messages[done].length > long_bytes) { /* the books may be looked at while it is cut */
            helio_submit_queue_accept(&transmitter->queue, done - counted);
            counted = done;
        }
        error = helio_tx_stream_append_intended(lane->stream, transmitter->topic,
                                                messages[done].data, messages[done].length,
                                                clock.wall_ns, intended_ns, clock);
        if (error) {
            break;
        }
    }
    helio_submit_queue_accept(&transmitter->queue, done - counted);
    *accepted = done;
    return error;
}

/* With a rate: one by one, each at its own time, as a long one may have waited. */
static int append_paced(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                        int64_t intended_ns, size_t *accepted) {
    helio_tx_lane *lane = transmitter->lane;
    int error = 0;
    size_t done = 0;
    while (!error && done < count) {
        const helio_clock clock = helio_clock_read(&lane->base.instance->clock);
        const size_t length = messages[done].length;
        size_t one = 0;
        if (helio_transmitter_is_fit(transmitter, length) &&
            !helio_tx_stream_may_append(lane->stream, transmitter->topic, length, clock) &&
            !make_room(transmitter, length)) {
            error = fail_full(transmitter);
        } else {
            error = append_some(transmitter, &messages[done], 1, intended_ns, clock, &one);
        }
        done += one;
    }
    *accepted = done;
    return error;
}

static int append_all(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                      int64_t intended_ns, size_t *accepted) {
    helio_tx_lane *lane = transmitter->lane;
    const helio_clock clock = helio_clock_read(&transmitter->instance->clock);
    helio_tx_lane_make_way(lane, clock);
    const int error = helio_tx_stream_is_paced(lane->stream)
                          ? append_paced(transmitter, messages, count, intended_ns, accepted)
                          : append_some(transmitter, messages, count, intended_ns, clock, accepted);
    helio_transmitter_finish(transmitter, *accepted > 0, clock);
    return error;
}

/* intended_ns: of all of them; 0: none has one. */
static inline int submit(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                         int64_t intended_ns, size_t *accepted) {
    size_t taken = 0;
    int error = 0;
    switch (atomic_load_explicit(&transmitter->way, memory_order_relaxed)) {
    case HELIO_WAY_QUEUE:
        error = push_all(transmitter, messages, count, intended_ns, false, &taken);
        break;
    case HELIO_WAY_IN_TURN:
        error = push_all(transmitter, messages, count, intended_ns, true, &taken);
        break;
    case HELIO_WAY_KEPT:
        error = helio_transmitter_push_kept(transmitter, messages, count, intended_ns, &taken);
        break;
    case HELIO_WAY_DIRECT:
        error = append_all(transmitter, messages, count, intended_ns, &taken);
        break;
    case HELIO_WAY_DIRECT_KEPT:
        error = helio_transmitter_append_kept(transmitter, messages, count, intended_ns, &taken);
        break;
    }
    if (accepted) {
        *accepted = taken;
    }
    return error;
}

int helio_transmitter_send_many(helio_transmitter *transmitter, const helio_buffer *messages,
                                size_t count, size_t *accepted) {
    return submit(transmitter, messages, count, 0, accepted);
}

int helio_transmitter_send(helio_transmitter *transmitter, const void *data, size_t length) {
    const helio_buffer message = {data, length};
    return submit(transmitter, &message, 1, 0, NULL);
}

int helio_transmitter_send_intended(helio_transmitter *transmitter, const void *data, size_t length,
                                    int64_t intended_ns) {
    const helio_buffer message = {data, length};
    return submit(transmitter, &message, 1, intended_ns > 0 ? intended_ns : 0, NULL);
}
