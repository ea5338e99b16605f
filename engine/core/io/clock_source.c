#include "io/clock_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIFE_NS HELIO_MILLISECOND
#define LEARN_NS (20 * HELIO_MILLISECOND) /* of measuring before the rate is used */
#define MEASURE_NS HELIO_SECOND           /* then the rate is measured from a later anchor */

#define STEP_NS (100 * HELIO_MICROSECOND)      /* a smaller step is not reported */
#define UNDISTURBED_NS (2 * HELIO_MICROSECOND) /* for one reading between two others */

enum { READINGS_MAX = 4, READING_TICKS = 1000 }; /* an undisturbed reading takes some hundred */

/* Whether the kernel keeps time by the counter.  It has tested what cannot be tested here. */
static bool kernel_uses_counter(void) {
#if defined(__x86_64__)
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    char name[16] = "";
    if (file) {
        if (!fgets(name, sizeof name, file)) {
            name[0] = 0;
        }
        fclose(file);
    }
    return strcmp(name, "tsc\n") == 0;
#else
    return false;
#endif
}

void helio_clock_source_init(helio_clock_source *source) {
    *source = (helio_clock_source){.has_counter = kernel_uses_counter()};
    source->anchor_ns = source->first_ns = helio_monotonic_ns();
    source->anchor_ticks = source->first_ticks = helio_ticks();
}

/* What the engine would have read at `ticks` from the old anchor, if that was good. */
static int64_t predicted_ns(const helio_clock_source *source, uint64_t ticks) {
    const uint64_t passed = ticks - source->anchor_ticks;
    return passed <= 2 * source->life_ticks
               ? source->anchor_ns + (int64_t)(passed * source->ns_per_tick >> 32)
               : 0;
}

/* The rate from the anchors; a clock that is ahead of the kernel's by `ahead_ns` goes slower for
 * the next life. */
static void set_rate(helio_clock_source *source, int64_t ahead_ns) {
    const int64_t passed_ns = source->anchor_ns - ahead_ns - source->first_ns;
    const uint64_t passed = source->anchor_ticks - source->first_ticks;
    source->life_ticks = 0;
    if (passed_ns < LEARN_NS || passed == 0) {
        return;
    }
    const double ns_per_tick = (double)passed_ns / (double)passed;
    if (ns_per_tick <= 0.01 || ns_per_tick > 100 || ahead_ns > LIFE_NS / 2) {
        return; /* the counter is not what it seemed: the kernel is asked */
    }
    const double slower = 1 - (double)ahead_ns / (double)LIFE_NS;
    source->ns_per_tick = (uint64_t)(ns_per_tick * slower * 4294967296.0);
    source->life_ticks = (uint64_t)((double)LIFE_NS / ns_per_tick);
    if (passed_ns > MEASURE_NS) { /* the kernel's own rate is steered: follow it */
        source->first_ns += passed_ns / 2;
        source->first_ticks += passed / 2;
    }
}

/* Reads both clocks at once; a reading that was interrupted in between is repeated. */
static int64_t read_both(uint64_t *ticks) {
    int64_t now_ns = 0;
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < READINGS_MAX && best > READING_TICKS; i++) {
        const uint64_t before = helio_ticks();
        const int64_t at_ns = helio_monotonic_ns();
        const uint64_t took = helio_ticks() - before;
        if (took < best) {
            best = took;
            now_ns = at_ns;
            *ticks = before + took / 2;
        }
    }
    return now_ns;
}

/* Moves the anchor to now; returns now, which is never before what was read already. */
static int64_t move_anchor(helio_clock_source *source) {
    uint64_t ticks = 0;
    const int64_t now_ns = read_both(&ticks);
    const int64_t before_ns = predicted_ns(source, ticks);
    const int64_t ahead_ns = before_ns > now_ns ? before_ns - now_ns : 0;
    source->anchor_ns = now_ns + ahead_ns;
    source->anchor_ticks = ticks;
    set_rate(source, ahead_ns);
    return source->anchor_ns;
}

/* Reads the wall clock between two readings of the monotonic one, and how far it is from the middle
 * of them.  Returns how far these are apart: it is off by no more than half of that. */
static int64_t read_offset(int64_t *offset_ns) {
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < READINGS_MAX && best_ns > UNDISTURBED_NS; i++) {
        const int64_t before_ns = helio_monotonic_ns();
        const int64_t wall_ns = helio_wall_ns();
        const int64_t took_ns = helio_monotonic_ns() - before_ns;
        if (took_ns < best_ns) {
            best_ns = took_ns;
            *offset_ns = wall_ns - before_ns - took_ns / 2;
        }
    }
    return best_ns;
}

/* Looks up how far the wall clock is from the monotonic one.  A reading that was interrupted every
 * time says nothing as long as it does not contradict what is known. */
static void look_up_wall(helio_clock_source *source) {
    int64_t offset_ns = 0;
    const int64_t took_ns = read_offset(&offset_ns);
    const bool has_changed = llabs(offset_ns - source->offset_ns) > took_ns;
    if (!source->has_offset) {
        source->told_offset_ns = offset_ns;
    }
    if (!source->has_offset || has_changed || took_ns <= UNDISTURBED_NS) {
        source->offset_ns = offset_ns;
        source->has_offset = true;
    }
}

/* From offset to offset, not a sum of changes: the errors of thousands of readings would add up to
 * a step that nobody made. */
int64_t helio_clock_take_step(helio_clock_source *source) {
    const int64_t by_ns = source->offset_ns - source->told_offset_ns;
    if (llabs(by_ns) < STEP_NS) {
        return 0;
    }
    source->told_offset_ns = source->offset_ns;
    return by_ns;
}

helio_moment helio_clock_anchor(helio_clock_source *source) {
    const int64_t now_ns = source->has_counter ? move_anchor(source) : helio_monotonic_ns();
    if (now_ns >= source->wall_due_ns) {
        look_up_wall(source);
        source->wall_due_ns = now_ns + LIFE_NS;
    }
    return (helio_moment){.now_ns = now_ns, .wall_ns = now_ns + source->offset_ns};
}
