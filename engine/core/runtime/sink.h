/* The engine's side of a receiver, as the receive endpoint sees it. */
#ifndef HELIO_RUNTIME_SINK_H
#define HELIO_RUNTIME_SINK_H

#include "receive/sink.h"
#include "runtime/receiver.h"

/* As the option `ack` says. */
helio_sink_ack helio_sink_ack_of(int64_t option);
helio_sink helio_receiver_sink(helio_receiver *receiver);

/* The time since the messages handed over last were in order is to be recorded. */
static inline bool helio_receiver_is_measured(const helio_receiver *receiver) {
    return receiver->in_order_ns != HELIO_NOT_MEASURED;
}
/* Records it, of messages that the caller of a receive gets. */
void helio_receiver_measure_lent(const helio_receiver *receiver, const helio_met_stream *met,
                                 const helio_message *messages, size_t count);
/* The caller of a receive in progress has these messages, whose bytes stay where they are until it
 * calls again. */
static inline void helio_receiver_count_lent(helio_receiver *receiver, helio_met_stream *met,
                                             const helio_message *messages, size_t count) {
    if (helio_receiver_is_measured(receiver)) {
        helio_receiver_measure_lent(receiver, met, messages, count);
    }
    receiver->lent += count;
    met->lent += count;
    receiver->lane->is_lent = receiver->lane->loan.is_out = true;
}

/* Sets the gauges of the receiver's queue, trims what is too old, and reports trimmed messages and
 * the fill. */
void helio_receiver_refresh(helio_receiver *receiver, helio_moment moment);
/* The last time: reports all trimmed messages. */
void helio_receiver_settle(helio_receiver *receiver, helio_moment moment);
/* Reports marks the queue crosses. */
void helio_receiver_watch(helio_receiver *receiver, int64_t wall_ns);
/* The application counts what messages of the stream wait for it as the level of detail has it. */
void helio_receiver_open_waits(helio_receiver *receiver, helio_met_stream *met);
/* A message of the stream is trimmed; under the queue's lock. */
void helio_receiver_on_trim(helio_passage *passage, int cause);

/* The application has acknowledged something that the endpoint does not know of yet. */
bool helio_receiver_has_acks(const helio_receiver *receiver);
/* Notifies the endpoint. */
void helio_receiver_pass_acks(helio_receiver *receiver, helio_moment moment);

#endif
