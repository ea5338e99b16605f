#include "repair/dlr.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/bucket.h"
#include "base/hash.h"
#include "base/moment.h"
#include "base/sequence.h"
#include "window/cache.h"

enum {
    HOSTS = 256,   /* buckets */
    HOST_PART = 4, /* of the rate */
    WAITING = 1024,
    ASKERS = 16, /* of one packet that wait for it; more of them ask again */
};
#define WAIT_NS HELIO_SECOND
#define DEPTH_PART 8 /* of a second's bytes, at once */
#define DEPTH_MAX (UINT64_C(1) << 32)

/* Receivers that wait for a packet that has not arrived here. */
typedef struct waiting {
    uint64_t key; /* 0: free */
    uint64_t stream;
    uint32_t sequence;
    uint32_t count;
    int64_t until_ns;
    helio_address askers[ASKERS];
} waiting;

struct helio_dlr {
    helio_dlr_config config;
    helio_outlet outlet;
    helio_cache cache;
    helio_map by_number; /* of those waiting */
    waiting waiting[WAITING];
    uint32_t waiting_next; /* when all are taken, the oldest gives way */
    helio_bucket all;
    helio_bucket hosts[HOSTS];
};

int helio_dlr_create(const helio_dlr_config *config, helio_outlet outlet, helio_dlr **out) {
    helio_dlr *dlr = calloc(1, sizeof *dlr);
    if (!dlr) {
        return HELIO_ERR_NOMEM;
    }
    dlr->config = *config;
    dlr->outlet = outlet;
    const uint64_t depth =
        config->rate / DEPTH_PART < DEPTH_MAX ? config->rate / DEPTH_PART + 1 : DEPTH_MAX;
    helio_bucket_init(&dlr->all, config->rate, depth, 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        helio_bucket_init(&dlr->hosts[i], (config->rate + HOST_PART - 1) / HOST_PART, depth, 0);
    }
    if (helio_map_init(&dlr->by_number, WAITING) ||
        helio_cache_init(&dlr->cache, config->bytes, config->age_ns)) {
        helio_dlr_destroy(dlr);
        return HELIO_ERR_NOMEM;
    }
    *out = dlr;
    return 0;
}

void helio_dlr_destroy(helio_dlr *dlr) {
    if (!dlr) {
        return;
    }
    helio_cache_fini(&dlr->cache);
    if (dlr->by_number.entries) {
        helio_map_fini(&dlr->by_number);
    }
    free(dlr);
}

/* ---- repairs ---- */

static helio_bucket *bucket_of(helio_dlr *dlr, const helio_address *to) {
    const uint64_t hash = helio_hash_fnv1a(to->ip, sizeof to->ip) ^ dlr->config.seed;
    return &dlr->hosts[helio_hash_mix(hash) % HOSTS];
}

/* Sends a packet kept to a receiver; false: the limits forbid it. */
static bool repair(helio_dlr *dlr, const helio_cache_packet *packet, const helio_address *to,
                   int64_t now_ns) {
    helio_bucket *host = bucket_of(dlr, to);
    if (!helio_bucket_has(host, 0, now_ns) || !helio_bucket_has(&dlr->all, 0, now_ns)) {
        return false;
    }
    helio_bucket_charge(host, packet->bytes);
    helio_bucket_charge(&dlr->all, packet->bytes);
    dlr->outlet.send(dlr->outlet.context, to, helio_cache_data(packet), packet->bytes, false);
    return true;
}

/* ---- packets that have not arrived ---- */

static uint64_t key_of(uint64_t stream, uint32_t sequence) {
    return helio_hash_mix(stream ^ ((uint64_t)sequence << 32 | sequence)) | 1;
}

static void forget(helio_dlr *dlr, waiting *entry) {
    if (entry->key) {
        helio_map_remove(&dlr->by_number, entry->key);
        entry->key = 0;
    }
}

/* Those that wait for a packet; NULL: nobody does, or not for this one. */
static waiting *find(const helio_dlr *dlr, uint64_t stream, uint32_t sequence, int64_t now_ns) {
    waiting *entry = helio_map_get(&dlr->by_number, key_of(stream, sequence));
    return entry && entry->stream == stream && entry->sequence == sequence &&
                   now_ns < entry->until_ns
               ? entry
               : NULL;
}

static waiting *begin_waiting(helio_dlr *dlr, uint64_t stream, uint32_t sequence, int64_t now_ns) {
    const uint64_t key = key_of(stream, sequence);
    waiting *entry = helio_map_get(&dlr->by_number, key);
    if (!entry) {
        entry = &dlr->waiting[dlr->waiting_next++ % WAITING];
        forget(dlr, entry);
        if (helio_map_put(&dlr->by_number, key, entry)) {
            return NULL;
        }
    }
    entry->key = key;
    entry->stream = stream;
    entry->sequence = sequence;
    entry->count = 0;
    entry->until_ns = now_ns + WAIT_NS;
    return entry;
}

/* Remembers a receiver that waits; false: there is no room for it. */
static bool await(helio_dlr *dlr, uint64_t stream, uint32_t sequence, const helio_address *from,
                  int64_t now_ns) {
    waiting *entry = find(dlr, stream, sequence, now_ns);
    if (!entry) {
        entry = begin_waiting(dlr, stream, sequence, now_ns);
    }
    for (uint32_t i = 0; entry && i < entry->count; i++) {
        if (helio_address_equal(&entry->askers[i], from)) {
            return true;
        }
    }
    if (!entry || entry->count == ASKERS) {
        return false;
    }
    entry->askers[entry->count++] = *from;
    return true;
}

uint32_t helio_dlr_on_data(helio_dlr *dlr, const helio_pgm_packet *packet, const void *datagram,
                           size_t bytes, int64_t now_ns) {
    const uint64_t stream = helio_tsi_key(&packet->tsi);
    uint8_t *copy = helio_cache_add(&dlr->cache, stream, packet->sequence, datagram, bytes, now_ns);
    if (!copy) {
        return 0;
    }
    helio_pgm_relay_repair(copy, bytes);
    waiting *entry = find(dlr, stream, packet->sequence, now_ns);
    if (!entry) {
        return 0;
    }
    const helio_cache_packet *kept =
        helio_cache_find(&dlr->cache, stream, packet->sequence, now_ns);
    uint32_t sent = 0;
    for (uint32_t i = 0; kept && i < entry->count; i++) {
        sent += repair(dlr, kept, &entry->askers[i], now_ns);
    }
    forget(dlr, entry);
    return sent;
}

/* ---- NAKs ---- */

static bool is_expected(const helio_dlr_hope *hope, uint32_t sequence) {
    return !helio_sequence_before(sequence, hope->first) &&
           !helio_sequence_before(hope->last, sequence);
}

static void confirm(helio_dlr *dlr, const helio_pgm_packet *nak, const uint32_t *sequences,
                    size_t count, const helio_address *to) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const helio_pgm_session session = {nak->tsi, nak->destination_port};
    const size_t length = helio_pgm_encode_nak(packet, &session, HELIO_PGM_TYPE_NCF, sequences,
                                               count, &nak->source, &nak->group);
    dlr->outlet.send(dlr->outlet.context, to, packet, length, false);
}

helio_dlr_answer helio_dlr_on_nak(helio_dlr *dlr, const helio_pgm_packet *nak,
                                  const helio_address *from, const helio_dlr_hope *hope,
                                  int64_t now_ns) {
    helio_dlr_answer answer = {0};
    uint32_t confirmed[1 + HELIO_PGM_NAK_LIST_MAX];
    const helio_cache_packet *kept[1 + HELIO_PGM_NAK_LIST_MAX];
    size_t count = 0;
    const uint64_t stream = helio_tsi_key(&nak->tsi);
    for (uint32_t i = 0; i <= nak->list_count; i++) {
        const uint32_t sequence = i == 0 ? nak->sequence : nak->list[i - 1];
        const helio_cache_packet *found = helio_cache_find(&dlr->cache, stream, sequence, now_ns);
        if (!found && !is_expected(hope, sequence)) {
            answer.declined++;
            continue;
        }
        if (!found && !await(dlr, stream, sequence, from, now_ns)) {
            answer.limited++;
            continue;
        }
        answer.awaited += !found;
        kept[count] = found;
        confirmed[count++] = sequence;
    }
    if (count > 0) { /* before the repairs, so that nobody waits for it any more */
        confirm(dlr, nak, confirmed, count, from);
    }
    for (size_t i = 0; i < count; i++) {
        if (kept[i]) {
            const bool is_sent = repair(dlr, kept[i], from, now_ns);
            answer.repaired += is_sent;
            answer.limited += !is_sent;
        }
    }
    return answer;
}

void helio_dlr_measure(helio_dlr *dlr, int64_t now_ns, uint64_t *packets, uint64_t *bytes) {
    helio_cache_expire(&dlr->cache, now_ns);
    *packets = dlr->cache.packets;
    *bytes = dlr->cache.bytes;
}
