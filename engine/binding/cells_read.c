/* Reads the filled cells of histograms of a segment (docs/segment.md 4).
 *
 * A histogram has 27,648 cells, of which a few hundred are filled.  Its head says which parts of
 * 512 cells have ever counted; only those are read, in pieces that stay in the first cache.  Some
 * blocks are read while other threads run, then Python gets them. */
#include "cells.h"

#include <errno.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 64,
    SHAPE_BYTES = 32, /* magic and parameters, which rest while a block is in use */
    ABOVE_AT = 32,
    USED_AT = 56,
    FIRST_BYTES = HEAD_BYTES + 8, /* the head and the first cell */
    PART_CELLS = 512,
    PARTS = 64,                   /* bits of the word at USED_AT */
    PIECE_CELLS = 4 * PART_CELLS, /* read by one call */
    TOGETHER = 32,                /* blocks that are read before Python gets them */
};

typedef enum outcome { DONE, RESTS, ENDS, FAILED, NO_MEMORY } outcome;

typedef struct block {
    off_t offset;
    size_t cells;
    const char *known; /* FIRST_BYTES of the last reading; NULL: none */
    int may_rest;      /* whether equal first bytes mean that nothing has counted */
    outcome how;
    int error; /* errno, where it FAILED */
    char first[FIRST_BYTES];
    size_t begin, end; /* its filled cells in the listing */
    uint64_t sum;      /* of their contents, modulo 2^64 */
} block;

typedef struct source {
    int file;
    int swapped; /* the other byte order */
} source;

static uint64_t load(const char *place, int swapped) {
    uint64_t word;
    memcpy(&word, place, sizeof word);
    return swapped ? __builtin_bswap64(word) : word;
}

static outcome read_bytes(const source *from, void *into, size_t size, off_t at) {
    ssize_t got;
    do {
        got = pread(from->file, into, size, at);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? FAILED : (size_t)got == size ? DONE : ENDS;
}

/* Whether the part of a cell may have counted. A word of 0 says nothing: it is that of an engine
 * that does not keep it. */
static int is_used(const block *one, uint64_t used, size_t cell) {
    return used == 0 || one->cells > (size_t)PARTS * PART_CELLS || (used >> cell / PART_CELLS & 1);
}

static outcome read_block(const source *from, block *one, listing *into) {
    char piece[8 * PIECE_CELLS];
    outcome result = read_bytes(from, one->first, FIRST_BYTES, one->offset);
    if (result != DONE) {
        return result;
    }
    if (one->known && one->may_rest && memcmp(one->known, one->first, FIRST_BYTES) == 0) {
        return RESTS;
    }
    const uint64_t used = load(one->first + USED_AT, from->swapped);
    for (size_t at = 0, end; result == DONE && at < one->cells; at = end) {
        for (end = at; end < one->cells && end - at < PIECE_CELLS && is_used(one, used, end);) {
            end += one->cells - end < PART_CELLS ? one->cells - end : PART_CELLS;
        }
        if (end == at) {
            end += PART_CELLS;
            continue;
        }
        const size_t count = end - at;
        const size_t whole = (count + HELIO_CELLS_STEP - 1) / HELIO_CELLS_STEP * HELIO_CELLS_STEP;
        result = read_bytes(from, piece, 8 * count, one->offset + HEAD_BYTES + 8 * (off_t)at);
        if (result == DONE && !listing_reserve(into, whole)) {
            result = NO_MEMORY;
        }
        if (result == DONE) {
            memset(piece + 8 * count, 0, 8 * (whole - count));
            listing_add(into, piece, whole, at, from->swapped);
        }
    }
    return result;
}

/* Reads some blocks until one fails; their cells are one after the other in the listing. */
static void read_some(const source *from, block *blocks, Py_ssize_t count, listing *into) {
    for (Py_ssize_t n = 0; n < count; n++) {
        block *one = &blocks[n];
        one->begin = into->count;
        one->how = read_block(from, one, into);
        one->error = one->how == FAILED ? errno : 0;
        one->end = into->count;
        one->sum = 0;
        for (size_t at = one->begin; at < one->end; at++) {
            one->sum += into->contents[at];
        }
        if (one->how > RESTS) {
            return;
        }
    }
}

/* Takes a request: offset, cells, known first bytes or None, whether it may rest, and known
 * positions or None, which stay in the request. Returns 0 after an error. */
static int ask(PyObject *request, block *one, PyObject **positions) {
    PyObject *known;
    long long offset;
    Py_ssize_t cells, size;
    if (!PyTuple_Check(request)) {
        PyErr_SetString(PyExc_TypeError, "a request is not a tuple");
        return 0;
    }
    if (!PyArg_ParseTuple(request, "LnOpO:read", &offset, &cells, &known, &one->may_rest,
                          positions)) {
        return 0;
    }
    if (offset < 0 || cells < 1) {
        PyErr_Format(PyExc_ValueError, "there are no %zd cells at %lld", cells, offset);
        return 0;
    }
    one->offset = (off_t)offset;
    one->cells = (size_t)cells;
    one->known = NULL;
    if (known != Py_None) {
        char *bytes;
        if (PyBytes_AsStringAndSize(known, &bytes, &size) != 0) {
            return 0;
        }
        if (size != FIRST_BYTES) {
            PyErr_Format(PyExc_ValueError, "%zd known bytes, not %d", size, (int)FIRST_BYTES);
            return 0;
        }
        one->known = bytes;
    }
    return 1;
}

/* Whether the positions of a block are those that Python has; -1 after an error. */
static int are_known(const block *one, const listing *found, PyObject *positions) {
    if (positions == Py_None) {
        return 0;
    }
    Py_buffer known;
    if (PyObject_GetBuffer(positions, &known, PyBUF_C_CONTIGUOUS) != 0) {
        return -1;
    }
    const size_t size = 8 * (one->end - one->begin);
    const int same = (size_t)known.len == size &&
                     (size == 0 || memcmp(known.buf, found->positions + one->begin, size) == 0);
    PyBuffer_Release(&known);
    return same;
}

/* What Python gets of a block: its first bytes, positions, or None if they are the known ones,
 * contents, their sum, and from the head the values above, the negative ones and the sum of all;
 * None: it rests. */
static PyObject *result_of(const source *from, const block *one, const listing *found,
                           PyObject *positions) {
    if (one->how == RESTS) {
        return Py_NewRef(Py_None);
    }
    if (one->how == ENDS) {
        return PyErr_Format(PyExc_EOFError, "the file ends before the last cell");
    }
    if (one->how == FAILED) {
        errno = one->error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if (one->how == NO_MEMORY) {
        return PyErr_NoMemory();
    }
    const int same = are_known(one, found, positions);
    if (same < 0) {
        return NULL;
    }
    const Py_ssize_t size = (Py_ssize_t)(8 * (one->end - one->begin));
    const char *above = one->first + ABOVE_AT;
    PyObject *places =
        same ? Py_NewRef(Py_None)
             : PyBytes_FromStringAndSize((const char *)(found->positions + one->begin), size);
    PyObject *contents =
        PyBytes_FromStringAndSize((const char *)(found->contents + one->begin), size);
    return Py_BuildValue("(y#NNKKKK)", one->first, (Py_ssize_t)FIRST_BYTES, places, contents,
                         (unsigned long long)one->sum,
                         (unsigned long long)load(above, from->swapped),
                         (unsigned long long)load(above + 8, from->swapped),
                         (unsigned long long)load(above + 16, from->swapped));
}

/* Reads `count` blocks from number `begin` on into the results; returns 0 after an error. */
static int read_from(const source *from, PyObject *requests, Py_ssize_t begin, Py_ssize_t count,
                     listing *found, PyObject *results) {
    block blocks[TOGETHER];
    PyObject *positions[TOGETHER];
    for (Py_ssize_t n = 0; n < count; n++) {
        blocks[n].how = DONE;
        if (!ask(PySequence_Fast_GET_ITEM(requests, begin + n), &blocks[n], &positions[n])) {
            return 0;
        }
    }
    found->count = 0;
    Py_BEGIN_ALLOW_THREADS;
    read_some(from, blocks, count, found);
    Py_END_ALLOW_THREADS;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *result = result_of(from, &blocks[n], found, positions[n]);
        if (!result) {
            return 0;
        }
        PyList_SET_ITEM(results, begin + n, result);
    }
    return 1;
}

PyObject *helio_cells_read(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *requests, *results;
    source from;
    listing found = {0};
    if (!PyArg_ParseTuple(args, "ipO:read", &from.file, &from.swapped, &given)) {
        return NULL;
    }
    requests = PySequence_Tuple(given); /* ours: nobody changes it while other threads run */
    if (!requests) {
        return NULL;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(requests);
    results = PyList_New(count);
    for (Py_ssize_t at = 0; results && at < count; at += TOGETHER) {
        const Py_ssize_t some = count - at < TOGETHER ? count - at : TOGETHER;
        if (!read_from(&from, requests, at, some, &found, results)) {
            Py_CLEAR(results);
        }
    }
    listing_free(&found);
    Py_DECREF(requests);
    return results;
}
