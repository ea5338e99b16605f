/* A stream being sent: PGM's source.  It numbers packets, keeps them for repair (send/history.h),
 * answers NAKs and SPMRs, takes note of acknowledgements (send/acks.h) and sends SPMs.
 *
 * Messages are appended to the open packet, which is closed when it is full, when the topic
 * changes, or by flush; there is no batching delay.  NCFs leave at once, SPMs before data, and
 * while data flows repairs get at least a third of the packets.  With a rate (send/pace.h) messages
 * and repairs wait for it, repairs within their share.
 *
 * A stream to several hosts (fan-out) sends data and SPMs to each of them, repairs and NCFs to
 * those that asked.  In a group it advises receivers how long to hold NAKs back (NAK_BO_IVL in SPMs
 * and NCFs) once they ask for one packet too often, and may ask from time to time how many they
 * are.
 *
 * It opens with three SPMs of an empty window, so that receivers already there miss nothing.  After
 * the last topic was removed and close was called it goes on answering for the linger time.
 *
 * One thread uses it.  It knows nothing of sockets, threads or clocks.  Times are ns. */
#ifndef HELIO_SEND_STREAM_H
#define HELIO_SEND_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/account.h"
#include "base/address.h"
#include "base/hold.h"
#include "base/moment.h"
#include "base/outlet.h"
#include "base/tsi.h"
#include "receivers/acks.h"
#include "receivers/action.h"
#include "receivers/allowance.h"
#include "receivers/receiver_view.h"
#include "send/admit.h"
#include "send/batcher.h"
#include "send/follow.h"
#include "send/govern.h"
#include "send/log.h"
#include "send/pace.h"
#include "send/slow.h"
#include "send/stability.h"
#include "stats/stats.h"
#include "window/txw.h"

/* What the histories of an instance's streams may take together. */
typedef struct helio_history_budget {
    uint64_t limit_bytes; /* 0: no limit */
    uint64_t used_bytes;  /* sum of the limits of all histories */
} helio_history_budget;

typedef struct helio_tx_stream_config {
    /* Called within append, with the outlet's context, now and then while a large message is cut
     * into packets: the moment to hand over packets and to let requests for repair in
     * (on_packet, poll), so that the message's own end does not push its beginning out of the
     * history.  A message as long as half the history is not to go on before `not_before_ns`
     * (monotonic): a receiver that is away for a moment must find it in the history.  May be
     * NULL. */
    void (*breathe)(void *context, int64_t not_before_ns);
    /* Called within append, with the outlet's context, when the next packet of a large message must
     * wait: the moment to hand over packets, to let requests for repair in and to poll, until
     * `until_ns` (monotonic; HELIO_NEVER: until something comes in) or a little longer or shorter.
     * Returns the time then.  NULL: nothing waits within append. */
    helio_moment (*wait)(void *context, int64_t until_ns);
    /* Sends a stable packet to the stream's destinations, as the outlet does, and all that was sent
     * before with it; called with the outlet's context.  NULL: the outlet does it. */
    int (*send_now)(void *context, const void *packet, size_t length);
    uint32_t first_sequence; /* number of the first data packet; usually 0 */
    bool has_checksums;      /* false: the way cannot damage packets, data goes without */
    /* Bytes that wait to be appended; called with the outlet's context.  May be NULL. */
    uint64_t (*queued)(void *context);
    /* A receiver has acknowledged more, or for the first time; within on_packet, with the outlet's
     * context.  May be NULL. */
    void (*on_ack)(void *context, const helio_acker *acker);
    const char *instance;      /* label of the statistics; copied, as all texts here */
    const char *endpoint;      /* label */
    helio_tsi tsi;             /* port: the UDP port of the stream's own socket */
    uint16_t destination_port; /* port of the endpoint */
    helio_address address;     /* this source's unicast IP: path NLA of SPMs, source NLA of NAKs */
    /* Group, or for unicast the first destination: group NLA.  NLAs of NAKs are checked against
     * `address` and `group` only when `group` is multicast. */
    helio_address group;
    const helio_address *destinations; /* fan-out: the hosts, ports included; copied */
    uint32_t destinations_count;       /* fan-out: 2 to 64; else 0 or 1 */
    bool awaits_credit; /* messages leave only as far as receivers have granted (send/credit.h) */
    bool is_raw; /* messages go bare (docs/wire.md 7): one topic, no announcements, none empty */
    uint32_t first_spm_sequence;  /* number of the first SPM; usually 0 */
    uint32_t max_packet_bytes;    /* largest PGM packet: mtu less what is below; 548 to 65507 */
    uint32_t window_packets;      /* history; rounded up to a power of two, at least 16 */
    uint64_t history_bytes;       /* most bytes of packets kept; 0: whatever window_packets take */
    int64_t history_ns;           /* longest time a packet is kept; 0: no limit */
    bool history_dynamic;         /* send/history.h */
    helio_history_budget *budget; /* of the instance; may be NULL */
    helio_account *account;       /* of the instance's memory; may be NULL */
    bool late_join;               /* SPMs offer the history to receivers that come late */
    uint32_t max_message_bytes;   /* at most 2^30 */
    uint32_t acks;       /* receivers that must acknowledge a packet before it leaves the history */
    int acks_missing;    /* HELIO_ACKS_MISSING_* */
    bool acks_of_stores; /* only message stores count */
    helio_tx_stability_limits unstable;
    int64_t acks_warn_ns;
    int64_t acker_expiry_ns; /* longer than ambient_interval_ns when acks > 0 */
    uint32_t max_receivers;  /* most receivers known one by one; 0: 1024 */
    bool is_connected;       /* each receiver has a connection, or memory: none can be forged */
    int64_t
        report_interval_ns; /* receivers report at least this often; 0: with NAKs and ACKs only */
    uint32_t report_rate;   /* most reports per second of all of them; 0: 1000 */
    bool is_copied;         /* the outlet copies each packet before it returns */
    int64_t linger_ns;
    int64_t heartbeat_min_ns;
    int64_t heartbeat_max_ns;
    int64_t ambient_interval_ns;
    int64_t announce_interval_ns;
    int64_t repair_linger_ns;
    int64_t poll_interval_ns; /* receivers are counted this often; 0: never */
    helio_limits limits;      /* of each receiver */
    double repair_budget;     /* times the data, for the repairs of one host; 0: no limit */
    uint64_t seed;            /* of the polls' random numbers */
    helio_tx_pace_config pace;
    helio_tx_govern_config govern;
    helio_tx_slow_config slow;
    helio_tx_follow_config follow;
    helio_tx_log_config log;
} helio_tx_stream_config;

/* Creates a stream and opens its statistics object (scope tx_stream); release it with
 * helio_tx_stream_destroy. `instance` gets the instance-wide counts, tx_streams, transmitters and
 * memory_used included.  Errors: NOMEM (also when the account has too little left), OPTION (the
 * same of the budget). */
int helio_tx_stream_create(const helio_tx_stream_config *config, helio_outlet outlet,
                           helio_stats *stats, helio_instance_stats *instance, helio_moment moment,
                           helio_tx_stream **out);
/* Frees everything at once, topics included; says nothing to receivers.  Accepts NULL. */
void helio_tx_stream_destroy(helio_tx_stream *stream, helio_moment moment);

/* Opens a topic, announces it and opens its statistics object (scope transmitter).  A name that is
 * open already gives the same topic again, to be removed as often.  Errors: TOPIC (empty, longer
 * than 255 bytes, or its identifier is another topic's; raw: another one is open), NOMEM,
 * CLOSED. */
int helio_tx_stream_add_topic(helio_tx_stream *stream, const char *name, helio_moment moment,
                              helio_tx_topic **out);
/* Sends what is open, tells receivers the topic's end and total, and frees the topic. */
void helio_tx_stream_remove_topic(helio_tx_stream *stream, helio_tx_topic *topic,
                                  helio_moment moment);

/* Tells at once where the stream is (SPM): somebody has come who cannot know. */
void helio_tx_stream_greet(helio_tx_stream *stream, helio_moment moment);

/* The longest message that the history takes with all its packets to be acknowledged. */
size_t helio_tx_stream_longest(const helio_tx_stream *stream);
/* Why messages are to be refused (acks_missing, unstable_action); GO: they are not. */
helio_admission helio_tx_stream_refusal(const helio_tx_stream *stream);
/* The quorum has acknowledged this packet. */
bool helio_tx_stream_is_stable(const helio_tx_stream *stream, uint64_t sequence);
/* Whether the topic's message with this number was sent.  *sequence: its last packet, or one that
 * left the history after it. */
bool helio_tx_stream_has_sent(const helio_tx_stream *stream, const helio_tx_topic *topic,
                              uint64_t number, uint64_t *sequence);
/* Lets go what is not acknowledged; it is counted and told of. */
void helio_tx_stream_release(helio_tx_stream *stream, helio_moment moment);
/* So many of its data packets the driver could not send, in all. */
void helio_tx_stream_note_unsent(helio_tx_stream *stream, uint64_t packets);
/* The newest packet sent. */
uint64_t helio_tx_stream_lead(const helio_tx_stream *stream);
/* What is known of its receivers: `*count` views, of which some may not be PRESENT. */
helio_receiver_view *helio_tx_stream_views(helio_tx_stream *stream, uint32_t *count);
/* The address and name of the receiver at an index that is PRESENT, and the share of packets it
 * lost lately. */
const helio_address *helio_tx_stream_receiver(helio_tx_stream *stream, helio_receiver_index index,
                                              const char **name, double *loss);
/* How far the receiver at an index is behind by now, and how much trouble it is. */
typedef struct helio_tx_trouble {
    helio_txw_behind behind; /* of what it told to have passed on; 0: that is not known */
    helio_behaviour class;
    helio_outlook outlook;
    int64_t forecast_ns; /* AHEAD: until what it needs leaves the history; else 0 */
    uint64_t blame_ns;   /* time that data waited for it alone */
    double nak_share;    /* of all that was ever asked for */
    double badness;      /* policy/badness.h */
} helio_tx_trouble;

helio_tx_trouble helio_tx_stream_trouble(const helio_tx_stream *stream, helio_receiver_index index,
                                         int64_t now_ns);
/* The newest packet with messages of the topic that was sent; 0: none. */
uint64_t helio_tx_stream_newest(const helio_tx_topic *topic);
/* How many receivers have acknowledged a packet, and all before it since they joined. */
uint32_t helio_tx_stream_acked_by(const helio_tx_stream *stream, uint64_t sequence);
/* Number of the topic's newest message that this receiver has acknowledged.  False: none, or not
 * known any more. */
bool helio_tx_stream_acked_message(const helio_tx_stream *stream, const helio_tx_topic *topic,
                                   const helio_acker *acker, uint64_t *number);
/* The i-th of those who acknowledge; NULL: there are no more. */
const helio_acker *helio_tx_stream_acker(const helio_tx_stream *stream, uint32_t i);

/* How many messages of the topic may be appended as far as credit goes. */
uint64_t helio_tx_stream_credit(const helio_tx_stream *stream, const helio_tx_topic *topic);
/* Messages of the topic wait for more. */
void helio_tx_stream_wait_for_credit(helio_tx_stream *stream, helio_tx_topic *topic,
                                     helio_moment moment);

/* A rate or a send limit is in force. */
bool helio_tx_stream_is_paced(const helio_tx_stream *stream);
/* When to ask again: the past when at once, HELIO_NEVER when something must come in first. */
int64_t helio_tx_stream_ready_ns(const helio_tx_stream *stream);
/* Nothing waits to be appended. */
void helio_tx_stream_rest(helio_tx_stream *stream, helio_moment moment);
/* Bytes per second from now on; 0: no limit. */
void helio_tx_stream_set_rate(helio_tx_stream *stream, uint64_t bytes_per_s, helio_moment moment);
helio_tx_pace *helio_tx_stream_pace(helio_tx_stream *stream);
/* The index of the receiver with this id; HELIO_RECEIVER_NONE: it is not tracked. */
helio_receiver_index helio_tx_stream_find(const helio_tx_stream *stream, uint64_t receiver);
/* Does something to the receiver at an index, or ends it, tells it what and why, and counts.
 * duration_ns: how long what stands is to stand; 0: until it is undone.  `why` begins with loss,
 * naks, lag, buffer or storm when it is one of these; of its text 40 bytes go out.  Errors: STATE
 * (nobody there, an expelled receiver is to be suspended, or nothing is there to be undone). */
int helio_tx_stream_act(helio_tx_stream *stream, helio_receiver_index index, helio_action action,
                        int64_t duration_ns, const char *why, bool by_hand, helio_moment moment);
/* Nobody is to ask for repairs, and nothing is repaired, for so long, at most an hour; 0: it is
 * over. */
void helio_tx_stream_cut_off(helio_tx_stream *stream, int64_t duration_ns, const char *why,
                             bool by_hand, helio_moment moment);

/* Puts one message into packets and sends those that are full.  `submit_ns` is wall clock.  The
 * data is copied. Errors: SIZE (too long, or raw and empty), CLOSED. */
int helio_tx_stream_append(helio_tx_stream *stream, helio_tx_topic *topic, const void *data,
                           size_t length, int64_t submit_ns, helio_moment moment);
/* The same with the time, wall clock, at which it was to be sent; 0: it has none. */
int helio_tx_stream_append_intended(helio_tx_stream *stream, helio_tx_topic *topic,
                                    const void *data, size_t length, int64_t submit_ns,
                                    int64_t intended_ns, helio_moment moment);
/* Puts messages of a list into the open packet: the first ones that join it and may go, none of more
 * than `longest` bytes.  The first must have been admitted (send/admit.h), and what holds for it
 * holds for those that join with it.  Returns how many; the next one is to be admitted and appended
 * alone. */
size_t helio_tx_stream_append_run(helio_tx_stream *stream, helio_tx_topic *topic,
                                  const helio_buffer *messages, size_t count, size_t longest,
                                  int64_t submit_ns, int64_t intended_ns, helio_moment moment);
/* Bytes left in the open packet; 0: none is open. */
size_t helio_tx_stream_room(const helio_tx_stream *stream);
/* What keeps messages of all topics from being appended, for statistics: its owner's. */
helio_hold *helio_tx_stream_hold(helio_tx_stream *stream);
/* Sends the open packet, if any.  Call it when there is nothing more to append. */
void helio_tx_stream_flush(helio_tx_stream *stream, helio_moment moment);

/* The datagrams that come next were read at this moment, or earlier, and not before they arrived:
 * what receivers that ask for the time are told. */
void helio_tx_stream_read_at(helio_tx_stream *stream, helio_moment moment);
/* A datagram came to the stream's socket (NAK, ACK, NNAK, SPMR, POLR; anything else is counted and
 * refused). */
void helio_tx_stream_on_packet(helio_tx_stream *stream, const void *packet, size_t length,
                               const helio_address *from, helio_moment moment);
/* Sends repairs (a bounded number), SPMs and announcements that are due.  Returns how many packets
 * were sent. */
int helio_tx_stream_poll(helio_tx_stream *stream, helio_moment moment);
/* Grows or shrinks a dynamic history when it is time to.  No driver may keep pointers to packets:
 * call it now and then, after a flush. */
void helio_tx_stream_tend(helio_tx_stream *stream, helio_moment moment);
/* Repairs that wait and that new data should wait for; none with a rate, whose budgets see to
 * it. */
uint64_t helio_tx_stream_pressing(const helio_tx_stream *stream);
/* A moment ago a packet was asked for that was sent a quarter of a full history ago: somebody is
 * behind. */
bool helio_tx_stream_is_outrunning(const helio_tx_stream *stream, int64_t now_ns);
/* When poll has something to do: 0 when it has now, HELIO_NEVER when nothing is to come. */
int64_t helio_tx_stream_next_deadline_ns(const helio_tx_stream *stream);

/* Removes the topics left, says FIN and starts to linger.  Nothing can be appended afterwards. */
void helio_tx_stream_close(helio_tx_stream *stream, helio_moment moment);
/* Tells receivers that nothing more comes and nothing will be repaired (RST), and finishes at once:
 * for a stream that is taken down before its time.  Nothing when it has said so or never opened. */
void helio_tx_stream_abort(helio_tx_stream *stream);
/* The linger time is over (and the stream can be destroyed without harm to anybody). */
bool helio_tx_stream_is_finished(const helio_tx_stream *stream, helio_moment moment);

/* Bytes of its decision log; 0: there is none. */
size_t helio_tx_stream_log_used(const helio_tx_stream *stream);

const helio_tsi *helio_tx_stream_tsi(const helio_tx_stream *stream);
/* Scope tx_stream. */
helio_stats_object *helio_tx_stream_object(helio_tx_stream *stream);
/* Scope transmitter.  The protocol counts everything there but queue_bytes and send_latency. */
helio_stats_object *helio_tx_topic_object(helio_tx_topic *topic);
/* What its transmitters say of their queues. */
helio_topic_books *helio_tx_topic_books(helio_tx_topic *topic);
/* Messages of the topic that are in the open packet, or not counted yet. */
uint64_t helio_tx_stream_open_messages(const helio_tx_stream *stream, const helio_tx_topic *topic);
/* What keeps messages of this topic alone from being appended, for statistics: its owner's. */
helio_hold *helio_tx_topic_hold(helio_tx_topic *topic);

#endif
