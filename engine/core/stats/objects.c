/* Slots, records and histograms of the segment's objects (docs/segment.md 3 and 4).
 *
 * A slot is used again when its object is gone; the oldest of the same scope first, and not before
 * readers had a minute to see its last values unless there is no other room.  A slot keeps its
 * block, so the memory of a scope is that of its most numerous moment. */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "stats/segment.h"

#define KEEP_GONE_NS INT64_C(60000000000)

/* Bytes of a record with those of its histograms that are on; each histogram begins at a multiple
 * of 64. */
static size_t block_bytes(const helio_stats *stats, helio_scope scope) {
    const helio_scope_shape *shape = &stats->shapes[scope];
    size_t bytes = helio_round_up(shape->record_bytes, 64);
    for (size_t i = 0; i < shape->histograms; i++) {
        bytes += shape->histogram[i].level <= stats->level ? sizeof(helio_hdr) : 0;
    }
    return bytes;
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

/* A slot never used, with a block from the arena; HELIO_STATS_NO_SLOT when table, arena or file
 * system is full. */
static uint32_t take_fresh(helio_stats *stats, helio_scope scope) {
    const uint64_t used = helio_cell(&stats->header->objects_used);
    const size_t offset = helio_round_up(stats->arena_used, 64);
    const size_t bytes = block_bytes(stats, scope);
    if (used >= stats->header->object_capacity || offset > stats->size ||
        bytes > stats->size - offset || !helio_segment_reserve(stats, offset, bytes)) {
        return HELIO_STATS_NO_SLOT;
    }
    stats->arena_used = offset + bytes;
    helio_segment_object *entry = &stats->objects[used];
    entry->scope = scope;
    entry->record_offset = offset;
    entry->record_bytes = stats->shapes[scope].record_bytes;
    return (uint32_t)used;
}

static uint32_t take_slot(helio_stats *stats, helio_scope scope, int64_t wall_ns) {
    const uint32_t oldest = stats->gone[scope].first;
    if (oldest != HELIO_STATS_NO_SLOT) {
        const int64_t closed_ns = (int64_t)helio_cell(&stats->objects[oldest].closed_ns);
        if (wall_ns - closed_ns >= KEEP_GONE_NS) {
            return take_gone(stats, scope);
        }
    }
    const uint32_t fresh = take_fresh(stats, scope);
    if (fresh == HELIO_STATS_NO_SLOT && oldest != HELIO_STATS_NO_SLOT) {
        return take_gone(stats, scope);
    }
    return fresh;
}

/* Writes an empty record and its histograms into a block; `offset` is the block's, or 0 when no
 * reader will see it. */
static void init_block(helio_stats *stats, helio_scope scope, uint8_t *block, size_t offset,
                       helio_stats_object *object) {
    const helio_scope_shape *shape = &stats->shapes[scope];
    memset(block, 0, block_bytes(stats, scope));
    object->record = block;
    size_t at = helio_round_up(shape->record_bytes, 64);
    for (size_t i = 0; i < shape->histograms; i++) {
        if (shape->histogram[i].level > stats->level) {
            continue;
        }
        helio_hdr *histogram = (helio_hdr *)(block + at);
        helio_hdr_init(histogram);
        object->histogram[i] = histogram;
        if (offset) {
            atomic_store_explicit((_Atomic uint64_t *)(block + shape->histogram[i].cell),
                                  offset + at, memory_order_relaxed);
        }
        at += sizeof *histogram;
    }
}

static int open_private(helio_stats *stats, helio_scope scope, helio_stats_object *object) {
    uint8_t *block = aligned_alloc(64, helio_round_up(block_bytes(stats, scope), 64));
    if (!block) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the statistics of an object");
    }
    init_block(stats, scope, block, 0, object);
    if (stats->instance) {
        helio_count(&stats->instance->objects_refused, 1);
    }
    return 0;
}

int helio_stats_open_object(helio_stats *stats, helio_scope scope, const char *labels,
                            int64_t wall_ns, helio_stats_object *out) {
    *out = (helio_stats_object){.slot = take_slot(stats, scope, wall_ns), .scope = scope};
    if (out->slot == HELIO_STATS_NO_SLOT) {
        return open_private(stats, scope, out);
    }
    helio_segment_object *entry = &stats->objects[out->slot];
    atomic_store_explicit(&entry->state, HELIO_OBJECT_EMPTY, memory_order_relaxed);
    atomic_store_explicit(&entry->generation, helio_cell(&entry->generation) + 1,
                          memory_order_relaxed);
    atomic_thread_fence(
        memory_order_release); /* a reader of the slot's past sees that it is over */
    init_block(stats, scope, stats->memory + entry->record_offset, entry->record_offset, out);
    entry->created_ns = (uint64_t)wall_ns;
    atomic_store_explicit(&entry->closed_ns, 0, memory_order_relaxed);
    strncpy(entry->labels, labels, sizeof entry->labels - 1);
    entry->labels[sizeof entry->labels - 1] = 0;
    atomic_store_explicit(&entry->state, HELIO_OBJECT_LIVE, memory_order_release);
    if (out->slot == helio_cell(&stats->header->objects_used)) {
        atomic_store_explicit(&stats->header->objects_used, out->slot + UINT64_C(1),
                              memory_order_release);
    }
    if (scope == HELIO_SCOPE_INSTANCE) {
        stats->instance = out->record;
    }
    return 0;
}

void helio_stats_close_object(helio_stats *stats, helio_stats_object *object, int64_t wall_ns) {
    if (!object->record) {
        return;
    }
    if (object->record == stats->instance) {
        stats->instance = NULL;
    }
    if (object->slot == HELIO_STATS_NO_SLOT) {
        free(object->record);
    } else {
        helio_segment_object *entry = &stats->objects[object->slot];
        atomic_store_explicit(&entry->closed_ns, (uint64_t)wall_ns, memory_order_relaxed);
        atomic_store_explicit(&entry->state, HELIO_OBJECT_GONE, memory_order_release);
        put_gone(stats, object->scope, object->slot);
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
