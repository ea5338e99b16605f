/* Replay: a receiver asks for messages again and gets them as a receiver of its own. */
#include "core.h"

/* The number of a stream given by number or by identity, the newest of that name.  False with an
 * exception. */
static bool stream_number(core_receiver *self, PyObject *stream, uint32_t *out) {
    if (PyLong_Check(stream)) {
        const unsigned long number = PyLong_AsUnsignedLong(stream);
        if (number == (unsigned long)-1 && PyErr_Occurred()) {
            return false;
        }
        *out = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        return true;
    }
    const char *wanted = PyUnicode_AsUTF8(stream);
    if (wanted == NULL) {
        return false;
    }
    bool found = false;
    const char *name;
    for (uint32_t i = 0; (name = helio_receiver_stream(self->handle, i)) != NULL; i++) {
        if (strcmp(name, wanted) == 0) {
            *out = i;
            found = true;
        }
    }
    if (!found) {
        core_raise_text(HELIO_ERR_STATE, "the receiver has discovered no stream of that name");
    }
    return found;
}

/* Copies the bytes of messages that wait in the slots: the library is about to take its own back.
 */
static bool keep_slots(core_receiver *self) {
    size_t bytes = 0;
    for (size_t i = self->position; i < self->held; i++) {
        bytes += self->slots[i].length;
    }
    char *kept = PyMem_Malloc(bytes + 1);
    if (kept == NULL) {
        PyErr_NoMemory();
        return false;
    }
    char *at = kept;
    for (size_t i = self->position; i < self->held; i++) {
        memcpy(at, self->slots[i].data, self->slots[i].length);
        self->slots[i].data = at;
        at += self->slots[i].length;
    }
    PyMem_Free(self->kept);
    self->kept = kept;
    return true;
}

PyObject *core_receiver_replay(PyObject *op, PyObject *args) {
    core_receiver *live = (core_receiver *)op;
    unsigned long long first, last;
    PyObject *stream;
    if (!PyArg_ParseTuple(args, "KKO:replay", &first, &last, &stream)) {
        return NULL;
    }
    core_receiver *self = (core_receiver *)core_receiver_type.tp_alloc(&core_receiver_type, 0);
    if (self == NULL) {
        return NULL;
    }
    core_child *child = &self->child;
    child->gate.instance = child->instance =
        (core_instance *)Py_NewRef((PyObject *)live->child.instance);
    child->gate.what = "replay";
    child->destroy = core_receiver_destroy;
    child->settle = core_receiver_end_views;
    child->endpoint = Py_NewRef(live->child.endpoint);
    child->topic = Py_NewRef(live->child.topic);
    uint32_t number;
    if (live->child.gate.inside > 0) {
        core_raise_text(HELIO_ERR_STATE, "another thread is receiving with this receiver");
        goto failed;
    }
    if (core_receiver_end_views(&live->child) < 0 || !core_enter(&live->child.gate, CORE_WORK)) {
        goto failed;
    }
    int result = -1;
    const bool is_known = stream_number(live, stream, &number) && keep_slots(live);
    if (is_known) {
        PyThreadState *python = PyEval_SaveThread();
        result = helio_receiver_replay(live->handle, number, first, last, &self->handle);
        PyEval_RestoreThread(python);
        if (result == 0) {
            core_child_opened(child, false);
        }
    }
    if (!core_leave(&live->child.gate) || !is_known) {
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
