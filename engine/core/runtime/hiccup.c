#include "runtime/hiccup.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/error.h"
#include "io/kernel_clock.h"
#include "queue/thread.h"

enum { STACK_BYTES = 64 * 1024 };

void helio_hiccup_note(helio_hiccup *hiccup, int64_t slept_ns) {
    const int64_t over_ns = slept_ns - hiccup->interval_ns;
    if (over_ns < hiccup->least_ns) {
        hiccup->least_ns = over_ns;
    }
    int64_t late_ns = over_ns - hiccup->least_ns;
    helio_hdr_record(hiccup->histogram, late_ns, 1);
    if (late_ns > HELIO_HDR_HIGHEST) {
        late_ns = HELIO_HDR_HIGHEST;
    }
    for (late_ns -= hiccup->interval_ns; late_ns >= hiccup->interval_ns;
         late_ns -= hiccup->interval_ns) {
        helio_hdr_record(hiccup->histogram, late_ns, 1);
    }
}

static void *run(void *context) {
    helio_hiccup *hiccup = context;
    pthread_setname_np(pthread_self(), "helio-hiccup");
    prctl(PR_SET_TIMERSLACK, 1UL);
    const struct timespec interval = {hiccup->interval_ns / HELIO_SECOND,
                                      hiccup->interval_ns % HELIO_SECOND};
    while (!atomic_load_explicit(&hiccup->is_ending, memory_order_relaxed)) {
        const int64_t begin_ns = helio_monotonic_ns();
        nanosleep(&interval, NULL);
        helio_hiccup_note(hiccup, helio_monotonic_ns() - begin_ns);
    }
    return NULL;
}

int helio_hiccup_start(helio_hiccup *hiccup, helio_hdr *histogram, int64_t interval_ns,
                       int64_t cpu) {
    *hiccup =
        (helio_hiccup){.histogram = histogram, .interval_ns = interval_ns, .least_ns = HELIO_NEVER};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const int error = helio_thread_start_helper(&hiccup->thread, &attributes, cpu, run, hiccup);
    pthread_attr_destroy(&attributes);
    hiccup->is_running = error == 0;
    return error ? helio_fail(HELIO_ERR_SYSTEM,
                              "cannot start the thread that detects hiccups of the host: %s; "
                              "hiccup_interval=0 runs without it",
                              strerror(error))
                 : 0;
}

void helio_hiccup_stop(helio_hiccup *hiccup) {
    if (hiccup->is_running) {
        atomic_store_explicit(&hiccup->is_ending, true, memory_order_relaxed);
        pthread_join(hiccup->thread, NULL);
        hiccup->is_running = false;
    }
}
