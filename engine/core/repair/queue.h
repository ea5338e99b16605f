/* Repairs that wait, served in turn: a line for each receiver that asks, one packet of each line
 * after the other.  However long the line of one that cries for everything, the others wait for no
 * more than one of its packets between two of theirs.
 *
 * Each entry is a number of the caller's.  All memory is taken by init; the number of entries is
 * bounded.  It knows neither packets nor receivers. */
#ifndef HELIO_REPAIR_QUEUE_H
#define HELIO_REPAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELIO_QUEUE_NONE UINT32_MAX

typedef struct helio_queue_entry {
    uint64_t value;
    uint32_t next; /* in its line, or the next free one */
    uint32_t previous;
} helio_queue_entry;

typedef struct helio_queue_line {
    uint32_t first; /* entries; meaningful when count > 0 */
    uint32_t last;
    uint32_t count;
    uint32_t next; /* line whose turn comes after this one's */
    uint32_t previous;
} helio_queue_line;

typedef struct helio_queue {
    helio_queue_entry *entries; /* those never used cost no memory */
    helio_queue_line *lines;
    uint32_t capacity;
    uint32_t fresh; /* entries never used begin here */
    uint32_t free;  /* first of those used before */
    uint32_t turn;  /* line that is served next; NONE: all are empty */
    uint32_t count;
} helio_queue;

/* 0 or NOMEM; free with helio_queue_fini. */
int helio_queue_init(helio_queue *queue, uint32_t capacity, uint32_t lines);
void helio_queue_fini(helio_queue *queue);

/* Puts a value at the end of a line.  Returns its entry; NONE: the queue is full. */
uint32_t helio_queue_push(helio_queue *queue, uint32_t line, uint64_t value);
/* Takes the next value; false when there is none. */
bool helio_queue_pop(helio_queue *queue, uint64_t *value);
/* Takes an entry out of its line and puts it at the end of another. */
void helio_queue_move(helio_queue *queue, uint32_t entry, uint32_t from, uint32_t to);

static inline uint32_t helio_queue_waiting(const helio_queue *queue, uint32_t line) {
    return queue->lines[line].count;
}

#endif
