/* A transmit lane's life: options become a stream, a lane is shared by what can share it, lingers
 * and goes. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "policy/decision_log.h"
#include "runtime/tx_lane_parts.h"
#include "window/size.h"

enum {
    EXPIRY_INTERVALS = 3, /* ambient intervals a receiver that acknowledges may be silent */
};

static int check_history(const helio_tx_lane *lane) {
    const helio_options *options = &lane->base.options;
    const int64_t bytes = helio_options_integer(options, HELIO_OPTION_ID_HISTORY_BYTES);
    const int64_t least =
        HELIO_WINDOW_PACKETS_MIN * helio_options_integer(options, HELIO_OPTION_ID_MTU);
    if (bytes == 0 || bytes >= least) {
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION,
                      "option history_bytes is 0 or at least %d times mtu, here %lld; %lld is "
                      "too small",
                      HELIO_WINDOW_PACKETS_MIN, (long long)least, (long long)bytes);
}

/* Credit counts messages, and bare ones have no numbers of their own. */
static int check_credit(const helio_options *options) {
    if (!helio_options_integer(options, HELIO_OPTION_ID_AWAIT_CREDIT) ||
        helio_options_integer(options, HELIO_OPTION_ID_PAYLOAD) != HELIO_PAYLOAD_RAW) {
        return 0;
    }
    return helio_fail_plain(HELIO_ERR_OPTION,
                            "option await_credit contradicts payload=raw: receivers of bare "
                            "messages grant nothing");
}

/* Who is shed must not be repaired more than who is not. */
static int check_limits(const helio_tx_lane *lane) {
    const helio_options *options = &lane->base.options;
    const int64_t usual = helio_options_integer(options, HELIO_OPTION_ID_REPAIR_LIMIT);
    const int64_t shed = helio_options_integer(options, HELIO_OPTION_ID_SHED_LIMIT);
    if (usual == 0 || shed <= usual || !options->value[HELIO_OPTION_ID_SHED_LIMIT].given) {
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION,
                      "option shed_limit is at most repair_limit=%lld, as it is for receivers that "
                      "are repaired less; %lld is more",
                      (long long)usual, (long long)shed);
}

static int fail_budget(const helio_tx_lane *lane) {
    const helio_history_budget *budget = &lane->base.instance->history;
    return helio_fail(HELIO_ERR_OPTION,
                      "option history_limit_bytes: of %llu bytes for all histories of the instance "
                      "%llu are taken; the rest is too little for this stream (history=dynamic, "
                      "history_bytes and send_window make it smaller)",
                      (unsigned long long)budget->limit_bytes,
                      (unsigned long long)budget->used_bytes);
}

helio_tx_stream_config helio_tx_lane_config(const helio_options *options) {
    helio_tx_stream_config config = {
        .first_sequence = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_FIRST_SEQUENCE),
        .is_raw = helio_options_integer(options, HELIO_OPTION_ID_PAYLOAD) == HELIO_PAYLOAD_RAW,
        .window_packets = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_SEND_WINDOW),
        .max_message_bytes =
            (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_MAX_MESSAGE_BYTES),
        .history_bytes = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_HISTORY_BYTES),
        .history_ns = helio_options_ns(options, HELIO_OPTION_ID_HISTORY_TIME),
        .history_dynamic =
            helio_options_integer(options, HELIO_OPTION_ID_HISTORY) == HELIO_HISTORY_DYNAMIC,
        .late_join = helio_options_integer(options, HELIO_OPTION_ID_LATE_JOIN),
        .awaits_credit = helio_options_integer(options, HELIO_OPTION_ID_AWAIT_CREDIT),
        .acks = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_ACKS),
        .acks_missing = (int)helio_options_integer(options, HELIO_OPTION_ID_ACKS_MISSING),
        .acks_warn_ns = helio_options_ns(options, HELIO_OPTION_ID_ACKS_WARN),
        .acker_expiry_ns = helio_options_ns(options, HELIO_OPTION_ID_ACKER_EXPIRY),
        .report_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_REPORT_INTERVAL),
        .report_rate = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_REPORT_RATE),
        .linger_ns = helio_options_ns(options, HELIO_OPTION_ID_LINGER),
        .heartbeat_min_ns = helio_options_ns(options, HELIO_OPTION_ID_HEARTBEAT_MIN),
        .heartbeat_max_ns = helio_options_ns(options, HELIO_OPTION_ID_HEARTBEAT_MAX),
        .ambient_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_AMBIENT_INTERVAL),
        .announce_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_ANNOUNCE_INTERVAL),
        .poll_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_POLL_INTERVAL),
        .pace = helio_tx_lane_pace(options),
        .govern = helio_tx_lane_govern(options),
        .follow = helio_tx_lane_follow(options),
        .repair_linger_ns = helio_options_ns(options, HELIO_OPTION_ID_REPAIR_LINGER),
        .limits = {.naks = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_NAK_LIMIT),
                   .acks = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_ACK_LIMIT),
                   .repair_bytes =
                       (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_REPAIR_LIMIT),
                   .shed_bytes =
                       (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_SHED_LIMIT)},
        .repair_budget = helio_options_float(options, HELIO_OPTION_ID_REPAIR_BUDGET),
        .slow = helio_tx_lane_slow(options),
    };
    const int64_t expiry_least_ns = EXPIRY_INTERVALS * config.ambient_interval_ns;
    if (!options->value[HELIO_OPTION_ID_ACKER_EXPIRY].given &&
        config.acker_expiry_ns < expiry_least_ns) {
        config.acker_expiry_ns = expiry_least_ns;
    }
    return config;
}

int helio_tx_lane_check_policies(const helio_options *options) {
    int error = helio_tx_lane_check_pace(options);
    if (!error) {
        error = helio_tx_lane_check_slow(options);
    }
    if (!error) {
        error = helio_tx_lane_check_govern(options);
    }
    return error;
}

static int open_stream(helio_tx_lane *lane, helio_clock clock) {
    helio_instance *instance = lane->base.instance;
    const helio_options *options = &lane->base.options;
    const helio_channel *channel = lane->base.channel;
    helio_tx_stream_config config = helio_tx_lane_config(options);
    config.breathe = helio_tx_lane_breathe;
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
    config.has_checksums = !channel->driver->is_memory;
    config.is_connected = channel->driver->is_connected;
    config.seed = helio_random_next(&instance->random);
    helio_tx_lane_place_pace(lane, &config.pace);
    if (config.acker_expiry_ns <= config.ambient_interval_ns) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option acker_expiry must be longer than ambient_interval (%g seconds), "
                          "the longest silence of a receiver that acknowledges, not %g",
                          helio_options_float(options, HELIO_OPTION_ID_AMBIENT_INTERVAL),
                          helio_options_float(options, HELIO_OPTION_ID_ACKER_EXPIRY));
    }
    if (!channel->driver->is_connected) { /* where each host is heard on its own */
        config.destinations = lane->base.endpoint.addresses;
        config.destinations_count = (uint32_t)lane->base.endpoint.addresses_count;
    }
    memcpy(config.tsi.gsi, instance->gsi, sizeof config.tsi.gsi);
    const helio_outlet outlet = {.context = lane, .send = helio_tx_lane_send};
    int error = check_history(lane);
    if (!error) {
        error = helio_tx_lane_check_policies(options);
    }
    if (!error) {
        error = check_limits(lane);
    }
    char options_text[HELIO_DECISION_TEXT_MAX + 1];
    if (!error) {
        error = check_credit(options);
    }
    if (!error) {
        error = helio_tx_lane_open_log(lane, &config.tsi, options_text, &config.log);
    }
    if (!error) {
        error = helio_tx_stream_create(&config, outlet, instance->stats, instance->counts, clock,
                                       &lane->stream);
        if (error == HELIO_ERR_OPTION) {
            error = fail_budget(lane);
        } else if (error == HELIO_ERR_NOMEM && helio_account_left(config.account) < UINT64_MAX) {
            error = helio_limit_fail(
                instance, "a history (send_window and history_bytes make it smaller)",
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
                     helio_options *options, helio_clock clock, helio_tx_lane **out) {
    helio_tx_lane *lane = helio_allocate(sizeof *lane);
    if (!lane) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for a stream");
    }
    int error =
        helio_lane_open(&lane->base, instance, HELIO_CHANNEL_TRANSMIT, endpoint, options, clock);
    if (!error) {
        error = open_stream(lane, clock);
        if (error) {
            helio_lane_close(&lane->base);
        }
    }
    if (error) {
        free(lane);
        return error;
    }
    lane->congestion.limit_ns =
        helio_options_ns(&lane->base.options, HELIO_OPTION_ID_CONGESTION_TIME);
    helio_tx_lane_tell_congestion(lane, clock);
    lane->next = instance->tx_lanes;
    instance->tx_lanes = lane;
    *out = lane;
    return 0;
}

int helio_tx_lane_acquire(helio_instance *instance, const helio_endpoint *endpoint,
                          helio_options *options, helio_clock clock, helio_tx_lane **out) {
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        if (!lane->closing &&
            helio_lane_serves(&lane->base, endpoint, options, HELIO_ON_TRANSMITTER)) {
            helio_options_fini(options);
            *out = lane;
            return 0;
        }
    }
    return open_lane(instance, endpoint, options, clock, out);
}

void helio_tx_lane_release(helio_tx_lane *lane, helio_clock clock) {
    if (!lane->transmitters && !lane->closing) {
        helio_tx_stream_close(lane->stream, clock);
        helio_tx_lane_flush_channel(lane);
        lane->closing = true;
        lane->drain_until_ns = clock.now_ns + helio_options_ns(&lane->base.options,
                                                               HELIO_OPTION_ID_CONNECTION_TIMEOUT);
    }
}

void helio_tx_lane_destroy(helio_tx_lane *lane, helio_clock clock) {
    helio_tx_lane **at = &lane->base.instance->tx_lanes;
    while (*at != lane) {
        at = &(*at)->next;
    }
    *at = lane->next;
    /* Whoever still misses something is told that nobody will answer. */
    if (!helio_tx_stream_is_finished(lane->stream, clock) ||
        helio_options_ns(&lane->base.options, HELIO_OPTION_ID_LINGER) == 0) {
        helio_tx_stream_abort(lane->stream);
    }
    helio_tx_lane_flush_channel(lane);
    helio_lane_tend(&lane->base, clock);
    const size_t log_bytes = helio_tx_stream_log_used(lane->stream);
    helio_tx_stream_destroy(lane->stream, clock);
    helio_decision_file_close(&lane->log, log_bytes);
    helio_lane_close(&lane->base);
    free(lane);
}

/* What a connection has been given, it is given the time to take. */
static bool is_draining(const helio_tx_lane *lane, int64_t now_ns) {
    const helio_channel_counters *counters = &lane->base.channel->counters;
    return counters->backlog_bytes + counters->kernel_backlog_bytes > 0 &&
           now_ns < lane->drain_until_ns;
}

bool helio_tx_lane_is_finished(const helio_tx_lane *lane, helio_clock clock) {
    return lane->closing && helio_tx_stream_is_finished(lane->stream, clock) &&
           !is_draining(lane, clock.now_ns);
}
