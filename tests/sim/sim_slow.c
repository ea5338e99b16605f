/* A slow receiver, from end to end on a virtual network: one of eight receivers stops draining.
 * Its source hears of it by its reports, warns it, suspends it, tells it so, and readmits it when
 * it drains again; nobody else is touched or loses anything.
 *
 *     sim_slow [--seeds N] [--first N] */
#include <stdbool.h>

#include "check.h"
#include "generated/options.h"
#include "send/parts.h"
#include "stats/segment.h"
#include "world.h"

#define MS HELIO_MILLISECOND

enum {
    RECEIVERS = 8,
    MESSAGE_BYTES = 1200, /* one in a packet */
    PER_STEP = 5,         /* messages in a millisecond */
    STORY_MAX = 64,
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SEEDS_DEFAULT = 2 };
#else
enum { SEEDS_DEFAULT = 5 };
#endif

typedef struct inbox {
    uint64_t messages;
    uint64_t lost;
    bool is_stuck; /* its application takes nothing */
} inbox;

static world w;
static world_source source;
static world_receiver receivers[RECEIVERS];
static inbox inboxes[RECEIVERS];
static helio_tx_topic *topic;
static uint64_t sent;

static size_t take(void *context, const helio_message *messages, size_t count) {
    (void)messages;
    inbox *box = context;
    if (box->is_stuck) {
        return 0;
    }
    box->messages += count;
    return count;
}

static void lose(void *context, const helio_loss *loss) {
    inbox *box = context;
    box->lost += loss->count;
}

static helio_tx_slow_config slow_config(helio_action highest) {
    return (helio_tx_slow_config){
        .mode = HELIO_SLOW_MODE_ENFORCE,
        .storm_mode = HELIO_STORM_MODE_ENFORCE,
        .receivers = {.highest = highest,
                      .waits = highest == HELIO_ACTION_PACE,
                      .loss = 0.05,
                      .lag = 0.75,
                      .buffer = 0.95,
                      .dwell_ns = 300 * MS,
                      .lead_ns = HELIO_SECOND,
                      .suspend_ns = 20 * HELIO_SECOND,
                      .expel_after = 3,
                      .expel_ns = 30 * HELIO_SECOND,
                      .share = 0.2},
        .storm = {.storm_ns = 500 * MS, .cut_off_ns = 200 * MS},
    };
}

/* ---- the story: events of interest in their order, kept before the ring forgets them ---- */

typedef struct chapter {
    helio_event_id event;
    uint64_t receiver;
} chapter;

static chapter story[STORY_MAX];
static int chapters;
static uint64_t read_up_to;

static void read_on(void) {
    const helio_segment_header *header = w.stats->header;
    for (; read_up_to < header->events_written; read_up_to++) {
        const helio_segment_event *e = &w.stats->events[read_up_to & (header->event_capacity - 1)];
        const bool is_mine = e->event >= HELIO_EVENT_RECEIVER_SLOW;
        const bool is_told = e->event == HELIO_EVENT_SUSPENDED || e->event == HELIO_EVENT_RESUMED;
        if ((is_mine || is_told) && chapters < STORY_MAX) {
            story[chapters++] = (chapter){(helio_event_id)e->event, e->arguments[0]};
        }
    }
}

/* Place of the n-th event of a kind, from 0; -1: there are fewer. */
static int event(helio_event_id id, int n) {
    for (int i = 0; i < chapters; i++) {
        if (story[i].event == id && n-- == 0) {
            return i;
        }
    }
    return -1;
}

static void begin(uint64_t seed, helio_action highest) {
    world_init(&w, seed, 0);
    helio_tx_stream_config config = world_source_config(1);
    config.window_packets = 8192;
    config.report_interval_ns = 100 * MS;
    config.govern.interval_ns = 10 * MS;
    config.slow = slow_config(highest);
    world_add_source(&w, &source, &config);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "ORDERS", world_now(&w), &topic), 0);
    memset(inboxes, 0, sizeof inboxes);
    sent = 0;
    chapters = 0;
    read_up_to = 0;
    helio_subscription *subscription;
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_rx_endpoint_config receiver = world_receiver_config(100 + i);
        receiver.window_packets = 2048;
        receiver.receiver = 1000 + i;
        world_add_receiver(&w, &receivers[i], &receiver);
        const helio_sink sink = {&inboxes[i], .on_messages = take, .on_loss = lose};
        CHECK_EQUAL(helio_rx_endpoint_subscribe(receivers[i].endpoint, "ORDERS", &sink,
                                                world_now(&w), &subscription),
                    0);
    }
}

/* From now on each loses so much; whoever misses the very first packets joins without them. */
static void set_loss(double loss) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        helio_sim_set_link(receivers[i].node, &(helio_sim_link){
                                                  .loss = loss,
                                                  .delay_ns = 50 * HELIO_MICROSECOND,
                                              });
    }
}

static void end(void) {
    for (unsigned i = 0; i < RECEIVERS; i++) {
        world_end_receiver(&receivers[i]);
    }
    world_end_source(&source);
    world_fini(&w);
}

static void flow(int64_t ns) {
    static const uint8_t data[MESSAGE_BYTES];
    for (int64_t i = 0; i < ns / MS; i++) {
        for (int j = 0; j < PER_STEP; j++) {
            CHECK_EQUAL(helio_tx_stream_append(source.stream, topic, data, sizeof data,
                                               world_now(&w).wall_ns, world_now(&w)),
                        0);
            sent++;
        }
        helio_tx_stream_flush(source.stream, world_now(&w));
        world_run(&w, MS);
        for (unsigned k = 0; k < RECEIVERS; k++) { /* one that had no room may have some */
            helio_rx_endpoint_poll(receivers[k].endpoint, world_now(&w));
        }
        read_on();
    }
}

static helio_receiver_view *view_of(unsigned receiver) {
    helio_receivers *peers = &source.stream->repairer.receivers;
    return helio_receivers_view(peers, helio_receivers_find(peers, 1000 + receiver));
}

static void one_that_stops_draining_is_suspended_and_readmitted(uint64_t seed) {
    const unsigned slow = (unsigned)(seed % RECEIVERS);
    begin(seed, HELIO_ACTION_SUSPEND);
    flow(100 * MS);
    set_loss(seed % 2 ? 0 : 0.005);
    flow(2 * HELIO_SECOND);
    CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_SLOW, 0), -1);
    CHECK(view_of(slow) && (view_of(slow)->flags & HELIO_VIEW_REPORTS));
    inboxes[slow].is_stuck = true;
    flow(5 * HELIO_SECOND);
    const int warned = event(HELIO_EVENT_RECEIVER_SLOW, 0);
    const int suspended = event(HELIO_EVENT_RECEIVER_SUSPENDED, 0);
    CHECK(warned >= 0 && suspended > warned);
    CHECK_EQUAL(story[warned].receiver, 1000 + slow);
    CHECK_EQUAL(story[suspended].receiver, 1000 + slow);
    CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_SLOW, 1), -1);
    CHECK(view_of(slow)->flags & HELIO_VIEW_SUSPENDED);
    CHECK(event(HELIO_EVENT_SUSPENDED, 0) > suspended); /* it was told */
    CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_READMITTED, 0), -1);
    inboxes[slow].is_stuck = false;
    const uint64_t before = inboxes[slow].messages;
    flow(4 * HELIO_SECOND);
    const int readmitted = event(HELIO_EVENT_RECEIVER_READMITTED, 0);
    CHECK(readmitted > suspended);
    CHECK_EQUAL(story[readmitted].receiver, 1000 + slow);
    CHECK(event(HELIO_EVENT_RESUMED, 0) > suspended);
    CHECK_EQUAL(view_of(slow)->flags & HELIO_VIEW_SUSPENDED, 0);
    CHECK(inboxes[slow].messages > before + 2000 * PER_STEP);
    CHECK_EQUAL(event(HELIO_EVENT_STORM_DETECTED, 0), -1);
    world_run(&w, 3 * HELIO_SECOND);
    read_on();
    for (unsigned i = 0; i < RECEIVERS; i++) {
        CHECK_EQUAL(inboxes[i].messages + inboxes[i].lost, sent);
        CHECK(i == slow ? inboxes[i].lost > 0 : inboxes[i].lost == 0);
    }
    end();
}

/* All lose alike, and more than a receiver may: nobody is to blame. */
static void nobody_is_suspended_for_a_bad_network(uint64_t seed) {
    begin(seed, HELIO_ACTION_EXPEL);
    flow(100 * MS);
    set_loss(0.08);
    flow(4 * HELIO_SECOND);
    CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_SUSPENDED, 0), -1);
    CHECK_EQUAL(event(HELIO_EVENT_RECEIVER_SLOW, 0), -1);
    CHECK_EQUAL(event(HELIO_EVENT_STORM_DETECTED, 0), -1);
    world_run(&w, 3 * HELIO_SECOND);
    read_on();
    for (unsigned i = 0; i < RECEIVERS; i++) {
        CHECK_EQUAL(inboxes[i].messages + inboxes[i].lost, sent);
    }
    end();
}

static uint64_t seeds = SEEDS_DEFAULT, first = 1;

static void a_slow_receiver_is_warned_suspended_told_and_readmitted(void) {
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        printf("      seed %" PRIu64 "\n", seed);
        one_that_stops_draining_is_suspended_and_readmitted(seed);
    }
}

static void a_bad_network_is_nobodys_fault(void) {
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        nobody_is_suspended_for_a_bad_network(seed);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--first") == 0) {
            first = strtoull(argv[i + 1], NULL, 10);
        }
    }
    RUN(a_slow_receiver_is_warned_suspended_told_and_readmitted);
    RUN(a_bad_network_is_nobodys_fault);
    return check_result();
}
