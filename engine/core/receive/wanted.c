#include "receive/wanted.h"

#include "wire/tsdu.h"

/* An announcement is of interest when it names a topic that is subscribed to or looked for. */
static helio_wanted look_at_topics(const helio_subscriptions *subscriptions,
                                   const helio_tsdu_header *header, const uint8_t *tsdu,
                                   size_t bytes) {
    const uint8_t *at = tsdu + header->header_bytes, *end = tsdu + bytes;
    const bool is_closing = header->flags & HELIO_TSDU_FLAG_CLOSING;
    helio_tsdu_topic entry;
    for (size_t i = 0; i < header->count; i++) {
        if (!helio_tsdu_next_topic(&at, end, &entry)) {
            return HELIO_WANTED_DAMAGED;
        }
        if (helio_subscriptions_has(subscriptions, entry.topic_id) ||
            (!is_closing && helio_subscriptions_finder_of(subscriptions, &entry))) {
            return HELIO_WANTED;
        }
    }
    return at == end ? HELIO_WANTED_BY_NONE : HELIO_WANTED_DAMAGED;
}

helio_wanted helio_subscriptions_look_at(const helio_subscriptions *subscriptions,
                                         const helio_pgm_packet *packet) {
    const bool is_fragment = packet->options & HELIO_PGM_HAS_FRAGMENT;
    if (subscriptions->is_raw) {
        return HELIO_WANTED;
    }
    if (is_fragment && packet->fragment.offset > 0) {
        return HELIO_WANTED_PERHAPS;
    }
    helio_tsdu_header header;
    const helio_tsdu_result result = helio_tsdu_decode(packet->tsdu, packet->tsdu_bytes, &header);
    if (result != HELIO_TSDU_OURS) {
        return result == HELIO_TSDU_FOREIGN ? HELIO_WANTED_FOREIGN : HELIO_WANTED_DAMAGED;
    }
    if (header.kind == HELIO_TSDU_KIND_MESSAGES) {
        return helio_subscriptions_has(subscriptions, header.topic_id) ? HELIO_WANTED
                                                                       : HELIO_WANTED_BY_NONE;
    }
    return is_fragment ? HELIO_WANTED_PERHAPS
                       : look_at_topics(subscriptions, &header, packet->tsdu, packet->tsdu_bytes);
}

bool helio_subscriptions_announce_all(const helio_subscriptions *subscriptions,
                                      const helio_pgm_packet *packet, helio_moment moment) {
    helio_tsdu_header header;
    if (subscriptions->is_raw || (packet->options & HELIO_PGM_HAS_FRAGMENT) ||
        helio_tsdu_decode(packet->tsdu, packet->tsdu_bytes, &header) != HELIO_TSDU_OURS ||
        header.kind != HELIO_TSDU_KIND_TOPICS) {
        return false;
    }
    const uint8_t *at = packet->tsdu + header.header_bytes;
    const uint8_t *end = packet->tsdu + packet->tsdu_bytes;
    helio_tsdu_topic topic;
    for (size_t i = 0; i < header.count && !(header.flags & HELIO_TSDU_FLAG_CLOSING) &&
                       helio_tsdu_next_topic(&at, end, &topic);
         i++) {
        helio_subscriptions_announce(subscriptions, &topic, moment);
    }
    return true;
}
