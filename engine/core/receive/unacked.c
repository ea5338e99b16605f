#include "receive/unacked.h"

#include <stdlib.h>

#include <heliograph/errors.h>

int helio_unacked_init(helio_unacked *unacked, size_t capacity) {
    *unacked = (helio_unacked){.mask = capacity - 1};
    unacked->batches = calloc(capacity, sizeof *unacked->batches);
    return unacked->batches ? 0 : HELIO_ERR_NOMEM;
}

void helio_unacked_fini(helio_unacked *unacked) {
    free(unacked->batches);
    *unacked = (helio_unacked){0};
}

void helio_unacked_add(helio_unacked *unacked, uint64_t sequence, uint64_t end) {
    if (end <=
        unacked->acknowledged) { /* handed over ahead of its turn, and acknowledged before it */
        return;
    }
    if (unacked->first != unacked->last) {
        helio_unacked_batch *newest = &unacked->batches[(unacked->last - 1) & unacked->mask];
        if (newest->sequence == sequence || unacked->last - unacked->first > unacked->mask) {
            newest->end = end;
            return;
        }
    }
    unacked->batches[unacked->last++ & unacked->mask] = (helio_unacked_batch){sequence, end};
}

void helio_unacked_acknowledge(helio_unacked *unacked, uint64_t next) {
    if (next > unacked->acknowledged) {
        unacked->acknowledged = next;
    }
    while (unacked->first != unacked->last &&
           unacked->batches[unacked->first & unacked->mask].end <= next) {
        unacked->first++;
    }
}
