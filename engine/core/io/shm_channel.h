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

/* A ring being read; the members that a packet needs come first. */
typedef struct helio_shm_joined_ring {
    helio_shm_reader reader;
    /* The writer's. */
    helio_address address;
    uint64_t overruns_counted;
    bool is_damaged;
    bool has_died;
    helio_shm_mapping mapping;
    helio_shm_key key;
    /* The writer's. */
    helio_shm_other_bell bell;
} helio_shm_joined_ring;

/* The members that a packet or a look for one needs come first. */
typedef struct helio_shm_channel {
    helio_channel base;
    helio_channel_role role;
    /* Transmit: a packet waited in vain, and none has found room since. */
    bool has_waited;
    uint8_t *area;

    /* Receive. */
    /* The ring that the next receive begins with. */
    size_t first;
    /* The place's. */
    const _Atomic uint64_t *generation;
    uint64_t generation_seen;
    size_t rings_count;
    helio_shm_joined_ring *rings[HELIO_SHM_RINGS_MAX];
    double inject_loss;
    helio_random random;
    /* The last reported ring that could not be joined. */
    uint64_t refused_id;
    /* It is to be tried again. */
    bool has_refused;
    /* It was reported that the file generation was truncated. */
    bool is_cut_told;
    int64_t opened_ns;

    /* Transmit. */
    helio_shm_writer writer;
    helio_shm_mapping mapping;
    helio_shm_other_bell bells[HELIO_SHM_READERS];
    /* The ring's file was truncated: nothing is sent any more. */
    bool is_cut;

    helio_shm_place *place;
    int64_t look_due_ns;
    void (*tell)(void *context, helio_channel_event event, const helio_address *peer,
                 const char *why);
    void *context;
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
    return atomic_load_explicit(shm->generation, memory_order_acquire) != shm->generation_seen;
}

/* Looks for new rings when any came or went; true when some were joined. */
static inline bool helio_shm_find_rings(helio_shm_channel *shm) {
    const uint64_t generation = atomic_load_explicit(shm->generation, memory_order_acquire);
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
