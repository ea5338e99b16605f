/* Answering requests for repair, and the receivers that make them. */
#include "base/random.h"
#include "check.h"
#include "repair/repairer.h"

#define US HELIO_MICROSECOND

static helio_stats *stats;
static helio_tx_stream_stats counts;
static helio_txw txw;
static helio_repairer repairer;
static helio_limits limits; /* of the next repairer */
static size_t shed;         /* of the last NAK */

static helio_address peer(int number) {
    char text[32];
    helio_address address;
    snprintf(text, sizeof text, "10.0.%d.%d:%d", number >> 8, number & 255, 1000);
    helio_address_parse(text, &address);
    return address;
}

static helio_moment at(int64_t ns) {
    return (helio_moment){ns, 1000000 + ns};
}

static void begin(uint32_t max_receivers) {
    const helio_stats_config config = {.name = "test", .bytes = 1 << 20, .wall_ns = 1};
    memset(&counts, 0, sizeof counts);
    CHECK_EQUAL(helio_stats_create(&config, &stats), 0);
    CHECK_EQUAL(helio_txw_init(&txw, &(helio_txw_config){16, 64, 0, 0, 1000}), 0);
    for (int i = 0; i < 20; i++) { /* 1000 to 1019; 1004 is the oldest left */
        helio_txw_open(&txw);
        helio_txw_commit(&txw, 50, 0, 0);
    }
    const helio_repairer_config r = {
        .stats = stats,
        .instance = "test",
        .stream = "s",
        .max_receivers = max_receivers,
        .linger_ns = 100 * US,
        .limits = limits,
    };
    CHECK_EQUAL(helio_repairer_init(&repairer, &r, &txw, &counts), 0);
}

static void end(void) {
    helio_repairer_fini(&repairer, at(0));
    helio_txw_fini(&txw);
    helio_stats_destroy(stats);
}

/* A NAK of `count` neighbours from `first` on; true when it is to be confirmed. */
static bool ask(uint32_t first, uint32_t count, int from, int64_t now_ns) {
    helio_pgm_packet nak = {.type = HELIO_PGM_TYPE_NAK, .sequence = first, .list_count = count - 1};
    for (uint32_t i = 1; i < count; i++) {
        nak.list[i - 1] = first + i;
    }
    const helio_address address = peer(from);
    helio_repair_answer answer;
    helio_repairer_on_nak(&repairer, &nak,
                          helio_receivers_discover(&repairer.receivers, &address, at(now_ns)), 1,
                          at(now_ns), &answer);
    CHECK_EQUAL(answer.naks, count);
    shed = answer.shed_count;
    return answer.confirmed_count > 0;
}

static void what_is_asked_for_is_repaired_once_in_order(void) {
    begin(4);
    CHECK(ask(1010, 3, 1, 0));
    CHECK(ask(1011, 2, 2, 0)); /* waiting already */
    CHECK_EQUAL(helio_cell(&counts.repair_queue), 3);
    uint64_t sequence;
    for (uint64_t expected = 1010; expected < 1013; expected++) {
        CHECK(helio_repairer_next(&repairer, at(1), &sequence));
        CHECK_EQUAL(sequence, expected);
    }
    CHECK(!helio_repairer_next(&repairer, at(1), &sequence));
    CHECK_EQUAL(helio_cell(&counts.naks_received), 5);
    CHECK_EQUAL(helio_cell(&counts.naks_answered_repaired), 3);
    CHECK_EQUAL(helio_cell(&counts.naks_answered_queued_already), 2);
    CHECK_EQUAL(helio_cell(&counts.repair_bytes), 150);
    end();
}

static void a_request_that_crossed_its_repair_is_ignored(void) {
    begin(4);
    uint64_t sequence;
    ask(1010, 1, 1, 0);
    CHECK(helio_repairer_next(&repairer, at(0), &sequence));
    ask(1010, 1, 2, 100 * US - 1);
    CHECK(!helio_repairer_has_work(&repairer));
    CHECK_EQUAL(helio_cell(&counts.naks_answered_ignored_recent), 1);
    ask(1010, 1, 2, 100 * US);
    CHECK(helio_repairer_has_work(&repairer));
    end();
}

static void what_is_gone_or_not_sent_yet_is_confirmed_and_not_repaired(void) {
    begin(4);
    CHECK(ask(1003, 1, 1, 0));
    CHECK(ask(1020, 1, 1, 0));
    CHECK(!helio_repairer_has_work(&repairer));
    CHECK_EQUAL(helio_cell(&counts.naks_answered_too_late), 1);
    CHECK_EQUAL(helio_cell(&counts.naks_answered_not_sent_yet), 1);
    CHECK_EQUAL(helio_cell(&helio_receivers_stats(&repairer.receivers, 0)->naks_too_late), 1);
    end();
}

static void a_packet_trimmed_while_it_waits_is_too_late(void) {
    begin(4);
    ask(1004, 2, 1, 0);
    helio_txw_open(&txw); /* 1004 leaves */
    helio_txw_commit(&txw, 50, 0, 0);
    uint64_t sequence;
    CHECK(helio_repairer_next(&repairer, at(0), &sequence));
    CHECK_EQUAL(sequence, 1005);
    CHECK_EQUAL(helio_cell(&counts.naks_answered_too_late), 1);
    CHECK_EQUAL(helio_cell(&counts.naks_answered_repaired), 1);
    end();
}

static void a_storm_of_one_request_is_confirmed_once_a_while(void) {
    begin(4);
    int confirmed = 0;
    for (int i = 0; i < 1000; i++) {
        confirmed += ask(1010, 1, i % 3, i * US);
    }
    CHECK_EQUAL(confirmed, 10);
    CHECK_EQUAL(helio_cell(&counts.nak_packets_received), 1000);
    end();
}

static void each_receiver_has_its_own_counts(void) {
    begin(4);
    uint64_t sequence;
    ask(1010, 3, 1, 5);
    ask(1010, 1, 2, 6);
    while (helio_repairer_next(&repairer, at(7), &sequence)) {
    }
    const helio_tx_receiver_stats *first = helio_receivers_stats(&repairer.receivers, 0);
    const helio_tx_receiver_stats *second = helio_receivers_stats(&repairer.receivers, 1);
    CHECK_EQUAL(helio_cell(&first->naks_received), 3);
    CHECK_EQUAL(helio_cell(&first->repairs_caused), 3);
    CHECK_EQUAL(helio_cell(&first->repair_bytes_caused), 150);
    CHECK_EQUAL(helio_cell(&second->naks_received), 1);
    CHECK_EQUAL(helio_cell(&second->repairs_caused), 0);
    CHECK_EQUAL(helio_cell(&second->last_feedback), 1000006);
    ask(1010, 1, 1, 8);
    CHECK_EQUAL(helio_cell(&first->naks_repeated), 1);
    CHECK_EQUAL(helio_cell(&second->naks_repeated), 0);
    CHECK_EQUAL(helio_cell(&counts.receivers), 2);
    end();
}

/* What the live peers asked for, and those who are none. */
static uint64_t attributed(void) {
    uint64_t sum = helio_cell(&counts.naks_untracked);
    for (uint32_t place = 0; place < repairer.receivers.count; place++) {
        const helio_tx_receiver_stats *peer = helio_receivers_stats(&repairer.receivers, place);
        sum += peer ? helio_cell(&peer->naks_received) : 0;
    }
    return sum;
}

static void every_request_is_attributed_also_of_those_without_a_place_or_gone(void) {
    begin(4);
    helio_random random;
    helio_random_init(&random, 7);
    uint64_t asked = 0;
    for (int64_t i = 0; i < 3000; i++) {
        const uint32_t count = 1 + (uint32_t)helio_random_below(&random, 5);
        /* Older, newer and unsent packets; seven receivers for four places, who give way. */
        ask(1000 + (uint32_t)helio_random_below(&random, 22), count,
            (int)helio_random_below(&random, 7), i * HELIO_SECOND / (i < 1500 ? 100 : 1) * 7);
        asked += count;
        CHECK_EQUAL(helio_cell(&counts.naks_received), asked);
        CHECK_EQUAL(attributed(), asked);
        double shares = 0;
        for (uint32_t place = 0; place < repairer.receivers.count; place++) {
            shares += helio_receivers_asked_share(&repairer.receivers, place);
        }
        const double others = (double)repairer.receivers.asked_by_others / (double)asked;
        CHECK(shares + others > 1 - 1e-9 && shares + others < 1 + 1e-9);
    }
    CHECK(helio_cell(&counts.naks_untracked) > 0);
    end();
}

static void forged_addresses_do_not_push_out_receivers_and_the_silent_give_way(void) {
    begin(4);
    for (int i = 0; i < 100; i++) {
        ask(1010, 1, i, 0);
        helio_receivers_prove(&repairer.receivers, (uint32_t)i, at(0)); /* the first four */
    }
    CHECK_EQUAL(helio_cell(&counts.receivers), 4);
    CHECK_EQUAL(helio_cell(&helio_receivers_stats(&repairer.receivers, 0)->naks_received), 1);
    ask(1010, 1, 0, 30 * HELIO_SECOND);
    ask(1010, 1, 50, 61 * HELIO_SECOND); /* the second has been silent for a minute */
    CHECK_EQUAL(helio_cell(&counts.receivers), 4);
    const helio_address address = peer(50);
    CHECK_EQUAL(helio_receivers_discover(&repairer.receivers, &address, at(61 * HELIO_SECOND)), 1);
    end();
}

int main(void) {
    RUN(what_is_asked_for_is_repaired_once_in_order);
    RUN(a_request_that_crossed_its_repair_is_ignored);
    RUN(what_is_gone_or_not_sent_yet_is_confirmed_and_not_repaired);
    RUN(a_packet_trimmed_while_it_waits_is_too_late);
    RUN(a_storm_of_one_request_is_confirmed_once_a_while);
    RUN(each_receiver_has_its_own_counts);
    RUN(every_request_is_attributed_also_of_those_without_a_place_or_gone);
    RUN(forged_addresses_do_not_push_out_receivers_and_the_silent_give_way);
    return check_result();
}
