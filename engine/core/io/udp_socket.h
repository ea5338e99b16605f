/* Sockets of the UDP driver: opened and prepared here, used in udp_in.c and udp_out.c.  Both
 * families, and raw IP in the place of UDP (udp_raw.h).  Every refusal becomes a sentence that says
 * what to do.  Names, addresses and refusals serve TCP too (tcp_socket.c). */
#ifndef HELIO_IO_UDP_SOCKET_H
#define HELIO_IO_UDP_SOCKET_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#include "io/driver.h"

/* An address as the kernel takes it. */
typedef union helio_udp_name {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} helio_udp_name;

/* `interface`: its index, for IPv6 addresses that mean something on one link only. */
helio_udp_name helio_udp_name_of(const helio_address *address, uint32_t interface);
socklen_t helio_udp_name_bytes(const helio_udp_name *name);
/* Written where it is wanted, part by part: whoever copies an address made of parts a moment ago
 * waits until their stores are done. */
static inline void helio_udp_read_address(const helio_udp_name *name, helio_address *out) {
    memset(out, 0, sizeof *out);
    if (name->any.sa_family == AF_INET6) {
        out->family = 6;
        out->port = ntohs(name->v6.sin6_port);
        memcpy(out->ip, &name->v6.sin6_addr, sizeof name->v6.sin6_addr);
    } else {
        out->family = 4;
        out->port = ntohs(name->v4.sin_port);
        memcpy(out->ip, &name->v4.sin_addr, sizeof name->v4.sin_addr);
    }
}
static inline helio_address helio_udp_address(const helio_udp_name *name) {
    helio_address out;
    helio_udp_read_address(name, &out);
    return out;
}

/* Where the channel's packets for `address` go. */
helio_udp_name helio_udp_destination(const helio_channel_config *config,
                                     const helio_address *address);

/* Multicast: fills in the interface the system would choose when none is named, and makes sure
 * there is a way to the group where naming one is not enough (IPv6).  0 or HELIO_ERR_ADDRESS. */
int helio_udp_choose_interface(helio_channel_config *config);

/* Opens the socket of a transmit stream, bound to the interface and a port of the kernel's choice;
 * *local is what others see of it.  Returns the descriptor or a negative HELIO_ERR_*. */
int helio_udp_open_transmit(const helio_channel_config *config, helio_address *local);

/* Opens a second socket of the same address and port, connected to the only destination: the kernel
 * then looks up the way once, and not for each packet.  What others send to the port goes to the
 * first, `socket`.  Returns the descriptor, or -1 when it cannot be had. */
int helio_udp_open_connected(const helio_channel_config *config, int socket);
/* Opens the socket where receivers of other PGM programs are heard: they send to the encapsulation
 * port of the source's address `local`, never to the port of its stream.  Returns the descriptor or
 * a negative HELIO_ERR_*. */
int helio_udp_open_upstream(const helio_channel_config *config, const helio_address *local);

/* Opens the socket data comes to: bound to the group, or to the first of the destinations that can
 * be bound, which goes to *bound.  Returns the descriptor or a negative HELIO_ERR_*. */
int helio_udp_open_data(const helio_channel_config *config, helio_address *bound);

/* Opens the socket feedback leaves from; *local is what the source sees of it.  What it sends to a
 * group goes one hop at most.  Returns the descriptor or a negative HELIO_ERR_*. */
int helio_udp_open_feedback(const helio_channel_config *config, const helio_address *bound,
                            helio_address *local);

/* Says why the address could not be bound, or listened at, by errno.  Returns the error. */
int helio_udp_fail_bind(const helio_address *address);

/* Asks for a receive buffer and returns the bytes got. */
size_t helio_udp_set_receive_buffer(int socket, size_t bytes);

/* Asks the kernel when it took each datagram of the socket in, or asks no more. */
void helio_udp_stamp(int socket, bool on);

/* Datagrams the kernel has dropped because the socket's buffer was full, a counter that wraps. */
uint32_t helio_udp_drops(int socket);

/* Address of a host given by name or number, of `family` (4, 6; 0: either, IPv4 first); port 0.
 * Returns 0 or HELIO_ERR_ADDRESS. */
int helio_udp_resolve(const char *host, uint8_t family, helio_address *out);

/* A network interface of this machine by address or by name, as an address of `family` and an
 * index; "": whatever the system chooses.  Returns 0, HELIO_ERR_OPTION or HELIO_ERR_ADDRESS. */
int helio_udp_find_interface(const char *text, uint8_t family, helio_address *out, uint32_t *index);

#endif
