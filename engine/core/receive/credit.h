/* When a receiver grants its source credit (docs/wire.md 1.4).
 *
 * Grants are told when a quarter of a topic's credit was used up, with every report, and again and
 * again by themselves, at first soon and then ever more rarely, as nothing acknowledges them: a lost
 * one heals.  Only a source whose SPMs say that it waits for credit is told any. */
#ifndef HELIO_RECEIVE_CREDIT_H
#define HELIO_RECEIVE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "wire/pgm.h"

typedef struct helio_rx_stream helio_rx_stream;

typedef struct helio_rx_credit {
    bool is_awaited;   /* by the source */
    int64_t repeat_ns; /* how long until the next repetition but one */
    int64_t due_ns;    /* of the next; meaningful when it is awaited */
} helio_rx_credit;

/* An SPM came; NULL: it did not ask for reports. */
void helio_rx_credit_on_spm(helio_rx_credit *credit, const helio_pgm_reporting *asked,
                            int64_t now_ns);

/* Whether the stream's source is to be granted anything. */
bool helio_rx_is_granting(const helio_rx_stream *stream);
/* HELIO_NEVER: nothing is granted. */
int64_t helio_rx_credit_deadline_ns(const helio_rx_stream *stream);
/* Tells what is due.  Returns how many packets were sent. */
int helio_rx_grant_when_due(helio_rx_stream *stream, int64_t now_ns);
/* A subscription goes that granted this topic: when no other does, the source is told that nobody
 * holds it back. */
void helio_rx_stop_granting(helio_rx_stream *stream, uint64_t topic_id, int64_t now_ns);

#endif
