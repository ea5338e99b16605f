/* Repairs for the only receiver of a group: they go to it by unicast. */
#include "check.h"
#include "wire/checksum.h"
#include "wire/pgm.h"
#include "world.h"

#define MS HELIO_MILLISECOND

static world w;
static world_source source;
static world_receiver receivers[2];
static helio_sim_node *listener; /* it hears the group and sends nothing */
static helio_tx_topic *topic;
static uint64_t messages, listened[16];
static unsigned drops; /* data packets to the first receiver that are lost next */
static uint8_t last_data[1500];
static size_t last_bytes;

static size_t take_all(void *context, const helio_message *taken, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(taken[i].length, 4);
        CHECK_BYTES(taken[i].data, "true", 4);
    }
    messages += count;
    return count;
}

static void listen(void *context, const void *packet, size_t length, const helio_address *from,
                   helio_moment moment) {
    (void)context, (void)from, (void)moment;
    const uint8_t type = ((const uint8_t *)packet)[4];
    listened[type & 0x0F]++;
    if (type == HELIO_PGM_TYPE_ODATA) {
        memcpy(last_data, packet, length);
        last_bytes = length;
    }
}

static void rest(void *context, helio_moment moment) {
    (void)context, (void)moment;
}

static int64_t never(void *context) {
    (void)context;
    return HELIO_NEVER;
}

static bool drop(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)length, (void)now_ns;
    const uint8_t type = ((const uint8_t *)packet)[4];
    const bool is_data = type == HELIO_PGM_TYPE_ODATA || type == HELIO_PGM_TYPE_RDATA;
    const bool is_lost = is_data && drops > 0;
    drops -= is_lost;
    return is_lost;
}

/* A source, `count` receivers that report, and the listener. */
static void begin_with(unsigned count, bool takes_unicast, helio_tx_pace_config pace) {
    messages = drops = 0;
    memset(listened, 0, sizeof listened);
    world_init(&w, 5, 0);
    for (unsigned i = 0; i < count; i++) {
        helio_rx_endpoint_config config = world_receiver_config(100 + i);
        config.receiver = 100 + i;
        config.takes_unicast = takes_unicast;
        config.nak_backoff_ns = -1; /* as measured */
        world_add_receiver(&w, &receivers[i], &config);
        helio_subscription *subscription;
        const helio_sink sink = {.on_messages = take_all};
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t", &sink, world_now(&w),
                                                &subscription),
                    0);
    }
    helio_sim_set_link(receivers[0].node, &(helio_sim_link){.drops = drop});
    helio_tx_stream_config config = world_source_config(1);
    config.report_interval_ns = 5 * MS;
    config.pace = pace;
    world_add_source(&w, &source, &config);
    const helio_address address = world_host(200, 50000);
    listener = helio_sim_add_node(w.sim, &address);
    helio_sim_attach(listener, &(helio_sim_handler){NULL, listen, rest, never});
    helio_sim_join(listener, &config.group);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
}

static void begin(unsigned count, bool takes_unicast) {
    begin_with(count, takes_unicast, (helio_tx_pace_config){0});
}

static void end(void) {
    world_end_source(&source);
    for (unsigned i = 0; i < 2; i++) {
        if (receivers[i].endpoint) {
            world_end_receiver(&receivers[i]);
        }
    }
    world_fini(&w);
}

static void send_one(void) {
    const helio_moment now = world_now(&w);
    helio_tx_stream_append(source.stream, topic, "true", 4, now.wall_ns, now);
    helio_tx_stream_flush(source.stream, now);
    helio_sim_wake(source.node);
}

/* All receivers report; then the first one misses the second of four packets, and as many of its
 * repairs as told. */
static void lose_one(unsigned repairs) {
    send_one();
    world_run(&w, 50 * MS);
    drops = 1;
    send_one();
    CHECK_EQUAL(drops, 0);
    send_one();
    send_one();
    drops = repairs;
    world_run(&w, 200 * MS);
}

static void repairs_for_the_only_receiver_go_to_it_alone(void) {
    begin(1, true);
    lose_one(0);
    CHECK_EQUAL(messages, 4);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_ODATA] >= 4, 1);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_RDATA], 0);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_NCF], 0);
    CHECK_EQUAL(helio_cell(&world_counts(&source.instance)->repair_packets), 1);
    end();
}

static void repairs_go_to_the_group_when_there_are_two_receivers(void) {
    begin(2, true);
    lose_one(0);
    CHECK_EQUAL(messages, 8);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_RDATA], 1);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_NCF], 1);
    end();
}

static void repairs_go_to_the_group_unless_the_receiver_reads_its_own_socket(void) {
    begin(1, false);
    lose_one(0);
    CHECK_EQUAL(messages, 4);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_RDATA], 1);
    end();
}

static void the_third_repair_goes_to_the_group(void) {
    begin(1, true);
    lose_one(2);
    CHECK_EQUAL(messages, 4);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_RDATA], 1);
    CHECK_EQUAL(listened[HELIO_PGM_TYPE_NCF] >= 1, 1);
    CHECK_EQUAL(helio_cell(&world_counts(&source.instance)->repair_packets), 3);
    end();
}

static const helio_tx_stream_stats *sent(void) {
    const helio_tx_stream_stats *stats = world_record(&w, HELIO_SCOPE_TX_STREAM, "");
    CHECK(stats);
    return stats;
}

static void a_repair_that_leaves_at_once_is_its_confirmation(void) {
    begin(1, true);
    lose_one(0);
    CHECK_EQUAL(messages, 4);
    CHECK_EQUAL(helio_cell(&sent()->repair_packets), 1);
    CHECK_EQUAL(helio_cell(&sent()->nak_confirmations_sent), 0);
    end();
}

static void a_repair_that_waits_for_the_rate_is_confirmed_first(void) {
    begin_with(1, true, (helio_tx_pace_config){.rate = 100000, .repair_share = 0.01});
    send_one();
    world_run(&w, 50 * MS);
    drops = 2;
    send_one();
    send_one();
    send_one();
    world_run(&w, 10 * MS); /* the first repair uses up the rate for 90 ms */
    CHECK_EQUAL(helio_cell(&sent()->repair_packets), 1);
    CHECK(helio_cell(&sent()->nak_confirmations_sent) >= 1);
    world_run(&w, 200 * MS);
    CHECK_EQUAL(messages, 4);
    CHECK_EQUAL(helio_cell(&sent()->repair_packets), 2);
    end();
}

static void of_many_repairs_the_last_ones_wait_and_are_confirmed(void) {
    begin(1, true);
    send_one();
    world_run(&w, 50 * MS);
    drops = 40;
    for (int i = 0; i < 42; i++) {
        send_one();
    }
    world_run(&w, 200 * MS);
    CHECK_EQUAL(messages, 43);
    CHECK_EQUAL(helio_cell(&sent()->repair_packets), 40);
    CHECK_EQUAL(helio_cell(&sent()->nak_confirmations_sent), 1);
    end();
}

/* The back-off with which the last request was made. */
static uint64_t backoff_ns(void) {
    const helio_rx_stream_stats *stats = world_record(&w, HELIO_SCOPE_RX_STREAM, "");
    CHECK(stats);
    return helio_cell(&stats->nak_backoff);
}

static void who_is_answered_alone_asks_without_delay(void) {
    begin(1, true);
    lose_one(0);
    CHECK(backoff_ns() > 0);
    for (int alone = 1; alone >= 0; alone--) { /* then another receiver comes */
        helio_rx_endpoint_set_aside(receivers[0].endpoint, alone);
        lose_one(0); /* its answer tells the receiver */
        lose_one(0);
        CHECK_EQUAL(backoff_ns() == 0, alone);
    }
    CHECK_EQUAL(messages, 20);
    end();
}

static void a_repair_by_unicast_from_another_address_is_refused(void) {
    begin(1, true);
    send_one();
    world_run(&w, 50 * MS);
    drops = 1;
    send_one();
    uint8_t forged[sizeof last_data];
    world_run(&w, 0);
    CHECK(last_bytes > 4);
    memcpy(forged, last_data, last_bytes);
    forged[4] = HELIO_PGM_TYPE_RDATA;
    memcpy(forged + last_bytes - 4, "lies", 4);
    memset(forged + 6, 0, 2);
    const uint16_t sum = helio_checksum_finish(helio_checksum_part(forged, last_bytes));
    memcpy(forged + 6, &sum, 2);
    const helio_instance_stats *counts = world_counts(&receivers[0].instance);
    const uint64_t refused = helio_cell(&counts->invalid_packets_address);
    const helio_address to = world_host(100, 50000);
    const helio_outlet outlet = helio_sim_outlet(listener, &to);
    outlet.send(outlet.context, &to, forged, last_bytes, false);
    world_run(&w, 0);
    CHECK_EQUAL(helio_cell(&counts->invalid_packets_address), refused + 1);
    send_one();
    send_one();
    world_run(&w, 200 * MS);
    CHECK_EQUAL(messages, 4);
    end();
}

int main(void) {
    RUN(repairs_for_the_only_receiver_go_to_it_alone);
    RUN(repairs_go_to_the_group_when_there_are_two_receivers);
    RUN(repairs_go_to_the_group_unless_the_receiver_reads_its_own_socket);
    RUN(the_third_repair_goes_to_the_group);
    RUN(a_repair_that_leaves_at_once_is_its_confirmation);
    RUN(a_repair_that_waits_for_the_rate_is_confirmed_first);
    RUN(of_many_repairs_the_last_ones_wait_and_are_confirmed);
    RUN(who_is_answered_alone_asks_without_delay);
    RUN(a_repair_by_unicast_from_another_address_is_refused);
    return check_result();
}
