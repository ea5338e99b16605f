/* What each receiver may cause at its source, and that one that asks for everything does not slow
 * the others' repairs. */
#include "fleet.h"
#include "receivers/allowance.h"
#include "receivers/hosts.h"
#include "repair/queue.h"

/* ---- the queue ---- */

static void lines_are_served_in_turn_and_each_in_order(void) {
    helio_queue queue;
    CHECK_EQUAL(helio_queue_init(&queue, 16, 3), 0);
    for (uint64_t i = 0; i < 5; i++) {
        helio_queue_push(&queue, 0, 100 + i);
    }
    helio_queue_push(&queue, 1, 200);
    helio_queue_push(&queue, 2, 300);
    helio_queue_push(&queue, 2, 301);
    static const uint64_t expected[] = {100, 200, 300, 101, 301, 102, 103, 104};
    uint64_t value;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CHECK(helio_queue_pop(&queue, &value));
        CHECK_EQUAL(value, expected[i]);
    }
    CHECK(!helio_queue_pop(&queue, &value));
    helio_queue_fini(&queue);
}

static void a_full_queue_takes_nothing_and_places_are_used_again(void) {
    helio_queue queue;
    CHECK_EQUAL(helio_queue_init(&queue, 4, 2), 0);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 4; i++) {
            CHECK(helio_queue_push(&queue, (uint32_t)(i & 1), i) != HELIO_QUEUE_NONE);
        }
        CHECK_EQUAL(helio_queue_push(&queue, 0, 9), HELIO_QUEUE_NONE);
        uint64_t value, sum = 0;
        while (helio_queue_pop(&queue, &value)) {
            sum += value;
        }
        CHECK_EQUAL(sum, 6);
        CHECK_EQUAL(queue.count, 0);
    }
    helio_queue_fini(&queue);
}

static void what_moves_waits_in_the_other_line(void) {
    helio_queue queue;
    CHECK_EQUAL(helio_queue_init(&queue, 16, 3), 0);
    const uint32_t alone = helio_queue_push(&queue, 2, 300);
    helio_queue_push(&queue, 0, 100);
    const uint32_t middle = helio_queue_push(&queue, 0, 101);
    helio_queue_push(&queue, 0, 102);
    helio_queue_move(&queue, middle, 0, 1);
    helio_queue_move(&queue, alone, 2, 1); /* its line is empty then */
    CHECK_EQUAL(helio_queue_waiting(&queue, 0), 2);
    CHECK_EQUAL(helio_queue_waiting(&queue, 1), 2);
    CHECK_EQUAL(helio_queue_waiting(&queue, 2), 0);
    static const uint64_t expected[] = {100, 101, 102, 300};
    uint64_t value;
    for (size_t i = 0; i < 4; i++) {
        CHECK(helio_queue_pop(&queue, &value));
        CHECK_EQUAL(value, expected[i]);
    }
    CHECK(!helio_queue_pop(&queue, &value));
    helio_queue_fini(&queue);
}

/* ---- allowances ---- */

static uint64_t granted(helio_allowances *all, helio_allowance *one, int asked, int64_t now_ns) {
    uint64_t count = 0;
    for (int i = 0; i < asked; i++) {
        count += helio_allowance_grants_nak(all, one, now_ns);
    }
    return count;
}

static void a_limit_grants_a_seconds_worth_at_once_and_the_rate_from_then_on(void) {
    helio_allowances all;
    helio_allowances_init(&all, &(helio_limits){.naks = 100});
    helio_allowance one, other;
    helio_allowance_begin(&all, &one, HELIO_SECOND);
    CHECK_EQUAL(granted(&all, &one, 500, HELIO_SECOND), 100);
    CHECK_EQUAL(granted(&all, &one, 500, HELIO_SECOND), 0);
    uint64_t within = 0;
    for (int64_t now_ns = HELIO_SECOND; now_ns < 11 * HELIO_SECOND; now_ns += 10 * MS) {
        within += granted(&all, &one, 5, now_ns + 10 * MS);
    }
    CHECK_EQUAL(within, 1000);
    CHECK_EQUAL(granted(&all, &one, 500, 100 * HELIO_SECOND), 100); /* no more is saved */
    helio_allowance_begin(&all, &other, 100 * HELIO_SECOND);
    CHECK_EQUAL(granted(&all, &other, 500, 100 * HELIO_SECOND), 100);
}

static void shedding_lessens_the_bytes_of_repairs_and_its_end_restores_them(void) {
    helio_allowances all;
    helio_allowances_init(&all, &(helio_limits){.repair_bytes = 100000, .shed_bytes = 10000});
    helio_allowance one;
    helio_allowance_begin(&all, &one, 0);
    static const struct {
        helio_action action;
        int repairs; /* of 1000 bytes, at once */
    } steps[] = {{HELIO_ACTION_NONE, 100},
                 {HELIO_ACTION_SHED, 10},
                 {HELIO_ACTION_NONE, 100},
                 {HELIO_ACTION_SUSPEND_NAKS, 0}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const int64_t now_ns = (int64_t)(i + 1) * 100 * HELIO_SECOND;
        helio_allowance_set(&all, &one, steps[i].action, HELIO_NEVER, now_ns);
        int repairs = 0;
        for (int k = 0; k < 1000 && helio_allowance_grants_nak(&all, &one, now_ns);
             k++, repairs++) {
            helio_allowance_charge(&one, 1000);
        }
        CHECK_EQUAL(repairs, steps[i].repairs);
    }
}

/* ---- budgets of hosts ---- */

enum { MEGABYTE = 1 << 20, PACKET = 1472 };

/* Repairs of a packet granted at once. */
static uint64_t repaired(helio_hosts *hosts, uint32_t host, bool is_proven,
                         const helio_budget_terms *terms) {
    helio_budget *budget = helio_hosts_budget(hosts, host, is_proven, terms);
    uint64_t bytes = 0;
    for (; helio_budget_grants(budget) && bytes < 1 << 30; bytes += PACKET) {
        helio_budget_charge(budget, PACKET);
    }
    return bytes;
}

static bool is_about(uint64_t bytes, uint64_t expected) {
    return bytes >= expected && bytes <= expected + 2 * PACKET;
}

static void a_host_gets_the_history_once_and_then_a_share_of_the_data(void) {
    helio_hosts hosts;
    helio_budget_terms terms = {
        .share = 2, .sent = 50 * MEGABYTE, .history = 16 * MEGABYTE, .now_ns = HELIO_SECOND};
    CHECK_EQUAL(helio_hosts_init(&hosts, 64), 0);
    const helio_address address = world_host(1, 5000);
    const uint32_t host = helio_hosts_enter(&hosts, &address, true);
    helio_hosts_bring(&hosts, host, &terms);
    CHECK(is_about(repaired(&hosts, host, true, &terms), 32 * MEGABYTE + HELIO_HOST_FIRST));
    CHECK(repaired(&hosts, host, true, &terms) <= PACKET);
    terms.now_ns += HELIO_SECOND; /* nothing is sent */
    CHECK(is_about(repaired(&hosts, host, true, &terms) + PACKET, HELIO_HOST_REPAIR_FLOOR));
    terms.now_ns += HELIO_SECOND;
    terms.sent += 10 * MEGABYTE;
    CHECK(is_about(repaired(&hosts, host, true, &terms) + PACKET, 21 * MEGABYTE));
    terms.now_ns += 1000 * HELIO_SECOND; /* no more is saved than the history twice */
    CHECK(is_about(repaired(&hosts, host, true, &terms), 32 * MEGABYTE));
    helio_hosts_fini(&hosts);
}

static void those_that_proved_nothing_share_one_budget(void) {
    helio_hosts hosts;
    helio_budget_terms terms = {
        .share = 2, .sent = 50 * MEGABYTE, .history = 16 * MEGABYTE, .now_ns = HELIO_SECOND};
    CHECK_EQUAL(helio_hosts_init(&hosts, 64), 0);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < 200; i++) { /* more than there is room for */
        const helio_address address = world_host(i, 5000);
        bytes +=
            repaired(&hosts, helio_hosts_enter(&hosts, &address, false), false, &terms) - PACKET;
    }
    CHECK(bytes <= 16 * MEGABYTE + PACKET);
    helio_hosts_fini(&hosts);
}

static void ports_and_names_bring_no_more_than_so_many_histories(void) {
    helio_hosts hosts;
    helio_budget_terms terms = {.share = 2, .history = 16 * MEGABYTE, .now_ns = HELIO_SECOND};
    CHECK_EQUAL(helio_hosts_init(&hosts, 1024), 0);
    uint64_t bytes = 0;
    const helio_address address = world_host(1, 5000);
    for (int i = 0; i < 512; i++) {
        const uint32_t host = helio_hosts_enter(&hosts, &address, true);
        helio_hosts_bring(&hosts, host, &terms);
        bytes += repaired(&hosts, host, true, &terms);
    }
    CHECK(bytes <= (uint64_t)HELIO_HOST_COMINGS * 33 * MEGABYTE);
    bytes = 0;
    for (int second = 0; second < 60; second++) { /* and goes on inventing lives */
        terms.now_ns += HELIO_SECOND;
        for (int i = 0; i < 10; i++) {
            helio_hosts_bring(&hosts, 0, &terms);
            bytes += repaired(&hosts, 0, true, &terms);
        }
    }
    CHECK(bytes <= (60 + 2 * 32 + 3) * (uint64_t)MEGABYTE);
    helio_hosts_fini(&hosts);
}

static void a_host_that_is_gone_leaves_nothing_behind(void) {
    helio_hosts hosts;
    CHECK_EQUAL(helio_hosts_init(&hosts, 2), 0);
    for (unsigned i = 0; i < 100; i++) {
        const helio_address one = world_host(i, 1), two = world_host(i, 2);
        const uint32_t host = helio_hosts_enter(&hosts, &one, false);
        CHECK(host != HELIO_HOST_NONE);
        CHECK_EQUAL(helio_hosts_enter(&hosts, &two, true), host);
        helio_hosts_prove(&hosts, host);
        helio_hosts_leave(&hosts, host, true);
        CHECK_EQUAL(helio_hosts_find(&hosts, &one), host);
        helio_hosts_leave(&hosts, host, true);
        CHECK_EQUAL(helio_hosts_find(&hosts, &one), HELIO_HOST_NONE);
    }
    helio_hosts_fini(&hosts);
}

/* ---- at a source ---- */

static void requests_over_the_limit_are_confirmed_to_the_asker_alone_and_told(void) {
    helio_tx_stream_config config = fleet_source_config();
    config.limits.naks = 4;
    fleet_begin_with(2, &config);
    fleet[0].lose_every = 2;
    fleet[1].lose_every = 40; /* within the limit */
    fleet_send(80, 200 * US);
    fleet_run(300 * MS);
    CHECK_EQUAL(fleet[1].messages, 84);
    CHECK(fleet[0].messages < 30);
    CHECK(helio_cell(&source_counts()->naks_answered_shed) > 30);
    const uint32_t place = place_of(0);
    const helio_tx_receiver_stats *peer =
        helio_receivers_stats(&source.stream->repairer.receivers, place);
    CHECK_EQUAL(helio_cell(&peer->naks_shed), helio_cell(&source_counts()->naks_answered_shed));
    CHECK_EQUAL(source.stream->repairer.receivers.views[place].naks_shed,
                helio_cell(&peer->naks_shed));
    CHECK_EQUAL(events_of(HELIO_EVENT_NAK_LIMIT), 0);
    fleet_run(HELIO_SECOND);
    CHECK_EQUAL(events_of(HELIO_EVENT_NAK_LIMIT), 1);
    CHECK_EQUAL(event_told->arguments[0], id_of(0));
    CHECK(event_told->arguments[1] >= (uint64_t)HELIO_SECOND);
    CHECK(event_told->arguments[2] > 30);
    fleet_run(10 * HELIO_SECOND);
    CHECK(events_of(HELIO_EVENT_NAK_LIMIT) <= 12);
    CHECK_EQUAL(fleet[0].lost, 0);
    fleet_run(20 * HELIO_SECOND);
    CHECK_EQUAL(fleet[0].messages, 84); /* asked for again, and granted by and by */
    fleet_end();
}

static void acknowledgements_over_the_limit_are_not_heeded(void) {
    helio_tx_stream_config config = fleet_source_config();
    config.limits.acks = 5;
    fleet_begin_with(1, &config);
    fleet_send(400, 200 * US); /* it acknowledges every 64, and within 100 us */
    CHECK(helio_cell(&source_counts()->acks_received) < 10);
    CHECK(helio_cell(&source_counts()->acks_shed) > 50);
    fleet_run(3 * HELIO_SECOND);
    CHECK_EQUAL(helio_tx_stream_acked_by(source.stream, source.stream->txw.lead), 1);
    CHECK(events_of(HELIO_EVENT_NAK_LIMIT) >= 1);
    CHECK(event_told->arguments[3] > 0);
    fleet_end();
}

/* ---- one that asks for everything ---- */

enum { CRY_PACKETS = 2 }; /* NAKs of 63 sequences each, every time it cries */

typedef struct crybaby {
    helio_sim_node *node;
    helio_outlet outlet;
    int64_t due_ns;
    uint64_t next;
} crybaby;

static void cry(void *context, helio_moment moment) {
    crybaby *baby = context;
    if (moment.now_ns < baby->due_ns) {
        return;
    }
    baby->due_ns = moment.now_ns + 500 * US;
    const helio_txw *txw = &source.stream->txw;
    const helio_pgm_session session = {source.stream->config.tsi, 7500};
    for (int k = 0; k < CRY_PACKETS; k++) {
        uint32_t sequences[1 + HELIO_PGM_NAK_LIST_MAX];
        for (size_t i = 0; i < 1 + HELIO_PGM_NAK_LIST_MAX; i++) {
            if (baby->next < txw->trail || baby->next > txw->lead) {
                baby->next = txw->trail;
            }
            sequences[i] = (uint32_t)baby->next++;
        }
        uint8_t packet[HELIO_PGM_CONTROL_MAX];
        const size_t length = helio_pgm_encode_nak(
            packet, &session, HELIO_PGM_TYPE_NAK, sequences, 1 + HELIO_PGM_NAK_LIST_MAX,
            &source.stream->config.address, &source.stream->config.group);
        baby->outlet.send(baby->outlet.context, NULL, packet, length, false);
    }
}

static void hear_nothing(void *context, const void *packet, size_t length,
                         const helio_address *from, helio_moment moment) {
    (void)context, (void)packet, (void)length, (void)from, (void)moment;
}

static int64_t next_cry(void *context) {
    return ((const crybaby *)context)->due_ns;
}

/* A source that sends no more than 32 repairs a millisecond. */
static int64_t polled_ns;

static void poll_slowly(void *context, helio_moment moment) {
    (void)context;
    if (moment.now_ns < polled_ns + MS) {
        return;
    }
    polled_ns = moment.now_ns;
    helio_tx_stream_poll(source.stream, moment);
}

static int64_t slow_deadline(void *context) {
    (void)context;
    const int64_t deadline_ns = helio_tx_stream_next_deadline_ns(source.stream);
    return deadline_ns < polled_ns + MS ? polled_ns + MS : deadline_ns;
}

/* Mean time from sending to having it, of what had to be repaired, ns. */
static double recovery_ns(bool with_crybaby, const helio_limits *limits) {
    helio_tx_stream_config config = fleet_source_config();
    config.limits = *limits;
    config.window_packets = 2048;
    fleet_begin_with(8, &config);
    polled_ns = 0;
    helio_sim_attach(source.node, &(helio_sim_handler){&source, world_source_on_packet, poll_slowly,
                                                       slow_deadline});
    crybaby baby = {.due_ns = with_crybaby ? 0 : HELIO_NEVER};
    const helio_address address = world_host(900, 4000);
    helio_address to = source.stream->config.address;
    to.port = source.stream->config.tsi.port;
    baby.node = helio_sim_add_node(w.sim, &address);
    baby.outlet = helio_sim_outlet(baby.node, &to);
    helio_sim_attach(baby.node, &(helio_sim_handler){&baby, hear_nothing, cry, next_cry});
    for (unsigned i = 0; i < 8; i++) {
        fleet[i].lose_every = 150 + 7 * i;
    }
    fleet_send(10000, 100 * US);
    fleet_run(500 * MS);
    double sum_ns = 0, count = 0;
    for (unsigned i = 0; i < 8; i++) {
        CHECK_EQUAL(fleet[i].messages, 10004);
        CHECK_EQUAL(fleet[i].lost, 0);
        sum_ns += fleet[i].recovery_ns;
        count += (double)fleet[i].recovered;
    }
    CHECK(count > 300);
    if (with_crybaby) {
        CHECK(helio_cell(&source_counts()->naks_received) > 50000);
    }
    fleet_end();
    return sum_ns / count;
}

static void a_crying_receiver_does_not_slow_the_others_repairs(void) {
    const helio_limits limits = {.naks = 500, .repair_bytes = 1 << 20};
    const double without_ns = recovery_ns(false, &limits);
    const double with_ns = recovery_ns(true, &limits);
    printf("      mean recovery: %.3f ms alone, %.3f ms beside one that asks for everything\n",
           without_ns / 1e6, with_ns / 1e6);
    CHECK(with_ns < 1.1 * without_ns);
}

int main(void) {
    RUN(lines_are_served_in_turn_and_each_in_order);
    RUN(a_full_queue_takes_nothing_and_places_are_used_again);
    RUN(what_moves_waits_in_the_other_line);
    RUN(a_limit_grants_a_seconds_worth_at_once_and_the_rate_from_then_on);
    RUN(shedding_lessens_the_bytes_of_repairs_and_its_end_restores_them);
    RUN(a_host_gets_the_history_once_and_then_a_share_of_the_data);
    RUN(those_that_proved_nothing_share_one_budget);
    RUN(ports_and_names_bring_no_more_than_so_many_histories);
    RUN(a_host_that_is_gone_leaves_nothing_behind);
    RUN(requests_over_the_limit_are_confirmed_to_the_asker_alone_and_told);
    RUN(acknowledgements_over_the_limit_are_not_heeded);
    RUN(a_crying_receiver_does_not_slow_the_others_repairs);
    return check_result();
}
