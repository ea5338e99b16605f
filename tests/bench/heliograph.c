/* Heliograph's side of the benchmarks, through its C interface.
 *
 *   heliograph latency|throughput|repair [--transport rmm|rmm+unicast|rum|shm] [--mode poll|thread]
 *              [--instance OPTIONS] [--tx OPTIONS] [--rx OPTIONS] [--rate MESSAGES_PER_S] [--list N]
 *
 * latency     ping-pong; in mode poll both ends spin
 * throughput  send_many as fast as it goes, or at --rate; N messages in a list, 1 to 2048 (512)
 * repair      one packet each 50 us, the receiver throws some away (--rx inject_loss=...); the
 *             percentiles are of the time from reading the packet that shows the gap to having the
 *             message that was missing
 *
 * Statistics are at level 0 in a segment unless --instance says otherwise. */
#include <heliograph/heliograph.h>

#include "duel.h"

enum { LIST_MAX = 2048, TAKE = 1024, MISSING = 64 };

#define REPAIR_INTERVAL_NS 50000
#define MILLISECOND INT64_C(1000000)

typedef struct end {
    helio_instance *instance;
    helio_transmitter *transmitter;
    helio_receiver *receiver;
    duel_board *board;
    bool is_polled;
    size_t size;
    double rate; /* messages per second, 0: as many as go */
    int64_t begin_ns;
    uint64_t sent;
    size_t list;
    helio_buffer batch[LIST_MAX];
    helio_message taken[TAKE];
    char message[DUEL_SIZE_MAX];
    char marked[DUEL_SIZE_MAX];
} end;

static void fail(const char *what) {
    duel_fail(what, helio_error_text());
}

static void write_endpoint(const duel *d, int number, char *text, size_t size) {
    const char *transport = duel_option(d, "--transport", "rmm");
    const int port = d->port + number;
    if (strcmp(transport, "rmm") == 0) {
        snprintf(text, size, "rmm://239.192.%d.%d:%d?interface=127.0.0.1", port >> 8 & 255,
                 port & 255, port);
    } else if (strcmp(transport, "shm") == 0) {
        snprintf(text, size, "shm://bench-%d?ring_wait=true", port);
    } else {
        snprintf(text, size, "%s://127.0.0.1:%d", transport, port);
    }
}

/* Options of ours, then those of the command line, which win. */
static const char *join(char *text, size_t size, const char *ours, const char *given) {
    snprintf(text, size, "%s%s%s", ours, *given ? "&" : "", given);
    return text;
}

/* Throughput over UDP is measured in the mode Wait-ACK: the receiver's acknowledgements hold the source,
 * which would otherwise outrun it and spend both on repairs.  `--feedback nak` leaves them out. */
static const char *feedback(const duel *d, const char *options) {
    const bool is_udp = strncmp(duel_option(d, "--transport", "rmm"), "rmm", 3) == 0;
    const bool holds = strcmp(duel_option(d, "--feedback", "ack"), "ack") == 0;
    return is_udp && holds && strcmp(d->what, "throughput") == 0 ? options : "";
}

static void *open_end(const duel *d) {
    static end e;
    char options[512], text2[768], text[128];
    const bool is_child = d->child == 0, is_latency = strcmp(d->what, "latency") == 0;
    e.is_polled = strcmp(duel_option(d, "--mode", "poll"), "poll") == 0;
    e.size = d->size;
    e.board = d->board;
    e.rate = strtod(duel_option(d, "--rate", "0"), NULL);
    e.list = strtoul(duel_option(d, "--list", "512"), NULL, 10);
    if (e.list < 1 || e.list > LIST_MAX) {
        duel_fail("--list", "a list has 1 to 2048 messages");
    }
    for (size_t i = 0; i < e.list; i++) {
        e.batch[i] = (helio_buffer){e.message, d->size};
    }
    snprintf(text, sizeof text, "name=bench-%d&level=0&mode=%s", (int)getpid(),
             e.is_polled ? "poll" : "thread");
    if (helio_instance_create(join(options, sizeof options, text, duel_option(d, "--instance", "")),
                              &e.instance) != 0) {
        fail("instance");
    }
    if (is_latency || is_child) {
        write_endpoint(d, is_child ? 0 : 1, text, sizeof text);
        if (helio_receiver_create(
                e.instance, text, "BENCH",
                join(text2, sizeof text2,
                     join(options, sizeof options, "max_streams=8", feedback(d, "ack=auto")),
                     duel_option(d, "--rx", "")),
                NULL, &e.receiver) != 0) {
            fail("receiver");
        }
    }
    if (is_latency || !is_child) {
        write_endpoint(d, is_child ? 1 : 0, text, sizeof text);
        if (helio_transmitter_create(e.instance, text, "BENCH",
                                     join(text2, sizeof text2,
                                          join(options, sizeof options, "linger=0",
                                               feedback(d, "acks=1&send_window=2048")),
                                          duel_option(d, "--tx", "")),
                                     &e.transmitter) != 0) {
            fail("transmitter");
        }
    }
    e.begin_ns = duel_now_ns();
    return &e;
}

static void close_end(void *channel) {
    end *e = channel;
    helio_transmitter_destroy(e->transmitter);
    helio_receiver_destroy(e->receiver);
    helio_instance_destroy(e->instance);
}

/* ---- latency ---- */

static void send_one(void *channel, uint64_t number, size_t size) {
    end *e = channel;
    memcpy(e->message, &number, sizeof number);
    const int status = helio_transmitter_send(e->transmitter, e->message, size);
    if (status != 0 &&
        status != HELIO_ERR_WOULD_BLOCK) { /* not taken: it is given up and sent again */
        fail("send");
    }
}

static bool receive_one(void *channel, uint64_t *number) {
    end *e = channel;
    helio_message message;
    const int got = helio_receiver_receive(e->receiver, &message, 1, 0);
    if (got < 0) {
        fail("receive");
    }
    if (got == 0 || message.length < sizeof *number) {
        return false;
    }
    memcpy(number, message.data, sizeof *number);
    return true;
}

/* ---- throughput ---- */

static size_t due(const end *e) {
    if (e->rate <= 0) {
        return e->list;
    }
    const double planned = e->rate * (double)(duel_now_ns() - e->begin_ns) / 1e9;
    const double behind = planned - (double)e->sent;
    return behind <= 0 ? 0 : behind >= (double)e->list ? e->list : (size_t)behind;
}

static void pour(void *channel) {
    end *e = channel;
    size_t accepted = 0;
    const size_t count = due(e), at = count ? duel_marked(count) : 0;
    if (count) {
        duel_mark(e->marked);
        e->batch[at].data = e->marked;
    }
    const int status = helio_transmitter_send_many(e->transmitter, e->batch, count, &accepted);
    e->batch[at].data = e->message;
    e->sent += accepted;
    if (status != 0 && status != HELIO_ERR_WOULD_BLOCK) {
        fail("send");
    }
    if (e->is_polled) {
        helio_instance_poll(e->instance);
    } else if (status != 0) {
        helio_transmitter_wait(e->transmitter, e->size, MILLISECOND);
    } else if (accepted == 0) {
        usleep(50);
    }
}

static void count_losses(end *e) {
    helio_loss loss;
    while (helio_receiver_loss(e->receiver, &loss) == 1) {
        e->board->lost += loss.count;
    }
}

static uint64_t take(void *channel) {
    end *e = channel;
    const int got =
        helio_receiver_receive(e->receiver, e->taken, TAKE, e->is_polled ? 0 : MILLISECOND);
    if (got < 0) {
        fail("receive");
    }
    for (int i = 0; i < got; i++) {
        duel_arrive(e->board, e->taken[i].data);
    }
    count_losses(e);
    return (uint64_t)got;
}

/* ---- repair ---- */

static void send_paced(const duel *d, end *e) {
    const int64_t end_ns = duel_now_ns() + (int64_t)(d->seconds * 1e9);
    int64_t next_ns = duel_now_ns();
    for (uint64_t number = 1; next_ns < end_ns && !d->board->stop; number++) {
        send_one(e, number, d->size);
        next_ns += REPAIR_INTERVAL_NS;
        do {
            if (e->is_polled) {
                helio_instance_poll(e->instance);
            }
        } while (duel_now_ns() < next_ns && !d->board->stop);
    }
}

static int64_t wall_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* Messages come in order, so the first after repaired ones that needed no repair is the one that
 * showed the gap; it was read before them. */
static void time_repairs(const duel *d, end *e) {
    int64_t repaired_ns[MISSING];
    int repaired = 0;
    d->board->ready++;
    while (!d->board->stop) {
        const int got =
            helio_receiver_receive(e->receiver, e->taken, TAKE, e->is_polled ? 0 : MILLISECOND);
        for (int i = 0; i < got; i++) {
            const helio_message *message = &e->taken[i];
            if (!(message->flags & HELIO_MESSAGE_RECOVERED)) {
                for (; repaired > 0; repaired--) {
                    const int64_t took_ns = repaired_ns[repaired - 1] - message->receive_ns;
                    helio_hdr_record(&d->board->latency, took_ns, 1);
                }
            } else if (repaired < MISSING) {
                repaired_ns[repaired++] = wall_ns();
            }
        }
        count_losses(e);
    }
}

static int play_repair(duel *d) {
    if (duel_fork(d)) {
        end *e = open_end(d);
        time_repairs(d, e);
        close_end(e);
        _exit(0);
    }
    end *e = open_end(d);
    duel_wait_ready(d, 1);
    send_paced(d, e);
    duel_end(d);
    close_end(e);
    duel_print_latency(d);
    return 0;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"--transport", "--mode", "--instance", "--tx",
                                        "--rx",        "--rate", "--list",     NULL};
    static const char usage[] = "latency|throughput|repair [--transport rmm|rmm+unicast|rum|shm]\n"
                                "  [--mode poll|thread] [--instance OPTIONS] [--tx OPTIONS] [--rx "
                                "OPTIONS] [--rate PER_S] [--list N]\n ";
    duel d;
    duel_init(&d, argc, argv, usage, names);
    if (strcmp(d.what, "repair") == 0) {
        return play_repair(&d);
    }
    return duel_play(&d, (duel_ends){open_end, send_one, receive_one, pour, take, close_end});
}
