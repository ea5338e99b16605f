#include "policy/decision_reader.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "base/error.h"
#include "policy/decision_fields.h"

/* What is left of a record's body. */
typedef struct span {
    const uint8_t *at;
    const uint8_t *end;
} span;

static bool take_number(span *from, uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
        const uint8_t byte = *from->at++;
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

/* Adds differences to `numbers`; those a shorter record does not have are 0. */
static bool take_differences(span *from, uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count && from->at < from->end; i++) {
        uint64_t coded;
        if (!take_number(from, &coded)) {
            return false;
        }
        numbers[i] += coded >> 1 ^ (coded & 1 ? UINT64_MAX : 0);
    }
    return true;
}

static uint32_t get_word(const uint8_t *memory, size_t at) {
    uint32_t value;
    memcpy(&value, memory + at, sizeof value);
    return value;
}

int helio_decision_reader_init(helio_decision_reader *reader, const void *memory, size_t size) {
    *reader = (helio_decision_reader){0};
    const uint8_t *head = memory;
    if (size < HELIO_DECISION_LOG_HEADER ||
        memcmp(head, HELIO_DECISION_MAGIC, sizeof HELIO_DECISION_MAGIC - 1) != 0 ||
        get_word(head, HELIO_DECISION_AT_ORDER) != HELIO_DECISION_ORDER) {
        return HELIO_DECISION_DAMAGED;
    }
    if (get_word(head, HELIO_DECISION_AT_VERSION) != HELIO_DECISION_VERSION) {
        return helio_fail(HELIO_ERR_OPTION,
                          "the decision log has version %u; this Heliograph reads version %u",
                          get_word(head, HELIO_DECISION_AT_VERSION), HELIO_DECISION_VERSION);
    }
    uint64_t used;
    memcpy(&used, head + HELIO_DECISION_AT_USED, sizeof used);
    const uint32_t entries = get_word(head, HELIO_DECISION_AT_PLACES);
    if (used < HELIO_DECISION_LOG_HEADER || used > size || entries > HELIO_DECISION_PLACES_MAX) {
        return HELIO_DECISION_DAMAGED;
    }
    *reader = (helio_decision_reader){
        .memory = memory, .used = used, .at = HELIO_DECISION_LOG_HEADER, .entries = entries};
    memcpy(&reader->wall_ns, head + HELIO_DECISION_AT_WALL, sizeof reader->wall_ns);
    memcpy(reader->instance, head + HELIO_DECISION_AT_INSTANCE, sizeof reader->instance - 1);
    memcpy(reader->stream, head + HELIO_DECISION_AT_STREAM, sizeof reader->stream - 1);
    reader->views = calloc(entries ? entries : 1, sizeof *reader->views);
    return reader->views ? 0 : HELIO_ERR_NOMEM;
}

void helio_decision_reader_fini(helio_decision_reader *reader) {
    free(reader->views);
    *reader = (helio_decision_reader){0};
}

static bool take_view(helio_decision_reader *reader, span body) {
    uint64_t index;
    if (!take_number(&body, &index) || index >= reader->entries) {
        return false;
    }
    helio_receiver_view *view = &reader->views[index];
    uint64_t numbers[HELIO_DECISION_VIEW_NUMBERS];
    view->flags &= ~(uint32_t)HELIO_VIEW_NEWS; /* as it was when it was written */
    helio_decision_get_view(view, numbers);
    if (!take_differences(&body, numbers, HELIO_DECISION_VIEW_NUMBERS)) {
        return false;
    }
    helio_decision_set_view(view, numbers);
    view->index = (uint32_t)index;
    return true;
}

static bool take_interval(helio_decision_reader *reader, span body) {
    uint64_t numbers[HELIO_DECISION_INTERVAL_NUMBERS];
    helio_decision_get_interval(&reader->interval, numbers);
    if (!take_differences(&body, numbers, HELIO_DECISION_INTERVAL_NUMBERS)) {
        return false;
    }
    helio_decision_set_interval(&reader->interval, numbers);
    return reader->interval.receivers <= reader->entries;
}

static bool take_record(span body, helio_decision_record *record) {
    uint64_t count;
    if (!take_number(&body, &count) || count > HELIO_DECISION_NUMBERS_MAX) {
        return false;
    }
    for (record->count = 0; record->count < count; record->count++) {
        if (!take_number(&body, &record->numbers[record->count])) {
            return false;
        }
    }
    const size_t length = (size_t)(body.end - body.at);
    if (length > HELIO_DECISION_TEXT_MAX || memchr(body.at, 0, length)) {
        return false;
    }
    memcpy(record->text, body.at, length);
    record->text[length] = 0;
    return true;
}

/* Policies have seen the views of the interval read last: they are no news any more. */
static void settle(helio_decision_reader *reader) {
    for (uint32_t i = 0; reader->is_at_interval && i < reader->interval.receivers; i++) {
        reader->views[i].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
    }
    reader->is_at_interval = false;
}

int helio_decision_reader_next(helio_decision_reader *reader, helio_decision_record *record) {
    settle(reader);
    if (reader->at >= reader->used) {
        return 0;
    }
    span from = {reader->memory + reader->at + 1, reader->memory + reader->used};
    *record = (helio_decision_record){.kind = reader->memory[reader->at]};
    uint64_t length;
    if (!take_number(&from, &length) || length > (uint64_t)(from.end - from.at)) {
        return HELIO_DECISION_DAMAGED;
    }
    const span body = {from.at, from.at + length};
    const bool is_whole = record->kind == HELIO_DECISION_VIEW       ? take_view(reader, body)
                          : record->kind == HELIO_DECISION_INTERVAL ? take_interval(reader, body)
                                                                    : take_record(body, record);
    if (!is_whole) {
        return HELIO_DECISION_DAMAGED;
    }
    reader->at = (size_t)(body.end - reader->memory);
    reader->is_at_interval = record->kind == HELIO_DECISION_INTERVAL;
    return 1;
}
