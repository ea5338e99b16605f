/* Reads the messages of a stream from a store, also while it is written.  It reads what is whole
 * when it comes to a segment, and takes no lock. */
#ifndef HELIO_STORE_READER_H
#define HELIO_STORE_READER_H

#include "store/records.h"

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
/* The next whole batch, head and body, that may have such a message, for another program to decode.
 * `topic`: only batches with messages of this topic; NULL: all.  Not to be mixed with
 * helio_store_reader_next.  The bytes are valid until the next call.  Returns as that. */
int helio_store_reader_batch(helio_store_reader *reader, const char *topic, size_t topic_bytes,
                             const uint8_t **out, size_t *bytes);
/* Accepts NULL. */
void helio_store_reader_close(helio_store_reader *reader);

#endif
