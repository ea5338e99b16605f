/* The engine's side of a receiver: what the machine delivers goes to the listener or into the
 * queue. */
#include "runtime/sink.h"

#include <stdlib.h>
#include <string.h>

static helio_receiver_stats *record_of(const helio_met_stream *met) {
    return met->object->record;
}

/* ---- streams ---- */

static void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object) {
    helio_receiver *receiver = context;
    pthread_mutex_lock(&receiver->lock);
    helio_met_streams_forget(&receiver->met, &receiver->queue, &receiver->receives);
    const helio_met_stream *met = helio_met_streams_add(&receiver->met, stream, tsi, object);
    if (met && !receiver->has_listener) {
        helio_stats_apply(object, HELIO_HAS_QUEUE);
        helio_set(&record_of(met)->queue_limit_bytes, receiver->queue.ring.capacity);
    }
    pthread_mutex_unlock(&receiver->lock);
}

static helio_met_stream *met_stream(helio_receiver *receiver, uint32_t stream) {
    return helio_met_streams_find(&receiver->met, stream);
}

static void on_stream_end(void *context, uint32_t stream) {
    helio_receiver *receiver = context;
    helio_met_stream *met = met_stream(receiver, stream);
    if (met) {
        helio_receiver_refresh(receiver, (helio_moment){helio_monotonic_ns(), helio_wall_ns()});
        helio_receive_queue_measure(&receiver->queue, &met->passage, NULL, NULL);
        pthread_mutex_lock(&receiver->lock);
        helio_met_streams_end(&receiver->met, met);
        helio_met_streams_forget(&receiver->met, &receiver->queue, &receiver->receives);
        pthread_mutex_unlock(&receiver->lock);
    }
    if (receiver->is_replay) {
        atomic_store_explicit(&receiver->is_over, true, memory_order_release);
        helio_signal_notify(&receiver->queue.news);
    }
}

/* ---- messages ---- */

/* Messages of one packet reach the application now: the stages up to here are over. */
static void measure_arrival(const helio_receiver *receiver, const helio_met_stream *met,
                            const helio_message *messages, size_t count, int64_t now_ns) {
    helio_hdr *const *histogram = met->object->histogram;
    const int64_t waited_ns = now_ns - receiver->in_order_ns; /* by two clocks, some ns apart */
    helio_record(histogram[HELIO_RECEIVER_DISPATCH_LATENCY], waited_ns > 0 ? waited_ns : 0, count);
    if (histogram[HELIO_RECEIVER_END_LATENCY] && messages->submit_ns) {
        helio_record(histogram[HELIO_RECEIVER_END_LATENCY], helio_wall_ns() - messages->submit_ns,
                     count);
    }
}

static size_t call_listener(helio_receiver *receiver, const helio_met_stream *met,
                            const helio_message *messages, size_t count) {
    if (!helio_receiver_is_measured(receiver)) {
        receiver->listener.on_messages(receiver->listener.context, messages, count);
        return count;
    }
    const int64_t start_ns = helio_monotonic_ns();
    measure_arrival(receiver, met, messages, count, start_ns);
    receiver->listener.on_messages(receiver->listener.context, messages, count);
    helio_record(met->object->histogram[HELIO_RECEIVER_CALLBACK_TIME],
                 helio_monotonic_ns() - start_ns, 1);
    return count;
}

static void tell(const helio_receiver *receiver, const helio_met_stream *met, helio_event_id event,
                 const char *what) {
    const size_t bytes = helio_receive_queue_bytes(&receiver->queue);
    helio_stats_event(
        receiver->instance->stats, helio_wall_ns(), event, met->object->slot,
        (const uint64_t[4]){bytes}, "%s: the receive queue %s, %zu of %zu bytes are in use",
        receiver->lane->base.endpoint.label, what, bytes, receiver->queue.ring.capacity);
}

static void on_full(helio_receiver *receiver, const helio_met_stream *met) {
    helio_count(&record_of(met)->queue_full, 1);
    const int64_t wall_ns = helio_wall_ns();
    if (wall_ns - receiver->full_told_ns >= HELIO_SECOND) {
        receiver->full_told_ns = wall_ns;
        receiver->full_told = true;
        tell(receiver, met, HELIO_EVENT_RECEIVE_QUEUE_FULL, "is full and delivery waits");
    }
}

static void on_drained(helio_receiver *receiver, const helio_met_stream *met) {
    helio_receive_queue_resume(&receiver->queue);
    if (receiver->full_told) {
        receiver->full_told = false;
        tell(receiver, met, HELIO_EVENT_RECEIVE_QUEUE_DRAINED,
             "has drained and delivery continues");
    }
}

static uint64_t waiting_bytes(const helio_met_stream *met) {
    return met->passage.pushed_bytes - met->passage.trimmed_bytes -
           helio_cell(&met->passage.taken_bytes);
}

/* Since when the wait in the queue is measured, with the application told where to count it; 0: it
 * is not. */
static int64_t measured_since(helio_receiver *receiver, helio_met_stream *met) {
    helio_hdr *const *histogram = met->object->histogram;
    if (!helio_receiver_is_measured(receiver) || !histogram[HELIO_RECEIVER_DISPATCH_LATENCY]) {
        return 0;
    }
    helio_receiver_open_waits(receiver, met);
    return receiver->in_order_ns ? receiver->in_order_ns : 1;
}

static size_t push_kept(helio_receiver *receiver, helio_met_stream *met,
                        const helio_message *messages, size_t count) {
    helio_receive_queue *queue = &receiver->queue;
    const int64_t now_ns = helio_monotonic_ns();
    const int64_t since_ns = measured_since(receiver, met);
    size_t taken = 0;
    helio_receive_queue_lock(queue);
    while (taken < count && helio_receive_queue_push_kept(queue, &messages[taken], &met->passage,
                                                          since_ns, now_ns)) {
        taken++;
    }
    helio_peak(&record_of(met)->queue_peak_bytes, waiting_bytes(met));
    helio_receive_queue_unlock(queue);
    return taken;
}

static size_t push_all(helio_receiver *receiver, helio_met_stream *met,
                       const helio_message *messages, size_t count) {
    const int64_t since_ns = measured_since(receiver, met);
    size_t taken = 0;
    if (since_ns) {
        while (taken < count && helio_receive_queue_push_measured(
                                    &receiver->queue, &messages[taken], &met->passage, since_ns)) {
            taken++;
        }
    } else {
        while (taken < count &&
               helio_receive_queue_push(&receiver->queue, &messages[taken], &met->passage)) {
            taken++;
        }
    }
    helio_peak(&record_of(met)->queue_peak_bytes, waiting_bytes(met));
    return taken;
}

static size_t enqueue(helio_receiver *receiver, helio_met_stream *met,
                      const helio_message *messages, size_t count) {
    helio_receive_queue *queue = &receiver->queue;
    receiver->lend_limit = 0; /* order: what comes later must not overtake these */
    if (helio_receive_queue_is_full(queue)) {
        if (!helio_receive_queue_is_low(queue)) {
            return 0;
        }
        on_drained(receiver, met);
    }
    const size_t taken = queue->kept ? push_kept(receiver, met, messages, count)
                                     : push_all(receiver, met, messages, count);
    if (taken < count) {
        on_full(receiver, met);
    }
    if (receiver->mark.high > 0) {
        helio_receiver_watch(receiver, helio_wall_ns());
    }
    if (taken) {
        helio_signal_notify(&queue->news);
    }
    return taken;
}

void helio_receiver_measure_lent(const helio_receiver *receiver, const helio_met_stream *met,
                                 const helio_message *messages, size_t count) {
    if (met->object->histogram[HELIO_RECEIVER_DISPATCH_LATENCY]) {
        measure_arrival(receiver, met, messages, count, helio_monotonic_ns());
    }
}

/* The caller of a receive in progress is shown the messages where they are.  What it has no place
 * for, and all that comes after, waits in the window, or in the queue if the window is short of
 * room. */
static size_t lend(helio_receiver *receiver, helio_met_stream *met, const helio_message *messages,
                   size_t count) {
    const size_t place =
        receiver->lend_limit > receiver->lent ? receiver->lend_limit - receiver->lent : 0;
    const size_t taken = count < place ? count : place;
    if (taken < count) {
        receiver->lane->loan.is_short = true;
    }
    if (taken == 0) {
        return 0;
    }
    helio_message *to = receiver->lend_to + receiver->lent;
    if (taken == 1) {
        *to = *messages; /* a lone one without a call */
    } else {
        memcpy(to, messages, taken * sizeof *messages);
    }
    helio_receiver_count_lent(receiver, met, messages, taken);
    return taken;
}

/* They take no message of a stream there was no memory for. */
static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    helio_receiver *receiver = context;
    helio_met_stream *met = met_stream(receiver, messages->stream);
    if (!met) {
        return 0;
    }
    return receiver->has_listener ? call_listener(receiver, met, messages, count)
                                  : enqueue(receiver, met, messages, count);
}

static size_t on_lasting_messages(void *context, const helio_message *messages, size_t count) {
    helio_receiver *receiver = context;
    helio_met_stream *met = met_stream(receiver, messages->stream);
    if (!met || (!receiver->has_listener && !receiver->lend_to)) {
        return 0;
    }
    return receiver->has_listener ? call_listener(receiver, met, messages, count)
                                  : lend(receiver, met, messages, count);
}

static void on_loss(void *context, const helio_loss *loss) {
    helio_receiver *receiver = context;
    if (receiver->has_listener) {
        if (receiver->listener.on_loss) {
            receiver->listener.on_loss(receiver->listener.context, loss);
        }
        return;
    }
    pthread_mutex_lock(&receiver->lock);
    helio_losses_push(&receiver->losses, loss);
    pthread_mutex_unlock(&receiver->lock);
}

static void read_gauge(void *context, helio_sink_gauge *out) {
    const helio_receive_queue *queue = &((const helio_receiver *)context)->queue;
    *out = (helio_sink_gauge){
        .used_bytes = helio_receive_queue_bytes(queue),
        .limit_bytes = queue->ring.capacity,
        .given_bytes = helio_receive_queue_given(queue),
    };
}

/* Messages of a stream that the application was not given, or did not give back: of those that it
 * has, all may be the stream's. */
static uint64_t read_waiting(void *context, uint32_t stream) {
    helio_receiver *receiver = context;
    const helio_met_stream *met = met_stream(receiver, stream);
    const uint64_t given_out = atomic_load_explicit(&receiver->given_out, memory_order_acquire);
    if (!met || given_out == UINT64_MAX) {
        return UINT64_MAX;
    }
    if (receiver->queue.kept) {
        helio_receive_queue_lock(&receiver->queue);
    }
    const helio_passage *passage = &met->passage;
    const uint64_t waiting =
        passage->pushed_messages - passage->trimmed_messages - helio_cell(&passage->taken_messages);
    if (receiver->queue.kept) {
        helio_receive_queue_unlock(&receiver->queue);
    }
    return waiting + given_out + receiver->lent;
}

static void on_notice(void *context, const helio_notice *notice) {
    helio_receiver *receiver = context;
    pthread_mutex_lock(&receiver->lock);
    helio_notices_push(&receiver->notices, notice);
    pthread_mutex_unlock(&receiver->lock);
}

bool helio_receiver_has_acks(const helio_receiver *receiver) {
    return atomic_load_explicit(&receiver->has_acks, memory_order_relaxed);
}

void helio_receiver_pass_acks(helio_receiver *receiver, helio_moment moment) {
    atomic_store_explicit(&receiver->has_acks, false, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* what is told from here on raises it again */
    for (helio_met_stream *met = receiver->met.there.oldest; met; met = met->newer) {
        const uint64_t next = helio_cell(&met->acknowledged);
        if (next > met->acknowledged_told) {
            met->acknowledged_told = next;
            helio_rx_endpoint_acknowledge(receiver->lane->endpoint, receiver->subscription,
                                          met->number, next, moment);
        }
    }
}

helio_sink_ack helio_sink_ack_of(int64_t option) {
    switch (option) {
    case HELIO_ACK_APP:
    case HELIO_ACK_STORE:
        return HELIO_SINK_ACK_APP;
    case HELIO_ACK_AUTO:
        return HELIO_SINK_ACK_AUTO;
    default:
        return HELIO_SINK_ACK_NONE;
    }
}

helio_sink helio_receiver_sink(helio_receiver *receiver) {
    return (helio_sink){
        .context = receiver,
        .on_stream = on_stream,
        .on_stream_end = on_stream_end,
        .on_messages = on_messages,
        .on_loss = on_loss,
        .on_notice = on_notice,
        .on_lasting_messages = on_lasting_messages,
        .ack = helio_sink_ack_of(receiver->ack),
        .is_store = receiver->ack == HELIO_ACK_STORE,
        .is_found = receiver->is_found,
        .read_gauge = receiver->has_listener ? NULL : read_gauge,
        .credit = receiver->credit,
        .read_waiting = receiver->has_listener ? NULL : read_waiting,
        .measured_ns = &receiver->in_order_ns,
    };
}
