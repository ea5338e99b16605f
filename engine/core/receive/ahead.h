/* Messages of a topic that were handed over ahead of their turn (order=arrival): a small ordered
 * set of ranges of numbers.
 *
 * A message without room in the set is not handed over ahead; it comes in its turn. */
#ifndef HELIO_RECEIVE_AHEAD_H
#define HELIO_RECEIVE_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

enum { HELIO_AHEAD_RANGES = 64 };

typedef struct helio_ahead {
    uint32_t count;
    struct {
        uint64_t first;
        uint64_t end;
    } ranges[HELIO_AHEAD_RANGES]; /* ascending; neither overlapping nor touching */
} helio_ahead;

/* Whether numbers from `first` on, `count` of them, are new to the set and could be added. */
bool helio_ahead_fits(const helio_ahead *ahead, uint64_t first, uint64_t count);
/* Adds what fits. */
void helio_ahead_add(helio_ahead *ahead, uint64_t first, uint64_t count);
/* The number is in the set. */
bool helio_ahead_has(const helio_ahead *ahead, uint64_t number);
/* The end of the run of numbers from `number` on that are all in the set, or all not in it. */
uint64_t helio_ahead_run(const helio_ahead *ahead, uint64_t number);
/* Removes the numbers before this one. */
void helio_ahead_trim(helio_ahead *ahead, uint64_t number);

#endif
