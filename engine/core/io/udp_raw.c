#include "io/udp_raw.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/random.h"
#include "generated/protocol.h"

enum {
    IP_PROTOCOL_PGM = 113,
    IP4_HEADER_MIN = 20,
    PGM_SOURCE_PORT = 0, /* offsets in the PGM header */
    PGM_DESTINATION_PORT = 2,
    PGM_TYPE = 4,
    FIRST_FREE_PORT = 1024,
};

int helio_udp_raw_open(uint8_t family) {
    const int fd = socket(family == 6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          IP_PROTOCOL_PGM);
    if (fd >= 0) {
        return fd;
    }
    return errno == EPERM || errno == EACCES
               ? helio_fail(HELIO_ERR_PERMISSION,
                            "encapsulation=ip needs the capability CAP_NET_RAW, which this process "
                            "does not have; encapsulation=udp needs none")
               : helio_fail(HELIO_ERR_SYSTEM, "cannot open a raw IP socket: %s", strerror(errno));
}

uint16_t helio_udp_raw_port(uint64_t seed) {
    helio_random random;
    helio_random_init(&random, seed);
    return (uint16_t)(FIRST_FREE_PORT +
                      helio_random_below(&random, UINT16_MAX + 1 - FIRST_FREE_PORT));
}

/* ---- sessions ---- */

static void attach(int socket, struct sock_filter *program, size_t length) {
    const struct sock_fprog filter = {.len = (unsigned short)length, .filter = program};
    setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

void helio_udp_raw_filter(int socket, const helio_channel_config *config, uint16_t port) {
    /* IPv4 sockets see the packet from its IP header on, IPv6 sockets from PGM on.  What goes
     * upstream has the session's ports swapped: a receiver hears other receivers' requests, where
     * they go to the group. */
    const bool six = config->destinations[0].family == 6;
    const bool both = config->role == HELIO_CHANNEL_RECEIVE && config->multicast;
    struct sock_filter program[] = {
        six ? (struct sock_filter)BPF_STMT(BPF_LDX | BPF_IMM, 0)
            : (struct sock_filter)BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, PGM_DESTINATION_PORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 2, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, both ? PGM_SOURCE_PORT : PGM_DESTINATION_PORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    attach(socket, program, sizeof program / sizeof program[0]);
}

void helio_udp_raw_send_only(int socket) {
    struct sock_filter nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    attach(socket, nothing, 1);
}

/* From receivers to the source. */
static bool goes_upstream(uint8_t type) {
    switch (type) {
    case HELIO_PGM_TYPE_POLR:
    case HELIO_PGM_TYPE_NAK:
    case HELIO_PGM_TYPE_NNAK:
    case HELIO_PGM_TYPE_SPMR:
    case HELIO_PGM_TYPE_ACK:
        return true;
    default:
        return false;
    }
}

static bool is_of_session(const helio_channel_config *config, uint16_t port, const uint8_t *pgm) {
    const bool upstream = goes_upstream(pgm[PGM_TYPE]);
    if (config->role == HELIO_CHANNEL_TRANSMIT) {
        return upstream && helio_get16(pgm + PGM_DESTINATION_PORT) == port;
    }
    if (upstream && !config->multicast) {
        return false; /* what receivers of this host, perhaps we, have sent to a source of it */
    }
    return helio_get16(pgm + (upstream ? PGM_SOURCE_PORT : PGM_DESTINATION_PORT)) == port;
}

bool helio_udp_raw_strip(const helio_channel_config *config, uint16_t port,
                         helio_datagram *packet) {
    size_t header = 0;
    if (config->destinations[0].family == 4) {
        if (packet->length < IP4_HEADER_MIN) {
            return false;
        }
        header = (size_t)(packet->data[0] & 0x0F) * 4;
        if (header < IP4_HEADER_MIN) {
            return false;
        }
    }
    if (packet->length < header + HELIO_PGM_HEADER ||
        !is_of_session(config, port, packet->data + header)) {
        return false;
    }
    packet->data += header;
    packet->length -= header;
    packet->source.port = 0;
    return true;
}

bool helio_udp_raw_alerts(const void *packet, size_t length) {
    if (length <= PGM_TYPE) {
        return false;
    }
    switch (((const uint8_t *)packet)[PGM_TYPE]) {
    case HELIO_PGM_TYPE_SPM:
    case HELIO_PGM_TYPE_NCF:
    case HELIO_PGM_TYPE_RDATA:
    case HELIO_PGM_TYPE_POLL:
        return true;
    default:
        return false;
    }
}
