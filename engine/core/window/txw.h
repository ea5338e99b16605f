/* Transmit window: the packets of one stream kept for repair, from the oldest (trail) to the newest
 * sent (lead).
 *
 * A ring of slots describes the packets; the packets themselves, of any length, lie one
 * behind the other in chunks of one arena, so a window of short packets touches little memory
 * however long packets may be.  `open` gives room for a whole packet after lead, to build it there;
 * `commit` makes it lead and keeps what was used.  A packet built elsewhere is copied by `commit_copy`,
 * without a place in the cache: only repairs read it again.
 *
 * Three limits drop the oldest packets: how many, how many bytes, and how old.  None of them drops
 * packets from `floor` on; when that leaves no room, `open` gives none.  The first two can be
 * changed up to those of init; memory that lower limits leave unused can be given back (release).
 *
 * A driver may keep pointers to packets (base/outlet.h): a chunk is filled again only after
 * HELIO_OUTLET_HOLD packets were committed since the last of its packets was dropped.  There are so
 * many chunks that one always can be.
 *
 * Invariants: trail <= lead + 1; the limits hold for the packets from trail to lead and an open
 * one, unless the floor forbids; chunks are left and taken in the order they were filled.  All
 * memory is taken by init.  It knows nothing of sockets, threads or clocks; callers pass times. */
#ifndef HELIO_WINDOW_TXW_H
#define HELIO_WINDOW_TXW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/copy.h"

#define HELIO_TXW_NO_FLOOR UINT64_MAX

enum {
    HELIO_TXW_ALIGNMENT = 16,
    HELIO_TXW_AGED_PER_COMMIT = 4, /* packets dropped for their age while one is committed */
    HELIO_TXW_FETCH_AHEAD = 16384, /* bytes between a packet and what is fetched with it */
    HELIO_TXW_PAST_CACHE_MIN =
        512,             /* bytes of a packet that fetches, or is copied past the cache */
    HELIO_TXW_LINE = 64, /* of the cache */
};

typedef struct helio_txw_slot {
    uint8_t *packet;
    int64_t sent_ns;      /* when it was committed */
    uint64_t end_bytes;   /* of all packets ever committed, up to and with it */
    uint32_t length;      /* of the packet */
    uint32_t payload_sum; /* partial checksum of its TSDU */
    int64_t repaired_ns;  /* when its last repair was sent; meaningful when repairs > 0 */
    int64_t
        confirmed_ns; /* when a request for it was last confirmed; meaningful when confirms > 0 */
    uint32_t repairs;
    uint32_t confirms;
    uint32_t asker; /* who asked first for the repair that waits */
    bool queued;    /* waits for its repair */
} helio_txw_slot;

/* A chunk that was filled at least once. */
typedef struct helio_txw_chunk {
    uint8_t *memory;
    uint64_t first;   /* sequence of its first packet */
    uint64_t left_at; /* lead when its last packet was dropped */
} helio_txw_chunk;

typedef struct helio_txw_config {
    size_t packets;      /* most packets; a power of two */
    size_t packet_bytes; /* of the longest packet */
    size_t bytes;        /* most bytes, each packet counted up to the next multiple of 16; at least
                            4 packets of the longest.  0: no limit beside the number */
    int64_t age_ns;      /* 0: no limit */
    uint64_t first;      /* number of the first packet */
} helio_txw_config;

typedef struct helio_txw {
    helio_txw_slot *slots;
    uint64_t mask; /* slots - 1 */
    uint64_t trail;
    uint64_t lead;
    uint64_t floor;       /* packets from here on are not dropped */
    uint64_t bytes;       /* of the packets from trail to lead */
    uint64_t all_bytes;   /* of all packets ever committed */
    uint64_t taken_bytes; /* the same with what lies between them: what the limit is about */
    uint64_t limit_packets;
    uint64_t limit_bytes;
    int64_t age_ns;
    uint64_t trimmed_for_bytes; /* packets dropped because of the limit of bytes alone */
    uint64_t trimmed_for_age;   /* because they were too old */
    size_t packet_bytes;

    uint8_t *at;  /* where the next packet goes */
    uint8_t *end; /* of its chunk */
    uint8_t *arena;
    size_t chunk_bytes;
    size_t chunks_count;
    helio_txw_chunk *chunks; /* ring, by place & chunks_mask, in the order they were filled */
    uint64_t chunks_mask;
    uint64_t free_first;   /* place of the oldest chunk that holds no packet any more */
    uint64_t filled_first; /* place of the oldest that does */
    uint64_t filled_end;   /* after the chunk being filled */
    uint8_t **fresh;       /* chunks never filled, or given back */
    size_t fresh_count;
    uint64_t max_bytes; /* limit_bytes of init */
} helio_txw;

/* 0 or NOMEM; free with helio_txw_fini. */
int helio_txw_init(helio_txw *txw, const helio_txw_config *config);
void helio_txw_fini(helio_txw *txw);
/* Bytes of memory that window and arena take when filled to the limits of now. */
size_t helio_txw_memory(const helio_txw *txw);

static inline uint64_t helio_txw_count(const helio_txw *txw) {
    return txw->lead + 1 - txw->trail;
}
static inline uint64_t helio_txw_capacity(const helio_txw *txw) {
    return txw->mask + 1;
}

static inline bool helio_txw_has(const helio_txw *txw, uint64_t sequence) {
    return sequence >= txw->trail && sequence <= txw->lead;
}
static inline helio_txw_slot *helio_txw_slot_of(const helio_txw *txw, uint64_t sequence) {
    return &txw->slots[sequence & txw->mask];
}
/* Of a packet the window has. */
static inline uint8_t *helio_txw_packet(const helio_txw *txw, uint64_t sequence) {
    return helio_txw_slot_of(txw, sequence)->packet;
}

/* How far somebody is behind who has all up to `position`. */
typedef struct helio_txw_behind {
    uint64_t packets;
    uint64_t bytes; /* of the packets in the window: a lower bound */
    int64_t
        age_ns; /* since the oldest of these was committed: at least so long; 0: there is none */
} helio_txw_behind;

helio_txw_behind helio_txw_behind_of(const helio_txw *txw, uint64_t position, int64_t now_ns);

/* There is no room for one packet more. */
static inline bool helio_txw_is_full(const helio_txw *txw) {
    return helio_txw_count(txw) >= txw->limit_packets ||
           txw->taken_bytes + txw->packet_bytes > txw->limit_bytes;
}
/* As helio_txw_open, which calls it when packets must be dropped or a chunk is full. */
uint8_t *helio_txw_make_room(helio_txw *txw);
/* Memory for the packet after lead, packet_bytes of it, aligned to 16; drops the oldest packets as
 * the limits want.  NULL when that would drop packets from the floor on.  Opening twice gives the
 * same memory. */
static inline uint8_t *helio_txw_open(helio_txw *txw) {
    const bool has_place = (size_t)(txw->end - txw->at) >= txw->packet_bytes;
    return has_place && !helio_txw_is_full(txw) ? txw->at : helio_txw_make_room(txw);
}
/* The memory open gave, until commit. */
static inline uint8_t *helio_txw_opened(const helio_txw *txw) {
    return txw->at;
}
/* Whether open would give memory. */
bool helio_txw_has_room(const helio_txw *txw);
/* Bytes that a packet counts in the limit. */
static inline size_t helio_txw_taken(const helio_txw_slot *slot) {
    return helio_round_up(slot->length, HELIO_TXW_ALIGNMENT);
}

/* Drops packets that are too old, at most `count` of them. */
void helio_txw_expire(helio_txw *txw, int64_t now_ns, size_t count);

/* Brings the place of a later packet of `bytes` into the cache: a history is larger than the cache, and
 * each line written would wait for memory.  Some lines more are brought, so that the loop takes four
 * at a time.  A place outside the arena has no effect. */
static inline void helio_txw_fetch_ahead(const helio_txw *txw, size_t bytes) {
    const uintptr_t ahead = (uintptr_t)txw->at + HELIO_TXW_FETCH_AHEAD; /* no pointer into it */
    for (size_t i = 0; i < bytes; i += 4 * HELIO_TXW_LINE) {
        __builtin_prefetch((const void *)(ahead + i), 1);
        __builtin_prefetch((const void *)(ahead + i + HELIO_TXW_LINE), 1);
        __builtin_prefetch((const void *)(ahead + i + 2 * HELIO_TXW_LINE), 1);
        __builtin_prefetch((const void *)(ahead + i + 3 * HELIO_TXW_LINE), 1);
    }
}

/* The open packet, whose bytes are in its place, is the newest. */
static inline void helio_txw_keep(helio_txw *txw, size_t length, uint32_t payload_sum,
                                  int64_t now_ns) {
    txw->lead++;
    helio_txw_slot *slot = helio_txw_slot_of(txw, txw->lead);
    *slot = (helio_txw_slot){
        .packet = txw->at,
        .sent_ns = now_ns,
        .end_bytes = txw->all_bytes += length,
        .length = (uint32_t)length,
        .payload_sum = payload_sum,
    };
    const size_t taken = helio_txw_taken(slot);
    txw->at += taken;
    txw->bytes += length;
    txw->taken_bytes += taken;
    if (txw->age_ns) {
        helio_txw_expire(txw, now_ns, HELIO_TXW_AGED_PER_COMMIT);
    }
}

/* The open packet is complete. */
static inline void helio_txw_commit(helio_txw *txw, size_t length, uint32_t payload_sum,
                                    int64_t now_ns) {
    if (length >= HELIO_TXW_PAST_CACHE_MIN) {
        helio_txw_fetch_ahead(txw, length);
    }
    helio_txw_keep(txw, length, payload_sum, now_ns);
}

/* As helio_txw_commit, of a packet that was not built in the memory of open: copies it there.  `packet` is
 * aligned and can be read up to the next multiple of HELIO_TXW_ALIGNMENT. */
static inline void helio_txw_commit_copy(helio_txw *txw, const uint8_t *packet, size_t length,
                                         uint32_t payload_sum, int64_t now_ns) {
    if (length >= HELIO_TXW_PAST_CACHE_MIN) {
        helio_copy_past_cache(txw->at, packet, helio_round_up(length, HELIO_TXW_ALIGNMENT));
    } else {
        memcpy(txw->at, packet, length);
    }
    helio_txw_keep(txw, length, payload_sum, now_ns);
}

/* Other limits, at least 1 packet and 4 packets of the longest, at most those of init.  Drops what
 * they leave no room for. */
void helio_txw_set_limits(helio_txw *txw, uint64_t packets, uint64_t bytes);
/* Gives the memory of chunks without packets back to the system.  No driver may keep pointers:
 * after a flush. */
void helio_txw_release(helio_txw *txw);

#endif
