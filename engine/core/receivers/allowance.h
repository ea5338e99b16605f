/* The limits of one receiver of a stream, and the action in force at it (action.h).
 *
 * A receiver may request packets, acknowledge, and cause bytes of repairs.  Each of the three has a
 * bucket that holds one second's worth: with a limit of n at most n is granted at once, and n per
 * second from then on.  The table of receivers (table.h) has one allowance per receiver.  All
 * receivers that are not tracked share one, so that made-up addresses together get no more than one
 * receiver.
 *
 * What is refused is counted over windows of a second, which the caller reports.  Nothing here
 * knows packets or a clock; callers pass monotonic times. */
#ifndef HELIO_RECEIVERS_ALLOWANCE_H
#define HELIO_RECEIVERS_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/moment.h"
#include "receivers/action.h"

#define HELIO_ALLOWANCE_WINDOW_NS HELIO_SECOND

/* Per second and receiver. */
typedef struct helio_limits {
    /* Sequences requested; 0: no limit. */
    uint64_t naks;
    /* Acknowledgements; 0: no limit. */
    uint64_t acks;
    /* Bytes of repairs; 0: no limit. */
    uint64_t repair_bytes;
    /* Bytes of repairs under action SHED; 0: 64 KiB. */
    uint64_t shed_bytes;
} helio_limits;

typedef struct helio_allowance {
    helio_bucket naks;
    helio_bucket acks;
    helio_bucket repairs;
    /* `action` is in force until then; HELIO_NEVER: until somebody ends it. */
    int64_t until_ns;
    /* Start of the window of refusals; 0: nothing was refused. */
    int64_t refused_from_ns;
    /* Refused in the window. */
    uint32_t naks_shed;
    uint32_t acks_shed;
    /* helio_action in force. */
    uint8_t action;
} helio_allowance;

/* Of all receivers of a stream. */
typedef struct helio_allowances {
    helio_limits limits;
    /* Of all receivers that are not tracked. */
    helio_allowance untracked;
    /* Receivers with an action in force, and those of them that are expelled. */
    uint32_t restricted;
    uint32_t expelled;
    /* No action in force ends before. */
    int64_t ends_ns;
    /* No window of refusals ends before. */
    int64_t report_ns;
    /* Nothing is repaired for any receiver until then; 0: there is no cut-off. */
    int64_t cut_off_ns;
} helio_allowances;

void helio_allowances_init(helio_allowances *allowances, const helio_limits *limits);

/* A receiver was discovered. */
void helio_allowance_begin(const helio_allowances *allowances, helio_allowance *allowance,
                           int64_t now_ns);
/* A receiver is evicted.  Its refusals are reported with those of receivers not tracked. */
void helio_allowance_end(helio_allowances *allowances, const helio_allowance *allowance);

/* Whether one packet that the receiver requests may be repaired.  Counts a refusal. */
bool helio_allowance_grants_nak(helio_allowances *allowances, helio_allowance *allowance,
                                int64_t now_ns);
/* A repair is about to be sent on the receiver's account. */
void helio_allowance_charge(helio_allowance *allowance, size_t bytes);
/* Whether an acknowledgement is processed.  Counts a refusal. */
bool helio_allowance_grants_ack(helio_allowances *allowances, helio_allowance *allowance,
                                int64_t now_ns);

/* Puts `action` in force until `until_ns`; NONE: no action is in force. */
void helio_allowance_set(helio_allowances *allowances, helio_allowance *allowance,
                         helio_action action, int64_t until_ns, int64_t now_ns);

/* When an action or a window of refusals may end; HELIO_NEVER: there is none. */
int64_t helio_allowances_next_deadline_ns(const helio_allowances *allowances);

#endif
