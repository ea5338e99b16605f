/* The writer of a message store: a directory with the segments of several streams (docs/store.md).
 *
 * A message is appended to the batch of its stream.  A batch is written when it has `batch_bytes`
 * or is `batch_time_ns` old.  A batch that could not be written stays in memory, and the next
 * append tries again.  After a failed fsync a stream is closed for writing, because the kernel may
 * have dropped the pages.
 *
 * One thread at a time uses a store.  Time is an argument. */
#ifndef HELIO_STORE_STORE_H
#define HELIO_STORE_STORE_H

#include <stdbool.h>
#include <sys/types.h>

#include "store/format.h"

typedef enum helio_store_fsync {
    /* After each batch. */
    HELIO_STORE_FSYNC_BATCH,
    /* Each message is a batch. */
    HELIO_STORE_FSYNC_ALWAYS,
    /* Left to the kernel; nothing counts as durable. */
    HELIO_STORE_FSYNC_NEVER,
} helio_store_fsync;

typedef struct helio_store_options {
    helio_store_fsync fsync;
    size_t batch_bytes;
    uint64_t batch_time_ns;
    uint64_t segment_bytes;
    /* Of each stream; 0: no limit. */
    uint64_t retain_bytes;
    uint64_t retain_ns;
    /* At opening, cut a damaged last segment at its last whole batch; else refuse it. */
    bool cut_damage;
} helio_store_options;

/* fsync=batch, 64 KiB, 10 ms, 64 MiB, no limits. */
helio_store_options helio_store_defaults(void);

/* The calls that change files; they return as the calls of POSIX do. */
typedef struct helio_store_os {
    void *context;
    /* `flags` besides O_RDWR, O_CREAT and O_CLOEXEC. */
    int (*create)(void *context, int folder, const char *name, int flags);
    ssize_t (*write)(void *context, int file, const void *bytes, size_t count, off_t offset);
    int (*sync)(void *context, int file);
    int (*truncate)(void *context, int file, off_t bytes);
    int (*remove)(void *context, int folder, const char *name);
} helio_store_os;

/* Those of the operating system. */
extern const helio_store_os helio_store_system;

typedef struct helio_store helio_store;
typedef struct helio_store_stream helio_store_stream;

typedef struct helio_store_message {
    const char *topic;
    size_t topic_bytes;
    /* Of the packet, extended to 64 bits by the caller. */
    uint64_t sequence;
    uint64_t number;
    /* ns since 1970; 0: unknown. */
    uint64_t submit_ns, receive_ns;
    uint8_t flags;
    const void *payload;
    size_t bytes;
} helio_store_message;

/* Opens the store in a directory that exists, and locks it.  `os` is kept.  Close it with
 * helio_store_close.  Returns 0, OPTION, NOMEM, SYSTEM, or STATE: another process has it, or it has
 * another version. */
int helio_store_open(const char *path, const helio_store_options *options, const helio_store_os *os,
                     helio_store **out);
/* Writes the batches, with fsync unless fsync=never, and closes everything.  Returns the first
 * error.  Accepts NULL. */
int helio_store_close(helio_store *store);

/* The stream, recovered when it has segments: an incomplete last batch is cut off.  `source` is at
 * most HELIO_STORE_SOURCE_MAX bytes.  The stream belongs to the store.  Returns 0, SIZE, NOMEM,
 * SYSTEM, or STATE: damaged or of another version. */
int helio_store_stream_open(helio_store *store, const helio_tsi *tsi, const char *source,
                            helio_store_stream **out);

/* Writes the batch and closes the stream, which is gone even after an error.  Its files stay. */
int helio_store_stream_close(helio_store_stream *stream);

/* Closes the stream without writing its batch, and removes its files, the newest first: a crash
 * leaves its beginning. The stream is gone even after an error.  Returns 0 or SYSTEM. */
int helio_store_stream_discard(helio_store_stream *stream);

/* Appends a message and stores its position.  Returns 0: the message is in the batch or written;
 * else it was not taken.  A batch that cannot be written is an error of the next append.  Returns
 * SIZE, NOMEM, SYSTEM, or STATE: closed for writing. */
int helio_store_append(helio_store_stream *stream, const helio_store_message *message,
                       uint64_t now_ns, uint64_t *position);
/* Writes batches older than batch_time_ns.  Returns the first error. */
int helio_store_poll(helio_store *store, uint64_t now_ns);
/* Writes the batch now. */
int helio_store_flush(helio_store_stream *stream);
/* Removes the oldest segments beyond the limits, but never the one being written.  Returns 0 or
 * SYSTEM. */
int helio_store_retain(helio_store_stream *stream, uint64_t wall_ns);

/* Removes old segments of all streams that are not open, the last segment included: those whose file
 * was not changed for retain_ns.  Counts the removed in *removed.  Returns 0, SYSTEM or NOMEM. */
int helio_store_retain_closed(helio_store *store, uint64_t wall_ns, uint64_t *removed);

/* Segments of the stream, and their bytes. */
typedef struct helio_store_usage {
    uint64_t segments, bytes;
} helio_store_usage;
helio_store_usage helio_store_usage_of(const helio_store_stream *stream);

/* Positions: a stream's messages are 1, 2, 3...  The oldest kept, the last appended, the last
 * written, and the last that survives a power failure; 0: none. */
uint64_t helio_store_first(const helio_store_stream *stream);
uint64_t helio_store_appended(const helio_store_stream *stream);
uint64_t helio_store_written(const helio_store_stream *stream);
uint64_t helio_store_durable(const helio_store_stream *stream);
/* Bytes that recovery cut off. */
uint64_t helio_store_cut_bytes(const helio_store_stream *stream);

#endif
