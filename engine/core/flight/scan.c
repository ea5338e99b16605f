#include "flight/scan.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int helio_flight_scan_init(helio_flight_scan *scan, const helio_stats *stats) {
    *scan = (helio_flight_scan){
        .stats = stats,
        .slots_max = helio_stats_slots_max(stats),
        .seen = calloc(helio_stats_slots_max(stats), sizeof *scan->seen),
        .spare = calloc(helio_stats_words_max(stats), sizeof *scan->spare),
    };
    if (scan->seen && scan->spare) {
        return 0;
    }
    helio_flight_scan_fini(scan);
    return helio_fail(HELIO_ERR_NOMEM, "no memory for the flight recorder");
}

void helio_flight_scan_fini(helio_flight_scan *scan) {
    for (uint32_t slot = 0; scan->seen && slot < scan->slots_max; slot++) {
        free(scan->seen[slot].now);
        free(scan->seen[slot].told);
    }
    free(scan->seen);
    free(scan->spare);
    *scan = (helio_flight_scan){0};
}

/* ---- looking ---- */

/* Memory for the cells of a slot; a slot's objects are all of one scope. */
static bool make_room(helio_flight_seen *seen, const helio_stats_entry *entry) {
    if (seen->now) {
        return seen->words == entry->words;
    }
    seen->now = calloc(entry->words, sizeof *seen->now);
    seen->told = calloc(entry->words, sizeof *seen->told);
    if (!seen->now || !seen->told) {
        free(seen->now);
        free(seen->told);
        seen->now = seen->told = NULL;
        return false;
    }
    seen->words = (uint16_t)entry->words;
    seen->scope = (uint16_t)entry->scope;
    return true;
}

static void look_at(helio_flight_scan *scan, uint32_t slot) {
    helio_flight_seen *seen = &scan->seen[slot];
    helio_stats_entry entry, after;
    if (!helio_stats_read_entry(scan->stats, slot, &entry) || !make_room(seen, &entry)) {
        return; /* it is being given away: the next look sees to whom */
    }
    if (entry.state == HELIO_OBJECT_GONE && !seen->is_live) {
        return; /* known, or it came and went between two looks */
    }
    const bool is_whole = helio_stats_read_record(scan->stats, &entry, scan->spare);
    if (!helio_stats_read_entry(scan->stats, slot, &after) ||
        after.generation != entry.generation) {
        return;
    }
    seen->generation = entry.generation;
    seen->created_ns = entry.created_ns;
    seen->is_live = entry.state == HELIO_OBJECT_LIVE;
    seen->is_torn = !is_whole;
    scan->spare[0] = 0; /* the guard: not a value */
    const size_t bytes = entry.words * sizeof *seen->now;
    seen->is_changed = memcmp(scan->spare, seen->told, bytes) != 0;
    if (seen->is_changed) {
        memcpy(seen->now, scan->spare, bytes);
    }
}

void helio_flight_scan_look(helio_flight_scan *scan) {
    scan->slots = helio_stats_slots(scan->stats);
    for (uint32_t slot = 0; slot < scan->slots; slot++) {
        look_at(scan, slot);
    }
}

/* ---- writing ---- */

static void put_object(const helio_flight_scan *scan, helio_flight_frame *frame, uint32_t slot) {
    const helio_flight_seen *seen = &scan->seen[slot];
    const helio_stats_entry entry = {.generation = seen->generation};
    char labels[HELIO_STATS_LABELS_BYTES];
    if (!helio_stats_read_labels(scan->stats, slot, &entry, labels)) {
        labels[0] = 0; /* gone already, and the slot is another's: the values are still its own */
    }
    uint32_t count = 0;
    for (uint32_t i = 1; i < seen->words; i++) {
        count += seen->now[i] != 0;
    }
    helio_flight_put(frame, HELIO_FLIGHT_OBJECT | (seen->is_torn ? HELIO_FLIGHT_TORN : 0));
    helio_flight_put(frame, slot);
    helio_flight_put(frame, seen->scope);
    helio_flight_put(frame, seen->generation);
    helio_flight_put(frame, seen->created_ns);
    helio_flight_put_text(frame, labels);
    helio_flight_put(frame, count);
    uint32_t last = 0;
    for (uint32_t i = 1; i < seen->words; i++) {
        if (seen->now[i] != 0) {
            helio_flight_put(frame, i - last);
            helio_flight_put(frame, seen->now[i]);
            last = i;
        }
    }
}

static void put_changes(helio_flight_frame *frame, const helio_flight_seen *seen, uint32_t slot) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < seen->words; i++) {
        count += seen->now[i] != seen->told[i];
    }
    helio_flight_put(frame, HELIO_FLIGHT_CHANGED | (seen->is_torn ? HELIO_FLIGHT_TORN : 0));
    helio_flight_put(frame, slot);
    helio_flight_put(frame, count);
    uint32_t last = 0;
    for (uint32_t i = 1; i < seen->words; i++) {
        if (seen->now[i] != seen->told[i]) {
            helio_flight_put(frame, i - last);
            helio_flight_put_change(frame, seen->now[i] - seen->told[i]);
            last = i;
        }
    }
}

static void put_gone(helio_flight_frame *frame, uint32_t slot) {
    helio_flight_put(frame, HELIO_FLIGHT_GONE);
    helio_flight_put(frame, slot);
}

static bool is_successor(const helio_flight_seen *seen) {
    return seen->is_told && seen->told_generation != seen->generation;
}

/* What a frame that follows another says of a slot. */
static void write_news(const helio_flight_scan *scan, helio_flight_frame *frame, uint32_t slot) {
    const helio_flight_seen *seen = &scan->seen[slot];
    if (seen->is_left_out || !(seen->is_live || seen->is_told)) {
        return;
    }
    if (!seen->is_told || is_successor(seen)) {
        put_object(scan, frame, slot); /* takes the place of one that was in the slot before */
    } else if (seen->is_changed) {
        put_changes(frame, seen, slot);
    }
    if (!seen->is_live) {
        put_gone(frame, slot);
    }
}

/* What a key says of it; false: there is no room. */
static bool write_whole(helio_flight_scan *scan, helio_flight_frame *frame, uint32_t slot) {
    const helio_flight_seen *seen = &scan->seen[slot];
    const size_t used = frame->used;
    put_object(scan, frame, slot);
    if (!seen->is_live) {
        put_gone(frame, slot);
    }
    if (frame->is_full) {
        frame->used = used;
        frame->is_full = false;
        return false;
    }
    return true;
}

bool helio_flight_scan_write(helio_flight_scan *scan, helio_flight_frame *frame, bool is_key) {
    scan->left_out = is_key ? 0 : scan->left_out;
    for (uint32_t slot = 0; slot < scan->slots; slot++) {
        helio_flight_seen *seen = &scan->seen[slot];
        if (!is_key) {
            write_news(scan, frame, slot);
        } else if (seen->is_live || (seen->is_told && !seen->is_live)) {
            seen->is_left_out = !write_whole(scan, frame, slot);
            scan->left_out += seen->is_left_out;
        }
    }
    return !frame->is_full;
}

void helio_flight_scan_settle(helio_flight_scan *scan) {
    for (uint32_t slot = 0; slot < scan->slots; slot++) {
        helio_flight_seen *seen = &scan->seen[slot];
        if (!seen->now) {
            continue;
        }
        if (seen->is_changed) { /* of one left out too: it is told whole, when it is */
            memcpy(seen->told, seen->now, seen->words * sizeof *seen->now);
            seen->is_changed = false;
        }
        seen->is_told = seen->is_live && !seen->is_left_out;
        seen->is_left_out &= seen->is_live;
        seen->told_generation = seen->generation;
    }
}
