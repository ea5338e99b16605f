#include "policy/decision_log.h"

#include <stdlib.h>
#include <string.h>

#include <heliograph/errors.h>

#include "policy/decision_fields.h"

enum {
    NUMBER_BYTES = 10, /* of the longest variable-length integer */
    BODY_MAX = NUMBER_BYTES * (1 + HELIO_DECISION_NUMBERS_MAX) + HELIO_DECISION_TEXT_MAX,
};

_Static_assert((int)HELIO_DECISION_INTERVAL_NUMBERS <= (int)HELIO_DECISION_NUMBERS_MAX &&
                   (int)HELIO_DECISION_VIEW_NUMBERS < (int)HELIO_DECISION_NUMBERS_MAX,
               "a record holds them");

static size_t put_number(uint8_t *to, uint64_t number) {
    size_t length = 0;
    while (number >= 0x80) {
        to[length++] = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    to[length++] = (uint8_t)number;
    return length;
}

/* Small differences of either sign become small numbers. */
static uint64_t zigzag(uint64_t difference) {
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static size_t put_differences(uint8_t *to, const uint64_t *numbers, const uint64_t *before,
                              size_t count) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        length += put_number(to + length, zigzag(numbers[i] - before[i]));
    }
    return length;
}

static _Atomic uint64_t *used_cell(uint8_t *memory) {
    return (_Atomic uint64_t *)(void *)(memory + HELIO_DECISION_AT_USED);
}

static void put_word(uint8_t *memory, size_t at, uint32_t value) {
    memcpy(memory + at, &value, sizeof value);
}

static void append(helio_decision_log *log, uint8_t kind, const uint8_t *body, size_t length) {
    uint8_t head[1 + NUMBER_BYTES] = {kind};
    const size_t head_length = 1 + put_number(head + 1, length);
    if (log->is_full || head_length + length > log->capacity - log->used) {
        if (!log->is_full) {
            put_word(log->memory, HELIO_DECISION_AT_FULL, 1);
        }
        log->is_full = true;
        return;
    }
    memcpy(log->memory + log->used, head, head_length);
    memcpy(log->memory + log->used + head_length, body, length);
    log->used += head_length + length;
    atomic_store_explicit(used_cell(log->memory), log->used, memory_order_release);
}

int helio_decision_log_init(helio_decision_log *log, void *memory, size_t capacity,
                            const char *instance, const char *stream, int64_t wall_ns,
                            uint32_t entries) {
    *log = (helio_decision_log){0};
    if (capacity < HELIO_DECISION_LOG_MIN || entries > HELIO_DECISION_PLACES_MAX) {
        return HELIO_ERR_OPTION;
    }
    helio_receiver_view *views = calloc(entries ? entries : 1, sizeof *views);
    if (!views) {
        return HELIO_ERR_NOMEM;
    }
    *log = (helio_decision_log){.memory = memory,
                                .capacity = capacity,
                                .used = HELIO_DECISION_LOG_HEADER,
                                .views = views,
                                .entries = entries};
    uint8_t *head = memory;
    memset(head, 0, HELIO_DECISION_LOG_HEADER);
    put_word(head, HELIO_DECISION_AT_ORDER, HELIO_DECISION_ORDER);
    put_word(head, HELIO_DECISION_AT_VERSION, HELIO_DECISION_VERSION);
    put_word(head, HELIO_DECISION_AT_PLACES, entries);
    memcpy(head + HELIO_DECISION_AT_WALL, &wall_ns, sizeof wall_ns);
    strncpy((char *)head + HELIO_DECISION_AT_INSTANCE, instance,
            HELIO_DECISION_AT_STREAM - HELIO_DECISION_AT_INSTANCE - 1);
    strncpy((char *)head + HELIO_DECISION_AT_STREAM, stream,
            HELIO_DECISION_LOG_HEADER - HELIO_DECISION_AT_STREAM - 1);
    atomic_store_explicit(used_cell(head), log->used, memory_order_release);
    memcpy(head, HELIO_DECISION_MAGIC, sizeof HELIO_DECISION_MAGIC - 1);
    return 0;
}

void helio_decision_log_fini(helio_decision_log *log) {
    free(log->views);
    *log = (helio_decision_log){.is_full = true};
}

void helio_decision_log_view(helio_decision_log *log, const helio_receiver_view *view) {
    if (log->is_full || view->index >= log->entries) {
        return;
    }
    uint64_t numbers[HELIO_DECISION_VIEW_NUMBERS], before[HELIO_DECISION_VIEW_NUMBERS];
    helio_decision_get_view(view, numbers);
    helio_decision_get_view(&log->views[view->index], before);
    if (!(view->flags & HELIO_VIEW_NEWS) && memcmp(numbers, before, sizeof numbers) == 0) {
        return;
    }
    uint8_t body[BODY_MAX];
    size_t length = put_number(body, view->index);
    length += put_differences(body + length, numbers, before, HELIO_DECISION_VIEW_NUMBERS);
    append(log, HELIO_DECISION_VIEW, body, length);
    log->views[view->index] = *view;
    log->views[view->index].flags &= ~(uint32_t)HELIO_VIEW_NEWS;
}

void helio_decision_log_interval(helio_decision_log *log, const helio_interval *interval) {
    if (log->is_full) {
        return;
    }
    uint64_t numbers[HELIO_DECISION_INTERVAL_NUMBERS], before[HELIO_DECISION_INTERVAL_NUMBERS];
    helio_decision_get_interval(interval, numbers);
    helio_decision_get_interval(&log->interval, before);
    uint8_t body[BODY_MAX];
    append(log, HELIO_DECISION_INTERVAL, body,
           put_differences(body, numbers, before, HELIO_DECISION_INTERVAL_NUMBERS));
    log->interval = *interval;
}

void helio_decision_log_record(helio_decision_log *log, helio_decision_kind kind,
                               const uint64_t *numbers, size_t count, const char *text) {
    if (log->is_full) {
        return;
    }
    uint8_t body[BODY_MAX];
    count = count < HELIO_DECISION_NUMBERS_MAX ? count : HELIO_DECISION_NUMBERS_MAX;
    size_t length = put_number(body, count);
    for (size_t i = 0; i < count; i++) {
        length += put_number(body + length, numbers[i]);
    }
    const size_t text_length = text ? strnlen(text, HELIO_DECISION_TEXT_MAX) : 0;
    if (text_length) {
        memcpy(body + length, text, text_length);
    }
    append(log, (uint8_t)kind, body, length + text_length);
}
