/* Hiccups of the host, recorded beside the transport's latency so that blame can be split.
 *
 * A thread that does nothing but sleep for a short while, again and again, and looks how late it
 * wakes (Gil Tene's jHiccup): whatever keeps it from a core - another thread, the hypervisor, a
 * stopped process, the clock - keeps the application from it too, and none of it is the transport's
 * doing.  It runs on no pinned core, where it would measure the thread that spins there, and disturb
 * it.  An engine of mode poll has no such thread unless the option hiccup_interval is given
 * (docs/adr/0035).  Systematic lateness of the timer, the least ever seen, is taken off.  A hiccup longer
 * than the sleep hid other sleeps, which would have been late as well; they are filled in, so that
 * percentiles are of time and not of sleeps.
 *
 * The thread is the only writer of its histogram and shares nothing else with the engine. */
#ifndef HELIO_RUNTIME_HICCUP_H
#define HELIO_RUNTIME_HICCUP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "stats/hdr.h"

typedef struct helio_hiccup {
    helio_hdr *histogram;
    int64_t interval_ns;
    int64_t least_ns; /* of all oversleeping */
    pthread_t thread;
    bool is_running;
    _Atomic bool is_ending;
} helio_hiccup;

/* Starts the thread, on a core other than `cpu` (-1: any).  0 or HELIO_ERR_SYSTEM. */
int helio_hiccup_start(helio_hiccup *hiccup, helio_hdr *histogram, int64_t interval_ns,
                       int64_t cpu);
/* Ends it, within one interval.  Harmless when it never started. */
void helio_hiccup_stop(helio_hiccup *hiccup);

/* A sleep of interval_ns took slept_ns. */
void helio_hiccup_note(helio_hiccup *hiccup, int64_t slept_ns);

#endif
