#include "send/log.h"

#include <stdio.h>
#include <string.h>

#include "send/parts.h"

int helio_tx_log_init(helio_tx_stream *stream, const helio_tx_log_config *config,
                      helio_moment moment) {
    helio_tx_log *log = &stream->log;
    *log = (helio_tx_log){0};
    if (!config->memory) {
        return 0;
    }
    char tsi[HELIO_TSI_TEXT];
    const uint32_t entries = stream->repairer.receivers.capacity;
    const int error = helio_decision_log_init(
        &log->log, config->memory, config->bytes, stream->instance_name,
        helio_tsi_format(&stream->config.tsi, tsi), moment.wall_ns, entries);
    if (error) {
        return error;
    }
    log->is_on = true;
    const uint64_t numbers[2] = {stream->config.max_packet_bytes, entries};
    helio_decision_log_record(&log->log, HELIO_DECISION_CONFIG, numbers, 2, config->options);
    return 0;
}

void helio_tx_log_fini(helio_tx_log *log) {
    if (log->is_on) {
        helio_decision_log_fini(&log->log);
    }
    log->is_on = false;
}

static void write_name(helio_tx_stream *stream, helio_receiver_index index) {
    const helio_receiver_entry *entry = &stream->repairer.receivers.entries[index];
    char address[HELIO_ADDRESS_TEXT], text[HELIO_PGM_REPORT_NAME_MAX + HELIO_ADDRESS_TEXT + 2];
    snprintf(text, sizeof text, "%s %s", entry->name,
             helio_address_format(&entry->address, address));
    const uint64_t number = index;
    helio_decision_log_record(&stream->log.log, HELIO_DECISION_RECEIVER, &number, 1, text);
}

/* Who has come to an entry. */
static void name(helio_tx_stream *stream, const helio_receiver_view *view) {
    const helio_receiver_view *before = &stream->log.log.views[view->index];
    if ((view->flags & HELIO_VIEW_PRESENT) && view->receiver != before->receiver) {
        write_name(stream, view->index);
    }
}

void helio_tx_log_interval(helio_tx_stream *stream, const helio_interval *interval,
                           const helio_receiver_view *views) {
    if (!stream->log.is_on) {
        return;
    }
    for (helio_receiver_index index = 0; index < interval->receivers; index++) {
        name(stream, &views[index]);
        helio_decision_log_view(&stream->log.log, &views[index]);
    }
    helio_decision_log_interval(&stream->log.log, interval);
}

static void tell_full(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_log *log = &stream->log;
    if (!log->log.is_full || log->is_full_told) {
        return;
    }
    log->is_full_told = true;
    const uint64_t args[4] = {log->log.used};
    helio_stats_event(stream->stats, moment.wall_ns, HELIO_EVENT_DECISION_LOG_FULL,
                      stream->object.slot, args,
                      "%s: the decision log is full (option decision_log_bytes); later decisions "
                      "are not recorded",
                      stream->endpoint);
}

void helio_tx_log_decisions(helio_tx_stream *stream, helio_moment moment) {
    helio_tx_log *log = &stream->log;
    if (!log->is_on) {
        return;
    }
    uint64_t numbers[HELIO_DECISION_NUMBERS_OF_ONE];
    const helio_rate_decision *rate = &stream->govern.decision;
    if (!helio_decision_is_same_rate(rate, &log->rate)) {
        helio_decision_of_rate(rate, numbers);
        helio_decision_log_record(&log->log, HELIO_DECISION_RATE, numbers,
                                  HELIO_DECISION_RATE_NUMBERS, rate->why);
        log->rate = *rate;
    }
    const helio_tx_slow *slow = &stream->slow;
    for (uint32_t i = 0; slow->is_on && i < slow->receivers.decisions_count; i++) {
        helio_decision_of_slow_receiver(&slow->receivers.decisions[i], numbers);
        helio_decision_log_record(&log->log, HELIO_DECISION_SLOW_RECEIVER, numbers,
                                  HELIO_DECISION_SLOW_RECEIVER_NUMBERS,
                                  slow->receivers.decisions[i].why);
    }
    if (slow->is_on && helio_decision_has_storm(&slow->storm_decision)) {
        helio_decision_of_storm(&slow->storm_decision, numbers);
        helio_decision_log_record(&log->log, HELIO_DECISION_STORM, numbers,
                                  HELIO_DECISION_STORM_NUMBERS, NULL);
    }
    tell_full(stream, moment);
}

void helio_tx_log_policy(helio_tx_stream *stream, const char *name, uint64_t rate, uint64_t ceiling,
                         int64_t now_ns) {
    const uint64_t numbers[3] = {rate, ceiling, (uint64_t)now_ns};
    if (stream->log.is_on) {
        helio_decision_log_record(&stream->log.log, HELIO_DECISION_POLICY, numbers, 3, name);
    }
}
