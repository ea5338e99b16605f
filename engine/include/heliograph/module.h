/* heliograph/module.h: interface of monitoring modules in C.  It needs no library of Heliograph.
 *
 * A module is a shared object that exports one function, `helio_module_entry`.  `heliograph monitor
 * --module ./mine.so=OPTIONS` loads it into a process of its own.  The monitor passes it the schema
 * once (names, units and kinds of the statistics), then snapshots, and after each snapshot the events
 * since the last one and the topics created and ended, in the order in which they happened.  A slow
 * module misses snapshots; one that crashes or hangs is ended and restarted.  A module never delays the
 * monitor, other modules or the fleet.
 *
 * Rules:
 *   - One thread calls the functions of a module, one at a time: `open` first, `describe` second,
 *     `close` last (not if the process was killed).
 *   - All arguments are valid during the call only; copy data that is kept.
 *   - Functions return 0, or another value after host->error has given the reason.  A failed `open`
 *     ends the module; other failures are counted, and the next call follows.
 *   - Any function except `open` may be NULL.
 *   - Texts are UTF-8, have a length, and end with a NUL that the length does not count.
 *   - Structures are passed by pointer, begin with their size, and grow only at their end: a module
 *     compiled against this header works with later hosts of the same HELIO_MODULE_ABI.  Fields beyond
 *     `size` do not exist in an older host; HELIO_MODULE_HAS checks this.
 *   - Times are nanoseconds since 1970 by the wall clock, sizes are bytes.
 *
 * docs/modules.md shows a whole module in 50 lines. */
#ifndef HELIOGRAPH_MODULE_H
#define HELIOGRAPH_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface.  It changes when compiled modules would no longer work. */
#define HELIO_MODULE_ABI 1

/* True if the structure at `pointer` has `field`; false if it comes from an older host. */
#define HELIO_MODULE_HAS(pointer, field)                                                   \
    ((const char *)&(pointer)->field - (const char *)(pointer) + sizeof(pointer)->field <= \
     (pointer)->size)

typedef struct helio_module_text {
    /* Never NULL; ends with a NUL. */
    const char *text;
    /* Bytes, without the NUL. */
    size_t length;
} helio_module_text;

typedef struct helio_module_pair {
    helio_module_text key, value;
} helio_module_pair;

/* ---- schema ---- */

typedef enum helio_module_kind {
    /* Never falls while its object lives. */
    HELIO_MODULE_COUNTER = 0,
    HELIO_MODULE_GAUGE = 1,
    /* Highest value so far. */
    HELIO_MODULE_PEAK = 2,
    /* Passed as helio_module_histogram, not as a value. */
    HELIO_MODULE_HISTOGRAM = 3,
    /* A gauge that may be below 0: its value is an int64_t. */
    HELIO_MODULE_SIGNED = 4
} helio_module_kind;

/* Description of one 64-bit value of an object. */
typedef struct helio_module_cell {
    size_t size;
    /* Unique in its scope: "packets_lost_window_advanced". */
    helio_module_text name;
    /* "packets_lost" */
    helio_module_text statistic;
    /* "packets", "bytes", "nanoseconds", ... or "". */
    helio_module_text unit;
    /* "cause" if the statistic is split into several cells, else "". */
    helio_module_text split_label;
    /* "window_advanced", or "". */
    helio_module_text split_value;
    helio_module_text help;
    /* helio_module_kind; later versions may add kinds. */
    uint32_t kind;
    /* Level of detail from which it is counted, 0 to 3. */
    uint32_t level;
} helio_module_cell;

/* A kind of object: "instance", "transmitter", "receiver", ... */
typedef struct helio_module_scope {
    size_t size;
    /* Never changes; objects refer to their scope by index, not by id. */
    uint32_t id;
    uint32_t reserved;
    helio_module_text name;
    helio_module_text help;
    /* Names of the labels of every object of the scope. */
    size_t label_count;
    const helio_module_text *labels;
    size_t cell_count;
    const helio_module_cell *const *cells;
} helio_module_scope;

/* A kind of event. */
typedef struct helio_module_event_kind {
    size_t size;
    /* Never changes. */
    uint32_t id;
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

/* ---- snapshots ---- */

/* Counts of an HdrHistogram since its object was created; counts of 0 are left out. */
typedef struct helio_module_histogram {
    size_t size;
    /* Index in the scope's cells. */
    uint32_t cell;
    uint32_t digits;
    /* Parameters of the histogram. */
    uint64_t lowest, highest;
    /* Values above `highest`, not in the counts. */
    uint64_t above;
    /* Values below 0, not in the counts. */
    uint64_t negative;
    /* Sum of the values. */
    uint64_t total_ns;
    /* Number of counts. */
    size_t count;
    /* Positions of the counts in the histogram, ascending. */
    const uint32_t *index;
    const uint64_t *counts;
} helio_module_histogram;

enum {
    /* The object exists; without this flag it has ended, and the values are its last. */
    HELIO_MODULE_LIVE = 1,
    /* The writer stopped within an update: the values may be inconsistent. */
    HELIO_MODULE_TORN = 2
};

typedef struct helio_module_object {
    size_t size;
    /* Index in the schema's scopes. */
    uint32_t scope;
    /* HELIO_MODULE_LIVE, HELIO_MODULE_TORN */
    uint32_t flags;
    uint64_t created_ns;
    /* Labels in the order of the scope's labels. */
    size_t label_count;
    const helio_module_text *labels;
    /* Further description. */
    size_t info_count;
    const helio_module_pair *info;
    /* Values in the order of the scope's cells. */
    size_t value_count;
    const uint64_t *values;
    /* In the same order: 0 if the object has no such value (it does not apply, is not counted, or is a
     * histogram). */
    const uint8_t *valid;
    size_t histogram_count;
    const helio_module_histogram *const *histograms;
} helio_module_object;

typedef struct helio_module_instance {
    size_t size;
    helio_module_text name;
    /* "live", "stale", "closed", "dead" or "damaged". */
    helio_module_text health;
    /* Reason of the health, for people. */
    helio_module_text reason;
    uint64_t pid;
    /* Changes when the instance is restarted. */
    uint64_t incarnation;
    uint64_t started_ns;
    uint64_t heartbeat_ns;
    size_t object_count;
    const helio_module_object *const *objects;
} helio_module_instance;

typedef struct helio_module_snapshot {
    size_t size;
    uint64_t time_ns;
    /* Number of the snapshot, from 1: this module missed those in a gap. */
    uint64_t number;
    /* Snapshots this module missed since the last one. */
    uint64_t dropped;
    /* Events overwritten before the monitor read them, since the last snapshot. */
    uint64_t events_missed;
    size_t instance_count;
    const helio_module_instance *const *instances;
} helio_module_snapshot;

/* ---- events and topics ---- */

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
    /* Incarnation of the instance. */
    uint64_t incarnation;
    /* Unique in the incarnation, ascending. */
    uint64_t number;
    helio_module_text instance;
    /* One of the schema's event kinds, or one of a newer engine. */
    helio_module_text name;
    uint32_t severity;
    uint32_t reserved;
    /* Labels of the object concerned. */
    size_t label_count;
    const helio_module_pair *labels;
    size_t argument_count;
    const helio_module_argument *arguments;
    /* For people. */
    helio_module_text text;
} helio_module_event;

typedef enum helio_module_direction {
    HELIO_MODULE_TRANSMIT = 0,
    HELIO_MODULE_RECEIVE = 1
} helio_module_direction;

/* A topic of one stream at one instance: created when it is opened for sending, or discovered by a receiver that
 * wants it. */
typedef struct helio_module_topic {
    size_t size;
    /* Time of its creation, or of its end. */
    uint64_t time_ns;
    uint64_t incarnation;
    helio_module_text instance;
    helio_module_text topic;
    helio_module_text stream;
    helio_module_text endpoint;
    /* helio_module_direction */
    uint32_t direction;
    uint32_t reserved;
} helio_module_topic;

/* ---- module and host ---- */

/* Functions of the host; valid from `open` until `close` has returned. */
typedef struct helio_module_host {
    size_t size;
    /* HELIO_MODULE_ABI of the host. */
    uint32_t abi;
    uint32_t reserved;
    /* First argument of the functions below. */
    void *context;
    /* Writes a sentence to the monitor's log. */
    void (*log)(void *context, uint32_t severity, const char *text);
    /* Gives the reason for which the running function fails; the function then returns a value other than 0. */
    void (*error)(void *context, const char *text);
    /* Reports `count` items that the module has discarded, for example because of a full disk. */
    void (*lost)(void *context, uint64_t count);
} helio_module_host;

typedef struct helio_module {
    /* sizeof (helio_module) */
    size_t size;
    /* HELIO_MODULE_ABI */
    uint32_t abi;
    uint32_t reserved;
    const char *name;
    const char *version;
    /* `options` is the text after the '='.  The value stored in *state is passed to the other functions. */
    int (*open)(const char *options, const helio_module_host *host, void **state);
    int (*describe)(void *state, const helio_module_schema *schema);
    int (*snapshot)(void *state, const helio_module_snapshot *snapshot);
    int (*event)(void *state, const helio_module_event *event);
    int (*topic_created)(void *state, const helio_module_topic *topic);
    int (*topic_destroyed)(void *state, const helio_module_topic *topic);
    void (*close)(void *state);
} helio_module;

/* The one symbol a module exports.  `abi` is the host's HELIO_MODULE_ABI.  Returns NULL if the module does not
 * support it. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const helio_module *
helio_module_entry(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif
