#include "receive/endpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/map.h"
#include "base/sequence.h"
#include "receive/feedback.h"
#include "receive/replay.h"
#include "receive/stream.h"
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
    helio_address source;
    bool is_exact; /* the source is known by its port, too */
    uint32_t end;  /* the last packet there was */
} ended_stream;

typedef struct expelled_stream {
    uint64_t key; /* 0: none */
    helio_address source;
    bool is_exact;
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
    helio_rx_absents absents;
    ended_stream ended[ENDED_KEPT];
    uint32_t ended_next;
    expelled_stream expelled[EXPELLED_KEPT];
    uint32_t expelled_next;
    helio_rx_mets mets; /* streams met and not followed */
};

int helio_rx_endpoint_create(const helio_rx_endpoint_config *config, helio_outlet outlet,
                             helio_stats *stats, helio_instance_stats *instance,
                             helio_rx_endpoint **out) {
    if (config->max_packet_bytes < HELIO_PGM_PACKET_MIN ||
        config->max_packet_bytes > HELIO_PGM_PACKET_MAX ||
        config->window_packets > (UINT32_C(1) << 30) || config->max_streams == 0 ||
        config->nak_repeat_ns < 0 || config->nak_data_ns < 0) {
        return HELIO_ERR_OPTION;
    }
    helio_rx_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint) {
        return HELIO_ERR_NOMEM;
    }
    endpoint->instance_name = strdup(config->instance ? config->instance : "");
    endpoint->endpoint = strdup(config->endpoint ? config->endpoint : "");
    endpoint->deadline_ns = HELIO_NEVER;
    helio_rx_shared *shared = &endpoint->shared;
    helio_random_init(&shared->random, config->seed);
    if (!endpoint->instance_name || !endpoint->endpoint || helio_map_init(&endpoint->by_tsi, 8) ||
        helio_rx_unproven_init(&shared->unproven, helio_random_next(&shared->random)) ||
        helio_rx_absents_init(&endpoint->absents, config->account, instance)) {
        helio_rx_unproven_fini(&shared->unproven);
        helio_map_fini(&endpoint->by_tsi);
        free(endpoint->instance_name);
        free(endpoint->endpoint);
        free(endpoint);
        return HELIO_ERR_NOMEM;
    }
    helio_rx_mets_init(&endpoint->mets, helio_random_next(&shared->random));
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
    shared->node = (uint32_t)helio_random_next(&shared->random);
    *out = endpoint;
    return 0;
}

void helio_rx_endpoint_note_drops(helio_rx_endpoint *endpoint, uint64_t total, int64_t now_ns) {
    helio_rx_drops_note(&endpoint->shared.drops, total, now_ns);
}

void helio_rx_endpoint_destroy(helio_rx_endpoint *endpoint, helio_clock clock) {
    if (!endpoint) {
        return;
    }
    while (endpoint->replays) {
        helio_rx_endpoint_end_replay(endpoint, endpoint->replays, clock);
    }
    while (endpoint->streams) {
        helio_rx_stream *stream = endpoint->streams;
        endpoint->streams = stream->next;
        helio_rx_stream_destroy(stream, clock);
    }
    helio_rx_unproven_fini(&endpoint->shared.unproven);
    helio_rx_mets_fini(&endpoint->mets, &endpoint->shared);
    while (endpoint->shared.subscriptions.first) {
        helio_subscriptions_remove(&endpoint->shared.subscriptions,
                                   endpoint->shared.subscriptions.first);
    }
    helio_map_fini(&endpoint->by_tsi);
    helio_rx_absents_fini(&endpoint->absents);
    free(endpoint->instance_name);
    free(endpoint->endpoint);
    free(endpoint);
}

/* ---- subscriptions ---- */

static void set_deadline(helio_rx_endpoint *endpoint, const helio_rx_stream *stream) {
    const int64_t deadline_ns = helio_rx_stream_next_deadline_ns(stream);
    if (deadline_ns < endpoint->deadline_ns) {
        endpoint->deadline_ns = deadline_ns;
    }
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
    while (stream && !helio_delivery_acknowledge(&stream->delivery, subscription, number, next)) {
        stream = stream->next;
    }
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
    if (error) {
        return error;
    }
    for (helio_rx_stream *stream = endpoint->streams; stream && !error; stream = stream->next) {
        error = helio_delivery_add(&stream->delivery, subscription);
    }
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        stream->is_complete &= stream->rxw.trail == stream->first;
    }
    helio_rx_mets_on_subscribe(&endpoint->mets);
    set_acking(endpoint, clock);
    if (error) {
        helio_rx_endpoint_unsubscribe(endpoint, subscription, clock);
    } else {
        *out = subscription;
    }
    return error;
}

void helio_rx_endpoint_unsubscribe(helio_rx_endpoint *endpoint, helio_subscription *subscription,
                                   helio_clock clock) {
    const bool ends_acking =
        helio_subscriptions_are_acked_by(&endpoint->shared.subscriptions, subscription);
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        /* The goodbye claims no more than was acknowledged, so it is said before that is forgotten. */
        if (ends_acking) {
            helio_rx_stop_acking(stream, clock);
        }
        helio_delivery_remove(&stream->delivery, subscription, clock);
        if (subscription->sink.credit > 0) {
            helio_rx_stop_granting(stream, subscription->id, clock.now_ns);
        }
        if (stream->is_blocked) { /* perhaps it was this one that had no room */
            endpoint->deadline_ns = clock.now_ns;
        }
    }
    helio_subscriptions_remove(&endpoint->shared.subscriptions, subscription);
    set_acking(endpoint, clock);
}

/* ---- streams ---- */

/* The source sends newer data than it could if it had ended the stream itself: somebody else had. */
static bool refutes_end(const ended_stream *ended, const helio_pgm_packet *packet,
                        const helio_address *from) {
    return packet->type == HELIO_PGM_TYPE_ODATA &&
           helio_sequence_before(ended->end, packet->sequence) &&
           helio_rx_is_from(&ended->source, ended->is_exact, from);
}

static bool has_ended(const helio_rx_endpoint *endpoint, uint64_t key,
                      const helio_pgm_packet *packet, const helio_address *from, int64_t now_ns) {
    for (size_t i = 0; i < ENDED_KEPT; i++) {
        const ended_stream *ended = &endpoint->ended[i];
        if (ended->key == key && now_ns < ended->until_ns && !refutes_end(ended, packet, from)) {
            return true;
        }
    }
    return false;
}

static expelled_stream *expelled_from(helio_rx_endpoint *endpoint, uint64_t key) {
    for (size_t i = 0; i < EXPELLED_KEPT; i++) {
        if (endpoint->expelled[i].key == key) {
            return &endpoint->expelled[i];
        }
    }
    return NULL;
}

/* Whether the receiver may follow the stream of this packet; *was_expelled: it might not before.
 * Only the source itself can tell. */
static bool is_admitted(helio_rx_endpoint *endpoint, uint64_t key, const helio_pgm_packet *packet,
                        const helio_address *from, int64_t now_ns, bool *was_expelled) {
    expelled_stream *expelled = expelled_from(endpoint, key);
    *was_expelled = expelled != NULL;
    if (!expelled) {
        return true;
    }
    int64_t until_ns;
    const int told = helio_rx_is_from(&expelled->source, expelled->is_exact, from)
                         ? helio_rx_expelled_by(&endpoint->shared, packet, now_ns, &until_ns)
                         : 0;
    if (told > 0) {
        expelled->until_ns = until_ns;
    }
    if (told < 0 || now_ns >= expelled->until_ns) {
        *expelled = (expelled_stream){0};
    }
    return expelled->key == 0;
}

static helio_rx_stream *find_stream(helio_rx_endpoint *endpoint, const helio_tsi *tsi) {
    if (endpoint->last && helio_tsi_equal(&endpoint->last->tsi, tsi)) {
        return endpoint->last;
    }
    helio_rx_stream *stream = helio_map_get(&endpoint->by_tsi, helio_tsi_key(tsi));
    if (stream) {
        endpoint->last = stream;
    }
    return stream;
}

/* Takes a stream out of the endpoint, and its memory with it. */
static void drop_stream(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_clock clock) {
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_tsi_equal(helio_replay_tsi(r), &stream->tsi)) {
            helio_replay_give_up(r, clock);
        }
    }
    *stream->link = stream->next;
    if (stream->next) {
        stream->next->link = stream->link;
    }
    helio_map_remove(&endpoint->by_tsi, helio_tsi_key(&stream->tsi));
    if (endpoint->last == stream) {
        endpoint->last = NULL;
    }
    endpoint->count--;
    helio_rx_stream_destroy(stream, clock);
}

static void end_stream(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                       helio_rx_stream_state state, helio_clock clock) {
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
            (ended_stream){key, clock.now_ns + ENDED_NS, stream->source, stream->binding.is_exact,
                           (uint32_t)stream->end};
    } else if (state == HELIO_RX_STREAM_EXPELLED) {
        endpoint->expelled[endpoint->expelled_next++ % EXPELLED_KEPT] = (expelled_stream){
            key, stream->source, stream->binding.is_exact, stream->notices.expelled_until_ns};
    } else if (state == HELIO_RX_STREAM_SILENT) {
        const uint64_t silent_ns = (uint64_t)(clock.now_ns - stream->heard_ns);
        helio_stats_event(shared->stats, clock.wall_ns, HELIO_EVENT_STREAM_SILENT,
                          stream->object.slot, (const uint64_t[4]){silent_ns},
                          "stream %s was silent for %" PRIu64 " ms", tsi, silent_ns / 1000000);
    }
    if (state == HELIO_RX_STREAM_SILENT || state == HELIO_RX_STREAM_EXPELLED) {
        helio_rx_absents_keep(&endpoint->absents, stream, clock.now_ns);
    }
    drop_stream(endpoint, stream, clock);
}

/* A stream that has proven nothing gives way, and is a mere acquaintance again; one that was to begin
 * with history is met again by its next packet. */
static void put_out(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_rx_refusal refusal,
                    const helio_address *from, helio_clock clock) {
    const helio_rx_start start = {
        .first = stream->rxw.trail,
        .joined = stream->joined > stream->rxw.trail - 1 ? stream->rxw.trail - 1 : stream->joined,
        .is_complete = stream->is_complete,
    };
    helio_rx_shared *shared = &endpoint->shared;
    helio_rx_refuse_state(shared, refusal, from, clock);
    if (stream->was_proven) {
        helio_rx_absents_keep(&endpoint->absents, stream, clock.now_ns);
    } else if (!stream->is_waiting && !stream->is_pacing) {
        helio_rx_mets_remember(&endpoint->mets, shared, helio_tsi_key(&stream->tsi),
                               &stream->source, &start, clock);
    }
    stream->gives_way = true;
    drop_stream(endpoint, stream, clock);
}

/* The stream, which has proven nothing, is put out for a new one of `from`, if that may; else the new
 * one is refused. */
static bool give_way(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                     helio_rx_follow_it follow, helio_rx_refusal refusal, const helio_address *from,
                     helio_clock clock) {
    if (follow == HELIO_RX_FOLLOW_IF_ROOM) {
        return false;
    }
    if (follow == HELIO_RX_FOLLOW_PERHAPS &&
        clock.now_ns - stream->opened_ns < HELIO_RX_UNPROVEN_NS) {
        helio_rx_refuse_state(&endpoint->shared, refusal, from, clock);
        return false;
    }
    put_out(endpoint, stream, refusal, from, clock);
    return true;
}

/* Room for one more stream that has proven nothing, of `from`; what gives way for it has not, either. */
static bool make_room(helio_rx_endpoint *endpoint, const helio_address *from,
                      helio_rx_follow_it follow, helio_clock clock) {
    const helio_rx_unproven *unproven = &endpoint->shared.unproven;
    const uint32_t max_streams = endpoint->shared.config.max_streams;
    helio_rx_stream *of_address = helio_rx_unproven_too_many(unproven, from, max_streams);
    if (of_address &&
        !give_way(endpoint, of_address, follow, HELIO_RX_REFUSED_OF_ADDRESS, from, clock)) {
        return false;
    }
    if (endpoint->count < max_streams) {
        return true;
    }
    if (unproven->oldest) {
        return give_way(endpoint, unproven->oldest, follow, HELIO_RX_REFUSED_STREAMS, from, clock);
    }
    helio_count(&endpoint->shared.instance->packets_no_room, 1);
    return false;
}

/* The oldest that has proven nothing gives way when there is no memory for the stream. */
static helio_rx_stream *create_stream(helio_rx_endpoint *endpoint, const helio_tsi *tsi,
                                      const helio_rx_start *start, const helio_rx_return *back,
                                      const helio_address *from, helio_clock clock) {
    helio_rx_shared *shared = &endpoint->shared;
    helio_rx_stream *stream;
    int error = helio_rx_stream_create(shared, tsi, start, back, from, clock, &stream);
    if (error && shared->unproven.oldest) {
        put_out(endpoint, shared->unproven.oldest, HELIO_RX_REFUSED_MEMORY, from, clock);
        error = helio_rx_stream_create(shared, tsi, start, back, from, clock, &stream);
    }
    if (!error) {
        return stream;
    }
    endpoint->create_after_ns = clock.now_ns + CREATE_AGAIN_NS;
    helio_rx_refuse_state(shared, HELIO_RX_REFUSED_MEMORY, from, clock);
    return NULL;
}

static helio_rx_stream *open_stream(helio_rx_endpoint *endpoint, const helio_tsi *tsi,
                                    const helio_rx_start *start, const helio_rx_return *back,
                                    const helio_address *from, helio_clock clock) {
    helio_rx_stream *stream = create_stream(endpoint, tsi, start, back, from, clock);
    if (!stream) {
        return NULL;
    }
    if (helio_map_put(&endpoint->by_tsi, helio_tsi_key(tsi), stream) ||
        helio_rx_unproven_add(&endpoint->shared.unproven, stream)) {
        helio_map_remove(&endpoint->by_tsi, helio_tsi_key(tsi));
        helio_rx_stream_destroy(stream, clock);
        return NULL;
    }
    stream->next = endpoint->streams;
    stream->link = &endpoint->streams;
    if (stream->next) {
        stream->next->link = &stream->next;
    }
    endpoint->streams = stream;
    endpoint->count++;
    helio_rx_mets_forget(&endpoint->mets, &endpoint->shared, helio_tsi_key(tsi), from);
    set_deadline(endpoint, stream);
    return stream;
}

/* What a packet of a stream leads to that is not followed: whether it is to be from now on, and from
 * where. */
static helio_rx_follow_it consider(helio_rx_endpoint *endpoint, const helio_pgm_packet *packet,
                                   const helio_address *from, helio_clock clock, helio_rx_met *met,
                                   bool *was_expelled) {
    enum { LAST = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST | HELIO_PGM_HAS_NBR_UNREACH };
    const uint64_t key = helio_tsi_key(&packet->tsi);
    *was_expelled = expelled_from(endpoint, key) != NULL;
    if (!*was_expelled) {
        return helio_rx_mets_on_packet(&endpoint->mets, &endpoint->shared, packet, from, clock,
                                       met);
    }
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    if (packet->type == HELIO_PGM_TYPE_POLL || (is_spm && (packet->options & LAST)) ||
        !is_admitted(endpoint, key, packet, from, clock.now_ns, was_expelled)) {
        return HELIO_RX_FOLLOW_NOT;
    }
    *met = (helio_rx_met){.start = helio_rx_start_of(&endpoint->shared, packet, true)};
    return HELIO_RX_FOLLOW;
}

/* A stream that was followed before is back: it goes on where it was.  NULL when it is not to be
 * followed, or there is no room: then it is remembered still. */
static helio_rx_stream *meet_again(helio_rx_endpoint *endpoint, const helio_pgm_packet *packet,
                                   const helio_rx_absent *absent, const helio_address *from,
                                   helio_clock clock) {
    enum { ENDS = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST };
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    bool was_expelled;
    if (packet->type == HELIO_PGM_TYPE_POLL ||
        (is_spm && (packet->options & HELIO_PGM_HAS_NBR_UNREACH)) ||
        (is_spm && (packet->options & ENDS) && !helio_rx_absent_misses(absent, packet->lead)) ||
        !is_admitted(endpoint, helio_tsi_key(&packet->tsi), packet, from, clock.now_ns,
                     &was_expelled)) {
        return NULL;
    }
    helio_rx_return back;
    const helio_rx_start start =
        helio_rx_start_again(&endpoint->shared, packet, absent, was_expelled, &back);
    helio_rx_stream *stream = NULL;
    endpoint->absents.returning = absent; /* those that give way for it must not replace it */
    if (make_room(endpoint, from, HELIO_RX_FOLLOW, clock)) {
        stream = open_stream(endpoint, &packet->tsi, &start, &back, from, clock);
    }
    endpoint->absents.returning = NULL;
    if (!stream) {
        return NULL;
    }
    helio_rx_absents_forget(&endpoint->absents, &packet->tsi);
    if (was_expelled) {
        helio_rx_tell_readmitted(stream, clock);
    }
    return stream;
}

/* A packet belongs to no stream that is followed: the stream of it if it is from now on, else NULL. */
static helio_rx_stream *meet_stream(helio_rx_endpoint *endpoint, const helio_pgm_packet *packet,
                                    const helio_address *from, helio_clock clock) {
    const uint64_t key = helio_tsi_key(&packet->tsi);
    if ((packet->type != HELIO_PGM_TYPE_SPM && packet->type != HELIO_PGM_TYPE_ODATA &&
         packet->type != HELIO_PGM_TYPE_POLL) ||
        has_ended(endpoint, key, packet, from, clock.now_ns) ||
        clock.now_ns < endpoint->create_after_ns) {
        return NULL;
    }
    const helio_rx_absent *absent = helio_rx_absents_find(&endpoint->absents, &packet->tsi, from,
                                                          &endpoint->shared.subscriptions);
    if (absent) {
        return meet_again(endpoint, packet, absent, from, clock);
    }
    helio_rx_met met;
    bool was_expelled;
    const helio_rx_follow_it follow = consider(endpoint, packet, from, clock, &met, &was_expelled);
    if (follow == HELIO_RX_FOLLOW_NOT) {
        return NULL;
    }
    helio_rx_stream *stream = NULL;
    if (make_room(endpoint, from, follow, clock)) {
        stream = open_stream(endpoint, &packet->tsi, &met.start, NULL, from, clock);
    }
    if (stream && met.has_spm && packet->type != HELIO_PGM_TYPE_SPM) {
        const helio_pgm_packet spm = helio_rx_met_packet(&met, &packet->tsi);
        helio_rx_stream_on_packet(stream, &spm, 0, &met.spm.from, clock.wall_ns, clock);
    }
    if (stream && was_expelled) {
        helio_rx_tell_readmitted(stream, clock);
    }
    /* It is met again when there is room; if it is only refused for now, it goes on where it is. */
    if (!stream && !endpoint->shared.unproven.oldest) {
        helio_rx_mets_forget(&endpoint->mets, &endpoint->shared, key, from);
    } else if (!stream) {
        helio_rx_mets_remember(&endpoint->mets, &endpoint->shared, key, from, &met.start, clock);
    }
    return stream;
}

/* It may have proven by now to be one that this receiver wants. */
static void look_at_proof(helio_rx_stream *stream, int64_t now_ns) {
    if (stream->delivery.has_met) {
        helio_rx_stream_prove(stream, now_ns);
    }
}

/* ---- packets ---- */

static void refuse(helio_rx_endpoint *endpoint, helio_pgm_refusal refusal,
                   const helio_address *from, helio_clock clock) {
    helio_pgm_count_refusal(endpoint->shared.instance, refusal);
    helio_rx_foreign_event(&endpoint->shared, from, "a malformed datagram", clock);
}

static void tell_conflict(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                          const helio_address *from, helio_clock clock) {
    if (clock.now_ns < stream->conflict_event_after_ns) {
        return;
    }
    stream->conflict_event_after_ns = clock.now_ns + CONFLICT_EVENT_NS;
    char tsi[HELIO_TSI_TEXT], here[HELIO_ADDRESS_TEXT], there[HELIO_ADDRESS_TEXT];
    helio_stats_event(
        endpoint->shared.stats, clock.wall_ns, HELIO_EVENT_STREAM_CONFLICT, stream->object.slot,
        NULL, "stream %s of %s also comes from %s", helio_tsi_format(&stream->tsi, tsi),
        helio_address_format(&stream->source, here), helio_address_format(from, there));
}

/* Somebody was taken for the source before the source itself came. */
static helio_rx_stream *displace(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                                 const helio_pgm_packet *packet, const helio_address *from,
                                 helio_clock clock) {
    tell_conflict(endpoint, stream, from, clock);
    end_stream(endpoint, stream, HELIO_RX_STREAM_DISPLACED, clock);
    return meet_stream(endpoint, packet, from, clock);
}

/* The stream of a packet that goes downstream; NULL: it is refused, and counted. */
static helio_rx_stream *stream_of_source(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                                         const helio_pgm_packet *packet, const helio_address *from,
                                         helio_clock clock) {
    switch (helio_rx_origin_of(stream, from, clock.now_ns)) {
    case HELIO_RX_OF_SOURCE:
        return stream;
    case HELIO_RX_OF_OWNER:
        if (packet->type == HELIO_PGM_TYPE_SPM || packet->type == HELIO_PGM_TYPE_ODATA) {
            return displace(endpoint, stream, packet, from, clock);
        }
        break;
    case HELIO_RX_OF_ANOTHER:
        break;
    }
    helio_pgm_count_refusal(endpoint->shared.instance, HELIO_PGM_BAD_ADDRESS);
    tell_conflict(endpoint, stream, from, clock);
    return NULL;
}

void helio_rx_endpoint_detach(helio_rx_endpoint *endpoint, const helio_address *peer) {
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        stream->binding.is_detached |= helio_address_equal(&stream->source, peer);
    }
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
    if (kernel_ns && receive_ns >= kernel_ns) {
        helio_record(stream->object.histogram[HELIO_RX_STREAM_SOCKET_LATENCY],
                     receive_ns - kernel_ns, 1);
    }
}

/* ---- replays ---- */

int helio_rx_endpoint_replay(helio_rx_endpoint *endpoint, const helio_tsi *tsi, const char *topic,
                             uint64_t first, uint64_t last, const helio_sink *sink,
                             helio_clock clock, helio_replay **out) {
    const helio_rx_stream *stream = find_stream(endpoint, tsi);
    if (!stream || !stream->has_spm) {
        return HELIO_ERR_STATE;
    }
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
    while (*link != replay) {
        link = helio_replay_link(*link);
    }
    *link = *helio_replay_link(replay);
    helio_replay_destroy(replay, clock);
}

static void set_replay_deadline(helio_rx_endpoint *endpoint, const helio_replay *replay) {
    const int64_t deadline_ns = helio_replay_next_deadline_ns(replay);
    if (deadline_ns < endpoint->deadline_ns) {
        endpoint->deadline_ns = deadline_ns;
    }
}

static void show_replays(helio_rx_endpoint *endpoint, const helio_rx_stream *stream,
                         const helio_pgm_packet *packet, size_t bytes, int64_t receive_ns,
                         helio_clock clock) {
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_tsi_equal(helio_replay_tsi(r), &packet->tsi)) {
            helio_replay_on_packet(r, packet, bytes, receive_ns, clock);
            if (packet->type == HELIO_PGM_TYPE_SPM) {
                helio_replay_hold(r, helio_rx_held_until(&stream->notices), clock.now_ns);
            }
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
    if (length <= endpoint->shared.config.max_packet_bytes) {
        refusal = endpoint->shared.config.has_checksums
                      ? helio_pgm_decode(datagram, length, &packet)
                      : helio_pgm_decode_unsummed(datagram, length, &packet);
    }
    if (refusal) {
        refuse(endpoint, refusal, from, clock);
        return;
    }
    helio_rx_stream *stream = find_stream(endpoint, &packet.tsi);
    if (!stream) {
        stream = meet_stream(endpoint, &packet, from, clock);
    }
    if (!stream) {
        helio_count(&instance->unknown_session_packets, 1);
        return;
    }
    if (is_downstream(&packet)) {
        stream = stream_of_source(endpoint, stream, &packet, from, clock);
        if (!stream) {
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
    if (helio_rx_is_unproven(stream)) {
        look_at_proof(stream, clock.now_ns);
    }
    if (endpoint->replays) {
        show_replays(endpoint, stream, &packet, length, receive_ns, clock);
    }
    if (stream->nak.outstanding > 0 || stream->acks.is_on || stream->credit.is_awaited ||
        stream->polled.due_ns != HELIO_NEVER || helio_rx_reports_follows(&stream->reports)) {
        set_deadline(endpoint, stream);
    } else if (stream->has_end) {
        endpoint->deadline_ns = clock.now_ns; /* it may be over */
    } else if (packet.type == HELIO_PGM_TYPE_SPM) {
        set_deadline(endpoint, stream); /* of reports */
    }
}

/* ---- time ---- */

int helio_rx_endpoint_poll(helio_rx_endpoint *endpoint, helio_clock clock) {
    if (clock.now_ns < endpoint->deadline_ns && !helio_rx_endpoint_is_blocked(endpoint)) {
        return 0;
    }
    int work = 0;
    /* Nothing was read from connections meanwhile, so nobody was silent. */
    const bool was_held_back =
        endpoint->shared.config.is_connected && endpoint->shared.blocked_streams > 0;
    endpoint->deadline_ns = HELIO_NEVER;
    for (helio_rx_stream *stream = endpoint->streams, *next; stream; stream = next) {
        next = stream->next;
        if (was_held_back) {
            stream->heard_ns = clock.now_ns;
        }
        work += helio_rx_stream_poll(stream, clock);
        if (helio_rx_is_unproven(stream)) {
            look_at_proof(stream, clock.now_ns);
        }
        const helio_rx_stream_state state = helio_rx_stream_state_of(stream, clock);
        if (state == HELIO_RX_STREAM_OPEN) {
            set_deadline(endpoint, stream);
        } else {
            end_stream(endpoint, stream, state, clock);
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
        if (helio_replay_is_blocked(r)) {
            return true;
        }
    }
    return endpoint->shared.blocked_streams > 0;
}

bool helio_rx_endpoint_must_hear(const helio_rx_endpoint *endpoint, uint64_t packets) {
    bool is_wanted = false;
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        is_wanted |= helio_replay_is_waiting(r);
    }
    for (const helio_rx_stream *s = endpoint->streams; s && is_wanted; s = s->next) {
        is_wanted = !s->is_blocked || s->rxw.trail + s->rxw.mask >= s->rxw.lead + packets;
    }
    return is_wanted;
}
