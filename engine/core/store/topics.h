/* Topics of a stream in the files of a store. */
#ifndef HELIO_STORE_TOPICS_H
#define HELIO_STORE_TOPICS_H

#include "store/store.h"

/* The number of the last message of a topic in the files, which are searched from their end.
 * Returns 1, 0: they have no message of it, or an error: NOMEM, SYSTEM, or STATE when the search
 * comes to damage. */
int helio_store_last_number(const char *path, const helio_tsi *tsi, const char *topic,
                            size_t topic_bytes, uint64_t *number);

#endif
