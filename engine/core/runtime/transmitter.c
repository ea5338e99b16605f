#include "runtime/transmitter.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/math.h"
#include "base/memory.h"
#include "runtime/loop.h"
#include "runtime/opening.h"
#include "runtime/transmitter_parts.h"
#include "send/fast_path.h"

/* ---- life ---- */

typedef struct transmitter_opening {
    helio_opening common;
    helio_transmitter *transmitter;
} transmitter_opening;

/* Of its ring; a kept queue keeps account of itself. */
static uint64_t memory_of(const helio_transmitter *transmitter) {
    return transmitter->queue.ring.memory ? transmitter->queue.ring.capacity : 0;
}

static bool attach(helio_instance *instance, helio_command *command, helio_moment moment) {
    transmitter_opening *opening = command->context;
    helio_transmitter *transmitter = opening->transmitter;
    helio_tx_lane *lane = NULL;
    const uint64_t memory = memory_of(transmitter);
    command->result = helio_limit_take(instance, "a submit queue", memory);
    if (command->result < 0) {
        return true;
    }
    command->result = helio_tx_lane_acquire(instance, &opening->common.endpoint,
                                            &opening->common.options, moment, &lane);
    if (command->result < 0) {
        helio_limit_give(instance, memory);
        return true;
    }
    command->result =
        helio_tx_stream_add_topic(lane->stream, opening->common.topic, moment, &transmitter->topic);
    if (command->result < 0) {
        helio_limit_give(instance, memory);
        if (!lane->transmitters) {
            helio_tx_lane_destroy(lane, moment);
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
    helio_tx_lane_flush(lane, moment);
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
static void give_up_room(helio_transmitter *transmitter, helio_moment moment) {
    helio_tx_lane *lane = transmitter->lane;
    const helio_transmitter_options *options = &lane->base.options.transmitter;
    const uint64_t used = helio_submit_queue_bytes(&transmitter->queue);
    if (!transmitter->jammed_ns || used < transmitter->jammed_bytes) {
        transmitter->jammed_ns = moment.now_ns;
        transmitter->jammed_bytes = used;
    }
    const int64_t patience_ns =
        helio_max(options->linger_ns,
                  helio_max(options->stream.connection_timeout_ns, options->connect_wait_ns));
    if (moment.now_ns - transmitter->jammed_ns < patience_ns) {
        return;
    }
    if (helio_tx_lane_admit(lane, transmitter->topic, 0, moment) == HELIO_ADMIT_CREDIT) {
        helio_transmitter_drop_rest(transmitter);
    } else {
        lane->is_heedless = true;
    }
}

/* The same for receivers - acknowledgements, the send limit - for the linger time; then it is sent
 * without.  The rate alone is no reason: what waits for it leaves in time. */
static void give_up_acks(helio_transmitter *transmitter, helio_moment moment) {
    helio_tx_lane *lane = transmitter->lane;
    helio_tx_pace *pace = helio_tx_stream_pace(lane->stream);
    if (!helio_admission_is_of_acks(lane->held) && pace->wait != HELIO_ADMIT_WINDOW) {
        return;
    }
    if (!transmitter->stuck_ns) {
        transmitter->stuck_ns = moment.now_ns;
    }
    if (moment.now_ns - transmitter->stuck_ns >= lane->base.options.transmitter.linger_ns) {
        helio_tx_stream_release(lane->stream, moment);
        helio_tx_pace_set_send_limit(pace, UINT64_MAX);
    }
}

bool helio_transmitter_detach(helio_transmitter *transmitter, helio_moment moment) {
    helio_tx_lane *lane = transmitter->lane;
    if (helio_submit_queue_has_messages(&transmitter->queue)) {
        give_up_acks(transmitter, moment);
        give_up_room(transmitter, moment);
        return false;
    }
    lane->is_heedless = false;
    helio_tx_lane_flush(lane, moment);
    helio_transmitter_refresh(transmitter, true, moment);
    helio_tx_lane_refresh(lane, moment);
    helio_limit_give(transmitter->instance, memory_of(transmitter));
    helio_transmitter **at = &lane->transmitters;
    while (*at != transmitter) {
        at = &(*at)->next;
    }
    *at = transmitter->next;
    helio_tx_stream_remove_topic(lane->stream, transmitter->topic, moment);
    helio_tx_lane_flush(lane, moment);
    helio_tx_lane_release(lane, moment);
    return true;
}

static bool detach(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    return helio_transmitter_detach(command->context, moment);
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

helio_admission helio_transmitter_refusal(const helio_transmitter *transmitter) {
    return (helio_admission)atomic_load_explicit(&transmitter->lane->refusal, memory_order_acquire);
}

bool helio_transmitter_must_fail(const helio_transmitter *transmitter, helio_admission cause) {
    const helio_transmitter_options *options = &transmitter->lane->base.options.transmitter;
    return cause == HELIO_ADMIT_ACKERS ||
           (options->unstable_action == HELIO_UNSTABLE_ACTION_REFUSE &&
            (cause == HELIO_ADMIT_UNSTABLE_MESSAGES || cause == HELIO_ADMIT_UNSTABLE_BYTES));
}

helio_admission helio_transmitter_admit(helio_transmitter *transmitter, size_t length,
                                        helio_moment moment) {
    return transmitter->lane->is_gated &&
                   helio_transmitter_refusal(transmitter) == HELIO_ADMIT_ACKERS
               ? HELIO_ADMIT_ACKERS
               : helio_tx_lane_admit(transmitter->lane, transmitter->topic, length, moment);
}

helio_admission helio_transmitter_cause(const helio_transmitter *transmitter, size_t length) {
    const int held = atomic_load_explicit(&transmitter->lane->held_shown, memory_order_relaxed);
    const helio_admission refusal = helio_transmitter_refusal(transmitter);
    return refusal != HELIO_ADMIT_GO                                      ? refusal
           : helio_submit_queue_lacks_memory(&transmitter->queue, length) ? HELIO_ADMIT_MEMORY
           : held != HELIO_ADMIT_GO                                       ? (helio_admission)held
           : atomic_load_explicit(&transmitter->awaits_credit, memory_order_relaxed)
               ? HELIO_ADMIT_CREDIT
               : HELIO_ADMIT_QUEUE;
}

int helio_transmitter_fail(const helio_transmitter *transmitter, int error, helio_admission cause) {
    const helio_admission_words *words = &helio_admission_text[cause];
    if (helio_transmitter_must_fail(transmitter, cause)) {
        return helio_fail_plain(HELIO_ERR_ACKERS, words->refused);
    }
    if (helio_submit_queue_is_open(&transmitter->queue)) {
        return helio_fail_plain(error, words->queue_full);
    }
    const int64_t ready_ns = helio_tx_stream_ready_ns(transmitter->lane->stream);
    const int64_t wait_ns = ready_ns - helio_monotonic_ns();
    if ((cause == HELIO_ADMIT_RATE || cause == HELIO_ADMIT_INSTANCE_RATE) &&
        ready_ns != HELIO_NEVER && wait_ns > 0) {
        return helio_fail(error, "%s; try again in %lld us", words->refused,
                          (long long)(wait_ns + HELIO_MICROSECOND - 1) / HELIO_MICROSECOND);
    }
    return helio_fail_plain(error, words->refused);
}

/* ---- send ---- */

/* Between lock and unlock of the queue. */
static inline int push(helio_transmitter *transmitter, const helio_buffer *message,
                       int64_t intended_ns, helio_moment now) {
    helio_submit_queue *queue = &transmitter->queue;
    if (!helio_transmitter_is_fit(transmitter, message->length)) {
        return helio_transmitter_fail_size(transmitter, message->length);
    }
    return queue->kept ? helio_submit_queue_push_kept(queue, message->data, message->length,
                                                      now.wall_ns, intended_ns, now.now_ns)
                       : helio_submit_queue_push(queue, message->data, message->length, now.wall_ns,
                                                 intended_ns);
}

/* Mode thread: into the submit queue, which the engine empties.  intended_ns: of all of them; 0:
 * none has one. */
static int push_all(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                    int64_t intended_ns, size_t *accepted) {
    helio_submit_queue *queue = &transmitter->queue;
    const helio_moment now = {queue->kept ? helio_monotonic_ns() : 0, helio_wall_ns()};
    int error = 0;
    size_t done = 0;
    const helio_admission refusal = helio_transmitter_refusal(transmitter);
    if (refusal != HELIO_ADMIT_GO) {
        *accepted = 0;
        return helio_transmitter_fail(transmitter, HELIO_ERR_ACKERS, refusal);
    }
    helio_submit_queue_lock(queue);
    const bool may_push = helio_submit_queue_may_push(queue);
    if (!may_push && count) {
        error = helio_submit_queue_refuse(queue);
    }
    if (!error && !queue->kept && !intended_ns) {
        done = helio_submit_queue_push_ordinary(queue, messages, count,
                                                transmitter->max_message_bytes, now.wall_ns);
    }
    while (!error && done < count) {
        error = push(transmitter, &messages[done], intended_ns, now);
        done += !error;
    }
    if (error == HELIO_ERR_WOULD_BLOCK && may_push) {
        helio_submit_queue_close(queue);
    }
    helio_submit_queue_accept(queue, done);
    helio_submit_queue_unlock(queue);
    if (done) {
        helio_idle_wake(&transmitter->instance->idle);
    }
    *accepted = done;
    if (error == HELIO_ERR_WOULD_BLOCK) {
        helio_transmitter_fail(transmitter, error,
                               helio_transmitter_cause(transmitter, messages[done].length));
    }
    return error;
}

/* Mode poll: what was put into packets goes on its way. */
static void finish(helio_transmitter *transmitter, bool is_new, helio_moment moment) {
    helio_instance *instance = transmitter->instance;
    transmitter->unflushed = is_new;
    helio_tx_lane_flush(transmitter->lane, moment);
    if (!instance->polling) {
        helio_loop_transmit(instance, moment);
    }
}

/* Mode poll: a lone message in the common state, as append_all would send it. */
static bool send_lone(helio_transmitter *transmitter, const void *data, size_t length) {
    helio_tx_lane *lane = transmitter->lane;
    helio_instance *instance = transmitter->instance;
    if (instance->mode != HELIO_MODE_POLL || helio_submit_queue_is_open(&transmitter->queue) ||
        length > transmitter->max_message_bytes || helio_acked_is_waited_for(&transmitter->acked) ||
        !helio_tx_lane_takes_lone(lane)) {
        return false;
    }
    const helio_moment moment = helio_clock_read(&instance->clock);
    transmitter->unflushed = true; /* so the duration of the driver call is recorded for it */
    const bool is_sent = helio_tx_fast_path(lane->stream, transmitter->topic, data, length, moment);
    transmitter->unflushed = false;
    if (!is_sent) {
        return false;
    }
    lane->held_since_ns = 0;
    lane->congestion.is_waiting = false;
    helio_submit_queue_accept(&transmitter->queue, 1);
    if (!instance->polling) {
        helio_loop_transmit(instance, moment);
    }
    return true;
}

/* Mode poll: what waits is handed over; the answer then. */
static helio_admission admit_after_flush(helio_transmitter *transmitter, size_t length) {
    helio_clock_source *source = &transmitter->instance->clock;
    helio_tx_lane_flush(transmitter->lane, helio_clock_read(source));
    helio_tx_lane_look(transmitter->lane);
    return helio_transmitter_admit(transmitter, length, helio_clock_read(source));
}

static int refuse(const helio_transmitter *transmitter, helio_admission cause,
                  helio_moment moment) {
    if (!helio_transmitter_must_fail(transmitter, cause)) {
        helio_tx_lane_note_wait(transmitter->lane, cause, moment.now_ns);
        helio_count(&transmitter->instance->counts->send_would_block, 1);
    }
    return helio_transmitter_fail(transmitter, HELIO_ERR_WOULD_BLOCK, cause);
}

/* Mode poll: into packets, at once.  A message that may not go yet is refused, or a kept queue
 * takes it, and those behind it. */
static int append_all(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                      int64_t intended_ns, size_t *accepted) {
    helio_tx_lane *lane = transmitter->lane;
    helio_submit_queue *queue = &transmitter->queue;
    helio_moment moment = helio_clock_read(&transmitter->instance->clock);
    helio_tx_lane_make_way(lane, moment);
    helio_tx_lane_look(lane);
    const bool keeps = queue->kept != NULL;
    bool is_new = keeps && helio_tx_lane_drain_kept(lane, transmitter, moment);
    int64_t submit_ns = moment.wall_ns;
    bool is_paced = helio_tx_stream_is_paced(lane->stream);
    const size_t long_bytes = helio_lane_packet_bytes(&lane->base) / 2;
    int error = 0;
    size_t done = 0, counted = 0;
    bool has_run = false;
    while (!error && done < count) {
        const helio_buffer *message = &messages[done];
        if (!helio_transmitter_is_fit(transmitter, message->length)) {
            error = helio_transmitter_fail_size(transmitter, message->length);
            break;
        }
        if (done > 0 && helio_tx_lane_should_hear(lane)) {
            helio_submit_queue_accept(queue, done - counted);
            counted = done;
            moment = helio_tx_lane_hear(lane);
            is_paced = helio_tx_stream_is_paced(lane->stream);
        }
        if (is_paced) { /* each at its own time, as a long one may have waited */
            moment = helio_clock_read(&transmitter->instance->clock);
            submit_ns = moment.wall_ns;
        }
        helio_admission answer = helio_transmitter_admit(transmitter, message->length, moment);
        if (answer == HELIO_ADMIT_GO && keeps && helio_submit_queue_has_messages(queue)) {
            answer = HELIO_ADMIT_QUEUE;
        } else if (answer != HELIO_ADMIT_GO && !keeps) {
            answer = admit_after_flush(transmitter, message->length);
        }
        if (answer == HELIO_ADMIT_GO) {
            if (message->length > long_bytes) { /* the books may be looked at while it is cut */
                helio_submit_queue_accept(queue, done - counted);
                counted = done;
            }
            lane->congestion.is_waiting = false;
            is_new = true;
            const size_t run =
                has_run ? 0
                        : helio_tx_stream_append_run(lane->stream, transmitter->topic, message,
                                                     count - done, transmitter->max_message_bytes,
                                                     submit_ns, intended_ns, moment);
            has_run = run > 0; /* what ends a run joins none: it begins a packet, or is too long */
            if (has_run) {
                done += run;
                continue;
            }
            error =
                helio_tx_stream_append_intended(lane->stream, transmitter->topic, message->data,
                                                message->length, submit_ns, intended_ns, moment);
        } else if (keeps && !helio_transmitter_must_fail(transmitter, answer)) {
            error = push(transmitter, message, intended_ns, moment);
        } else {
            error = refuse(transmitter, answer, moment);
        }
        done += !error;
    }
    helio_submit_queue_accept(queue, done - counted);
    finish(transmitter, is_new, moment);
    *accepted = done;
    return error;
}

/* intended_ns: of all of them; 0: none has one. */
static inline int submit(helio_transmitter *transmitter, const helio_buffer *messages, size_t count,
                         int64_t intended_ns, size_t *accepted) {
    return transmitter->instance->mode == HELIO_MODE_POLL
               ? append_all(transmitter, messages, count, intended_ns, accepted)
               : push_all(transmitter, messages, count, intended_ns, accepted);
}

int helio_transmitter_send_many(helio_transmitter *transmitter, const helio_buffer *messages,
                                size_t count, size_t *accepted) {
    size_t taken;
    return submit(transmitter, messages, count, 0, accepted ? accepted : &taken);
}

int helio_transmitter_send(helio_transmitter *transmitter, const void *data, size_t length) {
    if (send_lone(transmitter, data, length)) {
        return 0;
    }
    const helio_buffer message = {data, length};
    size_t taken;
    return submit(transmitter, &message, 1, 0, &taken);
}

int helio_transmitter_send_intended(helio_transmitter *transmitter, const void *data, size_t length,
                                    int64_t intended_ns) {
    const helio_buffer message = {data, length};
    size_t taken;
    return submit(transmitter, &message, 1, intended_ns > 0 ? intended_ns : 0, &taken);
}
