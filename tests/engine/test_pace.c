/* A source with a rate, on a simulated network: what leaves is captured packet by packet, and the
 * envelope of RFC 3208 5.1.2 is held against every pair. */
#include "pair.h"

#include <math.h>

#include "send/pace.h"

enum {
    WIRE = 66, /* below PGM: UDP, IPv4, Ethernet */
    LONGEST = 1472 + WIRE,
    FLOWS = 3,
    ALL = ~0,
};

typedef struct captured {
    int64_t at_ns;
    uint32_t bytes; /* as they count */
    uint8_t type;
} captured;

typedef struct flow {
    helio_sim_node *node;
    helio_stats_object instance;
    helio_outlet network;
    helio_tx_stream *stream;
    helio_tx_topic *topic;
    size_t length; /* of its messages */
    uint64_t left; /* messages still to send */
    int64_t overhead;
    captured *packets;
    size_t count, capacity;
} flow;

static flow flows[FLOWS];
static uint8_t payload[1 << 20];

static int capture(void *context, const helio_address *to, const void *packet, size_t length,
                   bool stable) {
    flow *f = context;
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 1024;
        f->packets = realloc(f->packets, f->capacity * sizeof *f->packets);
        if (!f->packets) {
            abort();
        }
    }
    f->packets[f->count++] =
        (captured){world_now(&w).now_ns, (uint32_t)((int64_t)length + f->overhead),
                   ((const uint8_t *)packet)[4]};
    return f->network.send(f->network.context, to, packet, length, stable);
}

static void flow_on_packet(void *context, const void *packet, size_t length,
                           const helio_address *from, helio_moment moment) {
    flow *f = context;
    helio_tx_stream_on_packet(f->stream, packet, length, from, moment);
}

/* As a transmit lane does it. */
static void flow_poll(void *context, helio_moment moment) {
    flow *f = context;
    while (f->left &&
           helio_tx_stream_admit(f->stream, f->topic, f->length, moment) == HELIO_ADMIT_GO) {
        CHECK_EQUAL(
            helio_tx_stream_append(f->stream, f->topic, payload, f->length, moment.wall_ns, moment),
            0);
        f->left--;
    }
    helio_tx_stream_flush(f->stream, moment);
    if (!f->left) {
        helio_tx_stream_rest(f->stream, moment);
    }
    helio_tx_stream_poll(f->stream, moment);
}

static int64_t flow_deadline(void *context) {
    const flow *f = context;
    const int64_t stream_ns = helio_tx_stream_next_deadline_ns(f->stream);
    const int64_t ready_ns = f->left ? helio_tx_stream_ready_ns(f->stream) : HELIO_NEVER;
    return ready_ns < stream_ns ? ready_ns : stream_ns;
}

static helio_tx_stream_config paced(uint64_t rate) {
    helio_tx_stream_config config = world_source_config(1);
    config.pace = (helio_tx_pace_config){.rate = rate, .repair_share = 0.25, .overhead = WIRE};
    return config;
}

static flow *add_flow(int i, helio_tx_stream_config config, size_t length, uint64_t messages) {
    flow *f = &flows[i];
    config.tsi.gsi[5] = (uint8_t)(i + 1);
    config.tsi.port = (uint16_t)(40001 + i);
    helio_address address = world_host((unsigned)(i + 1), config.tsi.port);
    config.address = world_host((unsigned)(i + 1), 0);
    free(f->packets);
    *f = (flow){.node = helio_sim_add_node(w.sim, &address),
                .length = length,
                .left = messages,
                .overhead = config.pace.overhead};
    world_open_instance(&w, &f->instance);
    f->network = helio_sim_outlet(f->node, &config.group);
    CHECK_EQUAL(helio_tx_stream_create(&config, (helio_outlet){f, capture}, w.stats,
                                       f->instance.record, world_now(&w), &f->stream),
                0);
    CHECK_EQUAL(helio_tx_stream_add_topic(f->stream, "t", world_now(&w), &f->topic), 0);
    helio_sim_attach(f->node, &(helio_sim_handler){f, flow_on_packet, flow_poll, flow_deadline});
    return f;
}

static void end_flow(flow *f) {
    helio_tx_stream_destroy(f->stream, world_now(&w));
    helio_stats_close_object(w.stats, &f->instance, 1);
    free(f->packets);
    *f = (flow){0};
}

static void end_all(bool with_receiver) {
    for (int i = 0; i < FLOWS; i++) {
        if (flows[i].stream) {
            end_flow(&flows[i]);
        }
    }
    if (with_receiver) {
        world_end_receiver(&receiver);
    }
    world_fini(&w);
}

/* A receiver that loses this share of what comes. */
static void begin_lossy(double loss) {
    begin_receiver(world_receiver_config(100));
    helio_sim_set_link(receiver.node, &(helio_sim_link){.loss = loss, .delay_ns = 20 * US});
}

static uint64_t bytes_of(const flow *f, int types, int64_t from_ns) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (types >> f->packets[i].type & 1 && f->packets[i].at_ns >= from_ns) {
            bytes += f->packets[i].bytes;
        }
    }
    return bytes;
}

/* bytes(i..j) <= burst + rate * (t_j - t_i) + one packet, for every i <= j: the same as that no
 * S_j - rate t_j is more than burst + one packet above the least S_(i-1) - rate t_i before it. */
static void check_envelope(const captured *packets, size_t count, uint64_t rate, uint64_t burst) {
    __int128 sum = 0, least = 0;
    for (size_t j = 0; j < count; j++) {
        const __int128 grown = (__int128)packets[j].at_ns * rate;
        const __int128 start = sum * HELIO_SECOND - grown;
        if (j == 0 || start < least) {
            least = start;
        }
        sum += packets[j].bytes;
        const __int128 over =
            sum * HELIO_SECOND - grown - least - (__int128)(burst + LONGEST) * HELIO_SECOND;
        if (over > 0) {
            CHECK_FAIL("packet %zu of %zu is %lld bytes above the envelope of %llu bytes/s", j,
                       count, (long long)(over / HELIO_SECOND) + 1, (unsigned long long)rate);
        }
    }
}

static uint64_t burst_of(uint64_t rate) {
    return rate / 1000 > 2 * LONGEST ? rate / 1000 : 2 * LONGEST;
}

static helio_tx_stream_stats *stats_of(const flow *f) {
    return helio_tx_stream_object(f->stream)->record;
}

static double share_of(uint64_t bytes, double of) {
    return (double)bytes / of;
}

/* ---- the envelope ---- */

static void try_rate(uint64_t rate, size_t length, double loss, double seconds) {
    begin_lossy(loss);
    flow *f = add_flow(0, paced(rate), length, UINT64_MAX);
    world_run(&w, (int64_t)(seconds * 1e9));
    check_envelope(f->packets, f->count, rate, burst_of(rate));
    const double got = share_of(bytes_of(f, ALL, 0), (double)rate * seconds);
    if (fabs(got - 1) > 0.02) {
        CHECK_FAIL("%zu-byte messages at %llu bytes/s: %.3f of the rate", length,
                   (unsigned long long)rate, got);
    }
    if (loss > 0) {
        CHECK(bytes_of(f, RDATA, 0) > 0 && bytes_of(f, NCF, 0) > 0 && bytes_of(f, SPM, 0) > 0);
    }
    CHECK(stats_of(f)->rate_limited > 0);
    CHECK_EQUAL(stats_of(f)->rate_limit, rate);
    end_all(true);
}

static void a_rate_is_kept_within_two_per_cent_and_its_envelope_for_every_pair(void) {
    try_rate(20000, 1000, 0, 10);
    try_rate(100000, 100, 0.01, 10);
    try_rate(1000000, 1400, 0.02, 10);
    try_rate(1000000, 64, 0.02, 10);
    try_rate(10000000, 700, 0.01, 10);
    try_rate(125000000, 1400, 0.001, 1);
}

static void a_burst_after_silence_is_the_buckets_depth(void) {
    begin_lossy(0);
    flow *f = add_flow(0, paced(1000000), 500, 0);
    world_run(&w, HELIO_SECOND);
    const int64_t begin_ns = world_now(&w).now_ns;
    f->left = 1000;
    helio_sim_wake(f->node);
    world_run(&w, US);
    const uint64_t burst = bytes_of(f, ODATA, begin_ns);
    CHECK(burst > 1000);
    CHECK(burst <= burst_of(1000000) + LONGEST);
    end_all(true);
}

static void a_burst_given_is_the_burst(void) {
    begin_lossy(0);
    helio_tx_stream_config config = paced(1000000);
    config.pace.burst = 100000;
    flow *f = add_flow(0, config, 500, 0);
    world_run(&w, HELIO_SECOND);
    const int64_t begin_ns = world_now(&w).now_ns;
    f->left = 1000;
    helio_sim_wake(f->node);
    world_run(&w, US);
    CHECK(bytes_of(f, ODATA, begin_ns) >= 95000);
    CHECK(bytes_of(f, ODATA, begin_ns) <= 100000 + LONGEST);
    check_envelope(f->packets, f->count, 1000000, 100000);
    end_all(true);
}

static void without_a_rate_nothing_waits(void) {
    begin_lossy(0);
    flow *f = add_flow(0, world_source_config(1), 1400, 5000);
    world_run(&w, US);
    CHECK_EQUAL(f->left, 0);
    CHECK(!helio_tx_stream_is_paced(f->stream));
    CHECK_EQUAL(stats_of(f)->rate_limited, 0);
    CHECK_EQUAL(stats_of(f)->rate_limit, 0);
    end_all(true);
}

/* ---- change ---- */

static void a_change_of_rate_keeps_what_is_owed(void) {
    begin_lossy(0);
    flow *f = add_flow(0, paced(10000000), 1400, UINT64_MAX);
    world_run(&w, 100 * MS);
    helio_tx_stream_set_rate(f->stream, 100000, world_now(&w));
    const int64_t slow_ns = world_now(&w).now_ns;
    size_t first = f->count;
    world_run(&w, HELIO_SECOND);
    check_envelope(f->packets + first, f->count - first, 100000, burst_of(100000));
    CHECK(bytes_of(f, ALL, slow_ns) < 110000);
    helio_tx_stream_set_rate(f->stream, 1000000, world_now(&w));
    helio_sim_wake(f->node);
    const int64_t fast_ns = world_now(&w).now_ns;
    first = f->count;
    world_run(&w, HELIO_SECOND);
    check_envelope(f->packets + first, f->count - first, 1000000, burst_of(1000000));
    CHECK(fabs(share_of(bytes_of(f, ALL, fast_ns), 1e6) - 1) < 0.02);
    /* Never more than the fastest of them. */
    check_envelope(f->packets, f->count, 10000000, burst_of(10000000));
    f->left = 1000;
    helio_tx_stream_set_rate(f->stream, 0, world_now(&w));
    helio_sim_wake(f->node);
    world_run(&w, US);
    CHECK_EQUAL(f->left, 0);
    end_all(true);
}

static void data_beyond_the_send_limit_waits(void) {
    begin_lossy(0);
    flow *f = add_flow(0, world_source_config(1), 1400, 100);
    helio_tx_pace *pace = helio_tx_stream_pace(f->stream);
    const uint64_t begin = stats_of(f)->window_lead;
    helio_tx_pace_set_send_limit(pace, begin + 10);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(stats_of(f)->window_lead, begin + 10);
    CHECK(helio_tx_stream_ready_ns(f->stream) == HELIO_NEVER);
    CHECK(helio_tx_pace_was_limited(pace));
    helio_tx_pace_set_send_limit(pace, begin + 5); /* less is no reason to look again */
    CHECK(helio_tx_stream_ready_ns(f->stream) == HELIO_NEVER);
    helio_tx_pace_set_send_limit(pace, begin + 15);
    CHECK(helio_tx_stream_ready_ns(f->stream) <= world_now(&w).now_ns);
    flow_poll(f, world_now(&w));
    CHECK_EQUAL(stats_of(f)->window_lead, begin + 15);
    helio_tx_pace_set_send_limit(pace, UINT64_MAX);
    flow_poll(f, world_now(&w));
    CHECK_EQUAL(f->left, 0);
    CHECK(helio_tx_pace_was_limited(pace));
    CHECK(!helio_tx_pace_was_limited(pace));
    end_all(true);
}

static void without_a_rate_a_send_limit_lets_no_requests_stop_the_data(void) {
    begin_lossy(0);
    flow *f = add_flow(0, world_source_config(1), 1400, 50);
    helio_tx_pace_set_send_limit(helio_tx_stream_pace(f->stream), UINT64_MAX - 1);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(f->left, 0);
    uint32_t list[40];
    for (uint32_t i = 0; i < 40; i++) {
        list[i] = (uint32_t)stats_of(f)->window_lead - 39 + i;
    }
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_tx_stream_config config = world_source_config(1);
    const helio_pgm_session session = {*helio_tx_stream_tsi(f->stream), 7500};
    const helio_address source = world_host(1, 0), from = world_host(9, 50009);
    const size_t length = helio_pgm_encode_nak_with(packet, &session, HELIO_PGM_TYPE_NAK, list, 40,
                                                    &source, &config.group, 0, NULL, NULL);
    helio_tx_stream_on_packet(f->stream, packet, length, &from, world_now(&w));
    CHECK(helio_tx_stream_admit(f->stream, f->topic, f->length, world_now(&w)) == HELIO_ADMIT_GO);
    CHECK(helio_tx_stream_pressing(f->stream) > 0); /* by which its lane holds data for a while */
    end_all(true);
}

/* ---- repairs ---- */

/* Asks for what was sent lately, again and again, as a broken or hostile receiver might. */
static void cry(flow *f, int64_t every_ns, int64_t until_ns, uint32_t back) {
    const helio_address from = world_host(9, 50009);
    const helio_tx_stream_config config = paced(1);
    while (world_now(&w).now_ns < until_ns) {
        const uint32_t lead = (uint32_t)stats_of(f)->window_lead;
        uint32_t list[20];
        for (uint32_t i = 0; i < 20; i++) {
            list[i] = lead - (back - i * (back / 20));
        }
        uint8_t packet[HELIO_PGM_CONTROL_MAX];
        const helio_pgm_session session = {*helio_tx_stream_tsi(f->stream), 7500};
        helio_address source = world_host(1, 0);
        const size_t length = helio_pgm_encode_nak_with(packet, &session, HELIO_PGM_TYPE_NAK, list,
                                                        20, &source, &config.group, 0, NULL, NULL);
        helio_tx_stream_on_packet(f->stream, packet, length, &from, world_now(&w));
        helio_sim_wake(f->node);
        world_run(&w, every_ns);
    }
}

static void a_crying_receiver_gets_the_share_of_repairs_and_no_more(void) {
    begin_lossy(0);
    flow *f = add_flow(0, paced(1000000), 1400, UINT64_MAX);
    world_run(&w, 500 * MS);
    const int64_t begin_ns = world_now(&w).now_ns;
    cry(f, 5 * MS, begin_ns + 5 * HELIO_SECOND, 200);
    check_envelope(f->packets, f->count, 1000000, burst_of(1000000));
    CHECK(share_of(bytes_of(f, RDATA, begin_ns), 5e6) > 0.24);
    CHECK(share_of(bytes_of(f, RDATA, begin_ns), 5e6) < 0.255);
    CHECK(share_of(bytes_of(f, ODATA, begin_ns), 5e6) > 0.70);
    CHECK(stats_of(f)->repairs_deferred > 0);
    end_all(true);
}

static void a_flood_of_requests_does_not_break_the_envelope(void) {
    begin_lossy(0);
    flow *f = add_flow(0, paced(1000000), 1400, UINT64_MAX);
    world_run(&w, 500 * MS);
    cry(f, 2 * US, world_now(&w).now_ns + 200 * MS, 200);
    check_envelope(f->packets, f->count, 1000000, burst_of(1000000));
    CHECK(stats_of(f)->nak_confirmations_withheld > 0);
    CHECK(bytes_of(f, NCF, 0) > 0);
    end_all(true);
}

static void data_does_not_starve_repairs(void) {
    begin_lossy(0.1);
    flow *f = add_flow(0, paced(1000000), 1400, 5000);
    world_run(&w, 12 * HELIO_SECOND);
    CHECK_EQUAL(f->left, 0);
    CHECK_EQUAL(in.messages, 5000);
    CHECK_EQUAL(in.lost, 0);
    check_envelope(f->packets, f->count, 1000000, burst_of(1000000));
    end_all(true);
}

static void what_repairs_do_not_need_is_datas(void) {
    begin_lossy(0);
    flow *f = add_flow(0, paced(1000000), 1400, UINT64_MAX);
    world_run(&w, 5 * HELIO_SECOND);
    CHECK(share_of(bytes_of(f, ODATA, 0), 5e6) > 0.98);
    CHECK_EQUAL(bytes_of(f, RDATA, 0), 0);
    end_all(true);
}

/* ---- long messages ---- */

static helio_moment let_the_world_turn(void *context, int64_t until_ns) {
    flow *f = context;
    const int64_t now_ns = world_now(&w).now_ns;
    world_run(&w, until_ns > now_ns && until_ns - now_ns < MS ? until_ns - now_ns : MS);
    helio_tx_stream_poll(f->stream, world_now(&w));
    return world_now(&w);
}

static void a_long_message_waits_for_each_of_its_packets(void) {
    begin_lossy(0.01);
    helio_tx_stream_config config = paced(1000000);
    config.wait = let_the_world_turn;
    config.history_ns = 200 * MS; /* its packets' age counts from when they left */
    flow *f = add_flow(0, config, sizeof payload, 0);
    world_run(&w, MS);
    const int64_t begin_ns = world_now(&w).now_ns;
    CHECK_EQUAL(helio_tx_stream_append(f->stream, f->topic, payload, sizeof payload,
                                       world_now(&w).wall_ns, world_now(&w)),
                0);
    const int64_t took_ns = world_now(&w).now_ns - begin_ns;
    CHECK(took_ns > HELIO_SECOND);
    CHECK(took_ns < 13 * HELIO_SECOND / 10);
    check_envelope(f->packets, f->count, 1000000, burst_of(1000000));
    world_run(&w, 100 * MS);
    CHECK_EQUAL(in.messages, 1);
    CHECK_EQUAL(in.lost, 0);
    end_all(true);
}

static void a_long_message_waits_for_the_send_limit_a_second_and_not_for_each_packet(void) {
    begin_lossy(0);
    helio_tx_stream_config config = paced(10000000);
    config.wait = let_the_world_turn;
    flow *f = add_flow(0, config, sizeof payload, 0);
    world_run(&w, MS);
    helio_tx_pace *pace = helio_tx_stream_pace(f->stream);
    helio_tx_pace_set_send_limit(pace, helio_tx_stream_lead(f->stream) + 10);
    const int64_t begin_ns = world_now(&w).now_ns;
    CHECK_EQUAL(helio_tx_stream_append(f->stream, f->topic, payload, 100000, world_now(&w).wall_ns,
                                       world_now(&w)),
                0);
    const int64_t took_ns = world_now(&w).now_ns - begin_ns;
    CHECK(took_ns > HELIO_SECOND);
    CHECK(took_ns < 11 * HELIO_SECOND / 10);
    check_envelope(f->packets, f->count, 10000000, burst_of(10000000));
    CHECK(helio_tx_stream_admit(f->stream, f->topic, 1400, world_now(&w)) != HELIO_ADMIT_GO);
    end_all(true);
}

/* ---- what counts ---- */

static void with_payload_counted_headers_are_free(void) {
    begin_lossy(0);
    helio_tx_stream_config config = paced(1000000);
    config.pace.overhead = -HELIO_PGM_DATA_HEADER;
    flow *f = add_flow(0, config, 1400, UINT64_MAX);
    world_run(&w, 5 * HELIO_SECOND);
    const double packets = (double)stats_of(f)->packets_sent;
    const double contents = (double)stats_of(f)->bytes_sent - HELIO_PGM_DATA_HEADER * packets;
    CHECK(fabs(contents / 5e6 - 1) < 0.02);
    end_all(true);
}

static void every_copy_of_a_packet_counts(void) {
    begin_lossy(0);
    helio_tx_stream_config config = paced(1000000);
    config.pace.copies = 4;
    flow *f = add_flow(0, config, 1400, UINT64_MAX);
    world_run(&w, 5 * HELIO_SECOND);
    CHECK(fabs(share_of(4 * bytes_of(f, ALL, 0), 5e6) - 1) < 0.02);
    end_all(true);
}

/* ---- several streams ---- */

static double jain(const double *x, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }
    return sum * sum / (n * squares);
}

static int by_time(const void *a, const void *b) {
    const captured *left = a, *right = b;
    return left->at_ns < right->at_ns ? -1 : left->at_ns > right->at_ns;
}

/* All packets of all flows, in the order of time. */
static void check_envelope_of_all(uint64_t rate) {
    size_t count = 0;
    for (int i = 0; i < FLOWS; i++) {
        count += flows[i].count;
    }
    captured *all = malloc(count * sizeof *all);
    size_t at = 0;
    for (int i = 0; i < FLOWS; i++) {
        memcpy(all + at, flows[i].packets, flows[i].count * sizeof *all);
        at += flows[i].count;
    }
    qsort(all, count, sizeof *all, by_time);
    check_envelope(all, count, rate, burst_of(rate));
    free(all);
}

static helio_tx_share together;

static helio_tx_stream_config sharing(uint64_t rate) {
    helio_tx_stream_config config = paced(rate);
    config.pace.share = &together;
    return config;
}

static void streams_share_their_instances_rate_whatever_their_packets(void) {
    world_init(&w, 1, 1);
    helio_tx_share_init(&together, 3000000, 0);
    static const size_t lengths[FLOWS] = {1400, 300, 700};
    for (int i = 0; i < FLOWS; i++) {
        add_flow(i, sharing(0), lengths[i], UINT64_MAX);
    }
    world_run(&w, 5 * HELIO_SECOND);
    check_envelope_of_all(3000000);
    double got[FLOWS], sum = 0;
    for (int i = 0; i < FLOWS; i++) {
        got[i] = (double)bytes_of(&flows[i], ALL, 0);
        sum += got[i];
    }
    CHECK(fabs(sum / 15e6 - 1) < 0.02);
    CHECK(jain(got, FLOWS) > 0.99);
    end_all(false);
}

static void what_one_stream_leaves_of_the_instances_rate_the_others_have(void) {
    world_init(&w, 1, 1);
    helio_tx_share_init(&together, 3000000, 0);
    add_flow(0, sharing(300000), 1400, UINT64_MAX); /* less than its part */
    add_flow(1, sharing(0), 1400, UINT64_MAX);
    flow *brief = add_flow(2, sharing(0), 1400, 100); /* ends */
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(brief->left, 0);
    const int64_t begin_ns = world_now(&w).now_ns;
    world_run(&w, 4 * HELIO_SECOND);
    check_envelope_of_all(3000000);
    CHECK(fabs(share_of(bytes_of(&flows[0], ALL, begin_ns), 4 * 3e5) - 1) < 0.02);
    CHECK(fabs(share_of(bytes_of(&flows[1], ALL, begin_ns), 4 * 2.7e6) - 1) < 0.02);
    end_all(false);
}

static void no_poll(void *context, helio_moment moment) {
    (void)context, (void)moment;
}

static int64_t no_deadline(void *context) {
    (void)context;
    return HELIO_NEVER;
}

/* Whoever has the turn and does not use it must not stop the others. */
static void a_stream_that_lost_interest_is_not_waited_for(void) {
    world_init(&w, 1, 1);
    helio_tx_share_init(&together, 3000000, 0);
    flow *f = add_flow(0, sharing(0), 1400, UINT64_MAX);
    flow *silent = add_flow(1, sharing(0), 1400, UINT64_MAX);
    world_run(&w, 100 * MS);
    CHECK(bytes_of(silent, ODATA, 0) > 100000);
    silent->left = 0; /* without a word */
    const int64_t begin_ns = world_now(&w).now_ns;
    helio_sim_attach(silent->node,
                     &(helio_sim_handler){silent, flow_on_packet, no_poll, no_deadline});
    for (int64_t now_ns = begin_ns; now_ns < begin_ns + HELIO_SECOND; now_ns += 10 * US) {
        world_run(&w, 10 * US);
        flow_poll(f, world_now(&w)); /* its deadline says at once, as it is not its turn */
    }
    CHECK(share_of(bytes_of(f, ODATA, begin_ns), 3e6) > 0.97);
    end_all(false);
}

static void braked_repairs_leave_at_the_brakes_rate_without_any_other(void) {
    enum { BRAKE = 100000, REPAIR = 1000 };
    helio_tx_stream_stats stats = {0};
    helio_tx_pace pace;
    helio_tx_pace_init(&pace, &(helio_tx_pace_config){0}, 1472, &stats, NULL, 0);
    int64_t now_ns = 0;
    CHECK(helio_tx_pace_takes_repair(&pace, now_ns));
    helio_tx_pace_brake_repairs(&pace, BRAKE, now_ns);
    int sent = 0;
    for (; now_ns < 2 * HELIO_SECOND; now_ns += HELIO_MILLISECOND) {
        while (helio_tx_pace_takes_repair(&pace, now_ns)) {
            helio_bucket_charge(&pace.brake, REPAIR);
            sent++;
        }
        CHECK(helio_tx_pace_repair_ready_ns(&pace) > now_ns);
    }
    CHECK(sent >= 198 && sent <= 203);
    CHECK(helio_tx_pace_admit(&pace, 1, false, now_ns) ==
          HELIO_ADMIT_GO); /* data does not wait for it */
    helio_tx_pace_brake_repairs(&pace, 0, now_ns);
    CHECK(helio_tx_pace_takes_repair(&pace, now_ns));
    helio_tx_pace_fini(&pace);
}

int main(void) {
    RUN(braked_repairs_leave_at_the_brakes_rate_without_any_other);
    RUN(a_rate_is_kept_within_two_per_cent_and_its_envelope_for_every_pair);
    RUN(a_burst_after_silence_is_the_buckets_depth);
    RUN(a_burst_given_is_the_burst);
    RUN(without_a_rate_nothing_waits);
    RUN(a_change_of_rate_keeps_what_is_owed);
    RUN(data_beyond_the_send_limit_waits);
    RUN(without_a_rate_a_send_limit_lets_no_requests_stop_the_data);
    RUN(a_crying_receiver_gets_the_share_of_repairs_and_no_more);
    RUN(a_flood_of_requests_does_not_break_the_envelope);
    RUN(data_does_not_starve_repairs);
    RUN(what_repairs_do_not_need_is_datas);
    RUN(a_long_message_waits_for_each_of_its_packets);
    RUN(a_long_message_waits_for_the_send_limit_a_second_and_not_for_each_packet);
    RUN(with_payload_counted_headers_are_free);
    RUN(every_copy_of_a_packet_counts);
    RUN(streams_share_their_instances_rate_whatever_their_packets);
    RUN(what_one_stream_leaves_of_the_instances_rate_the_others_have);
    RUN(a_stream_that_lost_interest_is_not_waited_for);
    return check_result();
}
