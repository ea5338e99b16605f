/* The flight recorder: what is read back from its ring is what was counted, whatever came and went;
 * the ring wraps, recordings are kept, a crash leaves what there was.
 *
 * The tests have their own reader, made from docs/flight.md. */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

#include "base/random.h"
#include "flight/recording.h"

enum { RING = HELIO_FLIGHT_BYTES_MIN, SLOTS = 64, WORDS = 128 };
#define TICK (10 * HELIO_MILLISECOND)
#define WALL INT64_C(1700000000000000000)

static char folder[64];

/* ---- a reader ---- */

typedef struct read_object {
    bool is_live;
    uint64_t scope, generation;
    char labels[HELIO_STATS_LABELS_BYTES];
    uint64_t cells[WORDS];
} read_object;

typedef struct reading {
    helio_flight_header header;
    read_object objects[SLOTS]; /* as the last frame left them */
    uint64_t first_tick, last_tick, frames, keys, missed, events, events_missed, left_out, triggers;
    int64_t now_ns, wall_ns;
    uint64_t last_event;
    char event_text[HELIO_SEGMENT_TEXT_BYTES];
    char why[HELIO_FLIGHT_WHY_BYTES];
} reading;

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

static uint64_t number(bytes *from) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        CHECK(from->at < from->end);
        value |= (uint64_t)(*from->at & 0x7F) << shift;
        if (!(*from->at++ & 0x80)) {
            return value;
        }
    }
    CHECK_FAIL("a number of %d bytes", 11);
    return 0;
}

static uint64_t difference(bytes *from) {
    const uint64_t value = number(from);
    return value >> 1 ^ (value & 1 ? UINT64_MAX : 0);
}

static void text(bytes *from, char *out, size_t size) {
    const uint64_t length = number(from);
    CHECK(length < size && length <= (uint64_t)(from->end - from->at));
    memcpy(out, from->at, length);
    out[length] = 0;
    from->at += length;
}

static void read_item(reading *r, bytes *from) {
    const uint64_t item = number(from), kind = item & 0x7F;
    if (kind == HELIO_FLIGHT_OBJECT || kind == HELIO_FLIGHT_CHANGED || kind == HELIO_FLIGHT_GONE) {
        const uint64_t slot = number(from);
        CHECK(slot < SLOTS);
        read_object *object = &r->objects[slot];
        CHECK(kind == HELIO_FLIGHT_OBJECT || object->is_live);
        if (kind == HELIO_FLIGHT_GONE) {
            object->is_live = false;
            return;
        }
        if (kind == HELIO_FLIGHT_OBJECT) {
            *object = (read_object){.is_live = true};
            object->scope = number(from);
            object->generation = number(from);
            number(from); /* created */
            text(from, object->labels, sizeof object->labels);
        }
        uint64_t cell = 0;
        for (uint64_t count = number(from); count > 0; count--) {
            cell += number(from);
            CHECK(cell < WORDS);
            object->cells[cell] += kind == HELIO_FLIGHT_OBJECT ? number(from) : difference(from);
        }
    } else if (kind == HELIO_FLIGHT_EVENT) {
        r->last_event = number(from);
        for (int i = 0; i < 8; i++) {
            number(from);
        }
        text(from, r->event_text, sizeof r->event_text);
        r->events++;
    } else if (kind == HELIO_FLIGHT_TRIGGER) {
        number(from);
        number(from);
        text(from, r->why, sizeof r->why);
        r->triggers++;
    } else if (kind == HELIO_FLIGHT_EVENTS_MISSED) {
        r->events_missed += number(from);
    } else {
        CHECK_EQUAL(kind, HELIO_FLIGHT_LEFT_OUT);
        r->left_out = number(from);
    }
}

static void read_frame(reading *r, bytes from) {
    const bool is_key = number(&from) & HELIO_FLIGHT_KEY;
    const uint64_t tick = number(&from);
    CHECK(r->frames == 0 || tick == r->last_tick + 1);
    CHECK(r->frames > 0 || is_key);
    r->first_tick = r->frames == 0 ? tick : r->first_tick;
    r->last_tick = tick;
    if (is_key) {
        memset(r->objects, 0, sizeof r->objects);
        r->now_ns = (int64_t)number(&from);
        r->wall_ns = (int64_t)number(&from);
    } else {
        const uint64_t passed = number(&from);
        r->now_ns += (int64_t)passed;
        r->wall_ns += (int64_t)(passed + difference(&from));
    }
    number(&from); /* late */
    r->missed += number(&from);
    number(&from); /* next */
    while (from.at < from.end) {
        read_item(r, &from);
    }
    r->frames++;
    r->keys += is_key;
}

static const helio_flight_chunk *chunk_of(const uint8_t *file, uint64_t i) {
    const helio_flight_header *header = (const helio_flight_header *)file;
    return (const helio_flight_chunk *)(file + header->chunks_offset + i * header->chunk_bytes);
}

static void read_chunk(reading *r, const helio_flight_chunk *chunk) {
    const uint8_t *at = (const uint8_t *)(chunk + 1), *end = at + helio_cell(&chunk->used);
    while (at < end) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        read_frame(r, (bytes){at + 8, at + 8 + length});
        at += (8 + length + 7) / 8 * 8;
    }
}

static void read_file(const char *path, reading *r) {
    static uint8_t file[4 * RING];
    *r = (reading){0};
    const int descriptor = open(path, O_RDONLY);
    CHECK(descriptor >= 0);
    CHECK(read(descriptor, file, sizeof file) > (ssize_t)sizeof r->header);
    close(descriptor);
    memcpy(&r->header, file, sizeof r->header);
    CHECK(memcmp(r->header.magic, "HELIOFLT", 8) == 0);
    for (uint64_t last = 0;;) { /* in the order of their numbers */
        const helio_flight_chunk *next = NULL;
        for (uint64_t i = 0; i < r->header.chunks; i++) {
            const helio_flight_chunk *chunk = chunk_of(file, i);
            const uint64_t sequence = helio_cell(&chunk->sequence);
            if (sequence > last && (!next || sequence < helio_cell(&next->sequence))) {
                next = chunk;
            }
        }
        if (!next) {
            return;
        }
        last = helio_cell(&next->sequence);
        read_chunk(r, next);
    }
}

/* ---- an instance's statistics and their recorder ---- */

typedef struct bench {
    helio_stats *stats;
    helio_stats_object instance;
    helio_flight flight;
    helio_moment moment;
    char path[128];
} bench;

static void open_bench(bench *b, uint32_t keep, const char *freeze) {
    const helio_stats_config config = {
        .name = "bench",
        .folder = folder,
        .bytes = 16 << 20,
        .level = 2,
        .incarnation = 77,
        .wall_ns = WALL,
        .event_rate = 0,
        .event_burst = 1,
    };
    memset(b, 0, sizeof *b);
    b->moment = (helio_moment){.now_ns = HELIO_SECOND, .wall_ns = WALL};
    CHECK_EQUAL(helio_stats_create(&config, &b->stats), 0);
    CHECK_EQUAL(helio_stats_open_object(b->stats, HELIO_SCOPE_INSTANCE, "instance=bench\n", WALL,
                                        &b->instance),
                0);
    snprintf(b->path, sizeof b->path, "%s/bench.%ld.flight", folder, (long)getpid());
    CHECK_EQUAL(helio_flight_open(&b->flight, b->stats, b->path, RING, TICK, keep, freeze), 0);
}

static void tick(bench *b) {
    b->moment.now_ns += TICK;
    b->moment.wall_ns += TICK;
    const helio_flight_time time = {.moment = b->moment, .next_ns = TICK};
    helio_flight_turn(&b->flight, &time);
}

static void close_bench(bench *b) {
    helio_flight_keeper_fini(&b->flight.keeper);
    helio_flight_recorder_close(&b->flight.recorder);
    helio_stats_close_object(b->stats, &b->instance, WALL);
    helio_stats_destroy(b->stats);
}

static helio_instance_stats *counts_of(bench *b) {
    return b->instance.record;
}

/* A cell of the record leads to a histogram; what is recorded of that is another test's subject. */
static bool is_histogram(const helio_stats_object *object, size_t cell) {
    return object->scope == HELIO_SCOPE_INSTANCE &&
           cell == offsetof(helio_instance_stats, host_hiccup) / 8;
}

/* What was read equals what is counted, cell by cell. */
static void check_object(const reading *r, const helio_stats_object *object, size_t record_bytes) {
    const read_object *found = &r->objects[object->slot];
    const _Atomic uint64_t *cells = object->record;
    CHECK(found->is_live);
    CHECK_EQUAL(found->scope, object->scope);
    for (size_t i = 1; i < record_bytes / 8; i++) {
        if (!is_histogram(object, i)) {
            CHECK_EQUAL(found->cells[i], helio_cell(&cells[i]));
        }
    }
}

static void open_object(bench *b, helio_scope scope, const char *labels, helio_stats_object *out) {
    CHECK_EQUAL(helio_stats_open_object(b->stats, scope, labels, b->moment.wall_ns, out), 0);
}

/* ---- tests ---- */

static void what_was_counted_is_read_back(void) {
    bench b;
    static reading r;
    open_bench(&b, 0, "none");
    helio_set(&counts_of(&b)->messages_sent, 5);
    helio_set(&counts_of(&b)->memory_limit, UINT64_MAX);
    tick(&b);
    helio_set(&counts_of(&b)->messages_sent, 1000005);
    helio_set(&counts_of(&b)->memory_limit, 3); /* a gauge may fall */
    tick(&b);
    tick(&b);
    read_file(b.path, &r);
    CHECK_EQUAL(r.frames, 3);
    CHECK_EQUAL(r.keys, 1);
    CHECK_EQUAL(r.header.pid, getpid());
    CHECK_EQUAL(r.header.incarnation, 77);
    CHECK_EQUAL(r.header.state, HELIO_FLIGHT_RECORDING);
    CHECK_EQUAL(r.now_ns, HELIO_SECOND + 3 * TICK);
    CHECK_EQUAL(r.wall_ns, WALL + 3 * TICK);
    CHECK(strcmp(r.objects[0].labels, "instance=bench\n") == 0);
    check_object(&r, &b.instance, sizeof(helio_instance_stats));
    close_bench(&b);
    CHECK(access(b.path, F_OK) < 0); /* a clean end takes the ring away */
}

/* Random objects come, count, go and are followed by others in their slots; whatever the moment,
 * the ring read from its oldest key says what is there. */
static void the_ring_wraps_and_tells_the_truth(void) {
    enum { MEMBERS = 12 };
    bench b;
    static reading r;
    helio_stats_object members[MEMBERS] = {0};
    helio_random random;
    helio_random_init(&random, 4);
    open_bench(&b, 0, "none");
    for (int i = 0; i < 6000; i++) {
        helio_stats_object *one = &members[helio_random_next(&random) % MEMBERS];
        if (!one->record) {
            open_object(&b, HELIO_SCOPE_RX_STREAM, "instance=bench\nstream=1.2\n", one);
        } else if (helio_random_next(&random) % 50 == 0) {
            /* Gone for longer than a slot rests, so that slots are used again. */
            helio_stats_close_object(b.stats, one, b.moment.wall_ns - 100 * HELIO_SECOND);
        } else {
            _Atomic uint64_t *cells = one->record;
            for (int change = 0; change < 8; change++) {
                const uint64_t bits = helio_random_next(&random);
                helio_count(&cells[1 + bits % 20], helio_random_next(&random) >> bits % 64);
            }
        }
        tick(&b);
        if (i % 500 == 499) {
            read_file(b.path, &r);
            CHECK_EQUAL(r.last_tick, i);
            uint64_t live = 1;
            for (int m = 0; m < MEMBERS; m++) {
                if (members[m].record) {
                    const read_object *found = &r.objects[members[m].slot];
                    const _Atomic uint64_t *cells = members[m].record;
                    CHECK(found->is_live);
                    for (int cell = 1; cell <= 20; cell++) {
                        CHECK_EQUAL(found->cells[cell], helio_cell(&cells[cell]));
                    }
                    live++;
                }
            }
            for (int slot = 0; slot < SLOTS; slot++) {
                live -= r.objects[slot].is_live;
            }
            CHECK_EQUAL(live, 0);
        }
    }
    CHECK(r.first_tick > 0);
    CHECK(r.keys >= HELIO_FLIGHT_CHUNKS - 1);
    for (int m = 0; m < MEMBERS; m++) {
        helio_stats_close_object(b.stats, &members[m], WALL);
    }
    close_bench(&b);
}

static void a_histogram_is_its_sum(void) {
    bench b;
    static reading r;
    helio_stats_object receiver;
    open_bench(&b, 0, "none");
    open_object(&b, HELIO_SCOPE_RECEIVER, "instance=bench\ntopic=A\nstream=1.2\n", &receiver);
    tick(&b);
    helio_record(receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY], 1500, 2);
    helio_record(receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY], 700, 1);
    tick(&b);
    read_file(b.path, &r);
    const size_t cell = offsetof(helio_receiver_stats, total_latency) / 8;
    CHECK_EQUAL(r.objects[receiver.slot].cells[cell], HELIO_STATS_COUNTING ? 3700 : 0);
    helio_stats_close_object(b.stats, &receiver, WALL);
    close_bench(&b);
}

static void late_ticks_are_told(void) {
    bench b;
    static reading r;
    open_bench(&b, 0, "none");
    tick(&b);
    b.moment.now_ns += 5 * TICK;
    b.moment.wall_ns += 5 * TICK - 3000; /* and the wall clock was set back a little */
    const helio_flight_time time = {
        .moment = b.moment, .late_ns = 4 * TICK, .missed = 4, .next_ns = TICK};
    helio_flight_turn(&b.flight, &time);
    read_file(b.path, &r);
    CHECK_EQUAL(r.missed, 4);
    CHECK_EQUAL(r.now_ns, HELIO_SECOND + 6 * TICK);
    CHECK_EQUAL(r.wall_ns, WALL + 6 * TICK - 3000);
    CHECK_EQUAL(helio_cell(&b.flight.ticks_late), 4);
    close_bench(&b);
}

static void tell(bench *b, helio_event_id event, const char *what) {
    helio_stats_event(b->stats, b->moment.wall_ns, event, HELIO_STATS_NO_SLOT,
                      (const uint64_t[4]){1, 2, 3, UINT64_MAX}, "%s", what);
}

static void events_are_recorded_and_those_overwritten_counted(void) {
    bench b;
    static reading r;
    open_bench(&b, 0, "none");
    tell(&b, HELIO_EVENT_STREAM_OPENED, "one");
    tick(&b);
    tell(&b, HELIO_EVENT_STREAM_CLOSED, "two");
    tick(&b);
    read_file(b.path, &r);
    CHECK_EQUAL(r.events, 2);
    CHECK(strcmp(r.event_text, "two") == 0);
    const uint32_t many = helio_stats_header(b.stats)->event_capacity + 50;
    for (uint32_t i = 0; i < many; i++) {
        tell(&b, HELIO_EVENT_STREAM_CLOSED, "many");
    }
    for (uint32_t i = 0; i < many / HELIO_FLIGHT_EVENTS_PER_TICK + 2; i++) {
        tick(&b);
    }
    read_file(b.path, &r);
    CHECK_EQUAL(r.events + r.events_missed, 2 + many);
    CHECK_EQUAL(r.events_missed, 50);
    CHECK_EQUAL(r.last_event, 1 + many);
    close_bench(&b);
}

static void kept_path(const bench *b, unsigned which, char out[160]) {
    snprintf(out, 160, "%.*s.%u.flight", (int)(strlen(b->path) - strlen(".flight")), b->path,
             which);
}

static void an_event_keeps_the_recording_with_what_came_after(void) {
    bench b;
    static reading r;
    char path[160];
    open_bench(&b, 4, "error");
    for (int i = 0; i < 100; i++) {
        helio_count(&counts_of(&b)->messages_sent, 3);
        tick(&b);
    }
    tell(&b, HELIO_EVENT_WARNED, "only a warning");
    tick(&b);
    tell(&b, HELIO_EVENT_PACKETS_LOST, "three packets");
    const int64_t then = b.moment.wall_ns;
    tick(&b);
    kept_path(&b, 1, path);
    for (int i = 0; i < 190; i++) {
        helio_count(&counts_of(&b)->messages_sent, 1);
        tick(&b);
    }
    CHECK(access(path, F_OK) < 0); /* it is not over yet */
    for (int i = 0; i < 30; i++) {
        tick(&b);
    }
    read_file(path, &r);
    CHECK_EQUAL(r.header.state, HELIO_FLIGHT_FROZEN);
    CHECK_EQUAL(r.header.number, 1);
    CHECK_EQUAL(r.header.trigger_ns, then);
    CHECK_EQUAL(r.header.trigger_event, 2);
    CHECK(strcmp(r.header.why, "packets_lost: three packets") == 0);
    CHECK(strcmp(r.why, r.header.why) == 0);
    CHECK_EQUAL(r.triggers, 1);
    CHECK_EQUAL(r.first_tick, 0);
    CHECK(r.wall_ns >= then + 2 * HELIO_SECOND);
    CHECK_EQUAL(r.objects[0].cells[offsetof(helio_instance_stats, messages_sent) / 8],
                HELIO_STATS_COUNTING ? 490 : 0);
    CHECK_EQUAL(helio_cell(&b.flight.freezes), 1);
    CHECK_EQUAL(b.flight.outcomes[0].is_kept, true);
    close_bench(&b);
    CHECK(access(path, F_OK) == 0); /* what was kept stays */
    unlink(path);
}

/* A trouble that lasts is kept as it began. */
static void a_kind_of_event_freezes_again_only_after_quiet(void) {
    bench b;
    char path[160];
    open_bench(&b, 4, "error");
    for (int i = 0; i < 3000; i++) {
        if (i % 50 == 0) {
            tell(&b, HELIO_EVENT_PACKETS_LOST, "again");
        }
        if (i == 1000) {
            tell(&b, HELIO_EVENT_SEND_FAILED, "another kind");
        }
        tick(&b);
    }
    CHECK_EQUAL(helio_cell(&b.flight.freezes), 2);
    for (int i = 0; i < 1000; i++) {
        tick(&b);
    }
    tell(&b, HELIO_EVENT_PACKETS_LOST, "after ten seconds without");
    for (int i = 0; i < 300; i++) {
        tick(&b);
    }
    CHECK_EQUAL(helio_cell(&b.flight.freezes), 3);
    close_bench(&b);
    for (unsigned i = 1; i <= 3; i++) {
        kept_path(&b, i, path);
        CHECK_EQUAL(unlink(path), 0);
    }
}

static void the_oldest_recordings_go(void) {
    bench b;
    char path[160];
    open_bench(&b, 2, "none");
    for (int i = 0; i < 5; i++) {
        CHECK_EQUAL(helio_flight_ask(&b.flight, "by hand"), 0);
        CHECK_EQUAL(helio_flight_ask(&b.flight, "twice"), HELIO_ERR_STATE);
        helio_flight_finish(&b.flight, b.moment);
        usleep(20000); /* the file system's clock has to move, which ticks every 4 or 10 ms */
    }
    CHECK_EQUAL(helio_cell(&b.flight.freezes), 5);
    for (unsigned i = 1; i <= 5; i++) {
        kept_path(&b, i, path);
        CHECK_EQUAL(access(path, F_OK), i >= 4 ? 0 : -1);
        unlink(path);
    }
    close_bench(&b);
}

static void a_folder_that_cannot_be_written_is_counted_and_told(void) {
    bench b;
    open_bench(&b, 2, "none");
    tick(&b);
    free(b.flight.recorder.file.path); /* as if its folder were gone */
    b.flight.recorder.file.path = strdup("/nowhere/at/all/bench.1.flight");
    CHECK_EQUAL(helio_flight_ask(&b.flight, "why not"), 0);
    helio_flight_finish(&b.flight, b.moment);
    CHECK_EQUAL(helio_cell(&b.flight.errors), 1);
    CHECK_EQUAL(helio_cell(&b.flight.freezes), 0);
    CHECK(!b.flight.outcomes[0].is_kept);
    CHECK(strstr(b.flight.outcomes[0].text, "/nowhere/at/all/bench.1.1.flight") != NULL);
    tick(&b); /* and goes on */
    free(b.flight.recorder.file.path);
    b.flight.recorder.file.path = strdup(b.path);
    close_bench(&b);
}

/* More objects than a chunk's key can tell: some are left out, counted, and nothing breaks. */
static void too_many_objects_are_left_out_and_counted(void) {
    enum { MANY = 40 };
    bench b;
    static reading r;
    helio_stats_object many[MANY];
    helio_random random;
    helio_random_init(&random, 1);
    open_bench(&b, 0, "none");
    for (int i = 0; i < MANY; i++) {
        open_object(&b, HELIO_SCOPE_TX_STREAM, "instance=bench\nstream=1.2\n", &many[i]);
        _Atomic uint64_t *cells = many[i].record;
        for (size_t cell = 1; cell < sizeof(helio_tx_stream_stats) / 8 - 1; cell++) {
            helio_set(&cells[cell], helio_random_next(&random) | UINT64_C(1) << 63);
        }
    }
    for (int i = 0; i < 100; i++) {
        helio_count(&counts_of(&b)->messages_sent, 1);
        helio_count(many[i % MANY].record, 0);
        tick(&b);
    }
    read_file(b.path, &r);
    CHECK_EQUAL(r.last_tick, 99);
    CHECK(!HELIO_STATS_COUNTING || (r.left_out > 0 && r.left_out < MANY));
    CHECK_EQUAL(r.objects[0].cells[offsetof(helio_instance_stats, messages_sent) / 8],
                HELIO_STATS_COUNTING ? 100 : 0);
    for (int i = 0; i < MANY; i++) {
        helio_stats_close_object(b.stats, &many[i], WALL);
    }
    close_bench(&b);
}

static void triggers_are_names_and_severities(void) {
    helio_flight_trigger trigger;
    CHECK_EQUAL(helio_flight_trigger_read(&trigger, "error,warned"), 0);
    CHECK(trigger.freezes[HELIO_EVENT_PACKETS_LOST] && trigger.freezes[HELIO_EVENT_WARNED]);
    CHECK(!trigger.freezes[HELIO_EVENT_RESUMED]);
    CHECK_EQUAL(helio_flight_trigger_read(&trigger, "info,warning,error"), 0);
    CHECK(!trigger.freezes[HELIO_EVENT_FLIGHT_FROZEN] &&
          !trigger.freezes[HELIO_EVENT_FLIGHT_FAILED]);
    CHECK_EQUAL(helio_flight_trigger_read(&trigger, ""), 0);
    CHECK_EQUAL(helio_flight_trigger_read(&trigger, "none"), 0);
    static const char *const bad[] = {"errors", "packets_lost,", "flight_frozen", " error", "a,b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const bool is_trailing = strcmp(bad[i], "packets_lost,") == 0;
        CHECK_EQUAL(helio_flight_trigger_read(&trigger, bad[i]),
                    is_trailing ? 0 : HELIO_ERR_OPTION);
    }
}

/* ---- the whole engine ---- */

static helio_instance *instance_of(const char *options) {
    helio_instance *instance = NULL;
    if (helio_instance_create(options, &instance) < 0) {
        CHECK_FAIL("%s", helio_error_text());
    }
    return instance;
}

static void bad_options_are_refused(void) {
    helio_instance *instance = NULL;
    CHECK_EQUAL(helio_instance_create("flight_bytes=4096", &instance), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_text(), "flight_bytes") && strstr(helio_error_text(), "262144"));
    CHECK_EQUAL(helio_instance_create("flight_freeze=nonsense", &instance), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_text(), "flight_freeze") && strstr(helio_error_text(), "nonsense"));
    CHECK_EQUAL(helio_instance_create("flight_interval=0.0001", &instance), HELIO_ERR_OPTION);
    CHECK_EQUAL(helio_instance_create("flight_keep=-1", &instance), HELIO_ERR_OPTION);
}

static void ring_of(const helio_instance *instance, char out[160]) {
    const char *segment = helio_instance_segment(instance);
    snprintf(out, 160, "%.*s.flight", (int)(strlen(segment) - strlen(".helio")), segment);
}

static void an_instance_records_itself(const char *mode) {
    char options[160], path[160], kept[170];
    static reading r;
    snprintf(options, sizeof options,
             "name=whole&mode=%s&flight_interval=0.001&flight_bytes=262144", mode);
    helio_instance *instance = instance_of(options);
    ring_of(instance, path);
    CHECK_EQUAL(helio_instance_freeze_flight(instance, "a trial"), 0);
    for (int i = 0; i < 5000 && r.frames < 20; i++) {
        usleep(1000);
        if (strcmp(mode, "poll") == 0) { /* the caller is the recorder's thread, too */
            helio_instance_poll(instance);
        }
        read_file(path, &r);
    }
    CHECK(r.frames >= 20);
    CHECK(strcmp(r.objects[0].labels, "") != 0);
    helio_instance_destroy(instance);
    CHECK(access(path, F_OK) < 0);
    snprintf(kept, sizeof kept, "%.*s.1.flight", (int)(strlen(path) - strlen(".flight")), path);
    read_file(kept, &r);
    CHECK_EQUAL(r.header.state, HELIO_FLIGHT_FROZEN);
    CHECK(strcmp(r.header.why, "a trial") == 0);
    CHECK(strstr(r.event_text, "stopped") != NULL); /* to the end */
    unlink(kept);
}

static void a_threaded_instance_records_itself(void) {
    an_instance_records_itself("thread");
}

static void a_polled_instance_records_itself(void) {
    an_instance_records_itself("poll");
}

static void there_may_be_no_recorder(void) {
    char path[160];
    helio_instance *instance = instance_of("name=none&flight_bytes=0");
    ring_of(instance, path);
    CHECK(access(path, F_OK) < 0);
    CHECK_EQUAL(helio_instance_freeze_flight(instance, NULL), HELIO_ERR_STATE);
    helio_instance_destroy(instance);
    instance = instance_of("name=none&stats=memory");
    CHECK_EQUAL(helio_instance_freeze_flight(instance, NULL), HELIO_ERR_STATE);
    helio_instance_destroy(instance);
    instance = instance_of("name=none&flight_keep=0");
    CHECK_EQUAL(helio_instance_freeze_flight(instance, NULL), HELIO_ERR_STATE);
    helio_instance_destroy(instance);
}

static void a_crash_leaves_what_there_was(void) {
    static reading r;
    int ready[2];
    CHECK_EQUAL(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 1, path[160];
        helio_instance *instance = NULL;
        if (helio_instance_create("name=crash&flight_interval=0.001&flight_bytes=262144",
                                  &instance) < 0) {
            _exit(3);
        }
        ring_of(instance, path);
        for (int i = 0; i < 5000 && r.frames < 30; i++) {
            usleep(1000);
            read_file(path, &r);
        }
        if (write(ready[1], &byte, 1) != 1) {
            _exit(4);
        }
        _exit(0);
    }
    char byte = 0, path[160];
    int status = 0;
    CHECK_EQUAL(read(ready[0], &byte, 1), 1);
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    close(ready[0]);
    close(ready[1]);
    snprintf(path, sizeof path, "%s/crash.%ld.flight", folder, (long)child);
    read_file(path, &r);
    CHECK(r.frames >= 30);
    CHECK_EQUAL(r.header.state, HELIO_FLIGHT_RECORDING);
    CHECK(strstr(r.objects[0].labels, "instance=crash") != NULL);
    unlink(path);
    snprintf(path, sizeof path, "%s/crash.%ld.helio", folder, (long)child);
    unlink(path);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/heliograph-flight-%ld", (long)getpid());
    mkdir(folder, 0755);
    setenv("HELIOGRAPH_SEGMENT_DIR", folder, 1);
    RUN(what_was_counted_is_read_back);
    RUN(the_ring_wraps_and_tells_the_truth);
    RUN(a_histogram_is_its_sum);
    RUN(late_ticks_are_told);
    RUN(events_are_recorded_and_those_overwritten_counted);
    RUN(an_event_keeps_the_recording_with_what_came_after);
    RUN(a_kind_of_event_freezes_again_only_after_quiet);
    RUN(the_oldest_recordings_go);
    RUN(a_folder_that_cannot_be_written_is_counted_and_told);
    RUN(too_many_objects_are_left_out_and_counted);
    RUN(triggers_are_names_and_severities);
    RUN(bad_options_are_refused);
    RUN(a_threaded_instance_records_itself);
    RUN(a_polled_instance_records_itself);
    RUN(there_may_be_no_recorder);
    RUN(a_crash_leaves_what_there_was);
    if (rmdir(folder) < 0) {
        fprintf(stderr, "files are left in %s\n", folder);
        return 1;
    }
    return check_result();
}
