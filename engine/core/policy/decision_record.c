#include "policy/decision_record.h"

#include <string.h>

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void helio_decision_of_rate(const helio_rate_decision *decision, uint64_t *numbers) {
    const uint64_t all[HELIO_DECISION_RATE_NUMBERS] = {
        decision->rate,  decision->send_limit,      (uint64_t)decision->state,
        decision->worst, bits_of(decision->signal),
    };
    memcpy(numbers, all, sizeof all);
}

/* By value: there may be padding. */
bool helio_decision_is_same_rate(const helio_rate_decision *a, const helio_rate_decision *b) {
    uint64_t numbers_a[HELIO_DECISION_RATE_NUMBERS], numbers_b[HELIO_DECISION_RATE_NUMBERS];
    helio_decision_of_rate(a, numbers_a);
    helio_decision_of_rate(b, numbers_b);
    return memcmp(numbers_a, numbers_b, sizeof numbers_a) == 0;
}

void helio_decision_of_slow_receiver(const helio_slow_decision *decision, uint64_t *numbers) {
    const uint64_t all[HELIO_DECISION_SLOW_RECEIVER_NUMBERS] = {
        decision->index,
        (uint64_t)decision->action,
        (uint64_t)decision->symptom,
        bits_of(decision->value),
        bits_of(decision->threshold),
        (uint64_t)decision->lasted_ns,
        (uint64_t)decision->duration_ns,
        decision->receiver,
        decision->rate,
    };
    memcpy(numbers, all, sizeof all);
}

void helio_decision_of_storm(const helio_storm_decision *decision, uint64_t *numbers) {
    const uint64_t all[HELIO_DECISION_STORM_NUMBERS] = {
        decision->began   ? 1
        : decision->ended ? 2
                          : 0,
        (uint64_t)decision->cut_off_ns,
        (uint64_t)decision->lasted_ns,
        bits_of(decision->repeats),
        bits_of(decision->share),
        bits_of(decision->load),
    };
    memcpy(numbers, all, sizeof all);
}
