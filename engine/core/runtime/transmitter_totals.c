/* The books of a topic being sent: messages accepted = sent + dropped + waiting.
 *
 * Each transmitter of a topic knows what it accepted, dropped and holds; the topic's record has the
 * sums.  They are taken in two steps, for all transmitters of a lane at once (collect, then show),
 * and the batcher keeps them in step with what it sends in between: so the sum holds in every
 * snapshot. */
#include "runtime/transmitter_parts.h"

_Static_assert((int)HELIO_TOPIC_DROP_CAUSES == (int)HELIO_DROPPED_CAUSES, "a cell for each cause");

/* What a transmitter holds that is in no packet. */
static uint64_t waiting(const helio_transmitter *transmitter, uint64_t accepted) {
    const helio_submit_queue *queue = &transmitter->queue;
    if (queue->kept) {
        return helio_kept_queue_messages(queue->kept) + transmitter->in_hand;
    }
    return queue->ring.memory ? accepted - transmitter->taken : 0;
}

void helio_transmitter_collect(helio_transmitter *transmitter) {
    helio_submit_queue *queue = &transmitter->queue;
    helio_topic_books *books = helio_tx_topic_books(transmitter->topic);
    if (queue->kept) {
        helio_submit_queue_lock(queue);
    }
    uint64_t accepted = atomic_load_explicit(&queue->accepted, memory_order_relaxed);
    if (queue->ring.memory && accepted < transmitter->taken) {
        accepted = transmitter->taken; /* a message is here before its sender has counted it */
    }
    const uint64_t held = waiting(transmitter, accepted);
    for (int i = 0; i < HELIO_DROPPED_CAUSES; i++) {
        books->dropped[i] += transmitter->dropped[i] - transmitter->dropped_counted[i];
        transmitter->dropped_counted[i] = transmitter->dropped[i];
    }
    if (queue->kept) {
        helio_submit_queue_unlock(queue);
    }
    books->accepted += accepted - transmitter->accepted_counted;
    books->queued += held - transmitter->queued_counted;
    transmitter->accepted_counted = accepted;
    transmitter->queued_counted = held;
}

void helio_transmitter_show(const helio_transmitter *transmitter) {
    helio_transmitter_stats *stats = helio_tx_topic_object(transmitter->topic)->record;
    const helio_topic_books *books = helio_tx_topic_books(transmitter->topic);
    const uint64_t open =
        helio_tx_stream_open_messages(transmitter->lane->stream, transmitter->topic);
    helio_stats_begin(stats);
    helio_set(&stats->messages_accepted, books->accepted);
    helio_set(&stats->messages_waiting, books->queued + open);
    helio_set(&stats->messages_dropped_newest, books->dropped[HELIO_DROPPED_NEWEST]);
    helio_set(&stats->messages_dropped_oldest, books->dropped[HELIO_DROPPED_OLDEST]);
    helio_set(&stats->messages_dropped_conflated, books->dropped[HELIO_DROPPED_CONFLATED]);
    helio_set(&stats->messages_dropped_priority, books->dropped[HELIO_DROPPED_PRIORITY]);
    helio_set(&stats->messages_dropped_age, books->dropped[HELIO_DROPPED_AGE]);
    helio_set(&stats->messages_dropped_memory, books->dropped[HELIO_DROPPED_MEMORY]);
    helio_set(&stats->messages_dropped_credit, books->dropped[HELIO_DROPPED_CREDIT]);
    helio_stats_end(stats);
}
