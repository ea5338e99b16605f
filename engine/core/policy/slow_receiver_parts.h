/* What the files of the slow-receiver engine share: slow_receiver.c (who is slow, the ladder),
 * slow_receiver_group.c (what all have in common) and slow_receiver_pace.c (sending no faster than the paced
 * take). */
#ifndef HELIO_POLICY_SLOW_RECEIVER_PARTS_H
#define HELIO_POLICY_SLOW_RECEIVER_PARTS_H

#include "policy/slow_receiver.h"

/* A new decision of this interval, to be filled in. */
helio_slow_decision *helio_slow_receivers_add(helio_slow_receivers *engine,
                                              helio_receiver_index index, helio_action action);

enum { HELIO_SLOW_DWELL_WINDOWS = 3 }; /* of trouble, before anything is done */

/* It is kept from repairs, by the engine or by hand. */
static inline bool helio_slow_receiver_is_isolated(const helio_slow_receiver *receiver,
                                                   const helio_receiver_view *view) {
    return receiver->isolation != HELIO_ISOLATION_NONE ||
           receiver->rung >= HELIO_ACTION_SUSPEND_NAKS ||
           (view->flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED));
}

/* ---- slow_receiver_group.c ---- */

/* What is usual among those who are not isolated. */
void helio_slow_receivers_compare(helio_slow_receivers *engine, const helio_interval *interval,
                                  const helio_receiver_view *views, uint32_t entries);
/* Who came into trouble together, and whether many are in it. */
void helio_slow_receivers_find_shared(helio_slow_receivers *engine, const helio_interval *interval,
                                      uint32_t entries);

/* ---- slow_receiver_pace.c ---- */

/* Measures how fast the source sends. */
void helio_slow_receivers_follow_rate(helio_slow_receivers *engine, const helio_interval *interval);
/* Lowers the ceiling to what the receiver takes.  Returns the ceiling. */
uint64_t helio_slow_receivers_pace_to(helio_slow_receivers *engine,
                                      const helio_slow_receiver *receiver);
/* Keeps the ceiling with those that are paced; raises it when there are none. */
void helio_slow_receivers_pace(helio_slow_receivers *engine, const helio_interval *interval,
                               uint32_t entries);

#endif
