/* Generated from engine/catalogue/statistics.toml by generate.py; do not edit. */
#ifndef HELIO_GENERATED_STATISTICS_H
#define HELIO_GENERATED_STATISTICS_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum helio_scope {
    HELIO_SCOPE_INSTANCE = 1,
    HELIO_SCOPE_TX_STREAM = 2,
    HELIO_SCOPE_TRANSMITTER = 3,
    HELIO_SCOPE_PEER = 4,
    HELIO_SCOPE_RX_STREAM = 5,
    HELIO_SCOPE_RECEIVER = 6,
    HELIO_SCOPE_DETAIL = 7,
    HELIO_SCOPE_LOSS = 8,
    HELIO_SCOPE_INCIDENT = 9,
} helio_scope;

enum { HELIO_SCOPES_END = 10 };

/* X(SCOPE, scope, id, labels joined by ',', info joined by ',', help) */
#define HELIO_SCOPES(X) \
    X(INSTANCE, instance, 1, "instance", "version,host,pid,mode,idle,cpu,priority,lock_memory", "One engine in one process.") \
    X(TX_STREAM, tx_stream, 2, "instance,stream", "endpoint,address", "One numbered packet sequence being sent (a PGM transport session).") \
    X(TRANSMITTER, transmitter, 3, "instance,topic,stream", "endpoint", "One topic being sent on a stream.") \
    X(PEER, peer, 4, "instance,stream,peer", "name,receiver", "One receiver as the transmitter's stream sees it.") \
    X(RX_STREAM, rx_stream, 5, "instance,stream", "endpoint,source,feedback_address", "One numbered packet sequence being received (a PGM transport session).") \
    X(RECEIVER, receiver, 6, "instance,topic,stream", "endpoint", "One topic being received from one stream.") \
    X(DETAIL, detail, 7, "instance,selector", "", "A level of detail in force, of the instance or of the objects a selector fits; there is one only while it is.") \
    X(LOSS, loss, 8, "instance,stream,cause", "source,endpoint", "What was lost for good from one stream for one cause: kept until the instance ends, also when the stream is long gone.") \
    X(INCIDENT, incident, 9, "instance,event", "severity", "A kind of warning or error that has happened.")

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_INSTANCE(X) \
    X(messages_sent, COUNTER, "messages", 0, "messages_sent", "", "", "Messages accepted from the application and put into packets.") \
    X(messages_received, COUNTER, "messages", 0, "messages_received", "", "", "Messages delivered to the application.") \
    X(bytes_sent, COUNTER, "bytes", 0, "bytes_sent", "", "", "Payload bytes of the messages sent.") \
    X(bytes_received, COUNTER, "bytes", 0, "bytes_received", "", "", "Payload bytes of the messages delivered.") \
    X(packets_sent, COUNTER, "packets", 0, "packets_sent", "", "", "PGM packets of any type handed to the driver.") \
    X(packets_received, COUNTER, "packets", 0, "packets_received", "", "", "Datagrams read from the driver, valid or not.") \
    X(packet_bytes_sent, COUNTER, "bytes", 0, "packet_bytes_sent", "", "", "Bytes of the PGM packets sent, headers included.") \
    X(packet_bytes_received, COUNTER, "bytes", 0, "packet_bytes_received", "", "", "Bytes of the datagrams received, headers included.") \
    X(nak_packets_sent, COUNTER, "packets", 0, "nak_packets_sent", "", "", "NAK packets sent by all receivers of this instance.") \
    X(nak_packets_received, COUNTER, "packets", 0, "nak_packets_received", "", "", "NAK packets received by all streams of this instance.") \
    X(naks_sent, COUNTER, "sequences", 0, "naks_sent", "", "", "Sequence numbers asked for in the NAK packets sent.") \
    X(naks_received, COUNTER, "sequences", 0, "naks_received", "", "", "Sequence numbers asked for in the NAK packets received.") \
    X(retransmits_sent, COUNTER, "packets", 0, "retransmits_sent", "", "", "Repair packets (RDATA) sent.") \
    X(retransmit_bytes, COUNTER, "bytes", 0, "retransmit_bytes", "", "", "Bytes of the repair packets sent.") \
    X(heartbeats_sent, COUNTER, "packets", 0, "heartbeats_sent", "", "", "Source path messages (SPM) sent.") \
    X(heartbeats_received, COUNTER, "packets", 0, "heartbeats_received", "", "", "Source path messages (SPM) received.") \
    X(invalid_packets_size, COUNTER, "packets", 0, "invalid_packets", "reason", "size", "Datagrams refused, by cause.") \
    X(invalid_packets_version, COUNTER, "packets", 0, "invalid_packets", "reason", "version", "Datagrams refused, by cause.") \
    X(invalid_packets_type, COUNTER, "packets", 0, "invalid_packets", "reason", "type", "Datagrams refused, by cause.") \
    X(invalid_packets_checksum, COUNTER, "packets", 0, "invalid_packets", "reason", "checksum", "Datagrams refused, by cause.") \
    X(invalid_packets_options, COUNTER, "packets", 0, "invalid_packets", "reason", "options", "Datagrams refused, by cause.") \
    X(invalid_packets_address, COUNTER, "packets", 0, "invalid_packets", "reason", "address", "Datagrams refused, by cause.") \
    X(invalid_packets_payload, COUNTER, "packets", 0, "invalid_packets", "reason", "payload", "Datagrams refused, by cause.") \
    X(foreign_packets, COUNTER, "packets", 0, "foreign_packets", "", "", "Valid PGM data whose payload is not Heliograph's (another program on the group).") \
    X(unknown_session_packets, COUNTER, "packets", 0, "unknown_session_packets", "", "", "Valid packets that belong to no stream of this instance.") \
    X(send_would_block, COUNTER, "", 0, "send_would_block", "", "", "Sends refused because the submit queue was full.") \
    X(send_errors, COUNTER, "packets", 0, "send_errors", "", "", "Packets the driver could not send.") \
    X(socket_drops, COUNTER, "packets", 0, "socket_drops", "", "", "Datagrams the kernel dropped because a socket's receive buffer was full; several it had joined (option gro) count as one.") \
    X(connections, GAUGE, "", 0, "connections", "", "", "Connections standing (TCP), readers and writers present (shared memory).") \
    X(connects, COUNTER, "", 0, "connects", "", "", "Connections opened, reconnects included.") \
    X(disconnects, COUNTER, "", 0, "disconnects", "", "", "Connections that ended or broke.") \
    X(ring_overruns, COUNTER, "packets", 0, "ring_overruns", "", "", "Packets of shared memory rings overwritten before they were read.") \
    X(backlog_bytes, GAUGE, "bytes", 0, "backlog_bytes", "", "", "Bytes waiting in the engine for a connection to take them.") \
    X(kernel_backlog_bytes, GAUGE, "bytes", 0, "kernel_backlog_bytes", "", "", "Bytes the kernel has taken for connections and the other side has not acknowledged.") \
    X(memory_used, GAUGE, "bytes", 0, "memory_used", "", "", "Memory held by windows, queues and buffers.") \
    X(memory_limit, GAUGE, "bytes", 0, "memory_limit", "", "", "Most memory they may hold (option memory_limit); 0: no limit.") \
    X(memory_refusals, COUNTER, "", 0, "memory_refusals", "", "", "Times something could not be had, or grow, because of the memory limit.") \
    X(tx_streams, GAUGE, "", 0, "tx_streams", "", "", "Streams being sent.") \
    X(rx_streams, GAUGE, "", 0, "rx_streams", "", "", "Streams being received.") \
    X(transmitters, GAUGE, "", 0, "transmitters", "", "", "Topics being sent.") \
    X(receivers, GAUGE, "", 0, "receivers", "", "", "Topic receivers open.") \
    X(receivers_unmatched, GAUGE, "", 0, "receivers_unmatched", "", "", "Of these, those that no stream with their topic has been heard for.") \
    X(packets_no_room, COUNTER, "packets", 0, "packets_no_room", "", "", "Packets of new streams not followed, as there are max_streams already and none of them gives way.") \
    X(streams_absent, GAUGE, "", 0, "streams_absent", "", "", "Streams that ended without a word of their source and are remembered: one that comes back goes on where it was, and what was sent meanwhile is asked for or reported lost.") \
    X(streams_forgotten, COUNTER, "", 0, "streams_forgotten", "", "", "Streams that ended so and are not remembered any more, as too many did: should one come back, it is new, and what was sent meanwhile is not reported.") \
    X(state_refused_streams_of_address, COUNTER, "", 0, "state_refused", "reason", "streams_of_address", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_streams, COUNTER, "", 0, "state_refused", "reason", "streams", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_stream_memory, COUNTER, "", 0, "state_refused", "reason", "stream_memory", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_receivers_of_address, COUNTER, "", 0, "state_refused", "reason", "receivers_of_address", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_receivers, COUNTER, "", 0, "state_refused", "reason", "receivers", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_connections_of_address, COUNTER, "", 0, "state_refused", "reason", "connections_of_address", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_connections, COUNTER, "", 0, "state_refused", "reason", "connections", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_naks_unanswered, COUNTER, "", 0, "state_refused", "reason", "naks_unanswered", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(state_refused_repairs, COUNTER, "", 0, "state_refused", "reason", "repairs", "Streams, receivers, connections and requests that had proven nothing and were refused or put out, because one address (of_address) or all together had too many.") \
    X(events_emitted, COUNTER, "", 0, "events_emitted", "", "", "Events written to the event ring.") \
    X(events_suppressed, COUNTER, "", 0, "events_suppressed", "", "", "Events not written because there were too many of their kind; events_suppressed events tell how many of which.") \
    X(commands_served, COUNTER, "", 0, "commands_served", "", "", "Commands given through the segment that were carried out.") \
    X(commands_refused, COUNTER, "", 0, "commands_refused", "", "", "Commands given through the segment that were refused.") \
    X(cycles, COUNTER, "", 0, "cycles", "", "", "Duty cycles of the engine's thread that followed another at once.") \
    X(cycle_time_max, PEAK, "nanoseconds", 0, "cycle_time_max", "", "", "Longest of them.") \
    X(cycle_overruns, COUNTER, "", 0, "cycle_overruns", "", "", "Of these, longer than cycle_limit: a slow listener, a page fault, or the core went to somebody else.") \
    X(host_hiccup, HISTOGRAM, "nanoseconds", 1, "host_hiccup", "", "", "How late a thread that only sleeps (option hiccup_interval) woke: what the host does to everybody, the transport apart.") \
    X(rate_limit, GAUGE, "bytes", 0, "rate_limit", "", "", "Bytes per second all streams together may send at most; 0: no limit.") \
    X(detail_level, GAUGE, "", 0, "detail_level", "", "", "Level of detail of the statistics in force.") \
    X(clock_steps, COUNTER, "", 0, "clock_steps", "", "", "Times this host's wall clock was set: it jumped against the monotonic clock.") \
    X(losses_replaced, COUNTER, "", 0, "losses_replaced", "", "", "Losses of a stream for a cause that gave way to newer ones (scope loss).") \
    X(losses_unrecorded, COUNTER, "", 0, "losses_unrecorded", "", "", "Losses that are not in scope loss, as there was no room for one more stream or cause then.") \
    X(objects_refused, COUNTER, "", 0, "objects_refused", "", "", "Statistics objects that found no room in the segment.") \
    X(histograms_refused, COUNTER, "", 0, "histograms_refused", "", "", "Histograms that found no room in the segment when the level of detail rose.") \
    X(flight_ticks, COUNTER, "", 0, "flight_ticks", "", "", "Ticks of the flight recorder: times it looked at all statistics.") \
    X(flight_ticks_late, COUNTER, "", 0, "flight_ticks_late", "", "", "Ticks of the flight recorder that did not happen because it came too late.") \
    X(flight_interval, GAUGE, "nanoseconds", 0, "flight_interval", "", "", "Time between two ticks of the flight recorder as it is: longer than asked for where looking is dear; 0: there is none.") \
    X(flight_bytes, GAUGE, "bytes", 0, "flight_bytes", "", "", "Bytes of the flight recording in the ring.") \
    X(flight_freezes, COUNTER, "", 0, "flight_freezes", "", "", "Flight recordings kept.") \
    X(flight_errors, COUNTER, "", 0, "flight_errors", "", "", "Times the flight recorder could not open its ring, make it larger, or keep a recording.")

/* One engine in one process. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_instance_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t messages_sent;
    _Atomic uint64_t messages_received;
    _Atomic uint64_t bytes_sent;
    _Atomic uint64_t bytes_received;
    _Atomic uint64_t packets_sent;
    _Atomic uint64_t packets_received;
    _Atomic uint64_t packet_bytes_sent;
    _Atomic uint64_t packet_bytes_received;
    _Atomic uint64_t nak_packets_sent;
    _Atomic uint64_t nak_packets_received;
    _Atomic uint64_t naks_sent;
    _Atomic uint64_t naks_received;
    _Atomic uint64_t retransmits_sent;
    _Atomic uint64_t retransmit_bytes;
    _Atomic uint64_t heartbeats_sent;
    _Atomic uint64_t heartbeats_received;
    _Atomic uint64_t invalid_packets_size;
    _Atomic uint64_t invalid_packets_version;
    _Atomic uint64_t invalid_packets_type;
    _Atomic uint64_t invalid_packets_checksum;
    _Atomic uint64_t invalid_packets_options;
    _Atomic uint64_t invalid_packets_address;
    _Atomic uint64_t invalid_packets_payload;
    _Atomic uint64_t foreign_packets;
    _Atomic uint64_t unknown_session_packets;
    _Atomic uint64_t send_would_block;
    _Atomic uint64_t send_errors;
    _Atomic uint64_t socket_drops;
    _Atomic uint64_t connections;
    _Atomic uint64_t connects;
    _Atomic uint64_t disconnects;
    _Atomic uint64_t ring_overruns;
    _Atomic uint64_t backlog_bytes;
    _Atomic uint64_t kernel_backlog_bytes;
    _Atomic uint64_t memory_used;
    _Atomic uint64_t memory_limit;
    _Atomic uint64_t memory_refusals;
    _Atomic uint64_t tx_streams;
    _Atomic uint64_t rx_streams;
    _Atomic uint64_t transmitters;
    _Atomic uint64_t receivers;
    _Atomic uint64_t receivers_unmatched;
    _Atomic uint64_t packets_no_room;
    _Atomic uint64_t streams_absent;
    _Atomic uint64_t streams_forgotten;
    _Atomic uint64_t state_refused_streams_of_address;
    _Atomic uint64_t state_refused_streams;
    _Atomic uint64_t state_refused_stream_memory;
    _Atomic uint64_t state_refused_receivers_of_address;
    _Atomic uint64_t state_refused_receivers;
    _Atomic uint64_t state_refused_connections_of_address;
    _Atomic uint64_t state_refused_connections;
    _Atomic uint64_t state_refused_naks_unanswered;
    _Atomic uint64_t state_refused_repairs;
    _Atomic uint64_t events_emitted;
    _Atomic uint64_t events_suppressed;
    _Atomic uint64_t commands_served;
    _Atomic uint64_t commands_refused;
    _Atomic uint64_t cycles;
    _Atomic uint64_t cycle_time_max;
    _Atomic uint64_t cycle_overruns;
    _Atomic uint64_t host_hiccup;
    _Atomic uint64_t rate_limit;
    _Atomic uint64_t detail_level;
    _Atomic uint64_t clock_steps;
    _Atomic uint64_t losses_replaced;
    _Atomic uint64_t losses_unrecorded;
    _Atomic uint64_t objects_refused;
    _Atomic uint64_t histograms_refused;
    _Atomic uint64_t flight_ticks;
    _Atomic uint64_t flight_ticks_late;
    _Atomic uint64_t flight_interval;
    _Atomic uint64_t flight_bytes;
    _Atomic uint64_t flight_freezes;
    _Atomic uint64_t flight_errors;
} helio_instance_stats;

enum { /* indexes of a instance's histograms */
    HELIO_INSTANCE_HOST_HICCUP,
    HELIO_INSTANCE_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_TX_STREAM(X) \
    X(packets_sent, COUNTER, "packets", 0, "packets_sent", "", "", "Original data packets (ODATA) sent.") \
    X(bytes_sent, COUNTER, "bytes", 0, "bytes_sent", "", "", "Bytes of the original data packets, headers included.") \
    X(packets_unsent, COUNTER, "packets", 0, "packets_unsent", "", "", "Of these, packets the driver could not send: each copy of a fan-out counts.") \
    X(repair_packets, COUNTER, "packets", 0, "repair_packets", "", "", "Repair packets (RDATA) sent.") \
    X(repair_bytes, COUNTER, "bytes", 0, "repair_bytes", "", "", "Bytes of the repair packets, headers included.") \
    X(nak_packets_received, COUNTER, "packets", 0, "nak_packets_received", "", "", "Valid NAK packets received.") \
    X(naks_received, COUNTER, "sequences", 0, "naks_received", "", "", "Sequence numbers asked for.") \
    X(naks_others, COUNTER, "sequences", 0, "naks_others", "", "", "Of the sequence numbers asked for, those of receivers that are not among the peers: there was no room for them, or they gave way to others. With naks_received of all peers these are naks_received.") \
    X(blame_time, COUNTER, "nanoseconds", 0, "blame_time", "", "", "Time that data waited for one receiver; the peers' blame_time says for which.") \
    X(naks_answered_repaired, COUNTER, "sequences", 0, "naks_answered", "outcome", "repaired", "Sequence numbers asked for, by what became of the request.") \
    X(naks_answered_queued_already, COUNTER, "sequences", 0, "naks_answered", "outcome", "queued_already", "Sequence numbers asked for, by what became of the request.") \
    X(naks_answered_ignored_recent, COUNTER, "sequences", 0, "naks_answered", "outcome", "ignored_recent", "Sequence numbers asked for, by what became of the request.") \
    X(naks_answered_too_late, COUNTER, "sequences", 0, "naks_answered", "outcome", "too_late", "Sequence numbers asked for, by what became of the request.") \
    X(naks_answered_not_sent_yet, COUNTER, "sequences", 0, "naks_answered", "outcome", "not_sent_yet", "Sequence numbers asked for, by what became of the request.") \
    X(naks_answered_shed, COUNTER, "sequences", 0, "naks_answered", "outcome", "shed", "Sequence numbers asked for, by what became of the request.") \
    X(nak_confirmations_sent, COUNTER, "packets", 0, "nak_confirmations_sent", "", "", "NAK confirmations (NCF) sent.") \
    X(nak_confirmations_withheld, COUNTER, "packets", 0, "nak_confirmations_withheld", "", "", "NAK confirmations left out, as they would have passed the rate; who asked asks again.") \
    X(heartbeats_sent, COUNTER, "packets", 0, "heartbeats_sent", "", "", "Source path messages (SPM) sent.") \
    X(nnaks_received, COUNTER, "packets", 0, "nnaks_received", "", "", "Null NAKs (NNAK) received: a repairer on the way repaired.") \
    X(poll_responses_received, COUNTER, "packets", 0, "poll_responses_received", "", "", "Answers (POLR) to polls received.") \
    X(population, GAUGE, "", 0, "population", "", "", "Receivers there are, estimated by polling; 0 when nobody is polled.") \
    X(destinations, GAUGE, "", 0, "destinations", "", "", "Where the stream sends to: 1 for a group, else the number of hosts.") \
    X(nak_backoff_advised, GAUGE, "nanoseconds", 0, "nak_backoff_advised", "", "", "How long receivers are advised to hold requests back; 0: no advice.") \
    X(heartbeat_requests_received, COUNTER, "packets", 0, "heartbeat_requests_received", "", "", "Requests for a source path message (SPMR) received.") \
    X(history_packets, GAUGE, "packets", 0, "history_packets", "", "", "Packets kept for repair.") \
    X(history_bytes, GAUGE, "bytes", 0, "history_bytes", "", "", "Bytes kept for repair.") \
    X(history_limit_packets, GAUGE, "packets", 0, "history_limit_packets", "", "", "Most packets the history keeps for repair now.") \
    X(history_limit_bytes, GAUGE, "bytes", 0, "history_limit_bytes", "", "", "Most bytes the history keeps for repair now.") \
    X(history_trimmed_packets, COUNTER, "packets", 0, "history_trimmed", "cause", "packets", "Packets that left the history, by what made them go: their number, their bytes, or their age.") \
    X(history_trimmed_bytes, COUNTER, "packets", 0, "history_trimmed", "cause", "bytes", "Packets that left the history, by what made them go: their number, their bytes, or their age.") \
    X(history_trimmed_age, COUNTER, "packets", 0, "history_trimmed", "cause", "age", "Packets that left the history, by what made them go: their number, their bytes, or their age.") \
    X(window_trail, GAUGE, "sequences", 0, "window_trail", "", "", "Oldest sequence number that can be repaired (64-bit, widened).") \
    X(window_lead, GAUGE, "sequences", 0, "window_lead", "", "", "Newest sequence number sent (64-bit, widened).") \
    X(repair_queue, GAUGE, "packets", 0, "repair_queue", "", "", "Repairs waiting to be sent.") \
    X(peers, GAUGE, "", 0, "peers", "", "", "Receivers that have asked for repairs or acknowledged.") \
    X(reports_received, COUNTER, "packets", 0, "reports_received", "", "", "Reports that receivers send of themselves received, with NAKs and ACKs or alone.") \
    X(reports_refused_elsewhere, COUNTER, "packets", 0, "reports_refused", "reason", "elsewhere", "Reports refused: of a receiver known at another address, impossible, overtaken by a newer one, or beyond the receivers there is room for.") \
    X(reports_refused_impossible, COUNTER, "packets", 0, "reports_refused", "reason", "impossible", "Reports refused: of a receiver known at another address, impossible, overtaken by a newer one, or beyond the receivers there is room for.") \
    X(reports_refused_stale, COUNTER, "packets", 0, "reports_refused", "reason", "stale", "Reports refused: of a receiver known at another address, impossible, overtaken by a newer one, or beyond the receivers there is room for.") \
    X(reports_refused_no_room, COUNTER, "packets", 0, "reports_refused", "reason", "no_room", "Reports refused: of a receiver known at another address, impossible, overtaken by a newer one, or beyond the receivers there is room for.") \
    X(report_interval, GAUGE, "nanoseconds", 0, "report_interval", "", "", "How often receivers are asked to report now; 0: only with NAKs and ACKs.") \
    X(receivers_reporting, GAUGE, "", 0, "receivers_reporting", "", "", "Receivers that report and have been heard of late.") \
    X(grants_received, COUNTER, "", 0, "grants_received", "", "", "Grants of credit received, one for each topic, those of no avail included.") \
    X(grants_refused_not_awaited, COUNTER, "", 0, "grants_refused", "reason", "not_awaited", "Grants of no avail: this source awaits none, they are not (surely) of the receiver they name, of a topic it does not send, or for more than can be granted.") \
    X(grants_refused_unproven, COUNTER, "", 0, "grants_refused", "reason", "unproven", "Grants of no avail: this source awaits none, they are not (surely) of the receiver they name, of a topic it does not send, or for more than can be granted.") \
    X(grants_refused_topic, COUNTER, "", 0, "grants_refused", "reason", "topic", "Grants of no avail: this source awaits none, they are not (surely) of the receiver they name, of a topic it does not send, or for more than can be granted.") \
    X(grants_refused_impossible, COUNTER, "", 0, "grants_refused", "reason", "impossible", "Grants of no avail: this source awaits none, they are not (surely) of the receiver they name, of a topic it does not send, or for more than can be granted.") \
    X(ackers, GAUGE, "", 0, "ackers", "", "", "Receivers that acknowledge.") \
    X(acks_received, COUNTER, "packets", 0, "acks_received", "", "", "Acknowledgements (ACK) received.") \
    X(acks_shed, COUNTER, "packets", 0, "acks_shed", "", "", "Acknowledgements not heeded: more than ack_limit of one receiver.") \
    X(feedback_expelled, COUNTER, "packets", 0, "feedback_expelled", "", "", "Packets of receivers that this source has expelled, not heeded.") \
    X(receivers_treated, GAUGE, "", 0, "receivers_treated", "", "", "Receivers this source sheds, has suspended or has expelled.") \
    X(notices_sent, COUNTER, "", 0, "notices_sent", "", "", "Notices to receivers sent, repeats included.") \
    X(clock_answers_sent, COUNTER, "", 0, "clock_answers_sent", "", "", "Receivers' questions for the time that were answered.") \
    X(acks_refused_elsewhere, COUNTER, "packets", 0, "acks_refused", "reason", "elsewhere", "Acknowledgements refused: of a receiver known at another address, impossible, of an earlier life of their receiver, or beyond the receivers there is room for.") \
    X(acks_refused_impossible, COUNTER, "packets", 0, "acks_refused", "reason", "impossible", "Acknowledgements refused: of a receiver known at another address, impossible, of an earlier life of their receiver, or beyond the receivers there is room for.") \
    X(acks_refused_stale, COUNTER, "packets", 0, "acks_refused", "reason", "stale", "Acknowledgements refused: of a receiver known at another address, impossible, of an earlier life of their receiver, or beyond the receivers there is room for.") \
    X(acks_refused_no_room, COUNTER, "packets", 0, "acks_refused", "reason", "no_room", "Acknowledgements refused: of a receiver known at another address, impossible, of an earlier life of their receiver, or beyond the receivers there is room for.") \
    X(history_unacked, GAUGE, "packets", 0, "history_unacked", "", "", "Packets of the history that wait for the acknowledgements they need.") \
    X(history_unacked_dropped, COUNTER, "packets", 0, "history_unacked_dropped", "", "", "Packets that left the history without the acknowledgements they needed: at close, or because the receivers for them were gone (acks_missing=degrade).") \
    X(ack_blocks, COUNTER, "", 0, "ack_blocks", "", "", "Times sending stopped because the history was full of packets not acknowledged.") \
    X(rate_limit, GAUGE, "bytes", 0, "rate_limit", "", "", "Bytes per second the stream may send at most; 0: no limit of its own.") \
    X(rate_limited, COUNTER, "", 0, "rate_limited", "", "", "Times data had to wait for the rate, for repairs that go first, or for the send limit.") \
    X(rate_limited_time, COUNTER, "nanoseconds", 0, "rate_limited_time", "", "", "Time data waited for them.") \
    X(congested, GAUGE, "", 0, "congested", "", "", "1 while messages wait for the rate, for receivers or for room, and have for longer than congestion_time.") \
    X(congestions, COUNTER, "", 0, "congestions", "", "", "Times that began.") \
    X(rate_decided, GAUGE, "bytes", 0, "rate_decided", "", "", "Bytes per second the rate policy decided on, whether it is in force (rate_mode) or not; 0: no limit.") \
    X(rate_loss, GAUGE, "", 0, "rate_loss", "", "", "Loss the rate policy decides by, in millionths: what the receiver that counts loses at least.") \
    X(rate_state, GAUGE, "", 0, "rate_state", "", "", "What the rate policy did last: 0 it left the rate alone, 1 it lowered it, 2 it raised it.") \
    X(rate_decreases, COUNTER, "", 0, "rate_decreases", "", "", "Times the rate policy lowered the rate.") \
    X(rate_increases, COUNTER, "", 0, "rate_increases", "", "", "Times the rate policy raised the rate.") \
    X(send_room, GAUGE, "packets", 0, "send_room", "", "", "Packets that may be sent now as receivers' windows or PGMCC allow; 0 also when neither limits.") \
    X(pgmcc_window, GAUGE, "packets", 0, "pgmcc_window", "", "", "PGMCC's window; 0 when it does not run.") \
    X(pgmcc_cuts, COUNTER, "", 0, "pgmcc_cuts", "", "", "Times PGMCC halved its window for a loss.") \
    X(control_intervals, COUNTER, "", 0, "control_intervals", "", "", "Control intervals in which something happened.") \
    X(repairs_deferred, COUNTER, "", 0, "repairs_deferred", "", "", "Times repairs had to wait for their share of the rate.") \
    X(pace_latency, HISTOGRAM, "nanoseconds", 3, "pace_latency", "", "", "Each time the stream's data had to wait for the rate: until it went on.") \
    X(ack_blocked_time, COUNTER, "nanoseconds", 0, "ack_blocked_time", "", "", "Time sending stood still because the history was full of packets not acknowledged.") \
    X(slow_decisions_notify, COUNTER, "", 0, "slow_decisions", "decision", "notify", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_pace, COUNTER, "", 0, "slow_decisions", "decision", "pace", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_shed, COUNTER, "", 0, "slow_decisions", "decision", "shed", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_suspend_naks, COUNTER, "", 0, "slow_decisions", "decision", "suspend_naks", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_suspend, COUNTER, "", 0, "slow_decisions", "decision", "suspend", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_expel, COUNTER, "", 0, "slow_decisions", "decision", "expel", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_recover, COUNTER, "", 0, "slow_decisions", "decision", "recover", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_resume, COUNTER, "", 0, "slow_decisions", "decision", "resume", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_readmit, COUNTER, "", 0, "slow_decisions", "decision", "readmit", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_forecast, COUNTER, "", 0, "slow_decisions", "decision", "forecast", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_spare, COUNTER, "", 0, "slow_decisions", "decision", "spare", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_decisions_network, COUNTER, "", 0, "slow_decisions", "decision", "network", "Decisions about slow consumers, by what was decided: something to do, something that is over, or something to tell.") \
    X(slow_actions_notify, COUNTER, "", 0, "slow_actions", "decision", "notify", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_pace, COUNTER, "", 0, "slow_actions", "decision", "pace", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_shed, COUNTER, "", 0, "slow_actions", "decision", "shed", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_suspend_naks, COUNTER, "", 0, "slow_actions", "decision", "suspend_naks", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_suspend, COUNTER, "", 0, "slow_actions", "decision", "suspend", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_expel, COUNTER, "", 0, "slow_actions", "decision", "expel", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_recover, COUNTER, "", 0, "slow_actions", "decision", "recover", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_resume, COUNTER, "", 0, "slow_actions", "decision", "resume", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_readmit, COUNTER, "", 0, "slow_actions", "decision", "readmit", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_forecast, COUNTER, "", 0, "slow_actions", "decision", "forecast", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_spare, COUNTER, "", 0, "slow_actions", "decision", "spare", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(slow_actions_network, COUNTER, "", 0, "slow_actions", "decision", "network", "Of these, carried out (slow_mode=enforce) or told of (advise).") \
    X(consumers_in_trouble, GAUGE, "", 0, "consumers_in_trouble", "", "", "Receivers with a symptom over its threshold.") \
    X(consumers_isolated, GAUGE, "", 0, "consumers_isolated", "", "", "Receivers suspended or expelled, by hand or not; with slow_mode other than enforce also those that would be.") \
    X(consumer_ceiling, GAUGE, "bytes", 0, "consumer_ceiling", "", "", "Bytes per second the stream goes no faster than, as a slow receiver is waited for; 0: no such thing.") \
    X(storms, COUNTER, "", 0, "storms", "", "", "NAK storms detected.") \
    X(storm_active, GAUGE, "", 0, "storm_active", "", "", "1 while there is one.") \
    X(cutoffs, COUNTER, "", 0, "cutoffs", "", "", "Cut-offs of all requests that a storm called for; made with storm_mode=enforce.") \
    X(cutoff_time, COUNTER, "nanoseconds", 0, "cutoff_time", "", "", "How long these were to last, all together.")

/* One numbered packet sequence being sent (a PGM transport session). One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_tx_stream_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t packets_sent;
    _Atomic uint64_t bytes_sent;
    _Atomic uint64_t packets_unsent;
    _Atomic uint64_t repair_packets;
    _Atomic uint64_t repair_bytes;
    _Atomic uint64_t nak_packets_received;
    _Atomic uint64_t naks_received;
    _Atomic uint64_t naks_others;
    _Atomic uint64_t blame_time;
    _Atomic uint64_t naks_answered_repaired;
    _Atomic uint64_t naks_answered_queued_already;
    _Atomic uint64_t naks_answered_ignored_recent;
    _Atomic uint64_t naks_answered_too_late;
    _Atomic uint64_t naks_answered_not_sent_yet;
    _Atomic uint64_t naks_answered_shed;
    _Atomic uint64_t nak_confirmations_sent;
    _Atomic uint64_t nak_confirmations_withheld;
    _Atomic uint64_t heartbeats_sent;
    _Atomic uint64_t nnaks_received;
    _Atomic uint64_t poll_responses_received;
    _Atomic uint64_t population;
    _Atomic uint64_t destinations;
    _Atomic uint64_t nak_backoff_advised;
    _Atomic uint64_t heartbeat_requests_received;
    _Atomic uint64_t history_packets;
    _Atomic uint64_t history_bytes;
    _Atomic uint64_t history_limit_packets;
    _Atomic uint64_t history_limit_bytes;
    _Atomic uint64_t history_trimmed_packets;
    _Atomic uint64_t history_trimmed_bytes;
    _Atomic uint64_t history_trimmed_age;
    _Atomic uint64_t window_trail;
    _Atomic uint64_t window_lead;
    _Atomic uint64_t repair_queue;
    _Atomic uint64_t peers;
    _Atomic uint64_t reports_received;
    _Atomic uint64_t reports_refused_elsewhere;
    _Atomic uint64_t reports_refused_impossible;
    _Atomic uint64_t reports_refused_stale;
    _Atomic uint64_t reports_refused_no_room;
    _Atomic uint64_t report_interval;
    _Atomic uint64_t receivers_reporting;
    _Atomic uint64_t grants_received;
    _Atomic uint64_t grants_refused_not_awaited;
    _Atomic uint64_t grants_refused_unproven;
    _Atomic uint64_t grants_refused_topic;
    _Atomic uint64_t grants_refused_impossible;
    _Atomic uint64_t ackers;
    _Atomic uint64_t acks_received;
    _Atomic uint64_t acks_shed;
    _Atomic uint64_t feedback_expelled;
    _Atomic uint64_t receivers_treated;
    _Atomic uint64_t notices_sent;
    _Atomic uint64_t clock_answers_sent;
    _Atomic uint64_t acks_refused_elsewhere;
    _Atomic uint64_t acks_refused_impossible;
    _Atomic uint64_t acks_refused_stale;
    _Atomic uint64_t acks_refused_no_room;
    _Atomic uint64_t history_unacked;
    _Atomic uint64_t history_unacked_dropped;
    _Atomic uint64_t ack_blocks;
    _Atomic uint64_t rate_limit;
    _Atomic uint64_t rate_limited;
    _Atomic uint64_t rate_limited_time;
    _Atomic uint64_t congested;
    _Atomic uint64_t congestions;
    _Atomic uint64_t rate_decided;
    _Atomic uint64_t rate_loss;
    _Atomic uint64_t rate_state;
    _Atomic uint64_t rate_decreases;
    _Atomic uint64_t rate_increases;
    _Atomic uint64_t send_room;
    _Atomic uint64_t pgmcc_window;
    _Atomic uint64_t pgmcc_cuts;
    _Atomic uint64_t control_intervals;
    _Atomic uint64_t repairs_deferred;
    _Atomic uint64_t pace_latency;
    _Atomic uint64_t ack_blocked_time;
    _Atomic uint64_t slow_decisions_notify;
    _Atomic uint64_t slow_decisions_pace;
    _Atomic uint64_t slow_decisions_shed;
    _Atomic uint64_t slow_decisions_suspend_naks;
    _Atomic uint64_t slow_decisions_suspend;
    _Atomic uint64_t slow_decisions_expel;
    _Atomic uint64_t slow_decisions_recover;
    _Atomic uint64_t slow_decisions_resume;
    _Atomic uint64_t slow_decisions_readmit;
    _Atomic uint64_t slow_decisions_forecast;
    _Atomic uint64_t slow_decisions_spare;
    _Atomic uint64_t slow_decisions_network;
    _Atomic uint64_t slow_actions_notify;
    _Atomic uint64_t slow_actions_pace;
    _Atomic uint64_t slow_actions_shed;
    _Atomic uint64_t slow_actions_suspend_naks;
    _Atomic uint64_t slow_actions_suspend;
    _Atomic uint64_t slow_actions_expel;
    _Atomic uint64_t slow_actions_recover;
    _Atomic uint64_t slow_actions_resume;
    _Atomic uint64_t slow_actions_readmit;
    _Atomic uint64_t slow_actions_forecast;
    _Atomic uint64_t slow_actions_spare;
    _Atomic uint64_t slow_actions_network;
    _Atomic uint64_t consumers_in_trouble;
    _Atomic uint64_t consumers_isolated;
    _Atomic uint64_t consumer_ceiling;
    _Atomic uint64_t storms;
    _Atomic uint64_t storm_active;
    _Atomic uint64_t cutoffs;
    _Atomic uint64_t cutoff_time;
} helio_tx_stream_stats;

enum { /* indexes of a tx_stream's histograms */
    HELIO_TX_STREAM_PACE_LATENCY,
    HELIO_TX_STREAM_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_TRANSMITTER(X) \
    X(messages_sent, COUNTER, "messages", 0, "messages_sent", "", "", "Messages put into packets.") \
    X(messages_accepted, COUNTER, "messages", 0, "messages_accepted", "", "", "Messages taken from the application, those that wait and those dropped since included.") \
    X(bytes_sent, COUNTER, "bytes", 0, "bytes_sent", "", "", "Payload bytes of the messages sent.") \
    X(packets_sent, COUNTER, "packets", 0, "packets_sent", "", "", "Data packets (batches and fragments) of this topic.") \
    X(fragmented_messages, COUNTER, "messages", 0, "fragmented_messages", "", "", "Messages too large for one packet, sent in fragments.") \
    X(next_message, GAUGE, "messages", 0, "next_message", "", "", "Number the next message will carry (the first message is number 0).") \
    X(queue_bytes, GAUGE, "bytes", 0, "queue_bytes", "", "", "Bytes waiting in the submit queue.") \
    X(queue_limit_bytes, GAUGE, "bytes", 0, "queue_limit_bytes", "", "", "Size of the submit queue.") \
    X(queue_messages, GAUGE, "messages", 0, "queue_messages", "", "", "Messages waiting in the submit queue, where they are counted or dropped (queue_messages, overflow); else 0.") \
    X(messages_waiting, GAUGE, "messages", 0, "messages_waiting", "", "", "Messages accepted and not yet in a packet that was sent: in the submit queue or in the open packet.") \
    X(queue_age, GAUGE, "nanoseconds", 0, "queue_age", "", "", "How long the oldest message has waited in the submit queue; 0 when none waits.") \
    X(messages_dropped_newest, COUNTER, "messages", 0, "messages_dropped", "cause", "newest", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(messages_dropped_oldest, COUNTER, "messages", 0, "messages_dropped", "cause", "oldest", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(messages_dropped_conflated, COUNTER, "messages", 0, "messages_dropped", "cause", "conflated", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(messages_dropped_priority, COUNTER, "messages", 0, "messages_dropped", "cause", "priority", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(messages_dropped_age, COUNTER, "messages", 0, "messages_dropped", "cause", "age", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(messages_dropped_memory, COUNTER, "messages", 0, "messages_dropped", "cause", "memory", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(messages_dropped_credit, COUNTER, "messages", 0, "messages_dropped", "cause", "credit", "Messages dropped from the submit queue, never sent and never numbered, by cause.") \
    X(credit_limit, GAUGE, "messages", 0, "credit_limit", "", "", "Number of the first message that receivers have not granted yet (await_credit); 0: none grants anything.") \
    X(credit_waits, COUNTER, "", 0, "credit_waits", "", "", "Times that messages began to wait for credit.") \
    X(credit_wait_time, COUNTER, "nanoseconds", 0, "credit_wait_time", "", "", "How long messages have waited for credit, all together.") \
    X(latency_packets, COUNTER, "packets", 0, "latency_packets", "", "", "Packets closed while latency was measured.") \
    X(latency_samples, COUNTER, "packets", 0, "latency_samples", "", "", "Of these, those that were sampled (option sample): batch_latency counts them.") \
    X(batch_latency, HISTOGRAM, "nanoseconds", 2, "batch_latency", "", "", "Stage batch: submit of a packet's oldest message until the packet, or the first of its message, is closed, less the wait that pace_latency counts.") \
    X(pace_latency, HISTOGRAM, "nanoseconds", 3, "pace_latency", "", "", "Stage pace, of the same packets: how long their oldest message was held back by a rate, a window, credit or a lack of room, until it was packed; 0 for those that were not.") \
    X(send_latency, HISTOGRAM, "nanoseconds", 2, "send_latency", "", "", "Stage send: duration of the driver call that sent packets; for those that leave in it, a part of their network_latency.") \
    X(submit_delay, HISTOGRAM, "nanoseconds", 3, "submit_delay", "", "", "Intended send time until submit, of messages sent with one.")

/* One topic being sent on a stream. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_transmitter_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t messages_sent;
    _Atomic uint64_t messages_accepted;
    _Atomic uint64_t bytes_sent;
    _Atomic uint64_t packets_sent;
    _Atomic uint64_t fragmented_messages;
    _Atomic uint64_t next_message;
    _Atomic uint64_t queue_bytes;
    _Atomic uint64_t queue_limit_bytes;
    _Atomic uint64_t queue_messages;
    _Atomic uint64_t messages_waiting;
    _Atomic uint64_t queue_age;
    _Atomic uint64_t messages_dropped_newest;
    _Atomic uint64_t messages_dropped_oldest;
    _Atomic uint64_t messages_dropped_conflated;
    _Atomic uint64_t messages_dropped_priority;
    _Atomic uint64_t messages_dropped_age;
    _Atomic uint64_t messages_dropped_memory;
    _Atomic uint64_t messages_dropped_credit;
    _Atomic uint64_t credit_limit;
    _Atomic uint64_t credit_waits;
    _Atomic uint64_t credit_wait_time;
    _Atomic uint64_t latency_packets;
    _Atomic uint64_t latency_samples;
    _Atomic uint64_t batch_latency;
    _Atomic uint64_t pace_latency;
    _Atomic uint64_t send_latency;
    _Atomic uint64_t submit_delay;
} helio_transmitter_stats;

enum { /* indexes of a transmitter's histograms */
    HELIO_TRANSMITTER_BATCH_LATENCY,
    HELIO_TRANSMITTER_PACE_LATENCY,
    HELIO_TRANSMITTER_SEND_LATENCY,
    HELIO_TRANSMITTER_SUBMIT_DELAY,
    HELIO_TRANSMITTER_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_PEER(X) \
    X(nak_packets_received, COUNTER, "packets", 0, "nak_packets_received", "", "", "NAK packets received from this receiver.") \
    X(naks_received, COUNTER, "sequences", 0, "naks_received", "", "", "Sequence numbers this receiver asked for.") \
    X(naks_repeated, COUNTER, "sequences", 0, "naks_repeated", "", "", "Of these, asked for again; the rest are packets it missed.") \
    X(repairs_caused, COUNTER, "packets", 0, "repairs_caused", "", "", "Repair packets first asked for by this receiver.") \
    X(repair_bytes_caused, COUNTER, "bytes", 0, "repair_bytes_caused", "", "", "Bytes of the repair packets first asked for by this receiver.") \
    X(naks_too_late, COUNTER, "sequences", 0, "naks_too_late", "", "", "Sequence numbers asked for after they had left the history.") \
    X(acks_received, COUNTER, "packets", 0, "acks_received", "", "", "Acknowledgements received from this receiver.") \
    X(naks_shed, COUNTER, "sequences", 0, "naks_shed", "", "", "Sequence numbers it asked for that were not repaired: over its limit, or it is suspended.") \
    X(acks_shed, COUNTER, "packets", 0, "acks_shed", "", "", "Acknowledgements not heeded: more than ack_limit.") \
    X(treatment, GAUGE, "", 0, "treatment", "", "", "What is done to it: 0 nothing, 2 its repairs are shed, 3 its NAKs are suspended, 4 it is suspended, 6 it is expelled.") \
    X(acked_position, GAUGE, "sequences", 0, "acked_position", "", "", "Newest sequence number this receiver has acknowledged, with all before it (64-bit, widened).") \
    X(ack_lag, GAUGE, "packets", 0, "ack_lag", "", "", "Packets sent that this receiver had not acknowledged when it was last heard.") \
    X(last_heard, GAUGE, "nanoseconds", 0, "last_heard", "", "", "Wall clock time of its last NAK, acknowledgement or report, since 1970.") \
    X(reports_received, COUNTER, "packets", 0, "reports_received", "", "", "Reports of this receiver taken in; the cells below are what it told.") \
    X(packets_received, COUNTER, "packets", 0, "packets_received", "", "", "Data packets it has received, each once.") \
    X(packets_lost, COUNTER, "packets", 0, "packets_lost", "", "", "Data packets it first saw missing, whether or not they came later.") \
    X(packets_unrecoverable, COUNTER, "packets", 0, "packets_unrecoverable", "", "", "Of these, given up for good.") \
    X(loss, GAUGE, "", 0, "loss", "", "", "Share of the packets it missed at first, by its last reports, in millionths.") \
    X(buffer_fill, GAUGE, "", 0, "buffer_fill", "", "", "How full its buffers are, the fuller of receive window and receive queue, in millionths.") \
    X(position, GAUGE, "sequences", 0, "position", "", "", "Newest sequence number it has passed on in order (64-bit, widened).") \
    X(lag, GAUGE, "packets", 0, "lag", "", "", "Packets sent that it had not passed on when it last reported.") \
    X(window, GAUGE, "packets", 0, "window", "", "", "Packets beyond its position it has room for.") \
    X(round_trip, GAUGE, "nanoseconds", 0, "round_trip", "", "", "Time from here to the receiver and back, smoothed; 0: not known.") \
    X(state, GAUGE, "", 0, "state", "", "", "How it behaves: 0 not known yet, 1 it keeps up, 2 it falls behind, 3 it stands still, 4 it is silent or has left, 5 it catches up.") \
    X(forecast, GAUGE, "nanoseconds", 0, "forecast", "", "", "Time until what it needs leaves the history, as things go; 0: it will not.") \
    X(slow_since, GAUGE, "nanoseconds", 0, "slow_since", "", "", "Wall clock time since when a symptom is over its threshold; 0: none is.") \
    X(suspensions, COUNTER, "", 0, "suspensions", "", "", "Times it was suspended for being slow, or would have been.") \
    X(lag_bytes, GAUGE, "bytes", 0, "lag_bytes", "", "", "Bytes of the packets sent that it had not passed on when it last reported; of those that have left the history nothing is known, so it is at least so much.") \
    X(lag_time, GAUGE, "nanoseconds", 0, "lag_time", "", "", "How long ago the oldest packet was sent that it had not passed on when it last reported, at that time; at least so much when that packet has left the history.") \
    X(blame_time, COUNTER, "nanoseconds", 0, "blame_time", "", "", "Time that data waited for this receiver alone: for its room (flow_window), its acknowledgement (acks, pgmcc), its credit, or for a rate that was lowered on its account.") \
    X(clock_offset, SIGNED, "nanoseconds", 0, "clock_offset", "", "", "How far its wall clock is ahead of this host's, as it last told; below 0: behind.") \
    X(clock_error_bound, GAUGE, "nanoseconds", 0, "clock_error_bound", "", "", "The offset is off by no more than this, as it last told.") \
    X(clock_source, GAUGE, "", 0, "clock_source", "", "", "What it knows the offset by: 0 it is not known, 1 both are on one host, 2 an exchange of time stamps.") \
    X(badness, GAUGE, "", 0, "badness", "", "", "How much trouble it is, of late, in millionths: what is done to it, how it behaves, then what it loses, lags, fills and is waited for; orders receivers.")

/* One receiver as the transmitter's stream sees it. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_peer_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t nak_packets_received;
    _Atomic uint64_t naks_received;
    _Atomic uint64_t naks_repeated;
    _Atomic uint64_t repairs_caused;
    _Atomic uint64_t repair_bytes_caused;
    _Atomic uint64_t naks_too_late;
    _Atomic uint64_t acks_received;
    _Atomic uint64_t naks_shed;
    _Atomic uint64_t acks_shed;
    _Atomic uint64_t treatment;
    _Atomic uint64_t acked_position;
    _Atomic uint64_t ack_lag;
    _Atomic uint64_t last_heard;
    _Atomic uint64_t reports_received;
    _Atomic uint64_t packets_received;
    _Atomic uint64_t packets_lost;
    _Atomic uint64_t packets_unrecoverable;
    _Atomic uint64_t loss;
    _Atomic uint64_t buffer_fill;
    _Atomic uint64_t position;
    _Atomic uint64_t lag;
    _Atomic uint64_t window;
    _Atomic uint64_t round_trip;
    _Atomic uint64_t state;
    _Atomic uint64_t forecast;
    _Atomic uint64_t slow_since;
    _Atomic uint64_t suspensions;
    _Atomic uint64_t lag_bytes;
    _Atomic uint64_t lag_time;
    _Atomic uint64_t blame_time;
    _Atomic uint64_t clock_offset;
    _Atomic uint64_t clock_error_bound;
    _Atomic uint64_t clock_source;
    _Atomic uint64_t badness;
} helio_peer_stats;

enum { /* indexes of a peer's histograms */
    HELIO_PEER_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_RX_STREAM(X) \
    X(packets_received, COUNTER, "packets", 0, "packets_received", "", "", "Data packets received, original and repair, duplicates included.") \
    X(bytes_received, COUNTER, "bytes", 0, "bytes_received", "", "", "Bytes of the data packets received, headers included.") \
    X(packets_delivered, COUNTER, "packets", 0, "packets_delivered", "", "", "Data packets passed on in order.") \
    X(packets_recovered, COUNTER, "packets", 0, "packets_recovered", "", "", "Missing packets that came after all, as a repair or late, once asked for.") \
    X(packets_lost_window_advanced, COUNTER, "packets", 0, "packets_lost", "reason", "window_advanced", "Packets given up for good, by cause.") \
    X(packets_lost_ncf_retries, COUNTER, "packets", 0, "packets_lost", "reason", "ncf_retries", "Packets given up for good, by cause.") \
    X(packets_lost_data_retries, COUNTER, "packets", 0, "packets_lost", "reason", "data_retries", "Packets given up for good, by cause.") \
    X(packets_lost_deadline, COUNTER, "packets", 0, "packets_lost", "reason", "deadline", "Packets given up for good, by cause.") \
    X(packets_lost_overflow, COUNTER, "packets", 0, "packets_lost", "reason", "overflow", "Packets given up for good, by cause.") \
    X(packets_lost_reset, COUNTER, "packets", 0, "packets_lost", "reason", "reset", "Packets given up for good, by cause.") \
    X(packets_lost_not_requested, COUNTER, "packets", 0, "packets_lost", "reason", "not_requested", "Packets given up for good, by cause.") \
    X(packets_lost_suspended, COUNTER, "packets", 0, "packets_lost", "reason", "suspended", "Packets given up for good, by cause.") \
    X(losses_located_history, COUNTER, "packets", 0, "losses_located", "place", "history", "Packets that did not come in at first, recovered since or given up, by where they got lost: history (sent before this receiver came), late (nowhere: it came after it had been asked for), queue (no room as the application was behind), window (no room behind a missing packet), socket (dropped by this host's kernel, or a ring of shared memory), outside (they never reached this host).") \
    X(losses_located_late, COUNTER, "packets", 0, "losses_located", "place", "late", "Packets that did not come in at first, recovered since or given up, by where they got lost: history (sent before this receiver came), late (nowhere: it came after it had been asked for), queue (no room as the application was behind), window (no room behind a missing packet), socket (dropped by this host's kernel, or a ring of shared memory), outside (they never reached this host).") \
    X(losses_located_queue, COUNTER, "packets", 0, "losses_located", "place", "queue", "Packets that did not come in at first, recovered since or given up, by where they got lost: history (sent before this receiver came), late (nowhere: it came after it had been asked for), queue (no room as the application was behind), window (no room behind a missing packet), socket (dropped by this host's kernel, or a ring of shared memory), outside (they never reached this host).") \
    X(losses_located_window, COUNTER, "packets", 0, "losses_located", "place", "window", "Packets that did not come in at first, recovered since or given up, by where they got lost: history (sent before this receiver came), late (nowhere: it came after it had been asked for), queue (no room as the application was behind), window (no room behind a missing packet), socket (dropped by this host's kernel, or a ring of shared memory), outside (they never reached this host).") \
    X(losses_located_socket, COUNTER, "packets", 0, "losses_located", "place", "socket", "Packets that did not come in at first, recovered since or given up, by where they got lost: history (sent before this receiver came), late (nowhere: it came after it had been asked for), queue (no room as the application was behind), window (no room behind a missing packet), socket (dropped by this host's kernel, or a ring of shared memory), outside (they never reached this host).") \
    X(losses_located_outside, COUNTER, "packets", 0, "losses_located", "place", "outside", "Packets that did not come in at first, recovered since or given up, by where they got lost: history (sent before this receiver came), late (nowhere: it came after it had been asked for), queue (no room as the application was behind), window (no room behind a missing packet), socket (dropped by this host's kernel, or a ring of shared memory), outside (they never reached this host).") \
    X(gaps_detected, COUNTER, "packets", 0, "gaps_detected", "", "", "Packets first seen missing.") \
    X(gaps_filled, COUNTER, "packets", 0, "gaps_filled", "", "", "Of these, packets that came before they were asked for: they were late, not missing.") \
    X(out_of_order, COUNTER, "packets", 0, "out_of_order", "", "", "Original data packets that arrived after a newer one.") \
    X(duplicates, COUNTER, "packets", 0, "duplicates", "", "", "Data packets received again, or when they had been given up.") \
    X(packets_before_join, COUNTER, "packets", 0, "packets_before_join", "", "", "Data packets received that are older than where this receiver began.") \
    X(packets_refused, COUNTER, "packets", 0, "packets_refused", "", "", "Data packets refused because no window is as large as they say, or because they were far ahead of all others and nothing bore them out.") \
    X(overflows, COUNTER, "packets", 0, "overflows", "", "", "Data packets dropped because the receive window was full.") \
    X(nak_packets_sent, COUNTER, "packets", 0, "nak_packets_sent", "", "", "NAK packets sent.") \
    X(naks_sent, COUNTER, "sequences", 0, "naks_sent", "", "", "Sequence numbers asked for, repeats included.") \
    X(naks_retried, COUNTER, "sequences", 0, "naks_retried", "", "", "Sequence numbers asked for again.") \
    X(naks_suppressed, COUNTER, "sequences", 0, "naks_suppressed", "", "", "Requests not sent because another receiver had asked.") \
    X(nak_confirmations_received, COUNTER, "packets", 0, "nak_confirmations_received", "", "", "NAK confirmations (NCF) received.") \
    X(heartbeats_received, COUNTER, "packets", 0, "heartbeats_received", "", "", "Source path messages (SPM) received.") \
    X(notices_received, COUNTER, "", 0, "notices_received", "", "", "Notices of the source heeded: what it did to this receiver or to all.") \
    X(suspended, GAUGE, "", 0, "suspended", "", "", "1 while this receiver asks for nothing, as its source told it.") \
    X(polls_received, COUNTER, "packets", 0, "polls_received", "", "", "Polls received: questions how many receivers there are.") \
    X(poll_responses_sent, COUNTER, "packets", 0, "poll_responses_sent", "", "", "Answers (POLR) to polls sent.") \
    X(congestion_reports_sent, COUNTER, "packets", 0, "congestion_reports_sent", "", "", "NAK packets that carried a congestion report, which the source had asked for.") \
    X(nak_backoff, GAUGE, "nanoseconds", 0, "nak_backoff", "", "", "Longest time a request is held back, as adapted when the last one was sent.") \
    X(heartbeat_requests_sent, COUNTER, "packets", 0, "heartbeat_requests_sent", "", "", "Requests for a source path message (SPMR) sent.") \
    X(acks_sent, COUNTER, "packets", 0, "acks_sent", "", "", "Acknowledgements (ACK) sent.") \
    X(acked_position, GAUGE, "sequences", 0, "acked_position", "", "", "Newest sequence number acknowledged, with all before it (64-bit, widened).") \
    X(packets_filtered, COUNTER, "packets", 0, "packets_filtered", "", "", "Packets of topics nobody here wants, dropped before their messages were read.") \
    X(messages_filtered, COUNTER, "messages", 0, "messages_filtered", "", "", "Messages in the packets filtered.") \
    X(reports_sent, COUNTER, "packets", 0, "reports_sent", "", "", "Reports of itself sent to the source, with a NAK or an ACK or alone.") \
    X(grants_sent, COUNTER, "", 0, "grants_sent", "", "", "Grants of credit sent, one for each topic, repeats included.") \
    X(gap_bursts_1, COUNTER, "", 0, "gap_bursts", "length", "1", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_2_3, COUNTER, "", 0, "gap_bursts", "length", "2_3", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_4_7, COUNTER, "", 0, "gap_bursts", "length", "4_7", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_8_15, COUNTER, "", 0, "gap_bursts", "length", "8_15", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_16_31, COUNTER, "", 0, "gap_bursts", "length", "16_31", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_32_63, COUNTER, "", 0, "gap_bursts", "length", "32_63", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_64_127, COUNTER, "", 0, "gap_bursts", "length", "64_127", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(gap_bursts_128_more, COUNTER, "", 0, "gap_bursts", "length", "128_more", "Times packets were first seen missing, by how many neighbours were at once.") \
    X(outstanding_naks, GAUGE, "sequences", 0, "outstanding_naks", "", "", "Packets missing now and being asked for.") \
    X(held_packets, GAUGE, "packets", 0, "held_packets", "", "", "Packets received and waiting for an older one or for room in the receive queue.") \
    X(missing_packets, GAUGE, "packets", 0, "missing_packets", "", "", "Packets seen missing and neither received nor told to be lost yet.") \
    X(window_first, GAUGE, "sequences", 0, "window_first", "", "", "Sequence number this receiver began with (64-bit, widened).") \
    X(window_trail, GAUGE, "sequences", 0, "window_trail", "", "", "Oldest sequence number not yet passed on (64-bit, widened).") \
    X(window_lead, GAUGE, "sequences", 0, "window_lead", "", "", "Newest sequence number known to exist (64-bit, widened).") \
    X(last_activity, GAUGE, "nanoseconds", 0, "last_activity", "", "", "Wall clock time of the last packet of this stream, since 1970.") \
    X(clock_offset, SIGNED, "nanoseconds", 0, "clock_offset", "", "", "How far this host's wall clock is ahead of the source's; below 0: behind. Latencies from submit to delivery are too long by it.") \
    X(clock_error_bound, GAUGE, "nanoseconds", 0, "clock_error_bound", "", "", "The offset is off by no more than this: half of the shortest round trip, and what clocks may drift since.") \
    X(clock_source, GAUGE, "", 0, "clock_source", "", "", "What the offset is known by: 0 it is not known, 1 both are on one host, 2 an exchange of time stamps.") \
    X(clock_exchanges, COUNTER, "", 0, "clock_exchanges", "", "", "Exchanges of time stamps with the source that were taken in.") \
    X(clock_exchanges_refused, COUNTER, "", 0, "clock_exchanges_refused", "", "", "Answers of the source that were not asked for, or impossible.") \
    X(clock_jumps, COUNTER, "", 0, "clock_jumps", "", "", "Times the offset changed by more than its error bounds allow: a clock was set, or stood still.") \
    X(last_clock_exchange, GAUGE, "nanoseconds", 0, "last_clock_exchange", "", "", "Wall clock time of the last exchange, since 1970.") \
    X(socket_latency, HISTOGRAM, "nanoseconds", 3, "socket_latency", "", "", "Kernel took the packet in until it was read, packets of all kinds.") \
    X(recovery_time, HISTOGRAM, "nanoseconds", 1, "recovery_time", "", "", "Packet seen missing until it came.") \
    X(give_up_time, HISTOGRAM, "nanoseconds", 1, "give_up_time", "", "", "Packet seen missing until it was given up for good, by this receiver's own clock and not its source's window.")

/* One numbered packet sequence being received (a PGM transport session). One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_rx_stream_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t packets_received;
    _Atomic uint64_t bytes_received;
    _Atomic uint64_t packets_delivered;
    _Atomic uint64_t packets_recovered;
    _Atomic uint64_t packets_lost_window_advanced;
    _Atomic uint64_t packets_lost_ncf_retries;
    _Atomic uint64_t packets_lost_data_retries;
    _Atomic uint64_t packets_lost_deadline;
    _Atomic uint64_t packets_lost_overflow;
    _Atomic uint64_t packets_lost_reset;
    _Atomic uint64_t packets_lost_not_requested;
    _Atomic uint64_t packets_lost_suspended;
    _Atomic uint64_t losses_located_history;
    _Atomic uint64_t losses_located_late;
    _Atomic uint64_t losses_located_queue;
    _Atomic uint64_t losses_located_window;
    _Atomic uint64_t losses_located_socket;
    _Atomic uint64_t losses_located_outside;
    _Atomic uint64_t gaps_detected;
    _Atomic uint64_t gaps_filled;
    _Atomic uint64_t out_of_order;
    _Atomic uint64_t duplicates;
    _Atomic uint64_t packets_before_join;
    _Atomic uint64_t packets_refused;
    _Atomic uint64_t overflows;
    _Atomic uint64_t nak_packets_sent;
    _Atomic uint64_t naks_sent;
    _Atomic uint64_t naks_retried;
    _Atomic uint64_t naks_suppressed;
    _Atomic uint64_t nak_confirmations_received;
    _Atomic uint64_t heartbeats_received;
    _Atomic uint64_t notices_received;
    _Atomic uint64_t suspended;
    _Atomic uint64_t polls_received;
    _Atomic uint64_t poll_responses_sent;
    _Atomic uint64_t congestion_reports_sent;
    _Atomic uint64_t nak_backoff;
    _Atomic uint64_t heartbeat_requests_sent;
    _Atomic uint64_t acks_sent;
    _Atomic uint64_t acked_position;
    _Atomic uint64_t packets_filtered;
    _Atomic uint64_t messages_filtered;
    _Atomic uint64_t reports_sent;
    _Atomic uint64_t grants_sent;
    _Atomic uint64_t gap_bursts_1;
    _Atomic uint64_t gap_bursts_2_3;
    _Atomic uint64_t gap_bursts_4_7;
    _Atomic uint64_t gap_bursts_8_15;
    _Atomic uint64_t gap_bursts_16_31;
    _Atomic uint64_t gap_bursts_32_63;
    _Atomic uint64_t gap_bursts_64_127;
    _Atomic uint64_t gap_bursts_128_more;
    _Atomic uint64_t outstanding_naks;
    _Atomic uint64_t held_packets;
    _Atomic uint64_t missing_packets;
    _Atomic uint64_t window_first;
    _Atomic uint64_t window_trail;
    _Atomic uint64_t window_lead;
    _Atomic uint64_t last_activity;
    _Atomic uint64_t clock_offset;
    _Atomic uint64_t clock_error_bound;
    _Atomic uint64_t clock_source;
    _Atomic uint64_t clock_exchanges;
    _Atomic uint64_t clock_exchanges_refused;
    _Atomic uint64_t clock_jumps;
    _Atomic uint64_t last_clock_exchange;
    _Atomic uint64_t socket_latency;
    _Atomic uint64_t recovery_time;
    _Atomic uint64_t give_up_time;
} helio_rx_stream_stats;

enum { /* indexes of a rx_stream's histograms */
    HELIO_RX_STREAM_SOCKET_LATENCY,
    HELIO_RX_STREAM_RECOVERY_TIME,
    HELIO_RX_STREAM_GIVE_UP_TIME,
    HELIO_RX_STREAM_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_RECEIVER(X) \
    X(messages_delivered, COUNTER, "messages", 0, "messages_delivered", "", "", "Messages delivered to the application or its receive queue, those trimmed there included.") \
    X(messages_taken, COUNTER, "messages", 0, "messages_taken", "", "", "Messages the application has taken from the receive queue, or was called with.") \
    X(bytes_delivered, COUNTER, "bytes", 0, "bytes_delivered", "", "", "Payload bytes delivered to the application.") \
    X(messages_recovered, COUNTER, "messages", 0, "messages_recovered", "", "", "Delivered messages whose packet had been missing.") \
    X(messages_lost, COUNTER, "messages", 0, "messages_lost", "", "", "Messages known never to be delivered (their packets were given up, or the message was damaged).") \
    X(fragments_joined, COUNTER, "messages", 0, "fragments_joined", "", "", "Numbers used up by the further packets of messages that came in several (payload raw only, where numbers are those of packets).") \
    X(messages_before_join, GAUGE, "messages", 0, "messages_before_join", "", "", "Messages the topic carried before this receiver joined.") \
    X(next_message, GAUGE, "messages", 0, "next_message", "", "", "Number of the next message expected.") \
    X(messages_ahead, GAUGE, "messages", 0, "messages_ahead", "", "", "Messages delivered before their turn and not yet passed by it (order arrival).") \
    X(credit_granted, GAUGE, "messages", 0, "credit_granted", "", "", "Number of the first message the source has not been granted yet (option credit).") \
    X(queue_messages, GAUGE, "messages", 0, "queue_messages", "", "", "Messages waiting in the receive queue.") \
    X(queue_bytes, GAUGE, "bytes", 0, "queue_bytes", "", "", "Bytes waiting in the receive queue.") \
    X(queue_age, GAUGE, "nanoseconds", 0, "queue_age", "", "", "Age of the oldest message in the receive queue, one just handed out included; 0 when no message of the stream waits.") \
    X(messages_trimmed_count, COUNTER, "messages", 0, "messages_trimmed", "cause", "count", "Messages delivered to the receive queue and trimmed before the application took them, by cause.") \
    X(messages_trimmed_bytes, COUNTER, "messages", 0, "messages_trimmed", "cause", "bytes", "Messages delivered to the receive queue and trimmed before the application took them, by cause.") \
    X(messages_trimmed_age, COUNTER, "messages", 0, "messages_trimmed", "cause", "age", "Messages delivered to the receive queue and trimmed before the application took them, by cause.") \
    X(messages_trimmed_conflated, COUNTER, "messages", 0, "messages_trimmed", "cause", "conflated", "Messages delivered to the receive queue and trimmed before the application took them, by cause.") \
    X(messages_trimmed_priority, COUNTER, "messages", 0, "messages_trimmed", "cause", "priority", "Messages delivered to the receive queue and trimmed before the application took them, by cause.") \
    X(queue_peak_bytes, PEAK, "bytes", 0, "queue_peak_bytes", "", "", "Most bytes that ever waited in the receive queue.") \
    X(queue_limit_bytes, GAUGE, "bytes", 0, "queue_limit_bytes", "", "", "Size of the receive queue.") \
    X(queue_full, COUNTER, "", 0, "queue_full", "", "", "Times delivery stopped because the receive queue was full.") \
    X(latency_messages, COUNTER, "messages", 0, "latency_messages", "", "", "Messages handed over while latency was measured.") \
    X(latency_samples, COUNTER, "messages", 0, "latency_samples", "", "", "Of these, messages of packets that were sampled (option sample).") \
    X(latency_recovered, COUNTER, "messages", 0, "latency_recovered", "", "", "Of the sampled, messages of packets that had been missing and were asked for.") \
    X(latency_invalid_samples, COUNTER, "messages", 0, "latency_invalid_samples", "", "", "Latency samples refused because the clocks made them negative.") \
    X(interarrival_jitter, GAUGE, "nanoseconds", 0, "interarrival_jitter", "", "", "How much the way's time varies from packet to packet: RFC 3550's estimate over the sampled packets that came whole and by themselves.") \
    X(total_latency, HISTOGRAM, "nanoseconds", 2, "total_latency", "", "", "Total: submit of the packet's oldest message until a message is handed to the application or its queue; batch, pace, network, socket and order (for recovered packets batch, pace, recovery and order) add up to it.") \
    X(order_latency, HISTOGRAM, "nanoseconds", 2, "order_latency", "", "", "Stage order: packet taken up until it was next in order: reorder and recovery wait.") \
    X(callback_time, HISTOGRAM, "nanoseconds", 2, "callback_time", "", "", "Stage callback: duration of the application's callback, per batch.") \
    X(total_latency_recovered, HISTOGRAM, "nanoseconds", 3, "total_latency_recovered", "", "", "total_latency of recovered packets alone; what it has more is of packets never lost.") \
    X(order_latency_recovered, HISTOGRAM, "nanoseconds", 3, "order_latency_recovered", "", "", "order_latency of recovered packets alone.") \
    X(network_latency, HISTOGRAM, "nanoseconds", 3, "network_latency", "", "", "Stage network, of packets never lost: closed at the source until this host's kernel took it in (until it was taken up, where nothing stamps), by two clocks; with it the rest of the source's cycle and its system call.") \
    X(recovery_latency, HISTOGRAM, "nanoseconds", 3, "recovery_latency", "", "", "In place of network and socket for recovered packets: closed at the source until the repair was taken up, by two clocks.") \
    X(socket_latency, HISTOGRAM, "nanoseconds", 3, "socket_latency", "", "", "Stage socket, of packets never lost: kernel took it in until the engine took it up.") \
    X(dispatch_latency, HISTOGRAM, "nanoseconds", 3, "dispatch_latency", "", "", "Stage dispatch: in order until the callback starts or the application takes the message from the receive queue.") \
    X(end_latency, HISTOGRAM, "nanoseconds", 3, "end_latency", "", "", "Submit of the packet's oldest message until the callback starts or the application takes the message from the receive queue: total and dispatch.") \
    X(intended_latency, HISTOGRAM, "nanoseconds", 3, "intended_latency", "", "", "As total_latency, from the oldest intended send time of the packet's messages: what a sender that stalls leaves out of total_latency; of packets whose source told one.")

/* One topic being received from one stream. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_receiver_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t messages_delivered;
    _Atomic uint64_t messages_taken;
    _Atomic uint64_t bytes_delivered;
    _Atomic uint64_t messages_recovered;
    _Atomic uint64_t messages_lost;
    _Atomic uint64_t fragments_joined;
    _Atomic uint64_t messages_before_join;
    _Atomic uint64_t next_message;
    _Atomic uint64_t messages_ahead;
    _Atomic uint64_t credit_granted;
    _Atomic uint64_t queue_messages;
    _Atomic uint64_t queue_bytes;
    _Atomic uint64_t queue_age;
    _Atomic uint64_t messages_trimmed_count;
    _Atomic uint64_t messages_trimmed_bytes;
    _Atomic uint64_t messages_trimmed_age;
    _Atomic uint64_t messages_trimmed_conflated;
    _Atomic uint64_t messages_trimmed_priority;
    _Atomic uint64_t queue_peak_bytes;
    _Atomic uint64_t queue_limit_bytes;
    _Atomic uint64_t queue_full;
    _Atomic uint64_t latency_messages;
    _Atomic uint64_t latency_samples;
    _Atomic uint64_t latency_recovered;
    _Atomic uint64_t latency_invalid_samples;
    _Atomic uint64_t interarrival_jitter;
    _Atomic uint64_t total_latency;
    _Atomic uint64_t order_latency;
    _Atomic uint64_t callback_time;
    _Atomic uint64_t total_latency_recovered;
    _Atomic uint64_t order_latency_recovered;
    _Atomic uint64_t network_latency;
    _Atomic uint64_t recovery_latency;
    _Atomic uint64_t socket_latency;
    _Atomic uint64_t dispatch_latency;
    _Atomic uint64_t end_latency;
    _Atomic uint64_t intended_latency;
} helio_receiver_stats;

enum { /* indexes of a receiver's histograms */
    HELIO_RECEIVER_TOTAL_LATENCY,
    HELIO_RECEIVER_ORDER_LATENCY,
    HELIO_RECEIVER_CALLBACK_TIME,
    HELIO_RECEIVER_TOTAL_LATENCY_RECOVERED,
    HELIO_RECEIVER_ORDER_LATENCY_RECOVERED,
    HELIO_RECEIVER_NETWORK_LATENCY,
    HELIO_RECEIVER_RECOVERY_LATENCY,
    HELIO_RECEIVER_SOCKET_LATENCY,
    HELIO_RECEIVER_DISPATCH_LATENCY,
    HELIO_RECEIVER_END_LATENCY,
    HELIO_RECEIVER_INTENDED_LATENCY,
    HELIO_RECEIVER_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_DETAIL(X) \
    X(level, GAUGE, "", 0, "level", "", "", "The level of detail, 0 to 3.") \
    X(until, GAUGE, "nanoseconds", 0, "until", "", "", "Wall clock time of its end, since 1970; 0: it has none.") \
    X(objects, GAUGE, "", 0, "objects", "", "", "Streams, transmitters, receivers and peers whose level it decides.")

/* A level of detail in force, of the instance or of the objects a selector fits; there is one only while it is. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_detail_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t level;
    _Atomic uint64_t until;
    _Atomic uint64_t objects;
} helio_detail_stats;

enum { /* indexes of a detail's histograms */
    HELIO_DETAIL_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_LOSS(X) \
    X(observations, COUNTER, "", 0, "observations", "", "", "Times neighbouring packets were given up for good.") \
    X(packets, COUNTER, "packets", 0, "packets", "", "", "Packets given up for good.") \
    X(bytes_estimated, COUNTER, "bytes", 0, "bytes_estimated", "", "", "Bytes of these packets by the mean of those the stream brought: what never came has no known size.") \
    X(longest, PEAK, "packets", 0, "longest", "", "", "Most neighbouring packets given up at once.") \
    X(first_lost, GAUGE, "nanoseconds", 0, "first_lost", "", "", "Wall clock time of the first loss, since 1970.") \
    X(last_lost, GAUGE, "nanoseconds", 0, "last_lost", "", "", "Wall clock time of the last loss, since 1970.") \
    X(first_sequence, GAUGE, "sequences", 0, "first_sequence", "", "", "Number of the first packet of the first loss (64-bit, widened).") \
    X(last_sequence, GAUGE, "sequences", 0, "last_sequence", "", "", "Number of the last packet of the last loss (64-bit, widened).")

/* What was lost for good from one stream for one cause: kept until the instance ends, also when the stream is long gone. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_loss_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t observations;
    _Atomic uint64_t packets;
    _Atomic uint64_t bytes_estimated;
    _Atomic uint64_t longest;
    _Atomic uint64_t first_lost;
    _Atomic uint64_t last_lost;
    _Atomic uint64_t first_sequence;
    _Atomic uint64_t last_sequence;
} helio_loss_stats;

enum { /* indexes of a loss's histograms */
    HELIO_LOSS_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_INCIDENT(X) \
    X(occurrences, COUNTER, "", 0, "occurrences", "", "", "Times it happened, those included that were held back as there were too many.") \
    X(first, GAUGE, "nanoseconds", 0, "first", "", "", "Wall clock time of the first time, since 1970.") \
    X(last, GAUGE, "nanoseconds", 0, "last", "", "", "Wall clock time of the last time, since 1970.")

/* A kind of warning or error that has happened. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_incident_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t occurrences;
    _Atomic uint64_t first;
    _Atomic uint64_t last;
} helio_incident_stats;

enum { /* indexes of a incident's histograms */
    HELIO_INCIDENT_HISTOGRAMS
};

/* What an object may have, without which some of its cells do not apply. */
enum {
    HELIO_HAS_UDP = 1 << 0,
    HELIO_HAS_TCP = 1 << 1,
    HELIO_HAS_RING = 1 << 2,
    HELIO_HAS_THREAD = 1 << 3,
    HELIO_HAS_POLLS = 1 << 4,
    HELIO_HAS_GROUP = 1 << 5,
    HELIO_HAS_ACKS = 1 << 6,
    HELIO_HAS_PGMCC = 1 << 7,
    HELIO_HAS_COUNTED = 1 << 8,
    HELIO_HAS_CREDIT = 1 << 9,
    HELIO_HAS_CLOCK = 1 << 10,
    HELIO_HAS_RAW = 1 << 11,
    HELIO_HAS_QUEUE = 1 << 12,
};

/* X(SCOPE, scope, cell, features of which one makes the cell apply) */
#define HELIO_STATS_ONLY(X) \
    X(INSTANCE, instance, socket_drops, HELIO_HAS_UDP) \
    X(INSTANCE, instance, connections, HELIO_HAS_TCP | HELIO_HAS_RING) \
    X(INSTANCE, instance, connects, HELIO_HAS_TCP | HELIO_HAS_RING) \
    X(INSTANCE, instance, disconnects, HELIO_HAS_TCP | HELIO_HAS_RING) \
    X(INSTANCE, instance, ring_overruns, HELIO_HAS_RING) \
    X(INSTANCE, instance, backlog_bytes, HELIO_HAS_TCP) \
    X(INSTANCE, instance, kernel_backlog_bytes, HELIO_HAS_TCP) \
    X(INSTANCE, instance, cycles, HELIO_HAS_THREAD) \
    X(INSTANCE, instance, cycle_time_max, HELIO_HAS_THREAD) \
    X(INSTANCE, instance, cycle_overruns, HELIO_HAS_THREAD) \
    X(TX_STREAM, tx_stream, poll_responses_received, HELIO_HAS_POLLS) \
    X(TX_STREAM, tx_stream, population, HELIO_HAS_POLLS) \
    X(TX_STREAM, tx_stream, nak_backoff_advised, HELIO_HAS_GROUP) \
    X(TX_STREAM, tx_stream, history_unacked, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, history_unacked_dropped, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, ack_blocks, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, pgmcc_window, HELIO_HAS_PGMCC) \
    X(TX_STREAM, tx_stream, pgmcc_cuts, HELIO_HAS_PGMCC) \
    X(TX_STREAM, tx_stream, ack_blocked_time, HELIO_HAS_ACKS) \
    X(TRANSMITTER, transmitter, queue_messages, HELIO_HAS_COUNTED) \
    X(TRANSMITTER, transmitter, credit_limit, HELIO_HAS_CREDIT) \
    X(TRANSMITTER, transmitter, credit_waits, HELIO_HAS_CREDIT) \
    X(TRANSMITTER, transmitter, credit_wait_time, HELIO_HAS_CREDIT) \
    X(PEER, peer, acks_received, HELIO_HAS_ACKS) \
    X(PEER, peer, acked_position, HELIO_HAS_ACKS) \
    X(PEER, peer, ack_lag, HELIO_HAS_ACKS) \
    X(PEER, peer, clock_offset, HELIO_HAS_CLOCK) \
    X(PEER, peer, clock_error_bound, HELIO_HAS_CLOCK) \
    X(RX_STREAM, rx_stream, acks_sent, HELIO_HAS_ACKS) \
    X(RX_STREAM, rx_stream, acked_position, HELIO_HAS_ACKS) \
    X(RX_STREAM, rx_stream, clock_offset, HELIO_HAS_CLOCK) \
    X(RX_STREAM, rx_stream, clock_error_bound, HELIO_HAS_CLOCK) \
    X(RX_STREAM, rx_stream, last_clock_exchange, HELIO_HAS_CLOCK) \
    X(RECEIVER, receiver, fragments_joined, HELIO_HAS_RAW) \
    X(RECEIVER, receiver, credit_granted, HELIO_HAS_CREDIT) \
    X(RECEIVER, receiver, queue_messages, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, queue_bytes, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, queue_age, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, messages_trimmed_count, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, messages_trimmed_bytes, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, messages_trimmed_age, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, messages_trimmed_conflated, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, messages_trimmed_priority, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, queue_peak_bytes, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, queue_limit_bytes, HELIO_HAS_QUEUE) \
    X(RECEIVER, receiver, queue_full, HELIO_HAS_QUEUE)

#endif
