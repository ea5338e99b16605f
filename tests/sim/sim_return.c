/* Streams that go away and come back, held against a thousand networks: for each subscription and
 * each life of a source, delivered and reported lost together are what was sent while it was
 * subscribed, whatever the outages were and however they compare to stream_expiry.
 *
 *     sim_return [--seeds N] [--first N]
 *
 * Each seed makes a network that loses packets; sources that end by FIN, by RST or without a word
 * and start again; receivers that restart, subscribe and unsubscribe; outages of some of them,
 * shorter and longer than the expiry, several in a row; both orders, bare payloads, receivers that
 * acknowledge, connections instead of a group.  A failure prints its seed.
 *
 * What is checked: a message comes once, and in order where order is asked for; what is lost is
 * told once; a stream that comes back goes on with the number it ended with; when the network is
 * healed nothing is missing without a word, up to the last message sent; of a source that died,
 * every packet it told of was passed or reported; the books balance; nothing is left behind. */
#include <stdbool.h>

#include "check.h"
#include "reconciliation.h"
#include "seeds.h"
#include "world.h"

enum {
    SOURCES_MAX = 2,
    RECEIVERS_MAX = 2,
    TOPICS_MAX = 3,
    LIVES_MAX = 16,   /* of sources */
    READERS_MAX = 64, /* subscriptions, those gone included */
    NUMBERS_MAX = 8192,
    BODY_MAX = 4000,
};

#define MS HELIO_MILLISECOND

static uint64_t delivered_total, lost_total, returns_total, outages_total, lives_total;

typedef struct trial trial;

/* What one subscription has had of one topic of one life of a source. */
typedef struct account {
    bool is_open, has_start;
    bool may_go_back; /* the stream is new, and its source waits for acknowledgements */
    uint32_t stream;
    uint64_t next;  /* in turn */
    uint64_t first; /* lowest number */
    uint64_t end;   /* after the highest */
    uint64_t final_next;
    bool has_final;
    helio_receiver_stats *stats;
    uint8_t *fate; /* by number: 1 delivered, 2 lost */
} account;

typedef struct reader {
    trial *trial;
    unsigned receiver, topic;
    bool is_on;
    bool is_app;
    helio_subscription *subscription;
    uint32_t streams;
    unsigned life_of[LIVES_MAX * 8]; /* by stream number */
    account of[LIVES_MAX];
} reader;

/* One life of a source. */
typedef struct life {
    world_source source;
    helio_tx_topic *topic[TOPICS_MAX];
    uint64_t sent[TOPICS_MAX];
    uint32_t first_sequence;
    bool is_alive;
    bool is_told; /* it ended while all could hear it */
} life;

typedef struct receiver {
    world_receiver world;
    trial *trial;
    bool is_away;
    bool never_asks;
    int64_t back_ns;
    int64_t expiry_ns;
    uint32_t told[LIVES_MAX]; /* the newest packet it was told of */
    bool has_told[LIVES_MAX];
} receiver;

struct trial {
    uint64_t seed;
    helio_random random;
    world world;
    bool is_raw, in_arrival_order, is_connected, is_acked, is_rough, has_acts;
    unsigned topics, sources, receivers, lives, readers, number;
    unsigned life_at[SOURCES_MAX]; /* the life that each source is in */
    life life[LIVES_MAX];
    receiver receiver[RECEIVERS_MAX];
    reader reader[READERS_MAX];
};

static uint64_t pick(trial *t, uint64_t below) {
    return helio_random_below(&t->random, below);
}

static bool chance(trial *t, double share) {
    return helio_random_unit(&t->random) < share;
}

static const char *const topics[] = {"prices", "orders", "news"};

/* ---- the sink ---- */

static void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object) {
    reader *r = context;
    CHECK_EQUAL(stream, r->streams);
    CHECK(stream < sizeof r->life_of / sizeof r->life_of[0]);
    r->streams++;
    const unsigned i = tsi->gsi[5];
    r->life_of[stream] = i;
    account *a = &r->of[i];
    CHECK(!a->is_open);
    returns_total += a->has_final;
    a->is_open = true;
    a->stream = stream;
    a->stats = object->record;
    a->may_go_back = a->has_final && r->is_app;
}

static account *account_of(reader *r, uint32_t stream) {
    CHECK(stream < r->streams);
    account *a = &r->of[r->life_of[stream]];
    CHECK(a->is_open && a->stream == stream);
    return a;
}

static uint32_t place_of(const trial *t, const life *l, uint64_t number) {
    return t->is_raw ? (uint32_t)number - l->first_sequence : (uint32_t)number;
}

static void note(reader *r, account *a, uint64_t number, uint64_t count, uint8_t fate) {
    const life *l = &r->trial->life[a - r->of];
    if (!a->fate) {
        a->fate = calloc(NUMBERS_MAX, 1);
    }
    for (uint64_t n = number; n < number + count; n++) {
        const uint32_t at = place_of(r->trial, l, n);
        CHECK(at < NUMBERS_MAX);
        /* What an application has not acknowledged may come again. */
        CHECK(a->fate[at] == 0 || (r->is_app && a->has_final));
        a->fate[at] = fate;
        (fate == 1 ? &delivered_total : &lost_total)[0]++;
        if (!a->has_start || n < a->first) {
            a->first = n;
        }
        if (!a->has_start || n >= a->end) {
            a->end = n + 1;
        }
        a->has_start = true;
    }
}

static void in_turn(const reader *r, account *a, uint64_t number, uint64_t count) {
    if (r->trial->in_arrival_order && !r->trial->is_raw) {
        return;
    }
    if (a->has_start && !(a->may_go_back && number <= a->next)) {
        CHECK_EQUAL(number, a->next);
    }
    a->may_go_back = false;
    a->next = number + count;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    reader *r = context;
    trial *t = r->trial;
    const size_t taken = t->is_rough && chance(t, 0.05) ? pick(t, count + 1) : count;
    for (size_t i = 0; i < taken; i++) {
        account *a = account_of(r, messages[i].stream);
        uint64_t told[3];
        CHECK(messages[i].length >= sizeof told);
        memcpy(told, messages[i].data, sizeof told);
        CHECK_EQUAL(told[0], (uint64_t)(a - r->of));
        CHECK(t->is_raw || told[1] == r->topic);
        CHECK_EQUAL((uint32_t)told[2], (uint32_t)messages[i].number);
        in_turn(r, a, messages[i].number, 1);
        note(r, a, messages[i].number, 1, 1);
    }
    return taken;
}

static void on_loss(void *context, const helio_loss *loss) {
    reader *r = context;
    account *a = account_of(r, loss->stream);
    CHECK(loss->count > 0 && loss->count < NUMBERS_MAX);
    in_turn(r, a, loss->first, loss->count);
    note(r, a, loss->first, loss->count, 2);
}

static void on_stream_end(void *context, uint32_t stream) {
    reader *r = context;
    account *a = account_of(r, stream);
    const uint64_t before = helio_cell(&a->stats->messages_before_join);
    const uint64_t next = helio_cell(&a->stats->next_message);
    if (a->has_final && !r->is_app) {
        CHECK_EQUAL(before, a->final_next);
    }
    if (a->has_start && !(r->trial->in_arrival_order && !r->trial->is_raw) && a->next > before) {
        CHECK_EQUAL(next, a->next);
    }
    a->final_next = next;
    a->has_final = true;
    a->is_open = false;
}

/* ---- people ---- */

static void set_link(trial *t, helio_sim_node *node, bool is_healed) {
    static const double losses[] = {0, 0, 0.01, 0.1, 0.25};
    const helio_sim_link link = {
        .loss = is_healed || !t->is_rough ? 0 : losses[pick(t, 5)],
        .delay_ns = is_healed ? 0 : (int64_t)pick(t, 200) * HELIO_MICROSECOND,
        .jitter_ns = !is_healed && chance(t, 0.3) ? 200 * HELIO_MICROSECOND : 0,
    };
    helio_sim_set_link(node, &link);
}

static void start_source(trial *t, unsigned i) {
    static const uint32_t starts[] = {0, 0xFFFFFFC0, 0x7FFFFFC0, 77};
    if (t->lives == LIVES_MAX) {
        return;
    }
    const unsigned number = t->lives++;
    life *l = &t->life[number];
    t->life_at[i] = number;
    helio_tx_stream_config config = world_source_config(number);
    config.window_packets = 16u << pick(t, 7);
    config.first_sequence = l->first_sequence = starts[pick(t, 4)];
    config.late_join = chance(t, 0.5);
    config.is_raw = t->is_raw;
    config.is_connected = t->is_connected;
    config.announce_interval_ns = 20 * MS;
    config.ambient_interval_ns = (int64_t)(5 + pick(t, 60)) * MS;
    config.heartbeat_max_ns = 100 * MS;
    config.history_ns = chance(t, 0.2) ? 30 * MS : 0;
    config.linger_ns = 400 * MS;
    if (t->is_acked) {
        config.acks = (uint32_t)pick(t, 2);
        config.acker_expiry_ns = 5 * HELIO_SECOND;
    }
    world_add_source(&t->world, &l->source, &config);
    set_link(t, l->source.node, false);
    for (unsigned k = 0; k < t->topics; k++) {
        CHECK_EQUAL(helio_tx_stream_add_topic(l->source.stream, topics[k], world_now(&t->world),
                                              &l->topic[k]),
                    0);
    }
    l->is_alive = true;
    lives_total++;
}

/* What a receiver is told of a stream: the newest packet. */
static void on_receiver_packet(void *context, const void *packet, size_t length,
                               const helio_address *from, helio_moment moment) {
    receiver *r = context;
    helio_pgm_packet decoded;
    /* A stream is not met by its end, when nobody who followed it is left. */
    const unsigned ending = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST;
    if (helio_pgm_decode(packet, length, &decoded) == 0 &&
        ((decoded.type == HELIO_PGM_TYPE_SPM && !(decoded.options & ending)) ||
         decoded.type == HELIO_PGM_TYPE_ODATA)) {
        const unsigned i = decoded.tsi.gsi[5];
        const uint32_t lead = decoded.type == HELIO_PGM_TYPE_SPM ? decoded.lead : decoded.sequence;
        if (!r->has_told[i] || (int32_t)(lead - r->told[i]) > 0) {
            r->told[i] = lead;
        }
        r->has_told[i] = true;
    }
    world_receiver_on_packet(&r->world, packet, length, from, moment);
}

static void receiver_poll(void *context, helio_moment moment) {
    world_receiver_poll(&((receiver *)context)->world, moment);
}

static int64_t receiver_deadline(void *context) {
    return world_receiver_deadline(&((receiver *)context)->world);
}

static void subscribe(trial *t, unsigned i, unsigned k) {
    if (t->readers == READERS_MAX) {
        return;
    }
    reader *r = &t->reader[t->readers++];
    *r = (reader){.trial = t, .receiver = i, .topic = k, .is_on = true};
    helio_sink sink = {r, on_stream, on_stream_end, on_messages, .on_loss = on_loss};
    if (t->is_acked && chance(t, 0.6)) {
        sink.ack = chance(t, 0.5) ? HELIO_SINK_ACK_AUTO : HELIO_SINK_ACK_APP;
    }
    r->is_app = sink.ack == HELIO_SINK_ACK_APP;
    CHECK_EQUAL(helio_rx_endpoint_subscribe(t->receiver[i].world.endpoint, topics[k], &sink,
                                            world_now(&t->world), &r->subscription),
                0);
}

static void start_receiver(trial *t, unsigned i) {
    receiver *r = &t->receiver[i];
    char name[32];
    helio_rx_endpoint_config config = world_receiver_config(1000 + ++t->number);
    snprintf(name, sizeof name, "receiver-%u", t->number);
    config.instance = name;
    config.window_packets = 16u << pick(t, 7);
    config.nak_deadline_ns = (int64_t)(5 + pick(t, 100)) * MS;
    config.nak_retries = chance(t, 0.3) ? 1 : 64;
    config.reorder_packets = (uint32_t)pick(t, 4);
    config.is_raw = t->is_raw;
    config.is_connected = t->is_connected;
    config.in_arrival_order = t->in_arrival_order;
    config.never_asks = !t->is_acked && chance(t, 0.1);
    config.join_history = chance(t, 0.3);
    config.receiver = 5000 + i; /* the same in each life */
    config.ack_packets = 8;
    config.ack_interval_ns = 5 * MS;
    config.stream_expiry_ns = (int64_t)(20 + pick(t, 300)) * MS;
    config.seed = helio_random_next(&t->random);
    *r = (receiver){
        .trial = t, .expiry_ns = config.stream_expiry_ns, .never_asks = config.never_asks};
    world_add_receiver(&t->world, &r->world, &config);
    helio_sim_attach(r->world.node,
                     &(helio_sim_handler){r, on_receiver_packet, receiver_poll, receiver_deadline});
    set_link(t, r->world.node, false);
    for (unsigned k = 0; k < t->topics; k++) {
        if (k == 0 || chance(t, 0.6)) {
            subscribe(t, i, k);
        }
    }
}

static void end_receiver(trial *t, unsigned i) {
    const helio_instance_stats *counts = world_counts(&t->receiver[i].world.instance);
    helio_rx_endpoint_destroy(t->receiver[i].world.endpoint, world_now(&t->world));
    t->receiver[i].world.endpoint = NULL;
    CHECK_EQUAL(helio_cell(&counts->rx_streams), 0);
    CHECK_EQUAL(helio_cell(&counts->memory_used), 0);
    CHECK_EQUAL(helio_cell(&counts->streams_absent), 0);
    CHECK_EQUAL(helio_cell(&counts->streams_forgotten), 0);
    CHECK_EQUAL(helio_cell(&counts->invalid_packets_payload), 0);
    CHECK_EQUAL(helio_cell(&counts->foreign_packets), 0);
    world_end_receiver(&t->receiver[i].world);
    for (unsigned k = 0; k < t->readers; k++) {
        if (t->reader[k].receiver == i) {
            t->reader[k].is_on = false;
        }
    }
}

/* ---- time ---- */

static void acknowledge(trial *t, reader *r) {
    for (unsigned i = 0; i < t->lives; i++) {
        const account *a = &r->of[i];
        if (a->is_open && a->has_start && chance(t, 0.7)) {
            helio_rx_endpoint_acknowledge(t->receiver[r->receiver].world.endpoint, r->subscription,
                                          a->stream, helio_cell(&a->stats->next_message),
                                          world_now(&t->world));
        }
    }
}

static void pass_time(trial *t, int64_t ns) {
    const int64_t end_ns = world_now(&t->world).now_ns + ns;
    while (world_now(&t->world).now_ns < end_ns) {
        const int64_t left_ns = end_ns - world_now(&t->world).now_ns;
        world_run(&t->world, left_ns < 10 * MS ? left_ns : 10 * MS);
        for (unsigned i = 0; i < t->receivers; i++) {
            receiver *r = &t->receiver[i];
            if (r->is_away && world_now(&t->world).now_ns >= r->back_ns) {
                r->is_away = false;
                helio_sim_set_partition(r->world.node, 0);
            }
            if (helio_rx_endpoint_is_blocked(r->world.endpoint)) {
                helio_rx_endpoint_poll(r->world.endpoint, world_now(&t->world));
                helio_sim_wake(r->world.node);
            }
        }
        for (unsigned k = 0; t->is_acked && k < t->readers; k++) {
            if (t->reader[k].is_on && t->reader[k].is_app) {
                acknowledge(t, &t->reader[k]);
            }
        }
    }
}

/* ---- what happens ---- */

static void send(trial *t, life *l, unsigned k) {
    static uint8_t data[BODY_MAX];
    if (l->sent[k] >= NUMBERS_MAX - 64) {
        return;
    }
    const size_t most = t->is_raw ? 1000 : chance(t, 0.05) ? BODY_MAX : 300;
    const size_t bytes = 24 + pick(t, most - 24);
    if (helio_tx_stream_admit(l->source.stream, l->topic[k], bytes, world_now(&t->world)) !=
        HELIO_ADMIT_GO) {
        return;
    }
    const uint64_t number = t->is_raw ? helio_tx_stream_lead(l->source.stream) + 1 : l->sent[k];
    const uint64_t words[] = {(uint64_t)(l - t->life), k, number};
    memcpy(data, words, sizeof words);
    CHECK_EQUAL(helio_tx_stream_append(l->source.stream, l->topic[k], data, bytes,
                                       world_now(&t->world).wall_ns, world_now(&t->world)),
                0);
    l->sent[k]++;
}

static void send_some(trial *t) {
    life *l = &t->life[t->life_at[pick(t, t->sources)]];
    if (!l->is_alive) {
        return;
    }
    for (uint64_t left = 1 + pick(t, 12); left > 0; left--) {
        send(t, l, (unsigned)pick(t, t->topics));
    }
    helio_tx_stream_flush(l->source.stream, world_now(&t->world));
    helio_sim_wake(l->source.node);
}

/* Shorter than the expiry, about as long, or far longer. */
static void go_away(trial *t, receiver *r) {
    const int64_t most_ns = chance(t, 0.5) ? 2 * r->expiry_ns : 6 * r->expiry_ns;
    r->is_away = true;
    r->back_ns = world_now(&t->world).now_ns + (int64_t)pick(t, (uint64_t)most_ns);
    helio_sim_set_partition(r->world.node, 1);
    outages_total++;
}

static void heal(trial *t) {
    for (unsigned i = 0; i < t->lives; i++) {
        if (t->life[i].is_alive) {
            helio_sim_set_link(t->life[i].source.node, &(helio_sim_link){0});
        }
    }
    for (unsigned i = 0; i < t->receivers; i++) {
        helio_sim_set_link(t->receiver[i].world.node, &(helio_sim_link){0});
        helio_sim_set_partition(t->receiver[i].world.node, 0);
        t->receiver[i].is_away = false;
    }
}

/* A source ends: by FIN in time, by FIN when perhaps nobody hears, by RST, or without a word. */
static void end_source(trial *t, life *l) {
    const bool lingers = chance(t, 0.5), is_heard = lingers && chance(t, 0.5);
    if (is_heard) {
        heal(t);
        pass_time(t, t->has_acts ? 400 * MS : 0); /* longer than any suspension */
    }
    if (lingers) {
        helio_tx_stream_close(l->source.stream, world_now(&t->world));
        helio_sim_wake(l->source.node);
        pass_time(t, 500 * MS);
        CHECK(helio_tx_stream_is_finished(l->source.stream, world_now(&t->world)));
        l->is_told = is_heard;
    } else if (chance(t, 0.5)) {
        helio_tx_stream_abort(l->source.stream);
    }
    l->is_alive = false;
    world_end_source(&l->source);
}

static void restart_source(trial *t) {
    const unsigned i = (unsigned)pick(t, t->sources);
    if (t->lives == LIVES_MAX || !t->life[t->life_at[i]].is_alive) {
        return;
    }
    end_source(t, &t->life[t->life_at[i]]);
    start_source(t, i);
}

static void restart_receiver(trial *t) {
    const unsigned i = (unsigned)pick(t, t->receivers);
    if (t->readers + TOPICS_MAX > READERS_MAX) {
        return;
    }
    end_receiver(t, i);
    start_receiver(t, i);
}

static void change_subscription(trial *t) {
    reader *r = &t->reader[pick(t, t->readers)];
    if (!r->is_on || t->readers == READERS_MAX) {
        return;
    }
    helio_rx_endpoint_unsubscribe(t->receiver[r->receiver].world.endpoint, r->subscription,
                                  world_now(&t->world));
    r->is_on = false;
    subscribe(t, r->receiver, r->topic);
}

/* The source does something to a receiver it knows of. */
static void act(trial *t) {
    static const helio_action actions[] = {HELIO_ACTION_SUSPEND, HELIO_ACTION_EXPEL};
    life *l = &t->life[t->life_at[pick(t, t->sources)]];
    uint32_t places = 0;
    if (!l->is_alive) {
        return;
    }
    const helio_receiver_view *views = helio_tx_stream_views(l->source.stream, &places);
    const uint32_t place = places ? (uint32_t)pick(t, places) : 0;
    if (places && (views[place].flags & HELIO_VIEW_PRESENT)) {
        helio_tx_stream_act(l->source.stream, place, actions[pick(t, 2)],
                            (int64_t)(10 + pick(t, 300)) * MS, "test", true, world_now(&t->world));
    }
}

static void run(trial *t) {
    const unsigned steps = 30 + (unsigned)pick(t, 60);
    for (unsigned s = 0; s < steps; s++) {
        if (chance(t, 0.8)) {
            send_some(t);
        }
        receiver *r = &t->receiver[pick(t, t->receivers)];
        if (!r->is_away && chance(t, 0.12)) {
            go_away(t, r);
        }
        if (chance(t, 0.03)) {
            restart_source(t);
        }
        if (chance(t, 0.02)) {
            restart_receiver(t);
        }
        if (chance(t, 0.03)) {
            change_subscription(t);
        }
        if (t->has_acts && chance(t, 0.05)) {
            act(t);
        }
        pass_time(t, (int64_t)pick(t, chance(t, 0.1) ? 400 : 20) * MS);
        CHECK(books_hold(t->world.stats));
    }
}

/* ---- what must hold ---- */

/* Every number from the first to where the stream ended came or was reported.  What was handed over
 * before its turn when the receiver closed is beyond that. */
static void check_whole(const trial *t, const account *a, const life *l) {
    const uint64_t end = a->end < a->final_next ? a->end : a->final_next;
    for (uint64_t n = a->first; a->has_start && n < end; n++) {
        CHECK(a->fate[place_of(t, l, n)] != 0);
    }
}

/* The next number of a topic, as its source has it. */
static uint64_t end_of(const trial *t, const life *l, unsigned k) {
    return t->is_raw ? l->first_sequence + l->sent[k] : l->sent[k];
}

static void check_exact(const trial *t, const reader *r, const life *l) {
    const account *a = &r->of[l - t->life];
    if (a->is_open || a->has_final) {
        CHECK_EQUAL((uint32_t)(a->is_open ? helio_cell(&a->stats->next_message) : a->final_next),
                    (uint32_t)end_of(t, l, r->topic));
    }
}

/* The source can say where its topics are.  One whose history waits for acknowledgements cannot:
 * a receiver that began to acknowledge late does not vote for what it had before. */
static bool can_tell(const trial *t, const life *l) {
    return helio_tx_stream_admit(l->source.stream, l->topic[0], BODY_MAX, world_now(&t->world)) ==
           HELIO_ADMIT_GO;
}

/* All is healed and announced: nothing is missing without a word. */
static void settle(trial *t) {
    heal(t);
    pass_time(t, 700 * MS); /* longer than any suspension */
    for (unsigned i = 0; i < t->lives; i++) {
        life *l = &t->life[i];
        for (unsigned k = 0; l->is_alive && k < t->topics; k++) {
            send(t, l, k);
        }
        if (l->is_alive) {
            helio_tx_stream_flush(l->source.stream, world_now(&t->world));
        }
        if (l->is_alive) {
            helio_sim_wake(l->source.node);
        }
    }
    pass_time(t, 600 * MS);
    for (unsigned i = 0; i < t->lives; i++) {
        for (unsigned k = 0; t->life[i].is_alive && k < t->readers; k++) {
            const reader *r = &t->reader[k];
            if (!r->is_on || !can_tell(t, &t->life[i])) {
                continue;
            }
            CHECK(r->of[i].is_open || r->of[i].has_final); /* silent between heartbeats */
            check_exact(t, r, &t->life[i]);
        }
    }
    CHECK(books_are_settled(t->world.stats));
}

/* Every packet a receiver was told of was passed on or reported lost. */
static void check_told(const trial *t, const receiver *r, unsigned number) {
    const helio_stats *stats = t->world.stats;
    const uint64_t used = helio_cell(&stats->header->objects_used);
    char tsi[HELIO_TSI_TEXT], name[32];
    const helio_tx_stream_config config = world_source_config(number);
    helio_tsi_format(&config.tsi, tsi);
    snprintf(name, sizeof name, "receiver-%u", t->number);
    uint32_t trail = 0;
    bool has_any = false;
    for (uint64_t i = 0; i < used; i++) {
        const helio_segment_object *object = &stats->objects[i];
        if (object->scope != HELIO_SCOPE_RX_STREAM) {
            continue;
        }
        const char *stream = books_label(object, "stream");
        const char *from = books_label(object, "instance");
        if (strncmp(stream, tsi, strlen(tsi)) != 0 || strncmp(from, name, strlen(name)) != 0 ||
            from[strlen(name)] != '\n') {
            continue;
        }
        const helio_rx_stream_stats *record = books_record(stats, object);
        const uint32_t at = (uint32_t)helio_cell(&record->window_trail);
        if (!has_any || (int32_t)(at - trail) > 0) {
            trail = at;
        }
        has_any = true;
    }
    if (has_any && r->has_told[number]) {
        CHECK((int32_t)(trail - r->told[number]) > 0);
    }
}

static void finish(trial *t) {
    for (unsigned i = 0; i < t->lives; i++) {
        life *l = &t->life[i];
        if (!l->is_alive) {
            continue;
        }
        helio_tx_stream_close(l->source.stream, world_now(&t->world));
        helio_sim_wake(l->source.node);
        l->is_told = true;
    }
    pass_time(t, 500 * MS);
    for (unsigned i = 0; i < t->lives; i++) {
        if (t->life[i].is_alive) {
            world_end_source(&t->life[i].source);
        }
    }
    pass_time(t, HELIO_SECOND); /* longer than any expiry */
    for (unsigned i = 0; i < t->receivers; i++) {
        CHECK_EQUAL(helio_cell(&world_counts(&t->receiver[i].world.instance)->rx_streams), 0);
    }
    for (unsigned i = 0; i < t->lives; i++) {
        const life *l = &t->life[i];
        for (unsigned k = 0; k < t->readers; k++) {
            const reader *r = &t->reader[k];
            check_whole(t, &r->of[i], l);
            /* The end may find no room in a window, to be asked for again. */
            const bool can_miss_it = t->receiver[r->receiver].never_asks && !l->is_alive;
            if (r->is_on && l->is_told && !t->is_acked && !can_miss_it) {
                check_exact(t, r, l);
            }
        }
        if (!t->has_acts && t->receivers == 1) { /* the last one started has the name */
            check_told(t, &t->receiver[0], i);
        }
    }
}

static void end_trial(trial *t) {
    for (unsigned i = 0; i < t->receivers; i++) {
        end_receiver(t, i);
    }
    CHECK(books_hold(t->world.stats));
    for (unsigned k = 0; k < t->readers; k++) {
        for (unsigned i = 0; i < t->lives; i++) {
            free(t->reader[k].of[i].fate);
        }
    }
    world_fini(&t->world);
    free(t);
}

static bool holds(uint64_t seed) {
    if (setjmp(check_out) != 0) {
        return false;
    }
    trial *t = calloc(1, sizeof *t);
    t->seed = seed;
    helio_random_init(&t->random, seed);
    world_init(&t->world, seed * 31 + 7, 0);
    t->is_raw = chance(t, 0.15);
    t->in_arrival_order = chance(t, 0.4);
    t->is_connected = chance(t, 0.25);
    t->is_acked = !t->is_raw && chance(t, 0.3);
    t->is_rough = chance(t, 0.6);
    t->has_acts = chance(t, 0.2);
    t->topics = t->is_raw ? 1 : 1 + (unsigned)pick(t, TOPICS_MAX);
    t->sources = 1 + (unsigned)pick(t, SOURCES_MAX);
    t->receivers = 1 + (unsigned)pick(t, RECEIVERS_MAX);
    for (unsigned i = 0; i < t->receivers; i++) {
        start_receiver(t, i);
    }
    for (unsigned i = 0; i < t->sources; i++) {
        start_source(t, i);
    }
    run(t);
    settle(t);
    finish(t);
    end_trial(t);
    return true;
}

int main(int argc, char **argv) {
    const seeds seeds = seeds_from(argc, argv, 2000, 200);
    if (!seeds_hold("sim_return", seeds, holds)) {
        return 1;
    }
    printf("%" PRIu64 " seeds: %" PRIu64 " lives, %" PRIu64 " outages, %" PRIu64
           " returns; %" PRIu64 " messages delivered, %" PRIu64 " reported lost\n",
           seeds.count, lives_total, outages_total, returns_total, delivered_total, lost_total);
    return 0;
}
