/* Threads of an engine.  Signals are for the program's own threads: ours are started with all of
 * them blocked but SIGBUS, which a thread sends itself when a mapped file is cut
 * (base/mapped.h). */
#ifndef HELIO_QUEUE_THREAD_H
#define HELIO_QUEUE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create. */
static inline int helio_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                                     void *(*run)(void *context), void *context) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(thread, attributes, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

#endif
