/* A transmitter's way to one destination: a connection that is made, and made again whenever it
 * breaks, after 10 ms at first and 1 s at last.
 *
 * Transmit channels of one engine to the same destination, with the same limits, share a link: many
 * streams, one connection.  The links of an engine are its pool.  What comes back is a control
 * packet of some stream and goes to the channel of that stream by its port, which is unique within
 * the pool. */
#ifndef HELIO_IO_TCP_LINK_H
#define HELIO_IO_TCP_LINK_H

#include "base/random.h"
#include "io/tcp_connection.h"

typedef struct helio_tcp_link helio_tcp_link;
typedef struct helio_tcp_pool helio_tcp_pool;

/* Callbacks of a channel for events of its link. */
typedef struct helio_tcp_leg {
    helio_tcp_link *link;
    struct helio_tcp_leg *next; /* of the link; the first accounts for it */
    bool has_stood;             /* the link, at some time since it was joined */
    uint16_t port;              /* of the channel's stream */
    int epoll;                  /* watches the connection for the channel */
    helio_tcp_watch watched[2]; /* and how */
    bool is_looked_at; /* the channel reads it directly: the epoll instance does not watch it */
    helio_channel_counters *counters;
    void *context;
    void (*on_packet)(void *context, const helio_datagram *packet);
    void (*on_event)(void *context, helio_channel_event event, const helio_address *peer,
                     const char *why);
} helio_tcp_leg;

struct helio_tcp_link {
    helio_tcp_link *next; /* of the pool */
    helio_tcp_pool *pool;
    helio_tcp_leg *legs;
    helio_address to, interface;
    uint32_t interface_index;
    helio_tcp_limits limits;
    size_t socket_buffer;

    helio_tcp_connection *connection; /* NULL between tries */
    bool is_standing;
    helio_random random;
    int64_t retry_ns; /* 0: at once */
    int64_t interval_ns;
    int64_t refusal_told_ns; /* 0: never */
};

/* The pool in *slot, made when there is none. NULL: no memory. */
helio_tcp_pool *helio_tcp_pool_acquire(helio_tcp_pool **slot);
/* Connections of its instance that may be paired. */
helio_tcp_pairing *helio_tcp_pool_pairing(helio_tcp_pool *pool);
/* Frees it when no link is left. */
void helio_tcp_pool_release(helio_tcp_pool *pool);
/* No stream of the pool has the port. */
bool helio_tcp_pool_is_free(const helio_tcp_pool *pool, uint16_t port);

/* The connection, when packets can be sent on it now; else NULL. */
static inline helio_tcp_connection *helio_tcp_link_standing(const helio_tcp_link *link) {
    return link->is_standing && link->connection->state == HELIO_TCP_STANDING ? link->connection
                                                                              : NULL;
}

/* Joins a leg to the link like `wanted` (to, interface and its index, limits, socket_buffer,
 * random), or to a new one.  0 or NOMEM. */
int helio_tcp_link_join(helio_tcp_pool *pool, const helio_tcp_link *wanted, helio_tcp_leg *leg);
/* The last leg to go closes the link. */
void helio_tcp_link_leave(helio_tcp_leg *leg);

/* Reads what came back and gives it to the legs. */
void helio_tcp_link_read(helio_tcp_link *link);
/* Connects, sees to the connection, tells. */
void helio_tcp_link_tend(helio_tcp_link *link, int64_t now_ns);
/* Brings what the leg's epoll waits for up to date. */
void helio_tcp_leg_watch(helio_tcp_leg *leg);

#endif
