#include "store/records.h"

#include <string.h>

static bool is_within(const helio_store_choice *choice, uint64_t first, uint64_t last) {
    return first <= choice->range.last && last >= choice->range.first;
}

bool helio_store_overlaps(const helio_store_choice *choice, const helio_store_batch *batch) {
    const helio_store_span spans[] = {
        [HELIO_STORE_BY_POSITION] = {batch->position, batch->position + batch->messages - 1},
        [HELIO_STORE_BY_SEQUENCE] = batch->sequences,
        [HELIO_STORE_BY_NUMBER] = batch->numbers,
        [HELIO_STORE_BY_TIME] = batch->times,
    };
    const helio_store_span span = spans[choice->by];
    return is_within(choice, span.first, span.last);
}

void helio_store_records_begin(helio_store_records *records, const helio_store_batch *batch,
                               const uint8_t *body) {
    records->body = body;
    records->bytes = batch->body_bytes;
    records->offset = 0;
    records->position = batch->position;
}

int helio_store_records_next(helio_store_records *records, const helio_store_choice *choice,
                             helio_store_message *out, uint64_t *position) {
    while (records->offset < records->bytes) {
        helio_store_record record;
        if (helio_store_get_record(records->body, records->bytes, &records->offset, &record) !=
            HELIO_STORE_OK) {
            return -1;
        }
        if (record.kind == HELIO_STORE_TOPIC) {
            records->topics[record.topic] =
                (helio_store_topic_name){(const char *)record.data, record.bytes};
            continue;
        }
        const uint64_t values[] = {
            [HELIO_STORE_BY_POSITION] = records->position,
            [HELIO_STORE_BY_SEQUENCE] = record.sequence,
            [HELIO_STORE_BY_NUMBER] = record.number,
            [HELIO_STORE_BY_TIME] = record.receive_ns,
        };
        *position = records->position++;
        if (is_within(choice, values[choice->by], values[choice->by])) {
            const helio_store_topic_name topic = records->topics[record.topic];
            *out = (helio_store_message){.topic = topic.text,
                                         .topic_bytes = topic.bytes,
                                         .sequence = record.sequence,
                                         .number = record.number,
                                         .submit_ns = record.submit_ns,
                                         .receive_ns = record.receive_ns,
                                         .flags = record.flags,
                                         .payload = record.data,
                                         .bytes = record.bytes};
            return 1;
        }
    }
    return 0;
}

bool helio_store_has_topic(const helio_store_batch *batch, const uint8_t *body, const char *topic,
                           size_t topic_bytes) {
    helio_store_record record;
    for (size_t offset = 0; offset < batch->body_bytes;) {
        if (helio_store_get_record(body, batch->body_bytes, &offset, &record) != HELIO_STORE_OK) {
            return false;
        }
        if (record.kind == HELIO_STORE_TOPIC && record.bytes == topic_bytes &&
            memcmp(record.data, topic, topic_bytes) == 0) {
            return true;
        }
    }
    return false;
}
