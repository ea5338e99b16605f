/* One stream being received: PGM's receiver for one TSI.  It joins receive window, requests for
 * missing packets, and delivery.
 *
 * The stream begins where it was discovered (discovery.h): after the lead of an SPM, or at the
 * first original data.  With `join_history` it begins with the oldest packet that the first SPM
 * offers (OPT_JOIN); data that came before that SPM is held for a while.  Packets missing from such
 * a beginning are requested piece by piece, oldest first, so that neither the source nor this
 * receiver's own socket is flooded, and new data is not delayed.
 *
 * It ends when its source says so (FIN, RST, or this receiver is expelled) and everything held is
 * passed on, or when it was silent for the expiry time.  Packets that its source has announced by
 * then and that are missing are reported lost.
 *
 * A stream that comes back continues with the packet after the last one passed or reported; packets
 * sent in between are requested like history.  A receiver that acknowledges begins with the oldest
 * packet its source waits for, if that is earlier.  A receiver that was expelled loses everything
 * before the packet that brings the stream back.
 *
 * Its window is small until it has proven itself (unproven.h).
 *
 * No NAK is sent before the first SPM, which says where NAKs go; a stream discovered by data
 * requests an SPM (SPMR).  An SPM's lead is believed for at most one window beyond the data that
 * came.
 *
 * A packet must come from the stream's source (binding.h).  A claim of one packet alone is not
 * always believed (doubt.h), and a source that answers nothing gets little feedback (budget.h). */
#ifndef HELIO_RECEIVE_STREAM_H
#define HELIO_RECEIVE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/address.h"
#include "base/burst.h"
#include "base/moment.h"
#include "base/outlet.h"
#include "base/random.h"
#include "receive/absent.h"
#include "receive/acks.h"
#include "receive/binding.h"
#include "receive/budget.h"
#include "receive/clock.h"
#include "receive/credit.h"
#include "receive/delivery.h"
#include "receive/discovery.h"
#include "receive/doubt.h"
#include "receive/endpoint.h"
#include "receive/loss_location.h"
#include "receive/notices.h"
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
    int64_t kernel_ns; /* wall clock time the kernel received this packet; 0: not known */
    helio_instance_stats *instance;
    bool is_aside; /* this packet was sent to this receiver alone, not to the group */
    helio_rx_endpoint_config config;
    helio_outlet outlet;
    helio_stats *stats;
    helio_subscriptions subscriptions;
    helio_random random;
    uint32_t node; /* this endpoint's number in polls */
    bool is_group; /* other receivers have the same source */
    uint32_t blocked_streams;
    helio_rx_drops drops;
    helio_rx_unproven unproven;
    helio_burst refusals[HELIO_RX_REFUSALS];
    int64_t foreign_event_after_ns; /* foreign traffic is an event once a minute */
    helio_burst naks_unanswered;    /* requests that wait for a source that has answered none */
} helio_rx_shared;

typedef enum helio_rx_stream_state {
    HELIO_RX_STREAM_OPEN,
    HELIO_RX_STREAM_DISPLACED, /* the owner of its TSI's port takes it over */
    HELIO_RX_STREAM_CLOSED,    /* its source ended it and everything is passed on */
    HELIO_RX_STREAM_SILENT,    /* nothing came for the expiry time */
    HELIO_RX_STREAM_EXPELLED,  /* its source ignores this receiver */
} helio_rx_stream_state;

struct helio_rx_stream {
    /* Read or written for each packet; kept together, so that few cache lines are touched. */
    helio_rx_shared *shared;
    helio_tsi tsi;
    helio_address source; /* where it was discovered */
    helio_rx_binding binding;
    uint64_t newest;     /* newest data received */
    uint64_t told_trail; /* the oldest sequence the source has, as last announced */
    int64_t heard_ns;
    bool is_blocked; /* a sink has no room */
    bool is_waiting; /* for an SPM that says where to begin, until begin_by_ns */
    bool is_pacing;  /* packets missing from ask_from on are not requested yet */
    bool has_end;    /* FIN or RST, unless newer data has come since (doubt.end_newest) */
    uint32_t loss;   /* share of packets missed, smoothed, of HELIO_RX_LOSS_ALL */
    helio_rxw rxw;
    helio_rx_budget budget;
    helio_stats_object object;
    /* Of this, the present topic; of those below, whether they have something to do. */
    helio_delivery delivery;
    helio_rx_acks acks;
    helio_nak nak;
    helio_rx_reports reports;
    helio_rx_credit credit;
    helio_rx_notices notices;
    helio_polled polled;              /* polls of the source */
    helio_rx_unproven_place unproven; /* no host: it is proven */

    helio_rx_doubt doubt;
    helio_address feedback; /* where NAKs go; family 0 until the first SPM */
    helio_rx_clock clocks;
    int64_t in_order_ns; /* when the newest packet of those passed on by the window was in order */
    uint64_t first;      /* where it began */
    uint64_t joined;     /* packets up to here were sent before it was discovered: history */
    uint64_t missed;     /* packets first seen missing, without history */
    uint64_t given_up;   /* packets lost for good */
    helio_rx_turned_away turned_away;
    helio_rx_shares located, located_told; /* losses by location; and as last reported */
    int64_t locate_after_ns;               /* no report before */
    uint64_t untold;       /* packets that left the window as lost and are not reported yet */
    uint64_t incarnation;  /* greater in a later life of this receiver */
    uint8_t told_flags;    /* HELIO_PGM_RECEIVER_REPORT_*, of its reports */
    uint32_t spm_sequence; /* of the newest SPM */
    bool has_spm;
    bool is_unreachable; /* the source says so (NBR_UNREACH): requests are pointless */
    /* Topics are looked for, and the source waits for acknowledgements: before then, announcements
     * may come that name topics of earlier messages. */
    int64_t learn_by_ns;
    bool is_back;    /* it continues where it ended before */
    bool was_proven; /* it delivered something before it ended */
    uint64_t ask_from;
    uint64_t told_lead;  /* the newest sequence an SPM announced */
    int64_t quickest_ns; /* shortest time from request to repair; 0: none yet */
    bool is_near_away;   /* an event said that the local repairer does not answer */
    int64_t begin_by_ns;
    uint64_t end; /* the last sequence there is */
    int64_t spmr_due_ns;
    int64_t spmr_interval_ns;
    uint32_t spmrs_heard; /* of other receivers; each delays ours */
    helio_address poll_answer_to;
    uint32_t stores_count; /* message stores, as the source announced them last */
    helio_address stores[HELIO_PGM_STORES_MAX];
    uint8_t report_fields; /* HELIO_PGM_REPORT_*: the report that NAKs carry has these */
    int64_t conflict_event_after_ns;
    int64_t opened_ns;
    bool is_complete;              /* it was discovered before its first packet */
    bool gives_way;                /* it is evicted: readers of statistics need not see it */
    int64_t grow_after_ns;         /* its window does not grow before */
    struct helio_rx_stream *next;  /* of the endpoint */
    struct helio_rx_stream **link; /* the pointer to it there */
};

/* How a stream begins that was tracked before. */
typedef struct helio_rx_return {
    const helio_rx_absent *absent;
    bool goes_on;         /* it continues where it was; else only its topics do */
    uint64_t lost_before; /* older packets are lost without a request; 0: none */
} helio_rx_return;

/* Where a stream that was tracked before begins with this packet; *back is for create. */
helio_rx_start helio_rx_start_again(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                                    const helio_rx_absent *absent, bool from_live,
                                    helio_rx_return *back);

/* Tracks a stream of `from` from `start` on.  The caller then passes the packet that led to it to
 * on_packet.  `back`: NULL for a stream that was not tracked before.  The window is small until
 * helio_rx_stream_prove.  0 or NOMEM; release it with helio_rx_stream_destroy. */
int helio_rx_stream_create(helio_rx_shared *shared, const helio_tsi *tsi,
                           const helio_rx_start *start, const helio_rx_return *back,
                           const helio_address *from, helio_moment moment, helio_rx_stream **out);
void helio_rx_stream_destroy(helio_rx_stream *stream, helio_moment moment);
/* The stream is proven: no other stream evicts it, and it gets its histograms and its whole window,
 * as far as memory_limit allows. */
void helio_rx_stream_prove(helio_rx_stream *stream, int64_t now_ns);

/* The origin of a packet that goes downstream. */
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
                               helio_moment moment);
/* Takes up a repair of the local repairer, of a packet that is missing. */
void helio_rx_stream_take_near_repair(helio_rx_stream *stream, const helio_pgm_packet *packet,
                                      size_t bytes, int64_t receive_ns, helio_moment moment);
/* Begins or ends acknowledging, as the subscriptions need. */
void helio_rx_stream_set_acking(helio_rx_stream *stream, helio_moment moment);
/* More packets may have been passed on, or acknowledged by the application. */
void helio_rx_advance_acks(helio_rx_stream *stream, helio_moment moment);
/* Returns the amount of work done. */
int helio_rx_stream_poll(helio_rx_stream *stream, helio_moment moment);
int64_t helio_rx_stream_next_deadline_ns(const helio_rx_stream *stream);
helio_rx_stream_state helio_rx_stream_state_of(const helio_rx_stream *stream, helio_moment moment);

/* The newest packet known to exist. */
static inline uint64_t helio_rx_newest_known(const helio_rx_stream *stream) {
    return stream->newest > stream->rxw.known ? stream->newest : stream->rxw.known;
}

/* The source has ended the stream, and no newer data refutes it. */
static inline bool helio_rx_has_ended(const helio_rx_stream *stream) {
    return stream->has_end && stream->newest <= stream->doubt.end_newest;
}

static inline helio_rx_stream_stats *helio_rx_stats(const helio_rx_stream *stream) {
    return stream->object.record;
}

/* Records the time from the kernel to the engine.  The clock may have been set in between: a time
 * below zero says nothing. */
static inline void helio_rx_record_wait(const helio_rx_stream *stream, int64_t kernel_ns,
                                        int64_t receive_ns) {
    if (kernel_ns && receive_ns >= kernel_ns) {
        helio_record(stream->object.histogram[HELIO_RX_STREAM_SOCKET_LATENCY],
                     receive_ns - kernel_ns, 1);
    }
}

/* Bytes of its windows, charged to the account. */
static inline size_t helio_rx_memory_of(const helio_rx_stream *stream) {
    return helio_rxw_memory(&stream->rxw) + helio_nak_memory(&stream->nak);
}
/* A packet has no room: grows the window, up to its configured size. */
void helio_rx_make_room(helio_rx_stream *stream, uint64_t sequence, int64_t now_ns);
/* Grows the window when the stream begins earlier than assumed. */
void helio_rx_make_room_before(helio_rx_stream *stream, uint64_t first);

static inline bool helio_rx_is_unproven(const helio_rx_stream *stream) {
    return stream->unproven.host != NULL;
}
/* Packets its window holds, or will hold when it is proven. */
uint64_t helio_rx_window_of(const helio_rx_stream *stream);

/* The packet is from the local repairer, and one that it may send. */
static inline bool helio_rx_is_near(const helio_rx_shared *shared, uint8_t type,
                                    const helio_address *from) {
    return shared->config.repairer.family != 0 &&
           (type == HELIO_PGM_TYPE_RDATA || type == HELIO_PGM_TYPE_NCF) &&
           helio_address_equal(&shared->config.repairer, from);
}

/* Some subscription's messages are acknowledged. */
static inline bool helio_rx_is_acking(const helio_rx_shared *shared) {
    return shared->subscriptions.acked_by_auto > 0 || shared->subscriptions.acked_by_app > 0;
}

/* Reports foreign traffic, at most once a minute. */
void helio_rx_foreign_event(helio_rx_shared *shared, const helio_address *from, const char *what,
                            helio_moment moment);

#endif
