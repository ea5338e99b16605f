#include "runtime/tx_lane.h"

#include "runtime/rx_lane.h"
#include "runtime/tx_lane_parts.h"
#include "send/topics.h"

/* Requests for repair are looked for this often where a look is a system call: seldom while there
 * were none for a while. */
#define FEEDBACK_INTERVAL_NS (5 * HELIO_MICROSECOND)
#define FEEDBACK_QUIET_INTERVAL_NS (30 * HELIO_MICROSECOND)
#define FEEDBACK_QUIET_NS (10 * HELIO_MILLISECOND)

#define ROOM_WAIT_NS (5 * HELIO_MILLISECOND)   /* longest wait for room within a message */
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
    RUN_MAX = 64,     /* messages put into a packet at once */
    MESSAGE_COST = 8, /* bytes a message takes in a packet beside its own */
};

/* ---- packets out ---- */

static void record_send(helio_tx_lane *lane, int64_t duration_ns) {
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (t->unflushed) {
            helio_record(t->topic->object.histogram[HELIO_TRANSMITTER_SEND_LATENCY], duration_ns,
                         1);
        }
    }
}

void helio_tx_lane_flush_channel(helio_tx_lane *lane) {
    if (!lane->packets_queued) {
        return;
    }
    lane->packets_queued = 0;
    const helio_driver *driver = lane->base.channel->driver;
    if (helio_stats_highest_level(lane->base.instance->stats) < 2) {
        driver->flush(lane->base.channel);
        return;
    }
    /* By the engine's own clock: a lone message over memory takes hardly longer than two questions
     * to the kernel's. */
    helio_clock_source *moment = &lane->base.instance->clock;
    const int64_t start_ns = helio_clock_read(moment).now_ns;
    driver->flush(lane->base.channel);
    record_send(lane, helio_clock_read(moment).now_ns - start_ns);
}

int helio_tx_lane_send(void *context, const helio_address *to, const void *packet, size_t length,
                       bool stable) {
    helio_tx_lane *lane = context;
    const unsigned copies = to ? 1 : (unsigned)lane->base.endpoint.addresses_count;
    if (lane->packets_queued + copies > HELIO_CHANNEL_BATCH) {
        helio_tx_lane_flush_channel(lane);
    }
    lane->packets_queued += copies;
    lane->unheard++;
    lane->room -= lane->room > 0;
    return lane->base.channel->driver->send(lane->base.channel, to, packet, length, stable);
}

__attribute__((noinline)) static int send_now_measured(helio_tx_lane *lane, const void *packet,
                                                       size_t length) {
    helio_clock_source *clock = &lane->base.instance->clock;
    const int64_t start_ns = helio_clock_read(clock).now_ns;
    const int result = lane->base.channel->driver->send_now(lane->base.channel, packet, length);
    record_send(lane, helio_clock_read(clock).now_ns - start_ns);
    return result;
}

int helio_tx_lane_send_now(void *context, const void *packet, size_t length) {
    helio_tx_lane *lane = context;
    lane->unheard++;
    lane->room -= lane->room > 0;
    return helio_stats_highest_level(lane->base.instance->stats) < 2
               ? lane->base.channel->driver->send_now(lane->base.channel, packet, length)
               : send_now_measured(lane, packet, length);
}

int helio_tx_lane_poll_stream(helio_tx_lane *lane, helio_moment moment) {
    return moment.now_ns >= helio_tx_stream_next_deadline_ns(lane->stream)
               ? helio_tx_stream_poll(lane->stream, moment)
               : 0;
}

/* A connection is full: what it took goes on its way, for a moment.  When that was of no use (its
 * reader may be this very engine), the rest of the message goes on without. */
static void wait_for_room(helio_tx_lane *lane) {
    helio_moment moment = helio_clock_read(&lane->base.instance->clock);
    if (moment.now_ns < lane->wait_after_ns) {
        return;
    }
    const bool is_asked_to = lane->base.options.transmitter.ring_wait != 0;
    const int64_t until_ns = moment.now_ns + (is_asked_to ? RING_WAIT_NS : ROOM_WAIT_NS);
    while (!helio_tx_lane_has_room(lane)) {
        if (moment.now_ns >= until_ns) {
            lane->wait_after_ns = is_asked_to ? 0 : moment.now_ns + WAIT_AGAIN_NS;
            return;
        }
        helio_tx_lane_receive(lane, moment);
        lane->base.channel->driver->flush(lane->base.channel);
        helio_lane_tend(&lane->base, moment);
        moment = helio_clock_read(&lane->base.instance->clock);
    }
}

/* A long message is being cut, and somebody asks for what was sent a good while ago: what comes
 * next would push it out of the history. */
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

void helio_tx_lane_breathe(void *context, int64_t not_before_ns) {
    helio_tx_lane *lane = context;
    helio_moment moment;
    do {
        helio_tx_lane_flush_channel(lane);
        moment = helio_clock_read(&lane->base.instance->clock);
        helio_tx_lane_receive(lane, moment);
        helio_tx_lane_poll_stream(lane, moment);
        helio_tx_lane_make_way(lane, moment);
        helio_rx_lanes_work_amid_send(lane->base.instance, moment);
        wait_for_room(lane);
    } while (moment.now_ns < not_before_ns || (not_before_ns && must_wait(lane, moment.now_ns)));
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

int helio_tx_lane_receive(helio_tx_lane *lane, helio_moment moment) {
    lane->unheard = 0;
    if (moment.now_ns < lane->read_due_ns) {
        return 0;
    }
    helio_channel *channel = lane->base.channel;
    helio_datagram
        datagrams[HELIO_CHANNEL_BATCH]; /* the instance's may be in use: a listener sends */
    const size_t count = channel->driver->receive(channel, datagrams, HELIO_CHANNEL_BATCH);
    if (count > 0) { /* the cycle's time may be from before they came */
        helio_tx_stream_read_at(lane->stream, helio_clock_read(&lane->base.instance->clock));
    }
    for (size_t i = 0; i < count; i++) {
        helio_tx_stream_on_packet(lane->stream, datagrams[i].data, datagrams[i].length,
                                  &datagrams[i].source, moment);
    }
    plan_read(lane, count, moment.now_ns);
    return (int)count;
}

helio_moment helio_tx_lane_hear(helio_tx_lane *lane) {
    helio_tx_lane_flush_channel(lane);
    const helio_moment moment = helio_clock_read(&lane->base.instance->clock);
    helio_tx_lane_receive(lane, moment);
    helio_tx_lane_poll_stream(lane, moment);
    helio_tx_lane_make_way(lane, moment);
    helio_tx_lane_flush_channel(lane);
    helio_tx_lane_look(lane);
    return moment;
}

/* Messages of the transmitter wait for this; its topic's credit holds back no other topic. */
static void note_held(helio_tx_lane *lane, helio_admission cause) {
    if (cause != HELIO_ADMIT_CREDIT) {
        lane->held = cause;
    }
}

/* Messages put into packets in one cycle. */
typedef struct drained {
    uint64_t count;
    size_t bytes; /* with MESSAGE_COST for each */
} drained;

/* Takes those behind a message that join its packet.  A message that joins sends nothing, so the
 * answer for the first one holds for them, as in a list (transmitter.c).  `first`: when that one
 * was submitted; none of them was before, nor after the cycle began. */
static void drain_run(const helio_tx_lane *lane, helio_transmitter *transmitter, int64_t first_ns,
                      size_t budget, helio_moment moment, drained *all) {
    helio_submit_queue *queue = &transmitter->queue;
    helio_buffer messages[RUN_MAX];
    const size_t left = all->bytes < budget ? budget - all->bytes : 0;
    const size_t room = helio_tx_stream_room(lane->stream);
    const helio_submit_run run = {
        .from_ns = first_ns,
        .to_ns = moment.wall_ns,
        .room = room < left ? room : left,
        .each = HELIO_TSDU_MESSAGE_HEADER,
        .limit = RUN_MAX,
    };
    const size_t shown = helio_submit_queue_peek_run(queue, &run, messages);
    const size_t taken =
        shown == 0 ? 0
                   : helio_tx_stream_append_run(lane->stream, transmitter->topic, messages, shown,
                                                (size_t)helio_lane_packet_bytes(&lane->base) / 2,
                                                first_ns, 0, moment);
    helio_submit_queue_drop_run(queue, taken);
    all->count += taken;
    for (size_t i = 0; i < taken; i++) {
        all->bytes += messages[i].length + MESSAGE_COST;
    }
}

/* Puts a bounded number of the transmitter's messages into packets. */
static int drain_ring(helio_tx_lane *lane, helio_transmitter *transmitter, size_t budget,
                      helio_moment moment) {
    helio_submit_queue *queue = &transmitter->queue;
    helio_submitted message;
    const size_t packet_bytes = helio_lane_packet_bytes(&lane->base);
    const bool is_paced = helio_tx_stream_is_paced(lane->stream);
    uint64_t counted = 0;
    drained all = {0, 0};
    while (all.bytes < budget && helio_submit_queue_peek(queue, &message)) {
        if (is_paced || message.submit_ns > moment.wall_ns) { /* submitted after this cycle began */
            moment = helio_clock_read(&lane->base.instance->clock);
        }
        const helio_admission answer =
            helio_tx_lane_admit(lane, transmitter->topic, message.length, moment);
        if (answer != HELIO_ADMIT_GO) {
            note_held(lane, answer);
            break;
        }
        if (message.length > packet_bytes / 2) { /* the books may be looked at while it is cut */
            transmitter->taken += all.count - counted;
            counted = all.count;
        }
        helio_tx_stream_append_intended(lane->stream, transmitter->topic, message.data,
                                        message.length, message.submit_ns, message.intended_ns,
                                        moment);
        all.bytes += message.length + MESSAGE_COST;
        helio_submit_queue_drop(queue);
        all.count++;
        if (!is_paced) { /* with a rate each message is asked about */
            drain_run(lane, transmitter, message.submit_ns, budget, moment, &all);
        }
    }
    transmitter->taken += all.count - counted;
    if (all.count) {
        transmitter->unflushed = true;
        helio_submit_queue_release(queue);
    }
    lane->debt_bytes += all.bytes;
    return (int)all.count;
}

/* Takes the message at the front of a kept queue, if there is one and it need not wait. */
static bool take_kept(helio_tx_lane *lane, const helio_transmitter *transmitter,
                      helio_submit_queue *queue, helio_submitted *message, helio_moment moment) {
    size_t length;
    bool is_taken = false;
    helio_submit_queue_lock(queue);
    helio_submit_queue_expire(queue, moment.now_ns);
    if (helio_kept_queue_front(queue->kept, &length)) {
        const helio_admission answer =
            helio_tx_lane_admit(lane, transmitter->topic, length, moment);
        if (answer == HELIO_ADMIT_GO) {
            is_taken = helio_submit_queue_take(queue, message);
        } else {
            note_held(lane, answer);
        }
    }
    helio_submit_queue_unlock(queue);
    return is_taken;
}

/* As drain_ring, of a kept queue. */
static int drain_kept(helio_tx_lane *lane, helio_transmitter *transmitter, size_t budget,
                      helio_moment moment) {
    helio_submitted message;
    uint64_t count = 0;
    size_t bytes = 0;
    while (bytes < budget && take_kept(lane, transmitter, &transmitter->queue, &message, moment)) {
        transmitter->in_hand = 1;
        helio_tx_stream_append_intended(lane->stream, transmitter->topic, message.data,
                                        message.length, message.submit_ns, message.intended_ns,
                                        moment);
        transmitter->in_hand = 0;
        bytes += message.length + MESSAGE_COST;
        count++;
        moment = helio_clock_read(&lane->base.instance->clock);
    }
    if (count) {
        transmitter->unflushed = true;
        helio_submit_queue_release(&transmitter->queue);
    }
    lane->debt_bytes += bytes;
    return (int)count;
}

static int drain(helio_tx_lane *lane, helio_transmitter *transmitter, size_t budget,
                 helio_moment moment) {
    if (lane->awaits_credit) {
        helio_tx_lane_hold_topic(lane, transmitter, moment);
    }
    return transmitter->queue.ring.memory ? drain_ring(lane, transmitter, budget, moment)
           : transmitter->queue.kept      ? drain_kept(lane, transmitter, budget, moment)
                                          : 0;
}

bool helio_tx_lane_drain_kept(helio_tx_lane *lane, helio_transmitter *transmitter,
                              helio_moment moment) {
    return drain(lane, transmitter, SIZE_MAX, moment) > 0;
}

/* Whoever was first is last now. */
static void rotate(helio_tx_lane *lane) {
    helio_transmitter *first = lane->transmitters;
    if (!first || !first->next) {
        return;
    }
    helio_transmitter **end = &lane->transmitters;
    while (*end) {
        end = &(*end)->next;
    }
    *end = first;
    lane->transmitters = first->next;
    first->next = NULL;
}

/* With a rate: what credit there is goes to the transmitters in turn. */
static int drain_in_turn(helio_tx_lane *lane, size_t budget, helio_moment moment) {
    int drained = 0;
    for (helio_transmitter *t = lane->transmitters; t && !helio_tx_lane_is_paced_out(lane);
         t = t->next) {
        drained += drain(lane, t, budget, moment);
    }
    if (helio_tx_lane_is_paced_out(lane)) {
        rotate(lane);
    } else if (!helio_tx_lane_has_work(lane)) {
        helio_tx_stream_rest(lane->stream, moment);
    }
    return drained;
}

/* Takes messages off the queues.  What one cycle sends beyond its share (a message is never cut
 * short) is made good by the next ones, so that what the network brings meanwhile is read. */
static int drain_all(helio_tx_lane *lane, helio_moment moment) {
    const size_t budget = PACKETS_PER_CYCLE * (size_t)helio_lane_packet_bytes(&lane->base);
    int drained = 0;
    lane->debt_bytes -= budget < lane->debt_bytes ? budget : lane->debt_bytes;
    if (lane->debt_bytes >= budget) {
        return 0;
    }
    if (helio_tx_stream_is_paced(lane->stream) || lane->base.instance->waits_within) {
        return drain_in_turn(lane, budget, moment);
    }
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        drained += drain(lane, t, budget, moment);
    }
    if (helio_admission_is_of_acks(lane->held)) { /* the next room goes to another one first */
        rotate(lane);
    }
    return drained;
}

/* Everything appended has been given to the network. */
static void hand_over(helio_tx_lane *lane) {
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        if (t->unflushed) {
            t->unflushed = false;
            helio_submit_queue_hand_over(&t->queue);
            helio_tx_lane_serve_waits(lane, t);
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

/* A connection stands anew: the other side is told at once where the stream is. */
void helio_tx_lane_greet(helio_tx_lane *lane, helio_moment moment) {
    if (lane->base.connected) {
        lane->base.connected = false;
        helio_tx_stream_greet(lane->stream, moment);
    }
}

int helio_tx_lane_work(helio_tx_lane *lane, helio_moment moment) {
    helio_tx_lane_greet(lane, moment);
    helio_tx_lane_tell_refusing(lane);
    helio_hold_end(helio_tx_stream_hold(lane->stream), moment.wall_ns);
    helio_tx_lane_look(lane);
    lane->held = helio_tx_lane_admit_any(lane, moment);
    const bool takes = lane->held == HELIO_ADMIT_GO;
    const int drained = takes ? drain_all(lane, moment) : 0;
    lane->open = lane->open || drained;
    const bool whole =
        lane->open && (!takes || !helio_tx_lane_has_work(lane) || someone_waits(lane));
    if (whole) {
        helio_tx_stream_flush(lane->stream, helio_clock_read(&lane->base.instance->clock));
        lane->open = false;
    }
    if (lane->held != HELIO_ADMIT_GO) {
        helio_tx_lane_hold(lane, moment);
    }
    const int done = drained + helio_tx_lane_poll_stream(lane, moment);
    helio_tx_lane_flush_channel(lane);
    if (whole) {
        hand_over(lane);
    }
    if (lane->held != HELIO_ADMIT_GO) {
        if (helio_tx_lane_has_messages(lane)) {
            helio_tx_lane_note_wait(lane, lane->held, moment.now_ns);
        }
    } else if (whole) {
        helio_congestion_rest(&lane->congestion);
    }
    helio_tx_lane_show(lane, lane->held);
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        helio_tx_lane_serve_waits(lane,
                                  t); /* new ones may wait for what was acknowledged long ago */
    }
    return done;
}

void helio_tx_lane_flush(helio_tx_lane *lane, helio_moment moment) {
    helio_tx_stream_flush(lane->stream, moment);
    helio_tx_lane_flush_channel(lane);
    hand_over(lane);
}

static helio_transmitter_stats *record_of(const helio_transmitter *transmitter) {
    return helio_tx_topic_object(transmitter->topic)->record;
}

/* How long the oldest message of its queue has waited. */
static uint64_t oldest_age(helio_transmitter *transmitter, helio_moment moment) {
    helio_submit_queue *queue = &transmitter->queue;
    helio_submitted front;
    int64_t age_ns = 0;
    if (queue->kept) {
        helio_submit_queue_lock(queue);
        age_ns = moment.now_ns - helio_kept_queue_oldest_ns(queue->kept, moment.now_ns);
        helio_submit_queue_unlock(queue);
    } else if (queue->ring.memory && helio_submit_queue_peek(queue, &front)) {
        age_ns = moment.wall_ns - front.submit_ns;
    }
    return age_ns > 0 ? (uint64_t)age_ns : 0;
}

void helio_tx_lane_refresh(helio_tx_lane *lane, helio_moment moment) {
    /* Transmitters of one topic share its record. */
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        helio_set(&record_of(t)->queue_bytes, 0);
        helio_set(&record_of(t)->queue_limit_bytes, 0);
        helio_set(&record_of(t)->queue_age, 0);
        if (t->queue.kept) {
            helio_set(&record_of(t)->queue_messages, 0);
        }
    }
    for (helio_transmitter *t = lane->transmitters; t; t = t->next) {
        const uint64_t refused = atomic_load_explicit(&t->queue.refused, memory_order_relaxed);
        helio_count(&record_of(t)->queue_bytes, helio_submit_queue_bytes(&t->queue));
        helio_count(&record_of(t)->queue_limit_bytes, t->queue.ring.capacity);
        helio_count(&lane->base.instance->counts->send_would_block, refused - t->refused_counted);
        t->refused_counted = refused;
        if (t->queue.kept) {
            helio_count(&record_of(t)->queue_messages, helio_kept_queue_messages(t->queue.kept));
        }
        helio_peak(&record_of(t)->queue_age, oldest_age(t, moment));
        helio_transmitter_refresh(t, false, moment);
    }
    for (const helio_transmitter *t = lane->transmitters; t; t = t->next) {
        helio_transmitter_show(t);
    }
    helio_tx_lane_flush_channel(lane);
    helio_tx_lane_tend_log(lane, moment);
    helio_tx_stream_tend(lane->stream, moment);
    helio_tx_lane_tell_congestion(lane, moment);
    helio_lane_tend(&lane->base, moment);
    helio_tx_stream_note_unsent(lane->stream, lane->base.channel->counters.data_errors);
}
