#include "flight/recording.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/math.h"
#include "base/memory.h"
#include "io/clock_source.h"
#include "queue/thread.h"

#define AFTER_NS (2 * HELIO_SECOND) /* recorded beyond the trigger */

enum {
    AFTER_CHUNKS = HELIO_FLIGHT_CHUNKS / 3, /* at most, or the trigger would leave the ring */
    COST_SHARE = 50,                        /* of the time: a fiftieth */
    STEPS_MAX = 100,                        /* of the interval asked for, where looking is dear */
    COST_MOVES = 16,                        /* how far a tick moves what one is believed to cost */
    STACK_BYTES = 262144,
};

/* ---- reports to the engine ---- */

/* Of a number that this thread alone writes. */
static void add(_Atomic uint64_t *number, uint64_t by) {
    atomic_store_explicit(number, helio_cell(number) + by, memory_order_relaxed);
}

static void show(_Atomic uint64_t *number, uint64_t value) {
    atomic_store_explicit(number, value, memory_order_relaxed);
}

static void publish(helio_flight *flight, const helio_flight_time *time) {
    helio_flight_recorder *recorder = &flight->recorder;
    add(&flight->ticks, 1);
    add(&flight->ticks_late, time->missed);
    show(&flight->bytes, helio_flight_file_bytes(&recorder->file));
    show(&flight->step_shown_ns, (uint64_t)flight->step_ns);
}

/* Leaves word for the engine; there is room, or it has not looked for a long time and the errors
 * are counted nevertheless. */
static helio_flight_outcome *next_outcome(helio_flight *flight) {
    const uint64_t told = helio_cell(&flight->told);
    const uint64_t taken = atomic_load_explicit(&flight->taken, memory_order_acquire);
    return told - taken < HELIO_FLIGHT_OUTCOMES ? &flight->outcomes[told % HELIO_FLIGHT_OUTCOMES]
                                                : NULL;
}

static void leave_word(helio_flight *flight, bool is_kept) {
    helio_flight_outcome *outcome = next_outcome(flight);
    add(is_kept ? &flight->freezes : &flight->errors, 1);
    if (!outcome) {
        return;
    }
    *outcome = (helio_flight_outcome){
        .is_kept = is_kept,
        .number = flight->keeper.number,
        .bytes = flight->keeper.bytes,
        .cause = flight->cause,
    };
    if (is_kept) {
        const char *slash = strrchr(flight->keeper.path, '/');
        snprintf(outcome->text, sizeof outcome->text, "%.100s is kept: %.75s",
                 slash ? slash + 1 : flight->keeper.path, flight->cause.why);
    } else {
        snprintf(outcome->text, sizeof outcome->text, "%s", helio_error_sentence());
    }
    atomic_store_explicit(&flight->told, helio_cell(&flight->told) + 1, memory_order_release);
}

/* ---- freezing ---- */

static bool take_request(helio_flight *flight, helio_moment moment) {
    if (atomic_load_explicit(&flight->asked, memory_order_acquire) != 2) {
        return false;
    }
    flight->cause = (helio_flight_cause){.wall_ns = moment.wall_ns};
    memcpy(flight->cause.why, flight->asked_why, sizeof flight->cause.why);
    atomic_store_explicit(&flight->asked, 0, memory_order_release);
    return true;
}

/* Events are looked at in any case: what was told while a recording is being kept is in it. */
static bool take_event(helio_flight *flight, bool is_free, helio_moment moment) {
    bool fires = false;
    for (size_t i = 0; i < flight->recorder.events.count; i++) {
        const helio_segment_event *event = &flight->recorder.events.list[i];
        if (helio_flight_trigger_fires(&flight->trigger, event->event, moment.now_ns) && is_free &&
            !fires) {
            fires = true;
            flight->cause = (helio_flight_cause){.wall_ns = (int64_t)event->time_ns,
                                                 .event = helio_cell(&event->number)};
            snprintf(flight->cause.why, sizeof flight->cause.why, "%.40s: %.150s",
                     helio_flight_trigger_name(event->event), event->text);
        }
    }
    return fires;
}

static bool is_triggered(helio_flight *flight, helio_moment moment) {
    const bool is_free = flight->keeper.keep > 0 && flight->due_ns == HELIO_NEVER &&
                         !helio_flight_keeper_is_busy(&flight->keeper);
    const bool fires = take_event(flight, is_free, moment);
    return fires || (is_free && take_request(flight, moment));
}

static void keep_on(helio_flight *flight, helio_moment moment) {
    const helio_flight_recorder *recorder = &flight->recorder;
    int done = 0;
    const bool is_waiting = flight->due_ns != HELIO_NEVER;
    if (is_waiting &&
        (moment.now_ns >= flight->due_ns || recorder->chunks_begun >= flight->due_chunk)) {
        flight->due_ns = HELIO_NEVER;
        done = helio_flight_keeper_begin(&flight->keeper, &recorder->file, &flight->cause);
    } else if (helio_flight_keeper_is_busy(&flight->keeper)) {
        done = helio_flight_keeper_step(&flight->keeper, &recorder->file);
    }
    if (done != 0) {
        leave_word(flight, done > 0);
    }
}

/* ---- a tick ---- */

/* The ring was truncated: there is nothing to record in, and nothing to keep. */
static void give_up(helio_flight *flight) {
    flight->due_ns = HELIO_NEVER;
    helio_flight_keeper_drop(&flight->keeper);
    if (!flight->is_lost) {
        flight->is_lost = true;
        helio_fail(HELIO_ERR_SYSTEM, "%s was truncated by another program: recording has ended",
                   flight->recorder.file.path);
        leave_word(flight, false);
    } else if (atomic_load_explicit(&flight->asked, memory_order_acquire) == 2) {
        atomic_store_explicit(&flight->asked, 0, memory_order_release);
        helio_fail(HELIO_ERR_SYSTEM, "%s was truncated by another program: nothing can be kept",
                   flight->recorder.file.path);
        leave_word(flight, false);
    }
}

void helio_flight_turn(helio_flight *flight, const helio_flight_time *time) {
    helio_flight_recorder *recorder = &flight->recorder;
    if (helio_flight_file_is_cut(&recorder->file)) {
        give_up(flight);
        return;
    }
    helio_flight_recorder_look(recorder);
    const bool fires = is_triggered(flight, time->moment);
    helio_flight_recorder_write(recorder, time, fires ? &flight->cause : NULL);
    if (fires) {
        flight->due_ns = time->moment.now_ns + AFTER_NS;
        flight->due_chunk = recorder->chunks_begun + AFTER_CHUNKS;
    }
    keep_on(flight, time->moment);
    if (recorder->file.refused > 0 && flight->chunks_refused == 0) {
        add(&flight->errors, 1); /* it stays as small as it is: once is enough */
        flight->chunks_refused = recorder->file.refused;
    }
    publish(flight, time);
}

void helio_flight_finish(helio_flight *flight, helio_moment moment) {
    const helio_flight_time last = {.moment = moment, .next_ns = flight->step_ns};
    const helio_moment end = {.now_ns = HELIO_NEVER, .wall_ns = moment.wall_ns};
    for (int i = 0; i < 2; i++) { /* the second: asked for while another was being kept */
        helio_flight_turn(flight, &last);
        while (flight->due_ns != HELIO_NEVER || helio_flight_keeper_is_busy(&flight->keeper)) {
            keep_on(flight, end);
        }
    }
}

/* ---- the thread ---- */

static int64_t spent_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * HELIO_SECOND + time.tv_nsec;
}

/* Waits until the moment; true: it is over. */
static bool rest(helio_flight *flight, int64_t until_ns) {
    const struct timespec until = {.tv_sec = until_ns / HELIO_SECOND,
                                   .tv_nsec = until_ns % HELIO_SECOND};
    int error = 0;
    pthread_mutex_lock(&flight->lock);
    while (!flight->is_stopping && error == 0) {
        error = pthread_cond_timedwait(&flight->wake, &flight->lock, &until);
    }
    const bool is_over = flight->is_stopping;
    pthread_mutex_unlock(&flight->lock);
    return is_over;
}

/* How long to the next tick, when this one cost so much.  What lasts counts: the first touch of a
 * chunk or a recording being kept costs once, and moves the belief no farther than any other. */
static void adapt(helio_flight *flight, int64_t cost_ns) {
    const int64_t move_ns = flight->cost_ns / COST_MOVES + HELIO_MICROSECOND;
    flight->cost_ns += cost_ns > flight->cost_ns ? move_ns : -move_ns;
    flight->cost_ns = helio_max(flight->cost_ns, 0);
    const int64_t least_ns = flight->cost_ns * COST_SHARE;
    int64_t steps = (least_ns + flight->interval_ns - 1) / flight->interval_ns;
    steps = steps < 1 ? 1 : steps > STEPS_MAX ? STEPS_MAX : steps;
    flight->step_ns = steps * flight->interval_ns;
}

static helio_moment clock_now(void) {
    return (helio_moment){.now_ns = helio_monotonic_ns(), .wall_ns = helio_wall_ns()};
}

/* A tick that was planned for flight->planned_ns. */
static void tick(helio_flight *flight, helio_moment moment) {
    helio_flight_time time = {.moment = moment, .next_ns = flight->step_ns};
    time.late_ns = helio_max(moment.now_ns - flight->planned_ns, 0);
    time.missed = (uint64_t)(time.late_ns / flight->step_ns);
    helio_flight_turn(flight, &time);
    flight->planned_ns += (int64_t)time.missed * flight->step_ns;
}

/* Never soon after a late one: what happened in between would be all noise. */
static void plan(helio_flight *flight, int64_t now_ns, int64_t cost_ns) {
    adapt(flight, cost_ns);
    flight->planned_ns =
        helio_max(flight->planned_ns + flight->step_ns, now_ns + flight->step_ns / 2);
}

static void *run(void *context) {
    helio_flight *flight = context;
    int64_t spent_before_ns = spent_ns();
    while (!rest(flight, flight->planned_ns)) {
        const helio_moment moment = clock_now();
        tick(flight, moment);
        const int64_t spent = spent_ns();
        plan(flight, moment.now_ns, spent - spent_before_ns);
        spent_before_ns = spent;
    }
    helio_flight_finish(flight, clock_now());
    return NULL;
}

void helio_flight_serve(helio_flight *flight, helio_moment moment) {
    if (!flight || moment.now_ns < helio_flight_due_ns(flight)) {
        return;
    }
    const int64_t begin_ns = helio_monotonic_ns();
    tick(flight, moment);
    plan(flight, moment.now_ns, helio_monotonic_ns() - begin_ns);
}

/* Never in the engine's class: an ordinary thread. */
static int start_thread(helio_flight *flight) {
    const helio_flight_instance *instance = &flight->instance;
    const struct sched_param ordinary = {.sched_priority = 0};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
    pthread_attr_setschedparam(&attributes, &ordinary);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const int error = helio_thread_start_helper(&flight->thread, &attributes,
                                                instance->options->cpu, run, flight);
    pthread_attr_destroy(&attributes);
    if (error) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot start the flight recorder's thread: %s",
                          strerror(error));
    }
    char name[16];
    snprintf(name, sizeof name, "flight-%.8s", instance->name);
    pthread_setname_np(flight->thread, name);
    flight->has_thread = true;
    return 0;
}

/* ---- life ---- */

int helio_flight_open(helio_flight *flight, const helio_stats *stats, const char *path,
                      size_t bytes, int64_t interval_ns, uint32_t keep, const char *freeze) {
    *flight =
        (helio_flight){.interval_ns = interval_ns, .step_ns = interval_ns, .due_ns = HELIO_NEVER};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&flight->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&flight->lock, NULL);
    helio_flight_keeper_init(&flight->keeper, keep);
    const int error = helio_flight_trigger_read(&flight->trigger, freeze);
    return error ? error
                 : helio_flight_recorder_open(&flight->recorder, stats, path, bytes, interval_ns);
}

/* NAME.PID.flight beside NAME.PID.helio; from malloc. */
static char *path_beside(const char *segment) {
    const size_t stem = strlen(segment) - strlen(".helio");
    char *path = NULL;
    return asprintf(&path, "%.*s.flight", (int)stem, segment) < 0 ? NULL : path;
}

static int check(int64_t bytes) {
    return bytes == 0 || bytes >= HELIO_FLIGHT_BYTES_MIN
               ? 0
               : helio_fail(HELIO_ERR_OPTION,
                            "option flight_bytes is 0 (no flight recorder) or at least %d, not "
                            "%lld",
                            HELIO_FLIGHT_BYTES_MIN, (long long)bytes);
}

/* An instance flies without a recorder where it cannot have one. */
static void tell_none(const helio_flight_instance *instance) {
    helio_count(&instance->counts->flight_errors, 1);
    helio_stats_event(instance->stats, helio_wall_ns(), HELIO_EVENT_FLIGHT_FAILED, instance->slot,
                      NULL, "%s", helio_error_sentence());
}

int helio_flight_start(const helio_flight_instance *instance, helio_flight **out) {
    const helio_instance_options *options = instance->options;
    const int64_t bytes = options->flight_bytes;
    const char *freeze = options->flight_freeze;
    const char *segment = helio_stats_path(instance->stats);
    helio_flight_trigger trigger;
    int error = check(bytes);
    if (!error) {
        error = helio_flight_trigger_read(&trigger, freeze);
    }
    if (error || bytes == 0 || !segment[0] || !HELIO_STATS_COUNTING) {
        return error; /* statistics in private memory have no other reader */
    }
    helio_flight *flight = helio_allocate(sizeof *flight);
    char *path = path_beside(segment);
    if (!flight || !path) {
        free(flight);
        free(path);
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the flight recorder");
    }
    error = helio_flight_open(flight, instance->stats, path, (size_t)bytes,
                              options->flight_interval_ns, options->flight_keep, freeze);
    free(path);
    flight->instance = *instance;
    flight->planned_ns = helio_monotonic_ns();
    flight->is_served = options->mode == HELIO_MODE_POLL;
    if (!error && !flight->is_served) {
        error = start_thread(flight);
    }
    if (error) {
        helio_flight_free(flight);
        tell_none(instance);
        return 0;
    }
    *out = flight;
    return 0;
}

void helio_flight_stop(helio_flight *flight) {
    if (flight && flight->is_served) {
        helio_flight_finish(flight, clock_now());
    }
    if (!flight || !flight->has_thread) {
        return;
    }
    pthread_mutex_lock(&flight->lock);
    flight->is_stopping = true;
    pthread_cond_signal(&flight->wake);
    pthread_mutex_unlock(&flight->lock);
    pthread_join(flight->thread, NULL);
    flight->has_thread = false;
}

void helio_flight_free(helio_flight *flight) {
    if (!flight) {
        return;
    }
    helio_flight_keeper_fini(&flight->keeper);
    helio_flight_recorder_close(&flight->recorder);
    pthread_cond_destroy(&flight->wake);
    pthread_mutex_destroy(&flight->lock);
    free(flight);
}

/* ---- the engine's side ---- */

static void tell(const helio_flight_instance *instance, const helio_flight_outcome *outcome,
                 int64_t wall_ns) {
    if (outcome->is_kept) {
        helio_stats_event(
            instance->stats, wall_ns, HELIO_EVENT_FLIGHT_FROZEN, instance->slot,
            (const uint64_t[4]){outcome->number, outcome->bytes, (uint64_t)outcome->cause.wall_ns},
            "%s", outcome->text);
    } else {
        helio_stats_event(instance->stats, wall_ns, HELIO_EVENT_FLIGHT_FAILED, instance->slot, NULL,
                          "%s", outcome->text);
    }
}

void helio_flight_tend(helio_flight *flight, int64_t wall_ns) {
    if (!flight) {
        return;
    }
    helio_instance_stats *counts = flight->instance.counts;
    helio_set(&counts->flight_ticks, helio_cell(&flight->ticks));
    helio_set(&counts->flight_ticks_late, helio_cell(&flight->ticks_late));
    helio_set(&counts->flight_bytes, helio_cell(&flight->bytes));
    helio_set(&counts->flight_interval, helio_cell(&flight->step_shown_ns));
    helio_set(&counts->flight_freezes, helio_cell(&flight->freezes));
    helio_set(&counts->flight_errors, helio_cell(&flight->errors));
    uint64_t taken = helio_cell(&flight->taken);
    while (taken != atomic_load_explicit(&flight->told, memory_order_acquire)) {
        tell(&flight->instance, &flight->outcomes[taken++ % HELIO_FLIGHT_OUTCOMES], wall_ns);
        atomic_store_explicit(&flight->taken, taken, memory_order_release);
    }
}

int helio_flight_ask(helio_flight *flight, const char *why) {
    int nobody = 0;
    if (!flight) {
        return helio_fail(HELIO_ERR_STATE, "there is no flight recorder here (option flight_bytes, "
                                           "and stats=segment)");
    }
    if (flight->keeper.keep == 0) {
        return helio_fail(HELIO_ERR_STATE, "flight_keep=0: no recordings are kept");
    }
    if (!atomic_compare_exchange_strong_explicit(&flight->asked, &nobody, 1, memory_order_acquire,
                                                 memory_order_relaxed)) {
        return helio_fail(HELIO_ERR_STATE,
                          "a recording is already being kept for an earlier request");
    }
    memset(flight->asked_why, 0, sizeof flight->asked_why);
    strncpy(flight->asked_why, why, sizeof flight->asked_why - 1);
    atomic_store_explicit(&flight->asked, 2, memory_order_release);
    return 0;
}
