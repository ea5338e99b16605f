#include "store/format.h"

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/endian.h"
#include "store/crc32c.h"

static const char segment_magic[] = "HELIOSTO", index_magic[] = "HELIOIDX", batch_magic[] = "HBAT";

/* ---- header ---- */

size_t helio_store_put_header(uint8_t *to, const helio_store_header *header) {
    const size_t bytes = helio_round_up(HELIO_STORE_HEADER_MIN - 2 + header->source_bytes, 8);
    memset(to, 0, bytes);
    memcpy(to, segment_magic, 8);
    helio_put32(to + 8, HELIO_STORE_VERSION);
    helio_put32(to + 12, (uint32_t)bytes);
    memcpy(to + 16, header->tsi.gsi, HELIO_GSI_BYTES);
    helio_put16(to + 22, header->tsi.port);
    helio_put64(to + 24, header->number);
    helio_put64(to + 32, header->position);
    helio_put64(to + 40, header->created_ns);
    helio_put16(to + 48, (uint16_t)header->source_bytes);
    memcpy(to + 50, header->source, header->source_bytes);
    helio_put32(to + bytes - 4, helio_crc32c(to, bytes - 4));
    return bytes;
}

helio_store_result helio_store_get_header(const uint8_t *from, size_t bytes,
                                          helio_store_header *out) {
    if (bytes < 16) {
        return HELIO_STORE_SHORT;
    }
    if (memcmp(from, segment_magic, 8) != 0) {
        return HELIO_STORE_DAMAGED;
    }
    if (helio_get32(from + 8) != HELIO_STORE_VERSION) {
        return HELIO_STORE_OTHER_VERSION;
    }
    const size_t whole = helio_get32(from + 12);
    if (whole < HELIO_STORE_HEADER_MIN || whole > HELIO_STORE_HEADER_MAX || whole % 8 != 0) {
        return HELIO_STORE_DAMAGED;
    }
    if (bytes < whole) {
        return HELIO_STORE_SHORT;
    }
    const size_t source_bytes = helio_get16(from + 48);
    if (source_bytes > whole - (HELIO_STORE_HEADER_MIN - 2) ||
        helio_get32(from + whole - 4) != helio_crc32c(from, whole - 4)) {
        return HELIO_STORE_DAMAGED;
    }
    *out = (helio_store_header){.tsi.port = helio_get16(from + 22),
                                .number = helio_get64(from + 24),
                                .position = helio_get64(from + 32),
                                .created_ns = helio_get64(from + 40),
                                .source = (const char *)from + 50,
                                .source_bytes = source_bytes,
                                .bytes = whole};
    memcpy(out->tsi.gsi, from + 16, HELIO_GSI_BYTES);
    return HELIO_STORE_OK;
}

/* ---- heads and entries ---- */

static void put_span(uint8_t *to, helio_store_span span) {
    helio_put64(to, span.first);
    helio_put64(to + 8, span.last);
}

static helio_store_span get_span(const uint8_t *from) {
    return (helio_store_span){helio_get64(from), helio_get64(from + 8)};
}

/* The 72 bytes that a head and an entry share. */
static void put_facts(uint8_t *to, const helio_store_batch *batch) {
    helio_put32(to, batch->body_bytes);
    helio_put32(to + 4, batch->body_check);
    helio_put32(to + 8, batch->messages);
    helio_put32(to + 12, 0);
    helio_put64(to + 16, batch->position);
    put_span(to + 24, batch->sequences);
    put_span(to + 40, batch->numbers);
    put_span(to + 56, batch->times);
}

static void get_facts(const uint8_t *from, helio_store_batch *out) {
    out->body_bytes = helio_get32(from);
    out->body_check = helio_get32(from + 4);
    out->messages = helio_get32(from + 8);
    out->position = helio_get64(from + 16);
    out->sequences = get_span(from + 24);
    out->numbers = get_span(from + 40);
    out->times = get_span(from + 56);
}

void helio_store_put_head(uint8_t *to, const helio_store_batch *batch) {
    memcpy(to, batch_magic, 4);
    put_facts(to + 8, batch);
    helio_put32(to + 4, helio_crc32c(to + 8, HELIO_STORE_HEAD_BYTES - 8));
}

void helio_store_seal(uint8_t *whole, size_t bytes, helio_store_batch *batch) {
    batch->body_bytes = (uint32_t)(bytes - HELIO_STORE_HEAD_BYTES);
    batch->body_check = helio_crc32c(whole + HELIO_STORE_HEAD_BYTES, batch->body_bytes);
    helio_store_put_head(whole, batch);
}

helio_store_result helio_store_get_head(const uint8_t *from, size_t bytes, helio_store_batch *out) {
    if (bytes < HELIO_STORE_HEAD_BYTES) {
        return HELIO_STORE_SHORT;
    }
    if (memcmp(from, batch_magic, 4) != 0 ||
        helio_get32(from + 4) != helio_crc32c(from + 8, HELIO_STORE_HEAD_BYTES - 8)) {
        return HELIO_STORE_DAMAGED;
    }
    get_facts(from + 8, out);
    return out->messages > 0 && out->body_bytes <= HELIO_STORE_BODY_MAX ? HELIO_STORE_OK
                                                                        : HELIO_STORE_DAMAGED;
}

helio_store_result helio_store_check_body(const helio_store_batch *batch, const uint8_t *body,
                                          size_t bytes) {
    if (bytes < batch->body_bytes) {
        return HELIO_STORE_SHORT;
    }
    return helio_crc32c(body, batch->body_bytes) == batch->body_check ? HELIO_STORE_OK
                                                                      : HELIO_STORE_DAMAGED;
}

/* ---- records ---- */

size_t helio_store_put_record(uint8_t *to, const helio_store_record *record) {
    const bool is_message = record->kind == HELIO_STORE_MESSAGE;
    const size_t head = is_message ? HELIO_STORE_MESSAGE_HEAD_BYTES : HELIO_STORE_RECORD_BYTES;
    to[0] = (uint8_t)record->kind;
    to[1] = record->flags;
    helio_put16(to + 2, record->topic);
    helio_put32(to + 4, (uint32_t)record->bytes);
    if (is_message) {
        helio_put64(to + 8, record->sequence);
        helio_put64(to + 16, record->number);
        helio_put64(to + 24, record->submit_ns);
        helio_put64(to + 32, record->receive_ns);
    }
    if (record->bytes > 0) {
        memcpy(to + head, record->data, record->bytes);
    }
    return head + record->bytes;
}

helio_store_result helio_store_get_record(const uint8_t *from, size_t bytes, size_t *offset,
                                          helio_store_record *out) {
    if (*offset > bytes || bytes - *offset < HELIO_STORE_RECORD_BYTES) {
        return HELIO_STORE_SHORT;
    }
    const uint8_t *at = from + *offset;
    const size_t room = bytes - *offset;
    if (at[0] != HELIO_STORE_TOPIC && at[0] != HELIO_STORE_MESSAGE) {
        return HELIO_STORE_DAMAGED;
    }
    const bool is_message = at[0] == HELIO_STORE_MESSAGE;
    const size_t head = is_message ? HELIO_STORE_MESSAGE_HEAD_BYTES : HELIO_STORE_RECORD_BYTES;
    const size_t length = helio_get32(at + 4);
    if (room < head || room - head < length) {
        return HELIO_STORE_SHORT;
    }
    *out = (helio_store_record){.kind = (helio_store_kind)at[0],
                                .flags = at[1],
                                .topic = helio_get16(at + 2),
                                .data = at + head,
                                .bytes = length};
    if (is_message) {
        out->sequence = helio_get64(at + 8);
        out->number = helio_get64(at + 16);
        out->submit_ns = helio_get64(at + 24);
        out->receive_ns = helio_get64(at + 32);
    }
    *offset += head + length;
    return HELIO_STORE_OK;
}

static void widen(helio_store_span *span, uint64_t value, bool is_first) {
    span->first = is_first || value < span->first ? value : span->first;
    span->last = is_first || value > span->last ? value : span->last;
}

void helio_store_count(helio_store_batch *batch, const helio_store_record *record) {
    const bool is_first = batch->messages++ == 0;
    widen(&batch->sequences, record->sequence, is_first);
    widen(&batch->numbers, record->number, is_first);
    widen(&batch->times, record->receive_ns, is_first);
}

static bool is_same_span(helio_store_span a, helio_store_span b) {
    return a.first == b.first && a.last == b.last;
}

helio_store_result helio_store_check_batch(const helio_store_batch *batch, const uint8_t *body,
                                           size_t bytes) {
    const helio_store_result checked = helio_store_check_body(batch, body, bytes);
    if (checked != HELIO_STORE_OK) {
        return checked;
    }
    helio_store_batch seen = {0};
    helio_store_record record;
    uint32_t topics = 0;
    for (size_t offset = 0; offset < batch->body_bytes;) {
        if (helio_store_get_record(body, batch->body_bytes, &offset, &record) != HELIO_STORE_OK) {
            return HELIO_STORE_DAMAGED;
        }
        const bool is_topic = record.kind == HELIO_STORE_TOPIC;
        if (is_topic ? record.topic != topics || record.bytes > HELIO_STORE_TOPIC_MAX
                     : record.topic >= topics) {
            return HELIO_STORE_DAMAGED;
        }
        topics += is_topic;
        if (!is_topic) {
            helio_store_count(&seen, &record);
        }
    }
    return seen.messages == batch->messages && is_same_span(seen.sequences, batch->sequences) &&
                   is_same_span(seen.numbers, batch->numbers) &&
                   is_same_span(seen.times, batch->times)
               ? HELIO_STORE_OK
               : HELIO_STORE_DAMAGED;
}

/* ---- index ---- */

size_t helio_store_index_bytes(size_t entries) {
    return HELIO_STORE_INDEX_HEAD_BYTES + entries * HELIO_STORE_HEAD_BYTES;
}

void helio_store_put_index(uint8_t *to, uint64_t number, uint64_t segment_bytes,
                           const helio_store_batch *entries, size_t count) {
    uint8_t *at = to + HELIO_STORE_INDEX_HEAD_BYTES;
    for (size_t i = 0; i < count; i++, at += HELIO_STORE_HEAD_BYTES) {
        helio_put64(at, entries[i].offset);
        put_facts(at + 8, &entries[i]);
    }
    memcpy(to, index_magic, 8);
    helio_put32(to + 8, HELIO_STORE_VERSION);
    helio_put32(to + 12, (uint32_t)count);
    helio_put64(to + 16, number);
    helio_put64(to + 24, segment_bytes);
    helio_put32(to + 32,
                helio_crc32c(to + HELIO_STORE_INDEX_HEAD_BYTES, count * HELIO_STORE_HEAD_BYTES));
    helio_put32(to + 36, helio_crc32c(to, 36));
}

helio_store_result helio_store_get_index(const uint8_t *from, size_t bytes, uint64_t number,
                                         uint64_t segment_bytes, size_t *count) {
    if (bytes < HELIO_STORE_INDEX_HEAD_BYTES) {
        return HELIO_STORE_SHORT;
    }
    if (memcmp(from, index_magic, 8) != 0 || helio_get32(from + 36) != helio_crc32c(from, 36)) {
        return HELIO_STORE_DAMAGED;
    }
    if (helio_get32(from + 8) != HELIO_STORE_VERSION) {
        return HELIO_STORE_OTHER_VERSION;
    }
    *count = helio_get32(from + 12);
    const size_t rest = bytes - HELIO_STORE_INDEX_HEAD_BYTES;
    const bool is_whole =
        rest % HELIO_STORE_HEAD_BYTES == 0 && rest / HELIO_STORE_HEAD_BYTES == *count;
    return is_whole && helio_get64(from + 16) == number &&
                   helio_get64(from + 24) == segment_bytes &&
                   helio_get32(from + 32) == helio_crc32c(from + HELIO_STORE_INDEX_HEAD_BYTES, rest)
               ? HELIO_STORE_OK
               : HELIO_STORE_DAMAGED;
}

void helio_store_get_entry(const uint8_t *from, size_t entry, helio_store_batch *out) {
    const uint8_t *at = from + HELIO_STORE_INDEX_HEAD_BYTES + entry * HELIO_STORE_HEAD_BYTES;
    out->offset = helio_get64(at);
    get_facts(at + 8, out);
}
