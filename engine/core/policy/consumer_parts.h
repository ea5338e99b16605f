/* What the files of the slow-consumer engine share: consumer.c (who is slow, the ladder),
 * consumer_group.c (what all have in common) and consumer_pace.c (sending no faster than the paced
 * take). */
#ifndef HELIO_POLICY_CONSUMER_PARTS_H
#define HELIO_POLICY_CONSUMER_PARTS_H

#include "policy/consumer.h"

/* A new decision of this interval, to be filled in. */
helio_slow_decision *helio_consumers_say(helio_consumers *engine, helio_receiver_index index,
                                         helio_action action);

enum { HELIO_CONSUMER_DWELL_WINDOWS = 3 }; /* of trouble, before anything is done */

/* It is kept from repairs, by the engine or by hand. */
static inline bool helio_consumer_is_isolated(const helio_consumer *consumer,
                                              const helio_receiver_view *view) {
    return consumer->isolation != HELIO_ISOLATION_NONE ||
           consumer->rung >= HELIO_ACTION_SUSPEND_NAKS ||
           (view->flags & (HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED));
}

/* ---- consumer_group.c ---- */

/* What is usual among those who are not isolated. */
void helio_consumers_compare(helio_consumers *engine, const helio_interval *interval,
                             const helio_receiver_view *views, uint32_t entries);
/* Who came into trouble together, and whether many are in it. */
void helio_consumers_find_shared(helio_consumers *engine, const helio_interval *interval,
                                 uint32_t entries);

/* ---- consumer_pace.c ---- */

/* Measures how fast the source sends. */
void helio_consumers_follow_rate(helio_consumers *engine, const helio_interval *interval);
/* Lowers the ceiling to what the receiver takes.  Returns the ceiling. */
uint64_t helio_consumers_pace_to(helio_consumers *engine, const helio_consumer *consumer);
/* Keeps the ceiling with those that are paced; raises it when there are none. */
void helio_consumers_pace(helio_consumers *engine, const helio_interval *interval,
                          uint32_t entries);

#endif
