/* Data packets of a stream, from the batcher to the outlet: opened, sealed, kept in the history and sent.
 *
 * A history is larger than the cache.  Where the driver copies each packet at once, as into a ring, packets
 * are built in a workspace that stays in the cache, and copied into the history past it (ADR 0084). */
#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/copy.h"
#include "send/data_packet.h"

enum {
    DATA_PER_REPAIR = 2, /* while both wait: two data packets, one repair */
    BREATH = 64,         /* fragments of a message sent in one go */
};

/* Time that the packets of a full history take at least, when one long message fills it. */
#define HISTORY_SPAN_NS (500 * HELIO_MILLISECOND)
#define LIMIT_WAIT_NS HELIO_SECOND

/* ---- workspace ---- */

size_t helio_tx_workspace_bytes(const helio_tx_stream *stream) {
    return HELIO_COPIES_PAST_CACHE && stream->config.is_copied
               ? helio_round_up(stream->config.max_packet_bytes, HELIO_TXW_LINE)
               : 0;
}

int helio_tx_open_workspace(helio_tx_stream *stream) {
    const size_t bytes = helio_tx_workspace_bytes(stream);
    stream->workspace = bytes ? aligned_alloc(HELIO_TXW_LINE, bytes) : NULL;
    return bytes && !stream->workspace ? HELIO_ERR_NOMEM : 0;
}

void helio_tx_close_workspace(helio_tx_stream *stream) {
    free(stream->workspace);
    stream->workspace = NULL;
}

/* ---- open ---- */

static uint8_t *open_packet(void *context, bool is_fragment) {
    helio_tx_stream *stream = context;
    if (!stream->has_opened) {
        helio_tx_open(stream, 0);
    }
    uint8_t *packet = helio_txw_open(&stream->txw);
    while (!packet) { /* has_room keeps messages away; the end of a topic cannot be kept away */
        helio_tx_acks_let_go(&stream->acks, stream->acks.stable + 1, stream->moment);
        packet = helio_txw_open(&stream->txw);
    }
    if (stream->pace.is_on) {
        helio_tx_pace_on_open(&stream->pace);
    }
    if (stream->workspace) {
        packet = stream->workspace;
    }
    return packet + (is_fragment ? HELIO_PGM_FRAGMENT_HEADER : HELIO_PGM_DATA_HEADER);
}

/* ---- waits within a long message ---- */

/* Packet number `place` of a message in fragments was sent. */
static void breathe(helio_tx_stream *stream, const helio_pgm_fragment *fragment, uint32_t place,
                    helio_moment moment) {
    if (place == 0) {
        stream->cutting_since_ns = moment.now_ns;
    }
    if (!stream->config.breathe || place % BREATH != BREATH - 1) {
        return;
    }
    const helio_txw *txw = &stream->txw;
    const uint64_t history = txw->limit_bytes < txw->limit_packets * stream->config.max_packet_bytes
                                 ? txw->limit_bytes / stream->config.max_packet_bytes
                                 : txw->limit_packets;
    const uint64_t message = fragment->length / stream->config.max_packet_bytes;
    const int64_t not_before_ns =
        message < history / 2
            ? 0
            : stream->cutting_since_ns + (int64_t)(place * HISTORY_SPAN_NS / (int64_t)history);
    stream->config.breathe(stream->outlet.context, not_before_ns);
}

/* The next packet of the message waits for the rate; for receivers (the send limit) it does so for
 * a while only, and the rest of the message then goes on without: an engine must not stand still
 * for one that has gone. */
static void wait_within(helio_tx_stream *stream, helio_moment moment) {
    const int64_t since_ns = moment.now_ns;
    while (helio_tx_admit_packet(stream, stream->txw.lead + 1, moment) != HELIO_ADMIT_GO) {
        if (stream->pace.wait == HELIO_ADMIT_WINDOW && moment.now_ns - since_ns > LIMIT_WAIT_NS) {
            stream->pace.is_limit_waived = true;
        }
        const int64_t ready_ns = helio_tx_pace_ready_ns(&stream->pace);
        moment = stream->config.wait(stream->outlet.context, ready_ns);
        stream->moment = moment;
    }
}

/* ---- close ---- */

/* As helio_tx_seal, of a packet with a fragment. */
static size_t seal_fragment(const helio_tx_stream *stream, uint8_t *packet,
                            helio_pgm_fragment *fragment, size_t bytes, uint32_t *sum) {
    const helio_txw *txw = &stream->txw;
    const uint32_t sequence = (uint32_t)(txw->lead + 1);
    if (fragment->offset == 0) {
        fragment->first = sequence;
    }
    *sum = helio_tx_sum_of(stream, packet + HELIO_PGM_FRAGMENT_HEADER, bytes);
    return helio_pgm_encode_data(packet, &stream->session, sequence, (uint32_t)txw->trail, fragment,
                                 bytes, *sum);
}

/* Completes the open packet and keeps it; returns its length. */
static size_t keep_packet(helio_tx_stream *stream, uint8_t *packet, helio_pgm_fragment *fragment,
                          size_t bytes, int64_t now_ns) {
    uint32_t sum;
    const size_t length = fragment ? seal_fragment(stream, packet, fragment, bytes, &sum)
                                   : helio_tx_seal(stream, packet, bytes, &sum);
    if (packet == stream->workspace) {
        helio_txw_commit_copy(&stream->txw, packet, length, sum, now_ns);
    } else {
        helio_txw_commit(&stream->txw, length, sum, now_ns);
    }
    return length;
}

/* Messages that the packet being closed completes. */
static uint64_t messages_in(const helio_batcher *batcher, const helio_pgm_fragment *fragment,
                            size_t bytes) {
    if (fragment) {
        return fragment->offset + bytes == fragment->length;
    }
    return !batcher->closing ? 0
           : batcher->is_raw ? 1
                             : batcher->closing->next_message - batcher->closing_first;
}

static void close_packet(void *context, size_t bytes, helio_pgm_fragment *fragment,
                         helio_moment moment) {
    helio_tx_stream *stream = context;
    if (stream->is_cutting && stream->moment.now_ns > moment.now_ns) { /* it has waited */
        moment = stream->moment;
    }
    const uint64_t sequence = stream->txw.lead + 1;
    uint8_t *packet = stream->workspace ? stream->workspace : helio_txw_opened(&stream->txw);
    const size_t length = keep_packet(stream, packet, fragment, bytes, moment.now_ns);
    if (stream->config.acks > 0) {
        helio_tx_stability_on_sent(&stream->acks.stability,
                                   messages_in(&stream->batcher, fragment, bytes));
    }
    helio_tx_acks_on_sent(&stream->acks, (helio_tx_topic *)stream->batcher.closing,
                          stream->batcher.closing_first);
    helio_tx_count_data(stream, length);
    helio_heartbeat_restart(&stream->heartbeat, moment.now_ns);
    stream->has_news = !stream->config.is_raw;
    if (stream->pace.is_open) {
        helio_tx_pace_on_close(&stream->pace);
    }
    helio_tx_send_counted(stream, NULL, packet, length, packet != stream->workspace);
    if (helio_repairer_has_work(&stream->repairer) &&
        ++stream->data_since_repair >= DATA_PER_REPAIR) {
        stream->data_since_repair = 0;
        helio_tx_send_repair(stream, moment);
    }
    if (!fragment) {
        return;
    }
    breathe(stream, fragment, (uint32_t)sequence - fragment->first, moment);
    if (stream->pace.is_on && stream->config.wait && fragment->offset + bytes < fragment->length) {
        wait_within(stream, moment);
    }
}

helio_packet_door helio_tx_packet_door(helio_tx_stream *stream) {
    return (helio_packet_door){stream, open_packet, close_packet};
}
