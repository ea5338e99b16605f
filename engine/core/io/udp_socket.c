#include "io/udp_socket.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

struct sockaddr_in helio_udp_sockaddr(const helio_address *address) {
    struct sockaddr_in out = {.sin_family = AF_INET, .sin_port = htons(address->port)};
    memcpy(&out.sin_addr, address->ip, sizeof out.sin_addr);
    return out;
}

helio_address helio_udp_address(const struct sockaddr_in *address) {
    helio_address out = {.family = 4, .port = ntohs(address->sin_port)};
    memcpy(out.ip, &address->sin_addr, sizeof address->sin_addr);
    return out;
}

/* ---- refusals ---- */

static int fail_system(const char *what) {
    const bool permission = errno == EPERM || errno == EACCES;
    return helio_fail(permission ? HELIO_ERR_PERMISSION : HELIO_ERR_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

static int fail_bind(const helio_address *address) {
    char text[HELIO_ADDRESS_TEXT];
    switch (errno) {
    case EADDRINUSE:
        return helio_fail(HELIO_ERR_ADDRESS,
                          "%s is in use by another program or by a receiver with other options; "
                          "choose another port",
                          helio_address_format(address, text));
    case EADDRNOTAVAIL:
        return helio_fail(HELIO_ERR_ADDRESS, "%s is not an address of this machine",
                          helio_address_format_ip(address, text));
    case EACCES:
        return helio_fail(HELIO_ERR_PERMISSION, "not allowed to bind %s; choose a port above 1023",
                          helio_address_format(address, text));
    default:
        return helio_fail(HELIO_ERR_ADDRESS, "cannot bind %s: %s",
                          helio_address_format(address, text), strerror(errno));
    }
}

static int fail_route(const helio_address *destination) {
    char text[HELIO_ADDRESS_TEXT];
    helio_address_format_ip(destination, text);
    if (!helio_address_is_multicast(destination)) {
        return helio_fail(HELIO_ERR_ADDRESS, "no way to %s: %s", text, strerror(errno));
    }
    return helio_fail(HELIO_ERR_ADDRESS,
                      "no multicast route to group %s (%s); name the network interface by its "
                      "address with interface=",
                      text, strerror(errno));
}

static int fail_membership(const helio_channel_config *config) {
    char group[HELIO_ADDRESS_TEXT];
    char interface[HELIO_ADDRESS_TEXT];
    helio_address_format_ip(&config->destinations[0], group);
    if (helio_address_is_unspecified(&config->interface)) {
        return helio_fail(
            HELIO_ERR_ADDRESS,
            "cannot join group %s (%s); name the network interface by its address with interface=",
            group, strerror(errno));
    }
    helio_address_format_ip(&config->interface, interface);
    if (errno == ENODEV || errno == EADDRNOTAVAIL) {
        return helio_fail(HELIO_ERR_ADDRESS, "interface=%s is not an address of this machine",
                          interface);
    }
    return helio_fail(HELIO_ERR_ADDRESS, "cannot join group %s on interface %s: %s", group,
                      interface, strerror(errno));
}

static int give_up(int socket, int error) {
    close(socket);
    return error;
}

/* ---- steps ---- */

static int open_socket(void) {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? fail_system("open a UDP socket") : fd;
}

static int set_option(int socket, int level, int name, int value) {
    return setsockopt(socket, level, name, &value, sizeof value);
}

static int bind_to(int socket, const helio_address *address) {
    const struct sockaddr_in at = helio_udp_sockaddr(address);
    return bind(socket, (const struct sockaddr *)&at, sizeof at);
}

static helio_address name_of(int socket) {
    struct sockaddr_in at = {0};
    socklen_t length = sizeof at;
    getsockname(socket, (struct sockaddr *)&at, &length);
    return helio_udp_address(&at);
}

/* The address the kernel would send from: that of a socket connected to the destination.  Nothing
 * is sent. */
static int source_towards(const helio_channel_config *config, helio_address *out) {
    const int probe = open_socket();
    if (probe < 0) {
        return probe;
    }
    const helio_address *destination = &config->destinations[0];
    const struct sockaddr_in to = helio_udp_sockaddr(destination);
    if (connect(probe, (const struct sockaddr *)&to, sizeof to) < 0) {
        return give_up(probe, fail_route(destination));
    }
    *out = name_of(probe);
    out->port = 0;
    close(probe);
    return 0;
}

size_t helio_udp_set_receive_buffer(int socket, size_t bytes) {
    const int wanted = (int)bytes;
    int got = 0;
    socklen_t length = sizeof got;
    set_option(socket, SOL_SOCKET, SO_RCVBUF, wanted);
    getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &got, &length);
    if (got / 2 < wanted) { /* the kernel counts its own overhead in, twice what was asked for */
        set_option(socket, SOL_SOCKET, SO_RCVBUFFORCE, wanted);
        getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &got, &length);
    }
    return (size_t)got / 2;
}

/* ---- the three sockets ---- */

static int prepare_multicast_send(int socket, const helio_channel_config *config,
                                  const helio_address *from) {
    const struct sockaddr_in interface = helio_udp_sockaddr(from);
    if (setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &interface.sin_addr,
                   sizeof interface.sin_addr) < 0) {
        return fail_membership(config);
    }
    if (set_option(socket, IPPROTO_IP, IP_MULTICAST_TTL, config->ttl) < 0 ||
        set_option(socket, IPPROTO_IP, IP_MULTICAST_LOOP, 1) < 0) {
        return fail_system("prepare a socket for multicast");
    }
    return 0;
}

int helio_udp_open_transmit(const helio_channel_config *config, helio_address *local) {
    helio_address from = config->interface;
    int error = 0;
    if (helio_address_is_unspecified(&from)) {
        error = source_towards(config, &from);
        if (error) {
            return error;
        }
    }
    const int socket = open_socket();
    if (socket < 0) {
        return socket;
    }
    from.port = 0;
    /* A unicast stream may have destinations behind several interfaces: the kernel chooses for
     * each. */
    const helio_address any = {.family = 4};
    const bool bound = config->multicast || !helio_address_is_unspecified(&config->interface);
    if (bind_to(socket, bound ? &from : &any) < 0) {
        return give_up(socket, fail_bind(&from));
    }
    if (config->multicast) {
        error = prepare_multicast_send(socket, config, &from);
        if (error) {
            return give_up(socket, error);
        }
    }
    set_option(socket, SOL_SOCKET, SO_SNDBUF, (int)config->socket_buffer);
    set_option(socket, SOL_SOCKET, SO_RXQ_OVFL, 1);
    *local = from;
    local->port = name_of(socket).port;
    return socket;
}

int helio_udp_open_upstream(const helio_channel_config *config, const helio_address *local) {
    helio_address at = *local;
    at.port = config->destinations[0].port;
    const int socket = open_socket();
    if (socket < 0) {
        return socket;
    }
    /* Receivers of the group on this machine have the port as well, on other addresses or any. */
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind_to(socket, &at) < 0) {
        char text[HELIO_ADDRESS_TEXT];
        const int error =
            errno == EADDRINUSE
                ? helio_fail(HELIO_ERR_ADDRESS,
                             "upstream: %s is taken by another program; what receivers of other "
                             "PGM programs ask for cannot be heard there",
                             helio_address_format(&at, text))
                : fail_bind(&at);
        return give_up(socket, error);
    }
    helio_udp_set_receive_buffer(socket, config->socket_buffer);
    return socket;
}

static int join(int socket, const helio_channel_config *config) {
    const struct sockaddr_in group = helio_udp_sockaddr(&config->destinations[0]);
    const struct sockaddr_in interface = helio_udp_sockaddr(&config->interface);
    const struct ip_mreqn membership = {.imr_multiaddr = group.sin_addr,
                                        .imr_address = interface.sin_addr};
    if (setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) < 0) {
        return fail_membership(config);
    }
    /* Only what this socket joined, not what others on the machine did. */
    set_option(socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    return 0;
}

/* Binds the first destination that is this machine's and free. */
static int bind_first(int socket, const helio_channel_config *config, helio_address *bound) {
    int in_use = -1;
    for (size_t i = 0; i < config->destinations_count; i++) {
        if (bind_to(socket, &config->destinations[i]) == 0) {
            *bound = config->destinations[i];
            return 0;
        }
        if (errno == EADDRINUSE && in_use < 0) {
            in_use = (int)i;
        }
    }
    if (in_use >= 0) {
        errno = EADDRINUSE;
        return fail_bind(&config->destinations[in_use]);
    }
    return fail_bind(&config->destinations[0]);
}

int helio_udp_open_data(const helio_channel_config *config, helio_address *bound) {
    const int socket = open_socket();
    if (socket < 0) {
        return socket;
    }
    int error = 0;
    if (config->multicast) {
        /* Any number of receivers on one machine may listen to a group. */
        set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    error = bind_first(socket, config, bound);
    if (!error && config->multicast) {
        error = join(socket, config);
    }
    if (error) {
        return give_up(socket, error);
    }
    set_option(socket, SOL_SOCKET, SO_RXQ_OVFL, 1);
    if (config->kernel_stamps) {
        set_option(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    }
    return socket;
}

int helio_udp_open_feedback(const helio_channel_config *config, const helio_address *bound,
                            helio_address *local) {
    helio_address from = config->multicast ? config->interface : *bound;
    if (helio_address_is_unspecified(&from) && config->multicast) {
        const int error = source_towards(config, &from);
        if (error) {
            return error;
        }
    }
    from.family = 4;
    from.port = 0;
    const int socket = open_socket();
    if (socket < 0) {
        return socket;
    }
    if (bind_to(socket, &from) < 0) {
        return give_up(socket, fail_bind(&from));
    }
    *local = name_of(socket);
    return socket;
}

int helio_udp_resolve(const char *host, helio_address *out) {
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(host, NULL, &hints, &found);
    if (error) {
        return helio_fail(HELIO_ERR_ADDRESS, "host %s is not known: %s", host, gai_strerror(error));
    }
    *out = helio_udp_address((const struct sockaddr_in *)(const void *)found->ai_addr);
    freeaddrinfo(found);
    return 0;
}
