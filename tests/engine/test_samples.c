/* Which packets have their latency measured, against which moment, and how much it varies. */
#include "hand.h"

/* ---- sampling ---- */

static void one_packet_in_many_is_sampled_and_readers_know_the_share(void) {
    enum { SENT = 20000, EVERY = 10 };
    begin_sampled(EVERY);
    for (int i = 0; i < SENT; i++) {
        append("x", 0);
        flush();
        pass(US);
        deliver_all(0);
    }
    const helio_receiver_stats *counts = received->record;
    const helio_transmitter_stats *sent = helio_tx_topic_object(topic)->record;
    const uint64_t samples = helio_cell(&counts->latency_samples);
    CHECK_EQUAL(helio_cell(&counts->latency_messages), SENT);
    CHECK_EQUAL(helio_cell(&sent->latency_packets), SENT);
    CHECK(samples > SENT / EVERY * 9 / 10 && samples < SENT / EVERY * 11 / 10);
    for (int i = 0; i < STAGES; i++) {
        const bool is_sent = i == BATCH || i == PACE;
        const uint64_t expected =
            i == RECOVERY || i == ORDER_RECOVERED || i == TOTAL_RECOVERED || i == SOCKET ? 0
            : is_sent ? helio_cell(&sent->latency_samples)
                      : samples;
        CHECK_EQUAL(count_of(histogram_of((stage)i)), expected);
    }
    CHECK(helio_cell(&sent->latency_samples) > SENT / EVERY * 9 / 10);
    end();
}

static void a_period_of_the_traffic_is_not_taken_for_all_of_it(void) {
    enum { SENT = 20000, EVERY = 10 };
    begin_sampled(EVERY);
    for (int i = 0; i < SENT; i++) {
        append("x", i % EVERY == 3 ? WAIT_NS : 0); /* every tenth packet has waited */
        flush();
        deliver_all(0);
    }
    const helio_receiver_stats *counts = received->record;
    const uint64_t samples = helio_cell(&counts->latency_samples);
    const uint64_t waited = count_at(TOTAL, WAIT_NS);
    CHECK(waited > samples / 20 && waited < samples / 5);
    end();
}

/* ---- intended send time ---- */

static void latency_is_counted_against_the_intended_time_too(void) {
    begin();
    /* The sender meant to send every millisecond and stood still for five. */
    const int64_t started_ns = now.wall_ns;
    for (int i = 0; i < 10; i++) {
        pass(i == 3 ? WAIT_NS : MS);
        while (now.wall_ns < started_ns + i * MS) {
            pass(US);
        }
        helio_tx_stream_append_intended(source, topic, "x", 1, now.wall_ns, started_ns + i * MS,
                                        now);
        flush();
        deliver_all(0);
    }
    const helio_hdr *intended = received->histogram[HELIO_RECEIVER_INTENDED_LATENCY];
    const helio_hdr *delay =
        helio_tx_topic_object(topic)->histogram[HELIO_TRANSMITTER_SUBMIT_DELAY];
    CHECK_EQUAL(count_of(intended), 10);
    CHECK_EQUAL(count_at(TOTAL, 0), 10);
    CHECK(count_between(intended, WAIT_NS, 2 * WAIT_NS) >= 1);
    CHECK_EQUAL(count_between(delay, WAIT_NS, 2 * WAIT_NS),
                count_between(intended, WAIT_NS, 2 * WAIT_NS));
    end();
}

static void messages_of_a_packet_share_their_oldest_intended_time(void) {
    begin();
    helio_tx_stream_append_intended(source, topic, "a", 1, now.wall_ns, now.wall_ns - 3 * MS, now);
    helio_tx_stream_append_intended(source, topic, "b", 1, now.wall_ns, now.wall_ns - 9 * MS, now);
    helio_tx_stream_append_intended(source, topic, "c", 1, now.wall_ns, now.wall_ns - 1 * MS, now);
    append("has none", 0);
    flush();
    CHECK_EQUAL(down.count, 1);
    deliver_all(0);
    const helio_hdr *intended = received->histogram[HELIO_RECEIVER_INTENDED_LATENCY];
    CHECK_EQUAL(count_between(intended, 9 * MS, 9 * MS), 4);
    append("has none", 0);
    helio_tx_stream_append_intended(source, topic, "a", 1, now.wall_ns, now.wall_ns - 3 * MS, now);
    flush();
    CHECK_EQUAL(down.count, 2); /* what is closed already cannot be told a time */
    deliver_all(0);
    CHECK_EQUAL(count_between(intended, 3 * MS, 3 * MS), 1);
    CHECK_EQUAL(count_of(intended), 5);
    end();
}

static void a_long_message_carries_its_intended_time(void) {
    static char body[5000];
    begin();
    helio_tx_stream_append_intended(source, topic, body, sizeof body, now.wall_ns,
                                    now.wall_ns - 2 * MS, now);
    deliver_all(0);
    CHECK_EQUAL(messages, 1);
    CHECK_EQUAL(count_between(received->histogram[HELIO_RECEIVER_INTENDED_LATENCY], 2 * MS, 2 * MS),
                1);
    end();
}

/* ---- jitter ---- */

static void jitter_is_the_estimate_of_rfc_3550(void) {
    static const int64_t ways_ns[] = {100000, 100000, 260000, 100000, 100000, 420000};
    begin();
    int64_t last_ns = 0, expected_16 = 0;
    for (size_t i = 0; i < sizeof ways_ns / sizeof ways_ns[0]; i++) {
        append("x", 0);
        flush();
        pass(ways_ns[i]);
        deliver_all(1000);
        const int64_t change_ns =
            ways_ns[i] > last_ns ? ways_ns[i] - last_ns : last_ns - ways_ns[i];
        if (i > 0) {
            expected_16 += change_ns;
            expected_16 -= (expected_16 + 8) >> 4;
        }
        last_ns = ways_ns[i];
    }
    const helio_receiver_stats *counts = received->record;
    CHECK_EQUAL(helio_cell(&counts->interarrival_jitter), expected_16 >> 4);
    CHECK(expected_16 >> 4 > 0);
    end();
}

static void an_offset_of_the_clocks_is_no_jitter(void) {
    begin();
    for (int i = 0; i < 20; i++) {
        append("x", 0);
        flush();
        const helio_moment at_source = now;
        pass(WAY_NS);
        now.wall_ns -= HELIO_SECOND; /* the receiver's clock is a second behind */
        deliver_all(0);
        now = (helio_moment){at_source.now_ns + WAY_NS, at_source.wall_ns + WAY_NS};
    }
    CHECK_EQUAL(helio_cell(&((helio_receiver_stats *)received->record)->interarrival_jitter), 0);
    end();
}

/* ---- the application's side ---- */

static void sampled_messages_are_told_to_the_sink(void) {
    begin();
    append("x", 0);
    flush();
    pass(WAY_NS);
    deliver_all(0);
    CHECK_EQUAL(measured_ns, now.now_ns);
    end();
    begin_sampled(1000000);
    append("x", 0);
    flush();
    deliver_all(0);
    CHECK(measured_ns == HELIO_NOT_MEASURED);
    end();
}

int main(void) {
    RUN(one_packet_in_many_is_sampled_and_readers_know_the_share);
    RUN(a_period_of_the_traffic_is_not_taken_for_all_of_it);
    RUN(latency_is_counted_against_the_intended_time_too);
    RUN(messages_of_a_packet_share_their_oldest_intended_time);
    RUN(a_long_message_carries_its_intended_time);
    RUN(jitter_is_the_estimate_of_rfc_3550);
    RUN(an_offset_of_the_clocks_is_no_jitter);
    RUN(sampled_messages_are_told_to_the_sink);
    return check_result();
}
