/* The topics that an endpoint's application subscribed to, and the state that its streams share to
 * deliver them. */
#ifndef HELIO_RECEIVE_SUBSCRIPTIONS_H
#define HELIO_RECEIVE_SUBSCRIPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/account.h"
#include "base/map.h"
#include "base/moment.h"
#include "generated/protocol.h"
#include "receive/sink.h"
#include "stats/stats.h"
#include "wire/tsdu.h"

typedef struct helio_subscription {
    char name[HELIO_TSDU_TOPIC_NAME_MAX + 1];
    uint64_t id;
    uint64_t serial; /* 1, 2, ... among those of the endpoint, in the order they were made */
    helio_sink sink;
    uint32_t matched; /* streams that have it now */
    uint32_t streams; /* matched so far: the number of the next one */
    struct helio_subscription *next;
} helio_subscription;

/* Looks for topics by their names, as streams announce them (docs/wire.md 2.2). */
typedef struct helio_topic_finder {
    void *context;
    /* What it finds is acknowledged, in the way of a sink: so the endpoint acknowledges from the
     * beginning, and no stream begins after messages that its source waits for. */
    helio_sink_ack ack;
    bool is_store;
    /* Whether the topic, which no subscription has, is wanted. */
    bool (*wants)(void *context, const helio_tsdu_topic *topic);
    /* A stream announces a wanted topic.  It may subscribe to the topic, and must call nothing else
     * of the endpoint. */
    void (*found)(void *context, const helio_tsdu_topic *topic, helio_moment moment);
    struct helio_topic_finder *next;
} helio_topic_finder;

typedef struct helio_subscriptions {
    helio_subscription *first;
    helio_topic_finder *finders;
    helio_map by_id; /* has memory while there are subscriptions */
    helio_stats *stats;
    helio_instance_stats *instance;
    const char *instance_name; /* labels; owned by the endpoint */
    const char *endpoint;
    uint32_t max_message_bytes;
    helio_account *account;  /* of the instance's memory; may be NULL */
    bool is_raw;             /* packets are bare messages: each subscription gets them all */
    uint32_t window_packets; /* most batches of a topic that wait to be acknowledged one by one */
    uint64_t made;           /* the serial of the newest */
    uint32_t acked_by_auto;  /* subscriptions whose messages are acknowledged when delivered */
    uint32_t acked_by_app;   /* and when the application says so */
    uint32_t acked_by_store; /* those of both by a message store */
} helio_subscriptions;

/* Errors: TOPIC (empty or too long), NOMEM. */
int helio_subscriptions_add(helio_subscriptions *subscriptions, const char *topic,
                            const helio_sink *sink, helio_subscription **out);
/* Removes and frees it; no stream may refer to it any more. */
void helio_subscriptions_remove(helio_subscriptions *subscriptions,
                                helio_subscription *subscription);

/* Some subscription has this identifier. */
static inline bool helio_subscriptions_has(const helio_subscriptions *subscriptions, uint64_t id) {
    return subscriptions->first && helio_map_get(&subscriptions->by_id, id);
}

void helio_subscriptions_add_finder(helio_subscriptions *subscriptions, helio_topic_finder *finder);
void helio_subscriptions_remove_finder(helio_subscriptions *subscriptions,
                                       helio_topic_finder *finder);
/* The finder that wants the topic; NULL: none does, or a subscription has it. */
const helio_topic_finder *helio_subscriptions_finder_of(const helio_subscriptions *subscriptions,
                                                        const helio_tsdu_topic *topic);
/* A stream announces the topic. */
static inline void helio_subscriptions_announce(const helio_subscriptions *subscriptions,
                                                const helio_tsdu_topic *topic,
                                                helio_moment moment) {
    const helio_topic_finder *finder = helio_subscriptions_finder_of(subscriptions, topic);
    if (finder) {
        finder->found(finder->context, topic, moment);
    }
}

/* All that acknowledge are message stores. */
static inline bool helio_subscriptions_are_stores(const helio_subscriptions *subscriptions) {
    return subscriptions->acked_by_store > 0 &&
           subscriptions->acked_by_store ==
               subscriptions->acked_by_auto + subscriptions->acked_by_app;
}

/* It is the only subscription that has the streams acknowledged. */
static inline bool helio_subscriptions_are_acked_by(const helio_subscriptions *subscriptions,
                                                    const helio_subscription *subscription) {
    return subscription->sink.ack != HELIO_SINK_ACK_NONE &&
           subscriptions->acked_by_auto + subscriptions->acked_by_app == 1;
}

#endif
