/* Arguments of the calls that have to be quick, and time.
 *
 * The vectorcall convention hands over a plain array; sorting it by hand costs a few ns, where
 * PyArg_Parse costs 30. */
#include "core.h"

#include <math.h>
#include <time.h>

int core_arguments(const char *function, PyObject *const *args, Py_ssize_t count,
                   PyObject *keywords, const char *const *names, size_t name_count, size_t required,
                   PyObject **values) {
    if (CORE_UNLIKELY((size_t)count > name_count)) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %zu arguments (%zd given)", function,
                     name_count, count);
        return -1;
    }
    for (size_t i = 0; i < name_count; i++) {
        values[i] = i < (size_t)count ? args[i] : NULL;
    }
    Py_ssize_t keyword_count = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t k = 0; k < keyword_count; k++) {
        PyObject *keyword = PyTuple_GET_ITEM(keywords, k);
        size_t i = 0;
        while (i < name_count && PyUnicode_CompareWithASCIIString(keyword, names[i]) != 0) {
            i++;
        }
        if (i == name_count) {
            PyErr_Format(PyExc_TypeError, "%s() has no argument %R", function, keyword);
            return -1;
        }
        if (values[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got argument %R twice", function, keyword);
            return -1;
        }
        values[i] = args[count + k];
    }
    for (size_t i = 0; i < required; i++) {
        if (CORE_UNLIKELY(values[i] == NULL)) {
            PyErr_Format(PyExc_TypeError, "%s() needs argument '%s'", function, names[i]);
            return -1;
        }
    }
    return 0;
}

int core_timeout(PyObject *seconds, int64_t *timeout_ns) {
    if (seconds == NULL || seconds == Py_None) {
        *timeout_ns = HELIO_FOREVER;
        return 0;
    }
    double value =
        PyLong_CheckExact(seconds) ? PyLong_AsDouble(seconds) : PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (isnan(value) || value < 0.0) {
        PyErr_Format(PyExc_ValueError, "timeout must be None or at least 0 seconds, not %R",
                     seconds);
        return -1;
    }
    *timeout_ns = value < 9e9 ? (int64_t)(value * 1e9) : HELIO_FOREVER;
    return 0;
}

/* Whether an object refused its bytes only because they do not lie in one piece. */
static bool is_scattered(PyObject *object) {
    Py_buffer view;
    if (!PyObject_CheckBuffer(object)) {
        return false;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    bool scattered = false;
    if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) == 0) {
        scattered = !PyBuffer_IsContiguous(&view, 'C');
        PyBuffer_Release(&view);
    }
    PyErr_Restore(type, value, trace);
    return scattered;
}

int core_buffer(PyObject *object, int flags, Py_buffer *view) {
    if (PyObject_GetBuffer(object, view, flags) == 0) {
        return 0;
    }
    if (is_scattered(object)) {
        PyErr_Format(
            PyExc_BufferError,
            "the buffer of this %s is not C-contiguous: its bytes do not lie in one piece, "
            "in order; make a contiguous copy first",
            Py_TYPE(object)->tp_name);
    }
    return -1;
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t core_deadline(int64_t timeout_ns) {
    int64_t now = now_ns();
    return timeout_ns < HELIO_FOREVER - now ? now + timeout_ns : HELIO_FOREVER;
}

int64_t core_slice(int64_t deadline_ns) {
    if (deadline_ns == HELIO_FOREVER) {
        return CORE_SLICE_NS;
    }
    int64_t left = deadline_ns - now_ns();
    if (left <= 0) {
        return 0;
    }
    return left < CORE_SLICE_NS ? left : CORE_SLICE_NS;
}
