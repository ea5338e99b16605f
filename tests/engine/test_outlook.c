/* The forecast of loss and the count of certain loss, over a model of one receiver: no alarm for
 * healthy receivers, and no all-clear before a loss. */
#include "base/random.h"
#include "check.h"
#include "policy/watch.h"

#define MS HELIO_MILLISECOND
#define STEP_NS (10 * MS)

enum { SEEDS = 1000, HISTORY = 4096, FIRST = 1 << 20 };

typedef enum kind { HEALTHY, LOSSY, BURSTY, CRAWLING, STOPPED } kind;

typedef struct model {
    helio_random random;
    kind kind;
    double sent, position;
    /* Packets a step. */
    double rate, drain;
    /* Newest packet that it has or has room for. */
    uint64_t held;
    /* Packets that left the history and that it cannot have. */
    uint64_t lost;
    uint64_t steps;
    helio_interval interval;
    helio_receiver_view view;
    helio_watch watch;
    uint64_t lead_before;
} model;

static const helio_watch_config CONFIG = {.window_ns = 100 * MS, .lag = 0.75, .buffer = 0.95};

static void begin(model *m, kind kind, uint64_t seed) {
    *m = (model){.kind = kind, .sent = FIRST, .position = FIRST, .lead_before = FIRST};
    helio_random_init(&m->random, seed);
    m->rate = 20 + (double)helio_random_below(&m->random, 100);
    m->drain = kind == CRAWLING ? m->rate * (0.1 + 0.6 * helio_random_unit(&m->random)) : 1e9;
    m->interval = (helio_interval){.now_ns = HELIO_SECOND,
                                   .length_ns = STEP_NS,
                                   .receivers = 1,
                                   .lead = FIRST,
                                   .trail = FIRST - HISTORY + 1,
                                   .history_packets = HISTORY};
    m->view = (helio_receiver_view){.receiver = 1,
                                    .incarnation = 1,
                                    .flags = HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS,
                                    .position = FIRST,
                                    .window = 1024,
                                    .heard_ns = HELIO_SECOND};
    m->held = FIRST + m->view.window;
}

/* One control interval; `is_running`: the process is not stopped. */
static void step(model *m, bool is_running) {
    const helio_watch_scene before = {.lead_before = m->interval.lead,
                                      .before_ns = m->interval.now_ns};
    helio_watch_scene scene = before;
    helio_receiver_view *view = &m->view;
    const bool is_burst = m->kind != BURSTY || m->steps / 20 % 2;
    m->sent += is_burst ? m->rate : 0;
    m->interval.lead = (uint64_t)m->sent;
    m->interval.now_ns += STEP_NS;
    const uint64_t trail = m->interval.lead + 1 - HISTORY;
    if (trail > m->held + 1) { /* what it did not take in time */
        const uint64_t from = m->interval.trail > m->held + 1 ? m->interval.trail : m->held + 1;
        m->lost += trail - from;
    }
    m->interval.trail = trail;
    view->flags &= ~(uint32_t)HELIO_VIEW_NEWS;
    if (is_running) {
        /* A batch reader takes nothing for up to 100 ms. */
        const bool reads = m->kind != BURSTY || m->steps % 10 == 0;
        const double next = m->position + (reads ? m->drain : 0);
        const uint64_t lost =
            m->kind == LOSSY ? helio_random_below(&m->random, (uint64_t)m->rate / 5 + 1) : 0;
        m->position = next < m->sent - (double)lost ? next : m->sent - (double)lost;
        m->held = (uint64_t)m->position + view->window;
        view->lost += lost;
        view->naks += lost;
        view->missing = lost ? (uint64_t)m->position + 1 : 0;
        view->received = m->interval.lead - FIRST;
        if (m->kind != LOSSY || helio_random_below(&m->random, 3)) { /* reports get lost too */
            view->position = (uint64_t)m->position;
            view->heard_ns = m->interval.now_ns;
            view->flags |= HELIO_VIEW_NEWS;
        }
    } else if (m->held > before.lead_before && m->lost == 0 &&
               m->held == (uint64_t)m->position + view->window) {
        m->held = before.lead_before; /* stopped: it takes nothing more */
    }
    scene.interval = &m->interval;
    scene.history_packets = HISTORY;
    helio_watch_feed(&m->watch, &CONFIG, &scene, view);
    m->steps++;
}

static void no_alarm_for_healthy(kind kind) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model m;
        begin(&m, kind, seed);
        uint32_t clear = 0;
        while (m.steps < 400) {
            step(&m, true);
            CHECK(m.watch.outlook <= HELIO_OUTLOOK_NONE);
            clear += m.watch.outlook == HELIO_OUTLOOK_NONE;
        }
        CHECK(clear > 300);
        CHECK_EQUAL(m.watch.gone, 0);
        CHECK_EQUAL(m.lost, 0);
    }
}

static void a_healthy_receiver_raises_no_alarm(void) {
    no_alarm_for_healthy(HEALTHY);
}

static void a_lossy_receiver_that_is_repaired_raises_no_alarm(void) {
    no_alarm_for_healthy(LOSSY);
}

static void a_batch_reader_raises_no_alarm(void) {
    no_alarm_for_healthy(BURSTY);
}

static void a_crawling_receiver_has_a_forecast_before_its_loss(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model m;
        begin(&m, CRAWLING, seed);
        while (m.lost == 0 && m.steps < 4000) {
            const helio_outlook before = m.watch.outlook;
            step(&m, true);
            CHECK(m.lost == 0 || before == HELIO_OUTLOOK_AHEAD);
        }
        CHECK(m.lost > 0);
        for (int i = 0; i < 10 && m.watch.gone == 0; i++) {
            step(&m, true);
        }
        CHECK(m.watch.gone > 0);
        for (int i = 0; i < 100; i++) {
            step(&m, true);
            CHECK_EQUAL(m.watch.outlook, HELIO_OUTLOOK_PAST);
            CHECK(m.watch.gone <= m.lost + 1);
        }
        CHECK(m.watch.gone + 4 * (uint64_t)m.rate >= m.lost);
    }
}

static void a_stopped_receiver_is_never_all_clear(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        model m;
        begin(&m, STOPPED, seed);
        while (m.steps < 300) {
            step(&m, true);
        }
        CHECK_EQUAL(m.watch.outlook, HELIO_OUTLOOK_NONE);
        for (int i = 0; i < 600; i++) {
            step(&m, false);
            CHECK(m.lost == 0 || m.watch.outlook != HELIO_OUTLOOK_NONE);
        }
        CHECK(m.lost > 0);
        CHECK_EQUAL(m.watch.outlook, HELIO_OUTLOOK_PAST);
        CHECK_EQUAL(m.watch.class, HELIO_BEHAVIOUR_STOPPED);
        CHECK(m.watch.class_ns > 0);
        CHECK(m.watch.gone <= m.lost + (uint64_t)m.rate + 1);
        CHECK(m.watch.gone + (uint64_t)m.rate + 1 >= m.lost);
    }
}

static void a_designed_loss_is_not_counted(void) {
    model m;
    begin(&m, CRAWLING, 1);
    m.view.flags |= HELIO_VIEW_SUSPENDED;
    while (m.steps < 2000) {
        step(&m, true);
    }
    CHECK(m.lost > 0);
    CHECK_EQUAL(m.watch.gone, 0);
}

static void nothing_is_known_before_and_after_a_receiver(void) {
    model m;
    begin(&m, HEALTHY, 1);
    step(&m, true);
    CHECK_EQUAL(m.watch.outlook, HELIO_OUTLOOK_UNKNOWN);
    while (m.steps < 100) {
        step(&m, true);
    }
    CHECK_EQUAL(m.watch.outlook, HELIO_OUTLOOK_NONE);
    m.view.flags |= HELIO_VIEW_LEFT;
    step(&m, true);
    CHECK_EQUAL(m.watch.outlook, HELIO_OUTLOOK_UNKNOWN);
}

int main(void) {
    RUN(a_healthy_receiver_raises_no_alarm);
    RUN(a_lossy_receiver_that_is_repaired_raises_no_alarm);
    RUN(a_batch_reader_raises_no_alarm);
    RUN(a_crawling_receiver_has_a_forecast_before_its_loss);
    RUN(a_stopped_receiver_is_never_all_clear);
    RUN(a_designed_loss_is_not_counted);
    RUN(nothing_is_known_before_and_after_a_receiver);
    return check_result();
}
