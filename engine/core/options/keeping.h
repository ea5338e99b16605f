/* The options that say how a queue is bound and what it keeps: checked against each other, and made
 * into what a kept queue needs. */
#ifndef HELIO_OPTIONS_KEEPING_H
#define HELIO_OPTIONS_KEEPING_H

#include "base/mark.h"
#include "options/options.h"
#include "queue/kept_queue.h"

typedef struct helio_keeping {
    helio_kept_config config; /* heads, account and on_drop are the caller's */
    bool is_needed;           /* else the ring of today does */
    bool never_waits;         /* overflow=refuse */
    double low_water;
    helio_mark mark; /* of the queue's fill, of a million */
} helio_keeping;

/* Returns 0, or HELIO_ERR_OPTION when two options contradict each other. */
int helio_keeping_read_transmitter(helio_keeping *keeping,
                                   const helio_transmitter_options *options);
int helio_keeping_read_receiver(helio_keeping *keeping, const helio_receiver_options *options);

#endif
