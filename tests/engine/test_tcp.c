/* The TCP driver over loopback: packets both ways, and what it does about strangers, silence,
 * broken connections and readers that do not keep up.  Time is an argument. */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "base/random.h"
#include "io/driver.h"
#include "ports.h"
#include "tcp_loopback.h"
#include "wire/frame.h"
#include "wire/pgm.h"

static helio_channel *listen_at(int n) {
    const helio_channel_config config = config_of(HELIO_CHANNEL_RECEIVE, n);
    return open_channel(&config);
}

static helio_channel *transmit_to(int n) {
    const helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, n);
    return open_channel(&config);
}

/* The two ways of a packet to the network. */
static void send_and_flush(helio_channel *channel, const void *packet, size_t length) {
    CHECK_EQUAL(channel->driver->send(channel, NULL, packet, length, true), 0);
    flush(channel);
}

static void send_now(helio_channel *channel, const void *packet, size_t length) {
    CHECK_EQUAL(channel->driver->send_now(channel, packet, length), 0);
}

typedef void way(helio_channel *channel, const void *packet, size_t length);

/* Until each has `connections`. */
static void meet(helio_channel *a, helio_channel *b, uint64_t connections) {
    helio_datagram none;
    for (int i = 0; i < 300; i++) {
        step(a);
        step(b);
        CHECK_EQUAL(receive(a, &none, 1), 0);
        CHECK_EQUAL(receive(b, &none, 1), 0);
        a->driver->tend(a, now_ns);
        b->driver->tend(b, now_ns);
        if (a->counters.connections == connections && b->counters.connections == connections) {
            return;
        }
    }
    CHECK_FAIL("no connection");
}

static size_t frame_of(uint8_t *out, const void *body, size_t length) {
    helio_frame_head(out, HELIO_RUM_KIND_PACKET, length);
    memcpy(out + HELIO_RUM_HEAD, body, length);
    return HELIO_RUM_HEAD + length;
}

/* The channel has closed the connection. */
static bool is_closed(int fd) {
    uint8_t bytes[256];
    ssize_t got;
    struct pollfd ready = {fd, POLLIN, 0};
    do {
        if (poll(&ready, 1, 1000) != 1) {
            return false;
        }
        got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    } while (got > 0);
    return got == 0 || errno == ECONNRESET;
}

/* Lets `ms` pass in steps of a millisecond. */
static void pass(helio_channel *channel, int ms) {
    helio_datagram none;
    for (int i = 0; i < ms; i++) {
        now_ns += HELIO_MILLISECOND;
        CHECK_EQUAL(receive(channel, &none, 1), 0);
        channel->driver->tend(channel, now_ns);
    }
}

/* ---- packets ---- */

static void packets_go_down_and_feedback_comes_back(void) {
    helio_channel *rx = listen_at(0);
    helio_channel *tx = transmit_to(0);
    meet(tx, rx, 1);
    CHECK_EQUAL(told.count[HELIO_CHANNEL_CONNECTED], 2);
    CHECK_EQUAL(tx->counters.connects, 1);
    CHECK_EQUAL(rx->counters.connects, 1);

    CHECK_EQUAL(tx->driver->send(tx, NULL, "stable", 6, true), 0);
    char copied[] = "copied";
    CHECK_EQUAL(tx->driver->send(tx, NULL, copied, 6, false), 0);
    memset(copied, '-', 6);
    send_all(tx, "", 0);
    flush(tx);
    CHECK_EQUAL(tx->counters.packets_sent, 3);
    helio_datagram datagrams[8];
    CHECK_EQUAL(receive_some(rx, datagrams, 8), 3);
    CHECK_EQUAL(datagrams[0].length, 6);
    CHECK_BYTES(datagrams[0].data, "stable", 6);
    CHECK_BYTES(datagrams[1].data, "copied", 6);
    CHECK_EQUAL(datagrams[2].length, 0);

    const helio_address source = datagrams[0].source;
    CHECK_EQUAL(rx->driver->send(rx, &source, "nak", 3, false), 0);
    flush(rx);
    CHECK_EQUAL(receive_some(tx, datagrams, 8), 1);
    CHECK_BYTES(datagrams[0].data, "nak", 3);
    CHECK_EQUAL(datagrams[0].source.port, test_port(0));
    shut(tx);
    shut(rx);
}

/* Data without a checksum, as streams over TCP make it. */
static size_t unsummed_data(uint8_t *out) {
    const helio_pgm_session session = {.tsi.port = 1, .destination_port = 2};
    memcpy(out + HELIO_PGM_DATA_HEADER, "data", 4);
    return helio_pgm_encode_data(out, &session, 7, 7, NULL, 4, HELIO_PGM_NO_SUM);
}

static void check_sum_for(int n, uint16_t features, bool is_summed, way *hand_over) {
    const int listener = raw_server(n);
    helio_channel *tx = transmit_to(n);
    step(tx);
    const int fd = accept(listener, NULL, NULL);
    helio_hello hello = hello_of(HELIO_RUM_ROLE_RECEIVE);
    hello.features = features;
    say_hello(fd, &hello);
    helio_datagram none;
    for (int i = 0; i < 300 && tx->counters.connects == 0; i++) {
        step(tx);
        CHECK_EQUAL(receive(tx, &none, 1), 0);
    }
    uint8_t packet[64], got[256];
    const size_t length = unsummed_data(packet);
    hand_over(tx, packet, length);
    const size_t wanted = HELIO_FRAME_HELLO_BYTES + HELIO_RUM_HEAD + length;
    CHECK_EQUAL(recv(fd, got, wanted, MSG_WAITALL), wanted);
    const uint8_t *data = got + wanted - length;
    CHECK_EQUAL((data[6] | data[7]) != 0, is_summed);
    CHECK(helio_pgm_has_right_sum(data, length, is_summed));
    CHECK_EQUAL(packet[6] | packet[7], 0);
    shut(tx);
    close(fd);
    close(listener);
}

static void data_has_a_checksum_for_receivers_that_require_one(void) {
    const uint16_t later = 0x8000 | HELIO_RUM_FEATURE_UNSUMMED; /* of a later version */
    check_sum_for(62, 0, true, send_and_flush);
    check_sum_for(63, HELIO_RUM_FEATURE_UNSUMMED, false, send_and_flush);
    check_sum_for(64, later, false, send_and_flush);
    check_sum_for(65, 0, true, send_now);
    check_sum_for(66, HELIO_RUM_FEATURE_UNSUMMED, false, send_now);
}

static void every_byte_arrives_in_order_whatever_the_kernel_takes_at_once(void) {
    enum { TOTAL = 5000 };
    helio_channel *rx = listen_at(1);
    helio_channel *tx = transmit_to(1);
    meet(tx, rx, 1);
    uint8_t packet[PACKET_BYTES];
    int sent = 0, got = 0;
    for (int rounds = 0; got < TOTAL && rounds < 100000; rounds++) {
        for (int i = 0; i < 100 && sent < TOTAL && tx->driver->room(tx) > 0; i++, sent++) {
            memset(packet, sent % 251, sizeof packet);
            memcpy(packet, &sent, sizeof sent);
            const size_t length = 4 + (size_t)sent * 37 % (PACKET_BYTES - 4);
            if (i % 16 == 0) { /* behind none, or behind what is queued */
                send_now(tx, packet, length);
            } else {
                send_all(tx, packet, length);
            }
        }
        flush(tx);
        helio_datagram datagrams[16];
        const size_t count = receive(rx, datagrams, 16);
        for (size_t i = 0; i < count; i++, got++) {
            const size_t length = 4 + (size_t)got * 37 % (PACKET_BYTES - 4);
            CHECK_EQUAL(datagrams[i].length, length);
            CHECK_BYTES(datagrams[i].data, &got, sizeof got);
            CHECK_EQUAL(datagrams[i].data[length - 1],
                        length > 4 ? got % 251 : ((uint8_t *)&got)[3]);
        }
    }
    CHECK_EQUAL(got, TOTAL);
    CHECK_EQUAL(tx->counters.send_errors, 0);
    shut(tx);
    shut(rx);
}

static void frames_may_come_byte_by_byte(void) {
    helio_channel *rx = listen_at(2);
    const int fd = raw_client(2);
    uint8_t bytes[HELIO_FRAME_HELLO_BYTES + 64] = {0};
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    helio_hello_encode(bytes, &hello);
    size_t length = HELIO_FRAME_HELLO_BYTES;
    length += frame_of(bytes + length, "one", 3);
    helio_frame_head(bytes + length, 0x7F, 5); /* not known, and need not be */
    length += HELIO_RUM_HEAD + 5;
    length += frame_of(bytes + length, "two", 3);
    char got[16] = "";
    helio_datagram datagram;
    for (size_t i = 0; i < length; i++) {
        say(fd, bytes + i, 1);
        step(rx);
        if (receive(rx, &datagram, 1)) {
            CHECK_EQUAL(datagram.length, 3);
            strncat(got, (const char *)datagram.data, 3);
        }
    }
    while (strlen(got) < 6 && receive_some(rx, &datagram, 1)) { /* the kernel may be behind */
        strncat(got, (const char *)datagram.data, 3);
    }
    CHECK(strcmp(got, "onetwo") == 0);
    close(fd);
    shut(rx);
}

static void all_destinations_get_everything(void) {
    helio_channel *first = listen_at(3);
    helio_channel *second = listen_at(4);
    helio_channel_config both = config_of(HELIO_CHANNEL_TRANSMIT, 3);
    both.destinations[both.destinations_count] = both.destinations[0];
    both.destinations[both.destinations_count++].port = test_port(4);
    helio_channel *tx = open_channel(&both);
    helio_datagram datagram;
    for (int i = 0; i < 300 && tx->counters.connections < 2; i++) {
        step(tx);
        step(first);
        step(second);
        receive(first, &datagram, 1);
        receive(second, &datagram, 1);
    }
    CHECK_EQUAL(tx->counters.connections, 2);
    send_all(tx, "x", 1);
    flush(tx);
    CHECK_EQUAL(receive_some(first, &datagram, 1), 1);
    CHECK_EQUAL(receive_some(second, &datagram, 1), 1);
    shut(tx);
    shut(first);
    shut(second);
}

static void many_connections_are_read_fairly(void) {
    enum { MANY = 6 };
    helio_channel *rx = listen_at(5);
    int fds[MANY];
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    for (int i = 0; i < MANY; i++) {
        fds[i] = raw_client(5);
        say_hello(fds[i], &hello);
        for (int k = 0; k < 100; k++) {
            uint8_t frame[8];
            const char name = (char)('a' + i);
            say(fds[i], frame, frame_of(frame, &name, 1));
        }
    }
    helio_datagram datagrams[60];
    int got[MANY] = {0};
    for (int i = 0; i < 300 && rx->counters.connections < MANY; i++) {
        step(rx);
        const size_t count = receive(rx, datagrams, 60);
        for (size_t k = 0; k < count; k++) {
            got[datagrams[k].data[0] - 'a']++;
        }
    }
    size_t total = 0;
    for (int i = 0; i < MANY; i++) {
        total += (size_t)got[i];
    }
    for (size_t count; (count = receive_some(rx, datagrams, 60)) > 0; total += count) {
        int in_this[MANY] = {0};
        for (size_t k = 0; k < count; k++) {
            in_this[datagrams[k].data[0] - 'a']++;
            got[datagrams[k].data[0] - 'a']++;
        }
        for (int i = 0; i < MANY; i++) {
            CHECK(in_this[i] <= 20); /* no more than a share */
        }
    }
    CHECK_EQUAL(total, 100 * MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQUAL(got[i], 100);
        close(fds[i]);
    }
    shut(rx);
}

static void streams_share_a_connection_and_hear_what_is_theirs(void) {
    struct helio_tcp_pool *pool = NULL;
    helio_channel *rx = listen_at(6);
    helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, 6);
    config.pool = &pool;
    helio_channel *one = open_channel(&config);
    helio_channel *two = open_channel(&config);
    CHECK(one->local.port != two->local.port);
    meet(one, rx, 1);
    CHECK_EQUAL(two->counters.connections, 0); /* one answers for it */
    send_all(two, "two", 3);
    flush(two);
    helio_datagram datagram;
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);

    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {.tsi.port = two->local.port};
    const size_t length = helio_pgm_encode_spmr(packet, &session);
    const helio_address source = datagram.source;
    rx->driver->send(rx, &source, packet, length, false);
    flush(rx);
    helio_datagram back;
    size_t count = 0;
    for (int i = 0; i < 300 && count == 0; i++) {
        CHECK_EQUAL(receive(one, &back, 1), 0);
        count = receive(two, &back, 1);
    }
    CHECK_EQUAL(count, 1);
    CHECK_EQUAL(back.length, length);

    shut(one);
    two->driver->tend(two, now_ns);
    CHECK_EQUAL(two->counters.connections, 1); /* now it is two's */
    send_all(two, "still", 5);
    flush(two);
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
    shut(two);
    CHECK(pool == NULL);
    shut(rx);
}

/* ---- who is not welcome ---- */

static void refused(int n, const void *bytes, size_t length, const char *why) {
    helio_channel *rx = listen_at(n);
    const int fd = raw_client(n);
    say(fd, bytes, length);
    helio_datagram none;
    for (int i = 0; i < 300 && told.count[HELIO_CHANNEL_REFUSED] == 0; i++) {
        step(rx);
        CHECK_EQUAL(receive(rx, &none, 1), 0);
    }
    if (!strstr(told.why, why)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", told.why, why);
    }
    CHECK_EQUAL(told.count[HELIO_CHANNEL_CONNECTED] + told.count[HELIO_CHANNEL_DISCONNECTED], 0);
    receive(rx, &none, 1);
    CHECK(is_closed(fd));
    close(fd);
    shut(rx);
}

static void refused_hello(int n, const helio_hello *hello, const char *why) {
    uint8_t bytes[HELIO_FRAME_HELLO_BYTES];
    helio_hello_encode(bytes, hello);
    refused(n, bytes, sizeof bytes, why);
}

static void strangers_are_refused_with_a_reason(void) {
    refused(10, "GET / HTTP/1.1\r\n", 16, "does not use this protocol");
    refused(11, "\x81\0\0\x10NONE            ", 20, "does not use this protocol");
    refused(12, "\x81\0\xff\xff", 4, "longer than");
    helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    hello.version = 7;
    refused_hello(13, &hello, "version 7 of the protocol, this side uses version 1");
    hello = hello_of(HELIO_RUM_ROLE_RECEIVE);
    refused_hello(14, &hello, "it is a receiver as well");
    hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    hello.max_packet_bytes = PACKET_BYTES + 1;
    refused_hello(15, &hello, "up to 1473 bytes, here up to 1472; give both sides the same mtu");
}

static void a_stranger_who_says_nothing_is_closed(void) {
    helio_channel *rx = listen_at(16);
    const int fd = raw_client(16);
    pass(rx, TIMEOUT_MS + 10);
    CHECK_EQUAL(told.count[HELIO_CHANNEL_REFUSED], 1);
    CHECK(strstr(told.why, "sent no hello frame"));
    pass(rx, 1);
    CHECK(is_closed(fd));
    close(fd);
    shut(rx);
}

static void connect_some(int n, int *fds, int count, helio_channel *rx) {
    for (int i = 0; i < count; i++) {
        fds[i] = raw_client(n);
        if (i % 8 == 7) {
            step(rx);
        }
    }
    step(rx);
    step(rx);
}

static void close_all(const int *fds, int count) {
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

/* All are of one address. */
static void the_oldest_that_says_nothing_gives_way(void) {
    enum { SILENT = 40, SHARE = 32 };
    int fds[SILENT];
    helio_channel *rx = listen_at(17);
    connect_some(17, fds, SILENT, rx);
    CHECK_EQUAL(rx->counters.refused_of_address, SILENT - SHARE);
    CHECK_EQUAL(rx->counters.refused, 0);
    for (int i = 0; i < SILENT; i++) {
        CHECK_EQUAL(is_closed(fds[i]), i < SILENT - SHARE);
    }
    helio_datagram none;
    const int fd = raw_client(17); /* one of ours is let in, and stays */
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    say_hello(fd, &hello);
    for (int i = 0; i < 300 && rx->counters.connections == 0; i++) {
        step(rx);
        CHECK_EQUAL(receive(rx, &none, 1), 0);
    }
    CHECK_EQUAL(rx->counters.connections, 1);
    int more[SILENT];
    connect_some(17, more, SILENT, rx);
    CHECK_EQUAL(rx->counters.connections, 1);
    CHECK(!is_closed(fd));
    close_all(fds, SILENT);
    close_all(more, SILENT);
    close(fd);
    shut(rx);
}

static void connections_are_paid_for_and_refused_beyond_the_limit(void) {
    enum { OURS = 8 };
    int fds[OURS];
    helio_account account = {.limit_bytes = 1 << 20};
    helio_channel_config config = config_of(HELIO_CHANNEL_RECEIVE, 18);
    config.account = &account;
    helio_channel *rx = open_channel(&config);
    connect_some(18, fds, OURS, rx);
    CHECK(helio_account_used(&account) > 0);
    CHECK(helio_account_used(&account) < OURS * 16384); /* they have said nothing */
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    for (int i = 0; i < OURS; i++) {
        say_hello(fds[i], &hello);
    }
    helio_datagram none;
    for (int i = 0; i < 20; i++) {
        step(rx);
        CHECK_EQUAL(receive(rx, &none, 1), 0);
    }
    CHECK(rx->counters.connections > 0 && rx->counters.connections < OURS);
    CHECK(helio_account_used(&account) <= account.limit_bytes);
    CHECK(account.refusals > 0);
    CHECK(strstr(told.why, "no memory for one more connection"));
    close_all(fds, OURS);
    for (int i = 0; i < 20; i++) {
        step(rx);
        receive(rx, &none, 1);
    }
    CHECK_EQUAL(helio_account_used(&account), 0);
    shut(rx);
}

/* No descriptor is left for what waits: accepting rests, and goes on when there is one. */
static void without_descriptors_accepting_rests(void) {
    helio_channel *rx = listen_at(19);
    const int waiting = raw_client(19), second = raw_client(19);
    struct rlimit usual, none_left;
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &usual), 0);
    none_left = usual;
    none_left.rlim_cur = 3; /* no new one is below */
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    for (int i = 0; i < 90; i++) {
        now_ns += HELIO_MILLISECOND;
        rx->driver->tend(rx, now_ns);
    }
    struct pollfd ready = {rx->fds[0], POLLIN, 0};
    CHECK_EQUAL(poll(&ready, 1, 0), 0); /* it does not wake for what it cannot take */
    CHECK_EQUAL(rx->counters.refused, 1);
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &usual), 0);
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    say_hello(waiting, &hello);
    say_hello(second, &hello);
    helio_datagram none;
    for (int i = 0; i < 300 && rx->counters.connections < 2; i++) {
        step(rx);
        CHECK_EQUAL(receive(rx, &none, 1), 0);
    }
    CHECK_EQUAL(rx->counters.connections, 2);
    /* one that has said nothing gives its own back to a newcomer */
    const int silent = raw_client(19);
    step(rx);
    const int newcomer = raw_client(19);
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    now_ns += HELIO_MILLISECOND;
    rx->driver->tend(rx, now_ns);
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &usual), 0);
    CHECK(is_closed(silent));
    CHECK_EQUAL(rx->counters.connections, 2);
    close(waiting);
    close(second);
    close(silent);
    close(newcomer);
    shut(rx);
}

/* A peer that is ours, and connected. */
static int good_peer(helio_channel *rx, int n) {
    const int fd = raw_client(n);
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    say_hello(fd, &hello);
    helio_datagram none;
    for (int i = 0; i < 300 && rx->counters.connections == 0; i++) {
        step(rx);
        CHECK_EQUAL(receive(rx, &none, 1), 0);
    }
    CHECK_EQUAL(rx->counters.connections, 1);
    return fd;
}

static void broken_by(int n, const void *bytes, size_t length, const char *why) {
    helio_channel *rx = listen_at(n);
    const int fd = good_peer(rx, n);
    uint8_t good[16];
    say(fd, good, frame_of(good, "good", 4));
    say(fd, bytes, length);
    helio_datagram datagram;
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1); /* what came before is good */
    for (int i = 0; i < 300 && told.count[HELIO_CHANNEL_DISCONNECTED] == 0; i++) {
        CHECK_EQUAL(receive(rx, &datagram, 1), 0);
        step(rx);
    }
    if (!strstr(told.why, why)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", told.why, why);
    }
    CHECK_EQUAL(rx->counters.disconnects, 1);
    CHECK_EQUAL(rx->counters.connections, 0);
    close(fd);
    shut(rx);
}

static void nonsense_breaks_the_connection(void) {
    broken_by(20, "\x82\0\xff\xff", 4, "longer than 1472 bytes");
    broken_by(21, "\xfe\0\0\0", 4, "an unknown kind");
    const helio_hello again = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    uint8_t bytes[HELIO_FRAME_HELLO_BYTES];
    helio_hello_encode(bytes, &again);
    broken_by(22, bytes, sizeof bytes, "a second hello frame");
}

static void a_peer_that_stops_in_the_middle_of_a_packet_is_dropped_with_it(void) {
    helio_channel *rx = listen_at(23);
    int fd = good_peer(rx, 23);
    say(fd, "\x82\0\0\x10half", 8);
    pass(rx, TIMEOUT_MS - 10);
    CHECK_EQUAL(rx->counters.connections, 1);
    pass(rx, 20);
    CHECK_EQUAL(rx->counters.connections, 0);
    CHECK(strstr(told.why, "nothing was received for 1 seconds, since it stopped in the middle"));
    close(fd);

    fd = good_peer(rx, 23); /* the next one begins anew */
    uint8_t frame[16];
    say(fd, frame, frame_of(frame, "whole", 5));
    helio_datagram datagram;
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "whole", 5);
    say(fd, "\x82\0\0\x10half", 8);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 300 && rx->counters.connections; i++) {
        CHECK_EQUAL(receive(rx, &datagram, 1), 0);
        step(rx);
    }
    CHECK(strstr(told.why, "closed it in the middle of a packet"));
    close(fd);
    shut(rx);
}

static void a_peer_that_is_only_quiet_stays(void) {
    helio_channel *rx = listen_at(24);
    helio_channel *tx = transmit_to(24);
    meet(tx, rx, 1);
    for (int i = 0; i < 5 * TIMEOUT_MS; i++) { /* nothing is sent, but both say they are there */
        pass(tx, 1);
        rx->driver->tend(rx, now_ns);
        helio_datagram none;
        CHECK_EQUAL(receive(rx, &none, 1), 0);
    }
    CHECK_EQUAL(tx->counters.connections, 1);
    CHECK_EQUAL(rx->counters.connections, 1);
    CHECK_EQUAL(tx->counters.disconnects + rx->counters.disconnects, 0);
    shut(tx);
    shut(rx);
}

static void the_engines_own_absence_is_not_the_peers_silence(void) {
    helio_channel *rx = listen_at(25);
    const int fd = good_peer(rx, 25);
    now_ns += 20 * TIMEOUT_MS * HELIO_MILLISECOND;
    rx->driver->tend(rx, now_ns);
    CHECK_EQUAL(rx->counters.connections, 1);
    pass(rx, TIMEOUT_MS + 10);
    CHECK_EQUAL(rx->counters.connections, 0);
    close(fd);
    shut(rx);
}

/* ---- break and return ---- */

static void a_connection_that_broke_comes_back(void) {
    helio_channel *rx = listen_at(30);
    const helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, 30);
    helio_channel *tx = open_channel(&config);
    const uint16_t stream = tx->local.port;
    meet(tx, rx, 1);
    shut(rx);
    for (int i = 0; i < 300 && tx->counters.connections; i++) {
        step(tx);
    }
    CHECK_EQUAL(tx->counters.disconnects, 1);
    send_all(tx, "lost", 4); /* nobody is there: the history has it */
    flush(tx);
    CHECK_EQUAL(tx->counters.packets_sent, 0);
    CHECK_EQUAL(tx->counters.send_errors, 0);
    for (int i = 0; i < 50; i++) { /* some tries in vain */
        step(tx);
    }
    rx = listen_at(30);
    meet(tx, rx, 1);
    CHECK_EQUAL(tx->counters.connects, 2);
    CHECK_EQUAL(tx->local.port, stream);
    send_all(tx, "back", 4);
    flush(tx);
    helio_datagram datagram;
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "back", 4);
    shut(tx);
    shut(rx);
}

static void tries_become_rarer(void) {
    const int server = raw_server(31);
    helio_channel *tx = transmit_to(31);
    int tries = 0;
    for (int i = 0; i < 10000; i++) { /* ten seconds */
        now_ns += HELIO_MILLISECOND;
        tx->driver->tend(tx, now_ns);
        struct pollfd ready = {server, POLLIN, 0};
        if (poll(&ready, 1, 0) == 1) {
            tries++;
            close(accept(server, NULL, NULL));
        }
    }
    CHECK(tries >= 14 && tries <= 22); /* 10, 20, ... 640 ms, then every second, a fifth less */
    CHECK_EQUAL(tx->counters.connects, 0);
    shut(tx);
    close(server);
}

/* ---- room ---- */

static void the_first_data_waits_for_the_connection_for_a_time(void) {
    helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, 32);
    config.connect_wait_ns = 3600 * HELIO_SECOND;
    helio_channel *patient = open_channel(&config);
    now_ns = 0;
    step(patient);
    CHECK_EQUAL(patient->driver->room(patient), 0);
    helio_channel *rx = listen_at(32);
    meet(patient, rx, 1);
    CHECK(patient->driver->room(patient) > 0);
    shut(rx);
    for (int i = 0; i < 300 && patient->counters.connections; i++) {
        step(patient);
    }
    CHECK(patient->driver->room(patient) > 0); /* only the first */
    shut(patient);

    config.connect_wait_ns = 1; /* over at once */
    helio_channel *hasty = open_channel(&config);
    now_ns = INT64_MAX / 2;
    hasty->driver->tend(hasty, now_ns);
    CHECK(hasty->driver->room(hasty) > 0);
    shut(hasty);
    now_ns = 0;
}

/* Reads `total` frames from a socket and checks each is the next. */
static void read_frames(int fd, helio_channel *tx, uint32_t total) {
    static uint8_t bytes[1 << 20];
    size_t held = 0;
    uint32_t next = 0;
    for (int i = 0; i < 100000 && next < total; i++) {
        flush(tx);
        const ssize_t got = recv(fd, bytes + held, sizeof bytes - held, MSG_DONTWAIT);
        held += got > 0 ? (size_t)got : 0;
        size_t at = 0;
        helio_frame frame;
        while (helio_frame_decode(bytes + at, held - at, PACKET_BYTES, &frame) ==
               HELIO_FRAME_WHOLE) {
            at += HELIO_RUM_HEAD + frame.length;
            if (frame.kind == HELIO_RUM_KIND_PACKET) {
                CHECK_BYTES(frame.body, &next, sizeof next);
                next++;
            }
        }
        memmove(bytes, bytes + at, held - at);
        held -= at;
    }
    CHECK_EQUAL(next, total);
    CHECK_EQUAL(held, 0);
}

static void take_the_room(int n, way *hand_over) {
    const int server = raw_server(n);
    helio_channel *tx = transmit_to(n);
    tx->driver->tend(tx, now_ns);
    const int fd = accept(server, NULL, NULL);
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_RECEIVE);
    say_hello(fd, &hello);
    for (int i = 0; i < 300 && tx->counters.connections == 0; i++) {
        step(tx);
    }
    CHECK_EQUAL(tx->counters.connections, 1);
    uint8_t packet[PACKET_BYTES] = {0};
    uint32_t sent = 0;
    for (; tx->driver->room(tx) > 0; sent++) {
        CHECK(sent < 100000);
        memcpy(packet, &sent, sizeof sent);
        hand_over(tx, packet, sizeof packet);
    }
    tx->driver->tend(tx, now_ns);
    CHECK(tx->counters.backlog_bytes > 100000);
    CHECK(tx->counters.backlog_bytes < 103000);
    CHECK(tx->counters.kernel_backlog_bytes > 0);
    CHECK_EQUAL(tx->counters.send_errors, 0);
    uint32_t kept = sent;
    for (int i = 0; i < 100; i++) { /* who goes on all the same is taken up to the limit */
        const uint64_t errors = tx->counters.send_errors;
        memcpy(packet, &kept, sizeof kept);
        hand_over(tx, packet, sizeof packet);
        tx->driver->tend(tx, now_ns);
        kept += tx->counters.send_errors == errors; /* the kernel may take some more meanwhile */
    }
    CHECK(tx->counters.send_errors > 0);
    CHECK(tx->counters.backlog_bytes <= 200000);
    CHECK_EQUAL(tx->counters.send_errors, sent + 100 - kept);
    read_frames(fd, tx, kept);
    CHECK(tx->driver->room(tx) > 0);
    tx->driver->tend(tx, now_ns);
    CHECK_EQUAL(tx->counters.backlog_bytes, 0);
    shut(tx);
    close(fd);
    close(server);
}

static void a_reader_that_does_not_keep_up_takes_the_room_and_then_gives_it_back(void) {
    take_the_room(33, send_and_flush);
    take_the_room(67, send_now);
}

static bool is_readable(const helio_channel *channel) {
    struct pollfd ready = {channel->fds[0], POLLIN, 0};
    return poll(&ready, 1, 0) == 1;
}

static void a_reader_that_takes_nothing_sleeps_in_peace(void) {
    helio_channel *rx = listen_at(34);
    const int fd = good_peer(rx, 34);
    uint8_t frame[16];
    say(fd, frame, frame_of(frame, "later", 5));
    CHECK_EQUAL(receive(rx, NULL, 0), 0);
    CHECK(rx->driver->before_sleep(rx));
    CHECK(!is_readable(rx));
    for (int i = 0; i < 2 * TIMEOUT_MS; i++) { /* and it is not the peer's silence */
        now_ns += HELIO_MILLISECOND;
        CHECK_EQUAL(receive(rx, NULL, 0), 0);
        rx->driver->tend(rx, now_ns);
    }
    CHECK_EQUAL(rx->counters.connections, 1);
    helio_datagram datagram;
    CHECK_EQUAL(receive(rx, &datagram, 1), 1);
    CHECK_BYTES(datagram.data, "later", 5);
    CHECK(rx->driver->before_sleep(rx));
    say(fd, frame, frame_of(frame, "now", 3));
    CHECK(is_readable(rx));
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
    close(fd);
    shut(rx);
}

static void what_is_left_in_a_buffer_keeps_it_awake(void) {
    helio_channel *rx = listen_at(35);
    const int fd = good_peer(rx, 35);
    uint8_t frames[32];
    const size_t first = frame_of(frames, "one", 3);
    say(fd, frames, first + frame_of(frames + first, "two", 3));
    helio_datagram datagram;
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
    CHECK(!rx->driver->before_sleep(rx));
    CHECK_EQUAL(receive(rx, &datagram, 1), 1);
    CHECK(rx->driver->before_sleep(rx));
    close(fd);
    shut(rx);
}

/* Longer than it takes to see that the engine does not sleep. */
static void spin(helio_channel *channel) {
    helio_datagram none;
    for (int i = 0; i < 32; i++) {
        now_ns += HELIO_MILLISECOND;
        channel->driver->tend(channel, now_ns);
        CHECK_EQUAL(receive(channel, &none, 1), 0);
    }
}

/* It reads what has arrived by itself; what arrived before it fell asleep wakes it at once. */
static void an_engine_that_spins_is_not_told_of_arrivals(void) {
    helio_channel *rx = listen_at(80), *tx = transmit_to(80);
    meet(tx, rx, 1);
    CHECK(rx->driver->before_sleep(rx));
    CHECK(tx->driver->before_sleep(tx));
    send_all(tx, "first", 5);
    flush(tx);
    CHECK(is_readable(rx));
    helio_datagram datagram;
    CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
    const helio_address source = datagram.source;
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        spin(rx);
        spin(tx);
        send_all(tx, "data", 4);
        flush(tx);
        CHECK_EQUAL(rx->driver->send(rx, &source, "feedback", 8, false), 0);
        flush(rx);
        CHECK(!is_readable(rx));
        CHECK(!is_readable(tx));
        CHECK(rx->driver->before_sleep(rx));
        CHECK(tx->driver->before_sleep(tx));
        CHECK(is_readable(rx));
        CHECK(is_readable(tx));
        CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
        CHECK_BYTES(datagram.data, "data", 4);
        CHECK_EQUAL(receive_some(tx, &datagram, 1), 1);
        CHECK_BYTES(datagram.data, "feedback", 8);
    }
    shut(tx);
    shut(rx);
}

/* The epoll instance says which of many connections have something, so it must watch all of them:
 * also those that came while they were few and the engine was spinning. */
static void connections_that_become_many_are_all_read(void) {
    enum { MANY = 5 }; /* one more than are looked at one by one */
    helio_channel *rx = listen_at(81);
    int fds[MANY];
    const helio_hello hello = hello_of(HELIO_RUM_ROLE_TRANSMIT);
    helio_datagram datagram;
    for (int i = 0; i < MANY; i++) {
        fds[i] = raw_client(81);
        say_hello(fds[i], &hello);
        for (int k = 0; k < 300 && rx->counters.connections == (uint64_t)i; k++) {
            step(rx);
            CHECK_EQUAL(receive(rx, &datagram, 1), 0);
        }
        CHECK_EQUAL(rx->counters.connections, i + 1);
        spin(rx);
    }
    for (int i = 0; i < MANY; i++) {
        const uint8_t name = (uint8_t)i;
        uint8_t frame[8];
        say(fds[i], frame, frame_of(frame, &name, 1));
        CHECK_EQUAL(receive_some(rx, &datagram, 1), 1);
        CHECK_EQUAL(datagram.data[0], i);
    }
    for (int i = 0; i < MANY; i++) {
        close(fds[i]);
    }
    shut(rx);
}

static void packets_outlive_their_connection_until_the_next_read(void) {
    helio_channel *rx = listen_at(36);
    const int fd = good_peer(rx, 36);
    uint8_t bytes[32];
    const size_t first = frame_of(bytes, "precious", 8);
    memcpy(bytes + first, "\xfe\0\0\0", 4);
    say(fd, bytes, first + 4);
    helio_datagram datagrams[4];
    CHECK_EQUAL(receive_some(rx, datagrams, 4), 1);
    rx->driver->tend(rx, now_ns);
    CHECK_EQUAL(rx->counters.disconnects, 1);
    CHECK_BYTES(datagrams[0].data, "precious", 8);
    CHECK_EQUAL(receive(rx, datagrams, 4), 0);
    close(fd);
    shut(rx);
}

/* ---- refusals ---- */

static void fails(const helio_channel_config *config, const char *sentence_part) {
    helio_channel *channel = NULL;
    CHECK_EQUAL(tcp->open(config, &channel), HELIO_ERR_ADDRESS);
    if (!strstr(helio_error_sentence(), sentence_part)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", helio_error_sentence(), sentence_part);
    }
}

static void refusals_say_what_to_do(void) {
    helio_channel *first = listen_at(40);
    helio_channel_config config = config_of(HELIO_CHANNEL_RECEIVE, 40);
    char text[HELIO_ADDRESS_TEXT + 32];
    snprintf(text, sizeof text, "127.0.0.1:%u is in use", test_port(40));
    fails(&config, text);

    config.destinations[config.destinations_count] = config.destinations[0]; /* the first free */
    config.destinations[config.destinations_count++].port = test_port(41);
    helio_channel *second = open_channel(&config);
    CHECK_EQUAL(second->bound.port, test_port(41));
    shut(second);
    shut(first);

    config = config_of(HELIO_CHANNEL_RECEIVE, 42);
    helio_address_parse("192.0.2.1", &config.destinations[0]);
    fails(&config, "192.0.2.1 is not an address of this machine");
}

static void a_packet_too_long_is_refused_and_counted(void) {
    helio_channel *tx = transmit_to(43);
    char packet[PACKET_BYTES + 1] = "";
    CHECK(tx->driver->send(tx, NULL, packet, sizeof packet, false) < 0);
    CHECK_EQUAL(tx->counters.send_errors, 1);
    CHECK(tx->driver->send_now(tx, packet, sizeof packet) < 0);
    CHECK_EQUAL(tx->counters.send_errors, 2);
    shut(tx);
}

/* ---- frames ---- */

static void any_bytes_are_read_without_harm(void) {
    helio_random random;
    helio_random_init(&random, 7);
    uint8_t bytes[64];
    for (int round = 0; round < 100000; round++) {
        const size_t length = helio_random_below(&random, sizeof bytes + 1);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (uint8_t)helio_random_next(&random);
        }
        if (round % 2 && length > 2) { /* likelier to be whole */
            bytes[2] = 0;
        }
        helio_frame frame;
        helio_hello hello;
        if (helio_frame_decode(bytes, length, 32, &frame) == HELIO_FRAME_WHOLE) {
            CHECK(frame.length <= 32);
            CHECK(frame.body + frame.length <= bytes + length);
            helio_hello_decode(&frame, &hello);
        }
    }
}

int main(void) {
    RUN(packets_go_down_and_feedback_comes_back);
    RUN(data_has_a_checksum_for_receivers_that_require_one);
    RUN(every_byte_arrives_in_order_whatever_the_kernel_takes_at_once);
    RUN(frames_may_come_byte_by_byte);
    RUN(all_destinations_get_everything);
    RUN(many_connections_are_read_fairly);
    RUN(streams_share_a_connection_and_hear_what_is_theirs);
    RUN(strangers_are_refused_with_a_reason);
    RUN(a_stranger_who_says_nothing_is_closed);
    RUN(the_oldest_that_says_nothing_gives_way);
    RUN(connections_are_paid_for_and_refused_beyond_the_limit);
    RUN(without_descriptors_accepting_rests);
    RUN(nonsense_breaks_the_connection);
    RUN(a_peer_that_stops_in_the_middle_of_a_packet_is_dropped_with_it);
    RUN(a_peer_that_is_only_quiet_stays);
    RUN(the_engines_own_absence_is_not_the_peers_silence);
    RUN(a_connection_that_broke_comes_back);
    RUN(tries_become_rarer);
    RUN(the_first_data_waits_for_the_connection_for_a_time);
    RUN(a_reader_that_does_not_keep_up_takes_the_room_and_then_gives_it_back);
    RUN(a_reader_that_takes_nothing_sleeps_in_peace);
    RUN(what_is_left_in_a_buffer_keeps_it_awake);
    RUN(an_engine_that_spins_is_not_told_of_arrivals);
    RUN(connections_that_become_many_are_all_read);
    RUN(packets_outlive_their_connection_until_the_next_read);
    RUN(refusals_say_what_to_do);
    RUN(a_packet_too_long_is_refused_and_counted);
    RUN(any_bytes_are_read_without_harm);
    return check_result();
}
