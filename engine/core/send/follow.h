/* A source that follows its receivers: how far it may send as they tell of it, packet by packet and
 * not interval by interval.
 *
 *   windows   as far as receivers have room: max, min, tagged (policy/window.h)
 *   PGMCC     as far as the worst receiver's acknowledgements allow (policy/pgmcc.h), while the rate
 *             policy is pgmcc
 *
 * PGMCC with nobody who reports holds nothing back: while no acker is elected and for a whole
 * silence time (send/reports.h) no receiver has reported, there is only the rate.  Until then it
 * sends a packet per timeout, so silence is not what a congested network makes of reports.  The
 * first report ends it.
 *
 * Both together: as far as both allow.  SPMs ask receivers for what this needs: a report whenever
 * they have moved on by a quarter of a window, and one for every packet from PGMCC's acker; an SPM
 * leaves at once when that changes.
 *
 * The acker is asked for by its identity, on SPMs: data packets are as without PGMCC, and a
 * receiver of another make is never the acker (docs/adr/0018-pgmcc.md). */
#ifndef HELIO_SEND_FOLLOW_H
#define HELIO_SEND_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "policy/pgmcc.h"
#include "policy/window.h"
#include "wire/pgm.h"

typedef struct helio_tx_stream helio_tx_stream;

typedef struct helio_tx_follow_config {
    int window;         /* HELIO_FLOW_WINDOW_* */
    uint32_t least;     /* receivers that must be there before data is sent */
    int64_t silence_ns; /* a receiver not heard for this long is not waited for */
} helio_tx_follow_config;

typedef struct helio_tx_follow {
    helio_tx_follow_config config;
    helio_window_limit limit;
    bool runs_pgmcc;
    bool obeys_pgmcc;    /* false: it only shows what it would do */
    bool is_alone;       /* PGMCC: nobody reports */
    int64_t reported_ns; /* PGMCC: when a receiver that counts reported last, or it began */
    helio_pgmcc pgmcc;
    uint32_t progress; /* asked for; 0: no */
    uint64_t acker;    /* asked for; 0: nobody */
    int64_t due_ns;    /* HELIO_NEVER: nothing changes by itself */
} helio_tx_follow;

void helio_tx_follow_init(helio_tx_stream *stream, const helio_tx_follow_config *config,
                          helio_moment moment);
/* By hand: another rule. */
void helio_tx_stream_set_window(helio_tx_stream *stream, int window, helio_moment moment);
/* PGMCC begins anew, or ends. */
void helio_tx_follow_set_pgmcc(helio_tx_stream *stream, bool runs, bool obeys, helio_moment moment);

static inline bool helio_tx_follow_is_on(const helio_tx_follow *follow) {
    return follow->runs_pgmcc || follow->config.window != 0;
}
/* Newest sequence that may be sent; UINT64_MAX: any. */
uint64_t helio_tx_follow_send_limit(const helio_tx_follow *follow);
/* What SPMs are to ask for. */
static inline void helio_tx_follow_ask(const helio_tx_follow *follow,
                                       helio_pgm_reporting *reporting) {
    reporting->progress = follow->progress;
    reporting->acker = follow->acker;
}
/* A report of this receiver, which came alone, was asked for: it is not one too many. */
bool helio_tx_follow_has_asked(const helio_tx_follow *follow, uint64_t receiver);

/* The receiver at `index` has told of itself, by this packet. */
void helio_tx_follow_on_feedback(helio_tx_stream *stream, helio_receiver_index index,
                                 const helio_pgm_packet *packet, helio_moment moment);
/* Looks at timeouts, and who is still there. */
void helio_tx_follow_poll(helio_tx_stream *stream, helio_moment moment);
static inline int64_t helio_tx_follow_next_deadline_ns(const helio_tx_follow *follow) {
    return follow->due_ns;
}

#endif
