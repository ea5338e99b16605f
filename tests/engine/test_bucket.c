/* The token bucket: exact to the nanosecond and the byte at any rate. */
#include "check.h"

#include "base/bucket.h"
#include "base/moment.h"
#include "base/random.h"

#define MS HELIO_MILLISECOND

static void a_full_bucket_gives_its_depth_and_one_packet(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000, 500, 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 0), 501);
    helio_bucket_charge(&bucket, 500);
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 0), 1); /* one more may leave, and is owed */
    helio_bucket_charge(&bucket, 100);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 0), 0);
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), 100 * MS);
}

static void something_may_leave_at_the_moment_it_says_and_not_before(void) {
    static const uint64_t rates[] = {1, 3, 7, 999, 1000000, 123456789, 100000000000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        helio_bucket bucket;
        helio_bucket_init(&bucket, rates[i], 0, 1000);
        for (uint64_t bytes = 1; bytes < 2000; bytes = 2 * bytes + 1) {
            helio_bucket_charge(&bucket, bytes);
            const int64_t ready_ns = helio_bucket_ready_ns(&bucket);
            CHECK_EQUAL(helio_bucket_credit(&bucket, ready_ns - 1), 0);
            CHECK(helio_bucket_credit(&bucket, ready_ns) > 0);
        }
    }
}

/* Looks of any rhythm lose and invent nothing: credit is a sum of products of whole numbers. */
static void many_small_looks_are_worth_one_large(void) {
    helio_random random;
    helio_random_init(&random, 7);
    helio_bucket often, once;
    helio_bucket_init(&often, 123457, 1 << 20, 0);
    helio_bucket_init(&once, 123457, 1 << 20, 0);
    helio_bucket_charge(&often, 1 << 20);
    helio_bucket_charge(&once, 1 << 20);
    int64_t now_ns = 0;
    for (int i = 0; i < 100000; i++) {
        now_ns += (int64_t)(helio_random_next(&random) % 50000);
        helio_bucket_credit(&often, now_ns);
    }
    helio_bucket_credit(&once, now_ns);
    CHECK_EQUAL(often.credit_nanos, once.credit_nanos);
    CHECK_EQUAL(often.credit_nanos, now_ns * 123457);
}

static void what_leaves_in_ten_seconds_is_the_rate_and_the_depth(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000000, 3000, 0);
    uint64_t left = 0;
    for (int64_t now_ns = 0; now_ns <= 10 * HELIO_SECOND; now_ns += 777) {
        while (helio_bucket_credit(&bucket, now_ns)) {
            helio_bucket_charge(&bucket, 1500);
            left += 1500;
        }
    }
    CHECK(left >= 10000000 + 3000);
    CHECK(left <= 10000000 + 3000 + 1500);
}

static void a_change_of_rate_keeps_the_debt(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000, 0, 0);
    helio_bucket_charge(&bucket, 1000);
    helio_bucket_set_rate(&bucket, 100, 0,
                          500 * MS); /* half is paid, the rest takes ten times as long */
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), 5500 * MS);
    helio_bucket_set_rate(&bucket, 1000000, 0, 1500 * MS); /* 400 are left */
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), 1500 * MS + 400000);
}

static void a_smaller_depth_takes_credit_away_and_a_larger_one_gives_none(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000, 1000, 0);
    helio_bucket_set_rate(&bucket, 1000, 100, 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 0), 101);
    helio_bucket_set_rate(&bucket, 1000, 1000, 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 0), 101);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 100 * MS), 201);
}

static void without_a_rate_everything_may_leave_and_nothing_is_owed_afterwards(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000, 0, 0);
    helio_bucket_charge(&bucket, 100000);
    helio_bucket_set_rate(&bucket, 0, 0, 1);
    CHECK(helio_bucket_credit(&bucket, 1) == UINT64_MAX);
    CHECK(helio_bucket_has(&bucket, INT64_C(1) << 32, 1));
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), 0);
    helio_bucket_charge(&bucket, 100000);
    helio_bucket_set_rate(&bucket, 1000, 50, 2);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 2), 1);
}

static void time_that_goes_back_is_no_time(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000, 10, 100 * MS);
    helio_bucket_charge(&bucket, 20);
    CHECK_EQUAL(helio_bucket_credit(&bucket, 0), 0);
    helio_bucket_set_rate(&bucket, 1000, 10, 0);
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), 110 * MS);
}

static void debt_down_to_a_bound_can_be_asked_for(void) {
    helio_bucket bucket;
    helio_bucket_init(&bucket, 1000, 100, 0);
    CHECK(helio_bucket_has(&bucket, 100, 0));
    CHECK(!helio_bucket_has(&bucket, 101, 0));
    helio_bucket_charge(&bucket, 300);
    CHECK(!helio_bucket_has(&bucket, -199, 0));
    CHECK(helio_bucket_has(&bucket, -200, 0));
    CHECK(helio_bucket_has(&bucket, -199, MS));
}

/* 100 GB/s, the largest depth, an age of the universe's clock: no sum overflows. */
static void extremes_do_not_overflow(void) {
    const uint64_t depth = UINT64_C(1) << 32;
    helio_bucket bucket;
    helio_bucket_init(&bucket, 100000000000, depth, 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, INT64_MAX / 2), (int64_t)depth + 1);
    helio_bucket_charge(&bucket, depth);
    CHECK_EQUAL(helio_bucket_credit(&bucket, INT64_MAX / 2), 1);
    for (int i = 0; i < 100; i++) {
        helio_bucket_charge(&bucket, depth); /* debt beyond all measure is forgiven */
    }
    CHECK_EQUAL(helio_bucket_credit(&bucket, INT64_MAX / 2), 0);
    const int64_t ready_ns = helio_bucket_ready_ns(&bucket);
    CHECK(ready_ns > INT64_MAX / 2 && ready_ns < INT64_MAX / 2 + 60 * HELIO_SECOND);
    CHECK(helio_bucket_credit(&bucket, ready_ns) > 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, INT64_MAX - 1), (int64_t)depth + 1);

    helio_bucket_init(&bucket, 1, depth, 0);
    helio_bucket_charge(&bucket, depth);
    helio_bucket_charge(&bucket, 1);
    CHECK_EQUAL(helio_bucket_ready_ns(&bucket), HELIO_SECOND);
    CHECK_EQUAL(helio_bucket_credit(&bucket, HELIO_SECOND - 1), 0);
    CHECK_EQUAL(helio_bucket_credit(&bucket, HELIO_SECOND), 1);
    CHECK_EQUAL(helio_bucket_credit(&bucket, INT64_MAX - 1), (int64_t)depth + 1);
}

int main(void) {
    RUN(a_full_bucket_gives_its_depth_and_one_packet);
    RUN(something_may_leave_at_the_moment_it_says_and_not_before);
    RUN(many_small_looks_are_worth_one_large);
    RUN(what_leaves_in_ten_seconds_is_the_rate_and_the_depth);
    RUN(a_change_of_rate_keeps_the_debt);
    RUN(a_smaller_depth_takes_credit_away_and_a_larger_one_gives_none);
    RUN(without_a_rate_everything_may_leave_and_nothing_is_owed_afterwards);
    RUN(time_that_goes_back_is_no_time);
    RUN(debt_down_to_a_bound_can_be_asked_for);
    RUN(extremes_do_not_overflow);
    return check_result();
}
