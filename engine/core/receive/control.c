#include "receive/control.h"

#include <string.h>

#include "base/sequence.h"
#include "receive/feedback.h"
#include "receive/passing.h"

enum { SPMRS_HEEDED = 3 }; /* SPMRs of others that put off ours: nobody can do so for ever */

#define NO_WINDOW_LEAD UINT32_C(0x80000000)

/* ---- the window an SPM tells ---- */

bool helio_rx_has_window(const helio_pgm_packet *spm) {
    return !(spm->options & HELIO_PGM_HAS_NBR_UNREACH) &&
           helio_rx_spm_window(spm) <= HELIO_RX_WINDOW_LIMIT &&
           !(spm->trail == 0 && spm->lead == NO_WINDOW_LEAD);
}

/* The oldest packet that may be asked for: what an SPM offers to those who come late, else what
 * comes next. */
static uint64_t offered_from(const helio_pgm_packet *spm) {
    const uint64_t lead = helio_sequence_start(spm->lead);
    if (!(spm->options & HELIO_PGM_HAS_JOIN) || !helio_rx_has_window(spm)) {
        return lead + 1;
    }
    const uint64_t trail = lead + 1 - helio_rx_spm_window(spm);
    const uint64_t join = helio_sequence_widen(spm->join, lead);
    const uint64_t first = join > trail ? join : trail;
    return first <= lead ? first : lead + 1;
}

/* The oldest packet that is awaited of this receiver; what comes next, when none is. */
static uint64_t awaited_from(const helio_rx_shared *shared, const helio_pgm_packet *spm) {
    const uint64_t next = helio_sequence_start(spm->lead) + 1;
    uint64_t first = next;
    if (helio_rx_is_acking(shared) && (spm->options & HELIO_PGM_HAS_AWAIT) &&
        helio_rx_has_window(spm)) {
        const uint64_t awaited = helio_sequence_widen(spm->awaited, next);
        if (awaited < first && next - awaited <= helio_rx_spm_window(spm)) {
            first = awaited;
        }
    }
    return first;
}

uint64_t helio_rx_begins_at(const helio_rx_shared *shared, const helio_pgm_packet *spm) {
    const uint64_t awaited = awaited_from(shared, spm);
    const uint64_t offered = shared->config.join_history ? offered_from(spm) : awaited;
    return offered < awaited ? offered : awaited;
}

/* ---- SPM, NCF, POLL; NAKs and SPMRs of others ---- */

/* Where to answer a packet that tells its path NLA (docs/wire.md 1): where it came from, or there
 * when network elements may have put their own address in; the port is the stream's own when the
 * packet came from it. */
static helio_address answer_to(const helio_rx_stream *stream, const helio_address *path,
                               const helio_address *from) {
    if (stream->shared->config.is_connected) {
        return *from;
    }
    const bool is_usable = stream->shared->config.network_elements &&
                           path->family == from->family && !helio_address_is_unspecified(path) &&
                           !helio_address_is_multicast(path);
    helio_address to = is_usable ? *path : *from;
    to.port = from->port == stream->tsi.port ? stream->tsi.port : stream->shared->config.group.port;
    return to;
}

/* How long the source wants NAKs held back (15.2.2).  An interval found by a poll older than the
 * newest one heard is out of date. */
static void learn_backoff(helio_rx_stream *stream, const helio_pgm_packet *packet) {
    const helio_pgm_backoff *told = &packet->backoff;
    if (packet->options & HELIO_PGM_HAS_NAK_BO_RNG) {
        helio_backoff_limit(&stream->nak.backoff, told->min_us * HELIO_MICROSECOND,
                            told->max_us * HELIO_MICROSECOND);
    }
    if (!(packet->options & HELIO_PGM_HAS_NAK_BO_IVL)) {
        return;
    }
    if (told->poll_sequence == 0 || !stream->polled.has_heard ||
        !helio_sequence_before(told->poll_sequence, stream->polled.sequence)) {
        helio_backoff_advise(&stream->nak.backoff, told->interval_us * HELIO_MICROSECOND);
    }
}

static void learn_window(helio_rx_stream *stream, const helio_pgm_packet *spm,
                         helio_moment moment) {
    helio_rxw *rxw = &stream->rxw;
    const uint64_t lead = helio_sequence_widen(spm->lead, rxw->known);
    const uint64_t window = helio_rx_spm_window(spm);
    const helio_rx_arrival *before;
    if (!helio_rx_believes_lead(stream, lead, &before, moment.now_ns)) {
        return;
    }
    if (before) {
        helio_rx_take_aside(stream, before, moment);
    }
    helio_rx_learn_trail(stream, lead + 1 - window, moment);
    if (lead > stream->told_lead) {
        stream->told_lead = lead;
    }
    helio_rx_believe(stream, moment.now_ns);
    if (spm->options & HELIO_PGM_HAS_RST) {
        return;
    }
    stream->has_end = (spm->options & HELIO_PGM_HAS_FIN) && lead >= stream->newest;
    stream->end = stream->doubt.end_newest = lead;
}

void helio_rx_begin_with(helio_rx_stream *stream, const helio_pgm_packet *spm,
                         helio_moment moment) {
    helio_rxw *rxw = &stream->rxw;
    stream->is_waiting = false;
    if (spm) {
        const uint64_t lead = helio_sequence_widen(spm->lead, rxw->known);
        const uint64_t begin = stream->is_back ? awaited_from(stream->shared, spm)
                                               : helio_rx_begins_at(stream->shared, spm);
        const uint64_t first = lead - (helio_sequence_start(spm->lead) - begin);
        if (first < rxw->trail) {
            helio_rx_go_back(stream, first);
        }
    }
    if (stream->acks.is_on) {
        helio_rx_acks_begin(&stream->acks, rxw->trail, stream->acks.incarnation);
    }
    helio_rx_drain(stream, moment);
}

/* The stream waits for announcements, before it takes up what its source waits for. */
static bool is_learning(const helio_rx_stream *stream, const helio_pgm_packet *spm,
                        int64_t now_ns) {
    return stream->shared->subscriptions.finders && (spm->options & HELIO_PGM_HAS_AWAIT) &&
           now_ns < stream->learn_by_ns;
}

static void send_feedback_to(helio_rx_stream *stream, helio_address to) {
    if (stream->feedback.family != 0 && !helio_address_same_ip(&stream->feedback, &to)) {
        helio_rx_budget_restart(stream);
    }
    stream->feedback = to;
}

/* An SPM has all stores that the source knows, but with notices, for which it needs the room. */
static void learn_stores(helio_rx_stream *stream, const helio_pgm_packet *spm) {
    if (spm->notices_count > 0) {
        return;
    }
    stream->stores_count = spm->options & HELIO_PGM_HAS_STORES ? spm->stores_count : 0;
    helio_set(&helio_rx_stats(stream)->stores_known, stream->stores_count);
    memcpy(stream->stores, spm->stores, stream->stores_count * sizeof *stream->stores);
}

static void on_spm(helio_rx_stream *stream, const helio_pgm_packet *spm, const helio_address *from,
                   helio_moment moment) {
    helio_count(&helio_rx_stats(stream)->heartbeats_received, 1);
    helio_count(&stream->shared->instance->heartbeats_received, 1);
    if (!helio_rx_believes_spm(stream, spm->sequence)) {
        return;
    }
    stream->has_spm = true;
    stream->spm_sequence = spm->sequence;
    /* Without a way to its parent the receiver is silent until an SPM says that there is one. */
    stream->is_unreachable = spm->options & HELIO_PGM_HAS_NBR_UNREACH;
    if (!stream->is_unreachable) {
        send_feedback_to(stream, answer_to(stream, &spm->path, from));
    }
    stream->report_fields = spm->options & HELIO_PGM_HAS_CRQST ? spm->report.fields : 0;
    learn_backoff(stream, spm);
    learn_stores(stream, spm);
    helio_rx_acks_repeat(&stream->acks, moment.now_ns);
    helio_rx_reports_on_spm(&stream->reports,
                            spm->options & HELIO_PGM_HAS_REPORTING ? &spm->reporting : NULL,
                            stream->shared->config.receiver, moment.now_ns);
    if (helio_rx_reports_follows(&stream->reports)) {
        helio_rx_follow(stream, moment.now_ns);
    }
    helio_rx_credit_on_spm(&stream->credit,
                           spm->options & HELIO_PGM_HAS_REPORTING ? &spm->reporting : NULL,
                           moment.now_ns);
    helio_rx_clock_on_spm(stream, spm, moment);
    helio_rx_watch_buffers(stream, moment.now_ns);
    stream->delivery.is_awaited = spm->options & HELIO_PGM_HAS_AWAIT;
    if (stream->is_waiting && !is_learning(stream, spm, moment.now_ns)) {
        helio_rx_begin_with(stream, spm, moment);
    }
    if (helio_rx_has_window(spm)) {
        learn_window(stream, spm, moment);
    }
    if (spm->notices_count > 0) {
        helio_rx_on_notices(stream, spm, moment);
    }
    if (!(spm->options & HELIO_PGM_HAS_RST)) {
        stream->doubt.has_reset = false;
    } else if (helio_rx_believes_reset(stream, spm->sequence, moment.now_ns)) {
        helio_rx_reset(stream, moment);
    }
}

void helio_rx_reset(helio_rx_stream *stream, helio_moment moment) {
    stream->doubt.has_reset = false;
    stream->has_end = true;
    stream->doubt.end_newest = helio_rx_newest_known(stream);
    helio_rx_give_up_all(stream, HELIO_LOST_RESET, moment);
    stream->end = stream->rxw.lead;
}

static void on_poll(helio_rx_stream *stream, const helio_pgm_packet *poll,
                    const helio_address *from, int64_t now_ns) {
    helio_count(&helio_rx_stats(stream)->polls_received, 1);
    learn_backoff(stream, poll);
    helio_polled_on_poll(&stream->polled, poll->sequence, &poll->poll, &stream->shared->random,
                         now_ns);
    stream->poll_answer_to = answer_to(stream, &poll->path, from);
}

/* Another receiver asks for an SPM: all will hear it. */
static void on_spmr(helio_rx_stream *stream, int64_t now_ns) {
    if (stream->has_spm || stream->spmrs_heard >= SPMRS_HEEDED) {
        return;
    }
    stream->spmrs_heard++;
    const uint64_t delay_ns = (uint64_t)stream->shared->config.spmr_delay_ns;
    stream->spmr_due_ns = now_ns + stream->spmr_interval_ns +
                          (int64_t)helio_random_below(&stream->shared->random, delay_ns + 1);
}

typedef bool on_request(helio_nak *nak, uint64_t sequence, int64_t now_ns);

/* The source confirmed a request, or another receiver made one. */
static void on_requests(helio_rx_stream *stream, const helio_pgm_packet *packet, on_request *tell,
                        int64_t now_ns) {
    if (stream->nak.outstanding == 0 || (packet->flags & HELIO_PGM_FLAG_PARITY)) {
        return;
    }
    const uint64_t first = helio_sequence_widen(packet->sequence, stream->rxw.known);
    if (packet->type == HELIO_PGM_TYPE_NCF &&
        helio_nak_state_of(&stream->nak, first) != HELIO_NAK_NONE) {
        helio_rx_budget_on_answer(stream, now_ns);
    }
    uint64_t spared = tell(&stream->nak, first, now_ns);
    for (uint32_t i = 0; i < packet->list_count; i++) {
        spared += tell(&stream->nak, helio_sequence_widen(packet->list[i], first), now_ns);
    }
    helio_count(&helio_rx_stats(stream)->naks_suppressed, spared);
}

void helio_rx_on_control(helio_rx_stream *stream, const helio_pgm_packet *packet,
                         const helio_address *from, helio_moment moment) {
    switch (packet->type) {
    case HELIO_PGM_TYPE_SPM:
        on_spm(stream, packet, from, moment);
        break;
    case HELIO_PGM_TYPE_NCF:
        helio_count(&helio_rx_stats(stream)->nak_confirmations_received, 1);
        learn_backoff(stream, packet);
        on_requests(stream, packet, helio_nak_on_ncf, moment.now_ns);
        break;
    case HELIO_PGM_TYPE_NAK:
        on_requests(stream, packet, helio_nak_on_foreign_nak, moment.now_ns);
        break;
    case HELIO_PGM_TYPE_POLL:
        on_poll(stream, packet, from, moment.now_ns);
        break;
    case HELIO_PGM_TYPE_SPMR:
        on_spmr(stream, moment.now_ns);
        break;
    default:
        break;
    }
}
