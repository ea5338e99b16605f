/* Which address a stream's packets must come from (docs/adr/0028-belief.md).
 *
 * A source of our own make sends everything from one socket, whose port is the data-source port of
 * the TSI.  A stream whose first packet came from that port is bound to IP and port: nobody else on
 * that host, or behind the same address translation, can have the port, so packets from another port
 * are not the source's.  A stream whose first packet came from another port (programs with one socket
 * for data and one for SPMs; ports rewritten on the way) is bound to the IP alone.  The port of the TSI
 * takes such a stream over: it is met again by that packet, as if there had been none before.
 * Where payloads are bare (is_raw) it does so only before any data came, as programs of other make,
 * whose port of the TSI anybody can open, deliver data there.
 *
 * Where sources are connected a stream is bound to its connection, until that is gone or has been
 * silent for so long that its other end has lost it.
 *
 * Raw IP has no ports: they are 0, so the IP binds alone. */
#ifndef HELIO_RECEIVE_BINDING_H
#define HELIO_RECEIVE_BINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"

typedef struct helio_rx_stream helio_rx_stream;

typedef struct helio_rx_binding {
    uint16_t port;    /* of the last packet; the only one that counts when is_exact */
    bool is_exact;    /* to IP and port */
    bool is_detached; /* its connection is gone */
} helio_rx_binding;

typedef enum helio_rx_origin {
    HELIO_RX_OF_SOURCE,
    HELIO_RX_OF_OWNER, /* of the port that the TSI names, and the stream was met at another */
    HELIO_RX_OF_ANOTHER,
} helio_rx_origin;

/* The packet is from the source of a stream that was known by its port (`is_exact`), or its IP. */
static inline bool helio_rx_is_from(const helio_address *source, bool is_exact,
                                    const helio_address *from) {
    return is_exact ? helio_address_equal(source, from) : helio_address_same_ip(source, from);
}

/* The stream is met by a packet from here. */
void helio_rx_bind(helio_rx_stream *stream, const helio_address *from);
/* A packet came from another address or port than the one before. */
helio_rx_origin helio_rx_judge_origin(helio_rx_stream *stream, const helio_address *from,
                                      int64_t now_ns);

#endif
