/* Many messages in one buffer, for programs that count in millions per second: no Python object is
 * made for a message on either side. */
#include "core.h"

#include <string.h>

#define DEFAULT_LIMIT 4096
#define CHUNK 512 /* messages given to the library at once; their table lives on the stack */

/* One message of a batch; heliograph.engine.batch has the same as a numpy type.  It is a
 * helio_message with an offset in the place of its address. */
typedef struct packed_record {
    uint64_t offset, length, number;
    int64_t submit_ns, receive_ns;
    uint32_t stream, flags;
} packed_record;
_Static_assert(sizeof(packed_record) == 48, "the numpy type says so");
#define SAME(field) (offsetof(packed_record, field) == offsetof(helio_message, field))
_Static_assert(sizeof(packed_record) == sizeof(helio_message) && SAME(length) && SAME(number) &&
                   SAME(submit_ns) && SAME(receive_ns) && SAME(stream) && SAME(flags),
               "messages are copied into records as they are");

/* ---- receive ---- */

PyObject *core_records(const helio_message *messages, size_t count, uint64_t *bytes) {
    const size_t size = count * sizeof(packed_record);
    PyObject *records = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (records == NULL || count == 0) {
        return records;
    }
    char *record = PyBytes_AS_STRING(records);
    memcpy(record, messages, size);
    uint64_t offset = 0;
    for (size_t i = 0; i < count; i++, record += sizeof(packed_record)) {
        memcpy(record, &offset, sizeof offset);
        offset += bytes != NULL ? messages[i].length : 0;
    }
    if (bytes != NULL) {
        *bytes = offset;
    }
    return records;
}

static PyObject *pack(core_receiver *self, size_t count) {
    const helio_message *messages = self->slots + self->position;
    uint64_t bytes = 0;
    PyObject *records = core_records(messages, count, &bytes);
    PyObject *data = records != NULL ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes) : NULL;
    if (data == NULL) {
        Py_XDECREF(records);
        return NULL;
    }
    char *to = PyBytes_AS_STRING(data);
    for (size_t i = 0; i < count; i++) {
        if (messages[i].length > 0) {
            memcpy(to, messages[i].data, messages[i].length);
            to += messages[i].length;
        }
    }
    self->position += count;
    PyObject *result = PyTuple_Pack(2, data, records);
    Py_DECREF(data);
    Py_DECREF(records);
    return result;
}

PyObject *core_receiver_receive_packed(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords) {
    core_receiver *self = (core_receiver *)op;
    int64_t timeout_ns;
    Py_ssize_t limit = DEFAULT_LIMIT;
    if (core_receive_arguments("receive_packed", args, count, keywords, &timeout_ns, &limit) < 0) {
        return NULL;
    }
    Py_ssize_t available = core_receiver_fetch(self, (size_t)limit, timeout_ns);
    if (available == CORE_RECEIVER_CLOSED) {
        return core_raise_text(HELIO_ERR_CLOSED, "the receiver is closed");
    }
    return available < 0 ? NULL : pack(self, (size_t)(available < limit ? available : limit));
}

static uint64_t length_in(const char *records, size_t i) {
    uint64_t length;
    memcpy(&length, records + i * sizeof(packed_record) + offsetof(packed_record, length),
           sizeof length);
    return length;
}

static PyObject *fail_lengths(const char *records, size_t count) {
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t length = length_in(records, i);
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    return PyErr_Format(PyExc_ValueError,
                        "the messages have different sizes, from %llu to %llu bytes; use the views",
                        (unsigned long long)least, (unsigned long long)most);
}

static PyObject *common_length(const char *records, size_t count) {
    const uint64_t first = count > 0 ? length_in(records, 0) : 0;
    uint64_t differing_bits = 0;
    for (size_t i = 1; i < count; i++) {
        differing_bits |= length_in(records, i) ^ first;
    }
    return differing_bits ? fail_lengths(records, count) : PyLong_FromUnsignedLongLong(first);
}

PyObject *core_common_length(PyObject *module, PyObject *records) {
    (void)module;
    Py_buffer view;
    if (core_buffer(records, PyBUF_SIMPLE, &view) < 0) {
        return NULL;
    }
    PyObject *length = common_length(view.buf, (size_t)view.len / sizeof(packed_record));
    PyBuffer_Release(&view);
    return length;
}

/* ---- send ---- */

/* Where the messages of a buffer are. */
typedef struct packing {
    Py_buffer data, offsets; /* of offsets, obj is NULL when all have one size */
    size_t size, count;
} packing;

static void packing_release(packing *packing) {
    if (packing->offsets.obj != NULL) {
        PyBuffer_Release(&packing->offsets);
    }
    if (packing->data.obj != NULL) {
        PyBuffer_Release(&packing->data);
    }
}

static uint64_t offset_of(const packing *packing, size_t i) {
    uint64_t offset;
    memcpy(&offset, (const char *)packing->offsets.buf + i * sizeof offset, sizeof offset);
    return offset;
}

static int packing_by_size(packing *packing, PyObject *size) {
    Py_ssize_t bytes = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (bytes == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (bytes < 1 || packing->data.len % bytes != 0) {
        PyErr_Format(PyExc_ValueError, "%zd bytes are no whole number of messages of %zd bytes",
                     packing->data.len, bytes);
        return -1;
    }
    packing->size = (size_t)bytes;
    packing->count = (size_t)(packing->data.len / bytes);
    return 0;
}

static int packing_by_offsets(packing *packing, PyObject *offsets) {
    if (core_buffer(offsets, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT, &packing->offsets) < 0) {
        return -1;
    }
    const Py_buffer *view = &packing->offsets;
    const char *format = view->format != NULL ? view->format : "B";
    if (view->itemsize != sizeof(uint64_t) || strpbrk(format, "QqLlNn") == NULL || view->len < 8) {
        PyErr_Format(PyExc_ValueError,
                     "offsets are whole numbers of 64 bits, at least one, not of format '%s'",
                     format);
        return -1;
    }
    packing->count = (size_t)view->len / sizeof(uint64_t) - 1;
    for (size_t i = 0; i <= packing->count; i++) {
        if (offset_of(packing, i) > (uint64_t)packing->data.len ||
            (i > 0 && offset_of(packing, i) < offset_of(packing, i - 1))) {
            PyErr_Format(PyExc_ValueError,
                         "offset number %zu is beyond the %zd bytes of data or before the one "
                         "before it",
                         i, packing->data.len);
            return -1;
        }
    }
    return 0;
}

static int packing_open(packing *packing, PyObject *data, PyObject *size, PyObject *offsets) {
    *packing = (struct packing){.count = 0};
    if (size == Py_None) {
        size = NULL;
    }
    if (offsets == Py_None) {
        offsets = NULL;
    }
    if ((size == NULL) == (offsets == NULL)) {
        PyErr_SetString(PyExc_TypeError, "send_packed() needs either size or offsets");
        return -1;
    }
    if (core_buffer(data, PyBUF_SIMPLE, &packing->data) < 0) {
        return -1;
    }
    return size != NULL ? packing_by_size(packing, size) : packing_by_offsets(packing, offsets);
}

static size_t fill(const packing *packing, size_t first, helio_buffer buffers[CHUNK]) {
    size_t n = packing->count - first < CHUNK ? packing->count - first : CHUNK;
    const char *data = packing->data.buf;
    for (size_t i = 0; i < n; i++) {
        if (packing->offsets.obj == NULL) {
            buffers[i] = (helio_buffer){data + (first + i) * packing->size, packing->size};
        } else { /* another thread may have changed them since they were looked at */
            uint64_t from = offset_of(packing, first + i), to = offset_of(packing, first + i + 1);
            bool fits = from <= to && to <= (uint64_t)packing->data.len;
            buffers[i] = (helio_buffer){data + (fits ? from : 0), fits ? to - from : 0};
        }
    }
    return n;
}

static int send_all(core_transmitter *self, const packing *packing, int64_t timeout_ns,
                    size_t *sent) {
    int64_t deadline = 0;
    helio_buffer buffers[CHUNK];
    while (*sent < packing->count) {
        const size_t n = fill(packing, *sent, buffers);
        if (!core_enter(&self->child.gate, CORE_SEND)) {
            return -1;
        }
        size_t accepted = 0;
        int result = helio_transmitter_send_many(self->handle, buffers, n, &accepted);
        *sent += accepted;
        if (!core_leave(&self->child.gate)) {
            return -1;
        }
        if (result < 0 &&
            core_transmitter_refused(self, result, accepted < n ? buffers[accepted].length : 0,
                                     timeout_ns, &deadline) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *core_transmitter_send_packed(PyObject *op, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords) {
    static const char *const names[] = {"data", "size", "offsets", "timeout"};
    PyObject *values[4];
    int64_t timeout_ns;
    packing packing = {.count = 0};
    if (core_arguments("send_packed", args, count, keywords, names, 4, 1, values) < 0 ||
        core_timeout(values[3], &timeout_ns) < 0) {
        return NULL;
    }
    size_t sent = 0;
    int result = packing_open(&packing, values[0], values[1], values[2]);
    if (result == 0 &&
        (result = send_all((core_transmitter *)op, &packing, timeout_ns, &sent)) < 0) {
        core_tell_accepted(sent);
    }
    packing_release(&packing);
    return result < 0 ? NULL : PyLong_FromSize_t(sent);
}
