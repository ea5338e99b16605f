/* The time is an argument: nothing in the protocol reads a clock. */
#ifndef HELIO_BASE_MOMENT_H
#define HELIO_BASE_MOMENT_H

#include <stdint.h>

#define HELIO_NEVER INT64_MAX
#define HELIO_MICROSECOND INT64_C(1000)
#define HELIO_MILLISECOND INT64_C(1000000)
#define HELIO_SECOND INT64_C(1000000000)

/* One moment on two clocks.  Timers run on `now_ns`; stamps that people or other hosts see are
 * `wall_ns`. */
typedef struct helio_moment {
    int64_t now_ns;  /* monotonic, any origin, never goes back */
    int64_t wall_ns; /* since 1970 */
} helio_moment;

#endif
