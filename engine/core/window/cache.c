#include "window/cache.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/bits.h"

/* Strides and the ring are multiples of this, so that a head always fits before the ring's end. */
enum { GRAIN = sizeof(helio_cache_packet) };

_Static_assert((GRAIN & (GRAIN - 1)) == 0, "offsets are aligned by it");

/* Two packets with one key are told apart by their heads; the later one is not kept. */
static uint64_t key_of(uint64_t stream, uint32_t sequence) {
    return stream ^ (sequence * UINT64_C(0x9E3779B97F4A7C15));
}

int helio_cache_init(helio_cache *cache, uint64_t capacity, int64_t age_ns) {
    *cache = (helio_cache){.capacity = helio_round_up(capacity, GRAIN), .age_ns = age_ns};
    cache->ring = malloc(cache->capacity);
    if (!cache->ring || helio_map_init(&cache->by_number, 64)) {
        helio_cache_fini(cache);
        return HELIO_ERR_NOMEM;
    }
    return 0;
}

void helio_cache_fini(helio_cache *cache) {
    free(cache->ring);
    if (cache->by_number.entries) {
        helio_map_fini(&cache->by_number);
    }
    *cache = (helio_cache){0};
}

static helio_cache_packet *packet_at(const helio_cache *cache, uint64_t at) {
    return (helio_cache_packet *)(void *)(cache->ring + at % cache->capacity);
}

static void drop_oldest(helio_cache *cache) {
    const helio_cache_packet *oldest = packet_at(cache, cache->first);
    if (oldest->bytes > 0) {
        helio_map_remove(&cache->by_number, key_of(oldest->stream, oldest->sequence));
        cache->packets--;
        cache->bytes -= oldest->bytes;
    }
    cache->first += oldest->stride;
}

void helio_cache_expire(helio_cache *cache, int64_t now_ns) {
    while (cache->first != cache->end &&
           now_ns - packet_at(cache, cache->first)->kept_ns >= cache->age_ns) {
        drop_oldest(cache);
    }
}

/* Room for `stride` bytes in one piece, at the end; drops the oldest packets. */
static void make_room(helio_cache *cache, uint32_t stride, int64_t now_ns) {
    const uint64_t rest = cache->capacity - cache->end % cache->capacity;
    const uint64_t skipped = rest < stride ? rest : 0;
    while (cache->capacity - (cache->end - cache->first) < skipped + stride) {
        drop_oldest(cache);
    }
    if (skipped) {
        *packet_at(cache, cache->end) =
            (helio_cache_packet){.kept_ns = now_ns, .stride = (uint32_t)skipped};
        cache->end += skipped;
    }
}

uint8_t *helio_cache_add(helio_cache *cache, uint64_t stream, uint32_t sequence, const void *packet,
                         size_t bytes, int64_t now_ns) {
    const uint64_t key = key_of(stream, sequence);
    const uint64_t stride = helio_round_up(sizeof(helio_cache_packet) + bytes, GRAIN);
    helio_cache_expire(cache, now_ns);
    /* What is skipped at the ring's end is shorter than the packet. */
    if (2 * stride > cache->capacity || helio_map_get(&cache->by_number, key)) {
        return NULL;
    }
    make_room(cache, (uint32_t)stride, now_ns);
    helio_cache_packet *place = packet_at(cache, cache->end);
    if (helio_map_put(&cache->by_number, key, place)) {
        return NULL;
    }
    *place = (helio_cache_packet){
        .stream = stream,
        .kept_ns = now_ns,
        .sequence = sequence,
        .bytes = (uint32_t)bytes,
        .stride = (uint32_t)stride,
    };
    memcpy(place + 1, packet, bytes);
    cache->end += stride;
    cache->packets++;
    cache->bytes += bytes;
    return (uint8_t *)(place + 1);
}

const helio_cache_packet *helio_cache_find(const helio_cache *cache, uint64_t stream,
                                           uint32_t sequence, int64_t now_ns) {
    const helio_cache_packet *found = helio_map_get(&cache->by_number, key_of(stream, sequence));
    const bool is_it = found && found->stream == stream && found->sequence == sequence &&
                       now_ns - found->kept_ns < cache->age_ns;
    return is_it ? found : NULL;
}
