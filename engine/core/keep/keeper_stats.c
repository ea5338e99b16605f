/* The statistics of a keeper.  The engine's thread is the only writer of the segment, so the keeper
 * hands its numbers over, ten times a second. */
#include "base/error.h"
#include "keep/keeper_parts.h"
#include "keep/keeper_patterns.h"
#include "keep/keeper_subscriptions.h"
#include "runtime/instance.h"

void helio_keeper_time(helio_keeper *keeper, helio_keeper_timing timing) {
    if (keeper->timings_count < HELIO_KEEPER_TIMINGS) {
        keeper->timings[keeper->timings_count++] = timing;
    }
}

void helio_keeper_forget_timings(helio_keeper *keeper, const helio_kept_stream *stream) {
    for (size_t i = 0; i < keeper->timings_count; i++) {
        if (keeper->timings[i].stream == stream) {
            keeper->timings[i].stream = NULL;
        }
    }
}

static void label_instance(const helio_keeper *keeper, char labels[HELIO_STATS_LABELS_BYTES]) {
    labels[0] = '\0';
    helio_stats_label(labels, HELIO_STATS_LABELS_BYTES, "instance", keeper->instance->name);
}

static int open_store(helio_keeper *keeper, helio_moment moment) {
    static const char *const fsyncs[] = {"batch", "always", "never"};
    char labels[HELIO_STATS_LABELS_BYTES];
    label_instance(keeper, labels);
    helio_stats_label(labels, sizeof labels, "directory", keeper->path);
    helio_stats_label(labels, sizeof labels, "fsync", fsyncs[keeper->options.fsync]);
    helio_stats *stats = keeper->instance->stats;
    const int error =
        helio_stats_open_object(stats, HELIO_SCOPE_STORE, labels, moment.wall_ns, &keeper->object);
    if (!error) {
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_OPENED, keeper->object.slot,
                          NULL, "the store %s keeps messages", keeper->path);
    }
    return error;
}

static int open_stream(const helio_keeper *keeper, helio_kept_stream *stream, helio_moment moment) {
    char labels[HELIO_STATS_LABELS_BYTES], tsi[HELIO_TSI_TEXT];
    label_instance(keeper, labels);
    helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(&stream->tsi, tsi));
    return helio_stats_open_object(keeper->instance->stats, HELIO_SCOPE_STORE_STREAM, labels,
                                   moment.wall_ns, &stream->object);
}

static void show_stream(const helio_kept_stream *stream) {
    helio_store_stream_stats *stats = stream->object.record;
    helio_stats_begin(stats);
    helio_set(&stats->messages_received, stream->received);
    helio_set(&stats->messages_kept, stream->kept);
    helio_set(&stats->messages_repeated, stream->repeated);
    helio_set(&stats->messages_refused, stream->refused);
    helio_set(&stats->messages_lost, stream->lost);
    helio_set(&stats->bytes_kept, stream->bytes);
    helio_set(&stats->first_position, helio_store_first(stream->files));
    helio_set(&stats->last_position, helio_store_appended(stream->files));
    helio_set(&stats->written_position, helio_store_written(stream->files));
    helio_set(&stats->durable_position, helio_store_durable(stream->files));
    helio_stats_end(stats);
}

static void show_store(const helio_keeper *keeper) {
    helio_store_usage usage = {0};
    for (const helio_kept_stream *stream = keeper->streams; stream; stream = stream->next) {
        const helio_store_usage one = helio_store_usage_of(stream->files);
        usage.segments += one.segments;
        usage.bytes += one.bytes;
    }
    const helio_keeper_counts *counts = &keeper->counts;
    helio_store_stats *stats = keeper->object.record;
    helio_stats_begin(stats);
    helio_set(&stats->streams, counts->streams);
    helio_set(&stats->segments, usage.segments);
    helio_set(&stats->segment_bytes, usage.bytes);
    helio_set(&stats->disk_bytes, keeper->disk_bytes);
    helio_set(&stats->disk_free_bytes, keeper->disk_free_bytes);
    helio_set(&stats->writes, counts->writes);
    helio_set(&stats->bytes_written, counts->bytes_written);
    helio_set(&stats->syncs, counts->syncs);
    helio_set(&stats->write_failures, counts->write_failures);
    helio_set(&stats->is_blocked, counts->is_blocked);
    helio_set(&stats->segments_removed, counts->segments_removed);
    const helio_keeper_service *service = &keeper->service;
    helio_set(&stats->service_readers, service->readers);
    helio_set(&stats->service_requests, service->requests);
    helio_set(&stats->service_requests_refused, service->requests_refused);
    helio_set(&stats->service_requests_aborted, service->requests_aborted);
    helio_set(&stats->service_bytes_sent, service->bytes_sent);
    helio_set(&stats->service_restarts, service->restarts);
    helio_set(&stats->holes_open, keeper->holes_open);
    helio_set(&stats->messages_fetched, keeper->messages_fetched);
    helio_set(&stats->messages_given_up, keeper->messages_given_up);
    helio_set(&stats->fetch_failures, keeper->fetch_failures);
    helio_set(&stats->topics, counts->topics);
    helio_set(&stats->topics_refused, helio_keeper_refused_topics(keeper));
    helio_stats_end(stats);
}

static void record_timings(helio_keeper *keeper) {
    for (size_t i = 0; i < keeper->timings_count; i++) {
        const helio_keeper_timing *timing = &keeper->timings[i];
        helio_hdr *const histograms[] = {
            [HELIO_KEEPER_WRITE] = keeper->object.histogram[HELIO_STORE_WRITE_TIME],
            [HELIO_KEEPER_SYNC] = keeper->object.histogram[HELIO_STORE_SYNC_TIME],
            [HELIO_KEEPER_DURABLE] =
                timing->stream
                    ? timing->stream->object.histogram[HELIO_STORE_STREAM_DURABLE_LATENCY]
                    : NULL,
        };
        helio_record(histograms[timing->what], timing->ns, timing->count);
    }
    keeper->timings_count = 0;
}

static void report(helio_keeper *keeper, helio_moment moment) {
    helio_stats *stats = keeper->instance->stats;
    const uint32_t slot = keeper->object.slot;
    if (keeper->has_blocked) {
        keeper->has_blocked = false;
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_BLOCKED, slot,
                          (const uint64_t[4]){keeper->counts.write_failures}, "%s", keeper->reason);
    }
    if (keeper->has_resumed) {
        keeper->has_resumed = false;
        const uint64_t ms = (uint64_t)keeper->was_blocked_ns / HELIO_MILLISECOND;
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_RESUMED, slot,
                          (const uint64_t[4]){ms}, "the store writes again after %llu ms",
                          (unsigned long long)ms);
    }
    const uint64_t removed = keeper->counts.segments_removed - keeper->removed_reported;
    if (removed > 0) {
        keeper->removed_reported = keeper->counts.segments_removed;
        helio_stats_event(stats, moment.wall_ns, HELIO_EVENT_STORE_SEGMENTS_REMOVED, slot,
                          (const uint64_t[4]){removed}, "retention removed %llu segments",
                          (unsigned long long)removed);
    }
    for (size_t i = 0; i < keeper->reports_count; i++) {
        const helio_keeper_report *one = &keeper->reports[i];
        helio_stats_event(stats, moment.wall_ns, one->event, slot, one->args, "%s", one->text);
    }
    keeper->reports_count = 0;
}

void helio_keeper_show_service(helio_keeper *keeper, const helio_keeper_service *service) {
    keeper->service = *service;
}

static bool publish(helio_instance *instance, helio_command *command, helio_moment moment) {
    (void)instance;
    helio_keeper *keeper = command->context;
    int error = keeper->object.record ? 0 : open_store(keeper, moment);
    for (helio_kept_stream *stream = keeper->streams; stream && !error; stream = stream->next) {
        error = stream->object.record ? 0 : open_stream(keeper, stream, moment);
        if (!error) {
            show_stream(stream);
        }
    }
    if (!error) {
        show_store(keeper);
        helio_keeper_publish_subscriptions(keeper, moment);
        record_timings(keeper);
        report(keeper, moment);
    }
    command->result = error;
    return true;
}

int helio_keeper_publish(helio_keeper *keeper) {
    helio_command command = {.run = publish, .context = keeper};
    return helio_command_execute(keeper->instance, &command);
}

typedef struct closing {
    helio_keeper *keeper;
    helio_stats_object *object;
} closing;

static bool unpublish(helio_instance *instance, helio_command *command, helio_moment moment) {
    const closing *closing = command->context;
    helio_stats_close_object(instance->stats, closing->object, moment.wall_ns);
    if (closing->object == &closing->keeper->object) {
        helio_keeper_unpublish_subscriptions(closing->keeper, moment);
    }
    command->result = 0;
    return true;
}

void helio_keeper_unpublish(helio_keeper *keeper, helio_kept_stream *stream) {
    closing closing = {keeper, stream ? &stream->object : &keeper->object};
    helio_command command = {.run = unpublish, .context = &closing};
    (void)helio_command_execute(keeper->instance, &command);
}
