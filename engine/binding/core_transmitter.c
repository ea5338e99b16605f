/* Transmitter: sending is one call into the library with the GIL held, because it never blocks;
 * only waiting for room lets go of it.  Within a callback nothing waits: the thread that would
 * make room is the one that runs the callback. */
#include "core.h"

#include <structmember.h>

#define CHUNK 256 /* messages given to the library at once; their table lives on the stack */

static void transmitter_destroy(core_child *child) {
    helio_transmitter_destroy(((core_transmitter *)child)->handle);
}

static PyObject *transmitter_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"instance", "endpoint", "topic", "options", "on_ack", NULL};
    core_instance *instance;
    const char *endpoint, *topic, *options = NULL;
    PyObject *on_ack = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!ss|zO:Transmitter", names,
                                     &core_instance_type, &instance, &endpoint, &topic, &options,
                                     &on_ack)) {
        return NULL;
    }
    bool listens = on_ack != Py_None;
    if (listens && !PyCallable_Check(on_ack)) {
        PyErr_Format(PyExc_TypeError, "on_ack must be callable, not %R", on_ack);
        return NULL;
    }
    core_close_waiting();
    core_transmitter *self = (core_transmitter *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    core_child *child = &self->child;
    child->gate.instance = child->instance = (core_instance *)Py_NewRef((PyObject *)instance);
    child->gate.what = "transmitter";
    child->destroy = transmitter_destroy;
    child->endpoint = PyUnicode_FromString(endpoint);
    child->topic = PyUnicode_FromString(topic);
    self->on_ack = listens ? Py_NewRef(on_ack) : NULL;
    if (child->endpoint == NULL || child->topic == NULL ||
        !core_enter(&instance->gate, CORE_WORK)) {
        goto failed;
    }
    PyThreadState *python = PyEval_SaveThread();
    int result =
        helio_transmitter_create(instance->handle, endpoint, topic, options, &self->handle);
    if (result == 0 && listens) { /* refused within callbacks only, and this is none */
        (void)helio_transmitter_on_ack(self->handle, core_transmitter_on_ack, self);
    }
    PyEval_RestoreThread(python);
    if (result == 0) {
        core_child_opened(child, listens);
    }
    if (!core_leave(&instance->gate)) {
        goto failed;
    }
    if (result < 0) {
        core_raise(result);
        goto failed;
    }
    self->stream = PyUnicode_DecodeFSDefault(helio_transmitter_stream(self->handle));
    if (self->stream == NULL) {
        goto failed;
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

int core_transmitter_wait(core_transmitter *self, core_waiting *wait, size_t argument,
                          int64_t deadline) {
    for (;;) {
        if (!core_enter(&self->child.gate, CORE_WORK)) {
            return -1;
        }
        int64_t slice = core_slice(deadline);
        PyThreadState *python = PyEval_SaveThread();
        int result = wait(self, argument, slice);
        PyEval_RestoreThread(python);
        if (!core_leave(&self->child.gate)) {
            return -1;
        }
        if (result == 0) {
            return 0;
        }
        if (result != HELIO_ERR_TIMEOUT || slice == 0) {
            core_raise(result);
            return -1;
        }
        if (PyErr_CheckSignals() < 0) {
            return -1;
        }
    }
}

static int wait_for_room(core_transmitter *self, size_t length, int64_t slice_ns) {
    return helio_transmitter_wait(self->handle, length, slice_ns);
}

int core_transmitter_refused(core_transmitter *self, int result, size_t length, int64_t timeout_ns,
                             int64_t *deadline) {
    if (result != HELIO_ERR_WOULD_BLOCK || timeout_ns == 0 ||
        core_in_callback(self->child.instance)) {
        core_raise(result);
        return -1;
    }
    if (*deadline == 0) {
        *deadline = core_deadline(timeout_ns);
    }
    return core_transmitter_wait(self, wait_for_room, length, *deadline);
}

/* When a message was to be sent; 0: it has no such time. */
static int intended_time(PyObject *value, int64_t *intended_ns) {
    *intended_ns = 0;
    if (value == Py_None) {
        return 0;
    }
    long long given = PyLong_AsLongLong(value);
    if (given == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (given <= 0) {
        PyErr_Format(
            PyExc_ValueError,
            "intended_ns must be None or ns since 1970 (time.time_ns), more than 0, not %R", value);
        return -1;
    }
    *intended_ns = given;
    return 0;
}

/* One call into the library: 0 and its result, or -1 with an exception. */
static inline int send_once(core_transmitter *self, const void *data, size_t length,
                            int64_t intended_ns, int *result) {
    if (!core_enter(&self->child.gate, CORE_SEND)) {
        return -1;
    }
    *result = intended_ns ? helio_transmitter_send_intended(self->handle, data, length, intended_ns)
                          : helio_transmitter_send(self->handle, data, length);
    return core_leave(&self->child.gate) ? 0 : -1;
}

/* The library refused with `result`: waits and tries again, as long as that is of use. */
__attribute__((noinline)) static int send_again(core_transmitter *self, const void *data,
                                                size_t length, int64_t timeout_ns,
                                                int64_t intended_ns, int result) {
    int64_t deadline = 0;
    while (result != 0) {
        if (core_transmitter_refused(self, result, length, timeout_ns, &deadline) < 0 ||
            send_once(self, data, length, intended_ns, &result) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Without timeout and intended time, as nearly all are sent. */
static inline int send_plain(core_transmitter *self, const void *data, size_t length) {
    int result;
    if (send_once(self, data, length, 0, &result) < 0) {
        return -1;
    }
    return result == 0 ? 0 : send_again(self, data, length, HELIO_FOREVER, 0, result);
}

static int send_with(core_transmitter *self, const void *data, size_t length, PyObject *timeout,
                     PyObject *intended) {
    int64_t timeout_ns = HELIO_FOREVER, intended_ns = 0;
    int result;
    if ((timeout != NULL && core_timeout(timeout, &timeout_ns) < 0) ||
        (intended != NULL && intended_time(intended, &intended_ns) < 0) ||
        send_once(self, data, length, intended_ns, &result) < 0) {
        return -1;
    }
    return send_again(self, data, length, timeout_ns, intended_ns, result);
}

static PyObject *transmitter_send(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                  PyObject *keywords) {
    static const char *const names[] = {"data", "timeout", "intended_ns"};
    core_transmitter *self = (core_transmitter *)op;
    int result;
    if (count == 1 && keywords == NULL && PyBytes_CheckExact(args[0])) {
        PyObject *data = Py_NewRef(args[0]); /* waiting may run code that drops it */
        result = send_plain(self, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data));
        Py_DECREF(data);
        return result < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *values[3];
    if (core_arguments("send", args, count, keywords, names, 3, 1, values) < 0) {
        return NULL;
    }
    PyObject *data = values[0];
    if (PyBytes_CheckExact(data)) {
        Py_INCREF(data);
        result = send_with(self, PyBytes_AS_STRING(data), (size_t)PyBytes_GET_SIZE(data), values[1],
                           values[2]);
        Py_DECREF(data);
    } else {
        Py_buffer view;
        if (core_buffer(data, PyBUF_SIMPLE, &view) < 0) {
            return NULL;
        }
        result = send_with(self, view.buf, (size_t)view.len, values[1], values[2]);
        PyBuffer_Release(&view);
    }
    if (result < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Messages on their way to the library.  What they point to is kept alive, and still, by
 * `owners` and `views`: a callback of a polled engine may change the sequence meanwhile. */
typedef struct chunk {
    helio_buffer buffers[CHUNK];
    PyObject *owners[CHUNK]; /* the bytes */
    Py_buffer *views;        /* of the others; made when first needed */
    size_t count, owner_count, view_count;
} chunk;

static int chunk_fill(chunk *chunk, PyObject *messages, size_t first) {
    size_t size = (size_t)PySequence_Fast_GET_SIZE(messages);
    PyObject **items = PySequence_Fast_ITEMS(messages);
    chunk->count = 0;
    for (size_t i = first; i < size && chunk->count < CHUNK; i++) {
        PyObject *data = items[i];
        helio_buffer *buffer = &chunk->buffers[chunk->count];
        if (PyBytes_CheckExact(data)) {
            chunk->owners[chunk->owner_count++] = Py_NewRef(data);
            buffer->data = PyBytes_AS_STRING(data);
            buffer->length = (size_t)PyBytes_GET_SIZE(data);
        } else {
            if (chunk->views == NULL) {
                chunk->views = PyMem_New(Py_buffer, CHUNK);
                if (chunk->views == NULL) {
                    PyErr_NoMemory();
                    return -1;
                }
            }
            Py_buffer *view = &chunk->views[chunk->view_count];
            if (core_buffer(data, PyBUF_SIMPLE, view) < 0) {
                return -1;
            }
            items = PySequence_Fast_ITEMS(messages); /* that may have run code of others */
            size = (size_t)PySequence_Fast_GET_SIZE(messages);
            chunk->view_count++;
            buffer->data = view->buf;
            buffer->length = (size_t)view->len;
        }
        chunk->count++;
    }
    return 0;
}

static void chunk_release(chunk *chunk) {
    while (chunk->owner_count > 0) {
        Py_DECREF(chunk->owners[--chunk->owner_count]);
    }
    while (chunk->view_count > 0) {
        PyBuffer_Release(&chunk->views[--chunk->view_count]);
    }
}

/* Sends from `*sent` on until all are sent.  It reads the sequence again after each wait, because
 * the caller may have changed it. */
static int transmitter_send_all(core_transmitter *self, PyObject *messages, int64_t timeout_ns,
                                chunk *chunk, size_t *sent) {
    int64_t deadline = 0;
    while (*sent < (size_t)PySequence_Fast_GET_SIZE(messages)) {
        if (chunk_fill(chunk, messages, *sent) < 0) {
            return -1;
        }
        if (!core_enter(&self->child.gate, CORE_SEND)) {
            return -1;
        }
        size_t accepted = 0;
        int result =
            helio_transmitter_send_many(self->handle, chunk->buffers, chunk->count, &accepted);
        *sent += accepted;
        size_t length = accepted < chunk->count ? chunk->buffers[accepted].length : 0;
        chunk_release(chunk);
        if (!core_leave(&self->child.gate)) {
            return -1;
        }
        if (result < 0 &&
            core_transmitter_refused(self, result, length, timeout_ns, &deadline) < 0) {
            return -1;
        }
    }
    return 0;
}

static PyObject *transmitter_send_many(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords) {
    static const char *const names[] = {"messages", "timeout"};
    PyObject *values[2];
    int64_t timeout_ns;
    if (core_arguments("send_many", args, count, keywords, names, 2, 1, values) < 0 ||
        core_timeout(values[1], &timeout_ns) < 0) {
        return NULL;
    }
    if (PyObject_CheckBuffer(values[0])) { /* bytes are a sequence too, of numbers */
        PyErr_SetString(PyExc_TypeError,
                        "send_many() needs a sequence of messages, not one message");
        return NULL;
    }
    PyObject *messages = PySequence_Fast(values[0], "send_many() needs a sequence of messages");
    if (messages == NULL) {
        return NULL;
    }
    chunk chunk;
    chunk.views = NULL;
    chunk.count = chunk.owner_count = chunk.view_count = 0;
    size_t sent = 0;
    int result = transmitter_send_all((core_transmitter *)op, messages, timeout_ns, &chunk, &sent);
    chunk_release(&chunk);
    PyMem_Free(chunk.views);
    Py_DECREF(messages);
    if (result < 0) {
        core_tell_accepted(sent);
        return NULL;
    }
    return PyLong_FromSize_t(sent);
}

static int wait_flushed(core_transmitter *self, size_t unused, int64_t slice_ns) {
    (void)unused;
    return helio_transmitter_flush(self->handle, slice_ns);
}

static PyObject *transmitter_flush(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                   PyObject *keywords) {
    static const char *const names[] = {"timeout"};
    core_transmitter *self = (core_transmitter *)op;
    PyObject *timeout;
    int64_t timeout_ns;
    if (core_arguments("flush", args, count, keywords, names, 1, 0, &timeout) < 0 ||
        core_timeout(timeout, &timeout_ns) < 0) {
        return NULL;
    }
    if (core_transmitter_wait(self, wait_flushed, 0, core_deadline(timeout_ns)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int transmitter_traverse(PyObject *op, visitproc visit, void *arg) {
    core_transmitter *self = (core_transmitter *)op;
    Py_VISIT(self->child.instance);
    Py_VISIT(self->on_ack);
    return 0;
}

static int transmitter_clear(PyObject *op) {
    core_transmitter *self = (core_transmitter *)op;
    if (self->child.gate.state == CORE_CLOSED) { /* else the engine still calls it */
        Py_CLEAR(self->on_ack);
    }
    return 0;
}

static void transmitter_dealloc(PyObject *op) {
    core_transmitter *self = (core_transmitter *)op;
    if (PyObject_CallFinalizerFromDealloc(op) < 0) {
        return;
    }
    PyObject_GC_UnTrack(op);
    Py_CLEAR(self->child.instance);
    Py_CLEAR(self->child.endpoint);
    Py_CLEAR(self->child.topic);
    Py_CLEAR(self->stream);
    Py_CLEAR(self->on_ack);
    Py_TYPE(op)->tp_free(op);
}

static PyMethodDef transmitter_methods[] = {
    {"send", (PyCFunction)(void (*)(void))transmitter_send, METH_FASTCALL | METH_KEYWORDS,
     "send($self, /, data, timeout=None, intended_ns=None)\n--\n\n"
     "Submit one message: the bytes of any C-contiguous buffer (bytes, bytearray, memoryview, "
     "numpy "
     "array).\n\n"
     "They are copied once, into the engine; the buffer is free again when this returns.\n\n"
     "When the submit queue is full, waits at most `timeout` seconds for room (None: as long as it "
     "takes;\n"
     "0: not at all, nor within a callback).\n\n"
     "`intended_ns` (ns since 1970, as of time.time_ns) is when the message was to be sent. "
     "Receivers measure\n"
     "its latency from there too, at level of detail 3: `intended_latency` beside `total_latency`, "
     "which does\n"
     "not see how long a sender that stalls lets its messages wait.\n\n"
     "Raises:\n    WouldBlock: the queue is full and waiting was not allowed.\n"
     "    TimeoutExpired: there was no room in time.\n"
     "    MessageSizeError: larger than the option max_message_bytes, or with acks than the "
     "history.\n"
     "    AckersError: fewer receivers acknowledge than the option acks wants, and acks_missing is "
     "\"fail\".\n"
     "    ClosedError: the transmitter is closed.\n"
     "    BufferError: the buffer is not C-contiguous.\n"
     "    TypeError: the object has no buffer.\n"
     "    ValueError: timeout is negative, or intended_ns is not above 0."},
    {"send_many", (PyCFunction)(void (*)(void))transmitter_send_many, METH_FASTCALL | METH_KEYWORDS,
     "send_many($self, /, messages, timeout=None)\n--\n\n"
     "Submit the messages of a sequence in order; returns how many.\n\n"
     "`timeout` is for all of them together, in seconds, as in send.\n\n"
     "Raises:\n    The errors of send; their attribute `accepted` tells how many messages had been "
     "taken."},
    {"send_packed", (PyCFunction)(void (*)(void))core_transmitter_send_packed,
     METH_FASTCALL | METH_KEYWORDS,
     "send_packed($self, /, data, size=None, offsets=None, timeout=None)\n--\n\n"
     "Submit the messages that lie back to back in one bytes-like object; returns how many.\n\n"
     "Each has `size` bytes, or begins where `offsets` says: whole numbers of 64 bits (a numpy "
     "array,\n"
     "array('Q')), one more than there are messages, never falling, the last at most len(data).\n\n"
     "Raises:\n    The errors of send_many.\n"
     "    ValueError: the data is no multiple of `size`, or the offsets do not fit."},
    {"flush", (PyCFunction)(void (*)(void))transmitter_flush, METH_FASTCALL | METH_KEYWORDS,
     "flush($self, /, timeout=None)\n--\n\n"
     "Wait until everything submitted has been handed to the network, at most `timeout` "
     "seconds.\n\n"
     "Raises:\n    TimeoutExpired: it took longer.\n    ClosedError: the transmitter is closed.\n"
     "    UsageError: within a callback of the same instance."},
    {"wait_acked", (PyCFunction)(void (*)(void))core_transmitter_wait_acked,
     METH_FASTCALL | METH_KEYWORDS,
     "wait_acked($self, /, receivers=1, timeout=None)\n--\n\n"
     "Wait until at least `receivers` receivers have acknowledged everything submitted.\n\n"
     "It waits at most `timeout` seconds.  A receiver acknowledges when its option ack is \"auto\" "
     "or\n"
     "\"app\"; one that joined late acknowledges only what was sent after it joined.\n\n"
     "Raises:\n    TimeoutExpired: it took longer.\n"
     "    AckersError: fewer receivers acknowledge than the option acks wants, and acks_missing is "
     "\"fail\".\n"
     "    ClosedError: the transmitter is closed.\n"
     "    UsageError: within a callback of the same instance."},
    {"wait_stable", (PyCFunction)(void (*)(void))core_transmitter_wait_stable,
     METH_FASTCALL | METH_KEYWORDS,
     "wait_stable($self, /, number=None, timeout=None)\n--\n\n"
     "Wait until the quorum has acknowledged the topic's message with this number, or everything\n"
     "submitted (None), at most `timeout` seconds.\n\n"
     "The quorum are as many receivers as the option acks wants, or with acks_from \"stores\" as "
     "many\n"
     "message stores.  Messages of a topic are numbered from 0.  A number that was not sent yet "
     "is\n"
     "waited for.\n\n"
     "Raises:\n    TimeoutExpired: it took longer.\n"
     "    AckersError: fewer acknowledge than the option acks wants, and acks_missing is "
     "\"fail\".\n"
     "    ClosedError: the transmitter is closed.\n"
     "    UsageError: the option acks is 0, or within a callback of the same instance.\n"
     "    OverflowError: the number is less than 0 or does not fit in 64 bits."},
    {"acks", core_transmitter_acks, METH_NOARGS,
     "acks($self, /)\n--\n\n"
     "Take what receivers have acknowledged since the last call, the newest of each, as\n"
     "(number, receiver, name, address, kind).  The first call tells of all."},
    {"act", core_transmitter_act, METH_VARARGS,
     "act($self, receiver, action, seconds, why, /)\n--\n\n"
     "Do something to a receiver of the stream, by hand, and tell it."},
    {"cut_off", (PyCFunction)(void (*)(void))core_transmitter_cut_off, METH_VARARGS | METH_KEYWORDS,
     "cut_off($self, /, seconds, why='')\n--\n\n"
     "Stop requests for repairs by all receivers of the stream, and repairs, for `seconds`.\n\n"
     "Afterwards receivers request missing packets, as far as the history still has them.\n\n"
     "Args:\n    seconds: how long, at most 3600; 0 permits requests again from now on.\n"
     "    why: told to the receivers; up to 40 bytes go out.\n\n"
     "Raises:\n    ClosedError: the transmitter is closed.\n"
     "    UsageError: within a callback of the same instance.\n"
     "    ValueError: the seconds are below 0."},
    {"receivers", core_transmitter_receivers, METH_NOARGS,
     "receivers($self, /)\n--\n\n"
     "What is known of the receivers of its stream, as tuples of the fields of ReceiverView."},
    {"close", core_child_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Send what was submitted, tell receivers the end of the topic, and let go; again does "
     "nothing.\n\n"
     "Requests for repair are answered for the linger time: in the background in mode \"thread\", "
     "before\n"
     "this returns in mode \"poll\".\n\n"
     "Raises:\n    UsageError: within a callback of the same instance."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef transmitter_members[] = {
    {"instance", T_OBJECT_EX, offsetof(core_transmitter, child.instance), READONLY,
     "Its instance."},
    {"endpoint", T_OBJECT_EX, offsetof(core_transmitter, child.endpoint), READONLY,
     "The endpoint it was made with."},
    {"topic", T_OBJECT_EX, offsetof(core_transmitter, child.topic), READONLY,
     "The topic it sends."},
    {"stream", T_OBJECT_EX, offsetof(core_transmitter, stream), READONLY,
     "Identity of the stream it sends on."},
    {"callback_errors", T_ULONGLONG, offsetof(core_transmitter, callback_errors), READONLY,
     "Exceptions that came out of the callback; each was shown by sys.unraisablehook."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *transmitter_get_rate(PyObject *op, void *unused) {
    (void)unused;
    core_transmitter *self = (core_transmitter *)op;
    if (!core_enter(&self->child.gate, CORE_SEND)) {
        return NULL;
    }
    uint64_t rate = helio_transmitter_rate(self->handle);
    return core_leave(&self->child.gate) ? PyLong_FromUnsignedLongLong(rate) : NULL;
}

static PyObject *transmitter_get_congested(PyObject *op, void *unused) {
    (void)unused;
    core_transmitter *self = (core_transmitter *)op;
    if (!core_enter(&self->child.gate, CORE_SEND)) {
        return NULL;
    }
    int congested = helio_transmitter_congested(self->handle);
    return core_leave(&self->child.gate) ? PyBool_FromLong(congested) : NULL;
}

static PyGetSetDef transmitter_properties[] = {
    {"rate", transmitter_get_rate, NULL,
     "Bytes per second its stream may send now; 0: no limit of its own.", NULL},
    {"congested", transmitter_get_congested, NULL,
     "True while messages of its stream have waited for longer than the option congestion_time.",
     NULL},
    {"closed", core_child_get_closed, NULL, "True once close has been called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_transmitter_type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "heliograph.engine._core.Transmitter",
    .tp_doc =
        "Transmitter(instance, endpoint, topic, options=None, on_ack=None)\n--\n\nSends one topic.",
    .tp_basicsize = sizeof(core_transmitter),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = transmitter_new,
    .tp_dealloc = transmitter_dealloc,
    .tp_finalize = core_child_finalize,
    .tp_traverse = transmitter_traverse,
    .tp_clear = transmitter_clear,
    .tp_methods = transmitter_methods,
    .tp_members = transmitter_members,
    .tp_getset = transmitter_properties,
};
