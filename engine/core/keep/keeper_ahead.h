/* Topics of a keeper with peers that lack messages.
 *
 * A message that does not follow the last one of its topic shows a hole.  It waits, with all after
 * it, in files of its own: the store in the directory `ahead` of the store.  The messages of the
 * hole come from other stores and go to the files of the stream.  Then those that wait follow, and
 * their files are removed.  So the files of a stream only ever grow in the order of numbers.
 *
 * Who fetches from the other stores is not the keeper's affair (keep/keeper.h). */
#ifndef HELIO_KEEP_KEEPER_AHEAD_H
#define HELIO_KEEP_KEEPER_AHEAD_H

#include "keep/keeper_parts.h"

/* Opens the files ahead when there are some, and goes on with what waits in them. */
int helio_keeper_open_ahead(helio_keeper *keeper);
/* Frees everything. */
void helio_keeper_close_ahead(helio_keeper *keeper);
/* Sets next_number and behind of a topic that is new. */
int helio_keeper_find_ahead(helio_keeper *keeper, helio_kept_topic *topic);
/* The topic lacks the messages from its next_number to `end`, which is not included. */
int helio_keeper_fall_behind(helio_keeper *keeper, helio_kept_topic *topic, uint64_t end);
/* A message waits ahead. */
void helio_keeper_wait_ahead(helio_behind *behind, uint64_t number);
/* Moves messages that wait and follow to the files of their streams, a bounded number.  Returns 1:
 * there were some, 0, or an error. */
int helio_keeper_move(helio_keeper *keeper);
/* The files that the messages of a topic go to now. */
helio_store_stream *helio_keeper_files(const helio_kept_topic *topic);

#endif
