/* The rate follows the receivers' loss: nobody is excluded, everybody waits for whom it concerns.
 *
 *   loss above loss_high   the rate falls at once to what got through, less a margin
 *   between the two        it stays, and after a while tries a little more
 *   below loss_low         fast up to near where it was too much, from there packet by packet
 *
 * The loss of one receiver is a lower bound (policy/loss.h), from its own counts and, if it reports
 * none, from the packets it asked for.  Which receiver's counts is `who`: the worst one's, a
 * quantile, or the worst one of those tagged.
 *
 * After a fall nothing counts that happened before it: each receiver starts over with the first
 * report that has all packets sent until then behind it, or when a round trip is over, by far if
 * nobody knows how long it is.  So a long feedback delay never makes one loss count twice.
 *
 * Steps up are packets per interval, not shares of the rate: of two senders on one path both gain
 * the same and the faster one gives up more at each fall, which makes them equal.  Who reaches less
 * at a fall than at the one before, step by step, shares the path with a slower one that grows: he
 * falls deeper.  The steps grow with the square of the time since the last loss, so that a path
 * become wider is filled soon at any rate, and begin anew where it was too much the last time.
 * Within the hundred packets it takes to learn that a step was too much, they never add up to more
 * than a fifth.
 *
 * So that the loss stays below loss_high in the long run, whatever a single step costs, there is a
 * budget: every packet sent adds a share to it, every one lost is taken from it, and while it is
 * overdrawn the rate does not rise beyond what got through at the last fall; but for one who gains,
 * fall by fall: he is the slower one on a shared path.
 *
 * A rate that is not used says nothing: it grows only while data waits for it, or while half of it
 * is used.  ADR 0011 has the reasons and the figures. */
#include <math.h>

#include "policy/loss.h"
#include "policy/rate.h"

#define MARGIN 0.92          /* of what got through: the queue on the way must drain */
#define YIELD 0.8            /* of that, for who gives way to a slower one */
#define YIELD_BELOW 0.97     /* of what was reached at the fall before: he does */
#define YIELD_MOST_LOSS 0.15 /* with more the path has changed, and nobody is to be given way to */
#define GAINING 1.03      /* times what was reached at the fall before: a slower one that grows */
#define MOST_CUT 0.25     /* a fall leaves at least this share */
#define SILENT_CUT 0.75   /* a fall for silence: nobody knows how much was lost */
#define NEAR_CEILING 0.92 /* of what got through: up to there it rises fast */
#define FAST_STEP 0.1     /* share of the rate by which it does */
#define BLIND_GROWTH 0.2  /* most growth within EVIDENCE_PACKETS */
#define EVIDENCE_PACKETS 100 /* of which loss.c makes a judgement */
#define FIRST_STEP 0.6       /* packets per interval, more in each */
#define STEP_GROWTH 150.0    /* times the step grows by the square of the rises over this */
#define BUDGET 0.8 /* of loss_high: share of the packets that may be lost in the long run */
#define UNUSED_MULTIPLE 2.0 /* a rate nobody waits for grows up to this times what is sent */

enum {
    FREEZE_INTERVALS = 2,   /* at least, between two falls */
    CLEAN_INTERVALS = 2,    /* below loss_low before it rises */
    BAND_INTERVALS = 12,    /* between loss_low and loss_high before it tries more */
    SETTLE_INTERVALS = 10,  /* and ... */
    SETTLE_ROUND_TRIPS = 4, /* ... so many: whatever was sent before is heard of */
    STALE_INTERVALS = 64,   /* old evidence that nothing was added to says nothing any more */
    SILENCES_MAX = 3,       /* of one receiver: it has gone, until it is heard again */
    YIELD_RISES = 4,        /* fewer: the last fall was not enough */
    BUDGET_CREDIT = 40,     /* intervals' worth of the budget that can be saved, */
    BUDGET_DEBT = 30,       /* and owed */
    SENT_MEMORY = 8,        /* intervals over which what is sent is smoothed */
};

typedef struct receiver {
    uint64_t receiver; /* who has the entry; with its incarnation */
    uint64_t incarnation;
    uint32_t era;   /* in which its counts began; 0: none yet */
    uint32_t stale; /* intervals with data and without news of it */
    uint64_t seen;  /* cumulative counts that are taken into account */
    uint64_t lost;
    uint64_t lost_before; /* of these, when its counts began */
    helio_loss loss;
    helio_loss_bound bound;
    int64_t silent_ns; /* while data was sent */
    uint32_t silences;
    uint32_t ranked; /* no matter of this receiver: the i-th index while they are put in order */
} receiver;

typedef struct dynamic {
    helio_rate_config config;
    double rate;        /* bytes per second; 0: no limit yet */
    double ceiling;     /* up to near there it rises fast; 0: none yet */
    double passed;      /* what got through at the last fall; 0: none yet */
    double reached;     /* before the last fall; 0: none yet */
    bool is_gaining;    /* it was more than at the fall before */
    double sent;        /* bytes per second really sent, smoothed */
    uint32_t unlimited; /* intervals since data waited for the rate */
    uint32_t era;       /* begins with each fall */
    uint64_t lead;      /* newest packet sent before it */
    int64_t thaw_ns;    /* no change before */
    int64_t settled_ns; /* whatever is heard from here on belongs to the era */
    uint32_t fell_for;  /* index of the receiver that the last fall was for */
    double budget;      /* packets that may still be lost; below 0: too many were */
    uint32_t counted;   /* receivers that counted last */
    double z;           /* for so many */
    uint32_t clean;     /* intervals with loss below loss_low */
    uint32_t tolerable; /* intervals with loss below loss_high */
    double rises;       /* since loss was last above loss_low, in round trips if these are longer */
    receiver receivers[]; /* one per index */
} dynamic;

/* What the receivers say in one interval. */
typedef struct hearing {
    helio_loss_bound loss; /* of the one that decides */
    uint32_t worst;        /* its entry */
    uint32_t silent;       /* index of one that has fallen silent */
    uint32_t counted;
    bool is_early;         /* somebody tells of packets sent before the last fall */
    int64_t round_trip_ns; /* the longest */
} hearing;

/* ---- one receiver ---- */

static bool reports(const helio_receiver_view *view) {
    return (view->flags & HELIO_VIEW_REPORTS) != 0;
}

static bool counts(const dynamic *state, const helio_receiver_view *view) {
    const uint32_t out = HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED | HELIO_VIEW_LEFT;
    const bool is_chosen =
        state->config.who != HELIO_RATE_RECEIVERS_TAGGED || (view->flags & HELIO_VIEW_TAGGED) != 0;
    return (view->flags & HELIO_VIEW_PRESENT) && !(view->flags & out) && is_chosen;
}

/* What it tells now has all of the era before behind it: because it has passed all that on, or as
 * there was time enough for a round trip. */
static bool is_of_era(const dynamic *state, const helio_receiver_view *view, int64_t now_ns) {
    return view->position >= state->lead ||
           now_ns >= (view->round_trip_ns ? state->thaw_ns : state->settled_ns);
}

static uint64_t lost_of(const helio_receiver_view *view) {
    return reports(view) ? view->lost : view->naks;
}

/* What was counted until now is not of this era. */
static void begin(receiver *r, const dynamic *state, const helio_receiver_view *view) {
    r->era = state->era;
    r->stale = 0;
    r->seen = view->received + view->lost;
    r->lost = r->lost_before = lost_of(view);
}

/* Takes what is new in the view into account.  A receiver that does not report got all that was
 * sent and that it did not ask for. */
static void take(receiver *r, const dynamic *state, const helio_receiver_view *view,
                 uint64_t packets_sent) {
    const uint64_t seen = view->received + view->lost;
    const uint64_t lost = lost_of(view) - r->lost;
    const uint64_t packets = reports(view) ? seen - r->seen : packets_sent;
    if (packets || lost) {
        helio_loss_add(&r->loss, lost, packets);
        r->bound = helio_loss_judge(&r->loss, state->z);
        r->stale = 0;
    } else if (packets_sent && ++r->stale == STALE_INTERVALS) {
        r->loss = (helio_loss){0};
        r->bound = (helio_loss_bound){0};
    }
    r->seen = seen;
    r->lost += lost;
}

/* It should be heard and is not; true once per silence_ns. */
static bool falls_silent(receiver *r, const dynamic *state, const helio_receiver_view *view,
                         const helio_interval *interval) {
    if (view->flags & HELIO_VIEW_NEWS) {
        r->silent_ns = 0;
        r->silences = 0;
    } else if (interval->packets_sent > 0) {
        r->silent_ns += interval->length_ns;
    }
    const int64_t most_ns =
        state->config.silence_ns ? state->config.silence_ns : interval->silence_ns;
    if (!reports(view) || most_ns == 0 || r->silences == SILENCES_MAX || r->silent_ns < most_ns ||
        interval->now_ns < state->thaw_ns) {
        return false;
    }
    r->silent_ns = 0;
    r->silences++;
    return true;
}

static void listen(receiver *r, dynamic *state, const helio_receiver_view *view,
                   const helio_interval *interval) {
    /* Counts that fell: it was forgotten and has come again, before anything was decided
     * without. */
    const bool is_back = view->received + view->lost < r->seen || lost_of(view) < r->lost;
    if (r->receiver != view->receiver || r->incarnation != view->incarnation || is_back) {
        *r = (receiver){.receiver = view->receiver, .incarnation = view->incarnation};
    }
    if (r->era == state->era) {
        take(r, state, view, interval->packets_sent);
        return;
    }
    r->loss = (helio_loss){0};
    r->bound = (helio_loss_bound){0};
    if (!is_of_era(state, view, interval->now_ns)) {
        return;
    }
    if (r->era != 0 && view->index == state->fell_for) { /* lost on the way when the rate fell */
        state->budget -= (double)(lost_of(view) - r->lost);
    }
    begin(r, state, view);
}

/* ---- all of them ---- */

/* Puts the entry with the k-th highest bound at k, and in front of it those with higher ones. */
static uint32_t select_place(receiver *receivers, uint32_t count, uint32_t k) {
    uint32_t low = 0, high = count - 1;
    while (low < high) {
        const double pivot = receivers[receivers[low + (high - low) / 2].ranked].bound.at_least;
        uint32_t i = low, j = high;
        while (i <= j) {
            while (receivers[receivers[i].ranked].bound.at_least > pivot) {
                i++;
            }
            while (receivers[receivers[j].ranked].bound.at_least < pivot) {
                j--;
            }
            if (i > j) {
                break;
            }
            const helio_receiver_index index = receivers[i].ranked;
            receivers[i++].ranked = receivers[j].ranked;
            receivers[j].ranked = index;
            if (j-- == 0) {
                break;
            }
        }
        if (k <= j && j < high) {
            high = j;
        } else if (k >= i) {
            low = i;
        } else {
            break;
        }
    }
    return receivers[k].ranked;
}

/* Of those that count, ranked[0] to ranked[counted - 1], the one that decides. */
static uint32_t decider(dynamic *state, uint32_t worst, uint32_t counted) {
    if (state->config.who != HELIO_RATE_RECEIVERS_QUANTILE || counted == 0) {
        return worst;
    }
    const uint32_t within = (uint32_t)ceil(state->config.quantile * counted - 1e-9);
    return select_place(state->receivers, counted, counted - (within ? within : 1));
}

static hearing hear(dynamic *state, const helio_interval *interval,
                    const helio_receiver_view *views) {
    hearing heard = {.worst = HELIO_RECEIVER_NONE, .silent = HELIO_RECEIVER_NONE};
    const uint32_t entries =
        interval->receivers < state->config.entries ? interval->receivers : state->config.entries;
    double highest = 0;
    for (helio_receiver_index index = 0; index < entries; index++) {
        const helio_receiver_view *view = &views[index];
        if (!counts(state, view)) {
            continue;
        }
        receiver *r = &state->receivers[index];
        listen(r, state, view, interval);
        heard.is_early |= r->era != state->era && (view->flags & HELIO_VIEW_NEWS);
        if (falls_silent(r, state, view, interval)) {
            heard.silent = index;
        }
        if (r->bound.at_least > highest) {
            highest = r->bound.at_least;
            heard.worst = index;
        }
        if (view->round_trip_ns > heard.round_trip_ns) {
            heard.round_trip_ns = view->round_trip_ns;
        }
        state->receivers[heard.counted++].ranked = index;
    }
    heard.worst = decider(state, heard.worst, heard.counted);
    if (heard.worst != HELIO_RECEIVER_NONE) {
        heard.loss = state->receivers[heard.worst].bound;
    }
    if (heard.counted != state->counted) {
        state->counted = heard.counted;
        state->z = helio_loss_z(heard.counted);
    }
    return heard;
}

/* ---- the rate ---- */

static double clamped(const dynamic *state, double rate) {
    const double most = (double)state->config.rate, least = (double)state->config.rate_min;
    if (most > 0 && rate > most) {
        rate = most;
    }
    if (rate < state->config.packet_bytes) {
        rate = state->config.packet_bytes; /* one packet per second */
    }
    return rate < least ? least : rate;
}

static void fall(dynamic *state, const helio_interval *interval, const hearing *heard,
                 double share_left, helio_rate_decision *out) {
    /* A rate that was not used, or not in force, is not what was too much. */
    const bool is_in_force = state->rate > 0 && interval->rate == (uint64_t)state->rate;
    double used = state->rate;
    if (!is_in_force || (state->unlimited >= SENT_MEMORY && state->sent < used)) {
        used = state->sent;
    }
    if (share_left < MOST_CUT) {
        share_left = MOST_CUT;
    }
    const bool yields = used < YIELD_BELOW * state->reached && state->rises > YIELD_RISES &&
                        share_left > 1 - YIELD_MOST_LOSS;
    state->is_gaining = used > GAINING * state->reached;
    state->reached = used;
    state->passed = used * share_left;
    state->ceiling = used * share_left * (yields ? YIELD : 1);
    state->rate = clamped(state, state->ceiling * MARGIN);
    if (heard->worst != HELIO_RECEIVER_NONE) {
        const receiver *r = &state->receivers[heard->worst];
        state->budget -= (double)(r->lost - r->lost_before);
    }
    state->fell_for = heard->worst;
    state->era++;
    state->lead = interval->lead;
    state->thaw_ns = interval->now_ns + FREEZE_INTERVALS * interval->length_ns +
                     heard->round_trip_ns + heard->round_trip_ns / 2;
    state->settled_ns = state->thaw_ns + SETTLE_INTERVALS * interval->length_ns +
                        SETTLE_ROUND_TRIPS * heard->round_trip_ns;
    state->clean = state->tolerable = 0;
    state->rises = 0;
    out->state = HELIO_RATE_DECREASE;
}

static void rise(dynamic *state, const helio_interval *interval, const hearing *heard,
                 helio_rate_decision *out) {
    const double packet = state->config.packet_bytes;
    const double seconds = (double)interval->length_ns / 1e9;
    const double part = heard->round_trip_ns > interval->length_ns
                            ? (double)interval->length_ns / (double)heard->round_trip_ns
                            : 1;
    double step =
        FIRST_STEP * (1 + state->rises * state->rises / STEP_GROWTH) * part * packet / seconds;
    const double near = NEAR_CEILING * state->ceiling;
    if (state->rate < near && step < FAST_STEP * state->rate) {
        step = FAST_STEP * state->rate < near - state->rate ? FAST_STEP * state->rate
                                                            : near - state->rate;
    }
    const double most =
        state->rate * BLIND_GROWTH * state->rate * seconds / packet / EVIDENCE_PACKETS;
    double rate = state->rate + (step < most ? step : most);
    if (state->budget < 0 && !state->is_gaining && rate > state->ceiling) {
        rate = state->rate;
        state->rises = 0;
    }
    rate = clamped(state, rate);
    state->rises += part;
    if (state->rate < state->passed && rate >= state->passed && !state->is_gaining) {
        state->rises = 0; /* slowly past what was too much before */
    }
    out->state = rate > state->rate ? HELIO_RATE_INCREASE : HELIO_RATE_HOLD;
    state->rate = rate;
}

/* Data waits for the rate, or uses a good part of it. */
static bool is_used(const dynamic *state) {
    return state->unlimited < SENT_MEMORY || state->sent * UNUSED_MULTIPLE > state->rate;
}

static void move(dynamic *state, const helio_interval *interval, const hearing *heard,
                 helio_rate_decision *out) {
    const helio_rate_config *config = &state->config;
    out->state = HELIO_RATE_HOLD;
    if (interval->now_ns < state->thaw_ns || heard->is_early) {
        out->why = "waiting for what the last fall does";
        return;
    }
    const double bound = heard->loss.at_least;
    state->clean = bound < config->loss_low ? state->clean + 1 : 0;
    state->tolerable = bound <= config->loss_high ? state->tolerable + 1 : 0;
    if (bound > config->loss_high) {
        out->why = "it loses more than loss_high";
        fall(state, interval, heard, 1 - heard->loss.share, out);
    } else if (heard->silent != HELIO_RECEIVER_NONE) {
        out->why = "it has fallen silent";
        out->worst = heard->silent;
        fall(state, interval, heard, SILENT_CUT, out);
    } else if (state->rate == 0) {
        out->why = "no loss, no limit";
    } else if (!is_used(state)) {
        out->why = "the rate is not used";
        state->rises = 0;
    } else if (state->clean >= CLEAN_INTERVALS) {
        out->why = "no loss";
        rise(state, interval, heard, out);
    } else if (state->tolerable >= BAND_INTERVALS) {
        out->why = "the loss is tolerable";
        state->rises = 0;
        rise(state, interval, heard, out);
    } else {
        out->why = "some loss";
    }
}

/* Each packet sent adds to what may be lost. */
static void spend(dynamic *state, const helio_interval *interval) {
    const double share = BUDGET * state->config.loss_high;
    const double worth =
        share * state->sent * (double)interval->length_ns / 1e9 / state->config.packet_bytes;
    state->budget += share * (double)interval->packets_sent;
    if (state->budget > BUDGET_CREDIT * worth) {
        state->budget = BUDGET_CREDIT * worth;
    }
    if (state->budget < -BUDGET_DEBT * worth) {
        state->budget = -BUDGET_DEBT * worth;
    }
}

static void decide(void *policy, const helio_interval *interval, const helio_receiver_view *views,
                   helio_rate_decision *out) {
    dynamic *state = policy;
    if (interval->length_ns <= 0) {
        return;
    }
    const double sent = (double)interval->bytes_sent * 1e9 / (double)interval->length_ns;
    state->sent += (sent - state->sent) / (state->sent > 0 ? SENT_MEMORY : 1);
    state->unlimited = interval->flags & HELIO_INTERVAL_LIMITED ? 0
                       : state->unlimited < SENT_MEMORY         ? state->unlimited + 1
                                                                : SENT_MEMORY;
    spend(state, interval);
    const hearing heard = hear(state, interval, views);
    out->worst = heard.worst;
    out->signal = heard.loss.at_least;
    move(state, interval, &heard, out);
    out->rate = (uint64_t)state->rate;
    out->send_limit = HELIO_RATE_NO_SEQUENCE;
}

static void init(void *policy, const helio_rate_config *config, uint64_t rate, int64_t now_ns) {
    dynamic *state = policy;
    const double first = (double)(rate ? rate : config->rate);
    *state = (dynamic){
        .config = *config,
        .era = 1,
        .thaw_ns = now_ns,
        .settled_ns = now_ns,
        .z = helio_loss_z(1),
        .unlimited = SENT_MEMORY,
        .fell_for = HELIO_RECEIVER_NONE,
    };
    state->rate = first > 0 ? clamped(state, first) : 0;
}

const helio_rate_policy helio_rate_dynamic = {
    .name = "dynamic",
    .state_bytes = sizeof(dynamic),
    .receiver_bytes = sizeof(receiver),
    .init = init,
    .decide = decide,
};
