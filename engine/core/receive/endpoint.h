/* A receive endpoint: finds the stream of each datagram, tracks at most `max_streams` streams, and
 * passes the messages of subscribed topics to their sinks.
 *
 * A stream is discovered by its first SPM or data, and begins there.  Earlier packets are requested
 * only with `join_history`, if the source offers them (OPT_JOIN).  The endpoint tracks a stream
 * that may have something for this receiver (discovery.h); unproven streams give way to others
 * (unproven.h).  Each stream is bound to the address where it was discovered (binding.h); packets
 * with its TSI from another address are refused (event stream_conflict).  A stream that is silent
 * for the expiry time is dropped; it continues where it stopped if it comes back (absent.h).
 *
 * A receiver that acknowledges (helio_sink.ack) begins with the oldest packet its source waits for,
 * otherwise like any other receiver.  It gives up only what its source no longer has.
 *
 * A packet that is next in order is delivered from the caller's buffer without a copy.  Other
 * packets wait in the stream's window.  A sink without room blocks its stream: the window fills,
 * further packets are dropped (overflows) and requested again when there is room.
 *
 * In a group, the SPM request (SPMR) goes to the group first, one hop far, so that only a few of
 * many late joiners ask; then it goes to the source.
 *
 * One thread uses it.  It knows nothing of sockets, threads or clocks.  Times are ns. */
#ifndef HELIO_RECEIVE_ENDPOINT_H
#define HELIO_RECEIVE_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/loan.h"
#include "base/moment.h"
#include "base/outlet.h"
#include "base/tsi.h"
#include "receive/sink.h"
#include "repair/dlr.h"
#include "stats/stats.h"

typedef struct helio_rx_endpoint helio_rx_endpoint;
typedef struct helio_subscription helio_subscription;
typedef struct helio_topic_finder helio_topic_finder;
typedef struct helio_replay helio_replay;

typedef struct helio_rx_endpoint_config {
    /* The first four are asked for each packet.
     *
     * What sinks lend of the endpoint's data (sink.h); the caller keeps a datagram's memory, and
     * gives no other, while it is out.  NULL: nothing is lent. */
    helio_loan *loan;
    uint32_t max_packet_bytes; /* largest accepted: mtu less what is below; 548 to 65507 */
    bool has_checksums;        /* false: data without a checksum is accepted */
    bool no_fast_path; /* each packet takes the general path: tests compare both (fast_path.h) */

    const char *instance; /* label of the statistics; copied, as all texts here */
    const char *endpoint; /* label */
    /* Group and port, or for unicast this receiver's own: the group NLA of NAKs, and the port that
     * other PGM implementations want feedback on. */
    helio_address group;
    helio_address feedback_address; /* of the socket feedback leaves from; a label */
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
    uint32_t group_size; /* estimated receivers of the group; 0: not known */
    bool never_asks;     /* sends no NAK; a missing packet is lost when it is no longer only late */
    bool in_arrival_order; /* whole packets are handed over as they come */
    int64_t spmr_delay_ns; /* longest random delay of an SPM request */
    int64_t stream_expiry_ns;
    uint32_t ack_packets;
    int64_t ack_interval_ns;
    uint64_t
        receiver; /* id of this receiver, the same in each life; 0: it neither acks nor reports */
    /* Of a message store: where it can be read.  Port 0: nowhere; family 0: at the address that its
     * feedback comes from. */
    helio_address service;
    /* It receives only streams of one share (helio_tsi_share); shares 0: all. */
    uint32_t share, shares;
    bool is_tagged;     /* reports mark this receiver as one that sets the pace */
    bool takes_unicast; /* of a group: repairs sent to feedback_address are read, and first */
    bool join_history;  /* a stream begins with the oldest packet its source offers */
    bool is_same_host;  /* sources can only be on this host */
    bool is_connected;  /* feedback goes back to where a stream's last SPM came from */
    /* Feedback goes to the path NLA of SPMs, where network elements put their own address. */
    bool network_elements;
    /* A designated local repairer, asked before the source (near.h); family 0: there is none. */
    helio_address repairer;
    /* This endpoint repairs the losses of others (repair/dlr.h); bytes 0: it does not. */
    helio_dlr_config repairs;
    uint64_t seed; /* of the random back-off; different in each instance */
    /* Reads how many datagrams this host has dropped so far before the engine could read them.
     * Called with the outlet's context when packets are missing.  NULL: nothing drops any. */
    uint64_t (*dropped)(void *context);
    bool drops_are_joined; /* one dropped datagram may have carried several packets */
} helio_rx_endpoint_config;

/* Creates an endpoint; release it with helio_rx_endpoint_destroy.  The outlet is always given an
 * address to send to (the source's).  `instance` gets the instance-wide counts, rx_streams,
 * receivers and memory_used included.  Errors: NOMEM, OPTION. */
int helio_rx_endpoint_create(const helio_rx_endpoint_config *config, helio_outlet outlet,
                             helio_stats *stats, helio_instance_stats *instance,
                             helio_rx_endpoint **out);
/* Brings the gauges of a repairer up to date. */
void helio_rx_endpoint_measure_repairs(helio_rx_endpoint *endpoint, int64_t now_ns);
/* `total` datagrams were dropped on this host so far; the caller reports it now and then. */
void helio_rx_endpoint_note_drops(helio_rx_endpoint *endpoint, uint64_t total, int64_t now_ns);
/* Ends every stream and subscription (sinks get on_stream_end).  Accepts NULL. */
void helio_rx_endpoint_destroy(helio_rx_endpoint *endpoint, helio_moment moment);

/* Delivers a topic to a sink from now on, from streams already known too.  Several subscriptions
 * may want one topic.  Errors: TOPIC (empty or longer than 255 bytes), NOMEM. */
int helio_rx_endpoint_subscribe(helio_rx_endpoint *endpoint, const char *topic,
                                const helio_sink *sink, helio_moment moment,
                                helio_subscription **out);
void helio_rx_endpoint_unsubscribe(helio_rx_endpoint *endpoint, helio_subscription *subscription,
                                   helio_moment moment);

/* A topic with this identifier has a subscription. */
bool helio_rx_endpoint_has_topic(const helio_rx_endpoint *endpoint, uint64_t id);
/* From now on the finder, which stays the caller's, is asked about topics that streams announce and
 * no subscription has (subscriptions.h). */
void helio_rx_endpoint_add_finder(helio_rx_endpoint *endpoint, helio_topic_finder *finder,
                                  helio_moment moment);
void helio_rx_endpoint_remove_finder(helio_rx_endpoint *endpoint, helio_topic_finder *finder,
                                     helio_moment moment);

/* The message stores that the sources announce, each once.  Returns their number, at most
 * `limit`. */
uint32_t helio_rx_endpoint_stores(const helio_rx_endpoint *endpoint, helio_address *out,
                                  uint32_t limit);

/* The application has acknowledged all messages before `next` of stream number `stream` of a
 * subscription (HELIO_SINK_ACK_APP).  Must not be called from the sink. */
void helio_rx_endpoint_acknowledge(helio_rx_endpoint *endpoint,
                                   const helio_subscription *subscription, uint32_t stream,
                                   uint64_t next, helio_moment moment);
/* The application has consumed more messages of a subscription with credit.  Must not be called
 * from the sink. */
void helio_rx_endpoint_grant(helio_rx_endpoint *endpoint, helio_moment moment);
/* Wall clock time at which the kernel received the next datagrams; 0: not known.  For
 * statistics. */
void helio_rx_endpoint_stamp(helio_rx_endpoint *endpoint, int64_t kernel_ns);
/* Whether the next datagrams were sent to this receiver alone, not to the group. */
void helio_rx_endpoint_set_aside(helio_rx_endpoint *endpoint, bool is_aside);

/* Requests messages `first` to `last` of a topic of a tracked stream again and passes them to the
 * sink (replay.h).  The caller must end the replay in any case.  Errors: STATE (the stream is not
 * tracked, or no SPM of it came yet), TOPIC, NOMEM. */
int helio_rx_endpoint_replay(helio_rx_endpoint *endpoint, const helio_tsi *tsi, const char *topic,
                             uint64_t first, uint64_t last, const helio_sink *sink,
                             helio_moment moment, helio_replay **out);
void helio_rx_endpoint_end_replay(helio_rx_endpoint *endpoint, helio_replay *replay,
                                  helio_moment moment);

/* Several packets follow.  Between these calls, those of the fast path are counted together, at the
 * latest at the end; so no application may be called meanwhile. */
void helio_rx_endpoint_begin_batch(helio_rx_endpoint *endpoint);
void helio_rx_endpoint_end_batch(helio_rx_endpoint *endpoint);

/* A datagram was received.  `receive_ns` is the wall clock time of the read.  The caller may reuse
 * the memory on return. */
void helio_rx_endpoint_on_packet(helio_rx_endpoint *endpoint, const void *packet, size_t length,
                                 const helio_address *from, int64_t receive_ns,
                                 helio_moment moment);
/* The connection to `peer` is closed: its streams may continue from another one of the same
 * host. */
void helio_rx_endpoint_detach(helio_rx_endpoint *endpoint, const helio_address *peer);
/* Sends NAKs and SPMRs that are due, offers held messages to sinks that had no room, and drops
 * silent streams.  Returns the amount of work done, 0 for none. */
int helio_rx_endpoint_poll(helio_rx_endpoint *endpoint, helio_moment moment);
/* When poll has work to do; HELIO_NEVER for none.  A stream that waits for room in a sink has no
 * deadline: poll it (is_blocked) when the sink has room. */
int64_t helio_rx_endpoint_next_deadline_ns(const helio_rx_endpoint *endpoint);
/* Some stream holds messages that its sink had no room for. */
bool helio_rx_endpoint_is_blocked(const helio_rx_endpoint *endpoint);
/* Although a stream is blocked, a replay waits for packets, and the windows have room for `packets`
 * more. */
bool helio_rx_endpoint_must_hear(const helio_rx_endpoint *endpoint, uint64_t packets);

#endif
