/* How far a source may send ahead of its receivers: what they have passed on and the room they tell
 * of.
 *
 *   max     as far as the one with the most room: the fast are not held up, the slow may lose
 *   min     as far as all have room: nobody loses for want of room, the slowest sets the pace
 *   tagged  as far as all have room that say of themselves they set the pace
 *
 * (Aeron's multicast flow controls.)  Receivers count that report, have been heard within
 * `silence_ns`, and are neither suspended nor expelled nor gone; while fewer than `least` count,
 * nothing may be sent beyond the newest packet sent already.  With nobody to wait for there is no
 * limit.
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
    int64_t silence_ns; /* one not heard for this long is not waited for */
} helio_window_config;

typedef struct helio_window_limit {
    uint64_t sequence;          /* newest that may be sent; HELIO_WINDOW_NO_LIMIT: any */
    helio_receiver_index index; /* of the receiver that sets it; UINT32_MAX: none */
    bool is_short;              /* there are fewer receivers than there must be */
    uint32_t
        progress; /* packets after which receivers should tell: a quarter of the least window */
} helio_window_limit;

/* `lead`: newest sequence sent. */
helio_window_limit helio_window_limit_of(const helio_window_config *config,
                                         const helio_receiver_view *views, uint32_t entries,
                                         uint64_t lead, int64_t now_ns);

#endif
