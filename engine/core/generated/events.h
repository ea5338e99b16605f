/* Generated from engine/catalogue/events.toml by generate.py; do not edit. */
#ifndef HELIO_GENERATED_EVENTS_H
#define HELIO_GENERATED_EVENTS_H

typedef enum helio_severity { HELIO_INFO, HELIO_WARNING, HELIO_ERROR } helio_severity;

typedef enum helio_event_id {
    HELIO_EVENT_INSTANCE_STARTED = 1,
    HELIO_EVENT_INSTANCE_STOPPED = 2,
    HELIO_EVENT_STREAM_OPENED = 3,
    HELIO_EVENT_STREAM_CLOSED = 4,
    HELIO_EVENT_STREAM_SILENT = 5,
    HELIO_EVENT_PACKETS_LOST = 6,
    HELIO_EVENT_MESSAGES_LOST = 7,
    HELIO_EVENT_PEER_SEEN = 8,
    HELIO_EVENT_RECEIVE_QUEUE_FULL = 9,
    HELIO_EVENT_RECEIVE_QUEUE_DRAINED = 10,
    HELIO_EVENT_SOCKET_DROPS = 11,
    HELIO_EVENT_SEND_FAILED = 12,
    HELIO_EVENT_FOREIGN_TRAFFIC = 13,
    HELIO_EVENT_STREAM_CONFLICT = 14,
    HELIO_EVENT_SOCKET_BUFFER_SMALL = 15,
    HELIO_EVENT_TOPIC_CONFLICT = 16,
    HELIO_EVENT_STATE_REFUSED = 21,
    HELIO_EVENT_CONNECTION_OPENED = 17,
    HELIO_EVENT_CONNECTION_LOST = 18,
    HELIO_EVENT_PEER_CRASHED = 19,
    HELIO_EVENT_TRANSPORT_FALLBACK = 20,
    HELIO_EVENT_WARNED = 69,
    HELIO_EVENT_RECEIVER_TREATED = 85,
    HELIO_EVENT_NAK_LIMIT = 86,
    HELIO_EVENT_SUSPENDED = 87,
    HELIO_EVENT_RESUMED = 88,
    HELIO_EVENT_EXPELLED = 89,
    HELIO_EVENT_HISTORY_RESIZED = 30,
    HELIO_EVENT_DECISION_LOG_FULL = 115,
    HELIO_EVENT_ACKER_JOINED = 60,
    HELIO_EVENT_ACKER_LEFT = 61,
    HELIO_EVENT_ACKS_MISSING = 62,
    HELIO_EVENT_ACKS_DEGRADED = 63,
    HELIO_EVENT_CONGESTION_ON = 70,
    HELIO_EVENT_CONGESTION_OFF = 71,
    HELIO_EVENT_RATE_CHANGED = 75,
    HELIO_EVENT_RATE_FLOOR = 76,
    HELIO_EVENT_RATE_POLICY_CHANGED = 77,
    HELIO_EVENT_RECEIVER_CONFLICT = 80,
    HELIO_EVENT_RECEIVER_RESTARTED = 81,
    HELIO_EVENT_RECEIVER_LEFT = 82,
    HELIO_EVENT_COMMAND = 110,
    HELIO_EVENT_COMMAND_REFUSED = 111,
    HELIO_EVENT_EVENTS_SUPPRESSED = 112,
    HELIO_EVENT_LEVEL_CHANGED = 113,
    HELIO_EVENT_LEVEL_REVERTED = 114,
    HELIO_EVENT_MESSAGES_DROPPED = 100,
    HELIO_EVENT_MESSAGES_TRIMMED = 101,
    HELIO_EVENT_QUEUE_ALERT_ON = 102,
    HELIO_EVENT_QUEUE_ALERT_OFF = 103,
    HELIO_EVENT_MEMORY_ALERT_ON = 104,
    HELIO_EVENT_MEMORY_ALERT_OFF = 105,
    HELIO_EVENT_MEMORY_REFUSED = 106,
    HELIO_EVENT_CONSUMER_SLOW = 90,
    HELIO_EVENT_CONSUMER_PACED = 91,
    HELIO_EVENT_CONSUMER_SUSPENDED = 92,
    HELIO_EVENT_CONSUMER_EXPELLED = 93,
    HELIO_EVENT_CONSUMER_READMITTED = 94,
    HELIO_EVENT_CONSUMER_FORECAST = 95,
    HELIO_EVENT_CONSUMER_SPARED = 96,
    HELIO_EVENT_CONSUMER_ADVICE = 97,
    HELIO_EVENT_STORM_DETECTED = 98,
    HELIO_EVENT_STORM_ENDED = 99,
    HELIO_EVENT_FLIGHT_FROZEN = 170,
    HELIO_EVENT_FLIGHT_FAILED = 171,
    HELIO_EVENT_CLOCK_STEPPED = 140,
    HELIO_EVENT_CLOCK_OFFSET_CHANGED = 141,
    HELIO_EVENT_CYCLE_OVERRUN = 175,
    HELIO_EVENT_LOSSES_LOCATED = 145,
    HELIO_EVENT_FILE_TRUNCATED = 176,
} helio_event_id;

/* X(NAME, name, id, SEVERITY, arguments joined by ',', help) */
#define HELIO_EVENTS(X) \
    X(INSTANCE_STARTED, instance_started, 1, INFO, "pid", "An engine came up.") \
    X(INSTANCE_STOPPED, instance_stopped, 2, INFO, "pid", "An engine shut down cleanly.") \
    X(STREAM_OPENED, stream_opened, 3, INFO, "first_sequence", "A receiver met a new stream.") \
    X(STREAM_CLOSED, stream_closed, 4, INFO, "last_sequence", "A stream ended: its source said so.") \
    X(STREAM_SILENT, stream_silent, 5, WARNING, "silent_ns", "Nothing was heard from a stream for the expiry time; it was dropped.") \
    X(PACKETS_LOST, packets_lost, 6, ERROR, "first_sequence,packets,reason", "Packets are unrecoverable. Reported once per range, in stream order.") \
    X(MESSAGES_LOST, messages_lost, 7, ERROR, "first_message,messages", "Messages of a topic are unrecoverable. Reported once per range, in stream order.") \
    X(PEER_SEEN, peer_seen, 8, INFO, "", "A receiver spoke to a stream for the first time: it asked for a repair or acknowledged.") \
    X(RECEIVE_QUEUE_FULL, receive_queue_full, 9, WARNING, "queue_bytes", "The application does not keep up: its receive queue is full and delivery waits.") \
    X(RECEIVE_QUEUE_DRAINED, receive_queue_drained, 10, INFO, "queue_bytes", "A full receive queue fell below half and delivery goes on.") \
    X(SOCKET_DROPS, socket_drops, 11, WARNING, "packets", "The kernel dropped datagrams because a socket's receive buffer was full.") \
    X(SEND_FAILED, send_failed, 12, ERROR, "errno", "The driver could not send.") \
    X(FOREIGN_TRAFFIC, foreign_traffic, 13, WARNING, "", "Another program's PGM traffic or malformed datagrams arrive on this endpoint.") \
    X(STREAM_CONFLICT, stream_conflict, 14, ERROR, "", "One stream identity is used from two addresses.") \
    X(SOCKET_BUFFER_SMALL, socket_buffer_small, 15, WARNING, "wanted_bytes,got_bytes", "The kernel gave a smaller socket buffer than was asked for.") \
    X(TOPIC_CONFLICT, topic_conflict, 16, ERROR, "", "Two topic names share one topic identifier on a stream.") \
    X(STATE_REFUSED, state_refused, 21, WARNING, "reason,refused", "Streams, receivers, connections or requests that have proven nothing were refused or put out, because one address or all of them together had too many; told once per burst, with the number refused since the engine came up. The values of reason are those of instance.state_refused, from 0.") \
    X(CONNECTION_OPENED, connection_opened, 17, INFO, "", "A connection to the other side stands, or a reader or writer of a ring came.") \
    X(CONNECTION_LOST, connection_lost, 18, WARNING, "", "A connection ended or broke; a stream goes on when it is back, as far as the history reaches.") \
    X(PEER_CRASHED, peer_crashed, 19, ERROR, "", "The process on the other side of a ring is gone without having said goodbye.") \
    X(TRANSPORT_FALLBACK, transport_fallback, 20, INFO, "", "Something faster could not be had; the text says what, why, and what is used instead.") \
    X(WARNED, warned, 69, WARNING, "action,reason,duration_ms", "At a receiver: its source warns it, or repairs less for it; the text says why.") \
    X(RECEIVER_TREATED, receiver_treated, 85, WARNING, "action,receiver,duration_ms,by_hand", "At a source: it warned, shed, suspended, resumed, expelled or readmitted a receiver, or cut off the requests of all, or such a thing is over by itself; the text says to whom and why.") \
    X(NAK_LIMIT, nak_limit, 86, WARNING, "receiver,window,naks_shed,acks_shed", "At a source: requests for repair or acknowledgements of a receiver were over its limit and not heeded. At most once a second for each receiver; the window is in ns.") \
    X(SUSPENDED, suspended, 87, WARNING, "action,reason,duration_ms", "At a receiver: as its source told it, it asks for no repairs until this is over; the text says why.") \
    X(RESUMED, resumed, 88, INFO, "action", "At a receiver: it asks for repairs again, or follows a stream again it had been expelled from.") \
    X(EXPELLED, expelled, 89, ERROR, "action,reason,duration_ms", "At a receiver: its source has expelled it, and it does not follow the stream any more; the text says why.") \
    X(HISTORY_RESIZED, history_resized, 30, INFO, "limit_packets,limit_bytes", "A dynamic history has other limits: more because repairs were asked for near its end, fewer after a quiet time.") \
    X(DECISION_LOG_FULL, decision_log_full, 115, WARNING, "bytes", "A stream's decision log has used up its file; decisions are made on and no longer written down.") \
    X(ACKER_JOINED, acker_joined, 60, INFO, "receiver,first_sequence,ackers", "A receiver began to acknowledge a stream, or began anew after a restart.") \
    X(ACKER_LEFT, acker_left, 61, WARNING, "receiver,acked_sequence,ackers", "A receiver acknowledges no more: it said so, or was silent for the expiry time.") \
    X(ACKS_MISSING, acks_missing, 62, WARNING, "ackers,wanted,packets_unacked", "Fewer receivers acknowledge than must, or they do not keep up and the history is full; the text names who is behind.") \
    X(ACKS_DEGRADED, acks_degraded, 63, WARNING, "needed,wanted,packets_unacked", "How many acknowledgements a packet needs has changed with the receivers there are (acks_missing=degrade), or packets were let go without them at close.") \
    X(CONGESTION_ON, congestion_on, 70, WARNING, "waited_ns,queue_bytes,rate", "Messages have waited for longer than congestion_time; the text says for what.") \
    X(CONGESTION_OFF, congestion_off, 71, INFO, "lasted_ns,queue_bytes,rate", "Nothing has waited for as long: the congestion is over.") \
    X(RATE_CHANGED, rate_changed, 75, INFO, "from,to,loss_millionths,place", "The rate policy changed the rate, in bytes per second, or would have (rate_mode=advise). The text names the receiver that decided and why; its place is 4294967295 when there is none. A rise is told of in steps of a tenth.") \
    X(RATE_FLOOR, rate_floor, 76, WARNING, "rate,loss_millionths,place,lasted_ns", "The rate is at its floor (rate_min) and receivers still lose too much, for rate_escalate by now: lowering the rate does not help them.") \
    X(RATE_POLICY_CHANGED, rate_policy_changed, 77, INFO, "rate", "The stream has another rate policy; the rate is the one in force, in bytes per second, 0 for none.") \
    X(RECEIVER_CONFLICT, receiver_conflict, 80, WARNING, "receiver,incarnation,position", "A report or an acknowledgement in the name of a receiver came from another address than its own and was refused: forged, two receivers with one name, or a receiver that moved without a goodbye.") \
    X(RECEIVER_RESTARTED, receiver_restarted, 81, INFO, "receiver,incarnation,position", "A receiver that reports has begun a new life; what it tells counts anew.") \
    X(RECEIVER_LEFT, receiver_left, 82, INFO, "receiver,incarnation,position", "A receiver that reports said goodbye.") \
    X(COMMAND, command, 110, INFO, "uid,pid,ticket", "A command given through the segment (heliograph ctl) was carried out; the text has the command, as given, and the answer.") \
    X(COMMAND_REFUSED, command_refused, 111, WARNING, "uid,pid,ticket,error", "A command given through the segment was refused; the text has the command, as given, and the reason.") \
    X(EVENTS_SUPPRESSED, events_suppressed, 112, WARNING, "event,events,span_ns", "So many events of one kind were not told: there were more than event_rate and event_burst allow. Statistics have counted all of what they were about.") \
    X(LEVEL_CHANGED, level_changed, 113, INFO, "level,before,for_ns,objects", "The level of detail of the statistics was changed while the engine runs, of the instance or of the objects a selector fits, which the event is about; for_ns 0: for good.") \
    X(LEVEL_REVERTED, level_reverted, 114, INFO, "level,before,objects", "The time of another level of detail is over, of the instance or of the objects a selector fits; level is the instance's.") \
    X(MESSAGES_DROPPED, messages_dropped, 100, WARNING, "messages,messages_in_all", "Messages were dropped from a submit queue (option overflow, queue_age; a transmitter without credit that was closed); told at most once a second, with all since the last time.") \
    X(MESSAGES_TRIMMED, messages_trimmed, 101, WARNING, "messages,messages_in_all", "Messages were trimmed from a receive queue (options receive_overflow, receive_age); told at most once a second, with all since the last time.") \
    X(QUEUE_ALERT_ON, queue_alert_on, 102, WARNING, "fill_ppm,queue_bytes", "A queue has reached its high mark (queue_high).") \
    X(QUEUE_ALERT_OFF, queue_alert_off, 103, INFO, "fill_ppm,queue_bytes", "A queue is back at its low mark (queue_low) or under it.") \
    X(MEMORY_ALERT_ON, memory_alert_on, 104, WARNING, "used_bytes,limit_bytes", "The instance's memory has reached its high mark (memory_high).") \
    X(MEMORY_ALERT_OFF, memory_alert_off, 105, INFO, "used_bytes,limit_bytes", "The instance's memory is back at its low mark (memory_low) or under it.") \
    X(MEMORY_REFUSED, memory_refused, 106, ERROR, "wanted_bytes,used_bytes,limit_bytes,times", "Something could not be had, or grow, because of memory_limit; told at most once a second.") \
    X(CONSUMER_SLOW, consumer_slow, 90, WARNING, "receiver,symptom,value_millionths,threshold_millionths", "A receiver is slow: a symptom is over its threshold for the dwell time, and clearly worse than the other receivers'. Symptoms: 1 loss, 2 naks, 3 lag, 4 buffer, 5 silence.") \
    X(CONSUMER_PACED, consumer_paced, 91, WARNING, "receiver,bytes_per_second,symptom,value_millionths", "The stream goes slower so that a slow receiver can follow (slow_wait).") \
    X(CONSUMER_SUSPENDED, consumer_suspended, 92, WARNING, "receiver,action,value_millionths,duration_ms", "A slow receiver's repairs are shed (action 3), its NAKs suspended (4), or it is suspended (5).") \
    X(CONSUMER_EXPELLED, consumer_expelled, 93, ERROR, "receiver,symptom,value_millionths,duration_ms", "A slow receiver that was suspended again and again is expelled.") \
    X(CONSUMER_READMITTED, consumer_readmitted, 94, INFO, "receiver,action,lasted_ms", "A receiver is no longer slow (action 7), suspended (8) or expelled (9); the text says why.") \
    X(CONSUMER_FORECAST, consumer_forecast, 95, WARNING, "receiver,forecast_ms,lag_millionths", "A receiver falls behind, and as things go what it needs leaves the history soon.") \
    X(CONSUMER_SPARED, consumer_spared, 96, WARNING, "receiver,symptom,value_millionths", "A slow receiver is not isolated, or many receivers came into trouble together (receiver 0), which is the network's fault rather than theirs; the text says why.") \
    X(CONSUMER_ADVICE, consumer_advice, 97, WARNING, "receiver,action,value_millionths,duration_ms", "What would be done about a slow receiver, or would be over, if slow_mode were enforce. Actions: 2 pace, 3 shed, 4 suspend NAKs, 5 suspend, 6 expel, 8 resume, 9 readmit.") \
    X(STORM_DETECTED, storm_detected, 98, ERROR, "repeats_millionths,share_millionths,load_millionths,cutoff_ms", "Recovery is the overload: requests and repairs fill the network though the load is normal, and make no progress. The share of requests made before, the share of recovery in all packets, the load in relation to the usual.") \
    X(STORM_ENDED, storm_ended, 99, INFO, "lasted_ms,cutoffs", "A NAK storm is over.") \
    X(FLIGHT_FROZEN, flight_frozen, 170, INFO, "number,bytes,trigger_ns", "A flight recording was kept in a file beside the segment; the text has its name and why. Read it with `heliograph flight`.") \
    X(FLIGHT_FAILED, flight_failed, 171, WARNING, "", "The flight recorder has no ring, or could not keep a recording; the text says why. The engine goes on without.") \
    X(CLOCK_STEPPED, clock_stepped, 140, WARNING, "by,forward", "The wall clock of this host was set: it jumped against the monotonic clock by so many nanoseconds. Latencies measured across the jump, and stamps from before it, are off by as much.") \
    X(CLOCK_OFFSET_CHANGED, clock_offset_changed, 141, WARNING, "by,bound", "The offset between this host's clock and the source's changed by so many nanoseconds, more than the error bounds allow: one of them was set, or a clock stood still. The estimate has followed; the text says what happened.") \
    X(CYCLE_OVERRUN, cycle_overrun, 175, WARNING, "nanoseconds", "A duty cycle of the engine's thread took longer than cycle_limit.") \
    X(LOSSES_LOCATED, losses_located, 145, INFO, "outside,socket,window,queue", "Where packets that did not come in at first got lost, since it was told last; once a second at most.") \
    X(FILE_TRUNCATED, file_truncated, 176, ERROR, "", "Another program truncated a file this instance has mapped: a stats segment, a decision log or a ring. What was cut off is lost; the instance goes on without it.")

#endif
