/* Sockets of the TCP driver: opened and prepared here, used in tcp_listen.c and tcp_link.c.  None
 * blocks, and none waits to fill segments.  Every refusal becomes a sentence that says what to
 * do. */
#ifndef HELIO_IO_TCP_SOCKET_H
#define HELIO_IO_TCP_SOCKET_H

#include "io/driver.h"

/* Opens a listening socket on the first of the destinations that can be bound, which goes to
 * *bound.  Returns the descriptor or a negative HELIO_ERR_*. */
int helio_tcp_listen(const helio_channel_config *config, helio_address *bound);

/* Takes the next connection made to a listening socket; -1 with errno when there is none. */
int helio_tcp_accept(int listener, size_t socket_buffer, helio_address *peer);

/* Begins to connect, from `interface` unless that is no address.  Returns the descriptor, or -1
 * with errno. */
int helio_tcp_connect(const helio_address *to, const helio_address *interface,
                      uint32_t interface_index, size_t socket_buffer);

/* Bytes the kernel has taken and the other side has not acknowledged. */
size_t helio_tcp_unacknowledged(int socket);

/* The address this host is seen from at `destination`, port 0; the loopback when there is no way
 * there now. */
helio_address helio_tcp_seen_from(const helio_address *destination, uint32_t interface_index);

#endif
