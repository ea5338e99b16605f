/* The stages of the latency of messages at their receiver, up to the hand-over (docs/latency.md).
 *
 *     submit ....... closed ........ kernel ..... taken up ..... handed over
 *        batch, pace     network       socket        order           what follows is the sink's
 *                        \- recovery, of a recovered packet -/
 *
 * The last three moments are on this host's clock; the first two are stamps of the source's, so
 * what is measured against them carries the clocks' offset.  Each message of a sampled packet
 * counts once in each stage that its packet went through, with the packet's time. */
#include "receive/delivery_topic.h"

enum { JITTER_SHIFT = 4 }; /* RFC 3550: a packet counts a sixteenth */

void helio_delivery_draw(helio_delivery *delivery, helio_delivery_topic *topic) {
    topic->is_sampled = helio_sampler_takes(helio_stats_sampler(delivery->shared->stats));
}

/* What is negative is counted by the histogram, apart. */
static void record(const helio_delivery_topic *topic, size_t histogram, int64_t value_ns,
                   uint64_t count) {
    helio_record(topic->object.histogram[histogram], value_ns, count);
}

/* RFC 3550, 6.4.1: the mean of how much the time on the way differs between a packet and the next,
 * so that an offset of the clocks falls out. */
static void follow_jitter(helio_delivery_topic *topic, int64_t transit_ns) {
    const int64_t change_ns = transit_ns - topic->transit_ns;
    if (topic->has_transit) {
        topic->jitter_16 += (uint64_t)(change_ns < 0 ? -change_ns : change_ns);
        topic->jitter_16 -= (topic->jitter_16 + (1 << (JITTER_SHIFT - 1))) >> JITTER_SHIFT;
        helio_set(&helio_delivery_stats(topic)->interarrival_jitter,
                  topic->jitter_16 >> JITTER_SHIFT);
    }
    topic->has_transit = true;
    topic->transit_ns = transit_ns;
}

/* From the packet's closing until it was taken up. */
static void measure_way(const helio_delivery *delivery, helio_delivery_topic *topic, uint64_t count,
                        const helio_rxw_packet *packet, bool is_recovered,
                        int64_t arrival_wall_ns) {
    const int64_t closed_ns = delivery->closed_ns;
    if (is_recovered) {
        if (closed_ns) {
            record(topic, HELIO_RECEIVER_RECOVERY_LATENCY, arrival_wall_ns - closed_ns, count);
        }
        return;
    }
    const int64_t reached_ns = packet->kernel_ns ? packet->kernel_ns : arrival_wall_ns;
    if (packet->kernel_ns) {
        record(topic, HELIO_RECEIVER_SOCKET_LATENCY, arrival_wall_ns - packet->kernel_ns, count);
    }
    if (closed_ns) {
        record(topic, HELIO_RECEIVER_NETWORK_LATENCY, reached_ns - closed_ns, count);
        if (!packet->is_fragment) {
            follow_jitter(topic, reached_ns - closed_ns);
        }
    }
}

/* Against the submit time, and the intended one when the source told it. */
static void measure_total(const helio_delivery *delivery, helio_delivery_topic *topic,
                          int64_t submit_ns, uint64_t count, bool is_recovered, int64_t wall_ns) {
    const int64_t total_ns = wall_ns - submit_ns;
    if (is_recovered) {
        record(topic, HELIO_RECEIVER_TOTAL_LATENCY_RECOVERED, total_ns, count);
    }
    if (total_ns < 0) {
        helio_count(&helio_delivery_stats(topic)->latency_invalid_samples, count);
        return;
    }
    record(topic, HELIO_RECEIVER_TOTAL_LATENCY, total_ns, count);
    if (delivery->intended_ns) {
        record(topic, HELIO_RECEIVER_INTENDED_LATENCY, wall_ns - delivery->intended_ns, count);
    }
}

void helio_delivery_measure(const helio_delivery *delivery, helio_delivery_topic *topic,
                            int64_t submit_ns, uint64_t count, const helio_rxw_packet *packet,
                            helio_moment moment) {
    helio_receiver_stats *stats = helio_delivery_stats(topic);
    helio_count(&stats->latency_messages, count);
    if (!topic->is_sampled) {
        return;
    }
    helio_count(&stats->latency_samples, count);
    const bool is_recovered =
        packet->recovered || (packet->is_fragment && delivery->reassembly_recovered);
    const int64_t order_ns = moment.now_ns - packet->arrival_ns;
    record(topic, HELIO_RECEIVER_ORDER_LATENCY, order_ns, count);
    if (is_recovered) {
        helio_count(&stats->latency_recovered, count);
        record(topic, HELIO_RECEIVER_ORDER_LATENCY_RECOVERED, order_ns, count);
    }
    if (submit_ns != 0) { /* bare messages carry no stamp */
        measure_total(delivery, topic, submit_ns, count, is_recovered, moment.wall_ns);
    }
    measure_way(delivery, topic, count, packet, is_recovered, moment.wall_ns - order_ns);
}
