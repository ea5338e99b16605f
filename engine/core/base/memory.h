/* Memory for structures whose fields keep to cache lines of their own. */
#ifndef HELIO_BASE_MEMORY_H
#define HELIO_BASE_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* Zeroed, aligned to 64; released with free.  NULL when there is none. */
static inline void *helio_allocate(size_t bytes) {
    const size_t size = (size_t)helio_round_up(bytes, 64);
    void *memory = aligned_alloc(64, size);
    if (memory) {
        memset(memory, 0, size);
    }
    return memory;
}

#endif
