/* The governor: what a stream does with what its rate policy decides. */
#include <heliograph/errors.h>

#include "generated/events.h"
#include "pair.h"
#include "send/govern.h"
#include "stats/segment.h"

enum { RATE = 10000000, FLOOR = 4000000 };

static void begin_govern(const char *policy, int mode) {
    helio_rx_endpoint_config at = world_receiver_config(100);
    at.receiver = 7;
    at.window_packets = 16384;
    begin_receiver(at);
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 16384;
    config.report_interval_ns = 10 * MS;
    config.pace.rate = strcmp(policy, "none") == 0 ? 0 : RATE;
    config.govern = (helio_tx_govern_config){
        .interval_ns = 10 * MS,
        .policy = policy,
        .mode = mode,
        .rate = {.rate = RATE, .rate_min = FLOOR, .loss_high = 0.01, .loss_low = 0.001},
        .escalate_ns = 50 * MS,
    };
    begin_source(config);
    world_run(&w, MS);
}

static void lose(double share) {
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = share});
}

/* Events of a kind that were told, and the first one's text. */
static unsigned told(helio_event_id event, const char **text) {
    unsigned count = 0;
    const uint64_t written = w.stats->header->events_written;
    for (uint64_t i = 0; i < written && i < w.stats->header->event_capacity; i++) {
        if (w.stats->events[i].event == (uint32_t)event) {
            if (count++ == 0) {
                *text = w.stats->events[i].text;
            }
        }
    }
    return count;
}

static void an_idle_stream_ends_no_intervals(void) {
    begin_govern("dynamic", HELIO_RATE_MODE_ENFORCE);
    send(100);
    world_run(&w, 10 * HELIO_SECOND); /* what receivers still say ends one now and then */
    const uint64_t intervals = source_counts()->control_intervals;
    CHECK(intervals > 0 && intervals < 200);
    world_run(&w, HELIO_SECOND);
    CHECK(source_counts()->control_intervals < intervals + 20);
    send(1);
    CHECK(helio_tx_govern_next_deadline_ns(source.stream) <= world_now(&w).now_ns + 10 * MS);
    end();
}

static void without_policy_and_feedback_there_are_no_intervals(void) {
    begin_receiver(world_receiver_config(100)); /* no reports */
    helio_tx_stream_config config = world_source_config(1);
    config.govern = (helio_tx_govern_config){.interval_ns = 10 * MS, .policy = "none"};
    begin_source(config);
    send(5000);
    CHECK_EQUAL(source_counts()->control_intervals, 0);
    CHECK_EQUAL(source_counts()->rate_limit, 0);
    end();
}

static void loss_lowers_the_rate_and_an_event_names_who_lost(void) {
    begin_govern("dynamic", HELIO_RATE_MODE_ENFORCE);
    CHECK_EQUAL(source_counts()->rate_limit, RATE);
    lose(0.2);
    send(5000);
    CHECK(source_counts()->rate_limit < RATE);
    CHECK_EQUAL(source_counts()->rate_limit, source_counts()->rate_decided);
    CHECK(source_counts()->rate_decreases > 0);
    CHECK_EQUAL(source_counts()->rate_increases, 0);
    const char *text = "";
    CHECK(told(HELIO_EVENT_RATE_CHANGED, &text) > 0);
    CHECK(strstr(text, "the rate goes from") && strstr(text, "at 10.0.0.100"));
    uint32_t places;
    CHECK(helio_tx_stream_views(source.stream, &places)[0].flags & HELIO_VIEW_PRESENT);
    lose(0);
    send(20000);
    CHECK(source_counts()->rate_increases > 0);
    end();
}

static void advised_only_the_rate_stays_and_events_say_what_would_be(void) {
    begin_govern("dynamic", HELIO_RATE_MODE_ADVISE);
    lose(0.2);
    send(5000);
    CHECK_EQUAL(source_counts()->rate_limit, RATE);
    CHECK(source_counts()->rate_decided < RATE);
    const char *text = "";
    CHECK(told(HELIO_EVENT_RATE_CHANGED, &text) > 0 && strstr(text, "would go"));
    end();
}

static void observed_only_nothing_is_told(void) {
    begin_govern("dynamic", HELIO_RATE_MODE_OBSERVE);
    lose(0.2);
    send(5000);
    CHECK_EQUAL(source_counts()->rate_limit, RATE);
    CHECK(source_counts()->rate_decided < RATE);
    const char *text = "";
    CHECK_EQUAL(told(HELIO_EVENT_RATE_CHANGED, &text), 0);
    end();
}

static void loss_that_stays_at_the_floor_is_told_of_once(void) {
    begin_govern("dynamic", HELIO_RATE_MODE_ENFORCE);
    lose(0.1);
    for (int i = 0; i < 8000; i++) {
        send(1);
        world_run(&w, 90 * US);
    }
    CHECK_EQUAL(source_counts()->rate_decided, FLOOR);
    const char *text = "";
    CHECK_EQUAL(told(HELIO_EVENT_RATE_FLOOR, &text), 1);
    CHECK(strstr(text, "at its floor of 4000000 bytes/s"));
    end();
}

static void the_policy_changes_while_the_stream_runs(void) {
    begin_govern("none", HELIO_RATE_MODE_ENFORCE);
    CHECK_EQUAL(helio_tx_stream_set_policy(source.stream, "dynamo", world_now(&w)),
                HELIO_ERR_OPTION);
    CHECK_EQUAL(helio_tx_stream_set_policy(source.stream, "static", world_now(&w)), 0);
    CHECK_EQUAL(source_counts()->rate_limit, RATE);
    CHECK_EQUAL(helio_tx_stream_set_policy(source.stream, "dynamic", world_now(&w)), 0);
    CHECK_EQUAL(source_counts()->rate_limit, RATE);
    lose(0.2);
    send(5000);
    CHECK(source_counts()->rate_limit < RATE);
    CHECK_EQUAL(helio_tx_stream_set_policy(source.stream, "none", world_now(&w)), 0);
    CHECK_EQUAL(source_counts()->rate_limit, 0);
    const char *text = "";
    CHECK_EQUAL(told(HELIO_EVENT_RATE_POLICY_CHANGED, &text), 3);
    CHECK(strstr(text, "rate policy static instead of none"));
    end();
}

static void a_ceiling_by_hand_is_kept_to_by_every_policy(void) {
    begin_govern("none", HELIO_RATE_MODE_ENFORCE);
    CHECK_EQUAL(helio_tx_stream_set_ceiling(source.stream, 2 * FLOOR, world_now(&w)), 0);
    CHECK_EQUAL(source_counts()->rate_limit, 2 * FLOOR);
    CHECK_EQUAL(helio_tx_stream_set_ceiling(source.stream, FLOOR / 2, world_now(&w)),
                HELIO_ERR_OPTION);
    CHECK_EQUAL(source_counts()->rate_limit, 2 * FLOOR);
    CHECK_EQUAL(helio_tx_stream_set_policy(source.stream, "dynamic", world_now(&w)), 0);
    send(20000);
    CHECK_EQUAL(source_counts()->rate_limit, 2 * FLOOR);
    CHECK_EQUAL(helio_tx_stream_set_policy(source.stream, "static", world_now(&w)), 0);
    CHECK_EQUAL(helio_tx_stream_set_ceiling(source.stream, 0, world_now(&w)), 0);
    CHECK_EQUAL(source_counts()->rate_limit, 0);
    end();
}

int main(void) {
    RUN(an_idle_stream_ends_no_intervals);
    RUN(without_policy_and_feedback_there_are_no_intervals);
    RUN(loss_lowers_the_rate_and_an_event_names_who_lost);
    RUN(advised_only_the_rate_stays_and_events_say_what_would_be);
    RUN(observed_only_nothing_is_told);
    RUN(loss_that_stays_at_the_floor_is_told_of_once);
    RUN(the_policy_changes_while_the_stream_runs);
    RUN(a_ceiling_by_hand_is_kept_to_by_every_policy);
    return check_result();
}
