/* The UDP driver.  Packets of one duty cycle leave with one sendmmsg and arrive with one recvmmsg.
 *
 * Sending never loses silently: a full socket buffer is waited for, a few milliseconds at most; a
 * packet the kernel refuses for good is counted and left out, and the ones behind it go on.  The
 * protocol treats it as lost in the network, so it can still be repaired. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/outlet.h"
#include "base/random.h"
#include "io/udp_socket.h"

enum {
    DATA,         /* transmit: the stream's own socket */
    FEEDBACK,     /* receive: where NAKs leave; hardly anything comes there */
    UPSTREAM = 1, /* transmit: the encapsulation port, with the option only */
};
enum {
    SEND_WAIT_MS = 2,
    SEND_WAITS_MAX = 5,
    FEEDBACK_EVERY = 64, /* receives of the data socket per look at the other */
    CONTROL_BYTES = CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(struct timespec)),
};
_Static_assert((int)HELIO_CHANNEL_BATCH <= (int)HELIO_OUTLET_HOLD,
               "stable packets must leave in time");

typedef union udp_control {
    struct cmsghdr align;
    uint8_t bytes[CONTROL_BYTES];
} udp_control;

typedef struct udp_channel {
    helio_channel base;
    helio_channel_config config;
    struct sockaddr_in destinations[HELIO_CHANNEL_DESTINATIONS_MAX];
    int out_fd;          /* what packets leave from */
    size_t buffer_bytes; /* of one packet */
    helio_random random;
    unsigned receives;
    uint32_t drops_seen; /* the kernel's counter, 32 bit */

    /* Sending: messages[0..queued) wait; unstable packets are copied to their place in `copies`. */
    size_t queued;
    struct mmsghdr out[HELIO_CHANNEL_BATCH];
    struct iovec out_iov[HELIO_CHANNEL_BATCH];
    struct sockaddr_in out_to[HELIO_CHANNEL_BATCH];
    uint8_t *copies;

    struct mmsghdr in[HELIO_CHANNEL_BATCH];
    struct iovec in_iov[HELIO_CHANNEL_BATCH];
    struct sockaddr_in in_from[HELIO_CHANNEL_BATCH];
    udp_control in_control[HELIO_CHANNEL_BATCH];
    uint8_t *buffers;
} udp_channel;

static udp_channel *udp_of(helio_channel *channel) {
    return (udp_channel *)channel;
}

/* ---- open, close ---- */

static int open_sockets(udp_channel *udp) {
    const helio_channel_config *config = &udp->config;
    helio_channel *base = &udp->base;
    const bool transmit = config->role == HELIO_CHANNEL_TRANSMIT;
    const int first = transmit ? helio_udp_open_transmit(config, &base->local)
                               : helio_udp_open_data(config, &base->bound);
    if (first < 0) {
        return first;
    }
    base->fds[DATA] = first;
    base->counters.buffer_bytes = helio_udp_set_receive_buffer(first, config->socket_buffer);
    udp->out_fd = first;
    if (transmit && !config->upstream) {
        return 0;
    }
    const int second = transmit ? helio_udp_open_upstream(config, &base->local)
                                : helio_udp_open_feedback(config, &base->bound, &base->local);
    if (second < 0) {
        return second;
    }
    base->fds[1] = second;
    udp->out_fd = transmit ? first : second;
    return 0;
}

static int allocate(udp_channel *udp) {
    udp->buffer_bytes = udp->config.packet_bytes + 1; /* so that one too long is seen to be */
    udp->buffers = malloc(HELIO_CHANNEL_BATCH * udp->buffer_bytes);
    udp->copies = malloc(HELIO_CHANNEL_BATCH * udp->config.packet_bytes);
    if (!udp->buffers || !udp->copies) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the packets of a socket");
    }
    for (size_t i = 0; i < HELIO_CHANNEL_BATCH; i++) {
        udp->in_iov[i] = (struct iovec){udp->buffers + i * udp->buffer_bytes, udp->buffer_bytes};
        udp->in[i].msg_hdr = (struct msghdr){.msg_name = &udp->in_from[i],
                                             .msg_namelen = sizeof udp->in_from[i],
                                             .msg_iov = &udp->in_iov[i],
                                             .msg_iovlen = 1,
                                             .msg_control = &udp->in_control[i],
                                             .msg_controllen = sizeof udp->in_control[i]};
        udp->out[i].msg_hdr = (struct msghdr){.msg_name = &udp->out_to[i],
                                              .msg_namelen = sizeof udp->out_to[i],
                                              .msg_iov = &udp->out_iov[i],
                                              .msg_iovlen = 1};
    }
    return 0;
}

static void udp_flush(helio_channel *channel);

static void udp_close(helio_channel *channel) {
    if (!channel) {
        return;
    }
    udp_channel *udp = udp_of(channel);
    udp_flush(channel);
    for (size_t i = 0; i < HELIO_CHANNEL_FDS_MAX; i++) {
        if (channel->fds[i] >= 0) {
            close(channel->fds[i]);
        }
    }
    free(udp->buffers);
    free(udp->copies);
    free(udp);
}

static int udp_open(const helio_channel_config *config, helio_channel **out) {
    udp_channel *udp = calloc(1, sizeof *udp);
    if (!udp) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a socket");
    }
    udp->base.driver = &helio_driver_udp;
    udp->base.fds[DATA] = udp->base.fds[FEEDBACK] = -1;
    udp->config = *config;
    helio_random_init(&udp->random, config->seed);
    for (size_t i = 0; i < config->destinations_count; i++) {
        udp->destinations[i] = helio_udp_sockaddr(&config->destinations[i]);
    }
    int error = allocate(udp);
    if (!error) {
        error = open_sockets(udp);
    }
    if (error) {
        udp_close(&udp->base);
        return error;
    }
    *out = &udp->base;
    return 0;
}

/* ---- send ---- */

/* Waits until the socket takes more.  Returns false when it has waited often enough. */
static bool wait_for_room(int fd, int *waits) {
    if (++*waits > SEND_WAITS_MAX) {
        return false;
    }
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    poll(&ready, 1, SEND_WAIT_MS);
    return true;
}

static bool is_passing(int error) {
    return error == EAGAIN || error == ENOBUFS || error == EINTR || error == ENOMEM;
}

static void udp_flush(helio_channel *channel) {
    udp_channel *udp = udp_of(channel);
    const int fd = udp->out_fd;
    size_t next = 0;
    int waits = 0;
    while (next < udp->queued) {
        const int sent =
            sendmmsg(fd, udp->out + next, (unsigned)(udp->queued - next), MSG_DONTWAIT);
        if (sent > 0) {
            for (int i = 0; i < sent; i++, next++) {
                channel->counters.packets_sent++;
                channel->counters.bytes_sent += udp->out_iov[next].iov_len;
            }
            continue;
        }
        const int error = errno;
        if (!is_passing(error) || !wait_for_room(fd, &waits)) {
            channel->counters.send_errors++;
            channel->counters.send_errno = error;
            next++;
        }
    }
    udp->queued = 0;
}

static void queue_one(udp_channel *udp, const struct sockaddr_in *to, const void *packet,
                      size_t length, bool stable) {
    if (udp->queued == HELIO_CHANNEL_BATCH) {
        udp_flush(&udp->base);
    }
    const size_t i = udp->queued++;
    const void *data = packet;
    if (!stable) {
        uint8_t *copy = udp->copies + i * udp->config.packet_bytes;
        memcpy(copy, packet, length);
        data = copy;
    }
    udp->out_iov[i] = (struct iovec){(void *)(uintptr_t)data, length};
    udp->out_to[i] = *to;
}

static int udp_send(helio_channel *channel, const helio_address *to, const void *packet,
                    size_t length, bool stable) {
    udp_channel *udp = udp_of(channel);
    if (length > udp->config.packet_bytes || (to && to->family != 4)) {
        channel->counters.send_errors++;
        channel->counters.send_errno = length > udp->config.packet_bytes ? EMSGSIZE : EAFNOSUPPORT;
        return HELIO_ERR_SYSTEM;
    }
    if (to) {
        const struct sockaddr_in at = helio_udp_sockaddr(to);
        queue_one(udp, &at, packet, length, stable);
        return 0;
    }
    for (size_t i = 0; i < udp->config.destinations_count; i++) {
        queue_one(udp, &udp->destinations[i], packet, length, stable);
    }
    return 0;
}

/* ---- receive ---- */

static void count_drops(udp_channel *udp, uint32_t drops) {
    udp->base.counters.socket_drops += drops - udp->drops_seen; /* the kernel's counter wraps */
    udp->drops_seen = drops;
}

static void read_control(udp_channel *udp, struct msghdr *header, helio_datagram *datagram) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET) {
            continue;
        }
        if (c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t drops;
            memcpy(&drops, CMSG_DATA(c), sizeof drops);
            count_drops(udp, drops);
        } else if (c->cmsg_type == SO_TIMESTAMPNS) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            datagram->kernel_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
        }
    }
}

static bool is_thrown_away(udp_channel *udp) {
    return udp->config.inject_loss > 0 && helio_random_unit(&udp->random) < udp->config.inject_loss;
}

static size_t receive_from(udp_channel *udp, int fd, helio_datagram *datagrams, size_t limit) {
    if (limit > HELIO_CHANNEL_BATCH) {
        limit = HELIO_CHANNEL_BATCH;
    }
    const int got = recvmmsg(fd, udp->in, (unsigned)limit, MSG_DONTWAIT, NULL);
    size_t kept = 0;
    for (int i = 0; i < got; i++) {
        struct msghdr *header = &udp->in[i].msg_hdr;
        helio_datagram datagram = {.data = udp->buffers + (size_t)i * udp->buffer_bytes,
                                   .length = udp->in[i].msg_len,
                                   .source = helio_udp_address(&udp->in_from[i])};
        if (header->msg_controllen) {
            read_control(udp, header, &datagram);
        }
        header->msg_namelen = sizeof udp->in_from[i];
        header->msg_controllen = sizeof udp->in_control[i];
        if (is_thrown_away(udp)) {
            continue;
        }
        udp->base.counters.packets_received++;
        udp->base.counters.bytes_received += datagram.length;
        datagrams[kept++] = datagram;
    }
    return kept;
}

static size_t udp_receive(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    udp_channel *udp = udp_of(channel);
    size_t got = 0;
    const bool seldom = udp->config.role == HELIO_CHANNEL_RECEIVE;
    if (channel->fds[1] >= 0 && udp->receives++ % (seldom ? FEEDBACK_EVERY : 2) == 0) {
        got = receive_from(udp, channel->fds[1], datagrams, limit);
    }
    return got ? got : receive_from(udp, channel->fds[DATA], datagrams, limit);
}

const helio_driver helio_driver_udp = {
    .name = "udp",
    .open = udp_open,
    .send = udp_send,
    .flush = udp_flush,
    .receive = udp_receive,
    .close = udp_close,
};
