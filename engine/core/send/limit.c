#include "send/limit.h"

enum {
    CONTROL_BYTES = 2048, /* a dozen of control packets in one moment */
    BURSTS_PER_SECOND = 1000,
};

static uint64_t depth_of(helio_tx_limit *limit, uint64_t rate) {
    const uint64_t least = 2 * limit->packet, flow = rate / BURSTS_PER_SECOND;
    limit->burst = limit->burst_wanted ? limit->burst_wanted : flow > least ? flow : least;
    if (limit->burst > UINT32_MAX) {
        limit->burst = UINT32_MAX;
    }
    limit->reserve = limit->burst / 2 < CONTROL_BYTES ? limit->burst / 2 : CONTROL_BYTES;
    return limit->burst - limit->reserve;
}

void helio_tx_limit_init(helio_tx_limit *limit, uint64_t rate, uint64_t burst, uint64_t packet,
                         int64_t now_ns) {
    *limit = (helio_tx_limit){.burst_wanted = burst, .packet = packet};
    helio_bucket_init(&limit->bucket, rate, depth_of(limit, rate), now_ns);
}

void helio_tx_limit_set_rate(helio_tx_limit *limit, uint64_t rate, int64_t now_ns) {
    helio_bucket_set_rate(&limit->bucket, rate, depth_of(limit, rate), now_ns);
}

void helio_tx_limit_widen(helio_tx_limit *limit, uint64_t packet, int64_t now_ns) {
    if (packet <= limit->packet) {
        return;
    }
    limit->packet = packet;
    helio_tx_limit_set_rate(limit, limit->bucket.rate, now_ns);
}
