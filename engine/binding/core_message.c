/* Message: what a receiver hands out.  Its bytes are copied out of the library's queue once,
 * straight into the bytes object.
 *
 * It refers to bytes and texts only, so it cannot be part of a cycle and is none of the garbage
 * collector's business.  Spent messages wait in a free list.  One whose bytes nobody else has keeps
 * them there: the next message of the same length is written into them, which saves the allocation
 * of an object per message. */
#include "core.h"

#include <structmember.h>

#define FREE_MESSAGES 512
#define KEPT_BYTES_MAX 256 /* longest data kept in the free list, which so holds 128 KiB at most */

struct core_message {
    PyObject ob_base;
    PyObject *data;
    PyObject *topic;
    PyObject *stream;
    uint64_t number;
    int64_t submit_ns;
    int64_t receive_ns;
    bool recovered;
};

static core_message *free_messages[FREE_MESSAGES];
static size_t free_count;

/* Nobody else has the bytes, so they may be written again, as CPython's _PyBytes_Resize does. */
static bool may_keep(PyObject *data) {
    return Py_REFCNT(data) == 1 && PyBytes_GET_SIZE(data) <= KEPT_BYTES_MAX;
}

/* Writes the bytes kept with a spent message anew. */
static void rewrite(PyObject *data, const helio_message *message) {
    memcpy(PyBytes_AS_STRING(data), message->data, message->length);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* the member stays, for such uses */
    ((PyBytesObject *)data)->ob_shash = -1;                /* the hash of what it was */
#pragma GCC diagnostic pop
}

/* A message from the free list, with its data; NULL: there is none, or no memory. */
static core_message *reuse(const helio_message *message) {
    core_message *self = free_messages[free_count - 1];
    PyObject *data = self->data;
    if (data != NULL && (size_t)PyBytes_GET_SIZE(data) == message->length) {
        rewrite(data, message);
    } else {
        data = PyBytes_FromStringAndSize(message->data, (Py_ssize_t)message->length);
        if (data == NULL) {
            return NULL;
        }
        Py_XDECREF(self->data);
        self->data = data;
    }
    free_count--;
    _Py_NewReference((PyObject *)self); /* its type is what it was */
    return self;
}

static core_message *create(const helio_message *message) {
    PyObject *data = PyBytes_FromStringAndSize(message->data, (Py_ssize_t)message->length);
    core_message *self = data != NULL ? PyObject_New(core_message, &core_message_type) : NULL;
    if (self == NULL) {
        Py_XDECREF(data);
        return NULL;
    }
    self->data = data;
    return self;
}

PyObject *core_message_new(const helio_message *message, PyObject *topic, PyObject *stream) {
    core_message *self = free_count > 0 ? reuse(message) : create(message);
    if (self == NULL) {
        return NULL;
    }
    self->topic = Py_NewRef(topic);
    self->stream = Py_NewRef(stream);
    self->number = message->number;
    self->submit_ns = message->submit_ns;
    self->receive_ns = message->receive_ns;
    self->recovered = (message->flags & HELIO_MESSAGE_RECOVERED) != 0;
    return (PyObject *)self;
}

void core_message_clear_freelist(void) {
    while (free_count > 0) {
        core_message *spent = free_messages[--free_count];
        Py_XDECREF(spent->data);
        PyObject_Free(spent);
    }
}

static void message_dealloc(PyObject *op) {
    core_message *self = (core_message *)op;
    Py_DECREF(self->topic);
    Py_DECREF(self->stream);
    const bool is_kept = free_count < FREE_MESSAGES;
    if (!is_kept || !may_keep(self->data)) {
        Py_CLEAR(self->data);
    }
    if (is_kept) {
        free_messages[free_count++] = self;
    } else {
        PyObject_Free(self);
    }
}

static PyObject *message_repr(PyObject *op) {
    core_message *self = (core_message *)op;
    return PyUnicode_FromFormat("<Message %llu of %U, %zd bytes%s>",
                                (unsigned long long)self->number, self->topic,
                                PyBytes_GET_SIZE(self->data), self->recovered ? ", recovered" : "");
}

static Py_ssize_t message_length(PyObject *op) {
    return PyBytes_GET_SIZE(((core_message *)op)->data);
}

static int message_get_buffer(PyObject *op, Py_buffer *view, int flags) {
    PyObject *data = ((core_message *)op)->data;
    return PyBuffer_FillInfo(view, op, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), 1, flags);
}

static PyObject *message_bytes(PyObject *op, PyObject *ignored) {
    (void)ignored;
    return Py_NewRef(((core_message *)op)->data);
}

static PyMethodDef message_methods[] = {
    {"__bytes__", message_bytes, METH_NOARGS, "The data, without a copy."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef message_members[] = {
    {"data", T_OBJECT_EX, offsetof(core_message, data), READONLY, "What was sent, as bytes."},
    {"topic", T_OBJECT_EX, offsetof(core_message, topic), READONLY, "Name of the topic."},
    {"stream", T_OBJECT_EX, offsetof(core_message, stream), READONLY,
     "Identity of the stream it came on, the `stream` of its transmitter."},
    {"number", T_ULONGLONG, offsetof(core_message, number), READONLY,
     "Number of the message within its topic and stream, from 0. A jump is a loss. With "
     "payload=\"raw\" that of its packet; a message in several packets takes as many numbers."},
    {"submit_ns", T_LONGLONG, offsetof(core_message, submit_ns), READONLY,
     "When the source submitted the oldest message of its packet: ns since 1970, wall clock. 0 "
     "with "
     "payload=\"raw\": it is not told."},
    {"receive_ns", T_LONGLONG, offsetof(core_message, receive_ns), READONLY,
     "When its packet was read: ns since 1970, wall clock."},
    {"recovered", T_BOOL, offsetof(core_message, recovered), READONLY,
     "True when its packet had been missing."},
    {NULL, 0, 0, 0, NULL},
};

static PySequenceMethods message_as_sequence = {.sq_length = message_length};
static PyBufferProcs message_as_buffer = {.bf_getbuffer = message_get_buffer};

PyTypeObject core_message_type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "heliograph.engine.Message",
    .tp_doc = "One message received: its bytes, and where and when they came from.\n\n"
              "It is bytes-like itself: len(message), bytes(message) and memoryview(message) work.",
    .tp_basicsize = sizeof(core_message),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = message_dealloc,
    .tp_repr = message_repr,
    .tp_as_sequence = &message_as_sequence,
    .tp_as_buffer = &message_as_buffer,
    .tp_methods = message_methods,
    .tp_members = message_members,
};
