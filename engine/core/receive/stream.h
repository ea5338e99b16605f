/* One stream being received: PGM's receiver for one TSI.  It joins the receive window, the asking
 * for what is missing and the delivery.
 *
 * The stream begins where it was met (receive/met.h): after the lead of an SPM, or at the first original
 * data.
 * When history is wanted it begins with the oldest packet the first SPM offers (OPT_JOIN); data met
 * before that SPM is held for a while.  What such a beginning leaves to be asked for is asked for
 * piece by piece, oldest first, so that neither the source nor this receiver's own socket is
 * flooded and the newest data has its way.
 * It ends when its source said so (FIN, RST, or that this receiver is expelled) and everything held is
 * passed on, or when it has been silent for the expiry time.  What its source has told of by then and
 * is missing is reported lost.
 *
 * A stream that comes back goes on with the packet after the last one passed or reported: what was
 * sent meanwhile is asked for like history.  A receiver that acknowledges begins with the oldest
 * packet its source waits for if that is earlier; one that was expelled loses what is before the
 * packet it is met by.
 *
 * Its window is small until it has proven to be one that this receiver wants (receive/unproven.h).
 *
 * No NAK is sent before the first SPM, which says where NAKs go; a stream met by its data asks for
 * an SPM (SPMR).  An SPM's lead is believed for at most one window beyond what data has shown.
 *
 * A packet must come from the stream's source (receive/binding.h); what one packet alone claims is not
 * always believed (receive/doubt.h), and a source that answers nothing gets little feedback
 * (receive/budget.h). */
#ifndef HELIO_RECEIVE_STREAM_H
#define HELIO_RECEIVE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/burst.h"
#include "base/clock.h"
#include "base/outlet.h"
#include "base/random.h"
#include "receive/absent.h"
#include "receive/acks.h"
#include "receive/binding.h"
#include "receive/budget.h"
#include "receive/clock.h"
#include "receive/credit.h"
#include "receive/delivery.h"
#include "receive/doubt.h"
#include "receive/endpoint.h"
#include "receive/met.h"
#include "receive/notices.h"
#include "receive/places.h"
#include "receive/reports.h"
#include "receive/subscriptions.h"
#include "receive/unproven.h"
#include "repair/nak.h"
#include "send/polling.h"
#include "stats/stats.h"
#include "window/rxw.h"
#include "wire/pgm.h"

#define HELIO_RX_LOSS_ALL (UINT32_C(1) << 24)

/* What the streams of one endpoint share; the endpoint owns it. */
typedef struct helio_rx_shared {
    helio_rx_endpoint_config config;
    helio_outlet outlet;
    helio_stats *stats;
    helio_instance_stats *instance;
    helio_subscriptions subscriptions;
    helio_random random;
    uint32_t node; /* this endpoint's number in polls */
    bool is_group; /* others hear the same source */
    uint32_t blocked_streams;
    helio_rx_drops drops;
    helio_rx_unproven unproven;
    helio_burst refusals[HELIO_RX_REFUSALS];
    int64_t foreign_event_after_ns; /* foreign traffic is an event once a minute */
    helio_burst naks_unanswered;    /* requests wait for a source that has answered none */
    int64_t kernel_ns; /* when the kernel took in the packet at hand, wall clock; 0: not known */
} helio_rx_shared;

typedef enum helio_rx_stream_state {
    HELIO_RX_STREAM_OPEN,
    HELIO_RX_STREAM_DISPLACED, /* the owner of its TSI's port takes it over */
    HELIO_RX_STREAM_CLOSED,    /* its source ended it and all is passed on */
    HELIO_RX_STREAM_SILENT,    /* nothing heard for the expiry time */
    HELIO_RX_STREAM_EXPELLED,  /* its source does not hear this receiver any more */
} helio_rx_stream_state;

struct helio_rx_stream {
    helio_rx_shared *shared;
    helio_tsi tsi;
    helio_address source; /* where it was met */
    helio_rx_binding binding;
    helio_rx_budget budget;
    helio_rx_doubt doubt;
    helio_address feedback; /* where NAKs go; family 0 until the first SPM */
    helio_stats_object object;
    helio_rxw rxw;
    helio_nak nak;
    helio_delivery delivery;
    helio_rx_acks acks;
    helio_rx_reports reports;
    helio_rx_credit credit;
    helio_rx_clock clocks;
    helio_rx_notices notices;
    uint64_t newest;   /* newest data received */
    uint64_t first;    /* where it began */
    uint64_t joined;   /* packets up to here were sent before: they are caught up with */
    uint64_t missed;   /* packets first seen missing, those caught up with not among them */
    uint64_t given_up; /* packets lost for good */
    helio_rx_turned_away turned_away;
    helio_rx_shares located, located_told; /* what got lost where, and as told */
    int64_t locate_after_ns;               /* it is not told before */
    uint64_t untold;       /* packets that left the window as lost and were not reported yet */
    uint64_t incarnation;  /* greater in a later life of this receiver */
    uint8_t told_flags;    /* HELIO_PGM_TOLD_*, of its reports */
    uint32_t spm_sequence; /* of the newest SPM */
    bool has_spm;
    bool is_unreachable; /* the source said so of itself (NBR_UNREACH): nothing to ask */
    bool is_blocked;     /* a sink has no room */
    bool is_waiting;     /* for an SPM to say where to begin, until begin_by_ns */
    bool is_back;        /* it goes on where it was when it ended before */
    bool was_proven;     /* it delivered something before it ended */
    bool is_pacing;      /* what is missing from ask_from on has not been asked for yet */
    uint64_t ask_from;
    uint64_t told_trail; /* the oldest sequence the source has, as far as it has told */
    uint64_t told_lead;  /* the newest sequence an SPM told of */
    int64_t quickest_ns; /* shortest time from asking for a packet to having it; 0: none yet */
    int64_t begin_by_ns;
    bool has_end; /* FIN or RST, unless newer data has come since (doubt.end_newest) */
    uint64_t end; /* the last sequence there is */
    int64_t heard_ns;
    int64_t spmr_due_ns;
    int64_t spmr_interval_ns;
    uint32_t spmrs_heard; /* of others; each puts off ours */
    helio_polled polled;  /* questions of the source */
    helio_address poll_answer_to;
    uint8_t report_fields; /* HELIO_PGM_REPORT_*: NAKs are to carry a report with these */
    uint32_t loss;         /* share of packets missed, smoothed, of HELIO_RX_LOSS_ALL */
    int64_t conflict_event_after_ns;
    helio_rx_unproven_place unproven; /* no host: it is proven */
    int64_t opened_ns;
    bool is_complete;              /* it was met before its first packet */
    bool gives_way;                /* it ends for another one's sake, so readers need not see it */
    int64_t grow_after_ns;         /* its window is not made larger before */
    struct helio_rx_stream *next;  /* of the endpoint */
    struct helio_rx_stream **link; /* what leads to it there */
};

/* How a stream begins that was followed before. */
typedef struct helio_rx_return {
    const helio_rx_absent *absent;
    bool goes_on;         /* where it was; else only its topics do */
    uint64_t lost_before; /* what is older is lost without being asked for; 0: nothing is */
} helio_rx_return;

/* Where a stream that was followed before is followed from, this packet on; *back is for create. */
helio_rx_start helio_rx_start_again(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                    const helio_rx_absent *absent, bool from_live,
                                    helio_rx_return *back);

/* Follows a stream of `from` from `start` on, which the packet at hand led to; that one is then to be
 * given to on_packet.  `back`: NULL for a stream that was not followed before.  The stream's window is
 * small until helio_rx_stream_prove.  0 or NOMEM; release it with helio_rx_stream_destroy. */
int helio_rx_stream_create(helio_rx_shared *shared, const helio_tsi *tsi,
                           const helio_rx_start *start, const helio_rx_return *back,
                           const helio_address *from, helio_clock clock, helio_rx_stream **out);
void helio_rx_stream_destroy(helio_rx_stream *stream, helio_clock clock);
/* It is proven: nothing puts it out, and it gets its histograms and its whole window, as far as
 * memory_limit allows. */
void helio_rx_stream_prove(helio_rx_stream *stream, int64_t now_ns);

/* Where a packet that goes downstream comes from. */
static inline helio_rx_origin helio_rx_origin_of(helio_rx_stream *stream, const helio_address *from,
                                                 int64_t now_ns) {
    return from->port == stream->binding.port && helio_address_same_ip(&stream->source, from)
               ? HELIO_RX_OF_SOURCE
               : helio_rx_judge_origin(stream, from, now_ns);
}

/* A packet of this stream's TSI that goes downstream, or a NAK or SPMR of another receiver, `bytes`
 * long. */
void helio_rx_stream_on_packet(helio_rx_stream *stream, const helio_pgm_packet *packet,
                               size_t bytes, const helio_address *from, int64_t receive_ns,
                               helio_clock clock);
/* Begins or ends to acknowledge, as the subscriptions there are want. */
void helio_rx_stream_set_acking(helio_rx_stream *stream, helio_clock clock);
/* More may have been passed on, or acknowledged by the application. */
void helio_rx_advance_acks(helio_rx_stream *stream, helio_clock clock);
/* Returns how much was done. */
int helio_rx_stream_poll(helio_rx_stream *stream, helio_clock clock);
int64_t helio_rx_stream_next_deadline_ns(const helio_rx_stream *stream);
helio_rx_stream_state helio_rx_stream_state_of(const helio_rx_stream *stream, helio_clock clock);

/* The newest packet known to be there. */
static inline uint64_t helio_rx_newest_known(const helio_rx_stream *stream) {
    return stream->newest > stream->rxw.known ? stream->newest : stream->rxw.known;
}

/* The source has ended it, and nothing says otherwise. */
static inline bool helio_rx_has_ended(const helio_rx_stream *stream) {
    return stream->has_end && stream->newest <= stream->doubt.end_newest;
}

static inline helio_rx_stream_stats *helio_rx_stats(const helio_rx_stream *stream) {
    return stream->object.record;
}

/* Bytes of its windows, which the account is charged with. */
static inline size_t helio_rx_memory_of(const helio_rx_stream *stream) {
    return helio_rxw_memory(&stream->rxw) + helio_nak_memory(&stream->nak);
}
/* Makes the window larger when it is not what the configuration says yet; a packet has no room. */
void helio_rx_make_room(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns);
/* The same for what it holds, when it begins earlier than thought. */
void helio_rx_make_room_before(helio_rx_stream *stream, uint64_t first);

static inline bool helio_rx_is_unproven(const helio_rx_stream *stream) {
    return stream->unproven.host != NULL;
}
/* Packets its window has room for, or will have when it is proven. */
uint64_t helio_rx_window_of(const helio_rx_stream *stream);

/* Some subscription's messages are acknowledged. */
static inline bool helio_rx_is_acking(const helio_rx_shared *shared) {
    return shared->subscriptions.acked_by_auto > 0 || shared->subscriptions.acked_by_app > 0;
}

/* Says that foreign traffic arrives, at most once a minute. */
void helio_rx_foreign_event(helio_rx_shared *shared, const helio_address *from, const char *what,
                            helio_clock clock);

#endif
