/* Fuzz target for libFuzzer: a histogram's V2 payload, body or compressed, from a file somebody else wrote. */
#include <stdlib.h>
#include <string.h>

#include "stats/hdr_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint64_t counts[HELIO_HDR_MAX_CELLS], before[HELIO_HDR_MAX_CELLS];
    helio_hdr_layout layout;
    if (helio_hdr_peek(data, size, &layout) != HELIO_HDR_OK) {
        return 0;
    }
    if (layout.cells > HELIO_HDR_MAX_CELLS) {
        abort();
    }
    if (layout.cells > 1 << 16) { /* as good as any, and the fuzzer's time is dear */
        return 0;
    }
    const size_t bytes = layout.cells * sizeof counts[0];
    memset(counts, 1, bytes);
    memcpy(before, counts, bytes);
    int64_t total = 0;
    if (helio_hdr_add(&layout, data, size, -1, counts, &total) == HELIO_HDR_OK) {
        const double quantiles[] = {0, 0.5, 1};
        int64_t values[3];
        helio_hdr_quantiles(&layout, counts, total, quantiles, 3, values);
    } else if (memcmp(before, counts, bytes) != 0 || total != 0) {
        abort(); /* a refused payload leaves the counts as they were */
    }
    return 0;
}
