/* One control interval of a stream: what its source did in it and how things stand at its end.
 * Together with the receivers' views (receivers/receiver_view.h) it is all that a policy decides
 * by, so whoever has them recorded can have every decision made again. */
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
    uint64_t naks;          /* sequences asked for, all receivers together */
    uint64_t offered_bytes; /* what the application wanted to send: submitted, sent or not */
    /* at its end */
    uint64_t rate;            /* bytes per second in force; 0: no limit */
    uint64_t queue_bytes;     /* submitted and not sent */
    uint64_t lead;            /* newest sequence sent, widened */
    uint64_t trail;           /* oldest sequence kept for repair, widened */
    uint64_t history_packets; /* most packets the history keeps */
    uint64_t repairs_waiting;
    int64_t silence_ns; /* who reports is heard within this time; 0: not known */
} helio_interval;

#endif
