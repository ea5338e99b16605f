#include "send/polling.h"

#include "base/moment.h"
#include "base/sequence.h"

enum {
    BITS_START = 8,
    BITS_MAX = 24,
    ANSWERS_MANY = 32,
    ANSWERS_FEW = 4,
    BITS_STEP = 2, /* when there are few: towards asking everybody */
};

#define ANSWER_INTERVAL_NS (10 * HELIO_MILLISECOND)
#define ANSWER_DELAY_MAX_NS (10 * HELIO_SECOND)

/* ---- source ---- */

void helio_polling_init(helio_polling *polling, int64_t interval_ns, uint64_t seed,
                        int64_t now_ns) {
    *polling = (helio_polling){
        .interval_ns = interval_ns,
        .due_ns = interval_ns > 0 ? now_ns + interval_ns : HELIO_NEVER,
        .bits = BITS_START,
    };
    helio_random_init(&polling->random, seed);
}

static void choose_bits(helio_polling *polling) {
    uint32_t *bits = &polling->bits;
    for (uint64_t answers = polling->answers; answers > ANSWERS_MANY && *bits < BITS_MAX;
         answers /= 2) {
        (*bits)++;
    }
    if (polling->answers < ANSWERS_FEW) {
        *bits -= *bits < BITS_STEP ? *bits : BITS_STEP;
    }
}

bool helio_polling_ask(helio_polling *polling, int64_t now_ns, helio_pgm_poll *question,
                       uint64_t *population) {
    if (now_ns < polling->due_ns) {
        return false;
    }
    *population = polling->answers << polling->bits;
    if (polling->sequence > 0) {
        choose_bits(polling);
    }
    polling->due_ns = now_ns + polling->interval_ns;
    polling->answers = 0;
    if (++polling->sequence == 0) { /* 0 says "no poll" elsewhere */
        polling->sequence = 1;
    }
    *question = (helio_pgm_poll){
        .subtype = HELIO_PGM_POLL_GENERAL,
        .backoff_us = (uint32_t)(polling->interval_ns / 2 / HELIO_MICROSECOND),
        .random = (uint32_t)helio_random_next(&polling->random),
        .mask = (UINT32_C(1) << polling->bits) - 1,
    };
    return true;
}

bool helio_polling_on_answer(helio_polling *polling, uint32_t sequence, uint16_t round) {
    if (polling->sequence == 0 || sequence != polling->sequence || round != 0) {
        return false;
    }
    polling->answers++;
    return true;
}

/* ---- receiver ---- */

void helio_polled_init(helio_polled *polled, uint32_t node) {
    *polled = (helio_polled){.node = node, .due_ns = HELIO_NEVER};
}

static bool is_newer(const helio_polled *polled, uint32_t sequence, uint16_t round) {
    return !polled->has_heard || helio_sequence_before(polled->sequence, sequence) ||
           (sequence == polled->sequence && (int16_t)(polled->round - round) < 0);
}

void helio_polled_on_poll(helio_polled *polled, uint32_t sequence, const helio_pgm_poll *poll,
                          helio_random *random, int64_t now_ns) {
    if (poll->subtype != HELIO_PGM_POLL_GENERAL || !is_newer(polled, sequence, poll->round)) {
        return;
    }
    polled->has_heard = true;
    polled->sequence = sequence;
    polled->round = poll->round;
    polled->due_ns = HELIO_NEVER;
    if ((polled->node ^ poll->random) & poll->mask) {
        return;
    }
    int64_t most_ns = (int64_t)poll->backoff_us * HELIO_MICROSECOND;
    most_ns = most_ns < ANSWER_DELAY_MAX_NS ? most_ns : ANSWER_DELAY_MAX_NS;
    const int64_t due_ns = now_ns + (int64_t)helio_random_below(random, (uint64_t)most_ns + 1);
    polled->due_ns = due_ns > polled->free_ns ? due_ns : polled->free_ns;
}

bool helio_polled_answer(helio_polled *polled, int64_t now_ns) {
    if (now_ns < polled->due_ns) {
        return false;
    }
    polled->due_ns = HELIO_NEVER;
    polled->free_ns = now_ns + ANSWER_INTERVAL_NS;
    return true;
}
