/* Packets of any streams, kept to be sent again: by stream and sequence number, oldest arrival out
 * first, bounded by bytes and age.
 *
 * Unlike the transmit window (txw.h) it has no order and no gaps: a repairer keeps what arrives, as
 * it arrives.  The packets lie one behind the other in one ring of bytes; a map finds them.  The
 * ring is allocated by init and costs no memory before it is written; the map grows with the number
 * of packets.  It knows no sockets, threads or clocks. */
#ifndef HELIO_WINDOW_CACHE_H
#define HELIO_WINDOW_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* `bytes` of the packet follow. */
typedef struct helio_cache_packet {
    uint64_t stream; /* helio_tsi_key */
    int64_t kept_ns;
    uint32_t sequence;
    uint32_t bytes;  /* 0: the rest of the ring was too short for a packet */
    uint32_t stride; /* to the next packet in the ring */
    uint32_t reserved;
} helio_cache_packet;

typedef struct helio_cache {
    uint8_t *ring;
    uint64_t capacity;
    uint64_t first, end; /* of the packets; counted on, not wrapped */
    int64_t age_ns;
    uint64_t packets;
    uint64_t bytes; /* of the packets, without what lies between them */
    helio_map by_number;
} helio_cache;

/* `capacity`: bytes of the ring, rounded up.  `age_ns`: packets are kept for at most as long.  0 or
 * NOMEM; free with helio_cache_fini. */
int helio_cache_init(helio_cache *cache, uint64_t capacity, int64_t age_ns);
void helio_cache_fini(helio_cache *cache);

/* Keeps a copy of a packet of at least one byte and returns the copy, which the caller may change.
 * NULL: it is kept already, it is longer than the ring, or there is no memory. */
uint8_t *helio_cache_add(helio_cache *cache, uint64_t stream, uint32_t sequence, const void *packet,
                         size_t bytes, int64_t now_ns);
/* NULL: it is not kept, or too old. */
const helio_cache_packet *helio_cache_find(const helio_cache *cache, uint64_t stream,
                                           uint32_t sequence, int64_t now_ns);
/* Drops packets that are too old. */
void helio_cache_expire(helio_cache *cache, int64_t now_ns);

static inline const uint8_t *helio_cache_data(const helio_cache_packet *packet) {
    return (const uint8_t *)(packet + 1);
}

#endif
