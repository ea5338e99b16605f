/* Answering requests for repair: the source's half.
 *
 * A NAK is confirmed at once (NCF), whatever it asks for.  What the history has is queued, each
 * packet at most once, unless its repair left less than linger_ns ago: then it crosses the request.
 * A request seen again within linger_ns is not confirmed again, so that a storm of NAKs does not
 * become a storm of NCFs.
 *
 * Repairs of packets sent long ago, half a window or more, are for receivers that come late: they
 * are not pressing, new data need not wait for them - unless it is about to push them out of a full
 * window.
 *
 * The queue is bounded by the window.  It knows nothing of sockets, threads or clocks. */
#ifndef HELIO_REPAIR_REPAIRER_H
#define HELIO_REPAIR_REPAIRER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "repair/peers.h"
#include "stats/stats.h"
#include "window/txw.h"
#include "wire/pgm.h"

typedef struct helio_repairer {
    helio_txw *txw;
    helio_tx_stream_stats *stats;
    helio_peers peers;
    uint64_t *queue; /* ring of 2 * sequence + is_pressing, by place & txw->mask */
    uint64_t first;
    uint64_t end;
    int64_t linger_ns;
    uint64_t pressing;      /* of those that wait, not for packets sent long ago */
    uint64_t late_requests; /* for packets no longer there or in the oldest quarter of the window */
} helio_repairer;

typedef struct helio_repairer_config {
    helio_stats *stats;
    const char *instance; /* labels */
    const char *stream;
    uint32_t max_peers;
    int64_t linger_ns;
} helio_repairer_config;

/* txw and stats are the stream's and outlive it.  0 or NOMEM; free with helio_repairer_fini. */
int helio_repairer_init(helio_repairer *repairer, const helio_repairer_config *config,
                        helio_txw *txw, helio_tx_stream_stats *stats);
void helio_repairer_fini(helio_repairer *repairer, helio_clock clock);

/* Takes in a valid NAK.  True when it is to be confirmed; *naks: sequences it asked for. */
bool helio_repairer_on_nak(helio_repairer *repairer, const helio_pgm_packet *nak,
                           const helio_address *from, helio_clock clock, size_t *naks);
/* The next packet to repair, taken from the queue; false when there is none.  It is counted as
 * sent. */
bool helio_repairer_next(helio_repairer *repairer, helio_clock clock, uint64_t *sequence);

static inline bool helio_repairer_has_work(const helio_repairer *repairer) {
    return repairer->first != repairer->end;
}

#endif
