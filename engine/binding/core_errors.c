/* Errors of the library become exceptions of heliograph.engine.errors.
 *
 * The classes live in Python, made from the catalogue; this file knows one function there,
 * from_code(value, text). */
#include "core.h"

static PyObject *from_code;

int core_errors_setup(void) {
    PyObject *module = PyImport_ImportModule("heliograph.engine.errors");
    if (module == NULL) {
        return -1;
    }
    Py_XSETREF(from_code, PyObject_GetAttrString(module, "from_code"));
    Py_DECREF(module);
    return from_code == NULL ? -1 : 0;
}

PyObject *core_raise_text(int error, const char *text) {
    /* The text may quote what somebody typed, and be cut in the middle of a character. */
    PyObject *sentence = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *exception =
        sentence != NULL ? PyObject_CallFunction(from_code, "iO", error, sentence) : NULL;
    Py_XDECREF(sentence);
    if (exception != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
        Py_DECREF(exception);
    }
    return NULL;
}

PyObject *core_raise(int error) {
    return core_raise_text(error, helio_error_text());
}

void core_tell_accepted(size_t accepted) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *number = PyLong_FromSize_t(accepted);
    if (number == NULL || PyObject_SetAttrString(value, "accepted", number) < 0) {
        PyErr_Clear(); /* not an exception that can be told */
    }
    Py_XDECREF(number);
    PyErr_Restore(type, value, trace);
}
