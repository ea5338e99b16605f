/* Two instances that send to each other over TCP: the data of both directions uses one connection,
 * and their feedback the other (PAIR and CROSS of engine/docs/wire.md).  Time is an argument. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "io/driver.h"
#include "ports.h"
#include "tcp_loopback.h"
#include "wire/frame.h"

/* Both ends of an instance: a receiver at test_port(n), and a transmitter to test_port(to). */
typedef struct both {
    struct helio_tcp_pool *pool;
    helio_channel *rx, *tx;
} both;

static void open_rx(both *end, int n) {
    helio_channel_config config = config_of(HELIO_CHANNEL_RECEIVE, n);
    config.pool = &end->pool;
    end->rx = open_channel(&config);
}

static void open_tx(both *end, int to) {
    helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, to);
    config.pool = &end->pool;
    end->tx = open_channel(&config);
}

/* Sends a packet of `from` until it arrives at `to`, and its answer until it comes back. */
static void exchange(helio_channel *from, helio_channel *to, const char *text) {
    helio_datagram datagram;
    send_all(from, text, strlen(text));
    flush(from);
    CHECK_EQUAL(receive_some(to, &datagram, 1), 1);
    CHECK_EQUAL(datagram.length, strlen(text));
    CHECK_BYTES(datagram.data, text, strlen(text));
    const helio_address source = datagram.source;
    CHECK_EQUAL(to->driver->send(to, &source, "heard", 5, false), 0);
    flush(to);
    CHECK_EQUAL(receive_some(from, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "heard", 5);
}

static void pass_both(both *a, both *b, int steps) {
    helio_datagram none;
    helio_channel *channels[] = {a->rx, a->tx, b->rx, b->tx};
    for (int i = 0; i < steps; i++) {
        for (int k = 0; k < 4; k++) {
            if (channels[k]) {
                step(channels[k]);
                CHECK_EQUAL(receive(channels[k], &none, 1), 0);
            }
        }
    }
}

static void close_both(both *end) {
    if (end->tx) {
        shut(end->tx);
    }
    if (end->rx) {
        shut(end->rx);
    }
    CHECK(end->pool == NULL);
}

static void two_instances_exchange(int n, bool together) {
    both a = {0}, b = {0};
    open_rx(&a, n);
    open_rx(&b, n + 1);
    open_tx(&a, n + 1);
    if (!together) { /* one connection carries data before there is the other */
        pass_both(&a, &b, 20);
        exchange(a.tx, b.rx, "before");
    }
    open_tx(&b, n);
    pass_both(&a, &b, 20);
    for (int i = 0; i < 5; i++) {
        exchange(a.tx, b.rx, "from a");
        exchange(b.tx, a.rx, "from b");
        pass_both(&a, &b, 5);
    }
    CHECK_EQUAL(told.count[HELIO_CHANNEL_DISCONNECTED], 0);
    shut(b.tx); /* one direction ends, the other goes on */
    b.tx = NULL;
    pass_both(&a, &b, 20);
    CHECK_EQUAL(a.rx->counters.connections, 0);
    CHECK_EQUAL(told.count[HELIO_CHANNEL_DISCONNECTED], 1);
    for (int i = 0; i < 5; i++) {
        exchange(a.tx, b.rx, "from a alone");
    }
    CHECK_EQUAL(a.tx->counters.disconnects, 0);
    open_tx(&b, n); /* it comes back, on a connection of its own */
    pass_both(&a, &b, 20);
    exchange(b.tx, a.rx, "from b again");
    exchange(a.tx, b.rx, "from a again");
    shut(b.rx); /* a receiver ends, and another takes its place */
    b.rx = NULL;
    pass_both(&a, &b, 20);
    open_rx(&b, n + 1);
    for (int i = 0; i < 100 && a.tx->counters.connections + b.tx->counters.connections < 2; i++) {
        pass_both(&a, &b, 10);
    }
    exchange(b.tx, a.rx, "from b to the end");
    exchange(a.tx, b.rx, "from a to the end");
    close_both(&a);
    close_both(&b);
}

static void two_instances_use_one_connection_for_data(void) {
    two_instances_exchange(66, true);
    two_instances_exchange(68, false);
}

/* The next frame that is no sign of life; returns its kind. */
static uint8_t next_frame(int fd, uint8_t *body, size_t *length) {
    uint8_t head[HELIO_RUM_HEAD];
    do {
        CHECK_EQUAL(recv(fd, head, sizeof head, MSG_WAITALL), sizeof head);
        *length = (size_t)head[2] << 8 | head[3];
        CHECK(*length <= 256);
        if (*length > 0) {
            CHECK_EQUAL(recv(fd, body, *length, MSG_WAITALL), *length);
        }
    } while (head[0] == HELIO_RUM_KIND_ALIVE);
    return head[0];
}

static void say_frame(int fd, uint8_t kind, const void *body, size_t length) {
    uint8_t frame[256];
    helio_frame_head(frame, kind, length);
    memcpy(frame + HELIO_RUM_HEAD, body, length);
    say(fd, frame, HELIO_RUM_HEAD + length);
}

/* The test is the other instance, with this number: it accepts from the channels and dials them. */
typedef struct partner {
    both end;
    int listener, accepted, dialed;
} partner;

static void step_all(partner *p, int steps) {
    both nobody = {0};
    pass_both(&p->end, &nobody, steps);
}

static void meet_partner(partner *p, int n, uint64_t instance) {
    *p = (partner){.listener = raw_server(n + 1)};
    open_rx(&p->end, n);
    open_tx(&p->end, n + 1);
    step_all(p, 2);
    p->accepted = accept(p->listener, NULL, NULL);
    p->dialed = raw_client(n);
    const struct timeval patience = {.tv_sec = 5};
    const int on = 1, fds[] = {p->accepted, p->dialed};
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    helio_hello hello = hello_of(HELIO_RUM_ROLE_RECEIVE);
    hello.instance = instance;
    say_hello(p->accepted, &hello);
    hello.role = HELIO_RUM_ROLE_TRANSMIT;
    say_hello(p->dialed, &hello);
    step_all(p, 10);
    uint8_t body[256];
    size_t length;
    CHECK_EQUAL(next_frame(p->accepted, body, &length), HELIO_RUM_KIND_HELLO);
    CHECK_EQUAL(next_frame(p->dialed, body, &length), HELIO_RUM_KIND_HELLO);
}

static void leave_partner(partner *p) {
    close(p->accepted);
    close(p->dialed);
    close(p->listener);
    close_both(&p->end);
}

static uint16_t port_of(int fd, bool is_remote) {
    struct sockaddr_in at;
    socklen_t length = sizeof at;
    CHECK_EQUAL((is_remote ? getpeername : getsockname)(fd, (struct sockaddr *)&at, &length), 0);
    return ntohs(at.sin_port);
}

static void the_smaller_number_offers_and_reads_what_was_exchanged(void) {
    partner p;
    meet_partner(&p, 70, UINT64_MAX);
    uint8_t body[256];
    size_t length;
    CHECK_EQUAL(next_frame(p.dialed, body, &length), HELIO_RUM_KIND_PAIR);
    CHECK_EQUAL(length, HELIO_RUM_PAIR);
    CHECK_EQUAL(body[0] << 8 | body[1], port_of(p.accepted, true));
    CHECK_EQUAL(body[2] << 8 | body[3], test_port(71));
    helio_datagram datagram;
    say_frame(p.dialed, HELIO_RUM_KIND_PACKET, "one", 3);
    say_frame(p.accepted, HELIO_RUM_KIND_CROSS, "", 0);
    say_frame(p.accepted, HELIO_RUM_KIND_PACKET, "two", 3); /* data, ahead of the other mark */
    CHECK_EQUAL(receive_some(p.end.rx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "one", 3);
    step(p.end.tx);
    CHECK_EQUAL(receive(p.end.tx, &datagram, 1), 0);
    CHECK_EQUAL(receive(p.end.rx, &datagram, 1), 0);
    say_frame(p.dialed, HELIO_RUM_KIND_CROSS, "", 0);
    say_frame(p.dialed, HELIO_RUM_KIND_PACKET, "nak", 3);
    CHECK_EQUAL(receive_some(p.end.rx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "two", 3);
    CHECK_EQUAL(datagram.source.port, port_of(p.dialed, false));
    CHECK_EQUAL(receive_some(p.end.tx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "nak", 3);
    send_all(p.end.tx, "data", 4); /* the other direction stays as it was */
    flush(p.end.tx);
    CHECK_EQUAL(next_frame(p.accepted, body, &length), HELIO_RUM_KIND_PACKET);
    CHECK_BYTES(body, "data", 4);
    say_frame(p.dialed, HELIO_RUM_KIND_CROSS, "", 0); /* a second time: not agreed */
    for (int i = 0; i < 20 && p.end.tx->counters.disconnects == 0; i++) {
        step_all(&p, 1);
    }
    CHECK_EQUAL(p.end.tx->counters.disconnects, 1);
    leave_partner(&p);
}

static void say_pair(int fd, unsigned local, unsigned remote, size_t length) {
    const uint8_t ports[] = {(uint8_t)(local >> 8), (uint8_t)local, (uint8_t)(remote >> 8),
                             (uint8_t)remote};
    say_frame(fd, HELIO_RUM_KIND_PAIR, ports, length);
}

static void the_larger_number_crosses_what_it_writes(void) {
    partner p;
    meet_partner(&p, 72, 1);
    helio_datagram datagram;
    uint8_t body[256];
    size_t length;
    const unsigned local = port_of(p.dialed, false), remote = test_port(72);
    say_pair(p.accepted, local, remote, 3);     /* too short */
    say_pair(p.accepted, local + 1, remote, 4); /* no such connection */
    say_pair(p.accepted, local, remote + 1, 4);
    say_pair(p.dialed, local, remote, 4); /* not from the receiver that it dialed */
    step_all(&p, 5);
    send_all(p.end.tx, "one", 3);
    flush(p.end.tx);
    CHECK_EQUAL(next_frame(p.accepted, body, &length), HELIO_RUM_KIND_PACKET);
    say_pair(p.accepted, local, remote, 4);
    step_all(&p, 5);
    CHECK_EQUAL(next_frame(p.accepted, body, &length), HELIO_RUM_KIND_CROSS);
    CHECK_EQUAL(next_frame(p.dialed, body, &length), HELIO_RUM_KIND_CROSS);
    send_all(p.end.tx, "data", 4);
    flush(p.end.tx);
    CHECK_EQUAL(next_frame(p.dialed, body, &length), HELIO_RUM_KIND_PACKET);
    CHECK_BYTES(body, "data", 4);
    say_frame(p.dialed, HELIO_RUM_KIND_PACKET, "here", 4);
    CHECK_EQUAL(receive_some(p.end.rx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "here", 4);
    const helio_address source = datagram.source;
    CHECK_EQUAL(p.end.rx->driver->send(p.end.rx, &source, "nak", 3, false), 0);
    flush(p.end.rx);
    CHECK_EQUAL(next_frame(p.accepted, body, &length), HELIO_RUM_KIND_PACKET);
    CHECK_BYTES(body, "nak", 3);
    leave_partner(&p);
}

static void a_mark_without_an_offer_breaks_the_connection(void) {
    partner p;
    meet_partner(&p, 74, 1); /* the channels' instance never offers to this one */
    say_frame(p.dialed, HELIO_RUM_KIND_CROSS, "", 0);
    step_all(&p, 5);
    CHECK_EQUAL(p.end.rx->counters.disconnects, 1);
    CHECK(strstr(told.why, "without an offer"));
    CHECK_EQUAL(p.end.tx->counters.disconnects, 0);
    leave_partner(&p);
}

int main(void) {
    RUN(two_instances_use_one_connection_for_data);
    RUN(the_smaller_number_offers_and_reads_what_was_exchanged);
    RUN(the_larger_number_crosses_what_it_writes);
    RUN(a_mark_without_an_offer_breaks_the_connection);
    return check_result();
}
