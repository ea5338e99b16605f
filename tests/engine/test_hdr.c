/* Latency histograms in C: the recorder's cells, and the codec on bytes nobody should trust. */
#include "check.h"

#include "../../engine/core/stats/hdr.h"
#include "../../engine/core/stats/hdr_codec.h"

static helio_hdr_layout catalogue_layout(void) {
    helio_hdr_layout layout;
    CHECK_EQUAL(
        helio_hdr_layout_init(HELIO_HDR_DIGITS, HELIO_HDR_LOWEST, HELIO_HDR_HIGHEST, &layout),
        HELIO_HDR_OK);
    return layout;
}

/* xorshift64: the same sequence everywhere. */
static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *memory(size_t bytes) {
    void *found = calloc(1, bytes);
    CHECK(found != NULL);
    return found;
}

static void the_recorder_and_the_codec_have_the_same_cells(void) {
    const helio_hdr_layout layout = catalogue_layout();
    CHECK_EQUAL(layout.cells, HELIO_HDR_CELLS);
    uint64_t state = 1;
    for (int i = 0; i < 200000; i++) {
        const int64_t value =
            (int64_t)((next_random(&state) >> (i % 64)) % (uint64_t)(HELIO_HDR_HIGHEST + 1));
        const uint32_t cell = helio_hdr_index(value);
        CHECK(cell < layout.cells);
        CHECK(helio_hdr_cell_lowest(&layout, cell) <= value);
        CHECK(value <= helio_hdr_cell_highest(&layout, cell));
    }
}

static void cells_follow_each_other_without_gap(void) {
    const helio_hdr_layout layout = catalogue_layout();
    CHECK_EQUAL(helio_hdr_cell_lowest(&layout, 0), 0);
    for (uint32_t cell = 1; cell < layout.cells; cell++) {
        CHECK_EQUAL(helio_hdr_cell_lowest(&layout, cell),
                    helio_hdr_cell_highest(&layout, cell - 1) + 1);
    }
}

static void every_value_is_counted_somewhere(void) {
    helio_hdr *hdr = memory(sizeof *hdr);
    helio_hdr_init(hdr);
    helio_hdr_record(hdr, 0, 1);
    helio_hdr_record(hdr, HELIO_HDR_HIGHEST, 2);
    helio_hdr_record(hdr, HELIO_HDR_HIGHEST + 1, 3);
    helio_hdr_record(hdr, INT64_MAX, 4);
    helio_hdr_record(hdr, -1, 5);
    helio_hdr_record(hdr, INT64_MIN, 6);
    CHECK_EQUAL(hdr->counts[0], 1);
    CHECK_EQUAL(hdr->counts[helio_hdr_index(HELIO_HDR_HIGHEST)], 2);
    CHECK_EQUAL(hdr->above, 7);
    CHECK_EQUAL(hdr->negative, 11);
    CHECK_EQUAL(hdr->sum, 2 * HELIO_HDR_HIGHEST);
    free(hdr);
}

static void the_head_knows_the_parts_that_counted(void) {
    helio_hdr *hdr = memory(sizeof *hdr);
    helio_hdr_init(hdr);
    helio_hdr_record(hdr, -1, 1);
    helio_hdr_record(hdr, HELIO_HDR_HIGHEST + 1, 1);
    CHECK_EQUAL(hdr->used, 0);
    uint64_t state = 3, used = 0;
    for (int i = 0; i < 300; i++) {
        const int64_t value =
            (int64_t)((next_random(&state) >> (i % 64)) % (uint64_t)(HELIO_HDR_HIGHEST + 1));
        helio_hdr_record(hdr, value, 1);
        used |= UINT64_C(1) << helio_hdr_index(value) / 512;
        CHECK_EQUAL(hdr->used, used);
    }
    free(hdr);
}

static void impossible_layouts_are_refused(void) {
    helio_hdr_layout layout;
    CHECK_EQUAL(helio_hdr_layout_init(0, 1, 100, &layout), HELIO_HDR_LAYOUT);
    CHECK_EQUAL(helio_hdr_layout_init(6, 1, 100, &layout), HELIO_HDR_LAYOUT);
    CHECK_EQUAL(helio_hdr_layout_init(3, 0, 100, &layout), HELIO_HDR_LAYOUT);
    CHECK_EQUAL(helio_hdr_layout_init(3, INT64_MIN, 100, &layout), HELIO_HDR_LAYOUT);
    CHECK_EQUAL(helio_hdr_layout_init(3, 51, 100, &layout), HELIO_HDR_LAYOUT);
    CHECK_EQUAL(helio_hdr_layout_init(3, INT64_C(1) << 61, INT64_MAX, &layout), HELIO_HDR_LAYOUT);
    CHECK_EQUAL(helio_hdr_layout_init(5, 1, INT64_MAX, &layout), HELIO_HDR_TOO_LARGE);
    CHECK_EQUAL(helio_hdr_layout_init(4, 1, INT64_MAX, &layout), HELIO_HDR_OK);
    CHECK_EQUAL(helio_hdr_cell_highest(&layout, layout.cells - 1), INT64_MAX);
}

/* A histogram with values in it: counts and both forms of its payload. */
typedef struct sample {
    helio_hdr_layout layout;
    uint64_t *counts;
    int64_t total;
    uint8_t *body;
    size_t body_bytes;
    uint8_t *wrapped;
    size_t wrapped_bytes;
} sample;

static sample sample_make(uint64_t seed, int values) {
    sample made = {.layout = catalogue_layout(), .total = values};
    made.counts = memory(made.layout.cells * sizeof *made.counts);
    for (int i = 0; i < values; i++) {
        const uint64_t random = next_random(&seed);
        made.counts[helio_hdr_index((int64_t)(random >> (34 + random % 16)))]++;
    }
    made.body = memory(helio_hdr_body_bound(&made.layout));
    made.body_bytes = helio_hdr_body_encode(&made.layout, made.counts, made.body);
    made.wrapped = memory(helio_hdr_compressed_bound(made.body_bytes));
    made.wrapped_bytes = helio_hdr_compress(made.body, made.body_bytes, made.wrapped);
    CHECK(made.body_bytes > HELIO_HDR_HEADER_BYTES && made.wrapped_bytes > HELIO_HDR_OUTER_BYTES);
    return made;
}

static void sample_free(sample *made) {
    free(made->counts);
    free(made->body);
    free(made->wrapped);
}

static void both_forms_add_the_same_counts(void) {
    sample made = sample_make(7, 5000);
    uint64_t *counts = memory(made.layout.cells * sizeof *counts);
    int64_t total = 0;
    CHECK_EQUAL(helio_hdr_add(&made.layout, made.body, made.body_bytes, 5000, counts, &total),
                HELIO_HDR_OK);
    CHECK_BYTES(counts, made.counts, made.layout.cells * sizeof *counts);
    CHECK_EQUAL(helio_hdr_add(&made.layout, made.wrapped, made.wrapped_bytes, -1, counts, &total),
                HELIO_HDR_OK);
    CHECK_EQUAL(total, 10000);
    for (uint32_t cell = 0; cell < made.layout.cells; cell++) {
        CHECK_EQUAL(counts[cell], 2 * made.counts[cell]);
    }
    free(counts);
    sample_free(&made);
}

static void every_cut_of_a_payload_is_refused_and_changes_nothing(void) {
    sample made = sample_make(8, 3000);
    uint64_t *counts = memory(made.layout.cells * sizeof *counts);
    memcpy(counts, made.counts, made.layout.cells * sizeof *counts);
    int64_t total = made.total;
    for (int form = 0; form < 2; form++) {
        const uint8_t *whole = form ? made.wrapped : made.body;
        const size_t bytes = form ? made.wrapped_bytes : made.body_bytes;
        for (size_t cut = 0; cut < bytes; cut++) {
            /* Of its own size, so that a sanitizer sees a read beyond the end. */
            uint8_t *part = memory(cut + 1);
            memcpy(part, whole, cut);
            CHECK(helio_hdr_add(&made.layout, part, cut, -1, counts, &total) != HELIO_HDR_OK);
            free(part);
        }
    }
    CHECK_EQUAL(total, made.total);
    CHECK_BYTES(counts, made.counts, made.layout.cells * sizeof *counts);
    free(counts);
    sample_free(&made);
}

static void mutated_payloads_are_added_whole_or_not_at_all(void) {
    sample made = sample_make(9, 800);
    uint64_t *counts = memory(made.layout.cells * sizeof *counts);
    uint8_t *mutant = memory(made.body_bytes);
    uint8_t *wrapped = memory(helio_hdr_compressed_bound(made.body_bytes));
    uint64_t seed = 42;
    int refused = 0;
    for (int round = 0; round < 4000; round++) {
        memcpy(mutant, made.body, made.body_bytes);
        for (uint64_t i = next_random(&seed) % 4; i < 4; i++) {
            mutant[next_random(&seed) % made.body_bytes] = (uint8_t)next_random(&seed);
        }
        const uint8_t *payload = mutant;
        size_t bytes = made.body_bytes;
        if (round % 2) {
            bytes = helio_hdr_compress(mutant, made.body_bytes, wrapped);
            payload = wrapped;
        }
        int64_t total = 0;
        if (helio_hdr_add(&made.layout, payload, bytes, -1, counts, &total) != HELIO_HDR_OK) {
            refused++;
            CHECK_EQUAL(total, 0);
        }
        uint64_t sum = 0;
        for (uint32_t cell = 0; cell < made.layout.cells; cell++) {
            sum += counts[cell];
        }
        CHECK_EQUAL(sum, total);
        memset(counts, 0, made.layout.cells * sizeof *counts);
    }
    CHECK(refused > 0 && refused < 4000);
    free(wrapped);
    free(mutant);
    free(counts);
    sample_free(&made);
}

static void quantiles_are_the_values_of_their_ranks(void) {
    const helio_hdr_layout layout = catalogue_layout();
    uint64_t *counts = memory(layout.cells * sizeof *counts);
    const double wanted[] = {0.0, 0.5, 0.501, 0.999, 0.9991, 1.0};
    int64_t found[6];
    helio_hdr_quantiles(&layout, counts, 0, wanted, 6, found);
    CHECK_EQUAL(found[5], 0);
    for (int64_t value = 1; value <= 1000; value++) {
        counts[helio_hdr_index(value)]++;
    }
    helio_hdr_quantiles(&layout, counts, 1000, wanted, 6, found);
    const int64_t expected[] = {1, 500, 501, 999, 1000, 1000};
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(found[i], expected[i]);
    }
    free(counts);
}

int main(void) {
    RUN(the_recorder_and_the_codec_have_the_same_cells);
    RUN(cells_follow_each_other_without_gap);
    RUN(every_value_is_counted_somewhere);
    RUN(the_head_knows_the_parts_that_counted);
    RUN(impossible_layouts_are_refused);
    RUN(both_forms_add_the_same_counts);
    RUN(every_cut_of_a_payload_is_refused_and_changes_nothing);
    RUN(mutated_payloads_are_added_whole_or_not_at_all);
    RUN(quantiles_are_the_values_of_their_ranks);
    return check_result();
}
