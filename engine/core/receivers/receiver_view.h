/* What a source knows of one receiver of its stream: plain numbers, the evidence policies decide
 * by.
 *
 * Some of it the receiver tells (a report, on its feedback), the rest is counted here from its
 * feedback.  A receiver of another make sends no reports: it is known by its address alone, and
 * what only a report tells is 0.  Counts are cumulative since the receiver is known and never fall,
 * so a lost report loses nothing; a later life of a receiver (a greater incarnation) starts from
 * zero.
 *
 * A view goes into the decision log as it is. */
#ifndef HELIO_RECEIVERS_RECEIVER_VIEW_H
#define HELIO_RECEIVERS_RECEIVER_VIEW_H

#include <stdint.h>

#include "receivers/index.h"

enum {                              /* flags of a view */
       HELIO_VIEW_PRESENT = 1 << 0, /* the entry is taken */
       HELIO_VIEW_NEWS = 1 << 1,    /* something was heard of it since the last control interval */
       HELIO_VIEW_REPORTS = 1 << 2, /* it sends reports */
       HELIO_VIEW_TAGGED = 1 << 3,  /* its report says that it is one of those that set the pace */
       HELIO_VIEW_PINNED = 1 << 4,  /* nobody else can speak in its name: a connection, or memory */
       HELIO_VIEW_SUSPENDED = 1 << 5, /* by this source: not repaired, not waited for */
       HELIO_VIEW_EXPELLED = 1 << 6,  /* by this source: not heard */
       HELIO_VIEW_LEFT = 1 << 7,      /* it said goodbye */
};

typedef struct helio_receiver_view {
    uint64_t receiver;    /* who, as it tells; without reports: a hash of its address */
    uint64_t incarnation; /* which life of it; 0 without reports */
    uint32_t flags;       /* HELIO_VIEW_* */
    uint32_t window;      /* told: packets beyond `position` it has room for */
    /* told, cumulative */
    uint64_t received;      /* data packets, each once */
    uint64_t lost;          /* data packets first seen missing, whether or not they came later */
    uint64_t unrecoverable; /* of these, given up for good */
    /* counted here, cumulative */
    uint64_t naks;         /* sequences it asked for that it had not asked for before */
    uint64_t naks_again;   /* sequences it asked for again */
    uint64_t naks_late;    /* sequences it asked for that had left the history */
    uint64_t naks_shed;    /* sequences refused: over its limit, or as it is suspended */
    uint64_t repairs;      /* packets repaired because it asked first */
    uint64_t repair_bytes; /* the same in bytes */
    /* now */
    uint64_t position;    /* told: newest sequence passed on in order, widened; 0: not known */
    uint64_t missing;     /* oldest sequence it asked for lately, widened; 0: none */
    uint32_t buffer_fill; /* told: how full its buffers are, in 65535ths */
    helio_receiver_index index;
    int64_t round_trip_ns; /* smoothed; 0: not known */
    int64_t heard_ns;      /* monotonic: its last feedback of any kind */
} helio_receiver_view;

#endif
