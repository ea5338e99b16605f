/* When recovery is a storm, and when it is only recovery: the detector over a model of a source, a
 * network with a bottleneck, and receivers that ask.
 *
 * What is missing is asked for in each step.  While the network keeps up, one request and one
 * repair mend it.  When it does not, answers come later than the next request is due, and each
 * packet is asked for and repaired `greed` times, of which once is useful: then beyond some load
 * recovery feeds itself.  What is missing for about a second is given up. */
#include "base/random.h"
#include "check.h"
#include "policy/storm.h"

#define MS HELIO_MILLISECOND
#define STEP_NS (10 * MS)

typedef struct network {
    helio_random random;
    helio_interval interval;
    double capacity; /* packets per second that fit */
    double rate;     /* offered, packets per second */
    double greed;    /* requests for a packet in a step, when the network is full */
    double eager;    /* share of what was asked for and did not come, asked for again in a step */
    double loss;     /* share lost by chance */
    double repair_rate; /* packets per second that the source repairs at most */
    double missing;     /* packets */
    double fresh;       /* of these, lost in the last step */
    double waiting;     /* repairs */
    double through;     /* share that came through in the last step */
    int64_t cut_until_ns;
} network;

static void network_init(network *n, uint64_t seed) {
    memset(n, 0, sizeof *n);
    helio_random_init(&n->random, seed);
    n->interval = (helio_interval){.now_ns = 50 * HELIO_SECOND, .length_ns = STEP_NS};
    n->capacity = 20000;
    n->rate = 9000 + (double)helio_random_below(&n->random, 4000);
    n->greed = n->eager = 1;
    n->repair_rate = 1e9;
    n->through = 1;
}

static double noisy(network *n, double value) {
    return value * (0.8 + 0.4 * helio_random_unit(&n->random));
}

static double least(double a, double b) {
    return a < b ? a : b;
}

/* An interval; returns how many were asked for again. */
static uint64_t network_step(network *n) {
    helio_interval *interval = &n->interval;
    const double seconds = (double)STEP_NS / (double)HELIO_SECOND;
    const bool is_cut = interval->now_ns < n->cut_until_ns;
    const double greed = n->through < 0.9 ? n->greed : 1;
    const double first = is_cut ? 0 : n->fresh;
    const double asked = is_cut ? 0 : greed * (first + n->eager * (n->missing - first));
    const double data = noisy(n, n->rate * seconds);
    n->waiting = least(n->waiting + asked, greed * n->missing);
    const double repairs = least(n->waiting, n->repair_rate * seconds);
    n->waiting -= repairs;
    const double load = data + repairs + asked / 10;
    n->through = least(1, n->capacity * seconds / load);
    const double arrive = n->through * (1 - n->loss);
    const double mended = least(n->missing, repairs * arrive / greed);
    n->fresh = data * (1 - arrive);
    n->missing = (n->missing - mended) * (1 - seconds) + n->fresh;
    if (n->missing < 1) {
        n->missing = n->fresh = 0;
    }
    interval->now_ns += STEP_NS;
    interval->packets_sent = (uint64_t)data;
    interval->bytes_sent = interval->offered_bytes = (uint64_t)data * 1000;
    interval->repair_packets = (uint64_t)repairs;
    interval->repair_bytes = (uint64_t)repairs * 1000;
    interval->naks = (uint64_t)asked;
    interval->repairs_waiting = (uint64_t)n->waiting;
    return asked > first ? (uint64_t)(asked - first) : 0;
}

typedef struct told {
    int began, ended, cut_offs;
    int64_t began_ns, ended_ns, first_ns, longest_ns;
} told;

static void run(network *n, helio_storm *storm, told *t, int64_t ns) {
    for (int64_t end_ns = n->interval.now_ns + ns; n->interval.now_ns < end_ns;) {
        const uint64_t again = network_step(n);
        const helio_storm_decision decision = helio_storm_decide(storm, &n->interval, again);
        t->began += decision.began;
        t->ended += decision.ended;
        if (decision.began) {
            t->began_ns = n->interval.now_ns;
        }
        if (decision.ended) {
            t->ended_ns = n->interval.now_ns;
        }
        if (decision.cut_off_ns == 0 || !storm->config.enforces) {
            continue;
        }
        n->cut_until_ns = n->interval.now_ns + decision.cut_off_ns;
        if (t->cut_offs++ == 0) {
            t->first_ns = decision.cut_off_ns;
        }
        if (decision.cut_off_ns > t->longest_ns) {
            t->longest_ns = decision.cut_off_ns;
        }
    }
}

static helio_storm made(bool enforces) {
    helio_storm storm;
    helio_storm_init(&storm, &(helio_storm_config){500 * MS, 200 * MS, enforces});
    return storm;
}

static void burst(network *n, helio_storm *storm, told *t, int64_t ns) {
    const double usual = n->rate;
    n->rate = 5 * n->capacity;
    run(n, storm, t, ns);
    n->rate = usual;
}

/* Three quiet seconds, then a burst after which it does not become quiet again. */
static void start_storm(network *n, helio_storm *storm, told *t) {
    n->greed = 3 + 3 * helio_random_unit(&n->random);
    run(n, storm, t, 3 * HELIO_SECOND);
    burst(n, storm, t, 100 * MS + (int64_t)helio_random_below(&n->random, 200) * MS);
}

static void a_storm_is_found_within_a_second(void) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        network n;
        told t = {0};
        helio_storm storm = made(false);
        network_init(&n, seed);
        start_storm(&n, &storm, &t);
        CHECK_EQUAL(t.began, 0);
        const int64_t storm_ns = n.interval.now_ns;
        run(&n, &storm, &t, 5 * HELIO_SECOND);
        CHECK_EQUAL(t.began, 1);
        CHECK(t.began_ns - storm_ns < HELIO_SECOND);
        CHECK(n.missing > 100); /* which, only watched, goes on */
        CHECK_EQUAL(t.ended, 0);
        CHECK(storm.is_active);
    }
}

static void the_brake_ends_it(void) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        network n;
        told t = {0};
        helio_storm storm = made(true);
        network_init(&n, seed);
        start_storm(&n, &storm, &t);
        const int64_t storm_ns = n.interval.now_ns;
        run(&n, &storm, &t, 20 * HELIO_SECOND);
        CHECK(t.began >= 1 && t.began_ns - storm_ns < HELIO_SECOND);
        CHECK_EQUAL(t.began, t.ended);
        CHECK_EQUAL(t.first_ns, 200 * MS);
        CHECK(n.missing < 10 && n.interval.now_ns > n.cut_until_ns);
        CHECK(!storm.is_active);
    }
}

static void cut_offs_grow_while_it_comes_back_and_begin_short_the_next_time(void) {
    network n;
    told t = {0};
    helio_storm storm = made(true);
    network_init(&n, 5);
    run(&n, &storm, &t, 3 * HELIO_SECOND);
    n.greed = 6;
    n.capacity = n.rate * 0.9; /* nothing helps while there is no room even for the data */
    run(&n, &storm, &t, 30 * HELIO_SECOND);
    CHECK_EQUAL(t.began, 1);
    CHECK_EQUAL(t.ended, 0);
    CHECK_EQUAL(t.first_ns, 200 * MS);
    CHECK_EQUAL(t.longest_ns, HELIO_STORM_CUT_OFF_MAX_NS);
    n.capacity = 20000;
    run(&n, &storm, &t, 10 * HELIO_SECOND);
    CHECK_EQUAL(t.ended, 1);
    t.cut_offs = 0;
    start_storm(&n, &storm, &t);
    run(&n, &storm, &t, HELIO_SECOND);
    CHECK_EQUAL(t.began, 2);
    CHECK_EQUAL(t.first_ns, 200 * MS);
}

static void a_burst_that_is_mended_is_no_storm(void) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        network n;
        told t = {0};
        helio_storm storm = made(true);
        network_init(&n, seed);
        n.repair_rate = seed % 2 ? 1e9 : 8000;
        n.eager = seed % 2 ? 1 : 0.05;
        run(&n, &storm, &t, 2 * HELIO_SECOND);
        for (int i = 0; i < 5; i++) {
            burst(&n, &storm, &t, 50 * MS + (int64_t)helio_random_below(&n.random, 250) * MS);
            run(&n, &storm, &t, 6 * HELIO_SECOND);
        }
        CHECK(n.missing < 10);
        CHECK_EQUAL(t.began, 0);
    }
}

static void steady_loss_with_repairs_that_work_is_no_storm(void) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        network n;
        told t = {0};
        helio_storm storm = made(true);
        network_init(&n, seed);
        n.greed = 4;
        n.loss = 0.3 * helio_random_unit(&n.random);
        n.rate = 5000;
        run(&n, &storm, &t, 10 * HELIO_SECOND);
        CHECK_EQUAL(t.began, 0);
    }
}

static void a_late_receiver_that_asks_for_everything_is_no_storm(void) {
    helio_storm storm = made(true);
    helio_interval interval = {.now_ns = 50 * HELIO_SECOND, .length_ns = STEP_NS};
    for (int i = 0; i < 1000; i++) {
        interval.now_ns += STEP_NS;
        interval.packets_sent = 100;
        interval.offered_bytes = interval.bytes_sent = 100000;
        interval.naks = i > 300 ? 500 : 0;
        interval.repair_packets = interval.naks;
        CHECK(!helio_storm_decide(&storm, &interval, interval.naks / 20).began);
    }
}

static void more_load_is_a_burst_and_not_a_storm(void) {
    for (uint64_t seed = 1; seed <= 20; seed++) {
        network n;
        told t = {0};
        helio_storm storm = made(true);
        network_init(&n, seed);
        n.greed = 4;
        run(&n, &storm, &t, 3 * HELIO_SECOND);
        burst(&n, &storm, &t, 2 * HELIO_SECOND); /* overload, and the application is to blame */
        CHECK_EQUAL(t.began, 0);
    }
}

static void a_pause_does_not_make_the_usual_load_a_burst(void) {
    network n;
    told t = {0};
    helio_storm storm = made(true);
    network_init(&n, 3);
    run(&n, &storm, &t, 5 * HELIO_SECOND);
    const double usual = n.rate;
    n.rate = 0;
    run(&n, &storm, &t, 60 * HELIO_SECOND);
    n.rate = usual;
    start_storm(&n, &storm, &t);
    run(&n, &storm, &t, HELIO_SECOND);
    CHECK_EQUAL(t.began, 1);
}

int main(void) {
    RUN(a_storm_is_found_within_a_second);
    RUN(the_brake_ends_it);
    RUN(cut_offs_grow_while_it_comes_back_and_begin_short_the_next_time);
    RUN(a_burst_that_is_mended_is_no_storm);
    RUN(steady_loss_with_repairs_that_work_is_no_storm);
    RUN(a_late_receiver_that_asks_for_everything_is_no_storm);
    RUN(more_load_is_a_burst_and_not_a_storm);
    RUN(a_pause_does_not_make_the_usual_load_a_burst);
    return check_result();
}
