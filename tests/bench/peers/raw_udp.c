/* Bare UDP sockets, the floor under RMM.
 *
 *   raw_udp latency|throughput [--path unicast|multicast] [--segments yes|no]
 *
 * latency: connected sockets, spinning.  throughput: messages with a length of two bytes before
 * each, packed into datagrams of 1472 bytes, 32 of them per sendmmsg and recvmmsg; with segments
 * the sender hands the kernel many datagrams as one (UDP GSO) and the receiver takes them so (GRO).
 * Nothing is repaired: what the receiver's socket cannot take is lost. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "../duel.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { DATAGRAM = 1472, BURST = 32, LENGTH = 2, SEGMENTS_MAX = 44, ROOM = 65536, MARK_EVERY = 16 };

typedef struct end {
    int tx, rx;
    bool segments;
    size_t datagram;  /* bytes in use of each */
    size_t per_burst; /* bytes handed over as one */
    size_t size;      /* of a message */
    unsigned rounds;
    duel_board *board;
    char out[ROOM];
    char in[BURST][ROOM];
    char control[BURST][CMSG_SPACE(sizeof(int))];
    struct iovec parts[BURST];
    struct mmsghdr headers[BURST];
} end;

static bool is_multicast(const duel *d) {
    return strcmp(duel_option(d, "--path", "unicast"), "multicast") == 0;
}

/* Where the parent (0) or the child (1) listens. */
static struct sockaddr_in address_of(const duel *d, int side) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)(d->port + side))};
    const uint32_t group = 0xEFC10000u | (uint32_t)(d->port & 0xFFFF); /* 239.193.x.y */
    address.sin_addr.s_addr = htonl(is_multicast(d) ? group + (uint32_t)side : INADDR_LOOPBACK);
    return address;
}

static void set_buffer(int fd, int forced, int asked) {
    const int bytes = 8 << 20;
    if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) != 0) {
        setsockopt(fd, SOL_SOCKET, asked, &bytes, sizeof bytes);
    }
}

static int open_rx(const duel *d, const struct sockaddr_in *at) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), on = 1;
    const struct ip_mreq join = {at->sin_addr, {htonl(INADDR_LOOPBACK)}};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)at, sizeof *at) != 0 ||
        (is_multicast(d) &&
         setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) != 0)) {
        duel_fail("receiving socket", NULL);
    }
    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
    return fd;
}

static int open_tx(const duel *d, const struct sockaddr_in *to) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    if (fd < 0 ||
        (is_multicast(d) &&
         setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) != 0) ||
        connect(fd, (const struct sockaddr *)to, sizeof *to) != 0) {
        duel_fail("sending socket", NULL);
    }
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
    return fd;
}

/* One datagram full of messages. */
static size_t pack(char *datagram, size_t size) {
    const uint16_t length = (uint16_t)size;
    size_t used = 0;
    while (used + LENGTH + size <= DATAGRAM) {
        memcpy(datagram + used, &length, LENGTH);
        memset(datagram + used + LENGTH, 7, size);
        used += LENGTH + size;
    }
    return used;
}

static void *open_end(const duel *d) {
    static end e;
    const int side = d->child == 0;
    const struct sockaddr_in mine = address_of(d, side), other = address_of(d, !side);
    e.rx = open_rx(d, &mine);
    e.tx = open_tx(d, &other);
    e.segments = strcmp(duel_option(d, "--segments", "no"), "yes") == 0;
    e.datagram = pack(e.out, d->size);
    e.size = d->size;
    e.board = d->board;
    e.per_burst = e.datagram;
    if (e.segments) {
        const int bytes = (int)e.datagram, on = 1;
        for (int i = 1; i < SEGMENTS_MAX; i++) {
            memcpy(e.out + (size_t)i * e.datagram, e.out, e.datagram);
        }
        e.per_burst = SEGMENTS_MAX * e.datagram;
        if (setsockopt(e.tx, IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof bytes) != 0 ||
            setsockopt(e.rx, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) {
            duel_fail("UDP GSO and GRO", NULL);
        }
    }
    return &e;
}

/* ---- latency ---- */

static void send_one(void *channel, uint64_t number, size_t size) {
    end *e = channel;
    memcpy(e->out, &number, sizeof number);
    if (send(e->tx, e->out, size, 0) < 0 && errno != ECONNREFUSED) {
        duel_fail("send", NULL);
    }
}

static bool receive_one(void *channel, uint64_t *number) {
    end *e = channel;
    if (recv(e->rx, e->in[0], sizeof e->in[0], 0) < (ssize_t)sizeof *number) {
        return false;
    }
    memcpy(number, e->in[0], sizeof *number);
    return true;
}

/* ---- throughput ---- */

/* All datagrams of a call are the same bytes, so one marked message is `BURST` of them: few calls
 * mark one. */
static void pour(void *channel) {
    end *e = channel;
    char *message = NULL;
    if (e->rounds++ % MARK_EVERY == 0) {
        const size_t stride = LENGTH + e->size, per_datagram = e->datagram / stride;
        const size_t at = duel_marked(e->per_burst / e->datagram * per_datagram);
        message = e->out + at / per_datagram * e->datagram + at % per_datagram * stride + LENGTH;
        duel_mark(message);
    }
    for (int i = 0; i < BURST; i++) {
        e->parts[i] = (struct iovec){e->out, e->per_burst};
        e->headers[i].msg_hdr = (struct msghdr){.msg_iov = &e->parts[i], .msg_iovlen = 1};
    }
    if (sendmmsg(e->tx, e->headers, BURST, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED) {
        duel_fail("sendmmsg", NULL);
    }
    if (message) {
        duel_unmark(message);
    }
}

/* Length of the datagrams that came as one. */
static size_t segment_of(const struct mmsghdr *header) {
    const struct cmsghdr *control = CMSG_FIRSTHDR(&header->msg_hdr);
    if (control && control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
        int bytes;
        memcpy(&bytes, CMSG_DATA(control), sizeof bytes);
        return bytes > 0 ? (size_t)bytes : header->msg_len;
    }
    return header->msg_len;
}

static uint64_t unpack(const end *e, const char *data, size_t length) {
    uint64_t messages = 0;
    for (size_t at = 0; at + LENGTH < length; messages++) {
        uint16_t size;
        memcpy(&size, data + at, LENGTH);
        duel_arrive(e->board, data + at + LENGTH);
        at += LENGTH + (size_t)size;
    }
    return messages;
}

static uint64_t take(void *channel) {
    end *e = channel;
    for (int i = 0; i < BURST; i++) {
        e->parts[i] = (struct iovec){e->in[i], ROOM};
        e->headers[i].msg_hdr = (struct msghdr){.msg_iov = &e->parts[i], .msg_iovlen = 1};
        if (e->segments) {
            e->headers[i].msg_hdr.msg_control = e->control[i];
            e->headers[i].msg_hdr.msg_controllen = sizeof e->control[i];
        }
    }
    const int got = recvmmsg(e->rx, e->headers, BURST, MSG_DONTWAIT, NULL);
    uint64_t messages = 0;
    for (int i = 0; i < got; i++) {
        const size_t length = e->headers[i].msg_len, segment = segment_of(&e->headers[i]);
        for (size_t at = 0; at < length; at += segment) {
            messages += unpack(e, e->in[i] + at, length - at < segment ? length - at : segment);
        }
    }
    return messages;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"--path", "--segments", NULL};
    static const char usage[] = "latency|throughput [--path unicast|multicast] [--segments yes|no]";
    duel d;
    duel_init(&d, argc, argv, usage, names);
    return duel_play(&d, (duel_ends){open_end, send_one, receive_one, pour, take, NULL});
}
