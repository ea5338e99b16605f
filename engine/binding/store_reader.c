/* heliograph.engine._store.Reader: the messages of a stream of a store. */
#include "store.h"

#include "store/reader.h"

typedef struct store_reader {
    PyObject_HEAD helio_store_reader *reader;
    store_rows rows;
} store_reader;

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"path", "gsi", "port", "by", "first", "last", "topic", NULL};
    PyObject *path, *topic = Py_None;
    const char *gsi;
    Py_ssize_t gsi_bytes;
    helio_tsi tsi;
    int by;
    unsigned long long first, last;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&y#HiKK|O:Reader", names,
                                     PyUnicode_FSConverter, &path, &gsi, &gsi_bytes, &tsi.port, &by,
                                     &first, &last, &topic)) {
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
        } else if (!store_rows_begin(&self->rows, &tsi, topic)) {
            Py_CLEAR(self);
        }
    }
    Py_DECREF(path);
    return (PyObject *)self;
}

static void reader_dealloc(store_reader *self) {
    helio_store_reader_close(self->reader);
    store_rows_end(&self->rows);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static int next_message(void *from, helio_store_message *out, uint64_t *position) {
    return helio_store_reader_next(from, out, position);
}

/* Keeps the GIL: a message is valid only until the next one is read. */
static PyObject *reader_next(store_reader *self, PyObject *args) {
    return store_rows_take(&self->rows, args, next_message, self->reader);
}

/* Gives the GIL away while it reads, so one thread at a time may use a reader. */
static PyObject *reader_batch(store_reader *self, PyObject *unused) {
    (void)unused;
    const store_rows *rows = &self->rows;
    const uint8_t *whole;
    size_t bytes;
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result =
        helio_store_reader_batch(self->reader, rows->wanted, rows->wanted_bytes, &whole, &bytes);
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
     "next(limit, one_run): the next messages, at most limit; with one_run only those whose "
     "numbers "
     "follow each other; none at the end."},
    {"batch", (PyCFunction)reader_batch, METH_NOARGS,
     "The next batch with messages of the topic; None at the end."},
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
