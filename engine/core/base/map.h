/* Map from 64-bit keys to pointers: open addressing, linear probing, at most three quarters full.
 *
 * Keys are mixed before use, so they may be alike.  It allocates only while it grows. */
#ifndef HELIO_BASE_MAP_H
#define HELIO_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

typedef struct helio_map_entry {
    uint64_t key;
    void *value; /* NULL: the entry is free */
} helio_map_entry;

typedef struct helio_map {
    helio_map_entry *entries;
    size_t capacity; /* a power of two */
    size_t count;
} helio_map;

/* Makes an empty map with room for `expected` keys; free it with helio_map_fini.  0 or NOMEM. */
int helio_map_init(helio_map *map, size_t expected);
void helio_map_fini(helio_map *map);
/* The value of a key, NULL when there is none. */
void *helio_map_get(const helio_map *map, uint64_t key);
/* Sets the value, not NULL, of a key.  0 or NOMEM, and then nothing has changed. */
int helio_map_put(helio_map *map, uint64_t key, void *value);
/* Takes a key out and returns its value, NULL when there was none. */
void *helio_map_remove(helio_map *map, uint64_t key);

#endif
