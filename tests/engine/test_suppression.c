/* Sixteen receivers lose the same packet: the source hears of it at most three times and repairs it
 * once.  Each holds its request back for a random time and leaves it when it hears another's
 * confirmed, so how many ask is a matter of chance: of a back-off long against the round trip each
 * loss is held to it, of the adapted one, which is as short as it can be, the mean. */
#include "pair.h"

enum { RECEIVERS = 16, LOSSES = 40 };
#define DELAY_NS (25 * US)

static world_receiver receivers[RECEIVERS];
static inbox boxes[RECEIVERS];
static bool loses_data;

static bool drops_data(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)length, (void)now_ns;
    return loses_data && ((const uint8_t *)packet)[4] == HELIO_PGM_TYPE_ODATA;
}

static void begin_sixteen(int64_t backoff_ns, uint32_t group_size) {
    loses_data = false;
    world_init(&w, 16, 1);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config config = world_receiver_config(100 + i);
        config.nak_backoff_ns = backoff_ns;
        config.group_size = group_size;
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(receivers[i].node,
                           &(helio_sim_link){.delay_ns = DELAY_NS, .drops = drops_data});
        subscribe(&receivers[i], &boxes[i]);
    }
    begin_source(world_source_config(1));
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = DELAY_NS});
    world_run(&w, 10 * MS);
}

static void end_sixteen(void) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

/* One packet that nobody gets, two that all get; returns the NAKs of it. */
static uint64_t lose_one(void) {
    const uint64_t naks = helio_cell(&source_counts()->nak_packets_received);
    const uint64_t repairs = helio_cell(&source_counts()->repair_packets);
    loses_data = true;
    send(1);
    world_run(&w, 2 * DELAY_NS);
    loses_data = false;
    send(2);
    world_run(&w, 100 * MS);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), repairs + 1);
    return helio_cell(&source_counts()->nak_packets_received) - naks;
}

typedef struct requests {
    uint64_t most;
    double mean;       /* of all losses */
    double later_mean; /* of the second half of them */
} requests;

static requests requests_of_sixteen(int64_t backoff_ns, uint32_t group_size) {
    requests found = {0};
    begin_sixteen(backoff_ns, group_size);
    for (int i = 0; i < LOSSES; i++) {
        const uint64_t naks = lose_one();
        CHECK(naks >= 1);
        found.most = naks > found.most ? naks : found.most;
        found.mean += (double)naks / LOSSES;
        found.later_mean += i < LOSSES / 2 ? 0 : 2 * (double)naks / LOSSES;
    }
    printf("      NAKs a loss: %.2f, %.2f of the later half, %" PRIu64 " at most\n", found.mean,
           found.later_mean, found.most);
    for (int i = 0; i < RECEIVERS; i++) {
        CHECK_EQUAL(boxes[i].messages, 3 * LOSSES);
        CHECK_EQUAL(boxes[i].recovered, LOSSES);
        CHECK_EQUAL(boxes[i].lost, 0);
    }
    CHECK(RX_STREAMS_SUM(naks_suppressed) > 0);
    end_sixteen();
    return found;
}

static void a_long_back_off_makes_three_requests_at_most_and_one_repair(void) {
    CHECK(requests_of_sixteen(10 * MS, 0).most <= 3);
}

static void the_adapted_one_makes_three_requests_on_average_and_one_repair(void) {
    CHECK(requests_of_sixteen(-1, RECEIVERS).mean <= 3);
}

static void receivers_not_told_how_many_they_are_learn_it(void) {
    CHECK(requests_of_sixteen(-1, 0).later_mean <= 3);
}

int main(void) {
    RUN(a_long_back_off_makes_three_requests_at_most_and_one_repair);
    RUN(the_adapted_one_makes_three_requests_on_average_and_one_repair);
    RUN(receivers_not_told_how_many_they_are_learn_it);
    return check_result();
}
