#include "hdr_codec.h"

#include <string.h>
#include <zlib.h>

enum {
    BODY_COOKIE = 0x1c849313,
    COMPRESSED_COOKIE = 0x1c849314,
    CHUNK_BYTES = 8192,
};

const char *helio_hdr_refusal_text(helio_hdr_refusal refusal) {
    static const char *const texts[] = {
#define X(name, text) text,
        HELIO_HDR_REFUSALS(X)
#undef X
    };
    return (unsigned)refusal < HELIO_HDR_REFUSAL_COUNT ? texts[refusal] : "is refused";
}

/* -- layout ---------------------------------------------------------------------------------- */

helio_hdr_refusal helio_hdr_layout_init(int32_t digits, int64_t lowest, int64_t highest,
                                        helio_hdr_layout *out) {
    /* log2 of the sub-bucket count: the power of two that holds 2 * 10^digits units */
    static const uint32_t sub_bits_by_digits[] = {0, 5, 8, 11, 15, 18};
    if (digits < 1 || digits > 5 || lowest < 1 || highest / 2 < lowest) {
        return HELIO_HDR_LAYOUT;
    }
    const uint32_t sub_bits = sub_bits_by_digits[digits];
    const uint32_t unit_bits = 63u - (uint32_t)__builtin_clzll((uint64_t)lowest);
    if (unit_bits + sub_bits > 62) {
        return HELIO_HDR_LAYOUT;
    }
    uint32_t buckets = 1;
    for (uint64_t end = UINT64_C(1) << (sub_bits + unit_bits); end <= (uint64_t)highest;
         end <<= 1) {
        buckets++;
    }
    const uint64_t cells = (uint64_t)(buckets + 1) << (sub_bits - 1);
    if (cells > HELIO_HDR_MAX_CELLS) {
        return HELIO_HDR_TOO_LARGE;
    }
    *out = (helio_hdr_layout){
        .digits = digits,
        .lowest = lowest,
        .highest = highest,
        .unit_bits = unit_bits,
        .half_bits = sub_bits - 1,
        .cells = (uint32_t)cells,
    };
    return HELIO_HDR_OK;
}

/* Width of a cell as a power of two, and the first value it counts. */
static uint32_t cell_width_bits(const helio_hdr_layout *layout, uint32_t cell) {
    const uint32_t half = cell >> layout->half_bits;
    return layout->unit_bits + (half > 1 ? half - 1 : 0);
}

int64_t helio_hdr_cell_lowest(const helio_hdr_layout *layout, uint32_t cell) {
    const uint32_t half = cell >> layout->half_bits;
    const uint64_t sub = half > 1 ? cell - ((uint64_t)(half - 1) << layout->half_bits) : cell;
    return (int64_t)(sub << cell_width_bits(layout, cell));
}

int64_t helio_hdr_cell_highest(const helio_hdr_layout *layout, uint32_t cell) {
    const uint64_t width = UINT64_C(1) << cell_width_bits(layout, cell);
    return (int64_t)((uint64_t)helio_hdr_cell_lowest(layout, cell) + width - 1);
}

/* -- encoding -------------------------------------------------------------------------------- */

static void put_u32(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void put_u64(uint8_t *out, uint64_t value) {
    put_u32(out, (uint32_t)(value >> 32));
    put_u32(out + 4, (uint32_t)value);
}

static uint32_t get_u32(const uint8_t *in) {
    return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

static uint64_t get_u64(const uint8_t *in) {
    return (uint64_t)get_u32(in) << 32 | get_u32(in + 4);
}

/* 7 bits a byte, low bits first; the ninth byte carries the last 8. */
static uint8_t *put_word(uint8_t *out, int64_t value) {
    uint64_t word = ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
    for (int i = 0; i < HELIO_HDR_WORD_BYTES - 1; i++) {
        if (word < 0x80) {
            break;
        }
        *out++ = (uint8_t)(word | 0x80);
        word >>= 7;
    }
    *out++ = (uint8_t)word;
    return out;
}

size_t helio_hdr_body_bound(const helio_hdr_layout *layout) {
    return HELIO_HDR_HEADER_BYTES + (size_t)layout->cells * HELIO_HDR_WORD_BYTES;
}

/* Writes the header of a body of `bytes`, itself included. */
static void put_header(const helio_hdr_layout *layout, size_t bytes, uint8_t *out) {
    const double ratio = 1.0;
    uint64_t ratio_bits;
    memcpy(&ratio_bits, &ratio, sizeof ratio_bits);
    put_u32(out, BODY_COOKIE);
    put_u32(out + 4, (uint32_t)bytes - HELIO_HDR_HEADER_BYTES);
    put_u32(out + 8, 0); /* normalizing index offset */
    put_u32(out + 12, (uint32_t)layout->digits);
    put_u64(out + 16, (uint64_t)layout->lowest);
    put_u64(out + 24, (uint64_t)layout->highest);
    put_u64(out + 32, ratio_bits);
}

size_t helio_hdr_body_encode(const helio_hdr_layout *layout, const uint64_t *counts, uint8_t *out) {
    uint32_t end = layout->cells;
    while (end > 1 && counts[end - 1] == 0) {
        end--;
    }
    uint8_t *next = out + HELIO_HDR_HEADER_BYTES;
    for (uint32_t cell = 0; cell < end;) {
        if (counts[cell] > INT64_MAX) {
            return 0;
        }
        if (counts[cell] != 0) {
            next = put_word(next, (int64_t)counts[cell++]);
            continue;
        }
        const uint32_t first = cell;
        while (cell < end && counts[cell] == 0) {
            cell++;
        }
        next = put_word(next, -(int64_t)(cell - first));
    }
    put_header(layout, (size_t)(next - out), out);
    return (size_t)(next - out);
}

size_t helio_hdr_compressed_bound(size_t body_bytes) {
    return HELIO_HDR_OUTER_BYTES + compressBound((uLong)body_bytes);
}

size_t helio_hdr_compress(const uint8_t *body, size_t body_bytes, uint8_t *out) {
    uLongf bytes = compressBound((uLong)body_bytes);
    if (compress(out + HELIO_HDR_OUTER_BYTES, &bytes, body, (uLong)body_bytes) != Z_OK) {
        return 0;
    }
    put_u32(out, COMPRESSED_COOKIE);
    put_u32(out + 4, (uint32_t)bytes);
    return HELIO_HDR_OUTER_BYTES + bytes;
}

/* -- decoding -------------------------------------------------------------------------------- */

/* The body's bytes, as they become known: all at once when plain, chunk by chunk when inflated. */
typedef struct source {
    const uint8_t *next;
    const uint8_t *end;
    uint64_t to_come; /* payload bytes not yet inflated */
    z_stream z;
    uint8_t chunk[CHUNK_BYTES];
} source;

static helio_hdr_refusal inflate_into(source *src, uint8_t *out, size_t bytes) {
    src->z.next_out = out;
    src->z.avail_out = (uInt)bytes;
    while (src->z.avail_out > 0) {
        const int status = inflate(&src->z, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR) {
            return HELIO_HDR_NOMEM;
        }
        if (status == Z_STREAM_END && src->z.avail_out > 0) {
            return HELIO_HDR_TRUNCATED;
        }
        if (status == Z_BUF_ERROR) {
            return HELIO_HDR_TRUNCATED;
        }
        if (status != Z_OK && status != Z_STREAM_END) {
            return HELIO_HDR_ZLIB;
        }
    }
    return HELIO_HDR_OK;
}

/* Brings the next chunk, after the few bytes of a word that were left of the last one. */
static helio_hdr_refusal refill(source *src) {
    const size_t left = (size_t)(src->end - src->next);
    memmove(src->chunk, src->next, left);
    const size_t room = sizeof src->chunk - left;
    const size_t bytes = src->to_come < room ? (size_t)src->to_come : room;
    const helio_hdr_refusal refusal = inflate_into(src, src->chunk + left, bytes);
    src->next = src->chunk;
    src->end = src->chunk + left + bytes;
    src->to_come -= bytes;
    return refusal;
}

/* The payload is used up: zlib's checksum must hold, and nothing may follow. */
static helio_hdr_refusal finish(source *src) {
    uint8_t surplus;
    src->z.next_out = &surplus;
    src->z.avail_out = 1;
    const int status = inflate(&src->z, Z_FINISH);
    if (src->z.avail_out == 0) {
        return HELIO_HDR_TRAILING;
    }
    if (status != Z_STREAM_END) {
        return status == Z_BUF_ERROR ? HELIO_HDR_TRUNCATED : HELIO_HDR_ZLIB;
    }
    return src->z.avail_in == 0 ? HELIO_HDR_OK : HELIO_HDR_TRAILING;
}

static helio_hdr_refusal read_header(const uint8_t *header, uint32_t *payload_bytes,
                                     helio_hdr_layout *layout) {
    if (get_u32(header) != BODY_COOKIE) {
        return HELIO_HDR_COOKIE;
    }
    *payload_bytes = get_u32(header + 4);
    const uint64_t ratio_bits = get_u64(header + 32);
    double ratio;
    memcpy(&ratio, &ratio_bits, sizeof ratio);
    if (get_u32(header + 8) != 0 || ratio != 1.0) {
        return HELIO_HDR_SHIFTED;
    }
    return helio_hdr_layout_init((int32_t)get_u32(header + 12), (int64_t)get_u64(header + 16),
                                 (int64_t)get_u64(header + 24), layout);
}

/* Opens a payload of either form and reads its header.  When *compressed, inflateEnd is due,
 * whatever this returns. */
static helio_hdr_refusal source_open(source *src, const uint8_t *bytes, size_t size,
                                     helio_hdr_layout *layout, int *compressed) {
    uint32_t payload_bytes = 0;
    *compressed = 0;
    if (size < HELIO_HDR_OUTER_BYTES) {
        return HELIO_HDR_TRUNCATED;
    }
    if (get_u32(bytes) != COMPRESSED_COOKIE) {
        if (get_u32(bytes) != BODY_COOKIE) {
            return HELIO_HDR_COOKIE;
        }
        if (size < HELIO_HDR_HEADER_BYTES) {
            return HELIO_HDR_TRUNCATED;
        }
        const helio_hdr_refusal refusal = read_header(bytes, &payload_bytes, layout);
        if (refusal != HELIO_HDR_OK) {
            return refusal;
        }
        if (payload_bytes != size - HELIO_HDR_HEADER_BYTES) {
            return payload_bytes > size - HELIO_HDR_HEADER_BYTES ? HELIO_HDR_TRUNCATED
                                                                 : HELIO_HDR_TRAILING;
        }
        src->next = bytes + HELIO_HDR_HEADER_BYTES;
        src->end = bytes + size;
        src->to_come = 0;
        return HELIO_HDR_OK;
    }
    const uint32_t deflated = get_u32(bytes + 4);
    if (deflated != size - HELIO_HDR_OUTER_BYTES) {
        return deflated > size - HELIO_HDR_OUTER_BYTES ? HELIO_HDR_TRUNCATED : HELIO_HDR_TRAILING;
    }
    memset(&src->z, 0, sizeof src->z);
    src->z.next_in = (z_const Bytef *)(bytes + HELIO_HDR_OUTER_BYTES);
    src->z.avail_in = deflated;
    if (inflateInit(&src->z) != Z_OK) {
        return HELIO_HDR_NOMEM;
    }
    *compressed = 1;
    uint8_t header[HELIO_HDR_HEADER_BYTES];
    helio_hdr_refusal refusal = inflate_into(src, header, sizeof header);
    if (refusal == HELIO_HDR_OK) {
        refusal = read_header(header, &payload_bytes, layout);
    }
    src->next = src->end = src->chunk;
    src->to_come = payload_bytes;
    return refusal;
}

/* Reads one word from *next on, of which at least the first byte is there: `cells` cells, with
 * `count` in the first of them.  Counts and runs of empty cells alternate without a pattern, so a
 * branch on the kind of word would be mispredicted often: a run has count 0 instead. */
static inline int get_word(const uint8_t **next, const uint8_t *end, uint64_t *cells,
                           int64_t *count) {
    const uint8_t *at = *next;
    uint64_t word = *at++;
    if (word >= 0x80) {
        word &= 0x7f;
        for (int shift = 7;; shift += 7) {
            if (at == end) {
                return 0;
            }
            const uint64_t byte = *at++;
            if (shift == 56) {
                word |= byte << 56;
                break;
            }
            word |= (byte & 0x7f) << shift;
            if (byte < 0x80) {
                break;
            }
        }
    }
    *next = at;
    const uint64_t is_run = 0 - (word & 1); /* all bits, or none */
    *cells = 1 + (word >> 1 & is_run);
    *count = (int64_t)(word >> 1 & ~is_run);
    return 1;
}

/* What a walk over the words has done so far. */
typedef struct progress {
    uint64_t words;
    int64_t total;
} progress;

/* Words of one byte, which nearly all are: eight are taken together if nothing can go wrong with
 * any of them, because their cells, their counts and their bytes are all within bounds. */
enum {
    SHORT_WORDS = 8,
    SHORT_CELLS = SHORT_WORDS * 64, /* at most */
    SHORT_COUNT = SHORT_WORDS * 63, /* at most */
};

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define EACH_PAIR UINT64_C(0x0001000100010001) /* of bytes */

/* The words at `bytes`, the first in the lowest byte; 0 if one of them is longer than a byte. */
static inline int read_short(const uint8_t *bytes, uint64_t *words) {
    _Static_assert(sizeof *words == SHORT_WORDS, "one test for all");
    memcpy(words, bytes, sizeof *words);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    *words = __builtin_bswap64(*words);
#endif
    return (*words & 0x80 * EACH_BYTE) == 0;
}

/* Sums of the pairs of bytes so far: lane k of 16 bits has those of bytes 0 to 2k + 1. */
static inline uint64_t sums_of_pairs(uint64_t bytes) {
    return ((bytes & 0xff * EACH_PAIR) + (bytes >> 8 & 0xff * EACH_PAIR)) * EACH_PAIR;
}

/* Adds eight words of one byte to the cells from `counts` on; returns how many cells these are.
 *
 * All eight words are taken apart at once, in the bytes of a register.  So where a word's cell is
 * does not wait for the words before it. */
static inline uint32_t add_short(uint64_t words, uint64_t *counts, int64_t *total) {
    const uint64_t is_run = (words & EACH_BYTE) * 0xff; /* all bits of a byte, or none */
    const uint64_t half = words >> 1 & 0x3f * EACH_BYTE;
    const uint64_t steps = EACH_BYTE + (half & is_run);
    const uint64_t added = half & ~is_run;
    const uint64_t ends = sums_of_pairs(steps);
    const uint64_t begins = ends << 16;
    for (int pair = 0; pair < SHORT_WORDS / 2; pair++) {
        uint64_t *const at = counts + (begins >> 16 * pair & 0xffff);
        at[0] += added >> 16 * pair & 0xff;
        at[steps >> 16 * pair & 0xff] += added >> (16 * pair + 8) & 0xff;
    }
    *total += (int64_t)(sums_of_pairs(added) >> 48);
    return (uint32_t)(ends >> 48);
}

/* Adds (sign 0) or takes away (sign -1) the words of an open source, at most `limit` of them.
 *
 * Most of the time of a merge is spent here.  The state is in locals, which stores to the counts
 * cannot change. */
static helio_hdr_refusal walk(source *src, uint32_t cells, int64_t sign, uint64_t limit,
                              uint64_t *counts, progress *done) {
    helio_hdr_refusal refusal = HELIO_HDR_OK;
    const uint8_t *next = src->next, *end = src->end;
    /* Refill when fewer bytes than this are left. */
    int64_t more = src->to_come > 0 ? HELIO_HDR_WORD_BYTES : 0;
    uint64_t words = done->words;
    int64_t total = done->total;
    uint32_t cell = 0;
    while (words < limit) {
        uint64_t eight;
        if (sign == 0 && end - next >= SHORT_WORDS && limit - words >= SHORT_WORDS &&
            cells - cell >= SHORT_CELLS && total <= INT64_MAX - SHORT_COUNT &&
            read_short(next, &eight)) {
            cell += add_short(eight, counts + cell, &total);
            next += SHORT_WORDS;
            words += SHORT_WORDS;
            continue;
        }
        if (end - next < more) {
            src->next = next;
            refusal = refill(src);
            next = src->next;
            end = src->end;
            more = src->to_come > 0 ? HELIO_HDR_WORD_BYTES : 0;
            if (refusal != HELIO_HDR_OK) {
                break;
            }
        }
        if (next == end) {
            break;
        }
        uint64_t step;
        int64_t count;
        if (!get_word(&next, end, &step, &count)) {
            refusal = HELIO_HDR_WORD;
            break;
        }
        if (step > cells - cell) {
            refusal = HELIO_HDR_OVERRUN;
            break;
        }
        if (__builtin_add_overflow(total, count, &total)) {
            refusal = HELIO_HDR_COUNT;
            break;
        }
        counts[cell] += (uint64_t)((count ^ sign) - sign);
        cell += (uint32_t)step;
        words++;
    }
    *done = (progress){words, total};
    return refusal;
}

static helio_hdr_refusal take(const uint8_t *bytes, size_t size, const helio_hdr_layout *layout,
                              int64_t sign, uint64_t limit, uint64_t *counts, progress *done) {
    source src;
    helio_hdr_layout own;
    int compressed;
    helio_hdr_refusal refusal = source_open(&src, bytes, size, &own, &compressed);
    if (refusal == HELIO_HDR_OK && (own.digits != layout->digits || own.lowest != layout->lowest ||
                                    own.highest > layout->highest)) {
        refusal = HELIO_HDR_OTHER_LAYOUT;
    }
    if (refusal == HELIO_HDR_OK) {
        refusal = walk(&src, own.cells, sign, limit, counts, done);
    }
    if (refusal == HELIO_HDR_OK && compressed && limit == UINT64_MAX) {
        refusal = finish(&src);
    }
    if (compressed) {
        inflateEnd(&src.z);
    }
    return refusal;
}

helio_hdr_refusal helio_hdr_peek(const uint8_t *bytes, size_t size, helio_hdr_layout *out) {
    source src;
    int compressed;
    const helio_hdr_refusal refusal = source_open(&src, bytes, size, out, &compressed);
    if (compressed) {
        inflateEnd(&src.z);
    }
    return refusal;
}

helio_hdr_refusal helio_hdr_add(const helio_hdr_layout *layout, const uint8_t *bytes, size_t size,
                                int64_t expected, uint64_t *counts, int64_t *total) {
    progress done = {0, 0};
    int64_t sum = 0;
    helio_hdr_refusal refusal = take(bytes, size, layout, 0, UINT64_MAX, counts, &done);
    if (refusal == HELIO_HDR_OK && expected >= 0 && done.total != expected) {
        refusal = HELIO_HDR_TOTAL;
    }
    if (refusal == HELIO_HDR_OK && __builtin_add_overflow(*total, done.total, &sum)) {
        refusal = HELIO_HDR_COUNT;
    }
    if (refusal == HELIO_HDR_OK) {
        *total = sum;
    } else if (done.words > 0) {
        /* Rare, so it may cost: the same words again, taken away. */
        progress undone = {0, 0};
        take(bytes, size, layout, -1, done.words, counts, &undone);
    }
    return refusal;
}

/* -- rewriting ------------------------------------------------------------------------------- */

enum {
    REWRITE_LEAST_BYTES = 64 << 10,
    REWRITE_RATIO = 32, /* real logs reach 4 */
};

size_t helio_hdr_rewrite_room(size_t size) {
    const size_t most = HELIO_HDR_HEADER_BYTES + (size_t)HELIO_HDR_MAX_CELLS * HELIO_HDR_WORD_BYTES;
    const size_t room = size > most / REWRITE_RATIO ? most : size * REWRITE_RATIO;
    return room < REWRITE_LEAST_BYTES ? REWRITE_LEAST_BYTES : room;
}

/* Counts a filled cell and writes it, after the empty ones before it. */
static uint8_t *rewrite_cell(helio_hdr_digest *digest, uint32_t cell, int64_t count, uint32_t empty,
                             uint8_t *next) {
    const int64_t low = helio_hdr_cell_lowest(&digest->layout, cell);
    const int64_t high = helio_hdr_cell_highest(&digest->layout, cell);
    digest->min = digest->total == 0 ? low : digest->min;
    digest->max = high;
    digest->sum += (double)count * (double)(low + (high - low + 1) / 2);
    if (empty > 0) {
        next = put_word(next, -(int64_t)empty);
    }
    return put_word(next, count);
}

static helio_hdr_refusal rewrite_words(source *src, uint8_t *out, size_t room, size_t *written,
                                       helio_hdr_digest *digest) {
    const uint32_t cells = digest->layout.cells;
    uint8_t *next = out + HELIO_HDR_HEADER_BYTES;
    uint8_t *const last = out + room - 2 * HELIO_HDR_WORD_BYTES;
    uint32_t cell = 0, empty = 0;
    for (;;) {
        if (src->end - src->next < HELIO_HDR_WORD_BYTES && src->to_come > 0) {
            const helio_hdr_refusal refusal = refill(src);
            if (refusal != HELIO_HDR_OK) {
                return refusal;
            }
        }
        if (src->next == src->end) {
            break;
        }
        uint64_t step;
        int64_t count;
        if (!get_word(&src->next, src->end, &step, &count)) {
            return HELIO_HDR_WORD;
        }
        if (step > cells - cell) {
            return HELIO_HDR_OVERRUN;
        }
        if (count > 0) {
            int64_t total;
            if (__builtin_add_overflow(digest->total, count, &total)) {
                return HELIO_HDR_COUNT;
            }
            if (next > last) {
                return HELIO_HDR_PACKED;
            }
            next = rewrite_cell(digest, cell, count, empty, next);
            digest->total = total;
            empty = 0;
        } else {
            empty += (uint32_t)step;
        }
        cell += (uint32_t)step;
    }
    if (digest->total == 0) {
        next = put_word(next, -1); /* as the encoder has an empty histogram */
    }
    *written = (size_t)(next - out);
    put_header(&digest->layout, *written, out);
    return HELIO_HDR_OK;
}

helio_hdr_refusal helio_hdr_rewrite(const uint8_t *bytes, size_t size, uint8_t *out, size_t room,
                                    size_t *written, helio_hdr_digest *digest) {
    source src;
    int compressed;
    memset(digest, 0, sizeof *digest);
    if (room < HELIO_HDR_HEADER_BYTES + 2 * HELIO_HDR_WORD_BYTES) {
        return HELIO_HDR_PACKED;
    }
    helio_hdr_refusal refusal = source_open(&src, bytes, size, &digest->layout, &compressed);
    if (refusal == HELIO_HDR_OK) {
        /* A word is a byte at least, so one that unpacks to more would not fit either. */
        refusal = src.to_come > room ? HELIO_HDR_PACKED : HELIO_HDR_OK;
    }
    if (refusal == HELIO_HDR_OK) {
        refusal = rewrite_words(&src, out, room, written, digest);
    }
    if (refusal == HELIO_HDR_OK && compressed) {
        refusal = finish(&src);
    }
    if (compressed) {
        inflateEnd(&src.z);
    }
    return refusal;
}

/* -- reading --------------------------------------------------------------------------------- */

/* ceil(quantile * total), at least 1, at most total.  The quantile and its product with the total
 * are each off by up to half a unit of the last place, so a whole number may come out a little
 * above itself; the tolerance keeps it from being rounded up. */
static int64_t rank_of(double quantile, int64_t total) {
    const double exact = quantile * (double)total;
    const double wanted = exact - 1e-9 - exact * 2.3e-16;
    if (!(wanted > 1.0)) {
        return 1;
    }
    if (wanted >= (double)total) {
        return total;
    }
    const int64_t whole = (int64_t)wanted;
    return whole + ((double)whole < wanted);
}

void helio_hdr_quantiles(const helio_hdr_layout *layout, const uint64_t *counts, int64_t total,
                         const double *quantiles, size_t n, int64_t *out) {
    memset(out, 0, n * sizeof *out);
    if (total <= 0) {
        return;
    }
    uint64_t seen = 0;
    size_t i = 0;
    for (uint32_t cell = 0; cell < layout->cells && i < n; cell++) {
        if (counts[cell] == 0) {
            continue;
        }
        seen += counts[cell];
        while (i < n && (uint64_t)rank_of(quantiles[i], total) <= seen) {
            out[i++] = helio_hdr_cell_highest(layout, cell);
        }
    }
}
