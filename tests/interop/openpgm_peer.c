/* OpenPGM at the other end of the cable: a pipe with PGM in it.
 *
 *   openpgm_peer send INTERFACE GROUP PORT     frames of standard input become messages
 *   openpgm_peer recv INTERFACE GROUP PORT     messages become frames of standard output
 *
 * A frame is u32 length, u32 tag, the bytes; integers as the machine has them.  Outward the tag is
 * the data-source port of the message's stream; length LOST: the stream was reset because packets
 * could not be had.  Standard output begins with a frame READY.  A sender answers requests for
 * repair until its input ends, then says FIN. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pgm/pgm.h>

enum {
    READY = 0x7FFFFFFE,
    LOST = 0x7FFFFFFF,
    MESSAGE_MAX = 65535,
    TURN_MS = 1,
    FRAGMENT = 1400,
    FRAGMENTS_MAX = 16,
    HEADER = 16 + 8 + 4 + 16 /* of a fragment */
};

typedef struct frame {
    uint32_t length;
    uint32_t tag;
} frame;

static FILE *out; /* the frames; what the library prints goes to standard error */

static void fail(const char *what, pgm_error_t *error) {
    fprintf(stderr, "openpgm_peer: %s: %s\n", what, error ? error->message : "refused");
    exit(3);
}

static void set(pgm_sock_t *sock, int option, int value) {
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, &value, sizeof value)) {
        fprintf(stderr, "openpgm_peer: option %d refused %d\n", option, value);
    }
}

static void set_sender(pgm_sock_t *sock) {
    const int heartbeats[] = {pgm_msecs(20),  pgm_msecs(20),  pgm_msecs(40), pgm_msecs(80),
                              pgm_msecs(160), pgm_msecs(320), pgm_msecs(640)};
    set(sock, PGM_SEND_ONLY, 1);
    set(sock, PGM_TXW_SQNS, 20000);
    set(sock, PGM_TXW_MAX_RTE, 100000000); /* a ms of it must hold the largest message */
    set(sock, PGM_AMBIENT_SPM, pgm_secs(1));
    pgm_setsockopt(sock, IPPROTO_PGM, PGM_HEARTBEAT_SPM, heartbeats, sizeof heartbeats);
}

static void set_receiver(pgm_sock_t *sock) {
    set(sock, PGM_RECV_ONLY, 1);
    set(sock, PGM_PASSIVE, 0);
    set(sock, PGM_RXW_SQNS, 20000);
    set(sock, PGM_PEER_EXPIRY, pgm_secs(60));
    set(sock, PGM_SPMR_EXPIRY, pgm_msecs(25));
    set(sock, PGM_NAK_BO_IVL, pgm_msecs(10));
    set(sock, PGM_NAK_RPT_IVL, pgm_msecs(50));
    set(sock, PGM_NAK_RDATA_IVL, pgm_msecs(50));
    set(sock, PGM_NAK_DATA_RETRIES, 50);
    set(sock, PGM_NAK_NCF_RETRIES, 50);
}

static void bind_to(pgm_sock_t *sock, const struct pgm_addrinfo_t *network, int port) {
    struct pgm_sockaddr_t address = {.sa_port = (uint16_t)port};
    struct pgm_interface_req_t interface = {.ir_interface =
                                                network->ai_recv_addrs[0].gsr_interface};
    pgm_error_t *error = NULL;
    const pid_t identity[] = {getpid(), getppid()};
    pgm_gsi_create_from_data(&address.sa_addr.gsi, (const uint8_t *)identity, sizeof identity);
    if (!pgm_bind3(sock, &address, sizeof address, &interface, sizeof interface, &interface,
                   sizeof interface, &error)) {
        fail("bind", error);
    }
}

static pgm_sock_t *open_socket(const char *interface, const char *group, int port, bool sends) {
    char network[128];
    pgm_error_t *error = NULL;
    struct pgm_addrinfo_t *info = NULL;
    pgm_sock_t *sock = NULL;
    snprintf(network, sizeof network, "%s;%s", interface, group);
    if (!pgm_getaddrinfo(network, NULL, &info, &error)) {
        fail("address", error);
    }
    if (!pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, IPPROTO_UDP, &error)) {
        fail("socket", error);
    }
    set(sock, PGM_UDP_ENCAP_UCAST_PORT, port); /* both, or it never hears a NAK */
    set(sock, PGM_UDP_ENCAP_MCAST_PORT, port);
    set(sock, PGM_IP_ROUTER_ALERT, 0);
    set(sock, PGM_MTU, 1500);
    if (sends) {
        set_sender(sock);
    } else {
        set_receiver(sock);
    }
    bind_to(sock, info, port);
    for (unsigned i = 0; i < info->ai_recv_addrs_len; i++) {
        pgm_setsockopt(sock, IPPROTO_PGM, PGM_JOIN_GROUP, &info->ai_recv_addrs[i],
                       sizeof(struct group_req));
    }
    pgm_setsockopt(sock, IPPROTO_PGM, PGM_SEND_GROUP, &info->ai_send_addrs[0],
                   sizeof(struct group_req));
    set(sock, PGM_MULTICAST_LOOP, 0);
    set(sock, PGM_MULTICAST_HOPS, 1);
    set(sock, PGM_NOBLOCK, 1);
    pgm_freeaddrinfo(info);
    if (!pgm_connect(sock, &error)) {
        fail("connect", error);
    }
    return sock;
}

/* Reads exactly so many bytes, hearing what comes to the socket meanwhile; false: input ended. */
static bool read_all(pgm_sock_t *sock, void *data, size_t bytes) {
    static char ignored[MESSAGE_MAX];
    for (size_t got = 0; got < bytes;) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        pgm_error_t *error = NULL;
        size_t length;
        const int status = pgm_recv(sock, ignored, sizeof ignored, MSG_DONTWAIT, &length, &error);
        if (status == PGM_IO_STATUS_ERROR) {
            fail("receive", error);
        }
        if (error) {
            pgm_error_free(error);
        }
        if (poll(&input, 1, TURN_MS) <= 0) {
            continue;
        }
        const ssize_t part = read(STDIN_FILENO, (char *)data + got, bytes - got);
        if (part == 0 || (part < 0 && errno != EINTR)) {
            return false;
        }
        got += part > 0 ? (size_t)part : 0;
    }
    return true;
}

/* Waits before a message that the rate does not let through is tried again. */
static bool is_sent(int status) {
    if (status == PGM_IO_STATUS_ERROR) {
        fail("send", NULL);
    }
    if (status != PGM_IO_STATUS_NORMAL) {
        usleep(500);
    }
    return status == PGM_IO_STATUS_NORMAL;
}

/* A message in fragments is cut here: pgm_send, as built for Debian on x86-64, stumbles over the
 * alignment of its own copy when it cuts. */
static void send_fragments(pgm_sock_t *sock, const char *data, size_t length) {
    struct pgm_sk_buff_t *parts[FRAGMENTS_MAX];
    unsigned count = 0;
    size_t written;
    for (size_t offset = 0; offset < length && count < FRAGMENTS_MAX; count++) {
        const size_t left = length - offset;
        const uint16_t part = (uint16_t)(left < FRAGMENT ? left : FRAGMENT);
        parts[count] = pgm_alloc_skb(1500);
        pgm_skb_reserve(parts[count], HEADER);
        memcpy(pgm_skb_put(parts[count], part), data + offset, part);
        offset += part;
    }
    while (!is_sent(pgm_send_skbv(sock, parts, count, TRUE, &written)))
        ;
}

static void send_all(pgm_sock_t *sock) {
    static char data[MESSAGE_MAX];
    frame head;
    while (read_all(sock, &head, sizeof head)) {
        size_t written;
        if (head.length > sizeof data || !read_all(sock, data, head.length)) {
            return;
        }
        if (head.length > FRAGMENT) {
            send_fragments(sock, data, head.length);
        } else {
            while (!is_sent(pgm_send(sock, data, head.length, &written)))
                ;
        }
    }
}

static void write_frame(uint32_t length, uint32_t tag, const void *data, size_t bytes) {
    const frame head = {length, tag};
    fwrite(&head, sizeof head, 1, out);
    fwrite(data, 1, bytes, out);
    fflush(out);
}

/* Until the reader of the frames has gone. */
static void receive_all(pgm_sock_t *sock) {
    static char data[MESSAGE_MAX];
    while (!ferror(out)) {
        struct pgm_sockaddr_t from = {0};
        socklen_t from_bytes = sizeof from;
        pgm_error_t *error = NULL;
        size_t length = 0;
        const int status = pgm_recvfrom(sock, data, sizeof data, MSG_DONTWAIT, &length, &from,
                                        &from_bytes, &error);
        if (status == PGM_IO_STATUS_NORMAL) {
            write_frame((uint32_t)length, from.sa_addr.sport, data, length);
        } else if (status == PGM_IO_STATUS_RESET) {
            write_frame(LOST, from.sa_addr.sport, "", 0);
        } else if (status == PGM_IO_STATUS_ERROR) {
            fail("receive", error);
        } else {
            poll(NULL, 0, TURN_MS);
        }
        if (error) {
            pgm_error_free(error);
        }
    }
}

int main(int count, char **words) {
    pgm_error_t *error = NULL;
    if (count != 5 || (strcmp(words[1], "send") != 0 && strcmp(words[1], "recv") != 0)) {
        fprintf(stderr, "usage: openpgm_peer send|recv INTERFACE GROUP PORT\n");
        return 2;
    }
    out = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (!pgm_init(&error)) {
        fail("init", error);
    }
    const bool sends = words[1][0] == 's';
    pgm_sock_t *sock = open_socket(words[2], words[3], atoi(words[4]), sends);
    write_frame(READY, 0, "", 0);
    if (sends) {
        send_all(sock);
    } else {
        receive_all(sock);
    }
    pgm_close(sock, TRUE);
    pgm_shutdown();
    return 0;
}
