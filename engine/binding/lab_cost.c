/* What a control interval's decisions cost: each policy is asked again and again about receivers
 * who fare differently, and timed by the processor's own clock. */
#include "lab_cost.h"

#include <stdlib.h>
#include <time.h>

#include "policy/rate.h"
#include "policy/slow_receiver.h"
#include "policy/storm.h"

#define INTERVAL_NS (10 * HELIO_MILLISECOND)

enum { PACKETS = 200, HISTORY = 16384 };

typedef struct bench {
    helio_interval interval;
    helio_receiver_view *views;
    double spent_ns; /* in all intervals */
} bench;

static int64_t thread_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (int64_t)at.tv_sec * HELIO_SECOND + at.tv_nsec;
}

/* Another interval: each tenth receiver loses a little, each seventh is behind. */
static void pass(bench *b) {
    helio_interval *interval = &b->interval;
    interval->now_ns += INTERVAL_NS;
    interval->lead += PACKETS;
    interval->trail = interval->lead > HISTORY ? interval->lead - HISTORY : 1;
    for (uint32_t i = 0; i < interval->receivers; i++) {
        helio_receiver_view *view = &b->views[i];
        const uint64_t lost = i % 10 == 0 ? PACKETS / 50 : 0;
        view->flags |= HELIO_VIEW_NEWS;
        view->received += PACKETS - lost;
        view->lost += lost;
        view->naks += lost;
        view->position = interval->lead - (i % 7 == 0 ? PACKETS : 1);
        view->heard_ns = interval->now_ns;
    }
}

static void begin(bench *b) {
    const uint32_t receivers = b->interval.receivers;
    b->interval = (helio_interval){.now_ns = HELIO_SECOND,
                                   .length_ns = INTERVAL_NS,
                                   .flags = HELIO_INTERVAL_LIMITED,
                                   .receivers = receivers,
                                   .packets_sent = PACKETS,
                                   .bytes_sent = PACKETS * 1000,
                                   .naks = receivers / 10 * (PACKETS / 50),
                                   .offered_bytes = PACKETS * 1000,
                                   .rate = 20000000,
                                   .lead = HISTORY,
                                   .trail = 1,
                                   .history_packets = HISTORY};
    for (uint32_t i = 0; i < receivers; i++) {
        b->views[i] = (helio_receiver_view){.receiver = i + 1,
                                            .incarnation = 1,
                                            .flags = HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS,
                                            .window = 1024,
                                            .index = i,
                                            .round_trip_ns = HELIO_MILLISECOND};
    }
    b->spent_ns = 0;
}

static void note(bench *b, int64_t begun_ns) {
    b->spent_ns += (double)(thread_ns() - begun_ns);
}

static int time_policy(bench *b, const helio_rate_policy *policy, int intervals) {
    const uint32_t receivers = b->interval.receivers;
    void *state = calloc(1, policy->state_bytes + receivers * policy->receiver_bytes + 1);
    if (!state) {
        return -1;
    }
    begin(b);
    const helio_rate_config config = {.rate = 20000000,
                                      .rate_min = 200000,
                                      .loss_high = 0.01,
                                      .loss_low = 0.001,
                                      .quantile = 0.95,
                                      .packet_bytes = 1100,
                                      .entries = receivers};
    helio_rate_decision decision = {.send_limit = HELIO_RATE_NO_SEQUENCE};
    policy->init(state, &config, config.rate, b->interval.now_ns);
    for (int i = 0; i < intervals; i++) {
        pass(b);
        const int64_t begun_ns = thread_ns();
        policy->decide(state, &b->interval, b->views, &decision);
        note(b, begun_ns);
    }
    free(state);
    return 0;
}

static int time_slow_receivers(bench *b, int intervals) {
    helio_slow_receivers engine;
    const helio_slow_receivers_config config = {.highest = HELIO_ACTION_SUSPEND,
                                                .loss = 0.05,
                                                .lag = 0.75,
                                                .buffer = 0.95,
                                                .dwell_ns = 300 * HELIO_MILLISECOND,
                                                .lead_ns = HELIO_SECOND,
                                                .suspend_ns = 2 * HELIO_SECOND,
                                                .expel_after = 3,
                                                .expel_ns = HELIO_SECOND,
                                                .share = 0.1,
                                                .capacity = b->interval.receivers};
    if (helio_slow_receivers_init(&engine, &config)) {
        return -1;
    }
    begin(b);
    for (int i = 0; i < intervals; i++) {
        pass(b);
        const int64_t begun_ns = thread_ns();
        helio_slow_receivers_decide(&engine, &b->interval, b->views);
        note(b, begun_ns);
    }
    helio_slow_receivers_fini(&engine);
    return 0;
}

static void time_storm(bench *b, int intervals) {
    helio_storm storm;
    helio_storm_init(&storm, &(helio_storm_config){.storm_ns = HELIO_SECOND / 2,
                                                   .cut_off_ns = HELIO_SECOND / 5});
    begin(b);
    for (int i = 0; i < intervals; i++) {
        pass(b);
        const int64_t begun_ns = thread_ns();
        helio_storm_decide(&storm, &b->interval, b->interval.naks / 2);
        note(b, begun_ns);
    }
}

size_t lab_cost(uint32_t receivers, int intervals, lab_cost_row *rows, size_t most) {
    bench b = {.interval.receivers = receivers, .views = calloc(receivers, sizeof *b.views)};
    size_t count = 0;
    const helio_rate_policy *policy;
    if (!b.views) {
        return 0;
    }
    for (size_t i = 0; (policy = helio_rate_policy_at(i)) && count + 2 < most; i++) {
        if (time_policy(&b, policy, intervals) == 0) {
            rows[count++] = (lab_cost_row){policy->name, b.spent_ns / intervals / receivers};
        }
    }
    if (time_slow_receivers(&b, intervals) == 0) {
        rows[count++] = (lab_cost_row){"slow receivers", b.spent_ns / intervals / receivers};
    }
    time_storm(&b, intervals);
    rows[count++] = (lab_cost_row){"storms", b.spent_ns / intervals / receivers};
    free(b.views);
    return count;
}
