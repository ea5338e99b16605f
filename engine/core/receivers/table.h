/* The receivers a stream has heard (a request for repair, an acknowledgement, a report): what is
 * known of each (receiver_view.h), and statistics of its own (scope tx_receiver).
 *
 * A receiver is known by the id it reports, else by the address its feedback comes from; learning
 * the id of one met by its address makes the two one.  Several receivers may speak from one
 * address.  Who reports is bound to its address (identity.h), so that nobody else can speak for it.
 *
 * The number is bounded.  A receiver is proven by a report or an acknowledgement that was taken, or
 * by its connection; until then it is one of few, and gives way to newcomers, so that forged
 * addresses cannot push out real receivers (entries.h).  Who gets no entry goes uncounted.
 *
 * It decides by the views, never by statistics.  It knows nothing of packets on their way, sockets,
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

/* The same over about a second of time, however often a receiver reports.  Receivers are compared
 * by these: one that reports each packet would else be judged by its last few packets, and another
 * by its last few thousand. */
typedef struct helio_receiver_average {
    double lost;
    double expected;
    double round_trip_ns; /* 0: not known */
    uint32_t at_us;       /* of the last report */
} helio_receiver_average;

/* What is kept of a receiver beside its view. */
typedef struct helio_receiver_entry {
    helio_address address;
    helio_stats_object object;
    helio_asked asked;
    helio_allowance allowance;
    char name[HELIO_PGM_REPORT_NAME_MAX + 1]; /* "": not known */
    helio_txw_behind told;                    /* how far it was behind when it last reported */
    uint64_t peak_lag;  /* most packets it told to be behind since somebody looked */
    uint32_t peak_fill; /* most it told its buffers to be full since then, in 65535ths */
    uint64_t asked_for; /* sequences, ever, as its address or its id, in all its lives */
    int64_t missing_ns; /* when it last asked for the packet in `missing`, or an older one */
    double recent_lost; /* packets of the last reports, the older the less */
    double recent_expected;
    helio_receiver_average average;
    uint32_t born; /* number of its coming, for whoever keeps something by index */
    uint32_t host; /* where it is */
    bool is_proven;
    bool brings;      /* a life of it has begun, for which the host's budget is to grow */
    int64_t began_ns; /* when this life was first heard of */
} helio_receiver_entry;

typedef struct helio_receivers {
    helio_receiver_entry *entries; /* by index */
    helio_receiver_view *views;    /* by index */
    /* By index: what the owner of the table keeps of each receiver. */
    uint8_t *states;
    size_t state_bytes;
    uint32_t count; /* entries in use or used before */
    uint32_t capacity;
    uint32_t vacant;   /* of these, not PRESENT */
    uint32_t unproven; /* of those PRESENT */
    uint32_t births;
    helio_hosts hosts;
    helio_allowances allowances;
    helio_map by_address;
    helio_map by_receiver;
    helio_stats *stats;
    uint64_t
        asked_by_others; /* sequences asked for by receivers that are not, or no longer, here */
    uint64_t asked_for;  /* by all */
    helio_tx_stream_stats *stream; /* where these are shown; may be NULL */
    char *labels;                  /* "instance=...\nstream=...\n" */
    bool are_pinned;               /* nobody can speak in another's name here */
    int64_t silence_ns; /* an address silent for this long no longer binds its receiver */
    helio_bucket looks; /* for one to replace */
    helio_refusal_place refusals;
    helio_burst refused;
    int64_t event_after_ns; /* conflicts are told of now and then */
} helio_receivers;

/* state_bytes: size of what the owner keeps of each receiver.  instance and stream: labels, copied.
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
/* What the owner keeps of the receiver at an index; all zeros when the receiver is discovered. */
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
/* The index of the receiver with this id (HELIO_RECEIVER_NONE: it is not known), which without
 * reports is a hash of its address. */
helio_receiver_index helio_receivers_find(const helio_receivers *receivers, uint64_t receiver);

/* The index of the receiver that is known at an address, the first of several; HELIO_RECEIVER_NONE:
 * none is. */
helio_receiver_index helio_receivers_at(const helio_receivers *receivers,
                                        const helio_address *address);

/* The index of the receiver that acknowledges under this id from an address: the one that reports
 * under the id, else the one at the address if it does not report; HELIO_RECEIVER_NONE: none. */
helio_receiver_index helio_receivers_acknowledging(const helio_receivers *receivers,
                                                   uint64_t receiver, const helio_address *from);

/* Who it is that gives feedback from an address without saying so, made known when it is new;
 * HELIO_RECEIVER_NONE when there is no room. */
helio_receiver_index helio_receivers_discover(helio_receivers *receivers,
                                              const helio_address *address, helio_moment moment);
/* It has proven to be one, by an acknowledgement that was taken. */
void helio_receivers_prove(helio_receivers *receivers, helio_receiver_index index,
                           helio_moment moment);

/* What is sure of a receiver's address: that its reports come from there (HERE), or cannot. */
typedef enum helio_whereabouts {
    HELIO_WHEREABOUTS_UNKNOWN,
    HELIO_WHEREABOUTS_HERE,
    HELIO_WHEREABOUTS_ELSEWHERE,
} helio_whereabouts;
helio_whereabouts helio_receivers_whereabouts(const helio_receivers *receivers, uint64_t receiver,
                                              const helio_address *from, int64_t now_ns);
/* A report, or an acknowledgement, of a receiver came from another address than its own. */
void helio_receivers_report_conflict(helio_receivers *receivers, helio_receiver_index index,
                                     const helio_address *from, helio_moment moment);

typedef enum helio_report_result {
    HELIO_REPORT_TAKEN,
    HELIO_REPORT_ELSEWHERE,  /* its receiver is known at another address: maybe forged */
    HELIO_REPORT_IMPOSSIBLE, /* no receiver of this stream can say so */
    HELIO_REPORT_STALE,      /* of an earlier life, or overtaken by a newer one */
    HELIO_REPORT_NO_ROOM,
} helio_report_result;

/* The stream when a report comes. */
typedef struct helio_report_context {
    uint64_t start; /* number of the first packet */
    uint64_t lead;
    const helio_txw *history; /* for how far it is behind in bytes and time; may be NULL */
    uint32_t now_us;          /* what a stamp would say now */
} helio_report_context;

/* Takes in what a receiver (its id is not 0) tells of itself.  Stores its entry, also when the
 * report is not taken but its receiver is known there. */
helio_report_result helio_receivers_on_report(helio_receivers *receivers,
                                              const helio_pgm_receiver_report *told,
                                              const helio_address *from,
                                              const helio_report_context *context,
                                              helio_moment moment, helio_receiver_index *index);

/* The most it told since this was last asked: packets behind, and how full its buffers were.  From
 * now on it is what it told last. */
void helio_receivers_take_peaks(helio_receivers *receivers, helio_receiver_index index,
                                uint64_t *lag, uint32_t *fill);

/* `sequences` were requested by the receiver at `index`, or by one that is not tracked
 * (HELIO_RECEIVER_NONE).  The total is always the sum over receivers and others. */
void helio_receivers_count_asked(helio_receivers *receivers, helio_receiver_index index,
                                 uint64_t sequences);
/* The share of all sequences asked for that the receiver at `index` asked for, 0 to 1; of none,
 * 0. */
double helio_receivers_asked_share(const helio_receivers *receivers, helio_receiver_index index);
/* A receiver asks for a packet.  True when it had not before. */
bool helio_receivers_ask(helio_receivers *receivers, helio_receiver_index index, uint64_t sequence,
                         int64_t now_ns);
/* An acknowledgement tells how far it is. */
void helio_receivers_reach(helio_receivers *receivers, helio_receiver_index index,
                           uint64_t position);
/* Now and then: forgets what receivers that do not report asked for and no longer ask for. Returns
 * how many receivers report and have been heard within the silence time. */
uint32_t helio_receivers_tend(helio_receivers *receivers, int64_t now_ns);

/* Its statistics; NULL for HELIO_RECEIVER_NONE and empty entries. */
helio_tx_receiver_stats *helio_receivers_stats(helio_receivers *receivers,
                                               helio_receiver_index index);
/* The statistics of this receiver have this feature from now on (HELIO_HAS_*). */
void helio_receivers_apply(helio_receivers *receivers, helio_receiver_index index,
                           unsigned feature);
/* NULL for the same. */
helio_receiver_view *helio_receivers_view(helio_receivers *receivers, helio_receiver_index index);
/* Share of the packets lost lately, 0 to 1. */
double helio_receivers_loss(const helio_receivers *receivers, helio_receiver_index index);
/* The same, and the round trip (0: not known), as a mean over about the last second. */
double helio_receivers_mean_loss(const helio_receivers *receivers, helio_receiver_index index);
int64_t helio_receivers_mean_round_trip_ns(const helio_receivers *receivers,
                                           helio_receiver_index index);

#endif
