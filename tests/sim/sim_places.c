/* Where packets died is told right: four places of loss are emulated in turn, each under a
 * background of the others, and in at least 95 of 100 runs the place with the most losses is the
 * one that was.
 *
 *     sim_places [--runs N] [--verbose]
 *
 * A receiver's host is a socket buffer of some packets that an engine empties in turns; the driver
 * of the source refuses packets, the network loses them, the buffer overflows, or the application
 * has no room and the window overflows.  What the engine cannot know - that packets never left -
 * the monitor adds from the other end (monitor/localise.py); the rule is the same here. */
#include <stdbool.h>

#include "check.h"
#include "reconciliation.h"
#include "world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RUNS_DEFAULT = 80 };
#else
enum { RUNS_DEFAULT = 400 };
#endif

typedef enum place { SENDER, NETWORK, SOCKET, QUEUE, PLACES } place;

static const char *const NAMES[PLACES] = {"sender", "network", "socket", "queue"};

enum { BUFFER_MAX = 4096, PACKET_BYTES = 1500, BURSTS = 60, RIGHT_OF_100 = 95 };

/* The receiver's host: what came in and was not read yet. */
typedef struct host {
    world_receiver *receiver;
    size_t capacity; /* packets */
    size_t first, count;
    bool is_stalled;
    uint64_t dropped;
    struct {
        size_t length;
        helio_address from;
        uint8_t data[PACKET_BYTES];
    } packets[BUFFER_MAX];
} host;

static world w;
static world_source source;
static world_receiver receiver;
static host buffer;
static helio_random chances;
static helio_outlet network;
static double refuses; /* share of the data that the source's driver refuses */
static uint64_t unsent;
static bool has_room;

static uint64_t pick(uint64_t below) {
    return helio_random_below(&chances, below);
}

static bool chance(double share) {
    return helio_random_unit(&chances) < share;
}

/* ---- the hosts ---- */

static int send_or_refuse(void *context, const helio_address *to, const void *packet, size_t length,
                          bool stable) {
    const bool is_data = ((const uint8_t *)packet)[4] == HELIO_PGM_TYPE_ODATA;
    (void)context;
    if (is_data && chance(refuses)) {
        unsent++;
        return 0;
    }
    return network.send(network.context, to, packet, length, stable);
}

static void read_all(helio_moment moment) {
    while (buffer.count > 0 && !buffer.is_stalled) {
        const size_t at = buffer.first;
        buffer.first = (buffer.first + 1) % buffer.capacity;
        buffer.count--;
        helio_rx_endpoint_on_packet(receiver.endpoint, buffer.packets[at].data,
                                    buffer.packets[at].length, &buffer.packets[at].from,
                                    moment.wall_ns, moment);
    }
}

static void take_in(void *context, const void *packet, size_t length, const helio_address *from,
                    helio_moment moment) {
    (void)context;
    CHECK(length <= PACKET_BYTES);
    if (buffer.count == buffer.capacity) {
        buffer.dropped++;
        return;
    }
    const size_t at = (buffer.first + buffer.count++) % buffer.capacity;
    buffer.packets[at].length = length;
    buffer.packets[at].from = *from;
    memcpy(buffer.packets[at].data, packet, length);
    read_all(moment);
}

static void poll(void *context, helio_moment moment) {
    (void)context;
    if (!buffer.is_stalled) {
        helio_rx_endpoint_poll(receiver.endpoint, moment);
    }
}

static int64_t deadline(void *context) {
    (void)context;
    return buffer.is_stalled ? HELIO_NEVER : helio_rx_endpoint_next_deadline_ns(receiver.endpoint);
}

static uint64_t dropped(void *context) {
    (void)context;
    return buffer.dropped;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    return has_room ? count : 0;
}

/* ---- a run ---- */

static void begin(uint64_t seed, place place) {
    helio_random_init(&chances, seed);
    world_init(&w, seed, 0);
    memset(&buffer, 0, offsetof(host, packets));
    unsent = 0;
    has_room = true;
    buffer.capacity = 64 + pick(512);
    helio_rx_endpoint_config to = world_receiver_config(100);
    to.window_packets = place == QUEUE ? 64u << pick(2) : 4096;
    to.dropped = dropped;
    to.nak_deadline_ns = chance(0.5) ? HELIO_SECOND : 5 * HELIO_MILLISECOND;
    world_add_receiver(&w, &receiver, &to);
    helio_sim_attach(receiver.node, &(helio_sim_handler){&buffer, take_in, poll, deadline});
    helio_subscription *subscription;
    const helio_sink sink = {.on_messages = on_messages};
    CHECK_EQUAL(
        helio_rx_endpoint_subscribe(receiver.endpoint, "t", &sink, world_now(&w), &subscription),
        0);
    /* What is lost on the way anyway, and comes late. */
    helio_sim_link link = {.loss = chance(0.5) ? 0.001 : 0, .delay_ns = 50 * HELIO_MICROSECOND};
    link.jitter_ns = chance(0.3) ? 20 * HELIO_MICROSECOND : 0;
    link.duplicate = chance(0.3) ? 0.005 : 0;
    refuses = chance(0.3) ? 0.0005 : 0;
    if (place == NETWORK) {
        link.loss = 0.005 + 0.1 * helio_random_unit(&chances);
        link.burst_begin = chance(0.3) ? 0.002 : 0;
        link.burst_end = 0.1;
        link.burst_loss = 1;
    } else if (place == SENDER) {
        refuses = 0.005 + 0.1 * helio_random_unit(&chances);
    }
    helio_sim_set_link(receiver.node, &link);
    helio_tx_stream_config from = world_source_config(1);
    from.window_packets = 8192;
    helio_address address = from.address;
    address.port = from.tsi.port;
    source = (world_source){.world = &w, .node = helio_sim_add_node(w.sim, &address)};
    world_open_instance(&w, &source.instance);
    network = helio_sim_outlet(source.node, &from.group);
    CHECK_EQUAL(helio_tx_stream_create(&from, (helio_outlet){.send = send_or_refuse}, w.stats,
                                       source.instance.record, world_now(&w), &source.stream),
                0);
    helio_sim_attach(source.node, &(helio_sim_handler){&source, world_source_on_packet,
                                                       world_source_poll, world_source_deadline});
}

static void wake(void) {
    read_all(world_now(&w));
    if (!buffer.is_stalled) {
        helio_rx_endpoint_poll(receiver.endpoint, world_now(&w));
    }
    helio_sim_wake(receiver.node);
}

static void send_burst(helio_tx_topic *topic, uint64_t packets) {
    static uint8_t data[1400];
    for (uint64_t i = 0; i < packets; i++) {
        const helio_moment moment = world_now(&w);
        CHECK_EQUAL(
            helio_tx_stream_append(source.stream, topic, data, sizeof data, moment.wall_ns, moment),
            0);
        helio_tx_stream_flush(source.stream, moment);
        world_run(&w, (int64_t)(1 + pick(20)) * HELIO_MICROSECOND);
    }
    helio_sim_wake(source.node);
}

static void run_traffic(place place) {
    helio_tx_topic *topic;
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    world_run(&w, HELIO_MILLISECOND);
    for (int b = 0; b < BURSTS; b++) {
        const bool is_hit = b % 10 == 5;
        buffer.is_stalled = place == SOCKET && is_hit;
        has_room = !(place == QUEUE && is_hit);
        uint64_t more = 0;
        if (is_hit && place == SOCKET) {
            more = buffer.capacity;
        } else if (is_hit && place == QUEUE) {
            more = 256;
        }
        send_burst(topic, 20 + pick(60) + more);
        world_run(&w, HELIO_MILLISECOND);
        buffer.is_stalled = false;
        has_room = true;
        wake();
        world_run(&w, 5 * HELIO_MILLISECOND);
        wake();
    }
    for (int i = 0; i < 20; i++) {
        world_run(&w, 20 * HELIO_MILLISECOND);
        wake();
    }
}

/* The place with the most losses. */
static place judge(bool is_verbose) {
    const uint64_t used = helio_cell(&w.stats->header->objects_used);
    for (uint64_t i = 0; i < used; i++) {
        if (w.stats->objects[i].scope != HELIO_SCOPE_RX_STREAM) {
            continue;
        }
        const helio_rx_stream_stats *s = books_record(w.stats, &w.stats->objects[i]);
        const uint64_t outside = helio_cell(&s->losses_located_outside);
        const uint64_t sender = outside < unsent ? outside : unsent;
        const uint64_t found[PLACES] = {
            [SENDER] = sender,
            [NETWORK] = outside - sender,
            [SOCKET] = helio_cell(&s->losses_located_socket),
            [QUEUE] = helio_cell(&s->losses_located_queue) + helio_cell(&s->losses_located_window),
        };
        place most = SENDER;
        for (place p = NETWORK; p < PLACES; p++) {
            most = found[p] > found[most] ? p : most;
        }
        if (is_verbose) {
            printf("sender %" PRIu64 ", network %" PRIu64 ", socket %" PRIu64 ", queue %" PRIu64
                   "; unsent %" PRIu64 ", dropped %" PRIu64 "\n",
                   found[SENDER], found[NETWORK], found[SOCKET], found[QUEUE], unsent,
                   buffer.dropped);
        }
        return found[most] > 0 ? most : PLACES;
    }
    return PLACES;
}

static bool is_verbose;

/* One run; PLACES + 1: something went wrong. */
static place run_one(uint64_t run, place where) {
    if (setjmp(check_out) != 0) {
        return (place)(PLACES + 1);
    }
    begin(run + 1, where);
    run_traffic(where);
    CHECK(books_hold(w.stats));
    const place told = judge(is_verbose);
    world_end_source(&source);
    world_end_receiver(&receiver);
    world_fini(&w);
    return told;
}

int main(int argc, char **argv) {
    uint64_t runs = RUNS_DEFAULT, right = 0, of[PLACES] = {0}, right_of[PLACES] = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            is_verbose = true;
        } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
            runs = strtoull(argv[++i], NULL, 10);
        }
    }
    for (uint64_t run = 0; run < runs; run++) {
        const place where = (place)(run % PLACES), told = run_one(run, where);
        if (told > PLACES) {
            return 1;
        }
        of[where]++;
        right_of[where] += told == where;
        right += told == where;
        if (is_verbose) {
            printf("run %" PRIu64 ": %s, told %s\n", run, NAMES[where],
                   told < PLACES ? NAMES[told] : "nowhere");
        }
    }
    printf("%" PRIu64 " of %" PRIu64 " runs right:", right, runs);
    for (int p = 0; p < PLACES; p++) {
        printf(" %s %" PRIu64 " of %" PRIu64 "%s", NAMES[p], right_of[p], of[p],
               p < PLACES - 1 ? "," : "\n");
    }
    for (int p = 0; p < PLACES; p++) {
        if (right_of[p] * 100 < of[p] * RIGHT_OF_100) {
            return 1;
        }
    }
    return 0;
}
