/* Fuzz target for libFuzzer: what comes over a TCP connection, any bytes in any portions, at a connection of either role.
 *
 *     clang -std=c11 -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -Iengine/core -Iengine/include \
 *         tests/fuzz/fuzz_tcp.c engine/core/io/tcp_connection.c engine/core/wire/frame.c -o fuzz_tcp
 *
 * The first byte chooses the role and whether a good hello goes ahead; then come portions, each behind its length in one byte. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/moment.h"
#include "io/tcp_connection.h"

enum { PACKET_BYTES = 600, IS_RECEIVER = 1, IS_GREETED = 2 };

static void read_all(helio_tcp_connection *connection, uint64_t *sum) {
    helio_datagram packets[4];
    size_t count;
    while ((count = helio_tcp_read(connection, packets, 4)) > 0) {
        for (size_t i = 0; i < count; i++) { /* touch every byte */
            if (packets[i].length > PACKET_BYTES) {
                abort();
            }
            for (size_t k = 0; k < packets[i].length; k++) {
                *sum += packets[i].data[k];
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int ends[2];
    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) {
        return 0;
    }
    const bool is_receiver = data[0] & IS_RECEIVER;
    helio_tcp_pairing pairing = {.instance = 5};
    const helio_tcp_limits limits = {
        .role = is_receiver ? HELIO_RUM_ROLE_RECEIVE : HELIO_RUM_ROLE_TRANSMIT,
        .packet_bytes = PACKET_BYTES,
        .read_bytes = 256,
        .backlog_bytes = 4096,
        .timeout_ns = HELIO_SECOND,
        .pairing = &pairing,
    };
    helio_tcp_connection *connection =
        helio_tcp_connection_create(ends[0], &(helio_address){.family = 4}, &limits);
    if (!connection) {
        abort();
    }
    if (data[0] & IS_GREETED) {
        const helio_hello hello = {
            .version = HELIO_RUM_VERSION,
            .role = is_receiver ? HELIO_RUM_ROLE_TRANSMIT : HELIO_RUM_ROLE_RECEIVE,
            .max_packet_bytes = PACKET_BYTES,
            .timeout_ms = 1000,
            .instance = 9,
        };
        uint8_t bytes[HELIO_FRAME_HELLO_BYTES];
        helio_hello_encode(bytes, &hello);
        if (write(ends[1], bytes, sizeof bytes) < 0) {
            abort();
        }
    }
    uint64_t sum = 0;
    int64_t now_ns = 1;
    for (data++, size--; size > 1;) {
        const size_t length = data[0] < size - 1 ? data[0] : size - 1;
        if (write(ends[1], data + 1, length) < 0) {
            break; /* it does not read any more */
        }
        read_all(connection, &sum);
        now_ns += HELIO_MILLISECOND;
        helio_tcp_tend(connection, now_ns);
        data += 1 + length;
        size -= 1 + length;
    }
    helio_tcp_connection_destroy(connection);
    close(ends[1]);
    return sum == UINT64_MAX; /* so that it is not left out */
}
