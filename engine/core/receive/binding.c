#include "receive/binding.h"

#include "receive/stream.h"

/* A source says at least once a second that it is there. */
#define CONNECTION_SILENT_NS (2 * HELIO_SECOND)

void helio_rx_bind(helio_rx_stream *stream, const helio_address *from) {
    stream->source = *from;
    stream->binding = (helio_rx_binding){
        .port = from->port,
        .is_exact = stream->shared->config.is_connected || from->port == stream->tsi.port,
    };
}

/* Data came from the address the stream was met at. */
static bool has_data(const helio_rx_stream *stream) {
    return stream->rxw.trail > stream->first || stream->rxw.held > 0;
}

static helio_rx_origin judge_connection(helio_rx_stream *stream, const helio_address *from,
                                        int64_t now_ns) {
    if (!stream->binding.is_detached && now_ns - stream->heard_ns < CONNECTION_SILENT_NS) {
        return HELIO_RX_OF_ANOTHER;
    }
    helio_rx_bind(stream, from);
    return HELIO_RX_OF_SOURCE;
}

helio_rx_origin helio_rx_judge_origin(helio_rx_stream *stream, const helio_address *from,
                                      int64_t now_ns) {
    if (!helio_address_same_ip(&stream->source, from)) {
        return HELIO_RX_OF_ANOTHER;
    }
    if (stream->shared->config.is_connected) {
        return judge_connection(stream, from, now_ns);
    }
    if (stream->binding.is_exact) {
        return HELIO_RX_OF_ANOTHER;
    }
    if (from->port == stream->tsi.port) {
        return stream->shared->config.is_raw && has_data(stream) ? HELIO_RX_OF_ANOTHER
                                                                 : HELIO_RX_OF_OWNER;
    }
    stream->binding.port = from->port;
    return HELIO_RX_OF_SOURCE;
}
