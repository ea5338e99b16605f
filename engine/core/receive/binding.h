/* Which address a stream's packets must come from (docs/adr/0028-belief.md).
 *
 * A Heliograph source sends everything from one socket, whose port is the data-source port of the
 * TSI. A stream whose first packet came from that port is bound to IP and port: nobody else on that
 * host, or behind the same address translation, can have the port, so packets from another port are
 * not the source's.  A stream whose first packet came from another port (a program with separate
 * sockets for data and SPMs; ports rewritten on the way) is bound to the IP alone.  The port of the
 * TSI takes such a stream over: the stream is discovered again by that packet.  On a raw endpoint
 * (is_raw) it does so only before any data came, because programs of other make deliver data there,
 * and anybody can open the port of their TSI.
 *
 * On connections a stream is bound to its connection, until that is closed, or has been silent long
 * enough that its other end has lost it.
 *
 * Raw IP has no ports: they are 0, so the IP alone binds. */
#ifndef HELIO_RECEIVE_BINDING_H
#define HELIO_RECEIVE_BINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

typedef struct helio_rx_stream helio_rx_stream;

typedef struct helio_rx_binding {
    uint16_t port;    /* of the last packet; the bound one when is_exact */
    bool is_exact;    /* to IP and port */
    bool is_detached; /* its connection is gone */
} helio_rx_binding;

typedef enum helio_rx_origin {
    HELIO_RX_OF_SOURCE,
    HELIO_RX_OF_OWNER, /* from the port of the TSI, and the stream was discovered at another */
    HELIO_RX_OF_ANOTHER,
} helio_rx_origin;

/* The packet is from `source`, compared by IP and port (`is_exact`) or by IP. */
static inline bool helio_rx_is_from(const helio_address *source, bool is_exact,
                                    const helio_address *from) {
    return is_exact ? helio_address_equal(source, from) : helio_address_same_ip(source, from);
}

/* The stream was discovered by a packet from this address. */
void helio_rx_bind(helio_rx_stream *stream, const helio_address *from);
/* Judges a packet whose address or port differs from the previous one. */
helio_rx_origin helio_rx_judge_origin(helio_rx_stream *stream, const helio_address *from,
                                      int64_t now_ns);

#endif
