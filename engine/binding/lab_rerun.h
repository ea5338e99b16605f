/* The decisions of a log made again, for Python (lab/rerun/rerun.h). */
#ifndef HELIO_BINDING_LAB_RERUN_H
#define HELIO_BINDING_LAB_RERUN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* rerun(log, options): a summary and the decisions. */
PyObject *lab_rerun(PyObject *module, PyObject *args);

#endif
