/* Instance: one engine.  Closing it closes its children first, as far as Python is concerned:
 * their gates are shut and those inside have come out before the library destroys everything in
 * one go (so that transmitters linger together). */
#include "core.h"

#include <stdatomic.h>
#include <structmember.h>

static core_instance *open_instances;
static atomic_bool finished;

static PyObject *instance_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"options", NULL};
    const char *options = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|z:Instance", names, &options)) {
        return NULL;
    }
    if (core_instances_finished()) {
        return core_raise_text(HELIO_ERR_STATE, "Python is shutting down");
    }
    core_close_waiting();

    core_instance *self = (core_instance *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->gate.instance = self;
    self->gate.what = "instance";
    PyThreadState *python = PyEval_SaveThread();
    int result = helio_instance_create(options, &self->handle);
    PyEval_RestoreThread(python);
    if (result < 0) {
        core_raise(result);
        Py_DECREF(self);
        return NULL;
    }
    self->gate.state = CORE_OPEN;
    self->next = open_instances;
    if (self->next != NULL) {
        self->next->previous = self;
    }
    open_instances = self;
    /* The options text may name the mode or leave it out; the library knows. */
    self->polled = helio_instance_poll(self->handle) != HELIO_ERR_STATE;
    self->name = PyUnicode_DecodeFSDefault(helio_instance_name(self->handle));
    self->segment = PyUnicode_DecodeFSDefault(helio_instance_segment(self->handle));
    if (self->name == NULL || self->segment == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void instance_closed(core_instance *self) {
    self->gate.state = CORE_CLOSED;
    if (self->previous != NULL) {
        self->previous->next = self->next;
    } else {
        open_instances = self->next;
    }
    if (self->next != NULL) {
        self->next->previous = self->previous;
    }
    self->next = self->previous = NULL;
}

/* Shuts the gates of the children.  Those somebody else is closing leave the list by themselves. */
static void instance_claim_children(core_instance *self) {
    for (;;) {
        bool is_busy = false;
        for (core_child *child = self->children; child != NULL; child = child->next) {
            if (child->gate.state == CORE_OPEN) {
                child->gate.state = CORE_CLOSING;
                child->claimed = true;
                Py_INCREF(child);
            }
            is_busy |= !child->claimed || child->gate.inside > 0;
        }
        if (!is_busy) {
            return;
        }
        core_pause();
    }
}

static core_child *first_claimed(core_instance *self) {
    core_child *child = self->children;
    while (child != NULL && !child->claimed) {
        child = child->next;
    }
    return child;
}

/* False with an exception, and everything open again, when a child cannot be closed. */
static bool instance_settle_children(core_instance *self) {
    core_child *child = self->children;
    while (child != NULL && (child->settle == NULL || child->settle(child) == 0)) {
        child = child->next;
    }
    if (child == NULL) {
        return true;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    self->gate.state = CORE_OPEN;
    while ((child = first_claimed(self)) != NULL) {
        child->claimed = false;
        child->gate.state = CORE_OPEN;
        Py_DECREF(child); /* the last reference closes it */
    }
    PyErr_Restore(type, value, trace);
    return false;
}

static void instance_release_children(core_instance *self) {
    while (self->children != NULL) {
        core_child *child = self->children;
        child->claimed = false;
        core_child_closed(child);
        Py_DECREF(child);
    }
}

/* Closes it.  Returns 0, or -1 with an exception. */
static int instance_end(PyObject *op) {
    core_instance *self = (core_instance *)op;
    int shut = core_shut(&self->gate);
    if (shut <= 0) {
        return shut;
    }
    Py_INCREF(self); /* the last child may hold the last reference */
    instance_claim_children(self);
    if (!instance_settle_children(self)) {
        Py_DECREF(self);
        return -1;
    }
    core_own(self);
    PyThreadState *python = PyEval_SaveThread();
    helio_instance_destroy(self->handle);
    PyEval_RestoreThread(python);
    core_disown(self);
    self->handle = NULL;
    if (self->engine_thread != NULL) { /* its thread has ended, so nobody else will */
        PyThreadState_Clear(self->engine_thread);
        PyThreadState_Delete(self->engine_thread);
        self->engine_thread = NULL;
    }
    instance_closed(self);
    instance_release_children(self);
    bool stopped = core_stopped(self);
    Py_DECREF(self);
    return stopped ? -1 : 0;
}

static PyObject *instance_close(PyObject *op, PyObject *ignored) {
    (void)ignored;
    if (instance_end(op) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *instance_poll(PyObject *op, PyObject *ignored) {
    (void)ignored;
    core_instance *self = (core_instance *)op;
    if (!core_enter(&self->gate, CORE_WORK)) {
        return NULL;
    }
    int result = helio_instance_poll(self->handle);
    if (!core_leave(&self->gate)) {
        return NULL;
    }
    return result < 0 ? core_raise(result) : PyLong_FromLong(result);
}

static PyObject *instance_wait(PyObject *op, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords) {
    static const char *const names[] = {"timeout"};
    core_instance *self = (core_instance *)op;
    PyObject *timeout;
    int64_t timeout_ns;
    if (core_arguments("wait", args, count, keywords, names, 1, 0, &timeout) < 0 ||
        core_timeout(timeout, &timeout_ns) < 0) {
        return NULL;
    }
    if (!core_enter(&self->gate, CORE_WORK)) {
        return NULL;
    }
    int64_t slice = timeout_ns < CORE_SLICE_NS ? timeout_ns : CORE_SLICE_NS;
    PyThreadState *python = PyEval_SaveThread();
    int result = helio_instance_wait(self->handle, slice);
    PyEval_RestoreThread(python);
    if (!core_leave(&self->gate)) {
        return NULL;
    }
    if (result < 0 && result != HELIO_ERR_TIMEOUT) {
        return core_raise(result);
    }
    if (PyErr_CheckSignals() < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Has the engine change a level of detail; the result is that of the library. */
static PyObject *instance_change_level(core_instance *self, int level, double seconds,
                                       const helio_selector *selector) {
    if (!core_enter(&self->gate, CORE_WORK)) {
        return NULL;
    }
    /* What no number of ns can be is 0 and refused by the library. */
    const int64_t for_ns = seconds > 0 && seconds < 9e9 ? (int64_t)(seconds * 1e9) : 0;
    PyThreadState *python = PyEval_SaveThread();
    int result = level < 0 ? helio_instance_reset_level(self->handle, selector)
                           : helio_instance_set_level(self->handle, level, for_ns, selector);
    PyEval_RestoreThread(python);
    if (!core_leave(&self->gate)) {
        return NULL;
    }
    return result < 0 ? core_raise(result) : PyLong_FromLong(result);
}

static PyObject *instance_set_level(PyObject *op, PyObject *args, PyObject *keywords) {
    static char *names[] = {"level", "seconds", "topic", "receiver", "stream", NULL};
    helio_selector selector = {NULL, NULL, NULL};
    unsigned level; /* a negative one wraps, and is as impossible */
    double seconds;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Id|$zzz:set_level", names, &level, &seconds,
                                     &selector.topic, &selector.receiver, &selector.stream)) {
        return NULL;
    }
    return instance_change_level((core_instance *)op, level < 100 ? (int)level : 100, seconds,
                                 &selector);
}

static PyObject *instance_reset_level(PyObject *op, PyObject *args, PyObject *keywords) {
    static char *names[] = {"topic", "receiver", "stream", NULL};
    helio_selector selector = {NULL, NULL, NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$zzz:reset_level", names, &selector.topic,
                                     &selector.receiver, &selector.stream)) {
        return NULL;
    }
    return instance_change_level((core_instance *)op, -1, 0, &selector);
}

static PyObject *instance_freeze_flight(PyObject *op, PyObject *args, PyObject *keywords) {
    static char *names[] = {"why", NULL};
    core_instance *self = (core_instance *)op;
    const char *why = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|z:freeze_flight", names, &why) ||
        !core_enter(&self->gate, CORE_SEND)) {
        return NULL;
    }
    int result = helio_instance_freeze_flight(self->handle, why); /* waits for nothing */
    if (!core_leave(&self->gate)) {
        return NULL;
    }
    if (result < 0) {
        return core_raise(result);
    }
    Py_RETURN_NONE;
}

void core_instances_finish(void) {
    while (open_instances != NULL) {
        core_instance *self = open_instances;
        Py_INCREF(self);
        if (instance_end((PyObject *)self) < 0) {
            PyErr_WriteUnraisable((PyObject *)self);
        }
        if (self->gate.state != CORE_CLOSED) { /* exit from within its own callback: left to the */
            instance_closed(self);             /* end of the process */
        }
        Py_DECREF(self);
    }
    atomic_store(&finished, true);
}

bool core_instances_finished(void) {
    return atomic_load_explicit(&finished, memory_order_relaxed);
}

void core_instances_forget(void) {
    while (open_instances != NULL) {
        core_instance *self = open_instances;
        Py_INCREF(self);
        self->handle = NULL;
        self->engine_thread =
            NULL; /* Python frees the thread states of threads that fork has ended */
        self->owner = 0;
        self->depth = 0;
        instance_closed(self);
        while (self->children != NULL) {
            core_child *child = self->children;
            bool claimed = child->claimed; /* by a thread that is no more */
            child->claimed = false;
            core_child_closed(child);
            if (claimed) {
                Py_DECREF(child);
            }
        }
        Py_DECREF(self);
    }
}

static PyObject *instance_get_closed(PyObject *op, void *ignored) {
    (void)ignored;
    return PyBool_FromLong(((core_instance *)op)->gate.state != CORE_OPEN);
}

static void instance_finalize(PyObject *op) {
    core_finalize(op, &((core_instance *)op)->gate, instance_end);
}

static int instance_traverse(PyObject *op, visitproc visit, void *arg) {
    core_instance *self = (core_instance *)op;
    for (core_child *child = self->children; child != NULL; child = child->next) {
        if (child->pinned) {
            Py_VISIT(child);
        }
    }
    Py_VISIT(self->stop_type);
    Py_VISIT(self->stop_value);
    Py_VISIT(self->stop_trace);
    return 0;
}

static int instance_clear(PyObject *op) {
    core_instance *self = (core_instance *)op;
    Py_CLEAR(self->stop_type);
    Py_CLEAR(self->stop_value);
    Py_CLEAR(self->stop_trace);
    return 0;
}

static void instance_dealloc(PyObject *op) {
    core_instance *self = (core_instance *)op;
    if (PyObject_CallFinalizerFromDealloc(op) < 0) {
        return;
    }
    PyObject_GC_UnTrack(op);
    instance_clear(op);
    Py_CLEAR(self->name);
    Py_CLEAR(self->segment);
    Py_TYPE(op)->tp_free(op);
}

static PyMethodDef instance_methods[] = {
    {"poll", instance_poll, METH_NOARGS,
     "poll($self, /)\n--\n\n"
     "Do the work that is due; returns how much there was, 0 when nothing.\n\n"
     "Only in mode \"poll\". Callbacks run within it.\n\n"
     "Raises:\n    UsageError: in mode \"thread\", from another thread, or within a callback.\n"
     "    ClosedError: the instance is closed."},
    {"wait", (PyCFunction)(void (*)(void))instance_wait, METH_FASTCALL | METH_KEYWORDS,
     "wait($self, /, timeout=None)\n--\n\n"
     "Wait until there may be work for poll, at most `timeout` seconds (None: no limit of "
     "yours).\n\n"
     "It may return earlier, and does every 50 ms, so call poll after it in any case. Only in mode "
     "\"poll\".\n\n"
     "Raises:\n    UsageError: in mode \"thread\", from another thread, or within a callback.\n"
     "    ClosedError: the instance is closed."},
    {"set_level", (PyCFunction)(void (*)(void))instance_set_level, METH_VARARGS | METH_KEYWORDS,
     "set_level($self, level, seconds, *, topic=None, receiver=None, stream=None)\n--\n\n"
     "Set the level of detail of the statistics for a time; returns how many objects it fits "
     "now."},
    {"reset_level", (PyCFunction)(void (*)(void))instance_reset_level, METH_VARARGS | METH_KEYWORDS,
     "reset_level($self, *, topic=None, receiver=None, stream=None)\n--\n\n"
     "End early what set_level has begun with the same patterns; returns how many objects it "
     "fitted."},
    {"freeze_flight", (PyCFunction)(void (*)(void))instance_freeze_flight,
     METH_VARARGS | METH_KEYWORDS,
     "freeze_flight($self, why=None)\n--\n\n"
     "Keep the flight recording of the last seconds or minutes, and of two more."},
    {"close", instance_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Close what is still open, stop the engine and remove its segment; again does nothing.\n\n"
     "Open transmitters first send what was submitted and answer requests for repair for their "
     "linger time.\n\n"
     "Raises:\n    UsageError: within a callback of this instance."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef instance_members[] = {
    {"name", T_OBJECT_EX, offsetof(core_instance, name), READONLY, "Name of the instance."},
    {"polled", T_BOOL, offsetof(core_instance, polled), READONLY, "True in mode \"poll\"."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *instance_get_segment(PyObject *op, void *ignored) {
    (void)ignored;
    return Py_NewRef(((core_instance *)op)->segment);
}

static PyGetSetDef instance_properties[] = {
    {"closed", instance_get_closed, NULL, "True once close has been called.", NULL},
    {"segment", instance_get_segment, NULL, "Path of the stats segment, \"\" when there is none.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject core_instance_type = {
    .ob_base = {PyObject_HEAD_INIT(NULL) 0},
    .tp_name = "heliograph.engine._core.Instance",
    .tp_doc =
        "Instance(options=None)\n--\n\nOne engine; options is a text \"name=value&name=value\".",
    .tp_basicsize = sizeof(core_instance),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = instance_new,
    .tp_dealloc = instance_dealloc,
    .tp_finalize = instance_finalize,
    .tp_traverse = instance_traverse,
    .tp_clear = instance_clear,
    .tp_methods = instance_methods,
    .tp_members = instance_members,
    .tp_getset = instance_properties,
};
