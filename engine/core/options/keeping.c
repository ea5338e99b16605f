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

static int read_mark(helio_keeping *keeping, const helio_options *options) {
    const double high = helio_options_float(options, HELIO_OPTION_ID_QUEUE_HIGH);
    const double low = helio_options_float(options, HELIO_OPTION_ID_QUEUE_LOW);
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

static int read_transmitter(helio_keeping *keeping, const helio_options *options) {
    static const helio_kept_policy policies[] = {
        [HELIO_OVERFLOW_BLOCK] = HELIO_KEPT_BLOCK,
        [HELIO_OVERFLOW_REFUSE] = HELIO_KEPT_BLOCK,
        [HELIO_OVERFLOW_DROP_NEWEST] = HELIO_KEPT_NEWEST,
        [HELIO_OVERFLOW_DROP_OLDEST] = HELIO_KEPT_OLDEST,
        [HELIO_OVERFLOW_CONFLATE] = HELIO_KEPT_CONFLATE,
        [HELIO_OVERFLOW_PRIORITY] = HELIO_KEPT_PRIORITY,
    };
    helio_kept_config *config = &keeping->config;
    const int64_t overflow = helio_options_integer(options, HELIO_OPTION_ID_OVERFLOW);
    config->policy = policies[overflow];
    config->bytes = (size_t)helio_options_integer(options, HELIO_OPTION_ID_SUBMIT_QUEUE);
    config->messages = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_QUEUE_MESSAGES);
    config->age_ns = helio_options_ns(options, HELIO_OPTION_ID_QUEUE_AGE);
    keeping->never_waits = overflow == HELIO_OVERFLOW_REFUSE;
    keeping->low_water = helio_options_float(options, HELIO_OPTION_ID_LOW_WATER);
    keeping->is_needed = helio_kept_drops(config->policy) || config->messages > 0;
    if (config->age_ns > 0 && !helio_kept_drops(config->policy)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option queue_age drops messages, and overflow=%s never does; "
                          "queue_age=%g goes with another overflow",
                          transmitter_policies[overflow],
                          helio_options_float(options, HELIO_OPTION_ID_QUEUE_AGE));
    }
    return check(keeping, "overflow", transmitter_policies[overflow]);
}

static int read_receiver(helio_keeping *keeping, const helio_options *options) {
    static const helio_kept_policy policies[] = {
        [HELIO_RECEIVE_OVERFLOW_BLOCK] = HELIO_KEPT_BLOCK,
        [HELIO_RECEIVE_OVERFLOW_DROP_NEWEST] = HELIO_KEPT_NEWEST,
        [HELIO_RECEIVE_OVERFLOW_DROP_OLDEST] = HELIO_KEPT_OLDEST,
        [HELIO_RECEIVE_OVERFLOW_CONFLATE] = HELIO_KEPT_CONFLATE,
        [HELIO_RECEIVE_OVERFLOW_PRIORITY] = HELIO_KEPT_PRIORITY,
    };
    helio_kept_config *config = &keeping->config;
    const int64_t overflow = helio_options_integer(options, HELIO_OPTION_ID_RECEIVE_OVERFLOW);
    config->policy = policies[overflow];
    config->bytes = (size_t)helio_options_integer(options, HELIO_OPTION_ID_RECEIVE_QUEUE);
    config->messages = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_RECEIVE_MESSAGES);
    config->age_ns = helio_options_ns(options, HELIO_OPTION_ID_RECEIVE_AGE);
    keeping->low_water = helio_options_float(options, HELIO_OPTION_ID_RECEIVE_LOW_WATER);
    keeping->is_needed =
        helio_kept_drops(config->policy) || config->messages > 0 || config->age_ns > 0;
    return check(keeping, "receive_overflow", receiver_policies[overflow]);
}

int helio_keeping_read(helio_keeping *keeping, const helio_options *options, unsigned on) {
    *keeping = (helio_keeping){
        .config.key_offset = (size_t)helio_options_integer(options, HELIO_OPTION_ID_KEY_OFFSET),
        .config.key_bytes = (size_t)helio_options_integer(options, HELIO_OPTION_ID_KEY_BYTES),
        .config.priority_offset = helio_options_integer(options, HELIO_OPTION_ID_PRIORITY_OFFSET),
    };
    const int error = on == HELIO_ON_TRANSMITTER ? read_transmitter(keeping, options)
                                                 : read_receiver(keeping, options);
    return error ? error : read_mark(keeping, options);
}
