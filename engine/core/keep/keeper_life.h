/* The streams and topics of a keeper come and go. */
#ifndef HELIO_KEEP_KEEPER_LIFE_H
#define HELIO_KEEP_KEEPER_LIFE_H

#include "keep/keeper_parts.h"

/* Opens the topic of a stream, by the stream's number within the receiver. */
int helio_keeper_open_topic(helio_keeper *keeper, helio_keeper_source *source, uint32_t number,
                            helio_kept_topic **out);
/* The stream of the keeper, which is opened when it is not. */
int helio_keeper_open_stream(helio_keeper *keeper, const helio_tsi *tsi, helio_kept_stream **out);
/* Once a second: retention, the disk's free bytes, and streams without messages are closed. */
int helio_keeper_tend(helio_keeper *keeper, int64_t now_ns);
/* Counts what the receiver has lost. */
void helio_keeper_take_losses(helio_keeper *keeper, helio_keeper_source *source);
/* Acknowledges what is durable. */
void helio_keeper_acknowledge(helio_keeper *keeper);

#endif
