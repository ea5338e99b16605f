/* heliograph.engine._lab: trials of `heliograph lab` (lab/trial/trial.h).
 *
 * A Trial is told what it has (add_...), what changes when (plan), and runs.  Thin: what a scenario
 * means is decided in Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>

#include <heliograph/heliograph.h>

#include "base/moment.h"
#include "lab_cost.h"
#include "lab_rerun.h"
#include "options/options.h"
#include "trial/trial.h"

#define SLICE_NS (100 * HELIO_MILLISECOND) /* of virtual time between looks for Ctrl-C */

typedef struct trial_object {
    PyObject_HEAD helio_trial *trial;
} trial_object;

static PyObject *refuse(int error) {
    if (error == HELIO_ERR_NOMEM) {
        return PyErr_NoMemory();
    }
    PyErr_SetString(PyExc_ValueError, helio_error_text());
    return NULL;
}

static PyObject *number(int result) {
    return result < 0 ? refuse(result) : PyLong_FromLong(result);
}

/* Seconds as ns; infinity is never. */
static int64_t ns_of(double seconds) {
    return seconds < 9e9 ? (int64_t)llround(seconds * 1e9) : HELIO_NEVER;
}

static double seconds_of(int64_t ns) {
    return ns == HELIO_NEVER ? INFINITY : (double)ns / 1e9;
}

/* ---- life ---- */

static PyObject *trial_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"seed", "interval", "watches", NULL};
    unsigned long long seed;
    double interval;
    int watches = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Kd|p", names, &seed, &interval, &watches)) {
        return NULL;
    }
    if (!(interval >= 1e-6 && interval <= 3600)) {
        PyErr_SetString(PyExc_ValueError, "an interval takes 1e-6 to 3600 seconds");
        return NULL;
    }
    trial_object *self = (trial_object *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->trial = helio_trial_create(seed, ns_of(interval), watches);
    if (self->trial == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void trial_free(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    helio_trial_destroy(((trial_object *)object)->trial);
    type->tp_free(object);
    Py_DECREF(type);
}

static helio_trial *trial_of(PyObject *object) {
    return ((trial_object *)object)->trial;
}

/* ---- what it has ---- */

static PyObject *add_pipe(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"rate", "queue", "overhead", "loss", "delay", NULL};
    unsigned long long rate, queue;
    unsigned overhead = 0;
    double loss = 0, delay = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "KK|Idd", names, &rate, &queue, &overhead,
                                     &loss, &delay)) {
        return NULL;
    }
    const helio_sim_pipe_config config = {.rate = rate,
                                          .queue_bytes = queue,
                                          .overhead_bytes = overhead,
                                          .loss = loss,
                                          .delay_ns = ns_of(delay)};
    return number(helio_trial_add_pipe(trial_of(self), &config));
}

static PyObject *add_source(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"options", "pipe",  "offered",        "message_bytes", "queue",
                            "even",    "start", "feedback_delay", "feedback_loss", NULL};
    helio_trial_source_config config = {.pipe = HELIO_TRIAL_NONE};
    unsigned long long queue;
    int even = 0;
    double start = 0, feedback = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "zidIKpddd", names, &config.options,
                                     &config.pipe, &config.offered, &config.message_bytes, &queue,
                                     &even, &start, &feedback, &config.feedback_loss)) {
        return NULL;
    }
    config.queue_bytes = queue;
    config.is_even = even;
    config.start_ns = ns_of(start);
    config.feedback_ns = ns_of(feedback);
    return number(helio_trial_add_source(trial_of(self), &config));
}

static PyObject *add_group(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"options",      "count",    "join",  "delay", "jitter",
                            "loss",         "burst",    "drain", "queue", "access_rate",
                            "access_queue", "overhead", NULL};
    helio_trial_group_config config = {.count = 0};
    double join = 0, delay = 0, jitter = 0;
    unsigned long long queue, access_rate, access_queue;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "zIdddd(ddd)dKKKI", names, &config.options,
                                     &config.count, &join, &delay, &jitter, &config.loss,
                                     &config.burst_begin, &config.burst_end, &config.burst_loss,
                                     &config.drain, &queue, &access_rate, &access_queue,
                                     &config.access.overhead_bytes)) {
        return NULL;
    }
    config.join_ns = ns_of(join);
    config.delay_ns = ns_of(delay);
    config.jitter_ns = ns_of(jitter);
    config.queue_bytes = queue;
    config.access.rate = access_rate;
    config.access.queue_bytes = access_queue;
    return number(helio_trial_add_group(trial_of(self), &config));
}

static PyObject *add_tcp(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"pipe", "start", "stop", "delay", "feedback_delay", NULL};
    helio_trial_tcp_config config = {.pipe = HELIO_TRIAL_NONE};
    double start, stop, delay, feedback;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "idddd", names, &config.pipe, &start, &stop,
                                     &delay, &feedback)) {
        return NULL;
    }
    config.start_ns = ns_of(start);
    config.stop_ns = ns_of(stop);
    config.delay_ns = ns_of(delay);
    config.feedback_ns = ns_of(feedback);
    return number(helio_trial_add_tcp(trial_of(self), &config));
}

static PyObject *plan(PyObject *self, PyObject *args) {
    static const struct {
        const char *name;
        helio_trial_knob knob;
    } knobs[] = {{"pipe", HELIO_TRIAL_PIPE},   {"offered", HELIO_TRIAL_OFFERED},
                 {"loss", HELIO_TRIAL_LOSS},   {"delay", HELIO_TRIAL_DELAY},
                 {"drain", HELIO_TRIAL_DRAIN}, {"leave", HELIO_TRIAL_LEAVE}};
    double at, value = 0, second = 0;
    const char *name;
    int which;
    if (!PyArg_ParseTuple(args, "dsi|dd", &at, &name, &which, &value, &second)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
        if (strcmp(name, knobs[i].name) == 0) {
            if (knobs[i].knob == HELIO_TRIAL_DELAY) {
                value *= 1e9;
            }
            const int error =
                helio_trial_plan(trial_of(self), ns_of(at), knobs[i].knob, which, value, second);
            return error ? refuse(error) : Py_NewRef(Py_None);
        }
    }
    return PyErr_Format(PyExc_ValueError, "there is no knob \"%s\"", name);
}

/* ---- it runs ---- */

static PyObject *columns_of(const helio_trial *trial) {
    const size_t count = helio_trial_columns(trial);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *name = PyUnicode_FromString(helio_trial_column(trial, i));
        if (name == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, name);
        }
    }
    return list;
}

static PyObject *events_of(const helio_trial *trial) {
    size_t count;
    uint64_t missed;
    const helio_trial_event *events = helio_trial_events(trial, &count, &missed);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        const helio_trial_event *e = &events[i];
        PyObject *event = Py_BuildValue(
            "(dIi(KKKK)N)", seconds_of(e->at_ns), e->event, e->source,
            (unsigned long long)e->arguments[0], (unsigned long long)e->arguments[1],
            (unsigned long long)e->arguments[2], (unsigned long long)e->arguments[3],
            PyUnicode_DecodeUTF8(e->text, (Py_ssize_t)strnlen(e->text, sizeof e->text), "replace"));
        if (event == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, event);
        }
    }
    return list;
}

static PyObject *receivers_of(const helio_trial *trial) {
    const size_t count = helio_trial_receivers(trial);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        const helio_trial_receiver_result r = helio_trial_receiver_at(trial, i);
        PyObject *row = Py_BuildValue("(iKKKd)", r.group, (unsigned long long)r.receiver,
                                      (unsigned long long)r.delivered, (unsigned long long)r.lost,
                                      seconds_of(r.first_lost_ns));
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    return list;
}

static PyObject *run(PyObject *self, PyObject *args) {
    double duration;
    if (!PyArg_ParseTuple(args, "d", &duration)) {
        return NULL;
    }
    helio_trial *trial = trial_of(self);
    const int64_t end_ns = ns_of(duration);
    for (int64_t at_ns = 0; at_ns < end_ns;) {
        at_ns = end_ns - at_ns > SLICE_NS ? at_ns + SLICE_NS : end_ns;
        int error;
        Py_BEGIN_ALLOW_THREADS error = helio_trial_run(trial, at_ns);
        Py_END_ALLOW_THREADS if (error) return refuse(error);
        if (PyErr_CheckSignals() != 0) {
            return NULL;
        }
    }
    size_t rows, sights;
    const double *values = helio_trial_rows(trial, &rows);
    const size_t bytes = rows * helio_trial_columns(trial) * sizeof *values;
    const helio_trial_sight *seen = helio_trial_sights(trial, &sights);
    return Py_BuildValue(
        "(NNNNN)", columns_of(trial),
        PyBytes_FromStringAndSize((const char *)values, (Py_ssize_t)bytes), events_of(trial),
        receivers_of(trial),
        PyBytes_FromStringAndSize((const char *)seen, (Py_ssize_t)(sights * sizeof *seen)));
}

/* ---- the module ---- */

#define KEYWORDS(name) (PyCFunction)(void (*)(void))(name), METH_VARARGS | METH_KEYWORDS

static PyMethodDef trial_methods[] = {
    {"add_pipe", KEYWORDS(add_pipe), "Add a bottleneck; its number."},
    {"add_source", KEYWORDS(add_source), "Add a source and its application; its number."},
    {"add_group", KEYWORDS(add_group), "Add receivers that are alike; the number of the group."},
    {"add_tcp", KEYWORDS(add_tcp), "Add a TCP flow; its number."},
    {"plan", plan, METH_VARARGS, "Turn a knob at a moment: at, knob, number, value, second."},
    {"run", run, METH_VARARGS,
     "Run for `duration` seconds: column names, rows of doubles, events, receivers, sights."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot trial_slots[] = {
    {Py_tp_doc, "A trial on a simulated network."},
    {Py_tp_new, trial_new},
    {Py_tp_dealloc, trial_free},
    {Py_tp_methods, trial_methods},
    {0, NULL},
};

static PyType_Spec trial_spec = {
    .name = "heliograph.engine._lab.Trial",
    .basicsize = sizeof(trial_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = trial_slots,
};

static PyObject *decision_costs(PyObject *module, PyObject *args) {
    (void)module;
    enum { MOST = 16 };
    unsigned receivers;
    int intervals;
    if (!PyArg_ParseTuple(args, "Ii", &receivers, &intervals)) {
        return NULL;
    }
    if (receivers < 1 || receivers > 100000 || intervals < 1) {
        PyErr_SetString(PyExc_ValueError, "1 to 100000 receivers, and some intervals");
        return NULL;
    }
    lab_cost_row rows[MOST];
    const size_t count = lab_cost(receivers, intervals, rows, MOST);
    PyObject *costs = count > 0 ? PyDict_New() : PyErr_NoMemory();
    for (size_t i = 0; costs != NULL && i < count; i++) {
        PyObject *ns = PyFloat_FromDouble(rows[i].ns);
        if (ns == NULL || PyDict_SetItemString(costs, rows[i].what, ns) < 0) {
            Py_CLEAR(costs);
        }
        Py_XDECREF(ns);
    }
    return costs;
}

static PyObject *check_options(PyObject *module, PyObject *args) {
    (void)module;
    static const char *const names[] = {"instance", "transmitter", "receiver"};
    const char *name, *text;
    union {
        helio_instance_options instance;
        helio_end_options end;
    } options;
    if (!PyArg_ParseTuple(args, "sz", &name, &text)) {
        return NULL;
    }
    helio_owner on = HELIO_ON_INSTANCE;
    while (on < HELIO_ON_RECEIVER && strcmp(name, names[on]) != 0) {
        on++;
    }
    int error = helio_options_init(&options, on);
    if (!error) {
        error = helio_options_read(&options, on, text, false);
        helio_options_fini(&options, on);
    }
    if (error) {
        return refuse(error);
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"check_options", check_options, METH_VARARGS,
     "Raise ValueError unless they are options of an owner: owner, options."},
    {"decision_costs", decision_costs, METH_VARARGS,
     "ns that each decider takes per receiver; arguments: number of receivers, of intervals."},
    {"rerun", lab_rerun, METH_VARARGS,
     "Make the decisions of a log again, with other options over its own if given."},
    {NULL, NULL, 0, NULL},
};

static int exec(PyObject *module) {
    PyObject *type = PyType_FromSpec(&trial_spec);
    if (type == NULL) {
        return -1;
    }
    const int error = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return error;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec}, {0, NULL}};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.engine._lab",
    .m_doc = "Trials of heliograph lab.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__lab(void) {
    return PyModuleDef_Init(&module);
}
