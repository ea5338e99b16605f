/* How far a source may send ahead of its receivers, from their positions and the room they report.
 *
 *   max     as far as the receiver with the most room: slow ones may lose packets
 *   min     as far as all have room: none loses for lack of room, the slowest sets the pace
 *   tagged  as far as all receivers have room that report that they set the pace
 *
 * (Aeron's multicast flow controls.)  A receiver counts if it has reported within `silence_ns` and
 * is neither suspended nor expelled, and has not left.  While fewer than `least` receivers count,
 * nothing may be sent beyond the newest packet already sent.  With no receiver to wait for there
 * is no limit.
 *
 * A pure function of the views. */
#ifndef HELIO_POLICY_WINDOW_H
#define HELIO_POLICY_WINDOW_H

#include <stdbool.h>

#include "receivers/receiver_view.h"

#define HELIO_WINDOW_NO_LIMIT UINT64_MAX

typedef enum helio_window_rule {
    HELIO_WINDOW_MAX,
    HELIO_WINDOW_MIN,
    HELIO_WINDOW_TAGGED
} helio_window_rule;

typedef struct helio_window_config {
    helio_window_rule rule;
    uint32_t least;     /* receivers there must be */
    int64_t silence_ns; /* a receiver without a report for this long does not count */
} helio_window_config;

typedef struct helio_window_limit {
    uint64_t sequence;          /* newest that may be sent; HELIO_WINDOW_NO_LIMIT: any */
    helio_receiver_index index; /* of the receiver that sets it; UINT32_MAX: none */
    bool is_short;              /* there are fewer receivers than there must be */
    uint32_t
        progress; /* packets after which receivers should report: a quarter of the least window */
} helio_window_limit;

/* `lead`: newest sequence sent. */
helio_window_limit helio_window_limit_of(const helio_window_config *config,
                                         const helio_receiver_view *views, uint32_t entries,
                                         uint64_t lead, int64_t now_ns);

#endif
