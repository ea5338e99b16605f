/* The files of the message store, to bytes and back (docs/store.md).  No I/O.
 *
 * A segment is a header and batches.  A batch is a head and records, and defines the topics that it
 * uses, so a reader can begin at any batch.  Every decoder checks lengths before it reads. */
#ifndef HELIO_STORE_FORMAT_H
#define HELIO_STORE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/tsi.h"

enum {
    HELIO_STORE_VERSION = 1,
    HELIO_STORE_HEADER_MIN = 56,
    HELIO_STORE_SOURCE_MAX = 255,
    HELIO_STORE_HEADER_MAX = 312,
    HELIO_STORE_HEAD_BYTES = 80,
    HELIO_STORE_INDEX_HEAD_BYTES = 40,
    HELIO_STORE_RECORD_BYTES = 8,
    HELIO_STORE_MESSAGE_HEAD_BYTES = 40,
    HELIO_STORE_TOPIC_MAX = 255,
    HELIO_STORE_PAYLOAD_MAX = 1 << 26,
    HELIO_STORE_BODY_MAX = 1 << 28,
};

typedef enum helio_store_result {
    HELIO_STORE_OK,
    /* Fewer bytes than the structure needs. */
    HELIO_STORE_SHORT,
    HELIO_STORE_DAMAGED,
    HELIO_STORE_OTHER_VERSION,
} helio_store_result;

typedef struct helio_store_header {
    helio_tsi tsi;
    uint64_t number;
    /* Of the first message; the first message of a stream has 1. */
    uint64_t position;
    uint64_t created_ns;
    /* Decoded: within the bytes that were given. */
    const char *source;
    size_t source_bytes;
    /* Decoded: bytes of the header. */
    size_t bytes;
} helio_store_header;

/* Least and greatest value. */
typedef struct helio_store_span {
    uint64_t first, last;
} helio_store_span;

/* A batch: its head, and an entry of the index. */
typedef struct helio_store_batch {
    /* Of the head in the segment. */
    uint64_t offset;
    uint32_t body_bytes;
    uint32_t body_check;
    uint32_t messages;
    uint64_t position;
    helio_store_span sequences, numbers;
    /* Receive times, ns since 1970. */
    helio_store_span times;
} helio_store_batch;

typedef enum helio_store_kind { HELIO_STORE_TOPIC = 1, HELIO_STORE_MESSAGE = 2 } helio_store_kind;

typedef enum helio_store_flag { HELIO_STORE_RECOVERED = 1 } helio_store_flag;

typedef struct helio_store_record {
    helio_store_kind kind;
    uint8_t flags;
    /* Within the batch. */
    uint16_t topic;
    uint64_t sequence, number, submit_ns, receive_ns;
    /* The payload of a message or the name of a topic. */
    const uint8_t *data;
    size_t bytes;
} helio_store_record;

/* Writes a header to at most HELIO_STORE_HEADER_MAX bytes; returns its bytes. */
size_t helio_store_put_header(uint8_t *to, const helio_store_header *header);
helio_store_result helio_store_get_header(const uint8_t *from, size_t bytes,
                                          helio_store_header *out);

/* Writes the HELIO_STORE_HEAD_BYTES of a head. */
void helio_store_put_head(uint8_t *to, const helio_store_batch *batch);
/* Fills in body_bytes and body_check of a whole batch of `bytes`, and writes its head. */
void helio_store_seal(uint8_t *whole, size_t bytes, helio_store_batch *batch);
/* `offset` is left to the caller. */
helio_store_result helio_store_get_head(const uint8_t *from, size_t bytes, helio_store_batch *out);
/* Whether the body has the check of its head. */
helio_store_result helio_store_check_body(const helio_store_batch *batch, const uint8_t *body,
                                          size_t bytes);

/* Writes a record; `to` has room for HELIO_STORE_MESSAGE_HEAD_BYTES and its data. */
size_t helio_store_put_record(uint8_t *to, const helio_store_record *record);
/* Reads the record at *offset and moves *offset behind it. */
helio_store_result helio_store_get_record(const uint8_t *from, size_t bytes, size_t *offset,
                                          helio_store_record *out);
/* Reads a whole body against its head: its check, its records, and the spans of the head. */
helio_store_result helio_store_check_batch(const helio_store_batch *batch, const uint8_t *body,
                                           size_t bytes);
/* Counts a message in its batch. */
void helio_store_count(helio_store_batch *batch, const helio_store_record *record);

size_t helio_store_index_bytes(size_t entries);
/* Writes the index of a segment of `segment_bytes`. */
void helio_store_put_index(uint8_t *to, uint64_t number, uint64_t segment_bytes,
                           const helio_store_batch *entries, size_t count);
/* Checks an index; *count entries can then be read with helio_store_get_entry. */
helio_store_result helio_store_get_index(const uint8_t *from, size_t bytes, uint64_t number,
                                         uint64_t segment_bytes, size_t *count);
void helio_store_get_entry(const uint8_t *from, size_t entry, helio_store_batch *out);

#endif
