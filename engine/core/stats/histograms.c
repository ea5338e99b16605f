/* The histograms of objects, as the level of detail wants them (docs/segment.md 4).
 *
 * An object has a histogram from the first moment its level was on; `kept` has it from then to the
 * object's end, `histogram` only while the level is on, which is what counting looks at.  The cell
 * of the record leads readers to it as long as it is kept: what was counted stays readable.  The
 * memory belongs to the slot, so an object that comes later finds it there, and clears it.
 *
 * Raising the level gives live objects what they lack, one histogram at a time: each is a system
 * call (helio_segment_reserve), and the engine has packets to send. */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "stats/segment.h"

size_t helio_histograms_bytes(const helio_stats *stats, helio_scope scope, int level) {
    const helio_scope_shape *shape = &stats->shapes[scope];
    size_t bytes = 0;
    for (size_t i = 0; i < shape->histograms; i++) {
        bytes += shape->histogram[i].level <= level ? sizeof(helio_hdr) : 0;
    }
    return bytes;
}

/* Memory for a histogram of an object in private memory. */
static helio_hdr *allocate(void) {
    helio_hdr *histogram = aligned_alloc(64, helio_round_up(sizeof *histogram, 64));
    if (histogram) {
        memset(histogram, 0, sizeof *histogram);
    }
    return histogram;
}

/* The slot's memory for histogram i, empty: what it had before, the spare, or more of the arena.
 * NULL: there is no room. */
static helio_hdr *find_room(helio_stats *stats, uint32_t slot, size_t i, size_t *spare) {
    uint64_t *place = &stats->histograms[slot][i];
    if (*place) { /* of an object before this one */
        memset(stats->memory + *place, 0, sizeof(helio_hdr));
    } else if (*spare) {
        *place = *spare;
        *spare += sizeof(helio_hdr);
    } else {
        *place = helio_segment_take(stats, sizeof(helio_hdr));
    }
    return *place ? (helio_hdr *)(stats->memory + *place) : NULL;
}

/* Gives the object histogram i, which it lacks; counted when there is no room. */
static void give(helio_stats *stats, helio_stats_object *object, size_t i, size_t *spare) {
    const bool is_private = object->slot == HELIO_STATS_NO_SLOT;
    helio_hdr *histogram = is_private ? allocate() : find_room(stats, object->slot, i, spare);
    if (!histogram) {
        if (stats->instance) {
            helio_count(&stats->instance->histograms_refused, 1);
        }
        return;
    }
    helio_hdr_init(histogram);
    object->kept[i] = object->histogram[i] = histogram;
    if (!is_private) {
        uint8_t *cell = (uint8_t *)object->record + stats->shapes[object->scope].histogram[i].cell;
        atomic_store_explicit((_Atomic uint64_t *)cell, stats->histograms[object->slot][i],
                              memory_order_release);
    }
}

static bool is_on(const helio_stats *stats, const helio_stats_object *object, size_t i) {
    return !object->is_plain && !(object->without >> i & 1) &&
           stats->shapes[object->scope].histogram[i].level <= object->level;
}

void helio_histograms_attach(helio_stats *stats, helio_stats_object *object, size_t spare) {
    const size_t count = stats->shapes[object->scope].histograms;
    for (size_t i = 0; i < count; i++) {
        if (is_on(stats, object, i)) {
            give(stats, object, i, &spare);
        }
    }
    object->next = stats->live;
    if (object->next) {
        object->next->previous = object;
    }
    stats->live = object;
    helio_levels_admit(stats, object);
}

void helio_histograms_follow(const helio_stats *stats, helio_stats_object *object) {
    for (size_t i = 0; i < stats->shapes[object->scope].histograms; i++) {
        object->histogram[i] = is_on(stats, object, i) ? object->kept[i] : NULL;
    }
}

void helio_stats_open_histograms(helio_stats *stats, helio_stats_object *object) {
    size_t spare = 0;
    if (!object->is_plain) {
        return;
    }
    object->is_plain = false;
    for (size_t i = 0; i < stats->shapes[object->scope].histograms; i++) {
        if (is_on(stats, object, i) && !object->kept[i]) {
            give(stats, object, i, &spare);
        }
    }
    helio_histograms_follow(stats, object);
}

void helio_histograms_detach(helio_stats *stats, helio_stats_object *object) {
    helio_levels_dismiss(stats, object);
    if (stats->unopened == object) {
        stats->unopened = object->next;
    }
    if (object->next) {
        object->next->previous = object->previous;
    }
    *(object->previous ? &object->previous->next : &stats->live) = object->next;
    for (size_t i = 0; object->slot == HELIO_STATS_NO_SLOT && i < HELIO_STATS_HISTOGRAMS_MAX; i++) {
        free(object->kept[i]);
    }
}

void helio_stats_move_object(helio_stats *stats, helio_stats_object *from, helio_stats_object *to) {
    *to = *from;
    if (from->record) {
        if (to->next) {
            to->next->previous = to;
        }
        *(to->previous ? &to->previous->next : &stats->live) = to;
        stats->unopened = stats->unopened == from ? to : stats->unopened;
    }
    *from = (helio_stats_object){.slot = HELIO_STATS_NO_SLOT};
}

/* ---- raising ---- */

/* Gives one histogram that is missing. */
static void open_one(helio_stats *stats) {
    for (; stats->unopened; stats->unopened = stats->unopened->next) {
        helio_stats_object *object = stats->unopened;
        const size_t count = stats->shapes[object->scope].histograms;
        for (size_t i = 0; i < count; i++) {
            size_t spare = 0;
            if (!is_on(stats, object, i) || object->kept[i]) {
                continue;
            }
            give(stats, object, i, &spare);
            if (!object->kept[i]) {
                continue; /* without room: not asked for again until the level changes */
            }
            return;
        }
    }
}

/* Counting goes on in private memory; readers find a damaged file. */
static void tell_cut(helio_stats *stats, int64_t wall_ns) {
    if (!stats->is_cut_told && helio_mapped_is_cut(stats->guard)) {
        stats->is_cut_told = true;
        helio_stats_event(stats, wall_ns, HELIO_EVENT_FILE_TRUNCATED, HELIO_STATS_NO_SLOT, NULL,
                          "the stats segment was truncated by another program");
    }
}

bool helio_stats_tend(helio_stats *stats, helio_moment moment) {
    tell_cut(stats, moment.wall_ns);
    helio_events_tend(stats, moment.wall_ns);
    helio_levels_tend(stats, moment);
    if (stats->unopened) {
        open_one(stats);
    }
    return stats->unopened != NULL;
}
