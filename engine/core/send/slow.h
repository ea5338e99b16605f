/* Slow receivers and NAK storms of a stream: the decisions of the engines in policy/ are counted,
 * reported and carried out, as far as the modes allow.
 *
 *     observe   statistics only
 *     advise    also events with the symptoms and the action that would follow
 *     enforce   also the actions: on receivers (send/act.c), on the rate, and cut-offs of requests
 *
 * The governor calls it at the end of each control interval; it has no timers. */
#ifndef HELIO_SEND_SLOW_H
#define HELIO_SEND_SLOW_H

#include "base/moment.h"
#include "policy/slow_receiver.h"
#include "policy/storm.h"

struct helio_tx_stream;

typedef struct helio_tx_slow_config {
    /* HELIO_SLOW_MODE_* */
    int mode;
    /* HELIO_STORM_MODE_* */
    int storm_mode;
    /* Thresholds, times and shares; `enforces` and `capacity` are set here.  With a dwell time of 0
     * the engines are off. */
    helio_slow_receivers_config receivers;
    helio_storm_config storm;
} helio_tx_slow_config;

typedef struct helio_tx_slow {
    helio_tx_slow_config config;
    bool is_on;
    helio_slow_receivers receivers;
    helio_storm storm;
    /* Of the last interval. */
    helio_storm_decision storm_decision;
    /* The receiver that the stream is paced for; HELIO_RECEIVER_NONE: none. */
    helio_receiver_index paced;
    /* In the present storm. */
    uint32_t cut_offs;
} helio_tx_slow;

/* 0 or NOMEM; `entries`: most receivers.  Free with helio_tx_slow_fini. */
int helio_tx_slow_init(helio_tx_slow *slow, const helio_tx_slow_config *config, uint32_t entries);
void helio_tx_slow_fini(helio_tx_slow *slow);

/* Decides and carries out at the end of an interval. */
void helio_tx_slow_decide(struct helio_tx_stream *stream, const helio_interval *interval,
                          helio_receiver_view *views, helio_moment moment);

/* The limit in bytes per second while the stream is paced for a slow receiver; 0: none.  The rate in
 * force is the lower one of this and of the rate policy's. */
uint64_t helio_tx_slow_ceiling(const helio_tx_slow *slow);

#endif
