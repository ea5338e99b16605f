/* Rings as files, for processes of one user on one machine.
 *
 * The folder is $HELIOGRAPH_RING_DIR, else /dev/shm/heliograph-rings-UID, mode 0700; a folder of
 * somebody else is refused, so nobody else's files are ever opened.  In it:
 *
 *     generation                         one word that counts rings coming and going
 *     NAME.ID.PID.START.ring             a ring (shm_ring.h)
 *     NAME.ID.PID.START.bell             a FIFO; a write to it wakes its owner
 *     NAME.ID.PID.START.make             a ring not yet whole
 *
 * The names tell whose they are, so what dead processes left is recognized without being opened;
 * everyone who opens a place takes it away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/own_file.h"
#include "io/driver.h"
#include "io/shm_place.h"
#include "io/shm_ring.h"

#define SHMEM_ENABLED "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

enum {
    SUFFIX = 1 + 16 + 1 + 8 + 1 + 16 + 5, /* .ID.PID.START.kind */
    FILE_NAME = HELIO_CHANNEL_NAME_MAX + SUFFIX + 1,
};

typedef struct files_place {
    helio_shm_place base;
    char name[HELIO_CHANNEL_NAME_MAX + 1];
    int folder;
    _Atomic uint64_t *generation;
    bool has_ring; /* published */
    bool has_bell;
} files_place;

static files_place *files_of(helio_shm_place *place) {
    return (files_place *)place;
}

/* ---- names ---- */

static const char *file_name(const char *name, const helio_shm_key *key, const char *kind,
                             char out[FILE_NAME]) {
    snprintf(out, FILE_NAME, "%s.%016" PRIx64 ".%08" PRIx32 ".%016" PRIx64 ".%s", name, key->id,
             key->process.pid, key->process.start, kind);
    return out;
}

/* Reads a file's name; false: it is none of ours.  `kind` has 4 letters. */
static bool read_name(const char *file, char name[HELIO_CHANNEL_NAME_MAX + 1], helio_shm_key *key,
                      char kind[5]) {
    const size_t length = strlen(file);
    if (length <= SUFFIX || length - SUFFIX > HELIO_CHANNEL_NAME_MAX) {
        return false;
    }
    int end = 0;
    if (sscanf(file + length - SUFFIX, ".%16" SCNx64 ".%8" SCNx32 ".%16" SCNx64 ".%4[a-z]%n",
               &key->id, &key->process.pid, &key->process.start, kind, &end) != 4 ||
        end != SUFFIX) {
        return false;
    }
    memcpy(name, file, length - SUFFIX);
    name[length - SUFFIX] = 0;
    return true;
}

typedef void each_file(void *context, const char *file, const char *name, const helio_shm_key *key,
                       const char *kind);

static void walk(const files_place *place, each_file *each, void *context) {
    const int fd = openat(place->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    for (const struct dirent *entry; (entry = readdir(directory));) {
        char name[HELIO_CHANNEL_NAME_MAX + 1];
        char kind[5];
        helio_shm_key key;
        if (read_name(entry->d_name, name, &key, kind)) {
            each(context, entry->d_name, name, &key, kind);
        }
    }
    closedir(directory);
}

/* ---- the folder ---- */

static int fail_folder(const char *path, const char *what) {
    return helio_fail(errno == EACCES || errno == EPERM ? HELIO_ERR_PERMISSION : HELIO_ERR_SYSTEM,
                      "cannot %s the folder of rings %s: %s", what, path, strerror(errno));
}

static int open_folder(files_place *place) {
    char own[64];
    const char *path = getenv("HELIOGRAPH_RING_DIR");
    if (!path || !path[0]) {
        snprintf(own, sizeof own, "/dev/shm/heliograph-rings-%u", (unsigned)geteuid());
        path = own;
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        return fail_folder(path, "make");
    }
    place->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;
    if (place->folder < 0 || fstat(place->folder, &about) < 0) {
        return fail_folder(path, "open");
    }
    if (about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH))) {
        return helio_fail(
            HELIO_ERR_PERMISSION,
            "the folder of rings %s must belong to this user and be writable by no other user",
            path);
    }
    return 0;
}

/* Nobody else can put one here, but this user may have copied one from elsewhere. */
static bool is_own_file(int fd, struct stat *about) {
    return helio_file_is_own(fd) && fstat(fd, about) == 0;
}

static int open_generation(files_place *place) {
    const int fd = openat(place->folder, "generation",
                          O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat about;
    void *memory = MAP_FAILED;
    if (fd >= 0 && is_own_file(fd, &about) &&
        (about.st_size >= HELIO_SHM_PAGE || ftruncate(fd, HELIO_SHM_PAGE) == 0)) {
        memory = mmap(NULL, HELIO_SHM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    const int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (memory == MAP_FAILED) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot map the file generation of the rings: %s",
                          strerror(error));
    }
    place->generation = memory;
    place->base.generation = memory;
    place->base.generation_guard = helio_mapped_guard(memory, HELIO_SHM_PAGE);
    return 0;
}

static void tell_change(files_place *place) {
    atomic_fetch_add_explicit(place->generation, 1, memory_order_release);
}

/* ---- bells ---- */

static int open_bell(files_place *place) {
    char file[FILE_NAME];
    file_name(place->name, &place->base.key, "bell", file);
    if (mkfifoat(place->folder, file, 0600) < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot make the FIFO %s: %s", file, strerror(errno));
    }
    place->has_bell = true;
    /* For writing as well: it never reads an end of file, and nobody who writes is killed. */
    place->base.bell = openat(place->folder, file, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    return place->base.bell < 0
               ? helio_fail(HELIO_ERR_SYSTEM, "cannot open the FIFO %s: %s", file, strerror(errno))
               : 0;
}

static int find_bell(helio_shm_place *place, const helio_shm_key *key) {
    char file[FILE_NAME];
    file_name(files_of(place)->name, key, "bell", file);
    const int fd =
        openat(files_of(place)->folder, file, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct stat about;
    if (fd >= 0 &&
        (fstat(fd, &about) < 0 || !S_ISFIFO(about.st_mode) || about.st_uid != geteuid())) {
        close(fd);
        return -1;
    }
    return fd;
}

static void ring_one(void *context, const char *file, const char *name, const helio_shm_key *key,
                     const char *kind) {
    (void)file;
    files_place *place = context;
    if (strcmp(kind, "bell") == 0 && strcmp(name, place->name) == 0 &&
        key->id != place->base.key.id) {
        const int bell = find_bell(&place->base, key);
        if (bell >= 0) {
            helio_shm_bell_ring(bell);
            close(bell);
        }
    }
}

/* ---- life ---- */

static void clear_stale(void *context, const char *file, const char *name, const helio_shm_key *key,
                        const char *kind) {
    (void)name, (void)kind;
    const files_place *place = context;
    if (!helio_process_is_alive(&key->process)) {
        unlinkat(place->folder, file, 0);
    }
}

static void remove_own(files_place *place, const char *kind) {
    char file[FILE_NAME];
    unlinkat(place->folder, file_name(place->name, &place->base.key, kind, file), 0);
}

static void withdraw(helio_shm_place *base) {
    files_place *place = files_of(base);
    if (place->has_ring) {
        place->has_ring = false;
        remove_own(place, "ring");
        tell_change(place);
    }
}

static void close_place(helio_shm_place *base) {
    if (!base) {
        return;
    }
    files_place *place = files_of(base);
    withdraw(base);
    if (base->bell >= 0) {
        close(base->bell);
    }
    if (place->has_bell) {
        remove_own(place, "bell");
    }
    helio_mapped_release(base->generation_guard);
    if (place->generation) {
        munmap(place->generation, HELIO_SHM_PAGE);
    }
    if (place->folder >= 0) {
        close(place->folder);
    }
    free(place);
}

static int open_place(const char *name, uint64_t id, helio_shm_place **out) {
    files_place *place = calloc(1, sizeof *place);
    if (!place) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a ring");
    }
    place->base.kind = &helio_shm_files;
    place->base.key = (helio_shm_key){id, helio_process_self()};
    place->base.bell = place->folder = -1;
    snprintf(place->name, sizeof place->name, "%s", name);
    int error = open_folder(place);
    if (!error) {
        error = open_generation(place);
    }
    if (!error) {
        walk(place, clear_stale, place);
        error = open_bell(place);
    }
    if (error) {
        close_place(&place->base);
        return error;
    }
    *out = &place->base;
    return 0;
}

/* ---- rings ---- */

/* Whether the kernel gives huge pages to shared memory that asks for them. */
static const char *why_no_huge_pages(void) {
    char text[128] = "";
    FILE *file = fopen(SHMEM_ENABLED, "re");
    if (file) {
        (void)!fgets(text, sizeof text, file);
        fclose(file);
    }
    const bool gives = strstr(text, "[always]") || strstr(text, "[advise]") ||
                       strstr(text, "[within_size]") || strstr(text, "[force]");
    return gives ? NULL : "the ring lies in ordinary pages, not in huge ones: see " SHMEM_ENABLED;
}

/* Maps the new file, in huge pages if asked for, and has all its memory given now: later there
 * would be a signal where there was no room. */
static int fill(int fd, size_t bytes, bool huge, helio_shm_mapping *out, const char **why) {
    if (ftruncate(fd, (off_t)bytes) < 0) {
        return errno;
    }
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return errno;
    }
    if (huge) {
        *why = madvise(memory, bytes, MADV_HUGEPAGE) < 0
                   ? "the ring lies in ordinary pages: this kernel has no huge ones for it"
                   : why_no_huge_pages();
        madvise(memory, bytes, MADV_POPULATE_WRITE); /* before fallocate, which takes small ones */
    }
    const int error = posix_fallocate(fd, 0, (off_t)bytes);
    if (error) {
        munmap(memory, bytes);
        return error;
    }
    madvise(memory, bytes, MADV_POPULATE_WRITE);
    *out = (helio_shm_mapping){memory, bytes, NULL, helio_mapped_guard(memory, bytes)};
    return 0;
}

static int make(helio_shm_place *base, size_t bytes, bool huge, helio_shm_mapping *out,
                const char **why) {
    files_place *place = files_of(base);
    char file[FILE_NAME];
    *why = NULL;
    file_name(place->name, &base->key, "make", file);
    const int fd =
        openat(place->folder, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return helio_fail(HELIO_ERR_SYSTEM, "cannot make the ring %s: %s", file, strerror(errno));
    }
    const int error = fill(fd, bytes, huge, out, why);
    close(fd);
    if (error) {
        remove_own(place, "make");
        return helio_fail(
            error == ENOSPC || error == ENOMEM ? HELIO_ERR_NOMEM : HELIO_ERR_SYSTEM,
            "no room for a ring of %zu bytes in the folder of rings: %s; lower ring_packets or mtu",
            bytes, strerror(error));
    }
    return 0;
}

static int publish(helio_shm_place *base) {
    files_place *place = files_of(base);
    char from[FILE_NAME];
    char to[FILE_NAME];
    file_name(place->name, &base->key, "make", from);
    file_name(place->name, &base->key, "ring", to);
    if (renameat(place->folder, from, place->folder, to) < 0) {
        const int error = errno;
        remove_own(place, "make");
        return helio_fail(HELIO_ERR_SYSTEM, "cannot name the ring %s: %s", to, strerror(error));
    }
    place->has_ring = true;
    tell_change(place);
    walk(place, ring_one, place);
    return 0;
}

typedef struct listing {
    const files_place *place;
    void (*each)(void *context, const helio_shm_key *key);
    void *context;
} listing;

static void list_one(void *context, const char *file, const char *name, const helio_shm_key *key,
                     const char *kind) {
    (void)file;
    const listing *all = context;
    if (strcmp(kind, "ring") == 0 && strcmp(name, all->place->name) == 0) {
        all->each(all->context, key);
    }
}

static void list(helio_shm_place *place, void (*each)(void *context, const helio_shm_key *key),
                 void *context) {
    walk(files_of(place), list_one, &(listing){files_of(place), each, context});
}

static bool map(helio_shm_place *place, const helio_shm_key *key, helio_shm_mapping *out) {
    char file[FILE_NAME];
    file_name(files_of(place)->name, key, "ring", file);
    const int fd =
        openat(files_of(place)->folder, file, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    struct stat about;
    const bool is_fit = is_own_file(fd, &about) && about.st_size >= (off_t)sizeof(helio_shm_ring);
    void *memory = is_fit ? mmap(NULL, (size_t)about.st_size, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_POPULATE, fd, 0)
                          : MAP_FAILED;
    close(fd);
    if (memory == MAP_FAILED) {
        return false;
    }
    const size_t bytes = (size_t)about.st_size;
    *out = (helio_shm_mapping){memory, bytes, NULL, helio_mapped_guard(memory, bytes)};
    return true;
}

static void unmap(helio_shm_mapping *mapping) {
    if (mapping->memory) {
        helio_mapped_release(mapping->guard);
        munmap(mapping->memory, mapping->bytes);
        mapping->memory = NULL;
    }
}

static void clear(helio_shm_place *place, const helio_shm_key *key) {
    char file[FILE_NAME];
    file_name(files_of(place)->name, key, "ring", file);
    if (unlinkat(files_of(place)->folder, file, 0) == 0) {
        tell_change(files_of(place));
    }
    unlinkat(files_of(place)->folder, file_name(files_of(place)->name, key, "bell", file), 0);
}

const helio_shm_place_kind helio_shm_files = {
    .open = open_place,
    .close = close_place,
    .make = make,
    .publish = publish,
    .withdraw = withdraw,
    .list = list,
    .map = map,
    .unmap = unmap,
    .clear = clear,
    .find_bell = find_bell,
    .is_alive = helio_process_is_alive,
};
