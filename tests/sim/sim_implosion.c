/* Ten thousand receivers miss the same packet: how many ask for it?
 *
 * The random back-off and the source's confirmations, which go to all, must keep that near what the
 * model says (d: from a NAK to its confirmation, T: the back-off), instead of N:
 *
 *   even draw                 1 + N d / T
 *   truncated exponential     a few, whatever N is
 *
 * The draws are held against that model first, then whole receivers on a simulated network. */
#include "check.h"
#include "repair/backoff.h"
#include "wire/pgm.h"
#include "world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RECEIVERS = 1000 };
#else
enum { RECEIVERS = 10000 };
#endif
enum { WINDOW = 16, PACKET_BYTES = 548 };

#define US HELIO_MICROSECOND
#define MS HELIO_MILLISECOND
#define DELAY_NS (25 * US)
#define ROUND_TRIP_NS (2 * DELAY_NS)

/* ---- the model ---- */

typedef struct expectation {
    uint32_t receivers;
    int64_t interval_ns;
    double group_size; /* 1: an even draw */
    double naks;       /* known from elsewhere: RFC 5401's formulas and simulations of them */
} expectation;

/* NAKs that leave before the first one's confirmation is heard. */
static double naks_of_one_loss(const helio_backoff *backoff, uint32_t receivers,
                               helio_random *random, int64_t *first_ns) {
    static int64_t drawn_ns[10000];
    *first_ns = INT64_MAX;
    for (uint32_t i = 0; i < receivers; i++) {
        drawn_ns[i] = helio_backoff_draw(backoff, random);
        *first_ns = drawn_ns[i] < *first_ns ? drawn_ns[i] : *first_ns;
    }
    double naks = 0;
    for (uint32_t i = 0; i < receivers; i++) {
        naks += drawn_ns[i] <= *first_ns + ROUND_TRIP_NS;
    }
    return naks;
}

static void the_draws_keep_feedback_to_what_the_model_says(void) {
    static const expectation table[] = {
        {10, MS, 1, 1.5},         {10, MS, 10, 1.3},          {100, MS, 1, 6.0},
        {100, MS, 100, 1.35},     {1000, MS, 1, 51},          {1000, MS, 1000, 1.65},
        {1000, 10 * MS, 1, 6.0},  {1000, 10 * MS, 1000, 1.1}, {10000, MS, 1, 500},
        {10000, MS, 10000, 1.85}, {10000, 50 * MS, 1, 11},    {10000, 50 * MS, 10000, 1.0},
    };
    helio_random random;
    helio_random_init(&random, 7);
    printf("      receivers  interval  draw         NAKs  model  first NAK\n");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const expectation *e = &table[i];
        const helio_backoff backoff = {.interval_ns = e->interval_ns, .group_size = e->group_size};
        const int trials = e->receivers == 10000 ? 100 : 1000;
        double naks = 0, first_us = 0;
        for (int k = 0; k < trials; k++) {
            int64_t first_ns;
            naks += naks_of_one_loss(&backoff, e->receivers, &random, &first_ns) / trials;
            first_us += (double)first_ns / 1000 / trials;
        }
        printf("      %9u  %5.0f ms  %-11s %5.1f  %5.1f  %6.0f us\n", e->receivers,
               (double)e->interval_ns / 1e6, e->group_size > 1 ? "exponential" : "even", naks,
               e->naks, first_us);
        CHECK(naks >= 0.8 * e->naks && naks <= 1.2 * e->naks + 0.05);
    }
}

/* ---- whole receivers ---- */

typedef struct kind {
    int64_t backoff_ns;
    uint32_t group_size;
} kind;

static const kind even = {50 * MS, 0};     /* as given */
static const kind sized = {-1, RECEIVERS}; /* adaptive, told how many they are */
static const kind not_told = {-1, 0};      /* adaptive, not told */

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
    if (helio_pgm_decode(packet, length, &read) != HELIO_PGM_ACCEPTED) {
        return false;
    }
    return (read.type == HELIO_PGM_TYPE_ODATA && read.sequence == lost_sequence) ||
           (read.type == HELIO_PGM_TYPE_NCF && loses_ncfs);
}

static void begin(kind backoff) {
    delivered = 0;
    loses_ncfs = false;
    lost_sequence = 0;
    world_init(&w, 3, 0);
    const helio_sim_link link = {.delay_ns = DELAY_NS, .drops = drops};
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config config = world_receiver_config(1000 + i);
        config.window_packets = WINDOW;
        config.max_packet_bytes = PACKET_BYTES;
        config.nak_backoff_ns = backoff.backoff_ns;
        config.group_size = backoff.group_size;
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
    helio_tx_stream_config config = world_source_config(1);
    config.max_packet_bytes = PACKET_BYTES;
    world_add_source(&w, &source, &config);
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = DELAY_NS});
    lost_sequence = UINT32_MAX;
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    world_run(&w, HELIO_MILLISECOND);
}

static void end(void) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

static void send_one(void) {
    const helio_moment moment = world_now(&w);
    helio_tx_stream_append(source.stream, topic, "x", 1, moment.wall_ns, moment);
    helio_tx_stream_flush(source.stream, moment);
    helio_sim_wake(source.node);
}

static const helio_tx_stream_stats *counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

/* All lose the packet sent next; `after` are sent behind it.  Returns how many NAKs that made. */
static uint64_t naks_for(int after) {
    const uint64_t before = helio_cell(&counts()->nak_packets_received);
    const uint64_t delivered_before = delivered;
    lost_sequence = (uint32_t)helio_cell(&counts()->window_lead) + 1;
    for (int i = 0; i <= after; i++) {
        send_one();
    }
    world_run(&w, 120 * MS);
    lost_sequence = UINT32_MAX;
    CHECK_EQUAL(delivered - delivered_before, (uint64_t)(1 + after) * RECEIVERS);
    return helio_cell(&counts()->nak_packets_received) - before;
}

static void report(const char *what, uint64_t naks) {
    printf("      %d receivers, %s: %" PRIu64 " NAKs, %" PRIu64 " repairs\n", RECEIVERS, what, naks,
           helio_cell(&counts()->repair_packets));
}

static void a_common_loss_makes_as_many_naks_as_the_model_says(void) {
    static const double expected = 1 + RECEIVERS * (double)ROUND_TRIP_NS / (50 * MS);
    begin(even);
    double naks = 0;
    for (uint32_t i = 0; i < 8; i++) {
        naks += (double)naks_for(2) / 8;
    }
    printf("      %d receivers, 50 ms: %.1f NAKs a loss, the model says %.1f\n", RECEIVERS, naks,
           expected);
    CHECK(naks >= 0.7 * expected && naks <= 1.4 * expected);
    CHECK(helio_cell(&counts()->repair_packets) <= 16);
    end();
}

static void receivers_told_how_many_they_are_ask_a_handful_of_times(void) {
    begin(sized);
    const uint64_t naks = naks_for(5);
    report("told so", naks);
    CHECK(naks >= 1 && naks <= 10);
    end();
}

static void a_common_loss_of_the_last_packet_makes_few_naks(void) {
    begin(sized);
    const uint64_t naks = naks_for(0);
    report("last packet", naks);
    CHECK(naks >= 1 && naks <= 10);
    end();
}

static void sixteen_receivers_told_so_ask_three_times_at_most_on_average(void) {
    enum { FEW = 16, LOSSES = 50 };
    helio_random random;
    helio_random_init(&random, 16);
    helio_backoff backoff;
    helio_backoff_init(&backoff, &(helio_backoff_config){-1, FEW, false});
    helio_backoff_set_round_trip(&backoff, ROUND_TRIP_NS);
    double naks = 0;
    for (int i = 0; i < LOSSES; i++) {
        int64_t first_ns;
        naks += naks_of_one_loss(&backoff, FEW, &random, &first_ns) / LOSSES;
    }
    CHECK(naks >= 1 && naks <= 3);
}

static void losses_apart_make_a_nak_each_and_no_more(void) {
    begin(sized);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_sim_set_link(receivers[i].node,
                           &(helio_sim_link){.delay_ns = DELAY_NS, .loss = 10.0 / RECEIVERS});
    }
    for (int i = 0; i < 20; i++) {
        send_one();
        world_run(&w, MS);
    }
    world_run(&w, 120 * MS);
    CHECK_EQUAL(delivered, 20 * (uint64_t)RECEIVERS);
    /* ten lose each data packet; what else is lost is heartbeats and confirmations */
    CHECK(helio_cell(&counts()->naks_received) <= 20 * 15);
    end();
}

static void without_confirmations_the_repair_itself_ends_the_asking(void) {
    begin(sized);
    loses_ncfs = true;
    const uint64_t naks = naks_for(5);
    report("NCFs lost", naks);
    CHECK(naks >= 1 && naks <= 10);
    end();
}

/* Without a word the first loss is asked for by a share of all; the source's advice ends that. */
static void the_sources_advice_converges_within_ten_losses(void) {
    begin(not_told);
    uint64_t naks = 0;
    printf("      %d receivers, not told:", RECEIVERS);
    for (uint32_t i = 0; i < 10; i++) {
        naks = naks_for(2);
        printf(" %" PRIu64, naks);
    }
    printf(" NAKs\n");
    CHECK(naks <= 30);
    end();
}

static void receivers_that_all_come_late_ask_for_few_spms(void) {
    begin(sized);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&receivers[i]);
    }
    helio_sim_destroy(w.sim);
    w.sim = helio_sim_create(4);
    world_end_source(&source);
    const helio_tx_stream_config config = world_source_config(2);
    world_add_source(&w, &source, &config); /* opens its stream before anybody is there */
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = DELAY_NS});
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    world_run(&w, 10 * HELIO_SECOND);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config rx = world_receiver_config(1000 + i);
        rx.window_packets = WINDOW;
        rx.max_packet_bytes = PACKET_BYTES;
        world_add_receiver(&w, &receivers[i], &rx);
        helio_sim_set_link(receivers[i].node, &(helio_sim_link){.delay_ns = DELAY_NS});
    }
    send_one(); /* met by all at once */
    world_run(&w, 50 * HELIO_MILLISECOND);
    const uint64_t spmrs = helio_cell(&counts()->heartbeat_requests_received);
    printf("      %d come late: %" PRIu64 " SPMRs\n", RECEIVERS, spmrs);
    CHECK(spmrs <= RECEIVERS / 20);
    end();
}

int main(void) {
    RUN(the_draws_keep_feedback_to_what_the_model_says);
    RUN(a_common_loss_makes_as_many_naks_as_the_model_says);
    RUN(receivers_told_how_many_they_are_ask_a_handful_of_times);
    RUN(a_common_loss_of_the_last_packet_makes_few_naks);
    RUN(sixteen_receivers_told_so_ask_three_times_at_most_on_average);
    RUN(losses_apart_make_a_nak_each_and_no_more);
    RUN(without_confirmations_the_repair_itself_ends_the_asking);
    RUN(the_sources_advice_converges_within_ten_losses);
    RUN(receivers_that_all_come_late_ask_for_few_spms);
    return check_result();
}
