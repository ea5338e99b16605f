/* The judge of receivers: the lag of a receiver, and its class from its last observations.
 *
 * A monitor joins both ends of a stream and fills one helio_judged per receiver.  helio_judged_lag()
 * derives lag, queue and the changes of the interval from the cells of the receiver's record;
 * helio_judged_class() adds the observation to the receiver's window and decides.  The rules are
 * described in heliograph.monitor.window.  There is one copy of them: all outputs use this one.
 *
 * Plain functions of values: no clock, no allocation, nothing of the engine. */
#ifndef HELIO_BINDING_JUDGE_H
#define HELIO_BINDING_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HELIO_JUDGE_MISSING_RATIO 0.005 /* lossy from this share of packets missing at first */
#define HELIO_JUDGE_QUEUE_FILL 0.8
#define HELIO_JUDGE_LAG_SECONDS 0.25
#define HELIO_JUDGE_LAG_MESSAGES 2 /* one message is normal: it is in flight */
#define HELIO_JUDGE_STEPS 10       /* of a window; it has one look more */

/* The classes of heliograph.monitor.behaviour, by their values there. */
#define HELIO_JUDGE_CLASSES(X)          \
    X(OK, "ok")                         \
    X(RECOVERING, "recovering")         \
    X(LOSSY, "lossy")                   \
    X(FALLING_BEHIND, "falling_behind") \
    X(STALLED, "stalled")               \
    X(STOPPED, "stopped")

/* The sources of a lag in seconds: heliograph.monitor.rows.LagBasis, by their values there. */
#define HELIO_JUDGE_BASES(X)  \
    X(MEASURED, "measured")   \
    X(WATCHED, "watched")     \
    X(AT_LEAST, "at least")   \
    X(ESTIMATED, "estimated") \
    X(UNKNOWN, "unknown")

enum {
#define X(name, text) HELIO_CLASS_##name,
    HELIO_JUDGE_CLASSES(X)
#undef X
        HELIO_CLASS_NONE
};

enum {
#define X(name, text) HELIO_BASIS_##name,
    HELIO_JUDGE_BASES(X)
#undef X
};

enum {
    HELIO_RUNS,
    HELIO_CLOSED,
    HELIO_ENDED
}; /* of a receiver; ENDED: its instance is in trouble */

/* The cells of a receiver's record that the join uses; one that does not apply is 0. */
#define HELIO_RECEIVER_CELLS(X)   \
    X(next_message)               \
    X(messages_before_join)       \
    X(messages_delivered)         \
    X(messages_recovered)         \
    X(messages_lost)              \
    X(messages_trimmed_count)     \
    X(messages_trimmed_bytes)     \
    X(messages_trimmed_age)       \
    X(messages_trimmed_conflated) \
    X(messages_trimmed_priority)  \
    X(fragments_joined)           \
    X(bytes_delivered)            \
    X(queue_messages)             \
    X(queue_bytes)                \
    X(queue_limit_bytes)          \
    X(queue_full)                 \
    X(queue_age)

typedef struct helio_receiver_cells {
#define X(name) uint64_t name;
    HELIO_RECEIVER_CELLS(X)
#undef X
} helio_receiver_cells;

/* One receiver.  A lag in messages is the sum of two numbers of 64 bits: in flight and waiting.
 * lag_seconds is NaN where it is unknown.  `sender` and `window` are indexes, -1: none. */
#define HELIO_JUDGED(X)                                                                \
    /* from the join */                                                                \
    X(uint64_t, "u8", sent)        /* next message of its sender */                    \
    X(uint64_t, "u8", sent_before) /* the same at the start of the interval */         \
    X(double, "f8", sent_per_s)                                                        \
    X(int64_t, "i8", sender)                                                           \
    X(int64_t, "i8", window)                                                           \
    X(uint64_t, "u8", gaps)    /* packets of its stream detected as missing */         \
    X(uint64_t, "u8", packets) /* of its stream, delivered or known to exist */        \
    /* the observation: counters since it joined */                                    \
    X(uint64_t, "u8", expected)                                                        \
    X(uint64_t, "u8", all_delivered)                                                   \
    X(uint64_t, "u8", all_lost)                                                        \
    X(uint64_t, "u8", all_queue_full)                                                  \
    X(uint64_t, "u8", in_flight)                                                       \
    X(uint64_t, "u8", waiting)                                                         \
    X(double, "f8", queue_fill)                                                        \
    /* the evidence: of the interval, then of the window where that is long enough */  \
    X(uint64_t, "u8", delivered)                                                       \
    X(uint64_t, "u8", lost)                                                            \
    X(uint64_t, "u8", queue_full)                                                      \
    X(uint64_t, "u8", in_flight_before)                                                \
    X(uint64_t, "u8", waiting_before)                                                  \
    X(double, "f8", lag_seconds)                                                       \
    X(double, "f8", missing_ratio)                                                     \
    /* the result */                                                                   \
    X(double, "f8", badness)                                                           \
    X(int64_t, "i8", since_ns)                                                         \
    X(uint64_t, "u8", way_bytes) /* payload in flight, where the sender was watched */ \
    X(uint32_t, "u4", looks)                                                           \
    X(uint8_t, "u1", behaviour)                                                        \
    X(uint8_t, "u1", basis)                                                            \
    X(uint8_t, "u1", has_way)                                                          \
    /* flags of the join and the evidence */                                           \
    X(uint8_t, "u1", end)                                                              \
    X(uint8_t, "u1", has_sender)                                                       \
    X(uint8_t, "u1", has_before)                                                       \
    X(uint8_t, "u1", had_sender)                                                       \
    X(uint8_t, "u1", is_watched)                                                       \
    X(uint32_t, "u4", unused)

typedef struct helio_judged {
#define X(type, format, name) type name;
    HELIO_JUDGED(X)
#undef X
} helio_judged;

/* The positions of a sender, oldest first: when, its next message, and the bytes before that. */
typedef struct helio_positions {
    const int64_t *times_ns;
    const uint64_t *sent;
    const uint64_t *bytes;
    size_t count;
} helio_positions;

typedef struct helio_way {
    int64_t age_ns;
    uint64_t bytes;
    bool is_bounded; /* false: sent before the first position, the age is a lower bound */
} helio_way;

typedef struct helio_look {
    int64_t time_ns;
    uint64_t expected, delivered, lost, queue_full, gaps, packets, in_flight, waiting;
    double queue_fill;
} helio_look;

/* The last looks of one receiver, and its class.  All zeros but for the classes when empty. */
typedef struct helio_window {
    helio_look looks[HELIO_JUDGE_STEPS + 1];
    int64_t since_ns, candidate_ns;
    uint8_t first, count, late, agreed, behaviour, candidate;
} helio_window;

void helio_window_init(helio_window *window);

/* The way from `message` to the sender's last position; false: not sent, or no position. */
bool helio_positions_behind(const helio_positions *line, uint64_t message, helio_way *way);

/* Derives the observation and the evidence of the interval from the cells of a receiver.
 * `before` is all zeros without an earlier state.  `line` may be NULL: the sender is not watched. */
void helio_judged_lag(helio_judged *one, const helio_receiver_cells *now,
                      const helio_receiver_cells *before, const helio_positions *line);

/* Adds the observation to the window and judges; with no window, by the interval alone. */
void helio_judged_class(helio_judged *one, helio_window *window, int64_t time_ns);

#endif
