/* Bare TCP sockets on the loopback, the floor under RUM.
 *
 *   raw_tcp latency|throughput
 *
 * latency: no delay, both ends spin.  throughput: messages with a length of two bytes before each,
 * 64 KiB per write, taken apart where they arrive. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "../duel.h"

enum { LENGTH = 2, WRITE = 65536, READ = 1 << 20 };

typedef struct end {
    int fd;
    size_t size; /* of a message */
    size_t have; /* bytes of `in` not yet used */
    size_t full; /* bytes of `out` in use */
    duel_board *board;
    char out[WRITE];
    char in[READ];
} end;

static int pair[2];

/* A connection with both ends in one process, before it becomes two. */
static void connect_pair(void) {
    const int listening = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (listening < 0 || pair[0] < 0 || bind(listening, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(listening, 1) != 0 || getsockname(listening, (struct sockaddr *)&at, &length) != 0 ||
        connect(pair[0], (struct sockaddr *)&at, sizeof at) != 0 ||
        (pair[1] = accept(listening, NULL, NULL)) < 0) {
        duel_fail("connection", NULL);
    }
    close(listening);
    for (int i = 0; i < 2; i++) {
        if (setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
            duel_fail("TCP_NODELAY", NULL);
        }
    }
}

static void *open_end(const duel *d) {
    static end e;
    const int side = d->child == 0;
    const uint16_t length = (uint16_t)d->size;
    e.fd = pair[side];
    e.size = d->size;
    e.board = d->board;
    close(pair[!side]);
    while (e.full + LENGTH + d->size <= WRITE) {
        memcpy(e.out + e.full, &length, LENGTH);
        memset(e.out + e.full + LENGTH, 7, d->size);
        e.full += LENGTH + d->size;
    }
    return &e;
}

static void write_all(const end *e, const char *data, size_t size) {
    while (size > 0) {
        const ssize_t sent = send(e->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) {
            return; /* the other side has stopped, which the board says */
        }
        if (sent < 0 && errno != EINTR) {
            duel_fail("send", NULL);
        }
        data += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
}

static void send_one(void *channel, uint64_t number, size_t size) {
    end *e = channel;
    memcpy(e->out, &number, sizeof number);
    write_all(e, e->out, size);
}

static bool receive_one(void *channel, uint64_t *number) {
    end *e = channel;
    const ssize_t got = recv(e->fd, e->in + e->have, e->size - e->have, MSG_DONTWAIT);
    e->have += got > 0 ? (size_t)got : 0;
    if (e->have < e->size) {
        return false;
    }
    e->have = 0;
    memcpy(number, e->in, sizeof *number);
    return true;
}

static void pour(void *channel) {
    end *e = channel;
    const size_t stride = LENGTH + e->size;
    char *message = e->out + duel_marked(e->full / stride) * stride + LENGTH;
    duel_mark(message);
    write_all(e, e->out, e->full);
    duel_unmark(message);
}

static uint64_t take(void *channel) {
    end *e = channel;
    const ssize_t got = recv(e->fd, e->in + e->have, sizeof e->in - e->have, MSG_DONTWAIT);
    e->have += got > 0 ? (size_t)got : 0;
    uint64_t messages = 0;
    size_t at = 0;
    for (uint16_t size; e->have - at >= LENGTH; messages++) {
        memcpy(&size, e->in + at, LENGTH);
        if (e->have - at < LENGTH + (size_t)size) {
            break;
        }
        duel_arrive(e->board, e->in + at + LENGTH);
        at += LENGTH + (size_t)size;
    }
    memmove(e->in, e->in + at, e->have - at);
    e->have -= at;
    return messages;
}

/* Nobody reads any more, so the other side must not wait for room. */
static void close_end(void *channel) {
    close(((end *)channel)->fd);
}

int main(int argc, char **argv) {
    duel d;
    duel_init(&d, argc, argv, "latency|throughput", NULL);
    connect_pair();
    return duel_play(&d, (duel_ends){open_end, send_one, receive_one, pour, take, close_end});
}
