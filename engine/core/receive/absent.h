/* Streams that ended without a word of their source - silent, expelled, put out - and may come back.
 * What is kept of one is small: where it would go on, and what each topic expected.  When it comes
 * back what was sent meanwhile is asked for, or reported lost; nothing is passed over in silence.
 *
 * They are kept for as long as there is room.  Bounds: a number of streams and of bytes, in total
 * and of one source address.  When one has to go it is of the address that has too much, or else of
 * all, first the oldest of those that delivered nothing; it is counted (streams_forgotten).
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
    HELIO_RX_ABSENT_SHARE = 4, /* of this part of both is one address's own */
};

typedef struct helio_rx_absent helio_rx_absent;

struct helio_rx_absent {
    helio_tsi tsi;
    helio_address source;
    bool is_exact; /* known by its port, too (receive/binding.h) */
    int64_t ended_ns;
    uint64_t next;       /* the packet it goes on with */
    uint64_t newest_sub; /* serial of the newest subscription there was */
    bool is_proven;      /* it delivered something */
    helio_delivery_past past;
    helio_rx_absent *older, *newer;
    uint32_t count; /* of marks */
    helio_delivery_mark marks[];
};

typedef struct helio_rx_absents {
    helio_map by_tsi;
    helio_rx_absent *oldest, *newest;
    const helio_rx_absent *returning; /* it gives way to none; NULL: there is none such */
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
/* The stream with this TSI from this address, if it is one that was followed before and some
 * subscription of then is left; NULL: it is new. */
const helio_rx_absent *helio_rx_absents_find(const helio_rx_absents *absents, const helio_tsi *tsi,
                                             const helio_address *from,
                                             const helio_subscriptions *subscriptions);
/* It is followed again, or for good over. */
void helio_rx_absents_forget(helio_rx_absents *absents, const helio_tsi *tsi);

/* The source is where this stream was, or beyond: its numbers go on.  `lead`: the newest packet it
 * tells of.  False: it is another life, or so many packets later that nobody can tell (2^31). */
bool helio_rx_absent_goes_on(const helio_rx_absent *absent, uint32_t lead);
/* It goes on, and something was sent meanwhile: a source that ends can still repair it. */
bool helio_rx_absent_misses(const helio_rx_absent *absent, uint32_t lead);

#endif
