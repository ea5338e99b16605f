/* Receiver: takes messages out of the library's queue, one by one (iteration) or in lists.
 *
 * Messages are fetched into `slots`, where their bytes stay valid until the library is asked for
 * more.  Iteration leaves the rest of a fetch there for its next steps; a list takes them first.
 * So both can be mixed and nothing is copied twice. */
#include "core.h"

#include <structmember.h>

#include "runtime/following.h"

#define DEFAULT_LIMIT 256
#define MOST_AT_ONCE 65536

void core_receiver_destroy(core_child *child) {
    helio_receiver_destroy(((core_receiver *)child)->handle);
}

/* A callable, or NULL for None and for an argument not given. */
static int optional_callable(PyObject *value, const char *name, PyObject **out) {
    if (value == NULL || value == Py_None) {
        return 0;
    }
    if (!PyCallable_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s must be callable, not %R", name, value);
        return -1;
    }
    *out = Py_NewRef(value);
    return 0;
}

static PyObject *receiver_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"instance",    "endpoint", "topic",   "options",
                            "on_messages", "on_loss",  "follows", NULL};
    core_instance *instance;
    const char *endpoint, *topic, *options = NULL;
    PyObject *on_messages = NULL, *on_loss = NULL;
    int follows = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!ss|zOOp:Receiver", names,
                                     &core_instance_type, &instance, &endpoint, &topic, &options,
                                     &on_messages, &on_loss, &follows)) {
        return NULL;
    }
    core_close_waiting();
    core_receiver *self = (core_receiver *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    core_child *child = &self->child;
    child->gate.instance = child->instance = (core_instance *)Py_NewRef((PyObject *)instance);
    child->gate.what = "receiver";
    child->destroy = core_receiver_destroy;
    child->settle = core_receiver_end_views;
    child->endpoint = PyUnicode_FromString(endpoint);
    child->topic = PyUnicode_FromString(topic);
    if (child->endpoint == NULL || child->topic == NULL ||
        optional_callable(on_messages, "on_messages", &self->on_messages) < 0 ||
        optional_callable(on_loss, "on_loss", &self->on_loss) < 0) {
        goto failed;
    }
    if (follows && self->on_messages != NULL) {
        PyErr_SetString(PyExc_TypeError, "a receiver that follows stores has no callbacks");
        goto failed;
    }
    if (self->on_loss != NULL && self->on_messages == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "on_loss needs on_messages; without callbacks call losses()");
        goto failed;
    }
    helio_listener listener = {
        .on_messages = core_listener_on_messages,
        .on_loss = self->on_loss != NULL ? core_listener_on_loss : NULL,
        .context = self,
    };
    bool listens = self->on_messages != NULL;
    if (!core_enter(&instance->gate, CORE_WORK)) {
        goto failed;
    }
    PyThreadState *python = PyEval_SaveThread();
    int result = follows ? helio_receiver_create_following(instance->handle, endpoint, topic,
                                                           options, &self->handle)
                         : helio_receiver_create(instance->handle, endpoint, topic, options,
                                                 listens ? &listener : NULL, &self->handle);
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
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

PyObject *core_receiver_stream_name(core_receiver *self, uint32_t number) {
    size_t place = number % CORE_STREAM_NAMES;
    if (self->stream_names[place] == NULL || self->stream_numbers[place] != number) {
        const char *text = helio_receiver_stream(self->handle, number);
        PyObject *name = PyUnicode_DecodeFSDefault(text != NULL ? text : "");
        if (name == NULL) {
            return NULL;
        }
        Py_XSETREF(self->stream_names[place], name);
        self->stream_numbers[place] = number;
    }
    return Py_NewRef(self->stream_names[place]);
}

static int receiver_reserve(core_receiver *self, size_t limit) {
    if (self->capacity >= limit) {
        return 0;
    }
    helio_message *slots = PyMem_Realloc(self->slots, limit * sizeof *slots);
    if (slots == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->slots = slots;
    self->capacity = limit;
    return 0;
}

/* The first look keeps the GIL: when messages are there, nothing waits. */
Py_ssize_t core_receiver_fetch(core_receiver *self, size_t limit, int64_t timeout_ns) {
    core_gate *gate = &self->child.gate;
    int64_t deadline = 0, slice = 0;
    if (CORE_UNLIKELY(self->views != NULL && core_receiver_end_views(&self->child) < 0)) {
        return -1;
    }
    for (;;) {
        if (gate->state != CORE_OPEN) {
            return CORE_RECEIVER_CLOSED;
        }
        if (self->position < self->held) {
            return (Py_ssize_t)(self->held - self->position);
        }
        if (gate->inside > 0) {
            core_raise_text(HELIO_ERR_STATE, "another thread is receiving with this receiver");
            return -1;
        }
        if (receiver_reserve(self, limit) < 0 || !core_enter(gate, CORE_WORK)) {
            return -1;
        }
        self->held = self->position = 0;
        int result;
        if (slice == 0) {
            result = helio_receiver_receive(self->handle, self->slots, limit, 0);
        } else {
            PyThreadState *python = PyEval_SaveThread();
            result = helio_receiver_receive(self->handle, self->slots, limit, slice);
            PyEval_RestoreThread(python);
        }
        self->held = result > 0 ? (size_t)result : 0;
        if (!core_leave(gate)) {
            return -1;
        }
        if (result > 0) {
            return result;
        }
        if (result < 0) {
            core_raise(result);
            return -1;
        }
        if (slice > 0 && PyErr_CheckSignals() < 0) {
            return -1;
        }
        if (timeout_ns == 0) {
            return 0;
        }
        if (deadline == 0) {
            deadline = core_deadline(timeout_ns);
        }
        slice = core_slice(deadline);
        if (slice == 0) {
            return 0;
        }
    }
}

typedef PyObject *(*convert)(core_receiver *self, const helio_message *message);

PyObject *core_receiver_message(core_receiver *self, const helio_message *message) {
    const size_t place = message->stream % CORE_STREAM_NAMES;
    if (self->stream_names[place] != NULL && self->stream_numbers[place] == message->stream) {
        return core_message_new(message, self->child.topic, self->stream_names[place]);
    }
    PyObject *stream = core_receiver_stream_name(self, message->stream);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *result = core_message_new(message, self->child.topic, stream);
    Py_DECREF(stream);
    return result;
}

static PyObject *to_bytes(core_receiver *self, const helio_message *message) {
    (void)self;
    return PyBytes_FromStringAndSize(message->data, (Py_ssize_t)message->length);
}

int core_receive_arguments(const char *function, PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords, int64_t *timeout_ns, Py_ssize_t *limit) {
    static const char *const names[] = {"timeout", "limit"};
    PyObject *values[2];
    if (core_arguments(function, args, count, keywords, names, 2, 0, values) < 0 ||
        core_timeout(values[0], timeout_ns) < 0) {
        return -1;
    }
    if (values[1] == NULL) {
        return 0;
    }
    *limit = PyNumber_AsSsize_t(values[1], PyExc_OverflowError);
    if (*limit == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (*limit < 1 || *limit > MOST_AT_ONCE) {
        PyErr_Format(PyExc_ValueError, "limit must be 1 to %d messages, not %zd", MOST_AT_ONCE,
                     *limit);
        return -1;
    }
    return 0;
}

static PyObject *receiver_list(core_receiver *self, const char *function, PyObject *const *args,
                               Py_ssize_t count, PyObject *keywords, convert convert) {
    int64_t timeout_ns;
    Py_ssize_t limit = DEFAULT_LIMIT;
    if (core_receive_arguments(function, args, count, keywords, &timeout_ns, &limit) < 0) {
        return NULL;
    }
    for (;;) {
        Py_ssize_t available = core_receiver_fetch(self, (size_t)limit, timeout_ns);
        if (available == CORE_RECEIVER_CLOSED) {
            return core_raise_text(HELIO_ERR_CLOSED, "the receiver is closed");
        }
        if (available < 0) {
            return NULL;
        }
        available = available < limit ? available : limit;
        PyObject *list = PyList_New(available);
        if (list == NULL) {
            return NULL;
        }
        /* A new list may set off a garbage collection, and that may run anything, even close(). */
        if (self->child.gate.state != CORE_OPEN ||
            self->held - self->position < (size_t)available) {
            Py_DECREF(list);
            continue;
        }
        for (Py_ssize_t i = 0; i < available; i++) {
            PyObject *item = convert(self, &self->slots[self->position]);
            if (item == NULL) {
                Py_DECREF(list);
                return NULL;
            }
            self->position++;
            PyList_SET_ITEM(list, i, item);
        }
        return list;
    }
}

static PyObject *receiver_receive(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                  PyObject *keywords) {
    return receiver_list((core_receiver *)op, "receive", args, count, keywords,
                         core_receiver_message);
}

static PyObject *receiver_receive_bytes(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                        PyObject *keywords) {
    return receiver_list((core_receiver *)op, "receive_bytes", args, count, keywords, to_bytes);
}

static PyObject *receiver_iter(PyObject *op) {
    core_gate *gate = &((core_receiver *)op)->child.gate;
    if (gate->state != CORE_OPEN) {
        return core_raise_text(HELIO_ERR_CLOSED, "the receiver is closed");
    }
    return Py_NewRef(op);
}

/* A message waits in the slots, and core_receiver_fetch would find nothing else to do.  Asked before
 * the call: a fetch of some hundred messages serves as many steps. */
static inline bool has_one(const core_receiver *self) {
    return self->position < self->held && self->views == NULL &&
           self->child.gate.state == CORE_OPEN;
}

static PyObject *take_one(core_receiver *self) {
    PyObject *message = core_receiver_message(self, &self->slots[self->position]);
    if (message != NULL) {
        self->position++;
    }
    return message;
}

/* Result of a call for one message when core_receiver_fetch returned `available`, which is not
 * above 0. */
static PyObject *nothing_taken(Py_ssize_t available) {
    if (available == CORE_RECEIVER_CLOSED) {
        return core_raise_text(HELIO_ERR_CLOSED, "the receiver is closed");
    }
    return available < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *receiver_next(PyObject *op) {
    core_receiver *self = (core_receiver *)op;
    if (!has_one(self) && core_receiver_fetch(self, DEFAULT_LIMIT, HELIO_FOREVER) < 0) {
        return NULL; /* closed sets no exception: the end of the loop */
    }
    return take_one(self);
}

static PyObject *receiver_receive_one(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                      PyObject *keywords) {
    static const char *const names[] = {"timeout"};
    core_receiver *self = (core_receiver *)op;
    PyObject *timeout;
    int64_t timeout_ns;
    if (core_arguments("receive_one", args, count, keywords, names, 1, 0, &timeout) < 0 ||
        core_timeout(timeout, &timeout_ns) < 0) {
        return NULL;
    }
    if (has_one(self)) {
        return take_one(self);
    }
    const Py_ssize_t available = core_receiver_fetch(self, DEFAULT_LIMIT, timeout_ns);
    return available > 0 ? take_one(self) : nothing_taken(available);
}

/* Copies the next message; one that does not fit stays for the next call. */
static PyObject *copy_next(core_receiver *self, const Py_buffer *to) {
    const helio_message *message = &self->slots[self->position];
    if (message->length > (size_t)to->len) {
        return PyErr_Format(PyExc_ValueError,
                            "the next message has %zu bytes and the buffer %zd; the message is "
                            "kept for the next call",
                            message->length, to->len);
    }
    PyObject *length = PyLong_FromSize_t(message->length);
    if (length != NULL) {
        if (message->length > 0) {
            memcpy(to->buf, message->data, message->length);
        }
        self->position++;
    }
    return length;
}

static PyObject *receiver_receive_into(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords) {
    static const char *const names[] = {"buffer", "timeout"};
    core_receiver *self = (core_receiver *)op;
    PyObject *values[2];
    int64_t timeout_ns;
    Py_buffer to;
    if (core_arguments("receive_into", args, count, keywords, names, 2, 1, values) < 0 ||
        core_timeout(values[1], &timeout_ns) < 0 ||
        core_buffer(values[0], PyBUF_WRITABLE, &to) < 0) {
        return NULL;
    }
    const Py_ssize_t available = core_receiver_fetch(self, DEFAULT_LIMIT, timeout_ns);
    PyObject *result = available > 0 ? copy_next(self, &to) : nothing_taken(available);
    PyBuffer_Release(&to);
    return result;
}

static PyObject *receiver_losses(PyObject *op, PyObject *ignored) {
    (void)ignored;
    core_receiver *self = (core_receiver *)op;
    PyObject *list = PyList_New(0);
    if (list == NULL) {
        return NULL;
    }
    for (;;) {
        if (self->child.gate.inside > 0) {
            core_raise_text(HELIO_ERR_STATE, "another thread is receiving with this receiver");
            break;
        }
        if (!core_enter(&self->child.gate, CORE_WORK)) {
            break;
        }
        helio_loss loss;
        int result = helio_receiver_loss(self->handle, &loss);
        PyObject *stream = result > 0 ? core_receiver_stream_name(self, loss.stream) : NULL;
        bool left = core_leave(&self->child.gate);
        if (left && result == 0) {
            return list;
        }
        if (left && result < 0) {
            core_raise(result);
        }
        PyObject *item = NULL;
        if (left && stream != NULL) {
            item = Py_BuildValue("KKO", (unsigned long long)loss.first,
                                 (unsigned long long)loss.count, stream);
        }
        Py_XDECREF(stream);
        if (item == NULL) {
            break;
        }
        int appended = PyList_Append(list, item);
        Py_DECREF(item);
        if (appended < 0) {
            break;
        }
    }
    Py_DECREF(list);
    return NULL;
}

static int receiver_traverse(PyObject *op, visitproc visit, void *arg) {
    core_receiver *self = (core_receiver *)op;
    Py_VISIT(self->child.instance);
    Py_VISIT(self->on_messages);
    Py_VISIT(self->on_loss);
    return 0;
}

static int receiver_clear(PyObject *op) {
    core_receiver *self = (core_receiver *)op;
    if (self->child.gate.state == CORE_CLOSED) { /* else the engine still calls them */
        Py_CLEAR(self->on_messages);
        Py_CLEAR(self->on_loss);
    }
    return 0;
}

static void receiver_dealloc(PyObject *op) {
    core_receiver *self = (core_receiver *)op;
    if (PyObject_CallFinalizerFromDealloc(op) < 0) {
        return;
    }
    PyObject_GC_UnTrack(op);
    Py_CLEAR(self->on_messages);
    Py_CLEAR(self->on_loss);
    Py_CLEAR(self->child.instance);
    Py_CLEAR(self->child.endpoint);
    Py_CLEAR(self->child.topic);
    for (size_t i = 0; i < CORE_STREAM_NAMES; i++) {
        Py_CLEAR(self->stream_names[i]);
    }
    PyMem_Free(self->slots);
    PyMem_Free(self->kept);
    Py_TYPE(op)->tp_free(op);
}

static PyMethodDef receiver_methods[] = {
    {"receive", (PyCFunction)(void (*)(void))receiver_receive, METH_FASTCALL | METH_KEYWORDS,
     "receive($self, /, timeout=None, limit=256)\n--\n\n"
     "Take up to `limit` (1 to 65536) messages; a list, empty when none came in time.\n\n"
     "Waits at most `timeout` seconds for the first message (None: as long as it takes; 0: not at "
     "all).\n\n"
     "Raises:\n    ClosedError: the receiver is closed, perhaps while it waited.\n"
     "    UsageError: it has a callback, or another thread is receiving with it."},
    {"receive_bytes", (PyCFunction)(void (*)(void))receiver_receive_bytes,
     METH_FASTCALL | METH_KEYWORDS,
     "receive_bytes($self, /, timeout=None, limit=256)\n--\n\n"
     "As receive, but the list holds plain bytes: the quickest way to take many small messages."},
    {"receive_one", (PyCFunction)(void (*)(void))receiver_receive_one,
     METH_FASTCALL | METH_KEYWORDS,
     "receive_one($self, /, timeout=None)\n--\n\n"
     "Take the next message; None when none came in time. Costs less than a list of one.\n\n"
     "Waits at most `timeout` seconds (None: without limit; 0: not at all).\n\n"
     "Raises:\n    The errors of receive."},
    {"receive_into", (PyCFunction)(void (*)(void))receiver_receive_into,
     METH_FASTCALL | METH_KEYWORDS,
     "receive_into($self, /, buffer, timeout=None)\n--\n\n"
     "Copy the next message to the start of a writable, C-contiguous buffer; returns its length in "
     "bytes,\n"
     "None when none came in time. An empty message has length 0.\n\n"
     "Waits at most `timeout` seconds (None: without limit; 0: not at all).\n\n"
     "Raises:\n    ValueError: the message is longer than the buffer. It stays for the next call: "
     "take it with a\n        larger buffer or with another method.\n"
     "    BufferError: the buffer is read-only or not contiguous.\n"
     "    TypeError: the object has no buffer.\n"
     "    The errors of receive."},
    {"receive_views", (PyCFunction)(void (*)(void))core_receiver_receive_views,
     METH_FASTCALL | METH_KEYWORDS,
     "receive_views($self, /, timeout=None, limit=256)\n--\n\n"
     "As receive, but as Views: memoryviews of the engine's memory, without a copy. They are valid "
     "until\n"
     "released, at the latest by the next receive. In mode \"poll\" the engine reads no more of "
     "the endpoint\n"
     "meanwhile.\n\n"
     "Raises:\n    BufferError: a slice or an array made from an earlier view is in use.\n"
     "    The errors of receive."},
    {"receive_packed", (PyCFunction)(void (*)(void))core_receiver_receive_packed,
     METH_FASTCALL | METH_KEYWORDS,
     "receive_packed($self, /, timeout=None, limit=4096)\n--\n\n"
     "As receive, but all at once: (data, records), the messages' bytes back to back and one "
     "record\n"
     "for each (docs of heliograph.engine.batch)."},
    {"losses", receiver_losses, METH_NOARGS,
     "losses($self, /)\n--\n\n"
     "Take the reports of losses since the last call, oldest first, as (first, count, stream)."},
    {"notices", core_receiver_notices, METH_NOARGS,
     "notices($self, /)\n--\n\n"
     "Take the notices of sources since the last call, oldest first, as (action, reason, by_hand, "
     "seconds, text, stream, wall_ns)."},
    {"acknowledge_number", (PyCFunction)(void (*)(void))core_receiver_acknowledge_number,
     METH_FASTCALL | METH_KEYWORDS,
     "acknowledge_number($self, /, number, stream=None)\n--\n\n"
     "Acknowledge the messages of a stream up to and including this number."},
    {"stores", core_receiver_stores, METH_NOARGS,
     "stores($self, /)\n--\n\n"
     "The message stores that sources announce, as HOST:PORT,HOST:PORT."},
    {"followed", core_receiver_followed, METH_VARARGS,
     "followed($self, stream, next, covered, live, joined, recovered, lost, first_lost, repeated, "
     "failures, failure, /)\n--\n\n"
     "Count what the application was given of a stream since the last call, and report it."},
    {"replay", core_receiver_replay, METH_VARARGS,
     "replay($self, first, last, stream, /)\n--\n\n"
     "Ask for messages `first` to `last` of a stream (its number or name) again; a receiver that "
     "gets just these and is then closed by its source."},
    {"close", core_child_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Stop receiving and let go; again does nothing. Ends a loop over the receiver in another "
     "thread.\n\n"
     "Raises:\n    UsageError: within a callback of the same instance."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef receiver_members[] = {
    {"instance", T_OBJECT_EX, offsetof(core_receiver, child.instance), READONLY, "Its instance."},
    {"endpoint", T_OBJECT_EX, offsetof(core_receiver, child.endpoint), READONLY,
     "The endpoint it was made with."},
    {"topic", T_OBJECT_EX, offsetof(core_receiver, child.topic), READONLY,
     "The topic it receives."},
    {"callback_errors", T_ULONGLONG, offsetof(core_receiver, callback_errors), READONLY,
     "Exceptions that came out of the callbacks; each was shown by sys.unraisablehook."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef receiver_properties[] = {
    {"closed", core_child_get_closed, NULL, "True once close has been called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_receiver_type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "heliograph.engine._core.Receiver",
    .tp_doc = "Receiver(instance, endpoint, topic, options=None, on_messages=None, on_loss=None, "
              "follows=False)\n--\n\n"
              "Receives one topic.",
    .tp_basicsize = sizeof(core_receiver),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = receiver_new,
    .tp_dealloc = receiver_dealloc,
    .tp_finalize = core_child_finalize,
    .tp_traverse = receiver_traverse,
    .tp_clear = receiver_clear,
    .tp_iter = receiver_iter,
    .tp_iternext = receiver_next,
    .tp_methods = receiver_methods,
    .tp_members = receiver_members,
    .tp_getset = receiver_properties,
};
