/* Transmit window: the packets of one stream kept for repair, from the oldest (trail) to the newest
 * sent (lead).
 *
 * Packets are built in place: `open` gives the memory of the packet after lead, `commit` makes it
 * lead.  When the ring is full, opening a packet drops the oldest, so the window holds at most
 * capacity - 1 packets beside the open one.
 *
 * Invariants: trail <= lead + 1; lead - trail + 1 < capacity while a packet is open.
 * All memory is taken by init.  It knows nothing of sockets, threads or clocks. */
#ifndef HELIO_WINDOW_TXW_H
#define HELIO_WINDOW_TXW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct helio_txw_slot {
    uint32_t length;      /* of the packet */
    uint32_t payload_sum; /* partial checksum of its TSDU */
    bool queued;          /* waits for its repair */
    uint32_t asker;       /* who asked first for the repair that waits */
    int64_t repaired_ns;  /* when its last repair was sent; meaningful when repairs > 0 */
    int64_t
        confirmed_ns; /* when a request for it was last confirmed; meaningful when confirms > 0 */
    uint32_t repairs;
    uint32_t confirms;
} helio_txw_slot;

typedef struct helio_txw {
    uint8_t *packets; /* capacity * stride bytes */
    helio_txw_slot *slots;
    uint64_t mask; /* capacity - 1 */
    size_t stride;
    uint64_t trail;
    uint64_t lead;
    uint64_t bytes; /* of the packets from trail to lead */
} helio_txw;

/* capacity: a power of two.  first: number of the first packet.  0 or NOMEM; free with
 * helio_txw_fini. */
int helio_txw_init(helio_txw *txw, size_t capacity, size_t packet_bytes, uint64_t first);
void helio_txw_fini(helio_txw *txw);
/* Bytes of memory held. */
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
/* Of a packet the window has, or of the open one. */
static inline uint8_t *helio_txw_packet(const helio_txw *txw, uint64_t sequence) {
    return txw->packets + (sequence & txw->mask) * txw->stride;
}
static inline helio_txw_slot *helio_txw_slot_of(const helio_txw *txw, uint64_t sequence) {
    return &txw->slots[sequence & txw->mask];
}
/* Packets that can be committed before the memory of this one is used again. */
static inline uint64_t helio_txw_lifetime(const helio_txw *txw, uint64_t sequence) {
    return sequence + txw->mask - txw->lead;
}

/* Memory for the packet after lead; drops the oldest packet when there is no room.  Opening twice
 * gives the same memory. */
uint8_t *helio_txw_open(helio_txw *txw);
/* The open packet is complete. */
void helio_txw_commit(helio_txw *txw, size_t length, uint32_t payload_sum);

#endif
