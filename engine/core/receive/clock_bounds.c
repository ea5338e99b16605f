#include "receive/clock_bounds.h"

#define MILLION INT64_C(1000000)

static int64_t drift_ns(int64_t from_ns, int64_t to_ns) {
    return to_ns > from_ns ? (to_ns - from_ns) / MILLION * HELIO_CLOCK_DRIFT_PPM +
                                 (to_ns - from_ns) % MILLION * HELIO_CLOCK_DRIFT_PPM / MILLION + 1
                           : 0;
}

static int64_t low_at(const helio_clock_bounds *bounds, int64_t now_ns) {
    return bounds->low_ns - HELIO_CLOCK_PRECISION_NS - drift_ns(bounds->low_at_ns, now_ns);
}

static int64_t high_at(const helio_clock_bounds *bounds, int64_t now_ns) {
    return bounds->high_ns + HELIO_CLOCK_PRECISION_NS + drift_ns(bounds->high_at_ns, now_ns);
}

void helio_clock_bounds_went(helio_clock_bounds *bounds, int64_t sent_ns, int64_t came_ns) {
    const int64_t low_ns = sent_ns - came_ns;
    if (bounds->has_low && low_ns < bounds->low_ns - drift_ns(bounds->low_at_ns, sent_ns)) {
        return;
    }
    bounds->has_low = true;
    bounds->low_ns = low_ns;
    bounds->low_at_ns = sent_ns;
}

void helio_clock_bounds_came(helio_clock_bounds *bounds, int64_t sent_ns, int64_t came_ns) {
    const int64_t high_ns = came_ns - sent_ns;
    if (bounds->has_high && high_ns > bounds->high_ns + drift_ns(bounds->high_at_ns, came_ns)) {
        return;
    }
    bounds->has_high = true;
    bounds->high_ns = high_ns;
    bounds->high_at_ns = came_ns;
}

bool helio_clock_bounds_have_crossed(const helio_clock_bounds *bounds, int64_t now_ns) {
    return bounds->has_low && bounds->has_high && low_at(bounds, now_ns) > high_at(bounds, now_ns);
}

bool helio_clock_bounds_read(const helio_clock_bounds *bounds, int64_t now_ns,
                             helio_clock_difference *out) {
    if (!bounds->has_low || !bounds->has_high || helio_clock_bounds_have_crossed(bounds, now_ns)) {
        return false;
    }
    const int64_t low_ns = low_at(bounds, now_ns), high_ns = high_at(bounds, now_ns);
    const int64_t half_ns = (high_ns - low_ns + 1) / 2;
    *out = (helio_clock_difference){.ns = low_ns + half_ns, .bound_ns = half_ns};
    return true;
}
