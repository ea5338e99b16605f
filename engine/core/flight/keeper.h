/* Recordings that are kept: the ring as it is, copied into a file of its own beside it,
 * NAME.PID.N.flight, a chunk at a time so that the recorder's ticks go on in between.
 *
 * A number of them per name is kept; the oldest goes.  Instances without a name of their own count
 * by their program, or each run would leave as many.  Nothing is written that would take the last
 * room of the file system, which the statistics may need. */
#ifndef HELIO_FLIGHT_KEEPER_H
#define HELIO_FLIGHT_KEEPER_H

#include "flight/recorder.h"

typedef struct helio_flight_keeper {
    uint32_t keep;   /* recordings of a name; 0: none */
    uint32_t number; /* of the last one */
    int file;        /* being written; -1: none */
    char *path;      /* of the last one */
    uint64_t bytes;  /* of it */
    helio_flight_cause cause;
    uint32_t count, done; /* chunks to copy, and copied */
    struct {
        uint32_t chunk;
        uint64_t sequence;
    } plan[HELIO_FLIGHT_CHUNKS];
} helio_flight_keeper;

void helio_flight_keeper_init(helio_flight_keeper *keeper, uint32_t keep);
void helio_flight_keeper_fini(helio_flight_keeper *keeper);
/* Gives up what is being written, if anything is. */
void helio_flight_keeper_drop(helio_flight_keeper *keeper);

static inline bool helio_flight_keeper_is_busy(const helio_flight_keeper *keeper) {
    return keeper->file >= 0;
}

/* Begins to keep what is in the ring.  Returns 0, NOMEM or SYSTEM; then there is no file. */
int helio_flight_keeper_begin(helio_flight_keeper *keeper, const helio_flight_file *ring,
                              const helio_flight_cause *cause);
/* Copies a chunk.  Returns 1 when that was all and `path` can be read, 0 when there is more, or
 * SYSTEM; then there is no file. */
int helio_flight_keeper_step(helio_flight_keeper *keeper, const helio_flight_file *ring);

#endif
