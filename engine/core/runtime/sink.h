/* The engine's side of a receiver, as the receive endpoint sees it. */
#ifndef HELIO_RUNTIME_SINK_H
#define HELIO_RUNTIME_SINK_H

#include "runtime/receiver.h"
#include "topic/sink.h"

helio_sink helio_receiver_sink(helio_receiver *receiver);

/* Sets the gauges of the receiver's queue. */
void helio_receiver_refresh(helio_receiver *receiver);

#endif
