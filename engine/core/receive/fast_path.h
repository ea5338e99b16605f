/* The fast path of receiving: the common packet, from datagram to sink, in one function.
 *
 * The common packet is whole data (ODATA) without options, from the stream's source, on a stream in
 * its steady state: nothing is blocked or being joined.  It is next in order, with one batch of
 * messages for one subscription, and nothing is missing or held; or it follows the newest packet while
 * an older one is missing, and then it is held, unread.  Everything else, and every packet that is not
 * well formed, takes the general path (endpoint.c), which alone decides what it means.
 *
 * Both paths agree: deliveries, statistics and state are the same (tests/fuzz/fuzz_pair.c runs each
 * input with and without the fast path and compares). */
#ifndef HELIO_RECEIVE_FAST_PATH_H
#define HELIO_RECEIVE_FAST_PATH_H

#include "receive/endpoint.h"

/* Takes a datagram.  False: nothing has changed, the general path takes it.  Arguments as for
 * helio_rx_endpoint_on_packet, which has counted the datagram. */
bool helio_rx_fast_path(helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                        const helio_address *from, int64_t receive_ns, helio_moment moment);

#endif
