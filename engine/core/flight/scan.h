/* What the recorder knows of the instance's objects: their cells as they are now and as the frame
 * before had them, so that a frame need only tell what changed. */
#ifndef HELIO_FLIGHT_SCAN_H
#define HELIO_FLIGHT_SCAN_H

#include "flight/frame.h"
#include "stats/reading.h"

typedef struct helio_flight_seen {
    uint64_t generation, told_generation;
    uint64_t created_ns;
    uint64_t *now, *told; /* cells; NULL: never used.  They differ only while is_changed */
    uint16_t words, scope;
    bool is_live;     /* now */
    bool is_told;     /* it is in the recording, as live */
    bool is_left_out; /* it found no room in the chunk */
    bool is_torn;
    bool is_changed;
} helio_flight_seen;

typedef struct helio_flight_scan {
    const helio_stats *stats;
    helio_flight_seen *seen; /* by slot */
    uint32_t slots_max;
    uint32_t slots;    /* looked at */
    uint64_t *spare;   /* cells of one record */
    uint32_t left_out; /* of the last frame with a key */
} helio_flight_scan;

/* Returns 0 or HELIO_ERR_NOMEM. */
int helio_flight_scan_init(helio_flight_scan *scan, const helio_stats *stats);
void helio_flight_scan_fini(helio_flight_scan *scan);

/* Reads every object. */
void helio_flight_scan_look(helio_flight_scan *scan);
/* Writes what changed since what was settled, or, for a key, all there is: then objects that do not
 * fit are left out and counted.  Returns false when what changed does not fit. */
bool helio_flight_scan_write(helio_flight_scan *scan, helio_flight_frame *frame, bool is_key);
/* The frame written last is in the recording. */
void helio_flight_scan_settle(helio_flight_scan *scan);

#endif
