/* Generated from engine/catalogue/events.toml by generate.py; do not edit. */
/* clang-format off */
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
    HELIO_EVENT_RECEIVER_DISCOVERED = 8,
    HELIO_EVENT_RECEIVE_QUEUE_FULL = 9,
    HELIO_EVENT_RECEIVE_QUEUE_DRAINED = 10,
    HELIO_EVENT_SOCKET_DROPS = 11,
    HELIO_EVENT_SEND_FAILED = 12,
    HELIO_EVENT_FOREIGN_TRAFFIC = 13,
    HELIO_EVENT_STREAM_CONFLICT = 14,
    HELIO_EVENT_SOCKET_BUFFER_SMALL = 15,
    HELIO_EVENT_TOPIC_CONFLICT = 16,
    HELIO_EVENT_TOPIC_FOUND = 22,
    HELIO_EVENT_TOPIC_NOT_KEPT = 24,
    HELIO_EVENT_TOPIC_REFUSED = 23,
    HELIO_EVENT_STATE_REFUSED = 21,
    HELIO_EVENT_CONNECTION_OPENED = 17,
    HELIO_EVENT_CONNECTION_LOST = 18,
    HELIO_EVENT_PROCESS_CRASHED = 19,
    HELIO_EVENT_TRANSPORT_FALLBACK = 20,
    HELIO_EVENT_WARNED = 69,
    HELIO_EVENT_RECEIVER_ACTION = 85,
    HELIO_EVENT_NAK_LIMIT = 86,
    HELIO_EVENT_SUSPENDED = 87,
    HELIO_EVENT_RESUMED = 88,
    HELIO_EVENT_EXPELLED = 89,
    HELIO_EVENT_HISTORY_RESIZED = 30,
    HELIO_EVENT_DECISION_LOG_FULL = 115,
    HELIO_EVENT_ACKS_STARTED = 60,
    HELIO_EVENT_ACKS_STOPPED = 61,
    HELIO_EVENT_ACKS_MISSING = 62,
    HELIO_EVENT_ACKS_DEGRADED = 63,
    HELIO_EVENT_QUORUM_REACHED = 64,
    HELIO_EVENT_QUORUM_LOST = 65,
    HELIO_EVENT_UNSTABLE_LIMIT = 66,
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
    HELIO_EVENT_RECEIVER_SLOW = 90,
    HELIO_EVENT_RECEIVER_PACED = 91,
    HELIO_EVENT_RECEIVER_SUSPENDED = 92,
    HELIO_EVENT_RECEIVER_EXPELLED = 93,
    HELIO_EVENT_RECEIVER_READMITTED = 94,
    HELIO_EVENT_RECEIVER_FORECAST = 95,
    HELIO_EVENT_RECEIVER_SPARED = 96,
    HELIO_EVENT_RECEIVER_ADVICE = 97,
    HELIO_EVENT_STORM_DETECTED = 98,
    HELIO_EVENT_STORM_ENDED = 99,
    HELIO_EVENT_FLIGHT_FROZEN = 170,
    HELIO_EVENT_FLIGHT_FAILED = 171,
    HELIO_EVENT_CLOCK_STEPPED = 140,
    HELIO_EVENT_CLOCK_OFFSET_CHANGED = 141,
    HELIO_EVENT_CYCLE_OVERRUN = 175,
    HELIO_EVENT_LOSSES_LOCATED = 145,
    HELIO_EVENT_FILE_TRUNCATED = 176,
    HELIO_EVENT_STORE_OPENED = 180,
    HELIO_EVENT_STORE_BLOCKED = 181,
    HELIO_EVENT_STORE_RESUMED = 182,
    HELIO_EVENT_STORE_SEGMENTS_REMOVED = 183,
    HELIO_EVENT_STORE_HOLE_OPENED = 184,
    HELIO_EVENT_STORE_HOLE_FILLED = 185,
    HELIO_EVENT_STORE_HOLE_GIVEN_UP = 186,
    HELIO_EVENT_STORE_RECOVERED = 195,
    HELIO_EVENT_STORE_LACKS_MESSAGES = 196,
    HELIO_EVENT_STORE_UNREADABLE = 197,
    HELIO_EVENT_REPAIRER_AWAY = 190,
    HELIO_EVENT_REPAIRER_BACK = 191,
} helio_event_id;

/* X(NAME, name, id, SEVERITY, arguments joined by ',', help) */
#define HELIO_EVENTS(X) \
    X(INSTANCE_STARTED, instance_started, 1, INFO, "pid", "An instance started.") \
    X(INSTANCE_STOPPED, instance_stopped, 2, INFO, "pid", "An instance stopped cleanly.") \
    X(STREAM_OPENED, stream_opened, 3, INFO, "first_sequence", "A receiver discovered a new stream.") \
    X(STREAM_CLOSED, stream_closed, 4, INFO, "last_sequence", "A stream ended: its source announced the end.") \
    X(STREAM_SILENT, stream_silent, 5, WARNING, "silent_ns", "A stream was silent for the expiry time and was dropped.") \
    X(PACKETS_LOST, packets_lost, 6, ERROR, "first_sequence,packets,reason", "Packets are unrecoverable. Reported once per range, in stream order.") \
    X(MESSAGES_LOST, messages_lost, 7, ERROR, "first_message,messages", "Messages of a topic are unrecoverable. Reported once per range, in stream order.") \
    X(RECEIVER_DISCOVERED, receiver_discovered, 8, INFO, "", "A stream discovered a receiver: it requested a repair, acknowledged or reported.") \
    X(RECEIVE_QUEUE_FULL, receive_queue_full, 9, WARNING, "queue_bytes", "The receive queue is full because the application is too slow; delivery waits.") \
    X(RECEIVE_QUEUE_DRAINED, receive_queue_drained, 10, INFO, "queue_bytes", "A full receive queue fell below half; delivery continues.") \
    X(SOCKET_DROPS, socket_drops, 11, WARNING, "packets", "The kernel dropped datagrams because a socket's receive buffer was full.") \
    X(SEND_FAILED, send_failed, 12, ERROR, "errno", "The driver could not send.") \
    X(FOREIGN_TRAFFIC, foreign_traffic, 13, WARNING, "", "PGM traffic of another program, or malformed datagrams, arrive on this endpoint.") \
    X(STREAM_CONFLICT, stream_conflict, 14, ERROR, "", "Two addresses use one stream identity.") \
    X(SOCKET_BUFFER_SMALL, socket_buffer_small, 15, WARNING, "wanted_bytes,got_bytes", "The kernel granted a smaller socket buffer than the option socket_buffer requests.") \
    X(TOPIC_CONFLICT, topic_conflict, 16, ERROR, "", "Two topic names share one topic identifier on a stream.") \
    X(TOPIC_FOUND, topic_found, 22, INFO, "topics", "A stream announced a topic that matches a pattern, for instance of a message store. It is received from now on.") \
    X(TOPIC_NOT_KEPT, topic_not_kept, 24, WARNING, "", "A store acknowledges a stream whose source waits for it, and does not keep one of the topics. To the source that topic is stable. Reported once a stream.") \
    X(TOPIC_REFUSED, topic_refused, 23, WARNING, "topics", "A stream announced a topic that matches a pattern, and it is not received: there are too many topics, or no memory. Reported once a second.") \
    X(STATE_REFUSED, state_refused, 21, WARNING, "reason,refused", "Unproven streams, receivers, connections or requests were refused or evicted because of a limit. Once per burst, with the total; reason is an index, from 0, into the reasons of instance.state_refused.") \
    X(CONNECTION_OPENED, connection_opened, 17, INFO, "", "A connection was established, or a reader or writer attached to a ring.") \
    X(CONNECTION_LOST, connection_lost, 18, WARNING, "", "A connection closed or broke. Its streams continue after a reconnect, as far as the history reaches.") \
    X(PROCESS_CRASHED, process_crashed, 19, ERROR, "", "The process on the other side of a ring ended without detaching.") \
    X(TRANSPORT_FALLBACK, transport_fallback, 20, INFO, "", "A faster transport was not available; the text says why, and what is used instead.") \
    X(WARNED, warned, 69, WARNING, "action,reason,duration_ms", "At a receiver: its source notified it that it is slow, or repairs less for it. The text says why.") \
    X(RECEIVER_ACTION, receiver_action, 85, WARNING, "action,receiver,duration_ms,by_hand", "At a source: an action on a receiver, or a cut-off, began or ended. The text says for whom and why.") \
    X(NAK_LIMIT, nak_limit, 86, WARNING, "receiver,window,naks_shed,acks_shed", "At a source: requests or acknowledgements of a receiver exceeded its limit and were ignored. At most one per second and receiver; window is in nanoseconds.") \
    X(SUSPENDED, suspended, 87, WARNING, "action,reason,duration_ms", "At a receiver: its source suspended it, so it requests no repairs. The text says why.") \
    X(RESUMED, resumed, 88, INFO, "action", "At a receiver: it requests repairs again, or receives a stream again after it was expelled.") \
    X(EXPELLED, expelled, 89, ERROR, "action,reason,duration_ms", "At a receiver: its source expelled it, so it no longer receives the stream. The text says why.") \
    X(HISTORY_RESIZED, history_resized, 30, INFO, "limit_packets,limit_bytes", "A dynamic history changed its limits: up because requests came close to its end, down after a quiet time.") \
    X(DECISION_LOG_FULL, decision_log_full, 115, WARNING, "bytes", "A decision log has reached its size limit. Decisions continue and are no longer logged.") \
    X(ACKS_STARTED, acks_started, 60, INFO, "receiver,first_sequence,receivers", "A receiver began to acknowledge a stream, possibly again after a restart.") \
    X(ACKS_STOPPED, acks_stopped, 61, WARNING, "receiver,acked_sequence,receivers", "A receiver no longer acknowledges: it left, or was silent for the expiry time.") \
    X(ACKS_MISSING, acks_missing, 62, WARNING, "receivers,wanted,packets_unacked", "Too few receivers acknowledge, or they are so slow that the history is full. The text names the slow ones.") \
    X(ACKS_DEGRADED, acks_degraded, 63, WARNING, "needed,wanted,packets_unacked", "The number of acknowledgements a packet needs followed the number of receivers (acks_missing=degrade), or packets were dropped unacknowledged at close.") \
    X(QUORUM_REACHED, quorum_reached, 64, INFO, "present,required,packets_unacked", "A stream has the acknowledging receivers or stores that option acks requires, for the first time or again.") \
    X(QUORUM_LOST, quorum_lost, 65, WARNING, "present,required,packets_unacked", "Fewer receivers or stores acknowledge a stream than option acks requires: no message becomes stable.") \
    X(UNSTABLE_LIMIT, unstable_limit, 66, WARNING, "messages,bytes,limit", "The messages that are not stable have reached unstable_messages or unstable_bytes, which the text names. At most one per second and stream.") \
    X(CONGESTION_ON, congestion_on, 70, WARNING, "waited_ns,queue_bytes,rate,cause", "Messages have waited longer than congestion_time. Causes: 1 room, 2 repairs, 3 acknowledgements, 4 rate, 5 instance's rate, 6 send limit, 7 credit. 11 and 12: limits unstable_messages, unstable_bytes.") \
    X(CONGESTION_OFF, congestion_off, 71, INFO, "lasted_ns,queue_bytes,rate", "The congestion ended.") \
    X(RATE_CHANGED, rate_changed, 75, INFO, "from,to,loss_millionths,receiver_index", "The rate policy changed the rate in bytes per second, or would have (rate_mode=advise). Rises are reported in steps of 10 %. The text names the deciding receiver (receiver_index 4294967295: none).") \
    X(RATE_FLOOR, rate_floor, 76, WARNING, "rate,loss_millionths,receiver_index,lasted_ns", "The rate is at its minimum (rate_min) and receivers still lose too much, for a second or longer. A lower rate does not help them.") \
    X(RATE_POLICY_CHANGED, rate_policy_changed, 77, INFO, "rate", "The stream has another rate policy. The rate is the one in force, in bytes per second; 0: no limit.") \
    X(RECEIVER_CONFLICT, receiver_conflict, 80, WARNING, "receiver,incarnation,position", "A report or an acknowledgement was refused because it came from another address than its receiver's: forged, two receivers with one name, or a receiver that moved without leaving.") \
    X(RECEIVER_RESTARTED, receiver_restarted, 81, INFO, "receiver,incarnation,position", "A reporting receiver restarted; the numbers it reports begin at 0 again.") \
    X(RECEIVER_LEFT, receiver_left, 82, INFO, "receiver,incarnation,position", "A reporting receiver left.") \
    X(COMMAND, command, 110, INFO, "uid,pid,ticket", "A command received through the segment (heliograph ctl) was executed. The text has the command and the answer.") \
    X(COMMAND_REFUSED, command_refused, 111, WARNING, "uid,pid,ticket,error", "A command received through the segment was refused. The text has the command and the reason.") \
    X(EVENTS_SUPPRESSED, events_suppressed, 112, WARNING, "event,events,span_ns", "Events of one kind exceeded event_rate and were suppressed. Statistics counted their causes nevertheless.") \
    X(LEVEL_CHANGED, level_changed, 113, INFO, "level,before,for_ns,objects", "The level of detail was changed at run time, for the instance or for the objects a selector matches. for_ns 0: permanently.") \
    X(LEVEL_REVERTED, level_reverted, 114, INFO, "level,before,objects", "A temporary level of detail ended, for the instance or for the objects a selector matches. level is the instance's.") \
    X(MESSAGES_DROPPED, messages_dropped, 100, WARNING, "messages,messages_in_all", "Messages were dropped from a submit queue (overflow, queue_age, or closing without credit). At most one per second, with all since the last.") \
    X(MESSAGES_TRIMMED, messages_trimmed, 101, WARNING, "messages,messages_in_all", "Messages were trimmed from a receive queue (overflow, queue_age). At most one per second, with all since the last.") \
    X(QUEUE_ALERT_ON, queue_alert_on, 102, WARNING, "fill_ppm,queue_bytes", "A queue reached its high mark (queue_high).") \
    X(QUEUE_ALERT_OFF, queue_alert_off, 103, INFO, "fill_ppm,queue_bytes", "A queue fell to its low mark (queue_low).") \
    X(MEMORY_ALERT_ON, memory_alert_on, 104, WARNING, "used_bytes,limit_bytes", "The instance's memory reached its high mark (memory_high).") \
    X(MEMORY_ALERT_OFF, memory_alert_off, 105, INFO, "used_bytes,limit_bytes", "The instance's memory fell to its low mark (memory_low).") \
    X(MEMORY_REFUSED, memory_refused, 106, ERROR, "wanted_bytes,used_bytes,limit_bytes,times", "An allocation was refused because of memory_limit. At most one per second.") \
    X(RECEIVER_SLOW, receiver_slow, 90, WARNING, "receiver,symptom,value_millionths,threshold_millionths", "A receiver is slow: a symptom exceeded its threshold for the dwell time, clearly more than for other receivers. Symptoms: 1 loss, 2 naks, 3 lag, 4 buffer, 5 silence.") \
    X(RECEIVER_PACED, receiver_paced, 91, WARNING, "receiver,bytes_per_second,symptom,value_millionths", "The stream is paced to a slow receiver (slow_wait).") \
    X(RECEIVER_SUSPENDED, receiver_suspended, 92, WARNING, "receiver,action,value_millionths,duration_ms", "A slow receiver's repairs are shed, its NAKs are suspended, or it is suspended.") \
    X(RECEIVER_EXPELLED, receiver_expelled, 93, ERROR, "receiver,symptom,value_millionths,duration_ms", "A slow receiver was expelled after repeated suspensions.") \
    X(RECEIVER_READMITTED, receiver_readmitted, 94, INFO, "receiver,action,lasted_ms", "A receiver is no longer slow, suspended or expelled; the text says why.") \
    X(RECEIVER_FORECAST, receiver_forecast, 95, WARNING, "receiver,forecast_ms,lag_millionths", "A receiver falls behind; at the current rate, packets it needs leave the history soon.") \
    X(RECEIVER_SPARED, receiver_spared, 96, WARNING, "receiver,symptom,value_millionths", "A slow receiver is not isolated; the text says why. Receiver 0: many receivers became slow together, which indicates the network.") \
    X(RECEIVER_ADVICE, receiver_advice, 97, WARNING, "receiver,action,value_millionths,duration_ms", "An action on a slow receiver that slow_mode=enforce would begin or end.") \
    X(STORM_DETECTED, storm_detected, 98, ERROR, "repeats_millionths,share_millionths,load_millionths,cutoff_ms", "Requests and repairs overload the network without progress, at a normal load. Arguments: repeated among all requests, recovery among all packets, load relative to the usual load.") \
    X(STORM_ENDED, storm_ended, 99, INFO, "lasted_ms,cutoffs", "A NAK storm is over.") \
    X(FLIGHT_FROZEN, flight_frozen, 170, INFO, "number,bytes,trigger_ns", "A flight recording was saved in a file beside the segment; the text has its name and the reason. `heliograph flight` reads it.") \
    X(FLIGHT_FAILED, flight_failed, 171, WARNING, "", "The flight recorder has no ring, or could not save a recording; the text says why. The engine continues without it.") \
    X(CLOCK_STEPPED, clock_stepped, 140, WARNING, "by,forward", "This host's wall clock was set: it stepped against the monotonic clock, by the nanoseconds given. Latencies across the step are off by as much.") \
    X(CLOCK_OFFSET_CHANGED, clock_offset_changed, 141, WARNING, "by,bound", "The offset between this host's clock and the source's changed by more than its error bounds: a clock was set or stood still. The estimate has followed.") \
    X(CYCLE_OVERRUN, cycle_overrun, 175, WARNING, "nanoseconds", "A duty cycle of the engine thread took longer than 50 ms.") \
    X(LOSSES_LOCATED, losses_located, 145, INFO, "outside,socket,window,queue", "Packets missing at first were located since the last such event, by loss location. At most one per second.") \
    X(FILE_TRUNCATED, file_truncated, 176, ERROR, "", "Another program truncated a file this instance has mapped: a stats segment, a decision log or a ring. The instance continues without it.") \
    X(STORE_OPENED, store_opened, 180, INFO, "", "A message store began to keep messages.") \
    X(STORE_BLOCKED, store_blocked, 181, ERROR, "failures", "A message store cannot write, for instance because the disk is full. It takes no more messages and repeats the write. Sources that need its acknowledgement wait.") \
    X(STORE_RESUMED, store_resumed, 182, INFO, "milliseconds", "A message store that was blocked writes again.") \
    X(STORE_SEGMENTS_REMOVED, store_segments_removed, 183, INFO, "segments", "Retention removed the oldest segments of a message store.") \
    X(STORE_HOLE_OPENED, store_hole_opened, 184, WARNING, "first,last", "A message store lacks messages of a topic and fetches them from other stores. Newer messages wait in files of their own.") \
    X(STORE_HOLE_FILLED, store_hole_filled, 185, INFO, "fetched", "A topic of a message store has caught up: no message is missing, and none waits.") \
    X(STORE_HOLE_GIVEN_UP, store_hole_given_up, 186, ERROR, "first,last", "No other store has messages that a message store lacks. Its files keep a gap.") \
    X(STORE_RECOVERED, store_recovered, 195, INFO, "messages", "Messages that a receiver had lost came from a store (option recover).") \
    X(STORE_LACKS_MESSAGES, store_lacks_messages, 196, ERROR, "first_message,messages", "Messages that a receiver had lost did not come from a store in time. They are lost for good.") \
    X(STORE_UNREADABLE, store_unreadable, 197, WARNING, "", "A receiver could not read a store, or could not save its durable subscription there. It tries again.") \
    X(REPAIRER_AWAY, repairer_away, 190, WARNING, "unanswered", "The local repairer of a receiver left requests unanswered. Requests go to the source; the repairer is tried again every second.") \
    X(REPAIRER_BACK, repairer_back, 191, INFO, "unanswered", "The local repairer of a receiver answers again and gets the requests first.")

#endif
