/* What a message costs at each level of detail: the measurement behind `heliograph info`.
 *
 * One instance in one thread sends to itself over memory, so no second thread, no system call and
 * no network is in the figures, and the time is that of this thread's processor: what other
 * programs take is not counted, what they do to the caches is.  Only the level of detail changes
 * between slots, in the instance as it runs: memory, addresses and code are the same in all of
 * them. */
#include "bench.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <heliograph/heliograph.h>

enum {
    BATCH_MAX = 64,
    MESSAGE_BYTES = 64,
    SLOTS_MAX = 4096,
    LOOK_EVERY = 256,
    TRIES_MAX = 1000000
};

#define SECOND INT64_C(1000000000)
#define LEVEL_TIME (SECOND * 3600)

typedef struct subject {
    helio_instance *instance;
    helio_transmitter *transmitter;
    helio_receiver *receiver;
    size_t batch;
    uint8_t body[MESSAGE_BYTES];
    helio_buffer buffers[BATCH_MAX];
    helio_message taken[BATCH_MAX];
    const char *failed; /* what, when something did */
} subject;

static int64_t thread_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return (int64_t)at.tv_sec * SECOND + at.tv_nsec;
}

static bool fail(subject *s, const char *what) {
    s->failed = what;
    return false;
}

static bool open_subject(subject *s, int batch) {
    static unsigned number;
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "inproc://levels-%ld-%u", (long)getpid(), number++);
    s->batch = (size_t)batch;
    for (size_t i = 0; i < BATCH_MAX; i++) {
        s->buffers[i] = (helio_buffer){s->body, sizeof s->body};
    }
    if (helio_instance_create("name=levels&mode=poll&stats=memory&level=0", &s->instance) < 0) {
        return fail(s, "instance");
    }
    if (helio_receiver_create(s->instance, endpoint, "LEVELS", "", NULL, &s->receiver) < 0) {
        return fail(s, "receiver");
    }
    if (helio_transmitter_create(s->instance, endpoint, "LEVELS", "linger=0", &s->transmitter) <
        0) {
        return fail(s, "transmitter");
    }
    return true;
}

static bool set_level(subject *s, int level) {
    return helio_instance_set_level(s->instance, level, LEVEL_TIME, NULL) >= 0 || fail(s, "level");
}

/* Sends one batch and takes it; returns whether all came. */
static bool pass(subject *s) {
    size_t accepted = 0, received = 0;
    if (helio_transmitter_send_many(s->transmitter, s->buffers, s->batch, &accepted) < 0) {
        return fail(s, "send");
    }
    for (int tries = 0; received < accepted; tries++) {
        const int got = helio_receiver_receive(s->receiver, s->taken, BATCH_MAX, 0);
        if (got < 0 || tries == TRIES_MAX) {
            return fail(s, "receive");
        }
        received += (size_t)got;
    }
    return true;
}

/* Passes for about so long; the ns of one message. */
static bool run(subject *s, int64_t passes, double *ns_per_message) {
    const int64_t begin_ns = thread_ns();
    for (int64_t i = 0; i < passes; i++) {
        if (!pass(s) || (i % LOOK_EVERY == LOOK_EVERY - 1 && !bench_goes_on())) {
            return false;
        }
    }
    *ns_per_message = (double)(thread_ns() - begin_ns) / (double)(passes * (int64_t)s->batch);
    return true;
}

/* At the highest level, until every histogram is there; returns how many passes a slot has. */
static int64_t warm_up(subject *s, int64_t slot_ns, int64_t warmup_ns) {
    int64_t passes = 0;
    const int64_t begin_ns = thread_ns();
    if (!set_level(s, 3)) {
        return -1;
    }
    while (thread_ns() - begin_ns < warmup_ns) {
        for (int i = 0; i < 16; i++) {
            if (!pass(s)) {
                return -1;
            }
        }
        passes += 16;
        if (passes % LOOK_EVERY == 0 && !bench_goes_on()) {
            return -1;
        }
    }
    passes = passes * slot_ns / warmup_ns;
    return passes > 0 ? passes : 1;
}

static bool measure(subject *s, const uint8_t *order, Py_ssize_t slots, int64_t slot_ns,
                    int64_t warmup_ns, double *out) {
    const int64_t passes = warm_up(s, slot_ns, warmup_ns);
    for (Py_ssize_t i = 0; passes > 0 && i < slots; i++) {
        double settled; /* the first moments of a slot fill the caches with what its level needs */
        if (!set_level(s, order[i]) || !run(s, passes / 8 + 1, &settled) ||
            !run(s, passes, &out[i])) {
            return false;
        }
    }
    return passes > 0;
}

static PyObject *list_of(const double *values, Py_ssize_t count) {
    PyObject *list = PyList_New(count);
    for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
        PyObject *value = PyFloat_FromDouble(values[i]);
        if (value == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, value);
        }
    }
    return list;
}

static PyObject *measured(const uint8_t *order, Py_ssize_t slots, int batch, int64_t slot_ns,
                          int64_t warmup_ns) {
    subject *s = calloc(1, sizeof *s);
    double *values = calloc((size_t)slots, sizeof *values);
    PyObject *result = NULL;
    if (s == NULL || values == NULL) {
        PyErr_NoMemory();
    } else {
        PyThreadState *python = PyEval_SaveThread();
        const bool ok =
            open_subject(s, batch) && measure(s, order, slots, slot_ns, warmup_ns, values);
        PyEval_RestoreThread(python);
        if (ok) {
            result = list_of(values, slots);
        } else if (!PyErr_Occurred()) {
            bench_raise(s->failed);
        }
        python = PyEval_SaveThread();
        helio_instance_destroy(s->instance);
        PyEval_RestoreThread(python);
    }
    free(values);
    free(s);
    return result;
}

PyObject *bench_levels(PyObject *module, PyObject *args, PyObject *keywords) {
    (void)module;
    static char *names[] = {"order", "batch", "slot_seconds", "warmup_seconds", NULL};
    Py_buffer order;
    int batch;
    double slot_s, warmup_s;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "y*idd", names, &order, &batch, &slot_s,
                                     &warmup_s)) {
        return NULL;
    }
    PyObject *result = NULL;
    const bool ok = order.len > 0 && order.len <= SLOTS_MAX && batch >= 1 && batch <= BATCH_MAX &&
                    slot_s > 0 && slot_s <= 10 && warmup_s > 0 && warmup_s <= 10;
    if (ok) {
        result = measured(order.buf, order.len, batch, (int64_t)(slot_s * 1e9),
                          (int64_t)(warmup_s * 1e9));
    } else {
        PyErr_SetString(PyExc_ValueError,
                        "order, batch, slot_seconds or warmup_seconds out of range");
    }
    PyBuffer_Release(&order);
    return result;
}
