/* How much feedback a receiver sends to an address that may be a victim's
 * (docs/adr/0028-belief.md).
 *
 * An attacker who forges the sender of a packet makes receivers send feedback to an address that
 * never asked for it.  Until a stream's source has answered a request, by a confirmation or a
 * repair of a missing packet, all feedback to it together is therefore at most twice the bytes that
 * came from it, and few packets are requested per HELIO_RX_BUDGET_PAUSE_NS: one NAK's worth, and
 * more when much came.  Further requests wait (nak.h); when the source answers, they are sent at
 * once.
 *
 * A source that answers has credit for NAKs: a number of bytes per byte that comes from it, and
 * some per second.  A source that leaves requests unanswered for HELIO_RX_BUDGET_LAPSE_NS is
 * treated, for NAKs, like one that never answered.
 *
 * Connections and memory cannot be forged: they have no limit. */
#ifndef HELIO_RECEIVE_BUDGET_H
#define HELIO_RECEIVE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/moment.h"

#define HELIO_RX_BUDGET_PAUSE_NS (2 * HELIO_MILLISECOND)
#define HELIO_RX_BUDGET_LAPSE_NS HELIO_SECOND

typedef struct helio_rx_stream helio_rx_stream;

typedef struct helio_rx_budget {
    bool is_unlimited;
    bool has_answered;    /* at least once */
    uint64_t heard_bytes; /* bytes from the source */
    uint64_t sent_bytes;  /* feedback to it; since it answered, only NAKs */
    int64_t turn_ns;      /* start of the pause in which `asked` packets were requested */
    uint64_t asked;
    int64_t unanswered_ns;   /* first NAK since its last answer; HELIO_NEVER: none */
    uint64_t credit_bytes;   /* once it has answered */
    uint64_t credited_bytes; /* of heard_bytes */
    int64_t credited_ns;
    int64_t release_ns; /* when to look at waiting requests again; HELIO_NEVER: none wait */
    uint64_t counted;   /* delayed requests that were counted, or answered since */
} helio_rx_budget;

void helio_rx_budget_init(helio_rx_budget *budget, bool is_unlimited);

/* Feedback goes to another address from now on, which has answered nothing yet. */
void helio_rx_budget_restart(helio_rx_stream *stream);

/* Before the source has answered: whether a packet of `bytes` is within the limit. */
static inline bool helio_rx_budget_covers(const helio_rx_budget *budget, size_t bytes) {
    return budget->is_unlimited || budget->has_answered ||
           budget->sent_bytes + bytes <= 2 * budget->heard_bytes;
}
/* Feedback other than NAKs was sent. */
static inline void helio_rx_budget_sent(helio_rx_budget *budget, size_t bytes) {
    if (!budget->has_answered) {
        budget->sent_bytes += bytes;
    }
}

/* The source confirmed a request or sent a repair: waiting requests may be sent. */
void helio_rx_budget_on_answer(helio_rx_stream *stream, int64_t now_ns);
/* The most packets that a NAK sent now may request. */
size_t helio_rx_budget_asks(helio_rx_stream *stream, int64_t now_ns);
/* Whether the next NAK may carry a report of `bytes`. */
bool helio_rx_budget_allows_report(const helio_rx_stream *stream, size_t bytes, int64_t now_ns);
void helio_rx_budget_on_nak(helio_rx_stream *stream, size_t asks, size_t bytes, int64_t now_ns);
/* Releases waiting requests as far as the budget allows, when it is time to look. */
void helio_rx_budget_poll(helio_rx_stream *stream, helio_moment moment);

#endif
