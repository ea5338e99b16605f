#include "flight/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/own_file.h"

enum { PAGE = 4096, BYTE_ORDER_MARK = 0x01020304 };

static int fail_at(helio_flight_file *file, const char *what) {
    const int error = helio_fail(HELIO_ERR_SYSTEM, "cannot %s the flight recording %s: %s", what,
                                 file->path, strerror(errno));
    helio_flight_file_close(file);
    return error;
}

/* ---- the check: CRC-32 as in zlib ---- */

static void make_table(uint32_t table[256]) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = value & 1 ? value >> 1 ^ UINT32_C(0xEDB88320) : value >> 1;
        }
        table[i] = value;
    }
}

static uint32_t check_of(const uint32_t table[256], const uint8_t *bytes, size_t length) {
    uint32_t value = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        value = table[(value ^ bytes[i]) & 0xFF] ^ value >> 8;
    }
    return ~value;
}

/* ---- chunks ---- */

static helio_flight_chunk *chunk_at(const helio_flight_file *file, uint32_t chunk) {
    return (helio_flight_chunk *)(file->memory + file->chunks_offset +
                                  (size_t)chunk * file->chunk_bytes);
}

static bool reserve(const helio_flight_file *file, size_t offset, size_t bytes) {
    if (fallocate(file->file, 0, (off_t)offset, (off_t)bytes) == 0) {
        return true;
    }
    return errno == EOPNOTSUPP && posix_fallocate(file->file, (off_t)offset, (off_t)bytes) == 0;
}

/* Whether the chunk has its bytes; those before it have. */
static bool has_room(helio_flight_file *file, uint32_t chunk) {
    if (chunk < file->reserved) {
        return true;
    }
    const size_t bytes = file->chunk_bytes;
    if (!reserve(file, file->chunks_offset + chunk * bytes, bytes)) {
        file->refused++;
        return false;
    }
    file->reserved++;
    return true;
}

static void begin(helio_flight_file *file, uint32_t chunk) {
    helio_flight_chunk *head = chunk_at(file, chunk);
    atomic_store_explicit(&head->sequence, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* a reader of what was here sees that it is over */
    atomic_store_explicit(&head->used, 0, memory_order_relaxed);
    file->chunk = chunk;
    file->used = 0;
    atomic_store_explicit(&head->sequence, ++file->sequence, memory_order_release);
}

void helio_flight_file_next(helio_flight_file *file) {
    const uint32_t next = (file->chunk + 1) % HELIO_FLIGHT_CHUNKS;
    begin(file, has_room(file, next) ? next : 0);
}

size_t helio_flight_file_frame_max(const helio_flight_file *file) {
    return file->chunk_bytes - sizeof(helio_flight_chunk) - HELIO_FLIGHT_FRAME_HEAD;
}

bool helio_flight_file_append(helio_flight_file *file, const uint8_t *payload, size_t bytes) {
    const size_t room = file->chunk_bytes - sizeof(helio_flight_chunk) - file->used;
    const size_t whole = helio_round_up(HELIO_FLIGHT_FRAME_HEAD + bytes, 8);
    if (whole > room) {
        return false;
    }
    helio_flight_chunk *head = chunk_at(file, file->chunk);
    uint8_t *at = (uint8_t *)(head + 1) + file->used;
    const uint32_t words[2] = {(uint32_t)bytes, check_of(file->table, payload, bytes)};
    memcpy(at, words, sizeof words);
    memcpy(at + HELIO_FLIGHT_FRAME_HEAD, payload, bytes);
    memset(at + HELIO_FLIGHT_FRAME_HEAD + bytes, 0, whole - HELIO_FLIGHT_FRAME_HEAD - bytes);
    file->used += whole;
    atomic_store_explicit(&head->used, file->used, memory_order_release);
    atomic_store_explicit(&file->header->ticks,
                          atomic_load_explicit(&file->header->ticks, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return true;
}

uint64_t helio_flight_file_bytes(const helio_flight_file *file) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < file->reserved; i++) {
        bytes += atomic_load_explicit(&chunk_at(file, i)->used, memory_order_relaxed);
    }
    return bytes;
}

bool helio_flight_file_is_cut(const helio_flight_file *file) {
    return helio_mapped_is_cut(file->guard);
}

/* ---- life ---- */

static void fill_header(helio_flight_file *file, size_t chunk_bytes, size_t chunks_offset,
                        const helio_flight_identity *identity) {
    helio_flight_header *header = file->header;
    memcpy(header->magic, "HELIOFLT", sizeof header->magic);
    header->byte_order = BYTE_ORDER_MARK;
    header->version = HELIO_FLIGHT_VERSION;
    header->size = file->size;
    header->pid = identity->pid;
    header->incarnation = identity->incarnation;
    header->started_ns = identity->started_ns;
    header->interval_ns = identity->interval_ns;
    header->directory_offset = sizeof *header;
    header->directory_bytes = identity->directory_bytes;
    header->chunks_offset = chunks_offset;
    header->chunk_bytes = chunk_bytes;
    header->chunks = HELIO_FLIGHT_CHUNKS;
    strncpy(header->name, identity->name, sizeof header->name - 1);
    strncpy(header->product, identity->product, sizeof header->product - 1);
    memcpy(file->memory + sizeof *header, identity->directory, identity->directory_bytes);
}

int helio_flight_file_open(helio_flight_file *file, const char *path, size_t bytes,
                           const helio_flight_identity *identity) {
    const size_t chunk_bytes = bytes / HELIO_FLIGHT_CHUNKS / PAGE * PAGE;
    const size_t chunks_offset =
        helio_round_up(sizeof(helio_flight_header) + identity->directory_bytes, PAGE);
    *file = (helio_flight_file){.file = -1, .path = strdup(path)};
    if (!file->path) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the path of the flight recording");
    }
    make_table(file->table);
    file->size = chunks_offset + HELIO_FLIGHT_CHUNKS * chunk_bytes;
    file->chunks_offset = chunks_offset;
    file->chunk_bytes = chunk_bytes;
    file->directory_bytes = identity->directory_bytes;
    unlink(
        path); /* of a process that had this number before: this instance owns the segment beside it */
    file->file = helio_locked_file_create(path);
    if (file->file < 0) {
        return fail_at(file, "create");
    }
    if (ftruncate(file->file, (off_t)file->size) < 0 ||
        !reserve(file, 0, chunks_offset + chunk_bytes)) {
        return fail_at(file, "make room in");
    }
    void *memory = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_SHARED, file->file, 0);
    if (memory == MAP_FAILED) {
        return fail_at(file, "map");
    }
    file->memory = memory;
    file->guard = helio_mapped_guard(memory, file->size);
    file->header = memory;
    fill_header(file, chunk_bytes, chunks_offset, identity);
    file->reserved = 1;
    begin(file, 0);
    atomic_store_explicit(&file->header->state, HELIO_FLIGHT_RECORDING, memory_order_release);
    return 0;
}

void helio_flight_file_close(helio_flight_file *file) {
    if (!file->path) {
        return;
    }
    if (file->memory) {
        atomic_store_explicit(&file->header->state, HELIO_FLIGHT_CLOSED, memory_order_release);
        helio_mapped_release(file->guard);
        munmap(file->memory, file->size);
    }
    if (file->file >= 0) {
        unlink(file->path);
        close(file->file);
    }
    free(file->path);
    *file = (helio_flight_file){.file = -1};
}
