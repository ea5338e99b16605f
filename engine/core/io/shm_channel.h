/* A channel of the drivers shm and inproc, and what their files share: shm.c (life, packets,
 * sleep), shm_peers.c (the other sides of the rings). */
#ifndef HELIO_IO_SHM_CHANNEL_H
#define HELIO_IO_SHM_CHANNEL_H

#include "base/random.h"
#include "io/driver.h"
#include "io/shm_place.h"
#include "io/shm_reader.h"
#include "io/shm_writer.h"

enum { HELIO_SHM_RINGS_MAX = 256 }; /* a receive channel reads */

/* A bell of somebody else's, looked up when first needed. */
typedef struct helio_shm_other_bell {
    uint64_t id; /* 0: none */
    int fd;
} helio_shm_other_bell;

/* A ring being read. */
typedef struct helio_shm_joined_ring {
    helio_shm_reader reader;
    helio_shm_mapping mapping;
    helio_shm_key key;
    helio_address address;     /* the writer's */
    helio_shm_other_bell bell; /* the writer's */
    uint64_t overruns_counted;
    bool has_died;
    bool is_damaged;
} helio_shm_joined_ring;

typedef struct helio_shm_channel {
    helio_channel base;
    helio_channel_role role;
    void (*tell)(void *context, helio_channel_event event, const helio_address *peer,
                 const char *why);
    void *context;
    double inject_loss;
    helio_random random;
    helio_shm_place *place;
    uint8_t *area;
    int64_t look_due_ns;

    /* Transmit. */
    helio_shm_writer writer;
    helio_shm_mapping mapping;
    helio_shm_other_bell bells[HELIO_SHM_READERS];
    bool has_waited; /* in vain, since the last packet that found room */
    bool is_cut;     /* the ring's file was truncated: nothing is sent any more */

    /* Receive. */
    helio_shm_joined_ring *rings[HELIO_SHM_RINGS_MAX];
    size_t rings_count;
    size_t first; /* ring the next receive begins with */
    uint64_t generation_seen;
    uint64_t refused_id; /* the last reported ring that could not be joined */
    bool has_refused;    /* it is to be tried again */
    bool is_cut_told;    /* that the file generation was truncated */
    int64_t opened_ns;
} helio_shm_channel;

static inline void helio_shm_tell(helio_shm_channel *shm, helio_channel_event event,
                                  const helio_address *peer, const char *why) {
    if (shm->tell) {
        shm->tell(shm->context, event, peer, why);
    }
}

/* ---- shm_peers.c ---- */

void helio_shm_forget_bell(helio_shm_other_bell *bell);
void helio_shm_ring_bell(helio_shm_channel *shm, helio_shm_other_bell *bell,
                         const helio_shm_key *key);
/* `asleep`: the places of readers that sleep, as bits. */
void helio_shm_wake_readers(helio_shm_channel *shm, uint64_t asleep);

/* Joins a ring under the name of the channel, `context`, unless it has. */
void helio_shm_join_ring(void *context, const helio_shm_key *key);
void helio_shm_drop_ring(helio_shm_channel *shm, size_t index);
/* Rings came or went since the last look for them. */
static inline bool helio_shm_has_new_rings(const helio_shm_channel *shm) {
    return atomic_load_explicit(shm->place->generation, memory_order_acquire) !=
           shm->generation_seen;
}

/* Looks for new rings when any came or went; true when some were joined. */
static inline bool helio_shm_find_rings(helio_shm_channel *shm) {
    const uint64_t generation = atomic_load_explicit(shm->place->generation, memory_order_acquire);
    const uint64_t connects = shm->base.counters.connects;
    if (generation != shm->generation_seen) {
        shm->generation_seen = generation;
        shm->has_refused = false;
        shm->place->kind->list(shm->place, helio_shm_join_ring, shm);
    }
    return shm->base.counters.connects != connects;
}

/* Sees who came, went or died; `look`: whether also those live that say nothing. */
void helio_shm_tend_transmit(helio_shm_channel *shm, int64_t now_ns, bool look);
void helio_shm_tend_receive(helio_shm_channel *shm, bool look);

#endif
