#include "receive/near.h"

#include "base/sequence.h"
#include "receive/feedback.h"
#include "receive/passing.h"

static void tell(helio_rx_stream *stream, helio_event_id event, const char *what,
                 helio_moment moment) {
    char tsi[HELIO_TSI_TEXT], repairer[HELIO_ADDRESS_TEXT];
    helio_stats_event(stream->shared->stats, moment.wall_ns, event, stream->object.slot,
                      (const uint64_t[4]){stream->nak.near_unanswered}, "stream %s: repairer %s %s",
                      helio_tsi_format(&stream->tsi, tsi),
                      helio_address_format(&stream->shared->config.repairer, repairer), what);
}

void helio_rx_near_ask(helio_rx_stream *stream, const helio_nak_round *round, helio_moment moment) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_rx_count_nak(stream, round);
    helio_count(&stats->repairer_naks_sent, round->ask_count);
    helio_stats_end(stats);
    helio_rx_send_near_nak(stream, round);
    if (stream->nak.near_away_until_ns > moment.now_ns && !stream->is_near_away) {
        stream->is_near_away = true;
        tell(stream, HELIO_EVENT_REPAIRER_AWAY, "does not answer: the source is asked", moment);
    }
}

static void on_answer(helio_rx_stream *stream, helio_moment moment) {
    helio_nak_on_near_answer(&stream->nak);
    if (stream->is_near_away) {
        stream->is_near_away = false;
        tell(stream, HELIO_EVENT_REPAIRER_BACK, "answers again", moment);
    }
}

static void on_ncf(helio_rx_stream *stream, const helio_pgm_packet *ncf, helio_moment moment) {
    const uint64_t first = helio_sequence_widen(ncf->sequence, stream->rxw.known);
    helio_count(&helio_rx_stats(stream)->nak_confirmations_received, 1);
    helio_nak_on_near_ncf(&stream->nak, first, moment.now_ns);
    for (uint32_t i = 0; i < ncf->list_count; i++) {
        helio_nak_on_near_ncf(&stream->nak, helio_sequence_widen(ncf->list[i], first),
                              moment.now_ns);
    }
    on_answer(stream, moment);
}

static void on_repair(helio_rx_stream *stream, const helio_pgm_packet *repair, size_t bytes,
                      int64_t receive_ns, helio_moment moment) {
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    const uint64_t sequence = helio_sequence_widen(repair->sequence, stream->rxw.known);
    if (helio_nak_state_of(&stream->nak, sequence) == HELIO_NAK_NONE) {
        helio_rx_account(stream, &stats->duplicates, bytes);
        return;
    }
    helio_count(&stats->repairer_repairs_received, 1);
    on_answer(stream, moment);
    helio_rx_stream_take_near_repair(stream, repair, bytes, receive_ns, moment);
}

void helio_rx_near_on_packet(helio_rx_stream *stream, const helio_pgm_packet *packet, size_t bytes,
                             int64_t receive_ns, helio_moment moment) {
    if (packet->type == HELIO_PGM_TYPE_NCF) {
        on_ncf(stream, packet, moment);
    } else {
        on_repair(stream, packet, bytes, receive_ns, moment);
    }
}
