/* The messages of one whole batch (docs/store.md, section 3), from a file or from another store. */
#ifndef HELIO_STORE_RECORDS_H
#define HELIO_STORE_RECORDS_H

#include <stdbool.h>

#include "store/store.h"

typedef enum helio_store_by {
    HELIO_STORE_BY_POSITION,
    HELIO_STORE_BY_SEQUENCE,
    HELIO_STORE_BY_NUMBER,
    /* Receive time, ns since 1970. */
    HELIO_STORE_BY_TIME,
} helio_store_by;

/* The messages that are wanted: those with this value from `range.first` to `range.last`. */
typedef struct helio_store_choice {
    helio_store_by by;
    helio_store_span range;
} helio_store_choice;

typedef struct helio_store_topic_name {
    const char *text;
    size_t bytes;
} helio_store_topic_name;

/* Zero: a batch without records. */
typedef struct helio_store_records {
    const uint8_t *body;
    size_t bytes, offset;
    /* Of the next message. */
    uint64_t position;
    helio_store_topic_name topics[UINT16_MAX + 1];
} helio_store_records;

/* Whether the batch may have such a message. */
bool helio_store_overlaps(const helio_store_choice *choice, const helio_store_batch *batch);
/* Begins with a body that helio_store_check_batch has accepted; it must stay. */
void helio_store_records_begin(helio_store_records *records, const helio_store_batch *batch,
                               const uint8_t *body);
/* The next message of the choice; its texts are within the body.  Returns 1, 0 at the end, or -1:
 * the body is not as it was when it was checked. */
int helio_store_records_next(helio_store_records *records, const helio_store_choice *choice,
                             helio_store_message *out, uint64_t *position);
/* Whether a body that helio_store_check_batch has accepted has messages of the topic. */
bool helio_store_has_topic(const helio_store_batch *batch, const uint8_t *body, const char *topic,
                           size_t topic_bytes);

#endif
