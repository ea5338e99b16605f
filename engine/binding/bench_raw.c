/* A bare TCP connection, which `heliograph bench grid` measures beside the transport: one write for
 * each message, fixed sizes.  Python opens it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { ROOM = 1 << 20 };

bool bench_raw_init(bench_raw *raw, int fd, size_t size) {
    *raw = (bench_raw){.fd = fd, .size = size, .room = size > ROOM ? size : ROOM};
    raw->in = malloc(raw->room);
    return raw->in && fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

void bench_raw_fini(bench_raw *raw) {
    free(raw->in);
    raw->in = NULL;
}

static bool wait_for(int fd, short events, int64_t timeout_ns) {
    struct pollfd waited = {.fd = fd, .events = events};
    return poll(&waited, 1, (int)(timeout_ns / 1000000)) > 0;
}

bool bench_raw_send(const bench_raw *raw, const uint8_t *data, size_t bytes, int64_t slice_ns) {
    while (bytes > 0) {
        const ssize_t sent = write(raw->fd, data, bytes);
        if (sent >= 0) {
            data += sent;
            bytes -= (size_t)sent;
        } else if (errno != EAGAIN && errno != EINTR) {
            return false;
        } else if (!wait_for(raw->fd, POLLOUT, slice_ns) && !bench_goes_on()) {
            return false;
        }
    }
    return true;
}

/* The messages whose bytes are all there, at most `limit`. */
static int cut(bench_raw *raw, helio_message *messages, int limit) {
    int count = 0;
    for (; count < limit && raw->have - raw->used >= raw->size; count++) {
        messages[count] = (helio_message){.data = raw->in + raw->used, .length = raw->size};
        raw->used += raw->size;
    }
    return count;
}

int bench_raw_receive(bench_raw *raw, helio_message *messages, int limit, int64_t timeout_ns) {
    const int left = cut(raw, messages, limit);
    if (left > 0) {
        return left;
    }
    memmove(raw->in, raw->in + raw->used, raw->have - raw->used);
    raw->have -= raw->used;
    raw->used = 0;
    if (timeout_ns > 0 && !wait_for(raw->fd, POLLIN, timeout_ns)) {
        return 0;
    }
    const ssize_t got = read(raw->fd, raw->in + raw->have, raw->room - raw->have);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    raw->have += (size_t)got;
    return cut(raw, messages, limit);
}
