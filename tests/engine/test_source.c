/* What a source does beyond sending and repairing: several hosts, the end before its time,
 * advice. */
#include "pair.h"

/* ---- several hosts, one by one ---- */

enum { HOSTS = 3 };

static helio_address hosts[HOSTS];
static world_receiver receivers[HOSTS];
static inbox boxes[HOSTS];
static uint64_t repairs_seen[HOSTS], confirmations_seen[HOSTS];

static int send_to_all(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable) {
    const helio_outlet *outlet = context;
    for (size_t i = 0; i < HOSTS; i++) {
        if (!to || helio_address_equal(to, &hosts[i])) {
            outlet->send(outlet->context, &hosts[i], packet, length, stable);
        }
    }
    return 0;
}

static double loss;
static int64_t lose_first[HOSTS]; /* data packets to be lost */

static bool count_repairs(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)length, (void)now_ns;
    const size_t host = (size_t)((const world_receiver *)context - receivers);
    const uint8_t type = ((const uint8_t *)packet)[4];
    repairs_seen[host] += type == HELIO_PGM_TYPE_RDATA;
    confirmations_seen[host] += type == HELIO_PGM_TYPE_NCF;
    return type == HELIO_PGM_TYPE_ODATA && lose_first[host]-- > 0;
}

/* A receiver's data and feedback sockets are one node of the network here: so feedback comes from
 * the very host and port that data goes to. */
static void begin_hosts(void) {
    static helio_outlet outlet;
    memset(repairs_seen, 0, sizeof repairs_seen);
    memset(confirmations_seen, 0, sizeof confirmations_seen);
    memset(lose_first, 0, sizeof lose_first);
    world_init(&w, 1, 1);
    for (unsigned i = 0; i < HOSTS; i++) {
        hosts[i] = world_host(100 + i, 7000 + i);
        helio_rx_endpoint_config config = world_receiver_config(100 + i);
        config.group = config.feedback_address = hosts[i];
        config.nak_backoff_ns = -1;
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(
            receivers[i].node,
            &(helio_sim_link){.loss = loss, .drops = count_repairs, .context = &receivers[i]});
        subscribe(&receivers[i], &boxes[i]);
    }
    helio_tx_stream_config config = world_source_config(1);
    config.group = hosts[0];
    config.destination_port = hosts[0].port;
    config.destinations = hosts;
    config.destinations_count = HOSTS;
    helio_address address = config.address;
    address.port = config.tsi.port;
    source = (world_source){.world = &w, .node = helio_sim_add_node(w.sim, &address)};
    world_open_instance(&w, &source.instance);
    outlet = helio_sim_outlet(source.node, &hosts[0]);
    CHECK_EQUAL(helio_tx_stream_create(&config, (helio_outlet){&outlet, send_to_all}, w.stats,
                                       source.instance.record, world_now(&w), &source.stream),
                0);
    helio_sim_attach(source.node, &(helio_sim_handler){&source, world_source_on_packet,
                                                       world_source_poll, world_source_deadline});
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    world_run(&w, MS);
}

static void end_hosts(void) {
    for (unsigned i = 0; i < HOSTS; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
    loss = 0;
}

static void a_repair_and_its_confirmation_go_to_the_host_that_asked(void) {
    begin_hosts();
    CHECK_EQUAL(helio_cell(&source_counts()->destinations), HOSTS);
    send(5);
    lose_first[1] = 2;
    send(5);
    world_run(&w, 5 * MS);
    for (unsigned i = 0; i < HOSTS; i++) {
        CHECK_EQUAL(boxes[i].messages, 10);
        CHECK_EQUAL(repairs_seen[i], i == 1 ? 2 : 0);
        CHECK_EQUAL(confirmations_seen[i] > 0, i == 1);
    }
    end_hosts();
}

static void hosts_that_miss_the_same_packet_are_each_served(void) {
    begin_hosts();
    send(5);
    for (unsigned i = 0; i < HOSTS; i++) {
        lose_first[i] = 1;
    }
    send(5);
    world_run(&w, 400 * US); /* before any of them would ask again */
    for (unsigned i = 0; i < HOSTS; i++) {
        CHECK_EQUAL(boxes[i].messages, 10);
        CHECK_EQUAL(repairs_seen[i], 1);
    }
    CHECK_EQUAL(helio_cell(&source_counts()->receivers), HOSTS);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_backoff_advised), HELIO_STATS_ABSENT);
    end_hosts();
}

static void every_host_gets_everything_through_loss(void) {
    loss = 0.1;
    begin_hosts();
    send(2000);
    world_run(&w, 200 * MS);
    for (unsigned i = 0; i < HOSTS; i++) {
        CHECK_EQUAL(boxes[i].messages, 2000);
        CHECK_EQUAL(boxes[i].lost, 0);
    }
    end_hosts();
}

static void alone_with_the_source_a_receiver_asks_at_once(void) {
    begin_hosts();
    send(5);
    lose_first[0] = 1;
    send(2);
    const int64_t start_ns = world_now(&w).now_ns;
    send(1); /* the second newer one ends the wait for a packet only late */
    while (boxes[0].messages < 8) {
        world_run(&w, US);
    }
    CHECK(world_now(&w).now_ns - start_ns <= 15 * US); /* the network takes no time here */
    end_hosts();
}

/* ---- before its time ---- */

static void an_aborted_stream_ends_at_once_and_its_losses_are_told(void) {
    begin();
    send(5);
    drop(receiver.node, ODATA | RDATA, 1000);
    send(3);
    world_run(&w, 2 * MS); /* a heartbeat tells that they are missing */
    helio_tx_stream_abort(source.stream);
    CHECK(helio_tx_stream_is_finished(source.stream, world_now(&w)));
    CHECK_EQUAL(helio_tx_stream_next_deadline_ns(source.stream), HELIO_NEVER);
    world_run(&w, MS);
    CHECK_EQUAL(in.ended, 1);
    CHECK_EQUAL(helio_cell(&counts()->rx_streams), 0);
    CHECK_EQUAL(in.messages, 5);
    const uint64_t sent = helio_sim_counts_of(w.sim)->sent;
    helio_tx_stream_abort(source.stream); /* said already */
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(helio_sim_counts_of(w.sim)->sent, sent);
    end();
}

/* ---- what receivers and repairers say ---- */

static void a_null_nak_is_counted_and_answered_by_nothing(void) {
    begin();
    send(5);
    world_run(&w, 10 * MS);
    const uint64_t sent = helio_sim_counts_of(w.sim)->sent;
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const helio_address address = world_host(1, 0), group = world_address(WORLD_GROUP);
    const helio_address elsewhere = world_host(9, 0);
    const uint32_t sequence = 2;
    size_t length =
        helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NNAK, &sequence, 1, &address, &group);
    helio_tx_stream_on_packet(source.stream, packet, length, &elsewhere, world_now(&w));
    CHECK_EQUAL(helio_cell(&source_counts()->nnaks_received), 1);
    CHECK_EQUAL(helio_cell(&source_counts()->naks_received), 0);
    CHECK_EQUAL(helio_sim_counts_of(w.sim)->sent, sent);
    length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NNAK, &sequence, 1, &elsewhere,
                                  &group);
    helio_tx_stream_on_packet(source.stream, packet, length, &elsewhere, world_now(&w));
    CHECK_EQUAL(helio_cell(&world_counts(&source.instance)->invalid_packets_address), 1);
    end();
}

static helio_pgm_packet last_ncf, last_spm;

static bool keep(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)now_ns;
    helio_pgm_packet read;
    if (helio_pgm_decode(packet, length, &read) == HELIO_PGM_ACCEPTED) {
        if (read.type == HELIO_PGM_TYPE_NCF) {
            last_ncf = read;
        }
        if (read.type == HELIO_PGM_TYPE_SPM) {
            last_spm = read;
        }
    }
    return false;
}

static void ask_as(unsigned number, const uint32_t *sequences, size_t count) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const helio_address address = world_host(1, 0), group = world_address(WORLD_GROUP);
    const helio_address from = world_host(number, 50000);
    const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NAK, sequences,
                                               count, &address, &group);
    helio_tx_stream_on_packet(source.stream, packet, length, &from, world_now(&w));
    helio_sim_wake(source.node);
}

static void a_confirmation_repeats_the_list_of_the_request(void) {
    begin();
    send(20);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.drops = keep});
    const uint32_t sequences[] = {3, 5, 6, 500}; /* the last is not there: confirmed all the same */
    ask_as(7, sequences, 4);
    world_run(&w, MS);
    CHECK_EQUAL(last_ncf.sequence, 3);
    CHECK_EQUAL(last_ncf.list_count, 3);
    CHECK_BYTES(last_ncf.list, sequences + 1, 3 * sizeof sequences[0]);
    CHECK_EQUAL(helio_cell(&source_counts()->repair_packets), 3);
    end();
}

static void a_packet_asked_for_by_many_makes_the_source_advise_to_wait(void) {
    begin();
    send(20);
    helio_sim_set_link(receiver.node, &(helio_sim_link){.drops = keep});
    last_spm.options = last_ncf.options = 0;
    for (unsigned i = 0; i < 50; i++) {
        ask_as(200 + i, (uint32_t[]){4}, 1);
    }
    world_run(&w, 600 * MS); /* an ambient SPM */
    CHECK(last_spm.options & HELIO_PGM_HAS_NAK_BO_IVL);
    CHECK_EQUAL(last_spm.backoff.interval_us, 200);
    CHECK_EQUAL(last_spm.backoff.poll_sequence, 0);
    CHECK_EQUAL(helio_cell(&source_counts()->nak_backoff_advised), 200 * US);
    ask_as(7, (uint32_t[]){9}, 1);
    world_run(&w, MS);
    CHECK_EQUAL(last_ncf.backoff.interval_us, 200);
    end();
}

static void numbers_of_spms_wrap(void) {
    static const uint32_t starts[] = {0xFFFFFFF8, 0x7FFFFFF8};
    for (size_t i = 0; i < 2; i++) {
        begin_receiver(world_receiver_config(100));
        helio_tx_stream_config config = world_source_config(1);
        config.first_sequence = config.first_spm_sequence = starts[i];
        begin_source(config);
        for (int k = 0; k < 40; k++) { /* each lost last packet is found by an SPM that is newer */
            drop(receiver.node, ODATA, 1);
            send(1);
            world_run(&w, 3 * MS);
            CHECK_EQUAL(in.messages, (uint64_t)k + 1);
        }
        CHECK(helio_cell(&source_counts()->heartbeats_sent) > 40);
        CHECK_EQUAL(in.lost, 0);
        end();
    }
}

int main(void) {
    RUN(a_repair_and_its_confirmation_go_to_the_host_that_asked);
    RUN(hosts_that_miss_the_same_packet_are_each_served);
    RUN(every_host_gets_everything_through_loss);
    RUN(alone_with_the_source_a_receiver_asks_at_once);
    RUN(an_aborted_stream_ends_at_once_and_its_losses_are_told);
    RUN(a_null_nak_is_counted_and_answered_by_nothing);
    RUN(a_confirmation_repeats_the_list_of_the_request);
    RUN(a_packet_asked_for_by_many_makes_the_source_advise_to_wait);
    RUN(numbers_of_spms_wrap);
    return check_result();
}
