/* Acknowledgements at the source: they release packets from the history and let sending go on.
 *
 * With acks = N (`wanted`) a packet stays in the history until N distinct receivers have
 * acknowledged it: the history's floor is one past `stable`, which only grows.  When the history
 * is full up to the floor, sending stops (has_room); nothing is dropped.  While fewer than N
 * receivers acknowledge:
 *
 *   block     sending goes on until the history is full, then waits; an event follows after warn_ns
 *   degrade   the receivers that there are suffice, even none; an event reports each change
 *   fail      as block, and new messages are refused (is_refusing)
 *
 * Receivers acknowledge in their own time.  The last packet of a burst asks them to do so at once
 * (ASK, in the batch header).  One question is open at a time, and with many receivers questions
 * are rarer.
 *
 * With N = 0 nothing is held; acknowledgements are still tracked and reported.
 *
 * Receivers that count are a quorum: all that acknowledge, or with `of_stores` those that say that
 * they are message stores.  The others are tracked and do not count. */
#ifndef HELIO_SEND_ACKS_H
#define HELIO_SEND_ACKS_H

#include "generated/options.h"
#include "receivers/acks.h"
#include "receivers/table.h"
#include "send/stability.h"
#include "send/topics.h"
#include "stats/stats.h"
#include "window/txw.h"
#include "wire/pgm.h"

typedef struct helio_tx_acks_config {
    uint32_t wanted;
    /* HELIO_ACKS_MISSING_* */
    int missing;
    /* Only message stores count. */
    bool of_stores;
    helio_tx_stability_limits unstable;
    int64_t warn_ns;
    int64_t expiry_ns;
    /* A receiver silent for this long may have moved; 0: expiry_ns. */
    int64_t silence_ns;
    helio_stats *stats;
    /* Of the stream. */
    const helio_stats_object *object;
    /* Of the stream, for texts; outlives it. */
    const char *label;
} helio_tx_acks_config;

/* The position of a packet's topic. */
typedef struct helio_tx_mark {
    /* The topic's packet before; 0: none. */
    uint64_t previous;
    /* Messages before this one are in earlier packets. */
    uint64_t first_message;
} helio_tx_mark;

typedef struct helio_tx_acks {
    helio_tx_acks_config config;
    helio_txw *txw;
    helio_acks registry;
    /* `wanted`, or the number of receivers that count. */
    uint32_t needed;
    /* Packets up to here need no more acknowledgements. */
    uint64_t stable;
    helio_tx_stability stability;
    /* As many receivers count as are wanted; it was reported. */
    bool has_quorum;
    /* Of the packets after `stable`, as the history counts them. */
    uint64_t unacked_bytes;
    /* Sending waits since then; 0: it does not. */
    int64_t blocked_ns;
    /* Receivers or acknowledgements are missing since then; 0: none are. */
    int64_t short_ns;
    bool has_warned;
    /* No event of dropped packets before. */
    int64_t let_go_after_ns;
    /* The newest packet with the question, and when it was sent. */
    uint64_t asked;
    int64_t asked_ns;
    /* By sequence & txw->mask. */
    helio_tx_mark *marks;
} helio_tx_acks;

/* 0 or NOMEM; free with helio_tx_acks_fini. */
int helio_tx_acks_init(helio_tx_acks *acks, const helio_tx_acks_config *config, helio_txw *txw);
void helio_tx_acks_fini(helio_tx_acks *acks);
size_t helio_tx_acks_memory(const helio_tx_acks *acks);

/* The sender of an ACK as the table of receivers knows it. */
typedef struct helio_tx_acks_sender {
    const helio_address *from;
    /* It is suspended. */
    bool is_out;
    /* Its reports come from this address too. */
    bool is_vouched;
    /* Its reports come from another address. */
    bool is_elsewhere;
} helio_tx_acks_sender;

/* An ACK with HAS_ACKNOWLEDGE came.  *heard: its receiver and position. */
helio_acks_result helio_tx_acks_on_ack(helio_tx_acks *acks, const helio_pgm_packet *ack,
                                       const helio_tx_acks_sender *sender, helio_moment moment,
                                       helio_acker *heard);
/* The receiver whose acknowledgement would release packets: the last one of the number needed.
 * NULL: there are fewer. */
const helio_acker *helio_tx_acks_awaited(const helio_tx_acks *acks);
/* `action` is in force from now on at the receiver that the table has at an index: a suspended one
 * does not count, an expelled one is removed. */
void helio_tx_acks_on_action(helio_tx_acks *acks, const helio_receivers *receivers,
                             helio_receiver_index index, helio_action action, helio_moment moment);
/* The packet at lead was committed; `topic` NULL for one that carries no messages. */
void helio_tx_acks_on_sent(helio_tx_acks *acks, helio_tx_topic *topic, uint64_t first_message);

/* The same of a packet with messages, as far as their numbers go. */
static inline void helio_tx_acks_note(helio_tx_acks *acks, helio_tx_topic *topic,
                                      uint64_t first_message) {
    const uint64_t sequence = acks->txw->lead;
    acks->marks[sequence & acks->txw->mask] = (helio_tx_mark){topic->newest, first_message};
    topic->newest = sequence;
}

/* Whether the history has room for `packets` without dropping any that are not acknowledged.  If not,
 * sending counts as blocked until it has. */
bool helio_tx_acks_has_room(helio_tx_acks *acks, uint64_t packets, helio_moment moment);
/* The most packets that it ever has room for. */
uint64_t helio_tx_acks_capacity(const helio_tx_acks *acks);
/* Drops packets up to `sequence`, at most lead, that are not acknowledged: the stream ends or must
 * send something else.  They are counted and reported. */
void helio_tx_acks_let_go(helio_tx_acks *acks, uint64_t sequence, helio_moment moment);

/* What is not stable, with an open packet of these messages and bytes. */
static inline helio_tx_in_flight
helio_tx_acks_in_flight(const helio_tx_acks *acks, uint64_t open_messages, uint64_t open_bytes) {
    return (helio_tx_in_flight){
        acks->stability.sent - acks->stability.done + open_messages,
        acks->unacked_bytes + open_bytes,
    };
}
/* As the functions of the stream. */
bool helio_tx_acks_is_stable(const helio_tx_acks *acks, uint64_t sequence);
bool helio_tx_acks_has_sent(const helio_tx_acks *acks, const helio_tx_topic *topic, uint64_t number,
                            uint64_t *sequence);

/* Fewer receivers than wanted acknowledge, and messages are to be refused. */
static inline bool helio_tx_acks_is_refusing(const helio_tx_acks *acks) {
    return helio_acks_live(&acks->registry) < acks->config.wanted &&
           acks->config.missing == HELIO_ACKS_MISSING_FAIL;
}
/* Whether the packet that ends a burst now should carry the question. */
bool helio_tx_acks_should_ask(const helio_tx_acks *acks, int64_t now_ns);
/* It does: the next packet. */
void helio_tx_acks_on_asked(helio_tx_acks *acks, int64_t now_ns);

/* Removes silent receivers, and warns of missing ones. */
void helio_tx_acks_poll(helio_tx_acks *acks, helio_moment moment);
int64_t helio_tx_acks_next_deadline_ns(const helio_tx_acks *acks);

/* As helio_tx_stream_acked_message. */
bool helio_tx_acks_message(const helio_tx_acks *acks, const helio_tx_topic *topic,
                           const helio_acker *acker, uint64_t *number);

#endif
