/* The two ends that the tests of the TCP driver connect over loopback: channels of the driver, and
 * bare sockets that send whatever bytes a test wants.  Time is an argument. */
#ifndef HELIO_TESTS_TCP_LOOPBACK_H
#define HELIO_TESTS_TCP_LOOPBACK_H

#include "check.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/moment.h"
#include "io/driver.h"
#include "ports.h"
#include "wire/frame.h"

static const helio_driver *const tcp = &helio_driver_tcp;

enum { PACKET_BYTES = 1472, TIMEOUT_MS = 1000 };

static int64_t now_ns; /* of tend */

/* ---- what a channel tells ---- */

static struct {
    int count[5];
    char why[200]; /* of the last */
} told;

static inline void tell(void *context, helio_channel_event event, const helio_address *peer,
                        const char *why) {
    (void)context, (void)peer;
    told.count[event]++;
    snprintf(told.why, sizeof told.why, "%s", why);
}

/* What earlier channels told does not count for the ones to be opened. */
static inline helio_channel_config config_of(helio_channel_role role, int n) {
    memset(&told, 0, sizeof told);
    helio_channel_config config = {.role = role,
                                   .destinations_count = 1,
                                   .packet_bytes = PACKET_BYTES,
                                   .socket_buffer = 65536,
                                   .timeout_ns = TIMEOUT_MS * HELIO_MILLISECOND,
                                   .backlog_bytes = 100000,
                                   .backlog_limit = 200000,
                                   .seed = 1,
                                   .tell = tell};
    helio_address_parse("127.0.0.1", &config.destinations[0]);
    config.destinations[0].port = test_port(n);
    helio_address_parse("127.0.0.1", &config.interface);
    return config;
}

static inline helio_channel *open_channel(const helio_channel_config *config) {
    helio_channel *channel = NULL;
    if (tcp->open(config, &channel) < 0) {
        CHECK_FAIL("%s", helio_error_sentence());
    }
    return channel;
}

static inline void shut(helio_channel *channel) {
    channel->driver->close(channel);
}

/* A millisecond of the channel's life; waits for the kernel a little. */
static inline void step(helio_channel *channel) {
    now_ns += HELIO_MILLISECOND;
    channel->driver->tend(channel, now_ns);
    struct pollfd ready = {channel->fds[0], POLLIN, 0};
    poll(&ready, 1, 1);
}

static inline size_t receive(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    return channel->driver->receive(channel, datagrams, limit);
}

static inline void send_all(helio_channel *channel, const void *packet, size_t length) {
    CHECK_EQUAL(channel->driver->send(channel, NULL, packet, length, false), 0);
}

static inline void flush(helio_channel *channel) {
    channel->driver->flush(channel);
}

static inline size_t receive_some(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    size_t count = 0;
    for (int i = 0; i < 300 && count == 0; i++) {
        count = receive(channel, datagrams, limit);
        if (count == 0) {
            step(channel);
        }
    }
    return count;
}

/* ---- somebody who is no channel ---- */

static inline struct sockaddr_in at_port(int n) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(test_port(n))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static inline int raw_client(int n) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in at = at_port(n);
    CHECK_EQUAL(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Its receive buffer is small, so that it is soon full when the test does not read. */
static inline int raw_server(int n) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, small = 4096;
    const struct sockaddr_in at = at_port(n);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    CHECK_EQUAL(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQUAL(listen(fd, 4), 0);
    return fd;
}

static inline helio_hello hello_of(uint8_t role) {
    return (helio_hello){.version = HELIO_RUM_VERSION,
                         .role = role,
                         .max_packet_bytes = PACKET_BYTES,
                         .timeout_ms = TIMEOUT_MS};
}

static inline void say(int fd, const void *bytes, size_t length) {
    CHECK_EQUAL(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static inline void say_hello(int fd, const helio_hello *hello) {
    uint8_t bytes[HELIO_FRAME_HELLO_BYTES];
    helio_hello_encode(bytes, hello);
    say(fd, bytes, sizeof bytes);
}

#endif
