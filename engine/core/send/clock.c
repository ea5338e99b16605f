#include "send/clock.h"

#include <stdlib.h>
#include <string.h>

/* A clock that was set is told of before anybody asks. */
#define STEP_NS (100 * HELIO_MICROSECOND)

/* The place of a receiver whose question does not wait yet; HELIO_TX_CLOCK_WAITING: there is no
 * room. */
static uint32_t make_room(helio_tx_clock *clocks, bool is_new) {
    const bool is_full = clocks->count == HELIO_TX_CLOCK_WAITING;
    if (is_full && (!is_new || clocks->newcomers == HELIO_TX_CLOCK_WAITING)) {
        return HELIO_TX_CLOCK_WAITING;
    }
    if (!is_full) {
        clocks->count++;
    }
    if (!is_new) {
        return clocks->count - 1;
    }
    const uint32_t place = clocks->newcomers++;
    memmove(&clocks->waiting[place + 1], &clocks->waiting[place],
            (clocks->count - 1 - place) * sizeof clocks->waiting[0]);
    return place;
}

void helio_tx_clock_on_question(helio_tx_clock *clocks, uint64_t receiver, uint32_t token,
                                bool is_new, helio_moment moment) {
    helio_tx_clock_see(clocks, moment);
    if (token == 0 || moment.now_ns < 0) {
        return;
    }
    uint32_t place = 0;
    while (place < clocks->count && clocks->waiting[place].receiver != receiver) {
        place++; /* who asks again keeps its turn */
    }
    if (place == clocks->count) {
        place = make_room(clocks, is_new);
    }
    if (place < HELIO_TX_CLOCK_WAITING) {
        clocks->waiting[place] =
            (helio_pgm_clock_answer){receiver, token, (uint64_t)clocks->seen_ns};
    }
}

/* Moves what can be answered into `out`: a question that came later than the moment the SPM speaks
 * of waits for the next one. */
static void take_answers(helio_tx_clock *clocks, helio_pgm_time *out) {
    uint32_t kept = 0, newcomers = 0;
    for (uint32_t i = 0; i < clocks->count; i++) {
        const helio_pgm_clock_answer answer = clocks->waiting[i];
        if (out->answers_count < HELIO_PGM_CLOCK_ANSWERS_MAX && answer.came_ns <= out->sent_ns) {
            out->answers[out->answers_count++] = answer;
        } else {
            clocks->waiting[kept++] = answer;
            newcomers += i < clocks->newcomers;
        }
    }
    clocks->count = kept;
    clocks->newcomers = newcomers;
}

bool helio_tx_clock_take(helio_tx_clock *clocks, helio_pgm_time *out, int64_t now_ns) {
    const bool is_news =
        clocks->has_said && llabs(clocks->wall_ns - clocks->told_wall_ns) > STEP_NS;
    const int64_t wall_ns = now_ns + clocks->wall_ns;
    const bool rests = clocks->has_said && now_ns - clocks->said_ns < HELIO_TX_CLOCK_REST_NS;
    if ((clocks->count == 0 && !is_news) || rests) {
        return false;
    }
    clocks->said_ns = now_ns;
    clocks->has_said = true;
    if (now_ns < 0 || wall_ns < 0) { /* no time that could be told */
        clocks->count = clocks->newcomers = 0;
        return false;
    }
    *out = (helio_pgm_time){.sent_ns = (uint64_t)now_ns, .wall_ns = (uint64_t)wall_ns};
    take_answers(clocks, out);
    clocks->told_wall_ns = clocks->wall_ns;
    return true;
}
