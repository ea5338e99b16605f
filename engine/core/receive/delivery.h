/* From one stream's packets, in order, to messages: reassembly, choice of topic, numbering,
 * hand-over to sinks.
 *
 * Each topic subscribed to expects a number.  A batch that starts later than expected is a loss,
 * told once with its range before the batch is delivered; a TOPICS entry that is ahead of what is
 * expected is a loss too.  The first number seen of a topic is where it is joined, unless the
 * stream is complete from its first packet: then 0 is expected.  When a stream that had ended comes
 * back, its topics expect what they expected then.
 *
 * A number that more messages would have to be lost for than the packets missed could have held is
 * not believed: its batch is damaged, and nothing changes.
 *
 * On a raw endpoint (docs/wire.md 7) a packet, or an APDU of several, is itself the message, and
 * every subscription gets it.  Numbers are then those of packets: a message has that of its first,
 * and where packets were lost each one counts.
 *
 * A packet whose messages a sink does not take whole is to be offered again; nothing of it is
 * delivered twice.
 *
 * Messages of a sink that acknowledges itself (HELIO_SINK_ACK_APP) are remembered until they are
 * acknowledged.
 *
 * With order=arrival the messages of a whole packet can be handed over ahead of their turn; when it
 * comes, the packet is passed like any other and only what was not handed over is.
 *
 * Invariant: next_message + messages_ahead = messages_before_join + messages_delivered +
 * fragments_joined + messages_lost, in every receiver's record (docs/identities.md). */
#ifndef HELIO_RECEIVE_DELIVERY_H
#define HELIO_RECEIVE_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/tsi.h"
#include "receive/reassembly.h"
#include "receive/subscriptions.h"
#include "receive/unacked.h"
#include "window/rxw.h"
#include "wire/pgm.h"
#include "wire/tsdu.h"

typedef enum helio_delivery_result {
    HELIO_DELIVERY_TAKEN,
    HELIO_DELIVERY_FILTERED, /* of a topic nobody wants */
    HELIO_DELIVERY_FOREIGN,  /* not a batch */
    HELIO_DELIVERY_DAMAGED,  /* a batch that breaks a rule; nothing of it was delivered */
    HELIO_DELIVERY_FULL,     /* a sink has no room: offer it again */
} helio_delivery_result;

typedef struct helio_delivery_topic helio_delivery_topic;

typedef struct helio_delivery {
    helio_subscriptions *shared;
    helio_tsi tsi;
    helio_map topics; /* topic id -> helio_delivery_topic, chained when wanted more than once */
    helio_reassembly reassembly;
    helio_tsdu_header open_batch; /* of the batch being put together */
    uint64_t ready_sequence;      /* the batch put together ends with this packet; 0: none */
    uint64_t full_sequence;       /* the packet not taken whole; 0: none */
    uint32_t skipped_first;       /* fragments of the APDU that starts here are of no interest */
    bool is_skipping;
    bool has_raw_base;       /* raw: something came */
    uint64_t raw_base;       /* the sequence that has number 0 */
    uint64_t apdu_number;    /* raw: of the APDU being put together */
    bool is_complete;        /* the stream is known from its first packet and none was passed yet */
    uint64_t first_sequence; /* of the packets of the batch being passed */
    uint64_t missed;         /* packets lost, or of no use, in which messages may have been */
    uint64_t resumed_at;     /* the stream came back: what is before was passed once already */
    uint64_t asked; /* newest packet with which the source asked to be acknowledged; 0: none */
    helio_delivery_topic *acked_by_app; /* list of the topics that are */
    helio_delivery_topic *granting;     /* list of the topics whose source is granted credit */
    helio_delivery_topic *grant_next;   /* of it: whose turn it is; NULL: the first one's */
    uint32_t granting_count;
    bool has_credit_news;       /* it may be time to grant more */
    bool has_met;               /* some subscription has met the stream */
    uint64_t messages_filtered; /* by the packets passed so far; the stream counts them */
    bool reassembly_recovered;  /* a packet of the batch being put together had been missing */
    int64_t closed_ns;   /* of the batch at hand: when its source closed it; 0: it does not say */
    int64_t intended_ns; /* and was to send its oldest message; 0: the same */
} helio_delivery;

/* is_complete: the stream was met before its first packet.  Knows all subscriptions there are.
 * 0 or NOMEM; free with helio_delivery_fini. */
int helio_delivery_init(helio_delivery *delivery, helio_subscriptions *shared, const helio_tsi *tsi,
                        bool is_complete);
/* Tells each sink that met the stream its end. */
void helio_delivery_fini(helio_delivery *delivery, helio_clock clock);

/* A subscription came or goes. */
int helio_delivery_add(helio_delivery *delivery, helio_subscription *subscription);
void helio_delivery_remove(helio_delivery *delivery, helio_subscription *subscription,
                           helio_clock clock);

/* Passes on the next packet of the stream. */
helio_delivery_result helio_delivery_pass(helio_delivery *delivery, uint64_t sequence,
                                          const helio_rxw_packet *packet, helio_clock clock);
/* Hands over what can be of a packet whose turn has not come (order=arrival). */
void helio_delivery_ahead(helio_delivery *delivery, const helio_rxw_packet *packet,
                          helio_clock clock);
/* The next `count` packets of the stream, from `sequence` on, are lost. */
void helio_delivery_on_packets_lost(helio_delivery *delivery, uint64_t sequence, uint64_t count,
                                    helio_clock clock);

/* Tells the sinks of the topics the stream is known to have of a notice of its source; with
 * `to_all` those that it has had nothing for yet too. */
void helio_delivery_on_notice(helio_delivery *delivery, helio_notice *notice, bool to_all);

/* The application has acknowledged the messages before `next` of stream number `stream` of a
 * subscription.  False: that is not this stream. */
bool helio_delivery_acknowledge(helio_delivery *delivery, const helio_subscription *subscription,
                                uint32_t stream, uint64_t next);
/* Oldest packet with a message that waits for the application; HELIO_UNACKED_NONE for none. */
uint64_t helio_delivery_oldest_unacked(const helio_delivery *delivery);

/* ---- credit (delivery_credit.c) ---- */

/* Writes down what is granted now, at most `limit` topics in turn; they count as told.  only_owed:
 * those where a quarter of the credit or more was used up since it was told last.  Returns how many.
 */
uint32_t helio_delivery_grants(helio_delivery *delivery, bool only_owed, helio_pgm_grant *out,
                               uint32_t limit);
/* Some topic with this name grants credit. */
bool helio_delivery_is_granting(const helio_delivery *delivery, uint64_t topic_id);

/* ---- what outlives the stream, should it come back (delivery_numbers.c) ---- */

/* A topic as one subscription has it. */
typedef struct helio_delivery_mark {
    uint64_t subscription; /* helio_subscription.serial */
    uint64_t expected;
    uint64_t slack; /* messages that may be missing already from there on */
    bool is_owed;   /* the application has messages before it to acknowledge */
} helio_delivery_mark;

typedef struct helio_delivery_past {
    bool has_raw_base;
    uint64_t raw_base;
    uint64_t open_from;  /* the packet in which a batch begins that is not whole yet; 0: none */
    uint64_t resumed_at; /* what is before was passed already, perhaps by an earlier stream still */
} helio_delivery_past;

/* Writes down what is expected of the topics where that is known, at most `limit` of them; returns
 * how many they are. */
uint32_t helio_delivery_marks(const helio_delivery *delivery, helio_delivery_mark *out,
                              uint32_t limit);
helio_delivery_past helio_delivery_past_of(const helio_delivery *delivery);
/* The stream, of which nothing was passed yet, was known before: it goes on at `sequence`, or, when
 * that is 0, where is not known, and only message numbers say what is missing.  Subscriptions that
 * are not marked begin as in a new stream.  slack: see helio_delivery_mark, for the time between. */
void helio_delivery_resume(helio_delivery *delivery, const helio_delivery_past *past,
                           const helio_delivery_mark *marks, uint32_t count, uint64_t sequence,
                           uint64_t slack);

/* How full the fullest sink is that gets messages of this stream; false: none of them keeps any. */
bool helio_delivery_gauge(const helio_delivery *delivery, helio_sink_gauge *out);

#endif
