#include "store/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

const char *helio_store_name(char name[HELIO_STORE_NAME_BYTES], const helio_store_id *id,
                             const char *suffix) {
    const uint8_t *gsi = id->tsi.gsi;
    snprintf(name, HELIO_STORE_NAME_BYTES, "%02x%02x%02x%02x%02x%02x-%u-%016" PRIx64 ".%s", gsi[0],
             gsi[1], gsi[2], gsi[3], gsi[4], gsi[5], (unsigned)id->tsi.port, id->number, suffix);
    return name;
}

/* Whether it is exactly the name of a segment. */
static bool parse_name(const char *name, helio_store_id *out) {
    unsigned gsi[HELIO_GSI_BYTES], port;
    if (sscanf(name, "%2x%2x%2x%2x%2x%2x-%5u-%16" SCNx64, &gsi[0], &gsi[1], &gsi[2], &gsi[3],
               &gsi[4], &gsi[5], &port, &out->number) != 8 ||
        port > UINT16_MAX) {
        return false;
    }
    for (int i = 0; i < HELIO_GSI_BYTES; i++) {
        out->tsi.gsi[i] = (uint8_t)gsi[i];
    }
    out->tsi.port = (uint16_t)port;
    char again[HELIO_STORE_NAME_BYTES];
    return strcmp(helio_store_name(again, out, "seg"), name) == 0;
}

int helio_store_folder_open(const char *path) {
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot open the store %s: %s", path, strerror(errno));
    }
    char text[sizeof HELIO_STORE_LOCK_TEXT] = "";
    const int lock = openat(folder, HELIO_STORE_LOCK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t bytes = lock < 0 ? -1 : pread(lock, text, sizeof text, 0);
    const int error = errno;
    if (lock >= 0) {
        close(lock);
    }
    if (bytes == (ssize_t)strlen(HELIO_STORE_LOCK_TEXT) &&
        memcmp(text, HELIO_STORE_LOCK_TEXT, (size_t)bytes) == 0) {
        return folder;
    }
    close(folder);
    if (bytes < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "%s is not a store: cannot read its %s: %s", path,
                          HELIO_STORE_LOCK, strerror(error));
    }
    return helio_fail(HELIO_ERR_STATE, "%s is not a store of version %d", path,
                      HELIO_STORE_VERSION);
}

static int compare_ids(const void *a, const void *b) {
    const helio_store_id *one = a, *other = b;
    const int gsi = memcmp(one->tsi.gsi, other->tsi.gsi, HELIO_GSI_BYTES);
    if (gsi != 0) {
        return gsi;
    }
    if (one->tsi.port != other->tsi.port) {
        return one->tsi.port < other->tsi.port ? -1 : 1;
    }
    return one->number < other->number ? -1 : one->number > other->number;
}

int helio_store_list(int folder, const helio_tsi *tsi, helio_store_id **out, size_t *count) {
    *out = NULL;
    *count = 0;
    const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = again < 0 ? NULL : fdopendir(again);
    if (!listing) {
        const int error = errno;
        if (again >= 0) {
            close(again);
        }
        return helio_fail(HELIO_ERR_SYSTEM, "cannot list the store: %s", strerror(error));
    }
    int error = 0;
    for (const struct dirent *entry; !error && (entry = readdir(listing));) {
        helio_store_id id;
        if (!parse_name(entry->d_name, &id) || (tsi && !helio_tsi_equal(tsi, &id.tsi))) {
            continue;
        }
        if ((*count & (*count - 1)) == 0) { /* at a power of two the array is full */
            const size_t size = *count ? *count * 2 : 1;
            helio_store_id *larger = realloc(*out, size * sizeof **out);
            if (!larger) {
                error = helio_fail_plain(HELIO_ERR_NOMEM, "no memory to list the store");
                continue;
            }
            *out = larger;
        }
        (*out)[(*count)++] = id;
    }
    closedir(listing);
    if (error) {
        free(*out);
        *out = NULL;
        *count = 0;
    } else if (*count > 0) {
        qsort(*out, *count, sizeof **out, compare_ids);
    }
    return error;
}

bool helio_store_read_at(int file, void *to, size_t bytes, uint64_t offset) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(file, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

bool helio_store_segment_add(helio_store_segment *segment, const helio_store_batch *batch) {
    if (segment->count == segment->size) {
        const size_t size = segment->size ? segment->size * 2 : 64;
        helio_store_batch *larger = realloc(segment->batches, size * sizeof *larger);
        if (!larger) {
            return false;
        }
        segment->batches = larger;
        segment->size = size;
    }
    segment->batches[segment->count++] = *batch;
    segment->end = batch->offset + HELIO_STORE_HEAD_BYTES + batch->body_bytes;
    return true;
}

void helio_store_segment_release(helio_store_segment *segment) {
    free(segment->batches);
    segment->batches = NULL;
    segment->count = segment->size = 0;
}

uint64_t helio_store_segment_next(const helio_store_segment *segment) {
    if (segment->count == 0) {
        return segment->header.position;
    }
    const helio_store_batch *last = &segment->batches[segment->count - 1];
    return last->position + last->messages;
}

/* ---- index ---- */

/* The bytes of the index, from malloc; NULL: none that is right. */
static uint8_t *index_bytes(int folder, const helio_store_segment *segment, size_t *count,
                            helio_store_result *result) {
    char name[HELIO_STORE_NAME_BYTES];
    const int file = openat(folder, helio_store_name(name, &segment->id, "idx"),
                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat about;
    uint8_t *bytes = NULL;
    *result = HELIO_STORE_SHORT;
    if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        const size_t length = (size_t)about.st_size;
        bytes = malloc(length);
        if (bytes && helio_store_read_at(file, bytes, length, 0)) {
            *result =
                helio_store_get_index(bytes, length, segment->id.number, segment->bytes, count);
        }
    }
    if (file >= 0) {
        close(file);
    }
    if (*result != HELIO_STORE_OK) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

helio_store_result helio_store_index_check(int folder, const helio_store_segment *segment) {
    size_t count = 0;
    helio_store_result result;
    uint8_t *bytes = index_bytes(folder, segment, &count, &result);
    if (bytes) {
        bool is_same = count == segment->count;
        for (size_t i = 0; is_same && i < count; i++) {
            helio_store_batch entry = {0};
            uint8_t a[HELIO_STORE_HEAD_BYTES], b[HELIO_STORE_HEAD_BYTES];
            helio_store_get_entry(bytes, i, &entry);
            helio_store_put_head(a, &entry);
            helio_store_put_head(b, &segment->batches[i]);
            is_same = entry.offset == segment->batches[i].offset && memcmp(a, b, sizeof a) == 0;
        }
        result = is_same ? HELIO_STORE_OK : HELIO_STORE_DAMAGED;
    }
    free(bytes);
    return result;
}

static bool read_index(int folder, helio_store_segment *segment) {
    size_t count = 0;
    helio_store_result result;
    uint8_t *bytes = index_bytes(folder, segment, &count, &result);
    bool is_right = bytes != NULL;
    segment->end = segment->header.bytes;
    for (size_t i = 0; is_right && i < count; i++) {
        helio_store_batch entry;
        helio_store_get_entry(bytes, i, &entry);
        is_right = entry.offset == segment->end && helio_store_segment_add(segment, &entry) &&
                   segment->end <= segment->bytes;
    }
    free(bytes);
    is_right = is_right && segment->end == segment->bytes;
    if (!is_right) {
        segment->count = 0;
    }
    return is_right;
}

/* ---- segments ---- */

static bool is_zero(int file, uint64_t from, uint64_t to) {
    uint8_t piece[4096];
    while (from < to) {
        const size_t bytes = to - from < sizeof piece ? (size_t)(to - from) : sizeof piece;
        if (!helio_store_read_at(file, piece, bytes, from)) {
            return false;
        }
        for (size_t i = 0; i < bytes; i++) {
            if (piece[i]) {
                return false;
            }
        }
        from += bytes;
    }
    return true;
}

/* Reads the batches one after the other until one is not whole. */
static int scan(int file, helio_store_depth depth, helio_store_segment *out) {
    uint8_t *body = NULL;
    size_t room = 0;
    int error = 0;
    out->end = out->header.bytes;
    out->tail = HELIO_STORE_OK;
    while (out->end < out->bytes && !error) {
        uint8_t head[HELIO_STORE_HEAD_BYTES];
        helio_store_batch batch = {.offset = out->end};
        const uint64_t rest = out->bytes - out->end;
        if (rest < sizeof head) {
            out->tail = HELIO_STORE_SHORT;
            break;
        }
        if (!helio_store_read_at(file, head, sizeof head, out->end) ||
            helio_store_get_head(head, sizeof head, &batch) != HELIO_STORE_OK ||
            batch.position != helio_store_segment_next(out)) {
            out->tail =
                is_zero(file, out->end, out->bytes) ? HELIO_STORE_SHORT : HELIO_STORE_DAMAGED;
            break;
        }
        if (rest - sizeof head < batch.body_bytes) {
            out->tail = HELIO_STORE_SHORT;
            break;
        }
        if (depth != HELIO_STORE_BY_INDEX) {
            if (batch.body_bytes > room) {
                free(body);
                body = malloc(batch.body_bytes);
                room = body ? batch.body_bytes : 0;
                if (!body) {
                    error = helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a segment");
                    break;
                }
            }
            const uint64_t from = out->end + sizeof head;
            helio_store_result result = HELIO_STORE_DAMAGED;
            if (helio_store_read_at(file, body, batch.body_bytes, from)) {
                result = depth == HELIO_STORE_BY_CHECK
                             ? helio_store_check_body(&batch, body, batch.body_bytes)
                             : helio_store_check_batch(&batch, body, batch.body_bytes);
            }
            if (result != HELIO_STORE_OK) {
                /* A crash can leave the last body incomplete at its full length. */
                const bool is_last = from + batch.body_bytes == out->bytes;
                out->tail = is_last ? HELIO_STORE_SHORT : HELIO_STORE_DAMAGED;
                break;
            }
        }
        if (!helio_store_segment_add(out, &batch)) {
            error = helio_fail_plain(HELIO_ERR_NOMEM, "no memory to read a segment");
        }
    }
    free(body);
    return error;
}

int helio_store_segment_read(int folder, const helio_store_id *id, helio_store_depth depth,
                             helio_store_segment *out) {
    *out = (helio_store_segment){.id = *id, .header_result = HELIO_STORE_DAMAGED};
    char name[HELIO_STORE_NAME_BYTES];
    const int file =
        openat(folder, helio_store_name(name, id, "seg"), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0) {
        const int error =
            helio_fail(HELIO_ERR_SYSTEM, "cannot read the segment %s: %s", name, strerror(errno));
        if (file >= 0) {
            close(file);
        }
        return error;
    }
    out->bytes = (uint64_t)about.st_size;
    const size_t bytes =
        out->bytes < sizeof out->header_memory ? (size_t)out->bytes : sizeof out->header_memory;
    int error = 0;
    if (helio_store_read_at(file, out->header_memory, bytes, 0)) {
        out->header_result = helio_store_get_header(out->header_memory, bytes, &out->header);
    }
    if (out->header_result == HELIO_STORE_OK &&
        (out->header.number != id->number || !helio_tsi_equal(&out->header.tsi, &id->tsi))) {
        out->header_result = HELIO_STORE_DAMAGED;
    }
    if (out->header_result == HELIO_STORE_DAMAGED && is_zero(file, 0, out->bytes)) {
        out->header_result = HELIO_STORE_SHORT;
    }
    if (out->header_result == HELIO_STORE_OK) {
        out->is_indexed = depth == HELIO_STORE_BY_INDEX && read_index(folder, out);
        error = out->is_indexed ? 0 : scan(file, depth, out);
    }
    close(file);
    return error;
}
