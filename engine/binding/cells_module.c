/* heliograph.monitor._cells: the cells of a histogram that are not 0: read from a segment
 * (docs/segment.md 4), subtracted and added; nothing of the engine.
 *
 * A histogram has 27,648 cells, of which a few hundred are filled.  Its head says which parts of
 * 512 cells have ever counted; only those are read, in pieces that stay in the first cache. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 64,
    USED_AT = 56,
    FIRST_BYTES = HEAD_BYTES + 8, /* the head and the first cell */
    PART_CELLS = 512,
    PARTS = 64,                   /* bits of the word at USED_AT */
    PIECE_CELLS = 4 * PART_CELLS, /* read by one call */
    STEP = 8,                     /* cells that are looked at together */
};

typedef struct block {
    int file;
    off_t offset;
    size_t cells;
    int swapped; /* the other byte order */
    char first[FIRST_BYTES];
} block;

/* The filled cells found so far. */
typedef struct listing {
    int64_t *positions;
    uint64_t *contents;
    size_t count, room;
    uint64_t sum; /* of the contents, modulo 2^64 */
} listing;

typedef enum outcome { DONE, ENDS, FAILED, NO_MEMORY } outcome;

static uint64_t load(const char *place, int swapped) {
    uint64_t word;
    memcpy(&word, place, sizeof word);
    return swapped ? __builtin_bswap64(word) : word;
}

static outcome read_bytes(const block *from, void *into, size_t size, size_t at) {
    ssize_t got;
    do {
        got = pread(from->file, into, size, from->offset + (off_t)at);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? FAILED : (size_t)got == size ? DONE : ENDS;
}

/* Makes room for `more` cells. */
static outcome reserve(listing *into, size_t more) {
    if (into->room - into->count >= more) {
        return DONE;
    }
    const size_t room = 2 * (into->count + more);
    int64_t *positions = PyMem_RawRealloc(into->positions, room * sizeof *positions);
    into->positions = positions ? positions : into->positions;
    uint64_t *contents = PyMem_RawRealloc(into->contents, room * sizeof *contents);
    into->contents = contents ? contents : into->contents;
    if (!positions || !contents) {
        return NO_MEMORY;
    }
    into->room = room;
    return DONE;
}

/* Lists the filled cells among some that begin at cell `at`. Their number is a multiple of STEP, and
 * there is room for all. */
static void list(const char *data, size_t count, size_t at, int swapped, listing *into) {
    for (size_t n = 0; n < count; n += STEP) {
        uint64_t some[STEP], any = 0;
        memcpy(some, data + 8 * n, sizeof some);
        for (int i = 0; i < STEP; i++) {
            any |= some[i];
        }
        for (int i = 0; any != 0 && i < STEP; i++) {
            if (some[i] != 0) {
                const uint64_t content = swapped ? __builtin_bswap64(some[i]) : some[i];
                into->positions[into->count] = (int64_t)(at + n) + i;
                into->contents[into->count++] = content;
                into->sum += content;
            }
        }
    }
}

/* Whether the part of a cell may have counted. A word of 0 says nothing: it is that of an engine
 * that does not keep it. */
static int is_used(const block *from, uint64_t used, size_t cell) {
    return used == 0 || from->cells > (size_t)PARTS * PART_CELLS || (used >> cell / PART_CELLS & 1);
}

static outcome read_block(block *from, listing *into) {
    char piece[8 * PIECE_CELLS];
    outcome result = read_bytes(from, from->first, FIRST_BYTES, 0);
    const uint64_t used = result == DONE ? load(from->first + USED_AT, from->swapped) : 0;
    for (size_t at = 0, end; result == DONE && at < from->cells; at = end) {
        for (end = at; end < from->cells && end - at < PIECE_CELLS && is_used(from, used, end);) {
            end += from->cells - end < PART_CELLS ? from->cells - end : PART_CELLS;
        }
        if (end == at) {
            end += PART_CELLS;
            continue;
        }
        const size_t count = end - at, whole = (count + STEP - 1) / STEP * STEP;
        result = read_bytes(from, piece, 8 * count, HEAD_BYTES + 8 * at);
        result = result == DONE ? reserve(into, whole) : result;
        if (result == DONE) {
            memset(piece + 8 * count, 0, 8 * (whole - count));
            list(piece, whole, at, from->swapped, into);
        }
    }
    return result;
}

/* What Python gets: the first bytes, the positions, or None if they are the known ones, the
 * contents, and their sum. */
static PyObject *result_of(const block *from, const listing *found, const Py_buffer *known) {
    const Py_ssize_t size = (Py_ssize_t)(8 * found->count);
    const int is_known = known->obj && known->len == size &&
                         (size == 0 || memcmp(known->buf, found->positions, (size_t)size) == 0);
    PyObject *positions =
        is_known ? Py_NewRef(Py_None) : PyBytes_FromStringAndSize((char *)found->positions, size);
    PyObject *contents = PyBytes_FromStringAndSize((char *)found->contents, size);
    return Py_BuildValue("(y#NNK)", from->first, (Py_ssize_t)FIRST_BYTES, positions, contents,
                         (unsigned long long)found->sum);
}

static PyObject *read_cells(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *known_object, *result = NULL;
    Py_buffer known = {0};
    long long offset;
    Py_ssize_t cells;
    block from = {0};
    listing found = {0};
    if (!PyArg_ParseTuple(args, "iLnpO:read", &from.file, &offset, &cells, &from.swapped,
                          &known_object)) {
        return NULL;
    }
    if (offset < 0 || cells < 1) {
        return PyErr_Format(PyExc_ValueError, "there are no %zd cells at %lld", cells, offset);
    }
    if (known_object != Py_None &&
        PyObject_GetBuffer(known_object, &known, PyBUF_C_CONTIGUOUS) != 0) {
        return NULL;
    }
    from.offset = (off_t)offset;
    from.cells = (size_t)cells;
    outcome how;
    Py_BEGIN_ALLOW_THREADS;
    how = read_block(&from, &found);
    Py_END_ALLOW_THREADS;
    if (how == DONE) {
        result = result_of(&from, &found, &known);
    } else if (how == ENDS) {
        PyErr_SetString(PyExc_EOFError, "the file ends before the last cell");
    } else if (how == FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
    } else {
        PyErr_NoMemory();
    }
    PyMem_RawFree(found.positions);
    PyMem_RawFree(found.contents);
    PyBuffer_Release(&known);
    return result;
}

/* The filled cells of a histogram that Python holds: positions in rising order, and contents. */
typedef struct filled {
    Py_buffer cells, counts;
    const int64_t *positions;
    const uint64_t *contents;
    size_t count;
} filled;

static void let_go(filled *one) {
    PyBuffer_Release(&one->cells);
    PyBuffer_Release(&one->counts);
}

static int hold(filled *one, PyObject *cells, PyObject *counts) {
    *one = (filled){0};
    if (PyObject_GetBuffer(cells, &one->cells, PyBUF_C_CONTIGUOUS) != 0 ||
        PyObject_GetBuffer(counts, &one->counts, PyBUF_C_CONTIGUOUS) != 0) {
        let_go(one);
        return -1;
    }
    if (one->cells.len != one->counts.len || one->cells.len % 8 != 0) {
        PyErr_Format(PyExc_ValueError, "%zd bytes of positions for %zd bytes of contents",
                     one->cells.len, one->counts.len);
        let_go(one);
        return -1;
    }
    one->positions = one->cells.buf;
    one->contents = one->counts.buf;
    one->count = (size_t)one->cells.len / 8;
    return 0;
}

/* Lists what has been added to `before`, for which there is room; returns 0 where a count fell. */
static int list_growth(const filled *now, const filled *before, listing *into) {
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

static PyObject *grown(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *objects[4], *result = NULL;
    filled now, before;
    listing found = {0};
    if (!PyArg_ParseTuple(args, "OOOO:grown", &objects[0], &objects[1], &objects[2], &objects[3]) ||
        hold(&now, objects[0], objects[1]) != 0) {
        return NULL;
    }
    if (hold(&before, objects[2], objects[3]) != 0) {
        let_go(&now);
        return NULL;
    }
    if (reserve(&found, now.count) != DONE) {
        PyErr_NoMemory();
    } else {
        result = list_growth(&now, &before, &found) ? pair_of(&found) : Py_NewRef(Py_None);
    }
    PyMem_RawFree(found.positions);
    PyMem_RawFree(found.contents);
    let_go(&before);
    let_go(&now);
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
            hold(&part, cells, counts) != 0) {
            return 0;
        }
        const int is_added = add(&part, sums, size);
        let_go(&part);
        if (!is_added) {
            return 0;
        }
    }
    return 1;
}

static PyObject *total(PyObject *module, PyObject *args) {
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
    const size_t whole = ((size_t)cells + STEP - 1) / STEP * STEP;
    uint64_t *sums = PyMem_RawCalloc(whole, sizeof *sums);
    if (!sums) {
        PyErr_NoMemory();
    } else if (add_all(parts, sums, (size_t)cells)) {
        size_t used = 0;
        for (size_t n = 0; n < whole; n++) {
            used += sums[n] != 0;
        }
        if (reserve(&found, used + STEP) == DONE) {
            list((char *)sums, whole, 0, 0, &found);
            result = pair_of(&found);
        } else {
            PyErr_NoMemory();
        }
    }
    PyMem_RawFree(sums);
    PyMem_RawFree(found.positions);
    PyMem_RawFree(found.contents);
    Py_DECREF(parts);
    return result;
}

static PyMethodDef functions[] = {
    {"read", read_cells, METH_VARARGS,
     "read(file, offset, cells, swapped, known): the cells of a histogram that are not 0."},
    {"grown", grown, METH_VARARGS,
     "grown(cells, counts, older_cells, older_counts): what was added; None: a count fell."},
    {"total", total, METH_VARARGS,
     "total(parts, cells): the sum of pairs of positions and contents."},
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
