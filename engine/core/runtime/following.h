/* A receiver whose application takes messages from stores too.  Whoever reads the stores (today the
 * Python API, engine/store/following.py) reports what the application was given; here it becomes
 * statistics and events.  Calls come from the application's thread, and the engine's thread does the
 * work: it is the only writer of the segment. */
#ifndef HELIO_RUNTIME_FOLLOWING_H
#define HELIO_RUNTIME_FOLLOWING_H

#include <stdint.h>

#include "options/following.h"
#include "runtime/opening.h"
#include "runtime/receiver.h"

/* News of one stream since the last report; but for `next` they are differences. */
typedef struct helio_followed {
    uint64_t covered, live, joined, recovered, lost, repeated, failures;
    uint64_t next;       /* number of the next message */
    uint64_t first_lost; /* if `lost` is not 0 */
} helio_followed;

/* The options of such a receiver, without creating it; `hold` keeps their texts until
 * helio_opening_fini.  Errors as helio_receiver_create. */
int helio_following_parse(helio_opening *hold, const char *endpoint, const char *topic,
                          const char *options, helio_following_options *out);
/* As helio_receiver_create, which refuses these options: its caller would get live messages only. */
int helio_receiver_create_following(helio_instance *instance, const char *endpoint,
                                    const char *topic, const char *options, helio_receiver **out);
/* Counts and reports news of a stream; `stream` is its text.  `failure`: why a store could not be
 * used; NULL: nothing failed.  Errors: NOMEM, STATE (from a listener). */
int helio_receiver_followed(helio_receiver *receiver, const char *stream,
                            const helio_followed *news, const char *failure);

/* Engine: opens and closes the account of a receiver. */
int helio_following_open(helio_receiver *receiver, const char *durable);
void helio_following_close(helio_receiver *receiver, helio_moment moment);

#endif
