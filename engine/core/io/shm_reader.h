/* The reading side of a ring (shm_ring.h): takes packets out, notices those it was too slow for,
 * and says things back.  All of it belongs to one thread. */
#ifndef HELIO_IO_SHM_READER_H
#define HELIO_IO_SHM_READER_H

#include "io/process.h"
#include "io/shm_ring.h"

/* The first line has all that a packet needs but its header. */
typedef struct helio_shm_reader {
    helio_shm_ring *ring;
    uint8_t *slots;
    uint64_t mask;
    size_t stride;
    /* The next packet. */
    uint64_t position;
    /* Packets passed over, ever. */
    uint64_t overruns;
    uint32_t packet_bytes;
    uint32_t place;
    /* The writer waits for it. */
    bool waits;
    bool has_header;
    /* Of short packets, once there was one. */
    helio_shm_header header;
    uint8_t *feedback;
} helio_shm_reader;

typedef struct helio_shm_reader_config {
    helio_process process;
    uint64_t bell; /* id of what wakes it */
    uint16_t port;
    int64_t since_ns; /* a ring made later than this is read from its beginning; monotonic */
} helio_shm_reader_config;

typedef enum helio_shm_joined {
    HELIO_SHM_JOINED,
    HELIO_SHM_DAMAGED, /* or not a ring */
    HELIO_SHM_FOREIGN, /* of another version */
    HELIO_SHM_FULL,    /* all places are taken */
} helio_shm_joined;

/* Takes a place at the ring in a mapping of `bytes`; *wake: the writer sleeps; *version: that of a
 * foreign ring. */
helio_shm_joined helio_shm_reader_join(helio_shm_reader *reader, void *mapping, size_t bytes,
                                       const helio_shm_reader_config *config, bool *wake,
                                       uint32_t *version);

typedef enum helio_shm_taken {
    HELIO_SHM_TAKEN,
    HELIO_SHM_NOTHING,
    HELIO_SHM_TOO_SMALL, /* `room` is less than the next packet */
    HELIO_SHM_NONSENSE,  /* what lies there was not written by a writer: read no more of it */
    HELIO_SHM_OVERRUN,   /* not returned: the next look finds what is left */
} helio_shm_taken;

/* Copies the next packet to `to`. */
helio_shm_taken helio_shm_reader_take(helio_shm_reader *reader, uint8_t *to, size_t room,
                                      size_t *length);

/* Shows a writer that waits how far this reader is; after a run of takes. */
static inline void helio_shm_reader_show(helio_shm_reader *reader) {
    if (reader->waits) {
        atomic_store_explicit(&reader->ring->readers[reader->place].position, reader->position,
                              memory_order_release);
    }
}

/* The next packet lies there, or the reader was overrun. */
static inline bool helio_shm_reader_has_news(const helio_shm_reader *reader) {
    const helio_shm_slot *slot =
        helio_shm_slot_of(reader->slots, reader->stride, reader->mask, reader->position);
    return helio_shm_ahead(atomic_load_explicit(&slot->word, memory_order_acquire),
                           reader->position) >= 0;
}

/* Says something to the writer; false: it is too long, or the writer does not keep up.
 * *wake: it sleeps. */
bool helio_shm_reader_say(helio_shm_reader *reader, const void *packet, size_t length, bool *wake);

/* The writer is to wake this one from now on; false: there is news already, or this is the first
 * time and the writer must first learn that it has to look. */
bool helio_shm_reader_sleep(helio_shm_reader *reader);
void helio_shm_reader_rise(helio_shm_reader *reader);

/* The writer has said goodbye, so what lies in the ring is all there will be. */
bool helio_shm_reader_is_closed(const helio_shm_reader *reader);

/* Says goodbye; *wake: the writer sleeps.  The mapping may be released. */
void helio_shm_reader_leave(helio_shm_reader *reader, bool *wake);

#endif
