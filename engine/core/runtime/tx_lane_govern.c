/* A transmit lane and its governor: its options, and the bytes that wait in the queues. */
#include "base/error.h"
#include "policy/rate.h"
#include "runtime/tx_lane_parts.h"

enum { FLOOR_PART = 100 }; /* of the rate: the floor when none is given */

#define BAND 4 /* loss_high / loss_low is at least this, or the rate would swing */

int helio_tx_lane_check_govern(const helio_transmitter_options *options) {
    const double high = options->loss_high;
    const double low = options->loss_low;
    if (high < BAND * low) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option loss_high=%g must be at least %d times loss_low=%g", high, BAND,
                          low);
    }
    const int64_t least = options->window_receivers;
    const int64_t window = options->flow_window;
    if (least > 0 && window == HELIO_FLOW_WINDOW_NONE) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option window_receivers=%lld contradicts flow_window=none: set "
                          "flow_window to max, min or tagged",
                          (long long)least);
    }
    const int64_t policy = options->rate_policy;
    const bool has_reports = options->report_interval_ns > 0;
    if (policy == HELIO_RATE_POLICY_PGMCC && !has_reports) {
        return helio_fail_plain(
            HELIO_ERR_OPTION,
            "option rate_policy=pgmcc needs reports of receivers, but report_interval is 0");
    }
    if (window != HELIO_FLOW_WINDOW_NONE && !has_reports) {
        return helio_fail_plain(
            HELIO_ERR_OPTION,
            "option flow_window needs reports of receivers, but report_interval is 0");
    }
    return 0;
}

helio_tx_govern_config helio_tx_lane_govern(const helio_transmitter_options *options) {
    const uint64_t rate = options->rate;
    const uint64_t least = options->rate_min;
    const helio_rate_policy *policy = helio_rate_policy_at(options->rate_policy);
    return (helio_tx_govern_config){
        .interval_ns = options->control_interval_ns,
        .policy = policy->name,
        .mode = options->rate_mode,
        .rate =
            {
                .rate = rate,
                .rate_min = least ? least : rate / FLOOR_PART,
                .loss_high = options->loss_high,
                .loss_low = options->loss_low,
                .who = options->rate_receivers,
                .quantile = options->rate_quantile,
            },
        .escalate_ns = HELIO_SECOND,
    };
}

helio_tx_follow_config helio_tx_lane_follow(const helio_transmitter_options *options) {
    return (helio_tx_follow_config){
        .window = options->flow_window,
        .least = options->window_receivers,
        .silence_ns = options->window_silence_ns,
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
