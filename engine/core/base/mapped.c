#include "base/mapped.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 128 };
enum { FREE, HELD, AWAITED }; /* the lock */

/* Mappings.  A table is never freed, so the handler may read it at any moment. */
typedef struct table {
    helio_mapped entries[ENTRIES];
    _Atomic(struct table *) next;
} table;

static table first;
static _Atomic uint32_t lock_word;
static size_t guarded; /* mappings; beneath the lock */
static bool is_installed;
static struct sigaction before; /* written while the handler is not installed */
static size_t page_bytes;

/* ---- the handler: nothing but loads, stores and one system call ---- */

static helio_mapped *find(uintptr_t address) {
    for (table *list = &first; list; list = atomic_load(&list->next)) {
        for (size_t i = 0; i < ENTRIES; i++) {
            helio_mapped *entry = &list->entries[i];
            const uintptr_t begin = atomic_load(&entry->begin);
            const size_t bytes = atomic_load(&entry->bytes);
            if (begin && address >= begin && address - begin < bytes &&
                atomic_load(&entry->begin) == begin) {
                return entry;
            }
        }
    }
    return NULL;
}

/* Zeros from the page of this address to the end of its mapping. */
static bool replace(uintptr_t address) {
    helio_mapped *entry = find(address);
    if (!entry) {
        return false;
    }
    const uintptr_t from = address & ~(uintptr_t)(page_bytes - 1);
    const uintptr_t end = atomic_load(&entry->begin) + atomic_load(&entry->bytes);
    const size_t length = (end - from + page_bytes - 1) & ~(page_bytes - 1);
    const long result = syscall(SYS_mmap, from, length, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    if ((uintptr_t)result != from) {
        return false;
    }
    atomic_store(&entry->is_cut, true);
    return true;
}

/* As if this handler were not there. */
static void pass_on(int number, siginfo_t *info, void *context) {
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler == SIG_IGN && info->si_code <= 0) {
        return; /* sent by a process; a fault cannot be ignored */
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        struct sigaction standard = {.sa_handler = SIG_DFL};
        sigaction(number, &standard, NULL);
        if (info->si_code <= 0) {
            raise(number); /* delivered when this handler returns */
        } /* a fault happens again, at its place */
    } else {
        before.sa_handler(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context) {
    const int error = errno;
    if (info->si_code != BUS_ADRERR || !replace((uintptr_t)info->si_addr)) {
        pass_on(number, info, context);
    }
    errno = error;
}

/* ---- beneath the lock ---- */

static void call_futex(int operation, uint32_t value) {
    syscall(SYS_futex, &lock_word, operation, value, NULL, NULL, 0);
}

/* Threads and what they lock with belong to runtime; this is held for a moment, when a file is
 * opened or closed.  Who waits sleeps: it may be more urgent than who holds it. */
static void lock(void) {
    uint32_t found = FREE;
    if (!atomic_compare_exchange_strong(&lock_word, &found, HELD)) {
        while (atomic_exchange(&lock_word, AWAITED) != FREE) {
            call_futex(FUTEX_WAIT_PRIVATE, AWAITED);
        }
    }
}

static void unlock(void) {
    if (atomic_exchange(&lock_word, FREE) == AWAITED) {
        call_futex(FUTEX_WAKE_PRIVATE, 1);
    }
}

static void install(void) {
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    is_installed = sigaction(SIGBUS, NULL, &before) == 0 && sigaction(SIGBUS, &ours, NULL) == 0;
}

/* Not when another handler was put over this one: it may pass on to us. */
static void uninstall(void) {
    struct sigaction now;
    if (sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
        now.sa_sigaction == on_fault) {
        is_installed = sigaction(SIGBUS, &before, NULL) != 0;
    }
}

static helio_mapped *take_entry(void) {
    for (table *list = &first;; list = atomic_load(&list->next)) {
        for (size_t i = 0; i < ENTRIES; i++) {
            if (!list->entries[i].is_taken) {
                list->entries[i].is_taken = true;
                return &list->entries[i];
            }
        }
        if (!atomic_load(&list->next)) {
            table *more = calloc(1, sizeof *more);
            if (!more) {
                return NULL;
            }
            atomic_store(&list->next, more);
        }
    }
}

/* ---- life ---- */

helio_mapped *helio_mapped_guard(void *memory, size_t bytes) {
    lock();
    helio_mapped *entry = take_entry();
    if (entry) {
        if (guarded++ == 0 && !is_installed) {
            install();
        }
        atomic_store(&entry->is_cut, false);
        atomic_store(&entry->bytes, bytes);
        atomic_store(&entry->begin, (uintptr_t)memory);
    }
    unlock();
    return entry;
}

void helio_mapped_release(helio_mapped *mapped) {
    if (!mapped) {
        return;
    }
    lock();
    atomic_store(&mapped->begin, 0);
    atomic_store(&mapped->bytes, 0);
    mapped->is_taken = false;
    if (--guarded == 0 && is_installed) {
        uninstall();
    }
    unlock();
}
