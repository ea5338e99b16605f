/* What the files of a transmit lane share.  Everybody else includes tx_lane.h. */
#ifndef HELIO_RUNTIME_TX_LANE_PARTS_H
#define HELIO_RUNTIME_TX_LANE_PARTS_H

#include "runtime/transmitter.h"
#include "runtime/tx_lane.h"

/* ---- tx_lane.c ---- */

/* Hands what is queued in the channel to the network. */
void helio_tx_lane_flush_channel(helio_tx_lane *lane);
/* The stream's outlet; `context` is the lane. */
int helio_tx_lane_send(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable);
/* A large message is being cut: what it sent goes out, those who missed some are heard, and what
 * others send is read. */
void helio_tx_lane_breathe(void *context, int64_t not_before_ns);

/* Repairs, heartbeats, announcements, if it is time. */
int helio_tx_lane_poll_stream(helio_tx_lane *lane, helio_moment moment);

/* A connection was made again: the other side learns at once where the stream is. */
void helio_tx_lane_greet(helio_tx_lane *lane, helio_moment moment);

/* ---- tx_lane_admit.c ---- */

/* Whether any message may be put into packets in this cycle: GO, ROOM or REPAIRS. */
helio_admission helio_tx_lane_admit_any(helio_tx_lane *lane, helio_moment moment);
/* Some transmitter has messages in its queue, and credit. */
bool helio_tx_lane_has_messages(const helio_tx_lane *lane);
/* Messages wait for the rate, or what goes with it. */
bool helio_tx_lane_is_paced_out(const helio_tx_lane *lane);
/* Messages are held back from now on: of all topics; of one, if it has no credit. */
void helio_tx_lane_hold(helio_tx_lane *lane, helio_moment moment);
void helio_tx_lane_hold_topic(helio_tx_lane *lane, helio_transmitter *transmitter,
                              helio_moment moment);
/* Begins and ends of congestion are reported, and senders learn the rate. */
void helio_tx_lane_tell_congestion(helio_tx_lane *lane, helio_moment moment);
/* Senders learn what messages wait for. */
void helio_tx_lane_show(helio_tx_lane *lane, helio_admission held);

/* ---- tx_lane_pace.c ---- */

/* Refuses what contradicts itself.  0 or OPTION. */
int helio_tx_lane_check_pace(const helio_transmitter_options *options);
/* What options say of a stream's rate; the rest of it depends on where the lane is. */
helio_tx_pace_config helio_tx_lane_pace(const helio_transmitter_options *options);
void helio_tx_lane_place_pace(helio_tx_lane *lane, helio_tx_pace_config *pace);

/* The next packet of a large message waits: the engine goes on without it. */
helio_moment helio_tx_lane_wait(void *context, int64_t until_ns);

/* ---- tx_lane_govern.c ---- */

/* Refuses what contradicts itself.  0 or OPTION. */
int helio_tx_lane_check_govern(const helio_transmitter_options *options);
/* What options say of how a stream decides about its rate. */
helio_tx_govern_config helio_tx_lane_govern(const helio_transmitter_options *options);
helio_tx_follow_config helio_tx_lane_follow(const helio_transmitter_options *options);
/* Bytes in the submit queues; `context` is the lane. */
uint64_t helio_tx_lane_queued(void *context);

/* ---- tx_lane_slow.c ---- */

/* What a stream does about slow receivers and NAK storms. */
helio_tx_slow_config helio_tx_lane_slow(const helio_transmitter_options *options);
/* 0, or OPTION: some of it contradicts itself. */
int helio_tx_lane_check_slow(const helio_transmitter_options *options);

/* ---- tx_lane_log.c ---- */

/* Opens the decision log of the stream with this TSI, if the instance is to have one; `options`
 * takes HELIO_DECISION_TEXT_MAX + 1 bytes that must last until the stream was created.  0 or
 * SYSTEM, PERMISSION, NOMEM. */
int helio_tx_lane_open_log(helio_tx_lane *lane, const helio_tsi *tsi, char *options,
                           helio_tx_log_config *out);
/* Tells, once, when another program truncated the log. */
void helio_tx_lane_tend_log(helio_tx_lane *lane, helio_moment moment);

/* ---- tx_lane_acks.c ---- */

/* A receiver has acknowledged more; `context` is the lane. */
void helio_tx_lane_on_ack(void *context, const helio_acker *acker);
/* Ends the waits for what was acknowledged by now. */
void helio_tx_lane_end_waits(helio_tx_lane *lane, helio_transmitter *transmitter);
static inline void helio_tx_lane_serve_waits(helio_tx_lane *lane, helio_transmitter *transmitter) {
    if (helio_acked_is_waited_for(&transmitter->acked)) {
        helio_tx_lane_end_waits(lane, transmitter);
    }
}
/* Lets senders know, and those that wait, when too few receivers acknowledge, or again enough. */
void helio_tx_lane_tell_refusing(helio_tx_lane *lane);

#endif
