#include "receive/fast_path.h"

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
    const uint64_t has_work = (uintptr_t)endpoint->replays | stream->nak.outstanding |
                              (uint64_t)(stream->polled.due_ns ^ HELIO_NEVER) |
                              stream->reports.progress | (uintptr_t)stream->unproven.host |
                              (uint64_t)stream->notices.expelled_until_ns |
                              (uint64_t)stream->notices.suspended_until_ns;
    return (has_state | has_work) == 0;
}

/* Nothing of the stream is held or missing, and the packet is the next one. */
static bool is_next(const helio_rx_stream *stream, uint32_t sequence) {
    const helio_rxw *rxw = &stream->rxw;
    const uint64_t before = rxw->trail - 1;
    return ((sequence ^ (uint32_t)rxw->trail) | (rxw->known ^ before) |
            (stream->newest ^ before)) == 0 &&
           rxw->source_trail <= rxw->trail;
}

/* The packet is from the source of the stream, next in order and credible. */
static bool is_common_packet(const helio_rx_stream *stream, const helio_pgm_plain *plain,
                             const helio_address *from) {
    return helio_tsi_equal(&plain->tsi, &stream->tsi) && is_next(stream, plain->sequence) &&
           plain->sequence - plain->trail < HELIO_RX_WINDOW_LIMIT &&
           from->port == stream->binding.port && helio_address_same_ip(&stream->source, from);
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

/* Reads a batch whose messages all go to one subscription, which expects the first of them. */
static bool read_batch(helio_delivery *delivery, const uint8_t *tsdu, size_t bytes,
                       int64_t receive_ns, batch *out) {
    helio_tsdu_header *header = &out->header;
    if (!read_header(tsdu, bytes, header) || header->count > HELIO_CHUNK_MAX) {
        return false;
    }
    helio_delivery_topic *topic = helio_delivery_find(delivery, header->topic_id);
    if (!topic ||
        ((uintptr_t)topic->next | !topic->has_joined | (topic->expected ^ header->first_message) |
         topic->ahead.count | (uintptr_t)topic->unacked.batches) != 0 ||
        topic->expected + header->count >= topic->grant_at) {
        return false;
    }
    out->topic = topic;
    return read_messages(tsdu + header->header_bytes, tsdu + bytes, receive_ns, out);
}

/* Hands the messages over and counts those taken.  False: the sink had no room for all. */
static bool deliver(helio_delivery *delivery, const batch *batch, const helio_rxw_packet *packet,
                    helio_moment moment) {
    helio_delivery_topic *topic = batch->topic;
    const helio_chunk *chunk = &batch->chunk;
    const helio_message *messages = chunk->messages;
    helio_delivery_begin_measuring(delivery, topic, moment);
    const size_t taken = helio_delivery_hand_over(delivery, topic, messages, chunk->count, packet);
    topic->expected += taken;
    if (taken > 0) {
        const uint64_t bytes = helio_chunk_bytes_of(chunk, messages, taken);
        helio_delivery_count(delivery, topic, messages, taken, bytes, 0, packet, moment);
    }
    return taken == chunk->count;
}

/* Reads a datagram; nothing changes.  False: the general path takes it. */
static bool read_common(const helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                        const helio_address *from, int64_t receive_ns, helio_pgm_plain *plain,
                        batch *out) {
    helio_rx_stream *stream = endpoint->last;
    return stream && is_common_stream(endpoint, stream) &&
           length <= endpoint->shared.config.max_packet_bytes &&
           helio_pgm_read_plain(datagram, length, plain) && is_common_packet(stream, plain, from) &&
           helio_pgm_has_right_sum(datagram, length, endpoint->shared.config.has_checksums) &&
           read_batch(&stream->delivery, plain->tsdu, plain->tsdu_bytes, receive_ns, out);
}

/* Of all deadlines of the stream, only that of an acknowledgement may have come nearer. */
static void acknowledge(helio_rx_endpoint *endpoint, helio_rx_stream *stream, helio_moment moment) {
    const int64_t due_ns = stream->acks.due_ns;
    helio_rx_advance_acks(stream, moment);
    if (stream->acks.due_ns != due_ns) {
        helio_rx_endpoint_set_deadline(endpoint, stream);
    }
}

bool helio_rx_fast_path(helio_rx_endpoint *endpoint, const void *datagram, size_t length,
                        const helio_address *from, int64_t receive_ns, helio_moment moment) {
    helio_pgm_plain plain;
    batch batch;
    if (!read_common(endpoint, datagram, length, from, receive_ns, &plain, &batch)) {
        return false;
    }
    helio_rx_stream *stream = endpoint->last;
    helio_delivery *delivery = &stream->delivery;
    const uint64_t sequence = stream->rxw.trail;
    const helio_rxw_packet packet = {
        .tsdu = plain.tsdu,
        .bytes = plain.tsdu_bytes,
        .lasts = stream->shared->config.loan != NULL,
        .receive_ns = receive_ns,
        .arrival_ns = moment.now_ns,
        .kernel_ns = stream->shared->kernel_ns,
    };
    helio_rx_record_wait(stream, receive_ns);
    delivery->is_complete = false;
    delivery->first_sequence = sequence;
    helio_delivery_learn_times(delivery, &batch.header);
    stream->heard_ns = moment.now_ns;
    stream->budget.heard_bytes += length;
    helio_rx_learn_trail(stream, sequence - (plain.sequence - plain.trail), moment);
    helio_rx_move_newest(stream, sequence);
    if (deliver(delivery, &batch, &packet, moment)) {
        helio_rxw_pass(&stream->rxw);
        helio_rx_account_in_order(stream, length);
    } else {
        delivery->full_sequence = sequence;
        helio_rx_hold_rest(stream, sequence, &packet, length, moment);
    }
    if (stream->acks.is_on) {
        acknowledge(endpoint, stream, moment);
    }
    helio_set(&helio_rx_stats(stream)->last_activity, (uint64_t)moment.wall_ns);
    return true;
}
