/* An endpoint being received: finds the stream of each datagram, follows at most `max_streams` of
 * them, and hands the messages of the topics subscribed to their sinks.
 *
 * A stream is met by its first SPM or data and joined there: what was sent before is not asked for,
 * unless `join_history` says so and the source offers it (OPT_JOIN).  A stream met with an empty
 * window is complete from its first packet.  It is followed when it may have something for this
 * receiver (receive/met.h); those that have proven nothing give way to others (receive/unproven.h).  Each stream
 * is bound to the address it was met at (receive/binding.h); packets with its TSI from elsewhere are refused
 * (event stream_conflict).  A stream silent for the expiry time is dropped, and goes on where it was
 * should it come back (receive/absent.h).
 *
 * A receiver that acknowledges (helio_sink.ack) begins with the oldest packet its source waits for,
 * else like others; it gives up only what its source no longer has.
 *
 * A packet that is next in order is delivered from the caller's buffer without a copy; others wait
 * in the stream's window. When a sink has no room the stream holds on: its window fills, what does
 * not fit is dropped (overflows) and asked for again when there is room.
 *
 * In a group an SPM is asked for (SPMR) of the other receivers first: to the group, which is one hop
 * away at most, so that of many who come late few ask; then of the source.
 *
 * One thread uses it.  It knows nothing of sockets, threads or clocks.  Times are ns. */
#ifndef HELIO_RECEIVE_ENDPOINT_H
#define HELIO_RECEIVE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/outlet.h"
#include "base/tsi.h"
#include "receive/sink.h"
#include "stats/stats.h"

typedef struct helio_rx_endpoint helio_rx_endpoint;
typedef struct helio_subscription helio_subscription;
typedef struct helio_replay helio_replay;

typedef struct helio_rx_endpoint_config {
    const char *instance; /* label of the statistics; copied, as all texts here */
    const char *endpoint; /* label */
    helio_address group;  /* group and port, or for unicast this receiver's own: group NLA of NAKs,
                             and the port  that peers of other make want feedback on */
    helio_address feedback_address; /* of the socket feedback leaves from; a label */
    uint32_t max_packet_bytes;      /* largest accepted: mtu less what is below; 548 to 65507 */
    uint32_t window_packets;    /* per proven stream; rounded up to a power of two, at least 16 */
    uint32_t max_message_bytes; /* at most 2^30 */
    helio_account *account;     /* of the instance's memory; may be NULL */
    bool is_raw; /* packets are bare messages (docs/wire.md 7): a subscription gets them all */
    uint32_t max_streams;
    uint32_t reorder_packets;
    int64_t reorder_ns;
    int64_t nak_backoff_ns; /* below 0: found by measuring */
    int64_t nak_repeat_ns;  /* 0: found by measuring */
    int64_t nak_data_ns;    /* 0: found by measuring */
    uint32_t nak_retries;
    int64_t nak_deadline_ns;
    uint32_t group_size; /* receivers believed to be in the group; 0: not known */
    bool never_asks;     /* sends no NAK; what is missing is lost when it is no longer only late */
    bool in_arrival_order; /* whole packets are handed over as they come */
    int64_t spmr_delay_ns; /* an SPM is asked for after a random time up to this */
    int64_t stream_expiry_ns;
    bool data_lasts;    /* the caller keeps a datagram's memory beyond on_packet, see sink.h */
    bool has_checksums; /* false: data without a checksum is accepted */
    uint32_t ack_packets;
    int64_t ack_interval_ns;
    uint64_t receiver; /* who acknowledges and reports: the same in each life; 0: nobody */
    bool is_tagged;    /* reports say that this receiver is one of those that set the pace */
    bool join_history; /* a stream begins with the oldest packet its source offers */
    bool is_same_host; /* sources can only be on this host */
    bool is_connected; /* feedback goes back to where a stream's last SPM came from */
    bool
        network_elements; /* feedback goes to the path NLA of SPMs, whatever it is: network elements
                          put their own address in */
    uint64_t seed;        /* of the random back-off; different in each instance */
    /* How many datagrams were dropped on this host before they could be read, all that ever were;
     * called with the outlet's context when packets are seen missing.  NULL: nothing drops any. */
    uint64_t (*dropped)(void *context);
    bool drops_are_joined; /* one dropped may have been several */
} helio_rx_endpoint_config;

/* Creates an endpoint; release it with helio_rx_endpoint_destroy.  The outlet is always given an
 * address to send to (the source's).  `instance` gets the instance-wide counts, rx_streams,
 * receivers and memory_used included. Errors: NOMEM, OPTION. */
int helio_rx_endpoint_create(const helio_rx_endpoint_config *config, helio_outlet outlet,
                             helio_stats *stats, helio_instance_stats *instance,
                             helio_rx_endpoint **out);
/* Ends every stream and subscription (sinks hear on_stream_end).  Accepts NULL. */
/* So many datagrams were dropped, as of now: to be told now and then. */
void helio_rx_endpoint_note_drops(helio_rx_endpoint *endpoint, uint64_t total, int64_t now_ns);
void helio_rx_endpoint_destroy(helio_rx_endpoint *endpoint, helio_clock clock);

/* Delivers a topic to a sink from now on, from streams already known too.  Several subscriptions
 * may want one topic. Errors: TOPIC (empty or longer than 255 bytes), NOMEM. */
int helio_rx_endpoint_subscribe(helio_rx_endpoint *endpoint, const char *topic,
                                const helio_sink *sink, helio_clock clock,
                                helio_subscription **out);
void helio_rx_endpoint_unsubscribe(helio_rx_endpoint *endpoint, helio_subscription *subscription,
                                   helio_clock clock);

/* The application has acknowledged the messages of stream number `stream` of a subscription (ack:
 * HELIO_SINK_ACK_APP) before number `next`; not within a call of the sink. */
void helio_rx_endpoint_acknowledge(helio_rx_endpoint *endpoint,
                                   const helio_subscription *subscription, uint32_t stream,
                                   uint64_t next, helio_clock clock);
/* An application is done with more messages of a subscription with credit; not within a call of the
 * sink. */
void helio_rx_endpoint_grant(helio_rx_endpoint *endpoint, helio_clock clock);
/* When the kernel took in the datagrams that come next, wall clock; 0: it does not say.  For
 * statistics. */
void helio_rx_endpoint_stamp(helio_rx_endpoint *endpoint, int64_t kernel_ns);

/* Messages `first` to `last` of a topic of a stream that is being followed are asked for again and
 * go to the sink (receive/replay.h); it is to be ended in any case.  Errors: STATE (no such stream,
 * or it has not said where it is yet), TOPIC, NOMEM. */
int helio_rx_endpoint_replay(helio_rx_endpoint *endpoint, const helio_tsi *tsi, const char *topic,
                             uint64_t first, uint64_t last, const helio_sink *sink,
                             helio_clock clock, helio_replay **out);
void helio_rx_endpoint_end_replay(helio_rx_endpoint *endpoint, helio_replay *replay,
                                  helio_clock clock);

/* A datagram came.  `receive_ns` is the wall clock time it was read.  The memory is the caller's
 * again on return. */
void helio_rx_endpoint_on_packet(helio_rx_endpoint *endpoint, const void *packet, size_t length,
                                 const helio_address *from, int64_t receive_ns, helio_clock clock);
/* The connection to `peer` is gone: its streams may go on from another one of the same host. */
void helio_rx_endpoint_detach(helio_rx_endpoint *endpoint, const helio_address *peer);
/* Sends NAKs and SPMRs that are due, offers held messages to sinks that had no room, drops silent
 * streams.  Returns how much work was done, 0 for none. */
int helio_rx_endpoint_poll(helio_rx_endpoint *endpoint, helio_clock clock);
/* When poll has something to do, HELIO_NEVER for nothing.  A stream waiting for room in a sink has
 * no deadline: poll it (is_blocked) when the sink has room. */
int64_t helio_rx_endpoint_next_deadline_ns(const helio_rx_endpoint *endpoint);
/* Some stream holds messages a sink had no room for. */
bool helio_rx_endpoint_is_blocked(const helio_rx_endpoint *endpoint);
/* All the same a replay waits for packets, and whatever else so many bring can be held meanwhile. */
bool helio_rx_endpoint_must_hear(const helio_rx_endpoint *endpoint, uint64_t packets);

#endif
