#include "queue/signal.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/moment.h"

uint32_t helio_signal_prepare(helio_signal *signal) {
    atomic_fetch_add_explicit(&signal->sleepers, 1, memory_order_relaxed);
    const uint32_t seen = atomic_load_explicit(&signal->sequence, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return seen;
}

void helio_signal_cancel(helio_signal *signal) {
    atomic_fetch_sub_explicit(&signal->sleepers, 1, memory_order_relaxed);
}

void helio_signal_wait(helio_signal *signal, uint32_t seen, int64_t deadline_ns) {
    const struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / HELIO_SECOND),
                                      .tv_nsec = (long)(deadline_ns % HELIO_SECOND)};
    /* WAIT_BITSET takes the deadline itself, on the monotonic clock. */
    syscall(SYS_futex, &signal->sequence, FUTEX_WAIT_BITSET_PRIVATE, seen,
            deadline_ns == HELIO_NEVER ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    helio_signal_cancel(signal);
}

void helio_signal_wake(helio_signal *signal) {
    atomic_fetch_add_explicit(&signal->sequence, 1, memory_order_release);
    syscall(SYS_futex, &signal->sequence, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
