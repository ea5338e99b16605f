/* Threads that wait for room in one queue take turns in order of arrival.  While a thread waits,
 * no other may write before it.  A thread that has had its turn holds a pass for one try.
 *
 * All under the lock of the queue's producers.  Only the first thread watches the queue; the
 * others sleep until they are first. */
#ifndef HELIO_QUEUE_TURNS_H
#define HELIO_QUEUE_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#include "queue/signal.h"

/* A waiting thread; lives on its stack. */
typedef struct helio_turn {
    struct helio_turn *next;
    helio_signal news; /* it is first */
} helio_turn;

typedef struct helio_turns {
    helio_turn *first, *last;
} helio_turns;

static inline bool helio_turns_is_empty(const helio_turns *turns) {
    return !turns->first;
}

void helio_turns_join(helio_turns *turns, helio_turn *turn);
/* Has had its turn, or gives up; `has_pass`: its next try goes before those who wait. */
void helio_turns_leave(helio_turns *turns, helio_turn *turn, bool has_pass);

/* Whether the calling thread may try now; its pass, if it has one, is used up. */
bool helio_turns_may_try(const helio_turns *turns);

#endif
