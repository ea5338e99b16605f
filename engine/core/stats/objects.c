/* Slots and records of the segment's objects (docs/segment.md 3).
 *
 * A slot is used again when its object is gone; the oldest of the same scope first, and not before
 * readers had a minute to see its last values unless there is no other room; the slot of an object
 * that was dropped is used first, and at once.  A slot keeps its memory, so that of a scope is that
 * of its most numerous moment. */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "stats/segment.h"

#define KEEP_GONE_NS INT64_C(60000000000)

#define SET_BACK_NS UINT64_C(1000000000)

uint64_t helio_segment_stamp(helio_stats *stats, int64_t wall_ns) {
    const uint64_t now_ns = (uint64_t)wall_ns, last_ns = stats->stamp_ns;
    const bool is_later = now_ns > last_ns || last_ns - now_ns > SET_BACK_NS;
    stats->stamp_ns = is_later ? now_ns : last_ns + 1;
    return stats->stamp_ns;
}

static uint32_t take_gone(helio_stats *stats, helio_scope scope) {
    const uint32_t slot = stats->gone[scope].first;
    stats->gone[scope].first = stats->next_gone[slot];
    if (stats->gone[scope].first == HELIO_STATS_NO_SLOT) {
        stats->gone[scope].last = HELIO_STATS_NO_SLOT;
    }
    return slot;
}

static void put_gone(helio_stats *stats, helio_scope scope, uint32_t slot) {
    stats->next_gone[slot] = HELIO_STATS_NO_SLOT;
    if (stats->gone[scope].last == HELIO_STATS_NO_SLOT) {
        stats->gone[scope].first = slot;
    } else {
        stats->next_gone[stats->gone[scope].last] = slot;
    }
    stats->gone[scope].last = slot;
}

/* A slot never used, with memory of the arena for its record and, from *spare on, the histograms it
 * begins with; HELIO_STATS_NO_SLOT when table, arena or file system is full. */
static uint32_t take_fresh(helio_stats *stats, helio_scope scope, int level, size_t *spare) {
    const uint32_t used = stats->objects_used;
    const size_t record_bytes = helio_round_up(stats->shapes[scope].record_bytes, 64);
    const size_t offset =
        used < stats->object_capacity
            ? helio_segment_take(stats, record_bytes + helio_histograms_bytes(stats, scope, level))
            : 0;
    if (!offset) {
        return HELIO_STATS_NO_SLOT;
    }
    *spare = offset + record_bytes;
    helio_segment_object *entry = &stats->objects[used];
    entry->scope = scope;
    entry->record_offset = stats->records[used] = offset;
    entry->record_bytes = stats->shapes[scope].record_bytes;
    return used;
}

static uint32_t take_slot(helio_stats *stats, helio_scope scope, int level, int64_t wall_ns,
                          size_t *spare) {
    const uint32_t oldest = stats->gone[scope].first;
    if (oldest != HELIO_STATS_NO_SLOT) {
        const int64_t closed_ns = (int64_t)helio_cell(&stats->objects[oldest].closed_ns);
        if (wall_ns - closed_ns >= KEEP_GONE_NS) {
            return take_gone(stats, scope);
        }
    }
    const uint32_t fresh = take_fresh(stats, scope, level, spare);
    if (fresh == HELIO_STATS_NO_SLOT && oldest != HELIO_STATS_NO_SLOT) {
        return take_gone(stats, scope);
    }
    return fresh;
}

/* Record and labels in memory of its own. */
static int open_private(helio_stats *stats, helio_scope scope, const char *labels,
                        helio_stats_object *object) {
    const size_t record_bytes = stats->shapes[scope].record_bytes;
    uint8_t *memory = calloc(1, record_bytes + HELIO_STATS_LABELS_BYTES);
    if (!memory) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the statistics of an object");
    }
    object->record = memory;
    object->labels =
        memcpy(memory + record_bytes, labels, strnlen(labels, HELIO_STATS_LABELS_BYTES - 1));
    helio_applies_begin(scope, object->record);
    helio_histograms_attach(stats, object, 0);
    if (stats->instance) {
        helio_count(&stats->instance->objects_refused, 1);
    }
    return 0;
}

static int open_object(helio_stats *stats, helio_scope scope, const char *labels, int64_t wall_ns,
                       bool is_plain, helio_stats_object *out) {
    const int rule = helio_levels_find(stats, scope, labels);
    const int level = stats->rules[rule].level;
    size_t spare = 0;
    *out = (helio_stats_object){.slot =
                                    take_slot(stats, scope, is_plain ? -1 : level, wall_ns, &spare),
                                .is_plain = is_plain,
                                .scope = scope,
                                .rule = (int8_t)rule,
                                .level = (int8_t)level};
    if (out->slot == HELIO_STATS_NO_SLOT) {
        return open_private(stats, scope, labels, out);
    }
    helio_segment_object *entry = &stats->objects[out->slot];
    atomic_store_explicit(&entry->state, HELIO_OBJECT_EMPTY, memory_order_relaxed);
    atomic_store_explicit(&entry->generation, helio_cell(&entry->generation) + 1,
                          memory_order_relaxed);
    atomic_thread_fence(
        memory_order_release); /* a reader of the slot's past sees that it is over */
    out->record = stats->memory + stats->records[out->slot];
    out->labels = entry->labels;
    memset(out->record, 0, stats->shapes[scope].record_bytes);
    helio_applies_begin(scope, out->record);
    helio_histograms_attach(stats, out, spare);
    entry->created_ns = helio_segment_stamp(stats, wall_ns);
    atomic_store_explicit(&entry->closed_ns, 0, memory_order_relaxed);
    strncpy(entry->labels, labels, sizeof entry->labels - 1);
    entry->labels[sizeof entry->labels - 1] = 0;
    atomic_store_explicit(&entry->state, HELIO_OBJECT_LIVE, memory_order_release);
    if (out->slot == stats->objects_used) {
        atomic_store_explicit(&stats->header->objects_used, ++stats->objects_used,
                              memory_order_release);
    }
    if (scope == HELIO_SCOPE_INSTANCE) {
        stats->instance = out->record;
        helio_set(&stats->instance->detail_level, (uint64_t)helio_stats_level(stats));
    }
    return 0;
}

int helio_stats_open_object(helio_stats *stats, helio_scope scope, const char *labels,
                            int64_t wall_ns, helio_stats_object *out) {
    return open_object(stats, scope, labels, wall_ns, false, out);
}

int helio_stats_open_plain_object(helio_stats *stats, helio_scope scope, const char *labels,
                                  int64_t wall_ns, helio_stats_object *out) {
    return open_object(stats, scope, labels, wall_ns, true, out);
}

void helio_stats_close_object(helio_stats *stats, helio_stats_object *object, int64_t wall_ns) {
    if (!object->record) {
        return;
    }
    if (object->record == stats->instance) {
        stats->instance = NULL;
    }
    helio_histograms_detach(stats, object);
    if (object->slot == HELIO_STATS_NO_SLOT) {
        free(object->record);
    } else {
        helio_segment_object *entry = &stats->objects[object->slot];
        atomic_store_explicit(&entry->closed_ns, helio_segment_stamp(stats, wall_ns),
                              memory_order_relaxed);
        atomic_store_explicit(&entry->state, HELIO_OBJECT_GONE, memory_order_release);
        put_gone(stats, object->scope, object->slot);
    }
    *object = (helio_stats_object){.slot = HELIO_STATS_NO_SLOT};
}

void helio_stats_drop_object(helio_stats *stats, helio_stats_object *object) {
    const uint32_t slot = object->slot;
    const helio_scope scope = object->scope;
    if (!object->record || slot == HELIO_STATS_NO_SLOT) {
        helio_stats_close_object(stats, object, 0);
        return;
    }
    helio_histograms_detach(stats, object);
    helio_segment_object *entry = &stats->objects[slot];
    atomic_store_explicit(&entry->state, HELIO_OBJECT_EMPTY, memory_order_release);
    atomic_store_explicit(&entry->closed_ns, 0, memory_order_relaxed);
    stats->next_gone[slot] = stats->gone[scope].first;
    stats->gone[scope].first = slot;
    if (stats->gone[scope].last == HELIO_STATS_NO_SLOT) {
        stats->gone[scope].last = slot;
    }
    *object = (helio_stats_object){.slot = HELIO_STATS_NO_SLOT};
}

bool helio_stats_label(char *text, size_t size, const char *key, const char *value) {
    const size_t used = strnlen(text, size);
    const size_t key_length = strlen(key);
    if (used + key_length + 3 > size) {
        return false;
    }
    char *at = text + used;
    memcpy(at, key, key_length);
    at += key_length;
    *at++ = '=';
    const size_t room = (size_t)(text + size - at) - 2; /* for the line feed and the NUL */
    size_t length = strlen(value);
    const bool whole = length <= room;
    if (!whole) {
        length = room;
        while (length > 0 && ((unsigned char)value[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    for (size_t i = 0; i < length; i++) {
        *at++ = value[i] == '\n' ? ' ' : value[i];
    }
    *at++ = '\n';
    *at = 0;
    return whole;
}
