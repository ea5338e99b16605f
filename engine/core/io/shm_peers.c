/* The other sides of a channel's rings: their bells, rings that are joined and left, and who comes,
 * goes and dies. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/shm_channel.h"

enum { WHY = 128 }; /* bytes of a reason told */

/* ---- bells ---- */

void helio_shm_forget_bell(helio_shm_other_bell *bell) {
    if (bell->id) {
        close(bell->fd);
        bell->id = 0;
    }
}

void helio_shm_ring_bell(helio_shm_channel *shm, helio_shm_other_bell *bell,
                         const helio_shm_key *key) {
    if (bell->id != key->id) {
        helio_shm_forget_bell(bell);
        const int fd = shm->place->kind->find_bell(shm->place, key);
        if (fd < 0) {
            return; /* it wakes by itself before long */
        }
        *bell = (helio_shm_other_bell){key->id, fd};
    }
    helio_shm_bell_ring(bell->fd);
}

void helio_shm_wake_readers(helio_shm_channel *shm, uint64_t asleep) {
    for (; asleep; asleep &= asleep - 1) {
        const unsigned place = (unsigned)__builtin_ctzll(asleep);
        helio_shm_key key;
        helio_shm_writer_bell_of(&shm->writer, place, &key.id, &key.process);
        helio_shm_ring_bell(shm, &shm->bells[place], &key);
    }
}

/* ---- rings joined and left ---- */

void helio_shm_drop_ring(helio_shm_channel *shm, size_t index) {
    helio_shm_joined_ring *ring = shm->rings[index];
    bool wake;
    helio_shm_reader_leave(&ring->reader, &wake);
    if (wake) {
        helio_shm_ring_bell(shm, &ring->bell, &ring->key);
    }
    helio_shm_forget_bell(&ring->bell);
    shm->place->kind->unmap(&ring->mapping);
    free(ring);
    shm->rings[index] = shm->rings[--shm->rings_count];
    shm->base.counters.connections = shm->rings_count;
}

static bool has_joined(const helio_shm_channel *shm, uint64_t id) {
    for (size_t i = 0; i < shm->rings_count; i++) {
        if (shm->rings[i]->key.id == id) {
            return true;
        }
    }
    return false;
}

static helio_shm_joined take_place(helio_shm_channel *shm, helio_shm_joined_ring *ring,
                                   uint32_t *version) {
    const helio_shm_reader_config config = {
        .process = shm->place->key.process,
        .bell = shm->place->key.id,
        .port = shm->base.local.port,
        .since_ns = shm->opened_ns,
    };
    bool wake;
    const helio_shm_joined joined = helio_shm_reader_join(
        &ring->reader, ring->mapping.memory, ring->mapping.bytes, &config, &wake, version);
    if (wake) {
        helio_shm_ring_bell(shm, &ring->bell, &ring->key);
    }
    return joined;
}

static void refuse(helio_shm_channel *shm, const helio_shm_joined_ring *ring,
                   helio_shm_joined joined, uint32_t version) {
    char why[WHY] = "a ring is damaged";
    shm->has_refused |= joined == HELIO_SHM_FULL;
    if (shm->refused_id == ring->key.id) {
        return;
    }
    shm->refused_id = ring->key.id;
    if (joined == HELIO_SHM_FULL) {
        snprintf(why, sizeof why, "a ring has its maximum of %d readers", HELIO_SHM_READERS);
    } else if (joined == HELIO_SHM_FOREIGN) {
        snprintf(why, sizeof why,
                 "process %u has a ring of format version %u, but this program reads version %d",
                 (unsigned)ring->key.process.pid, (unsigned)version, HELIO_SHM_VERSION);
    }
    helio_shm_tell(shm, HELIO_CHANNEL_DISCONNECTED, NULL, why);
}

void helio_shm_join_ring(void *context, const helio_shm_key *key) {
    helio_shm_channel *shm = context;
    const helio_shm_place_kind *kind = shm->place->kind;
    if (has_joined(shm, key->id) || shm->rings_count == HELIO_SHM_RINGS_MAX) {
        return;
    }
    if (!kind->is_alive(&key->process)) {
        kind->clear(shm->place, key);
        return;
    }
    helio_shm_joined_ring *ring = calloc(1, sizeof *ring);
    if (!ring || !kind->map(shm->place, key, &ring->mapping)) {
        free(ring);
        return;
    }
    ring->key = *key;
    uint32_t version;
    const helio_shm_joined joined = take_place(shm, ring, &version);
    if (joined != HELIO_SHM_JOINED) {
        refuse(shm, ring, joined, version);
        helio_shm_forget_bell(&ring->bell);
        kind->unmap(&ring->mapping);
        free(ring);
        return;
    }
    ring->address = (helio_address){
        .family = 4, .port = (uint16_t)ring->reader.ring->writer.port, .ip = {127, 0, 0, 1}};
    shm->rings[shm->rings_count++] = ring;
    shm->base.waits |= ring->reader.waits;
    shm->base.counters.connections = shm->rings_count;
    shm->base.counters.connects++;
    char why[WHY];
    snprintf(why, sizeof why, "reads the ring of process %u", (unsigned)key->process.pid);
    helio_shm_tell(shm, HELIO_CHANNEL_CONNECTED, &ring->address, why);
}

/* ---- who comes, goes and dies ---- */

/* Another program truncated the ring's file.  Readers have lost it as well: it is withdrawn, and
 * each packet from now on is an error of sending. */
static void give_up_ring(helio_shm_channel *shm) {
    shm->is_cut = true;
    shm->writer.packet_bytes = 0; /* no packet fits */
    shm->place->kind->withdraw(shm->place);
    helio_shm_tell(shm, HELIO_CHANNEL_TRUNCATED, NULL,
                   "the ring was truncated by another program: it is no longer used");
}

void helio_shm_tend_transmit(helio_shm_channel *shm, int64_t now_ns, bool look) {
    static const struct {
        helio_channel_event event;
        const char *how;
    } words[] = {
        [HELIO_SHM_READER_CAME] = {HELIO_CHANNEL_CONNECTED, "reads the ring"},
        [HELIO_SHM_READER_LEFT] = {HELIO_CHANNEL_DISCONNECTED, "no longer reads the ring"},
        [HELIO_SHM_READER_DIED] = {HELIO_CHANNEL_PEER_CRASHED, "has ended without leaving"},
    };
    helio_shm_reader_news news[HELIO_SHM_READERS];
    helio_channel_counters *counters = &shm->base.counters;
    if (!shm->is_cut && helio_mapped_is_cut(shm->mapping.guard)) {
        give_up_ring(shm);
    }
    atomic_store_explicit(&shm->writer.ring->writer.heartbeat_ns, (uint64_t)now_ns,
                          memory_order_relaxed);
    const size_t count =
        helio_shm_writer_look(&shm->writer, look ? shm->place->kind->is_alive : NULL, news);
    for (size_t i = 0; i < count; i++) {
        char why[WHY];
        snprintf(why, sizeof why, "process %u %s", (unsigned)news[i].pid, words[news[i].event].how);
        if (news[i].event == HELIO_SHM_READER_CAME) {
            counters->connects++;
        } else {
            counters->disconnects++;
            helio_shm_forget_bell(&shm->bells[news[i].place]);
        }
        helio_shm_tell(shm, words[news[i].event].event, &news[i].address, why);
    }
    counters->connections = (uint64_t)__builtin_popcountll(shm->writer.known);
}

/* Leaves the ring of a writer that is gone, once all it wrote is read. */
static void end_ring(helio_shm_channel *shm, size_t index, helio_channel_event event,
                     const char *how) {
    const helio_address address = shm->rings[index]->address;
    const helio_shm_key key = shm->rings[index]->key;
    char why[WHY];
    snprintf(why, sizeof why, "process %u %s", (unsigned)key.process.pid, how);
    helio_shm_drop_ring(shm, index);
    if (event == HELIO_CHANNEL_PEER_CRASHED) {
        shm->place->kind->clear(shm->place, &key);
    }
    shm->base.counters.disconnects++;
    helio_shm_tell(shm, event, &address, why);
}

void helio_shm_tend_receive(helio_shm_channel *shm, bool look) {
    if (look && shm->has_refused) {
        shm->generation_seen--; /* perhaps there is a place now */
    }
    if (look && helio_mapped_is_cut(shm->place->generation_guard)) {
        shm->generation_seen--; /* changes are not reported any more */
        if (!shm->is_cut_told) {
            shm->is_cut_told = true;
            helio_shm_tell(shm, HELIO_CHANNEL_TRUNCATED, NULL,
                           "the file generation of the rings was truncated by another program");
        }
    }
    helio_shm_find_rings(shm);
    for (size_t i = shm->rings_count; i-- > 0;) {
        helio_shm_joined_ring *ring = shm->rings[i];
        if (look && !ring->has_died) {
            ring->has_died = !shm->place->kind->is_alive(&ring->key.process);
        }
        const bool is_closed = helio_shm_reader_is_closed(&ring->reader);
        if (helio_mapped_is_cut(ring->mapping.guard)) {
            end_ring(shm, i, HELIO_CHANNEL_TRUNCATED, "has a ring that was truncated");
        } else if (ring->is_damaged) {
            end_ring(shm, i, HELIO_CHANNEL_DISCONNECTED, "has a damaged ring");
        } else if (is_closed && !helio_shm_reader_has_news(&ring->reader)) {
            end_ring(shm, i, HELIO_CHANNEL_DISCONNECTED, "closed its ring");
        } else if (ring->has_died && !helio_shm_reader_has_news(&ring->reader)) {
            end_ring(shm, i, HELIO_CHANNEL_PEER_CRASHED, "has ended without leaving");
        }
    }
}
