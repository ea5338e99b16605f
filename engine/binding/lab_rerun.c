#include "lab_rerun.h"

#include <heliograph/heliograph.h>

#include "rerun/rerun.h"

static PyObject *numbers_of(const helio_rerun_side *side) {
    if (!side->is_there) {
        Py_RETURN_NONE;
    }
    PyObject *numbers = PyTuple_New((Py_ssize_t)side->count);
    for (uint32_t i = 0; numbers != NULL && i < side->count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(side->numbers[i]);
        if (number == NULL) {
            Py_CLEAR(numbers);
        } else {
            PyTuple_SET_ITEM(numbers, (Py_ssize_t)i, number);
        }
    }
    return numbers;
}

/* Adds a decision to the list that is the context. */
static bool add(void *context, const helio_rerun_decision *decision) {
    const helio_rerun_side *recorded = &decision->recorded, *made = &decision->made;
    PyObject *row = Py_BuildValue(
        "LLiNsNsN", (long long)decision->now_ns, (long long)decision->wall_ns,
        recorded->is_there ? recorded->kind : made->kind, numbers_of(recorded), recorded->why,
        numbers_of(made), made->why, PyBool_FromLong(helio_rerun_agrees(decision)));
    const bool is_added = row != NULL && PyList_Append(context, row) == 0;
    Py_XDECREF(row);
    return is_added;
}

static PyObject *refuse(int error) {
    if (error == HELIO_ERR_NOMEM) {
        return PyErr_NoMemory();
    }
    PyErr_SetString(PyExc_ValueError, error == HELIO_DECISION_DAMAGED
                                          ? "it is no decision log, or its beginning is damaged"
                                          : helio_error_text());
    return NULL;
}

PyObject *lab_rerun(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer log;
    const char *options = NULL;
    if (!PyArg_ParseTuple(args, "y*|z", &log, &options)) {
        return NULL;
    }
    PyObject *rows = PyList_New(0);
    helio_rerun_summary summary;
    const int error =
        rows ? helio_rerun(log.buf, (size_t)log.len, options, add, rows, &summary) : 0;
    PyBuffer_Release(&log);
    PyObject *result = NULL;
    if (rows == NULL || PyErr_Occurred()) {
        /* told by what failed */
    } else if (error) {
        refuse(error);
    } else {
        result = Py_BuildValue(
            "{s:s,s:s,s:s,s:L,s:K,s:K,s:K,s:K,s:N,s:O}", "instance", summary.instance, "stream",
            summary.stream, "policy", summary.policy, "begun_ns", (long long)summary.begun_ns,
            "intervals", (unsigned long long)summary.intervals, "recorded",
            (unsigned long long)summary.recorded, "made", (unsigned long long)summary.made,
            "reproduced", (unsigned long long)summary.reproduced, "damaged",
            PyBool_FromLong(summary.is_damaged), "decisions", rows);
    }
    Py_XDECREF(rows);
    return result;
}
