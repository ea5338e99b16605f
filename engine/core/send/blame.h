/* The receiver that a stream waits for, the time of it, and the badness of each receiver
 * (policy/badness.h).
 *
 * Data often waits because of one receiver:
 *
 *     window        its window sets the send limit (flow_window)
 *     PGMCC         it is the acker of RFC 3208
 *     ack           its acknowledgement would release packets from the history (acks)
 *     credit        it granted the waiting topic least (credit)
 *     loss or pace  the rate was lowered for it (rate policy dynamic, slow policy pace)
 *
 * The whole time is charged to that receiver; there is one at a time.  Waits for the fixed rate,
 * for repairs, for a turn among streams, or for receivers that are absent are charged to none.  With
 * flow_window max the receiver with the largest window is charged: the stream waits for no other.
 *
 * The receiver is looked up when data begins to wait and at most every 100 us from then on, so a
 * time may be wrong by that much. */
#ifndef HELIO_SEND_BLAME_H
#define HELIO_SEND_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/badness.h"

struct helio_tx_stream;

/* Per-receiver state in the table. */
typedef struct helio_tx_blamed {
    uint64_t blame_ns;
    helio_badness badness;
} helio_tx_blamed;

typedef struct helio_tx_blame {
    /* The receiver that the stream waits for now; HELIO_RECEIVER_NONE: none. */
    helio_receiver_index index;
    uint32_t born;
    /* The wait is charged up to this time. */
    int64_t since_ns;
    /* Time of the last update of badness. */
    int64_t looked_ns;
} helio_tx_blame;

void helio_tx_blame_init(helio_tx_blame *blame, int64_t now_ns);

/* To be called when data may have begun or ceased to wait, or for another receiver. */
void helio_tx_blame_look(struct helio_tx_stream *stream, int64_t now_ns);

/* To be called every 100 ms or so: updates the badness of all receivers. */
void helio_tx_blame_tend(struct helio_tx_stream *stream, int64_t now_ns);

/* Of the receiver at an index that is PRESENT: the time charged to it, and its badness. */
uint64_t helio_tx_blame_ns(const struct helio_tx_stream *stream, helio_receiver_index index);
double helio_tx_badness(const struct helio_tx_stream *stream, helio_receiver_index index);

#endif
