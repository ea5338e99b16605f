/* The inside of a keeper. */
#ifndef HELIO_KEEP_KEEPER_PARTS_H
#define HELIO_KEEP_KEEPER_PARTS_H

#include "base/map.h"
#include "keep/keeper.h"
#include "runtime/receiver.h"
#include "runtime/wildcard.h"
#include "stats/stats.h"
#include "store/reader.h"

enum {
    /* The options of its receivers, as a text. */
    HELIO_KEEPER_OPTIONS = 1024,
    /* Messages taken from a receiver at once. */
    HELIO_KEEPER_LIST = 512,
    /* Lists of a topic that wait to be durable, each counted apart. */
    HELIO_KEEPER_AWAITED = 64,
    /* Values of histograms that wait to be counted. */
    HELIO_KEEPER_TIMINGS = 256,
    /* Events about holes that wait to be reported. */
    HELIO_KEEPER_REPORTS = 64,
    /* Positions of durable subscriptions that are shown. */
    HELIO_KEEPER_SUBSCRIPTIONS = 256,
};

/* A stream that the store keeps. */
typedef struct helio_kept_stream {
    helio_tsi tsi;
    helio_store_stream *files;
    /* Messages that wait for earlier ones; NULL: none of the stream do. */
    helio_store_stream *ahead;
    uint32_t behind_count;
    uint64_t received, kept, repeated, refused, lost, bytes;
    /* Monotonic: its last message. */
    int64_t used_ns;
    /* Engine.  Without a record: not opened yet. */
    helio_stats_object object;
    struct helio_kept_stream *next;
} helio_kept_stream;

/* A topic of a stream that lacks messages (keep/keeper_ahead.h). */
typedef struct helio_behind {
    helio_kept_stream *stream;
    char topic[HELIO_STORE_TOPIC_MAX + 1];
    size_t topic_bytes;
    /* The next message that the files of the stream need. */
    uint64_t next_number;
    /* Those before it are missing, from next_number. */
    uint64_t hole_end;
    /* After the last message that waits or is known to be lost. */
    uint64_t end;
    /* The files had messages of the topic. */
    bool has_begun;
    /* It is counted as an open hole. */
    bool is_hole;
    uint64_t fetched;
    /* Reads the messages that wait, from next_number at its opening; NULL: not opened. */
    helio_store_reader *mover;
    uint64_t moved;
    helio_store_message waiting;
    bool has_waiting;
    struct helio_behind *next;
} helio_behind;

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
    /* The files have messages of the topic. */
    bool has_begun;
    /* Its messages go to the files ahead; NULL: to those of the stream. */
    helio_behind *behind;
    /* What the receiver lost and no later message has shown: from `lost_first` to before `lost_end`. */
    uint64_t lost_first, lost_end;
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

/* Topics that are kept because their names match. */
typedef struct helio_keeper_pattern {
    helio_wildcard *wildcard;
    char *endpoint;
    struct helio_keeper_pattern *next;
} helio_keeper_pattern;

/* A receiver whose messages are kept. */
typedef struct helio_keeper_source {
    helio_receiver *receiver;
    /* What it was found by; NULL: it was added by name. */
    helio_keeper_pattern *pattern;
    helio_found_topic *found;
    /* Monotonic: since when no stream has its topic; 0: some stream does. */
    int64_t unmatched_ns;
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

/* An event about a hole. */
typedef struct helio_keeper_report {
    helio_event_id event;
    uint64_t args[4];
    char text[384];
} helio_keeper_report;

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
    helio_keeper_pattern *patterns;
    uint64_t changes;
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
    /* keep/keeper_subscriptions.h */
    struct helio_shown_subscription *subscriptions;
    bool has_peers;
    char *ahead_path;
    /* In ahead_path; NULL: nothing has waited yet. */
    helio_store *ahead;
    helio_behind *behind;
    /* For a batch of another store. */
    helio_store_records *records;
    uint64_t holes_open, messages_fetched, messages_given_up, fetch_failures;
    helio_keeper_report reports[HELIO_KEEPER_REPORTS];
    size_t reports_count;
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
/* A write failed: nothing is taken until it is repeated. */
void helio_keeper_block(helio_keeper *keeper, int64_t now_ns);
/* Has the engine's thread set the statistics and report events. */
int helio_keeper_publish(helio_keeper *keeper);
/* Closes the statistics of a stream; NULL: of the keeper. */
void helio_keeper_unpublish(helio_keeper *keeper, helio_kept_stream *stream);

#endif
