/* A transmit lane's gate: whether messages may go now, what they wait for if not, and what becomes
 * known of that: stage pace of the statistics (base/hold.h), congestion, the time waited by
 * cause. */
#include <inttypes.h>

#include "base/math.h"
#include "runtime/tx_lane_parts.h"

_Static_assert(offsetof(helio_tx_stream_stats, wait_time_window) -
                       offsetof(helio_tx_stream_stats, wait_time_room) ==
                   (HELIO_ADMIT_WINDOW - HELIO_ADMIT_ROOM) * sizeof(_Atomic uint64_t),
               "a cell of wait_time for each cause from ROOM to WINDOW");

#define HOLD_NS (5 * HELIO_MILLISECOND) /* longest time repairs keep new data waiting */

enum { REPAIRS_AHEAD = 32 }; /* with more repairs waiting than this, new data waits for them */

/* ---- may it go? ---- */

bool helio_tx_lane_look_for_room(helio_tx_lane *lane) {
    helio_channel *channel = lane->base.channel;
    lane->room =
        channel->driver->room && !lane->is_heedless ? channel->driver->room(channel) : SIZE_MAX;
    return lane->room >= HELIO_TX_LANE_ROOM_MIN;
}

/* Whether new data should wait.  A source that outruns its receivers would otherwise push what they
 * miss out of its history; many waiting repairs slow it down to what they take in.  Not for ever: a
 * receiver that keeps asking must not stop the stream. */
static bool is_pressed(helio_tx_lane *lane, helio_moment moment) {
    if (helio_tx_stream_pressing(lane->stream) <= REPAIRS_AHEAD) {
        lane->held_since_ns = 0;
        return false;
    }
    if (!lane->held_since_ns) {
        lane->held_since_ns = moment.now_ns;
    }
    if (moment.now_ns - lane->held_since_ns < HOLD_NS) {
        return true;
    }
    lane->held_since_ns = 0;
    return false;
}

helio_admission helio_tx_lane_admit_any(helio_tx_lane *lane, helio_moment moment) {
    return !helio_tx_lane_has_room(lane) ? HELIO_ADMIT_ROOM
           : is_pressed(lane, moment)    ? HELIO_ADMIT_REPAIRS
                                         : HELIO_ADMIT_GO;
}

void helio_tx_lane_make_way(helio_tx_lane *lane, helio_moment moment) {
    helio_tx_lane_greet(lane, moment);
    while (is_pressed(lane, moment)) {
        helio_tx_lane_poll_stream(lane, moment);
        helio_tx_lane_flush_channel(lane);
        moment = helio_clock_read(&lane->base.instance->clock);
    }
}

/* ---- who has messages that may go? ---- */

/* Messages wait, and not for credit. */
static bool has_messages_to_send(const helio_tx_lane *lane, const helio_transmitter *transmitter) {
    return helio_submit_queue_has_messages(&transmitter->queue) &&
           (!lane->awaits_credit || helio_tx_stream_credit(lane->stream, transmitter->topic) > 0);
}

bool helio_tx_lane_has_messages(const helio_tx_lane *lane) {
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (has_messages_to_send(lane, t)) {
            return true;
        }
    }
    return false;
}

/* Else not until an acknowledgement comes, room is made, or the rate allows more.  Repairs that
 * press without a rate are sent at once. */
static bool can_send(const helio_tx_lane *lane) {
    return lane->held == HELIO_ADMIT_GO ||
           (lane->held == HELIO_ADMIT_REPAIRS && !helio_tx_stream_is_paced(lane->stream));
}

bool helio_tx_lane_has_work(const helio_tx_lane *lane) {
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (helio_acked_has_new_wait(&t->acked) ||
            (can_send(lane) && has_messages_to_send(lane, t))) {
            return true;
        }
    }
    return false;
}

bool helio_tx_lane_is_queueing(const helio_tx_lane *lane) {
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (helio_submit_queue_bytes(&t->queue) > 0) {
            return true;
        }
    }
    return false;
}

bool helio_tx_lane_waits_for_room(const helio_tx_lane *lane) {
    return lane->held == HELIO_ADMIT_ROOM && helio_tx_lane_has_messages(lane);
}

bool helio_tx_lane_is_paced_out(const helio_tx_lane *lane) {
    return lane->held == HELIO_ADMIT_RATE || lane->held == HELIO_ADMIT_INSTANCE_RATE ||
           lane->held == HELIO_ADMIT_WINDOW ||
           (lane->held == HELIO_ADMIT_REPAIRS && helio_tx_stream_is_paced(lane->stream));
}

int64_t helio_tx_lane_ready_ns(const helio_tx_lane *lane) {
    return helio_tx_lane_is_paced_out(lane) ? helio_tx_stream_ready_ns(lane->stream) : HELIO_NEVER;
}

/* ---- what is held back (send/batcher.h) ---- */

void helio_tx_lane_hold(helio_tx_lane *lane, helio_moment moment) {
    helio_hold *hold = helio_tx_stream_hold(lane->stream);
    int64_t oldest_ns = HELIO_NEVER;
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        const int64_t submit_ns = helio_submit_queue_oldest_ns(&t->queue, moment);
        oldest_ns = helio_min(oldest_ns, submit_ns);
    }
    helio_hold_begin(hold, oldest_ns, moment.wall_ns);
}

void helio_tx_lane_hold_topic(helio_tx_lane *lane, helio_transmitter *transmitter,
                              helio_moment moment) {
    const bool is_held = helio_tx_stream_credit(lane->stream, transmitter->topic) == 0;
    helio_hold *hold = helio_tx_topic_hold(transmitter->topic);
    helio_hold_end(hold, moment.wall_ns);
    if (is_held) {
        helio_hold_begin(hold, helio_submit_queue_oldest_ns(&transmitter->queue, moment),
                         moment.wall_ns);
    }
    atomic_store_explicit(&transmitter->awaits_credit, is_held, memory_order_relaxed);
}

/* ---- congestion ---- */

/* The cells of wait_time are in the order of the causes.  Credit has a cell of its topic
 * (credit_wait_time); other causes have none. */
static void count_wait(helio_tx_stream_stats *stats, helio_admission cause, uint64_t waited_ns) {
    if (cause >= HELIO_ADMIT_ROOM && cause <= HELIO_ADMIT_WINDOW) {
        helio_count(&(&stats->wait_time_room)[cause - HELIO_ADMIT_ROOM], waited_ns);
    }
}

void helio_tx_lane_note_wait(helio_tx_lane *lane, helio_admission cause, int64_t now_ns) {
    const int64_t waited_ns = helio_congestion_note(&lane->congestion, cause, now_ns);
    count_wait(helio_tx_stream_object(lane->stream)->record, cause, (uint64_t)waited_ns);
}

static void tell_change(helio_tx_lane *lane, helio_moment moment, int64_t began_ns) {
    helio_congestion *congestion = &lane->congestion;
    helio_stats_object *object = helio_tx_stream_object(lane->stream);
    const uint64_t rate = helio_tx_stream_pace(lane->stream)->limit.bucket.rate;
    const uint64_t args[4] = {(uint64_t)(moment.now_ns - began_ns), helio_tx_lane_queued(lane),
                              rate, congestion->is_on ? (uint64_t)congestion->cause : 0};
    atomic_store_explicit(&lane->congested, congestion->is_on, memory_order_relaxed);
    helio_tx_stream_stats *stats = object->record;
    helio_set(&stats->congested, congestion->is_on);
    helio_count(&stats->congestions, congestion->is_on);
    if (congestion->is_on) {
        helio_stats_event(lane->base.instance->stats, moment.wall_ns, HELIO_EVENT_CONGESTION_ON,
                          object->slot, args,
                          "%s: messages have waited for %s for %" PRIu64 " ms; %" PRIu64
                          " bytes are queued, the rate is %" PRIu64 " bytes/s",
                          lane->base.endpoint.label,
                          helio_admission_text[congestion->cause].waits_for,
                          args[0] / HELIO_MILLISECOND, args[1], rate);
    } else {
        helio_stats_event(lane->base.instance->stats, moment.wall_ns, HELIO_EVENT_CONGESTION_OFF,
                          object->slot, args,
                          "%s: no message waits any more; the wait lasted %" PRIu64 " ms",
                          lane->base.endpoint.label, args[0] / HELIO_MILLISECOND);
    }
}

void helio_tx_lane_tell_congestion(helio_tx_lane *lane, helio_moment moment) {
    helio_congestion *congestion = &lane->congestion;
    if (lane->awaited_by) { /* asleep nobody else says so */
        helio_tx_lane_note_wait(lane, congestion->cause, moment.now_ns);
    } else if (lane->held != HELIO_ADMIT_GO && helio_tx_lane_has_messages(lane)) {
        helio_tx_lane_note_wait(lane, lane->held, moment.now_ns);
    }
    const int64_t began_ns = congestion->since_ns;
    if (helio_congestion_look(congestion, moment.now_ns) != HELIO_CONGESTION_SAME) {
        tell_change(lane, moment, began_ns);
    }
    atomic_store_explicit(&lane->rate, helio_tx_stream_pace(lane->stream)->limit.bucket.rate,
                          memory_order_relaxed);
}

void helio_tx_lane_show(helio_tx_lane *lane, helio_admission held) {
    if ((int)held != atomic_load_explicit(&lane->held_shown, memory_order_relaxed)) {
        atomic_store_explicit(&lane->held_shown, held, memory_order_relaxed);
    }
}
