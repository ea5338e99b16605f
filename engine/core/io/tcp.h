/* The two kinds of TCP channel; tcp.c opens either. */
#ifndef HELIO_IO_TCP_H
#define HELIO_IO_TCP_H

#include <errno.h>

#include "io/driver.h"

enum {
    /* With no more connections than this a look at each costs less than asking which are ready. */
    HELIO_TCP_FEW = 4,
    /* After this many calls of tend without a sleep the engine counts as spinning. */
    HELIO_TCP_AWAKE = 16,
};

/* Whether the epoll instance of a channel must watch its connections.  `tends`: calls of tend since the
 * last sleep.  The kernel calls back for each arrival at a watched socket, within the system call of the
 * sender.  A spinning engine that reads each connection directly does not need that. */
static inline bool helio_tcp_must_watch(size_t connections, unsigned tends) {
    return connections > HELIO_TCP_FEW || tends < HELIO_TCP_AWAKE;
}

/* False: a packet of this length is too long for the channel, and is counted as an error. */
static inline bool helio_tcp_fits(helio_channel *channel, size_t longest, size_t length) {
    if (length <= longest) {
        return true;
    }
    channel->counters.send_errors++;
    channel->counters.send_errno = EMSGSIZE;
    return false;
}

/* As helio_driver.open. */
int helio_tcp_transmit_open(const helio_channel_config *config, helio_channel **out);
int helio_tcp_listen_open(const helio_channel_config *config, helio_channel **out);

#endif
