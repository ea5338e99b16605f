#include "receive/unproven.h"

#include <inttypes.h>
#include <stdlib.h>

#include <heliograph/errors.h>

#include "receive/stream.h"
#include "stats/refusal.h"

/* An address that has streams here. */
struct helio_rx_host {
    uint64_t key;
    uint32_t count;
    helio_rx_stream *oldest, *newest;
};

int helio_rx_unproven_init(helio_rx_unproven *unproven, uint64_t seed) {
    *unproven = (helio_rx_unproven){.seed = seed};
    return helio_map_init(&unproven->hosts, 8);
}

void helio_rx_unproven_fini(helio_rx_unproven *unproven) {
    helio_map_fini(&unproven->hosts);
}

static helio_rx_host *host_of(const helio_rx_unproven *unproven, const helio_address *address) {
    return helio_map_get(&unproven->hosts, helio_rx_host_key(address, unproven->seed));
}

static helio_rx_host *make_host(helio_rx_unproven *unproven, const helio_address *address) {
    helio_rx_host *host = calloc(1, sizeof *host);
    if (!host) {
        return NULL;
    }
    host->key = helio_rx_host_key(address, unproven->seed);
    if (helio_map_put(&unproven->hosts, host->key, host)) {
        free(host);
        return NULL;
    }
    return host;
}

int helio_rx_unproven_add(helio_rx_unproven *unproven, helio_rx_stream *stream) {
    helio_rx_unproven_place *place = &stream->unproven;
    helio_rx_host *host = host_of(unproven, &stream->source);
    if (!host) {
        host = make_host(unproven, &stream->source);
    }
    if (!host) {
        return HELIO_ERR_NOMEM;
    }
    *place = (helio_rx_unproven_place){
        .host = host, .older = unproven->newest, .older_of_host = host->newest};
    *(place->older ? &place->older->unproven.newer : &unproven->oldest) = stream;
    *(place->older_of_host ? &place->older_of_host->unproven.newer_of_host : &host->oldest) =
        stream;
    unproven->newest = host->newest = stream;
    host->count++;
    unproven->window_bytes += helio_rx_memory_of(stream);
    place->is_detailed = unproven->detailed < HELIO_RX_UNPROVEN_DETAILED;
    if (place->is_detailed) {
        unproven->detailed++;
        helio_stats_open_histograms(stream->shared->stats, &stream->object);
    }
    return 0;
}

void helio_rx_unproven_remove(helio_rx_unproven *unproven, helio_rx_stream *stream) {
    const helio_rx_unproven_place place = stream->unproven;
    helio_rx_host *host = place.host;
    if (!host) {
        return;
    }
    stream->unproven = (helio_rx_unproven_place){0};
    *(place.older ? &place.older->unproven.newer : &unproven->oldest) = place.newer;
    *(place.newer ? &place.newer->unproven.older : &unproven->newest) = place.older;
    *(place.older_of_host ? &place.older_of_host->unproven.newer_of_host : &host->oldest) =
        place.newer_of_host;
    *(place.newer_of_host ? &place.newer_of_host->unproven.older_of_host : &host->newest) =
        place.older_of_host;
    unproven->window_bytes -= helio_rx_memory_of(stream);
    unproven->detailed -= place.is_detailed;
    if (--host->count == 0) {
        helio_map_remove(&unproven->hosts, host->key);
        free(host);
    }
}

helio_rx_stream *helio_rx_unproven_too_many(const helio_rx_unproven *unproven,
                                            const helio_address *address, uint32_t max_streams) {
    const helio_rx_host *host = host_of(unproven, address);
    const uint32_t part = max_streams / HELIO_RX_UNPROVEN_PART;
    const uint32_t share = part > HELIO_RX_UNPROVEN_LEAST ? part : HELIO_RX_UNPROVEN_LEAST;
    return host && host->count >= share ? host->oldest : NULL;
}

/* ---- what is refused ---- */

void helio_rx_refuse_state(helio_rx_shared *shared, helio_rx_refusal refusal,
                           const helio_address *from, helio_moment moment) {
    static const helio_refusal reasons[HELIO_RX_REFUSALS] = {
        [HELIO_RX_REFUSED_OF_ADDRESS] = HELIO_REFUSAL_STREAMS_OF_ADDRESS,
        [HELIO_RX_REFUSED_STREAMS] = HELIO_REFUSAL_STREAMS,
        [HELIO_RX_REFUSED_MEMORY] = HELIO_REFUSAL_STREAM_MEMORY,
    };
    static const char *const why[HELIO_RX_REFUSALS] = {
        [HELIO_RX_REFUSED_OF_ADDRESS] = "its address has too many",
        [HELIO_RX_REFUSED_STREAMS] = "there are too many",
        [HELIO_RX_REFUSED_MEMORY] = "memory_limit leaves no room",
    };
    const _Atomic uint64_t *cell = helio_refusal_count(shared->instance, reasons[refusal], 1,
                                                       &shared->refusals[refusal], moment.now_ns);
    if (!cell) {
        return;
    }
    char text[HELIO_ADDRESS_TEXT];
    const uint64_t refused = helio_cell(cell);
    const uint64_t args[4] = {reasons[refusal], refused};
    helio_stats_event(
        shared->stats, moment.wall_ns, HELIO_EVENT_STATE_REFUSED, HELIO_STATS_NO_SLOT, args,
        "%s: an unproven stream is evicted, because %s; the new one is of %s; %" PRIu64
        " until now",
        shared->config.endpoint, why[refusal], helio_address_format_ip(from, text), refused);
}
