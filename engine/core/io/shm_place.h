/* Where rings and bells are found: files of a folder, for processes; a list of the process, for its
 * threads.  A channel has one place, under the name its endpoint says: its bell, which wakes it,
 * and, when it writes, its ring.  Both go with it.
 *
 * None of this is on the way of a packet. */
#ifndef HELIO_IO_SHM_PLACE_H
#define HELIO_IO_SHM_PLACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mapped.h"
#include "io/process.h"

/* Whose a ring or bell is; names it. */
typedef struct helio_shm_key {
    uint64_t id; /* random */
    helio_process process;
} helio_shm_key;

typedef struct helio_shm_mapping {
    void *memory;
    size_t bytes;
    void *owner;         /* of the place's kind */
    helio_mapped *guard; /* NULL: no file is behind it */
} helio_shm_mapping;

typedef struct helio_shm_place {
    const struct helio_shm_place_kind *kind;
    helio_shm_key key;
    int bell;                           /* readable when it was rung */
    const _Atomic uint64_t *generation; /* changes when a ring comes or goes */
    helio_mapped *generation_guard;     /* NULL: no file is behind it */
} helio_shm_place;

typedef struct helio_shm_place_kind {
    /* Makes a place with its bell.  0 or HELIO_ERR_*. */
    int (*open)(const char *name, uint64_t id, helio_shm_place **out);
    void (*close)(helio_shm_place *place);

    /* Zeroed memory for the place's ring, seen by nobody yet.  `huge`: in huge pages if they can be
     * had; *why is then NULL, or why not. */
    int (*make)(helio_shm_place *place, size_t bytes, bool huge, helio_shm_mapping *out,
                const char **why);
    /* The ring can be found from now on; all who have bells under the name are rung. */
    int (*publish)(helio_shm_place *place);
    /* Nobody finds it any more; who reads goes on. */
    void (*withdraw)(helio_shm_place *place);

    /* Calls `each` for the rings under the name. */
    void (*list)(helio_shm_place *place, void (*each)(void *context, const helio_shm_key *key),
                 void *context);
    bool (*map)(helio_shm_place *place, const helio_shm_key *key, helio_shm_mapping *out);
    void (*unmap)(helio_shm_mapping *mapping);
    /* Takes away what a dead process left. */
    void (*clear)(helio_shm_place *place, const helio_shm_key *key);

    /* A descriptor of somebody's bell, to be rung and closed by the caller; -1: it is gone. */
    int (*find_bell)(helio_shm_place *place, const helio_shm_key *key);
    bool (*is_alive)(const helio_process *process);
} helio_shm_place_kind;

extern const helio_shm_place_kind helio_shm_files;
extern const helio_shm_place_kind helio_shm_heap;

/* Bells of both kinds. */
void helio_shm_bell_ring(int bell);
void helio_shm_bell_silence(int bell);

#endif
