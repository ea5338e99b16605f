/* How long requests are held back: the receiver's interval, the source's advice. */
#include "check.h"
#include "repair/advice.h"
#include "repair/backoff.h"

#define US HELIO_MICROSECOND
#define MS HELIO_MILLISECOND

static helio_backoff made(int64_t fixed_ns, uint32_t group_size, bool is_alone) {
    helio_backoff backoff;
    helio_backoff_init(&backoff, &(helio_backoff_config){fixed_ns, group_size, is_alone});
    return backoff;
}

static void the_interval_follows_the_round_trip(void) {
    helio_backoff b = made(-1, 0, false);
    helio_backoff_set_round_trip(&b, 30 * US);
    CHECK_EQUAL(b.interval_ns, 60 * US);
    helio_backoff_set_round_trip(&b, 300 * US);
    CHECK_EQUAL(b.interval_ns, 600 * US);
    b = made(-1, 100, false);
    helio_backoff_set_round_trip(&b, 50 * US);
    CHECK(b.interval_ns > 300 * US && b.interval_ns < 400 * US); /* 6d ln(100) / 4 */
    b = made(-1, 20, false);
    helio_backoff_set_round_trip(&b, 50 * US);
    CHECK_EQUAL(b.interval_ns, 300 * US); /* ln(20) / 4 < 1 */
}

static void who_is_alone_does_not_wait(void) {
    helio_backoff b = made(-1, 0, true);
    helio_random random;
    helio_random_init(&random, 1);
    helio_backoff_advise(&b, 10 * MS);
    CHECK_EQUAL(b.interval_ns, 0);
    CHECK_EQUAL(helio_backoff_draw(&b, &random), 0);
}

static void who_is_answered_alone_does_not_wait_while_that_lasts(void) {
    helio_backoff b = made(-1, 0, false);
    helio_backoff_set_round_trip(&b, 50 * US);
    helio_backoff_answered(&b, true);
    CHECK_EQUAL(b.interval_ns, 0);
    helio_backoff_advise(&b, 10 * MS);
    helio_backoff_set_round_trip(&b, 30 * US);
    CHECK_EQUAL(b.interval_ns, 0);
    helio_backoff_answered(&b, false);
    CHECK_EQUAL(b.interval_ns, 10 * MS);
    b = made(-1, 20, false); /* who gave the size of the group knows more than the source */
    helio_backoff_set_round_trip(&b, 50 * US);
    helio_backoff_answered(&b, true);
    CHECK_EQUAL(b.interval_ns, 300 * US);
    b = made(100 * US, 0, false);
    helio_backoff_answered(&b, true);
    CHECK_EQUAL(b.interval_ns, 100 * US);
}

static void an_interval_that_was_given_is_kept(void) {
    helio_backoff b = made(100 * US, 10000, false);
    helio_backoff_set_round_trip(&b, 5 * MS);
    helio_backoff_advise(&b, 20 * MS);
    helio_backoff_limit(&b, MS, 2 * MS);
    CHECK_EQUAL(b.interval_ns, 100 * US);
}

static void advice_is_followed_within_reason(void) {
    helio_backoff b = made(-1, 0, false);
    helio_backoff_set_round_trip(&b, 50 * US);
    helio_backoff_advise(&b, 4 * MS);
    CHECK_EQUAL(b.interval_ns, 4 * MS);
    CHECK(b.group_size > 100); /* which tells of many more receivers */
    helio_backoff_advise(&b, 0);
    CHECK_EQUAL(b.interval_ns, 100 * US); /* none makes it ask at once and always */
    helio_backoff_advise(&b, 1);
    CHECK_EQUAL(b.interval_ns, 100 * US);
    helio_backoff_advise(&b, INT64_C(4294967295) * US);
    CHECK_EQUAL(b.interval_ns, 50 * MS); /* none silences it */
    helio_backoff_limit(&b, 200 * US, 2 * MS);
    CHECK_EQUAL(b.interval_ns, 2 * MS);
    helio_backoff_advise(&b, 0);
    CHECK_EQUAL(b.interval_ns, 200 * US);
    helio_backoff_limit(&b, INT64_C(4294967295) * US, INT64_C(4294967295) * US);
    CHECK_EQUAL(b.interval_ns, 50 * MS);
    helio_backoff_limit(&b, 0, 1);
    CHECK_EQUAL(b.interval_ns, 100 * US);
}

/* How many of 1000 draws are in the last fifth of the interval. */
static int late_draws(const helio_backoff *b) {
    helio_random random;
    helio_random_init(&random, 3);
    int late = 0;
    for (int i = 0; i < 1000; i++) {
        const int64_t drawn_ns = helio_backoff_draw(b, &random);
        CHECK(drawn_ns >= 0 && drawn_ns <= b->interval_ns);
        late += drawn_ns > b->interval_ns / 5 * 4;
    }
    return late;
}

static void few_receivers_draw_evenly_and_many_mostly_late(void) {
    helio_backoff b = made(-1, 8, false);
    CHECK(late_draws(&b) > 150 && late_draws(&b) < 250);
    b = made(-1, 10000, false);
    CHECK(late_draws(&b) > 800);
}

static void one_packet_asked_for_by_many_doubles_the_advice_once(void) {
    helio_advice advice = {0};
    for (int i = 0; i < 7; i++) {
        helio_advice_on_duplicate(&advice, 1);
    }
    CHECK_EQUAL(advice.interval_ns, 0);
    for (int i = 0; i < 500; i++) {
        helio_advice_on_duplicate(&advice, 1);
    }
    CHECK_EQUAL(advice.interval_ns, 200 * US);
    for (uint64_t sequence = 2; sequence < 20; sequence++) {
        for (int i = 0; i < 500; i++) {
            helio_advice_on_duplicate(&advice, sequence);
        }
    }
    CHECK_EQUAL(advice.interval_ns, 50 * MS);
}

static void repairs_without_duplicates_halve_the_advice(void) {
    helio_advice advice = {.interval_ns = 800 * US};
    for (int i = 0; i < 16; i++) {
        helio_advice_on_repair(&advice);
    }
    CHECK_EQUAL(advice.interval_ns, 400 * US);
    for (int i = 0; i < 160; i++) {
        helio_advice_on_repair(&advice);
    }
    CHECK_EQUAL(advice.interval_ns, 100 * US);
    advice.interval_ns = 400 * US;
    for (int i = 0; i < 16; i++) { /* asked for twice: worth the time saved */
        helio_advice_on_duplicate(&advice, (uint64_t)i);
        helio_advice_on_repair(&advice);
    }
    CHECK_EQUAL(advice.interval_ns, 400 * US);
    for (int i = 0; i < 16; i++) { /* four times is too often */
        for (int k = 0; k < 3; k++) {
            helio_advice_on_duplicate(&advice, (uint64_t)i);
        }
        helio_advice_on_repair(&advice);
    }
    CHECK_EQUAL(advice.interval_ns, 800 * US);
}

int main(void) {
    RUN(the_interval_follows_the_round_trip);
    RUN(who_is_alone_does_not_wait);
    RUN(who_is_answered_alone_does_not_wait_while_that_lasts);
    RUN(an_interval_that_was_given_is_kept);
    RUN(advice_is_followed_within_reason);
    RUN(few_receivers_draw_evenly_and_many_mostly_late);
    RUN(one_packet_asked_for_by_many_doubles_the_advice_once);
    RUN(repairs_without_duplicates_halve_the_advice);
    return check_result();
}
