/* The promise of the transport, held against a thousand networks: every message is delivered once,
 * in order and whole, or reported lost once; the books balance when all is quiet; memory stays
 * bounded.
 *
 *     sim_property [--seeds N] [--first N]
 *
 * Each seed makes a network (loss, bursts, reorder, doubles, types of packets that vanish for a
 * while), sources, topics, receivers with sinks that are sometimes full, and messages of 0 to 100
 * KB.  A failure prints its seed. */
#include <stdbool.h>

#include "base/hash.h"
#include "check.h"
#include "generated/protocol.h"
#include "seeds.h"
#include "world.h"

enum {
    SOURCES_MAX = 2,
    RECEIVERS_MAX = 3,
    TOPICS_MAX = 3,
    SCRATCH_BYTES = 100 * 1024,
};

/* ---- messages that can be checked by their number alone ---- */

static uint64_t message_seed(uint64_t seed, unsigned source, unsigned topic, uint64_t number) {
    const uint64_t parts[] = {seed, source, topic, number};
    return helio_hash_fnv1a(parts, sizeof parts);
}

static size_t message_bytes(uint64_t message, size_t largest) {
    helio_random random;
    helio_random_init(&random, message);
    switch (helio_random_below(&random, 20)) {
    case 0:
        return 0;
    case 1:
        return helio_random_below(&random, largest + 1);
    case 2:
        return helio_random_below(&random, 4000 < largest ? 4000 : largest);
    default:
        return helio_random_below(&random, 200);
    }
}

static void fill_message(uint64_t message, uint8_t *data, size_t bytes) {
    helio_random random;
    helio_random_init(&random, ~message);
    for (size_t i = 0; i < bytes; i += 8) {
        const uint64_t word = helio_random_next(&random);
        memcpy(data + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

/* ---- the trial ---- */

typedef struct trial trial;

static uint64_t delivered_total, lost_total;

/* What one receiver has had of one topic of one source. */
typedef struct ledger {
    bool is_open;
    bool has_ended;
    bool has_start;
    unsigned source;
    helio_receiver_stats *stats;
    uint64_t next;
    uint64_t first;
    uint64_t delivered;
    uint64_t lost;
    uint64_t final_next;
} ledger;

/* One subscription. */
typedef struct reader {
    trial *trial;
    unsigned receiver;
    unsigned topic;
    bool is_on;
    helio_subscription *subscription;
    double refuses; /* chance that a call takes only some */
    ledger ledgers[SOURCES_MAX *
                   8]; /* by stream number; a stream that was dropped comes back as another */
    unsigned streams;
} reader;

struct trial {
    uint64_t seed;
    bool is_gentle;      /* windows and deadlines are ample: nothing may be lost for good */
    bool is_announced;   /* the network was whole while the sources still said where they are */
    unsigned late;       /* the receiver that comes late; RECEIVERS_MAX: none */
    helio_random random; /* of the trial's own choices */
    world world;
    unsigned sources, receivers, topics;
    size_t largest;
    world_source source[SOURCES_MAX];
    helio_tx_topic *topic[SOURCES_MAX][TOPICS_MAX];
    uint64_t sent[SOURCES_MAX][TOPICS_MAX];
    world_receiver receiver[RECEIVERS_MAX];
    reader reader[RECEIVERS_MAX][TOPICS_MAX];
    /* one type of packet vanishes on every link for a while */
    uint8_t dropped_type;
    int64_t drop_begin_ns, drop_end_ns;
    uint8_t *scratch;
};

static uint64_t pick(trial *t, uint64_t below) {
    return helio_random_below(&t->random, below);
}

static bool chance(trial *t, double share) {
    return helio_random_unit(&t->random) < share;
}

static const char *topic_name(unsigned topic) {
    static const char *const names[] = {"prices", "orders", "a topic with a longer name"};
    return names[topic];
}

/* ---- the sink ---- */

static void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object) {
    reader *r = context;
    CHECK_EQUAL(stream, r->streams);
    CHECK(stream < sizeof r->ledgers / sizeof r->ledgers[0]);
    r->streams++;
    r->ledgers[stream] = (ledger){.is_open = true, .source = tsi->gsi[5], .stats = object->record};
}

static void close_ledger(reader *r, ledger *l) {
    const helio_receiver_stats *stats = l->stats;
    const uint64_t before = helio_cell(&stats->messages_before_join);
    const uint64_t delivered = helio_cell(&stats->messages_delivered);
    const uint64_t lost = helio_cell(&stats->messages_lost);
    CHECK_EQUAL(delivered, l->delivered);
    CHECK_EQUAL(lost, l->lost);
    CHECK_EQUAL(helio_cell(&stats->next_message), before + delivered + lost);
    if (l->has_start) {
        CHECK_EQUAL(before, l->first);
        CHECK_EQUAL(l->next, l->first + l->delivered + l->lost);
    }
    CHECK(helio_cell(&stats->next_message) <= r->trial->sent[l->source][r->topic]);
    l->final_next = helio_cell(&stats->next_message);
    l->has_ended = true;
    l->is_open = false;
}

static void on_stream_end(void *context, uint32_t stream) {
    reader *r = context;
    CHECK(r->ledgers[stream].is_open);
    close_ledger(r, &r->ledgers[stream]);
}

static void start(ledger *l, uint64_t number) {
    if (!l->has_start) {
        l->has_start = true;
        l->first = l->next = number;
    }
}

static void check_message(reader *r, ledger *l, const helio_message *message) {
    trial *t = r->trial;
    start(l, message->number);
    CHECK_EQUAL(message->number, l->next);
    const uint64_t key = message_seed(t->seed, l->source, r->topic, message->number);
    CHECK_EQUAL(message->length, message_bytes(key, t->largest));
    fill_message(key, t->scratch, message->length);
    CHECK_BYTES(message->data, t->scratch, message->length);
    l->next++;
    l->delivered++;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    reader *r = context;
    size_t taken = count;
    if (chance(r->trial, r->refuses)) {
        taken = pick(r->trial, count + 1);
    }
    for (size_t i = 0; i < taken; i++) {
        ledger *l = &r->ledgers[messages[i].stream];
        CHECK(l->is_open);
        check_message(r, l, &messages[i]);
    }
    return taken;
}

static void on_loss(void *context, const helio_loss *loss) {
    reader *r = context;
    ledger *l = &r->ledgers[loss->stream];
    CHECK(l->is_open);
    CHECK(loss->count > 0);
    start(l, loss->first);
    CHECK_EQUAL(loss->first, l->next);
    l->next += loss->count;
    l->lost += loss->count;
}

/* ---- the network ---- */

static bool drops_type(void *context, const void *packet, size_t length, int64_t now_ns) {
    const trial *t = context;
    return length > 4 && ((const uint8_t *)packet)[4] == t->dropped_type &&
           now_ns >= t->drop_begin_ns && now_ns < t->drop_end_ns;
}

static helio_sim_link make_link(trial *t) {
    static const double losses[] = {0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3};
    helio_sim_link link = {
        .loss = losses[pick(t, 7)],
        .duplicate = chance(t, 0.3) ? 0.02 : 0,
        .delay_ns = (int64_t)pick(t, 200) * HELIO_MICROSECOND,
        .jitter_ns = chance(t, 0.5) ? (int64_t)pick(t, 300) * HELIO_MICROSECOND : 0,
        .drops = drops_type,
        .context = t,
    };
    if (chance(t, 0.2)) {
        link.burst_begin = 0.005;
        link.burst_end = 0.1;
        link.burst_loss = 0.9;
    }
    return link;
}

static void choose_vanishing_type(trial *t) {
    static const uint8_t types[] = {HELIO_PGM_TYPE_NCF, HELIO_PGM_TYPE_NAK, HELIO_PGM_TYPE_RDATA,
                                    HELIO_PGM_TYPE_SPM, HELIO_PGM_TYPE_ODATA};
    t->dropped_type = types[pick(t, 5)];
    t->drop_begin_ns = (int64_t)pick(t, 20) * HELIO_MILLISECOND;
    t->drop_end_ns =
        t->drop_begin_ns +
        (!t->is_gentle && chance(t, 0.3) ? (int64_t)pick(t, 100) * HELIO_MILLISECOND : 0);
}

/* ---- people ---- */

static void add_source(trial *t, unsigned i) {
    static const uint32_t starts[] = {0, 0xFFFFFF00, 0x7FFFFF00, 77};
    helio_tx_stream_config config = world_source_config(i);
    config.window_packets = t->is_gentle ? 32768 : 16u << pick(t, 8);
    config.first_sequence = starts[pick(t, 4)];
    config.max_packet_bytes = chance(t, 0.2) ? 548 : 1472;
    config.first_spm_sequence = starts[pick(t, 4)];
    config.is_copied = chance(t, 0.3);
    config.poll_interval_ns = chance(t, 0.2) ? 10 * HELIO_MILLISECOND : 0;
    config.announce_interval_ns = 20 * HELIO_MILLISECOND;
    config.linger_ns = (t->is_gentle ? 3000 : 500) * HELIO_MILLISECOND;
    world_add_source(&t->world, &t->source[i], &config);
    const helio_sim_link link = make_link(t);
    helio_sim_set_link(t->source[i].node, &link);
    for (unsigned k = 0; k < t->topics; k++) {
        CHECK_EQUAL(helio_tx_stream_add_topic(t->source[i].stream, topic_name(k),
                                              world_now(&t->world), &t->topic[i][k]),
                    0);
    }
}

static void add_receiver(trial *t, unsigned i) {
    helio_rx_endpoint_config config = world_receiver_config(100 + i);
    config.window_packets = 16u << pick(t, 8);
    config.nak_deadline_ns = (int64_t)(20 + pick(t, 300)) * HELIO_MILLISECOND;
    config.nak_retries = chance(t, 0.2) ? 2 : 64;
    if (t->is_gentle) {
        config.window_packets = 32768;
        config.nak_deadline_ns = 4 * HELIO_SECOND;
        config.nak_retries = 1000;
    }
    config.reorder_packets = (uint32_t)pick(t, 4);
    config.nak_backoff_ns = chance(t, 0.5) ? -1 : (int64_t)pick(t, 300) * HELIO_MICROSECOND;
    if (chance(t, 0.5)) {
        config.nak_repeat_ns = config.nak_data_ns = 0;
    }
    config.group_size = chance(t, 0.2) ? 100 : 0;
    config.never_asks = !t->is_gentle && chance(t, 0.1);
    config.seed = helio_random_next(&t->random);
    world_add_receiver(&t->world, &t->receiver[i], &config);
    const helio_sim_link link = make_link(t);
    helio_sim_set_link(t->receiver[i].node, &link);
    for (unsigned k = 0; k < t->topics; k++) {
        reader *r = &t->reader[i][k];
        *r = (reader){.trial = t, .receiver = i, .topic = k};
        if (k > 0 && chance(t, 0.3)) {
            continue; /* a topic this one does not want */
        }
        r->is_on = true;
        r->refuses = chance(t, 0.3) ? 0.05 : 0;
        const helio_sink sink = {r, on_stream, on_stream_end, on_messages, .on_loss = on_loss};
        CHECK_EQUAL(helio_rx_endpoint_subscribe(t->receiver[i].endpoint, topic_name(k), &sink,
                                                world_now(&t->world), &r->subscription),
                    0);
    }
}

static void append(trial *t, unsigned source, unsigned topic) {
    const uint64_t key = message_seed(t->seed, source, topic, t->sent[source][topic]);
    const size_t bytes = message_bytes(key, t->largest);
    const helio_moment moment = world_now(&t->world);
    fill_message(key, t->scratch, bytes);
    t->sent[source][topic]++;
    CHECK_EQUAL(helio_tx_stream_append(t->source[source].stream, t->topic[source][topic],
                                       t->scratch, bytes, moment.wall_ns, moment),
                0);
}

/* A sink that had no room has some again: nothing but a poll tells the endpoint. */
static void nudge(trial *t) {
    for (unsigned i = 0; i < t->receivers; i++) {
        if (t->receiver[i].endpoint && helio_rx_endpoint_is_blocked(t->receiver[i].endpoint)) {
            helio_rx_endpoint_poll(t->receiver[i].endpoint, world_now(&t->world));
            helio_sim_wake(t->receiver[i].node);
        }
    }
}

static void pass_time(trial *t, int64_t ns) {
    world_run(&t->world, ns);
    nudge(t);
}

static void send_traffic(trial *t) {
    const unsigned bursts = 20 + (unsigned)pick(t, 60);
    for (unsigned b = 0; b < bursts; b++) {
        if (b == bursts / 2 && t->late < t->receivers) {
            add_receiver(t, t->late);
        }
        const unsigned source = (unsigned)pick(t, t->sources);
        const unsigned count = 1 + (unsigned)pick(t, 20);
        for (unsigned i = 0; i < count; i++) {
            append(t, source, (unsigned)pick(t, t->topics));
        }
        helio_tx_stream_flush(t->source[source].stream, world_now(&t->world));
        helio_sim_wake(t->source[source].node);
        pass_time(t, (int64_t)pick(t, 2000) * HELIO_MICROSECOND);
    }
}

/* ---- what must hold ---- */

static void check_source_books(const helio_tx_stream_stats *s) {
    CHECK_EQUAL(
        helio_cell(&s->naks_received),
        helio_cell(&s->naks_answered_repaired) + helio_cell(&s->naks_answered_queued_already) +
            helio_cell(&s->naks_answered_ignored_recent) + helio_cell(&s->naks_answered_too_late) +
            helio_cell(&s->naks_answered_not_sent_yet) + helio_cell(&s->naks_answered_shed) +
            helio_cell(&s->repair_queue));
    CHECK_EQUAL(helio_cell(&s->history_packets) + helio_cell(&s->history_trimmed_packets),
                helio_cell(&s->packets_sent));
    CHECK_EQUAL(helio_cell(&s->repair_packets), helio_cell(&s->naks_answered_repaired));
}

static void check_reader(trial *t, const reader *r) {
    for (unsigned s = 0; s < r->streams; s++) {
        const ledger *l = &r->ledgers[s];
        CHECK(l->has_ended);
        delivered_total += l->delivered;
        lost_total += l->lost;
        if (t->is_gentle) {
            CHECK_EQUAL(l->lost, 0);
        }
        if (t->is_gentle || t->is_announced) {
            CHECK_EQUAL(l->final_next, t->sent[l->source][r->topic]);
        }
    }
    if (t->is_gentle && r->is_on && r->receiver != t->late) {
        CHECK_EQUAL(r->streams, t->sources);
    }
}

static void begin_trial(trial *t) {
    t->is_gentle = chance(t, 0.4);
    t->sources = 1 + (unsigned)pick(t, SOURCES_MAX);
    t->receivers = 1 + (unsigned)pick(t, RECEIVERS_MAX);
    t->topics = 1 + (unsigned)pick(t, TOPICS_MAX);
    t->largest = chance(t, 0.5) ? SCRATCH_BYTES : 3000;
    t->late = chance(t, 0.3) ? t->receivers - 1 : RECEIVERS_MAX;
    choose_vanishing_type(t);
    for (unsigned i = 0; i < t->receivers; i++) {
        if (i != t->late) {
            add_receiver(t, i);
        }
    }
    for (unsigned i = 0; i < t->sources; i++) {
        add_source(t, i);
    }
}

/* The network is whole, and one more message of each topic tells whoever missed the last ones: now
 * no loss is without a word, and the last number is exact. */
static void let_announce(trial *t) {
    t->is_announced = true;
    t->drop_end_ns = 0;
    for (unsigned i = 0; i < t->sources; i++) {
        helio_sim_set_link(t->source[i].node, &(helio_sim_link){0});
    }
    for (unsigned i = 0; i < t->receivers; i++) {
        helio_sim_set_link(t->receiver[i].node, &(helio_sim_link){0});
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 50; i++) { /* longer than any deadline */
            pass_time(t, 10 * HELIO_MILLISECOND);
        }
        for (unsigned i = 0; i < t->sources && round == 0; i++) {
            for (unsigned k = 0; k < t->topics; k++) {
                append(t, i, k);
            }
            helio_tx_stream_flush(t->source[i].stream, world_now(&t->world));
            helio_sim_wake(t->source[i].node);
        }
    }
    for (unsigned i = 0; i < t->receivers; i++) {
        for (unsigned k = 0; k < t->topics; k++) {
            const reader *r = &t->reader[i][k];
            for (unsigned s = 0; s < r->streams; s++) {
                const ledger *l = &r->ledgers[s];
                if (l->is_open) {
                    CHECK_EQUAL(helio_cell(&l->stats->next_message), t->sent[l->source][k]);
                }
            }
        }
    }
}

static void close_sources(trial *t) {
    for (unsigned i = 0; i < t->sources; i++) {
        check_source_books(helio_tx_stream_object(t->source[i].stream)->record);
        helio_tx_stream_close(t->source[i].stream, world_now(&t->world));
        helio_sim_wake(t->source[i].node);
    }
    for (int i = 0; i < 300; i++) {
        pass_time(t, 10 * HELIO_MILLISECOND);
    }
    for (unsigned i = 0; i < t->sources; i++) {
        const helio_tx_stream_stats *s = helio_tx_stream_object(t->source[i].stream)->record;
        CHECK(helio_tx_stream_is_finished(t->source[i].stream, world_now(&t->world)));
        check_source_books(s);
        CHECK_EQUAL(helio_cell(&s->repair_queue), 0);
        world_end_source(&t->source[i]);
    }
    /* whoever missed every FIN finds the stream silent */
    for (int i = 0; i < 120; i++) {
        pass_time(t, 100 * HELIO_MILLISECOND);
    }
}

static void end_trial(trial *t) {
    for (unsigned i = 0; i < t->receivers; i++) {
        const helio_instance_stats *counts = world_counts(&t->receiver[i].instance);
        CHECK_EQUAL(helio_cell(&counts->rx_streams), 0);
        /* Nothing but what is remembered of streams that may come back. */
        CHECK(helio_cell(&counts->memory_used) <= 512 * helio_cell(&counts->streams_absent));
        CHECK_EQUAL(helio_cell(&counts->invalid_packets_payload), 0);
        CHECK_EQUAL(helio_cell(&counts->foreign_packets), 0);
        for (unsigned k = 0; k < t->topics; k++) {
            check_reader(t, &t->reader[i][k]);
        }
        world_end_receiver(&t->receiver[i]);
    }
    world_fini(&t->world);
    free(t->scratch);
    free(t);
}

static bool holds(uint64_t seed) {
    if (setjmp(check_out) != 0) {
        return false;
    }
    trial *t = calloc(1, sizeof *t);
    t->seed = seed;
    t->scratch = malloc(SCRATCH_BYTES + 8);
    helio_random_init(&t->random, seed);
    world_init(&t->world, seed * 31 + 7, 0);
    begin_trial(t);
    send_traffic(t);
    if (!t->is_gentle && seed % 4 != 0) { /* the fourth closes amid its losses */
        let_announce(t);
    }
    close_sources(t);
    end_trial(t);
    return true;
}

int main(int argc, char **argv) {
    const seeds seeds = seeds_from(argc, argv, 1000, 150);
    if (!seeds_hold("sim_property", seeds, holds)) {
        return 1;
    }
    printf("%" PRIu64 " seeds: %" PRIu64 " messages delivered, %" PRIu64 " reported lost\n",
           seeds.count, delivered_total, lost_total);
    return 0;
}
