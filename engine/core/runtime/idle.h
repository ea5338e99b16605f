/* What to do when there is nothing to do (option `idle`), and the one place the engine sleeps:
 * until a socket is readable, a timer is due, or another thread wakes it.
 *
 *   spin      looks again at once
 *   yield     lets other threads of the core run, then looks again
 *   backoff   spins for 20 us, yields for 100 us, then sleeps: fast while there is traffic, free
 *             of cost when there is none
 *   block     sleeps at once */
#ifndef HELIO_RUNTIME_IDLE_H
#define HELIO_RUNTIME_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct helio_idle {
    int strategy; /* HELIO_IDLE_* */
    int epoll;
    int event; /* written by wakers */
    /* Sockets to watch.  They are registered with the kernel before the first sleep: an engine that
     * spins spares the senders its telling of every packet. */
    int *watched;
    size_t watched_count, watched_capacity;
    bool has_slept;
    int64_t idle_since_ns;
    _Atomic uint32_t sleeping;
} helio_idle;

/* Returns 0 or HELIO_ERR_SYSTEM. */
int helio_idle_open(helio_idle *idle, int strategy);
void helio_idle_close(helio_idle *idle);

/* Sockets whose readability ends a sleep.  Returns 0, HELIO_ERR_SYSTEM or HELIO_ERR_NOMEM. */
int helio_idle_watch(helio_idle *idle, int fd);
void helio_idle_unwatch(helio_idle *idle, int fd);

/* There was work. */
static inline void helio_idle_reset(helio_idle *idle) {
    idle->idle_since_ns = 0;
}

/* Whether, after this much idleness, it is time to sleep; spins or yields otherwise. */
bool helio_idle_should_sleep(helio_idle *idle, int64_t now_ns);

/* Announces a sleep: work published before this returned is seen by a look after it, and a wake
 * after it ends the sleep. */
void helio_idle_prepare(helio_idle *idle);
/* Sleeps until the deadline (monotonic) at most; 0 or the past: only looks at the sockets. */
void helio_idle_sleep(helio_idle *idle, int64_t now_ns, int64_t deadline_ns);
void helio_idle_cancel(helio_idle *idle);

void helio_idle_write(helio_idle *idle);

/* Other threads, after they published work: ends the sleep, if there is one. */
static inline void helio_idle_wake(helio_idle *idle) {
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&idle->sleeping, memory_order_relaxed)) {
        helio_idle_write(idle);
    }
}

/* A moment's rest for the core within a spin. */
static inline void helio_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
