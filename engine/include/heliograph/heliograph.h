/* Heliograph: low-latency messaging that can be seen through.  The whole C API.
 *
 * An instance is one engine in one process.  A transmitter sends one topic, a receiver gets one topic; transmitters of one
 * instance on the same endpoint share a stream.  In mode `thread` the engine runs on its own thread: a transmitter may be used
 * by any thread, a receiver by one thread at a time.  In mode `poll` the caller runs everything with helio_instance_poll and
 * all calls must come from one thread; sending and receiving then also work the engine, so nothing else needs to.
 *
 * Functions return 0 or a negative HELIO_ERR_*; helio_error_text tells people why.  Options are given as a text
 * "name=value&name=value" with the names of docs/options.md, NULL for none; an endpoint's query parameters are options too
 * (the text argument wins; one endpoint text may carry options of both ends, each takes its own).  Times are nanoseconds.
 *
 * After a fork the child must not use an instance of its parent, not even to destroy it: the engine's thread is not in the
 * child, the sockets and the segment are the parent's.
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

/* A message received.  `data` stays valid until the next call of helio_receiver_receive on the same receiver, or, in a
 * listener, until it returns. */
typedef struct helio_message {
    const void *data;
    size_t length;
    uint64_t
        number; /* of the message within its topic and stream; a jump is a loss already told as an event.  With payload=raw
                   that of its packet; a message in several packets takes as many numbers */
    int64_t
        submit_ns; /* when the source submitted the oldest message of its packet, wall clock since 1970; 0 with payload=raw: it is not told */
    int64_t receive_ns; /* when its packet was read, wall clock since 1970 */
    uint32_t
        stream; /* number of the stream within the receiver: 0, 1, ... in order of first packet */
    uint32_t flags; /* HELIO_MESSAGE_* */
} helio_message;

enum { HELIO_MESSAGE_RECOVERED = 1 /* its packet had been missing */ };

/* A loss that cannot be mended, told once per range and in stream order. */
typedef struct helio_loss {
    uint64_t first; /* number of the first message lost */
    uint64_t count; /* messages */
    uint32_t stream;
} helio_loss;

/* What a receiver has acknowledged of a topic.  A receiver acknowledges what was delivered to it (option ack=auto), or what its
 * application acknowledges (ack=app). */
typedef struct helio_ack {
    uint64_t
        number; /* of the newest message acknowledged; so are all before it, since the receiver joined */
    uint64_t receiver; /* who: the same again when it was started anew under the same name */
    uint32_t kind;     /* HELIO_ACKED_* */
    char name[48];     /* of the receiver's instance */
    char address[56];  /* where its acknowledgements come from */
} helio_ack;

enum {
    HELIO_ACKED_TRANSPORT = 1,  /* it is in the receiver's memory */
    HELIO_ACKED_APPLICATION = 2 /* its application has acknowledged it */
};

enum {
    HELIO_REASON_NONE = 0,
    HELIO_REASON_LOSS = 1,   /* slow: it loses too much */
    HELIO_REASON_NAKS = 2,   /* slow: it asks for too much */
    HELIO_REASON_LAG = 3,    /* slow: it is too far behind */
    HELIO_REASON_BUFFER = 4, /* slow: its buffers are full */
    HELIO_REASON_STORM = 5   /* too many ask for too much */
};
#define HELIO_NO_STREAM UINT32_MAX

/* Told to a receiver by the source of a stream. */
typedef struct helio_notice {
    uint32_t stream;     /* HELIO_NO_STREAM: one that had nothing for this receiver yet */
    uint32_t action;     /* HELIO_ACTION_* */
    uint32_t reason;     /* HELIO_REASON_* */
    uint32_t by_hand;    /* 1: a person decided, 0: the source by itself */
    int64_t duration_ns; /* how long it is to last; 0: it is something that happened */
    int64_t wall_ns;     /* when it was heard, since 1970 */
    char text[48];       /* why, for people */
} helio_notice;

/* One receiver of a transmitter's stream as its source sees it.  What only a report tells is 0 for a receiver that sends none
 * (another PGM program): it is known by its address. */
typedef struct helio_receiver_info {
    uint64_t
        receiver; /* who: the same again when it was started anew under the same name; without reports a hash of its address */
    uint64_t incarnation;      /* which life of it: greater in a later one; 0 without reports */
    uint64_t packets_received; /* told: data packets, each once, in this life */
    uint64_t
        packets_lost; /* told: data packets first seen missing, whether or not they came later */
    uint64_t packets_unrecoverable; /* told: of these, given up for good */
    uint64_t lag;                   /* packets sent that it had not passed on when it last told */
    uint64_t naks;                  /* packets it asked for, each once */
    uint64_t naks_again;            /* requests for packets it had asked for before */
    uint64_t repairs;               /* packets repaired because it asked first */
    uint64_t repair_bytes;          /* the same in bytes */
    double loss;                    /* share of packets missed, by the last reports: 0 to 1 */
    double buffer_fill;    /* told: the fuller of its receive window and receive queue: 0 to 1 */
    int64_t round_trip_ns; /* smoothed; 0: not known */
    int64_t heard_ns;      /* when it was heard last, since 1970 */
    uint32_t window;       /* told: packets beyond those passed on that it had room for */
    uint32_t state;        /* HELIO_RECEIVER_* */
    uint32_t reports;      /* 1: it sends reports */
    uint32_t tagged;       /* 1: it says that it is one of those that set the pace */
    char name[48];         /* of the receiver's instance; "" until it has told it */
    char address[56];      /* where its feedback comes from */
    uint64_t lag_bytes;    /* of the packets of `lag` the history still has: at least so many */
    int64_t
        lag_ns; /* since the oldest of these was sent; 0: it is not behind, or nothing is known */
    int64_t forecast_ns; /* until what it needs leaves the history, as things go; 0: it will not */
    int64_t blame_ns;    /* time that data waited for this receiver alone */
    double nak_share;    /* of all that was ever asked for on the stream: 0 to 1 */
    double badness;      /* how much trouble it is, of late: 0 is none */
} helio_receiver_info;

enum {
    HELIO_RECEIVER_OK = 0,
    HELIO_RECEIVER_SUSPENDED = 1, /* not repaired, not waited for */
    HELIO_RECEIVER_EXPELLED = 2,  /* not heard */
    HELIO_RECEIVER_LEFT = 3       /* it said goodbye */
};

/* Called on the engine's thread (mode `thread`) or within helio_instance_poll (mode `poll`); must not block and must not call the
 * receiver or destroy anything.  on_loss may be NULL. */
typedef struct helio_listener {
    void (*on_messages)(void *context, const helio_message *messages, size_t count);
    void (*on_loss)(void *context, const helio_loss *loss);
    void *context;
} helio_listener;

/* What went wrong in the last failed call of this thread, as a sentence; "" when nothing did. */
HELIO_API const char *helio_error_text(void);
/* Name of an error code, such as "HELIO_ERR_OPTION". */
HELIO_API const char *helio_error_name(int error);
/* Version of the library. */
HELIO_API const char *helio_version(void);

/* Creates an instance; release it with helio_instance_destroy.
 * Errors: OPTION, NOMEM, SEGMENT, SYSTEM. */
HELIO_API int helio_instance_create(const char *options, helio_instance **out);
/* Closes what is still open (each transmitter lingers as its option says), stops the thread, removes the segment.  Accepts NULL. */
HELIO_API void helio_instance_destroy(helio_instance *instance);
/* Does the work that is due and returns how much there was (0: nothing).  Mode `poll` only, else STATE. */
HELIO_API int helio_instance_poll(helio_instance *instance);
/* Waits until a socket is readable or a timer is due, at most timeout_ns.  Mode `poll` only. */
HELIO_API int helio_instance_wait(helio_instance *instance, int64_t timeout_ns);
/* Which of an instance's objects are meant: all patterns given (not NULL, not "") must fit, in which `*` stands for any
 * characters and `?` for one.
 *   topic     transmitters and receivers of topics called so
 *   stream    everything of streams called so (GSI:PORT)
 *   receiver  receivers a transmitter knows, by name, id or address; of the receiving instance itself, by its name or the address
 *             its requests come from, its streams and receivers
 * None given: the instance, and with it every object that no such rule is about. */
typedef struct helio_selector {
    const char *topic, *stream, *receiver;
} helio_selector;

/* Sets the level of detail of the statistics, 0 to 3, for a time, at most 30 days: then it is again what it was.  Of several
 * selectors that fit an object the one set last decides; 16 can be in force.  `selector` NULL: the instance.  Returns how many
 * objects it fits now, which may be none: those that come later have the level too.
 * Errors: OPTION, STATE (within a callback; a library that counts nothing). */
HELIO_API int helio_instance_set_level(helio_instance *instance, int level, int64_t for_ns,
                                       const helio_selector *selector);
/* Ends that early: of exactly this selector, or (NULL) the instance's.  Errors: OPTION (nothing like it is in force), STATE. */
HELIO_API int helio_instance_reset_level(helio_instance *instance, const helio_selector *selector);

HELIO_API const char *helio_instance_name(const helio_instance *instance);
/* Path of the stats segment, "" when options said stats=memory. */
HELIO_API const char *helio_instance_segment(const helio_instance *instance);
/* Keeps the flight recording of the last seconds or minutes, with two seconds from now on, in a file of its own, which the event
 * flight_frozen names (docs/flight.md).  `why` is written into it; NULL: "by hand".  Any thread, any mode.  Errors: STATE (there is no
 * recorder, or somebody asked a moment ago). */
HELIO_API int helio_instance_freeze_flight(helio_instance *instance, const char *why);

/* Errors: ENDPOINT, OPTION, TOPIC, ADDRESS, PERMISSION, SYSTEM, NOMEM. */
HELIO_API int helio_transmitter_create(helio_instance *instance, const char *endpoint,
                                       const char *topic, const char *options,
                                       helio_transmitter **out);
/* Submits one message; it is copied.  Never blocks: WOULD_BLOCK when the submit queue is full (mode `poll`: the connection, or
 * the history of packets to be acknowledged).  Errors: SIZE, CLOSED, ACKERS. */
HELIO_API int helio_transmitter_send(helio_transmitter *transmitter, const void *data,
                                     size_t length);
/* The same with the time at which it was to be sent, ns since 1970, wall clock; 0 or less: none.  Receivers measure the latency
 * against it beside that against the submit (statistics intended_latency and total_latency), and so count what a sender that
 * stalls lets messages wait before it submits them.  It takes 12 bytes of a packet; with payload=raw it is not told. */
HELIO_API int helio_transmitter_send_intended(helio_transmitter *transmitter, const void *data,
                                              size_t length, int64_t intended_ns);
/* Submits messages in order until one does not fit and tells in *accepted how many were taken.
 * Returns 0 when all were, else the reason for the first that was not.  In mode `poll` the messages share packets. */
HELIO_API int helio_transmitter_send_many(helio_transmitter *transmitter,
                                          const helio_buffer *messages, size_t count,
                                          size_t *accepted);
/* Waits until everything submitted has been handed to the network, at most timeout_ns.  Errors: TIMEOUT. */
HELIO_API int helio_transmitter_flush(helio_transmitter *transmitter, int64_t timeout_ns);
/* Waits until send can take a message of `length` bytes, at most timeout_ns.  Errors: TIMEOUT, SIZE, CLOSED. */
HELIO_API int helio_transmitter_wait(helio_transmitter *transmitter, size_t length,
                                     int64_t timeout_ns);
/* Waits until so many receivers have acknowledged everything submitted (those that joined later: what came after), at most
 * timeout_ns.  Errors: TIMEOUT, ACKERS, STATE. */
HELIO_API int helio_transmitter_wait_acked(helio_transmitter *transmitter, uint32_t receivers,
                                           int64_t timeout_ns);
/* Takes what receivers have acknowledged since the call before, at most one entry for each receiver: its newest.  Returns how
 * many.  The first call tells where all of them are. */
HELIO_API int helio_transmitter_acks(helio_transmitter *transmitter, helio_ack *acks, size_t limit);
/* From now on acknowledgements are told to on_ack as they come (NULL: no more), and helio_transmitter_acks has none.  First it
 * tells where all receivers are.  Called like a listener's functions.  Errors: STATE (from a listener). */
HELIO_API int helio_transmitter_on_ack(helio_transmitter *transmitter,
                                       void (*on_ack)(void *context, const helio_ack *ack),
                                       void *context);
/* Does something to a receiver of the stream, or ends it, by hand, and tells it: action HELIO_ACTION_* but CUT_OFF; receiver: as
 * in helio_ack or in an event; duration_ns: how long, 0: until it is undone.  All transmitters of the stream are concerned.
 * Errors: OPTION (no such action), STATE (no such receiver, nothing there to be undone, or it is expelled; from a listener). */
HELIO_API int helio_transmitter_act(helio_transmitter *transmitter, uint64_t receiver, int action,
                                    int64_t duration_ns, const char *why);
/* All receivers of the stream are to ask for no repairs, and none are made, for duration_ns, at most an hour; 0: from now on they
 * may again.  Errors: STATE (from a listener). */
HELIO_API int helio_transmitter_cut_off(helio_transmitter *transmitter, int64_t duration_ns,
                                        const char *why);

/* Copies what is known of the receivers of its stream, the worst first, at most `limit`.  Returns how many there are.  From any thread in mode
 * `thread`. */
HELIO_API int helio_transmitter_receivers(helio_transmitter *transmitter,
                                          helio_receiver_info *receivers, size_t limit);
/* Bytes per second its stream may send now; 0: no limit of its own.  At most some milliseconds old. */
HELIO_API uint64_t helio_transmitter_rate(const helio_transmitter *transmitter);
/* 1 while messages of its stream have waited for the rate, for receivers or for room for longer than
 * the option congestion_time; else 0. */
HELIO_API int helio_transmitter_congested(const helio_transmitter *transmitter);
/* Identity of the stream it sends on, as "gsi:port" in hex and decimal. */
HELIO_API const char *helio_transmitter_stream(const helio_transmitter *transmitter);
/* Flushes, tells receivers the topic's end, and answers requests for repair for the linger time in the background (mode `thread`) or
 * before it returns (mode `poll`), when it was the stream's last transmitter.  Where a full connection or ring makes no room for as
 * long as connection_timeout (or linger, connect_wait, if longer), what is queued is sent without regard for it: who reads again
 * within the linger time can have it repaired.  Accepts NULL. */
HELIO_API void helio_transmitter_destroy(helio_transmitter *transmitter);

/* listener NULL: messages wait in the receive queue for helio_receiver_receive.
 * Errors: ENDPOINT, OPTION, TOPIC, ADDRESS, PERMISSION, SYSTEM, NOMEM. */
HELIO_API int helio_receiver_create(helio_instance *instance, const char *endpoint,
                                    const char *topic, const char *options,
                                    const helio_listener *listener, helio_receiver **out);
/* Takes up to `limit` messages and releases those of the call before.  Waits for the first at most timeout_ns (0: not at all).
 * Returns how many (0: none came in time) or CLOSED, STATE. */
HELIO_API int helio_receiver_receive(helio_receiver *receiver, helio_message *messages,
                                     size_t limit, int64_t timeout_ns);
/* Takes one loss report, oldest first; returns 1, or 0 when there is none.  For receivers without a listener. */
HELIO_API int helio_receiver_loss(helio_receiver *receiver, helio_loss *loss);
/* Takes one notice of a source, oldest first; returns 1, or 0 when there is none.  Any receiver, with a listener too; the
 * newest 256 are kept. */
HELIO_API int helio_receiver_notice(helio_receiver *receiver, helio_notice *notice);
/* Acknowledges the messages of stream number `stream` up to and including `number`.  For receivers of ack=app, from any thread
 * (mode `thread`) and from a listener too.  Errors: STATE. */
HELIO_API int helio_receiver_ack(helio_receiver *receiver, uint32_t stream, uint64_t number);
/* Identity of stream number `stream` as "gsi:port"; NULL when there is none of that number.  Of streams that have ended the
 * last 64 are known, and those with messages the application has not given back; "" for others.  The text is good until the
 * thread has called this eight times more. */
HELIO_API const char *helio_receiver_stream(const helio_receiver *receiver, uint32_t stream);
/* Asks the source of stream number `stream` again for messages `first` to `last` of the receiver's topic, out of the
 * source's history; the receiver itself goes on undisturbed.  The new receiver gets exactly these messages, as far as the
 * history has them, in order (flag RECOVERED); what it has not, any more or yet, comes as losses.  When the range is
 * complete, helio_receiver_receive of the new receiver returns CLOSED.  Destroy it like any receiver.
 * Releases the messages that the last helio_receiver_receive of `receiver` gave.
 * Errors: OPTION (first > last), STATE (no such stream, or it has ended; a replay; within a listener), NOMEM. */
HELIO_API int helio_receiver_replay(helio_receiver *receiver, uint32_t stream, uint64_t first,
                                    uint64_t last, helio_receiver **out);
/* Accepts NULL. */
HELIO_API void helio_receiver_destroy(helio_receiver *receiver);

#ifdef __cplusplus
}
#endif

#endif
