/* Generated from engine/catalogue/statistics.toml by generate.py; do not edit. */
/* clang-format off */
#ifndef HELIO_GENERATED_STATISTICS_H
#define HELIO_GENERATED_STATISTICS_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum helio_scope {
    HELIO_SCOPE_INSTANCE = 1,
    HELIO_SCOPE_TX_STREAM = 2,
    HELIO_SCOPE_TRANSMITTER = 3,
    HELIO_SCOPE_TX_RECEIVER = 4,
    HELIO_SCOPE_RX_STREAM = 5,
    HELIO_SCOPE_RECEIVER = 6,
    HELIO_SCOPE_DETAIL = 7,
    HELIO_SCOPE_LOSS = 8,
    HELIO_SCOPE_INCIDENT = 9,
    HELIO_SCOPE_STORE = 10,
    HELIO_SCOPE_STORE_STREAM = 11,
    HELIO_SCOPE_FOLLOWER = 14,
    HELIO_SCOPE_STORE_SUBSCRIPTION = 15,
} helio_scope;

enum { HELIO_SCOPES_END = 16 };

/* X(SCOPE, scope, id, labels joined by ',', info joined by ',', help) */
#define HELIO_SCOPES(X) \
    X(INSTANCE, instance, 1, "instance", "version,build,host,pid,mode,idle,cpu,priority,lock_memory", "One engine in one process.") \
    X(TX_STREAM, tx_stream, 2, "instance,stream", "endpoint,address", "One numbered packet sequence being sent (a PGM transport session).") \
    X(TRANSMITTER, transmitter, 3, "instance,topic,stream", "endpoint", "One topic being sent on a stream.") \
    X(TX_RECEIVER, tx_receiver, 4, "instance,stream,receiver", "name,receiver_id", "One receiver of a stream, as its source sees it.") \
    X(RX_STREAM, rx_stream, 5, "instance,stream", "endpoint,source,feedback_address", "One numbered packet sequence being received (a PGM transport session).") \
    X(RECEIVER, receiver, 6, "instance,topic,stream", "endpoint", "One topic being received from one stream.") \
    X(DETAIL, detail, 7, "instance,selector", "", "A level of detail in force, of the instance or of the objects a selector matches. It exists while the level is in force.") \
    X(LOSS, loss, 8, "instance,stream,cause", "source,endpoint", "Losses of one stream for one cause, kept until the instance ends.") \
    X(INCIDENT, incident, 9, "instance,event", "severity", "A kind of warning or error that has occurred.") \
    X(STORE, store, 10, "instance", "directory,fsync", "A message store: the files that an instance keeps messages in.") \
    X(STORE_STREAM, store_stream, 11, "instance,stream", "", "A stream that a message store keeps.") \
    X(FOLLOWER, follower, 14, "instance,topic,stream,subscription", "", "A topic of one stream that a receiver takes from stores too (options recover, join=store and durable).") \
    X(STORE_SUBSCRIPTION, store_subscription, 15, "instance,topic,stream,subscription", "", "A durable subscription that a message store keeps, in one stream.")

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_INSTANCE(X) \
    X(messages_sent, COUNTER, "messages", 0, "messages_sent", "", "", "Messages accepted from the application and put into packets.") \
    X(messages_received, COUNTER, "messages", 0, "messages_received", "", "", "Messages delivered to the application.") \
    X(bytes_sent, COUNTER, "bytes", 0, "bytes_sent", "", "", "Payload bytes of the messages sent.") \
    X(bytes_received, COUNTER, "bytes", 0, "bytes_received", "", "", "Payload bytes of the messages delivered.") \
    X(packets_sent, COUNTER, "packets", 0, "packets_sent", "", "", "PGM packets of any type handed to the driver.") \
    X(packets_received, COUNTER, "packets", 0, "packets_received", "", "", "Datagrams read from the driver, valid and invalid.") \
    X(packet_bytes_sent, COUNTER, "bytes", 0, "packet_bytes_sent", "", "", "Bytes of the PGM packets sent, headers included.") \
    X(packet_bytes_received, COUNTER, "bytes", 0, "packet_bytes_received", "", "", "Bytes of the datagrams received, headers included.") \
    X(nak_packets_sent, COUNTER, "packets", 0, "nak_packets_sent", "", "", "NAK packets sent by all receivers of this instance.") \
    X(nak_packets_received, COUNTER, "packets", 0, "nak_packets_received", "", "", "NAK packets received by all streams of this instance.") \
    X(naks_sent, COUNTER, "sequences", 0, "naks_sent", "", "", "Sequence numbers requested in the NAK packets sent, repeats included.") \
    X(naks_received, COUNTER, "sequences", 0, "naks_received", "", "", "Sequence numbers requested in the NAK packets received, repeats included.") \
    X(repair_packets, COUNTER, "packets", 0, "repair_packets", "", "", "Repair packets (RDATA) sent.") \
    X(repair_bytes, COUNTER, "bytes", 0, "repair_bytes", "", "", "Bytes of the repair packets sent.") \
    X(heartbeats_sent, COUNTER, "packets", 0, "heartbeats_sent", "", "", "Heartbeats (SPM) sent.") \
    X(heartbeats_received, COUNTER, "packets", 0, "heartbeats_received", "", "", "Heartbeats (SPM) received.") \
    X(invalid_packets_size, COUNTER, "packets", 0, "invalid_packets", "reason", "size", "Datagrams refused as invalid, by reason.") \
    X(invalid_packets_version, COUNTER, "packets", 0, "invalid_packets", "reason", "version", "Datagrams refused as invalid, by reason.") \
    X(invalid_packets_type, COUNTER, "packets", 0, "invalid_packets", "reason", "type", "Datagrams refused as invalid, by reason.") \
    X(invalid_packets_checksum, COUNTER, "packets", 0, "invalid_packets", "reason", "checksum", "Datagrams refused as invalid, by reason.") \
    X(invalid_packets_options, COUNTER, "packets", 0, "invalid_packets", "reason", "options", "Datagrams refused as invalid, by reason.") \
    X(invalid_packets_address, COUNTER, "packets", 0, "invalid_packets", "reason", "address", "Datagrams refused as invalid, by reason.") \
    X(invalid_packets_payload, COUNTER, "packets", 0, "invalid_packets", "reason", "payload", "Datagrams refused as invalid, by reason.") \
    X(foreign_packets, COUNTER, "packets", 0, "foreign_packets", "", "", "Valid PGM data packets with the payload of another program on the group.") \
    X(unknown_session_packets, COUNTER, "packets", 0, "unknown_session_packets", "", "", "Valid packets that belong to no stream of this instance.") \
    X(send_would_block, COUNTER, "", 0, "send_would_block", "", "", "Sends refused because the submit queue was full.") \
    X(send_errors, COUNTER, "packets", 0, "send_errors", "", "", "Packets the driver could not send.") \
    X(socket_drops, COUNTER, "packets", 0, "socket_drops", "", "", "Datagrams the kernel dropped because a socket's receive buffer was full. Datagrams joined by the option gro count as one.") \
    X(connections, GAUGE, "", 0, "connections", "", "", "Open connections (TCP), or readers and writers attached to rings (shared memory).") \
    X(connects, COUNTER, "", 0, "connects", "", "", "Connections opened, reconnects included.") \
    X(disconnects, COUNTER, "", 0, "disconnects", "", "", "Connections closed or broken.") \
    X(ring_overruns, COUNTER, "packets", 0, "ring_overruns", "", "", "Packets of shared memory rings overwritten before this instance read them.") \
    X(backlog_bytes, GAUGE, "bytes", 0, "backlog_bytes", "", "", "Bytes queued in the engine until a TCP connection accepts them.") \
    X(kernel_backlog_bytes, GAUGE, "bytes", 0, "kernel_backlog_bytes", "", "", "Bytes queued in the kernel that the other side of a TCP connection has not acknowledged.") \
    X(memory_used, GAUGE, "bytes", 0, "memory_used", "", "", "Memory held by windows, queues and buffers.") \
    X(memory_limit, GAUGE, "bytes", 0, "memory_limit", "", "", "Limit of the memory for windows, queues and buffers (option memory_limit); 0: no limit.") \
    X(memory_refusals, COUNTER, "", 0, "memory_refusals", "", "", "Allocations refused because of the memory limit.") \
    X(repairer_kept_packets, GAUGE, "packets", 0, "repairer_kept_packets", "", "", "Packets kept for the repair of other receivers (option repair_at).") \
    X(repairer_kept_bytes, GAUGE, "bytes", 0, "repairer_kept_bytes", "", "", "Bytes of the packets kept for the repair of other receivers.") \
    X(tx_streams, GAUGE, "", 0, "tx_streams", "", "", "Streams being sent.") \
    X(rx_streams, GAUGE, "", 0, "rx_streams", "", "", "Streams being received.") \
    X(transmitters, GAUGE, "", 0, "transmitters", "", "", "Topics being sent.") \
    X(receivers, GAUGE, "", 0, "receivers", "", "", "Topic receivers open.") \
    X(receivers_unmatched, GAUGE, "", 0, "receivers_unmatched", "", "", "Open topic receivers that have found no stream with their topic.") \
    X(packets_no_room, COUNTER, "packets", 0, "packets_no_room", "", "", "Packets of new streams refused because max_streams streams are tracked and none can be evicted.") \
    X(streams_absent, GAUGE, "", 0, "streams_absent", "", "", "Streams that stopped without leaving and are remembered. A stream that returns resumes at its old position.") \
    X(streams_forgotten, COUNTER, "", 0, "streams_forgotten", "", "", "Absent streams evicted because too many are remembered. If one returns it counts as new, and its losses meanwhile are not reported.") \
    X(state_refused_streams_of_address, COUNTER, "", 0, "state_refused", "reason", "streams_of_address", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_streams, COUNTER, "", 0, "state_refused", "reason", "streams", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_stream_memory, COUNTER, "", 0, "state_refused", "reason", "stream_memory", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_receivers_of_address, COUNTER, "", 0, "state_refused", "reason", "receivers_of_address", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_receivers, COUNTER, "", 0, "state_refused", "reason", "receivers", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_connections_of_address, COUNTER, "", 0, "state_refused", "reason", "connections_of_address", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_connections, COUNTER, "", 0, "state_refused", "reason", "connections", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_naks_unanswered, COUNTER, "", 0, "state_refused", "reason", "naks_unanswered", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(state_refused_repairs, COUNTER, "", 0, "state_refused", "reason", "repairs", "Unproven streams, receivers, connections and requests refused or evicted, by reason: a limit per address (of_address) or in total.") \
    X(events_emitted, COUNTER, "", 0, "events_emitted", "", "", "Events written to the event ring.") \
    X(events_suppressed, COUNTER, "", 0, "events_suppressed", "", "", "Events not written because their kind exceeded its limit; events_suppressed events report the numbers.") \
    X(commands_served, COUNTER, "", 0, "commands_served", "", "", "Commands received through the segment and executed.") \
    X(commands_refused, COUNTER, "", 0, "commands_refused", "", "", "Commands received through the segment and refused.") \
    X(cycles, COUNTER, "", 0, "cycles", "", "", "Duty cycles of the engine thread that followed another one without a pause.") \
    X(cycle_time_max, PEAK, "nanoseconds", 0, "cycle_time_max", "", "", "Longest duty cycle of the engine thread so far.") \
    X(cycle_overruns, COUNTER, "", 0, "cycle_overruns", "", "", "Duty cycles longer than 50 ms, caused by a slow listener, a page fault or loss of the core.") \
    X(host_hiccup, HISTOGRAM, "nanoseconds", 1, "host_hiccup", "", "", "Wake-up delay of a thread that only sleeps (option hiccup_interval): delay caused by the host and not by the transport. It has no values without that thread.") \
    X(rate_limit, GAUGE, "bytes", 0, "rate_limit", "", "", "Limit of the bytes per second of all streams together; 0: no limit.") \
    X(detail_level, GAUGE, "", 0, "detail_level", "", "", "Level of detail of the statistics now in force.") \
    X(clock_steps, COUNTER, "", 0, "clock_steps", "", "", "Steps of this host's wall clock against its monotonic clock.") \
    X(losses_replaced, COUNTER, "", 0, "losses_replaced", "", "", "Entries of scope loss evicted by newer ones.") \
    X(losses_unrecorded, COUNTER, "", 0, "losses_unrecorded", "", "", "Losses missing from scope loss because it had no room for another stream or cause.") \
    X(objects_refused, COUNTER, "", 0, "objects_refused", "", "", "Statistics objects that found no room in the segment.") \
    X(histograms_refused, COUNTER, "", 0, "histograms_refused", "", "", "Histograms that found no room in the segment when the level of detail rose.") \
    X(flight_ticks, COUNTER, "", 0, "flight_ticks", "", "", "Ticks of the flight recorder: samples of all statistics.") \
    X(flight_ticks_late, COUNTER, "", 0, "flight_ticks_late", "", "", "Ticks of the flight recorder skipped because the recorder ran late.") \
    X(flight_interval, GAUGE, "nanoseconds", 0, "flight_interval", "", "", "Time between two ticks of the flight recorder now. It exceeds the option when sampling is expensive; 0: no recorder.") \
    X(flight_bytes, GAUGE, "bytes", 0, "flight_bytes", "", "", "Bytes of the flight recording in the ring.") \
    X(flight_freezes, COUNTER, "", 0, "flight_freezes", "", "", "Flight recordings saved to a file.") \
    X(flight_errors, COUNTER, "", 0, "flight_errors", "", "", "Failures of the flight recorder to open its ring, extend it, or save a recording.")

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
    _Atomic uint64_t repair_packets;
    _Atomic uint64_t repair_bytes;
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
    _Atomic uint64_t repairer_kept_packets;
    _Atomic uint64_t repairer_kept_bytes;
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
    X(packets_unsent, COUNTER, "packets", 0, "packets_unsent", "", "", "Original data packets the driver could not send. Each copy of a fan-out counts.") \
    X(repair_packets, COUNTER, "packets", 0, "repair_packets", "", "", "Repair packets (RDATA) sent.") \
    X(repair_bytes, COUNTER, "bytes", 0, "repair_bytes", "", "", "Bytes of the repair packets, headers included.") \
    X(nak_packets_received, COUNTER, "packets", 0, "nak_packets_received", "", "", "Valid NAK packets received.") \
    X(naks_received, COUNTER, "sequences", 0, "naks_received", "", "", "Sequence numbers requested by receivers, repeats included.") \
    X(naks_untracked, COUNTER, "sequences", 0, "naks_untracked", "", "", "Sequence numbers requested by receivers that are not tracked, or no longer. With those of the tracked receivers they add up to naks_received.") \
    X(blame_time, COUNTER, "nanoseconds", 0, "blame_time", "", "", "Time data waited for exactly one receiver; the receivers' blame_time shows which.") \
    X(naks_answered_repaired, COUNTER, "sequences", 0, "naks_answered", "outcome", "repaired", "Sequence numbers requested, by outcome of the request.") \
    X(naks_answered_queued_already, COUNTER, "sequences", 0, "naks_answered", "outcome", "queued_already", "Sequence numbers requested, by outcome of the request.") \
    X(naks_answered_ignored_recent, COUNTER, "sequences", 0, "naks_answered", "outcome", "ignored_recent", "Sequence numbers requested, by outcome of the request.") \
    X(naks_answered_too_late, COUNTER, "sequences", 0, "naks_answered", "outcome", "too_late", "Sequence numbers requested, by outcome of the request.") \
    X(naks_answered_not_sent_yet, COUNTER, "sequences", 0, "naks_answered", "outcome", "not_sent_yet", "Sequence numbers requested, by outcome of the request.") \
    X(naks_answered_shed, COUNTER, "sequences", 0, "naks_answered", "outcome", "shed", "Sequence numbers requested, by outcome of the request.") \
    X(nak_confirmations_sent, COUNTER, "packets", 0, "nak_confirmations_sent", "", "", "NAK confirmations (NCF) sent.") \
    X(nak_confirmations_withheld, COUNTER, "packets", 0, "nak_confirmations_withheld", "", "", "NAK confirmations not sent because they would have exceeded the rate; the receiver repeats its request.") \
    X(heartbeats_sent, COUNTER, "packets", 0, "heartbeats_sent", "", "", "Heartbeats (SPM) sent.") \
    X(nnaks_received, COUNTER, "packets", 0, "nnaks_received", "", "", "Null NAKs (NNAK) received: a repairer on the path has sent the repair.") \
    X(poll_responses_received, COUNTER, "packets", 0, "poll_responses_received", "", "", "Poll responses (POLR) received.") \
    X(population, GAUGE, "", 0, "population", "", "", "Number of receivers estimated by polling; 0: no polling.") \
    X(destinations, GAUGE, "", 0, "destinations", "", "", "Destinations of the stream: 1 for a group, else the number of hosts.") \
    X(nak_backoff_advised, GAUGE, "nanoseconds", 0, "nak_backoff_advised", "", "", "Back-off time advised to receivers before they request repairs; 0: no advice.") \
    X(heartbeat_requests_received, COUNTER, "packets", 0, "heartbeat_requests_received", "", "", "Requests for a heartbeat (SPMR) received.") \
    X(history_packets, GAUGE, "packets", 0, "history_packets", "", "", "Packets in the history.") \
    X(history_bytes, GAUGE, "bytes", 0, "history_bytes", "", "", "Bytes in the history.") \
    X(history_limit_packets, GAUGE, "packets", 0, "history_limit_packets", "", "", "Limit of the packets in the history now.") \
    X(history_limit_bytes, GAUGE, "bytes", 0, "history_limit_bytes", "", "", "Limit of the bytes in the history now.") \
    X(history_trimmed_packets, COUNTER, "packets", 0, "history_trimmed", "cause", "packets", "Packets that left the history, by the limit that was reached: packets, bytes or age.") \
    X(history_trimmed_bytes, COUNTER, "packets", 0, "history_trimmed", "cause", "bytes", "Packets that left the history, by the limit that was reached: packets, bytes or age.") \
    X(history_trimmed_age, COUNTER, "packets", 0, "history_trimmed", "cause", "age", "Packets that left the history, by the limit that was reached: packets, bytes or age.") \
    X(window_trail, GAUGE, "sequences", 0, "window_trail", "", "", "Oldest sequence number in the history (64-bit, widened).") \
    X(window_lead, GAUGE, "sequences", 0, "window_lead", "", "", "Newest sequence number sent (64-bit, widened).") \
    X(repair_queue, GAUGE, "packets", 0, "repair_queue", "", "", "Repairs waiting to be sent.") \
    X(receivers, GAUGE, "", 0, "receivers", "", "", "Receivers tracked: those that have requested repairs, acknowledged or reported.") \
    X(reports_received, COUNTER, "packets", 0, "reports_received", "", "", "Reports received from receivers, in NAKs, in ACKs or alone.") \
    X(reports_refused_elsewhere, COUNTER, "packets", 0, "reports_refused", "reason", "elsewhere", "Reports refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(reports_refused_impossible, COUNTER, "packets", 0, "reports_refused", "reason", "impossible", "Reports refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(reports_refused_stale, COUNTER, "packets", 0, "reports_refused", "reason", "stale", "Reports refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(reports_refused_no_room, COUNTER, "packets", 0, "reports_refused", "reason", "no_room", "Reports refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(report_interval, GAUGE, "nanoseconds", 0, "report_interval", "", "", "Interval at which receivers are to report now; 0: only with NAKs and ACKs.") \
    X(receivers_reporting, GAUGE, "", 0, "receivers_reporting", "", "", "Receivers that report and are not silent.") \
    X(grants_received, COUNTER, "", 0, "grants_received", "", "", "Grants of credit received, one for each topic, ineffective ones included.") \
    X(grants_refused_not_awaited, COUNTER, "", 0, "grants_refused", "reason", "not_awaited", "Grants of credit refused, by reason: credit is not awaited, the receiver is unproven, the topic is unknown, or the number is impossible.") \
    X(grants_refused_unproven, COUNTER, "", 0, "grants_refused", "reason", "unproven", "Grants of credit refused, by reason: credit is not awaited, the receiver is unproven, the topic is unknown, or the number is impossible.") \
    X(grants_refused_topic, COUNTER, "", 0, "grants_refused", "reason", "topic", "Grants of credit refused, by reason: credit is not awaited, the receiver is unproven, the topic is unknown, or the number is impossible.") \
    X(grants_refused_impossible, COUNTER, "", 0, "grants_refused", "reason", "impossible", "Grants of credit refused, by reason: credit is not awaited, the receiver is unproven, the topic is unknown, or the number is impossible.") \
    X(receivers_acknowledging, GAUGE, "", 0, "receivers_acknowledging", "", "", "Receivers that acknowledge.") \
    X(acks_received, COUNTER, "packets", 0, "acks_received", "", "", "Acknowledgements (ACK) received.") \
    X(acks_shed, COUNTER, "packets", 0, "acks_shed", "", "", "Acknowledgements ignored because a receiver exceeded ack_limit.") \
    X(feedback_expelled, COUNTER, "packets", 0, "feedback_expelled", "", "", "Packets ignored because they came from expelled receivers.") \
    X(receivers_restricted, GAUGE, "", 0, "receivers_restricted", "", "", "Receivers shed, suspended or expelled now.") \
    X(notices_sent, COUNTER, "", 0, "notices_sent", "", "", "Notices sent to receivers, repeats included.") \
    X(clock_answers_sent, COUNTER, "", 0, "clock_answers_sent", "", "", "Answers sent to receivers that requested the time.") \
    X(acks_refused_elsewhere, COUNTER, "packets", 0, "acks_refused", "reason", "elsewhere", "Acknowledgements refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(acks_refused_impossible, COUNTER, "packets", 0, "acks_refused", "reason", "impossible", "Acknowledgements refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(acks_refused_stale, COUNTER, "packets", 0, "acks_refused", "reason", "stale", "Acknowledgements refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(acks_refused_no_room, COUNTER, "packets", 0, "acks_refused", "reason", "no_room", "Acknowledgements refused, by reason: the receiver has another address, the content is impossible or older, or no room for the receiver.") \
    X(history_unacked, GAUGE, "packets", 0, "history_unacked", "", "", "Packets in the history that still need acknowledgements.") \
    X(history_unacked_dropped, COUNTER, "packets", 0, "history_unacked_dropped", "", "", "Packets that left the history unacknowledged, at close or because their receivers had left (acks_missing=degrade).") \
    X(ack_blocks, COUNTER, "", 0, "ack_blocks", "", "", "Times sending stopped because the history was full of unacknowledged packets.") \
    X(rate_limit, GAUGE, "bytes", 0, "rate_limit", "", "", "Limit of the stream's bytes per second; 0: no limit of its own.") \
    X(rate_limited, COUNTER, "", 0, "rate_limited", "", "", "Times data began to wait for the rate, for repairs sent first, or for the send limit.") \
    X(wait_time_room, COUNTER, "nanoseconds", 0, "wait_time", "reason", "room", "Time messages waited to be sent, by reason: channel room, repairs sent first, unacknowledged history, the rate, the instance's rate, the send limit. Credit: credit_wait_time.") \
    X(wait_time_repairs, COUNTER, "nanoseconds", 0, "wait_time", "reason", "repairs", "Time messages waited to be sent, by reason: channel room, repairs sent first, unacknowledged history, the rate, the instance's rate, the send limit. Credit: credit_wait_time.") \
    X(wait_time_history, COUNTER, "nanoseconds", 0, "wait_time", "reason", "history", "Time messages waited to be sent, by reason: channel room, repairs sent first, unacknowledged history, the rate, the instance's rate, the send limit. Credit: credit_wait_time.") \
    X(wait_time_rate, COUNTER, "nanoseconds", 0, "wait_time", "reason", "rate", "Time messages waited to be sent, by reason: channel room, repairs sent first, unacknowledged history, the rate, the instance's rate, the send limit. Credit: credit_wait_time.") \
    X(wait_time_instance_rate, COUNTER, "nanoseconds", 0, "wait_time", "reason", "instance_rate", "Time messages waited to be sent, by reason: channel room, repairs sent first, unacknowledged history, the rate, the instance's rate, the send limit. Credit: credit_wait_time.") \
    X(wait_time_window, COUNTER, "nanoseconds", 0, "wait_time", "reason", "window", "Time messages waited to be sent, by reason: channel room, repairs sent first, unacknowledged history, the rate, the instance's rate, the send limit. Credit: credit_wait_time.") \
    X(rate_limited_time, COUNTER, "nanoseconds", 0, "rate_limited_time", "", "", "Time data waited for the rate, for repairs sent first, or for the send limit.") \
    X(congested, GAUGE, "", 0, "congested", "", "", "1 while messages have waited longer than congestion_time for the rate, for receivers or for room.") \
    X(congestions, COUNTER, "", 0, "congestions", "", "", "Times the stream became congested.") \
    X(rate_decided, GAUGE, "bytes", 0, "rate_decided", "", "", "Bytes per second the rate policy decided on, in force or only advised (rate_mode); 0: no limit.") \
    X(rate_loss, GAUGE, "", 0, "rate_loss", "", "", "Loss the rate policy decides by, in millionths: a lower bound of the loss of the deciding receiver.") \
    X(rate_state, GAUGE, "", 0, "rate_state", "", "", "Last decision of the rate policy: 0 unchanged, 1 lowered, 2 raised.") \
    X(rate_decreases, COUNTER, "", 0, "rate_decreases", "", "", "Times the rate policy lowered the rate.") \
    X(rate_increases, COUNTER, "", 0, "rate_increases", "", "", "Times the rate policy raised the rate.") \
    X(send_room, GAUGE, "packets", 0, "send_room", "", "", "Packets that receivers' windows or PGMCC permit now; 0 also when neither limits.") \
    X(pgmcc_window, GAUGE, "packets", 0, "pgmcc_window", "", "", "Window of PGMCC; 0 when PGMCC does not run.") \
    X(pgmcc_cuts, COUNTER, "", 0, "pgmcc_cuts", "", "", "Times PGMCC halved its window because of a loss.") \
    X(control_intervals, COUNTER, "", 0, "control_intervals", "", "", "Control intervals with activity, at whose end the policies decided.") \
    X(repairs_deferred, COUNTER, "", 0, "repairs_deferred", "", "", "Times repairs waited for their share of the rate.") \
    X(stores_announced, GAUGE, "", 0, "stores_announced", "", "", "Message stores that the stream announces to its receivers, at most 8.") \
    X(pace_latency, HISTOGRAM, "nanoseconds", 3, "pace_latency", "", "", "Duration of each wait of the stream's data for the rate.") \
    X(ack_blocked_time, COUNTER, "nanoseconds", 0, "ack_blocked_time", "", "", "Time sending stood still because the history was full of unacknowledged packets.") \
    X(slow_decisions_notify, COUNTER, "", 0, "slow_decisions", "decision", "notify", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_pace, COUNTER, "", 0, "slow_decisions", "decision", "pace", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_shed, COUNTER, "", 0, "slow_decisions", "decision", "shed", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_suspend_naks, COUNTER, "", 0, "slow_decisions", "decision", "suspend_naks", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_suspend, COUNTER, "", 0, "slow_decisions", "decision", "suspend", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_expel, COUNTER, "", 0, "slow_decisions", "decision", "expel", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_recover, COUNTER, "", 0, "slow_decisions", "decision", "recover", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_resume, COUNTER, "", 0, "slow_decisions", "decision", "resume", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_readmit, COUNTER, "", 0, "slow_decisions", "decision", "readmit", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_forecast, COUNTER, "", 0, "slow_decisions", "decision", "forecast", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_spare, COUNTER, "", 0, "slow_decisions", "decision", "spare", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_decisions_network, COUNTER, "", 0, "slow_decisions", "decision", "network", "Decisions about slow receivers, by decision: an action, the end of an action, or a notification.") \
    X(slow_actions_notify, COUNTER, "", 0, "slow_actions", "decision", "notify", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_pace, COUNTER, "", 0, "slow_actions", "decision", "pace", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_shed, COUNTER, "", 0, "slow_actions", "decision", "shed", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_suspend_naks, COUNTER, "", 0, "slow_actions", "decision", "suspend_naks", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_suspend, COUNTER, "", 0, "slow_actions", "decision", "suspend", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_expel, COUNTER, "", 0, "slow_actions", "decision", "expel", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_recover, COUNTER, "", 0, "slow_actions", "decision", "recover", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_resume, COUNTER, "", 0, "slow_actions", "decision", "resume", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_readmit, COUNTER, "", 0, "slow_actions", "decision", "readmit", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_forecast, COUNTER, "", 0, "slow_actions", "decision", "forecast", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_spare, COUNTER, "", 0, "slow_actions", "decision", "spare", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(slow_actions_network, COUNTER, "", 0, "slow_actions", "decision", "network", "Decisions about slow receivers that were executed (slow_mode=enforce) or reported (advise), by decision.") \
    X(receivers_in_trouble, GAUGE, "", 0, "receivers_in_trouble", "", "", "Receivers with a symptom over its threshold.") \
    X(receivers_isolated, GAUGE, "", 0, "receivers_isolated", "", "", "Receivers suspended or expelled, manually or automatically. Unless slow_mode is enforce, those that would be isolated count too.") \
    X(slow_rate_limit, GAUGE, "bytes", 0, "slow_rate_limit", "", "", "Limit of the bytes per second while the stream is paced to a slow receiver; 0: not paced.") \
    X(storms, COUNTER, "", 0, "storms", "", "", "NAK storms detected.") \
    X(storm_active, GAUGE, "", 0, "storm_active", "", "", "1 while a NAK storm lasts.") \
    X(cutoffs, COUNTER, "", 0, "cutoffs", "", "", "Cut-offs of all requests that storms called for; executed only with storm_mode=enforce.") \
    X(cutoff_time, COUNTER, "nanoseconds", 0, "cutoff_time", "", "", "Total duration of these cut-offs as decided.") \
    X(quorum_required, GAUGE, "", 0, "quorum_required", "", "", "Receivers or stores that must acknowledge a message before it is stable (option acks).") \
    X(quorum_present, GAUGE, "", 0, "quorum_present", "", "", "Receivers, or with acks_from=stores message stores, whose acknowledgements count for the quorum. Below quorum_required the quorum is lost.") \
    X(quorum_losses, COUNTER, "", 0, "quorum_losses", "", "", "Times the quorum was lost.") \
    X(acks_not_counted, COUNTER, "packets", 0, "acks_not_counted", "", "", "Acknowledgements that did not count for the quorum, because their receiver is no store (acks_from=stores) or is suspended.") \
    X(unstable_messages, GAUGE, "messages", 0, "unstable_messages", "", "", "Messages sent and not stable yet.") \
    X(unstable_bytes, GAUGE, "bytes", 0, "unstable_bytes", "", "", "Bytes of the packets sent and not stable yet, as the history counts them.") \
    X(unstable_limit_messages, GAUGE, "messages", 0, "unstable_limit_messages", "", "", "Limit of unstable_messages; 0: none.") \
    X(unstable_limit_bytes, GAUGE, "bytes", 0, "unstable_limit_bytes", "", "", "Limit of unstable_bytes; 0: none.") \
    X(unstable_at_limit, GAUGE, "", 0, "unstable_at_limit", "", "", "1 while messages are at unstable_messages or unstable_bytes.") \
    X(unstable_limits, COUNTER, "", 0, "unstable_limits", "", "", "Times unstable_messages or unstable_bytes was reached.") \
    X(unstable_blocked_time, COUNTER, "nanoseconds", 0, "unstable_blocked_time", "", "", "Time messages were at these limits.") \
    X(stability_latency, HISTOGRAM, "nanoseconds", 2, "stability_latency", "", "", "Closing of a message's packet until the quorum has acknowledged it, for each message. No values without option acks.")

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
    _Atomic uint64_t naks_untracked;
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
    _Atomic uint64_t receivers;
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
    _Atomic uint64_t receivers_acknowledging;
    _Atomic uint64_t acks_received;
    _Atomic uint64_t acks_shed;
    _Atomic uint64_t feedback_expelled;
    _Atomic uint64_t receivers_restricted;
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
    _Atomic uint64_t wait_time_room;
    _Atomic uint64_t wait_time_repairs;
    _Atomic uint64_t wait_time_history;
    _Atomic uint64_t wait_time_rate;
    _Atomic uint64_t wait_time_instance_rate;
    _Atomic uint64_t wait_time_window;
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
    _Atomic uint64_t stores_announced;
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
    _Atomic uint64_t receivers_in_trouble;
    _Atomic uint64_t receivers_isolated;
    _Atomic uint64_t slow_rate_limit;
    _Atomic uint64_t storms;
    _Atomic uint64_t storm_active;
    _Atomic uint64_t cutoffs;
    _Atomic uint64_t cutoff_time;
    _Atomic uint64_t quorum_required;
    _Atomic uint64_t quorum_present;
    _Atomic uint64_t quorum_losses;
    _Atomic uint64_t acks_not_counted;
    _Atomic uint64_t unstable_messages;
    _Atomic uint64_t unstable_bytes;
    _Atomic uint64_t unstable_limit_messages;
    _Atomic uint64_t unstable_limit_bytes;
    _Atomic uint64_t unstable_at_limit;
    _Atomic uint64_t unstable_limits;
    _Atomic uint64_t unstable_blocked_time;
    _Atomic uint64_t stability_latency;
} helio_tx_stream_stats;

enum { /* indexes of a tx_stream's histograms */
    HELIO_TX_STREAM_PACE_LATENCY,
    HELIO_TX_STREAM_STABILITY_LATENCY,
    HELIO_TX_STREAM_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_TRANSMITTER(X) \
    X(messages_sent, COUNTER, "messages", 0, "messages_sent", "", "", "Messages put into packets.") \
    X(messages_accepted, COUNTER, "messages", 0, "messages_accepted", "", "", "Messages accepted from the application, waiting and dropped ones included.") \
    X(bytes_sent, COUNTER, "bytes", 0, "bytes_sent", "", "", "Payload bytes of the messages sent.") \
    X(packets_sent, COUNTER, "packets", 0, "packets_sent", "", "", "Data packets of this topic, batches and fragments.") \
    X(fragmented_messages, COUNTER, "messages", 0, "fragmented_messages", "", "", "Messages too large for one packet, sent in fragments.") \
    X(next_message, GAUGE, "messages", 0, "next_message", "", "", "Number of the next message; the first message has number 0.") \
    X(queue_bytes, GAUGE, "bytes", 0, "queue_bytes", "", "", "Bytes waiting in the submit queue.") \
    X(queue_limit_bytes, GAUGE, "bytes", 0, "queue_limit_bytes", "", "", "Size of the submit queue.") \
    X(queue_messages, GAUGE, "messages", 0, "queue_messages", "", "", "Messages waiting in the submit queue if it counts or drops messages (queue_messages, overflow); else 0.") \
    X(messages_waiting, GAUGE, "messages", 0, "messages_waiting", "", "", "Messages accepted and not yet sent: in the submit queue or in the open packet.") \
    X(queue_age, GAUGE, "nanoseconds", 0, "queue_age", "", "", "Waiting time of the oldest message in the submit queue; 0 when it is empty.") \
    X(messages_dropped_newest, COUNTER, "messages", 0, "messages_dropped", "cause", "newest", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(messages_dropped_oldest, COUNTER, "messages", 0, "messages_dropped", "cause", "oldest", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(messages_dropped_conflated, COUNTER, "messages", 0, "messages_dropped", "cause", "conflated", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(messages_dropped_priority, COUNTER, "messages", 0, "messages_dropped", "cause", "priority", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(messages_dropped_age, COUNTER, "messages", 0, "messages_dropped", "cause", "age", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(messages_dropped_memory, COUNTER, "messages", 0, "messages_dropped", "cause", "memory", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(messages_dropped_credit, COUNTER, "messages", 0, "messages_dropped", "cause", "credit", "Messages dropped from the submit queue before they were numbered or sent, by cause.") \
    X(credit_limit, GAUGE, "messages", 0, "credit_limit", "", "", "Number of the first message without credit (await_credit); 0: no receiver has granted credit.") \
    X(credit_waits, COUNTER, "", 0, "credit_waits", "", "", "Times messages began to wait for credit.") \
    X(credit_wait_time, COUNTER, "nanoseconds", 0, "credit_wait_time", "", "", "Time messages waited for credit.") \
    X(latency_packets, COUNTER, "packets", 0, "latency_packets", "", "", "Packets closed while latency was measured.") \
    X(latency_samples, COUNTER, "packets", 0, "latency_samples", "", "", "Packets sampled for latency (option sample), which batch_latency counts.") \
    X(batch_latency, HISTOGRAM, "nanoseconds", 2, "batch_latency", "", "", "Stage batch: submit of a packet's oldest message until the packet is closed, without the wait in pace_latency. For fragments, the first packet.") \
    X(pace_latency, HISTOGRAM, "nanoseconds", 3, "pace_latency", "", "", "Stage pace: time a packet's oldest message waited for the rate, a window, credit or room; 0 for a packet that did not wait.") \
    X(send_latency, HISTOGRAM, "nanoseconds", 2, "send_latency", "", "", "Stage send: duration of the driver call that sent packets, which is also part of their network_latency.") \
    X(submit_delay, HISTOGRAM, "nanoseconds", 3, "submit_delay", "", "", "Delay from the intended send time to submit, of messages that carry an intended time.")

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
#define HELIO_STATS_TX_RECEIVER(X) \
    X(nak_packets_received, COUNTER, "packets", 0, "nak_packets_received", "", "", "NAK packets received from this receiver.") \
    X(naks_received, COUNTER, "sequences", 0, "naks_received", "", "", "Sequence numbers this receiver requested, repeats included.") \
    X(naks_repeated, COUNTER, "sequences", 0, "naks_repeated", "", "", "Sequence numbers this receiver requested again.") \
    X(repairs_caused, COUNTER, "packets", 0, "repairs_caused", "", "", "Repair packets that this receiver requested first.") \
    X(repair_bytes_caused, COUNTER, "bytes", 0, "repair_bytes_caused", "", "", "Bytes of the repair packets that this receiver requested first.") \
    X(naks_too_late, COUNTER, "sequences", 0, "naks_too_late", "", "", "Sequence numbers requested after they had left the history.") \
    X(acks_received, COUNTER, "packets", 0, "acks_received", "", "", "Acknowledgements received from this receiver.") \
    X(naks_shed, COUNTER, "sequences", 0, "naks_shed", "", "", "Sequence numbers requested and not repaired because the receiver exceeded its limit or is suspended.") \
    X(acks_shed, COUNTER, "packets", 0, "acks_shed", "", "", "Acknowledgements ignored because the receiver exceeded ack_limit.") \
    X(action, GAUGE, "", 0, "action", "", "", "Action in force: 0 none, 3 shed, 4 suspend_naks, 5 suspend, 6 expel.") \
    X(acked_position, GAUGE, "sequences", 0, "acked_position", "", "", "Newest sequence number this receiver has acknowledged, with all before it (64-bit, widened).") \
    X(ack_lag, GAUGE, "packets", 0, "ack_lag", "", "", "Packets sent and not yet acknowledged at the receiver's last feedback.") \
    X(last_feedback, GAUGE, "nanoseconds", 0, "last_feedback", "", "", "Wall clock time of the receiver's last NAK, acknowledgement or report, since 1970.") \
    X(reports_received, COUNTER, "packets", 0, "reports_received", "", "", "Reports of this receiver accepted; they supply the statistics below.") \
    X(packets_received, COUNTER, "packets", 0, "packets_received", "", "", "Data packets the receiver reports as received, each counted once.") \
    X(packets_missed, COUNTER, "packets", 0, "packets_missed", "", "", "Data packets the receiver reports as missed at first, recovered or not.") \
    X(packets_lost, COUNTER, "packets", 0, "packets_lost", "", "", "Data packets the receiver reports as lost for good.") \
    X(loss, GAUGE, "", 0, "loss", "", "", "Share of packets missed at first, by the last reports, in millionths.") \
    X(buffer_fill, GAUGE, "", 0, "buffer_fill", "", "", "Fill of the receive window or the receive queue, whichever is fuller, in millionths.") \
    X(position, GAUGE, "sequences", 0, "position", "", "", "Newest sequence number passed on in order (64-bit, widened).") \
    X(lag, GAUGE, "packets", 0, "lag", "", "", "Packets sent and not passed on at the last report.") \
    X(window, GAUGE, "packets", 0, "window", "", "", "Packets beyond its position that the receiver has room for.") \
    X(round_trip, GAUGE, "nanoseconds", 0, "round_trip", "", "", "Smoothed round trip time to the receiver; 0: unknown.") \
    X(state, GAUGE, "", 0, "state", "", "", "Progress: 0 unknown, 1 keeps up, 2 falls behind, 3 stalled, 4 silent or left, 5 catches up.") \
    X(forecast, GAUGE, "nanoseconds", 0, "forecast", "", "", "Time until packets the receiver needs leave the history at the current rate. Valid only while forecast_state is 2, else 0.") \
    X(forecast_state, GAUGE, "", 0, "forecast_state", "", "", "Forecast of loss: 0 unknown, 1 none, 2 ahead (forecast has the time), 3 past: packets it needs have left the history.") \
    X(lost_certain, COUNTER, "packets", 0, "lost_certain", "", "", "Packets that left the history before the receiver had them or room for them, counted by the source at once. Not counted while the receiver is suspended or expelled.") \
    X(state_since, GAUGE, "nanoseconds", 0, "state_since", "", "", "Wall clock time since when the receiver is in its state; 0: state unknown.") \
    X(slow_since, GAUGE, "nanoseconds", 0, "slow_since", "", "", "Wall clock time since when a symptom is over its threshold; 0: none is.") \
    X(suspensions, COUNTER, "", 0, "suspensions", "", "", "Times the receiver was suspended for being slow, or would have been.") \
    X(lag_bytes, GAUGE, "bytes", 0, "lag_bytes", "", "", "Bytes sent and not passed on at the last report. A lower bound: packets that left the history do not count.") \
    X(lag_time, GAUGE, "nanoseconds", 0, "lag_time", "", "", "Age of the oldest packet not passed on, at the last report. A lower bound once that packet has left the history.") \
    X(blame_time, COUNTER, "nanoseconds", 0, "blame_time", "", "", "Time data waited for this receiver alone: for its window, its acknowledgement, its credit, or a rate lowered because of it.") \
    X(clock_offset, SIGNED, "nanoseconds", 0, "clock_offset", "", "", "Offset of the receiver's wall clock from this host's, as last reported; above 0: ahead.") \
    X(clock_error_bound, GAUGE, "nanoseconds", 0, "clock_error_bound", "", "", "Error bound of the clock offset, as last reported.") \
    X(clock_source, GAUGE, "", 0, "clock_source", "", "", "Basis of the clock offset: 0 unknown, 1 same host, 2 exchange of time stamps.") \
    X(badness, GAUGE, "", 0, "badness", "", "", "Rank among slow receivers, in millionths: first the action in force, then state, loss, lag, buffer fill and blame; 0: no trouble.")

/* One receiver of a stream, as its source sees it. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_tx_receiver_stats {
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
    _Atomic uint64_t action;
    _Atomic uint64_t acked_position;
    _Atomic uint64_t ack_lag;
    _Atomic uint64_t last_feedback;
    _Atomic uint64_t reports_received;
    _Atomic uint64_t packets_received;
    _Atomic uint64_t packets_missed;
    _Atomic uint64_t packets_lost;
    _Atomic uint64_t loss;
    _Atomic uint64_t buffer_fill;
    _Atomic uint64_t position;
    _Atomic uint64_t lag;
    _Atomic uint64_t window;
    _Atomic uint64_t round_trip;
    _Atomic uint64_t state;
    _Atomic uint64_t forecast;
    _Atomic uint64_t forecast_state;
    _Atomic uint64_t lost_certain;
    _Atomic uint64_t state_since;
    _Atomic uint64_t slow_since;
    _Atomic uint64_t suspensions;
    _Atomic uint64_t lag_bytes;
    _Atomic uint64_t lag_time;
    _Atomic uint64_t blame_time;
    _Atomic uint64_t clock_offset;
    _Atomic uint64_t clock_error_bound;
    _Atomic uint64_t clock_source;
    _Atomic uint64_t badness;
} helio_tx_receiver_stats;

enum { /* indexes of a tx_receiver's histograms */
    HELIO_TX_RECEIVER_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_RX_STREAM(X) \
    X(packets_received, COUNTER, "packets", 0, "packets_received", "", "", "Data packets received, original and repair, duplicates included.") \
    X(bytes_received, COUNTER, "bytes", 0, "bytes_received", "", "", "Bytes of the data packets received, headers included.") \
    X(packets_delivered, COUNTER, "packets", 0, "packets_delivered", "", "", "Data packets passed on in order.") \
    X(packets_recovered, COUNTER, "packets", 0, "packets_recovered", "", "", "Missing packets that arrived after they were requested.") \
    X(packets_lost_window_advanced, COUNTER, "packets", 0, "packets_lost", "reason", "window_advanced", "Packets lost for good, by reason.") \
    X(packets_lost_ncf_retries, COUNTER, "packets", 0, "packets_lost", "reason", "ncf_retries", "Packets lost for good, by reason.") \
    X(packets_lost_data_retries, COUNTER, "packets", 0, "packets_lost", "reason", "data_retries", "Packets lost for good, by reason.") \
    X(packets_lost_deadline, COUNTER, "packets", 0, "packets_lost", "reason", "deadline", "Packets lost for good, by reason.") \
    X(packets_lost_overflow, COUNTER, "packets", 0, "packets_lost", "reason", "overflow", "Packets lost for good, by reason.") \
    X(packets_lost_reset, COUNTER, "packets", 0, "packets_lost", "reason", "reset", "Packets lost for good, by reason.") \
    X(packets_lost_not_requested, COUNTER, "packets", 0, "packets_lost", "reason", "not_requested", "Packets lost for good, by reason.") \
    X(packets_lost_suspended, COUNTER, "packets", 0, "packets_lost", "reason", "suspended", "Packets lost for good, by reason.") \
    X(losses_located_history, COUNTER, "packets", 0, "losses_located", "location", "history", "Packets missing at first, recovered or lost, by loss location (the glossary explains the locations).") \
    X(losses_located_late, COUNTER, "packets", 0, "losses_located", "location", "late", "Packets missing at first, recovered or lost, by loss location (the glossary explains the locations).") \
    X(losses_located_queue, COUNTER, "packets", 0, "losses_located", "location", "queue", "Packets missing at first, recovered or lost, by loss location (the glossary explains the locations).") \
    X(losses_located_window, COUNTER, "packets", 0, "losses_located", "location", "window", "Packets missing at first, recovered or lost, by loss location (the glossary explains the locations).") \
    X(losses_located_socket, COUNTER, "packets", 0, "losses_located", "location", "socket", "Packets missing at first, recovered or lost, by loss location (the glossary explains the locations).") \
    X(losses_located_outside, COUNTER, "packets", 0, "losses_located", "location", "outside", "Packets missing at first, recovered or lost, by loss location (the glossary explains the locations).") \
    X(packets_missed, COUNTER, "packets", 0, "packets_missed", "", "", "Packets missing at first.") \
    X(packets_late, COUNTER, "packets", 0, "packets_late", "", "", "Missing packets that arrived late, before they were requested.") \
    X(out_of_order, COUNTER, "packets", 0, "out_of_order", "", "", "Original data packets that arrived after a newer one.") \
    X(duplicates, COUNTER, "packets", 0, "duplicates", "", "", "Data packets received again, or after they were given up.") \
    X(packets_before_join, COUNTER, "packets", 0, "packets_before_join", "", "", "Data packets received that are older than the first sequence number of this receiver.") \
    X(packets_refused, COUNTER, "packets", 0, "packets_refused", "", "", "Data packets refused because they announce an impossible window, or are far ahead of all others without confirmation.") \
    X(overflows, COUNTER, "packets", 0, "overflows", "", "", "Data packets dropped because the receive window was full.") \
    X(nak_packets_sent, COUNTER, "packets", 0, "nak_packets_sent", "", "", "NAK packets sent.") \
    X(naks_sent, COUNTER, "sequences", 0, "naks_sent", "", "", "Sequence numbers requested, repeats included.") \
    X(naks_retried, COUNTER, "sequences", 0, "naks_retried", "", "", "Sequence numbers requested again.") \
    X(naks_suppressed, COUNTER, "sequences", 0, "naks_suppressed", "", "", "Requests not sent because another receiver had sent them.") \
    X(nak_confirmations_received, COUNTER, "packets", 0, "nak_confirmations_received", "", "", "NAK confirmations (NCF) received.") \
    X(heartbeats_received, COUNTER, "packets", 0, "heartbeats_received", "", "", "Heartbeats (SPM) received.") \
    X(repairer_naks_sent, COUNTER, "sequences", 0, "repairer_naks_sent", "", "", "Sequence numbers requested of the local repairer, repeats included; part of naks_sent.") \
    X(repairer_repairs_received, COUNTER, "packets", 0, "repairer_repairs_received", "", "", "Missing packets that the local repairer sent.") \
    X(repairer_given_up, COUNTER, "sequences", 0, "repairer_given_up", "", "", "Sequence numbers requested of the source because the local repairer had not answered.") \
    X(repairer_naks_received, COUNTER, "sequences", 0, "repairer_naks_received", "", "", "Sequence numbers that receivers requested of this local repairer.") \
    X(repairer_repairs_sent, COUNTER, "packets", 0, "repairer_repairs_sent", "", "", "Repair packets (RDATA) that this local repairer sent to receivers.") \
    X(repairer_naks_awaited, COUNTER, "sequences", 0, "repairer_naks_awaited", "", "", "Requested sequence numbers that this local repairer missed itself and sent on when they arrived.") \
    X(repairer_naks_declined, COUNTER, "sequences", 0, "repairer_naks_declined", "", "", "Requested sequence numbers that this local repairer neither kept nor expected. They go to the source.") \
    X(repairer_naks_limited, COUNTER, "sequences", 0, "repairer_naks_limited", "", "", "Requested sequence numbers that this local repairer did not answer because of its limits (option repair_rate).") \
    X(notices_received, COUNTER, "", 0, "notices_received", "", "", "Notices of the source accepted, about this receiver or about all receivers.") \
    X(suspended, GAUGE, "", 0, "suspended", "", "", "1 while this receiver requests no repairs because its source suspended it.") \
    X(polls_received, COUNTER, "packets", 0, "polls_received", "", "", "Polls received, which count the receivers.") \
    X(poll_responses_sent, COUNTER, "packets", 0, "poll_responses_sent", "", "", "Poll responses (POLR) sent.") \
    X(congestion_reports_sent, COUNTER, "packets", 0, "congestion_reports_sent", "", "", "NAK packets sent with a congestion report that the source requested.") \
    X(nak_backoff, GAUGE, "nanoseconds", 0, "nak_backoff", "", "", "Longest back-off time before a request, as adapted for the last one.") \
    X(heartbeat_requests_sent, COUNTER, "packets", 0, "heartbeat_requests_sent", "", "", "Requests for a heartbeat (SPMR) sent.") \
    X(acks_sent, COUNTER, "packets", 0, "acks_sent", "", "", "Acknowledgements (ACK) sent.") \
    X(acked_position, GAUGE, "sequences", 0, "acked_position", "", "", "Newest sequence number acknowledged, with all before it (64-bit, widened).") \
    X(packets_filtered, COUNTER, "packets", 0, "packets_filtered", "", "", "Packets without a wanted topic, dropped before their messages were read.") \
    X(messages_filtered, COUNTER, "messages", 0, "messages_filtered", "", "", "Messages in the filtered packets.") \
    X(reports_sent, COUNTER, "packets", 0, "reports_sent", "", "", "Reports sent to the source, in NAKs, in ACKs or alone.") \
    X(grants_sent, COUNTER, "", 0, "grants_sent", "", "", "Grants of credit sent, one for each topic, repeats included.") \
    X(gaps_1, COUNTER, "", 0, "gaps", "length", "1", "Gaps detected, by length in packets.") \
    X(gaps_2_3, COUNTER, "", 0, "gaps", "length", "2_3", "Gaps detected, by length in packets.") \
    X(gaps_4_7, COUNTER, "", 0, "gaps", "length", "4_7", "Gaps detected, by length in packets.") \
    X(gaps_8_15, COUNTER, "", 0, "gaps", "length", "8_15", "Gaps detected, by length in packets.") \
    X(gaps_16_31, COUNTER, "", 0, "gaps", "length", "16_31", "Gaps detected, by length in packets.") \
    X(gaps_32_63, COUNTER, "", 0, "gaps", "length", "32_63", "Gaps detected, by length in packets.") \
    X(gaps_64_127, COUNTER, "", 0, "gaps", "length", "64_127", "Gaps detected, by length in packets.") \
    X(gaps_128_more, COUNTER, "", 0, "gaps", "length", "128_more", "Gaps detected, by length in packets.") \
    X(outstanding_naks, GAUGE, "sequences", 0, "outstanding_naks", "", "", "Missing packets that are being requested now.") \
    X(held_packets, GAUGE, "packets", 0, "held_packets", "", "", "Packets received that wait for an older one or for room in the receive queue.") \
    X(missing_packets, GAUGE, "packets", 0, "missing_packets", "", "", "Packets missing now and not yet given up.") \
    X(window_first, GAUGE, "sequences", 0, "window_first", "", "", "First sequence number of this receiver (64-bit, widened).") \
    X(window_trail, GAUGE, "sequences", 0, "window_trail", "", "", "Oldest sequence number not yet passed on (64-bit, widened).") \
    X(window_lead, GAUGE, "sequences", 0, "window_lead", "", "", "Newest sequence number known to exist (64-bit, widened).") \
    X(last_activity, GAUGE, "nanoseconds", 0, "last_activity", "", "", "Wall clock time of the last packet of this stream, since 1970.") \
    X(clock_offset, SIGNED, "nanoseconds", 0, "clock_offset", "", "", "Offset of this host's wall clock from the source's; above 0: ahead. Latencies from submit to delivery are too long by it.") \
    X(clock_error_bound, GAUGE, "nanoseconds", 0, "clock_error_bound", "", "", "Error bound of the clock offset: half of the shortest round trip plus possible drift since.") \
    X(clock_source, GAUGE, "", 0, "clock_source", "", "", "Basis of the clock offset: 0 unknown, 1 same host, 2 exchange of time stamps.") \
    X(clock_exchanges, COUNTER, "", 0, "clock_exchanges", "", "", "Exchanges of time stamps with the source that were accepted.") \
    X(clock_exchanges_refused, COUNTER, "", 0, "clock_exchanges_refused", "", "", "Time answers of the source refused because they were unsolicited or impossible.") \
    X(clock_jumps, COUNTER, "", 0, "clock_jumps", "", "", "Changes of the clock offset beyond its error bounds, because a clock was set or stood still.") \
    X(last_clock_exchange, GAUGE, "nanoseconds", 0, "last_clock_exchange", "", "", "Wall clock time of the last exchange of time stamps, since 1970.") \
    X(stores_known, GAUGE, "", 0, "stores_known", "", "", "Message stores that the source announces.") \
    X(socket_latency, HISTOGRAM, "nanoseconds", 3, "socket_latency", "", "", "Time from arrival in the kernel until the packet was read, packets of all types.") \
    X(recovery_time, HISTOGRAM, "nanoseconds", 1, "recovery_time", "", "", "Time from detection of a missing packet until it arrived.") \
    X(give_up_time, HISTOGRAM, "nanoseconds", 1, "give_up_time", "", "", "Time from detection of a missing packet until this receiver's own timers gave it up, not the source's window.")

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
    _Atomic uint64_t packets_missed;
    _Atomic uint64_t packets_late;
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
    _Atomic uint64_t repairer_naks_sent;
    _Atomic uint64_t repairer_repairs_received;
    _Atomic uint64_t repairer_given_up;
    _Atomic uint64_t repairer_naks_received;
    _Atomic uint64_t repairer_repairs_sent;
    _Atomic uint64_t repairer_naks_awaited;
    _Atomic uint64_t repairer_naks_declined;
    _Atomic uint64_t repairer_naks_limited;
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
    _Atomic uint64_t gaps_1;
    _Atomic uint64_t gaps_2_3;
    _Atomic uint64_t gaps_4_7;
    _Atomic uint64_t gaps_8_15;
    _Atomic uint64_t gaps_16_31;
    _Atomic uint64_t gaps_32_63;
    _Atomic uint64_t gaps_64_127;
    _Atomic uint64_t gaps_128_more;
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
    _Atomic uint64_t stores_known;
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
    X(messages_taken, COUNTER, "messages", 0, "messages_taken", "", "", "Messages the application took from the receive queue or received in a callback.") \
    X(bytes_delivered, COUNTER, "bytes", 0, "bytes_delivered", "", "", "Payload bytes delivered to the application.") \
    X(messages_recovered, COUNTER, "messages", 0, "messages_recovered", "", "", "Delivered messages whose packet had been missing.") \
    X(messages_lost, COUNTER, "messages", 0, "messages_lost", "", "", "Messages lost for good, because their packet was given up or they were damaged.") \
    X(fragments_joined, COUNTER, "messages", 0, "fragments_joined", "", "", "Message numbers used by the second and further packets of a message. Only payload=raw numbers packets instead of messages.") \
    X(messages_before_join, GAUGE, "messages", 0, "messages_before_join", "", "", "Messages of the topic sent before this receiver joined.") \
    X(next_message, GAUGE, "messages", 0, "next_message", "", "", "Number of the next message expected.") \
    X(messages_ahead, GAUGE, "messages", 0, "messages_ahead", "", "", "Messages delivered out of turn and not yet reached in order (option order=arrival).") \
    X(credit_granted, GAUGE, "messages", 0, "credit_granted", "", "", "Number of the first message not yet granted to the source (option credit).") \
    X(queue_messages, GAUGE, "messages", 0, "queue_messages", "", "", "Messages waiting in the receive queue.") \
    X(queue_bytes, GAUGE, "bytes", 0, "queue_bytes", "", "", "Bytes waiting in the receive queue.") \
    X(queue_age, GAUGE, "nanoseconds", 0, "queue_age", "", "", "Age of the oldest message in the receive queue, one in use by the application included; 0 when the queue is empty.") \
    X(messages_trimmed_count, COUNTER, "messages", 0, "messages_trimmed", "cause", "count", "Messages trimmed from the receive queue before the application took them, by cause.") \
    X(messages_trimmed_bytes, COUNTER, "messages", 0, "messages_trimmed", "cause", "bytes", "Messages trimmed from the receive queue before the application took them, by cause.") \
    X(messages_trimmed_age, COUNTER, "messages", 0, "messages_trimmed", "cause", "age", "Messages trimmed from the receive queue before the application took them, by cause.") \
    X(messages_trimmed_conflated, COUNTER, "messages", 0, "messages_trimmed", "cause", "conflated", "Messages trimmed from the receive queue before the application took them, by cause.") \
    X(messages_trimmed_priority, COUNTER, "messages", 0, "messages_trimmed", "cause", "priority", "Messages trimmed from the receive queue before the application took them, by cause.") \
    X(queue_peak_bytes, PEAK, "bytes", 0, "queue_peak_bytes", "", "", "Most bytes in the receive queue so far.") \
    X(queue_limit_bytes, GAUGE, "bytes", 0, "queue_limit_bytes", "", "", "Size of the receive queue.") \
    X(queue_full, COUNTER, "", 0, "queue_full", "", "", "Times delivery stopped because the receive queue was full.") \
    X(latency_messages, COUNTER, "messages", 0, "latency_messages", "", "", "Messages delivered while latency was measured.") \
    X(latency_samples, COUNTER, "messages", 0, "latency_samples", "", "", "Messages of packets sampled for latency (option sample).") \
    X(latency_recovered, COUNTER, "messages", 0, "latency_recovered", "", "", "Messages of sampled packets that had been missing and were requested.") \
    X(latency_invalid_samples, COUNTER, "messages", 0, "latency_invalid_samples", "", "", "Latency samples refused because the clocks made them negative.") \
    X(interarrival_jitter, GAUGE, "nanoseconds", 0, "interarrival_jitter", "", "", "Variation of the transit time between sampled packets that arrived whole and without repair (RFC 3550).") \
    X(total_latency, HISTOGRAM, "nanoseconds", 2, "total_latency", "", "", "Submit of the packet's oldest message until a message reaches the application or its queue. The stages batch, pace, network, socket and order add up to it.") \
    X(order_latency, HISTOGRAM, "nanoseconds", 2, "order_latency", "", "", "Stage order: arrival of the packet in the engine until it was next in order, which includes reordering and recovery.") \
    X(callback_time, HISTOGRAM, "nanoseconds", 2, "callback_time", "", "", "Stage callback: duration of the application's callback, per batch.") \
    X(total_latency_recovered, HISTOGRAM, "nanoseconds", 3, "total_latency_recovered", "", "", "Part of total_latency that belongs to recovered packets.") \
    X(order_latency_recovered, HISTOGRAM, "nanoseconds", 3, "order_latency_recovered", "", "", "Part of order_latency that belongs to recovered packets.") \
    X(network_latency, HISTOGRAM, "nanoseconds", 3, "network_latency", "", "", "Stage network, without recovered packets: closing at the source until arrival in this host's kernel, by two clocks. It includes the source's send call.") \
    X(recovery_latency, HISTOGRAM, "nanoseconds", 3, "recovery_latency", "", "", "Stage recovery, which replaces network and socket for recovered packets: closing at the source until arrival of the repair, by two clocks.") \
    X(socket_latency, HISTOGRAM, "nanoseconds", 3, "socket_latency", "", "", "Stage socket, without recovered packets: arrival in the kernel until the engine read the packet.") \
    X(dispatch_latency, HISTOGRAM, "nanoseconds", 3, "dispatch_latency", "", "", "Stage dispatch: from being next in order until the callback starts or the application takes the message.") \
    X(end_latency, HISTOGRAM, "nanoseconds", 3, "end_latency", "", "", "Submit of the packet's oldest message until the callback starts or the application takes the message: total and dispatch.") \
    X(intended_latency, HISTOGRAM, "nanoseconds", 3, "intended_latency", "", "", "Latency like total_latency, from the packet's oldest intended send time. It includes stalls of the sending application.")

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
    X(level, GAUGE, "", 0, "level", "", "", "Level of detail, 0 to 3.") \
    X(until, GAUGE, "nanoseconds", 0, "until", "", "", "Wall clock time of its end, since 1970; 0: no end.") \
    X(objects, GAUGE, "", 0, "objects", "", "", "Streams, transmitters and receivers whose level it decides.")

/* A level of detail in force, of the instance or of the objects a selector matches. It exists while the level is in force. One writer; `guard` is odd while a group of cells changes. */
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
    X(observations, COUNTER, "", 0, "observations", "", "", "Times consecutive packets were given up.") \
    X(packets, COUNTER, "packets", 0, "packets", "", "", "Packets given up.") \
    X(bytes_estimated, COUNTER, "bytes", 0, "bytes_estimated", "", "", "Bytes of the packets given up, estimated from the mean packet size of the stream.") \
    X(longest, PEAK, "packets", 0, "longest", "", "", "Most consecutive packets given up at once.") \
    X(first_lost, GAUGE, "nanoseconds", 0, "first_lost", "", "", "Wall clock time of the first loss, since 1970.") \
    X(last_lost, GAUGE, "nanoseconds", 0, "last_lost", "", "", "Wall clock time of the last loss, since 1970.") \
    X(first_sequence, GAUGE, "sequences", 0, "first_sequence", "", "", "Number of the first packet of the first loss (64-bit, widened).") \
    X(last_sequence, GAUGE, "sequences", 0, "last_sequence", "", "", "Number of the last packet of the last loss (64-bit, widened).")

/* Losses of one stream for one cause, kept until the instance ends. One writer; `guard` is odd while a group of cells changes. */
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
    X(occurrences, COUNTER, "", 0, "occurrences", "", "", "Times the event occurred, suppressed ones included.") \
    X(first, GAUGE, "nanoseconds", 0, "first", "", "", "Wall clock time of the first occurrence, since 1970.") \
    X(last, GAUGE, "nanoseconds", 0, "last", "", "", "Wall clock time of the last occurrence, since 1970.")

/* A kind of warning or error that has occurred. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_incident_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t occurrences;
    _Atomic uint64_t first;
    _Atomic uint64_t last;
} helio_incident_stats;

enum { /* indexes of a incident's histograms */
    HELIO_INCIDENT_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_STORE(X) \
    X(streams, GAUGE, "", 0, "streams", "", "", "Streams with a message in the last minute.") \
    X(segments, GAUGE, "", 0, "segments", "", "", "Segment files of these streams.") \
    X(segment_bytes, GAUGE, "bytes", 0, "segment_bytes", "", "", "Bytes of these segment files.") \
    X(disk_bytes, GAUGE, "bytes", 0, "disk_bytes", "", "", "Size of the file system of the store's directory.") \
    X(disk_free_bytes, GAUGE, "bytes", 0, "disk_free_bytes", "", "", "Bytes of that file system that the store may still use.") \
    X(writes, COUNTER, "", 0, "writes", "", "", "Writes to files: batches, headers and indexes.") \
    X(bytes_written, COUNTER, "bytes", 0, "bytes_written", "", "", "Bytes of these writes.") \
    X(syncs, COUNTER, "", 0, "syncs", "", "", "Times a file was synchronized with the disk (fsync).") \
    X(write_failures, COUNTER, "", 0, "write_failures", "", "", "Writes and syncs that failed. A failed write is repeated.") \
    X(is_blocked, GAUGE, "", 0, "is_blocked", "", "", "1 while the store takes no messages because it cannot write.") \
    X(segments_removed, COUNTER, "", 0, "segments_removed", "", "", "Segments removed by retention.") \
    X(service_readers, GAUGE, "", 0, "service_readers", "", "", "Subscribers that its service is serving now.") \
    X(service_requests, COUNTER, "", 0, "service_requests", "", "", "Requests of subscribers that its service has answered in full.") \
    X(service_requests_refused, COUNTER, "", 0, "service_requests_refused", "", "", "Requests of subscribers that were malformed, or for messages that the store cannot read.") \
    X(service_requests_aborted, COUNTER, "", 0, "service_requests_aborted", "", "", "Connections of subscribers that ended or stood still before their last answer.") \
    X(service_bytes_sent, COUNTER, "bytes", 0, "service_bytes_sent", "", "", "Bytes of batches that its service has sent to subscribers.") \
    X(service_restarts, COUNTER, "", 0, "service_restarts", "", "", "Times its service ended and was started again.") \
    X(holes_open, GAUGE, "", 0, "holes_open", "", "", "Ranges of messages that the store lacks and fetches from other stores.") \
    X(messages_fetched, COUNTER, "messages", 0, "messages_fetched", "", "", "Missing messages that the store has fetched from other stores.") \
    X(messages_given_up, COUNTER, "messages", 0, "messages_given_up", "", "", "Missing messages that the store has given up, because no other store has them. Its files have a gap.") \
    X(fetch_failures, COUNTER, "", 0, "fetch_failures", "", "", "Attempts to fetch from another store that failed: it was not reached, refused, or sent bytes that are not those of a store.") \
    X(topics, GAUGE, "", 0, "topics", "", "", "Topics that the store keeps.") \
    X(topics_refused, COUNTER, "", 0, "topics_refused", "", "", "Announcements of topics that match a pattern of the store and are not kept: there are too many, or no memory.") \
    X(write_time, HISTOGRAM, "nanoseconds", 1, "write_time", "", "", "Duration of a write to a file.") \
    X(sync_time, HISTOGRAM, "nanoseconds", 1, "sync_time", "", "", "Duration of a sync (fsync).")

/* A message store: the files that an instance keeps messages in. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_store_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t streams;
    _Atomic uint64_t segments;
    _Atomic uint64_t segment_bytes;
    _Atomic uint64_t disk_bytes;
    _Atomic uint64_t disk_free_bytes;
    _Atomic uint64_t writes;
    _Atomic uint64_t bytes_written;
    _Atomic uint64_t syncs;
    _Atomic uint64_t write_failures;
    _Atomic uint64_t is_blocked;
    _Atomic uint64_t segments_removed;
    _Atomic uint64_t service_readers;
    _Atomic uint64_t service_requests;
    _Atomic uint64_t service_requests_refused;
    _Atomic uint64_t service_requests_aborted;
    _Atomic uint64_t service_bytes_sent;
    _Atomic uint64_t service_restarts;
    _Atomic uint64_t holes_open;
    _Atomic uint64_t messages_fetched;
    _Atomic uint64_t messages_given_up;
    _Atomic uint64_t fetch_failures;
    _Atomic uint64_t topics;
    _Atomic uint64_t topics_refused;
    _Atomic uint64_t write_time;
    _Atomic uint64_t sync_time;
} helio_store_stats;

enum { /* indexes of a store's histograms */
    HELIO_STORE_WRITE_TIME,
    HELIO_STORE_SYNC_TIME,
    HELIO_STORE_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_STORE_STREAM(X) \
    X(messages_received, COUNTER, "messages", 0, "messages_received", "", "", "Messages taken from the receivers.") \
    X(messages_kept, COUNTER, "messages", 0, "messages_kept", "", "", "Messages taken into the store.") \
    X(messages_repeated, COUNTER, "messages", 0, "messages_repeated", "", "", "Messages that the store had already, as after its restart.") \
    X(messages_refused, COUNTER, "messages", 0, "messages_refused", "", "", "Messages that the files cannot hold, because they are too large.") \
    X(messages_lost, COUNTER, "messages", 0, "messages_lost", "", "", "Messages that the receivers lost, so the store has a gap.") \
    X(bytes_kept, COUNTER, "bytes", 0, "bytes_kept", "", "", "Payload bytes of the messages kept.") \
    X(first_position, GAUGE, "messages", 0, "first_position", "", "", "Position of the oldest message in the files; 0: none.") \
    X(last_position, GAUGE, "messages", 0, "last_position", "", "", "Position of the newest message.") \
    X(written_position, GAUGE, "messages", 0, "written_position", "", "", "Position of the newest message in the files.") \
    X(durable_position, GAUGE, "messages", 0, "durable_position", "", "", "Position of the newest message that survives a power failure; 0 with fsync=never.") \
    X(durable_latency, HISTOGRAM, "nanoseconds", 2, "durable_latency", "", "", "Arrival of the oldest message of a list until all of the list are durable. With fsync=never: until they are written.")

/* A stream that a message store keeps. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_store_stream_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t messages_received;
    _Atomic uint64_t messages_kept;
    _Atomic uint64_t messages_repeated;
    _Atomic uint64_t messages_refused;
    _Atomic uint64_t messages_lost;
    _Atomic uint64_t bytes_kept;
    _Atomic uint64_t first_position;
    _Atomic uint64_t last_position;
    _Atomic uint64_t written_position;
    _Atomic uint64_t durable_position;
    _Atomic uint64_t durable_latency;
} helio_store_stream_stats;

enum { /* indexes of a store_stream's histograms */
    HELIO_STORE_STREAM_DURABLE_LATENCY,
    HELIO_STORE_STREAM_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_FOLLOWER(X) \
    X(messages_covered, COUNTER, "messages", 0, "messages_covered", "", "", "Message numbers from the first that the application was to get up to next_message.") \
    X(messages_live, COUNTER, "messages", 0, "messages_live", "", "", "Messages given to the application that came live.") \
    X(messages_stored_join, COUNTER, "messages", 0, "messages_stored", "cause", "join", "Messages given to the application that came from a store, by cause. join: from before the first live one; loss: the receiver had lost or dropped them.") \
    X(messages_stored_loss, COUNTER, "messages", 0, "messages_stored", "cause", "loss", "Messages given to the application that came from a store, by cause. join: from before the first live one; loss: the receiver had lost or dropped them.") \
    X(messages_lost, COUNTER, "messages", 0, "messages_lost", "", "", "Messages lost for good: the receiver lost them, and no store gave them in time.") \
    X(messages_repeated, COUNTER, "messages", 0, "messages_repeated", "", "", "Live messages not given to the application, because a store had given them before.") \
    X(next_message, GAUGE, "messages", 0, "next_message", "", "", "Number of the next message that the application is to get.") \
    X(store_failures, COUNTER, "", 0, "store_failures", "", "", "Attempts to read a store that failed.")

/* A topic of one stream that a receiver takes from stores too (options recover, join=store and durable). One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_follower_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t messages_covered;
    _Atomic uint64_t messages_live;
    _Atomic uint64_t messages_stored_join;
    _Atomic uint64_t messages_stored_loss;
    _Atomic uint64_t messages_lost;
    _Atomic uint64_t messages_repeated;
    _Atomic uint64_t next_message;
    _Atomic uint64_t store_failures;
} helio_follower_stats;

enum { /* indexes of a follower's histograms */
    HELIO_FOLLOWER_HISTOGRAMS
};

/* X(cell, KIND, unit, level, statistic, label, value, help) */
#define HELIO_STATS_STORE_SUBSCRIPTION(X) \
    X(next_message, GAUGE, "messages", 0, "next_message", "", "", "Number of the next message of the subscription, as saved last.") \
    X(messages_waiting, GAUGE, "messages", 0, "messages_waiting", "", "", "Lag of the subscription: message numbers from next_message to the newest message of the topic that the store has.") \
    X(last_saved, GAUGE, "nanoseconds", 0, "last_saved", "", "", "Wall clock time when the subscription was saved last, since 1970, by the clock of the subscriber.")

/* A durable subscription that a message store keeps, in one stream. One writer; `guard` is odd while a group of cells changes. */
typedef struct helio_store_subscription_stats {
    _Atomic uint64_t guard;
    _Atomic uint64_t next_message;
    _Atomic uint64_t messages_waiting;
    _Atomic uint64_t last_saved;
} helio_store_subscription_stats;

enum { /* indexes of a store_subscription's histograms */
    HELIO_STORE_SUBSCRIPTION_HISTOGRAMS
};

/* Features of an object, without which some of its cells do not apply. */
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
    HELIO_HAS_REPAIRER = 1 << 11,
    HELIO_HAS_REPAIRS = 1 << 12,
    HELIO_HAS_RAW = 1 << 13,
    HELIO_HAS_QUEUE = 1 << 14,
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
    X(TX_STREAM, tx_stream, quorum_required, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, quorum_present, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, quorum_losses, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, acks_not_counted, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_messages, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_bytes, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_limit_messages, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_limit_bytes, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_at_limit, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_limits, HELIO_HAS_ACKS) \
    X(TX_STREAM, tx_stream, unstable_blocked_time, HELIO_HAS_ACKS) \
    X(TRANSMITTER, transmitter, queue_messages, HELIO_HAS_COUNTED) \
    X(TRANSMITTER, transmitter, credit_limit, HELIO_HAS_CREDIT) \
    X(TRANSMITTER, transmitter, credit_waits, HELIO_HAS_CREDIT) \
    X(TRANSMITTER, transmitter, credit_wait_time, HELIO_HAS_CREDIT) \
    X(TX_RECEIVER, tx_receiver, acks_received, HELIO_HAS_ACKS) \
    X(TX_RECEIVER, tx_receiver, acked_position, HELIO_HAS_ACKS) \
    X(TX_RECEIVER, tx_receiver, ack_lag, HELIO_HAS_ACKS) \
    X(TX_RECEIVER, tx_receiver, clock_offset, HELIO_HAS_CLOCK) \
    X(TX_RECEIVER, tx_receiver, clock_error_bound, HELIO_HAS_CLOCK) \
    X(RX_STREAM, rx_stream, repairer_naks_sent, HELIO_HAS_REPAIRER) \
    X(RX_STREAM, rx_stream, repairer_repairs_received, HELIO_HAS_REPAIRER) \
    X(RX_STREAM, rx_stream, repairer_given_up, HELIO_HAS_REPAIRER) \
    X(RX_STREAM, rx_stream, repairer_naks_received, HELIO_HAS_REPAIRS) \
    X(RX_STREAM, rx_stream, repairer_repairs_sent, HELIO_HAS_REPAIRS) \
    X(RX_STREAM, rx_stream, repairer_naks_awaited, HELIO_HAS_REPAIRS) \
    X(RX_STREAM, rx_stream, repairer_naks_declined, HELIO_HAS_REPAIRS) \
    X(RX_STREAM, rx_stream, repairer_naks_limited, HELIO_HAS_REPAIRS) \
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
