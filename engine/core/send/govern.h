/* The governor of a stream: at the end of each control interval it gathers what happened in it and
 * what is known of the receivers, has the rate policy decide, and the engine for slow receivers
 * (send/slow.h), and carries the rate out.
 *
 *     observe   statistics only: what would be decided
 *     advise    and events that say so
 *     enforce   and the stream's rate is set
 *
 * An interval is counted only while something happens: data or feedback.  A stream at rest has no
 * deadline here; the first thing after a rest begins an interval.
 *
 * It can be put out of action by no one: what receivers say changes the rate only within its floor
 * and its ceiling. */
#ifndef HELIO_SEND_GOVERN_H
#define HELIO_SEND_GOVERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "policy/rate.h"

typedef struct helio_tx_stream helio_tx_stream;

/* What a stream has sent and heard, ever. */
typedef struct helio_tx_traffic {
    uint64_t packets; /* original data */
    uint64_t bytes;
    uint64_t repair_packets;
    uint64_t repair_bytes;
    uint64_t naks;     /* sequences asked for */
    uint64_t feedback; /* packets of any kind that came in */
} helio_tx_traffic;

typedef struct helio_tx_govern_config {
    int64_t interval_ns; /* 0: no governor */
    const char *policy;  /* its name; NULL: none */
    int mode;            /* HELIO_RATE_MODE_* */
    /* Times, thresholds and rates; what the stream knows itself (packet_bytes, entries) is set
     * here. */
    helio_rate_config rate;
    int64_t escalate_ns; /* lossy at the floor for so long is told of; 0: never */
} helio_tx_govern_config;

typedef struct helio_tx_govern {
    helio_tx_govern_config config;
    const helio_rate_policy *policy;
    void *state; /* its own */
    helio_rate_decision decision;
    bool is_resting; /* nothing happened in the last interval */
    int64_t begun_ns;
    helio_tx_traffic before; /* when the interval began */
    uint64_t queued_before;  /* bytes that waited then */
    uint64_t send_limit;     /* as set last */
    uint64_t rate;           /* as set last, bytes per second; 0: no limit */
    uint64_t told_rate;      /* of the last event */
    int64_t tell_after_ns;   /* no event of a rate before */
    int64_t at_floor_ns;     /* since when it is lossy at the floor; 0: it is not */
    bool is_floor_told;
} helio_tx_govern;

/* Begins with the configured policy; the rate is not touched, as the stream has it already.  0,
 * OPTION (no such policy) or NOMEM; release with helio_tx_govern_fini. */
int helio_tx_govern_init(helio_tx_stream *stream, const helio_tx_govern_config *config,
                         helio_moment moment);
void helio_tx_govern_fini(helio_tx_govern *govern);

/* By hand: another policy by name, which goes on from the rate in force.  OPTION (there is none of
 * that name) or NOMEM: nothing changes. */
int helio_tx_stream_set_policy(helio_tx_stream *stream, const char *name, helio_moment moment);
/* By hand: the most bytes per second from now on, whatever the policy; 0: no limit.  Policies none
 * and static become static and none.  OPTION (below rate_min) or NOMEM: nothing changes. */
int helio_tx_stream_set_ceiling(helio_tx_stream *stream, uint64_t rate, helio_moment moment);

/* How far data may go has changed (send/follow.h). */
void helio_tx_govern_limit(helio_tx_stream *stream);

/* Ends the interval when it is time to. */
void helio_tx_govern_poll(helio_tx_stream *stream, helio_moment moment);
/* HELIO_NEVER: nothing happens. */
int64_t helio_tx_govern_next_deadline_ns(const helio_tx_stream *stream);

/* The rate cannot fall further and receivers still lose too much, since rate_escalate. */
static inline bool helio_tx_govern_is_at_floor(const helio_tx_govern *govern) {
    return govern->is_floor_told;
}

#endif
