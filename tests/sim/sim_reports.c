/* Receivers as their source sees them, on a simulated network: fifty of whom one is bad, ten
 * thousand that must not flood the source, and reports that are forged. */
#include "check.h"
#include "receivers/asked.h"
#include "wire/pgm.h"
#include "world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MANY = 1000, RATE = 100 };
#else
enum { MANY = 10000, RATE = 1000 };
#endif
enum { FEW = 50, BAD = 17, WINDOW = 16, PACKET_BYTES = 548, SLICES = 1000, ID = 0x1000 };

#define US HELIO_MICROSECOND
#define MS HELIO_MILLISECOND
#define DELAY_NS (25 * US)
#define INTERVAL_NS (100 * MS)
#define SLICE_NS (10 * MS)

static world w;
static world_source source;
static world_receiver receivers[MANY];
static helio_tx_topic *topic;
static uint64_t delivered;

/* What came to the source, in its own numbers. */
static uint32_t reports_in[SLICES]; /* alone, by slice of time */
static uint64_t reports_of[MANY];   /* with whatever they came, by receiver */
static uint64_t naks_of[MANY], naks_again_of[MANY];
static uint8_t *asked_of; /* by receiver and sequence, of `asked_span` each */
static uint32_t asked_span;

static void watch(void *context, const void *packet, size_t length, const helio_address *from,
                  helio_moment moment) {
    helio_pgm_packet read;
    CHECK_EQUAL(helio_pgm_decode(packet, length, &read), HELIO_PGM_ACCEPTED);
    const bool has_report = read.options & HELIO_PGM_HAS_REPORT;
    const uint64_t who = has_report ? read.receiver_report.receiver - ID : MANY;
    if (who < MANY) {
        reports_of[who]++;
        if (read.type == HELIO_PGM_TYPE_ACK && moment.now_ns / SLICE_NS < SLICES) {
            reports_in[moment.now_ns / SLICE_NS]++;
        }
    }
    for (uint32_t i = 0; read.type == HELIO_PGM_TYPE_NAK && asked_span && i <= read.list_count;
         i++) {
        const uint32_t sequence = i ? read.list[i - 1] : read.sequence;
        uint8_t *asked = &asked_of[who * asked_span + sequence];
        *(*asked ? &naks_again_of[who] : &naks_of[who]) += 1;
        *asked = 1;
    }
    world_source_on_packet(context, packet, length, from, moment);
}

static size_t take_all(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    delivered += count;
    return count;
}

static void begin_receivers(uint32_t count, const helio_rx_endpoint_config *like,
                            const helio_sim_link *link) {
    for (uint32_t i = 0; i < count; i++) {
        helio_rx_endpoint_config config = *like;
        config.feedback_address = world_host(1000 + i, 50000);
        config.seed = 1000 + i;
        config.receiver = ID + i;
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(receivers[i].node, link);
        helio_subscription *subscription;
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t",
                                                &(helio_sink){.on_messages = take_all},
                                                world_now(&w), &subscription),
                    0);
    }
}

static void begin(uint32_t count, uint32_t rate, const helio_sim_link *link) {
    delivered = 0;
    asked_span = 0;
    memset(reports_in, 0, sizeof reports_in);
    memset(reports_of, 0, sizeof reports_of);
    memset(naks_of, 0, sizeof naks_of);
    memset(naks_again_of, 0, sizeof naks_again_of);
    world_init(&w, 11, 0);
    helio_rx_endpoint_config rx = world_receiver_config(1000);
    if (count == MANY) {
        rx.window_packets = WINDOW;
        rx.max_packet_bytes = PACKET_BYTES;
    }
    begin_receivers(count, &rx, link);
    helio_tx_stream_config config = world_source_config(1);
    config.max_packet_bytes = rx.max_packet_bytes;
    config.report_interval_ns = INTERVAL_NS;
    config.report_rate = rate;
    if (count == MANY) { /* ambient SPMs are enough */
        config.heartbeat_min_ns = config.heartbeat_max_ns = HELIO_SECOND;
    }
    world_add_source(&w, &source, &config);
    helio_sim_attach(source.node, &(helio_sim_handler){&source, watch, world_source_poll,
                                                       world_source_deadline});
    helio_sim_set_link(source.node, &(helio_sim_link){.delay_ns = link->delay_ns});
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
}

static void end(uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

/* Sends a packet every `every_ns` until so much time has passed. */
static void send_for(int64_t ns, int64_t every_ns) {
    const int64_t end_ns = world_now(&w).now_ns + ns;
    while (world_now(&w).now_ns < end_ns) {
        const helio_moment moment = world_now(&w);
        helio_tx_stream_append(source.stream, topic, "x", 1, moment.wall_ns, moment);
        helio_tx_stream_flush(source.stream, moment);
        helio_sim_wake(source.node);
        world_run(&w, every_ns);
    }
}

static const helio_tx_stream_stats *counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

static const helio_receiver_view *view_of(uint32_t number) {
    uint32_t places;
    const helio_receiver_view *views = helio_tx_stream_views(source.stream, &places);
    for (uint32_t i = 0; i < places; i++) {
        if ((views[i].flags & HELIO_VIEW_PRESENT) && views[i].receiver == ID + number) {
            return &views[i];
        }
    }
    return NULL;
}

static double loss_of(uint32_t number) {
    const char *name;
    double loss = -1;
    const helio_receiver_view *view = view_of(number);
    if (view) {
        helio_tx_stream_receiver(source.stream, view->index, &name, &loss);
    }
    return loss;
}

/* ---- one bad receiver among fifty ---- */

static void one_bad_receiver_among_fifty_is_first_within_an_interval(void) {
    const helio_sim_link good = {.delay_ns = DELAY_NS, .loss = 0.001};
    const helio_sim_link bad = {.delay_ns = DELAY_NS, .loss = 0.05};
    begin(FEW, 1000, &good);
    send_for(300 * MS, 100 * US);
    helio_sim_set_link(receivers[BAD].node, &bad);
    uint64_t naks_before[FEW], lost_before[FEW], received_before[FEW];
    for (uint32_t i = 0; i < FEW; i++) {
        naks_before[i] = view_of(i)->naks;
        lost_before[i] = view_of(i)->lost;
        received_before[i] = view_of(i)->received;
    }
    send_for(INTERVAL_NS, 100 * US);
    double worst_loss = 0;
    uint64_t worst_naks = 0;
    uint32_t by_loss = 0, by_naks = 0, by_smoothed = 0;
    for (uint32_t i = 0; i < FEW; i++) {
        const helio_receiver_view *view = view_of(i);
        const uint64_t lost = view->lost - lost_before[i], naks = view->naks - naks_before[i];
        const double loss = (double)lost / (double)(view->received - received_before[i] + 1);
        by_loss = loss > worst_loss ? i : by_loss;
        worst_loss = loss > worst_loss ? loss : worst_loss;
        by_naks = naks > worst_naks ? i : by_naks;
        worst_naks = naks > worst_naks ? naks : worst_naks;
        by_smoothed = loss_of(i) > loss_of(by_smoothed) ? i : by_smoothed;
    }
    CHECK_EQUAL(by_loss, BAD);
    CHECK_EQUAL(by_naks, BAD);
    CHECK_EQUAL(by_smoothed, BAD);
    end(FEW);
}

static void requests_are_attributed_without_an_error(void) {
    const helio_sim_link link = {.delay_ns = DELAY_NS, .loss = 0.01, .jitter_ns = 10 * US};
    begin(FEW, 1000, &link);
    asked_span = 20000;
    asked_of = calloc((size_t)FEW * asked_span, 1);
    helio_sim_set_link(receivers[BAD].node,
                       &(helio_sim_link){.delay_ns = DELAY_NS, .loss = 0.2, .jitter_ns = 10 * US});
    send_for(HELIO_SECOND, 100 * US);
    world_run(&w, HELIO_SECOND);
    const uint64_t sent = helio_tx_stream_lead(source.stream) + 1 - (UINT64_C(1) << 32);
    uint64_t naks = 0, again = 0;
    for (uint32_t i = 0; i < FEW; i++) {
        const helio_receiver_view *view = view_of(i);
        CHECK_EQUAL(view->naks, naks_of[i]);
        CHECK_EQUAL(view->naks_again, naks_again_of[i]);
#ifndef HELIO_NO_STATS
        CHECK_EQUAL(view->naks + view->naks_again,
                    helio_cell(&world_counts(&receivers[i].instance)->naks_sent));
#endif
        /* all is passed on by now, and each packet was had once */
        CHECK_EQUAL(view->position, helio_tx_stream_lead(source.stream));
        CHECK(view->received + 4 > sent); /* who missed the opening joined a packet later */
        CHECK_EQUAL(view->missing, 0);
        naks += view->naks;
        again += view->naks_again;
    }
    CHECK(naks > 5000 && again > 0);
    CHECK_EQUAL(naks + again, helio_cell(&counts()->naks_received));
    free(asked_of);
    end(FEW);
}

/* Receivers of another make tell nothing of themselves: each is an address that asks. */
static void receivers_that_send_no_reports_are_known_by_their_requests(void) {
    world_init(&w, 12, 0);
    const helio_sim_link link = {.delay_ns = DELAY_NS, .loss = 0.02};
    for (uint32_t i = 0; i < FEW; i++) {
        helio_rx_endpoint_config config = world_receiver_config(1000 + i); /* its id is 0 */
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(receivers[i].node, &link);
    }
    helio_tx_stream_config config = world_source_config(1);
    config.report_interval_ns = INTERVAL_NS;
    world_add_source(&w, &source, &config);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    send_for(500 * MS, 100 * US);
    world_run(&w, HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&counts()->reports_received), 0);
    uint32_t places, asking = 0;
    uint64_t naks = 0;
    const helio_receiver_view *views = helio_tx_stream_views(source.stream, &places);
    for (uint32_t i = 0; i < places; i++) {
        CHECK_EQUAL(views[i].flags & (HELIO_VIEW_PRESENT | HELIO_VIEW_REPORTS), HELIO_VIEW_PRESENT);
        CHECK_EQUAL(views[i].lost + views[i].received + views[i].position, 0);
        CHECK_EQUAL(views[i].missing, 0); /* nothing is asked for any more */
        asking += views[i].naks > 0;
        naks += views[i].naks + views[i].naks_again;
    }
    CHECK_EQUAL(asking, FEW);
    CHECK_EQUAL(naks, helio_cell(&counts()->naks_received));
    end(FEW);
}

static void round_trips_are_measured_for_each(void) {
    begin(FEW, 1000, &(helio_sim_link){.delay_ns = DELAY_NS});
    helio_sim_set_link(receivers[BAD].node, &(helio_sim_link){.delay_ns = 5 * MS});
    send_for(HELIO_SECOND, MS);
    for (uint32_t i = 0; i < FEW; i++) {
        const int64_t there_ns = i == BAD ? 5 * MS : DELAY_NS;
        const int64_t error_ns = view_of(i)->round_trip_ns - (there_ns + DELAY_NS);
        CHECK(error_ns >= -2 * US && error_ns <= 2 * US);
    }
    end(FEW);
}

static void an_idle_group_is_quiet(void) {
    begin(FEW, 1000, &(helio_sim_link){.delay_ns = DELAY_NS});
    send_for(100 * MS, MS);
    world_run(&w, HELIO_SECOND);
    const uint64_t before = helio_cell(&counts()->reports_received);
    world_run(&w, 10 * HELIO_SECOND);
    const uint64_t idle = helio_cell(&counts()->reports_received) - before;
    CHECK(idle >= FEW * 10 && idle <= FEW * 11); /* one in ten intervals */
    send_for(110 * MS, MS);                      /* and when there is news, one in each again */
    for (uint32_t i = 0; i < FEW; i++) {
        CHECK(view_of(i)->position + 110 > helio_tx_stream_lead(source.stream));
    }
    end(FEW);
}

/* ---- ten thousand ---- */

static uint32_t most_in(uint32_t slices) {
    uint32_t most = 0, sum = 0;
    for (uint32_t i = 0; i < SLICES; i++) {
        sum += reports_in[i];
        if (i >= slices) {
            sum -= reports_in[i - slices];
        }
        most = sum > most ? sum : most;
    }
    return most;
}

static uint32_t sum_between(int64_t from_ns, int64_t to_ns) {
    uint32_t sum = 0;
    for (int64_t i = from_ns / SLICE_NS; i < to_ns / SLICE_NS; i++) {
        sum += reports_in[i];
    }
    return sum;
}

static void ten_thousand_receivers_do_not_flood_the_source(void) {
    begin(MANY, RATE, &(helio_sim_link){.delay_ns = DELAY_NS});
    send_for(SLICES * SLICE_NS, 100 * MS);
    const uint32_t burst = most_in(10);
    uint32_t spoken = 0;
    printf("      %d receivers, %d reports/s:", MANY, RATE);
    for (int64_t s = 0; s < SLICES * SLICE_NS; s += HELIO_SECOND) {
        printf(" %" PRIu32, sum_between(s, s + HELIO_SECOND));
    }
    printf(" in each second; at most %" PRIu32 " in 100 ms\n", burst);
    CHECK(burst <= 4 * RATE / 10);
    /* and it goes on: each is heard, and no more than the rate come */
    const uint64_t before = helio_cell(&counts()->reports_received);
    send_for(30 * HELIO_SECOND, 100 * MS);
    const uint64_t came = helio_cell(&counts()->reports_received) - before;
    CHECK(helio_cell(&counts()->report_interval) <= (uint64_t)(60 * HELIO_SECOND));
    for (uint32_t i = 0; i < MANY; i++) {
        spoken += reports_of[i] > 0;
    }
    printf("      then %" PRIu64 " a second, interval %.1f s, %" PRIu32 " have spoken\n", came / 30,
           (double)helio_cell(&counts()->report_interval) / 1e9, spoken);
    CHECK(came / 30 <= RATE);
    CHECK(came / 30 >= RATE / 5);
    CHECK_EQUAL(spoken, MANY);
    end(MANY);
}

static void the_interval_is_short_again_when_they_are_few(void) {
    begin(FEW, 100, &(helio_sim_link){.delay_ns = DELAY_NS});
    send_for(5 * HELIO_SECOND, 10 * MS);
    const uint64_t longest = helio_cell(&counts()->report_interval);
    CHECK(longest > (uint64_t)INTERVAL_NS);
    CHECK(longest < (uint64_t)(4 * HELIO_SECOND));
    for (uint32_t i = 3; i < FEW; i++) {
        world_end_receiver(&receivers[i]);
    }
    send_for(30 * HELIO_SECOND, 10 * MS);
    CHECK_EQUAL(helio_cell(&counts()->report_interval), (uint64_t)INTERVAL_NS);
    end(3);
}

/* ---- forged ---- */

static void forged_reports_change_nothing_and_are_counted(void) {
    begin(FEW, 1000, &(helio_sim_link){.delay_ns = DELAY_NS});
    send_for(500 * MS, MS);
    const helio_receiver_view before = *view_of(BAD);
    const uint64_t refused = helio_cell(&counts()->reports_refused_elsewhere);
    const helio_pgm_session session = {*helio_tx_stream_tsi(source.stream), 7500};
    const helio_pgm_receiver_report forged = {
        .receiver = ID + BAD,
        .incarnation = before.incarnation + 1,
        .lost = 400,
        .position = (uint32_t)before.position,
        .buffer_fill = UINT16_MAX,
        .hold_us = HELIO_PGM_RECEIVER_REPORT_NO_ECHO,
    };
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const uint32_t rx_max = (uint32_t)helio_tx_stream_lead(source.stream);
    const size_t length = helio_pgm_encode_ack(packet, &session, rx_max, 0, NULL, &forged);
    const helio_address mallory = world_host(66, 6666);
    for (int i = 0; i < 100; i++) {
        helio_tx_stream_on_packet(source.stream, packet, length, &mallory, world_now(&w));
        send_for(10 * MS, MS);
    }
    CHECK_EQUAL(view_of(BAD)->incarnation, before.incarnation);
    CHECK_EQUAL(view_of(BAD)->lost, before.lost);
    CHECK(view_of(BAD)->received > before.received);
    CHECK_EQUAL(helio_cell(&counts()->reports_refused_elsewhere), refused + 100);
    CHECK_EQUAL(helio_cell(&counts()->receivers), FEW + 1); /* mallory has an address */
    end(FEW);
}

int main(void) {
    RUN(one_bad_receiver_among_fifty_is_first_within_an_interval);
    RUN(requests_are_attributed_without_an_error);
    RUN(receivers_that_send_no_reports_are_known_by_their_requests);
    RUN(round_trips_are_measured_for_each);
    RUN(an_idle_group_is_quiet);
    RUN(ten_thousand_receivers_do_not_flood_the_source);
    RUN(the_interval_is_short_again_when_they_are_few);
    RUN(forged_reports_change_nothing_and_are_counted);
    return check_result();
}
