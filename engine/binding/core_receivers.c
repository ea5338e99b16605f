/* A transmitter's look at its receivers. */
#include "core.h"

#include <stdio.h>

#define RECEIVERS_AT_FIRST 64

static const char *state_name(uint32_t state) {
    switch (state) {
    case HELIO_RECEIVER_SUSPENDED:
        return "suspended";
    case HELIO_RECEIVER_EXPELLED:
        return "expelled";
    case HELIO_RECEIVER_LEFT:
        return "left";
    default:
        return "ok";
    }
}

static const char *behaviour_name(uint32_t behaviour) {
    static const char *const names[] = {"unknown", "ok",      "falling_behind",
                                        "stalled", "stopped", "recovering"};
    return behaviour < sizeof names / sizeof *names ? names[behaviour] : names[0];
}

static const char *outlook_name(uint32_t outlook) {
    static const char *const names[] = {"unknown", "none", "ahead", "past"};
    return outlook < sizeof names / sizeof *names ? names[outlook] : names[0];
}

/* Told by reports only: None of a receiver that sends none. */
static PyObject *told(const helio_receiver_info *info, PyObject *value) {
    if (info->reports || value == NULL) {
        return value;
    }
    Py_DECREF(value);
    return Py_NewRef(Py_None);
}

static PyObject *forecast(const helio_receiver_info *info) {
    return info->forecast_ns ? PyFloat_FromDouble((double)info->forecast_ns / 1e9)
                             : Py_NewRef(Py_None);
}

static PyObject *receiver_tuple(const helio_receiver_info *info) {
    char receiver[17];
    snprintf(receiver, sizeof receiver, "%016llx", (unsigned long long)info->receiver);
    PyObject *name = PyUnicode_DecodeUTF8(info->name, (Py_ssize_t)strlen(info->name), "replace");
    if (name == NULL) {
        return NULL;
    }
    return Py_BuildValue(
        "sNsKNNNNNNNdKKKKsLNNNNNdddss", receiver, name, info->address,
        (unsigned long long)info->incarnation, told(info, PyFloat_FromDouble(info->loss)),
        told(info, PyLong_FromUnsignedLongLong(info->packets_received)),
        told(info, PyLong_FromUnsignedLongLong(info->packets_missed)),
        told(info, PyLong_FromUnsignedLongLong(info->packets_lost)),
        told(info, PyLong_FromUnsignedLongLong(info->lag)),
        told(info, PyFloat_FromDouble(info->buffer_fill)),
        told(info, PyLong_FromUnsignedLong(info->window)), (double)info->round_trip_ns / 1e9,
        (unsigned long long)info->naks, (unsigned long long)info->naks_again,
        (unsigned long long)info->repairs, (unsigned long long)info->repair_bytes,
        state_name(info->state), (long long)info->heard_ns, PyBool_FromLong(info->reports),
        PyBool_FromLong(info->tagged), told(info, PyLong_FromUnsignedLongLong(info->lag_bytes)),
        told(info, PyFloat_FromDouble((double)info->lag_ns / 1e9)), forecast(info),
        (double)info->blame_ns / 1e9, info->nak_share, info->badness,
        behaviour_name(info->behaviour), outlook_name(info->outlook));
}

/* All there are, in memory of PyMem_Free's; NULL with an exception. */
static helio_receiver_info *read_all(core_transmitter *self, int *count) {
    helio_receiver_info *infos = NULL;
    int limit = RECEIVERS_AT_FIRST;
    for (;;) {
        helio_receiver_info *more = PyMem_Realloc(infos, (size_t)limit * sizeof *infos);
        if (more == NULL) {
            PyErr_NoMemory();
            break;
        }
        infos = more;
        if (!core_enter(&self->child.gate, CORE_SEND)) {
            break;
        }
        /* The engine is asked, whose thread may want the GIL for a callback. */
        PyThreadState *python = PyEval_SaveThread();
        *count = helio_transmitter_receivers(self->handle, infos, (size_t)limit);
        PyEval_RestoreThread(python);
        if (!core_leave(&self->child.gate)) {
            break;
        }
        if (*count < 0) {
            core_raise(*count);
            break;
        }
        if (*count <= limit) {
            return infos;
        }
        limit = *count;
    }
    PyMem_Free(infos);
    return NULL;
}

PyObject *core_transmitter_receivers(PyObject *op, PyObject *ignored) {
    (void)ignored;
    int count;
    helio_receiver_info *infos = read_all((core_transmitter *)op, &count);
    if (infos == NULL) {
        return NULL;
    }
    PyObject *list = PyList_New(count);
    for (int i = 0; list != NULL && i < count; i++) {
        PyObject *receiver = receiver_tuple(&infos[i]);
        if (receiver == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, receiver);
        }
    }
    PyMem_Free(infos);
    return list;
}
