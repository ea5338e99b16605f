/* Mapped files that may be cut short by somebody else.
 *
 * Who touches a page of a mapped file that is no longer in the file is sent SIGBUS, and dies of
 * it.  No check of the size before the access helps: the file may be cut between the two.  So a
 * mapping that is registered here is guarded: the handler of SIGBUS puts private pages of zeros
 * where the file ends, notes that the mapping is cut, and the access goes on.  The owner asks
 * helio_mapped_is_cut where it does its rare work, and gives up the file with an error.
 *
 * Who uses a guarded mapping must therefore be right with zeros in place of anything it wrote: it
 * keeps sizes and places in memory of its own.
 *
 * The handler is there only while mappings are registered.  What is not in one of them is passed to
 * the handler that was there before.  A thread that blocks SIGBUS dies as before; the engine's do
 * not block it. */
#ifndef HELIO_BASE_MAPPED_H
#define HELIO_BASE_MAPPED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct helio_mapped {
    _Atomic uintptr_t begin; /* 0: free */
    _Atomic size_t bytes;
    _Atomic bool is_cut;
    bool is_taken; /* beneath the lock */
} helio_mapped;

/* Guards a mapping of `bytes` from its beginning.  NULL: there is no memory, it is not guarded. */
helio_mapped *helio_mapped_guard(void *memory, size_t bytes);
/* Before the mapping is undone.  Accepts NULL. */
void helio_mapped_release(helio_mapped *mapped);

/* The file was cut: from somewhere on there are zeros, which nobody else sees. */
static inline bool helio_mapped_is_cut(const helio_mapped *mapped) {
    return mapped && atomic_load_explicit(&mapped->is_cut, memory_order_acquire);
}

#endif
