/* heliograph.monitor._atomic: 64-bit words in shared memory, changed as a whole.
 *
 * Python can map a segment but cannot compare and exchange a word of it, which is how the clients
 * of an engine's command ring keep out of each other's way (docs/segment.md 8).  And what Python
 * maps kills it (SIGBUS) when another program truncates the file; a Mapping of this module raises
 * OSError.  It links nothing of the engine but the guard of its own mappings (base/mapped.h). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mapped.h"

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

/* ---- Mapping: a piece of a file, shared and writable ---- */

typedef struct mapping {
    PyObject_HEAD uint8_t *memory; /* NULL: closed */
    size_t bytes;
    helio_mapped *guard;
} mapping;

static void undo(mapping *self) {
    if (self->memory) {
        helio_mapped_release(self->guard);
        munmap(self->memory, self->bytes);
        self->memory = NULL;
        self->guard = NULL;
    }
}

static PyObject *mapping_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    int file;
    long long offset;
    Py_ssize_t bytes;
    if (keywords && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Mapping takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "iLn:Mapping", &file, &offset, &bytes)) {
        return NULL;
    }
    if (bytes <= 0 || offset < 0) {
        PyErr_SetString(PyExc_ValueError, "a mapping begins at 0 or later and has bytes");
        return NULL;
    }
    mapping *self = (mapping *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    void *memory =
        mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    if (memory == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    self->memory = memory;
    self->bytes = (size_t)bytes;
    self->guard = helio_mapped_guard(memory, self->bytes);
    if (!self->guard) {
        undo(self);
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void mapping_free(mapping *self) {
    PyTypeObject *type = Py_TYPE(self);
    undo(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* `bytes` of the mapping from `offset` on; NULL with an exception set. */
static uint8_t *place_of(const mapping *self, Py_ssize_t offset, Py_ssize_t bytes, bool is_word) {
    if (!self->memory) {
        PyErr_SetString(PyExc_ValueError, "the mapping is closed");
        return NULL;
    }
    if (offset < 0 || bytes < 0 || (size_t)bytes > self->bytes ||
        (size_t)offset > self->bytes - (size_t)bytes || (is_word && offset % 8 != 0)) {
        PyErr_Format(PyExc_ValueError, "there are no %zd bytes at %zd of %zu", bytes, offset,
                     self->bytes);
        return NULL;
    }
    return self->memory + offset;
}

/* The result of an access, unless the file was cut: then nothing of it is true. */
static PyObject *result_of(const mapping *self, PyObject *result) {
    if (helio_mapped_is_cut(self->guard)) {
        Py_XDECREF(result);
        errno = EIO;
        PyErr_SetFromErrno(PyExc_OSError); /* input/output error: the file was truncated */
        return NULL;
    }
    return result;
}

static PyObject *mapping_load(mapping *self, PyObject *args) {
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(args, "n:load", &offset)) {
        return NULL;
    }
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)place_of(self, offset, 8, true);
    if (!word) {
        return NULL;
    }
    const uint64_t value = atomic_load_explicit(word, memory_order_acquire);
    return result_of(self, PyLong_FromUnsignedLongLong(value));
}

static PyObject *mapping_compare_exchange(mapping *self, PyObject *args) {
    Py_ssize_t offset;
    PyObject *expected_number, *desired_number;
    uint64_t expected, desired;
    if (!PyArg_ParseTuple(args, "nO!O!:compare_exchange", &offset, &PyLong_Type, &expected_number,
                          &PyLong_Type, &desired_number) ||
        !parse_word(expected_number, &expected) || !parse_word(desired_number, &desired)) {
        return NULL;
    }
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)place_of(self, offset, 8, true);
    if (!word) {
        return NULL;
    }
    const int done = atomic_compare_exchange_strong(word, &expected, desired);
    return result_of(self, PyBool_FromLong(done));
}

static PyObject *mapping_add(mapping *self, PyObject *args) {
    Py_ssize_t offset;
    PyObject *number;
    uint64_t by;
    if (!PyArg_ParseTuple(args, "nO!:add", &offset, &PyLong_Type, &number) ||
        !parse_word(number, &by)) {
        return NULL;
    }
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)place_of(self, offset, 8, true);
    if (!word) {
        return NULL;
    }
    const uint64_t before = atomic_fetch_add(word, by);
    return result_of(self, PyLong_FromUnsignedLongLong(before));
}

static PyObject *mapping_read(mapping *self, PyObject *args) {
    Py_ssize_t offset, bytes;
    if (!PyArg_ParseTuple(args, "nn:read", &offset, &bytes)) {
        return NULL;
    }
    const uint8_t *place = place_of(self, offset, bytes, false);
    return place ? result_of(self, PyBytes_FromStringAndSize((const char *)place, bytes)) : NULL;
}

static PyObject *mapping_write(mapping *self, PyObject *args) {
    Py_ssize_t offset;
    Py_buffer view;
    if (!PyArg_ParseTuple(args, "ny*:write", &offset, &view)) {
        return NULL;
    }
    uint8_t *place = place_of(self, offset, view.len, false);
    if (place) {
        memcpy(place, view.buf, (size_t)view.len);
    }
    PyBuffer_Release(&view);
    return place ? result_of(self, Py_NewRef(Py_None)) : NULL;
}

static PyObject *mapping_close(mapping *self, PyObject *none) {
    (void)none;
    undo(self);
    Py_RETURN_NONE;
}

static PyMethodDef mapping_methods[] = {
    {"load", (PyCFunction)mapping_load, METH_VARARGS,
     "load(offset): the word, and all that was stored before it."},
    {"compare_exchange", (PyCFunction)mapping_compare_exchange, METH_VARARGS,
     "compare_exchange(offset, expected, desired): stores `desired` if the word is `expected`; "
     "whether it was."},
    {"add", (PyCFunction)mapping_add, METH_VARARGS,
     "add(offset, by): adds to the word; what it was before."},
    {"read", (PyCFunction)mapping_read, METH_VARARGS, "read(offset, size): these bytes."},
    {"write", (PyCFunction)mapping_write, METH_VARARGS,
     "write(offset, data): puts these bytes there."},
    {"close", (PyCFunction)mapping_close, METH_NOARGS,
     "close(): undoes the mapping. Harmless when closed."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot mapping_slots[] = {
    {Py_tp_new, mapping_new},
    {Py_tp_dealloc, mapping_free},
    {Py_tp_methods, mapping_methods},
    {Py_tp_doc, "Mapping(file, offset, size): a piece of an open file, shared and writable. Each "
                "access raises OSError once the file was truncated."},
    {0, NULL},
};

static PyType_Spec mapping_spec = {
    .name = "heliograph.monitor._atomic.Mapping",
    .basicsize = sizeof(mapping),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = mapping_slots,
};

static int add_mapping(PyObject *module) {
    PyObject *type = PyType_FromSpec(&mapping_spec);
    const int error = type ? PyModule_AddObjectRef(module, "Mapping", type) : -1;
    Py_XDECREF(type);
    return error;
}

/* ---- the module ---- */

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS,
     "load(buffer, offset): the word, and all that was stored before it."},
    {"compare_exchange", compare_exchange, METH_VARARGS,
     "compare_exchange(buffer, offset, expected, desired): stores `desired` if the word is "
     "`expected`; whether it was."},
    {"add", add, METH_VARARGS, "add(buffer, offset, by): adds to the word; what it was before."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_mapping}, {0, NULL}};

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
