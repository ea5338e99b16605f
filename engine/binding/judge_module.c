/* heliograph.monitor._judge: the judge of receivers (judge.h) over whole fleets.
 *
 * Python fills one helio_judged per receiver in a structured array whose layout is FIELDS, and the
 * cells of the receivers in an array of u64.  Everything here works on these arrays in place. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "judge.h"

enum { CELLS = sizeof(helio_receiver_cells) / sizeof(uint64_t) };
static const uint64_t ABSENT = UINT64_C(1) << 63; /* a cell that does not apply */

/* A contiguous buffer of items of `size` bytes, aligned for words; -1 with an exception set, and
 * nothing to release.  `most` receives the number of items. */
static int items_of(PyObject *object, int flags, size_t size, Py_buffer *view, size_t *count) {
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags) != 0) {
        return -1;
    }
    if ((size_t)view->len % size != 0 || (view->len > 0 && (uintptr_t)view->buf % 8 != 0)) {
        PyErr_Format(PyExc_ValueError, "a buffer of %zd bytes has no items of %zu bytes", view->len,
                     size);
        PyBuffer_Release(view);
        return -1;
    }
    *count = (size_t)view->len / size;
    return 0;
}

/* ---- gather ---- */

static uint64_t load(const char *place, int swapped) {
    uint64_t word;
    memcpy(&word, place, sizeof word);
    if (swapped) {
        word = __builtin_bswap64(word);
    }
    return word == ABSENT ? 0 : word;
}

static int gather_row(PyObject *row, const Py_ssize_t *offsets, int swapped, uint64_t *cells) {
    if (!PyBytes_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a record must be bytes");
        return -1;
    }
    const char *data = PyBytes_AS_STRING(row);
    const Py_ssize_t size = PyBytes_GET_SIZE(row);
    for (int n = 0; n < CELLS; n++) {
        if (offsets[n] > size - 8) {
            PyErr_Format(PyExc_ValueError, "a record of %zd bytes has no cell at %zd", size,
                         offsets[n]);
            return -1;
        }
        if (offsets[n] >= 0) {
            cells[n] = load(data + offsets[n], swapped);
        }
    }
    return 0;
}

static int parse_offsets(PyObject *tuple, Py_ssize_t *offsets) {
    if (PyTuple_GET_SIZE(tuple) != CELLS) {
        PyErr_Format(PyExc_ValueError, "there are %d cells, not %zd", (int)CELLS,
                     PyTuple_GET_SIZE(tuple));
        return -1;
    }
    for (int n = 0; n < CELLS; n++) {
        offsets[n] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, n));
        if (offsets[n] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    return 0;
}

static PyObject *gather(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *rows, *tuple, *places_object, *cells_object;
    int swapped;
    Py_ssize_t offsets[CELLS];
    Py_buffer places, cells;
    size_t count, room;
    if (!PyArg_ParseTuple(args, "O!O!pOO:gather", &PyList_Type, &rows, &PyTuple_Type, &tuple,
                          &swapped, &places_object, &cells_object) ||
        parse_offsets(tuple, offsets) != 0 ||
        items_of(places_object, 0, sizeof(int64_t), &places, &count) != 0) {
        return NULL;
    }
    if (items_of(cells_object, PyBUF_WRITABLE, sizeof(helio_receiver_cells), &cells, &room) != 0) {
        PyBuffer_Release(&places);
        return NULL;
    }
    int bad = (size_t)PyList_GET_SIZE(rows) != count;
    if (bad) {
        PyErr_SetString(PyExc_ValueError, "each record needs one place");
    }
    for (size_t n = 0; !bad && n < count; n++) {
        const int64_t place = ((const int64_t *)places.buf)[n];
        if (place < 0 || (uint64_t)place >= room) {
            PyErr_Format(PyExc_ValueError, "there is no place %lld", (long long)place);
            bad = 1;
        } else {
            uint64_t *own = (uint64_t *)cells.buf + (size_t)place * CELLS;
            bad = gather_row(PyList_GET_ITEM(rows, (Py_ssize_t)n), offsets, swapped, own);
        }
    }
    PyBuffer_Release(&places);
    PyBuffer_Release(&cells);
    return bad ? NULL : Py_NewRef(Py_None);
}

/* ---- positions of senders ---- */

typedef struct line {
    Py_buffer views[3];
    int held;
    helio_positions positions;
} line;

static void line_release(line *one) {
    while (one->held > 0) {
        PyBuffer_Release(&one->views[--one->held]);
    }
}

/* Takes the arrays of one sender: times, messages and bytes. */
static int line_take(line *one, PyObject *const *arrays) {
    size_t counts[3];
    one->held = 0;
    for (; one->held < 3; one->held++) {
        if (items_of(arrays[one->held], 0, 8, &one->views[one->held], &counts[one->held]) != 0) {
            line_release(one);
            return -1;
        }
    }
    if (counts[0] != counts[1] || counts[0] != counts[2]) {
        PyErr_SetString(PyExc_ValueError, "the arrays of a sender differ in length");
        line_release(one);
        return -1;
    }
    one->positions =
        (helio_positions){one->views[0].buf, one->views[1].buf, one->views[2].buf, counts[0]};
    return 0;
}

static PyObject *behind(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *arrays[3];
    unsigned long long message;
    line one;
    helio_way way;
    if (!PyArg_ParseTuple(args, "OOOK:behind", &arrays[0], &arrays[1], &arrays[2], &message) ||
        line_take(&one, arrays) != 0) {
        return NULL;
    }
    const int found = helio_positions_behind(&one.positions, message, &way);
    line_release(&one);
    if (!found) {
        return Py_NewRef(Py_None);
    }
    return Py_BuildValue("LKO", (long long)way.age_ns, (unsigned long long)way.bytes,
                         way.is_bounded ? Py_True : Py_False);
}

/* Takes the positions of all senders: a list of tuples of three arrays.  NULL with an exception. */
static line *take_lines(PyObject *list) {
    const Py_ssize_t count = PyList_GET_SIZE(list);
    line *lines = PyMem_Calloc((size_t)count + 1, sizeof *lines);
    if (lines == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *tuple = PyList_GET_ITEM(list, n), *arrays[3];
        if (!PyTuple_Check(tuple) ||
            !PyArg_ParseTuple(tuple, "OOO", &arrays[0], &arrays[1], &arrays[2]) ||
            line_take(&lines[n], arrays) != 0) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "the positions of a sender must be a tuple");
            }
            while (n > 0) {
                line_release(&lines[--n]);
            }
            PyMem_Free(lines);
            return NULL;
        }
    }
    return lines;
}

static PyObject *lags(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *objects[3], *list, *result = NULL;
    Py_buffer views[3];
    size_t counts[3];
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOO!:lags", &objects[0], &objects[1], &objects[2], &PyList_Type,
                          &list)) {
        return NULL;
    }
    line *lines = take_lines(list);
    if (lines == NULL) {
        return NULL;
    }
    for (; held < 3; held++) {
        const size_t size = held ? sizeof(helio_receiver_cells) : sizeof(helio_judged);
        if (items_of(objects[held], held ? 0 : PyBUF_WRITABLE, size, &views[held], &counts[held])) {
            goto done;
        }
    }
    if (counts[0] != counts[1] || counts[0] != counts[2]) {
        PyErr_SetString(PyExc_ValueError, "each receiver needs its cells, now and before");
        goto done;
    }
    const Py_ssize_t senders = PyList_GET_SIZE(list);
    for (size_t n = 0; n < counts[0]; n++) {
        helio_judged *one = (helio_judged *)views[0].buf + n;
        const helio_positions *own = NULL;
        if (one->is_watched && one->has_sender && one->sender >= 0 && one->sender < senders) {
            own = &lines[one->sender].positions;
        }
        helio_judged_lag(one, (const helio_receiver_cells *)views[1].buf + n,
                         (const helio_receiver_cells *)views[2].buf + n, own);
    }
    result = Py_NewRef(Py_None);
done:
    while (held > 0) {
        PyBuffer_Release(&views[--held]);
    }
    for (Py_ssize_t n = 0; n < PyList_GET_SIZE(list); n++) {
        line_release(&lines[n]);
    }
    PyMem_Free(lines);
    return result;
}

/* ---- Windows ---- */

typedef struct windows {
    PyObject_HEAD helio_window *found;
    size_t count;
} windows;

static PyObject *windows_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    if (PyTuple_GET_SIZE(args) > 0 || (keywords && PyDict_Size(keywords) > 0)) {
        PyErr_SetString(PyExc_TypeError, "Windows takes no arguments");
        return NULL;
    }
    return type->tp_alloc(type, 0);
}

static void windows_dealloc(windows *self) {
    PyMem_Free(self->found);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *windows_resize(windows *self, PyObject *number) {
    const Py_ssize_t wanted = PyLong_AsSsize_t(number);
    if (wanted == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (wanted < 0) {
        PyErr_Format(PyExc_ValueError, "there cannot be %zd windows", wanted);
        return NULL;
    }
    const size_t count = (size_t)wanted;
    helio_window *found = self->found;
    if (count > SIZE_MAX / sizeof *found ||
        (found = PyMem_Realloc(found, count ? count * sizeof *found : 1)) == NULL) {
        return PyErr_NoMemory();
    }
    for (size_t n = self->count; n < count; n++) {
        helio_window_init(&found[n]);
    }
    self->found = found;
    self->count = count;
    return Py_NewRef(Py_None);
}

static helio_window *window_of(windows *self, int64_t place) {
    if (place < 0 || (uint64_t)place >= self->count) {
        PyErr_Format(PyExc_IndexError, "there is no window %lld", (long long)place);
        return NULL;
    }
    return &self->found[place];
}

static PyObject *windows_clear(windows *self, PyObject *number) {
    const Py_ssize_t place = PyLong_AsSsize_t(number);
    if (place == -1 && PyErr_Occurred()) {
        return NULL;
    }
    helio_window *window = window_of(self, place);
    if (window == NULL) {
        return NULL;
    }
    helio_window_init(window);
    return Py_NewRef(Py_None);
}

static PyObject *windows_looks(windows *self, PyObject *number) {
    const Py_ssize_t place = PyLong_AsSsize_t(number);
    if (place == -1 && PyErr_Occurred()) {
        return NULL;
    }
    const helio_window *window = window_of(self, place);
    return window ? PyLong_FromLong(window->count) : NULL;
}

static PyObject *windows_judge(windows *self, PyObject *args) {
    PyObject *object;
    long long time_ns;
    Py_buffer view;
    size_t count;
    if (!PyArg_ParseTuple(args, "OL:judge", &object, &time_ns) ||
        items_of(object, PyBUF_WRITABLE, sizeof(helio_judged), &view, &count) != 0) {
        return NULL;
    }
    helio_judged *found = view.buf;
    int bad = 0;
    for (size_t n = 0; n < count && !bad; n++) {
        bad = found[n].window >= 0 && window_of(self, found[n].window) == NULL;
    }
    for (size_t n = 0; n < count && !bad; n++) {
        helio_window *own = found[n].window < 0 ? NULL : &self->found[found[n].window];
        helio_judged_class(&found[n], own, time_ns);
    }
    PyBuffer_Release(&view);
    return bad ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef windows_methods[] = {
    {"resize", (PyCFunction)windows_resize, METH_O, NULL},
    {"clear", (PyCFunction)windows_clear, METH_O, NULL},
    {"looks", (PyCFunction)windows_looks, METH_O, NULL},
    {"judge", (PyCFunction)windows_judge, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject windows_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "heliograph.monitor._judge.Windows",
    .tp_doc = "The last observations of receivers, and their classes.",
    .tp_basicsize = sizeof(windows),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = windows_new,
    .tp_dealloc = (destructor)windows_dealloc,
    .tp_methods = windows_methods,
};

/* ---- the module ---- */

static PyMethodDef functions[] = {
    {"gather", gather, METH_VARARGS, NULL},
    {"behind", behind, METH_VARARGS, NULL},
    {"lags", lags, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_judge",
    .m_doc = "The judge of receivers over whole fleets.",
    .m_size = -1,
    .m_methods = functions,
};

static int add_constants(PyObject *module) {
    PyObject *cells =
#define X(name) "s"
        Py_BuildValue("(" HELIO_RECEIVER_CELLS(X) ")"
#undef X
#define X(name) , #name
                      HELIO_RECEIVER_CELLS(X));
#undef X
    PyObject *fields =
#define X(type, format, name) "(ssn)"
        Py_BuildValue("(" HELIO_JUDGED(X) ")"
#undef X
#define X(type, format, name) , #name, format, (Py_ssize_t)offsetof(helio_judged, name)
                      HELIO_JUDGED(X));
#undef X
#define X(name, text) "s"
    PyObject *classes = Py_BuildValue("(" HELIO_JUDGE_CLASSES(X) ")"
#undef X
#define X(name, text) , text
                                      HELIO_JUDGE_CLASSES(X));
#undef X
#define X(name, text) "s"
    PyObject *bases = Py_BuildValue("(" HELIO_JUDGE_BASES(X) ")"
#undef X
#define X(name, text) , text
                                    HELIO_JUDGE_BASES(X));
#undef X
    const int bad = PyModule_AddObjectRef(module, "CELLS", cells) |
                    PyModule_AddObjectRef(module, "FIELDS", fields) |
                    PyModule_AddObjectRef(module, "CLASSES", classes) |
                    PyModule_AddObjectRef(module, "BASES", bases);
    Py_XDECREF(cells);
    Py_XDECREF(fields);
    Py_XDECREF(classes);
    Py_XDECREF(bases);
    return bad;
}

static int add_number(PyObject *module, const char *name, double value) {
    PyObject *number = PyFloat_FromDouble(value);
    const int bad = PyModule_AddObjectRef(module, name, number);
    Py_XDECREF(number);
    return bad;
}

PyMODINIT_FUNC PyInit__judge(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddType(module, &windows_type) != 0 ||
        add_constants(module) != 0 ||
        PyModule_AddIntConstant(module, "ROW_BYTES", (long)sizeof(helio_judged)) != 0 ||
        PyModule_AddIntConstant(module, "STEPS", HELIO_JUDGE_STEPS) != 0 ||
        PyModule_AddIntConstant(module, "RUNS", HELIO_RUNS) != 0 ||
        PyModule_AddIntConstant(module, "CLOSED", HELIO_CLOSED) != 0 ||
        PyModule_AddIntConstant(module, "ENDED", HELIO_ENDED) != 0 ||
        PyModule_AddIntConstant(module, "LAG_MESSAGES", HELIO_JUDGE_LAG_MESSAGES) != 0 ||
        add_number(module, "QUEUE_FILL", HELIO_JUDGE_QUEUE_FILL) != 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
