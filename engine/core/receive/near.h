/* The designated local repairer (repair/dlr.h) as its receivers see it (docs/adr/0074-repairers.md).
 *
 * A receiver that is configured with a repairer requests missing packets there first (nak.h).  From
 * that one address it accepts confirmations of its own requests, and repairs of packets that it
 * misses.  Everything else from there is counted as a duplicate or ignored: a repairer begins no
 * stream, moves no window, and keeps no silent stream alive. */
#ifndef HELIO_RECEIVE_NEAR_H
#define HELIO_RECEIVE_NEAR_H

#include "receive/stream.h"

/* Requests for one packet before the source is asked. */
#define HELIO_RX_NEAR_TRIES 3

/* Requests missing packets of the repairer. */
void helio_rx_near_ask(helio_rx_stream *stream, const helio_nak_round *round, helio_moment moment);
/* An RDATA or NCF of the repairer (helio_rx_is_near). */
void helio_rx_near_on_packet(helio_rx_stream *stream, const helio_pgm_packet *packet, size_t bytes,
                             int64_t receive_ns, helio_moment moment);

#endif
