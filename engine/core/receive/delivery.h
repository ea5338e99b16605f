/* From one stream's packets, in order, to messages: reassembly, choice of topic, numbering,
 * hand-over to sinks.
 *
 * Each subscribed topic expects a number.  A batch that starts later than expected is a loss,
 * reported once with its range before the batch is delivered; so is a TOPICS entry ahead of the
 * expected number.  A topic is joined at the first number seen of it, unless the stream is complete
 * from its first packet: then 0 is expected.  When an ended stream comes back, its topics expect
 * what they expected then.
 *
 * A number is not believed when it would lose more messages than the missed packets can have held:
 * its batch is damaged, and nothing changes.
 *
 * On a raw endpoint (docs/wire.md 7) a packet, or an APDU of several, is itself the message, and
 * every subscription gets it.  Numbers are then those of packets: a message has that of its first,
 * and each lost packet counts.
 *
 * A packet whose messages a sink does not take completely is offered again; no part of it is
 * delivered twice.
 *
 * Messages of a sink with HELIO_SINK_ACK_APP are remembered until the application acknowledges
 * them.
 *
 * With order=arrival the messages of a whole packet can be handed over ahead of their turn.  When
 * its turn comes, the packet passes like any other, and only its remaining messages are handed
 * over.
 *
 * Invariant: next_message + messages_ahead = messages_before_join + messages_delivered +
 * fragments_joined + messages_lost, in every receiver's record (docs/identities.md). */
#ifndef HELIO_RECEIVE_DELIVERY_H
#define HELIO_RECEIVE_DELIVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/moment.h"
#include "base/tsi.h"
#include "receive/reassembly.h"
#include "receive/subscriptions.h"
#include "receive/unacked.h"
#include "window/rxw.h"
#include "wire/pgm.h"
#include "wire/tsdu.h"

typedef enum helio_delivery_result {
    HELIO_DELIVERY_TAKEN,
    HELIO_DELIVERY_FILTERED, /* of a topic without subscription */
    HELIO_DELIVERY_FOREIGN,  /* not a batch */
    HELIO_DELIVERY_DAMAGED,  /* a batch that breaks a rule; nothing of it was delivered */
    HELIO_DELIVERY_FULL,     /* a sink has no room: offer it again */
} helio_delivery_result;

typedef struct helio_delivery_topic helio_delivery_topic;

typedef struct helio_delivery {
    helio_subscriptions *shared;
    helio_rxw *window; /* the stream's: messages that a sink has no place for wait there */
    helio_tsi tsi;
    helio_map topics;   /* topic id -> helio_delivery_topic, chained when wanted more than once */
    uint64_t recent_id; /* of the topic looked up last; valid when `recent` is set */
    helio_delivery_topic *recent; /* its entry of `topics`; NULL: none */
    uint64_t first_sequence;      /* of the packets of the batch being passed */
    bool is_complete; /* the stream is known from its first packet and none was passed yet */
    helio_reassembly reassembly;
    helio_tsdu_header open_batch; /* of the batch being reassembled */
    uint64_t ready_sequence;      /* the reassembled batch ends with this packet; 0: none */
    uint64_t full_sequence;       /* the packet not taken completely; 0: none */
    uint32_t skipped_first;       /* fragments of the APDU that starts here are skipped */
    bool is_skipping;
    bool has_raw_base;    /* raw: something came */
    uint64_t raw_base;    /* the sequence that has number 0 */
    uint64_t apdu_number; /* raw: of the APDU being reassembled */
    uint64_t missed;      /* packets lost or unusable that may have held messages */
    uint64_t resumed_at;  /* the stream came back: earlier packets were passed already */
    uint64_t asked;       /* newest packet with a request for acknowledgement; 0: none */
    helio_delivery_topic *acked_by_app; /* list of topics with HELIO_SINK_ACK_APP */
    helio_delivery_topic *granting;     /* list of topics that grant credit */
    helio_delivery_topic *grant_next;   /* of it: the next in turn; NULL: the first */
    uint32_t granting_count;
    bool is_awaited;            /* the source waits for acknowledgements */
    bool has_told_unkept;       /* topic_not_kept was reported */
    bool has_credit_news;       /* more credit may be due */
    bool has_met;               /* some subscription has matched the stream */
    uint64_t messages_filtered; /* of the packets passed so far; the stream counts them */
    bool reassembly_recovered;  /* a packet of the batch being reassembled had been missing */
    int64_t closed_ns;          /* when the source closed this batch; 0: not known */
    int64_t intended_ns;        /* when the source was to send its oldest message; 0: the same */
} helio_delivery;

/* is_complete: the stream was discovered before its first packet.  Adds all present subscriptions.
 * 0 or NOMEM; free with helio_delivery_fini. */
int helio_delivery_init(helio_delivery *delivery, helio_subscriptions *shared, helio_rxw *window,
                        const helio_tsi *tsi, bool is_complete);
/* Reports the end of the stream to each sink that it matched. */
void helio_delivery_fini(helio_delivery *delivery, helio_moment moment);

/* A subscription begins or ends. */
int helio_delivery_add(helio_delivery *delivery, helio_subscription *subscription);
void helio_delivery_remove(helio_delivery *delivery, helio_subscription *subscription,
                           helio_moment moment);

/* Passes on the next packet of the stream. */
helio_delivery_result helio_delivery_pass(helio_delivery *delivery, uint64_t sequence,
                                          const helio_rxw_packet *packet, helio_moment moment);
/* Hands over messages of a packet whose turn has not come (order=arrival). */
void helio_delivery_ahead(helio_delivery *delivery, const helio_rxw_packet *packet,
                          helio_moment moment);
/* The next `count` packets of the stream, from `sequence` on, are lost. */
void helio_delivery_on_packets_lost(helio_delivery *delivery, uint64_t sequence, uint64_t count,
                                    helio_moment moment);

/* Passes a notice of the source to the sinks of the topics that the stream is known to have; with
 * `to_all` to all other sinks too. */
void helio_delivery_on_notice(helio_delivery *delivery, helio_notice *notice, bool to_all);

/* The application has acknowledged the messages before `next` of stream number `stream` of a
 * subscription.  False: that is not this stream. */
bool helio_delivery_acknowledge(helio_delivery *delivery, const helio_subscription *subscription,
                                uint32_t stream, uint64_t next);
/* Oldest packet with a message that waits for the application; HELIO_UNACKED_NONE for none. */
uint64_t helio_delivery_oldest_unacked(const helio_delivery *delivery);

/* ---- credit (delivery_credit.c) ---- */

/* Writes the present grants of at most `limit` topics, in turn; they count as sent.  only_owed:
 * only topics where a quarter of the credit or more was used since the last grant.  Returns how
 * many. */
uint32_t helio_delivery_grants(helio_delivery *delivery, bool only_owed, helio_pgm_grant *out,
                               uint32_t limit);
/* Some topic with this name grants credit. */
bool helio_delivery_is_granting(const helio_delivery *delivery, uint64_t topic_id);

/* ---- state kept for a stream that may come back (delivery_numbers.c) ---- */

/* A topic as one subscription has it. */
typedef struct helio_delivery_mark {
    uint64_t subscription; /* helio_subscription.serial */
    uint64_t expected;
    uint64_t slack; /* messages from there on that may be missing already */
    bool is_owed;   /* the application has not acknowledged all messages before it */
} helio_delivery_mark;

typedef struct helio_delivery_past {
    bool has_raw_base;
    uint64_t raw_base;
    uint64_t open_from;  /* first packet of an incomplete batch; 0: none */
    uint64_t resumed_at; /* earlier packets were passed already */
} helio_delivery_past;

/* Writes the expected numbers of at most `limit` topics, where known; returns how many are
 * known. */
uint32_t helio_delivery_marks(const helio_delivery *delivery, helio_delivery_mark *out,
                              uint32_t limit);
helio_delivery_past helio_delivery_past_of(const helio_delivery *delivery);
/* The stream was tracked before and has passed nothing yet: it continues at `sequence`.  0: the
 * packet is not known, and only message numbers show what is missing.  Subscriptions without a mark
 * begin as in a new stream.  slack: see helio_delivery_mark, for the time between. */
void helio_delivery_resume(helio_delivery *delivery, const helio_delivery_past *past,
                           const helio_delivery_mark *marks, uint32_t count, uint64_t sequence,
                           uint64_t slack);

/* The gauge of the fullest sink of this stream; false: no sink holds messages. */
bool helio_delivery_gauge(const helio_delivery *delivery, helio_sink_gauge *out);

#endif
