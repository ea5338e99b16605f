/* Heliograph: low-latency messaging with complete statistics.  The whole C API.
 *
 * An instance is one engine in one process.  A transmitter sends one topic, a receiver gets one topic.  Transmitters of one
 * instance on the same endpoint share a stream.
 *
 * Threads: in mode `thread` the engine runs on its own thread.  Any thread may use a transmitter; one thread at a time may use a
 * receiver.  In mode `poll` the caller runs the engine with helio_instance_poll, and all calls must come from one thread.  Sending
 * and receiving then run the engine too.
 *
 * Results: functions return 0 or a negative HELIO_ERR_*, unless stated otherwise; helio_error_text gives the reason as a sentence.
 * Each function lists its errors without the prefix.
 *
 * Options: a text "name=value&name=value" with the names of docs/options.md; NULL: none.  An endpoint's query parameters are options
 * too; the text argument has priority.  An endpoint may carry options of both ends; each end uses its own.
 *
 * Units: times are nanoseconds; wall clock times count from 1970.  Sizes are bytes.
 *
 * After a fork the child must not use an instance of its parent, not even to destroy it: the engine thread does not exist in the
 * child, and the sockets and the segment belong to the parent.
 */
#ifndef HELIOGRAPH_H
#define HELIOGRAPH_H

#include <stddef.h>
#include <stdint.h>

#include <heliograph/actions.h>
#include <heliograph/errors.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HELIO_BUILDING) && defined(__GNUC__)
#define HELIO_API __attribute__((visibility("default")))
#else
#define HELIO_API
#endif

#define HELIO_VERSION "0.1.0"
#define HELIO_FOREVER INT64_MAX

typedef struct helio_instance helio_instance;
typedef struct helio_transmitter helio_transmitter;
typedef struct helio_receiver helio_receiver;

/* A message to send. */
typedef struct helio_buffer {
    const void *data;
    size_t length;
} helio_buffer;

/* A message received.  `data` is valid until the next call of helio_receiver_receive on the same receiver, or, in a
 * listener, until the listener returns. */
typedef struct helio_message {
    const void *data;
    size_t length;
    /* Number of the message in its topic and stream, from 0; a jump is a loss that was reported before.  With payload=raw the
     * number of its packet: a message in several packets takes several numbers. */
    uint64_t number;
    /* Wall clock time of submit of the oldest message in the packet; 0 with payload=raw, where it is unknown. */
    int64_t submit_ns;
    /* Wall clock time at which the packet was read. */
    int64_t receive_ns;
    /* Number of the stream within the receiver, from 0 in order of discovery. */
    uint32_t stream;
    /* HELIO_MESSAGE_* */
    uint32_t flags;
} helio_message;

enum {
    /* The message's packet had been missing and was repaired. */
    HELIO_MESSAGE_RECOVERED = 1
};

/* A loss for good, reported once per range and in stream order. */
typedef struct helio_loss {
    /* Number of the first lost message. */
    uint64_t first;
    /* Messages lost. */
    uint64_t count;
    /* Number of the stream, as in helio_message. */
    uint32_t stream;
} helio_loss;

/* An acknowledgement of one receiver for a topic.  A receiver acknowledges messages on delivery (option ack=auto), or its
 * application acknowledges them (ack=app), or a message store has them in its files (ack=store). */
typedef struct helio_ack {
    /* Newest message acknowledged, with all before it since the receiver joined. */
    uint64_t number;
    /* Identity of the receiver; a restart under the same name keeps it. */
    uint64_t receiver;
    /* HELIO_ACKED_* */
    uint32_t kind;
    /* Name of the receiver's instance. */
    char name[48];
    /* Source address of its acknowledgements. */
    char address[56];
} helio_ack;

enum {
    /* The messages are in the receiver's memory. */
    HELIO_ACKED_TRANSPORT = 1,
    /* The receiver's application has acknowledged them. */
    HELIO_ACKED_APPLICATION = 2
};

/* Reasons of an action; 1 to 4 are symptoms of a slow receiver. */
enum {
    HELIO_REASON_NONE = 0,
    /* It loses too much. */
    HELIO_REASON_LOSS = 1,
    /* It requests too many repairs. */
    HELIO_REASON_NAKS = 2,
    /* It lags too far behind. */
    HELIO_REASON_LAG = 3,
    /* Its buffers are full. */
    HELIO_REASON_BUFFER = 4,
    /* Requests of many receivers overload the network. */
    HELIO_REASON_STORM = 5
};
#define HELIO_NO_STREAM UINT32_MAX

/* A notice from the source of a stream to a receiver. */
typedef struct helio_notice {
    /* Number of the stream, as in helio_message; HELIO_NO_STREAM: a stream without messages for this receiver so far. */
    uint32_t stream;
    /* HELIO_ACTION_* */
    uint32_t action;
    /* HELIO_REASON_* */
    uint32_t reason;
    /* 1: a person decided, 0: the source decided automatically. */
    uint32_t by_hand;
    /* Duration of the action; 0: it has none. */
    int64_t duration_ns;
    /* Wall clock time at which the notice was received. */
    int64_t wall_ns;
    /* Reason as a text for people. */
    char text[48];
} helio_notice;

/* One receiver of a transmitter's stream, as its source sees it.  Fields marked "reported" are 0 for a receiver that sends no
 * reports (another PGM program), which is identified by its address. */
typedef struct helio_receiver_info {
    /* Identity; a restart under the same name keeps it.  Without reports a hash of the address. */
    uint64_t receiver;
    /* Reported: incarnation of the receiver, greater after each restart. */
    uint64_t incarnation;
    /* Reported: data packets received in this incarnation, each counted once. */
    uint64_t packets_received;
    /* Reported: data packets missed at first, recovered or not. */
    uint64_t packets_missed;
    /* Reported: data packets lost for good. */
    uint64_t packets_lost;
    /* Packets sent and not passed on at the last report. */
    uint64_t lag;
    /* Packets it requested, each counted once. */
    uint64_t naks;
    /* Repeated requests. */
    uint64_t naks_again;
    /* Repairs that this receiver requested first, in packets and in bytes. */
    uint64_t repairs;
    uint64_t repair_bytes;
    /* Share of packets missed at first, by the last reports: 0 to 1. */
    double loss;
    /* Reported: fill of the receive window or the receive queue, whichever is fuller: 0 to 1. */
    double buffer_fill;
    /* Smoothed round trip time; 0: unknown. */
    int64_t round_trip_ns;
    /* Wall clock time of its last feedback. */
    int64_t heard_ns;
    /* Reported: packets beyond its position that it has room for. */
    uint32_t window;
    /* HELIO_RECEIVER_* */
    uint32_t state;
    /* 1: it sends reports. */
    uint32_t reports;
    /* Reported: 1 if it is one of the receivers that set the pace. */
    uint32_t tagged;
    /* Name of the receiver's instance; "" while unknown. */
    char name[48];
    /* Source address of its feedback. */
    char address[56];
    /* Bytes of the packets in `lag` that are still in the history: a lower bound. */
    uint64_t lag_bytes;
    /* Age of the oldest packet in `lag`; 0: no lag, or unknown. */
    int64_t lag_ns;
    /* Time until packets it needs leave the history at the current rate, while `outlook` is 2; else 0. */
    int64_t forecast_ns;
    /* Time that data waited for this receiver alone. */
    int64_t blame_ns;
    /* Its share of all requests on the stream: 0 to 1. */
    double nak_share;
    /* Rank among slow receivers; 0: no trouble. */
    double badness;
    /* Statistic `state` of the scope tx_receiver: 0 unknown, 1 keeps up, 2 falls behind, 3 stalled, 4 silent or left, 5 catches
     * up. */
    uint32_t behaviour;
    /* Statistic `forecast_state`: 0 unknown, 1 no loss, 2 ahead, 3 past: packets it needs have left the history. */
    uint32_t outlook;
} helio_receiver_info;

enum {
    HELIO_RECEIVER_OK = 0,
    /* The source neither repairs for it nor waits for it. */
    HELIO_RECEIVER_SUSPENDED = 1,
    /* The source ignores its packets. */
    HELIO_RECEIVER_EXPELLED = 2,
    /* It has left. */
    HELIO_RECEIVER_LEFT = 3
};

/* Callbacks of a receiver, called on the engine thread (mode `thread`) or within helio_instance_poll (mode `poll`).  They must not
 * block, call the receiver or destroy anything.  on_loss may be NULL. */
typedef struct helio_listener {
    void (*on_messages)(void *context, const helio_message *messages, size_t count);
    void (*on_loss)(void *context, const helio_loss *loss);
    void *context;
} helio_listener;

/* Reason of the last failed call of this thread, as a sentence; "" if none has failed. */
HELIO_API const char *helio_error_text(void);
/* Name of an error code, such as "HELIO_ERR_OPTION". */
HELIO_API const char *helio_error_name(int error);
/* Version of the library. */
HELIO_API const char *helio_version(void);

/* Creates an instance; release it with helio_instance_destroy.
 * Errors: OPTION, NOMEM, SEGMENT, SYSTEM. */
HELIO_API int helio_instance_create(const char *options, helio_instance **out);
/* Closes all transmitters (each lingers as its option says) and receivers, stops the thread and removes the segment.  Accepts
 * NULL. */
HELIO_API void helio_instance_destroy(helio_instance *instance);
/* Runs the engine once.  Returns the number of work items done; 0: nothing was due.  Errors: STATE (mode `thread`). */
HELIO_API int helio_instance_poll(helio_instance *instance);
/* Waits until a socket is readable or a timer is due, at most timeout_ns.  Errors: STATE (mode `thread`). */
HELIO_API int helio_instance_wait(helio_instance *instance, int64_t timeout_ns);
/* Selects objects of an instance.  An object must match all patterns that are not NULL and not ""; `*` matches any characters and `?`
 * one.  Without patterns: the instance, and with it all objects that no other selector matches. */
typedef struct helio_selector {
    /* Topic of transmitters and receivers. */
    const char *topic;
    /* Stream (GSI:PORT): all objects of the stream. */
    const char *stream;
    /* Receiver: at a source, its entry by name, identity or address.  At the receiving instance, its streams and receivers by the
     * instance's name or the address its requests come from. */
    const char *receiver;
} helio_selector;

/* Sets the level of detail of the statistics, 0 to 3, for for_ns, at most 30 days; then the level returns to its former value.  If
 * several selectors match an object the newest decides; at most 16 are in force.  `selector` NULL: the instance.  Objects created
 * later get the level too.  Returns the number of objects matched now.
 * Errors: OPTION, STATE (within a callback; in a library built without statistics). */
HELIO_API int helio_instance_set_level(helio_instance *instance, int level, int64_t for_ns,
                                       const helio_selector *selector);
/* Ends a temporary level early: that of exactly this selector, or (NULL) the instance's.  Errors: OPTION (none is in force),
 * STATE. */
HELIO_API int helio_instance_reset_level(helio_instance *instance, const helio_selector *selector);

/* Name of the instance (option name). */
HELIO_API const char *helio_instance_name(const helio_instance *instance);
/* Path of the stats segment; "" with the option stats=memory. */
HELIO_API const char *helio_instance_segment(const helio_instance *instance);
/* Saves the flight recording in a file, with two more seconds from now on; the event flight_frozen names the file (docs/flight.md).
 * `why` is written into it; NULL: "by hand".  Any thread, any mode.  Errors: STATE (no recorder, or a request just before). */
HELIO_API int helio_instance_freeze_flight(helio_instance *instance, const char *why);

/* Creates a transmitter of `topic`; release it with helio_transmitter_destroy.
 * Errors: ENDPOINT, OPTION, TOPIC, ADDRESS, PERMISSION, SYSTEM, NOMEM. */
HELIO_API int helio_transmitter_create(helio_instance *instance, const char *endpoint,
                                       const char *topic, const char *options,
                                       helio_transmitter **out);
/* Submits one message; it is copied.  Never blocks: WOULD_BLOCK when the submit queue is full (mode `poll`: the connection, or
 * the history of packets to be acknowledged).  Errors: SIZE, CLOSED, ACKERS. */
HELIO_API int helio_transmitter_send(helio_transmitter *transmitter, const void *data,
                                     size_t length);
/* As helio_transmitter_send, with the intended send time by the wall clock; 0 or less: none.  Receivers also measure the latency
 * from it (statistic intended_latency), which includes stalls of the sending application before submit.  It takes 12 bytes of a
 * packet; payload=raw does not carry it. */
HELIO_API int helio_transmitter_send_intended(helio_transmitter *transmitter, const void *data,
                                              size_t length, int64_t intended_ns);
/* Submits messages in order until one does not fit, and stores the number taken in *accepted.  Returns 0 if all were taken, else the
 * error of the first that was not.  In mode `poll` the messages share packets. */
HELIO_API int helio_transmitter_send_many(helio_transmitter *transmitter,
                                          const helio_buffer *messages, size_t count,
                                          size_t *accepted);
/* Waits until all messages submitted have been passed to the driver, at most timeout_ns.  Errors: TIMEOUT. */
HELIO_API int helio_transmitter_flush(helio_transmitter *transmitter, int64_t timeout_ns);
/* Waits until send can take a message of `length` bytes, at most timeout_ns.  Errors: TIMEOUT, SIZE, CLOSED. */
HELIO_API int helio_transmitter_wait(helio_transmitter *transmitter, size_t length,
                                     int64_t timeout_ns);
/* Waits until `receivers` receivers have acknowledged all messages submitted, at most timeout_ns.  A receiver that joined later
 * acknowledges messages sent since.  Errors: TIMEOUT, ACKERS, STATE. */
HELIO_API int helio_transmitter_wait_acked(helio_transmitter *transmitter, uint32_t receivers,
                                           int64_t timeout_ns);
/* Waits until the quorum (options acks, acks_from) has acknowledged the topic's message with this number and all before it in its
 * stream, at most timeout_ns.  HELIO_ALL_MESSAGES: all messages submitted.  A message that left the history without the quorum
 * (acks_missing=degrade) is not stable.  Errors: TIMEOUT, ACKERS, STATE (without acks; in a listener). */
#define HELIO_ALL_MESSAGES UINT64_MAX
HELIO_API int helio_transmitter_wait_stable(helio_transmitter *transmitter, uint64_t number,
                                            int64_t timeout_ns);
/* Takes acknowledgements that are new since the last call, at most one per receiver: its newest.  The first call takes those of all
 * receivers.  Returns the number of entries, at most `limit`. */
HELIO_API int helio_transmitter_acks(helio_transmitter *transmitter, helio_ack *acks, size_t limit);
/* Passes acknowledgements to on_ack as they arrive, beginning with the newest of each receiver; NULL ends it.  Meanwhile
 * helio_transmitter_acks returns none.  on_ack is called like a listener's functions.  Errors: STATE (from a listener). */
HELIO_API int helio_transmitter_on_ack(helio_transmitter *transmitter,
                                       void (*on_ack)(void *context, const helio_ack *ack),
                                       void *context);
/* Begins or ends an action on a receiver of the stream, and notifies the receiver.  It applies to all transmitters of the stream.
 *   receiver     identity, as in helio_ack and in events
 *   action       HELIO_ACTION_*, except CUT_OFF
 *   duration_ns  0: until it is ended
 *   why          reason for people, or NULL
 * Errors: OPTION (unknown action), STATE (unknown receiver, nothing to end, or it is expelled; from a listener). */
HELIO_API int helio_transmitter_act(helio_transmitter *transmitter, uint64_t receiver, int action,
                                    int64_t duration_ns, const char *why);
/* Stops requests and repairs of all receivers of the stream for duration_ns, at most an hour; 0 ends the cut-off.
 * Errors: STATE (from a listener). */
HELIO_API int helio_transmitter_cut_off(helio_transmitter *transmitter, int64_t duration_ns,
                                        const char *why);

/* Copies the entries of the receivers of its stream, at most `limit`, the worst first.  Returns the number of receivers, which may
 * exceed `limit`.  Any thread in mode `thread`. */
HELIO_API int helio_transmitter_receivers(helio_transmitter *transmitter,
                                          helio_receiver_info *receivers, size_t limit);
/* Bytes per second that its stream may send now; 0: no limit of its own.  The value is at most some milliseconds old. */
HELIO_API uint64_t helio_transmitter_rate(const helio_transmitter *transmitter);
/* 1 while messages of its stream have waited longer than congestion_time for the rate, for receivers or for room; else 0. */
HELIO_API int helio_transmitter_congested(const helio_transmitter *transmitter);
/* Identity of its stream as "gsi:port", hexadecimal and decimal. */
HELIO_API const char *helio_transmitter_stream(const helio_transmitter *transmitter);
/* Flushes and notifies receivers of the end of the topic.  The last transmitter of a stream answers requests for the linger time: in
 * the background (mode `thread`) or before it returns (mode `poll`).  If a full connection or ring makes no room for
 * connection_timeout (or for linger or connect_wait, if longer), queued messages are sent without waiting for it; a reader that
 * resumes within the linger time can have them repaired.  Accepts NULL. */
HELIO_API void helio_transmitter_destroy(helio_transmitter *transmitter);

/* Creates a receiver of `topic`; release it with helio_receiver_destroy.  listener NULL: messages wait in the receive queue for
 * helio_receiver_receive.
 * Errors: ENDPOINT, OPTION, TOPIC, ADDRESS, PERMISSION, SYSTEM, NOMEM. */
HELIO_API int helio_receiver_create(helio_instance *instance, const char *endpoint,
                                    const char *topic, const char *options,
                                    const helio_listener *listener, helio_receiver **out);
/* Takes up to `limit` messages and releases those of the last call.  Waits for the first one at most timeout_ns; 0: not at all.
 * Returns the number of messages; 0: none arrived in time.  Errors: CLOSED, STATE. */
HELIO_API int helio_receiver_receive(helio_receiver *receiver, helio_message *messages,
                                     size_t limit, int64_t timeout_ns);
/* Takes the oldest loss report.  Returns 1, or 0 if there is none.  For receivers without a listener. */
HELIO_API int helio_receiver_loss(helio_receiver *receiver, helio_loss *loss);
/* Takes the oldest notice of a source.  Returns 1, or 0 if there is none.  For all receivers; the newest 256 are kept. */
HELIO_API int helio_receiver_notice(helio_receiver *receiver, helio_notice *notice);
/* Acknowledges the messages of stream number `stream` up to and including `number` (options ack=app, ack=store).  Any thread (mode `thread`);
 * a listener may call it.  Errors: STATE. */
HELIO_API int helio_receiver_ack(helio_receiver *receiver, uint32_t stream, uint64_t number);
/* Identity of stream number `stream` as "gsi:port"; NULL if the number is unused.  Of ended streams the last 64 are remembered, and
 * those with messages still in use; "" for others.  The text is valid until the eighth call of this function by the same thread
 * after this one. */
HELIO_API const char *helio_receiver_stream(const helio_receiver *receiver, uint32_t stream);
/* Creates a receiver that requests messages `first` to `last` of stream number `stream` again from the source's history; `receiver`
 * continues undisturbed.  The new receiver gets exactly these messages in order, flagged RECOVERED.  Messages outside the history
 * are reported as losses.  After the range helio_receiver_receive returns CLOSED.  Destroy it like any receiver.
 * Releases the messages of the last helio_receiver_receive of `receiver`.
 * Errors: OPTION (first > last), STATE (unknown or ended stream; a replay; within a listener), NOMEM. */
HELIO_API int helio_receiver_replay(helio_receiver *receiver, uint32_t stream, uint64_t first,
                                    uint64_t last, helio_receiver **out);
/* Longest text of helio_receiver_stores, with its NUL. */
#define HELIO_STORES_TEXT 1024
/* Writes the message stores that the sources on the endpoint announce now, at most 16: HOST:PORT of their services, separated by
 * commas. Returns their number.  Errors: OPTION (`bytes` are too few; HELIO_STORES_TEXT suffices), STATE (within a listener). */
HELIO_API int helio_receiver_stores(helio_receiver *receiver, char *out, size_t bytes);
/* Closes the receiver and releases its messages.  Accepts NULL. */
HELIO_API void helio_receiver_destroy(helio_receiver *receiver);

#ifdef __cplusplus
}
#endif

#endif
