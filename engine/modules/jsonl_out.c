#include "jsonl_out.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const int64_t TRY_NS = INT64_C(1000000000);

static void say(jsonl_out *out, const char *what, const char *why) {
    snprintf(out->error, sizeof out->error, "%s%s%s: %s", out->place, out->port ? ":" : "",
             out->port ? out->port : "", what);
    if (why != NULL) {
        const size_t used = strlen(out->error);
        snprintf(out->error + used, sizeof out->error - used, ": %s", why);
    }
}

static uint64_t lines_in(const char *bytes, size_t length) {
    uint64_t lines = 0;
    for (size_t i = 0; i < length; i++) {
        lines += bytes[i] == '\n';
    }
    return lines;
}

static void hang_up(jsonl_out *out) {
    if (out->descriptor >= 0) {
        close(out->descriptor);
    }
    out->descriptor = -1;
    out->is_connecting = false;
    out->sent = out->begin; /* the line under way begins anew */
}

/* ---- files ---- */

static bool open_file(jsonl_out *out) {
    out->descriptor = open(out->place, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (out->descriptor < 0) {
        say(out, "cannot be opened", strerror(errno));
    }
    return out->descriptor >= 0;
}

/* Whether the file still stands where it was opened. */
static bool is_in_place(const jsonl_out *out) {
    struct stat here, there;
    return fstat(out->descriptor, &here) == 0 && stat(out->place, &there) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static void write_file(jsonl_out *out, const char *lines, size_t bytes, int64_t now_ns) {
    if (now_ns >= out->next_try_ns) {
        out->next_try_ns = now_ns + TRY_NS;
        if (out->descriptor >= 0 && !is_in_place(out)) {
            hang_up(out);
            out->is_torn = false;
        }
        if (out->descriptor < 0) {
            open_file(out);
        }
    }
    if (out->descriptor < 0) {
        out->lost += lines_in(lines, bytes);
        return;
    }
    /* A line that was cut off by a full disk ends before the next begins. */
    if (out->is_torn && write(out->descriptor, "\n", 1) == 1) {
        out->is_torn = false;
    }
    size_t done = 0;
    while (!out->is_torn && done < bytes) {
        const ssize_t wrote = write(out->descriptor, lines + done, bytes - done);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote <= 0) {
            say(out, "cannot be written", strerror(wrote < 0 ? errno : ENOSPC));
            out->is_torn = done > 0 && lines[done - 1] != '\n';
            break;
        }
        done += (size_t)wrote;
    }
    if (done < bytes) {
        out->lost += lines_in(lines + done, bytes - done);
    } else {
        out->error[0] = 0;
    }
}

/* ---- sockets ---- */

static int connect_to(const jsonl_out *out, const struct sockaddr *address, socklen_t length,
                      int family, bool *is_connecting) {
    const int type = out->way == JSONL_STREAM ? SOCK_STREAM : SOCK_DGRAM;
    const int found = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (found >= 0 && connect(found, address, length) != 0) {
        const int why = errno;
        *is_connecting = why == EINPROGRESS;
        if (!*is_connecting) {
            close(found);
            errno = why;
            return -1;
        }
    }
    return found;
}

static void dial(jsonl_out *out) {
    out->is_connecting = false;
    if (out->family == AF_UNIX) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        memcpy(address.sun_path, out->place, strlen(out->place) + 1); /* jsonl_out_open checked */
        out->descriptor = connect_to(out, (const struct sockaddr *)&address, sizeof address,
                                     AF_UNIX, &out->is_connecting);
    } else {
        struct addrinfo *found = NULL;
        const struct addrinfo wanted = {
            .ai_socktype = out->way == JSONL_STREAM ? SOCK_STREAM : SOCK_DGRAM,
        };
        const int error = getaddrinfo(out->place, out->port, &wanted, &found);
        if (error != 0) {
            say(out, "is not known", gai_strerror(error));
            return;
        }
        for (const struct addrinfo *at = found; at != NULL && out->descriptor < 0;
             at = at->ai_next) {
            out->descriptor =
                connect_to(out, at->ai_addr, at->ai_addrlen, at->ai_family, &out->is_connecting);
        }
        freeaddrinfo(found);
    }
    if (out->descriptor < 0) {
        say(out, "cannot be reached", strerror(errno));
    }
}

/* Whether the socket can be written to, dialling when it is time to. */
static bool is_connected(jsonl_out *out, int64_t now_ns) {
    if (out->descriptor < 0 && now_ns >= out->next_try_ns) {
        out->next_try_ns = now_ns + TRY_NS;
        dial(out);
    }
    if (out->descriptor < 0 || !out->is_connecting) {
        return out->descriptor >= 0;
    }
    struct pollfd ready = {.fd = out->descriptor, .events = POLLOUT};
    if (poll(&ready, 1, 0) <= 0) {
        return false;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(out->descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        hang_up(out);
        say(out, "cannot be reached", strerror(error));
        return false;
    }
    out->is_connecting = false;
    return true;
}

static void send_waiting(jsonl_out *out, int64_t now_ns) {
    while (out->sent < out->end && is_connected(out, now_ns)) {
        const ssize_t sent = send(out->descriptor, out->waiting + out->sent, out->end - out->sent,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return;
        }
        if (sent <= 0) {
            const int why = errno;
            hang_up(out);
            say(out, "hung up", strerror(why));
            return;
        }
        out->error[0] = 0;
        out->sent += (size_t)sent;
        for (size_t i = out->sent; i > out->begin; i--) {
            if (out->waiting[i - 1] == '\n') {
                out->begin = i;
            }
        }
    }
    if (out->begin == out->end) {
        out->begin = out->sent = out->end = 0;
    }
}

static void write_stream(jsonl_out *out, const char *lines, size_t bytes, int64_t now_ns) {
    send_waiting(out, now_ns);
    if (out->begin > 0) {
        memmove(out->waiting, out->waiting + out->begin, out->end - out->begin);
        out->end -= out->begin;
        out->sent -= out->begin;
        out->begin = 0;
    }
    size_t taken = bytes;
    if (bytes > JSONL_WAITING_BYTES - out->end) { /* the newest lines are given up, whole */
        taken = JSONL_WAITING_BYTES - out->end;
        while (taken > 0 && lines[taken - 1] != '\n') {
            taken--;
        }
        out->lost += lines_in(lines + taken, bytes - taken);
        if (out->error[0] == 0) {
            say(out, "does not take lines as fast as they come", NULL);
        }
    }
    if (taken > 0) {
        memcpy(out->waiting + out->end, lines, taken);
        out->end += taken;
    }
    send_waiting(out, now_ns);
}

static void write_datagrams(jsonl_out *out, const char *lines, size_t bytes, int64_t now_ns) {
    if (!is_connected(out, now_ns)) {
        out->lost += lines_in(lines, bytes);
        return;
    }
    const char *const end = lines + bytes;
    while (lines < end) {
        const char *next = (const char *)memchr(lines, '\n', (size_t)(end - lines)) + 1;
        if (send(out->descriptor, lines, (size_t)(next - lines), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
            out->lost++;
            say(out, "cannot be sent to", strerror(errno));
        } else {
            out->error[0] = 0;
        }
        lines = next;
    }
}

/* ---- all ---- */

static bool place_from(jsonl_out *out, const char *to) {
    static const struct {
        const char *scheme;
        jsonl_way way;
        int family;
    } kinds[] = {
        {"tcp://", JSONL_STREAM, AF_UNSPEC},
        {"udp://", JSONL_DATAGRAMS, AF_UNSPEC},
        {"unix://", JSONL_STREAM, AF_UNIX},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t length = strlen(kinds[i].scheme);
        if (strncmp(to, kinds[i].scheme, length) == 0) {
            out->way = kinds[i].way;
            out->family = kinds[i].family;
            out->place = strdup(to + length);
            break;
        }
    }
    if (out->place == NULL) {
        return false;
    }
    if (out->family == AF_UNIX) {
        return out->place[0] == '/' &&
               strlen(out->place) < sizeof((struct sockaddr_un *)NULL)->sun_path;
    }
    char *colon = strrchr(out->place, ':');
    if (colon == NULL || colon == out->place || colon[1] == 0) {
        return false;
    }
    *colon = 0;
    out->port = strdup(colon + 1);
    const size_t host = strlen(out->place);
    if (out->place[0] == '[' && out->place[host - 1] == ']') { /* IPv6 */
        memmove(out->place, out->place + 1, host - 2);
        out->place[host - 2] = 0;
    }
    return out->port != NULL;
}

bool jsonl_out_open(jsonl_out *out, const char *path, const char *to) {
    *out = (jsonl_out){.descriptor = -1, .way = JSONL_FILE};
    if (path != NULL) {
        out->place = strdup(path);
        return out->place != NULL && open_file(out);
    }
    if (!place_from(out, to)) {
        snprintf(out->error, sizeof out->error,
                 "to=%s: it must be tcp://HOST:PORT, udp://HOST:PORT or unix:///PATH", to);
        return false;
    }
    out->waiting = out->way == JSONL_STREAM ? malloc(JSONL_WAITING_BYTES) : NULL;
    if (out->way == JSONL_STREAM && out->waiting == NULL) {
        snprintf(out->error, sizeof out->error, "no memory");
        return false;
    }
    return true;
}

void jsonl_out_write(jsonl_out *out, const char *lines, size_t bytes, int64_t now_ns) {
    switch (out->way) {
    case JSONL_FILE:
        write_file(out, lines, bytes, now_ns);
        break;
    case JSONL_STREAM:
        write_stream(out, lines, bytes, now_ns);
        break;
    case JSONL_DATAGRAMS:
        write_datagrams(out, lines, bytes, now_ns);
        break;
    }
}

void jsonl_out_close(jsonl_out *out) {
    if (out->way == JSONL_STREAM && out->descriptor >= 0 && out->sent < out->end) {
        struct pollfd ready = {.fd = out->descriptor, .events = POLLOUT};
        for (int tries = 0; tries < 10 && out->descriptor >= 0 && out->sent < out->end; tries++) {
            poll(&ready, 1, 10);
            send_waiting(out, 0);
        }
    }
    if (out->waiting != NULL) {
        out->lost += lines_in(out->waiting + out->begin, out->end - out->begin);
    }
    hang_up(out);
    free(out->waiting);
    free(out->place);
    free(out->port);
    out->waiting = out->place = out->port = NULL;
}
