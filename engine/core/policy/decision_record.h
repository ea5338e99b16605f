/* Decisions as numbers: the form in which a decision log stores them, and in which a repeated
 * decision is compared (docs/decisions.md). */
#ifndef HELIO_POLICY_DECISION_RECORD_H
#define HELIO_POLICY_DECISION_RECORD_H

#include "policy/decision_log.h"
#include "policy/rate.h"
#include "policy/slow_receiver.h"
#include "policy/storm.h"

enum {
    HELIO_DECISION_RATE_NUMBERS = 5,
    HELIO_DECISION_SLOW_RECEIVER_NUMBERS = 9,
    HELIO_DECISION_STORM_NUMBERS = 6,
    HELIO_DECISION_NUMBERS_OF_ONE = 9, /* of any decision, at most */
};

/* Store the numbers of a decision: HELIO_DECISION_*_NUMBERS of them. */
void helio_decision_of_rate(const helio_rate_decision *decision, uint64_t *numbers);
void helio_decision_of_slow_receiver(const helio_slow_decision *decision, uint64_t *numbers);
void helio_decision_of_storm(const helio_storm_decision *decision, uint64_t *numbers);

bool helio_decision_is_same_rate(const helio_rate_decision *a, const helio_rate_decision *b);

/* Something was decided about a storm. */
static inline bool helio_decision_has_storm(const helio_storm_decision *decision) {
    return decision->began || decision->ended || decision->cut_off_ns > 0;
}

#endif
