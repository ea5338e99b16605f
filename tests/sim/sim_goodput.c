/* Goodput at 1 % loss over goodput without loss, of one source and one receiver that acknowledges.
 *
 *     sim_goodput [--table]
 *
 * The engine's own code on a virtual clock.  Each end is one thread: a packet costs it a fixed time,
 * and packets wait in the socket until it reads them.  The receiver has two sockets, as with UDP:
 * one of the group, one for what is sent to it alone.  It reads the second first. */
#include <string.h>

#include "check.h"
#include "receive/endpoint.h"
#include "world.h"

enum {
    QUEUED_MAX = 16384, /* packets in a socket */
    BATCH = 64,         /* packets a thread reads or sends in one go */
    WAY_NS = 5000,
    FEEDBACK_NS = 400, /* what a packet of the receiver costs the source */
    HISTORY = 2048,
};

#define MEASURED_NS (100 * HELIO_MILLISECOND)

typedef struct flow {
    size_t message;      /* bytes */
    unsigned per_packet; /* messages */
    int64_t source_ns;   /* what a packet costs */
    int64_t receiver_ns;
    unsigned list; /* packets sent before the source reads feedback */
    double loss;
    bool goes_alone; /* the receiver takes repairs that are sent to it alone */
} flow;

typedef struct queued {
    uint8_t bytes[1500];
    size_t length;
    int64_t at_ns;
} queued;

typedef struct box {
    queued packets[QUEUED_MAX];
    uint64_t first, end;
} box;

static box group_box, alone_box, source_box;
static int64_t source_ns, receiver_ns;
static helio_address receiver_address, source_address;
static uint64_t messages, repairs_alone, dropped;

static void put(box *into, const void *packet, size_t length, int64_t at_ns) {
    if (into->end - into->first == QUEUED_MAX) {
        dropped++;
        return;
    }
    queued *q = &into->packets[into->end++ % QUEUED_MAX];
    memcpy(q->bytes, packet, length);
    q->length = length;
    q->at_ns = at_ns;
}

/* The oldest packet that has arrived; NULL: none. */
static const queued *take(box *from, int64_t now_ns) {
    if (from->first == from->end || from->packets[from->first % QUEUED_MAX].at_ns > now_ns) {
        return NULL;
    }
    return &from->packets[from->first++ % QUEUED_MAX];
}

static int64_t next_of(const box *b) {
    return b->first == b->end ? HELIO_NEVER : b->packets[b->first % QUEUED_MAX].at_ns;
}

static int send_down(void *context, const helio_address *to, const void *packet, size_t length,
                     bool stable) {
    (void)context, (void)stable;
    const bool is_alone = to && helio_address_equal(to, &receiver_address);
    repairs_alone += is_alone;
    put(is_alone ? &alone_box : &group_box, packet, length, source_ns + WAY_NS);
    return 0;
}

static int send_up(void *context, const helio_address *to, const void *packet, size_t length,
                   bool stable) {
    (void)context, (void)stable, (void)to;
    put(&source_box, packet, length, receiver_ns + WAY_NS);
    return 0;
}

static size_t take_all(void *context, const helio_message *taken, size_t count) {
    (void)context, (void)taken;
    messages += count;
    return count;
}

static helio_moment moment_of(int64_t ns) {
    return (helio_moment){.now_ns = ns, .wall_ns = ns};
}

/* One turn of the source's thread. */
static void run_source(helio_tx_stream *stream, helio_tx_topic *topic, const flow *f) {
    static const uint8_t body[1500];
    bool worked = false;
    const queued *q;
    for (int i = 0; i < BATCH && (q = take(&source_box, source_ns)); i++) {
        source_ns += FEEDBACK_NS;
        helio_tx_stream_on_packet(stream, q->bytes, q->length, &receiver_address,
                                  moment_of(source_ns));
        worked = true;
    }
    worked |= helio_tx_stream_poll(stream, moment_of(source_ns)) > 0;
    for (unsigned i = 0; i < f->list; i++) {
        const uint64_t lead = helio_tx_stream_lead(stream);
        while (helio_tx_stream_lead(stream) == lead) {
            const helio_moment now = moment_of(source_ns);
            if (helio_tx_stream_admit(stream, topic, f->message, now) != HELIO_ADMIT_GO) {
                helio_tx_stream_flush(stream, now);
                break;
            }
            helio_tx_stream_append(stream, topic, body, f->message, now.wall_ns, now);
            if (f->per_packet == 1) {
                helio_tx_stream_flush(stream, now);
            }
        }
        if (helio_tx_stream_lead(stream) == lead) {
            break;
        }
        source_ns += f->source_ns;
        worked = true;
    }
    if (!worked) {
        const int64_t next_ns = helio_min(next_of(&source_box), source_ns + WAY_NS);
        source_ns = helio_max(source_ns + 50, next_ns);
    }
}

static bool read_socket(helio_rx_endpoint *endpoint, box *from, const flow *f,
                        helio_random *random) {
    const queued *q;
    int count = 0;
    for (; count < BATCH && (q = take(from, receiver_ns)); count++) {
        if (f->loss > 0 && helio_random_unit(random) < f->loss) {
            continue;
        }
        receiver_ns += f->receiver_ns;
        helio_rx_endpoint_on_packet(endpoint, q->bytes, q->length, &source_address, receiver_ns,
                                    moment_of(receiver_ns));
    }
    return count > 0;
}

static void run_receiver(helio_rx_endpoint *endpoint, const flow *f, helio_random *random) {
    const bool worked =
        read_socket(endpoint, &alone_box, f, random) | read_socket(endpoint, &group_box, f, random);
    helio_rx_endpoint_poll(endpoint, moment_of(receiver_ns));
    if (!worked) {
        const int64_t next_ns = helio_min(next_of(&alone_box), next_of(&group_box));
        receiver_ns = helio_max(receiver_ns + 50, helio_min(next_ns, receiver_ns + 1000));
    }
}

/* Messages delivered in MEASURED_NS. */
static uint64_t measure(const flow *f) {
    helio_stats *stats;
    helio_stats_object tx, rx;
    const helio_stats_config stats_config = {
        .name = "goodput", .bytes = 4 << 20, .level = 0, .wall_ns = 1};
    CHECK_EQUAL(helio_stats_create(&stats_config, &stats), 0);
    CHECK_EQUAL(helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=tx\n", 1, &tx), 0);
    CHECK_EQUAL(helio_stats_open_object(stats, HELIO_SCOPE_INSTANCE, "instance=rx\n", 1, &rx), 0);
    group_box.first = group_box.end = alone_box.first = alone_box.end = 0;
    source_box.first = source_box.end = 0;
    messages = repairs_alone = dropped = 0;
    source_ns = receiver_ns = HELIO_SECOND;

    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = HISTORY;
    config.acks = 1;
    config.report_interval_ns = 10 * HELIO_MILLISECOND;
    source_address = config.address;
    source_address.port = config.tsi.port;
    helio_tx_stream *stream;
    helio_tx_topic *topic;
    CHECK_EQUAL(helio_tx_stream_create(&config, (helio_outlet){NULL, send_down}, stats, tx.record,
                                       moment_of(source_ns), &stream),
                0);
    CHECK_EQUAL(helio_tx_stream_add_topic(stream, "t", moment_of(source_ns), &topic), 0);

    helio_rx_endpoint_config at = world_receiver_config(100);
    at.window_packets = 8192;
    at.receiver = 4711;
    at.nak_backoff_ns = -1;
    at.nak_repeat_ns = at.nak_data_ns = 0;
    at.ack_packets = 64;
    at.ack_interval_ns = HELIO_MILLISECOND;
    at.takes_unicast = f->goes_alone;
    receiver_address = at.feedback_address;
    helio_rx_endpoint *endpoint;
    CHECK_EQUAL(
        helio_rx_endpoint_create(&at, (helio_outlet){NULL, send_up}, stats, rx.record, &endpoint),
        0);
    helio_subscription *subscription;
    const helio_sink sink = {.on_messages = take_all, .ack = HELIO_SINK_ACK_AUTO};
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(endpoint, "t", &sink, moment_of(receiver_ns), &subscription),
        0);

    helio_random random;
    helio_random_init(&random, 7);
    const int64_t warm_ns = source_ns + MEASURED_NS / 4, end_ns = warm_ns + MEASURED_NS;
    uint64_t before = 0;
    while (source_ns < end_ns || receiver_ns < end_ns) {
        if (source_ns <= receiver_ns) {
            run_source(stream, topic, f);
        } else {
            run_receiver(endpoint, f, &random);
        }
        if (receiver_ns < warm_ns) {
            before = messages;
        }
    }
    const uint64_t count = messages - before;
    helio_rx_endpoint_destroy(endpoint, moment_of(receiver_ns));
    helio_tx_stream_destroy(stream, moment_of(source_ns));
    helio_stats_close_object(stats, &rx, 1);
    helio_stats_close_object(stats, &tx, 1);
    helio_stats_destroy(stats);
    return count;
}

static double ratio(flow f) {
    const uint64_t lossless = measure(&f);
    f.loss = 0.01;
    const uint64_t lossy = measure(&f);
    return (double)lossy / (double)lossless;
}

static const flow long_messages = {1024, 1, 550, 600, BATCH, 0, true};
static const flow short_messages = {64, 21, 1500, 1700, BATCH, 0, true};

static void print_table(void) {
    const flow *const flows[] = {&short_messages, &long_messages};
    puts("message  source ns  receiver ns  list  to the group  alone");
    for (int i = 0; i < 2; i++) {
        const unsigned lists[] = {BATCH, 512};
        for (int k = 0; k < 4; k++) {
            flow f = *flows[i];
            f.list = lists[k % 2];
            if (k >= 2) { /* the source is the slower end */
                f.source_ns = f.receiver_ns * 7 / 6;
            }
            f.goes_alone = false;
            const double group = ratio(f);
            f.goes_alone = true;
            const double alone = ratio(f);
            printf("%7zu  %9lld  %11lld  %4u  %12.3f  %5.3f\n", f.message, (long long)f.source_ns,
                   (long long)f.receiver_ns, f.list, group, alone);
        }
    }
}

static void goodput_of_long_messages_survives_loss(void) {
    CHECK(ratio(long_messages) >= 0.98);
    CHECK(repairs_alone > 0);
    CHECK_EQUAL(dropped, 0);
}

static void goodput_of_short_messages_survives_loss(void) {
    CHECK(ratio(short_messages) >= 0.98);
    CHECK(repairs_alone > 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        print_table();
        return 0;
    }
    RUN(goodput_of_long_messages_survives_loss);
    RUN(goodput_of_short_messages_survives_loss);
    return check_result();
}
