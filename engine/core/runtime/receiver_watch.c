/* What is known of a receiver's queue: its gauges, what it trimmed, how full it is. */
#include <inttypes.h>

#include "runtime/sink.h"

static helio_receiver_stats *record_of(const helio_met_stream *met) {
    return met->object->record;
}

void helio_receiver_on_trim(helio_passage *passage, int cause) {
    helio_met_stream *met = (helio_met_stream *)(void *)passage; /* its first member */
    met->trimmed[cause]++;
}

/* The slot events are about: that of a stream, while there is one. */
static uint32_t slot_of(const helio_receiver *receiver) {
    const helio_met_stream *met = receiver->met.there.oldest;
    if (met) {
        return met->object->slot;
    }
    return receiver->instance->object.slot;
}

/* ---- waits ---- */

void helio_receiver_open_waits(helio_receiver *receiver, helio_met_stream *met) {
    helio_hdr *const *histogram = met->object->histogram;
    helio_receive_queue_measure(&receiver->queue, &met->passage,
                                histogram[HELIO_RECEIVER_DISPATCH_LATENCY],
                                histogram[HELIO_RECEIVER_END_LATENCY]);
}

/* ---- gauges ---- */

/* What was taken and trimmed since, and what waits: all of one moment, for the books. */
static void show(const helio_met_stream *met, int64_t age_ns) {
    helio_receiver_stats *stats = record_of(met);
    const helio_passage *passage = &met->passage;
    const uint64_t taken = helio_cell(&passage->taken_messages);
    const uint64_t waiting = passage->pushed_messages - passage->trimmed_messages - taken;
    helio_set(&stats->messages_taken, taken + met->lent);
    helio_set(&stats->queue_messages, waiting);
    helio_set(&stats->queue_bytes,
              passage->pushed_bytes - passage->trimmed_bytes - helio_cell(&passage->taken_bytes));
    helio_set(&stats->queue_age, waiting ? (uint64_t)age_ns : 0);
}

static void count_trims(helio_met_stream *met) {
    uint64_t news[HELIO_TRIMMED_CAUSES];
    for (int i = 0; i < HELIO_TRIMMED_CAUSES; i++) {
        news[i] = met->trimmed[i] - met->trimmed_counted[i];
        met->trimmed_counted[i] = met->trimmed[i];
    }
    helio_receiver_stats *stats = record_of(met);
    helio_count(&stats->messages_trimmed_count, news[HELIO_TRIMMED_COUNT]);
    helio_count(&stats->messages_trimmed_bytes, news[HELIO_TRIMMED_BYTES]);
    helio_count(&stats->messages_trimmed_age, news[HELIO_TRIMMED_AGE]);
    helio_count(&stats->messages_trimmed_conflated, news[HELIO_TRIMMED_CONFLATED]);
    helio_count(&stats->messages_trimmed_priority, news[HELIO_TRIMMED_PRIORITY]);
}

/* ---- events ---- */

static void tell_mark(const helio_receiver *receiver, uint64_t fill, int64_t wall_ns) {
    const bool is_above = receiver->mark.is_above;
    const uint64_t args[4] = {fill, helio_receive_queue_bytes(&receiver->queue)};
    helio_stats_event(receiver->instance->stats, wall_ns,
                      is_above ? HELIO_EVENT_QUEUE_ALERT_ON : HELIO_EVENT_QUEUE_ALERT_OFF,
                      slot_of(receiver), args, "%s: the receive queue is %s, %.0f %%",
                      receiver->lane->base.endpoint.label,
                      is_above ? "filling up" : "no longer full", (double)fill / 1e4);
}

void helio_receiver_watch(helio_receiver *receiver, int64_t wall_ns) {
    if (receiver->mark.high == 0) {
        return;
    }
    const uint64_t fill = helio_receive_queue_fill(&receiver->queue);
    if (helio_mark_cross(&receiver->mark, fill)) {
        tell_mark(receiver, fill, wall_ns);
    }
}

static void tell_trims(helio_receiver *receiver, const uint64_t *trimmed, uint64_t total,
                       int64_t wall_ns) {
    const uint64_t args[4] = {total - receiver->trimmed_told, total};
    receiver->trimmed_told = total;
    receiver->trimmed_told_ns = wall_ns;
    helio_stats_event(
        receiver->instance->stats, wall_ns, HELIO_EVENT_MESSAGES_TRIMMED, slot_of(receiver), args,
        "%s: %" PRIu64 " messages trimmed from the receive queue (in all: count %" PRIu64
        ", bytes %" PRIu64 ", age %" PRIu64 ", conflated %" PRIu64 ", priority %" PRIu64 ")",
        receiver->lane->base.endpoint.label, args[0], trimmed[HELIO_TRIMMED_COUNT],
        trimmed[HELIO_TRIMMED_BYTES], trimmed[HELIO_TRIMMED_AGE], trimmed[HELIO_TRIMMED_CONFLATED],
        trimmed[HELIO_TRIMMED_PRIORITY]);
}

/* ---- all of it ---- */

static void add_trims(const uint64_t *of_stream, uint64_t *trimmed) {
    for (int cause = 0; cause < HELIO_TRIMMED_CAUSES; cause++) {
        trimmed[cause] += of_stream[cause];
    }
}

static void refresh(helio_receiver *receiver, bool is_last, helio_moment moment) {
    helio_receive_queue *queue = &receiver->queue;
    uint64_t trimmed[HELIO_TRIMMED_CAUSES] = {0}, total = 0;
    if (receiver->has_listener) {
        return;
    }
    helio_receiver_watch(receiver, moment.wall_ns);
    const int64_t age_ns = helio_receive_queue_age_ns(queue, moment.now_ns, moment.wall_ns);
    if (queue->kept) {
        helio_receive_queue_lock(queue);
        helio_kept_queue_expire(queue->kept, moment.now_ns);
    }
    for (helio_met_stream *met = receiver->met.there.oldest; met; met = met->newer) {
        helio_stats_begin(record_of(met));
        show(met, age_ns);
        count_trims(met);
        helio_stats_end(record_of(met));
        helio_receiver_open_waits(receiver, met);
        add_trims(met->trimmed, trimmed);
    }
    for (const helio_met_stream *met = receiver->met.ended.oldest; met; met = met->newer) {
        add_trims(met->trimmed, trimmed);
    }
    add_trims(receiver->met.trimmed, trimmed);
    if (queue->kept) {
        helio_receive_queue_unlock(queue);
    }
    for (int cause = 0; cause < HELIO_TRIMMED_CAUSES; cause++) {
        total += trimmed[cause];
    }
    if (total != receiver->trimmed_told &&
        (is_last || moment.wall_ns - receiver->trimmed_told_ns >= HELIO_SECOND)) {
        tell_trims(receiver, trimmed, total, moment.wall_ns);
    }
}

void helio_receiver_refresh(helio_receiver *receiver, helio_moment moment) {
    refresh(receiver, false, moment);
}

void helio_receiver_settle(helio_receiver *receiver, helio_moment moment) {
    refresh(receiver, true, moment);
}
