/* Which streams an endpoint tracks: discovering new ones, continuing those that come back, evicting
 * unproven ones for others, and ending them. */
#include "receive/endpoint_parts.h"

#include <inttypes.h>

#include "base/sequence.h"
#include "receive/notices.h"
#include "receive/unproven.h"
#include "wire/pgm.h"

#define ENDED_NS (10 * HELIO_SECOND)
#define CREATE_AGAIN_NS (100 * HELIO_MILLISECOND) /* after there was no memory for a stream */

/* The source sends newer data than the end allows: the end was forged. */
static bool refutes_end(const helio_rx_ended *ended, const helio_pgm_packet *packet,
                        const helio_address *from) {
    return packet->type == HELIO_PGM_TYPE_ODATA &&
           helio_sequence_before(ended->end, packet->sequence) &&
           helio_rx_is_from(&ended->source, ended->is_exact, from);
}

static bool has_ended(const helio_rx_endpoint *endpoint, uint64_t key,
                      const helio_pgm_packet *packet, const helio_address *from, int64_t now_ns) {
    for (size_t i = 0; i < HELIO_RX_ENDED_KEPT; i++) {
        const helio_rx_ended *ended = &endpoint->ended[i];
        if (ended->key == key && now_ns < ended->until_ns && !refutes_end(ended, packet, from)) {
            return true;
        }
    }
    return false;
}

static helio_rx_expelled *expelled_from(helio_rx_endpoint *endpoint, uint64_t key) {
    for (size_t i = 0; i < HELIO_RX_EXPELLED_KEPT; i++) {
        if (endpoint->expelled[i].key == key) {
            return &endpoint->expelled[i];
        }
    }
    return NULL;
}

/* Whether the receiver may track the stream of this packet.  *was_expelled: it was expelled before.
 * Only the source itself can end that. */
static bool is_admitted(helio_rx_endpoint *endpoint, uint64_t key, const helio_pgm_packet *packet,
                        const helio_address *from, int64_t now_ns, bool *was_expelled) {
    helio_rx_expelled *expelled = expelled_from(endpoint, key);
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
        *expelled = (helio_rx_expelled){0};
    }
    return expelled->key == 0;
}

/* Removes a stream from the endpoint and frees it. */
static void drop_stream(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_moment moment) {
    for (helio_replay *r = endpoint->replays; r; r = *helio_replay_link(r)) {
        if (helio_tsi_equal(helio_replay_tsi(r), &stream->tsi)) {
            helio_replay_give_up(r, moment);
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
    helio_rx_stream_destroy(stream, moment);
}

void helio_rx_endpoint_end_stream(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                                  helio_rx_stream_state state, helio_moment moment) {
    const helio_rx_shared *shared = &endpoint->shared;
    const uint64_t key = helio_tsi_key(&stream->tsi);
    char tsi[HELIO_TSI_TEXT];
    helio_tsi_format(&stream->tsi, tsi);
    if (state == HELIO_RX_STREAM_CLOSED) {
        const uint64_t args[4] = {stream->end};
        helio_stats_event(shared->stats, moment.wall_ns, HELIO_EVENT_STREAM_CLOSED,
                          stream->object.slot, args, "stream %s ended with packet %" PRIu64, tsi,
                          stream->end);
        endpoint->ended[endpoint->ended_next++ % HELIO_RX_ENDED_KEPT] =
            (helio_rx_ended){key, moment.now_ns + ENDED_NS, stream->source,
                             stream->binding.is_exact, (uint32_t)stream->end};
    } else if (state == HELIO_RX_STREAM_EXPELLED) {
        endpoint->expelled[endpoint->expelled_next++ % HELIO_RX_EXPELLED_KEPT] =
            (helio_rx_expelled){key, stream->source, stream->binding.is_exact,
                                stream->notices.expelled_until_ns};
    } else if (state == HELIO_RX_STREAM_SILENT) {
        const uint64_t silent_ns = (uint64_t)(moment.now_ns - stream->heard_ns);
        helio_stats_event(shared->stats, moment.wall_ns, HELIO_EVENT_STREAM_SILENT,
                          stream->object.slot, (const uint64_t[4]){silent_ns},
                          "stream %s was silent for %" PRIu64 " ms", tsi, silent_ns / 1000000);
    }
    if (state == HELIO_RX_STREAM_SILENT || state == HELIO_RX_STREAM_EXPELLED) {
        helio_rx_absents_keep(&endpoint->absents, stream, moment.now_ns);
    }
    drop_stream(endpoint, stream, moment);
}

/* Evicts an unproven stream, which becomes a mere record again; a stream that was to begin with
 * history is discovered again by its next packet. */
static void evict(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_rx_refusal refusal,
                  const helio_address *from, helio_moment moment) {
    const helio_rx_start start = {
        .first = stream->rxw.trail,
        .joined = stream->joined > stream->rxw.trail - 1 ? stream->rxw.trail - 1 : stream->joined,
        .is_complete = stream->is_complete,
    };
    helio_rx_shared *shared = &endpoint->shared;
    helio_rx_refuse_state(shared, refusal, from, moment);
    if (stream->was_proven) {
        helio_rx_absents_keep(&endpoint->absents, stream, moment.now_ns);
    } else if (!stream->is_waiting && !stream->is_pacing) {
        helio_rx_discovery_remember(&endpoint->discovery, shared, helio_tsi_key(&stream->tsi),
                                    &stream->source, &start, moment);
    }
    stream->gives_way = true;
    drop_stream(endpoint, stream, moment);
}

/* Evicts the unproven stream for a new one of `from`, if `follow` allows it; else refuses the new
 * one. */
static bool evict_for(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_rx_verdict follow,
                      helio_rx_refusal refusal, const helio_address *from, helio_moment moment) {
    if (follow == HELIO_RX_TRACK_IF_ROOM) {
        return false;
    }
    if (follow == HELIO_RX_TRACK_PERHAPS &&
        moment.now_ns - stream->opened_ns < HELIO_RX_UNPROVEN_NS) {
        helio_rx_refuse_state(&endpoint->shared, refusal, from, moment);
        return false;
    }
    evict(endpoint, stream, refusal, from, moment);
    return true;
}

/* Makes room for one more unproven stream of `from`, by evicting unproven ones only. */
static bool make_room(helio_rx_endpoint *endpoint, const helio_address *from,
                      helio_rx_verdict follow, helio_moment moment) {
    const helio_rx_unproven *unproven = &endpoint->shared.unproven;
    const uint32_t max_streams = endpoint->shared.config.max_streams;
    helio_rx_stream *of_address = helio_rx_unproven_too_many(unproven, from, max_streams);
    if (of_address &&
        !evict_for(endpoint, of_address, follow, HELIO_RX_REFUSED_OF_ADDRESS, from, moment)) {
        return false;
    }
    if (endpoint->count < max_streams) {
        return true;
    }
    if (unproven->oldest) {
        return evict_for(endpoint, unproven->oldest, follow, HELIO_RX_REFUSED_STREAMS, from,
                         moment);
    }
    helio_count(&endpoint->shared.instance->packets_no_room, 1);
    return false;
}

/* Evicts the oldest unproven stream when there is no memory for the new one. */
static helio_rx_stream *create_stream(helio_rx_endpoint *endpoint, const helio_tsi *tsi,
                                      const helio_rx_start *start, const helio_rx_return *back,
                                      const helio_address *from, helio_moment moment) {
    helio_rx_shared *shared = &endpoint->shared;
    helio_rx_stream *stream;
    int error = helio_rx_stream_create(shared, tsi, start, back, from, moment, &stream);
    if (error && shared->unproven.oldest) {
        evict(endpoint, shared->unproven.oldest, HELIO_RX_REFUSED_MEMORY, from, moment);
        error = helio_rx_stream_create(shared, tsi, start, back, from, moment, &stream);
    }
    if (!error) {
        return stream;
    }
    endpoint->create_after_ns = moment.now_ns + CREATE_AGAIN_NS;
    helio_rx_refuse_state(shared, HELIO_RX_REFUSED_MEMORY, from, moment);
    return NULL;
}

static helio_rx_stream *open_stream(helio_rx_endpoint *endpoint, const helio_tsi *tsi,
                                    const helio_rx_start *start, const helio_rx_return *back,
                                    const helio_address *from, helio_moment moment) {
    helio_rx_stream *stream = create_stream(endpoint, tsi, start, back, from, moment);
    if (!stream) {
        return NULL;
    }
    if (helio_map_put(&endpoint->by_tsi, helio_tsi_key(tsi), stream) ||
        helio_rx_unproven_add(&endpoint->shared.unproven, stream)) {
        helio_map_remove(&endpoint->by_tsi, helio_tsi_key(tsi));
        helio_rx_stream_destroy(stream, moment);
        return NULL;
    }
    stream->next = endpoint->streams;
    stream->link = &endpoint->streams;
    if (stream->next) {
        stream->next->link = &stream->next;
    }
    endpoint->streams = stream;
    endpoint->count++;
    helio_rx_discovery_forget(&endpoint->discovery, &endpoint->shared, helio_tsi_key(tsi), from);
    helio_rx_endpoint_set_deadline(endpoint, stream);
    return stream;
}

/* Decides whether the stream of this packet is tracked from now on, and from where. */
static helio_rx_verdict consider(helio_rx_endpoint *endpoint, const helio_pgm_packet *packet,
                                 const helio_address *from, helio_moment moment,
                                 helio_rx_discovered *record, bool *was_expelled) {
    enum { LAST = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST | HELIO_PGM_HAS_NBR_UNREACH };
    const uint64_t key = helio_tsi_key(&packet->tsi);
    *was_expelled = expelled_from(endpoint, key) != NULL;
    if (!*was_expelled) {
        return helio_rx_discovery_on_packet(&endpoint->discovery, &endpoint->shared, packet, from,
                                            moment, record);
    }
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    if (packet->type == HELIO_PGM_TYPE_POLL || (is_spm && (packet->options & LAST)) ||
        !is_admitted(endpoint, key, packet, from, moment.now_ns, was_expelled)) {
        return HELIO_RX_TRACK_NOT;
    }
    *record = (helio_rx_discovered){.start = helio_rx_start_of(&endpoint->shared, packet, true)};
    return HELIO_RX_TRACK;
}

/* A stream that was tracked before is back and continues where it was.  NULL when it must not be
 * tracked, or there is no room: then it stays remembered. */
static helio_rx_stream *resume(helio_rx_endpoint *endpoint, const helio_pgm_packet *packet,
                               const helio_rx_absent *absent, const helio_address *from,
                               helio_moment moment) {
    enum { ENDS = HELIO_PGM_HAS_FIN | HELIO_PGM_HAS_RST };
    const bool is_spm = packet->type == HELIO_PGM_TYPE_SPM;
    bool was_expelled;
    if (packet->type == HELIO_PGM_TYPE_POLL ||
        (is_spm && (packet->options & HELIO_PGM_HAS_NBR_UNREACH)) ||
        (is_spm && (packet->options & ENDS) && !helio_rx_absent_misses(absent, packet->lead)) ||
        !is_admitted(endpoint, helio_tsi_key(&packet->tsi), packet, from, moment.now_ns,
                     &was_expelled)) {
        return NULL;
    }
    helio_rx_return back;
    const helio_rx_start start =
        helio_rx_start_again(&endpoint->shared, packet, absent, was_expelled, &back);
    helio_rx_stream *stream = NULL;
    endpoint->absents.returning = absent; /* streams evicted for it must not replace it */
    if (make_room(endpoint, from, HELIO_RX_TRACK, moment)) {
        stream = open_stream(endpoint, &packet->tsi, &start, &back, from, moment);
    }
    endpoint->absents.returning = NULL;
    if (!stream) {
        return NULL;
    }
    helio_rx_absents_forget(&endpoint->absents, &packet->tsi);
    if (was_expelled) {
        helio_rx_tell_readmitted(stream, moment);
    }
    return stream;
}

/* The stream is of the share that this endpoint receives. */
static bool is_shared(const helio_rx_endpoint_config *config, const helio_tsi *tsi) {
    return config->shares == 0 || helio_tsi_share(tsi, config->shares) == config->share;
}

helio_rx_stream *helio_rx_endpoint_discover(helio_rx_endpoint *endpoint,
                                            const helio_pgm_packet *packet,
                                            const helio_address *from, helio_moment moment) {
    const uint64_t key = helio_tsi_key(&packet->tsi);
    if ((packet->type != HELIO_PGM_TYPE_SPM && packet->type != HELIO_PGM_TYPE_ODATA &&
         packet->type != HELIO_PGM_TYPE_POLL) ||
        !is_shared(&endpoint->shared.config, &packet->tsi) ||
        has_ended(endpoint, key, packet, from, moment.now_ns) ||
        moment.now_ns < endpoint->create_after_ns) {
        return NULL;
    }
    const helio_rx_absent *absent = helio_rx_absents_find(&endpoint->absents, &packet->tsi, from,
                                                          &endpoint->shared.subscriptions);
    if (absent) {
        return resume(endpoint, packet, absent, from, moment);
    }
    helio_rx_discovered record;
    bool was_expelled;
    const helio_rx_verdict follow =
        consider(endpoint, packet, from, moment, &record, &was_expelled);
    if (follow == HELIO_RX_TRACK_NOT) {
        return NULL;
    }
    helio_rx_stream *stream = NULL;
    if (make_room(endpoint, from, follow, moment)) {
        stream = open_stream(endpoint, &packet->tsi, &record.start, NULL, from, moment);
    }
    if (stream && record.has_spm && packet->type != HELIO_PGM_TYPE_SPM) {
        const helio_pgm_packet spm = helio_rx_discovered_packet(&record, &packet->tsi);
        helio_rx_stream_on_packet(stream, &spm, 0, &record.spm.from, moment.wall_ns, moment);
    }
    if (stream && was_expelled) {
        helio_rx_tell_readmitted(stream, moment);
    }
    /* It is discovered again when there is room; if only refused for now, it continues where it
     * is. */
    if (!stream && !endpoint->shared.unproven.oldest) {
        helio_rx_discovery_forget(&endpoint->discovery, &endpoint->shared, key, from);
    } else if (!stream) {
        helio_rx_discovery_remember(&endpoint->discovery, &endpoint->shared, key, from,
                                    &record.start, moment);
    }
    return stream;
}
