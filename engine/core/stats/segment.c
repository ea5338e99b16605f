/* The file behind the statistics: created, mapped, kept alive, closed (docs/segment.md 1 and 6).
 *
 * The engine holds a lock (flock) on its segment as long as it runs, and from before it can be
 * found (base/own_file.h), so a file of the same name that can be locked is what a crash left
 * behind and is removed; one that cannot belongs to a running engine and is never touched.  Locks,
 * unlike process numbers, mean the same in every PID namespace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/math.h"
#include "base/own_file.h"
#include "stats/losses.h"
#include "stats/segment.h"

#include <heliograph/heliograph.h>

enum {
    MEMORY_PER_OBJECT =
        65536, /* of the segment; a receiver with its histograms takes ten of these */
    OBJECTS_MIN = 32,
    OBJECTS_MAX = 16384,
    EVENTS_MIN = 64,
    EVENTS_MAX = 4096,
};

/* Largest power of two not above the value. */
static size_t power_of_two_below(size_t value) {
    size_t power = 1;
    while (power <= value / 2) {
        power *= 2;
    }
    return power;
}

/* ---- the file ---- */

static int fail_at(const char *path, const char *what) {
    return helio_fail(
        HELIO_ERR_SEGMENT,
        "cannot %s the stats segment %s: %s; name a folder you may write to with segment_dir= or "
        "HELIOGRAPH_SEGMENT_DIR, or count privately with stats=memory",
        what, path, strerror(errno));
}

/* Makes the folder and the ones above it.  The folder is for engines of every user, like /tmp. */
static int make_folder(const char *folder) {
    struct stat status;
    if (stat(folder, &status) == 0) {
        if (S_ISDIR(status.st_mode)) {
            return 0;
        }
        errno = ENOTDIR;
        return fail_at(folder, "create the folder of");
    }
    char *path = strdup(folder);
    if (!path) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the path of the stats segment");
    }
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0755); /* whatever goes wrong shows at the last one */
        *slash = '/';
    }
    free(path);
    if (mkdir(folder, 01777) == 0) {
        chmod(folder, 01777); /* the umask took some of it away */
    } else if (errno != EEXIST) {
        return fail_at(folder, "create the folder of");
    }
    return 0;
}

/* Folder, name made fit for a file, pid.  From malloc. */
static char *segment_path(const char *folder, const char *name) {
    char *path = NULL;
    if (asprintf(&path, "%s/%s.%ld.helio", folder, name, (long)getpid()) < 0) {
        return NULL;
    }
    for (char *c = path + strlen(folder) + 1; *c; c++) {
        const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                           (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' || *c == '.';
        if (!plain || (*c == '.' && c == path + strlen(folder) + 1)) {
            *c = '_';
        }
    }
    return path;
}

static int open_file(const char *path) {
    helio_remains_remove(path);
    const int file = helio_locked_file_create(path);
    if (file >= 0 || errno != EEXIST) {
        return file < 0 ? fail_at(path, "create") : file;
    }
    struct stat status;
    if (lstat(path, &status) == 0 && status.st_uid != geteuid()) {
        return helio_fail(HELIO_ERR_SEGMENT,
                          "the stats segment %s is a file of another user (uid %u); name a folder "
                          "of your own with segment_dir= or HELIOGRAPH_SEGMENT_DIR",
                          path, (unsigned)status.st_uid);
    }
    return helio_fail(HELIO_ERR_SEGMENT,
                      "the stats segment %s belongs to a running engine; give this one another "
                      "name with name=",
                      path);
}

/* The owner of the folder can exchange its files. */
static int check_folder(const char *folder) {
    const char *why = helio_folder_check(folder);
    return why ? helio_fail(HELIO_ERR_SEGMENT,
                            "the folder of the stats segment %s is not safe to use: %s; name a "
                            "folder of your own with segment_dir= or HELIOGRAPH_SEGMENT_DIR, or "
                            "count privately with stats=memory",
                            folder, why)
               : 0;
}

static int open_segment(helio_stats *stats, const helio_stats_config *config) {
    int error = make_folder(config->folder);
    if (!error) {
        error = check_folder(config->folder);
    }
    if (error) {
        return error;
    }
    stats->path = segment_path(config->folder, config->name);
    if (!stats->path) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the path of the stats segment");
    }
    const int file = open_file(stats->path);
    if (file < 0) {
        free(stats->path);
        stats->path = NULL;
        return file;
    }
    stats->file = file;
    if (ftruncate(file, (off_t)stats->size) < 0) {
        return fail_at(stats->path, "size");
    }
    return 0;
}

bool helio_segment_reserve(helio_stats *stats, size_t offset, size_t length) {
    if (stats->file < 0) {
        return true; /* memory of the process, no file behind it */
    }
    if (helio_mapped_is_cut(stats->guard)) {
        return false; /* what comes later is counted in private memory; the file is nobody's any more */
    }
    if (fallocate(stats->file, 0, (off_t)offset, (off_t)length) == 0) {
        return true;
    }
    return errno == EOPNOTSUPP && posix_fallocate(stats->file, (off_t)offset, (off_t)length) == 0;
}

size_t helio_segment_take(helio_stats *stats, size_t bytes) {
    const size_t offset = helio_round_up(stats->arena_used, 64);
    if (offset > stats->size || bytes > stats->size - offset ||
        !helio_segment_reserve(stats, offset, bytes)) {
        return 0;
    }
    stats->arena_used = offset + bytes;
    return offset;
}

/* ---- the memory ---- */

static int map_memory(helio_stats *stats) {
    const int flags = stats->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *memory = mmap(NULL, stats->size, PROT_READ | PROT_WRITE, flags, stats->file, 0);
    if (memory == MAP_FAILED) {
        return stats->file < 0 ? helio_fail(HELIO_ERR_NOMEM,
                                            "no memory for %zu bytes of statistics", stats->size)
                               : fail_at(stats->path, "map");
    }
    stats->memory = memory;
    if (stats->file >= 0) {
        stats->guard = helio_mapped_guard(memory, stats->size);
    }
    return 0;
}

/* Copies as much of the text as fits with its NUL, ending between two characters. */
static void copy_text(char *to, size_t size, const char *from) {
    size_t length = strnlen(from, size);
    if (length == size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)from[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(to, from, length);
    to[length] = 0;
}

static int lay_out(helio_stats *stats, const helio_stats_config *config) {
    size_t directory_bytes = 0;
    char *directory = helio_directory_text(&directory_bytes);
    if (!directory) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the directory of the statistics");
    }
    const int64_t share = (int64_t)(stats->size / MEMORY_PER_OBJECT);
    const size_t objects = (size_t)helio_clamp(share, OBJECTS_MIN, OBJECTS_MAX);
    const size_t events = power_of_two_below((size_t)helio_clamp(share, EVENTS_MIN, EVENTS_MAX));
    const size_t directory_offset = sizeof(helio_segment_header);
    const size_t objects_offset = helio_round_up(directory_offset + directory_bytes, 64);
    const size_t events_offset = objects_offset + objects * sizeof(helio_segment_object);
    const size_t commands_offset = events_offset + events * sizeof(helio_segment_event);
    stats->arena_used = commands_offset + sizeof(helio_control_ring);
    if (stats->arena_used > stats->size) {
        free(directory);
        return helio_fail(HELIO_ERR_SEGMENT,
                          "a stats segment of %zu bytes is too small: its tables take %zu",
                          stats->size, (size_t)stats->arena_used);
    }

    stats->next_gone = calloc(objects, sizeof *stats->next_gone);
    stats->histograms = calloc(objects, sizeof *stats->histograms);
    stats->records = calloc(objects, sizeof *stats->records);
    if (!stats->next_gone || !stats->histograms || !stats->records) {
        free(directory);
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the table of statistics");
    }
    if (!helio_segment_reserve(stats, 0, stats->arena_used)) {
        free(directory);
        return fail_at(stats->path, "find room for");
    }
    memcpy(stats->memory + directory_offset, directory, directory_bytes);
    free(directory);

    stats->object_capacity = (uint32_t)objects;
    stats->event_capacity = (uint32_t)events;
    stats->directory_offset = directory_offset;
    stats->directory_bytes = directory_bytes;
    stats->header = (helio_segment_header *)stats->memory;
    stats->objects = (helio_segment_object *)(stats->memory + objects_offset);
    stats->events = (helio_segment_event *)(stats->memory + events_offset);
    helio_segment_header *header = stats->header;
    memcpy(header->magic, "HELIOSEG", sizeof header->magic);
    header->byte_order = HELIO_SEGMENT_BYTE_ORDER;
    header->layout_version = HELIO_SEGMENT_VERSION;
    header->size = stats->size;
    header->pid = (uint64_t)getpid();
    header->incarnation = config->incarnation;
    header->started_ns = (uint64_t)config->wall_ns;
    header->mode = (uint64_t)config->mode;
    header->directory_offset = directory_offset;
    header->directory_bytes = directory_bytes;
    header->objects_offset = objects_offset;
    header->object_capacity = (uint32_t)objects;
    header->object_entry_bytes = sizeof(helio_segment_object);
    header->events_offset = events_offset;
    header->event_capacity = (uint32_t)events;
    header->event_entry_bytes = sizeof(helio_segment_event);
    header->directory_version = 1;
    if (stats->file >= 0) { /* who has no file cannot be given commands */
        stats->control = (helio_control_ring *)(stats->memory + commands_offset);
        header->commands_offset = commands_offset;
        header->command_capacity = HELIO_CONTROL_SLOTS;
        header->command_entry_bytes = sizeof(helio_control_slot);
    }
    copy_text(header->name, sizeof header->name, config->name);
    copy_text(header->product_version, sizeof header->product_version, HELIO_VERSION);
    return 0;
}

/* ---- life ---- */

int helio_stats_create(const helio_stats_config *config, helio_stats **out) {
    helio_stats *stats = calloc(1, sizeof *stats);
    if (!stats) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for the statistics");
    }
    stats->file = -1;
    stats->size = helio_round_up(config->bytes, 4096);
    helio_levels_init(stats, HELIO_STATS_COUNTING ? config->level : 0, config->name);
    helio_event_limit_init(&stats->limit, config->event_rate,
                           config->event_burst > 0 ? config->event_burst : 1, config->wall_ns);
    helio_sampler_init(&stats->sampler, config->sample, config->incarnation);
    for (int scope = 0; scope < HELIO_SCOPES_END; scope++) {
        stats->gone[scope].first = stats->gone[scope].last = HELIO_STATS_NO_SLOT;
    }
    helio_scope_shapes(stats->shapes);

    int error = config->folder ? open_segment(stats, config) : 0;
    if (!error) {
        error = map_memory(stats);
    }
    if (!error) {
        error = lay_out(stats, config);
    }
    if (error) {
        stats->header = NULL; /* half a header: nobody is to see it */
        helio_stats_destroy(stats);
        return error;
    }
    helio_stats_heartbeat(stats, config->wall_ns);
    atomic_store_explicit(&stats->header->state, HELIO_SEGMENT_RUNNING, memory_order_release);
    *out = stats;
    return 0;
}

void helio_stats_destroy(helio_stats *stats) {
    if (!stats) {
        return;
    }
    if (stats->header) {
        helio_incidents_end(stats, (int64_t)helio_cell(&stats->header->heartbeat_ns));
        helio_losses_destroy(stats);
        helio_levels_fini(stats);
        atomic_store_explicit(&stats->header->state, HELIO_SEGMENT_CLOSED, memory_order_release);
    }
    if (stats->file >= 0) {
        unlink(stats->path);
        close(stats->file);
    }
    helio_mapped_release(stats->guard);
    if (stats->memory) {
        munmap(stats->memory, stats->size);
    }
    free(stats->path);
    free(stats->next_gone);
    free(stats->histograms);
    free(stats->records);
    free(stats);
}

const char *helio_stats_path(const helio_stats *stats) {
    return stats->path ? stats->path : "";
}

helio_sampler *helio_stats_sampler(helio_stats *stats) {
    return &stats->sampler;
}

helio_control_ring *helio_stats_control(helio_stats *stats) {
    return stats->control;
}

void helio_stats_heartbeat(helio_stats *stats, int64_t wall_ns) {
    atomic_store_explicit(&stats->header->heartbeat_ns, (uint64_t)wall_ns, memory_order_relaxed);
}
