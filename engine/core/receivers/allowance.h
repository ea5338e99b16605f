/* What each receiver of a stream may cause at its source: how many packets it may ask for, how many
 * acknowledgements are heeded, how many bytes are repaired for it - and what stands at it, when it
 * is slow (action.h).
 *
 * Limits are buckets of one second's worth: with a limit of n nothing more than n is granted at
 * once, and n in each second from then on.  A receiver is known by its entry in the table;
 * those there is no entry for share one allowance, so that made-up addresses get no more than one
 * receiver does.  What stands at a receiver outlives its silence, so its entry must be kept while
 * it does.
 *
 * What is refused is counted, and told in windows of a second: due, then take.  It knows no packets
 * and no clock; callers pass monotonic times. */
#ifndef HELIO_RECEIVERS_ALLOWANCE_H
#define HELIO_RECEIVERS_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/moment.h"
#include "receivers/action.h"
#include "receivers/index.h"

typedef struct helio_limits {
    uint64_t naks;         /* sequences asked for, per second and receiver; 0: no limit */
    uint64_t acks;         /* acknowledgements; 0: no limit */
    uint64_t repair_bytes; /* bytes of repairs; 0: no limit */
    uint64_t shed_bytes;   /* the same while SHED; 0: 64 KiB */
} helio_limits;

typedef struct helio_allowance {
    uint64_t key; /* whose it is: an entry may be given to another receiver */
    helio_bucket naks;
    helio_bucket acks;
    helio_bucket repairs;
    int64_t until_ns;        /* `action` stands until then; HELIO_NEVER: until it is undone */
    int64_t refused_from_ns; /* the window of what was refused; 0: nothing was */
    uint32_t naks_shed;      /* within the window */
    uint32_t acks_shed;
    uint8_t action; /* helio_action that stands */
} helio_allowance;

typedef struct helio_allowances {
    helio_limits limits;
    helio_allowance *all; /* by index; the last is that of all who have none */
    uint32_t entries;
    uint32_t treated;   /* something stands at so many */
    uint32_t expelled;  /* of these */
    int64_t ends_ns;    /* nothing that stands is over before */
    int64_t tell_ns;    /* no window is over before */
    int64_t cut_off_ns; /* until then nothing is repaired for anybody; 0: no such thing */
} helio_allowances;

/* 0 or NOMEM; free with helio_allowances_fini. */
int helio_allowances_init(helio_allowances *allowances, uint32_t entries,
                          const helio_limits *limits);
void helio_allowances_fini(helio_allowances *allowances);

/* The allowance of the receiver at an index, which starts without any action, when `key`
 * is another receiver's; a HELIO_RECEIVER_NONE gets the common one. */
helio_allowance *helio_allowances_of(helio_allowances *allowances, helio_receiver_index index,
                                     uint64_t key, int64_t now_ns);

/* One packet of `bytes` is asked for: whether it may be repaired for this receiver.  What may not
 * is counted. */
bool helio_allowance_grants_nak(helio_allowances *allowances, helio_allowance *allowance,
                                int64_t now_ns);
/* Its repair is going to be sent in this receiver's name. */
void helio_allowance_charge(helio_allowance *allowance, size_t bytes);
/* Whether an acknowledgement is to be heeded; what is not is counted. */
bool helio_allowance_grants_ack(helio_allowances *allowances, helio_allowance *allowance,
                                int64_t now_ns);

/* `action` stands at the receiver until `until_ns`; NONE: nothing does. */
void helio_allowance_set(helio_allowances *allowances, helio_allowance *allowance,
                         helio_action action, int64_t until_ns, int64_t now_ns);
/* A receiver whose action, or whose window of refusals, is over; HELIO_RECEIVER_NONE: none. */
helio_receiver_index helio_allowances_ended(helio_allowances *allowances, int64_t now_ns);
helio_receiver_index helio_allowances_refused(helio_allowances *allowances, int64_t now_ns);
/* When one of the two has something; HELIO_NEVER: nothing to come. */
int64_t helio_allowances_next_deadline_ns(const helio_allowances *allowances);

#endif
