#include "runtime/idle.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "generated/options.h"

#define SPIN_NS (20 * HELIO_MICROSECOND)
#define YIELD_NS (120 * HELIO_MICROSECOND) /* since the idleness began */

static int fail(const char *what) {
    return helio_fail(HELIO_ERR_SYSTEM, "cannot %s: %s", what, strerror(errno));
}

static int tell_kernel(helio_idle *idle, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(idle->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? fail("watch a socket") : 0;
}

int helio_idle_open(helio_idle *idle, int strategy) {
    *idle = (helio_idle){.strategy = strategy, .epoll = -1, .event = -1};
    idle->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (idle->epoll < 0) {
        return fail("create an epoll instance");
    }
    idle->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (idle->event < 0) {
        const int error = fail("create an eventfd");
        helio_idle_close(idle);
        return error;
    }
    const int error = tell_kernel(idle, idle->event);
    if (error) {
        helio_idle_close(idle);
    }
    return error;
}

void helio_idle_close(helio_idle *idle) {
    if (idle->event >= 0) {
        close(idle->event);
    }
    if (idle->epoll >= 0) {
        close(idle->epoll);
    }
    free(idle->watched);
    *idle = (helio_idle){.epoll = -1, .event = -1};
}

static bool make_place(helio_idle *idle) {
    if (idle->watched_count < idle->watched_capacity) {
        return true;
    }
    const size_t capacity = idle->watched_capacity ? idle->watched_capacity * 2 : 8;
    int *watched = realloc(idle->watched, capacity * sizeof *watched);
    if (!watched) {
        return false;
    }
    idle->watched = watched;
    idle->watched_capacity = capacity;
    return true;
}

int helio_idle_watch(helio_idle *idle, int fd) {
    if (!make_place(idle)) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory to watch a socket");
    }
    const int error = idle->has_slept ? tell_kernel(idle, fd) : 0;
    if (!error) {
        idle->watched[idle->watched_count++] = fd;
    }
    return error;
}

void helio_idle_unwatch(helio_idle *idle, int fd) {
    if (idle->has_slept) {
        epoll_ctl(idle->epoll, EPOLL_CTL_DEL, fd, NULL);
    }
    for (size_t i = 0; i < idle->watched_count; i++) {
        if (idle->watched[i] == fd) {
            idle->watched[i] = idle->watched[--idle->watched_count];
            return;
        }
    }
}

static void fall_asleep_first(helio_idle *idle) {
    idle->has_slept = true;
    for (size_t i = 0; i < idle->watched_count; i++) {
        tell_kernel(idle, idle->watched[i]);
    }
}

bool helio_idle_should_sleep(helio_idle *idle, int64_t now_ns) {
    if (!idle->idle_since_ns) {
        idle->idle_since_ns = now_ns;
    }
    const int64_t idle_ns = now_ns - idle->idle_since_ns;
    switch (idle->strategy) {
    case HELIO_IDLE_SPIN:
        helio_pause();
        return false;
    case HELIO_IDLE_YIELD:
        sched_yield();
        return false;
    case HELIO_IDLE_BACKOFF:
        if (idle_ns < SPIN_NS) {
            helio_pause();
            return false;
        }
        if (idle_ns < YIELD_NS) {
            sched_yield();
            return false;
        }
        return true;
    default:
        return true;
    }
}

void helio_idle_prepare(helio_idle *idle) {
    atomic_store_explicit(&idle->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

void helio_idle_cancel(helio_idle *idle) {
    atomic_store_explicit(&idle->sleeping, 0, memory_order_relaxed);
}

void helio_idle_sleep(helio_idle *idle, int64_t now_ns, int64_t deadline_ns) {
    if (!idle->has_slept) {
        fall_asleep_first(idle);
    }
    const int64_t left = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    const struct timespec timeout = {.tv_sec = (time_t)(left / HELIO_SECOND),
                                     .tv_nsec = (long)(left % HELIO_SECOND)};
    struct epoll_event event = {.data.fd = -1};
    if (epoll_pwait2(idle->epoll, &event, 1, deadline_ns == HELIO_NEVER ? NULL : &timeout, NULL) <
            0 &&
        errno == ENOSYS) { /* a kernel before 5.11 has no finer measure than the millisecond */
        const int64_t ms = (left + HELIO_MILLISECOND - 1) / HELIO_MILLISECOND;
        epoll_wait(idle->epoll, &event, 1,
                   deadline_ns == HELIO_NEVER ? -1 : (int)(ms < 60000 ? ms : 60000));
    }
    helio_idle_cancel(idle);
    uint64_t count;
    while (event.data.fd == idle->event && read(idle->event, &count, sizeof count) > 0) {
        /* until it is quiet again */
    }
}

void helio_idle_write(helio_idle *idle) {
    const uint64_t one = 1;
    while (write(idle->event, &one, sizeof one) < 0 && errno == EINTR) {
    }
}
