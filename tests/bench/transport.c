/* One measurement of the transport or of the bare sockets under it, printed as one JSON line.
 *
 *   transport latency|throughput heliograph|raw [--size BYTES] [--seconds S] [--port PORT]
 *
 * Two processes, one pinned to each of the first two cores, spin on loopback multicast.  latency: closed ping-pong, half a
 * round trip in ns, HDR counts.  throughput: messages counted at the receiver, after one fifth of the time as warm-up; `raw` packs messages
 * with a 2-byte length into datagrams of 1472 bytes and sends 32 of them per sendmmsg.  Raw sending is unreliable. */
#include <arpa/inet.h>
#include <errno.h>
#include <heliograph/heliograph.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stats/hdr.h"

enum { DATAGRAM = 1472, BURST = 32, MAX_SIZE = 1400 };

typedef struct settings {
    bool raw;
    size_t size;
    double seconds;
    int port;
} settings;

/* Shared by the two processes. */
typedef struct board {
    _Atomic int ready;
    _Atomic int stop;
    _Atomic uint64_t received;
    _Atomic uint64_t lost;
    helio_hdr latency;
} board;

static int64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        fprintf(stderr, "transport: cannot pin to core %d: %s\n", cpu, strerror(errno));
    }
}

static void fail(const char *what) {
    fprintf(stderr, "transport: %s: %s\n", what,
            helio_error_text()[0] ? helio_error_text() : strerror(errno));
    exit(1);
}

/* ---- a channel: send to one group, receive from another, over either kind of transport ---- */

typedef struct channel {
    bool raw;
    int tx_socket, rx_socket;
    struct sockaddr_in to;
    helio_instance *instance;
    helio_transmitter *transmitter;
    helio_receiver *receiver;
} channel;

static struct sockaddr_in group_address(int number, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(0xEFC04D00u + (uint32_t)number); /* 239.192.77.number */
    return address;
}

static void raw_open(channel *c, int tx_group, int rx_group, int port) {
    const struct in_addr loopback = {.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1, buffer = 8 << 20;
    c->tx_socket = socket(AF_INET, SOCK_DGRAM, 0);
    c->rx_socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    c->to = group_address(tx_group, port);
    setsockopt(c->tx_socket, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback);
    setsockopt(c->rx_socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (setsockopt(c->rx_socket, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer) != 0) {
        setsockopt(c->rx_socket, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
    const struct sockaddr_in at = group_address(rx_group, port);
    const struct ip_mreq join = {.imr_multiaddr = at.sin_addr, .imr_interface = loopback};
    if (bind(c->rx_socket, (const struct sockaddr *)&at, sizeof at) != 0 ||
        setsockopt(c->rx_socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) != 0 ||
        connect(c->tx_socket, (const struct sockaddr *)&c->to, sizeof c->to) != 0) {
        fail("raw sockets");
    }
}

static void helio_open(channel *c, int tx_group, int rx_group, int port) {
    char tx[96], rx[96], name[48];
    snprintf(name, sizeof name, "name=bench-%d&mode=poll&stats=memory", tx_group);
    snprintf(tx, sizeof tx, "rmm://239.192.77.%d:%d?interface=127.0.0.1", tx_group, port);
    snprintf(rx, sizeof rx, "rmm://239.192.77.%d:%d?interface=127.0.0.1&socket_buffer=8388608",
             rx_group, port);
    if (helio_instance_create(name, &c->instance) != 0 ||
        helio_receiver_create(c->instance, rx, "BENCH", NULL, NULL, &c->receiver) != 0 ||
        helio_transmitter_create(c->instance, tx, "BENCH", NULL, &c->transmitter) != 0) {
        fail("heliograph");
    }
}

static void channel_open(channel *c, bool raw, int tx_group, int rx_group, int port) {
    memset(c, 0, sizeof *c);
    c->raw = raw;
    (raw ? raw_open : helio_open)(c, tx_group, rx_group, port);
}

static void channel_close(channel *c) {
    if (c->raw) {
        close(c->tx_socket);
        close(c->rx_socket);
        return;
    }
    helio_transmitter_destroy(c->transmitter);
    helio_receiver_destroy(c->receiver);
    helio_instance_destroy(c->instance);
}

static void channel_send(channel *c, const void *data, size_t size) {
    if (c->raw) {
        (void)!send(c->tx_socket, data, size, 0);
    } else if (helio_transmitter_send(c->transmitter, data, size) != 0) {
        fail("send");
    }
}

/* Number of messages taken without waiting (latency: 0 or 1). */
static int channel_receive(channel *c) {
    char data[DATAGRAM];
    if (c->raw) {
        return recv(c->rx_socket, data, sizeof data, 0) >= 0 ? 1 : 0;
    }
    helio_message message;
    return helio_receiver_receive(c->receiver, &message, 1, 0);
}

/* ---- latency ---- */

static void echo(const settings *s, board *b) {
    channel c;
    char data[MAX_SIZE] = {0};
    channel_open(&c, s->raw, 2, 1, s->port);
    b->ready = 1;
    while (!b->stop) {
        if (channel_receive(&c) > 0) {
            channel_send(&c, data, s->size);
        }
    }
    channel_close(&c);
}

static void ping(const settings *s, board *b) {
    channel c;
    char data[MAX_SIZE] = {0};
    channel_open(&c, s->raw, 1, 2, s->port);
    while (!b->ready) {
    }
    const int64_t begin = now_ns(), end = begin + (int64_t)(s->seconds * 1e9);
    int64_t sent = begin;
    while (sent < end) {
        channel_send(&c, data, s->size);
        int64_t at;
        /* A raw datagram may be lost: after 50 ms the next ping takes its place. */
        do {
            at = now_ns();
        } while (channel_receive(&c) == 0 && at - sent < 50000000);
        at = now_ns();
        if (sent - begin > (end - begin) / 5 && at - sent < 50000000) {
            helio_hdr_record(&b->latency, (at - sent) / 2, 1);
        }
        sent = now_ns();
    }
    b->stop = 1;
    channel_close(&c);
}

/* ---- throughput ---- */

static uint64_t raw_take(int socket_) {
    static char data[BURST][DATAGRAM];
    static struct iovec parts[BURST];
    static struct mmsghdr headers[BURST];
    for (int i = 0; i < BURST; i++) {
        parts[i] = (struct iovec){data[i], DATAGRAM};
        headers[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    const int got = recvmmsg(socket_, headers, BURST, 0, NULL);
    uint64_t messages = 0;
    for (int i = 0; i < got; i++) {
        for (unsigned at = 0; at + 2 <= headers[i].msg_len; messages++) {
            uint16_t length;
            memcpy(&length, data[i] + at, 2);
            at += 2u + length;
        }
    }
    return messages;
}

static void count(const settings *s, board *b) {
    channel c;
    static helio_message messages[1024];
    channel_open(&c, s->raw, 2, 1, s->port);
    b->ready = 1;
    while (!b->stop) {
        uint64_t got;
        if (c.raw) {
            got = raw_take(c.rx_socket);
        } else {
            const int n = helio_receiver_receive(c.receiver, messages, 1024, 0);
            got = n > 0 ? (uint64_t)n : 0;
            helio_loss loss;
            while (helio_receiver_loss(c.receiver, &loss) == 1) {
                b->lost += loss.count;
            }
        }
        b->received += got;
    }
    channel_close(&c);
}

static void raw_pour(int socket_, size_t size) {
    static char data[DATAGRAM];
    static struct iovec part;
    static struct mmsghdr headers[BURST];
    if (part.iov_len == 0) {
        const uint16_t length = (uint16_t)size;
        do {
            memcpy(data + part.iov_len, &length, 2);
            part.iov_len += 2 + size;
        } while (part.iov_len + 2 + size <= DATAGRAM);
        part.iov_base = data;
        for (int i = 0; i < BURST; i++) {
            headers[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
        }
    }
    (void)sendmmsg(socket_, headers, BURST, 0);
}

static double pour(const settings *s, board *b) {
    enum { BATCH = 512 };
    channel c;
    static char data[MAX_SIZE];
    static helio_buffer batch[BATCH];
    for (int i = 0; i < BATCH; i++) {
        batch[i] = (helio_buffer){data, s->size};
    }
    channel_open(&c, s->raw, 1, 2, s->port);
    while (!b->ready) {
    }
    const int64_t begin = now_ns(), warm = begin + (int64_t)(s->seconds * 2e8),
                  end = begin + (int64_t)(s->seconds * 1e9);
    uint64_t base = 0;
    int64_t since = 0;
    for (int64_t at = begin; at < end; at = now_ns()) {
        if (since == 0 && at >= warm) {
            since = at;
            base = b->received;
        }
        if (c.raw) {
            raw_pour(c.tx_socket, s->size);
            continue;
        }
        size_t accepted = 0;
        const int status = helio_transmitter_send_many(c.transmitter, batch, BATCH, &accepted);
        if (status != 0 && status != HELIO_ERR_WOULD_BLOCK) {
            fail("send");
        }
        helio_instance_poll(c.instance);
    }
    const double rate = (double)(b->received - base) / ((double)(now_ns() - since) / 1e9);
    b->stop = 1;
    channel_close(&c);
    return rate;
}

/* ---- results ---- */

static int64_t percentile(const helio_hdr *hdr, uint64_t total, double share) {
    uint64_t rank = (uint64_t)(share * (double)total + 0.999999), seen = 0;
    for (uint32_t i = 0; i < HELIO_HDR_CELLS; i++) {
        seen += hdr->counts[i];
        if (seen >= (rank > 0 ? rank : 1)) {
            const int shift = i < 2048 ? 0 : (int)(i >> 10) - 1;
            return (int64_t)(((uint64_t)(i - ((uint32_t)shift << 10)) + 1) << shift) - 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    settings s = {.size = 64, .seconds = 1.0, .port = 17500};
    if (argc < 3) {
        fprintf(stderr, "usage: transport latency|throughput heliograph|raw [--size B] [--seconds "
                        "S] [--port P]\n");
        return 2;
    }
    const bool latency = strcmp(argv[1], "latency") == 0;
    s.raw = strcmp(argv[2], "raw") == 0;
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--size") == 0) {
            s.size = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0) {
            s.seconds = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--port") == 0) {
            s.port = atoi(argv[i + 1]);
        }
    }
    if (s.size < 1 || s.size > MAX_SIZE || s.seconds < 0.1 || s.seconds > 600) {
        fprintf(stderr, "transport: --size takes 1 to %d, --seconds 0.1 to 600\n", MAX_SIZE);
        return 2;
    }
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED) {
        fail("mmap");
    }
    helio_hdr_init(&b->latency);
    const pid_t child = fork();
    if (child < 0) {
        fail("fork");
    }
    if (child == 0) {
        pin(1);
        (latency ? echo : count)(&s, b);
        _exit(0);
    }
    pin(0);
    double rate = 0;
    if (latency) {
        ping(&s, b);
    } else {
        rate = pour(&s, b);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "transport: the other process ended with status %d\n", status);
        return 1;
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < HELIO_HDR_CELLS; i++) {
        total += b->latency.counts[i];
    }
    printf("{\"what\": \"%s\", \"transport\": \"%s\", \"size\": %zu, ", argv[1], argv[2], s.size);
    if (latency) {
        printf("\"count\": %llu, \"p50_ns\": %lld, \"p99_ns\": %lld, \"p999_ns\": %lld, "
               "\"max_ns\": %lld}\n",
               (unsigned long long)total, (long long)percentile(&b->latency, total, 0.5),
               (long long)percentile(&b->latency, total, 0.99),
               (long long)percentile(&b->latency, total, 0.999),
               (long long)percentile(&b->latency, total, 1.0));
    } else {
        printf("\"messages_per_second\": %.0f, \"lost\": %llu}\n", rate,
               (unsigned long long)b->lost);
    }
    return 0;
}
