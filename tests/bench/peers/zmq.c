/* libzmq, through its C interface.
 *
 *   zmq latency|throughput [--transport tcp|epgm]
 *
 * tcp: PAIR for latency, PUSH and PULL for throughput.  epgm: PUB and SUB.  One message per call,
 * queues without limit but for a bound of 200,000 messages on the way over tcp, as a sender that
 * must not fill the memory would keep.  latency spins (ZMQ_DONTWAIT). */
#include <zmq.h>

#include "../duel.h"

enum { ON_THE_WAY = 200000, ROUND = 256 };

typedef struct end {
    void *in, *out;
    bool is_tcp;
    size_t size;
    uint64_t sent;
    duel_board *board;
    char message[DUEL_SIZE_MAX];
} end;

static void set(void *socket, int option, int value) {
    if (zmq_setsockopt(socket, option, &value, sizeof value) != 0) {
        duel_fail("zmq_setsockopt", zmq_strerror(zmq_errno()));
    }
}

static void *open_socket(void *context, const duel *d, bool is_tcp, int type, int number,
                         bool binds) {
    char text[64];
    void *socket = zmq_socket(context, type);
    if (!socket) {
        duel_fail("zmq_socket", zmq_strerror(zmq_errno()));
    }
    set(socket, ZMQ_SNDHWM, 0);
    set(socket, ZMQ_RCVHWM, 0);
    set(socket, ZMQ_LINGER, 0);
    if (type == ZMQ_SUB) {
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
    }
    if (is_tcp) {
        snprintf(text, sizeof text, "tcp://127.0.0.1:%d", d->port + number);
    } else {
        set(socket, ZMQ_RATE, 2000000); /* kilobit: never what holds it back */
        set(socket, ZMQ_RECOVERY_IVL, 500);
        snprintf(text, sizeof text, "epgm://127.0.0.1;239.194.%d.%d:%d", d->port >> 8 & 255,
                 d->port & 255, d->port + number);
    }
    if ((binds ? zmq_bind : zmq_connect)(socket, text) != 0) {
        duel_fail(text, zmq_strerror(zmq_errno()));
    }
    return socket;
}

static void *open_end(const duel *d) {
    static end e;
    const bool is_child = d->child == 0, is_latency = strcmp(d->what, "latency") == 0;
    void *context = zmq_ctx_new();
    e.is_tcp = strcmp(duel_option(d, "--transport", "tcp"), "tcp") == 0;
    e.size = d->size;
    e.board = d->board;
    if (!e.is_tcp) {
        e.in = open_socket(context, d, false, ZMQ_SUB, is_child ? 0 : 1, false);
        e.out = open_socket(context, d, false, ZMQ_PUB, is_child ? 1 : 0, false);
    } else if (is_latency) {
        e.in = e.out = open_socket(context, d, true, ZMQ_PAIR, 0, is_child);
    } else if (is_child) {
        e.in = open_socket(context, d, true, ZMQ_PULL, 0, true);
    } else {
        e.out = open_socket(context, d, true, ZMQ_PUSH, 0, false);
    }
    return &e;
}

static void send_one(void *channel, uint64_t number, size_t size) {
    end *e = channel;
    memcpy(e->message, &number, sizeof number);
    if (zmq_send(e->out, e->message, size, 0) < 0) {
        duel_fail("zmq_send", zmq_strerror(zmq_errno()));
    }
}

static bool receive_one(void *channel, uint64_t *number) {
    end *e = channel;
    if (zmq_recv(e->in, e->message, sizeof e->message, ZMQ_DONTWAIT) < (int)sizeof *number) {
        return false;
    }
    memcpy(number, e->message, sizeof *number);
    return true;
}

static void pour(void *channel) {
    end *e = channel;
    const uint64_t received = atomic_load_explicit(&e->board->received, memory_order_relaxed);
    if (e->is_tcp && e->sent - received > ON_THE_WAY) {
        usleep(50);
        return;
    }
    duel_mark(e->message);
    zmq_send(e->out, e->message, e->size, 0);
    duel_unmark(e->message);
    for (int i = 1; i < ROUND; i++) {
        zmq_send(e->out, e->message, e->size, 0);
    }
    e->sent += ROUND;
}

static uint64_t take(void *channel) {
    end *e = channel;
    zmq_msg_t message;
    uint64_t messages = 0;
    zmq_msg_init(&message);
    while (messages < ROUND && zmq_msg_recv(&message, e->in, ZMQ_DONTWAIT) >= 0) {
        duel_arrive(e->board, zmq_msg_data(&message));
        messages++;
    }
    zmq_msg_close(&message);
    if (!messages) { /* leaves the core to the thread that reads the socket */
        zmq_pollitem_t item = {.socket = e->in, .events = ZMQ_POLLIN};
        zmq_poll(&item, 1, 1);
    }
    return messages;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"--transport", NULL};
    duel d;
    duel_init(&d, argc, argv, "latency|throughput [--transport tcp|epgm]", names);
    const int status =
        duel_play(&d, (duel_ends){open_end, send_one, receive_one, pour, take, NULL});
    fflush(stdout);
    _exit(status); /* its threads may still be sending: nothing waits for them */
}
