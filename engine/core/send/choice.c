#include "send/choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "send/parts.h"

bool helio_tx_stream_is_called(const helio_tx_stream *stream, const char *tsi, const char *topics) {
    char text[HELIO_TSI_TEXT];
    if (tsi[0] && strcmp(helio_tsi_format(helio_tx_stream_tsi(stream), text), tsi) != 0) {
        return false;
    }
    if (!topics[0]) {
        return true;
    }
    for (const helio_tx_topic *topic = stream->topics.first; topic; topic = topic->next) {
        if (topic->users > 0 && helio_glob_matches(topics, topic->name)) {
            return true;
        }
    }
    return false;
}

static bool is_receiver_called(const helio_peers *peers, uint32_t place, const char *word) {
    const helio_peer *peer = &peers->peers[place];
    char text[HELIO_ADDRESS_TEXT];
    if (peer->name[0] && strcmp(peer->name, word) == 0) {
        return true;
    }
    snprintf(text, sizeof text, "%016" PRIx64, peers->views[place].receiver);
    return strcmp(text, word) == 0 ||
           strcmp(helio_address_format(&peer->address, text), word) == 0 ||
           strcmp(helio_address_format_ip(&peer->address, text), word) == 0;
}

uint32_t helio_tx_stream_receiver_from(const helio_tx_stream *stream, uint32_t from) {
    const helio_peers *peers = &stream->repairer.peers;
    while (from < peers->count && !(peers->views[from].flags & HELIO_VIEW_PRESENT)) {
        from++;
    }
    return from < peers->count ? from : HELIO_PEER_NONE;
}

uint32_t helio_tx_stream_receiver_called(const helio_tx_stream *stream, const char *word,
                                         uint32_t from) {
    uint32_t place = helio_tx_stream_receiver_from(stream, from);
    while (place != HELIO_PEER_NONE && !is_receiver_called(&stream->repairer.peers, place, word)) {
        place = helio_tx_stream_receiver_from(stream, place + 1);
    }
    return place;
}

const char *helio_tx_stream_describe(const helio_tx_stream *stream, uint32_t place,
                                     char text[HELIO_TX_RECEIVER_TEXT]) {
    const helio_peer *peer = &stream->repairer.peers.peers[place];
    char address[HELIO_ADDRESS_TEXT];
    helio_address_format(&peer->address, address);
    if (peer->name[0]) {
        snprintf(text, HELIO_TX_RECEIVER_TEXT, "%s (%016" PRIx64 ", %s)", peer->name,
                 stream->repairer.peers.views[place].receiver, address);
    } else {
        snprintf(text, HELIO_TX_RECEIVER_TEXT, "%s", address);
    }
    return text;
}
