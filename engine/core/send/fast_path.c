#include "send/fast_path.h"

#include "base/copy.h"
#include "send/batch_counts.h"
#include "send/data_packet.h"
#include "wire/tsdu.h"

/* Nothing has to be asked, waited for or sent first.  What is nearly never so is joined with OR and
 * asked about once: a question each takes more instructions. */
static bool is_common(const helio_tx_stream *stream, size_t length) {
    const bool has_state = !stream->has_opened | stream->is_closed | stream->pace.is_on;
    const uint64_t has_work =
        (uintptr_t)stream->batcher.tsdu | (uint64_t)(stream->pace.wait ^ HELIO_ADMIT_GO) |
        helio_repairer_waiting(&stream->repairer) | stream->acks.registry.count;
    return (int64_t)length <= stream->lone_bytes && (has_state | has_work) == 0;
}

/* Writes a batch of one message; returns its bytes. */
static size_t put_batch(uint8_t *tsdu, const helio_topic_position *topic, const void *data,
                        size_t length, int64_t submit_ns) {
    const helio_tsdu_header header = {
        .kind = HELIO_TSDU_KIND_MESSAGES,
        .count = 1,
        .topic_id = topic->id,
        .first_message = topic->next_message,
        .submit_ns = submit_ns,
    };
    helio_tsdu_encode(tsdu, &header);
    helio_tsdu_encode_plain(tsdu + HELIO_TSDU_HEADER, length);
    helio_copy(tsdu + HELIO_TSDU_HEADER + HELIO_TSDU_MESSAGE_HEADER, data, length);
    return HELIO_TSDU_HEADER + HELIO_TSDU_MESSAGE_HEADER + length;
}

static void count_message(helio_batcher *batcher, helio_topic_position *topic, size_t bytes,
                          int64_t wall_ns) {
    const int64_t paced_ns = helio_batcher_paced(batcher, topic, wall_ns, wall_ns);
    helio_batcher_count_messages(batcher, topic, 1, bytes, 1);
    helio_batcher_measure(batcher, topic, 0, paced_ns, 1);
}

bool helio_tx_fast_path(helio_tx_stream *stream, helio_tx_topic *topic, const void *data,
                        size_t length, helio_moment moment) {
    if (!is_common(stream, length)) {
        return false;
    }
    uint8_t *packet = helio_txw_open(&stream->txw);
    const size_t bytes =
        put_batch(packet + HELIO_PGM_DATA_HEADER, &topic->position, data, length, moment.wall_ns);
    uint32_t sum;
    const size_t packet_bytes = helio_tx_seal(stream, packet, bytes, &sum);
    /* It leaves before it is entered into the books: its place in the history stays what it is. */
    if (stream->config.send_now) {
        stream->config.send_now(stream->outlet.context, packet, packet_bytes);
    } else {
        stream->outlet.send(stream->outlet.context, NULL, packet, packet_bytes, true);
    }
    helio_txw_commit(&stream->txw, packet_bytes, sum, moment.now_ns);
    helio_tx_acks_note(&stream->acks, topic, topic->position.next_message++);
    helio_heartbeat_restart(&stream->heartbeat, moment.now_ns);
    stream->has_news = true;
    helio_tx_count_packet(stream, packet_bytes);
    stream->traffic.packets++;
    stream->traffic.bytes += packet_bytes;
    helio_tx_show_counted(stream);
    count_message(&stream->batcher, &topic->position, length, moment.wall_ns);
    return true;
}
