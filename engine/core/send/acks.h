/* Acknowledgements at the source: what they let leave the history, what sending waits for, and
 * whom to tell about.
 *
 * With acks = N (`wanted`) a packet is held in the history until N distinct receivers have
 * acknowledged it: the history's floor is one past `stable`, which only grows.  When the history
 * is full up to the floor, sending stops (has_room); nothing is dropped.  While fewer than N
 * receivers acknowledge:
 *
 *   block     sending goes on until the history is full, then waits; an event tells after warn_ns
 *   degrade   as many as there are will do, none if need be; an event tells of each change
 *   fail      as block, and new messages are refused (is_refusing)
 *
 * Receivers acknowledge in their own time.  The source asks for it (ASK, in the batch header) with
 * the last packet of a burst, one question at a time, and with many receivers not too often.
 *
 * With N = 0 nothing is held; receivers that acknowledge are known and told of all the same. */
#ifndef HELIO_SEND_ACKS_H
#define HELIO_SEND_ACKS_H

#include "generated/options.h"
#include "receivers/acks.h"
#include "receivers/table.h"
#include "send/topics.h"
#include "stats/stats.h"
#include "window/txw.h"
#include "wire/pgm.h"

typedef struct helio_tx_acks_config {
    uint32_t wanted;
    int missing; /* HELIO_ACKS_MISSING_* */
    int64_t warn_ns;
    int64_t expiry_ns;
    int64_t silence_ns; /* one silent for as long may have moved; 0: expiry_ns */
    helio_stats *stats;
    const helio_stats_object *object; /* of the stream */
    const char *label;                /* of the stream, for texts; outlives it */
} helio_tx_acks_config;

/* The topic a packet belongs to and where that topic stood. */
typedef struct helio_tx_mark {
    uint64_t previous;      /* packet of the topic before; 0: there is none */
    uint64_t first_message; /* messages before this one are in earlier packets */
} helio_tx_mark;

typedef struct helio_tx_acks {
    helio_tx_acks_config config;
    helio_txw *txw;
    helio_acks registry;
    uint32_t needed;        /* `wanted`, or as many as there are */
    uint64_t stable;        /* packets up to here need no more acknowledgements */
    uint64_t unacked_bytes; /* of the packets behind, as the history counts them */
    int64_t blocked_ns;     /* sending has stood still since; 0: it does not */
    int64_t short_ns;       /* something has been missing since; 0: nothing is */
    bool has_warned;
    int64_t let_go_after_ns; /* packets let go are told of once a second */
    uint64_t asked;          /* newest packet with the question */
    int64_t asked_ns;        /* when it was sent */
    helio_tx_mark *marks;    /* by sequence & txw->mask */
} helio_tx_acks;

/* 0 or NOMEM; free with helio_tx_acks_fini. */
int helio_tx_acks_init(helio_tx_acks *acks, const helio_tx_acks_config *config, helio_txw *txw);
void helio_tx_acks_fini(helio_tx_acks *acks);
size_t helio_tx_acks_memory(const helio_tx_acks *acks);

/* What is known of the sender of an ACK beside the packet. */
typedef struct helio_tx_acks_sender {
    const helio_address *from;
    bool is_out;       /* it is suspended */
    bool is_vouched;   /* its reports come from there too */
    bool is_elsewhere; /* its reports come from elsewhere */
} helio_tx_acks_sender;

/* An ACK with HAS_ACKNOWLEDGE came.  *heard: who, and how far. */
helio_acks_result helio_tx_acks_on_ack(helio_tx_acks *acks, const helio_pgm_packet *ack,
                                       const helio_tx_acks_sender *sender, helio_moment moment,
                                       helio_acker *heard);
/* Whose acknowledgement would let packets leave the history: the last of as many as are needed.
 * NULL: there are not so many. */
const helio_acker *helio_tx_acks_awaited(const helio_tx_acks *acks);
/* `action` is in force from now on at the receiver that the table has at an index: a suspended one
 * does not count, an expelled one is removed. */
void helio_tx_acks_on_action(helio_tx_acks *acks, const helio_receivers *receivers,
                             helio_receiver_index index, helio_action action, helio_moment moment);
/* The packet at lead was committed; `topic` NULL for one that carries no messages. */
void helio_tx_acks_on_sent(helio_tx_acks *acks, helio_tx_topic *topic, uint64_t first_message);

/* Whether the history takes so many packets without dropping what is not acknowledged; when it does
 * not, sending counts as blocked until it does. */
bool helio_tx_acks_has_room(helio_tx_acks *acks, uint64_t packets, helio_moment moment);
/* The most packets it ever takes. */
uint64_t helio_tx_acks_capacity(const helio_tx_acks *acks);
/* Packets up to `sequence`, at most lead, are let go unacknowledged, as something else must be sent
 * or an end be made; they are counted and told of. */
void helio_tx_acks_let_go(helio_tx_acks *acks, uint64_t sequence, helio_moment moment);

/* Fewer receivers than wanted acknowledge, and messages are to be refused. */
static inline bool helio_tx_acks_is_refusing(const helio_tx_acks *acks) {
    return helio_acks_live(&acks->registry) < acks->config.wanted &&
           acks->config.missing == HELIO_ACKS_MISSING_FAIL;
}
/* Whether the packet that ends a burst now should carry the question. */
bool helio_tx_acks_should_ask(const helio_tx_acks *acks, int64_t now_ns);
/* It does: the next packet. */
void helio_tx_acks_on_asked(helio_tx_acks *acks, int64_t now_ns);

/* Forgets ackers that are silent, tells what is missing. */
void helio_tx_acks_poll(helio_tx_acks *acks, helio_moment moment);
int64_t helio_tx_acks_next_deadline_ns(const helio_tx_acks *acks);

/* As helio_tx_stream_acked_message. */
bool helio_tx_acks_message(const helio_tx_acks *acks, const helio_tx_topic *topic,
                           const helio_acker *acker, uint64_t *number);

#endif
