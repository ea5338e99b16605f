/* Streams that ended without a word of their source (silent, expelled, evicted) and may come back.
 *
 * Little is kept of each: where it would continue, and which number each topic expected.  When the
 * stream comes back, packets sent in between are requested or reported lost; none is skipped
 * silently.
 *
 * Streams are kept while there is room.  Bounds: a number of streams and of bytes, in total and per
 * source address.  When one has to go, it is one of the address that has too much; else it is, of
 * all, the oldest that delivered nothing, then the oldest.  It is counted (streams_forgotten).
 *
 * The memory is charged to the instance's account.  It knows nothing of sockets, threads or clocks;
 * callers pass times. */
#ifndef HELIO_RECEIVE_ABSENT_H
#define HELIO_RECEIVE_ABSENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/map.h"
#include "base/tsi.h"
#include "receive/delivery.h"
#include "stats/stats.h"

enum {
    HELIO_RX_ABSENT_STREAMS = 2048,
    HELIO_RX_ABSENT_BYTES = 2 << 20,
    HELIO_RX_ABSENT_SHARE = 4, /* one address may have this part of both */
};

typedef struct helio_rx_absent helio_rx_absent;

struct helio_rx_absent {
    helio_tsi tsi;
    helio_address source;
    bool is_exact; /* the port is part of its identity (binding.h) */
    int64_t ended_ns;
    uint64_t next;       /* the packet it continues with */
    uint64_t newest_sub; /* serial of the newest subscription at its end */
    bool is_proven;      /* it delivered something */
    helio_delivery_past past;
    helio_rx_absent *older, *newer;
    uint32_t count; /* of marks */
    helio_delivery_mark marks[];
};

typedef struct helio_rx_absents {
    helio_map by_tsi;
    helio_rx_absent *oldest, *newest;
    const helio_rx_absent *returning; /* protected from eviction; may be NULL */
    uint64_t bytes;
    helio_account *account;
    helio_instance_stats *instance;
} helio_rx_absents;

struct helio_rx_stream;

/* 0 or NOMEM; free with helio_rx_absents_fini. */
int helio_rx_absents_init(helio_rx_absents *absents, helio_account *account,
                          helio_instance_stats *instance);
void helio_rx_absents_fini(helio_rx_absents *absents);

/* The stream ends, and may come back. */
void helio_rx_absents_keep(helio_rx_absents *absents, const struct helio_rx_stream *stream,
                           int64_t now_ns);
/* The absent stream with this TSI from this address, if a subscription of that time still exists.
 * NULL: the stream is new. */
const helio_rx_absent *helio_rx_absents_find(const helio_rx_absents *absents, const helio_tsi *tsi,
                                             const helio_address *from,
                                             const helio_subscriptions *subscriptions);
/* The stream is tracked again, or has ended for good. */
void helio_rx_absents_forget(helio_rx_absents *absents, const helio_tsi *tsi);

/* The source's numbers continue those of this stream.  `lead`: the newest packet it announces.
 * False: it is another life of the source, or 2^31 packets or more later. */
bool helio_rx_absent_goes_on(const helio_rx_absent *absent, uint32_t lead);
/* The stream continues and packets were sent in between: a source that ends can still repair
 * them. */
bool helio_rx_absent_misses(const helio_rx_absent *absent, uint32_t lead);

#endif
