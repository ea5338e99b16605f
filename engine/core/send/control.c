/* What the source says beside data and repairs: SPMs (opening, heartbeats, answers, FIN and RST),
 * announcements of topics, and the question how many receivers there are. */
#include "send/parts.h"

enum {
    OPENING_SPMS = 3,
    ABORT_SPMS = 3,  /* one may be lost, and nobody asks again */
    SPM_BYTES = 128, /* no heartbeat is longer without notices and answers */
    NOTICE_SPMS = 8, /* with notices, in one go */
};

void helio_tx_send_spm(helio_tx_stream *stream, int64_t now_ns) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    helio_pgm_notice notices[HELIO_PGM_NOTICES_MAX];
    const uint32_t notices_count =
        helio_tx_notices_take(&stream->notices, notices, now_ns ? now_ns : stream->moment.now_ns);
    helio_pgm_reporting reporting = {
        .interval_us = (uint32_t)(stream->reports.interval_ns / HELIO_MICROSECOND),
        .stamp = now_ns ? helio_tx_stamp(now_ns) : 0,
        .flags = stream->config.awaits_credit ? HELIO_PGM_REPORTING_AWAITS_CREDIT : 0,
    };
    helio_tx_follow_ask(&stream->follow, &reporting);
    helio_address stores[HELIO_PGM_STORES_MAX];
    const uint32_t stores_count =
        notices_count > 0
            ? 0
            : helio_acks_services(&stream->acks.registry, stores, HELIO_PGM_STORES_MAX);
    helio_pgm_time time;
    const bool tells_time = now_ns && helio_tx_clock_take(&stream->clocks, &time, now_ns);
    const helio_pgm_spm spm = {
        .sequence = stream->spm_sequence++,
        .trail = (uint32_t)stream->txw.trail,
        .lead = (uint32_t)stream->txw.lead,
        .fin = stream->is_closed && !stream->is_aborted,
        .rst = stream->is_aborted,
        .backoff_us = helio_tx_advised_us(stream),
        .offers_history = stream->config.late_join && !stream->is_aborted,
        .join = (uint32_t)helio_tx_history_offer(&stream->history),
        .awaits_acks = stream->config.acks > 0 && !stream->is_closed,
        .awaited = (uint32_t)(stream->acks.stable + 1),
        .takes_reports = true,
        .reporting = reporting,
        .notices = notices,
        .notices_count = notices_count,
        .time = tells_time ? &time : NULL,
        .stores = stores,
        .stores_count = stores_count,
    };
    const size_t length =
        helio_pgm_encode_spm(packet, &stream->session, &spm, &stream->config.address);
    helio_count(&helio_tx_stats(stream)->heartbeats_sent, 1);
    helio_count(&helio_tx_stats(stream)->notices_sent, notices_count);
    if (notices_count == 0) {
        helio_set(&helio_tx_stats(stream)->stores_announced, stores_count);
    }
    if (tells_time) {
        helio_count(&helio_tx_stats(stream)->clock_answers_sent, time.answers_count);
    }
    helio_count(&stream->instance->heartbeats_sent, 1);
    helio_tx_send(stream, packet, length, false);
}

/* The next SPM is no longer than this. */
static size_t spm_bytes(const helio_tx_stream *stream) {
    const uint32_t waiting = stream->notices.count;
    const uint32_t notices = waiting < HELIO_PGM_NOTICES_MAX ? waiting : HELIO_PGM_NOTICES_MAX;
    const size_t answers = stream->clocks.count > 0
                               ? HELIO_PGM_CLOCK_ANSWER_OPTION +
                                     HELIO_PGM_CLOCK_ANSWERS_MAX * HELIO_PGM_CLOCK_ANSWER_ENTRY
                               : 0;
    const size_t stores =
        stream->acks.registry.count > 0
            ? HELIO_PGM_STORES_OPTION + HELIO_PGM_STORES_MAX * HELIO_PGM_STORE_ENTRY
            : 0;
    return SPM_BYTES + answers + stores +
           notices * (HELIO_PGM_NOTICE_OPTION + HELIO_PGM_NOTICE_TEXT_MAX);
}

int helio_tx_open(helio_tx_stream *stream, int64_t now_ns) {
    if (stream->has_opened) {
        return 0;
    }
    stream->has_opened = true;
    for (int i = 0; i < OPENING_SPMS; i++) {
        helio_tx_send_spm(stream, now_ns);
    }
    return OPENING_SPMS;
}

void helio_tx_stream_greet(helio_tx_stream *stream, helio_moment moment) {
    if (!stream->has_finished && helio_tx_open(stream, moment.now_ns) == 0) {
        helio_tx_send_spm(stream, moment.now_ns);
    }
}

static void announce_all(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_topics_announce(&stream->topics, moment);
    stream->has_news = false; /* an announcement alone is no news */
    stream->announce_due_ns = moment.now_ns + stream->config.announce_interval_ns;
}

static void send_poll(helio_tx_stream *stream, const helio_pgm_poll *question) {
    uint8_t packet[HELIO_PGM_CONTROL_MAX];
    const size_t length = helio_pgm_encode_poll(packet, &stream->session, stream->polling.sequence,
                                                question, &stream->config.address);
    helio_tx_send(stream, packet, length, false);
}

int helio_tx_tell(helio_tx_stream *stream, helio_moment moment) {
    int sent = 0;
    if (helio_tx_announcement_is_due(stream, moment.now_ns) &&
        helio_tx_pace_has_credit(&stream->pace, moment.now_ns)) {
        announce_all(stream, moment);
        sent++;
    }
    if (helio_heartbeat_poll(&stream->heartbeat, moment.now_ns) &&
        helio_tx_pace_takes_control(&stream->pace, spm_bytes(stream), moment.now_ns)) {
        helio_tx_send_spm(stream, moment.now_ns);
        sent++;
    }
    for (int i = 0; i < NOTICE_SPMS && moment.now_ns >= stream->notices.due_ns &&
                    helio_tx_pace_takes_control(&stream->pace, spm_bytes(stream), moment.now_ns);
         i++) {
        helio_tx_send_spm(stream, moment.now_ns);
        sent++;
    }
    if (moment.now_ns >= helio_tx_clock_due_ns(&stream->clocks) &&
        helio_tx_pace_takes_control(&stream->pace, spm_bytes(stream), moment.now_ns)) {
        helio_tx_send_spm(stream, moment.now_ns);
        sent++;
    }
    helio_pgm_poll question;
    uint64_t population;
    if (helio_polling_ask(&stream->polling, moment.now_ns, &question, &population)) {
        helio_set(&helio_tx_stats(stream)->population, population);
        send_poll(stream, &question);
        sent++;
    }
    return sent;
}

/* ---- its end ---- */

void helio_tx_stream_close(helio_tx_stream *stream, helio_moment moment) {
    if (stream->is_closed) {
        return;
    }
    helio_tx_open(stream, moment.now_ns);
    helio_tx_topics_end(&stream->topics, moment);
    stream->is_closed = true;
    stream->finish_ns = moment.now_ns + stream->config.linger_ns;
    helio_tx_send_spm(stream, moment.now_ns);
    helio_heartbeat_restart(&stream->heartbeat, moment.now_ns);
}

void helio_tx_stream_abort(helio_tx_stream *stream) {
    if (stream->is_aborted || !stream->has_opened) {
        return;
    }
    stream->is_aborted = stream->is_closed = stream->has_finished = true;
    stream->finish_ns = INT64_MIN;
    for (int i = 0; i < ABORT_SPMS; i++) {
        helio_tx_send_spm(stream, 0);
    }
}
