/* The rate policies: what the dynamic one does on a model of a network (rate_model.h), by the
 * figures it is to reach over a hundred seeds, and how it treats single receivers. */
#include <time.h>

#include "rate_model.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS = 10 };
#else
enum { SEEDS = 100 };
#endif

static model m;

/* One of many networks: bottleneck, queue and delay are drawn, each over a factor of 4 to 12.  A
 * round trip is at most a quarter of a control interval. */
static void choose_network(uint64_t seed, unsigned senders, unsigned receivers) {
    helio_random draw;
    helio_random_init(&draw, seed);
    m.policy = &helio_rate_dynamic;
    m.config = (helio_rate_config){
        .loss_high = 0.01,
        .loss_low = 0.001,
        .rate_min = 10000,
    };
    m.seed = seed;
    m.senders = senders;
    m.receivers = receivers;
    m.interval_s = 0.01;
    m.bottleneck = 20e6 * pow(4, helio_random_unit(&draw));
    m.queue = m.bottleneck * 0.0005 * pow(10, helio_random_unit(&draw));
    if (m.queue < 32 * MODEL_PACKET) {
        m.queue = 32 * MODEL_PACKET;
    }
    m.delay_s = 0.0001 * pow(12.5, helio_random_unit(&draw));
    m.random_loss = m.offered = 0;
    m.hides_round_trip = m.hides_position = m.has_no_reports = false;
    m.first_rate[0] = m.first_rate[1] = (uint64_t)(0.95 * m.bottleneck);
}

/* A figure over all seeds: it is to stay below (or above) a bound in each. */
typedef struct figure {
    const char *name;
    double bound, worst, sum;
    unsigned count;
    bool is_upper;
} figure;

static figure at_most(const char *name, double bound) {
    return (figure){.name = name, .bound = bound, .worst = -INFINITY, .is_upper = true};
}

static figure at_least(const char *name, double bound) {
    return (figure){.name = name, .bound = bound, .worst = INFINITY};
}

static void note(figure *f, double value) {
    f->sum += value;
    f->count++;
    if (f->is_upper ? value > f->worst : value < f->worst) {
        f->worst = value;
    }
}

static void check_figure(const figure *f) {
    printf("      %-40s worst %8.4f   mean %8.4f   bound %8.4f\n", f->name, f->worst,
           f->sum / f->count, f->bound);
    CHECK(f->is_upper ? f->worst <= f->bound : f->worst >= f->bound);
}

/* ---- one sender ---- */

static void when_the_bottleneck_halves_the_rate_is_there_within_20_intervals(void) {
    figure intervals = at_most("intervals until within 10 %", 20);
    figure episodes = at_most("loss episodes meanwhile", 2);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 1, 1);
        model_init(&m);
        model_run(&m, 200);
        m.bottleneck /= 2;
        model_run(&m, 40);
        note(&intervals, model_reaches(m.sender[0].rates + 200, 40, m.bottleneck, 0.1));
        note(&episodes, model_episodes(m.sender[0].losses + 200, 20, 0.01, 5));
        model_fini(&m);
    }
    check_figure(&intervals);
    check_figure(&episodes);
}

static void a_constant_bottleneck_is_used_without_swinging(void) {
    figure variation = at_most("coefficient of variation of the rate", 0.15);
    figure utilisation = at_least("utilisation", 0.8);
    figure loss = at_most("share lost", 0.01);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 1, 1);
        model_init(&m);
        model_run(&m, 1200);
        model_sender *s = &m.sender[0];
        note(&variation, model_variation(s->rates + 200, 1000));
        note(&utilisation, model_mean(s->delivered + 200, 1000) / m.bottleneck);
        note(&loss, 1 - model_mean(s->delivered + 200, 1000) / model_mean(s->rates + 200, 1000));
        model_fini(&m);
    }
    check_figure(&variation);
    check_figure(&utilisation);
    check_figure(&loss);
}

static void when_the_bottleneck_doubles_the_rate_follows(void) {
    figure intervals = at_most("intervals until 90 %", 200);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 1, 1);
        model_init(&m);
        model_run(&m, 100);
        m.bottleneck *= 2;
        model_run(&m, 300);
        note(&intervals, model_reaches(m.sender[0].rates + 100, 300, m.bottleneck, 0.1));
        model_fini(&m);
    }
    check_figure(&intervals);
}

static void loss_below_the_threshold_leaves_the_rate_alone(void) {
    figure falls = at_most("falls at 0.5 % of random loss", 0);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 1, 1);
        m.random_loss = 0.005;
        m.config.rate = m.first_rate[0];
        m.bottleneck *= 10;
        model_init(&m);
        model_run(&m, 1000);
        note(&falls, m.sender[0].falls);
        CHECK_EQUAL(m.sender[0].decision.rate, m.config.rate);
        model_fini(&m);
    }
    check_figure(&falls);
}

static void a_rate_that_fell_comes_back_though_a_receiver_goes_on_losing_a_little(void) {
    choose_network(1, 1, 1);
    m.random_loss = 0.005;
    m.config.rate = m.first_rate[0];
    model_init(&m);
    m.bottleneck /= 4;
    model_run(&m, 100);
    CHECK(m.sender[0].decision.rate < m.config.rate / 3);
    m.bottleneck *= 40;
    model_run(&m, 1000);
    CHECK(m.sender[0].decision.rate > m.config.rate * 9 / 10);
    model_fini(&m);
}

static double range(const double *rates, unsigned count) {
    return model_highest(rates, count) - model_lowest(rates, count);
}

/* A swing that grows doubles and doubles again within 1,000 intervals; a saw's teeth differ by
 * chance. */
static void four_times_the_delay_makes_no_swing_that_grows(bool is_told) {
    figure growth = at_most("swing of the last third / of the first", 1);
    figure variation = at_most("coefficient of variation of the rate", 0.15);
    figure utilisation = at_least("utilisation", 0.8);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 1, 1);
        m.delay_s *= 4;
        m.hides_round_trip = !is_told;
        model_init(&m);
        m.bottleneck /= 2; /* what sets it swinging */
        model_run(&m, 1200);
        const double *rates = m.sender[0].rates;
        note(&growth, range(rates + 800, 400) / range(rates, 400));
        note(&variation, model_variation(rates + 200, 1000));
        note(&utilisation, model_mean(m.sender[0].delivered + 200, 1000) / m.bottleneck);
        model_fini(&m);
    }
    check_figure(&growth);
    check_figure(&variation);
    check_figure(&utilisation);
}

static void a_long_delay_makes_no_swing_that_grows(void) {
    four_times_the_delay_makes_no_swing_that_grows(true);
}

static void nor_when_nobody_tells_how_long_it_is(void) {
    four_times_the_delay_makes_no_swing_that_grows(false);
}

static void without_reports_the_packets_asked_for_tell_the_loss(void) {
    figure variation = at_most("coefficient of variation of the rate", 0.15);
    figure utilisation = at_least("utilisation", 0.8);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 1, 1);
        m.has_no_reports = true;
        model_init(&m);
        model_run(&m, 1200);
        note(&variation, model_variation(m.sender[0].rates + 200, 1000));
        note(&utilisation, model_mean(m.sender[0].delivered + 200, 1000) / m.bottleneck);
        model_fini(&m);
    }
    check_figure(&variation);
    check_figure(&utilisation);
}

static void a_rate_that_is_not_used_does_not_grow(void) {
    choose_network(1, 1, 1);
    m.offered = m.bottleneck / 4;
    m.first_rate[0] = (uint64_t)(m.bottleneck / 3);
    model_init(&m);
    model_run(&m, 1000);
    CHECK((double)m.sender[0].decision.rate < 2.2 * m.offered);
    CHECK_EQUAL(m.sender[0].falls, 0);
    model_fini(&m);
}

static void without_a_limit_the_first_fall_finds_the_bottleneck(void) {
    choose_network(1, 1, 1);
    m.first_rate[0] = 0;
    m.offered = 3 * m.bottleneck;
    model_init(&m);
    CHECK_EQUAL(m.sender[0].decision.rate, 0);
    model_run(&m, 20);
    CHECK(fabs((double)m.sender[0].decision.rate - m.bottleneck) < 0.15 * m.bottleneck);
    model_fini(&m);
}

/* ---- several ---- */

static void two_senders_share_a_bottleneck_evenly_soon(void) {
    figure jain = at_least("Jain's index after 200 intervals", 0.9);
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        choose_network(seed, 2, 1);
        m.first_rate[0] = (uint64_t)(0.9 * m.bottleneck);
        m.first_rate[1] = m.first_rate[0] / 10;
        model_init(&m);
        model_run(&m, 300);
        const double shares[2] = {model_mean(m.sender[0].delivered + 200, 100),
                                  model_mean(m.sender[1].delivered + 200, 100)};
        note(&jain, model_jain(shares, 2));
        model_fini(&m);
    }
    check_figure(&jain);
}

/* The rate on which it settles, over some seeds. */
static double settled_rate(unsigned receivers, double random_loss) {
    double sum = 0;
    for (unsigned seed = 1; seed <= SEEDS / 5; seed++) {
        choose_network(seed, 1, receivers);
        m.random_loss = random_loss;
        model_init(&m);
        model_run(&m, 700);
        sum += model_mean(m.sender[0].rates + 200, 500) / m.bottleneck;
        model_fini(&m);
    }
    return sum / (SEEDS / 5);
}

static void the_rate_settles_where_it_does_whatever_the_number_of_receivers(void) {
    for (int loses = 0; loses < 2; loses++) {
        const double one = settled_rate(1, loses * 0.005), ten = settled_rate(10, loses * 0.005),
                     hundred = settled_rate(100, loses * 0.005);
        printf("      rate / bottleneck, %s random loss: 1: %.3f  10: %.3f  100: %.3f\n",
               loses ? "0.5 % of" : "no", one, ten, hundred);
        CHECK(fabs(ten / one - 1) < 0.1 && fabs(hundred / one - 1) < 0.1);
    }
}

static void of_a_hundred_that_lose_a_little_none_pulls_the_rate_down(void) {
    choose_network(1, 1, 100);
    m.random_loss = 0.005;
    m.config.rate = m.first_rate[0];
    m.bottleneck *= 10;
    model_init(&m);
    model_run(&m, 2000);
    CHECK_EQUAL(m.sender[0].falls, 0);
    model_fini(&m);
}

/* ---- single decisions ---- */

enum { PLACES = 40, SENT = 500 }; /* packets in an interval */

typedef struct bench {
    void *state;
    helio_rate_config config;
    helio_receiver_view views[PLACES];
    helio_interval interval;
    helio_rate_decision decision;
} bench;

static bench b;

static void begin(int who, uint64_t rate) {
    b = (bench){0};
    b.config = (helio_rate_config){
        .rate = 100000000,
        .rate_min = 50000000,
        .loss_high = 0.01,
        .loss_low = 0.001,
        .who = who,
        .quantile = 0.9,
        .silence_ns = HELIO_SECOND,
        .packet_bytes = MODEL_PACKET,
        .entries = PLACES,
    };
    b.state =
        calloc(1, helio_rate_dynamic.state_bytes + PLACES * helio_rate_dynamic.receiver_bytes);
    CHECK(b.state);
    helio_rate_dynamic.init(b.state, &b.config, rate, 0);
    b.decision.rate = rate;
    for (uint32_t i = 0; i < PLACES; i++) {
        b.views[i] = (helio_receiver_view){.receiver = 100 + i,
                                           .incarnation = 1,
                                           .index = i,
                                           .flags = HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS};
    }
}

/* An interval goes by in which all reported. */
static helio_rate_state step(void) {
    b.interval.now_ns += 10 * HELIO_MILLISECOND;
    b.interval.length_ns = 10 * HELIO_MILLISECOND;
    b.interval.flags = HELIO_INTERVAL_LIMITED;
    b.interval.receivers = PLACES;
    b.interval.rate = b.decision.rate;
    b.interval.packets_sent = SENT;
    b.interval.bytes_sent = SENT * MODEL_PACKET;
    b.interval.lead += SENT;
    helio_rate_dynamic.decide(b.state, &b.interval, b.views, &b.decision);
    return b.decision.state;
}

static void report(uint32_t place, uint64_t lost) {
    helio_receiver_view *view = &b.views[place];
    view->received += SENT - lost;
    view->lost += lost;
    view->position = b.interval.lead;
    view->flags |= HELIO_VIEW_NEWS;
}

static void report_all(uint64_t lost) {
    for (uint32_t i = 0; i < PLACES; i++) {
        report(i, lost);
    }
}

static void the_receiver_that_loses_most_is_named(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    step();
    report_all(1);
    report(17, 100);
    CHECK_EQUAL(step(), HELIO_RATE_DECREASE);
    CHECK_EQUAL(b.decision.worst, 17);
    CHECK(b.decision.signal > 0.01 && b.decision.rate < 100000000);
    free(b.state);
}

static void who_is_suspended_expelled_or_gone_does_not_count(void) {
    static const uint32_t flags[] = {HELIO_VIEW_SUSPENDED, HELIO_VIEW_EXPELLED, HELIO_VIEW_LEFT};
    for (size_t i = 0; i < 3; i++) {
        begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
        b.views[17].flags |= flags[i];
        step();
        report(17, 400);
        CHECK(step() != HELIO_RATE_DECREASE);
        free(b.state);
    }
}

static void only_tagged_receivers_count_if_so_chosen(void) {
    begin(HELIO_RATE_RECEIVERS_TAGGED, 100000000);
    b.views[3].flags |= HELIO_VIEW_TAGGED;
    step();
    report(17, 400);
    CHECK(step() != HELIO_RATE_DECREASE);
    report(3, 100);
    CHECK_EQUAL(step(), HELIO_RATE_DECREASE);
    CHECK_EQUAL(b.decision.worst, 3);
    free(b.state);
}

static void a_quantile_leaves_out_those_above_it(void) {
    begin(HELIO_RATE_RECEIVERS_QUANTILE, 100000000); /* 0.9 of 40: 4 may lose more */
    step();
    report_all(0);
    for (uint32_t i = 0; i < 4; i++) {
        report(7 * i, 400);
    }
    CHECK(step() != HELIO_RATE_DECREASE);
    report(39, 100);
    CHECK_EQUAL(step(), HELIO_RATE_DECREASE);
    CHECK_EQUAL(b.decision.worst, 39);
    free(b.state);
}

static void what_was_lost_before_a_fall_does_not_count_again(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    step();
    report(5, 100);
    CHECK_EQUAL(step(), HELIO_RATE_DECREASE);
    const uint64_t fallen = b.decision.rate, lead = b.interval.lead;
    for (int i = 0; i < 8; i++) { /* reports on their way for long: of packets sent before */
        report(5, 100);
        b.views[5].position = lead - 1;
        CHECK(step() != HELIO_RATE_DECREASE);
    }
    CHECK(b.decision.rate >= fallen);
    report(5, 100); /* its era begins */
    CHECK(step() != HELIO_RATE_DECREASE);
    report(5, 100);
    CHECK_EQUAL(step(), HELIO_RATE_DECREASE);
    free(b.state);
}

static void a_silent_receiver_counts_as_a_loss_until_it_is_taken_to_be_gone(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    b.config.rate_min = 1000;
    helio_rate_dynamic.init(b.state, &b.config, 100000000, 0);
    unsigned falls = 0;
    for (int i = 0; i < 1000; i++) {
        report_all(0);
        b.views[9].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
        if (step() == HELIO_RATE_DECREASE) {
            falls++;
            CHECK_EQUAL(b.decision.worst, 9);
            CHECK_EQUAL((i + 1) / 100, falls);
        }
        for (uint32_t r = 0; r < PLACES; r++) {
            b.views[r].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
        }
    }
    CHECK_EQUAL(falls, 3);
    free(b.state);
}

static void the_rate_stays_between_floor_and_ceiling(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    for (int i = 0; i < 200; i++) {
        report(5, 450);
        step();
    }
    CHECK_EQUAL(b.decision.rate, 50000000);
    for (int i = 0; i < 2000; i++) {
        report_all(0);
        step();
    }
    CHECK_EQUAL(b.decision.rate, 100000000);
    free(b.state);
}

static void a_rate_that_is_not_in_force_is_judged_by_what_was_sent(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    b.config.rate_min = 1000;
    helio_rate_dynamic.init(b.state, &b.config, 100000000, 0);
    for (int i = 0; i < 100; i++) { /* nobody obeys: 70 MB/s leave, and a fifth is lost */
        report_all(SENT / 5);
        b.decision.rate = 0;
        step();
    }
    CHECK(b.decision.rate > 40000000 && b.decision.rate < 60000000);
    free(b.state);
}

static void a_new_life_of_a_receiver_begins_anew(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    report(5, 0);
    step();
    b.views[5].incarnation = 2; /* its counts begin with what was there before it, here all lost */
    b.views[5].received = 0;
    b.views[5].lost = 5000;
    CHECK(step() != HELIO_RATE_DECREASE);
    report(5, 0);
    CHECK(step() != HELIO_RATE_DECREASE);
    free(b.state);
}

/* ---- the table ---- */

static void a_receiver_forgotten_and_met_again_has_lost_nothing(void) {
    begin(HELIO_RATE_RECEIVERS_WORST, 100000000);
    b.views[5].flags &=
        ~(uint32_t)HELIO_VIEW_REPORTS; /* known by its address, by what it asks for */
    b.views[5].incarnation = 0;
    b.views[5].naks = 3;
    step();
    report_all(0);
    step();
    b.views[5].naks = 0; /* the same address, the same place, counted anew */
    for (int i = 0; i < 8; i++) {
        report_all(0);
        CHECK(step() != HELIO_RATE_DECREASE);
    }
    free(b.state);
}

static void policies_are_found_by_name(void) {
    CHECK(helio_rate_policy_named("none") == &helio_rate_none);
    CHECK(helio_rate_policy_named("static") == &helio_rate_static);
    CHECK(helio_rate_policy_named("dynamic") == &helio_rate_dynamic);
    CHECK(helio_rate_policy_named("dyn") == NULL);
    size_t count = 0;
    while (helio_rate_policy_at(count)) {
        count++;
    }
    CHECK(count >= 3);
}

static void fixed_policies_keep_what_is_configured(void) {
    _Alignas(16) char state[64];
    CHECK(helio_rate_none.state_bytes <= sizeof state &&
          helio_rate_static.state_bytes <= sizeof state);
    const helio_rate_config config = {.rate = 12345};
    const helio_interval interval = {.rate = 7};
    helio_rate_decision decision = {.rate = 7};
    helio_rate_none.init(state, &config, 7, 0);
    helio_rate_none.decide(state, &interval, NULL, &decision);
    CHECK_EQUAL(decision.rate, 0);
    helio_rate_static.init(state, &config, 7, 0);
    helio_rate_static.decide(state, &interval, NULL, &decision);
    CHECK_EQUAL(decision.rate, 12345);
    CHECK(decision.send_limit == HELIO_RATE_NO_SEQUENCE);
}

static void what_a_decision_costs(void) {
    begin(HELIO_RATE_RECEIVERS_QUANTILE, 100000000);
    struct timespec from, to;
    enum { TIMES = 2000 };
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < TIMES; i++) {
        report_all((uint64_t)i % 4);
        step();
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("      %.0f ns per receiver and interval\n", ns / TIMES / PLACES);
    CHECK(b.interval.now_ns == TIMES * 10 * HELIO_MILLISECOND);
    free(b.state);
}

int main(void) {
    RUN(when_the_bottleneck_halves_the_rate_is_there_within_20_intervals);
    RUN(a_constant_bottleneck_is_used_without_swinging);
    RUN(when_the_bottleneck_doubles_the_rate_follows);
    RUN(loss_below_the_threshold_leaves_the_rate_alone);
    RUN(a_rate_that_fell_comes_back_though_a_receiver_goes_on_losing_a_little);
    RUN(a_long_delay_makes_no_swing_that_grows);
    RUN(nor_when_nobody_tells_how_long_it_is);
    RUN(without_reports_the_packets_asked_for_tell_the_loss);
    RUN(a_rate_that_is_not_used_does_not_grow);
    RUN(without_a_limit_the_first_fall_finds_the_bottleneck);
    RUN(two_senders_share_a_bottleneck_evenly_soon);
    RUN(the_rate_settles_where_it_does_whatever_the_number_of_receivers);
    RUN(of_a_hundred_that_lose_a_little_none_pulls_the_rate_down);
    RUN(the_receiver_that_loses_most_is_named);
    RUN(who_is_suspended_expelled_or_gone_does_not_count);
    RUN(only_tagged_receivers_count_if_so_chosen);
    RUN(a_quantile_leaves_out_those_above_it);
    RUN(what_was_lost_before_a_fall_does_not_count_again);
    RUN(a_silent_receiver_counts_as_a_loss_until_it_is_taken_to_be_gone);
    RUN(the_rate_stays_between_floor_and_ceiling);
    RUN(a_rate_that_is_not_in_force_is_judged_by_what_was_sent);
    RUN(a_new_life_of_a_receiver_begins_anew);
    RUN(a_receiver_forgotten_and_met_again_has_lost_nothing);
    RUN(policies_are_found_by_name);
    RUN(fixed_policies_keep_what_is_configured);
    RUN(what_a_decision_costs);
    return check_result();
}
