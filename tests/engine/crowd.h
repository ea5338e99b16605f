/* A crowd: a source and its receivers as the policies see them, without a network or packets.
 *
 * Each step is a control interval.  The source sends; a receiver misses some of it by chance, is
 * repaired, takes from its window as fast as its application drains it, and reports.  One that
 * needs what has left the history loses it and goes on from there. */
#ifndef HELIO_TESTS_CROWD_H
#define HELIO_TESTS_CROWD_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/random.h"
#include "policy/interval.h"

enum { CROWD_MAX = 64 };
#define CROWD_STEP_NS (10 * HELIO_MILLISECOND)
#define CROWD_PACKET_BYTES 1000

typedef struct crowd_receiver {
    double loss;          /* chance that a packet misses it */
    double drain;         /* packets per second its application takes; 0: none */
    double position;      /* exact */
    double window;        /* packets it has room for beyond its position */
    uint64_t unrecovered; /* packets it never got */
    int64_t lost_ns;      /* when the first of them was lost; 0: none was */
    int report_steps;     /* reports every so many intervals; 0: never */
    bool is_silent;       /* it says nothing at all */
    bool skips;           /* suspended: what does not fit it does not want any more */
} crowd_receiver;

typedef struct crowd {
    helio_random random;
    uint32_t count;
    double rate; /* packets per second */
    double sent; /* exact */
    helio_interval interval;
    helio_receiver_view views[CROWD_MAX];
    crowd_receiver receivers[CROWD_MAX];
    uint64_t steps;
} crowd;

static inline void crowd_init(crowd *c, uint64_t seed, uint32_t count, double rate) {
    memset(c, 0, sizeof *c);
    helio_random_init(&c->random, seed);
    c->count = count;
    c->rate = rate;
    c->interval = (helio_interval){
        .now_ns = 1000 * HELIO_SECOND,
        .wall_ns = 1000 * HELIO_SECOND,
        .length_ns = CROWD_STEP_NS,
        .receivers = count,
        .lead = 1 << 20,
        .trail = 1 << 20,
        .history_packets = 16384,
    };
    c->sent = 1 << 20;
    for (uint32_t i = 0; i < count; i++) {
        c->receivers[i] =
            (crowd_receiver){.drain = 1e9, .position = c->sent, .window = 4096, .report_steps = 1};
        c->views[i] = (helio_receiver_view){
            .receiver = 100 + i,
            .incarnation = 1,
            .flags = HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS | HELIO_VIEW_PINNED,
            .position = c->interval.lead,
            .index = i,
            .heard_ns = c->interval.now_ns,
        };
    }
}

/* How many of so many packets are lost: gaps between losses are geometric. */
static inline uint64_t crowd_lost(crowd *c, uint64_t packets, double loss) {
    if (loss <= 0) {
        return 0;
    }
    const double scale = log1p(-loss);
    uint64_t lost = 0;
    double at = 0;
    for (;;) {
        at += 1 + floor(log(1 - helio_random_unit(&c->random)) / scale);
        if (at > (double)packets) {
            return lost;
        }
        lost++;
    }
}

static inline void crowd_take(crowd *c, uint32_t i, uint64_t sent) {
    crowd_receiver *receiver = &c->receivers[i];
    helio_receiver_view *view = &c->views[i];
    const helio_interval *interval = &c->interval;
    const uint64_t lost = crowd_lost(c, sent, receiver->loss);
    const double before = receiver->position;
    double next = before + receiver->drain * (double)CROWD_STEP_NS / (double)HELIO_SECOND;
    if (next > c->sent) {
        next = c->sent;
    }
    receiver->position = next;
    const double needs = next + 1 + receiver->window;
    if (receiver->skips && next < c->sent - receiver->window) { /* full: what comes is dropped */
        receiver->position = c->sent - receiver->window;
    } else if (needs < (double)interval->trail) {
        if (receiver->lost_ns == 0) {
            receiver->lost_ns = interval->now_ns;
        }
        receiver->unrecovered += (uint64_t)((double)interval->trail - needs);
        view->unrecoverable = receiver->unrecovered;
        receiver->position = (double)interval->trail - 1 - receiver->window;
    }
    view->flags &= ~(uint32_t)HELIO_VIEW_NEWS;
    const bool is_suspended = view->flags & HELIO_VIEW_SUSPENDED;
    if (!is_suspended || !(view->flags & HELIO_VIEW_REPORTS)) { /* others do not know of it */
        view->naks += lost;
        c->interval.naks += lost;
    }
    if (!is_suspended) {
        view->repairs += lost;
        c->interval.repair_packets += lost;
    }
    if (receiver->is_silent) {
        return;
    }
    const bool reports =
        receiver->report_steps && (c->steps + i) % (uint64_t)receiver->report_steps == 0;
    if (lost || reports) {
        view->flags |= HELIO_VIEW_NEWS;
        view->heard_ns = interval->now_ns;
    }
    if (!(view->flags & HELIO_VIEW_REPORTS)) {
        return;
    }
    view->received += is_suspended ? sent - lost : sent;
    view->lost += lost;
    if (!reports) {
        return;
    }
    view->position = (uint64_t)receiver->position;
    view->window = (uint32_t)receiver->window;
    const double fill = (c->sent - receiver->position) / receiver->window;
    view->buffer_fill = (uint32_t)(65535 * (fill < 1 ? fill : 1));
}

/* An interval passes. */
static inline void crowd_step(crowd *c) {
    helio_interval *interval = &c->interval;
    const uint64_t before = interval->lead;
    c->sent += c->rate * (double)CROWD_STEP_NS / (double)HELIO_SECOND;
    interval->lead = (uint64_t)c->sent;
    if (interval->lead + 1 > interval->trail + interval->history_packets) {
        interval->trail = interval->lead + 1 - interval->history_packets;
    }
    interval->now_ns += CROWD_STEP_NS;
    interval->wall_ns += CROWD_STEP_NS;
    interval->packets_sent = interval->lead - before;
    interval->bytes_sent = interval->offered_bytes = interval->packets_sent * CROWD_PACKET_BYTES;
    interval->naks = interval->repair_packets = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        crowd_take(c, i, interval->packets_sent);
    }
    c->steps++;
}

#endif
