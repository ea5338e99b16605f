#include "repair/backoff.h"

#include <math.h>

#include "base/math.h"
#include "base/moment.h"

#define ROUND_TRIP_GUESS_NS (50 * HELIO_MICROSECOND)
#define INTERVAL_MAX_NS (50 * HELIO_MILLISECOND)

enum { SMALL_GROUP = 8 };

static int64_t interval_of(double group_size, int64_t round_trip_ns) {
    if (group_size <= SMALL_GROUP) {
        return 2 * round_trip_ns;
    }
    const double spread = log(group_size) / 4;
    return (int64_t)(6 * (double)round_trip_ns * (spread > 1 ? spread : 1));
}

/* Computes T and G again. */
static void settle(helio_backoff *backoff) {
    const helio_backoff_config *config = &backoff->config;
    backoff->group_size = config->group_size ? config->group_size : 1;
    const bool is_given = config->fixed_ns >= 0;
    const bool is_alone =
        config->is_alone || (backoff->is_answered_alone && !is_given && config->group_size <= 1);
    if (is_alone || is_given) {
        backoff->interval_ns = is_alone ? 0 : config->fixed_ns;
        backoff->group_size = 1;
        return;
    }
    const int64_t own_ns = interval_of(backoff->group_size, backoff->round_trip_ns);
    int64_t wanted_ns = helio_max(backoff->advised_ns, own_ns);
    if (backoff->most_ns > 0) {
        wanted_ns = helio_clamp(wanted_ns, backoff->least_ns, backoff->most_ns);
    }
    backoff->interval_ns = helio_min(helio_max(wanted_ns, own_ns), INTERVAL_MAX_NS);
    /* An even draw over 2d suits SMALL_GROUP receivers: an interval advised that is longer was
     * found among as many more. */
    const double told =
        SMALL_GROUP * (double)backoff->interval_ns / (2 * (double)backoff->round_trip_ns);
    if (backoff->interval_ns > own_ns && told > backoff->group_size) {
        backoff->group_size = told;
    }
}

void helio_backoff_init(helio_backoff *backoff, const helio_backoff_config *config) {
    *backoff = (helio_backoff){.config = *config, .round_trip_ns = ROUND_TRIP_GUESS_NS};
    settle(backoff);
}

void helio_backoff_set_round_trip(helio_backoff *backoff, int64_t round_trip_ns) {
    backoff->round_trip_ns = helio_max(round_trip_ns, HELIO_MICROSECOND);
    settle(backoff);
}

void helio_backoff_advise(helio_backoff *backoff, int64_t interval_ns) {
    backoff->advised_ns = interval_ns;
    settle(backoff);
}

void helio_backoff_limit(helio_backoff *backoff, int64_t least_ns, int64_t most_ns) {
    backoff->least_ns = least_ns;
    backoff->most_ns = most_ns;
    settle(backoff);
}

void helio_backoff_answered(helio_backoff *backoff, bool is_alone) {
    if (backoff->is_answered_alone != is_alone) {
        backoff->is_answered_alone = is_alone;
        settle(backoff);
    }
}

int64_t helio_backoff_draw(const helio_backoff *backoff, helio_random *random) {
    if (backoff->group_size <= SMALL_GROUP) {
        return (int64_t)helio_random_below(random, (uint64_t)backoff->interval_ns + 1);
    }
    const double spread = log(backoff->group_size) + 1;
    const double share =
        log(helio_random_unit(random) * (exp(spread) - 1) + 1) / spread; /* of the interval */
    return (int64_t)((double)backoff->interval_ns * share);
}
