#include "stats/reading.h"

#include <string.h>

/* The thread sanitizer takes what a seqlock's reader does for a race: it is one, and what it
 * yielded is thrown away.  So the copying itself is not looked at. */
#if defined(__SANITIZE_THREAD__)
#define SEQLOCK_READER __attribute__((no_sanitize("thread"), noinline))
#else
#define SEQLOCK_READER
#endif

enum { GUARD_TRIES = 64 };

/* Relaxed loads, word by word: both sides are aligned. */
SEQLOCK_READER static void copy_words(uint64_t *to, const void *from, size_t words) {
    const _Atomic uint64_t *word = from;
    for (size_t i = 0; i < words; i++) {
        to[i] = atomic_load_explicit(&word[i], memory_order_relaxed);
    }
}

SEQLOCK_READER static uint64_t load(const void *from) {
    const _Atomic uint64_t *word = from;
    return atomic_load_explicit(word, memory_order_relaxed);
}

uint32_t helio_stats_slots(const helio_stats *stats) {
    const uint64_t used = atomic_load_explicit(&stats->header->objects_used, memory_order_acquire);
    const uint32_t capacity = helio_stats_slots_max(stats);
    return used < capacity ? (uint32_t)used : capacity;
}

uint32_t helio_stats_slots_max(const helio_stats *stats) {
    return stats->object_capacity;
}

bool helio_stats_read_entry(const helio_stats *stats, uint32_t slot, helio_stats_entry *out) {
    const helio_segment_object *object = &stats->objects[slot];
    uint64_t head[5]; /* state and scope, generation, record offset and bytes, created */
    const uint32_t state = atomic_load_explicit(&object->state, memory_order_acquire);
    copy_words(head, object, 5);
    atomic_thread_fence(memory_order_acquire);
    const uint64_t generation = atomic_load_explicit(&object->generation, memory_order_relaxed);
    if ((state != HELIO_OBJECT_LIVE && state != HELIO_OBJECT_GONE) || generation != head[1] ||
        (uint32_t)head[0] != state) {
        return false;
    }
    const uint64_t scope = head[0] >> 32;
    if (scope == 0 || scope >= HELIO_SCOPES_END || head[2] % 8 != 0 ||
        head[3] != stats->shapes[scope].record_bytes || head[3] > stats->size ||
        head[2] > stats->size - head[3]) {
        return false;
    }
    *out = (helio_stats_entry){
        .state = (helio_object_state)state,
        .scope = (helio_scope)scope,
        .generation = generation,
        .created_ns = head[4],
        .record = head[2],
        .words = head[3] / 8,
    };
    return true;
}

bool helio_stats_read_labels(const helio_stats *stats, uint32_t slot,
                             const helio_stats_entry *entry, char out[HELIO_STATS_LABELS_BYTES]) {
    const helio_segment_object *object = &stats->objects[slot];
    uint64_t words[HELIO_STATS_LABELS_BYTES / 8];
    copy_words(words, object->labels, sizeof words / sizeof words[0]);
    atomic_thread_fence(memory_order_acquire);
    memcpy(out, words, HELIO_STATS_LABELS_BYTES);
    out[HELIO_STATS_LABELS_BYTES - 1] = 0;
    return atomic_load_explicit(&object->generation, memory_order_relaxed) == entry->generation;
}

size_t helio_stats_words_max(const helio_stats *stats) {
    size_t most = 0;
    for (int scope = 0; scope < HELIO_SCOPES_END; scope++) {
        const size_t words = stats->shapes[scope].record_bytes / 8;
        most = words > most ? words : most;
    }
    return most;
}

/* The sum of the histogram whose offset a cell holds. */
static uint64_t sum_of(const helio_stats *stats, uint64_t offset) {
    if (offset == 0 || offset % 64 != 0 || offset > stats->size - sizeof(helio_hdr)) {
        return 0;
    }
    const helio_hdr *histogram = (const helio_hdr *)(stats->memory + offset);
    return atomic_load_explicit(&histogram->sum, memory_order_relaxed);
}

bool helio_stats_read_record(const helio_stats *stats, const helio_stats_entry *entry,
                             uint64_t *words) {
    const uint8_t *record = stats->memory + entry->record;
    bool is_whole = false;
    for (int i = 0; i < GUARD_TRIES && !is_whole; i++) {
        const uint64_t before = load(record);
        atomic_thread_fence(memory_order_acquire);
        copy_words(words, record, entry->words);
        atomic_thread_fence(memory_order_acquire);
        is_whole = before % 2 == 0 && load(record) == before;
    }
    const helio_scope_shape *shape = &stats->shapes[entry->scope];
    for (size_t i = 0; i < shape->histograms; i++) {
        uint64_t *cell = &words[shape->histogram[i].cell / 8];
        *cell = sum_of(stats, *cell);
    }
    return is_whole;
}

uint64_t helio_stats_events_written(const helio_stats *stats) {
    return atomic_load_explicit(&stats->header->events_written, memory_order_acquire);
}

bool helio_stats_read_event(const helio_stats *stats, uint64_t number, helio_segment_event *out) {
    const helio_segment_event *event = &stats->events[number & (stats->event_capacity - 1)];
    uint64_t words[sizeof *event / 8];
    const uint64_t before = atomic_load_explicit(&event->number, memory_order_acquire);
    copy_words(words, event, sizeof words / sizeof words[0]);
    atomic_thread_fence(memory_order_acquire);
    const uint64_t after = atomic_load_explicit(&event->number, memory_order_relaxed);
    if (before != number + 1 || after != before) {
        return false;
    }
    memcpy(out, words, sizeof *out);
    out->text[sizeof out->text - 1] = 0;
    return true;
}

const helio_segment_header *helio_stats_header(const helio_stats *stats) {
    return stats->header;
}

const char *helio_stats_directory(const helio_stats *stats, size_t *bytes) {
    *bytes = stats->directory_bytes;
    return (const char *)stats->memory + stats->directory_offset;
}
