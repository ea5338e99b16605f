#include "receive/notices.h"

#include <stdio.h>

#include "base/sequence.h"
#include "receive/passing.h"
#include "receive/stream.h"

#define TIME_MAX_NS (HELIO_PGM_NOTICE_TIME_MAX * HELIO_MILLISECOND)

enum { LASTS_TEXT = 32 };

/* ---- who is meant ---- */

static bool is_for_all(const helio_pgm_notice *notice) {
    return notice->receiver == 0;
}

/* This life of this receiver is meant. */
static bool is_mine(const helio_rx_shared *shared, uint64_t incarnation,
                    const helio_pgm_notice *notice) {
    return notice->receiver != 0 && notice->receiver == shared->config.receiver &&
           (notice->incarnation == 0 || incarnation == 0 || notice->incarnation == incarnation);
}

/* The kind of a notice; KINDS: of none, as it makes no sense or is of a later version. */
static helio_rx_notice_kind kind_of(const helio_pgm_notice *notice) {
    switch (notice->action) {
    case HELIO_ACTION_NOTIFY:
        return is_for_all(notice) ? HELIO_RX_NOTICE_KINDS : HELIO_RX_WARNING;
    case HELIO_ACTION_SHED:
    case HELIO_ACTION_SUSPEND_NAKS:
    case HELIO_ACTION_SUSPEND:
    case HELIO_ACTION_EXPEL:
    case HELIO_ACTION_READMIT:
        return is_for_all(notice) ? HELIO_RX_NOTICE_KINDS : HELIO_RX_STANDING;
    case HELIO_ACTION_RESUME:
        return is_for_all(notice) ? HELIO_RX_FOR_ALL : HELIO_RX_STANDING;
    case HELIO_ACTION_CUT_OFF:
        return is_for_all(notice) ? HELIO_RX_FOR_ALL : HELIO_RX_NOTICE_KINDS;
    default:
        return HELIO_RX_NOTICE_KINDS;
    }
}

static int64_t duration_of(const helio_pgm_notice *notice) {
    const int64_t told_ns = notice->duration_ms * HELIO_MILLISECOND;
    return told_ns < TIME_MAX_NS ? told_ns : TIME_MAX_NS;
}

/* ---- telling ---- */

/* Tells the application; without a notice of the source it ends by itself. */
static void tell_application(helio_rx_stream *stream, uint32_t action,
                             const helio_pgm_notice *heard, helio_moment moment,
                             helio_notice *notice) {
    *notice = (helio_notice){.action = action, .wall_ns = moment.wall_ns};
    if (heard) {
        notice->reason = heard->reason & ~HELIO_PGM_REASON_BY_HAND;
        notice->by_hand = (heard->reason & HELIO_PGM_REASON_BY_HAND) != 0;
        notice->duration_ns = duration_of(heard);
        for (size_t i = 0; i < heard->text_bytes && i + 1 < sizeof notice->text; i++) {
            const char c = heard->text[i]; /* it goes into texts */
            notice->text[i] = c >= 0 && c < ' ' ? '?' : c;
        }
    }
    helio_delivery_on_notice(&stream->delivery, notice,
                             action == HELIO_ACTION_EXPEL || action == HELIO_ACTION_READMIT);
}

static void tell(helio_rx_stream *stream, const helio_pgm_notice *heard, helio_event_id event,
                 const char *what, helio_moment moment) {
    helio_notice notice;
    tell_application(stream, heard->action, heard, moment, &notice);
    char tsi[HELIO_TSI_TEXT], source[HELIO_ADDRESS_TEXT], lasts[LASTS_TEXT] = "";
    if (notice.duration_ns > 0) {
        snprintf(lasts, sizeof lasts, " for %g s", (double)notice.duration_ns / 1e9);
    }
    helio_stats_event(stream->shared->stats, moment.wall_ns, event, stream->object.slot,
                      (const uint64_t[4]){notice.action, notice.reason, heard->duration_ms},
                      "stream %s of %s: %s%s%s: %s", helio_tsi_format(&stream->tsi, tsi),
                      helio_address_format_ip(&stream->source, source), what, lasts,
                      notice.by_hand ? ", by hand" : "", notice.text);
}

static void tell_over(helio_rx_stream *stream, uint32_t action, const char *what,
                      const helio_pgm_notice *heard, helio_moment moment) {
    helio_notice notice;
    tell_application(stream, action, heard, moment, &notice);
    char tsi[HELIO_TSI_TEXT];
    helio_stats_event(stream->shared->stats, moment.wall_ns, HELIO_EVENT_RESUMED,
                      stream->object.slot, (const uint64_t[4]){action}, "stream %s: %s%s%s",
                      helio_tsi_format(&stream->tsi, tsi), what, notice.text[0] ? ": " : "",
                      notice.text);
}

void helio_rx_tell_readmitted(helio_rx_stream *stream, helio_moment moment) {
    tell_over(stream, HELIO_ACTION_READMIT, "followed again", NULL, moment);
}

/* ---- obeying ---- */

static void hold(helio_rx_stream *stream, int64_t now_ns) {
    const int64_t until_ns = helio_rx_held_until(&stream->notices);
    helio_nak_hold(&stream->nak, until_ns, now_ns);
    const bool obeys = now_ns < until_ns;
    stream->told_flags &= (uint8_t)~HELIO_PGM_RECEIVER_REPORT_OBEYING;
    stream->told_flags |= obeys ? HELIO_PGM_RECEIVER_REPORT_OBEYING : 0;
    helio_set(&helio_rx_stats(stream)->suspended, obeys);
}

static void end_suspension(helio_rx_stream *stream, const helio_pgm_notice *heard,
                           helio_moment moment) {
    if (stream->notices.suspended_until_ns == 0) {
        return;
    }
    stream->notices.suspended_until_ns = 0;
    hold(stream, moment.now_ns);
    tell_over(stream, HELIO_ACTION_RESUME, "this receiver may request repairs again", heard,
              moment);
}

static void end_cut_off(helio_rx_stream *stream, const helio_pgm_notice *heard,
                        helio_moment moment) {
    if (stream->notices.cut_off_until_ns == 0) {
        return;
    }
    stream->notices.cut_off_until_ns = 0;
    helio_nak_excuse(&stream->nak, moment.now_ns, moment.now_ns);
    hold(stream, moment.now_ns);
    tell_over(stream, HELIO_ACTION_RESUME, "all receivers may request repairs again", heard,
              moment);
}

/* The notice is new. */
static void obey(helio_rx_stream *stream, const helio_pgm_notice *notice, helio_moment moment) {
    helio_rx_notices *notices = &stream->notices;
    const int64_t until_ns = moment.now_ns + duration_of(notice);
    switch (notice->action) {
    case HELIO_ACTION_NOTIFY:
        tell(stream, notice, HELIO_EVENT_WARNED, "the source warns this receiver", moment);
        break;
    case HELIO_ACTION_SHED:
        end_suspension(stream, NULL, moment);
        tell(stream, notice, HELIO_EVENT_WARNED, "the source repairs less for this receiver",
             moment);
        break;
    case HELIO_ACTION_SUSPEND_NAKS:
    case HELIO_ACTION_SUSPEND:
        notices->suspended_until_ns = until_ns;
        hold(stream, moment.now_ns);
        tell(stream, notice, HELIO_EVENT_SUSPENDED, "the source has suspended this receiver",
             moment);
        break;
    case HELIO_ACTION_CUT_OFF:
        notices->cut_off_until_ns = until_ns;
        helio_nak_excuse(&stream->nak, until_ns, moment.now_ns);
        hold(stream, moment.now_ns);
        tell(stream, notice, HELIO_EVENT_SUSPENDED, "no receiver may request repairs", moment);
        break;
    case HELIO_ACTION_EXPEL:
        notices->expelled_until_ns = until_ns;
        tell(stream, notice, HELIO_EVENT_EXPELLED, "the source has expelled this receiver", moment);
        helio_rx_give_up(stream, HELIO_LOST_SUSPENDED, moment);
        break;
    case HELIO_ACTION_RESUME:
        if (is_for_all(notice)) {
            end_cut_off(stream, notice, moment);
        } else {
            end_suspension(stream, notice, moment);
        }
        break;
    default: /* READMIT is for those that do not follow the stream */
        break;
    }
}

/* It was heard before: it may last longer than it was thought to. */
static void prolong(helio_rx_stream *stream, const helio_pgm_notice *notice, int64_t now_ns) {
    helio_rx_notices *notices = &stream->notices;
    const int64_t until_ns = now_ns + duration_of(notice);
    const bool suspends =
        notice->action == HELIO_ACTION_SUSPEND_NAKS || notice->action == HELIO_ACTION_SUSPEND;
    if (suspends && notices->suspended_until_ns) {
        notices->suspended_until_ns = until_ns;
    } else if (notice->action == HELIO_ACTION_CUT_OFF && notices->cut_off_until_ns) {
        notices->cut_off_until_ns = until_ns;
        helio_nak_excuse(&stream->nak, until_ns, now_ns);
    } else if (notice->action == HELIO_ACTION_EXPEL && notices->expelled_until_ns) {
        notices->expelled_until_ns = until_ns;
    }
    hold(stream, now_ns);
}

void helio_rx_on_notices(helio_rx_stream *stream, const helio_pgm_packet *spm,
                         helio_moment moment) {
    helio_rx_notices *notices = &stream->notices;
    for (uint32_t i = 0; i < spm->notices_count; i++) {
        const helio_pgm_notice *notice = &spm->notices[i];
        const helio_rx_notice_kind kind = kind_of(notice);
        if (kind == HELIO_RX_NOTICE_KINDS ||
            (!is_for_all(notice) && !is_mine(stream->shared, stream->incarnation, notice))) {
            continue;
        }
        if (!notices->has_heard[kind] ||
            helio_sequence_before(notices->serial[kind], notice->serial)) {
            notices->has_heard[kind] = true;
            notices->serial[kind] = notice->serial;
            helio_count(&helio_rx_stats(stream)->notices_received, 1);
            obey(stream, notice, moment);
        } else if (notices->serial[kind] == notice->serial) {
            prolong(stream, notice, moment.now_ns);
        }
    }
}

int helio_rx_expelled_by(const helio_rx_shared *shared, const helio_pgm_packet *packet,
                         int64_t now_ns, int64_t *until_ns) {
    if (packet->type != HELIO_PGM_TYPE_SPM) {
        return 0;
    }
    for (uint32_t i = 0; i < packet->notices_count; i++) {
        const helio_pgm_notice *notice = &packet->notices[i];
        if (!is_mine(shared, 0, notice)) {
            continue;
        }
        *until_ns = now_ns + duration_of(notice);
        if (notice->action == HELIO_ACTION_EXPEL) {
            return 1;
        }
        if (notice->action == HELIO_ACTION_READMIT) {
            return -1;
        }
    }
    return 0;
}

/* ---- time ---- */

void helio_rx_notices_poll(helio_rx_stream *stream, helio_moment moment) {
    const helio_rx_notices *notices = &stream->notices;
    if (notices->suspended_until_ns && moment.now_ns >= notices->suspended_until_ns) {
        end_suspension(stream, NULL, moment);
    }
    if (notices->cut_off_until_ns && moment.now_ns >= notices->cut_off_until_ns) {
        end_cut_off(stream, NULL, moment);
    }
}

int64_t helio_rx_notices_next_deadline_ns(const helio_rx_notices *notices) {
    int64_t deadline_ns = HELIO_NEVER;
    if (notices->suspended_until_ns) {
        deadline_ns = notices->suspended_until_ns;
    }
    if (notices->cut_off_until_ns && notices->cut_off_until_ns < deadline_ns) {
        deadline_ns = notices->cut_off_until_ns;
    }
    return deadline_ns;
}
