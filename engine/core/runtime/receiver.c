#include "runtime/receiver.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "receive/subscriptions.h"
#include "runtime/following.h"
#include "runtime/loop.h"
#include "runtime/opening.h"
#include "runtime/sink.h"

enum {
    TAKE_IN_CYCLES = 64,
};

/* ---- life ---- */

typedef struct receiver_opening {
    helio_opening common;
    helio_receiver *receiver;
    helio_following_options following;
} receiver_opening;

/* Of its ring; a kept queue keeps account of itself. */
static uint64_t memory_of(const helio_receiver *receiver) {
    return receiver->queue.ring.memory ? receiver->queue.ring.capacity : 0;
}

/* Errors: OPTION, NOMEM. */
static int open_queue(helio_receiver *receiver, const helio_receiver_options *options) {
    helio_instance *instance = receiver->instance;
    helio_keeping keeping;
    int error = helio_keeping_read_receiver(&keeping, options);
    if (error || receiver->has_listener) {
        return error;
    }
    keeping.config.account = &instance->memory.account;
    if (!keeping.is_needed) {
        error = helio_receive_queue_init(&receiver->queue, keeping.config.bytes);
    } else if (helio_receive_queue_init_kept(&receiver->queue, &keeping.config)) {
        error = helio_limit_fail(instance, "a receive queue", keeping.config.bytes);
    }
    receiver->queue.account = &instance->memory.account;
    receiver->queue.low_water = keeping.low_water;
    receiver->queue.on_trim = helio_receiver_on_trim;
    receiver->mark = keeping.mark;
    return error;
}

/* Puts the receiver into its lane. */
static int attach_to_lane(helio_instance *instance, receiver_opening *opening,
                          helio_moment moment) {
    helio_receiver *receiver = opening->receiver;
    helio_rx_lane *lane = NULL;
    int error = helio_limit_take(instance, "a receive queue", memory_of(receiver));
    if (error) {
        return error;
    }
    error = helio_rx_lane_acquire(instance, &opening->common.endpoint, &opening->common.options,
                                  moment, &lane);
    if (error) {
        helio_limit_give(instance, memory_of(receiver));
        return error;
    }
    lane->acked_by_app |= helio_receiver_is_acked_by_app(receiver);
    lane->grants |= receiver->credit > 0;
    receiver->lane = lane; /* the sink may be called before subscribe returns */
    const helio_sink sink = helio_receiver_sink(receiver);
    error = helio_rx_endpoint_subscribe(lane->endpoint, opening->common.topic, &sink, moment,
                                        &receiver->subscription);
    if (error) {
        helio_rx_lane_release(lane, moment);
        helio_limit_give(instance, memory_of(receiver));
        return error;
    }
    receiver->next = lane->receivers;
    lane->receivers = receiver;
    if (opening->following.is_needed) {
        error = helio_following_open(receiver, opening->following.durable);
        if (error) {
            helio_receiver_detach(receiver, moment);
        }
    }
    return error;
}

static bool attach(helio_instance *instance, helio_command *command, helio_moment moment) {
    command->result = attach_to_lane(instance, command->context, moment);
    return true;
}

/* Errors: OPTION. */
static int read_following(receiver_opening *opening, bool may_follow) {
    helio_receiver_options *options = &opening->common.options.receiver;
    const int error = helio_following_read(options, &opening->following);
    if (error) {
        return error;
    }
    if (opening->following.is_needed && !may_follow) {
        return helio_fail_plain(
            HELIO_ERR_OPTION, "only receivers of the Python API, without callbacks, take messages "
                              "from stores: the options recover=store, join=store and durable");
    }
    if (options->join == HELIO_JOIN_STORE) { /* for the lane, which others may share */
        options->join = HELIO_JOIN_LIVE;
    }
    return 0;
}

/* A local repairer keeps packets and has no use for messages. */
static void discard(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages, (void)count;
}

static const helio_listener discarding = {.on_messages = discard};

/* Reads the options and makes the receiver; release with helio_opening_fini. */
static int prepare(helio_instance *instance, const char *endpoint, const char *topic,
                   const char *options, const helio_listener *listener, bool may_follow,
                   receiver_opening *opening) {
    int error = helio_opening_init(&opening->common, endpoint, topic, options, HELIO_ON_RECEIVER);
    if (error) {
        return error;
    }
    helio_receiver_options *read = &opening->common.options.receiver;
    helio_receiver *receiver = NULL;
    error = read_following(opening, may_follow);
    if (!error && !(receiver = helio_allocate(sizeof *receiver))) {
        error = helio_fail(HELIO_ERR_NOMEM, "no memory for a receiver");
    }
    if (!error) {
        listener = read->repair_at[0] ? &discarding : listener;
        receiver->instance = instance;
        receiver->has_listener = listener != NULL;
        receiver->ack = read->ack;
        receiver->credit = read->credit;
        /* Receivers share a lane however their messages are acknowledged. */
        read->ack = HELIO_ACK_NONE;
        receiver->listener = listener ? *listener : (helio_listener){0};
        pthread_mutex_init(&receiver->lock, NULL);
        error = open_queue(receiver, read);
    }
    if (error) {
        helio_opening_fini(&opening->common);
        helio_receiver_free(receiver);
        return error;
    }
    opening->receiver = receiver;
    return 0;
}

/* The receiver is the caller's, unless there was an error. */
static int finish(receiver_opening *opening, int error, helio_receiver **out) {
    helio_opening_fini(&opening->common);
    if (error) {
        helio_receiver_free(opening->receiver);
    } else {
        *out = opening->receiver;
    }
    return error;
}

static int create(helio_instance *instance, const char *endpoint, const char *topic,
                  const char *options, const helio_listener *listener, bool may_follow,
                  helio_receiver **out) {
    receiver_opening opening;
    const int error = prepare(instance, endpoint, topic, options, listener, may_follow, &opening);
    if (error) {
        return error;
    }
    helio_command command = {.run = attach, .context = &opening};
    return finish(&opening, helio_command_execute(instance, &command), out);
}

int helio_receiver_open_found(helio_instance *instance, const char *endpoint, const char *topic,
                              const char *options, helio_moment moment, helio_receiver **out) {
    receiver_opening opening;
    const int error = prepare(instance, endpoint, topic, options, NULL, false, &opening);
    if (error) {
        return error;
    }
    opening.receiver->is_found = true;
    return finish(&opening, attach_to_lane(instance, &opening, moment), out);
}

int helio_receiver_create(helio_instance *instance, const char *endpoint, const char *topic,
                          const char *options, const helio_listener *listener,
                          helio_receiver **out) {
    return create(instance, endpoint, topic, options, listener, false, out);
}

int helio_receiver_create_following(helio_instance *instance, const char *endpoint,
                                    const char *topic, const char *options, helio_receiver **out) {
    return create(instance, endpoint, topic, options, NULL, true, out);
}

void helio_receiver_detach(helio_receiver *receiver, helio_moment moment) {
    helio_rx_lane *lane = receiver->lane;
    helio_following_close(receiver, moment);
    helio_receiver_settle(receiver, moment);
    helio_limit_give(receiver->instance, memory_of(receiver));
    if (receiver->is_replay) {
        helio_rx_endpoint_end_replay(lane->endpoint, receiver->replay, moment);
    } else {
        if (helio_receiver_has_acks(receiver)) {
            helio_receiver_pass_acks(receiver, moment);
        }
        helio_rx_endpoint_unsubscribe(lane->endpoint, receiver->subscription, moment);
    }
    helio_receiver **at = &lane->receivers;
    while (*at != receiver) {
        at = &(*at)->next;
    }
    *at = receiver->next;
    helio_receiver_take_back(receiver);
    helio_rx_lane_release(lane, moment);
}

static bool detach(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    helio_receiver_detach(command->context, moment);
    return true;
}

void helio_receiver_free(helio_receiver *receiver) {
    if (!receiver) {
        return;
    }
    helio_receive_queue_fini(&receiver->queue);
    helio_losses_fini(&receiver->losses);
    helio_notices_fini(&receiver->notices);
    helio_met_streams_fini(&receiver->met);
    pthread_mutex_destroy(&receiver->lock);
    free(receiver);
}

void helio_receiver_destroy(helio_receiver *receiver) {
    if (!receiver) {
        return;
    }
    helio_command command = {.run = detach, .context = receiver};
    if (helio_command_execute(receiver->instance, &command) == 0) { /* not from a listener */
        helio_receiver_free(receiver);
    }
}

/* ---- replay ---- */

typedef struct replay_opening {
    helio_receiver *live, *replay;
    uint32_t stream;
    uint64_t first, last;
} replay_opening;

static int fail_replay(int error, uint32_t stream) {
    return error == HELIO_ERR_STATE
               ? helio_fail(error,
                            "stream %u is not followed now: its messages cannot be requested again",
                            stream)
               : helio_fail(error, "no memory for a replay");
}

static bool attach_replay(helio_instance *instance, helio_command *command, helio_moment moment) {
    const replay_opening *opening = command->context;
    helio_receiver *live = opening->live;
    helio_receiver *receiver = opening->replay;
    helio_rx_lane *lane = live->lane;
    const helio_met_stream *met = helio_met_streams_find(&live->met, opening->stream);
    receiver->lane = lane; /* the sink may be called before the replay stands */
    const helio_sink sink = helio_receiver_sink(receiver);
    const int limited = helio_limit_take(instance, "a receive queue", memory_of(receiver));
    if (limited) {
        command->result = limited;
        return true;
    }
    const int error = met ? helio_rx_endpoint_replay(
                                lane->endpoint, &met->tsi, live->subscription->name, opening->first,
                                opening->last, &sink, moment, &receiver->replay)
                          : HELIO_ERR_STATE;
    command->result = error ? fail_replay(error, opening->stream) : 0;
    if (error) {
        helio_limit_give(instance, memory_of(receiver));
    } else {
        receiver->next = lane->receivers;
        lane->receivers = receiver;
    }
    return true;
}

/* Mode poll: what has arrived is known before it is asked for again. */
static void take_in(helio_instance *instance) {
    for (int i = 0; i < TAKE_IN_CYCLES && helio_loop_once(instance); i++) {
    }
}

int helio_receiver_replay(helio_receiver *live, uint32_t stream, uint64_t first, uint64_t last,
                          helio_receiver **out) {
    if (first > last) {
        return helio_fail(
            HELIO_ERR_OPTION,
            "the first message of a replay must be at most its last, %llu; %llu is more",
            (unsigned long long)last, (unsigned long long)first);
    }
    if (live->is_replay) {
        return helio_fail_plain(HELIO_ERR_STATE, "a replay cannot be replayed");
    }
    if (live->lane->base.options.stream.payload == HELIO_PAYLOAD_RAW) {
        return helio_fail_plain(HELIO_ERR_STATE,
                                "payload=raw has no replay: its packets carry no message numbers");
    }
    helio_receiver *receiver = helio_allocate(sizeof *receiver);
    if (!receiver) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a replay");
    }
    if (live->instance->mode == HELIO_MODE_POLL && !live->instance->polling) {
        if (live->lane->is_lent) {
            helio_rx_lane_leave_loan(live->lane);
        }
        take_in(live->instance);
    }
    receiver->instance = live->instance;
    receiver->is_replay = true;
    pthread_mutex_init(&receiver->lock, NULL);
    int error =
        helio_receive_queue_init(&receiver->queue, live->lane->base.options.receiver.receive_queue);
    receiver->queue.account = &live->instance->memory.account;
    if (!error) {
        replay_opening opening = {live, receiver, stream, first, last};
        helio_command command = {.run = attach_replay, .context = &opening};
        error = helio_command_execute(live->instance, &command);
    }
    if (error) {
        helio_receiver_free(receiver);
        return error;
    }
    *out = receiver;
    return 0;
}

/* ---- what else an application asks ---- */

int helio_receiver_loss(helio_receiver *receiver, helio_loss *loss) {
    pthread_mutex_lock(&receiver->lock);
    const bool found = helio_losses_pop(&receiver->losses, loss);
    pthread_mutex_unlock(&receiver->lock);
    return found;
}

int helio_receiver_notice(helio_receiver *receiver, helio_notice *notice) {
    pthread_mutex_lock(&receiver->lock);
    const bool found = helio_notices_pop(&receiver->notices, notice);
    pthread_mutex_unlock(&receiver->lock);
    return found;
}

int helio_receiver_ack(helio_receiver *receiver, uint32_t stream, uint64_t number) {
    if (!helio_receiver_is_acked_by_app(receiver)) {
        return helio_fail_plain(
            HELIO_ERR_STATE, "only a receiver with ack=app or ack=store can acknowledge messages");
    }
    pthread_mutex_lock(&receiver->lock);
    helio_met_stream *met = helio_met_streams_get(&receiver->met, stream);
    const bool was_met = stream < receiver->met.next;
    const bool is_news = met && number >= helio_cell(&met->acknowledged);
    if (is_news) {
        atomic_store_explicit(&met->acknowledged, number + (number < UINT64_MAX),
                              memory_order_relaxed);
    }
    pthread_mutex_unlock(&receiver->lock);
    if (!was_met) {
        return helio_fail(HELIO_ERR_STATE, "the receiver has discovered no stream number %" PRIu32,
                          stream);
    }
    if (is_news) {
        atomic_store_explicit(&receiver->has_acks, true, memory_order_release);
        helio_idle_wake(&receiver->instance->idle);
    }
    return 0;
}

const char *helio_receiver_stream(const helio_receiver *receiver, uint32_t stream) {
    enum { TEXTS = 8 };
    static _Thread_local char texts[TEXTS][HELIO_TSI_TEXT];
    static _Thread_local unsigned place;
    helio_receiver *mutable =
        (helio_receiver *)(uintptr_t)receiver; /* the lock is no part of its value */
    char *text = texts[place++ % TEXTS]; /* a copy: the engine may forget the stream meanwhile */
    pthread_mutex_lock(&mutable->lock);
    const helio_met_stream *met = helio_met_streams_get(&receiver->met, stream);
    const bool was_met = stream < receiver->met.next;
    snprintf(text, HELIO_TSI_TEXT, "%s", met ? met->text : "");
    pthread_mutex_unlock(&mutable->lock);
    return was_met ? text : NULL;
}

bool helio_receiver_is_matched(helio_receiver *receiver) {
    pthread_mutex_lock(&receiver->lock);
    const bool is_matched = receiver->met.there.count > 0;
    pthread_mutex_unlock(&receiver->lock);
    return is_matched;
}

bool helio_receiver_tsi(helio_receiver *receiver, uint32_t stream, helio_tsi *out) {
    pthread_mutex_lock(&receiver->lock);
    const helio_met_stream *met = helio_met_streams_get(&receiver->met, stream);
    if (met) {
        *out = met->tsi;
    }
    pthread_mutex_unlock(&receiver->lock);
    return met != NULL;
}
