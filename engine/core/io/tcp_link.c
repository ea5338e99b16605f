#include "io/tcp_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <heliograph/errors.h>

#include "base/moment.h"
#include "io/tcp_socket.h"
#include "wire/pgm.h"

#define RETRY_FIRST_NS (10 * HELIO_MILLISECOND)
#define RETRY_LAST_NS HELIO_SECOND
#define REFUSAL_EVERY_NS (10 * HELIO_SECOND) /* of a destination that goes on refusing */

struct helio_tcp_pool {
    helio_tcp_pool **slot;
    helio_tcp_link *links;
    helio_tcp_pairing pairing;
    size_t users;
};

/* ---- pool ---- */

helio_tcp_pool *helio_tcp_pool_acquire(helio_tcp_pool **slot) {
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        if (!*slot) {
            return NULL;
        }
        (*slot)->slot = slot;
        helio_tcp_pairing_init(&(*slot)->pairing);
    }
    (*slot)->users++;
    return *slot;
}

helio_tcp_pairing *helio_tcp_pool_pairing(helio_tcp_pool *pool) {
    return &pool->pairing;
}

void helio_tcp_pool_release(helio_tcp_pool *pool) {
    if (--pool->users == 0) {
        *pool->slot = NULL;
        free(pool);
    }
}

bool helio_tcp_pool_is_free(const helio_tcp_pool *pool, uint16_t port) {
    for (const helio_tcp_link *link = pool->links; link; link = link->next) {
        for (const helio_tcp_leg *leg = link->legs; leg; leg = leg->next) {
            if (leg->port == port) {
                return false;
            }
        }
    }
    return true;
}

static bool is_alike(const helio_tcp_link *a, const helio_tcp_link *b) {
    return helio_address_equal(&a->to, &b->to) &&
           helio_address_equal(&a->interface, &b->interface) &&
           a->interface_index == b->interface_index && a->socket_buffer == b->socket_buffer &&
           a->limits.packet_bytes == b->limits.packet_bytes &&
           a->limits.backlog_bytes == b->limits.backlog_bytes &&
           a->limits.timeout_ns == b->limits.timeout_ns;
}

static helio_tcp_link *find(const helio_tcp_pool *pool, const helio_tcp_link *wanted) {
    helio_tcp_link *link = pool->links;
    while (link && !is_alike(link, wanted)) {
        link = link->next;
    }
    return link;
}

int helio_tcp_link_join(helio_tcp_pool *pool, const helio_tcp_link *wanted, helio_tcp_leg *leg) {
    helio_tcp_link *link = find(pool, wanted);
    if (!link) {
        link = malloc(sizeof *link);
        if (!link) {
            return HELIO_ERR_NOMEM;
        }
        *link = *wanted;
        link->pool = pool;
        link->next = pool->links;
        pool->links = link;
    }
    if (link->legs) {
        helio_tcp_link_read(link); /* whether it still stands */
    }
    link->retry_ns = 0; /* a new stream does not wait for the next try */
    helio_tcp_leg **end = &link->legs;
    while (*end) {
        end = &(*end)->next;
    }
    *end = leg;
    leg->link = link;
    leg->next = NULL;
    leg->has_stood = helio_tcp_link_standing(link);
    helio_tcp_leg_watch(leg);
    return 0;
}

static void unlink_from_pool(helio_tcp_link *link) {
    helio_tcp_link **at = &link->pool->links;
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
}

static void unwatch(helio_tcp_leg *leg) {
    helio_tcp_watch_connection(leg->watched, leg->epoll, NULL, leg);
}

void helio_tcp_link_leave(helio_tcp_leg *leg) {
    helio_tcp_link *link = leg->link;
    if (!link) {
        return;
    }
    unwatch(leg);
    helio_tcp_leg **at = &link->legs;
    while (*at != leg) {
        at = &(*at)->next;
    }
    *at = leg->next;
    leg->link = NULL;
    if (!link->legs) {
        unlink_from_pool(link);
        helio_tcp_connection_destroy(link->connection);
        free(link);
    }
}

/* ---- watching ---- */

void helio_tcp_leg_watch(helio_tcp_leg *leg) {
    helio_tcp_watch_connection(leg->watched, leg->epoll,
                               leg->is_looked_at ? NULL : leg->link->connection, leg);
}

/* ---- connections ---- */

static void tell(const helio_tcp_link *link, helio_channel_event event, const char *why) {
    for (helio_tcp_leg *leg = link->legs; leg; leg = leg->next) {
        leg->on_event(leg->context, event, &link->to, why);
    }
}

static void on_standing(helio_tcp_link *link) {
    link->is_standing = true;
    for (helio_tcp_leg *leg = link->legs; leg; leg = leg->next) {
        leg->has_stood = true;
    }
    link->interval_ns = 0;
    link->refusal_told_ns = 0;
    link->legs->counters->connects++;
    tell(link, HELIO_CHANNEL_CONNECTED, "connected");
}

static void count_left_out(const helio_tcp_link *link, helio_tcp_connection *connection) {
    if (connection->left_out) {
        link->legs->counters->send_errors += connection->left_out;
        link->legs->counters->data_errors += connection->left_out;
        link->legs->counters->send_errno = ENOBUFS;
        connection->left_out = 0;
    }
}

/* The next try comes after a while, which is never quite the same for two transmitters. */
static void plan_retry(helio_tcp_link *link, int64_t now_ns) {
    const int64_t doubled_ns = 2 * link->interval_ns;
    link->interval_ns = doubled_ns < RETRY_FIRST_NS  ? RETRY_FIRST_NS
                        : doubled_ns > RETRY_LAST_NS ? RETRY_LAST_NS
                                                     : doubled_ns;
    const uint64_t spread = (uint64_t)link->interval_ns / 4;
    link->retry_ns =
        now_ns + link->interval_ns - (int64_t)helio_random_below(&link->random, spread);
}

static void on_broken(helio_tcp_link *link, int64_t now_ns) {
    helio_tcp_connection *connection = link->connection;
    for (helio_tcp_leg *leg = link->legs; leg; leg = leg->next) {
        unwatch(leg);
    }
    link->connection = NULL;
    if (link->is_standing) {
        link->is_standing = false;
        link->legs->counters->disconnects++;
        tell(link, HELIO_CHANNEL_DISCONNECTED, connection->why);
    } else if (connection->is_stranger &&
               (!link->refusal_told_ns || now_ns - link->refusal_told_ns >= REFUSAL_EVERY_NS)) {
        link->refusal_told_ns = now_ns;
        tell(link, HELIO_CHANNEL_REFUSED, connection->why);
    }
    count_left_out(link, connection);
    helio_tcp_connection_destroy(connection);
    plan_retry(link, now_ns);
}

static void connect_anew(helio_tcp_link *link, int64_t now_ns) {
    const int fd =
        helio_tcp_connect(&link->to, &link->interface, link->interface_index, link->socket_buffer);
    if (fd >= 0) {
        link->connection = helio_tcp_connection_create(fd, &link->to, &link->limits);
    }
    if (!link->connection) {
        plan_retry(link, now_ns);
    }
}

static bool is_broken(const helio_tcp_link *link) {
    return link->connection && link->connection->state == HELIO_TCP_BROKEN;
}

void helio_tcp_link_tend(helio_tcp_link *link, int64_t now_ns) {
    if (!link->connection && now_ns >= link->retry_ns) {
        connect_anew(link, now_ns);
    }
    if (link->connection) {
        helio_tcp_link_read(link);
        helio_tcp_tend(link->connection, now_ns);
        count_left_out(link, link->connection);
    }
    if (is_broken(link)) {
        on_broken(link, now_ns);
    }
    for (helio_tcp_leg *leg = link->legs; leg; leg = leg->next) {
        helio_tcp_leg_watch(leg);
    }
}

/* ---- what comes back ---- */

static helio_tcp_leg *leg_of(const helio_tcp_link *link, const helio_datagram *packet) {
    uint16_t port;
    if (link->legs->next && helio_pgm_peek_port(packet->data, packet->length, &port)) {
        for (helio_tcp_leg *leg = link->legs; leg; leg = leg->next) {
            if (leg->port == port) {
                return leg;
            }
        }
    }
    return link->legs; /* whose stream will refuse it, and count that */
}

void helio_tcp_link_read(helio_tcp_link *link) {
    helio_tcp_connection *connection = link->connection;
    if (!connection || connection->state == HELIO_TCP_BROKEN) {
        return;
    }
    helio_datagram packets[HELIO_CHANNEL_BATCH];
    const size_t count = helio_tcp_read(connection, packets, HELIO_CHANNEL_BATCH);
    for (size_t i = 0; i < count; i++) {
        helio_tcp_leg *leg = leg_of(link, &packets[i]);
        leg->on_packet(leg->context, &packets[i]);
    }
    if (connection->state == HELIO_TCP_STANDING && !link->is_standing) {
        on_standing(link);
    }
}
