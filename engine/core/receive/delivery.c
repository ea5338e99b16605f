#include "receive/delivery.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/math.h"
#include "receive/chunk.h"
#include "receive/delivery_topic.h"

int helio_delivery_init(helio_delivery *delivery, helio_subscriptions *shared, helio_rxw *window,
                        const helio_tsi *tsi, bool is_complete) {
    *delivery = (helio_delivery){
        .shared = shared, .window = window, .tsi = *tsi, .is_complete = is_complete};
    int error = helio_map_init(&delivery->topics, 8);
    if (error) {
        return error;
    }
    helio_reassembly_init(&delivery->reassembly, (size_t)shared->max_message_bytes + UINT16_MAX,
                          shared->account);
    for (helio_subscription *s = shared->first; s && !error; s = s->next) {
        error = helio_delivery_add(delivery, s);
    }
    if (error) {
        helio_delivery_fini(delivery, (helio_moment){0});
    }
    return error;
}

static bool is_acked_by_app(const helio_delivery_topic *topic) {
    return topic->subscription->sink.ack == HELIO_SINK_ACK_APP;
}

/* Takes a topic out of the list of those the application acknowledges. */
static void forget_unacked(helio_delivery *delivery, helio_delivery_topic *topic) {
    if (!is_acked_by_app(topic)) {
        return;
    }
    helio_delivery_topic **link = &delivery->acked_by_app;
    while (*link != topic) {
        link = &(*link)->next_acked;
    }
    *link = topic->next_acked;
    helio_unacked_fini(&topic->unacked);
}

static void end_topic(helio_delivery *delivery, helio_delivery_topic *topic, helio_moment moment) {
    const helio_sink *sink = &topic->subscription->sink;
    if (topic->is_met && sink->on_stream_end) {
        sink->on_stream_end(sink->context, topic->stream);
    }
    if (topic->is_met && --topic->subscription->matched == 0) {
        helio_count(&delivery->shared->instance->receivers_unmatched, !sink->is_found);
    }
    helio_stats_close_object(delivery->shared->stats, &topic->object, moment.wall_ns);
    forget_unacked(delivery, topic);
    helio_delivery_end_granting(delivery, topic);
    free(topic);
}

void helio_delivery_fini(helio_delivery *delivery, helio_moment moment) {
    for (size_t i = 0; i < delivery->topics.capacity; i++) {
        helio_delivery_topic *topic = delivery->topics.entries[i].value;
        while (topic) {
            helio_delivery_topic *next = topic->next;
            end_topic(delivery, topic, moment);
            topic = next;
        }
    }
    helio_map_fini(&delivery->topics);
    helio_reassembly_fini(&delivery->reassembly);
}

static bool is_fuller(const helio_sink_gauge *a, const helio_sink_gauge *b) {
    return (double)a->used_bytes * (double)b->limit_bytes >
           (double)b->used_bytes * (double)a->limit_bytes;
}

bool helio_delivery_gauge(const helio_delivery *delivery, helio_sink_gauge *out) {
    bool has_any = false;
    for (size_t i = 0; i < delivery->topics.capacity; i++) {
        const helio_delivery_topic *topic = delivery->topics.entries[i].value;
        for (; topic; topic = topic->next) {
            const helio_sink *sink = &topic->subscription->sink;
            helio_sink_gauge gauge;
            if (!topic->is_met || !sink->read_gauge) {
                continue;
            }
            sink->read_gauge(sink->context, &gauge);
            if (!has_any || is_fuller(&gauge, out)) {
                *out = gauge;
            }
            has_any = true;
        }
    }
    return has_any;
}

static uint64_t key_of(const helio_delivery *delivery, const helio_subscription *subscription) {
    return delivery->shared->is_raw ? HELIO_DELIVERY_RAW_ID : subscription->id;
}

int helio_delivery_add(helio_delivery *delivery, helio_subscription *subscription) {
    helio_delivery_topic *topic = calloc(1, sizeof *topic);
    if (!topic) {
        return HELIO_ERR_NOMEM;
    }
    topic->subscription = subscription;
    topic->has_start = delivery->is_complete && !delivery->shared->is_raw;
    const uint64_t key = key_of(delivery, subscription);
    topic->next = helio_map_get(&delivery->topics, key);
    delivery->recent = NULL;
    int error = is_acked_by_app(topic)
                    ? helio_unacked_init(&topic->unacked, delivery->shared->window_packets)
                    : 0;
    if (!error) {
        error = helio_map_put(&delivery->topics, key, topic);
    }
    if (error) {
        helio_unacked_fini(&topic->unacked);
        free(topic);
        return error;
    }
    if (is_acked_by_app(topic)) {
        topic->next_acked = delivery->acked_by_app;
        delivery->acked_by_app = topic;
    }
    helio_delivery_begin_granting(delivery, topic);
    return 0;
}

void helio_delivery_remove(helio_delivery *delivery, helio_subscription *subscription,
                           helio_moment moment) {
    const uint64_t key = key_of(delivery, subscription);
    helio_delivery_topic *head = helio_map_get(&delivery->topics, key);
    helio_delivery_topic **link = &head;
    while (*link && (*link)->subscription != subscription) {
        link = &(*link)->next;
    }
    helio_delivery_topic *topic = *link;
    if (!topic) {
        return;
    }
    *link = topic->next;
    delivery->recent = NULL;
    if (head) {
        helio_map_put(&delivery->topics, key, head); /* the key is there: cannot fail */
    } else {
        helio_map_remove(&delivery->topics, key);
    }
    end_topic(delivery, topic, moment);
}

/* ---- one topic of one subscription ---- */

bool helio_delivery_meet(helio_delivery *delivery, helio_delivery_topic *topic,
                         helio_moment moment) {
    if (topic->is_met) {
        return true;
    }
    helio_subscription *subscription = topic->subscription;
    const helio_subscriptions *shared = delivery->shared;
    char labels[HELIO_STATS_LABELS_BYTES] = "", stream[HELIO_TSI_TEXT];
    helio_stats_label(labels, sizeof labels, "instance", shared->instance_name);
    helio_stats_label(labels, sizeof labels, "topic", subscription->name);
    helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(&delivery->tsi, stream));
    helio_stats_label(labels, sizeof labels, "endpoint", shared->endpoint);
    if (helio_stats_open_object(shared->stats, HELIO_SCOPE_RECEIVER, labels, moment.wall_ns,
                                &topic->object)) {
        return false;
    }
    helio_stats_apply(&topic->object, (shared->is_raw ? HELIO_HAS_RAW : 0u) |
                                          (subscription->sink.credit ? HELIO_HAS_CREDIT : 0u));
    topic->is_met = delivery->has_met = true;
    if (subscription->matched++ == 0) {
        helio_uncount(&shared->instance->receivers_unmatched, !subscription->sink.is_found);
    }
    topic->stream = subscription->streams++;
    if (subscription->sink.on_stream) {
        subscription->sink.on_stream(subscription->sink.context, topic->stream, &delivery->tsi,
                                     &topic->object);
    }
    return true;
}

/* ---- batches of messages ---- */

/* Gives `count` messages of a chunk, from number `first` on, and keeps account of them; returns how
 * many were taken. */
static size_t hand_over(helio_delivery *delivery, helio_delivery_topic *topic, helio_chunk *chunk,
                        uint64_t first, size_t count, bool in_turn, const helio_rxw_packet *packet,
                        helio_moment moment) {
    const helio_message *messages = chunk->messages + (first - chunk->messages->number);
    helio_chunk_set_stream(chunk, topic->stream);
    helio_delivery_begin_measuring(delivery, topic, moment);
    size_t taken = helio_delivery_hand_over(delivery, topic, messages, count, packet);
    if (taken < count && !in_turn && packet->lasts) { /* they are not to wait for their turn */
        const helio_sink *sink = &topic->subscription->sink;
        taken += sink->on_messages(sink->context, messages + taken, count - taken);
    }
    if (taken > 0) {
        if (in_turn) {
            topic->expected += taken;
        } else {
            helio_ahead_add(&topic->ahead, messages[0].number, taken);
            topic->ahead_count += taken;
        }
        const uint64_t bytes = helio_chunk_bytes_of(chunk, messages, taken);
        helio_delivery_count(delivery, topic, messages, taken, bytes, 0, packet, moment);
    }
    return taken;
}

/* Offers one topic those messages it has not had.  False: its sink has no room for all. */
static bool offer_in_turn(helio_delivery *delivery, helio_delivery_topic *topic, helio_chunk *chunk,
                          const helio_rxw_packet *packet, helio_moment moment) {
    const uint64_t end = chunk->messages->number + chunk->count;
    while (topic->expected < end) {
        uint64_t stop = end;
        if (topic->ahead.count > 0) {
            const uint64_t run = helio_ahead_run(&topic->ahead, topic->expected);
            stop = run < end ? run : end;
            if (helio_ahead_has(&topic->ahead, topic->expected)) {
                helio_delivery_pass_ahead(topic, stop);
                continue;
            }
        }
        const size_t wanted = (size_t)(stop - topic->expected);
        if (hand_over(delivery, topic, chunk, topic->expected, wanted, true, packet, moment) <
            wanted) {
            return false;
        }
    }
    if (topic->ahead.count > 0) {
        helio_ahead_trim(&topic->ahead, topic->expected);
    }
    return true;
}

static bool offer(helio_delivery *delivery, helio_delivery_topic *topic, helio_chunk *chunk,
                  const helio_rxw_packet *packet, helio_moment moment) {
    const uint64_t before = topic->expected;
    const bool is_whole = offer_in_turn(delivery, topic, chunk, packet, moment);
    if (topic->unacked.batches && topic->expected > before) {
        helio_unacked_add(&topic->unacked, delivery->first_sequence, topic->expected);
    }
    if (topic->expected >= topic->grant_at) {
        delivery->has_credit_news = true;
    }
    return is_whole;
}

/* A batch being read. */
typedef struct batch_reader {
    const uint8_t *at;
    const uint8_t *end;
    uint64_t number; /* of the message at `at` */
    size_t left;     /* messages */
} batch_reader;

/* Reads the next messages; false: the batch is damaged. */
static bool read_chunk(batch_reader *reader, const helio_message_form *form, helio_chunk *chunk) {
    const size_t count = helio_umin(reader->left, HELIO_CHUNK_MAX);
    reader->at = helio_chunk_read(chunk, reader->at, reader->end, reader->number, count, form);
    reader->number += count;
    reader->left -= count;
    return reader->at && (reader->left > 0 || reader->at == reader->end);
}

static bool is_whole(batch_reader reader) {
    helio_tsdu_message message;
    while (reader.left-- > 0) {
        if (!helio_tsdu_next_message(&reader.at, reader.end, &message)) {
            return false;
        }
    }
    return reader.at == reader.end;
}

/* What all messages of a batch have in common.  The stream's number is that of the first topic;
 * seldom are there more. */
static helio_message_form form_of(helio_delivery *delivery, const helio_delivery_topic *topics,
                                  const helio_tsdu_header *header, const helio_rxw_packet *packet) {
    helio_delivery_learn_times(delivery, header);
    return (helio_message_form){
        .times = {header->submit_ns, packet->receive_ns},
        .stream = topics->stream,
        .flags = packet->recovered ? HELIO_MESSAGE_RECOVERED : 0,
    };
}

static helio_delivery_result deliver_messages(helio_delivery *delivery,
                                              helio_delivery_topic *topics,
                                              const helio_tsdu_header *header, const uint8_t *batch,
                                              size_t bytes, const helio_rxw_packet *packet,
                                              bool is_again, helio_moment moment) {
    batch_reader reader = {batch + header->header_bytes, batch + bytes, header->first_message,
                           header->count};
    /* A batch of one chunk is found damaged before anything of it is delivered; a larger one is
     * looked through first. */
    if (reader.left > HELIO_CHUNK_MAX && !is_whole(reader)) {
        return HELIO_DELIVERY_DAMAGED;
    }
    const helio_message_form form = form_of(delivery, topics, header, packet);
    helio_chunk chunk;
    bool is_first = true;
    while (reader.left > 0) {
        if (!read_chunk(&reader, &form, &chunk)) {
            return HELIO_DELIVERY_DAMAGED;
        }
        bool is_full = false;
        for (helio_delivery_topic *topic = topics; topic; topic = topic->next) {
            if (is_first) {
                const bool is_next = topic->has_joined && header->first_message == topic->expected;
                if (!is_next && !is_again &&
                    !helio_delivery_believes(delivery, topic, header->first_message)) {
                    return HELIO_DELIVERY_DAMAGED;
                }
                if (!helio_delivery_reach(delivery, topic, header->first_message, moment)) {
                    return HELIO_DELIVERY_FULL;
                }
            }
            is_full |= !offer(delivery, topic, &chunk, packet, moment);
        }
        if (is_full) {
            return HELIO_DELIVERY_FULL;
        }
        is_first = false;
    }
    return HELIO_DELIVERY_TAKEN;
}

/* ---- ahead of their turn ---- */

/* A topic takes messages ahead only where it knows its numbers, and those of a batch in order. */
static bool takes_ahead(const helio_delivery *delivery, const helio_delivery_topic *topic,
                        const helio_tsdu_header *header, uint64_t first, size_t count) {
    return topic->has_joined && first >= topic->expected &&
           helio_delivery_believes_ahead(delivery, topic, first) &&
           (first == header->first_message || helio_ahead_has(&topic->ahead, first - 1)) &&
           helio_ahead_fits(&topic->ahead, first, count);
}

void helio_delivery_ahead(helio_delivery *delivery, const helio_rxw_packet *packet,
                          helio_moment moment) {
    helio_tsdu_header header;
    if (delivery->shared->is_raw || packet->is_fragment ||
        helio_tsdu_decode(packet->tsdu, packet->bytes, &header) != HELIO_TSDU_OURS ||
        header.kind != HELIO_TSDU_KIND_MESSAGES) {
        return;
    }
    helio_delivery_topic *topics = helio_map_get(&delivery->topics, header.topic_id);
    batch_reader reader = {packet->tsdu + header.header_bytes, packet->tsdu + packet->bytes,
                           header.first_message, header.count};
    if (!topics || !is_whole(reader)) {
        return; /* what it is will be told in its turn */
    }
    const helio_message_form form = form_of(delivery, topics, &header, packet);
    helio_chunk chunk;
    while (reader.left > 0 && read_chunk(&reader, &form, &chunk)) {
        const uint64_t first = chunk.messages->number;
        for (helio_delivery_topic *topic = topics; topic; topic = topic->next) {
            if (takes_ahead(delivery, topic, &header, first, chunk.count)) {
                hand_over(delivery, topic, &chunk, first, chunk.count, false, packet, moment);
            }
        }
    }
}

/* ---- TOPICS ---- */

static bool is_named(const helio_delivery_topic *topic, const helio_tsdu_topic *entry) {
    const char *name = topic->subscription->name;
    return strlen(name) == entry->name_bytes && memcmp(name, entry->name, entry->name_bytes) == 0;
}

static bool is_credible(const helio_delivery *delivery, const helio_tsdu_topic *entry) {
    const helio_delivery_topic *topics = helio_map_get(&delivery->topics, entry->topic_id);
    return !topics || !is_named(topics, entry) ||
           helio_delivery_believes_entry(delivery, topics, entry->next_message);
}

static void take_entry(helio_delivery *delivery, const helio_tsdu_topic *entry,
                       helio_moment moment) {
    helio_delivery_topic *topic = helio_map_get(&delivery->topics, entry->topic_id);
    for (; topic; topic = topic->next) {
        if (is_named(topic, entry)) {
            if (helio_delivery_reach(delivery, topic, entry->next_message, moment)) {
                helio_delivery_confirm(delivery, topic);
            }
        } else if (!topic->has_conflict) {
            topic->has_conflict = true;
            helio_stats_event(delivery->shared->stats, moment.wall_ns, HELIO_EVENT_TOPIC_CONFLICT,
                              HELIO_STATS_NO_SLOT, NULL, "topics %s and %.*s have one identifier",
                              topic->subscription->name, (int)entry->name_bytes, entry->name);
        }
    }
}

/* A source counts acknowledgements of packets, whatever topics they have: what a store acknowledges
 * and does not keep is seen, once a stream. */
static void tell_unkept(helio_delivery *delivery, const helio_tsdu_topic *entry,
                        helio_moment moment) {
    const helio_subscriptions *shared = delivery->shared;
    if (!delivery->is_awaited || delivery->has_told_unkept ||
        !helio_subscriptions_are_stores(shared) ||
        helio_subscriptions_has(shared, entry->topic_id)) {
        return;
    }
    delivery->has_told_unkept = true;
    char stream[HELIO_TSI_TEXT];
    helio_tsi_format(&delivery->tsi, stream);
    helio_stats_event(shared->stats, moment.wall_ns, HELIO_EVENT_TOPIC_NOT_KEPT,
                      HELIO_STATS_NO_SLOT, NULL,
                      "topic %.*s of stream %s is acknowledged and not kept: other topics of the "
                      "stream are",
                      (int)entry->name_bytes, entry->name, stream);
}

static helio_delivery_result take_topics(helio_delivery *delivery, const helio_tsdu_header *header,
                                         const uint8_t *batch, size_t bytes, helio_moment moment) {
    const uint8_t *end = batch + bytes;
    helio_tsdu_topic entry;
    const uint8_t *at = batch + header->header_bytes;
    for (size_t i = 0; i < header->count; i++) {
        if (!helio_tsdu_next_topic(&at, end, &entry) || !is_credible(delivery, &entry)) {
            return HELIO_DELIVERY_DAMAGED;
        }
    }
    if (at != end) {
        return HELIO_DELIVERY_DAMAGED;
    }
    at = batch + header->header_bytes;
    while (at < end && helio_tsdu_next_topic(&at, end, &entry)) {
        if (!(header->flags & HELIO_TSDU_FLAG_CLOSING)) {
            helio_subscriptions_announce(delivery->shared, &entry, moment); /* may add a topic */
            tell_unkept(delivery, &entry, moment);
        }
        take_entry(delivery, &entry, moment);
    }
    return HELIO_DELIVERY_TAKEN;
}

/* ---- packets ---- */

static helio_delivery_result deliver_batch(helio_delivery *delivery, uint64_t sequence,
                                           const helio_tsdu_header *header, const uint8_t *batch,
                                           size_t bytes, const helio_rxw_packet *packet,
                                           bool is_again, helio_moment moment) {
    if (header->kind == HELIO_TSDU_KIND_TOPICS) {
        return take_topics(delivery, header, batch, bytes, moment);
    }
    if (header->flags & HELIO_TSDU_FLAG_ASK) {
        delivery->asked = sequence;
    }
    helio_delivery_topic *topics = helio_delivery_find(delivery, header->topic_id);
    if (!topics) {
        delivery->messages_filtered += header->count;
        return HELIO_DELIVERY_FILTERED;
    }
    return deliver_messages(delivery, topics, header, batch, bytes, packet, is_again, moment);
}

static helio_delivery_result not_ours(helio_tsdu_result result) {
    return result == HELIO_TSDU_FOREIGN ? HELIO_DELIVERY_FOREIGN : HELIO_DELIVERY_DAMAGED;
}

static void skip_batch(helio_delivery *delivery, const helio_pgm_fragment *fragment) {
    helio_reassembly_abort(&delivery->reassembly);
    delivery->is_skipping = true;
    delivery->skipped_first = fragment->first;
}

/* The first fragment decides whether the rest is of interest. */
static helio_delivery_result begin_batch(helio_delivery *delivery, uint64_t sequence,
                                         const helio_rxw_packet *packet) {
    delivery->is_skipping = false;
    helio_tsdu_header *header = &delivery->open_batch;
    const helio_tsdu_result result = helio_tsdu_decode(packet->tsdu, packet->bytes, header);
    if (result != HELIO_TSDU_OURS || packet->fragment.first != (uint32_t)sequence) {
        skip_batch(delivery, &packet->fragment);
        return result != HELIO_TSDU_OURS ? not_ours(result) : HELIO_DELIVERY_DAMAGED;
    }
    if (header->kind == HELIO_TSDU_KIND_MESSAGES &&
        !helio_map_get(&delivery->topics, header->topic_id)) {
        delivery->messages_filtered += header->count;
        skip_batch(delivery, &packet->fragment);
        return HELIO_DELIVERY_FILTERED;
    }
    return HELIO_DELIVERY_TAKEN;
}

helio_delivery_result helio_delivery_put_together(helio_delivery *delivery, uint64_t sequence,
                                                  const helio_rxw_packet *packet) {
    delivery->reassembly_recovered =
        packet->recovered || (packet->fragment.offset > 0 && delivery->reassembly_recovered);
    switch (helio_reassembly_add(&delivery->reassembly, &packet->fragment, packet->tsdu,
                                 packet->bytes)) {
    case HELIO_REASSEMBLY_DAMAGED:
        return HELIO_DELIVERY_DAMAGED;
    case HELIO_REASSEMBLY_COMPLETE:
        delivery->ready_sequence = sequence;
        break;
    case HELIO_REASSEMBLY_MORE:
    case HELIO_REASSEMBLY_STRAY:
        break;
    }
    return HELIO_DELIVERY_TAKEN;
}

static helio_delivery_result pass_fragment(helio_delivery *delivery, uint64_t sequence,
                                           const helio_rxw_packet *packet, bool is_again,
                                           helio_moment moment) {
    helio_reassembly *reassembly = &delivery->reassembly;
    if (delivery->ready_sequence != sequence) {
        if (packet->fragment.offset == 0) {
            const helio_delivery_result result = begin_batch(delivery, sequence, packet);
            if (result != HELIO_DELIVERY_TAKEN) {
                return result;
            }
        } else if (delivery->is_skipping && delivery->skipped_first == packet->fragment.first) {
            return HELIO_DELIVERY_FILTERED;
        }
        const helio_delivery_result result =
            helio_delivery_put_together(delivery, sequence, packet);
        if (delivery->ready_sequence != sequence) {
            return result;
        }
    }
    return deliver_batch(delivery, sequence, &delivery->open_batch, reassembly->data,
                         reassembly->bytes, packet, is_again, moment);
}

helio_delivery_result helio_delivery_pass(helio_delivery *delivery, uint64_t sequence,
                                          const helio_rxw_packet *packet, helio_moment moment) {
    const bool is_again = delivery->full_sequence == sequence;
    helio_delivery_result result;
    delivery->is_complete = false;
    delivery->first_sequence = sequence;
    if (packet->is_fragment) {
        delivery->first_sequence -= (uint32_t)sequence - packet->fragment.first;
    }
    if (delivery->shared->is_raw) {
        result = helio_delivery_pass_raw(delivery, sequence, packet, moment);
    } else if (packet->is_fragment) {
        result = pass_fragment(delivery, sequence, packet, is_again, moment);
    } else {
        helio_reassembly_abort(&delivery->reassembly);
        helio_tsdu_header header;
        const helio_tsdu_result head = helio_tsdu_decode(packet->tsdu, packet->bytes, &header);
        result = head == HELIO_TSDU_OURS ? deliver_batch(delivery, sequence, &header, packet->tsdu,
                                                         packet->bytes, packet, is_again, moment)
                                         : not_ours(head);
    }
    delivery->full_sequence = result == HELIO_DELIVERY_FULL ? sequence : 0;
    if (result == HELIO_DELIVERY_FOREIGN || result == HELIO_DELIVERY_DAMAGED) {
        delivery->missed++; /* there may have been messages in it */
    }
    return result;
}

/* The batch being put together misses a packet: its messages are lost. */
static void lose_open_batch(helio_delivery *delivery, helio_moment moment) {
    helio_reassembly *reassembly = &delivery->reassembly;
    if (!reassembly->is_open) {
        return;
    }
    helio_reassembly_abort(reassembly);
    const helio_tsdu_header *header = &delivery->open_batch;
    if (header->kind != HELIO_TSDU_KIND_MESSAGES) {
        return;
    }
    helio_delivery_topic *topics = helio_map_get(&delivery->topics, header->topic_id);
    if (!helio_delivery_believes_entry(delivery, topics, header->first_message)) {
        return; /* the whole batch would have been refused */
    }
    for (helio_delivery_topic *topic = topics; topic; topic = topic->next) {
        helio_delivery_reach(delivery, topic, header->first_message + header->count, moment);
    }
}

void helio_delivery_on_packets_lost(helio_delivery *delivery, uint64_t sequence, uint64_t count,
                                    helio_moment moment) {
    delivery->is_complete = false;
    if (delivery->shared->is_raw) {
        helio_delivery_lose_raw(delivery, sequence, count, moment);
    } else {
        lose_open_batch(delivery, moment);
    }
    delivery->missed += count; /* beyond what was known of the open batch */
}

void helio_delivery_on_notice(helio_delivery *delivery, helio_notice *notice, bool to_all) {
    for (size_t i = 0; i < delivery->topics.capacity; i++) {
        helio_delivery_topic *topic = delivery->topics.entries[i].value;
        for (; topic; topic = topic->next) {
            const helio_sink *sink = &topic->subscription->sink;
            if (!sink->on_notice || !(topic->is_met || to_all)) {
                continue;
            }
            notice->stream = topic->is_met ? topic->stream : HELIO_NO_STREAM;
            sink->on_notice(sink->context, notice);
        }
    }
}

/* ---- acknowledging ---- */

bool helio_delivery_acknowledge(helio_delivery *delivery, const helio_subscription *subscription,
                                uint32_t stream, uint64_t next) {
    helio_delivery_topic *topic = delivery->acked_by_app;
    for (; topic; topic = topic->next_acked) {
        if (topic->subscription == subscription && topic->is_met && topic->stream == stream) {
            helio_unacked_acknowledge(&topic->unacked, next);
            return true;
        }
    }
    return false;
}

uint64_t helio_delivery_oldest_unacked(const helio_delivery *delivery) {
    uint64_t oldest = HELIO_UNACKED_NONE;
    const helio_delivery_topic *topic = delivery->acked_by_app;
    for (; topic; topic = topic->next_acked) {
        const uint64_t sequence = helio_unacked_oldest(&topic->unacked);
        if (sequence < oldest) {
            oldest = sequence;
        }
    }
    return oldest;
}
