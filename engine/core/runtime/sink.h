/* The engine's side of a receiver, as the receive endpoint sees it. */
#ifndef HELIO_RUNTIME_SINK_H
#define HELIO_RUNTIME_SINK_H

#include "runtime/receiver.h"
#include "topic/sink.h"

helio_sink helio_receiver_sink(helio_receiver *receiver);

/* Sets the gauges of the receiver's queue. */
void helio_receiver_refresh(helio_receiver *receiver);

/* The application has acknowledged something that the endpoint does not know of yet. */
bool helio_receiver_has_acks(const helio_receiver *receiver);
/* Tells the endpoint. */
void helio_receiver_pass_acks(helio_receiver *receiver, helio_clock clock);

#endif
