#include "options/keeping.h"

#include "base/error.h"

#define MILLION 1e6

static const char *const transmitter_policies[] = {"block",       "refuse",   "drop_newest",
                                                   "drop_oldest", "conflate", "priority"};
static const char *const receiver_policies[] = {"block", "drop_newest", "drop_oldest", "conflate",
                                                "priority"};

static int check(const helio_keeping *keeping, const char *option, const char *policy) {
    const helio_kept_config *config = &keeping->config;
    if (config->policy == HELIO_KEPT_CONFLATE && config->key_bytes == 0) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option %s=%s needs a key: key_bytes of at least 1, not key_bytes=0",
                          option, policy);
    }
    if (config->policy == HELIO_KEPT_PRIORITY && config->priority_offset < 0) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option %s=%s needs to know where a message's priority is: "
                          "priority_offset of at least 0, not priority_offset=-1",
                          option, policy);
    }
    return 0;
}

static int read_common(helio_keeping *keeping, const helio_stream_options *options,
                       const char *option, const char *policy) {
    const double high = options->queue_high;
    const double low = options->queue_low;
    keeping->config.key_offset = options->key_offset;
    keeping->config.key_bytes = options->key_bytes;
    keeping->config.priority_offset = options->priority_offset;
    const int error = check(keeping, option, policy);
    if (error) {
        return error;
    }
    if (low > high) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option queue_low is at most queue_high, here %g; %g is more", high, low);
    }
    keeping->mark = (helio_mark){
        .high = (uint64_t)(high * MILLION),
        .low = (uint64_t)((low > 0 ? low : high / 2) * MILLION),
    };
    return 0;
}

int helio_keeping_read_transmitter(helio_keeping *keeping,
                                   const helio_transmitter_options *options) {
    static const helio_kept_policy policies[] = {
        [HELIO_OVERFLOW_BLOCK] = HELIO_KEPT_BLOCK,
        [HELIO_OVERFLOW_REFUSE] = HELIO_KEPT_BLOCK,
        [HELIO_OVERFLOW_DROP_NEWEST] = HELIO_KEPT_NEWEST,
        [HELIO_OVERFLOW_DROP_OLDEST] = HELIO_KEPT_OLDEST,
        [HELIO_OVERFLOW_CONFLATE] = HELIO_KEPT_CONFLATE,
        [HELIO_OVERFLOW_PRIORITY] = HELIO_KEPT_PRIORITY,
    };
    const helio_kept_policy policy = policies[options->overflow];
    const char *name = transmitter_policies[options->overflow];
    *keeping = (helio_keeping){
        .config = {.policy = policy,
                   .bytes = options->submit_queue,
                   .messages = options->queue_messages,
                   .age_ns = options->queue_age_ns},
        .never_waits = options->overflow == HELIO_OVERFLOW_REFUSE,
        .low_water = options->low_water,
        .is_needed = helio_kept_drops(policy) || options->queue_messages > 0,
    };
    if (options->queue_age_ns > 0 && !helio_kept_drops(policy)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option queue_age drops messages, and overflow=%s never does; "
                          "queue_age=%g goes with another overflow",
                          name, (double)options->queue_age_ns / 1e9);
    }
    return read_common(keeping, &options->stream, "overflow", name);
}

int helio_keeping_read_receiver(helio_keeping *keeping, const helio_receiver_options *options) {
    static const helio_kept_policy policies[] = {
        [HELIO_RECEIVE_OVERFLOW_BLOCK] = HELIO_KEPT_BLOCK,
        [HELIO_RECEIVE_OVERFLOW_DROP_NEWEST] = HELIO_KEPT_NEWEST,
        [HELIO_RECEIVE_OVERFLOW_DROP_OLDEST] = HELIO_KEPT_OLDEST,
        [HELIO_RECEIVE_OVERFLOW_CONFLATE] = HELIO_KEPT_CONFLATE,
        [HELIO_RECEIVE_OVERFLOW_PRIORITY] = HELIO_KEPT_PRIORITY,
    };
    const helio_kept_policy policy = policies[options->receive_overflow];
    *keeping = (helio_keeping){
        .config = {.policy = policy,
                   .bytes = options->receive_queue,
                   .messages = options->receive_messages,
                   .age_ns = options->receive_age_ns},
        .low_water = options->receive_low_water,
        .is_needed = helio_kept_drops(policy) || options->receive_messages > 0 ||
                     options->receive_age_ns > 0,
    };
    return read_common(keeping, &options->stream, "receive_overflow",
                       receiver_policies[options->receive_overflow]);
}
