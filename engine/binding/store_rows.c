/* Messages of a store as Python objects: heliograph.engine.store.reader.StoredMessage. */
#include "store.h"

PyTypeObject *store_message_type;

static PyStructSequence_Field fields[] = {
    {"stream", "Identity of its stream, GSI:PORT."},
    {"position", "1, 2, 3 and so on in the order of writing, over all topics of the stream."},
    {"topic", "Name of its topic."},
    {"sequence", "Number of its packet; 0: unknown."},
    {"number", "Number of the message in its topic and stream."},
    {"submit_ns", "Wall clock time of submit, ns since 1970; 0: unknown."},
    {"receive_ns", "Wall clock time at which the store received it, ns since 1970."},
    {"recovered", "Its packet had been missing and was repaired."},
    {"data", "Payload."},
    {NULL, NULL},
};

enum { FIELDS = sizeof fields / sizeof *fields - 1 };

static PyStructSequence_Desc description = {
    .name = "heliograph.engine.store.reader.StoredMessage",
    .doc = "A message of a store.",
    .fields = fields,
    .n_in_sequence = FIELDS,
};

int store_message_type_add(PyObject *module) {
    if (!store_message_type) {
        store_message_type = PyStructSequence_NewType(&description);
    }
    return store_message_type
               ? PyModule_AddObjectRef(module, "StoredMessage", (PyObject *)store_message_type)
               : -1;
}

bool store_rows_begin(store_rows *rows, const helio_tsi *tsi, PyObject *topic) {
    if (topic != Py_None) {
        Py_ssize_t bytes;
        rows->wanted = PyUnicode_AsUTF8AndSize(topic, &bytes);
        if (!rows->wanted) {
            return false;
        }
        rows->wanted_bytes = (size_t)bytes;
        rows->wanted_topic = Py_NewRef(topic);
    }
    char text[HELIO_TSI_TEXT];
    rows->stream = PyUnicode_FromString(helio_tsi_format(tsi, text));
    return rows->stream != NULL;
}

void store_rows_end(store_rows *rows) {
    Py_CLEAR(rows->stream);
    Py_CLEAR(rows->wanted_topic);
    Py_CLEAR(rows->topic);
    Py_CLEAR(rows->held);
}

/* The name of a topic; messages that follow each other mostly have the same. */
static PyObject *topic_of(store_rows *rows, const helio_store_message *message) {
    Py_ssize_t bytes = 0;
    const char *last = rows->topic ? PyUnicode_AsUTF8AndSize(rows->topic, &bytes) : NULL;
    if (!last || (size_t)bytes != message->topic_bytes ||
        memcmp(last, message->topic, message->topic_bytes) != 0) {
        PyErr_Clear();
        Py_XSETREF(rows->topic,
                   PyUnicode_DecodeUTF8(message->topic, (Py_ssize_t)message->topic_bytes, NULL));
    }
    return Py_XNewRef(rows->topic);
}

static PyObject *row_of(store_rows *rows, const helio_store_message *message, uint64_t position) {
    PyObject *row = PyStructSequence_New(store_message_type);
    if (!row) {
        return NULL;
    }
    PyObject *const items[FIELDS] = {
        Py_NewRef(rows->stream),
        PyLong_FromUnsignedLongLong(position),
        topic_of(rows, message),
        PyLong_FromUnsignedLongLong(message->sequence),
        PyLong_FromUnsignedLongLong(message->number),
        PyLong_FromUnsignedLongLong(message->submit_ns),
        PyLong_FromUnsignedLongLong(message->receive_ns),
        PyBool_FromLong(message->flags & HELIO_STORE_RECOVERED),
        PyBytes_FromStringAndSize(message->payload, (Py_ssize_t)message->bytes),
    };
    bool is_whole = true;
    for (Py_ssize_t i = 0; i < FIELDS; i++) {
        is_whole = is_whole && items[i];
        PyStructSequence_SetItem(row, i, items[i]);
    }
    if (!is_whole) {
        Py_CLEAR(row);
    }
    return row;
}

static bool is_wanted(const store_rows *rows, const helio_store_message *message) {
    return !rows->wanted || (message->topic_bytes == rows->wanted_bytes &&
                             memcmp(message->topic, rows->wanted, rows->wanted_bytes) == 0);
}

/* The next row of the topic; NULL at the end, or with an exception. */
static PyObject *next_row(store_rows *rows, store_next next, void *from) {
    if (rows->held) {
        PyObject *row = rows->held;
        rows->held = NULL;
        return row;
    }
    helio_store_message message;
    uint64_t position;
    int result;
    while ((result = next(from, &message, &position)) == 1) {
        if (is_wanted(rows, &message)) {
            const bool follows = rows->has_number && message.number == rows->number + 1;
            rows->is_apart = rows->has_number && !follows;
            rows->has_number = true;
            rows->number = message.number;
            return row_of(rows, &message, position);
        }
    }
    if (result < 0) {
        store_raise(result);
    }
    return NULL;
}

PyObject *store_rows_take(store_rows *rows, PyObject *args, store_next next, void *from) {
    Py_ssize_t limit;
    int one_run = 0;
    if (!PyArg_ParseTuple(args, "n|p:next", &limit, &one_run)) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    while (list && PyList_GET_SIZE(list) < limit) {
        PyObject *row = next_row(rows, next, from);
        if (row && one_run && rows->is_apart && PyList_GET_SIZE(list) > 0) {
            rows->held = row;
            break;
        }
        if (row ? PyList_Append(list, row) < 0 : PyErr_Occurred() != NULL) {
            Py_CLEAR(list);
        }
        if (!row) {
            break;
        }
        Py_DECREF(row);
    }
    return list;
}
