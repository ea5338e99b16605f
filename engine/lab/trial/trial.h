/* A trial: sources, receivers and TCP flows on a simulated network, run on virtual time with the
 * engine's own code, and the curves of what happened.
 *
 * What it has is added first, each thing known by its number (0, 1, ...) within its kind; then it
 * runs.  Changes at fixed moments (a bottleneck narrows, a receiver slows) are part of the plan.
 * At the end of each interval a row of values is kept (the columns have names), and events the
 * engine told are kept as they were told.  The same plan and seed give the same bytes.
 *
 * One thread uses it.  Times are ns since the trial's beginning. */
#ifndef HELIO_LAB_TRIAL_H
#define HELIO_LAB_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/sim_pipe.h"

typedef struct helio_trial helio_trial;

enum {
    HELIO_TRIAL_NONE = -1, /* instead of a number */
    HELIO_TRIAL_NAME = 64, /* bytes of a column's name, its end included */
    HELIO_TRIAL_TEXT = 192,
};

/* A source: a stream, and an application that offers it messages at a rate. */
typedef struct helio_trial_source_config {
    const char *options;    /* of a transmitter, as people write them; NULL: none */
    const char *instance;   /* of its instance; NULL: none */
    int pipe;               /* that all it sends goes through; HELIO_TRIAL_NONE */
    double offered;         /* bytes of messages per second */
    uint32_t message_bytes; /* of each */
    uint64_t queue_bytes;   /* most of messages that wait to be sent; more are refused */
    bool is_even;           /* messages come evenly, else at random (Poisson) */
    int64_t start_ns;       /* of the offering */
    int64_t feedback_ns;    /* delay of the way back to it */
    double feedback_loss;
} helio_trial_source_config;

/* Receivers that are alike. */
typedef struct helio_trial_group_config {
    const char *options; /* of a receiver; NULL: none */
    uint32_t count;
    int64_t join_ns; /* they come then */
    int64_t delay_ns;
    int64_t jitter_ns;
    double loss;
    double burst_begin, burst_end, burst_loss; /* as in helio_sim_link */
    double drain;         /* messages per second an application takes; below 0: all at once */
    uint64_t queue_bytes; /* between engine and application */
    helio_sim_pipe_config access; /* bottleneck of each; rate 0: none */
} helio_trial_group_config;

/* A TCP (NewReno) flow that always has something to send. */
typedef struct helio_trial_tcp_config {
    int pipe;
    int64_t start_ns;
    int64_t stop_ns; /* HELIO_NEVER: at the end */
    int64_t delay_ns;
    int64_t feedback_ns;
} helio_trial_tcp_config;

typedef enum helio_trial_knob {
    HELIO_TRIAL_PIPE,    /* rate, queue_bytes of a pipe */
    HELIO_TRIAL_OFFERED, /* of a source: bytes per second */
    HELIO_TRIAL_LOSS,    /* of each receiver of a group */
    HELIO_TRIAL_DELAY,   /* of each receiver of a group: ns */
    HELIO_TRIAL_DRAIN,   /* of each receiver of a group: messages per second */
    HELIO_TRIAL_LEAVE,   /* all of a group go */
} helio_trial_knob;

/* `watches`: what the sources know of each receiver is kept too.  NULL when there is no memory. */
helio_trial *helio_trial_create(uint64_t seed, int64_t interval_ns, bool watches);
void helio_trial_destroy(helio_trial *trial);

/* These return the new one's number, or a negative HELIO_ERR_* (helio_error_text). */
int helio_trial_add_pipe(helio_trial *trial, const helio_sim_pipe_config *config);
int helio_trial_add_source(helio_trial *trial, const helio_trial_source_config *config);
int helio_trial_add_group(helio_trial *trial, const helio_trial_group_config *config);
int helio_trial_add_tcp(helio_trial *trial, const helio_trial_tcp_config *config);
/* A knob is turned at a moment; `which` is the number of the thing.  0 or an error. */
int helio_trial_plan(helio_trial *trial, int64_t at_ns, helio_trial_knob knob, int which,
                     double value, double second);

/* Goes on until the moment; nothing is added once it has begun. */
int helio_trial_run(helio_trial *trial, int64_t until_ns);

/* ---- what happened ---- */

size_t helio_trial_columns(const helio_trial *trial);
const char *helio_trial_column(const helio_trial *trial, size_t i);
/* Row after row. */
const double *helio_trial_rows(const helio_trial *trial, size_t *rows);

/* What a source knew of a receiver at the end of an interval (receivers/receiver_view.h). */
typedef struct helio_trial_sight {
    double at_s;
    double source;
    double receiver;
    double flags;
    double received;
    double lost;
    double unrecoverable;
    double naks;
    double naks_again;
    double repairs;
    double position;
    double buffer_fill; /* 0 to 1 */
    double round_trip_s;
    double loss; /* share of packets lost lately */
} helio_trial_sight;

const helio_trial_sight *helio_trial_sights(const helio_trial *trial, size_t *count);

typedef struct helio_trial_event {
    int64_t at_ns;
    uint32_t event;
    int source; /* that told it; HELIO_TRIAL_NONE: a receiver */
    uint64_t arguments[4];
    char text[HELIO_TRIAL_TEXT];
} helio_trial_event;

/* Events of sources, and of receivers: the first ones; `*missed` more were reported. */
const helio_trial_event *helio_trial_events(const helio_trial *trial, size_t *count,
                                            uint64_t *missed);

/* One receiver at the end. */
typedef struct helio_trial_receiver_result {
    int group;
    uint64_t receiver; /* who it says it is */
    uint64_t delivered;
    uint64_t lost;
    int64_t first_lost_ns; /* HELIO_NEVER: nothing was lost */
} helio_trial_receiver_result;

size_t helio_trial_receivers(const helio_trial *trial);
helio_trial_receiver_result helio_trial_receiver_at(const helio_trial *trial, size_t i);

#endif
