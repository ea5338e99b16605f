/* The options of slow receivers and NAK storms: their values for a stream, and contradictions. */
#include "base/error.h"
#include "runtime/tx_lane_parts.h"

enum { INTERVALS_LEAST = 3 }; /* in trouble before an action */

_Static_assert((int)HELIO_ACTION_NOTIFY == (int)HELIO_SLOW_ACTION_NOTIFY + 1 &&
                   (int)HELIO_ACTION_EXPEL == (int)HELIO_SLOW_ACTION_EXPEL + 1,
               "the rungs are the choices of slow_action, in their order");

/* A default that is too short is raised to the minimum. */
static int64_t dwell_of(const helio_transmitter_options *options) {
    const int64_t dwell_ns = options->slow_dwell_ns;
    const int64_t least_ns = INTERVALS_LEAST * options->control_interval_ns;
    return options->given.slow_dwell || dwell_ns > least_ns ? dwell_ns : least_ns;
}

helio_tx_slow_config helio_tx_lane_slow(const helio_transmitter_options *options) {
    return (helio_tx_slow_config){
        .mode = options->slow_mode,
        .storm_mode = options->storm_mode,
        .receivers =
            {
                .highest = (helio_action)(HELIO_ACTION_NOTIFY + options->slow_action),
                .waits = options->slow_wait,
                .loss = options->slow_loss,
                .naks = options->slow_naks,
                .lag = options->slow_lag,
                .buffer = options->slow_buffer,
                .dwell_ns = dwell_of(options),
                .lead_ns = options->slow_lead_ns,
                .suspend_ns = options->suspend_time_ns,
                .expel_after = options->expel_after,
                .expel_ns = options->expel_time_ns,
                .share = options->expel_share,
            },
        .storm =
            {
                .storm_ns = options->storm_time_ns,
                .cut_off_ns = options->cutoff_time_ns,
            },
    };
}

int helio_tx_lane_check_slow(const helio_transmitter_options *options) {
    const int64_t action = options->slow_action;
    const bool waits = options->slow_wait;
    const double suspended = (double)options->suspend_time_ns / 1e9;
    const double expelled = (double)options->expel_time_ns / 1e9;
    if (options->given.slow_dwell &&
        options->slow_dwell_ns < INTERVALS_LEAST * options->control_interval_ns) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option slow_dwell=%g s must be at least %d times control_interval=%g s",
                          (double)options->slow_dwell_ns / 1e9, INTERVALS_LEAST,
                          (double)options->control_interval_ns / 1e9);
    }
    if (waits && action == HELIO_SLOW_ACTION_NOTIFY) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option slow_wait=true contradicts slow_action=notify: waiting for a "
                          "receiver needs slow_action=pace or stronger");
    }
    if (!waits && action == HELIO_SLOW_ACTION_PACE) {
        return helio_fail(HELIO_ERR_OPTION, "option slow_action=pace contradicts slow_wait=false: "
                                            "set slow_wait=true or another slow_action");
    }
    if (action == HELIO_SLOW_ACTION_EXPEL && expelled < suspended) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option expel_time=%g s must not be shorter than suspend_time=%g s",
                          expelled, suspended);
    }
    return 0;
}
