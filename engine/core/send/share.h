/* One rate for several streams: that of their instance.
 *
 * Streams whose data waits stand in a ring and take turns.  Whoever has the turn sends up to a
 * portion of bytes, then the next has it (deficit round robin: what a packet took beyond the
 * portion is missing from its next one).  So streams with much to send get the same bytes each,
 * whatever their packets' lengths, and one with little to send gets that.  A stream leaves the ring
 * when nothing of it waits, or when it does not ask for its turn for a moment.
 *
 * Repairs and control packets take no turn; what they cost is taken from their stream's portion.
 *
 * One thread uses it. */
#ifndef HELIO_SEND_SHARE_H
#define HELIO_SEND_SHARE_H

#include "send/limit.h"

/* A stream's place. */
typedef struct helio_tx_place {
    struct helio_tx_place *next, *before; /* NULL: not in the ring */
    int64_t left;                         /* of its portion */
    int64_t asked_ns;
} helio_tx_place;

typedef struct helio_tx_share {
    helio_tx_limit limit;
    helio_tx_place *turn;   /* whose it is; NULL: nobody waits */
    uint32_t asked_in_vain; /* times others asked since it did */
} helio_tx_share;

void helio_tx_share_init(helio_tx_share *share, uint64_t rate, int64_t now_ns);

/* Whether the stream may send data now; if not, it waits for its turn. */
bool helio_tx_share_takes(helio_tx_share *share, helio_tx_place *place, int64_t now_ns);
/* Something of the stream left. */
void helio_tx_share_charge(helio_tx_share *share, helio_tx_place *place, uint64_t bytes);
/* Nothing of it waits. */
void helio_tx_share_leave(helio_tx_share *share, helio_tx_place *place);

#endif
