/* Bottlenecks of the simulated network: what they let through, when, and what they drop. */
#include "check.h"
#include "io/sim.h"

#define MS HELIO_MILLISECOND

/* ---- the queue and the wire alone ---- */

static bool push(helio_sim_pipe *pipe, size_t length, int64_t now_ns) {
    return helio_sim_pipe_push(pipe, &(helio_sim_passage){.parcel = NULL}, length, now_ns);
}

static void packets_leave_one_after_the_other_at_the_rate(void) {
    helio_sim_pipe pipe;
    helio_sim_pipe_init(&pipe, &(helio_sim_pipe_config){.rate = 1000000, .queue_bytes = 100000});
    CHECK_EQUAL(pipe.due_ns, HELIO_NEVER);
    CHECK(push(&pipe, 1000, 0) && push(&pipe, 500, 0));
    CHECK_EQUAL(pipe.due_ns, 1 * MS);
    CHECK_EQUAL(helio_sim_pipe_pop(&pipe, 1 * MS).bytes, 1000);
    CHECK_EQUAL(pipe.due_ns, 1 * MS + MS / 2);
    CHECK_EQUAL(helio_sim_pipe_pop(&pipe, pipe.due_ns).bytes, 500);
    CHECK_EQUAL(pipe.due_ns, HELIO_NEVER);
    CHECK_EQUAL(pipe.counts.packets, 2);
    CHECK_EQUAL(pipe.counts.queue_bytes, 0);
    CHECK_EQUAL(pipe.counts.queue_peak_bytes, 1500);
    helio_sim_pipe_fini(&pipe);
}

static void what_the_queue_has_no_room_for_is_dropped(void) {
    helio_sim_pipe pipe;
    helio_sim_pipe_init(&pipe, &(helio_sim_pipe_config){
                                   .rate = 1000000, .queue_bytes = 2500, .overhead_bytes = 66});
    CHECK(push(&pipe, 1000, 0) && push(&pipe, 1000, 0));
    CHECK(!push(&pipe, 1000, 0));
    CHECK(push(&pipe, 300, 0)); /* a smaller one fits: 2132 + 366 */
    CHECK_EQUAL(pipe.counts.dropped_packets, 1);
    CHECK_EQUAL(pipe.counts.dropped_bytes, 1066);
    CHECK_EQUAL(pipe.counts.queue_bytes, 2498);
    helio_sim_pipe_fini(&pipe);
}

static void an_empty_pipe_takes_a_packet_longer_than_its_queue(void) {
    helio_sim_pipe pipe;
    helio_sim_pipe_init(&pipe, &(helio_sim_pipe_config){.rate = 1000000, .queue_bytes = 10});
    CHECK(push(&pipe, 1000, 0));
    CHECK(!push(&pipe, 1, 0));
    helio_sim_pipe_fini(&pipe);
}

static void another_rate_counts_for_the_bytes_left(void) {
    helio_sim_pipe pipe;
    helio_sim_pipe_init(&pipe, &(helio_sim_pipe_config){.rate = 1000000, .queue_bytes = 10000});
    CHECK(push(&pipe, 1000, 0) && push(&pipe, 1000, 0));
    helio_sim_pipe_change(&pipe, 500000, 10, MS / 2); /* half of the first is out */
    CHECK_EQUAL(pipe.due_ns, MS / 2 + 1 * MS);
    CHECK_EQUAL(pipe.counts.queue_bytes, 2000); /* nothing that waits is dropped */
    helio_sim_pipe_pop(&pipe, pipe.due_ns);
    CHECK_EQUAL(pipe.due_ns, MS / 2 + 3 * MS);
    helio_sim_pipe_change(&pipe, 0, 10, pipe.due_ns - MS);
    CHECK_EQUAL(pipe.due_ns, HELIO_NEVER);
    helio_sim_pipe_change(&pipe, 1000000, 10, 10 * MS); /* half of the second was left */
    CHECK_EQUAL(pipe.due_ns, 10 * MS + MS / 2);
    helio_sim_pipe_fini(&pipe);
}

static void many_packets_keep_their_order_and_sizes(void) {
    helio_sim_pipe pipe;
    helio_sim_pipe_init(&pipe, &(helio_sim_pipe_config){.rate = 1000, .queue_bytes = 1 << 30});
    uint32_t next = 1;
    for (uint32_t i = 1; i <= 1000; i++) {
        CHECK(push(&pipe, i, 0));
        if (i % 3 == 0) {
            CHECK_EQUAL(helio_sim_pipe_pop(&pipe, i).bytes, next++);
        }
    }
    while (pipe.count > 0) {
        CHECK_EQUAL(helio_sim_pipe_pop(&pipe, 1000).bytes, next++);
    }
    CHECK_EQUAL(next, 1001);
    helio_sim_pipe_fini(&pipe);
}

/* ---- on the network ---- */

enum { HEARD_MAX = 4096 };

typedef struct ear {
    uint32_t packets;
    uint8_t from[HEARD_MAX];
    int64_t at_ns[HEARD_MAX];
} ear;

static helio_sim *sim;
static helio_sim_node *senders[2], *hearers[2];
static helio_outlet outlets[2];
static ear ears[2];
static helio_address group;

static void hear(void *context, const void *packet, size_t length, const helio_address *from,
                 helio_moment moment) {
    (void)length, (void)from;
    ear *e = context;
    e->from[e->packets] = *(const uint8_t *)packet;
    e->at_ns[e->packets++] = moment.now_ns;
}

static helio_address address(const char *text) {
    helio_address parsed;
    CHECK_EQUAL(helio_address_parse(text, &parsed), 0);
    return parsed;
}

static void begin(uint64_t seed) {
    sim = helio_sim_create(seed);
    group = address("239.1.2.3:7500");
    static const char *const names[] = {"10.0.0.1:1", "10.0.0.2:1", "10.0.1.1:1", "10.0.1.2:1"};
    for (int i = 0; i < 2; i++) {
        const helio_address sender = address(names[i]), hearer = address(names[2 + i]);
        senders[i] = helio_sim_add_node(sim, &sender);
        outlets[i] = helio_sim_outlet(senders[i], &group);
        hearers[i] = helio_sim_add_node(sim, &hearer);
        ears[i].packets = 0;
        helio_sim_attach(hearers[i], &(helio_sim_handler){.context = &ears[i], .on_packet = hear});
        helio_sim_join(hearers[i], &group);
    }
}

static void send(int sender, size_t length) {
    uint8_t packet[2000] = {(uint8_t)sender};
    CHECK_EQUAL(outlets[sender].send(outlets[sender].context, NULL, packet, length, false), 0);
}

static void two_senders_share_one_bottleneck_and_all_behind_it_lose_the_same(void) {
    begin(1);
    helio_sim_pipe *pipe = helio_sim_add_pipe(
        sim, &(helio_sim_pipe_config){.rate = 1000000, .queue_bytes = 4000, .delay_ns = 5 * MS});
    helio_sim_set_uplink(senders[0], pipe);
    helio_sim_set_uplink(senders[1], pipe);
    for (int i = 0; i < 6; i++) {
        send(i % 2, 1000);
    }
    helio_sim_run_until(sim, HELIO_SECOND);
    CHECK_EQUAL(pipe->counts.dropped_packets, 2);
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(ears[i].packets, 4);
        for (int k = 0; k < 4; k++) {
            CHECK_EQUAL(ears[i].from[k], k % 2);
            CHECK_EQUAL(ears[i].at_ns[k], (k + 1) * MS + 5 * MS);
        }
    }
    helio_sim_destroy(sim);
}

static void a_bottleneck_of_ones_own_slows_nobody_else(void) {
    begin(2);
    helio_sim_pipe *pipe =
        helio_sim_add_pipe(sim, &(helio_sim_pipe_config){.rate = 100000, .queue_bytes = 2000});
    helio_sim_set_downlink(hearers[1], pipe);
    helio_sim_set_link(hearers[1], &(helio_sim_link){.delay_ns = 3 * MS});
    for (int i = 0; i < 5; i++) {
        send(0, 1000);
    }
    helio_sim_run_until(sim, HELIO_SECOND);
    CHECK_EQUAL(ears[0].packets, 5);
    CHECK_EQUAL(ears[0].at_ns[4], 0);
    CHECK_EQUAL(ears[1].packets, 2);
    CHECK_EQUAL(ears[1].at_ns[0], 10 * MS + 3 * MS);
    CHECK_EQUAL(pipe->counts.dropped_packets, 3);
    helio_sim_destroy(sim);
}

static void the_way_back_has_a_delay_of_its_own(void) {
    begin(3);
    static ear source;
    source.packets = 0;
    helio_sim_attach(senders[0], &(helio_sim_handler){.context = &source, .on_packet = hear});
    helio_sim_set_link(senders[0], &(helio_sim_link){.delay_ns = 40 * MS});
    helio_sim_set_link(hearers[0], &(helio_sim_link){.delay_ns = 10 * MS});
    const helio_address to = address("10.0.0.1:1");
    const helio_outlet back = helio_sim_outlet(hearers[0], &to);
    send(0, 100);
    CHECK_EQUAL(back.send(back.context, NULL, "n", 1, false), 0);
    helio_sim_run_until(sim, HELIO_SECOND);
    CHECK_EQUAL(ears[0].at_ns[0], 10 * MS);
    CHECK_EQUAL(source.packets, 1);
    CHECK_EQUAL(source.at_ns[0], 40 * MS);
    helio_sim_destroy(sim);
}

static void a_change_of_rate_reaches_what_waits(void) {
    begin(4);
    helio_sim_pipe *pipe =
        helio_sim_add_pipe(sim, &(helio_sim_pipe_config){.rate = 1000000, .queue_bytes = 100000});
    helio_sim_set_uplink(senders[0], pipe);
    for (int i = 0; i < 4; i++) {
        send(0, 1000);
    }
    helio_sim_run_until(sim, MS);
    helio_sim_change_pipe(sim, pipe, 500000, 100000);
    helio_sim_run_until(sim, 20 * MS);
    CHECK_EQUAL(ears[0].packets, 4);
    CHECK_EQUAL(ears[0].at_ns[1], 3 * MS);
    CHECK_EQUAL(ears[0].at_ns[3], 7 * MS);
    helio_sim_destroy(sim);
}

/* A hash of what was heard and when, of a lossy pipe. */
static uint64_t story(uint64_t seed) {
    begin(seed);
    helio_sim_pipe *pipe = helio_sim_add_pipe(
        sim, &(helio_sim_pipe_config){.rate = 1000000, .queue_bytes = 50000, .loss = 0.2});
    helio_sim_set_uplink(senders[0], pipe);
    helio_sim_set_uplink(senders[1], pipe);
    for (int i = 0; i < 200; i++) {
        send(i % 3 == 0, 100 + (size_t)i);
        helio_sim_run_until(sim, (i + 1) * MS / 5);
    }
    helio_sim_run_until(sim, HELIO_SECOND);
    CHECK(pipe->counts.lost_packets > 10 && pipe->counts.lost_packets < 80);
    CHECK_EQUAL(ears[0].packets, ears[1].packets); /* lost for both alike */
    uint64_t hash = 0;
    for (uint32_t i = 0; i < ears[0].packets; i++) {
        hash = hash * 31 + (uint64_t)ears[0].at_ns[i] + ears[0].from[i];
    }
    helio_sim_destroy(sim);
    return hash;
}

static void the_same_seed_tells_the_same_story(void) {
    const uint64_t first = story(7), again = story(7), other = story(8);
    CHECK(first == again);
    CHECK(first != other);
}

static void what_is_inside_at_the_end_is_freed(void) {
    begin(5);
    helio_sim_pipe *pipe = helio_sim_add_pipe(
        sim, &(helio_sim_pipe_config){.rate = 1000, .queue_bytes = 100000, .delay_ns = 50 * MS});
    helio_sim_set_uplink(senders[0], pipe);
    send(0, 10);
    send(0, 1000);
    helio_sim_run_until(sim, 20 * MS); /* one has left and is on its way, one waits */
    CHECK_EQUAL(ears[0].packets, 0);
    helio_sim_destroy(sim);
}

int main(void) {
    RUN(packets_leave_one_after_the_other_at_the_rate);
    RUN(what_the_queue_has_no_room_for_is_dropped);
    RUN(an_empty_pipe_takes_a_packet_longer_than_its_queue);
    RUN(another_rate_counts_for_the_bytes_left);
    RUN(many_packets_keep_their_order_and_sizes);
    RUN(two_senders_share_one_bottleneck_and_all_behind_it_lose_the_same);
    RUN(a_bottleneck_of_ones_own_slows_nobody_else);
    RUN(the_way_back_has_a_delay_of_its_own);
    RUN(a_change_of_rate_reaches_what_waits);
    RUN(the_same_seed_tells_the_same_story);
    RUN(what_is_inside_at_the_end_is_freed);
    return check_result();
}
