/* Credit: how far receivers let a source go on with each topic (docs/wire.md 1.4).
 *
 * The limit of a topic is the least grant that counts.  A grant counts while its receiver repeats
 * it and is neither suspended nor expelled nor gone.  Without a grant that counts nothing is sent.
 * The grant of a receiver never falls within one life of the receiver.
 *
 * Each topic has an array of grants by the receiver's index in the table of receivers
 * (receivers/table.h), no longer than that table.  The table decides which receiver a packet comes
 * from.  A stream has any number of topics, so grants are not part of a receiver's entry. */
#ifndef HELIO_SEND_CREDIT_H
#define HELIO_SEND_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "receivers/table.h"
#include "send/stream.h"

/* The most messages that a receiver may grant beyond the last one sent. */
#define HELIO_TX_CREDIT_MAX (UINT64_C(1) << 31)

typedef struct helio_tx_granted {
    uint64_t limit;
    uint64_t incarnation;
    int64_t heard_ns;
    /* helio_receiver_entry.born of the receiver; 0: no grant. */
    uint32_t born;
} helio_tx_granted;

typedef struct helio_tx_credit {
    /* By index. */
    helio_tx_granted *granted;
    uint32_t capacity;
    /* The first message that may not be sent; 0: no grant counts. */
    uint64_t limit;
    /* The receiver with the least grant; HELIO_RECEIVER_NONE: no grant counts. */
    helio_receiver_index index;
    /* Messages wait for more credit. */
    bool is_waiting;
    /* The wait is counted up to this time. */
    int64_t waits_since_ns;
} helio_tx_credit;

void helio_tx_credit_fini(helio_tx_credit *credit);

/* The receiver at an index, which is PRESENT, grants the topic up to `limit`.  False: no memory. */
bool helio_tx_credit_take(helio_tx_credit *credit, helio_receivers *receivers,
                          helio_receiver_index index, uint64_t limit, int64_t now_ns);
/* Finds the least grant that counts now. */
void helio_tx_credit_weigh(helio_tx_credit *credit, helio_receivers *receivers, int64_t now_ns);

/* ---- of a stream ---- */

/* An ACK with grants came, from the receiver at `index` if `is_proven`.  Returns whether it raised
 * the limit of a topic. */
bool helio_tx_on_grants(helio_tx_stream *stream, const helio_pgm_packet *ack,
                        helio_receiver_index index, bool is_proven, helio_moment moment);
/* To be called every 100 ms or so. */
void helio_tx_tend_credit(helio_tx_stream *stream, int64_t now_ns);

#endif
