/* The decision log of one stream: all inputs and all decisions of its policies, in order.  The
 * same policies or others can repeat each decision from it (decision_reader.h).
 *
 * A log is a block of memory, such as a file that the caller has mapped, with a header and records
 * after it.  A record is a kind, a length and numbers as variable-length integers.  The numbers of
 * an interval and of a view are differences from the previous one, so a quiet receiver takes about
 * 20 bytes.  Layout: docs/decisions.md.
 *
 * Written records never change: `used` in the header grows when a record is complete, so a reader
 * of a crashed engine's log finds whole records only.  When the memory is full, nothing more is
 * written and the log says so (is_full), because a log with a hole could not be replayed.  No
 * allocation after init, no system call, no clock. */
#ifndef HELIO_POLICY_DECISION_LOG_H
#define HELIO_POLICY_DECISION_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/interval.h"

enum {
    HELIO_DECISION_LOG_HEADER = 128,
    HELIO_DECISION_LOG_MIN = 4096, /* bytes of the smallest log */
    HELIO_DECISION_NUMBERS_MAX = 32,
    HELIO_DECISION_TEXT_MAX = 4096,
};

/* Kinds of records.  The numbers of a kind may become more; a reader takes missing ones for 0. */
typedef enum helio_decision_kind {
    /* what the policies see */
    HELIO_DECISION_CONFIG = 1,   /* text: options as "name=value&..." */
    HELIO_DECISION_RECEIVER = 2, /* index; text: "name address" */
    HELIO_DECISION_VIEW = 3,     /* a receiver's view that has news or has changed; differences */
    HELIO_DECISION_INTERVAL = 4, /* the end of an interval, after its views; differences */
    HELIO_DECISION_POLICY =
        5, /* a rate policy takes over: rate in force, ceiling, now; text: name */
    /* what they decide, after the interval */
    HELIO_DECISION_RATE = 16, /* rate, send limit, state, worst, signal; text: why */
    HELIO_DECISION_SLOW_RECEIVER = 17,
    HELIO_DECISION_STORM = 18,
} helio_decision_kind;

typedef struct helio_decision_log {
    uint8_t *memory;
    size_t capacity;
    size_t used;
    bool is_full;
    helio_interval interval;    /* the last one written */
    helio_receiver_view *views; /* the last ones written, by index */
    uint32_t entries;
} helio_decision_log;

/* Begins a log in `memory`, of at least HELIO_DECISION_LOG_MIN bytes, aligned to 8, which outlives
 * it.  `stream`: its TSI as text.  `entries`: receivers there may be.  0, OPTION (too small) or
 * NOMEM; free with helio_decision_log_fini, which leaves the memory alone. */
int helio_decision_log_init(helio_decision_log *log, void *memory, size_t capacity,
                            const char *instance, const char *stream, int64_t wall_ns,
                            uint32_t entries);
void helio_decision_log_fini(helio_decision_log *log);

/* Each view, then the interval they belong to.  A view is written when it has news or has
 * changed. */
void helio_decision_log_view(helio_decision_log *log, const helio_receiver_view *view);
void helio_decision_log_interval(helio_decision_log *log, const helio_interval *interval);
/* Any other record: up to HELIO_DECISION_NUMBERS_MAX numbers and a text, which may be NULL and is
 * cut at HELIO_DECISION_TEXT_MAX. */
void helio_decision_log_record(helio_decision_log *log, helio_decision_kind kind,
                               const uint64_t *numbers, size_t count, const char *text);

#endif
