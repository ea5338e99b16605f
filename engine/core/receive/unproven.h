/* Streams that are followed and have proven nothing: no subscription has met them, so all there is of
 * them may be forged.  An address has a share of them at a time, and where there is no room for
 * another stream the oldest gives way - at once to one that has a topic wanted, and to any other when it
 * had HELIO_RX_UNPROVEN_NS to prove something, so that a flood does not drive them out one by one,
 * which is work.  They have small windows, which together cost no more than
 * HELIO_RX_UNPROVEN_BYTES.
 *
 * A stream is proven when a message or an announcement of a topic subscribed to was passed on in
 * order.  From then on it is in no list here and no other stream puts it out. */
#ifndef HELIO_RECEIVE_UNPROVEN_H
#define HELIO_RECEIVE_UNPROVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/map.h"

enum {
    HELIO_RX_UNPROVEN_PART = 8,  /* an address may have so much of max_streams */
    HELIO_RX_UNPROVEN_LEAST = 4, /* or so many, if that is more */
    HELIO_RX_UNPROVEN_BYTES = 8 << 20,
    HELIO_RX_UNPROVEN_DETAILED = 8, /* so many have histograms: half a megabyte each */
};

#define HELIO_RX_UNPROVEN_NS (100 * HELIO_MILLISECOND)

typedef struct helio_rx_stream helio_rx_stream;
typedef struct helio_rx_shared helio_rx_shared;
typedef struct helio_rx_host helio_rx_host;

/* A stream's places in the lists, oldest first. */
typedef struct helio_rx_unproven_place {
    helio_rx_host *host; /* NULL: it is in none, for it is proven */
    helio_rx_stream *older, *newer;
    helio_rx_stream *older_of_host, *newer_of_host;
    bool is_detailed; /* it has histograms */
} helio_rx_unproven_place;

typedef struct helio_rx_unproven {
    helio_map hosts; /* address -> helio_rx_host */
    uint64_t seed;
    helio_rx_stream *oldest, *newest;
    uint64_t window_bytes; /* of all their windows */
    uint32_t detailed;     /* how many have histograms */
} helio_rx_unproven;

/* 0 or NOMEM. */
int helio_rx_unproven_init(helio_rx_unproven *unproven, uint64_t seed);
void helio_rx_unproven_fini(helio_rx_unproven *unproven);

/* 0 or NOMEM. */
int helio_rx_unproven_add(helio_rx_unproven *unproven, helio_rx_stream *stream);
/* It is proven, or ends.  No effect on one that is not there. */
void helio_rx_unproven_remove(helio_rx_unproven *unproven, helio_rx_stream *stream);

/* The oldest of an address that has as many as it may, else NULL. */
helio_rx_stream *helio_rx_unproven_too_many(const helio_rx_unproven *unproven,
                                            const helio_address *address, uint32_t max_streams);

/* ---- what is refused ---- */

typedef enum helio_rx_refusal {
    HELIO_RX_REFUSED_OF_ADDRESS,
    HELIO_RX_REFUSED_STREAMS,
    HELIO_RX_REFUSED_MEMORY,
    HELIO_RX_REFUSALS
} helio_rx_refusal;

/* A stream or the record of one is refused, or put out: counts it, and tells it once per burst. */
void helio_rx_refuse_state(helio_rx_shared *shared, helio_rx_refusal refusal,
                           const helio_address *from, helio_clock clock);

#endif
