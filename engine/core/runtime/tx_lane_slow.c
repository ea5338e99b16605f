/* What the options of slow consumers and NAK storms make of a stream, and which of them contradict
 * each other. */
#include "base/error.h"
#include "runtime/tx_lane_parts.h"

enum { INTERVALS_LEAST = 3 }; /* that a receiver is in trouble before anything is done */

_Static_assert((int)HELIO_SLOW_NOTIFY == (int)HELIO_SLOW_ACTION_NOTIFY + 1 &&
                   (int)HELIO_SLOW_EXPEL == (int)HELIO_SLOW_ACTION_EXPEL + 1,
               "the rungs are the choices of slow_action, in their order");

/* Unless it is given it is made as long as it must be. */
static int64_t dwell_of(const helio_options *options) {
    const int64_t dwell_ns = helio_options_ns(options, HELIO_OPTION_ID_SLOW_DWELL);
    const int64_t least_ns =
        INTERVALS_LEAST * helio_options_ns(options, HELIO_OPTION_ID_CONTROL_INTERVAL);
    return options->value[HELIO_OPTION_ID_SLOW_DWELL].given || dwell_ns > least_ns ? dwell_ns
                                                                                   : least_ns;
}

helio_tx_slow_config helio_tx_lane_slow(const helio_options *options) {
    return (helio_tx_slow_config){
        .mode = (int)helio_options_integer(options, HELIO_OPTION_ID_SLOW_MODE),
        .storm_mode = (int)helio_options_integer(options, HELIO_OPTION_ID_STORM_MODE),
        .consumers =
            {
                .highest =
                    (helio_slow_step)(HELIO_SLOW_NOTIFY +
                                      helio_options_integer(options, HELIO_OPTION_ID_SLOW_ACTION)),
                .waits = helio_options_integer(options, HELIO_OPTION_ID_SLOW_WAIT),
                .loss = helio_options_float(options, HELIO_OPTION_ID_SLOW_LOSS),
                .naks = helio_options_float(options, HELIO_OPTION_ID_SLOW_NAKS),
                .lag = helio_options_float(options, HELIO_OPTION_ID_SLOW_LAG),
                .buffer = helio_options_float(options, HELIO_OPTION_ID_SLOW_BUFFER),
                .dwell_ns = dwell_of(options),
                .lead_ns = helio_options_ns(options, HELIO_OPTION_ID_SLOW_LEAD),
                .suspend_ns = helio_options_ns(options, HELIO_OPTION_ID_SUSPEND_TIME),
                .expel_after =
                    (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_EXPEL_AFTER),
                .expel_ns = helio_options_ns(options, HELIO_OPTION_ID_EXPEL_TIME),
                .share = helio_options_float(options, HELIO_OPTION_ID_EXPEL_SHARE),
            },
        .storm =
            {
                .storm_ns = helio_options_ns(options, HELIO_OPTION_ID_STORM_TIME),
                .cut_off_ns = helio_options_ns(options, HELIO_OPTION_ID_CUTOFF_TIME),
            },
    };
}

int helio_tx_lane_check_slow(const helio_options *options) {
    const int64_t action = helio_options_integer(options, HELIO_OPTION_ID_SLOW_ACTION);
    const bool waits = helio_options_integer(options, HELIO_OPTION_ID_SLOW_WAIT);
    const double suspended = helio_options_float(options, HELIO_OPTION_ID_SUSPEND_TIME);
    const double expelled = helio_options_float(options, HELIO_OPTION_ID_EXPEL_TIME);
    const double dwell = helio_options_float(options, HELIO_OPTION_ID_SLOW_DWELL);
    const double interval = helio_options_float(options, HELIO_OPTION_ID_CONTROL_INTERVAL);
    if (options->value[HELIO_OPTION_ID_SLOW_DWELL].given && dwell < INTERVALS_LEAST * interval) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option slow_dwell, %g seconds, is less than %d times "
                          "control_interval, %g seconds: nothing is decided on fewer",
                          dwell, INTERVALS_LEAST, interval);
    }
    if (waits && action == HELIO_SLOW_ACTION_NOTIFY) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option slow_wait is true, and slow_action is notify, which is all that "
                          "may be done; waiting for a receiver takes slow_action=pace or harder");
    }
    if (!waits && action == HELIO_SLOW_ACTION_PACE) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option slow_action is pace, and slow_wait is false: nobody is waited "
                          "for; say slow_wait=true, or another slow_action");
    }
    if (action == HELIO_SLOW_ACTION_EXPEL && expelled < suspended) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option expel_time, %g seconds, is shorter than suspend_time, %g "
                          "seconds, which is the milder of the two",
                          expelled, suspended);
    }
    return 0;
}
