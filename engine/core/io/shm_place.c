#include "io/shm_place.h"

#include <unistd.h>

void helio_shm_bell_ring(int bell) {
    const uint64_t one = 1;
    /* A bell that is full of rings rings. */
    (void)!write(bell, &one, sizeof one);
}

void helio_shm_bell_silence(int bell) {
    uint64_t rings[64];
    while (read(bell, rings, sizeof rings) == (ssize_t)sizeof rings) {
    }
}
