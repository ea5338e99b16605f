/* The fast path of receiving: the common packet, from datagram to sink, in one function.
 *
 * The common packet is whole data (ODATA) without options, from the stream's source, on a stream in
 * its steady state: nothing is blocked or being joined.  It is next in order, with one batch of
 * messages for one subscription, and nothing is missing or held; or it follows the newest packet while
 * an older one is missing, and then it is held, unread.  Everything else, and every packet that is not
 * well formed, takes the general path (endpoint.c), which alone decides what it means.
 *
 * Within a batch (helio_rx_endpoint_begin_batch) its packets are counted in runs: together, when the
 * stream, the subscription or the path changes, and at the end.
 *
 * Both paths agree: deliveries, statistics and state are the same (tests/fuzz/fuzz_pair.c runs each
 * input with and without the fast path and compares). */
#ifndef HELIO_RECEIVE_FAST_PATH_H
#define HELIO_RECEIVE_FAST_PATH_H

#include "base/datagram.h"
#include "receive/endpoint.h"

/* Takes a datagram.  False: nothing has changed, the general path takes it.  Arguments as for
 * helio_rx_endpoint_on_packet. */
bool helio_rx_fast_path(helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                        const helio_address *from, int64_t receive_ns, helio_moment moment);

/* Takes a datagram whose only message is the next one of stream number `number` of a subscription,
 * and puts the message where the caller of a receive wants it, without the sink: what the sink
 * would do then is the caller's.  So the caller must be the only one who has subscriptions to the
 * endpoint's topics, and lend what it takes (helio_rx_endpoint_config.loan).  The datagram was read
 * at this moment.  False: nothing has changed; the datagram takes the way of all others. */
bool helio_rx_take_lone(helio_rx_endpoint *endpoint, const helio_datagram *datagram,
                        uint32_t number, helio_moment moment, helio_message *to);

#endif
