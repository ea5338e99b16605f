/* Every kind of network damage against every other: loss (even and in bursts), reordering, doubles,
 * and one type of packet that suffers more than the rest, or vanishes for a while.  Under each:
 *
 *   every message once and in order, or as it comes; none lost, as histories and deadlines are ample;
 *   nothing before the first packet; the source's trail never goes back; memory does not grow;
 *   requests stay in proportion to what was missed.
 *
 *     sim_matrix [--seed N]     other numbers than the usual; a failure prints its cell and seed */
#include <stdbool.h>

#include "base/sequence.h"
#include "check.h"
#include "wire/pgm.h"
#include "world.h"

#define US HELIO_MICROSECOND
#define MS HELIO_MILLISECOND

enum {
    MESSAGES = 300,
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    STRIDE = 5, /* every fifth cell */
#else
    STRIDE = 1,
#endif
};

/* ---- the dimensions ---- */

typedef struct loss_kind {
    const char *name;
    double loss, burst_begin, burst_end, burst_loss;
} loss_kind;

static const loss_kind losses[] = {
    {"no loss", 0, 0, 0, 0},     {"0.1 % loss", 0.001, 0, 0, 0}, {"1 % loss", 0.01, 0, 0, 0},
    {"5 % loss", 0.05, 0, 0, 0}, {"20 % loss", 0.2, 0, 0, 0},    {"bursts", 0.001, 0.01, 0.2, 1},
};

typedef struct order_kind {
    const char *name;
    int64_t jitter_ns; /* packets are 10 us apart */
} order_kind;

static const order_kind orders[] = {
    {"in order", 0}, {"neighbours swapped", 15 * US}, {"up to 50 places off", 500 * US}};

static const double doubles[] = {0, 0.01};

typedef struct victim_kind {
    const char *name;
    uint8_t type;
    double share;
    int64_t from_ns, until_ns;
} victim_kind;

static const victim_kind victims[] = {
    {"all alike", 0xFF, 0, 0, 0},
    {"NAKs suffer", HELIO_PGM_TYPE_NAK, 0.5, 0, HELIO_NEVER},
    {"NCFs vanish", HELIO_PGM_TYPE_NCF, 1, 0, HELIO_NEVER},
    {"NAKs vanish for a while", HELIO_PGM_TYPE_NAK, 1, MS, 30 * MS},
    {"RDATA vanish for a while", HELIO_PGM_TYPE_RDATA, 1, MS, 30 * MS},
    {"RDATA suffer", HELIO_PGM_TYPE_RDATA, 0.5, 0, HELIO_NEVER},
    {"SPMs vanish for a while", HELIO_PGM_TYPE_SPM, 1, 0, 30 * MS},
};

enum {
    LOSSES = sizeof losses / sizeof losses[0],
    ORDERS = sizeof orders / sizeof orders[0],
    DOUBLES = sizeof doubles / sizeof doubles[0],
    VICTIMS = sizeof victims / sizeof victims[0],
    CELLS = LOSSES * ORDERS * DOUBLES * VICTIMS,
};

/* ---- a cell ---- */

enum { IN_ORDER, AS_IT_COMES, LOST_DEADLINE_MS = 3000 };

typedef struct reader {
    bool is_ordered;
    uint64_t messages;
    uint64_t next;
    helio_receiver_stats *stats;
    uint8_t times[MESSAGES];
} reader;

static struct {
    const loss_kind *loss;
    const order_kind *order;
    double doubles;
    const victim_kind *victim;
    helio_random random;
    bool has_trail;
    uint32_t trail; /* that the source told last */
} cell;

static world w;
static world_source source;
static world_receiver receivers[2];
static reader readers[2];
static helio_tx_topic *topic;

static void watch_trail(uint8_t type, const uint8_t *packet) {
    if (type != HELIO_PGM_TYPE_SPM && type != HELIO_PGM_TYPE_ODATA &&
        type != HELIO_PGM_TYPE_RDATA) {
        return;
    }
    const uint32_t trail = (uint32_t)packet[20] << 24 | (uint32_t)packet[21] << 16 |
                           (uint32_t)packet[22] << 8 | packet[23];
    CHECK(!cell.has_trail || !helio_sequence_before(trail, cell.trail));
    cell.has_trail = true;
    cell.trail = trail;
}

/* Called when a packet is sent, in the order of sending. */
static bool drops(void *context, const void *packet, size_t length, int64_t now_ns) {
    (void)context, (void)length;
    const uint8_t type = ((const uint8_t *)packet)[4];
    const victim_kind *victim = cell.victim;
    watch_trail(type, packet);
    return type == victim->type && now_ns >= victim->from_ns && now_ns < victim->until_ns &&
           helio_random_unit(&cell.random) < victim->share;
}

static void on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object) {
    (void)stream, (void)tsi;
    ((reader *)context)->stats = object->record;
}

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    reader *r = context;
    for (size_t i = 0; i < count; i++) {
        CHECK(messages[i].number < MESSAGES);
        CHECK_EQUAL(r->times[messages[i].number]++, 0);
        CHECK(!r->is_ordered || r->messages + i == 0 || messages[i].number == r->next);
        r->next = messages[i].number + 1;
        CHECK_EQUAL(messages[i].length, 1 + messages[i].number % 40);
    }
    r->messages += count;
    return count;
}

static void on_loss(void *context, const helio_loss *loss) {
    (void)context;
    CHECK_FAIL("%" PRIu64 " messages lost", loss->count);
}

static helio_sim_link make_link(void) {
    return (helio_sim_link){
        .loss = cell.loss->loss,
        .burst_begin = cell.loss->burst_begin,
        .burst_end = cell.loss->burst_end,
        .burst_loss = cell.loss->burst_loss,
        .duplicate = cell.doubles,
        .delay_ns = 25 * US,
        .jitter_ns = cell.order->jitter_ns,
        .drops = drops,
    };
}

static void begin_cell(uint64_t seed) {
    static const uint32_t starts[] = {0, 0xFFFFFF00, 0x7FFFFF00};
    const helio_sim_link link = make_link();
    world_init(&w, seed, 0);
    for (unsigned i = 0; i < 2; i++) {
        readers[i] = (reader){.is_ordered = i == IN_ORDER};
        helio_rx_endpoint_config config = world_receiver_config(100 + i);
        config.nak_backoff_ns = -1;
        config.nak_repeat_ns = config.nak_data_ns = 0;
        config.nak_deadline_ns = LOST_DEADLINE_MS * MS;
        config.nak_retries = 1000;
        config.in_arrival_order = i == AS_IT_COMES;
        config.seed = seed + i;
        world_add_receiver(&w, &receivers[i], &config);
        helio_sim_set_link(receivers[i].node, &link);
        helio_subscription *subscription;
        const helio_sink sink = {.context = &readers[i],
                                 .on_stream = on_stream,
                                 .on_messages = on_messages,
                                 .on_loss = on_loss};
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "t", &sink, world_now(&w),
                                                &subscription),
                    0);
    }
    helio_tx_stream_config config = world_source_config(1);
    config.first_sequence = starts[seed % 3];
    config.first_spm_sequence = starts[seed % 3];
    world_add_source(&w, &source, &config);
    /* The way up is as bad as the way down, but never keeps packets out of order. */
    helio_sim_set_link(source.node, &link);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
}

static void end_cell(void) {
    for (unsigned i = 0; i < 2; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

/* Has all there was since it met the stream; nobody comes so late that much was before. */
static bool has_all(const reader *r) {
    if (!r->stats) {
        return false;
    }
    const uint64_t before = helio_cell(&r->stats->messages_before_join);
    CHECK(before <= 20);
    return r->messages == MESSAGES - before;
}

static uint64_t memory(void) {
    return helio_cell(&world_counts(&receivers[0].instance)->memory_used) +
           helio_cell(&world_counts(&source.instance)->memory_used);
}

/* Requests: each missing packet is asked for once, and again for what gets lost on the way. */
static void check_requests(void) {
    const helio_instance_stats *counts = world_counts(&receivers[0].instance);
    const uint64_t naks = helio_cell(&counts->naks_sent);
    const double hurt = cell.loss->loss + (cell.loss->burst_begin > 0 ? 0.06 : 0);
    if (hurt == 0 && cell.order->jitter_ns == 0) {
        CHECK_EQUAL(naks, 0);
    }
    /* The dreariest: 20 % each way, with half of one type gone, asks three times for each. */
    const double reorder = cell.order->jitter_ns > 0 ? 1.2 : 0;
    CHECK((double)naks <= 20 + MESSAGES * (3 * hurt + reorder) * 12);
}

static void run_cell(uint64_t seed) {
    static uint8_t data[64];
    begin_cell(seed);
    world_run(&w, MS);
    const uint64_t before = memory();
    for (int i = 0; i < MESSAGES; i++) {
        helio_tx_stream_append(source.stream, topic, data, (size_t)(1 + i % 40),
                               world_now(&w).wall_ns, world_now(&w));
        helio_tx_stream_flush(source.stream, world_now(&w));
        helio_sim_wake(source.node);
        world_run(&w, 10 * US);
    }
    for (int i = 0; i < 250 && !(has_all(&readers[0]) && has_all(&readers[1])); i++) {
        world_run(&w, 10 * MS);
    }
    CHECK(has_all(&readers[IN_ORDER]));
    CHECK(has_all(&readers[AS_IT_COMES]));
    if (before > 0 && helio_cell(&world_counts(&receivers[0].instance)->rx_streams) == 1) {
        CHECK(memory() <= before + (UINT64_C(4) << 20)); /* a stream met late, no more */
    }
    check_requests();
    end_cell();
}

static bool holds(size_t index, uint64_t seed) {
    size_t left = index;
    cell.has_trail = false;
    cell.loss = &losses[left % LOSSES];
    left /= LOSSES;
    cell.order = &orders[left % ORDERS];
    left /= ORDERS;
    cell.doubles = doubles[left % DOUBLES];
    left /= DOUBLES;
    cell.victim = &victims[left % VICTIMS];
    helio_random_init(&cell.random, seed);
    if (setjmp(check_out) == 0) {
        run_cell(seed);
        return true;
    }
    fprintf(stderr, "failed with seed %" PRIu64 ": %s, %s, %.0f %% doubles, %s\n", seed,
            cell.loss->name, cell.order->name, 100 * cell.doubles, cell.victim->name);
    return false;
}

int main(int argc, char **argv) {
    const uint64_t first =
        argc == 3 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 10) : 1;
    size_t cells = 0, failures = 0;
    for (size_t i = 0; i < CELLS; i += STRIDE, cells++) {
        failures += !holds(i, first + i);
    }
    printf("%zu cells, %zu failed\n", cells, failures);
    return failures > 0;
}
