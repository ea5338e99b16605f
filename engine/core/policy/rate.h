/* Sending rate of a stream: one of several policies, chosen by name, changeable at run time.
 *
 * A policy is a table of functions over its own state.  At the end of each control interval it
 * gets the interval and the receivers.  It decides how many bytes per second may be sent, and up
 * to which packet.  It never sees a message, a socket or a clock.  In mode enforce the stream
 * applies the decision to its token bucket; in modes observe and advise it only reports the
 * decision, and the policy decides as if it were applied.
 *
 * A new policy needs a file rate_<name>.c, and a line here and in rate.c. */
#ifndef HELIO_POLICY_RATE_H
#define HELIO_POLICY_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generated/options.h"
#include "policy/interval.h"

#define HELIO_RATE_NO_SEQUENCE UINT64_MAX
typedef struct helio_rate_config {
    uint64_t rate;      /* bytes per second: the fixed rate, or the ceiling; 0: none */
    uint64_t rate_min;  /* the floor */
    double loss_high;   /* share of packets lost above which the rate falls */
    double loss_low;    /* below which it rises; loss_high is at least 4 times that */
    int who;            /* HELIO_RATE_RECEIVERS_*: whose loss counts */
    double quantile;    /* RATE_RECEIVERS_QUANTILE: that of the receivers' losses */
    int64_t silence_ns; /* a receiver that reports and is silent for this long counts as a loss; 0:
                           for as long as the interval says */
    uint32_t packet_bytes; /* of the longest packet */
    uint32_t entries;      /* in the table of views, taken or not */
} helio_rate_config;

typedef enum helio_rate_state {
    HELIO_RATE_HOLD,
    HELIO_RATE_DECREASE,
    HELIO_RATE_INCREASE
} helio_rate_state;

typedef struct helio_rate_decision {
    uint64_t rate;       /* bytes per second; 0: no limit */
    uint64_t send_limit; /* newest sequence that may be sent; HELIO_RATE_NO_SEQUENCE: any */
    helio_rate_state state;
    uint32_t worst;  /* index of the receiver that decided; HELIO_RECEIVER_NONE: none */
    double signal;   /* what was compared with the thresholds: a share of packets lost */
    const char *why; /* a few words for people; a literal */
} helio_rate_decision;

typedef struct helio_rate_policy {
    const char *name;
    bool is_fixed;         /* decides the same always */
    size_t state_bytes;    /* 0 at first, aligned as by malloc */
    size_t receiver_bytes; /* of it more for each entry of the table of views */
    /* `rate`: in force until now, 0 for none. */
    void (*init)(void *state, const helio_rate_config *config, uint64_t rate, int64_t now_ns);
    /* Called once per interval; costs less than 1 us per receiver.  `out` holds the decision before
     * and is changed where something changes. */
    void (*decide)(void *state, const helio_interval *interval, const helio_receiver_view *views,
                   helio_rate_decision *out);
} helio_rate_policy;

extern const helio_rate_policy helio_rate_none;    /* no limit */
extern const helio_rate_policy helio_rate_static;  /* the configured rate */
extern const helio_rate_policy helio_rate_pgmcc;   /* the configured rate, and PGMCC's window */
extern const helio_rate_policy helio_rate_dynamic; /* follows what the receivers lose */

/* What is decided before the first interval, at this rate. */
helio_rate_decision helio_rate_begin(const helio_rate_policy *policy,
                                     const helio_rate_config *config, uint64_t rate);

/* The policy of this name; NULL: there is none. */
const helio_rate_policy *helio_rate_policy_named(const char *name);
/* The i-th; NULL: there are no more. */
const helio_rate_policy *helio_rate_policy_at(size_t i);

#endif
