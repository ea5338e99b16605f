/* PGM straight over IP (protocol 113), as RFC 3208 has it, where UDP encapsulation is the deployed
 * way.  The kernel gives every raw socket every packet of the protocol, so what UDP ports do there
 * is done here with the ports of the PGM header: a filter in the kernel keeps other sessions out of
 * the socket's buffer, and each packet is looked at again when it is read. */
#ifndef HELIO_IO_UDP_RAW_H
#define HELIO_IO_UDP_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/driver.h"

/* Opens a raw socket.  Returns the descriptor, HELIO_ERR_PERMISSION or HELIO_ERR_SYSTEM. */
int helio_udp_raw_open(uint8_t family);

/* The data-source port of a stream that has no socket port to borrow. */
uint16_t helio_udp_raw_port(uint64_t seed);

/* Lets only packets through that have `port` where the channel's role looks for it. */
void helio_udp_raw_filter(int socket, const helio_channel_config *config, uint16_t port);
/* Lets nothing through. */
void helio_udp_raw_send_only(int socket);

/* Finds the PGM packet of a datagram read: leaves the IPv4 header out.  False: the lengths are
 * wrong, or it is of another session than `port`'s. */
bool helio_udp_raw_strip(const helio_channel_config *config, uint16_t port, helio_datagram *packet);

/* Whether network elements are to look at the packet (RFC 3208, sections 8 and 9: Router Alert). */
bool helio_udp_raw_alerts(const void *packet, size_t length);

#endif
