/* What the host of C modules (module_host.c) hands to a module: the structures of
 * heliograph/module.h made from plain Python values, in an arena that lives for one call.  Texts
 * and arrays of numbers point into the Python objects, which the caller keeps alive. */
#ifndef HELIO_MODULE_VALUES_H
#define HELIO_MODULE_VALUES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <heliograph/module.h>

typedef struct helio_arena_block {
    struct helio_arena_block *next;
    _Alignas(16) unsigned char bytes[];
} helio_arena_block;

typedef struct helio_arena {
    helio_arena_block *blocks;
    size_t used, room; /* of the first block */
} helio_arena;

/* Zeroed memory for `count` items; NULL with a Python exception when there is none. */
void *helio_arena_take(helio_arena *arena, size_t count, size_t item_bytes);
void helio_arena_free(helio_arena *arena);

/* Each makes one structure from a tuple; NULL with a Python exception when the tuple is not of the
 * shape monitor/_module_host.pyi gives.  The schema keeps its place in `arena` for objects to be
 * checked against. */
const helio_module_schema *helio_module_schema_from(helio_arena *arena, PyObject *tuple);
const helio_module_snapshot *
helio_module_snapshot_from(helio_arena *arena, const helio_module_schema *schema, PyObject *tuple);
const helio_module_event *helio_module_event_from(helio_arena *arena, PyObject *tuple);
const helio_module_topic *helio_module_topic_from(helio_arena *arena, PyObject *tuple);

#endif
