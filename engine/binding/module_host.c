/* heliograph.monitor._module_host: loads a module of heliograph/module.h and calls its functions.
 *
 * It runs in a process that holds one module and nothing else (monitor/modules/child.py), for a
 * module may crash.  It takes plain tuples (module_values.c) and gives up the interpreter's lock
 * while the module's code runs.  The module may speak to its host at any time and from any thread
 * of its own; what it says reaches Python through one callable, told (kind, number, text). */
#include "module_values.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static PyObject *failed_error;  /* Failed: a call did, and said why */
static PyObject *refused_error; /* Refused: this is no module for us */

typedef struct loaded_module {
    PyObject_HEAD void *library;
    const helio_module *functions;
    void *state;
    PyObject *told; /* callable */
    helio_module_host host;
    helio_arena schema_memory;
    const helio_module_schema *schema;
    char error[512];
    int is_open;
} loaded_module;

/* ---- what the module says to its host ---- */

static void tell(loaded_module *self, const char *kind, unsigned long long number,
                 const char *text) {
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *said = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *result = said != NULL && self->told != NULL
                           ? PyObject_CallFunction(self->told, "sKO", kind, number, said)
                           : NULL;
    if (result == NULL && PyErr_Occurred()) {
        PyErr_WriteUnraisable(self->told);
    }
    Py_XDECREF(said);
    Py_XDECREF(result);
    PyGILState_Release(state);
}

static void on_log(void *context, uint32_t severity, const char *text) {
    tell(context, "log", severity, text != NULL ? text : "");
}

static void on_lost(void *context, uint64_t count) {
    tell(context, "lost", count, "");
}

static void on_error(void *context, const char *text) {
    loaded_module *self = context;
    snprintf(self->error, sizeof self->error, "%s", text != NULL ? text : "");
}

/* ---- loading ---- */

static int refuse(const char *path, const char *why) {
    PyErr_Format(refused_error, "%s %s", path, why);
    return -1;
}

static int check(const char *path, const helio_module *functions) {
    char why[160];
    if (functions == NULL) {
        snprintf(why, sizeof why, "does not work with version %d of the module interface",
                 HELIO_MODULE_ABI);
        return refuse(path, why);
    }
    if (functions->size < offsetof(helio_module, close) + sizeof functions->close) {
        snprintf(why, sizeof why,
                 "says that its table of functions has %zu bytes; at least %zu are needed",
                 functions->size, offsetof(helio_module, close) + sizeof functions->close);
        return refuse(path, why);
    }
    if (functions->abi != HELIO_MODULE_ABI) {
        snprintf(why, sizeof why,
                 "is of version %u of the module interface; this Heliograph has %d", functions->abi,
                 HELIO_MODULE_ABI);
        return refuse(path, why);
    }
    if (functions->name == NULL || functions->version == NULL || functions->open == NULL) {
        return refuse(path, "has no name, version or function open");
    }
    return 0;
}

static int loaded_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
    loaded_module *self = (loaded_module *)object;
    const char *path;
    PyObject *told;
    if (keywords != NULL && PyDict_GET_SIZE(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "Loaded takes no keywords");
        return -1;
    }
    if (self->library != NULL) {
        PyErr_SetString(PyExc_ValueError, "the module is loaded already");
        return -1;
    }
    if (!PyArg_ParseTuple(arguments, "sO", &path, &told)) {
        return -1;
    }
    const helio_module *(*entry)(uint32_t) = NULL;
    self->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (self->library == NULL) {
        const char *why = dlerror();
        PyErr_Format(refused_error, "%s cannot be loaded: %s", path,
                     why != NULL ? why : "no reason");
        return -1;
    }
    *(void **)&entry = dlsym(self->library, "helio_module_entry");
    if (entry == NULL) {
        return refuse(path, "is no module: it does not export helio_module_entry");
    }
    const helio_module *functions;
    Py_BEGIN_ALLOW_THREADS functions = entry(HELIO_MODULE_ABI);
    Py_END_ALLOW_THREADS if (check(path, functions) != 0) {
        return -1;
    }
    self->functions = functions;
    self->told = Py_NewRef(told);
    self->host = (helio_module_host){
        .size = sizeof self->host,
        .abi = HELIO_MODULE_ABI,
        .context = self,
        .log = on_log,
        .error = on_error,
        .lost = on_lost,
    };
    return 0;
}

static void loaded_dealloc(PyObject *object) {
    loaded_module *self = (loaded_module *)object;
    /* The library stays: threads of the module may still run its code. */
    helio_arena_free(&self->schema_memory);
    Py_XDECREF(self->told);
    Py_TYPE(object)->tp_free(object);
}

/* ---- calling ---- */

/* None, or Failed with what the module said. */
static PyObject *outcome(loaded_module *self, int result) {
    if (result == 0) {
        Py_RETURN_NONE;
    }
    PyObject *said = PyUnicode_DecodeUTF8(self->error, (Py_ssize_t)strlen(self->error), "replace");
    if (said != NULL && PyUnicode_GET_LENGTH(said) == 0) {
        Py_SETREF(said, PyUnicode_FromFormat("it returned %d and did not say why", result));
    }
    if (said != NULL) {
        PyErr_SetObject(failed_error, said);
        Py_DECREF(said);
    }
    return NULL;
}

static int is_callable(const loaded_module *self) {
    if (!self->is_open) {
        PyErr_SetString(PyExc_ValueError, "the module is not open");
    }
    return self->is_open;
}

static PyObject *loaded_open(PyObject *object, PyObject *arguments) {
    loaded_module *self = (loaded_module *)object;
    const char *options;
    if (!PyArg_ParseTuple(arguments, "s", &options)) {
        return NULL;
    }
    if (self->functions == NULL || self->is_open) {
        PyErr_SetString(PyExc_ValueError, "the module is open, or was never loaded");
        return NULL;
    }
    int result;
    self->error[0] = 0;
    Py_BEGIN_ALLOW_THREADS result = self->functions->open(options, &self->host, &self->state);
    Py_END_ALLOW_THREADS self->is_open = result == 0;
    return outcome(self, result);
}

static PyObject *loaded_describe(PyObject *object, PyObject *arguments) {
    loaded_module *self = (loaded_module *)object;
    if (!is_callable(self)) {
        return NULL;
    }
    helio_arena_free(&self->schema_memory);
    self->schema = helio_module_schema_from(&self->schema_memory, arguments);
    if (self->schema == NULL) {
        return NULL;
    }
    int result = 0;
    self->error[0] = 0;
    if (self->functions->describe != NULL) {
        Py_BEGIN_ALLOW_THREADS result = self->functions->describe(self->state, self->schema);
        Py_END_ALLOW_THREADS
    }
    return outcome(self, result);
}

/* Calls a function with a structure made in `arena`, which ends with the call.  A macro, for the
 * functions differ in the type of what they are given. */
#define GIVE(self, arena, function, given)                                                      \
    do {                                                                                        \
        int result_ = 0;                                                                        \
        if ((given) != NULL && (self)->functions->function != NULL) {                           \
            (self)->error[0] = 0;                                                               \
            Py_BEGIN_ALLOW_THREADS result_ = (self)->functions->function((self)->state, given); \
            Py_END_ALLOW_THREADS                                                                \
        }                                                                                       \
        helio_arena_free(arena);                                                                \
        return (given) != NULL ? outcome(self, result_) : NULL;                                 \
    } while (0)

static PyObject *loaded_snapshot(PyObject *object, PyObject *arguments) {
    loaded_module *self = (loaded_module *)object;
    if (!is_callable(self)) {
        return NULL;
    }
    if (self->schema == NULL) {
        PyErr_SetString(PyExc_ValueError, "the module was not given the schema");
        return NULL;
    }
    helio_arena arena = {0};
    const helio_module_snapshot *given =
        helio_module_snapshot_from(&arena, self->schema, arguments);
    GIVE(self, &arena, snapshot, given);
}

static PyObject *loaded_event(PyObject *object, PyObject *arguments) {
    loaded_module *self = (loaded_module *)object;
    if (!is_callable(self)) {
        return NULL;
    }
    helio_arena arena = {0};
    const helio_module_event *given = helio_module_event_from(&arena, arguments);
    GIVE(self, &arena, event, given);
}

static PyObject *loaded_topic_created(PyObject *object, PyObject *arguments) {
    loaded_module *self = (loaded_module *)object;
    if (!is_callable(self)) {
        return NULL;
    }
    helio_arena arena = {0};
    const helio_module_topic *given = helio_module_topic_from(&arena, arguments);
    GIVE(self, &arena, topic_created, given);
}

static PyObject *loaded_topic_destroyed(PyObject *object, PyObject *arguments) {
    loaded_module *self = (loaded_module *)object;
    if (!is_callable(self)) {
        return NULL;
    }
    helio_arena arena = {0};
    const helio_module_topic *given = helio_module_topic_from(&arena, arguments);
    GIVE(self, &arena, topic_destroyed, given);
}

static PyObject *loaded_close(PyObject *object, PyObject *Py_UNUSED(arguments)) {
    loaded_module *self = (loaded_module *)object;
    if (self->is_open && self->functions->close != NULL) {
        Py_BEGIN_ALLOW_THREADS self->functions->close(self->state);
        Py_END_ALLOW_THREADS
    }
    self->is_open = 0;
    Py_RETURN_NONE;
}

static PyObject *loaded_name(PyObject *object, void *Py_UNUSED(closure)) {
    const helio_module *functions = ((loaded_module *)object)->functions;
    return PyUnicode_FromString(functions != NULL ? functions->name : "");
}

static PyObject *loaded_version(PyObject *object, void *Py_UNUSED(closure)) {
    const helio_module *functions = ((loaded_module *)object)->functions;
    return PyUnicode_FromString(functions != NULL ? functions->version : "");
}

static PyMethodDef loaded_methods[] = {
    {"open", loaded_open, METH_VARARGS, "Open it with its options."},
    {"describe", loaded_describe, METH_VARARGS, "Give it the schema."},
    {"snapshot", loaded_snapshot, METH_VARARGS, "Give it a snapshot."},
    {"event", loaded_event, METH_VARARGS, "Give it an event."},
    {"topic_created", loaded_topic_created, METH_VARARGS, "Tell it of a topic that came."},
    {"topic_destroyed", loaded_topic_destroyed, METH_VARARGS, "Tell it of a topic that went."},
    {"close", loaded_close, METH_NOARGS, "Close it. Harmless when it is."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef loaded_fields[] = {
    {"name", loaded_name, NULL, "What it calls itself.", NULL},
    {"version", loaded_version, NULL, "Its version.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject loaded_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "heliograph.monitor._module_host.Loaded",
    .tp_basicsize = sizeof(loaded_module),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A module in C that is loaded into this process.",
    .tp_new = PyType_GenericNew,
    .tp_init = loaded_init,
    .tp_dealloc = loaded_dealloc,
    .tp_methods = loaded_methods,
    .tp_getset = loaded_fields,
};

/* ---- the module of Python ---- */

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "heliograph.monitor._module_host",
    .m_doc = "Loads monitoring modules in C.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__module_host(void) {
    PyObject *module = PyType_Ready(&loaded_type) == 0 ? PyModule_Create(&definition) : NULL;
    if (module == NULL) {
        return NULL;
    }
    refused_error = PyErr_NewException("heliograph.monitor._module_host.Refused", NULL, NULL);
    failed_error = PyErr_NewException("heliograph.monitor._module_host.Failed", NULL, NULL);
    if (refused_error == NULL || failed_error == NULL ||
        PyModule_AddObjectRef(module, "Refused", refused_error) != 0 ||
        PyModule_AddObjectRef(module, "Failed", failed_error) != 0 ||
        PyModule_AddIntConstant(module, "ABI", HELIO_MODULE_ABI) != 0 ||
        PyModule_AddObjectRef(module, "Loaded", (PyObject *)&loaded_type) != 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
