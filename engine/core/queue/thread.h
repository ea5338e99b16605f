/* Threads of an engine.  Signals are for the program's own threads: ours are started with all of
 * them blocked but SIGBUS, which a thread sends itself when a mapped file is cut
 * (base/mapped.h). */
#ifndef HELIO_QUEUE_THREAD_H
#define HELIO_QUEUE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_create. */
int helio_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                       void *(*run)(void *context), void *context);

/* The same for a thread that is in nobody's way: it runs on no core the caller is pinned to, and
 * not on core `cpu` (-1: none), as long as the process has other cores. */
int helio_thread_start_helper(pthread_t *thread, pthread_attr_t *attributes, int64_t cpu,
                              void *(*run)(void *context), void *context);

#endif
