/* When a stream counts as congested, and when no more. */
#include "check.h"

#include "send/congestion.h"

#define MS HELIO_MILLISECOND

static helio_congestion it;
static int64_t now_ns;

static void begin(void) {
    it = (helio_congestion){.limit_ns = 50 * MS};
    now_ns = 1000 * MS;
}

/* Messages are seen to wait each millisecond. */
static helio_congestion_change wait_for(int ms) {
    helio_congestion_change change = HELIO_CONGESTION_SAME;
    for (int i = 0; i < ms && change == HELIO_CONGESTION_SAME; i++) {
        now_ns += MS;
        helio_congestion_note(&it, HELIO_ADMIT_RATE, now_ns);
        change = helio_congestion_look(&it, now_ns);
    }
    return change;
}

static helio_congestion_change silence_for(int ms) {
    now_ns += ms * MS;
    return helio_congestion_look(&it, now_ns);
}

static void a_short_wait_is_none(void) {
    begin();
    CHECK_EQUAL(wait_for(49), HELIO_CONGESTION_SAME);
    CHECK_EQUAL(silence_for(1000), HELIO_CONGESTION_SAME);
    CHECK(!it.is_on);
    CHECK(helio_congestion_next_deadline_ns(&it) == HELIO_NEVER);
}

static void a_wait_of_the_limit_begins_it_once(void) {
    begin();
    CHECK_EQUAL(wait_for(1000), HELIO_CONGESTION_BEGINS);
    CHECK_EQUAL(now_ns, 1051 * MS);
    CHECK_EQUAL(wait_for(1000), HELIO_CONGESTION_SAME);
    CHECK(it.is_on);
}

static void it_is_over_when_nothing_waited_for_the_limit(void) {
    begin();
    wait_for(100);
    CHECK_EQUAL(silence_for(49), HELIO_CONGESTION_SAME);
    helio_congestion_rest(&it); /* an empty queue alone does not end it */
    CHECK_EQUAL(helio_congestion_next_deadline_ns(&it), it.seen_ns + 50 * MS);
    CHECK_EQUAL(wait_for(1), HELIO_CONGESTION_SAME);
    CHECK_EQUAL(silence_for(49), HELIO_CONGESTION_SAME);
    CHECK_EQUAL(silence_for(1), HELIO_CONGESTION_ENDS);
    CHECK(!it.is_on);
    CHECK_EQUAL(wait_for(1000), HELIO_CONGESTION_BEGINS); /* and again, after as long as before */
}

static void queues_that_empty_in_between_are_not_congested(void) {
    begin();
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(wait_for(40), HELIO_CONGESTION_SAME);
        helio_congestion_rest(&it);
        CHECK_EQUAL(silence_for(1), HELIO_CONGESTION_SAME);
    }
}

static void waits_far_apart_do_not_add_up(void) {
    begin();
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(wait_for(1), HELIO_CONGESTION_SAME);
        CHECK_EQUAL(silence_for(60), HELIO_CONGESTION_SAME);
    }
}

int main(void) {
    RUN(a_short_wait_is_none);
    RUN(a_wait_of_the_limit_begins_it_once);
    RUN(it_is_over_when_nothing_waited_for_the_limit);
    RUN(queues_that_empty_in_between_are_not_congested);
    RUN(waits_far_apart_do_not_add_up);
    return check_result();
}
