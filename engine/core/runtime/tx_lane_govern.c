/* A transmit lane and its governor: what the options say of it, and what waits in the queues. */
#include "base/error.h"
#include "policy/rate.h"
#include "runtime/tx_lane_parts.h"

enum { FLOOR_PART = 100 }; /* of the rate: the floor when none is given */

#define BAND \
    4 /* loss_high is at least so many times loss_low, or the rate would swing between them */

int helio_tx_lane_check_govern(const helio_options *options) {
    const double high = helio_options_float(options, HELIO_OPTION_ID_LOSS_HIGH);
    const double low = helio_options_float(options, HELIO_OPTION_ID_LOSS_LOW);
    if (high < BAND * low) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option loss_high=%g must be at least %d times loss_low=%g", high, BAND,
                          low);
    }
    const int64_t least = helio_options_integer(options, HELIO_OPTION_ID_WINDOW_RECEIVERS);
    const int64_t window = helio_options_integer(options, HELIO_OPTION_ID_FLOW_WINDOW);
    if (least > 0 && window == HELIO_FLOW_WINDOW_NONE) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option window_receivers=%lld contradicts flow_window=none: say max, min "
                          "or tagged",
                          (long long)least);
    }
    const int64_t policy = helio_options_integer(options, HELIO_OPTION_ID_RATE_POLICY);
    const bool has_reports = helio_options_ns(options, HELIO_OPTION_ID_REPORT_INTERVAL) > 0;
    if (policy == HELIO_RATE_POLICY_PGMCC && !has_reports) {
        return helio_fail_plain(HELIO_ERR_OPTION,
                                "option rate_policy=pgmcc needs to hear from receivers, and "
                                "report_interval is 0");
    }
    if (window != HELIO_FLOW_WINDOW_NONE && !has_reports) {
        return helio_fail_plain(HELIO_ERR_OPTION,
                                "option flow_window needs to hear from receivers, and "
                                "report_interval is 0");
    }
    return 0;
}

helio_tx_govern_config helio_tx_lane_govern(const helio_options *options) {
    const uint64_t rate = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_RATE);
    const uint64_t least = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_RATE_MIN);
    const helio_rate_policy *policy =
        helio_rate_policy_at((size_t)helio_options_integer(options, HELIO_OPTION_ID_RATE_POLICY));
    return (helio_tx_govern_config){
        .interval_ns = helio_options_ns(options, HELIO_OPTION_ID_CONTROL_INTERVAL),
        .policy = policy->name,
        .mode = (int)helio_options_integer(options, HELIO_OPTION_ID_RATE_MODE),
        .rate =
            {
                .rate = rate,
                .rate_min = least ? least : rate / FLOOR_PART,
                .loss_high = helio_options_float(options, HELIO_OPTION_ID_LOSS_HIGH),
                .loss_low = helio_options_float(options, HELIO_OPTION_ID_LOSS_LOW),
                .who = (int)helio_options_integer(options, HELIO_OPTION_ID_RATE_RECEIVERS),
                .quantile = helio_options_float(options, HELIO_OPTION_ID_RATE_QUANTILE),
                .silence_ns = helio_options_ns(options, HELIO_OPTION_ID_RATE_SILENCE),
            },
        .escalate_ns = helio_options_ns(options, HELIO_OPTION_ID_RATE_ESCALATE),
    };
}

helio_tx_follow_config helio_tx_lane_follow(const helio_options *options) {
    return (helio_tx_follow_config){
        .window = (int)helio_options_integer(options, HELIO_OPTION_ID_FLOW_WINDOW),
        .least = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_WINDOW_RECEIVERS),
        .silence_ns = helio_options_ns(options, HELIO_OPTION_ID_WINDOW_SILENCE),
    };
}

uint64_t helio_tx_lane_queued(void *context) {
    const helio_tx_lane *lane = context;
    uint64_t bytes = 0;
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        bytes += helio_submit_queue_is_open(&t->queue) ? helio_submit_queue_bytes(&t->queue) : 0;
    }
    return bytes;
}
