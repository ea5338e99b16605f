/* heliograph.engine._store.Decoder: the messages of batches that another store has sent. */
#include "store.h"

#include "store/records.h"

typedef struct store_decoder {
    PyObject_HEAD helio_store_choice choice;
    /* Bytes of the batch that the records are read from; NULL before the first. */
    PyObject *whole;
    helio_store_records records;
    store_rows rows;
} store_decoder;

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"gsi", "port", "by", "first", "last", "topic", NULL};
    const char *gsi;
    Py_ssize_t gsi_bytes;
    helio_tsi tsi;
    int by;
    unsigned long long first, last;
    PyObject *topic = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "y#HiKK|O:Decoder", names, &gsi, &gsi_bytes,
                                     &tsi.port, &by, &first, &last, &topic)) {
        return NULL;
    }
    if (gsi_bytes != HELIO_GSI_BYTES || by < HELIO_STORE_BY_POSITION || by > HELIO_STORE_BY_TIME) {
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes, and by is a number from 0 to 3");
        return NULL;
    }
    memcpy(tsi.gsi, gsi, HELIO_GSI_BYTES);
    store_decoder *self = (store_decoder *)type->tp_alloc(type, 0);
    if (self) {
        self->choice = (helio_store_choice){(helio_store_by)by, {first, last}};
        if (!store_rows_begin(&self->rows, &tsi, topic)) {
            Py_CLEAR(self);
        }
    }
    return (PyObject *)self;
}

static void decoder_dealloc(store_decoder *self) {
    Py_XDECREF(self->whole);
    store_rows_end(&self->rows);
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

static int next_message(void *from, helio_store_message *out, uint64_t *position) {
    store_decoder *self = from;
    return helio_store_records_next(&self->records, &self->choice, out, position);
}

static PyObject *decoder_next(store_decoder *self, PyObject *args) {
    return store_rows_take(&self->rows, args, next_message, self);
}

static PyMethodDef methods[] = {
    {"begin", (PyCFunction)decoder_begin, METH_O, "begin(batch): read the messages of this batch."},
    {"next", (PyCFunction)decoder_next, METH_VARARGS,
     "next(limit, one_run): as Reader.next; none at the end of the batch."},
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
