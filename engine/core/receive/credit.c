#include "receive/credit.h"

#include "receive/feedback.h"

enum { ROUND_MAX = 128 }; /* packets of one repetition: of 1,024 topics */

#define REPEAT_FIRST_NS (20 * HELIO_MILLISECOND)

static void begin(helio_rx_credit *credit, int64_t now_ns) {
    credit->repeat_ns = REPEAT_FIRST_NS;
    credit->due_ns = now_ns;
}

void helio_rx_credit_on_spm(helio_rx_credit *credit, const helio_pgm_reporting *asked,
                            int64_t now_ns) {
    const bool was_awaited = credit->is_awaited;
    credit->is_awaited = asked && (asked->flags & HELIO_PGM_REPORTING_AWAITS_CREDIT);
    if (credit->is_awaited && !was_awaited) {
        begin(credit, now_ns);
    }
}

bool helio_rx_is_granting(const helio_rx_stream *stream) {
    return stream->credit.is_awaited && stream->delivery.granting_count > 0 &&
           helio_rx_can_report(stream);
}

int64_t helio_rx_credit_deadline_ns(const helio_rx_stream *stream) {
    if (!helio_rx_is_granting(stream)) {
        return HELIO_NEVER;
    }
    return stream->delivery.has_credit_news ? 0 : stream->credit.due_ns;
}

/* One packet; whether there was anything to tell. */
static bool tell(helio_rx_stream *stream, bool only_owed, int64_t now_ns) {
    helio_pgm_grant grants[HELIO_PGM_GRANTS_MAX];
    const uint32_t count =
        helio_delivery_grants(&stream->delivery, only_owed, grants, HELIO_PGM_GRANTS_MAX);
    if (count > 0) {
        helio_rx_send_grants(stream, grants, count, now_ns);
    }
    return count > 0;
}

static uint32_t round_of(const helio_rx_stream *stream) {
    const uint32_t packets =
        (stream->delivery.granting_count + HELIO_PGM_GRANTS_MAX - 1) / HELIO_PGM_GRANTS_MAX;
    return packets < ROUND_MAX ? packets : ROUND_MAX;
}

int helio_rx_grant_when_due(helio_rx_stream *stream, int64_t now_ns) {
    helio_rx_credit *credit = &stream->credit;
    if (!helio_rx_is_granting(stream)) {
        return 0;
    }
    int sent = 0;
    const uint32_t most = round_of(stream);
    if (stream->delivery.has_credit_news) {
        stream->delivery.has_credit_news = false;
        for (uint32_t i = 0; i < most && tell(stream, true, now_ns); i++) {
            sent++;
        }
        if (sent > 0) {
            credit->repeat_ns = REPEAT_FIRST_NS;
            credit->due_ns = now_ns + REPEAT_FIRST_NS;
        }
    }
    if (now_ns < credit->due_ns) {
        return sent;
    }
    for (uint32_t i = 0; i < most && tell(stream, false, now_ns); i++) {
        sent++;
    }
    credit->due_ns = now_ns + credit->repeat_ns;
    credit->repeat_ns = 2 * credit->repeat_ns < HELIO_PGM_GRANT_REPEAT_NS
                            ? 2 * credit->repeat_ns
                            : HELIO_PGM_GRANT_REPEAT_NS;
    return sent;
}

void helio_rx_stop_granting(helio_rx_stream *stream, uint64_t topic_id, int64_t now_ns) {
    if (!stream->credit.is_awaited || !helio_rx_can_report(stream) ||
        helio_delivery_is_granting(&stream->delivery, topic_id)) {
        return;
    }
    const helio_pgm_grant grant = {.topic = topic_id, .limit = HELIO_PGM_GRANT_UNBOUND};
    helio_rx_send_grants(stream, &grant, 1, now_ns);
}
