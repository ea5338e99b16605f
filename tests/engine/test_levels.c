/* Levels of detail by rules: which objects a selector fits, which of several rules decides, when
 * one ends, and what readers see of it. */
#include "check.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "generated/options.h"
#include "stats/levels.h"
#include "stats/segment.h"

#define SECOND_NS INT64_C(1000000000)

static char folder[64];

static helio_moment at(int64_t seconds) {
    return (helio_moment){.now_ns = seconds * SECOND_NS, .wall_ns = (1000 + seconds) * SECOND_NS};
}

static helio_stats *open_stats(const char *where, size_t bytes, int level) {
    const helio_stats_config config = {.name = "feed",
                                       .folder = where,
                                       .bytes = bytes,
                                       .level = level,
                                       .mode = HELIO_MODE_POLL,
                                       .wall_ns = 5 * SECOND_NS};
    helio_stats *stats = NULL;
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    return stats;
}

static void open_topic(helio_stats *stats, helio_scope scope, const char *topic,
                       helio_stats_object *out) {
    char labels[200];
    snprintf(labels, sizeof labels, "instance=feed\ntopic=%s\nstream=aa.bb:7\n", topic);
    CHECK_EQUAL(helio_stats_open_object(stats, scope, labels, 0, out), 0);
}

static int set_topic(helio_stats *stats, const char *pattern, int level, int64_t until_s,
                     int64_t now_s) {
    const helio_level_selector selector = {.topic = pattern};
    return helio_levels_set(stats, &selector, level, at(until_s).now_ns, at(now_s), NULL);
}

static void settle(helio_stats *stats, int64_t seconds) {
    for (int rounds = 0; helio_stats_tend(stats, at(seconds)); rounds++) {
        CHECK(rounds < 1000);
    }
}

static bool is_timed(const helio_stats_object *receiver) {
    return receiver->histogram[HELIO_RECEIVER_TOTAL_LATENCY] != NULL;
}

static const helio_segment_event *event_of(const helio_stats *stats, uint64_t number) {
    return &stats->events[number];
}

static void a_rule_raises_what_it_fits_and_nothing_else_and_reverts(void) {
    helio_stats *stats = open_stats(folder, 8 << 20, 1);
    helio_stats_object instance, price, order, sent;
    helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=feed\n", 0, &instance);
    open_topic(stats, HELIO_SCOPE_RECEIVER, "PRICES.FX", &price);
    open_topic(stats, HELIO_SCOPE_RECEIVER, "ORDERS", &order);
    open_topic(stats, HELIO_SCOPE_TRANSMITTER, "PRICES.FX", &sent);
    const helio_level_selector selector = {.topic = "PRICES.*"};
    helio_level_change change;
    CHECK_EQUAL(helio_levels_set(stats, &selector, 3, at(61).now_ns, at(1), &change), 0);
    CHECK_EQUAL(change.objects, 2);
    CHECK_EQUAL(change.before, 1);
    CHECK(strcmp(change.text, "topic=PRICES.*") == 0);
    settle(stats, 1);
    CHECK(is_timed(&price) && !is_timed(&order));
    CHECK(sent.histogram[HELIO_TRANSMITTER_SEND_LATENCY]);
    CHECK_EQUAL(helio_stats_object_level(&price), 3);
    CHECK_EQUAL(helio_stats_object_level(&order), 1);
    CHECK_EQUAL(helio_stats_level(stats), 1);
    CHECK_EQUAL(helio_stats_highest_level(stats), 3);
    settle(stats, 60);
    CHECK(is_timed(&price));
    settle(stats, 61);
    CHECK(!is_timed(&price) && !sent.histogram[HELIO_TRANSMITTER_SEND_LATENCY]);
    CHECK_EQUAL(helio_stats_highest_level(stats), 1);
    CHECK_EQUAL(helio_cell(&((const helio_instance_stats *)instance.record)->detail_level), 1);
    helio_stats_close_object(stats, &price, 0);
    helio_stats_close_object(stats, &order, 0);
    helio_stats_close_object(stats, &sent, 0);
    helio_stats_close_object(stats, &instance, 0);
    helio_stats_destroy(stats);
}

static void a_rule_is_an_object_while_it_is_in_force_and_its_events_are_about_it(void) {
    helio_stats *stats = open_stats(folder, 8 << 20, 2);
    helio_stats_object price;
    open_topic(stats, HELIO_SCOPE_RECEIVER, "PRICES.FX", &price);
    CHECK_EQUAL(set_topic(stats, "PRICES.*", 3, 31, 1), 0);
    const uint32_t slot = event_of(stats, 0)->slot;
    const helio_segment_object *entry = &stats->objects[slot];
    const helio_detail_stats *cells =
        (const helio_detail_stats *)(stats->memory + entry->record_offset);
    CHECK_EQUAL(event_of(stats, 0)->event, HELIO_EVENT_LEVEL_CHANGED);
    CHECK_EQUAL(event_of(stats, 0)->arguments[0], 3);
    CHECK_EQUAL(event_of(stats, 0)->arguments[1], 2);
    CHECK_EQUAL(event_of(stats, 0)->arguments[2], 30 * SECOND_NS);
    CHECK_EQUAL(event_of(stats, 0)->arguments[3], 1);
    CHECK(strcmp(event_of(stats, 0)->text, "topic=PRICES.*: the level of detail is 3, it was 2") ==
          0);
    CHECK_EQUAL(entry->scope, HELIO_SCOPE_DETAIL);
    CHECK_EQUAL(entry->state, HELIO_OBJECT_LIVE);
    CHECK(strcmp(entry->labels, "instance=feed\nselector=topic=PRICES.*\n") == 0);
    CHECK_EQUAL(cells->level, 3);
    CHECK_EQUAL(cells->until, 1031 * SECOND_NS);
    CHECK_EQUAL(cells->objects, 1);
    helio_stats_close_object(stats, &price, 0);
    helio_stats_tend(stats, at(2));
    CHECK_EQUAL(cells->objects, 0);
    settle(stats, 31);
    CHECK_EQUAL(entry->state, HELIO_OBJECT_GONE);
    CHECK_EQUAL(event_of(stats, 1)->event, HELIO_EVENT_LEVEL_REVERTED);
    CHECK_EQUAL(event_of(stats, 1)->slot, slot);
    CHECK(strcmp(event_of(stats, 1)->text,
                 "topic=PRICES.*: the level of detail is 2 again, it was 3") == 0);
    CHECK_EQUAL(stats->header->events_written, 2);
    helio_stats_destroy(stats);
}

static void of_several_rules_that_fit_the_newest_decides(void) {
    helio_stats *stats = open_stats(NULL, 8 << 20, 2);
    helio_stats_object receiver;
    open_topic(stats, HELIO_SCOPE_RECEIVER, "PRICES.FX", &receiver);
    CHECK_EQUAL(set_topic(stats, "PRICES.*", 3, 100, 1), 0);
    CHECK_EQUAL(set_topic(stats, "*.FX", 0, 50, 2), 0);
    CHECK_EQUAL(helio_stats_object_level(&receiver), 0);
    CHECK_EQUAL(set_topic(stats, "ORDERS", 1, 50, 3), 0);
    CHECK_EQUAL(helio_stats_object_level(&receiver), 0);
    CHECK_EQUAL(set_topic(stats, "PRICES.*", 1, 60, 4),
                0); /* the same again: newest, and changed */
    CHECK_EQUAL(stats->rules_in_force, 3);
    CHECK_EQUAL(helio_stats_object_level(&receiver), 1);
    CHECK_EQUAL(set_topic(stats, "*.FX", 0, 50, 5), 0);
    settle(stats, 50);
    CHECK_EQUAL(helio_stats_object_level(&receiver), 1);
    CHECK_EQUAL(helio_stats_set_level(stats, 3, HELIO_NEVER, at(51)), 0);
    CHECK_EQUAL(helio_stats_object_level(&receiver), 1); /* a rule comes before the instance */
    settle(stats, 60);
    CHECK_EQUAL(helio_stats_object_level(&receiver), 3);
    CHECK(is_timed(&receiver));
    CHECK_EQUAL(stats->rules_in_force, 0);
    helio_stats_close_object(stats, &receiver, 0);
    helio_stats_destroy(stats);
}

static void objects_opened_later_have_the_level_of_the_rules_in_force(void) {
    const char *const folders[] = {folder, NULL};
    for (size_t i = 0; i < 2; i++) {
        helio_stats *stats = open_stats(folders[i], 8 << 20, 0);
        helio_stats_object raised, other;
        helio_level_change change;
        const helio_level_selector selector = {.topic = "PRICES.??"};
        CHECK_EQUAL(helio_levels_set(stats, &selector, 3, at(9).now_ns, at(1), &change), 0);
        CHECK_EQUAL(change.objects, 0);
        open_topic(stats, HELIO_SCOPE_RECEIVER, "PRICES.FX", &raised);
        open_topic(stats, HELIO_SCOPE_RECEIVER, "PRICES.BOND", &other);
        CHECK(is_timed(&raised) && !is_timed(&other));
        CHECK_EQUAL(helio_levels_end(stats, &selector, at(2), &change), 0);
        CHECK_EQUAL(change.objects, 1);
        CHECK(!is_timed(&raised));
        CHECK_EQUAL(helio_levels_end(stats, &selector, at(2), NULL), HELIO_ERR_OPTION);
        helio_stats_close_object(stats, &raised, 0);
        helio_stats_close_object(stats, &other, 0);
        helio_stats_destroy(stats);
    }
}

/* Patterns of topic, stream and receiver, and whether they fit. */
static void check_fit(helio_stats *stats, helio_scope scope, const char *labels,
                      const char *const patterns[3], bool fits) {
    const helio_level_selector selector = {patterns[0], patterns[1], patterns[2]};
    helio_stats_object object;
    helio_level_change change;
    CHECK_EQUAL(helio_stats_open_object(stats, scope, labels, 0, &object), 0);
    CHECK_EQUAL(helio_levels_set(stats, &selector, 3, at(9).now_ns, at(1), &change), 0);
    CHECK_EQUAL(change.objects, fits);
    CHECK_EQUAL(helio_levels_end(stats, &selector, at(1), NULL), 0);
    helio_stats_close_object(stats, &object, 0);
}

static void selectors_fit_by_topic_stream_and_receiver(void) {
    static const char peer[] = "instance=feed\nstream=aa:7\nreceiver=10.0.0.1:9\nname=slow-1\n"
                               "receiver_id=00000000000000aa\n";
    static const char rx_stream[] =
        "instance=sink\nstream=aa:7\nendpoint=e\nsource=s\nfeedback_address=10.0.0.2:5\n";
    static const char receiver[] = "instance=sink\ntopic=A=B\nstream=aa:7\nendpoint=e\n";
    static const struct {
        helio_scope scope;
        const char *labels;
        const char *patterns[3];
        bool fits;
    } cases[] = {
        {HELIO_SCOPE_TX_RECEIVER, peer, {NULL, NULL, "slow-*"}, true},
        {HELIO_SCOPE_TX_RECEIVER, peer, {NULL, NULL, "10.0.0.1:*"}, true},
        {HELIO_SCOPE_TX_RECEIVER, peer, {NULL, NULL, "*aa"}, true},
        {HELIO_SCOPE_TX_RECEIVER, peer, {NULL, NULL, "feed"}, false}, /* that is who sends */
        {HELIO_SCOPE_TX_RECEIVER, peer, {NULL, "aa:7", "slow-1"}, true},
        {HELIO_SCOPE_TX_RECEIVER, peer, {NULL, "bb:*", "slow-1"}, false},
        {HELIO_SCOPE_TX_RECEIVER, peer, {"*", NULL, "slow-1"}, false}, /* it has no topic */
        {HELIO_SCOPE_RX_STREAM, rx_stream, {NULL, NULL, "sink"}, true},
        {HELIO_SCOPE_RX_STREAM, rx_stream, {NULL, NULL, "10.0.0.2:5"}, true},
        {HELIO_SCOPE_RX_STREAM, rx_stream, {"", "aa:?", ""}, true},
        {HELIO_SCOPE_RECEIVER, receiver, {"A=B", "aa*", "si?k"}, true},
        {HELIO_SCOPE_RECEIVER, receiver, {"A", NULL, NULL}, false},
        {HELIO_SCOPE_RECEIVER, receiver, {NULL, NULL, "e"}, false}, /* the endpoint is no name */
        {HELIO_SCOPE_TX_STREAM, "instance=feed\nstream=aa:7\n", {NULL, "aa:7", NULL}, true},
        {HELIO_SCOPE_TX_STREAM, "instance=feed\nstream=aa:7\n", {NULL, NULL, "feed"}, false},
        {HELIO_SCOPE_TRANSMITTER, "", {"*", NULL, NULL}, false}, /* nor has this one a label */
        {HELIO_SCOPE_INSTANCE, "instance=feed\nstream=x\n", {NULL, "*", NULL}, false},
    };
    helio_stats *stats = open_stats(NULL, 8 << 20, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_fit(stats, cases[i].scope, cases[i].labels, cases[i].patterns, cases[i].fits);
    }
    helio_stats_destroy(stats);
}

static void a_full_table_is_refused_and_one_rule_less_makes_room(void) {
    helio_stats *stats = open_stats(folder, 8 << 20, 1);
    char pattern[24];
    for (int i = 0; i < HELIO_LEVEL_RULES_MAX; i++) {
        snprintf(pattern, sizeof pattern, "T%d", i);
        CHECK_EQUAL(set_topic(stats, pattern, 2, i == 0 ? 5 : 100, 1), 0);
    }
    CHECK_EQUAL(set_topic(stats, "MORE", 2, 100, 1), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_sentence(), "16 rules are in force"));
    CHECK_EQUAL(set_topic(stats, "T7", 3, 100, 1), 0); /* it is there */
    CHECK_EQUAL(helio_stats_set_level(stats, 3, at(100).now_ns, at(1)), 0);
    settle(stats, 5);
    CHECK_EQUAL(set_topic(stats, "MORE", 2, 100, 5), 0);
    helio_stats_destroy(stats); /* with all of them in force */
}

static void levels_and_patterns_that_cannot_be_are_refused_and_change_nothing(void) {
    helio_stats *stats = open_stats(NULL, 8 << 20, 1);
    char pattern[2 * HELIO_LEVEL_PATTERN_BYTES];
    memset(pattern, '*', sizeof pattern);
    pattern[HELIO_LEVEL_PATTERN_BYTES] = 0;
    CHECK_EQUAL(set_topic(stats, pattern, 2, 100, 1), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_sentence(), "at most 127 bytes, that of topic has more"));
    CHECK_EQUAL(set_topic(stats, "A", 4, 100, 1), HELIO_ERR_OPTION);
    CHECK_EQUAL(set_topic(stats, "A", -1, 100, 1), HELIO_ERR_OPTION);
    CHECK_EQUAL(stats->rules_in_force, 0);
    CHECK_EQUAL(stats->header->events_written, 0);
    pattern[HELIO_LEVEL_PATTERN_BYTES - 1] = 0;
    CHECK_EQUAL(set_topic(stats, pattern, 2, 100, 1), 0);
    helio_stats_destroy(stats);
}

/* Labels lie in the segment, which the owner's other programs can write. */
static void labels_that_were_written_over_are_read_within_their_bounds(void) {
    helio_stats *stats = open_stats(folder, 8 << 20, 1);
    helio_stats_object receiver;
    open_topic(stats, HELIO_SCOPE_RECEIVER, "A", &receiver);
    char *labels = stats->objects[receiver.slot].labels;
    static const char *const torn[] = {"topic=", "topic", "=", "\n\n\n", "topic=A"};
    for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
        memset(labels, 'x', HELIO_STATS_LABELS_BYTES); /* no end at all */
        memcpy(labels + HELIO_STATS_LABELS_BYTES - strlen(torn[i]), torn[i], strlen(torn[i]));
        CHECK_EQUAL(set_topic(stats, "A*", 3, 100, 1), 0);
        CHECK_EQUAL(helio_stats_object_level(&receiver), 1);
        CHECK_EQUAL(helio_levels_end(stats, &(helio_level_selector){.topic = "A*"}, at(1), NULL),
                    0);
    }
    helio_stats_close_object(stats, &receiver, 0);
    helio_stats_destroy(stats);
}

static void a_wall_clock_that_is_set_ends_no_rule_and_keeps_none(void) {
    helio_stats *stats = open_stats(folder, 8 << 20, 1);
    CHECK_EQUAL(set_topic(stats, "A", 3, 61, 1), 0);
    const helio_detail_stats *cells = stats->rules[1].object.record;
    helio_stats_tend(stats, (helio_moment){.now_ns = at(2).now_ns, .wall_ns = at(9000).wall_ns});
    CHECK_EQUAL(stats->rules_in_force, 1);
    CHECK_EQUAL(cells->until, (uint64_t)(at(9000).wall_ns + 59 * SECOND_NS));
    helio_stats_tend(stats, (helio_moment){.now_ns = at(61).now_ns, .wall_ns = at(-900).wall_ns});
    CHECK_EQUAL(stats->rules_in_force, 0);
    helio_stats_destroy(stats);
}

static void an_object_that_moves_keeps_its_level_and_its_place(void) {
    helio_stats *stats = open_stats(NULL, 8 << 20, 1);
    helio_stats_object first, middle, last, moved;
    open_topic(stats, HELIO_SCOPE_RECEIVER, "A", &first);
    open_topic(stats, HELIO_SCOPE_RECEIVER, "B", &middle);
    open_topic(stats, HELIO_SCOPE_RECEIVER, "C", &last);
    helio_stats_move_object(stats, &middle, &moved);
    helio_stats_close_object(stats, &middle, 0); /* as if it had never been opened */
    CHECK_EQUAL(set_topic(stats, "?", 3, 100, 1), 0);
    settle(stats, 1);
    CHECK(is_timed(&first) && is_timed(&moved) && is_timed(&last));
    helio_stats_object again;
    helio_stats_move_object(stats, &last, &again); /* the head of the list */
    helio_stats_close_object(stats, &moved, 0);
    helio_stats_close_object(stats, &again, 0);
    helio_stats_close_object(stats, &first, 0);
    helio_stats_destroy(stats);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-test-levels-%ld", (long)getpid());
    RUN(a_rule_raises_what_it_fits_and_nothing_else_and_reverts);
    RUN(a_rule_is_an_object_while_it_is_in_force_and_its_events_are_about_it);
    RUN(of_several_rules_that_fit_the_newest_decides);
    RUN(objects_opened_later_have_the_level_of_the_rules_in_force);
    RUN(selectors_fit_by_topic_stream_and_receiver);
    RUN(a_full_table_is_refused_and_one_rule_less_makes_room);
    RUN(levels_and_patterns_that_cannot_be_are_refused_and_change_nothing);
    RUN(labels_that_were_written_over_are_read_within_their_bounds);
    RUN(a_wall_clock_that_is_set_ends_no_rule_and_keeps_none);
    RUN(an_object_that_moves_keeps_its_level_and_its_place);
    if (rmdir(folder) < 0) {
        perror(folder);
        return 1; /* something was left behind */
    }
    return check_result();
}
