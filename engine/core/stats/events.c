/* The ring of events (docs/segment.md 5), and the reports of suppressed ones. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "stats/segment.h"

helio_severity helio_event_severity(helio_event_id event) {
    switch (event) {
#define X(NAME, name, id, SEVERITY, arguments, help) \
    case HELIO_EVENT_##NAME:                         \
        return HELIO_##SEVERITY;
        HELIO_EVENTS(X)
#undef X
    }
    return HELIO_ERROR;
}

const char *helio_event_name(helio_event_id event) {
    switch (event) {
#define X(NAME, name, id, SEVERITY, arguments, help) \
    case HELIO_EVENT_##NAME:                         \
        return #name;
        HELIO_EVENTS(X)
#undef X
    }
    return "";
}

void helio_stats_event(helio_stats *stats, int64_t wall_ns, helio_event_id event, uint32_t slot,
                       const uint64_t args[4], const char *format, ...) {
    const helio_severity severity = helio_event_severity(event);
    if (severity >= HELIO_WARNING) {
        helio_incidents_note(stats, event, wall_ns);
    }
    if (!helio_event_limit_admit(&stats->limit, event, wall_ns)) {
        if (stats->instance) {
            helio_count(&stats->instance->events_suppressed, 1);
        }
        return;
    }
    const uint64_t number = helio_cell(&stats->header->events_written);
    helio_segment_event *entry = &stats->events[number & (stats->event_capacity - 1)];
    atomic_store_explicit(&entry->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    entry->time_ns = helio_segment_stamp(stats, wall_ns);
    entry->event = event;
    entry->severity = severity;
    entry->slot = slot;
    for (int i = 0; i < 4; i++) {
        entry->arguments[i] = args ? args[i] : 0;
    }
    memset(entry->text, 0, sizeof entry->text);
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(entry->text, sizeof entry->text, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof entry->text) { /* end between two characters */
        size_t end = sizeof entry->text - 1;
        while (end > 0 && ((unsigned char)entry->text[end - 1] & 0xC0) == 0x80) {
            end--;
        }
        if (end > 0 && (unsigned char)entry->text[end - 1] >= 0xC0) {
            entry->text[end - 1] = 0;
        }
    }
    atomic_store_explicit(&entry->number, number + 1, memory_order_release);
    atomic_store_explicit(&stats->header->events_written, number + 1, memory_order_release);
    if (stats->instance) {
        helio_count(&stats->instance->events_emitted, 1);
    }
}

static void tell_held(helio_stats *stats, bool all, int64_t wall_ns) {
    helio_events_held held;
    while (helio_event_limit_take(&stats->limit, all, wall_ns, &held)) {
        helio_stats_event(stats, wall_ns, HELIO_EVENT_EVENTS_SUPPRESSED, HELIO_STATS_NO_SLOT,
                          (const uint64_t[4]){held.event, held.count, (uint64_t)held.span_ns},
                          "%llu of %s held back in %.3f s: more than %u a second",
                          (unsigned long long)held.count, helio_event_name(held.event),
                          (double)held.span_ns / 1e9, stats->limit.rate);
    }
}

void helio_events_tend(helio_stats *stats, int64_t wall_ns) {
    if (stats->limit.kinds_held > 0) {
        tell_held(stats, false, wall_ns);
    }
    helio_incidents_tend(stats, wall_ns);
}

void helio_stats_tell_held(helio_stats *stats, int64_t wall_ns) {
    tell_held(stats, true, wall_ns);
}
