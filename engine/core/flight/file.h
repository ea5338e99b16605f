/* The file of a flight recording (docs/flight.md): a header, the directory of the statistics, and a
 * ring of chunks, mapped.
 *
 * A chunk begins with a keyframe, which needs nothing before it, and goes on with frames that need
 * all since.  Chunks are overwritten oldest first, so the ring always has all but the oldest
 * sixteenth of its bytes to read.  A frame counts once it is whole: what a crash leaves is read up
 * to there.
 *
 * The bytes of a chunk are reserved in the file before it is written for the first time, so that a
 * full file system is an error and never a SIGBUS; the ring then stays as small as it is. */
#ifndef HELIO_FLIGHT_FILE_H
#define HELIO_FLIGHT_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mapped.h"

enum {
    HELIO_FLIGHT_VERSION = 1,
    HELIO_FLIGHT_CHUNKS = 16,
    HELIO_FLIGHT_BYTES_MIN = 262144,
    HELIO_FLIGHT_NAME_BYTES = 48,
    HELIO_FLIGHT_WHY_BYTES = 200,
    HELIO_FLIGHT_FRAME_HEAD = 8,
};

typedef enum helio_flight_state {
    HELIO_FLIGHT_WRITING,   /* not complete: its recorder is at it, or died of it */
    HELIO_FLIGHT_RECORDING, /* a ring */
    HELIO_FLIGHT_CLOSED,    /* a ring that ended cleanly */
    HELIO_FLIGHT_FROZEN,    /* a recording that was kept */
} helio_flight_state;

typedef struct helio_flight_header {
    char magic[8];
    uint32_t byte_order;
    uint32_t version;
    uint64_t size;
    _Atomic uint64_t state;
    uint64_t pid;
    uint64_t incarnation;
    uint64_t started_ns;  /* the instance, since 1970 */
    uint64_t interval_ns; /* as configured */
    uint64_t directory_offset;
    uint64_t directory_bytes;
    uint64_t chunks_offset;
    uint64_t chunk_bytes;
    uint32_t chunks;
    uint32_t number;                    /* of a kept recording; 0: the ring */
    uint64_t trigger_ns;                /* since 1970; 0: the ring */
    uint64_t trigger_event;             /* number + 1; 0: by hand */
    _Atomic uint64_t ticks;             /* recorded so far */
    char name[HELIO_FLIGHT_NAME_BYTES]; /* of the instance */
    char product[32];
    char why[HELIO_FLIGHT_WHY_BYTES];
    uint8_t reserved[104];
} helio_flight_header;

typedef struct helio_flight_chunk {
    _Atomic uint64_t sequence; /* counts up; 0: empty, or being cleared */
    _Atomic uint64_t used;     /* bytes of whole frames after this head */
    uint8_t reserved[48];
} helio_flight_chunk;

_Static_assert(sizeof(helio_flight_header) == 512, "docs/flight.md 1");
_Static_assert(sizeof(helio_flight_chunk) == 64, "docs/flight.md 2");

typedef struct helio_flight_file {
    char *path; /* NULL: there is no file */
    int file;
    uint8_t *memory;
    size_t size;
    helio_mapped *guard; /* of the mapping */
    helio_flight_header *header;
    /* The header's own copies of these may be gone (base/mapped.h). */
    size_t chunks_offset, chunk_bytes, directory_bytes;
    uint32_t reserved;   /* chunks that have their bytes */
    uint32_t chunk;      /* being written */
    size_t used;         /* of it */
    uint64_t sequence;   /* its */
    uint32_t refused;    /* chunks that found no room */
    uint32_t table[256]; /* of the check */
} helio_flight_file;

/* What a ring says of itself. */
typedef struct helio_flight_identity {
    const char *name, *product;
    uint64_t pid, incarnation, started_ns, interval_ns;
    const char *directory;
    size_t directory_bytes;
} helio_flight_identity;

/* Makes the file anew and maps it; `path` is copied.  `bytes`: of the ring, at least
 * HELIO_FLIGHT_BYTES_MIN.  Returns 0, NOMEM or SYSTEM. */
int helio_flight_file_open(helio_flight_file *file, const char *path, size_t bytes,
                           const helio_flight_identity *identity);
/* Says that it ended cleanly, removes and unmaps it.  Accepts one that was never opened. */
void helio_flight_file_close(helio_flight_file *file);

/* Bytes a frame's payload can have at most. */
size_t helio_flight_file_frame_max(const helio_flight_file *file);
/* Appends a frame to the chunk being written; false: it does not fit, so the next chunk is to be
 * begun, with a keyframe. */
bool helio_flight_file_append(helio_flight_file *file, const uint8_t *payload, size_t bytes);
/* Begins the next chunk. */
void helio_flight_file_next(helio_flight_file *file);
/* The file was cut short by another program: there is nothing to be recorded in. */
bool helio_flight_file_is_cut(const helio_flight_file *file);
/* Bytes of frames in the ring now. */
uint64_t helio_flight_file_bytes(const helio_flight_file *file);

#endif
