/* heliograph.monitor._cells: the cells of a histogram that are not 0: read from a segment,
 * subtracted, added, and summed up as buckets and percentiles; nothing of the engine. */
#include "cells.h"

static PyMethodDef functions[] = {
    {"read", helio_cells_read, METH_VARARGS,
     "read(file, swapped, requests): the cells of histograms that are not 0."},
    {"grown", helio_cells_grown, METH_VARARGS,
     "grown(cells, counts, older_cells, older_counts): what was added; None: a count fell."},
    {"total", helio_cells_total, METH_VARARGS,
     "total(parts, cells): the sum of pairs of positions and contents."},
    {"digest", helio_cells_digest, METH_VARARGS,
     "digest(newer, older, bounds, fractions, last): buckets and percentiles of histograms."},
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
