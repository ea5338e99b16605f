/* The clocks, read here and nowhere else.  The wall clock of an engine is its monotonic clock plus
 * an offset that is looked up again every millisecond, so a moment costs one reading. */
#ifndef HELIO_RUNTIME_CLOCK_SOURCE_H
#define HELIO_RUNTIME_CLOCK_SOURCE_H

#include <time.h>

#include "base/clock.h"

#define HELIO_CLOCK_REFRESH_NS HELIO_MILLISECOND

typedef struct helio_clock_source {
    int64_t offset_ns;  /* wall - monotonic */
    int64_t refresh_ns; /* monotonic; when the offset is to be looked up again */
} helio_clock_source;

static inline int64_t helio_read_clock(clockid_t id) {
    struct timespec at;
    clock_gettime(id, &at);
    return (int64_t)at.tv_sec * HELIO_SECOND + at.tv_nsec;
}

static inline int64_t helio_monotonic_ns(void) {
    return helio_read_clock(CLOCK_MONOTONIC);
}

static inline int64_t helio_wall_ns(void) {
    return helio_read_clock(CLOCK_REALTIME);
}

/* One moment on both clocks. */
static inline helio_clock helio_clock_read(helio_clock_source *source) {
    const int64_t now_ns = helio_monotonic_ns();
    if (now_ns >= source->refresh_ns) {
        source->offset_ns = helio_wall_ns() - now_ns;
        source->refresh_ns = now_ns + HELIO_CLOCK_REFRESH_NS;
    }
    return (helio_clock){.now_ns = now_ns, .wall_ns = now_ns + source->offset_ns};
}

/* Monotonic moment `timeout_ns` from now; HELIO_NEVER for one that never comes. */
static inline int64_t helio_deadline_after(int64_t timeout_ns) {
    const int64_t now_ns = helio_monotonic_ns();
    return timeout_ns >= HELIO_NEVER - now_ns ? HELIO_NEVER
                                              : now_ns + (timeout_ns > 0 ? timeout_ns : 0);
}

#endif
