/* heliograph/module.h: what a monitoring module in C is.  It needs no library of Heliograph.
 *
 * A module is a shared object that exports one function, `helio_module_entry`.  `heliograph monitor
 * --module ./mine.so=OPTIONS` loads it into a process of its own and gives it what it knows of the
 * fleet: once the schema (what is counted, by name, unit and kind), then again and again a snapshot,
 * and after each the events since the one before and the topics that came and went, in the order in
 * which they happened.  A module that is slow misses snapshots, one that crashes or hangs is ended and
 * started again; it never holds up the monitor, other modules, or the fleet.
 *
 * Rules:
 *   - The functions of a module are called from one thread, never two at a time; `open` first,
 *     `describe` second, `close` last (not when the process was killed).
 *   - All that is passed is valid during the call only: copy what you keep.
 *   - Functions return 0, or anything else after host->error has said why.  A failed `open` ends the
 *     module; any other failure is counted and the next call comes nevertheless.
 *   - Any function but `open` may be NULL.
 *   - Texts are UTF-8, have a length, and end with a NUL that the length does not count.
 *   - Structures begin with their size and only ever grow at their end, and come by pointer: a module
 *     compiled against this header works with later hosts of the same HELIO_MODULE_ABI.  What an older
 *     host does not know yet is beyond its `size`: HELIO_MODULE_HAS tells.
 *   - Times are nanoseconds since 1970 by the wall clock, sizes bytes.
 *
 * docs/modules.md shows a whole module in 50 lines. */
#ifndef HELIOGRAPH_MODULE_H
#define HELIOGRAPH_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface.  It changes when a module compiled before would no longer work. */
#define HELIO_MODULE_ABI 1

/* Whether the structure at `pointer` has `field`; false when it comes from an older host. */
#define HELIO_MODULE_HAS(pointer, field)                                                   \
    ((const char *)&(pointer)->field - (const char *)(pointer) + sizeof(pointer)->field <= \
     (pointer)->size)

typedef struct helio_module_text {
    const char *text; /* never NULL; ends with a NUL */
    size_t length;    /* without the NUL */
} helio_module_text;

typedef struct helio_module_pair {
    helio_module_text key, value;
} helio_module_pair;

/* ---- the schema ---- */

typedef enum helio_module_kind {
    HELIO_MODULE_COUNTER = 0, /* only grows while its object lives */
    HELIO_MODULE_GAUGE = 1,
    HELIO_MODULE_PEAK = 2,      /* greatest value so far */
    HELIO_MODULE_HISTOGRAM = 3, /* comes as helio_module_histogram, not as a value */
    HELIO_MODULE_SIGNED = 4     /* a gauge that may be below 0: its value is an int64_t */
} helio_module_kind;

/* One 64-bit value of an object. */
typedef struct helio_module_cell {
    size_t size;
    helio_module_text name;        /* unique in its scope: "packets_lost_window_advanced" */
    helio_module_text statistic;   /* "packets_lost" */
    helio_module_text unit;        /* "packets", "bytes", "nanoseconds", ... or "" */
    helio_module_text split_label; /* "cause" when the statistic is split in several cells, or "" */
    helio_module_text split_value; /* "window_advanced", or "" */
    helio_module_text help;
    uint32_t kind;  /* helio_module_kind; others may come */
    uint32_t level; /* of detail from which on it is counted, 0 to 3 */
} helio_module_cell;

/* A kind of object: "instance", "transmitter", "receiver", ... */
typedef struct helio_module_scope {
    size_t size;
    uint32_t id; /* stable for ever; objects name their scope by index, not by id */
    uint32_t reserved;
    helio_module_text name;
    helio_module_text help;
    size_t label_count; /* names of the labels every object of the scope has */
    const helio_module_text *labels;
    size_t cell_count;
    const helio_module_cell *const *cells;
} helio_module_scope;

/* A kind of event. */
typedef struct helio_module_event_kind {
    size_t size;
    uint32_t id; /* stable for ever */
    uint32_t severity;
    helio_module_text name;
    helio_module_text help;
} helio_module_event_kind;

typedef struct helio_module_schema {
    size_t size;
    helio_module_text product_version;
    size_t scope_count;
    const helio_module_scope *const *scopes;
    size_t event_kind_count;
    const helio_module_event_kind *const *event_kinds;
} helio_module_schema;

/* ---- a snapshot ---- */

/* Counts of an HdrHistogram since its object was created; only cells that are not 0. */
typedef struct helio_module_histogram {
    size_t size;
    uint32_t cell; /* index in the scope's cells: which statistic it is */
    uint32_t digits;
    uint64_t lowest, highest; /* parameters of the histogram */
    uint64_t above;           /* values above `highest`, not among the counts */
    uint64_t negative;        /* values below 0, not among the counts */
    uint64_t total_ns;        /* sum of the values */
    size_t count;             /* cells that are not 0 */
    const uint32_t *index;    /* their places, ascending */
    const uint64_t *counts;
} helio_module_histogram;

enum {
    HELIO_MODULE_LIVE = 1, /* else the object has ended; these are its last values */
    HELIO_MODULE_TORN = 2  /* its writer stopped within an update: values may not belong together */
};

typedef struct helio_module_object {
    size_t size;
    uint32_t scope; /* index in the schema's scopes */
    uint32_t flags; /* HELIO_MODULE_LIVE, HELIO_MODULE_TORN */
    uint64_t created_ns;
    size_t label_count;
    const helio_module_text *labels; /* by index in the scope's labels */
    size_t info_count;               /* what else describes it */
    const helio_module_pair *info;
    size_t value_count;
    const uint64_t *values; /* by index in the scope's cells */
    const uint8_t *valid;   /* likewise: 0 where the object has no such value (it does not apply, is
                             * not counted, or is a histogram) */
    size_t histogram_count;
    const helio_module_histogram *const *histograms;
} helio_module_object;

typedef struct helio_module_instance {
    size_t size;
    helio_module_text name;
    helio_module_text health; /* "live", "stale", "closed", "dead" or "damaged" */
    helio_module_text reason; /* for people */
    uint64_t pid;
    uint64_t incarnation; /* another one: another run */
    uint64_t started_ns;
    uint64_t heartbeat_ns;
    size_t object_count;
    const helio_module_object *const *objects;
} helio_module_instance;

typedef struct helio_module_snapshot {
    size_t size;
    uint64_t time_ns;
    uint64_t number;        /* of the snapshots taken, from 1: a gap is what this module missed */
    uint64_t dropped;       /* snapshots this module missed since the one before */
    uint64_t events_missed; /* events nobody could read, since the snapshot before */
    size_t instance_count;
    const helio_module_instance *const *instances;
} helio_module_snapshot;

/* ---- what happens ---- */

typedef enum helio_module_severity {
    HELIO_MODULE_INFO = 0,
    HELIO_MODULE_WARNING = 1,
    HELIO_MODULE_ERROR = 2
} helio_module_severity;

typedef struct helio_module_argument {
    helio_module_text name;
    uint64_t value;
} helio_module_argument;

typedef struct helio_module_event {
    size_t size;
    uint64_t time_ns;
    uint64_t incarnation; /* of the instance */
    uint64_t number;      /* unique in the incarnation, rising */
    helio_module_text instance;
    helio_module_text name; /* one of the schema's event kinds, or of a newer engine */
    uint32_t severity;
    uint32_t reserved;
    size_t label_count; /* labels of the object it is about */
    const helio_module_pair *labels;
    size_t argument_count;
    const helio_module_argument *arguments;
    helio_module_text text; /* for people */
} helio_module_event;

typedef enum helio_module_direction {
    HELIO_MODULE_TRANSMIT = 0,
    HELIO_MODULE_RECEIVE = 1
} helio_module_direction;

/* A topic of one stream at one instance: created when it is opened for sending, or first heard of by
 * a receiver that wants it. */
typedef struct helio_module_topic {
    size_t size;
    uint64_t time_ns; /* when it was created, or destroyed */
    uint64_t incarnation;
    helio_module_text instance;
    helio_module_text topic;
    helio_module_text stream;
    helio_module_text endpoint;
    uint32_t direction; /* helio_module_direction */
    uint32_t reserved;
} helio_module_topic;

/* ---- the module ---- */

/* What the host does for a module; valid from `open` until `close` has returned. */
typedef struct helio_module_host {
    size_t size;
    uint32_t abi; /* of the host */
    uint32_t reserved;
    void *context; /* for the functions below */
    /* A sentence for the people who run the monitor. */
    void (*log)(void *context, uint32_t severity, const char *text);
    /* Why the function that is running fails; it then returns something else than 0. */
    void (*error)(void *context, const char *text);
    /* Data this module gave up by itself, for a full disk or a slow peer say: `count` more of them. */
    void (*lost)(void *context, uint64_t count);
} helio_module_host;

typedef struct helio_module {
    size_t size;  /* sizeof (helio_module) */
    uint32_t abi; /* HELIO_MODULE_ABI */
    uint32_t reserved;
    const char *name;
    const char *version;
    /* `options`: what stands after the '='; what the module stores in *state is given to the others. */
    int (*open)(const char *options, const helio_module_host *host, void **state);
    int (*describe)(void *state, const helio_module_schema *schema);
    int (*snapshot)(void *state, const helio_module_snapshot *snapshot);
    int (*event)(void *state, const helio_module_event *event);
    int (*topic_created)(void *state, const helio_module_topic *topic);
    int (*topic_destroyed)(void *state, const helio_module_topic *topic);
    void (*close)(void *state);
} helio_module;

/* The one symbol a module exports.  `abi` is the host's HELIO_MODULE_ABI; NULL when the module cannot
 * work with it. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const helio_module *
helio_module_entry(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif
