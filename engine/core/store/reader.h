/* Reads the messages of a stream from a store, also while it is written.  It reads what is whole
 * when it comes to a segment, and takes no lock. */
#ifndef HELIO_STORE_READER_H
#define HELIO_STORE_READER_H

#include "store/store.h"

typedef enum helio_store_by {
    HELIO_STORE_BY_POSITION,
    HELIO_STORE_BY_SEQUENCE,
    HELIO_STORE_BY_NUMBER,
    /* Receive time, ns since 1970. */
    HELIO_STORE_BY_TIME,
} helio_store_by;

typedef struct helio_store_reader helio_store_reader;

/* Opens the messages from `first` to `last`, both included.  Close it with
 * helio_store_reader_close.  Returns 0, NOMEM, SYSTEM, or STATE: it is not a store of this
 * version. */
int helio_store_reader_open(const char *path, const helio_tsi *tsi, helio_store_by by,
                            helio_store_span range, helio_store_reader **out);
/* Passes over batches without a message received at `since_ns` (ns since 1970) or later. */
void helio_store_reader_since(helio_store_reader *reader, uint64_t since_ns);
/* The next message; its texts are valid until the next call.  Returns 1, 0 at the end, or an error:
 * STATE when a segment is damaged. */
int helio_store_reader_next(helio_store_reader *reader, helio_store_message *out,
                            uint64_t *position);
/* Accepts NULL. */
void helio_store_reader_close(helio_store_reader *reader);

#endif
