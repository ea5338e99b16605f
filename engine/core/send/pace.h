/* When a stream's packets may leave: its rate, its instance's rate, and how far it may send.
 *
 * The rate is one bucket for all that leaves (send/limit.h, where the envelope is), and its
 * instance may have another for all its streams (send/share.h); a packet needs both.  Repairs have
 * a budget beside: a bucket that grows with a share of the rate.
 *
 *     NCF, SPM, POLL, announcements asked for   never wait and are charged; below the envelope's
 *                                               lower bound confirmations and heartbeats are left
 *                                               out, as their receivers ask again
 *     repairs                                   wait for their budget and for the rate
 *     data                                      waits for the rate, and for repairs that have budget
 *
 * So repairs get their share when they need it, however much data waits, and no more, however often
 * somebody asks; what they do not need is data's.  As everything is charged to the one bucket, the
 * budgets never add up to more than the rate.
 *
 * Data may also wait for a sequence number (the send limit of window policies).
 *
 * What counts of a packet is its length and `overhead` for each copy: headers below PGM on the
 * wire, or less than nothing when PGM's own header is not to count.
 *
 * It knows no clock; callers pass monotonic times. */
#ifndef HELIO_SEND_PACE_H
#define HELIO_SEND_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bucket.h"
#include "base/moment.h"
#include "send/admit.h"
#include "send/limit.h"
#include "send/share.h"
#include "stats/stats.h"

typedef struct helio_tx_pace_config {
    uint64_t rate;         /* bytes per second; 0: no limit */
    uint64_t burst;        /* bytes; 0: as send/limit.h says */
    double repair_share;   /* of the rate; 0 is 1 */
    int32_t overhead;      /* bytes a packet counts beside its own */
    uint32_t copies;       /* of a packet to everybody; 0: one */
    helio_tx_share *share; /* of the instance; may be NULL */
} helio_tx_pace_config;

typedef struct helio_tx_pace {
    helio_tx_pace_config config;
    bool is_on; /* some limit is in force */
    helio_tx_limit limit;
    helio_bucket repairs;
    helio_bucket brake;   /* of repairs alone, during a storm of requests; no rate: off */
    helio_tx_place place; /* among the instance's streams */
    uint64_t send_limit;  /* newest sequence that may leave */
    bool is_limit_waived; /* the rest of a long message goes on without regard for it */
    uint64_t charged;     /* bytes, ever */
    bool is_open;         /* a packet is being filled */
    bool was_limited;
    helio_admission wait; /* what data waits for now; GO: it does not wait */
    int64_t waits_since_ns;
    bool repairs_wait;
    helio_tx_stream_stats *stats;
    helio_hdr *latency; /* may be NULL */
} helio_tx_pace;

/* `packet_bytes`: of the longest packet, without overhead.  Release with helio_tx_pace_fini. */
void helio_tx_pace_init(helio_tx_pace *pace, const helio_tx_pace_config *config,
                        uint32_t packet_bytes, helio_tx_stream_stats *stats, helio_hdr *latency,
                        int64_t now_ns);
void helio_tx_pace_fini(helio_tx_pace *pace);

/* Bytes per second; 0: no limit. */
void helio_tx_pace_set_rate(helio_tx_pace *pace, uint64_t rate, int64_t now_ns);
/* Data with a greater sequence number waits; UINT64_MAX: none does. */
void helio_tx_pace_set_send_limit(helio_tx_pace *pace, uint64_t sequence);

/* Whether a rate is in force, not only a send limit. */
bool helio_tx_pace_has_rate(const helio_tx_pace *pace);

/* Repairs leave at so many bytes per second at most, whatever else is allowed; 0: that is over. */
void helio_tx_pace_brake_repairs(helio_tx_pace *pace, uint64_t rate, int64_t now_ns);
static inline bool helio_tx_pace_is_braked(const helio_tx_pace *pace) {
    return pace->brake.rate > 0;
}

/* Whether the data packet with this number may be begun now: GO, RATE, INSTANCE_RATE, REPAIRS or
 * WINDOW.  `is_behind`: something waits that goes first, and could leave. */
helio_admission helio_tx_pace_admit(helio_tx_pace *pace, uint64_t sequence, bool is_behind,
                                    int64_t now_ns);
/* Whether there is credit for one more packet, turns and numbers aside. */
bool helio_tx_pace_has_credit(helio_tx_pace *pace, int64_t now_ns);
bool helio_tx_pace_takes_repair(helio_tx_pace *pace, int64_t now_ns);
bool helio_tx_pace_takes_control(helio_tx_pace *pace, size_t length, int64_t now_ns);

/* When there will be credit, as of the last look: 0 or the past when there is. */
int64_t helio_tx_pace_credit_ns(const helio_tx_pace *pace);
/* The same for data, which may have to wait for something to come in: HELIO_NEVER. */
int64_t helio_tx_pace_ready_ns(const helio_tx_pace *pace);
/* The same for a repair. */
int64_t helio_tx_pace_repair_ready_ns(const helio_tx_pace *pace);

/* A data packet is begun, or finished. */
void helio_tx_pace_on_open(helio_tx_pace *pace);
void helio_tx_pace_on_close(helio_tx_pace *pace);
/* A packet left, `copies` times. */
void helio_tx_pace_charge(helio_tx_pace *pace, size_t length, uint32_t copies);
/* So many of the bytes charged were a repair. */
static inline void helio_tx_pace_charge_repair(helio_tx_pace *pace, uint64_t bytes) {
    helio_bucket_charge(&pace->repairs, bytes);
}

/* No data waits any more. */
void helio_tx_pace_rest(helio_tx_pace *pace, int64_t now_ns);
/* Whether data has waited since this was last asked. */
bool helio_tx_pace_was_limited(helio_tx_pace *pace);

#endif
