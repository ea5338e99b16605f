/* How another thread of the process reads what the engine's thread counts: straight from the
 * segment's memory, as a reader in another process would (docs/segment.md 3 and 5).
 *
 * Nothing here is waited for, and nothing is written that the engine reads.  What is copied while
 * it changes is found out afterwards, by generation, guard or number, and then is no result. */
#ifndef HELIO_STATS_READING_H
#define HELIO_STATS_READING_H

#include "stats/segment.h"

/* A slot of the table of objects, as it was at one moment. */
typedef struct helio_stats_entry {
    helio_object_state state;
    helio_scope scope;
    uint64_t generation;
    uint64_t created_ns;
    size_t record; /* offset */
    size_t words;  /* of the record, the guard included */
} helio_stats_entry;

/* Slots from here on were never used. */
uint32_t helio_stats_slots(const helio_stats *stats);
uint32_t helio_stats_slots_max(const helio_stats *stats);

/* Returns false when the slot is empty or being given to another object. */
bool helio_stats_read_entry(const helio_stats *stats, uint32_t slot, helio_stats_entry *out);
/* The labels that belong to the entry, NUL-terminated; false when it is another's by now. */
bool helio_stats_read_labels(const helio_stats *stats, uint32_t slot,
                             const helio_stats_entry *entry, char out[HELIO_STATS_LABELS_BYTES]);

/* Words of the largest record there is. */
size_t helio_stats_words_max(const helio_stats *stats);
/* Copies the record; the cell of a histogram is given as the sum of its values in ns, 0 while there
 * is none.  Returns false when the cells may not belong together: the engine was stopped within an
 * update. */
bool helio_stats_read_record(const helio_stats *stats, const helio_stats_entry *entry,
                             uint64_t *words);

/* Number the next event will have. */
uint64_t helio_stats_events_written(const helio_stats *stats);
/* Returns false when that event was overwritten, or is not whole. */
bool helio_stats_read_event(const helio_stats *stats, uint64_t number, helio_segment_event *out);

/* The identity of the segment: its header's first 256 bytes, of which name, pid and similar never
 * change. */
const helio_segment_header *helio_stats_header(const helio_stats *stats);
/* The directory's text and its bytes. */
const char *helio_stats_directory(const helio_stats *stats, size_t *bytes);

#endif
