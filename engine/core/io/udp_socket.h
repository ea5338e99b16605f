/* Sockets of the UDP driver: opened and prepared here, used in udp.c.  Every refusal becomes a
 * sentence that says what to do. */
#ifndef HELIO_IO_UDP_SOCKET_H
#define HELIO_IO_UDP_SOCKET_H

#include <netinet/in.h>

#include "io/driver.h"

struct sockaddr_in helio_udp_sockaddr(const helio_address *address);
helio_address helio_udp_address(const struct sockaddr_in *address);

/* Opens the socket of a transmit stream, bound to the interface and a port of the kernel's choice;
 * *local is what others see of it.  Returns the descriptor or a negative HELIO_ERR_*. */
int helio_udp_open_transmit(const helio_channel_config *config, helio_address *local);

/* Opens the socket where receivers of other PGM programs are heard: they send to the encapsulation
 * port of the source's address `local`, never to the port of its stream.  Returns the descriptor or
 * a negative HELIO_ERR_*. */
int helio_udp_open_upstream(const helio_channel_config *config, const helio_address *local);

/* Opens the socket data comes to: bound to the group, or to the first of the destinations that can
 * be bound, which goes to *bound.  Returns the descriptor or a negative HELIO_ERR_*. */
int helio_udp_open_data(const helio_channel_config *config, helio_address *bound);

/* Opens the socket feedback leaves from; *local is what the source sees of it.  Returns the
 * descriptor or a negative HELIO_ERR_*. */
int helio_udp_open_feedback(const helio_channel_config *config, const helio_address *bound,
                            helio_address *local);

/* Asks for a receive buffer and returns the bytes got. */
size_t helio_udp_set_receive_buffer(int socket, size_t bytes);

/* IPv4 address of a host given by name or number; port 0.  Returns 0 or HELIO_ERR_ADDRESS. */
int helio_udp_resolve(const char *host, helio_address *out);

#endif
