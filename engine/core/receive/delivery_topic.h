/* A topic as one subscription gets it from one stream, and the shared state of the ways to deliver.
 * Everybody else has delivery.h. */
#ifndef HELIO_RECEIVE_DELIVERY_TOPIC_H
#define HELIO_RECEIVE_DELIVERY_TOPIC_H

#include "receive/ahead.h"
#include "receive/delivery.h"

enum {
    HELIO_DELIVERY_RAW_ID = 0, /* the topic of all packets of a raw endpoint */
};

struct helio_delivery_topic {
    helio_subscription *subscription;
    helio_delivery_topic *next; /* another subscription to the same topic */
    uint64_t expected;          /* number of the next message */
    bool has_joined;            /* a number was seen: expected is known */
    /* Not joined yet, and `expected` is where it begins: subscribed before the stream's first
     * packet, or before the stream came back. */
    bool has_start;
    /* When the stream ended, the application had not acknowledged all messages before `expected`:
     * they may come once more. */
    bool is_owed;
    uint64_t missed_at; /* helio_delivery.missed when the number was last known */
    uint64_t slack;     /* messages that may be missing beyond the missed packets */
    bool is_met;        /* the sink knows the stream, the object is open */
    bool has_conflict;  /* reported already */
    uint32_t stream;
    uint64_t grant_at;     /* for a sink that holds nothing: grant more from here on */
    helio_unacked unacked; /* acknowledged by the application */
    uint64_t ahead_count;  /* messages handed over before their turn */
    /* Latency is measured at all; and of the present messages. */
    bool is_measuring, is_sampled;
    helio_stats_object object;
    helio_ahead ahead; /* those messages, by number */
    helio_delivery_topic *next_acked;
    uint64_t granted; /* the first message the source may not send yet, as last sent; 0: none */
    bool has_granted;
    helio_delivery_topic *next_granting;
    bool has_transit; /* of the previous packet */
    int64_t transit_ns;
    uint64_t jitter_16; /* 16 times the estimate (RFC 3550, A.8) */
};

static inline helio_receiver_stats *helio_delivery_stats(helio_delivery_topic *topic) {
    return topic->object.record;
}

/* ---- delivery_numbers.c ---- */

/* As helio_delivery_reach, when the topic has not begun or is behind. */
bool helio_delivery_begin_at(helio_delivery *delivery, helio_delivery_topic *topic, uint64_t number,
                             helio_moment moment);
/* The stream says that `number`, which is plausible, is the topic's next.  False: out of memory. */
static inline bool helio_delivery_reach(helio_delivery *delivery, helio_delivery_topic *topic,
                                        uint64_t number, helio_moment moment) {
    return (topic->has_joined && number <= topic->expected) ||
           helio_delivery_begin_at(delivery, topic, number, moment);
}
/* The topic's number is known as of now. */
static inline void helio_delivery_confirm(const helio_delivery *delivery,
                                          helio_delivery_topic *topic) {
    topic->missed_at = delivery->missed;
    topic->slack = 0;
}
/* A batch of this topic or of one after it in the chain may begin with `number`, although one of
 * them does not expect it. */
bool helio_delivery_believes(const helio_delivery *delivery, const helio_delivery_topic *topic,
                             uint64_t number);
/* `number` is plausible as the next of these topics, or was. */
bool helio_delivery_believes_entry(const helio_delivery *delivery,
                                   const helio_delivery_topic *topics, uint64_t number);
/* The same of a batch whose turn has not come. */
bool helio_delivery_believes_ahead(const helio_delivery *delivery,
                                   const helio_delivery_topic *topic, uint64_t number);
/* Messages up to `number` that were handed over ahead have their turn now. */
void helio_delivery_pass_ahead(helio_delivery_topic *topic, uint64_t number);

/* ---- delivery.c ---- */

/* The topic appears for the first time: opens the statistics and notifies the sink. */
bool helio_delivery_meet(helio_delivery *delivery, helio_delivery_topic *topic,
                         helio_moment moment);
/* The batch being passed has this header: when it was closed, and when it was to be sent. */
static inline void helio_delivery_learn_times(helio_delivery *delivery,
                                              const helio_tsdu_header *header) {
    delivery->closed_ns =
        header->submit_ns && header->closed_after_ns != HELIO_TSDU_CLOSED_AFTER_MAX
            ? header->submit_ns + (int64_t)header->closed_after_ns
            : 0;
    delivery->intended_ns = header->intended_ns;
}
/* What the sink did not take waits in the window: the application takes more in a moment. */
static inline bool helio_delivery_lets_wait(const helio_delivery *delivery) {
    return delivery->window->loan->is_short && helio_rxw_may_lend(delivery->window);
}
/* Passes messages of a packet, which have the stream's number, to the topic's sink; returns how many it
 * took. */
static inline size_t helio_delivery_hand_over(const helio_delivery *delivery,
                                              const helio_delivery_topic *topic,
                                              const helio_message *messages, size_t count,
                                              const helio_rxw_packet *packet) {
    const helio_sink *sink = &topic->subscription->sink;
    if (!packet->lasts || packet->is_fragment || !sink->on_lasting_messages) {
        return sink->on_messages(sink->context, messages, count);
    }
    const size_t taken = sink->on_lasting_messages(sink->context, messages, count);
    return taken == count || helio_delivery_lets_wait(delivery)
               ? taken
               : taken + sink->on_messages(sink->context, messages + taken, count - taken);
}
/* The topics with this identifier; NULL: none. */
static inline helio_delivery_topic *helio_delivery_find(helio_delivery *delivery, uint64_t id) {
    if (!delivery->recent || delivery->recent_id != id) {
        delivery->recent = helio_map_get(&delivery->topics, id);
        delivery->recent_id = id;
    }
    return delivery->recent;
}
/* Adds a fragment; the APDU is whole when ready_sequence is `sequence` afterwards.  TAKEN or
 * DAMAGED. */
helio_delivery_result helio_delivery_put_together(helio_delivery *delivery, uint64_t sequence,
                                                  const helio_rxw_packet *packet);

/* ---- delivery_stages.c ---- */

/* Before messages are handed over: decides whether they are sampled. */
void helio_delivery_draw(helio_delivery *delivery, helio_delivery_topic *topic);
/* `count` measured messages of a packet were taken; `submit_ns` belongs to the oldest. */
void helio_delivery_measure(const helio_delivery *delivery, helio_delivery_topic *topic,
                            int64_t submit_ns, uint64_t count, const helio_rxw_packet *packet,
                            helio_moment moment);

/* As draw; nearly free while latency is not measured. */
static inline void helio_delivery_begin_measuring(helio_delivery *delivery,
                                                  helio_delivery_topic *topic,
                                                  helio_moment moment) {
    int64_t *measured_ns = topic->subscription->sink.measured_ns;
    topic->is_measuring = topic->object.histogram[HELIO_RECEIVER_TOTAL_LATENCY] ||
                          topic->object.histogram[HELIO_RECEIVER_ORDER_LATENCY];
    topic->is_sampled = false;
    if (HELIO_STATS_COUNTING && topic->is_measuring) {
        helio_delivery_draw(delivery, topic);
    }
    if (measured_ns) {
        *measured_ns = topic->is_sampled ? moment.now_ns : HELIO_NOT_MEASURED;
    }
}

/* ---- counting what was taken ---- */

/* Its sink has a queue: what it takes waits there. */
static inline bool helio_delivery_keeps_messages(const helio_delivery_topic *topic) {
    return topic->subscription->sink.read_gauge != NULL;
}

/* Counts `count` messages of a packet that were taken, with `bytes` together.  joined: numbers they
 * used beyond their own. */
static inline void helio_delivery_count_taken(helio_delivery *delivery, helio_delivery_topic *topic,
                                              size_t count, uint64_t bytes, uint64_t joined,
                                              bool recovered) {
    helio_receiver_stats *stats = helio_delivery_stats(topic);
    helio_stats_begin(stats);
    helio_count(&stats->messages_delivered, count);
    helio_count(helio_delivery_keeps_messages(topic) ? &stats->queue_messages
                                                     : &stats->messages_taken,
                count);
    helio_set(&stats->messages_ahead, topic->ahead_count);
    helio_count(&stats->bytes_delivered, bytes);
    if (joined) {
        helio_count(&stats->fragments_joined, joined);
    }
    if (recovered) {
        helio_count(&stats->messages_recovered, count);
    }
    helio_set(&stats->next_message, topic->expected);
    helio_stats_end(stats);
    helio_count(&delivery->shared->instance->messages_received, count);
    helio_count(&delivery->shared->instance->bytes_received, bytes);
}

/* The same, and measures them; `first` and those after it.  Inline: it has nine arguments, and the
 * fast path knows some of them. */
static inline void helio_delivery_count(helio_delivery *delivery, helio_delivery_topic *topic,
                                        const helio_message *first, size_t count, uint64_t bytes,
                                        uint64_t joined, const helio_rxw_packet *packet,
                                        helio_moment moment) {
    helio_delivery_count_taken(delivery, topic, count, bytes, joined, packet->recovered);
    if (topic->is_measuring) {
        helio_delivery_measure(delivery, topic, first->submit_ns, count, packet, moment);
    }
}

/* ---- delivery_credit.c ---- */

/* A topic begins, or ends. */
void helio_delivery_begin_granting(helio_delivery *delivery, helio_delivery_topic *topic);
void helio_delivery_end_granting(helio_delivery *delivery, helio_delivery_topic *topic);

/* ---- delivery_raw.c ---- */

/* As helio_delivery_pass. */
helio_delivery_result helio_delivery_pass_raw(helio_delivery *delivery, uint64_t sequence,
                                              const helio_rxw_packet *packet, helio_moment moment);
/* As helio_delivery_on_packets_lost.  Numbers are packets', so what is lost is known at once. */
void helio_delivery_lose_raw(helio_delivery *delivery, uint64_t sequence, uint64_t count,
                             helio_moment moment);

#endif
