#include "options/keeping.h"

#include "base/error.h"

#define MILLION 1e6

static const struct {
    const char *name;
    helio_kept_policy policy;
} rules[] = {
    [HELIO_OVERFLOW_BLOCK] = {"block", HELIO_KEPT_BLOCK},
    [HELIO_OVERFLOW_DROP_NEWEST] = {"drop_newest", HELIO_KEPT_NEWEST},
    [HELIO_OVERFLOW_DROP_OLDEST] = {"drop_oldest", HELIO_KEPT_OLDEST},
    [HELIO_OVERFLOW_CONFLATE] = {"conflate", HELIO_KEPT_CONFLATE},
    [HELIO_OVERFLOW_PRIORITY] = {"priority", HELIO_KEPT_PRIORITY},
    [HELIO_OVERFLOW_REFUSE] = {"refuse", HELIO_KEPT_BLOCK},
};

static int check(const helio_keeping *keeping, const char *policy) {
    const helio_kept_config *config = &keeping->config;
    if (config->policy == HELIO_KEPT_CONFLATE && config->key_bytes == 0) {
        return helio_fail(
            HELIO_ERR_OPTION,
            "option overflow=%s needs a key: key_bytes of at least 1, not key_bytes=0", policy);
    }
    if (config->policy == HELIO_KEPT_PRIORITY && config->priority_offset < 0) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option overflow=%s needs the position of a message's priority: set "
                          "priority_offset to 0 or more, not priority_offset=-1",
                          policy);
    }
    return 0;
}

static int read_queue(helio_keeping *keeping, const helio_stream_options *options, size_t bytes) {
    const helio_kept_policy policy = rules[options->overflow].policy;
    const double high = options->queue_high, low = options->queue_low;
    *keeping = (helio_keeping){
        .config = {.policy = policy,
                   .bytes = bytes,
                   .messages = options->queue_messages,
                   .age_ns = options->queue_age_ns,
                   .key_offset = options->key_offset,
                   .key_bytes = options->key_bytes,
                   .priority_offset = options->priority_offset},
        .never_waits = options->overflow == HELIO_OVERFLOW_REFUSE,
        .low_water = options->low_water,
        .is_needed =
            helio_kept_drops(policy) || options->queue_messages > 0 || options->queue_age_ns > 0,
        .mark = {.high = (uint64_t)(high * MILLION),
                 .low = (uint64_t)((low > 0 ? low : high / 2) * MILLION)},
    };
    const int error = check(keeping, rules[options->overflow].name);
    if (!error && low > high) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option queue_low must be at most queue_high, here %g; %g is more", high,
                          low);
    }
    return error;
}

int helio_keeping_read_transmitter(helio_keeping *keeping,
                                   const helio_transmitter_options *options) {
    const helio_stream_options *stream = &options->stream;
    if (stream->queue_age_ns > 0 && !helio_kept_drops(rules[stream->overflow].policy)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option queue_age drops messages, but overflow=%s never drops any; use "
                          "queue_age=%g with another overflow",
                          rules[stream->overflow].name, (double)stream->queue_age_ns / 1e9);
    }
    return read_queue(keeping, stream, options->submit_queue);
}

int helio_keeping_read_receiver(helio_keeping *keeping, const helio_receiver_options *options) {
    return read_queue(keeping, &options->stream, options->receive_queue);
}
