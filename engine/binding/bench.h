/* What the files of heliograph.engine._bench share. */
#ifndef HELIO_BINDING_BENCH_H
#define HELIO_BINDING_BENCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <heliograph/heliograph.h>

/* Raises heliograph.engine.errors.Error with the library's sentence; returns NULL. */
PyObject *bench_raise(const char *what);

/* To be called now and then without the GIL: whether to go on, or there is an exception
 * (Ctrl-C). */
bool bench_goes_on(void);

/* One end of a bare TCP connection: bench_raw.c. */
typedef struct bench_raw {
    /* belongs to the caller; becomes non-blocking */
    int fd;
    /* of a message */
    size_t size;
    /* bytes of `in`: read, and of these handed out */
    size_t have, used;
    size_t room;
    uint8_t *in;
} bench_raw;

/* False with errno; bench_raw_fini in both cases. */
bool bench_raw_init(bench_raw *raw, int fd, size_t size);
void bench_raw_fini(bench_raw *raw);
/* Looks for Ctrl-C every slice.  False with errno or an exception. */
bool bench_raw_send(const bench_raw *raw, const uint8_t *data, size_t bytes, int64_t slice_ns);
/* As helio_receiver_receive; -1 with errno. */
int bench_raw_receive(bench_raw *raw, helio_message *messages, int limit, int64_t timeout_ns);

/* levels(order, batch, slot_seconds, warmup_seconds): bench_levels.c. */
PyObject *bench_levels(PyObject *module, PyObject *args, PyObject *keywords);

#endif
