/* The cells of a histogram that are not 0, as heliograph.monitor._cells lists and holds them. */
#ifndef HELIO_CELLS_H
#define HELIO_CELLS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HELIO_CELLS_STEP = 8 /* cells that are looked at together */ };

/* The filled cells found so far, in rising order. */
typedef struct listing {
    int64_t *positions;
    uint64_t *contents;
    size_t count, room;
} listing;

/* Makes room for `more` cells; returns 0 where there is no memory. */
static inline int listing_reserve(listing *into, size_t more) {
    if (into->room - into->count >= more) {
        return 1;
    }
    const size_t room = 2 * (into->count + more);
    int64_t *positions = PyMem_RawRealloc(into->positions, room * sizeof *positions);
    into->positions = positions ? positions : into->positions;
    uint64_t *contents = PyMem_RawRealloc(into->contents, room * sizeof *contents);
    into->contents = contents ? contents : into->contents;
    if (!positions || !contents) {
        return 0;
    }
    into->room = room;
    return 1;
}

static inline void listing_free(listing *one) {
    PyMem_RawFree(one->positions);
    PyMem_RawFree(one->contents);
}

/* Lists the filled cells among some that begin at cell `at`. Their number is a multiple of
 * HELIO_CELLS_STEP, and there is room for all. A cell is written to the list before it is looked at:
 * a branch for each would be wrong half of the time where some are filled. */
static inline void listing_add(listing *into, const char *data, size_t count, size_t at,
                               int swapped) {
    int64_t *positions = into->positions + into->count;
    uint64_t *contents = into->contents + into->count;
    size_t listed = 0;
    for (size_t n = 0; n < count; n += HELIO_CELLS_STEP) {
        uint64_t some[HELIO_CELLS_STEP];
        memcpy(some, data + 8 * n, sizeof some);
        if ((some[0] | some[1] | some[2] | some[3] | some[4] | some[5] | some[6] | some[7]) == 0) {
            continue;
        }
#pragma GCC unroll 8
        for (int i = 0; i < HELIO_CELLS_STEP; i++) {
            positions[listed] = (int64_t)(at + n) + i;
            contents[listed] = swapped ? __builtin_bswap64(some[i]) : some[i];
            listed += some[i] != 0;
        }
    }
    into->count += listed;
}

/* The filled cells of a histogram that Python holds: positions in rising order, and contents. */
typedef struct filled {
    Py_buffer cells, counts;
    const int64_t *positions;
    const uint64_t *contents;
    size_t count;
} filled;

/* Takes positions and contents from Python, until they are released; returns -1 after an error. */
int helio_cells_hold(filled *one, PyObject *cells, PyObject *counts);
void helio_cells_release(filled *one);

/* Lists what has been added to `before`, for which there is room; returns 0 where a count fell. */
int helio_cells_growth(const filled *now, const filled *before, listing *into);

/* Functions of the module; their arguments are in monitor/_cells.pyi. */
PyObject *helio_cells_read(PyObject *module, PyObject *args);
PyObject *helio_cells_grown(PyObject *module, PyObject *args);
PyObject *helio_cells_total(PyObject *module, PyObject *args);
PyObject *helio_cells_digest(PyObject *module, PyObject *args);

#endif
