#include "window/txw.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/bits.h"

enum { CACHE_LINE = 64 };

int helio_txw_init(helio_txw *txw, size_t capacity, size_t packet_bytes, uint64_t first) {
    *txw = (helio_txw){
        .mask = capacity - 1,
        .stride = helio_round_up(packet_bytes, CACHE_LINE),
        .trail = first,
        .lead = first - 1,
    };
    txw->packets = aligned_alloc(CACHE_LINE, capacity * txw->stride);
    txw->slots = calloc(capacity, sizeof *txw->slots);
    if (!txw->packets || !txw->slots) {
        helio_txw_fini(txw);
        return HELIO_ERR_NOMEM;
    }
    return 0;
}

void helio_txw_fini(helio_txw *txw) {
    free(txw->packets);
    free(txw->slots);
    *txw = (helio_txw){0};
}

size_t helio_txw_memory(const helio_txw *txw) {
    return (txw->mask + 1) * (txw->stride + sizeof *txw->slots);
}

uint8_t *helio_txw_open(helio_txw *txw) {
    if (helio_txw_count(txw) == helio_txw_capacity(txw)) {
        txw->bytes -= helio_txw_slot_of(txw, txw->trail)->length;
        txw->trail++;
    }
    return helio_txw_packet(txw, txw->lead + 1);
}

void helio_txw_commit(helio_txw *txw, size_t length, uint32_t payload_sum) {
    txw->lead++;
    *helio_txw_slot_of(txw, txw->lead) =
        (helio_txw_slot){.length = (uint32_t)length, .payload_sum = payload_sum};
    txw->bytes += length;
}
