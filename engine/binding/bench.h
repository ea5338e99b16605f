/* What the files of heliograph.engine._bench share. */
#ifndef HELIO_BINDING_BENCH_H
#define HELIO_BINDING_BENCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

/* Raises heliograph.engine.errors.Error with the library's sentence; returns NULL. */
PyObject *bench_raise(const char *what);

/* To be called now and then without the GIL: whether to go on, or there is an exception
 * (Ctrl-C). */
bool bench_goes_on(void);

/* levels(order, batch, slot_seconds, warmup_seconds): bench_levels.c. */
PyObject *bench_levels(PyObject *module, PyObject *args, PyObject *keywords);

#endif
