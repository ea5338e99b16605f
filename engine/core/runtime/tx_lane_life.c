/* The life of a transmit lane: it opens a stream from options, is shared by transmitters, lingers and
 * closes. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "policy/decision_log.h"
#include "runtime/tx_lane_parts.h"
#include "window/size.h"

enum {
    EXPIRY_INTERVALS = 3, /* ambient intervals that an acknowledging receiver may be silent */
};

static int check_history(const helio_tx_lane *lane) {
    const helio_transmitter_options *options = &lane->base.options.transmitter;
    const int64_t bytes = options->history_bytes;
    const int64_t least = HELIO_WINDOW_PACKETS_MIN * options->stream.mtu;
    if (bytes == 0 || bytes >= least) {
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION,
                      "option history_bytes is 0 or at least %d times mtu, here %lld; %lld is "
                      "too small",
                      HELIO_WINDOW_PACKETS_MIN, (long long)least, (long long)bytes);
}

/* Credit counts messages, and bare ones have no numbers of their own. */
static int check_credit(const helio_transmitter_options *options) {
    if (!options->await_credit || options->stream.payload != HELIO_PAYLOAD_RAW) {
        return 0;
    }
    return helio_fail_plain(
        HELIO_ERR_OPTION,
        "option await_credit contradicts payload=raw: receivers of raw messages grant no credit");
}

static int fail_budget(const helio_tx_lane *lane) {
    const helio_history_budget *budget = &lane->base.instance->history;
    return helio_fail(HELIO_ERR_OPTION,
                      "option history_limit_bytes allows %llu bytes for all histories of the "
                      "instance and %llu are in use: too few remain for this stream; set "
                      "history=dynamic, or lower history_bytes or send_window",
                      (unsigned long long)budget->limit_bytes,
                      (unsigned long long)budget->used_bytes);
}

/* Requests for a packet repaired less than this ago are ignored. */
static const int64_t repair_linger_ns[] = {
    [HELIO_PROFILE_STANDARD] = 100 * HELIO_MICROSECOND,
    [HELIO_PROFILE_LAN_LATENCY] = 50 * HELIO_MICROSECOND,
    [HELIO_PROFILE_LAN_THROUGHPUT] = 100 * HELIO_MICROSECOND,
    [HELIO_PROFILE_WAN] = 50 * HELIO_MILLISECOND,
    [HELIO_PROFILE_MANY_RECEIVERS] = 2 * HELIO_MILLISECOND,
};

/* A receiver that has not acknowledged for this long no longer counts. */
static int64_t acker_expiry_of(const helio_transmitter_options *options) {
    const int64_t least_ns = EXPIRY_INTERVALS * options->ambient_interval_ns;
    const int64_t usual_ns = 5 * HELIO_SECOND;
    return usual_ns > least_ns ? usual_ns : least_ns;
}

helio_tx_stream_config helio_tx_lane_config(const helio_transmitter_options *options) {
    helio_tx_stream_config config = {
        .first_sequence = options->first_sequence,
        .is_raw = options->stream.payload == HELIO_PAYLOAD_RAW,
        .window_packets = options->send_window,
        .max_message_bytes = options->stream.max_message_bytes,
        .history_bytes = options->history_bytes,
        .history_ns = options->history_time_ns,
        .history_dynamic = options->history == HELIO_HISTORY_DYNAMIC,
        .late_join = options->late_join,
        .awaits_credit = options->await_credit,
        .acks = options->acks,
        .acks_missing = options->acks_missing,
        .acks_of_stores = options->acks_from == HELIO_ACKS_FROM_STORES,
        .unstable = {.messages = options->unstable_messages,
                     .bytes = options->unstable_bytes,
                     .action = options->unstable_action},
        .acks_warn_ns = HELIO_SECOND,
        .acker_expiry_ns = acker_expiry_of(options),
        .report_interval_ns = options->report_interval_ns,
        .report_rate = options->report_rate,
        .linger_ns = options->linger_ns,
        .heartbeat_min_ns = options->heartbeat_min_ns,
        .heartbeat_max_ns = options->heartbeat_max_ns,
        .ambient_interval_ns = options->ambient_interval_ns,
        .announce_interval_ns = options->announce_interval_ns,
        .poll_interval_ns = options->poll_interval_ns,
        .pace = helio_tx_lane_pace(options),
        .govern = helio_tx_lane_govern(options),
        .follow = helio_tx_lane_follow(options),
        .repair_linger_ns = repair_linger_ns[options->stream.profile],
        .limits = {.naks = options->nak_limit,
                   .acks = options->ack_limit,
                   .repair_bytes = options->repair_limit},
        .repair_budget = options->repair_budget,
        .slow = helio_tx_lane_slow(options),
    };
    return config;
}

int helio_tx_lane_check_policies(const helio_transmitter_options *options) {
    int error = helio_tx_lane_check_pace(options);
    if (!error) {
        error = helio_tx_lane_check_slow(options);
    }
    if (!error) {
        error = helio_tx_lane_check_govern(options);
    }
    if (!error && options->acks == 0 && (options->unstable_messages || options->unstable_bytes)) {
        error = helio_fail_plain(HELIO_ERR_OPTION,
                                 "unstable_messages and unstable_bytes need the option acks: "
                                 "without it no message becomes stable");
    }
    return error;
}

static int open_stream(helio_tx_lane *lane, helio_moment moment) {
    helio_instance *instance = lane->base.instance;
    const helio_transmitter_options *options = &lane->base.options.transmitter;
    const helio_channel *channel = lane->base.channel;
    helio_tx_stream_config config = helio_tx_lane_config(options);
    config.breathe = helio_tx_lane_breathe;
    config.send_now = helio_tx_lane_send_now;
    config.wait = helio_tx_lane_wait;
    config.on_ack = helio_tx_lane_on_ack;
    config.queued = helio_tx_lane_queued;
    config.instance = instance->name;
    config.endpoint = lane->base.endpoint.label;
    config.tsi.port = channel->local.port;
    config.destination_port = lane->base.endpoint.addresses[0].port;
    config.address = channel->local;
    config.group = lane->base.endpoint.addresses[0];
    config.max_packet_bytes = helio_lane_packet_bytes(&lane->base);
    config.budget = &instance->history;
    config.account = &instance->memory.account;
    config.has_checksums = !channel->driver->is_intact;
    config.is_copied = channel->driver->is_memory;
    config.is_connected = channel->driver->is_connected;
    config.seed = helio_random_next(&instance->random);
    helio_tx_lane_place_pace(lane, &config.pace);
    if (!channel->driver->is_connected) { /* each host sends its own feedback */
        config.destinations = lane->base.endpoint.addresses;
        config.destinations_count = (uint32_t)lane->base.endpoint.addresses_count;
    }
    memcpy(config.tsi.gsi, instance->gsi, sizeof config.tsi.gsi);
    const helio_outlet outlet = {.context = lane, .send = helio_tx_lane_send};
    int error = check_history(lane);
    if (!error) {
        error = helio_tx_lane_check_policies(options);
    }
    char options_text[HELIO_DECISION_TEXT_MAX + 1];
    if (!error) {
        error = check_credit(options);
    }
    if (!error) {
        error = helio_tx_lane_open_log(lane, &config.tsi, options_text, &config.log);
    }
    if (!error) {
        error = helio_tx_stream_create(&config, outlet, instance->stats, instance->counts, moment,
                                       &lane->stream);
        if (error == HELIO_ERR_OPTION) {
            error = fail_budget(lane);
        } else if (error == HELIO_ERR_NOMEM && helio_account_left(config.account) < UINT64_MAX) {
            error = helio_limit_fail(
                instance, "a history (lower send_window or history_bytes)",
                atomic_load_explicit(&config.account->refused_bytes, memory_order_relaxed));
        }
    }
    if (error) {
        helio_decision_file_close(&lane->log, 0);
    } else {
        lane->awaits_credit = config.awaits_credit;
        helio_tx_lane_tell_refusing(lane);
    }
    return error;
}

static int open_lane(helio_instance *instance, const helio_endpoint *endpoint,
                     helio_end_options *options, helio_moment moment, helio_tx_lane **out) {
    helio_tx_lane *lane = helio_allocate(sizeof *lane);
    if (!lane) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a stream");
    }
    int error =
        helio_lane_open(&lane->base, instance, HELIO_ON_TRANSMITTER, endpoint, options, moment);
    if (!error) {
        error = open_stream(lane, moment);
        if (error) {
            helio_lane_close(&lane->base);
        }
    }
    if (error) {
        free(lane);
        return error;
    }
    lane->congestion.limit_ns = lane->base.options.transmitter.congestion_time_ns;
    helio_tx_lane_tell_congestion(lane, moment);
    lane->next = instance->tx_lanes;
    instance->tx_lanes = lane;
    *out = lane;
    return 0;
}

int helio_tx_lane_acquire(helio_instance *instance, const helio_endpoint *endpoint,
                          helio_end_options *options, helio_moment moment, helio_tx_lane **out) {
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        if (!lane->closing && helio_lane_serves(&lane->base, endpoint, options)) {
            helio_options_fini(options, HELIO_ON_TRANSMITTER);
            *out = lane;
            return 0;
        }
    }
    return open_lane(instance, endpoint, options, moment, out);
}

void helio_tx_lane_release(helio_tx_lane *lane, helio_moment moment) {
    if (!lane->transmitters && !lane->closing) {
        helio_tx_stream_close(lane->stream, moment);
        helio_tx_lane_flush_channel(lane);
        lane->closing = true;
        lane->drain_until_ns = moment.now_ns + lane->base.options.stream.connection_timeout_ns;
    }
}

void helio_tx_lane_destroy(helio_tx_lane *lane, helio_moment moment) {
    helio_tx_lane **at = &lane->base.instance->tx_lanes;
    while (*at != lane) {
        at = &(*at)->next;
    }
    *at = lane->next;
    /* Receivers that miss packets are notified that there are no more repairs. */
    if (!helio_tx_stream_is_finished(lane->stream, moment) ||
        lane->base.options.transmitter.linger_ns == 0) {
        helio_tx_stream_abort(lane->stream);
    }
    helio_tx_lane_flush_channel(lane);
    helio_lane_tend(&lane->base, moment);
    const size_t log_bytes = helio_tx_stream_log_used(lane->stream);
    helio_tx_stream_destroy(lane->stream, moment);
    helio_decision_file_close(&lane->log, log_bytes);
    helio_lane_close(&lane->base);
    free(lane);
}

/* A connection has time to take what was written to it. */
static bool is_draining(const helio_tx_lane *lane, int64_t now_ns) {
    const helio_channel_counters *counters = &lane->base.channel->counters;
    return counters->backlog_bytes + counters->kernel_backlog_bytes > 0 &&
           now_ns < lane->drain_until_ns;
}

bool helio_tx_lane_is_finished(const helio_tx_lane *lane, helio_moment moment) {
    return lane->closing && helio_tx_stream_is_finished(lane->stream, moment) &&
           !is_draining(lane, moment.now_ns);
}
