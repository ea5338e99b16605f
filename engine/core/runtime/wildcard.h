/* Receivers of all topics whose names match a pattern.
 *
 * Sources announce their topics: each before its first message, and all of them now and then
 * (docs/wire.md 2.2).  The first announcement of a topic that matches opens a receiver, before
 * anything that follows it in the stream is looked at.  So the receiver has all messages that were
 * sent after the announcement.  A topic that has another receiver at the endpoint is left to that one.
 *
 * Announcements come from the network, so the number of topics is limited.  A topic beyond the limit,
 * or one without memory for its receiver, is refused (event topic_refused) until there is room. */
#ifndef HELIO_RUNTIME_WILDCARD_H
#define HELIO_RUNTIME_WILDCARD_H

#include <heliograph/heliograph.h>

#include "generated/protocol.h"

typedef struct helio_wildcard helio_wildcard;

typedef struct helio_found_topic {
    char name[HELIO_TSDU_TOPIC_NAME_MAX + 1];
    helio_receiver *receiver;
} helio_found_topic;

/* Begins to look for topics.  `pattern`: as in base/glob.h; only names of UTF-8 without control
 * characters match.  `options` are those of the receivers.  `limit`: the most topics
 * at a time.  End it with helio_wildcard_destroy, before the instance is destroyed.  Returns as
 * helio_receiver_create. */
int helio_wildcard_create(helio_instance *instance, const char *endpoint, const char *pattern,
                          const char *options, uint32_t limit, helio_wildcard **out);
/* Ends all its receivers.  Accepts NULL. */
void helio_wildcard_destroy(helio_wildcard *wildcard);

/* Opens a receiver of a topic that no stream has announced yet, unless the endpoint has one.  Returns
 * as helio_receiver_create; NOMEM beyond the limit. */
int helio_wildcard_expect(helio_wildcard *wildcard, const char *topic);
/* Topics that wait for helio_wildcard_take; any thread. */
uint32_t helio_wildcard_found(const helio_wildcard *wildcard);
/* The oldest of those that wait; NULL: none waits. */
const helio_found_topic *helio_wildcard_look(helio_wildcard *wildcard);
/* The oldest of those that wait is the caller's from now on; NULL: none waits. */
helio_found_topic *helio_wildcard_take(helio_wildcard *wildcard);
/* Ends a receiver that was taken.  The next announcement finds its topic again. */
void helio_wildcard_forget(helio_wildcard *wildcard, helio_found_topic *topic);
/* Waits until a topic waits, or the time is over.  Mode poll: works meanwhile. */
void helio_wildcard_wait(helio_wildcard *wildcard, int64_t timeout_ns);
/* Announcements refused so far: a topic counts again each time. */
uint64_t helio_wildcard_refused(const helio_wildcard *wildcard);

#endif
