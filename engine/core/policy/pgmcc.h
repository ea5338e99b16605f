/* PGMCC: a window for a group, run by the feedback of its worst receiver (Rizzo, SIGCOMM 2000;
 * draft-ietf-rmt-bb-pgmcc-03).  It shares a bottleneck with TCP about evenly.
 *
 * One receiver, the acker, acknowledges each data packet with the newest sequence it has and a map
 * of the 32 up to there.  The window grows by one packet per round trip and is halved by a loss,
 * like TCP's; what has been sent since the newest packet acknowledged takes its entry in it.  (The
 * draft keeps a count of tokens instead, which lost acknowledgements and changes of the acker let
 * leak away.)  A loss is a hole with three or more later packets acknowledged.  After a cut nothing
 * counts until a packet sent after it is acknowledged.  When no acknowledgement comes for the
 * retransmission timeout (RFC 6298) the window is one packet; after two such times in a row the
 * acker is forgotten and whoever answers next takes its index.
 *
 * The acker is the receiver with the smallest throughput by TCP's equation (Padhye et al., as in
 * RFC 5348), from the share of packets it lost and its round trip: 1 / (RTT (sqrt(2p/3) + 12
 * sqrt(3p/8) p (1 + 32 p^2))).  A rival takes over when its throughput is below three quarters of
 * the acker's, so that the role does not wander between equals.
 *
 * The window does not grow while the application sends less than it allows (RFC 7661's reason).  It
 * knows no packets, sockets or clocks. */
#ifndef HELIO_POLICY_PGMCC_H
#define HELIO_POLICY_PGMCC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "base/rtt.h"
#include "receivers/index.h"

typedef struct helio_pgmcc {
    double window;              /* packets, at least 1 */
    helio_receiver_index acker; /* index of the receiver; NONE: to be elected */
    double acker_cost;          /* 1 / its throughput; 0: it has lost nothing yet */
    uint64_t newest;            /* acknowledged */
    uint64_t acked;             /* bit i: newest - i was acknowledged */
    uint64_t lead;              /* newest sequence sent */
    uint64_t cut_at;    /* lead when the window was cut last: losses up to there count no more */
    bool is_recovering; /* nothing sent after the last cut is acknowledged: no growth */
    uint64_t full_at;   /* lead when the window was full last */
    helio_rtt rtt;      /* of the acker */
    int64_t timeout_ns;
    int64_t due_ns;    /* when the timeout runs out; HELIO_NEVER: nothing is on its way */
    uint32_t timeouts; /* in a row */
    uint64_t cuts;     /* ever, timeouts not counted */
} helio_pgmcc;

/* What a receiver said. */
typedef struct helio_pgmcc_feedback {
    helio_receiver_index index; /* who */
    double loss; /* share of packets it loses, 0 to 1, and its round trip (0: not known), */
    int64_t round_trip_ns; /* both averaged over the same time for all receivers, to compare them */
    bool is_ack;           /* it acknowledges: the three that follow are given */
    uint64_t newest;       /* newest sequence it has */
    uint32_t bitmap;       /* bit i: it has newest - i; bit 0 is set */
    int64_t measured_ns;   /* the round trip of `newest`; 0: not known */
} helio_pgmcc_feedback;

/* `lead`: newest sequence sent so far. */
void helio_pgmcc_init(helio_pgmcc *pgmcc, uint64_t lead);
/* A data packet was sent (not a repair). */
void helio_pgmcc_on_sent(helio_pgmcc *pgmcc, uint64_t sequence, int64_t now_ns);
/* Newest sequence that may be sent now. */
static inline uint64_t helio_pgmcc_send_limit(const helio_pgmcc *pgmcc) {
    return pgmcc->newest + (uint64_t)pgmcc->window;
}
/* Feedback of any receiver.  True when the acker has changed. */
bool helio_pgmcc_on_feedback(helio_pgmcc *pgmcc, const helio_pgmcc_feedback *feedback,
                             int64_t now_ns);
/* A receiver has gone, or does not count any more.  True when it was the acker. */
bool helio_pgmcc_on_gone(helio_pgmcc *pgmcc, helio_receiver_index index);
/* Looks at the timeout.  True when it ran out. */
bool helio_pgmcc_poll(helio_pgmcc *pgmcc, int64_t now_ns);
static inline int64_t helio_pgmcc_next_deadline_ns(const helio_pgmcc *pgmcc) {
    return pgmcc->due_ns;
}

#endif
