/* The kernel's clocks.  An engine's own time, which costs less, is io/clock_source.h. */
#ifndef HELIO_IO_KERNEL_CLOCK_H
#define HELIO_IO_KERNEL_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/moment.h"

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

/* Sleeps; a signal may end it early. */
static inline void helio_sleep_ns(int64_t ns) {
    const struct timespec time = {ns / HELIO_SECOND, ns % HELIO_SECOND};
    nanosleep(&time, NULL);
}

#endif
