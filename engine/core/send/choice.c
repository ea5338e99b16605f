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

static bool is_receiver_called(const helio_receivers *receivers, helio_receiver_index index,
                               const char *word) {
    const helio_receiver_entry *entry = &receivers->entries[index];
    char text[HELIO_ADDRESS_TEXT];
    if (entry->name[0] && strcmp(entry->name, word) == 0) {
        return true;
    }
    snprintf(text, sizeof text, "%016" PRIx64, receivers->views[index].receiver);
    return strcmp(text, word) == 0 ||
           strcmp(helio_address_format(&entry->address, text), word) == 0 ||
           strcmp(helio_address_format_ip(&entry->address, text), word) == 0;
}

helio_receiver_index helio_tx_stream_receiver_from(const helio_tx_stream *stream, uint32_t from) {
    const helio_receivers *receivers = &stream->repairer.receivers;
    while (from < receivers->count && !(receivers->views[from].flags & HELIO_VIEW_PRESENT)) {
        from++;
    }
    return from < receivers->count ? from : HELIO_RECEIVER_NONE;
}

helio_receiver_index helio_tx_stream_receiver_called(const helio_tx_stream *stream,
                                                     const char *word, uint32_t from) {
    helio_receiver_index index = helio_tx_stream_receiver_from(stream, from);
    while (index != HELIO_RECEIVER_NONE &&
           !is_receiver_called(&stream->repairer.receivers, index, word)) {
        index = helio_tx_stream_receiver_from(stream, index + 1);
    }
    return index;
}

const char *helio_tx_stream_describe(const helio_tx_stream *stream, helio_receiver_index index,
                                     char text[HELIO_TX_RECEIVER_TEXT]) {
    const helio_receiver_entry *entry = &stream->repairer.receivers.entries[index];
    char address[HELIO_ADDRESS_TEXT];
    helio_address_format(&entry->address, address);
    if (entry->name[0]) {
        snprintf(text, HELIO_TX_RECEIVER_TEXT, "%s (%016" PRIx64 ", %s)", entry->name,
                 stream->repairer.receivers.views[index].receiver, address);
    } else {
        snprintf(text, HELIO_TX_RECEIVER_TEXT, "%s", address);
    }
    return text;
}
