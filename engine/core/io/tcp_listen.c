/* The receiving end of RUM: a listening socket and the connections accepted from it.
 *
 * Connections are read in turn, a fair share each.  When the reader takes nothing, nothing is read:
 * TCP makes the other side wait.
 *
 * A connection is unproven until its hello came and fits.  A limited number may be unproven, in all
 * and of one IP address: then the oldest of them gives way to the newcomer, as it does when there
 * are no descriptors left.  Of the proven ones half may be of one IP address, and none gives
 * way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/math.h"
#include "base/moment.h"
#include "base/random.h"
#include "io/tcp.h"
#include "io/tcp_link.h"
#include "io/tcp_socket.h"

#define REFUSAL_EVERY_NS HELIO_SECOND
#define NO_ACCEPT_NS (100 * HELIO_MILLISECOND) /* when there are no descriptors left */

enum {
    PROVEN_MAX = 1024,
    PROVEN_OF_ADDRESS = PROVEN_MAX / 2,
    UNPROVEN_MAX = 128,
    UNPROVEN_OF_ADDRESS = 32,
    CONNECTIONS_MAX = PROVEN_MAX + UNPROVEN_MAX,
    ACCEPTS = 16,            /* at most, of one look */
    READ_BYTES = 128 << 10,  /* fits the second level cache */
    BACKLOG_BYTES = 1 << 20, /* of feedback: who does not read it is better left alone */
    SHARE_MIN = 8,           /* packets of a connection's turn */
    READY = 64,
};

typedef struct tcp_peer {
    struct tcp_peer *next; /* of those that are gone */
    helio_tcp_connection *connection;
    helio_tcp_watch watched[2]; /* what the epoll instance waits for */
    bool is_standing;           /* and reported */
    uint64_t number;            /* of its coming */
} tcp_peer;

typedef struct tcp_listen {
    helio_channel base;
    helio_channel_config config;
    helio_tcp_limits limits;
    helio_tcp_pool *pool; /* NULL: connections are not paired */
    int listener;
    bool is_watched; /* the listener */
    int64_t accept_after_ns;
    int64_t refusal_after_ns;
    bool is_paused;
    unsigned tends; /* since the last sleep, at most HELIO_TCP_AWAKE */
    helio_random random;
    tcp_peer *peers[CONNECTIONS_MAX]; /* [0..count), in no order */
    uint32_t hosts[CONNECTIONS_MAX];  /* hashes of their IP addresses */
    bool proven[CONNECTIONS_MAX];
    size_t count;
    size_t proven_count;
    uint64_t salt;   /* of the hashes, so that nobody makes two alike */
    uint64_t births; /* connections that ever came */
    size_t turn;     /* who is read first next */
    tcp_peer *gone;  /* packets handed out may still lie in their buffers */
} tcp_listen;

static tcp_listen *listen_of(helio_channel *channel) {
    return (tcp_listen *)channel;
}

static void tell(const tcp_listen *tcp, helio_channel_event event, const helio_address *peer,
                 const char *why) {
    if (tcp->config.tell) {
        tcp->config.tell(tcp->config.context, event, peer, why);
    }
}

/* ---- connections come and go ---- */

static void watch(const tcp_listen *tcp, tcp_peer *peer) {
    helio_tcp_watch_connection(
        peer->watched, tcp->base.fds[0],
        helio_tcp_must_watch(tcp->count, tcp->tends) ? peer->connection : NULL, peer);
}

static void watch_listener(tcp_listen *tcp, bool wanted) {
    struct epoll_event event = {.events = EPOLLIN};
    if (wanted != tcp->is_watched &&
        epoll_ctl(tcp->base.fds[0], wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, tcp->listener,
                  &event) == 0) {
        tcp->is_watched = wanted;
    }
}

static void destroy_gone_one(tcp_listen *tcp) {
    tcp_peer *peer = tcp->gone;
    tcp->gone = peer->next;
    helio_tcp_connection_destroy(peer->connection);
    free(peer);
}

static void destroy_gone(tcp_listen *tcp) {
    while (tcp->gone) {
        destroy_gone_one(tcp);
    }
}

/* Takes out peers[i]. */
static void remove_peer(tcp_listen *tcp, size_t i) {
    tcp_peer *peer = tcp->peers[i];
    helio_tcp_watch_connection(peer->watched, tcp->base.fds[0], NULL, peer);
    tcp->proven_count -= tcp->proven[i];
    tcp->count--;
    tcp->peers[i] = tcp->peers[tcp->count];
    tcp->hosts[i] = tcp->hosts[tcp->count];
    tcp->proven[i] = tcp->proven[tcp->count];
    peer->next = tcp->gone;
    tcp->gone = peer;
    if (peer->connection->state == HELIO_TCP_GREETING) { /* nothing was handed out of it */
        destroy_gone_one(tcp);
    }
}

/* ---- how many there are of one address ---- */

static uint32_t host_of(const tcp_listen *tcp, const helio_address *address) {
    const struct {
        uint64_t salt;
        uint8_t ip[16];
    } key = {tcp->salt, {0}};
    uint8_t bytes[sizeof key];
    memcpy(bytes, &key, sizeof key);
    memcpy(bytes + sizeof key.salt, address->ip, sizeof address->ip);
    const uint64_t hash = helio_hash_fnv1a(bytes, sizeof bytes);
    return (uint32_t)(hash ^ hash >> 32);
}

static size_t count_of(const tcp_listen *tcp, uint32_t host, bool proven) {
    size_t count = 0;
    for (size_t i = 0; i < tcp->count; i++) {
        count += tcp->hosts[i] == host && tcp->proven[i] == proven;
    }
    return count;
}

/* The oldest that is not proven, of one address or (NULL) of all; SIZE_MAX: there is none. */
static size_t oldest_unproven(const tcp_listen *tcp, const uint32_t *host) {
    size_t oldest = SIZE_MAX;
    for (size_t i = 0; i < tcp->count; i++) {
        if (!tcp->proven[i] && (!host || tcp->hosts[i] == *host) &&
            (oldest == SIZE_MAX || tcp->peers[i]->number < tcp->peers[oldest]->number)) {
            oldest = i;
        }
    }
    return oldest;
}

/* Makes room for one more of this address. */
static void make_room(tcp_listen *tcp, uint32_t host) {
    if (count_of(tcp, host, false) >= UNPROVEN_OF_ADDRESS) {
        tcp->base.counters.refused_of_address++;
        remove_peer(tcp, oldest_unproven(tcp, &host));
    } else if (tcp->count - tcp->proven_count >= UNPROVEN_MAX) {
        tcp->base.counters.refused++;
        remove_peer(tcp, oldest_unproven(tcp, NULL));
    }
}

/* Whether the connection at this place may become one of the proven. */
static bool is_excess(const tcp_listen *tcp, size_t i) {
    return tcp->proven_count >= PROVEN_MAX ||
           (tcp->proven_count >= PROVEN_OF_ADDRESS &&
            count_of(tcp, tcp->hosts[i], true) >= PROVEN_OF_ADDRESS);
}

static void add_peer(tcp_listen *tcp, int fd, const helio_address *from) {
    tcp_peer *peer = calloc(1, sizeof *peer);
    if (!peer) {
        close(fd);
        return;
    }
    peer->connection = helio_tcp_connection_create(fd, from, &tcp->limits);
    if (!peer->connection) {
        free(peer);
        return;
    }
    const uint32_t host = host_of(tcp, from);
    make_room(tcp, host);
    watch(tcp, peer);
    peer->number = tcp->births++;
    tcp->hosts[tcp->count] = host;
    tcp->proven[tcp->count] = false;
    tcp->peers[tcp->count++] = peer;
}

/* There are no descriptors left: the oldest that has proven nothing gives its own back. */
static bool free_descriptor(tcp_listen *tcp) {
    const size_t oldest = oldest_unproven(tcp, NULL);
    tcp->base.counters.refused++;
    if (oldest == SIZE_MAX) {
        return false;
    }
    remove_peer(tcp, oldest);
    return true;
}

/* Takes in who has come.  When it cannot, those who come wait in the kernel, and so does the look
 * at them. */
static void accept_all(tcp_listen *tcp, int64_t now_ns) {
    if (now_ns < tcp->accept_after_ns) {
        return;
    }
    for (int i = 0; i < ACCEPTS; i++) {
        helio_address from;
        const int fd = helio_tcp_accept(tcp->listener, tcp->config.socket_buffer, &from);
        if (fd < 0) {
            const bool is_short =
                errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (is_short && !free_descriptor(tcp)) {
                tcp->accept_after_ns = now_ns + NO_ACCEPT_NS;
            }
            if (!is_short || tcp->accept_after_ns > now_ns) {
                break;
            }
            continue;
        }
        add_peer(tcp, fd, &from);
    }
    watch_listener(tcp, now_ns >= tcp->accept_after_ns);
}

static void tell_end(tcp_listen *tcp, const tcp_peer *peer, int64_t now_ns) {
    const helio_tcp_connection *connection = peer->connection;
    if (peer->is_standing) {
        tcp->base.counters.disconnects++;
        tell(tcp, HELIO_CHANNEL_DISCONNECTED, &connection->peer, connection->why);
    } else if (connection->is_stranger && now_ns >= tcp->refusal_after_ns) {
        tcp->refusal_after_ns = now_ns + REFUSAL_EVERY_NS;
        tell(tcp, HELIO_CHANNEL_REFUSED, &connection->peer, connection->why);
    }
}

/* ---- open, close ---- */

static void listen_close(helio_channel *channel) {
    if (!channel) {
        return;
    }
    tcp_listen *tcp = listen_of(channel);
    while (tcp->count > 0) {
        remove_peer(tcp, tcp->count - 1);
    }
    destroy_gone(tcp);
    if (tcp->pool) {
        helio_tcp_pool_release(tcp->pool);
    }
    if (tcp->listener >= 0) {
        watch_listener(tcp, false);
        close(tcp->listener);
    }
    if (channel->fds[0] >= 0) {
        close(channel->fds[0]);
    }
    free(tcp);
}

static int set_up(tcp_listen *tcp) {
    tcp->base.fds[0] = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->base.fds[0] < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot create an epoll instance: %s", strerror(errno));
    }
    tcp->listener = helio_tcp_listen(&tcp->config, &tcp->base.bound);
    if (tcp->listener < 0) {
        return tcp->listener;
    }
    tcp->base.local = tcp->base.bound;
    watch_listener(tcp, true);
    return 0;
}

/* ---- send ---- */

static helio_tcp_connection *find(const tcp_listen *tcp, const helio_address *to) {
    for (size_t i = 0; i < tcp->count; i++) {
        helio_tcp_connection *connection = tcp->peers[i]->connection;
        if (connection->state == HELIO_TCP_STANDING && helio_address_equal(&connection->peer, to)) {
            return connection;
        }
    }
    return NULL;
}

static int listen_send(helio_channel *channel, const helio_address *to, const void *packet,
                       size_t length, bool stable) {
    tcp_listen *tcp = listen_of(channel);
    if (!helio_tcp_fits(channel, tcp->config.packet_bytes, length)) {
        return HELIO_ERR_SYSTEM;
    }
    helio_tcp_connection *connection = to ? find(tcp, to) : NULL;
    if (connection) { /* else it broke, and the next one will hear it */
        helio_tcp_queue(connection, packet, length, stable);
        helio_channel_count_sent(channel, length);
    }
    return 0;
}

static void listen_flush(helio_channel *channel) {
    const tcp_listen *tcp = listen_of(channel);
    for (size_t i = 0; i < tcp->count; i++) {
        if (tcp->peers[i]->connection->queued > 0) {
            helio_tcp_flush(tcp->peers[i]->connection);
        }
    }
}

/* ---- receive ---- */

static bool is_thrown_away(tcp_listen *tcp) {
    return tcp->config.inject_loss > 0 && helio_random_unit(&tcp->random) < tcp->config.inject_loss;
}

static size_t read_now(tcp_listen *tcp, tcp_peer *peer, helio_datagram *datagrams, size_t limit) {
    helio_tcp_connection *connection = peer->connection;
    const size_t count = helio_tcp_read(connection, datagrams, limit);
    if (connection->state == HELIO_TCP_STANDING && !peer->is_standing) {
        peer->is_standing = true;
        tcp->base.counters.connects++;
        tell(tcp, HELIO_CHANNEL_CONNECTED, &connection->peer, "connected");
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_thrown_away(tcp)) {
            tcp->base.counters.bytes_received += datagrams[i].length;
            datagrams[kept++] = datagrams[i];
        }
    }
    tcp->base.counters.packets_received += kept;
    return kept;
}

/* The hello of a connection came, or what should have been one. */
static void on_hello(tcp_listen *tcp, size_t i) {
    const tcp_peer *peer = tcp->peers[i];
    if (peer->connection->was_excess && tcp->proven_count >= PROVEN_MAX) {
        tcp->base.counters.refused++;
    } else if (peer->connection->was_excess) {
        tcp->base.counters.refused_of_address++;
    } else if (peer->connection->state == HELIO_TCP_STANDING) {
        tcp->proven[i] = true;
        tcp->proven_count++;
    }
}

static size_t place_of(const tcp_listen *tcp, const tcp_peer *peer) {
    size_t i = 0;
    while (tcp->peers[i] != peer) {
        i++;
    }
    return i;
}

static size_t read_peer(tcp_listen *tcp, tcp_peer *peer, helio_datagram *datagrams, size_t limit) {
    helio_tcp_connection *connection = peer->connection;
    connection->is_paused = false;
    if (connection->state == HELIO_TCP_GREETING) {
        const size_t place = place_of(tcp, peer);
        connection->is_excess = is_excess(tcp, place);
        const size_t count = read_now(tcp, peer, datagrams, limit);
        on_hello(tcp, place);
        return count;
    }
    return read_now(tcp, peer, datagrams, limit);
}

static size_t share_of(size_t limit, size_t readers) {
    const size_t share = limit / readers;
    return share > SHARE_MIN ? share : SHARE_MIN;
}

/* One after the other from the one whose turn it is. */
static size_t read_in_turn(tcp_listen *tcp, helio_datagram *datagrams, size_t limit) {
    const size_t share = share_of(limit, tcp->count);
    size_t total = 0;
    for (size_t i = 0; i < tcp->count && total < limit; i++) {
        if (tcp->turn >= tcp->count) {
            tcp->turn = 0;
        }
        tcp_peer *peer = tcp->peers[tcp->turn++];
        total += read_peer(tcp, peer, datagrams + total, helio_umin(share, limit - total));
    }
    return total;
}

/* Those that have something; the kernel lists them in turn. */
static size_t read_ready(tcp_listen *tcp, helio_datagram *datagrams, size_t limit) {
    size_t total = 0;
    struct epoll_event ready[READY];
    const int count = epoll_wait(tcp->base.fds[0], ready, READY, 0);
    const size_t share = share_of(limit, count > 0 ? (size_t)count : 1);
    for (int i = 0; i < count && total < limit; i++) {
        tcp_peer *peer = ready[i].data.ptr; /* NULL: the listener, which tend sees to */
        if (peer && !helio_tcp_has_frame(peer->connection)) {
            total += read_peer(tcp, peer, datagrams + total, helio_umin(share, limit - total));
        }
    }
    return total;
}

/* What a share had left in a buffer is no news to the kernel. */
static size_t read_left(tcp_listen *tcp, helio_datagram *datagrams, size_t limit) {
    size_t total = 0;
    const size_t share = share_of(limit, tcp->count);
    for (size_t i = 0; i < tcp->count && total < limit; i++) {
        if (tcp->turn >= tcp->count) {
            tcp->turn = 0;
        }
        tcp_peer *peer = tcp->peers[tcp->turn++];
        if (helio_tcp_has_frame(peer->connection)) {
            total += read_peer(tcp, peer, datagrams + total, helio_umin(share, limit - total));
        }
    }
    return total;
}

static void pause_reading(tcp_listen *tcp) {
    tcp->is_paused = true;
    for (size_t i = 0; i < tcp->count; i++) {
        tcp->peers[i]->connection->is_paused = true;
    }
}

/* Asks epoll to report data that waits in the kernel again. */
static void resume_reading(tcp_listen *tcp) {
    tcp->is_paused = false;
    for (size_t i = 0; i < tcp->count; i++) {
        tcp->peers[i]->connection->is_paused = false;
        watch(tcp, tcp->peers[i]);
    }
}

static size_t listen_receive(helio_channel *channel, helio_datagram *datagrams, size_t limit) {
    tcp_listen *tcp = listen_of(channel);
    if (limit == 0) {
        pause_reading(tcp);
        return 0;
    }
    if (tcp->is_paused) {
        resume_reading(tcp);
    }
    if (tcp->gone) {
        destroy_gone(tcp);
    }
    if (tcp->count <= 1) { /* which takes no turns */
        return tcp->count ? read_peer(tcp, tcp->peers[0], datagrams, limit) : 0;
    }
    if (tcp->count <= HELIO_TCP_FEW) {
        return read_in_turn(tcp, datagrams, limit);
    }
    const size_t left = read_left(tcp, datagrams, limit);
    return left ? left : read_ready(tcp, datagrams, limit);
}

/* Connections that are gone hand out nothing any more, and may have done so before. */
static bool listen_leave(helio_channel *channel, helio_loan *loan) {
    const tcp_listen *tcp = listen_of(channel);
    bool has_left = true;
    for (tcp_peer *peer = tcp->gone; peer && has_left; peer = peer->next) {
        has_left = helio_tcp_leave(peer->connection, loan);
    }
    for (size_t i = 0; i < tcp->count && has_left; i++) {
        has_left = helio_tcp_leave(tcp->peers[i]->connection, loan);
    }
    return has_left;
}

/* ---- time ---- */

static void listen_tend(helio_channel *channel, int64_t now_ns) {
    tcp_listen *tcp = listen_of(channel);
    helio_channel_counters *counters = &channel->counters;
    accept_all(tcp, now_ns);
    tcp->tends += tcp->tends < HELIO_TCP_AWAKE;
    counters->connections = counters->backlog_bytes = 0;
    for (size_t i = 0; i < tcp->count;) {
        tcp_peer *peer = tcp->peers[i];
        helio_tcp_tend(peer->connection, now_ns);
        if (peer->connection->state == HELIO_TCP_BROKEN) {
            tell_end(tcp, peer, now_ns);
            remove_peer(tcp, i);
            continue;
        }
        watch(tcp, peer);
        counters->connections += peer->is_standing;
        counters->backlog_bytes += helio_tcp_backlog(peer->connection);
        i++;
    }
}

static bool listen_before_sleep(helio_channel *channel) {
    tcp_listen *tcp = listen_of(channel);
    bool is_quiet = true;
    tcp->tends = 0;
    for (size_t i = 0; i < tcp->count; i++) {
        tcp_peer *peer = tcp->peers[i];
        watch(tcp, peer);
        is_quiet &= tcp->is_paused || !helio_tcp_has_frame(peer->connection);
    }
    return is_quiet;
}

static const helio_driver listen_driver = {
    .name = "tcp",
    .is_connected = true,
    .is_intact = true,
    .open = helio_tcp_listen_open,
    .send = listen_send,
    .flush = listen_flush,
    .receive = listen_receive,
    .leave = listen_leave,
    .close = listen_close,
    .tend = listen_tend,
    .before_sleep = listen_before_sleep,
};

int helio_tcp_listen_open(const helio_channel_config *config, helio_channel **out) {
    tcp_listen *tcp = calloc(1, sizeof *tcp);
    if (!tcp) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a listening socket");
    }
    tcp->base.driver = &listen_driver;
    tcp->base.fds[0] = tcp->base.fds[1] = tcp->listener = -1;
    tcp->config = *config;
    tcp->limits = (helio_tcp_limits){.role = HELIO_RUM_ROLE_RECEIVE,
                                     .packet_bytes = config->packet_bytes,
                                     .read_bytes = READ_BYTES,
                                     .backlog_bytes = BACKLOG_BYTES,
                                     .timeout_ns = config->timeout_ns,
                                     .account = config->account};
    tcp->pool = config->pool ? helio_tcp_pool_acquire(config->pool) : NULL;
    tcp->limits.pairing = tcp->pool ? helio_tcp_pool_pairing(tcp->pool) : NULL;
    helio_random_init(&tcp->random, config->seed);
    tcp->salt = helio_random_next(&tcp->random);
    const int error = set_up(tcp);
    if (error) {
        listen_close(&tcp->base);
        return error;
    }
    tcp->base.waits = true;
    tcp->base.counters.buffer_bytes = config->socket_buffer; /* TCP finds its own */
    *out = &tcp->base;
    return 0;
}
