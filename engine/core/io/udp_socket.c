#include "io/udp_socket.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "io/udp_raw.h"

/* ---- addresses ---- */

static bool is_of_one_link(const uint8_t ip[16]) {
    return (ip[0] == 0xFE && (ip[1] & 0xC0) == 0x80) || /* fe80::/10 */
           (ip[0] == 0xFF && (ip[1] & 0x0F) <= 2);      /* groups of an interface or a link */
}

helio_udp_name helio_udp_name_of(const helio_address *address, uint32_t interface) {
    helio_udp_name out = {.v6 = {0}};
    if (address->family == 6) {
        out.v6.sin6_family = AF_INET6;
        out.v6.sin6_port = htons(address->port);
        out.v6.sin6_scope_id = is_of_one_link(address->ip) ? interface : 0;
        memcpy(&out.v6.sin6_addr, address->ip, sizeof out.v6.sin6_addr);
    } else {
        out.v4.sin_family = AF_INET;
        out.v4.sin_port = htons(address->port);
        memcpy(&out.v4.sin_addr, address->ip, sizeof out.v4.sin_addr);
    }
    return out;
}

socklen_t helio_udp_name_bytes(const helio_udp_name *name) {
    return name->any.sa_family == AF_INET6 ? sizeof name->v6 : sizeof name->v4;
}

helio_udp_name helio_udp_destination(const helio_channel_config *config,
                                     const helio_address *address) {
    helio_address to = *address;
    if (config->raw) {
        to.port = 0;
    }
    return helio_udp_name_of(&to, config->interface_index);
}

/* ---- refusals ---- */

static int fail_system(const char *what) {
    const bool permission = errno == EPERM || errno == EACCES;
    return helio_fail(permission ? HELIO_ERR_PERMISSION : HELIO_ERR_SYSTEM, "cannot %s: %s", what,
                      strerror(errno));
}

int helio_udp_fail_bind(const helio_address *address) {
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

static int fail_route(const helio_channel_config *config) {
    char text[HELIO_ADDRESS_TEXT];
    helio_address_format_ip(&config->destinations[0], text);
    if (!config->multicast) {
        return helio_fail(HELIO_ERR_ADDRESS, "no route to %s: %s", text, strerror(errno));
    }
    if (config->interface_index) {
        return helio_fail(HELIO_ERR_ADDRESS,
                          "no multicast route to group %s on the network interface named (%s)",
                          text, strerror(errno));
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

static uint8_t family_of(const helio_channel_config *config) {
    return config->destinations[0].family;
}

static int open_datagrams(uint8_t family) {
    const int fd =
        socket(family == 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return fd < 0 ? fail_system("open a UDP socket") : fd;
}

static int set_option(int socket, int level, int name, int value) {
    return setsockopt(socket, level, name, &value, sizeof value);
}

static int open_socket(const helio_channel_config *config) {
    const uint8_t family = family_of(config);
    const int fd = config->raw ? helio_udp_raw_open(family) : open_datagrams(family);
    if (fd >= 0 && family == 6) {
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    return fd;
}

static int bind_to(int socket, const helio_channel_config *config, const helio_address *address) {
    const helio_udp_name at = helio_udp_destination(config, address);
    return bind(socket, &at.any, helio_udp_name_bytes(&at));
}

static helio_address name_of(int socket) {
    helio_udp_name at = {.v6 = {0}};
    socklen_t length = sizeof at;
    getsockname(socket, &at.any, &length);
    return helio_udp_address(&at);
}

/* The address the kernel would send from: that of a socket connected to the destination.  Nothing
 * is sent. */
static int source_towards(const helio_channel_config *config, helio_address *out) {
    const int probe = open_datagrams(family_of(config));
    if (probe < 0) {
        return probe;
    }
    const helio_udp_name to = helio_udp_name_of(&config->destinations[0], config->interface_index);
    if (config->interface_index) {
        set_option(probe, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)config->interface_index);
    }
    if (connect(probe, &to.any, helio_udp_name_bytes(&to)) < 0) {
        return give_up(probe, fail_route(config));
    }
    *out = name_of(probe);
    out->port = 0;
    close(probe);
    return 0;
}

int helio_udp_choose_interface(helio_channel_config *config) {
    const bool is_given = !helio_address_is_unspecified(&config->interface);
    if (!config->multicast || (is_given && family_of(config) == 4)) {
        return 0;
    }
    helio_address source;
    const int error = source_towards(config, &source);
    if (error || is_given) {
        return error;
    }
    char text[HELIO_ADDRESS_TEXT];
    return helio_udp_find_interface(helio_address_format_ip(&source, text), source.family,
                                    &config->interface, &config->interface_index);
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

uint32_t helio_udp_drops(int socket) {
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof info;
    getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info, &length);
    return info[SK_MEMINFO_DROPS];
}

/* ---- the sockets ---- */

static int prepare_multicast_send(int socket, const helio_channel_config *config,
                                  const helio_address *from) {
    const helio_udp_name interface = helio_udp_name_of(from, 0);
    const bool six = from->family == 6;
    const int error =
        six ? set_option(socket, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)config->interface_index)
            : setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &interface.v4.sin_addr,
                         sizeof interface.v4.sin_addr);
    if (error < 0) {
        return fail_membership(config);
    }
    const int level = six ? IPPROTO_IPV6 : IPPROTO_IP;
    if (set_option(socket, level, six ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL, config->ttl) < 0 ||
        set_option(socket, level, six ? IPV6_MULTICAST_LOOP : IP_MULTICAST_LOOP, 1) < 0) {
        return fail_system("prepare a socket for multicast");
    }
    return 0;
}

int helio_udp_open_transmit(const helio_channel_config *config, helio_address *local) {
    helio_address from = config->interface;
    if (helio_address_is_unspecified(&from)) { /* unicast */
        const int error = source_towards(config, &from);
        if (error) {
            return error;
        }
    }
    const int socket = open_socket(config);
    if (socket < 0) {
        return socket;
    }
    from.port = 0;
    /* A unicast stream may have destinations behind several interfaces: the kernel chooses for
     * each. */
    const helio_address any = {.family = family_of(config)};
    const bool bound = config->multicast || !helio_address_is_unspecified(&config->interface);
    if (bind_to(socket, config, bound ? &from : &any) < 0) {
        return give_up(socket, helio_udp_fail_bind(&from));
    }
    if (config->multicast) {
        const int error = prepare_multicast_send(socket, config, &from);
        if (error) {
            return give_up(socket, error);
        }
    }
    set_option(socket, SOL_SOCKET, SO_SNDBUF, (int)config->socket_buffer);
    *local = from;
    local->port = config->raw ? helio_udp_raw_port(config->seed) : name_of(socket).port;
    if (config->raw) {
        helio_udp_raw_filter(socket, config, local->port);
    }
    return socket;
}

int helio_udp_open_connected(const helio_channel_config *config, int socket) {
    if (config->raw || config->destinations_count != 1) {
        return -1;
    }
    const helio_udp_name destination = helio_udp_destination(config, &config->destinations[0]);
    const helio_address here = name_of(socket);
    const int fd = open_socket(config);
    if (fd < 0) {
        return -1;
    }
    /* Two sockets share the port for as long as it takes to connect one, and with nobody else. */
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    const bool ok = bind_to(fd, config, &here) == 0 &&
                    (!config->multicast || prepare_multicast_send(fd, config, &here) == 0) &&
                    connect(fd, &destination.any, helio_udp_name_bytes(&destination)) == 0;
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 0);
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 0);
    if (!ok) {
        close(fd);
        return -1;
    }
    set_option(fd, SOL_SOCKET, SO_SNDBUF, (int)config->socket_buffer);
    return fd;
}

/* Whether some socket has the port at every address of this machine: then an address of the
 * loopback that nobody would name is taken too.  IPv4 only. */
static bool is_bound_everywhere(const helio_channel_config *config, uint16_t port) {
    const helio_address unlikely = {.family = 4, .port = port, .ip = {127, 113, 94, 4}};
    const int probe = family_of(config) == 4 ? open_datagrams(4) : -1;
    const bool is_taken =
        probe >= 0 && bind_to(probe, config, &unlikely) < 0 && errno == EADDRINUSE;
    if (probe >= 0) {
        close(probe);
    }
    return is_taken;
}

/* Receivers of other programs may have the port too, on the group or on any address, so it is
 * shared with those that share.  One that has this very address would get what is meant for us, or
 * lose it to us: that is refused. */
static int bind_shared(int socket, const helio_channel_config *config, const helio_address *at) {
    int bound = bind_to(socket, config, at);
    const bool is_shared =
        bound < 0 && errno == EADDRINUSE && is_bound_everywhere(config, at->port);
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (is_shared) {
        bound = bind_to(socket, config, at);
    }
    return bound;
}

int helio_udp_open_upstream(const helio_channel_config *config, const helio_address *local) {
    helio_address at = *local;
    at.port = config->destinations[0].port;
    const int socket = open_socket(config);
    if (socket < 0) {
        return socket;
    }
    if (bind_shared(socket, config, &at) < 0) {
        char text[HELIO_ADDRESS_TEXT];
        const int error =
            errno == EADDRINUSE
                ? helio_fail(HELIO_ERR_ADDRESS,
                             "upstream: %s is in use by another program; requests from receivers "
                             "of other PGM programs cannot be received there",
                             helio_address_format(&at, text))
                : helio_udp_fail_bind(&at);
        return give_up(socket, error);
    }
    helio_udp_set_receive_buffer(socket, config->socket_buffer);
    return socket;
}

static int join4(int socket, const helio_channel_config *config) {
    const helio_udp_name group = helio_udp_name_of(&config->destinations[0], 0);
    const helio_udp_name interface = helio_udp_name_of(&config->interface, 0);
    const struct ip_mreqn membership = {.imr_multiaddr = group.v4.sin_addr,
                                        .imr_address = interface.v4.sin_addr};
    return setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership);
}

static int join6(int socket, const helio_channel_config *config) {
    const helio_udp_name group = helio_udp_name_of(&config->destinations[0], 0);
    const struct ipv6_mreq membership = {.ipv6mr_multiaddr = group.v6.sin6_addr,
                                         .ipv6mr_interface = config->interface_index};
    return setsockopt(socket, IPPROTO_IPV6, IPV6_JOIN_GROUP, &membership, sizeof membership);
}

static int join(int socket, const helio_channel_config *config) {
    const bool six = family_of(config) == 6;
    if ((six ? join6 : join4)(socket, config) < 0) {
        return fail_membership(config);
    }
    /* Only what this socket joined, not what others on the machine did. */
    set_option(socket, six ? IPPROTO_IPV6 : IPPROTO_IP, six ? IPV6_MULTICAST_ALL : IP_MULTICAST_ALL,
               0);
    return 0;
}

/* Binds the first destination that is this machine's and free. */
static int bind_first(int socket, const helio_channel_config *config, helio_address *bound) {
    int in_use = -1;
    for (size_t i = 0; i < config->destinations_count; i++) {
        if (bind_to(socket, config, &config->destinations[i]) == 0) {
            *bound = config->destinations[i];
            return 0;
        }
        if (errno == EADDRINUSE && in_use < 0) {
            in_use = (int)i;
        }
    }
    if (in_use >= 0) {
        errno = EADDRINUSE;
        return helio_udp_fail_bind(&config->destinations[in_use]);
    }
    return helio_udp_fail_bind(&config->destinations[0]);
}

void helio_udp_stamp(int socket, bool on) {
    set_option(socket, SOL_SOCKET, SO_TIMESTAMPNS, on);
}

int helio_udp_open_data(const helio_channel_config *config, helio_address *bound) {
    const int socket = open_socket(config);
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
    if (config->raw) {
        helio_udp_raw_filter(socket, config, bound->port);
    }
    if (config->kernel_stamps) {
        helio_udp_stamp(socket, true);
    }
    return socket;
}

int helio_udp_open_feedback(const helio_channel_config *config, const helio_address *bound,
                            helio_address *local) {
    helio_address from = config->multicast ? config->interface : *bound;
    from.family = family_of(config);
    from.port = 0;
    const helio_address *at = config->feedback.family != 0 ? &config->feedback : &from;
    const int socket = open_socket(config);
    if (socket < 0) {
        return socket;
    }
    if (bind_to(socket, config, at) < 0) {
        return give_up(socket, helio_udp_fail_bind(at));
    }
    if (config->multicast) { /* requests for an SPM go to the neighbours first, never farther */
        helio_channel_config nearby = *config;
        nearby.ttl = config->ttl < 1 ? config->ttl : 1;
        const int error = prepare_multicast_send(socket, &nearby, &from);
        if (error) {
            return give_up(socket, error);
        }
    }
    if (config->raw) {
        helio_udp_raw_send_only(socket);
        *local = from;
    } else {
        *local = name_of(socket);
    }
    return socket;
}
