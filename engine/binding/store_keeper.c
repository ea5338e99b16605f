/* heliograph.engine._store.Keeper: an instance whose receivers' messages go to a store. */
#include "store.h"

#include <heliograph/heliograph.h>

#include "base/error.h"
#include "keep/keeper.h"
#include "keep/keeper_subscriptions.h"

/* Holes that are shown at a time. */
enum { HOLES = 64 };

typedef struct store_keeper {
    PyObject_HEAD helio_instance *instance;
    helio_keeper *keeper;
    /* A call is under way, without the GIL. */
    bool is_busy;
} store_keeper;

/* Begins a call; false: it is closed, or another thread uses it. */
static bool enter(store_keeper *self) {
    if (!self->keeper) {
        PyErr_SetString(PyExc_ValueError, "the store is closed");
    } else if (self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread uses the store");
    } else {
        self->is_busy = true;
    }
    return self->keeper && !PyErr_Occurred();
}

static PyObject *counts_row(const helio_keeper_counts *counts, const char *reason) {
    return Py_BuildValue(
        "(KKKKKKKKKKKKKKKKs)", (unsigned long long)counts->streams,
        (unsigned long long)counts->messages_received, (unsigned long long)counts->messages_kept,
        (unsigned long long)counts->messages_repeated, (unsigned long long)counts->messages_refused,
        (unsigned long long)counts->messages_lost, (unsigned long long)counts->messages_waiting,
        (unsigned long long)counts->bytes_kept, (unsigned long long)counts->bytes_written,
        (unsigned long long)counts->segments_removed, (unsigned long long)counts->holes_open,
        (unsigned long long)counts->messages_fetched, (unsigned long long)counts->messages_given_up,
        (unsigned long long)counts->fetch_failures, (unsigned long long)counts->topics,
        (unsigned long long)counts->topics_refused, reason);
}

static int close_keeper(store_keeper *self, helio_keeper_counts *last) {
    helio_keeper *keeper = self->keeper;
    helio_instance *instance = self->instance;
    self->keeper = NULL;
    self->instance = NULL;
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_keeper_close(keeper, last);
    helio_instance_destroy(instance);
    Py_END_ALLOW_THREADS;
    return error;
}

static PyObject *keeper_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"path",          "options",      "fsync",     "batch_bytes", "batch_ns",
                            "segment_bytes", "retain_bytes", "retain_ns", "cut_damage",  NULL};
    PyObject *path;
    const char *options;
    int fsync, cut_damage;
    Py_ssize_t batch_bytes;
    unsigned long long batch_ns, segment_bytes, retain_bytes, retain_ns;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&zinKKKKp:Keeper", names,
                                     PyUnicode_FSConverter, &path, &options, &fsync, &batch_bytes,
                                     &batch_ns, &segment_bytes, &retain_bytes, &retain_ns,
                                     &cut_damage)) {
        return NULL;
    }
    store_keeper *self = NULL;
    if (fsync < HELIO_STORE_FSYNC_BATCH || fsync > HELIO_STORE_FSYNC_NEVER || batch_bytes < 0) {
        PyErr_SetString(PyExc_ValueError, "fsync or batch_bytes is out of range");
    } else {
        self = (store_keeper *)type->tp_alloc(type, 0);
    }
    if (!self) {
        Py_DECREF(path);
        return NULL;
    }
    const helio_store_options store = {
        .fsync = (helio_store_fsync)fsync,
        .batch_bytes = (size_t)batch_bytes,
        .batch_time_ns = batch_ns,
        .segment_bytes = segment_bytes,
        .retain_bytes = retain_bytes,
        .retain_ns = retain_ns,
        .cut_damage = cut_damage,
    };
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_instance_create(options, &self->instance);
    if (!error) {
        error = helio_keeper_create(self->instance, PyBytes_AS_STRING(path), &store, NULL,
                                    &self->keeper);
    }
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (error) {
        store_raise(error);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void keeper_dealloc(store_keeper *self) {
    (void)close_keeper(self, NULL);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *keeper_add(store_keeper *self, PyObject *args) {
    const char *endpoint, *topic, *options;
    if (!PyArg_ParseTuple(args, "ssz:add", &endpoint, &topic, &options) || !enter(self)) {
        return NULL;
    }
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_keeper_add(self->keeper, endpoint, topic, options);
    Py_END_ALLOW_THREADS;
    self->is_busy = false;
    if (error) {
        return store_raise(error);
    }
    Py_RETURN_NONE;
}

static PyObject *keeper_add_pattern(store_keeper *self, PyObject *args) {
    const char *endpoint, *pattern, *options;
    unsigned int limit;
    if (!PyArg_ParseTuple(args, "sszI:add_pattern", &endpoint, &pattern, &options, &limit) ||
        !enter(self)) {
        return NULL;
    }
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_keeper_add_pattern(self->keeper, endpoint, pattern, options, limit);
    Py_END_ALLOW_THREADS;
    self->is_busy = false;
    return error ? store_raise(error) : Py_NewRef(Py_None);
}

static PyObject *keeper_expect(store_keeper *self, PyObject *args) {
    const char *topic;
    if (!PyArg_ParseTuple(args, "s:expect", &topic) || !enter(self)) {
        return NULL;
    }
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_keeper_expect(self->keeper, topic);
    Py_END_ALLOW_THREADS;
    self->is_busy = false;
    return error ? store_raise(error) : Py_NewRef(Py_None);
}

static PyObject *keeper_adopt(store_keeper *self, PyObject *unused) {
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    const int error = helio_keeper_adopt(self->keeper);
    const uint64_t changes = helio_keeper_changes(self->keeper);
    self->is_busy = false;
    return error ? store_raise(error) : PyLong_FromUnsignedLongLong(changes);
}

/* On an error, `list` becomes NULL. */
static void add_found(void *context, const char *endpoint, const char *topic) {
    PyObject **list = context;
    PyObject *row = *list ? Py_BuildValue("(ss)", endpoint, topic) : NULL;
    if (*list && (!row || PyList_Append(*list, row))) {
        Py_CLEAR(*list);
    }
    Py_XDECREF(row);
}

static PyObject *keeper_found_topics(store_keeper *self, PyObject *unused) {
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    helio_keeper_each_found(self->keeper, &list, add_found);
    self->is_busy = false;
    return list;
}

static PyObject *keeper_step(store_keeper *self, PyObject *args) {
    long long timeout_ns;
    if (!PyArg_ParseTuple(args, "L:step", &timeout_ns) || !enter(self)) {
        return NULL;
    }
    int taken;
    Py_BEGIN_ALLOW_THREADS;
    taken = helio_keeper_step(self->keeper, timeout_ns);
    Py_END_ALLOW_THREADS;
    self->is_busy = false;
    return taken < 0 ? store_raise(taken) : PyLong_FromLong(taken);
}

static PyObject *keeper_look(store_keeper *self, PyObject *unused) {
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    self->is_busy = false;
    const helio_keeper_counts counts = helio_keeper_look(self->keeper);
    return counts_row(&counts, helio_keeper_reason(self->keeper));
}

static PyObject *keeper_show_service(store_keeper *self, PyObject *args) {
    unsigned long long readers, requests, refused, aborted, bytes_sent, restarts;
    if (!PyArg_ParseTuple(args, "KKKKKK:show_service", &readers, &requests, &refused, &aborted,
                          &bytes_sent, &restarts) ||
        !enter(self)) {
        return NULL;
    }
    helio_keeper_show_service(self->keeper, &(helio_keeper_service){readers, requests, refused,
                                                                    aborted, bytes_sent, restarts});
    self->is_busy = false;
    Py_RETURN_NONE;
}

static PyObject *keeper_use_peers(store_keeper *self, PyObject *unused) {
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    helio_keeper_use_peers(self->keeper);
    self->is_busy = false;
    Py_RETURN_NONE;
}

static PyObject *keeper_holes(store_keeper *self, PyObject *unused) {
    (void)unused;
    if (!enter(self)) {
        return NULL;
    }
    helio_keeper_hole holes[HOLES];
    const size_t count = helio_keeper_holes(self->keeper, holes, HOLES);
    self->is_busy = false;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        const helio_keeper_hole *hole = &holes[i];
        PyObject *row =
            Py_BuildValue("(y#is#KK)", hole->tsi.gsi, (Py_ssize_t)HELIO_GSI_BYTES, hole->tsi.port,
                          hole->topic, (Py_ssize_t)hole->topic_bytes,
                          (unsigned long long)hole->first, (unsigned long long)hole->last);
        if (!row) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

/* A stream and a topic of the arguments. */
typedef struct hole_arguments {
    const char *gsi, *topic;
    Py_ssize_t gsi_bytes, topic_bytes;
    unsigned short port;
    helio_tsi tsi;
} hole_arguments;

static bool is_stream(hole_arguments *hole) {
    if (hole->gsi_bytes != HELIO_GSI_BYTES) {
        PyErr_SetString(PyExc_ValueError, "a GSI has 6 bytes");
        return false;
    }
    memcpy(hole->tsi.gsi, hole->gsi, HELIO_GSI_BYTES);
    hole->tsi.port = hole->port;
    return true;
}

static PyObject *keeper_fill(store_keeper *self, PyObject *args) {
    hole_arguments hole;
    const char *batch;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "y#Hs#y#:fill", &hole.gsi, &hole.gsi_bytes, &hole.port, &hole.topic,
                          &hole.topic_bytes, &batch, &size) ||
        !is_stream(&hole) || !enter(self)) {
        return NULL;
    }
    helio_keeper_filled filled;
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = helio_keeper_fill(self->keeper, &hole.tsi, hole.topic, (size_t)hole.topic_bytes, batch,
                              (size_t)size, &filled);
    Py_END_ALLOW_THREADS;
    self->is_busy = false;
    if (error == HELIO_ERR_OPTION) {
        return PyErr_Format(PyExc_ValueError, "%s", helio_error_sentence());
    }
    if (error) {
        return store_raise(error);
    }
    return Py_BuildValue("(KKO)", (unsigned long long)filled.kept, (unsigned long long)filled.found,
                         filled.is_blocked ? Py_True : Py_False);
}

static PyObject *keeper_give_up(store_keeper *self, PyObject *args) {
    hole_arguments hole;
    unsigned long long until;
    if (!PyArg_ParseTuple(args, "y#Hs#K:give_up", &hole.gsi, &hole.gsi_bytes, &hole.port,
                          &hole.topic, &hole.topic_bytes, &until) ||
        !is_stream(&hole) || !enter(self)) {
        return NULL;
    }
    const int is_given_up =
        helio_keeper_give_up(self->keeper, &hole.tsi, hole.topic, (size_t)hole.topic_bytes, until);
    self->is_busy = false;
    return PyBool_FromLong(is_given_up);
}

static PyObject *keeper_show_failures(store_keeper *self, PyObject *args) {
    unsigned long long failures;
    if (!PyArg_ParseTuple(args, "K:show_failures", &failures) || !enter(self)) {
        return NULL;
    }
    helio_keeper_show_failures(self->keeper, failures);
    self->is_busy = false;
    Py_RETURN_NONE;
}

static PyObject *keeper_end(store_keeper *self, PyObject *args) {
    hole_arguments hole;
    if (!PyArg_ParseTuple(args, "y#Hs:end", &hole.gsi, &hole.gsi_bytes, &hole.port, &hole.topic) ||
        !is_stream(&hole) || !enter(self)) {
        return NULL;
    }
    const uint64_t end = helio_keeper_end(self->keeper, &hole.tsi, hole.topic);
    self->is_busy = false;
    return PyLong_FromUnsignedLongLong(end);
}

/* A position of show_subscriptions; its texts are those of the row. */
static bool read_subscription(PyObject *row, helio_keeper_subscription *out) {
    hole_arguments stream;
    unsigned long long next_number, end, saved_ns;
    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "a position of a subscription is a tuple");
        return false;
    }
    if (!PyArg_ParseTuple(row, "ssy#HKKK:show_subscriptions", &out->name, &out->topic, &stream.gsi,
                          &stream.gsi_bytes, &stream.port, &next_number, &end, &saved_ns) ||
        !is_stream(&stream)) {
        return false;
    }
    out->tsi = stream.tsi;
    out->next_number = next_number;
    out->end = end;
    out->saved_ns = saved_ns;
    return true;
}

static PyObject *keeper_show_subscriptions(store_keeper *self, PyObject *rows) {
    PyObject *list = PySequence_Tuple(rows);
    if (!list) {
        return NULL;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(list);
    helio_keeper_subscription *all = PyMem_Calloc((size_t)count + 1, sizeof *all);
    Py_ssize_t at = 0;
    while (all && at < count && read_subscription(PyTuple_GET_ITEM(list, at), &all[at])) {
        at++;
    }
    PyObject *result = NULL;
    if (!all) {
        PyErr_NoMemory();
    } else if (at == count && enter(self)) {
        const int error = helio_keeper_show_subscriptions(self->keeper, all, (size_t)count);
        self->is_busy = false;
        result = error ? store_raise(error) : Py_NewRef(Py_None);
    }
    PyMem_Free(all);
    Py_DECREF(list);
    return result;
}

static PyObject *keeper_close(store_keeper *self, PyObject *unused) {
    (void)unused;
    if (!self->keeper) {
        Py_RETURN_NONE;
    }
    if (!enter(self)) {
        return NULL;
    }
    helio_keeper_counts last = {0};
    const int error = close_keeper(self, &last);
    self->is_busy = false;
    return error ? store_raise(error) : counts_row(&last, "");
}

static PyMethodDef methods[] = {
    {"add", (PyCFunction)keeper_add, METH_VARARGS, "add(endpoint, topic, options): keep a topic."},
    {"add_pattern", (PyCFunction)keeper_add_pattern, METH_VARARGS,
     "add_pattern(endpoint, pattern, options, limit): keep topics whose names match."},
    {"expect", (PyCFunction)keeper_expect, METH_VARARGS,
     "expect(topic): the pattern added last finds a topic that no stream has announced yet."},
    {"adopt", (PyCFunction)keeper_adopt, METH_NOARGS,
     "Keep topics that were found; returns how often the topics found have changed."},
    {"found_topics", (PyCFunction)keeper_found_topics, METH_NOARGS,
     "Topics kept because of a pattern: its endpoint, and their names."},
    {"step", (PyCFunction)keeper_step, METH_VARARGS,
     "step(timeout_ns): keep what has arrived; returns the number of messages."},
    {"show_service", (PyCFunction)keeper_show_service, METH_VARARGS,
     "show_service(readers, requests, refused, aborted, bytes_sent, restarts): set statistics."},
    {"use_peers", (PyCFunction)keeper_use_peers, METH_NOARGS,
     "Other stores may have what this one lacks: to be called before the first step."},
    {"holes", (PyCFunction)keeper_holes, METH_NOARGS,
     "Open holes, the oldest first: GSI, port, topic, first and last number."},
    {"fill", (PyCFunction)keeper_fill, METH_VARARGS,
     "fill(gsi, port, topic, batch): keep what a hole lacks; returns the messages kept, the number "
     "after a gap of the batch (0: none), and whether to give the batch again later."},
    {"give_up", (PyCFunction)keeper_give_up, METH_VARARGS,
     "give_up(gsi, port, topic, until): no store has the messages of the hole before `until`."},
    {"show_failures", (PyCFunction)keeper_show_failures, METH_VARARGS,
     "show_failures(count): set the statistic fetch_failures."},
    {"end", (PyCFunction)keeper_end, METH_VARARGS,
     "end(gsi, port, topic): the number after the newest message of a topic; 0: it is not open."},
    {"show_subscriptions", (PyCFunction)keeper_show_subscriptions, METH_O,
     "show_subscriptions(rows): set the statistics of durable subscriptions; a row is name, topic, "
     "GSI, port, next number, number after the newest message, and when it was saved."},
    {"look", (PyCFunction)keeper_look, METH_NOARGS, "Counts, and why it is blocked."},
    {"close", (PyCFunction)keeper_close, METH_NOARGS,
     "Write and acknowledge what it has, and stop; returns the final counts."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject store_keeper_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "heliograph.engine._store.Keeper",
    .tp_basicsize = sizeof(store_keeper),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "An instance whose receivers' messages go to a store.",
    .tp_new = keeper_new,
    .tp_dealloc = (destructor)keeper_dealloc,
    .tp_methods = methods,
};
