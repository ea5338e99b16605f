/* Who is slow, what is done about it, and who is left alone: the engine over a model of receivers. */
#include "check.h"
#include "crowd.h"
#include "policy/consumer.h"

#define MS HELIO_MILLISECOND

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RUNS = 200 };
#else
enum { RUNS = 1000 };
#endif

static helio_consumers_config made(helio_slow_step highest) {
    return (helio_consumers_config){
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
    uint32_t count[HELIO_SLOW_STEPS];
    uint32_t of[CROWD_MAX][HELIO_SLOW_STEPS];
    helio_slow_decision last[HELIO_SLOW_STEPS];
    int64_t first_ns[HELIO_SLOW_STEPS];
} record;

static uint32_t isolations(const record *r) {
    return r->count[HELIO_SLOW_SHED] + r->count[HELIO_SLOW_SUSPEND_NAKS] +
           r->count[HELIO_SLOW_SUSPEND] + r->count[HELIO_SLOW_EXPEL];
}

/* Does in the model what was decided. */
static void carry_out(crowd *c, const helio_slow_decision *decision) {
    if (decision->place == HELIO_SLOW_NO_PLACE)
        return;
    helio_receiver_view *view = &c->views[decision->place];
    crowd_receiver *receiver = &c->receivers[decision->place];
    if (decision->step == HELIO_SLOW_SUSPEND || decision->step == HELIO_SLOW_SUSPEND_NAKS) {
        view->flags |= HELIO_VIEW_SUSPENDED;
        receiver->skips = decision->step == HELIO_SLOW_SUSPEND;
    } else if (decision->step == HELIO_SLOW_EXPEL) {
        view->flags = (view->flags & ~(uint32_t)HELIO_VIEW_SUSPENDED) | HELIO_VIEW_EXPELLED;
        receiver->is_silent = true;
    } else if (decision->step >= HELIO_SLOW_RECOVER && decision->step <= HELIO_SLOW_READMIT) {
        view->flags &= ~(uint32_t)(HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED);
        receiver->skips = false;
        receiver->is_silent = receiver->is_silent && decision->step != HELIO_SLOW_READMIT;
    }
}

/* Steps for so long; `ceiling` is obeyed when the engine paces. */
static void run(crowd *c, helio_consumers *engine, record *r, int64_t ns) {
    const double rate = c->rate;
    for (int64_t end_ns = c->interval.now_ns + ns; c->interval.now_ns < end_ns;) {
        const double ceiling = (double)engine->ceiling / CROWD_PACKET_BYTES;
        c->rate = engine->ceiling && ceiling < rate ? ceiling : rate;
        crowd_step(c);
        helio_consumers_decide(engine, &c->interval, c->views);
        for (uint32_t i = 0; i < engine->decisions_count; i++) {
            const helio_slow_decision *decision = &engine->decisions[i];
            r->last[decision->step] = *decision;
            if (r->count[decision->step]++ == 0)
                r->first_ns[decision->step] = c->interval.now_ns;
            if (decision->place != HELIO_SLOW_NO_PLACE)
                r->of[decision->place][decision->step]++;
            if (engine->config.enforces)
                carry_out(c, decision);
        }
    }
    c->rate = rate;
}

static helio_consumers begin(const helio_consumers_config *config) {
    helio_consumers engine;
    CHECK_EQUAL(helio_consumers_init(&engine, config), 0);
    return engine;
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
        for (uint32_t i = 0; i < count; i++)
            sorted[i] = values[i] = (double)helio_random_below(&random, kinds);
        qsort(sorted, count, sizeof *sorted, by_value);
        CHECK(helio_median(values, count) == sorted[(count - 1) / 2]);
    }
    CHECK(helio_median(NULL, 0) == 0);
}

/* ---- who is well is left alone ---- */

static void receivers_that_keep_up_are_left_alone(void) {
    const helio_consumers_config config = made(HELIO_SLOW_EXPEL);
    helio_consumers engine = begin(&config);
    crowd c;
    record r = {0};
    crowd_init(&c, 1, 20, 20000);
    for (uint32_t i = 0; i < 20; i++)
        c.receivers[i].loss = 0.01;
    run(&c, &engine, &r, 10 * HELIO_SECOND);
    for (int step = 0; step < HELIO_SLOW_STEPS; step++)
        CHECK_EQUAL(r.count[step], 0);
    for (uint32_t i = 0; i < 20; i++)
        CHECK_EQUAL(engine.consumers[i].watch.class, HELIO_CONSUMER_OK);
    helio_consumers_fini(&engine);
}

/* Loss of 0 to 10 % that all have alike, with bursts that hit all. */
static void a_network_that_loses_alike_is_nobodys_fault(void) {
    const helio_consumers_config config = made(HELIO_SLOW_EXPEL);
    uint32_t wrong = 0, warned = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
        helio_consumers engine = begin(&config);
        crowd c;
        record r = {0};
        helio_random random;
        helio_random_init(&random, seed);
        const uint32_t count = 1 + (uint32_t)helio_random_below(&random, 30);
        crowd_init(&c, seed, count, 1000 + (double)helio_random_below(&random, 20000));
        const double loss = 0.1 * helio_random_unit(&random);
        for (int phase = 0; phase < 6; phase++) {
            const bool burst = phase % 2;
            for (uint32_t i = 0; i < count; i++)
                c.receivers[i].loss = burst ? 0.5 : loss;
            run(&c, &engine, &r,
                burst ? (int64_t)(10 + helio_random_below(&random, 300)) * MS : 800 * MS);
        }
        wrong += isolations(&r) > 0;
        warned += count >= 3 ? r.count[HELIO_SLOW_NOTIFY] : 0;
        if (isolations(&r) > 0)
            fprintf(stderr, "seed %" PRIu64 ": %u receivers, loss %.3f\n", seed, count, loss);
        helio_consumers_fini(&engine);
    }
    CHECK_EQUAL(wrong, 0);
    CHECK_EQUAL(warned, 0);
}

static void a_short_burst_of_one_is_no_trouble(void) {
    const helio_consumers_config config = made(HELIO_SLOW_EXPEL);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        helio_consumers engine = begin(&config);
        crowd c;
        record r = {0};
        crowd_init(&c, seed, 10, 200 + 100 * (double)(seed % 100));
        run(&c, &engine, &r, 500 * MS + (int64_t)(seed % 30) * CROWD_STEP_NS);
        c.receivers[3].loss = 1;
        run(&c, &engine, &r, 90 * MS);
        c.receivers[3].loss = 0;
        run(&c, &engine, &r, 3 * HELIO_SECOND);
        CHECK_EQUAL(r.count[HELIO_SLOW_NOTIFY], 0);
        CHECK_EQUAL(isolations(&r), 0);
        helio_consumers_fini(&engine);
    }
}

static void a_receiver_that_comes_late_and_catches_up_is_recovering(void) {
    const helio_consumers_config config = made(HELIO_SLOW_EXPEL);
    helio_consumers engine = begin(&config);
    crowd c;
    record r = {0};
    crowd_init(&c, 1, 5, 10000);
    for (int i = 0; i < 200; i++)
        crowd_step(&c);
    c.receivers[4].position = (double)c.interval.trail + 100;
    c.receivers[4].drain = 13000;
    run(&c, &engine, &r, HELIO_SECOND);
    CHECK_EQUAL(engine.consumers[4].watch.class, HELIO_CONSUMER_RECOVERING);
    CHECK(engine.consumers[4].watch.symptoms.forecast_ns == HELIO_NEVER);
    run(&c, &engine, &r, 9 * HELIO_SECOND);
    CHECK_EQUAL(engine.consumers[4].watch.class, HELIO_CONSUMER_OK);
    CHECK_EQUAL(r.count[HELIO_SLOW_NOTIFY] + isolations(&r), 0);
    helio_consumers_fini(&engine);
}

/* ---- who is slow is found, and nobody else ---- */

static void one_bad_among_fifty_is_acted_on_and_nobody_else(void) {
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const helio_consumers_config config = made(HELIO_SLOW_SUSPEND);
        helio_consumers engine = begin(&config);
        crowd c;
        record r = {0};
        crowd_init(&c, seed, 50, 20000);
        const uint32_t bad = (uint32_t)(seed * 7 % 50);
        for (uint32_t i = 0; i < 50; i++) {
            c.receivers[i].loss = 0.01;
            c.receivers[i].report_steps = 1 + (int)(seed % 10);
        }
        run(&c, &engine, &r, HELIO_SECOND);
        const int64_t bad_ns = c.interval.now_ns;
        if (seed % 2)
            c.receivers[bad].loss = 0.2;
        else
            c.receivers[bad].drain = 12000;
        run(&c, &engine, &r, 4 * HELIO_SECOND);
        CHECK(r.of[bad][HELIO_SLOW_NOTIFY] > 0);
        CHECK(r.of[bad][HELIO_SLOW_SUSPEND] > 0);
        CHECK_EQUAL(r.count[HELIO_SLOW_NOTIFY], r.of[bad][HELIO_SLOW_NOTIFY]);
        CHECK_EQUAL(isolations(&r), r.of[bad][HELIO_SLOW_SHED] +
                                        r.of[bad][HELIO_SLOW_SUSPEND_NAKS] +
                                        r.of[bad][HELIO_SLOW_SUSPEND]);
        CHECK(r.first_ns[HELIO_SLOW_NOTIFY] - bad_ns >= 300 * MS);
        CHECK(r.first_ns[HELIO_SLOW_SUSPEND] > r.first_ns[HELIO_SLOW_NOTIFY]);
        CHECK_EQUAL(r.count[HELIO_SLOW_GROUP], 0);
        const helio_slow_decision *told = &r.last[HELIO_SLOW_NOTIFY];
        CHECK_EQUAL(told->receiver, 100 + bad);
        CHECK(told->value >= told->threshold && told->lasted_ns >= 300 * MS);
        helio_consumers_fini(&engine);
    }
}

static void a_stalled_receiver_is_called_so_and_a_silent_one_stopped(void) {
    const helio_consumers_config config = made(HELIO_SLOW_NOTIFY);
    helio_consumers engine = begin(&config);
    crowd c;
    record r = {0};
    crowd_init(&c, 1, 5, 4000);
    run(&c, &engine, &r, HELIO_SECOND);
    c.receivers[1].drain = 0;
    c.receivers[2].drain = 2500;
    c.receivers[3].is_silent = true;
    run(&c, &engine, &r, 3 * HELIO_SECOND);
    CHECK_EQUAL(engine.consumers[0].watch.class, HELIO_CONSUMER_OK);
    CHECK_EQUAL(engine.consumers[1].watch.class, HELIO_CONSUMER_STALLED);
    CHECK_EQUAL(engine.consumers[2].watch.class, HELIO_CONSUMER_FALLING);
    CHECK_EQUAL(engine.consumers[3].watch.class, HELIO_CONSUMER_STOPPED);
    CHECK_EQUAL(r.of[3][HELIO_SLOW_NOTIFY], 1);
    c.receivers[1].drain = 9000;
    run(&c, &engine, &r, 1 * HELIO_SECOND);
    CHECK_EQUAL(engine.consumers[1].watch.class, HELIO_CONSUMER_RECOVERING);
    c.views[0].flags |= HELIO_VIEW_LEFT;
    run(&c, &engine, &r, 20 * MS);
    CHECK_EQUAL(engine.consumers[0].watch.class, HELIO_CONSUMER_STOPPED);
    helio_consumers_fini(&engine);
}

static void silence_is_told_of_and_never_punished(void) {
    const helio_consumers_config config = made(HELIO_SLOW_EXPEL);
    helio_consumers engine = begin(&config);
    crowd c;
    record r = {0};
    crowd_init(&c, 1, 10, 10000);
    run(&c, &engine, &r, HELIO_SECOND);
    c.receivers[3].is_silent = true;
    run(&c, &engine, &r, 20 * HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_SLOW_NOTIFY], 1);
    CHECK_EQUAL(r.last[HELIO_SLOW_NOTIFY].symptom, HELIO_SYMPTOM_SILENCE);
    CHECK_EQUAL(isolations(&r), 0);
    c.receivers[3].is_silent = false;
    run(&c, &engine, &r, 3 * HELIO_SECOND);
    CHECK_EQUAL(r.of[3][HELIO_SLOW_RECOVER], 1);
    helio_consumers_fini(&engine);
}

static void a_receiver_that_sends_no_reports_is_known_by_its_requests(void) {
    helio_consumers_config config = made(HELIO_SLOW_SUSPEND);
    config.naks = 1000;
    helio_consumers engine = begin(&config);
    crowd c;
    record r = {0};
    crowd_init(&c, 1, 6, 20000);
    for (uint32_t i = 0; i < 6; i++) {
        c.views[i].flags &= ~(uint32_t)HELIO_VIEW_REPORTS;
        c.views[i].position = 0;
        c.receivers[i].loss = 0.005;
    }
    run(&c, &engine, &r, HELIO_SECOND);
    CHECK_EQUAL(r.count[HELIO_SLOW_NOTIFY], 0);
    c.receivers[2].loss = 0.15;
    run(&c, &engine, &r, 1500 * MS);
    CHECK_EQUAL(r.of[2][HELIO_SLOW_NOTIFY], 1);
    CHECK_EQUAL(r.of[2][HELIO_SLOW_SHED], 1);
    CHECK_EQUAL(r.of[2][HELIO_SLOW_SUSPEND_NAKS], 1);
    CHECK_EQUAL(r.of[2][HELIO_SLOW_SUSPEND], 1);
    CHECK_EQUAL(r.last[HELIO_SLOW_NOTIFY].symptom, HELIO_SYMPTOM_NAKS);
    CHECK_EQUAL(isolations(&r), 3);
    helio_consumers_fini(&engine);
}

int main(void) {
    RUN(a_median_is_the_one_that_sorting_finds);
    RUN(receivers_that_keep_up_are_left_alone);
    RUN(a_network_that_loses_alike_is_nobodys_fault);
    RUN(a_short_burst_of_one_is_no_trouble);
    RUN(a_receiver_that_comes_late_and_catches_up_is_recovering);
    RUN(one_bad_among_fifty_is_acted_on_and_nobody_else);
    RUN(a_stalled_receiver_is_called_so_and_a_silent_one_stopped);
    RUN(silence_is_told_of_and_never_punished);
    RUN(a_receiver_that_sends_no_reports_is_known_by_its_requests);
    return check_result();
}
