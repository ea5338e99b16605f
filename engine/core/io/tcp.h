/* The two kinds of TCP channel; tcp.c opens either. */
#ifndef HELIO_IO_TCP_H
#define HELIO_IO_TCP_H

#include "io/driver.h"

enum {
    /* With no more connections than this a look at each costs less than asking which are ready. */
    HELIO_TCP_FEW = 4,
    /* After this many calls of tend without a sleep an engine counts as one that spins. */
    HELIO_TCP_AWAKE = 16,
};

/* Whether the epoll instance of a channel with so many connections is to watch them, this many calls of
 * tend after the last sleep.  The kernel tells an epoll instance of each arrival, and whoever sends waits
 * for that; where the engine spins and looks at each connection itself, nobody wants to know. */
static inline bool helio_tcp_must_watch(size_t connections, unsigned tends) {
    return connections > HELIO_TCP_FEW || tends < HELIO_TCP_AWAKE;
}

/* As helio_driver.open. */
int helio_tcp_transmit_open(const helio_channel_config *config, helio_channel **out);
int helio_tcp_listen_open(const helio_channel_config *config, helio_channel **out);

#endif
