/* Rings in the memory of the process, for its threads.  One list of all places, under a lock that
 * is taken when something opens, closes or is looked for.  A ring's memory lives as long as anyone,
 * writer or reader, holds it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "io/driver.h"
#include "io/shm_place.h"

#define ENABLED "/sys/kernel/mm/transparent_hugepage/enabled"

#define HUGE_PAGE ((size_t)2 << 20)

/* A ring's memory. */
typedef struct heap_ring {
    void *memory;
    size_t bytes;
    size_t mapped; /* rounded up */
    unsigned holders;
} heap_ring;

typedef struct heap_place {
    helio_shm_place base;
    char name[HELIO_CHANNEL_NAME_MAX + 1];
    heap_ring *ring; /* NULL: none made */
    bool has_ring;   /* it can be found */
    struct heap_place *next;
} heap_place;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static heap_place *places;          /* under lock */
static _Atomic uint64_t generation; /* counts rings coming and going */

static heap_place *heap_of(helio_shm_place *place) {
    return (heap_place *)place;
}

/* ---- life ---- */

static int open_place(const char *name, uint64_t id, helio_shm_place **out) {
    heap_place *place = calloc(1, sizeof *place);
    if (!place) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a ring");
    }
    place->base = (helio_shm_place){
        .kind = &helio_shm_heap,
        .key = {id, helio_process_self()},
        .bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
        .generation = &generation,
    };
    if (place->base.bell < 0) {
        free(place);
        return helio_fail(HELIO_ERR_SYSTEM, "cannot create an eventfd: %s", strerror(errno));
    }
    snprintf(place->name, sizeof place->name, "%s", name);
    pthread_mutex_lock(&lock);
    place->next = places;
    places = place;
    pthread_mutex_unlock(&lock);
    *out = &place->base;
    return 0;
}

static void withdraw(helio_shm_place *base) {
    pthread_mutex_lock(&lock);
    heap_of(base)->has_ring = false;
    pthread_mutex_unlock(&lock);
    atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

static void close_place(helio_shm_place *base) {
    if (!base) {
        return;
    }
    withdraw(base);
    pthread_mutex_lock(&lock);
    heap_place **at = &places;
    while (*at != heap_of(base)) {
        at = &(*at)->next;
    }
    *at = heap_of(base)->next;
    pthread_mutex_unlock(&lock);
    close(base->bell);
    free(base);
}

/* ---- rings ---- */

/* Huge pages of the pool, else the transparent ones, if the system gives them. */
static void *map_huge(size_t bytes, const char **why) {
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (memory != MAP_FAILED) {
        return memory;
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char text[128] = "";
    FILE *file = fopen(ENABLED, "re");
    if (file) {
        (void)!fgets(text, sizeof text, file);
        fclose(file);
    }
    const bool gives = strstr(text, "[always]") || strstr(text, "[madvise]");
    if (!gives || memory == MAP_FAILED || madvise(memory, bytes, MADV_HUGEPAGE) < 0) {
        *why = "the ring lies in ordinary pages: no huge ones in the pool, none from " ENABLED;
    }
    return memory;
}

static int make(helio_shm_place *base, size_t bytes, bool huge, helio_shm_mapping *out,
                const char **why) {
    heap_ring *ring = calloc(1, sizeof *ring);
    const size_t mapped = huge ? (size_t)helio_round_up(bytes, HUGE_PAGE) : bytes;
    *why = NULL;
    void *memory =
        huge ? map_huge(mapped, why)
             : mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!ring || memory == MAP_FAILED) {
        free(ring);
        if (memory != MAP_FAILED) {
            munmap(memory, mapped);
        }
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a ring of %zu bytes", bytes);
    }
    madvise(memory, mapped, MADV_POPULATE_WRITE);
    *ring = (heap_ring){.memory = memory, .bytes = bytes, .mapped = mapped, .holders = 1};
    heap_of(base)->ring = ring;
    *out = (helio_shm_mapping){.memory = memory, .bytes = bytes, .owner = ring};
    return 0;
}

static int publish(helio_shm_place *base) {
    pthread_mutex_lock(&lock);
    heap_of(base)->has_ring = true;
    atomic_fetch_add_explicit(&generation, 1, memory_order_release);
    for (const heap_place *place = places; place; place = place->next) {
        if (&place->base != base && strcmp(place->name, heap_of(base)->name) == 0) {
            helio_shm_bell_ring(place->base.bell);
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Without the lock, so that `each` may map: it goes by number, and a change between two calls
 * changes the generation too. */
static bool key_of_ring(const heap_place *like, size_t number, helio_shm_key *out) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const heap_place *place = places; place && !found; place = place->next) {
        if (place->has_ring && strcmp(place->name, like->name) == 0 && number-- == 0) {
            *out = place->base.key;
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void list(helio_shm_place *place, void (*each)(void *context, const helio_shm_key *key),
                 void *context) {
    helio_shm_key key;
    for (size_t i = 0; key_of_ring(heap_of(place), i, &key); i++) {
        each(context, &key);
    }
}

static bool map(helio_shm_place *base, const helio_shm_key *key, helio_shm_mapping *out) {
    (void)base;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (heap_place *place = places; place && !found; place = place->next) {
        if (place->has_ring && place->base.key.id == key->id) {
            place->ring->holders++;
            *out = (helio_shm_mapping){
                .memory = place->ring->memory, .bytes = place->ring->bytes, .owner = place->ring};
            found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void unmap(helio_shm_mapping *mapping) {
    heap_ring *ring = mapping->owner;
    if (!mapping->memory) {
        return;
    }
    pthread_mutex_lock(&lock);
    const bool is_last = --ring->holders == 0;
    pthread_mutex_unlock(&lock);
    if (is_last) {
        munmap(ring->memory, ring->mapped);
        free(ring);
    }
    mapping->memory = NULL;
}

static void clear(helio_shm_place *place, const helio_shm_key *key) {
    (void)place, (void)key; /* what is in the process dies with it */
}

static int find_bell(helio_shm_place *base, const helio_shm_key *key) {
    (void)base;
    int bell = -1;
    pthread_mutex_lock(&lock);
    for (const heap_place *place = places; place; place = place->next) {
        if (place->base.key.id == key->id) {
            bell = dup(place->base.bell);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return bell;
}

static bool is_alive(const helio_process *process) {
    (void)process;
    return true;
}

const helio_shm_place_kind helio_shm_heap = {
    .open = open_place,
    .close = close_place,
    .make = make,
    .publish = publish,
    .withdraw = withdraw,
    .list = list,
    .map = map,
    .unmap = unmap,
    .clear = clear,
    .find_bell = find_bell,
    .is_alive = is_alive,
};
