/* Stages of a message's latency: each wait is counted by one of them, whatever it is made of. */
#include "hand.h"

/* These histograms, as bits, have one value that is as long as the wait, the others none. */
static void check_long(uint32_t expected) {
    for (int i = 0; i < STAGES; i++) {
        const uint64_t found = count_between(histogram_of((stage)i), WAIT_NS / 2, 100 * WAIT_NS);
        if (found != (expected >> i & 1)) {
            CHECK_FAIL("stage %d has %d long values, not %d", i, (int)found,
                       (int)(expected >> i & 1));
        }
    }
}

static uint32_t bit(stage which) {
    return UINT32_C(1) << which;
}

/* ---- a wait in each stage ---- */

static void a_message_that_waits_nowhere_has_the_way_alone(void) {
    begin();
    append("x", 0);
    flush();
    pass(WAY_NS);
    deliver_all(2000);
    CHECK_EQUAL(messages, 1);
    CHECK_EQUAL(count_at(BATCH, 0), 1);
    CHECK_EQUAL(count_at(PACE, 0), 1);
    CHECK_EQUAL(count_at(NETWORK, WAY_NS - 2000), 1);
    CHECK_EQUAL(count_at(SOCKET, 2000), 1);
    CHECK_EQUAL(count_at(ORDER, 0), 1);
    CHECK_EQUAL(count_at(TOTAL, WAY_NS), 1);
    CHECK_EQUAL(count_of(histogram_of(RECOVERY)), 0);
    CHECK_EQUAL(count_of(histogram_of(TOTAL_RECOVERED)), 0);
    end();
}

static void a_wait_for_the_packet_to_be_closed_is_batch(void) {
    begin();
    append("x", 0);
    pass(WAIT_NS);
    flush();
    pass(WAY_NS);
    deliver_all(2000);
    check_long(bit(BATCH) | bit(TOTAL));
    CHECK_EQUAL(count_at(BATCH, WAIT_NS), 1);
    CHECK_EQUAL(count_at(TOTAL, WAIT_NS + WAY_NS), 1);
    end();
}

static void a_wait_for_a_rate_is_pace_and_not_batch(void) {
    begin();
    helio_hold *hold = helio_tx_stream_hold(source);
    helio_hold_begin(hold, HELIO_NEVER, now.wall_ns); /* others' messages are held back */
    pass(3 * US);
    const int64_t submit_ns = now.wall_ns;
    pass(WAIT_NS);
    helio_hold_end(hold, now.wall_ns);
    pass(7 * US); /* what lies in front leaves first */
    helio_tx_stream_append(source, topic, "x", 1, submit_ns, now);
    pass(4 * US);
    flush();
    pass(WAY_NS);
    deliver_all(2000);
    check_long(bit(PACE) | bit(TOTAL));
    CHECK_EQUAL(count_at(PACE, WAIT_NS + 7 * US), 1);
    CHECK_EQUAL(count_at(BATCH, 4 * US), 1);
    CHECK_EQUAL(count_at(TOTAL, WAIT_NS + 11 * US + WAY_NS), 1);
    end();
}

static void a_wait_for_credit_of_the_topic_is_pace_too(void) {
    begin();
    const int64_t submit_ns = now.wall_ns;
    pass(2 * US);
    helio_hold *hold = helio_tx_topic_hold(topic);
    helio_hold_begin(hold, submit_ns, now.wall_ns);
    pass(WAIT_NS);
    helio_hold_end(hold, now.wall_ns);
    helio_tx_stream_append(source, topic, "x", 1, submit_ns, now);
    flush();
    deliver_all(0);
    CHECK_EQUAL(count_at(PACE, WAIT_NS), 1);
    CHECK_EQUAL(count_at(BATCH, 2 * US), 1);
    end();
}

static void a_hold_that_is_over_is_not_counted_against_what_comes_later(void) {
    begin();
    helio_hold *hold = helio_tx_stream_hold(source);
    helio_hold_begin(hold, HELIO_NEVER, now.wall_ns);
    pass(WAIT_NS);
    helio_hold_end(hold, now.wall_ns);
    pass(1 * US);
    append("x", 0);
    pass(WAIT_NS);
    helio_hold_begin(hold, now.wall_ns - 3 * US, now.wall_ns); /* another, of younger messages */
    CHECK_EQUAL(helio_hold_wait(hold, now.wall_ns - 3 * US, now.wall_ns + 5 * US), 5 * US);
    flush();
    deliver_all(0);
    CHECK_EQUAL(count_at(PACE, 0), 1);
    CHECK_EQUAL(count_at(BATCH, WAIT_NS), 1);
    end();
}

static void a_slow_way_is_network(void) {
    begin();
    append("x", 0);
    flush();
    pass(WAY_NS + WAIT_NS);
    deliver_all(2000);
    check_long(bit(NETWORK) | bit(TOTAL));
    CHECK_EQUAL(count_at(NETWORK, WAIT_NS + WAY_NS - 2000), 1);
    end();
}

static void a_wait_in_the_socket_is_socket(void) {
    begin();
    append("x", 0);
    flush();
    pass(WAY_NS + WAIT_NS);
    deliver_all(WAIT_NS + 2000);
    check_long(bit(SOCKET) | bit(TOTAL));
    CHECK_EQUAL(count_at(SOCKET, WAIT_NS + 2000), 1);
    CHECK_EQUAL(count_at(NETWORK, WAY_NS - 2000), 1);
    end();
}

static void without_a_stamp_network_goes_until_the_packet_is_taken_up(void) {
    begin();
    append("x", 0);
    flush();
    pass(WAY_NS);
    deliver_all(0);
    CHECK_EQUAL(count_of(histogram_of(SOCKET)), 0);
    CHECK_EQUAL(count_at(NETWORK, WAY_NS), 1);
    end();
}

static void a_wait_for_what_is_missing_before_is_order(void) {
    helio_tx_topic *other;
    begin();
    CHECK_EQUAL(helio_tx_stream_add_topic(source, "unwanted", now, &other), 0);
    flush();
    deliver_all(0);
    helio_tx_stream_append(source, other, "late", 4, now.wall_ns, now);
    flush();
    append("x", 0);
    flush();
    CHECK_EQUAL(down.count, 2);
    pass(WAY_NS);
    arrive(&down.packets[1], 2000);
    CHECK_EQUAL(messages, 0);
    pass(WAIT_NS);
    arrive(&down.packets[0], 2000);
    CHECK_EQUAL(messages, 1);
    check_long(bit(ORDER) | bit(TOTAL));
    CHECK_EQUAL(count_at(ORDER, WAIT_NS), 1);
    CHECK_EQUAL(count_at(NETWORK, WAY_NS - 2000), 1);
    CHECK_EQUAL(count_at(SOCKET, 2000), 1);
    end();
}

/* An application without room is no fault of the network: its wait is not in order_latency, nor in
 * total_latency.  The second message comes while the first waits. */
static void a_wait_for_room_is_not_order(void) {
    begin();
    room = 0;
    append("x", 0);
    flush();
    pass(WAY_NS);
    deliver_all(2000);
    append("y", 0);
    flush();
    pass(WAY_NS);
    deliver_all(2000);
    CHECK_EQUAL(messages, 0);
    pass(WAIT_NS);
    room = 10;
    helio_rx_endpoint_poll(receiver, now);
    CHECK_EQUAL(messages, 2);
    check_long(0);
    CHECK_EQUAL(count_at(ORDER, 0), 2);
    CHECK_EQUAL(count_at(TOTAL, WAY_NS), 2);
    CHECK_EQUAL(now.now_ns - measured_ns, WAIT_NS); /* this is the sink's stage */
    end();
}

/* ---- recovered ---- */

/* The receiver asks for what is missing, and the source repairs it. */
static void repair(void) {
    const helio_address from = world_host(100, 50000);
    for (int i = 0; i < 40 && up.count == 0; i++) {
        pass(50 * US);
        helio_rx_endpoint_poll(receiver, now);
    }
    for (size_t i = 0; i < up.count; i++) {
        helio_tx_stream_on_packet(source, up.packets[i].bytes, up.packets[i].length, &from, now);
    }
    up.count = 0;
    pass(200 * US);
    helio_tx_stream_poll(source, now);
    deliver_all(2000);
}

static void recovered_messages_are_counted_apart(void) {
    begin();
    append("one", 0);
    flush();
    append("two", 0);
    flush();
    const int64_t sent_ns = now.wall_ns;
    down.packets[0] = down.packets[1]; /* the first is lost */
    down.count = 1;
    pass(WAY_NS);
    deliver_all(2000);
    const int64_t second_ns = now.wall_ns;
    repair();
    CHECK_EQUAL(messages, 2);
    const int64_t took_ns = now.wall_ns - sent_ns;
    const helio_receiver_stats *counts = received->record;
    CHECK_EQUAL(helio_cell(&counts->messages_recovered), 1);
    CHECK_EQUAL(helio_cell(&counts->latency_recovered), 1);
    CHECK_EQUAL(helio_cell(&counts->latency_samples), 2);
    CHECK_EQUAL(count_at(RECOVERY, took_ns), 1);
    CHECK_EQUAL(count_at(TOTAL_RECOVERED, took_ns), 1);
    CHECK_EQUAL(count_at(ORDER_RECOVERED, 0), 1);
    CHECK_EQUAL(count_of(histogram_of(RECOVERY)), 1);
    CHECK_EQUAL(count_of(histogram_of(TOTAL_RECOVERED)), 1);
    /* The one never lost is the difference, cell by cell. */
    CHECK_EQUAL(count_of(histogram_of(NETWORK)), 1);
    CHECK_EQUAL(count_of(histogram_of(SOCKET)), 1);
    CHECK_EQUAL(count_of(histogram_of(TOTAL)) - count_of(histogram_of(TOTAL_RECOVERED)), 1);
    CHECK_EQUAL(count_at(ORDER, now.wall_ns - second_ns), 1);
    CHECK_EQUAL(count_at(ORDER, now.wall_ns - second_ns) -
                    count_at(ORDER_RECOVERED, now.wall_ns - second_ns),
                1);
    end();
}

static void a_message_in_fragments_is_recovered_when_one_of_them_was(void) {
    static char body[4000];
    begin();
    memset(body, 'x', sizeof body - 1);
    append(body, 0);
    CHECK_EQUAL(down.count, 3);
    down.packets[1] = down.packets[2]; /* the one in the middle is lost */
    down.count = 2;
    pass(WAY_NS);
    deliver_all(2000);
    CHECK_EQUAL(messages, 0);
    repair();
    CHECK_EQUAL(messages, 1);
    CHECK_EQUAL(count_of(histogram_of(TOTAL_RECOVERED)), 1);
    CHECK_EQUAL(count_of(histogram_of(NETWORK)), 0);
    end();
}

/* ---- two clocks ---- */

static void clocks_apart_are_seen_and_not_mended(void) {
    begin();
    append("x", 0);
    flush();
    now.wall_ns -= WAIT_NS; /* the receiver's clock is behind */
    pass(WAY_NS);
    deliver_all(2000);
    const helio_receiver_stats *counts = received->record;
    CHECK_EQUAL(helio_cell(&counts->latency_invalid_samples), 1);
    CHECK_EQUAL(count_of(histogram_of(TOTAL)), 0);
    CHECK_EQUAL(helio_cell(&histogram_of(NETWORK)->negative), 1);
    CHECK_EQUAL(count_at(SOCKET, 2000), 1);
    CHECK_EQUAL(count_at(ORDER, 0), 1);
    end();
}

int main(void) {
    RUN(a_message_that_waits_nowhere_has_the_way_alone);
    RUN(a_wait_for_the_packet_to_be_closed_is_batch);
    RUN(a_wait_for_a_rate_is_pace_and_not_batch);
    RUN(a_wait_for_credit_of_the_topic_is_pace_too);
    RUN(a_hold_that_is_over_is_not_counted_against_what_comes_later);
    RUN(a_slow_way_is_network);
    RUN(a_wait_in_the_socket_is_socket);
    RUN(without_a_stamp_network_goes_until_the_packet_is_taken_up);
    RUN(a_wait_for_what_is_missing_before_is_order);
    RUN(a_wait_for_room_is_not_order);
    RUN(recovered_messages_are_counted_apart);
    RUN(a_message_in_fragments_is_recovered_when_one_of_them_was);
    RUN(clocks_apart_are_seen_and_not_mended);
    return check_result();
}
