/* The files of a store's directory: their names, and segments read from disk. */
#ifndef HELIO_STORE_FILES_H
#define HELIO_STORE_FILES_H

#include <stdbool.h>

#include "store/format.h"

/* The file that the writer holds locked. */
#define HELIO_STORE_LOCK "store.lock"
#define HELIO_STORE_LOCK_TEXT "heliograph store 1\n"

/* Directory of the messages that wait for earlier ones, a store within the store's directory. */
#define HELIO_STORE_AHEAD "/ahead"

enum { HELIO_STORE_NAME_BYTES = 48 };

typedef struct helio_store_id {
    helio_tsi tsi;
    uint64_t number;
} helio_store_id;

/* "GSI-PORT-NUMBER.seg"; `suffix`: "seg" or "idx".  Returns `name`. */
const char *helio_store_name(char name[HELIO_STORE_NAME_BYTES], const helio_store_id *id,
                             const char *suffix);

/* A segment as found on disk. */
typedef struct helio_store_segment {
    helio_store_id id;
    /* Of the file. */
    uint64_t bytes;
    /* Of the header. */
    helio_store_result header_result;
    helio_store_header header;
    uint8_t header_memory[HELIO_STORE_HEADER_MAX];
    /* Whole batches, in order; from malloc. */
    helio_store_batch *batches;
    size_t count, size;
    /* Of the last whole batch. */
    uint64_t end;
    /* OK: nothing follows the end.  SHORT: an incomplete batch, as a crash leaves it.  DAMAGED:
     * anything else. */
    helio_store_result tail;
    /* The batches were read from the index. */
    bool is_indexed;
} helio_store_segment;

typedef enum helio_store_depth {
    /* The index where it is right, else the heads. */
    HELIO_STORE_BY_INDEX,
    /* Heads and checks of bodies. */
    HELIO_STORE_BY_CHECK,
    /* Every record. */
    HELIO_STORE_BY_RECORD,
} helio_store_depth;

/* Checks the version of a directory; returns its descriptor, or an error. */
int helio_store_folder_open(const char *path);
/* The segments in a directory in the order of stream and number; all streams when `tsi` is NULL.
 * *out is from malloc.  Returns 0, SYSTEM or NOMEM. */
int helio_store_list(int folder, const helio_tsi *tsi, helio_store_id **out, size_t *count);
/* Reads a segment.  Damage is a result and not an error.  Returns 0, SYSTEM or NOMEM; release `out`
 * in each case. */
int helio_store_segment_read(int folder, const helio_store_id *id, helio_store_depth depth,
                             helio_store_segment *out);
void helio_store_segment_release(helio_store_segment *segment);
/* Appends a batch; false: no memory. */
bool helio_store_segment_add(helio_store_segment *segment, const helio_store_batch *batch);
/* Position after the last message. */
uint64_t helio_store_segment_next(const helio_store_segment *segment);
/* Whether the index of the segment is right. */
helio_store_result helio_store_index_check(int folder, const helio_store_segment *segment);
/* Reads exactly `bytes`; false: error, or the file is shorter. */
bool helio_store_read_at(int file, void *to, size_t bytes, uint64_t offset);

#endif
