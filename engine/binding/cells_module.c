/* heliograph.monitor._cells: the cells of a histogram that are not 0; nothing of the engine.
 *
 * A histogram has 27,648 cells, of which a few hundred are filled, and mostly as many as at the
 * reading before: one pass over the words lists them into as much room.  Another number takes a
 * second pass. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

enum { STEP = 8 }; /* words that are looked at together */

typedef struct words {
    const char *data; /* of any alignment */
    size_t count;
    int swapped;
} words;

/* Where the filled words go: as many as there is room for. */
typedef struct listing {
    int64_t *positions;
    uint64_t *contents;
    size_t room;
} listing;

/* Lists the filled words among some; returns the number of all that were found so far. */
static size_t list_some(const words *all, size_t at, size_t count, const listing *into,
                        size_t found) {
    for (size_t end = at + count; at < end; at++) {
        uint64_t word;
        memcpy(&word, all->data + 8 * at, sizeof word);
        if (word == 0) {
            continue;
        }
        if (found < into->room) {
            into->positions[found] = (int64_t)at;
            into->contents[found] = all->swapped ? __builtin_bswap64(word) : word;
        }
        found++;
    }
    return found;
}

/* Lists the filled words; returns their number, which may be more than there is room for. */
static size_t list(const words *all, const listing *into) {
    size_t found = 0, at = 0;
    for (; at + STEP <= all->count; at += STEP) {
        uint64_t block[STEP], any = 0;
        memcpy(block, all->data + 8 * at, sizeof block);
        for (int n = 0; n < STEP; n++) {
            any |= block[n];
        }
        if (any != 0) {
            found = list_some(all, at, STEP, into, found);
        }
    }
    return list_some(all, at, all->count - at, into, found);
}

/* The words of a bytes object: its data begins 32 bytes into an allocation aligned to 16. */
static void *words_in(PyObject *bytes) {
    return PyBytes_AS_STRING(bytes);
}

/* Lists into new bytes with room for `count` words; returns how many there are, or -1. */
static Py_ssize_t list_new(const words *all, size_t count, PyObject **positions,
                           PyObject **contents) {
    *positions = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count));
    *contents = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count));
    if (*positions == NULL || *contents == NULL) {
        Py_CLEAR(*positions);
        Py_CLEAR(*contents);
        return -1;
    }
    const listing into = {words_in(*positions), words_in(*contents), count};
    return (Py_ssize_t)list(all, &into);
}

static PyObject *list_all(const words *all, const Py_buffer *known) {
    PyObject *positions, *contents;
    const Py_ssize_t expected = known->len / 8; /* none are known: 0 */
    Py_ssize_t found = list_new(all, (size_t)expected, &positions, &contents);
    if (found >= 0 && found != expected) {
        Py_DECREF(positions);
        Py_DECREF(contents);
        found = list_new(all, (size_t)found, &positions, &contents);
    }
    if (found < 0) {
        return NULL;
    }
    if (known->obj != NULL && found == expected &&
        memcmp(words_in(positions), known->buf, (size_t)known->len) == 0) {
        Py_DECREF(positions);
        positions = Py_NewRef(Py_None);
    }
    return Py_BuildValue("(NN)", positions, contents);
}

static PyObject *filled(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *known_object, *result = NULL;
    int swapped;
    Py_buffer data, known = {0};
    if (!PyArg_ParseTuple(args, "y*pO:filled", &data, &swapped, &known_object)) {
        return NULL;
    }
    if (known_object != Py_None &&
        PyObject_GetBuffer(known_object, &known, PyBUF_C_CONTIGUOUS) != 0) {
        goto done;
    }
    if (data.len % 8 != 0 || known.len % 8 != 0) {
        PyErr_SetString(PyExc_ValueError, "words and known must be buffers of 64-bit items");
        goto done;
    }
    const words all = {data.buf, (size_t)data.len / 8, swapped};
    result = list_all(&all, &known);
done:
    PyBuffer_Release(&known);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef functions[] = {
    {"filled", filled, METH_VARARGS,
     "filled(words, swapped, known): positions and contents of the words that are not 0."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.monitor._cells",
    .m_doc = "The cells of a histogram that are not 0.",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__cells(void) {
    return PyModuleDef_Init(&definition);
}
