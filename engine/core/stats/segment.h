/* The segment's layout (docs/segment.md) and what the files of this folder share: segment.c maps it
 * and keeps its header, directory.c writes the text that describes it, objects.c hands out slots
 * and records, histograms.c their histograms as the level of detail wants them, levels.c what that
 * level is, events.c writes the ring of events, incidents.c what of it must not be forgotten, and
 * control_ring.c reads the ring of commands.
 *
 * Memory of a segment, in this order: header, directory, table of objects, ring of events, ring of
 * commands, arena.  The arena is given out piece by piece and never taken back; a record and the
 * histograms it ever had stay with their slot.  Each piece is reserved in the file before it is
 * touched, so a full file system is refused and never a SIGBUS. */
#ifndef HELIO_STATS_SEGMENT_H
#define HELIO_STATS_SEGMENT_H

#include "base/mapped.h"
#include "stats/control_ring.h"
#include "stats/event_limit.h"
#include "stats/levels.h"
#include "stats/stats.h"

enum {
    HELIO_SEGMENT_VERSION = 1,
    HELIO_SEGMENT_BYTE_ORDER = 0x01020304,
    HELIO_SEGMENT_TEXT_BYTES = 192,
    HELIO_LEVEL_RULES_END = 1 + HELIO_LEVEL_RULES_MAX, /* the first is the instance's */
};

typedef enum helio_segment_state {
    HELIO_SEGMENT_WRITING,
    HELIO_SEGMENT_RUNNING,
    HELIO_SEGMENT_CLOSED,
} helio_segment_state;

typedef enum helio_object_state {
    HELIO_OBJECT_EMPTY,
    HELIO_OBJECT_LIVE,
    HELIO_OBJECT_GONE,
} helio_object_state;

typedef struct helio_segment_header {
    char magic[8];
    uint32_t byte_order;
    uint32_t layout_version;
    uint64_t size;
    _Atomic uint64_t state;
    uint64_t pid;
    uint64_t incarnation;
    uint64_t started_ns;
    _Atomic uint64_t heartbeat_ns;
    uint64_t mode;
    uint64_t directory_offset;
    uint64_t directory_bytes;
    uint64_t objects_offset;
    uint32_t object_capacity;
    uint32_t object_entry_bytes;
    _Atomic uint64_t objects_used;
    uint64_t events_offset;
    uint32_t event_capacity;
    uint32_t event_entry_bytes;
    _Atomic uint64_t events_written;
    uint64_t directory_version;
    char name[HELIO_STATS_NAME_BYTES];
    char product_version[32];
    uint64_t commands_offset; /* 0: nobody can give commands */
    uint32_t command_capacity;
    uint32_t command_entry_bytes;
    uint8_t reserved[16];
} helio_segment_header;

typedef struct helio_segment_object {
    _Atomic uint32_t state;
    uint32_t scope;
    _Atomic uint64_t generation;
    uint64_t record_offset;
    uint64_t record_bytes;
    uint64_t created_ns;
    _Atomic uint64_t closed_ns;
    char labels[HELIO_STATS_LABELS_BYTES];
} helio_segment_object;

typedef struct helio_segment_event {
    _Atomic uint64_t number;
    uint64_t time_ns;
    uint32_t event;
    uint32_t severity;
    uint32_t slot;
    uint32_t reserved;
    uint64_t arguments[4];
    char text[HELIO_SEGMENT_TEXT_BYTES];
} helio_segment_event;

_Static_assert(sizeof(helio_segment_header) == 256, "docs/segment.md 1");
_Static_assert(sizeof(helio_segment_object) == 512, "docs/segment.md 3");
_Static_assert(sizeof(helio_segment_event) == 256, "docs/segment.md 5");
_Static_assert(offsetof(helio_hdr, counts) == 64, "docs/segment.md 4");

/* A scope as the catalogue has it. */
typedef struct helio_scope_shape {
    size_t record_bytes;
    size_t histograms;
    struct {
        size_t cell; /* offset in the record */
        int level;
    } histogram[HELIO_STATS_HISTOGRAMS_MAX];
} helio_scope_shape;

/* A level in force (levels.c). */
typedef struct helio_level_rule {
    char patterns[3][HELIO_LEVEL_PATTERN_BYTES]; /* topic, stream, receiver; "" any */
    int level;
    int64_t until_ns;          /* monotonic */
    uint64_t order;            /* higher is newer; 0: not in force, or the instance's */
    uint32_t objects;          /* whose level it decides */
    helio_stats_object object; /* what readers see of it */
} helio_level_rule;

/* The record of one kind of warning or error. */
typedef struct helio_incident {
    uint64_t count;
    int64_t first_ns, last_ns;  /* wall clock */
    helio_stats_object *object; /* NULL: none yet */
    bool has_news;
} helio_incident;

struct helio_stats {
    uint8_t *memory; /* header first */
    size_t size;
    size_t arena_used; /* offset of the first byte never given out */
    int file;          /* -1: private memory */
    char *path;
    helio_mapped *guard; /* of the mapping */
    bool is_cut_told;
    /* The file's own copies of these may be gone (base/mapped.h). */
    uint32_t object_capacity, objects_used;
    uint32_t event_capacity; /* a power of two */
    size_t directory_offset, directory_bytes;
    helio_segment_header *header;
    helio_segment_object *objects;
    helio_segment_event *events;
    helio_control_ring *control; /* NULL: private memory */
    helio_instance_stats
        *instance; /* counts events and refusals; NULL until its object is opened */
    struct {
        uint32_t first, last; /* slots that are gone, oldest first; HELIO_STATS_NO_SLOT: none */
    } gone[HELIO_SCOPES_END];
    uint32_t *next_gone; /* by slot */
    uint64_t *records;   /* by slot: where its record is */
    /* By slot: where its histograms are; 0: it never had this one. */
    uint64_t (*histograms)[HELIO_STATS_HISTOGRAMS_MAX];
    helio_scope_shape shapes[HELIO_SCOPES_END];
    helio_event_limit limit;
    uint64_t stamp_ns; /* the last one given (helio_segment_stamp) */
    helio_sampler sampler;
    helio_incident incidents[HELIO_EVENT_IDS_END]; /* by kind of event */
    bool has_incidents;                            /* some of them have news */
    struct helio_losses *losses;                   /* losses.c; NULL: there was none */

    /* The level of detail (levels.c). */
    char name[HELIO_STATS_NAME_BYTES]; /* of the instance */
    int level_at_start, highest_level;
    helio_level_rule rules[HELIO_LEVEL_RULES_END];
    int rules_in_force; /* without the instance's */
    uint64_t rules_ever;

    /* Histograms (histograms.c). */
    helio_stats_object *live;     /* all there are */
    helio_stats_object *unopened; /* of these, the next to be given those that are missing */
};

/* Fills in what the catalogue says of each scope. */
void helio_scope_shapes(helio_scope_shape shapes[HELIO_SCOPES_END]);

/* The directory as one text from malloc, its length without NUL in *length; NULL when there is no
 * memory. */
char *helio_directory_text(size_t *length);

/* Makes bytes [offset, offset + length) safe to write.  Returns false when the file system has no
 * room. */
bool helio_segment_reserve(helio_stats *stats, size_t offset, size_t length);

/* So many bytes of the arena, at a multiple of 64; 0: there is no room. */
size_t helio_segment_take(helio_stats *stats, size_t bytes);

/* ---- applies.c ---- */

/* Makes the cells absent that depend on a feature. */
void helio_applies_begin(helio_scope scope, void *record);

/* The moment of an event, or of an object that is opened or closed: the wall clock's, but later
 * than the one before, so that stamps tell the order of all three.  Only a clock that was set back
 * by more than a second is followed back. */
uint64_t helio_segment_stamp(helio_stats *stats, int64_t wall_ns);

/* ---- events.c ---- */

helio_severity helio_event_severity(helio_event_id event);
const char *helio_event_name(helio_event_id event);

/* Tells of events held back, where it is time to. */
void helio_events_tend(helio_stats *stats, int64_t wall_ns);

/* ---- levels.c ---- */

/* The instance has this level until another is set. */
void helio_levels_init(helio_stats *stats, int level, const char *name);
/* The rule that an object of the scope with these labels is under. */
int helio_levels_find(const helio_stats *stats, helio_scope scope, const char *labels);
/* An object is under its rule from now on, and no more. */
void helio_levels_admit(helio_stats *stats, helio_stats_object *object);
void helio_levels_dismiss(helio_stats *stats, const helio_stats_object *object);
/* Ends what is over. */
void helio_levels_tend(helio_stats *stats, helio_moment moment);
/* Frees what readers see of rules. */
void helio_levels_fini(helio_stats *stats);

/* ---- incidents.c ---- */

/* One more warning or error of a kind, told or held back. */
void helio_incidents_note(helio_stats *stats, helio_event_id event, int64_t wall_ns);
/* Writes down what was noted. */
void helio_incidents_tend(helio_stats *stats, int64_t wall_ns);
void helio_incidents_end(helio_stats *stats, int64_t wall_ns);

/* ---- histograms.c ---- */

/* Bytes of the histograms of an object that is opened at this level. */
size_t helio_histograms_bytes(const helio_stats *stats, helio_scope scope, int level);
/* The object is live and has its record: it gets the histograms of its level, and those of a higher
 * one when that comes.  `spare`: offset of fresh memory of helio_histograms_bytes for a slot that
 * is used for the first time, else 0. */
void helio_histograms_attach(helio_stats *stats, helio_stats_object *object, size_t spare);
/* The object's level has changed: histograms stop and go on at once; those that are missing come
 * one by one (helio_stats_tend), once stats->unopened leads to the object. */
void helio_histograms_follow(const helio_stats *stats, helio_stats_object *object);
/* The object's end. */
void helio_histograms_detach(helio_stats *stats, helio_stats_object *object);

#endif
