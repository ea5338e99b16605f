/* heliograph.engine._store.Decoder: the messages of batches that another store has sent. */
#include "store.h"

#include "store/records.h"

typedef struct store_decoder {
    PyObject_HEAD helio_store_choice choice;
    /* Bytes of the batch that the records are read from; NULL before the first. */
    PyObject *whole;
    helio_store_records records;
} store_decoder;

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"by", "first", "last", NULL};
    int by;
    unsigned long long first, last;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "iKK:Decoder", names, &by, &first, &last)) {
        return NULL;
    }
    if (by < HELIO_STORE_BY_POSITION || by > HELIO_STORE_BY_TIME) {
        PyErr_SetString(PyExc_ValueError, "by is a number from 0 to 3");
        return NULL;
    }
    store_decoder *self = (store_decoder *)type->tp_alloc(type, 0);
    if (self) {
        self->choice = (helio_store_choice){(helio_store_by)by, {first, last}};
    }
    return (PyObject *)self;
}

static void decoder_dealloc(store_decoder *self) {
    Py_XDECREF(self->whole);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *decoder_begin(store_decoder *self, PyObject *whole) {
    if (!PyBytes_Check(whole)) {
        PyErr_SetString(PyExc_TypeError, "a batch is bytes");
        return NULL;
    }
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(whole);
    const size_t size = (size_t)PyBytes_GET_SIZE(whole);
    const uint8_t *body = bytes + HELIO_STORE_HEAD_BYTES;
    helio_store_batch head = {0};
    if (helio_store_get_head(bytes, size, &head) != HELIO_STORE_OK ||
        head.body_bytes != size - HELIO_STORE_HEAD_BYTES ||
        helio_store_check_batch(&head, body, head.body_bytes) != HELIO_STORE_OK) {
        PyErr_Format(PyExc_ValueError, "%zu bytes are not a whole batch of a store", size);
        return NULL;
    }
    Py_XSETREF(self->whole, Py_NewRef(whole));
    helio_store_records_begin(&self->records, &head, body);
    Py_RETURN_NONE;
}

static PyObject *decoder_next(store_decoder *self, PyObject *args) {
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "n:next", &limit)) {
        return NULL;
    }
    PyObject *rows = PyList_New(0);
    helio_store_message message;
    uint64_t position;
    while (rows && PyList_GET_SIZE(rows) < limit &&
           helio_store_records_next(&self->records, &self->choice, &message, &position) == 1) {
        PyObject *row = store_row(&message, position);
        if (!row || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

static PyMethodDef methods[] = {
    {"begin", (PyCFunction)decoder_begin, METH_O, "begin(batch): read the messages of this batch."},
    {"next", (PyCFunction)decoder_next, METH_VARARGS,
     "next(limit): the next messages, at most limit; none at the end of the batch."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject store_decoder_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "heliograph.engine._store.Decoder",
    .tp_basicsize = sizeof(store_decoder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The messages of batches that another store has sent.",
    .tp_new = decoder_new,
    .tp_dealloc = (destructor)decoder_dealloc,
    .tp_methods = methods,
};
