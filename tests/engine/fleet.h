/* A source and some receivers that acknowledge, on one simulated network, and what each was
 * told. */
#ifndef HELIO_TESTS_FLEET_H
#define HELIO_TESTS_FLEET_H

#include "check.h"
#include "send/parts.h"
#include "stats/segment.h"
#include "world.h"

#define MS HELIO_MILLISECOND
#define US HELIO_MICROSECOND

enum { FLEET_MAX = 64, FLEET_NOTICES = 64 };

/* A receiver and what it was told. */
typedef struct member {
    world_receiver receiver;
    helio_subscription *subscription;
    uint64_t messages, lost, next;
    uint64_t recovered;
    double recovery_ns; /* from sending to having it, of all recovered together */
    uint32_t streams, ended;
    uint32_t notices_count;
    helio_notice notices[FLEET_NOTICES];
    uint32_t drop_types; /* bits of packet types that do not reach it ... */
    int drop_count;      /* ... so many of them */
    uint32_t lose_every; /* of the original data, one in so many; 0: none */
    uint64_t data_seen;
} member;

static world w;
static world_source source;
static helio_tx_topic *topic;
static member fleet[FLEET_MAX];
static unsigned fleet_count;
static helio_sink_ack fleet_ack = HELIO_SINK_ACK_AUTO; /* how members acknowledge */

static inline uint64_t id_of(unsigned i) {
    return 0xF000 + i;
}

static inline void member_on_stream(void *context, uint32_t stream, const helio_tsi *tsi,
                                    helio_stats_object *object) {
    member *m = context;
    (void)stream, (void)tsi, (void)object;
    m->streams++;
    m->next = 0;
}

static inline void member_on_end(void *context, uint32_t stream) {
    (void)stream;
    ((member *)context)->ended++;
}

static inline size_t member_on_messages(void *context, const helio_message *messages,
                                        size_t count) {
    member *m = context;
    for (size_t i = 0; i < count; i++) {
        CHECK(m->next == 0 || messages[i].number == m->next);
        m->next = messages[i].number + 1;
        if (messages[i].flags & HELIO_MESSAGE_RECOVERED) {
            m->recovered++;
            m->recovery_ns += (double)(messages[i].receive_ns - messages[i].submit_ns);
        }
    }
    m->messages += count;
    return count;
}

static inline void member_on_loss(void *context, const helio_loss *loss) {
    member *m = context;
    m->next = loss->first + loss->count;
    m->lost += loss->count;
}

static inline void member_on_notice(void *context, const helio_notice *notice) {
    member *m = context;
    CHECK(m->notices_count < FLEET_NOTICES);
    m->notices[m->notices_count++] = *notice;
}

static inline bool member_drops(void *context, const void *packet, size_t length, int64_t now_ns) {
    member *m = context;
    (void)length, (void)now_ns;
    const uint8_t type = ((const uint8_t *)packet)[4];
    if ((m->drop_types >> type & 1) && m->drop_count > 0) {
        m->drop_count--;
        return true;
    }
    return type == HELIO_PGM_TYPE_ODATA && m->lose_every > 0 && ++m->data_seen % m->lose_every == 0;
}

static inline helio_rx_endpoint_config fleet_receiver_config(unsigned i) {
    helio_rx_endpoint_config config = world_receiver_config(100 + i);
    config.receiver = id_of(i);
    config.ack_packets = 64;
    config.ack_interval_ns = 100 * US;
    return config;
}

/* Receiver i begins, also anew: another life under the same name. */
static inline void fleet_add(unsigned i, const helio_rx_endpoint_config *config) {
    member *m = &fleet[i];
    *m = (member){0};
    world_add_receiver(&w, &m->receiver, config);
    helio_sim_set_link(m->receiver.node,
                       &(helio_sim_link){.delay_ns = 50 * US, .drops = member_drops, .context = m});
    const helio_sink sink = {.context = m,
                             .on_stream = member_on_stream,
                             .on_stream_end = member_on_end,
                             .on_messages = member_on_messages,
                             .on_loss = member_on_loss,
                             .on_notice = member_on_notice,
                             .ack = fleet_ack};
    CHECK_EQUAL(helio_rx_endpoint_subscribe(m->receiver.endpoint, "t", &sink, world_now(&w),
                                            &m->subscription),
                0);
}

static inline helio_tx_stream_config fleet_source_config(void) {
    helio_tx_stream_config config = world_source_config(1);
    config.acker_expiry_ns = 10 * HELIO_SECOND;
    return config;
}

static inline void fleet_run(int64_t ns) {
    helio_sim_wake(source.node);
    world_run(&w, ns);
}

/* Sends `count` messages, each in a packet of its own, `gap_ns` apart. */
static inline void fleet_send(int count, int64_t gap_ns) {
    for (int i = 0; i < count; i++) {
        helio_tx_stream_append(source.stream, topic, "hello", 5, world_now(&w).wall_ns,
                               world_now(&w));
        helio_tx_stream_flush(source.stream, world_now(&w));
        fleet_run(gap_ns);
    }
}

/* A source and `count` receivers that have acknowledged something. */
static inline void fleet_begin_with(unsigned count, const helio_tx_stream_config *config) {
    world_init(&w, 1, 1);
    fleet_count = count;
    for (unsigned i = 0; i < count; i++) {
        const helio_rx_endpoint_config receiver = fleet_receiver_config(i);
        fleet_add(i, &receiver);
    }
    world_add_source(&w, &source, config);
    CHECK_EQUAL(helio_tx_stream_add_topic(source.stream, "t", world_now(&w), &topic), 0);
    fleet_run(100 * US);
    fleet_send(4, 200 * US);
    fleet_run(20 * MS);
}

static inline void fleet_begin(unsigned count) {
    const helio_tx_stream_config config = fleet_source_config();
    fleet_begin_with(count, &config);
}

static inline void fleet_end(void) {
    for (unsigned i = 0; i < fleet_count; i++) {
        if (fleet[i].receiver.endpoint) {
            world_end_receiver(&fleet[i].receiver);
        }
    }
    world_end_source(&source);
    world_fini(&w);
}

static inline helio_tx_stream_stats *source_counts(void) {
    return helio_tx_stream_object(source.stream)->record;
}

static inline uint32_t place_of(unsigned i) {
    const helio_address address = world_host(100 + i, 50000);
    return helio_receivers_at(&source.stream->repairer.receivers, &address);
}

static inline int fleet_act(unsigned i, helio_action action, int64_t duration_ns, const char *why) {
    const int error = helio_tx_stream_act(source.stream, place_of(i), action, duration_ns, why,
                                          false, world_now(&w));
    helio_sim_wake(source.node);
    return error;
}

/* How often an event was told; its last one is then in event_told. */
static const helio_segment_event *event_told;

static inline uint64_t events_of(helio_event_id event) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < w.stats->header->events_written; i++) {
        if (w.stats->events[i].event == event) {
            event_told = &w.stats->events[i];
            count++;
        }
    }
    return count;
}

static inline uint64_t naks_of(unsigned i) {
    return helio_cell(&world_counts(&fleet[i].receiver.instance)->naks_sent);
}

/* The newest notice receiver i was told; none: action 0. */
static inline helio_notice told(unsigned i) {
    const member *m = &fleet[i];
    return m->notices_count ? m->notices[m->notices_count - 1] : (helio_notice){0};
}

#endif
