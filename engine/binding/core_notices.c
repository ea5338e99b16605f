/* What sources tell receivers, and what an application has done to them by hand. */
#include "core.h"

#define LONGEST_SECONDS 1e9

static int to_duration(double seconds, int64_t *duration_ns) {
    if (!(seconds >= 0 && seconds <= LONGEST_SECONDS)) {
        PyErr_Format(PyExc_ValueError, "seconds must be 0 to 1e9");
        return -1;
    }
    *duration_ns = (int64_t)(seconds * 1e9);
    return 0;
}

/* Leaves the handle; None, or NULL with the error set. */
static PyObject *finished(core_transmitter *self, int result) {
    if (!core_leave(&self->child.gate)) {
        return NULL;
    }
    if (result < 0) {
        return core_raise(result);
    }
    Py_RETURN_NONE;
}

PyObject *core_transmitter_act(PyObject *op, PyObject *args) {
    core_transmitter *self = (core_transmitter *)op;
    unsigned long long receiver;
    int action;
    double seconds;
    const char *why;
    int64_t duration_ns;
    if (!PyArg_ParseTuple(args, "Kids:act", &receiver, &action, &seconds, &why) ||
        to_duration(seconds, &duration_ns) < 0 || !core_enter(&self->child.gate, CORE_WORK)) {
        return NULL;
    }
    PyThreadState *python = PyEval_SaveThread(); /* the engine's thread may want the GIL */
    const int result = helio_transmitter_act(self->handle, receiver, action, duration_ns, why);
    PyEval_RestoreThread(python);
    return finished(self, result);
}

PyObject *core_transmitter_cut_off(PyObject *op, PyObject *args, PyObject *keywords) {
    static char *names[] = {"seconds", "why", NULL};
    core_transmitter *self = (core_transmitter *)op;
    double seconds;
    const char *why = "";
    int64_t duration_ns;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "d|s:cut_off", names, &seconds, &why) ||
        to_duration(seconds, &duration_ns) < 0 || !core_enter(&self->child.gate, CORE_WORK)) {
        return NULL;
    }
    PyThreadState *python = PyEval_SaveThread();
    const int result = helio_transmitter_cut_off(self->handle, duration_ns, why);
    PyEval_RestoreThread(python);
    return finished(self, result);
}

static PyObject *notice_tuple(core_receiver *self, const helio_notice *notice) {
    PyObject *stream = notice->stream == HELIO_NO_STREAM
                           ? Py_NewRef(Py_None)
                           : core_receiver_stream_name(self, notice->stream);
    if (stream == NULL) {
        return NULL;
    }
    PyObject *text =
        PyUnicode_DecodeUTF8(notice->text, (Py_ssize_t)strlen(notice->text), "replace");
    if (text == NULL) {
        Py_DECREF(stream);
        return NULL;
    }
    return Py_BuildValue("IIOdNNL", notice->action, notice->reason,
                         notice->by_hand ? Py_True : Py_False, (double)notice->duration_ns / 1e9,
                         text, stream, (long long)notice->wall_ns);
}

PyObject *core_receiver_notices(PyObject *op, PyObject *ignored) {
    (void)ignored;
    core_receiver *self = (core_receiver *)op;
    PyObject *list = PyList_New(0);
    while (list != NULL) {
        helio_notice notice;
        if (!core_enter(&self->child.gate, CORE_SEND)) {
            break;
        }
        const int result = helio_receiver_notice(self->handle, &notice);
        PyObject *item = result > 0 ? notice_tuple(self, &notice) : NULL;
        if (!core_leave(&self->child.gate)) {
            Py_XDECREF(item);
            break;
        }
        if (result == 0) {
            return list;
        }
        const int appended = item != NULL ? PyList_Append(list, item) : -1;
        Py_XDECREF(item);
        if (appended < 0) {
            break;
        }
    }
    Py_XDECREF(list);
    return NULL;
}
