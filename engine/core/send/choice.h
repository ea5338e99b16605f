/* What a person calls a stream and its receivers, and which they are.
 *
 * A stream is called by its TSI, or by a pattern that one of its open topics matches.  A receiver
 * is called by the name or the id (16 hexadecimal digits) it reports, or by the address its
 * feedback comes from, with or without the port. */
#ifndef HELIO_SEND_CHOICE_H
#define HELIO_SEND_CHOICE_H

#include "receivers/receiver_view.h"
#include "send/stream.h"

enum { HELIO_TX_RECEIVER_TEXT = 160 };

/* "": any. */
bool helio_tx_stream_is_called(const helio_tx_stream *stream, const char *tsi, const char *topics);

/* The next receiver that is called so, from an entry of the table of receivers on;
 * HELIO_RECEIVER_NONE: there are no more. */
helio_receiver_index helio_tx_stream_receiver_called(const helio_tx_stream *stream,
                                                     const char *word, uint32_t from);
/* The next there is. */
helio_receiver_index helio_tx_stream_receiver_from(const helio_tx_stream *stream, uint32_t from);

/* "name (id, address)", or what is known of it; returns `text`. */
const char *helio_tx_stream_describe(const helio_tx_stream *stream, helio_receiver_index index,
                                     char text[HELIO_TX_RECEIVER_TEXT]);

#endif
