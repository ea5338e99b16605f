/* One rate for several streams: that of their instance.
 *
 * Streams with waiting data take turns in a ring.  The stream with the turn sends up to a portion of
 * bytes, then the next has the turn (deficit round robin: bytes beyond the portion are taken from
 * the next one).  So streams with much to send get the same number of bytes, whatever the length of
 * their packets.  A stream leaves the ring when none of its data waits, or when it does not ask for
 * its turn for a moment.
 *
 * Repairs and control packets need no turn; their bytes are taken from their stream's portion.
 *
 * One thread uses it. */
#ifndef HELIO_SEND_SHARE_H
#define HELIO_SEND_SHARE_H

#include "send/limit.h"

/* A stream's place in the ring. */
typedef struct helio_tx_place {
    /* NULL: not in the ring. */
    struct helio_tx_place *next, *before;
    /* Bytes left of its portion. */
    int64_t left;
    int64_t asked_ns;
} helio_tx_place;

typedef struct helio_tx_share {
    helio_tx_limit limit;
    /* The stream with the turn; NULL: none waits. */
    helio_tx_place *turn;
    /* Times that others asked since it did. */
    uint32_t asked_in_vain;
} helio_tx_share;

void helio_tx_share_init(helio_tx_share *share, uint64_t rate, int64_t now_ns);

/* Whether the stream may send data now; if not, it waits for its turn. */
bool helio_tx_share_takes(helio_tx_share *share, helio_tx_place *place, int64_t now_ns);
/* The stream has sent `bytes`. */
void helio_tx_share_charge(helio_tx_share *share, helio_tx_place *place, uint64_t bytes);
/* None of the stream's data waits. */
void helio_tx_share_leave(helio_tx_share *share, helio_tx_place *place);

#endif
