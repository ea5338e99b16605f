/* Credit: how far receivers let a source go on with each topic (docs/wire.md 1.4).
 *
 * A topic goes as far as the receiver that grants least: of those that grant it anything, are
 * heard, repeat their grants, and are neither suspended nor expelled nor gone.  While none is left,
 * or before there was one, nothing goes.  What a receiver grants only grows, but for a later life
 * of it.
 *
 * Grants are kept by the receivers' entries in the table of receivers (receivers/table.h), which
 * decides who speaks for whom; what is kept is as long as that table at most. */
#ifndef HELIO_SEND_CREDIT_H
#define HELIO_SEND_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "receivers/table.h"
#include "send/stream.h"

/* The most anybody grants beyond what was sent. */
#define HELIO_TX_CREDIT_MAX (UINT64_C(1) << 31)

typedef struct helio_tx_granted {
    uint64_t limit;
    uint64_t incarnation;
    int64_t heard_ns;
    uint32_t born;
    bool is_set;
} helio_tx_granted;

typedef struct helio_tx_credit {
    helio_tx_granted *granted; /* by index */
    uint32_t capacity;
    uint64_t limit; /* the first message that may not be sent; 0: nothing was granted */
    helio_receiver_index
        index;              /* of the receiver that granted least; HELIO_RECEIVER_NONE: none did */
    bool is_waiting;        /* messages wait for more */
    int64_t waits_since_ns; /* as far as it is counted */
} helio_tx_credit;

void helio_tx_credit_fini(helio_tx_credit *credit);

/* The receiver at an index, which is PRESENT, grants the topic up to `limit`.  False: there is no
 * memory for it. */
bool helio_tx_credit_take(helio_tx_credit *credit, helio_receivers *receivers,
                          helio_receiver_index index, uint64_t limit, int64_t now_ns);
/* The limit follows who is there. */
void helio_tx_credit_weigh(helio_tx_credit *credit, helio_receivers *receivers, int64_t now_ns);

/* ---- of a stream ---- */

/* An ACK came with grants, from the receiver at `index` if `is_proven`.  Whether they let some
 * topic go further. */
bool helio_tx_on_grants(helio_tx_stream *stream, const helio_pgm_packet *ack,
                        helio_receiver_index index, bool is_proven, helio_moment moment);
/* Now and then. */
void helio_tx_tend_credit(helio_tx_stream *stream, int64_t now_ns);

#endif
