#include "send/topics.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/error.h"
#include "base/hash.h"

enum { ANNOUNCE_CHUNK = 32 }; /* entries gathered at once */

int helio_tx_topics_init(helio_tx_topics *topics) {
    return helio_map_init(&topics->by_id, 8);
}

void helio_tx_topics_fini(helio_tx_topics *topics, helio_moment moment) {
    helio_uncount(&topics->instance->transmitters, topics->open);
    while (topics->first) {
        helio_tx_topic *topic = topics->first;
        topics->first = topic->next;
        helio_stats_close_object(topics->stats, &topic->object, moment.wall_ns);
        helio_tx_credit_fini(&topic->credit);
        free(topic);
    }
    helio_map_fini(&topics->by_id);
}

/* Tells receivers where these topics stand; a raw stream has no words for it. */
static void tell(helio_tx_topics *topics, const helio_tsdu_topic *entries, size_t count,
                 uint8_t flags, helio_moment moment) {
    if (!topics->is_raw) {
        helio_batcher_announce(topics->batcher, entries, count, flags, moment);
    }
}

static helio_tsdu_topic entry_of(const helio_tx_topic *topic) {
    return (helio_tsdu_topic){
        .topic_id = topic->position.id,
        .next_message = topic->position.next_message,
        .name = topic->name,
        .name_bytes = topic->name_bytes,
    };
}

/* Opens the statistics of a topic that is new or has come back. */
static int open_topic(helio_tx_topics *topics, helio_tx_topic *topic, helio_moment moment) {
    char labels[HELIO_STATS_LABELS_BYTES] = "", tsi[HELIO_TSI_TEXT];
    helio_stats_label(labels, sizeof labels, "instance", topics->instance_name);
    helio_stats_label(labels, sizeof labels, "topic", topic->name);
    helio_stats_label(labels, sizeof labels, "stream", helio_tsi_format(topics->tsi, tsi));
    helio_stats_label(labels, sizeof labels, "endpoint", topics->endpoint);
    const int error = helio_stats_open_object(topics->stats, HELIO_SCOPE_TRANSMITTER, labels,
                                              moment.wall_ns, &topic->object);
    if (error) {
        return error;
    }
    topic->position.stats = topic->object.record;
    topic->position.object = &topic->object;
    helio_set(&topic->position.stats->next_message, topic->position.next_message);
    if (topics->awaits_credit) {
        helio_stats_apply(&topic->object, HELIO_HAS_CREDIT);
        helio_set(&topic->position.stats->credit_limit, topic->credit.limit);
    }
    topic->position.books = (helio_topic_books){0};
    topics->open++;
    helio_count(&topics->instance->transmitters, 1);
    const helio_tsdu_topic entry = entry_of(topic);
    tell(topics, &entry, 1, 0, moment);
    return 0;
}

int helio_tx_topics_add(helio_tx_topics *topics, const char *name, helio_moment moment,
                        helio_tx_topic **out) {
    const size_t length = strlen(name);
    if (length == 0 || length > HELIO_TSDU_TOPIC_NAME_MAX) {
        return HELIO_ERR_TOPIC;
    }
    const uint64_t id = helio_hash_fnv1a(name, length);
    helio_tx_topic *topic = helio_map_get(&topics->by_id, id);
    if (topics->is_raw && topics->first && !topic) {
        return helio_fail(HELIO_ERR_TOPIC,
                          "with payload=raw an endpoint has one topic, and it is %s here; "
                          "%s needs an endpoint of its own",
                          topics->first->name, name);
    }
    if (topic && strcmp(topic->name, name) != 0) {
        return HELIO_ERR_TOPIC;
    }
    if (!topic) {
        topic = calloc(1, sizeof *topic);
        if (!topic || helio_map_put(&topics->by_id, id, topic)) {
            free(topic);
            return HELIO_ERR_NOMEM;
        }
        topic->position.id = id;
        topic->position.next_message = topics->is_raw ? topics->first_number : 0;
        topic->name_bytes = (uint16_t)length;
        memcpy(topic->name, name, length);
        topic->next = topics->first;
        topics->first = topic;
    }
    if (topic->users == 0) {
        const int error = open_topic(topics, topic, moment);
        if (error) {
            return error;
        }
    }
    topic->users++;
    *out = topic;
    return 0;
}

void helio_tx_topics_remove(helio_tx_topics *topics, helio_tx_topic *topic, helio_moment moment) {
    if (--topic->users > 0) {
        return;
    }
    helio_batcher_flush(topics->batcher, moment);
    const helio_tsdu_topic entry = entry_of(topic);
    tell(topics, &entry, 1, HELIO_TSDU_FLAG_CLOSING, moment);
    helio_stats_close_object(topics->stats, &topic->object, moment.wall_ns);
    topic->object = (helio_stats_object){0};
    topic->position.stats = NULL;
    topics->open--;
    helio_uncount(&topics->instance->transmitters, 1);
}

void helio_tx_topics_end(helio_tx_topics *topics, helio_moment moment) {
    for (helio_tx_topic *topic = topics->first; topic; topic = topic->next) {
        if (topic->users > 0) {
            topic->users = 1;
            helio_tx_topics_remove(topics, topic, moment);
        }
    }
}

void helio_tx_topics_announce(helio_tx_topics *topics, helio_moment moment) {
    helio_tsdu_topic entries[ANNOUNCE_CHUNK];
    size_t count = 0;
    helio_batcher_flush(topics->batcher, moment); /* the entries are to include what is open */
    for (const helio_tx_topic *topic = topics->first; topic; topic = topic->next) {
        if (topic->users == 0) {
            continue;
        }
        entries[count++] = entry_of(topic);
        if (count == ANNOUNCE_CHUNK) {
            tell(topics, entries, count, 0, moment);
            count = 0;
        }
    }
    tell(topics, entries, count, 0, moment);
}
