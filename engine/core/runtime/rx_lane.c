#include "runtime/rx_lane.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "runtime/sink.h"
#include "window/size.h"

enum {
    BATCHES_PER_CYCLE = 8,
    LEND_PACKETS = 8, /* to begin with */
    SHARES_MAX = 64,
};

static int send_feedback(void *context, const helio_address *to, const void *packet, size_t length,
                         bool stable) {
    helio_rx_lane *lane = context;
    lane->is_queued = true;
    return lane->base.channel->driver->send(lane->base.channel, to, packet, length, stable);
}

/* Packets are missing: how many were dropped on this host? */
static uint64_t read_drops(void *context) {
    helio_channel *channel = ((helio_rx_lane *)context)->base.channel;
    return channel->driver->drops(channel);
}

static void flush_channel(helio_rx_lane *lane) {
    if (lane->is_queued) {
        lane->is_queued = false;
        lane->base.channel->driver->flush(lane->base.channel);
    }
}

/* ---- life ---- */

/* Who acknowledges: the same when the program is started anew under the same name.  Lanes of one
 * endpoint with different options are told apart by the order they were opened in. */
static uint64_t identity_of(const helio_rx_lane *lane) {
    const helio_instance *instance = lane->base.instance;
    char host[HOST_NAME_MAX + 1] = "", text[1024];
    unsigned number = 0;
    for (const helio_rx_lane *other = instance->rx_lanes; other; other = other->next) {
        number += helio_endpoint_equal(&other->base.endpoint, &lane->base.endpoint);
    }
    gethostname(host, sizeof host - 1);
    const int length = snprintf(text, sizeof text, "%s\n%s\n%s\n%u", host, instance->name,
                                lane->base.endpoint.label, number);
    return helio_hash_fnv1a(text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static bool joins_history(const helio_rx_lane *lane) {
    const int64_t join = lane->base.options.receiver.join;
    return join == HELIO_JOIN_HISTORY ||
           (join == HELIO_JOIN_AUTO && lane->base.endpoint.scheme == HELIO_SCHEME_RUM);
}

/* Packets of the receive window, a power of two that keeps to the limit in bytes; 0: there is an
 * error. */
static uint64_t window_packets(const helio_receiver_options *options) {
    const uint64_t window = helio_round_up_power_of_two(options->receive_window);
    const uint64_t bytes = options->receive_bytes;
    const uint64_t mtu = options->stream.mtu;
    if (bytes > 0 && bytes < HELIO_WINDOW_PACKETS_MIN * mtu) {
        helio_fail(
            HELIO_ERR_OPTION,
            "option receive_bytes is 0 or at least %d times mtu, here %llu; %llu is too small",
            HELIO_WINDOW_PACKETS_MIN, (unsigned long long)(HELIO_WINDOW_PACKETS_MIN * mtu),
            (unsigned long long)bytes);
        return 0;
    }
    const uint64_t fitting = bytes > 0 ? helio_round_up_power_of_two(bytes / mtu / 2 + 1) : window;
    return fitting < window ? fitting : window;
}

/* Credit counts messages, and bare ones have no numbers of their own. */
static int check_credit(const helio_receiver_options *options) {
    const int64_t credit = options->credit;
    if (credit == 0 || options->stream.payload != HELIO_PAYLOAD_RAW) {
        return 0;
    }
    return helio_fail(
        HELIO_ERR_OPTION,
        "option credit=%lld contradicts payload=raw: sources of raw messages ignore credit",
        (long long)credit);
}

/* An option that is "IP:PORT"; not given: family 0. */
static int read_address(const char *option, const char *text, helio_address *out) {
    *out = (helio_address){0};
    if (!text[0]) {
        return 0;
    }
    if (helio_address_parse(text, out) || out->port == 0 || helio_address_is_unspecified(out) ||
        helio_address_is_multicast(out)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option %s is the IP address and port of one host, such as "
                          "10.0.0.5:7600, not '%s'",
                          option, text);
    }
    return 0;
}

/* The option `service`, where any address of the host may stand for the one that feedback leaves
 * from. */
static int read_service(const helio_receiver_options *options, helio_address *out) {
    const char *text = options->service;
    if (!text[0]) {
        return 0;
    }
    if (helio_address_parse(text, out) || out->port == 0 || helio_address_is_multicast(out)) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option service is the IP address and port at which this store can be "
                          "read, such as 10.0.0.5:7800 or 0.0.0.0:7800, not '%s'",
                          text);
    }
    if (helio_address_is_unspecified(out)) {
        *out = (helio_address){.port = out->port};
    }
    return 0;
}

/* The option `share`; not given: 0 shares. */
static int read_share(const char *text, helio_rx_endpoint_config *out) {
    unsigned share, shares;
    int end = 0;
    if (!text[0]) {
        return 0;
    }
    if (sscanf(text, "%2u/%2u%n", &share, &shares, &end) != 2 || text[end] || share < 1 ||
        share > shares || shares > SHARES_MAX) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option share is K/N, such as 1/3, with K from 1 to N and N up to %d, "
                          "not '%s'",
                          SHARES_MAX, text);
    }
    out->share = share - 1;
    out->shares = shares;
    return 0;
}

/* The options of local repairers: whom to ask, and where to be asked. */
static int read_repairs(const helio_receiver_options *options, helio_rx_endpoint_config *out) {
    helio_address at;
    int error = read_address("repairer", options->repairer, &out->repairer);
    if (!error) {
        error = read_address("repair_at", options->repair_at, &at);
    }
    if (!error && at.family != 0) {
        out->repairs = (helio_dlr_config){
            .bytes = options->repair_bytes,
            .age_ns = options->repair_time_ns,
            .rate = options->repair_rate,
        };
    }
    return error;
}

/* Both need UDP: elsewhere packets go through memory or a connection with the source. */
static int check_repairs(const helio_rx_lane *lane, const helio_rx_endpoint_config *config) {
    const helio_receiver_options *options = &lane->base.options.receiver;
    const bool is_udp = lane->base.channel->driver == &helio_driver_udp &&
                        lane->base.options.stream.encapsulation == HELIO_ENCAPSULATION_UDP;
    const char *option = options->repairer[0] ? "repairer" : "repair_at";
    const char *text = options->repairer[0] ? options->repairer : options->repair_at;
    if (!text[0]) {
        return 0;
    }
    if (!is_udp) {
        return helio_fail(HELIO_ERR_OPTION, "option %s=%s needs an endpoint of UDP, not %s", option,
                          text, lane->base.endpoint.label);
    }
    if (config->repairer.family != 0 && config->repairer.family != config->group.family) {
        return helio_fail(HELIO_ERR_OPTION,
                          "option %s=%s and the endpoint %s have addresses of different families",
                          option, text, lane->base.endpoint.label);
    }
    return 0;
}

/* A stream discovered by its data is asked for its state after a random time of at most this. */
static int64_t spmr_delay_of(const helio_receiver_options *options) {
    const bool are_many = options->stream.profile == HELIO_PROFILE_MANY_RECEIVERS;
    return (are_many ? 20 : 2) * HELIO_MILLISECOND;
}

int helio_rx_lane_config(const helio_receiver_options *options, helio_rx_endpoint_config *out) {
    const uint64_t window = window_packets(options);
    if (window == 0 || check_credit(options)) {
        return HELIO_ERR_OPTION;
    }
    *out = (helio_rx_endpoint_config){
        .window_packets = (uint32_t)window,
        .max_message_bytes = options->stream.max_message_bytes,
        .is_raw = options->stream.payload == HELIO_PAYLOAD_RAW,
        .max_streams = options->max_streams,
        .reorder_packets = options->reorder_packets,
        .reorder_ns = options->reorder_time_ns,
        .nak_backoff_ns = options->given.nak_backoff ? options->nak_backoff_ns : -1,
        .nak_retries = options->nak_retries,
        .nak_deadline_ns = options->nak_deadline_ns,
        .group_size = options->group_size,
        .never_asks = options->nak == HELIO_NAK_OFF,
        .in_arrival_order = options->order == HELIO_ORDER_ARRIVAL,
        .spmr_delay_ns = spmr_delay_of(options),
        .stream_expiry_ns = options->stream_expiry_ns,
        .ack_packets = options->ack_packets,
        .ack_interval_ns = HELIO_MILLISECOND,
        .network_elements = options->network_elements,
        .is_tagged = options->tagged,
    };
    int error = read_service(options, &out->service);
    error = error ? error : read_share(options->share, out);
    return error ? error : read_repairs(options, out);
}

static int open_endpoint(helio_rx_lane *lane) {
    helio_instance *instance = lane->base.instance;
    const helio_channel *channel = lane->base.channel;
    helio_rx_endpoint_config config;
    int error = helio_rx_lane_config(&lane->base.options.receiver, &config);
    if (error) {
        return error;
    }
    config.instance = instance->name;
    config.endpoint = lane->base.endpoint.label;
    config.group = channel->bound;
    config.feedback_address = channel->local;
    config.max_packet_bytes = helio_lane_packet_bytes(&lane->base);
    config.receiver = identity_of(lane);
    config.loan = &lane->loan;
    config.has_checksums = !channel->driver->is_intact;
    config.join_history = joins_history(lane);
    config.is_same_host = channel->driver->is_memory;
    config.is_connected = channel->driver->is_connected;
    config.takes_unicast = channel->driver == &helio_driver_udp && !config.network_elements &&
                           lane->base.options.stream.encapsulation == HELIO_ENCAPSULATION_UDP;
    config.seed = config.repairs.seed = helio_random_next(&instance->random);
    error = check_repairs(lane, &config);
    if (error) {
        return error;
    }
    config.account = &instance->memory.account;
    config.dropped = channel->driver->drops ? read_drops : NULL;
    config.drops_are_joined =
        lane->base.options.receiver.gro == HELIO_GRO_AUTO && channel->driver == &helio_driver_udp;
    const helio_outlet outlet = {.context = lane, .send = send_feedback};
    return helio_rx_endpoint_create(&config, outlet, instance->stats, instance->counts,
                                    &lane->endpoint);
}

/* Streams of a connection that is gone may go on by another one. */
static void on_gone(helio_lane *base, const helio_address *peer) {
    helio_rx_lane *lane = (helio_rx_lane *)base;
    helio_rx_endpoint_detach(lane->endpoint, peer);
    lane->quiet_until_ns = 0;
}

static int open_lane(helio_instance *instance, const helio_endpoint *endpoint,
                     helio_end_options *options, helio_moment moment, helio_rx_lane **out) {
    helio_rx_lane *lane = helio_allocate(sizeof *lane);
    if (!lane) {
        return helio_fail(HELIO_ERR_NOMEM, "no memory for an endpoint");
    }
    helio_rx_endpoint_config config; /* what contradicts itself opens no channel */
    int error = helio_rx_lane_config(&options->receiver, &config);
    if (!error) {
        error =
            helio_lane_open(&lane->base, instance, HELIO_ON_RECEIVER, endpoint, options, moment);
    }
    if (error) {
        free(lane);
        return error;
    }
    error = open_endpoint(lane);
    if (error) {
        helio_lane_close(&lane->base);
        free(lane);
        return error;
    }
    lane->base.on_gone = on_gone;
    lane->lend_packets = LEND_PACKETS;
    lane->next = instance->rx_lanes;
    instance->rx_lanes = lane;
    *out = lane;
    return 0;
}

int helio_rx_lane_acquire(helio_instance *instance, const helio_endpoint *endpoint,
                          helio_end_options *options, helio_moment moment, helio_rx_lane **out) {
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        if (helio_lane_serves(&lane->base, endpoint, options)) {
            helio_options_fini(options, HELIO_ON_RECEIVER);
            *out = lane;
            return 0;
        }
    }
    return open_lane(instance, endpoint, options, moment, out);
}

void helio_rx_lane_release(helio_rx_lane *lane, helio_moment moment) {
    if (lane->receivers || lane->wildcards > 0) {
        return;
    }
    helio_rx_lane **at = &lane->base.instance->rx_lanes;
    while (*at != lane) {
        at = &(*at)->next;
    }
    *at = lane->next;
    lane->base.on_gone = NULL;
    helio_rx_endpoint_destroy(lane->endpoint, moment);
    flush_channel(lane);
    helio_lane_tend(&lane->base, moment);
    helio_lane_close(&lane->base);
    free(lane);
}

/* ---- work ---- */

static bool has_listener(const helio_rx_lane *lane) {
    for (const helio_receiver *r = lane->receivers; r; r = r->next) {
        if (r->has_listener) {
            return true;
        }
    }
    return false;
}

static inline void take(helio_rx_lane *lane, const helio_datagram *datagram, int64_t receive_ns,
                        helio_moment moment) {
    helio_rx_endpoint_stamp(lane->endpoint, datagram->kernel_ns);
    helio_rx_endpoint_on_packet(lane->endpoint, datagram->data, datagram->length, &datagram->source,
                                receive_ns, moment);
}

/* The packets were read at this moment.  Listeners take their time, so the clock is read again for
 * each further packet. */
static void take_batch(helio_rx_lane *lane, size_t count, helio_moment *moment) {
    helio_instance *instance = lane->base.instance;
    const int64_t receive_ns = moment->wall_ns;
    const bool is_batch = count > 1 && !has_listener(lane);
    if (is_batch) {
        helio_rx_endpoint_begin_batch(lane->endpoint);
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *moment = helio_clock_read(&instance->clock);
        }
        take(lane, &instance->datagrams[i], receive_ns, *moment);
    }
    if (is_batch) {
        helio_rx_endpoint_end_batch(lane->endpoint);
    }
}

/* Some receiver has no room, and what is not read makes the source wait. */
static bool is_held_back(const helio_rx_lane *lane) {
    return lane->base.channel->waits && helio_rx_endpoint_is_blocked(lane->endpoint) &&
           !helio_rx_endpoint_must_hear(lane->endpoint, HELIO_CHANNEL_BATCH);
}

/* What was read is lent to a caller, or would have no place: nothing is read after it. */
static inline bool must_stop(const helio_rx_lane *lane) {
    return (lane->is_lent | lane->loan.is_out) || is_held_back(lane);
}

static size_t read_now(helio_rx_lane *lane, helio_moment *moment) {
    const size_t count = helio_rx_lane_read(lane, helio_rx_lane_read_limit(lane));
    if (count) {
        helio_rx_endpoint_set_aside(lane->endpoint, lane->base.channel->is_aside);
        *moment = helio_clock_read(&lane->base.instance->clock);
    }
    return count;
}

/* The first batch of a cycle has been taken: reads until the channel is empty, or for so long that
 * others must get their turn. */
__attribute__((noinline)) static size_t receive_more(helio_rx_lane *lane, helio_moment *moment) {
    size_t total = 0;
    for (int i = 1; i < BATCHES_PER_CYCLE && !must_stop(lane); i++) {
        const size_t count = read_now(lane, moment);
        take_batch(lane, count, moment);
        total += count;
        if (count < HELIO_CHANNEL_BATCH && !lane->base.channel->has_more) {
            break;
        }
    }
    return total;
}

/* Reads all there may be, of which the first `count` packets are read. */
static size_t receive(helio_rx_lane *lane, size_t count, helio_moment *moment) {
    helio_channel *channel = lane->base.channel;
    if (!count) {
        if (is_held_back(lane)) {
            if (!channel->driver->is_memory) {
                channel->driver->receive(channel, NULL, 0); /* nor is the sleep to be disturbed */
            }
            return 0;
        }
        if (lane->is_lent) {
            return 0;
        }
        count = read_now(lane, moment);
    }
    take_batch(lane, count, moment);
    return count < HELIO_CHANNEL_BATCH && !channel->has_more ? count
                                                             : count + receive_more(lane, moment);
}

/* The caller had no place for all that windows hold; this call may have.  Where more is left, the
 * channel is read too: what was lent is not in its datagrams.  Where the windows are empty now, the
 * channel comes next time, so that its packets are lent too, not copied. */
static int offer_rest(helio_rx_lane *lane, helio_moment moment) {
    const bool is_lent = lane->is_lent;
    lane->loan.is_short = false;
    const int done = helio_rx_endpoint_poll(lane->endpoint, moment);
    lane->is_lent = is_lent || !lane->loan.is_short;
    return done;
}

void helio_rx_lane_leave_loan(helio_rx_lane *lane) {
    helio_channel *channel = lane->base.channel;
    lane->loan.is_left = channel->driver->leave(channel, &lane->loan);
    lane->is_lent = !lane->loan.is_left;
}

static void pass_acks(helio_rx_lane *lane, helio_moment moment) {
    for (helio_receiver *r = lane->receivers; r; r = r->next) {
        if (helio_receiver_has_acks(r)) {
            helio_receiver_pass_acks(r, moment);
        }
    }
}

static bool is_done(const helio_receiver *receiver) {
    return atomic_load_explicit(&receiver->is_done, memory_order_acquire);
}

/* Applications are done with messages: their sources may send more. */
static void grant(helio_rx_lane *lane, helio_moment moment) {
    bool has_news = false;
    for (helio_receiver *r = lane->receivers; r; r = r->next) {
        if (is_done(r)) {
            atomic_store_explicit(&r->is_done, false, memory_order_relaxed);
            has_news = true;
        }
    }
    if (has_news) {
        atomic_thread_fence(memory_order_seq_cst); /* what is done from here on raises it again */
        helio_rx_endpoint_grant(lane->endpoint, moment);
    }
}

bool helio_rx_lane_has_acks(const helio_rx_lane *lane) {
    for (const helio_receiver *r = lane->receivers; r && lane->acked_by_app; r = r->next) {
        if (helio_receiver_has_acks(r)) {
            return true;
        }
    }
    for (const helio_receiver *r = lane->receivers; r && lane->grants; r = r->next) {
        if (is_done(r)) {
            return true;
        }
    }
    return false;
}

/* Until when only a packet, a command or the chores give this lane work; 0: each cycle is to look
 * after it. */
static inline int64_t quiet_until_ns(const helio_rx_lane *lane, bool is_blocked) {
    return lane->acked_by_app || lane->grants || is_blocked
               ? 0
               : helio_rx_endpoint_next_deadline_ns(lane->endpoint);
}

/* One packet was read, and nothing but it is known to want work. */
static inline bool is_lone(const helio_rx_lane *lane, size_t count) {
    return count == 1 && (lane->loan.is_short | lane->acked_by_app | lane->grants) == 0;
}

/* What applications may have done, and all there is to read. */
__attribute__((noinline)) static int serve_all(helio_rx_lane *lane, size_t count,
                                               helio_moment *moment) {
    int done = 0;
    if (lane->loan.is_short) {
        done += offer_rest(lane, *moment);
    }
    done += (int)receive(lane, count, moment);
    if (done && has_listener(lane)) {
        *moment = helio_clock_read(&lane->base.instance->clock);
    }
    if (lane->acked_by_app) {
        pass_acks(lane, *moment);
    }
    if (lane->grants) {
        grant(lane, *moment);
    }
    return done;
}

int helio_rx_lane_serve(helio_rx_lane *lane, size_t count, helio_moment *moment) {
    int done = 1;
    helio_rx_endpoint_set_aside(lane->endpoint, lane->base.channel->is_aside);
    if (is_lone(lane, count)) {
        take(lane, lane->base.instance->datagrams, moment->wall_ns, *moment);
        if (lane->base.channel->has_more && !must_stop(lane)) {
            done += (int)receive_more(lane, moment);
        }
        if (has_listener(lane)) {
            *moment = helio_clock_read(&lane->base.instance->clock);
        }
    } else {
        done = serve_all(lane, count, moment);
    }
    bool is_blocked = helio_rx_endpoint_is_blocked(lane->endpoint);
    if (moment->now_ns >= helio_rx_endpoint_next_deadline_ns(lane->endpoint) ||
        (is_blocked && helio_rx_lane_can_resume(lane))) {
        done += helio_rx_endpoint_poll(lane->endpoint, *moment);
        is_blocked = helio_rx_endpoint_is_blocked(lane->endpoint);
    }
    flush_channel(lane);
    lane->quiet_until_ns = quiet_until_ns(lane, is_blocked);
    return done;
}

void helio_rx_lanes_look(const helio_instance *instance) {
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        lane->quiet_until_ns = 0;
    }
}

void helio_rx_lanes_work_amid_send(helio_instance *instance, helio_moment moment) {
    const bool is_polled = instance->mode == HELIO_MODE_POLL;
    if (is_polled && instance->polling) {
        return; /* a listener sends: some lane is at work already */
    }
    for (helio_rx_lane *lane = instance->rx_lanes; lane; lane = lane->next) {
        if (!is_polled || !has_listener(lane)) {
            helio_rx_lane_work(lane, &moment);
        }
    }
}

void helio_rx_lane_refresh(helio_rx_lane *lane, helio_moment moment) {
    for (helio_receiver *r = lane->receivers; r; r = r->next) {
        helio_receiver_refresh(r, moment);
    }
    helio_rx_endpoint_measure_repairs(lane->endpoint, moment.now_ns);
    helio_lane_follow_level(&lane->base);
    helio_lane_tend(&lane->base, moment);
    const helio_channel_counters *counters = &lane->base.channel->counters;
    helio_rx_endpoint_note_drops(lane->endpoint, counters->socket_drops + counters->overruns,
                                 moment.now_ns);
}

bool helio_rx_lane_before_sleep(helio_rx_lane *lane) {
    /* A ring does not know that it is not being read. */
    return (lane->base.channel->driver->is_memory && is_held_back(lane)) ||
           helio_lane_before_sleep(&lane->base);
}

bool helio_rx_lane_is_queueing(const helio_rx_lane *lane) {
    for (const helio_receiver *r = lane->receivers; r; r = r->next) {
        if (!r->has_listener && helio_receive_queue_bytes(&r->queue)) {
            return true;
        }
    }
    return false;
}

bool helio_rx_lane_can_resume(const helio_rx_lane *lane) {
    if (!helio_rx_endpoint_is_blocked(lane->endpoint)) {
        return false;
    }
    for (const helio_receiver *r = lane->receivers; r; r = r->next) {
        if (!r->has_listener && helio_receive_queue_is_full(&r->queue) &&
            helio_receive_queue_is_low(&r->queue)) {
            return true;
        }
    }
    return false;
}
