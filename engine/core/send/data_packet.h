/* A data packet on its way out: sealed and counted the same by the general path (stream.c) and the
 * fast path (fast_path.c). */
#ifndef HELIO_SEND_DATA_PACKET_H
#define HELIO_SEND_DATA_PACKET_H

#include "base/sequence.h"
#include "send/parts.h"
#include "wire/checksum.h"

static inline uint32_t helio_tx_sum_of(const helio_tx_stream *stream, const uint8_t *payload,
                                       size_t bytes) {
    if (!stream->config.has_checksums) {
        return HELIO_PGM_NO_SUM;
    }
    const uint32_t sum = helio_checksum_part(payload, bytes);
    return sum == HELIO_PGM_NO_SUM ? 0 : sum; /* the same in one's complement */
}

/* Completes a packet without a fragment, whose `bytes` of TSDU are in place, with the number after lead.
 * Returns its length; *sum is that of its TSDU. */
static inline size_t helio_tx_seal(const helio_tx_stream *stream, uint8_t *packet, size_t bytes,
                                   uint32_t *sum) {
    const helio_txw *txw = &stream->txw;
    *sum = helio_tx_sum_of(stream, packet + HELIO_PGM_DATA_HEADER, bytes);
    return helio_pgm_put_data(packet, &stream->data_head, (uint32_t)(txw->lead + 1),
                              (uint32_t)txw->trail, bytes, *sum);
}

/* What was sent, and what of it is kept or trimmed: shown together, because within a list the packets
 * before the last one are not shown yet. */
static inline void helio_tx_show_history(const helio_tx_stream *stream,
                                         helio_tx_stream_stats *stats) {
    const helio_txw *txw = &stream->txw;
    const uint64_t first = helio_sequence_start(stream->config.first_sequence);
    helio_set(&stats->packets_sent, stream->traffic.packets);
    helio_set(&stats->bytes_sent, stream->traffic.bytes);
    helio_set(&stats->history_packets, helio_txw_count(txw));
    helio_set(&stats->history_bytes, txw->bytes);
    helio_set(&stats->history_trimmed_packets,
              txw->trail - first - txw->trimmed_for_bytes - txw->trimmed_for_age);
    helio_set(&stats->history_trimmed_bytes, txw->trimmed_for_bytes);
    helio_set(&stats->history_trimmed_age, txw->trimmed_for_age);
    helio_set(&stats->window_trail, txw->trail);
    helio_set(&stats->window_lead, txw->lead);
}

/* The statistics have all data packets up to now, of which the instance has counted all. */
static inline void helio_tx_show_counted(const helio_tx_stream *stream) {
    helio_tx_stream_stats *stats = stream->object.record;
    helio_stats_begin(stats);
    helio_tx_show_history(stream, stats);
    helio_stats_end(stats);
}

/* The same, and the instance counts those that were not shown before. */
static inline void helio_tx_show_data(const helio_tx_stream *stream) {
    const helio_tx_stream_stats *stats = stream->object.record;
    helio_instance_stats *instance = stream->instance;
    helio_count(&instance->packets_sent,
                stream->traffic.packets - helio_cell(&stats->packets_sent));
    helio_count(&instance->packet_bytes_sent,
                stream->traffic.bytes - helio_cell(&stats->bytes_sent));
    helio_tx_show_counted(stream);
}

/* A data packet leaves; the statistics have it with the last one of a list. */
static inline void helio_tx_count_data(helio_tx_stream *stream, size_t length) {
    stream->traffic.packets++;
    stream->traffic.bytes += length;
    if (!stream->batcher.more_follow) {
        helio_tx_show_data(stream);
    }
}

#endif
