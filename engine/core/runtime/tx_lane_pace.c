/* A transmit lane and the rate: the options about it, and the time a long message waits for its
 * next packet. */
#include "base/error.h"
#include "runtime/rx_lane.h"
#include "runtime/tx_lane_parts.h"
#include "wire/pgm.h"

enum {
    RATE_MIN = 10000,
    BELOW_BYTES = 28 + 38, /* IPv4 and UDP; Ethernet: header, checksum, preamble and gap */
    ETHERNET_BYTES = 38,
};

#define NAP_NS HELIO_MILLISECOND           /* longest sleep: rings wake no sleeper */
#define CHORES_NS (50 * HELIO_MILLISECOND) /* to a monitor an engine silent for longer is stuck */

/* ---- rate ---- */

int helio_tx_lane_check_rate(int64_t rate) {
    if (rate == 0 || rate >= RATE_MIN) {
        return 0;
    }
    return helio_fail(
        HELIO_ERR_OPTION,
        "option rate is 0 or at least %d bytes per second, because heartbeats use part of it; "
        "%lld is too small",
        RATE_MIN, (long long)rate);
}

int helio_tx_lane_check_pace(const helio_transmitter_options *options) {
    const int64_t policy = options->rate_policy;
    const int64_t rate = options->rate;
    const int64_t least = options->rate_min;
    const int64_t burst = options->rate_burst;
    const int64_t mtu = options->stream.mtu;
    if (policy == HELIO_RATE_POLICY_STATIC && rate == 0) {
        return helio_fail_plain(HELIO_ERR_OPTION,
                                "option rate_policy=static needs a rate, but rate is 0");
    }
    if (policy == HELIO_RATE_POLICY_NONE && rate > 0) {
        return helio_fail(
            HELIO_ERR_OPTION,
            "option rate=%lld contradicts rate_policy=none: set rate_policy to static or dynamic",
            (long long)rate);
    }
    if (rate > 0 && least > rate) {
        return helio_fail(HELIO_ERR_OPTION, "option rate_min=%lld is above rate=%lld",
                          (long long)least, (long long)rate);
    }
    if (burst > 0 && burst < 2 * mtu) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option rate_burst is 0 or at least twice mtu=%lld; %lld is too small",
                          (long long)mtu, (long long)burst);
    }
    return helio_tx_lane_check_rate(rate);
}

helio_tx_pace_config helio_tx_lane_pace(const helio_transmitter_options *options) {
    return (helio_tx_pace_config){
        .rate = options->rate,
        .burst = options->rate_burst,
        .repair_share = options->repair_share,
        .overhead = BELOW_BYTES,
    };
}

void helio_tx_lane_place_pace(helio_tx_lane *lane, helio_tx_pace_config *pace) {
    const int64_t mtu = lane->base.options.stream.mtu;
    /* Of this family and encapsulation. */
    pace->overhead = (int32_t)mtu - (int32_t)helio_lane_packet_bytes(&lane->base) + ETHERNET_BYTES;
    pace->copies = (uint32_t)lane->base.endpoint.addresses_count;
    pace->share = &lane->base.instance->rate;
}

/* ---- waiting ---- */

/* Other streams of the engine do not wait for this message. */
static void work_others(helio_instance *instance, helio_moment moment) {
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        if (!lane->is_waiting) {
            helio_tx_lane_receive(lane, moment);
            helio_tx_lane_work(lane, moment);
        }
    }
}

static void do_chores(helio_tx_lane *lane, helio_moment moment) {
    helio_instance *instance = lane->base.instance;
    if (moment.now_ns < lane->chores_due_ns) {
        return;
    }
    lane->chores_due_ns = moment.now_ns + CHORES_NS;
    helio_stats_heartbeat(instance->stats, moment.wall_ns);
    helio_tx_lane_note_wait(lane, helio_tx_stream_pace(lane->stream)->wait, moment.now_ns);
    helio_tx_lane_tell_congestion(lane, moment);
    for (helio_rx_lane *rx = instance->rx_lanes; rx; rx = rx->next) {
        helio_rx_lane_refresh(rx, moment);
    }
}

static void nap(helio_instance *instance, int64_t until_ns) {
    const int64_t now_ns = helio_monotonic_ns();
    const int64_t latest_ns = now_ns + NAP_NS;
    if (until_ns > now_ns && helio_idle_should_sleep(&instance->idle, now_ns)) {
        helio_idle_sleep(&instance->idle, now_ns, until_ns < latest_ns ? until_ns : latest_ns);
    }
}

helio_moment helio_tx_lane_wait(void *context, int64_t until_ns) {
    helio_tx_lane *lane = context;
    helio_instance *instance = lane->base.instance;
    helio_tx_lane_flush_channel(lane);
    helio_tx_lane_show(lane, helio_tx_stream_pace(lane->stream)->wait);
    lane->is_waiting = true;
    instance->waits_within++;
    helio_moment moment = helio_clock_read(&instance->clock);
    const int64_t latest_ns = moment.now_ns + NAP_NS; /* then the stream looks again */
    do {
        nap(instance, until_ns < latest_ns ? until_ns : latest_ns);
        moment = helio_clock_read(&instance->clock);
        helio_tx_lane_receive(lane, moment);
        helio_tx_lane_poll_stream(lane, moment);
        helio_tx_lane_flush_channel(lane);
        helio_lane_tend(&lane->base, moment);
        work_others(instance, moment);
        helio_rx_lanes_work_amid_send(instance, moment);
        do_chores(lane, moment);
    } while (moment.now_ns < until_ns && moment.now_ns < latest_ns);
    helio_idle_reset(&instance->idle);
    instance->waits_within--;
    lane->is_waiting = false;
    return moment;
}
