/* The parts of heliograph.engine._store. */
#ifndef HELIO_BINDING_STORE_H
#define HELIO_BINDING_STORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "store/store.h"

/* Raises the exception of an error code, with helio_error_sentence; returns NULL. */
PyObject *store_raise(int error);

/* Makes Python objects of the messages of a stream.  Zero: not begun. */
typedef struct store_rows {
    PyObject *stream;
    /* Only messages of this topic; NULL: all.  The text is within the object. */
    PyObject *wanted_topic;
    const char *wanted;
    size_t wanted_bytes;
    /* Of the last row. */
    PyObject *topic;
    uint64_t number;
    bool has_number;
    /* The last row does not have the number after the row before it. */
    bool is_apart;
    /* A row that begins the next run. */
    PyObject *held;
} store_rows;

/* Gives the next message as helio_store_reader_next. */
typedef int (*store_next)(void *from, helio_store_message *out, uint64_t *position);

/* `topic`: a str, or None for all.  False: with an exception. */
bool store_rows_begin(store_rows *rows, const helio_tsi *tsi, PyObject *topic);
void store_rows_end(store_rows *rows);
/* A list of the next messages, for the arguments (limit, one_run): at most `limit`, with `one_run`
 * only those whose numbers follow each other; empty at the end. */
PyObject *store_rows_take(store_rows *rows, PyObject *args, store_next next, void *from);

/* Adds StoredMessage to the module. */
int store_message_type_add(PyObject *module);

extern PyTypeObject store_keeper_type, store_reader_type, store_decoder_type;

#endif
