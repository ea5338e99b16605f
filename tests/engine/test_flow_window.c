/* How far receivers' windows let a source go. */
#include "base/moment.h"
#include "check.h"
#include "policy/window.h"

enum { LEAD = 5000 };

static helio_receiver_view views[4];

static void meet(uint32_t place, uint64_t position, uint32_t window, uint32_t flags) {
    views[place] = (helio_receiver_view){
        .flags = HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS | flags,
        .position = position,
        .window = window,
        .heard_ns = HELIO_SECOND,
    };
}

static helio_window_limit limit_by(helio_window_rule rule, uint32_t least) {
    const helio_window_config config = {rule, least, HELIO_SECOND};
    return helio_window_limit_of(&config, views, 4, LEAD, HELIO_SECOND + 1);
}

static void begin(void) {
    memset(views, 0, sizeof views);
    meet(0, 4000, 1000, 0);                 /* to 5000 */
    meet(1, 3000, 400, HELIO_VIEW_TAGGED);  /* to 3400 */
    meet(2, 4900, 4000, HELIO_VIEW_TAGGED); /* to 8900 */
    meet(3, 100, 50, 0);                    /* to 150 */
}

static void max_follows_the_one_with_the_most_room(void) {
    begin();
    const helio_window_limit limit = limit_by(HELIO_WINDOW_MAX, 0);
    CHECK_EQUAL(limit.sequence, 8900);
    CHECK_EQUAL(limit.index, 2);
}

static void min_follows_the_one_with_the_least(void) {
    begin();
    const helio_window_limit limit = limit_by(HELIO_WINDOW_MIN, 0);
    CHECK_EQUAL(limit.sequence, 150);
    CHECK_EQUAL(limit.index, 3);
    CHECK_EQUAL(limit.progress, 12);
}

static void tagged_waits_only_for_those_that_set_the_pace(void) {
    begin();
    CHECK_EQUAL(limit_by(HELIO_WINDOW_TAGGED, 0).sequence, 3400);
}

static void nobody_waits_for_a_receiver_that_is_isolated_gone_silent_or_does_not_report(void) {
    static const uint32_t flags[] = {HELIO_VIEW_SUSPENDED, HELIO_VIEW_EXPELLED, HELIO_VIEW_LEFT};
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        begin();
        views[3].flags |= flags[i];
        CHECK_EQUAL(limit_by(HELIO_WINDOW_MIN, 0).sequence, 3400);
    }
    begin();
    views[3].flags &= ~(uint32_t)HELIO_VIEW_REPORTS;
    CHECK_EQUAL(limit_by(HELIO_WINDOW_MIN, 0).sequence, 3400);
    begin();
    views[3].heard_ns = 1;
    CHECK_EQUAL(limit_by(HELIO_WINDOW_MIN, 0).sequence, 3400);
}

static void with_nobody_there_is_no_limit_unless_some_must_be_there(void) {
    memset(views, 0, sizeof views);
    CHECK(limit_by(HELIO_WINDOW_MIN, 0).sequence == HELIO_WINDOW_NO_LIMIT);
    CHECK(limit_by(HELIO_WINDOW_MAX, 0).sequence == HELIO_WINDOW_NO_LIMIT);
    CHECK_EQUAL(limit_by(HELIO_WINDOW_MIN, 1).sequence, LEAD);
    begin();
    CHECK_EQUAL(limit_by(HELIO_WINDOW_TAGGED, 3).sequence, LEAD);
    CHECK_EQUAL(limit_by(HELIO_WINDOW_TAGGED, 2).sequence, 3400);
}

int main(void) {
    RUN(max_follows_the_one_with_the_most_room);
    RUN(min_follows_the_one_with_the_least);
    RUN(tagged_waits_only_for_those_that_set_the_pace);
    RUN(nobody_waits_for_a_receiver_that_is_isolated_gone_silent_or_does_not_report);
    RUN(with_nobody_there_is_no_limit_unless_some_must_be_there);
    return check_result();
}
