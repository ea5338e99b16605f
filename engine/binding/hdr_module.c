/* heliograph.monitor._hdr: the HDR codec and the merge kernel for Python.
 *
 * It takes and returns plain things: buffers of u64 counts, bytes, and the offset and data buffers
 * of an Arrow binary column.  The heavy calls give up the interpreter's lock, so threads merge side
 * by side.  It links the codec only, not the engine: a reader of the history needs no transport. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

#include "../core/stats/hdr_codec.h"

static PyObject *hdr_error; /* heliograph.monitor._hdr.Refused, a ValueError */

static PyObject *refuse(helio_hdr_refusal refusal) {
    if (refusal == HELIO_HDR_NOMEM) {
        return PyErr_NoMemory();
    }
    PyErr_Format(hdr_error, "the payload %s", helio_hdr_refusal_text(refusal));
    return NULL;
}

static int layout_from(int digits, long long lowest, long long highest, helio_hdr_layout *out) {
    const helio_hdr_refusal refusal = helio_hdr_layout_init(digits, lowest, highest, out);
    if (refusal != HELIO_HDR_OK) {
        PyErr_Format(PyExc_ValueError, "a histogram of %d digits from %lld to %lld %s", digits,
                     lowest, highest,
                     refusal == HELIO_HDR_TOO_LARGE
                         ? "is too large"
                         : "cannot be: digits are 1 to 5, lowest at least "
                           "1, highest at least twice lowest");
        return 0;
    }
    return 1;
}

/* A contiguous buffer of 8-byte items. */
static int words_of(PyObject *object, const char *name, Py_buffer *view, Py_ssize_t *count) {
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) != 0) {
        return 0;
    }
    if (view->len % 8 != 0 || (uintptr_t)view->buf % 8 != 0) {
        PyErr_Format(PyExc_ValueError, "%s must be a buffer of 64-bit items", name);
        PyBuffer_Release(view);
        return 0;
    }
    *count = view->len / 8;
    return 1;
}

static int counts_of(PyObject *object, const helio_hdr_layout *layout, Py_buffer *view) {
    Py_ssize_t count;
    if (!words_of(object, "counts", view, &count)) {
        return 0;
    }
    if (count != (Py_ssize_t)layout->cells) {
        PyErr_Format(PyExc_ValueError, "counts has %zd cells, the layout %u", count, layout->cells);
        PyBuffer_Release(view);
        return 0;
    }
    return 1;
}

/* Ascending quantiles from a sequence of floats; release with PyMem_Free. */
static double *quantiles_of(PyObject *object, Py_ssize_t *n) {
    PyObject *fast = PySequence_Fast(object, "quantiles must be a sequence of floats");
    if (fast == NULL) {
        return NULL;
    }
    *n = PySequence_Fast_GET_SIZE(fast);
    double *values = PyMem_New(double, *n > 0 ? (size_t)*n : 1);
    if (values == NULL) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; values != NULL && i < *n; i++) {
        values[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(fast, i));
        const int failed = values[i] == -1.0 && PyErr_Occurred() != NULL;
        if (!failed && !(values[i] >= (i > 0 ? values[i - 1] : 0.0) && values[i] <= 1.0)) {
            PyErr_SetString(PyExc_ValueError, "quantiles must be ascending, from 0 to 1");
        }
        if (PyErr_Occurred() != NULL) {
            PyMem_Free(values);
            values = NULL;
        }
    }
    Py_DECREF(fast);
    return values;
}

/* Sum of the counts; 0 and an exception when it passes 63 bits. */
static int total_of(const helio_hdr_layout *layout, const uint64_t *counts, int64_t *total) {
    uint64_t sum = 0;
    for (uint32_t cell = 0; cell < layout->cells; cell++) {
        if (counts[cell] > INT64_MAX || (sum += counts[cell]) > INT64_MAX) {
            PyErr_SetString(PyExc_OverflowError, "the counts add up to more than 63 bits hold");
            return 0;
        }
    }
    *total = (int64_t)sum;
    return 1;
}

/* -- one histogram --------------------------------------------------------------------------- */

static PyObject *hdr_cells(PyObject *module, PyObject *args) {
    (void)module;
    int digits;
    long long lowest, highest;
    helio_hdr_layout layout;
    if (!PyArg_ParseTuple(args, "iLL", &digits, &lowest, &highest) ||
        !layout_from(digits, lowest, highest, &layout)) {
        return NULL;
    }
    return PyLong_FromUnsignedLong(layout.cells);
}

static PyObject *hdr_encode(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static char *names[] = {"counts", "digits", "lowest", "highest", "compress", NULL};
    PyObject *object;
    int digits, compress = 0;
    long long lowest, highest;
    helio_hdr_layout layout;
    Py_buffer counts;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OiLL|$p", names, &object, &digits, &lowest,
                                     &highest, &compress) ||
        !layout_from(digits, lowest, highest, &layout) || !counts_of(object, &layout, &counts)) {
        return NULL;
    }
    PyObject *result = NULL;
    uint8_t *body = PyMem_Malloc(helio_hdr_body_bound(&layout));
    uint8_t *wrapped = NULL;
    if (body == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    const size_t bytes = helio_hdr_body_encode(&layout, counts.buf, body);
    if (bytes == 0) {
        PyErr_SetString(PyExc_OverflowError, "a count is more than 63 bits hold");
        goto done;
    }
    if (!compress) {
        result = PyBytes_FromStringAndSize((const char *)body, (Py_ssize_t)bytes);
        goto done;
    }
    wrapped = PyMem_Malloc(helio_hdr_compressed_bound(bytes));
    const size_t wrapped_bytes = wrapped != NULL ? helio_hdr_compress(body, bytes, wrapped) : 0;
    if (wrapped_bytes == 0) {
        PyErr_NoMemory();
        goto done;
    }
    result = PyBytes_FromStringAndSize((const char *)wrapped, (Py_ssize_t)wrapped_bytes);
done:
    PyMem_Free(wrapped);
    PyMem_Free(body);
    PyBuffer_Release(&counts);
    return result;
}

static PyObject *hdr_decode(PyObject *module, PyObject *object) {
    (void)module;
    Py_buffer data;
    if (PyObject_GetBuffer(object, &data, PyBUF_C_CONTIGUOUS) != 0) {
        return NULL;
    }
    PyObject *result = NULL;
    helio_hdr_layout layout;
    helio_hdr_refusal refusal = helio_hdr_peek(data.buf, (size_t)data.len, &layout);
    if (refusal != HELIO_HDR_OK) {
        refuse(refusal);
    } else {
        PyObject *counts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)layout.cells * 8);
        if (counts != NULL) {
            int64_t total = 0;
            memset(PyBytes_AS_STRING(counts), 0, (size_t)layout.cells * 8);
            /* A bytes object's data begins 32 bytes into an allocation aligned to 16. */
            refusal = helio_hdr_add(&layout, data.buf, (size_t)data.len, -1,
                                    (uint64_t *)(void *)PyBytes_AS_STRING(counts), &total);
            if (refusal != HELIO_HDR_OK) {
                Py_DECREF(counts);
                refuse(refusal);
            } else {
                result = Py_BuildValue("(NiLL)", counts, (int)layout.digits,
                                       (long long)layout.lowest, (long long)layout.highest);
            }
        }
    }
    PyBuffer_Release(&data);
    return result;
}

static PyObject *hdr_rewrite(PyObject *module, PyObject *object) {
    (void)module;
    Py_buffer data;
    if (PyObject_GetBuffer(object, &data, PyBUF_C_CONTIGUOUS) != 0) {
        return NULL;
    }
    PyObject *result = NULL;
    helio_hdr_digest digest;
    size_t written = 0;
    const size_t room = helio_hdr_rewrite_room((size_t)data.len);
    uint8_t *body = PyMem_Malloc(room);
    if (body == NULL) {
        PyErr_NoMemory();
    } else {
        const helio_hdr_refusal refusal =
            helio_hdr_rewrite(data.buf, (size_t)data.len, body, room, &written, &digest);
        if (refusal != HELIO_HDR_OK) {
            refuse(refusal);
        } else {
            result = Py_BuildValue("(y#iLLLLLd)", (const char *)body, (Py_ssize_t)written,
                                   (int)digest.layout.digits, (long long)digest.layout.lowest,
                                   (long long)digest.layout.highest, (long long)digest.total,
                                   (long long)digest.min, (long long)digest.max, digest.sum);
        }
    }
    PyMem_Free(body);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *hdr_quantiles(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object, *wanted;
    int digits;
    long long lowest, highest;
    helio_hdr_layout layout;
    Py_buffer counts;
    if (!PyArg_ParseTuple(args, "OiLLO", &object, &digits, &lowest, &highest, &wanted) ||
        !layout_from(digits, lowest, highest, &layout) || !counts_of(object, &layout, &counts)) {
        return NULL;
    }
    PyObject *result = NULL;
    int64_t *values = NULL;
    int64_t total;
    Py_ssize_t n;
    double *quantiles = quantiles_of(wanted, &n);
    if (quantiles == NULL || !total_of(&layout, counts.buf, &total)) {
        goto done;
    }
    values = PyMem_New(int64_t, n > 0 ? (size_t)n : 1);
    if (values == NULL) {
        PyErr_NoMemory();
        goto done;
    }
    helio_hdr_quantiles(&layout, counts.buf, total, quantiles, (size_t)n, values);
    result = PyList_New(n);
    for (Py_ssize_t i = 0; result != NULL && i < n; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value == NULL) {
            Py_CLEAR(result);
            break;
        }
        PyList_SET_ITEM(result, i, value);
    }
done:
    PyMem_Free(values);
    PyMem_Free(quantiles);
    PyBuffer_Release(&counts);
    return result;
}

static PyObject *hdr_summary(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object;
    int digits;
    long long lowest, highest;
    helio_hdr_layout layout;
    Py_buffer view;
    int64_t total;
    if (!PyArg_ParseTuple(args, "OiLL", &object, &digits, &lowest, &highest) ||
        !layout_from(digits, lowest, highest, &layout) || !counts_of(object, &layout, &view)) {
        return NULL;
    }
    const uint64_t *counts = view.buf;
    if (!total_of(&layout, counts, &total)) {
        PyBuffer_Release(&view);
        return NULL;
    }
    int64_t min = 0, max = 0;
    double sum = 0;
    int first = 1;
    for (uint32_t cell = 0; cell < layout.cells; cell++) {
        if (counts[cell] != 0) {
            const int64_t low = helio_hdr_cell_lowest(&layout, cell);
            const int64_t high = helio_hdr_cell_highest(&layout, cell);
            min = first ? low : min;
            first = 0;
            max = high;
            sum += (double)counts[cell] * (double)(low + (high - low + 1) / 2);
        }
    }
    PyBuffer_Release(&view);
    return Py_BuildValue("(LLLd)", (long long)total, (long long)min, (long long)max, sum);
}

static PyObject *hdr_refusal(PyObject *module, PyObject *args) {
    (void)module;
    int code;
    if (!PyArg_ParseTuple(args, "i", &code)) {
        return NULL;
    }
    return PyUnicode_FromString(helio_hdr_refusal_text((helio_hdr_refusal)code));
}

/* -- merging --------------------------------------------------------------------------------- */

/* Everything the kernel works on; plain memory, so that it runs without the interpreter. */
typedef struct merge_job {
    const uint8_t *offsets;
    int offset_bytes; /* 4 or 8 */
    Py_ssize_t rows;
    const uint8_t *data;
    int64_t data_bytes;
    const int64_t *order;
    const int64_t *starts;
    Py_ssize_t groups;
    const int64_t *highest;  /* per row */
    const int64_t *expected; /* per row, or NULL */
    const double *quantiles;
    Py_ssize_t quantile_count;
    int32_t digits;
    int64_t lowest;
    helio_hdr_layout widest;
    uint64_t *counts;
    uint8_t *bodies; /* grows */
    size_t used, capacity;
    int64_t *ends;      /* groups + 1 */
    int64_t *totals;    /* per group */
    int64_t *widest_of; /* per group */
    int64_t *values;    /* groups * quantile_count */
    uint8_t *status;    /* per row */
} merge_job;

static int64_t offset_at(const merge_job *job, int64_t i) {
    if (job->offset_bytes == 4) {
        int32_t value;
        memcpy(&value, job->offsets + 4 * i, 4);
        return value;
    }
    int64_t value;
    memcpy(&value, job->offsets + 8 * i, 8);
    return value;
}

/* Makes *layout that of `highest`, which it nearly always is already. */
static int follow_highest(const merge_job *job, int64_t highest, helio_hdr_layout *layout) {
    return highest == layout->highest ||
           helio_hdr_layout_init(job->digits, job->lowest, highest, layout) == HELIO_HDR_OK;
}

/* Adds the rows of a group; *widest becomes the layout of the widest row that was accepted.
 * NULL, or what is wrong. */
static const char *merge_group(merge_job *job, Py_ssize_t group, helio_hdr_layout *widest,
                               int64_t *total) {
    helio_hdr_layout layout = job->widest;
    int64_t highest = 2 * job->lowest;
    for (int64_t at = job->starts[group]; at < job->starts[group + 1]; at++) {
        const int64_t row = job->order[at];
        if (row < 0 || row >= job->rows) {
            return "order names a row that is not there";
        }
        const int64_t begin = offset_at(job, row), end = offset_at(job, row + 1);
        if (begin < 0 || end < begin || end > job->data_bytes) {
            return "offsets pass the data";
        }
        if (!follow_highest(job, job->highest[row], &layout)) {
            return "a row's highest is impossible";
        }
        const int64_t expected = job->expected != NULL ? job->expected[row] : -1;
        const helio_hdr_refusal refusal = helio_hdr_add(
            &layout, job->data + begin, (size_t)(end - begin), expected, job->counts, total);
        job->status[row] = (uint8_t)refusal;
        if (refusal == HELIO_HDR_OK && layout.highest > highest) {
            highest = layout.highest;
        }
    }
    *widest = job->widest;
    follow_highest(job, highest, widest);
    return NULL;
}

/* Merges group after group through one counts array that stays in cache.  NULL, or what is
 * wrong. */
static const char *merge_run(merge_job *job) {
    job->ends[0] = 0;
    memset(job->counts, 0, (size_t)job->widest.cells * 8);
    for (Py_ssize_t group = 0; group < job->groups; group++) {
        helio_hdr_layout layout;
        int64_t total = 0;
        const char *wrong = merge_group(job, group, &layout, &total);
        if (wrong != NULL) {
            return wrong;
        }
        const size_t bound = helio_hdr_body_bound(&layout);
        if (job->capacity - job->used < bound) {
            const size_t capacity = job->capacity + job->capacity / 2 + bound;
            uint8_t *grown = PyMem_RawRealloc(job->bodies, capacity);
            if (grown == NULL) {
                return "out of memory";
            }
            job->bodies = grown;
            job->capacity = capacity;
        }
        job->used += helio_hdr_body_encode(&layout, job->counts, job->bodies + job->used);
        job->ends[group + 1] = (int64_t)job->used;
        job->totals[group] = total;
        job->widest_of[group] = layout.highest;
        helio_hdr_quantiles(&layout, job->counts, total, job->quantiles,
                            (size_t)job->quantile_count, job->values + group * job->quantile_count);
        memset(job->counts, 0, (size_t)layout.cells * 8);
    }
    return NULL;
}

/* starts ascend from 0 to at most the length of order. */
static int starts_are_sound(const int64_t *starts, Py_ssize_t groups, Py_ssize_t ordered) {
    if (starts[0] < 0 || starts[groups] > ordered) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < groups; i++) {
        if (starts[i + 1] < starts[i]) {
            return 0;
        }
    }
    return 1;
}

static PyObject *bytes_of(const void *data, size_t bytes) {
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes);
}

/* Runs a job whose inputs are in place; allocates and releases everything else. */
static PyObject *merge_finish(merge_job *job) {
    const size_t groups = (size_t)job->groups;
    const size_t cells = (size_t)job->groups * (size_t)job->quantile_count;
    PyObject *result = NULL;
    job->counts = PyMem_RawMalloc((size_t)job->widest.cells * 8);
    job->ends = PyMem_RawMalloc((groups + 1) * 8);
    job->totals = PyMem_RawMalloc(groups * 8 + 1);
    job->widest_of = PyMem_RawMalloc(groups * 8 + 1);
    job->values = PyMem_RawMalloc(cells * 8 + 1);
    job->status = PyMem_RawCalloc((size_t)job->rows + 1, 1);
    const char *wrong = "out of memory";
    if (job->counts && job->ends && job->totals && job->widest_of && job->values && job->status) {
        Py_BEGIN_ALLOW_THREADS wrong = merge_run(job);
        Py_END_ALLOW_THREADS
    }
    if (wrong != NULL) {
        PyErr_SetString(strcmp(wrong, "out of memory") == 0 ? PyExc_MemoryError : PyExc_ValueError,
                        wrong);
    } else {
        result = Py_BuildValue(
            "(NNNNNN)", bytes_of(job->ends, (groups + 1) * 8), bytes_of(job->bodies, job->used),
            bytes_of(job->totals, groups * 8), bytes_of(job->widest_of, groups * 8),
            bytes_of(job->values, cells * 8), bytes_of(job->status, (size_t)job->rows));
    }
    PyMem_RawFree(job->counts);
    PyMem_RawFree(job->ends);
    PyMem_RawFree(job->totals);
    PyMem_RawFree(job->widest_of);
    PyMem_RawFree(job->values);
    PyMem_RawFree(job->status);
    PyMem_RawFree(job->bodies);
    return result;
}

static PyObject *hdr_merge(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static char *names[] = {"offsets", "data",   "order",     "starts",   "highest",
                            "digits",  "lowest", "quantiles", "expected", NULL};
    PyObject *offsets_object, *data_object, *order_object, *starts_object, *highest_object, *wanted;
    PyObject *expected_object = Py_None;
    int digits;
    long long lowest;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOiLO|O", names, &offsets_object,
                                     &data_object, &order_object, &starts_object, &highest_object,
                                     &digits, &lowest, &wanted, &expected_object)) {
        return NULL;
    }
    merge_job job = {.digits = digits, .lowest = lowest};
    Py_buffer offsets = {0}, data = {0}, order = {0}, starts = {0}, highest = {0}, expected = {0};
    Py_ssize_t ordered = 0, start_count = 0, highest_count = 0, expected_count = 0;
    double *quantiles = NULL;
    PyObject *result = NULL;

    if (PyObject_GetBuffer(offsets_object, &offsets, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0 ||
        PyObject_GetBuffer(data_object, &data, PyBUF_C_CONTIGUOUS) != 0 ||
        !words_of(order_object, "order", &order, &ordered) ||
        !words_of(starts_object, "starts", &starts, &start_count) ||
        !words_of(highest_object, "highest", &highest, &highest_count)) {
        goto done;
    }
    if (expected_object != Py_None &&
        !words_of(expected_object, "expected", &expected, &expected_count)) {
        goto done;
    }
    quantiles = quantiles_of(wanted, &job.quantile_count);
    if (quantiles == NULL) {
        goto done;
    }
    if ((offsets.itemsize != 4 && offsets.itemsize != 8) || offsets.len < offsets.itemsize) {
        PyErr_SetString(PyExc_ValueError,
                        "offsets must be a buffer of 32- or 64-bit items, at least one");
        goto done;
    }
    job.offsets = offsets.buf;
    job.offset_bytes = (int)offsets.itemsize;
    job.rows = offsets.len / offsets.itemsize - 1;
    job.data = data.buf;
    job.data_bytes = data.len;
    job.order = order.buf;
    job.starts = starts.buf;
    job.groups = start_count - 1;
    job.highest = highest.buf;
    job.expected = expected.buf;
    job.quantiles = quantiles;
    if (job.groups < 0 || highest_count != job.rows ||
        !starts_are_sound(job.starts, job.groups, ordered)) {
        PyErr_SetString(PyExc_ValueError,
                        "starts must ascend within order, with one highest per row");
        goto done;
    }
    if (job.expected != NULL && expected_count != job.rows) {
        PyErr_SetString(PyExc_ValueError, "expected must have one item per row");
        goto done;
    }
    int64_t widest = 2 * lowest;
    for (Py_ssize_t row = 0; row < job.rows; row++) {
        widest = job.highest[row] > widest ? job.highest[row] : widest;
    }
    if (layout_from(digits, lowest, widest, &job.widest)) {
        result = merge_finish(&job);
    }
done:
    PyMem_Free(quantiles);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&data);
    PyBuffer_Release(&order);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&highest);
    PyBuffer_Release(&expected);
    return result;
}

/* -- module ---------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"cells", hdr_cells, METH_VARARGS,
     "cells(digits, lowest, highest): number of cells; ValueError when no histogram is like that."},
    {"encode", (PyCFunction)(void (*)(void))hdr_encode, METH_VARARGS | METH_KEYWORDS,
     "encode(counts, digits, lowest, highest, *, compress=False): the V2 payload of u64 counts."},
    {"decode", hdr_decode, METH_O,
     "decode(payload): (u64 counts as bytes, digits, lowest, highest); Refused tells what is "
     "wrong."},
    {"rewrite", hdr_rewrite, METH_O,
     "rewrite(payload): (body, digits, lowest, highest, n, min, max, sum), without an array of the "
     "cells."},
    {"quantiles", hdr_quantiles, METH_VARARGS,
     "quantiles(counts, digits, lowest, highest, quantiles): values at rank ceil(q * n), at least "
     "1."},
    {"summary", hdr_summary, METH_VARARGS,
     "summary(counts, digits, lowest, highest): (n, min, max, sum by the middle of each cell)."},
    {"merge", (PyCFunction)(void (*)(void))hdr_merge, METH_VARARGS | METH_KEYWORDS,
     "merge(offsets, data, order, starts, highest, digits, lowest, quantiles, expected=None): adds "
     "the "
     "payloads of each group; see the type stub."},
    {"refusal", hdr_refusal, METH_VARARGS, "refusal(status): what a status of merge means."},
    {NULL, NULL, 0, NULL},
};

static int module_exec(PyObject *module) {
    if (hdr_error == NULL) {
        hdr_error = PyErr_NewExceptionWithDoc("heliograph.monitor._hdr.Refused",
                                              "A payload that cannot be what it claims to be.",
                                              PyExc_ValueError, NULL);
        if (hdr_error == NULL) {
            return -1;
        }
    }
    return PyModule_AddObjectRef(module, "Refused", hdr_error);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)module_exec},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.monitor._hdr",
    .m_doc = "HdrHistogram V2 codec and merge kernel.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__hdr(void) {
    return PyModuleDef_Init(&definition);
}
