/* A source with rate_policy=dynamic behind a bottleneck, receivers that report, and the engine's
 * own code from end to end: loss stays below the threshold, and the rate follows the bottleneck
 * both ways. */
#include "check.h"
#include "send/govern.h"
#include "world.h"

#define MS HELIO_MILLISECOND

enum { RECEIVERS = 3, MESSAGE = 1400, BOTTLENECK = 20000000, QUEUE = 100000 };

static const uint8_t body[MESSAGE];

static world w;
static world_source source;
static world_receiver receivers[RECEIVERS];
static helio_tx_topic *topic;
static helio_sim_pipe *bottleneck;
static uint64_t messages, losses;

static size_t take_all(void *context, const helio_message *taken, size_t count) {
    (void)context, (void)taken;
    messages += count;
    return count;
}

static void count_loss(void *context, const helio_loss *loss) {
    (void)context;
    losses += loss->count;
}

/* The application always has something to send. */
static void poll_flow(void *context, helio_moment moment) {
    (void)context;
    while (helio_tx_stream_admit(source.stream, topic, MESSAGE, moment) == HELIO_ADMIT_GO) {
        helio_tx_stream_append(source.stream, topic, body, MESSAGE, moment.wall_ns, moment);
        helio_tx_stream_flush(source.stream, moment);
    }
    helio_tx_stream_poll(source.stream, moment);
}

static void begin(void) {
    messages = losses = 0;
    world_init(&w, 11, 0);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config config = world_receiver_config(100 + i);
        config.window_packets = 8192;
        config.receiver = 100 + i;
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(receivers[i].node, &(helio_sim_link){.delay_ns = MS / 2});
        const helio_sink sink = {.on_messages = take_all, .on_loss = count_loss};
        helio_subscription *subscription;
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t", &sink, world_now(&w),
                                                &subscription),
                    0);
    }
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 8192;
    config.report_interval_ns = 10 * MS;
    config.pace = (helio_tx_pace_config){.rate = 3 * BOTTLENECK, .repair_share = 0.25};
    config.govern = (helio_tx_govern_config){
        .interval_ns = 10 * MS,
        .policy = "dynamic",
        .mode = HELIO_RATE_MODE_ENFORCE,
        .rate = {.rate = 3 * BOTTLENECK, .rate_min = 100000, .loss_high = 0.01, .loss_low = 0.001},
    };
    world_add_source(&w, &source, &config);
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = MS / 2});
    const helio_sim_pipe_config narrow = {.rate = BOTTLENECK, .queue_bytes = QUEUE};
    bottleneck = helio_sim_add_pipe(w.sim, &narrow);
    CHECK(bottleneck);
    helio_sim_set_uplink(source.node, bottleneck);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    helio_sim_attach(source.node, &(helio_sim_handler){&source, world_source_on_packet, poll_flow,
                                                       world_eager_deadline});
    helio_sim_wake(source.node);
}

static void end(void) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

typedef struct figures {
    double used; /* of the bottleneck */
    double lost; /* share of the packets sent */
} figures;

static figures run(int64_t ns) {
    const helio_sim_pipe_counts before = bottleneck->counts;
    world_run(&w, ns);
    const helio_sim_pipe_counts *after = &bottleneck->counts;
    const double out = (double)(after->bytes - before.bytes);
    const double dropped = (double)(after->dropped_packets - before.dropped_packets);
    const double left = (double)(after->packets - before.packets);
    return (figures){
        .used = out * 1e9 / (double)ns / (double)bottleneck->config.rate,
        .lost = dropped / (dropped + left),
    };
}

static void show(const char *when, figures f) {
    printf("      %-28s %5.1f %% used, %6.3f %% lost\n", when, 100 * f.used, 100 * f.lost);
}

static void loss_stays_below_the_threshold_and_the_rate_follows_the_bottleneck(void) {
    begin();
    run(HELIO_SECOND);
    const figures steady = run(3 * HELIO_SECOND);
    show("in the long run:", steady);
    CHECK(steady.lost < 0.01 && steady.used > 0.8);

    helio_sim_change_pipe(w.sim, bottleneck, BOTTLENECK / 2, QUEUE);
    run(HELIO_SECOND);
    const figures half = run(3 * HELIO_SECOND);
    show("a second after half:", half);
    CHECK(half.lost < 0.015 && half.used > 0.8); /* 70 packets in an interval show 1 % late */

    helio_sim_change_pipe(w.sim, bottleneck, BOTTLENECK, QUEUE);
    run(HELIO_SECOND);
    const figures back = run(2 * HELIO_SECOND);
    show("a second after it is back:", back);
    CHECK(back.lost < 0.01 && back.used > 0.9);
    CHECK(messages > 100000);
    CHECK_EQUAL(losses, 0); /* all was repaired */
    end();
}

int main(void) {
    RUN(loss_stays_below_the_threshold_and_the_rate_follows_the_bottleneck);
    return check_result();
}
