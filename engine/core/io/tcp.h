/* The two kinds of TCP channel; tcp.c opens either. */
#ifndef HELIO_IO_TCP_H
#define HELIO_IO_TCP_H

#include "io/driver.h"

enum {
    /* With no more connections than this a look at each costs less than asking which are ready. */
    HELIO_TCP_FEW = 4,
};

/* As helio_driver.open. */
int helio_tcp_transmit_open(const helio_channel_config *config, helio_channel **out);
int helio_tcp_listen_open(const helio_channel_config *config, helio_channel **out);

#endif
