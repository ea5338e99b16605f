#include "receive/repairs.h"

#include <heliograph/errors.h>

/* A receiver may know packets that this repairer has not heard of. */
enum { HOPED_AHEAD = 1024 };

int helio_rx_repairs_open(helio_rx_repairs *repairs, const helio_rx_endpoint_config *config,
                          helio_outlet outlet, helio_instance_stats *instance) {
    const uint64_t bytes = config->repairs.bytes;
    if (bytes == 0) {
        return 0;
    }
    if (!helio_account_take(config->account, bytes)) {
        return HELIO_ERR_NOMEM;
    }
    if (helio_dlr_create(&config->repairs, outlet, &repairs->dlr)) {
        helio_account_give(config->account, bytes);
        return HELIO_ERR_NOMEM;
    }
    repairs->bytes = bytes;
    helio_count(&instance->memory_used, bytes);
    return 0;
}

void helio_rx_repairs_close(helio_rx_repairs *repairs, helio_account *account,
                            helio_instance_stats *instance) {
    if (!repairs->dlr) {
        return;
    }
    helio_uncount(&instance->repairer_kept_packets, repairs->kept_packets);
    helio_uncount(&instance->repairer_kept_bytes, repairs->kept_bytes);
    helio_uncount(&instance->memory_used, repairs->bytes);
    helio_account_give(account, repairs->bytes);
    helio_dlr_destroy(repairs->dlr);
    *repairs = (helio_rx_repairs){0};
}

void helio_rx_repairs_keep(helio_rx_repairs *repairs, helio_rx_stream *stream,
                           const helio_pgm_packet *packet, const void *datagram, size_t length,
                           helio_moment moment) {
    if (packet->type != HELIO_PGM_TYPE_ODATA && packet->type != HELIO_PGM_TYPE_RDATA) {
        return;
    }
    const uint32_t sent = helio_dlr_on_data(repairs->dlr, packet, datagram, length, moment.now_ns);
    helio_count(&helio_rx_stats(stream)->repairer_repairs_sent, sent);
}

void helio_rx_repairs_answer(helio_rx_repairs *repairs, helio_rx_stream *stream,
                             const helio_pgm_packet *nak, const helio_address *from,
                             helio_moment moment) {
    const helio_rx_shared *shared = stream->shared;
    if (!helio_address_same_ip(&nak->group, &shared->config.group)) {
        helio_pgm_count_refusal(shared->instance, HELIO_PGM_BAD_ADDRESS);
        return;
    }
    const helio_dlr_hope hope = {(uint32_t)stream->rxw.trail,
                                 (uint32_t)helio_rx_newest_known(stream) + HOPED_AHEAD};
    const helio_dlr_answer answer = helio_dlr_on_nak(repairs->dlr, nak, from, &hope, moment.now_ns);
    helio_rx_stream_stats *stats = helio_rx_stats(stream);
    helio_stats_begin(stats);
    helio_count(&stats->repairer_naks_received, UINT64_C(1) + nak->list_count);
    helio_count(&stats->repairer_repairs_sent, answer.repaired);
    helio_count(&stats->repairer_naks_awaited, answer.awaited);
    helio_count(&stats->repairer_naks_declined, answer.declined);
    helio_count(&stats->repairer_naks_limited, answer.limited);
    helio_stats_end(stats);
}

void helio_rx_repairs_measure(helio_rx_repairs *repairs, helio_instance_stats *instance,
                              int64_t now_ns) {
    if (!repairs->dlr) {
        return;
    }
    uint64_t packets, bytes;
    helio_dlr_measure(repairs->dlr, now_ns, &packets, &bytes);
    helio_count(&instance->repairer_kept_packets, packets - repairs->kept_packets);
    helio_count(&instance->repairer_kept_bytes, bytes - repairs->kept_bytes);
    repairs->kept_packets = packets;
    repairs->kept_bytes = bytes;
}
