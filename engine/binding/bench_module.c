/* heliograph.engine._bench: the loops of `heliograph bench`, in C so that they measure the
 * transport and not Python.  One process sends, one receives; they share a board of 64-bit words in
 * shared memory that the command gives them.
 *
 * Open loop: message k is meant for the moment begin + k / rate, and latency counts from that
 * moment whenever it really left, so a stall of the sender or the network is seen by every message
 * it delays (no coordinated omission).  At full speed the moment is when its batch was submitted.
 * Both ends are on one host and read one clock. */
#include "bench.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <heliograph/heliograph.h>

#include "stats/hdr.h"

enum { RECEIVE_LIMIT = 1024, STAMP_BYTES = 16, BATCH_MAX = 512, LOOK_EVERY = 1024 };

#define SECOND INT64_C(1000000000)
#define SLICE (50 * INT64_C(1000000)) /* between looks for Ctrl-C */
#define GRACE (3 * SECOND)            /* of silence after the end before the rest is given up */
#define READY_WAIT (10 * SECOND)

/* What the two processes tell each other. */
typedef struct board {
    _Atomic uint64_t receiver_ready;
    _Atomic uint64_t total; /* messages sent in all, once they all are; UINT64_MAX before */
    _Atomic uint64_t stop;
} board;

typedef struct bench {
    const char *instance_options, *endpoint, *topic, *options;
    Py_ssize_t size;
    double rate, seconds, warmup;
    int spin;
    Py_buffer board;
    helio_instance *instance;
    /* a bare connection in place of the instance; -1: none */
    int fd;
    bench_raw raw;
} bench;

/* The first bytes of a message. */
typedef struct stamp {
    int64_t intended_ns;
    uint64_t number;
} stamp;

static int64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * SECOND + at.tv_nsec;
}

static board *board_of(const bench *b) {
    return b->board.buf;
}

/* ---- errors ---- */

PyObject *bench_raise(const char *what) {
    PyObject *module = PyImport_ImportModule("heliograph.engine.errors");
    PyObject *type = module != NULL ? PyObject_GetAttrString(module, "Error") : NULL;
    if (type != NULL) {
        PyErr_Format(type, "%s: %s", what, helio_error_text());
    }
    Py_XDECREF(module);
    Py_XDECREF(type);
    return NULL;
}

bool bench_goes_on(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    const bool ok = PyErr_CheckSignals() == 0;
    PyGILState_Release(gil);
    return ok;
}

/* ---- arguments ---- */

static int parse(PyObject *args, PyObject *keywords, bench *b) {
    static char *names[] = {"instance_options", "endpoint", "topic", "options", "size", "rate",
                            "seconds",          "warmup",   "spin",  "board",   "fd",   NULL};
    *b = (bench){.fd = -1};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "ssssndddpw*|i", names, &b->instance_options,
                                     &b->endpoint, &b->topic, &b->options, &b->size, &b->rate,
                                     &b->seconds, &b->warmup, &b->spin, &b->board, &b->fd)) {
        return -1;
    }
    if (b->board.len < (Py_ssize_t)sizeof(board) || b->size < 1 || b->rate < 0 || b->seconds <= 0) {
        PyErr_SetString(PyExc_ValueError, "board, size, rate or seconds out of range");
        PyBuffer_Release(&b->board);
        return -1;
    }
    if (b->fd >= 0 && !bench_raw_init(&b->raw, b->fd, (size_t)b->size)) {
        PyErr_SetFromErrno(PyExc_OSError);
        bench_raw_fini(&b->raw);
        PyBuffer_Release(&b->board);
        return -1;
    }
    return 0;
}

/* As bench_raise, or the system's reason. */
static void raise_failure(const bench *b, const char *what) {
    if (b->fd >= 0) {
        PyErr_SetFromErrno(PyExc_OSError);
    } else {
        bench_raise(what);
    }
}

/* Runs the engine, where this thread is the one that does. */
static void work(const bench *b) {
    if (b->spin && b->instance != NULL) {
        helio_instance_poll(b->instance);
    }
}

static PyObject *finish(bench *b, PyObject *result) {
    PyThreadState *python = PyEval_SaveThread();
    helio_instance_destroy(b->instance);
    PyEval_RestoreThread(python);
    bench_raw_fini(&b->raw);
    PyBuffer_Release(&b->board);
    return result;
}

/* ---- send ---- */

typedef struct sending {
    helio_transmitter *transmitter;
    uint8_t *bodies;
    helio_buffer buffers[BATCH_MAX];
    uint64_t sent;
    int64_t begin_ns, end_ns;
    int64_t latest_ns; /* most that a message left behind its moment */
    int error;
} sending;

/* Hands over the first `count` buffers. */
static bool submit(const bench *b, sending *s, size_t count) {
    if (b->fd >= 0) {
        s->error = bench_raw_send(&b->raw, s->bodies, count * (size_t)b->size, SLICE) ? 0 : -1;
        s->sent += s->error ? 0 : count;
        return s->error == 0;
    }
    for (size_t done = 0; done < count;) {
        size_t accepted = 0;
        const int result =
            helio_transmitter_send_many(s->transmitter, s->buffers + done, count - done, &accepted);
        done += accepted;
        s->sent += accepted;
        if (result == HELIO_ERR_WOULD_BLOCK) {
            const int waited = helio_transmitter_wait(s->transmitter, (size_t)b->size, SLICE);
            if ((waited == HELIO_ERR_TIMEOUT && !bench_goes_on()) ||
                (waited < 0 && waited != HELIO_ERR_TIMEOUT)) {
                return false;
            }
        } else if (result < 0) {
            s->error = result;
            return false;
        }
    }
    return true;
}

static void mark(const bench *b, sending *s, size_t i, int64_t intended_ns) {
    const stamp mark = {intended_ns, s->sent + i};
    memcpy(s->bodies + i * (size_t)b->size, &mark,
           b->size < STAMP_BYTES ? (size_t)b->size : STAMP_BYTES);
}

static bool pour(const bench *b, sending *s) {
    size_t batch = (size_t)(65536 / b->size);
    batch = batch < 1 ? 1 : batch > BATCH_MAX ? BATCH_MAX : batch;
    int64_t look_ns = s->begin_ns + SLICE;
    for (int64_t at_ns = s->begin_ns; at_ns < s->end_ns; at_ns = now_ns()) {
        for (size_t i = 0; i < batch; i++) {
            mark(b, s, i, at_ns);
        }
        if (!submit(b, s, batch)) {
            return false;
        }
        work(b);
        if (at_ns >= look_ns) {
            look_ns = at_ns + SLICE;
            if (!bench_goes_on()) {
                return false;
            }
        }
    }
    return true;
}

/* Waits for a moment: working the engine, or asleep until shortly before. */
static bool wait_until(const bench *b, int64_t moment_ns) {
    int64_t look_ns = now_ns() + SLICE;
    for (int64_t at_ns; (at_ns = now_ns()) < moment_ns;) {
        if (b->spin) {
            work(b);
        } else if (moment_ns - at_ns > 200000) {
            const int64_t left_ns = moment_ns - at_ns - 100000;
            const struct timespec left = {.tv_nsec = left_ns < SLICE ? left_ns : SLICE};
            nanosleep(&left, NULL);
        }
        if (at_ns >= look_ns) {
            look_ns = at_ns + SLICE;
            if (!bench_goes_on()) {
                return false;
            }
        }
    }
    return true;
}

static bool pace(const bench *b, sending *s) {
    const double interval_ns = 1e9 / b->rate;
    for (uint64_t k = 0;; k++) {
        const int64_t moment_ns = s->begin_ns + (int64_t)((double)k * interval_ns);
        if (moment_ns >= s->end_ns) {
            return true;
        }
        if (!wait_until(b, moment_ns)) {
            return false;
        }
        const int64_t late_ns = now_ns() - moment_ns;
        s->latest_ns = late_ns > s->latest_ns ? late_ns : s->latest_ns;
        mark(b, s, 0, moment_ns);
        if (!submit(b, s, 1) || (k % LOOK_EVERY == 0 && !bench_goes_on())) {
            return false;
        }
    }
}

/* Everything is said; repairs go on until the receiver has it all. */
static bool see_off(const bench *b, sending *s) {
    atomic_store(&board_of(b)->total, s->sent);
    const int64_t until_ns = now_ns() + 4 * GRACE;
    while (!atomic_load(&board_of(b)->stop) && now_ns() < until_ns) {
        if (b->spin) {
            for (int i = 0; i < LOOK_EVERY; i++) {
                work(b);
            }
        } else {
            if (s->transmitter != NULL) {
                helio_transmitter_flush(s->transmitter, SLICE);
            }
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        if (!bench_goes_on()) {
            return false;
        }
    }
    return true;
}

static bool send_all(const bench *b, sending *s) {
    const int64_t patience_ns = now_ns() + READY_WAIT;
    while (!atomic_load(&board_of(b)->receiver_ready)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (!bench_goes_on() || now_ns() > patience_ns) {
            return false;
        }
    }
    if (!wait_until(b, now_ns() + SECOND / 5)) { /* joins, connections */
        return false;
    }
    for (size_t i = 0; i < BATCH_MAX; i++) {
        s->buffers[i] = (helio_buffer){s->bodies + i * (size_t)b->size, (size_t)b->size};
    }
    s->begin_ns = now_ns();
    s->end_ns = s->begin_ns + (int64_t)(b->seconds * 1e9);
    const bool ok = b->rate > 0 ? pace(b, s) : pour(b, s);
    s->end_ns = now_ns();
    return ok && see_off(b, s);
}

static PyObject *bench_send(PyObject *module, PyObject *args, PyObject *keywords) {
    (void)module;
    bench b;
    if (parse(args, keywords, &b) < 0) {
        return NULL;
    }
    sending *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->bodies = calloc(BATCH_MAX, (size_t)b.size);
    }
    PyObject *result = NULL;
    if (s == NULL || s->bodies == NULL) {
        result = PyErr_NoMemory();
    } else if (b.fd < 0 && helio_instance_create(b.instance_options, &b.instance) < 0) {
        bench_raise("instance");
    } else if (b.fd < 0 && helio_transmitter_create(b.instance, b.endpoint, b.topic, b.options,
                                                    &s->transmitter) < 0) {
        bench_raise("transmitter");
    } else {
        PyThreadState *python = PyEval_SaveThread();
        const bool ok = send_all(&b, s);
        PyEval_RestoreThread(python);
        if (ok) {
            result = Py_BuildValue("{s:K,s:d,s:L}", "sent", (unsigned long long)s->sent, "seconds",
                                   (double)(s->end_ns - s->begin_ns) / 1e9, "latest_ns",
                                   (long long)s->latest_ns);
        } else if (s->error < 0) {
            raise_failure(&b, "send");
        } else if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_TimeoutError, "the receiver did not come up");
        }
    }
    if (s != NULL) {
        free(s->bodies);
    }
    free(s);
    return finish(&b, result);
}

/* ---- receive ---- */

typedef struct receiving {
    helio_receiver *receiver;
    helio_message messages[RECEIVE_LIMIT];
    helio_hdr *latency;
    uint64_t received, recovered, lost;
    uint64_t measured; /* messages after the warm-up */
    int64_t first_ns, last_ns;
    int64_t measured_from_ns, measured_to_ns;
} receiving;

static void take_losses(receiving *r) {
    helio_loss loss;
    while (r->receiver != NULL && helio_receiver_loss(r->receiver, &loss) == 1) {
        r->lost += loss.count;
    }
}

static void take(const bench *b, receiving *r, size_t count) {
    const int64_t at_ns = now_ns();
    if (r->received == 0) {
        r->first_ns = at_ns;
    }
    r->received += count;
    r->last_ns = at_ns;
    const bool is_warm = at_ns - r->first_ns >= (int64_t)(b->warmup * 1e9);
    if (is_warm && r->measured_from_ns == 0) {
        r->measured_from_ns = at_ns; /* these mark the beginning and are not counted */
        return;
    }
    for (size_t i = 0; i < count; i++) {
        r->recovered += r->messages[i].flags & HELIO_MESSAGE_RECOVERED;
        if (is_warm && r->messages[i].length >= sizeof(int64_t)) {
            int64_t intended_ns;
            memcpy(&intended_ns, r->messages[i].data, sizeof intended_ns);
            helio_hdr_record(r->latency, at_ns - intended_ns, 1);
        }
    }
    if (is_warm) {
        r->measured += count;
        r->measured_to_ns = at_ns;
    }
}

static int receive_some(bench *b, receiving *r) {
    const int64_t timeout_ns = b->spin ? 0 : SLICE;
    return b->fd >= 0 ? bench_raw_receive(&b->raw, r->messages, RECEIVE_LIMIT, timeout_ns)
                      : helio_receiver_receive(r->receiver, r->messages, RECEIVE_LIMIT, timeout_ns);
}

static bool receive_all(bench *b, receiving *r) {
    int64_t look_ns = now_ns() + SLICE, news_ns = now_ns();
    for (;;) {
        const int count = receive_some(b, r);
        if (count < 0) {
            return false;
        }
        if (count > 0) {
            take(b, r, (size_t)count);
        } else if (!b->spin) {
            look_ns = 0;
        }
        const int64_t at_ns = count > 0 ? r->last_ns : now_ns();
        news_ns = count > 0 ? at_ns : news_ns;
        if (at_ns < look_ns) {
            continue;
        }
        look_ns = at_ns + SLICE / 10;
        take_losses(r);
        const uint64_t total = atomic_load(&board_of(b)->total);
        if (total != UINT64_MAX && (r->received + r->lost >= total || at_ns - news_ns > GRACE)) {
            atomic_store(&board_of(b)->stop, 1);
            return true;
        }
        if (atomic_load(&board_of(b)->stop) || !bench_goes_on()) {
            return false;
        }
    }
}

/* Which of `total` values in ascending order is the percentile: 1 to total, rounded up, with a
 * little leniency for shares that are not exact; large totals leave no room for it beside them. */
static uint64_t rank_of(uint64_t total, double share) {
    const double exact = share * (double)total;
    uint64_t rank = (uint64_t)exact;
    rank += exact - (double)rank > 1e-6;
    return rank < 1 ? 1 : rank > total ? total : rank;
}

static int64_t percentile(const helio_hdr *hdr, uint64_t total, double share) {
    const uint64_t rank = rank_of(total, share);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HELIO_HDR_CELLS; i++) {
        seen += hdr->counts[i];
        if (seen > 0 && seen >= rank) {
            const uint32_t shift = i < 2048 ? 0 : (i >> 10) - 1;
            return (int64_t)(((uint64_t)(i - (shift << 10)) + 1) << shift) - 1;
        }
    }
    return 0;
}

static PyObject *summary(const receiving *r) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < HELIO_HDR_CELLS; i++) {
        total += r->latency->counts[i];
    }
    PyObject *latency =
        Py_BuildValue("{s:K,s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:d}", "count", (unsigned long long)total,
                      "min", (long long)percentile(r->latency, total, 0), "p50",
                      (long long)percentile(r->latency, total, 0.5), "p90",
                      (long long)percentile(r->latency, total, 0.9), "p99",
                      (long long)percentile(r->latency, total, 0.99), "p99.9",
                      (long long)percentile(r->latency, total, 0.999), "p99.99",
                      (long long)percentile(r->latency, total, 0.9999), "max",
                      (long long)percentile(r->latency, total, 1), "mean",
                      total > 0 ? (double)r->latency->sum / (double)total : 0.0);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:d,s:N}", "received", (unsigned long long)r->received, "lost",
        (unsigned long long)r->lost, "recovered", (unsigned long long)r->recovered, "measured",
        (unsigned long long)r->measured, "seconds",
        (double)(r->measured_to_ns - r->measured_from_ns) / 1e9, "latency_ns", latency);
}

static PyObject *bench_receive(PyObject *module, PyObject *args, PyObject *keywords) {
    (void)module;
    bench b;
    if (parse(args, keywords, &b) < 0) {
        return NULL;
    }
    receiving *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->latency = calloc(1, sizeof *r->latency);
    }
    PyObject *result = NULL;
    if (r == NULL || r->latency == NULL) {
        result = PyErr_NoMemory();
    } else if (b.fd < 0 && helio_instance_create(b.instance_options, &b.instance) < 0) {
        bench_raise("instance");
    } else if (b.fd < 0 && helio_receiver_create(b.instance, b.endpoint, b.topic, b.options, NULL,
                                                 &r->receiver) < 0) {
        bench_raise("receiver");
    } else {
        helio_hdr_init(r->latency);
        atomic_store(&board_of(&b)->receiver_ready, 1);
        PyThreadState *python = PyEval_SaveThread();
        const bool ok = receive_all(&b, r);
        PyEval_RestoreThread(python);
        if (ok) {
            result = summary(r);
        } else if (!PyErr_Occurred()) {
            raise_failure(&b, "receive");
        }
    }
    if (r != NULL) {
        free(r->latency);
    }
    free(r);
    return finish(&b, result);
}

static PyObject *bench_rank(PyObject *module, PyObject *args) {
    (void)module;
    unsigned long long total;
    double share;
    if (!PyArg_ParseTuple(args, "Kd", &total, &share)) {
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(rank_of(total, share));
}

static PyMethodDef methods[] = {
    {"rank", bench_rank, METH_VARARGS,
     "rank(total, share, /)\n--\n\n"
     "Which of `total` values in ascending order is the percentile: 1 to total."},
    {"send", (PyCFunction)(void (*)(void))bench_send, METH_VARARGS | METH_KEYWORDS,
     "send(instance_options, endpoint, topic, options, size, rate, seconds, warmup, spin, "
     "board, fd=-1)\n--\n\n"
     "Send messages of `size` bytes for `seconds`, `rate` a second (0: as fast as it goes); a dict "
     "of what\nwas done."},
    {"receive", (PyCFunction)(void (*)(void))bench_receive, METH_VARARGS | METH_KEYWORDS,
     "receive(instance_options, endpoint, topic, options, size, rate, seconds, warmup, spin, "
     "board, fd=-1)\n--\n\n"
     "Receive until the sender on the same board has sent all; a dict of what came, latencies in "
     "ns."},
    {"levels", (PyCFunction)(void (*)(void))bench_levels, METH_VARARGS | METH_KEYWORDS,
     "levels(order, batch, slot_seconds, warmup_seconds)\n--\n\n"
     "What a message costs at the levels of detail in `order`, one slot each: a list of ns of "
     "processor time.\nMessages go in lists of `batch`."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.engine._bench",
    .m_doc = "The loops of `heliograph bench`.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__bench(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && (PyModule_AddIntConstant(module, "BOARD_BYTES", sizeof(board)) < 0 ||
                           PyModule_AddIntConstant(module, "STAMP_BYTES", STAMP_BYTES) < 0)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
