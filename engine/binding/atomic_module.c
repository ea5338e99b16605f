/* heliograph.monitor._atomic: 64-bit words in shared memory, changed as a whole.
 *
 * Python can map a segment but cannot compare and exchange a word of it, which is how the clients
 * of an engine's command ring keep out of each other's way (docs/segment.md 8).  It links nothing of
 * the engine. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdint.h>

/* The word at `offset` of a writable buffer; NULL with an exception set, and nothing to release. */
static _Atomic uint64_t *word_of(PyObject *object, Py_ssize_t offset, Py_buffer *view) {
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE) != 0) {
        return NULL;
    }
    uint8_t *place = (uint8_t *)view->buf + offset;
    if (offset < 0 || view->len < 8 || offset > view->len - 8 || (uintptr_t)place % 8 != 0) {
        PyErr_Format(PyExc_ValueError, "there is no aligned 64-bit word at %zd of %zd bytes",
                     offset, view->len);
        PyBuffer_Release(view);
        return NULL;
    }
    return (_Atomic uint64_t *)place;
}

static PyObject *load(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object;
    Py_ssize_t offset;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "On:load", &object, &offset)) {
        return NULL;
    }
    _Atomic uint64_t *word = word_of(object, offset, &view);
    if (word == NULL) {
        return NULL;
    }
    const uint64_t value = atomic_load_explicit(word, memory_order_acquire);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLongLong(value);
}

static int parse_word(PyObject *number, uint64_t *out) {
    *out = PyLong_AsUnsignedLongLong(number);
    return *out != UINT64_MAX || !PyErr_Occurred();
}

static PyObject *compare_exchange(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object, *expected_number, *desired_number;
    Py_ssize_t offset;
    Py_buffer view;
    uint64_t expected, desired;
    if (!PyArg_ParseTuple(args, "OnO!O!:compare_exchange", &object, &offset, &PyLong_Type,
                          &expected_number, &PyLong_Type, &desired_number) ||
        !parse_word(expected_number, &expected) || !parse_word(desired_number, &desired)) {
        return NULL;
    }
    _Atomic uint64_t *word = word_of(object, offset, &view);
    if (word == NULL) {
        return NULL;
    }
    const int done = atomic_compare_exchange_strong(word, &expected, desired);
    PyBuffer_Release(&view);
    return PyBool_FromLong(done);
}

static PyObject *add(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object, *number;
    Py_ssize_t offset;
    Py_buffer view;
    uint64_t by;
    if (!PyArg_ParseTuple(args, "OnO!:add", &object, &offset, &PyLong_Type, &number) ||
        !parse_word(number, &by)) {
        return NULL;
    }
    _Atomic uint64_t *word = word_of(object, offset, &view);
    if (word == NULL) {
        return NULL;
    }
    const uint64_t before = atomic_fetch_add(word, by);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLongLong(before);
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS,
     "load(buffer, offset): the word, and all that was stored before it."},
    {"compare_exchange", compare_exchange, METH_VARARGS,
     "compare_exchange(buffer, offset, expected, desired): stores `desired` if the word is "
     "`expected`; whether it was."},
    {"add", add, METH_VARARGS, "add(buffer, offset, by): adds to the word; what it was before."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.monitor._atomic",
    .m_doc = "64-bit words in shared memory, changed as a whole.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__atomic(void) {
    return PyModuleDef_Init(&definition);
}
