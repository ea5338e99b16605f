#include "receive/absent.h"

#include <stdlib.h>

#include "receive/stream.h"

int helio_rx_absents_init(helio_rx_absents *absents, helio_account *account,
                          helio_instance_stats *instance) {
    *absents = (helio_rx_absents){.account = account, .instance = instance};
    return helio_map_init(&absents->by_tsi, 8);
}

/* ---- the list, by age ---- */

static uint64_t bytes_of(uint32_t count) {
    return sizeof(helio_rx_absent) + count * sizeof(helio_delivery_mark);
}

static void take_out(helio_rx_absents *absents, helio_rx_absent *absent) {
    const uint64_t bytes = bytes_of(absent->count);
    *(absent->older ? &absent->older->newer : &absents->oldest) = absent->newer;
    *(absent->newer ? &absent->newer->older : &absents->newest) = absent->older;
    helio_map_remove(&absents->by_tsi, helio_tsi_key(&absent->tsi));
    absents->bytes -= bytes;
    helio_account_give(absents->account, bytes);
    helio_uncount(&absents->instance->memory_used, bytes);
    helio_uncount(&absents->instance->streams_absent, 1);
    free(absent);
}

void helio_rx_absents_fini(helio_rx_absents *absents) {
    while (absents->oldest) {
        take_out(absents, absents->oldest);
    }
    helio_map_fini(&absents->by_tsi);
}

static bool is_of(const helio_rx_absent *absent, const helio_address *source) {
    return !source || helio_address_same_ip(&absent->source, source);
}

/* Forgets one, of this source or with NULL of any, that is worth no more than one that comes. */
static bool make_room(helio_rx_absents *absents, const helio_address *source, bool is_proven) {
    helio_rx_absent *least = NULL;
    for (helio_rx_absent *absent = absents->oldest; absent; absent = absent->newer) {
        if (absent != absents->returning && is_of(absent, source) &&
            (!least || (least->is_proven && !absent->is_proven))) {
            least = absent;
        }
        if (least && !least->is_proven) {
            break;
        }
    }
    if (!least || (least->is_proven && !is_proven)) {
        return false;
    }
    take_out(absents, least);
    helio_count(&absents->instance->streams_forgotten, 1);
    return true;
}

static bool fits(const helio_rx_absents *absents, const helio_address *source, uint64_t bytes) {
    uint64_t streams = 1;
    for (const helio_rx_absent *absent = absents->oldest; absent; absent = absent->newer) {
        if (is_of(absent, source)) {
            streams++;
            bytes += bytes_of(absent->count);
        }
    }
    const uint64_t share = source ? HELIO_RX_ABSENT_SHARE : 1;
    return streams * share <= HELIO_RX_ABSENT_STREAMS && bytes * share <= HELIO_RX_ABSENT_BYTES;
}

/* Room for one more, within its address's share and the whole. */
static bool find_room(helio_rx_absents *absents, const helio_address *source, bool is_proven,
                      uint64_t bytes) {
    const helio_address *const bounds[] = {source, NULL};
    for (int i = 0; i < 2; i++) {
        while (!fits(absents, bounds[i], bytes)) {
            if (!make_room(absents, bounds[i], is_proven)) {
                return false;
            }
        }
    }
    return helio_account_take(absents->account, bytes);
}

/* ---- keeping ---- */

static bool is_proven(const struct helio_rx_stream *stream) {
    return stream->was_proven || stream->delivery.has_met;
}

/* Another stream of this TSI is remembered, which is worth more. */
static bool must_stay(const helio_rx_absent *absent, const struct helio_rx_stream *stream) {
    return absent->is_proven && !is_proven(stream) &&
           !helio_address_same_ip(&absent->source, &stream->source);
}

static helio_rx_absent *make(const struct helio_rx_stream *stream, uint32_t count, int64_t now_ns) {
    const helio_delivery *delivery = &stream->delivery;
    helio_rx_absent *absent = calloc(1, bytes_of(count));
    if (!absent) {
        return NULL;
    }
    absent->tsi = stream->tsi;
    absent->source = stream->source;
    absent->is_exact = stream->binding.is_exact && !stream->shared->config.is_connected;
    absent->ended_ns = now_ns;
    absent->newest_sub = stream->shared->subscriptions.made;
    absent->is_proven = is_proven(stream);
    absent->past = helio_delivery_past_of(delivery);
    absent->next = absent->past.open_from ? absent->past.open_from : stream->rxw.trail;
    absent->count = count;
    helio_delivery_marks(delivery, absent->marks, count);
    return absent;
}

void helio_rx_absents_keep(helio_rx_absents *absents, const struct helio_rx_stream *stream,
                           int64_t now_ns) {
    const uint64_t key = helio_tsi_key(&stream->tsi);
    helio_rx_absent *before = helio_map_get(&absents->by_tsi, key);
    if (before && must_stay(before, stream)) {
        return;
    }
    if (before) {
        take_out(absents, before);
    }
    const uint32_t count = helio_delivery_marks(&stream->delivery, NULL, 0);
    const uint64_t bytes = bytes_of(count);
    helio_rx_absent *absent = NULL;
    if (find_room(absents, &stream->source, is_proven(stream), bytes)) {
        absent = make(stream, count, now_ns);
        if (!absent || helio_map_put(&absents->by_tsi, key, absent)) {
            helio_account_give(absents->account, bytes);
            free(absent);
            absent = NULL;
        }
    }
    if (!absent) {
        helio_count(&absents->instance->streams_forgotten, 1);
        return;
    }
    absent->older = absents->newest;
    *(absents->newest ? &absents->newest->newer : &absents->oldest) = absent;
    absents->newest = absent;
    absents->bytes += bytes;
    helio_count(&absents->instance->memory_used, bytes);
    helio_count(&absents->instance->streams_absent, 1);
}

/* ---- coming back ---- */

const helio_rx_absent *helio_rx_absents_find(const helio_rx_absents *absents, const helio_tsi *tsi,
                                             const helio_address *from,
                                             const helio_subscriptions *subscriptions) {
    const helio_rx_absent *absent = helio_map_get(&absents->by_tsi, helio_tsi_key(tsi));
    if (!absent || !helio_rx_is_from(&absent->source, absent->is_exact, from)) {
        return NULL;
    }
    for (const helio_subscription *s = subscriptions->first; s; s = s->next) {
        if (s->serial <= absent->newest_sub) {
            return absent;
        }
    }
    return NULL;
}

void helio_rx_absents_forget(helio_rx_absents *absents, const helio_tsi *tsi) {
    helio_rx_absent *absent = helio_map_get(&absents->by_tsi, helio_tsi_key(tsi));
    if (absent) {
        take_out(absents, absent);
    }
}

bool helio_rx_absent_goes_on(const helio_rx_absent *absent, uint32_t lead) {
    return (int32_t)(lead - (uint32_t)(absent->next - 1)) >= 0;
}

bool helio_rx_absent_misses(const helio_rx_absent *absent, uint32_t lead) {
    return helio_rx_absent_goes_on(absent, lead) && lead + 1 != (uint32_t)absent->next;
}
