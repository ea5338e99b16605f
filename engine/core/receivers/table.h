/* The receivers that sent a stream feedback: requests, acknowledgements or reports.  Each has an entry
 * with a view (receiver_view.h) and statistics (scope tx_receiver).
 *
 * A receiver is tracked by the id it reports, else by the address of its feedback.  The first report
 * from an address gives the receiver there its id.  Several receivers may send from one address.  A
 * receiver that reports is bound to its address (identity.h), so no other sender can speak for it.
 *
 * The number is bounded.  A receiver is proven by a report or an acknowledgement that was taken, or
 * by its connection.  Unproven receivers are few and are evicted for newcomers, so made-up addresses
 * cannot evict real receivers (entries.h).  A receiver without an entry has no statistics.
 *
 * The table decides by views, never by statistics.  It knows no packets on their way, sockets,
 * threads or clocks. */
#ifndef HELIO_RECEIVERS_TABLE_H
#define HELIO_RECEIVERS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/bucket.h"
#include "base/map.h"
#include "base/moment.h"
#include "receivers/allowance.h"
#include "receivers/asked.h"
#include "receivers/hosts.h"
#include "receivers/receiver_view.h"
#include "stats/refusal.h"
#include "stats/stats.h"
#include "window/txw.h"
#include "wire/pgm.h"

/* Means over about a second, however often a receiver reports.  Receivers are compared by these:
 * otherwise one that reports each packet would be judged by its last few packets, and another by
 * its last few thousand. */
typedef struct helio_receiver_average {
    double lost;
    double expected;
    /* 0: not known. */
    double round_trip_ns;
    /* Time of the last report. */
    uint32_t at_us;
} helio_receiver_average;

/* A receiver, with its view beside it. */
typedef struct helio_receiver_entry {
    helio_address address;
    helio_stats_object object;
    helio_asked asked;
    helio_allowance allowance;
    /* "": not known. */
    char name[HELIO_PGM_REPORT_NAME_MAX + 1];
    /* How far it was behind at its last report. */
    helio_txw_behind told;
    /* Most packets it reported to be behind, and highest buffer fill in 65535ths, since
     * helio_receivers_take_peaks. */
    uint64_t peak_lag;
    uint32_t peak_fill;
    /* Sequences it requested, ever, in all its lives. */
    uint64_t asked_for;
    /* When it last requested the packet in `missing`, or an older one. */
    int64_t missing_ns;
    /* Packets of the last reports, weighted by recency. */
    double recent_lost;
    double recent_expected;
    helio_receiver_average average;
    /* A number that no other receiver of the stream had, for references (helio_receivers_is). */
    uint32_t born;
    uint32_t host;
    bool is_proven;
    /* It reads repairs sent to its address. */
    bool takes_unicast;
    /* It has begun a life, and its host's budget has not grown for that yet. */
    bool brings;
    /* Time of the first feedback of this life. */
    int64_t began_ns;
} helio_receiver_entry;

typedef struct helio_receivers {
    /* By index, as are views and states. */
    helio_receiver_entry *entries;
    helio_receiver_view *views;
    /* State of the table's owner for each receiver. */
    uint8_t *states;
    size_t state_bytes;
    /* Entries in use or used before. */
    uint32_t count;
    uint32_t capacity;
    /* Of `count`, not PRESENT. */
    uint32_t vacant;
    /* PRESENT and not proven. */
    uint32_t unproven;
    /* Receivers discovered, ever. */
    uint32_t births;
    helio_hosts hosts;
    helio_allowances allowances;
    helio_map by_address;
    helio_map by_receiver;
    helio_stats *stats;
    /* Sequences requested by receivers that are not, or no longer, tracked. */
    uint64_t asked_by_others;
    /* Sequences requested by all receivers. */
    uint64_t asked_for;
    /* Statistics of the stream; may be NULL. */
    helio_tx_stream_stats *stream;
    /* "instance=...\nstream=...\n" */
    char *labels;
    /* No sender can use the address of another one. */
    bool are_pinned;
    /* An address silent for this long no longer binds its receiver. */
    int64_t silence_ns;
    /* Limits searches for a receiver to evict. */
    helio_bucket looks;
    helio_refusal_place refusals;
    helio_burst refused;
    /* No event of a conflict before. */
    int64_t event_after_ns;
} helio_receivers;

/* state_bytes: size of the owner's state of each receiver.  instance and stream: labels, copied.
 * 0 or NOMEM; free with helio_receivers_fini. */
int helio_receivers_init(helio_receivers *receivers, uint32_t capacity, size_t state_bytes,
                         helio_stats *stats, const char *instance, const char *stream);
void helio_receivers_fini(helio_receivers *receivers, helio_moment moment);

/* The table: entries that are not PRESENT are empty. */
static inline helio_receiver_view *helio_receivers_views(helio_receivers *receivers,
                                                         uint32_t *entries) {
    *entries = receivers->count;
    return receivers->views;
}
/* The owner's state of the receiver at an index; all zeros when the receiver is discovered. */
static inline void *helio_receivers_state(const helio_receivers *receivers,
                                          helio_receiver_index index) {
    return receivers->states + index * receivers->state_bytes;
}
/* The receiver at an index is still the one with this number (helio_receiver_entry.born). */
static inline bool helio_receivers_is(const helio_receivers *receivers, helio_receiver_index index,
                                      uint32_t born) {
    return born != 0 && index < receivers->count && receivers->entries[index].born == born;
}
/* The allowance of the receiver at an index; HELIO_RECEIVER_NONE: of those that are not tracked. */
static inline helio_allowance *helio_receivers_allowance(helio_receivers *receivers,
                                                         helio_receiver_index index) {
    return index < receivers->count ? &receivers->entries[index].allowance
                                    : &receivers->allowances.untracked;
}
/* The index of the receiver with this id; HELIO_RECEIVER_NONE: none.  Without reports the id is a
 * hash of the address. */
helio_receiver_index helio_receivers_find(const helio_receivers *receivers, uint64_t receiver);

/* The index of the receiver at an address, the first of several; HELIO_RECEIVER_NONE: none. */
helio_receiver_index helio_receivers_at(const helio_receivers *receivers,
                                        const helio_address *address);

/* The index of the receiver that acknowledges under this id from an address: the one that reports
 * under the id, else the one at the address if it does not report; HELIO_RECEIVER_NONE: none. */
helio_receiver_index helio_receivers_acknowledging(const helio_receivers *receivers,
                                                   uint64_t receiver, const helio_address *from);

/* The index of the receiver that sent feedback without an id from an address.  A new receiver is
 * discovered.  HELIO_RECEIVER_NONE: no room. */
helio_receiver_index helio_receivers_discover(helio_receivers *receivers,
                                              const helio_address *address, helio_moment moment);
/* An acknowledgement of the receiver was taken, which proves it. */
void helio_receivers_prove(helio_receivers *receivers, helio_receiver_index index,
                           helio_moment moment);

/* Whether the reports of a receiver come from an address (HERE), or cannot come from there. */
typedef enum helio_whereabouts {
    HELIO_WHEREABOUTS_UNKNOWN,
    HELIO_WHEREABOUTS_HERE,
    HELIO_WHEREABOUTS_ELSEWHERE,
} helio_whereabouts;
helio_whereabouts helio_receivers_whereabouts(const helio_receivers *receivers, uint64_t receiver,
                                              const helio_address *from, int64_t now_ns);
/* A report or an acknowledgement under its id came from another address. */
void helio_receivers_report_conflict(helio_receivers *receivers, helio_receiver_index index,
                                     const helio_address *from, helio_moment moment);

typedef enum helio_report_result {
    HELIO_REPORT_TAKEN,
    /* Its receiver is known at another address, so it may be forged. */
    HELIO_REPORT_ELSEWHERE,
    /* No receiver of this stream can have these counts. */
    HELIO_REPORT_IMPOSSIBLE,
    /* Of an earlier life, or overtaken by a newer report. */
    HELIO_REPORT_STALE,
    HELIO_REPORT_NO_ROOM,
} helio_report_result;

/* The stream when a report comes. */
typedef struct helio_report_context {
    /* Number of the first packet. */
    uint64_t start;
    uint64_t lead;
    /* For the lag in bytes and time; may be NULL. */
    const helio_txw *history;
    /* The time as in stamps. */
    uint32_t now_us;
} helio_report_context;

/* Processes a report; its receiver's id is not 0.  Stores the index of the receiver, also when the
 * report is refused but its receiver is known at this address. */
helio_report_result helio_receivers_on_report(helio_receivers *receivers,
                                              const helio_pgm_receiver_report *told,
                                              const helio_address *from,
                                              const helio_report_context *context,
                                              helio_moment moment, helio_receiver_index *index);

/* Most packets behind and highest buffer fill reported since the last call.  Both begin again with
 * the last report. */
void helio_receivers_take_peaks(helio_receivers *receivers, helio_receiver_index index,
                                uint64_t *lag, uint32_t *fill);

/* `sequences` were requested by the receiver at `index`, or by one that is not tracked
 * (HELIO_RECEIVER_NONE).  The total is always the sum over receivers and others. */
void helio_receivers_count_asked(helio_receivers *receivers, helio_receiver_index index,
                                 uint64_t sequences);
/* The share of the receiver at `index` in all sequences requested, 0 to 1; 0 without any. */
double helio_receivers_asked_share(const helio_receivers *receivers, helio_receiver_index index);
/* A receiver requests a packet.  True for the first time. */
bool helio_receivers_ask(helio_receivers *receivers, helio_receiver_index index, uint64_t sequence,
                         int64_t now_ns);
/* An acknowledgement has this position. */
void helio_receivers_reach(helio_receivers *receivers, helio_receiver_index index,
                           uint64_t position);
/* To be called every 100 ms or so.  A receiver without reports no longer misses packets that it has
 * stopped requesting.  Returns the number of receivers that report and are not silent. */
uint32_t helio_receivers_tend(helio_receivers *receivers, int64_t now_ns);

/* The statistics of a receiver; NULL for HELIO_RECEIVER_NONE and empty entries. */
helio_tx_receiver_stats *helio_receivers_stats(helio_receivers *receivers,
                                               helio_receiver_index index);
/* The statistics of this receiver have this feature from now on (HELIO_HAS_*). */
void helio_receivers_apply(helio_receivers *receivers, helio_receiver_index index,
                           unsigned feature);
/* NULL for the same. */
helio_receiver_view *helio_receivers_view(helio_receivers *receivers, helio_receiver_index index);
/* Share of packets lost in the last reports, 0 to 1. */
double helio_receivers_loss(const helio_receivers *receivers, helio_receiver_index index);
/* The same, and the round trip (0: not known), as a mean over about the last second. */
double helio_receivers_mean_loss(const helio_receivers *receivers, helio_receiver_index index);
int64_t helio_receivers_mean_round_trip_ns(const helio_receivers *receivers,
                                           helio_receiver_index index);

#endif
