/* When a receiver grants its source credit (docs/wire.md 1.4).
 *
 * A grant is sent when a quarter of a topic's credit was used, with every report, and repeatedly,
 * soon at first and then ever more rarely: nothing acknowledges a grant, so repetition replaces a
 * lost one.  Only a source whose SPMs say that it waits for credit gets any. */
#ifndef HELIO_RECEIVE_CREDIT_H
#define HELIO_RECEIVE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "wire/pgm.h"

typedef struct helio_rx_stream helio_rx_stream;

typedef struct helio_rx_credit {
    bool is_awaited;   /* by the source */
    int64_t repeat_ns; /* time between the next repetition and the one after it */
    int64_t due_ns;    /* of the next; valid when is_awaited */
} helio_rx_credit;

/* An SPM came; NULL: it did not ask for reports. */
void helio_rx_credit_on_spm(helio_rx_credit *credit, const helio_pgm_reporting *asked,
                            int64_t now_ns);

/* Whether the stream's source gets credit. */
bool helio_rx_is_granting(const helio_rx_stream *stream);
/* HELIO_NEVER: nothing is granted. */
int64_t helio_rx_credit_deadline_ns(const helio_rx_stream *stream);
/* Sends grants that are due.  Returns the number of packets sent. */
int helio_rx_grant_when_due(helio_rx_stream *stream, int64_t now_ns);
/* A subscription that granted this topic ends: when no other grants it, the source is notified that
 * nobody limits it. */
void helio_rx_stop_granting(helio_rx_stream *stream, uint64_t topic_id, int64_t now_ns);

#endif
