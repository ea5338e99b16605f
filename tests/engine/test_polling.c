/* Finding out how many receivers there are: the source's questions, the receivers' answers. */
#include "send/polling.h"

#include "base/moment.h"
#include "check.h"

#define MS HELIO_MILLISECOND

static helio_random dice;

static helio_polled node(uint32_t number) {
    helio_polled polled;
    helio_polled_init(&polled, number);
    return polled;
}

static void ask(helio_polled *polled, uint32_t sequence, helio_pgm_poll poll, int64_t now_ns) {
    helio_polled_on_poll(polled, sequence, &poll, &dice, now_ns);
}

static void only_a_node_that_matches_answers_and_once(void) {
    helio_polled in = node(0xABCD0007), out = node(0xABCD0006);
    const helio_pgm_poll poll = {.backoff_us = 1000, .random = 0x5, .mask = 0x5};
    ask(&in, 1, poll, 0);
    ask(&out, 1, poll, 0);
    CHECK_EQUAL(out.due_ns, HELIO_NEVER);
    CHECK(in.due_ns >= 0 && in.due_ns <= MS);
    CHECK(helio_polled_answer(&in, MS));
    CHECK(!helio_polled_answer(&in, MS));
    ask(&in, 1, poll, 20 * MS); /* the same question again */
    CHECK_EQUAL(in.due_ns, HELIO_NEVER);
}

static void a_newer_question_takes_the_place_of_one_not_answered_yet(void) {
    helio_polled polled = node(1);
    ask(&polled, 5, (helio_pgm_poll){.backoff_us = 1000000}, 0);
    CHECK(polled.due_ns != HELIO_NEVER);
    ask(&polled, 6, (helio_pgm_poll){.mask = 1, .random = 0}, 0); /* not for this one */
    CHECK_EQUAL(polled.due_ns, HELIO_NEVER);
    ask(&polled, 5, (helio_pgm_poll){.backoff_us = 10}, 0); /* late */
    CHECK_EQUAL(polled.due_ns, HELIO_NEVER);
    ask(&polled, 6, (helio_pgm_poll){.round = 1, .backoff_us = 10}, 0);
    CHECK(polled.due_ns != HELIO_NEVER);
    CHECK_EQUAL(polled.round, 1);
}

static void numbers_of_questions_wrap(void) {
    helio_polled polled = node(1);
    ask(&polled, 0xFFFFFFFF, (helio_pgm_poll){0}, 0);
    CHECK(helio_polled_answer(&polled, 0));
    ask(&polled, 2, (helio_pgm_poll){0}, 20 * MS);
    CHECK(helio_polled_answer(&polled, 20 * MS));
    ask(&polled, 0xFFFFFFFF, (helio_pgm_poll){0}, 40 * MS);
    CHECK(!helio_polled_answer(&polled, 40 * MS));
}

static void an_unknown_kind_of_question_is_ignored(void) {
    helio_polled polled = node(1);
    ask(&polled, 1, (helio_pgm_poll){.subtype = HELIO_PGM_POLL_DLR}, 0);
    ask(&polled, 2, (helio_pgm_poll){.subtype = 77}, 0);
    CHECK_EQUAL(polled.due_ns, HELIO_NEVER);
    CHECK(!polled.has_heard);
}

static void a_flood_of_questions_gets_an_answer_each_ten_milliseconds(void) {
    helio_polled polled = node(1);
    int answers = 0;
    for (uint32_t i = 1; i <= 100000; i++) { /* one second */
        const int64_t now_ns = (int64_t)i * 10 * HELIO_MICROSECOND;
        ask(&polled, i, (helio_pgm_poll){.mask = 0}, now_ns);
        answers += helio_polled_answer(&polled, now_ns);
    }
    CHECK(answers <= 101);
}

/* What a source makes of this many receivers after some rounds. */
static uint64_t estimated(uint32_t receivers, uint32_t *most_answers) {
    static helio_polled nodes[10000];
    helio_random numbers;
    helio_random_init(&numbers, receivers);
    for (uint32_t i = 0; i < receivers; i++) {
        nodes[i] = node((uint32_t)helio_random_next(&numbers));
    }
    helio_polling polling;
    helio_polling_init(&polling, HELIO_SECOND, 5, 0);
    uint64_t population = 0, sum = 0;
    for (int64_t round = 1; round <= 20; round++) {
        helio_pgm_poll question;
        const int64_t now_ns = round * HELIO_SECOND;
        CHECK(helio_polling_ask(&polling, now_ns, &question, &population));
        CHECK(!helio_polling_ask(&polling, now_ns, &question, &population));
        sum += round > 12 ? population : 0;
        uint32_t answers = 0;
        for (uint32_t i = 0; i < receivers; i++) {
            ask(&nodes[i], polling.sequence, question, now_ns);
            if (helio_polled_answer(&nodes[i], now_ns + HELIO_SECOND / 2)) {
                answers += helio_polling_on_answer(&polling, nodes[i].sequence, nodes[i].round);
            }
        }
        *most_answers = answers > *most_answers ? answers : *most_answers;
    }
    return sum / 8;
}

static void the_population_is_estimated_with_few_answers(void) {
    static const uint32_t sizes[] = {1, 10, 300, 10000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t most = 0;
        const uint64_t found = estimated(sizes[i], &most);
        printf("      %" PRIu32 " receivers: %" PRIu64 " estimated, at most %" PRIu32 " answers\n",
               sizes[i], found, most);
        CHECK(found >= sizes[i] * 2 / 3 && found <= sizes[i] * 3 / 2);
        CHECK(most <= 80);
    }
}

static void answers_to_no_open_question_do_not_count(void) {
    helio_polling polling;
    helio_polling_init(&polling, HELIO_SECOND, 5, 0);
    CHECK(!helio_polling_on_answer(&polling, 0, 0));
    helio_pgm_poll question;
    uint64_t population;
    CHECK(helio_polling_ask(&polling, HELIO_SECOND, &question, &population));
    CHECK(!helio_polling_on_answer(&polling, polling.sequence, 1));
    CHECK(!helio_polling_on_answer(&polling, polling.sequence - 1, 0));
    CHECK(helio_polling_on_answer(&polling, polling.sequence, 0));
    helio_polling_init(&polling, 0, 5, 0);
    CHECK(!helio_polling_ask(&polling, 3600 * HELIO_SECOND, &question, &population));
}

int main(void) {
    helio_random_init(&dice, 1);
    RUN(only_a_node_that_matches_answers_and_once);
    RUN(a_newer_question_takes_the_place_of_one_not_answered_yet);
    RUN(numbers_of_questions_wrap);
    RUN(an_unknown_kind_of_question_is_ignored);
    RUN(a_flood_of_questions_gets_an_answer_each_ten_milliseconds);
    RUN(the_population_is_estimated_with_few_answers);
    RUN(answers_to_no_open_question_do_not_count);
    return check_result();
}
