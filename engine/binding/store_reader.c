/* heliograph.engine._store.Reader: the messages of a stream of a store. */
#include "store.h"

#include "store/reader.h"

typedef struct store_reader {
    PyObject_HEAD helio_store_reader *reader;
} store_reader;

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"path", "gsi", "port", "by", "first", "last", NULL};
    PyObject *path;
    const char *gsi;
    Py_ssize_t gsi_bytes;
    helio_tsi tsi;
    int by;
    unsigned long long first, last;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&y#HiKK:Reader", names,
                                     PyUnicode_FSConverter, &path, &gsi, &gsi_bytes, &tsi.port, &by,
                                     &first, &last)) {
        return NULL;
    }
    store_reader *self = NULL;
    if (gsi_bytes != HELIO_GSI_BYTES || by < HELIO_STORE_BY_POSITION || by > HELIO_STORE_BY_TIME) {
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes, and by is a number from 0 to 3");
    } else {
        self = (store_reader *)type->tp_alloc(type, 0);
    }
    if (self) {
        memcpy(tsi.gsi, gsi, HELIO_GSI_BYTES);
        const int error = helio_store_reader_open(PyBytes_AS_STRING(path), &tsi, (helio_store_by)by,
                                                  (helio_store_span){first, last}, &self->reader);
        if (error) {
            store_raise(error);
            Py_CLEAR(self);
        }
    }
    Py_DECREF(path);
    return (PyObject *)self;
}

static void reader_dealloc(store_reader *self) {
    helio_store_reader_close(self->reader);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Keeps the GIL: a message is valid only until the next one is read. */
static PyObject *reader_next(store_reader *self, PyObject *args) {
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "n:next", &limit)) {
        return NULL;
    }
    PyObject *rows = PyList_New(0);
    while (rows && PyList_GET_SIZE(rows) < limit) {
        helio_store_message message;
        uint64_t position;
        const int result = helio_store_reader_next(self->reader, &message, &position);
        if (result == 0) {
            break;
        }
        PyObject *row = result < 0 ? store_raise(result) : store_row(&message, position);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

/* Gives the GIL away while it reads, so one thread at a time may use a reader. */
static PyObject *reader_batch(store_reader *self, PyObject *args) {
    const char *topic;
    Py_ssize_t topic_bytes;
    if (!PyArg_ParseTuple(args, "z#:batch", &topic, &topic_bytes)) {
        return NULL;
    }
    const uint8_t *whole;
    size_t bytes;
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = helio_store_reader_batch(self->reader, topic, (size_t)topic_bytes, &whole, &bytes);
    Py_END_ALLOW_THREADS;
    if (result < 0) {
        return store_raise(result);
    }
    if (result == 0) {
        Py_RETURN_NONE;
    }
    return PyBytes_FromStringAndSize((const char *)whole, (Py_ssize_t)bytes);
}

static PyMethodDef methods[] = {
    {"next", (PyCFunction)reader_next, METH_VARARGS,
     "next(limit): the next messages, at most limit; none at the end."},
    {"batch", (PyCFunction)reader_batch, METH_VARARGS,
     "batch(topic): the next batch with messages of the topic (None: of any); None at the end."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject store_reader_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "heliograph.engine._store.Reader",
    .tp_basicsize = sizeof(store_reader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The messages of a stream of a store.",
    .tp_new = reader_new,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_methods = methods,
};
