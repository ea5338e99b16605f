/* What transmitter and receiver have in common: they belong to an instance and are closed by
 * themselves, by it, or by nobody.
 *
 * The instance's list holds its open children.  The list does not keep them alive, except those
 * with a listener: these work without anybody holding them. */
#include "core.h"

void core_child_opened(core_child *child, bool pinned) {
    core_instance *instance = child->instance;
    child->gate.state = CORE_OPEN;
    child->previous = NULL;
    child->next = instance->children;
    if (child->next != NULL) {
        child->next->previous = child;
    }
    instance->children = child;
    child->pinned = pinned;
    if (pinned) {
        Py_INCREF(child);
    }
}

void core_child_closed(core_child *child) {
    child->gate.state = CORE_CLOSED;
    if (child->previous != NULL) {
        child->previous->next = child->next;
    } else {
        child->instance->children = child->next;
    }
    if (child->next != NULL) {
        child->next->previous = child->previous;
    }
    child->next = child->previous = NULL;
    if (child->pinned) {
        child->pinned = false;
        Py_DECREF(child);
    }
}

/* Closes it.  Returns 0, or -1 with an exception. */
static int child_end(PyObject *self) {
    core_child *child = (core_child *)self;
    core_instance *instance = child->instance;
    int shut = core_shut(&child->gate);
    if (shut <= 0) {
        return shut;
    }
    if (child->settle != NULL && child->settle(child) < 0) {
        child->gate.state = CORE_OPEN;
        return -1;
    }
    core_own(instance);
    PyThreadState *python = PyEval_SaveThread();
    child->destroy(child);
    PyEval_RestoreThread(python);
    core_disown(instance);
    core_child_closed(child);
    return 0;
}

PyObject *core_child_close(PyObject *self, PyObject *ignored) {
    (void)ignored;
    if (child_end(self) < 0 || core_stopped(((core_child *)self)->instance)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyObject *core_child_get_closed(PyObject *self, void *ignored) {
    (void)ignored;
    return PyBool_FromLong(((core_child *)self)->gate.state != CORE_OPEN);
}

void core_child_finalize(PyObject *self) {
    core_finalize(self, &((core_child *)self)->gate, child_end);
}

void core_finalize(PyObject *self, core_gate *gate, int (*end)(PyObject *self)) {
    if (gate->state != CORE_OPEN) {
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (PyErr_ResourceWarning(self, 1, "unclosed %R", self) < 0) {
        PyErr_WriteUnraisable(self);
    }
    /* The engine's thread, where a garbage collection may happen too, cannot wait for itself. */
    if (core_in_callback(NULL)) {
        core_close_later(self);
    } else if (end(self) < 0) {
        PyErr_WriteUnraisable(self);
    }
    PyErr_Restore(type, value, trace);
}
