/* The command ring of a running engine, from the side of its clients: the honest, the dead, the
 * late and the hostile. */
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

#include "base/glob.h"
#include "base/moment.h"
#include "base/random.h"
#include "generated/events.h"
#include "options/control_text.h"
#include "stats/segment.h"

static char folder[64];

/* An engine of mode poll and its segment, mapped for writing as its owner's other programs can. */
typedef struct scene {
    helio_instance *instance;
    uint8_t *memory;
    size_t size;
    const helio_segment_header *header;
    helio_control_ring *ring;
} scene;

static scene open_scene(const char *options) {
    char text[256];
    snprintf(text, sizeof text, "name=commanded&mode=poll&segment_bytes=4194304&segment_dir=%s%s",
             folder, options);
    scene s = {0};
    CHECK_EQUAL(helio_instance_create(text, &s.instance), 0);
    const int file = open(helio_instance_segment(s.instance), O_RDWR);
    struct stat status = {0};
    CHECK(file >= 0 && fstat(file, &status) == 0);
    s.size = (size_t)status.st_size;
    s.memory = mmap(NULL, s.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(s.memory != MAP_FAILED);
    close(file);
    s.header = (const helio_segment_header *)s.memory;
    CHECK(s.header->commands_offset % 8 == 0);
    CHECK_EQUAL(s.header->command_capacity, HELIO_CONTROL_SLOTS);
    CHECK_EQUAL(s.header->command_entry_bytes, sizeof(helio_control_slot));
    s.ring = (helio_control_ring *)(s.memory + s.header->commands_offset);
    return s;
}

static void close_scene(scene *s) {
    helio_instance_destroy(s->instance);
    munmap(s->memory, s->size);
}

static uint64_t wall_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Chores are due every millisecond; an engine that wakes does them too. */
static void run(scene *s) {
    helio_instance_wait(s->instance, 0);
    for (int i = 0; i < 4; i++) {
        CHECK(helio_instance_poll(s->instance) >= 0);
        usleep(600);
    }
}

/* What a client writes before it submits. */
static helio_control_slot *write_slot(scene *s, int number, const char *text, size_t length) {
    helio_control_slot *slot = &s->ring->slots[number];
    const uint64_t ticket = helio_control_ticket_of(slot->state) + 1;
    slot->state = helio_control_state(ticket, (uint32_t)getpid(), HELIO_CONTROL_CLAIMED);
    slot->submitted_ns = wall_ns();
    slot->deadline_ns = slot->submitted_ns + 60 * UINT64_C(1000000000);
    slot->uid = 7;
    slot->text_bytes = (uint32_t)length;
    memcpy(slot->text, text, length);
    slot->check = helio_control_check(ticket, text, length);
    return slot;
}

static void submit(scene *s, helio_control_slot *slot) {
    slot->state += HELIO_CONTROL_SUBMITTED - HELIO_CONTROL_CLAIMED;
    s->ring->bell++;
}

static helio_control_phase phase_of(const helio_control_slot *slot) {
    return helio_control_phase_of(slot->state);
}

/* Gives a command and returns its code; the answer is in slot 0. */
static int give(scene *s, const char *text) {
    helio_control_slot *slot = write_slot(s, 0, text, strlen(text));
    submit(s, slot);
    run(s);
    CHECK_EQUAL(phase_of(slot), HELIO_CONTROL_DONE);
    CHECK(slot->answer_bytes > 0 && slot->answer_bytes <= HELIO_CONTROL_ANSWER_BYTES);
    return slot->code;
}

static bool answered(const scene *s, const char *words) {
    const helio_control_slot *slot = &s->ring->slots[0];
    return memmem(slot->answer, slot->answer_bytes, words, strlen(words)) != NULL;
}

static const helio_segment_event *last_event(const scene *s) {
    const helio_segment_event *events =
        (const helio_segment_event *)(s->memory + s->header->events_offset);
    return &events[(s->header->events_written - 1) & (s->header->event_capacity - 1)];
}

/* ---- honest clients ---- */

static void a_command_is_carried_out_answered_and_told(void) {
    scene s = open_scene("");
    CHECK_EQUAL(give(&s, "ping"), 0);
    CHECK(answered(&s, "commanded"));
    CHECK(answered(&s, HELIO_VERSION));
    const helio_segment_event *event = last_event(&s);
    CHECK_EQUAL(event->event, HELIO_EVENT_COMMAND);
    CHECK_EQUAL(event->arguments[0], 7);
    CHECK_EQUAL(event->arguments[1], getpid());
    CHECK_EQUAL(event->arguments[2], 1);
    CHECK(strncmp(event->text, "ping: commanded", 15) == 0);
    CHECK_EQUAL(s.ring->served, s.ring->bell);
    close_scene(&s);
}

static void a_refused_command_is_told_with_the_reason(void) {
    scene s = open_scene("");
    CHECK_EQUAL(give(&s, "explode for=3"), HELIO_ERR_OPTION);
    CHECK(answered(&s, "command 'explode' is unknown; the commands are: ping, "));
    const helio_segment_event *event = last_event(&s);
    CHECK_EQUAL(event->event, HELIO_EVENT_COMMAND_REFUSED);
    CHECK_EQUAL((int64_t)event->arguments[3], HELIO_ERR_OPTION);
    CHECK(strncmp(event->text, "explode for=3: command 'explode' is unknown", 41) == 0);
    close_scene(&s);
}

static void a_level_is_changed_for_a_time_of_the_instance_or_by_a_pattern(void) {
    scene s = open_scene("&level=1");
    CHECK_EQUAL(give(&s, "level level=3 for=60"), 0);
    CHECK(answered(&s, "the level of detail is 3 for 60 s, it was 1"));
    CHECK_EQUAL(give(&s, "level level=2"), HELIO_ERR_OPTION);
    CHECK(answered(&s, "level needs a duration, such as level=3 for=60: no level is permanent"));
    CHECK_EQUAL(give(&s, "level level=2 for=60 off=yes"), HELIO_ERR_OPTION);
    CHECK_EQUAL(give(&s, "level topic=A off=yes"), HELIO_ERR_OPTION);
    CHECK(answered(&s, "no rule is in force"));
    CHECK_EQUAL(give(&s, "level level=2 for=60 topic=A* stream=* receiver=?"), 0);
    CHECK(answered(&s, "topic=A* stream=* receiver=?: the level of detail is 2 for 60 s, it was "
                       "3; no object matches now"));
    CHECK_EQUAL(give(&s, "level topic=A off=yes"), HELIO_ERR_OPTION);
    CHECK(answered(&s, "there are: topic=A* stream=* receiver=?"));
    CHECK_EQUAL(give(&s, "level topic=A* stream=* receiver=? off=yes"), 0);
    CHECK(answered(&s, "the level of detail is 3 again, it was 2"));
    CHECK_EQUAL(give(&s, "level off=yes"), 0);
    CHECK(answered(&s, "the level of detail is 1 again, it was 3"));
    CHECK_EQUAL(give(&s, "level level=0 for=0.000000001"), 0);
    run(&s);
    const helio_segment_event *event = last_event(&s);
    CHECK_EQUAL(event->event, HELIO_EVENT_LEVEL_REVERTED);
    CHECK_EQUAL(event->arguments[0], 1);
    close_scene(&s);
}

static void a_full_ring_is_emptied_in_the_order_of_submission(void) {
    scene s = open_scene("");
    const uint64_t before = s.header->events_written;
    for (int i = 0; i < HELIO_CONTROL_SLOTS; i++) {
        helio_control_slot *slot = write_slot(&s, i, "ping", 4);
        slot->submitted_ns = (uint64_t)(1000 - i); /* the last one first */
        submit(&s, slot);
    }
    run(&s);
    for (int i = 0; i < HELIO_CONTROL_SLOTS; i++) {
        CHECK_EQUAL(phase_of(&s.ring->slots[i]), HELIO_CONTROL_DONE);
        CHECK_EQUAL(s.ring->slots[i].code, 0);
    }
    CHECK_EQUAL(s.header->events_written, before + HELIO_CONTROL_SLOTS);
    close_scene(&s);
}

/* ---- clients that go ---- */

static void what_is_only_claimed_is_never_looked_at(void) {
    scene s = open_scene("");
    const uint64_t before = s.header->events_written;
    helio_control_slot *slot = write_slot(&s, 3, "ping", 4);
    s.ring->bell++; /* another client's */
    run(&s);
    CHECK_EQUAL(phase_of(slot), HELIO_CONTROL_CLAIMED);
    CHECK_EQUAL(s.header->events_written, before);
    CHECK_EQUAL(s.ring->served, s.ring->bell);
    close_scene(&s);
}

static void a_command_whose_time_is_over_is_not_carried_out(void) {
    scene s = open_scene("&level=1");
    helio_control_slot *slot = write_slot(&s, 0, "level level=3 for=9", 19);
    slot->deadline_ns = wall_ns() - 1;
    submit(&s, slot);
    run(&s);
    CHECK_EQUAL(slot->code, HELIO_ERR_TIMEOUT);
    CHECK(answered(&s, "not carried out"));
    CHECK_EQUAL(last_event(&s)->event, HELIO_EVENT_COMMAND_REFUSED);
    close_scene(&s);
}

static void a_command_that_was_taken_back_is_not_carried_out(void) {
    scene s = open_scene("");
    const uint64_t before = s.header->events_written;
    helio_control_slot *slot = write_slot(&s, 0, "ping", 4);
    submit(&s, slot);
    slot->state = helio_control_state(helio_control_ticket_of(slot->state), 0, HELIO_CONTROL_FREE);
    run(&s);
    CHECK_EQUAL(s.header->events_written, before);
    CHECK_EQUAL(phase_of(slot), HELIO_CONTROL_FREE);
    close_scene(&s);
}

static void an_answer_goes_to_nobody_when_the_slot_has_another_client_by_then(void) {
    scene s = open_scene("");
    helio_control_copy command;
    helio_control_slot *slot = write_slot(&s, 0, "ping", 4);
    submit(&s, slot);
    CHECK(helio_control_take(s.ring, &command));
    const uint64_t other = helio_control_state(99, 12345, HELIO_CONTROL_CLAIMED);
    slot->state = other;
    helio_control_answer(&command, 0, "done");
    CHECK_EQUAL(slot->state, other);
    close_scene(&s);
}

static void two_clients_that_wrote_one_slot_make_no_command(void) {
    scene s = open_scene("&level=1");
    helio_control_slot *slot = write_slot(&s, 0, "level level=3 for=60", 20);
    memcpy(slot->text + 6, "level=0", 7); /* the one that was taken for dead goes on writing */
    submit(&s, slot);
    run(&s);
    CHECK_EQUAL(slot->code, HELIO_ERR_OPTION);
    CHECK(answered(&s, "damaged"));
    close_scene(&s);
}

static void the_answer_is_cut_between_two_characters(void) {
    scene s = open_scene("");
    helio_control_copy command;
    char text[600] = "x";
    while (strlen(text) < 590) {
        strcat(text, "\xc3\xa9");
    }
    submit(&s, write_slot(&s, 0, "ping", 4));
    CHECK(helio_control_take(s.ring, &command));
    helio_control_answer(&command, 0, text);
    CHECK_EQUAL(s.ring->slots[0].answer_bytes, HELIO_CONTROL_ANSWER_BYTES - 1);
    CHECK_EQUAL((unsigned char)s.ring->slots[0].answer[HELIO_CONTROL_ANSWER_BYTES - 2], 0xa9);
    close_scene(&s);
}

/* ---- hostile content ---- */

static void lengths_that_cannot_be_are_refused(void) {
    static const uint32_t lengths[] = {HELIO_CONTROL_TEXT_BYTES + 1, 1u << 20, UINT32_MAX};
    scene s = open_scene("");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        helio_control_slot *slot = write_slot(&s, 0, "ping", 4);
        slot->text_bytes = lengths[i];
        submit(&s, slot);
        run(&s);
        CHECK_EQUAL(slot->code, HELIO_ERR_OPTION);
        CHECK(answered(&s, "damaged"));
        CHECK(strncmp(last_event(&s)->text, "(not a text): ", 14) == 0);
    }
    close_scene(&s);
}

static void what_is_no_text_is_refused_and_not_quoted(void) {
    static const char *const texts[] = {
        "ping\x1b[2J", "ping\n",           "\xff\xfe",     "ping \xc3",    "\xed\xa0\x80",
        "\xc0\x80",    "\xf5\x80\x80\x80", "\xe0\x80\x80", "ping\xc2\x9b", "\x7f",
    };
    scene s = open_scene("");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_EQUAL(give(&s, texts[i]), HELIO_ERR_OPTION);
        CHECK(answered(&s, "must be UTF-8 text"));
        CHECK(strncmp(last_event(&s)->text, "(not a text): ", 14) == 0);
    }
    CHECK_EQUAL(give(&s, "p\xc3\xa9ng"), HELIO_ERR_OPTION);
    CHECK(answered(&s, "'p\xc3\xa9ng'"));
    close_scene(&s);
}

static void words_that_are_not_understood_are_named(void) {
    static const struct {
        const char *text, *answer;
    } cases[] = {
        {"", "command '' is unknown"},
        {" ping", "command '' is unknown"},
        {"PING", "command 'PING' is unknown"},
        {"ping now", "ping has no parameter 'now'"},
        {"ping stream=a", "ping has no parameter 'stream'; its parameters are: none"},
        {"level level=3 for=1 why=a", "level has no parameter 'why'; its parameters are: stream, "
                                      "topic, receiver, for, off, level"},
        {"level level for=1", "level needs a value: level=..."},
        {"level level=3 level=3 for=1", "level is given twice"},
        {"level level=4 for=1", "level is 0, 1, 2 or 3"},
        {"level level=-1 for=1", "level is 0, 1, 2 or 3"},
        {"level level= for=1", "level is 0, 1, 2 or 3"},
        {"level level=3 for=0", "for is a number of seconds above 0"},
        {"level level=3 for=-1", "for is a number of seconds above 0"},
        {"level level=3 for=1e3", "for is a number of seconds above 0"},
        {"level level=3 for=nan", "for is a number of seconds above 0"},
        {"level level=3 for=1.0000000001", "at most 9 decimal places"},
        {"level level=3 for=2592001", "at most 2592000"},
        {"level level=3 for=99999999999999999999999999", "at most 2592000"},
        {"level level=3 for=1 topic=", "topic is empty"},
        {"level level=3 for=1 topic=%", "topic: % is followed by two hexadecimal digits"},
        {"level level=3 for=1 topic=%4", "topic: % is followed by two hexadecimal digits"},
        {"level level=3 for=1 topic=%4g", "topic: % is followed by two hexadecimal digits"},
        {"level level=3 for=1 topic=%00", "topic must be UTF-8 text"},
        {"level level=3 for=1 topic=%ff", "topic must be UTF-8 text"},
        {"level level=3 for=1 topic=%1b[2J", "topic must be UTF-8 text"},
        {"level  level=3", "level has no parameter ''"},
    };
    scene s = open_scene("");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQUAL(give(&s, cases[i].text), HELIO_ERR_OPTION);
        if (!answered(&s, cases[i].answer)) {
            CHECK_FAIL("'%s': %.*s", cases[i].text, (int)s.ring->slots[0].answer_bytes,
                       s.ring->slots[0].answer);
        }
    }
    close_scene(&s);
}

static void a_value_is_decoded_and_no_longer_than_its_place(void) {
    helio_control_request request;
    const char *text = "level level=2 for=1.25 topic=a%20b%3D%c3%a9=c";
    CHECK_EQUAL(helio_control_parse(text, strlen(text), &request), 0);
    CHECK_EQUAL(request.for_ns, 1250000000);
    CHECK_EQUAL(request.level, 2);
    CHECK(strcmp(request.text[HELIO_CONTROL_KEY_TOPIC], "a b=\xc3\xa9=c") == 0);
    char longest[400] = "level level=2 for=1 topic=";
    const size_t head = strlen(longest);
    memset(longest + head, 'x', HELIO_CONTROL_VALUE_BYTES - 1);
    CHECK_EQUAL(helio_control_parse(longest, head + HELIO_CONTROL_VALUE_BYTES - 1, &request), 0);
    longest[head + HELIO_CONTROL_VALUE_BYTES - 1] = 'x';
    CHECK_EQUAL(helio_control_parse(longest, head + HELIO_CONTROL_VALUE_BYTES, &request),
                HELIO_ERR_OPTION);
}

static void topic_patterns_are_the_shells_and_cost_little(void) {
    CHECK(helio_glob_matches("PRICES.*", "PRICES.A"));
    CHECK(helio_glob_matches("*", ""));
    CHECK(helio_glob_matches("*.?", "a.b.c"));
    CHECK(helio_glob_matches("a*b*c", "a-b-b-c"));
    CHECK(!helio_glob_matches("a*b*c", "a-b-b-"));
    CHECK(!helio_glob_matches("?", ""));
    CHECK(!helio_glob_matches("", "a"));
    CHECK(helio_glob_matches("[a]", "[a]"));
    char pattern[256], text[256];
    for (int i = 0; i < 127; i++) {
        memcpy(pattern + 2 * i, "*a", 2);
    }
    pattern[254] = 'b';
    pattern[255] = 0;
    memset(text, 'a', 255);
    text[255] = 0;
    CHECK(!helio_glob_matches(pattern, text)); /* ends: not exponential */
}

/* Everything of the ring that a client can write, at random, with and without a right check. */
static void random_content_never_hurts(void) {
    enum { ROUNDS = 100000 };
    scene s = open_scene("&event_rate=0");
    helio_random random;
    helio_random_init(&random, 4711);
    static const char *const words[] = {"ping",    "level", "level=3", "for=1", "topic=%2", "=",
                                        "for=0.5", "  ",    "why=%",   "for=",  "\xc3"};
    helio_control_copy command;
    for (int round = 0; round < ROUNDS; round++) {
        helio_control_slot *slot = &s.ring->slots[round % HELIO_CONTROL_SLOTS];
        uint64_t *raw = (uint64_t *)slot;
        for (size_t i = 1; i < sizeof *slot / 8; i++) {
            raw[i] = helio_random_next(&random);
        }
        const uint64_t kind = helio_random_next(&random) % 4;
        slot->state =
            kind == 0 ? helio_random_next(&random)
                      : helio_control_state(helio_random_next(&random), 5, HELIO_CONTROL_SUBMITTED);
        if (kind >= 2) {
            size_t used = 0;
            while (used < 40) {
                const char *word = words[helio_random_next(&random) % 11];
                memcpy(slot->text + used, word, strlen(word));
                used += strlen(word);
                slot->text[used++] = ' ';
            }
            slot->text_bytes = (uint32_t)(kind == 2 ? used : helio_random_next(&random) % 449);
            slot->deadline_ns = UINT64_MAX;
            slot->check = helio_control_check(helio_control_ticket_of(slot->state), slot->text,
                                              slot->text_bytes);
        }
        s.ring->bell = round % 3 ? s.ring->bell + 1 : helio_random_next(&random);
        if (round % 64 == 0) { /* the whole way */
            helio_instance_wait(s.instance, 0);
            helio_instance_poll(s.instance);
        } else if (helio_control_take(s.ring, &command)) {
            helio_control_request request;
            CHECK(command.text_bytes <= HELIO_CONTROL_TEXT_BYTES);
            if (command.is_whole) {
                helio_control_parse(command.text, command.text_bytes, &request);
            }
            helio_control_answer(&command, 0, "taken");
        }
    }
    for (int i = 0; i < HELIO_CONTROL_SLOTS; i++) {
        s.ring->slots[i].state = 0;
    }
    CHECK_EQUAL(give(&s, "ping"), 0); /* and it still listens */
    close_scene(&s);
}

static void an_engine_without_a_file_takes_no_commands(void) {
    helio_instance *instance = NULL;
    CHECK_EQUAL(helio_instance_create("mode=poll&stats=memory", &instance), 0);
    CHECK(helio_instance_poll(instance) >= 0);
    helio_instance_destroy(instance);
    const helio_stats_config config = {.name = "private", .bytes = 1 << 20};
    helio_stats *stats = NULL;
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK(!helio_stats_control(stats));
    CHECK_EQUAL(stats->header->commands_offset, 0);
    helio_stats_destroy(stats);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-test-control-%ld", (long)getpid());
    RUN(a_command_is_carried_out_answered_and_told);
    RUN(a_refused_command_is_told_with_the_reason);
    RUN(a_level_is_changed_for_a_time_of_the_instance_or_by_a_pattern);
    RUN(a_full_ring_is_emptied_in_the_order_of_submission);
    RUN(what_is_only_claimed_is_never_looked_at);
    RUN(a_command_whose_time_is_over_is_not_carried_out);
    RUN(a_command_that_was_taken_back_is_not_carried_out);
    RUN(an_answer_goes_to_nobody_when_the_slot_has_another_client_by_then);
    RUN(two_clients_that_wrote_one_slot_make_no_command);
    RUN(the_answer_is_cut_between_two_characters);
    RUN(lengths_that_cannot_be_are_refused);
    RUN(what_is_no_text_is_refused_and_not_quoted);
    RUN(words_that_are_not_understood_are_named);
    RUN(a_value_is_decoded_and_no_longer_than_its_place);
    RUN(topic_patterns_are_the_shells_and_cost_little);
    RUN(random_content_never_hurts);
    RUN(an_engine_without_a_file_takes_no_commands);
    if (rmdir(folder) < 0) {
        perror(folder);
        return 1; /* something was left behind */
    }
    return check_result();
}
