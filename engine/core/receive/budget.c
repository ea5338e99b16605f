#include "receive/budget.h"

#include <inttypes.h>

#include "receive/stream.h"
#include "stats/refusal.h"

enum {
    ASKS_MAX = 1 + HELIO_PGM_NAK_LIST_MAX,
    HEARD_PER_ASK = 64,       /* bytes; an ask is 4: a sixteenth of all heard goes out at once */
    CREDIT_PER_BYTE = 8,      /* of a source that answers: a NAK is shorter than what it brings */
    CREDIT_PER_MS = 16,       /* bytes; what keeps asking when answers get lost */
    CREDIT_FIRST = 16 * 1024, /* when it answers for the first time: 52 full NAKs */
    CREDIT_MAX = 256 * 1024,
};

#define RELEASE_NS (10 * HELIO_MILLISECOND)

void helio_rx_budget_init(helio_rx_budget *budget, bool is_unlimited) {
    *budget = (helio_rx_budget){
        .is_unlimited = is_unlimited,
        .turn_ns = INT64_MIN / 2,
        .unanswered_ns = HELIO_NEVER,
        .release_ns = HELIO_NEVER,
    };
}

void helio_rx_budget_restart(helio_rx_stream *stream) {
    helio_rx_budget_init(&stream->budget, stream->budget.is_unlimited);
    stream->budget.counted = stream->nak.put_off_ever;
}

static bool is_answering(const helio_rx_budget *budget, int64_t now_ns) {
    return budget->has_answered && (budget->unanswered_ns == HELIO_NEVER ||
                                    now_ns - budget->unanswered_ns < HELIO_RX_BUDGET_LAPSE_NS);
}

static void add_credit(helio_rx_budget *budget, int64_t now_ns) {
    const int64_t passed_ms = (now_ns - budget->credited_ns) / HELIO_MILLISECOND;
    const uint64_t heard = budget->heard_bytes - budget->credited_bytes;
    const uint64_t most = CREDIT_MAX - budget->credit_bytes;
    if (passed_ms >= CREDIT_MAX || heard >= CREDIT_MAX ||
        heard * CREDIT_PER_BYTE + (uint64_t)passed_ms * CREDIT_PER_MS >= most) {
        budget->credit_bytes = CREDIT_MAX;
    } else {
        budget->credit_bytes += heard * CREDIT_PER_BYTE + (uint64_t)passed_ms * CREDIT_PER_MS;
    }
    budget->credited_bytes = budget->heard_bytes;
    budget->credited_ns += passed_ms * HELIO_MILLISECOND;
}

void helio_rx_budget_on_answer(helio_rx_stream *stream, int64_t now_ns) {
    helio_rx_budget *budget = &stream->budget;
    if (budget->is_unlimited) {
        return;
    }
    if (!budget->has_answered) {
        budget->has_answered = true;
        budget->credit_bytes = CREDIT_FIRST;
        budget->credited_bytes = budget->heard_bytes;
        budget->credited_ns = now_ns;
    }
    budget->unanswered_ns = HELIO_NEVER;
    budget->counted = stream->nak.put_off_ever;
    if (stream->nak.put_off > 0) {
        helio_nak_release(&stream->nak, UINT64_MAX, now_ns);
    }
}

/* The NAK's bytes without a list. */
static uint64_t nak_bytes(const helio_rx_stream *stream) {
    return HELIO_PGM_HEADER + 4 + 2 * (stream->source.family == 6 ? 20 : 8);
}

/* Packets that a NAK of at most `bytes` can request. */
static size_t asks_within(const helio_rx_stream *stream, uint64_t bytes) {
    enum { CHAIN = 4, ENTRY = 4 }; /* OPT_LENGTH; the option's own head is as long as an entry */
    const uint64_t least = nak_bytes(stream);
    if (bytes < least + CHAIN + 2 * ENTRY) {
        return bytes >= least;
    }
    const uint64_t asks = (bytes - least - CHAIN) / ENTRY;
    return asks < ASKS_MAX ? (size_t)asks : ASKS_MAX;
}

static uint64_t left_of(const helio_rx_budget *budget) {
    return 2 * budget->heard_bytes > budget->sent_bytes
               ? 2 * budget->heard_bytes - budget->sent_bytes
               : 0;
}

size_t helio_rx_budget_asks(helio_rx_stream *stream, int64_t now_ns) {
    helio_rx_budget *budget = &stream->budget;
    if (budget->is_unlimited) {
        return ASKS_MAX;
    }
    if (is_answering(budget, now_ns)) {
        add_credit(budget, now_ns);
        return asks_within(stream, budget->credit_bytes);
    }
    if (now_ns - budget->turn_ns >= HELIO_RX_BUDGET_PAUSE_NS) {
        budget->turn_ns = now_ns;
        budget->asked = 0;
    }
    const uint64_t most = ASKS_MAX + budget->heard_bytes / HEARD_PER_ASK;
    const uint64_t room = most > budget->asked ? most - budget->asked : 0;
    const size_t asks = asks_within(stream, left_of(budget));
    return asks < room ? asks : (size_t)room;
}

bool helio_rx_budget_allows_report(const helio_rx_stream *stream, size_t bytes, int64_t now_ns) {
    const helio_rx_budget *budget = &stream->budget;
    return budget->is_unlimited ||
           bytes <= (is_answering(budget, now_ns) ? budget->credit_bytes : left_of(budget));
}

void helio_rx_budget_on_nak(helio_rx_stream *stream, size_t asks, size_t bytes, int64_t now_ns) {
    helio_rx_budget *budget = &stream->budget;
    if (is_answering(budget, now_ns)) {
        budget->credit_bytes -= budget->credit_bytes < bytes ? budget->credit_bytes : bytes;
    } else {
        budget->asked += asks;
    }
    budget->sent_bytes += bytes;
    if (budget->unanswered_ns == HELIO_NEVER) {
        budget->unanswered_ns = now_ns;
    }
}

/* What waits has waited for longer than an answer takes. */
static void tell_held_back(helio_rx_stream *stream, helio_moment moment) {
    helio_rx_shared *shared = stream->shared;
    helio_rx_budget *budget = &stream->budget;
    const uint64_t news = stream->nak.put_off_ever - budget->counted;
    if (news == 0) {
        return;
    }
    budget->counted = stream->nak.put_off_ever;
    const helio_refusal reason = HELIO_REFUSAL_NAKS_UNANSWERED;
    const _Atomic uint64_t *refused = helio_refusal_count(shared->instance, reason, news,
                                                          &shared->naks_unanswered, moment.now_ns);
    if (!refused) {
        return;
    }
    char tsi[HELIO_TSI_TEXT], source[HELIO_ADDRESS_TEXT];
    helio_stats_event(shared->stats, moment.wall_ns, HELIO_EVENT_STATE_REFUSED, stream->object.slot,
                      (const uint64_t[4]){reason, helio_cell(refused)},
                      "stream %s: %" PRIu64 " requests wait, because %s has answered none",
                      helio_tsi_format(&stream->tsi, tsi), stream->nak.put_off,
                      helio_address_format(&stream->feedback, source));
}

void helio_rx_budget_poll(helio_rx_stream *stream, helio_moment moment) {
    helio_rx_budget *budget = &stream->budget;
    if (stream->nak.put_off == 0) {
        budget->release_ns = HELIO_NEVER;
        return;
    }
    if (budget->release_ns == HELIO_NEVER) {
        budget->release_ns = moment.now_ns + RELEASE_NS;
    }
    if (moment.now_ns < budget->release_ns) {
        return;
    }
    budget->release_ns = moment.now_ns + RELEASE_NS;
    if (!is_answering(budget, moment.now_ns)) {
        tell_held_back(stream, moment);
    }
    const size_t asks = helio_rx_budget_asks(stream, moment.now_ns);
    if (asks > 0) {
        helio_nak_release(&stream->nak, asks, moment.now_ns);
    }
}
