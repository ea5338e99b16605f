/* Tracked streams that have proven nothing: no subscription has matched them, so all of their
 * packets may be forged.
 *
 * An address has a share of them at a time.  Where there is no room for another stream, the oldest
 * is evicted: at once for a stream with a subscribed topic, and for any other after it had
 * HELIO_RX_UNPROVEN_NS to prove itself, so that a flood does not evict stream after stream, which
 * costs work.  Unproven streams have small windows, which together take no more than
 * HELIO_RX_UNPROVEN_BYTES.
 *
 * A stream is proven when a message or an announcement of a subscribed topic was passed on in
 * order.  From then on it is in no list here, and no other stream evicts it. */
#ifndef HELIO_RECEIVE_UNPROVEN_H
#define HELIO_RECEIVE_UNPROVEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/map.h"
#include "base/moment.h"

enum {
    HELIO_RX_UNPROVEN_PART = 8,  /* an address may have this part of max_streams */
    HELIO_RX_UNPROVEN_LEAST = 4, /* or this number of streams, if that is more */
    HELIO_RX_UNPROVEN_BYTES = 8 << 20,
    HELIO_RX_UNPROVEN_DETAILED = 8, /* streams with histograms, half a megabyte each */
};

#define HELIO_RX_UNPROVEN_NS (100 * HELIO_MILLISECOND)

typedef struct helio_rx_stream helio_rx_stream;
typedef struct helio_rx_shared helio_rx_shared;
typedef struct helio_rx_host helio_rx_host;

/* A stream's links in the lists, oldest first. */
typedef struct helio_rx_unproven_place {
    helio_rx_host *host; /* NULL: in no list, because it is proven */
    helio_rx_stream *older, *newer;
    helio_rx_stream *older_of_host, *newer_of_host;
    bool is_detailed; /* it has histograms */
} helio_rx_unproven_place;

typedef struct helio_rx_unproven {
    helio_map hosts; /* address -> helio_rx_host */
    uint64_t seed;
    helio_rx_stream *oldest, *newest;
    uint64_t window_bytes; /* of all their windows */
    uint32_t detailed;     /* streams with histograms */
} helio_rx_unproven;

/* 0 or NOMEM. */
int helio_rx_unproven_init(helio_rx_unproven *unproven, uint64_t seed);
void helio_rx_unproven_fini(helio_rx_unproven *unproven);

/* 0 or NOMEM. */
int helio_rx_unproven_add(helio_rx_unproven *unproven, helio_rx_stream *stream);
/* The stream is proven, or ends.  No effect on a stream in no list. */
void helio_rx_unproven_remove(helio_rx_unproven *unproven, helio_rx_stream *stream);

/* The oldest stream of an address that has reached its share, else NULL. */
helio_rx_stream *helio_rx_unproven_too_many(const helio_rx_unproven *unproven,
                                            const helio_address *address, uint32_t max_streams);

/* ---- refusals ---- */

typedef enum helio_rx_refusal {
    HELIO_RX_REFUSED_OF_ADDRESS,
    HELIO_RX_REFUSED_STREAMS,
    HELIO_RX_REFUSED_MEMORY,
    HELIO_RX_REFUSALS
} helio_rx_refusal;

/* A stream or its record is refused or evicted: counts it, and reports it once per burst. */
void helio_rx_refuse_state(helio_rx_shared *shared, helio_rx_refusal refusal,
                           const helio_address *from, helio_moment moment);

#endif
