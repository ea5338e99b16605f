/* Durable subscriptions as statistics of the store that keeps them.
 *
 * Their positions are in files that the service of the store writes (docs/store.md, section 8).  Who
 * reads these files hands the positions over; the keeper knows the newest message of a topic whose
 * stream is open, and shows both. */
#ifndef HELIO_KEEP_KEEPER_SUBSCRIPTIONS_H
#define HELIO_KEEP_KEEPER_SUBSCRIPTIONS_H

#include "keep/keeper_parts.h"

/* Where a subscription has come to in a stream.  Texts are those of the caller. */
typedef struct helio_keeper_subscription {
    const char *name, *topic;
    helio_tsi tsi;
    /* Number of the next message, and the number after the newest that the store has. */
    uint64_t next_number, end;
    /* Wall clock. */
    uint64_t saved_ns;
} helio_keeper_subscription;

/* The number after the newest message of a topic that the store has; 0: the topic of this stream is
 * not open. */
uint64_t helio_keeper_end(const helio_keeper *keeper, const helio_tsi *tsi, const char *topic);
/* Shows these and no others from the next publication on.  Returns 0, NOMEM, or OPTION: more than
 * HELIO_KEEPER_SUBSCRIPTIONS, or a text is too long. */
int helio_keeper_show_subscriptions(helio_keeper *keeper, const helio_keeper_subscription *all,
                                    size_t count);
/* Engine: sets the statistics.  One that gets no place in the segment is not shown. */
void helio_keeper_publish_subscriptions(helio_keeper *keeper, helio_moment moment);
/* Engine: closes the statistics of all. */
void helio_keeper_unpublish_subscriptions(helio_keeper *keeper, helio_moment moment);
/* After they are closed. */
void helio_keeper_free_subscriptions(helio_keeper *keeper);

#endif
