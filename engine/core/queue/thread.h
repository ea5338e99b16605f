/* Threads of an engine.  They start with all signals blocked, so that the program's own threads get
 * them.  SIGBUS is the exception: it reaches the thread that accesses a truncated mapped file
 * (base/mapped.h). */
#ifndef HELIO_QUEUE_THREAD_H
#define HELIO_QUEUE_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Like pthread_create. */
int helio_thread_start(pthread_t *thread, const pthread_attr_t *attributes,
                       void *(*run)(void *context), void *context);

/* The same for a helper thread.  It does not run on a core that the caller is pinned to, nor on
 * core `cpu` (-1: none), if the process has other cores. */
int helio_thread_start_helper(pthread_t *thread, pthread_attr_t *attributes, int64_t cpu,
                              void *(*run)(void *context), void *context);

#endif
