/* Bare payloads: what delivery does on a raw endpoint (docs/wire.md 7). */
#include "receive/delivery_topic.h"

/* The first packet of the stream has the number it has on the wire. */
static uint64_t raw_number(helio_delivery *delivery, uint64_t sequence) {
    if (!delivery->has_raw_base) {
        delivery->has_raw_base = true;
        delivery->raw_base = sequence - (uint32_t)sequence;
    }
    return sequence - delivery->raw_base;
}

/* A bare message, whose packets are those from `number` on. */
static helio_delivery_result deliver_raw(helio_delivery *delivery, uint64_t number,
                                         uint64_t packets, const uint8_t *data, size_t bytes,
                                         const helio_rxw_packet *packet, helio_moment moment) {
    helio_delivery_topic *topic = helio_map_get(&delivery->topics, HELIO_DELIVERY_RAW_ID);
    if (!topic) {
        delivery->messages_filtered++;
        return HELIO_DELIVERY_FILTERED;
    }
    helio_message message = {
        .data = data,
        .length = bytes,
        .number = number,
        .receive_ns = packet->receive_ns,
        .flags = packet->recovered ? HELIO_MESSAGE_RECOVERED : 0,
    };
    bool is_full = false;
    for (; topic; topic = topic->next) {
        if (!helio_delivery_reach(delivery, topic, number, moment)) {
            return HELIO_DELIVERY_FULL;
        }
        if (topic->expected > number) {
            continue; /* it has had it */
        }
        helio_delivery_begin_measuring(delivery, topic, moment);
        message.stream = topic->stream;
        if (helio_delivery_hand_over(delivery, topic, &message, 1, packet) == 0) {
            is_full = true;
            continue;
        }
        topic->expected = number + packets;
        if (topic->unacked.batches) {
            helio_unacked_add(&topic->unacked, delivery->first_sequence, topic->expected);
        }
        helio_delivery_count(delivery, topic, &message, 1, message.length, packets - 1, packet,
                             moment);
    }
    return is_full ? HELIO_DELIVERY_FULL : HELIO_DELIVERY_TAKEN;
}

static helio_delivery_result pass_raw_fragment(helio_delivery *delivery, uint64_t sequence,
                                               const helio_rxw_packet *packet,
                                               helio_moment moment) {
    helio_reassembly *reassembly = &delivery->reassembly;
    if (delivery->ready_sequence != sequence) {
        if (packet->fragment.offset == 0) {
            if (packet->fragment.first != (uint32_t)sequence) {
                return HELIO_DELIVERY_DAMAGED;
            }
            delivery->apdu_number = raw_number(delivery, sequence);
        }
        const helio_delivery_result result =
            helio_delivery_put_together(delivery, sequence, packet);
        if (delivery->ready_sequence != sequence) {
            return result;
        }
    }
    const uint64_t packets = raw_number(delivery, sequence) + 1 - delivery->apdu_number;
    return deliver_raw(delivery, delivery->apdu_number, packets, reassembly->data,
                       reassembly->bytes, packet, moment);
}

helio_delivery_result helio_delivery_pass_raw(helio_delivery *delivery, uint64_t sequence,
                                              const helio_rxw_packet *packet, helio_moment moment) {
    if (packet->is_fragment) {
        return pass_raw_fragment(delivery, sequence, packet, moment);
    }
    helio_reassembly_abort(&delivery->reassembly);
    return deliver_raw(delivery, raw_number(delivery, sequence), 1, packet->tsdu, packet->bytes,
                       packet, moment);
}

void helio_delivery_lose_raw(helio_delivery *delivery, uint64_t sequence, uint64_t count,
                             helio_moment moment) {
    helio_reassembly_abort(&delivery->reassembly);
    helio_delivery_topic *topic = helio_map_get(&delivery->topics, HELIO_DELIVERY_RAW_ID);
    for (; topic; topic = topic->next) {
        if (helio_delivery_reach(delivery, topic, raw_number(delivery, sequence), moment)) {
            helio_delivery_reach(delivery, topic, raw_number(delivery, sequence + count), moment);
        }
    }
}
