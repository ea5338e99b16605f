#include "flight/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_file.h"

#define SUFFIX ".flight"

enum { NUMBERS_TRIED = 1000, ROOM_LEFT = 2 /* times what is written must be free */ };

void helio_flight_keeper_init(helio_flight_keeper *keeper, uint32_t keep) {
    *keeper = (helio_flight_keeper){.keep = keep, .file = -1};
}

void helio_flight_keeper_drop(helio_flight_keeper *keeper) {
    if (keeper->file >= 0) {
        close(keeper->file);
        unlink(keeper->path);
        keeper->file = -1;
    }
}

void helio_flight_keeper_fini(helio_flight_keeper *keeper) {
    helio_flight_keeper_drop(keeper);
    free(keeper->path);
    keeper->path = NULL;
}

static int fail(helio_flight_keeper *keeper, const char *what) {
    const int code = errno;
    helio_flight_keeper_drop(keeper);
    return helio_fail(HELIO_ERR_SYSTEM, "the flight recording %s was not kept: cannot %s: %s",
                      keeper->path ? keeper->path : "", what, strerror(code));
}

/* ---- names: STEM.PID.N.flight ---- */

/* Length of digits at the start of the text. */
static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

/* Where ".PID.flight" begins in the path of a ring. */
static const char *end_of_name(const char *ring) {
    const char *dot = ring + strlen(ring) - strlen(SUFFIX);
    while (dot > ring && dot[-1] != '.') {
        dot--;
    }
    return dot - 1;
}

/* Length of the name that recordings are counted by; a name by default ends with the process's
 * number, and a second one's with "-2" behind that. */
static size_t stem_of(const char *name, size_t length, bool *is_default) {
    char own[32];
    const size_t own_length = (size_t)snprintf(own, sizeof own, "-%ld", (long)getpid());
    for (size_t at = 1; at + own_length <= length; at++) {
        if (memcmp(name + at, own, own_length) != 0) {
            continue;
        }
        const size_t end = at + own_length;
        const bool is_second = end < length && name[end] == '-' &&
                               end + 1 + digits(name + end + 1) == length && end + 1 < length;
        if (end == length || is_second) {
            *is_default = true;
            return at;
        }
    }
    *is_default = false;
    return length;
}

/* Whether a file's name is that of a recording kept under the stem. */
static bool is_of(const char *file, const char *stem, size_t length, bool is_default) {
    if (strncmp(file, stem, length) != 0) {
        return false;
    }
    const char *at = file + length;
    for (int part = 0; is_default && *at == '-' && part < 2; part++) {
        at += 1 + digits(at + 1);
    }
    for (int part = 0; part < 2; part++) { /* process, number */
        const size_t count = *at == '.' ? digits(at + 1) : 0;
        if (count == 0) {
            return false;
        }
        at += 1 + count;
    }
    return strcmp(at, SUFFIX) == 0;
}

/* ---- how many ---- */

typedef struct kept {
    char name[256];
    struct timespec time;
} kept;

static bool is_older(const kept *a, const kept *b) {
    return a->time.tv_sec != b->time.tv_sec ? a->time.tv_sec < b->time.tv_sec
                                            : a->time.tv_nsec < b->time.tv_nsec;
}

/* The oldest recording of the stem, and how many there are. */
static uint32_t count_kept(DIR *folder, const char *stem, size_t length, bool is_default,
                           kept *oldest) {
    uint32_t count = 0;
    rewinddir(folder);
    for (const struct dirent *entry; (entry = readdir(folder));) {
        kept one;
        struct stat status;
        if (!is_of(entry->d_name, stem, length, is_default) ||
            fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
            continue;
        }
        snprintf(one.name, sizeof one.name, "%s", entry->d_name);
        one.time = status.st_mtim;
        if (count++ == 0 || is_older(&one, oldest)) {
            *oldest = one;
        }
    }
    return count;
}

/* Removes the oldest until there is a place for one more. */
static void make_place(const helio_flight_keeper *keeper, const char *ring) {
    const char *slash = strrchr(ring, '/');
    const char *name = slash ? slash + 1 : ring;
    char *folder_path = slash ? strndup(ring, (size_t)(slash - ring) + 1) : strdup(".");
    DIR *folder = folder_path ? opendir(folder_path) : NULL;
    free(folder_path);
    if (!folder) {
        return; /* then nothing can be created either, which is reported */
    }
    bool is_default;
    const size_t length = stem_of(name, (size_t)(end_of_name(name) - name), &is_default);
    kept oldest;
    while (count_kept(folder, name, length, is_default, &oldest) >= keeper->keep) {
        if (unlinkat(dirfd(folder), oldest.name, 0) < 0) {
            break;
        }
    }
    closedir(folder);
}

/* ---- copying ---- */

static const helio_flight_chunk *chunk_at(const helio_flight_file *ring, uint32_t chunk) {
    return (const helio_flight_chunk *)(ring->memory + ring->chunks_offset +
                                        (size_t)chunk * ring->chunk_bytes);
}

/* The chunks there are, oldest first: those behind the one being written, then it. */
static void make_plan(helio_flight_keeper *keeper, const helio_flight_file *ring) {
    keeper->count = keeper->done = 0;
    keeper->bytes = ring->chunks_offset;
    for (uint32_t i = 1; i <= HELIO_FLIGHT_CHUNKS; i++) {
        const uint32_t chunk = (ring->chunk + i) % HELIO_FLIGHT_CHUNKS;
        if (chunk >= ring->reserved) {
            continue;
        }
        const uint64_t sequence = helio_cell(&chunk_at(ring, chunk)->sequence);
        const uint64_t used = helio_cell(&chunk_at(ring, chunk)->used);
        if (sequence != 0) {
            keeper->plan[keeper->count].chunk = chunk;
            keeper->plan[keeper->count++].sequence = sequence;
            keeper->bytes += sizeof(helio_flight_chunk) + used;
        }
    }
}

static bool has_room(const helio_flight_file *ring, uint64_t bytes) {
    struct statvfs status;
    return fstatvfs(ring->file, &status) < 0 ||
           (uint64_t)status.f_bavail * status.f_frsize >= ROOM_LEFT * bytes;
}

static bool write_at(int file, const void *from, size_t bytes, size_t offset) {
    for (const uint8_t *at = from; bytes > 0;) {
        const ssize_t written = pwrite(file, at, bytes, (off_t)offset);
        if (written <= 0) {
            return false;
        }
        at += written;
        offset += (size_t)written;
        bytes -= (size_t)written;
    }
    return true;
}

static bool write_header(const helio_flight_keeper *keeper, const helio_flight_file *ring,
                         helio_flight_state state) {
    helio_flight_header header;
    memcpy(&header, ring->header, sizeof header);
    atomic_store_explicit(&header.state, (uint64_t)state, memory_order_relaxed);
    header.number = keeper->number;
    header.trigger_ns = (uint64_t)keeper->cause.wall_ns;
    header.trigger_event = keeper->cause.event;
    memcpy(header.why, keeper->cause.why, sizeof header.why);
    return write_at(keeper->file, &header, sizeof header, 0);
}

/* Creates the next file that is not there; -1: it cannot. */
static int create(helio_flight_keeper *keeper, const char *ring) {
    const int stem = (int)(strlen(ring) - strlen(SUFFIX));
    for (int i = 0; i < NUMBERS_TRIED; i++) {
        free(keeper->path);
        keeper->path = NULL;
        if (asprintf(&keeper->path, "%.*s.%u" SUFFIX, stem, ring, ++keeper->number) < 0) {
            keeper->path = NULL;
            errno = ENOMEM;
            return -1;
        }
        const int file = open(keeper->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                              HELIO_FILE_MODE);
        if (file >= 0 || errno != EEXIST) {
            return file;
        }
    }
    return -1;
}

int helio_flight_keeper_begin(helio_flight_keeper *keeper, const helio_flight_file *ring,
                              const helio_flight_cause *cause) {
    keeper->cause = *cause;
    make_plan(keeper, ring);
    make_place(keeper, ring->path);
    if (!has_room(ring, keeper->bytes)) {
        errno = ENOSPC;
        return fail(keeper, "leave enough room free");
    }
    keeper->file = create(keeper, ring->path);
    if (keeper->file < 0) {
        return fail(keeper, "create it");
    }
    fchmod(keeper->file, HELIO_FILE_MODE);
    const size_t directory_offset = sizeof(helio_flight_header);
    if (!write_header(keeper, ring, HELIO_FLIGHT_WRITING) ||
        !write_at(keeper->file, ring->memory + directory_offset, ring->directory_bytes,
                  directory_offset) ||
        ftruncate(keeper->file, (off_t)ring->size) < 0) {
        return fail(keeper, "write it");
    }
    return 0;
}

int helio_flight_keeper_step(helio_flight_keeper *keeper, const helio_flight_file *ring) {
    if (keeper->done < keeper->count) {
        const uint32_t place = keeper->done++;
        const helio_flight_chunk *chunk = chunk_at(ring, keeper->plan[place].chunk);
        uint64_t used = helio_cell(&chunk->used);
        if (used > ring->chunk_bytes - sizeof *chunk) { /* no recorder wrote that */
            used = 0;
        }
        const size_t offset = ring->chunks_offset + place * ring->chunk_bytes;
        /* One that was overwritten since is newer than all others: it would not be in order. */
        if (helio_cell(&chunk->sequence) == keeper->plan[place].sequence &&
            !write_at(keeper->file, chunk, sizeof *chunk + used, offset)) {
            return fail(keeper, "write it");
        }
    }
    if (keeper->done < keeper->count) {
        return 0;
    }
    if (!write_header(keeper, ring, HELIO_FLIGHT_FROZEN)) {
        return fail(keeper, "write it");
    }
    close(keeper->file);
    keeper->file = -1;
    return 1;
}
