/* heliograph.engine._core: the module itself.
 *
 * Two moments need care.  At exit of the interpreter open instances are closed while Python
 * still works, so that no engine thread calls into a Python that is gone.  After a fork the
 * child has no engine threads: its copies are forgotten. */
#include "core.h"

#include <dlfcn.h>

static PyObject *module_version(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    return PyUnicode_FromString(helio_version());
}

/* Properties of the build. */
static PyObject *module_build(PyObject *module, PyObject *ignored) {
    (void)module;
    (void)ignored;
#ifdef __OPTIMIZE__
    const char *speed = "optimized";
#else
    const char *speed = "not optimized";
#endif
#ifdef HELIO_NO_STATS
    const char *counting = "without statistics";
#else
    const char *counting = "with statistics";
#endif
#ifdef __clang__
    const char *compiler = "";
#else
    const char *compiler = "gcc ";
#endif
    return PyUnicode_FromFormat("%s%s, %s, %s", compiler, __VERSION__, speed, counting);
}

static PyObject *module_library(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    Dl_info info;
    union { /* ISO C has no cast from one to the other */
        const char *(*function)(void);
        void *address;
    } version = {.function = helio_version};
    if (dladdr(version.address, &info) == 0 || info.dli_fname == NULL) {
        return PyUnicode_FromString("");
    }
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

static PyObject *module_finish(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    core_close_waiting();
    core_instances_finish();
    core_message_clear_freelist();
    Py_RETURN_NONE;
}

static PyObject *module_forget(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    core_instances_forget();
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {
    {"version", module_version, METH_NOARGS, "version()\n--\n\nVersion of the library."},
    {"build", module_build, METH_NOARGS, "build()\n--\n\nHow it was compiled."},
    {"library", module_library, METH_NOARGS,
     "library()\n--\n\nPath of the file that holds the library."},
    {"common_length", core_common_length, METH_O,
     "common_length(records, /)\n--\n\n"
     "Length in bytes that all messages of the records of receive_packed have; 0 without "
     "records.\n\n"
     "Raises:\n    ValueError: they have different lengths."},
    {"following", core_following, METH_VARARGS,
     "following(endpoint, topic, options, /)\n--\n\n"
     "The options by which a receiver takes messages from stores too: (joins, acks, wait in ns, "
     "stores, "
     "join_from, durable); None: it does not.\n\n"
     "Raises:\n    The errors of Receiver."},
    {"stored_message", core_stored_message, METH_VARARGS,
     "stored_message(data, topic, stream, number, submit_ns, receive_ns, recovered, /)\n--\n\n"
     "A Message that came from a store."},
    {"_finish", module_finish, METH_NOARGS, "Close every open instance; for atexit."},
    {"_forget", module_forget, METH_NOARGS, "Forget every open instance; for a forked child."},
    {NULL, NULL, 0, NULL},
};

/* Calls `module.function(callback)`, or with the callback as a keyword. */
static int register_callback(const char *module_name, const char *function, const char *keyword,
                             PyObject *callback) {
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *registrar = module != NULL ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *result = NULL;
    if (registrar != NULL && callback != NULL) {
        PyObject *args = keyword != NULL ? PyTuple_New(0) : PyTuple_Pack(1, callback);
        PyObject *keywords = keyword != NULL ? Py_BuildValue("{sO}", keyword, callback) : NULL;
        if (args != NULL && (keyword == NULL || keywords != NULL)) {
            result = PyObject_Call(registrar, args, keywords);
        }
        Py_XDECREF(args);
        Py_XDECREF(keywords);
    }
    Py_XDECREF(registrar);
    Py_XDECREF(module);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static int watch_process(PyObject *module) {
    PyObject *finish = PyObject_GetAttrString(module, "_finish");
    PyObject *forget = PyObject_GetAttrString(module, "_forget");
    int result = -1;
    if (finish != NULL && forget != NULL &&
        register_callback("atexit", "register", NULL, finish) == 0 &&
        register_callback("os", "register_at_fork", "after_in_child", forget) == 0) {
        result = 0;
    }
    Py_XDECREF(finish);
    Py_XDECREF(forget);
    return result;
}

/* The names of the actions, by number. */
static int add_actions(PyObject *module) {
#define FORMAT(NAME, name, number, notice, help) "s"
#define NAME_OF(NAME, name, number, notice, help) , #name
    PyObject *names = Py_BuildValue("(s" HELIO_ACTIONS(FORMAT) ")", "none" HELIO_ACTIONS(NAME_OF));
#undef NAME_OF
#undef FORMAT
    const int error = names ? PyModule_AddObjectRef(module, "ACTIONS", names) : -1;
    Py_XDECREF(names);
    return error;
}

/* Engine threads call back by PyGILState, which knows the main interpreter only, and gates and types
 * are the process's. */
static int module_exec(PyObject *module) {
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError,
                        "heliograph's engine runs in the main interpreter only, and this is a "
                        "sub-interpreter");
        return -1;
    }
    if (core_errors_setup() < 0 || PyModule_AddType(module, &core_instance_type) < 0 ||
        PyModule_AddType(module, &core_transmitter_type) < 0 ||
        PyModule_AddType(module, &core_receiver_type) < 0 ||
        PyModule_AddType(module, &core_message_type) < 0 ||
        PyModule_AddType(module, &core_views_type) < 0 || add_actions(module) < 0) {
        return -1;
    }
    return watch_process(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_USED}, /* all fields of all objects are guarded by it */
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.engine._core",
    .m_doc = "The engine as Python sees it at its thinnest; use heliograph.engine.",
    .m_size = 0,
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&module_definition);
}
