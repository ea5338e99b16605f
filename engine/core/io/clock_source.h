/* The clocks of an engine.
 *
 * It looks at the time with every packet, so a look must cost next to nothing.  Where the kernel
 * itself keeps time by the processor's time stamp counter (clock source "tsc": constant rate, the
 * same on all cores), an engine reads the counter and counts on from an anchor: a moment at which
 * it asked the kernel for both clocks, at most a millisecond ago.  The rate comes from the anchors
 * themselves.  Elsewhere every look asks the kernel.
 *
 * Its monotonic clock never goes back.  It strays from the kernel's by what the rate is off within
 * a millisecond, some nanoseconds.
 *
 * The kernel steers both of its clocks alike, so the wall clock keeps its distance from the
 * monotonic one until somebody sets it.  The distance is looked up every millisecond; when it has
 * changed the wall clock was set, by as much. */
#ifndef HELIO_IO_CLOCK_SOURCE_H
#define HELIO_IO_CLOCK_SOURCE_H

#include <stdbool.h>

#include "base/moment.h"
#include "io/kernel_clock.h"

typedef struct helio_clock_source {
    int64_t anchor_ns;      /* monotonic */
    uint64_t anchor_ticks;  /* the counter then */
    uint64_t life_ticks;    /* how long the anchor is good for; 0: ask the kernel every time */
    uint64_t ns_per_tick;   /* scaled by 2^32 */
    int64_t offset_ns;      /* wall - monotonic */
    int64_t wall_due_ns;    /* monotonic; when the offset is to be looked up again */
    int64_t told_offset_ns; /* the offset at the last step that was taken, or at first */
    bool has_offset;
    /* The first anchor: the rate is measured from there. */
    int64_t first_ns;
    uint64_t first_ticks;
    bool has_counter;
} helio_clock_source;

/* The processor's time stamp counter; 0 where there is none to be trusted. */
static inline uint64_t helio_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* Finds out whether the counter can be used. */
void helio_clock_source_init(helio_clock_source *source);
/* Asks the kernel: the slow half of helio_clock_read. */
helio_moment helio_clock_anchor(helio_clock_source *source);

/* By how much the wall clock was set (back: below 0) since the last call; 0: not by anything worth
 * telling. */
int64_t helio_clock_take_step(helio_clock_source *source);

/* One moment on both clocks. */
static inline helio_moment helio_clock_read(helio_clock_source *source) {
    const uint64_t passed = helio_ticks() - source->anchor_ticks;
    if (passed >= source->life_ticks) { /* also when the counter was set back */
        return helio_clock_anchor(source);
    }
    const int64_t now_ns = source->anchor_ns + (int64_t)(passed * source->ns_per_tick >> 32);
    return (helio_moment){.now_ns = now_ns, .wall_ns = now_ns + source->offset_ns};
}

/* Monotonic moment `timeout_ns` from now; HELIO_NEVER for one that never comes. */
static inline int64_t helio_deadline_after(int64_t timeout_ns) {
    const int64_t now_ns = helio_monotonic_ns();
    return timeout_ns >= HELIO_NEVER - now_ns ? HELIO_NEVER
                                              : now_ns + (timeout_ns > 0 ? timeout_ns : 0);
}

#endif
