/* Acknowledgements: a transmitter's look at them, and a receiver's saying them by number. */
#include "core.h"

#include <stdio.h>

#define ACKS_AT_ONCE 64
#define MOST_ACKERS 1024

/* ---- transmitter ---- */

static int wait_acked(core_transmitter *self, size_t receivers, int64_t slice_ns) {
    return helio_transmitter_wait_acked(self->handle, (uint32_t)receivers, slice_ns);
}

PyObject *core_transmitter_wait_acked(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                      PyObject *keywords) {
    static const char *const names[] = {"receivers", "timeout"};
    core_transmitter *self = (core_transmitter *)op;
    PyObject *values[2];
    int64_t timeout_ns;
    if (core_arguments("wait_acked", args, count, keywords, names, 2, 0, values) < 0 ||
        core_timeout(values[1], &timeout_ns) < 0) {
        return NULL;
    }
    Py_ssize_t receivers = 1;
    if (values[0] != NULL) {
        receivers = PyNumber_AsSsize_t(values[0], PyExc_OverflowError);
        if (receivers == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (receivers < 0 || receivers > MOST_ACKERS) {
            PyErr_Format(PyExc_ValueError, "receivers must be 0 to %d, not %zd", MOST_ACKERS,
                         receivers);
            return NULL;
        }
    }
    if (core_transmitter_wait(self, wait_acked, (size_t)receivers, core_deadline(timeout_ns)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static int wait_stable(core_transmitter *self, size_t number, int64_t slice_ns) {
    return helio_transmitter_wait_stable(self->handle, number, slice_ns);
}

PyObject *core_transmitter_wait_stable(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords) {
    static const char *const names[] = {"number", "timeout"};
    core_transmitter *self = (core_transmitter *)op;
    PyObject *values[2];
    int64_t timeout_ns;
    if (core_arguments("wait_stable", args, count, keywords, names, 2, 0, values) < 0 ||
        core_timeout(values[1], &timeout_ns) < 0) {
        return NULL;
    }
    unsigned long long number = HELIO_ALL_MESSAGES;
    if (values[0] != NULL && values[0] != Py_None) {
        number = PyLong_AsUnsignedLongLong(values[0]);
        if (number == (unsigned long long)-1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    if (core_transmitter_wait(self, wait_stable, (size_t)number, core_deadline(timeout_ns)) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *ack_tuple(const helio_ack *ack) {
    char receiver[17];
    snprintf(receiver, sizeof receiver, "%016llx", (unsigned long long)ack->receiver);
    PyObject *name = PyUnicode_DecodeUTF8(ack->name, (Py_ssize_t)strlen(ack->name), "replace");
    if (name == NULL) {
        return NULL;
    }
    return Py_BuildValue("KsNss", (unsigned long long)ack->number, receiver, name, ack->address,
                         ack->kind == HELIO_ACKED_APPLICATION ? "application" : "transport");
}

void core_transmitter_on_ack(void *context, const helio_ack *ack) {
    core_transmitter *self = context;
    core_frame frame;
    if (!core_frame_begin(&frame, self->child.instance)) {
        return;
    }
    core_call(self->child.instance, &self->callback_errors, self->on_ack, ack_tuple(ack));
    core_frame_end(&frame);
}

PyObject *core_transmitter_acks(PyObject *op, PyObject *ignored) {
    (void)ignored;
    core_transmitter *self = (core_transmitter *)op;
    PyObject *list = PyList_New(0);
    int taken = list != NULL ? ACKS_AT_ONCE : -1;
    while (taken == ACKS_AT_ONCE) {
        helio_ack acks[ACKS_AT_ONCE];
        if (!core_enter(&self->child.gate, CORE_SEND)) {
            goto failed;
        }
        /* The first call asks the engine, whose thread may want the GIL for a callback. */
        PyThreadState *python = PyEval_SaveThread();
        taken = helio_transmitter_acks(self->handle, acks, ACKS_AT_ONCE);
        PyEval_RestoreThread(python);
        if (!core_leave(&self->child.gate)) {
            goto failed;
        }
        if (taken < 0) {
            core_raise(taken);
            goto failed;
        }
        for (int i = 0; i < taken; i++) {
            PyObject *ack = ack_tuple(&acks[i]);
            int appended = ack != NULL ? PyList_Append(list, ack) : -1;
            Py_XDECREF(ack);
            if (appended < 0) {
                goto failed;
            }
        }
    }
    return list;
failed:
    Py_XDECREF(list);
    return NULL;
}

/* ---- receiver ---- */

/* The stream's number within the receiver: of this name, or of the only one there is; NO_STREAM
 * with an exception. */
#define NO_STREAM UINT32_MAX
static uint32_t receiver_stream_number(core_receiver *self, PyObject *name) {
    if (name == NULL || name == Py_None) {
        if (helio_receiver_stream(self->handle, 1) != NULL) {
            PyErr_SetString(PyExc_ValueError,
                            "the receiver has discovered several streams; give the name of one");
            return NO_STREAM;
        }
        return 0;
    }
    const char *wanted = PyUnicode_AsUTF8(name);
    if (wanted == NULL) {
        return NO_STREAM;
    }
    const char *text = helio_receiver_stream(self->handle, self->acked_stream);
    if (text != NULL && strcmp(text, wanted) == 0) {
        return self->acked_stream;
    }
    for (uint32_t number = 0;; number++) {
        text = helio_receiver_stream(self->handle, number);
        if (text == NULL) {
            PyErr_Format(PyExc_ValueError, "the receiver has discovered no stream %R", name);
            return NO_STREAM;
        }
        if (strcmp(text, wanted) == 0) {
            return self->acked_stream = number;
        }
    }
}

PyObject *core_receiver_acknowledge_number(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                           PyObject *keywords) {
    static const char *const names[] = {"number", "stream"};
    core_receiver *self = (core_receiver *)op;
    PyObject *values[2];
    if (core_arguments("acknowledge_number", args, count, keywords, names, 2, 1, values) < 0) {
        return NULL;
    }
    unsigned long long number = PyLong_AsUnsignedLongLong(values[0]);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!core_enter(&self->child.gate, CORE_SEND)) {
        return NULL;
    }
    uint32_t stream = receiver_stream_number(self, values[1]);
    int result = stream != NO_STREAM ? helio_receiver_ack(self->handle, stream, number) : 0;
    if (!core_leave(&self->child.gate) || stream == NO_STREAM) {
        return NULL;
    }
    if (result < 0) {
        return core_raise(result);
    }
    Py_RETURN_NONE;
}
