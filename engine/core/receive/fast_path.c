#include "receive/fast_path.h"

#include <string.h>

#include "receive/control.h"
#include "receive/delivery_topic.h"
#include "receive/endpoint_parts.h"
#include "receive/passing.h"
#include "wire/pgm.h"
#include "wire/tsdu.h"

/* A batch that the fast path takes. */
typedef struct batch {
    helio_delivery_topic *topic;
    helio_tsdu_header header;
    uint64_t bytes; /* of the messages */
    helio_message messages[HELIO_DELIVERY_CHUNK];
} batch;

/* The endpoint's only concern with data is this one stream.  Here and below, what is nearly never so is
 * joined with OR and asked about once: a question each takes more instructions. */
static bool is_common_stream(const helio_rx_endpoint *endpoint, const helio_rx_stream *stream) {
    const bool has_state = endpoint->shared.config.no_fast_path | stream->is_blocked |
                           stream->is_waiting | stream->is_pacing | stream->has_end |
                           stream->acks.is_on | stream->credit.is_awaited |
                           stream->reports.is_acker;
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

/* What the messages of a batch have in common: the last members of each, as they lie there. */
typedef struct alike {
    int64_t times __attribute__((vector_size(16))); /* submit_ns, receive_ns */
    uint64_t stream_and_flags;
} alike;

static inline alike alike_of(const batch *of, int64_t receive_ns) {
    const uint32_t stream_and_flags[] = {of->topic->stream, 0};
    alike form = {.times = {of->header.submit_ns, receive_ns}};
    memcpy(&form.stream_and_flags, stream_and_flags, sizeof stream_and_flags);
    return form;
}

/* Two stores for four members: this is done for each message. */
static inline void put_message(helio_message *to, const uint8_t *body, size_t bytes,
                               uint64_t number, alike form) {
    to->data = body;
    to->length = bytes;
    to->number = number;
    memcpy((uint8_t *)to + offsetof(helio_message, submit_ns), &form.times, sizeof form.times);
    memcpy((uint8_t *)to + offsetof(helio_message, stream), &form.stream_and_flags,
           sizeof form.stream_and_flags);
}

/* Reads the only message; false: it is damaged. */
static inline bool read_lone(const uint8_t *at, const uint8_t *end, int64_t receive_ns,
                             batch *out) {
    helio_tsdu_message read;
    if (!helio_tsdu_next_message(&at, end, &read)) {
        return false;
    }
    const alike form = alike_of(out, receive_ns);
    put_message(out->messages, read.body, read.bytes, out->header.first_message, form);
    out->bytes = read.bytes;
    return at == end;
}

static inline uint16_t head_at(const uint8_t *at) {
    uint16_t head;
    memcpy(&head, at, sizeof head);
    return head;
}

/* Reads messages; false: one is damaged.  Those after a message with a plain header that have the same
 * header are as long: that they end before `end` is asked once for all of them.  Not inlined: the
 * loop then has registers enough. */
__attribute__((noinline)) static bool read_messages(const uint8_t *at, const uint8_t *end,
                                                    int64_t receive_ns, batch *out) {
    const alike form = alike_of(out, receive_ns);
    uint64_t number = out->header.first_message, bytes = 0;
    const uint64_t after = number + out->header.count;
    helio_message *message = out->messages;
    while (number < after) {
        const uint8_t *from = at;
        helio_tsdu_message read;
        if (!helio_tsdu_next_message(&at, end, &read)) {
            return false;
        }
        bytes += read.bytes;
        put_message(message++, read.body, read.bytes, number++, form);
        const size_t step = HELIO_TSDU_MESSAGE_HEADER + read.bytes, left = (size_t)(end - at);
        const uint16_t head = head_at(from);
        if (read.body != from + HELIO_TSDU_MESSAGE_HEADER || left < step || head_at(at) != head) {
            continue;
        }
        const uint64_t first = number, fitting = left / step;
        const uint64_t stop = fitting < after - number ? number + fitting : after, last = stop - 1;
        /* Two at a time: a third less to do for each. */
        for (; number < last && head_at(at) == head && head_at(at + step) == head;
             at += 2 * step, message += 2, number += 2) {
            const uint8_t *body = at + HELIO_TSDU_MESSAGE_HEADER;
            put_message(message, body, read.bytes, number, form);
            put_message(message + 1, body + step, read.bytes, number + 1, form);
        }
        if (number < stop && head_at(at) == head) {
            put_message(message++, at + HELIO_TSDU_MESSAGE_HEADER, read.bytes, number++, form);
            at += step;
        }
        bytes += (number - first) * read.bytes;
    }
    out->bytes = bytes;
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
    if (!read_header(tsdu, bytes, header) || header->count > HELIO_DELIVERY_CHUNK) {
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
    const uint8_t *at = tsdu + header->header_bytes, *end = tsdu + bytes;
    return header->count == 1 ? read_lone(at, end, receive_ns, out)
                              : read_messages(at, end, receive_ns, out);
}

/* Hands the messages over and counts those taken.  False: the sink had no room for all. */
static bool deliver(helio_delivery *delivery, const batch *batch, const helio_rxw_packet *packet,
                    helio_moment moment) {
    helio_delivery_topic *topic = batch->topic;
    const size_t count = batch->header.count;
    helio_delivery_begin_measuring(delivery, topic, moment);
    const size_t taken = helio_delivery_hand_over(delivery, topic, batch->messages, count, packet);
    const bool is_whole = taken == count;
    topic->expected += taken;
    if (taken > 0) {
        const uint64_t bytes =
            is_whole ? batch->bytes : helio_delivery_bytes_of(batch->messages, taken);
        helio_delivery_count(delivery, topic, batch->messages, taken, bytes, 0, packet, moment);
    }
    return is_whole;
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
    helio_set(&helio_rx_stats(stream)->last_activity, (uint64_t)moment.wall_ns);
    return true;
}
