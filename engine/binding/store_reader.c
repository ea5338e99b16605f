/* heliograph.engine._store.Reader: the messages of a stream of a store. */
#include "store.h"

#include <stdio.h>
#include <unistd.h>

#include "store/files.h"
#include "store/reader.h"

/* By number, and then also the messages that wait for earlier ones (docs/store.md, section 10). */
enum { BY_NUMBER_AHEAD = HELIO_STORE_BY_TIME + 1 };

typedef struct store_reader {
    PyObject_HEAD helio_store_reader *reader;
    /* Messages that wait, which are read next; NULL: none. */
    char *ahead_path;
    helio_tsi tsi;
    helio_store_span range;
    store_rows rows;
} store_reader;

static char *path_ahead(const char *path) {
    const size_t bytes = strlen(path) + sizeof HELIO_STORE_AHEAD;
    char *ahead = PyMem_RawMalloc(bytes);
    if (ahead) {
        snprintf(ahead, bytes, "%s" HELIO_STORE_AHEAD, path);
    }
    return ahead;
}

/* Goes on with the messages that wait.  Returns 1, 0: none wait, or an error. */
static int go_ahead(store_reader *self) {
    char *path = self->ahead_path;
    self->ahead_path = NULL;
    int result = 0;
    if (path && access(path, F_OK) == 0) {
        helio_store_reader_close(self->reader);
        self->reader = NULL;
        result = helio_store_reader_open(path, &self->tsi, HELIO_STORE_BY_NUMBER, self->range,
                                         &self->reader);
        result = result ? result : 1;
    }
    PyMem_RawFree(path);
    return result;
}

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
    if (gsi_bytes != HELIO_GSI_BYTES || by < HELIO_STORE_BY_POSITION || by > BY_NUMBER_AHEAD) {
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes, and by is a number from 0 to 4");
    } else {
        self = (store_reader *)type->tp_alloc(type, 0);
    }
    if (self) {
        memcpy(tsi.gsi, gsi, HELIO_GSI_BYTES);
        self->tsi = tsi;
        self->range = (helio_store_span){first, last};
        const bool is_ahead = by == BY_NUMBER_AHEAD;
        const int error = helio_store_reader_open(
            PyBytes_AS_STRING(path), &tsi, is_ahead ? HELIO_STORE_BY_NUMBER : (helio_store_by)by,
            self->range, &self->reader);
        if (!error && is_ahead && !(self->ahead_path = path_ahead(PyBytes_AS_STRING(path)))) {
            PyErr_NoMemory();
            Py_CLEAR(self);
        } else if (error) {
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
    PyMem_RawFree(self->ahead_path);
    store_rows_end(&self->rows);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static int next_message(void *from, helio_store_message *out, uint64_t *position) {
    store_reader *self = from;
    int result = self->reader ? helio_store_reader_next(self->reader, out, position) : 0;
    if (result == 0 && (result = go_ahead(self)) == 1) {
        result = helio_store_reader_next(self->reader, out, position);
    }
    return result;
}

static int next_batch(store_reader *self, const uint8_t **whole, size_t *bytes) {
    const store_rows *rows = &self->rows;
    int result = self->reader ? helio_store_reader_batch(self->reader, rows->wanted,
                                                         rows->wanted_bytes, whole, bytes)
                              : 0;
    if (result == 0 && (result = go_ahead(self)) == 1) {
        result =
            helio_store_reader_batch(self->reader, rows->wanted, rows->wanted_bytes, whole, bytes);
    }
    return result;
}

/* Keeps the GIL: a message is valid only until the next one is read. */
static PyObject *reader_next(store_reader *self, PyObject *args) {
    return store_rows_take(&self->rows, args, next_message, self);
}

/* Gives the GIL away while it reads, so one thread at a time may use a reader. */
static PyObject *reader_batch(store_reader *self, PyObject *unused) {
    (void)unused;
    const uint8_t *whole;
    size_t bytes;
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = next_batch(self, &whole, &bytes);
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
