/* Lets threads sleep until another thread has news.  While no thread sleeps, the notifier pays one
 * fence and one load.
 *
 * The sleeper:  uint32_t seen = helio_signal_prepare(s);  look once more;  helio_signal_wait(s,
 * seen, deadline) or _cancel.  The notifier: publish the news;  helio_signal_notify(s). */
#ifndef HELIO_QUEUE_SIGNAL_H
#define HELIO_QUEUE_SIGNAL_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct helio_signal {
    _Atomic uint32_t sequence;
    _Atomic uint32_t sleepers;
} helio_signal;

/* Announces that the caller is about to sleep.  News published before this returned is seen by a
 * look after it. */
uint32_t helio_signal_prepare(helio_signal *signal);
/* Sleeps until notified or until the deadline (monotonic; HELIO_NEVER: no deadline).  May return
 * early. */
void helio_signal_wait(helio_signal *signal, uint32_t seen, int64_t deadline_ns);
/* Takes the announcement back. */
void helio_signal_cancel(helio_signal *signal);

void helio_signal_wake(helio_signal *signal);

static inline void helio_signal_notify(helio_signal *signal) {
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&signal->sleepers, memory_order_relaxed)) {
        helio_signal_wake(signal);
    }
}

#endif
