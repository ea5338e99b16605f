/* One control interval of a stream: the activity of its source, and the state at its end.  With
 * the receivers' views (receivers/receiver_view.h) it is the whole input of a policy, so a
 * recording of both reproduces every decision. */
#ifndef HELIO_POLICY_INTERVAL_H
#define HELIO_POLICY_INTERVAL_H

#include <stdint.h>

#include "base/moment.h"
#include "receivers/receiver_view.h"

enum {                                  /* flags of an interval */
       HELIO_INTERVAL_LIMITED = 1 << 0, /* data waited for the rate or the send limit */
       HELIO_INTERVAL_IDLE = 1 << 1,    /* nothing was sent and nothing waited */
};

typedef struct helio_interval {
    int64_t now_ns;     /* its end, monotonic */
    int64_t wall_ns;    /* the same, wall clock */
    int64_t length_ns;  /* since the end of the one before */
    uint32_t flags;     /* HELIO_INTERVAL_* */
    uint32_t receivers; /* entries in the table of views; some may not be PRESENT */
    /* within it */
    uint64_t packets_sent; /* original data */
    uint64_t bytes_sent;
    uint64_t repair_packets;
    uint64_t repair_bytes;
    uint64_t naks;          /* requests, of all receivers */
    uint64_t offered_bytes; /* what the application wanted to send: submitted, sent or not */
    /* at its end */
    uint64_t rate;            /* bytes per second in force; 0: no limit */
    uint64_t queue_bytes;     /* submitted and not sent */
    uint64_t lead;            /* newest sequence sent, widened */
    uint64_t trail;           /* oldest sequence kept for repair, widened */
    uint64_t history_packets; /* most packets the history keeps */
    uint64_t repairs_waiting;
    int64_t silence_ns; /* a receiver that reports does so within this time; 0: unknown */
} helio_interval;

#endif
