/* The numbers of an interval and of a view, in the order a decision log has them
 * (docs/decisions.md).  New ones go to the end; none is ever taken out. */
#ifndef HELIO_POLICY_DECISION_FIELDS_H
#define HELIO_POLICY_DECISION_FIELDS_H

#include <stddef.h>
#include <string.h>

#include "policy/decision_log.h"

/* clang-format changes the layout of such lists each time it runs. */
/* clang-format off */

/* X(field) */
#define HELIO_DECISION_INTERVAL_FIELDS(X) \
    X(now_ns) X(wall_ns) X(length_ns) X(flags) X(receivers) X(packets_sent) X(bytes_sent) \
    X(repair_packets) X(repair_bytes) X(naks) X(offered_bytes) X(rate) X(queue_bytes) \
    X(lead) X(trail) X(history_packets) X(repairs_waiting) X(silence_ns)

/* Without the entry, which comes first. */
#define HELIO_DECISION_VIEW_FIELDS(X) \
    X(receiver) X(incarnation) X(flags) X(window) X(received) X(lost) X(unrecoverable) \
    X(naks) X(naks_again) X(naks_late) X(naks_shed) X(repairs) X(repair_bytes) X(position) \
    X(missing) X(buffer_fill) X(round_trip_ns) X(heard_ns)

/* clang-format on */

enum {
#define X(field) +1
    HELIO_DECISION_INTERVAL_NUMBERS = 0 HELIO_DECISION_INTERVAL_FIELDS(X),
    HELIO_DECISION_VIEW_NUMBERS = 0 HELIO_DECISION_VIEW_FIELDS(X),
#undef X
};

static inline void helio_decision_get_interval(const helio_interval *from, uint64_t *numbers) {
    size_t i = 0;
#define X(field) numbers[i++] = (uint64_t)from->field;
    HELIO_DECISION_INTERVAL_FIELDS(X)
#undef X
}

static inline void helio_decision_set_interval(helio_interval *to, const uint64_t *numbers) {
    size_t i = 0;
#define X(field) to->field = (__typeof__(to->field))numbers[i++];
    HELIO_DECISION_INTERVAL_FIELDS(X)
#undef X
}

static inline void helio_decision_get_view(const helio_receiver_view *from, uint64_t *numbers) {
    size_t i = 0;
#define X(field) numbers[i++] = (uint64_t)from->field;
    HELIO_DECISION_VIEW_FIELDS(X)
#undef X
}

static inline void helio_decision_set_view(helio_receiver_view *to, const uint64_t *numbers) {
    size_t i = 0;
#define X(field) to->field = (__typeof__(to->field))numbers[i++];
    HELIO_DECISION_VIEW_FIELDS(X)
#undef X
}

/* Entries in the header. */
enum {
    HELIO_DECISION_AT_ORDER = 8,
    HELIO_DECISION_AT_VERSION = 12,
    HELIO_DECISION_AT_USED = 16,
    HELIO_DECISION_AT_WALL = 24,
    HELIO_DECISION_AT_FULL = 32,
    HELIO_DECISION_AT_PLACES = 36,
    HELIO_DECISION_AT_INSTANCE = 40,
    HELIO_DECISION_AT_STREAM = 88,

    HELIO_DECISION_VERSION = 1,
    HELIO_DECISION_ORDER = 0x01020304,
    HELIO_DECISION_PLACES_MAX = 1 << 16,
};
#define HELIO_DECISION_MAGIC "HELIODEC"

#endif
