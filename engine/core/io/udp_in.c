#include "io/udp_in.h"

#include <errno.h>
#include <linux/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/direct_call.h"
#include "io/udp_raw.h"

enum {
    GROWTH = 8,           /* of what is asked for, as long as calls come back full */
    JOINED_SLOTS = 8,     /* asked for at most when each may hold dozens of packets */
    JOINED_BYTES = 65536, /* of one message of joined datagrams */
    STAGGER = 1536,       /* so that slots do not all begin in the same set of the cache */
    IP4_HEADER_MAX = 60,
    THIN = 16, /* calls of tend without two datagrams at once */
};

/* ---- joined datagrams, and what comes beside the data ---- */

static void set_control(helio_udp_in *in) {
    in->prepared = 0;
    in->has_control = in->is_joining || in->is_stamped;
    for (size_t i = 0; i < HELIO_UDP_SLOTS && !in->has_control; i++) {
        in->messages[i].msg_hdr.msg_control = NULL; /* nothing old is read from it later */
        in->messages[i].msg_hdr.msg_controllen = 0;
    }
}

static bool ask_to_join(helio_udp_in *in, bool on) {
    const int value = on;
    if (setsockopt(in->data, IPPROTO_UDP, UDP_GRO, &value, sizeof value) != 0) {
        return false;
    }
    in->is_joining = on;
    return true;
}

static void see_several(helio_udp_in *in) {
    in->thin_for = 0;
    if (in->has_gro && !in->is_joining && ask_to_join(in, true)) {
        set_control(in);
    }
}

static bool is_readable(int fd) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    return poll(&ready, 1, 0) != 0;
}

void helio_udp_in_tend(helio_udp_in *in) {
    if (!in->is_joining || in->thin_for++ < THIN || !ask_to_join(in, false)) {
        return;
    }
    /* Joined datagrams that came before could not be told apart: none may have. */
    if (is_readable(in->data) && ask_to_join(in, true)) {
        return;
    }
    in->sees_joined = false;
    set_control(in);
}

/* ---- life ---- */

static bool start_gro(helio_udp_in *in) {
    const helio_channel_config *config = in->config;
    if (!config->gro || config->raw || config->role != HELIO_CHANNEL_RECEIVE) {
        return false;
    }
    if (ask_to_join(in, true)) {
        return true;
    }
    char why[128];
    snprintf(why, sizeof why, "packets are read one by one, without UDP receive offload: %s",
             strerror(errno));
    if (config->tell) {
        config->tell(config->context, HELIO_CHANNEL_FELL_BACK, NULL, why);
    }
    return false;
}

/* Memory never written costs nothing. */
static bool take_memory(helio_udp_in *in) {
    const size_t stride = in->slot_bytes + (in->has_gro ? STAGGER : 0);
    uint8_t *memory = helio_loan_allocate(HELIO_UDP_SLOTS * stride);
    if (!memory) {
        return false;
    }
    in->memory = memory;
    for (size_t i = 0; i < HELIO_UDP_SLOTS; i++) {
        in->parts[i] = (struct iovec){memory + i * stride, in->slot_bytes};
    }
    return true;
}

int helio_udp_in_init(helio_udp_in *in, int data) {
    const helio_channel_config *config = in->config;
    helio_random_init(&in->random, config->seed);
    in->data = data;
    in->has_gro = start_gro(in);
    in->is_stamped = config->kernel_stamps;
    set_control(in);
    in->filters = config->raw || config->inject_loss > 0;
    in->longest = config->packet_bytes;
    /* One byte more than is allowed, so that one too long is seen to be. */
    in->slot_bytes =
        in->has_gro ? JOINED_BYTES : config->packet_bytes + 1 + (config->raw ? IP4_HEADER_MAX : 0);
    if (!take_memory(in)) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the packets of a socket");
    }
    for (size_t i = 0; i < HELIO_UDP_SLOTS; i++) {
        in->messages[i].msg_hdr =
            (struct msghdr){.msg_name = &in->from[i], .msg_iov = &in->parts[i], .msg_iovlen = 1};
    }
    return 0;
}

bool helio_udp_in_leave(helio_udp_in *in, helio_loan *loan) {
    uint8_t *left = in->memory;
    struct iovec unread[HELIO_UDP_SLOTS];
    memcpy(unread, in->parts, sizeof unread);
    if (!take_memory(in)) {
        return false;
    }
    for (size_t i = in->next; i < in->count; i++) {
        memcpy(in->parts[i].iov_base, unread[i].iov_base, in->messages[i].msg_len);
    }
    helio_loan_release(loan, left);
    return true;
}

void helio_udp_in_stamp(helio_udp_in *in, bool on) {
    in->is_stamped = on;
    set_control(in);
}

void helio_udp_in_fini(helio_udp_in *in) {
    helio_loan_release(NULL, in->memory);
}

/* ---- the system call ---- */

/* A call that reads nothing leaves the slots as they are. */
static void prepare(helio_udp_in *in, size_t count) {
    for (size_t i = in->prepared; i < count; i++) {
        struct msghdr *header = &in->messages[i].msg_hdr;
        header->msg_namelen = sizeof in->from[i];
        if (in->has_control) {
            header->msg_control = &in->control[i];
            header->msg_controllen = sizeof in->control[i];
        }
    }
    in->prepared = count;
}

static inline long read_one(helio_udp_in *in, int fd) {
    struct msghdr *header = &in->messages[0].msg_hdr;
    const long length =
        in->has_control
            ? helio_direct_recvmsg(fd, header, MSG_DONTWAIT)
            : helio_direct_recvfrom(fd, in->parts[0].iov_base, in->slot_bytes, MSG_DONTWAIT,
                                    &in->from[0].any, &header->msg_namelen);
    if (length < 0) {
        return -1;
    }
    in->messages[0].msg_len = (unsigned)length;
    return 1;
}

bool helio_udp_in_read(helio_udp_in *in, helio_udp_source *source) {
    const size_t ask = source->ask ? source->ask : 1;
    if (in->prepared < ask) {
        prepare(in, ask);
    }
    const long got =
        ask == 1 ? read_one(in, source->fd)
                 : helio_direct_recvmmsg(source->fd, in->messages, (unsigned)ask, MSG_DONTWAIT);
    in->next = in->offset = 0;
    in->count = got > 0 ? (size_t)got : 0;
    if (in->count == 0) {
        source->ask = 1;
        return false;
    }
    in->prepared = 0;
    in->port = source->port;
    if (in->count > 1) {
        see_several(in);
    }
    if (in->count < ask) {
        source->ask = in->count > 1 ? ask : 1;
        return false;
    }
    const size_t most = in->sees_joined ? JOINED_SLOTS : HELIO_UDP_SLOTS;
    source->ask = ask * GROWTH < most ? ask * GROWTH : most;
    return ask > 1;
}

/* ---- what was read ---- */

/* Reads what came with a message; returns the length of the datagrams joined in it, 0: it is
 * one. */
static size_t read_control(struct msghdr *header, int64_t *kernel_ns) {
    size_t segment = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO &&
            c->cmsg_len >= CMSG_LEN(sizeof(int))) {
            int bytes;
            memcpy(&bytes, CMSG_DATA(c), sizeof bytes);
            segment = bytes > 0 ? (size_t)bytes : 0;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS &&
                   c->cmsg_len >= CMSG_LEN(sizeof(struct timespec))) {
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
            *kernel_ns = (int64_t)stamp.tv_sec * 1000000000 + stamp.tv_nsec;
        }
    }
    return segment;
}

/* Some datagrams are for others, or are to be lost. */
static bool filter(helio_udp_in *in, helio_datagram *packet) {
    if (in->config->raw && !helio_udp_raw_strip(in->config, in->port, packet)) {
        return false;
    }
    return in->config->inject_loss <= 0 ||
           helio_random_unit(&in->random) >= in->config->inject_loss;
}

/* Whether the packet is to be given out. */
static inline bool passes(helio_udp_in *in, helio_datagram *packet) {
    if (in->filters && !filter(in, packet)) {
        return false;
    }
    if (packet->length > in->longest) {
        packet->length = in->longest + 1;
    }
    in->counters->packets_received++;
    in->counters->bytes_received += packet->length;
    return true;
}

/* Gives out the datagrams joined in one slot, from `offset` on; the first of `datagrams` has what is
 * true of each. */
static size_t take_joined(helio_udp_in *in, size_t length, size_t segment,
                          helio_datagram *datagrams, size_t limit) {
    helio_datagram piece = datagrams[0];
    const uint8_t *data = in->parts[in->next].iov_base;
    size_t kept = 0;
    do {
        piece.data = data + in->offset;
        piece.length = length - in->offset < segment ? length - in->offset : segment;
        in->offset += piece.length;
        datagrams[kept] = piece;
        kept += passes(in, &datagrams[kept]);
    } while (in->offset < length && kept < limit);
    if (in->offset == length) {
        in->next++;
        in->offset = 0;
    }
    return kept;
}

/* Gives out what is left in one slot. */
static inline __attribute__((always_inline)) size_t take_slot(helio_udp_in *in,
                                                              helio_datagram *datagrams,
                                                              size_t limit) {
    struct mmsghdr *message = &in->messages[in->next];
    const size_t length = message->msg_len;
    helio_datagram *first = &datagrams[0];
    size_t segment = 0;
    helio_udp_read_address(&in->from[in->next], &first->source);
    first->kernel_ns = 0;
    if (in->has_control && message->msg_hdr.msg_controllen) {
        segment = read_control(&message->msg_hdr, &first->kernel_ns);
        in->sees_joined = segment > 0;
    }
    if (segment && segment < length) {
        in->thin_for = 0;
        return take_joined(in, length, segment, datagrams, limit);
    }
    /* Nearly all are alone in their slot: made in their place, without a copy. */
    first->data = in->parts[in->next].iov_base;
    first->length = length;
    in->next++;
    return passes(in, first);
}

size_t helio_udp_in_take(helio_udp_in *in, helio_datagram *datagrams, size_t limit) {
    size_t kept = 0;
    while (in->next < in->count && kept < limit) {
        kept += take_slot(in, datagrams + kept, limit - kept);
    }
    return kept;
}

/* Without control data no slot is needed but its memory. */
size_t helio_udp_in_read_lone(helio_udp_in *in, helio_udp_source *source, helio_datagram *out) {
    _Static_assert(GROWTH <= JOINED_SLOTS && GROWTH <= (int)HELIO_UDP_SLOTS, "no limit is reached");
    if (in->has_control) {
        helio_udp_in_read(in, source);
        return helio_udp_in_take(in, out, 1);
    }
    helio_udp_name from;
    socklen_t from_bytes = sizeof from;
    const long length = helio_direct_recvfrom(source->fd, in->memory, in->slot_bytes, MSG_DONTWAIT,
                                              &from.any, &from_bytes);
    if (length < 0) {
        return 0;
    }
    source->ask = GROWTH;
    in->port = source->port;
    out->data = in->memory;
    out->length = (size_t)length;
    helio_udp_read_address(&from, &out->source);
    out->kernel_ns = 0;
    return passes(in, out);
}

void helio_udp_in_count_drops(helio_udp_in *in, helio_udp_source *source) {
    const uint32_t dropped = helio_udp_drops(source->fd);
    in->counters->socket_drops += dropped - source->dropped; /* the kernel's counter wraps */
    source->dropped = dropped;
}
