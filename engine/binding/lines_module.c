/* heliograph.exporters._lines: series as lines of the text format; nothing of the engine.
 *
 * An answer has tens of thousands of lines, and most values are small whole numbers.  These are
 * written here digit by digit; all other values as Python's repr, with Go's exponent from a million
 * on, as prometheus-client writes them. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    PLAIN_BELOW = 1000000, /* Go writes larger values with an exponent */
    NUMBER_BYTES = 64,     /* more than any number takes */
};
static const int64_t EXACT_TO = INT64_C(1) << 53; /* whole numbers that are doubles */

typedef struct text {
    char *data;
    size_t size, room;
} text;

/* Makes room for `more` bytes; -1 with an exception set. */
static int reserve(text *out, size_t more) {
    if (out->room - out->size >= more) {
        return 0;
    }
    const size_t room = 2 * (out->size + more);
    char *data = PyMem_Realloc(out->data, room);
    if (data == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    out->data = data;
    out->room = room;
    return 0;
}

static void put(text *out, const char *data, size_t size) {
    memcpy(out->data + out->size, data, size);
    out->size += size;
}

static int put_string(text *out, PyObject *string) {
    Py_ssize_t size;
    const char *data = PyUnicode_AsUTF8AndSize(string, &size);
    if (data == NULL || reserve(out, (size_t)size) != 0) {
        return -1;
    }
    put(out, data, (size_t)size);
    return 0;
}

/* ---- numbers: there is room for NUMBER_BYTES ---- */

static void put_small(text *out, long long value) {
    char digits[NUMBER_BYTES], *at = digits + sizeof digits;
    unsigned long long left = (unsigned long long)llabs(value);
    *--at = '0';
    *--at = '.';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (value < 0) {
        *--at = '-';
    }
    put(out, at, (size_t)(digits + sizeof digits - at));
}

/* Go's form of a number whose repr has `whole` digits before the point. */
static void put_with_exponent(text *out, const char *repr, size_t whole) {
    char *begin = out->data + out->size;
    put(out, repr, 1);
    put(out, ".", 1);
    put(out, repr + 1, whole - 1);
    put(out, repr + whole + 1, strlen(repr + whole + 1));
    while (begin + 1 < out->data + out->size && strchr("0.", out->data[out->size - 1])) {
        out->size--;
    }
    out->size += (size_t)sprintf(out->data + out->size, "e+%02zu", whole - 1);
}

static int put_double(text *out, double value) {
    if (!isfinite(value)) {
        const char *name = isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
        put(out, name, strlen(name));
        return 0;
    }
    char *repr = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    if (repr == NULL) {
        return -1;
    }
    const char *point = strchr(repr, '.');
    if (value >= PLAIN_BELOW && point != NULL && point - repr > 6) {
        put_with_exponent(out, repr, (size_t)(point - repr));
    } else {
        put(out, repr, strlen(repr));
    }
    PyMem_Free(repr);
    return 0;
}

/* A value / divisor as Python computes it; -1.0 and an exception if it cannot. */
static double quotient(PyObject *value, long long divisor) {
    if (PyLong_Check(value)) {
        int overflow;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow && -EXACT_TO <= whole && whole <= EXACT_TO) {
            return (double)whole / (double)divisor;
        }
        PyObject *by = PyLong_FromLongLong(divisor);
        PyObject *result = by ? PyNumber_TrueDivide(value, by) : NULL;
        const double found = result ? PyFloat_AsDouble(result) : -1.0;
        Py_XDECREF(by);
        Py_XDECREF(result);
        return found;
    }
    return PyFloat_AsDouble(value) / (double)divisor;
}

static int put_value(text *out, PyObject *value, long long divisor) {
    if (divisor == 1 && PyLong_Check(value)) {
        int overflow;
        const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow && -PLAIN_BELOW < whole && whole < PLAIN_BELOW) {
            put_small(out, whole);
            return 0;
        }
    }
    const double number = quotient(value, divisor);
    return number == -1.0 && PyErr_Occurred() ? -1 : put_double(out, number);
}

/* ---- columns ---- */

typedef struct column {
    PyObject *name, *endings; /* borrowed from the argument */
    long long divisor;
    PyObject *blocks, *values; /* lists or tuples of the same length */
} column;

static void release(column *columns, Py_ssize_t count) {
    for (Py_ssize_t n = 0; n < count; n++) {
        Py_XDECREF(columns[n].blocks);
        Py_XDECREF(columns[n].values);
    }
    PyMem_Free(columns);
}

static int take(PyObject *given, column *into, Py_ssize_t *rows) {
    PyObject *blocks, *values;
    if (!PyArg_ParseTuple(given, "UOOLO!", &into->name, &blocks, &values, &into->divisor,
                          &PyDict_Type, &into->endings)) {
        return -1;
    }
    into->blocks = PySequence_Fast(blocks, "the labels must be a sequence");
    into->values = PySequence_Fast(values, "the values must be a sequence");
    if (into->blocks == NULL || into->values == NULL) {
        return -1;
    }
    if (*rows < 0) {
        *rows = PySequence_Fast_GET_SIZE(into->values);
    }
    if (PySequence_Fast_GET_SIZE(into->blocks) != *rows ||
        PySequence_Fast_GET_SIZE(into->values) != *rows || into->divisor == 0) {
        PyErr_SetString(PyExc_ValueError, "columns must have one length, and a divisor but 0");
        return -1;
    }
    return 0;
}

static int put_ending(text *out, const column *of, Py_ssize_t row) {
    PyObject *place = PyLong_FromSsize_t(row);
    PyObject *ending = place ? PyDict_GetItemWithError(of->endings, place) : NULL;
    const int result = ending ? put_string(out, ending) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(place);
    return result;
}

static int put_line(text *out, const column *of, Py_ssize_t row) {
    PyObject *value = PySequence_Fast_GET_ITEM(of->values, row);
    if (value == Py_None) {
        return 0;
    }
    if (put_string(out, of->name) != 0 ||
        put_string(out, PySequence_Fast_GET_ITEM(of->blocks, row)) != 0 ||
        reserve(out, NUMBER_BYTES) != 0) {
        return -1;
    }
    put(out, " ", 1);
    if (put_value(out, value, of->divisor) != 0 ||
        (PyDict_GET_SIZE(of->endings) != 0 && put_ending(out, of, row) != 0) ||
        reserve(out, 1) != 0) {
        return -1;
    }
    put(out, "\n", 1);
    return 0;
}

static int put_rows(text *out, const column *columns, Py_ssize_t count, Py_ssize_t rows) {
    for (Py_ssize_t row = 0; row < rows; row++) {
        for (Py_ssize_t n = 0; n < count; n++) {
            if (put_line(out, &columns[n], row) != 0) {
                return -1;
            }
        }
    }
    return 0;
}

static PyObject *lines(PyObject *module, PyObject *given) {
    (void)module;
    PyObject *fast = PySequence_Fast(given, "the columns must be a sequence"), *result = NULL;
    const Py_ssize_t count = fast ? PySequence_Fast_GET_SIZE(fast) : 0;
    column *columns = fast ? PyMem_Calloc((size_t)count + 1, sizeof *columns) : NULL;
    text out = {0};
    Py_ssize_t rows = -1, taken = 0;
    if (fast != NULL && columns == NULL) {
        PyErr_NoMemory();
    }
    while (columns != NULL && taken < count &&
           take(PySequence_Fast_GET_ITEM(fast, taken), &columns[taken], &rows) == 0) {
        taken++;
    }
    if (columns != NULL && taken == count && put_rows(&out, columns, count, rows) == 0) {
        result = PyBytes_FromStringAndSize(out.data, (Py_ssize_t)out.size);
    }
    PyMem_Free(out.data);
    if (columns != NULL) {
        release(columns, count);
    }
    Py_XDECREF(fast);
    return result;
}

static PyMethodDef functions[] = {
    {"lines", lines, METH_O, "lines(columns): the lines of the columns, row by row."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.exporters._lines",
    .m_doc = "Series as lines of the text format.",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__lines(void) {
    return PyModuleDef_Init(&definition);
}
