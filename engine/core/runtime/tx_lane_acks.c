/* Acknowledgements at a transmit lane: they are noted for its transmitters, reported to listeners,
 * and end waits. */
#include "runtime/tx_lane_parts.h"

enum { ACKS_TOLD = 16 }; /* to a listener in one cycle */

static void note(helio_tx_lane *lane, helio_transmitter *transmitter, const helio_acker *acker) {
    uint64_t number;
    if (helio_tx_stream_acked_message(lane->stream, transmitter->topic, acker, &number)) {
        helio_acked_note(&transmitter->acked, acker, number);
    }
}

void helio_tx_lane_note_all(helio_tx_lane *lane, helio_transmitter *transmitter) {
    const helio_acker *acker;
    for (uint32_t i = 0; (acker = helio_tx_stream_acker(lane->stream, i)) != NULL; i++) {
        note(lane, transmitter, acker);
    }
}

void helio_tx_lane_tell_acks(helio_tx_lane *lane) {
    helio_ack acks[ACKS_TOLD];
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (!t->on_ack || !t->acked.has_new) {
            continue;
        }
        const size_t count = helio_acked_take(&t->acked, acks, ACKS_TOLD);
        t->acked.has_new = count == ACKS_TOLD;
        for (size_t i = 0; i < count; i++) {
            t->on_ack(t->on_ack_context, &acks[i]);
        }
    }
}

/* Whether what is waited for was sent, and in which packet. */
static void look_for(const helio_tx_lane *lane, const helio_transmitter *transmitter,
                     helio_ack_wait *wait) {
    const helio_tx_topic *topic = transmitter->topic;
    const uint64_t handed_over =
        atomic_load_explicit(&transmitter->queue.handed_over, memory_order_relaxed);
    if (wait->number != HELIO_ALL_MESSAGES) {
        wait->is_sent =
            helio_tx_stream_has_sent(lane->stream, topic, wait->number, &wait->sequence);
    } else if (handed_over >= wait->queued) {
        wait->is_sent = true;
        wait->sequence = helio_tx_stream_newest(topic);
    }
}

bool helio_tx_lane_is_acked(const helio_tx_lane *lane, const helio_transmitter *transmitter,
                            helio_ack_wait *wait) {
    if (!wait->is_sent) {
        look_for(lane, transmitter, wait);
    }
    if (!wait->is_sent || !wait->sequence) {
        return wait->is_sent;
    }
    return wait->is_for_quorum
               ? helio_tx_stream_is_stable(lane->stream, wait->sequence)
               : helio_tx_stream_acked_by(lane->stream, wait->sequence) >= wait->receivers;
}

void helio_tx_lane_end_waits(helio_tx_lane *lane, helio_transmitter *transmitter) {
    helio_acked *acked = &transmitter->acked;
    bool is_news = false;
    pthread_mutex_lock(&acked->lock);
    atomic_store_explicit(&acked->has_new_wait, false, memory_order_relaxed);
    for (helio_ack_wait *wait = acked->waits; wait; wait = wait->next) {
        if (!wait->is_done && helio_tx_lane_is_acked(lane, transmitter, wait)) {
            wait->is_done = is_news = true;
        }
    }
    pthread_mutex_unlock(&acked->lock);
    if (is_news) {
        helio_signal_notify(&acked->progress);
    }
}

void helio_tx_lane_on_ack(void *context, const helio_acker *acker) {
    helio_tx_lane *lane = context;
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (atomic_load_explicit(&t->acked.is_wanted, memory_order_relaxed)) {
            note(lane, t, acker);
        }
        helio_tx_lane_serve_waits(lane, t);
    }
}

void helio_tx_lane_tell_refusing(helio_tx_lane *lane) {
    const int refusal = helio_tx_stream_refusal(lane->stream);
    if (refusal == atomic_load_explicit(&lane->refusal, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(&lane->refusal, refusal, memory_order_release);
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        helio_signal_notify(&t->acked.progress);
    }
}
