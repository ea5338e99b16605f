/* Whether a stream is congested: messages have waited - for the rate, receivers or a full channel
 * - longer than a limit, and their queues were never empty in between.  Congestion ends when no
 * message has waited for the same time, so a stream at the verge does not flicker.
 *
 * Callers report each time they see messages wait, and each time they see none.  It knows no clock
 * and sends no events. */
#ifndef HELIO_SEND_CONGESTION_H
#define HELIO_SEND_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "send/admit.h"

typedef struct helio_congestion {
    int64_t limit_ns; /* a longer wait is congestion */
    int64_t since_ns; /* messages have waited since; 0: none do */
    int64_t seen_ns;  /* they were last seen to */
    bool is_on;
    bool is_waiting;       /* none has been seen to have left since */
    helio_admission cause; /* what they were last seen to wait for */
} helio_congestion;

typedef enum helio_congestion_change {
    HELIO_CONGESTION_SAME,
    HELIO_CONGESTION_BEGINS,
    HELIO_CONGESTION_ENDS
} helio_congestion_change;

/* Messages wait.  Returns how long they have since the last note; 0 when that was the first. */
static inline int64_t helio_congestion_note(helio_congestion *congestion, helio_admission cause,
                                            int64_t now_ns) {
    const int64_t waited_ns = congestion->is_waiting ? now_ns - congestion->seen_ns : 0;
    congestion->since_ns = congestion->since_ns ? congestion->since_ns : now_ns;
    congestion->seen_ns = now_ns;
    congestion->is_waiting = true;
    congestion->cause = cause;
    return waited_ns > 0 ? waited_ns : 0;
}

/* None do: what waited has left. */
static inline void helio_congestion_rest(helio_congestion *congestion) {
    congestion->is_waiting = false;
    if (!congestion->is_on) {
        congestion->since_ns = 0;
    }
}

static inline helio_congestion_change helio_congestion_look(helio_congestion *congestion,
                                                            int64_t now_ns) {
    if (congestion->since_ns && now_ns - congestion->seen_ns >= congestion->limit_ns) {
        const bool was_on = congestion->is_on;
        congestion->since_ns = 0;
        congestion->is_on = false;
        return was_on ? HELIO_CONGESTION_ENDS : HELIO_CONGESTION_SAME;
    }
    if (!congestion->is_on && congestion->since_ns &&
        congestion->seen_ns - congestion->since_ns >= congestion->limit_ns) {
        congestion->is_on = true;
        return HELIO_CONGESTION_BEGINS;
    }
    return HELIO_CONGESTION_SAME;
}

/* When to look again. */
static inline int64_t helio_congestion_next_deadline_ns(const helio_congestion *congestion) {
    return !congestion->since_ns ? HELIO_NEVER
           : congestion->is_on   ? congestion->seen_ns + congestion->limit_ns
                                 : congestion->since_ns + congestion->limit_ns;
}

#endif
