/* The actions of a source on a receiver (heliograph/actions.h). */
#ifndef HELIO_RECEIVERS_ACTION_H
#define HELIO_RECEIVERS_ACTION_H

#include <stdbool.h>

#include <heliograph/actions.h>

/* The action is on one receiver, which is notified. */
static inline bool helio_action_is_on_one(helio_action action) {
    return action >= HELIO_ACTION_NOTIFY && action <= HELIO_ACTION_READMIT &&
           action != HELIO_ACTION_PACE && action != HELIO_ACTION_RECOVER;
}

/* The action is in force for a time; the others happen once. */
static inline bool helio_action_stands(helio_action action) {
    return action == HELIO_ACTION_SHED || action == HELIO_ACTION_SUSPEND_NAKS ||
           action == HELIO_ACTION_SUSPEND || action == HELIO_ACTION_EXPEL;
}

/* Nothing is repaired for the receiver. */
static inline bool helio_action_stops_repairs(helio_action action) {
    return action == HELIO_ACTION_SUSPEND_NAKS || action == HELIO_ACTION_SUSPEND ||
           action == HELIO_ACTION_EXPEL;
}

/* The source does not wait for the receiver: its acknowledgements and its pace do not count. */
static inline bool helio_action_leaves_out(helio_action action) {
    return action == HELIO_ACTION_SUSPEND || action == HELIO_ACTION_EXPEL;
}

#endif
