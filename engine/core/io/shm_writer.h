/* The writing side of a ring (shm_ring.h): puts packets in, hears what readers say, sees them come,
 * go and die.  All of it belongs to one thread. */
#ifndef HELIO_IO_SHM_WRITER_H
#define HELIO_IO_SHM_WRITER_H

#include "base/address.h"
#include "io/process.h"
#include "io/shm_ring.h"

/* The first line has all that a packet needs while there is room. */
typedef struct helio_shm_writer {
    helio_shm_ring *ring;
    uint8_t *slots;
    uint64_t mask;
    size_t stride;
    /* Packets ever. */
    uint64_t tail;
    /* Packets before this one may be written without asking. */
    uint64_t claimed;
    uint32_t packet_bytes;
    bool waits;
    bool has_header;
    /* As in the ring. */
    helio_shm_header header;
    /* waits: the slowest reader allows packets before this one. */
    uint64_t limit;
    uint8_t *feedback;
    uint64_t present_seen;
    uint64_t changes_seen;
    /* Slots whose readers were reported. */
    uint64_t known;
} helio_shm_writer;

typedef struct helio_shm_writer_config {
    helio_shm_shape shape;
    helio_process process;
    uint64_t id;
    uint16_t port;
    bool waits;
    int64_t now_ns; /* monotonic */
} helio_shm_writer_config;

/* Makes a ring of zeroed memory of shape.bytes. */
void helio_shm_writer_init(helio_shm_writer *writer, void *memory,
                           const helio_shm_writer_config *config);

/* Puts a packet in, at once visible.  False: it is too long, or the slowest reader has not made
 * room. */
bool helio_shm_writer_put(helio_shm_writer *writer, const void *packet, size_t length);

/* After a run of packets: readers that sleep and are to be woken now, one bit each. */
uint64_t helio_shm_writer_flush(helio_shm_writer *writer);

/* Packets that can be put without any being refused; SIZE_MAX when readers are not waited for. */
size_t helio_shm_writer_room(helio_shm_writer *writer);

/* The next packet of feedback, copied to `to` (HELIO_SHM_FEEDBACK_BYTES); false: there is none. */
bool helio_shm_writer_hear(helio_shm_writer *writer, uint8_t *to, size_t *length,
                           helio_address *from);

/* Readers may have said something. */
static inline bool helio_shm_writer_has_feedback(const helio_shm_writer *writer) {
    return atomic_load_explicit(&writer->ring->bells.feedback, memory_order_acquire) != 0;
}

/* There is feedback, or readers came or went. */
bool helio_shm_writer_has_news(const helio_shm_writer *writer);

typedef enum helio_shm_reader_event {
    HELIO_SHM_READER_CAME,
    HELIO_SHM_READER_LEFT,
    HELIO_SHM_READER_DIED,
} helio_shm_reader_event;

typedef struct helio_shm_reader_news {
    unsigned place;
    uint32_t pid;
    helio_address address;
    helio_shm_reader_event event;
} helio_shm_reader_news;

/* Readers that came, left or, when `is_alive` is given, died since the last call; room for
 * HELIO_SHM_READERS.  Places of those gone are free again.  Cheap when nothing changed. */
size_t helio_shm_writer_look(helio_shm_writer *writer,
                             bool (*is_alive)(const helio_process *process),
                             helio_shm_reader_news *news);

/* The bell that wakes the reader of a slot. */
void helio_shm_writer_bell_of(const helio_shm_writer *writer, unsigned place, uint64_t *id,
                              helio_process *process);

/* Says goodbye. */
void helio_shm_writer_close(helio_shm_writer *writer);

#endif
