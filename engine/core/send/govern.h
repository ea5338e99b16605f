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
 * Receivers cannot stop it: their reports change the rate only between its floor and its ceiling. */
#ifndef HELIO_SEND_GOVERN_H
#define HELIO_SEND_GOVERN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "policy/rate.h"

typedef struct helio_tx_stream helio_tx_stream;

/* Traffic of a stream since its start. */
typedef struct helio_tx_traffic {
    /* Original data. */
    uint64_t packets;
    uint64_t bytes;
    uint64_t repair_packets;
    uint64_t repair_bytes;
    /* Sequences requested. */
    uint64_t naks;
    /* Packets of any kind from receivers. */
    uint64_t feedback;
} helio_tx_traffic;

typedef struct helio_tx_govern_config {
    /* 0: no governor. */
    int64_t interval_ns;
    /* Name of the policy; NULL: none. */
    const char *policy;
    /* HELIO_RATE_MODE_* */
    int mode;
    /* Times, thresholds and rates; packet_bytes and entries are set here. */
    helio_rate_config rate;
    /* Time of loss at the floor before it is reported; 0: never. */
    int64_t escalate_ns;
} helio_tx_govern_config;

typedef struct helio_tx_govern {
    helio_tx_govern_config config;
    const helio_rate_policy *policy;
    /* Of the policy. */
    void *state;
    helio_rate_decision decision;
    /* Nothing happened in the last interval. */
    bool is_resting;
    int64_t begun_ns;
    /* Traffic, and bytes that waited, at the beginning of the interval. */
    helio_tx_traffic before;
    uint64_t queued_before;
    /* As set last. */
    uint64_t send_limit;
    /* As set last, in bytes per second; 0: no limit. */
    uint64_t rate;
    /* Of the last event. */
    uint64_t told_rate;
    /* No event of a rate before. */
    int64_t tell_after_ns;
    /* Receivers lose too much at the floor since then; 0: they do not. */
    int64_t at_floor_ns;
    bool is_floor_told;
} helio_tx_govern;

/* Begins with the configured policy.  The rate is not set, as the stream has it already.  0, OPTION
 * (unknown policy) or NOMEM; free with helio_tx_govern_fini. */
int helio_tx_govern_init(helio_tx_stream *stream, const helio_tx_govern_config *config,
                         helio_moment moment);
void helio_tx_govern_fini(helio_tx_govern *govern);

/* By command: another policy by name, which begins with the rate in force.  OPTION (unknown policy) or
 * NOMEM: nothing changes. */
int helio_tx_stream_set_policy(helio_tx_stream *stream, const char *name, helio_moment moment);
/* By command: the most bytes per second from now on under any policy; 0: no limit.  Policies none
 * and static become static and none.  OPTION (below rate_min) or NOMEM: nothing changes. */
int helio_tx_stream_set_ceiling(helio_tx_stream *stream, uint64_t rate, helio_moment moment);

/* The send limit has changed (send/follow.h). */
void helio_tx_govern_limit(helio_tx_stream *stream);

/* Ends the interval when it is due. */
void helio_tx_govern_poll(helio_tx_stream *stream, helio_moment moment);
/* HELIO_NEVER: nothing happens. */
int64_t helio_tx_govern_next_deadline_ns(const helio_tx_stream *stream);

/* The rate is at its floor and receivers have lost too much for the time of escalate_ns. */
static inline bool helio_tx_govern_is_at_floor(const helio_tx_govern *govern) {
    return govern->is_floor_told;
}

#endif
