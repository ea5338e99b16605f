/* A topic being sent: the application's end of a transmit lane. */
#ifndef HELIO_RUNTIME_TRANSMITTER_H
#define HELIO_RUNTIME_TRANSMITTER_H

#include "options/keeping.h"
#include "queue/acked.h"
#include "queue/submit_queue.h"
#include "runtime/tx_lane.h"

struct helio_transmitter {
    helio_submit_queue queue; /* without memory when all goes into packets at once */
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
    uint64_t taken;   /* messages the engine took off the ring */
    uint64_t in_hand; /* taken off the kept queue and not in a packet yet */
    uint64_t accepted_counted, queued_counted;

    _Atomic bool awaits_credit; /* its messages wait for credit, as the last cycle saw it */
    bool never_waits;           /* for room: it is refused at once */
    bool drops;                 /* so there always is room */
    helio_mark mark;
    /* What was dropped of the queue, under its lock, as counted, and in all as told. */
    uint64_t dropped[HELIO_DROPPED_CAUSES];
    uint64_t dropped_counted[HELIO_DROPPED_CAUSES];
    uint64_t dropped_told;
    int64_t dropped_told_ns; /* wall clock */
};

/* Engine: takes the transmitter out of its lane once its queue is empty; false: not yet. */
bool helio_transmitter_detach(helio_transmitter *transmitter, helio_moment moment);
/* Engine, now and then: sets what is counted and tells what its queue has dropped, `is_last`: all
 * of it, and how full it is. */
void helio_transmitter_refresh(helio_transmitter *transmitter, bool is_last, helio_moment moment);
/* The same: adds what it accepted, dropped and holds to the topic's books, and shows these; to be
 * done for all transmitters of a lane, one after the other (transmitter_totals.c). */
void helio_transmitter_collect(helio_transmitter *transmitter);
void helio_transmitter_show(const helio_transmitter *transmitter);
/* Frees a transmitter that was detached. */
void helio_transmitter_free(helio_transmitter *transmitter);

#endif
