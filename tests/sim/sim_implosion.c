/* A thousand receivers miss the same packet: how many ask for it?
 *
 * The random back-off and the source's confirmations, which go to all, must keep that near 1 + N *
 * d / T (d: time until a confirmation is heard, T: the back-off), instead of N. */
#include "check.h"
#include "wire/pgm.h"
#include "world.h"

enum { RECEIVERS = 1000, WINDOW = 16 };

#define DELAY_NS (25 * HELIO_MICROSECOND)
#define BACKOFF_NS (10 * HELIO_MILLISECOND)

static world w;
static world_source source;
static world_receiver receivers[RECEIVERS];
static helio_tx_topic *topic;
static uint64_t delivered;

static size_t take_all(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    delivered += count;
    return count;
}

/* All links lose the packet with this number when it is sent first, and confirmations while they
 * are unwanted. */
static uint32_t lost_sequence;
static bool loses_ncfs;

static bool drops(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    helio_pgm_packet read;
    if (helio_pgm_decode(packet, length, &read) != HELIO_PGM_ACCEPTED)
        return false;
    return (read.type == HELIO_PGM_TYPE_ODATA && read.sequence == lost_sequence) ||
           (read.type == HELIO_PGM_TYPE_NCF && loses_ncfs);
}

static void begin(void) {
    delivered = 0;
    loses_ncfs = false;
    lost_sequence = 0;
    world_init(&w, 3, 0);
    const helio_sim_link link = {.delay_ns = DELAY_NS, .drops = drops};
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config config = world_receiver_config(1000 + i);
        config.window_packets = WINDOW;
        config.nak_backoff_ns = BACKOFF_NS;
        config.nak_repeat_ns = 20 * HELIO_MILLISECOND;
        config.nak_data_ns = 20 * HELIO_MILLISECOND;
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(receivers[i].node, &link);
        helio_subscription *subscription;
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t",
                                                &(helio_sink){.on_messages = take_all},
                                                world_now(&w), &subscription),
                    0);
    }
    const helio_tx_stream_config config = world_source_config(1);
    world_add_source(&w, &source, &config);
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = DELAY_NS});
    lost_sequence = UINT32_MAX;
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    world_run(&w, HELIO_MILLISECOND);
}

static void end(void) {
    for (unsigned i = 0; i < RECEIVERS; i++)
        world_end_receiver(&receivers[i]);
    world_end_source(&source);
    world_fini(&w);
}

static void send_one(void) {
    const helio_clock clock = world_now(&w);
    helio_tx_stream_append(source.stream, topic, "x", 1, clock.wall_ns, clock);
    helio_tx_stream_flush(source.stream, clock);
    helio_sim_wake(source.node);
}

static const helio_tx_stream_stats *counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

static void a_common_loss_in_the_middle_makes_few_naks(void) {
    begin();
    lost_sequence = 2; /* 0 was the announcement */
    for (int i = 0; i < 6; i++)
        send_one();
    world_run(&w, 100 * HELIO_MILLISECOND);
    CHECK_EQUAL(delivered, 6 * RECEIVERS);
    const uint64_t naks = helio_cell(&counts()->nak_packets_received);
    printf("      %d receivers: %" PRIu64 " NAKs, %" PRIu64 " repairs\n", RECEIVERS, naks,
           helio_cell(&counts()->repair_packets));
    CHECK(naks >= 1 && naks <= 20);
    CHECK(helio_cell(&counts()->repair_packets) <= 2);
    end();
}

static void a_common_loss_of_the_last_packet_makes_few_naks(void) {
    begin();
    lost_sequence = 3;
    for (int i = 0; i < 3; i++)
        send_one();
    world_run(&w, 100 * HELIO_MILLISECOND);
    CHECK_EQUAL(delivered, 3 * RECEIVERS);
    CHECK(helio_cell(&counts()->nak_packets_received) <= 20);
    end();
}

static void without_confirmations_the_repair_itself_ends_the_asking(void) {
    begin();
    loses_ncfs = true;
    lost_sequence = 2;
    for (int i = 0; i < 6; i++)
        send_one();
    world_run(&w, 100 * HELIO_MILLISECOND);
    CHECK_EQUAL(delivered, 6 * RECEIVERS);
    CHECK(helio_cell(&counts()->nak_packets_received) <= 20);
    end();
}

static void receivers_that_all_come_late_ask_for_few_spms(void) {
    begin();
    for (unsigned i = 0; i < RECEIVERS; i++)
        world_end_receiver(&receivers[i]);
    helio_sim_destroy(w.sim);
    w.sim = helio_sim_create(4);
    world_end_source(&source);
    const helio_tx_stream_config config = world_source_config(2);
    world_add_source(&w, &source, &config); /* opens its stream before anybody is there */
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = DELAY_NS});
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    world_run(&w, 10 * HELIO_SECOND);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        const helio_rx_endpoint_config rx = world_receiver_config(1000 + i);
        world_add_receiver(&w, &receivers[i], &rx);
        helio_sim_set_link(receivers[i].node, &(helio_sim_link){.delay_ns = DELAY_NS});
    }
    send_one(); /* met by all at once */
    world_run(&w, 50 * HELIO_MILLISECOND);
    CHECK(helio_cell(&counts()->heartbeat_requests_received) <= RECEIVERS / 2);
    end();
}

int main(void) {
    RUN(a_common_loss_in_the_middle_makes_few_naks);
    RUN(a_common_loss_of_the_last_packet_makes_few_naks);
    RUN(without_confirmations_the_repair_itself_ends_the_asking);
    RUN(receivers_that_all_come_late_ask_for_few_spms);
    return check_result();
}
