/* HdrHistogram's V2 encoding (Tene): how a counts array travels in the HDR log and in the Parquet
 * row.
 *
 *   body         40-byte big-endian header (cookie 0x1c849313), then ZigZag LEB128 words, one per
 *                cell; a negative word is a run of that many empty cells; cells after the last
 *                counted one are left out
 *   compressed   cookie 0x1c849314, length, and the body within zlib
 *
 * Decoding adds into an array the caller owns.  The bytes are hostile: every length is checked
 * before it is used, no size they declare is ever allocated, and inflating stops at the cells of
 * the layout.  A refused payload leaves the counts exactly as they were.
 *
 * Which cell counts a value depends on `digits` and `lowest` only; `highest` merely ends the
 * array.  So histograms that share digits and lowest add cell by cell, whatever their highest, and
 * others are refused: no value is ever moved to another cell.
 *
 * Nothing here allocates (zlib does, for its own state), locks or keeps state between calls. */
#ifndef HELIO_STATS_HDR_CODEC_H
#define HELIO_STATS_HDR_CODEC_H

#include <stddef.h>
#include <stdint.h>

enum {
    HELIO_HDR_HEADER_BYTES = 40,
    HELIO_HDR_OUTER_BYTES = 8,
    HELIO_HDR_WORD_BYTES = 9, /* the longest word */
    /* Cells of the largest layout accepted (32 MiB of counts): any range at 4 digits, 78 h of
     * nanoseconds at 5. */
    HELIO_HDR_MAX_CELLS = 1 << 22,
};

/* X(NAME, text): why a payload is refused. */
#define HELIO_HDR_REFUSALS(X)                                                            \
    X(OK, "accepted")                                                                    \
    X(TRUNCATED, "ends before its declared length")                                      \
    X(COOKIE, "is not an HdrHistogram V2 payload")                                       \
    X(LAYOUT, "declares impossible digits, lowest or highest")                           \
    X(TOO_LARGE, "declares a layout of more than 4194304 cells")                         \
    X(OTHER_LAYOUT, "has another layout than it should")                                 \
    X(SHIFTED, "has a normalizing offset or ratio, which integer histograms never have") \
    X(WORD, "has a damaged word")                                                        \
    X(OVERRUN, "has more cells than its layout")                                         \
    X(COUNT, "counts more values than 63 bits hold")                                     \
    X(TOTAL, "counts another number of values than was recorded beside it")              \
    X(TRAILING, "goes on after its declared length")                                     \
    X(ZLIB, "cannot be inflated: damaged zlib data")                                     \
    X(NOMEM, "could not be inflated for want of memory")                                 \
    X(PACKED, "is packed more tightly than any histogram needs")

typedef enum helio_hdr_refusal {
#define X(name, text) HELIO_HDR_##name,
    HELIO_HDR_REFUSALS(X)
#undef X
        HELIO_HDR_REFUSAL_COUNT
} helio_hdr_refusal;

/* Which values each cell counts. */
typedef struct helio_hdr_layout {
    int32_t digits;  /* 1 to 5 */
    int64_t lowest;  /* at least 1 */
    int64_t highest; /* at least 2 * lowest */
    uint32_t unit_bits;
    uint32_t half_bits; /* log2 of half the sub-bucket count */
    uint32_t cells;
} helio_hdr_layout;

/* The refusal for people; continues "the payload ...". */
const char *helio_hdr_refusal_text(helio_hdr_refusal refusal);

/* Fills *out.  Returns OK, LAYOUT or TOO_LARGE. */
helio_hdr_refusal helio_hdr_layout_init(int32_t digits, int64_t lowest, int64_t highest,
                                        helio_hdr_layout *out);

/* Smallest and largest value a cell counts. */
int64_t helio_hdr_cell_lowest(const helio_hdr_layout *layout, uint32_t cell);
int64_t helio_hdr_cell_highest(const helio_hdr_layout *layout, uint32_t cell);

/* Bytes that always suffice for the body of `layout`. */
size_t helio_hdr_body_bound(const helio_hdr_layout *layout);

/* Writes the body of layout->cells counts to `out`, of helio_hdr_body_bound bytes.
 * Returns its bytes, or 0 when a count does not fit in 63 bits. */
size_t helio_hdr_body_encode(const helio_hdr_layout *layout, const uint64_t *counts, uint8_t *out);

/* Bytes that always suffice for the compressed form of a body. */
size_t helio_hdr_compressed_bound(size_t body_bytes);

/* Wraps a body.  `out` has helio_hdr_compressed_bound bytes.  Returns the bytes written, 0 for want
 * of memory. */
size_t helio_hdr_compress(const uint8_t *body, size_t body_bytes, uint8_t *out);

/* Reads the layout of a payload, body or compressed, without reading its counts. */
helio_hdr_refusal helio_hdr_peek(const uint8_t *bytes, size_t size, helio_hdr_layout *out);

/* Adds a payload, body or compressed, to layout->cells counts whose sum is *total, and its number
 * of values to *total.  The payload must have the layout's digits and lowest, and no larger
 * highest.  When `expected` is not negative, the payload must count that many values. */
helio_hdr_refusal helio_hdr_add(const helio_hdr_layout *layout, const uint8_t *bytes, size_t size,
                                int64_t expected, uint64_t *counts, int64_t *total);

/* The contents of a payload. */
typedef struct helio_hdr_digest {
    helio_hdr_layout layout;
    int64_t total;    /* values */
    int64_t min, max; /* of the first and last cell counted; 0 when there is none */
    double sum;       /* by the middle of each cell */
} helio_hdr_digest;

/* Bytes for helio_hdr_rewrite: what a payload of `size` bytes may unpack to. */
size_t helio_hdr_rewrite_room(size_t size);

/* Reads a payload, body or compressed, and writes its body as helio_hdr_body_encode would, without
 * an array of its cells: a few bytes may claim millions of them.  `out` has `room` bytes; a payload
 * that needs more is refused (PACKED).  *written becomes the bytes of the body. */
helio_hdr_refusal helio_hdr_rewrite(const uint8_t *bytes, size_t size, uint8_t *out, size_t room,
                                    size_t *written, helio_hdr_digest *digest);

/* For each quantile (0 to 1, ascending) the largest value of the cell that holds rank
 * ceil(quantile * total), at least 1.  All 0 when total is 0. */
void helio_hdr_quantiles(const helio_hdr_layout *layout, const uint64_t *counts, int64_t total,
                         const double *quantiles, size_t n, int64_t *out);

#endif
