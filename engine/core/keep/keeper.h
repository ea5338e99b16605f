/* Keeps the messages of receivers in a store (docs/store.md), and acknowledges those that are
 * durable.
 *
 * The keeper is one more receiver of the streams that it keeps, with ack=store.  A source that asks
 * for acknowledgements holds its messages until then; no source needs a store to run.
 *
 * The receivers have receive queues, so the engine's thread never waits for the disk.  While the
 * disk refuses writes, messages stay in the queue and the source is not acknowledged.
 *
 * One thread at a time uses a keeper. */
#ifndef HELIO_KEEP_KEEPER_H
#define HELIO_KEEP_KEEPER_H

#include <heliograph/heliograph.h>

#include "store/store.h"

typedef struct helio_keeper helio_keeper;

/* What a keeper has done since it was created. */
typedef struct helio_keeper_counts {
    uint64_t streams;
    uint64_t messages_received, messages_kept, messages_repeated, messages_refused, messages_lost;
    uint64_t bytes_kept, writes, bytes_written, syncs, write_failures, segments_removed;
    /* Messages kept that are not durable yet (fsync=never: not written). */
    uint64_t messages_waiting;
    uint64_t holes_open, messages_fetched, messages_given_up, fetch_failures;
    /* Topics kept now; announcements of topics that match a pattern and were refused. */
    uint64_t topics, topics_refused;
    /* It takes no messages, because it cannot write. */
    bool is_blocked;
} helio_keeper_counts;

/* What the service of the store has done; it runs elsewhere, and the keeper only shows it. */
typedef struct helio_keeper_service {
    uint64_t readers, requests, requests_refused, requests_aborted, bytes_sent, restarts;
} helio_keeper_service;

/* Opens the store of the directory for the receivers of `instance`, in any mode.  `os`: NULL, or
 * calls that stand for the operating system's; it is kept.  Close it with helio_keeper_close, before
 * the instance is destroyed.  Returns as helio_store_open. */
int helio_keeper_create(helio_instance *instance, const char *path,
                        const helio_store_options *options, const helio_store_os *os,
                        helio_keeper **out);
/* Keeps a topic.  Returns as helio_receiver_create. */
int helio_keeper_add(helio_keeper *keeper, const char *endpoint, const char *topic,
                     const char *options);
/* Keeps the topics whose names match the pattern (runtime/wildcard.h), at most `limit` at a time.
 * What is found waits for helio_keeper_adopt.  A topic that no stream has had for an hour is given
 * up until it is announced again.  Returns as helio_receiver_create. */
int helio_keeper_add_pattern(helio_keeper *keeper, const char *endpoint, const char *pattern,
                             const char *options, uint32_t limit);
/* Lets the pattern added last find a topic that it had in an earlier life of the store.  Returns as
 * helio_receiver_create; NOMEM beyond the limit. */
int helio_keeper_expect(helio_keeper *keeper, const char *topic);
/* Lets the next step take messages of the topics that were found.  A caller that notes their names
 * before that step knows after a crash all topics that the store has acknowledged.  Returns 0 or
 * NOMEM. */
int helio_keeper_adopt(helio_keeper *keeper);
/* How often topics were adopted or given up. */
uint64_t helio_keeper_changes(const helio_keeper *keeper);
/* Calls `show` with each topic that is kept because of a pattern, and its pattern's endpoint. */
void helio_keeper_each_found(const helio_keeper *keeper, void *context,
                             void (*show)(void *context, const char *endpoint, const char *topic));

/* Takes what has arrived, waits for the first message or a found topic at most timeout_ns, writes
 * batches that are due, and acknowledges.  Returns the number of messages taken.  A write that fails
 * is no error: the keeper is blocked and repeats it.  Errors: STATE (a stream is damaged, or was
 * closed after a failed fsync: the store must be opened again), NOMEM. */
int helio_keeper_step(helio_keeper *keeper, int64_t timeout_ns);
/* Messages of a topic that the files lack, from `first` to `last`. */
typedef struct helio_keeper_hole {
    helio_tsi tsi;
    /* Valid until the next step. */
    const char *topic;
    size_t topic_bytes;
    uint64_t first, last;
} helio_keeper_hole;

/* What a batch of another store has brought. */
typedef struct helio_keeper_filled {
    uint64_t kept;
    /* The batch has later messages of the hole, from this number, but not those before; 0: not so. */
    uint64_t found;
    /* The disk refuses: give the same batch again later. */
    bool is_blocked;
} helio_keeper_filled;

/* Other stores may have what this one lacks, so a hole stays open and later messages wait ahead of
 * it.  Without peers, a hole is given up at once.  To be called before the first step. */
void helio_keeper_use_peers(helio_keeper *keeper);
/* The open holes, at most `limit`; the oldest first.  Returns how many. */
size_t helio_keeper_holes(const helio_keeper *keeper, helio_keeper_hole *out, size_t limit);
/* Keeps the messages of the topic's hole that are in a batch (docs/store.md, section 3) and follow;
 * ignores others.  Returns 0, OPTION: it is not a batch, NOMEM, or STATE as helio_keeper_step. */
int helio_keeper_fill(helio_keeper *keeper, const helio_tsi *tsi, const char *topic, size_t bytes,
                      const void *batch, size_t size, helio_keeper_filled *out);
/* No store has the messages of the topic's hole before `until`.  Returns whether there were any. */
int helio_keeper_give_up(helio_keeper *keeper, const helio_tsi *tsi, const char *topic,
                         size_t bytes, uint64_t until);
/* Shows how often fetching from a peer failed. */
void helio_keeper_show_failures(helio_keeper *keeper, uint64_t failures);
/* Shows the service's counts as statistics of the store. */
void helio_keeper_show_service(helio_keeper *keeper, const helio_keeper_service *service);
helio_keeper_counts helio_keeper_look(const helio_keeper *keeper);
/* Why it is blocked; "" while it is not. */
const char *helio_keeper_reason(const helio_keeper *keeper);
/* Writes and acknowledges what it has, and frees everything.  `last`: the final counts, or NULL.
 * Returns the first error.  Accepts no keeper. */
int helio_keeper_close(helio_keeper *keeper, helio_keeper_counts *last);

#endif
