/* One tick of the flight recorder: reads all objects and events and appends the changes to the
 * ring.  It has neither thread nor clock: the caller passes the time. */
#ifndef HELIO_FLIGHT_RECORDER_H
#define HELIO_FLIGHT_RECORDER_H

#include "base/moment.h"
#include "flight/file.h"
#include "flight/scan.h"

enum { HELIO_FLIGHT_EVENTS_PER_TICK = 32 };

/* Time of a tick. */
typedef struct helio_flight_time {
    helio_moment moment;
    int64_t late_ns; /* delay after its planned time */
    uint64_t missed; /* planned ticks omitted since the previous one */
    int64_t next_ns; /* planned time to the next one */
} helio_flight_time;

/* Why a recording is kept. */
typedef struct helio_flight_cause {
    int64_t wall_ns;
    uint64_t event; /* number + 1; 0: by hand */
    char why[HELIO_FLIGHT_WHY_BYTES];
} helio_flight_cause;

typedef struct helio_flight_recorder {
    const helio_stats *stats;
    helio_flight_file file;
    helio_flight_scan scan;
    helio_flight_frame frame;
    helio_moment before; /* the previous tick */
    uint64_t next_event;
    uint64_t ticks;
    uint64_t chunks_begun;
    struct {
        helio_segment_event list[HELIO_FLIGHT_EVENTS_PER_TICK];
        size_t count;
        uint64_t missed; /* overwritten before they were read */
    } events;            /* of the last tick */
} helio_flight_recorder;

/* Opens the ring and records events from now on.  Returns 0, NOMEM or SYSTEM. */
int helio_flight_recorder_open(helio_flight_recorder *recorder, const helio_stats *stats,
                               const char *path, size_t bytes, int64_t interval_ns);
/* Accepts one that was never opened (all zero). */
void helio_flight_recorder_close(helio_flight_recorder *recorder);

/* Reads objects and events; `events` then has the new events. */
void helio_flight_recorder_look(helio_flight_recorder *recorder);
/* Records the objects and events read.  `cause`: why a recording is kept from now on, or NULL. */
void helio_flight_recorder_write(helio_flight_recorder *recorder, const helio_flight_time *time,
                                 const helio_flight_cause *cause);

#endif
