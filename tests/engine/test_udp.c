/* The UDP driver over loopback: what is sent arrives with its source, and each refusal says what to
 * do. */
#include "check.h"

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "io/driver.h"
#include "ports.h"

static const helio_driver *const udp = &helio_driver_udp;

static helio_channel_config config_of(helio_channel_role role, const char *ip, uint16_t at_port) {
    helio_channel_config config = {.role = role,
                                   .destinations_count = 1,
                                   .ttl = 0,
                                   .packet_bytes = 1472,
                                   .socket_buffer = 262144,
                                   .seed = 1};
    helio_address_parse(ip, &config.destinations[0]);
    config.destinations[0].port = at_port;
    config.multicast = helio_address_is_multicast(&config.destinations[0]);
    helio_address_parse("127.0.0.1", &config.interface);
    return config;
}

static helio_channel *open_channel(const helio_channel_config *config) {
    helio_channel *channel = NULL;
    if (udp->open(config, &channel) < 0) {
        CHECK_FAIL("%s", helio_error_sentence());
    }
    return channel;
}

/* Receives until `wanted` came or nothing comes for a second. */
static size_t receive_all(helio_channel *channel, helio_datagram *datagrams, size_t wanted) {
    for (int tries = 0; tries < 10; tries++) {
        const size_t count = udp->receive(channel, datagrams, wanted);
        if (count) {
            return count;
        }
        struct pollfd ready[2] = {{channel->fds[0], POLLIN, 0}, {channel->fds[1], POLLIN, 0}};
        poll(ready, 2, 100);
    }
    return 0;
}

static void a_group_hears_the_stream_and_the_stream_hears_feedback(void) {
    const helio_channel_config there =
        config_of(HELIO_CHANNEL_RECEIVE, "239.192.33.1", test_port(0));
    const helio_channel_config here =
        config_of(HELIO_CHANNEL_TRANSMIT, "239.192.33.1", test_port(0));
    helio_channel *rx = open_channel(&there);
    helio_channel *second = open_channel(&there); /* any number may listen */
    helio_channel *tx = open_channel(&here);
    CHECK_EQUAL(udp->send(tx, NULL, "stable", 6, true), 0);
    char copied[] = "copied";
    CHECK_EQUAL(udp->send(tx, NULL, copied, 6, false), 0);
    memset(copied, '-', 6);
    udp->flush(tx);
    CHECK_EQUAL(tx->counters.packets_sent, 2);
    CHECK_EQUAL(tx->counters.bytes_sent, 12);

    helio_datagram datagrams[8];
    const char *const expected[] = {"stable", "copied"};
    helio_channel *const receivers[] = {second, rx};
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(receive_all(receivers[i / 2], datagrams, 1), 1);
        CHECK_BYTES(datagrams[0].data, expected[i % 2], 6);
        CHECK(helio_address_equal(&datagrams[0].source, &tx->local));
    }

    CHECK_EQUAL(udp->send(rx, &datagrams[0].source, "nak", 3, false), 0);
    udp->flush(rx);
    CHECK_EQUAL(receive_all(tx, datagrams, 8), 1);
    CHECK_EQUAL(datagrams[0].length, 3);
    CHECK(helio_address_equal(&datagrams[0].source, &rx->local));
    udp->close(tx);
    udp->close(rx);
    udp->close(second);
}

static void what_was_sent_to_the_receiver_alone_is_marked(void) {
    const helio_channel_config there =
        config_of(HELIO_CHANNEL_RECEIVE, "239.192.33.1", test_port(17));
    const helio_channel_config here =
        config_of(HELIO_CHANNEL_TRANSMIT, "239.192.33.1", test_port(17));
    helio_channel *rx = open_channel(&there);
    helio_channel *tx = open_channel(&here);
    helio_datagram datagram;
    for (int round = 0; round < 2; round++) {
        const helio_address alone = rx->local;
        CHECK_EQUAL(udp->send(tx, &alone, "repair", 6, true), 0);
        udp->flush(tx);
        udp->tend(rx, (round + 1) * INT64_C(2000000)); /* it looks there once a millisecond */
        CHECK_EQUAL(receive_all(rx, &datagram, 1), 1);
        CHECK_EQUAL(datagram.length, 6);
        CHECK(rx->is_aside);
        CHECK_EQUAL(udp->send(tx, NULL, "data", 4, true), 0);
        udp->flush(tx);
        CHECK_EQUAL(receive_all(rx, &datagram, 1), 1);
        CHECK_EQUAL(datagram.length, 4);
        CHECK(!rx->is_aside);
    }
    udp->close(tx);
    udp->close(rx);
}

static void upstream_hears_what_is_sent_to_the_encapsulation_port(void) {
    const helio_channel_config there =
        config_of(HELIO_CHANNEL_RECEIVE, "239.192.33.1", test_port(13));
    helio_channel_config here = config_of(HELIO_CHANNEL_TRANSMIT, "239.192.33.1", test_port(13));
    here.upstream = true;
    helio_channel *rx = open_channel(&there);
    helio_channel *tx = open_channel(&here);
    helio_address own_port = tx->local;
    helio_address encapsulation_port = tx->local;
    encapsulation_port.port = test_port(13);
    CHECK_EQUAL(udp->send(rx, &encapsulation_port, "foreign", 7, false), 0);
    CHECK_EQUAL(udp->send(rx, &own_port, "nak", 3, false), 0);
    udp->flush(rx);
    helio_datagram datagrams[8];
    size_t lengths = 0;
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(receive_all(tx, datagrams, 8), 1);
        CHECK(helio_address_equal(&datagrams[0].source, &rx->local));
        lengths += datagrams[0].length;
    }
    CHECK_EQUAL(lengths, 7 + 3);
    /* What the stream sends leaves from its own port all the same. */
    CHECK_EQUAL(udp->send(tx, NULL, "data", 4, true), 0);
    udp->flush(tx);
    CHECK_EQUAL(receive_all(rx, datagrams, 8), 1);
    CHECK(helio_address_equal(&datagrams[0].source, &tx->local));
    udp->close(tx);
    udp->close(rx);
}

/* A socket as receivers of other PGM programs have it: on the port at every address, shared. */
static int foreign_receiver(uint16_t at_port) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(at_port)};
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK_EQUAL(bind(fd, (const struct sockaddr *)&any, sizeof any), 0);
    return fd;
}

static void refused(const helio_channel_config *config, int error, const char *sentence_part);

static void upstream_shares_its_port_with_foreign_receivers_and_no_other_stream(void) {
    for (int foreign_first = 0; foreign_first <= 1; foreign_first++) {
        const uint16_t at = test_port(14 + foreign_first);
        helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, "239.192.33.1", at);
        config.upstream = true;
        int foreign = foreign_first ? foreign_receiver(at) : -1;
        helio_channel *tx = open_channel(&config);
        if (!foreign_first) {
            refused(&config, HELIO_ERR_ADDRESS, "is in use by another program");
            foreign = foreign_receiver(at);
        }
        close(foreign);
        udp->close(tx);
    }
}

static void a_receiver_speaks_to_its_group_one_hop_away_at_most(void) {
    helio_channel_config there = config_of(HELIO_CHANNEL_RECEIVE, "239.192.33.2", test_port(12));
    helio_channel *first = open_channel(&there);
    helio_channel *second = open_channel(&there);
    CHECK_EQUAL(udp->send(first, &there.destinations[0], "spmr", 4, false), 0);
    udp->flush(first);
    helio_datagram datagrams[4];
    CHECK_EQUAL(receive_all(second, datagrams, 4), 1);
    CHECK_EQUAL(datagrams[0].length, 4);
    CHECK(helio_address_equal(&datagrams[0].source, &first->local));
    there.ttl = 200;
    helio_channel *third = open_channel(&there);
    int ttl = 0;
    socklen_t size = sizeof ttl;
    CHECK_EQUAL(getsockopt(third->fds[1], IPPROTO_IP, IP_MULTICAST_TTL, &ttl, &size), 0);
    CHECK_EQUAL(ttl, 1);
    udp->close(first);
    udp->close(second);
    udp->close(third);
}

static void unicast_goes_to_every_destination(void) {
    const helio_channel_config a = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(1));
    const helio_channel_config b = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(2));
    helio_channel_config both = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(1));
    both.destinations[both.destinations_count++] = b.destinations[0];
    helio_channel *rx_a = open_channel(&a);
    helio_channel *rx_b = open_channel(&b);
    helio_channel *tx = open_channel(&both);
    for (int i = 0; i < 100; i++) { /* more than a batch: it flushes by itself */
        CHECK_EQUAL(udp->send(tx, NULL, &i, sizeof i, false), 0);
    }
    udp->flush(tx);
    helio_datagram datagrams[HELIO_CHANNEL_BATCH];
    helio_channel *const receivers[] = {rx_a, rx_b};
    for (int r = 0; r < 2; r++) {
        for (int next = 0; next < 100;) {
            const size_t count = receive_all(receivers[r], datagrams, HELIO_CHANNEL_BATCH);
            CHECK(count > 0);
            for (size_t i = 0; i < count; i++, next++) {
                CHECK_BYTES(datagrams[i].data, &next, sizeof next);
            }
        }
    }
    CHECK_EQUAL(tx->counters.packets_sent, 200);
    udp->close(tx);
    udp->close(rx_a);
    udp->close(rx_b);
}

static void the_first_destination_that_is_free_is_bound(void) {
    const helio_channel_config taken = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(3));
    helio_channel_config several = config_of(HELIO_CHANNEL_RECEIVE, "192.0.2.1", test_port(3));
    several.destinations[several.destinations_count++] = taken.destinations[0];
    several.destinations[several.destinations_count] = taken.destinations[0];
    several.destinations[several.destinations_count++].port = test_port(4);
    helio_channel *first = open_channel(&taken);
    helio_channel *second = open_channel(&several);
    CHECK_EQUAL(second->bound.port, test_port(4));
    udp->close(second);
    udp->close(first);
}

static void injected_loss_is_repeatable_and_about_as_asked(void) {
    size_t kept[2] = {0};
    for (int run = 0; run < 2; run++) {
        helio_channel_config lossy = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(5));
        lossy.inject_loss = 0.25;
        const helio_channel_config here =
            config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(5));
        helio_channel *rx = open_channel(&lossy);
        helio_channel *tx = open_channel(&here);
        helio_datagram datagrams[HELIO_CHANNEL_BATCH];
        for (int i = 0; i < 2000; i++) {
            udp->send(tx, NULL, &i, sizeof i, false);
            udp->flush(tx);
            kept[run] += udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH);
        }
        udp->close(tx);
        udp->close(rx);
    }
    CHECK(kept[0] > 1350 && kept[0] < 1650);
    CHECK_EQUAL(kept[0], kept[1]);
}

static void a_packet_too_long_is_refused_and_counted(void) {
    const helio_channel_config here = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(6));
    helio_channel *tx = open_channel(&here);
    char packet[1473] = "";
    CHECK(udp->send(tx, NULL, packet, sizeof packet, false) < 0);
    CHECK_EQUAL(tx->counters.send_errors, 1);
    udp->close(tx);
}

static void datagrams_longer_than_allowed_are_seen_to_be(void) {
    helio_channel_config narrow = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(7));
    narrow.packet_bytes = 548;
    const helio_channel_config here = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(7));
    helio_channel *rx = open_channel(&narrow);
    helio_channel *tx = open_channel(&here);
    char packet[1472] = "";
    udp->send(tx, NULL, packet, sizeof packet, false);
    udp->flush(tx);
    helio_datagram datagram;
    CHECK_EQUAL(receive_all(rx, &datagram, 1), 1);
    CHECK_EQUAL(datagram.length, 549);
    udp->close(tx);
    udp->close(rx);
}

static void datagrams_the_kernel_drops_are_counted(void) {
    helio_channel_config small = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(8));
    small.socket_buffer = 4096;
    const helio_channel_config here = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(8));
    helio_channel *rx = open_channel(&small);
    helio_channel *tx = open_channel(&here);
    char packet[1000] = "";
    for (int i = 0; i < 200; i++) {
        udp->send(tx, NULL, packet, sizeof packet, true);
    }
    udp->flush(tx);
    helio_datagram datagrams[HELIO_CHANNEL_BATCH];
    size_t got = 0;
    for (size_t count; (count = udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH)); got += count) {
    }
    CHECK(got < 200);
    udp->tend(rx, 1);
    CHECK_EQUAL(got + rx->counters.socket_drops, 200);
    udp->close(tx);
    udp->close(rx);
}

static void the_kernels_stamp_comes_when_asked_for(void) {
    helio_channel_config stamped = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(9));
    stamped.kernel_stamps = true;
    const helio_channel_config here = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(9));
    helio_channel *rx = open_channel(&stamped);
    helio_channel *tx = open_channel(&here);
    udp->send(tx, NULL, "x", 1, true);
    udp->flush(tx);
    helio_datagram datagram;
    CHECK_EQUAL(receive_all(rx, &datagram, 1), 1);
    CHECK(datagram.kernel_ns > INT64_C(1600000000000000000)); /* some time after 2020 */
    udp->close(tx);
    udp->close(rx);
}

static void refused(const helio_channel_config *config, int error, const char *sentence_part) {
    helio_channel *channel = NULL;
    CHECK_EQUAL(udp->open(config, &channel), error);
    if (!strstr(helio_error_sentence(), sentence_part)) {
        CHECK_FAIL("\"%s\" does not say \"%s\"", helio_error_sentence(), sentence_part);
    }
}

static void refusals_say_what_to_do(void) {
    const helio_channel_config taken = config_of(HELIO_CHANNEL_RECEIVE, "127.0.0.1", test_port(10));
    helio_channel *first = open_channel(&taken);
    char text[HELIO_ADDRESS_TEXT + 32];
    snprintf(text, sizeof text, "127.0.0.1:%u is in use", test_port(10));
    refused(&taken, HELIO_ERR_ADDRESS, text);
    udp->close(first);

    helio_channel *holder = open_channel(&taken);
    helio_channel_config upstream = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", test_port(10));
    upstream.upstream = true;
    snprintf(text, sizeof text, "upstream: 127.0.0.1:%u is in use by another", test_port(10));
    refused(&upstream, HELIO_ERR_ADDRESS, text);
    udp->close(holder);

    helio_channel_config foreign = config_of(HELIO_CHANNEL_RECEIVE, "192.0.2.1", test_port(11));
    refused(&foreign, HELIO_ERR_ADDRESS, "192.0.2.1 is not an address of this machine");
    foreign = config_of(HELIO_CHANNEL_RECEIVE, "239.192.33.1", test_port(11));
    helio_address_parse("192.0.2.1", &foreign.interface);
    refused(&foreign, HELIO_ERR_ADDRESS, "interface=192.0.2.1 is not an address of this machine");
    foreign.role = HELIO_CHANNEL_TRANSMIT;
    refused(&foreign, HELIO_ERR_ADDRESS, "192.0.2.1 is not an address of this machine");
}

enum { SAID_SO, SAID_ELSE, NO_NAMESPACE };

/* In a network namespace of its own nothing is up, so there is no route to any group. */
static int open_without_route(void) {
    if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0) {
        return NO_NAMESPACE;
    }
    helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, "239.192.33.1", test_port(12));
    config.interface = (helio_address){.family = 4};
    helio_channel *channel = NULL;
    const int error = udp->open(&config, &channel);
    return error == HELIO_ERR_ADDRESS && strstr(helio_error_sentence(), "no multicast route") &&
                   strstr(helio_error_sentence(), "interface=")
               ? SAID_SO
               : SAID_ELSE;
}

static void a_missing_multicast_route_names_the_option(void) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(open_without_route());
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_NAMESPACE) {
        printf("      (not tried: no network namespace permitted here)\n");
        return;
    }
    CHECK_EQUAL(WEXITSTATUS(status), SAID_SO);
}

int main(void) {
    RUN(a_group_hears_the_stream_and_the_stream_hears_feedback);
    RUN(what_was_sent_to_the_receiver_alone_is_marked);
    RUN(upstream_hears_what_is_sent_to_the_encapsulation_port);
    RUN(upstream_shares_its_port_with_foreign_receivers_and_no_other_stream);
    RUN(a_receiver_speaks_to_its_group_one_hop_away_at_most);
    RUN(unicast_goes_to_every_destination);
    RUN(the_first_destination_that_is_free_is_bound);
    RUN(injected_loss_is_repeatable_and_about_as_asked);
    RUN(a_packet_too_long_is_refused_and_counted);
    RUN(datagrams_longer_than_allowed_are_seen_to_be);
    RUN(datagrams_the_kernel_drops_are_counted);
    RUN(the_kernels_stamp_comes_when_asked_for);
    RUN(refusals_say_what_to_do);
    RUN(a_missing_multicast_route_names_the_option);
    return check_result();
}
