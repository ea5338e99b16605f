/* The parts of heliograph.engine._store. */
#ifndef HELIO_BINDING_STORE_H
#define HELIO_BINDING_STORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Raises the exception of an error code, with helio_error_sentence; returns NULL. */
PyObject *store_raise(int error);

extern PyTypeObject store_keeper_type, store_reader_type;

#endif
