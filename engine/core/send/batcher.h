/* Packing messages into packets.
 *
 * Messages of one topic collect in the open packet, in place.  It is closed when the next message
 * does not fit or is of another topic, or by flush.  A message that does not fit a packet of its
 * own is sent at once as a batch of one message in fragments (OPT_FRAGMENT), consecutive packets.
 *
 * With is_raw there are no batches: each message alone is a packet's TSDU, at once, or an APDU in
 * fragments, and a topic's numbers count packets (docs/wire.md 7).  Messages must not be empty
 * then.
 *
 * The batcher knows packets only through its door, and no sequence numbers, sockets, threads or
 * clocks. */
#ifndef HELIO_SEND_BATCHER_H
#define HELIO_SEND_BATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <heliograph/heliograph.h>

#include "base/hold.h"
#include "base/moment.h"
#include "stats/stats.h"
#include "wire/pgm.h"
#include "wire/tsdu.h"

/* Where packets come from and go. */
typedef struct helio_packet_door {
    void *context;
    /* Memory for the TSDU of the next packet, at least the batcher's tsdu_bytes (less
     * HELIO_PGM_FRAGMENT_HEADER - HELIO_PGM_DATA_HEADER for a fragment).  Stays valid until close.
     */
    uint8_t *(*open)(void *context, bool is_fragment);
    /* The packet is complete: `bytes` of TSDU.  `fragment` NULL: a whole batch; else its `first` is
     * to be set to the sequence of this packet when its offset is 0, and is handed unchanged to the
     * rest. */
    void (*close)(void *context, size_t bytes, helio_pgm_fragment *fragment, helio_moment moment);
} helio_packet_door;

enum { HELIO_TOPIC_DROP_CAUSES = 7 }; /* values of transmitter.messages_dropped */

/* What the transmitters of a topic say they accepted, dropped, and have not handed on yet. */
typedef struct helio_topic_books {
    uint64_t accepted;
    uint64_t queued;
    uint64_t dropped[HELIO_TOPIC_DROP_CAUSES];
} helio_topic_books;

/* A topic's place in its stream. */
typedef struct helio_topic_position {
    uint64_t id;
    uint64_t next_message;
    helio_topic_books books;
    helio_transmitter_stats *stats;
    const helio_stats_object *object; /* its histograms; may be NULL */
    helio_hold hold;                  /* of its own, beside the batcher's */
} helio_topic_position;

/* Messages in packets that were closed, of one topic (NULL: none), until they are counted. */
typedef struct helio_batcher_uncounted {
    helio_topic_position *topic;
    uint64_t messages, bytes, packets;
} helio_batcher_uncounted;

typedef struct helio_batcher {
    helio_packet_door door;
    helio_instance_stats *instance;
    size_t tsdu_bytes; /* of a packet without options */
    bool is_raw;
    uint8_t flags; /* HELIO_TSDU_FLAG_* of the batches of messages closed from now on */
    /* Within close: more of the same list follows at once, and what is closed is counted with it. */
    bool more_follow;
    helio_batcher_uncounted uncounted;
    /* of the packet given to close: its topic (NULL: none), messages before it are in others */
    helio_topic_position *closing;
    uint64_t closing_first;
    /* the open packet */
    uint8_t *tsdu; /* NULL: none is open */
    helio_topic_position *topic;
    size_t used;
    uint32_t count;
    uint64_t body_bytes;
    int64_t submit_ns;   /* of the oldest message */
    int64_t paced_ns;    /* how long that one was held back */
    int64_t intended_ns; /* the oldest time at which a message was to be sent; 0: none has one */
    int64_t next_intended_ns; /* of the message being put in */
    helio_sampler *sampler;   /* may be NULL: every packet is measured */
    helio_hold hold;          /* of all topics */
} helio_batcher;

void helio_batcher_init(helio_batcher *batcher, helio_packet_door door, size_t tsdu_bytes,
                        helio_instance_stats *instance);
/* Puts in one message, at most 2^30 bytes. */
void helio_batcher_append(helio_batcher *batcher, helio_topic_position *topic, const void *data,
                          size_t length, int64_t submit_ns, helio_moment moment);
/* The same with the time, wall clock, at which it was to be sent (docs/wire.md 2.3); with is_raw
 * that is not told.  It joins no packet without such a time. */
void helio_batcher_append_intended(helio_batcher *batcher, helio_topic_position *topic,
                                   const void *data, size_t length, int64_t submit_ns,
                                   int64_t intended_ns, helio_moment moment);
/* Puts messages of a list into the open packet: the first ones that join it, none of more than
 * `longest` bytes.  Returns how many; the next one needs helio_batcher_append.  intended_ns: of all
 * of them; 0: none has one. */
size_t helio_batcher_append_run(helio_batcher *batcher, helio_topic_position *topic,
                                const helio_buffer *messages, size_t count, size_t longest,
                                int64_t submit_ns, int64_t intended_ns, helio_moment moment);
/* Whether a message would join the open packet. */
bool helio_batcher_joins(const helio_batcher *batcher, const helio_topic_position *topic,
                         size_t length);
/* Closes the open packet, if any. */
void helio_batcher_flush(helio_batcher *batcher, helio_moment moment);
/* Counts what was closed and is not counted yet. */
void helio_batcher_count(helio_batcher *batcher);
/* Messages of the topic that are in the open packet, or not counted yet. */
uint64_t helio_batcher_waiting(const helio_batcher *batcher, const helio_topic_position *topic);
/* Sends a TOPICS batch of these entries (after what is open), in as many packets as it takes. */
void helio_batcher_announce(helio_batcher *batcher, const helio_tsdu_topic *topics, size_t count,
                            uint8_t flags, helio_moment moment);

#endif
