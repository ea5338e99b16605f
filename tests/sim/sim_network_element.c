/* Network elements of PGM between a source and its receivers, simulated: with them the source gets
 * one NAK for a loss of a whole subtree, and the protocol works with and without them.
 *
 *     sim_network_element [--seeds N] [--first N]
 *
 * An element does what RFC 3208 section 7 asks of it, for the receivers below it:
 *
 *   SPM     passed on with its own address as path NLA
 *   NAK     confirmed (NCF) on the interface that it came from; sent upstream once, and again until the source
 *           confirms it; further NAKs for the packet are eliminated while its repair is awaited
 *   RDATA   passed on to the interfaces that it was requested from, and to no other
 *   NCF     its own NAK is confirmed; not passed on
 *
 * Everything else from the source passes.  What passes keeps the address of the source as its
 * sender. */
#include "base/endian.h"
#include "base/sequence.h"
#include "check.h"
#include "reconciliation.h"
#include "seeds.h"
#include "world.h"

enum { ELEMENTS = 2, LEGS = 4, ON_LEG = 5, BELOW = LEGS * ON_LEG, MESSAGES = 100, STATES = 64 };

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND
#define ALL_LEGS ((UINT32_C(1) << LEGS) - 1)
#define NAK_REPEAT_NS (10 * MS)
#define NAK_LIFE_NS (60 * MS)

/* A repair that an element awaits. */
typedef struct state {
    bool is_used, is_confirmed;
    uint32_t sequence;
    uint32_t legs; /* interfaces with receivers that requested it, by bit */
    int64_t until_ns, repeat_ns;
} state;

typedef struct trial trial;

typedef struct element {
    trial *trial;
    helio_sim_node *node;
    helio_outlet up;
    helio_address address;
    state states[STATES];
    uint64_t naks_in, naks_up, naks_eliminated, repairs_kept_away;
} element;

typedef struct leaf {
    world_receiver world;
    uint64_t next;
    double loss; /* of its own link */
} leaf;

struct trial {
    helio_random random;
    world world;
    world_source source;
    helio_tx_topic *topic;
    helio_address source_address;
    element elements[ELEMENTS];
    leaf leaves[ELEMENTS * BELOW]; /* those of the first element first */
    uint64_t subtree_losses;       /* data packets lost for all below one element */
    double loss;                   /* before an element */
    bool is_lossy;
};

static uint64_t naks_total, eliminated_total, losses_total;

/* ---- the element ---- */

static void pass_to(element *e, unsigned i, const void *packet, size_t length,
                    helio_moment moment) {
    trial *t = e->trial;
    leaf *below = &t->leaves[(e - t->elements) * BELOW + i];
    const bool is_data = ((const uint8_t *)packet)[4] == HELIO_PGM_TYPE_ODATA;
    if (is_data && t->is_lossy && helio_random_unit(&t->random) < below->loss) {
        return;
    }
    world_receiver_on_packet(&below->world, packet, length, &t->source_address, moment);
    helio_sim_wake(below->world.node);
}

static void pass(element *e, uint32_t legs, const void *packet, size_t length,
                 helio_moment moment) {
    for (unsigned i = 0; i < BELOW; i++) {
        if (legs >> (i / ON_LEG) & 1) {
            pass_to(e, i, packet, length, moment);
        }
    }
}

static state *state_of(element *e, uint32_t sequence, int64_t now_ns) {
    for (size_t i = 0; i < STATES; i++) {
        state *s = &e->states[i];
        if (s->is_used && s->sequence == sequence && now_ns < s->until_ns) {
            return s;
        }
    }
    return NULL;
}

static state *new_state(element *e, uint32_t sequence, int64_t now_ns) {
    state *free = NULL;
    for (size_t i = 0; i < STATES; i++) {
        if (!e->states[i].is_used || now_ns >= e->states[i].until_ns) {
            free = &e->states[i];
        }
    }
    CHECK(free != NULL);
    *free = (state){.is_used = true, .sequence = sequence, .until_ns = now_ns + NAK_LIFE_NS};
    return free;
}

static size_t encode(uint8_t *out, element *e, uint8_t type, uint32_t sequence) {
    const trial *t = e->trial;
    const helio_pgm_session session = {world_source_config(1).tsi, 7500};
    helio_address source = t->source_address, group = world_address(WORLD_GROUP);
    source.port = group.port = 0;
    return helio_pgm_encode_nak(out, &session, type, &sequence, 1, &source, &group);
}

static void send_up(element *e, state *s, int64_t now_ns) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const size_t length = encode(packet, e, HELIO_PGM_TYPE_NAK, s->sequence);
    e->up.send(e->up.context, &e->trial->source_address, packet, length, false);
    s->repeat_ns = now_ns + NAK_REPEAT_NS;
    e->naks_up++;
}

static void on_nak_of(element *e, uint32_t sequence, unsigned leaf, helio_moment moment) {
    uint8_t ncf[HELIO_PGM_CONTROL_MAX];
    state *s = state_of(e, sequence, moment.now_ns);
    e->naks_in++;
    if (s) {
        e->naks_eliminated++;
    } else {
        s = new_state(e, sequence, moment.now_ns);
        send_up(e, s, moment.now_ns);
    }
    const uint32_t leg = UINT32_C(1) << (leaf / ON_LEG);
    s->legs |= leg;
    const size_t length = encode(ncf, e, HELIO_PGM_TYPE_NCF, sequence);
    pass(e, leg, ncf, length, moment);
}

static void on_nak(element *e, const helio_pgm_packet *nak, const helio_address *from,
                   helio_moment moment) {
    const unsigned leaf = from->ip[3] - 1u;
    CHECK(leaf < BELOW && from->ip[2] == e - e->trial->elements + 1);
    on_nak_of(e, nak->sequence, leaf, moment);
    for (uint32_t i = 0; i < nak->list_count; i++) {
        on_nak_of(e, nak->list[i], leaf, moment);
    }
}

static void on_ncf(element *e, uint32_t sequence, int64_t now_ns) {
    state *s = state_of(e, sequence, now_ns);
    if (s) {
        s->is_confirmed = true;
    }
}

static void pass_repair(element *e, const helio_pgm_packet *repair, const void *packet,
                        size_t length, helio_moment moment) {
    state *s = state_of(e, repair->sequence, moment.now_ns);
    if (s) {
        s->is_used = false;
        pass(e, s->legs, packet, length, moment);
    } else {
        e->repairs_kept_away++;
    }
}

/* The path NLA of an IPv4 SPM is at a fixed place. */
static void pass_spm(element *e, const void *packet, size_t length, helio_moment moment) {
    enum { AT_CHECKSUM = 6, AT_PATH = HELIO_PGM_HEADER + 12 + 4 };
    uint8_t copy[HELIO_PGM_PACKET_MIN];
    CHECK(length <= sizeof copy);
    memcpy(copy, packet, length);
    memcpy(copy + AT_PATH, e->address.ip, 4);
    memset(copy + AT_CHECKSUM, 0, 2);
    const uint16_t sum = helio_checksum_finish(helio_checksum_part(copy, length));
    memcpy(copy + AT_CHECKSUM, &sum, sizeof sum);
    pass(e, ALL_LEGS, copy, length, moment);
}

static void element_on_packet(void *context, const void *packet, size_t length,
                              const helio_address *from, helio_moment moment) {
    element *e = context;
    trial *t = e->trial;
    helio_pgm_packet read;
    CHECK_EQUAL(helio_pgm_decode(packet, length, &read), HELIO_PGM_ACCEPTED);
    switch (read.type) {
    case HELIO_PGM_TYPE_NAK:
        on_nak(e, &read, from, moment);
        break;
    case HELIO_PGM_TYPE_NCF:
        on_ncf(e, read.sequence, moment.now_ns);
        for (uint32_t i = 0; i < read.list_count; i++) {
            on_ncf(e, read.list[i], moment.now_ns);
        }
        break;
    case HELIO_PGM_TYPE_RDATA:
        pass_repair(e, &read, packet, length, moment);
        break;
    case HELIO_PGM_TYPE_SPM:
        pass_spm(e, packet, length, moment);
        break;
    default:
        if (read.type == HELIO_PGM_TYPE_ODATA && t->is_lossy &&
            helio_random_unit(&t->random) < t->loss) {
            t->subtree_losses++;
            break;
        }
        pass(e, ALL_LEGS, packet, length, moment);
    }
}

static void element_poll(void *context, helio_moment moment) {
    element *e = context;
    for (size_t i = 0; i < STATES; i++) {
        state *s = &e->states[i];
        if (s->is_used && !s->is_confirmed && moment.now_ns < s->until_ns &&
            moment.now_ns >= s->repeat_ns) {
            send_up(e, s, moment.now_ns);
        }
    }
}

static int64_t element_deadline(void *context) {
    const element *e = context;
    int64_t due_ns = HELIO_NEVER;
    for (size_t i = 0; i < STATES; i++) {
        const state *s = &e->states[i];
        if (s->is_used && !s->is_confirmed && s->repeat_ns < s->until_ns) {
            due_ns = helio_min(due_ns, s->repeat_ns);
        }
    }
    return due_ns;
}

/* ---- the trial ---- */

static size_t on_messages(void *context, const helio_message *messages, size_t count) {
    leaf *l = context;
    for (size_t i = 0; i < count; i++) {
        CHECK_EQUAL(messages[i].number, l->next++);
    }
    return count;
}

static void add_leaf(trial *t, unsigned e, unsigned i, bool has_elements) {
    leaf *l = &t->leaves[e * BELOW + i];
    char text[HELIO_ADDRESS_TEXT];
    helio_rx_endpoint_config config = world_receiver_config(e * BELOW + i);
    snprintf(text, sizeof text, "10.9.%u.%u:50000", e + 1, i + 1);
    config.feedback_address = world_address(text);
    config.network_elements = has_elements;
    config.nak_backoff_ns = 2 * MS;
    config.nak_repeat_ns = config.nak_data_ns = 20 * MS;
    if (has_elements) { /* its element alone passes packets to it */
        world_add_deaf_receiver(&t->world, &l->world, &config);
    } else {
        world_add_receiver(&t->world, &l->world, &config);
    }
    helio_sim_set_link(l->world.node, &(helio_sim_link){.delay_ns = 50 * US});
    helio_subscription *subscription;
    const helio_sink sink = {.context = l, .on_messages = on_messages};
    CHECK_EQUAL(helio_rx_endpoint_subscribe(l->world.endpoint, "t", &sink, world_now(&t->world),
                                            &subscription),
                0);
}

static void add_element(trial *t, unsigned i) {
    element *e = &t->elements[i];
    const helio_address group = world_address(WORLD_GROUP);
    e->trial = t;
    e->address = world_host(10 + i, 7500);
    /* Feedback to a path NLA goes to the port of the stream. */
    e->address.port = t->source_address.port;
    e->node = helio_sim_add_node(t->world.sim, &e->address);
    e->up = helio_sim_outlet(e->node, &group);
    helio_sim_attach(e->node,
                     &(helio_sim_handler){e, element_on_packet, element_poll, element_deadline});
    helio_sim_join(e->node, &group);
    helio_sim_set_link(e->node, &(helio_sim_link){.delay_ns = MS});
}

static void send(trial *t, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        const helio_moment moment = world_now(&t->world);
        helio_tx_stream_append(t->source.stream, t->topic, "x", 1, moment.wall_ns, moment);
        helio_tx_stream_flush(t->source.stream, moment);
        helio_sim_wake(t->source.node);
        world_run(&t->world, MS);
    }
}

static const helio_tx_stream_stats *source_stats(const trial *t) {
    return helio_tx_stream_object(t->source.stream)->record;
}

static void trial_begin(trial *t, uint64_t seed, bool has_elements) {
    *t = (trial){0};
    helio_random_init(&t->random, seed);
    world_init(&t->world, seed, 0);
    const helio_tx_stream_config config = world_source_config(1);
    t->source_address = config.address;
    t->source_address.port = config.tsi.port;
    for (unsigned e = 0; e < ELEMENTS; e++) {
        if (has_elements) {
            add_element(t, e);
        }
        for (unsigned i = 0; i < BELOW; i++) {
            add_leaf(t, e, i, has_elements);
        }
    }
    world_add_source(&t->world, &t->source, &config);
    helio_sim_set_link(t->source.node, &(helio_sim_link){.delay_ns = 3 * MS});
    CHECK_EQUAL(helio_tx_stream_add_topic(t->source.stream, "t", world_now(&t->world), &t->topic),
                0);
    world_run(&t->world, 50 * MS);
    t->is_lossy = true;
}

static void trial_end(trial *t) {
    t->is_lossy = false;
    send(t, 1);
    world_run(&t->world, HELIO_SECOND);
    CHECK(books_hold(t->world.stats));
    for (unsigned i = 0; i < ELEMENTS * BELOW; i++) {
        leaf *l = &t->leaves[i];
        CHECK_EQUAL(l->next, MESSAGES + 1);
        world_end_receiver(&l->world);
    }
    world_end_source(&t->source);
    world_fini(&t->world);
}

/* Losses before the elements alone: the source gets a NAK for each, and no more. */
static void of_subtrees(uint64_t seed) {
    static trial t;
    trial_begin(&t, seed, true);
    t.loss = 0.1;
    send(&t, MESSAGES);
    world_run(&t.world, 200 * MS);
    const uint64_t eliminated = t.elements[0].naks_eliminated + t.elements[1].naks_eliminated;
    const uint64_t up = t.elements[0].naks_up + t.elements[1].naks_up;
    CHECK_EQUAL(up, helio_cell(&source_stats(&t)->naks_received));
    CHECK(up <= t.subtree_losses + 3); /* a NAK may cross its repair */
    CHECK(up + 3 >= t.subtree_losses); /* the loss of the last packet shows later */
    naks_total += up;
    losses_total += t.subtree_losses;
    eliminated_total += eliminated;
    trial_end(&t);
}

/* Losses behind an element: the other subtree sends no NAK and gets no repair. */
static void of_single_receivers(uint64_t seed) {
    static trial t;
    trial_begin(&t, seed, true);
    for (unsigned i = 0; i < BELOW; i++) {
        t.leaves[i].loss = 0.01;
    }
    send(&t, MESSAGES);
    world_run(&t.world, 200 * MS);
    const uint64_t repairs = helio_cell(&source_stats(&t)->repair_packets);
    CHECK(repairs > 0);
    CHECK_EQUAL(t.elements[1].naks_in, 0);
    CHECK_EQUAL(t.elements[1].repairs_kept_away, repairs);
    CHECK(helio_cell(&source_stats(&t)->naks_received) <= t.elements[0].naks_in);
    trial_end(&t);
}

/* The same receivers, told to follow path NLAs or not, without any element. */
static void without_elements(uint64_t seed) {
    static trial t;
    trial_begin(&t, seed, false);
    for (unsigned i = 0; i < ELEMENTS * BELOW; i++) {
        helio_sim_set_link(t.leaves[i].world.node, &(helio_sim_link){.delay_ns = MS, .loss = 0.02});
    }
    send(&t, MESSAGES);
    for (unsigned i = 0; i < ELEMENTS * BELOW; i++) {
        helio_sim_set_link(t.leaves[i].world.node, &(helio_sim_link){.delay_ns = MS});
    }
    CHECK(helio_cell(&source_stats(&t)->repair_packets) > 0);
    trial_end(&t);
}

static bool holds(uint64_t seed) {
    of_subtrees(seed);
    of_single_receivers(seed);
    without_elements(seed);
    return true;
}

int main(int argc, char **argv) {
    const seeds seeds = seeds_from(argc, argv, 40, 4);
    if (!seeds_hold("sim_network_element", seeds, holds)) {
        return 1;
    }
    printf("%" PRIu64 " seeds: %" PRIu64 " losses of a subtree of %d, %" PRIu64
           " NAKs at the source, %" PRIu64 " eliminated\n",
           seeds.count, losses_total, BELOW, naks_total, eliminated_total);
    return 100 * naks_total <= 102 * losses_total ? 0 : 1;
}
