#include "runtime/tx_lane.h"

#include <string.h>

#include "base/error.h"
#include "runtime/memory.h"
#include "runtime/rx_lane.h"
#include "runtime/transmitter.h"

/* Requests for repair are looked for this often where a look is a system call: seldom while there
 * were none for a while. */
#define FEEDBACK_INTERVAL_NS (5 * HELIO_MICROSECOND)
#define FEEDBACK_QUIET_INTERVAL_NS (30 * HELIO_MICROSECOND)
#define FEEDBACK_QUIET_NS (10 * HELIO_MILLISECOND)

#define HOLD_NS (5 * HELIO_MILLISECOND)        /* longest time repairs keep new data waiting */
#define RING_WAIT_NS (200 * HELIO_MILLISECOND) /* the same for a reader asked to be waited for */
#define WAIT_AGAIN_NS (50 * HELIO_MILLISECOND) /* after a wait for room was in vain */

/* The same within a message as long as half the history, when somebody is behind; and how long it
 * goes on without regard for such a one when that has not helped. */
#define HOLD_LONG_NS (200 * HELIO_MILLISECOND)
#define FREE_NS (20 * HELIO_MILLISECOND)

enum {
    PACKETS_PER_CYCLE =
        90, /* about as many of one transmitter, so that requests for repair get their turn; two
             * messages of segmentation offload, filled */
    REPAIRS_AHEAD = 32,   /* with more repairs waiting than this, new data waits for them */
    EXPIRY_INTERVALS = 3, /* ambient intervals a receiver that acknowledges may be silent */
    ACKS_TOLD = 16,       /* to a listener in one cycle */
    HISTORY_PACKETS_MIN = 16,
    MESSAGE_COST = 8, /* bytes a message takes in a packet beside its own */
};

/* ---- packets out ---- */

static void record_send(helio_tx_lane *lane, int64_t duration_ns) {
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (t->unflushed) {
            helio_record(helio_tx_topic_object(t->topic)->histogram[HELIO_TRANSMITTER_SEND_LATENCY],
                         duration_ns, 1);
        }
    }
}

/* Hands what is queued in the channel to the network. */
static void flush_channel(helio_tx_lane *lane) {
    if (!lane->packets_queued) {
        return;
    }
    lane->packets_queued = 0;
    const helio_driver *driver = lane->base.channel->driver;
    if (helio_stats_level(lane->base.instance->stats) < 2) {
        driver->flush(lane->base.channel);
        return;
    }
    const int64_t start_ns = helio_monotonic_ns();
    driver->flush(lane->base.channel);
    record_send(lane, helio_monotonic_ns() - start_ns);
}

static int send_packet(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable) {
    helio_tx_lane *lane = context;
    const unsigned copies = to ? 1 : (unsigned)lane->base.endpoint.addresses_count;
    if (lane->packets_queued + copies > HELIO_CHANNEL_BATCH) {
        flush_channel(lane);
    }
    lane->packets_queued += copies;
    lane->room -= lane->room > 0;
    return lane->base.channel->driver->send(lane->base.channel, to, packet, length, stable);
}

/* Repairs, heartbeats, announcements. */
static int poll_stream(helio_tx_lane *lane, helio_clock clock) {
    return clock.now_ns >= helio_tx_stream_next_deadline_ns(lane->stream)
               ? helio_tx_stream_poll(lane->stream, clock)
               : 0;
}

/* A connection is full: what it took goes on its way, for a moment.  When that was of no use (its
 * reader may be this very engine), the rest of the message goes on without. */
static void wait_for_room(helio_tx_lane *lane) {
    helio_clock clock = helio_clock_read(&lane->base.instance->clock);
    if (clock.now_ns < lane->wait_after_ns) {
        return;
    }
    const bool is_asked_to =
        helio_options_integer(&lane->base.options, HELIO_OPTION_ID_RING_WAIT) != 0;
    const int64_t until_ns = clock.now_ns + (is_asked_to ? RING_WAIT_NS : HOLD_NS);
    while (!helio_tx_lane_has_room(lane)) {
        if (clock.now_ns >= until_ns) {
            lane->wait_after_ns = is_asked_to ? 0 : clock.now_ns + WAIT_AGAIN_NS;
            return;
        }
        helio_tx_lane_receive(lane, clock);
        lane->base.channel->driver->flush(lane->base.channel);
        helio_lane_tend(&lane->base, clock);
        clock = helio_clock_read(&lane->base.instance->clock);
    }
}

/* A long message is being cut, and somebody asks for what was sent a good while ago: what comes next
 * would push it out of the history. */
static bool must_wait(helio_tx_lane *lane, int64_t now_ns) {
    if (now_ns < lane->free_until_ns || !helio_tx_stream_is_outrunning(lane->stream, now_ns)) {
        lane->waits_since_ns = 0;
        return false;
    }
    if (!lane->waits_since_ns) {
        lane->waits_since_ns = now_ns;
    }
    if (now_ns - lane->waits_since_ns < HOLD_LONG_NS) {
        return true;
    }
    lane->waits_since_ns = 0;
    lane->free_until_ns = now_ns + FREE_NS;
    return false;
}

/* A large message is being cut: what it sent goes out, those who missed some are heard, and what
 * others send is read. */
static void breathe(void *context, int64_t not_before_ns) {
    helio_tx_lane *lane = context;
    helio_clock clock;
    do {
        flush_channel(lane);
        clock = helio_clock_read(&lane->base.instance->clock);
        helio_tx_lane_receive(lane, clock);
        poll_stream(lane, clock);
        helio_tx_lane_make_way(lane, clock);
        helio_rx_lanes_work_amid_send(lane->base.instance, clock);
        wait_for_room(lane);
    } while (clock.now_ns < not_before_ns || (not_before_ns && must_wait(lane, clock.now_ns)));
}

/* ---- acknowledgements ---- */

static void note(helio_tx_lane *lane, helio_transmitter *transmitter, const helio_acker *acker) {
    uint64_t number;
    if (helio_tx_stream_acked_message(lane->stream, transmitter->topic, acker, &number)) {
        helio_acked_note(&transmitter->acked, acker, number);
    }
}

void helio_tx_lane_note_all(helio_tx_lane *lane, helio_transmitter *transmitter) {
    const helio_acker *acker;
    for (uint32_t i = 0; (acker = helio_tx_stream_acker(lane->stream, i)) != NULL; i++) {
        note(lane, transmitter, acker);
    }
}

void helio_tx_lane_tell_acks(helio_tx_lane *lane) {
    helio_ack acks[ACKS_TOLD];
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (!t->on_ack || !t->acked.has_new) {
            continue;
        }
        const size_t count = helio_acked_take(&t->acked, acks, ACKS_TOLD);
        t->acked.has_new = count == ACKS_TOLD;
        for (size_t i = 0; i < count; i++) {
            t->on_ack(t->on_ack_context, &acks[i]);
        }
    }
}

/* Ends the waits for what was acknowledged by now. */
static void serve_waits(helio_tx_lane *lane, helio_transmitter *transmitter) {
    helio_acked *acked = &transmitter->acked;
    if (!helio_acked_is_waited_for(acked)) {
        return;
    }
    const uint64_t handed_over =
        atomic_load_explicit(&transmitter->queue.handed_over, memory_order_relaxed);
    bool is_news = false;
    pthread_mutex_lock(&acked->lock);
    atomic_store_explicit(&acked->has_new_wait, false, memory_order_relaxed);
    for (helio_ack_wait *wait = acked->waits; wait; wait = wait->next) {
        if (!wait->is_sent && handed_over >= wait->queued) {
            wait->is_sent = true;
            wait->sequence = helio_tx_stream_newest(transmitter->topic);
        }
        if (wait->is_sent && !wait->is_done &&
            (!wait->sequence ||
             helio_tx_stream_acked_by(lane->stream, wait->sequence) >= wait->receivers)) {
            wait->is_done = is_news = true;
        }
    }
    pthread_mutex_unlock(&acked->lock);
    if (is_news) {
        helio_signal_notify(&acked->progress);
    }
}

static void on_ack(void *context, const helio_acker *acker) {
    helio_tx_lane *lane = context;
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (atomic_load_explicit(&t->acked.is_wanted, memory_order_relaxed)) {
            note(lane, t, acker);
        }
        serve_waits(lane, t);
    }
}

/* Lets senders know, and those that wait, when too few receivers acknowledge, or again enough. */
static void tell_refusing(helio_tx_lane *lane) {
    const bool is_refusing = helio_tx_stream_is_refusing(lane->stream);
    if (is_refusing == atomic_load_explicit(&lane->refusing, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(&lane->refusing, is_refusing, memory_order_release);
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        helio_signal_notify(&t->acked.progress);
    }
}

/* ---- life ---- */

static int check_history(const helio_tx_lane *lane) {
    const helio_options *options = &lane->base.options;
    const int64_t bytes = helio_options_integer(options, HELIO_OPTION_ID_HISTORY_BYTES);
    const int64_t least = HISTORY_PACKETS_MIN * helio_options_integer(options, HELIO_OPTION_ID_MTU);
    if (bytes == 0 || bytes >= least) {
        return 0;
    }
    return helio_fail(HELIO_ERR_OPTION,
                      "option history_bytes is 0 or at least %d times mtu, here %lld; %lld is "
                      "too small",
                      HISTORY_PACKETS_MIN, (long long)least, (long long)bytes);
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

static int open_stream(helio_tx_lane *lane, helio_clock clock) {
    helio_instance *instance = lane->base.instance;
    const helio_options *options = &lane->base.options;
    const helio_channel *channel = lane->base.channel;
    helio_tx_stream_config config = {
        .breathe = breathe,
        .on_ack = on_ack,
        .instance = instance->name,
        .endpoint = lane->base.endpoint.label,
        .tsi.port = channel->local.port,
        .destination_port = lane->base.endpoint.addresses[0].port,
        .address = channel->local,
        .group = lane->base.endpoint.addresses[0],
        .first_sequence = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_FIRST_SEQUENCE),
        .is_raw = helio_options_integer(options, HELIO_OPTION_ID_PAYLOAD) == HELIO_PAYLOAD_RAW,
        .max_packet_bytes = helio_lane_packet_bytes(&lane->base),
        .window_packets = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_SEND_WINDOW),
        .max_message_bytes =
            (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_MAX_MESSAGE_BYTES),
        .history_bytes = (uint64_t)helio_options_integer(options, HELIO_OPTION_ID_HISTORY_BYTES),
        .history_ns = helio_options_ns(options, HELIO_OPTION_ID_HISTORY_TIME),
        .history_dynamic =
            helio_options_integer(options, HELIO_OPTION_ID_HISTORY) == HELIO_HISTORY_DYNAMIC,
        .budget = &instance->history,
        .late_join = helio_options_integer(options, HELIO_OPTION_ID_LATE_JOIN),
        .has_checksums = !channel->driver->is_memory,
        .acks = (uint32_t)helio_options_integer(options, HELIO_OPTION_ID_ACKS),
        .acks_missing = (int)helio_options_integer(options, HELIO_OPTION_ID_ACKS_MISSING),
        .acks_warn_ns = helio_options_ns(options, HELIO_OPTION_ID_ACKS_WARN),
        .acker_expiry_ns = helio_options_ns(options, HELIO_OPTION_ID_ACKER_EXPIRY),
        .linger_ns = helio_options_ns(options, HELIO_OPTION_ID_LINGER),
        .heartbeat_min_ns = helio_options_ns(options, HELIO_OPTION_ID_HEARTBEAT_MIN),
        .heartbeat_max_ns = helio_options_ns(options, HELIO_OPTION_ID_HEARTBEAT_MAX),
        .ambient_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_AMBIENT_INTERVAL),
        .announce_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_ANNOUNCE_INTERVAL),
        .poll_interval_ns = helio_options_ns(options, HELIO_OPTION_ID_POLL_INTERVAL),
        .seed = helio_random_next(&instance->random),
        .repair_linger_ns = helio_options_ns(options, HELIO_OPTION_ID_REPAIR_LINGER),
    };
    const int64_t expiry_least_ns = EXPIRY_INTERVALS * config.ambient_interval_ns;
    if (!options->value[HELIO_OPTION_ID_ACKER_EXPIRY].given &&
        config.acker_expiry_ns < expiry_least_ns) {
        config.acker_expiry_ns = expiry_least_ns;
    }
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
    const helio_outlet outlet = {.context = lane, .send = send_packet};
    int error = check_history(lane);
    if (!error) {
        error = helio_tx_stream_create(&config, outlet, instance->stats, instance->counts, clock,
                                       &lane->stream);
        if (error == HELIO_ERR_OPTION) {
            error = fail_budget(lane);
        }
    }
    if (!error) {
        tell_refusing(lane);
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
    lane->next = instance->tx_lanes;
    instance->tx_lanes = lane;
    *out = lane;
    return 0;
}

int helio_tx_lane_acquire(helio_instance *instance, const helio_endpoint *endpoint,
                          helio_options *options, helio_clock clock, helio_tx_lane **out) {
    for (helio_tx_lane *lane = instance->tx_lanes; lane; lane = lane->next) {
        if (!lane->closing &&
            helio_lane_serves(&lane->base, endpoint, options, HELIO_ON_TRANSMITTER,
                              HELIO_OPTION_ID_SUBMIT_QUEUE)) {
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
        flush_channel(lane);
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
    flush_channel(lane);
    helio_lane_tend(&lane->base, clock);
    helio_tx_stream_destroy(lane->stream, clock);
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

/* ---- work ---- */

/* When to look for feedback again. */
static void plan_read(helio_tx_lane *lane, size_t count, int64_t now_ns) {
    if (count || lane->base.channel->driver->is_memory) {
        lane->heard_ns = count ? now_ns : lane->heard_ns;
        lane->read_due_ns = 0;
        return;
    }
    const bool is_quiet = now_ns - lane->heard_ns > FEEDBACK_QUIET_NS;
    lane->read_due_ns = now_ns + (is_quiet ? FEEDBACK_QUIET_INTERVAL_NS : FEEDBACK_INTERVAL_NS);
}

int helio_tx_lane_receive(helio_tx_lane *lane, helio_clock clock) {
    if (clock.now_ns < lane->read_due_ns) {
        return 0;
    }
    helio_channel *channel = lane->base.channel;
    helio_datagram
        datagrams[HELIO_CHANNEL_BATCH]; /* the instance's may be in use: a listener sends */
    const size_t count = channel->driver->receive(channel, datagrams, HELIO_CHANNEL_BATCH);
    for (size_t i = 0; i < count; i++) {
        helio_tx_stream_on_packet(lane->stream, datagrams[i].data, datagrams[i].length,
                                  &datagrams[i].source, clock);
    }
    plan_read(lane, count, clock.now_ns);
    return (int)count;
}

/* Whether new data should wait.  A source that outruns its receivers would otherwise push what they
 * miss out of its history; so many repairs waiting slow it down to what they take in.  Not for
 * ever: one that keeps crying must not stop the stream. */
static bool is_pressed(helio_tx_lane *lane, helio_clock clock) {
    if (helio_tx_stream_pressing(lane->stream) <= REPAIRS_AHEAD) {
        lane->held_since_ns = 0;
        return false;
    }
    if (!lane->held_since_ns) {
        lane->held_since_ns = clock.now_ns;
    }
    if (clock.now_ns - lane->held_since_ns < HOLD_NS) {
        return true;
    }
    lane->held_since_ns = 0;
    return false;
}

/* Puts a bounded number of the transmitter's messages into packets. */
static int drain(helio_tx_lane *lane, helio_transmitter *transmitter, size_t budget,
                 helio_clock clock) {
    helio_submit_queue *queue = &transmitter->queue;
    helio_submitted message;
    size_t bytes = 0;
    int count = 0;
    while (bytes < budget && helio_tx_lane_has_room(lane) &&
           helio_submit_queue_peek(queue, &message)) {
        if (message.submit_ns > clock.wall_ns) { /* submitted after this cycle began */
            clock = helio_clock_read(&lane->base.instance->clock);
        }
        if (!helio_tx_stream_has_room(lane->stream, message.length, clock)) {
            lane->stuck = true;
            break;
        }
        helio_tx_stream_append(lane->stream, transmitter->topic, message.data, message.length,
                               message.submit_ns, clock);
        bytes += message.length + MESSAGE_COST;
        helio_submit_queue_drop(queue);
        count++;
    }
    if (count) {
        transmitter->unflushed = true;
        helio_submit_queue_release(queue);
    }
    lane->debt_bytes += bytes;
    return count;
}

/* Takes messages off the queues.  What one cycle sends beyond its share (a message is never cut
 * short) is made good by the next ones, so that what the network brings meanwhile is read. */
static int drain_all(helio_tx_lane *lane, helio_clock clock) {
    const size_t budget = PACKETS_PER_CYCLE * (size_t)helio_lane_packet_bytes(&lane->base);
    int drained = 0;
    lane->debt_bytes -= budget < lane->debt_bytes ? budget : lane->debt_bytes;
    if (lane->debt_bytes < budget) {
        for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
            drained += t->queue.ring.memory ? drain(lane, t, budget, clock) : 0;
        }
    }
    return drained;
}

/* Everything appended has been given to the network. */
static void hand_over(helio_tx_lane *lane) {
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (t->unflushed) {
            t->unflushed = false;
            helio_submit_queue_hand_over(&t->queue);
            serve_waits(lane, t);
        }
    }
}

static bool someone_waits(const helio_tx_lane *lane) {
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (atomic_load_explicit(&t->queue.progress.sleepers, memory_order_relaxed) ||
            helio_acked_is_waited_for(&t->acked)) {
            return true;
        }
    }
    return false;
}

bool helio_tx_lane_look_for_room(helio_tx_lane *lane) {
    helio_channel *channel = lane->base.channel;
    lane->room = channel->driver->room ? channel->driver->room(channel) : SIZE_MAX;
    return lane->room >= HELIO_TX_LANE_ROOM_MIN;
}

bool helio_tx_lane_takes(helio_tx_lane *lane, size_t length) {
    return helio_tx_lane_has_room(lane) &&
           helio_tx_stream_has_room(lane->stream, length,
                                    helio_clock_read(&lane->base.instance->clock));
}

/* A connection stands anew: the other side is told at once where the stream is. */
static void greet(helio_tx_lane *lane) {
    if (lane->base.connected) {
        lane->base.connected = false;
        helio_tx_stream_greet(lane->stream);
    }
}

int helio_tx_lane_work(helio_tx_lane *lane, helio_clock clock) {
    greet(lane);
    tell_refusing(lane);
    lane->stuck = false;
    const bool takes = helio_tx_lane_has_room(lane) && !is_pressed(lane, clock);
    const int drained = takes ? drain_all(lane, clock) : 0;
    lane->open = lane->open || drained;
    const bool whole =
        lane->open && (!takes || !helio_tx_lane_has_work(lane) || someone_waits(lane));
    if (whole) {
        helio_tx_stream_flush(lane->stream, helio_clock_read(&lane->base.instance->clock));
        lane->open = false;
    }
    const int done = drained + poll_stream(lane, clock);
    flush_channel(lane);
    if (whole) {
        hand_over(lane);
    }
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        serve_waits(lane, t); /* new ones may wait for what was acknowledged long ago */
    }
    return done;
}

void helio_tx_lane_make_way(helio_tx_lane *lane, helio_clock clock) {
    greet(lane);
    while (is_pressed(lane, clock)) {
        poll_stream(lane, clock);
        flush_channel(lane);
        clock = helio_clock_read(&lane->base.instance->clock);
    }
}

void helio_tx_lane_flush(helio_tx_lane *lane, helio_clock clock) {
    helio_tx_stream_flush(lane->stream, clock);
    flush_channel(lane);
    hand_over(lane);
}

static helio_transmitter_stats *record_of(const helio_transmitter *transmitter) {
    return helio_tx_topic_object(transmitter->topic)->record;
}

void helio_tx_lane_refresh(helio_tx_lane *lane, helio_clock clock) {
    /* Transmitters of one topic share its record. */
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        helio_set(&record_of(t)->queue_bytes, 0);
    }
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        const uint64_t refused = atomic_load_explicit(&t->queue.refused, memory_order_relaxed);
        helio_count(&record_of(t)->queue_bytes, helio_submit_queue_bytes(&t->queue));
        helio_count(&lane->base.instance->counts->send_would_block, refused - t->refused_counted);
        t->refused_counted = refused;
    }
    flush_channel(lane);
    helio_tx_stream_tend(lane->stream, clock);
    helio_lane_tend(&lane->base, clock);
}

bool helio_tx_lane_has_work(const helio_tx_lane *lane) {
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        const bool can_send = !lane->stuck; /* else not until an acknowledgement comes */
        if (helio_acked_has_new_wait(&t->acked) ||
            (can_send && t->queue.ring.memory && helio_ring_used(&t->queue.ring))) {
            return true;
        }
    }
    return false;
}
