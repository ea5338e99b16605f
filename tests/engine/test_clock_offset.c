/* How far a receiver's clock is ahead of its source's: the truth lies within the error bound,
 * whatever delays, losses, rates of the clocks and people who set them do. */
#include "check.h"
#include "clocked.h"
#include "receive/stream.h"
#include "send/parts.h"

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

/* ---- the bounds ---- */

/* A delay of at least `least_ns`, now and then much more. */
static int64_t delay(helio_random *random, int64_t least_ns, int64_t jitter_ns) {
    const int64_t jitter = (int64_t)helio_random_below(random, (uint64_t)jitter_ns + 1);
    return least_ns + (helio_random_below(random, 10) ? jitter / 20 : jitter);
}

/* Exchanges over a way with other delays each direction and losses, between clocks that drift apart
 * by `ppm`.  Returns the last error bound. */
static int64_t exchange(uint64_t seed, double ppm, int64_t there_ns, int64_t back_ns,
                        int64_t jitter_ns) {
    helio_random random;
    helio_random_init(&random, seed);
    helio_clock_bounds bounds = {0};
    helio_clock_difference known = {0};
    const int64_t origin_ns = (int64_t)helio_random_below(&random, UINT64_C(1) << 59);
    for (int64_t t = HELIO_SECOND; t < 200 * HELIO_SECOND;) {
        const int64_t came = t + delay(&random, there_ns, jitter_ns);
        const int64_t sent = came + (int64_t)helio_random_below(&random, 2000 * MS);
        const int64_t back = sent + delay(&random, back_ns, jitter_ns);
        /* The clock here is right; the one there shows origin + t * (1 + ppm). */
#define THERE(at) (origin_ns + (at) + (int64_t)((double)(at) * ppm / 1e6))
        if (helio_random_below(&random, 10) > 2) {
            helio_clock_bounds_went(&bounds, t, THERE(came));
            helio_clock_bounds_came(&bounds, THERE(sent), back);
        }
        t = back + (int64_t)helio_random_below(&random, 3000 * MS);
        CHECK(!helio_clock_bounds_have_crossed(&bounds, t));
        if (helio_clock_bounds_read(&bounds, t, &known)) {
            const int64_t error_ns = known.ns - (t - THERE(t));
            CHECK(llabs(error_ns) <= known.bound_ns);
        }
    }
    return known.bound_ns;
}

static void the_difference_lies_within_the_bound_in_a_thousand_random_runs(void) {
    helio_random random;
    helio_random_init(&random, 7);
    for (uint64_t run = 0; run < 1000; run++) {
        const double ppm = 200 * helio_random_unit(&random) - 100;
        const int64_t there_ns = (int64_t)helio_random_below(&random, 40 * MS);
        const int64_t back_ns = (int64_t)helio_random_below(&random, 40 * MS);
        exchange(run, ppm, there_ns, back_ns, (int64_t)helio_random_below(&random, 100 * MS));
    }
}

static void the_bound_is_half_the_shortest_round_trip_and_what_clocks_may_drift(void) {
    for (uint64_t run = 0; run < 100; run++) {
        const int64_t bound_ns = exchange(run, 0, 40 * US, 60 * US, 5 * MS);
        CHECK(bound_ns >= 50 * US);
        CHECK(bound_ns < 50 * US + 2 * MS); /* the longest between two exchanges is some 20 s */
    }
    helio_clock_bounds bounds = {0};
    helio_clock_difference known;
    helio_clock_bounds_went(&bounds, 1000 * US, 5040 * US);
    CHECK(!helio_clock_bounds_read(&bounds, 1000 * US, &known));
    helio_clock_bounds_came(&bounds, 5140 * US, 1200 * US); /* 40 us there, 60 us back */
    CHECK(helio_clock_bounds_read(&bounds, 1200 * US, &known));
    CHECK(llabs(known.ns + 3990 * US) < US);
    CHECK(llabs(known.bound_ns - 50 * US) < 2 * US);
    CHECK(helio_clock_bounds_read(&bounds, 1200 * US + 10 * HELIO_SECOND, &known));
    CHECK(llabs(known.bound_ns - 1050 * US) < 2 * US);
}

static void a_quick_packet_counts_however_many_slow_ones_follow(void) {
    helio_clock_bounds bounds = {0};
    helio_clock_difference known;
    helio_clock_bounds_went(&bounds, 0, 10 * US);
    helio_clock_bounds_came(&bounds, 20 * US, 30 * US);
    for (int64_t t = MS; t < 50 * MS; t += MS) {
        helio_clock_bounds_went(&bounds, t, t + 900 * US);
        helio_clock_bounds_came(&bounds, t, t + 900 * US);
    }
    CHECK(helio_clock_bounds_read(&bounds, 50 * MS, &known));
    CHECK(known.bound_ns < 20 * US);
}

static void bounds_that_cross_are_seen(void) {
    helio_clock_bounds bounds = {0};
    helio_clock_difference known;
    helio_clock_bounds_went(&bounds, 0, 10 * US);
    helio_clock_bounds_came(&bounds, 20 * US, 30 * US);
    helio_clock_bounds_went(&bounds, MS, MS - 500 * US); /* it stood still for a while there */
    CHECK(helio_clock_bounds_have_crossed(&bounds, MS));
    CHECK(!helio_clock_bounds_read(&bounds, MS, &known));
}

/* ---- a source and its receivers ---- */

enum { RECEIVERS_MAX = 1000 };

static world w;
static world_source source;
static clocked source_clocks;
static world_receiver receivers[RECEIVERS_MAX];
static clocked receiver_clocks[RECEIVERS_MAX];
static helio_tx_topic *topic;
static unsigned first_host = 100;       /* of the receivers; the source is on host 1 */
static helio_receiver_stats *delivered; /* of the first receiver */

static void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object) {
    (void)stream, (void)tsi;
    if (context == &receivers[0]) {
        delivered = object->record;
    }
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    (void)context, (void)messages;
    return count;
}

static void begin(unsigned count, helio_sim_link up, helio_sim_link down) {
    world_init(&w, 1, 2);
    if (count > 1) { /* objects for many, without histograms */
        const helio_stats_config many = {.name = "sim", .bytes = 512 << 20, .wall_ns = 1};
        helio_stats_destroy(w.stats);
        CHECK_EQUAL(helio_stats_create(&many, &w.stats), 0);
    }
    const helio_sink sink = {.on_stream = on_stream, .on_messages = on_messages};
    for (unsigned i = 0; i < count; i++) {
        helio_rx_endpoint_config config = world_receiver_config(first_host + i);
        config.receiver = 0xF000 + i;
        clocked_add_receiver(&w, &receiver_clocks[i], &receivers[i], &config);
        helio_sim_set_link(receivers[i].node, &down);
        helio_sink own = sink;
        own.context = &receivers[i];
        helio_subscription *subscription;
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t", &own,
                                                clocked_now(&receiver_clocks[i]), &subscription),
                    0);
    }
    helio_tx_stream_config config = world_source_config(1);
    config.report_interval_ns = 100 * MS;
    clocked_add_source(&w, &source_clocks, &source, &config);
    helio_sim_set_link(source.node, &up);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", clocked_now(&source_clocks), &topic),
                0);
    helio_sim_wake(source.node);
}

/* Virtual time passes while messages are sent.  Not within the tests themselves, where the compiler
 * would have its variables live beside the setjmp of RUN. */
__attribute__((noinline)) static void run_at(int64_t ns, int64_t gap_ns) {
    for (int64_t passed_ns = 0; passed_ns < ns; passed_ns += gap_ns) {
        const helio_moment moment = clocked_now(&source_clocks);
        helio_tx_stream_append(source.stream, topic, "hello", 5, moment.wall_ns, moment);
        helio_tx_stream_flush(source.stream, moment);
        helio_sim_wake(source.node);
        world_run(&w, gap_ns);
    }
}

static void run(int64_t ns) {
    run_at(ns, 20 * MS);
}

static void end(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
    source_clocks = (clocked){0};
    memset(receiver_clocks, 0, sizeof receiver_clocks);
}

static const helio_rx_stream_stats *here(unsigned i) {
    char text[HELIO_ADDRESS_TEXT], label[HELIO_ADDRESS_TEXT + 32];
    const helio_address address = world_host(first_host + i, 50000);
    snprintf(label, sizeof label, "feedback_address=%s\n", helio_address_format(&address, text));
    const helio_rx_stream_stats *record = world_record(&w, HELIO_SCOPE_RX_STREAM, label);
    CHECK(record != NULL);
    return record;
}

/* The truth is within what receiver `i` shows, which is at most `old_ns` old. */
static bool is_true(unsigned i, int64_t old_ns) {
    const int64_t shown_ns = (int64_t)helio_cell(&here(i)->clock_offset);
    const int64_t bound_ns = (int64_t)helio_cell(&here(i)->clock_error_bound);
    const int64_t truth_ns = clocked_offset(&receiver_clocks[i], &source_clocks);
    return llabs(shown_ns - truth_ns) <= bound_ns + old_ns / 5000; /* the truth drifts as well */
}

static void both_ends_know_the_offset_within_its_bound(void) {
    receiver_clocks[0] = (clocked){.origin_ns = 77 * HELIO_SECOND, .wall_ns = 3 * MS, .ppm = 40};
    source_clocks = (clocked){.origin_ns = 5 * MS, .ppm = -40};
    const helio_sim_link up = {.delay_ns = 100 * US}, down = {.delay_ns = 300 * US};
    begin(1, up, down);
    run(10 * HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&here(0)->clock_source), HELIO_PGM_CLOCK_EXCHANGE);
    CHECK(is_true(0, HELIO_SECOND));
    CHECK(helio_cell(&here(0)->clock_error_bound) < 300 * US); /* half of 400 us, and drift */
    CHECK(helio_cell(&here(0)->clock_error_bound) >= 200 * US);
    CHECK(helio_cell(&here(0)->clock_exchanges) >= 10);
    CHECK_EQUAL(helio_cell(&here(0)->clock_exchanges_refused), 0);
    CHECK_EQUAL(helio_cell(&here(0)->clock_jumps), 0);
    CHECK(helio_cell(&here(0)->last_clock_exchange) > 0);
    const helio_tx_receiver_stats *peer = world_record(&w, HELIO_SCOPE_TX_RECEIVER, "");
    CHECK_EQUAL(helio_cell(&peer->clock_source), HELIO_PGM_CLOCK_EXCHANGE);
    const int64_t truth_ns = clocked_offset(&receiver_clocks[0], &source_clocks);
    CHECK(llabs((int64_t)helio_cell(&peer->clock_offset) - truth_ns) <
          (int64_t)helio_cell(&peer->clock_error_bound) + 200 * US);
    end(1);
}

static void the_offset_is_true_in_random_worlds_of_delay_loss_and_drift(void) {
    helio_random random;
    helio_random_init(&random, 11);
    for (int i = 0; i < 30; i++) {
#define UP_TO(most) ((int64_t)helio_random_below(&random, (uint64_t)(most)))
        receiver_clocks[0] = (clocked){.origin_ns = UP_TO(1000 * HELIO_SECOND),
                                       .wall_ns = UP_TO(20 * HELIO_SECOND) - 10 * HELIO_SECOND,
                                       .ppm = 98 * helio_random_unit(&random) - 49};
        source_clocks = (clocked){.origin_ns = UP_TO(1000 * HELIO_SECOND),
                                  .ppm = 98 * helio_random_unit(&random) - 49};
        const helio_sim_link up = {.loss = 0.3 * helio_random_unit(&random),
                                   .delay_ns = UP_TO(10 * MS),
                                   .jitter_ns = UP_TO(10 * MS)};
        const helio_sim_link down = {.loss = 0.3 * helio_random_unit(&random),
                                     .delay_ns = UP_TO(10 * MS),
                                     .jitter_ns = UP_TO(10 * MS)};
        begin(1, up, down);
        run(3 * HELIO_SECOND);
        for (int k = 0; k < 20; k++) {
            run(500 * MS);
            if (helio_cell(&here(0)->clock_source) == HELIO_PGM_CLOCK_EXCHANGE) {
                CHECK(is_true(0, 5 * HELIO_SECOND));
            }
        }
        CHECK(helio_cell(&here(0)->clock_exchanges) > 0);
        CHECK_EQUAL(helio_cell(&here(0)->clock_jumps), 0);
        end(1);
    }
}

static void a_clock_that_is_set_is_followed_and_told_of(void) {
    const helio_sim_link up = {.delay_ns = 100 * US}, down = {.delay_ns = 100 * US};
    const char *text = "";
    begin(1, up, down);
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(clocked_events(&w, HELIO_EVENT_CLOCK_OFFSET_CHANGED, &text), 0);
    source_clocks.wall_ns -= 2 * HELIO_SECOND;
    run(1500 * MS);
    CHECK(is_true(0, HELIO_SECOND));
    CHECK_EQUAL(helio_cell(&here(0)->clock_jumps), 1);
    CHECK_EQUAL(clocked_events(&w, HELIO_EVENT_CLOCK_OFFSET_CHANGED, &text), 1);
    CHECK(strstr(text, "the source's clock was set") != NULL);
    CHECK(strstr(text, "s ahead of the source's") != NULL);
    receiver_clocks[0].wall_ns += 40 * MS;
    run(1500 * MS);
    CHECK(is_true(0, HELIO_SECOND));
    CHECK_EQUAL(clocked_events(&w, HELIO_EVENT_CLOCK_OFFSET_CHANGED, &text), 2);
    CHECK(strstr(text, "this host's clock was set") != NULL);
    end(1);
}

static void a_machine_that_stood_still_is_noticed_and_measured_anew(void) {
    const helio_sim_link up = {.delay_ns = 100 * US}, down = {.delay_ns = 100 * US};
    const char *text = "";
    begin(1, up, down);
    run(5 * HELIO_SECOND);
    source_clocks.origin_ns -= 300 * MS; /* neither of its clocks saw the time pass */
    source_clocks.wall_ns -= 300 * MS;
    run(3 * HELIO_SECOND);
    CHECK(is_true(0, HELIO_SECOND));
    CHECK(helio_cell(&here(0)->clock_error_bound) < MS);
    CHECK_EQUAL(clocked_events(&w, HELIO_EVENT_CLOCK_OFFSET_CHANGED, &text), 1);
    CHECK(strstr(text, "a clock stopped") != NULL);
    end(1);
}

static void latencies_that_skewed_clocks_make_negative_are_refused_and_counted(void) {
    receiver_clocks[0].wall_ns = -5 * MS; /* behind: messages come before they were submitted */
    const helio_sim_link link = {.delay_ns = 100 * US};
    begin(1, link, link);
    run(2 * HELIO_SECOND);
    CHECK(helio_cell(&delivered->latency_invalid_samples) > 50);
    const int64_t offset_ns = (int64_t)helio_cell(&here(0)->clock_offset);
    CHECK(offset_ns < -4 * MS);
    CHECK(is_true(0, HELIO_SECOND));
    end(1);
}

static void on_one_host_there_is_one_clock_and_nothing_is_asked(void) {
    const helio_sim_link link = {.delay_ns = 100 * US};
    first_host = 1;
    begin(1, link, link);
    run(5 * HELIO_SECOND);
    CHECK_EQUAL(helio_cell(&here(0)->clock_source), HELIO_PGM_CLOCK_HOST);
    CHECK_EQUAL(helio_cell(&here(0)->clock_offset), 0);
    CHECK_EQUAL(helio_cell(&here(0)->clock_error_bound), 0);
    CHECK_EQUAL(helio_cell(&here(0)->clock_exchanges), 0);
    const helio_tx_receiver_stats *peer = world_record(&w, HELIO_SCOPE_TX_RECEIVER, "");
    CHECK_EQUAL(helio_cell(&peer->clock_source), HELIO_PGM_CLOCK_HOST);
    const helio_tx_stream_stats *sent = helio_tx_stream_object(source.stream)->record;
    CHECK_EQUAL(helio_cell(&sent->clock_answers_sent), 0);
    end(1);
    first_host = 100;
}

static void answers_are_bounded_however_many_ask(void) {
    const helio_sim_link up = {.delay_ns = 200 * US, .jitter_ns = 100 * US};
    const helio_sim_link down = {.delay_ns = 200 * US, .jitter_ns = 100 * US};
    helio_random random;
    helio_random_init(&random, 5);
    for (unsigned i = 0; i < RECEIVERS_MAX; i++) {
        receiver_clocks[i].ppm = 80 * helio_random_unit(&random) - 40;
    }
    begin(RECEIVERS_MAX, up, down);
    const helio_tx_stream_stats *sent = helio_tx_stream_object(source.stream)->record;
    run_at(10 * HELIO_SECOND, HELIO_SECOND);
    const uint64_t spms = helio_cell(&sent->heartbeats_sent);
    CHECK(helio_cell(&sent->clock_answers_sent) > 200);
    CHECK(helio_cell(&sent->clock_answers_sent) <= 4 * spms);
    CHECK(spms < 10 * (10 + 14)); /* ten a second for them, the rest come anyway */
    run_at(40 * HELIO_SECOND, HELIO_SECOND);
    unsigned known = 0;
    for (unsigned i = 0; i < RECEIVERS_MAX; i++) {
        if (helio_cell(&here(i)->clock_source) != HELIO_PGM_CLOCK_EXCHANGE) {
            continue;
        }
        known++;
        CHECK(is_true(i, HELIO_SECOND));
        CHECK(helio_cell(&here(i)->clock_error_bound) < 10 * MS);
    }
    CHECK(known > RECEIVERS_MAX * 9 / 10);
    end(RECEIVERS_MAX);
}

/* ---- what strangers say ---- */

/* Sends the receiver an SPM of its source with this time. */
static void say(const helio_pgm_time *time) {
    static uint32_t ahead = 100; /* of the source's own, and near enough to be believed at once */
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_tx_stream *stream = source.stream;
    const helio_pgm_spm spm = {.sequence = stream->spm_sequence + ahead++,
                               .trail = (uint32_t)stream->txw.trail,
                               .lead = (uint32_t)stream->txw.lead,
                               .takes_reports = true,
                               .reporting = {.interval_us = 100000},
                               .time = time};
    const size_t length =
        helio_pgm_encode_spm(packet, &stream->session, &spm, &stream->config.address);
    helio_address from = stream->config.address;
    from.port = stream->config.tsi.port;
    const helio_moment moment = clocked_now(&receiver_clocks[0]);
    helio_rx_endpoint_on_packet(receivers[0].endpoint, packet, length, &from, moment.wall_ns,
                                moment);
}

static void answers_nobody_asked_for_and_absurd_times_change_nothing(void) {
    const helio_sim_link link = {.delay_ns = 100 * US};
    begin(1, link, link);
    run(3 * HELIO_SECOND);
    const uint64_t taken = helio_cell(&here(0)->clock_exchanges);
    const int64_t bound_ns = (int64_t)helio_cell(&here(0)->clock_error_bound);
    const uint64_t now = (uint64_t)clocked_now(&source_clocks).now_ns;
    const uint64_t wall = (uint64_t)clocked_now(&source_clocks).wall_ns;
    const helio_pgm_time times[] = {
        {now, wall, 1, {{0xF000, 12345, now}}},  /* no such question */
        {now, wall, 1, {{0xF000, 0, now}}},      /* the token of no question */
        {UINT64_MAX, wall, 1, {{0xF000, 1, 0}}}, /* times beyond all years */
        {now, UINT64_MAX, 0, {{0}}},             /* the same */
        {UINT64_C(1) << 63, 0, 0, {{0}}},        /* the same */
        {now, wall, 2, {{7, 1, 0}, {8, 2, 0}}},  /* not for this receiver */
    };
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        say(&times[i]);
    }
    CHECK_EQUAL(helio_cell(&here(0)->clock_exchanges), taken);
    CHECK_EQUAL(helio_cell(&here(0)->clock_exchanges_refused), 5);
    CHECK(is_true(0, HELIO_SECOND));
    CHECK((int64_t)helio_cell(&here(0)->clock_error_bound) <= bound_ns + 100 * US);
    CHECK_EQUAL(helio_cell(&here(0)->clock_jumps), 0);
    end(1);
}

static void questions_have_tokens_that_do_not_repeat_and_wait_for_each_other(void) {
    helio_rx_clock clocks;
    helio_pgm_clock question;
    helio_rx_clock_init(&clocks, false, 42, (helio_moment){0, CLOCKED_WALL_NS});
    uint32_t tokens[6];
    for (int i = 0; i < 6; i++) {
        CHECK(helio_rx_clock_ask(&clocks, &question, i * HELIO_SECOND));
        CHECK(question.token != 0);
        CHECK_EQUAL(question.source, HELIO_PGM_CLOCK_UNKNOWN);
        for (int k = 0; k < i; k++) {
            CHECK(question.token != tokens[k]);
        }
        tokens[i] = question.token;
    }
    CHECK(!helio_rx_clock_ask(&clocks, &question, 5 * HELIO_SECOND + MS)); /* not yet again */
}

/* A receiver's report with this question comes to the source, in its name or another's. */
static void ask(uint64_t receiver, const helio_pgm_clock *question) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_tx_stream *stream = source.stream;
    const helio_pgm_receiver_report told = {
        .receiver = receiver, .incarnation = 1, .position = UINT32_MAX};
    const size_t length = helio_pgm_encode_ack_with(packet, &stream->session, UINT32_MAX, 0, NULL,
                                                    receiver ? &told : NULL, NULL, 0, question);
    const helio_address from = world_host(77, 50000);
    helio_tx_stream_on_packet(source.stream, packet, length, &from, clocked_now(&source_clocks));
}

static void a_stranger_cannot_ask_and_what_it_tells_is_shown_within_reason(void) {
    const helio_sim_link link = {.delay_ns = 100 * US};
    begin(1, link, link);
    run(2 * HELIO_SECOND);
    const helio_pgm_clock absurd = {HELIO_PGM_CLOCK_EXCHANGE, 5, INT64_MIN, UINT64_MAX};
    const uint32_t waiting = source.stream->clocks.count;
    ask(0, &absurd);      /* no report */
    ask(0xF000, &absurd); /* in the name of one who is at another address */
    CHECK_EQUAL(source.stream->clocks.count, waiting);
    const helio_tx_receiver_stats *peer =
        world_record(&w, HELIO_SCOPE_TX_RECEIVER, "000000000000f000");
    CHECK_EQUAL(helio_cell(&peer->clock_source), HELIO_PGM_CLOCK_EXCHANGE);
    CHECK(llabs((int64_t)helio_cell(&peer->clock_offset)) < MS);
    ask(0xABCD, &absurd); /* one that reports for itself */
    CHECK_EQUAL(source.stream->clocks.count, waiting + 1);
    peer = world_record(&w, HELIO_SCOPE_TX_RECEIVER, "000000000000abcd");
    CHECK(peer != NULL);
    CHECK_EQUAL(helio_cell(&peer->clock_source), HELIO_PGM_CLOCK_UNKNOWN);
    CHECK_EQUAL(helio_cell(&peer->clock_offset), HELIO_STATS_ABSENT);
    CHECK_EQUAL(helio_cell(&peer->clock_error_bound), HELIO_STATS_ABSENT);
    end(1);
}

/* The last SPM with the time that reached the receiver, to be said again. */
static uint8_t overheard[HELIO_PGM_CONTROL_MAX];
static size_t overheard_bytes;

static bool overhears(void *context, const void *packet, size_t length, int64_t now_ns) {
    helio_pgm_packet spm;
    (void)context, (void)now_ns;
    if (helio_pgm_decode(packet, length, &spm) == HELIO_PGM_ACCEPTED &&
        (spm.options & HELIO_PGM_HAS_CLOCK_ANSWER) && spm.time.answers_count > 0) {
        memcpy(overheard, packet, length);
        overheard_bytes = length;
    }
    return false;
}

static void an_answer_that_is_said_again_counts_no_second_time(void) {
    const helio_sim_link up = {.delay_ns = 100 * US};
    begin(1, up, (helio_sim_link){.delay_ns = 100 * US, .drops = overhears});
    overheard_bytes = 0;
    run(3 * HELIO_SECOND);
    CHECK(overheard_bytes > 0);
    helio_pgm_packet spm;
    CHECK_EQUAL(helio_pgm_decode(overheard, overheard_bytes, &spm), HELIO_PGM_ACCEPTED);
    const uint64_t taken = helio_cell(&here(0)->clock_exchanges);
    const int64_t offset_ns = (int64_t)helio_cell(&here(0)->clock_offset);
    say(&spm.time); /* under a newer number, and late: it seems to have been long on its way */
    CHECK_EQUAL(helio_cell(&here(0)->clock_exchanges), taken);
    CHECK_EQUAL(helio_cell(&here(0)->clock_exchanges_refused), 1);
    CHECK(llabs((int64_t)helio_cell(&here(0)->clock_offset) - offset_ns) < 50 * US);
    CHECK(is_true(0, HELIO_SECOND));
    end(1);
}

static void who_gets_no_answers_asks_less_and_less_often(void) {
    helio_rx_clock clocks;
    helio_pgm_clock question;
    helio_rx_clock_init(&clocks, false, 42, (helio_moment){0, CLOCKED_WALL_NS});
    unsigned asked = 0;
    for (int64_t t = 0; t < 600 * HELIO_SECOND; t += 100 * MS) {
        asked += helio_rx_clock_ask(&clocks, &question, t);
    }
    CHECK(asked >= 20);
    CHECK(asked < 50);
}

static void a_source_keeps_a_bounded_number_of_questions_and_answers_the_oldest_first(void) {
    helio_tx_clock clocks = {0};
    helio_pgm_time said;
    const helio_moment moment = {HELIO_SECOND, CLOCKED_WALL_NS};
    CHECK(!helio_tx_clock_take(&clocks, &said, moment.now_ns));
    for (uint64_t i = 1; i <= 100; i++) {
        helio_tx_clock_on_question(&clocks, i, (uint32_t)i, false, moment);
    }
    CHECK_EQUAL(clocks.count, HELIO_TX_CLOCK_WAITING);
    helio_tx_clock_on_question(&clocks, 1, 77, false,
                               moment); /* asks again: the newer question counts */
    CHECK_EQUAL(clocks.count, HELIO_TX_CLOCK_WAITING);
    CHECK_EQUAL(helio_tx_clock_due_ns(&clocks), moment.now_ns);
    CHECK(helio_tx_clock_take(&clocks, &said, moment.now_ns - 1)); /* they came later than that */
    CHECK_EQUAL(said.answers_count, 0);
    CHECK(!helio_tx_clock_take(&clocks, &said, moment.now_ns + MS)); /* too soon */
    CHECK(helio_tx_clock_take(&clocks, &said, moment.now_ns + 20 * MS));
    CHECK_EQUAL(said.answers_count, 4);
    CHECK_EQUAL(said.answers[0].receiver, 1);
    CHECK_EQUAL(said.answers[0].token, 77);
    CHECK_EQUAL(said.answers[3].receiver, 4);
    CHECK_EQUAL(said.sent_ns, HELIO_SECOND + 20 * MS);
    CHECK_EQUAL(said.wall_ns, CLOCKED_WALL_NS + 20 * MS);
    CHECK_EQUAL(helio_tx_clock_due_ns(&clocks), moment.now_ns + 20 * MS + HELIO_TX_CLOCK_GAP_NS);
}

static void who_knows_nothing_is_answered_first_and_finds_room(void) {
    helio_tx_clock clocks = {0};
    helio_pgm_time said;
    const helio_moment moment = {HELIO_SECOND, CLOCKED_WALL_NS};
    for (uint64_t i = 1; i <= HELIO_TX_CLOCK_WAITING; i++) {
        helio_tx_clock_on_question(&clocks, i, 9, false, moment);
    }
    helio_tx_clock_on_question(&clocks, 500, 9, true, moment);
    helio_tx_clock_on_question(&clocks, 501, 9, true, moment);
    helio_tx_clock_on_question(&clocks, 502, 9, false, moment); /* there is no room for it */
    CHECK_EQUAL(clocks.count, HELIO_TX_CLOCK_WAITING);
    static const uint64_t order[] = {500, 501, 1, 2, 3};
    CHECK(helio_tx_clock_take(&clocks, &said, moment.now_ns));
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(said.answers[i].receiver, order[i]);
    }
    CHECK_EQUAL(clocks.newcomers, 0);
    CHECK(helio_tx_clock_take(&clocks, &said, moment.now_ns + HELIO_SECOND));
    CHECK_EQUAL(said.answers[0].receiver, order[4]);
    for (uint64_t i = 1000; i < 1100; i++) {
        helio_tx_clock_on_question(&clocks, i, 9, true, moment);
    }
    CHECK_EQUAL(clocks.count, HELIO_TX_CLOCK_WAITING);
    CHECK_EQUAL(clocks.newcomers, HELIO_TX_CLOCK_WAITING);
}

int main(void) {
    RUN(the_difference_lies_within_the_bound_in_a_thousand_random_runs);
    RUN(the_bound_is_half_the_shortest_round_trip_and_what_clocks_may_drift);
    RUN(a_quick_packet_counts_however_many_slow_ones_follow);
    RUN(bounds_that_cross_are_seen);
    RUN(both_ends_know_the_offset_within_its_bound);
    RUN(the_offset_is_true_in_random_worlds_of_delay_loss_and_drift);
    RUN(a_clock_that_is_set_is_followed_and_told_of);
    RUN(a_machine_that_stood_still_is_noticed_and_measured_anew);
    RUN(latencies_that_skewed_clocks_make_negative_are_refused_and_counted);
    RUN(on_one_host_there_is_one_clock_and_nothing_is_asked);
    RUN(answers_are_bounded_however_many_ask);
    RUN(answers_nobody_asked_for_and_absurd_times_change_nothing);
    RUN(questions_have_tokens_that_do_not_repeat_and_wait_for_each_other);
    RUN(a_stranger_cannot_ask_and_what_it_tells_is_shown_within_reason);
    RUN(an_answer_that_is_said_again_counts_no_second_time);
    RUN(who_gets_no_answers_asks_less_and_less_often);
    RUN(a_source_keeps_a_bounded_number_of_questions_and_answers_the_oldest_first);
    RUN(who_knows_nothing_is_answered_first_and_finds_room);
    return check_result();
}
