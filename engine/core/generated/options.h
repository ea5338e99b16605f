/* Generated from engine/catalogue/options.toml by generate.py; do not edit. */
#ifndef HELIO_GENERATED_OPTIONS_H
#define HELIO_GENERATED_OPTIONS_H

enum { HELIO_ON_INSTANCE = 1, HELIO_ON_TRANSMITTER = 2, HELIO_ON_RECEIVER = 4 };

typedef enum helio_option_type {
    HELIO_OPTION_STRING, HELIO_OPTION_CHOICE, HELIO_OPTION_INTEGER, HELIO_OPTION_FLOAT, HELIO_OPTION_BOOLEAN
} helio_option_type;

typedef enum helio_option_id {
    HELIO_OPTION_ID_NAME,
    HELIO_OPTION_ID_MODE,
    HELIO_OPTION_ID_IDLE,
    HELIO_OPTION_ID_CPU,
    HELIO_OPTION_ID_PRIORITY,
    HELIO_OPTION_ID_LOCK_MEMORY,
    HELIO_OPTION_ID_STATS,
    HELIO_OPTION_ID_SEGMENT_DIR,
    HELIO_OPTION_ID_SEGMENT_BYTES,
    HELIO_OPTION_ID_LEVEL,
    HELIO_OPTION_ID_SAMPLE,
    HELIO_OPTION_ID_HICCUP_INTERVAL,
    HELIO_OPTION_ID_CYCLE_LIMIT,
    HELIO_OPTION_ID_EVENT_RATE,
    HELIO_OPTION_ID_EVENT_BURST,
    HELIO_OPTION_ID_RATE,
    HELIO_OPTION_ID_MEMORY_LIMIT,
    HELIO_OPTION_ID_MEMORY_HIGH,
    HELIO_OPTION_ID_MEMORY_LOW,
    HELIO_OPTION_ID_HISTORY_LIMIT_BYTES,
    HELIO_OPTION_ID_DECISION_LOG,
    HELIO_OPTION_ID_DECISION_LOG_BYTES,
    HELIO_OPTION_ID_FLIGHT_BYTES,
    HELIO_OPTION_ID_FLIGHT_INTERVAL,
    HELIO_OPTION_ID_FLIGHT_FREEZE,
    HELIO_OPTION_ID_FLIGHT_KEEP,
    HELIO_OPTION_ID_PROFILE,
    HELIO_OPTION_ID_INTERFACE,
    HELIO_OPTION_ID_TTL,
    HELIO_OPTION_ID_MTU,
    HELIO_OPTION_ID_SOCKET_BUFFER,
    HELIO_OPTION_ID_GSO,
    HELIO_OPTION_ID_GRO,
    HELIO_OPTION_ID_ENCAPSULATION,
    HELIO_OPTION_ID_ROUTER_ALERT,
    HELIO_OPTION_ID_UPSTREAM,
    HELIO_OPTION_ID_INJECT_LOSS,
    HELIO_OPTION_ID_PAYLOAD,
    HELIO_OPTION_ID_RING_PACKETS,
    HELIO_OPTION_ID_RING_WAIT,
    HELIO_OPTION_ID_HUGE_PAGES,
    HELIO_OPTION_ID_CONNECTION_TIMEOUT,
    HELIO_OPTION_ID_CONNECT_WAIT,
    HELIO_OPTION_ID_SEND_BACKLOG,
    HELIO_OPTION_ID_SEND_WINDOW,
    HELIO_OPTION_ID_HISTORY,
    HELIO_OPTION_ID_HISTORY_BYTES,
    HELIO_OPTION_ID_HISTORY_TIME,
    HELIO_OPTION_ID_LATE_JOIN,
    HELIO_OPTION_ID_FIRST_SEQUENCE,
    HELIO_OPTION_ID_SUBMIT_QUEUE,
    HELIO_OPTION_ID_OVERFLOW,
    HELIO_OPTION_ID_QUEUE_MESSAGES,
    HELIO_OPTION_ID_QUEUE_AGE,
    HELIO_OPTION_ID_LOW_WATER,
    HELIO_OPTION_ID_AWAIT_CREDIT,
    HELIO_OPTION_ID_KEY_OFFSET,
    HELIO_OPTION_ID_KEY_BYTES,
    HELIO_OPTION_ID_PRIORITY_OFFSET,
    HELIO_OPTION_ID_QUEUE_HIGH,
    HELIO_OPTION_ID_QUEUE_LOW,
    HELIO_OPTION_ID_MAX_MESSAGE_BYTES,
    HELIO_OPTION_ID_LINGER,
    HELIO_OPTION_ID_HEARTBEAT_MIN,
    HELIO_OPTION_ID_HEARTBEAT_MAX,
    HELIO_OPTION_ID_AMBIENT_INTERVAL,
    HELIO_OPTION_ID_ANNOUNCE_INTERVAL,
    HELIO_OPTION_ID_POLL_INTERVAL,
    HELIO_OPTION_ID_REPAIR_LINGER,
    HELIO_OPTION_ID_REPORT_INTERVAL,
    HELIO_OPTION_ID_REPORT_RATE,
    HELIO_OPTION_ID_RATE_POLICY,
    HELIO_OPTION_ID_RATE_MIN,
    HELIO_OPTION_ID_RATE_BURST,
    HELIO_OPTION_ID_RATE_COUNTS,
    HELIO_OPTION_ID_CONGESTION_TIME,
    HELIO_OPTION_ID_REPAIR_SHARE,
    HELIO_OPTION_ID_RATE_MODE,
    HELIO_OPTION_ID_FLOW_WINDOW,
    HELIO_OPTION_ID_WINDOW_RECEIVERS,
    HELIO_OPTION_ID_WINDOW_SILENCE,
    HELIO_OPTION_ID_LOSS_HIGH,
    HELIO_OPTION_ID_LOSS_LOW,
    HELIO_OPTION_ID_RATE_RECEIVERS,
    HELIO_OPTION_ID_RATE_QUANTILE,
    HELIO_OPTION_ID_RATE_SILENCE,
    HELIO_OPTION_ID_RATE_ESCALATE,
    HELIO_OPTION_ID_CONTROL_INTERVAL,
    HELIO_OPTION_ID_ACKS,
    HELIO_OPTION_ID_ACKS_MISSING,
    HELIO_OPTION_ID_ACKS_WARN,
    HELIO_OPTION_ID_ACKER_EXPIRY,
    HELIO_OPTION_ID_NAK_LIMIT,
    HELIO_OPTION_ID_ACK_LIMIT,
    HELIO_OPTION_ID_REPAIR_LIMIT,
    HELIO_OPTION_ID_REPAIR_BUDGET,
    HELIO_OPTION_ID_SHED_LIMIT,
    HELIO_OPTION_ID_SLOW_MODE,
    HELIO_OPTION_ID_SLOW_ACTION,
    HELIO_OPTION_ID_SLOW_WAIT,
    HELIO_OPTION_ID_SLOW_LOSS,
    HELIO_OPTION_ID_SLOW_NAKS,
    HELIO_OPTION_ID_SLOW_LAG,
    HELIO_OPTION_ID_SLOW_BUFFER,
    HELIO_OPTION_ID_SLOW_DWELL,
    HELIO_OPTION_ID_SLOW_LEAD,
    HELIO_OPTION_ID_SUSPEND_TIME,
    HELIO_OPTION_ID_EXPEL_AFTER,
    HELIO_OPTION_ID_EXPEL_TIME,
    HELIO_OPTION_ID_EXPEL_SHARE,
    HELIO_OPTION_ID_STORM_MODE,
    HELIO_OPTION_ID_STORM_TIME,
    HELIO_OPTION_ID_CUTOFF_TIME,
    HELIO_OPTION_ID_ACK,
    HELIO_OPTION_ID_ACK_PACKETS,
    HELIO_OPTION_ID_ACK_INTERVAL,
    HELIO_OPTION_ID_CREDIT,
    HELIO_OPTION_ID_TAGGED,
    HELIO_OPTION_ID_RECEIVE_WINDOW,
    HELIO_OPTION_ID_JOIN,
    HELIO_OPTION_ID_RECEIVE_BYTES,
    HELIO_OPTION_ID_RECEIVE_QUEUE,
    HELIO_OPTION_ID_RECEIVE_OVERFLOW,
    HELIO_OPTION_ID_RECEIVE_MESSAGES,
    HELIO_OPTION_ID_RECEIVE_AGE,
    HELIO_OPTION_ID_RECEIVE_LOW_WATER,
    HELIO_OPTION_ID_REORDER_PACKETS,
    HELIO_OPTION_ID_REORDER_TIME,
    HELIO_OPTION_ID_NAK,
    HELIO_OPTION_ID_ORDER,
    HELIO_OPTION_ID_GROUP_SIZE,
    HELIO_OPTION_ID_NAK_BACKOFF,
    HELIO_OPTION_ID_NAK_REPEAT,
    HELIO_OPTION_ID_NAK_DATA,
    HELIO_OPTION_ID_NETWORK_ELEMENTS,
    HELIO_OPTION_ID_SPMR_DELAY,
    HELIO_OPTION_ID_NAK_RETRIES,
    HELIO_OPTION_ID_NAK_DEADLINE,
    HELIO_OPTION_ID_STREAM_EXPIRY,
    HELIO_OPTION_ID_MAX_STREAMS,
    HELIO_OPTIONS_COUNT
} helio_option_id;

enum { /* choices of mode */
    HELIO_MODE_THREAD,
    HELIO_MODE_POLL,
};

enum { /* choices of idle */
    HELIO_IDLE_SPIN,
    HELIO_IDLE_YIELD,
    HELIO_IDLE_BACKOFF,
    HELIO_IDLE_BLOCK,
};

enum { /* choices of stats */
    HELIO_STATS_SEGMENT,
    HELIO_STATS_MEMORY,
};

enum { /* choices of profile */
    HELIO_PROFILE_STANDARD,
    HELIO_PROFILE_LAN_LATENCY,
    HELIO_PROFILE_LAN_THROUGHPUT,
    HELIO_PROFILE_WAN,
    HELIO_PROFILE_MANY_RECEIVERS,
};

enum { /* choices of gso */
    HELIO_GSO_AUTO,
    HELIO_GSO_OFF,
};

enum { /* choices of gro */
    HELIO_GRO_AUTO,
    HELIO_GRO_OFF,
};

enum { /* choices of encapsulation */
    HELIO_ENCAPSULATION_UDP,
    HELIO_ENCAPSULATION_IP,
};

enum { /* choices of payload */
    HELIO_PAYLOAD_HELIOGRAPH,
    HELIO_PAYLOAD_RAW,
};

enum { /* choices of history */
    HELIO_HISTORY_STATIC,
    HELIO_HISTORY_DYNAMIC,
};

enum { /* choices of overflow */
    HELIO_OVERFLOW_BLOCK,
    HELIO_OVERFLOW_REFUSE,
    HELIO_OVERFLOW_DROP_NEWEST,
    HELIO_OVERFLOW_DROP_OLDEST,
    HELIO_OVERFLOW_CONFLATE,
    HELIO_OVERFLOW_PRIORITY,
};

enum { /* choices of rate_policy */
    HELIO_RATE_POLICY_NONE,
    HELIO_RATE_POLICY_STATIC,
    HELIO_RATE_POLICY_DYNAMIC,
    HELIO_RATE_POLICY_PGMCC,
};

enum { /* choices of rate_counts */
    HELIO_RATE_COUNTS_WIRE,
    HELIO_RATE_COUNTS_PAYLOAD,
};

enum { /* choices of rate_mode */
    HELIO_RATE_MODE_ENFORCE,
    HELIO_RATE_MODE_ADVISE,
    HELIO_RATE_MODE_OBSERVE,
};

enum { /* choices of flow_window */
    HELIO_FLOW_WINDOW_NONE,
    HELIO_FLOW_WINDOW_MAX,
    HELIO_FLOW_WINDOW_MIN,
    HELIO_FLOW_WINDOW_TAGGED,
};

enum { /* choices of rate_receivers */
    HELIO_RATE_RECEIVERS_WORST,
    HELIO_RATE_RECEIVERS_QUANTILE,
    HELIO_RATE_RECEIVERS_TAGGED,
};

enum { /* choices of acks_missing */
    HELIO_ACKS_MISSING_BLOCK,
    HELIO_ACKS_MISSING_DEGRADE,
    HELIO_ACKS_MISSING_FAIL,
};

enum { /* choices of slow_mode */
    HELIO_SLOW_MODE_OBSERVE,
    HELIO_SLOW_MODE_ADVISE,
    HELIO_SLOW_MODE_ENFORCE,
};

enum { /* choices of slow_action */
    HELIO_SLOW_ACTION_NOTIFY,
    HELIO_SLOW_ACTION_PACE,
    HELIO_SLOW_ACTION_SHED,
    HELIO_SLOW_ACTION_SUSPEND_NAKS,
    HELIO_SLOW_ACTION_SUSPEND,
    HELIO_SLOW_ACTION_EXPEL,
};

enum { /* choices of storm_mode */
    HELIO_STORM_MODE_OBSERVE,
    HELIO_STORM_MODE_ADVISE,
    HELIO_STORM_MODE_ENFORCE,
};

enum { /* choices of ack */
    HELIO_ACK_NONE,
    HELIO_ACK_AUTO,
    HELIO_ACK_APP,
};

enum { /* choices of join */
    HELIO_JOIN_AUTO,
    HELIO_JOIN_LIVE,
    HELIO_JOIN_HISTORY,
};

enum { /* choices of receive_overflow */
    HELIO_RECEIVE_OVERFLOW_BLOCK,
    HELIO_RECEIVE_OVERFLOW_DROP_NEWEST,
    HELIO_RECEIVE_OVERFLOW_DROP_OLDEST,
    HELIO_RECEIVE_OVERFLOW_CONFLATE,
    HELIO_RECEIVE_OVERFLOW_PRIORITY,
};

enum { /* choices of nak */
    HELIO_NAK_ON,
    HELIO_NAK_OFF,
};

enum { /* choices of order */
    HELIO_ORDER_STREAM,
    HELIO_ORDER_ARRIVAL,
};

/* X(NAME, name, TYPE, on, low, high, default as text, choices joined by ',', help) */
#define HELIO_OPTIONS(X) \
    X(NAME, name, STRING, HELIO_ON_INSTANCE, 0.0, 0.0, "", "", "Name of the instance; default: the program's name and process id.") \
    X(MODE, mode, CHOICE, HELIO_ON_INSTANCE, 0.0, 0.0, "thread", "thread,poll", "thread: the engine runs on its own thread; poll: the caller runs it.") \
    X(IDLE, idle, CHOICE, HELIO_ON_INSTANCE, 0.0, 0.0, "backoff", "spin,yield,backoff,block", "What the engine thread does when there is nothing to do.") \
    X(CPU, cpu, INTEGER, HELIO_ON_INSTANCE, -1.0, 4095.0, "-1", "", "Core the engine thread is bound to; -1: any.") \
    X(PRIORITY, priority, INTEGER, HELIO_ON_INSTANCE, 0.0, 99.0, "0", "", "Real-time priority (SCHED_FIFO) of the engine thread, which needs CAP_SYS_NICE or RLIMIT_RTPRIO; 0: an ordinary thread.") \
    X(LOCK_MEMORY, lock_memory, BOOLEAN, HELIO_ON_INSTANCE, 0.0, 0.0, "false", "", "Lock the process's memory: pages once touched are never swapped out, from then on until the process ends.") \
    X(STATS, stats, CHOICE, HELIO_ON_INSTANCE, 0.0, 0.0, "segment", "segment,memory", "segment: count into shared memory for monitors; memory: count privately.") \
    X(SEGMENT_DIR, segment_dir, STRING, HELIO_ON_INSTANCE, 0.0, 0.0, "", "", "Folder of the stats segments; default: $HELIOGRAPH_SEGMENT_DIR or /dev/shm/heliograph.") \
    X(SEGMENT_BYTES, segment_bytes, INTEGER, HELIO_ON_INSTANCE, 1048576.0, 4294967296.0, "67108864", "", "Size of the stats segment; pages never written cost no memory.") \
    X(LEVEL, level, INTEGER, HELIO_ON_INSTANCE, 0.0, 3.0, "2", "", "Level of detail of the statistics.") \
    X(SAMPLE, sample, INTEGER, HELIO_ON_INSTANCE, 1.0, 1000000.0, "1", "", "Latency is measured of one packet in so many, drawn at random; 1: of every one.") \
    X(HICCUP_INTERVAL, hiccup_interval, FLOAT, HELIO_ON_INSTANCE, 0.0, 1.0, "0.005", "", "How long the thread sleeps each time that watches the host for hiccups; 0: there is none.") \
    X(CYCLE_LIMIT, cycle_limit, FLOAT, HELIO_ON_INSTANCE, 1e-06, 60.0, "0.05", "", "A duty cycle of the engine's thread that takes longer is counted and told.") \
    X(EVENT_RATE, event_rate, INTEGER, HELIO_ON_INSTANCE, 0.0, 1000000.0, "100", "", "Most events of one kind told in a second; how many were held back is told afterwards; 0: no limit.") \
    X(EVENT_BURST, event_burst, INTEGER, HELIO_ON_INSTANCE, 1.0, 1000000.0, "200", "", "Most events of one kind told at once, above event_rate.") \
    X(RATE, rate, INTEGER, HELIO_ON_INSTANCE | HELIO_ON_TRANSMITTER, 0.0, 100000000000.0, "0", "", "Bytes per second that leave at most, 0: no limit, else at least 10000. Of a stream with rate_policy; of an instance: all its streams together, which share it fairly.") \
    X(MEMORY_LIMIT, memory_limit, INTEGER, HELIO_ON_INSTANCE, 0.0, 1099511627776.0, "0", "", "Most bytes the instance's windows, histories, queues and buffers may take together; what would exceed it is refused or goes without; 0: no limit.") \
    X(MEMORY_HIGH, memory_high, FLOAT, HELIO_ON_INSTANCE, 0.0, 1.0, "0.85", "", "Share of memory_limit from which on an event alerts; 0: none does.") \
    X(MEMORY_LOW, memory_low, FLOAT, HELIO_ON_INSTANCE, 0.0, 1.0, "0.7", "", "Share of memory_limit at or under which the alert ends; at most memory_high.") \
    X(HISTORY_LIMIT_BYTES, history_limit_bytes, INTEGER, HELIO_ON_INSTANCE, 0.0, 1099511627776.0, "0", "", "Most bytes the histories of all streams may have as their limits together; 0: no limit.") \
    X(DECISION_LOG, decision_log, STRING, HELIO_ON_INSTANCE, 0.0, 0.0, "", "", "Folder for decision logs, one file for each stream that is sent: all that its rate policy and its engine for slow consumers see and decide, for `heliograph lab replay`; default: none.") \
    X(DECISION_LOG_BYTES, decision_log_bytes, INTEGER, HELIO_ON_INSTANCE, 65536.0, 17179869184.0, "16777216", "", "Size of a decision log; when it is used up an event says so and no more is written.") \
    X(FLIGHT_BYTES, flight_bytes, INTEGER, HELIO_ON_INSTANCE, 0.0, 1073741824.0, "4194304", "", "Size of the flight recorder's ring, a file beside the stats segment: all statistics every flight_interval; at least 262144, or 0: no flight recorder.") \
    X(FLIGHT_INTERVAL, flight_interval, FLOAT, HELIO_ON_INSTANCE, 0.001, 60.0, "0.01", "", "How often the flight recorder looks at all statistics; less often where that would take more than a fiftieth of a core.") \
    X(FLIGHT_FREEZE, flight_freeze, STRING, HELIO_ON_INSTANCE, 0.0, 0.0, "error,socket_drops,suspended,consumer_suspended,rate_floor", "", "Events (by name, or all of a severity) at which the flight recording is kept, two seconds later; each kind again only after 10 s without it; none: by hand only.") \
    X(FLIGHT_KEEP, flight_keep, INTEGER, HELIO_ON_INSTANCE, 0.0, 1000.0, "4", "", "Most flight recordings kept of one instance name, the oldest goes; 0: none is kept.") \
    X(PROFILE, profile, CHOICE, HELIO_ON_INSTANCE | HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 0.0, "standard", "standard,lan-latency,lan-throughput,wan,many-receivers", "Preset that changes the defaults of other options, see profiles.md.") \
    X(INTERFACE, interface, STRING, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 0.0, "", "", "Address or name of the network interface for multicast.") \
    X(TTL, ttl, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 255.0, "1", "", "Time to live of multicast packets.") \
    X(MTU, mtu, INTEGER, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 576.0, 65535.0, "1500", "", "Largest IP packet, headers included.") \
    X(SOCKET_BUFFER, socket_buffer, INTEGER, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 4096.0, 1073741824.0, "4194304", "", "Kernel socket buffer asked for.") \
    X(GSO, gso, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "auto", "auto,off", "UDP segmentation offload: equal packets are given to the kernel as one; auto: where the kernel and the network card can.") \
    X(GRO, gro, CHOICE, HELIO_ON_RECEIVER, 0.0, 0.0, "auto", "auto,off", "UDP receive offload: the kernel may give several packets as one; auto: where it can.") \
    X(ENCAPSULATION, encapsulation, CHOICE, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 0.0, "udp", "udp,ip", "What carries the packets: udp, or ip: protocol 113 without UDP, which needs CAP_NET_RAW.") \
    X(ROUTER_ALERT, router_alert, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "false", "", "With encapsulation=ip: SPM, NCF and RDATA carry IPv4's Router Alert, for network elements on the way.") \
    X(UPSTREAM, upstream, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "false", "", "Listen on the endpoint's port of the own address too: where receivers of other PGM programs send what they ask for. One stream of an address and port can.") \
    X(INJECT_LOSS, inject_loss, FLOAT, HELIO_ON_RECEIVER, 0.0, 1.0, "0.0", "", "Share of the received packets thrown away before the engine sees them; for trials of a lossy network only.") \
    X(PAYLOAD, payload, CHOICE, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 0.0, "heliograph", "heliograph,raw", "heliograph: batches of numbered messages of named topics; raw: each message alone is the packet's application data, as other PGM programs send and expect it.") \
    X(RING_PACKETS, ring_packets, INTEGER, HELIO_ON_TRANSMITTER, 64.0, 1048576.0, "2048", "", "Packets the ring of a stream in shared memory holds; rounded up to a power of two.") \
    X(RING_WAIT, ring_wait, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "false", "", "The slowest living reader of the ring stops the stream; false: one that is too slow loses its place and asks for repairs.") \
    X(HUGE_PAGES, huge_pages, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "false", "", "The ring lies in huge pages if the system has any for it; an event tells when not.") \
    X(CONNECTION_TIMEOUT, connection_timeout, FLOAT, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.1, 3600.0, "10.0", "", "A connection (rum) on which nothing was heard for this long is broken off and made anew.") \
    X(CONNECT_WAIT, connect_wait, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "1.0", "", "How long the first messages wait, at most, for the connections (rum) to stand; later ones never do.") \
    X(SEND_BACKLOG, send_backlog, INTEGER, HELIO_ON_TRANSMITTER, 65536.0, 1073741824.0, "4194304", "", "Bytes that may wait for a connection (rum) beyond what the kernel takes before new messages wait.") \
    X(SEND_WINDOW, send_window, INTEGER, HELIO_ON_TRANSMITTER, 16.0, 4194304.0, "16384", "", "Packets kept for repair; rounded up to a power of two.") \
    X(HISTORY, history, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "static", "static,dynamic", "static: the history has its limits from the start; dynamic: it begins with a sixteenth of them, grows while repairs are asked for near its end, and shrinks when they are not.") \
    X(HISTORY_BYTES, history_bytes, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 1099511627776.0, "0", "", "Most bytes of packets kept for repair, at least 16 packets of the largest; 0: what send_window packets take.") \
    X(HISTORY_TIME, history_time, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1000000.0, "0.0", "", "Packets older than this are not kept for repair; 0: no limit.") \
    X(LATE_JOIN, late_join, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "true", "", "Offers receivers that come late all the history has (OPT_JOIN).") \
    X(FIRST_SEQUENCE, first_sequence, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 4294967295.0, "0", "", "Sequence number of a stream's first packet; a high one is for trials of the wrap to 0.") \
    X(SUBMIT_QUEUE, submit_queue, INTEGER, HELIO_ON_TRANSMITTER, 65536.0, 1073741824.0, "4194304", "", "Size of the queue between the application and the engine thread; rounded up to a power of two unless messages are counted or dropped.") \
    X(OVERFLOW, overflow, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "block", "block,refuse,drop_newest,drop_oldest,conflate,priority", "What happens to a message that finds the submit queue full: the sender waits (or is told it would have to), is refused at once, or the send succeeds and a message is dropped and counted: this one, the oldest, an older one of the same key (also when there is room; without one, the oldest), or the oldest of the lowest priority.") \
    X(QUEUE_MESSAGES, queue_messages, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 16777216.0, "0", "", "Most messages in the submit queue; 0: as many as its bytes hold.") \
    X(QUEUE_AGE, queue_age, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1000000.0, "0.0", "", "Messages that have waited longer in the submit queue are dropped, if overflow drops; 0: none are.") \
    X(LOW_WATER, low_water, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "1.0", "", "A full submit queue takes nothing more until this share of it or less is in use; 1: as soon as there is room.") \
    X(AWAIT_CREDIT, await_credit, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "false", "", "Messages leave only as far as receivers have granted credit (option credit), the least of several; the others wait in the submit queue.") \
    X(KEY_OFFSET, key_offset, INTEGER, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 1073741824.0, "0", "", "Where in a message its key begins, for overflow=conflate and receive_overflow=conflate.") \
    X(KEY_BYTES, key_bytes, INTEGER, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 255.0, "0", "", "Length of a message's key; a message too short for it has none and is never conflated.") \
    X(PRIORITY_OFFSET, priority_offset, INTEGER, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, -1.0, 1073741824.0, "-1", "", "Where in a message the byte of its priority is, higher is more important; a message too short for it has the lowest; -1: messages have none.") \
    X(QUEUE_HIGH, queue_high, FLOAT, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 1.0, "0.0", "", "Share of the queue (of bytes or messages, whichever is more) from which on an event alerts; 0: none does.") \
    X(QUEUE_LOW, queue_low, FLOAT, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 0.0, 1.0, "0.0", "", "Share of the queue at or under which the alert ends, at most queue_high; 0: half of queue_high.") \
    X(MAX_MESSAGE_BYTES, max_message_bytes, INTEGER, HELIO_ON_TRANSMITTER | HELIO_ON_RECEIVER, 1.0, 1073741824.0, "67108864", "", "Largest message.") \
    X(LINGER, linger, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "1.0", "", "How long a closed transmitter goes on answering requests for repair.") \
    X(HEARTBEAT_MIN, heartbeat_min, FLOAT, HELIO_ON_TRANSMITTER, 5e-05, 10.0, "0.0005", "", "First heartbeat (SPM) after data; bounds the time to find the loss of the last packet.") \
    X(HEARTBEAT_MAX, heartbeat_max, FLOAT, HELIO_ON_TRANSMITTER, 0.001, 300.0, "1.0", "", "Longest interval between heartbeats; each silent one doubles the interval up to this.") \
    X(AMBIENT_INTERVAL, ambient_interval, FLOAT, HELIO_ON_TRANSMITTER, 0.001, 300.0, "0.5", "", "Interval of the ambient SPM, sent also while data flows.") \
    X(ANNOUNCE_INTERVAL, announce_interval, FLOAT, HELIO_ON_TRANSMITTER, 0.01, 300.0, "1.0", "", "Interval at which a stream names its topics and their positions.") \
    X(POLL_INTERVAL, poll_interval, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "0.0", "", "How often receivers are polled to estimate how many they are; 0: never.") \
    X(REPAIR_LINGER, repair_linger, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 10.0, "0.0001", "", "Requests for a packet repaired less than this ago are ignored.") \
    X(REPORT_INTERVAL, report_interval, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 600.0, "0.1", "", "Receivers report how they fare at least this often while there is news, less often when they are many (report_rate); 0: only together with requests and acknowledgements.") \
    X(REPORT_RATE, report_rate, INTEGER, HELIO_ON_TRANSMITTER, 1.0, 1000000.0, "1000", "", "Most reports per second of all receivers together.") \
    X(RATE_POLICY, rate_policy, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "none", "none,static,dynamic,pgmcc", "How fast the stream may send. none: as fast as it can; static: at `rate`; dynamic: at most at `rate`, and slower while receivers lose packets; pgmcc: as TCP would to the worst receiver, at most at `rate`. static when only a rate is given.") \
    X(RATE_MIN, rate_min, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 100000000000.0, "0", "", "Bytes per second below which rate_policy=dynamic does not slow down; 0: a hundredth of the rate.") \
    X(RATE_BURST, rate_burst, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 1073741824.0, "0", "", "Bytes that may leave at once beyond the rate, at least twice mtu; 0: what leaves in a millisecond, or twice the largest packet if that is more.") \
    X(RATE_COUNTS, rate_counts, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "wire", "wire,payload", "What of a packet counts towards the rate. wire: all of it and 66 bytes (86 with IPv6) of UDP, IP and Ethernet below; payload: what PGM's header of 24 bytes is followed by.") \
    X(CONGESTION_TIME, congestion_time, FLOAT, HELIO_ON_TRANSMITTER, 0.001, 3600.0, "0.05", "", "Messages that wait this long for the rate, for receivers or for room make the stream congested, which an event tells; when none has waited for as long it is over.") \
    X(REPAIR_SHARE, repair_share, FLOAT, HELIO_ON_TRANSMITTER, 0.01, 1.0, "0.25", "", "Share of the rate that repairs may take; what they do not need is data's. Without a rate they have no limit.") \
    X(RATE_MODE, rate_mode, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "enforce", "enforce,advise,observe", "What becomes of what rate_policy=dynamic decides. enforce: the rate is set; advise: only events tell of it; observe: only statistics.") \
    X(FLOW_WINDOW, flow_window, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "none", "none,max,min,tagged", "How far the stream may send ahead of its receivers. none: regardless of them; max: as far as the one with the most room; min: as far as all have room; tagged: as far as all have that are `tagged`.") \
    X(WINDOW_RECEIVERS, window_receivers, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 65536.0, "0", "", "With flow_window: receivers that must be there before anything is sent.") \
    X(WINDOW_SILENCE, window_silence, FLOAT, HELIO_ON_TRANSMITTER, 0.01, 3600.0, "5.0", "", "With flow_window: a receiver not heard for this long is not waited for.") \
    X(LOSS_HIGH, loss_high, FLOAT, HELIO_ON_TRANSMITTER, 1e-05, 1.0, "0.01", "", "Share of packets lost above which rate_policy=dynamic lowers the rate; at least four times loss_low.") \
    X(LOSS_LOW, loss_low, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "0.001", "", "Share of packets lost below which it raises the rate again.") \
    X(RATE_RECEIVERS, rate_receivers, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "worst", "worst,quantile,tagged", "Whose loss counts: that of the receiver that loses most; of the one at rate_quantile, so that those above it are not waited for; or of the worst one of those tagged.") \
    X(RATE_QUANTILE, rate_quantile, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "0.95", "", "With rate_receivers=quantile: the share of the receivers whose loss is to stay below loss_high.") \
    X(RATE_SILENCE, rate_silence, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "0.0", "", "A receiver that reports and is not heard for this long while data is sent counts as a loss, three times at most; 0: for longer than its reports ever take, at least a second.") \
    X(RATE_ESCALATE, rate_escalate, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "1.0", "", "How long receivers may lose too much while the rate is at its floor before an event tells of it; 0: never.") \
    X(CONTROL_INTERVAL, control_interval, FLOAT, HELIO_ON_TRANSMITTER, 0.001, 10.0, "0.01", "", "How often it is decided about rate and receivers while something happens; several times the round trip is best.") \
    X(ACKS, acks, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 1024.0, "0", "", "Distinct receivers that must have acknowledged a packet before it leaves the history; 0: packets leave when there is no room (NAK mode).") \
    X(ACKS_MISSING, acks_missing, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "block", "block,degrade,fail", "While fewer than `acks` receivers acknowledge: wait for more, do with those there are, or refuse to send.") \
    X(ACKS_WARN, acks_warn, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "1.0", "", "An event tells of missing receivers, or of acknowledgements missing from a full history, after this.") \
    X(ACKER_EXPIRY, acker_expiry, FLOAT, HELIO_ON_TRANSMITTER, 0.01, 3600.0, "5.0", "", "A receiver whose acknowledgements have not been heard for this long counts no more; longer than ambient_interval. Unless given, at least three times that.") \
    X(NAK_LIMIT, nak_limit, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 1000000000.0, "0", "", "Most packets one receiver may ask for in a second; the requests beyond are confirmed and not repaired. 0: no limit.") \
    X(ACK_LIMIT, ack_limit, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 1000000000.0, "0", "", "Most acknowledgements of one receiver in a second that are heeded. 0: no limit.") \
    X(REPAIR_LIMIT, repair_limit, INTEGER, HELIO_ON_TRANSMITTER, 0.0, 1099511627776.0, "0", "", "Most bytes of repairs in a second that one receiver may cause; the requests beyond are confirmed and not repaired. 0: no limit.") \
    X(REPAIR_BUDGET, repair_budget, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1000000.0, "2.0", "", "Most bytes of repairs that the receivers of one IP address may cause, and all together that neither report nor acknowledge: in a second 1 MiB and so many times the data sent to them meanwhile; a receiver that comes may ask for the history as well (docs/adr/0029-receivers.md). The requests beyond are confirmed and not repaired. 0: no limit.") \
    X(SHED_LIMIT, shed_limit, INTEGER, HELIO_ON_TRANSMITTER, 1.0, 1099511627776.0, "65536", "", "The same for a receiver whose repairs are shed as it is slow; at most repair_limit.") \
    X(SLOW_MODE, slow_mode, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "observe", "observe,advise,enforce", "Slow consumers: only count what would be done about them, tell of it too, or do it.") \
    X(SLOW_ACTION, slow_action, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "suspend", "notify,pace,shed,suspend-naks,suspend,expel", "The most that is done about a slow consumer; milder things are tried first, one in a dwell time.") \
    X(SLOW_WAIT, slow_wait, BOOLEAN, HELIO_ON_TRANSMITTER, 0.0, 0.0, "false", "", "Coordinated consumers: the stream goes as slow as the slow one takes it before, or with slow_action=pace instead of, isolating it. false: nobody waits for it.") \
    X(SLOW_LOSS, slow_loss, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "0.05", "", "Share of its packets a receiver may lose before it counts as slow; out of trouble below half of this, as with all these thresholds. 0: loss never counts.") \
    X(SLOW_NAKS, slow_naks, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1000000000.0, "0.0", "", "Packets a receiver may ask for in a second before it counts as slow; 0: any.") \
    X(SLOW_LAG, slow_lag, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "0.75", "", "Share of the history a receiver may be behind, and not be catching up, before it counts as slow; 0: any.") \
    X(SLOW_BUFFER, slow_buffer, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "0.95", "", "How full the buffers of a receiver may be before it counts as slow; 0: as full as they may.") \
    X(SLOW_DWELL, slow_dwell, FLOAT, HELIO_ON_TRANSMITTER, 0.03, 3600.0, "0.3", "", "Trouble lasts at least so long before anything is done, and again before the next harder thing is; at least three times control_interval, and unless given as long as that.") \
    X(SLOW_LEAD, slow_lead, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 3600.0, "1.0", "", "How long before a receiver's data leaves the history, as things go, it is told of.") \
    X(SUSPEND_TIME, suspend_time, FLOAT, HELIO_ON_TRANSMITTER, 0.1, 3600.0, "2.0", "", "A slow consumer is suspended at most this long, less when it is well again.") \
    X(EXPEL_AFTER, expel_after, INTEGER, HELIO_ON_TRANSMITTER, 1.0, 8.0, "3", "", "With slow_action=expel: who was suspended so often within an hour is expelled, if nobody else can speak in its name.") \
    X(EXPEL_TIME, expel_time, FLOAT, HELIO_ON_TRANSMITTER, 0.1, 86400.0, "60.0", "", "A slow consumer is expelled for this long.") \
    X(EXPEL_SHARE, expel_share, FLOAT, HELIO_ON_TRANSMITTER, 0.0, 1.0, "0.1", "", "Share of the receivers that may be suspended and expelled at once; of several one always may.") \
    X(STORM_MODE, storm_mode, CHOICE, HELIO_ON_TRANSMITTER, 0.0, 0.0, "observe", "observe,advise,enforce", "NAK storms: only count them, tell of them too, or also stop all requests for a while.") \
    X(STORM_TIME, storm_time, FLOAT, HELIO_ON_TRANSMITTER, 0.15, 3.0, "0.5", "", "Recovery without progress is a storm when it goes on for this long after the load is normal.") \
    X(CUTOFF_TIME, cutoff_time, FLOAT, HELIO_ON_TRANSMITTER, 0.01, 5.0, "0.2", "", "How long a storm's first cut-off of requests lasts; each that is needed after it lasts twice as long, up to 5 s.") \
    X(ACK, ack, CHOICE, HELIO_ON_RECEIVER, 0.0, 0.0, "none", "none,auto,app", "Acknowledge nothing, what was delivered, or what the application acknowledges.") \
    X(ACK_PACKETS, ack_packets, INTEGER, HELIO_ON_RECEIVER, 1.0, 65536.0, "64", "", "Acknowledge at least once in so many packets.") \
    X(ACK_INTERVAL, ack_interval, FLOAT, HELIO_ON_RECEIVER, 0.0, 10.0, "0.001", "", "Longest time progress waits to be acknowledged.") \
    X(CREDIT, credit, INTEGER, HELIO_ON_RECEIVER, 0.0, 2147483648.0, "0", "", "Messages of its topic the receiver lets a source send beyond what its application has taken; heeded by transmitters with await_credit; 0: it grants nothing and holds nobody back.") \
    X(TAGGED, tagged, BOOLEAN, HELIO_ON_RECEIVER, 0.0, 0.0, "false", "", "This receiver is one of those that set the pace where a transmitter follows tagged receivers.") \
    X(RECEIVE_WINDOW, receive_window, INTEGER, HELIO_ON_RECEIVER, 16.0, 4194304.0, "16384", "", "Packets held while an older one is missing or the queue is full; rounded up to a power of two.") \
    X(JOIN, join, CHOICE, HELIO_ON_RECEIVER, 0.0, 0.0, "auto", "auto,live,history", "Where a stream begins that was there before: live: with what comes next; history: with the oldest packet its source offers; auto: history on rum://, else live.") \
    X(RECEIVE_BYTES, receive_bytes, INTEGER, HELIO_ON_RECEIVER, 0.0, 1099511627776.0, "0", "", "Most bytes of packets held, at least 16 packets of the largest; lessens receive_window; 0: no limit beside it.") \
    X(RECEIVE_QUEUE, receive_queue, INTEGER, HELIO_ON_RECEIVER, 65536.0, 1073741824.0, "8388608", "", "Size of the queue between the engine and the application; rounded up to a power of two unless messages are counted, dropped or too old.") \
    X(RECEIVE_OVERFLOW, receive_overflow, CHOICE, HELIO_ON_RECEIVER, 0.0, 0.0, "block", "block,drop_newest,drop_oldest,conflate,priority", "What happens when the receive queue is full: delivery waits, or messages are trimmed and counted: the new one, the oldest, an older one of the same key (also when there is room; without one, the oldest), or the oldest of the lowest priority.") \
    X(RECEIVE_MESSAGES, receive_messages, INTEGER, HELIO_ON_RECEIVER, 0.0, 16777216.0, "0", "", "Most messages in the receive queue; 0: as many as its bytes hold.") \
    X(RECEIVE_AGE, receive_age, FLOAT, HELIO_ON_RECEIVER, 0.0, 1000000.0, "0.0", "", "Messages that have waited longer in the receive queue are trimmed; 0: none are.") \
    X(RECEIVE_LOW_WATER, receive_low_water, FLOAT, HELIO_ON_RECEIVER, 0.0, 1.0, "0.5", "", "Delivery that waits because the receive queue is full goes on when this share of it or less is in use.") \
    X(REORDER_PACKETS, reorder_packets, INTEGER, HELIO_ON_RECEIVER, 0.0, 64.0, "2", "", "Newer packets after which a missing one counts as lost.") \
    X(REORDER_TIME, reorder_time, FLOAT, HELIO_ON_RECEIVER, 0.0, 10.0, "2e-05", "", "Time after which a missing packet counts as lost.") \
    X(NAK, nak, CHOICE, HELIO_ON_RECEIVER, 0.0, 0.0, "on", "on,off", "off: this receiver never asks for repairs; what is missing is counted as lost (not_requested).") \
    X(ORDER, order, CHOICE, HELIO_ON_RECEIVER, 0.0, 0.0, "stream", "stream,arrival", "arrival: messages of whole packets are delivered as they come, each once; messages carry their number.") \
    X(GROUP_SIZE, group_size, INTEGER, HELIO_ON_RECEIVER, 0.0, 10000000.0, "0", "", "Receivers believed to be in the group, for the back-off of requests; 0: not known, found by the source's advice.") \
    X(NAK_BACKOFF, nak_backoff, FLOAT, HELIO_ON_RECEIVER, 0.0, 60.0, "0.0001", "", "NAK_BO_IVL: a NAK waits a random time of at most this. Unless given it is adapted, at most to 50 ms; unicast does not wait.") \
    X(NAK_REPEAT, nak_repeat, FLOAT, HELIO_ON_RECEIVER, 1e-05, 60.0, "0.002", "", "NAK_RPT_IVL: wait for the confirmation before asking again; doubles up to 50 ms. Unless given it follows the round trips measured.") \
    X(NAK_DATA, nak_data, FLOAT, HELIO_ON_RECEIVER, 1e-05, 60.0, "0.005", "", "NAK_RDATA_IVL: wait for the repair before asking again; doubles up to 100 ms. Unless given it follows the repair times measured.") \
    X(NETWORK_ELEMENTS, network_elements, BOOLEAN, HELIO_ON_RECEIVER, 0.0, 0.0, "false", "", "Network elements with PGM on the way put their own address into SPMs and POLLs (path NLA), and requests go there; false: an address there that is not the one the packet came from is ignored, as anybody can put another's in.") \
    X(SPMR_DELAY, spmr_delay, FLOAT, HELIO_ON_RECEIVER, 0.0, 10.0, "0.002", "", "A stream met by its data is asked for its state (SPMR) after a random time of at most this, unless another receiver asks first.") \
    X(NAK_RETRIES, nak_retries, INTEGER, HELIO_ON_RECEIVER, 0.0, 65535.0, "64", "", "NAK_NCF_RETRIES and NAK_DATA_RETRIES.") \
    X(NAK_DEADLINE, nak_deadline, FLOAT, HELIO_ON_RECEIVER, 0.001, 3600.0, "1.0", "", "A packet missing longer than this is given up.") \
    X(STREAM_EXPIRY, stream_expiry, FLOAT, HELIO_ON_RECEIVER, 0.01, 3600.0, "10.0", "", "A stream silent longer than this is dropped.") \
    X(MAX_STREAMS, max_streams, INTEGER, HELIO_ON_RECEIVER, 1.0, 65536.0, "64", "", "Most streams one endpoint follows; more are refused and counted.")

#endif
