#include "store/topics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/files.h"
#include "store/records.h"

typedef struct search {
    int folder;
    const char *topic;
    size_t topic_bytes;
    uint64_t *number;
    uint8_t *body;
    size_t body_size;
    helio_store_records *records;
} search;

static int damaged(const helio_store_segment *segment, uint64_t offset) {
    char name[HELIO_STORE_NAME_BYTES];
    return helio_fail(HELIO_ERR_STATE, "the segment %s is damaged at byte %llu",
                      helio_store_name(name, &segment->id, "seg"), (unsigned long long)offset);
}

/* The greatest number of the topic in a batch.  Returns as helio_store_last_number. */
static int search_batch(search *search, const helio_store_segment *segment, int file,
                        const helio_store_batch *batch) {
    if (batch->body_bytes > search->body_size) {
        free(search->body);
        search->body = malloc(batch->body_bytes);
        search->body_size = search->body ? batch->body_bytes : 0;
        if (!search->body) {
            return helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a batch");
        }
    }
    if (!helio_store_read_at(file, search->body, batch->body_bytes,
                             batch->offset + HELIO_STORE_HEAD_BYTES) ||
        helio_store_check_batch(batch, search->body, batch->body_bytes) != HELIO_STORE_OK) {
        return damaged(segment, batch->offset);
    }
    if (!helio_store_has_topic(batch, search->body, search->topic, search->topic_bytes)) {
        return 0;
    }
    static const helio_store_choice all = {HELIO_STORE_BY_NUMBER, {0, UINT64_MAX}};
    helio_store_records_begin(search->records, batch, search->body);
    helio_store_message message;
    uint64_t position;
    int found = 0;
    while (helio_store_records_next(search->records, &all, &message, &position) == 1) {
        if (message.topic_bytes == search->topic_bytes &&
            memcmp(message.topic, search->topic, search->topic_bytes) == 0 &&
            (!found || message.number > *search->number)) {
            *search->number = message.number;
            found = 1;
        }
    }
    return found;
}

static int search_segment(search *search, const helio_store_id *id) {
    char name[HELIO_STORE_NAME_BYTES];
    helio_store_name(name, id, "seg");
    const int file = openat(search->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) {
        return errno == ENOENT ? 0 /* removed since the listing */
                               : helio_fail(HELIO_ERR_SYSTEM, "cannot read the segment %s: %s",
                                            name, strerror(errno));
    }
    helio_store_segment segment;
    int result = helio_store_segment_read(search->folder, id, HELIO_STORE_BY_INDEX, &segment);
    for (size_t i = segment.count; i > 0 && result == 0; i--) {
        result = search_batch(search, &segment, file, &segment.batches[i - 1]);
    }
    helio_store_segment_release(&segment);
    close(file);
    return result;
}

int helio_store_last_number(const char *path, const helio_tsi *tsi, const char *topic,
                            size_t topic_bytes, uint64_t *number) {
    search search = {.topic = topic, .topic_bytes = topic_bytes, .number = number};
    search.folder = helio_store_folder_open(path);
    if (search.folder < 0) {
        return search.folder;
    }
    helio_store_id *ids = NULL;
    size_t count = 0;
    int result = helio_store_list(search.folder, tsi, &ids, &count);
    if (!result && !(search.records = malloc(sizeof *search.records))) {
        result = helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a store");
    }
    for (size_t i = count; i > 0 && result == 0; i--) {
        result = search_segment(&search, &ids[i - 1]);
    }
    free(search.records);
    free(search.body);
    free(ids);
    close(search.folder);
    return result;
}
