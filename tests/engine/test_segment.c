/* The stats segment: what a reader of the file sees while the engine lives, when it ends, and when
 * there is no room. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "generated/options.h"
#include "stats/reading.h"
#include "stats/segment.h"

enum { MINUTE = 60 };
#define SECOND_NS INT64_C(1000000000)

static char folder[64];

static helio_stats *open_stats(const char *name, const char *where, size_t bytes, int level) {
    const helio_stats_config config = {.name = name,
                                       .folder = where,
                                       .bytes = bytes,
                                       .level = level,
                                       .mode = HELIO_MODE_POLL,
                                       .incarnation = 77,
                                       .wall_ns = 5 * SECOND_NS};
    helio_stats *stats = NULL;
    return helio_stats_create(&config, &stats) == 0 ? stats : NULL;
}

/* A reader of its own: the file, mapped. */
typedef struct reader {
    const uint8_t *memory;
    size_t size;
    const helio_segment_header *header;
} reader;

static reader map_file(const char *path) {
    const int file = open(path, O_RDONLY);
    struct stat status = {0};
    CHECK(file >= 0 && fstat(file, &status) == 0);
    reader out = {.size = (size_t)status.st_size};
    out.memory = mmap(NULL, out.size, PROT_READ, MAP_SHARED, file, 0);
    out.header = (const helio_segment_header *)out.memory;
    close(file);
    return out;
}

static const helio_segment_object *object_at(const reader *r, uint32_t slot) {
    return (const helio_segment_object *)(r->memory + r->header->objects_offset) + slot;
}

static void a_running_segment_describes_itself(void) {
    helio_stats *stats = open_stats("alpha", folder, 1 << 20, 2);
    CHECK(stats);
    reader r = map_file(helio_stats_path(stats));
    CHECK_BYTES(r.header->magic, "HELIOSEG", 8);
    CHECK_EQUAL(r.header->byte_order, 0x01020304);
    CHECK_EQUAL(r.header->state, HELIO_SEGMENT_RUNNING);
    CHECK_EQUAL(r.header->size, r.size);
    CHECK_EQUAL(r.header->pid, getpid());
    CHECK_EQUAL(r.header->incarnation, 77);
    CHECK_EQUAL(r.header->started_ns, 5 * SECOND_NS);
    CHECK_EQUAL(r.header->mode, HELIO_MODE_POLL);
    CHECK(strcmp(r.header->name, "alpha") == 0);
    const char *directory = (const char *)r.memory + r.header->directory_offset;
    CHECK_BYTES(directory, "scope\tinstance\t1\t", 17);
    CHECK(directory[r.header->directory_bytes - 1] == '\n');
    CHECK(memmem(directory, r.header->directory_bytes, "\nstat\treceiver\ttotal_latency\t", 29));
    CHECK(memmem(directory, r.header->directory_bytes, "\nevent\tpackets_lost\t6\terror\t", 28));
    struct stat status;
    CHECK(stat(helio_stats_path(stats), &status) == 0 && (status.st_mode & 07777) == 0640);
    CHECK(stat(folder, &status) == 0 && (status.st_mode & 07777) == 01777);
    helio_stats_heartbeat(stats, 6 * SECOND_NS);
    CHECK_EQUAL(r.header->heartbeat_ns, 6 * SECOND_NS);
    helio_stats_destroy(stats);
    munmap((void *)(uintptr_t)r.memory, r.size);
}

static void a_clean_end_says_closed_and_removes_the_file(void) {
    helio_stats *stats = open_stats("alpha", folder, 1 << 20, 2);
    CHECK(stats);
    char path[256];
    snprintf(path, sizeof path, "%s", helio_stats_path(stats));
    reader r = map_file(path);
    helio_stats_destroy(stats);
    CHECK_EQUAL(r.header->state, HELIO_SEGMENT_CLOSED);
    CHECK(access(path, F_OK) < 0 && errno == ENOENT);
    munmap((void *)(uintptr_t)r.memory, r.size);
}

static void names_are_made_fit_for_a_file(void) {
    helio_stats *stats = open_stats(".a/b c\xc3\xa9", folder, 1 << 20, 0);
    CHECK(stats);
    char expected[256];
    snprintf(expected, sizeof expected, "%s/_a_b_c__.%ld.helio", folder, (long)getpid());
    CHECK(strcmp(helio_stats_path(stats), expected) == 0);
    reader r = map_file(expected);
    CHECK(strcmp(r.header->name, ".a/b c\xc3\xa9") == 0);
    helio_stats_destroy(stats);
    munmap((void *)(uintptr_t)r.memory, r.size);
}

static void what_a_crash_left_behind_is_replaced_but_a_running_segment_is_not(void) {
    char path[256];
    snprintf(path, sizeof path, "%s/beta.%ld.helio", folder, (long)getpid());
    FILE *remains = fopen(path, "w");
    CHECK(remains);
    fputs("half a segment", remains);
    fclose(remains);
    helio_stats *stats = open_stats("beta", folder, 1 << 20, 0);
    CHECK(stats);
    CHECK(!open_stats("beta", folder, 1 << 20, 0));
    CHECK(strstr(helio_error_sentence(), "belongs to a running engine"));
    CHECK(access(path, F_OK) == 0);
    helio_stats_destroy(stats);
}

static void a_folder_that_cannot_be_used_is_named_with_the_remedy(void) {
    CHECK(!open_stats("alpha", "/proc/nowhere", 1 << 20, 0));
    CHECK(strstr(helio_error_sentence(), "/proc/nowhere"));
    CHECK(strstr(helio_error_sentence(), "segment_dir="));
    CHECK(strstr(helio_error_sentence(), "stats=memory"));
}

static void an_object_is_live_then_gone_with_its_last_values(void) {
    helio_stats *stats = open_stats("alpha", folder, 4 << 20, 2);
    CHECK(stats);
    reader r = map_file(helio_stats_path(stats));
    helio_stats_object object;
    CHECK_EQUAL(
        helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n", 7 * SECOND_NS, &object),
        0);
    helio_receiver_stats *cells = object.record;
    helio_count(&cells->messages_delivered, 5);
    helio_record(object.histogram[HELIO_RECEIVER_TOTAL_LATENCY], 1000, 2);

    const helio_segment_object *entry = object_at(&r, object.slot);
    CHECK_EQUAL(entry->state, HELIO_OBJECT_LIVE);
    CHECK_EQUAL(entry->generation, 1);
    CHECK_EQUAL(entry->scope, HELIO_SCOPE_RECEIVER);
    CHECK_EQUAL(entry->record_bytes, sizeof *cells);
    CHECK(strcmp(entry->labels, "topic=A\n") == 0);
    const helio_receiver_stats *seen =
        (const helio_receiver_stats *)(r.memory + entry->record_offset);
    CHECK_EQUAL(seen->messages_delivered, 5);
    const helio_hdr *histogram = (const helio_hdr *)(r.memory + seen->total_latency);
    CHECK_EQUAL(seen->total_latency % 64, 0);
    CHECK_EQUAL(histogram->magic, HELIO_HDR_MAGIC);
    CHECK_EQUAL(histogram->counts[helio_hdr_index(1000)], 2);

    const uint32_t slot = object.slot;
    helio_stats_close_object(stats, &object, 8 * SECOND_NS);
    CHECK_EQUAL(object_at(&r, slot)->state, HELIO_OBJECT_GONE);
    CHECK_EQUAL(object_at(&r, slot)->closed_ns, 8 * SECOND_NS);
    CHECK_EQUAL(seen->messages_delivered, 5);
    helio_stats_destroy(stats);
    munmap((void *)(uintptr_t)r.memory, r.size);
}

static void a_slot_is_used_again_after_a_minute_as_another_generation(void) {
    helio_stats *stats = open_stats("alpha", NULL, 4 << 20, 0);
    CHECK(stats);
    helio_stats_object first, soon, later;
    helio_stats_open_object(stats, HELIO_SCOPE_TX_RECEIVER, "receiver=a\n", 0, &first);
    const uint32_t slot = first.slot;
    helio_count(&((helio_tx_receiver_stats *)first.record)->naks_received, 9);
    helio_stats_close_object(stats, &first, SECOND_NS);
    helio_stats_open_object(stats, HELIO_SCOPE_TX_RECEIVER, "receiver=b\n", 2 * SECOND_NS, &soon);
    CHECK(soon.slot != slot);
    helio_stats_open_object(stats, HELIO_SCOPE_TX_RECEIVER, "receiver=c\n",
                            (MINUTE + 1) * SECOND_NS, &later);
    CHECK_EQUAL(later.slot, slot);
    CHECK_EQUAL(stats->objects[slot].generation, 2);
    CHECK_EQUAL(((helio_tx_receiver_stats *)later.record)->naks_received, 0);
    CHECK_EQUAL(helio_cell(&stats->header->objects_used), 2);
    helio_stats_close_object(stats, &soon, 0);
    helio_stats_close_object(stats, &later, 0);
    helio_stats_destroy(stats);
}

static void stamps_tell_the_order_of_objects_and_events(void) {
    helio_stats *stats = open_stats("alpha", NULL, 4 << 20, 0);
    CHECK(stats);
    helio_stats_object a, b;
    /* All within one turn of the engine, whose clock stands still meanwhile. */
    helio_stats_open_object(stats, HELIO_SCOPE_TX_RECEIVER, "receiver=a\n", SECOND_NS, &a);
    const uint32_t slot_a = a.slot;
    helio_stats_event(stats, SECOND_NS, HELIO_EVENT_RECEIVER_DISCOVERED, a.slot, NULL, "a");
    helio_stats_close_object(stats, &a, SECOND_NS);
    helio_stats_open_object(stats, HELIO_SCOPE_TX_RECEIVER, "receiver=b\n", SECOND_NS - 5, &b);
    CHECK_EQUAL(stats->objects[slot_a].created_ns, SECOND_NS);
    CHECK_EQUAL(stats->events[0].time_ns, SECOND_NS + 1);
    CHECK_EQUAL(stats->objects[slot_a].closed_ns, SECOND_NS + 2);
    CHECK_EQUAL(stats->objects[b.slot].created_ns, SECOND_NS + 3);
    helio_stats_event(stats, 9 * SECOND_NS, HELIO_EVENT_RECEIVER_DISCOVERED, b.slot, NULL, "later");
    CHECK_EQUAL(stats->events[1].time_ns, 9 * SECOND_NS);
    helio_stats_event(stats, 8 * SECOND_NS, HELIO_EVENT_RECEIVER_DISCOVERED, b.slot, NULL,
                      "a second back");
    CHECK_EQUAL(stats->events[2].time_ns, 9 * SECOND_NS + 1);
    helio_stats_event(stats, 7 * SECOND_NS, HELIO_EVENT_RECEIVER_DISCOVERED, b.slot, NULL,
                      "set back");
    CHECK_EQUAL(stats->events[3].time_ns, 7 * SECOND_NS);
    helio_stats_close_object(stats, &b, 9 * SECOND_NS);
    helio_stats_destroy(stats);
}

static void levels_decide_which_histograms_are_on(void) {
    helio_stats *stats = open_stats("alpha", NULL, 4 << 20, 1);
    CHECK(stats);
    helio_stats_object receiver, stream;
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "", 0, &receiver);
    helio_stats_open_object(stats, HELIO_SCOPE_RX_STREAM, "", 0, &stream);
    CHECK(!receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY]);
    CHECK_EQUAL(((helio_receiver_stats *)receiver.record)->total_latency, 0);
    CHECK(stream.histogram[HELIO_RX_STREAM_RECOVERY_TIME]);
    helio_stats_close_object(stats, &receiver, 0);
    helio_stats_close_object(stats, &stream, 0);
    helio_stats_destroy(stats);
}

static helio_moment at(int64_t seconds) {
    return (helio_moment){.now_ns = seconds * SECOND_NS, .wall_ns = (1000 + seconds) * SECOND_NS};
}

static void a_raised_level_gives_live_objects_what_they_lack_one_by_one(void) {
    helio_stats *stats = open_stats("alpha", folder, 8 << 20, 1);
    CHECK(stats);
    reader r = map_file(helio_stats_path(stats));
    helio_stats_object receiver, other, later;
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n", 0, &receiver);
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=B\n", 0, &other);
    const _Atomic uint64_t *cell = &((helio_receiver_stats *)receiver.record)->total_latency;
    CHECK_EQUAL(helio_stats_set_level(stats, 2, HELIO_NEVER, at(1)), 0);
    CHECK_EQUAL(helio_stats_level(stats), 2);
    CHECK_EQUAL(*cell, 0);
    int rounds = 1;
    for (; helio_stats_tend(stats, at(1)); rounds++) {
        CHECK(rounds < 20);
    }
    CHECK(rounds > 2);
    CHECK(receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY]);
    CHECK(other.histogram[HELIO_RECEIVER_TOTAL_LATENCY]);
    CHECK(*cell % 64 == 0 && *cell + sizeof(helio_hdr) <= r.size);
    helio_record(receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY], 1000, 3);
    const helio_hdr *seen = (const helio_hdr *)(r.memory + *cell);
    CHECK_EQUAL(seen->magic, HELIO_HDR_MAGIC);
    CHECK_EQUAL(seen->counts[helio_hdr_index(1000)], 3);
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=C\n", 0, &later);
    CHECK(later.histogram[HELIO_RECEIVER_TOTAL_LATENCY]);
    helio_stats_close_object(stats, &other, 0); /* from the middle of those that live */
    CHECK_EQUAL(helio_stats_set_level(stats, 3, HELIO_NEVER, at(1)), 0);
    helio_stats_close_object(stats, &later, 0); /* while it waits for more */
    while (helio_stats_tend(stats, at(1))) {
    }
    CHECK(receiver.histogram[HELIO_RECEIVER_ORDER_LATENCY]);
    helio_stats_close_object(stats, &receiver, 0);
    helio_stats_destroy(stats);
    munmap((void *)(uintptr_t)r.memory, r.size);
}

static void a_lowered_level_stops_counting_and_keeps_what_was_counted(void) {
    const char *const folders[] = {folder, NULL};
    for (size_t i = 0; i < 2; i++) {
        helio_stats *stats = open_stats("alpha", folders[i], 8 << 20, 2);
        CHECK(stats);
        helio_stats_object receiver;
        helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n", 0, &receiver);
        helio_hdr *histogram = receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY];
        helio_record(histogram, 1000, 3);
        helio_stats_set_level(stats, 0, HELIO_NEVER, at(1));
        CHECK(!receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY]);
        const uint64_t cell = ((helio_receiver_stats *)receiver.record)->total_latency;
        CHECK(!folders[i] || cell > 0);
        helio_record(receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY], 1000, 5);
        helio_stats_set_level(stats, 2, HELIO_NEVER, at(1));
        while (helio_stats_tend(stats, at(1))) {
        }
        CHECK(receiver.histogram[HELIO_RECEIVER_TOTAL_LATENCY] == histogram);
        CHECK_EQUAL(((helio_receiver_stats *)receiver.record)->total_latency, cell);
        helio_record(histogram, 1000, 1);
        CHECK_EQUAL(histogram->counts[helio_hdr_index(1000)], 4);
        helio_stats_close_object(stats, &receiver, 0);
        helio_stats_destroy(stats);
    }
}

static void a_level_for_a_time_reverts_by_itself_and_tells_both(void) {
    helio_stats *stats = open_stats("alpha", NULL, 8 << 20, 1);
    CHECK(stats);
    helio_stats_object instance;
    helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "", 0, &instance);
    const helio_instance_stats *counts = instance.record;
    CHECK_EQUAL(counts->detail_level, 1);
    helio_stats_set_level(stats, 3, at(11).now_ns, at(1));
    helio_stats_tend(stats, at(10));
    CHECK_EQUAL(helio_stats_level(stats), 3);
    CHECK_EQUAL(counts->detail_level, 3);
    helio_stats_tend(stats, at(11));
    CHECK_EQUAL(helio_stats_level(stats), 1);
    CHECK_EQUAL(counts->detail_level, 1);
    helio_stats_tend(stats, at(12));
    CHECK_EQUAL(stats->header->events_written, 2);
    CHECK_EQUAL(stats->events[0].event, HELIO_EVENT_LEVEL_CHANGED);
    CHECK_EQUAL(stats->events[0].arguments[0], 3);
    CHECK_EQUAL(stats->events[0].arguments[1], 1);
    CHECK_EQUAL(stats->events[0].arguments[2], 10 * SECOND_NS);
    CHECK_EQUAL(stats->events[1].event, HELIO_EVENT_LEVEL_REVERTED);
    CHECK_EQUAL(stats->events[1].arguments[0], 1);
    CHECK_EQUAL(helio_stats_set_level(stats, 4, HELIO_NEVER, at(12)), HELIO_ERR_OPTION);
    CHECK_EQUAL(helio_stats_set_level(stats, -1, HELIO_NEVER, at(12)), HELIO_ERR_OPTION);
    CHECK_EQUAL(helio_stats_level(stats), 1);
    helio_stats_close_object(stats, &instance, 0);
    helio_stats_destroy(stats);
}

static void a_slot_used_again_at_another_level_has_clean_histograms_of_its_own(void) {
    helio_stats *stats = open_stats("alpha", folder, 8 << 20, 3);
    CHECK(stats);
    helio_stats_object first, second, neighbour;
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n", 0, &first);
    helio_record(first.histogram[HELIO_RECEIVER_ORDER_LATENCY], 1000, 7);
    helio_stats_set_level(stats, 1, HELIO_NEVER, at(1));
    const uint32_t slot = first.slot;
    helio_stats_close_object(stats, &first, 0);
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=B\n", 61 * SECOND_NS, &second);
    CHECK_EQUAL(second.slot, slot);
    const helio_receiver_stats *cells = second.record;
    CHECK_EQUAL(cells->order_latency, 0);
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=C\n", 61 * SECOND_NS, &neighbour);
    helio_stats_set_level(stats, 3, HELIO_NEVER, at(1));
    while (helio_stats_tend(stats, at(1))) {
    }
    CHECK(cells->order_latency > 0);
    const helio_hdr *histogram = second.histogram[HELIO_RECEIVER_ORDER_LATENCY];
    CHECK_EQUAL(histogram->counts[helio_hdr_index(1000)], 0);
    CHECK_EQUAL(histogram->sum, 0);
    CHECK(neighbour.histogram[HELIO_RECEIVER_ORDER_LATENCY] != histogram);
    helio_stats_close_object(stats, &second, 0);
    helio_stats_close_object(stats, &neighbour, 0);
    helio_stats_destroy(stats);
}

static void histograms_without_room_are_counted_and_asked_for_once(void) {
    helio_stats *stats = open_stats("alpha", folder, 1 << 20, 1);
    CHECK(stats);
    helio_stats_object instance, objects[4];
    helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "", 0, &instance);
    const helio_instance_stats *counts = instance.record;
    for (int i = 0; i < 4; i++) {
        helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n", 0, &objects[i]);
        CHECK(objects[i].slot != HELIO_STATS_NO_SLOT);
    }
    helio_stats_set_level(stats, 3, HELIO_NEVER, at(1));
    int rounds = 0;
    while (helio_stats_tend(stats, at(1))) {
        CHECK(++rounds < 50);
    }
    uint64_t missing = 0;
    for (int i = 0; i < 4; i++) {
        for (size_t h = 0; h < stats->shapes[HELIO_SCOPE_RECEIVER].histograms; h++) {
            missing += !objects[i].histogram[h];
        }
    }
    CHECK(missing > 0);
    CHECK_EQUAL(counts->histograms_refused, missing);
    for (int i = 0; i < 4; i++) {
        helio_stats_close_object(stats, &objects[i], 0);
    }
    helio_stats_close_object(stats, &instance, 0);
    helio_stats_destroy(stats);
}

static void objects_without_room_are_kept_privately_and_counted(void) {
    helio_stats *stats = open_stats("alpha", folder, 1 << 20, 2);
    CHECK(stats);
    helio_stats_object instance, objects[8];
    helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=alpha\n", 0, &instance);
    unsigned refused = 0;
    for (int i = 0; i < 8; i++) { /* of 663 KB each, and the segment has 1 MB */
        CHECK_EQUAL(
            helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n", 0, &objects[i]), 0);
        CHECK(objects[i].record && objects[i].histogram[HELIO_RECEIVER_CALLBACK_TIME]);
        helio_record(objects[i].histogram[HELIO_RECEIVER_CALLBACK_TIME], 10, 1);
        refused += objects[i].slot == HELIO_STATS_NO_SLOT;
    }
    CHECK_EQUAL(refused, 7);
    CHECK_EQUAL(((helio_instance_stats *)instance.record)->objects_refused, refused);
    for (int i = 0; i < 8; i++) {
        helio_stats_close_object(stats, &objects[i], 0);
    }
    helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=B\n", SECOND_NS, &objects[0]);
    CHECK(objects[0].slot !=
          HELIO_STATS_NO_SLOT); /* the one that is gone makes room, minute or not */
    helio_stats_close_object(stats, &objects[0], 0);
    helio_stats_close_object(stats, &instance, 0);
    helio_stats_destroy(stats);
}

static void the_newest_events_are_kept(void) {
    helio_stats *stats = open_stats("alpha", NULL, 1 << 20, 0);
    CHECK(stats);
    helio_stats_object instance;
    helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "", 0, &instance);
    const uint32_t capacity = stats->header->event_capacity;
    for (uint64_t i = 0; i < capacity + 5; i++) {
        helio_stats_event(stats, (int64_t)i, HELIO_EVENT_PACKETS_LOST, 3,
                          (const uint64_t[4]){i, 2, 1, 0}, "lost %d", (int)i);
    }
    CHECK_EQUAL(stats->header->events_written, capacity + 5);
    CHECK_EQUAL(((helio_instance_stats *)instance.record)->events_emitted, capacity + 5);
    const helio_segment_event *event = &stats->events[2]; /* number capacity + 2 */
    CHECK_EQUAL(event->number, capacity + 3);
    CHECK_EQUAL(event->arguments[0], capacity + 2);
    CHECK_EQUAL(event->severity, HELIO_ERROR);
    CHECK_EQUAL(event->slot, 3);
    char text[HELIO_SEGMENT_TEXT_BYTES];
    snprintf(text, sizeof text, "lost %u", capacity + 2);
    CHECK(strcmp(event->text, text) == 0);
    helio_stats_close_object(stats, &instance, 0);
    helio_stats_destroy(stats);
}

static void long_event_texts_end_between_characters(void) {
    helio_stats *stats = open_stats("alpha", NULL, 1 << 20, 0);
    CHECK(stats);
    char text[400] = "x"; /* so that a two-byte character lies across the end */
    while (strlen(text) < 300) {
        strcat(text, "\xc3\xa9");
    }
    helio_stats_event(stats, 0, HELIO_EVENT_FOREIGN_TRAFFIC, HELIO_STATS_NO_SLOT, NULL, "%s", text);
    const char *kept = stats->events[0].text;
    CHECK(strlen(kept) < HELIO_SEGMENT_TEXT_BYTES);
    CHECK_EQUAL(strlen(kept) % 2, 1);
    helio_stats_destroy(stats);
}

static void labels_stay_lines_whatever_is_in_them(void) {
    char text[32] = "";
    CHECK(helio_stats_label(text, sizeof text, "topic", "a\nb=c"));
    CHECK(strcmp(text, "topic=a b=c\n") == 0);
    CHECK(!helio_stats_label(text, sizeof text, "endpoint", "0123456789\xc3\xa9"));
    CHECK(strcmp(text, "topic=a b=c\nendpoint=012345678\n") == 0 || text[strlen(text) - 1] == '\n');
    CHECK(!helio_stats_label(text, sizeof text, "key", "value"));
    CHECK(strlen(text) < sizeof text);
}

/* Another program truncates the file at its beginning, in the table, in the ring of events, in the
 * arena. */
static void a_segment_that_is_cut_is_counted_in_private_memory(void) {
    for (int step = 0; step < 4; step++) {
        helio_stats *stats = open_stats("cut", folder, 4 << 20, 1);
        CHECK(stats);
        const off_t ends[] = {0, (uint8_t *)stats->objects - stats->memory + 600,
                              (uint8_t *)stats->events - stats->memory + 5000,
                              (off_t)stats->arena_used - 5000};
        helio_stats_object first[8], later[60];
        for (int i = 0; i < 8; i++) {
            CHECK_EQUAL(helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=A\n",
                                                7 * SECOND_NS, &first[i]),
                        0);
        }
        CHECK(truncate(helio_stats_path(stats), ends[step]) == 0);
        for (int i = 0; i < 8; i += 2) {
            helio_stats_close_object(stats, &first[i], 8 * SECOND_NS);
        }
        const int64_t late_ns = 10 * MINUTE * SECOND_NS;
        for (int i = 0; i < 60; i++) { /* some in slots used before, some in none */
            CHECK_EQUAL(helio_stats_open_object(stats, HELIO_SCOPE_RECEIVER, "topic=B\n", late_ns,
                                                &later[i]),
                        0);
            helio_receiver_stats *record = later[i].record;
            helio_count(&record->messages_delivered, 3);
            CHECK_EQUAL(helio_cell(&record->messages_delivered), 3);
        }
        const helio_event_id event = HELIO_EVENT_STREAM_OPENED;
        for (int i = 0; i < 10000; i++) {
            helio_stats_event(stats, late_ns + i * SECOND_NS, event, 0, NULL, "number %d", i);
        }
        helio_stats_entry entry;
        for (uint32_t slot = 0; slot < helio_stats_slots(stats); slot++) {
            helio_stats_read_entry(stats, slot, &entry);
        }
        helio_stats_tend(stats, (helio_moment){.now_ns = SECOND_NS, .wall_ns = late_ns});
        CHECK(helio_mapped_is_cut(stats->guard) && stats->is_cut_told);
        for (int i = 0; i < 60; i++) {
            helio_stats_close_object(stats, &later[i], late_ns);
        }
        for (int i = 1; i < 8; i += 2) {
            helio_stats_close_object(stats, &first[i], late_ns);
        }
        helio_stats_destroy(stats);
    }
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/helio-test-segment-%ld", (long)getpid());
    RUN(a_running_segment_describes_itself);
    RUN(a_clean_end_says_closed_and_removes_the_file);
    RUN(names_are_made_fit_for_a_file);
    RUN(what_a_crash_left_behind_is_replaced_but_a_running_segment_is_not);
    RUN(a_folder_that_cannot_be_used_is_named_with_the_remedy);
    RUN(a_segment_that_is_cut_is_counted_in_private_memory);
    RUN(an_object_is_live_then_gone_with_its_last_values);
    RUN(a_slot_is_used_again_after_a_minute_as_another_generation);
    RUN(stamps_tell_the_order_of_objects_and_events);
    RUN(levels_decide_which_histograms_are_on);
    RUN(a_raised_level_gives_live_objects_what_they_lack_one_by_one);
    RUN(a_lowered_level_stops_counting_and_keeps_what_was_counted);
    RUN(a_level_for_a_time_reverts_by_itself_and_tells_both);
    RUN(a_slot_used_again_at_another_level_has_clean_histograms_of_its_own);
    RUN(histograms_without_room_are_counted_and_asked_for_once);
    RUN(objects_without_room_are_kept_privately_and_counted);
    RUN(the_newest_events_are_kept);
    RUN(long_event_texts_end_between_characters);
    RUN(labels_stay_lines_whatever_is_in_them);
    if (rmdir(folder) < 0) {
        perror(folder);
        return 1; /* something was left behind */
    }
    return check_result();
}
