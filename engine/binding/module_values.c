/* Structures of heliograph/module.h from tuples of Python. */
#include "module_values.h"

#include <string.h>

enum { BLOCK_BYTES = 1 << 16 };

void *helio_arena_take(helio_arena *arena, size_t count, size_t item_bytes) {
    if (count > PY_SSIZE_T_MAX / 2 / item_bytes) {
        PyErr_NoMemory();
        return NULL;
    }
    const size_t bytes = (count * item_bytes + 15) & ~(size_t)15;
    if (arena->blocks == NULL || bytes > arena->room - arena->used) {
        const size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        helio_arena_block *block = PyMem_Calloc(1, sizeof *block + room);
        if (block == NULL) {
            PyErr_NoMemory();
            return NULL;
        }
        block->next = arena->blocks;
        *arena = (helio_arena){.blocks = block, .room = room};
    }
    void *taken = arena->blocks->bytes + arena->used;
    arena->used += bytes;
    return taken;
}

void helio_arena_free(helio_arena *arena) {
    for (helio_arena_block *block = arena->blocks; block != NULL;) {
        helio_arena_block *next = block->next;
        PyMem_Free(block);
        block = next;
    }
    *arena = (helio_arena){0};
}

/* ---- parts ---- */

static int text_from(PyObject *object, helio_module_text *out) {
    Py_ssize_t length;
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, &length) : NULL;
    if (text == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_TypeError, "a text is expected, not %R", object);
        }
        return 0;
    }
    *out = (helio_module_text){text, (size_t)length};
    return 1;
}

static int word_from(PyObject *object, uint64_t *out) {
    *out = PyLong_AsUnsignedLongLongMask(object);
    return !PyErr_Occurred();
}

/* Length of a tuple; -1 with an exception when it is none. */
static Py_ssize_t length_of(PyObject *tuple) {
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "a tuple is expected, not %R", tuple);
        return -1;
    }
    return PyTuple_GET_SIZE(tuple);
}

static const helio_module_text *texts_from(helio_arena *arena, PyObject *tuple, size_t *count) {
    const Py_ssize_t length = length_of(tuple);
    helio_module_text *texts =
        length < 0 ? NULL : helio_arena_take(arena, (size_t)length, sizeof *texts);
    for (Py_ssize_t i = 0; texts != NULL && i < length; i++) {
        if (!text_from(PyTuple_GET_ITEM(tuple, i), &texts[i])) {
            return NULL;
        }
    }
    *count = (size_t)(length < 0 ? 0 : length);
    return texts;
}

/* From keys and values in turn. */
static const helio_module_pair *pairs_from(helio_arena *arena, PyObject *tuple, size_t *count) {
    size_t texts = 0;
    const helio_module_text *flat = texts_from(arena, tuple, &texts);
    if (flat == NULL || texts % 2 != 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "keys and values must come in pairs");
        }
        return NULL;
    }
    *count = texts / 2;
    helio_module_pair *pairs = helio_arena_take(arena, *count, sizeof *pairs);
    for (size_t i = 0; pairs != NULL && i < *count; i++) {
        pairs[i] = (helio_module_pair){flat[2 * i], flat[2 * i + 1]};
    }
    return pairs;
}

typedef const void *(*item_maker)(helio_arena *arena, const void *context, PyObject *tuple);

/* An array of pointers to what `make` makes of each item. */
static const void *list_from(helio_arena *arena, PyObject *tuple, item_maker make,
                             const void *context, size_t *count) {
    const Py_ssize_t length = length_of(tuple);
    const void **items = length < 0 ? NULL : helio_arena_take(arena, (size_t)length, sizeof *items);
    for (Py_ssize_t i = 0; items != NULL && i < length; i++) {
        items[i] = make(arena, context, PyTuple_GET_ITEM(tuple, i));
        if (items[i] == NULL) {
            return NULL;
        }
    }
    *count = (size_t)(length < 0 ? 0 : length);
    return items;
}

/* The bytes of an object as an array of `count` items. */
static const void *array_from(PyObject *bytes, size_t count, size_t item_bytes) {
    if (!PyBytes_Check(bytes) || (size_t)PyBytes_GET_SIZE(bytes) != count * item_bytes) {
        PyErr_Format(PyExc_ValueError, "%zu items of %zu bytes are expected", count, item_bytes);
        return NULL;
    }
    return PyBytes_AS_STRING(bytes); /* aligned as malloc does, and 32 bytes in */
}

/* ---- the schema ---- */

static const void *cell_from(helio_arena *arena, const void *context, PyObject *tuple) {
    (void)context;
    helio_module_cell *cell = helio_arena_take(arena, 1, sizeof *cell);
    PyObject *texts[6];
    if (cell == NULL ||
        !PyArg_ParseTuple(tuple, "OOOOOOII", &texts[0], &texts[1], &texts[2], &texts[3], &texts[4],
                          &texts[5], &cell->kind, &cell->level)) {
        return NULL;
    }
    cell->size = sizeof *cell;
    helio_module_text *const fields[6] = {&cell->name,        &cell->statistic,   &cell->unit,
                                          &cell->split_label, &cell->split_value, &cell->help};
    for (int i = 0; i < 6; i++) {
        if (!text_from(texts[i], fields[i])) {
            return NULL;
        }
    }
    return cell;
}

static const void *scope_from(helio_arena *arena, const void *context, PyObject *tuple) {
    (void)context;
    helio_module_scope *scope = helio_arena_take(arena, 1, sizeof *scope);
    PyObject *name, *help, *labels, *cells;
    if (scope == NULL ||
        !PyArg_ParseTuple(tuple, "IOOOO", &scope->id, &name, &help, &labels, &cells) ||
        !text_from(name, &scope->name) || !text_from(help, &scope->help)) {
        return NULL;
    }
    scope->size = sizeof *scope;
    scope->labels = texts_from(arena, labels, &scope->label_count);
    scope->cells = list_from(arena, cells, cell_from, NULL, &scope->cell_count);
    return scope->labels != NULL && scope->cells != NULL ? scope : NULL;
}

static const void *event_kind_from(helio_arena *arena, const void *context, PyObject *tuple) {
    (void)context;
    helio_module_event_kind *kind = helio_arena_take(arena, 1, sizeof *kind);
    PyObject *name, *help;
    if (kind == NULL ||
        !PyArg_ParseTuple(tuple, "IIOO", &kind->id, &kind->severity, &name, &help) ||
        !text_from(name, &kind->name) || !text_from(help, &kind->help)) {
        return NULL;
    }
    kind->size = sizeof *kind;
    return kind;
}

const helio_module_schema *helio_module_schema_from(helio_arena *arena, PyObject *tuple) {
    helio_module_schema *schema = helio_arena_take(arena, 1, sizeof *schema);
    PyObject *version, *scopes, *kinds;
    if (schema == NULL || !PyArg_ParseTuple(tuple, "OOO", &version, &scopes, &kinds) ||
        !text_from(version, &schema->product_version)) {
        return NULL;
    }
    schema->size = sizeof *schema;
    schema->scopes = list_from(arena, scopes, scope_from, NULL, &schema->scope_count);
    if (schema->scopes == NULL) {
        return NULL;
    }
    schema->event_kinds = list_from(arena, kinds, event_kind_from, NULL, &schema->event_kind_count);
    return schema->event_kinds != NULL ? schema : NULL;
}

/* ---- a snapshot ---- */

static const void *histogram_from(helio_arena *arena, const void *context, PyObject *tuple) {
    const helio_module_scope *scope = context;
    helio_module_histogram *histogram = helio_arena_take(arena, 1, sizeof *histogram);
    unsigned long long words[5];
    PyObject *index, *counts;
    if (histogram == NULL ||
        !PyArg_ParseTuple(tuple, "IIKKKKKOO", &histogram->cell, &histogram->digits, &words[0],
                          &words[1], &words[2], &words[3], &words[4], &index, &counts)) {
        return NULL;
    }
    if (histogram->cell >= scope->cell_count || !PyBytes_Check(counts)) {
        PyErr_SetString(PyExc_ValueError, "a histogram is of no cell of its scope");
        return NULL;
    }
    histogram->size = sizeof *histogram;
    histogram->lowest = words[0];
    histogram->highest = words[1];
    histogram->above = words[2];
    histogram->negative = words[3];
    histogram->total_ns = words[4];
    histogram->count = (size_t)PyBytes_GET_SIZE(counts) / sizeof *histogram->counts;
    histogram->index = array_from(index, histogram->count, sizeof *histogram->index);
    histogram->counts = array_from(counts, histogram->count, sizeof *histogram->counts);
    return histogram->index != NULL && histogram->counts != NULL ? histogram : NULL;
}

static const void *object_from(helio_arena *arena, const void *context, PyObject *tuple) {
    const helio_module_schema *schema = context;
    helio_module_object *object = helio_arena_take(arena, 1, sizeof *object);
    unsigned long long created;
    PyObject *labels, *info, *values, *valid, *histograms;
    if (object == NULL ||
        !PyArg_ParseTuple(tuple, "IIKOOOOO", &object->scope, &object->flags, &created, &labels,
                          &info, &values, &valid, &histograms)) {
        return NULL;
    }
    if (object->scope >= schema->scope_count) {
        PyErr_SetString(PyExc_ValueError, "an object is of no scope of the schema");
        return NULL;
    }
    const helio_module_scope *scope = schema->scopes[object->scope];
    object->size = sizeof *object;
    object->created_ns = created;
    object->labels = texts_from(arena, labels, &object->label_count);
    object->value_count = scope->cell_count;
    object->info = object->labels != NULL ? pairs_from(arena, info, &object->info_count) : NULL;
    if (object->info == NULL) {
        return NULL;
    }
    if (object->label_count != scope->label_count) {
        PyErr_SetString(PyExc_ValueError, "an object has not the labels of its scope");
        return NULL;
    }
    object->values = array_from(values, scope->cell_count, sizeof *object->values);
    object->valid =
        object->values != NULL ? array_from(valid, scope->cell_count, sizeof *object->valid) : NULL;
    if (object->valid == NULL) {
        return NULL;
    }
    object->histograms =
        list_from(arena, histograms, histogram_from, scope, &object->histogram_count);
    return object->histograms != NULL ? object : NULL;
}

static const void *instance_from(helio_arena *arena, const void *context, PyObject *tuple) {
    helio_module_instance *instance = helio_arena_take(arena, 1, sizeof *instance);
    unsigned long long words[4];
    PyObject *name, *health, *reason, *objects;
    if (instance == NULL ||
        !PyArg_ParseTuple(tuple, "OOOKKKKO", &name, &health, &reason, &words[0], &words[1],
                          &words[2], &words[3], &objects) ||
        !text_from(name, &instance->name) || !text_from(health, &instance->health) ||
        !text_from(reason, &instance->reason)) {
        return NULL;
    }
    instance->size = sizeof *instance;
    instance->pid = words[0];
    instance->incarnation = words[1];
    instance->started_ns = words[2];
    instance->heartbeat_ns = words[3];
    instance->objects = list_from(arena, objects, object_from, context, &instance->object_count);
    return instance->objects != NULL ? instance : NULL;
}

const helio_module_snapshot *
helio_module_snapshot_from(helio_arena *arena, const helio_module_schema *schema, PyObject *tuple) {
    helio_module_snapshot *snapshot = helio_arena_take(arena, 1, sizeof *snapshot);
    unsigned long long words[4];
    PyObject *instances;
    if (snapshot == NULL ||
        !PyArg_ParseTuple(tuple, "KKKKO", &words[0], &words[1], &words[2], &words[3], &instances)) {
        return NULL;
    }
    snapshot->size = sizeof *snapshot;
    snapshot->time_ns = words[0];
    snapshot->number = words[1];
    snapshot->dropped = words[2];
    snapshot->events_missed = words[3];
    snapshot->instances =
        list_from(arena, instances, instance_from, schema, &snapshot->instance_count);
    return snapshot->instances != NULL ? snapshot : NULL;
}

/* ---- what happens ---- */

static const helio_module_argument *arguments_from(helio_arena *arena, PyObject *names,
                                                   PyObject *values, size_t *count) {
    const helio_module_text *texts = texts_from(arena, names, count);
    if (texts == NULL || length_of(values) != (Py_ssize_t)*count) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "every argument has a name and a value");
        }
        return NULL;
    }
    helio_module_argument *arguments = helio_arena_take(arena, *count, sizeof *arguments);
    for (size_t i = 0; arguments != NULL && i < *count; i++) {
        arguments[i].name = texts[i];
        if (!word_from(PyTuple_GET_ITEM(values, (Py_ssize_t)i), &arguments[i].value)) {
            return NULL;
        }
    }
    return arguments;
}

const helio_module_event *helio_module_event_from(helio_arena *arena, PyObject *tuple) {
    helio_module_event *event = helio_arena_take(arena, 1, sizeof *event);
    unsigned long long words[3];
    PyObject *instance, *name, *labels, *names, *values, *text;
    if (event == NULL ||
        !PyArg_ParseTuple(tuple, "KKKOOIOOOO", &words[0], &words[1], &words[2], &instance, &name,
                          &event->severity, &labels, &names, &values, &text) ||
        !text_from(instance, &event->instance) || !text_from(name, &event->name) ||
        !text_from(text, &event->text)) {
        return NULL;
    }
    event->size = sizeof *event;
    event->time_ns = words[0];
    event->incarnation = words[1];
    event->number = words[2];
    event->labels = pairs_from(arena, labels, &event->label_count);
    if (event->labels == NULL) {
        return NULL;
    }
    event->arguments = arguments_from(arena, names, values, &event->argument_count);
    return event->arguments != NULL ? event : NULL;
}

const helio_module_topic *helio_module_topic_from(helio_arena *arena, PyObject *tuple) {
    helio_module_topic *topic = helio_arena_take(arena, 1, sizeof *topic);
    unsigned long long words[2];
    PyObject *instance, *name, *stream, *endpoint;
    if (topic == NULL ||
        !PyArg_ParseTuple(tuple, "KKOIOOO", &words[0], &words[1], &instance, &topic->direction,
                          &name, &stream, &endpoint) ||
        !text_from(instance, &topic->instance) || !text_from(name, &topic->topic) ||
        !text_from(stream, &topic->stream) || !text_from(endpoint, &topic->endpoint)) {
        return NULL;
    }
    topic->size = sizeof *topic;
    topic->time_ns = words[0];
    topic->incarnation = words[1];
    return topic;
}
