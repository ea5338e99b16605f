/* One receiver of a stream as its source sees it: the numbers that policies decide by.
 *
 * Some are reported by the receiver, the others are counted here from its feedback.  PGM receivers
 * of other vendors send no reports: they are tracked by address, and all reported numbers are 0.
 * Counts are cumulative since discovery and never fall, so a lost report loses nothing.  A later
 * life of a receiver (a greater incarnation) starts from zero.
 *
 * The decision log has views as they are here. */
#ifndef HELIO_RECEIVERS_RECEIVER_VIEW_H
#define HELIO_RECEIVERS_RECEIVER_VIEW_H

#include <stdint.h>

#include "receivers/index.h"

/* Flags of a view. */
enum {
    /* The entry is in use. */
    HELIO_VIEW_PRESENT = 1 << 0,
    /* Feedback came since the last control interval. */
    HELIO_VIEW_NEWS = 1 << 1,
    /* It sends reports. */
    HELIO_VIEW_REPORTS = 1 << 2,
    /* It reports that it is one of the receivers that set the pace. */
    HELIO_VIEW_TAGGED = 1 << 3,
    /* No other sender can use its address: a connection, or shared memory. */
    HELIO_VIEW_PINNED = 1 << 4,
    /* This source does not repair for it or wait for it. */
    HELIO_VIEW_SUSPENDED = 1 << 5,
    /* This source ignores its feedback. */
    HELIO_VIEW_EXPELLED = 1 << 6,
    /* It said goodbye. */
    HELIO_VIEW_LEFT = 1 << 7,
};

typedef struct helio_receiver_view {
    /* Its id; without reports a hash of its address. */
    uint64_t receiver;
    /* 0 without reports. */
    uint64_t incarnation;
    /* HELIO_VIEW_* */
    uint32_t flags;
    /* Reported: packets beyond `position` that it has room for. */
    uint32_t window;
    /* Reported: data packets received, each once. */
    uint64_t received;
    /* Reported: data packets found missing, whether or not they came later. */
    uint64_t lost;
    /* Reported: of these, given up for good. */
    uint64_t unrecoverable;
    /* Sequences requested for the first time. */
    uint64_t naks;
    /* Sequences requested again. */
    uint64_t naks_again;
    /* Sequences requested that had left the history. */
    uint64_t naks_late;
    /* Sequences refused: over its limit, or while it is suspended. */
    uint64_t naks_shed;
    /* Packets repaired on its account: it requested them first. */
    uint64_t repairs;
    uint64_t repair_bytes;
    /* Reported: newest sequence passed on in order, widened; 0: not known. */
    uint64_t position;
    /* Oldest sequence requested and not passed on, widened; 0: none. */
    uint64_t missing;
    /* Reported: how full its buffers are, in 65535ths. */
    uint32_t buffer_fill;
    helio_receiver_index index;
    /* Smoothed; 0: not known. */
    int64_t round_trip_ns;
    /* Monotonic time of its last feedback of any kind. */
    int64_t heard_ns;
} helio_receiver_view;

#endif
