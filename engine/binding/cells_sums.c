/* Adds and subtracts the filled cells of histograms. */
#include "cells.h"

void helio_cells_release(filled *one) {
    PyBuffer_Release(&one->cells);
    PyBuffer_Release(&one->counts);
}

int helio_cells_hold(filled *one, PyObject *cells, PyObject *counts) {
    *one = (filled){0};
    if (PyObject_GetBuffer(cells, &one->cells, PyBUF_C_CONTIGUOUS) != 0 ||
        PyObject_GetBuffer(counts, &one->counts, PyBUF_C_CONTIGUOUS) != 0) {
        helio_cells_release(one);
        return -1;
    }
    if (one->cells.len != one->counts.len || one->cells.len % 8 != 0) {
        PyErr_Format(PyExc_ValueError, "%zd bytes of positions for %zd bytes of contents",
                     one->cells.len, one->counts.len);
        helio_cells_release(one);
        return -1;
    }
    one->positions = one->cells.buf;
    one->contents = one->counts.buf;
    one->count = (size_t)one->cells.len / 8;
    return 0;
}

int helio_cells_growth(const filled *now, const filled *before, listing *into) {
    size_t at = 0;
    for (size_t n = 0; n < now->count; n++) {
        const int64_t cell = now->positions[n];
        uint64_t more = now->contents[n];
        if (at < before->count && before->positions[at] < cell) {
            return 0; /* a filled cell is empty now */
        }
        if (at < before->count && before->positions[at] == cell) {
            const uint64_t old = before->contents[at++];
            if (more < old) {
                return 0;
            }
            more -= old;
        }
        if (more != 0) {
            into->positions[into->count] = cell;
            into->contents[into->count++] = more;
        }
    }
    return at == before->count;
}

static PyObject *pair_of(const listing *found) {
    const Py_ssize_t size = (Py_ssize_t)(8 * found->count);
    return Py_BuildValue("(NN)", PyBytes_FromStringAndSize((char *)found->positions, size),
                         PyBytes_FromStringAndSize((char *)found->contents, size));
}

PyObject *helio_cells_grown(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *objects[4], *result = NULL;
    filled now, before;
    listing found = {0};
    if (!PyArg_ParseTuple(args, "OOOO:grown", &objects[0], &objects[1], &objects[2], &objects[3]) ||
        helio_cells_hold(&now, objects[0], objects[1]) != 0) {
        return NULL;
    }
    if (helio_cells_hold(&before, objects[2], objects[3]) != 0) {
        helio_cells_release(&now);
        return NULL;
    }
    if (!listing_reserve(&found, now.count)) {
        PyErr_NoMemory();
    } else {
        result = helio_cells_growth(&now, &before, &found) ? pair_of(&found) : Py_NewRef(Py_None);
    }
    listing_free(&found);
    helio_cells_release(&before);
    helio_cells_release(&now);
    return result;
}

/* Adds the cells of a part to the sums of all cells; returns 0 where a position is not among them. */
static int add(const filled *part, uint64_t *sums, size_t size) {
    for (size_t n = 0; n < part->count; n++) {
        if ((uint64_t)part->positions[n] >= size) {
            PyErr_Format(PyExc_ValueError, "there is no cell %lld among %zu",
                         (long long)part->positions[n], size);
            return 0;
        }
        sums[part->positions[n]] += part->contents[n];
    }
    return 1;
}

/* Adds a sequence of pairs of positions and contents to the sums; returns 0 after an error. */
static int add_all(PyObject *parts, uint64_t *sums, size_t size) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(parts);
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *cells, *counts;
        filled part;
        if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(parts, n), "OO", &cells, &counts) ||
            helio_cells_hold(&part, cells, counts) != 0) {
            return 0;
        }
        const int is_added = add(&part, sums, size);
        helio_cells_release(&part);
        if (!is_added) {
            return 0;
        }
    }
    return 1;
}

PyObject *helio_cells_total(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *result = NULL;
    Py_ssize_t cells;
    listing found = {0};
    if (!PyArg_ParseTuple(args, "On:total", &given, &cells)) {
        return NULL;
    }
    if (cells < 1) {
        return PyErr_Format(PyExc_ValueError, "a histogram of %zd cells", cells);
    }
    PyObject *parts = PySequence_Fast(given, "the parts are not a sequence");
    if (!parts) {
        return NULL;
    }
    const size_t whole =
        ((size_t)cells + HELIO_CELLS_STEP - 1) / HELIO_CELLS_STEP * HELIO_CELLS_STEP;
    uint64_t *sums = PyMem_RawCalloc(whole, sizeof *sums);
    if (!sums) {
        PyErr_NoMemory();
    } else if (add_all(parts, sums, (size_t)cells)) {
        size_t used = 0;
        for (size_t n = 0; n < whole; n++) {
            used += sums[n] != 0;
        }
        if (listing_reserve(&found, used + HELIO_CELLS_STEP)) {
            listing_add(&found, (const char *)sums, whole, 0, 0);
            result = pair_of(&found);
        } else {
            PyErr_NoMemory();
        }
    }
    PyMem_RawFree(sums);
    listing_free(&found);
    Py_DECREF(parts);
    return result;
}
