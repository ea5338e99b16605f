/* What a stream does about slow receivers and storms: decided over a model of receivers, counted,
 * told and carried out as the modes allow. */
#include "check.h"
#include "crowd.h"
#include "generated/options.h"
#include "send/parts.h"
#include "stats/segment.h"
#include "world.h"

#define MS HELIO_MILLISECOND

enum { RECEIVERS = 6, SLOW = 2 };

static world w;
static world_source source;
static crowd c;

static helio_tx_slow_config made(int mode) {
    return (helio_tx_slow_config){
        .mode = mode,
        .storm_mode = mode,
        .receivers = {.highest = HELIO_ACTION_EXPEL,
                      .loss = 0.05,
                      .lag = 0.75,
                      .buffer = 0.95,
                      .dwell_ns = 300 * MS,
                      .lead_ns = HELIO_SECOND,
                      .suspend_ns = 2 * HELIO_SECOND,
                      .expel_after = 1,
                      .expel_ns = 3 * HELIO_SECOND,
                      .share = 0.2},
        .storm = {.storm_ns = 500 * MS, .cut_off_ns = 200 * MS},
    };
}

static void begin(const helio_tx_slow_config *slow) {
    world_init(&w, 1, 0);
    helio_tx_stream_config config = world_source_config(1);
    config.slow = *slow;
    world_add_source(&w, &source, &config);
    crowd_init(&c, 1, RECEIVERS, 10000);
    for (uint32_t i = 0; i < RECEIVERS; i++) {
        const helio_address address = world_host(100 + i, 50000);
        CHECK_EQUAL(
            helio_receivers_discover(&source.stream->repairer.receivers, &address, world_now(&w)),
            i);
    }
}

static void end(void) {
    world_end_source(&source);
    world_fini(&w);
}

static helio_receiver_view *views(void) {
    uint32_t places;
    return helio_receivers_views(&source.stream->repairer.receivers, &places);
}

/* The model's receivers are the stream's, but for what the stream did to them. */
static void step(uint64_t naks, uint64_t again) {
    const uint32_t done = HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED;
    crowd_step(&c);
    c.interval.naks += naks;
    c.interval.repair_packets += naks;
    c.views[0].naks_again += again;
    for (uint32_t i = 0; i < RECEIVERS; i++) {
        helio_receiver_view *view = &views()[i];
        const uint32_t flags = view->flags & done;
        *view = c.views[i];
        view->flags = (view->flags & ~done) | flags;
    }
    helio_sim_run_until(w.sim, world_now(&w).now_ns + CROWD_STEP_NS);
    helio_tx_slow_decide(source.stream, &c.interval, views(), world_now(&w));
    for (uint32_t i = 0; i < RECEIVERS; i++) {
        c.views[i].flags = (c.views[i].flags & ~done) | (views()[i].flags & done);
        c.receivers[i].skips = c.views[i].flags & done;
    }
}

static void run(int64_t ns) {
    for (int64_t i = 0; i < ns / CROWD_STEP_NS; i++) {
        step(0, 0);
    }
}

static helio_tx_stream_stats *counts(void) {
    return source.stream->object.record;
}

static helio_tx_receiver_stats *peer(uint32_t place) {
    return helio_receivers_stats(&source.stream->repairer.receivers, place);
}

/* The n-th event of a kind, from 0; NULL: there are fewer. */
static const helio_segment_event *event(helio_event_id id, int n) {
    for (uint64_t i = 0; i < w.stats->header->events_written; i++) {
        if (w.stats->events[i].event == id && n-- == 0) {
            return &w.stats->events[i];
        }
    }
    return NULL;
}

static uint64_t events_of_this(void) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < w.stats->header->events_written; i++) {
        count += w.stats->events[i].event >= HELIO_EVENT_RECEIVER_SLOW &&
                 w.stats->events[i].event <= HELIO_EVENT_STORM_ENDED;
    }
    return count;
}

static uint64_t place_of(const helio_segment_event *e) {
    return e ? (uint64_t)(e - w.stats->events) : UINT64_MAX;
}

static void observed_it_is_counted_and_nothing_is_told_or_done(void) {
    const helio_tx_slow_config config = made(HELIO_SLOW_MODE_OBSERVE);
    begin(&config);
    run(HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&counts()->receivers_in_trouble), 0);
    c.receivers[SLOW].drain = 5000;
    run(3 * HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&counts()->slow_decisions_notify), 1);
    CHECK_EQUAL(helio_cell(&counts()->slow_decisions_suspend), 1);
    CHECK_EQUAL(helio_cell(&counts()->slow_actions_notify), 0);
    CHECK_EQUAL(helio_cell(&counts()->slow_actions_suspend), 0);
    CHECK_EQUAL(helio_cell(&counts()->receivers_in_trouble), 0); /* it would be suspended */
    CHECK_EQUAL(helio_cell(&counts()->receivers_isolated), 1);
    CHECK_EQUAL(helio_cell(&peer(SLOW)->state), HELIO_BEHAVIOUR_FALLING_BEHIND);
    CHECK_EQUAL(helio_cell(&peer(SLOW)->suspensions), 1);
    CHECK(helio_cell(&peer(SLOW)->slow_since) > 0);
    CHECK_EQUAL(helio_cell(&peer(0)->state), HELIO_BEHAVIOUR_OK);
    CHECK_EQUAL(helio_cell(&peer(0)->forecast), 0);
    CHECK_EQUAL(helio_cell(&peer(0)->slow_since), 0);
    CHECK_EQUAL(events_of_this(), 0);
    CHECK_EQUAL(views()[SLOW].flags & HELIO_VIEW_SUSPENDED, 0);
    end();
}

static void advised_it_is_told_and_nothing_is_done(void) {
    const helio_tx_slow_config config = made(HELIO_SLOW_MODE_ADVISE);
    begin(&config);
    run(HELIO_SECOND);
    c.receivers[SLOW].drain = 5000;
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(views()[SLOW].flags & HELIO_VIEW_SUSPENDED, 0);
    CHECK(helio_cell(&counts()->slow_actions_suspend) >= 1);
    const helio_segment_event *slow = event(HELIO_EVENT_RECEIVER_SLOW, 0);
    const helio_segment_event *advice = event(HELIO_EVENT_RECEIVER_ADVICE, 0);
    CHECK(slow && advice && place_of(slow) < place_of(advice));
    CHECK(strstr(advice->text, "would be suspended for 2 s"));
    CHECK_EQUAL(advice->arguments[0], 100 + SLOW);
    CHECK_EQUAL(advice->arguments[1], HELIO_ACTION_SUSPEND);
    CHECK(strstr(event(HELIO_EVENT_RECEIVER_ADVICE, 1)->text, "would be resumed"));
    CHECK(!event(HELIO_EVENT_RECEIVER_SUSPENDED, 0));
    CHECK(!event(HELIO_EVENT_RECEIVER_ACTION, 0));
    end();
}

static void enforced_the_events_tell_the_story_in_order(void) {
    const helio_tx_slow_config config = made(HELIO_SLOW_MODE_ENFORCE);
    begin(&config);
    run(HELIO_SECOND);
    c.receivers[SLOW].drain = 5000;
    run(1800 * MS);
    CHECK(views()[SLOW].flags & HELIO_VIEW_SUSPENDED);
    CHECK_EQUAL(helio_cell(&counts()->slow_actions_suspend), 1);
    c.receivers[SLOW].drain = 1e9;
    run(1200 * MS);
    CHECK_EQUAL(views()[SLOW].flags & HELIO_VIEW_SUSPENDED, 0);
    const helio_segment_event *slow = event(HELIO_EVENT_RECEIVER_SLOW, 0);
    const helio_segment_event *suspended = event(HELIO_EVENT_RECEIVER_SUSPENDED, 0);
    const helio_segment_event *back = event(HELIO_EVENT_RECEIVER_READMITTED, 0);
    CHECK(slow && suspended && back);
    CHECK(place_of(slow) < place_of(suspended) && place_of(suspended) < place_of(back));
    CHECK_EQUAL(slow->arguments[0], 100 + SLOW);
    CHECK(slow->arguments[2] >= slow->arguments[3]);
    CHECK_EQUAL(slow->slot, source.stream->repairer.receivers.entries[SLOW].object.slot);
    CHECK(strstr(slow->text, "receiver 10.0.0.102:50000 is slow"));
    CHECK(strstr(suspended->text, "is suspended for 2 s (buffer 100 % over 95 %") ||
          strstr(suspended->text, "is suspended for 2 s (lag "));
    CHECK_EQUAL(suspended->arguments[1], HELIO_ACTION_SUSPEND);
    CHECK_EQUAL(suspended->arguments[3], 2000);
    CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_ACTION, 1)->arguments[0], HELIO_ACTION_SUSPEND);
    CHECK(strstr(back->text, "is resumed after"));
    CHECK(strstr(back->text, "it is well again"));
    CHECK(!event(HELIO_EVENT_RECEIVER_SLOW, 1)); /* and of nobody else */
    /* Receivers were told: a warning, the suspension, its end. */
    CHECK(event(HELIO_EVENT_RECEIVER_ACTION, 2) && !event(HELIO_EVENT_RECEIVER_ACTION, 3));
    end();
}

static void who_was_suspended_before_is_expelled_and_readmitted(void) {
    const helio_tx_slow_config config = made(HELIO_SLOW_MODE_ENFORCE);
    begin(&config);
    run(HELIO_SECOND);
    c.receivers[SLOW].drain = 0;
    int64_t waited_ns = 0;
    for (; !(views()[SLOW].flags & HELIO_VIEW_EXPELLED) && waited_ns < 8 * HELIO_SECOND;
         waited_ns += CROWD_STEP_NS) {
        run(CROWD_STEP_NS);
    }
    CHECK(views()[SLOW].flags & HELIO_VIEW_EXPELLED);
    const helio_segment_event *expelled = event(HELIO_EVENT_RECEIVER_EXPELLED, 0);
    CHECK(expelled && expelled->arguments[3] == 3000);
    c.receivers[SLOW] = c.receivers[0];
    run(3100 * MS);
    CHECK_EQUAL(views()[SLOW].flags & HELIO_VIEW_EXPELLED, 0);
    CHECK_EQUAL(helio_cell(&counts()->slow_actions_readmit), 1);
    end();
}

static void a_loss_in_sight_is_told_of(void) {
    helio_tx_slow_config config = made(HELIO_SLOW_MODE_ADVISE);
    config.receivers.highest = HELIO_ACTION_NOTIFY;
    begin(&config);
    run(HELIO_SECOND);
    c.receivers[SLOW].drain = 4000;
    run(1500 * MS);
    const helio_segment_event *forecast = event(HELIO_EVENT_RECEIVER_FORECAST, 0);
    CHECK(forecast && strstr(forecast->text, "leave the history in"));
    CHECK(forecast->arguments[1] > 0 && forecast->arguments[1] < 3000);
    CHECK(helio_cell(&peer(SLOW)->forecast) > 0);
    CHECK_EQUAL(helio_cell(&counts()->slow_actions_forecast), 1);
    end();
}

static void waiting_sets_a_ceiling_only_where_it_is_enforced(void) {
    for (int mode = HELIO_SLOW_MODE_OBSERVE; mode <= HELIO_SLOW_MODE_ENFORCE; mode++) {
        helio_tx_slow_config config = made(mode);
        config.receivers.highest = HELIO_ACTION_PACE;
        config.receivers.waits = true;
        begin(&config);
        run(HELIO_SECOND);
        c.receivers[SLOW].drain = 6000;
        run(2 * HELIO_SECOND);
        const uint64_t ceiling = helio_tx_slow_ceiling(&source.stream->slow);
        CHECK_EQUAL(helio_cell(&counts()->slow_decisions_pace), 1);
        CHECK_EQUAL(ceiling > 0, mode == HELIO_SLOW_MODE_ENFORCE);
        CHECK_EQUAL(helio_cell(&counts()->slow_rate_limit), ceiling);
        CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_PACED, 0) != NULL, mode == HELIO_SLOW_MODE_ENFORCE);
        if (ceiling) {
            CHECK(ceiling < 6000 * CROWD_PACKET_BYTES);
        }
        end();
    }
}

static void many_in_trouble_are_told_of_as_the_networks(void) {
    helio_tx_slow_config config = made(HELIO_SLOW_MODE_ENFORCE);
    begin(&config);
    run(HELIO_SECOND);
    for (uint32_t i = 0; i < RECEIVERS; i++) {
        c.receivers[i].loss = 0.3;
    }
    run(3 * HELIO_SECOND);
    const helio_segment_event *spared = event(HELIO_EVENT_RECEIVER_SPARED, 0);
    CHECK(spared && strstr(spared->text, "of the receivers are in trouble"));
    CHECK_EQUAL(spared->arguments[0], 0);
    CHECK_EQUAL(events_of_this(), 1);
    CHECK_EQUAL(helio_cell(&counts()->receivers_in_trouble), RECEIVERS);
    CHECK_EQUAL(helio_cell(&counts()->slow_decisions_network), 1);
    end();
}

static void a_storm_is_told_of_and_braked(void) {
    for (int mode = HELIO_STORM_MODE_OBSERVE; mode <= HELIO_STORM_MODE_ENFORCE; mode++) {
        const helio_tx_slow_config config = made(mode);
        begin(&config);
        run(3 * HELIO_SECOND);
        for (int i = 0; i < 65; i++) {
            step(500, 450);
        }
        CHECK_EQUAL(helio_cell(&counts()->storms), 1);
        CHECK_EQUAL(helio_cell(&counts()->storm_active), 1);
        CHECK_EQUAL(helio_cell(&counts()->cutoffs), 1);
        CHECK_EQUAL(helio_cell(&counts()->cutoff_time), 200 * MS);
        const helio_segment_event *detected = event(HELIO_EVENT_STORM_DETECTED, 0);
        CHECK_EQUAL(detected != NULL, mode != HELIO_STORM_MODE_OBSERVE);
        const helio_segment_event *treated = event(HELIO_EVENT_RECEIVER_ACTION, 0);
        CHECK_EQUAL(treated != NULL, mode == HELIO_STORM_MODE_ENFORCE);
        if (detected) {
            CHECK(strstr(detected->text, mode == HELIO_STORM_MODE_ENFORCE
                                             ? "are cut off for 0.2 s"
                                             : "would be cut off for 0.2 s"));
            CHECK(detected->arguments[0] > 800000 && detected->arguments[0] <= 1000000);
        }
        run(3 * HELIO_SECOND);
        CHECK_EQUAL(helio_cell(&counts()->storm_active), 0);
        CHECK_EQUAL(event(HELIO_EVENT_STORM_ENDED, 0) != NULL, mode != HELIO_STORM_MODE_OBSERVE);
        end();
    }
}

static void without_a_dwell_time_there_is_nothing_of_it(void) {
    begin(&(helio_tx_slow_config){0});
    c.receivers[SLOW].drain = 0;
    run(HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&peer(SLOW)->state), HELIO_BEHAVIOUR_UNKNOWN);
    CHECK_EQUAL(helio_tx_slow_ceiling(&source.stream->slow), 0);
    end();
}

int main(void) {
    RUN(observed_it_is_counted_and_nothing_is_told_or_done);
    RUN(advised_it_is_told_and_nothing_is_done);
    RUN(enforced_the_events_tell_the_story_in_order);
    RUN(who_was_suspended_before_is_expelled_and_readmitted);
    RUN(a_loss_in_sight_is_told_of);
    RUN(waiting_sets_a_ceiling_only_where_it_is_enforced);
    RUN(many_in_trouble_are_told_of_as_the_networks);
    RUN(a_storm_is_told_of_and_braked);
    RUN(without_a_dwell_time_there_is_nothing_of_it);
    return check_result();
}
