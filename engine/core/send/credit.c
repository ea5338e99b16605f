#include "send/credit.h"

#include <stdlib.h>
#include <string.h>

#include "send/parts.h"
#include "wire/pgm.h"

enum { CAPACITY_MIN = 4 };

/* A grant not repeated for this long no longer counts: its process may live on without a receiver of
 * the topic. */
#define FORGET_NS (3 * HELIO_PGM_GRANT_REPEAT_NS + HELIO_SECOND)
#define ANNOUNCE_AGAIN_NS (20 * HELIO_MILLISECOND)

/* ---- of a topic ---- */

void helio_tx_credit_fini(helio_tx_credit *credit) {
    free(credit->granted);
    *credit = (helio_tx_credit){0};
}

static bool reserve(helio_tx_credit *credit, helio_receiver_index index) {
    if (index < credit->capacity) {
        return true;
    }
    uint32_t capacity = credit->capacity ? credit->capacity : CAPACITY_MIN;
    while (capacity <= index) {
        capacity *= 2;
    }
    helio_tx_granted *granted = realloc(credit->granted, capacity * sizeof *granted);
    if (!granted) {
        return false;
    }
    memset(granted + credit->capacity, 0, (capacity - credit->capacity) * sizeof *granted);
    credit->granted = granted;
    credit->capacity = capacity;
    return true;
}

static bool is_of_same_life(const helio_tx_granted *granted, const helio_receivers *receivers,
                            helio_receiver_index index) {
    return helio_receivers_is(receivers, index, granted->born) &&
           granted->incarnation == receivers->views[index].incarnation;
}

static bool counts(const helio_tx_granted *granted, const helio_receivers *receivers,
                   helio_receiver_index index, int64_t now_ns) {
    const uint32_t away = HELIO_VIEW_SUSPENDED | HELIO_VIEW_EXPELLED | HELIO_VIEW_LEFT;
    return is_of_same_life(granted, receivers, index) && !(receivers->views[index].flags & away) &&
           now_ns - granted->heard_ns < FORGET_NS;
}

void helio_tx_credit_weigh(helio_tx_credit *credit, helio_receivers *receivers, int64_t now_ns) {
    uint64_t least = UINT64_MAX;
    credit->index = HELIO_RECEIVER_NONE;
    for (helio_receiver_index index = 0; index < credit->capacity; index++) {
        const helio_tx_granted *granted = &credit->granted[index];
        if (counts(granted, receivers, index, now_ns) && granted->limit < least) {
            least = granted->limit;
            credit->index = index;
        }
    }
    credit->limit = credit->index == HELIO_RECEIVER_NONE ? 0 : least;
}

bool helio_tx_credit_take(helio_tx_credit *credit, helio_receivers *receivers,
                          helio_receiver_index index, uint64_t limit, int64_t now_ns) {
    if (!reserve(credit, index)) {
        return false;
    }
    helio_tx_granted *granted = &credit->granted[index];
    const bool did_count = counts(granted, receivers, index, now_ns);
    const uint64_t before = granted->limit;
    const bool is_same_life = is_of_same_life(granted, receivers, index);
    if (limit == HELIO_PGM_GRANT_UNBOUND) {
        *granted = (helio_tx_granted){0};
    } else {
        *granted = (helio_tx_granted){
            .limit = is_same_life && before > limit ? before : limit,
            .incarnation = receivers->views[index].incarnation,
            .heard_ns = now_ns,
            .born = receivers->entries[index].born,
        };
        if (did_count && is_same_life && (granted->limit == before || before > credit->limit)) {
            return true; /* the least grant is that of another receiver */
        }
    }
    helio_tx_credit_weigh(credit, receivers, now_ns);
    return true;
}

/* ---- of a stream ---- */

/* Number of the topic's next message after those in the open packet. */
static uint64_t next_of(const helio_tx_stream *stream, const helio_tx_topic *topic) {
    const helio_batcher *batcher = &stream->batcher;
    const bool is_open = batcher->tsdu && batcher->topic == &topic->position;
    return topic->position.next_message + (is_open ? batcher->count : 0);
}

uint64_t helio_tx_stream_credit(const helio_tx_stream *stream, const helio_tx_topic *topic) {
    const uint64_t next = next_of(stream, topic);
    return topic->credit.limit > next ? topic->credit.limit - next : 0;
}

/* Counts the time that a topic has waited so far. */
static void count_wait(helio_tx_topic *topic, int64_t now_ns) {
    helio_tx_credit *credit = &topic->credit;
    if (topic->position.stats && now_ns > credit->waits_since_ns) {
        helio_count(&topic->position.stats->credit_wait_time,
                    (uint64_t)(now_ns - credit->waits_since_ns));
    }
    credit->waits_since_ns = now_ns;
}

void helio_tx_stream_wait_for_credit(helio_tx_stream *stream, helio_tx_topic *topic,
                                     helio_moment moment) {
    helio_tx_credit *credit = &topic->credit;
    if (credit->is_waiting) {
        return;
    }
    credit->is_waiting = true;
    credit->waits_since_ns = moment.now_ns;
    stream->credit_waits++;
    if (topic->position.stats) {
        helio_count(&topic->position.stats->credit_waits, 1);
    }
}

/* To be called when the limit may have changed. */
static void show(helio_tx_stream *stream, helio_tx_topic *topic, int64_t now_ns) {
    if (topic->position.stats) {
        helio_set(&topic->position.stats->credit_limit, topic->credit.limit);
    }
    if (!topic->credit.is_waiting) {
        return;
    }
    count_wait(topic, now_ns);
    if (helio_tx_stream_credit(stream, topic) > 0 || topic->users == 0) {
        topic->credit.is_waiting = false;
        stream->credit_waits--;
    }
}

void helio_tx_tend_credit(helio_tx_stream *stream, int64_t now_ns) {
    if (!stream->config.awaits_credit) {
        return;
    }
    for (helio_tx_topic *topic = stream->topics.first; topic; topic = topic->next) {
        helio_tx_credit_weigh(&topic->credit, &stream->repairer.receivers, now_ns);
        show(stream, topic, now_ns);
    }
}

/* A receiver grants a topic and does not know its position: an announcement reports it. */
static void announce_soon(helio_tx_stream *stream, int64_t now_ns) {
    const int64_t at_ns = stream->announce_after_ns > now_ns ? stream->announce_after_ns : now_ns;
    stream->has_news = true;
    if (at_ns < stream->announce_due_ns) {
        stream->announce_due_ns = at_ns;
        stream->announce_after_ns = at_ns + ANNOUNCE_AGAIN_NS;
    }
}

/* Returns whether the grant raised the limit of its topic. */
static bool take(helio_tx_stream *stream, const helio_pgm_grant *grant, helio_receiver_index index,
                 int64_t now_ns) {
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    helio_tx_topic *topic = helio_map_get(&stream->topics.by_id, grant->topic);
    if (!topic) {
        helio_count(&stats->grants_refused_topic, 1);
        return false;
    }
    const uint64_t next = next_of(stream, topic), before = topic->credit.limit;
    if (grant->limit != HELIO_PGM_GRANT_UNBOUND && grant->limit > next + HELIO_TX_CREDIT_MAX) {
        helio_count(&stats->grants_refused_impossible, 1);
        return false;
    }
    if (!helio_tx_credit_take(&topic->credit, &stream->repairer.receivers, index, grant->limit,
                              now_ns)) {
        return false; /* the receiver repeats it */
    }
    if (grant->limit == 0) {
        announce_soon(stream, now_ns);
    }
    show(stream, topic, now_ns);
    return topic->credit.limit > before;
}

bool helio_tx_on_grants(helio_tx_stream *stream, const helio_pgm_packet *ack,
                        helio_receiver_index index, bool is_proven, helio_moment moment) {
    helio_tx_stream_stats *stats = helio_tx_stats(stream);
    helio_count(&stats->grants_received, ack->grants_count);
    if (!stream->config.awaits_credit) {
        helio_count(&stats->grants_refused_not_awaited, ack->grants_count);
        return false;
    }
    if (!is_proven || index == HELIO_RECEIVER_NONE) {
        helio_count(&stats->grants_refused_unproven, ack->grants_count);
        return false;
    }
    bool goes_further = false;
    for (uint32_t i = 0; i < ack->grants_count; i++) {
        goes_further |= take(stream, &ack->grants[i], index, moment.now_ns);
    }
    return goes_further;
}
