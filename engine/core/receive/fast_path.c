#include "receive/fast_path.h"

#include "base/math.h"
#include "receive/chunk.h"
#include "receive/control.h"
#include "receive/delivery_topic.h"
#include "receive/endpoint_parts.h"
#include "receive/passing.h"
#include "wire/pgm.h"

/* A batch that the fast path takes. */
typedef struct batch {
    helio_delivery_topic *topic;
    helio_tsdu_header header;
    helio_chunk chunk;
} batch;

/* The endpoint's only concern with data is this one stream.  Here and below, what is nearly never so is
 * joined with OR and asked about once: a question each takes more instructions. */
static bool is_common_stream(const helio_rx_endpoint *endpoint, const helio_rx_stream *stream) {
    const bool has_state = endpoint->shared.config.no_fast_path | stream->is_blocked |
                           stream->is_waiting | stream->is_pacing | stream->has_end |
                           stream->credit.is_awaited | stream->reports.is_acker;
    const uint64_t has_work =
        (uintptr_t)endpoint->replays | (uint64_t)(stream->polled.due_ns ^ HELIO_NEVER) |
        stream->reports.progress | (uintptr_t)stream->unproven.host |
        (uint64_t)stream->notices.expelled_until_ns | (uint64_t)stream->notices.suspended_until_ns;
    return (has_state | has_work) == 0;
}

/* The packet is from the source of the stream, and credible. */
static inline bool is_of_source(const helio_rx_stream *stream, const void *datagram,
                                const helio_pgm_plain *plain, const helio_address *from) {
    return helio_pgm_is_of(datagram, &stream->tsi) &&
           plain->sequence - plain->trail < HELIO_RX_WINDOW_LIMIT &&
           from->port == stream->binding.port && helio_address_same_ip(&stream->source, from);
}

/* Nothing of the stream is held or missing, and the packet is the next one. */
static bool is_next(const helio_rx_stream *stream, uint32_t sequence) {
    const helio_rxw *rxw = &stream->rxw;
    const uint64_t before = rxw->trail - 1;
    return ((sequence ^ (uint32_t)rxw->trail) | (rxw->known ^ before) | (stream->newest ^ before) |
            stream->nak.outstanding) == 0 &&
           rxw->source_trail <= rxw->trail;
}

/* The packet comes next after the newest one, while an older one is missing that the source still
 * has: it is to be held, whatever it says. */
static bool is_next_to_hold(const helio_rx_endpoint *endpoint, const helio_rx_stream *stream,
                            const helio_pgm_plain *plain) {
    const helio_rxw *rxw = &stream->rxw;
    const uint64_t sequence = rxw->lead + 1;
    return ((plain->sequence ^ (uint32_t)sequence) | (rxw->known ^ rxw->lead) |
            (stream->newest ^ rxw->lead) | endpoint->shared.config.in_arrival_order |
            (uintptr_t)endpoint->shared.subscriptions.finders) == 0 &&
           !helio_rxw_is_empty(rxw) && sequence - rxw->trail <= rxw->mask &&
           sequence - (plain->sequence - plain->trail) <= rxw->trail;
}

/* Reads the messages; false: one is damaged.  The only message of a batch is read without a call. */
static inline bool read_messages(const uint8_t *at, const uint8_t *end, int64_t receive_ns,
                                 batch *out) {
    const helio_tsdu_header *header = &out->header;
    const helio_message_form form = {.times = {header->submit_ns, receive_ns},
                                     .stream = out->topic->stream};
    helio_chunk *chunk = &out->chunk;
    if (header->count > 1) {
        return helio_chunk_read(chunk, at, end, header->first_message, header->count, &form) == end;
    }
    helio_tsdu_message read;
    if (!helio_tsdu_next_message(&at, end, &read)) {
        return false;
    }
    helio_message_put(chunk->messages, read.body, read.bytes, header->first_message, &form);
    chunk->count = 1;
    chunk->bytes = read.bytes;
    return at == end;
}

/* Reads a header; false: not that of a batch of whole messages. */
static inline bool read_header(const uint8_t *tsdu, size_t bytes, helio_tsdu_header *out) {
    return helio_tsdu_read_plain(tsdu, bytes, out) ||
           (helio_tsdu_decode(tsdu, bytes, out) == HELIO_TSDU_OURS &&
            out->kind == HELIO_TSDU_KIND_MESSAGES && out->flags == 0);
}

/* The only subscription to a topic, if messages from `first` on are what it expects; else NULL. */
static inline helio_delivery_topic *find_expecting(helio_delivery *delivery, uint64_t topic_id,
                                                   uint64_t first, uint64_t count) {
    helio_delivery_topic *topic = helio_delivery_find(delivery, topic_id);
    return topic &&
                   ((uintptr_t)topic->next | !topic->has_joined | (topic->expected ^ first) |
                    topic->ahead.count | (uintptr_t)topic->unacked.batches) == 0 &&
                   topic->expected + count < topic->grant_at
               ? topic
               : NULL;
}

/* Reads a batch whose messages all go to one subscription, which expects the first of them. */
static bool read_batch(helio_delivery *delivery, const uint8_t *tsdu, size_t bytes,
                       int64_t receive_ns, batch *out) {
    helio_tsdu_header *header = &out->header;
    if (!read_header(tsdu, bytes, header) || header->count > HELIO_CHUNK_MAX) {
        return false;
    }
    out->topic = find_expecting(delivery, header->topic_id, header->first_message, header->count);
    return out->topic && read_messages(tsdu + header->header_bytes, tsdu + bytes, receive_ns, out);
}

/* ---- counting ---- */

/* Each datagram is counted here or in endpoint.c. */
static inline void count_datagrams(const helio_rx_endpoint *endpoint, uint64_t count,
                                   uint64_t bytes) {
    helio_instance_stats *instance = endpoint->shared.instance;
    helio_count(&instance->packets_received, count);
    helio_count(&instance->packet_bytes_received, bytes);
}

static inline void show_activity(const helio_rx_stream *stream, int64_t wall_ns) {
    helio_set(&helio_rx_stats(stream)->last_activity, (uint64_t)wall_ns);
}

__attribute__((noinline)) void helio_rx_publish_run(helio_rx_endpoint *endpoint) {
    helio_rx_run *run = &endpoint->run;
    if (run->topic) {
        helio_rx_stream *stream = endpoint->last;
        const uint64_t packets = stream->rxw.trail - run->first_sequence;
        const uint64_t messages = run->topic->expected - run->first_message;
        count_datagrams(endpoint, packets, run->packet_bytes);
        helio_delivery_count_taken(&stream->delivery, run->topic, messages, run->message_bytes, 0,
                                   false);
        helio_rx_account_in_order(stream, packets, run->packet_bytes);
        show_activity(stream, run->heard_wall_ns);
        run->topic = NULL;
    }
}

/* The next packet has the topic's next messages.  True. */
__attribute__((noinline)) static bool begin_run(helio_rx_endpoint *endpoint,
                                                helio_delivery_topic *topic) {
    helio_rx_run *run = &endpoint->run;
    if (run->topic) {
        helio_rx_publish_run(endpoint);
    }
    run->topic = topic;
    run->first_sequence = endpoint->last->rxw.trail;
    run->first_message = topic->expected;
    run->packet_bytes = run->message_bytes = 0;
    return true;
}

/* In a batch, a packet whose messages are all taken belongs to a run; this may be the first of one. */
static inline bool is_in_run(helio_rx_endpoint *endpoint, helio_delivery_topic *topic) {
    return HELIO_STATS_COUNTING &&
           (endpoint->run.topic == topic || (endpoint->run.is_on && begin_run(endpoint, topic)));
}

static inline void extend_run(helio_rx_endpoint *endpoint, const batch *batch, size_t length,
                              helio_moment moment) {
    helio_rx_run *run = &endpoint->run;
    run->packet_bytes += length;
    run->message_bytes += batch->chunk.bytes;
    run->heard_wall_ns = moment.wall_ns;
}

/* Messages that were taken are counted at once. */
static void count_now(helio_rx_endpoint *endpoint, const batch *batch, size_t taken) {
    const helio_chunk *chunk = &batch->chunk;
    const uint64_t bytes = helio_chunk_bytes_of(chunk, chunk->messages, taken);
    helio_delivery_count_taken(&endpoint->last->delivery, batch->topic, taken, bytes, 0, false);
}

/* ---- the next packet ---- */

/* Hands the messages over; returns how many were taken. */
static size_t deliver(helio_delivery *delivery, const batch *batch, const helio_rxw_packet *packet,
                      helio_moment moment) {
    helio_delivery_topic *topic = batch->topic;
    const helio_message *messages = batch->chunk.messages;
    helio_delivery_begin_measuring(delivery, topic, moment);
    const size_t taken =
        helio_delivery_hand_over(delivery, topic, messages, batch->chunk.count, packet);
    if (topic->is_measuring && taken > 0) {
        helio_delivery_measure(delivery, topic, messages->submit_ns, taken, packet, moment);
    }
    return taken;
}

/* The sink had no room for all: what it took is counted, and the packet is held. */
__attribute__((noinline)) static void hold_rest(helio_rx_endpoint *endpoint, const batch *batch,
                                                size_t taken, const helio_rxw_packet *packet,
                                                size_t length, helio_moment moment) {
    helio_rx_stream *stream = endpoint->last;
    const uint64_t sequence = stream->rxw.trail;
    helio_rx_publish_run(endpoint);
    batch->topic->expected += taken;
    if (taken > 0) {
        count_now(endpoint, batch, taken);
    }
    count_datagrams(endpoint, 1, length);
    stream->delivery.full_sequence = sequence;
    helio_rx_hold_rest(stream, sequence, packet, length, moment);
    show_activity(stream, moment.wall_ns);
}

/* Of all deadlines of the stream, only that of an acknowledgement may have come nearer. */
static void acknowledge(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_moment moment) {
    const int64_t due_ns = stream->acks.due_ns;
    helio_rx_advance_acks(stream, moment);
    if (stream->acks.due_ns != due_ns) {
        helio_rx_endpoint_set_deadline(endpoint, stream);
    }
}

static inline helio_rxw_packet packet_of(const helio_rx_shared *shared,
                                         const helio_pgm_plain *plain, int64_t receive_ns,
                                         helio_moment moment) {
    return (helio_rxw_packet){
        .tsdu = plain->tsdu,
        .bytes = plain->tsdu_bytes,
        .lasts = shared->config.loan != NULL,
        .receive_ns = receive_ns,
        .arrival_ns = moment.now_ns,
        .kernel_ns = shared->kernel_ns,
    };
}

/* What each packet of the source tells, whatever is in it. */
static inline void learn(helio_rx_stream *stream, const helio_pgm_plain *plain, size_t length,
                         uint64_t sequence, helio_moment moment) {
    stream->heard_ns = moment.now_ns;
    stream->budget.heard_bytes += length;
    helio_rx_learn_trail(stream, sequence - (plain->sequence - plain->trail), moment);
    helio_rx_follow_newest(stream, sequence);
}

/* The packet is next in order; its messages are about to be handed over. */
static inline void begin_passing(helio_rx_stream *stream, const helio_pgm_plain *plain,
                                 size_t length, helio_moment moment) {
    const uint64_t sequence = stream->rxw.trail;
    stream->delivery.is_complete = false;
    stream->delivery.first_sequence = sequence;
    learn(stream, plain, length, sequence, moment);
}

/* All of them were taken, and are counted. */
static inline void end_passing(helio_rx_endpoint *endpoint, helio_rx_stream *stream, size_t length,
                               helio_moment moment) {
    helio_rxw_pass_newest(&stream->rxw);
    count_datagrams(endpoint, 1, length);
    helio_rx_account_in_order(stream, 1, length);
    show_activity(stream, moment.wall_ns);
}

static inline void finish(helio_rx_endpoint *endpoint, helio_rx_stream *stream,
                          helio_moment moment) {
    if (stream->acks.is_on) {
        acknowledge(endpoint, stream, moment);
    }
}

/* The datagram is not the next one.  False: it is not to be held, and nothing has changed.  Of the
 * deadlines, that of a request may have come nearer too: the packet may show that a missing one is not
 * merely late.  There is no run: it ended before the first packet was held.  The header is read once
 * more, so that the way of the next packet keeps it in registers. */
__attribute__((noinline)) static bool hold(helio_rx_endpoint *endpoint, const void *datagram,
                                           size_t length, int64_t receive_ns, helio_moment moment) {
    helio_rx_stream *stream = endpoint->last;
    helio_nak *nak = &stream->nak;
    const uint64_t sequence = stream->rxw.lead + 1;
    helio_pgm_plain plain;
    if (!helio_pgm_read_plain(datagram, length, &plain) ||
        !is_next_to_hold(endpoint, stream, &plain) ||
        !helio_pgm_has_right_sum(datagram, length, endpoint->shared.config.has_checksums)) {
        return false;
    }
    const helio_rxw_packet packet = packet_of(&endpoint->shared, &plain, receive_ns, moment);
    count_datagrams(endpoint, 1, length);
    helio_rx_record_wait(stream, packet.kernel_ns, receive_ns);
    learn(stream, &plain, length, sequence, moment);
    helio_rxw_insert(&stream->rxw, sequence, &packet);
    helio_rx_account_held(stream, length);
    if (nak->outstanding > 0) {
        helio_nak_on_newest(nak, sequence, moment.now_ns);
        endpoint->deadline_ns = helio_min(endpoint->deadline_ns, helio_nak_next_deadline_ns(nak));
    }
    show_activity(stream, moment.wall_ns);
    finish(endpoint, stream, moment);
    return true;
}

/* The stream of a datagram that is well formed, common and credible but for its place in the order and
 * its sum; NULL: it is none. */
static inline helio_rx_stream *read_common(const helio_rx_endpoint *endpoint, const void *datagram,
                                           size_t length, const helio_address *from,
                                           helio_pgm_plain *plain) {
    helio_rx_stream *stream = endpoint->last;
    return stream && is_common_stream(endpoint, stream) &&
                   length <= endpoint->shared.config.max_packet_bytes &&
                   helio_pgm_read_plain(datagram, length, plain) &&
                   is_of_source(stream, datagram, plain, from)
               ? stream
               : NULL;
}

bool helio_rx_fast_path(helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                        const helio_address *from, int64_t receive_ns, helio_moment moment) {
    helio_pgm_plain plain;
    batch batch;
    helio_rx_stream *stream = read_common(endpoint, datagram, length, from, &plain);
    if (!stream) {
        return false;
    }
    if (!is_next(stream, plain.sequence)) {
        return hold(endpoint, datagram, length, receive_ns, moment);
    }
    helio_delivery *delivery = &stream->delivery;
    if (!helio_pgm_has_right_sum(datagram, length, endpoint->shared.config.has_checksums) ||
        !read_batch(delivery, plain.tsdu, plain.tsdu_bytes, receive_ns, &batch)) {
        return false;
    }
    const helio_rxw_packet packet = packet_of(&endpoint->shared, &plain, receive_ns, moment);
    helio_delivery_learn_times(delivery, &batch.header);
    helio_rx_record_wait(stream, packet.kernel_ns, receive_ns);
    begin_passing(stream, &plain, length, moment);
    const size_t taken = deliver(delivery, &batch, &packet, moment);
    if (taken < batch.chunk.count) {
        hold_rest(endpoint, &batch, taken, &packet, length, moment);
    } else if (is_in_run(endpoint, batch.topic)) {
        extend_run(endpoint, &batch, length, moment);
        batch.topic->expected += taken;
        helio_rxw_pass_newest(&stream->rxw);
    } else {
        batch.topic->expected += taken;
        count_now(endpoint, &batch, taken);
        end_passing(endpoint, stream, length, moment);
    }
    finish(endpoint, stream, moment);
    return true;
}

/* ---- lone messages ---- */

/* The latency of a message that a caller got, by all that is known of its packet. */
__attribute__((noinline)) static void measure_lone(helio_rx_stream *stream,
                                                   helio_delivery_topic *topic,
                                                   const helio_pgm_plain *plain,
                                                   helio_moment moment) {
    helio_delivery *delivery = &stream->delivery;
    const helio_rxw_packet packet = packet_of(stream->shared, plain, moment.wall_ns, moment);
    helio_tsdu_header header;
    if (helio_tsdu_read_plain(plain->tsdu, plain->tsdu_bytes, &header)) { /* it was read already */
        helio_delivery_learn_times(delivery, &header);
        helio_delivery_measure(delivery, topic, header.submit_ns, 1, &packet, moment);
    }
}

/* The topic of a packet that is the next one, with one message that the topic expects, but for its
 * sum; NULL: it is another packet. */
static inline helio_delivery_topic *topic_of_lone(const helio_rx_endpoint *endpoint,
                                                  helio_rx_stream *stream,
                                                  const helio_pgm_plain *plain) {
    return endpoint->shared.config.loan && is_next(stream, plain->sequence) &&
                   helio_tsdu_is_lone(plain->tsdu, plain->tsdu_bytes)
               ? find_expecting(&stream->delivery, helio_tsdu_topic_id(plain->tsdu),
                                helio_tsdu_first_message(plain->tsdu), 1)
               : NULL;
}

__attribute__((noinline)) bool helio_rx_take_lone(helio_rx_endpoint *endpoint,
                                                  const helio_datagram *datagram, uint32_t number,
                                                  helio_moment moment, helio_message *to) {
    const size_t length = datagram->length;
    helio_pgm_plain plain;
    helio_rx_stream *stream =
        read_common(endpoint, datagram->data, length, &datagram->source, &plain);
    helio_delivery_topic *topic = stream ? topic_of_lone(endpoint, stream, &plain) : NULL;
    if (!topic || topic->stream != number ||
        !helio_pgm_has_right_sum(datagram->data, length, endpoint->shared.config.has_checksums)) {
        return false;
    }
    helio_delivery *delivery = &stream->delivery;
    const helio_tsdu_message message = helio_tsdu_lone_message(plain.tsdu);
    *to = (helio_message){
        .data = message.body,
        .length = message.bytes,
        .number = topic->expected,
        .submit_ns = helio_tsdu_submit_ns(plain.tsdu),
        .receive_ns = moment.wall_ns,
        .stream = number,
    };
    endpoint->shared.kernel_ns = datagram->kernel_ns;
    helio_rx_record_wait(stream, datagram->kernel_ns, moment.wall_ns);
    begin_passing(stream, &plain, length, moment);
    helio_delivery_begin_measuring(delivery, topic, moment);
    topic->expected++;
    helio_delivery_count_taken(delivery, topic, 1, message.bytes, 0, false);
    if (topic->is_measuring) {
        measure_lone(stream, topic, &plain, moment);
    }
    end_passing(endpoint, stream, length, moment);
    finish(endpoint, stream, moment);
    return true;
}
