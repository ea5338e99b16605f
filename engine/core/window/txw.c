#include "window/txw.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/outlet.h"

enum {
    PAGE = 4096,
    CHUNK_PACKETS = 16, /* of the longest; at the end of a chunk less than one is left unused */
    CHUNK_MIN = 65536,
};

/* ---- chunks ---- */

/* The most chunks that packets of `bytes` take: each but the one being filled lacks less than
 * a packet, and of the oldest all but a packet may have been dropped. */
static uint64_t chunks_for(const helio_txw *txw, uint64_t bytes) {
    return bytes / (txw->chunk_bytes - txw->packet_bytes) + 3;
}

/* Chunks that can be taken while HELIO_OUTLET_HOLD packets are committed. */
static uint64_t chunks_on_hold(const helio_txw *txw) {
    return HELIO_OUTLET_HOLD / (txw->chunk_bytes / txw->packet_bytes) + 2;
}

static helio_txw_chunk *chunk_at(const helio_txw *txw, uint64_t place) {
    return &txw->chunks[place & txw->chunks_mask];
}

/* The open packet begins a chunk. */
static void take_chunk(helio_txw *txw) {
    const uint64_t first = txw->lead + 1;
    uint8_t *memory;
    if (txw->free_first != txw->filled_first &&
        first - chunk_at(txw, txw->free_first)->left_at > HELIO_OUTLET_HOLD) {
        memory = chunk_at(txw, txw->free_first++)->memory;
    } else {
        assert(txw->fresh_count > 0);
        memory = txw->fresh[--txw->fresh_count];
    }
    *chunk_at(txw, txw->filled_end++) = (helio_txw_chunk){.memory = memory, .first = first};
    txw->at = memory;
    txw->end = memory + txw->chunk_bytes;
}

/* The trail has moved: chunks it has left can be filled again. */
static void leave_chunks(helio_txw *txw) {
    while (txw->filled_end - txw->filled_first > 1 &&
           chunk_at(txw, txw->filled_first + 1)->first <= txw->trail) {
        chunk_at(txw, txw->filled_first++)->left_at = txw->lead;
    }
}

/* ---- create, destroy ---- */

static int allocate(helio_txw *txw, size_t packets) {
    const uint64_t places = helio_round_up_power_of_two(txw->chunks_count);
    txw->chunks_mask = places - 1;
    txw->slots = calloc(packets, sizeof *txw->slots);
    txw->chunks = calloc(places, sizeof *txw->chunks);
    txw->fresh = calloc(txw->chunks_count, sizeof *txw->fresh);
    txw->arena = aligned_alloc(PAGE, txw->chunks_count * txw->chunk_bytes);
    return txw->slots && txw->chunks && txw->fresh && txw->arena ? 0 : HELIO_ERR_NOMEM;
}

int helio_txw_init(helio_txw *txw, const helio_txw_config *config) {
    const size_t packet_bytes = helio_round_up(config->packet_bytes, HELIO_TXW_ALIGNMENT);
    const size_t chunk_bytes = helio_round_up(CHUNK_PACKETS * packet_bytes, PAGE);
    const uint64_t all_bytes = (uint64_t)config->packets * packet_bytes;
    const bool is_limited = config->bytes > 0 && config->bytes < all_bytes;
    *txw = (helio_txw){
        .mask = config->packets - 1,
        .trail = config->first,
        .lead = config->first - 1,
        .floor = HELIO_TXW_NO_FLOOR,
        .limit_packets = config->packets,
        .limit_bytes = is_limited ? config->bytes : all_bytes,
        .age_ns = config->age_ns,
        .packet_bytes = packet_bytes,
        .chunk_bytes = chunk_bytes < CHUNK_MIN ? CHUNK_MIN : chunk_bytes,
    };
    txw->max_bytes = txw->limit_bytes;
    txw->chunks_count = chunks_for(txw, txw->limit_bytes) + chunks_on_hold(txw);
    if (allocate(txw, config->packets)) {
        helio_txw_fini(txw);
        return HELIO_ERR_NOMEM;
    }
    for (size_t i = txw->chunks_count; i > 0; i--) {
        txw->fresh[txw->fresh_count++] = txw->arena + (i - 1) * txw->chunk_bytes;
    }
    return 0;
}

void helio_txw_fini(helio_txw *txw) {
    free(txw->slots);
    free(txw->chunks);
    free(txw->fresh);
    free(txw->arena);
    *txw = (helio_txw){0};
}

size_t helio_txw_memory(const helio_txw *txw) {
    if (!txw->arena) {
        return 0;
    }
    return (chunks_for(txw, txw->limit_bytes) + chunks_on_hold(txw)) * txw->chunk_bytes +
           (txw->mask + 1) * sizeof *txw->slots;
}

/* ---- limits ---- */

static void drop_oldest(helio_txw *txw) {
    const helio_txw_slot *slot = helio_txw_slot_of(txw, txw->trail);
    txw->bytes -= slot->length;
    txw->taken_bytes -= helio_txw_taken(slot);
    txw->trail++;
    leave_chunks(txw);
}

/* There is no room for one packet more. */
static void drop_for_room(helio_txw *txw) {
    txw->trimmed_for_bytes += helio_txw_count(txw) < txw->limit_packets;
    drop_oldest(txw);
}

static bool can_drop(const helio_txw *txw) {
    return txw->trail <= txw->lead && txw->trail < txw->floor;
}

bool helio_txw_has_room(const helio_txw *txw) {
    uint64_t count = helio_txw_count(txw);
    uint64_t bytes = txw->taken_bytes + txw->packet_bytes;
    for (uint64_t trail = txw->trail; count >= txw->limit_packets || bytes > txw->limit_bytes;
         trail++, count--) {
        if (trail > txw->lead || trail >= txw->floor) {
            return false;
        }
        bytes -= helio_txw_taken(helio_txw_slot_of(txw, trail));
    }
    return true;
}

void helio_txw_expire(helio_txw *txw, int64_t now_ns, size_t count) {
    if (txw->age_ns == 0) {
        return;
    }
    const int64_t oldest_ns = now_ns - txw->age_ns;
    for (; count > 0 && can_drop(txw) && helio_txw_slot_of(txw, txw->trail)->sent_ns < oldest_ns;
         count--) {
        txw->trimmed_for_age++;
        drop_oldest(txw);
    }
}

void helio_txw_set_limits(helio_txw *txw, uint64_t packets, uint64_t bytes) {
    txw->limit_packets = packets <= txw->mask ? packets : txw->mask + 1;
    txw->limit_bytes = bytes < txw->max_bytes ? bytes : txw->max_bytes;
    while (helio_txw_is_full(txw) && can_drop(txw)) {
        drop_for_room(txw);
    }
}

void helio_txw_release(helio_txw *txw) {
    while (txw->free_first != txw->filled_first) {
        uint8_t *memory = chunk_at(txw, txw->free_first++)->memory;
        madvise(memory, txw->chunk_bytes, MADV_DONTNEED);
        txw->fresh[txw->fresh_count++] = memory;
    }
}

/* ---- packets ---- */

uint8_t *helio_txw_make_room(helio_txw *txw) {
    while (helio_txw_is_full(txw)) {
        if (!can_drop(txw)) {
            return NULL;
        }
        drop_for_room(txw);
    }
    if ((size_t)(txw->end - txw->at) < txw->packet_bytes) {
        take_chunk(txw);
    }
    return txw->at;
}

helio_txw_behind helio_txw_behind_of(const helio_txw *txw, uint64_t position, int64_t now_ns) {
    helio_txw_behind behind = {0};
    if (position >= txw->lead) {
        return behind;
    }
    behind.packets = txw->lead - position;
    const uint64_t oldest = position + 1 > txw->trail ? position + 1 : txw->trail;
    if (oldest > txw->lead) {
        return behind;
    }
    const helio_txw_slot *slot = helio_txw_slot_of(txw, oldest);
    behind.bytes = txw->all_bytes - slot->end_bytes + slot->length;
    behind.age_ns = now_ns > slot->sent_ns ? now_ns - slot->sent_ns : 0;
    return behind;
}
