/* The cells of the instance's objects, as read now and as last recorded.  A frame then contains
 * only the cells that changed. */
#ifndef HELIO_FLIGHT_SCAN_H
#define HELIO_FLIGHT_SCAN_H

#include "flight/frame.h"
#include "stats/reading.h"

typedef struct helio_flight_seen {
    uint64_t generation, told_generation;
    uint64_t created_ns;
    /* Cells as read and as recorded; NULL: never used.  They differ only while is_changed. */
    uint64_t *now, *told;
    uint16_t words, scope;
    bool is_live;     /* now */
    bool is_told;     /* the recording has it as live */
    bool is_left_out; /* the chunk had no room for it */
    bool is_torn;
    bool is_changed;
} helio_flight_seen;

typedef struct helio_flight_scan {
    const helio_stats *stats;
    helio_flight_seen *seen; /* by slot */
    uint32_t slots_max;
    uint32_t slots;    /* number of slots read */
    uint64_t *spare;   /* cells of one record */
    uint32_t left_out; /* objects left out of the last key frame */
} helio_flight_scan;

/* Returns 0 or HELIO_ERR_NOMEM. */
int helio_flight_scan_init(helio_flight_scan *scan, const helio_stats *stats);
void helio_flight_scan_fini(helio_flight_scan *scan);

/* Reads every object. */
void helio_flight_scan_look(helio_flight_scan *scan);
/* Writes the changes since the last settle.  A key frame has all objects; those that do not fit are
 * left out and counted.  Returns false when the frame does not fit. */
bool helio_flight_scan_write(helio_flight_scan *scan, helio_flight_frame *frame, bool is_key);
/* Call it when the last frame written is in the recording. */
void helio_flight_scan_settle(helio_flight_scan *scan);

#endif
