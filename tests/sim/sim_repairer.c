/* A site with a designated local repairer, on many simulated networks.
 *
 *     sim_repairer [--seeds N] [--first N]
 *
 * A source sends to a group over a long way; at the site are a repairer and four receivers that ask
 * it first.  What is checked, with the seed's loss, length of the way, packet sizes and jitter:
 *
 *   loss behind the repairer     the source gets no request and sends no repair
 *   loss before the site         the repairer asks for all of them: each packet is repaired once
 *   the repairer is away         within a bounded time the source repairs everything
 *   it goes away and comes back  nothing is lost; it is asked again
 *   it keeps too little          what it dropped comes from the source
 *
 * In each of them every receiver gets every message once and in order, and the books balance. */
#include "check.h"
#include "reconciliation.h"
#include "seeds.h"
#include "world.h"

enum { RECEIVERS = 4, MESSAGES = 400, BODY_MAX = 1000 };

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

typedef enum scene { BEHIND, BEFORE, AWAY, AWAY_FOR_A_WHILE, FORGETFUL, SCENES } scene;

typedef struct site_receiver {
    world_receiver world;
    uint64_t next; /* message expected */
} site_receiver;

typedef struct trial {
    helio_random random;
    double loss;
    bool is_lossy;
    world world;
    world_source source;
    site_receiver repairer, receivers[RECEIVERS];
    helio_tx_topic *topic;
    uint64_t sent;
} trial;

static uint64_t repaired_at_site, repaired_by_source;

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    site_receiver *r = context;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(messages[i].number, r->next);
        CHECK(messages[i].length > 0 && ((const uint8_t *)messages[i].data)[0] == (r->next & 255));
        r->next++;
    }
    return count;
}

static void on_loss(void *context, const helio_loss *loss) {
    (void)context;
    CHECK_EQUAL(loss->count, 0); /* nothing is ever lost here */
}

/* Original data is lost at random; all that belongs to repairs arrives. */
static bool loses_data(void *context, const void *packet, size_t length, int64_t now_ns) {
    trial *t = context;
    (void)now_ns;
    return t->is_lossy && length > 4 && ((const uint8_t *)packet)[4] == HELIO_PGM_TYPE_ODATA &&
           helio_random_unit(&t->random) < t->loss;
}

/* The way to the site loses a packet for all of it or for nobody. */
static bool loses_for_the_site(void *context, const void *packet, size_t length, int64_t now_ns) {
    trial *t = context;
    const uint8_t *bytes = packet;
    (void)now_ns;
    if (!t->is_lossy || length < HELIO_PGM_DATA_HEADER || bytes[4] != HELIO_PGM_TYPE_ODATA) {
        return false;
    }
    helio_random draw;
    helio_random_init(&draw, helio_get32(bytes + 16) * UINT64_C(0x9E3779B97F4A7C15));
    return helio_random_unit(&draw) < t->loss;
}

static void add(trial *t, site_receiver *r, unsigned number, const helio_address *repairer,
                uint64_t kept_bytes, const helio_sim_link *link) {
    helio_rx_endpoint_config config = world_receiver_config(number);
    config.nak_backoff_ns = -1;
    config.nak_repeat_ns = config.nak_data_ns = 0; /* measured */
    config.group_size = RECEIVERS;
    if (repairer) {
        config.repairer = *repairer;
    } else {
        config.repairs = (helio_dlr_config){.bytes = kept_bytes, .age_ns = HELIO_SECOND};
    }
    world_add_receiver(&t->world, &r->world, &config);
    helio_sim_set_link(r->world.node, link);
    const helio_sink sink = {.context = r, .on_messages = on_messages, .on_loss = on_loss};
    helio_subscription *subscription;
    CHECK_EQUAL(helio_rx_endpoint_subscribe(r->world.endpoint, "prices", &sink,
                                            world_now(&t->world), &subscription),
                0);
}

static void trial_begin(trial *t, uint64_t seed, scene scene) {
    *t = (trial){0};
    helio_random_init(&t->random, seed * SCENES + scene);
    t->loss = 0.02 + 0.1 * helio_random_unit(&t->random);
    world_init(&t->world, seed, 0);
    const helio_address at = world_host(50, 50000);
    helio_sim_link link = {
        .delay_ns = 20 * US + (int64_t)helio_random_below(&t->random, 100 * US),
        .jitter_ns = (int64_t)helio_random_below(&t->random, 20 * US),
        .drops = scene == BEFORE ? loses_for_the_site : loses_data,
        .context = t,
    };
    for (unsigned i = 0; i < RECEIVERS; i++) {
        add(t, &t->receivers[i], 100 + i, &at, 0, &link);
    }
    if (scene != BEFORE) {
        link.drops = NULL; /* the repairer gets everything */
    }
    add(t, &t->repairer, 50, NULL, scene == FORGETFUL ? 16 << 10 : 8 << 20, &link);
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 4096;
    world_add_source(&t->world, &t->source, &config);
    helio_sim_set_link(t->source.node, &(helio_sim_link){.delay_ns = link.delay_ns + 3 * MS});
    CHECK_EQUAL(
        helio_tx_stream_add_topic(t->source.stream, "prices", world_now(&t->world), &t->topic), 0);
    world_run(&t->world, 20 * MS);
    t->is_lossy = true;
}

static void send(trial *t, unsigned count) {
    uint8_t body[BODY_MAX];
    for (unsigned i = 0; i < count; i++) {
        const helio_moment moment = world_now(&t->world);
        const size_t length = 1 + helio_random_below(&t->random, BODY_MAX);
        memset(body, (int)(t->sent++ & 255), length);
        helio_tx_stream_append(t->source.stream, t->topic, body, length, moment.wall_ns, moment);
        helio_tx_stream_flush(t->source.stream, moment);
        helio_sim_wake(t->source.node);
        world_run(&t->world, (int64_t)helio_random_below(&t->random, 200 * US));
    }
}

static const helio_tx_stream_stats *source_stats(const trial *t) {
    return helio_tx_stream_object(t->source.stream)->record;
}

/* The sum of a statistic over the streams received: those of the receivers, or of the repairer. */
static uint64_t total(const trial *t, size_t offset) {
    const helio_stats *stats = t->world.stats;
    const uint64_t used = helio_cell(&stats->header->objects_used);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < used; i++) {
        const helio_segment_object *object = &stats->objects[i];
        if (object->scope == HELIO_SCOPE_RX_STREAM) {
            const uint8_t *record = books_record(stats, object);
            sum += books_cell((const _Atomic uint64_t *)(const void *)(record + offset));
        }
    }
    return sum;
}
#define TOTAL(t, name) total(t, offsetof(helio_rx_stream_stats, name))

static void put_away(trial *t, bool is_away) {
    helio_sim_set_partition(t->repairer.world.node, is_away ? 1 : 0);
}

static void finish(trial *t) {
    t->is_lossy = false;
    send(t, 1); /* shows the loss of what came before */
    world_run(&t->world, HELIO_SECOND);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        CHECK_EQUAL(t->receivers[i].next, t->sent);
    }
    CHECK(books_hold(t->world.stats));
    repaired_at_site += TOTAL(t, repairer_repairs_received);
    repaired_by_source += helio_cell(&source_stats(t)->repair_packets);
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&t->receivers[i].world);
    }
    world_end_receiver(&t->repairer.world);
    world_end_source(&t->source);
    world_fini(&t->world);
}

static void check(const trial *t, scene scene, uint64_t missed) {
    const helio_tx_stream_stats *source = source_stats(t);
    const uint64_t repairs = helio_cell(&source->repair_packets);
    const uint64_t naks = helio_cell(&source->naks_received);
    const uint64_t local = TOTAL(t, repairer_repairs_received);
    switch (scene) {
    case BEHIND:
        CHECK_EQUAL(naks, 0);
        CHECK_EQUAL(repairs, 0);
        CHECK(local > 0 && local <= missed);
        CHECK(TOTAL(t, repairer_repairs_sent) >= local);
        CHECK_EQUAL(TOTAL(t, repairer_given_up), 0);
        break;
    case BEFORE:
        CHECK(repairs > 0 && repairs <= missed / RECEIVERS); /* all miss the same */
        break;
    case AWAY:
        CHECK_EQUAL(local, 0);
        CHECK(repairs > 0 && TOTAL(t, repairer_given_up) > 0);
        break;
    case AWAY_FOR_A_WHILE:
    case FORGETFUL:
        CHECK(local > 0);
        break;
    case SCENES:
        break;
    }
}

static bool holds(uint64_t seed) {
    static trial trial;
    for (scene scene = 0; scene < SCENES; scene++) {
        trial_begin(&trial, seed, scene);
        put_away(&trial, scene == AWAY);
        send(&trial, MESSAGES / 2);
        put_away(&trial, scene == AWAY || scene == AWAY_FOR_A_WHILE);
        send(&trial, MESSAGES / 2);
        if (scene == AWAY_FOR_A_WHILE) {
            put_away(&trial, false);
            world_run(&trial.world, 2 * HELIO_SECOND); /* it is tried again after a second */
            const uint64_t before = TOTAL(&trial, repairer_repairs_received);
            send(&trial, MESSAGES / 2);
            CHECK(TOTAL(&trial, repairer_repairs_received) > before);
        }
        trial.is_lossy = false;
        send(&trial, 1);
        world_run(&trial.world, HELIO_SECOND);
        check(&trial, scene, TOTAL(&trial, packets_missed));
        finish(&trial);
    }
    return true;
}

int main(int argc, char **argv) {
    const seeds seeds = seeds_from(argc, argv, 60, 6);
    if (!seeds_hold("sim_repairer", seeds, holds)) {
        return 1;
    }
    printf("%" PRIu64 " seeds: %" PRIu64 " repairs at the site, %" PRIu64 " by the source\n",
           seeds.count, repaired_at_site, repaired_by_source);
    return 0;
}
