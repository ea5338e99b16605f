/* One engine: its statistics, its lanes and the thread that works them.
 *
 * A lane is one channel with its machine: helio_tx_lane (a stream being sent) or helio_rx_lane (an
 * endpoint being received). All of this belongs to the engine's thread; in mode `poll`, to the
 * caller's.  Other threads share only the command queue, the submit queues, the receive queues,
 * and acknowledgements on their way (acked.h; helio_receiver_ack). */
#ifndef HELIO_RUNTIME_INSTANCE_H
#define HELIO_RUNTIME_INSTANCE_H

#include <pthread.h>
#include <stdbool.h>

#include <heliograph/heliograph.h>

#include "base/random.h"
#include "base/tsi.h"
#include "io/clock_source.h"
#include "io/driver.h"
#include "options/options.h"
#include "runtime/command.h"
#include "runtime/hiccup.h"
#include "runtime/idle.h"
#include "runtime/limit.h"
#include "send/stream.h"
#include "stats/stats.h"

typedef struct helio_tx_lane helio_tx_lane;
typedef struct helio_rx_lane helio_rx_lane;
typedef struct helio_flight helio_flight;

struct helio_instance {
    /* Read or written in each cycle; kept together, so that few cache lines are touched.  The engine's
     * alone: what other threads read is below. */
    bool polling; /* mode poll: within the duty cycle, so calls from listeners can be told */
    unsigned waits_within; /* long messages that wait for their next packet */
    helio_tx_lane *tx_lanes;
    helio_rx_lane *rx_lanes;
    int64_t chores_due_ns;   /* monotonic: gauges of queues */
    int64_t transmit_due_ns; /* mode poll: when a send looks after feedback and timers again */
    helio_clock_source clock;
    /* Monotonic: the last cycle. */
    int64_t now_ns;

    char name[HELIO_STATS_NAME_BYTES];
    int mode; /* HELIO_MODE_* */
    helio_instance_options options;
    uint8_t gsi[HELIO_GSI_BYTES];
    helio_random random;

    helio_stats *stats;
    helio_stats_object object;
    helio_instance_stats *counts; /* its record */

    helio_flight *flight;              /* NULL: there is no flight recorder */
    struct helio_following *following; /* of receivers that take messages from stores too */
    helio_hiccup hiccup;

    int64_t
        cycle_ns; /* monotonic; the duty cycle began; 0: the thread has slept since the last one */
    helio_idle idle;
    helio_commands commands;
    pthread_t thread; /* mode thread */

    helio_limit memory;                 /* of all that holds some */
    helio_history_budget history;       /* of the streams being sent */
    helio_tx_share rate;                /* the same: of all of them together */
    struct helio_tcp_pool *connections; /* that its transmit lanes share */
    helio_datagram datagrams[HELIO_CHANNEL_BATCH];
    bool stats_wait; /* the statistics want the next chores soon */
    bool stopping;   /* no more than lingering lanes is left */
};

/* Whether the caller is the engine: within a listener's function. */
bool helio_instance_is_engine(const helio_instance *instance);

#endif
