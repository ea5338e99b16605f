#include "receive/endpoint_parts.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/math.h"
#include "receive/fast_path.h"
#include "receive/feedback.h"
#include "receive/wanted.h"
#include "window/size.h"

/* After an announcement, for the other packets of it. */
#define LEARN_NS (50 * HELIO_MILLISECOND)
#define CONFLICT_EVENT_NS (10 * HELIO_SECOND)

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
        helio_rx_repairs_open(&endpoint->repairs, config, outlet, instance) ||
        helio_rx_unproven_init(&shared->unproven, helio_random_next(&shared->random)) ||
        helio_rx_absents_init(&endpoint->absents, config->account, instance)) {
        helio_rx_unproven_fini(&shared->unproven);
        helio_rx_repairs_close(&endpoint->repairs, config->account, instance);
        helio_map_fini(&endpoint->by_tsi);
        free(endpoint->instance_name);
        free(endpoint->endpoint);
        free(endpoint);
        return HELIO_ERR_NOMEM;
    }
    helio_rx_discovery_init(&endpoint->discovery, helio_random_next(&shared->random));
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
    shared->config.no_fast_path |= config->repairs.bytes > 0; /* each packet is kept */
    shared->is_group = helio_address_is_multicast(&config->group) && !config->is_connected;
    shared->node = (uint32_t)helio_random_next(&shared->random);
    *out = endpoint;
    return 0;
}

void helio_rx_endpoint_note_drops(helio_rx_endpoint *endpoint, uint64_t total, int64_t now_ns) {
    helio_rx_drops_note(&endpoint->shared.drops, total, now_ns);
}

void helio_rx_endpoint_destroy(helio_rx_endpoint *endpoint, helio_moment moment) {
    if (!endpoint) {
        return;
    }
    while (endpoint->replays) {
        helio_rx_endpoint_end_replay(endpoint, endpoint->replays, moment);
    }
    while (endpoint->streams) {
        helio_rx_stream *stream = endpoint->streams;
        endpoint->streams = stream->next;
        helio_rx_stream_destroy(stream, moment);
    }
    helio_rx_repairs_close(&endpoint->repairs, endpoint->shared.config.account,
                           endpoint->shared.instance);
    helio_rx_unproven_fini(&endpoint->shared.unproven);
    helio_rx_discovery_fini(&endpoint->discovery, &endpoint->shared);
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

/* ---- message stores ---- */

uint32_t helio_rx_endpoint_stores(const helio_rx_endpoint *endpoint, helio_address *out,
                                  uint32_t limit) {
    uint32_t count = 0;
    for (const helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        for (uint32_t i = 0; i < stream->stores_count; i++) {
            count = helio_address_add(out, count, limit, &stream->stores[i]);
        }
    }
    return count;
}

/* ---- subscriptions ---- */

/* A subscription was added or removed, which may begin, end or change acknowledging. */
static void set_acking(helio_rx_endpoint *endpoint, helio_moment moment) {
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        helio_rx_stream_set_acking(stream, moment);
        helio_rx_endpoint_set_deadline(endpoint, stream);
    }
}

void helio_rx_endpoint_acknowledge(helio_rx_endpoint *endpoint,
                                   const helio_subscription *subscription, uint32_t number,
                                   uint64_t next, helio_moment moment) {
    helio_rx_stream *stream = endpoint->streams;
    while (stream && !helio_delivery_acknowledge(&stream->delivery, subscription, number, next)) {
        stream = stream->next;
    }
    if (stream) {
        helio_rx_advance_acks(stream, moment);
        helio_rx_endpoint_set_deadline(endpoint, stream);
    }
}

void helio_rx_endpoint_grant(helio_rx_endpoint *endpoint, helio_moment moment) {
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        stream->delivery.has_credit_news = stream->delivery.granting_count > 0;
        helio_rx_grant_when_due(stream, moment.now_ns);
        helio_rx_endpoint_set_deadline(endpoint, stream);
    }
}

int helio_rx_endpoint_subscribe(helio_rx_endpoint *endpoint, const char *topic,
                                const helio_sink *sink, helio_moment moment,
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
    helio_rx_discovery_on_subscribe(&endpoint->discovery);
    set_acking(endpoint, moment);
    if (error) {
        helio_rx_endpoint_unsubscribe(endpoint, subscription, moment);
    } else {
        *out = subscription;
    }
    return error;
}

void helio_rx_endpoint_unsubscribe(helio_rx_endpoint *endpoint, helio_subscription *subscription,
                                   helio_moment moment) {
    const bool ends_acking =
        helio_subscriptions_are_acked_by(&endpoint->shared.subscriptions, subscription);
    for (helio_rx_stream *stream = endpoint->streams; stream; stream = stream->next) {
        /* The goodbye claims no more than was acknowledged, so send it before that state is
         * gone. */
        if (ends_acking) {
            helio_rx_stop_acking(stream, moment);
        }
        helio_delivery_remove(&stream->delivery, subscription, moment);
        if (subscription->sink.credit > 0) {
            helio_rx_stop_granting(stream, subscription->id, moment.now_ns);
        }
        if (stream->is_blocked) { /* perhaps this subscription had no room */
            endpoint->deadline_ns = moment.now_ns;
        }
    }
    helio_subscriptions_remove(&endpoint->shared.subscriptions, subscription);
    set_acking(endpoint, moment);
}

bool helio_rx_endpoint_has_topic(const helio_rx_endpoint *endpoint, uint64_t id) {
    return helio_subscriptions_has(&endpoint->shared.subscriptions, id);
}

void helio_rx_endpoint_add_finder(helio_rx_endpoint *endpoint, helio_topic_finder *finder,
                                  helio_moment moment) {
    helio_subscriptions_add_finder(&endpoint->shared.subscriptions, finder);
    set_acking(endpoint, moment);
}

void helio_rx_endpoint_remove_finder(helio_rx_endpoint *endpoint, helio_topic_finder *finder,
                                     helio_moment moment) {
    helio_subscriptions_remove_finder(&endpoint->shared.subscriptions, finder);
    set_acking(endpoint, moment);
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

/* ---- packets ---- */

/* The stream may have proven itself by now. */
static void look_at_proof(helio_rx_stream *stream, int64_t now_ns) {
    if (stream->delivery.has_met) {
        helio_rx_stream_prove(stream, now_ns);
    }
}

static void refuse(helio_rx_endpoint *endpoint, helio_pgm_refusal refusal,
                   const helio_address *from, helio_moment moment) {
    helio_pgm_count_refusal(endpoint->shared.instance, refusal);
    helio_rx_foreign_event(&endpoint->shared, from, "a malformed datagram", moment);
}

static void tell_conflict(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                          const helio_address *from, helio_moment moment) {
    if (moment.now_ns < stream->conflict_event_after_ns) {
        return;
    }
    stream->conflict_event_after_ns = moment.now_ns + CONFLICT_EVENT_NS;
    char tsi[HELIO_TSI_TEXT], here[HELIO_ADDRESS_TEXT], there[HELIO_ADDRESS_TEXT];
    helio_stats_event(
        endpoint->shared.stats, moment.wall_ns, HELIO_EVENT_STREAM_CONFLICT, stream->object.slot,
        NULL, "stream %s of %s also comes from %s", helio_tsi_format(&stream->tsi, tsi),
        helio_address_format(&stream->source, here), helio_address_format(from, there));
}

/* The owner of the TSI's port came after a stream from another port was tracked in its name. */
static helio_rx_stream *displace(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                                 const helio_pgm_packet *packet, const helio_address *from,
                                 helio_moment moment) {
    tell_conflict(endpoint, stream, from, moment);
    helio_rx_endpoint_end_stream(endpoint, stream, HELIO_RX_STREAM_DISPLACED, moment);
    return helio_rx_endpoint_discover(endpoint, packet, from, moment);
}

/* The stream of a packet that goes downstream; NULL: the packet is refused and counted. */
static helio_rx_stream *stream_of_source(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                                         const helio_pgm_packet *packet, const helio_address *from,
                                         helio_moment moment) {
    if (helio_rx_is_near(&endpoint->shared, packet->type, from)) {
        return stream;
    }
    switch (helio_rx_origin_of(stream, from, moment.now_ns)) {
    case HELIO_RX_OF_SOURCE:
        return stream;
    case HELIO_RX_OF_OWNER:
        if (packet->type == HELIO_PGM_TYPE_SPM || packet->type == HELIO_PGM_TYPE_ODATA) {
            return displace(endpoint, stream, packet, from, moment);
        }
        break;
    case HELIO_RX_OF_ANOTHER:
        break;
    }
    helio_pgm_count_refusal(endpoint->shared.instance, HELIO_PGM_BAD_ADDRESS);
    tell_conflict(endpoint, stream, from, moment);
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

void helio_rx_endpoint_measure_repairs(helio_rx_endpoint *endpoint, int64_t now_ns) {
    helio_rx_repairs_measure(&endpoint->repairs, endpoint->shared.instance, now_ns);
}

void helio_rx_endpoint_stamp(helio_rx_endpoint *endpoint, int64_t kernel_ns) {
    endpoint->shared.kernel_ns = kernel_ns;
}

void helio_rx_endpoint_set_aside(helio_rx_endpoint *endpoint, bool is_aside) {
    endpoint->shared.is_aside = is_aside;
}

/* ---- replays ---- */

int helio_rx_endpoint_replay(helio_rx_endpoint *endpoint, const helio_tsi *tsi, const char *topic,
                             uint64_t first, uint64_t last, const helio_sink *sink,
                             helio_moment moment, helio_replay **out) {
    const helio_rx_stream *stream = find_stream(endpoint, tsi);
    if (!stream || !stream->has_spm) {
        return HELIO_ERR_STATE;
    }
    const helio_replay_config config = {topic, first, last, *sink};
    const int error = helio_replay_create(stream, &config, moment, out);
    if (!error) {
        helio_replay_hold(*out, helio_rx_held_until(&stream->notices), moment.now_ns);
        *helio_replay_link(*out) = endpoint->replays;
        endpoint->replays = *out;
        endpoint->deadline_ns = moment.now_ns;
    }
    return error;
}

void helio_rx_endpoint_end_replay(helio_rx_endpoint *endpoint, helio_replay *replay,
                                  helio_moment moment) {
    helio_replay **link = &endpoint->replays;
    while (*link != replay) {
        link = helio_replay_link(*link);
    }
    *link = *helio_replay_link(replay);
    helio_replay_destroy(replay, moment);
}

static void set_replay_deadline(helio_rx_endpoint *endpoint, const helio_replay *replay) {
    const int64_t deadline_ns = helio_replay_next_deadline_ns(replay);
    if (deadline_ns < endpoint->deadline_ns) {
        endpoint->deadline_ns = deadline_ns;
    }
}

static void show_replays(helio_rx_endpoint *endpoint, const helio_rx_stream *stream,
                         const helio_pgm_packet *packet, size_t bytes, int64_t receive_ns,
                         helio_moment moment) {
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_tsi_equal(helio_replay_tsi(r), &packet->tsi)) {
            helio_replay_on_packet(r, packet, bytes, receive_ns, moment);
            if (packet->type == HELIO_PGM_TYPE_SPM) {
                helio_replay_hold(r, helio_rx_held_until(&stream->notices), moment.now_ns);
            }
            set_replay_deadline(endpoint, r);
        }
    }
}

/* Topics are found when their announcement arrives.  A stream that waits for them may begin soon: the
 * source announces all its topics at once. */
static void hear_topics(helio_rx_stream *stream, const helio_pgm_packet *packet,
                        helio_moment moment) {
    if (helio_subscriptions_announce_all(&stream->shared->subscriptions, packet, moment)) {
        stream->learn_by_ns = helio_min(stream->learn_by_ns, moment.now_ns + LEARN_NS);
    }
}

void helio_rx_endpoint_begin_batch(helio_rx_endpoint *endpoint) {
    endpoint->run.is_on = true;
}

void helio_rx_endpoint_end_batch(helio_rx_endpoint *endpoint) {
    endpoint->run.is_on = false;
    helio_rx_publish_run(endpoint);
}

void helio_rx_endpoint_on_packet(helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                                 const helio_address *from, int64_t receive_ns,
                                 helio_moment moment) {
    if (helio_rx_fast_path(endpoint, datagram, length, from, receive_ns, moment)) {
        return;
    }
    helio_instance_stats *instance = endpoint->shared.instance;
    helio_pgm_packet packet;
    helio_rx_publish_run(endpoint);
    helio_count(&instance->packets_received, 1);
    helio_count(&instance->packet_bytes_received, length);
    helio_pgm_refusal refusal = HELIO_PGM_BAD_SIZE;
    if (length <= endpoint->shared.config.max_packet_bytes) {
        refusal = endpoint->shared.config.has_checksums
                      ? helio_pgm_decode(datagram, length, &packet)
                      : helio_pgm_decode_unsummed(datagram, length, &packet);
    }
    if (refusal) {
        refuse(endpoint, refusal, from, moment);
        return;
    }
    helio_rx_stream *stream = find_stream(endpoint, &packet.tsi);
    const bool may_announce =
        endpoint->shared.subscriptions.finders &&
        (packet.type == HELIO_PGM_TYPE_ODATA || packet.type == HELIO_PGM_TYPE_RDATA);
    if (!stream) {
        if (may_announce) { /* whoever is told may want the stream from here on */
            helio_subscriptions_announce_all(&endpoint->shared.subscriptions, &packet, moment);
        }
        stream = helio_rx_endpoint_discover(endpoint, &packet, from, moment);
    }
    if (!stream) {
        helio_count(&instance->unknown_session_packets, 1);
        return;
    }
    if (is_downstream(&packet)) {
        stream = stream_of_source(endpoint, stream, &packet, from, moment);
        if (!stream) {
            return;
        }
        if (may_announce) {
            hear_topics(stream, &packet, moment);
        }
    } else if (helio_address_equal(from, &endpoint->shared.config.feedback_address)) {
        return; /* our own packet, looped back */
    } else if (packet.type != HELIO_PGM_TYPE_NAK && packet.type != HELIO_PGM_TYPE_SPMR) {
        return; /* a POLR or ACK of another receiver */
    } else if (packet.type == HELIO_PGM_TYPE_NAK && endpoint->repairs.dlr) {
        helio_rx_repairs_answer(&endpoint->repairs, stream, &packet, from, moment);
        return;
    }
    if ((packet.flags & HELIO_PGM_FLAG_PARITY) && packet.tsdu_bytes > 0) {
        helio_count(&instance->foreign_packets, 1); /* parity is not used here */
        return;
    }
    helio_rx_record_wait(stream, endpoint->shared.kernel_ns, receive_ns);
    helio_rx_stream_on_packet(stream, &packet, length, from, receive_ns, moment);
    if (endpoint->repairs.dlr) {
        helio_rx_repairs_keep(&endpoint->repairs, stream, &packet, datagram, length, moment);
    }
    if (helio_rx_is_unproven(stream)) {
        look_at_proof(stream, moment.now_ns);
    }
    if (endpoint->replays) {
        show_replays(endpoint, stream, &packet, length, receive_ns, moment);
    }
    if (stream->nak.outstanding > 0 || stream->acks.is_on || stream->credit.is_awaited ||
        stream->polled.due_ns != HELIO_NEVER || helio_rx_reports_follows(&stream->reports)) {
        helio_rx_endpoint_set_deadline(endpoint, stream);
    } else if (stream->has_end) {
        endpoint->deadline_ns = moment.now_ns; /* it may be over */
    } else if (packet.type == HELIO_PGM_TYPE_SPM) {
        helio_rx_endpoint_set_deadline(endpoint, stream); /* of reports */
    }
}

/* ---- time ---- */

int helio_rx_endpoint_poll(helio_rx_endpoint *endpoint, helio_moment moment) {
    if (moment.now_ns < endpoint->deadline_ns && !helio_rx_endpoint_is_blocked(endpoint)) {
        return 0;
    }
    int work = 0;
    /* Connections were not read in between, so no stream was silent. */
    const bool was_held_back =
        endpoint->shared.config.is_connected && endpoint->shared.blocked_streams > 0;
    endpoint->deadline_ns = HELIO_NEVER;
    for (helio_rx_stream *stream = endpoint->streams, *next; stream; stream = next) {
        next = stream->next;
        if (was_held_back) {
            stream->heard_ns = moment.now_ns;
        }
        work += helio_rx_stream_poll(stream, moment);
        if (helio_rx_is_unproven(stream)) {
            look_at_proof(stream, moment.now_ns);
        }
        const helio_rx_stream_state state = helio_rx_stream_state_of(stream, moment);
        if (state == HELIO_RX_STREAM_OPEN) {
            helio_rx_endpoint_set_deadline(endpoint, stream);
        } else {
            helio_rx_endpoint_end_stream(endpoint, stream, state, moment);
            work++;
        }
    }
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        work += helio_replay_poll(r, moment);
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
