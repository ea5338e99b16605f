/* The times that options set are kept, to the virtual microsecond: when a packet counts as missing,
 * when it is asked for again, when it is given up, and when a stranger is asked who he is. */
#include "pair.h"

/* What a node does not hear. */
typedef struct deafness {
    uint32_t types; /* so many packets of these types */
    int count;
    uint32_t always; /* and every packet of these */
} deafness;

static deafness of_source;
static deafness of_receiver;

static bool is_deaf(void *context, const void *packet, size_t length, int64_t now_ns) {
    deafness *self = context;
    (void)length, (void)now_ns;
    const uint8_t type = ((const uint8_t *)packet)[4];
    return (self->always >> type & 1) || ((self->types >> type & 1) && self->count-- > 0);
}

static void deafen(helio_sim_node *node, deafness *self, uint32_t types, int count) {
    *self = (deafness){.types = types, .count = count};
    helio_sim_set_link(node, &(helio_sim_link){.drops = is_deaf, .context = self});
}

static uint64_t naks(void) {
    return helio_cell(&counts()->nak_packets_sent);
}

/* One packet that does not come, and one that does. */
static void lose_one(void) {
    deafen(receiver.node, &of_receiver, ODATA, 1);
    send(2);
}

/* The same; nor does its repair come. */
static void lose_one_and_its_repair(void) {
    deafen(receiver.node, &of_receiver, ODATA, 1);
    of_receiver.always = RDATA;
    send(2);
}

static helio_rx_endpoint_config at_once(void) {
    helio_rx_endpoint_config config = world_receiver_config(100);
    config.nak_backoff_ns = 0;
    config.reorder_packets = 0;
    config.reorder_ns = 0;
    return config;
}

static void begin_with(const helio_rx_endpoint_config *config) {
    begin_receiver(*config);
    begin_source(world_source_config(1));
    world_run(&w, 10 * MS);
}

static void a_packet_counts_as_missing_after_reorder_time(void) {
    helio_rx_endpoint_config config = at_once();
    config.reorder_packets = 64;
    config.reorder_ns = 5 * MS;
    begin_with(&config);
    lose_one();
    world_run(&w, 4900 * US);
    CHECK_EQUAL(naks(), 0);
    world_run(&w, 200 * US);
    CHECK_EQUAL(naks(), 1);
    end();
}

static void a_packet_counts_as_missing_after_reorder_packets(void) {
    helio_rx_endpoint_config config = at_once();
    config.reorder_packets = 3;
    config.reorder_ns = HELIO_SECOND;
    begin_with(&config);
    lose_one();
    send(1);
    world_run(&w, 100 * US);
    CHECK_EQUAL(naks(), 0);
    send(1);
    world_run(&w, 100 * US);
    CHECK_EQUAL(naks(), 1);
    end();
}

static void what_nobody_confirms_is_asked_for_again_after_nak_repeat(void) {
    helio_rx_endpoint_config config = at_once();
    config.nak_repeat_ns = 20 * MS;
    begin_with(&config);
    deafen(source.node, &of_source, NAK, 1000);
    lose_one();
    world_run(&w, 19 * MS);
    CHECK_EQUAL(naks(), 1);
    world_run(&w, 2 * MS);
    CHECK_EQUAL(naks(), 2);
    end();
}

static void what_is_confirmed_and_does_not_come_is_asked_for_again_after_nak_data(void) {
    helio_rx_endpoint_config config = at_once();
    config.nak_data_ns = 40 * MS;
    begin_with(&config);
    lose_one_and_its_repair();
    world_run(&w, 39 * MS);
    CHECK_EQUAL(naks(), 1);
    world_run(&w, 2 * MS);
    CHECK_EQUAL(naks(), 2);
    end();
}

static void a_request_within_repair_linger_is_for_a_repair_on_its_way(void) {
    helio_rx_endpoint_config config = at_once();
    config.nak_data_ns = 10 * MS;
    begin_receiver(config);
    helio_tx_stream_config stream = world_source_config(1);
    stream.repair_linger_ns = 15 * MS;
    begin_source(stream);
    world_run(&w, 10 * MS);
    lose_one_and_its_repair();
    world_run(&w, 14 * MS);
    CHECK(naks() >= 2);
    CHECK_EQUAL(helio_cell(&source_counts()->naks_answered_ignored_recent), naks() - 1);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 1);
    of_receiver.always = 0;
    world_run(&w, 50 * MS); /* asked again, later: it is repaired */
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 2);
    CHECK_EQUAL(in.messages, 2);
    end();
}

/* The source is met by its data and silent otherwise: the first SPM is the one asked for. */
static int64_t stranger_asked_after(int64_t spmr_delay_ns) {
    helio_rx_endpoint_config config = at_once();
    config.spmr_delay_ns = spmr_delay_ns;
    begin_receiver(config);
    deafen(receiver.node, &of_receiver, SPM, 1000);
    helio_tx_stream_config stream = world_source_config(1);
    stream.heartbeat_min_ns = stream.heartbeat_max_ns = 100 * HELIO_SECOND;
    stream.ambient_interval_ns = 100 * HELIO_SECOND;
    begin_source(stream);
    send(1);
    const int64_t from_ns = world_now(&w).now_ns;
    while (!helio_cell(&source_counts()->heartbeat_requests_received) &&
           world_now(&w).now_ns < from_ns + HELIO_SECOND) {
        world_run(&w, 100 * US);
    }
    const int64_t took_ns = world_now(&w).now_ns - from_ns;
    end();
    return took_ns;
}

static void a_stranger_is_asked_within_spmr_delay(void) {
    CHECK(stranger_asked_after(0) <= 200 * US);
    const int64_t took_ns = stranger_asked_after(500 * MS);
    CHECK(took_ns > 200 * US && took_ns <= 501 * MS);
}

/* A long message of which a piece never comes takes no longer than that piece is waited for. */
static void a_message_half_there_is_given_up_with_its_missing_piece(void) {
    static const uint8_t data[100000];
    helio_rx_endpoint_config config = at_once();
    config.nak_deadline_ns = 200 * MS;
    begin_with(&config);
    deafen(receiver.node, &of_receiver, ODATA, 1); /* its first packet */
    of_receiver.always = RDATA;
    CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, data, sizeof data,
                                       world_now(&w).wall_ns, world_now(&w)),
                0);
    helio_sim_wake(source.node);
    world_run(&w, 1 * MS);
    CHECK_EQUAL(in.messages, 0);
    CHECK_EQUAL(in.lost, 0);
    world_run(&w, 400 * MS);
    deafen(receiver.node, &of_receiver, 0, 0);
    send(2);
    world_run(&w, 10 * MS);
    CHECK_EQUAL(in.lost, 1);
    CHECK_EQUAL(in.messages, 2);
    end();
}

int main(void) {
    RUN(a_packet_counts_as_missing_after_reorder_time);
    RUN(a_packet_counts_as_missing_after_reorder_packets);
    RUN(what_nobody_confirms_is_asked_for_again_after_nak_repeat);
    RUN(what_is_confirmed_and_does_not_come_is_asked_for_again_after_nak_data);
    RUN(a_request_within_repair_linger_is_for_a_repair_on_its_way);
    RUN(a_stranger_is_asked_within_spmr_delay);
    RUN(a_message_half_there_is_given_up_with_its_missing_piece);
    return check_result();
}
