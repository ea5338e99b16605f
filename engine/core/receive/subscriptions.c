#include "receive/subscriptions.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/hash.h"

static void count_acking(helio_subscriptions *subscriptions, helio_sink_ack ack, bool is_store,
                         uint32_t by) {
    if (is_store && ack != HELIO_SINK_ACK_NONE) {
        subscriptions->acked_by_store += by;
    }
    if (ack == HELIO_SINK_ACK_AUTO) {
        subscriptions->acked_by_auto += by;
    } else if (ack == HELIO_SINK_ACK_APP) {
        subscriptions->acked_by_app += by;
    }
}

/* The map leads to any one of those that have the identifier. */
static int enter(helio_subscriptions *subscriptions, helio_subscription *subscription) {
    int error = 0;
    if (!subscriptions->by_id.entries) {
        error = helio_map_init(&subscriptions->by_id, 8);
    }
    return error ? error : helio_map_put(&subscriptions->by_id, subscription->id, subscription);
}

static void leave(helio_subscriptions *subscriptions, const helio_subscription *subscription) {
    helio_subscription *other = subscriptions->first;
    while (other && other->id != subscription->id) {
        other = other->next;
    }
    if (other) {
        helio_map_put(&subscriptions->by_id, other->id, other); /* the key is there: cannot fail */
    } else {
        helio_map_remove(&subscriptions->by_id, subscription->id);
    }
    if (!subscriptions->first) {
        helio_map_fini(&subscriptions->by_id);
    }
}

int helio_subscriptions_add(helio_subscriptions *subscriptions, const char *topic,
                            const helio_sink *sink, helio_subscription **out) {
    const size_t length = strlen(topic);
    if (length == 0 || length > HELIO_TSDU_TOPIC_NAME_MAX) {
        return HELIO_ERR_TOPIC;
    }
    helio_subscription *subscription = calloc(1, sizeof *subscription);
    if (!subscription) {
        return HELIO_ERR_NOMEM;
    }
    memcpy(subscription->name, topic, length);
    subscription->id = helio_hash_fnv1a(topic, length);
    subscription->serial = ++subscriptions->made;
    subscription->sink = *sink;
    if (enter(subscriptions, subscription)) {
        free(subscription);
        return HELIO_ERR_NOMEM;
    }
    subscription->next = subscriptions->first;
    subscriptions->first = subscription;
    count_acking(subscriptions, sink->ack, sink->is_store, 1);
    helio_count(&subscriptions->instance->receivers, 1);
    helio_count(&subscriptions->instance->receivers_unmatched, !sink->is_found);
    *out = subscription;
    return 0;
}

void helio_subscriptions_remove(helio_subscriptions *subscriptions,
                                helio_subscription *subscription) {
    helio_subscription **link = &subscriptions->first;
    while (*link != subscription) {
        link = &(*link)->next;
    }
    *link = subscription->next;
    leave(subscriptions, subscription);
    count_acking(subscriptions, subscription->sink.ack, subscription->sink.is_store,
                 UINT32_MAX); /* one less */
    helio_uncount(&subscriptions->instance->receivers, 1);
    helio_uncount(&subscriptions->instance->receivers_unmatched, !subscription->sink.is_found);
    free(subscription);
}

/* ---- topics that are looked for ---- */

void helio_subscriptions_add_finder(helio_subscriptions *subscriptions,
                                    helio_topic_finder *finder) {
    finder->next = subscriptions->finders;
    subscriptions->finders = finder;
    count_acking(subscriptions, finder->ack, finder->is_store, 1);
}

void helio_subscriptions_remove_finder(helio_subscriptions *subscriptions,
                                       helio_topic_finder *finder) {
    helio_topic_finder **at = &subscriptions->finders;
    while (*at != finder) {
        at = &(*at)->next;
    }
    *at = finder->next;
    count_acking(subscriptions, finder->ack, finder->is_store, UINT32_MAX); /* one less */
}

/* A name that is a text, with its own identifier. */
static bool is_sound(const helio_tsdu_topic *topic) {
    return !memchr(topic->name, '\0', topic->name_bytes) &&
           topic->topic_id == helio_hash_fnv1a(topic->name, topic->name_bytes);
}

const helio_topic_finder *helio_subscriptions_finder_of(const helio_subscriptions *subscriptions,
                                                        const helio_tsdu_topic *topic) {
    const helio_topic_finder *finder = subscriptions->finders;
    if (!finder || helio_subscriptions_has(subscriptions, topic->topic_id) || !is_sound(topic)) {
        return NULL;
    }
    while (finder && !finder->wants(finder->context, topic)) {
        finder = finder->next;
    }
    return finder;
}
