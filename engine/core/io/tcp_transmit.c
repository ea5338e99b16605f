/* The sending end of RUM: one link per destination, shared with the engine's other channels.
 *
 * Packets for a destination that is not there now are left out: the history has them.  Only the
 * first ones of a channel wait for all destinations, for a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "io/kernel_clock.h"
#include "io/tcp.h"
#include "io/tcp_link.h"
#include "io/tcp_socket.h"

enum {
    PORT_FIRST = 1024,
    READ_BYTES = 16 << 10, /* what comes back is little */
    INBOX_BYTES = 64 << 10,
    ROOM = HELIO_CHANNEL_BATCH,
};

/* Packets that came back, one behind the other; those that find no room will be said again. */
typedef struct tcp_inbox {
    uint8_t *bytes;
    size_t used;
    size_t count;
    helio_datagram packets[HELIO_CHANNEL_BATCH];
} tcp_inbox;

typedef struct tcp_transmit {
    helio_channel base;
    helio_channel_config config;
    helio_tcp_pool *pool;
    helio_tcp_pool *own_pool; /* when it shares none */
    helio_tcp_leg legs[HELIO_CHANNEL_DESTINATIONS_MAX];
    bool is_waiting; /* for its first connections */
    int64_t wait_until_ns;
    unsigned tends;       /* since the last sleep, at most HELIO_TCP_AWAKE */
    tcp_inbox inboxes[2]; /* one is filled while the other is being read */
    unsigned filling;
} tcp_transmit;

static tcp_transmit *transmit_of(helio_channel *channel) {
    return (tcp_transmit *)channel;
}

static helio_tcp_connection *standing(const helio_tcp_leg *leg) {
    return helio_tcp_link_standing(leg->link);
}

/* The channel answers for the connection in the statistics. */
static bool accounts_for(const helio_tcp_leg *leg) {
    return leg->link->legs == leg;
}

/* ---- what links tell ---- */

static void on_packet(void *context, const helio_datagram *packet) {
    tcp_transmit *tcp = context;
    tcp_inbox *inbox = &tcp->inboxes[tcp->filling];
    if (inbox->count == HELIO_CHANNEL_BATCH || INBOX_BYTES - inbox->used < packet->length) {
        return;
    }
    uint8_t *copy = inbox->bytes + inbox->used;
    memcpy(copy, packet->data, packet->length);
    inbox->packets[inbox->count] = *packet;
    inbox->packets[inbox->count++].data = copy;
    inbox->used += packet->length;
}

static void on_event(void *context, helio_channel_event event, const helio_address *peer,
                     const char *why) {
    const tcp_transmit *tcp = context;
    if (tcp->config.tell) {
        tcp->config.tell(tcp->config.context, event, peer, why);
    }
}

/* ---- open, close ---- */

static void transmit_flush(helio_channel *channel);

static void transmit_close(helio_channel *channel) {
    if (!channel) {
        return;
    }
    tcp_transmit *tcp = transmit_of(channel);
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        if (tcp->legs[i].link && standing(&tcp->legs[i])) {
            helio_tcp_flush(tcp->legs[i].link->connection);
        }
        helio_tcp_link_leave(&tcp->legs[i]);
    }
    if (tcp->pool) {
        helio_tcp_pool_release(tcp->pool);
    }
    if (channel->fds[0] >= 0) {
        close(channel->fds[0]);
    }
    free(tcp->inboxes[0].bytes);
    free(tcp->inboxes[1].bytes);
    free(tcp);
}

/* The stream's port is no socket's: it only tells the streams of an engine apart. */
static uint16_t draw_port(const tcp_transmit *tcp, helio_random *random) {
    uint16_t port;
    do {
        port = (uint16_t)(PORT_FIRST + helio_random_below(random, UINT16_MAX + 1 - PORT_FIRST));
    } while (!helio_tcp_pool_is_free(tcp->pool, port));
    return port;
}

static int join_links(tcp_transmit *tcp) {
    const helio_channel_config *config = &tcp->config;
    helio_tcp_link wanted = {
        .interface = config->interface,
        .interface_index = config->interface_index,
        .socket_buffer = config->socket_buffer,
        .limits = {.role = HELIO_RUM_ROLE_TRANSMIT,
                   .packet_bytes = config->packet_bytes,
                   .read_bytes = READ_BYTES,
                   .backlog_bytes = config->backlog_limit,
                   .timeout_ns = config->timeout_ns,
                   .account = config->account,
                   .pairing = config->pool ? helio_tcp_pool_pairing(tcp->pool) : NULL},
    };
    helio_random random;
    helio_random_init(&random, config->seed);
    tcp->base.local.port = draw_port(tcp, &random);
    for (size_t i = 0; i < config->destinations_count; i++) {
        wanted.to = config->destinations[i];
        helio_random_init(&wanted.random, helio_random_next(&random));
        tcp->legs[i] = (helio_tcp_leg){.port = tcp->base.local.port,
                                       .epoll = tcp->base.fds[0],
                                       .counters = &tcp->base.counters,
                                       .context = tcp,
                                       .on_packet = on_packet,
                                       .on_event = on_event};
        if (helio_tcp_link_join(tcp->pool, &wanted, &tcp->legs[i])) {
            return helio_fail(HELIO_ERR_NOMEM, "no memory for a connection");
        }
    }
    return 0;
}

static int set_up(tcp_transmit *tcp) {
    const helio_channel_config *config = &tcp->config;
    tcp->base.fds[0] = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->base.fds[0] < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot create an epoll instance: %s", strerror(errno));
    }
    tcp->inboxes[0].bytes = malloc(INBOX_BYTES);
    tcp->inboxes[1].bytes = malloc(INBOX_BYTES);
    tcp->pool = helio_tcp_pool_acquire(config->pool ? config->pool : &tcp->own_pool);
    if (!tcp->inboxes[0].bytes || !tcp->inboxes[1].bytes || !tcp->pool) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a connection");
    }
    tcp->base.local = helio_address_is_unspecified(&config->interface)
                          ? helio_tcp_seen_from(&config->destinations[0], config->interface_index)
                          : config->interface;
    tcp->is_waiting = config->connect_wait_ns > 0;
    tcp->wait_until_ns = helio_monotonic_ns() + config->connect_wait_ns;
    return join_links(tcp);
}

/* ---- send ---- */

static int transmit_send(helio_channel *channel, const helio_address *to, const void *packet,
                         size_t length, bool stable) {
    tcp_transmit *tcp = transmit_of(channel);
    if (!helio_tcp_fits(channel, tcp->config.packet_bytes, length)) {
        return HELIO_ERR_SYSTEM;
    }
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        helio_tcp_connection *connection = standing(&tcp->legs[i]);
        if (connection && (!to || helio_address_equal(to, &connection->peer))) {
            helio_tcp_queue(connection, packet, length, stable);
            helio_channel_count_sent(channel, length);
        }
    }
    return 0;
}

static int transmit_send_now(helio_channel *channel, const void *packet, size_t length) {
    tcp_transmit *tcp = transmit_of(channel);
    if (!helio_tcp_fits(channel, tcp->config.packet_bytes, length)) {
        return HELIO_ERR_SYSTEM;
    }
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        helio_tcp_connection *connection = standing(&tcp->legs[i]);
        if (connection) {
            helio_tcp_send_now(connection, packet, length);
            helio_channel_count_sent(channel, length);
        }
    }
    return 0;
}

static void transmit_flush(helio_channel *channel) {
    const tcp_transmit *tcp = transmit_of(channel);
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        helio_tcp_connection *connection = standing(&tcp->legs[i]);
        if (connection) {
            helio_tcp_flush(connection);
        }
    }
}

/* The connection has more to send than it should; it is given the chance to get rid of it. */
static bool is_full(const tcp_transmit *tcp, helio_tcp_connection *connection) {
    if (helio_tcp_backlog(connection) <= tcp->config.backlog_bytes) {
        return false;
    }
    helio_tcp_flush(connection);
    return helio_tcp_backlog(connection) > tcp->config.backlog_bytes;
}

static size_t transmit_room(helio_channel *channel) {
    const tcp_transmit *tcp = transmit_of(channel);
    if (tcp->is_waiting) {
        return 0;
    }
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        helio_tcp_connection *connection = standing(&tcp->legs[i]);
        if (connection && is_full(tcp, connection)) {
            return 0;
        }
    }
    return ROOM;
}

/* ---- receive ---- */

/* Sees to a link that may have something to read or to write. */
static void look_at(const helio_tcp_leg *leg) {
    helio_tcp_link_read(leg->link);
    helio_tcp_connection *connection = standing(leg);
    if (connection && helio_tcp_backlog(connection) > 0) {
        helio_tcp_flush(connection);
    }
}

static void look_at_ready(const tcp_transmit *tcp) {
    struct epoll_event ready[HELIO_CHANNEL_DESTINATIONS_MAX];
    const int count = epoll_wait(tcp->base.fds[0], ready, HELIO_CHANNEL_DESTINATIONS_MAX, 0);
    for (int i = 0; i < count; i++) {
        look_at(ready[i].data.ptr);
    }
}

static size_t transmit_receive(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    tcp_transmit *tcp = transmit_of(channel);
    if (tcp->config.destinations_count <= HELIO_TCP_FEW) {
        for (size_t i = 0; i < tcp->config.destinations_count; i++) {
            look_at(&tcp->legs[i]);
        }
    } else {
        look_at_ready(tcp);
    }
    tcp_inbox *inbox = &tcp->inboxes[tcp->filling];
    if (inbox->count == 0) {
        return 0;
    }
    tcp->filling = !tcp->filling;
    tcp->inboxes[tcp->filling].count = tcp->inboxes[tcp->filling].used = 0;
    const size_t count = inbox->count < limit ? inbox->count : limit;
    for (size_t i = 0; i < count; i++) {
        datagrams[i] = inbox->packets[i];
        channel->counters.packets_received++;
        channel->counters.bytes_received += inbox->packets[i].length;
    }
    return count;
}

/* ---- time ---- */

static void wait_for_first(tcp_transmit *tcp, int64_t now) {
    bool all = true;
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        all &= tcp->legs[i].has_stood;
    }
    tcp->is_waiting = !all && now < tcp->wait_until_ns;
}

static void transmit_tend(helio_channel *channel, int64_t now) {
    tcp_transmit *tcp = transmit_of(channel);
    helio_channel_counters *counters = &channel->counters;
    counters->connections = counters->backlog_bytes = counters->kernel_backlog_bytes = 0;
    tcp->tends += tcp->tends < HELIO_TCP_AWAKE;
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        tcp->legs[i].is_looked_at =
            !helio_tcp_must_watch(tcp->config.destinations_count, tcp->tends);
        helio_tcp_link_tend(tcp->legs[i].link, now);
        const helio_tcp_connection *connection = standing(&tcp->legs[i]);
        if (connection && accounts_for(&tcp->legs[i])) {
            counters->connections++;
            counters->backlog_bytes += helio_tcp_backlog(connection);
            counters->kernel_backlog_bytes += helio_tcp_unacknowledged(connection->out->fd);
        }
    }
    if (tcp->is_waiting) {
        wait_for_first(tcp, now);
    }
}

static bool transmit_before_sleep(helio_channel *channel) {
    tcp_transmit *tcp = transmit_of(channel);
    bool is_quiet = tcp->inboxes[tcp->filling].count == 0;
    tcp->tends = 0;
    for (size_t i = 0; i < tcp->config.destinations_count; i++) {
        tcp->legs[i].is_looked_at = false;
        helio_tcp_leg_watch(&tcp->legs[i]);
        const helio_tcp_connection *connection = standing(&tcp->legs[i]);
        is_quiet &= !connection || !helio_tcp_has_frame(connection);
    }
    return is_quiet;
}

static const helio_driver transmit_driver = {
    .name = "tcp",
    .is_connected = true,
    .is_intact = true,
    .open = helio_tcp_transmit_open,
    .send = transmit_send,
    .flush = transmit_flush,
    .send_now = transmit_send_now,
    .receive = transmit_receive,
    .close = transmit_close,
    .room = transmit_room,
    .tend = transmit_tend,
    .before_sleep = transmit_before_sleep,
};

int helio_tcp_transmit_open(const helio_channel_config *config, helio_channel **out) {
    tcp_transmit *tcp = calloc(1, sizeof *tcp);
    if (!tcp) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a connection");
    }
    tcp->base.driver = &transmit_driver;
    tcp->base.fds[0] = tcp->base.fds[1] = -1;
    tcp->config = *config;
    const int error = set_up(tcp);
    if (error) {
        transmit_close(&tcp->base);
        return error;
    }
    tcp->base.counters.buffer_bytes = config->socket_buffer; /* TCP finds its own */
    *out = &tcp->base;
    return 0;
}
