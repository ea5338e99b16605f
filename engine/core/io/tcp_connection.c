#include "io/tcp_connection.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/moment.h"
#include "io/direct_call.h"
#include "wire/pgm.h"

#define GREETING_NS (5 * HELIO_SECOND) /* a hello takes no longer */
#define ALIVE_MIN_NS (20 * HELIO_MILLISECOND)

enum {
    HELLO_LONGEST = 256,     /* of any version */
    GREETING_BYTES = 512,    /* of each buffer until then */
    COPIES_BYTES = 64 << 10, /* of one flush; and room for one packet of any length */
    BACKLOG_FIRST = 64 << 10,
    BACKLOG_KEPT = 1 << 20, /* a larger one is given back when it is empty */
    LONE_BYTES = 2048, /* a lone frame up to this is copied: one buffer costs the kernel less */
    SEND_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL,
    LAST_READS = 64, /* at most, before the socket is closed */
    ALIVE_SHARE = 4, /* something is said four times within the timeout */
};

void helio_tcp_break_off(helio_tcp_connection *c, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->why, sizeof c->why, format, arguments);
    va_end(arguments);
    c->is_stranger = c->state == HELIO_TCP_GREETING && c->is_stranger;
    c->state = HELIO_TCP_BROKEN;
}

/* The other side is not what it should be. */
#define REFUSE(c, ...) ((c)->is_stranger = true, helio_tcp_break_off((c), __VA_ARGS__))

/* ---- memory ---- */

/* So many more bytes; false: they would exceed what there may be.  Connections that a transmitter
 * wants, and what is `needed`, are paid for all the same. */
static bool pay(helio_tcp_connection *c, uint64_t bytes, bool is_needed) {
    if (is_needed || c->limits.role == HELIO_RUM_ROLE_TRANSMIT) {
        helio_account_charge(c->limits.account, bytes);
    } else if (!helio_account_take(c->limits.account, bytes)) {
        return false;
    }
    c->charged += bytes;
    return true;
}

static void give_back(helio_tcp_connection *c, uint64_t bytes) {
    helio_account_give(c->limits.account, bytes);
    c->charged -= bytes;
}

/* ---- writing ---- */

/* The connection cannot be written to; the reader will find the reason. */
static void become_mute(helio_tcp_connection *c) {
    c->is_mute = true;
    c->queued = 0;
    c->queued_bytes = c->copied_bytes = 0;
    c->backlog_start = c->backlog_end = 0;
}

static bool is_passing(int error) {
    return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

static void shrink_backlog(helio_tcp_connection *c) {
    c->backlog_start = c->backlog_end = 0;
    if (c->backlog_bytes > BACKLOG_KEPT) {
        free(c->backlog);
        give_back(c, c->backlog_bytes);
        c->backlog = NULL;
        c->backlog_bytes = 0;
    }
}

static void push_backlog(helio_tcp_connection *c) {
    while (helio_tcp_backlog(c) > 0) {
        const long sent = helio_direct_sendto(c->out->fd, c->backlog + c->backlog_start,
                                              helio_tcp_backlog(c), SEND_FLAGS, NULL, 0);
        if (sent < 0) {
            if (!is_passing((int)-sent)) {
                become_mute(c);
            }
            return;
        }
        c->spoke = true;
        c->backlog_start += (size_t)sent;
    }
    shrink_backlog(c);
}

/* Makes room for `bytes` behind the backlog; `is_needed`: half a frame was sent. */
static bool make_room(helio_tcp_connection *c, size_t bytes, bool is_needed) {
    if (c->backlog_bytes - c->backlog_end >= bytes) {
        return true;
    }
    const size_t held = helio_tcp_backlog(c);
    if (c->backlog_bytes >= 2 * (held + bytes)) { /* so that moving costs less than it saves */
        memmove(c->backlog, c->backlog + c->backlog_start, held);
        c->backlog_start = 0;
        c->backlog_end = held;
        return true;
    }
    size_t capacity = c->backlog_bytes > BACKLOG_FIRST ? c->backlog_bytes : BACKLOG_FIRST;
    while (capacity < 2 * (held + bytes)) {
        capacity *= 2;
    }
    if (!pay(c, capacity, is_needed)) {
        return false;
    }
    uint8_t *larger = malloc(capacity);
    if (!larger) {
        give_back(c, capacity);
        return false;
    }
    if (held > 0) {
        memcpy(larger, c->backlog + c->backlog_start, held);
    }
    free(c->backlog);
    give_back(c, c->backlog_bytes);
    c->backlog = larger;
    c->backlog_bytes = capacity;
    c->backlog_start = 0;
    c->backlog_end = held;
    return true;
}

static void keep(helio_tcp_connection *c, const void *bytes, size_t length) {
    memcpy(c->backlog + c->backlog_end, bytes, length);
    c->backlog_end += length;
}

/* Copies frame `i` of the queue, but for its first `skip` bytes, behind the backlog. */
static void keep_frame(helio_tcp_connection *c, unsigned i, size_t skip) {
    const struct iovec *part = &c->parts[2 * (size_t)i];
    const size_t length = part[0].iov_len + part[1].iov_len - skip;
    const bool has_room = helio_tcp_backlog(c) + length <= c->limits.backlog_bytes;
    if ((!has_room && skip == 0) || !make_room(c, length, skip > 0)) {
        c->left_out++;
        if (skip > 0) { /* half a frame was sent, and there is no memory for the other half */
            become_mute(c);
            helio_tcp_break_off(c, "no memory for what the connection does not take");
        }
        return;
    }
    const size_t of_head = skip < part[0].iov_len ? skip : part[0].iov_len;
    keep(c, (const uint8_t *)part[0].iov_base + of_head, part[0].iov_len - of_head);
    keep(c, (const uint8_t *)part[1].iov_base + (skip - of_head),
         part[1].iov_len - (skip - of_head));
}

/* What the kernel did not take of the queue, `sent` bytes of which are gone. */
static void keep_rest(helio_tcp_connection *c, size_t sent) {
    for (unsigned i = 0; i < c->queued; i++) {
        const size_t length = c->parts[2 * i].iov_len + c->parts[2 * i + 1].iov_len;
        if (sent >= length) {
            sent -= length;
            continue;
        }
        keep_frame(c, i, sent);
        sent = 0;
    }
}

/* Completes a short frame that begins with its head, and hands it to the kernel: a copy in one buffer
 * costs less than two buffers.  Returns as send_queue. */
static inline long send_lone(const helio_tcp_connection *c, uint8_t frame[LONE_BYTES],
                             const void *body, size_t length) {
    memcpy(frame + HELIO_RUM_HEAD, body, length);
    return helio_direct_sendto(c->out->fd, frame, HELIO_RUM_HEAD + length, SEND_FLAGS, NULL, 0);
}

/* Hands the queue to the kernel; returns how many bytes it took, or -errno. */
static long send_queue(helio_tcp_connection *c) {
    if (c->queued == 1 && c->queued_bytes <= LONE_BYTES) {
        uint8_t frame[LONE_BYTES];
        memcpy(frame, c->heads[0], HELIO_RUM_HEAD);
        return send_lone(c, frame, c->parts[1].iov_base, c->parts[1].iov_len);
    }
    const struct msghdr message = {.msg_iov = c->parts, .msg_iovlen = 2 * (size_t)c->queued};
    return helio_direct_sendmsg(c->out->fd, &message, SEND_FLAGS);
}

/* Empties the queue, of which the kernel took `result` bytes; below 0: none, for that reason. */
static void settle(helio_tcp_connection *c, long result) {
    const size_t sent = result > 0 ? (size_t)result : 0;
    c->spoke |= sent > 0;
    if (result < 0 && !is_passing((int)-result)) {
        become_mute(c);
    }
    if (sent < c->queued_bytes && !c->is_mute) {
        keep_rest(c, sent);
    }
    c->queued = 0;
    c->queued_bytes = c->copied_bytes = 0;
}

void helio_tcp_flush(helio_tcp_connection *c) {
    if (helio_tcp_backlog(c) > 0) {
        push_backlog(c);
    }
    if (c->queued > 0) {
        settle(c, helio_tcp_backlog(c) == 0 && !c->is_mute ? send_queue(c) : 0);
    }
}

/* Adds a frame whose body stays where it is until the flush. */
static void add(helio_tcp_connection *c, uint8_t kind, const void *body, size_t length) {
    const unsigned i = c->queued++;
    helio_frame_head(c->heads[i], kind, length);
    c->parts[2 * i] = (struct iovec){c->heads[i], HELIO_RUM_HEAD};
    c->parts[2 * i + 1] = (struct iovec){(void *)(uintptr_t)body, length};
    c->queued_bytes += HELIO_RUM_HEAD + length;
}

void helio_tcp_say(helio_tcp_connection *c, uint8_t kind, const void *body, size_t length) {
    if (c->queued == HELIO_TCP_QUEUE) {
        helio_tcp_flush(c);
    }
    if (!c->is_mute) {
        add(c, kind, body, length);
        helio_tcp_flush(c);
    }
}

void helio_tcp_queue(helio_tcp_connection *c, const void *packet, size_t length, bool stable) {
    if (c->is_mute) {
        return;
    }
    stable &= !c->wants_sums;
    const bool fits = stable || c->copied_bytes + length <= COPIES_BYTES + c->limits.packet_bytes;
    if (c->queued == HELIO_TCP_QUEUE || !fits) {
        helio_tcp_flush(c);
        if (c->is_mute) {
            return;
        }
    }
    if (!stable) {
        uint8_t *copy = c->copies + c->copied_bytes;
        memcpy(copy, packet, length);
        c->copied_bytes += length;
        packet = copy;
        if (c->wants_sums) {
            helio_pgm_sum_data(copy, length);
        }
    }
    add(c, HELIO_RUM_KIND_PACKET, packet, length);
}

/* Nearly always the kernel takes a lone frame whole, and it never enters the queue. */
void helio_tcp_send_now(helio_tcp_connection *c, const void *packet, size_t length) {
    const size_t bytes = HELIO_RUM_HEAD + length;
    if (bytes > LONE_BYTES || c->queued > 0 || helio_tcp_backlog(c) > 0 || c->is_mute ||
        c->wants_sums) {
        helio_tcp_queue(c, packet, length, true);
        helio_tcp_flush(c);
        return;
    }
    uint8_t frame[LONE_BYTES];
    helio_frame_head(frame, HELIO_RUM_KIND_PACKET, length);
    const long result = send_lone(c, frame, packet, length);
    if (result == (long)bytes) {
        c->spoke = true;
        return;
    }
    add(c, HELIO_RUM_KIND_PACKET, packet, length);
    settle(c, result);
}

/* ---- reading ---- */

static uint64_t standing_bytes(const helio_tcp_connection *c) {
    return c->limits.read_bytes + HELIO_RUM_HEAD + c->limits.packet_bytes + COPIES_BYTES +
           c->limits.packet_bytes;
}

/* What was read and not handed out goes on in `to`.  The buffer is freed, at the end of the loan if
 * there is one. */
static void move_buffer(helio_tcp_connection *c, uint8_t *to, helio_loan *loan) {
    memcpy(to, c->buffer + c->start, c->end - c->start);
    c->end -= c->start;
    c->start = 0;
    helio_loan_release(loan, c->buffer);
    c->buffer = to;
}

bool helio_tcp_leave(helio_tcp_connection *c, helio_loan *loan) {
    uint8_t *buffer = helio_loan_allocate(c->buffer_bytes);
    if (buffer) {
        move_buffer(c, buffer, loan);
    }
    return buffer != NULL;
}

/* It is one of ours, and gets what it needs. */
static void stand(helio_tcp_connection *c) {
    const size_t buffer_bytes = c->limits.read_bytes + HELIO_RUM_HEAD + c->limits.packet_bytes;
    uint8_t *buffer = NULL;
    if (pay(c, standing_bytes(c), false)) {
        buffer = helio_loan_allocate(buffer_bytes);
        c->copies = malloc(COPIES_BYTES + c->limits.packet_bytes);
    }
    if (!buffer || !c->copies) {
        helio_loan_release(NULL, buffer);
        REFUSE(c, "there is no memory for one more connection");
        return;
    }
    move_buffer(c, buffer, NULL);
    c->buffer_bytes = buffer_bytes;
    c->state = HELIO_TCP_STANDING;
    helio_tcp_pairing_add(c);
}

static void on_hello(helio_tcp_connection *c, const helio_frame *frame) {
    helio_hello hello;
    if (!helio_hello_decode(frame, &hello)) {
        REFUSE(c, "it does not use this protocol");
    } else if (hello.version != HELIO_RUM_VERSION) {
        REFUSE(c, "it uses version %u of the protocol, this side uses version %u", hello.version,
               HELIO_RUM_VERSION);
    } else if (hello.role == c->limits.role) {
        REFUSE(c, "it is a %s as well",
               hello.role == HELIO_RUM_ROLE_TRANSMIT ? "transmitter" : "receiver");
    } else if (hello.role == HELIO_RUM_ROLE_TRANSMIT
                   ? hello.max_packet_bytes > c->limits.packet_bytes
                   : hello.max_packet_bytes < c->limits.packet_bytes) {
        REFUSE(c, "its packets have up to %u bytes, here up to %zu; give both sides the same mtu",
               hello.max_packet_bytes, c->limits.packet_bytes);
    } else if (c->is_excess) {
        c->was_excess = true;
        REFUSE(c, "there are too many connections already");
    } else {
        const int64_t timeout_ns = hello.timeout_ms * HELIO_MILLISECOND;
        const int64_t shorter_ns =
            timeout_ns < c->limits.timeout_ns ? timeout_ns : c->limits.timeout_ns;
        c->wants_sums = !(hello.features & HELIO_RUM_FEATURE_UNSUMMED);
        c->instance = hello.instance;
        c->alive_ns =
            shorter_ns / ALIVE_SHARE > ALIVE_MIN_NS ? shorter_ns / ALIVE_SHARE : ALIVE_MIN_NS;
        stand(c);
    }
}

/* Reads the next frame of the buffer; false when there is none, or none any more. */
static bool next_frame(helio_tcp_connection *c, helio_frame *frame) {
    const bool greets = c->state == HELIO_TCP_GREETING;
    if (greets && c->end > c->start && c->buffer[c->start] != HELIO_RUM_KIND_HELLO) {
        REFUSE(c, "it does not use this protocol");
        return false;
    }
    switch (helio_frame_decode(c->buffer + c->start, c->end - c->start,
                               greets ? HELLO_LONGEST : c->limits.packet_bytes, frame)) {
    case HELIO_FRAME_WHOLE:
        c->start += HELIO_RUM_HEAD + frame->length;
        c->heard = true;
        return true;
    case HELIO_FRAME_PARTIAL:
        return false;
    case HELIO_FRAME_TOO_LONG:
        REFUSE(c, "it sent a frame longer than %zu bytes", c->limits.packet_bytes);
        return false;
    case HELIO_FRAME_UNKNOWN:
        break;
    }
    REFUSE(c, "it sent a frame of an unknown kind");
    return false;
}

/* Hands out what is in the buffer. */
static size_t take(helio_tcp_connection *c, helio_datagram *out, size_t limit) {
    size_t count = 0;
    helio_frame frame;
    while (count < limit && c->start < c->end && c->state != HELIO_TCP_BROKEN && !c->is_crossing &&
           next_frame(c, &frame)) {
        if (frame.kind == HELIO_RUM_KIND_PACKET) {
            out[count++] =
                (helio_datagram){.data = frame.body, .length = frame.length, .source = c->peer};
        } else if (frame.kind == HELIO_RUM_KIND_HELLO) {
            if (c->state == HELIO_TCP_STANDING) {
                helio_tcp_break_off(c, "it sent a second hello frame");
            } else {
                on_hello(c, &frame);
            }
        } else if (frame.kind == HELIO_RUM_KIND_PAIR) {
            helio_tcp_pairing_on_pair(c, &frame);
        } else if (frame.kind == HELIO_RUM_KIND_CROSS) {
            helio_tcp_pairing_on_cross(c);
        }
    }
    return count;
}

/* A connection that got the buffer of another by pairing may want a larger one. */
static void enlarge_buffer(helio_tcp_connection *c) {
    const size_t wanted = c->limits.read_bytes + HELIO_RUM_HEAD + c->limits.packet_bytes;
    if (c->state != HELIO_TCP_STANDING || !pay(c, wanted - c->buffer_bytes, false)) {
        return;
    }
    uint8_t *larger = helio_loan_allocate(wanted);
    if (!larger) {
        give_back(c, wanted - c->buffer_bytes);
        return;
    }
    move_buffer(c, larger, NULL);
    c->buffer_bytes = wanted;
}

/* Reads once; false when nothing came. */
static bool fill(helio_tcp_connection *c) {
    if (c->start == c->end) {
        c->start = c->end = 0;
        if (c->buffer_bytes < c->limits.read_bytes && c->is_crossed) {
            enlarge_buffer(c);
        }
    } else if (c->buffer_bytes - c->end < c->limits.read_bytes) {
        memmove(c->buffer, c->buffer + c->start, c->end - c->start);
        c->end -= c->start;
        c->start = 0;
    }
    const long got = helio_direct_recvfrom(c->in->fd, c->buffer + c->end, c->buffer_bytes - c->end,
                                           MSG_DONTWAIT, NULL, NULL);
    if (got > 0) {
        c->end += (size_t)got;
        return true;
    }
    if (got == 0) {
        helio_tcp_break_off(c, c->start == c->end
                                   ? "the other side closed it"
                                   : "the other side closed it in the middle of a packet");
    } else if (!is_passing((int)-got)) {
        helio_tcp_break_off(c, "%s", strerror((int)-got));
    }
    return false;
}

size_t helio_tcp_read(helio_tcp_connection *c, helio_datagram *out, size_t limit) {
    if (c->is_crossing) {
        helio_tcp_pairing_turn(c);
        if (c->is_crossing) {
            return 0;
        }
    }
    size_t count = c->start < c->end ? take(c, out, limit) : 0;
    if (count == 0 && c->state != HELIO_TCP_BROKEN && fill(c)) {
        count = take(c, out, limit);
    }
    return count;
}

bool helio_tcp_has_frame(const helio_tcp_connection *c) {
    helio_frame frame;
    if (c->is_crossing) { /* the other one of the pair reads on, once both wait */
        return c->limits.role == HELIO_RUM_ROLE_RECEIVE && c->twin && c->twin->is_crossing;
    }
    return c->state != HELIO_TCP_BROKEN &&
           helio_frame_decode(c->buffer + c->start, c->end - c->start, c->limits.packet_bytes,
                              &frame) != HELIO_FRAME_PARTIAL;
}

/* ---- time ---- */

/* When the engine itself was away for a while, that was not the other side's silence. */
static void forgive_absence(helio_tcp_connection *c, int64_t now_ns) {
    const int64_t away_ns = now_ns - c->tended_ns;
    if (away_ns > c->limits.timeout_ns / ALIVE_SHARE) {
        c->heard_ns += away_ns;
    }
    c->tended_ns = now_ns;
}

static void stay_alive(helio_tcp_connection *c, int64_t now_ns) {
    if (c->spoke || helio_tcp_backlog(c) > 0) {
        c->spoke = false;
        c->spoke_ns = now_ns;
    } else if (now_ns - c->spoke_ns >= c->alive_ns && !c->is_mute && c->queued < HELIO_TCP_QUEUE) {
        add(c, HELIO_RUM_KIND_ALIVE, "", 0);
        c->spoke_ns = now_ns;
    }
}

void helio_tcp_tend(helio_tcp_connection *c, int64_t now_ns) {
    if (!c->born_ns) {
        c->born_ns = c->heard_ns = c->spoke_ns = c->tended_ns = now_ns;
    }
    forgive_absence(c, now_ns);
    if (c->heard || c->is_paused) {
        c->heard = false;
        c->heard_ns = now_ns;
    }
    const int64_t timeout_ns = c->limits.timeout_ns;
    if (c->is_mute && c->in != c->out && c->state == HELIO_TCP_STANDING) {
        helio_tcp_break_off(c, "it cannot be written to");
    }
    if (c->state == HELIO_TCP_STANDING) {
        stay_alive(c, now_ns);
        helio_tcp_pairing_offer(c);
        if (now_ns - c->heard_ns >= timeout_ns) {
            helio_tcp_break_off(
                c, "nothing was received for %.3g seconds%s", (double)timeout_ns * 1e-9,
                c->start == c->end ? "" : ", since it stopped in the middle of a packet");
        }
    } else if (c->state == HELIO_TCP_GREETING && !c->is_paused &&
               now_ns - c->born_ns >= (timeout_ns < GREETING_NS ? timeout_ns : GREETING_NS)) {
        if (helio_tcp_backlog(c) > 0) {
            helio_tcp_break_off(c, "no answer");
        } else {
            REFUSE(c, "it sent no hello frame in time");
        }
    }
    helio_tcp_flush(c);
}

static void watch_socket(helio_tcp_watch *watch, int epoll, int fd, uint32_t wanted, void *data) {
    if (watch->events && (!wanted || watch->fd != fd)) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, watch->fd, NULL);
        watch->events = 0;
    }
    struct epoll_event event = {.events = wanted, .data.ptr = data};
    if (wanted != watch->events &&
        epoll_ctl(epoll, watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0) {
        *watch = (helio_tcp_watch){fd, wanted};
    }
}

void helio_tcp_watch_connection(helio_tcp_watch watches[2], int epoll,
                                const helio_tcp_connection *c, void *data) {
    const uint32_t in = !c || c->is_paused || c->is_crossing ? 0 : EPOLLIN;
    const uint32_t out = c && helio_tcp_backlog(c) > 0 ? EPOLLOUT : 0;
    const bool is_one = !c || c->in == c->out;
    watch_socket(&watches[0], epoll, c ? c->in->fd : -1, is_one ? in | out : in, data);
    watch_socket(&watches[1], epoll, c ? c->out->fd : -1, is_one ? 0 : out, data);
}

/* ---- life ---- */

static void say_hello(helio_tcp_connection *c) {
    const helio_hello hello = {
        .version = HELIO_RUM_VERSION,
        .role = c->limits.role,
        .instance = c->limits.pairing ? c->limits.pairing->instance : 0,
        .features = HELIO_RUM_FEATURE_UNSUMMED,
        .max_packet_bytes = (uint32_t)c->limits.packet_bytes,
        .timeout_ms = (uint32_t)(c->limits.timeout_ns / HELIO_MILLISECOND),
    };
    helio_hello_encode(c->backlog, &hello);
    c->backlog_end = HELIO_FRAME_HELLO_BYTES;
    push_backlog(c);
}

helio_tcp_connection *helio_tcp_connection_create(int fd, const helio_address *peer,
                                                  const helio_tcp_limits *limits) {
    helio_tcp_connection *c = calloc(1, sizeof *c);
    helio_tcp_socket *socket = malloc(sizeof *socket);
    if (!c || !socket) {
        close(fd);
        free(c);
        free(socket);
        return NULL;
    }
    *socket = (helio_tcp_socket){.fd = fd, .halves = 2};
    c->in = c->out = socket;
    c->peer = *peer;
    c->limits = *limits;
    if (pay(c, sizeof *c + 2 * (uint64_t)GREETING_BYTES, false)) {
        c->buffer = helio_loan_allocate(GREETING_BYTES);
        c->backlog = malloc(GREETING_BYTES);
        c->buffer_bytes = c->backlog_bytes = GREETING_BYTES;
    }
    if (!c->buffer || !c->backlog) {
        helio_tcp_connection_destroy(c);
        return NULL;
    }
    say_hello(c);
    return c;
}

/* Unread bytes would make the kernel reset the connection and throw away what it has yet to
 * deliver. */
static void read_the_last(int fd, uint8_t *buffer, size_t bytes) {
    for (int i = 0; i < LAST_READS && buffer; i++) {
        if (recv(fd, buffer, bytes, MSG_DONTWAIT) <= 0) {
            return;
        }
    }
}

/* The connection needs one direction of a socket no more. */
static void release(helio_tcp_connection *c, helio_tcp_socket *socket) {
    if (--socket->halves > 0) {
        return;
    }
    if (c->state == HELIO_TCP_STANDING) {
        read_the_last(socket->fd, c->buffer, c->buffer_bytes);
    }
    shutdown(socket->fd, SHUT_RDWR); /* also for copies of the descriptor in forked children */
    close(socket->fd);
    free(socket);
}

void helio_tcp_connection_destroy(helio_tcp_connection *c) {
    if (!c) {
        return;
    }
    helio_tcp_pairing_remove(c);
    if (c->state == HELIO_TCP_STANDING) {
        helio_tcp_flush(c);
    }
    if (c->in != c->out) {
        shutdown(c->out->fd, SHUT_WR); /* its other direction belongs to another connection */
    }
    release(c, c->out);
    release(c, c->in);
    helio_account_give(c->limits.account, c->charged);
    helio_loan_release(NULL, c->buffer);
    free(c->copies);
    free(c->backlog);
    free(c);
}
