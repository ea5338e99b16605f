/* The flight recorder of an instance looks at all statistics every flight_interval and keeps the
 * last seconds or minutes of them in a ring (docs/flight.md, docs/adr/0024).
 *
 * In mode thread it has a thread.  That only reads what the engine counts, as a monitor does, and
 * the engine never waits for it: the engine's chores take the recorder's statistics and events.  In
 * mode poll the chores call it, so that the process needs no second thread (docs/adr/0035).  It
 * takes no more than a fiftieth of a core: where looking is dearer, it looks less often. */
#ifndef HELIO_FLIGHT_RECORDING_H
#define HELIO_FLIGHT_RECORDING_H

#include <pthread.h>

#include "flight/keeper.h"
#include "flight/recorder.h"
#include "flight/trigger.h"
#include "options/options.h"
#include "stats/stats.h"

typedef struct helio_flight helio_flight;

enum { HELIO_FLIGHT_OUTCOMES = 4, HELIO_FLIGHT_TEXT_BYTES = 192 };

/* A recording was kept, or could not be. */
typedef struct helio_flight_outcome {
    bool is_kept;
    uint64_t number, bytes;
    helio_flight_cause cause;
    char text[HELIO_FLIGHT_TEXT_BYTES];
} helio_flight_outcome;

/* The instance that is recorded, as the recorder knows it. */
typedef struct helio_flight_instance {
    helio_stats *stats;
    const helio_instance_options *options;
    helio_instance_stats *counts;
    uint32_t slot;    /* of its record */
    const char *name; /* for the thread */
} helio_flight_instance;

struct helio_flight {
    helio_flight_instance instance;
    /* Of the recorder's thread, or of the caller's in mode poll. */
    helio_flight_recorder recorder;
    helio_flight_keeper keeper;
    helio_flight_trigger trigger;
    int64_t interval_ns, step_ns; /* as asked for; as it is */
    /* Monotonic; when the next tick is planned. */
    int64_t planned_ns;
    int64_t cost_ns; /* of a tick, as it mostly is: processor time */
    helio_flight_cause cause;
    int64_t due_ns;     /* monotonic; when the recording is kept; HELIO_NEVER: none is to be */
    uint64_t due_chunk; /* or when this many chunks were begun */
    uint32_t chunks_refused;
    bool is_lost; /* the ring is */

    /* For the engine: written here, read there. */
    _Atomic uint64_t ticks, ticks_late, bytes, step_shown_ns, freezes, errors;
    _Atomic uint64_t told, taken; /* outcomes */
    helio_flight_outcome outcomes[HELIO_FLIGHT_OUTCOMES];

    /* For the recorder: by hand, from any thread. */
    _Atomic int asked; /* 0 no, 1 being written, 2 yes */
    char asked_why[HELIO_FLIGHT_WHY_BYTES];

    pthread_t thread;
    bool has_thread;
    /* Mode poll: chores call helio_flight_serve. */
    bool is_served;
    pthread_mutex_t lock; /* of is_stopping alone */
    pthread_cond_t wake;
    bool is_stopping;
};

/* Opens the recorder as the instance's options say and starts its thread, but in mode poll; *out is NULL when they
 * say there is none or, which an event tells, when it cannot have its file.  Returns 0, OPTION or
 * NOMEM. */
int helio_flight_start(const helio_flight_instance *instance, helio_flight **out);
/* Ends the thread; what was to be kept is kept now.  Accepts NULL. */
void helio_flight_stop(helio_flight *flight);
/* After that: removes the ring.  Accepts NULL. */
void helio_flight_free(helio_flight *flight);

/* Engine, now and then: shows the recorder's statistics and tells what it did.  `flight` may be
 * NULL. */
void helio_flight_tend(helio_flight *flight, int64_t wall_ns);

/* Mode poll: when helio_flight_serve has something to do; HELIO_NEVER where a thread does it. */
static inline int64_t helio_flight_due_ns(const helio_flight *flight) {
    return flight && flight->is_served ? flight->planned_ns : HELIO_NEVER;
}
/* Mode poll: ticks when a tick is due.  `flight` may be NULL. */
void helio_flight_serve(helio_flight *flight, helio_moment moment);

/* Asks for the recording to be kept; any thread.  Returns 0 or STATE: there is no recorder, it
 * keeps nothing (flight_keep=0), or somebody asked a moment ago. */
int helio_flight_ask(helio_flight *flight, const char *why);

/* One tick, as the thread does it; for tests, which have no thread. */
int helio_flight_open(helio_flight *flight, const helio_stats *stats, const char *path,
                      size_t bytes, int64_t interval_ns, uint32_t keep, const char *freeze);
void helio_flight_turn(helio_flight *flight, const helio_flight_time *time);
void helio_flight_finish(helio_flight *flight, helio_moment moment);

#endif
