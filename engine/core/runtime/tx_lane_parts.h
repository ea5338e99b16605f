/* Declarations shared by the files of a transmit lane.  Other files include tx_lane.h. */
#ifndef HELIO_RUNTIME_TX_LANE_PARTS_H
#define HELIO_RUNTIME_TX_LANE_PARTS_H

#include "runtime/transmitter.h"
#include "runtime/tx_lane.h"

/* ---- tx_lane.c ---- */

/* Sends the packets queued in the channel. */
void helio_tx_lane_flush_channel(helio_tx_lane *lane);
/* The stream's outlet; `context` is the lane. */
int helio_tx_lane_send(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable);
/* The stream's send_now: one call of the driver sends the packet. */
int helio_tx_lane_send_now(void *context, const void *packet, size_t length);
/* Called while a large message is split into fragments: sends the fragments queued, processes
 * feedback and repairs, and receives other streams. */
void helio_tx_lane_breathe(void *context, int64_t not_before_ns);

/* Sends repairs, heartbeats and announcements that are due. */
int helio_tx_lane_poll_stream(helio_tx_lane *lane, helio_moment moment);

/* After a reconnection: sends the stream's position to the other side at once. */
void helio_tx_lane_greet(helio_tx_lane *lane, helio_moment moment);

/* ---- tx_lane_admit.c ---- */

/* Whether messages may be put into packets in this cycle: GO, or the cause to wait: ROOM or
 * REPAIRS. */
helio_admission helio_tx_lane_admit_any(helio_tx_lane *lane, helio_moment moment);
/* Some transmitter has messages in its queue, and credit. */
bool helio_tx_lane_has_messages(const helio_tx_lane *lane);
/* Messages wait for the rate, the instance's rate, the congestion window or, in a paced stream, for
 * repairs. */
bool helio_tx_lane_is_paced_out(const helio_tx_lane *lane);
/* Marks messages as held back from now on: of all topics; of one topic, if it has no credit. */
void helio_tx_lane_hold(helio_tx_lane *lane, helio_moment moment);
void helio_tx_lane_hold_topic(helio_tx_lane *lane, helio_transmitter *transmitter,
                              helio_moment moment);
/* Reports the begin and end of congestion, and publishes the rate to submitting threads. */
void helio_tx_lane_tell_congestion(helio_tx_lane *lane, helio_moment moment);
/* Publishes the cause of waiting to submitting threads. */
void helio_tx_lane_show(helio_tx_lane *lane, helio_admission held);

/* ---- tx_lane_pace.c ---- */

/* Refuses contradictory options.  Returns 0 or OPTION. */
int helio_tx_lane_check_pace(const helio_transmitter_options *options);
/* The stream's rate by the options; helio_tx_lane_place_pace sets the part that depends on the
 * lane. */
helio_tx_pace_config helio_tx_lane_pace(const helio_transmitter_options *options);
void helio_tx_lane_place_pace(helio_tx_lane *lane, helio_tx_pace_config *pace);

/* The next packet of a large message waits; meanwhile the engine does its other work. */
helio_moment helio_tx_lane_wait(void *context, int64_t until_ns);

/* ---- tx_lane_govern.c ---- */

/* Refuses contradictory options.  Returns 0 or OPTION. */
int helio_tx_lane_check_govern(const helio_transmitter_options *options);
/* How a stream sets its rate, by the options. */
helio_tx_govern_config helio_tx_lane_govern(const helio_transmitter_options *options);
helio_tx_follow_config helio_tx_lane_follow(const helio_transmitter_options *options);
/* Bytes in the submit queues; `context` is the lane. */
uint64_t helio_tx_lane_queued(void *context);

/* ---- tx_lane_slow.c ---- */

/* Actions of a stream against slow receivers and NAK storms, by the options. */
helio_tx_slow_config helio_tx_lane_slow(const helio_transmitter_options *options);
/* Refuses contradictory options.  Returns 0 or OPTION. */
int helio_tx_lane_check_slow(const helio_transmitter_options *options);

/* ---- tx_lane_log.c ---- */

/* Opens the decision log of the stream with this TSI, if the instance has one.  `options` has
 * HELIO_DECISION_TEXT_MAX + 1 bytes and must exist until the stream is created.  Returns 0, SYSTEM,
 * PERMISSION or NOMEM. */
int helio_tx_lane_open_log(helio_tx_lane *lane, const helio_tsi *tsi, char *options,
                           helio_tx_log_config *out);
/* Reports once when another program truncated the log. */
void helio_tx_lane_tend_log(helio_tx_lane *lane, helio_moment moment);

/* ---- tx_lane_acks.c ---- */

/* A receiver acknowledged more packets; `context` is the lane. */
void helio_tx_lane_on_ack(void *context, const helio_acker *acker);
/* Ends the waits for messages that are acknowledged now. */
void helio_tx_lane_end_waits(helio_tx_lane *lane, helio_transmitter *transmitter);
static inline void helio_tx_lane_serve_waits(helio_tx_lane *lane, helio_transmitter *transmitter) {
    if (helio_acked_is_waited_for(&transmitter->acked)) {
        helio_tx_lane_end_waits(lane, transmitter);
    }
}
/* Notifies submitting and waiting threads when sends are to fail, or no longer. */
void helio_tx_lane_tell_refusing(helio_tx_lane *lane);

#endif
