/* The size of a stream's window: small while it is unproven, the configured size after that.
 *
 * The window of an unproven stream doubles each time a packet newer than its room comes, while all
 * such streams together stay within their bytes.  A proven stream that memory_limit left without
 * its whole window tries again now and then. */
#include "receive/passing.h"
#include "receive/stream.h"
#include "window/size.h"

#define GROW_AGAIN_NS (100 * HELIO_MILLISECOND)

static uint64_t configured(const helio_rx_stream *stream) {
    return helio_window_packets(stream->shared->config.window_packets);
}

uint64_t helio_rx_window_of(const helio_rx_stream *stream) {
    return helio_rx_is_unproven(stream) ? configured(stream) : stream->rxw.mask + 1;
}

/* False: there is no memory; window and account are as they were. */
static bool grow(helio_rx_stream *stream, uint64_t packets) {
    helio_rx_shared *shared = stream->shared;
    const size_t before = helio_rx_memory_of(stream);
    const bool has_nak = stream->nak.mask >= packets - 1; /* rxw had no memory the last time */
    const size_t after = helio_rxw_memory_of(packets, stream->rxw.stride) +
                         (has_nak ? helio_nak_memory(&stream->nak) : helio_nak_memory_of(packets));
    if (!helio_account_take(shared->config.account, after - before)) {
        return false;
    }
    const bool has_room = (has_nak || helio_nak_grow(&stream->nak, packets) == 0) &&
                          helio_rxw_grow(&stream->rxw, packets) == 0;
    const size_t now = helio_rx_memory_of(stream);
    helio_account_give(shared->config.account, after - now);
    helio_count(&shared->instance->memory_used, now - before);
    if (helio_rx_is_unproven(stream)) {
        shared->unproven.window_bytes += now - before;
    }
    return has_room;
}

/* What is known to exist, and has room now, is missing. */
static void ask_for_more(helio_rx_stream *stream, int64_t now_ns) {
    const helio_rxw *rxw = &stream->rxw;
    if (rxw->known > rxw->lead && rxw->lead + 1 >= rxw->source_trail) {
        helio_rx_extend(stream, rxw->known, now_ns);
    }
    helio_rx_believe(stream, now_ns);
}

static void grow_to_all(helio_rx_stream *stream, int64_t now_ns) {
    uint64_t packets = configured(stream);
    if (now_ns < stream->grow_after_ns || packets <= stream->rxw.mask + 1) {
        return;
    }
    while (packets > stream->rxw.mask + 1 && !grow(stream, packets)) {
        packets /= 2;
    }
    if (stream->rxw.mask + 1 < configured(stream)) {
        stream->grow_after_ns = now_ns + GROW_AGAIN_NS;
    }
}

void helio_rx_stream_prove(helio_rx_stream *stream, int64_t now_ns) {
    helio_rx_unproven_remove(&stream->shared->unproven, stream);
    helio_stats_open_histograms(stream->shared->stats, &stream->object);
    grow_to_all(stream, now_ns);
    ask_for_more(stream, now_ns);
}

/* The largest window that fits with what unproven streams may have. */
static void grow_unproven(helio_rx_stream *stream, uint64_t packets) {
    const helio_rx_unproven *unproven = &stream->shared->unproven;
    const uint64_t each = helio_rx_memory_of(stream) / (stream->rxw.mask + 1);
    const uint64_t others = unproven->window_bytes - helio_rx_memory_of(stream);
    while (packets > stream->rxw.mask + 1 && others + packets * each > HELIO_RX_UNPROVEN_BYTES) {
        packets /= 2;
    }
    if (packets > stream->rxw.mask + 1) {
        grow(stream, packets);
    }
}

void helio_rx_make_room(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns) {
    if (!helio_rx_is_unproven(stream)) {
        grow_to_all(stream, now_ns);
        return;
    }
    /* Twice as much at a time is enough for packets that come one after the other; one far ahead
     * makes no stream large. */
    const helio_rxw *rxw = &stream->rxw;
    const uint64_t twice = 2 * (rxw->mask + 1);
    if (sequence - rxw->trail < twice && twice <= configured(stream)) {
        grow_unproven(stream, twice);
    }
}

void helio_rx_make_room_before(helio_rx_stream *stream, uint64_t first) {
    const helio_rxw *rxw = &stream->rxw;
    uint64_t packets = rxw->mask + 1;
    while (packets < configured(stream) && packets < rxw->lead + 1 - first) {
        packets *= 2;
    }
    if (helio_rx_is_unproven(stream) && rxw->held > 0) {
        grow_unproven(stream, packets);
    }
}
