/* The decision log: what was written is read back, whole or not at all. */
#include <heliograph/errors.h>
#include <heliograph/heliograph.h>

#include "base/random.h"
#include "check.h"
#include "policy/decision_log.h"
#include "policy/decision_reader.h"

enum { PLACES = 5, BYTES = 1 << 16 };

static _Alignas(8) uint8_t memory[BYTES];
static helio_decision_log log_;
static helio_decision_reader reader;
static helio_decision_record record;
static helio_random random_;

static void begin(size_t bytes) {
    CHECK_EQUAL(
        helio_decision_log_init(&log_, memory, bytes, "feed", "a1b2c3d4e5f6:40001", 17, PLACES), 0);
    helio_random_init(&random_, 1);
}

/* Whatever a field can hold. */
static uint64_t any(void) {
    return helio_random_next(&random_) >> helio_random_below(&random_, 64);
}

static helio_receiver_view any_view(uint32_t place) {
    return (helio_receiver_view){
        .receiver = any(),
        .incarnation = any(),
        .flags = (uint32_t)any() | HELIO_VIEW_NEWS,
        .window = (uint32_t)any(),
        .received = any(),
        .lost = any(),
        .unrecoverable = any(),
        .naks = any(),
        .naks_again = any(),
        .naks_late = any(),
        .naks_shed = any(),
        .repairs = any(),
        .repair_bytes = any(),
        .position = any(),
        .missing = any(),
        .buffer_fill = (uint32_t)any(),
        .index = place,
        .round_trip_ns = (int64_t)any(),
        .heard_ns = (int64_t)any(),
    };
}

static helio_interval any_interval(void) {
    return (helio_interval){
        .now_ns = (int64_t)any(),
        .wall_ns = (int64_t)any(),
        .length_ns = (int64_t)any(),
        .flags = (uint32_t)any(),
        .receivers = PLACES,
        .packets_sent = any(),
        .bytes_sent = any(),
        .repair_packets = any(),
        .repair_bytes = any(),
        .naks = any(),
        .offered_bytes = any(),
        .rate = any(),
        .queue_bytes = any(),
        .lead = any(),
        .trail = any(),
        .history_packets = any(),
        .repairs_waiting = any(),
    };
}

static int next(void) {
    return helio_decision_reader_next(&reader, &record);
}

static void what_was_written_is_read_back(void) {
    static helio_receiver_view views[100][PLACES];
    static helio_interval intervals[100];
    begin(sizeof memory);
    const uint64_t numbers[3] = {0, UINT64_MAX, 300};
    helio_decision_log_record(&log_, HELIO_DECISION_CONFIG, NULL, 0, "rate_policy=dynamic");
    for (int i = 0; i < 100; i++) {
        for (uint32_t place = 0; place < PLACES; place++) {
            const bool has_news = i == 0 || any() % 2;
            views[i][place] = has_news ? any_view(place) : views[i - 1][place];
            if (!has_news) {
                views[i][place].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
            }
            helio_decision_log_view(&log_, &views[i][place]);
        }
        intervals[i] = any_interval();
        helio_decision_log_interval(&log_, &intervals[i]);
        helio_decision_log_record(&log_, HELIO_DECISION_RATE, numbers, 3, i % 2 ? "loss" : NULL);
    }
    CHECK(!log_.is_full);
    CHECK_EQUAL(helio_decision_reader_init(&reader, memory, sizeof memory), 0);
    CHECK(strcmp(reader.instance, "feed") == 0 && strcmp(reader.stream, "a1b2c3d4e5f6:40001") == 0);
    CHECK_EQUAL(reader.wall_ns, 17);
    CHECK_EQUAL(next(), 1);
    CHECK_EQUAL(record.kind, HELIO_DECISION_CONFIG);
    CHECK(strcmp(record.text, "rate_policy=dynamic") == 0);
    for (int i = 0; i < 100; i++) {
        do {
            CHECK_EQUAL(next(), 1);
        } while (record.kind == HELIO_DECISION_VIEW);
        CHECK_EQUAL(record.kind, HELIO_DECISION_INTERVAL);
        CHECK_BYTES(reader.views, views[i], sizeof views[i]);
        CHECK_BYTES(&reader.interval, &intervals[i], sizeof intervals[i]);
        CHECK_EQUAL(next(), 1);
        CHECK_EQUAL(record.kind, HELIO_DECISION_RATE);
        CHECK_EQUAL(record.count, 3);
        CHECK_BYTES(record.numbers, numbers, sizeof numbers);
        CHECK(strcmp(record.text, i % 2 ? "loss" : "") == 0);
    }
    CHECK_EQUAL(next(), 0);
    helio_decision_reader_fini(&reader);
    helio_decision_log_fini(&log_);
}

static void a_quiet_receiver_takes_few_bytes(void) {
    begin(sizeof memory);
    helio_receiver_view view = any_view(3);
    view.received = 1000000;
    view.heard_ns = 1000000000;
    helio_decision_log_view(&log_, &view);
    const size_t before = log_.used;
    view.received += 900;
    view.position += 900;
    view.heard_ns += 100000000;
    helio_decision_log_view(&log_, &view);
    CHECK(log_.used - before <= 32);
    helio_decision_log_fini(&log_);
}

static void a_view_without_news_is_written_when_it_has_changed(void) {
    begin(sizeof memory);
    helio_receiver_view view = any_view(2);
    helio_decision_log_view(&log_, &view);
    const size_t before = log_.used;
    view.flags &= ~(uint32_t)HELIO_VIEW_NEWS;
    helio_decision_log_view(&log_, &view);
    CHECK_EQUAL(log_.used, before);
    view.flags ^= HELIO_VIEW_SUSPENDED;
    helio_decision_log_view(&log_, &view);
    CHECK(log_.used > before);
    helio_decision_log_fini(&log_);
}

static void a_full_log_ends_with_a_whole_record_and_says_so(void) {
    begin(HELIO_DECISION_LOG_MIN);
    int written = 0;
    for (int i = 0; i < 1000; i++) {
        helio_decision_log_record(&log_, HELIO_DECISION_POLICY, NULL, 0, "set-rate rate=1000000");
        written += !log_.is_full;
    }
    CHECK(log_.is_full && log_.used <= HELIO_DECISION_LOG_MIN);
    CHECK_EQUAL(memory[32], 1);
    CHECK_EQUAL(helio_decision_reader_init(&reader, memory, HELIO_DECISION_LOG_MIN), 0);
    int read = 0;
    while (next() == 1) {
        read++;
    }
    CHECK_EQUAL(read, written);
    CHECK_EQUAL(next(), 0);
    helio_decision_reader_fini(&reader);
    helio_decision_log_fini(&log_);
}

static void too_long_a_text_is_cut(void) {
    static char text[2 * HELIO_DECISION_TEXT_MAX];
    memset(text, 'x', sizeof text - 1);
    begin(sizeof memory);
    helio_decision_log_record(&log_, HELIO_DECISION_POLICY, NULL, 0, text);
    CHECK_EQUAL(helio_decision_reader_init(&reader, memory, sizeof memory), 0);
    CHECK_EQUAL(next(), 1);
    CHECK_EQUAL(strlen(record.text), HELIO_DECISION_TEXT_MAX);
    helio_decision_reader_fini(&reader);
    helio_decision_log_fini(&log_);
}

static void what_cannot_be_a_log_is_refused(void) {
    CHECK_EQUAL(helio_decision_log_init(&log_, memory, HELIO_DECISION_LOG_MIN - 1, "", "", 0, 1),
                HELIO_ERR_OPTION);
    begin(sizeof memory);
    CHECK_EQUAL(helio_decision_reader_init(&reader, memory, HELIO_DECISION_LOG_HEADER - 1),
                HELIO_DECISION_DAMAGED);
    static const size_t places[] = {0, 8, 23, 39};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        memory[places[i]] ^= 0x40;
        CHECK_EQUAL(helio_decision_reader_init(&reader, memory, sizeof memory),
                    HELIO_DECISION_DAMAGED);
        memory[places[i]] ^= 0x40;
    }
    memory[12] = 0;
    CHECK_EQUAL(helio_decision_reader_init(&reader, memory, sizeof memory), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_text(), "has version 0; this Heliograph reads version 1"));
    helio_decision_log_fini(&log_);
}

/* Reads to the end, wherever that is; the sanitizers watch. */
static void read_all(size_t size) {
    if (helio_decision_reader_init(&reader, memory, size) != 0) {
        return;
    }
    while (next() == 1) {
        CHECK(reader.interval.receivers <= reader.entries);
    }
    helio_decision_reader_fini(&reader);
}

static void a_damaged_log_is_read_up_to_the_damage(void) {
    static uint8_t whole[4096];
    begin(sizeof memory);
    for (int i = 0; log_.used < 3000; i++) {
        const helio_receiver_view view = any_view((uint32_t)i % PLACES);
        const helio_interval interval = any_interval();
        helio_decision_log_view(&log_, &view);
        helio_decision_log_interval(&log_, &interval);
        helio_decision_log_record(&log_, HELIO_DECISION_RATE, NULL, 0, "hold");
    }
    memcpy(whole, memory, sizeof whole);
    const uint64_t used = log_.used;
    for (uint64_t cut = HELIO_DECISION_LOG_HEADER; cut <= used; cut++) {
        memcpy(memory + 16, &cut, sizeof cut);
        read_all(cut);
    }
    for (int i = 0; i < 20000; i++) {
        memcpy(memory, whole, sizeof whole);
        for (int k = 0; k < 3; k++) {
            memory[helio_random_below(&random_, used)] = (uint8_t)any();
        }
        read_all(sizeof whole);
    }
    helio_decision_log_fini(&log_);
}

int main(void) {
    RUN(what_was_written_is_read_back);
    RUN(a_quiet_receiver_takes_few_bytes);
    RUN(a_view_without_news_is_written_when_it_has_changed);
    RUN(a_full_log_ends_with_a_whole_record_and_says_so);
    RUN(too_long_a_text_is_cut);
    RUN(what_cannot_be_a_log_is_refused);
    RUN(a_damaged_log_is_read_up_to_the_damage);
    return check_result();
}
