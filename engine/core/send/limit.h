/* A rate, and the envelope it promises (RFC 3208, 5.1.2): of any packets i..j that leave,
 *
 *     bytes(i..j) <= burst + rate * (t_j - t_i) + one packet of the largest
 *
 * whatever they are: data, repairs, and what must not wait.  It is a bucket (base/bucket.h) whose
 * credit is kept in
 *
 *     -(packet + reserve) <= credit <= burst - reserve
 *
 * and the envelope follows, for between two moments at most the difference and what grew is spent.
 * The upper bound is the bucket's depth.  The lower one: data and repairs leave at a credit of 0 or
 * more, one at a time, and owe one packet then; control packets leave at any credit down to the
 * bound, so the reserve is theirs.  `open` is what a packet being filled will cost: nobody else
 * spends it.
 *
 * It knows no clock; callers pass monotonic times. */
#ifndef HELIO_SEND_LIMIT_H
#define HELIO_SEND_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"

typedef struct helio_tx_limit {
    helio_bucket bucket;
    uint64_t burst_wanted; /* 0: whatever fits the rate */
    uint64_t packet;       /* bytes of the largest, to all its destinations */
    uint64_t burst;
    uint64_t reserve;
    uint64_t open;
} helio_tx_limit;

/* rate 0: no limit.  burst 0: twice the packet, or what leaves in a millisecond if that is more. */
void helio_tx_limit_init(helio_tx_limit *limit, uint64_t rate, uint64_t burst, uint64_t packet,
                         int64_t now_ns);
/* Another rate; debt stays. */
void helio_tx_limit_set_rate(helio_tx_limit *limit, uint64_t rate, int64_t now_ns);
/* Packets may be as long as that, too. */
void helio_tx_limit_widen(helio_tx_limit *limit, uint64_t packet, int64_t now_ns);

static inline bool helio_tx_limit_is_on(const helio_tx_limit *limit) {
    return limit->bucket.rate != 0;
}

/* Whether a packet of data, or a repair, may leave now. */
static inline bool helio_tx_limit_takes(helio_tx_limit *limit, int64_t now_ns) {
    return helio_bucket_has(&limit->bucket, (int64_t)limit->open, now_ns);
}

/* Whether a control packet may. */
static inline bool helio_tx_limit_takes_control(helio_tx_limit *limit, uint64_t bytes,
                                                int64_t now_ns) {
    const int64_t floor = -(int64_t)(limit->packet + limit->reserve);
    return helio_bucket_has(&limit->bucket, floor + (int64_t)(limit->open + bytes), now_ns);
}

#endif
