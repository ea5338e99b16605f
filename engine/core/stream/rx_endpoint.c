#include "stream/rx_endpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/map.h"
#include "stream/replay.h"
#include "stream/rx_feedback.h"
#include "stream/rx_stream.h"
#include "window/size.h"
#include "wire/pgm.h"

/* Streams that ended, remembered so that their last packets do not open them anew. */
enum { ENDED_KEPT = 64 };

/* Streams this receiver is expelled from; of more the oldest is forgotten until it is told again. */
enum { EXPELLED_KEPT = 16 };

#define ENDED_NS (10 * HELIO_SECOND)
#define CREATE_AGAIN_NS (100 * HELIO_MILLISECOND) /* after there was no memory for a stream */
#define CONFLICT_EVENT_NS (10 * HELIO_SECOND)

typedef struct ended_stream {
    uint64_t key;
    int64_t until_ns;
} ended_stream;

typedef struct expelled_stream {
    uint64_t key; /* 0: none */
    helio_address source;
    int64_t until_ns;
} expelled_stream;

struct helio_rx_endpoint {
    helio_rx_shared shared;
    char *instance_name;
    char *endpoint;
    helio_map by_tsi;
    helio_rx_stream *streams;
    helio_replay *replays;
    helio_rx_stream *last; /* the stream of the packet before; most packets come in runs */
    uint32_t count;
    int64_t deadline_ns;     /* no stream has anything to do before, unless it is blocked */
    int64_t create_after_ns; /* no stream is made before: there was no memory */
    ended_stream ended[ENDED_KEPT];
    uint32_t ended_next;
    expelled_stream expelled[EXPELLED_KEPT];
    uint32_t expelled_next;
};

int helio_rx_endpoint_create(const helio_rx_endpoint_config *config, helio_outlet outlet,
                             helio_stats *stats, helio_instance_stats *instance,
                             helio_rx_endpoint **out) {
    if (config->max_packet_bytes < HELIO_PGM_PACKET_MIN ||
        config->max_packet_bytes > HELIO_PGM_PACKET_MAX ||
        config->window_packets > (UINT32_C(1) << 30) || config->max_streams == 0 ||
        config->nak_repeat_ns < 0 || config->nak_data_ns < 0)
        return HELIO_ERR_OPTION;
    helio_rx_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return HELIO_ERR_NOMEM;
    endpoint->instance_name = strdup(config->instance ? config->instance : "");
    endpoint->endpoint = strdup(config->endpoint ? config->endpoint : "");
    endpoint->deadline_ns = HELIO_NEVER;
    if (!endpoint->instance_name || !endpoint->endpoint || helio_map_init(&endpoint->by_tsi, 8)) {
        free(endpoint->instance_name);
        free(endpoint->endpoint);
        free(endpoint);
        return HELIO_ERR_NOMEM;
    }
    helio_rx_shared *shared = &endpoint->shared;
    shared->config = *config;
    shared->config.instance = endpoint->instance_name;
    shared->config.endpoint = endpoint->endpoint;
    shared->outlet = outlet;
    shared->stats = stats;
    shared->instance = instance;
    shared->foreign_event_after_ns = INT64_MIN;
    shared->drops.read_ns = INT64_MIN / 2;
    shared->subscriptions = (helio_subscriptions){
        .stats = stats,
        .instance = instance,
        .instance_name = endpoint->instance_name,
        .endpoint = endpoint->endpoint,
        .max_message_bytes = config->max_message_bytes,
        .account = config->account,
        .is_raw = config->is_raw,
        .window_packets = (uint32_t)helio_window_packets(config->window_packets),
    };
    shared->is_group = helio_address_is_multicast(&config->group) && !config->is_connected;
    helio_random_init(&shared->random, config->seed);
    shared->node = (uint32_t)helio_random_next(&shared->random);
    *out = endpoint;
    return 0;
}

void helio_rx_endpoint_note_drops(helio_rx_endpoint *endpoint, uint64_t total, int64_t now_ns) {
    helio_rx_drops_note(&endpoint->shared.drops, total, now_ns);
}

void helio_rx_endpoint_destroy(helio_rx_endpoint *endpoint, helio_clock clock) {
    if (!endpoint)
        return;
    while (endpoint->replays)
        helio_rx_endpoint_end_replay(endpoint, endpoint->replays, clock);
    while (endpoint->streams) {
        helio_rx_stream *stream = endpoint->streams;
        endpoint->streams = stream->next;
        helio_rx_stream_destroy(stream, clock);
    }
    while (endpoint->shared.subscriptions.first)
        helio_subscriptions_remove(&endpoint->shared.subscriptions,
                                   endpoint->shared.subscriptions.first);
    helio_map_fini(&endpoint->by_tsi);
    free(endpoint->instance_name);
    free(endpoint->endpoint);
    free(endpoint);
}

/* ---- subscriptions ---- */

static void set_deadline(helio_rx_endpoint *endpoint, const helio_rx_stream *stream) {
    const int64_t deadline_ns = helio_rx_stream_next_deadline_ns(stream);
    if (deadline_ns < endpoint->deadline_ns)
        endpoint->deadline_ns = deadline_ns;
}

/* A subscription came or went, which may begin, end or change the acknowledging. */
static void set_acking(helio_rx_endpoint *endpoint, helio_clock clock) {
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        helio_rx_stream_set_acking(stream, clock);
        set_deadline(endpoint, stream);
    }
}

void helio_rx_endpoint_acknowledge(helio_rx_endpoint *endpoint,
                                   const helio_subscription *subscription, uint32_t number,
                                   uint64_t next, helio_clock clock) {
    helio_rx_stream *stream = endpoint->streams;
    while (stream && !helio_delivery_acknowledge(&stream->delivery, subscription, number, next))
        stream = stream->next;
    if (stream) {
        helio_rx_advance_acks(stream, clock);
        set_deadline(endpoint, stream);
    }
}

void helio_rx_endpoint_grant(helio_rx_endpoint *endpoint, helio_clock clock) {
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        stream->delivery.has_credit_news = stream->delivery.granting_count > 0;
        helio_rx_grant_when_due(stream, clock.now_ns);
        set_deadline(endpoint, stream);
    }
}

int helio_rx_endpoint_subscribe(helio_rx_endpoint *endpoint, const char *topic,
                                const helio_sink *sink, helio_clock clock,
                                helio_subscription **out) {
    helio_subscription *subscription;
    int error =
        helio_subscriptions_add(&endpoint->shared.subscriptions, topic, sink, &subscription);
    if (error)
        return error;
    for (helio_rx_stream *stream = endpoint->streams; stream && !error; stream = stream->next)
        error = helio_delivery_add(&stream->delivery, subscription);
    set_acking(endpoint, clock);
    if (error)
        helio_rx_endpoint_unsubscribe(endpoint, subscription, clock);
    else
        *out = subscription;
    return error;
}

void helio_rx_endpoint_unsubscribe(helio_rx_endpoint *endpoint, helio_subscription *subscription,
                                   helio_clock clock) {
    const bool ends_acking =
        helio_subscriptions_are_acked_by(&endpoint->shared.subscriptions, subscription);
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        /* The goodbye claims no more than was acknowledged, so it is said before that is forgotten. */
        if (ends_acking)
            helio_rx_stop_acking(stream, clock);
        helio_delivery_remove(&stream->delivery, subscription, clock);
        if (subscription->sink.credit > 0)
            helio_rx_stop_granting(stream, subscription->id, clock.now_ns);
        if (stream->is_blocked) /* perhaps it was this one that had no room */
            endpoint->deadline_ns = clock.now_ns;
    }
    helio_subscriptions_remove(&endpoint->shared.subscriptions, subscription);
    set_acking(endpoint, clock);
}

/* ---- streams ---- */

static bool has_ended(const helio_rx_endpoint *endpoint, uint64_t key, int64_t now_ns) {
    for (size_t i = 0; i < ENDED_KEPT; i++) {
        if (endpoint->ended[i].key == key && now_ns < endpoint->ended[i].until_ns)
            return true;
    }
    return false;
}

static expelled_stream *expelled_from(helio_rx_endpoint *endpoint, uint64_t key) {
    for (size_t i = 0; i < EXPELLED_KEPT; i++) {
        if (endpoint->expelled[i].key == key)
            return &endpoint->expelled[i];
    }
    return NULL;
}

/* Whether the receiver may follow the stream of this packet; *was_expelled: it might not before.
 * Only the source itself can tell. */
static bool is_admitted(helio_rx_endpoint *endpoint, uint64_t key, const helio_pgm_packet *packet,
                        const helio_address *from, int64_t now_ns, bool *was_expelled) {
    expelled_stream *expelled = expelled_from(endpoint, key);
    *was_expelled = expelled != NULL;
    if (!expelled)
        return true;
    int64_t until_ns;
    const int told = helio_address_same_ip(&expelled->source, from)
                         ? helio_rx_expelled_by(&endpoint->shared, packet, now_ns, &until_ns)
                         : 0;
    if (told > 0)
        expelled->until_ns = until_ns;
    if (told < 0 || now_ns >= expelled->until_ns)
        *expelled = (expelled_stream){0};
    return expelled->key == 0;
}

/* Opens the stream of a packet that belongs to none; NULL when it is not to be followed. */
static helio_rx_stream *meet_stream(helio_rx_endpoint *endpoint, const helio_pgm_packet *packet,
                                    const helio_address *from, helio_clock clock) {
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    if (!is_spm && packet->type != HELIO_PGM_TYPE_ODATA)
        return NULL;
    if (is_spm &&
        (packet->options & (HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST | HELIO_PGM_HAS_NBR_UNREACH)))
        return NULL;
    const uint64_t key = helio_tsi_key(&packet->tsi);
    if (has_ended(endpoint, key, clock.now_ns))
        return NULL;
    if (endpoint->count >= endpoint->shared.config.max_streams) {
        helio_count(&endpoint->shared.instance->packets_no_room, 1);
        return NULL;
    }
    bool was_expelled;
    if (clock.now_ns < endpoint->create_after_ns ||
        !is_admitted(endpoint, key, packet, from, clock.now_ns, &was_expelled))
        return NULL;
    helio_rx_stream *stream;
    if (helio_rx_stream_create(&endpoint->shared, packet, from, was_expelled, clock, &stream)) {
        endpoint->create_after_ns = clock.now_ns + CREATE_AGAIN_NS;
        return NULL;
    }
    if (was_expelled)
        helio_rx_tell_readmitted(stream, clock);
    if (helio_map_put(&endpoint->by_tsi, key, stream)) {
        helio_rx_stream_destroy(stream, clock);
        return NULL;
    }
    stream->next = endpoint->streams;
    endpoint->streams = stream;
    endpoint->count++;
    set_deadline(endpoint, stream);
    return stream;
}

static helio_rx_stream *find_stream(helio_rx_endpoint *endpoint, const helio_tsi *tsi) {
    if (endpoint->last && helio_tsi_equal(&endpoint->last->tsi, tsi))
        return endpoint->last;
    helio_rx_stream *stream = helio_map_get(&endpoint->by_tsi, helio_tsi_key(tsi));
    if (stream)
        endpoint->last = stream;
    return stream;
}

/* Ends the stream at the link, which then leads to the one after it. */
static void end_stream(helio_rx_endpoint *endpoint, helio_rx_stream **link,
                       helio_rx_stream_state state, helio_clock clock) {
    helio_rx_stream *stream = *link;
    const helio_rx_shared *shared = &endpoint->shared;
    const uint64_t key = helio_tsi_key(&stream->tsi);
    char tsi[HELIO_TSI_TEXT];
    helio_tsi_format(&stream->tsi, tsi);
    if (state == HELIO_RX_STREAM_CLOSED) {
        const uint64_t args[4] = {stream->end};
        helio_stats_event(shared->stats, clock.wall_ns, HELIO_EVENT_STREAM_CLOSED,
                          stream->object.slot, args, "stream %s ended with packet %" PRIu64, tsi,
                          stream->end);
        endpoint->ended[endpoint->ended_next++ % ENDED_KEPT] =
            (ended_stream){key, clock.now_ns + ENDED_NS};
    } else if (state == HELIO_RX_STREAM_EXPELLED) {
        endpoint->expelled[endpoint->expelled_next++ % EXPELLED_KEPT] =
            (expelled_stream){key, stream->source, stream->notices.expelled_until_ns};
    } else {
        const uint64_t silent_ns = (uint64_t)(clock.now_ns - stream->heard_ns);
        helio_stats_event(shared->stats, clock.wall_ns, HELIO_EVENT_STREAM_SILENT,
                          stream->object.slot, (const uint64_t[4]){silent_ns},
                          "stream %s was silent for %" PRIu64 " ms", tsi, silent_ns / 1000000);
    }
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_tsi_equal(helio_replay_tsi(r), &stream->tsi))
            helio_replay_give_up(r, clock);
    }
    *link = stream->next;
    helio_map_remove(&endpoint->by_tsi, key);
    if (endpoint->last == stream)
        endpoint->last = NULL;
    endpoint->count--;
    helio_rx_stream_destroy(stream, clock);
}

/* ---- packets ---- */

static void refuse(helio_rx_endpoint *endpoint, helio_pgm_refusal refusal,
                   const helio_address *from, helio_clock clock) {
    helio_pgm_count_refusal(endpoint->shared.instance, refusal);
    helio_rx_foreign_event(&endpoint->shared, from, "a malformed datagram", clock);
}

static void tell_conflict(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                          const helio_address *from, helio_clock clock) {
    helio_pgm_count_refusal(endpoint->shared.instance, HELIO_PGM_BAD_ADDRESS);
    if (clock.now_ns < stream->conflict_event_after_ns)
        return;
    stream->conflict_event_after_ns = clock.now_ns + CONFLICT_EVENT_NS;
    char tsi[HELIO_TSI_TEXT], here[HELIO_ADDRESS_TEXT], there[HELIO_ADDRESS_TEXT];
    helio_stats_event(
        endpoint->shared.stats, clock.wall_ns, HELIO_EVENT_STREAM_CONFLICT, stream->object.slot,
        NULL, "stream %s of %s also comes from %s", helio_tsi_format(&stream->tsi, tsi),
        helio_address_format_ip(&stream->source, here), helio_address_format_ip(from, there));
}

/* The packet is for receivers, so it must come from the source. */
static bool is_downstream(const helio_pgm_packet *packet) {
    switch (packet->type) {
    case HELIO_PGM_TYPE_SPM:
    case HELIO_PGM_TYPE_ODATA:
    case HELIO_PGM_TYPE_RDATA:
    case HELIO_PGM_TYPE_NCF:
    case HELIO_PGM_TYPE_POLL:
        return true;
    default:
        return false;
    }
}

void helio_rx_endpoint_stamp(helio_rx_endpoint *endpoint, int64_t kernel_ns) {
    endpoint->shared.kernel_ns = kernel_ns;
}

/* The clock may have been set in between: a wait below zero says nothing. */
static void record_wait(const helio_rx_stream *stream, int64_t kernel_ns, int64_t receive_ns) {
    if (kernel_ns && receive_ns >= kernel_ns)
        helio_record(stream->object.histogram[HELIO_RX_STREAM_SOCKET_LATENCY],
                     receive_ns - kernel_ns, 1);
}

/* ---- replays ---- */

int helio_rx_endpoint_replay(helio_rx_endpoint *endpoint, const helio_tsi *tsi, const char *topic,
                             uint64_t first, uint64_t last, const helio_sink *sink,
                             helio_clock clock, helio_replay **out) {
    const helio_rx_stream *stream = find_stream(endpoint, tsi);
    if (!stream || !stream->has_spm)
        return HELIO_ERR_STATE;
    const helio_replay_config config = {topic, first, last, *sink};
    const int error = helio_replay_create(stream, &config, clock, out);
    if (!error) {
        helio_replay_hold(*out, helio_rx_held_until(&stream->notices), clock.now_ns);
        *helio_replay_link(*out) = endpoint->replays;
        endpoint->replays = *out;
        endpoint->deadline_ns = clock.now_ns;
    }
    return error;
}

void helio_rx_endpoint_end_replay(helio_rx_endpoint *endpoint, helio_replay *replay,
                                  helio_clock clock) {
    helio_replay **link = &endpoint->replays;
    while (*link != replay)
        link = helio_replay_link(*link);
    *link = *helio_replay_link(replay);
    helio_replay_destroy(replay, clock);
}

static void set_replay_deadline(helio_rx_endpoint *endpoint, const helio_replay *replay) {
    const int64_t deadline_ns = helio_replay_next_deadline_ns(replay);
    if (deadline_ns < endpoint->deadline_ns)
        endpoint->deadline_ns = deadline_ns;
}

static void show_replays(helio_rx_endpoint *endpoint, const helio_rx_stream *stream,
                         const helio_pgm_packet *packet, size_t bytes, int64_t receive_ns,
                         helio_clock clock) {
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_tsi_equal(helio_replay_tsi(r), &packet->tsi)) {
            helio_replay_on_packet(r, packet, bytes, receive_ns, clock);
            if (packet->type == HELIO_PGM_TYPE_SPM)
                helio_replay_hold(r, helio_rx_held_until(&stream->notices), clock.now_ns);
            set_replay_deadline(endpoint, r);
        }
    }
}

void helio_rx_endpoint_on_packet(helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                                 const helio_address *from, int64_t receive_ns, helio_clock clock) {
    helio_instance_stats *instance = endpoint->shared.instance;
    helio_count(&instance->packets_received, 1);
    helio_count(&instance->packet_bytes_received, length);
    helio_pgm_packet packet;
    helio_pgm_refusal refusal = HELIO_PGM_BAD_SIZE;
    if (length <= endpoint->shared.config.max_packet_bytes)
        refusal = endpoint->shared.config.has_checksums
                      ? helio_pgm_decode(datagram, length, &packet)
                      : helio_pgm_decode_unsummed(datagram, length, &packet);
    if (refusal) {
        refuse(endpoint, refusal, from, clock);
        return;
    }
    helio_rx_stream *stream = find_stream(endpoint, &packet.tsi);
    if (!stream)
        stream = meet_stream(endpoint, &packet, from, clock);
    if (!stream) {
        helio_count(&instance->unknown_session_packets, 1);
        return;
    }
    if (is_downstream(&packet)) {
        if (!helio_address_same_ip(&stream->source, from)) {
            tell_conflict(endpoint, stream, from, clock);
            return;
        }
    } else if (helio_address_equal(from, &endpoint->shared.config.feedback_address)) {
        return; /* our own, come back */
    } else if (packet.type != HELIO_PGM_TYPE_NAK && packet.type != HELIO_PGM_TYPE_SPMR) {
        return; /* another receiver's POLR or ACK */
    }
    if ((packet.flags & HELIO_PGM_FLAG_PARITY) && packet.tsdu_bytes > 0) {
        helio_count(&instance->foreign_packets, 1); /* repair data of a kind not used here */
        return;
    }
    record_wait(stream, endpoint->shared.kernel_ns, receive_ns);
    helio_rx_stream_on_packet(stream, &packet, length, from, receive_ns, clock);
    if (endpoint->replays)
        show_replays(endpoint, stream, &packet, length, receive_ns, clock);
    if (stream->nak.outstanding > 0 || stream->acks.is_on || stream->credit.is_awaited ||
        stream->polled.due_ns != HELIO_NEVER || helio_rx_reports_follows(&stream->reports))
        set_deadline(endpoint, stream);
    else if (stream->has_end)
        endpoint->deadline_ns = clock.now_ns; /* it may be over */
    else if (packet.type == HELIO_PGM_TYPE_SPM)
        set_deadline(endpoint, stream); /* of reports */
}

/* ---- time ---- */

int helio_rx_endpoint_poll(helio_rx_endpoint *endpoint, helio_clock clock) {
    if (clock.now_ns < endpoint->deadline_ns && !helio_rx_endpoint_is_blocked(endpoint))
        return 0;
    int work = 0;
    /* Nothing was read from connections meanwhile, so nobody was silent. */
    const bool was_held_back =
        endpoint->shared.config.is_connected && endpoint->shared.blocked_streams > 0;
    endpoint->deadline_ns = HELIO_NEVER;
    helio_rx_stream **link = &endpoint->streams;
    while (*link) {
        helio_rx_stream *stream = *link;
        if (was_held_back)
            stream->heard_ns = clock.now_ns;
        work += helio_rx_stream_poll(stream, clock);
        const helio_rx_stream_state state = helio_rx_stream_state_of(stream, clock);
        if (state == HELIO_RX_STREAM_OPEN) {
            set_deadline(endpoint, stream);
            link = &stream->next;
        } else {
            end_stream(endpoint, link, state, clock);
            work++;
        }
    }
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        work += helio_replay_poll(r, clock);
        set_replay_deadline(endpoint, r);
    }
    return work;
}

int64_t helio_rx_endpoint_next_deadline_ns(const helio_rx_endpoint *endpoint) {
    return endpoint->deadline_ns;
}

bool helio_rx_endpoint_is_blocked(const helio_rx_endpoint *endpoint) {
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_replay_is_blocked(r))
            return true;
    }
    return endpoint->shared.blocked_streams > 0;
}

bool helio_rx_endpoint_must_hear(const helio_rx_endpoint *endpoint, uint64_t packets) {
    bool is_wanted = false;
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r))
        is_wanted |= helio_replay_is_waiting(r);
    for (const helio_rx_stream *s = endpoint->streams; s && is_wanted; s = s->next)
        is_wanted = !s->is_blocked || s->rxw.trail + s->rxw.mask >= s->rxw.lead + packets;
    return is_wanted;
}
