/* Buckets and percentiles of many histograms: each is looked at once, while it is in the cache. */
#include "cells.h"

#include <math.h>

/* 0.99 * 100 is 99.00000000000001 in binary; this slack keeps the rank from being rounded up
 * (monitor/latency.py). */
static const double SLACK = 1e-9, RELATIVE_SLACK = 2.3e-16;

enum flag { RESTARTED = 1, INEXACT = 2 };

/* A histogram now or before: its filled cells, and the number of values above its range. */
typedef struct reading {
    filled cells;
    int64_t above;
} reading;

/* What is asked of each histogram. */
typedef struct question {
    const int64_t *bounds;
    size_t bound_count;
    double *fractions;
    Py_ssize_t fraction_count;
    int64_t last; /* the cell of values above the range */
} question;

/* The answers: a row for each bound or fraction, with a column for each histogram. */
typedef struct answer {
    PyObject *below, *places, *highest, *totals, *flags;
    size_t columns;
} answer;

static int take(PyObject *given, reading *into) {
    PyObject *cells, *counts;
    unsigned long long above; /* modulo 2^64, as everything in a forged segment */
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a histogram is not a tuple");
        return 0;
    }
    if (!PyArg_ParseTuple(given, "OOK:digest", &cells, &counts, &above) ||
        helio_cells_hold(&into->cells, cells, counts) != 0) {
        return 0;
    }
    into->above = (int64_t)above;
    return 1;
}

static uint64_t *row_of(PyObject *bytes, size_t columns, size_t row) {
    return (uint64_t *)(void *)PyBytes_AS_STRING(bytes) + row * columns;
}

/* Counts the values below each bound; the last row has all values. */
static void count_below(const question *asked, const reading *now, const answer *into, size_t at) {
    const filled *cells = &now->cells;
    uint64_t sum = 0;
    size_t n = 0;
    for (size_t bound = 0; bound < asked->bound_count; bound++) {
        for (; n < cells->count && cells->positions[n] < asked->bounds[bound]; n++) {
            sum += cells->contents[n];
        }
        row_of(into->below, into->columns, bound)[at] = sum;
    }
    for (; n < cells->count; n++) {
        sum += cells->contents[n];
    }
    row_of(into->below, into->columns, asked->bound_count)[at] = sum + (uint64_t)now->above;
}

/* The rank of the value at a fraction of `total` values: ceil(fraction * total), at least 1. */
static uint64_t rank_of(double fraction, uint64_t total) {
    const double product = fraction * (double)total;
    const double rank = ceil(product - SLACK - product * RELATIVE_SLACK);
    return rank < 1 ? 1 : rank >= (double)total ? total : (uint64_t)rank;
}

/* Finds the cells of the values at the fractions among `inside` values in cells and some above. */
static void find_places(const question *asked, const filled *values, uint64_t inside, int64_t above,
                        const answer *into, size_t at) {
    const uint64_t total = inside + (uint64_t)above;
    uint64_t sum = 0; /* of the cells before `n` */
    size_t n = 0;
    for (Py_ssize_t one = 0; one < asked->fraction_count; one++) {
        int64_t place = -1;
        if (total != 0) {
            const uint64_t rank = rank_of(asked->fractions[one], total);
            if (rank <= sum) { /* the fractions do not rise */
                sum = 0;
                n = 0;
            }
            for (; n < values->count && sum + values->contents[n] < rank; n++) {
                sum += values->contents[n];
            }
            place = n < values->count ? values->positions[n] : asked->last;
        }
        row_of(into->places, into->columns, (size_t)one)[at] = (uint64_t)place;
    }
}

/* Answers for one histogram; `before` is NULL where all of its values count. */
static void answer_one(const question *asked, const reading *now, const reading *before,
                       listing *growth, const answer *into, size_t at) {
    filled values = now->cells;
    int64_t above = now->above;
    char *flags = PyBytes_AS_STRING(into->flags) + at;
    *flags = 0;
    count_below(asked, now, into, at);
    if (before) {
        growth->count = 0;
        if (now->above >= before->above &&
            helio_cells_growth(&now->cells, &before->cells, growth)) {
            values.positions = growth->positions;
            values.contents = growth->contents;
            values.count = growth->count;
            above -= before->above;
        } else {
            *flags = RESTARTED;
        }
    }
    uint64_t inside = 0;
    for (size_t n = 0; n < values.count; n++) {
        if (__builtin_add_overflow(inside, values.contents[n], &inside)) {
            *flags |= INEXACT;
        }
    }
    find_places(asked, &values, inside, above, into, at);
    row_of(into->totals, into->columns, 0)[at] = inside;
    row_of(into->highest, into->columns, 0)[at] =
        values.count ? (uint64_t)values.positions[values.count - 1] : (uint64_t)-1;
}

static int answer_all(const question *asked, PyObject *newer, PyObject *older, listing *growth,
                      const answer *into) {
    for (size_t at = 0; at < into->columns; at++) {
        PyObject *earlier = PyTuple_GET_ITEM(older, (Py_ssize_t)at);
        reading now, before;
        if (!take(PyTuple_GET_ITEM(newer, (Py_ssize_t)at), &now)) {
            return 0;
        }
        const int has_before = earlier != Py_None;
        int is_done = !has_before || take(earlier, &before);
        if (is_done) {
            is_done = listing_reserve(growth, now.cells.count + 1);
            if (is_done) {
                answer_one(asked, &now, has_before ? &before : NULL, growth, into, at);
            } else {
                PyErr_NoMemory();
            }
            if (has_before) {
                helio_cells_release(&before.cells);
            }
        }
        helio_cells_release(&now.cells);
        if (!is_done) {
            return 0;
        }
    }
    return 1;
}

static PyObject *rows(size_t count, size_t columns) {
    return PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(8 * count * columns));
}

static PyObject *digest_of(const question *asked, PyObject *newer, PyObject *older) {
    const size_t columns = (size_t)PyTuple_GET_SIZE(newer);
    answer found = {.columns = columns};
    listing growth = {0};
    PyObject *result = NULL;
    found.below = rows(asked->bound_count + 1, columns);
    found.places = rows((size_t)asked->fraction_count, columns);
    found.highest = rows(1, columns);
    found.totals = rows(1, columns);
    found.flags = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)columns);
    if (found.below && found.places && found.highest && found.totals && found.flags &&
        answer_all(asked, newer, older, &growth, &found)) {
        result =
            PyTuple_Pack(5, found.below, found.places, found.highest, found.totals, found.flags);
    }
    listing_free(&growth);
    Py_XDECREF(found.below);
    Py_XDECREF(found.places);
    Py_XDECREF(found.highest);
    Py_XDECREF(found.totals);
    Py_XDECREF(found.flags);
    return result;
}

/* Takes the fractions, which the caller frees; returns 0 after an error. */
static int take_fractions(PyObject *given, question *into) {
    PyObject *fractions = PySequence_Fast(given, "the fractions are not a sequence");
    if (!fractions) {
        return 0;
    }
    into->fraction_count = PySequence_Fast_GET_SIZE(fractions);
    into->fractions = PyMem_RawMalloc((size_t)(into->fraction_count + 1) * sizeof(double));
    int is_done = into->fractions != NULL;
    if (!is_done) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t n = 0; is_done && n < into->fraction_count; n++) {
        const double one = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(fractions, n));
        is_done = !PyErr_Occurred();
        if (is_done && !(one >= 0 && one <= 1)) {
            PyErr_SetString(PyExc_ValueError, "a fraction is from 0 to 1");
            is_done = 0;
        }
        into->fractions[n] = one;
    }
    Py_DECREF(fractions);
    return is_done;
}

PyObject *helio_cells_digest(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given[2], *bounds_object, *fractions, *result = NULL;
    Py_buffer bounds;
    long long last;
    question asked = {0};
    if (!PyArg_ParseTuple(args, "OOOOL:digest", &given[0], &given[1], &bounds_object, &fractions,
                          &last) ||
        PyObject_GetBuffer(bounds_object, &bounds, PyBUF_C_CONTIGUOUS) != 0) {
        return NULL;
    }
    PyObject *newer = PySequence_Tuple(given[0]);
    PyObject *older = newer ? PySequence_Tuple(given[1]) : NULL;
    asked.bounds = bounds.buf;
    asked.bound_count = (size_t)bounds.len / 8;
    asked.last = last;
    if (older && PyTuple_GET_SIZE(newer) != PyTuple_GET_SIZE(older)) {
        PyErr_SetString(PyExc_ValueError, "there are not as many older histograms as newer ones");
    } else if (older && take_fractions(fractions, &asked)) {
        result = digest_of(&asked, newer, older);
    }
    PyMem_RawFree(asked.fractions);
    PyBuffer_Release(&bounds);
    Py_XDECREF(older);
    Py_XDECREF(newer);
    return result;
}
