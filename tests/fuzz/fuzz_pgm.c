/* Fuzz target for libFuzzer: a datagram, any bytes, at an endpoint and at a stream that are in the middle of things.
 *
 * The input is a sequence of datagrams, each behind its length in two bytes.  Checksums are put right, so that the fuzzer need
 * not find them; a bit of the length says to leave one wrong. */
#include "wire/checksum.h"
#include "wire/pgm.h"
#include "world.h"

enum { LEAVE_CHECKSUM = 0x80 };

static size_t take_some(void *context, const helio_message *messages, size_t count) {
    uint64_t *sum = context;
    for (size_t i = 0; i < count; i++) { /* touch every byte */
        for (size_t k = 0; k < messages[i].length; k++) {
            *sum += ((const uint8_t *)messages[i].data)[k];
        }
    }
    return *sum % 16 == 15 ? count / 2 : count;
}

static void give(world_receiver *receiver, world_source *source, const uint8_t *data, size_t length,
                 bool keep_checksum, helio_moment moment) {
    uint8_t *datagram = malloc(length + 1);
    if (!datagram) {
        return;
    }
    memcpy(datagram, data, length);
    if (length >= HELIO_PGM_HEADER && !keep_checksum) {
        memset(datagram + 6, 0, 2);
        const uint16_t sum = helio_checksum_finish(helio_checksum_part(datagram, length));
        memcpy(datagram + 6, &sum, 2);
    }
    const helio_address from = world_address("10.0.0.1:40001");
    helio_rx_endpoint_on_packet(receiver->endpoint, datagram, length, &from, moment.wall_ns,
                                moment);
    helio_tx_stream_on_packet(source->stream, datagram, length, &from, moment);
    free(datagram);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    world w;
    world_receiver receiver;
    world_source source;
    helio_subscription *subscription;
    helio_tx_topic *topic;
    uint64_t sum = 0;
    helio_rx_endpoint_config rx = world_receiver_config(100);
    helio_tx_stream_config tx = world_source_config(1);
    rx.window_packets = tx.window_packets = 16;
    rx.max_streams = 2;
    world_init(&w, 1, 0);
    world_add_receiver(&w, &receiver, &rx);
    if (helio_rx_endpoint_subscribe(receiver.endpoint, "t",
                                    &(helio_sink){.context = &sum, .on_messages = take_some},
                                    world_now(&w), &subscription) != 0) {
        abort();
    }
    world_add_source(&w, &source, &tx);
    if (helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic) != 0) {
        abort();
    }
    helio_tx_stream_append(source.stream, topic, "abc", 3, 0, world_now(&w));
    helio_tx_stream_flush(source.stream, world_now(&w));
    world_run(&w, HELIO_MILLISECOND);
    while (size >= 2) {
        const size_t wanted = (size_t)(data[0] & ~LEAVE_CHECKSUM) << 8 | data[1];
        const size_t length = wanted < size - 2 ? wanted : size - 2;
        give(&receiver, &source, data + 2, length, data[0] & LEAVE_CHECKSUM, world_now(&w));
        helio_sim_wake(receiver.node);
        helio_sim_wake(source.node);
        world_run(&w, 100 * HELIO_MICROSECOND);
        data += 2 + length;
        size -= 2 + length;
    }
    world_end_receiver(&receiver);
    world_end_source(&source);
    world_fini(&w);
    return 0;
}
