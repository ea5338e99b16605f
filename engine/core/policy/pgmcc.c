#include "policy/pgmcc.h"

#include "base/math.h"

#include <math.h>

#define SLOW_START 4.0 /* the window doubles per round trip up to here only: the group is many */
#define ACKER_BIAS 0.75
#define LEAST_LOSS 1e-5 /* with less the round trip alone tells receivers apart */

/* RFC 6298, with a floor for networks whose round trip is far below a second. */
#define FIRST_TIMEOUT_NS HELIO_SECOND
#define LEAST_TIMEOUT_NS (10 * HELIO_MILLISECOND)
#define MOST_TIMEOUT_NS (60 * HELIO_SECOND)

enum {
    REORDERED = 3, /* later packets acknowledged, after which a hole is a loss */
    MAP = 64,      /* packets whose acknowledgement is remembered */
    TOLD = 32,     /* of these, told by each acknowledgement */
    FRUITLESS_TIMEOUTS = 2,
};

void helio_pgmcc_init(helio_pgmcc *pgmcc, uint64_t lead) {
    *pgmcc = (helio_pgmcc){
        .window = 1,
        .acker = HELIO_RECEIVER_NONE,
        .newest = lead,
        .acked = UINT64_MAX, /* what was sent before is not asked about */
        .lead = lead,
        .cut_at = lead,
        .timeout_ns = FIRST_TIMEOUT_NS,
        .due_ns = HELIO_NEVER,
    };
}

void helio_pgmcc_on_sent(helio_pgmcc *pgmcc, uint64_t sequence, int64_t now_ns) {
    pgmcc->lead = sequence;
    if (sequence >= helio_pgmcc_send_limit(pgmcc)) {
        pgmcc->full_at = sequence;
    }
    if (pgmcc->due_ns == HELIO_NEVER && sequence > pgmcc->newest) {
        pgmcc->due_ns = now_ns + pgmcc->timeout_ns;
    }
}

/* ---- the acker ---- */

/* 1 / throughput, in round trips per packet and ns; grows with loss and round trip. */
static double cost_of(double loss, int64_t round_trip_ns) {
    if (round_trip_ns <= 0) {
        return 0;
    }
    const double p = loss > LEAST_LOSS ? loss : LEAST_LOSS;
    return (double)round_trip_ns * (sqrt(2 * p / 3) + 12 * sqrt(3 * p / 8) * p * (1 + 32 * p * p));
}

/* Nothing is on its way. */
static void give_up_flight(helio_pgmcc *pgmcc) {
    pgmcc->newest = pgmcc->lead;
    pgmcc->acked = UINT64_MAX;
    pgmcc->due_ns = HELIO_NEVER; /* until something is sent again */
}

static void elect(helio_pgmcc *pgmcc, helio_receiver_index index, double cost) {
    /* The first to answer after a silence may have come after the packet that waits for an answer,
     * and what the timeout has grown to was not its doing. */
    if (pgmcc->acker == HELIO_RECEIVER_NONE && pgmcc->timeouts > 0) {
        give_up_flight(pgmcc);
        pgmcc->timeouts = 0;
        pgmcc->timeout_ns = FIRST_TIMEOUT_NS;
    }
    pgmcc->acker = index;
    pgmcc->acker_cost = cost;
    /* What it has of the packets on their way is not known: holes among those are not taken for
     * losses of its. */
    pgmcc->cut_at = pgmcc->lead;
    pgmcc->rtt.smoothed_ns = 0;
}

static bool challenge(helio_pgmcc *pgmcc, const helio_pgmcc_feedback *feedback) {
    if (pgmcc->acker == HELIO_RECEIVER_NONE) {
        elect(pgmcc, feedback->index, cost_of(feedback->loss, feedback->round_trip_ns));
        return true;
    }
    if (feedback->round_trip_ns <= 0) {
        return false;
    }
    const double cost = cost_of(feedback->loss, feedback->round_trip_ns);
    if (feedback->index == pgmcc->acker) {
        pgmcc->acker_cost = cost;
    } else if (cost * ACKER_BIAS > pgmcc->acker_cost) {
        elect(pgmcc, feedback->index, cost);
        return true;
    }
    return false;
}

bool helio_pgmcc_on_gone(helio_pgmcc *pgmcc, helio_receiver_index index) {
    if (index != pgmcc->acker) {
        return false;
    }
    pgmcc->acker = HELIO_RECEIVER_NONE;
    pgmcc->acker_cost = 0;
    return true;
}

/* ---- the window ---- */

static void measure(helio_pgmcc *pgmcc, int64_t round_trip_ns) {
    helio_rtt_measure(&pgmcc->rtt, round_trip_ns);
    pgmcc->timeout_ns = helio_max(helio_rtt_timeout_ns(&pgmcc->rtt), LEAST_TIMEOUT_NS);
}

/* Takes in the map; returns how many packets are acknowledged for the first time. */
static int take_in(helio_pgmcc *pgmcc, uint64_t newest, uint32_t bitmap) {
    uint64_t map = bitmap;
    if (newest > pgmcc->newest) {
        const uint64_t ahead = newest - pgmcc->newest;
        pgmcc->acked = ahead < MAP ? pgmcc->acked << ahead : 0;
        pgmcc->newest = newest;
    } else {
        const uint64_t behind = pgmcc->newest - newest;
        map = behind < MAP ? map << behind : 0;
    }
    const int count = __builtin_popcountll(map & ~pgmcc->acked);
    pgmcc->acked |= map;
    return count;
}

/* A packet sent after the last cut is missing, and three or more after it are there. */
static bool has_lost(const helio_pgmcc *pgmcc) {
    for (int i = REORDERED; i < TOLD; i++) {
        const uint64_t sequence = pgmcc->newest - (uint64_t)i;
        if (sequence <= pgmcc->cut_at) {
            return false;
        }
        const uint64_t later = pgmcc->acked & ((UINT64_C(1) << i) - 1);
        if (!(pgmcc->acked >> i & 1) && __builtin_popcountll(later) >= REORDERED) {
            return true;
        }
    }
    return false;
}

static void grow(helio_pgmcc *pgmcc, double packets) {
    double quick = SLOW_START - pgmcc->window;
    quick = quick < 0 ? 0 : quick < packets ? quick : packets;
    pgmcc->window += quick;
    pgmcc->window += (packets - quick) / pgmcc->window;
}

static void cut(helio_pgmcc *pgmcc) {
    pgmcc->window = pgmcc->window < 2 ? 1 : pgmcc->window / 2;
    pgmcc->cut_at = pgmcc->lead;
    pgmcc->is_recovering = true;
    pgmcc->cuts++;
}

bool helio_pgmcc_on_feedback(helio_pgmcc *pgmcc, const helio_pgmcc_feedback *feedback,
                             int64_t now_ns) {
    const bool has_changed = challenge(pgmcc, feedback);
    if (feedback->index != pgmcc->acker || !feedback->is_ack || feedback->newest > pgmcc->lead) {
        return has_changed;
    }
    if (feedback->measured_ns > 0) {
        measure(pgmcc, feedback->measured_ns);
    }
    const bool was_full = pgmcc->newest < pgmcc->full_at;
    const int packets = take_in(pgmcc, feedback->newest, feedback->bitmap);
    if (packets == 0) {
        return has_changed;
    }
    pgmcc->timeouts = 0;
    pgmcc->due_ns = pgmcc->newest == pgmcc->lead ? HELIO_NEVER : now_ns + pgmcc->timeout_ns;
    if (pgmcc->newest > pgmcc->cut_at) {
        pgmcc->is_recovering = false;
    }
    if (has_lost(pgmcc)) {
        cut(pgmcc);
    } else if (was_full && !pgmcc->is_recovering) {
        grow(pgmcc, packets);
    }
    return has_changed;
}

bool helio_pgmcc_poll(helio_pgmcc *pgmcc, int64_t now_ns) {
    if (now_ns < pgmcc->due_ns) {
        return false;
    }
    pgmcc->window = 1;
    pgmcc->cut_at = pgmcc->lead;
    pgmcc->is_recovering = false;
    give_up_flight(pgmcc);
    pgmcc->timeout_ns = helio_min(2 * pgmcc->timeout_ns, MOST_TIMEOUT_NS);
    if (++pgmcc->timeouts >= FRUITLESS_TIMEOUTS) {
        helio_pgmcc_on_gone(pgmcc, pgmcc->acker);
    }
    return true;
}
