/* A transmit lane and the decision log of its stream. */
#include "policy/decision_log.h"
#include "runtime/tx_lane_parts.h"

int helio_tx_lane_open_log(helio_tx_lane *lane, const helio_tsi *tsi, char *options,
                           helio_tx_log_config *out) {
    const helio_instance *instance = lane->base.instance;
    const char *folder = instance->options.decision_log;
    *out = (helio_tx_log_config){0};
    if (!folder[0]) {
        return 0;
    }
    char stream[HELIO_TSI_TEXT];
    const size_t bytes = instance->options.decision_log_bytes;
    const int error = helio_decision_file_open(&lane->log, folder, instance->name,
                                               helio_tsi_format(tsi, stream), bytes);
    helio_options_write(&lane->base.options, HELIO_ON_TRANSMITTER, options,
                        HELIO_DECISION_TEXT_MAX + 1);
    *out = (helio_tx_log_config){
        .memory = lane->log.memory, .bytes = lane->log.bytes, .options = options};
    return error;
}

void helio_tx_lane_tend_log(helio_tx_lane *lane, helio_moment moment) {
    if (lane->log.is_cut_told || !helio_mapped_is_cut(lane->log.guard)) {
        return;
    }
    lane->log.is_cut_told = true;
    helio_stats_event(lane->base.instance->stats, moment.wall_ns, HELIO_EVENT_FILE_TRUNCATED,
                      lane->base.instance->object.slot, NULL,
                      "the decision log %s was truncated by another program; its records are lost",
                      lane->log.path);
}
