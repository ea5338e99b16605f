/* The streams and topics of a keeper come and go. */
#ifndef HELIO_KEEP_KEEPER_LIFE_H
#define HELIO_KEEP_KEEPER_LIFE_H

#include "keep/keeper_parts.h"

/* Opens the topic of a stream, by the stream's number within the receiver. */
int helio_keeper_open_topic(helio_keeper *keeper, helio_keeper_source *source, uint32_t number,
                            helio_kept_topic **out);
/* The stream of the keeper, which is opened when it is not. */
int helio_keeper_open_stream(helio_keeper *keeper, const helio_tsi *tsi, helio_kept_stream **out);
/* The options of the keeper's receivers.  Errors: OPTION: they are too long. */
int helio_keeper_write_options(const char *options, char out[HELIO_KEEPER_OPTIONS]);
/* A source without its receiver.  Errors: TOPIC, NOMEM; free it with helio_keeper_free_source. */
int helio_keeper_make_source(const char *topic, helio_keeper_source **out);
/* It has its receiver: the keeper takes its messages from now on. */
void helio_keeper_enter_source(helio_keeper *keeper, helio_keeper_source *source);
/* Frees it; its receiver is not touched. */
void helio_keeper_free_source(helio_keeper_source *source);
/* Once a second: retention, the disk's free bytes, and streams without messages are closed, topics
 * without streams are given up. */
int helio_keeper_tend(helio_keeper *keeper, int64_t now_ns);
/* Counts what the receiver has lost. */
void helio_keeper_take_losses(helio_keeper *keeper, helio_keeper_source *source);
/* Acknowledges what is durable. */
void helio_keeper_acknowledge(helio_keeper *keeper);

#endif
