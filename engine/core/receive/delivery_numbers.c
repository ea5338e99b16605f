/* Which message a topic expects next: where it begins, what is lost when the stream is further on,
 * which numbers can be true, and what of it outlives the stream.
 *
 * A number can be true when no more messages are missing than the packets missed since the topic's
 * number was last known could have held.  `missed` counts those packets for the whole stream, so
 * that a batch in order costs nothing; a topic notes where the count was at each jump, and at each
 * TOPICS entry. */
#include <inttypes.h>

#include "receive/delivery_topic.h"

enum { BATCH_MAX = UINT16_MAX }; /* most messages one packet can begin */

/* No topic gets as far: what claims to is damaged, or forged. */
#define NUMBER_MAX (UINT64_MAX >> 1)

/* ---- losses ---- */

/* Messages from the one expected up to `number` will not come. */
static void lose_run(helio_delivery *delivery, helio_delivery_topic *topic, uint64_t number,
                     helio_moment moment) {
    const uint64_t first = topic->expected, count = number - first;
    helio_receiver_stats *stats = helio_delivery_stats(topic);
    topic->expected = number;
    delivery->has_credit_news = delivery->granting_count > 0;
    helio_stats_begin(stats);
    helio_count(&stats->messages_lost, count);
    helio_set(&stats->next_message, number);
    helio_stats_end(stats);
    const uint64_t args[4] = {first, count};
    helio_stats_event(delivery->shared->stats, moment.wall_ns, HELIO_EVENT_MESSAGES_LOST,
                      topic->object.slot, args,
                      "%" PRIu64 " messages of %s lost from number %" PRIu64, count,
                      topic->subscription->name, first);
    const helio_sink *sink = &topic->subscription->sink;
    if (sink->on_loss) {
        sink->on_loss(sink->context,
                      &(helio_loss){.first = first, .count = count, .stream = topic->stream});
    }
}

void helio_delivery_pass_ahead(helio_delivery_topic *topic, uint64_t number) {
    helio_receiver_stats *stats = helio_delivery_stats(topic);
    topic->ahead_count -= number - topic->expected;
    topic->expected = number;
    helio_stats_begin(stats);
    helio_set(&stats->next_message, number);
    helio_set(&stats->messages_ahead, topic->ahead_count);
    helio_stats_end(stats);
}

static void lose_up_to(helio_delivery *delivery, helio_delivery_topic *topic, uint64_t number,
                       helio_moment moment) {
    while (topic->expected < number) {
        const uint64_t run = helio_ahead_run(&topic->ahead, topic->expected);
        const uint64_t end = run < number ? run : number;
        if (helio_ahead_has(&topic->ahead, topic->expected)) {
            helio_delivery_pass_ahead(topic, end);
        } else {
            lose_run(delivery, topic, end, moment);
        }
    }
    helio_ahead_trim(&topic->ahead, number);
}

/* ---- numbers that can be true ---- */

/* No more messages are missing before `number` than can be. */
static bool is_explained(const helio_delivery *delivery, const helio_delivery_topic *topic,
                         uint64_t number, uint64_t more_missed) {
    if (number <= topic->expected) {
        return true;
    }
    const uint64_t lost = number - topic->expected;
    const uint64_t missed = delivery->missed - topic->missed_at + more_missed;
    return lost <= topic->slack || (lost - topic->slack - 1) / BATCH_MAX < missed;
}

/* Where the topic stands is known for certain. */
static bool is_certain(const helio_delivery *delivery, const helio_delivery_topic *topic) {
    return topic->has_joined || (topic->has_start && delivery->resumed_at != 0);
}

static bool is_credible(const helio_delivery *delivery, const helio_delivery_topic *topic,
                        uint64_t number, uint64_t more_missed) {
    return number <= NUMBER_MAX &&
           (!is_certain(delivery, topic) || is_explained(delivery, topic, number, more_missed));
}

bool helio_delivery_believes(const helio_delivery *delivery, const helio_delivery_topic *topic,
                             uint64_t number) {
    for (; topic; topic = topic->next) {
        /* Numbers never go back, but for packets that are passed once more. */
        if (topic->has_joined && number < topic->expected &&
            delivery->first_sequence >= delivery->resumed_at) {
            return false;
        }
        if (!is_credible(delivery, topic, number, 0)) {
            return false;
        }
    }
    return true;
}

bool helio_delivery_believes_entry(const helio_delivery *delivery,
                                   const helio_delivery_topic *topics, uint64_t number) {
    for (const helio_delivery_topic *topic = topics; topic; topic = topic->next) {
        if (!is_credible(delivery, topic, number, 0)) {
            return false;
        }
    }
    return true;
}

bool helio_delivery_believes_ahead(const helio_delivery *delivery,
                                   const helio_delivery_topic *topic, uint64_t number) {
    return is_credible(delivery, topic, number, delivery->shared->window_packets);
}

/* ---- where a topic begins ---- */

/* The topic begins where it is thought to.  When it begins earlier, its stream has come back and
 * what its source waits to have acknowledged is passed once more; or it is another.  When it begins
 * much later, the stream was not complete (its source keeps nothing for long), or is another. */
static bool begins_as_known(const helio_delivery *delivery, const helio_delivery_topic *topic,
                            uint64_t number) {
    if (!topic->has_start) {
        return false;
    }
    return number >= topic->expected
               ? is_explained(delivery, topic, number, 0)
               : delivery->first_sequence < delivery->resumed_at && !topic->is_owed;
}

bool helio_delivery_begin_at(helio_delivery *delivery, helio_delivery_topic *topic, uint64_t number,
                             helio_moment moment) {
    if (!helio_delivery_meet(delivery, topic, moment)) {
        return false;
    }
    if (!topic->has_joined) {
        if (!begins_as_known(delivery, topic, number)) {
            topic->expected = number;
        }
        topic->has_joined = true;
        topic->granted =
            0; /* earlier grants may have gone to a source that did not know the topic */
        delivery->has_credit_news = delivery->granting_count > 0;
        helio_receiver_stats *stats = helio_delivery_stats(topic);
        helio_stats_begin(stats);
        helio_set(&stats->messages_before_join, topic->expected);
        helio_set(&stats->next_message, topic->expected);
        helio_stats_end(stats);
    }
    if (number > topic->expected) {
        lose_up_to(delivery, topic, number, moment);
    }
    helio_delivery_confirm(delivery, topic);
    return true;
}

/* ---- what outlives the stream ---- */

static helio_delivery_mark mark_of(const helio_delivery *delivery,
                                   const helio_delivery_topic *topic) {
    const helio_unacked *unacked = &topic->unacked;
    const uint64_t missed = delivery->missed - topic->missed_at;
    const uint64_t more = missed < NUMBER_MAX / BATCH_MAX ? missed * BATCH_MAX : NUMBER_MAX;
    return (helio_delivery_mark){
        .subscription = topic->subscription->serial,
        .expected = topic->expected,
        .slack = more < NUMBER_MAX - topic->slack ? topic->slack + more : NUMBER_MAX,
        .is_owed = unacked->batches && helio_unacked_oldest(unacked) != HELIO_UNACKED_NONE,
    };
}

uint32_t helio_delivery_marks(const helio_delivery *delivery, helio_delivery_mark *out,
                              uint32_t limit) {
    uint32_t count = 0;
    for (size_t i = 0; i < delivery->topics.capacity; i++) {
        const helio_delivery_topic *topic = delivery->topics.entries[i].value;
        for (; topic; topic = topic->next) {
            if (!topic->has_joined && !topic->has_start) {
                continue;
            }
            if (count < limit) {
                out[count] = mark_of(delivery, topic);
            }
            count++;
        }
    }
    return count;
}

helio_delivery_past helio_delivery_past_of(const helio_delivery *delivery) {
    return (helio_delivery_past){
        .has_raw_base = delivery->has_raw_base,
        .raw_base = delivery->raw_base,
        .resumed_at = delivery->resumed_at,
        .open_from = delivery->reassembly.is_open ? delivery->first_sequence : 0,
    };
}

static void resume_topic(helio_delivery_topic *topic, const helio_delivery_mark *mark,
                         uint64_t slack) {
    topic->has_start = true;
    topic->expected = mark->expected;
    topic->is_owed = mark->is_owed;
    topic->slack = slack < NUMBER_MAX - mark->slack ? mark->slack + slack : NUMBER_MAX;
}

void helio_delivery_resume(helio_delivery *delivery, const helio_delivery_past *past,
                           const helio_delivery_mark *marks, uint32_t count, uint64_t sequence,
                           uint64_t slack) {
    delivery->resumed_at = sequence;
    if (sequence) {
        delivery->has_raw_base = past->has_raw_base;
        delivery->raw_base = past->raw_base;
    }
    for (size_t i = 0; i < delivery->topics.capacity; i++) {
        helio_delivery_topic *topic = delivery->topics.entries[i].value;
        for (; topic; topic = topic->next) {
            /* Credit is granted from where the topic stands: only from where it surely does. */
            if (!sequence && (delivery->shared->is_raw || topic->subscription->sink.credit > 0)) {
                continue;
            }
            for (uint32_t k = 0; k < count; k++) {
                if (marks[k].subscription == topic->subscription->serial) {
                    resume_topic(topic, &marks[k], slack);
                }
            }
        }
    }
}
