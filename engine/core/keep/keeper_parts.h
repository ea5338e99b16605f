/* The inside of a keeper. */
#ifndef HELIO_KEEP_KEEPER_PARTS_H
#define HELIO_KEEP_KEEPER_PARTS_H

#include "base/map.h"
#include "keep/keeper.h"
#include "runtime/receiver.h"
#include "stats/stats.h"

enum {
    /* Messages taken from a receiver at once. */
    HELIO_KEEPER_LIST = 512,
    /* Lists of a topic that wait to be durable, each counted apart. */
    HELIO_KEEPER_AWAITED = 64,
    /* Values of histograms that wait to be counted. */
    HELIO_KEEPER_TIMINGS = 256,
};

/* A stream that the store keeps. */
typedef struct helio_kept_stream {
    helio_tsi tsi;
    helio_store_stream *files;
    uint64_t received, kept, repeated, refused, lost, bytes;
    /* Monotonic: its last message. */
    int64_t used_ns;
    /* Engine.  Without a record: not opened yet. */
    helio_stats_object object;
    struct helio_kept_stream *next;
} helio_kept_stream;

/* Messages up to `number` are durable when the position is. */
typedef struct helio_awaited {
    uint64_t position, number, messages;
    /* Wall clock: arrival of the oldest. */
    int64_t arrival_ns;
} helio_awaited;

/* A topic of a stream that the store keeps. */
typedef struct helio_kept_topic {
    helio_kept_stream *stream;
    /* Of the stream within the receiver. */
    uint32_t number;
    /* After the last message that the store has. */
    uint64_t next_number;
    /* `next_number` is not known yet. */
    bool is_new;
    helio_awaited awaited[HELIO_KEEPER_AWAITED];
    uint32_t first, count;
    /* The list that its newest entry belongs to. */
    uint64_t list;
    /* Of the topics that await. */
    bool is_awaited;
    struct helio_kept_topic *next_awaited;
    struct helio_keeper_source *source;
    struct helio_kept_topic *next;
} helio_kept_topic;

/* A receiver whose messages are kept. */
typedef struct helio_keeper_source {
    helio_receiver *receiver;
    char topic[HELIO_STORE_TOPIC_MAX + 1];
    size_t topic_bytes;
    /* The list taken last; messages before `at` are dealt with. */
    helio_message messages[HELIO_KEEPER_LIST];
    size_t count, at;
    helio_kept_topic *topics;
    /* By `number`. */
    helio_map by_number;
    helio_kept_topic *last;
    struct helio_keeper_source *next;
} helio_keeper_source;

typedef enum helio_keeper_timed {
    HELIO_KEEPER_WRITE,
    HELIO_KEEPER_SYNC,
    HELIO_KEEPER_DURABLE,
} helio_keeper_timed;

typedef struct helio_keeper_timing {
    helio_keeper_timed what;
    /* Of DURABLE. */
    helio_kept_stream *stream;
    int64_t ns;
    uint64_t count;
} helio_keeper_timing;

struct helio_keeper {
    helio_instance *instance;
    char *path;
    helio_store_options options;
    const helio_store_os *os;
    /* Measures and counts the calls of `os`. */
    helio_store_os measured;
    helio_store *store;
    helio_keeper_source *sources;
    /* Which of them waits for a message. */
    helio_keeper_source *waiting;
    helio_kept_stream *streams;
    helio_kept_topic *awaited;
    /* Lists taken so far. */
    uint64_t list;
    /* A write failed in this step, or none is tried in it. */
    bool is_refused;
    helio_keeper_counts counts;
    char reason[256];
    int64_t blocked_ns, retry_ns, tended_ns, swept_ns, published_ns;
    uint64_t disk_bytes, disk_free_bytes;
    helio_keeper_service service;
    helio_keeper_timing timings[HELIO_KEEPER_TIMINGS];
    size_t timings_count;
    /* Engine. */
    helio_stats_object object;
    /* Events to report. */
    bool has_resumed, has_blocked;
    int64_t was_blocked_ns;
    uint64_t removed_reported;
};

void helio_keeper_time(helio_keeper *keeper, helio_keeper_timing timing);
/* The stream goes: its waiting values are not counted. */
void helio_keeper_forget_timings(helio_keeper *keeper, const helio_kept_stream *stream);
/* Has the engine's thread set the statistics and report events. */
int helio_keeper_publish(helio_keeper *keeper);
/* Closes the statistics of a stream; NULL: of the keeper. */
void helio_keeper_unpublish(helio_keeper *keeper, helio_kept_stream *stream);

#endif
