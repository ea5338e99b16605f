/* The layout of a ring in shared memory; docs/ring.md describes it for other programs.
 *
 * One writer, many readers.  Packet p, counted from 0, is in slot p modulo the number of slots.
 * Each slot begins with one word, p + 1 and the packet's length: the writer stores it once, after
 * the packet.  The word shares a cache line with the first 56 bytes, so a reader that waits on it
 * gets them with it.
 *
 * Before the writer uses slots again it claims them, several at a time: `claimed` is the end of the
 * packets that it has written or may be writing.  A reader that copied packet p looks at `claimed`
 * afterwards; beyond p + slots the copy may be torn and is discarded.  So no store but those of the
 * packet and its word goes to the line a reader polls.
 *
 * Nearly all packets of a ring begin with the same 16 bytes of a PGM header, but for the length in
 * the last two.  These are stored once, in `header`; a packet without them is `short`.
 *
 * Readers register so that they can be woken, missed when their process dies, and heard: each has a
 * small ring of its own back to the writer for what receivers say.  Words on one cache line have
 * one writer, but for the bells, which readers set with atomic operations when something is rare
 * anyway.
 *
 * Nothing in the mapping is trusted: the geometry is read once and checked, indexes are masked,
 * lengths compared with the slot before anything is copied. */
#ifndef HELIO_IO_SHM_RING_H
#define HELIO_IO_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/copy.h"
#include "base/endian.h"

#define HELIO_SHM_MAGIC UINT64_C(0x474E49524F494C48) /* "HLIORING" in memory, little-endian */

enum {
    HELIO_SHM_VERSION = 2,
    HELIO_SHM_BYTE_ORDER = 0x01020304,
    HELIO_SHM_READERS = 64,
    HELIO_SHM_FEEDBACK_SLOTS = 32, /* per reader */
    HELIO_SHM_FEEDBACK_BYTES = 512 - 8,
    HELIO_SHM_SLOTS_MIN = 64,
    HELIO_SHM_SLOTS_MAX = 1 << 20,
    HELIO_SHM_PACKET_MAX = 65535,
    HELIO_SHM_SHORT = 1 << 16,   /* in a slot's word; below it is the length */
    HELIO_SHM_SEQUENCE_BIT = 17, /* the sequence has the bits from here on */
    HELIO_SHM_HEADER = 16,       /* bytes that a short packet lacks */
    HELIO_SHM_DATA_HEADER = 24,  /* of PGM data; what follows is the length in the header */
    HELIO_SHM_LINE = 64,
    HELIO_SHM_PAGE = 4096,
};

/* The writer's life. */
enum {
    HELIO_SHM_OPEN = 1,
    HELIO_SHM_CLOSED = 2, /* it said goodbye; what lies in the slots may still be read */
};

/* A reader's place, the low byte of its claim; the rest is the process id. */
enum {
    HELIO_SHM_FREE = 0,
    HELIO_SHM_CLAIMED = 1, /* being filled in */
    HELIO_SHM_READING = 2,
    HELIO_SHM_LEAVING = 3, /* said goodbye; the writer frees the place */
};

/* Written before the ring can be seen, never after. */
typedef struct helio_shm_geometry {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order; /* HELIO_SHM_BYTE_ORDER */
    uint64_t bytes;      /* of the whole mapping */
    uint32_t slots;      /* a power of two */
    uint32_t packet_bytes;
    uint32_t readers;
    uint32_t feedback_slots;
    uint32_t feedback_bytes;
    uint32_t waits;      /* the slowest reader stops the writer */
    uint64_t created_ns; /* monotonic clock of the machine */
    uint64_t id;         /* random; also in the name */
} helio_shm_geometry;

/* Written by the writer. */
typedef struct helio_shm_writer_life {
    uint64_t pid;
    uint64_t start;
    uint64_t port; /* 127.0.0.1 with this port is the stream's address */
    _Atomic uint64_t state;
    _Atomic uint64_t heartbeat_ns; /* monotonic; for people */
    uint64_t reserved[3];
} helio_shm_writer_life;

/* Written by readers, read by the writer once per batch.  Bits: places of readers. */
typedef struct helio_shm_bells {
    _Atomic uint64_t present;  /* they read */
    _Atomic uint64_t asleep;   /* they want to be woken */
    _Atomic uint64_t feedback; /* they said something */
    _Atomic uint64_t changes;  /* counts arrivals and goodbyes */
    _Atomic uint64_t
        sleepers; /* not 0: some reader sleeps now and then, so the writer must fence */
    uint64_t reserved[3];
} helio_shm_bells;

typedef struct helio_shm_reader_place {
    _Alignas(64) _Atomic uint64_t claim; /* pid << 8 | state */
    uint64_t start;
    uint64_t bell;                          /* id of what wakes it */
    uint64_t port;                          /* of its address */
    _Alignas(64) _Atomic uint64_t position; /* next packet it reads, while the writer waits */
    _Alignas(64) _Atomic uint64_t said;     /* feedback packets ever; written by the reader */
    _Alignas(64) _Atomic uint64_t heard; /* those the writer is done with; written by the writer */
} helio_shm_reader_place;

typedef struct helio_shm_ring {
    _Alignas(64) helio_shm_geometry geometry;
    _Alignas(64) helio_shm_writer_life writer;
    _Alignas(64) _Atomic uint64_t claimed; /* written by the writer, once per share of the ring */
    _Alignas(64) helio_shm_bells bells;
    _Alignas(64) _Atomic uint64_t writer_sleeps;   /* written by the writer */
    _Alignas(64) uint8_t header[HELIO_SHM_HEADER]; /* written before the first short packet */
    _Alignas(64) uint64_t reserved[16];
    helio_shm_reader_place readers[HELIO_SHM_READERS];
} helio_shm_ring;

/* Of packets and of feedback. */
typedef struct helio_shm_slot {
    _Atomic uint64_t word; /* sequence, short, length; feedback: length */
    uint8_t data[];
} helio_shm_slot;

_Static_assert(sizeof(_Atomic uint64_t) == 8, "atomic words are plain words");
_Static_assert(offsetof(helio_shm_ring, writer) == 64, "one line for what never changes");
_Static_assert(offsetof(helio_shm_ring, claimed) == 128, "a line of the writer's");
_Static_assert(offsetof(helio_shm_ring, bells) == 192, "a line of the readers'");
_Static_assert(offsetof(helio_shm_ring, writer_sleeps) == 256, "a line of the writer's");
_Static_assert(offsetof(helio_shm_ring, header) == 320, "a line of the writer's");
_Static_assert(offsetof(helio_shm_ring, readers) == 512, "places begin on a line");
_Static_assert(sizeof(helio_shm_reader_place) == 256, "four lines: no two share one");
_Static_assert(offsetof(helio_shm_reader_place, position) == 64, "the reader's");
_Static_assert(offsetof(helio_shm_reader_place, said) == 128, "the reader's");
_Static_assert(offsetof(helio_shm_reader_place, heard) == 192, "the writer's");
_Static_assert(offsetof(helio_shm_slot, data) == 8, "56 bytes of data beside the word");

/* The 16 bytes as two words; the length, in the lower bits of the second, is 0. */
typedef struct helio_shm_header {
    uint64_t words[2];
} helio_shm_header;

static inline helio_shm_header helio_shm_header_of(const uint8_t *packet) {
    return (helio_shm_header){{helio_get64(packet), helio_get64(packet + 8) & ~UINT64_C(0xFFFF)}};
}

/* What a PGM header says of its packet's length. */
static inline uint64_t helio_shm_tsdu_length(size_t length) {
    return (uint16_t)(length - HELIO_SHM_DATA_HEADER);
}

/* Where things are, worked out from two checked numbers and never read again. */
typedef struct helio_shm_shape {
    uint32_t slots;
    uint32_t packet_bytes;
    size_t stride; /* of slots */
    size_t feedback_offset;
    size_t slots_offset;
    size_t bytes;
} helio_shm_shape;

helio_shm_shape helio_shm_shape_of(uint32_t slots, uint32_t packet_bytes);

typedef enum helio_shm_checked {
    HELIO_SHM_VALID,
    HELIO_SHM_OTHER_VERSION,
    HELIO_SHM_INVALID, /* not a ring, or damaged */
} helio_shm_checked;

/* Reads and checks the geometry of a mapping of `bytes`.  *version is that of a ring of another
 * version. */
helio_shm_checked helio_shm_check(const void *mapping, size_t bytes, helio_shm_shape *out,
                                  uint32_t *version);

/* The packets that a writer claims at a time: an overrun reader loses at most as many that still
 * lie in the ring. */
static inline uint64_t helio_shm_share(uint64_t slots) {
    return slots / 8;
}

static inline uint64_t helio_shm_word(uint64_t sequence, size_t length) {
    return sequence << HELIO_SHM_SEQUENCE_BIT | length;
}

/* Of what lies in the slot. */
static inline size_t helio_shm_length(uint64_t word) {
    return (size_t)(word & (HELIO_SHM_SHORT - 1));
}

/* How far the packet of a word is ahead of `position`: 0: it is this one; negative: older, or none
 * yet.  Sequences have 47 bits, so differences are taken modulo 2^47. */
static inline int64_t helio_shm_ahead(uint64_t word, uint64_t position) {
    return (int64_t)(word - helio_shm_word(position + 1, 0)) >> HELIO_SHM_SEQUENCE_BIT;
}

static inline helio_shm_slot *helio_shm_slot_of(uint8_t *slots, size_t stride, uint64_t mask,
                                                uint64_t position) {
    return (helio_shm_slot *)(void *)(slots + (size_t)(position & mask) * stride);
}

/* A reader's feedback slot. */
static inline helio_shm_slot *helio_shm_feedback_slot(uint8_t *feedback, unsigned reader,
                                                      uint64_t position) {
    const size_t index = (size_t)reader * HELIO_SHM_FEEDBACK_SLOTS +
                         (size_t)(position & (HELIO_SHM_FEEDBACK_SLOTS - 1));
    return (helio_shm_slot *)(void *)(feedback +
                                      index * (sizeof(helio_shm_slot) + HELIO_SHM_FEEDBACK_BYTES));
}

/* Copies between private memory and a slot.  The other side may write at the same moment; what was
 * read then is discarded after a look at `claimed`.  The thread sanitizer is shown that
 * this is meant. */
#ifdef __SANITIZE_THREAD__
static inline void helio_shm_copy_in(uint8_t *slot, const uint8_t *from, size_t length) {
    for (size_t i = 0; i < length; i++) {
        __atomic_store_n(&slot[i], from[i], __ATOMIC_RELAXED);
    }
}
static inline void helio_shm_copy_out(uint8_t *to, const uint8_t *slot, size_t length) {
    for (size_t i = 0; i < length; i++) {
        to[i] = __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
    }
}
#else
static inline void helio_shm_copy_in(uint8_t *slot, const void *from, size_t length) {
    helio_copy(slot, from, length);
}
static inline void helio_shm_copy_out(void *to, const uint8_t *slot, size_t length) {
    helio_copy(to, slot, length);
}
#endif

#endif
