/* Credit: how far a receiver lets its source go on with each topic.
 *
 * A topic's application is done with the messages up to some number; the source may send as many
 * more as the credit says.  What was granted is never taken back.  Where a topic stands is not
 * known before the stream has told: then nothing is granted, which is told, too. */
#include "receive/delivery_topic.h"

enum { QUARTER = 4 };

void helio_delivery_begin_granting(helio_delivery *delivery, helio_delivery_topic *topic) {
    topic->grant_at = UINT64_MAX;
    if (topic->subscription->sink.credit == 0) {
        return;
    }
    topic->next_granting = delivery->granting;
    delivery->granting = topic;
    delivery->granting_count++;
    delivery->has_credit_news = true;
}

void helio_delivery_end_granting(helio_delivery *delivery, helio_delivery_topic *topic) {
    helio_delivery_topic **link = &delivery->granting;
    while (*link && *link != topic) {
        link = &(*link)->next_granting;
    }
    if (!*link) {
        return;
    }
    *link = topic->next_granting;
    delivery->granting_count--;
    if (delivery->grant_next == topic) {
        delivery->grant_next = topic->next_granting;
    }
}

bool helio_delivery_is_granting(const helio_delivery *delivery, uint64_t topic_id) {
    const helio_delivery_topic *topic = helio_map_get(&delivery->topics, topic_id);
    while (topic && topic->subscription->sink.credit == 0) {
        topic = topic->next;
    }
    return topic != NULL;
}

/* The first message its source is not to send yet; 0: where the topic stands is not known. */
static uint64_t end_of(const helio_delivery_topic *topic) {
    const helio_sink *sink = &topic->subscription->sink;
    if (!topic->has_joined && !topic->has_start) {
        return 0;
    }
    const uint64_t waiting =
        topic->is_met && sink->read_waiting ? sink->read_waiting(sink->context, topic->stream) : 0;
    return sink->credit + (topic->expected > waiting ? topic->expected - waiting : 0);
}

static uint64_t step_of(const helio_delivery_topic *topic) {
    const uint64_t credit = topic->subscription->sink.credit;
    return credit < QUARTER ? 1 : credit / QUARTER;
}

static bool is_owed(const helio_delivery_topic *topic) {
    const uint64_t end = end_of(topic);
    return !topic->has_granted || (end > topic->granted && end - topic->granted >= step_of(topic));
}

static void grant(helio_delivery_topic *topic) {
    const uint64_t end = end_of(topic);
    topic->has_granted = true;
    if (end > topic->granted) {
        topic->granted = end;
        if (!topic->subscription->sink.read_waiting) {
            topic->grant_at = end - topic->subscription->sink.credit + step_of(topic);
        }
    }
    if (topic->is_met) {
        helio_set(&helio_delivery_stats(topic)->credit_granted, topic->granted);
    }
}

/* Several subscriptions may want the topic: all that grant it do so together, as far as the one
 * that grants least. */
static uint64_t grant_together(helio_delivery_topic *topics) {
    uint64_t least = UINT64_MAX;
    for (helio_delivery_topic *topic = topics; topic; topic = topic->next) {
        if (topic->subscription->sink.credit == 0) {
            continue;
        }
        grant(topic);
        least = topic->granted < least ? topic->granted : least;
    }
    return least;
}

/* The first of those that want the same topic grants for all. */
static bool is_first(const helio_delivery_topic *topics, const helio_delivery_topic *topic) {
    while (topics->subscription->sink.credit == 0) {
        topics = topics->next;
    }
    return topics == topic;
}

static bool are_owed(const helio_delivery_topic *topics) {
    for (; topics; topics = topics->next) {
        if (topics->subscription->sink.credit > 0 && is_owed(topics)) {
            return true;
        }
    }
    return false;
}

uint32_t helio_delivery_grants(helio_delivery *delivery, bool only_owed, helio_pgm_grant *out,
                               uint32_t limit) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < delivery->granting_count && count < limit; i++) {
        helio_delivery_topic *topic =
            delivery->grant_next ? delivery->grant_next : delivery->granting;
        delivery->grant_next = topic->next_granting;
        const uint64_t id = topic->subscription->id;
        helio_delivery_topic *topics = helio_map_get(&delivery->topics, id);
        if (is_first(topics, topic) && (!only_owed || are_owed(topics))) {
            out[count++] = (helio_pgm_grant){.topic = id, .limit = grant_together(topics)};
        }
    }
    return count;
}
