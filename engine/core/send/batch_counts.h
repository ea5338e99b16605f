/* What is counted and measured of messages that left: the same by the general path (batcher.c) and the
 * fast path (fast_path.c). */
#ifndef HELIO_SEND_BATCH_COUNTS_H
#define HELIO_SEND_BATCH_COUNTS_H

#include "send/batcher.h"

static inline void helio_batcher_count_messages(helio_batcher *batcher, helio_topic_position *topic,
                                                uint64_t messages, uint64_t bytes,
                                                uint64_t packets) {
    helio_transmitter_stats *stats = topic->stats;
    const uint64_t waited = helio_cell(&stats->messages_waiting);
    helio_stats_begin(stats);
    helio_count(&stats->messages_sent, messages);
    if (messages <= waited) {
        helio_set(&stats->messages_waiting, waited - messages);
    } else { /* some were accepted after the queues were looked at last */
        helio_set(&stats->messages_waiting, 0);
        helio_count(&stats->messages_accepted, messages - waited);
    }
    helio_count(&stats->bytes_sent, bytes);
    helio_count(&stats->packets_sent, packets);
    helio_set(&stats->next_message, topic->next_message);
    helio_stats_end(stats);
    helio_count(&batcher->instance->messages_sent, messages);
    helio_count(&batcher->instance->bytes_sent, bytes);
}

/* How long a message that is packed now was held back. */
static inline int64_t helio_batcher_paced(const helio_batcher *batcher,
                                          const helio_topic_position *topic, int64_t submit_ns,
                                          int64_t wall_ns) {
    const int64_t all_ns = helio_hold_wait(&batcher->hold, submit_ns, wall_ns);
    const int64_t own_ns = helio_hold_wait(&topic->hold, submit_ns, wall_ns);
    return all_ns > own_ns ? all_ns : own_ns;
}

/* The stages batch and pace of `count` packets. */
static inline void helio_batcher_measure(helio_batcher *batcher, const helio_topic_position *topic,
                                         int64_t latency_ns, int64_t paced_ns, uint64_t count) {
    const helio_stats_object *object = topic->object;
    if (!object || !object->histogram[HELIO_TRANSMITTER_BATCH_LATENCY]) {
        return;
    }
    helio_count(&topic->stats->latency_packets, count);
    if (batcher->sampler && !helio_sampler_takes(batcher->sampler)) {
        return;
    }
    helio_count(&topic->stats->latency_samples, count);
    helio_record(object->histogram[HELIO_TRANSMITTER_BATCH_LATENCY], latency_ns - paced_ns, count);
    helio_record(object->histogram[HELIO_TRANSMITTER_PACE_LATENCY], paced_ns, count);
}

#endif
