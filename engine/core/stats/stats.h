/* Statistics as the engine counts them: objects (records of cells, histograms) and events in one
 * block of memory, which is the mapped stats segment (docs/segment.md) or, with stats=memory,
 * private memory of the same layout.
 *
 * One thread writes: the engine's.  A counter is a relaxed load and store, never an atomic
 * addition; no call on the hot path locks, allocates or enters the kernel.  Readers are never
 * waited for.
 *
 * Cells that belong together (a counter and the gauge it is compared with) are changed between
 * helio_stats_begin and helio_stats_end of their record; a lone counter needs neither. */
#ifndef HELIO_STATS_STATS_H
#define HELIO_STATS_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/moment.h"
#include "generated/events.h"
#include "generated/statistics.h"
#include "stats/hdr.h"
#include "stats/sampler.h"

enum {
    HELIO_STATS_HISTOGRAMS_MAX = 16, /* of one object */
    HELIO_STATS_NAME_BYTES = 48,     /* instance name in the segment, its NUL included */
};
/* Value of a cell that does not apply to its object (docs/segment.md 3). */
#define HELIO_STATS_ABSENT (UINT64_C(1) << 63)
/* An event about the instance; an object in private memory. */
#define HELIO_STATS_NO_SLOT UINT32_MAX

typedef struct helio_stats helio_stats;

/* One object.  `record` is the generated struct of its scope (helio_receiver_stats, ...) and never
 * NULL once opened; histogram[HELIO_RECEIVER_TOTAL_LATENCY] and so on are NULL while their level of
 * detail is off, which may change while the object lives.  Once opened it is moved with
 * helio_stats_move_object only. */
typedef struct helio_stats_object {
    void *record;
    helio_hdr *histogram[HELIO_STATS_HISTOGRAMS_MAX];
    uint32_t slot;
    helio_scope scope;
    int8_t level;       /* of detail it has now; helio_stats_object_level */
    int8_t rule;        /* that says so (stats/levels.h) */
    bool is_plain;      /* it has no histograms, whatever its level */
    uint32_t without;   /* bits of the histograms it never has; set while it is plain */
    const char *labels; /* those it was opened with */
    helio_hdr *kept[HELIO_STATS_HISTOGRAMS_MAX]; /* what it has, counting or not */
    struct helio_stats_object *previous, *next;  /* of all that are open */
} helio_stats_object;

typedef struct helio_stats_config {
    const char *name;     /* of the instance */
    const char *folder;   /* of the segments; NULL: private memory */
    size_t bytes;         /* of the segment */
    int level;            /* of detail, 0 to 3 */
    int mode;             /* HELIO_MODE_THREAD or HELIO_MODE_POLL */
    uint64_t incarnation; /* random */
    int64_t wall_ns;      /* now */
    uint32_t event_rate;  /* most events per second of one kind; 0: no limit */
    uint32_t event_burst; /* most at once */
    uint32_t sample;      /* latency is measured of one packet in `sample`; 0: of every one */
} helio_stats_config;

/* Creates the segment in state "running"; release it with helio_stats_destroy. Returns 0,
 * HELIO_ERR_SEGMENT or HELIO_ERR_NOMEM (helio_error_text has the path and what to do). */
int helio_stats_create(const helio_stats_config *config, helio_stats **out);

/* Stores state "closed", removes the file and frees everything.  Accepts NULL. */
void helio_stats_destroy(helio_stats *stats);

/* Path of the segment, "" for private memory. */
const char *helio_stats_path(const helio_stats *stats);

/* Decides which packets have their latency measured. */
helio_sampler *helio_stats_sampler(helio_stats *stats);

/* Level of detail of the instance: of every object that no rule of stats/levels.h is about. */
int helio_stats_level(const helio_stats *stats);

/* The highest that any object may have now: what nobody has on need not be measured. */
int helio_stats_highest_level(const helio_stats *stats);

/* Level of detail of one object. */
static inline int helio_stats_object_level(const helio_stats_object *object) {
    return object->level;
}

/* Sets the instance's until a moment (monotonic; HELIO_NEVER: for good), after which it is again
 * what it was at the start.  A higher level gives live objects the histograms they lack, one per
 * call of helio_stats_tend; a lower one stops histograms, whose counts stay readable and go on when
 * the level comes back.  Returns 0, OPTION (no such level) or STATE (a build that counts nothing).
 * helio_levels_set does the same for chosen objects. */
int helio_stats_set_level(helio_stats *stats, int level, int64_t until_ns, helio_moment moment);

/* Does due work: opens a histogram, ends a level, reports suppressed events.  To be called now and
 * then.  Returns whether it wants to be called again soon. */
bool helio_stats_tend(helio_stats *stats, helio_moment moment);

/* Tells of all events held back: the end is near. */
void helio_stats_tell_held(helio_stats *stats, int64_t wall_ns);

/* Where commands come in (stats/control_ring.h); NULL: private memory, so nowhere. */
struct helio_control_ring *helio_stats_control(helio_stats *stats);

/* Says that the engine lives.  To be called at least every 100 ms. */
void helio_stats_heartbeat(helio_stats *stats, int64_t wall_ns);

enum { HELIO_STATS_LABELS_BYTES = 464 }; /* most that an object's labels take, its end included */

/* Opens an object.  `labels` are lines "key=value\n": the scope's labels first, then its info
 * (helio_stats_label writes them).  When the segment is full the object is kept in private memory
 * and objects_refused counts it. Returns 0 or HELIO_ERR_NOMEM. */
int helio_stats_open_object(helio_stats *stats, helio_scope scope, const char *labels,
                            int64_t wall_ns, helio_stats_object *out);

/* The same without histograms, whatever the level, until helio_stats_open_histograms gives it those
 * that the level wants. */
int helio_stats_open_plain_object(helio_stats *stats, helio_scope scope, const char *labels,
                                  int64_t wall_ns, helio_stats_object *out);
void helio_stats_open_histograms(helio_stats *stats, helio_stats_object *object);

/* Marks the object gone; its last values stay readable until the slot is used again.  The record
 * must not be touched afterwards.  Accepts an object that was never opened (all zero). */
void helio_stats_close_object(helio_stats *stats, helio_stats_object *object, int64_t wall_ns);
/* The same for an object whose last values are of no interest: it is there no more, and its slot is
 * the next to be used. */
void helio_stats_drop_object(helio_stats *stats, helio_stats_object *object);

/* Says that the object has these features (HELIO_HAS_*): the cells that apply with them begin at
 * 0.  A cell that applies with none it has is absent.  For a gauge it is enough to be set. */
void helio_stats_apply(helio_stats_object *object, unsigned features);

/* Has the open object at `from` live at `to` from now on; `from` is as if never opened. */
void helio_stats_move_object(helio_stats *stats, helio_stats_object *from, helio_stats_object *to);

/* Writes an event, or counts it as suppressed when there were too many of its kind recently
 * (stats/event_limit.h).  `slot` is that of the object it is about or HELIO_STATS_NO_SLOT; `args`
 * may be NULL. */
void helio_stats_event(helio_stats *stats, int64_t wall_ns, helio_event_id event, uint32_t slot,
                       const uint64_t args[4], const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Appends "key=value\n" to the text of `size` bytes, with line feeds and NULs in the value made
 * blanks and cut at a character's boundary when it is too long; the text stays NUL-terminated.
 * Returns false when it was cut. */
bool helio_stats_label(char *text, size_t size, const char *key, const char *value);

/* ---- counting: relaxed, one writer ----
 *
 * Compiled with HELIO_NO_STATS nothing is counted: what counting costs is measured against such a
 * build.  The segment, its objects and events are then still there, its records are zero and no
 * level of detail is on.  So nothing may decide by a cell; what the protocol needs it keeps
 * itself. */

#ifdef HELIO_NO_STATS
enum { HELIO_STATS_COUNTING = 0 };
#else
enum { HELIO_STATS_COUNTING = 1 };
#endif

/* A load and a store, each of them relaxed, in one instruction: GCC makes three of them.  Sanitizers do
 * not see what assembly touches. */
static inline void helio_add_relaxed(_Atomic uint64_t *cell, uint64_t by) {
#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ && \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    __asm__("addq %1, %0" : "+m"(*cell) : "er"(by) : "cc");
#else
    atomic_store_explicit(cell, atomic_load_explicit(cell, memory_order_relaxed) + by,
                          memory_order_relaxed);
#endif
}

static inline void helio_count(_Atomic uint64_t *cell, uint64_t by) {
    if (HELIO_STATS_COUNTING) {
        helio_add_relaxed(cell, by);
    }
}

/* Takes back what was counted, for gauges of what there is now. */
static inline void helio_uncount(_Atomic uint64_t *cell, uint64_t by) {
    helio_count(cell, 0 - by);
}

static inline void helio_set(_Atomic uint64_t *cell, uint64_t value) {
    if (HELIO_STATS_COUNTING) {
        atomic_store_explicit(cell, value, memory_order_relaxed);
    }
}

static inline void helio_peak(_Atomic uint64_t *cell, uint64_t value) {
    if (HELIO_STATS_COUNTING && value > atomic_load_explicit(cell, memory_order_relaxed)) {
        helio_set(cell, value);
    }
}

static inline uint64_t helio_cell(const _Atomic uint64_t *cell) {
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/* Counts into a histogram that may be off. */
static inline void helio_record(helio_hdr *histogram, int64_t value_ns, uint64_t count) {
    if (HELIO_STATS_COUNTING && histogram) {
        helio_hdr_record(histogram, value_ns, count);
    }
}

/* The record's guard, its first cell, is odd between these two (docs/segment.md 3). */
static inline void helio_stats_begin(void *record) {
    if (HELIO_STATS_COUNTING) {
        _Atomic uint64_t *guard = record;
        helio_add_relaxed(guard, 1);
        atomic_thread_fence(memory_order_release);
    }
}

static inline void helio_stats_end(void *record) {
    if (HELIO_STATS_COUNTING) {
        _Atomic uint64_t *guard = record;
        atomic_thread_fence(memory_order_release);
        helio_add_relaxed(guard, 1);
    }
}

#endif
