/* What stays in a bounded queue: the exact survivors of each policy, bounds hit exactly, age, and
 * memory that is moved, taken and given back. */
#include "check.h"

#include <heliograph/errors.h>

#include "base/mark.h"
#include "queue/kept_queue.h"
#include "queue/submit_queue.h"

enum { BYTES = 65536, NONE = 0 };

static helio_kept_queue *queue;
static uint64_t dropped[HELIO_DROPPED_CAUSES];
static uint64_t dropped_by_count;

static void on_drop(void *context, void *head, size_t length, helio_kept_cause cause,
                    bool by_count) {
    (void)context, (void)head, (void)length;
    dropped[cause]++;
    dropped_by_count += by_count;
}

static helio_kept_config config_of(helio_kept_policy policy, uint64_t messages) {
    return (helio_kept_config){
        .policy = policy,
        .bytes = BYTES,
        .messages = messages,
        .priority_offset = policy == HELIO_KEPT_PRIORITY ? 1 : -1,
        .key_bytes = 1,
        .on_drop = on_drop,
    };
}

static void open_queue(helio_kept_config config) {
    memset(dropped, 0, sizeof dropped);
    dropped_by_count = 0;
    helio_kept_queue_destroy(queue);
    queue = NULL;
    CHECK_EQUAL(helio_kept_queue_create(&config, &queue), 0);
}

static int push_text(const char *text, int64_t now_ns) {
    return helio_kept_queue_push(queue, NULL, text, strlen(text), now_ns);
}

/* Pushes words, then takes all and compares. */
static void push_words(const char *words) {
    char copy[512];
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        CHECK_EQUAL(push_text(word, 0), 0);
    }
}

static void check_words(const char *expected) {
    char all[1024] = "";
    helio_kept_message message;
    while (helio_kept_queue_take(queue, &message)) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%.*s", used ? " " : "", (int)message.length,
                 (const char *)message.data);
    }
    helio_kept_queue_give_back(queue);
    if (strcmp(all, expected) != 0) {
        CHECK_FAIL("survivors are \"%s\", not \"%s\"", all, expected);
    }
    CHECK_EQUAL(helio_kept_queue_messages(queue), 0);
    CHECK_EQUAL(helio_kept_queue_bytes(queue), 0);
}

static void block_takes_exactly_the_bound_and_refuses_the_next(void) {
    open_queue(config_of(HELIO_KEPT_BLOCK, 4));
    push_words("a b c d");
    CHECK(!helio_kept_queue_has_room(queue, 1));
    CHECK_EQUAL(push_text("e", 0), HELIO_ERR_WOULD_BLOCK);
    check_words("a b c d");
    CHECK_EQUAL(push_text("f", 0), 0);
    check_words("f");
    CHECK_EQUAL(dropped[HELIO_DROPPED_NEWEST], 0);
}

static void the_newest_goes(void) {
    open_queue(config_of(HELIO_KEPT_NEWEST, 3));
    push_words("a b c d e");
    check_words("a b c");
    CHECK_EQUAL(dropped[HELIO_DROPPED_NEWEST], 2);
    CHECK_EQUAL(dropped_by_count, 2);
}

static void the_oldest_go(void) {
    open_queue(config_of(HELIO_KEPT_OLDEST, 3));
    push_words("a b c d e");
    check_words("c d e");
    CHECK_EQUAL(dropped[HELIO_DROPPED_OLDEST], 2);
}

static void a_newer_message_takes_the_place_of_the_same_key(void) {
    open_queue(config_of(HELIO_KEPT_CONFLATE, 3));
    push_words("a1 b1 c1 b2 a22222222222222222222222222222 b3");
    CHECK_EQUAL(helio_kept_queue_messages(queue), 3);
    check_words("a22222222222222222222222222222 b3 c1");
    CHECK_EQUAL(dropped[HELIO_DROPPED_CONFLATED], 3);
    push_words("a1 b1 c1 d1 a2"); /* a1 had to go for d1, b1 for a2 */
    check_words("c1 d1 a2");
    CHECK_EQUAL(dropped[HELIO_DROPPED_OLDEST], 2);
}

static void a_message_too_short_for_its_key_is_never_conflated(void) {
    helio_kept_config config = config_of(HELIO_KEPT_CONFLATE, NONE);
    config.key_offset = 1;
    config.key_bytes = 2;
    open_queue(config);
    push_words("x xy xyz x xy x12 wyz");
    check_words("x xy wyz x xy x12");
    CHECK_EQUAL(dropped[HELIO_DROPPED_CONFLATED], 1);
}

static void the_lowest_priority_goes_and_of_those_the_oldest(void) {
    open_queue(config_of(HELIO_KEPT_PRIORITY, 4));
    push_words("a5 b1 c3 d1");
    push_words("e4"); /* b goes */
    push_words("f0"); /* lower than all: goes itself */
    push_words("g1"); /* d is as low and older */
    push_words("h9"); /* g */
    push_words("i3"); /* c */
    push_words("j");  /* has no priority: the lowest */
    check_words("a5 e4 h9 i3");
    CHECK_EQUAL(dropped[HELIO_DROPPED_PRIORITY], 6);
}

static void a_priority_drop_that_would_not_help_drops_nothing_else(void) {
    open_queue(config_of(HELIO_KEPT_PRIORITY, NONE));
    char large[BYTES / 4], huge[BYTES / 2];
    memset(large, '5', sizeof large);
    memset(huge, '5', sizeof huge);
    push_words("a1");
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(helio_kept_queue_push(queue, NULL, large, sizeof large - 256, 0), 0);
    }
    huge[1] = '3'; /* more important than a1, which is too small to make room */
    CHECK_EQUAL(helio_kept_queue_push(queue, NULL, huge, sizeof huge, 0), 0);
    CHECK_EQUAL(helio_kept_queue_messages(queue), 4);
    CHECK_EQUAL(dropped[HELIO_DROPPED_PRIORITY], 1);
}

static void what_is_too_old_goes_and_a_conflated_message_is_new(void) {
    helio_kept_config config = config_of(HELIO_KEPT_CONFLATE, NONE);
    config.age_ns = 100;
    open_queue(config);
    CHECK_EQUAL(push_text("a1", 0), 0);
    CHECK_EQUAL(push_text("b1", 50), 0);
    CHECK_EQUAL(push_text("a2", 90), 0);
    helio_kept_queue_expire(queue, 150);
    CHECK_EQUAL(helio_kept_queue_messages(queue), 2); /* exactly 100 is not too old */
    helio_kept_queue_expire(queue, 151);
    CHECK_EQUAL(helio_kept_queue_messages(queue), 1);
    CHECK_EQUAL(push_text("c1", 190), 0);
    CHECK_EQUAL(push_text("d1", 191), 0); /* a2 is 101 old */
    check_words("c1 d1");
    CHECK_EQUAL(dropped[HELIO_DROPPED_AGE], 2);
}

static void bytes_bind_too(void) {
    helio_kept_config config = config_of(HELIO_KEPT_OLDEST, NONE);
    open_queue(config);
    char body[1000];
    memset(body, 'x', sizeof body);
    const size_t most = BYTES / helio_kept_queue_cost(queue, sizeof body);
    for (size_t i = 0; i < most; i++) {
        CHECK_EQUAL(helio_kept_queue_push(queue, NULL, body, sizeof body, 0), 0);
    }
    CHECK_EQUAL(dropped[HELIO_DROPPED_OLDEST], 0);
    CHECK_EQUAL(helio_kept_queue_push(queue, NULL, body, sizeof body, 0), 0);
    CHECK_EQUAL(dropped[HELIO_DROPPED_OLDEST], 1);
    CHECK_EQUAL(dropped_by_count, 0);
    CHECK_EQUAL(helio_kept_queue_messages(queue), most);
    CHECK(helio_kept_queue_bytes(queue) <= BYTES);
}

static void a_message_longer_than_the_bound_passes_alone(void) {
    open_queue(config_of(HELIO_KEPT_NEWEST, NONE));
    uint8_t *body = malloc(3 * BYTES);
    memset(body, 7, 3 * BYTES);
    CHECK_EQUAL(helio_kept_queue_push(queue, NULL, body, 3 * BYTES, 0), 0);
    CHECK_EQUAL(push_text("a", 0), 0);
    CHECK_EQUAL(dropped[HELIO_DROPPED_NEWEST], 1);
    helio_kept_message message;
    CHECK(helio_kept_queue_take(queue, &message));
    CHECK_EQUAL(message.length, 3 * BYTES);
    CHECK_BYTES(message.data, body, 3 * BYTES);
    CHECK(helio_kept_queue_has_given(queue));
    free(body);
}

static void long_messages_keep_to_the_account(void) {
    helio_kept_config config = config_of(HELIO_KEPT_NEWEST, NONE);
    open_queue(config); /* what one takes */
    helio_account account = {.limit_bytes = 1 << 20};
    config.account = &account;
    open_queue(config);
    const uint64_t empty = helio_account_used(&account);
    CHECK(empty > BYTES && empty < account.limit_bytes);
    uint8_t *body = calloc(1, 1 << 20);
    CHECK_EQUAL(helio_kept_queue_push(queue, NULL, body, 1 << 20, 0), 0);
    CHECK_EQUAL(dropped[HELIO_DROPPED_MEMORY], 1);
    CHECK_EQUAL(helio_account_used(&account), empty);
    CHECK_EQUAL(helio_kept_queue_push(queue, NULL, body, 1 << 18, 0), 0);
    CHECK_EQUAL(helio_kept_queue_messages(queue), 1);
    CHECK(helio_account_used(&account) > empty);
    helio_kept_queue *second = NULL;
    account.limit_bytes = helio_account_used(&account);
    CHECK_EQUAL(helio_kept_queue_create(&config, &second), HELIO_ERR_NOMEM);
    helio_kept_queue_destroy(queue);
    queue = NULL;
    CHECK_EQUAL(helio_account_used(&account), 0);
    free(body);
}

/* Far more than the arena, of all lengths, with removals everywhere: contents stay whole. */
static void contents_stay_whole_while_they_are_moved(void) {
    helio_kept_config config = config_of(HELIO_KEPT_CONFLATE, NONE);
    config.key_bytes = 2;
    open_queue(config);
    uint8_t body[2000];
    uint32_t seed = 1, taken = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        seed = seed * 1664525 + 1013904223;
        const size_t length = 8 + (seed >> 8) % (i % 97 == 0 ? 1900 : 120);
        memset(body, (int)(i & 0xFF), length);
        body[0] = (uint8_t)(seed >> 24);
        body[1] = (uint8_t)(seed >> 16 & 3);
        body[7] = (uint8_t)length;
        CHECK_EQUAL(helio_kept_queue_push(queue, NULL, body, length, 0), 0);
        helio_kept_message message;
        if (i % 3 == 0 && helio_kept_queue_take(queue, &message)) {
            const uint8_t *data = message.data;
            CHECK_EQUAL(data[7], message.length & 0xFF);
            for (size_t j = 8; j < message.length; j++) {
                CHECK(data[j] == data[2]);
            }
            taken++;
            helio_kept_queue_give_back(queue);
        }
        CHECK(helio_kept_queue_bytes(queue) <= BYTES);
    }
    CHECK(taken > 60000);
    CHECK(dropped[HELIO_DROPPED_CONFLATED] > 1000);
    CHECK(dropped[HELIO_DROPPED_OLDEST] > 1000);
    CHECK_EQUAL(taken + dropped[HELIO_DROPPED_CONFLATED] + dropped[HELIO_DROPPED_OLDEST] +
                    helio_kept_queue_messages(queue),
                200000);
}

static void places_are_numbered_and_taken_over(void) {
    open_queue(config_of(HELIO_KEPT_CONFLATE, 2));
    CHECK_EQUAL(helio_kept_queue_first_place(queue), 0);
    push_words("a1 b1 a2");
    CHECK_EQUAL(helio_kept_queue_next_place(queue), 2);
    CHECK_EQUAL(helio_kept_queue_first_place(queue), 0);
    push_words("c1"); /* a goes */
    CHECK_EQUAL(helio_kept_queue_first_place(queue), 1);
    check_words("b1 c1");
    CHECK_EQUAL(helio_kept_queue_first_place(queue), 3);
}

/* ---- low water ---- */

static void nothing_is_admitted_between_full_and_low_water(void) {
    helio_submit_queue submit;
    const helio_kept_config config = config_of(HELIO_KEPT_BLOCK, 8);
    CHECK_EQUAL(helio_submit_queue_init_kept(&submit, &config), 0);
    submit.low_water = 0.5;
    for (int i = 0; i < 8; i++) {
        CHECK(helio_submit_queue_admits(&submit));
        CHECK_EQUAL(helio_submit_queue_push_kept(&submit, "x", 1, 0, 0, 0), 0);
    }
    helio_submitted message;
    for (int left = 8; left > 4; left--) {
        CHECK(!helio_submit_queue_admits(&submit));
        CHECK(!helio_submit_queue_has_room(&submit, 1));
        CHECK(helio_submit_queue_take(&submit, &message));
    }
    CHECK(helio_submit_queue_admits(&submit)); /* exactly at low water */
    CHECK(helio_submit_queue_has_room(&submit, 1));
    helio_submit_queue_fini(&submit);
}

static void a_mark_is_crossed_once_each_way(void) {
    helio_mark mark = {.high = 85, .low = 70};
    int on = 0, off = 0;
    const uint64_t values[] = {10, 84, 85, 84, 90, 71, 99, 70, 70, 84, 71, 85, 0};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (helio_mark_cross(&mark, values[i])) {
            on += mark.is_above;
            off += !mark.is_above;
        }
    }
    CHECK_EQUAL(on, 2);
    CHECK_EQUAL(off, 2);
    mark = (helio_mark){0};
    CHECK(!helio_mark_cross(&mark, UINT64_MAX));
}

int main(void) {
    RUN(block_takes_exactly_the_bound_and_refuses_the_next);
    RUN(the_newest_goes);
    RUN(the_oldest_go);
    RUN(a_newer_message_takes_the_place_of_the_same_key);
    RUN(a_message_too_short_for_its_key_is_never_conflated);
    RUN(the_lowest_priority_goes_and_of_those_the_oldest);
    RUN(a_priority_drop_that_would_not_help_drops_nothing_else);
    RUN(what_is_too_old_goes_and_a_conflated_message_is_new);
    RUN(bytes_bind_too);
    RUN(a_message_longer_than_the_bound_passes_alone);
    RUN(long_messages_keep_to_the_account);
    RUN(contents_stay_whole_while_they_are_moved);
    RUN(places_are_numbered_and_taken_over);
    RUN(nothing_is_admitted_between_full_and_low_water);
    RUN(a_mark_is_crossed_once_each_way);
    helio_kept_queue_destroy(queue);
    return check_result();
}
