/* What the source of a stream does to a receiver (heliograph/actions.h). */
#ifndef HELIO_RECEIVERS_ACTION_H
#define HELIO_RECEIVERS_ACTION_H

#include <stdbool.h>

#include <heliograph/actions.h>

/* It is done to one receiver, which is notified. */
static inline bool helio_action_is_on_one(helio_action action) {
    return action >= HELIO_ACTION_NOTIFY && action <= HELIO_ACTION_READMIT &&
           action != HELIO_ACTION_PACE && action != HELIO_ACTION_RECOVER;
}

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
