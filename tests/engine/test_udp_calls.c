/* The UDP driver and the kernel: how many system calls it makes, what it gives to each, and what it
 * does when the kernel refuses segmentation offload.  The calls are counted on their way. */
#include "check.h"

#include <errno.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"
#include "io/direct_call.h"
#include "io/driver.h"
#include "ports.h"

static const helio_driver *const udp = &helio_driver_udp;

static struct {
    int reads;         /* system calls */
    unsigned asked;    /* messages the last of them asked for */
    int writes;        /* system calls */
    int messages;      /* they carried */
    int joined;        /* of these, with more than one packet */
    int refuse_joined; /* errno for them; 0: the kernel decides */
    int refuse_single; /* errno for the next packet alone; 0: the kernel decides */
} calls;

/* ---- the calls ---- */

static long result_of(long result) {
    return result < 0 ? -errno : result;
}

long helio_direct_recvfrom(int fd, void *buffer, size_t length, int flags, struct sockaddr *from,
                           socklen_t *bytes) {
    calls.reads++;
    calls.asked = 1;
    return result_of(syscall(SYS_recvfrom, fd, buffer, length, flags, from, bytes));
}

long helio_direct_recvmsg(int fd, struct msghdr *message, int flags) {
    calls.reads++;
    calls.asked = 1;
    return result_of(syscall(SYS_recvmsg, fd, message, flags));
}

long helio_direct_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    calls.reads++;
    calls.asked = count;
    return result_of(syscall(SYS_recvmmsg, fd, messages, count, flags, NULL));
}

long helio_direct_sendto(int fd, const void *data, size_t length, int flags,
                         const struct sockaddr *to, socklen_t bytes) {
    calls.writes++;
    calls.messages++;
    if (calls.refuse_single) {
        const int error = calls.refuse_single;
        calls.refuse_single = 0;
        return -error;
    }
    return result_of(syscall(SYS_sendto, fd, data, length, flags, to, bytes));
}

long helio_direct_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags) {
    calls.writes++;
    unsigned allowed = 0;
    while (allowed < count && (messages[allowed].msg_hdr.msg_iovlen == 1 || !calls.refuse_joined)) {
        calls.joined += messages[allowed].msg_hdr.msg_iovlen > 1;
        allowed++;
    }
    if (allowed == 0) {
        return -calls.refuse_joined;
    }
    calls.messages += (int)allowed;
    return result_of(syscall(SYS_sendmmsg, fd, messages, allowed, flags));
}

/* ---- channels ---- */

static struct {
    int count;
    helio_channel_event event;
    char why[128];
} told;

static void tell(void *context, helio_channel_event event, const helio_address *peer,
                 const char *why) {
    (void)context, (void)peer;
    told.count++;
    told.event = event;
    snprintf(told.why, sizeof told.why, "%s", why);
}

static helio_channel_config config_of(helio_channel_role role, int n, bool offload) {
    helio_channel_config config = {.role = role,
                                   .destinations_count = 1,
                                   .packet_bytes = 1472,
                                   .socket_buffer = 4194304,
                                   .seed = 1,
                                   .gso = offload,
                                   .gro = offload,
                                   .tell = tell};
    helio_address_parse("127.0.0.1", &config.destinations[0]);
    config.destinations[0].port = test_port(n);
    config.interface = config.destinations[0];
    config.interface.port = 0;
    return config;
}

static helio_channel *open_channel(helio_channel_role role, int n, bool offload) {
    const helio_channel_config config = config_of(role, n, offload);
    helio_channel *channel = NULL;
    CHECK_EQUAL(udp->open(&config, &channel), 0);
    memset(&calls, 0, sizeof calls);
    return channel;
}

static void fill(uint8_t *packet, unsigned number, size_t length) {
    for (size_t i = 0; i < length; i++) {
        packet[i] = (uint8_t)(number + i);
    }
}

/* Expects the packets [first, first + count) of these lengths, in order. */
static void expect(helio_channel *rx, unsigned first, const size_t *lengths, unsigned count,
                   size_t limit) {
    helio_datagram datagrams[HELIO_CHANNEL_BATCH];
    uint8_t expected[1472];
    for (unsigned next = 0, empty = 0; next < count && empty < 100;) {
        const size_t got = udp->receive(rx, datagrams, limit);
        if (!got) {
            struct pollfd ready = {rx->fds[0], POLLIN, 0};
            poll(&ready, 1, 100);
            empty++;
        }
        for (size_t i = 0; i < got; i++, next++) {
            CHECK(next < count);
            CHECK_EQUAL(datagrams[i].length, lengths[next]);
            fill(expected, first + next, lengths[next]);
            CHECK_BYTES(datagrams[i].data, expected, lengths[next]);
        }
    }
}

/* ---- behaviours ---- */

static void a_lone_datagram_costs_one_call(void) {
    for (int offload = 0; offload <= 1; offload++) {
        helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 0, offload);
        helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 0, offload);
        helio_datagram datagrams[HELIO_CHANNEL_BATCH];
        for (int i = 0; i < 3; i++) {
            udp->send(tx, NULL, "lone", 4, true);
            udp->flush(tx);
            CHECK_EQUAL(calls.writes, i + 1);
            calls.reads = 0;
            CHECK_EQUAL(udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH), 1);
            CHECK_EQUAL(calls.reads, 1);
            CHECK_EQUAL(calls.asked, 1);
            CHECK(!rx->has_more);
            CHECK_EQUAL(udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH), 0);
        }
        udp->close(tx);
        udp->close(rx);
    }
}

static void a_packet_sent_at_once_costs_one_call(void) {
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 6, false);
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 6, true);
    static const int refusals[] = {0, EAGAIN, ECONNREFUSED};
    const size_t length = 4;
    uint8_t packet[1473];
    for (unsigned i = 0; i < 3; i++) {
        fill(packet, i, length);
        calls.refuse_single = refusals[i];
        CHECK_EQUAL(udp->send_now(tx, packet, length), 0);
        CHECK_EQUAL(calls.writes, i < 1 ? 1 : 2 * (int)i + 1); /* a refused one is sent again */
        expect(rx, i, &length, 1, HELIO_CHANNEL_BATCH);
        CHECK_EQUAL(tx->counters.packets_sent, i + 1);
        CHECK_EQUAL(tx->counters.bytes_sent, (i + 1) * length);
    }
    CHECK(udp->send_now(tx, packet, sizeof packet) != 0);
    CHECK_EQUAL(tx->counters.send_errors, 1);
    /* What a rule of the host drops is dropped, as in a list. */
    const int writes = calls.writes;
    calls.refuse_single = EPERM;
    CHECK_EQUAL(udp->send_now(tx, packet, length), 0);
    CHECK_EQUAL(calls.writes, writes + 1);
    CHECK_EQUAL(tx->counters.send_errors, 2);
    CHECK_EQUAL(tx->counters.send_errno, EPERM);
    /* What is queued leaves before it. */
    const size_t lengths[] = {4, 3};
    fill(packet, 3, 4);
    udp->send(tx, NULL, packet, 4, false);
    fill(packet, 4, 3);
    CHECK_EQUAL(udp->send_now(tx, packet, 3), 0);
    expect(rx, 3, lengths, 2, HELIO_CHANNEL_BATCH);
    udp->close(tx);
    udp->close(rx);
}

static void calls_ask_for_more_as_they_come_back_full(void) {
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 1, false);
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 1, false);
    helio_datagram datagrams[HELIO_CHANNEL_BATCH];
    for (int i = 0; i < 300; i++) {
        udp->send(tx, NULL, &i, sizeof i, false);
    }
    udp->flush(tx);
    CHECK_EQUAL(calls.joined, 0);
    size_t total = 0;
    while (total < 300) {
        const size_t got = udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH);
        CHECK(got > 0);
        total += got;
    }
    CHECK_EQUAL(calls.reads, 2 + 5); /* 1, 8, and 64 at a time */
    udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH);
    udp->receive(rx, datagrams, HELIO_CHANNEL_BATCH);
    CHECK_EQUAL(calls.asked, 1);
    udp->close(tx);
    udp->close(rx);
}

static void equal_packets_are_one_message_and_come_apart_again(void) {
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 2, true);
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 2, true);
    size_t lengths[101];
    uint8_t packet[1000];
    for (unsigned i = 0; i < 101; i++) {
        lengths[i] = i < 100 ? 1000 : 500; /* the last of a run may be shorter */
        fill(packet, i, lengths[i]);
        udp->send(tx, NULL, packet, lengths[i], false);
    }
    udp->flush(tx);
    CHECK_EQUAL(calls.writes, 1);
    CHECK_EQUAL(calls.messages, 2); /* of 64 and 37 packets */
    CHECK_EQUAL(calls.joined, 2);
    CHECK_EQUAL(tx->counters.packets_sent, 101);
    CHECK_EQUAL(tx->counters.bytes_sent, 100500);
    expect(rx, 0, lengths, 101, 8); /* what does not fit the caller's array waits */
    CHECK_EQUAL(rx->counters.packets_received, 101);
    CHECK_EQUAL(rx->counters.bytes_received, 100500);
    CHECK_EQUAL(told.count, 0);
    udp->close(tx);
    udp->close(rx);
}

static bool is_asked_to_join(const helio_channel *channel) {
    int value = 0;
    socklen_t bytes = sizeof value;
    CHECK_EQUAL(getsockopt(channel->fds[0], IPPROTO_UDP, UDP_GRO, &value, &bytes), 0);
    return value;
}

static void send_equal(helio_channel *tx, unsigned first, unsigned count) {
    uint8_t packet[1000];
    for (unsigned i = 0; i < count; i++) {
        fill(packet, first + i, sizeof packet);
        udp->send(tx, NULL, packet, sizeof packet, false);
    }
    udp->flush(tx);
}

static void thin_traffic_is_read_without_offload_and_lists_with_it(void) {
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 7, true);
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 7, true);
    size_t lengths[200];
    for (unsigned i = 0; i < 200; i++) {
        lengths[i] = 1000;
    }
    int64_t now_ns = 1;
    for (unsigned round = 0; round < 3; round++) {
        CHECK(is_asked_to_join(rx) == (round == 0));
        send_equal(tx, 0, 200); /* joined or not, they come as they were sent */
        expect(rx, 0, lengths, 200, HELIO_CHANNEL_BATCH);
        CHECK(is_asked_to_join(rx));
        for (unsigned i = 0; i < 100; i++, now_ns += 2000000) {
            send_equal(tx, i, 1);
            expect(rx, i, lengths, 1, HELIO_CHANNEL_BATCH);
            if (i == 50) { /* what was joined before could not be told apart afterwards */
                send_equal(tx, 0, 3);
                udp->tend(rx, now_ns);
                expect(rx, 0, lengths, 3, HELIO_CHANNEL_BATCH);
            } else {
                udp->tend(rx, now_ns);
            }
        }
    }
    CHECK(!is_asked_to_join(rx));
    udp->close(tx);
    udp->close(rx);
}

static void memory_is_left_as_it_is_and_what_waits_there_still_comes(void) {
    enum { PACKETS = 100, LIMIT = 3 };
    for (int offload = 0; offload < 2; offload++) {
        helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 8, offload);
        helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 8, offload);
        helio_datagram given[PACKETS + LIMIT];
        helio_loan loan = {.is_out = true};
        size_t count = 0;
        send_equal(tx, 0, PACKETS);
        for (int i = 0; i < PACKETS && count < PACKETS; i++) {
            count += udp->receive(rx, given + count, LIMIT);
            CHECK(udp->leave(rx, &loan));
        }
        CHECK_EQUAL(count, PACKETS);
        for (unsigned i = 0; i < PACKETS; i++) {
            uint8_t expected[1000];
            fill(expected, i, sizeof expected);
            CHECK_EQUAL(given[i].length, sizeof expected);
            CHECK_BYTES(given[i].data, expected, sizeof expected);
        }
        helio_loan_end(&loan);
        udp->close(tx);
        udp->close(rx);
    }
}

static void packets_of_any_lengths_keep_their_order(void) {
    helio_channel *rx_a = open_channel(HELIO_CHANNEL_RECEIVE, 3, true);
    helio_channel *rx_b = open_channel(HELIO_CHANNEL_RECEIVE, 4, false);
    helio_channel_config both = config_of(HELIO_CHANNEL_TRANSMIT, 3, true);
    both.destinations[both.destinations_count] = both.destinations[0];
    both.destinations[both.destinations_count++].port = test_port(4);
    helio_channel *tx = NULL;
    CHECK_EQUAL(udp->open(&both, &tx), 0);
    helio_random random;
    helio_random_init(&random, 7);
    size_t lengths[HELIO_CHANNEL_BATCH];
    uint8_t packet[1472];
    for (unsigned round = 0; round < 50; round++) {
        const unsigned count = 1 + (unsigned)helio_random_below(&random, HELIO_CHANNEL_BATCH);
        size_t length = 1472;
        for (unsigned i = 0; i < count; i++) {
            if (helio_random_below(&random, 4) == 0) {
                length = 1 + helio_random_below(&random, 1472);
            }
            lengths[i] = length;
            fill(packet, round + i, length);
            udp->send(tx, NULL, packet, length, false);
        }
        udp->flush(tx);
        expect(rx_a, round, lengths, count, HELIO_CHANNEL_BATCH);
        expect(rx_b, round, lengths, count, HELIO_CHANNEL_BATCH);
    }
    CHECK(calls.joined > 0);
    udp->close(tx);
    udp->close(rx_a);
    udp->close(rx_b);
}

static void a_refused_offload_is_told_once_and_nothing_is_lost(void) {
    memset(&told, 0, sizeof told);
    helio_channel *rx = open_channel(HELIO_CHANNEL_RECEIVE, 5, true);
    helio_channel *tx = open_channel(HELIO_CHANNEL_TRANSMIT, 5, true);
    size_t lengths[80];
    uint8_t packet[1000];
    calls.refuse_joined = EIO;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 80; i++) {
            lengths[i] = i == 70 ? 999 : 1000;
            fill(packet, i, lengths[i]);
            udp->send(tx, NULL, packet, lengths[i], false);
        }
        udp->flush(tx);
        expect(rx, 0, lengths, 80, HELIO_CHANNEL_BATCH);
    }
    CHECK_EQUAL(told.count, 1);
    CHECK_EQUAL(told.event, HELIO_CHANNEL_FELL_BACK);
    CHECK(strstr(told.why, "without UDP segmentation offload: Input/output error") != NULL);
    CHECK_EQUAL(calls.joined, 0);
    CHECK_EQUAL(tx->counters.packets_sent, 160);
    CHECK_EQUAL(tx->counters.send_errors, 0);
    udp->close(tx);
    udp->close(rx);
}

int main(void) {
    RUN(a_lone_datagram_costs_one_call);
    RUN(a_packet_sent_at_once_costs_one_call);
    RUN(calls_ask_for_more_as_they_come_back_full);
    RUN(equal_packets_are_one_message_and_come_apart_again);
    RUN(thin_traffic_is_read_without_offload_and_lists_with_it);
    RUN(memory_is_left_as_it_is_and_what_waits_there_still_comes);
    RUN(packets_of_any_lengths_keep_their_order);
    RUN(a_refused_offload_is_told_once_and_nothing_is_lost);
    return check_result();
}
