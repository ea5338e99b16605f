/* The submit queue of a transmitter: which it has, what it drops, how full it is. */
#include <inttypes.h>

#include "base/error.h"
#include "runtime/transmitter_parts.h"

/* ---- the queue ---- */

/* Under the queue's lock. */
static void on_drop(void *context, void *head, size_t length, helio_kept_cause cause,
                    bool by_count) {
    (void)head, (void)length, (void)by_count;
    helio_transmitter *transmitter = context;
    transmitter->dropped[cause]++;
}

static int open_kept(helio_transmitter *transmitter, helio_keeping *keeping) {
    helio_instance *instance = transmitter->instance;
    keeping->config.account = &instance->memory.account;
    keeping->config.on_drop = on_drop;
    keeping->config.context = transmitter;
    const int error = helio_submit_queue_init_kept(&transmitter->queue, &keeping->config);
    return error ? helio_limit_fail(instance, "a submit queue", keeping->config.bytes) : 0;
}

int helio_transmitter_open_queue(helio_transmitter *transmitter,
                                 const helio_transmitter_options *options) {
    helio_keeping keeping;
    const bool is_threaded = transmitter->instance->mode == HELIO_MODE_THREAD;
    int error = helio_keeping_read_transmitter(&keeping, options);
    if (error) {
        return error;
    }
    transmitter->mark = keeping.mark;
    transmitter->never_waits = keeping.never_waits;
    transmitter->drops = helio_kept_drops(keeping.config.policy);
    if (transmitter->drops || (is_threaded && keeping.is_needed)) {
        error = open_kept(transmitter, &keeping);
    } else if (is_threaded) {
        error = helio_submit_queue_init(&transmitter->queue, keeping.config.bytes);
    }
    transmitter->queue.low_water = transmitter->drops ? 1 : keeping.low_water;
    transmitter->queue.account = &transmitter->instance->memory.account;
    return error;
}

/* ---- what was dropped ---- */

static const char *name_of(const helio_transmitter *transmitter) {
    return transmitter->lane->base.endpoint.label;
}

static void tell_drops(helio_transmitter *transmitter, uint64_t total, int64_t wall_ns) {
    const uint64_t *dropped = transmitter->dropped_counted;
    const uint64_t args[4] = {total - transmitter->dropped_told, total};
    transmitter->dropped_told = total;
    transmitter->dropped_told_ns = wall_ns;
    helio_stats_event(
        transmitter->instance->stats, wall_ns, HELIO_EVENT_MESSAGES_DROPPED,
        helio_tx_topic_object(transmitter->topic)->slot, args,
        "%s: %" PRIu64 " messages dropped from the submit queue (in all: newest %" PRIu64
        ", oldest %" PRIu64 ", conflated %" PRIu64 ", priority %" PRIu64 ", age %" PRIu64
        ", memory %" PRIu64 ", credit %" PRIu64 ")",
        name_of(transmitter), args[0], dropped[HELIO_DROPPED_NEWEST], dropped[HELIO_DROPPED_OLDEST],
        dropped[HELIO_DROPPED_CONFLATED], dropped[HELIO_DROPPED_PRIORITY],
        dropped[HELIO_DROPPED_AGE], dropped[HELIO_DROPPED_MEMORY], dropped[HELIO_DROPPED_CREDIT]);
}

static void tell_new_drops(helio_transmitter *transmitter, bool is_last, int64_t wall_ns) {
    uint64_t total = 0;
    for (int i = 0; i < HELIO_DROPPED_CAUSES; i++) {
        total += transmitter->dropped_counted[i];
    }
    if (total != transmitter->dropped_told &&
        (is_last || wall_ns - transmitter->dropped_told_ns >= HELIO_SECOND)) {
        tell_drops(transmitter, total, wall_ns);
    }
}

void helio_transmitter_drop_rest(helio_transmitter *transmitter) {
    helio_submit_queue *queue = &transmitter->queue;
    uint64_t count = 0;
    helio_submitted message;
    if (queue->kept) {
        helio_submit_queue_lock(queue);
        while (helio_submit_queue_take(queue, &message)) {
            count++;
        }
        helio_submit_queue_unlock(queue);
    } else {
        for (; helio_submit_queue_peek(queue, &message); count++) {
            helio_submit_queue_drop(queue);
        }
        transmitter->taken += count;
    }
    transmitter->dropped[HELIO_DROPPED_CREDIT] += count;
    helio_submit_queue_release(queue);
}

/* ---- how full it is ---- */

static void tell_mark(const helio_transmitter *transmitter, uint64_t fill, int64_t wall_ns) {
    const bool is_above = transmitter->mark.is_above;
    const uint64_t args[4] = {fill, helio_submit_queue_bytes(&transmitter->queue)};
    helio_stats_event(transmitter->instance->stats, wall_ns,
                      is_above ? HELIO_EVENT_QUEUE_ALERT_ON : HELIO_EVENT_QUEUE_ALERT_OFF,
                      helio_tx_topic_object(transmitter->topic)->slot, args,
                      "%s: the submit queue is %s, %.0f %%", name_of(transmitter),
                      is_above ? "filling up" : "no longer full", (double)fill / 1e4);
}

void helio_transmitter_refresh(helio_transmitter *transmitter, bool is_last, helio_moment moment) {
    helio_submit_queue *queue = &transmitter->queue;
    if (!helio_submit_queue_is_open(queue)) {
        helio_transmitter_collect(transmitter);
        return;
    }
    const uint64_t fill = transmitter->mark.high ? helio_submit_queue_fill(queue) : 0;
    if (helio_mark_cross(&transmitter->mark, fill)) {
        tell_mark(transmitter, fill, moment.wall_ns);
    }
    if (!queue->kept) {
        helio_transmitter_collect(transmitter);
        tell_new_drops(transmitter, is_last, moment.wall_ns);
        return;
    }
    helio_submit_queue_lock(queue);
    helio_submit_queue_expire(queue, moment.now_ns);
    helio_submit_queue_unlock(queue);
    helio_transmitter_collect(transmitter);
    tell_new_drops(transmitter, is_last, moment.wall_ns);
    if (!transmitter->unflushed) { /* what is gone was sent long ago, or dropped */
        helio_submit_queue_hand_over(queue);
    }
}
