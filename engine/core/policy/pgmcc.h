/* PGMCC: congestion control for a group by the feedback of its worst receiver (Rizzo, SIGCOMM 2000;
 * draft-ietf-rmt-bb-pgmcc-03).  A stream shares a bottleneck with TCP about evenly.
 *
 * One receiver, the acker, acknowledges each data packet.  The acknowledgement has the newest
 * sequence number the acker received, and a bitmap of the 32 that end there.
 *
 * The window limits the packets sent after the newest acknowledged packet; each of them occupies
 * one packet of it.  (The draft counts tokens instead.  Tokens leak when acknowledgements are lost
 * or the acker changes.)  As in TCP, the window grows by one packet per round trip, and a loss
 * halves it.  A packet is lost when three or more later packets are acknowledged and it is not.
 * After a cut the window neither shrinks by a loss nor grows until a packet sent after the cut is
 * acknowledged.  When no acknowledgement comes within the retransmission timeout (RFC 6298), the
 * window becomes one packet.  After two timeouts in a row there is no acker; the next receiver that
 * sends feedback becomes the acker.
 *
 * The acker is the receiver with the smallest throughput by TCP's equation (Padhye et al., as in
 * RFC 5348).  With the share p of packets it lost and its round trip, the throughput is
 * 1 / (RTT (sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2))).  Another receiver becomes the acker when
 * its throughput is below three quarters of the acker's.  This margin prevents changes between
 * receivers of about equal throughput.
 *
 * The window does not grow while the application sends less than it allows (for the reason in
 * RFC 7661).  This file uses no packets, sockets or clocks. */
#ifndef HELIO_POLICY_PGMCC_H
#define HELIO_POLICY_PGMCC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/moment.h"
#include "base/rtt.h"
#include "receivers/index.h"

typedef struct helio_pgmcc {
    double window;              /* packets, at least 1 */
    helio_receiver_index acker; /* NONE: none is elected */
    double acker_cost;          /* 1 / its throughput; 0: not known */
    uint64_t newest;            /* newest sequence number acknowledged */
    uint64_t acked;             /* bit i: newest - i was acknowledged */
    uint64_t lead;              /* newest sequence sent */
    uint64_t cut_at;            /* lead at the last cut; losses up to it are not counted */
    bool is_recovering;         /* no packet sent after the last cut is acknowledged: no growth */
    uint64_t full_at;           /* lead when the window was last full */
    helio_rtt rtt;              /* of the acker */
    int64_t timeout_ns;
    int64_t due_ns;    /* when the timeout expires; HELIO_NEVER: no packet awaits acknowledgement */
    uint32_t timeouts; /* in a row */
    uint64_t cuts;     /* by losses, since the start; timeouts are not counted */
} helio_pgmcc;

/* Feedback from a receiver. */
typedef struct helio_pgmcc_feedback {
    helio_receiver_index index;
    /* Loss and round trip are averaged over the same time for all receivers, to compare them. */
    double loss;           /* share of packets lost, 0 to 1 */
    int64_t round_trip_ns; /* 0: not known */
    bool is_ack;           /* it is an acknowledgement: the next three members are set */
    uint64_t newest;       /* newest sequence number received */
    uint32_t bitmap;       /* bit i: newest - i was received; bit 0 is set */
    int64_t measured_ns;   /* round trip of `newest`; 0: not known */
} helio_pgmcc_feedback;

/* `lead`: newest sequence number sent so far. */
void helio_pgmcc_init(helio_pgmcc *pgmcc, uint64_t lead);
/* A data packet was sent (not a repair). */
void helio_pgmcc_on_sent(helio_pgmcc *pgmcc, uint64_t sequence, int64_t now_ns);
/* Newest sequence number that may be sent now. */
static inline uint64_t helio_pgmcc_send_limit(const helio_pgmcc *pgmcc) {
    return pgmcc->newest + (uint64_t)pgmcc->window;
}
/* Applies the feedback of any receiver.  Returns true when the acker has changed. */
bool helio_pgmcc_on_feedback(helio_pgmcc *pgmcc, const helio_pgmcc_feedback *feedback,
                             int64_t now_ns);
/* A receiver left or is not counted any more.  Returns true when it was the acker. */
bool helio_pgmcc_on_gone(helio_pgmcc *pgmcc, helio_receiver_index index);
/* Checks the timeout.  Returns true when it expired. */
bool helio_pgmcc_poll(helio_pgmcc *pgmcc, int64_t now_ns);
static inline int64_t helio_pgmcc_next_deadline_ns(const helio_pgmcc *pgmcc) {
    return pgmcc->due_ns;
}

#endif
