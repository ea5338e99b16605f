#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/files.h"

struct helio_store_reader {
    int folder;
    helio_store_choice choice;
    uint64_t since_ns;
    helio_store_id *ids;
    size_t ids_count, next_id;
    helio_store_segment segment;
    /* Of the segment; -1: none is open. */
    int file;
    size_t next_batch;
    /* A whole batch: its head, when it is asked for, and its body. */
    uint8_t *whole;
    size_t whole_size;
    helio_store_batch batch;
    helio_store_records records;
};

int helio_store_reader_open(const char *path, const helio_tsi *tsi, helio_store_by by,
                            helio_store_span range, helio_store_reader **out) {
    *out = NULL;
    helio_store_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        return helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a store");
    }
    reader->choice = (helio_store_choice){by, range};
    reader->file = -1;
    reader->folder = helio_store_folder_open(path);
    const int error = reader->folder < 0
                          ? reader->folder
                          : helio_store_list(reader->folder, tsi, &reader->ids, &reader->ids_count);
    if (error) {
        helio_store_reader_close(reader);
        return error;
    }
    *out = reader;
    return 0;
}

void helio_store_reader_since(helio_store_reader *reader, uint64_t since_ns) {
    reader->since_ns = since_ns;
}

static void leave_segment(helio_store_reader *reader) {
    if (reader->file >= 0) {
        close(reader->file);
    }
    reader->file = -1;
    helio_store_segment_release(&reader->segment);
}

void helio_store_reader_close(helio_store_reader *reader) {
    if (!reader) {
        return;
    }
    leave_segment(reader);
    if (reader->folder >= 0) {
        close(reader->folder);
    }
    free(reader->ids);
    free(reader->whole);
    free(reader);
}

static int damaged(const helio_store_reader *reader, uint64_t offset) {
    char name[HELIO_STORE_NAME_BYTES];
    return helio_fail(HELIO_ERR_STATE, "the segment %s is damaged at byte %llu",
                      helio_store_name(name, &reader->segment.id, "seg"),
                      (unsigned long long)offset);
}

/* Opens the next segment.  Returns 1, 0: no more, or an error. */
static int next_segment(helio_store_reader *reader) {
    leave_segment(reader);
    while (reader->next_id < reader->ids_count) {
        const helio_store_id *id = &reader->ids[reader->next_id++];
        const bool is_last = reader->next_id == reader->ids_count;
        char name[HELIO_STORE_NAME_BYTES];
        helio_store_name(name, id, "seg");
        reader->file = openat(reader->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (reader->file < 0 && errno == ENOENT) {
            continue; /* removed since the listing */
        }
        const int error =
            helio_store_segment_read(reader->folder, id, HELIO_STORE_BY_INDEX, &reader->segment);
        if (error) {
            leave_segment(reader);
            return error;
        }
        if (reader->segment.header_result != HELIO_STORE_OK) {
            return is_last && reader->segment.header_result == HELIO_STORE_SHORT
                       ? 0
                       : damaged(reader, 0);
        }
        reader->next_batch = 0;
        return 1;
    }
    return 0;
}

static int read_batch(helio_store_reader *reader, const helio_store_batch *batch) {
    if (batch->body_bytes > HELIO_STORE_BODY_MAX) {
        return damaged(reader, batch->offset);
    }
    const size_t size = HELIO_STORE_HEAD_BYTES + (size_t)batch->body_bytes;
    if (size > reader->whole_size) {
        free(reader->whole);
        reader->whole = malloc(size);
        reader->whole_size = reader->whole ? size : 0;
        if (!reader->whole) {
            return helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a batch");
        }
    }
    uint8_t *body = reader->whole + HELIO_STORE_HEAD_BYTES;
    if (!helio_store_read_at(reader->file, body, batch->body_bytes,
                             batch->offset + HELIO_STORE_HEAD_BYTES) ||
        helio_store_check_batch(batch, body, batch->body_bytes) != HELIO_STORE_OK) {
        return damaged(reader, batch->offset);
    }
    reader->batch = *batch;
    helio_store_records_begin(&reader->records, batch, body);
    return 1;
}

/* Reads the next batch within the range.  Returns 1, 0: no more, or an error. */
static int next_batch(helio_store_reader *reader) {
    for (;;) {
        const helio_store_segment *segment = &reader->segment;
        while (reader->file >= 0 && reader->next_batch < segment->count) {
            const helio_store_batch *batch = &segment->batches[reader->next_batch++];
            if (helio_store_overlaps(&reader->choice, batch) &&
                batch->times.last >= reader->since_ns) {
                const int result = read_batch(reader, batch);
                const bool is_torn = result == HELIO_ERR_STATE && !segment->is_indexed &&
                                     reader->next_id == reader->ids_count &&
                                     reader->next_batch == segment->count;
                return is_torn ? 0 : result;
            }
        }
        const bool is_last = reader->next_id == reader->ids_count;
        if (reader->file >= 0 && (segment->tail == HELIO_STORE_DAMAGED ||
                                  (segment->tail == HELIO_STORE_SHORT && !is_last))) {
            return damaged(reader, segment->end);
        }
        const int result = next_segment(reader);
        if (result != 1) {
            return result;
        }
    }
}

int helio_store_reader_next(helio_store_reader *reader, helio_store_message *out,
                            uint64_t *position) {
    for (;;) {
        const int found =
            helio_store_records_next(&reader->records, &reader->choice, out, position);
        if (found != 0) {
            return found < 0 ? damaged(reader, reader->batch.offset) : 1;
        }
        const int result = next_batch(reader);
        if (result != 1) {
            return result;
        }
    }
}

int helio_store_reader_batch(helio_store_reader *reader, const char *topic, size_t topic_bytes,
                             const uint8_t **out, size_t *bytes) {
    for (;;) {
        const int result = next_batch(reader);
        if (result != 1) {
            return result;
        }
        const uint8_t *body = reader->whole + HELIO_STORE_HEAD_BYTES;
        if (!topic || helio_store_has_topic(&reader->batch, body, topic, topic_bytes)) {
            helio_store_put_head(reader->whole, &reader->batch);
            *out = reader->whole;
            *bytes = HELIO_STORE_HEAD_BYTES + (size_t)reader->batch.body_bytes;
            return 1;
        }
    }
}
