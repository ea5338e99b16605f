/* The fast path of sending: the common message, from the application's bytes to the network, in one
 * function.
 *
 * The common message is alone and fits one packet.  Its stream is in its steady state: no packet is
 * open, no repair waits, and nothing limits sending (rate, send limit, credit, acknowledgements).
 * Every other message takes the general path (stream.c, batcher.c).
 *
 * The packet is given to the network first and counted then.
 *
 * Both paths agree: packets, statistics, histograms and deadlines are the same
 * (tests/sim/sim_send_fast_path.c runs each program with and without the fast path and compares). */
#ifndef HELIO_SEND_FAST_PATH_H
#define HELIO_SEND_FAST_PATH_H

#include "send/stream.h"

/* As helio_tx_stream_append, submitted now, and helio_tx_stream_flush.  False: nothing has changed,
 * the general path takes the message. */
bool helio_tx_fast_path(helio_tx_stream *stream, helio_tx_topic *topic, const void *data,
                        size_t length, helio_moment moment);

#endif
