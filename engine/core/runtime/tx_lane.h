/* A stream being sent: its channel, its machine and the transmitters that share it.  It belongs to
 * the engine's thread.
 *
 * In one duty cycle it takes messages off the submit queues, closes the open packet when the queues
 * are empty, and hands all packets to the network at once: batching that never waits. */
#ifndef HELIO_RUNTIME_TX_LANE_H
#define HELIO_RUNTIME_TX_LANE_H

#include "flight/decision_file.h"
#include "queue/acked.h"
#include "runtime/lane.h"
#include "send/congestion.h"
#include "send/stream.h"

enum {
    HELIO_TX_LANE_ROOM_MIN = 4,     /* packets a channel must take for new data to go on */
    HELIO_TX_LANE_UNHEARD_MAX = 64, /* packets of a list sent before feedback is read again */
};

/* Nobody tells when there is room in a ring again: how often to look while messages wait for it. */
#define HELIO_TX_LANE_LOOK_NS (500 * HELIO_MICROSECOND)

struct helio_tx_lane {
    helio_lane base;
    helio_tx_lane *next;
    helio_tx_stream *stream;
    helio_transmitter *transmitters;
    unsigned packets_queued; /* in the channel, once per destination */
    unsigned unheard;        /* packets sent since feedback was read */
    size_t room;             /* packets the channel takes, as it said last and less those since */
    int64_t held_since_ns;   /* monotonic: new data has been waiting for repairs; 0: it is not */
    helio_congestion congestion;
    bool open;               /* messages were appended and the open packet may hold some */
    size_t debt_bytes;       /* sent beyond the share of the cycles so far */
    int64_t waits_since_ns;  /* monotonic: a long message waits for one behind; 0: it does not */
    int64_t free_until_ns;   /* monotonic: it does not before */
    int64_t read_due_ns;     /* monotonic: when to look for feedback again */
    int64_t heard_ns;        /* monotonic: when there was some */
    int64_t wait_after_ns;   /* monotonic: no waiting for room before */
    int64_t drain_until_ns;  /* monotonic: closing, how long connections may take for the rest */
    bool closing;            /* lingering: no transmitter is left */
    bool is_gated;           /* more than the channel's room may hold messages back */
    helio_admission held;    /* what messages of all topics wait for, as the last cycle saw it */
    _Atomic int held_shown;  /* the same, for senders */
    bool awaits_credit;      /* messages leave only as far as receivers have granted */
    bool is_waiting;         /* within a long message, for its next packet */
    int64_t chores_due_ns;   /* monotonic: of an engine that waits there */
    bool is_heedless;        /* the rest is sent, room or not: who would make it has stopped */
    helio_decision_file log; /* of what its policies decide; all zero: there is none */
    _Atomic int refusal;     /* why sends are to fail (helio_tx_stream_refusal) */
    unsigned awaited_by;     /* mode poll: calls that wait to send */
    _Atomic bool congested;  /* the same, for senders */
    _Atomic uint64_t rate;   /* bytes per second in force, for senders */
};

/* The lane of the instance that serves this endpoint with these options, or a new one; takes over
 * `options`. Errors: as opening a channel, and OPTION, NOMEM of the stream. */
int helio_tx_lane_acquire(helio_instance *instance, const helio_endpoint *endpoint,
                          helio_end_options *options, helio_moment moment, helio_tx_lane **out);
/* Refuses a rate below what the stream's own control packets take.  0 or OPTION. */
int helio_tx_lane_check_rate(int64_t rate);
/* The lane's last transmitter has gone: it says so to receivers and lingers.  Nothing while
 * transmitters are left. */
void helio_tx_lane_release(helio_tx_lane *lane, helio_moment moment);
/* Closes it at once. */
void helio_tx_lane_destroy(helio_tx_lane *lane, helio_moment moment);

/* A stream as options want it: all that does not depend on where it is sent and by whom. */
helio_tx_stream_config helio_tx_lane_config(const helio_transmitter_options *options);
/* Refuses options of rate, windows and slow receivers that contradict each other: 0 or OPTION. */
int helio_tx_lane_check_policies(const helio_transmitter_options *options);

/* Reads feedback when it is time to. */
int helio_tx_lane_receive(helio_tx_lane *lane, helio_moment moment);
/* Drains submit queues, does what is due, hands packets to the network. */
int helio_tx_lane_work(helio_tx_lane *lane, helio_moment moment);
/* Whether the channel takes new data now. */
bool helio_tx_lane_look_for_room(helio_tx_lane *lane);
static inline bool helio_tx_lane_has_room(helio_tx_lane *lane) {
    return lane->room >= HELIO_TX_LANE_ROOM_MIN || helio_tx_lane_look_for_room(lane);
}
/* To be called before a run of messages: what may hold them back. */
static inline void helio_tx_lane_look(helio_tx_lane *lane) {
    lane->is_gated = lane->base.instance->waits_within ||
                     atomic_load_explicit(&lane->refusal, memory_order_acquire) ||
                     helio_tx_stream_is_gated(lane->stream);
}
/* Whether a message may be put into packets now.  Every way of sending asks this. */
static inline helio_admission helio_tx_lane_admit(helio_tx_lane *lane, helio_tx_topic *topic,
                                                  size_t length, helio_moment moment) {
    if (!helio_tx_lane_has_room(lane)) {
        return HELIO_ADMIT_ROOM;
    }
    if (!lane->is_gated) {
        return HELIO_ADMIT_GO;
    }
    /* While some message's own end waits for a rate, no other long one is begun. */
    if (lane->base.instance->waits_within && length > helio_lane_packet_bytes(&lane->base)) {
        return HELIO_ADMIT_RATE;
    }
    return helio_tx_stream_admit(lane->stream, topic, length, moment);
}
/* Mode poll: whether a lone message may go at once.  False: the general way asks, and answers. */
static inline bool helio_tx_lane_takes_lone(helio_tx_lane *lane) {
    return !lane->base.connected && !lane->packets_queued && !lane->base.instance->waits_within &&
           helio_tx_lane_has_room(lane);
}
/* Puts what waits in a kept queue into packets, as far as stream and channel take it; whether there
 * was any. */
bool helio_tx_lane_drain_kept(helio_tx_lane *lane, helio_transmitter *transmitter,
                              helio_moment moment);
/* Mode poll, within a list: hands over what was sent, reads feedback and answers it.  What held for
 * the messages before need not hold for those behind.  Returns the time. */
helio_moment helio_tx_lane_hear(helio_tx_lane *lane);
static inline bool helio_tx_lane_should_hear(const helio_tx_lane *lane) {
    return lane->unheard >= HELIO_TX_LANE_UNHEARD_MAX;
}
/* Mode poll: sends repairs that new data should wait for. */
void helio_tx_lane_make_way(helio_tx_lane *lane, helio_moment moment);
/* Mode poll: closes the open packet and hands it to the network. */
void helio_tx_lane_flush(helio_tx_lane *lane, helio_moment moment);

/* Sets the gauges of its queues and carries mishaps of the channel to the statistics. */
void helio_tx_lane_refresh(helio_tx_lane *lane, helio_moment moment);

/* Notes for the transmitter what all receivers have acknowledged. */
void helio_tx_lane_note_all(helio_tx_lane *lane, helio_transmitter *transmitter);

/* What the transmitter's wait is for is acknowledged. */
bool helio_tx_lane_is_acked(const helio_tx_lane *lane, const helio_transmitter *transmitter,
                            helio_ack_wait *wait);

/* Tells listeners of acknowledgements what is new; they may send. */
void helio_tx_lane_tell_acks(helio_tx_lane *lane);

/* Some submit queue has messages that can be sent, or somebody waits for something new. */
bool helio_tx_lane_has_work(const helio_tx_lane *lane);
/* Messages are seen to wait for this cause. */
void helio_tx_lane_note_wait(helio_tx_lane *lane, helio_admission cause, int64_t now_ns);
/* Some have messages that wait for room in the channel. */
bool helio_tx_lane_waits_for_room(const helio_tx_lane *lane);
/* When those that wait for the rate go on; HELIO_NEVER when none do. */
int64_t helio_tx_lane_ready_ns(const helio_tx_lane *lane);
/* Messages wait in a submit queue, for whatever reason. */
bool helio_tx_lane_is_queueing(const helio_tx_lane *lane);
bool helio_tx_lane_is_finished(const helio_tx_lane *lane, helio_moment moment);

#endif
