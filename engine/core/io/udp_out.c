#include "io/udp_out.h"

#include <errno.h>
#include <linux/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/outlet.h"
#include "generated/protocol.h"
#include "io/direct_call.h"
#include "io/udp_raw.h"

enum {
    SEND_WAIT_MS = 2,
    SEND_WAITS_MAX = 5,
    REFUSALS_MAX = 16,         /* in a row; each is news of a packet sent before */
    SEGMENTS_MAX = 64,         /* of one message, by the oldest kernels that know GSO */
    MESSAGE_BYTES_MAX = 65507, /* what fits in one IPv4 datagram */
};
_Static_assert((int)HELIO_CHANNEL_BATCH <= (int)HELIO_OUTLET_HOLD,
               "stable packets must leave in time");

/* IP option 148 (RFC 2113): routers are to look at this packet. */
static const uint8_t router_alert[4] = {0x94, 0x04, 0x00, 0x00};

/* ---- offload ---- */

static void stop_gso(helio_udp_out *out, int error) {
    char why[128];
    out->has_gso = false;
    snprintf(why, sizeof why, "packets leave one by one, without UDP segmentation offload: %s",
             strerror(error));
    if (out->config->tell) {
        out->config->tell(out->config->context, HELIO_CHANNEL_FELL_BACK, NULL, why);
    }
}

static void start_gso(helio_udp_out *out) {
    int size = 0;
    socklen_t length = sizeof size;
    out->has_gso = out->config->gso && !out->config->raw;
    if (out->has_gso && getsockopt(out->fd, IPPROTO_UDP, UDP_SEGMENT, &size, &length) < 0) {
        stop_gso(out, errno);
    }
}

/* What the kernel says when it is this message it cannot segment: no checksum offload (EIO), a
 * segment longer than the way's MTU (EINVAL, EMSGSIZE), or does not support it. */
static bool is_refusal_of_gso(int error) {
    return error == EIO || error == EINVAL || error == EMSGSIZE || error == ENOPROTOOPT ||
           error == EOPNOTSUPP;
}

/* ---- life ---- */

int helio_udp_out_init(helio_udp_out *out) {
    const helio_channel_config *config = out->config;
    out->copies = malloc(HELIO_CHANNEL_BATCH * config->packet_bytes);
    if (!out->copies) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the packets of a socket");
    }
    out->destinations_count = config->destinations_count;
    for (size_t i = 0; i < config->destinations_count; i++) {
        out->destinations[i] = helio_udp_destination(config, &config->destinations[i]);
    }
    start_gso(out);
    return 0;
}

void helio_udp_out_fini(helio_udp_out *out) {
    free(out->copies);
}

/* ---- queue ---- */

int helio_udp_out_send(helio_udp_out *out, const helio_address *to, const void *packet,
                       size_t length, bool stable) {
    const bool fits = length <= out->config->packet_bytes;
    if (!fits || (to && to->family != out->config->destinations[0].family)) {
        out->counters->send_errors++;
        out->counters->send_errno = fits ? EAFNOSUPPORT : EMSGSIZE;
        return HELIO_ERR_SYSTEM;
    }
    if (out->queued == HELIO_CHANNEL_BATCH) {
        helio_udp_out_flush(out);
    }
    const size_t i = out->queued++;
    const void *data = packet;
    if (!stable) {
        uint8_t *copy = out->copies + i * out->config->packet_bytes;
        memcpy(copy, packet, length);
        data = copy;
    }
    out->parts[i] = (struct iovec){(void *)(uintptr_t)data, length};
    out->is_for_all[i] = !to;
    if (to) {
        out->to[i] = helio_udp_destination(out->config, to);
    }
    return 0;
}

/* ---- system calls ---- */

static bool is_passing(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR;
}

/* False: it has waited long enough. */
static bool wait_for_room(int fd, int *waits) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return (*waits)++ < SEND_WAITS_MAX && poll(&ready, 1, SEND_WAIT_MS) >= 0;
}

static void count_sent(helio_udp_out *out, const struct msghdr *message) {
    out->counters->packets_sent += message->msg_iovlen;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        out->counters->bytes_sent += message->msg_iov[i].iov_len;
    }
}

static bool is_original_data(const struct iovec *packet) {
    enum { TYPE_AT = 4, TYPE_MASK = 0x0F };
    const uint8_t *bytes = packet->iov_base;
    return packet->iov_len > TYPE_AT && (bytes[TYPE_AT] & TYPE_MASK) == HELIO_PGM_TYPE_ODATA;
}

static void count_refused(helio_udp_out *out, const struct msghdr *message, int error) {
    out->counters->send_errors += message->msg_iovlen;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        out->counters->data_errors += is_original_data(&message->msg_iov[i]);
    }
    out->counters->send_errno = error;
}

/* Messages without a name go to the only destination, others where it says; neighbours that go the
 * same way. */
static size_t same_way(const struct mmsghdr *messages, size_t count) {
    const bool is_named = messages->msg_hdr.msg_name;
    size_t n = 1;
    while (n < count && !messages[n].msg_hdr.msg_name == !is_named) {
        n++;
    }
    return n;
}

/* Returns how many messages the kernel took, or -errno. */
static long call(const helio_udp_out *out, struct mmsghdr *messages, size_t count) {
    const struct msghdr *first = &messages->msg_hdr;
    const int fd = first->msg_name ? out->fd : out->connected;
    count = same_way(messages, count);
    if (count > 1 || first->msg_control) {
        return helio_direct_sendmmsg(fd, messages, (unsigned)count, MSG_DONTWAIT);
    }
    const long sent = helio_direct_sendto(fd, first->msg_iov->iov_base, first->msg_iov->iov_len,
                                          MSG_DONTWAIT, first->msg_name, first->msg_namelen);
    return sent < 0 ? sent : 1;
}

/* As call.  That nobody listens is said of an earlier packet, and the one at hand was not sent: it
 * is sent again. */
static long send_some(const helio_udp_out *out, struct mmsghdr *messages, size_t count) {
    long sent = call(out, messages, count);
    for (int i = 0; sent == -ECONNREFUSED && i < REFUSALS_MAX; i++) {
        sent = call(out, messages, count);
    }
    return sent;
}

/* The packets of one message, each by itself. */
static void send_split(helio_udp_out *out, const struct msghdr *message, int *waits) {
    for (size_t i = 0; i < message->msg_iovlen;) {
        struct mmsghdr single = {.msg_hdr = {.msg_name = message->msg_name,
                                             .msg_namelen = message->msg_namelen,
                                             .msg_iov = &message->msg_iov[i],
                                             .msg_iovlen = 1}};
        const long sent = send_some(out, &single, 1);
        if (sent > 0) {
            count_sent(out, &single.msg_hdr);
            i++;
        } else if (!is_passing((int)-sent) || !wait_for_room(out->fd, waits)) {
            count_refused(out, &single.msg_hdr, (int)-sent);
            i++;
        }
    }
}

static void send_messages(helio_udp_out *out, size_t count) {
    size_t next = 0;
    int waits = 0;
    while (next < count) {
        struct msghdr *message = &out->messages[next].msg_hdr;
        if (message->msg_iovlen > 1 && !out->has_gso) {
            send_split(out, message, &waits);
            next++;
            continue;
        }
        const long sent = send_some(out, &out->messages[next], count - next);
        if (sent > 0) {
            for (long i = 0; i < sent; i++, next++) {
                count_sent(out, &out->messages[next].msg_hdr);
            }
            continue;
        }
        const int error = (int)-sent;
        if (message->msg_iovlen > 1 && is_refusal_of_gso(error)) {
            stop_gso(out, error);
        } else if (!is_passing(error) || !wait_for_room(out->fd, &waits)) {
            count_refused(out, message, error);
            next++;
        }
    }
}

/* ---- flush ---- */

/* Packets from `first` on that can be one message: to all destinations, equally long but for a
 * shorter last. */
static size_t run_length(const helio_udp_out *out, size_t first) {
    const size_t length = out->parts[first].iov_len;
    size_t bytes = length;
    size_t n = 1;
    if (!out->has_gso || !out->is_for_all[first]) {
        return 1;
    }
    while (first + n < out->queued && n < SEGMENTS_MAX && out->is_for_all[first + n]) {
        const size_t next = out->parts[first + n].iov_len;
        if (next > length || bytes + next > MESSAGE_BYTES_MAX) {
            break;
        }
        bytes += next;
        n++;
        if (next < length) {
            break;
        }
    }
    return n;
}

static void add_control(struct msghdr *message, helio_udp_control_out *control, int level, int type,
                        const void *data, size_t bytes) {
    control->header.cmsg_level = level;
    control->header.cmsg_type = type;
    control->header.cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(&control->header), data, bytes);
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(bytes);
}

/* Makes messages[at] of the packets [first, first + count). */
static void make_message(helio_udp_out *out, size_t at, size_t first, size_t count,
                         helio_udp_name *to) {
    struct msghdr *message = &out->messages[at].msg_hdr;
    struct iovec *parts = &out->parts[first];
    *message = (struct msghdr){.msg_name = to,
                               .msg_namelen = to ? helio_udp_name_bytes(to) : 0,
                               .msg_iov = parts,
                               .msg_iovlen = count};
    if (count > 1) {
        const uint16_t segment = (uint16_t)parts->iov_len;
        add_control(message, &out->control[at], IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    } else if (out->config->router_alert && helio_udp_raw_alerts(parts->iov_base, parts->iov_len)) {
        add_control(message, &out->control[at], IPPROTO_IP, IP_RETOPTS, router_alert,
                    sizeof router_alert);
    }
}

/* Where a packet goes; NULL: to the only destination, over the socket connected to it. */
static helio_udp_name *name_of(helio_udp_out *out, size_t packet, size_t destination) {
    if (!out->is_for_all[packet]) {
        return &out->to[packet];
    }
    return out->connected >= 0 ? NULL : &out->destinations[destination];
}

/* Each destination gets all its packets in a row, so that runs stay whole. */
void helio_udp_out_flush(helio_udp_out *out) {
    size_t count = 0;
    for (size_t d = 0; d < out->destinations_count; d++) {
        for (size_t i = 0, n; i < out->queued; i += n) {
            n = run_length(out, i);
            if (d > 0 && !out->is_for_all[i]) {
                continue;
            }
            if (count == HELIO_CHANNEL_BATCH) {
                send_messages(out, count);
                count = 0;
            }
            make_message(out, count++, i, n, name_of(out, i, d));
        }
    }
    send_messages(out, count);
    out->queued = 0;
}

/* The kernel refused a lone packet with this error, or was not asked (0).  The queue, which waits
 * and tries again, takes a packet that may go in a moment. */
__attribute__((noinline)) static int send_again(helio_udp_out *out, const void *packet,
                                                size_t length, int error) {
    if (error && error != ECONNREFUSED && !is_passing(error)) {
        struct iovec part = {(void *)(uintptr_t)packet, length};
        const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        count_refused(out, &message, error);
        return 0;
    }
    const int result = helio_udp_out_send(out, NULL, packet, length, true);
    helio_udp_out_flush(out);
    return result;
}

int helio_udp_out_send_now(helio_udp_out *out, const void *packet, size_t length) {
    if (out->connected < 0 || out->queued > 0 || out->config->router_alert ||
        length > out->config->packet_bytes) {
        return send_again(out, packet, length, 0);
    }
    const long sent = helio_direct_sendto(out->connected, packet, length, MSG_DONTWAIT, NULL, 0);
    if (sent < 0) {
        return send_again(out, packet, length, (int)-sent);
    }
    out->counters->packets_sent++;
    out->counters->bytes_sent += length;
    return 0;
}
