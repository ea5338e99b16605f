/* Which receiver a stream waits for, for how long, and how much trouble each is (policy/badness.h).
 *
 * While data waits there is often one receiver without which it would not:
 *
 *     its room          the window that sets how far may be sent (flow_window)
 *     its word          PGMCC's acker
 *     its ack           the one whose acknowledgement would let the history go on (acks)
 *     its credit        the one that granted the waiting topic least (credit)
 *     its loss or pace  the one the rate was lowered for (rate policy dynamic, slow policy pace)
 *
 * The time is that receiver's, in full: there is one at a time.  Waiting for the fixed rate, for
 * repairs, for a turn among streams, or for receivers that are not there, is nobody's.  Under
 * flow_window max it is the receiver with the most room: nobody else could be waited for.
 *
 * Looked at whenever data is held up and while it is, at most every 100 us, so a time may be that
 * much too long or too short. */
#ifndef HELIO_SEND_BLAME_H
#define HELIO_SEND_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/badness.h"

struct helio_tx_stream;

/* What is kept of a receiver in its entry of the table. */
typedef struct helio_tx_blamed {
    uint64_t blame_ns;
    helio_badness badness;
} helio_tx_blamed;

typedef struct helio_tx_blame {
    /* The receiver that is waited for now; HELIO_RECEIVER_NONE: none. */
    helio_receiver_index index;
    uint32_t born;
    /* As far as it is counted. */
    int64_t since_ns;
    /* When badness was looked at. */
    int64_t looked_ns;
} helio_tx_blame;

void helio_tx_blame_init(helio_tx_blame *blame, int64_t now_ns);

/* Something may have changed about whether data waits, and for whom. */
void helio_tx_blame_look(struct helio_tx_stream *stream, int64_t now_ns);

/* Now and then: how much trouble each receiver has been. */
void helio_tx_blame_tend(struct helio_tx_stream *stream, int64_t now_ns);

/* Of the receiver at an index that is PRESENT: the time it was waited for, and its badness. */
uint64_t helio_tx_blame_ns(const struct helio_tx_stream *stream, helio_receiver_index index);
double helio_tx_badness(const struct helio_tx_stream *stream, helio_receiver_index index);

#endif
