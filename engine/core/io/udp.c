/* The UDP driver: sockets, and the two halves that use them, put together as a channel.
 *
 * A transmit channel sends and hears requests on one socket, and with the option `upstream` hears
 * the receivers of other PGM programs on a second.  A receive channel reads data from one and sends
 * feedback from a second.  After a NAK it reads the second first: a repair may come there by
 * unicast, and then does not wait behind the data.  A local repairer reads them in turn, because
 * receivers send their NAKs to the second. */
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "io/udp_in.h"
#include "io/udp_out.h"
#include "wire/pgm.h"

enum { DATA, ASIDE }; /* sources, and fds */
enum { LOOKS = 512 }; /* at the second source, after a NAK or a packet from there */
#define TEND_NS INT64_C(1000000)

typedef struct udp_channel {
    helio_channel base;
    helio_channel_config config;
    helio_udp_source sources[2];
    unsigned looks_aside; /* number of receives that read the second source first */
    int turn;             /* source read first the last time (receive_in_turn) */
    int64_t tend_due_ns;
    helio_udp_in in;
    helio_udp_out out;
} udp_channel;

static udp_channel *udp_of(helio_channel *channel) {
    return (udp_channel *)channel;
}

static bool is_transmit(const udp_channel *udp) {
    return udp->config.role == HELIO_CHANNEL_TRANSMIT;
}

/* ---- open, close ---- */

static int open_data(udp_channel *udp) {
    helio_channel *base = &udp->base;
    const int fd = is_transmit(udp) ? helio_udp_open_transmit(&udp->config, &base->local)
                                    : helio_udp_open_data(&udp->config, &base->bound);
    if (fd < 0) {
        return fd;
    }
    base->fds[DATA] = fd;
    base->counters.buffer_bytes = helio_udp_set_receive_buffer(fd, udp->config.socket_buffer);
    return 0;
}

static int open_aside(udp_channel *udp) {
    helio_channel *base = &udp->base;
    if (is_transmit(udp) && (!udp->config.upstream || udp->config.raw)) {
        return 0; /* raw: there are no ports, it hears all anyway */
    }
    const int fd = is_transmit(udp)
                       ? helio_udp_open_upstream(&udp->config, &base->local)
                       : helio_udp_open_feedback(&udp->config, &base->bound, &base->local);
    if (fd < 0) {
        return fd;
    }
    base->fds[ASIDE] = fd;
    return 0;
}

static int open_halves(udp_channel *udp) {
    const helio_channel *base = &udp->base;
    const uint16_t port = is_transmit(udp) ? base->local.port : base->bound.port;
    for (int i = DATA; i <= ASIDE; i++) {
        udp->sources[i] = (helio_udp_source){.fd = base->fds[i], .port = port, .ask = 1};
    }
    udp->in.config = udp->out.config = &udp->config;
    udp->in.counters = udp->out.counters = &udp->base.counters;
    udp->out.fd = base->fds[is_transmit(udp) ? DATA : ASIDE];
    udp->out.connected =
        is_transmit(udp) ? helio_udp_open_connected(&udp->config, base->fds[DATA]) : -1;
    const int error = helio_udp_in_init(&udp->in, base->fds[DATA]);
    return error ? error : helio_udp_out_init(&udp->out);
}

static void udp_close(helio_channel *channel) {
    if (!channel) {
        return;
    }
    udp_channel *udp = udp_of(channel);
    helio_udp_out_flush(&udp->out);
    for (int i = DATA; i <= ASIDE; i++) {
        if (channel->fds[i] >= 0) {
            close(channel->fds[i]);
        }
    }
    if (udp->out.connected >= 0) {
        close(udp->out.connected);
    }
    helio_udp_in_fini(&udp->in);
    helio_udp_out_fini(&udp->out);
    free(udp);
}

/* Raw IP has no ports to tell receivers of one stream apart. */
static int check_raw(const helio_channel_config *config) {
    for (size_t i = 1; config->raw && i < config->destinations_count; i++) {
        if (config->destinations[i].port != config->destinations[0].port) {
            return helio_fail(HELIO_ERR_OPTION,
                              "encapsulation=ip takes one port for all hosts, not %u and %u",
                              config->destinations[0].port, config->destinations[i].port);
        }
    }
    if (config->router_alert && (!config->raw || config->destinations[0].family != 4)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option router_alert goes with encapsulation=ip and IPv4 addresses");
    }
    return 0;
}

static int udp_open(const helio_channel_config *config, helio_channel **out) {
    int error = check_raw(config);
    if (error) {
        return error;
    }
    udp_channel *udp = calloc(1, sizeof *udp);
    if (!udp) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a socket");
    }
    udp->base.driver = &helio_driver_udp;
    udp->base.fds[DATA] = udp->base.fds[ASIDE] = -1;
    udp->out.connected = -1;
    udp->config = *config;
    error = helio_udp_choose_interface(&udp->config);
    if (!error) {
        error = open_data(udp);
    }
    if (!error) {
        error = open_aside(udp);
    }
    if (!error) {
        error = open_halves(udp);
    }
    if (error) {
        udp_close(&udp->base);
        return error;
    }
    *out = &udp->base;
    return 0;
}

/* ---- use ---- */

static bool is_nak(const uint8_t *packet, size_t length) {
    return length >= HELIO_PGM_HEADER && (packet[4] & 0x0F) == HELIO_PGM_TYPE_NAK;
}

static int udp_send(helio_channel *channel, const helio_address *to, const void *packet,
                    size_t length, bool stable) {
    udp_channel *udp = udp_of(channel);
    if (!is_transmit(udp) && !udp->config.raw && is_nak(packet, length)) {
        udp->looks_aside = LOOKS;
    }
    return helio_udp_out_send(&udp->out, to, packet, length, stable);
}

static void udp_flush(helio_channel *channel) {
    helio_udp_out_flush(&udp_of(channel)->out);
}

static int udp_send_now(helio_channel *channel, const void *packet, size_t length) {
    return helio_udp_out_send_now(&udp_of(channel)->out, packet, length);
}

static inline size_t read_from(udp_channel *udp, int source, helio_datagram *datagrams,
                               size_t limit) {
    const bool was_full = helio_udp_in_read(&udp->in, &udp->sources[source]);
    udp->base.is_aside = source == ASIDE;
    if (!helio_udp_in_has_more(&udp->in)) {
        udp->base.has_more = false;
        return 0;
    }
    const size_t taken = helio_udp_in_take(&udp->in, datagrams, limit);
    udp->base.has_more = was_full || helio_udp_in_has_more(&udp->in);
    return taken;
}

/* A repairer: no flood on one socket keeps it from reading the other. */
static size_t receive_in_turn(udp_channel *udp, helio_datagram *datagrams, size_t limit) {
    udp->turn = udp->turn == DATA ? ASIDE : DATA;
    const size_t taken = read_from(udp, udp->turn, datagrams, limit);
    return taken ? taken : read_from(udp, udp->turn == DATA ? ASIDE : DATA, datagrams, limit);
}

/* Reads whichever socket may have something, by as many messages as the traffic suggests. */
__attribute__((noinline)) static size_t receive_any(udp_channel *udp, helio_datagram *datagrams,
                                                    size_t limit) {
    size_t taken = 0;
    if (helio_udp_in_has_more(&udp->in)) {
        taken = helio_udp_in_take(&udp->in, datagrams, limit);
        udp->base.has_more = true;
        return taken;
    }
    if (udp->config.feedback.family != 0) {
        return receive_in_turn(udp, datagrams, limit);
    }
    if (udp->looks_aside) {
        udp->looks_aside--;
        taken = read_from(udp, ASIDE, datagrams, limit);
        udp->looks_aside = taken ? LOOKS : udp->looks_aside;
    }
    if (!taken) {
        taken = read_from(udp, DATA, datagrams, limit);
    }
    if (!taken && is_transmit(udp) && udp->base.fds[ASIDE] >= 0) {
        taken = read_from(udp, ASIDE, datagrams, limit);
    }
    return taken;
}

/* Only the data socket is to be read, and for one message. */
static inline bool expects_lone(const udp_channel *udp, size_t limit) {
    return limit > 0 && udp->sources[DATA].ask == 1 && !helio_udp_in_has_more(&udp->in) &&
           !udp->looks_aside && !is_transmit(udp) && udp->config.feedback.family == 0;
}

static size_t udp_receive(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    udp_channel *udp = udp_of(channel);
    if (!expects_lone(udp, limit)) {
        return receive_any(udp, datagrams, limit);
    }
    const size_t taken = helio_udp_in_read_lone(&udp->in, &udp->sources[DATA], datagrams);
    channel->is_aside = false;
    channel->has_more = helio_udp_in_has_more(&udp->in);
    return taken;
}

static void udp_tend(helio_channel *channel, int64_t now_ns) {
    udp_channel *udp = udp_of(channel);
    if (now_ns < udp->tend_due_ns) {
        return;
    }
    udp->tend_due_ns = now_ns + TEND_NS;
    helio_udp_in_count_drops(&udp->in, &udp->sources[DATA]);
    if (!helio_udp_in_has_more(&udp->in)) {
        helio_udp_in_tend(&udp->in);
    }
    if (channel->fds[ASIDE] < 0) {
        return;
    }
    if (is_transmit(udp)) {
        helio_udp_in_count_drops(&udp->in, &udp->sources[ASIDE]);
    } else if (udp->looks_aside == 0) {
        udp->looks_aside = !udp->config.raw;
    }
}

/* What is read and not yet taken makes no socket readable. */
static bool udp_before_sleep(helio_channel *channel) {
    return !helio_udp_in_has_more(&udp_of(channel)->in);
}

static uint64_t udp_drops(helio_channel *channel) {
    udp_channel *udp = udp_of(channel);
    helio_udp_in_count_drops(&udp->in, &udp->sources[DATA]);
    return channel->counters.socket_drops;
}

static bool udp_leave(helio_channel *channel, helio_loan *loan) {
    return helio_udp_in_leave(&udp_of(channel)->in, loan);
}

static void udp_stamp(helio_channel *channel, bool on) {
    udp_channel *udp = udp_of(channel);
    helio_udp_stamp(channel->fds[DATA], on);
    helio_udp_in_stamp(&udp->in, on);
}

const helio_driver helio_driver_udp = {
    .name = "udp",
    .open = udp_open,
    .send = udp_send,
    .flush = udp_flush,
    .send_now = udp_send_now,
    .receive = udp_receive,
    .leave = udp_leave,
    .close = udp_close,
    .tend = udp_tend,
    .drops = udp_drops,
    .before_sleep = udp_before_sleep,
    .stamp = udp_stamp,
};
