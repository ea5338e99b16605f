#include "base/map.h"

#include <stdlib.h>

#include <heliograph/errors.h>

#include "base/bits.h"
#include "base/hash.h"

static size_t home(const helio_map *map, uint64_t key) {
    return (size_t)helio_hash_mix(key) & (map->capacity - 1);
}

/* The entry of the key, or the free one where it would go. */
static helio_map_entry *find(const helio_map *map, uint64_t key) {
    size_t i = home(map, key);
    while (map->entries[i].value && map->entries[i].key != key) {
        i = (i + 1) & (map->capacity - 1);
    }
    return &map->entries[i];
}

int helio_map_init(helio_map *map, size_t expected) {
    map->capacity = helio_round_up_power_of_two(expected + expected / 2 + 4);
    map->count = 0;
    map->entries = calloc(map->capacity, sizeof *map->entries);
    return map->entries ? 0 : HELIO_ERR_NOMEM;
}

void helio_map_fini(helio_map *map) {
    free(map->entries);
    *map = (helio_map){0};
}

void *helio_map_get(const helio_map *map, uint64_t key) {
    return find(map, key)->value;
}

static int grow(helio_map *map) {
    helio_map larger;
    const int error = helio_map_init(&larger, map->capacity);
    if (error) {
        return error;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->entries[i].value) {
            *find(&larger, map->entries[i].key) = map->entries[i];
        }
    }
    larger.count = map->count;
    free(map->entries);
    *map = larger;
    return 0;
}

int helio_map_put(helio_map *map, uint64_t key, void *value) {
    helio_map_entry *entry = find(map, key);
    if (!entry->value) {
        if ((map->count + 1) * 4 > map->capacity * 3) {
            const int error = grow(map);
            if (error) {
                return error;
            }
            entry = find(map, key);
        }
        map->count++;
    }
    *entry = (helio_map_entry){key, value};
    return 0;
}

void *helio_map_remove(helio_map *map, uint64_t key) {
    helio_map_entry *entry = find(map, key);
    void *value = entry->value;
    if (!value) {
        return NULL;
    }
    /* Close the hole: move back each later entry of the run that may live there. */
    const size_t mask = map->capacity - 1;
    size_t hole = (size_t)(entry - map->entries);
    for (size_t i = (hole + 1) & mask; map->entries[i].value; i = (i + 1) & mask) {
        const size_t wanted = home(map, map->entries[i].key);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            map->entries[hole] = map->entries[i];
            hole = i;
        }
    }
    map->entries[hole].value = NULL;
    map->count--;
    return value;
}
