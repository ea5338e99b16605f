/* Message: what a receiver hands out.  Its bytes are copied out of the library's queue once,
 * straight into the bytes object.
 *
 * It refers to bytes and texts only, so it cannot be part of a cycle and is none of the garbage
 * collector's business.  Spent messages wait in a free list, which makes a new one about as
 * cheap as the bytes in it. */
#include "core.h"

#include <structmember.h>

#define FREE_MESSAGES 512

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

PyObject *core_message_new(const helio_message *message, PyObject *topic, PyObject *stream) {
    PyObject *data = PyBytes_FromStringAndSize(message->data, (Py_ssize_t)message->length);
    if (data == NULL) {
        return NULL;
    }
    core_message *self;
    if (free_count > 0) {
        self = free_messages[--free_count];
        (void)PyObject_Init((PyObject *)self, &core_message_type);
    } else {
        self = PyObject_New(core_message, &core_message_type);
        if (self == NULL) {
            Py_DECREF(data);
            return NULL;
        }
    }
    self->data = data;
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
        PyObject_Free(free_messages[--free_count]);
    }
}

static void message_dealloc(PyObject *op) {
    core_message *self = (core_message *)op;
    Py_DECREF(self->data);
    Py_DECREF(self->topic);
    Py_DECREF(self->stream);
    if (free_count < FREE_MESSAGES) {
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
