#include "receive/clock.h"

#include <stdlib.h>

#include "base/random.h"
#include "receive/stream.h"

enum {
    FIRST_QUESTIONS = 3, /* with every report */
    PATIENCE = 4,        /* questions without an answer until the interval doubles */
    LONGEST_SHIFT = 6,
};

#define ASK_NS (500 * HELIO_MILLISECOND)
#define TELL_NS (10 * HELIO_SECOND)  /* on one host nothing is asked, but told */
#define WALL_MAX (UINT64_C(1) << 62) /* ns since 1970: the year 2116 */

void helio_rx_clock_init(helio_rx_clock *clocks, bool is_same_host, uint64_t seed,
                         helio_moment moment) {
    *clocks = (helio_rx_clock){
        .is_same_host = is_same_host,
        .own_wall_ns = moment.wall_ns - moment.now_ns,
        .ask_ns = moment.now_ns,
        .token = (uint32_t)seed,
    };
}

helio_clock_offset helio_rx_clock_read(const helio_rx_clock *clocks, int64_t now_ns) {
    helio_clock_difference difference;
    if (clocks->is_same_host) {
        return (helio_clock_offset){.source = HELIO_PGM_CLOCK_HOST};
    }
    if (!clocks->has_source_wall ||
        !helio_clock_bounds_read(&clocks->bounds, now_ns, &difference)) {
        return (helio_clock_offset){.source = HELIO_PGM_CLOCK_UNKNOWN};
    }
    return (helio_clock_offset){
        .source = HELIO_PGM_CLOCK_EXCHANGE,
        .ns = difference.ns + clocks->own_wall_ns - clocks->source_wall_ns,
        .bound_ns = (uint64_t)difference.bound_ns,
    };
}

/* ---- asking ---- */

static int64_t interval_of(const helio_rx_clock *clocks) {
    if (clocks->asked < FIRST_QUESTIONS) {
        return 0;
    }
    if (clocks->is_same_host) {
        return TELL_NS;
    }
    const uint32_t shift = clocks->unanswered / PATIENCE;
    return ASK_NS << (shift < LONGEST_SHIFT ? shift : LONGEST_SHIFT);
}

/* The next token: in no order that can be foreseen without the one before, and not 0. */
static uint32_t next_token(helio_rx_clock *clocks) {
    helio_random random;
    do {
        helio_random_init(&random, clocks->token + (uint64_t)++clocks->asked);
        clocks->token = (uint32_t)helio_random_next(&random);
    } while (clocks->token == 0);
    return clocks->token;
}

bool helio_rx_clock_ask(helio_rx_clock *clocks, helio_pgm_clock *out, int64_t now_ns) {
    if (now_ns < clocks->ask_ns) {
        return false;
    }
    const helio_clock_offset known = helio_rx_clock_read(clocks, now_ns);
    *out = (helio_pgm_clock){
        .source = known.source, .offset_ns = known.ns, .bound_ns = known.bound_ns};
    if (clocks->is_same_host) {
        clocks->asked++;
    } else {
        out->token = next_token(clocks);
        clocks->questions[clocks->asked % HELIO_RX_CLOCK_QUESTIONS] =
            (helio_rx_clock_question){out->token, now_ns};
        clocks->unanswered++;
    }
    clocks->ask_ns = now_ns + interval_of(clocks);
    return true;
}

/* ---- hearing the answer ---- */

static helio_rx_clock_question *question_of(helio_rx_clock *clocks, uint32_t token) {
    for (int i = 0; i < HELIO_RX_CLOCK_QUESTIONS && token != 0; i++) {
        if (clocks->questions[i].token == token) {
            return &clocks->questions[i];
        }
    }
    return NULL;
}

/* Whether the question was under way, there and back, for a time that can be. */
static bool is_possible(const helio_rx_clock_question *question, int64_t came_ns, int64_t sent_ns,
                        int64_t now_ns) {
    const int64_t here_ns = now_ns - question->sent_ns, there_ns = sent_ns - came_ns;
    const int64_t slack_ns =
        2 * HELIO_CLOCK_PRECISION_NS + here_ns / (1000000 / HELIO_CLOCK_DRIFT_PPM);
    return here_ns >= 0 && there_ns >= 0 && there_ns <= here_ns + slack_ns;
}

static bool is_sound(const helio_pgm_time *time, int64_t now_ns) {
    return time->sent_ns <= (uint64_t)HELIO_CLOCK_MONOTONIC_MAX && time->wall_ns <= WALL_MAX &&
           now_ns >= 0 && now_ns <= HELIO_CLOCK_MONOTONIC_MAX;
}

/* Takes in the answer to a question of ours, if there is one.  `sent_ns`: when the SPM left
 * there. */
static bool take_answer(helio_rx_clock *clocks, const helio_pgm_clock_answer *answer,
                        int64_t sent_ns, int64_t now_ns) {
    helio_rx_clock_question *question = question_of(clocks, answer->token);
    if (!question || answer->came_ns > (uint64_t)sent_ns ||
        !is_possible(question, (int64_t)answer->came_ns, sent_ns, now_ns)) {
        return false;
    }
    helio_clock_bounds *bounds = &clocks->bounds;
    helio_clock_bounds_went(bounds, question->sent_ns, (int64_t)answer->came_ns);
    if (helio_clock_bounds_have_crossed(bounds, now_ns)) {
        *bounds = (helio_clock_bounds){0};
        helio_clock_bounds_went(bounds, question->sent_ns, (int64_t)answer->came_ns);
        helio_clock_bounds_came(bounds, sent_ns, now_ns);
    }
    question->token = 0;
    clocks->unanswered -= clocks->unanswered < PATIENCE ? clocks->unanswered : PATIENCE;
    return true;
}

/* The source's time bounds ours from above, whomever it answers. */
static void take_time(helio_rx_clock *clocks, int64_t sent_ns, int64_t wall_ns, int64_t now_ns) {
    clocks->has_source_wall = true;
    clocks->source_wall_ns = wall_ns - sent_ns;
    helio_clock_bounds_came(&clocks->bounds, sent_ns, now_ns);
    if (helio_clock_bounds_have_crossed(&clocks->bounds, now_ns)) {
        clocks->bounds = (helio_clock_bounds){0};
        helio_clock_bounds_came(&clocks->bounds, sent_ns, now_ns);
    }
}

static void take_in(helio_rx_stream *stream, const helio_pgm_time *time, helio_moment moment) {
    helio_rx_clock *clocks = &stream->clocks;
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    if (!is_sound(time, moment.now_ns)) {
        helio_count(&stats->clock_exchanges_refused, 1);
        return;
    }
    const int64_t sent_ns = (int64_t)time->sent_ns;
    take_time(clocks, sent_ns, (int64_t)time->wall_ns, moment.now_ns);
    for (uint32_t i = 0; i < time->answers_count; i++) {
        if (time->answers[i].receiver != stream->shared->config.receiver) {
            continue;
        }
        if (take_answer(clocks, &time->answers[i], sent_ns, moment.now_ns)) {
            helio_count(&stats->clock_exchanges, 1);
            helio_set(&stats->last_clock_exchange, (uint64_t)moment.wall_ns);
        } else {
            helio_count(&stats->clock_exchanges_refused, 1);
        }
    }
}

/* ---- telling ---- */

static bool has_moved(int64_t from_ns, int64_t to_ns) {
    return llabs(to_ns - from_ns) > HELIO_RX_CLOCK_STEP_NS;
}

/* The offset is another one than what was shown, and no error bound explains it. */
static bool has_jumped(const helio_rx_clock *clocks, const helio_clock_offset *now,
                       int64_t now_ns) {
    const helio_clock_offset *shown = &clocks->shown;
    if (shown->source != HELIO_PGM_CLOCK_EXCHANGE || now->source != HELIO_PGM_CLOCK_EXCHANGE) {
        return false;
    }
    const int64_t drift_ns = (now_ns - clocks->shown_ns) / (1000000 / HELIO_CLOCK_DRIFT_PPM);
    const uint64_t allowed_ns =
        shown->bound_ns + now->bound_ns + (uint64_t)(drift_ns + HELIO_RX_CLOCK_STEP_NS);
    return (uint64_t)llabs(now->ns - shown->ns) > allowed_ns;
}

static void tell_jump(helio_rx_stream *stream, const helio_clock_offset *now, helio_moment moment) {
    const helio_rx_clock *clocks = &stream->clocks;
    const int64_t by_ns = now->ns - clocks->shown.ns;
    const char *why = has_moved(clocks->shown_own_wall_ns, clocks->own_wall_ns)
                          ? "this host's clock was set"
                      : has_moved(clocks->shown_source_wall_ns, clocks->source_wall_ns)
                          ? "the source's clock was set"
                          : "a clock stopped, or ran far too fast or too slow";
    const uint64_t args[4] = {(uint64_t)llabs(by_ns), now->bound_ns};
    helio_count(&helio_rx_stats(stream)->clock_jumps, 1);
    helio_stats_event(stream->shared->stats, moment.wall_ns, HELIO_EVENT_CLOCK_OFFSET_CHANGED,
                      stream->object.slot, args,
                      "this host's clock is %.6f s %s of the source's, within %.6f s, and was "
                      "%.6f s %s: %s",
                      (double)llabs(now->ns) / 1e9, now->ns < 0 ? "behind" : "ahead",
                      (double)now->bound_ns / 1e9, (double)llabs(clocks->shown.ns) / 1e9,
                      clocks->shown.ns < 0 ? "behind" : "ahead", why);
}

static void show(helio_rx_stream *stream, helio_moment moment) {
    helio_rx_clock *clocks = &stream->clocks;
    const helio_clock_offset now = helio_rx_clock_read(clocks, moment.now_ns);
    if (has_jumped(clocks, &now, moment.now_ns)) {
        tell_jump(stream, &now, moment);
    }
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    const bool is_known = now.source != HELIO_PGM_CLOCK_UNKNOWN;
    helio_set(&stats->clock_source, now.source);
    helio_set(&stats->clock_offset, is_known ? (uint64_t)now.ns : HELIO_STATS_ABSENT);
    helio_set(&stats->clock_error_bound, is_known ? now.bound_ns : HELIO_STATS_ABSENT);
    helio_stats_end(stats);
    if (!is_known) {
        return;
    }
    clocks->shown = now;
    clocks->shown_ns = moment.now_ns;
    clocks->shown_own_wall_ns = clocks->own_wall_ns;
    clocks->shown_source_wall_ns = clocks->source_wall_ns;
}

void helio_rx_clock_on_spm(helio_rx_stream *stream, const helio_pgm_packet *spm,
                           helio_moment moment) {
    helio_rx_clock *clocks = &stream->clocks;
    clocks->own_wall_ns = moment.wall_ns - moment.now_ns;
    if ((spm->options & HELIO_PGM_HAS_CLOCK_ANSWER) && !clocks->is_same_host) {
        take_in(stream, &spm->time, moment);
    }
    show(stream, moment);
}
