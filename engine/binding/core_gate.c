/* Who may call the library when.
 *
 * A gate is OPEN, CLOSING or CLOSED.  Entering is refused unless it is OPEN, so a closer that
 * has made it CLOSING only waits for `inside` to reach 0; those inside come out within a slice.
 * Between slices a thread is outside: a signal handler that runs there may close the very
 * receiver its thread waits for.
 *
 * A polled engine has an owner: the thread that works it.  Entries nest when a callback sends. */
#include "core.h"

#include <time.h>

static _Thread_local core_frame *frames; /* callbacks running on this thread, innermost first */
static PyObject *waiting;                /* objects to close from elsewhere */

bool core_in_callback(const core_instance *instance) {
    for (const core_frame *frame = frames; frame != NULL; frame = frame->outer) {
        if (instance == NULL || frame->instance == instance) {
            return true;
        }
    }
    return false;
}

static bool refuse(const core_gate *gate) {
    char text[96];
    snprintf(text, sizeof text, "the %s is closed", gate->what);
    core_raise_text(HELIO_ERR_CLOSED, text);
    return false;
}

bool core_enter(core_gate *gate, core_manner manner) {
    core_instance *instance = gate->instance;
    if (CORE_UNLIKELY(gate->state != CORE_OPEN)) {
        return refuse(gate);
    }
    if (CORE_UNLIKELY(manner != CORE_SEND && frames != NULL && core_in_callback(instance))) {
        core_raise_text(HELIO_ERR_STATE,
                        "within a callback the only thing to do with its own instance is to send");
        return false;
    }
    if (instance->polled) {
        unsigned long me = PyThread_get_thread_ident();
        if (CORE_UNLIKELY(instance->owner != 0 && instance->owner != me)) {
            core_raise_text(
                HELIO_ERR_STATE,
                "another thread is working this polled instance; use it from one thread");
            return false;
        }
        instance->owner = me;
        instance->depth++;
    }
    gate->inside++;
    return true;
}

bool core_leave(core_gate *gate) {
    core_instance *instance = gate->instance;
    gate->inside--;
    if (!instance->polled) {
        return true;
    }
    core_disown(instance);
    return instance->depth > 0 || !core_stopped(instance);
}

bool core_stopped(core_instance *instance) {
    if (instance->stop_type == NULL) {
        return false;
    }
    PyErr_Restore(instance->stop_type, instance->stop_value, instance->stop_trace);
    instance->stop_type = instance->stop_value = instance->stop_trace = NULL;
    return true;
}

/* What is waited for with it is rare and lasts about a slice, so polling is good enough. */
void core_pause(void) {
    static const struct timespec moment = {.tv_nsec = 200 * 1000};
    PyThreadState *python = PyEval_SaveThread();
    nanosleep(&moment, NULL);
    PyEval_RestoreThread(python);
}

int core_shut(core_gate *gate) {
    if (gate->state == CORE_CLOSED) {
        return 0;
    }
    if (core_in_callback(gate->instance)) {
        core_raise_text(HELIO_ERR_STATE, "a callback cannot close anything of its own instance");
        return -1;
    }
    while (gate->state == CORE_CLOSING) {
        core_pause();
    }
    if (gate->state == CORE_CLOSED) {
        return 0;
    }
    gate->state = CORE_CLOSING;
    while (gate->inside > 0) {
        core_pause();
    }
    return 1;
}

void core_own(core_instance *instance) {
    if (!instance->polled) {
        return;
    }
    unsigned long me = PyThread_get_thread_ident();
    while (instance->owner != 0 && instance->owner != me) {
        core_pause();
    }
    instance->owner = me;
    instance->depth++;
}

void core_disown(core_instance *instance) {
    if (instance->polled && --instance->depth == 0) {
        instance->owner = 0;
    }
}

bool core_frame_begin(core_frame *frame, core_instance *instance) {
    if (core_instances_finished()) {
        return false;
    }
    bool foreign = PyGILState_GetThisThreadState() == NULL;
    frame->gil = PyGILState_Ensure();
    /* The first callback gives the engine's thread a Python thread state.  It keeps it (this
     * Ensure has no Release) until the instance is closed, because making one for every batch
     * would cost more than the callback. */
    if (foreign && instance->engine_thread == NULL) {
        PyGILState_Ensure();
        instance->engine_thread = PyThreadState_Get();
    }
    frame->instance = instance;
    frame->outer = frames;
    frames = frame;
    return true;
}

void core_frame_end(core_frame *frame) {
    frames = frame->outer;
    PyGILState_Release(frame->gil);
}

void core_close_waiting(void) {
    if (waiting == NULL || core_in_callback(NULL)) {
        return;
    }
    PyObject *objects = waiting;
    waiting = NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects); i++) {
        PyObject *result = PyObject_CallMethod(PyList_GET_ITEM(objects, i), "close", NULL);
        if (result == NULL) {
            PyErr_WriteUnraisable(PyList_GET_ITEM(objects, i));
        }
        Py_XDECREF(result);
    }
    Py_DECREF(objects);
}

static int close_waiting(void *ignored) {
    (void)ignored;
    core_close_waiting();
    return 0;
}

void core_close_later(PyObject *object) {
    if (waiting == NULL && (waiting = PyList_New(0)) == NULL) {
        PyErr_WriteUnraisable(object);
        return;
    }
    if (PyList_Append(waiting, object) < 0) {
        PyErr_WriteUnraisable(object);
        return;
    }
    /* When Python's own list is full, the next create or close does it. */
    (void)Py_AddPendingCall(close_waiting, NULL);
}
