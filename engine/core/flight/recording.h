/* The flight recorder of an instance reads all statistics every flight_interval and keeps the last
 * seconds or minutes of them in a ring (docs/flight.md, docs/adr/0024).
 *
 * In mode thread it has a thread, which only reads the statistics, as a monitor does.  The engine
 * never waits for it: the engine's chores take the recorder's statistics and events.  In mode poll
 * the chores call it, so that the process needs no second thread (docs/adr/0035).  It uses at most
 * a fiftieth of a core: when a tick costs more, it ticks less often. */
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

/* The recorded instance. */
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
    int64_t interval_ns, step_ns; /* configured; in use */
    /* Monotonic; when the next tick is planned. */
    int64_t planned_ns;
    int64_t cost_ns; /* usual processor time of a tick */
    helio_flight_cause cause;
    int64_t due_ns;     /* monotonic; when the recording is kept; HELIO_NEVER: none will be */
    uint64_t due_chunk; /* or when chunks_begun reaches this number */
    uint32_t chunks_refused;
    bool is_lost; /* the ring was truncated */

    /* Written by the recorder, read by the engine. */
    _Atomic uint64_t ticks, ticks_late, bytes, step_shown_ns, freezes, errors;
    _Atomic uint64_t told, taken; /* numbers of outcomes reported and taken */
    helio_flight_outcome outcomes[HELIO_FLIGHT_OUTCOMES];

    /* Written by any thread that requests a recording, read by the recorder. */
    _Atomic int asked; /* 0 no request, 1 being written, 2 request ready */
    char asked_why[HELIO_FLIGHT_WHY_BYTES];

    pthread_t thread;
    bool has_thread;
    /* Mode poll: chores call helio_flight_serve. */
    bool is_served;
    pthread_mutex_t lock; /* protects is_stopping only */
    pthread_cond_t wake;
    bool is_stopping;
};

/* Opens the recorder by the instance's options and starts its thread, except in mode poll.  *out is
 * not set when the options disable the recorder or it cannot be started; an event reports the
 * latter.  Returns 0, OPTION or NOMEM. */
int helio_flight_start(const helio_flight_instance *instance, helio_flight **out);
/* Ends the thread and keeps a recording that is due.  Accepts NULL. */
void helio_flight_stop(helio_flight *flight);
/* Removes the ring; call it after helio_flight_stop.  Accepts NULL. */
void helio_flight_free(helio_flight *flight);

/* Engine, periodically: publishes the recorder's statistics and reports its outcomes as events.
 * `flight` may be NULL. */
void helio_flight_tend(helio_flight *flight, int64_t wall_ns);

/* Mode poll: when helio_flight_serve has something to do; HELIO_NEVER where a thread does it. */
static inline int64_t helio_flight_due_ns(const helio_flight *flight) {
    return flight && flight->is_served ? flight->planned_ns : HELIO_NEVER;
}
/* Mode poll: makes a tick when one is due.  `flight` may be NULL. */
void helio_flight_serve(helio_flight *flight, helio_moment moment);

/* Requests that the recording is kept; any thread.  Returns 0 or STATE: there is no recorder, it
 * keeps nothing (flight_keep=0), or an earlier request is pending. */
int helio_flight_ask(helio_flight *flight, const char *why);

/* The parts of the thread's work, for tests, which have no thread. */
int helio_flight_open(helio_flight *flight, const helio_stats *stats, const char *path,
                      size_t bytes, int64_t interval_ns, uint32_t keep, const char *freeze);
void helio_flight_turn(helio_flight *flight, const helio_flight_time *time);
void helio_flight_finish(helio_flight *flight, helio_moment moment);

#endif
