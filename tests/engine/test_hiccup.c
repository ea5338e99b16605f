/* Hiccups of the host: what a sleeper that wakes late writes down. */
#include <string.h>

#include "base/moment.h"
#include "check.h"
#include "runtime/hiccup.h"

#define MS HELIO_MILLISECOND

static helio_hdr histogram;

static helio_hiccup fresh(void) {
    memset(&histogram, 0, sizeof histogram);
    helio_hdr_init(&histogram);
    return (helio_hiccup){.histogram = &histogram, .interval_ns = 5 * MS, .least_ns = HELIO_NEVER};
}

static uint64_t total(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < HELIO_HDR_CELLS; i++) {
        sum += histogram.counts[i];
    }
    return sum;
}

static void the_least_lateness_ever_seen_is_the_timers_own(void) {
    helio_hiccup hiccup = fresh();
    helio_hiccup_note(&hiccup, 5 * MS + 60000);
    CHECK_EQUAL(histogram.counts[0], 1);
    helio_hiccup_note(&hiccup, 5 * MS + 100000);
    CHECK_EQUAL(histogram.counts[helio_hdr_index(40000)], 1);
    helio_hiccup_note(&hiccup, 5 * MS + 50000);
    CHECK_EQUAL(histogram.counts[0], 2);
    helio_hiccup_note(&hiccup, 5 * MS + 100000);
    CHECK_EQUAL(histogram.counts[helio_hdr_index(50000)], 1);
}

static void a_long_hiccup_counts_for_the_sleeps_it_hid(void) {
    helio_hiccup hiccup = fresh();
    helio_hiccup_note(&hiccup, 5 * MS);
    helio_hiccup_note(&hiccup, 5 * MS + 22 * MS);
    CHECK_EQUAL(total(), 1 + 4);
    CHECK_EQUAL(histogram.counts[helio_hdr_index(22 * MS)], 1);
    CHECK_EQUAL(histogram.counts[helio_hdr_index(17 * MS)], 1);
    CHECK_EQUAL(histogram.counts[helio_hdr_index(12 * MS)], 1);
    CHECK_EQUAL(histogram.counts[helio_hdr_index(7 * MS)], 1);
}

static void a_stop_of_hours_is_counted_above_and_filled_in_for_a_minute(void) {
    helio_hiccup hiccup = fresh();
    helio_hiccup_note(&hiccup, 5 * MS);
    helio_hiccup_note(&hiccup, 7200 * HELIO_SECOND);
    CHECK_EQUAL(histogram.above, 1);
    CHECK(total() <= 1 + 12000);
}

static void the_thread_writes_and_ends(void) {
    helio_hiccup hiccup;
    memset(&histogram, 0, sizeof histogram);
    helio_hdr_init(&histogram);
    CHECK_EQUAL(helio_hiccup_start(&hiccup, &histogram, MS, -1), 0);
    for (int i = 0; i < 10000 && total() < 3; i++) {
        const struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    helio_hiccup_stop(&hiccup);
    CHECK(total() >= 3);
    const uint64_t at_end = total();
    helio_hiccup_stop(&hiccup); /* harmless */
    CHECK_EQUAL(total(), at_end);
}

int main(void) {
    RUN(the_least_lateness_ever_seen_is_the_timers_own);
    RUN(a_long_hiccup_counts_for_the_sleeps_it_hid);
    RUN(a_stop_of_hours_is_counted_above_and_filled_in_for_a_minute);
    RUN(the_thread_writes_and_ends);
    return check_result();
}
