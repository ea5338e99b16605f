#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/files.h"

/* A segment that is no longer written. */
typedef struct closed_segment {
    uint64_t number, position, bytes, last_ns;
} closed_segment;

struct helio_store_stream {
    helio_store *store;
    helio_store_stream *next;
    helio_tsi tsi;
    char source[HELIO_STORE_SOURCE_MAX + 1];
    closed_segment *closed;
    size_t closed_count, closed_size;
    /* The segment being written; -1: the next batch begins one. */
    int file;
    helio_store_segment open;
    uint64_t next_number;
    /* The batch: room for its head, then records. */
    uint8_t *batch;
    size_t batch_used, batch_size;
    helio_store_batch facts;
    uint64_t begun_ns;
    /* Topics of the batch, as offsets of their records. */
    uint32_t *topics;
    size_t topics_count, topics_size;
    size_t topic_last;
    uint64_t appended, written, durable;
    uint64_t cut_bytes;
    bool is_failed;
};

struct helio_store {
    char *path;
    int folder, lock;
    helio_store_options options;
    const helio_store_os *os;
    helio_store_stream *streams;
};

/* ---- operating system ---- */

static int system_create(void *context, int folder, const char *name, int flags) {
    (void)context;
    return openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0640);
}

static ssize_t system_write(void *context, int file, const void *bytes, size_t count,
                            off_t offset) {
    (void)context;
    return pwrite(file, bytes, count, offset);
}

static int system_sync(void *context, int file) {
    (void)context;
    return fsync(file);
}

static int system_truncate(void *context, int file, off_t bytes) {
    (void)context;
    return ftruncate(file, bytes);
}

static int system_remove(void *context, int folder, const char *name) {
    (void)context;
    return unlinkat(folder, name, 0);
}

const helio_store_os helio_store_system = {
    .create = system_create,
    .write = system_write,
    .sync = system_sync,
    .truncate = system_truncate,
    .remove = system_remove,
};

static int fail_at(const helio_store *store, const char *action) {
    return helio_fail(HELIO_ERR_SYSTEM, "cannot %s the store %s: %s", action, store->path,
                      strerror(errno));
}

static int write_all(const helio_store *store, int file, const uint8_t *bytes, size_t count,
                     uint64_t offset) {
    while (count > 0) {
        const ssize_t done =
            store->os->write(store->os->context, file, bytes, count, (off_t)offset);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            errno = done == 0 ? ENOSPC : errno;
            return fail_at(store, "write");
        }
        bytes += done;
        count -= (size_t)done;
        offset += (size_t)done;
    }
    return 0;
}

static int sync_file(const helio_store *store, int file) {
    if (store->options.fsync != HELIO_STORE_FSYNC_NEVER &&
        store->os->sync(store->os->context, file) < 0) {
        return fail_at(store, "fsync");
    }
    return 0;
}

static int remove_file(const helio_store *store, const helio_store_id *id, const char *suffix) {
    char name[HELIO_STORE_NAME_BYTES];
    helio_store_name(name, id, suffix);
    return store->os->remove(store->os->context, store->folder, name) < 0 && errno != ENOENT
               ? fail_at(store, "remove a segment of")
               : 0;
}

/* Removes a segment, and its index when there is one. */
static int remove_segment(const helio_store *store, const helio_store_id *id) {
    const int error = remove_file(store, id, "seg");
    if (!error) {
        (void)remove_file(store, id, "idx");
    }
    return error;
}

/* ---- store ---- */

helio_store_options helio_store_defaults(void) {
    return (helio_store_options){.fsync = HELIO_STORE_FSYNC_BATCH,
                                 .batch_bytes = 65536,
                                 .batch_time_ns = 10000000,
                                 .segment_bytes = UINT64_C(64) << 20};
}

/* Locks the directory and checks its version. */
static int take(helio_store *store) {
    store->folder = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->folder < 0) {
        return fail_at(store, "open");
    }
    store->lock = store->os->create(store->os->context, store->folder, HELIO_STORE_LOCK, 0);
    if (store->lock < 0) {
        return fail_at(store, "lock");
    }
    if (flock(store->lock, LOCK_EX | LOCK_NB) < 0) {
        return errno == EWOULDBLOCK
                   ? helio_fail(HELIO_ERR_STATE, "another process writes the store %s", store->path)
                   : fail_at(store, "lock");
    }
    char text[sizeof HELIO_STORE_LOCK_TEXT];
    const ssize_t bytes = pread(store->lock, text, sizeof text, 0);
    if (bytes < 0) {
        return fail_at(store, "read");
    }
    const size_t whole = sizeof text - 1;
    if ((size_t)bytes > whole || memcmp(text, HELIO_STORE_LOCK_TEXT, (size_t)bytes) != 0) {
        return helio_fail(HELIO_ERR_STATE, "%s is not a store of version %d", store->path,
                          HELIO_STORE_VERSION);
    }
    if ((size_t)bytes == whole) {
        return 0;
    }
    /* New, or its creation was interrupted. */
    int error = write_all(store, store->lock, (const uint8_t *)HELIO_STORE_LOCK_TEXT, whole, 0);
    error = error ? error : sync_file(store, store->lock);
    return error ? error : sync_file(store, store->folder);
}

int helio_store_open(const char *path, const helio_store_options *options, const helio_store_os *os,
                     helio_store **out) {
    *out = NULL;
    if (options->batch_bytes > HELIO_STORE_BODY_MAX / 2) {
        return helio_fail(HELIO_ERR_OPTION, "batch_bytes is at most %d", HELIO_STORE_BODY_MAX / 2);
    }
    helio_store *store = calloc(1, sizeof *store);
    char *copy = store ? strdup(path) : NULL;
    if (!copy) {
        free(store);
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a store");
    }
    *store = (helio_store){.path = copy,
                           .folder = -1,
                           .lock = -1,
                           .options = *options,
                           .os = os ? os : &helio_store_system};
    const int error = take(store);
    if (error) {
        helio_store_close(store);
        return error;
    }
    *out = store;
    return 0;
}

static int stream_close(helio_store_stream *stream) {
    int error = 0;
    if (!stream->is_failed) {
        error = helio_store_flush(stream);
    }
    if (stream->file >= 0) {
        close(stream->file);
    }
    helio_store_segment_release(&stream->open);
    free(stream->closed);
    free(stream->batch);
    free(stream->topics);
    free(stream);
    return error;
}

int helio_store_stream_close(helio_store_stream *stream) {
    helio_store_stream **at = &stream->store->streams;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    return stream_close(stream);
}

int helio_store_stream_discard(helio_store_stream *stream) {
    helio_store *store = stream->store;
    int error = 0;
    if (stream->file >= 0) {
        error = remove_segment(store, &stream->open.id);
    }
    while (!error && stream->closed_count > 0) {
        const helio_store_id id = {stream->tsi, stream->closed[--stream->closed_count].number};
        error = remove_segment(store, &id);
    }
    stream->facts.messages = 0;
    (void)helio_store_stream_close(stream);
    return error;
}

int helio_store_close(helio_store *store) {
    if (!store) {
        return 0;
    }
    int error = 0;
    while (store->streams) {
        const int one = helio_store_stream_close(store->streams);
        error = error ? error : one;
    }
    if (store->folder >= 0) {
        close(store->folder);
    }
    if (store->lock >= 0) {
        close(store->lock);
    }
    free(store->path);
    free(store);
    return error;
}

/* ---- segments ---- */

static int write_index(const helio_store *store, const helio_store_segment *segment) {
    const size_t bytes = helio_store_index_bytes(segment->count);
    uint8_t *memory = malloc(bytes);
    if (!memory) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for the index of a segment");
    }
    helio_store_put_index(memory, segment->id.number, segment->bytes, segment->batches,
                          segment->count);
    char name[HELIO_STORE_NAME_BYTES];
    const int file = store->os->create(store->os->context, store->folder,
                                       helio_store_name(name, &segment->id, "idx"), O_TRUNC);
    const int error = file < 0 ? fail_at(store, "index") : write_all(store, file, memory, bytes, 0);
    if (file >= 0) {
        close(file);
    }
    free(memory);
    return error;
}

static int note_closed(helio_store_stream *stream, const helio_store_segment *segment) {
    if (stream->closed_count == stream->closed_size) {
        const size_t size = stream->closed_size ? stream->closed_size * 2 : 8;
        closed_segment *larger = realloc(stream->closed, size * sizeof *larger);
        if (!larger) {
            return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a segment");
        }
        stream->closed = larger;
        stream->closed_size = size;
    }
    /* The age of a segment whose header is damaged is unknown: it stays. */
    uint64_t last_ns = segment->header_result == HELIO_STORE_OK ? 0 : UINT64_MAX;
    for (size_t i = 0; i < segment->count; i++) {
        const uint64_t at = segment->batches[i].times.last;
        last_ns = at > last_ns ? at : last_ns;
    }
    stream->closed[stream->closed_count++] =
        (closed_segment){segment->id.number, segment->header.position, segment->bytes, last_ns};
    return 0;
}

/* Ends the segment being written.  Its index can be made again, so an error of it is ignored. */
static int end_segment(helio_store_stream *stream) {
    stream->open.bytes = stream->open.end;
    const int error = note_closed(stream, &stream->open);
    if (error) {
        return error;
    }
    (void)write_index(stream->store, &stream->open);
    close(stream->file);
    stream->file = -1;
    helio_store_segment_release(&stream->open);
    return 0;
}

static int begin_segment(helio_store_stream *stream) {
    const helio_store *store = stream->store;
    const helio_store_header header = {.tsi = stream->tsi,
                                       .number = stream->next_number,
                                       .position = stream->written + 1,
                                       .created_ns = stream->facts.times.first,
                                       .source = stream->source,
                                       .source_bytes = strlen(stream->source)};
    const helio_store_id id = {stream->tsi, header.number};
    stream->open = (helio_store_segment){.id = id, .header = header};
    uint8_t bytes[HELIO_STORE_HEADER_MAX];
    const size_t count = helio_store_put_header(bytes, &header);
    char name[HELIO_STORE_NAME_BYTES];
    const int file = store->os->create(store->os->context, store->folder,
                                       helio_store_name(name, &id, "seg"), O_EXCL);
    if (file < 0) {
        return fail_at(store, "create a segment of");
    }
    int error = write_all(store, file, bytes, count, 0);
    error = error ? error : sync_file(store, file);
    error = error ? error : sync_file(store, store->folder);
    if (error) {
        close(file);
        (void)remove_file(store, &id, "seg");
        return error;
    }
    stream->file = file;
    stream->open.header.bytes = stream->open.end = count;
    stream->next_number++;
    return 0;
}

/* ---- recovery ---- */

static int damaged(const helio_store *store, const helio_store_id *id, uint64_t offset) {
    char name[HELIO_STORE_NAME_BYTES];
    return helio_fail(HELIO_ERR_STATE, "the segment %s of the store %s is damaged at byte %llu",
                      helio_store_name(name, id, "seg"), store->path, (unsigned long long)offset);
}

/* Cuts the last segment behind its last whole batch and opens it for writing. */
static int reopen(helio_store_stream *stream) {
    helio_store *store = stream->store;
    helio_store_segment *last = &stream->open;
    if (last->tail == HELIO_STORE_DAMAGED && !store->options.cut_damage) {
        return damaged(store, &last->id, last->end);
    }
    char name[HELIO_STORE_NAME_BYTES];
    stream->file = openat(store->folder, helio_store_name(name, &last->id, "seg"),
                          O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (stream->file < 0) {
        return fail_at(store, "open a segment of");
    }
    if (last->bytes > last->end) {
        stream->cut_bytes += last->bytes - last->end;
        if (store->os->truncate(store->os->context, stream->file, (off_t)last->end) < 0) {
            return fail_at(store, "cut a segment of");
        }
    }
    last->bytes = last->end;
    return sync_file(store, stream->file);
}

static int recover_one(helio_store_stream *stream, const helio_store_id *id, bool is_last) {
    helio_store *store = stream->store;
    helio_store_segment segment;
    int error = helio_store_segment_read(
        store->folder, id, is_last ? HELIO_STORE_BY_CHECK : HELIO_STORE_BY_INDEX, &segment);
    stream->next_number = id->number + 1;
    if (!error && segment.header_result == HELIO_STORE_OTHER_VERSION) {
        char name[HELIO_STORE_NAME_BYTES];
        error = helio_fail(HELIO_ERR_STATE, "the segment %s of the store %s has another version",
                           helio_store_name(name, id, "seg"), store->path);
    } else if (!error && is_last && segment.header_result == HELIO_STORE_SHORT) {
        stream->cut_bytes += segment.bytes; /* its creation was interrupted */
        stream->next_number = id->number;
        error = remove_file(store, id, "seg");
    } else if (!error && is_last && segment.header_result != HELIO_STORE_OK) {
        error = damaged(store, id, 0);
    } else if (!error && is_last) {
        stream->open = segment;
        stream->written = helio_store_segment_next(&segment) - 1;
        return reopen(stream);
    } else if (!error) {
        if (segment.header_result == HELIO_STORE_OK) {
            stream->written = helio_store_segment_next(&segment) - 1;
            if (!segment.is_indexed && segment.tail == HELIO_STORE_OK) {
                (void)write_index(store, &segment);
            }
        }
        error = note_closed(stream, &segment);
    }
    helio_store_segment_release(&segment);
    return error;
}

static int recover(helio_store_stream *stream) {
    helio_store_id *ids;
    size_t count;
    int error = helio_store_list(stream->store->folder, &stream->tsi, &ids, &count);
    for (size_t i = 0; i < count && !error; i++) {
        error = recover_one(stream, &ids[i], i + 1 == count);
    }
    free(ids);
    stream->appended = stream->written;
    stream->durable = stream->store->options.fsync == HELIO_STORE_FSYNC_NEVER ? 0 : stream->written;
    return error;
}

int helio_store_stream_open(helio_store *store, const helio_tsi *tsi, const char *source,
                            helio_store_stream **out) {
    *out = NULL;
    for (helio_store_stream *stream = store->streams; stream; stream = stream->next) {
        if (helio_tsi_equal(&stream->tsi, tsi)) {
            *out = stream;
            return 0;
        }
    }
    if (strlen(source) > HELIO_STORE_SOURCE_MAX) {
        return helio_fail_plain(HELIO_ERR_SIZE, "the name of a source is at most 255 bytes");
    }
    helio_store_stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a stream of the store");
    }
    stream->store = store;
    stream->tsi = *tsi;
    stream->file = -1;
    stream->next_number = 1;
    stream->batch_used = HELIO_STORE_HEAD_BYTES;
    strcpy(stream->source, source);
    const int error = recover(stream);
    if (error) {
        stream_close(stream);
        return error;
    }
    stream->next = store->streams;
    store->streams = stream;
    *out = stream;
    return 0;
}

/* ---- writing ---- */

static void empty_batch(helio_store_stream *stream) {
    stream->facts = (helio_store_batch){0};
    stream->batch_used = HELIO_STORE_HEAD_BYTES;
    stream->topics_count = stream->topic_last = 0;
}

int helio_store_flush(helio_store_stream *stream) {
    helio_store *store = stream->store;
    if (stream->is_failed) {
        return helio_fail(HELIO_ERR_STATE, "a stream of the store %s failed; open the store again",
                          store->path);
    }
    if (stream->facts.messages == 0) {
        return 0;
    }
    int error = 0;
    const bool is_full = stream->open.count > 0 &&
                         stream->open.end + stream->batch_used > store->options.segment_bytes;
    if (stream->file >= 0 && is_full) {
        error = end_segment(stream);
    }
    if (!error && stream->file < 0) {
        error = begin_segment(stream);
    }
    if (error) {
        return error;
    }
    helio_store_batch *facts = &stream->facts;
    facts->offset = stream->open.end;
    facts->position = stream->written + 1;
    helio_store_seal(stream->batch, stream->batch_used, facts);
    error = write_all(store, stream->file, stream->batch, stream->batch_used, facts->offset);
    if (!error && !helio_store_segment_add(&stream->open, facts)) {
        error = helio_fail_plain(HELIO_ERR_NOMEM, "no memory for the index of a segment");
    }
    if (error) {
        /* The batch stays in memory.  A rest that cannot be cut is overwritten or recovered. */
        (void)store->os->truncate(store->os->context, stream->file, (off_t)facts->offset);
        return error;
    }
    stream->written += facts->messages;
    empty_batch(stream);
    error = sync_file(store, stream->file);
    if (error) {
        stream->is_failed = true;
        return error;
    }
    if (store->options.fsync != HELIO_STORE_FSYNC_NEVER) {
        stream->durable = stream->written;
    }
    return 0;
}

static bool grow(helio_store_stream *stream, size_t bytes) {
    if (stream->batch_size - stream->batch_used >= bytes && stream->batch) {
        return true;
    }
    const size_t doubled = stream->batch_size * 2;
    const size_t needed = stream->batch_used + bytes;
    const size_t size = doubled > needed ? doubled : needed;
    uint8_t *larger = realloc(stream->batch, size);
    if (larger) {
        stream->batch = larger;
        stream->batch_size = size;
    }
    return larger != NULL;
}

static bool is_topic(const helio_store_stream *stream, size_t topic,
                     const helio_store_message *message) {
    helio_store_record record;
    size_t offset = stream->topics[topic];
    return helio_store_get_record(stream->batch, stream->batch_used, &offset, &record) ==
               HELIO_STORE_OK &&
           record.bytes == message->topic_bytes &&
           memcmp(record.data, message->topic, record.bytes) == 0;
}

/* The number of the topic in the batch; topics_count: it has none. */
static size_t find_topic(const helio_store_stream *stream, const helio_store_message *message) {
    if (stream->topics_count > 0 && is_topic(stream, stream->topic_last, message)) {
        return stream->topic_last;
    }
    for (size_t i = 0; i < stream->topics_count; i++) {
        if (is_topic(stream, i, message)) {
            return i;
        }
    }
    return stream->topics_count;
}

static bool grow_topics(helio_store_stream *stream) {
    if (stream->topics_count < stream->topics_size) {
        return true;
    }
    const size_t size = stream->topics_size ? stream->topics_size * 2 : 16;
    uint32_t *larger = realloc(stream->topics, size * sizeof *larger);
    if (larger) {
        stream->topics = larger;
        stream->topics_size = size;
    }
    return larger != NULL;
}

int helio_store_append(helio_store_stream *stream, const helio_store_message *message,
                       uint64_t now_ns, uint64_t *position) {
    const helio_store_options *options = &stream->store->options;
    const bool is_always = options->fsync == HELIO_STORE_FSYNC_ALWAYS;
    if (message->topic_bytes > HELIO_STORE_TOPIC_MAX || message->bytes > HELIO_STORE_PAYLOAD_MAX) {
        return helio_fail_plain(HELIO_ERR_SIZE, "the message is too large for the store");
    }
    const bool is_due = stream->batch_used >= options->batch_bytes + HELIO_STORE_HEAD_BYTES ||
                        stream->topics_count > UINT16_MAX || is_always;
    if (stream->is_failed || is_due) {
        const int error = helio_store_flush(stream);
        if (error) {
            return error;
        }
    }
    if (!grow(stream, HELIO_STORE_RECORD_BYTES + message->topic_bytes +
                          HELIO_STORE_MESSAGE_HEAD_BYTES + message->bytes) ||
        !grow_topics(stream)) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory for a message of the store");
    }
    const size_t topic = find_topic(stream, message);
    if (topic == stream->topics_count) {
        const helio_store_record name = {.kind = HELIO_STORE_TOPIC,
                                         .topic = (uint16_t)topic,
                                         .data = (const uint8_t *)message->topic,
                                         .bytes = message->topic_bytes};
        stream->topics[stream->topics_count++] = (uint32_t)stream->batch_used;
        stream->batch_used += helio_store_put_record(stream->batch + stream->batch_used, &name);
    }
    stream->topic_last = topic;
    const helio_store_record record = {.kind = HELIO_STORE_MESSAGE,
                                       .flags = message->flags,
                                       .topic = (uint16_t)topic,
                                       .sequence = message->sequence,
                                       .number = message->number,
                                       .submit_ns = message->submit_ns,
                                       .receive_ns = message->receive_ns,
                                       .data = message->payload,
                                       .bytes = message->bytes};
    stream->begun_ns = stream->facts.messages == 0 ? now_ns : stream->begun_ns;
    stream->batch_used += helio_store_put_record(stream->batch + stream->batch_used, &record);
    helio_store_count(&stream->facts, &record);
    *position = ++stream->appended;
    if (is_always || stream->batch_used >= options->batch_bytes + HELIO_STORE_HEAD_BYTES) {
        (void)helio_store_flush(stream);
    }
    return 0;
}

int helio_store_poll(helio_store *store, uint64_t now_ns) {
    int error = 0;
    for (helio_store_stream *stream = store->streams; stream; stream = stream->next) {
        if (stream->facts.messages > 0 &&
            now_ns - stream->begun_ns >= store->options.batch_time_ns) {
            const int one = helio_store_flush(stream);
            error = error ? error : one;
        }
    }
    return error;
}

/* ---- retention ---- */

int helio_store_retain(helio_store_stream *stream, uint64_t wall_ns) {
    const helio_store_options *options = &stream->store->options;
    uint64_t bytes = helio_store_usage_of(stream).bytes;
    size_t removed = 0;
    int error = 0;
    while (removed < stream->closed_count && !error) {
        const closed_segment *oldest = &stream->closed[removed];
        const bool is_old = options->retain_ns > 0 && oldest->last_ns < wall_ns &&
                            wall_ns - oldest->last_ns > options->retain_ns;
        if (!is_old && (options->retain_bytes == 0 || bytes <= options->retain_bytes)) {
            break;
        }
        const helio_store_id id = {stream->tsi, oldest->number};
        error = remove_segment(stream->store, &id);
        if (!error) {
            bytes -= oldest->bytes;
            removed++;
        }
    }
    stream->closed_count -= removed;
    if (removed > 0) {
        memmove(stream->closed, stream->closed + removed,
                stream->closed_count * sizeof *stream->closed);
    }
    return error;
}

static bool is_open(const helio_store *store, const helio_tsi *tsi) {
    const helio_store_stream *stream = store->streams;
    while (stream && !helio_tsi_equal(&stream->tsi, tsi)) {
        stream = stream->next;
    }
    return stream != NULL;
}

static bool is_unchanged_since(const helio_store *store, const helio_store_id *id, uint64_t ns) {
    char name[HELIO_STORE_NAME_BYTES];
    struct stat about;
    return fstatat(store->folder, helio_store_name(name, id, "seg"), &about, AT_SYMLINK_NOFOLLOW) ==
               0 &&
           (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec < ns;
}

int helio_store_retain_closed(helio_store *store, uint64_t wall_ns, uint64_t *removed) {
    const uint64_t retain_ns = store->options.retain_ns;
    if (retain_ns == 0 || retain_ns >= wall_ns) {
        return 0;
    }
    helio_store_id *ids;
    size_t count;
    int error = helio_store_list(store->folder, NULL, &ids, &count);
    /* The oldest of a stream come first.  One that stays keeps those after it. */
    const helio_tsi *stays = NULL;
    for (size_t i = 0; i < count && !error; i++) {
        const helio_store_id *id = &ids[i];
        if (is_open(store, &id->tsi) || (stays && helio_tsi_equal(stays, &id->tsi))) {
            continue;
        }
        if (!is_unchanged_since(store, id, wall_ns - retain_ns)) {
            stays = &id->tsi;
            continue;
        }
        error = remove_segment(store, id);
        if (!error) {
            ++*removed;
        }
    }
    free(ids);
    return error;
}

helio_store_usage helio_store_usage_of(const helio_store_stream *stream) {
    helio_store_usage usage = {stream->closed_count + (stream->file >= 0), stream->open.end};
    for (size_t i = 0; i < stream->closed_count; i++) {
        usage.bytes += stream->closed[i].bytes;
    }
    return usage;
}

/* ---- positions ---- */

uint64_t helio_store_first(const helio_store_stream *stream) {
    if (stream->closed_count > 0) {
        return stream->closed[0].position;
    }
    return stream->open.count > 0 ? stream->open.header.position : 0;
}

uint64_t helio_store_appended(const helio_store_stream *stream) {
    return stream->appended;
}

uint64_t helio_store_written(const helio_store_stream *stream) {
    return stream->written;
}

uint64_t helio_store_durable(const helio_store_stream *stream) {
    return stream->durable;
}

uint64_t helio_store_cut_bytes(const helio_store_stream *stream) {
    return stream->cut_bytes;
}
