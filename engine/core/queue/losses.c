#include "queue/losses.h"

#include <stdlib.h>

void helio_losses_fini(helio_losses *losses) {
    free(losses->ring);
    *losses = (helio_losses){0};
}

/* Makes the ring twice as large; false when it is at its limit or there is no memory. */
static bool grow(helio_losses *losses) {
    const size_t capacity = losses->capacity ? losses->capacity * 2 : 16;
    helio_loss *ring = capacity <= HELIO_LOSSES_MAX ? malloc(capacity * sizeof *ring) : NULL;
    if (!ring) {
        return false;
    }
    for (size_t i = 0; i < losses->count; i++) {
        ring[i] = losses->ring[(losses->first + i) % losses->capacity];
    }
    free(losses->ring);
    *losses = (helio_losses){.ring = ring, .capacity = capacity, .count = losses->count};
    return true;
}

void helio_losses_push(helio_losses *losses, const helio_loss *loss) {
    if (losses->count == losses->capacity && !grow(losses)) {
        helio_loss oldest;
        if (!helio_losses_pop(losses, &oldest)) {
            return;
        }
    }
    losses->ring[(losses->first + losses->count++) % losses->capacity] = *loss;
}

bool helio_losses_pop(helio_losses *losses, helio_loss *out) {
    if (!losses->count) {
        return false;
    }
    *out = losses->ring[losses->first];
    losses->first = (losses->first + 1) % losses->capacity;
    losses->count--;
    return true;
}
