#include "keep/keeper_ahead.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "keep/keeper_life.h"
#include "store/files.h"
#include "store/records.h"
#include "store/topics.h"

/* Messages moved in one step, or KiB of them, so that live messages do not wait. */
enum { MOVE_LIMIT = 4096 };

/* ---- reports ---- */

__attribute__((format(printf, 5, 6))) static void report(helio_keeper *keeper, helio_event_id event,
                                                         uint64_t first, uint64_t last,
                                                         const char *text, ...) {
    if (keeper->reports_count < HELIO_KEEPER_REPORTS) {
        helio_keeper_report *to = &keeper->reports[keeper->reports_count++];
        to->event = event;
        to->args[0] = first;
        to->args[1] = last;
        va_list rest;
        va_start(rest, text);
        (void)vsnprintf(to->text, sizeof to->text, text, rest);
        va_end(rest);
    }
}

static void report_hole(helio_keeper *keeper, helio_behind *behind) {
    if (behind->is_hole || behind->next_number >= behind->hole_end) {
        return;
    }
    behind->is_hole = true;
    keeper->holes_open++;
    char tsi[HELIO_TSI_TEXT];
    report(keeper, HELIO_EVENT_STORE_HOLE_OPENED, behind->next_number, behind->hole_end - 1,
           "stream %s, topic %s: messages %llu to %llu are missing",
           helio_tsi_format(&behind->stream->tsi, tsi), behind->topic,
           (unsigned long long)behind->next_number, (unsigned long long)behind->hole_end - 1);
}

/* The hole is as large as `next_number` and `hole_end` say now. */
static void settle_hole(helio_keeper *keeper, helio_behind *behind) {
    if (behind->is_hole && behind->next_number >= behind->hole_end) {
        behind->is_hole = false;
        keeper->holes_open--;
    }
}

/* ---- files ahead ---- */

helio_store_stream *helio_keeper_files(const helio_kept_topic *topic) {
    return topic->behind ? topic->stream->ahead : topic->stream->files;
}

static int open_store_ahead(helio_keeper *keeper) {
    if (keeper->ahead) {
        return 0;
    }
    if (mkdir(keeper->ahead_path, 0750) < 0 && errno != EEXIST) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot make the directory %s: %s", keeper->ahead_path,
                          strerror(errno));
    }
    helio_store_options options = keeper->options;
    options.retain_bytes = options.retain_ns =
        0; /* its messages are removed when they have moved */
    return helio_store_open(keeper->ahead_path, &options, &keeper->measured, &keeper->ahead);
}

static int open_stream_ahead(helio_keeper *keeper, helio_kept_stream *stream) {
    if (stream->ahead) {
        return 0;
    }
    const int error = open_store_ahead(keeper);
    return error ? error : helio_store_stream_open(keeper->ahead, &stream->tsi, "", &stream->ahead);
}

/* ---- topics behind ---- */

static bool is_topic(const helio_behind *behind, const helio_tsi *tsi, const char *topic,
                     size_t bytes) {
    return behind->topic_bytes == bytes && memcmp(behind->topic, topic, bytes) == 0 &&
           helio_tsi_equal(&behind->stream->tsi, tsi);
}

static helio_behind *find(const helio_keeper *keeper, const helio_tsi *tsi, const char *topic,
                          size_t bytes) {
    helio_behind *behind = keeper->behind;
    while (behind && !is_topic(behind, tsi, topic, bytes)) {
        behind = behind->next;
    }
    return behind;
}

static int add(helio_keeper *keeper, helio_kept_stream *stream, const char *topic, size_t bytes,
               helio_behind **out) {
    helio_behind *behind = calloc(1, sizeof *behind);
    if (!behind) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a topic of a store");
    }
    behind->stream = stream;
    memcpy(behind->topic, topic, bytes);
    behind->topic_bytes = bytes;
    /* At the end: who fetches sees the oldest first. */
    helio_behind **at = &keeper->behind;
    while (*at) {
        at = &(*at)->next;
    }
    *at = *out = behind;
    stream->behind_count++;
    return 0;
}

/* The number after the last message of the topic that the files have; 0 and false: none. */
static int next_in_files(const helio_keeper *keeper, const helio_tsi *tsi, const char *topic,
                         size_t bytes, uint64_t *next, bool *has_begun) {
    uint64_t last = 0;
    const int result = helio_store_last_number(keeper->path, tsi, topic, bytes, &last);
    *has_begun = result == 1;
    *next = result == 1 ? last + 1 : 0;
    return result < 0 ? result : 0;
}

int helio_keeper_find_ahead(helio_keeper *keeper, helio_kept_topic *topic) {
    const helio_keeper_source *source = topic->source;
    topic->behind = find(keeper, &topic->stream->tsi, source->topic, source->topic_bytes);
    if (topic->behind) {
        topic->next_number = topic->behind->end;
        topic->has_begun = true;
        return 0;
    }
    return next_in_files(keeper, &topic->stream->tsi, source->topic, source->topic_bytes,
                         &topic->next_number, &topic->has_begun);
}

int helio_keeper_fall_behind(helio_keeper *keeper, helio_kept_topic *topic, uint64_t end) {
    /* What is acknowledged next is in other files: everything before it has to be durable. */
    int error = helio_store_flush(topic->stream->files);
    error = error ? error : open_stream_ahead(keeper, topic->stream);
    helio_behind *behind = NULL;
    if (!error) {
        helio_keeper_acknowledge(keeper);
        error =
            add(keeper, topic->stream, topic->source->topic, topic->source->topic_bytes, &behind);
    }
    if (error) {
        return error;
    }
    behind->next_number = topic->next_number;
    behind->hole_end = behind->end = end;
    behind->has_begun = topic->has_begun;
    topic->behind = behind;
    topic->next_number = end;
    report_hole(keeper, behind);
    return 0;
}

void helio_keeper_wait_ahead(helio_behind *behind, uint64_t number) {
    behind->end = number + 1;
}

/* Nothing waits and nothing is missing: messages go to the files of the stream again. */
static int catch_up(helio_keeper *keeper, helio_behind *behind) {
    helio_kept_stream *stream = behind->stream;
    int error = helio_store_flush(stream->files);
    error = error ? error : helio_store_flush(stream->ahead);
    if (error) {
        return error;
    }
    helio_keeper_acknowledge(keeper);
    for (helio_keeper_source *source = keeper->sources; source; source = source->next) {
        for (helio_kept_topic *topic = source->topics; topic; topic = topic->next) {
            topic->behind = topic->behind == behind ? NULL : topic->behind;
        }
    }
    helio_behind **at = &keeper->behind;
    while (*at != behind) {
        at = &(*at)->next;
    }
    *at = behind->next;
    char tsi[HELIO_TSI_TEXT];
    report(keeper, HELIO_EVENT_STORE_HOLE_FILLED, behind->fetched, 0,
           "stream %s, topic %s: caught up with %llu messages of other stores",
           helio_tsi_format(&stream->tsi, tsi), behind->topic, (unsigned long long)behind->fetched);
    free(behind);
    if (--stream->behind_count > 0) {
        return 0;
    }
    helio_store_stream *ahead = stream->ahead;
    stream->ahead = NULL;
    /* What cannot be removed is found at the next start: its messages are in both files. */
    keeper->counts.write_failures += helio_store_stream_discard(ahead) != 0;
    return 0;
}

/* ---- moving ---- */

static int open_mover(const helio_keeper *keeper, helio_behind *behind) {
    const int error = helio_store_flush(behind->stream->ahead);
    behind->moved = 0;
    return error ? error
                 : helio_store_reader_open(
                       keeper->ahead_path, &behind->stream->tsi, HELIO_STORE_BY_NUMBER,
                       (helio_store_span){behind->next_number, UINT64_MAX}, &behind->mover);
}

static void close_mover(helio_behind *behind) {
    helio_store_reader_close(behind->mover);
    behind->mover = NULL;
    behind->has_waiting = false;
}

/* The next message that waits.  Returns 1, 0: none, or an error. */
static int next_waiting(helio_behind *behind) {
    uint64_t position;
    int result = 1;
    while (!behind->has_waiting &&
           (result = helio_store_reader_next(behind->mover, &behind->waiting, &position)) == 1) {
        behind->has_waiting =
            behind->waiting.topic_bytes == behind->topic_bytes &&
            memcmp(behind->waiting.topic, behind->topic, behind->topic_bytes) == 0;
    }
    return result;
}

/* Moves the next message that waits, or finds the next hole. */
static int move_one(helio_keeper *keeper, helio_behind *behind, int64_t now_ns) {
    int result = behind->mover ? 0 : open_mover(keeper, behind);
    result = result ? result : next_waiting(behind);
    if (result < 0) {
        return result;
    }
    if (result == 0) {
        if (behind->moved == 0) { /* lost at the end, and no message shows it */
            behind->hole_end = behind->end;
        }
        close_mover(behind); /* more may wait since it was opened */
    } else if (behind->waiting.number > behind->next_number) {
        behind->hole_end = behind->waiting.number;
    } else {
        uint64_t position;
        const int error = behind->waiting.number < behind->next_number
                              ? 0 /* from a file that could not be removed */
                              : helio_store_append(behind->stream->files, &behind->waiting,
                                                   (uint64_t)now_ns, &position);
        if (error) {
            return error;
        }
        behind->moved++;
        behind->has_waiting = false;
        if (behind->waiting.number >= behind->next_number) {
            behind->hole_end = behind->next_number = behind->waiting.number + 1;
        }
    }
    report_hole(keeper, behind);
    return 0;
}

static uint64_t give_up(helio_keeper *keeper, helio_behind *behind, uint64_t until) {
    const uint64_t first = behind->next_number;
    const uint64_t end = until < behind->hole_end ? until : behind->hole_end;
    if (end <= first) {
        return 0;
    }
    behind->next_number = end;
    if (behind->has_begun) { /* nothing was to be kept before the first message of a topic */
        keeper->messages_given_up += end - first;
        char tsi[HELIO_TSI_TEXT];
        report(keeper, HELIO_EVENT_STORE_HOLE_GIVEN_UP, first, end - 1,
               "stream %s, topic %s: no other store has messages %llu to %llu",
               helio_tsi_format(&behind->stream->tsi, tsi), behind->topic,
               (unsigned long long)first, (unsigned long long)end - 1);
    }
    settle_hole(keeper, behind);
    return end - first;
}

int helio_keeper_move(helio_keeper *keeper) {
    const int64_t now_ns = helio_monotonic_ns();
    int64_t left = MOVE_LIMIT;
    for (helio_behind *behind = keeper->behind, *next; behind && left > 0; behind = next) {
        next = behind->next;
        int error = 0;
        while (!error && left > 0) {
            if (behind->next_number < behind->hole_end && keeper->has_peers) {
                break;
            }
            if (behind->next_number < behind->hole_end) {
                (void)give_up(keeper, behind, behind->hole_end);
            } else if (behind->next_number >= behind->end) {
                close_mover(behind);
                error = catch_up(keeper, behind);
                break;
            } else {
                error = move_one(keeper, behind, now_ns);
                left -= 1 + (int64_t)(behind->waiting.bytes / 1024);
            }
        }
        if (error) {
            return error;
        }
    }
    return left < MOVE_LIMIT;
}

/* ---- start and end ---- */

/* A message that waited when the store stopped. */
static int recover_message(helio_keeper *keeper, helio_kept_stream *stream,
                           const helio_store_message *message) {
    helio_behind *behind = find(keeper, &stream->tsi, message->topic, message->topic_bytes);
    if (!behind) {
        int error = add(keeper, stream, message->topic, message->topic_bytes, &behind);
        error = error ? error
                      : next_in_files(keeper, &stream->tsi, message->topic, message->topic_bytes,
                                      &behind->next_number, &behind->has_begun);
        behind->hole_end = behind->end = behind->next_number;
        if (error) {
            return error;
        }
    }
    if (message->number >= behind->end) {
        behind->end = message->number + 1;
    }
    return 0;
}

static int recover_stream(helio_keeper *keeper, const helio_tsi *tsi) {
    helio_kept_stream *stream;
    int error = helio_keeper_open_stream(keeper, tsi, &stream);
    error = error ? error : open_stream_ahead(keeper, stream);
    helio_store_reader *reader = NULL;
    error = error ? error
                  : helio_store_reader_open(keeper->ahead_path, tsi, HELIO_STORE_BY_NUMBER,
                                            (helio_store_span){0, UINT64_MAX}, &reader);
    helio_store_message message;
    uint64_t position;
    int result = error;
    while (!error && (result = helio_store_reader_next(reader, &message, &position)) == 1) {
        error = recover_message(keeper, stream, &message);
    }
    helio_store_reader_close(reader);
    if (!error && result == 0 && stream->behind_count == 0) { /* files without a message */
        helio_store_stream *ahead = stream->ahead;
        stream->ahead = NULL;
        keeper->counts.write_failures += helio_store_stream_discard(ahead) != 0;
    }
    return error ? error : result;
}

int helio_keeper_open_ahead(helio_keeper *keeper) {
    if (access(keeper->ahead_path, F_OK) < 0) {
        return 0;
    }
    int error = open_store_ahead(keeper);
    const int folder = error ? error : helio_store_folder_open(keeper->ahead_path);
    if (folder < 0) {
        return folder;
    }
    helio_store_id *ids = NULL;
    size_t count = 0;
    error = helio_store_list(folder, NULL, &ids, &count);
    for (size_t i = 0; i < count && !error; i++) {
        if (i == 0 || !helio_tsi_equal(&ids[i].tsi, &ids[i - 1].tsi)) {
            error = recover_stream(keeper, &ids[i].tsi);
        }
    }
    free(ids);
    close(folder);
    return error;
}

void helio_keeper_close_ahead(helio_keeper *keeper) {
    for (helio_behind *behind; (behind = keeper->behind);) {
        keeper->behind = behind->next;
        close_mover(behind);
        free(behind);
    }
    free(keeper->records);
    free(keeper->ahead_path);
}

/* ---- what others fetch ---- */

size_t helio_keeper_holes(const helio_keeper *keeper, helio_keeper_hole *out, size_t limit) {
    size_t count = 0;
    for (const helio_behind *behind = keeper->behind; behind && count < limit;
         behind = behind->next) {
        if (behind->next_number < behind->hole_end) {
            out[count++] =
                (helio_keeper_hole){behind->stream->tsi, behind->topic, behind->topic_bytes,
                                    behind->next_number, behind->hole_end - 1};
        }
    }
    return count;
}

/* Appends the messages of the hole that follow.  Those before are there already. */
static int fill(helio_keeper *keeper, helio_behind *behind, helio_keeper_filled *out) {
    const helio_store_choice hole = {HELIO_STORE_BY_NUMBER,
                                     {behind->next_number, behind->hole_end - 1}};
    const int64_t now_ns = helio_monotonic_ns();
    helio_store_message message;
    uint64_t position;
    while (helio_store_records_next(keeper->records, &hole, &message, &position) == 1) {
        if (message.topic_bytes != behind->topic_bytes ||
            memcmp(message.topic, behind->topic, behind->topic_bytes) != 0 ||
            message.number < behind->next_number) {
            continue;
        }
        if (message.number > behind->next_number) {
            out->found =
                out->found == 0 || message.number < out->found ? message.number : out->found;
            continue;
        }
        message.flags &= HELIO_STORE_RECOVERED;
        const int error =
            helio_store_append(behind->stream->files, &message, (uint64_t)now_ns, &position);
        if (error) {
            return error;
        }
        behind->next_number++;
        behind->has_begun = true;
        behind->fetched++;
        keeper->messages_fetched++;
        out->kept++;
    }
    return 0;
}

int helio_keeper_fill(helio_keeper *keeper, const helio_tsi *tsi, const char *topic, size_t bytes,
                      const void *batch, size_t size, helio_keeper_filled *out) {
    *out = (helio_keeper_filled){0};
    helio_behind *behind = find(keeper, tsi, topic, bytes);
    if (!behind || behind->next_number >= behind->hole_end) {
        return 0;
    }
    helio_store_batch head = {0};
    const uint8_t *const whole = batch;
    if (helio_store_get_head(whole, size, &head) != HELIO_STORE_OK ||
        head.body_bytes != size - HELIO_STORE_HEAD_BYTES ||
        helio_store_check_batch(&head, whole + HELIO_STORE_HEAD_BYTES, head.body_bytes) !=
            HELIO_STORE_OK) {
        return helio_fail(HELIO_ERR_OPTION, "%zu bytes are not a whole batch of a store", size);
    }
    if (!keeper->records && !(keeper->records = malloc(sizeof *keeper->records))) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a batch");
    }
    helio_store_records_begin(keeper->records, &head, whole + HELIO_STORE_HEAD_BYTES);
    const int error = fill(keeper, behind, out);
    behind->stream->used_ns = helio_monotonic_ns();
    settle_hole(keeper, behind);
    if (error == HELIO_ERR_SYSTEM || error == HELIO_ERR_NOMEM) {
        helio_keeper_block(keeper, helio_monotonic_ns());
        out->is_blocked = true;
        return 0;
    }
    return error;
}

int helio_keeper_give_up(helio_keeper *keeper, const helio_tsi *tsi, const char *topic,
                         size_t bytes, uint64_t until) {
    helio_behind *behind = find(keeper, tsi, topic, bytes);
    return behind && give_up(keeper, behind, until) > 0;
}

void helio_keeper_use_peers(helio_keeper *keeper) {
    keeper->has_peers = true;
}

void helio_keeper_show_failures(helio_keeper *keeper, uint64_t failures) {
    keeper->fetch_failures = failures;
}
