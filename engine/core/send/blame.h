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
 * Looked at whenever data is held up and while it is, at most every 100 us, so a time may be that much
 * too long or too short. */
#ifndef HELIO_SEND_BLAME_H
#define HELIO_SEND_BLAME_H

#include <stdbool.h>
#include <stdint.h>

#include "policy/badness.h"

struct helio_tx_stream;

/* What is kept of a receiver, by its entry. */
typedef struct helio_tx_suspect {
    uint32_t born; /* which receiver: another one in its entry begins anew */
    uint64_t blame_ns;
    helio_badness badness;
} helio_tx_suspect;

typedef struct helio_tx_blame {
    helio_tx_suspect *suspects; /* by index */
    uint32_t entries;
    helio_receiver_index index; /* who is waited for now; HELIO_RECEIVER_NONE: nobody */
    uint32_t born;
    int64_t since_ns;  /* as far as it is counted */
    int64_t looked_ns; /* when badness was looked at */
} helio_tx_blame;

/* 0 or NOMEM; release with helio_tx_blame_fini. */
int helio_tx_blame_init(helio_tx_blame *blame, uint32_t entries, int64_t now_ns);
void helio_tx_blame_fini(helio_tx_blame *blame);

/* Something may have changed about whether data waits, and for whom. */
void helio_tx_blame_look(struct helio_tx_stream *stream, int64_t now_ns);

/* Now and then: how much trouble each receiver has been. */
void helio_tx_blame_tend(struct helio_tx_stream *stream, int64_t now_ns);

/* Of the receiver at an index that is PRESENT: the time it was waited for, and its badness. */
uint64_t helio_tx_blame_ns(const struct helio_tx_stream *stream, helio_receiver_index index);
double helio_tx_badness(const struct helio_tx_stream *stream, helio_receiver_index index);

#endif
