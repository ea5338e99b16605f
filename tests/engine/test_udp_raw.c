/* PGM straight over IP: what is read of hostile headers, who hears whom, and which packets carry
 * Router Alert. */
#include "check.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/error.h"
#include "generated/protocol.h"
#include "io/udp_raw.h"

enum { PORT = 7500, OTHER_PORT = 7501, PACKET_BYTES = 1476, PGM_BYTES = 24 };

static const helio_driver *const udp = &helio_driver_udp;

static helio_channel_config config_of(helio_channel_role role, const char *ip, uint16_t port) {
    helio_channel_config config = {.role = role,
                                   .destinations_count = 1,
                                   .packet_bytes = PACKET_BYTES,
                                   .socket_buffer = 262144,
                                   .seed = port,
                                   .raw = true};
    helio_address_parse(ip, &config.destinations[0]);
    config.destinations[0].port = port;
    config.multicast = helio_address_is_multicast(&config.destinations[0]);
    helio_address_parse("127.0.0.1", &config.interface);
    return config;
}

/* A PGM packet, as far as ports and type go. */
static void make_packet(uint8_t packet[PGM_BYTES], uint8_t type, uint16_t from, uint16_t to) {
    memset(packet, 0, PGM_BYTES);
    helio_put16(packet, from);
    helio_put16(packet + 2, to);
    packet[4] = type;
}

/* ---- lengths and sessions ---- */

static bool strip_at(const char *ip, helio_channel_role role, const uint8_t *data, size_t length,
                     size_t *stripped) {
    const helio_channel_config config = config_of(role, ip, PORT);
    helio_datagram packet = {.data = data, .length = length};
    const bool accepted = helio_udp_raw_strip(&config, PORT, &packet);
    *stripped = (size_t)(packet.data - data);
    return accepted;
}

static bool strip(helio_channel_role role, const uint8_t *data, size_t length, size_t *stripped) {
    return strip_at("239.192.33.1", role, data, length, stripped);
}

static void headers_of_impossible_lengths_are_refused(void) {
    uint8_t datagram[20 + 40 + PGM_BYTES] = {0x45};
    size_t stripped;
    make_packet(datagram + 20, HELIO_PGM_TYPE_ODATA, 1, PORT);
    CHECK(strip(HELIO_CHANNEL_RECEIVE, datagram, 20 + PGM_BYTES, &stripped));
    CHECK_EQUAL(stripped, 20);
    for (size_t length = 0; length < 20 + HELIO_PGM_HEADER; length++) {
        CHECK(!strip(HELIO_CHANNEL_RECEIVE, datagram, length, &stripped));
    }
    for (uint8_t words = 0; words < 5; words++) { /* shorter than any IP header */
        datagram[0] = 0x40 | words;
        CHECK(!strip(HELIO_CHANNEL_RECEIVE, datagram, sizeof datagram, &stripped));
    }
    datagram[0] = 0x4F; /* the longest header */
    make_packet(datagram + 60, HELIO_PGM_TYPE_ODATA, 1, PORT);
    CHECK(strip(HELIO_CHANNEL_RECEIVE, datagram, sizeof datagram, &stripped));
    CHECK_EQUAL(stripped, 60);
    CHECK(!strip(HELIO_CHANNEL_RECEIVE, datagram, 60 + HELIO_PGM_HEADER - 1, &stripped));
}

static void a_packet_is_of_the_session_whose_ports_it_has(void) {
    static const struct {
        helio_channel_role role;
        uint8_t type;
        uint16_t from, to;
        bool accepted;
    } rows[] = {
        {HELIO_CHANNEL_RECEIVE, HELIO_PGM_TYPE_SPM, 1, PORT, true},
        {HELIO_CHANNEL_RECEIVE, HELIO_PGM_TYPE_RDATA, 1, PORT, true},
        {HELIO_CHANNEL_RECEIVE, HELIO_PGM_TYPE_NCF, PORT, 1, false},
        {HELIO_CHANNEL_RECEIVE, HELIO_PGM_TYPE_NAK, PORT, 1, true}, /* another receiver's */
        {HELIO_CHANNEL_RECEIVE, HELIO_PGM_TYPE_NAK, 1, PORT, false},
        {HELIO_CHANNEL_TRANSMIT, HELIO_PGM_TYPE_NAK, 1, PORT, true},
        {HELIO_CHANNEL_TRANSMIT, HELIO_PGM_TYPE_SPMR, 1, PORT, true},
        {HELIO_CHANNEL_TRANSMIT, HELIO_PGM_TYPE_NAK, PORT, 1, false},
        {HELIO_CHANNEL_TRANSMIT, HELIO_PGM_TYPE_ODATA, 1, PORT, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t datagram[20 + PGM_BYTES] = {0x45};
        size_t stripped;
        make_packet(datagram + 20, rows[i].type, rows[i].from, rows[i].to);
        CHECK_EQUAL(strip(rows[i].role, datagram, sizeof datagram, &stripped), rows[i].accepted);
    }
}

static void a_receiver_of_unicast_does_not_take_its_own_requests_for_anothers(void) {
    uint8_t datagram[20 + PGM_BYTES] = {0x45};
    size_t stripped;
    make_packet(datagram + 20, HELIO_PGM_TYPE_NAK, PORT, 1);
    CHECK(!strip_at("127.0.0.1", HELIO_CHANNEL_RECEIVE, datagram, sizeof datagram, &stripped));
    make_packet(datagram + 20, HELIO_PGM_TYPE_NCF, 1, PORT);
    CHECK(strip_at("127.0.0.1", HELIO_CHANNEL_RECEIVE, datagram, sizeof datagram, &stripped));
}

static void what_does_not_go_together_is_refused(void) {
    helio_channel *channel = NULL;
    helio_channel_config config = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", PORT);
    config.destinations[config.destinations_count] = config.destinations[0];
    config.destinations[config.destinations_count++].port = OTHER_PORT;
    CHECK_EQUAL(udp->open(&config, &channel), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_sentence(), "one port for all hosts, not 7500 and 7501") != NULL);
    config = config_of(HELIO_CHANNEL_TRANSMIT, "127.0.0.1", PORT);
    config.raw = false;
    config.router_alert = true;
    CHECK_EQUAL(udp->open(&config, &channel), HELIO_ERR_OPTION);
    CHECK(strstr(helio_error_sentence(), "router_alert goes with encapsulation=ip") != NULL);
}

/* ---- over loopback ---- */

static bool is_permitted(void) {
    const int fd = helio_udp_raw_open(4);
    if (fd < 0) {
        CHECK_EQUAL(fd, HELIO_ERR_PERMISSION);
        CHECK(strstr(helio_error_sentence(), "CAP_NET_RAW") != NULL);
        printf("      (not tried: no raw sockets permitted here)\n");
        return false;
    }
    close(fd);
    return true;
}

static helio_channel *open_channel(helio_channel_role role, const char *ip, uint16_t port,
                                   bool router_alert) {
    helio_channel_config config = config_of(role, ip, port);
    helio_channel *channel = NULL;
    config.router_alert = router_alert;
    if (udp->open(&config, &channel) < 0) {
        CHECK_FAIL("%s", helio_error_sentence());
    }
    return channel;
}

static size_t receive(helio_channel *channel, helio_datagram *datagram) {
    struct pollfd ready = {channel->fds[0], POLLIN, 0};
    poll(&ready, 1, 1000);
    return udp->receive(channel, datagram, 1);
}

static void sessions_do_not_hear_each_other(void) {
    if (!is_permitted()) {
        return;
    }
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, "239.192.33.9", PORT, false);
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, "239.192.33.9", PORT, false);
    helio_channel *other = open_channel(HELIO_CHANNEL_RECEIVE, "239.192.33.9", OTHER_PORT, false);
    uint8_t packet[PGM_BYTES];
    helio_datagram datagram;
    CHECK(tx->local.port >= 1024);
    make_packet(packet, HELIO_PGM_TYPE_ODATA, tx->local.port, PORT);
    udp->send(tx, NULL, packet, sizeof packet, false);
    udp->flush(tx);
    CHECK_EQUAL(receive(rx, &datagram), 1);
    CHECK_EQUAL(datagram.length, sizeof packet);
    CHECK_BYTES(datagram.data, packet, sizeof packet);
    CHECK_EQUAL(datagram.source.port, 0);
    CHECK_EQUAL(udp->receive(other, &datagram, 1), 0);

    make_packet(packet, HELIO_PGM_TYPE_NAK, PORT, (uint16_t)(tx->local.port ^ 1));
    udp->send(rx, &tx->local, packet, sizeof packet, false); /* of another stream of this host */
    make_packet(packet, HELIO_PGM_TYPE_NAK, PORT, tx->local.port);
    udp->send(rx, &tx->local, packet, sizeof packet, false);
    udp->flush(rx);
    CHECK_EQUAL(receive(tx, &datagram), 1);
    CHECK_BYTES(datagram.data, packet, sizeof packet);
    CHECK_EQUAL(udp->receive(tx, &datagram, 1), 0);
    udp->close(other);
    udp->close(rx);
    udp->close(tx);
}

static void packets_routers_are_to_see_carry_router_alert(void) {
    static const struct {
        uint8_t type;
        bool alerts;
    } rows[] = {{HELIO_PGM_TYPE_SPM, true},   {HELIO_PGM_TYPE_ODATA, false},
                {HELIO_PGM_TYPE_RDATA, true}, {HELIO_PGM_TYPE_NCF, true},
                {HELIO_PGM_TYPE_POLL, true},  {HELIO_PGM_TYPE_NAK, false}};
    if (!is_permitted()) {
        return;
    }
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, "239.192.33.9", PORT, true);
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, "239.192.33.9", PORT, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t packet[PGM_BYTES];
        uint8_t datagram[100] = {0};
        make_packet(packet, rows[i].type, PORT, PORT);
        udp->send(tx, NULL, packet, sizeof packet, false);
        udp->flush(tx);
        struct pollfd ready = {rx->fds[0], POLLIN, 0};
        poll(&ready, 1, 1000);
        const size_t header = rows[i].alerts ? 24 : 20;
        CHECK_EQUAL(recv(rx->fds[0], datagram, sizeof datagram, 0), header + sizeof packet);
        CHECK_EQUAL(datagram[0], rows[i].alerts ? 0x46 : 0x45);
        if (rows[i].alerts) {
            CHECK_BYTES(datagram + 20, ((const uint8_t[]){0x94, 0x04, 0x00, 0x00}), 4);
        }
    }
    udp->close(rx);
    udp->close(tx);
}

int main(void) {
    RUN(headers_of_impossible_lengths_are_refused);
    RUN(a_packet_is_of_the_session_whose_ports_it_has);
    RUN(a_receiver_of_unicast_does_not_take_its_own_requests_for_anothers);
    RUN(what_does_not_go_together_is_refused);
    RUN(sessions_do_not_hear_each_other);
    RUN(packets_routers_are_to_see_carry_router_alert);
    return check_result();
}
