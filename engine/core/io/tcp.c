/* The TCP driver: RUM.  A transmitter connects to each of its destinations (tcp_transmit.c, by
 * links of tcp_link.c); a receiver listens and accepts (tcp_listen.c); both speak through
 * tcp_connection.c.
 *
 * The protocol above is the one of any network.  While a connection stands nothing is lost, so its
 * requests for repair have nothing to do; after a break they ask for what the break swallowed, and
 * the history has it. */
#include "io/tcp.h"

static int tcp_open(const helio_channel_config *config, helio_channel **out) {
    return config->role == HELIO_CHANNEL_TRANSMIT ? helio_tcp_transmit_open(config, out)
                                                  : helio_tcp_listen_open(config, out);
}

/* A channel's own driver has the rest. */
const helio_driver helio_driver_tcp = {
    .name = "tcp", .is_connected = true, .is_intact = true, .open = tcp_open};
