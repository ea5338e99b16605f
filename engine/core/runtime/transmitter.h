/* A topic being sent: the application's end of a transmit lane. */
#ifndef HELIO_RUNTIME_TRANSMITTER_H
#define HELIO_RUNTIME_TRANSMITTER_H

#include "runtime/acked.h"
#include "runtime/submit_queue.h"
#include "runtime/tx_lane.h"

struct helio_transmitter {
    helio_submit_queue queue; /* mode thread; without memory in mode poll */
    helio_instance *instance;
    helio_tx_lane *lane;
    helio_tx_topic *topic;
    size_t max_message_bytes;
    bool is_raw; /* no message may be empty */
    helio_acked acked;
    void (*on_ack)(void *context, const helio_ack *ack); /* may be NULL */
    void *on_ack_context;
    int64_t stuck_ns;  /* it is being destroyed and has waited for acknowledgements since; 0: no */
    int64_t jammed_ns; /* the same for room in the channel, */
    uint64_t jammed_bytes; /* with so many bytes in the queue */
    char stream[HELIO_TSI_TEXT];

    helio_transmitter *next; /* of the lane */
    bool unflushed;          /* its messages are in packets not yet handed to the network */
    uint64_t refused_counted;
};

/* Engine: takes the transmitter out of its lane once its queue is empty; false: not yet. */
bool helio_transmitter_detach(helio_transmitter *transmitter, helio_clock clock);
/* Frees a transmitter that was detached. */
void helio_transmitter_free(helio_transmitter *transmitter);

#endif
