/* An endpoint being received: its channel, its machine and the receivers that share it.  It belongs
 * to the engine's thread. */
#ifndef HELIO_RUNTIME_RX_LANE_H
#define HELIO_RUNTIME_RX_LANE_H

#include "receive/endpoint.h"
#include "runtime/lane.h"

struct helio_rx_lane {
    helio_lane base;
    helio_rx_lane *next;
    helio_rx_endpoint *endpoint;
    helio_receiver *receivers;
    uint32_t wildcards; /* they keep the lane open */
    /* Monotonic: before then a cycle that reads no packet has nothing to do here; 0: it is unknown.
     * Commands, chores and lost connections set it to 0. */
    int64_t quiet_until_ns;
    bool is_queued;    /* feedback waits in the channel for a flush */
    bool grants;       /* some receiver was opened with credit */
    bool acked_by_app; /* some receiver was opened with ack=app or ack=store */
    /* Packets read at once when their messages are lent: about as many as the caller has place for;
     * and whether there were so many last time. */
    size_t lend_packets;
    bool is_lending; /* a receiver's caller takes messages straight from the channel */
    bool read_all;
    /* What a receiver's caller looks into.  While that may be in the memory that the channel reads
     * into, nothing is read. */
    helio_loan loan;
    bool is_lent;
};

/* The lane of the instance that serves this endpoint with these options, or a new one; takes over
 * `options`. Errors: as opening a channel, and OPTION, NOMEM of the endpoint. */
int helio_rx_lane_acquire(helio_instance *instance, const helio_endpoint *endpoint,
                          helio_end_options *options, helio_moment moment, helio_rx_lane **out);
/* Closes it, unless receivers or wildcards are left. */
void helio_rx_lane_release(helio_rx_lane *lane, helio_moment moment);

/* An endpoint as options want it: all that does not depend on where it is and who has it.  0, or
 * HELIO_ERR_OPTION for options that contradict each other. */
int helio_rx_lane_config(const helio_receiver_options *options, helio_rx_endpoint_config *out);

/* Reads at most `limit` packets into the instance's datagrams; returns how many. */
static inline size_t helio_rx_lane_read(helio_rx_lane *lane, size_t limit) {
    helio_channel *channel = lane->base.channel;
    const size_t count = channel->driver->receive(channel, lane->base.instance->datagrams, limit);
    lane->read_all = count == limit;
    return count;
}
static inline size_t helio_rx_lane_read_limit(const helio_rx_lane *lane) {
    return lane->is_lending ? lane->lend_packets : HELIO_CHANNEL_BATCH;
}

/* All there may be to do in a cycle, of whose packets `count` are read. */
int helio_rx_lane_serve(helio_rx_lane *lane, size_t count, helio_moment *moment);

/* Reads packets, requests missing ones, delivers.  Returns how much was done, 0 for nothing.
 * `moment` is now, or its now_ns is 0; then the clock is read after the first look at the channel.
 * Afterwards it is the moment of the last packet, if there was one. */
static inline int helio_rx_lane_work(helio_rx_lane *lane, helio_moment *moment) {
    const size_t count = lane->quiet_until_ns > 0 && !lane->is_lent
                             ? helio_rx_lane_read(lane, helio_rx_lane_read_limit(lane))
                             : 0;
    if (count || !moment->now_ns) {
        *moment = helio_clock_read(&lane->base.instance->clock);
    }
    return !count && moment->now_ns < lane->quiet_until_ns
               ? 0
               : helio_rx_lane_serve(lane, count, moment);
}
/* The caller of one receiver still looks into what it was lent, and another receiver is to get
 * messages: the channel leaves that memory and is read. */
void helio_rx_lane_leave_loan(helio_rx_lane *lane);
/* Something other than a packet may have given the lanes work. */
void helio_rx_lanes_look(const helio_instance *instance);
/* Works all lanes while one long message is being sent, so that nothing is missed meanwhile.  In
 * mode poll only those without a listener, which might send into the midst of that message. */
void helio_rx_lanes_work_amid_send(helio_instance *instance, helio_moment moment);
/* Sets the gauges of its queues and carries mishaps of the channel to the statistics. */
void helio_rx_lane_refresh(helio_rx_lane *lane, helio_moment moment);

/* From now on news ends a sleep; false: there is some already.  What a full receiver holds back is
 * none. */
bool helio_rx_lane_before_sleep(helio_rx_lane *lane);
/* Messages wait in the queue of some receiver. */
bool helio_rx_lane_is_queueing(const helio_rx_lane *lane);
/* Delivery had stopped for want of room and may go on. */
bool helio_rx_lane_can_resume(const helio_rx_lane *lane);

/* The application has acknowledged something that was not passed on yet. */
bool helio_rx_lane_has_acks(const helio_rx_lane *lane);

#endif
