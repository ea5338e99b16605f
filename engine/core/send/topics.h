/* The topics of a stream being sent: who they are, where their numbers stand, and telling receivers
 * (TOPICS batches).
 *
 * A topic that ended is kept, without statistics, so that its numbers go on if it comes back.
 *
 * A raw stream has one topic, known on this side only: nothing is told, and its numbers are those
 * of the packets. */
#ifndef HELIO_SEND_TOPICS_H
#define HELIO_SEND_TOPICS_H

#include "base/map.h"
#include "send/batcher.h"
#include "send/credit.h"
#include "send/stream.h"

struct helio_tx_topic {
    helio_topic_position position;
    helio_stats_object object;
    helio_tx_topic *next;
    helio_tx_credit credit;
    uint64_t newest; /* packet with messages of it; 0: none */
    uint32_t users;  /* add less remove; 0: ended */
    uint16_t name_bytes;
    char name[HELIO_TSDU_TOPIC_NAME_MAX + 1];
};

typedef struct helio_tx_topics {
    helio_batcher *batcher; /* the stream's, as are the texts */
    helio_stats *stats;
    helio_instance_stats *instance;
    const char *instance_name;
    const char *endpoint;
    const helio_tsi *tsi;
    uint64_t first_number; /* raw: of the stream's first packet */
    bool is_raw;
    bool awaits_credit;
    helio_map by_id;
    helio_tx_topic *first;
    uint32_t open;
} helio_tx_topics;

/* The other fields are the caller's to fill in.  0 or NOMEM; free with helio_tx_topics_fini. */
int helio_tx_topics_init(helio_tx_topics *topics);
void helio_tx_topics_fini(helio_tx_topics *topics, helio_moment moment);

/* As helio_tx_stream_add_topic and _remove_topic. */
int helio_tx_topics_add(helio_tx_topics *topics, const char *name, helio_moment moment,
                        helio_tx_topic **out);
void helio_tx_topics_remove(helio_tx_topics *topics, helio_tx_topic *topic, helio_moment moment);
/* Ends all that are open. */
void helio_tx_topics_end(helio_tx_topics *topics, helio_moment moment);
/* Tells receivers all that are open. */
void helio_tx_topics_announce(helio_tx_topics *topics, helio_moment moment);

#endif
