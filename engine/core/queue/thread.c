#include "queue/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>

/* The cores of the process when it loaded the library: a thread that pins itself later gives up
 * cores for itself alone. */
static cpu_set_t process_cores;

__attribute__((constructor)) static void note_cores(void) {
    sched_getaffinity(0, sizeof process_cores, &process_cores);
}

int helio_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                       void *(*run)(void *context), void *context) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* The cores for a helper thread; false: those it inherits will do, or there are no others. */
static bool choose_cores(int64_t cpu, cpu_set_t *cores) {
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own) < 0) {
        return false;
    }
    *cores = own;
    if (CPU_COUNT(&own) == 1) {
        CPU_OR(cores, &own, &process_cores);
        CPU_XOR(cores, cores, &own);
    }
    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_CLR((int)cpu, cores);
    }
    return CPU_COUNT(cores) > 0 && !CPU_EQUAL(cores, &own);
}

int helio_thread_start_helper(pthread_t *thread, pthread_attr_t *attributes, int64_t cpu,
                              void *(*run)(void *context), void *context) {
    cpu_set_t cores;
    if (choose_cores(cpu, &cores)) {
        pthread_attr_setaffinity_np(attributes, sizeof cores, &cores);
    }
    int error = helio_thread_start(thread, attributes, run, context);
    if (error == EINVAL) { /* the cores were taken from the process meanwhile */
        sched_getaffinity(0, sizeof cores, &cores);
        pthread_attr_setaffinity_np(attributes, sizeof cores, &cores);
        error = helio_thread_start(thread, attributes, run, context);
    }
    return error;
}
