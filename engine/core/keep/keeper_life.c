#include "keep/keeper_life.h"
#include "keep/keeper_patterns.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "io/kernel_clock.h"
#include "keep/keeper_ahead.h"
#include "keep/keeper_subscriptions.h"
#include "store/files.h"

#define TEND_NS HELIO_SECOND
/* Streams that are not open. */
#define SWEEP_NS (60 * HELIO_SECOND)
/* A stream without messages is closed.  Its next message opens it again. */
#define IDLE_NS (60 * HELIO_SECOND)
/* At the end, for what is in the receive queues. */
#define DRAIN_NS HELIO_SECOND

/* ---- the operating system, measured ---- */

static void note(helio_keeper *keeper, helio_keeper_timed what, int64_t begun_ns, bool is_done) {
    const int kept = errno;
    helio_keeper_time(keeper,
                      (helio_keeper_timing){what, NULL, helio_monotonic_ns() - begun_ns, 1});
    keeper->counts.write_failures += !is_done;
    errno = kept;
}

static int measured_create(void *context, int folder, const char *name, int flags) {
    const helio_keeper *keeper = context;
    return keeper->os->create(keeper->os->context, folder, name, flags);
}

static ssize_t measured_write(void *context, int file, const void *bytes, size_t count,
                              off_t offset) {
    helio_keeper *keeper = context;
    const int64_t begun_ns = helio_monotonic_ns();
    const ssize_t done = keeper->os->write(keeper->os->context, file, bytes, count, offset);
    note(keeper, HELIO_KEEPER_WRITE, begun_ns, done > 0);
    keeper->counts.writes++;
    keeper->counts.bytes_written += done > 0 ? (uint64_t)done : 0;
    return done;
}

static int measured_sync(void *context, int file) {
    helio_keeper *keeper = context;
    const int64_t begun_ns = helio_monotonic_ns();
    const int error = keeper->os->sync(keeper->os->context, file);
    note(keeper, HELIO_KEEPER_SYNC, begun_ns, error == 0);
    keeper->counts.syncs++;
    return error;
}

static int measured_truncate(void *context, int file, off_t bytes) {
    const helio_keeper *keeper = context;
    return keeper->os->truncate(keeper->os->context, file, bytes);
}

static int measured_remove(void *context, int folder, const char *name) {
    const helio_keeper *keeper = context;
    return keeper->os->remove(keeper->os->context, folder, name);
}

/* ---- keeper ---- */

int helio_keeper_create(helio_instance *instance, const char *path,
                        const helio_store_options *options, const helio_store_os *os,
                        helio_keeper **out) {
    *out = NULL;
    helio_keeper *keeper = calloc(1, sizeof *keeper);
    const size_t bytes = strlen(path) + sizeof HELIO_STORE_AHEAD;
    if (!keeper || !(keeper->path = strdup(path)) || !(keeper->ahead_path = malloc(bytes))) {
        free(keeper ? keeper->path : NULL);
        free(keeper);
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a store");
    }
    snprintf(keeper->ahead_path, bytes, "%s" HELIO_STORE_AHEAD, path);
    keeper->instance = instance;
    keeper->options = *options;
    keeper->os = os ? os : &helio_store_system;
    keeper->measured = (helio_store_os){keeper,        measured_create,   measured_write,
                                        measured_sync, measured_truncate, measured_remove};
    int error = helio_store_open(path, options, &keeper->measured, &keeper->store);
    error = error ? error : helio_keeper_open_ahead(keeper);
    error = error ? error : helio_keeper_tend(keeper, helio_monotonic_ns());
    error = error ? error : helio_keeper_publish(keeper);
    if (error) {
        helio_keeper_close(keeper, NULL);
        return error;
    }
    *out = keeper;
    return 0;
}

int helio_keeper_write_options(const char *options, char out[HELIO_KEEPER_OPTIONS]) {
    const int bytes = snprintf(out, HELIO_KEEPER_OPTIONS, "%s%sack=store", options ? options : "",
                               options && *options ? "&" : "");
    return bytes < HELIO_KEEPER_OPTIONS
               ? 0
               : helio_fail_plain(HELIO_ERR_OPTION, "the receiver's options are too long");
}

int helio_keeper_make_source(const char *topic, helio_keeper_source **out) {
    helio_keeper_source *source = calloc(1, sizeof *source);
    const size_t bytes = strlen(topic);
    if (bytes > HELIO_STORE_TOPIC_MAX) {
        free(source);
        return helio_fail(HELIO_ERR_TOPIC, "a topic's name has 1 to 255 bytes; this one has %zu",
                          bytes);
    }
    if (!source || helio_map_init(&source->by_number, 4)) {
        free(source);
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a topic of a store");
    }
    source->topic_bytes = bytes;
    memcpy(source->topic, topic, bytes + 1);
    *out = source;
    return 0;
}

void helio_keeper_enter_source(helio_keeper *keeper, helio_keeper_source *source) {
    source->next = keeper->sources;
    keeper->sources = keeper->waiting = source;
    keeper->counts.topics++;
}

void helio_keeper_free_source(helio_keeper_source *source) {
    for (helio_kept_topic *topic; (topic = source->topics);) {
        source->topics = topic->next;
        free(topic);
    }
    helio_map_fini(&source->by_number);
    free(source);
}

int helio_keeper_add(helio_keeper *keeper, const char *endpoint, const char *topic,
                     const char *options) {
    helio_keeper_source *source;
    char text[HELIO_KEEPER_OPTIONS];
    int error = helio_keeper_write_options(options, text);
    error = error ? error : helio_keeper_make_source(topic, &source);
    if (error) {
        return error;
    }
    error = helio_receiver_create(keeper->instance, endpoint, topic, text, NULL, &source->receiver);
    if (error) {
        helio_keeper_free_source(source);
        return error;
    }
    helio_keeper_enter_source(keeper, source);
    return 0;
}

/* Takes what is in the queues. */
static int drain(helio_keeper *keeper) {
    const int64_t end_ns = helio_monotonic_ns() + DRAIN_NS;
    int result = 1;
    while (keeper->sources && result > 0 && helio_monotonic_ns() < end_ns) {
        result = helio_keeper_step(keeper, 0);
    }
    return result < 0 ? result : 0;
}

int helio_keeper_close(helio_keeper *keeper, helio_keeper_counts *last) {
    if (!keeper) {
        return 0;
    }
    int error = keeper->store ? drain(keeper) : 0;
    for (helio_kept_stream *stream = keeper->streams; stream; stream = stream->next) {
        int one = helio_store_flush(stream->files);
        one = one || !stream->ahead ? one : helio_store_flush(stream->ahead);
        error = error ? error : one;
    }
    helio_keeper_acknowledge(keeper);
    if (last) {
        *last = helio_keeper_look(keeper);
    }
    if (keeper->object.record) {
        const int one = helio_keeper_publish(keeper);
        error = error ? error : one;
        helio_keeper_unpublish(keeper, NULL);
    }
    for (helio_keeper_source *source; (source = keeper->sources);) {
        keeper->sources = source->next;
        if (!source->pattern) {
            helio_receiver_destroy(source->receiver);
        }
        helio_keeper_free_source(source);
    }
    helio_keeper_end_patterns(keeper);
    for (helio_kept_stream *stream; (stream = keeper->streams);) {
        keeper->streams = stream->next;
        helio_keeper_unpublish(keeper, stream);
        free(stream);
    }
    helio_keeper_free_subscriptions(keeper);
    helio_keeper_close_ahead(keeper);
    const int closing_ahead = helio_store_close(keeper->ahead);
    const int closing = helio_store_close(keeper->store);
    free(keeper->path);
    free(keeper);
    return error ? error : closing ? closing : closing_ahead;
}

/* ---- streams and topics ---- */

int helio_keeper_open_stream(helio_keeper *keeper, const helio_tsi *tsi, helio_kept_stream **out) {
    for (*out = keeper->streams; *out; *out = (*out)->next) {
        if (helio_tsi_equal(&(*out)->tsi, tsi)) {
            return 0;
        }
    }
    helio_kept_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a stream of the store");
    }
    stream->tsi = *tsi;
    const int error = helio_store_stream_open(keeper->store, tsi, "", &stream->files);
    if (error) {
        free(stream);
        return error;
    }
    stream->used_ns = helio_monotonic_ns();
    stream->next = keeper->streams;
    keeper->streams = *out = stream;
    keeper->counts.streams++;
    return 0;
}

int helio_keeper_open_topic(helio_keeper *keeper, helio_keeper_source *source, uint32_t number,
                            helio_kept_topic **out) {
    helio_tsi tsi;
    if (!helio_receiver_tsi(source->receiver, number, &tsi)) {
        return helio_fail(HELIO_ERR_STATE, "stream number %u is not known any more", number);
    }
    helio_kept_topic *topic = source->topics;
    while (topic && !helio_tsi_equal(&topic->stream->tsi, &tsi)) {
        topic = topic->next;
    }
    if (topic) { /* the stream has returned under another number */
        helio_map_remove(&source->by_number, topic->number);
        topic->number = number;
    } else if (!(topic = calloc(1, sizeof *topic))) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a topic of a stream");
    }
    int error = helio_map_put(&source->by_number, number, topic);
    if (!topic->stream) {
        error = error ? error : helio_keeper_open_stream(keeper, &tsi, &topic->stream);
        if (error) {
            helio_map_remove(&source->by_number, number);
            free(topic);
            return error;
        }
        topic->number = number;
        topic->source = source;
        topic->is_new = true;
        topic->next = source->topics;
        source->topics = topic;
    }
    *out = topic;
    return error;
}

static void close_topics(helio_keeper *keeper, const helio_kept_stream *stream) {
    for (helio_keeper_source *source = keeper->sources; source; source = source->next) {
        for (helio_kept_topic **at = &source->topics; *at;) {
            helio_kept_topic *topic = *at;
            if (topic->stream != stream) {
                at = &topic->next;
                continue;
            }
            *at = topic->next;
            helio_map_remove(&source->by_number, topic->number);
            source->last = NULL;
            free(topic);
        }
    }
}

/* Nothing of it waits: neither in the list of a receiver nor for the disk. */
static bool is_idle(const helio_keeper *keeper, const helio_kept_stream *stream, int64_t now_ns) {
    const uint64_t written = helio_store_written(stream->files);
    return now_ns - stream->used_ns >= IDLE_NS && !keeper->awaited && stream->behind_count == 0 &&
           written == helio_store_appended(stream->files);
}

static int close_idle(helio_keeper *keeper, int64_t now_ns) {
    int error = 0;
    for (helio_kept_stream **at = &keeper->streams; *at;) {
        helio_kept_stream *stream = *at;
        if (!is_idle(keeper, stream, now_ns)) {
            at = &stream->next;
            continue;
        }
        *at = stream->next;
        close_topics(keeper, stream);
        helio_keeper_forget_timings(keeper, stream);
        helio_keeper_unpublish(keeper, stream);
        const int one = helio_store_stream_close(stream->files);
        error = error ? error : one;
        free(stream);
        keeper->counts.streams--;
    }
    return error;
}

static void look_at_disk(helio_keeper *keeper) {
    struct statvfs about;
    if (statvfs(keeper->path, &about) == 0) {
        keeper->disk_bytes = (uint64_t)about.f_blocks * about.f_frsize;
        keeper->disk_free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
    }
}

/* A file that cannot be removed is counted as a failure, and tried again. */
static void retain(helio_keeper *keeper, int64_t now_ns) {
    const uint64_t wall_ns = (uint64_t)helio_wall_ns();
    for (const helio_kept_stream *stream = keeper->streams; stream; stream = stream->next) {
        const uint64_t before = helio_store_usage_of(stream->files).segments;
        keeper->counts.write_failures += helio_store_retain(stream->files, wall_ns) != 0;
        keeper->counts.segments_removed += before - helio_store_usage_of(stream->files).segments;
    }
    if (keeper->swept_ns == 0 || now_ns - keeper->swept_ns >= SWEEP_NS) {
        keeper->swept_ns = now_ns;
        keeper->counts.write_failures +=
            helio_store_retain_closed(keeper->store, wall_ns, &keeper->counts.segments_removed) !=
            0;
    }
}

/* What was lost is a hole, also when no later message shows it. */
static int note_lost(helio_keeper *keeper, const helio_keeper_source *source) {
    for (helio_kept_topic *topic = source->topics; topic; topic = topic->next) {
        const uint64_t end = topic->lost_end;
        if (!keeper->has_peers || end <= topic->next_number ||
            topic->lost_first > topic->next_number) {
            continue;
        }
        if (topic->behind) {
            topic->behind->end = topic->next_number = end;
            continue;
        }
        const int error = helio_keeper_fall_behind(keeper, topic, end);
        if (error) { /* the disk refuses: the next look tries again */
            return error == HELIO_ERR_SYSTEM || error == HELIO_ERR_NOMEM ? 0 : error;
        }
    }
    return 0;
}

int helio_keeper_tend(helio_keeper *keeper, int64_t now_ns) {
    if (keeper->tended_ns != 0 && now_ns - keeper->tended_ns < TEND_NS) {
        return 0;
    }
    keeper->tended_ns = now_ns;
    look_at_disk(keeper);
    retain(keeper, now_ns);
    int error = 0;
    for (helio_keeper_source *source = keeper->sources; source; source = source->next) {
        helio_keeper_take_losses(keeper, source);
        error = error ? error : note_lost(keeper, source);
    }
    error = error ? error : close_idle(keeper, now_ns);
    helio_keeper_tend_patterns(keeper, now_ns);
    return error;
}
