/* The destination of a subscription's messages.  All calls come from the engine's one thread,
 * within helio_rx_endpoint_on_packet, _poll, _unsubscribe or _destroy, and must not call the
 * endpoint. */
#ifndef HELIO_RECEIVE_SINK_H
#define HELIO_RECEIVE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include <heliograph/heliograph.h>

#include "base/tsi.h"
#include "stats/stats.h"

/* How messages that a sink got are acknowledged to the stream's source. */
typedef enum helio_sink_ack {
    HELIO_SINK_ACK_NONE,
    HELIO_SINK_ACK_AUTO, /* when the sink has taken it */
    HELIO_SINK_ACK_APP,  /* when the application says so: helio_rx_endpoint_acknowledge */
} helio_sink_ack;

/* How much a sink holds that the application has not consumed. */
typedef struct helio_sink_gauge {
    uint64_t used_bytes;
    uint64_t limit_bytes;
    uint64_t given_bytes; /* all it has ever taken, counted like `used` */
} helio_sink_gauge;

typedef struct helio_sink {
    void *context;
    /* A stream was matched: `stream` counts 0, 1, ... within the subscription and is what messages
     * and losses carry.  `object` is the statistics object (scope receiver) of this topic from this
     * stream; it stays open until on_stream_end returns.  The protocol counts messages, bytes,
     * losses, next_message, total_latency and order_latency there; the queue's cells and
     * callback_time belong to the code that queues and calls.  May be NULL. */
    void (*on_stream)(void *context, uint32_t stream, const helio_tsi *tsi,
                      helio_stats_object *object);
    /* The stream ended (closed, silent, unsubscribed).  Its number is not used again.  May be NULL.
     */
    void (*on_stream_end)(void *context, uint32_t stream);
    /* Messages of one packet, in order.  Their data is valid during the call only.  Returns how
     * many were taken, from the front; fewer than `count` means "no room": the stream then holds
     * everything from the first message not taken and offers it again at the next poll. */
    size_t (*on_messages)(void *context, const helio_message *messages, size_t count);
    /* Messages lost for good, in order with on_messages.  May be NULL. */
    void (*on_loss)(void *context, const helio_loss *loss);
    /* A notice of the stream's source to this receiver.  May be NULL. */
    void (*on_notice)(void *context, const helio_notice *notice);
    /* As on_messages, for messages whose data stays where it is while the endpoint's loan is out
     * (helio_rx_endpoint_config.loan): the sink may lend them.  It sets the loan's is_short when it
     * lends fewer than `count` for want of place; what is left may then come by on_messages at
     * once.  NULL: on_messages gets them. */
    size_t (*on_lasting_messages)(void *context, const helio_message *messages, size_t count);
    helio_sink_ack ack;
    /* It is a message store: acknowledgements say so (HELIO_PGM_ACK_STORE). */
    bool is_store;
    /* Its topic was found by a pattern: nobody waits for it by name (stat receivers_unmatched). */
    bool is_found;
    /* Reads the gauge, now and then.  NULL: the sink holds nothing. */
    void (*read_gauge)(void *context, helio_sink_gauge *out);
    /* Messages the source may send beyond those the application has consumed; 0: any number. */
    uint64_t credit;
    /* How many taken messages of a stream the application has not consumed.  NULL: none. */
    uint64_t (*read_waiting)(void *context, uint32_t stream);
    /* Output: the monotonic time at which the messages of the next on_messages were in order, so
     * that the sink can measure its part of their latency; HELIO_NOT_MEASURED: it does not.  May be
     * NULL. */
    int64_t *measured_ns;
} helio_sink;

#define HELIO_NOT_MEASURED INT64_MIN

#endif
