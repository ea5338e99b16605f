/* Storms of events: what is told, what is held back, and that the books of both are exact. */
#include "check.h"

#include "base/moment.h"
#include "stats/segment.h"

enum { RATE = 100, BURST = 200, STORM = 100000 };

typedef struct scene {
    helio_stats *stats;
    helio_stats_object instance;
    const helio_instance_stats *counts;
} scene;

static scene open_scene(uint32_t event_rate, uint32_t event_burst) {
    const helio_stats_config config = {.name = "storm",
                                       .bytes = 256 << 20,
                                       .event_rate = event_rate,
                                       .event_burst = event_burst,
                                       .wall_ns = HELIO_SECOND};
    scene s = {0};
    CHECK_EQUAL(helio_stats_create(&config, &s.stats), 0);
    return s;
}

static void open_instance(scene *s) {
    CHECK_EQUAL(helio_stats_open_object(s->stats, HELIO_SCOPE_INSTANCE, "", 0, &s->instance), 0);
    s->counts = s->instance.record;
}

static void close_scene(scene *s) {
    helio_stats_close_object(s->stats, &s->instance, 0);
    helio_stats_destroy(s->stats);
}

static void breach(scene *s, helio_event_id event, int64_t wall_ns) {
    helio_stats_event(s->stats, wall_ns, event, HELIO_STATS_NO_SLOT, NULL, "breach");
}

static void tend(scene *s, int64_t wall_ns) {
    helio_stats_tend(s->stats, (helio_moment){.now_ns = wall_ns, .wall_ns = wall_ns});
}

/* How many events of a kind the ring has, and what its argument 1 adds up to for kind `about`. */
static uint64_t told(const scene *s, helio_event_id event, helio_event_id about, uint64_t *sum) {
    const uint64_t written = helio_cell(&s->stats->header->events_written);
    uint64_t count = 0, total = 0;
    CHECK(written <= s->stats->header->event_capacity); /* none overwritten: all are counted here */
    for (uint64_t i = 0; i < written; i++) {
        const helio_segment_event *entry = &s->stats->events[i];
        if (entry->event == (uint32_t)event && (!sum || entry->arguments[0] == (uint64_t)about)) {
            count++;
            total += entry->arguments[1];
        }
    }
    if (sum) {
        *sum = total;
    }
    return count;
}

static void a_storm_tells_no_more_than_allowed_and_counts_the_rest_exactly(void) {
    scene s = open_scene(RATE, BURST);
    open_instance(&s);
    for (int i = 0; i < STORM; i++) {
        breach(&s, HELIO_EVENT_RECEIVE_QUEUE_FULL, HELIO_SECOND);
    }
    CHECK_EQUAL(told(&s, HELIO_EVENT_RECEIVE_QUEUE_FULL, 0, NULL), BURST);
    CHECK_EQUAL(s.counts->events_suppressed, STORM - BURST);
    CHECK_EQUAL(s.counts->events_emitted, BURST);
    tend(&s, HELIO_SECOND + HELIO_MILLISECOND);
    uint64_t held = 0;
    CHECK_EQUAL(told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_RECEIVE_QUEUE_FULL, &held), 0);
    tend(&s, 2 * HELIO_SECOND);
    CHECK_EQUAL(told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_RECEIVE_QUEUE_FULL, &held), 1);
    CHECK_EQUAL(held, STORM - BURST);
    tend(&s, 10 * HELIO_SECOND);
    CHECK_EQUAL(told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_RECEIVE_QUEUE_FULL, &held), 1);
    close_scene(&s);
}

static void a_long_storm_is_told_at_the_rate_and_once_a_second_what_was_held_back(void) {
    enum { SECONDS = 10, PER_SECOND = 10000 };
    scene s = open_scene(RATE, BURST);
    open_instance(&s);
    for (int i = 0; i < SECONDS * PER_SECOND; i++) {
        const int64_t wall_ns = HELIO_SECOND + i * (HELIO_SECOND / PER_SECOND);
        breach(&s, HELIO_EVENT_SOCKET_DROPS, wall_ns);
        if (i % 10 == 0) {
            tend(&s, wall_ns);
        }
    }
    const uint64_t drops = told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL);
    CHECK(drops <= BURST + RATE * SECONDS);
    CHECK(drops >= BURST + RATE * (SECONDS - 1));
    helio_stats_tell_held(s.stats, 20 * HELIO_SECOND);
    uint64_t held = 0;
    const uint64_t tellings =
        told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_SOCKET_DROPS, &held);
    CHECK(tellings >= SECONDS - 2 && tellings <= SECONDS + 1);
    CHECK_EQUAL(drops + held, SECONDS * PER_SECOND);
    CHECK_EQUAL(s.counts->events_suppressed, held);
    close_scene(&s);
}

static void a_storm_of_one_kind_hides_no_other(void) {
    scene s = open_scene(RATE, BURST);
    open_instance(&s);
    for (int i = 0; i < 1000; i++) {
        breach(&s, HELIO_EVENT_RECEIVE_QUEUE_FULL, HELIO_SECOND);
    }
    breach(&s, HELIO_EVENT_PACKETS_LOST, HELIO_SECOND);
    CHECK_EQUAL(told(&s, HELIO_EVENT_PACKETS_LOST, 0, NULL), 1);
    for (int i = 0; i < 1000; i++) {
        breach(&s, HELIO_EVENT_PACKETS_LOST, HELIO_SECOND);
    }
    helio_stats_tell_held(s.stats, HELIO_SECOND);
    uint64_t full = 0, lost = 0;
    told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_RECEIVE_QUEUE_FULL, &full);
    told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_PACKETS_LOST, &lost);
    CHECK_EQUAL(full, 1000 - BURST);
    CHECK_EQUAL(lost, 1001 - BURST);
    close_scene(&s);
}

static void commands_and_what_they_change_are_always_told(void) {
    scene s = open_scene(1, 1);
    open_instance(&s);
    for (int i = 0; i < 50; i++) {
        breach(&s, HELIO_EVENT_COMMAND, HELIO_SECOND);
        breach(&s, HELIO_EVENT_COMMAND_REFUSED, HELIO_SECOND);
        breach(&s, HELIO_EVENT_LEVEL_CHANGED, HELIO_SECOND);
    }
    CHECK_EQUAL(s.counts->events_emitted, 150);
    CHECK_EQUAL(s.counts->events_suppressed, 0);
    close_scene(&s);
}

static void without_a_limit_everything_is_told(void) {
    scene s = open_scene(0, 0);
    open_instance(&s);
    for (int i = 0; i < 1000; i++) {
        breach(&s, HELIO_EVENT_SOCKET_DROPS, HELIO_SECOND);
    }
    CHECK_EQUAL(told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL), 1000);
    CHECK_EQUAL(s.counts->events_suppressed, 0);
    close_scene(&s);
}

static void a_clock_set_back_gives_nothing_away(void) {
    scene s = open_scene(RATE, 10);
    open_instance(&s);
    const int64_t late = 4000 * HELIO_SECOND, early = 400 * HELIO_SECOND;
    for (int i = 0; i < 100; i++) {
        breach(&s, HELIO_EVENT_SOCKET_DROPS, late);
    }
    for (int i = 0; i < 100; i++) {
        breach(&s, HELIO_EVENT_SOCKET_DROPS, early);
    }
    CHECK_EQUAL(told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL), 10);
    close_scene(&s);
}

static void after_a_clock_was_set_back_credit_grows_again_at_once(void) {
    scene s = open_scene(RATE, 10);
    open_instance(&s);
    const int64_t early = 400 * HELIO_SECOND;
    for (int i = 0; i < 100; i++) {
        breach(&s, HELIO_EVENT_SOCKET_DROPS, 4000 * HELIO_SECOND);
    }
    const uint64_t before = told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL);
    breach(&s, HELIO_EVENT_SOCKET_DROPS, early);
    CHECK_EQUAL(told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL), before);
    breach(&s, HELIO_EVENT_SOCKET_DROPS, early + HELIO_SECOND / RATE);
    CHECK_EQUAL(told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL), before + 1);
    tend(&s, early + 2 * HELIO_SECOND);
    uint64_t held = 0;
    CHECK_EQUAL(told(&s, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_EVENT_SOCKET_DROPS, &held), 1);
    CHECK_EQUAL(held, 102 - (before + 1));
    close_scene(&s);
}

static void a_clock_set_far_ahead_gives_one_burst(void) {
    scene s = open_scene(RATE, 10);
    open_instance(&s);
    for (int i = 0; i < 100; i++) {
        breach(&s, HELIO_EVENT_SOCKET_DROPS, HELIO_SECOND);
    }
    for (int i = 0; i < 100; i++) {
        breach(&s, HELIO_EVENT_SOCKET_DROPS, INT64_MAX / 2);
    }
    CHECK_EQUAL(told(&s, HELIO_EVENT_SOCKET_DROPS, 0, NULL), 20);
    close_scene(&s);
}

int main(void) {
    RUN(a_storm_tells_no_more_than_allowed_and_counts_the_rest_exactly);
    RUN(a_long_storm_is_told_at_the_rate_and_once_a_second_what_was_held_back);
    RUN(a_storm_of_one_kind_hides_no_other);
    RUN(commands_and_what_they_change_are_always_told);
    RUN(without_a_limit_everything_is_told);
    RUN(a_clock_set_back_gives_nothing_away);
    RUN(after_a_clock_was_set_back_credit_grows_again_at_once);
    RUN(a_clock_set_far_ahead_gives_one_burst);
    return check_result();
}
