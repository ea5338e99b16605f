/* The parts of heliograph.engine._store. */
#ifndef HELIO_BINDING_STORE_H
#define HELIO_BINDING_STORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "store/store.h"

/* Raises the exception of an error code, with helio_error_sentence; returns NULL. */
PyObject *store_raise(int error);

/* The row of a message: position, topic, sequence, number, submit and receive time, flags, payload. */
PyObject *store_row(const helio_store_message *message, uint64_t position);

extern PyTypeObject store_keeper_type, store_reader_type, store_decoder_type;

#endif
