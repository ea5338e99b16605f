/* Selection of streams and receivers by words in a command.
 *
 * A stream is selected by its TSI, or by a pattern that one of its open topics matches.  A receiver
 * is selected by its name, by its id (16 hexadecimal digits), or by the address of its feedback
 * with or without the port. */
#ifndef HELIO_SEND_CHOICE_H
#define HELIO_SEND_CHOICE_H

#include "receivers/receiver_view.h"
#include "send/stream.h"

enum { HELIO_TX_RECEIVER_TEXT = 160 };

/* "": any. */
bool helio_tx_stream_is_called(const helio_tx_stream *stream, const char *tsi, const char *topics);

/* The first receiver that `word` selects, from an index of the table of receivers on;
 * HELIO_RECEIVER_NONE: there are no more. */
helio_receiver_index helio_tx_stream_receiver_called(const helio_tx_stream *stream,
                                                     const char *word, uint32_t from);
/* The first receiver from an index on. */
helio_receiver_index helio_tx_stream_receiver_from(const helio_tx_stream *stream, uint32_t from);

/* "name (id, address)", or the address of a receiver without a name; returns `text`. */
const char *helio_tx_stream_describe(const helio_tx_stream *stream, helio_receiver_index index,
                                     char text[HELIO_TX_RECEIVER_TEXT]);

#endif
