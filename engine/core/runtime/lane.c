#include "runtime/lane.h"

#include <string.h>

#include "base/error.h"
#include "io/udp_socket.h"
#include "stats/refusal.h"

enum { IP4_BYTES = 20, IP6_BYTES = 40, UDP_BYTES = 8, ROUTER_ALERT_BYTES = 4, FEEDBACK_TTL = 1 };

static bool is_raw(const helio_lane *lane) {
    return lane->options.stream.encapsulation == HELIO_ENCAPSULATION_IP;
}

uint32_t helio_lane_packet_bytes(const helio_lane *lane) {
    const uint32_t ip = lane->endpoint.addresses[0].family == 6 ? IP6_BYTES : IP4_BYTES;
    /* A repair is as long as its packet and may have to carry Router Alert. */
    const uint32_t above = is_raw(lane) ? ROUTER_ALERT_BYTES : UDP_BYTES;
    return (uint32_t)lane->options.stream.mtu - ip - above;
}

/* What the channel tells becomes an event. */
static void on_event(void *context, helio_channel_event event, const helio_address *peer,
                     const char *why) {
    static const helio_event_id ids[] = {
        [HELIO_CHANNEL_CONNECTED] = HELIO_EVENT_CONNECTION_OPENED,
        [HELIO_CHANNEL_DISCONNECTED] = HELIO_EVENT_CONNECTION_LOST,
        [HELIO_CHANNEL_PEER_CRASHED] = HELIO_EVENT_PROCESS_CRASHED,
        [HELIO_CHANNEL_FELL_BACK] = HELIO_EVENT_TRANSPORT_FALLBACK,
        [HELIO_CHANNEL_REFUSED] = HELIO_EVENT_FOREIGN_TRAFFIC,
        [HELIO_CHANNEL_TRUNCATED] = HELIO_EVENT_FILE_TRUNCATED,
    };
    helio_lane *lane = context;
    lane->connected |= event == HELIO_CHANNEL_CONNECTED;
    const bool is_gone = event == HELIO_CHANNEL_DISCONNECTED || event == HELIO_CHANNEL_PEER_CRASHED;
    if (is_gone && peer && lane->on_gone) {
        lane->on_gone(lane, peer);
    }
    char text[HELIO_ADDRESS_TEXT] = "";
    helio_stats_event(lane->instance->stats, helio_wall_ns(), ids[event],
                      lane->instance->object.slot, NULL, "%s%s%s: %s", lane->endpoint.label,
                      peer ? ", " : "", peer ? helio_address_format(peer, text) : "", why);
}

/* Whether some object of the instance counts how long datagrams wait in the socket. */
static bool wants_stamps(const helio_lane *lane) {
    return helio_stats_highest_level(lane->instance->stats) >= 3;
}

void helio_lane_follow_level(helio_lane *lane) {
    const bool on = wants_stamps(lane);
    if (on != lane->is_stamped && lane->channel->driver->stamp) {
        lane->channel->driver->stamp(lane->channel, on);
        lane->is_stamped = on;
    }
}

static void apply_transmitter(const helio_transmitter_options *options,
                              helio_channel_config *config) {
    config->router_alert = options->router_alert;
    config->gso = options->gso == HELIO_GSO_AUTO;
    config->ttl = (int)options->ttl;
    config->upstream = options->upstream;
    config->ring_packets = options->ring_packets;
    config->ring_wait = options->ring_wait;
    config->huge_pages = options->huge_pages;
    config->connect_wait_ns = options->connect_wait_ns;
    config->backlog_bytes = options->send_backlog;
    /* A message of any length may be on its way to a connection when it becomes too much. */
    config->backlog_limit = options->send_backlog + 2 * options->stream.max_message_bytes;
}

static void apply_receiver(const helio_receiver_options *options, helio_channel_config *config) {
    if (options->given.repair_at) {
        helio_address_parse(options->repair_at, &config->feedback); /* checked (rx_lane.c) */
    }
    config->gso = true; /* of requests and acknowledgements */
    config->gro = options->gro == HELIO_GRO_AUTO;
    config->ttl = FEEDBACK_TTL;
    config->inject_loss = options->inject_loss;
}

static int open_channel(helio_lane *lane) {
    const helio_endpoint *endpoint = &lane->endpoint;
    const helio_stream_options *options = &lane->options.stream;
    const bool receive = lane->on == HELIO_ON_RECEIVER;
    lane->is_stamped = receive && wants_stamps(lane);
    helio_channel_config config = {
        .raw = is_raw(lane),
        .role = receive ? HELIO_CHANNEL_RECEIVE : HELIO_CHANNEL_TRANSMIT,
        .multicast = endpoint->multicast,
        .destinations_count = endpoint->addresses_count,
        .packet_bytes = helio_lane_packet_bytes(lane),
        .socket_buffer = options->socket_buffer,
        .kernel_stamps = lane->is_stamped,
        .seed = helio_random_next(&lane->instance->random),
        .timeout_ns = options->connection_timeout_ns,
        .pool = &lane->instance->connections,
        .account = &lane->instance->memory.account,
        .tell = on_event,
        .context = lane,
    };
    if (receive) {
        apply_receiver(&lane->options.receiver, &config);
    } else {
        apply_transmitter(&lane->options.transmitter, &config);
    }
    memcpy(config.name, endpoint->name, sizeof config.name);
    memcpy(config.destinations, endpoint->addresses, sizeof endpoint->addresses);
    const int error = helio_udp_find_interface(options->interface, config.destinations[0].family,
                                               &config.interface, &config.interface_index);
    return error ? error : helio_endpoint_driver(endpoint)->open(&config, &lane->channel);
}

static int watch(helio_lane *lane) {
    for (int i = 0; i < HELIO_CHANNEL_FDS_MAX && lane->channel->fds[i] >= 0; i++) {
        const int error = helio_idle_watch(&lane->instance->idle, lane->channel->fds[i]);
        if (error) {
            return error;
        }
    }
    return 0;
}

/* What the instance's statistics can say from now on. */
static unsigned features_of(const helio_endpoint *endpoint) {
    switch (endpoint->scheme) {
    case HELIO_SCHEME_RMM:
    case HELIO_SCHEME_RMM_UNICAST:
        return HELIO_HAS_UDP;
    case HELIO_SCHEME_RUM:
        return HELIO_HAS_TCP;
    case HELIO_SCHEME_SHM:
    case HELIO_SCHEME_INPROC:
        return HELIO_HAS_RING;
    }
    return 0;
}

int helio_lane_open(helio_lane *lane, helio_instance *instance, helio_owner on,
                    const helio_endpoint *endpoint, helio_end_options *options,
                    helio_moment moment) {
    *lane =
        (helio_lane){.instance = instance, .endpoint = *endpoint, .on = on, .options = *options};
    memset(options, 0, sizeof *options);
    lane->endpoint.query = ""; /* it pointed into the caller's text */
    int error = open_channel(lane);
    if (!error) {
        error = watch(lane);
    }
    if (error) {
        helio_lane_close(lane);
        return error;
    }
    helio_stats_apply(&instance->object, features_of(endpoint));
    const size_t wanted = lane->options.stream.socket_buffer;
    const size_t got = lane->channel->counters.buffer_bytes;
    if (got < wanted) {
        helio_stats_event(instance->stats, moment.wall_ns, HELIO_EVENT_SOCKET_BUFFER_SMALL,
                          instance->object.slot, (const uint64_t[4]){wanted, got},
                          "%s: the requested socket buffer is %zu bytes, the kernel gave %zu; "
                          "raise net.core.rmem_max",
                          lane->endpoint.label, wanted, got);
    }
    return 0;
}

static void tell_refusals(helio_lane *lane, helio_moment moment) {
    const helio_channel_counters *now = &lane->channel->counters;
    const helio_refusal_place place = {lane->instance->stats, lane->instance->counts,
                                       lane->instance->object.slot, lane->endpoint.label};
    const uint64_t of_address = now->refused_of_address - lane->counted.refused_of_address;
    const uint64_t all = now->refused - lane->counted.refused;
    if (of_address > 0) {
        helio_refuse(&place, HELIO_REFUSAL_CONNECTIONS_OF_ADDRESS, of_address, &lane->refused,
                     "one address has too many connections", moment);
    }
    if (all > 0) {
        helio_refuse(&place, HELIO_REFUSAL_CONNECTIONS, all, &lane->refused,
                     "there are too many connections, or too few file descriptors", moment);
    }
}

/* Adds what changed since the last time; gauges are sums over the lanes, so they may fall. */
static void count_changes(helio_lane *lane) {
    const helio_channel_counters *now = &lane->channel->counters;
    const helio_channel_counters *then = &lane->counted;
    helio_instance_stats *counts = lane->instance->counts;
    helio_count(&counts->send_errors, now->send_errors - then->send_errors);
    helio_count(&counts->socket_drops, now->socket_drops - then->socket_drops);
    helio_count(&counts->connects, now->connects - then->connects);
    helio_count(&counts->disconnects, now->disconnects - then->disconnects);
    helio_count(&counts->ring_overruns, now->overruns - then->overruns);
    helio_count(&counts->connections, now->connections - then->connections);
    helio_count(&counts->backlog_bytes, now->backlog_bytes - then->backlog_bytes);
    helio_count(&counts->kernel_backlog_bytes,
                now->kernel_backlog_bytes - then->kernel_backlog_bytes);
    lane->counted = *now;
}

void helio_lane_close(helio_lane *lane) {
    if (lane->channel) {
        for (int i = 0; i < HELIO_CHANNEL_FDS_MAX && lane->channel->fds[i] >= 0; i++) {
            helio_idle_unwatch(&lane->instance->idle, lane->channel->fds[i]);
        }
        lane->channel->counters.connections = 0;
        lane->channel->counters.backlog_bytes = lane->channel->counters.kernel_backlog_bytes = 0;
        count_changes(lane);
        lane->channel->driver->close(lane->channel);
        lane->channel = NULL;
    }
    helio_options_fini(&lane->options, lane->on);
}

bool helio_lane_serves(const helio_lane *lane, const helio_endpoint *endpoint,
                       const helio_end_options *options) {
    return helio_endpoint_equal(&lane->endpoint, endpoint) &&
           helio_options_share(&lane->options, options, lane->on);
}

static void tell_errors(helio_lane *lane, helio_moment moment, uint64_t errors) {
    const int number = lane->channel->counters.send_errno;
    helio_stats_event(lane->instance->stats, moment.wall_ns, HELIO_EVENT_SEND_FAILED,
                      lane->instance->object.slot, (const uint64_t[4]){(uint64_t)number},
                      "%s: %llu packets could not be sent: %s", lane->endpoint.label,
                      (unsigned long long)errors, strerror(number));
}

static void tell_drops(helio_lane *lane, helio_moment moment, uint64_t drops) {
    helio_stats_event(lane->instance->stats, moment.wall_ns, HELIO_EVENT_SOCKET_DROPS,
                      lane->instance->object.slot, (const uint64_t[4]){drops},
                      "%s: the kernel dropped %llu datagrams because the socket's buffer was full",
                      lane->endpoint.label, (unsigned long long)drops);
}

void helio_lane_tend(helio_lane *lane, helio_moment moment) {
    const helio_channel_counters *now = &lane->channel->counters;
    if (lane->channel->driver->tend) {
        lane->channel->driver->tend(lane->channel, moment.now_ns);
    }
    tell_refusals(lane, moment);
    count_changes(lane);

    const uint64_t errors = now->send_errors - lane->told.send_errors;
    const uint64_t drops = now->socket_drops - lane->told.socket_drops;
    if ((!errors && !drops) || moment.now_ns < lane->next_event_ns) {
        return;
    }
    if (errors) {
        tell_errors(lane, moment, errors);
    }
    if (drops) {
        tell_drops(lane, moment, drops);
    }
    lane->told = *now;
    lane->next_event_ns = moment.now_ns + HELIO_SECOND;
}

bool helio_lane_before_sleep(helio_lane *lane) {
    const helio_driver *driver = lane->channel->driver;
    return !driver->before_sleep || driver->before_sleep(lane->channel);
}

void helio_lane_after_sleep(helio_lane *lane) {
    if (lane->channel->driver->after_sleep) {
        lane->channel->driver->after_sleep(lane->channel);
    }
}
