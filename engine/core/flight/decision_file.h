/* The file of a stream's decision log (policy/decision_log.h), mapped:
 * FOLDER/NAME.PID.STREAM.decisions.
 *
 * It has its full size from the start, allocated (a mapping of a file with holes kills its writer
 * when the disk is full), so writing a record is writing to memory; when it is closed what was not
 * used is cut off.  A crash leaves the records that were whole. */
#ifndef HELIO_FLIGHT_DECISION_FILE_H
#define HELIO_FLIGHT_DECISION_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mapped.h"

typedef struct helio_decision_file {
    void *memory; /* NULL: there is none */
    size_t bytes;
    int file;
    char *path;
    helio_mapped *guard; /* of the mapping */
    bool is_cut_told;
} helio_decision_file;

/* Creates it; the folder must be there.  `stream`: its TSI as text.  0, HELIO_ERR_SYSTEM,
 * PERMISSION or NOMEM, with a sentence. */
int helio_decision_file_open(helio_decision_file *file, const char *folder, const char *instance,
                             const char *stream, size_t bytes);
/* Keeps the first `used` bytes.  Accepts one that was never opened (all zero). */
void helio_decision_file_close(helio_decision_file *file, size_t used);

#endif
