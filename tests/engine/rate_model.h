/* Senders with a rate policy each, one bottleneck, and receivers behind it: packet by packet, on
 * virtual time, without a protocol.  And the figures by which what a policy did is judged.
 *
 *   senders --(rate)--> [ queue | bottleneck ] --delay--> receivers --delay--> reports
 *
 * A packet that finds the queue full is lost for all receivers; each receiver loses packets of its
 * own beside.  A loss is known when a later packet arrives. */
#ifndef HELIO_TESTS_RATE_MODEL_H
#define HELIO_TESTS_RATE_MODEL_H

#include <math.h>

#include "base/moment.h"
#include "base/random.h"
#include "check.h"
#include "policy/rate.h"

enum {
    MODEL_SENDERS = 2,
    MODEL_RECEIVERS = 100, /* of each sender */
    MODEL_FLIGHT = 1 << 17,
    MODEL_PACKET = 1400,
    MODEL_INTERVALS = 4000, /* longest run */
};

typedef struct model_packet {
    double arrives_s; /* below 0: lost */
} model_packet;

typedef struct model_sender {
    void *state;
    helio_receiver_view views[MODEL_RECEIVERS];
    double until_loss[MODEL_RECEIVERS]; /* packets until the receiver loses one by itself */
    helio_interval interval;
    helio_rate_decision decision;
    double next_s; /* when the next packet leaves */
    uint64_t lead, heard;
    uint64_t arrived, lost; /* at the first receiver, since the last look */
    model_packet flight[MODEL_FLIGHT];
    double rates[MODEL_INTERVALS];     /* in force in each interval */
    double delivered[MODEL_INTERVALS]; /* bytes per second that got through the bottleneck */
    double losses[MODEL_INTERVALS];    /* share of the packets sent in it that did not */
    unsigned falls;
} model_sender;

typedef struct model {
    /* set before model_init */
    const helio_rate_policy *policy;
    helio_rate_config config;
    uint64_t seed;
    uint64_t first_rate[MODEL_SENDERS];
    unsigned senders, receivers;
    double interval_s, delay_s; /* delay: one way */
    double bottleneck, queue;   /* bytes per second, bytes */
    double random_loss;         /* of each receiver */
    double offered;             /* bytes per second; 0: more than any rate */
    bool hides_round_trip, hides_position, has_no_reports;
    /* its own */
    helio_random random;
    double free_s; /* when the bottleneck has sent all that is in its queue */
    double now_s;
    unsigned intervals;
    model_sender sender[MODEL_SENDERS];
} model;

static inline double model_gap(model *m) { /* packets up to the next random loss */
    if (m->random_loss == 0) {
        return INFINITY;
    }
    return floor(log(1 - helio_random_unit(&m->random)) / log(1 - m->random_loss)) + 1;
}

static inline void model_init(model *m) {
    helio_random_init(&m->random, m->seed);
    m->free_s = m->now_s = 0;
    m->intervals = 0;
    m->config.packet_bytes = MODEL_PACKET;
    m->config.entries = m->receivers;
    for (unsigned i = 0; i < m->senders; i++) {
        model_sender *s = &m->sender[i];
        memset(s, 0, offsetof(model_sender, flight));
        s->falls = 0;
        s->state = calloc(1, m->policy->state_bytes + m->receivers * m->policy->receiver_bytes);
        CHECK(s->state);
        m->policy->init(s->state, &m->config, m->first_rate[i], 0);
        s->decision = (helio_rate_decision){.rate = m->first_rate[i]};
        for (unsigned r = 0; r < m->receivers; r++) {
            s->views[r] = (helio_receiver_view){
                .receiver = 1000 * (i + 1) + r,
                .incarnation = 1,
                .index = r,
                .flags = HELIO_VIEW_PRESENT | (m->has_no_reports ? 0 : HELIO_VIEW_REPORTS),
                .round_trip_ns = m->hides_round_trip ? 0 : (int64_t)(2e9 * m->delay_s),
            };
            s->until_loss[r] = model_gap(m);
        }
    }
}

static inline void model_fini(model *m) {
    for (unsigned i = 0; i < m->senders; i++) {
        free(m->sender[i].state);
    }
}

/* ---- the way of a packet ---- */

static inline void model_send(model *m, model_sender *s) {
    const double now_s = s->next_s;
    model_packet *packet = &s->flight[++s->lead % MODEL_FLIGHT];
    const double waits_s = m->free_s > now_s ? m->free_s - now_s : 0;
    const unsigned k = m->intervals;
    if (waits_s * m->bottleneck + MODEL_PACKET > m->queue + MODEL_PACKET) {
        packet->arrives_s = -1;
        s->losses[k] += 1;
    } else {
        m->free_s = now_s + waits_s + MODEL_PACKET / m->bottleneck;
        packet->arrives_s = m->free_s + m->delay_s;
        s->delivered[k] += MODEL_PACKET;
    }
    s->interval.packets_sent++;
    s->interval.bytes_sent += MODEL_PACKET;
    double rate = s->decision.rate ? (double)s->decision.rate : 1e9;
    if (m->offered > 0 && m->offered < rate) {
        rate = m->offered;
    }
    /* Timers and batches jitter; without it the queue would always have room for the same one. */
    s->next_s += MODEL_PACKET / rate * 2 * helio_random_unit(&m->random);
}

/* What a receiver has met since: `arrived` and `lost` packets, and those it loses by itself. */
static inline void model_report(model *m, model_sender *s, unsigned r, uint64_t arrived,
                                uint64_t lost) {
    helio_receiver_view *view = &s->views[r];
    s->until_loss[r] -= (double)arrived;
    while (s->until_loss[r] <= 0) {
        lost++;
        arrived--;
        s->until_loss[r] += model_gap(m);
    }
    view->heard_ns = (int64_t)(m->now_s * 1e9);
    if (m->has_no_reports) {
        view->naks += lost;
        view->flags |= lost ? HELIO_VIEW_NEWS : 0;
        return;
    }
    view->received += arrived;
    view->lost += lost;
    view->position = m->hides_position ? 0 : s->heard;
    view->flags |= HELIO_VIEW_NEWS;
}

static inline void model_hear(model *m, model_sender *s) {
    uint64_t arrived = 0, lost = 0, unknown = 0;
    for (uint64_t at = s->heard + 1; at <= s->lead; at++) {
        const model_packet *packet = &s->flight[at % MODEL_FLIGHT];
        if (packet->arrives_s < 0) {
            unknown++;
            continue;
        }
        if (packet->arrives_s + m->delay_s > m->now_s) {
            break;
        }
        arrived++;
        lost += unknown;
        unknown = 0;
        s->heard = at;
    }
    for (unsigned r = 0; r < m->receivers && arrived + lost > 0; r++) {
        model_report(m, s, r, arrived, lost);
    }
}

/* ---- intervals ---- */

static inline void model_decide(model *m, model_sender *s) {
    helio_interval *interval = &s->interval;
    interval->now_ns = (int64_t)(m->now_s * 1e9);
    interval->length_ns = (int64_t)(m->interval_s * 1e9);
    interval->receivers = m->receivers;
    interval->rate = s->decision.rate;
    interval->lead = s->lead;
    if (m->offered == 0 || (s->decision.rate && (double)s->decision.rate < m->offered)) {
        interval->flags = HELIO_INTERVAL_LIMITED;
    }
    m->policy->decide(s->state, interval, s->views, &s->decision);
    s->falls += s->decision.state == HELIO_RATE_DECREASE;
    for (unsigned r = 0; r < m->receivers; r++) {
        s->views[r].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
    }
    *interval = (helio_interval){0};
}

static inline void model_interval(model *m) {
    CHECK(m->intervals < MODEL_INTERVALS);
    const double until_s = m->now_s + m->interval_s;
    const unsigned k = m->intervals;
    for (unsigned i = 0; i < m->senders; i++) {
        m->sender[i].rates[k] = (double)m->sender[i].decision.rate;
        m->sender[i].delivered[k] = m->sender[i].losses[k] = 0;
    }
    for (;;) {
        model_sender *next = &m->sender[0];
        for (unsigned i = 1; i < m->senders; i++) {
            if (m->sender[i].next_s < next->next_s) {
                next = &m->sender[i];
            }
        }
        if (next->next_s >= until_s) {
            break;
        }
        model_send(m, next);
    }
    m->now_s = until_s;
    for (unsigned i = 0; i < m->senders; i++) {
        model_sender *s = &m->sender[i];
        s->delivered[k] /= m->interval_s;
        s->losses[k] /= s->interval.packets_sent ? (double)s->interval.packets_sent : 1;
        model_hear(m, s);
        model_decide(m, s);
    }
    m->intervals++;
}

static inline void model_run(model *m, unsigned intervals) {
    for (unsigned i = 0; i < intervals; i++) {
        model_interval(m);
    }
}

/* ---- figures ---- */

static inline double model_mean(const double *values, unsigned count) {
    double sum = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / count;
}

static inline double model_variation(const double *values, unsigned count) {
    const double mean = model_mean(values, count);
    double squares = 0;
    for (unsigned i = 0; i < count; i++) {
        squares += (values[i] - mean) * (values[i] - mean);
    }
    return sqrt(squares / count) / mean;
}

static inline double model_highest(const double *values, unsigned count) {
    double highest = values[0];
    for (unsigned i = 1; i < count; i++) {
        highest = values[i] > highest ? values[i] : highest;
    }
    return highest;
}

static inline double model_lowest(const double *values, unsigned count) {
    double lowest = values[0];
    for (unsigned i = 1; i < count; i++) {
        lowest = values[i] < lowest ? values[i] : lowest;
    }
    return lowest;
}

/* The first of the values within a share of `aim`; `count` when none is. */
static inline unsigned model_reaches(const double *values, unsigned count, double aim,
                                     double share) {
    unsigned i = 0;
    while (i < count && fabs(values[i] - aim) > share * aim) {
        i++;
    }
    return i;
}

/* Runs of intervals with loss above a share, at most `gap` such without it between. */
static inline unsigned model_episodes(const double *losses, unsigned count, double share,
                                      unsigned gap) {
    unsigned episodes = 0, calm = gap + 1;
    for (unsigned i = 0; i < count; i++) {
        if (losses[i] > share) {
            episodes += calm > gap;
            calm = 0;
        } else {
            calm++;
        }
    }
    return episodes;
}

static inline double model_jain(const double *values, unsigned count) {
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < count; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    return sum * sum / (count * squares);
}

#endif
