/* What a source may do to one of its receivers, by itself or because a person says so.
 *
 * What stands at a receiver is one of SHED, SUSPEND_NAKS, SUSPEND and EXPEL, each harder than the
 * one before; another takes its place.  The numbers are those of the wire (docs/wire.md 1.3). */
#ifndef HELIO_RECEIVERS_ACTION_H
#define HELIO_RECEIVERS_ACTION_H

#include <stdbool.h>

#include "generated/protocol.h"

typedef enum helio_action {
    HELIO_ACTION_NONE,
    HELIO_ACTION_NOTIFY = HELIO_PGM_NOTICE_NOTIFY,             /* it is only told */
    HELIO_ACTION_SHED = HELIO_PGM_NOTICE_SHED,                 /* a smaller budget of repairs */
    HELIO_ACTION_SUSPEND_NAKS = HELIO_PGM_NOTICE_SUSPEND_NAKS, /* no repairs */
    HELIO_ACTION_SUSPEND = HELIO_PGM_NOTICE_SUSPEND, /* the same, and it is not waited for */
    HELIO_ACTION_RESUME = HELIO_PGM_NOTICE_RESUME,   /* the three above are over */
    HELIO_ACTION_EXPEL = HELIO_PGM_NOTICE_EXPEL,     /* it is not heard */
    HELIO_ACTION_READMIT = HELIO_PGM_NOTICE_READMIT, /* that is over */
} helio_action;

/* A state a receiver is in until it is over, other than something that happens once. */
static inline bool helio_action_stands(helio_action action) {
    return action == HELIO_ACTION_SHED || action == HELIO_ACTION_SUSPEND_NAKS ||
           action == HELIO_ACTION_SUSPEND || action == HELIO_ACTION_EXPEL;
}

/* Nothing is repaired for it. */
static inline bool helio_action_stops_repairs(helio_action action) {
    return action == HELIO_ACTION_SUSPEND_NAKS || action == HELIO_ACTION_SUSPEND ||
           action == HELIO_ACTION_EXPEL;
}

/* Nobody waits for it: neither acknowledgements nor the pace depend on it. */
static inline bool helio_action_leaves_out(helio_action action) {
    return action == HELIO_ACTION_SUSPEND || action == HELIO_ACTION_EXPEL;
}

#endif
