#include "io/tcp_socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/udp_socket.h"

enum { WAITING_CONNECTIONS = 128 };

static int set_option(int socket, int level, int name, int value) {
    return setsockopt(socket, level, name, &value, sizeof value);
}

static int give_up(int socket) {
    const int error = errno;
    close(socket);
    errno = error;
    return -1;
}

static int open_socket(const helio_udp_name *name) {
    return socket(name->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int bind_to(int socket, const helio_udp_name *name) {
    return bind(socket, &name->any, helio_udp_name_bytes(name));
}

/* Small packets leave at once.  What comes is acknowledged with what goes or a little later, not by
 * a packet of its own within the very call that reads it.  The kernel finds out by itself how large
 * its receive buffer is best; what it may hold back for sending is bounded, for that is latency. */
static void prepare(int socket, size_t socket_buffer) {
    set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(socket, IPPROTO_TCP, TCP_QUICKACK, 0);
    set_option(socket, SOL_SOCKET, SO_SNDBUF, (int)socket_buffer);
}

/* ---- listening ---- */

/* Of two programs that bound a port only one can listen, so the address is free when both
 * succeed. */
static int try_listen(const helio_address *address, uint32_t interface) {
    const helio_udp_name name = helio_udp_name_of(address, interface);
    const int fd = open_socket(&name);
    if (fd < 0) {
        return -1;
    }
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1); /* connections of a receiver before may linger */
    return bind_to(fd, &name) < 0 || listen(fd, WAITING_CONNECTIONS) < 0 ? give_up(fd) : fd;
}

int helio_tcp_listen(const helio_channel_config *config, helio_address *bound) {
    const helio_address *in_use = NULL;
    for (size_t i = 0; i < config->destinations_count; i++) {
        const int fd = try_listen(&config->destinations[i], config->interface_index);
        if (fd >= 0) {
            *bound = config->destinations[i];
            return fd;
        }
        if (errno == EADDRINUSE && !in_use) {
            in_use = &config->destinations[i];
        }
    }
    if (in_use) {
        errno = EADDRINUSE;
    }
    return helio_udp_fail_bind(in_use ? in_use : &config->destinations[0]);
}

int helio_tcp_accept(int listener, size_t socket_buffer, helio_address *peer) {
    helio_udp_name from = {.v6 = {0}};
    socklen_t length = sizeof from;
    const int fd = accept4(listener, &from.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        *peer = helio_udp_address(&from);
        prepare(fd, socket_buffer);
    }
    return fd;
}

/* ---- connecting ---- */

int helio_tcp_connect(const helio_address *to, const helio_address *interface,
                      uint32_t interface_index, size_t socket_buffer) {
    const helio_udp_name name = helio_udp_name_of(to, interface_index);
    const int fd = open_socket(&name);
    if (fd < 0) {
        return -1;
    }
    prepare(fd, socket_buffer);
    helio_address from = *interface;
    from.port = 0;
    const helio_udp_name from_name = helio_udp_name_of(&from, interface_index);
    if (!helio_address_is_unspecified(&from) && from.family == to->family &&
        bind_to(fd, &from_name) < 0) {
        return give_up(fd);
    }
    const int result = connect(fd, &name.any, helio_udp_name_bytes(&name));
    return result < 0 && errno != EINPROGRESS ? give_up(fd) : fd;
}

size_t helio_tcp_unacknowledged(int socket) {
    int bytes = 0;
    return ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

helio_address helio_tcp_seen_from(const helio_address *destination, uint32_t interface_index) {
    helio_address out = {.family = destination->family};
    out.ip[destination->family == 6 ? 15 : 3] = 1;
    out.ip[0] = destination->family == 6 ? 0 : 127;
    const helio_udp_name to = helio_udp_name_of(destination, interface_index);
    const int probe = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* sends nothing */
    helio_udp_name at = {.v6 = {0}};
    socklen_t length = sizeof at;
    if (probe >= 0 && connect(probe, &to.any, helio_udp_name_bytes(&to)) == 0 &&
        getsockname(probe, &at.any, &length) == 0) {
        out = helio_udp_address(&at);
        out.port = 0;
    }
    if (probe >= 0) {
        close(probe);
    }
    return out;
}
