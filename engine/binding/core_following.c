/* Receivers that take messages from stores too.  The stores are read in Python
 * (heliograph.engine.store.following); here are the options, the messages and the account. */
#include "core.h"

#include "runtime/following.h"
#include "runtime/opening.h"

PyObject *core_following(PyObject *module, PyObject *args) {
    (void)module;
    const char *endpoint, *topic, *options;
    helio_opening opening;
    helio_following_options following;
    if (!PyArg_ParseTuple(args, "ssz:following", &endpoint, &topic, &options)) {
        return NULL;
    }
    const int error = helio_following_parse(&opening, endpoint, topic, options, &following);
    if (error) {
        return core_raise(error);
    }
    PyObject *result =
        following.is_needed
            ? Py_BuildValue("OOLsss", following.joins ? Py_True : Py_False,
                            following.acks ? Py_True : Py_False, (long long)following.wait_ns,
                            following.stores, following.join_from, following.durable)
            : Py_NewRef(Py_None);
    helio_opening_fini(&opening);
    return result;
}

PyObject *core_stored_message(PyObject *module, PyObject *args) {
    (void)module;
    const char *data;
    Py_ssize_t length;
    PyObject *topic, *stream;
    unsigned long long number;
    unsigned long long submit_ns, receive_ns;
    int recovered;
    if (!PyArg_ParseTuple(args, "y#UUKKKp:stored_message", &data, &length, &topic, &stream, &number,
                          &submit_ns, &receive_ns, &recovered)) {
        return NULL;
    }
    const helio_message message = {
        .data = data,
        .length = (size_t)length,
        .number = number,
        .submit_ns = (int64_t)submit_ns,
        .receive_ns = (int64_t)receive_ns,
        .flags = recovered ? HELIO_MESSAGE_RECOVERED : 0,
    };
    return core_message_new(&message, topic, stream);
}

PyObject *core_receiver_followed(PyObject *op, PyObject *args) {
    core_receiver *self = (core_receiver *)op;
    const char *stream, *failure;
    unsigned long long next, covered, live, joined, recovered, lost, first_lost, repeated, failures;
    if (!PyArg_ParseTuple(args, "sKKKKKKKKKz:followed", &stream, &next, &covered, &live, &joined,
                          &recovered, &lost, &first_lost, &repeated, &failures, &failure)) {
        return NULL;
    }
    const helio_followed news = {
        .next = next,
        .covered = covered,
        .live = live,
        .joined = joined,
        .recovered = recovered,
        .lost = lost,
        .first_lost = first_lost,
        .repeated = repeated,
        .failures = failures,
    };
    if (!core_enter(&self->child.gate, CORE_WORK)) {
        return NULL;
    }
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = helio_receiver_followed(self->handle, stream, &news, failure);
    Py_END_ALLOW_THREADS;
    if (!core_leave(&self->child.gate)) {
        return NULL;
    }
    return result < 0 ? core_raise(result) : Py_NewRef(Py_None);
}

PyObject *core_receiver_stores(PyObject *op, PyObject *ignored) {
    (void)ignored;
    core_receiver *self = (core_receiver *)op;
    char text[HELIO_STORES_TEXT];
    if (!core_enter(&self->child.gate, CORE_WORK)) {
        return NULL;
    }
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = helio_receiver_stores(self->handle, text, sizeof text);
    Py_END_ALLOW_THREADS;
    if (!core_leave(&self->child.gate)) {
        return NULL;
    }
    return result < 0 ? core_raise(result) : PyUnicode_FromString(text);
}
