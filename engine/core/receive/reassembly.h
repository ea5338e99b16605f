/* Reassembly of a fragmented batch.  Fragments come in stream order, so there is one batch at a
 * time, and only the next piece fits; any other piece ends it.
 *
 * A batch's declared length is checked against the largest message, but memory grows only with the
 * data that has come.  The buffer is kept for the next batch. */
#ifndef HELIO_RECEIVE_REASSEMBLY_H
#define HELIO_RECEIVE_REASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"
#include "wire/pgm.h"

typedef enum helio_reassembly_result {
    HELIO_REASSEMBLY_MORE,     /* taken; more to come */
    HELIO_REASSEMBLY_COMPLETE, /* taken; data and bytes are the batch until the next call */
    HELIO_REASSEMBLY_STRAY,    /* continues nothing: its beginning was never seen, or was lost */
    HELIO_REASSEMBLY_DAMAGED,  /* contradicts earlier fragments, is too long, or out of memory */
} helio_reassembly_result;

typedef struct helio_reassembly {
    uint8_t *data;
    size_t capacity;
    size_t bytes;           /* so far */
    size_t limit;           /* largest batch */
    helio_account *account; /* of its memory; may be NULL */
    uint32_t first;         /* sequence of the first fragment */
    uint32_t total;         /* bytes of the whole */
    bool is_open;
} helio_reassembly;

void helio_reassembly_init(helio_reassembly *reassembly, size_t limit, helio_account *account);
void helio_reassembly_fini(helio_reassembly *reassembly);
helio_reassembly_result helio_reassembly_add(helio_reassembly *reassembly,
                                             const helio_pgm_fragment *fragment,
                                             const uint8_t *data, size_t bytes);
/* Drops the batch; the rest of its fragments will be STRAY. */
void helio_reassembly_abort(helio_reassembly *reassembly);

#endif
