/* An endpoint that repairs the losses of other receivers: a designated local repairer (repair/dlr.h)
 * of all streams that it tracks.
 *
 * NAKs for a tracked stream come to the address that its feedback leaves from, which is the one that
 * receivers are configured with.  The endpoint requests what it misses itself of the source, as any
 * receiver does. */
#ifndef HELIO_RECEIVE_REPAIRS_H
#define HELIO_RECEIVE_REPAIRS_H

#include "receive/stream.h"
#include "repair/dlr.h"

typedef struct helio_rx_repairs {
    helio_dlr *dlr;                    /* NULL: it repairs nothing */
    uint64_t bytes;                    /* of its memory */
    uint64_t kept_packets, kept_bytes; /* as last added to the statistics */
} helio_rx_repairs;

/* Opens a repairer if `config` wants one.  0 or NOMEM. */
int helio_rx_repairs_open(helio_rx_repairs *repairs, const helio_rx_endpoint_config *config,
                          helio_outlet outlet, helio_instance_stats *instance);
void helio_rx_repairs_close(helio_rx_repairs *repairs, helio_account *account,
                            helio_instance_stats *instance);

/* The functions below need a repairer. */

/* Keeps data that came, and sends it to those who wait for it. */
void helio_rx_repairs_keep(helio_rx_repairs *repairs, helio_rx_stream *stream,
                           const helio_pgm_packet *packet, const void *datagram, size_t length,
                           helio_moment moment);
/* Answers a NAK of another receiver. */
void helio_rx_repairs_answer(helio_rx_repairs *repairs, helio_rx_stream *stream,
                             const helio_pgm_packet *nak, const helio_address *from,
                             helio_moment moment);

/* Brings the gauges up to date; without a repairer it does nothing. */
void helio_rx_repairs_measure(helio_rx_repairs *repairs, helio_instance_stats *instance,
                              int64_t now_ns);

#endif
