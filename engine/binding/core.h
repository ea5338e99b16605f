/* What the files of heliograph.engine._core share.
 *
 * The module is a thin coat over heliograph.h: it takes and returns plain things and has no
 * opinions; keywords, defaults and help for people are the Python classes' business, which
 * inherit from the three types here.
 *
 * What it does add is safety, so that no misuse from Python can crash the process:
 *
 *  - A *gate* (core_gate.c) stands before each handle.  It knows whether the handle is open and
 *    how many threads are inside the library for it, so a handle is only destroyed when nobody
 *    uses it, and only by one thread.
 *  - An instance of mode `poll` belongs to one thread at a time; the gate refuses the others.
 *  - Within a callback only sending is allowed on the callback's own instance; the gate refuses
 *    the rest.
 *  - Objects keep their parents alive.  One that is dropped without close is closed with a
 *    ResourceWarning.
 *
 * All fields of all structs here are guarded by the GIL.  The GIL is let go only around calls
 * that can block, and those are cut into slices of CORE_SLICE_NS, so that Ctrl-C and a close
 * from another thread are noticed at once. */
#ifndef HELIO_BINDING_CORE_H
#define HELIO_BINDING_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <heliograph/heliograph.h>

#define CORE_SLICE_NS ((int64_t)50 * 1000 * 1000)
#define CORE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

typedef struct core_instance core_instance;
typedef struct core_child core_child;
typedef struct core_message core_message;
typedef struct core_views core_views;

/* -- errors: core_errors.c ------------------------------------------------------------------ */

/* Finds the Python side of the errors.  Returns 0, or -1 with an exception. */
int core_errors_setup(void);
/* Raises the exception of a HELIO_ERR_* that the library has just returned.  Returns NULL. */
PyObject *core_raise(int error);
/* The same with a text of our own. */
PyObject *core_raise_text(int error, const char *text);
/* Adds to the exception that is set how many messages had been taken before. */
void core_tell_accepted(size_t accepted);

/* -- arguments: core_arguments.c ------------------------------------------------------------ */

/* Sorts the arguments of a call into `values` by `names`, of which the first `required` must be
 * given.  Those not given stay NULL.  Returns 0, or -1 with a TypeError. */
int core_arguments(const char *function, PyObject *const *args, Py_ssize_t count,
                   PyObject *keywords, const char *const *names, size_t name_count, size_t required,
                   PyObject **values);
/* PyObject_GetBuffer for bytes in one piece; any other buffer is a BufferError.  Returns 0, or -1
 * with an exception. */
int core_buffer(PyObject *object, int flags, Py_buffer *view);
/* Seconds, None or NULL (for ever) to ns.  Returns 0, or -1 with an exception. */
int core_timeout(PyObject *seconds, int64_t *timeout_ns);
/* A moment of CLOCK_MONOTONIC that is `timeout_ns` ahead; HELIO_FOREVER stays so. */
int64_t core_deadline(int64_t timeout_ns);
/* How long to wait until the deadline, at most a slice; 0 when it has passed. */
int64_t core_slice(int64_t deadline_ns);

/* -- gates: core_gate.c --------------------------------------------------------------------- */

typedef enum core_state { CORE_CLOSED, CORE_OPEN, CORE_CLOSING } core_state;

typedef struct core_gate {
    core_state state;
    int inside;              /* threads that are in the library for this handle */
    core_instance *instance; /* whose engine it is; borrowed */
    const char *what;        /* "receiver", for texts */
} core_gate;

/* A callback that is running on this thread; they nest when a polled engine is worked by
 * another's callback. */
typedef struct core_frame {
    core_instance *instance;
    struct core_frame *outer;
    PyGILState_STATE gil;
} core_frame;

typedef enum core_manner {
    CORE_WORK, /* not within a callback of the same instance */
    CORE_SEND, /* anywhere */
} core_manner;

/* Asks to call the library for this handle.  True: the caller must do so and then core_leave.
 * False: an exception is set. */
bool core_enter(core_gate *gate, core_manner manner);
/* Ends a call.  False, with an exception set, when a callback within it wants to stop its caller
 * (Ctrl-C). */
bool core_leave(core_gate *gate);
/* Ends the use of a handle.  1: nobody is inside and the caller is to destroy the handle and
 * make the gate CORE_CLOSED; 0: it is closed already; -1: not from here, an exception is set.
 * Lets go of the GIL while it waits. */
int core_shut(core_gate *gate);
/* Around the destruction of a handle: waits until no other thread works the engine if it is
 * polled. */
void core_own(core_instance *instance);
void core_disown(core_instance *instance);
/* Raises what a callback wanted its caller to stop with and returns true, if there is something. */
bool core_stopped(core_instance *instance);
/* Lets go of the GIL for a moment. */
void core_pause(void);

/* True while this thread runs a callback of the instance, or of any when NULL. */
bool core_in_callback(const core_instance *instance);
/* Takes the GIL for a callback.  False when Python has ended: do nothing. */
bool core_frame_begin(core_frame *frame, core_instance *instance);
void core_frame_end(core_frame *frame);

/* Keeps an object that was dropped where it cannot be closed (within a callback) and closes it
 * soon from elsewhere. */
void core_close_later(PyObject *object);
void core_close_waiting(void);

/* -- instance: core_instance.c -------------------------------------------------------------- */

struct core_instance {
    PyObject ob_base;
    core_gate gate;
    helio_instance *handle;
    core_child *children;           /* the open ones */
    core_instance *next, *previous; /* among all open instances */
    PyObject *name;
    PyObject *segment;
    bool polled;
    unsigned long owner;          /* mode `poll`: the thread that works the engine now, 0: none */
    int depth;                    /* how often it has entered */
    PyThreadState *engine_thread; /* of mode `thread`, made at its first callback */
    PyObject *stop_type, *stop_value,
        *stop_trace; /* what a callback wants its caller to stop with */
};

extern PyTypeObject core_instance_type;

/* Closes every open instance; from here on no callback runs.  Called at exit of the interpreter. */
void core_instances_finish(void);
bool core_instances_finished(void);
/* Forgets every open instance: their threads do not exist in a forked child. */
void core_instances_forget(void);

/* -- children: core_child.c ----------------------------------------------------------------- */

/* What transmitter and receiver have in common. */
struct core_child {
    PyObject ob_base;
    core_gate gate;
    core_instance *instance; /* strong */
    core_child *next, *previous;
    bool pinned;  /* the instance keeps it alive, because it has a listener */
    bool claimed; /* its instance is closing it */
    PyObject *endpoint;
    PyObject *topic;
    void (*destroy)(core_child *child); /* called without the GIL */
    /* Ends the use of the library's memory before the handle is destroyed; NULL: there is none.
     * Returns 0, or -1 with an exception: the handle stays open. */
    int (*settle)(core_child *child);
};

/* Opens a child's gate and adds it to its instance. */
void core_child_opened(core_child *child, bool pinned);
/* Closes its gate and takes it out; may drop the last reference to it. */
void core_child_closed(core_child *child);
PyObject *core_child_close(PyObject *self, PyObject *ignored);
PyObject *core_child_get_closed(PyObject *self, void *ignored);
void core_child_finalize(PyObject *self);
/* Closes `self` with `end` because it was dropped: warns, and puts it off when this is not the
 * place.  What a callback wants to stop is left to the next call that can be stopped. */
void core_finalize(PyObject *self, core_gate *gate, int (*end)(PyObject *self));

extern PyTypeObject core_transmitter_type;
extern PyTypeObject core_receiver_type;

/* -- transmitter: core_transmitter.c --------------------------------------------------------- */

typedef struct core_transmitter {
    core_child child;
    helio_transmitter *handle;
    PyObject *stream;
    PyObject *on_ack;
    uint64_t callback_errors;
} core_transmitter;

/* A wait of the library's, for at most `slice_ns`. */
typedef int core_waiting(core_transmitter *self, size_t argument, int64_t slice_ns);
/* Waits in slices until the deadline.  Returns 0, or -1 with an exception. */
int core_transmitter_wait(core_transmitter *self, core_waiting *wait, size_t argument,
                          int64_t deadline);
/* What to do about a message that was not taken.  Returns 0 to try again, or -1 with an
 * exception. */
int core_transmitter_refused(core_transmitter *self, int result, size_t length, int64_t timeout_ns,
                             int64_t *deadline);

/* -- many messages in one buffer: core_packed.c ---------------------------------------------- */

PyObject *core_receiver_receive_packed(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords);
PyObject *core_transmitter_send_packed(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords);
/* The length in bytes that all messages of the records have; a ValueError when they differ. */
PyObject *core_common_length(PyObject *module, PyObject *records);

/* The records of messages, as one bytes object.  Offsets count from the first message's bytes, and
 * the bytes of all go to *bytes; NULL: offsets are 0. */
PyObject *core_records(const helio_message *messages, size_t count, uint64_t *bytes);

/* -- views: core_views.c --------------------------------------------------------------------- */

extern PyTypeObject core_views_type;

PyObject *core_receiver_receive_views(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                      PyObject *keywords);
/* Releases the views of a receiver: the library is about to take its own back.  Returns 0, or -1
 * with an exception when they are in use.  The receiver must be held by the caller. */
int core_receiver_end_views(core_child *receiver);

/* -- receiver: core_receiver.c, core_listener.c --------------------------------------------- */

#define CORE_STREAM_NAMES 16

typedef struct core_receiver {
    core_child child;
    helio_receiver *handle;
    helio_message
        *slots; /* [position, held) wait to be taken; valid until the library is asked for more */
    size_t capacity, held, position;
    void *kept; /* bytes of slots copied because the library was to have its own back */
    PyObject *stream_names[CORE_STREAM_NAMES]; /* by number modulo */
    uint32_t stream_numbers[CORE_STREAM_NAMES];
    PyObject *on_messages, *on_loss;
    uint64_t callback_errors;
    uint32_t acked_stream; /* number of the stream acknowledged last */
    core_views *views;     /* in force, or NULL; they keep the receiver, not the other way round */
} core_receiver;

enum { CORE_RECEIVER_CLOSED = -2 };

/* Sees to it that there are messages in the slots.  Returns how many, 0 when none came in time,
 * CORE_RECEIVER_CLOSED, or -1 with an exception. */
Py_ssize_t core_receiver_fetch(core_receiver *self, size_t limit, int64_t timeout_ns);
/* The arguments `timeout` and `limit`; the caller sets *limit to its default.  0, or -1 with an
 * exception. */
int core_receive_arguments(const char *function, PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords, int64_t *timeout_ns, Py_ssize_t *limit);
/* Copies a message out of the library as a Message. */
PyObject *core_receiver_message(core_receiver *self, const helio_message *message);
/* A new reference to the identity of a stream. */
PyObject *core_receiver_stream_name(core_receiver *self, uint32_t number);
/* Destroys the handle; what core_child.destroy of a receiver is. */
void core_receiver_destroy(core_child *child);
void core_listener_on_messages(void *context, const helio_message *messages, size_t count);
void core_listener_on_loss(void *context, const helio_loss *loss);
/* Calls a callback with an argument, which it takes over; NULL: making it failed.  What comes out
 * of it is counted in *errors. */
void core_call(core_instance *instance, uint64_t *errors, PyObject *callback, PyObject *argument);

/* -- receivers that take messages from stores too: core_following.c -------------------------- */

PyObject *core_following(PyObject *module, PyObject *args);
PyObject *core_stored_message(PyObject *module, PyObject *args);
PyObject *core_receiver_followed(PyObject *self, PyObject *args);
PyObject *core_receiver_stores(PyObject *self, PyObject *ignored);

/* -- acknowledgements: core_acks.c ---------------------------------------------------------- */

PyObject *core_transmitter_wait_stable(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                       PyObject *keywords);
PyObject *core_transmitter_wait_acked(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                      PyObject *keywords);
PyObject *core_transmitter_acks(PyObject *self, PyObject *ignored);
PyObject *core_transmitter_receivers(PyObject *self, PyObject *ignored);
/* The library's listener; `context` is the transmitter. */
void core_transmitter_on_ack(void *context, const helio_ack *ack);
PyObject *core_receiver_acknowledge_number(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                           PyObject *keywords);

/* -- notices: core_notices.c ----------------------------------------------------------------- */

PyObject *core_transmitter_act(PyObject *self, PyObject *args);
PyObject *core_transmitter_cut_off(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *core_receiver_notices(PyObject *self, PyObject *ignored);

/* -- replay: core_replay.c ------------------------------------------------------------------ */

PyObject *core_receiver_replay(PyObject *self, PyObject *args);

/* -- message: core_message.c ---------------------------------------------------------------- */

extern PyTypeObject core_message_type;

/* Copies a message out of the library. */
PyObject *core_message_new(const helio_message *message, PyObject *topic, PyObject *stream);
void core_message_clear_freelist(void);

#endif
