/* A time in which something (a rate, a window, credit, want of room) keeps messages from being
 * packed, so that what it costs them can be told from other waits.
 *
 * Only the newest is known.  What was submitted before its end waits for it until it is packed, for
 * what lies in front is held back too; what was submitted after its end does not. */
#ifndef HELIO_BASE_HOLD_H
#define HELIO_BASE_HOLD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct helio_hold {
    int64_t from_ns, to_ns; /* wall clock; 0: there was none */
    bool is_on;             /* it is not over */
} helio_hold;

/* Something keeps messages back from now on, the oldest of which was submitted at `oldest_ns`;
 * HELIO_NEVER: there is none yet. */
static inline void helio_hold_begin(helio_hold *hold, int64_t oldest_ns, int64_t wall_ns) {
    if (oldest_ns > hold->to_ns) { /* none of them was there the last time */
        hold->from_ns = wall_ns;
    }
    hold->to_ns = wall_ns;
    hold->is_on = true;
}

/* It did so until now. */
static inline void helio_hold_end(helio_hold *hold, int64_t wall_ns) {
    if (hold->is_on) {
        hold->to_ns = wall_ns;
    }
    hold->is_on = false;
}

/* How long a message packed now waited for it. */
static inline int64_t helio_hold_wait(const helio_hold *hold, int64_t submit_ns, int64_t wall_ns) {
    const int64_t since_ns = hold->from_ns > submit_ns ? hold->from_ns : submit_ns;
    return submit_ns < hold->to_ns && since_ns < wall_ns ? wall_ns - since_ns : 0;
}

#endif
