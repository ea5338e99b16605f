/* heliograph.engine._store: the files of a message store, for `heliograph store` and tools. */
#include "store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "store/files.h"
#include "store/topics.h"

PyObject *store_raise(int error) {
    PyObject *module = PyImport_ImportModule("heliograph.engine.errors");
    PyObject *exception =
        module ? PyObject_CallMethod(module, "from_code", "is", error, helio_error_sentence())
               : NULL;
    if (exception) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
    Py_XDECREF(exception);
    Py_XDECREF(module);
    return NULL;
}

static const char *result_text(helio_store_result result) {
    static const char *const texts[] = {"ok", "incomplete", "damaged", "other version"};
    return texts[result];
}

static PyObject *segment_row(int folder, const helio_store_segment *segment) {
    char tsi[HELIO_TSI_TEXT];
    uint64_t first_ns = UINT64_MAX, last_ns = 0, messages = 0;
    for (size_t i = 0; i < segment->count; i++) {
        const helio_store_batch *batch = &segment->batches[i];
        messages += batch->messages;
        first_ns = batch->times.first < first_ns ? batch->times.first : first_ns;
        last_ns = batch->times.last > last_ns ? batch->times.last : last_ns;
    }
    const helio_store_result index =
        segment->is_indexed ? HELIO_STORE_OK : helio_store_index_check(folder, segment);
    return Py_BuildValue(
        "(sKsKKKKKKssK)", helio_tsi_format(&segment->id.tsi, tsi),
        (unsigned long long)segment->id.number, result_text(segment->header_result),
        (unsigned long long)segment->header.position, (unsigned long long)messages,
        (unsigned long long)segment->bytes, (unsigned long long)segment->end,
        (unsigned long long)(segment->count ? first_ns : 0), (unsigned long long)last_ns,
        result_text(segment->tail), result_text(index), (unsigned long long)segment->count);
}

/* ids(path) */
static PyObject *ids(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path;
    if (!PyArg_ParseTuple(args, "O&:ids", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    const int folder = helio_store_folder_open(PyBytes_AS_STRING(path));
    Py_DECREF(path);
    helio_store_id *found = NULL;
    size_t count = 0;
    const int error = folder < 0 ? folder : helio_store_list(folder, NULL, &found, &count);
    if (folder >= 0) {
        close(folder);
    }
    PyObject *list = error ? store_raise(error) : PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *id =
            Py_BuildValue("(y#HK)", (const char *)found[i].tsi.gsi, (Py_ssize_t)HELIO_GSI_BYTES,
                          (unsigned short)found[i].tsi.port, (unsigned long long)found[i].number);
        if (id) {
            PyList_SET_ITEM(list, (Py_ssize_t)i, id);
        } else {
            Py_CLEAR(list);
        }
    }
    free(found);
    return list;
}

static bool exists(int folder, const helio_store_id *id) {
    char name[HELIO_STORE_NAME_BYTES];
    return faccessat(folder, helio_store_name(name, id, "seg"), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* segment(path, id, thorough) */
static PyObject *segment(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path;
    const char *gsi;
    Py_ssize_t gsi_bytes;
    helio_store_id id;
    unsigned long long number;
    int thorough;
    if (!PyArg_ParseTuple(args, "O&(y#HK)p:segment", PyUnicode_FSConverter, &path, &gsi, &gsi_bytes,
                          &id.tsi.port, &number, &thorough)) {
        return NULL;
    }
    if (gsi_bytes != HELIO_GSI_BYTES) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes");
        return NULL;
    }
    memcpy(id.tsi.gsi, gsi, HELIO_GSI_BYTES);
    id.number = number;
    const int folder = helio_store_folder_open(PyBytes_AS_STRING(path));
    Py_DECREF(path);
    if (folder < 0) {
        return store_raise(folder);
    }
    helio_store_segment found;
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_store_segment_read(
        folder, &id, thorough ? HELIO_STORE_BY_RECORD : HELIO_STORE_BY_INDEX, &found);
    Py_END_ALLOW_THREADS;
    PyObject *row = NULL;
    if (!exists(folder, &id)) {
        row = Py_NewRef(Py_None);
    } else if (error) {
        store_raise(error);
    } else {
        row = segment_row(folder, &found);
    }
    helio_store_segment_release(&found);
    close(folder);
    return row;
}

static int append_all(helio_store_stream *stream, PyObject *messages) {
    PyObject *items = PySequence_Fast(messages, "messages are a sequence");
    int error = items ? 0 : 1;
    for (Py_ssize_t i = 0; !error && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (!PyTuple_Check(item)) {
            PyErr_SetString(PyExc_TypeError, "a message is a tuple");
            error = 1;
            break;
        }
        const char *payload;
        unsigned long long sequence, number, submit_ns, receive_ns;
        helio_store_message message = {0};
        Py_ssize_t topic_bytes, bytes;
        uint64_t position;
        if (!PyArg_ParseTuple(item, "s#KKKKby#", &message.topic, &topic_bytes, &sequence, &number,
                              &submit_ns, &receive_ns, &message.flags, &payload, &bytes)) {
            error = 1;
            break;
        }
        message.topic_bytes = (size_t)topic_bytes;
        message.payload = payload;
        message.bytes = (size_t)bytes;
        message.sequence = sequence;
        message.number = number;
        message.submit_ns = submit_ns;
        message.receive_ns = receive_ns;
        error = helio_store_append(stream, &message, 0, &position);
    }
    Py_XDECREF(items);
    return error;
}

/* append(path, gsi, port, source, messages, batch_bytes, segment_bytes) */
static PyObject *append(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path, *messages;
    const char *gsi, *source;
    Py_ssize_t gsi_bytes, batch_bytes, segment_bytes;
    helio_tsi tsi;
    if (!PyArg_ParseTuple(args, "O&y#HsOnn:append", PyUnicode_FSConverter, &path, &gsi, &gsi_bytes,
                          &tsi.port, &source, &messages, &batch_bytes, &segment_bytes)) {
        return NULL;
    }
    if (gsi_bytes != HELIO_GSI_BYTES || batch_bytes < 0 || segment_bytes < 0) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes, and sizes are not negative");
        return NULL;
    }
    memcpy(tsi.gsi, gsi, HELIO_GSI_BYTES);
    helio_store_options options = helio_store_defaults();
    options.batch_bytes = (size_t)batch_bytes;
    options.segment_bytes = (uint64_t)segment_bytes;
    helio_store *store;
    helio_store_stream *stream;
    int error = helio_store_open(PyBytes_AS_STRING(path), &options, NULL, &store);
    Py_DECREF(path);
    if (!error) {
        error = helio_store_stream_open(store, &tsi, source, &stream);
        error = error ? error : append_all(stream, messages);
        const int closing = helio_store_close(store);
        error = error ? error : closing;
    }
    if (error) {
        return error > 0 ? NULL : store_raise(error);
    }
    Py_RETURN_NONE;
}

/* last_number(path, gsi, port, topic) */
static PyObject *last_number(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *path;
    const char *gsi, *topic;
    Py_ssize_t gsi_bytes, topic_bytes;
    helio_tsi tsi;
    if (!PyArg_ParseTuple(args, "O&y#Hs#:last_number", PyUnicode_FSConverter, &path, &gsi,
                          &gsi_bytes, &tsi.port, &topic, &topic_bytes)) {
        return NULL;
    }
    if (gsi_bytes != HELIO_GSI_BYTES) {
        Py_DECREF(path);
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes");
        return NULL;
    }
    memcpy(tsi.gsi, gsi, HELIO_GSI_BYTES);
    uint64_t number = 0;
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result =
        helio_store_last_number(PyBytes_AS_STRING(path), &tsi, topic, (size_t)topic_bytes, &number);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (result < 0) {
        return store_raise(result);
    }
    return result == 1 ? PyLong_FromUnsignedLongLong(number) : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"ids", ids, METH_VARARGS,
     "The segments of a store in order: GSI, port and number; argument: path."},
    {"segment", segment, METH_VARARGS,
     "A segment, None when it is gone; arguments: path, id, whether every record is checked."},
    {"append", append, METH_VARARGS,
     "Append messages to a stream of a store; arguments: path, GSI, port, source, messages, "
     "batch_bytes, segment_bytes."},
    {"last_number", last_number, METH_VARARGS,
     "The number of the last message of a topic, None: there is none; arguments: path, GSI, port, "
     "topic."},
    {NULL, NULL, 0, NULL},
};

static int add_types(PyObject *module) {
    PyTypeObject *const types[] = {&store_keeper_type, &store_reader_type, &store_decoder_type};
    int error = store_message_type_add(module);
    for (size_t i = 0; i < sizeof types / sizeof *types && !error; i++) {
        error = PyModule_AddType(module, types[i]);
    }
    return error;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_types}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.engine._store",
    .m_doc = "The files of a message store.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__store(void) {
    return PyModuleDef_Init(&module);
}
