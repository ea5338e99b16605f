/* Fifty receivers, one of them bad in one of four ways, over a thousand simulated runs: by the rank
 * that transmitters give their receivers (policy/badness.h) the bad one is the first, and every
 * request for repair is attributed to whoever made it.
 *
 * Who is bad, in which way and how badly, and how much everybody loses are chances of each run:
 *
 *     lossy    its link loses 6 to 30 % of all packets
 *     slow     its application takes a fifth to four fifths of what is sent
 *     stalls   its application takes nothing for 40 to 150 ms, again and again
 *     far      its packets are under way 40 to 200 ms longer than the others'
 *
 *     sim_blame [--seeds N] [--first N] [--tell] */
#include "base/random.h"
#include "check.h"
#include "send/parts.h"
#include "world.h"

#define US HELIO_MICROSECOND
#define MS HELIO_MILLISECOND
#define EVERY_NS (2 * MS)

enum { FEW = 50, HISTORY = 256, ID = 0x1000, SETTLE = 25, PACKETS = 240 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS_DEFAULT = 40 };
#else
enum { SEEDS_DEFAULT = 1000 };
#endif

typedef enum badly { LOSSY, SLOW, STALLS, FAR, WAYS } badly;
static const char *const names[WAYS] = {"lossy", "slow", "stalls", "far"};

static world w;
static world_source source;
static world_receiver receivers[FEW];
static helio_address addresses[FEW];
static uint64_t asked_of[FEW]; /* sequences in the NAKs that came in, as counted here */
static double room[FEW];       /* messages an application takes now */
static helio_tx_topic *topic;

static size_t take(void *context, const helio_message *messages, size_t count) {
    (void)messages;
    double *rest = context;
    const size_t taken = (double)count < *rest ? count : (size_t)*rest;
    *rest -= (double)taken;
    return taken;
}

static void watch(void *context, const void *packet, size_t length, const helio_address *from,
                  helio_moment moment) {
    helio_pgm_packet read;
    CHECK_EQUAL(helio_pgm_decode(packet, length, &read), HELIO_PGM_ACCEPTED);
    for (unsigned i = 0; read.type == HELIO_PGM_TYPE_NAK && i < FEW; i++) {
        if (helio_address_equal(from, &addresses[i])) {
            asked_of[i] += 1 + read.list_count;
        }
    }
    world_source_on_packet(context, packet, length, from, moment);
}

/* ---- a run ---- */

typedef struct run {
    helio_random random;
    unsigned bad;
    badly way;
    double loss;        /* of everybody */
    double taken;       /* of what is sent, by the slow application */
    int64_t stalled_ns; /* of every 200 ms */
} run;

static double between(run *r, double least, double most) {
    return least + (most - least) * helio_random_unit(&r->random);
}

static void begin(run *r, uint64_t seed) {
    *r = (run){0};
    helio_random_init(&r->random, seed);
    r->bad = (unsigned)helio_random_below(&r->random, FEW);
    r->way = (badly)(seed % WAYS);
    r->loss = between(r, 0, 0.005);
    r->taken = between(r, 0.2, 0.8);
    r->stalled_ns = (int64_t)between(r, 40 * MS, 150 * MS);
    world_init(&w, seed, 0);
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = HISTORY;
    config.report_interval_ns = 20 * MS;
    config.report_rate = 10000;
    world_add_source(&w, &source, &config);
    helio_sim_attach(source.node, &(helio_sim_handler){&source, watch, world_source_poll,
                                                       world_source_deadline});
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = 50 * US});
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    for (unsigned i = 0; i < FEW; i++) {
        helio_rx_endpoint_config rx = world_receiver_config(1000 + i);
        rx.window_packets = HISTORY;
        rx.receiver = ID + i;
        addresses[i] = rx.feedback_address;
        asked_of[i] = 0;
        room[i] = 1e9;
        world_add_receiver(&w, &receivers[i], &rx);
        helio_sim_set_link(receivers[i].node, &(helio_sim_link){.delay_ns = 50 * US});
        helio_subscription *subscription;
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t",
                                                &(helio_sink){&room[i], .on_messages = take},
                                                world_now(&w), &subscription),
                    0);
    }
}

static void end(void) {
    for (unsigned i = 0; i < FEW; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

/* What the bad one's application takes from now on. */
static void let_take(run *r, int i) {
    if (r->way == SLOW) {
        room[r->bad] += r->taken;
    }
    if (r->way == STALLS) {
        room[r->bad] = i * EVERY_NS % (200 * MS) < r->stalled_ns ? 0 : 1e9;
    }
}

static void flow(run *r, int packets) {
    static const uint8_t data[100];
    for (int i = 0; i < packets; i++) {
        const helio_moment moment = world_now(&w);
        helio_tx_stream_append(source.stream, topic, data, sizeof data, moment.wall_ns, moment);
        helio_tx_stream_flush(source.stream, moment);
        helio_sim_wake(source.node);
        let_take(r, i);
        world_run(&w, EVERY_NS);
        helio_rx_endpoint_poll(receivers[r->bad].endpoint, world_now(&w)); /* it may have room */
    }
}

static void spoil(run *r) {
    for (unsigned i = 0; i < FEW; i++) {
        helio_sim_link link = {.delay_ns = 50 * US, .jitter_ns = 20 * US, .loss = r->loss};
        if (i == r->bad && r->way == LOSSY) {
            link.loss = between(r, 0.06, 0.3);
        }
        if (i == r->bad && r->way == FAR) {
            link.delay_ns += (int64_t)between(r, 40 * MS, 200 * MS);
        }
        helio_sim_set_link(receivers[i].node, &link);
    }
    if (r->way == SLOW) {
        room[r->bad] = 0;
    }
}

static void check_attribution(void) {
    const helio_receivers *receivers = &source.stream->repairer.receivers;
    uint64_t sum = 0;
    double shares = 0;
    for (unsigned i = 0; i < FEW; i++) {
        const helio_receiver_index index = helio_receivers_find(receivers, ID + i);
        CHECK(index != HELIO_RECEIVER_NONE);
        if (index == HELIO_RECEIVER_NONE) {
            continue;
        }
        CHECK_EQUAL(receivers->entries[index].asked_for, asked_of[i]);
#ifndef HELIO_NO_STATS
        const helio_tx_receiver_stats *cells = receivers->entries[index].object.record;
        CHECK_EQUAL(helio_cell(&cells->naks_received), asked_of[i]);
#endif
        sum += asked_of[i];
        shares += helio_receivers_asked_share(receivers, index);
    }
    CHECK_EQUAL(sum, receivers->asked_for);
    CHECK_EQUAL(receivers->asked_by_others, 0);
    CHECK(sum == 0 || (shares > 1 - 1e-9 && shares < 1 + 1e-9));
#ifndef HELIO_NO_STATS
    CHECK_EQUAL(helio_cell(&helio_tx_stats(source.stream)->naks_received), sum);
#endif
}

static double badness_of(unsigned i) {
    const helio_receiver_index index =
        helio_receivers_find(&source.stream->repairer.receivers, ID + i);
    return index == HELIO_RECEIVER_NONE
               ? -1
               : helio_tx_stream_trouble(source.stream, index, world_now(&w).now_ns).badness;
}

/* ---- all runs ---- */

static uint64_t seeds = SEEDS_DEFAULT, first_seed = 1;
static bool tells;

static void run_one(uint64_t seed) {
    run r;
    begin(&r, seed);
    flow(&(run){.bad = 0, .way = LOSSY}, SETTLE);
    spoil(&r);
    flow(&r, PACKETS);
    unsigned worst = 0, next = FEW;
    for (unsigned i = 1; i < FEW; i++) {
        worst = badness_of(i) > badness_of(worst) ? i : worst;
    }
    for (unsigned i = 0; i < FEW; i++) {
        if (i != worst && (next == FEW || badness_of(i) > badness_of(next))) {
            next = i;
        }
    }
    if (worst != r.bad || tells) {
        fprintf(stderr, "seed %llu: %u %s, others lose %.4f: %.4f; first %u, %.4f; then %u, %.4f\n",
                (unsigned long long)seed, r.bad, names[r.way], r.loss, badness_of(r.bad), worst,
                badness_of(worst), next, badness_of(next));
    }
    CHECK_EQUAL(worst, r.bad);
    check_attribution();
    end();
}

static void the_bad_one_of_fifty_is_first_and_every_request_attributed(void) {
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        run_one(seed);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        tells |= strcmp(argv[i], "--tell") == 0;
        if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            seeds = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--first") == 0 && i + 1 < argc) {
            first_seed = strtoull(argv[++i], NULL, 10);
        }
    }
    RUN(the_bad_one_of_fifty_is_first_and_every_request_attributed);
    return check_result();
}
