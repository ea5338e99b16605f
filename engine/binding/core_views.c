/* Views: the messages of one receive, shown where the library has them, without a copy.
 *
 * Their bytes belong to the library and last until it is asked for more.  So a receiver has at most
 * one Views object in force, and whatever gives the bytes back (the next receive, a replay, close)
 * ends it first: the memoryviews are released.  One whose bytes are used by something else, such as
 * a numpy array, cannot be released: that is a BufferError, and the bytes stay.
 *
 * Views in force keep their receiver, and the garbage collector does not see this reference: a
 * receiver is in use while somebody looks at its bytes. */
#include "core.h"

#define DEFAULT_LIMIT 256

struct core_views {
    PyObject ob_base;
    /* Strong; NULL: released. */
    core_receiver *receiver;
    /* The messages are receiver->slots[first, first + count). */
    size_t first, count;
    /* Buffers that show bytes of them now. */
    size_t exports;
    /* The message that a memoryview is being created for; -1: none. */
    Py_ssize_t exporting;
    /* Weak references to the memoryviews created. */
    PyObject *created;
};

static PyObject *released_error(void) {
    PyErr_SetString(PyExc_ValueError, "the views have been released");
    return NULL;
}

/* Runs code of others (callbacks of weak references), which may end the views too. */
static int release_created(core_views *self) {
    if (self->created == NULL) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->created); i++) {
        PyObject *view = PyObject_CallNoArgs(PyList_GET_ITEM(self->created, i)); /* or None */
        PyObject *result = view == NULL || view == Py_None
                               ? Py_XNewRef(view)
                               : PyObject_CallMethod(view, "release", NULL);
        Py_XDECREF(view);
        if (result == NULL && !PyErr_ExceptionMatches(PyExc_BufferError)) {
            return -1;
        }
        PyErr_Clear();
        Py_XDECREF(result);
    }
    return self->exports > 0 ? 0 : PyList_SetSlice(self->created, 0, PY_SSIZE_T_MAX, NULL);
}

static int views_end(core_views *self) {
    if (self->receiver == NULL) {
        return 0;
    }
    if (release_created(self) < 0) {
        return -1;
    }
    if (self->exports > 0) {
        PyErr_Format(PyExc_BufferError,
                     "views of %zu messages are in use, by slices or arrays made from them; delete "
                     "or copy these first",
                     self->exports);
        return -1;
    }
    core_receiver *receiver = self->receiver;
    self->receiver = NULL;
    if (receiver != NULL) {
        receiver->views = NULL;
        Py_DECREF(receiver);
    }
    return 0;
}

int core_receiver_end_views(core_child *child) {
    core_views *views = ((core_receiver *)child)->views;
    if (views == NULL) {
        return 0;
    }
    Py_INCREF(views);
    const int result = views_end(views);
    Py_DECREF(views);
    return result;
}

PyObject *core_receiver_receive_views(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                      PyObject *keywords) {
    core_receiver *receiver = (core_receiver *)op;
    int64_t timeout_ns;
    Py_ssize_t limit = DEFAULT_LIMIT;
    if (core_receive_arguments("receive_views", args, count, keywords, &timeout_ns, &limit) < 0) {
        return NULL;
    }
    const Py_ssize_t available = core_receiver_fetch(receiver, (size_t)limit, timeout_ns);
    if (available == CORE_RECEIVER_CLOSED) {
        return core_raise_text(HELIO_ERR_CLOSED, "the receiver is closed");
    }
    core_views *self = available < 0 ? NULL : PyObject_New(core_views, &core_views_type);
    if (self == NULL) {
        return NULL;
    }
    self->receiver = NULL;
    self->first = receiver->position;
    self->count = (size_t)(available < limit ? available : limit);
    self->exports = 0;
    self->exporting = -1;
    self->created = NULL;
    if (available > 0) {
        receiver->position += self->count;
        receiver->views = self;
        self->receiver = (core_receiver *)Py_NewRef(op);
    }
    return (PyObject *)self;
}

static void views_dealloc(PyObject *op) {
    core_views *self = (core_views *)op; /* every export holds it, so there is none */
    if (self->receiver != NULL) {
        self->receiver->views = NULL;
        Py_CLEAR(self->receiver);
    }
    Py_XDECREF(self->created);
    PyObject_Free(self);
}

static int views_get_buffer(PyObject *op, Py_buffer *view, int flags) {
    core_views *self = (core_views *)op;
    view->obj = NULL;
    if (self->exporting < 0 || self->receiver == NULL) {
        PyErr_SetString(PyExc_BufferError, self->receiver == NULL
                                               ? "the views have been released"
                                               : "each message has a buffer of its own: views[0]");
        return -1;
    }
    const helio_message *message = &self->receiver->slots[self->first + (size_t)self->exporting];
    void *data = message->length > 0 ? (void *)message->data : (void *)"";
    if (PyBuffer_FillInfo(view, op, data, (Py_ssize_t)message->length, 1, flags) < 0) {
        return -1;
    }
    self->exports++;
    return 0;
}

static void views_release_buffer(PyObject *op, Py_buffer *view) {
    (void)view;
    ((core_views *)op)->exports--;
}

static Py_ssize_t views_length(PyObject *op) {
    return (Py_ssize_t)((core_views *)op)->count;
}

static PyObject *views_item(PyObject *op, Py_ssize_t i) {
    core_views *self = (core_views *)op;
    if (i < 0 || (size_t)i >= self->count) {
        PyErr_SetString(PyExc_IndexError, "there are fewer messages");
        return NULL;
    }
    if (self->receiver == NULL) {
        return released_error();
    }
    /* Creating an object may collect garbage, and that may run any code, this function too. */
    if (self->created == NULL) {
        PyObject *created = PyList_New(0);
        if (created == NULL) {
            return NULL;
        }
        if (self->created == NULL) {
            self->created = created;
        } else {
            Py_DECREF(created);
        }
    }
    const Py_ssize_t outer = self->exporting;
    self->exporting = i;
    PyObject *view = PyMemoryView_FromObject(op);
    self->exporting = outer;
    PyObject *reference = view != NULL ? PyWeakref_NewRef(view, NULL) : NULL;
    if (reference == NULL || PyList_Append(self->created, reference) < 0) {
        Py_CLEAR(view);
    }
    Py_XDECREF(reference);
    return view;
}

static PyObject *views_release(PyObject *op, PyObject *ignored) {
    (void)ignored;
    return views_end((core_views *)op) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *views_enter(PyObject *op, PyObject *ignored) {
    (void)ignored;
    return ((core_views *)op)->receiver == NULL && ((core_views *)op)->count > 0 ? released_error()
                                                                                 : Py_NewRef(op);
}

/* While an exception passes, its traceback may still use a view: the next receive tries again. */
static PyObject *views_exit(PyObject *op, PyObject *args) {
    if (views_end((core_views *)op) < 0) {
        if (PyTuple_GET_SIZE(args) == 0 || PyTuple_GET_ITEM(args, 0) == Py_None) {
            return NULL;
        }
        PyErr_Clear();
    }
    Py_RETURN_FALSE;
}

static PyObject *views_get_records(PyObject *op, void *ignored) {
    (void)ignored;
    core_views *self = (core_views *)op;
    if (self->receiver == NULL && self->count > 0) {
        return released_error();
    }
    return core_records(self->receiver != NULL ? self->receiver->slots + self->first : NULL,
                        self->count, NULL);
}

static PyObject *views_repr(PyObject *op) {
    core_views *self = (core_views *)op;
    return PyUnicode_FromFormat("<Views of %zu messages%s>", self->count,
                                self->receiver == NULL && self->count > 0 ? ", released" : "");
}

static PyMethodDef views_methods[] = {
    {"release", views_release, METH_NOARGS,
     "release($self, /)\n--\n\n"
     "Release the memoryviews and give the messages back to the engine; again does nothing.\n\n"
     "Raises:\n    BufferError: a slice or an array made from a view is in use."},
    {"__enter__", views_enter, METH_NOARGS, "Return self."},
    {"__exit__", views_exit, METH_VARARGS, "Release, but leave an exception that passes as it is."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef views_properties[] = {
    {"records", views_get_records, NULL,
     "One record for each message, as Batch.records; each offset is 0.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PySequenceMethods views_as_sequence = {.sq_length = views_length, .sq_item = views_item};
static PyBufferProcs views_as_buffer = {
    .bf_getbuffer = views_get_buffer,
    .bf_releasebuffer = views_release_buffer,
};

PyTypeObject core_views_type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "heliograph.engine.Views",
    .tp_doc =
        "Messages received together, as read-only memoryviews of the engine's memory.\n\n"
        "Each view is valid until the views are released: by `release`, at the end of a "
        "``with`` block, by the\nnext receive or replay of the receiver, or by close. From "
        "then on it raises ValueError.\n\nWhile a slice or a numpy array made from a view is in "
        "use, all of these raise BufferError. The\nreceiver stays open, and what is in use stays "
        "valid.",
    .tp_basicsize = sizeof(core_views),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = views_dealloc,
    .tp_repr = views_repr,
    .tp_iter = PySeqIter_New,
    .tp_as_sequence = &views_as_sequence,
    .tp_as_buffer = &views_as_buffer,
    .tp_methods = views_methods,
    .tp_getset = views_properties,
};
