/* Who is slow, what is done about it, and who is left alone: the engine over a model of
 * receivers. */
#include <time.h>

#include "check.h"
#include "crowd.h"
#include "policy/slow_receiver.h"

#define MS HELIO_MILLISECOND

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RUNS = 200 };
#else
enum { RUNS = 1000 };
#endif

static helio_slow_receivers_config made(helio_action highest) {
    return (helio_slow_receivers_config){
        .highest = highest,
        .enforces = true,
        .loss = 0.05,
        .lag = 0.75,
        .buffer = 0.95,
        .dwell_ns = 300 * MS,
        .lead_ns = HELIO_SECOND,
        .suspend_ns = 2 * HELIO_SECOND,
        .expel_after = 3,
        .expel_ns = 5 * HELIO_SECOND,
        .share = 0.1,
        .capacity = CROWD_MAX,
    };
}

/* What was decided in a run, by step and place; the last decision of each step. */
typedef struct record {
    uint32_t count[HELIO_ACTIONS_END];
    uint32_t of[CROWD_MAX][HELIO_ACTIONS_END];
    helio_slow_decision last[HELIO_ACTIONS_END];
    int64_t first_ns[HELIO_ACTIONS_END];
} record;

static crowd c;
static helio_slow_receivers engine;
static record r;

static void begin(helio_slow_receivers_config config, uint64_t seed, uint32_t count, double rate) {
    CHECK_EQUAL(helio_slow_receivers_init(&engine, &config), 0);
    crowd_init(&c, seed, count, rate);
    r = (record){0};
}

static void finish(void) {
    helio_slow_receivers_fini(&engine);
}

static uint32_t isolations(void) {
    return r.count[HELIO_ACTION_SHED] + r.count[HELIO_ACTION_SUSPEND_NAKS] +
           r.count[HELIO_ACTION_SUSPEND] + r.count[HELIO_ACTION_EXPEL];
}

/* Does in the model what was decided. */
static void carry_out(const helio_slow_decision *decision) {
    if (decision->index == HELIO_RECEIVER_NONE) {
        return;
    }
    helio_receiver_view *view = &c.views[decision->index];
    crowd_receiver *receiver = &c.receivers[decision->index];
    if (decision->action == HELIO_ACTION_SUSPEND || decision->action == HELIO_ACTION_SUSPEND_NAKS) {
        view->flags |= HELIO_VIEW_SUSPENDED;
        receiver->skips = decision->action == HELIO_ACTION_SUSPEND;
    } else if (decision->action == HELIO_ACTION_EXPEL) {
        view->flags = (view->flags & ~(uint32_t)HELIO_VIEW_SUSPENDED) | HELIO_VIEW_EXPELLED;
        receiver->is_silent = true;
    } else if (decision->action >= HELIO_ACTION_RECOVER &&
               decision->action <= HELIO_ACTION_READMIT) {
        view->flags &= ~(uint32_t)(HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED);
        receiver->skips = false;
        receiver->is_silent = receiver->is_silent && decision->action != HELIO_ACTION_READMIT;
    }
}

/* Steps for so long; `ceiling` is obeyed when the engine paces. */
static void run(int64_t ns) {
    const double rate = c.rate;
    for (int64_t end_ns = c.interval.now_ns + ns; c.interval.now_ns < end_ns;) {
        const double ceiling = (double)engine.ceiling / CROWD_PACKET_BYTES;
        c.rate = engine.ceiling && ceiling < rate ? ceiling : rate;
        crowd_step(&c);
        helio_slow_receivers_decide(&engine, &c.interval, c.views);
        for (uint32_t i = 0; i < engine.decisions_count; i++) {
            const helio_slow_decision *decision = &engine.decisions[i];
            r.last[decision->action] = *decision;
            if (r.count[decision->action]++ == 0) {
                r.first_ns[decision->action] = c.interval.now_ns;
            }
            if (decision->index != HELIO_RECEIVER_NONE) {
                r.of[decision->index][decision->action]++;
            }
            if (engine.config.enforces) {
                carry_out(decision);
            }
        }
    }
    c.rate = rate;
}

/* ---- the median ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void a_median_is_the_one_that_sorting_finds(void) {
    helio_random random;
    helio_random_init(&random, 7);
    for (int round = 0; round < 5000; round++) {
        double values[40], sorted[40];
        const uint32_t count = 1 + (uint32_t)helio_random_below(&random, 40);
        const uint64_t kinds = 1 + helio_random_below(&random, 50);
        for (uint32_t i = 0; i < count; i++) {
            sorted[i] = values[i] = (double)helio_random_below(&random, kinds);
        }
        qsort(sorted, count, sizeof *sorted, by_value);
        CHECK(helio_median(values, count) == sorted[(count - 1) / 2]);
    }
    CHECK(helio_median(NULL, 0) == 0);
}

/* ---- who is well is left alone ---- */

static void receivers_that_keep_up_are_left_alone(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 20, 20000);
    for (uint32_t i = 0; i < 20; i++) {
        c.receivers[i].loss = 0.01;
    }
    run(10 * HELIO_SECOND);
    for (int step = 0; step < HELIO_ACTIONS_END; step++) {
        CHECK_EQUAL(r.count[step], 0);
    }
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_EQUAL(engine.receivers[i].watch.class, HELIO_BEHAVIOUR_OK);
    }
    finish();
}

/* Loss of 0 to 10 % that all have alike, with bursts that hit all. */
static void a_network_that_loses_alike_is_nobodys_fault(void) {
    uint32_t wrong = 0, warned = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        helio_random random;
        helio_random_init(&random, seed);
        const uint32_t count = 1 + (uint32_t)helio_random_below(&random, 30);
        begin(made(HELIO_ACTION_EXPEL), seed, count,
              1000 + (double)helio_random_below(&random, 20000));
        const double loss = 0.1 * helio_random_unit(&random);
        for (int phase = 0; phase < 6; phase++) {
            const bool burst = phase % 2;
            for (uint32_t i = 0; i < count; i++) {
                c.receivers[i].loss = burst ? 0.5 : loss;
            }
            run(burst ? (int64_t)(10 + helio_random_below(&random, 300)) * MS : 800 * MS);
        }
        wrong += isolations() > 0;
        warned += count >= 3 ? r.count[HELIO_ACTION_NOTIFY] : 0;
        if (isolations() > 0) {
            fprintf(stderr, "seed %" PRIu64 ": %u receivers, loss %.3f\n", seed, count, loss);
        }
        finish();
    }
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(warned, 0);
}

static void a_short_burst_of_one_is_no_trouble(void) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        begin(made(HELIO_ACTION_EXPEL), seed, 10, 200 + 100 * (double)(seed % 100));
        run(500 * MS + (int64_t)(seed % 30) * CROWD_STEP_NS);
        c.receivers[3].loss = 1;
        run(90 * MS);
        c.receivers[3].loss = 0;
        run(3 * HELIO_SECOND);
        CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], 0);
        CHECK_EQUAL(isolations(), 0);
        finish();
    }
}

static void a_receiver_that_comes_late_and_catches_up_is_recovering(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 5, 10000);
    for (int i = 0; i < 200; i++) {
        crowd_step(&c);
    }
    c.receivers[4].position = (double)c.interval.trail + 100;
    c.receivers[4].drain = 13000;
    run(HELIO_SECOND);
    CHECK_EQUAL(engine.receivers[4].watch.class, HELIO_BEHAVIOUR_RECOVERING);
    CHECK(engine.receivers[4].watch.symptoms.forecast_ns == HELIO_NEVER);
    run(9 * HELIO_SECOND);
    CHECK_EQUAL(engine.receivers[4].watch.class, HELIO_BEHAVIOUR_OK);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY] + isolations(), 0);
    finish();
}

/* ---- who is slow is found, and nobody else ---- */

static void one_bad_among_fifty_is_acted_on_and_nobody_else(void) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        begin(made(HELIO_ACTION_SUSPEND), seed, 50, 20000);
        const uint32_t bad = (uint32_t)(seed * 7 % 50);
        for (uint32_t i = 0; i < 50; i++) {
            c.receivers[i].loss = 0.01;
            c.receivers[i].report_steps = 1 + (int)(seed % 10);
        }
        run(HELIO_SECOND);
        const int64_t bad_ns = c.interval.now_ns;
        if (seed % 2) {
            c.receivers[bad].loss = 0.2;
        } else {
            c.receivers[bad].drain = 12000;
        }
        run(4 * HELIO_SECOND);
        CHECK(r.of[bad][HELIO_ACTION_NOTIFY] > 0);
        CHECK(r.of[bad][HELIO_ACTION_SUSPEND] > 0);
        CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], r.of[bad][HELIO_ACTION_NOTIFY]);
        CHECK_EQUAL(isolations(), r.of[bad][HELIO_ACTION_SHED] +
                                      r.of[bad][HELIO_ACTION_SUSPEND_NAKS] +
                                      r.of[bad][HELIO_ACTION_SUSPEND]);
        CHECK(r.first_ns[HELIO_ACTION_NOTIFY] - bad_ns >= 300 * MS);
        CHECK(r.first_ns[HELIO_ACTION_SUSPEND] > r.first_ns[HELIO_ACTION_NOTIFY]);
        CHECK_EQUAL(r.count[HELIO_ACTION_NETWORK], 0);
        const helio_slow_decision *told = &r.last[HELIO_ACTION_NOTIFY];
        CHECK_EQUAL(told->receiver, 100 + bad);
        CHECK(told->value >= told->threshold && told->lasted_ns >= 300 * MS);
        finish();
    }
}

static void a_stalled_receiver_is_called_so_and_a_silent_one_stopped(void) {
    begin(made(HELIO_ACTION_NOTIFY), 1, 5, 4000);
    run(HELIO_SECOND);
    c.receivers[1].drain = 0;
    c.receivers[2].drain = 2500;
    c.receivers[3].is_silent = true;
    run(4 * HELIO_SECOND);
    CHECK_EQUAL(engine.receivers[0].watch.class, HELIO_BEHAVIOUR_OK);
    CHECK_EQUAL(engine.receivers[1].watch.class, HELIO_BEHAVIOUR_STALLED);
    CHECK_EQUAL(engine.receivers[2].watch.class, HELIO_BEHAVIOUR_FALLING_BEHIND);
    CHECK_EQUAL(engine.receivers[3].watch.class, HELIO_BEHAVIOUR_STOPPED);
    CHECK_EQUAL(r.of[3][HELIO_ACTION_NOTIFY], 1);
    c.receivers[1].drain = 9000;
    run(1 * HELIO_SECOND);
    CHECK_EQUAL(engine.receivers[1].watch.class, HELIO_BEHAVIOUR_RECOVERING);
    c.views[0].flags |= HELIO_VIEW_LEFT;
    run(20 * MS);
    CHECK_EQUAL(engine.receivers[0].watch.class, HELIO_BEHAVIOUR_STOPPED);
    finish();
}

static void a_receiver_that_stops_its_source_is_stalled(void) {
    begin(made(HELIO_ACTION_SUSPEND), 1, 5, 10000);
    run(HELIO_SECOND);
    c.receivers[1].drain = 0;
    run(1300 * MS);
    c.rate = 0; /* the history is full of what is not acknowledged, and messages wait */
    c.interval.queue_bytes = 1 << 20;
    run(4 * HELIO_SECOND);
    CHECK_EQUAL(engine.receivers[1].watch.class, HELIO_BEHAVIOUR_STALLED);
    CHECK_EQUAL(engine.receivers[2].watch.class, HELIO_BEHAVIOUR_OK);
    CHECK(r.of[1][HELIO_ACTION_SUSPEND] >= 1);
    CHECK_EQUAL(isolations(), r.of[1][HELIO_ACTION_SUSPEND]);
    finish();
}

static void silence_is_told_of_and_never_punished(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 10, 10000);
    run(HELIO_SECOND);
    c.receivers[3].is_silent = true;
    run(20 * HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], 1);
    CHECK_EQUAL(r.last[HELIO_ACTION_NOTIFY].symptom, HELIO_SYMPTOM_SILENCE);
    CHECK_EQUAL(isolations(), 0);
    c.receivers[3].is_silent = false;
    run(3 * HELIO_SECOND);
    CHECK_EQUAL(r.of[3][HELIO_ACTION_RECOVER], 1);
    finish();
}

static void a_receiver_that_sends_no_reports_is_known_by_its_requests(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_SUSPEND);
    config.naks = 1000;
    begin(config, 1, 6, 20000);
    for (uint32_t i = 0; i < 6; i++) {
        c.views[i].flags &= ~(uint32_t)HELIO_VIEW_REPORTS;
        c.views[i].position = 0;
        c.receivers[i].loss = 0.005;
    }
    run(HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], 0);
    c.receivers[2].loss = 0.15;
    run(1500 * MS);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_NOTIFY], 1);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_SHED], 1);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_SUSPEND_NAKS], 1);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_SUSPEND], 1);
    CHECK_EQUAL(r.last[HELIO_ACTION_NOTIFY].symptom, HELIO_SYMPTOM_NAKS);
    CHECK_EQUAL(isolations(), 3);
    finish();
}

/* ---- what is done, and when it is over ---- */

static void trouble(crowd *c, uint32_t who) {
    c->receivers[who].drain = 3000;
}

static void who_is_suspended_is_readmitted_as_soon_as_it_is_well(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_SUSPEND);
    config.suspend_ns = 30 * HELIO_SECOND;
    begin(config, 1, 6, 10000);
    run(HELIO_SECOND);
    trouble(&c, 2);
    run(4 * HELIO_SECOND);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_NOTIFY], 1);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_SUSPEND], 1);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_RESUME], 0);
    CHECK_EQUAL(r.last[HELIO_ACTION_SUSPEND].duration_ns, 30 * HELIO_SECOND);
    c.receivers[2].drain = 1e9;
    const int64_t well_ns = c.interval.now_ns;
    run(2 * HELIO_SECOND);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_RESUME], 1);
    CHECK_BYTES(r.last[HELIO_ACTION_RESUME].why, "it is well again", 16);
    CHECK(r.first_ns[HELIO_ACTION_RESUME] - well_ns >= 200 * MS); /* three windows */
    CHECK(r.first_ns[HELIO_ACTION_NOTIFY] < r.first_ns[HELIO_ACTION_SUSPEND]);
    CHECK_EQUAL(isolations(), 1);
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], 1);
    finish();
}

static void a_suspension_ends_when_its_time_is_over(void) {
    begin(made(HELIO_ACTION_SUSPEND), 1, 6, 10000);
    for (uint32_t i = 0; i < 6; i++) {
        c.receivers[i].loss = 0.002;
    }
    run(HELIO_SECOND);
    c.receivers[4].loss = 0.3;
    run(3200 * MS);
    CHECK_EQUAL(r.of[4][HELIO_ACTION_SUSPEND], 1);
    CHECK_EQUAL(r.of[4][HELIO_ACTION_SHED], 1); /* it asks, so milder things were tried first */
    CHECK_EQUAL(r.of[4][HELIO_ACTION_SUSPEND_NAKS], 1);
    CHECK_EQUAL(r.of[4][HELIO_ACTION_RESUME], 0);
    run(500 * MS);
    CHECK_EQUAL(r.of[4][HELIO_ACTION_RESUME], 1);
    CHECK_EQUAL(r.first_ns[HELIO_ACTION_RESUME] - r.first_ns[HELIO_ACTION_SUSPEND],
                2 * HELIO_SECOND);
    finish();
}

static void one_that_is_suspended_again_and_again_is_expelled_and_comes_back(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_EXPEL);
    begin(config, 1, 6, 10000);
    run(HELIO_SECOND);
    trouble(&c, 2);
    run(20 * HELIO_SECOND);
    const int64_t after_ns = r.first_ns[HELIO_ACTION_EXPEL] - r.first_ns[HELIO_ACTION_SUSPEND];
    CHECK(after_ns > 6 * HELIO_SECOND && after_ns < 12 * HELIO_SECOND); /* three suspensions */
    CHECK_EQUAL(r.of[2][HELIO_ACTION_EXPEL], 1);
    CHECK_EQUAL(r.last[HELIO_ACTION_EXPEL].duration_ns, 5 * HELIO_SECOND);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_READMIT], 1);
    CHECK(r.of[2][HELIO_ACTION_SUSPEND] > 3); /* it had to be suspended anew */
    CHECK_EQUAL(isolations(), r.of[2][HELIO_ACTION_SUSPEND] + 1);
    finish();
}

static void suspensions_of_more_than_an_hour_ago_do_not_expel(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_EXPEL);
    config.suspend_ns = 1300 * HELIO_SECOND; /* three of them never lie within an hour */
    begin(config, 1, 3, 10000);
    run(HELIO_SECOND);
    trouble(&c, 2);
    run(6000 * HELIO_SECOND);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_SUSPEND], 5);
    CHECK_EQUAL(r.count[HELIO_ACTION_EXPEL], 0);
    finish();
}

static void nobody_is_expelled_on_what_others_could_have_said(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 6, 10000);
    for (uint32_t i = 0; i < 6; i++) {
        c.views[i].flags &= ~(uint32_t)HELIO_VIEW_PINNED;
    }
    run(HELIO_SECOND);
    trouble(&c, 2);
    run(25 * HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_ACTION_EXPEL], 0);
    CHECK(r.of[2][HELIO_ACTION_SUSPEND] > 3);
    CHECK(r.of[2][HELIO_ACTION_SPARE] >= 1); /* which says that a person can */
    finish();
}

static void no_more_than_the_share_is_isolated_at_once(void) {
    for (uint32_t count = 2; count <= 40; count += 19) {
        begin(made(HELIO_ACTION_EXPEL), 1, count, 10000);
        run(HELIO_SECOND);
        const uint32_t most = count < 20 ? 1 : count / 10;
        for (uint32_t bad = 0; bad < count && bad < 2 * most; bad++) { /* one by one */
            c.receivers[bad].drain = 0;
            for (int i = 0; i < 15; i++) {
                run(100 * MS);
                uint32_t isolated = 0;
                for (uint32_t j = 0; j < count; j++) {
                    isolated +=
                        (c.views[j].flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED)) != 0;
                }
                CHECK(isolated <= most);
            }
        }
        CHECK(r.count[HELIO_ACTION_SUSPEND] >= most);
        CHECK(r.count[HELIO_ACTION_SPARE] > 0);
        finish();
    }
}

static void who_is_alone_is_warned_and_no_more(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 1, 10000);
    run(HELIO_SECOND);
    c.receivers[0].drain = 0;
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], 1);
    CHECK_EQUAL(r.count[HELIO_ACTION_SPARE], 1);
    CHECK_EQUAL(isolations(), 0);
    finish();
}

static void many_that_worsen_together_are_told_of_once_and_spared(void) {
    begin(made(HELIO_ACTION_SUSPEND), 1, 30, 10000);
    run(HELIO_SECOND);
    for (uint32_t i = 0; i < 12; i++) { /* behind one switch */
        c.receivers[i].loss = 0.2;
    }
    run(1500 * MS);
    CHECK_EQUAL(r.count[HELIO_ACTION_NETWORK], 1);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY] + isolations(), 0);
    for (uint32_t i = 0; i < 12; i++) {
        c.receivers[i].loss = 0;
    }
    run(5 * HELIO_SECOND);
    CHECK(!engine.is_troubled);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY] + isolations(), 0);
    c.receivers[5].loss = 0.2; /* and then one of them alone */
    run(2 * HELIO_SECOND);
    CHECK_EQUAL(r.of[5][HELIO_ACTION_SUSPEND], 1);
    finish();
}

static void one_that_stalls_in_a_bad_network_is_found_all_the_same(void) {
    begin(made(HELIO_ACTION_SUSPEND), 1, 10, 10000);
    for (uint32_t i = 0; i < 10; i++) {
        c.receivers[i].loss = 0.2;
    }
    run(2 * HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_ACTION_NETWORK], 1);
    c.receivers[3].drain = 0;
    run(3 * HELIO_SECOND);
    CHECK_EQUAL(r.of[3][HELIO_ACTION_NOTIFY], 1);
    CHECK(r.of[3][HELIO_ACTION_SUSPEND] >= 1);
    CHECK_EQUAL(r.count[HELIO_ACTION_NOTIFY], 1);
    CHECK_EQUAL(r.count[HELIO_ACTION_SUSPEND], r.of[3][HELIO_ACTION_SUSPEND]);
    finish();
}

static void what_people_did_by_hand_is_left_alone(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 6, 10000);
    run(HELIO_SECOND);
    c.views[3].flags |= HELIO_VIEW_SUSPENDED;
    c.receivers[3].loss = 0.5;
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(r.of[3][HELIO_ACTION_RESUME] + isolations(), 0);
    trouble(&c, 1);
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(isolations(), 0); /* the one that may be is isolated already */
    c.views[3].flags &= ~(uint32_t)HELIO_VIEW_SUSPENDED;
    c.receivers[3].loss = 0;
    run(HELIO_SECOND);
    CHECK_EQUAL(engine.receivers[1].isolation, HELIO_ISOLATION_SUSPENDED);
    c.views[1].flags &= ~(uint32_t)HELIO_VIEW_SUSPENDED; /* let go by hand */
    c.receivers[1] = c.receivers[0];
    const uint32_t resumed = r.of[1][HELIO_ACTION_RESUME];
    run(20 * MS);
    CHECK_EQUAL(engine.receivers[1].isolation, HELIO_ISOLATION_NONE);
    CHECK_EQUAL(r.of[1][HELIO_ACTION_RESUME], resumed);
    finish();
}

static void who_only_watches_decides_as_if_it_acted(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_SUSPEND);
    config.enforces = false;
    begin(config, 1, 6, 10000);
    run(HELIO_SECOND);
    trouble(&c, 2);
    run(10 * HELIO_SECOND);
    CHECK(r.of[2][HELIO_ACTION_SUSPEND] >= 2);
    CHECK(r.of[2][HELIO_ACTION_RESUME] >= 2);
    CHECK_EQUAL(c.views[2].flags & HELIO_VIEW_SUSPENDED, 0);
    finish();
}

static void a_receiver_that_starts_anew_begins_with_a_clean_slate(void) {
    begin(made(HELIO_ACTION_SUSPEND), 1, 6, 10000);
    run(HELIO_SECOND);
    trouble(&c, 2);
    run(2000 * MS);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_NOTIFY], 1);
    c.views[2].flags &= ~(uint32_t)HELIO_VIEW_SUSPENDED;
    c.views[2].incarnation++;
    c.views[2].received = c.views[2].lost = 0;
    c.receivers[2] = c.receivers[0];
    run(10 * MS);
    CHECK_EQUAL(engine.receivers[2].rung, HELIO_ACTION_NONE);
    CHECK_EQUAL(engine.receivers[2].watch.class, HELIO_BEHAVIOUR_UNKNOWN);
    c.views[2].flags = 0; /* it is forgotten */
    run(10 * MS);
    CHECK(!engine.receivers[2].watch.is_begun);
    finish();
}

/* ---- to wait or to exclude ---- */

static void coordinated_receivers_are_all_slowed_and_none_is_isolated(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_PACE);
    config.waits = true;
    begin(config, 1, 6, 10000);
    run(HELIO_SECOND);
    c.receivers[2].drain = 7000;
    run(30 * HELIO_SECOND);
    CHECK_EQUAL(r.of[2][HELIO_ACTION_NOTIFY], r.count[HELIO_ACTION_NOTIFY]);
    CHECK(r.of[2][HELIO_ACTION_PACE] >= 1);
    CHECK_EQUAL(isolations(), 0);
    CHECK(r.last[HELIO_ACTION_PACE].rate < 7000 * CROWD_PACKET_BYTES);
    CHECK(r.last[HELIO_ACTION_PACE].rate > 4000 * CROWD_PACKET_BYTES);
    CHECK_EQUAL(c.receivers[2].unrecovered, 0);
    c.receivers[2].drain = 1e9;
    run(10 * HELIO_SECOND);
    CHECK_EQUAL(engine.ceiling, 0); /* full speed again */
    finish();
}

static void who_waiting_does_not_help_is_isolated_after_all(void) {
    helio_slow_receivers_config config = made(HELIO_ACTION_SUSPEND);
    config.waits = true;
    begin(config, 1, 6, 10000);
    run(HELIO_SECOND);
    c.receivers[2].drain = 0;
    run(8 * HELIO_SECOND);
    CHECK(r.of[2][HELIO_ACTION_PACE] >= 1);
    CHECK(r.of[2][HELIO_ACTION_SUSPEND] >= 1);
    CHECK(r.first_ns[HELIO_ACTION_SUSPEND] - r.first_ns[HELIO_ACTION_PACE] >= 1200 * MS);
    finish();
}

static void uncoordinated_receivers_never_slow_the_others(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, 6, 10000);
    run(HELIO_SECOND);
    trouble(&c, 2);
    for (int i = 0; i < 100; i++) {
        run(100 * MS);
        CHECK_EQUAL(engine.ceiling, 0);
    }
    CHECK_EQUAL(r.count[HELIO_ACTION_PACE], 0);
    CHECK(r.of[2][HELIO_ACTION_SUSPEND] > 0);
    finish();
}

/* ---- a loss in sight ---- */

/* The drain of one falls, or the source speeds up, until something is lost for good. */
static void a_loss_is_told_of_its_lead_ahead(void) {
    double earliest = 0, latest = 1e9;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        helio_random random;
        helio_random_init(&random, seed);
        const double rate = 1500 + 2500 * helio_random_unit(&random);
        begin(made(HELIO_ACTION_NOTIFY), seed, 4, rate);
        for (uint32_t i = 0; i < 4; i++) {
            c.receivers[i].drain = 1.2 * rate;
            c.receivers[i].report_steps = 1 + (int)(seed % 8);
            c.receivers[i].loss = seed % 3 ? 0 : 0.01;
        }
        run(2 * HELIO_SECOND);
        const double ramp = (1 + 6 * helio_random_unit(&random)) * 100; /* steps */
        const double end = seed % 4 ? 0.6 * helio_random_unit(&random) : 0.85;
        for (int i = 0; i < 20000 && c.receivers[1].lost_ns == 0; i++) {
            const double part = i < ramp ? i / ramp : 1;
            if (seed % 2) {
                c.receivers[1].drain = rate * (1.2 * (1 - part) + end * part);
            } else {
                c.rate = rate * (1 + (1.2 / (end > 0.4 ? end : 0.4) - 1) * part);
            }
            for (uint32_t j = 0; j < 4; j++) {
                if (j != 1) {
                    c.receivers[j].drain = 1.2 * c.rate;
                }
            }
            run(CROWD_STEP_NS);
        }
        CHECK(c.receivers[1].lost_ns != 0);
        CHECK_EQUAL(r.of[1][HELIO_ACTION_FORECAST], 1);
        CHECK_EQUAL(r.count[HELIO_ACTION_FORECAST], 1);
        const double lead =
            (double)(c.receivers[1].lost_ns - r.first_ns[HELIO_ACTION_FORECAST]) / HELIO_SECOND;
        if (lead < 1 || lead > 5) {
            fprintf(stderr, "seed %" PRIu64 ": told %.2f s ahead\n", seed, lead);
        }
        earliest = lead > earliest ? lead : earliest;
        latest = lead < latest ? lead : latest;
        finish();
    }
    printf("      told %.2f to %.2f s ahead of the loss\n", latest, earliest);
    CHECK(latest >= 1);
    CHECK(earliest <= 5);
}

static void no_loss_is_told_of_that_does_not_come(void) {
    uint32_t wrong = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        helio_random random;
        helio_random_init(&random, seed);
        begin(made(HELIO_ACTION_NOTIFY), seed, 4, 4000);
        for (uint32_t i = 0; i < 4; i++) {
            c.receivers[i].loss = 0.05 * helio_random_unit(&random);
        }
        run(HELIO_SECOND);
        for (int dip = 0; dip < 5;
             dip++) { /* pauses of at most half a second, then it catches up */
            c.receivers[1].drain = helio_random_unit(&random) * 2000;
            run((int64_t)helio_random_below(&random, 500) * MS);
            c.receivers[1].drain = 8000;
            run(2 * HELIO_SECOND);
        }
        wrong += r.count[HELIO_ACTION_FORECAST];
        CHECK_EQUAL(c.receivers[1].lost_ns, 0);
        finish();
    }
    CHECK_EQUAL(wrong, 0);
}

/* ---- whatever comes ---- */

/* Random networks and receivers that change at random: rules that always hold, and the same inputs
 * give the same decisions. */
static void the_rules_hold_whatever_comes(void) {
    for (uint64_t seed = 1; seed <= RUNS / 5; seed++) {
        helio_random random;
        helio_random_init(&random, seed);
        helio_slow_receivers_config config =
            made(HELIO_ACTION_NOTIFY + (helio_action)helio_random_below(&random, 6));
        config.waits = config.highest >= HELIO_ACTION_PACE && helio_random_below(&random, 2);
        config.naks = helio_random_below(&random, 2) ? 500 : 0;
        config.dwell_ns = (int64_t)(30 + helio_random_below(&random, 600)) * MS;
        config.suspend_ns = (int64_t)helio_random_below(&random, 3000) * MS;
        config.expel_ns = HELIO_SECOND;
        helio_slow_receivers again;
        CHECK_EQUAL(helio_slow_receivers_init(&again, &config), 0);
        const uint32_t count = 1 + (uint32_t)helio_random_below(&random, 30);
        begin(config, seed, count, 1000 + (double)helio_random_below(&random, 30000));
        for (int step = 0; step < 2000; step++) {
            if (helio_random_below(&random, 20) == 0) {
                crowd_receiver *receiver = &c.receivers[helio_random_below(&random, count)];
                receiver->loss = helio_random_below(&random, 3) ? 0 : helio_random_unit(&random);
                receiver->drain = helio_random_below(&random, 3) ? 1e9 : 3000;
                receiver->is_silent = helio_random_below(&random, 10) == 0;
                receiver->report_steps = (int)helio_random_below(&random, 30);
            }
            if (helio_random_below(&random, 200) == 0) {
                helio_receiver_view *view = &c.views[helio_random_below(&random, count)];
                view->flags ^= 1u << helio_random_below(&random, 8);
                view->incarnation += helio_random_below(&random, 2);
                view->receiver += helio_random_below(&random, 2) << 32;
            }
            crowd_step(&c);
            helio_slow_receivers_decide(&engine, &c.interval, c.views);
            helio_slow_receivers_decide(&again, &c.interval, c.views);
            CHECK_EQUAL(engine.decisions_count, again.decisions_count);
            CHECK_BYTES(engine.decisions, again.decisions,
                        engine.decisions_count * sizeof *engine.decisions);
            for (uint32_t i = 0; i < engine.decisions_count; i++) {
                const helio_slow_decision *decision = &engine.decisions[i];
                if (decision->action <= HELIO_ACTION_EXPEL) {
                    CHECK(decision->action <= config.highest);
                    CHECK(decision->action != HELIO_ACTION_PACE || config.waits);
                    CHECK(decision->action != HELIO_ACTION_EXPEL ||
                          (c.views[decision->index].flags & HELIO_VIEW_PINNED));
                    CHECK(decision->lasted_ns >= config.dwell_ns);
                    CHECK(decision->symptom != HELIO_SYMPTOM_SILENCE ||
                          decision->action == HELIO_ACTION_NOTIFY);
                    CHECK(count >= 2 || decision->action <= HELIO_ACTION_PACE);
                }
                carry_out(decision);
            }
        }
        finish();
        helio_slow_receivers_fini(&again);
    }
}

static void what_it_costs_is_printed(void) {
    begin(made(HELIO_ACTION_EXPEL), 1, CROWD_MAX, 20000);
    for (uint32_t i = 0; i < CROWD_MAX; i++) {
        c.receivers[i].loss = i % 4 ? 0.01 : 0.2;
    }
    int64_t spent_ns = 0;
    for (int i = 0; i < 2000; i++) {
        crowd_step(&c);
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        helio_slow_receivers_decide(&engine, &c.interval, c.views);
        clock_gettime(CLOCK_MONOTONIC, &after);
        spent_ns += (after.tv_sec - before.tv_sec) * HELIO_SECOND + after.tv_nsec - before.tv_nsec;
    }
    printf("      %.0f ns per receiver and interval\n", (double)spent_ns / 2000 / CROWD_MAX);
    CHECK(spent_ns > 0);
    finish();
}

int main(void) {
    RUN(a_median_is_the_one_that_sorting_finds);
    RUN(receivers_that_keep_up_are_left_alone);
    RUN(a_network_that_loses_alike_is_nobodys_fault);
    RUN(a_short_burst_of_one_is_no_trouble);
    RUN(a_receiver_that_comes_late_and_catches_up_is_recovering);
    RUN(one_bad_among_fifty_is_acted_on_and_nobody_else);
    RUN(a_stalled_receiver_is_called_so_and_a_silent_one_stopped);
    RUN(a_receiver_that_stops_its_source_is_stalled);
    RUN(silence_is_told_of_and_never_punished);
    RUN(a_receiver_that_sends_no_reports_is_known_by_its_requests);
    RUN(who_is_suspended_is_readmitted_as_soon_as_it_is_well);
    RUN(a_suspension_ends_when_its_time_is_over);
    RUN(one_that_is_suspended_again_and_again_is_expelled_and_comes_back);
    RUN(suspensions_of_more_than_an_hour_ago_do_not_expel);
    RUN(nobody_is_expelled_on_what_others_could_have_said);
    RUN(no_more_than_the_share_is_isolated_at_once);
    RUN(who_is_alone_is_warned_and_no_more);
    RUN(many_that_worsen_together_are_told_of_once_and_spared);
    RUN(one_that_stalls_in_a_bad_network_is_found_all_the_same);
    RUN(what_people_did_by_hand_is_left_alone);
    RUN(who_only_watches_decides_as_if_it_acted);
    RUN(a_receiver_that_starts_anew_begins_with_a_clean_slate);
    RUN(coordinated_receivers_are_all_slowed_and_none_is_isolated);
    RUN(who_waiting_does_not_help_is_isolated_after_all);
    RUN(uncoordinated_receivers_never_slow_the_others);
    RUN(a_loss_is_told_of_its_lead_ahead);
    RUN(no_loss_is_told_of_that_does_not_come);
    RUN(the_rules_hold_whatever_comes);
    RUN(what_it_costs_is_printed);
    return check_result();
}
