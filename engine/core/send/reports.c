#include "send/reports.h"

#include "wire/pgm.h"

enum {
    BURST_PART = 10,
    BURST_MIN = 8,
    FEW_PART = 4,
    FRESH_PART = 4,
    LONGER_MIN = 2,
    LONGER_MAX = 8
};

#define INTERVAL_MAX_NS (600 * HELIO_SECOND)
#define SETTLE_MIN_NS (2 * HELIO_MILLISECOND)

static uint64_t burst_of(uint32_t rate) {
    return rate / BURST_PART > BURST_MIN ? rate / BURST_PART : BURST_MIN;
}

void helio_tx_reports_init(helio_tx_reports *reports, int64_t least_ns, uint32_t rate,
                           uint64_t lead, int64_t now_ns) {
    *reports = (helio_tx_reports){
        .least_ns = least_ns,
        .interval_ns = least_ns,
        .rate = rate ? rate : 1,
        .settled_ns = now_ns,
        .rush_ns = now_ns,
        .look_ns = HELIO_NEVER,
        .lead = lead,
    };
    helio_bucket_init(&reports->bucket, reports->rate, burst_of(reports->rate), now_ns);
}

static void begin_to_look(helio_tx_reports *reports, int64_t now_ns) {
    const uint64_t burst = burst_of(reports->rate);
    helio_bucket_init(&reports->bucket, reports->rate, burst, now_ns);
    helio_bucket_charge(&reports->bucket, burst - burst / FRESH_PART);
    reports->look_ns =
        reports->interval_ns > reports->least_ns ? now_ns + reports->interval_ns : HELIO_NEVER;
    reports->came = reports->came_before = 0;
    reports->has_sent = false;
}

/* How many times as many as the rate have come since the bucket was full. */
static int64_t overload(const helio_tx_reports *reports, int64_t now_ns) {
    const int64_t took_ns = now_ns - reports->rush_ns + 1;
    const double times =
        (double)reports->rush * (double)HELIO_SECOND / (double)took_ns / (double)reports->rate;
    return times < LONGER_MIN ? LONGER_MIN : times > LONGER_MAX ? LONGER_MAX : (int64_t)times;
}

static bool pay(helio_tx_reports *reports, int64_t now_ns) {
    const uint64_t credit = helio_bucket_credit(&reports->bucket, now_ns);
    if (credit >= burst_of(reports->rate)) {
        reports->rush_ns = now_ns;
        reports->rush = 0;
    }
    reports->rush++;
    if (credit > 0) {
        helio_bucket_charge(&reports->bucket, 1);
    }
    return credit > 0;
}

bool helio_tx_reports_on_report(helio_tx_reports *reports, int64_t round_trip_ns, int64_t now_ns) {
    reports->came++;
    if (round_trip_ns > reports->round_trip_ns) {
        reports->round_trip_ns = round_trip_ns;
    } else if (round_trip_ns > 0) {
        reports->round_trip_ns -= (reports->round_trip_ns - round_trip_ns) / 8;
    }
    if (pay(reports, now_ns) || reports->interval_ns == 0 ||
        reports->interval_ns >= INTERVAL_MAX_NS || now_ns < reports->settled_ns) {
        return false;
    }
    const int64_t longer_ns = overload(reports, now_ns) * reports->interval_ns;
    reports->interval_ns = longer_ns < INTERVAL_MAX_NS ? longer_ns : INTERVAL_MAX_NS;
    reports->settled_ns = now_ns + 2 * reports->round_trip_ns + SETTLE_MIN_NS;
    begin_to_look(reports, now_ns);
    return true;
}

void helio_tx_reports_poll(helio_tx_reports *reports, uint64_t lead, int64_t now_ns) {
    if (now_ns < reports->look_ns) {
        return;
    }
    /* Those with news report within an interval of it: what was sent before the last look has been
     * told of by all. */
    const uint64_t few = (uint64_t)((double)reports->rate / FEW_PART * 2 *
                                    (double)reports->interval_ns / (double)HELIO_SECOND);
    const bool had_sent = reports->has_sent;
    const uint64_t came = reports->came + reports->came_before;
    reports->has_sent = lead != reports->lead;
    reports->lead = lead;
    reports->came_before = reports->came;
    reports->came = 0;
    reports->look_ns = now_ns + reports->interval_ns;
    if (!had_sent || came >= few) {
        return;
    }
    reports->interval_ns =
        reports->interval_ns / 2 > reports->least_ns ? reports->interval_ns / 2 : reports->least_ns;
    begin_to_look(reports, now_ns);
}

int64_t helio_tx_reports_silence_ns(const helio_tx_reports *reports) {
    const int64_t rest_ns = (HELIO_PGM_REPORT_REST + 2) * reports->interval_ns;
    return rest_ns > HELIO_SECOND ? rest_ns : HELIO_SECOND;
}
