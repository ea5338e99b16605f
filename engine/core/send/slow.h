/* Slow receivers and NAK storms of a stream: what the engines in policy/ decide is counted, told
 * and done, as far as the modes allow.
 *
 *     observe   statistics only
 *     advise    and events that say what is seen and what would be done
 *     enforce   and it is done: receivers are told (send/act.c), the rate is lowered, requests are cut off
 *
 * Called by the governor at the end of each control interval; it keeps no time of its own. */
#ifndef HELIO_SEND_SLOW_H
#define HELIO_SEND_SLOW_H

#include "base/moment.h"
#include "policy/slow_receiver.h"
#include "policy/storm.h"

struct helio_tx_stream;

typedef struct helio_tx_slow_config {
    int mode;       /* HELIO_SLOW_MODE_* */
    int storm_mode; /* HELIO_STORM_MODE_* */
    /* Thresholds, times and shares; `enforces` and `capacity` are found here.  A dwell time of 0:
     * none of all this. */
    helio_slow_receivers_config receivers;
    helio_storm_config storm;
} helio_tx_slow_config;

typedef struct helio_tx_slow {
    helio_tx_slow_config config;
    bool is_on;
    helio_slow_receivers receivers;
    helio_storm storm;
    helio_storm_decision storm_decision; /* of the last interval */
    uint32_t paced;    /* index of the receiver that is waited for; HELIO_RECEIVER_NONE */
    uint32_t cut_offs; /* of the storm there is */
} helio_tx_slow;

/* 0 or NOMEM; `entries`: most receivers.  Release with helio_tx_slow_fini. */
int helio_tx_slow_init(helio_tx_slow *slow, const helio_tx_slow_config *config, uint32_t entries);
void helio_tx_slow_fini(helio_tx_slow *slow);

/* Decides and carries out at the end of an interval. */
void helio_tx_slow_decide(struct helio_tx_stream *stream, const helio_interval *interval,
                          helio_receiver_view *views, helio_moment moment);

/* Bytes per second that the stream is not to pass as a slow receiver is waited for; 0: none.  The
 * rate in force is the lower one of this and what the rate policy says. */
uint64_t helio_tx_slow_ceiling(const helio_tx_slow *slow);

#endif
