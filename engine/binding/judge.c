#include "judge.h"

#include <math.h>
#include <string.h>

enum { STEPS_LEAST = 3, STALLED_STEPS = 3, AGREE = 2, AGREE_ON_OK = 3, GAP_STEPS = 10 };
enum { LATE_LOOKS = 3 }; /* after this number of late looks in a row the clock was set back */
static const double TREND = 0.8;   /* share of the steps in one direction that makes a trend */
static const double GROWTH = 0.01; /* share of the sent messages; smaller growth is ignored */
static const uint64_t EXACT = UINT64_C(1) << 53;

__extension__ typedef __int128 wide; /* a lag, and the difference of two */

/* A counter may be any word: a quotient is rounded once where doubles are not exact, too. */
static double ratio(uint64_t part, uint64_t whole) {
    if (part <= EXACT && whole <= EXACT) {
        return (double)part / (double)whole;
    }
    return (double)((long double)part / (long double)whole);
}

static uint64_t rise(uint64_t now, uint64_t before) {
    return now > before ? now - before : 0;
}

static wide lag_of(const helio_look *look) {
    return (wide)look->in_flight + (wide)look->waiting;
}

static double lag_seconds(const helio_judged *one) {
    return isnan(one->lag_seconds) ? 0.0 : one->lag_seconds;
}

/* ---- lag ---- */

bool helio_positions_behind(const helio_positions *line, uint64_t message, helio_way *way) {
    const size_t count = line->count;
    if (count == 0 || message >= line->sent[count - 1]) {
        return false;
    }
    size_t after = 0;
    for (size_t end = count; after < end;) {
        const size_t middle = after + (end - after) / 2;
        if (line->sent[middle] <= message) {
            after = middle + 1;
        } else {
            end = middle;
        }
    }
    const int64_t last_ns = line->times_ns[count - 1];
    const uint64_t last_bytes = line->bytes[count - 1];
    if (after == 0) {
        *way = (helio_way){last_ns - line->times_ns[0], last_bytes - line->bytes[0], false};
        return true;
    }
    const uint64_t older = line->sent[after - 1], older_bytes = line->bytes[after - 1];
    const int64_t older_ns = line->times_ns[after - 1];
    const double part = ratio(message - older, line->sent[after] - older);
    const double ns = rint(part * (double)(line->times_ns[after] - older_ns));
    const double bytes = rint(part * (double)(line->bytes[after] - older_bytes));
    const uint64_t own = bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
    *way = (helio_way){last_ns - older_ns - (int64_t)ns, last_bytes - older_bytes - own, true};
    return true;
}

/* The age of the oldest message that the application does not have.  Messages in the receive queue
 * are older than messages in flight. */
static void find_age(helio_judged *one, uint64_t queue_age, const helio_positions *line) {
    helio_way way;
    one->lag_seconds = NAN;
    one->basis = HELIO_BASIS_UNKNOWN;
    one->has_way = 0;
    if (one->in_flight == 0 && one->waiting == 0) {
        if (one->has_sender) {
            one->lag_seconds = 0.0;
            one->basis = HELIO_BASIS_MEASURED;
        }
        return;
    }
    if (line != NULL && helio_positions_behind(line, one->expected, &way)) {
        one->has_way = 1;
        one->way_bytes = way.bytes;
    }
    if (one->waiting > 0 && queue_age > 0) {
        one->lag_seconds = (double)queue_age / 1e9;
        one->basis = HELIO_BASIS_MEASURED;
    } else if (one->has_way && one->waiting == 0) {
        one->lag_seconds = (double)way.age_ns / 1e9;
        one->basis = way.is_bounded ? HELIO_BASIS_WATCHED : HELIO_BASIS_AT_LEAST;
    } else if (one->has_sender && one->sent_per_s != 0.0) {
        const wide lag = (wide)one->in_flight + (wide)one->waiting;
        one->lag_seconds = (double)lag / one->sent_per_s;
        one->basis = HELIO_BASIS_ESTIMATED;
    }
}

void helio_judged_lag(helio_judged *one, const helio_receiver_cells *now,
                      const helio_receiver_cells *before, const helio_positions *line) {
    one->expected = now->next_message;
    one->all_delivered = now->messages_delivered;
    one->all_lost = now->messages_lost;
    one->all_queue_full = now->queue_full;
    one->delivered = rise(now->messages_delivered, before->messages_delivered);
    one->lost = rise(now->messages_lost, before->messages_lost);
    one->queue_full = rise(now->queue_full, before->queue_full);
    one->in_flight = one->has_sender ? rise(one->sent, now->next_message) : 0;
    one->waiting = now->queue_messages;
    one->in_flight_before = one->had_sender ? rise(one->sent_before, before->next_message) : 0;
    one->waiting_before = before->queue_messages;
    one->queue_fill = 0.0;
    if (now->queue_limit_bytes > 0) {
        one->queue_fill = fmin(1.0, ratio(now->queue_bytes, now->queue_limit_bytes));
    }
    find_age(one, now->queue_age, line);
}

/* ---- the class of one interval ---- */

static int seen(const helio_judged *one) {
    const wide lag = (wide)one->in_flight + (wide)one->waiting;
    const wide before = (wide)one->in_flight_before + (wide)one->waiting_before;
    const bool is_late = lag_seconds(one) >= HELIO_JUDGE_LAG_SECONDS;
    const bool lags = lag >= HELIO_JUDGE_LAG_MESSAGES;
    const bool gains = one->has_before && lag < before;
    if (one->end != HELIO_RUNS) {
        return HELIO_CLASS_STOPPED;
    }
    if (lags && one->delivered == 0) {
        const bool waited = one->has_before && before >= HELIO_JUDGE_LAG_MESSAGES && before <= lag;
        if (waited || is_late) {
            return HELIO_CLASS_STALLED;
        }
    }
    const bool waits = one->queue_full > 0 || one->queue_fill >= HELIO_JUDGE_QUEUE_FILL;
    if ((is_late && lags && !gains) || (waits && !(gains && one->lost == 0))) {
        return HELIO_CLASS_FALLING_BEHIND;
    }
    if (one->lost > 0 || one->missing_ratio >= HELIO_JUDGE_MISSING_RATIO) {
        return HELIO_CLASS_LOSSY;
    }
    return gains && (is_late || one->queue_full > 0) ? HELIO_CLASS_RECOVERING : HELIO_CLASS_OK;
}

/* The score of a class; 0 is best. */
static double badness_of(const helio_judged *one, int behaviour) {
    const double late = lag_seconds(one);
    double strain;
    switch (behaviour) {
    case HELIO_CLASS_STOPPED:
        return one->end == HELIO_ENDED ? 900.0 : 0.0;
    case HELIO_CLASS_STALLED:
        return 850.0;
    case HELIO_CLASS_FALLING_BEHIND:
        return 600.0 + 50.0 * one->queue_fill + fmin(49.0, 10.0 * late) +
               (one->lost > 0 ? 100.0 : 0.0);
    case HELIO_CLASS_LOSSY:
        return (one->lost > 0 ? 700.0 : 400.0) + fmin(99.0, 1000.0 * one->missing_ratio);
    case HELIO_CLASS_RECOVERING:
        return 200.0 + fmin(99.0, 10.0 * late);
    default:
        strain = fmax(one->queue_fill, one->missing_ratio / HELIO_JUDGE_MISSING_RATIO);
        strain = fmax(strain, fmin(1.0, late / HELIO_JUDGE_LAG_SECONDS));
        return 99.0 * fmin(1.0, strain);
    }
}

/* ---- the window ---- */

void helio_window_init(helio_window *window) {
    memset(window, 0, sizeof *window);
    window->behaviour = window->candidate = HELIO_CLASS_NONE;
}

/* The look at a place, 0: the oldest. */
static const helio_look *at(const helio_window *window, int place) {
    return &window->looks[(window->first + place) % (HELIO_JUDGE_STEPS + 1)];
}

static const helio_look *newest(const helio_window *window) {
    return at(window, window->count - 1);
}

static void append(helio_window *window, const helio_look *look) {
    window->looks[(window->first + window->count) % (HELIO_JUDGE_STEPS + 1)] = *look;
    if (window->count <= HELIO_JUDGE_STEPS) {
        window->count++;
    } else {
        window->first = (uint8_t)((window->first + 1) % (HELIO_JUDGE_STEPS + 1));
    }
}

static void begin(helio_window *window, const helio_look *look) {
    const helio_look own = *look; /* it may be one of the window */
    window->first = window->count = window->late = 0;
    append(window, &own);
}

static bool fell(const helio_look *now, const helio_look *then) {
    return now->expected < then->expected || now->delivered < then->delivered ||
           now->lost < then->lost || now->queue_full < then->queue_full || now->gaps < then->gaps;
}

static bool is_same_count(const helio_look *now, const helio_look *then) {
    return now->expected == then->expected && now->delivered == then->delivered &&
           now->lost == then->lost && now->queue_full == then->queue_full &&
           now->gaps == then->gaps;
}

static bool is_same(const helio_look *now, const helio_look *then) {
    return now->time_ns == then->time_ns && is_same_count(now, then) &&
           now->packets == then->packets && lag_of(now) == lag_of(then) &&
           now->queue_fill == then->queue_fill;
}

static bool take_late(helio_window *window, const helio_look *look, const helio_look *last) {
    if (is_same(look, last)) {
        return false;
    }
    if (window->late < LATE_LOOKS) {
        window->late++;
    }
    const bool grew = !is_same_count(look, last) && !fell(look, last);
    if (look->time_ns < last->time_ns && (grew || window->late >= LATE_LOOKS)) {
        begin(window, look);
        return true;
    }
    return false;
}

/* Twice the median of the steps. */
static wide pace_ns_twice(const helio_window *window) {
    int64_t steps[HELIO_JUDGE_STEPS];
    const int count = window->count - 1;
    for (int n = 0; n < count; n++) {
        const int64_t step = at(window, n + 1)->time_ns - at(window, n)->time_ns;
        int place = n;
        for (; place > 0 && steps[place - 1] > step; place--) {
            steps[place] = steps[place - 1];
        }
        steps[place] = step;
    }
    return (wide)steps[(count - 1) / 2] + steps[count / 2];
}

/* Whether the look is the next one, or the first after a restart. */
static bool take(helio_window *window, const helio_look *look) {
    if (window->count == 0) {
        begin(window, look);
        return true;
    }
    const helio_look *last = newest(window);
    if (look->time_ns <= last->time_ns) {
        return take_late(window, look, last);
    }
    window->late = 0;
    if (fell(look, last)) {
        begin(window, look);
        return true;
    }
    const wide step = (wide)look->time_ns - last->time_ns;
    if (window->count > 2 && 2 * step > GAP_STEPS * pace_ns_twice(window)) {
        begin(window, last); /* after a gap only its two ends count */
    }
    append(window, look);
    return true;
}

/* Number of last steps in which messages waited and none was delivered or dropped. */
static int lasting(const helio_window *window) {
    int count = 0;
    for (int n = window->count - 1; n > 0; n--, count++) {
        const helio_look *now = at(window, n), *then = at(window, n - 1);
        if (now->delivered != then->delivered || lag_of(then) < HELIO_JUDGE_LAG_MESSAGES ||
            lag_of(now) < HELIO_JUDGE_LAG_MESSAGES) {
            break;
        }
    }
    return count;
}

/* 1: the distance grows, -1: it shrinks, 0: neither. */
static int trend_of(const helio_window *window) {
    const int count = window->count, half = count / 2;
    const helio_look *first = at(window, 0), *last = newest(window);
    const wide change = lag_of(last) - lag_of(first);
    if (change < HELIO_JUDGE_LAG_MESSAGES && -change < HELIO_JUDGE_LAG_MESSAGES) {
        return 0; /* as with nearly every receiver */
    }
    wide most = lag_of(first), least = most;
    int up = 0, down = 0;
    for (int n = 1; n < count; n++) {
        const wide now = lag_of(at(window, n)), then = lag_of(at(window, n - 1));
        up += now > then;
        down += now < then;
        if (n < half) {
            most = now > most ? now : most;
            least = now < least ? now : least;
        }
    }
    const wide sent = (wide)last->expected + lag_of(last) - first->expected - lag_of(first);
    const double grown = ceil(fmax(HELIO_JUDGE_LAG_MESSAGES, sent > 0 ? GROWTH * (double)sent : 0));
    const double steps = TREND * (count - 1);
    if (up >= steps && lag_of(last) > most && change >= (wide)grown) {
        return 1;
    }
    return down >= steps && lag_of(last) < least && -change >= (wide)grown ? -1 : 0;
}

static bool falls_behind(const helio_window *window, const helio_judged *now, int trend) {
    if (trend < 0) {
        return false;
    }
    bool behind = lag_of(at(window, 0)) >= HELIO_JUDGE_LAG_MESSAGES;
    int waits = 0;
    for (int n = 1; n < window->count; n++) {
        const helio_look *look = at(window, n);
        behind = behind && lag_of(look) >= HELIO_JUDGE_LAG_MESSAGES;
        waits += look->queue_full > at(window, n - 1)->queue_full ||
                 look->queue_fill >= HELIO_JUDGE_QUEUE_FILL;
    }
    const bool stays = lag_seconds(now) >= HELIO_JUDGE_LAG_SECONDS &&
                       lag_of(newest(window)) >= lag_of(at(window, 0));
    return (behind && (trend > 0 || stays)) || 2 * waits >= window->count - 1;
}

static bool recovers(const helio_window *window, const helio_judged *now, int trend) {
    const int class = window->behaviour;
    const bool was_behind = class == HELIO_CLASS_FALLING_BEHIND || class == HELIO_CLASS_STALLED ||
                            class == HELIO_CLASS_RECOVERING;
    return trend < 0 && (was_behind || lag_seconds(now) >= HELIO_JUDGE_LAG_SECONDS) &&
           lag_of(newest(window)) >= HELIO_JUDGE_LAG_MESSAGES;
}

/* Puts the evidence of the whole window in place of that of the interval. */
static void widen(helio_judged *one, const helio_window *window, int stalled) {
    const helio_look *first = at(window, 0), *last = newest(window);
    const helio_look *since = stalled > 0 ? at(window, window->count - 1 - stalled) : first;
    const uint64_t packets = last->packets > first->packets ? last->packets - first->packets : 1;
    one->delivered = last->delivered - since->delivered;
    one->lost = last->lost - first->lost;
    one->queue_full = last->queue_full - first->queue_full;
    one->in_flight_before = first->in_flight;
    one->waiting_before = first->waiting;
    one->has_before = 1;
    one->missing_ratio = fmin(1.0, ratio(last->gaps - first->gaps, packets));
}

static int shown(const helio_window *window, const helio_judged *one, int stalled) {
    if (one->end != HELIO_RUNS) {
        return HELIO_CLASS_STOPPED;
    }
    if (stalled >= STALLED_STEPS) {
        return HELIO_CLASS_STALLED;
    }
    const int trend = trend_of(window);
    if (falls_behind(window, one, trend)) {
        return HELIO_CLASS_FALLING_BEHIND;
    }
    const double missing = window->behaviour == HELIO_CLASS_LOSSY ? HELIO_JUDGE_MISSING_RATIO / 2
                                                                  : HELIO_JUDGE_MISSING_RATIO;
    if (one->lost > 0 || one->missing_ratio >= missing) {
        return HELIO_CLASS_LOSSY;
    }
    return recovers(window, one, trend) ? HELIO_CLASS_RECOVERING : HELIO_CLASS_OK;
}

static void decide(helio_window *window, int class, int64_t time_ns, bool has_lost) {
    if (class == window->behaviour) {
        window->candidate = HELIO_CLASS_NONE;
        return;
    }
    if (class != window->candidate) {
        window->candidate = (uint8_t)class;
        window->agreed = 0;
        window->candidate_ns = time_ns;
    }
    window->agreed++;
    const bool at_once = window->behaviour == HELIO_CLASS_NONE ||
                         window->behaviour == HELIO_CLASS_STOPPED || class == HELIO_CLASS_STOPPED ||
                         (class == HELIO_CLASS_LOSSY && has_lost);
    if (at_once || window->agreed >= (class == HELIO_CLASS_OK ? AGREE_ON_OK : AGREE)) {
        window->behaviour = (uint8_t)class;
        window->since_ns = window->candidate_ns;
        window->candidate = HELIO_CLASS_NONE;
    }
}

void helio_judged_class(helio_judged *one, helio_window *window, int64_t time_ns) {
    if (window == NULL) {
        one->behaviour = (uint8_t)seen(one);
        one->looks = 1;
        one->since_ns = 0;
        one->badness = badness_of(one, one->behaviour);
        return;
    }
    const helio_look look = {
        .time_ns = time_ns,
        .expected = one->expected,
        .delivered = one->all_delivered,
        .lost = one->all_lost,
        .queue_full = one->all_queue_full,
        .gaps = one->gaps,
        .packets = one->packets,
        .in_flight = one->in_flight,
        .waiting = one->waiting,
        .queue_fill = one->queue_fill,
    };
    const bool is_new = take(window, &look);
    const int stalled = lasting(window);
    const bool is_short = window->count <= STEPS_LEAST;
    const int now = is_short ? seen(one) : HELIO_CLASS_NONE;
    if (!is_short) {
        widen(one, window, stalled);
    }
    if (is_new || window->behaviour == HELIO_CLASS_NONE || one->end != HELIO_RUNS) {
        decide(window, is_short ? now : shown(window, one, stalled), time_ns, one->lost > 0);
    }
    one->behaviour = window->behaviour;
    one->looks = window->count;
    one->since_ns = window->since_ns;
    one->badness = badness_of(one, one->behaviour);
}
