/* The policies there are, and those that decide nothing from interval to interval. */
#include "policy/rate.h"

#include <string.h>

typedef struct fixed {
    uint64_t rate;
} fixed;

static void init_none(void *state, const helio_rate_config *config, uint64_t rate, int64_t now_ns) {
    (void)config, (void)rate, (void)now_ns;
    ((fixed *)state)->rate = 0;
}

static void init_static(void *state, const helio_rate_config *config, uint64_t rate,
                        int64_t now_ns) {
    (void)rate, (void)now_ns;
    ((fixed *)state)->rate = config->rate;
}

static void decide_fixed(void *state, const helio_interval *interval,
                         const helio_receiver_view *views, helio_rate_decision *out) {
    (void)interval, (void)views;
    *out = (helio_rate_decision){
        .rate = ((const fixed *)state)->rate,
        .send_limit = HELIO_RATE_NO_SEQUENCE,
        .state = HELIO_RATE_HOLD,
        .worst = HELIO_RECEIVER_NONE,
        .why = "",
    };
}

const helio_rate_policy helio_rate_none = {
    .name = "none",
    .is_fixed = true,
    .state_bytes = sizeof(fixed),
    .init = init_none,
    .decide = decide_fixed,
};

const helio_rate_policy helio_rate_static = {
    .name = "static",
    .is_fixed = true,
    .state_bytes = sizeof(fixed),
    .init = init_static,
    .decide = decide_fixed,
};

/* What PGMCC decides, it decides with each acknowledgement (send/follow.h); a rate is the most
 * it may take beside. */
const helio_rate_policy helio_rate_pgmcc = {
    .name = "pgmcc",
    .is_fixed = true,
    .state_bytes = sizeof(fixed),
    .init = init_static,
    .decide = decide_fixed,
};

/* In the order of the option rate_policy. */
static const helio_rate_policy *const policies[] = {
    &helio_rate_none,
    &helio_rate_static,
    &helio_rate_dynamic,
    &helio_rate_pgmcc,
};

helio_rate_decision helio_rate_begin(const helio_rate_policy *policy,
                                     const helio_rate_config *config, uint64_t rate) {
    return (helio_rate_decision){
        .rate = policy == &helio_rate_none ? 0
                : policy->is_fixed         ? config->rate
                                           : rate,
        .send_limit = HELIO_RATE_NO_SEQUENCE,
        .worst = HELIO_RECEIVER_NONE,
        .why = "",
    };
}

const helio_rate_policy *helio_rate_policy_at(size_t i) {
    return i < sizeof policies / sizeof policies[0] ? policies[i] : NULL;
}

const helio_rate_policy *helio_rate_policy_named(const char *name) {
    const helio_rate_policy *policy = NULL;
    for (size_t i = 0; (policy = helio_rate_policy_at(i)); i++) {
        if (strcmp(policy->name, name) == 0) {
            return policy;
        }
    }
    return NULL;
}
