/* Syntax of a command (docs/segment.md 8): `verb key=value key=value`, separated by one blank.
 *
 * In a value, a blank, a '%' and each byte that is not a printable character is written as %XX.
 * Numbers are decimal: a rate in whole bytes per second, a time in seconds with at most 9 decimal
 * places.  The text comes from another process.  It is refused unless it is UTF-8 without control
 * characters.  The error for an unknown verb or key names it and lists the known ones.
 *
 * A new verb is a line of HELIO_CONTROL_VERBS and a function in control_verbs.c. */
#ifndef HELIO_OPTIONS_CONTROL_TEXT_H
#define HELIO_OPTIONS_CONTROL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HELIO_CONTROL_VALUE_BYTES = 256 };

#define HELIO_CONTROL_RATE_MAX UINT64_C(1000000000000)     /* bytes per second */
#define HELIO_CONTROL_FOR_MAX_NS INT64_C(2592000000000000) /* 30 days */

/* Type of a key's value. */
typedef enum helio_control_kind {
    HELIO_CONTROL_TEXT,
    HELIO_CONTROL_RATE,
    HELIO_CONTROL_TIME,
    HELIO_CONTROL_LEVEL,
    HELIO_CONTROL_FLAG, /* yes */
} helio_control_kind;

/* X(NAME, name, kind) */
#define HELIO_CONTROL_KEYS(X)   \
    X(STREAM, stream, TEXT)     \
    X(TOPIC, topic, TEXT)       \
    X(RECEIVER, receiver, TEXT) \
    X(WHY, why, TEXT)           \
    X(POLICY, policy, TEXT)     \
    X(RATE, rate, RATE)         \
    X(FOR, for, TIME)           \
    X(OFF, off, FLAG)           \
    X(LEVEL, level, LEVEL)

typedef enum helio_control_key {
#define X(NAME, name, kind) HELIO_CONTROL_KEY_##NAME,
    HELIO_CONTROL_KEYS(X)
#undef X
        HELIO_CONTROL_KEYS_COUNT
} helio_control_key;

enum {
#define X(NAME, name, kind) HELIO_CONTROL_HAS_##NAME = 1 << HELIO_CONTROL_KEY_##NAME,
    HELIO_CONTROL_KEYS(X)
#undef X
        HELIO_CONTROL_WHERE = HELIO_CONTROL_HAS_STREAM | HELIO_CONTROL_HAS_TOPIC,
};

#define HELIO_CONTROL_WHOM HELIO_CONTROL_HAS_RECEIVER
#define HELIO_CONTROL_SAYING (HELIO_CONTROL_WHERE | HELIO_CONTROL_HAS_WHY)

/* X(NAME, name, word, keys it must have, keys it may have) */
#define HELIO_CONTROL_VERBS(X)                                                                 \
    X(PING, ping, "ping", 0, 0)                                                                \
    X(SET_RATE, set_rate, "set-rate", HELIO_CONTROL_HAS_RATE, HELIO_CONTROL_WHERE)             \
    X(SET_POLICY, set_policy, "set-policy", HELIO_CONTROL_HAS_POLICY, HELIO_CONTROL_WHERE)     \
    X(SUSPEND, suspend, "suspend", HELIO_CONTROL_WHOM | HELIO_CONTROL_HAS_FOR,                 \
      HELIO_CONTROL_SAYING)                                                                    \
    X(RESUME, resume, "resume", HELIO_CONTROL_WHOM, HELIO_CONTROL_SAYING)                      \
    X(EXPEL, expel, "expel", HELIO_CONTROL_WHOM, HELIO_CONTROL_SAYING | HELIO_CONTROL_HAS_FOR) \
    X(READMIT, readmit, "readmit", HELIO_CONTROL_WHOM, HELIO_CONTROL_SAYING)                   \
    X(CUTOFF, cutoff, "cutoff", 0,                                                             \
      HELIO_CONTROL_SAYING | HELIO_CONTROL_HAS_FOR | HELIO_CONTROL_HAS_OFF)                    \
    X(LEVEL, level, "level", 0,                                                                \
      HELIO_CONTROL_WHERE | HELIO_CONTROL_HAS_RECEIVER | HELIO_CONTROL_HAS_FOR |               \
          HELIO_CONTROL_HAS_OFF | HELIO_CONTROL_HAS_LEVEL)                                     \
    X(FREEZE, freeze, "freeze", 0, HELIO_CONTROL_HAS_WHY)

typedef enum helio_control_verb {
#define X(NAME, name, word, must, may) HELIO_CONTROL_VERB_##NAME,
    HELIO_CONTROL_VERBS(X)
#undef X
        HELIO_CONTROL_VERBS_COUNT
} helio_control_verb;

typedef struct helio_control_request {
    helio_control_verb verb;
    unsigned has; /* HELIO_CONTROL_HAS_* */
    uint64_t rate;
    int64_t for_ns;
    int level;
    char text[HELIO_CONTROL_KEYS_COUNT][HELIO_CONTROL_VALUE_BYTES]; /* "" when not given */
} helio_control_request;

/* Parses `length` bytes, followed by a NUL.  Returns 0 or HELIO_ERR_OPTION. */
int helio_control_parse(const char *text, size_t length, helio_control_request *out);

/* Returns whether the bytes are UTF-8 without control characters. */
bool helio_control_is_text(const char *bytes, size_t length);

#endif
