/* What the files of a trial share: trial.c (life, the plan, time), source.c, receiver.c, tcp.c (who
 * is on the network) and samples.c (curves and events).  Everybody else has trial.h. */
#ifndef HELIO_LAB_PARTS_H
#define HELIO_LAB_PARTS_H

#include "io/sim.h"
#include "options/options.h"
#include "receive/endpoint.h"
#include "send/stream.h"
#include "stats/stats.h"
#include "trial/trial.h"

#define HELIO_TRIAL_TOPIC "lab"

typedef struct helio_trial_source {
    helio_trial *trial;
    int number;
    helio_trial_source_config config;
    helio_transmitter_options options;
    helio_sim_node *node;
    helio_outlet outlet;
    helio_stats *stats; /* of its own: an engine in a process */
    helio_stats_object instance;
    helio_tx_stream *stream;
    helio_tx_topic *topic;
    helio_random random; /* of the application */
    double offered;      /* bytes per second */
    int64_t next_ns;     /* when the next message comes; HELIO_NEVER: none */
    uint64_t queued;     /* messages that wait */
    int64_t queued_since_ns;
    /* cumulative */
    uint64_t offered_messages;
    uint64_t refused_messages;
    uint64_t sent_messages;
} helio_trial_source;

typedef struct helio_trial_group helio_trial_group;

typedef struct helio_trial_receiver {
    helio_trial_group *group;
    uint64_t id;
    helio_sim_node *node;
    helio_rx_endpoint *endpoint; /* NULL: not there yet, or gone */
    uint64_t queued;             /* messages for the application */
    uint64_t queued_bytes;
    uint64_t given_bytes; /* all it ever took in */
    int64_t next_ns;      /* when the application takes the next; HELIO_NEVER */
    uint64_t delivered;
    uint64_t lost;
    int64_t first_lost_ns;
} helio_trial_receiver;

struct helio_trial_group {
    helio_trial *trial;
    int number;
    helio_trial_group_config config;
    helio_receiver_options options;
    helio_stats *stats; /* all of the group count there */
    helio_stats_object instance;
    helio_sim_link link;
    double drain;
    int64_t latest_ns; /* longest way of a message since the last sample */
    uint64_t taken_messages;
    helio_trial_receiver *receivers;
};

typedef struct helio_trial_tcp helio_trial_tcp; /* tcp.c */

typedef struct helio_trial_change {
    int64_t at_ns;
    helio_trial_knob knob;
    int which;
    double value, second;
} helio_trial_change;

enum {
    HELIO_TRIAL_PIPES_MAX = 16,
    HELIO_TRIAL_SOURCES_MAX = 16,
    HELIO_TRIAL_GROUPS_MAX = 16,
    HELIO_TRIAL_TCPS_MAX = 16,
    HELIO_TRIAL_EVENTS_MAX = 4096,
};

typedef struct helio_trial_samples {
    char (*names)[HELIO_TRIAL_NAME];
    size_t columns;
    double *rows;
    size_t count;
    size_t capacity; /* rows */
    helio_trial_sight *sights;
    size_t sights_count;
    size_t sights_capacity;
    helio_trial_event *events;
    size_t events_count;
    uint64_t missed;
    uint64_t read_sources[HELIO_TRIAL_SOURCES_MAX]; /* events read so far */
    uint64_t read_groups[HELIO_TRIAL_GROUPS_MAX];
} helio_trial_samples;

struct helio_trial {
    uint64_t seed;
    helio_random random; /* seeds of those that are added */
    int64_t interval_ns;
    bool watches;
    helio_sim *sim;
    bool has_begun;
    int64_t next_sample_ns;
    helio_sim_pipe *pipes[HELIO_TRIAL_PIPES_MAX];
    int pipes_count;
    helio_trial_source *sources[HELIO_TRIAL_SOURCES_MAX];
    int sources_count;
    helio_trial_group *groups[HELIO_TRIAL_GROUPS_MAX];
    int groups_count;
    helio_trial_tcp *tcps[HELIO_TRIAL_TCPS_MAX];
    int tcps_count;
    helio_trial_change *changes; /* by time */
    size_t changes_count;
    size_t changes_done;
    helio_trial_samples samples;
};

static inline helio_moment helio_trial_now(const helio_trial *trial) {
    return helio_sim_now(trial->sim);
}

helio_address helio_trial_group_address(void);
/* Address number `number` of a kind (1: sources, 2: receivers, 3: TCP); ports for those that have
 * one of their own. */
helio_address helio_trial_address(unsigned kind, unsigned number, uint16_t port);
/* Statistics of one engine; 0 or an error. */
int helio_trial_open_stats(helio_trial *trial, size_t bytes, helio_stats **stats,
                           helio_stats_object *instance);

/* ---- source.c ---- */
int helio_trial_source_create(helio_trial *trial, const helio_trial_source_config *config,
                              helio_trial_source **out);
void helio_trial_source_destroy(helio_trial_source *source);
void helio_trial_source_offer(helio_trial_source *source, double offered);

/* ---- receiver.c ---- */
int helio_trial_group_create(helio_trial *trial, const helio_trial_group_config *config,
                             helio_trial_group **out);
void helio_trial_group_destroy(helio_trial_group *group);
void helio_trial_group_join(helio_trial_group *group);
void helio_trial_group_leave(helio_trial_group *group);
/* Its link or drain has changed. */
void helio_trial_group_changed(helio_trial_group *group);

/* ---- tcp.c ---- */
int helio_trial_tcp_create(helio_trial *trial, const helio_trial_tcp_config *config,
                           helio_trial_tcp **out);
void helio_trial_tcp_destroy(helio_trial_tcp *tcp);
typedef struct helio_trial_tcp_state {
    double acked_bytes; /* with what is below, as the pipe counts */
    double window_bytes;
    double retransmits;
    double timeouts;
} helio_trial_tcp_state;
helio_trial_tcp_state helio_trial_tcp_look(const helio_trial_tcp *tcp);

/* ---- samples.c ---- */
int helio_trial_name_columns(helio_trial *trial);
int helio_trial_sample(helio_trial *trial);
void helio_trial_samples_fini(helio_trial_samples *samples);

#endif
