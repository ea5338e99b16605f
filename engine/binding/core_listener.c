/* Callbacks: the engine's thread, or a poll, comes here with a batch; the GIL is taken once for
 * all of it.
 *
 * An exception must not reach the engine.  It is shown by sys.unraisablehook and counted.  One
 * that is meant to stop the program (Ctrl-C, sys.exit) stops the poll that is below it on the
 * same stack; the engine's own thread has nobody below. */
#include "core.h"

static void callback_failed(core_instance *instance, uint64_t *errors, PyObject *callback) {
    if (instance->polled && instance->stop_type == NULL &&
        !PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Fetch(&instance->stop_type, &instance->stop_value, &instance->stop_trace);
        return;
    }
    ++*errors;
    PyErr_WriteUnraisable(callback);
}

static PyObject *batch(core_receiver *self, const helio_message *messages, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *message = core_receiver_message(self, &messages[i]);
        if (message == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, message);
        }
    }
    return list;
}

void core_call(core_instance *instance, uint64_t *errors, PyObject *callback, PyObject *argument) {
    PyObject *result = argument != NULL ? PyObject_CallOneArg(callback, argument) : NULL;
    if (result == NULL) {
        callback_failed(instance, errors, callback);
    }
    Py_XDECREF(result);
    Py_XDECREF(argument);
}

void core_listener_on_messages(void *context, const helio_message *messages, size_t count) {
    core_receiver *self = context;
    core_frame frame;
    if (!core_frame_begin(&frame, self->child.instance)) {
        return;
    }
    core_call(self->child.instance, &self->callback_errors, self->on_messages,
              batch(self, messages, count));
    core_frame_end(&frame);
}

void core_listener_on_loss(void *context, const helio_loss *loss) {
    core_receiver *self = context;
    core_frame frame;
    if (!core_frame_begin(&frame, self->child.instance)) {
        return;
    }
    PyObject *stream = core_receiver_stream_name(self, loss->stream);
    PyObject *argument = NULL;
    if (stream != NULL) {
        argument = Py_BuildValue("KKN", (unsigned long long)loss->first,
                                 (unsigned long long)loss->count, stream);
    }
    core_call(self->child.instance, &self->callback_errors, self->on_loss, argument);
    core_frame_end(&frame);
}
